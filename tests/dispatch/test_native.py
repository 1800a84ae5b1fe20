"""What native code serves, how often it goes back to Python, and what it leaves to Python."""

from __future__ import annotations

import collections
import gc
import sys
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from tests.dispatch.samples import Pair, Slotted
from tests.dispatch.test_arguments import same

X = np.arange(5.0)
FACTOR = 2.0
WEIGHTS = np.ones(5)


class Named(NamedTuple):
    w: Any
    b: Any


class Layer:
    def __init__(self):
        self.w = np.full(5, 3.0)
        self.rate = 0.5
        self.depth = 2

    @jg.jit
    def forward(self, x):
        return x * self.w * self.rate + self.depth

    @classmethod
    @jg.jit
    def made(cls, x):
        return x + 1

    @staticmethod
    @jg.jit
    def plain(x):
        return x + 2


@jg.jit
def add(x, y):
    return x * 2 + y


@jg.jit
def with_globals(x):
    return np.sqrt(x) * FACTOR + WEIGHTS


@jg.jit
def keywords(x, *, a, b=1.0):
    return x * a + b


@jg.jit
def pairs(p, x):
    return p.w * x + p.b


@jg.jit
def trees(p):
    (a, b), c = p["w"], p["b"][0]
    return {"w": [a + c, b - c], "b": (a, None, a.shape[0], 7)}


@jg.jit
def scalars(a, b):
    return a * b, a + 1, a > b


@jg.jit
def some(x):
    return x[x > 2], x[::2]


@jg.jit
def scaled_in_place(x, y):
    x *= 2
    return x, y[1:]


@pytest.mark.parametrize(
    ("f", "args", "kwargs"),
    [
        (add, (X, X + 1), {}),
        (with_globals, (X,), {}),
        (keywords, (X,), {"a": 2.0, "b": 3.0}),
        (keywords, (X,), {"b": 3.0, "a": 2.0}),
        (keywords, (X,), {"a": 1}),
        (pairs, (Pair(X, X + 1), X + 2), {}),
        (pairs, (Slotted(X, X + 1), X + 2), {}),
        (pairs, (Named(X, X + 1), X + 2), {}),
        (trees, ({"w": [X, X + 1], "b": (X + 2,)},), {}),
        (scalars, (2.5, 3), {}),
        (scalars, (np.float64(2.5), 3), {}),
        (scalars, (2, 3), {}),
        (scalars, (np.float32(2), 3.0), {}),
        (Layer().forward, (X,), {}),
        (Layer.made, (X,), {}),
        (Layer.plain, (X,), {}),
    ],
)
def test_calls_that_never_enter_python(f, args, kwargs, crossings):
    owner = (f.__self__,) if hasattr(f, "__self__") else ()
    wanted = getattr(f, "__func__", f).__wrapped__(*owner, *args, **kwargs)
    for _ in range(3):
        same(f(*args, **kwargs), wanted)
    assert crossings(lambda: f(*args, **kwargs)) == 0


def test_results_that_python_finishes(crossings):
    x = np.arange(6.0)
    for _ in range(3):
        kept, every = some(x)
        same(kept, x[x > 2])
        same(every, x[::2])
        assert np.shares_memory(every, x)
        y = np.arange(4.0)
        z, part = scaled_in_place(y, x)
        assert z is y
        assert np.shares_memory(part, x)
    assert 0 <= crossings(lambda: scaled_in_place(y, x)) < 40


def test_an_argument_inside_a_mapping_comes_back_itself():
    @jg.jit
    def f(x):
        made = x + 1
        c = collections.ChainMap({"a": x}, {"b": made})
        return dict(c), dict(c)

    for _ in range(3):
        first, second = f(X)
        assert first["a"] is X
        assert first["b"] is second["b"]


def test_hits_count_native_calls():
    f = jg.jit(lambda x: x + 1)
    for _ in range(7):
        f(X)
    info = f.cache_info()
    assert (info.hits, info.misses) == (6, 1)
    if config.dispatch == "native":
        assert f._dispatcher._native.hits == 5
    f.clear_cache()
    f(X)
    assert f.cache_info().misses == 2


def test_what_was_read_outside_is_seen_when_it_changes(monkeypatch):
    with_globals.clear_cache()
    for value in (2.0, 2.0, 2.0, 3.0, 3.0, -0.0, 0.0, 0.0):
        monkeypatch.setitem(globals(), "FACTOR", value)
        same(with_globals(X), with_globals.__wrapped__(X))
    for array in (np.full(5, 2.0), np.full(1, 2.0), np.full((2, 5), 2.0), np.full(5, 2.0, np.float32)):
        monkeypatch.setitem(globals(), "WEIGHTS", array)
        for _ in range(3):
            same(with_globals(X), with_globals.__wrapped__(X))
    layer = Layer()
    for name, value in (("rate", 0.5), ("rate", 4), ("w", np.ones(5)), ("depth", 3), ("depth", 3.0), ("w", 2.5)):
        setattr(layer, name, value)
        for _ in range(3):
            same(layer.forward(X), Layer.forward.__wrapped__(layer, X))
    del layer.w
    with pytest.raises(AttributeError):
        layer.forward(X)


def test_closures_helpers_and_members_are_seen_when_they_change():
    step = 1.0

    def helper(x):
        return x + step

    class Scaler:
        by = 2.0

        def scale(self, x):
            return x * self.by

    scaler = Scaler()

    @jg.jit
    def f(x):
        return scaler.scale(helper(x))

    def check():
        for _ in range(3):
            same(f(X), f.__wrapped__(X))

    check()
    step = 2.0
    check()
    scaler.by = 5.0
    check()
    del scaler.by
    Scaler.by = 7.0
    check()
    Scaler.scale = lambda self, x: x - self.by
    check()
    scaler.scale = lambda x: x * 10
    check()

    def helper(x):  # noqa: F811  # bound anew
        return x - step

    check()
    helper.__code__ = (lambda x: x * 4 + step).__code__
    check()


def test_arguments_that_may_overlap_go_to_python():
    @jg.jit
    def f(x, y):
        x[1:] = y * 2
        return x.sum()

    base = np.arange(20.0)
    for a, b in ((base[:6], base[10:15]), (base[:6], base[3:8]), (base[:6], base[5:10]), (base[:6], base[6:11])) * 3:
        other = base.copy()
        at = lambda x, base=base: (x.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // 8
        wanted = f.__wrapped__(other[at(a) : at(a) + 6], other[at(b) : at(b) + 5])
        same(f(a, b), wanted)
        same(base, other)


def test_errors_come_as_from_python():
    @jg.jit
    def f(x, i):
        x[0] = 7.0
        return x[i] + 1

    for _ in range(4):
        x = np.arange(3.0)
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 3"):
            f(x, 9)
        assert x[0] == 7.0
        same(f(x, 1), np.float64(2.0))
    with pytest.raises(TypeError, match="missing"):
        f(X)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(X, 1, z=3)


def test_assumptions_that_fail_find_the_other_way():
    @jg.jit
    def f(x, k):
        try:
            return x[k]
        except IndexError:
            return None

    for k in (0, 0, 0, 9, 9, 9, 1, 9, 2, 9):
        same(f(X, k), f.__wrapped__(X, k))


def test_numbers_that_overflow_run_in_python():
    @jg.jit
    def f(a, b):
        return a * b + 1

    for a in (3, 3, 3, 2**40, 2**62, 2**62, 2**64, 5):
        assert f(a, 2**30) == a * 2**30 + 1


def test_host_calls_raise_and_recurse():
    depth = []

    @jg.host(result=np.float64(0))
    def back(x):
        depth.append(x)
        if x > 3:
            raise ValueError("enough")
        return np.float64(f(x + 1)) if x > 1 else np.float64(x)

    @jg.jit
    def f(x):
        return back(x) + 1.0

    for _ in range(4):
        assert f(1.0) == 2.0
        with pytest.raises(ValueError, match="enough"):
            f(2.0)
    with pytest.raises(ValueError, match="enough"):
        f(4.0)


def test_entries_are_bounded_and_the_last_used_stay(monkeypatch):
    monkeypatch.setattr("jitgraph.native.function._ENTRIES", 4)
    f = jg.jit(lambda *xs: xs[0] + len(xs))
    for n in range(7):
        for _ in range(2):
            f(*[X] + [1] * n)
    native = f._dispatcher._native
    if native is None:
        return
    assert len(native.entries) == 4
    assert not native._unlinked
    before = native.hits
    f(X, *[1] * 6)
    assert native.hits == before + 1
    f(X)  # unlinked: through Python, and native again from then on
    assert native.hits == before + 1
    same(f(X), X + 1)
    assert native.hits == before + 2
    assert len(native.entries) == 4


def test_settings_are_heeded(monkeypatch):
    f = jg.jit(lambda x: x + 1)
    for _ in range(3):
        f(X)
    native = f._dispatcher._native
    before = native.hits if native else 0
    for name in ("disable_jit", "check"):
        with config.override(**{name: True}):
            same(f(X), X + 1)
    with config.override(dispatch="python"):
        same(f(X), X + 1)
    assert native is None or native.hits == before
    f(X)
    assert native is None or native.hits == before + 1


def test_calls_inside_a_trace_and_on_tensors():
    inner = jg.jit(lambda x: x * 3)
    for _ in range(3):
        inner(X)
    outer = jg.jit(lambda x: inner(x) + 1)
    for _ in range(3):
        same(outer(X), X * 3 + 1)
    t = jg.Tensor(X.copy(), requires_grad=True)
    y = inner(t).sum()
    y.backward()
    same(np.asarray(t.grad), np.full(5, 3.0))
    same(inner(jg.Tensor(X)).numpy() if hasattr(jg.Tensor, "numpy") else np.asarray(inner(jg.Tensor(X))), X * 3)


def test_threads_share_a_function_that_learns():
    @jg.jit
    def f(x, k):
        s = 0.0
        for i in range(x.shape[0]):
            s = s + x[i] * k
        return x * s

    wrong = []

    def run(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            x = rng.random(tuple(rng.integers(1, 4, int(rng.integers(1, 3)))))
            if x.ndim == 2:
                x = x[0]
            if not np.allclose(f(x, 2.0), x * (x * 2.0).sum()):
                wrong.append(x)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_a_jitted_function_dies_with_its_last_reference():
    def make():
        f = jg.jit(lambda x: x + 1)
        for _ in range(3):
            f(X)
        f.itself = f
        return weakref.ref(f), weakref.ref(f._dispatcher)

    refs = make()
    gc.collect()
    assert all(r() is None for r in refs)


def test_a_finaliser_of_the_cycle_may_still_call_it():
    results = []

    class Last:
        def __init__(self, f):
            self.f = f

        def __del__(self):
            results.append(self.f(X))

    for _ in range(5):
        f = jg.jit(lambda x: x + 1)
        for _ in range(3):
            f(X)
        f.last = Last(f)
        del f
        gc.collect()
    assert len(results) == 5
    for r in results:
        same(r, X + 1)


def test_code_stays_while_finalisers_of_a_cycle_run():
    """Code that nobody else has linked; the function outlives the collection of the cycle, and is called once more."""
    saved = []

    class Last:
        def __init__(self, f):
            self.f = f

        def __del__(self):
            saved.append(self.f)
            same(self.f(X), X * 17.0625 - 3.5)

    f = jg.jit(lambda x: x * 17.0625 - 3.5)
    for _ in range(3):
        f(X)
    f.last = Last(f)
    del f
    gc.collect()
    (f,) = saved
    for _ in range(3):
        same(f(X), X * 17.0625 - 3.5)


def test_a_call_may_clear_the_cache_that_serves_it():
    @jg.host(result=np.float64(0))
    def rude(x):
        f.clear_cache()
        gc.collect()
        return x * 2

    f = jg.jit(lambda x: rude(x) + 1.0)
    for _ in range(6):
        for _ in range(3):
            assert f(1.0) == 3.0
        assert f._dispatcher._native is None or len(f._dispatcher._native._unlinked) <= 1


def test_both_dispatchers_compared():
    def body(x, y):
        y[0] = x.sum()
        return x * 2 + y, y, x[1:]

    f = jg.jit(body)
    with config.override(dispatch="both"):
        for k in range(4):
            same(f(X, np.arange(5.0) + k), body(X, np.arange(5.0) + k))
        assert f._dispatcher.comparison.compared == 4


def test_the_comparison_finds_a_difference():
    f = jg.jit(lambda x: x + 1)
    with config.override(dispatch="both"):
        f(X)
        comparison = f._dispatcher.comparison
        comparison.target = lambda x: x + 2
        with pytest.raises(jg.errors.InternalError, match="differs from Python's in the result"):
            f(X)


def test_the_setting_may_change_at_any_time():
    f = jg.jit(lambda x: x + 1)
    with config.override(dispatch="python"):
        for _ in range(3):
            f(X)
        assert f._dispatcher._native is None
    with config.override(dispatch="native"):
        for _ in range(3):
            same(f(X), X + 1)
        native = f._dispatcher._native
        assert native is None or native.hits == 2
    with config.override(dispatch="both"):
        for _ in range(3):
            same(f(X), X + 1)
        assert native is None or (native.hits, f._dispatcher.comparison.compared) == (2, 3)


def test_calls_at_the_same_time_get_frames_of_their_own():
    depth = 5

    @jg.host(result=np.float64(0))
    def deeper(x):
        return np.float64(f(x - 1)) if x > 0 else np.float64(0)

    @jg.jit
    def f(x):
        return deeper(x) + 1.0

    for _ in range(depth + 2):
        assert f(float(depth)) == depth + 1
    native = f._dispatcher._native
    if native is not None:
        before = native.hits
        f(float(depth))
        assert native.hits == before + depth + 1
        assert len(native.entries) == 1
