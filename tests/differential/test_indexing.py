"""Indexing of every kind, compiled, against NumPy: values, dtype, shape, strides, kind, aliasing, errors, arguments."""

from __future__ import annotations

import ctypes
import itertools
import linecache
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from tests.differential.index_tables import FUNCTIONS, READS, WRITES

_numbers = itertools.count()


def function(names: list[str], body: str) -> Callable[..., Any]:
    """A Python function with source."""
    lines = "".join(f"    {line}\n" for line in body.split(" | "))
    source = f"def f({', '.join(names)}):\n{lines}"
    file = f"<indexing-{next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), scope)
    return scope["f"]


def arguments() -> dict[str, Any]:
    r = np.arange
    return {
        "x1": r(7.0), "x2": r(20.0).reshape(5, 4), "x3": r(60.0).reshape(5, 4, 3), "x4": r(120.0).reshape(5, 4, 3, 2),
        "i": 2, "j": -1, "k": 1, "ni": np.int8(-2), "nu": np.uint64(3), "z": np.array(1), "zu": np.array(2, np.uint8),
        "lo": 1, "hi": 3, "neg": -2, "big": 99, "st": 2, "v": 2.25, "f": 1.5, "F": np.array([0.0, 1.0]),
        "I": np.array([3, 0, -1]), "J": np.array([1, -2, 2]), "I2": np.array([[0, 1, 2], [-1, 3, 0]]),
        "J2": np.array([[1, 0, 2], [2, 1, 0]]), "IF": np.array([[0, 1, 2], [-1, 3, 0]], order="F"),
        "IN": np.array([0, 3, 1, 2])[::-1], "I8": np.array([1, -1, 0], np.int8), "U64": np.array([0, 2, 1], np.uint64),
        "IE": np.array([], np.int64), "I1": np.array([2]), "IC": np.array([[0], [2]]), "IR": np.array([[1, 2, 0]]),
        "IT": np.array([[[0, 1]], [[2, 0]]]), "ID": np.array([1, 1, 2, 3, 2, 1]), "IP": np.array([3, 1, 0, 6, 5, 2, 4]),
        "IB": np.array([0, 9, -7, 3]), "A2": np.array([[0, 3], [1, 1], [2, 0], [3, 2], [-1, 0]]),
        "A0": np.array([[0, 4, 1, 2]]), "c4": np.array([0, 1, 2, 1, 0, 2, 1]), "c5": np.array([0, 1, 5, -1, 0, 2, 7]),
        "c7": np.array([1, 0, 2, 3, 1, 0, 1]), "tz": np.array([0.0, 0, 1, 0, 2, 0]),
        "m1": np.array([1, 0, 1, 1, 0, 0, 1], bool), "m5": np.array([1, 0, 1, 0, 1], bool),
        "m4": np.array([0, 1, 1, 0], bool), "m3": np.array([0, 1, 1], bool), "m2": r(20).reshape(5, 4) % 3 == 0,
        "mf": np.asfortranarray(r(20).reshape(5, 4) % 3 == 0), "m3d": r(60).reshape(5, 4, 3) % 7 < 2,
        "m43": r(12).reshape(4, 3) % 5 < 2, "m20": r(20) % 3 == 0, "mt": np.array(True), "b": True, "nb": np.True_,
        "mz": np.zeros(5, bool), "mw": np.array([1, 0, 1], bool),
        "y1": r(7) * 10.0 + 0.5, "y2": r(20).reshape(5, 4) + 100.0, "y3": np.array([10.0, 20, 30]),
        "y4": np.array([5.0, 6, 7, 8]), "y5": r(5) + 0.25, "y6": r(6) * 3.0, "y7": r(7) * -1.0,
        "y23": r(6).reshape(2, 3) - 50.0, "y34": r(12).reshape(3, 4) * 2.0, "y3d": r(60).reshape(5, 4, 3) * -1.0,
        "p1": r(7), "q2": np.zeros((5, 4), bool),
    }  # fmt: skip


def _reversed(a: np.ndarray) -> np.ndarray:
    flip = (slice(None, None, -1),) * a.ndim
    return np.ascontiguousarray(a[flip])[flip]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "reversed": _reversed,
    "gaps": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "rolled": lambda a: np.ascontiguousarray(np.moveaxis(a, 1, 0)).swapaxes(0, 1) if a.ndim > 2 else a,
    "int32": lambda a: a.astype(np.int32),
    "bool": lambda a: a % 2 == 0,
}


def copied(a: Any) -> Any:
    """A copy that lies in memory as the original does."""
    if not isinstance(a, np.ndarray) or not a.size:
        return a.copy() if isinstance(a, np.ndarray) else a
    low, high = np.lib.array_utils.byte_bounds(a)
    memory = np.empty(high - low, np.uint8)
    ctypes.memmove(memory.ctypes.data, low, high - low)
    return np.ndarray(a.shape, a.dtype, memory, a.ctypes.data - low, a.strides)


def run(f: Callable[..., Any], args: dict[str, Any]) -> tuple[Any, Exception | None, dict[str, Any]]:
    given = {k: copied(v) for k, v in args.items()}
    try:
        return f(**given), None, given
    except Exception as error:  # noqa: BLE001 - compared with that of NumPy
        return None, error, given


def seen_strides(a: np.ndarray) -> tuple[int, ...]:
    return tuple(s for s, d in zip(a.strides, a.shape, strict=True) if d > 1) if a.size else ()


def differs(a: Any, b: Any) -> str:
    """How `a` differs from NumPy's `b`; empty if it does not."""
    if isinstance(b, (tuple, list)):
        if type(a) is not type(b) or len(a) != len(b):
            return f"{a!r} for {b!r}"
        return next((found for x, y in zip(a, b, strict=True) if (found := differs(x, y))), "")
    if type(a) is not type(b):
        return f"{type(a)} {a!r} for {type(b)} {b!r}"
    if isinstance(b, (np.ndarray, np.generic)) and (a.dtype != b.dtype or a.shape != b.shape):
        return f"{a.dtype}{a.shape} for {b.dtype}{b.shape}"
    if isinstance(b, np.ndarray) and seen_strides(a) != seen_strides(b):
        return f"strides {a.strides} for {b.strides} of shape {b.shape}"
    return "" if np.array_equal(a, b) else f"{a!r} for {b!r}"


def aliases(r: Any, args: dict[str, Any]) -> Any:
    if isinstance(r, (tuple, list)):
        return [aliases(x, args) for x in r]
    arrays = {k: v for k, v in args.items() if isinstance(v, np.ndarray)}
    return [k for k, v in arrays.items() if isinstance(r, np.ndarray) and np.shares_memory(r, v)]


def check(body: str, args: dict[str, Any]) -> None:
    names = [k for k in args if re.search(rf"\b{k}\b", body)]
    used = {k: args[k] for k in names}
    f = function(names, body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted, error, wanted_args = run(f, used)
    found, raised, found_args = run(jg.jit(f), used)
    if error is not None:
        known = next(c for c in type(error).__mro__ if c.__module__ == "builtins")  # NumPy's own are private
        assert isinstance(raised, known), f"{body}: {raised!r} for {error!r}"
        assert not isinstance(raised, jg.errors.TraceError), f"{body}: {raised}"
        if type(error) is known:
            assert str(error).split("\n")[0] in str(raised), f"{body}: {raised} for {error}"
    else:
        assert raised is None, f"{body}: {raised!r}"
        assert not (difference := differs(found, wanted)), f"{body}: {difference}"
        assert aliases(found, found_args) == aliases(wanted, wanted_args), f"{body}: shares memory"
    for k in names:
        assert not (difference := differs(found_args[k], wanted_args[k])), f"{body}: argument {k}: {difference}"


def chunks(table: str, separator: str, size: int = 24) -> list[list[str]]:
    cases = [case.strip() for case in re.split(separator, table) if case.strip()]
    return [cases[k : k + size] for k in range(0, len(cases), size)]


def in_layout(name: str) -> dict[str, Any]:
    return {k: LAYOUTS[name](v) if k[0] == "x" else v for k, v in arguments().items()}


def cases(table: str, separator: str, layouts: dict[str, int]) -> list[Any]:
    """Chunks of the table in each layout, of which only every n-th case is taken."""
    return [
        pytest.param(chunk[number % every :: every], layout, id=f"{layout}-{number}")
        for layout, every in layouts.items()
        for number, chunk in enumerate(chunks(table, separator))
    ]


@pytest.mark.parametrize(
    ("expressions", "layout"),
    cases(READS, ";|\n", {"C": 1, "F": 3, "reversed": 4, "gaps": 6, "rolled": 4, "bool": 8}),
)
def test_reads(expressions: list[str], layout: str) -> None:
    """Those that give something go into one function, which takes less time to compile."""
    args = in_layout(layout)
    together = []
    for expression in expressions:
        names = [k for k in args if re.search(rf"\b{k}\b", expression)]
        _, error, _ = run(function(names, f"return {expression}"), {k: args[k] for k in names})
        if error is None:
            together.append(f"({expression})")
        else:
            check(f"return {expression}", args)
    check(f"return [{', '.join(together)}]", args)


@pytest.mark.parametrize(
    ("statements", "layout"), cases(WRITES, ";|\n", {"C": 1, "F": 6, "reversed": 6, "gaps": 8, "int32": 8})
)
def test_writes(statements: list[str], layout: str) -> None:
    for statement in statements:
        check(statement, in_layout(layout))


@pytest.mark.parametrize(("bodies", "layout"), cases(FUNCTIONS, "\n", {"C": 1, "F": 10}))
def test_functions(bodies: list[str], layout: str) -> None:
    for body in bodies:
        check(body, in_layout(layout))


def test_one_compile_for_all_indices_and_bounds() -> None:
    """Traced integers and bounds of any value, in range or not, take one specialisation of the function."""
    f = function(["x", "i", "j"], "return x[i], x[i:j].copy(), x[:i].sum(), x[j::-1].copy()")
    compiled = jg.jit(f)
    x = np.arange(6.0)
    for i in range(-8, 9):
        for j in (-7, -3, -1, 0, 2, 5, 6, 9):
            wanted, error, _ = run(f, {"x": x, "i": i, "j": j})
            found, raised, _ = run(compiled, {"x": x, "i": i, "j": j})
            assert isinstance(raised, type(error)) if error is not None else not differs(found, wanted), (i, j)
    assert compiled.cache_info().misses <= 2


@pytest.mark.parametrize("index", [10**12, -(10**13), 2**63 - 1, -(2**63)])
def test_wild_indices_touch_no_memory(index: int) -> None:
    """What depends on an index may run before its check does: nothing outside of the array is read or written."""
    read = jg.jit(lambda x, i: np.exp(x[i]) + x[i])
    two = jg.jit(lambda x, i, j: x[i, j])
    x, i = np.arange(5.0), np.array([1, index])
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0 with size 5"):
        read(x, i)
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 1 with size 3"):
        two(np.zeros((3, 3)), np.array([0, 1]), i)

    @jg.jit
    def write(x, i):
        x[i] = 7.0

    with pytest.raises(IndexError, match=f"index {index} is out of bounds"):
        write(x, i)
    np.testing.assert_array_equal(x, np.arange(5.0))
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0 with size 5"):
        read(x, np.full(3, index))


def test_masked_sums_have_numpys_bits() -> None:
    rng = np.random.default_rng(1)
    total = jg.jit(lambda x, m: x[m].sum())
    mean = jg.jit(lambda x: x[x > 0].mean())
    mixed = jg.jit(lambda x, m, y: (np.sqrt(np.abs(x[m])) * y[m] + 1).sum())
    for dtype in (np.float64, np.float32):
        for n in (0, 5, 8, 127, 129, 2047, 2049, 4096, 5000, 20001, 70003):
            for share in (0.0, 0.02, 0.5, 1.0):
                x = (rng.normal(size=n) * 10.0 ** rng.integers(-5, 5, n)).astype(dtype)
                y, m = rng.normal(size=n).astype(dtype), rng.random(n) < share
                pairs = [(total(x, m), x[m].sum()), (mixed(x, m, y), (np.sqrt(np.abs(x[m])) * y[m] + 1).sum())]
                if (x > 0).any():
                    pairs.append((mean(x), x[x > 0].mean()))
                for found, wanted in pairs:
                    assert found.dtype == wanted.dtype
                    assert found.tobytes() == wanted.tobytes(), (dtype, n, share)
    x, m = rng.normal(size=(130, 70)), rng.random((130, 70)) < 0.4
    for a, b in ((x, m), (np.asfortranarray(x), m), (x.T, m.T), (x[::2, ::3], m[::2, ::3])):
        assert total(a, b) == a[b].sum()


def test_masked_extremes_and_counts() -> None:
    rng = np.random.default_rng(2)
    f = jg.jit(lambda x, m: (x[m].max(), x[m].min(), x[m].any(), x[m].all(), x[m].sum(), np.count_nonzero(m)))
    for dtype in (np.int8, np.uint16, np.int64, bool, np.float32):
        x, m = rng.integers(0, 100, 301).astype(dtype), rng.random(301) < 0.3
        wanted = (x[m].max(), x[m].min(), x[m].any(), x[m].all(), x[m].sum(), np.count_nonzero(m))
        assert not differs(f(x, m), wanted)
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum which has no identity"):
        f(x, np.zeros(301, bool))


#: Statement: (kernels, temporaries) that it takes.
FUSED = {
    "x[x > 0] = 0": (1, 0),
    "x[m] += 1": (1, 0),
    "x[m] = y[m]": (1, 0),
    "x[m] += y[m] * 2": (1, 0),
    "x2[x2 < 0] = 0": (1, 0),
    "return x[m].mean()": (2, 0),
    "return x[x > 0].sum()": (2, 0),
    "return (np.sqrt(x[m] * x[m]) + y[m]).sum()": (2, 0),
    "return x[m].max()": (1, 0),
    "return np.sum(np.where(m, x, 0))": (1, 0),
    "return (x[I] * y).sum()": (2, 0),
    "return x[I] + y[J]": (3, 0),
    "return np.sqrt(np.abs(x[I]))": (2, 0),
    "return x2[I, J]": (3, 0),
    "return x2[i, j] * 2": (0, 0),
    "return (x * 2)[m]": (2, 0),
    "return x[(x > 0) & (x < 1)]": (2, 0),
    "return x[m] * y[m]": (2, 0),
    "return np.argmin(np.abs(x - 1))": (1, 0),
}


@pytest.mark.parametrize("body", FUSED)
def test_masks_and_gathers_fuse(body: str) -> None:
    """Kernels and temporaries are counted; a kernel more for each array of indices stands for the report of its check."""
    rng = np.random.default_rng(0)
    n = 1000
    args: dict[str, Any] = {
        "x": rng.normal(size=n), "y": rng.normal(size=n), "m": rng.random(n) < 0.5, "x2": rng.normal(size=(n, 40)),
        "I": rng.integers(0, 40, n), "J": rng.integers(0, 40, n), "i": 3, "j": 4,
    }  # fmt: skip
    names = [k for k in args if re.search(rf"\b{k}\b", body)]
    f = jg.jit(function(names, body))
    explained = f.explain(*[copied(args[k]) for k in names])
    assert (len(explained.kernels), len(explained.temporaries)) == FUSED[body]
    assert not explained.copies
    check(body, args)


#: Statements with a step of any sign, which only the run knows.
STEPS = [
    "return x[::s]",
    "return x[p:q:s]",
    "return x[p::s].copy(), x[:q:s] * 2",
    "x[p:q:s] = 5",
    "x[::s] += 1 | return x",
    "return a[p:q:s, ::s]",
    "return a[:, ::s].T",
    "return x[p:q:s][::-1], x[::s][::s]",
]


@pytest.mark.parametrize("body", STEPS)
def test_steps_of_any_sign(body: str) -> None:
    names = [k for k in ("x", "a", "p", "q", "s") if re.search(rf"\b{k}\b", body)]
    f = function(names, body)
    compiled = jg.jit(f)
    for p, q in [(1, 5), (-9, 4), (-1, -8), (3, -2), (0, 2**62), (8, 0)]:
        for s in (1, -1, 2, -3, 9, -9, 2**63 - 1, -(2**63), 0):
            args = {"x": np.arange(7.0), "a": np.arange(20.0).reshape(5, 4), "p": p, "q": q, "s": s}
            args = {k: args[k] for k in names}
            wanted, error, wanted_args = run(f, args)
            found, raised, found_args = run(compiled, args)
            assert isinstance(raised, type(error)) if error is not None else raised is None, (p, q, s, raised)
            assert not differs(found, wanted), (p, q, s)
            assert all(not differs(found_args[k], wanted_args[k]) for k in names), (p, q, s)
            assert aliases(found, found_args) == aliases(wanted, wanted_args), (p, q, s)
