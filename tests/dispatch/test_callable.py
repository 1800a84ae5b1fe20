"""A jitted function behaves as a function, before and after native code serves it."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import weakref

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.native.callable import callable_type, is_patchable

X = np.arange(4.0)


@jg.jit
def module_level(x, y=2, *, z: float = 1.0):
    """Says what it does."""
    return x * y + z


class Holder:
    @jg.jit
    def method(self, x):
        """A method."""
        return x + self.k

    def __init__(self, k):
        self.k = k


@pytest.fixture(params=[0, 1, 4])
def warmed(request):
    f = jg.jit(lambda x, y=2: x + y)
    for _ in range(request.param):
        f(X)
    return f


def test_the_type():
    assert isinstance(module_level, jg.JitFunction)
    assert type(module_level).__name__ == "JitFunction"
    assert type(module_level).__module__ == "jitgraph.api"
    assert is_patchable(module_level)
    assert callable_type(jg.JitFunction) is type(module_level)
    assert callable(module_level)
    with pytest.raises(TypeError):
        type("Sub", (type(module_level),), {})


def test_metadata():
    for _ in range(3):
        assert module_level.__name__ == "module_level"
        assert module_level.__doc__ == "Says what it does."
        assert str(inspect.signature(module_level)) == "(x, y=2, *, z: 'float' = 1.0)"
        assert module_level.__wrapped__.__defaults__ == (2,)
        assert "module_level" in repr(module_level)
        module_level(X)


def test_all_ways_to_call(warmed):
    for _ in range(3):
        for got in (
            warmed(X),
            warmed(*(X,)),
            warmed(x=X),
            warmed(X, y=2),
            warmed.__call__(X),
            type(warmed).__call__(warmed, X),
            functools.partial(warmed, X)(),
            functools.partial(warmed, y=2)(X),
            next(map(warmed, [X])),
            functools.reduce(lambda a, f: f(a), [warmed], X),
        ):
            np.testing.assert_array_equal(got, X + 2)
        with pytest.raises(TypeError):
            warmed()
        with pytest.raises(TypeError):
            warmed(X, x=X)


def test_names_of_keywords_need_not_be_interned():
    for _ in range(4):
        name = "-z"[1:]
        np.testing.assert_array_equal(module_level(X, **{name: 3.0}), X * 2 + 3)
        np.testing.assert_array_equal(module_level(X, **{"-y"[1:]: 5}), X * 5 + 1)


def test_methods():
    a, b = Holder(1.0), Holder(2.0)
    for _ in range(4):
        np.testing.assert_array_equal(a.method(X), X + 1)
        np.testing.assert_array_equal(Holder.method(b, X), X + 2)
        bound = b.method
        np.testing.assert_array_equal(bound(X), X + 2)
        np.testing.assert_array_equal(bound(x=X), X + 2)
    assert a.method.__self__ is a
    assert Holder.method is Holder.__dict__["method"]
    assert a.method.__doc__ == "A method."


def test_pickling_copying_and_references(warmed):
    module_level(X)
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert copy.copy(warmed) is warmed
    assert copy.deepcopy([warmed])[0] is warmed
    ref = weakref.ref(warmed)
    assert ref() is warmed
    assert len({warmed, warmed}) == 1
    warmed.extra = 3
    assert warmed.extra == 3


def test_an_instance_without_init_fails_and_does_not_crash():
    made = object.__new__(type(module_level))
    with pytest.raises(AttributeError):
        made(X)


def test_subclasses_of_the_python_class():
    class Mine(jg.JitFunction):
        def __call__(self, *args, **kwargs):
            return super().__call__(*args, **kwargs)

    f = Mine(lambda x: x + 1, module_level._options)
    for _ in range(4):
        np.testing.assert_array_equal(f(X), X + 1)
    assert isinstance(f, Mine)
