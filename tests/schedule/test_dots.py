"""Dot products in loops: BLAS's orders and the trial that finds them, operands, lanes, triangles and rows side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.codegen.dots import ORDERS
from jitgraph.runtime import dot_core
from tests.fuzz.levels import Levels, serving

RNG = np.random.default_rng(41)
CORES = ("skylakex", "haswell")


# --- the orders -----------------------------------------------------------------------------------------------------


def windows(x: np.ndarray, y: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    out = np.empty(sizes.shape[0])
    for i in range(sizes.shape[0]):
        out[i] = x[starts[i] : starts[i] + sizes[i]] @ y[: sizes[i]]
    return out


def columns(a: np.ndarray, b: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    out = np.empty(sizes.shape[0])
    for i in range(sizes.shape[0]):
        out[i] = np.dot(a[: sizes[i], 1], b[1, : sizes[i]])
    return out


def evaluated(order: str, x: np.ndarray, y: np.ndarray) -> float:
    return ORDERS[order].evaluate(x.tolist(), y.tolist())


@pytest.fixture
def core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Code generation is told that BLAS's core is this one."""
    monkeypatch.setattr(dot_core, "core", lambda: request.param)
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", CORES)
def test_trial_knows_each_order(name: str) -> None:
    found = [evaluated(f"{name}.strided" if strided else name, x, y) for x, y, strided in dot_core.trials()]
    assert dot_core.identified(np.array(found)) == name
    found[40] = np.nextafter(found[40], 2.0)
    assert dot_core.identified(np.array(found)) == ""


@pytest.mark.parametrize("core", CORES, indirect=True)
def test_machine_code_has_the_order(core: str) -> None:
    sizes = np.array([*range(70), 95, 96, 97, 128, 143, 200, 300])
    x, y = RNG.normal(size=400), RNG.normal(size=400)
    starts = np.arange(sizes.size) % 7
    expected = [evaluated(core, x[at : at + n], y[:n]) for at, n in zip(starts, sizes, strict=True)]
    assert jg.jit(windows)(x, y, starts, sizes).tobytes() == np.array(expected).tobytes()
    a, b = RNG.normal(size=(300, 3)), RNG.normal(size=(2, 300))
    expected = [evaluated(f"{core}.strided", a[:n, 1], b[1, :n]) for n in sizes]
    assert jg.jit(columns)(a, b, sizes).tobytes() == np.array(expected).tobytes()


def test_unknown_order_is_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot_core, "_CORES", {})
    monkeypatch.setattr(dot_core, "core", dot_core.core.__wrapped__)
    jitted = jg.jit(windows)
    x, y, starts, sizes = RNG.normal(size=80), RNG.normal(size=80), np.arange(9), np.arange(60, 69)
    assert jitted(x, y, starts, sizes).tobytes() == windows(x, y, starts, sizes).tobytes()
    text = jitted.inspect_ir(x, y, starts, sizes, stage="loops")
    assert "cblas_ddot" in text
    assert "= dot " not in text


def test_order_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Object code that was made for another core is not taken."""
    x, y, starts, sizes = RNG.normal(size=400), RNG.normal(size=400), np.zeros(60, int), np.arange(17, 317, 5)
    expected = windows(x, y, starts, sizes)
    for name in CORES:
        monkeypatch.setattr(dot_core, "core", lambda name=name: name)
        found = jg.jit(windows)(x, y, starts, sizes)
        assert found.tobytes() == np.array([evaluated(name, x[:n], y[:n]) for n in sizes]).tobytes()
    monkeypatch.undo()
    assert jg.jit(windows)(x, y, starts, sizes).tobytes() == expected.tobytes()


def test_special_values_and_long_vectors() -> None:
    jitted = jg.jit(windows)
    x, y = RNG.normal(size=12_000), RNG.normal(size=12_000)
    sizes = np.array([0, 1, 10_000, 10_001, 11_999])
    starts = np.zeros(5, int)
    assert jitted(x, y, starts, sizes).tobytes() == windows(x, y, starts, sizes).tobytes()
    x[3], x[37], y[50], y[90] = np.inf, -np.inf, np.nan, np.inf
    x[91] = -0.0
    sizes, starts = np.arange(120), np.arange(120) % 5
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(jitted(x, y, starts, sizes), windows(x, y, starts, sizes))
    zeros = -np.zeros(20)
    sizes, starts = np.arange(20), np.zeros(20, int)
    found = jitted(zeros, np.ones(20), starts, sizes)
    assert found.tobytes() == windows(zeros, np.ones(20), starts, sizes).tobytes()


# --- programs -------------------------------------------------------------------------------------------------------


def lu(A: np.ndarray) -> None:
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]


def cholesky(A: np.ndarray) -> None:
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


def solve(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = np.empty_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def solve_in_place(L: np.ndarray) -> None:
    """The recurrence reads the matrix that it writes."""
    for i in range(L.shape[0]):
        L[0, i] = L[i, i] - L[i, :i] @ L[0, :i]


def solve_by_columns(U: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = np.zeros(b.shape[0])
    for i in range(b.shape[0]):
        x[i] = b[i] - U[:i, i] @ x[:i]
    return x


def backwards(U: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = np.zeros_like(b)
    n = b.shape[0]
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - U[i, i + 1 :] @ x[i + 1 :]) / U[i, i]
    return x


def running(x: np.ndarray) -> np.ndarray:
    """Each element depends on all before it, from the other side."""
    for i in range(x.shape[0]):
        x[i] += np.dot(x[:i], np.flip(x[:i]))
    return x


def durbin(r: np.ndarray) -> np.ndarray:
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = alpha
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gram_schmidt(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n, m = A.shape
    Q, R = np.zeros((n, m)), np.zeros((m, m))
    for k in range(m):
        R[k, k] = np.sqrt(np.dot(A[:, k], A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, m):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def overwritten(A: np.ndarray) -> None:
    """A later product reads what an earlier turn has written, on other columns."""
    for j in range(A.shape[1] - 1):
        A[0, j + 1] = A[:, j] @ A[:, j + 1]


def spmv(starts: np.ndarray, cols: np.ndarray, values: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = np.empty(starts.shape[0] - 1)
    for i in range(y.shape[0]):
        y[i] = values[starts[i] : starts[i + 1]] @ x[cols[starts[i] : starts[i + 1]]]
    return y


def scaled(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        out[i] = (a[i] * 2.0 - 1.0) @ (x + a[i])
    return out


def kept(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, float]:
    """The operand is read again."""
    total, last = 0.0, 0.0
    for i in range(a.shape[0]):
        row = a[i] * x
        total += row @ x
        last += row[0]
    return x * total, last


def written_between(a: np.ndarray, x: np.ndarray) -> float:
    """What the operand is computed from changes before the product."""
    total = 0.0
    for i in range(a.shape[0]):
        row = a[i] * 2.0
        a[i] = 0.0
        total += row @ x
    return total


def power(A: np.ndarray, x: np.ndarray, steps: int) -> float:
    y = np.zeros_like(x)
    for _ in range(steps):
        for i in range(A.shape[0]):
            y[i] = A[i] @ x
        x = y / np.sqrt(y @ y)
    return float(x @ y)


def matrix(n: int) -> np.ndarray:
    a = RNG.uniform(-1, 1, (n, n))
    a[np.arange(n), np.arange(n)] += n
    return a


def symmetric(n: int) -> np.ndarray:
    a = RNG.uniform(-1, 1, (n, n))
    return a @ a.T + n * np.eye(n)


def sparse(rows: int) -> tuple[np.ndarray, ...]:
    starts = np.concatenate(([0], np.cumsum(RNG.integers(0, 45, rows))))
    return starts, RNG.integers(-rows, rows, starts[-1]), RNG.normal(size=starts[-1]), RNG.normal(size=rows)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "lu": (lu, lambda n: (matrix(n),)),
    "lu of a wider one": (lu, lambda n: (RNG.uniform(1, 2, (n, n + 3)),)),
    "cholesky": (cholesky, lambda n: (symmetric(n),)),
    "solve": (solve, lambda n: (matrix(n), RNG.normal(size=n))),
    "solve in place": (solve_in_place, lambda n: (matrix(n) / n,)),
    "solve by columns": (solve_by_columns, lambda n: (matrix(n) / n, RNG.normal(size=n))),
    "backwards": (backwards, lambda n: (matrix(n), RNG.normal(size=n))),
    "running": (running, lambda n: (RNG.normal(size=n) / n,)),
    "durbin": (durbin, lambda n: (0.8 ** np.arange(n) * RNG.uniform(0, 0.5, n),)),
    "gram_schmidt": (gram_schmidt, lambda n: (RNG.normal(size=(n + 2, n)),)),
    "overwritten": (overwritten, lambda n: (RNG.normal(size=(5, n)) / 5,)),
    "spmv": (spmv, sparse),
    "scaled": (scaled, lambda n: (RNG.normal(size=(4, n)), RNG.normal(size=n))),
    "kept": (kept, lambda n: (RNG.normal(size=(4, n)), RNG.normal(size=n))),
    "written between": (written_between, lambda n: (RNG.normal(size=(4, n)), RNG.normal(size=n))),
    "power": (power, lambda n: (matrix(n), RNG.normal(size=n), 3)),
}


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)


def same_bits(a: Any, b: Any) -> bool:
    pairs = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_numpys(name: str) -> None:
    function, arguments = PROGRAMS[name]
    jitted = jg.jit(function)
    for n in (2, 3, 5, 8, 13, 16, 17, 31, 34, 47, 66):
        given = arguments(n)
        ours, theirs = copied(given), copied(given)
        found, expected = jitted(*ours), function(*theirs)
        assert (found is None) == (expected is None)
        assert found is None or same_bits(found, expected), n
        assert same_bits(ours, theirs), n


@pytest.mark.parametrize("name", ["lu", "cholesky", "solve", "gram_schmidt", "spmv", "durbin"])
@pytest.mark.parametrize("view", ["fortran", "strided", "reversed", "float32"])
def test_other_layouts(name: str, view: str) -> None:
    function, arguments = PROGRAMS[name]

    def seen(a: Any) -> Any:
        if not isinstance(a, np.ndarray) or a.dtype != float:
            return a
        if view == "fortran":
            return np.asfortranarray(a)
        if view == "float32":
            return a.astype(np.float32)
        if view == "reversed":
            return a[tuple(slice(None, None, -1) for _ in a.shape)].copy()[
                tuple(slice(None, None, -1) for _ in a.shape)
            ]
        return np.repeat(np.repeat(a, 2, 0), 3, -1)[::2, ::3] if a.ndim == 2 else np.repeat(a, 3)[::3]

    jitted = jg.jit(function)
    for n in (5, 37):
        given = arguments(n)
        ours, theirs = tuple(map(seen, copied(given))), tuple(map(seen, copied(given)))
        found, expected = jitted(*ours), function(*theirs)
        assert found is None or same_bits(found, expected)
        assert same_bits(ours, theirs)


@pytest.mark.parametrize("name", ["lu", "cholesky", "solve", "solve by columns", "gram_schmidt", "spmv", "durbin"])
def test_loops_are_sound(name: str) -> None:
    """The program that the passes leave is verified, and its interpretation has NumPy's bits."""
    if not dot_core.core():
        pytest.skip("BLAS's order is not known")
    function, arguments = PROGRAMS[name]
    jitted = jg.jit(function)
    given = arguments(21)
    ours, theirs = copied(given), copied(given)
    jitted(*copied(given))
    specialisation = serving(jitted, list(ours))
    assert specialisation is not None
    outcome = Levels(specialisation).outcome("schedule", list(ours))  # verifies the program
    assert outcome is not None
    assert outcome.error is None, outcome.error
    expected = function(*theirs)
    assert expected is None or same_bits(outcome.results, expected)
    assert same_bits(ours, theirs)


# --- what becomes of the loops --------------------------------------------------------------------------------------


def hot_loops(function: Callable[..., Any], *arguments: Any) -> str:
    """The text of the loops that run where no test in front fails, names in order of appearance."""
    text = jg.jit(function).inspect_ir(*arguments, stage="loops")
    lines = text[text.index("program") :].split("\n")
    start = next(k for k, line in enumerate(lines) if re.match(r"\s+for ", line))
    indent = len(lines[start]) - len(lines[start].lstrip())
    kept = []
    for line in lines[start:]:
        if len(line) - len(line.lstrip()) < indent:
            break
        kept.append(line[indent:])
    names: dict[str, str] = {}

    def short(m: re.Match[str]) -> str:
        kind = "v" if m[0][0] in "vw" else "_i" if m[0][0] == "_" else "sums"
        return names.setdefault(m[0], f"{kind}{len(names) + 1}")

    return re.sub(r"\bsums\.w\d+\b|\b_[wi]\d+\b|\b[vw]\d+\b", short, "\n".join(kept))


def pairs(a: np.ndarray, b: np.ndarray) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            b[i, j] = a[i] @ a[j]


def triangle(A: np.ndarray) -> None:
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = 1.0 - A[i, :j] @ A[:j, j]


@pytest.mark.usefixtures("whole_loops")
@pytest.mark.parametrize("core", ["skylakex"], indirect=True)
def test_rows_side_by_side_share_loads(core: str) -> None:
    del core
    text = hot_loops(pairs, RNG.normal(size=(5, 6)), RNG.normal(size=(5, 5)))
    expected = """\
for _i1 in range(0, 4*floordiv(n, 4), 4) {
  for j in range(0, _i1) {
    reduce _i2 in range(m) (v3: f64 = dot skylakex of v4, v5; v6: f64 = dot skylakex of v7, v5; \
v8: f64 = dot skylakex of v9, v5; v10: f64 = dot skylakex of v11, v5) {
      v4: f64 = load a[_i1, _i2]
      v5: f64 = load a[j, _i2]
      v7: f64 = load a[_i1 + 1, _i2]
      v9: f64 = load a[_i1 + 2, _i2]
      v11: f64 = load a[_i1 + 3, _i2]
    }
"""
    assert text.startswith(expected)


@pytest.mark.parametrize("core", ["skylakex"], indirect=True)
def test_triangle_adds_over_lanes(core: str) -> None:
    del core
    text = hot_loops(triangle, matrix(9))
    later = text[text.index("vector", text.index("range(3)")) :]
    loads = re.findall(r"load (.*)", later[: later.index("}")])
    assert [re.sub(r"_i\d+", "_", x) for x in loads] == [
        "A[i, _]", "A[_, _]", "A[i, _ + 1]", "A[_ + 1, _]", "A[i, _ + 2]", "A[_ + 2, _]", "A[i, _ + 3]",
        "A[_ + 3, _]", "sums1[_]", "sums2[_]",
    ]  # fmt: skip
    assert "cblas" not in text


@pytest.mark.parametrize("core", ["skylakex"], indirect=True)
def test_recurrence_multiplies_four_rows_at_once(core: str) -> None:
    del core
    text = hot_loops(solve, matrix(9), RNG.normal(size=9))
    head = text[: text.index("load b")]
    assert re.findall(r"reduce _\w+ in range\((.*?)\) \(", head) == [
        "16*floordiv(_i1, 16)",
        "_i1 - 16*floordiv(_i1, 16)",
    ]
    assert [len(re.findall(" dot ", line)) for line in head.split("\n") if "reduce" in line] == [4, 4]
    # where the loop writes what another row of the product reads, turns go one by one
    assert " + 1, " not in hot_loops(written_rows, matrix(9))


def written_rows(L: np.ndarray) -> None:
    for i in range(L.shape[0]):
        L[i, 0] = L[i, :i] @ L[:i, 0].copy()


@pytest.mark.parametrize("core", ["skylakex"], indirect=True)
def test_gather_goes_into_the_product(core: str) -> None:
    del core
    text = hot_loops(spmv, *sparse(5))
    hot, rare = text[: text.index("alloc")], text[text.index("alloc") :]
    assert re.search(r"reduce .* \(v\d+: bool = free all of v\d+, init true; v\d+: f64 = dot skylakex of", hot)
    assert "cold" in hot  # with the allocation for a call of BLAS, which long rows still are
    assert "dot skylakex" not in rare.split("else")[0]
    assert hot.count("} merge (") == 5  # four bounds of slices, each itself where it is within, and the product


def test_indices_from_the_end_and_errors_of_a_gather() -> None:
    jitted = jg.jit(spmv)
    starts, cols, values, x = sparse(30)
    cols[5:9] = -1
    assert jitted(starts, cols, values, x).tobytes() == spmv(starts, cols, values, x).tobytes()
    for wrong in (30, -31, 2**62, -(2**63)):
        bad = cols.copy()
        bad[-1] = wrong
        with pytest.raises(IndexError) as ours:
            jitted(starts, bad, values, x)
        with pytest.raises(IndexError) as theirs:
            spmv(starts, bad, values, x)
        assert str(ours.value) == str(theirs.value)
    with pytest.raises(ValueError, match="size"):
        jitted(starts, cols, values[:-1], x)
    with pytest.raises(IndexError):
        jitted(starts, cols, values, x[:0])


@pytest.mark.usefixtures("whole_loops")
@pytest.mark.parametrize("name", ["lu", "gram_schmidt"])
def test_turns_with_products_run_over_lanes(name: str) -> None:
    if not dot_core.core():
        pytest.skip("BLAS's order is not known")
    function, arguments = PROGRAMS[name]
    text = hot_loops(function, *arguments(9))
    assert re.search(r"for j\w* in range\((i|k \+ 1), \w+\) vector \{(\n.*)?\n\s+reduce", text)


def test_products_beyond_the_largest_number_are_infinite():
    from jitgraph.codegen.dots import fma

    assert [fma(1e200, 1e200, 1.0), fma(-1e200, 1e200, 1.0)] == [float("inf"), float("-inf")]
    assert fma(1e200, 1e200, float("-inf")) == float("-inf")
