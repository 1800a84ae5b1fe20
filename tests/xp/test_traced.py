"""Traced functions evaluate to what NumPy gives: values, dtype, shape, kind, changed arguments; eager Tensors too."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jitgraph.xp as jg
from jitgraph.errors import AxisError, DTypeError, IndexingError, ShapeError, TraceError
from jitgraph.ir.interpret import Deoptimise
from tests.xp.harness import check, same, trace

X = np.arange(12.0).reshape(3, 4) + 0.5
F = np.asfortranarray(X)
Y = np.arange(4.0) + 1
I = np.arange(7)
B = np.array([True, False, True, True])
Z = np.array(2.5)
S = X.astype(np.float32)
C = np.arange(60.0).reshape(3, 4, 5)


def cases(*functions):
    return pytest.mark.parametrize("f", functions, ids=lambda f: f"line{f.__code__.co_firstlineno}")


@cases(
    lambda x: x + 1,
    lambda x: 1 - x,
    lambda x: 2 / x,
    lambda x: x // 2 + x % 3,
    lambda x: -x + abs(-x) + +x,
    lambda x: x**2 + x**0.5 + x**-1 + x**3,
    lambda x: 2.0**x,
    lambda x: (x > 3) & (x < 8) | ~(x >= 2),
    lambda x: divmod(x, 2),
    lambda x: np.sin(x) + np.exp(-x) * 2.0,
    lambda x: np.add(x, 1, dtype=np.float32, casting="same_kind"),
    lambda x: np.add(x, np.float32(1)),
    lambda x: np.maximum(x, 3) - np.minimum(3.0, x),
    lambda x: np.clip(x, 1, 5),
    lambda x: x.clip(2, None),
    lambda x: np.where(x > 3, x, 0.0),
    lambda x: np.where(x > 3, 1, 0),
    lambda x: np.round(x / 3, 2),
    lambda x: x.round(),
    lambda x: np.isclose(x, 2.5),
    lambda x: np.allclose(x, x),
    lambda x: np.nan_to_num(x / 0),
    lambda x: np.heaviside(x - 3.5, 0.5),
    lambda x: np.radians(x),
    lambda x: np.fabs(x),
    lambda x: np.positive(x),
    lambda x: x.astype(np.int32),
    lambda x: x.astype(float),
    lambda x: np.select([x < 2, x < 5], [x, x * 2], 7.0),
    lambda x: x == 2.5,
    lambda x: x != 2.5,
    lambda x: np.square(x),
    lambda x: np.copysign(x, -1),
    lambda x: np.array_equal(x, x),
)
def test_elementwise(f):
    for a in (X, F, S, X[:, ::-1], X[1:, 1:], Y):
        check(f, a)


def test_logaddexp() -> None:
    for a in (X, S, -X * 300):
        check(lambda x: np.logaddexp(x, 1.0), a, ulp=2)


@cases(
    lambda x, y: x * y - x / y,
    lambda x, y: x + y[:, np.newaxis].T,
    lambda x, y: np.arctan2(x, y),
    lambda x, y: x @ y,
    lambda x, y: x @ x.T,
    lambda x, y: np.dot(x, y),
    lambda x, y: y @ y,
    lambda x, y: np.inner(x, y),
    lambda x, y: np.outer(y, y),
    lambda x, y: np.vdot(y, y),
    lambda x, y: np.tensordot(x, y, 1),
    lambda x, y: np.maximum(x, y),
    lambda x, y: [1.0, 2.0, 3.0, 4.0] * x,
    lambda x, y: x + np.arange(4),
    lambda x, y: np.concatenate([x, y[None]]),
    lambda x, y: np.concatenate([x, x], axis=None),
    lambda x, y: np.vstack([x, y]),
    lambda x, y: np.hstack([y, y]),
    lambda x, y: np.stack([y, y], axis=-1),
    lambda x, y: np.column_stack([y, y]),
    lambda x, y: np.append(y, 1.0),
    lambda x, y: np.add.outer(y, y),
    lambda x, y: np.broadcast_to(y, (2, 4)),
    lambda x, y: np.broadcast_arrays(x, y),
    lambda x, y: np.meshgrid(y, y),
    lambda x, y: x.dot(y),
    lambda x, y: np.linalg.norm(y) + np.linalg.norm(x, axis=1),
    lambda x, y: np.cross(y[:3], y[1:]),
    lambda x, y: np.average(x, axis=1, weights=y),
    lambda x, y: np.trapezoid(x, y),
)
def test_two_arrays(f):
    check(f, X, Y)


@cases(
    lambda x: x.sum(),
    lambda x: x.sum(axis=0),
    lambda x: x.sum(axis=(0, 1), keepdims=True),
    lambda x: np.sum(x, axis=-1, initial=5.0),
    lambda x: np.sum(x, where=x > 3),
    lambda x: np.sum(x, dtype=np.float32),
    lambda x: x.mean(),
    lambda x: x.mean(axis=0, keepdims=True),
    lambda x: np.mean(x, dtype=np.float64),
    lambda x: np.mean(x, where=x > 3),
    lambda x: x.var(axis=1, ddof=1),
    lambda x: x.var(),
    lambda x: np.var(x, axis=0, correction=1),
    lambda x: np.std(x, keepdims=True),
    lambda x: x.std(axis=1),
    lambda x: x.max(),
    lambda x: x.min(axis=1),
    lambda x: np.max(x, axis=0, initial=100.0),
    lambda x: np.max(x, initial=-1.0, where=x < 4),
    lambda x: x.prod(axis=0),
    lambda x: (x > 3).any(),
    lambda x: (x > 3).all(axis=1),
    lambda x: x.argmax(),
    lambda x: x.argmin(axis=0),
    lambda x: np.argmax(x, axis=1, keepdims=True),
    lambda x: x.cumsum(),
    lambda x: np.cumsum(x, axis=1),
    lambda x: np.cumprod(x, axis=0),
    lambda x: np.ptp(x, axis=0),
    lambda x: np.diff(x),
    lambda x: np.diff(x, n=2, axis=0),
    lambda x: np.diff(x, prepend=0.0),
    lambda x: np.nansum(x),
    lambda x: np.average(x),
    lambda x: np.add.reduce(x),
    lambda x: np.maximum.reduce(x, axis=None),
    lambda x: np.add.accumulate(x, axis=1),
    lambda x: np.trace(x),
)
def test_reductions(f):
    for a in (X, F, S, X[:, ::-1], X[1:, 1:]):
        check(f, a)
    if "where" not in f.__code__.co_names:
        check(f, np.arange(12).reshape(3, 4))


@cases(
    lambda x: x[1:-1],
    lambda x: x[1:-1] * 2,
    lambda x: x[::-1, 1::2],
    lambda x: x[-1],
    lambda x: x[1, 2],
    lambda x: x[1, 2, ...],
    lambda x: x[..., 0],
    lambda x: x[:, None, 1:],
    lambda x: x[5:],
    lambda x: x[-100:100:2],
    lambda x: x[2:0:-1],
    lambda x: x[:-5:-1, ::-2],
    lambda x: x[0:0],
    lambda x: x.T,
    lambda x: x.T[1:],
    lambda x: x.T.reshape(-1),
    lambda x: x.reshape(2, -1),
    lambda x: x.reshape(-1),
    lambda x: x.reshape((12,)),
    lambda x: x.reshape(4, 3, order="F"),
    lambda x: x.ravel(),
    lambda x: x[1:].ravel(),
    lambda x: x.flatten(),
    lambda x: x.ravel(order="F"),
    lambda x: x.swapaxes(0, 1),
    lambda x: np.moveaxis(x, 0, -1),
    lambda x: np.expand_dims(x, (0, 2)),
    lambda x: x[None].squeeze(),
    lambda x: x[None].squeeze(axis=0),
    lambda x: np.flip(x),
    lambda x: np.flip(x, 1),
    lambda x: np.rot90(x),
    lambda x: np.roll(x, 1),
    lambda x: np.roll(x, -1, axis=1),
    lambda x: np.roll(x, (1, 2), axis=(0, 1)),
    lambda x: np.repeat(x, 2, axis=0),
    lambda x: np.tile(x, (2, 1)),
    lambda x: np.split(x, [1, 2]),
    lambda x: np.split(x, 2, axis=1),
    lambda x: np.diagonal(x),
    lambda x: x.diagonal(1),
    lambda x: np.tril(x) + np.triu(x, 1),
    lambda x: np.diag(x[0]),
    lambda x: x.copy(),
    lambda x: x.T.copy(),
    lambda x: np.copy(x.T),
    lambda x: np.atleast_2d(x[0]),
    lambda x: x.view(),
    lambda x: x.size,
    lambda x: x.ndim,
    lambda x: len(x),
    lambda x: [row.sum() for row in x],
    lambda x: np.zeros_like(x),
    lambda x: np.ones_like(x, dtype=int),
    lambda x: np.full_like(x, 3),
    lambda x: np.empty_like(x, shape=(0,)),
    lambda x: jg.ascontiguousarray(x.T),
    lambda x: x[0] + x.nbytes,
)
def test_views_and_shapes(f):
    for a in (X, F, X[:, ::-1]):
        check(f, a)


@cases(
    lambda x: x[x > 3],
    lambda x: x[x > 3] + x[x > 3],
    lambda x: x[x[:, 0] > 3],
    lambda x: x[[0, -1]],
    lambda x: x[:, [0, 2, 2]],
    lambda x: x[[0, 1], [1, 2]],
    lambda x: x[[[0], [1]], [1, 2]],
    lambda x: x[1:, [3, 0]],
    lambda x: x[[0, 2], 1:],
    lambda x: x[0, [3, 0]],
    lambda x: x[[0, 1], None, 1:3],
    lambda x: x[np.array([True, False, True])],
    lambda x: x[np.array([True, False, True]), 1],
    lambda x: np.nonzero(x > 3),
    lambda x: np.flatnonzero(x > 3),
    lambda x: np.argwhere(x > 3),
    lambda x: np.where(x > 3),
    lambda x: np.take(x, [0, 5]),
    lambda x: np.take(x, 1, axis=1),
    lambda x: np.take(x, [0, 9], axis=1, mode="clip"),
    lambda x: np.take(x, [0, 9], axis=1, mode="wrap"),
    lambda x: x.take([0, 1], axis=0),
    lambda x: np.compress([True, False, True], x, axis=0),
    lambda x: np.take_along_axis(x, np.argmax(x, axis=1)[:, None], axis=1),
    lambda x: np.count_nonzero(x > 3, axis=0),
)
def test_advanced_reads(f):
    check(f, X)
    check(f, F)


def test_advanced_axes_go_to_the_front_when_apart() -> None:
    check(lambda c: c[[0, 1], :, [2, 3]], C)
    check(lambda c: c[0, :, [2, 3]], C)
    check(lambda c: c[:, [1, 2], [2, 3]], C)
    check(lambda c: c[:, 1, [2, 3]], C)
    check(lambda c: c[[[0, 1]], :, [2]], C)


def _writes():
    def slice_add(x):
        x[1:-1] += x[2:] - x[:-2]
        return x

    def element(x):
        x[0, 1] = 7
        x[-1, -1] *= 2
        return x.sum()

    def overlap(x):
        x[:, 1:] = x[:, :-1]
        return x

    def reversed_self(x):
        x[...] = x[::-1]

    def mask_scalar(x):
        x[x > 3] = 0

    def mask_rows(x):
        x[x[:, 0] > 3] = -1.0

    def mask_array(x):
        x[x > 3] = x[x > 3] * 2

    def mask_augmented(x):
        x[x > 3] += 1

    def rows_by_index(x):
        x[[0, 2]] = x[[2, 0]]

    def index_scalar(x):
        x[:, [0, 1]] = 9

    def index_pairs(x):
        x[[0, 1, 1], [0, 1, 1]] = np.array([1.0, 2.0, 3.0])

    def index_augmented(x):
        x[[0, 0, 1]] += 1

    def add_at(x):
        np.add.at(x, ([0, 0, 1], [1, 1, 2]), 1.0)

    def row_of_view(x):
        y = x[1]
        y *= 2
        y[0] = -1
        return y, x

    def through_transpose(x):
        x.T[0] = 5

    def through_reshape(x):
        flat = x.reshape(-1)
        flat[3] = -3
        return flat

    def out_argument(x):
        np.multiply(x, 2, out=x)
        np.add(x, 1, out=x, where=x > 10)

    def fill(x):
        x[1].fill(4)
        np.copyto(x[0], 3)

    def step(x):
        x[::2, ::-1] = np.arange(4)

    def diag(x):
        np.fill_diagonal(x, 0)

    def new(x):
        y = np.zeros_like(x)
        y[1:] = x[:-1]
        y[0] += 1
        return y, x + y

    def int_from_float(x):
        x[0] = 1.75
        return x

    def scalar_is_rebound(x):
        s = x[0, 0]
        s += 1
        return s, x

    def zero_d_writes(x):
        s = x[0, 0, ...]
        s += 1
        return s, x

    def loop(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1]

    def swap(x):
        x[0], x[1] = x[1].copy(), x[0].copy()

    return [f for f in locals().values() if callable(f)]


@pytest.mark.parametrize("f", _writes(), ids=lambda f: f.__name__)
def test_writes(f):
    check(f, X)
    if f.__name__ not in ("through_reshape",):
        check(f, F)
        check(f, X[:, ::-1])
    check(f, np.arange(12).reshape(3, 4))


def test_reshape_of_fortran_order_is_a_copy() -> None:
    def f(x):
        flat = x.reshape(-1)
        flat[3] = -3
        return flat

    traced = trace(f, F)
    (found, after) = traced(F)
    same(found, f(F.copy(order="F")))
    same(after[0], F)


@cases(
    lambda z: z + 1,
    lambda z: np.where(z > 1, z, 0),
    lambda z: z.copy(),
    lambda z: z[()],
    lambda z: z[...],
    lambda z: np.sin(z),
    lambda z: z.sum(),
    lambda z: z.reshape(1),
    lambda z: z.astype(np.float32),
    lambda z: jg.array([z, z]),
    lambda z: np.stack([z, 1.0]),
    lambda z: jg.max([z, 3.0]),
    lambda z: np.clip(z, 0, 1),
    lambda z: z * True,
    lambda z: z.item(),
    lambda z: z.mean(),
    lambda z: np.expand_dims(z, 0),
)
def test_zero_dimensional(f):
    check(f, Z)
    check(f, np.float64(2.5))


def test_zero_d_array_is_written_and_scalar_is_not() -> None:
    def f(z):
        z += 1
        return z

    check(f, Z)
    check(f, np.float64(1))


@cases(
    lambda n, x: n + 1,
    lambda n, x: n * x,
    lambda n, x: n / 2,
    lambda n, x: n // 3 + n % 3,
    lambda n, x: -n,
    lambda n, x: abs(-n),
    lambda n, x: n**2,
    lambda n, x: n**-1,
    lambda n, x: 2**n,
    lambda n, x: n & 6 | 1 ^ n,
    lambda n, x: n << 2 >> 1,
    lambda n, x: ~n,
    lambda n, x: (n > 3, n == 5, n != 5, n <= 2),
    lambda n, x: divmod(n, 3),
    lambda n, x: x[n - 5],
    lambda n, x: x[:n],
    lambda n, x: x[n:],
    lambda n, x: x[-n:],
    lambda n, x: x[1 : n - 1],
    lambda n, x: x + n,
    lambda n, x: np.sin(n),
    lambda n, x: np.add(n, 1),
    lambda n, x: jg.array([n, 2]),
    lambda n, x: np.float32(3) + n,
)
def test_python_integers(f):
    check(f, 5, Y, more=((5, Y + 1),))


def test_python_integers_are_run_time_arguments() -> None:
    check(lambda n, x: x[:n] * n, 2, Y, more=((3, Y), (0, Y), (-1, Y), (-9, Y), (9, Y)))
    check(lambda n, x: x[n], 2, Y, more=((3, Y), (0, Y), (-1, Y), (-4, Y)))
    check(lambda n, x: x[n::-1], 2, Y, more=((3, Y), (-2, Y)))
    check(lambda i, j, x: x[i:j], 1, 3, Y, more=((2, 2, Y), (3, 1, Y), (-3, -1, Y)))


@cases(
    lambda a: a + 1,
    lambda a: a / 3,
    lambda a: a // 2,
    lambda a: a % 2,
    lambda a: a**2,
    lambda a: a**0.5,
    lambda a: a**-1.0,
    lambda a: 2**a,
    lambda a: -a,
    lambda a: (a > 1, a == 2.5),
    lambda a: np.sqrt(a),
    lambda a: np.float32(1) + a,
    lambda a: a * 2,
)
def test_python_floats(f):
    check(f, 2.5)


def test_weak_scalars_keep_float32() -> None:
    check(lambda x, a: x * a + 1, S, 2.5)
    check(lambda x, a: x + a, S, np.float64(2.5))
    check(lambda x, n: x + n, np.arange(3, dtype=np.uint8), 250)


def test_zero_division_is_pythons() -> None:
    for f, message in ((lambda n: 1 // n, "integer"), (lambda n: 1 % n, "modulo"), (lambda n: 1 / n, "division")):
        traced = trace(f, 3)
        with pytest.raises(ZeroDivisionError, match=message) as caught:
            traced(0)
        with pytest.raises(ZeroDivisionError) as expected:
            f(0)
        assert str(caught.value) == str(expected.value)
    with pytest.raises(ZeroDivisionError):
        trace(lambda a: 1.0 / a, 3.0)(0.0)
    with pytest.raises(ZeroDivisionError):
        trace(lambda a: a**-1.0, 3.0)(0.0)


def test_integer_overflow_reruns_in_python() -> None:
    for f in (lambda n: n + n, lambda n: n * n, lambda n: -n - 2**62 - n, lambda n: n**3, lambda n: n << 5):
        with pytest.raises(Deoptimise):
            trace(f, 3)(2**62)
    with pytest.raises(Deoptimise):
        trace(lambda x, n: x + n, np.arange(3, dtype=np.uint8), 3)(np.arange(3, dtype=np.uint8), 300)
    with pytest.raises(OverflowError, match="out of bounds for uint8"):
        trace(lambda x: x + 300, np.arange(3, dtype=np.uint8))
    check(lambda x: x < 300, np.arange(3, dtype=np.uint8))


def test_sizes_stay_symbolic() -> None:
    big = np.arange(30.0).reshape(5, 6)
    check(lambda x: x[: x.shape[0] // 2], X[:, :2], more=((big[:, :2],),))
    check(lambda x: x.shape[0] * x.shape[1] + 1, X, more=((big,),))
    check(lambda x: x.sum() / x.size, X, more=((big,),))
    check(lambda x: x.reshape(x.size), X, more=((big,),))
    check(lambda x: jg.arange(x.shape[0]), X, more=((big,),))
    check(lambda x: jg.zeros(x.shape), X, more=((big,),))
    check(lambda x: jg.linspace(0.0, 1.0, x.shape[1]), X, more=((big,),))
    check(lambda x: jg.eye(x.shape[0]), X, more=((big,),))
    check(lambda x: x.mean(axis=0), X, more=((big,),))
    check(lambda x: x / x.shape[0], X, more=((big,),))
    check(lambda x: np.roll(x, 1, axis=0), X, more=((big,),))
    traced = check(lambda x: x[1:-1], X, more=((big,),))
    assert [str(g) for g in traced.graph.guards] == ["n0_0 >= 2"]


def test_half_of_a_size_is_a_size() -> None:
    traced = check(lambda x: x[: jg.BUILTIN_TABLE[int](x.shape[0] / 2)], Y, more=((np.arange(9.0),),))
    assert "floordiv" in str(traced.out.type)
    check(lambda x: x[: jg.NUMPY_TABLE[math.ceil](x.shape[0] / 2)], Y, more=((np.arange(9.0),),))


def test_equal_sizes_become_a_guard() -> None:
    traced = check(lambda x, y: x + y * x, Y, Y + 1, more=((np.arange(9.0), np.arange(9.0)),))
    assert [str(g) for g in traced.graph.guards] == ["n1_0 == n0_0"]


def test_unequal_sizes_are_numpys_error() -> None:
    with pytest.raises(
        ShapeError, match=r"a0 \+ a1: operands could not be broadcast together with shapes \(4,\) \(7,\)"
    ):
        trace(lambda x, y: x + y, Y, I)
    with pytest.raises(ShapeError, match="inner dimensions differ"):
        trace(lambda x, y: x @ y, X, I)
    with pytest.raises(ShapeError, match="cannot reshape array of size"):
        trace(lambda x: x.reshape(5), X)


@cases(
    lambda: jg.zeros(3),
    lambda: jg.ones((2, 3), np.float32),
    lambda: jg.full((2,), 7),
    lambda: jg.empty(0),
    lambda: jg.arange(5),
    lambda: jg.arange(1, 10, 3),
    lambda: jg.arange(0.0, 1.0, 0.3),
    lambda: jg.linspace(0, 1, 5),
    lambda: jg.linspace(1, 2, 300, endpoint=False),
    lambda: jg.eye(3),
    lambda: jg.eye(3, 4, 1),
    lambda: jg.identity(2),
    lambda: jg.tri(3),
    lambda: jg.array([[1, 2], [3, 4]]),
    lambda: jg.array(3.5),
    lambda: jg.asarray([1.0, 2.0]),
    lambda: jg.indices((2, 3)),
)
def test_creation_inside_a_trace_is_fresh(f):
    traced = trace(f)
    assert traced.leaves, "created outside the graph"
    (found, _) = traced()
    same(found, f())


def test_creation_from_numbers() -> None:
    check(lambda a: jg.full(3, a), 2.5)
    check(lambda a: jg.arange(0.0, a, 0.5), 2.5, more=((4.0,),))
    check(lambda n: jg.arange(n), 4, more=((7,), (0,)))
    check(lambda n: jg.zeros(n), 4, more=((7,),))
    check(lambda a, b: jg.linspace(a, b, 100), 0.0, 2.0, more=((1.0, 1.0),))
    check(lambda a: jg.array([a, 1.0, 2]), 2.5)
    check(lambda a: jg.array([[a, 1.0], [a, a]]), 2.5)


@cases(
    lambda a: jg.NUMPY_TABLE[math.sqrt](a),
    lambda a: jg.NUMPY_TABLE[math.log](a),
    lambda a: jg.NUMPY_TABLE[math.floor](a),
    lambda a: jg.NUMPY_TABLE[math.ceil](a),
    lambda a: jg.NUMPY_TABLE[math.trunc](a),
    lambda a: jg.NUMPY_TABLE[math.fabs](a),
    lambda a: jg.NUMPY_TABLE[math.degrees](a),
    lambda a: jg.NUMPY_TABLE[math.isnan](a),
    lambda a: jg.NUMPY_TABLE[math.copysign](a, -1),
    lambda a: jg.NUMPY_TABLE[math.fmod](a, 2),
    lambda a: jg.NUMPY_TABLE[math.atan2](a, 2),
    lambda a: jg.BUILTIN_TABLE[abs](-a),
    lambda a: jg.BUILTIN_TABLE[int](a),
    lambda a: jg.BUILTIN_TABLE[float](a),
    lambda a: jg.BUILTIN_TABLE[bool](a),
    lambda a: jg.BUILTIN_TABLE[round](a),
    lambda a: jg.BUILTIN_TABLE[max](a, 1.0),
    lambda a: jg.BUILTIN_TABLE[min]([a, 1.0]),
    lambda a: jg.BUILTIN_TABLE[sum]([a, a, 1.5]),
    lambda a: jg.BUILTIN_TABLE[pow](a, 3.0),
)
def test_math_and_builtins(f):
    check(f, 2.7)


def test_math_errors_are_pythons() -> None:
    for name, bad in (
        ("sqrt", -1.0),
        ("log", 0.0),
        ("log", -1.0),
        ("exp", 1e4),
        ("sin", math.inf),
        ("acos", 2.0),
        ("floor", math.nan),
    ):
        f = getattr(math, name)
        traced = trace(lambda a, f=f: jg.NUMPY_TABLE[f](a), 0.5)
        with pytest.raises((ValueError, OverflowError)) as expected:
            f(bad)
        with pytest.raises(expected.type) as caught:
            traced(bad)
        assert str(caught.value) == str(expected.value)


def test_index_errors_are_numpys() -> None:
    traced = trace(lambda n, x: x[n], 2, Y)
    for bad in (4, -5):
        with pytest.raises(IndexError) as expected:
            Y[bad]
        with pytest.raises(IndexError) as caught:
            traced(bad, Y)
        assert str(caught.value) == str(expected.value)
    with pytest.raises(IndexingError, match="index 7 is out of bounds for axis 0 with size 4"):
        trace(lambda x: x[7], Y)
    with pytest.raises(IndexingError, match="too many indices for array: array is 1-dimensional, but 2 were indexed"):
        trace(lambda x: x[0, 0], Y)
    with pytest.raises(IndexingError, match="only integers"):
        trace(lambda x: x[1.5], Y)
    traced = trace(lambda i, x: x[i], np.array([0, 1]), Y)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 4"):
        traced(np.array([0, 9]), Y)
    same(traced(np.array([-1, 2]), Y)[0], Y[[-1, 2]])


def test_bad_arguments_are_numpys_errors() -> None:
    with pytest.raises(AxisError, match="axis 2 is out of bounds for array of dimension 1"):
        trace(lambda x: x.sum(axis=2), Y)
    with pytest.raises(DTypeError):
        trace(lambda x: -x, B)
    with pytest.raises(DTypeError, match="Cannot cast"):
        trace(lambda i: i.__iadd__(1.5), I)
    with pytest.raises(ValueError, match="read-only"):
        trace(lambda x: np.broadcast_to(x, (2, 4)).__setitem__(0, 1), Y)
    with pytest.raises(ShapeError, match="could not broadcast input array"):
        trace(lambda x: x.__setitem__(slice(0, 2), np.arange(3)), Y)
    with pytest.raises(ShapeError, match="zero-size array"):
        trace(lambda x: x[:0].max(), Y)
    with pytest.raises(ShapeError, match="negative integer powers"):
        trace(lambda i: i**-1, I)


def test_python_needs_the_value() -> None:
    for f, match in (
        (lambda x: bool(x.sum() > 3), "truth"),
        (lambda x: float(x.sum()), "float"),
        (lambda x: f"{x.sum()}", "text"),
        (lambda x: range(x.astype(int)[0]), "index"),
        (lambda x: np.asarray(x).numpy(), "data"),
    ):
        with pytest.raises(TraceError, match=match):
            trace(f, Y)
    traced = trace(lambda x: x * int(x.shape[0]), Y)
    assert [str(g) for g in traced.graph.guards] == ["n0_0 == 4"]


def test_masked_write_checks_the_count() -> None:
    def f(x, y):
        x[x > 2] = y

    traced = check(f, Y, np.array([7.0, 8.0]))
    with pytest.raises(ValueError, match="cannot assign 3 input values to the 2 output values"):
        traced(Y, np.array([7.0, 8.0, 9.0]))


def test_masks_computed_alike_have_equal_sizes() -> None:
    traced = check(lambda x, y: x[x > 2] * y[x > 2], Y, Y + 1, more=((-Y, Y),))
    assert not traced.graph.sites


def test_masks_of_unknown_sizes_broadcast_at_run_time() -> None:
    traced = trace(lambda x, y: x[x > 2] * y[y > 2], Y, Y)
    same(traced(Y, Y)[0], Y[Y > 2] ** 2)
    one = np.array([0.0, 0.0, 0.0, 9.0])
    same(traced(one, Y)[0], one[one > 2] * Y[Y > 2])
    with pytest.raises(ShapeError, match="could not be broadcast"):
        traced(Y, Y + 1)


def test_symbols_of_isinstance() -> None:
    seen = []
    trace(
        lambda x, n, a: seen.extend(
            [isinstance(x, np.ndarray), isinstance(x[0], np.floating), isinstance(n, int), isinstance(a, float)]
        ),
        Y,
        3,
        2.0,
    )
    assert seen == [True] * 4
