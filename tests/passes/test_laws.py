"""Every elementwise law of the passes, exhaustively: all expressions of two operators, over all pairs of special values.

The graph of a dtype holds every expression; a pass rewrites them all at once, and what each gives must keep its bits: signed
zeros, infinities, NaN (all are one), subnormals, the limits of integers. Arrays first; the expressions that a pass changed
there are then tried on NumPy scalars and Python's numbers, which NumPy computes in other ways.
"""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph import dtypes
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph, Result, Value
from jitgraph.ir.interpret import as_kind, interpret
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.rewrite import apply_rules
from jitgraph.ir.types import TensorType, python_kind_of, python_type
from jitgraph.passes.canonicalise import canonicalise
from jitgraph.passes.dce import dce
from jitgraph.passes.fold import fold
from jitgraph.passes.simplify import RULES

Expression = Callable[[Builder, dict[str, Value]], Value]

_UNARY = (
    *(
        "neg",
        "abs",
        "sign",
        "square",
        "sqrt",
        "reciprocal",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "isnan",
        "isinf",
        "isfinite",
    ),
    *("signbit", "logical_not", "bit_not", "conj", "real", "imag"),
)
_BINARY = (
    *("add", "sub", "mul", "div", "floordiv", "mod", "fmod", "minimum", "maximum", "fmin", "fmax", "copysign"),
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "bit_and", "bit_or", "bit_xor"),
    *("shift_left", "shift_right"),
)
#: Casts of floats to integers out of range are not promised.
_FREE_ZERO = ("minimum", "maximum", "fmin", "fmax")


def specials(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        numbers = [0, 1, 2, 3, 7, limits.bits - 1, limits.bits, limits.max, limits.max - 1, limits.min, limits.min + 1]
        return np.array([*numbers, *([-1, -2, -7] if dtype.kind == "i" else [])], dtype)
    part = dtypes.part_of(dtype)
    if dtype.kind == "c":
        parts = np.array([0.0, -0.0, 1.0, -1.0, 2.7, np.inf, -np.inf, np.nan], part)
        made = np.empty((len(parts), len(parts)), dtype)
        made.real, made.imag = parts[:, None], parts
        return made.ravel()
    f = np.finfo(part)
    positive = [0.0, 1.0, 2.0, 0.5, 2.7, 1e3, np.inf, np.nan, f.max, f.tiny, f.smallest_subnormal, 1 + f.eps]
    return np.array([s * p for p in positive for s in (1, -1)], part)


def constants(dtype: np.dtype) -> list[Any]:
    """Numbers that laws look for, and some that they must tell from these."""
    if dtype.kind == "b":
        return [np.False_, np.True_]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return [dtype.type(c) for c in (0, 1, 2, 3, limits.max, limits.min, *([-1] if dtype.kind == "i" else []))]
    numbers = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        0.5,
        4.0,
        3.0,
        np.inf,
        np.nan,
        np.finfo(dtype).smallest_subnormal,
        np.finfo(dtype).max,
    ]
    if dtype.kind == "c":
        numbers += [complex(0.0, -0.0), complex(-0.0, -0.0), 1j, complex(1, -0.0), complex(0.3, 0.7)]
    return [dtype.type(c) for c in numbers]


@dataclass(frozen=True, slots=True)
class Named:
    """An expression, and the operators in it as text."""

    text: str
    build: Expression

    def __str__(self) -> str:
        return self.text


def leaf(name: str) -> Named:
    return Named(name, lambda b, env: env[name])


def constant(value: Any, *, full: bool = False) -> Named:
    """A number, or an array of the shape of x that is it throughout."""

    def build(b: Builder, env: dict[str, Value]) -> Value:
        x = env["x"]
        return (
            b.full(b.constant(value), shape=x.type.shape, dtype=value.dtype)
            if full and x.type.ndim
            else b.constant(value)
        )

    return Named(f"{'full ' * full}{value!r}", build)


def call(name: str, *operands: Named, **attrs: Any) -> Named:
    text = f"{name}({', '.join([*map(str, operands), *(f'{k}={v}' for k, v in attrs.items())])})"
    return Named(text, lambda b, env: b.apply(REGISTRY[name], *(x.build(b, env) for x in operands), **attrs)[0])


#: What laws look for below an operator, and a few that they must tell from these.
_INNER_UNARY = ("neg", "abs", "square", "logical_not", "bit_not", "floor", "rint", "conj")
_INNER_BINARY = ("sub", "mul", "minimum", "maximum", "lt", "ge", "eq", "ne", "logical_and")


def expressions(dtype: np.dtype) -> Iterator[Named]:
    """Those of one and two operators; some are none for the dtype."""
    x, y, c = leaf("x"), leaf("y"), leaf("c")
    numbers = [constant(value) for value in constants(dtype)]
    filled = [constant(value, full=True) for value in constants(dtype)]
    casts = [d for d in dtypes.COMPILED if dtype.kind in "biu" or d.kind in "bfc"]  # else out of range: not promised
    chosen = [
        call("where", c, x, y),
        call("where", call("logical_not", c), x, y),
        call("where", call("bit_not", c), y, x),
    ]
    inner = [call(name, x) for name in _INNER_UNARY]
    inner += [call(name, x, y) for name in _INNER_BINARY]
    inner += [call("cast", x, dtype=np.dtype(d)) for d in ("f8", "i8", "?")]
    inner += chosen
    yield from chosen
    for name in _UNARY:
        yield from (call(name, z) for z in (x, *inner, *numbers, *filled))
    for d, other in itertools.product(dtypes.COMPILED, casts):
        yield call("cast", call("cast", x, dtype=d), dtype=other)
    for name in _BINARY:
        yield from (call(name, *xs) for xs in ((x, x), (x, y), (y, x)))
        for g in inner:
            yield from (call(name, *xs) for xs in ((g, x), (y, g), (g, g)))
        for number in (*numbers, *filled):
            yield call(name, x, number)
            yield call(name, number, x)
        yield from (call(name, a, b) for a, b in zip(numbers, numbers[::-1], strict=True))
        yield from (call(name, a, b) for a, b in itertools.product(filled[:6], filled))
        for f, g in itertools.product(("neg", "abs", "logical_not", "bit_not"), repeat=2):
            yield call(name, call(f, x), call(g, y))
    for number in (*numbers, *filled):
        if dtype.kind not in "i" or "-" not in number.text:
            yield call("pow", x, number)
            yield from (call("pow", base, number) for base in (*numbers[:6], *filled[:6]))
        yield call("where", c, number, y)
        yield call("where", c, y, number)
        yield from (call("where", c, number, other) for other in (*numbers[:4], filled[1]))
    for value, z, w in itertools.product((np.True_, np.False_), (x, numbers[0]), (y, numbers[-1])):
        yield call("where", constant(value), z, w)
        yield call("where", constant(value, full=True), z, w)
    for g in chosen:
        yield from (call("where", c, *xs) for xs in ((g, y), (x, g), (g, g)))
    for low, high in itertools.product(numbers[::2], repeat=2):
        yield call("clip", x, low, high)


def graph_of(named: list[Named], types: list[TensorType]) -> tuple[Graph, list[Named]]:
    """The graph that returns them all, but those that the type rules refuse; and those it has."""
    graph = Graph("laws")
    env = {name: graph.body.add_arg(t, name) for name, t in zip("xyc", types, strict=True)}
    b = Builder(graph)
    results: list[Value] = []
    kept: list[Named] = []
    for e in named:
        try:
            results.append(e.build(b, env))
        except Exception:  # noqa: BLE001 - no such operator for the dtype
            continue
        kept.append(e)
    b.emit(REGISTRY["return"], results, (), {"mutates": ()})
    graph.results = [Result("fresh", i) for i in range(len(results))]
    return graph, kept


def same(a: Any, b: Any, text: str) -> bool:
    if type(a) is not type(b) or np.asarray(a).dtype != np.asarray(b).dtype or np.shape(a) != np.shape(b):
        return False
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "c":
        return same(a.real, b.real, text) and same(a.imag, b.imag, text)
    equal = a == b
    if a.dtype.kind == "f":
        nan = np.isnan(a) & np.isnan(b)
        if not any(name in text for name in _FREE_ZERO):
            equal &= np.signbit(a) == np.signbit(b)
        equal |= nan
    return bool(np.all(equal))


def returning(graph: Graph, chosen: Sequence[int]) -> Graph:
    """The graph, cut down to some of its results."""
    end = graph.body.terminator
    end.set_operands([end.operands[k] for k in chosen])
    graph.results = [Result("fresh", i) for i in range(len(chosen))]
    dce(graph)
    return graph


#: Expressions in one graph: larger ones cost Python's garbage collector more than the passes.
_CHUNK = 400


def faults(dtype: np.dtype, fired: set[str]) -> list[str]:
    """The expressions whose bits a pass changes."""
    passes = {
        "canonicalise": lambda g: canonicalise(g),
        "fold": fold,
        "simplify": lambda g: apply_rules(g, RULES, fired.add),
    }
    numbers = specials(dtype)
    pairs = np.array(list(itertools.product(numbers, numbers)), dtype)
    arrays = [pairs[:, 0].copy(), pairs[:, 1].copy(), np.arange(len(pairs)) % 3 == 0]
    some = pairs[:: 1 + len(pairs) // 12]
    found: list[str] = []
    for named in batched(expressions(dtype), _CHUNK):
        graph, kept = graph_of(named, [TensorType(x.dtype, x.shape) for x in arrays])
        wanted = [interpret(graph, arrays)[0]]
        for name, run in passes.items():
            changed, wrong = changed_by(run, graph, kept, [arrays], wanted)
            found += [f"{name}: {kept[k].text} of {dtype}" for k in wrong]
            for t in scalar_types(dtype):
                scalars = [(as_kind(x, t), as_kind(y, t), np.bool_(k % 2)) for k, (x, y) in enumerate(some)]
                chosen = [kept[k] for k in changed if not (t.kind == "py_complex" and _ORDERED.search(kept[k].text))]
                small, left = graph_of(chosen, [t, t, TensorType(dtypes.BOOL, (), "np_scalar")])
                _, wrong = changed_by(run, small, left, scalars, [interpret(small, a)[0] for a in scalars])
                found += [f"{name}: {left[k].text} of {t}" for k in wrong]
    return found


#: Python's complex numbers have no order.
_ORDERED = re.compile(r"\b(lt|le|gt|ge)\(")


def scalar_types(dtype: np.dtype) -> Iterator[TensorType]:
    yield TensorType(dtype, (), "np_scalar")
    if dtype in (dtypes.BOOL, dtypes.I64, dtypes.F64, dtypes.C128):
        yield python_type(python_kind_of(dtype))


def batched(items: Iterator[Named], size: int) -> Iterator[list[Named]]:
    while chunk := list(itertools.islice(items, size)):
        yield chunk


def changed_by(
    run: Callable[[Graph], object],
    graph: Graph,
    kept: list[Named],
    calls: Sequence[Sequence[Any]],
    wanted: Sequence[Sequence[Any]],
) -> tuple[list[int], list[int]]:
    """The results that a pass makes in another way, and those of them that have other bits then than `wanted`."""
    after = graph.clone()
    run(after)
    changed = [k for k, pair in enumerate(zip(shapes_of(graph), shapes_of(after), strict=True)) if pair[0] != pair[1]]
    after = returning(after, changed)
    wrong: set[int] = set()
    for arguments, before in zip(calls, wanted, strict=True):
        results = interpret(after, arguments)[0]
        wrong |= {k for k, b in zip(changed, results, strict=True) if not same(before[k], b, kept[k].text)}
    return changed, sorted(wrong)


def shapes_of(graph: Graph) -> list[Any]:
    """What each result is made of, two operators deep."""

    def shape(v: Value, depth: int) -> Any:
        op = v.producer
        if op is None:
            return v.name
        attrs = str(op.attrs) if op.attrs else ""
        return (op.name, attrs, *(shape(x, depth - 1) for x in op.operands)) if depth else op.name

    return [shape(v, 3) for v in graph.body.terminator.operands]


#: One dtype a kind: laws ask for the kind. `python -m tests.passes.test_laws` runs all.
@pytest.mark.parametrize("dtype", [dtypes.BOOL, dtypes.I8, dtypes.F32, dtypes.C64], ids=str)
def test_laws(dtype: np.dtype) -> None:
    fired: set[str] = set()
    gc.disable()  # half of the time otherwise
    try:
        with np.errstate(all="ignore"):
            found = faults(dtype, fired)
    finally:
        gc.enable()
    assert not found, "\n".join(found[:40])
    assert len(fired) > 10


if __name__ == "__main__":
    for each in dtypes.COMPILED:
        test_laws(each)
        gc.collect()
        print(each, "holds")
