"""State outside of the arguments: globals, closures, attributes, containers; what is replayed, guarded, refused."""

import threading

import numpy as np
import pytest

from jitgraph import errors
from jitgraph.ir import builder
from jitgraph.tensor import Tensor, current_mode
from tests.tracing.harness import Jit

V, W = np.arange(7.0) - 3, np.arange(7.0) * 0.5

ARRAY = np.arange(7.0)
SCALE = 2.0
COUNT = 0
LAST = None
TABLE = {"w": np.ones(7), "lr": 0.5, "name": "a"}
WEIGHTS = [np.ones(7), np.zeros(7)]
CELLS = [0, 0]


class Settings:
    rate = 0.25
    calls = 0


def test_a_global_array_is_read_at_call_time_and_written():
    def f(x):
        ARRAY[0] = x[0]
        return x + ARRAY

    f_ = Jit(f)
    ARRAY[:] = 1.0
    np.testing.assert_array_equal(f_(V), V + np.where(np.arange(7) == 0, V[0], 1.0))
    assert ARRAY[0] == V[0]
    ARRAY[3] = 50.0
    assert f_(W)[3] == W[3] + 50
    assert f_.count == 1


def test_a_global_array_of_another_type_retraces():
    global ARRAY
    f_ = Jit(lambda x: x + ARRAY)
    f_(V)
    before, ARRAY = ARRAY, np.ones(7, "f4")
    f_(V)
    ARRAY = before
    f_(V)
    assert f_.count == 2


def test_a_global_number_is_guarded():
    global SCALE
    f_ = Jit(lambda x: x * SCALE)
    np.testing.assert_array_equal(f_(V), V * 2.0)
    SCALE = 3.0
    np.testing.assert_array_equal(f_(V), V * 3.0)
    SCALE = 2.0
    np.testing.assert_array_equal(f_(V), V * 2.0)
    assert f_.count == 2


def test_a_global_counter_is_replayed():
    global COUNT

    def f(x):
        global COUNT
        COUNT += 1
        return x * COUNT

    f_ = Jit(f)
    COUNT = 0
    for k in range(1, 5):
        np.testing.assert_array_equal(f_(V), V * k)
        assert k == COUNT
    assert f_.count == 1


def test_a_traced_value_stored_in_a_global_is_replayed():
    def f(x):
        global LAST
        LAST = x * 2
        return x.sum()

    f_ = Jit(f)
    f_(V)
    np.testing.assert_array_equal(LAST, V * 2)
    f_(W)
    np.testing.assert_array_equal(LAST, W * 2)
    assert type(LAST) is np.ndarray


def test_closure_cells_are_read_and_written():
    total, w = 0.0, np.ones(7)

    def f(x):
        nonlocal total
        total = total + (x * w).sum()
        return total

    f_ = Jit(f)
    f_(V)
    w[0] = 5.0
    f_(W)
    expected = V.sum() + (W * w).sum()
    assert total == expected
    assert f_.count <= 2


def test_dicts_and_lists_from_outside():
    def f(x):
        y = x * TABLE["lr"] + TABLE["w"]
        return sum(w * y for w in WEIGHTS) if TABLE["name"] == "a" else y

    f_ = Jit(f)
    np.testing.assert_array_equal(f_(V), V * 0.5 + 1)
    TABLE["lr"] = 0.25
    TABLE["w"] = np.full(7, 2.0)
    WEIGHTS[0] = np.full(7, 3.0)
    np.testing.assert_array_equal(f_(V), 3 * (V * 0.25 + 2))
    assert f_.count == 1
    TABLE["name"] = "b"
    np.testing.assert_array_equal(f_(V), V * 0.25 + 2)
    TABLE["name"] = "a"
    WEIGHTS[0] = np.ones(7)
    assert f_.count == 2


def test_a_store_to_a_container_from_outside():
    def f(x):
        CELLS[0] += 1
        TABLE["last"] = x.sum()
        return x + CELLS[0]

    f_ = Jit(f)
    CELLS[0] = 0
    for k in (1, 2, 3):
        np.testing.assert_array_equal(f_(V * k), V * k + k)
        assert CELLS[0] == k
        assert TABLE["last"] == (V * k).sum()
    del TABLE["last"]


def test_class_attributes():
    def f(x):
        Settings.calls += 1
        return x * Settings.rate

    f_ = Jit(f)
    Settings.calls, Settings.rate = 0, 0.25
    f_(V)
    Settings.rate = 0.5
    np.testing.assert_array_equal(f_(V), V * 0.5)
    assert Settings.calls == 2
    assert f_.count == 1


def test_a_list_outside_that_grows():
    log = []

    def f(x):
        log.append(x.sum())
        return x

    compiled = Jit(f)
    compiled(V)
    compiled(V)
    assert log == [V.sum(), V.sum()]


def test_an_argument_list_that_changes():
    def f(xs):
        xs.append(xs[0])
        return xs[0]

    xs = [V]
    Jit(f)(xs)
    assert len(xs) == 2
    assert xs[1] is V


def test_defaults_with_arrays():
    def f(x, w=np.ones(7)):  # noqa: B008
        return x + w

    f_ = Jit(f)
    np.testing.assert_array_equal(f_(V), V + 1)
    f.__defaults__[0][0] = 9
    assert f_(V)[0] == V[0] + 9


def test_an_argument_that_is_also_a_global():
    def f(x):
        x[0] = 1.0
        return x + ARRAY

    f_ = Jit(f)
    got = f_(ARRAY)
    np.testing.assert_array_equal(got, 2 * ARRAY)
    other = np.zeros(7)
    np.testing.assert_array_equal(f_(other), other + ARRAY)
    assert f_.count == 2


def test_a_failed_trace_leaves_nothing_behind():
    def f(x):
        global COUNT
        COUNT = "changed"
        ARRAY[1] = 77.0
        raise KeyError("stop")

    before, kept = COUNT, ARRAY.copy()
    with pytest.raises(KeyError):
        Jit(f)(V)
    assert before == COUNT
    np.testing.assert_array_equal(ARRAY, kept)
    assert current_mode() is None
    assert builder.current() is None


def test_a_tracer_that_survives_says_so():
    def f(x):
        return np.array2string(x)

    with pytest.raises(errors.TraceError) as caught:
        Jit(f)(V)
    tb = caught.value.__traceback__
    while "x" not in tb.tb_frame.f_locals or type(tb.tb_frame.f_locals["x"]) is not Tensor:
        tb = tb.tb_next
    with pytest.raises(errors.TraceError, match="a traced value is used after its trace has ended"):
        tb.tb_frame.f_locals["x"] + 1


def test_threads_trace_independently():
    results = {}

    def work(k):
        f = Jit(lambda x: (x * k).sum() + np.exp(x)[0])
        for _ in range(5):
            results[k] = f(V)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(6):
        assert results[k] == (V * k).sum() + np.exp(V)[0]


def test_an_array_made_while_tracing_is_fresh_at_each_call():
    def f(x):
        a = np.ones(3)
        a[0] = x[0]
        return a

    f_ = Jit(f)
    first, second = f_(V), f_(W)
    assert first is not second
    np.testing.assert_array_equal(first, [V[0], 1, 1])
    np.testing.assert_array_equal(second, [W[0], 1, 1])


def test_static_numpy_results_are_constants():
    nodes = Jit(lambda x: x * np.polynomial.legendre.leggauss(7)[0])
    np.testing.assert_array_equal(nodes(V), V * np.polynomial.legendre.leggauss(7)[0])


def test_an_eager_tensor_from_outside():
    t = Tensor(np.ones(7))
    f = Jit(lambda x: x + t)
    np.testing.assert_array_equal(np.asarray(f(V)), V + 1)


class Holder:
    def __init__(self, value):
        self.value = value


def test_a_type_that_only_python_looks_at_is_guarded():
    holder = Holder(1.0)

    def f(x):
        return x + (1.0 if isinstance(holder.value, float) else 2.0)

    f_ = Jit(f)
    np.testing.assert_array_equal(f_(V), V + 1)
    (made,) = next(iter(f_.traces.values()))
    assert made.hidden == []
    assert [str(g) for g in made.guards_python if "value" in str(g)] == ["holder.value is py_float"]
    holder.value = 2.5
    f_(V)
    assert f_.count == 1
    holder.value = np.ones(3)
    np.testing.assert_array_equal(f_(V), V + 2)
    assert f_.count == 2


def test_containers_of_one_class_stay_apart():
    def f(x, a, b):
        a.append(1.0)
        return x * len(b)

    f_ = Jit(f)
    np.testing.assert_array_equal(f_(V, [1.0], [2.0]), V)
    assert [str(g) for g in next(iter(f_.traces.values()))[0].guards_python] == ["a, b are different objects"]
    one = [1.0]
    np.testing.assert_array_equal(f_(V, one, one), V * 2)
    f_(V, [3.0], [4.0])
    assert f_.count == 2


def test_what_is_found_to_be_two_arrays_stays_so():
    first, second = Holder(np.ones(7)), Holder(np.zeros(7))

    def f(x):
        return x + (1.0 if first.value is second.value else 2.0)

    f_ = Jit(f)
    np.testing.assert_array_equal(f_(V), V + 2)
    first.value = second.value
    np.testing.assert_array_equal(f_(V), V + 1)
    second.value = np.ones(7)
    np.testing.assert_array_equal(f_(V), V + 2)
    assert f_.count == 2
