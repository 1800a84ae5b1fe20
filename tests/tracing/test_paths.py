"""Assumptions, kinds that depend on the path, places: what the traces and graphs are."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errors
from jitgraph.tracing import capture
from tests.tracing.harness import Jit, check

V = np.arange(-3.0, 4.0)


def ops(graph):
    return [op.name for op in graph.walk()]


def test_a_merged_float_is_a_value_and_a_bool():
    def f(x, c):
        return x[0] if c > 0 else 0.5

    graph = Jit(f).trace(V, 1.0).graph
    value, flag = graph.body.terminator.operands
    assert str(value.type) == "np.f64"
    assert str(flag.type) == "py_bool"


def test_no_bool_where_the_kinds_are_the_same():
    def f(x, c):
        return x[0] if c > 0 else x[1]

    graph = Jit(f).trace(V, 1.0).graph
    assert len(graph.body.terminator.operands) == 1


def test_a_branch_that_fits_no_graph_is_assumed():
    def f(x):
        return None if x[0] > 0 else x

    made = Jit(f).trace(V)
    assert made.path == (False,)  # as in this call
    assert Jit(f).trace(-V).path == (True,)
    (site,) = [s for s in made.graph.sites if s.error == "deoptimise"]
    assert site.message == "assumption 0"
    assert "cond" not in ops(made.graph)
    assert Jit(f).trace(V, path=(False,)).path == (False,)


def grows(rng, n, limit):
    found = []
    w = rng.random(n)
    for _ in range(5):
        total = w.sum()
        if total == 0:
            break
        if total > limit:
            found.append(total)
        w = w * rng.random(n)
    return found


@pytest.mark.parametrize("limit", [0.0, 1000.0])
def test_what_nobody_can_foresee_is_guessed(limit):
    """Floats are rarely equal, and a loop that is traced turn by turn goes on as it began."""
    f = jg.jit(grows)
    assert f(np.random.default_rng(1), 9, limit) == grows(np.random.default_rng(1), 9, limit)
    assert f.cache_info().compiles <= 3


def first_above(x, n):
    s = 0
    for i in range(n):
        for v in x:
            s += v
            if s > 1:
                return s, i, "hit"
        if s < -1:
            break
    else:
        return s, n, "done"
    return s, i, None


def test_answers_of_a_trace_are_not_those_to_the_questions_of_another_one():
    f = jg.jit(first_above)
    calls = [(np.full(5, -2.0), 3), (np.array([-0.7]), 1), (np.full(5, -2.0), 3), (np.array([-0.7]), 1)]
    for x, n in calls:
        assert f(x, n) == first_above(x, n)
    assert f.cache_info().entries <= 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.array([-0.7]), 1)


def test_each_way_is_compiled_once():
    @jg.jit
    def f(x):
        return None if x[0] > 0 else x + 1

    for _ in range(3):
        np.testing.assert_array_equal(f(V), V + 1)
        assert f(-V) is None
    assert f.cache_info().entries == 2


def test_the_number_of_ways_is_bounded():
    @jg.jit
    def f(x):
        return [k for k in range(6) if bool_of(x, k)]

    def bool_of(x, k):
        return x[k] > 0

    r = np.random.default_rng(0)
    inputs = r.standard_normal((60, 6))
    with pytest.warns(
        UserWarning, match=r"where data take another way than \d+ that are compiled\n  test_paths.py:"
    ) as seen:
        for x in inputs:
            assert f(x) == [k for k in range(6) if x[k] > 0]
    assert len(seen) == 1
    assert f.cache_info().entries <= 12


def test_the_way_of_the_call_is_traced_first():
    @jg.jit
    def f(x, names):
        scale = x.sum() / len(x)
        return [name for name, k in names if x[k] > scale]

    names = tuple((f"n{k}", k) for k in range(7))
    assert f(V, names) == ["n4", "n5", "n6"]
    assert f.cache_info().entries == 1
    assert f(-V, names) == ["n0", "n1", "n2"]
    assert f.cache_info().entries == 2


def test_where_each_call_takes_another_way_all_of_them_are_pythons():
    """Six ways that no call comes back to, then calls that Python serves: the traces go."""

    @jg.jit
    def f(x):
        return [k for k in range(9) if x[k] > 0]

    inputs = [np.array([(n >> k & 1) - 0.5 for k in range(9)]) for n in range(1, 40)]
    with pytest.warns(UserWarning, match="where data take another way than 6 that are compiled") as seen:
        for x in inputs:
            assert f(x) == [k for k in range(9) if x[k] > 0]
    assert len(seen) == 1
    assert f.cache_info().entries == 1
    assert f.cache_info().misses < 20


def test_ways_that_calls_come_back_to_stay():
    @jg.jit
    def f(x):
        return [k for k in range(9) if x[k] > 0]

    usual, rare = [[np.array([(n >> k & 1) - 0.5 for k in range(9)]) for n in ns] for ns in (range(1, 5), range(9, 30))]
    with pytest.warns(UserWarning, match="another way than 12"):
        for x in rare:
            for y in usual:
                f(y)
            f(x)
    assert f.cache_info().entries == 12


def test_what_depends_on_a_search_through_many_items_is_left_to_python_at_once():
    @jg.jit
    def f(x):
        return [k for k in range(len(x)) if x[k] > 0]

    x = np.ones(100)
    with pytest.warns(UserWarning, match="depends on data, and so did 64 before it"):
        f(x)
    assert f.cache_info().entries == 1


def test_a_warning_names_a_line_once():
    @jg.jit
    def f(x):
        return f"{x.mean():.2f}"

    with pytest.warns(UserWarning, match="runs in plain Python") as seen:
        for x in (V, V.astype(np.float32), V.astype(int), V[None], 2.0 * V[:1]):
            assert f(x) == f"{x.mean():.2f}"
    assert len(seen) == 1
    assert "test_paths.py" in str(seen[0].message)
    assert seen[0].filename.endswith("test_paths.py")


@pytest.mark.parametrize("large", [False, True])
def test_a_guess_costs_no_more_than_it_is_worth(large):
    """A bool behind a loop, a call back or large arrays is not foreseen: the first trace takes it for true."""

    def f(x, n):
        s = 0.0
        for i in range(n):
            s = s * 0.5 + x[i]
        if large:
            s = np.cos(x).sum()
        return None if s > 100 else x

    x = np.ones(200_000 if large else 9)
    assert Jit(f).trace(x, 9).path == (True,)
    assert jg.jit(f)(x, 9) is f(x, 9) or large


def test_an_error_behind_a_store_is_left_to_python():
    class Counter:
        n = 0

    c = Counter()

    def f(x):
        c.n += 1
        if x[0] > 0:
            raise ValueError("positive")
        return x

    made = Jit(f).trace(V)
    assert {s.error for s in made.graph.sites} >= {"deoptimise"}
    checks = [op for op in made.graph.body.ops() if op.name == "check"]
    assert all(made.graph.sites[op.attrs["site"]].error == "deoptimise" for op in checks)


def test_objects_are_not_kept_alive():
    class Layer:
        def __init__(self, w):
            self.w = w

    @jg.jit
    def f(layer, x):
        return layer.w * x

    layer = Layer(V)
    f(layer, V)
    known = weakref.ref(layer)
    del layer
    gc.collect()
    assert known() is None


def test_guards_are_few():
    class Layer:
        def __init__(self, w):
            self.w = w

        def __call__(self, x):
            return self.w * x

    made = Jit(lambda layer, x: layer(x)).trace(Layer(V), V)
    assert [str(g) for g in made.guards_python] == ["Layer.__call__ is as it was"]


@pytest.mark.parametrize("value", [1.0, 2.5])
def test_draws_are_undone_when_a_call_goes_another_way(value):
    @jg.jit
    def f(rng, x):
        u = rng.random()
        return None if x[0] > u * 0 else u

    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    for x in (V, -V, V, -V):
        expected = same.random()
        got = f(rng, x * value)
        assert got is None if x[0] > 0 else got == expected


def test_a_branch_that_fits_no_graph_is_settled_for_all_turns(monkeypatch):
    monkeypatch.setattr(capture, "_RESTARTS", 8)  # not one for each turn

    def f(x):
        total = 0.0
        for k in range(x.shape[0]):
            v = 1
            for _ in range(4):
                if np.sum(x) > k:
                    v = np.cumsum(x)
                v = v + x[k]
            total = total + np.sum(v)
        return total

    check(f, (np.arange(4.0) + 3,), (np.arange(3.0) + 3,), traces=None)


def test_too_many_branches_that_fit_no_graph_are_refused(monkeypatch):
    monkeypatch.setattr(capture, "_RESTARTS", 2)

    def f(x):
        for k in range(x.shape[0]):
            v = 1
            if np.sum(x) > k:
                v = np.cumsum(x)
            if np.sum(x) > k + 1:
                v = v > 3
            if np.sum(x) > k + 2:
                v = str(v)
        return v

    with pytest.raises(errors.TraceError):
        Jit(f)(np.arange(4.0) + 3)


@pytest.mark.parametrize(
    "operation",
    [
        lambda v: v << 1,
        lambda v: -v,
        lambda v: v < 3,
        lambda v: v**2,
        lambda v: abs(v),
        lambda v: float(v),
        lambda v: int(v),
        lambda v: round(v),
        lambda v: divmod(v, 2),
        lambda v: pow(v, 2),
        lambda v: max(v, 3),
        lambda v: sorted([v, 3]),
        lambda v: v.shape,
        lambda v: v["a"],
        lambda v: v(),
    ],
)
def test_what_python_refuses_on_one_way_only(operation):
    def f(x):
        v = x[0] * 1.5
        if np.sum(x) < 0:
            v = [1, v]
        operation(v)
        return v

    def outcome(call, x):
        try:
            call(x)
        except (TypeError, AttributeError, IndexError) as error:
            return error
        return None

    for order in ((V + 1, V - 9), (V - 9, V + 1)):
        jitted = jg.jit(f)
        for x in order:
            expected, found = outcome(f, x), outcome(jitted, x)
            assert found is None if expected is None else isinstance(found, type(expected))
