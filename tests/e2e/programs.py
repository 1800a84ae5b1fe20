"""Whole NumPy programs, run by NumPy and compiled, compared in everything that a caller can see."""

import dataclasses
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg


@dataclasses.dataclass(frozen=True)
class Program:
    """A function and what to call it with.

    Attributes:
        fn: the function, plain NumPy.
        make: makes the arguments from a random generator and a size; the same generator state, the same arguments.
        sizes: what `make` is called with.
        ulp: allowed difference, in units in the last place of the largest magnitude; 0 asks for the same bits.
        misses: captures allowed over all sizes.
        grad: numbers of the arguments to differentiate with respect to.
    """

    fn: Callable[..., Any]
    make: Callable[[np.random.Generator, int], tuple[Any, ...]]
    sizes: tuple[int, ...] = (5, 8, 17)
    ulp: float = 0.0
    misses: int = 1
    grad: tuple[int, ...] = ()

    def arguments(self, n: int) -> tuple[Any, ...]:
        return self.make(np.random.default_rng(n), n)


class Programs(list[Program]):
    """The programs of one file; `tests()` makes their test."""

    def add(self, make: Callable[[np.random.Generator, int], tuple[Any, ...]], **options: Any) -> Callable[..., Any]:
        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.append(Program(fn, make, **options))
            return fn

        return register

    def tests(self) -> Callable[[Program], None]:
        @pytest.mark.parametrize("program", self, ids=lambda p: p.fn.__name__)
        def test(program: Program) -> None:
            check_program(program)

        return test

    def gradient_tests(self) -> Callable[[Program], None]:
        @pytest.mark.parametrize("program", [p for p in self if p.grad], ids=lambda p: p.fn.__name__)
        def test(program: Program) -> None:
            check_gradients(program)

        return test


def check_program(program: Program) -> None:
    """Values, dtypes, shapes, layouts, kinds, written arguments, aliases, exceptions and the number of captures agree."""
    compiled = jg.jit(program.fn)
    for n in program.sizes:
        for _ in range(2):  # the second call finds the compiled code
            first, second = program.arguments(n), program.arguments(n)
            expected, got = outcome(program.fn, first), outcome(compiled, second)
            if isinstance(got, Exception) and not isinstance(expected, Exception):
                raise got
            if isinstance(expected, Exception):
                assert isinstance(got, public_class(expected)), (expected, got)
            else:
                same(got, expected, program.ulp, "result")
                assert aliases(got, second) == aliases(expected, first)
            same(second, first, program.ulp, "argument")
    if not isinstance(expected, Exception):
        info = compiled.cache_info()
        assert info.misses <= program.misses, info


def check_gradients(program: Program) -> None:
    """Gradients on the tape, compiled, and of the compiled function agree, and with differences of the function."""
    compiled = jg.jit(jg.grad(program.fn, argnums=program.grad))
    through = jg.grad(jg.jit(program.fn), argnums=program.grad)
    for n in program.sizes:
        eager = jg.grad(program.fn, argnums=program.grad)(*program.arguments(n))
        close(compiled(*program.arguments(n)), eager)
        close(through(*program.arguments(n)), eager)
        along_a_line(program, n, eager)
    assert compiled.cache_info().misses <= program.misses


def along_a_line(program: Program, n: int, gradient: tuple[Any, ...]) -> None:
    """The derivative along a random direction by central differences is that of the gradient."""
    step = 1e-6
    r = np.random.default_rng(7)
    directions = [r.standard_normal(np.shape(g)) for g in gradient]
    values = []
    for sign in (1.0, -1.0):
        arguments = list(program.arguments(n))
        for number, d in zip(program.grad, directions, strict=True):
            arguments[number] = arguments[number] + sign * step * (d if np.ndim(arguments[number]) else float(d))
        values.append(float(program.fn(*arguments)))
    expected = sum(float(np.sum(g * d)) for g, d in zip(gradient, directions, strict=True))
    np.testing.assert_allclose((values[0] - values[1]) / (2 * step), expected, rtol=2e-5, atol=1e-6)


def close(got: Any, expected: Any) -> None:
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert type(a) is type(b)
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def outcome(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a call returns, or the exception it raises."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return fn(*arguments)
    except Exception as error:  # noqa: BLE001 - it is compared
        return error


def public_class(error: Exception) -> type[Exception]:
    """The first class of an exception that users can name: NumPy's own refinements of TypeError are private."""
    return next(c for c in type(error).__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))


def same(got: Any, expected: Any, ulp: float, place: str) -> None:
    """Equal in type, dtype, shape, layout and, within `ulp`, values; containers and objects by their parts."""
    assert type(got) is type(expected), (place, type(got), type(expected))
    if isinstance(expected, np.ndarray | np.generic):
        assert got.dtype == expected.dtype, (place, got.dtype, expected.dtype)
        assert got.shape == expected.shape, (place, got.shape, expected.shape)
        if got.size:
            assert steps(got) == steps(expected), (place, got.shape, got.strides, expected.strides)
        if ulp and expected.dtype.kind == "f":
            finite = np.abs(expected[np.isfinite(expected)]) if expected.ndim else np.abs(expected)
            scale = float(np.max(finite, initial=0.0))
            eps = float(np.finfo(expected.dtype).eps)
            np.testing.assert_allclose(got, expected, rtol=ulp * eps, atol=ulp * eps * scale, err_msg=place)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=place, strict=True)
            if expected.dtype.kind == "f":
                zeros = expected == 0
                np.testing.assert_array_equal(np.signbit(got) & zeros, np.signbit(expected) & zeros, err_msg=place)
    elif isinstance(expected, tuple | list):
        assert len(got) == len(expected), place
        for number, (a, b) in enumerate(zip(got, expected, strict=True)):
            same(a, b, ulp, f"{place}[{number}]")
    elif isinstance(expected, dict):
        assert list(got) == list(expected), place
        for key in expected:
            same(got[key], expected[key], ulp, f"{place}[{key!r}]")
    elif isinstance(expected, float) and ulp:
        np.testing.assert_allclose(got, expected, rtol=ulp * 2.3e-16, err_msg=place)
    elif is_object(expected):
        same(vars(got), vars(expected), ulp, place)
    else:
        assert got == expected or (got != got and expected != expected), (place, got, expected)


def is_object(x: Any) -> bool:
    """An instance of a class of the program."""
    return hasattr(x, "__dict__") and not isinstance(x, type | types.FunctionType | np.ufunc)


def steps(array: Any) -> tuple[int, ...]:
    """Strides of the axes along which something lies."""
    return tuple(s for s, size in zip(array.strides, array.shape, strict=True) if size > 1)


def arrays_of(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, np.ndarray):
        return [tree]
    if isinstance(tree, tuple | list):
        return [a for part in tree for a in arrays_of(part)]
    if isinstance(tree, dict):
        return [a for part in tree.values() for a in arrays_of(part)]
    if is_object(tree):
        return arrays_of(vars(tree))
    return []


def aliases(result: Any, arguments: Any) -> list[tuple[int, int, str]]:
    """Which arrays of the result are, or share memory with, which arrays of the arguments and of the result."""
    found = []
    results, given = arrays_of(result), arrays_of(arguments)
    for i, a in enumerate(results):
        for j, b in enumerate(given + results[:i]):
            if a is b:
                found.append((i, j, "is"))
            elif np.shares_memory(a, b):
                found.append((i, j, "shares"))
    return found
