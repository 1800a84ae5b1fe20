"""Why a call needed a new specialisation: its difference to the nearest one of the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph.cache.memory import Specialisations
from jitgraph.ir.dims import Dim, evaluate
from jitgraph.ir.graph import Guard
from jitgraph.ir.layouts import extent
from jitgraph.pytree import TreeDef
from jitgraph.tracing.hidden import MISSING, Call, HiddenArg, TypeGuard, ValueGuard, is_same
from jitgraph.tracing.leaves import CallSpec, Key, key_text, leaf_text, leaf_type
from jitgraph.tracing.trace import Trace

_SHOWN = 60
#: More than the reasons of any other kind.
_FAR = 10**6
_ARRAYS = ("array", "tensor")


def why_missed(
    cache: Specialisations[Any], spec: CallSpec, key: Any, leaves: Sequence[Any], call: Call, path: tuple[bool, ...]
) -> tuple[str, tuple[str, ...]]:
    """Text of the nearest specialisation, and in what the call differs from it.

    Args:
        key: the call's (`call_key`).
        path: answers to assumptions that the specialisations of this key have shown.
    """
    names = spec.names(key[0])
    best: tuple[int, str, tuple[str, ...]] | None = None
    for other, item in cache.all():
        trace: Trace | None = getattr(item, "trace", None)
        if other == key:
            if trace is None:
                reasons: tuple[str, ...] = ("that one runs in Python, on another path",)
            else:
                reasons = tuple(_guards(trace, names, leaves, call, path))
        else:
            reasons = tuple(_keys(other, key, names))
        rank = len(reasons) + (0 if other == key else _FAR if other[0] == key[0] else 2 * _FAR)
        if reasons and (best is None or rank < best[0]):
            best = rank, key_text(other[1]), reasons
    return ("", ()) if best is None else best[1:]


def _keys(old: Any, new: Any, names: list[str]) -> list[str]:
    """The differences of two keys."""
    if old[0] != new[0]:
        return [_trees(old[0], new[0])]
    found = [f"{names[k]}: {_leaf(a, b)}" for k, (a, b) in enumerate(zip(old[1], new[1], strict=True)) if a != b]
    if old[2] != new[2]:
        found.append(f"which arguments are one array: {_aliases(old[2], names)} -> {_aliases(new[2], names)}")
    if old[3] != new[3] and not found:
        found.append(f"sizes (specialize='shape'): {_sizes(old[3])} -> {_sizes(new[3])}")
    return found


def _trees(old: TreeDef, new: TreeDef) -> str:
    a, b = repr(old), repr(new)
    return f"structure of the arguments: {_short(a)} -> {_short(b)}"


def _leaf(old: Key, new: Key) -> str:
    """In what the keys of two leaves differ."""
    arrays = old[0] == new[0] and old[0] in _ARRAYS and len(old) == len(new) == 5
    if not arrays:
        return f"{_short(leaf_text(old))} -> {_short(leaf_text(new))}"
    (_, dtype, layout, ones, writable), (_, dtype2, layout2, ones2, writable2) = old, new
    found = []
    if dtype != dtype2:
        found.append(f"dtype {dtype} -> {dtype2}")
    if len(layout.order) != len(layout2.order):
        found.append(f"{len(layout.order)} axes -> {len(layout2.order)} axes")
    else:
        if layout != layout2:
            found.append(f"layout {layout} -> {layout2}")
        if ones != ones2:
            found.append(f"axes of size 1: {_axes(ones)} -> {_axes(ones2)}")
    if writable != writable2:
        found.append("writeable -> read-only" if writable else "read-only -> writeable")
    return ", ".join(found)


def _axes(axes: tuple[int, ...]) -> str:
    return ", ".join(map(str, axes)) if axes else "none"


def _aliases(pattern: tuple[int, ...], names: list[str]) -> str:
    same = [f"{names[k]} is {names[first]}" for k, first in enumerate(pattern) if k != first]
    return ", ".join(same) if same else "none"


def _sizes(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes))


def _guards(trace: Trace, names: list[str], leaves: Sequence[Any], call: Call, path: tuple[bool, ...]) -> list[str]:
    """The conditions of a trace of the same key that do not hold for the call."""
    found = []
    for k, value in trace.leaf_values.items():
        if not is_same(leaves[k], value):
            found.append(f"{names[k]}, whose value is compiled in: {_value(value)} -> {_value(leaves[k])}")
    found += [
        f"{names[k]} was the array at {place.text}"
        for k, place in trace.also_arguments
        if leaves[k] is not place.get(call)
    ]
    found += [_guard(g, call) for g in trace.guards_python if not g.check(call)]
    hidden = [h for h in trace.hidden if not h.fits(call)]
    found += [_hidden(h, call) for h in hidden]
    if not hidden:
        env = _sizes_of(trace, leaves, call)
        found += [f"sizes: {_relation(g, env)}" for g in trace.graph.guards if not g.holds(env)]
    if not found and trace.path != path:
        found.append("data went another way than that trace assumed")
    return found


def _guard(guard: Any, call: Call) -> str:
    if isinstance(guard, ValueGuard):
        live = guard.place.get(call)
        return f"{guard.place.text}: {_value(guard.value)} -> {_value(live)}"
    if isinstance(guard, TypeGuard):
        return _hidden(guard, call)
    return f"no longer so: {guard}"


def _hidden(hidden: HiddenArg | TypeGuard, call: Call) -> str:
    live = hidden.place.get(call)
    if live is MISSING:
        return f"{hidden.place.text} is missing"
    return f"{hidden.place.text}: {_leaf(hidden.key, leaf_type(live))}"


def _sizes_of(trace: Trace, leaves: Sequence[Any], call: Call) -> dict[str, int]:
    args = trace.arguments(leaves, call)
    return {s.name: extent(args[s.arg], s.axis) for s in trace.graph.symbols.values() if s.origin == "arg"}


def _relation(guard: Guard, env: dict[str, int]) -> str:
    sides = [d if isinstance(d, int) else f"{d} = {evaluate(d, env)}" for d in (guard.left, guard.right)]
    relation = f"{guard.left} {guard.relation} {guard.right}"
    values = ", ".join(
        str(side) for side, d in zip(sides, (guard.left, guard.right), strict=True) if isinstance(d, Dim)
    )
    return f"{relation} does not hold ({values})"


def _value(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"array {x.dtype}{list(x.shape)}"
    try:
        return _short(repr(x))
    except Exception:  # noqa: BLE001  # a user's `__repr__` may raise what it likes
        return f"<{type(x).__name__}>"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
