"""What `is` says of traced values: which object a name stands for, where a branch or the turns of a loop decide.

A merged array is a new Tensor here and one of two older objects in Python; `Either` remembers which, so that `v is x`
is a bool that the branch's test decides. Bools exist once each: `flag is True` is the truth of a traced bool.

Which scalar object a name stands for behind the turns of a loop, and which ints exist once, only Python knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitgraph.ir.builder import constant_type, is_long
from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.records import dataclass
from jitgraph.tensor import Tensor, lift, wrap
from jitgraph.tracing.kinds import settle, tag_of
from jitgraph.tracing.objects import is_object, object_of
from jitgraph.tracing.restart import Restart

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitgraph.ir.types import TensorType
    from jitgraph.tracing.capture_mode import CaptureMode

#: Python's ints that exist once.
_SMALL: Final = range(-5, 257)


@dataclass(frozen=True, slots=True)
class Either:
    """What a merged value is in Python.

    Attributes:
        merged: the Tensor itself, kept so that its identity stays its own.
        flag: which of the options it is; None: the turns of a loop decide.
        options: the object if the flag holds, and if not; anything but a Tensor is no traced object.
        settle: the branch whose way may be assumed where the flag is out of reach.
    """

    merged: Tensor
    flag: Value | None
    options: tuple[Any, Any] = (None, None)
    settle: Any = None


def note(
    mode: CaptureMode, made: Any, flag: Value | None, options: tuple[Any, Any] = (None, None), way: Any = None
) -> Any:
    """`made`, remembered as one of two objects if it is a new Tensor."""
    if type(made) is Tensor and made is not options[0] and made is not options[1]:
        mode.either[id(made)] = Either(made, flag, options, way)
    return made


def same(mode: CaptureMode, a: Any, b: Any, keep_apart: Callable[[Any, Any], None]) -> Any:
    """`a is b`, where one of them at least is a Tensor: a bool, or a traced one.

    Args:
        keep_apart: called for two objects that are two in this trace, and might be one in another call.

    Raises:
        LeftToPython: only the turns of a loop decide, of scalars; or they are two traced ints.
    """
    if a is b:
        return True
    if _is_bool(a) and _is_bool(b):
        a, b = (settle(mode, x, tag, "the kind of a bool") if (tag := tag_of(mode, x)) else x for x in (a, b))
        if _is_python(a) != _is_python(b):
            return False
        return _equal(mode, a, b)
    if _is_small(a, b) or _is_small(b, a):
        return _equal(mode, a, b)
    if all(type(x) is Tensor and x.type.kind == "py_int" for x in (a, b)):
        mode.leave("`is` asks of two ints that data decides, and Python has small ones once each", "compare by `==`.")
    found = _Search(mode, keep_apart).same(a, b)
    return found if isinstance(found, bool) else wrap(mode, found)


def _is_bool(x: Any) -> bool:
    if type(x) is Tensor:
        return x.type.kind != "array" and (x.type.dtype == np.bool_ or x.type.kind == "py_bool")
    return isinstance(x, bool | np.bool_)


def _is_python(x: Any) -> bool:
    return x.type.kind == "py_bool" if type(x) is Tensor else type(x) is bool


def _is_small(a: Any, b: Any) -> bool:
    return type(a) is Tensor and a.type.kind == "py_int" and type(b) is int and b in _SMALL


def _equal(mode: CaptureMode, a: Any, b: Any) -> Tensor:
    found = mode.builder.apply(REGISTRY["eq"], lift(mode, a), lift(mode, b))[0]
    if found.type.kind != "py_bool":
        found = mode.builder.apply(REGISTRY["as_kind"], found, kind="py_bool")[0]
    return wrap(mode, found)


class _Search:
    """Follows two values back to the objects that they may be; each pair once."""

    def __init__(self, mode: CaptureMode, keep_apart: Callable[[Any, Any], None]) -> None:
        self.mode = mode
        self.keep_apart = keep_apart
        self.known: dict[tuple[int, int], bool | Value] = {}

    def same(self, a: Any, b: Any, way: Any = None) -> bool | Value:
        """`way`: the branch whose way may be assumed where what they are cannot be told."""
        if a is b or (is_object(a) and is_object(b) and object_of(a) is object_of(b)):
            return True
        if (type(a) is not Tensor and type(b) is not Tensor) or _differ(self.mode, a, b):
            return False
        key = (id(a), id(b))
        if key not in self.known:
            self.known[key] = self._same(a, b, way)
        return self.known[key]

    def _same(self, a: Any, b: Any, way: Any) -> bool | Value:
        mode = self.mode
        first, second = mode.either.get(id(a)), mode.either.get(id(b))
        known = first or second
        if known is None:
            self.keep_apart(a, b)
            return False
        if mode.objects is not None and is_object(a) and is_object(b):
            mode.objects.asked = True
            return mode.objects.same(a, b)
        way = way or known.settle
        if known.flag is None or (second is not None and second.flag is None):
            if is_object(a) and is_object(b):
                raise Restart(objects=True)
            if way is not None:
                raise Restart(settle=way)
            mode.leave(
                "which of several scalars a name stands for is data, and `is` asks for it",
                "keep a bool beside the scalar that says so.",
            )
        if first is not None and second is not None and first.flag is second.flag:
            sides = list(zip(first.options, second.options, strict=True))
        else:
            sides = [(x, b) if first is not None else (a, x) for x in known.options]
        yes, no = (self.same(x, y, way) for x, y in sides)
        if isinstance(yes, bool) and yes is no:
            return yes
        if not mode.is_visible(known.flag):
            if is_object(a) and is_object(b):
                raise Restart(objects=True)
            if way is not None:
                raise Restart(settle=way)
            mode.leave(
                "which scalar a name stands for depends on a test inside of a branch or loop, and `is` asks behind it",
                "keep a bool beside the scalar that says so.",
            )
        values = [mode.builder.constant(v) if isinstance(v, bool) else v for v in (yes, no)]
        found = mode.builder.apply(REGISTRY["where"], known.flag, *values)[0]
        return (
            found if found.type.kind == "py_bool" else mode.builder.apply(REGISTRY["as_kind"], found, kind="py_bool")[0]
        )


def _differ(mode: CaptureMode, a: Any, b: Any) -> bool:
    """Whether two values are surely two objects: no object is of two types."""
    first, second = _types(mode, a), _types(mode, b)
    if first and second and "array" == first[0].kind == second[0].kind:
        s, t = first[0], second[0]
        return s.dtype != t.dtype or len(s.shape) != len(t.shape)
    return not any(t in second for t in first)


def _types(mode: CaptureMode, x: Any) -> list[TensorType]:
    """The types that a value may have; none of what no traced value is."""
    if type(x) is Tensor:
        tag = tag_of(mode, x)
        return [x.type] if tag is None else [tag.yes, tag.no]
    known = isinstance(x, bool | float | complex | np.number | np.bool_) or (type(x) is int and not is_long(x))
    return [constant_type(x)] if known else []
