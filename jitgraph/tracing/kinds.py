"""Scalars whose kind depends on the path: a Python float on one side of a branch, `np.float64` on the other.

The graph holds one value of a type that both convert to without changing a number; beside it the trace knows a `Tag`: a
traced bool, and the exact type for each of its values. A tag that makes no difference (the other operand is a float64
array) is forgotten; one that does is settled by an assumption on the bool where a call can turn back, else by a branch
on it around the operation (`Open`). A result with a tag is boxed by its bool when the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from jitgraph import pytree
from jitgraph.ir.builder import constant_type, is_long
from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.types import TensorType, python_type, scalar_type
from jitgraph.records import dataclass
from jitgraph.tensor import Tensor, lift, wrap
from jitgraph.xp.operators import ZERO_MESSAGES

_WEAK: dict[str, Any] = {"py_bool": True, "py_int": 1, "py_float": 1.0, "py_complex": 1j}
#: Operators that do not tell Python numbers from NumPy's of another dtype beside them.
_COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
_TESTS = _COMPARISONS | {"is_", "is_not", "in_", "not_in"}
#: Operators with which Python numbers raise and NumPy's do not.
_RAISING = frozenset(("truediv", "floordiv", "mod", "pow", "itruediv", "ifloordiv", "imod", "ipow"))


@dataclass(frozen=True, slots=True)
class Tag:
    """The value is of type `yes` if `flag` holds when the code runs, else of type `no`."""

    flag: Value
    yes: TensorType
    no: TensorType


class Open(Exception):  # noqa: N818  # an answer
    """The kind of an operand matters and no call can turn back: the operation is to be a branch on it."""

    def __init__(self, flag: Value) -> None:
        super().__init__()
        self.flag = flag


@dataclass(slots=True, eq=False)
class Boxed:
    """A tagged value on its way out: `unflatten` makes the scalar of the right kind."""

    value: Any
    flag: Any
    yes: TensorType
    no: TensorType


def _box(meta: Any, parts: Sequence[Any]) -> Any:
    value, flag = parts
    if type(flag) is Tensor and flag.is_traced:  # a branch or a loop carries it
        mode: Any = flag._storage.mode
        mode.kinds[value._storage.value] = Tag(flag._storage.value, meta[0], meta[1])
        return value
    t = meta[0] if flag else meta[1]
    if isinstance(value, complex | np.complexfloating) and t.dtype.kind != "c":
        value = value.real
    if t.is_python:
        return {"py_bool": bool, "py_int": int, "py_float": float, "py_complex": complex}[t.kind](value)
    return t.dtype.type(value)


pytree.register(Boxed, lambda b: ([b.value, b.flag], (b.yes, b.no)), _box)


def tag_of(mode: Any, x: Any) -> Tag | None:
    """The tag of a traced scalar; None if its kind is known."""
    if type(x) is not Tensor or x._steps or not mode.kinds:
        return None
    value = x._storage.value
    found: Tag | None = mode.kinds.get(value)
    if found is not None and found.flag in mode.known_flags:
        known = found.yes if mode.known_flags[found.flag] else found.no
        return None if value.type == known else found
    return found


def boxed(x: Any) -> Boxed | None:
    """A tagged scalar as a node of its value and its bool; None for anything else."""
    if type(x) is not Tensor or not x.is_traced:
        return None
    mode: Any = x._storage.mode
    tag = tag_of(mode, x)
    return None if tag is None else Boxed(x, wrap(mode, tag.flag), tag.yes, tag.no)


def boxed_as(
    x: Any, types: tuple[TensorType, TensorType], negated: Callable[[Value], Value] | None = None
) -> list[Any] | None:
    """A scalar of one of two types as `[value, flag]`; None if it is of another.

    Args:
        negated: makes the negation of a flag, where it is not to be made here and now.
    """
    found = boxed(x)
    if found is not None:
        if (found.yes, found.no) == types:
            return [found.value, found.flag]
        if (found.no, found.yes) == types:
            flag = found.flag
            mode = flag._storage.mode
            value = flag._storage.value
            no = mode.builder.apply(REGISTRY["logical_not"], value)[0] if negated is None else negated(value)
            return [found.value, wrap(mode, no)]
        return None
    if type(x) is not Tensor and not isinstance(x, bool | int | float | complex | np.generic):
        return None
    t = x.type if type(x) is Tensor else constant_type(x)
    return [x, t == types[0]] if t in types else None


def join_kinds(a: TensorType, b: TensorType) -> TensorType | None:
    """A scalar type that holds the numbers of both; None if there is none."""
    if "array" in (a.kind, b.kind) or a == b:
        return None
    types = [np.result_type(t.dtype) for t in (a, b)]
    dtype = np.promote_types(*types)
    if a.is_python and b.is_python:
        if dtype == np.complex128:
            return python_type("py_complex")
        if dtype == np.float64:
            return python_type("py_float")
        return python_type("py_int") if dtype == np.int64 else None
    return scalar_type(dtype)


def is_held(mode: Any, value: Any, have: TensorType, to: TensorType) -> bool:
    """Whether a value keeps its number when it is converted: a dtype that holds all, a constant that fits.

    A Python int that only the run knows does so under a check: see `is_exact`.

    Args:
        value: None: a size; no array has 2^53 elements.
    """
    if value is None:
        return to.dtype in _WIDE or to.dtype == np.uint64
    rounds = have.dtype.kind in "iu" and to.dtype.kind in "fc" and have.dtype.itemsize == 8
    if np.can_cast(have.dtype, to.dtype, "safe") and not rounds:
        return True
    if have.kind == "py_int" and isinstance(value, Value) and constant_of(value) is None:
        return to.dtype in _WIDE
    return not isinstance(value, Tensor) and _is_held(to, value)


def is_exact(mode: Any, value: Any, have: TensorType, to: TensorType) -> bool:
    """The same, with the check of a Python int emitted here."""
    held = is_held(mode, value, have, to)
    rounds = have.kind == "py_int" and to.dtype.kind in "fc" and value not in mode.small
    if held and rounds and isinstance(value, Value) and constant_of(value) is None:
        within_limits(mode, value)
    return held


def either(mode: Any, flag: Value, yes: Any, no: Any) -> Tensor | None:
    """One of two scalars of two types, as a bool of the graph says: a select, tagged.

    Returns:
        None where a scalar has a tag already, or no type holds the numbers of both as they are.
    """
    if tag_of(mode, yes) is not None or tag_of(mode, no) is not None or is_long(yes) or is_long(no):
        return None
    values = [lift(mode, yes), lift(mode, no)]
    types = values[0].type, values[1].type
    joined = holder(*types, values) or join_kinds(*types)
    if joined is None or not all(_is_held(joined, v) for v in values):
        return None
    mode.ask(yes)
    mode.ask(no)
    sides = [as_type(mode, wrap(mode, v), joined)._storage.value for v in values]
    chosen = mode.builder.apply(REGISTRY["where"], flag, *sides)[0]
    found = as_type(mode, wrap(mode, chosen), joined)
    mode.kinds[found._storage.value] = Tag(flag, *types)
    return found


def holder(a: TensorType, b: TensorType, values: Sequence[Any]) -> TensorType | None:
    """The type of a NumPy scalar that holds the number of a Python constant, too: `max(x[0], 0)` in float32.

    Args:
        values: what is to be held: values of the graph, numbers.
    """
    if a.is_python == b.is_python:
        return None
    strong, weak = (b, a) if a.is_python else (a, b)
    order = "biufc"
    fits = order.index(weak.dtype.kind) <= order.index(strong.dtype.kind) and strong.dtype.kind != "b"
    return scalar_type(strong.dtype) if fits and all(_is_held(strong, v) for v in values) else None


def _is_held(t: TensorType, value: Any) -> bool:
    """Whether a type holds the number of a scalar, by the scalar's type or as it is known."""
    have = value.type if isinstance(value, Value) else constant_type(value)
    rounds = have.dtype.kind in "iu" and t.dtype.kind in "fc" and have.dtype.itemsize == 8
    if np.can_cast(have.dtype, t.dtype, "safe") and not rounds:
        return True
    known = constant_of(value) if isinstance(value, Value) else value
    if known is None:
        return False
    number = np.asarray(known)
    if number.dtype.kind == "O" or (number.dtype.kind == "c" and t.dtype.kind != "c"):
        return False
    with np.errstate(all="ignore"):
        held = number.astype(t.dtype)
    same = held.item() == number.item()  # by Python, which rounds and wraps nothing
    return same or (t.dtype.kind in "fc" and bool(number != number))  # noqa: PLR0124  # a NaN


def promoted(t: TensorType, other: np.dtype) -> np.dtype:
    """The dtype of an operation of a scalar of type `t` with an array of that dtype."""
    return np.result_type(other, _WEAK[t.kind] if t.is_python else t.dtype)


def settle(mode: Any, x: Tensor, tag: Tag, why: str) -> Tensor:
    """The scalar with its kind taken for granted.

    Raises:
        Open: no call can turn back here.
    """
    known = tag.flag in mode.known_flags or constant_of(tag.flag) is not None
    if not known and not mode.can_turn_back():
        raise Open(tag.flag)
    answer = mode.assume(tag.flag, why)
    return as_type(mode, x, tag.yes if answer else tag.no)


def told(mode: Any, x: Any) -> Any:
    """A value as of the one type that it has on this path, for who asks for its class.

    Raises:
        Open: the path decides, and no call can turn back.
    """
    tag = tag_of(mode, x)
    if tag is None:
        return x
    if tag.flag not in mode.known_flags and not mode.can_rerun():
        raise Open(tag.flag)
    return settle(mode, x, tag, "the class of a scalar")


def as_type(mode: Any, x: Tensor, t: TensorType) -> Tensor:
    """The scalar as exactly this type, which it is known to have come from: another value, if it has a tag."""
    builder = mode.builder
    value = x._storage.value
    if value in mode.kinds:
        mode.ask(x)
    if value.type == t and value in mode.kinds:
        return wrap(mode, builder.apply(REGISTRY["as_kind"], value, kind=t.kind)[0])
    if value.type.is_python and value.type.dtype != t.dtype:
        value = builder.apply(REGISTRY["as_kind"], value, kind="np_scalar")[0]
    if value.type.dtype != t.dtype:
        value = builder.apply(REGISTRY["cast"], value, dtype=t.dtype)[0]
    if value.type.kind != t.kind:
        value = builder.apply(REGISTRY["as_kind"], value, kind=t.kind)[0]
    return wrap(mode, value)


def operands(mode: Any, name: str, values: Sequence[Any]) -> list[Any]:
    """The operands of an operation, those whose tags matter to it settled.

    Raises:
        Open: one matters, and no call can turn back.
    """
    for x in values:
        if tag_of(mode, x) is None:
            mode.ask(x)  # its type decides what the type of the result depends on
    found = list(values)
    if any(type(x) in (list, tuple) for x in values):  # Python's numbers refuse them, NumPy's make arrays of them
        return [told_in(mode, x) for x in values]
    for k, x in enumerate(found):
        tag = tag_of(mode, x)
        if tag is not None and tag.flag in mode.known_flags:
            found[k] = as_type(mode, x, tag.yes if mode.known_flags[tag.flag] else tag.no)
    strong = [_dtype_of(x) for x in found if tag_of(mode, x) is None]
    dtypes = [d for d in strong if d is not None]
    for k, x in enumerate(found):
        tag = tag_of(mode, x)
        if tag is None:
            continue
        if dtypes:
            other = np.result_type(*dtypes)
            kinds = {promoted(t, other) for t in (tag.yes, tag.no)}
            exact = other.kind in "biu" or name not in _COMPARISONS  # beside a float32 Python's 0.1 is rounded
            if (name in _TESTS and exact) or kinds == {promoted(x.type, other)}:
                continue
            if len(kinds) == 1 and kinds == {other} and not _may_not_fit(tag, x.type.dtype, other):
                # both become what the other operand is
                found[k] = as_type(mode, x, scalar_type(other))
                continue
        elif _tests_alike(mode, name, tag, x, found) or _computes_alike(mode, name, tag, x.type):
            continue
        why = "the kind of a scalar that is a Python number on one path and NumPy's on the other"
        found[k] = settle(mode, x, tag, why)
        if not dtypes:  # it may decide over those that were passed by
            return operands(mode, name, found)
    return found


def _may_not_fit(tag: Tag, held: np.dtype, dtype: np.dtype) -> bool:
    """Whether a scalar may be a Python int that NumPy refuses beside this dtype."""
    return dtype.kind in "iu" and "py_int" in (tag.yes.kind, tag.no.kind) and not np.can_cast(held, dtype)


def _tests_alike(mode: Any, name: str, tag: Tag, x: Tensor, values: Sequence[Any]) -> bool:
    """Whether a test among scalars of open kinds and Python numbers says the same of both types."""
    if name not in _COMPARISONS:
        return name in _TESTS
    if name in ("lt", "le", "gt", "ge") and (tag.yes.dtype.kind == "c") != (tag.no.dtype.kind == "c"):
        return False  # refused for one of the types
    if _ranks(tag) is not None or all(t.dtype.kind in "biu" for t in (tag.yes, tag.no)):
        return True
    numbers = [v._storage.value if type(v) is Tensor else v for v in values]  # beside a float32 Python's 0.1 is rounded
    return x.type.kind == "np_scalar" and all(n is not None and _is_held(x.type, n) for n in numbers)


def has_tags(mode: Any, f: Any, values: Iterable[Any]) -> bool:
    """Whether the kind of an argument, or of an item of a list or slice that `f` looks at, depends on the path."""
    for x in values:
        if type(x) is Tensor:
            if tag_of(mode, x):
                return True
        elif type(x) in _NESTING and id(f) not in _PASSING and has_tags(mode, f, _items(x)):
            return True
    return False


def has_long(values: Iterable[Any]) -> bool:
    """Whether an int beyond 64 bits is among arguments, or in a list."""
    return any(has_long(x) if type(x) in (list, tuple) else is_long(x) for x in values)


def in_sequence(mode: Any, a: Any, b: Any) -> bool:
    """Whether an operand is a list or tuple of scalars of open kinds, and the other makes NumPy take it as an array."""
    if type(a) in (list, tuple):
        a, b = b, a
    return type(b) in (list, tuple) and _dtype_of(a) is not None and has_tags(mode, None, (b,))


#: What holds the arguments that functions look at.
_NESTING: Final = (list, tuple, slice)
#: Builtins that hand on what they are given, or do the same with a number of any kind.
_PASSING: Final = frozenset(
    map(id, (list, tuple, dict, zip, enumerate, map, filter, iter, reversed, print, bool, any, all, max, min))
)

#: Functions of NumPy's that give an attribute of what they are given: a Python number of a Python number.
_HANDING_ON: Final = frozenset(map(id, (np.real, np.imag)))


def _items(x: Any) -> Sequence[Any]:
    return (x.start, x.stop, x.step) if type(x) is slice else x


def told_in(mode: Any, x: Any) -> Any:
    """A value, or what lists and slices hold, as of the types that they have on this path.

    Raises:
        Open: the path decides, and no call can turn back.
    """
    if type(x) is slice:
        return slice(*(told_in(mode, i) for i in _items(x)))
    if type(x) in _NESTING and has_tags(mode, None, x):
        return type(x)([told_in(mode, i) for i in x])
    return told(mode, x)


def is_numpys(f: Any) -> bool:
    ufunc = f if isinstance(f, np.ufunc) else getattr(f, "__self__", None)
    numpys = isinstance(ufunc, np.ufunc) or (getattr(f, "__module__", None) or "").startswith(("numpy", "math"))
    return numpys and not isinstance(f, type)


def arguments(mode: Any, f: Any, values: Sequence[Any]) -> list[Any]:
    """The arguments of a function: NumPy's treat Python floats and np.float64 alike, in lists, too; others are told.

    Raises:
        Open: the kind of one matters, and no call can turn back.
    """
    if not is_numpys(f):
        return list(values) if id(f) in _PASSING else [told_in(mode, x) for x in values]
    found = [_elements(mode, x) if type(x) in (list, tuple) and has_tags(mode, f, (x,)) else x for x in values]
    arrays = any(_dtype_of(x) is not None for x in values if tag_of(mode, x) is None)
    if arrays:
        return operands(mode, getattr(f, "__name__", ""), found)
    for k, x in enumerate(found):
        tag = tag_of(mode, x)
        if tag is None:
            continue
        if _is_plain(tag, x.type) and id(f) not in _HANDING_ON:
            found[k] = as_type(mode, x, scalar_type(x.type.dtype))
        elif not _same_loops(f, len(found), tag):
            found[k] = settle(mode, x, tag, "the kind of a scalar")
    return found


def decide_index(mode: Any, owner: Any, index: Any) -> bool:
    """Whether what `owner[index]` is depends on the kind of a scalar: of the owner, or of the index."""
    if tag_of(mode, owner):
        return True
    tag = tag_of(mode, index)
    if tag is not None:
        return not all(t.dtype.kind in "iu" for t in (tag.yes, tag.no))
    return type(index) in _NESTING and has_tags(mode, None, (index,))


def is_stored_by_kind(mode: Any, value: Any, owner: Any) -> bool:
    """Whether what `owner[...] = value` leaves depends on the kind of the scalar, or it is refused for one."""
    tag = tag_of(mode, value)
    if tag is None or type(owner) is not Tensor:
        return False
    exact = owner.type.dtype.kind in "fc" and all(t.dtype.kind in "biuf" for t in (tag.yes, tag.no))
    return not exact


def _same_loops(f: Any, count: int, tag: Tag) -> bool:
    """Whether a ufunc has one loop for both types of its only operand: the square root of an int is that of a float."""
    if not isinstance(f, np.ufunc) or count != 1 or f.nin != 1:
        return False
    try:
        loops = [f.resolve_dtypes((t.dtype, *[None] * f.nout)) for t in (tag.yes, tag.no)]
    except TypeError:
        return False
    return loops[0] == loops[1]


def _elements(mode: Any, values: Any) -> Any:
    """A list of which NumPy makes an array of their common dtype: its elements have their dtypes.

    Raises:
        Open: see `arguments`.
    """
    found = list(values)
    for k, x in enumerate(values):
        tag = tag_of(mode, x)
        if type(x) in (list, tuple):
            found[k] = _elements(mode, x)
        elif tag is not None and not _is_plain(tag, x.type):
            found[k] = settle(mode, x, tag, "the kind of a scalar in a list")
    return type(values)(found)


def _computes_alike(mode: Any, name: str, tag: Tag, joined: TensorType) -> bool:
    """Whether the operation among Python numbers may leave the kind open."""
    ranks = _ranks(tag)
    if ranks is None or joined.dtype.kind == "b" or (ranks[0] == 0 and name == "pos"):  # which makes an int of a bool
        return False
    if _is_plain(tag, joined) and joined.dtype.kind == "f" and name in _ARITHMETIC:
        return name not in _RAISING or not mode.can_rerun()
    return name in _ARITHMETIC and not mode.can_rerun()


#: Operators that are exact on integers held as floats, up to 2^53; a division always gives a float.
_ARITHMETIC: Final = frozenset(("add", "sub", "mul", "truediv", "neg", "pos", "iadd", "isub", "imul", "itruediv"))
_ORDER: Final = ("py_bool", "py_int", "py_float", "np_scalar")
_LARGEST: Final = 2.0**53
#: What holds Python's ints: those of 64 bits, or up to `_LARGEST`.
_WIDE: Final = (np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.complex128))


def _rank(t: TensorType) -> int | None:
    """The place of a type among Python's numbers and NumPy's of the same dtypes; None for others."""
    if t.kind == "np_scalar" and t.dtype not in (np.float64, np.int64):
        return None
    return _ORDER.index(t.kind) if t.kind in _ORDER else None


def _ranks(tag: Tag) -> tuple[int, int] | None:
    """The ranks of the weaker and of the stronger type."""
    yes, no = _rank(tag.yes), _rank(tag.no)
    return None if yes is None or no is None else (min(yes, no), max(yes, no))


def _of_rank(rank: int, dtype: np.dtype) -> TensorType:
    return scalar_type(dtype) if rank == 3 else python_type(_ORDER[rank])


def _is_plain(tag: Tag, joined: TensorType) -> bool:
    """Whether the two types compute alike among Python numbers: they differ in the kind alone."""
    return tag.yes.dtype == tag.no.dtype == joined.dtype and joined.dtype.kind != "b"


def _dtype_of(x: Any) -> np.dtype | None:
    """The dtype of an operand that decides over Python numbers: arrays and NumPy scalars."""
    if type(x) is Tensor:
        return None if x.type.is_python else x.type.dtype
    return x.dtype if isinstance(x, np.ndarray | np.generic) else None


def tag_result(mode: Any, name: str, values: Sequence[Any], result: Any) -> Any:
    """The result of an operation on tagged scalars and Python numbers alone, tagged."""
    if (
        type(result) is not Tensor
        or result.type.kind == "array"
        or any(_dtype_of(x) is not None for x in values if tag_of(mode, x) is None)
    ):
        return result
    if result.type.dtype.kind == "b":
        return _tag_truth(mode, values, result)
    if name.endswith("truediv"):
        _check_divisor(mode, values)
    weak, strong = 0, 0
    flags: list[Value] = []
    apply = mode.builder.apply
    for x in values:
        tag = tag_of(mode, x)
        if tag is not None and tag.flag in mode.known_flags:
            rank = _rank(tag.yes if mode.known_flags[tag.flag] else tag.no)
            if rank is None:
                return result
            weak, strong = max(weak, rank), max(strong, rank)
            continue
        ranks = None if tag is None else _ranks(tag)
        if tag is None:
            rank = _rank(x.type if type(x) is Tensor else constant_type(x))
            if rank is None:
                return result
            weak, strong = max(weak, rank), max(strong, rank)
        elif ranks is None:
            return result
        else:
            weak, strong = max(weak, ranks[0]), max(strong, ranks[1])
            is_yes = _rank(tag.yes) == ranks[1]
            flags.append(tag.flag if is_yes else apply(REGISTRY["logical_not"], tag.flag)[0])
    if not flags or name not in _ARITHMETIC:
        return result
    weak = max(weak, 2 if name.endswith("truediv") else 1)  # of bools Python makes ints
    if weak >= strong:
        return result
    total = flags[0]
    for flag in flags[1:]:
        total = apply(REGISTRY["logical_or"], total, flag)[0]
    value = result._storage.value
    dtype = value.type.dtype
    if weak == 1 and dtype.kind == "f":
        within_limits(mode, value, total)
    mode.kinds[value] = Tag(total, _of_rank(strong, dtype), _of_rank(weak, dtype))
    return result


def _check_divisor(mode: Any, values: Sequence[Any]) -> None:
    """A division among Python numbers raises where the divisor is zero, unless the path made one of them NumPy's."""
    flags: list[Value] = []
    pythons: list[TensorType] = []
    for x in values:
        tag = tag_of(mode, x)
        if tag is None:
            pythons.append(x.type if type(x) is Tensor else constant_type(x))
        elif tag.yes.is_python and tag.no.is_python:
            pythons.append(x.type)
        elif tag.yes.is_python or tag.no.is_python:
            pythons.append(tag.yes if tag.yes.is_python else tag.no)
            flags.append(mode.builder.apply(REGISTRY["logical_not"], tag.flag)[0] if tag.yes.is_python else tag.flag)
        else:
            return
    divisor = values[1]
    if type(divisor) is not Tensor and divisor:
        return
    fine = mode.builder.apply(REGISTRY["ne"], lift(mode, divisor), 0)[0]
    for flag in flags:
        fine = mode.builder.apply(REGISTRY["logical_or"], fine, flag)[0]
    floating = any(t.dtype.kind == "f" for t in pythons)
    mode.check(fine, "ZeroDivisionError", ZERO_MESSAGES["truediv", floating])


def within_limits(mode: Any, value: Value, unless: Value | None = None) -> None:
    """An integer that is held as a float must be exact: up to 2^53."""
    apply = mode.builder.apply
    low, high = (-_LARGEST, _LARGEST) if value.type.dtype.kind == "f" else (-int(_LARGEST), int(_LARGEST))
    above, below = apply(REGISTRY["ge"], value, low)[0], apply(REGISTRY["le"], value, high)[0]
    fits = apply(REGISTRY["logical_and"], above, below)[0]
    if unless is not None:
        fits = apply(REGISTRY["logical_or"], fits, unless)[0]
    mode.check(fits, "deoptimise", "integer overflow of a number that is an int on one path and a float on the other")


def _tag_truth(mode: Any, values: Sequence[Any], result: Tensor) -> Tensor:
    """A comparison among Python numbers gives a bool, one with NumPy's a np.bool."""
    if result.type.kind != "np_scalar":
        return result
    flags: list[Value] = []
    for x in values:
        tag = tag_of(mode, x)
        if tag is not None:
            if tag.yes.is_python == tag.no.is_python:
                return result
            flags.append(mode.builder.apply(REGISTRY["logical_not"], tag.flag)[0] if tag.yes.is_python else tag.flag)
    total = flags[0]
    for flag in flags[1:]:
        total = mode.builder.apply(REGISTRY["logical_or"], total, flag)[0]
    mode.kinds[result._storage.value] = Tag(total, scalar_type(np.dtype(bool)), python_type("py_bool"))
    return result
