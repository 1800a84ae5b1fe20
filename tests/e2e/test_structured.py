"""`jg.cond, switch, while_loop, fori_loop, scan, map, associative_scan`: eager, compiled, and against plain Python."""

from __future__ import annotations

import copy
import dataclasses
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import pytree
from jitgraph.errors import ShapeError, StateTypeError

RNG = np.random.default_rng(5)
ROWS = RNG.random((20, 3)) + 0.5


@dataclasses.dataclass
class Body:
    place: Any
    parts: Any


class Two(NamedTuple):
    a: Any
    b: Any


def assert_same(a: Any, b: Any) -> None:
    leaves_a, tree_a = pytree.flatten(a)
    leaves_b, tree_b = pytree.flatten(b)
    assert tree_a == tree_b
    for x, y in zip(leaves_a, leaves_b, strict=True):
        assert type(x) is type(y)
        assert np.shape(x) == np.shape(y)
        assert getattr(x, "dtype", None) == getattr(y, "dtype", None)
        assert np.array_equal(x, y, equal_nan=True)


def both(f: Callable[..., Any], *args: Any) -> Any:
    """The eager result, which the compiled one is equal to; both leave the arguments alike."""
    first, second = copy.deepcopy(args), copy.deepcopy(args)
    eager = f(*first)
    assert_same(jg.jit(f)(*second), eager)
    assert_same(second, first)
    return eager


def scanned(f: Any, init: Any, xs: Any, count: int, reverse: bool = False) -> Any:
    """What `scan` means, with a list."""
    state, rows = init, [None] * count
    for k in reversed(range(count)) if reverse else range(count):
        state, rows[k] = f(state, None if xs is None else pytree_row(xs, k))
    leaves = [pytree.flatten(row)[0] for row in rows]
    return state, pytree.unflatten(pytree.flatten(rows[0])[1], [np.stack(part) for part in zip(*leaves, strict=True)])


def pytree_row(xs: Any, k: int) -> Any:
    leaves, tree = pytree.flatten(xs)
    return pytree.unflatten(tree, [x[k] for x in leaves])


# --- branches


@pytest.mark.parametrize("a", [-1.5, 2.0])
def test_cond_runs_one_side(a: float) -> None:
    def f(a, v):
        return jg.cond(a > 0, lambda x: {"y": np.sqrt(x), "n": 1}, lambda x: {"y": -x, "n": 2}, v)

    wanted = {"y": np.sqrt(ROWS), "n": 1} if a > 0 else {"y": -ROWS, "n": 2}
    assert_same(both(f, a, ROWS), wanted)
    assert_same(both(f, np.float64(a), ROWS), wanted)


def test_cond_on_a_static_test_traces_one_side() -> None:
    @jg.jit
    def f(x):
        return jg.cond(x.ndim == 2, lambda: x.T, lambda: "no array")

    assert_same(f(ROWS), ROWS.T)


def test_switch_clamps_its_index() -> None:
    branches = [np.sqrt, lambda x: x * 2.0, lambda x: x.sum() + x]
    f = jg.jit(lambda k, x: jg.switch(k, branches, x))
    for k in (-7, 0, 1, 2, 9):
        wanted = branches[min(max(k, 0), 2)](ROWS)
        for index in (k, np.int8(k), np.array(k)):
            assert_same(f(index, ROWS), wanted)
            assert_same(jg.switch(index, branches, ROWS), wanted)
    assert f.cache_info().compiles == 3


def test_switch_is_one_operator() -> None:
    f = jg.jit(lambda k, x: jg.switch(k, [np.sqrt, lambda v: v @ v, lambda v: v + 1.0, np.negative], x))
    x = np.ones((3, 3))
    assert "switch %" in f.inspect_ir(1, x)
    assert "cases = [0, 1, 2]" in f.inspect_ir(1, x)
    assert "switch i64" in f.inspect_llvm(1, x)


def test_switch_of_one_branch_and_of_scalars() -> None:
    both(lambda k, x: jg.switch(k, [lambda v: v + 1], x), 4, ROWS)
    f = jg.jit(lambda k, x: jg.switch(k, [lambda v: v + 1, lambda v: v * v, lambda v: v // 2], x))
    assert [f(k, 7) for k in range(3)] == [8, 49, 3]
    with pytest.raises(ValueError, match="no branches"):
        jg.switch(0, [])
    for f in (lambda k: jg.switch(k, [abs, abs], 1), jg.jit(lambda k: jg.switch(k, [abs, abs], 1))):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            f(0.5)


def test_branches_may_write_and_raise() -> None:
    def first(x):
        x[0] = 5.0
        return x.sum()

    def second(x):
        if x[1] > 1.0:
            raise ValueError(f"{x[1]} is too much")
        x[1] += 1.0
        return x.sum()

    def f(k, x):
        return jg.switch(k, [first, second, lambda x: x.sum()], x)

    compiled = jg.jit(f)
    for k in range(3):
        x, y = np.zeros(3), np.zeros(3)
        assert f(k, x) == compiled(k, y)
        assert (x == y).all()
    for g in (f, compiled):
        with pytest.raises(ValueError, match=r"2\.0 is too much"):
            g(1, np.array([0.0, 2.0]))


def test_branches_of_different_types() -> None:
    def ones():
        return {"a": (1.0, np.ones(3))}

    def twos():
        return {"a": (1.0, np.ones(4))}

    with pytest.raises(StateTypeError) as info:
        jg.jit(lambda a: jg.cond(a > 0, ones, twos))(1)
    text = str(info.value)
    assert text.startswith("cond: the branches answer different types: result['a'][1] is f64[3] from ones and f64[4]")
    assert "ones is defined at test_structured.py" in text
    assert "jg.cond(a > 0, ones, twos)" in text
    with pytest.raises(StateTypeError, match=r"switch: .* result is np.f32 from <lambda> and np.f64 from <lambda>"):
        jg.jit(lambda k: jg.switch(k, [lambda: np.float32(1), lambda: np.float64(1), lambda: np.float32(2)]))(1)
    with pytest.raises(StateTypeError, match=r"result is \(\*, \*\) from <lambda> and None"):
        jg.jit(lambda k: jg.cond(k > 1, lambda: (1, 2), lambda: None))(1)


# --- loops


@pytest.mark.parametrize("n", [0, 3, 20])
def test_fori_loop(n: int) -> None:
    def f(n, xs):
        return jg.fori_loop(2, n, lambda i, c: (c[1] * 0.5, c[0] + xs[i], c[2] + i), (np.zeros(3), np.ones(3), 0))

    u, v, k = np.zeros(3), np.ones(3), 0
    for i in range(2, n):
        u, v, k = v * 0.5, u + ROWS[i], k + i
    assert_same(both(f, n, ROWS), (u, v, k))


def test_while_loop_newton() -> None:
    def f(a):
        return jg.while_loop(
            lambda s: abs(s.a * s.a - a) > 1e-12, lambda s: Two(0.5 * (s.a + a / s.a), s.b + 1), Two(a, 0)
        )

    root, turns = both(f, np.float64(2.0))
    assert abs(root - 2**0.5) < 1e-12
    assert turns == 5
    both(f, 1.0)  # without a turn


def test_states_of_all_kinds() -> None:
    def f(xs, n):
        def turn(i, s):
            parts = {"k": s.parts["k"] + 1, "none": None, "on": not s.parts["on"], "z": s.parts["z"] * 1j}
            return Body(s.place + xs[i % 20], parts)

        return jg.fori_loop(0, n, turn, Body(np.zeros(3), {"k": 0, "none": None, "on": True, "z": 1j}))

    both(f, ROWS, 21)


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("n", [0, 1, 20])
def test_numbers_of_python_become_numpys(dtype: Any, n: int) -> None:
    xs = np.arange(n).astype(dtype)
    state, rows = both(lambda xs: jg.scan(lambda c, x: (c + x, c), 0, xs), xs)
    if n > 1:
        assert type(state) is dtype
        assert rows.dtype == dtype


def test_the_state_belongs_to_the_loop() -> None:
    def f(a, n):
        def turn(i, s):
            s["a"][0] += i
            return s

        return jg.fori_loop(0, n, turn, {"a": a})

    for n in (0, 3, 20):
        a = np.ones(3)
        result = both(f, a, n)
        assert result["a"] is not a
        assert (a == 1.0).all()


def test_parts_of_the_state_change_places() -> None:
    both(lambda xs: jg.fori_loop(0, xs.shape[0], lambda i, c: (c[1], c[0] + xs[i]), (np.zeros(3), np.ones(3))), ROWS)
    both(lambda xs: jg.fori_loop(0, xs.shape[0], lambda i, c: [c[1], c[0]], [xs[0], xs[1]]), ROWS[:7])


def test_rows_become_the_state() -> None:
    def step(c, x):
        c[0][0] = 5.0
        return (x, c[0]), x - c[1]

    (last, before), _ = both(lambda xs: jg.scan(step, (xs[0], xs[1]), xs), ROWS)
    assert (last == ROWS[-1]).all()
    assert before[0] == 5.0


# --- scan and map


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [2, 20])
def test_scan_is_a_loop_over_rows(n: int, reverse: bool) -> None:
    def step(c, x):
        c = c * 0.5 + x["v"]
        return c, Two(c, {"s": c.sum(), "k": x["k"] * 2, "one": 1})

    xs = {"v": ROWS[:n], "k": np.arange(n, dtype=np.int32)}
    found = both(lambda xs: jg.scan(step, np.zeros(3), xs, reverse=reverse), xs)
    assert_same(found, scanned(step, np.zeros(3), xs, n, reverse))


def test_scan_lowers_to_one_loop_that_writes_in_place() -> None:
    f = jg.jit(lambda xs: jg.scan(lambda c, x: (c * 0.5 + x, {"a": c, "s": x.sum()}), np.zeros(3), xs))
    text = f.inspect_ir(ROWS)
    assert text.count(" for ") == 1
    assert text.count("while") == 0
    assert f.explain(ROWS).copies == []
    assert text.count("concatenate") == 0
    same = f.inspect_ir(ROWS[:9])
    assert same.count(" for ") == 1


def test_scan_of_no_rows_knows_its_types() -> None:
    def f(xs):
        return jg.scan(lambda c, x: (c + x.sum(), (c, x * 2, {"i": 1})), 0.0, xs)

    state, (a, b, c) = both(f, ROWS[:0])
    assert state == 0.0
    assert (a.shape, b.shape, c["i"].dtype) == ((0,), (0, 3), np.int64)
    both(f, ROWS[:1])


def test_scan_without_xs_and_length() -> None:
    both(lambda n: jg.scan(lambda c, x: (c * 2 % 1000, (x, c)), 1, length=n), 20)
    both(lambda n: jg.scan(lambda c, x: (c * 2 % 1000, (x, c)), 1, length=n), 1)
    both(lambda x: jg.scan(lambda c, r: (c + r, None), np.zeros(3), x, length=x.shape[0]), ROWS)
    for f in (
        lambda xs, n: jg.scan(lambda c, x: (c, x), 0, xs, length=n),
        jg.jit(lambda xs, n: jg.scan(lambda c, x: (c, x), 0, xs, length=n)),
    ):
        with pytest.raises(ShapeError, match="length says 5, xs has 20 on its first axis"):
            f(ROWS, 5)
    with pytest.raises(ValueError, match="length= has to say"):
        jg.scan(lambda c, x: (c, x), 0)


def test_scans_in_scans() -> None:
    def f(xs):
        def row(c, r):
            total, running = jg.scan(lambda a, v: (a + v * c, a), 0.0, r)
            return c + total * 1e-3, (running, total)

        return jg.scan(row, 1.0, xs)

    both(f, RNG.random((12, 15)))


def test_states_are_written_in_place() -> None:
    def step(c, x):
        c[0] += x[0]
        c[1:] *= 0.5
        return c, c

    _, rows = both(lambda xs: jg.scan(step, np.ones(3), xs), ROWS)
    assert (rows[:, 1] == 0.5 ** np.arange(1, 21)).all()


def test_turns_may_raise() -> None:
    def f(xs):
        def step(c, x):
            if x > 2:
                raise ValueError(f"bad {x}")
            return c + x, c

        return jg.scan(step, 0.0, xs)

    both(f, np.array([1.0, 2.0, 0.0]))
    for g in (f, jg.jit(f)):
        with pytest.raises(ValueError, match=r"bad 3\.0"):
            g(np.array([1.0, 2.0, 3.0, 4.0]))


def test_map_stacks_what_it_answers() -> None:
    found = both(lambda xs: jg.map(lambda r: {"d": r @ r, "r": (r * 2, 3)}, xs), ROWS)
    assert_same(found["d"], np.array([r @ r for r in ROWS]))
    both(lambda a, b: jg.map(lambda t: t[0] * t[1].sum(), (a, b)), ROWS[:, 0].copy(), ROWS)
    both(lambda xs: jg.map(lambda r: r.sum(), xs), ROWS[:0])
    with pytest.raises(ShapeError, match=r"xs\[0\] has 20, xs\[1\] has 4 on its first axis"):
        jg.jit(lambda a, b: jg.map(lambda t: t[0], (a, b)))(ROWS, ROWS[:4])


# --- Python objects that turns and branches change


def test_items_and_variables_that_turns_change() -> None:
    def f(n):
        known, k = {"k": 0}, 0

        def turn(c, x):
            nonlocal k
            known["k"] += 2
            k = k + known["k"]
            return c + 1, k

        return jg.scan(turn, 0, length=n), known["k"], k

    both(f, 12)


def test_containers_that_change_their_length() -> None:
    def f(n):
        log = []

        def turn(c, x):
            log.append(c)
            return c + 1, c

        return jg.scan(turn, 0, length=n), len(log)

    assert both(f, 5)[1] == 5  # turn by turn
    with pytest.warns(UserWarning, match="f runs in plain Python: the list log is changed"):
        assert jg.jit(f)(100)[1] == 100

    def g(k):
        log = []
        return jg.switch(k, [lambda: 1, lambda: log.append(3) or 2, lambda: 3]), log

    for k in range(3):
        both(g, k)


def test_unrolled_turns() -> None:
    f = lambda xs: jg.scan(lambda c, x: (c + x, c), 0.0, xs, unroll=True)
    g = jg.jit(f, specialize="shape")
    for n in (0, 1, 5):
        assert_same(g(ROWS[:n, 0].copy()), f(ROWS[:n, 0].copy()))
    assert " for " not in g.inspect_ir(ROWS[:5, 0].copy())
    both(lambda: jg.scan(lambda c, x: (c + 1, c), 0, length=20, unroll=4))


# --- errors


BAD: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda n: jg.fori_loop(0, n, lambda i, c: {"p": [c["p"][0], c["p"][1][1:]]}, {"p": [1, np.ones(3)]}),
        "fori_loop: state['p'][1] changes its type: f64[3] at the start of a turn, f64[2] at its end",
    ),
    (
        lambda n: jg.while_loop(lambda c: c[0] < n, lambda c: c + 0.5, np.zeros(3, np.int64)),
        "while_loop: state changes its type: i64[3] at the start of a turn, f64[3] at its end",
    ),
    (
        lambda n: jg.scan(lambda c, x: ((c, c), x), 0.0, np.ones((20, 2))),
        "scan: state changes its type: py_float at the start of a turn, (*, *) at its end",
    ),
    (
        lambda n: jg.scan(lambda c, x: (Body(c.place, None), x), Body(0, {"a": 1}), np.ones(20)),
        "scan: state.parts changes its type: {'a': *} at the start of a turn, None at its end",
    ),
    (lambda n: jg.fori_loop(0, n, lambda i, c: c + 1, True), "fori_loop: state changes its type: py_bool at the start"),
    (
        lambda n: jg.fori_loop(0, n, lambda i, c: c + np.float64(1), np.float32(0)),
        "fori_loop: state changes its type: np.f32 at the start of a turn, np.f64 at its end",
    ),
    (lambda n: jg.scan(lambda c, x: c, 0, length=n), "scan: f answers py_int, not a pair"),
    (lambda n: jg.map(lambda x: "text", np.ones(n)), "map: a str cannot be stacked"),
    (lambda n: jg.map(abs, {"a": 3.0}), "map: xs['a'] has no axis to run along: it is py_float"),
    (
        lambda n: jg.associative_scan(lambda a, b: (a[0] + b[0], a[1][1:]), (np.ones(20), np.ones(20))),
        "associative_scan: elems[1] is f64[10], and fn answers f64[9]",
    ),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_errors_name_the_part_the_types_and_the_line(case: int) -> None:
    f, text = BAD[case]
    for g in (f, jg.jit(f)):
        with pytest.raises(StateTypeError) as info:
            g(20)
        first, second, *_ = str(info.value).split("\n")
        shown = first if case < 9 or g is f else text
        assert shown.startswith(text)
        assert isinstance(info.value, TypeError)
        assert "test_structured.py" in second
        assert "jg." in second


def test_rows_that_differ() -> None:
    f = lambda n: jg.scan(lambda c, x: (c + 1, np.zeros(9)[:c]), 1, length=n)
    for g in (f, jg.jit(f)):
        with pytest.raises(StateTypeError, match="scan: y, which is stacked, changes from turn to turn"):
            g(8)


# --- associative_scan


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_matrices(reverse: bool) -> None:
    for n in range(34):
        x = RNG.integers(-3, 4, (n, 2, 2))
        wanted = x.copy()
        for k in range(n - 2, -1, -1) if reverse else range(1, n):
            wanted[k] = wanted[k + 1 if reverse else k - 1] @ x[k]
        assert_same(jg.associative_scan(np.matmul, x, reverse=reverse), wanted)


@pytest.mark.parametrize("reverse", [False, True])
def test_compiled_associative_scan_of_any_size(reverse: bool) -> None:
    f = jg.jit(lambda x: jg.associative_scan(np.add, x, reverse=reverse))
    for n in (0, 1, 2, 3, 4, 5, 6, 7):
        x = np.arange(n) ** 2
        assert_same(f(x), np.cumsum(x[::-1])[::-1].copy() if reverse else np.cumsum(x))


def test_associative_scan_of_trees_along_an_axis() -> None:
    def fn(a, b):
        return {"m": a["m"] * b["m"], "c": a["c"] * b["m"] + b["c"]}

    m, c = RNG.integers(-1, 2, (2, 3, 40))
    found = both(lambda m, c: jg.associative_scan(fn, {"m": m, "c": c}, axis=1), m, c)
    total = np.zeros(3, np.int64)
    for k in range(40):
        total = total * m[:, k] + c[:, k]
        assert (found["c"][:, k] == total).all()


def test_associative_scan_takes_about_two_calls_a_level() -> None:
    calls = []

    def fn(a, b):
        calls.append(len(a))
        return a + b

    x = np.arange(200)
    assert (jg.associative_scan(fn, x) == np.cumsum(x)).all()
    assert len(calls) <= 2 * 7
    assert sum(calls) < 2 * 200
    f = jg.jit(lambda x: jg.associative_scan(np.add, x))
    x = x[:50]
    assert_same(f(x), np.cumsum(x))
    assert f.explain(x).copies == []
    assert_same(f(x[:49]), np.cumsum(x[:49]))
    assert f.cache_info().compiles == 1


def test_examples_of_the_docs(tmp_path, monkeypatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "control-flow.md").read_text()
    (tmp_path / "control_flow_examples.py").write_text(page.split("```python\n")[1].split("```")[0])
    monkeypatch.syspath_prepend(tmp_path)
    examples = importlib.import_module("control_flow_examples")
    a, b = ROWS[:, 0].copy(), ROWS[:, 1].copy()
    for f, *args in (
        (examples.smooth, ROWS, 0.9),
        (examples.root, 2.0),
        (examples.recurrence, a, b),
        (examples.activation, 1, ROWS),
    ):
        assert_same(f(*args), f.__wrapped__(*args))
    y = 0.0
    for p, q, r in zip(a, b, examples.recurrence(a, b), strict=True):
        y = p * y + q
        assert y == pytest.approx(r, rel=1e-12)
