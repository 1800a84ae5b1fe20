"""A name of one of several types (see `options`) around a loop: an int says which, the parts of all options travel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from jitgraph import errors
from jitgraph.ir.dims import symbols
from jitgraph.ir.types import TensorType, python_type
from jitgraph.pytree import LEAF, TreeDef, flatten
from jitgraph.tracing.carried_names import Carried, Changed, Option, dense, is_array, is_missing, protected
from jitgraph.tracing.exits import RETURNED
from jitgraph.tracing.joining import (
    alike,
    carried_type,
    describe,
    is_option,
    kind_of,
    options_of,
    renumbered,
    stays_inside,
)
from jitgraph.tracing.kinds import boxed
from jitgraph.tracing.poison import OneOf

if TYPE_CHECKING:
    from jitgraph.tracing.carried import Region

_WHICH: Final = python_type("py_int")
#: With more types than these a name is taken to change without an end.
_MOST_TYPES: Final = 4


def carry(region: Region, name: str, before: Any, end: Any, known: Carried | None = None) -> None:
    """From here on a loop carries a name as one of several types.

    Args:
        before: what it is before the loop.
        end: what a turn leaves.
        known: what it was carried as so far.

    Raises:
        Changed: the loop cannot carry it.
    """
    mode = region.mode
    which = before.which if type(before) is OneOf else 0
    options: list[Option] = []
    inits, fixed = [which], [which]
    types: list[TensorType | None] = [_WHICH]

    def add(option: Option, parts: Sequence[Any], of: Sequence[TensorType | None], stays: Sequence[Any]) -> None:
        options.append(option)
        inits.extend(parts)
        types.extend(of)
        fixed.extend(stays)

    for x in options_of(before):
        leaves, tree = flatten(x, boxed)
        add(Option(kind_of(mode, x), tree), leaves, [_type(region, i) for i in leaves], leaves)
    at = 1
    for option in known.options if known is not None else ():
        assert known is not None
        here = slice(at, at + option.tree.count)
        if not any(alike(mode, option.kind, o.kind) for o in options):
            add(option, [None] * option.tree.count, known.types[here], known.fixed[here])
        at = here.stop
    inner = region._inner()
    for x in options_of(end):
        leaves, tree = flatten(x, boxed)
        made = Option(kind_of(mode, x), tree)
        if not any(alike(mode, made.kind, o.kind) for o in options):
            if any(is_array(i) and any(not inner.isdisjoint(symbols(d)) for d in i.type.shape) for i in leaves):
                raise Changed(name, before, end)
            add(made, [None] * len(leaves), [_type(region, i) for i in leaves], leaves)
    if len(options) > _MOST_TYPES:
        raise Changed(name, before, end)
    tree = TreeDef(OneOf, _meta(region, name, before, end), (LEAF, *(o.tree for o in options)))
    read = name in region.info.head and name != RETURNED  # no turn follows one that returns
    region.names[name] = Carried(
        name, tree, inits, types, fixed, read, read_only=protected(fixed), options=tuple(options)
    )


def _type(region: Region, x: Any) -> TensorType | None:
    """The type that a part of an option is carried with; None: an array from before the loop, which stays itself."""
    if is_array(x) and region.stays(x) and stays_inside(region.mode, x):
        return None
    return dense(carried_type(x))


def _meta(region: Region, name: str, before: Any, end: Any) -> Any:
    """The metadata of the node: the error of who has to know which it is, and cannot."""
    text = f"{name} is {describe(before)} or {describe(end)}, as turns of a loop decide, and this needs to know which"
    place = region.place

    def error() -> BaseException:
        remedy = "give it one type before the loop, or test what it is (`is None`, `==`) before this."
        return errors.LeftToPython(errors.describe(text, region.mode.locate() or place, remedy=remedy))

    return flatten(OneOf(0, (), error))[1].meta


def options_in(region: Region, x: Any) -> tuple[Option, ...]:
    """The options of a value of several types; none of any other."""
    found = options_of(x) if type(x) is OneOf else ()
    return tuple([Option(kind_of(region.mode, i), flatten(i, boxed)[1]) for i in found])


def fits(region: Region, carried: Carried, end: Any) -> bool:
    """Whether what a turn leaves is of the types that a name is carried as; else it is carried so from here on.

    Raises:
        Changed: the loop cannot carry it.
    """
    if at_end(region, carried, end) is not None:
        return True
    before = region.before.get(carried.name)
    if is_missing(before):  # what else an attempt has found out may have changed it
        del region.names[carried.name]
        return False
    if not is_option(before) or not is_option(end):
        raise Changed(carried.name, before, end)
    carry(region, carried.name, before, end, carried if carried.options else None)
    return False


def at_end(region: Region, carried: Carried, end: Any) -> list[Any] | None:
    """The parts of what a turn leaves, as they are carried (None: nothing); None if it is of another type."""
    if not carried.options:
        return None
    if carried.aligned is not None and carried.aligned[0] is end:
        return carried.aligned[1]
    placed: dict[int, Any] = {}
    numbers: list[int] = []
    for x in options_of(end):
        kind = kind_of(region.mode, x)
        fitting = [k for k, o in enumerate(carried.options) if k not in placed and alike(region.mode, o.kind, kind)]
        if not fitting:
            return None
        placed[fitting[0]] = x
        numbers.append(fitting[0])
    which: Any = end.which if type(end) is OneOf else 0
    parts = [numbers[which] if type(which) is int else region.in_turn(lambda: renumbered(which, numbers))]
    at = 1
    for k, option in enumerate(carried.options):
        here = slice(at, at + option.tree.count)
        absent = [f if t is None else None for t, f in zip(carried.types[here], carried.fixed[here], strict=True)]
        parts += flatten(placed[k], boxed)[0] if k in placed else absent
        at = here.stop
    carried.aligned = end, parts
    return parts


def is_open(region: Region, name: str, before: Any, end: Any) -> bool:
    """Whether a name that turns leave as `end` may be carried as one of several types."""
    known = name in region.optional or type(end) is OneOf
    return known and name not in region.cells and is_option(before) and is_option(end)
