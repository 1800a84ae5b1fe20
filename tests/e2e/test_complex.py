"""Complex numbers: NumPy's bits, kinds, views and errors, for both dtypes, over layouts and special values."""

from __future__ import annotations

import cmath
import warnings
from itertools import product

import numpy as np
import pytest

import jitgraph as jg

RNG = np.random.default_rng(5)
DTYPES = [np.complex64, np.complex128]
PARTS = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)
SPECIAL = np.array([complex(a, b) for a, b in product(PARTS, PARTS)])


def numbers(*shape):
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


def layouts(dtype):
    """Arrays that lie in memory in every way, and scalars."""
    square = numbers(6, 9).astype(dtype)
    return {
        "contiguous": numbers(37).astype(dtype),
        "special": SPECIAL.astype(dtype),
        "reversed": numbers(21).astype(dtype)[::-1],
        "strided": numbers(40).astype(dtype)[::2],
        "matrix": square,
        "transposed": square.T,
        "columns reversed": square[:, ::-1],
        "all reversed": square[::-1, ::-1],
        "part": square[1:4, 2:8],
        "0-d": np.array(1 + 2j, dtype),
        "empty": np.zeros(0, dtype),
        "scalar": dtype(0.3 - 2j),
    }


LAYOUTS = list(layouts(np.complex64))


def assert_same(found, expected):
    """Kinds, dtypes, shapes and bits; all NaNs are equal."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
        return
    assert type(found) is type(expected)
    a, b = np.asarray(found), np.asarray(expected)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    for x, y in parts:
        np.testing.assert_array_equal(x, y)
        if x.dtype.kind == "f":
            numbers = ~np.isnan(x)
            np.testing.assert_array_equal(np.signbit(x)[numbers], np.signbit(y)[numbers])


def check(f, *args):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        assert_same(jg.jit(f)(*args), f(*args))


def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, -x, +x, abs(x), x * 2.5, 1 / y, x + (1 - 2j), 3j - x


def ufuncs(x, y):
    return (
        np.multiply(x, y), np.absolute(x), np.square(x), np.reciprocal(y), np.conj(x), np.positive(x), np.sign(x),
        x * x, x**2, x**-1, x**0.5, x**3, x**y,
    )  # fmt: skip


def comparisons(x, y):
    return (
        x == y, x != y, np.less(x, y), np.less_equal(x, y), np.greater(x, y), np.greater_equal(x, y), np.isnan(x),
        np.isinf(x), np.isfinite(x), np.logical_and(x, y), np.logical_or(x, y), np.logical_xor(x, y), np.logical_not(x),
        np.maximum(x, y), np.minimum(x, y), np.fmax(x, y), np.fmin(x, y), np.where(np.isnan(x), x, y),
    )  # fmt: skip


def functions(x, y):
    return (
        np.exp(x), np.log(x), np.sqrt(y), np.sin(x), np.tanh(y), np.arccos(x), np.log1p(x), np.exp2(y), np.rint(x),
        np.real(x) + 1, np.imag(y) * 2, np.isreal(x), np.iscomplex(y),
    )  # fmt: skip


def casts(x, y):
    return x.astype(np.complex64), y.astype(np.complex128), y.astype(bool), x.real.astype(np.complex64)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise(dtype, layout):
    x = layouts(dtype)[layout]
    if layout == "special":
        x, y = np.repeat(x, len(x)), np.tile(x, len(x))
    else:
        y = x * dtype(0.5 + 1j)
    if layout == "all reversed":
        y = y.copy()[::-1, ::-1]
    for f in (arithmetic, ufuncs, comparisons, functions, casts):
        check(f, x, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_division_by_small_and_large_numbers(dtype):
    scale = 10.0 ** RNG.integers(-30, 30, (2, 500))
    x, y = (numbers(500) * s for s in scale)
    y.real[:50] = 0
    y.imag[40:90] = 0
    check(lambda x, y: (x / y, np.reciprocal(y), x * y), x.astype(dtype), y.astype(dtype))


def test_promotion():
    z = numbers(5).astype(np.complex64)
    others = [np.arange(5).astype(t) for t in (bool, "i1", "i8", "u4", "f4", "f8", "c16")]

    def f(z, *others):
        return (z + 1.0, z * 2, z + 1j, z * np.float64(1), *(z * o for o in others), *(o * 1j for o in others))

    check(f, z, *others)


SIZES = (2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 127, 129, 1000, 9001)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_vectors(dtype):
    compiled = jg.jit(lambda x: (x.sum(), x.mean(), np.var(x), np.cumsum(x)[-1], (x * x + 1).sum(), x.real.sum()))
    for n in SIZES:
        x = numbers(n).astype(dtype)
        assert_same(compiled(x), compiled.__wrapped__(x))


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_sums_that_are_real(dtype, real):
    def f(x):
        parts = (
            x.sum(dtype=real),
            x.mean(axis=0, dtype=real),
            np.add.reduce(x, axis=-1, dtype=real),
            np.var(x, dtype=real),
        )
        return (*parts, x.sum(dtype=real, where=x.real > 0), np.prod(x[:2, :2], dtype=real))

    for shape in ((5, 4), (3, 9001)):
        x = numbers(*shape).astype(dtype)
        check(f, x)
        check(f, x.T[:, ::-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *DTYPES, np.int32, np.float16])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (4, 1), (1,), (1, 1), (0, 3), (2, 3, 4), ()])
def test_products_with_numbers_by_blas(dtype, shape):
    """Layouts, zeros and last bits of `np.dot` and `np.inner` of an array and a number."""
    x = np.asarray(
        numbers(*shape).astype(dtype) if np.dtype(dtype).kind == "c" else RNG.integers(-2, 3, shape).astype(dtype)
    )
    compiled = jg.jit(lambda x, y: (np.dot(x, y), np.dot(y, x), np.inner(x, y)))
    for layout in (x, np.asfortranarray(x), x[::-1] if shape else x, np.broadcast_to(x, (2, *shape)) if shape else x):
        for number in (-1.5, 0.0, 2, np.float32(-2), np.array(3), dtype(0.3), np.complex64(0.3 + 0.7j)):
            assert_same(compiled(layout, number), compiled.__wrapped__(layout, number))


def reductions(x):
    return (
        x.sum(), x.sum(axis=0), x.sum(axis=-1, keepdims=True), x.mean(axis=0), np.std(x), np.std(x, axis=-1),
        np.prod(x), x.prod(axis=0), x.max(), x.min(axis=0), np.argmax(x), x.argmin(axis=-1), x.any(), np.all(x, axis=0),
        np.cumsum(x, axis=0), np.cumprod(x), np.abs(x).sum(), np.imag(x).sum(axis=0), np.count_nonzero(x),
        x.sum(initial=2 + 1j), x.sum(where=x.real > 0), np.trace(np.atleast_2d(x)), np.linalg.norm(x),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(9, 21), (130, 5), (70, 3), (3, 5, 7)])
def test_reductions(dtype, shape):
    x = numbers(*shape).astype(dtype)
    views = (x, x.T, x[::-1, ::2]) if shape in ((9, 21), (3, 5, 7)) else (x,)
    for view in views:
        check(reductions, view)


def test_sums_of_signed_zeros():
    check(lambda x: (x.sum(), np.cumsum(x), x.prod()), np.full(5, complex(-0.0, -0.0)))


# ---------------------------------------------------------------------------------------------------- views and writes


def both(f, *args):
    """The results and the arguments that eager and compiled code leave behind agree; both results are given."""
    eager = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    traced = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    expected, found = f(*eager), jg.jit(f)(*traced)
    assert_same(found, expected)
    for a, b in zip(traced, eager, strict=True):
        if isinstance(a, np.ndarray):
            assert_same(a, b)
    return found, traced


def test_writes_through_parts():
    def f(x, r):
        x.real[...] = r
        x.imag += 1
        x.imag[2:5] = 7
        x[5:].real = -r[5:]
        x.T.imag[-1] *= 2
        return x

    found, (x, _) = both(f, numbers(9), np.arange(9.0))
    assert found is x


def test_parts_are_views():
    def f(x):
        y = x * 2
        return x.real, x.imag[:, ::2], x.T.real, y.imag, y

    (real, imag, turned, part, whole), (x,) = both(f, numbers(4, 6))
    for view in (real, imag, turned):
        assert np.shares_memory(view, x)
    assert np.shares_memory(part, whole)
    assert real.strides == x.real.strides
    assert imag.strides == x.imag[:, ::2].strides


def test_parts_of_real_arrays():
    def f(x):
        return x.real, x.imag, x.conj(), np.real(x), np.conj(x)

    (real, imag, same, *_), (x,) = both(f, np.arange(4.0))
    assert real is x
    assert same is x
    assert not imag.flags.writeable


def test_complex_into_real():
    def by_number(r):
        r[0] = 1j
        return r

    def in_place(r):
        r += 1j
        return r

    for f in (by_number, in_place):
        with pytest.raises(TypeError):
            jg.jit(f)(np.zeros(3))
    with pytest.warns(np.exceptions.ComplexWarning):
        expected = numbers(3).astype(float)
    assert jg.jit(lambda z: z.astype(float))(expected + 2j).dtype == np.float64


def test_powers_in_place_take_the_loop_of_the_exponent():
    def by_size(x, n):
        x[0] **= n
        return x

    def in_a_loop(x, n):
        for i in range(len(x)):
            x[i] **= n + i
        return x

    def by_a_float(x, n):
        x[0] **= 2.0
        return x

    for f in (by_size, in_a_loop, by_a_float):
        compiled = jg.jit(f)
        for n in (2, 3, 0, 2.0) if f is by_size else (1, 2):
            for axes in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)):
                x = numbers(3, 4, 5).astype(np.complex64).transpose(axes)
                assert f(x.copy("K"), n).tobytes() == compiled(x.copy("K"), n).tobytes()


def test_indexing_and_masks():
    def f(x, i):
        x[x.real > 0.5] = 0
        x[i[:2]] += 1j
        np.add.at(x, i % 3, 1 + 1j)
        return x[i], x[np.abs(x) > 1], np.take(x, i), np.concatenate([x, x.real]), np.stack([x, x.conj()]), x[-1]

    both(f, numbers(12), np.arange(12)[::-1])


def test_shapes():
    def f(x):
        return (
            x.reshape(6, 4),
            x.T.ravel(),
            x.flatten(),
            np.flip(x).copy(),
            x.diagonal() * 1,
            np.roll(x, 1),
            np.tile(x, 2),
        )

    both(f, numbers(4, 6))


def test_creation():
    def f(n, t):
        return (
            np.zeros(n, complex), np.ones((n, 2), np.complex64), np.full(n, 1 + 2j), np.full(n, t, np.complex64),
            np.arange(n, dtype=complex), np.linspace(0, 1j, 5), np.linspace(1 + 1j, 2, n), np.eye(n, dtype=complex),
            np.array([1, t]), np.array([1, 2j]),
        )  # fmt: skip

    both(f, 3, 0.5j)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype):
    def f(a, b):
        return (
            a @ b, a.conj().T @ a, a @ b[:, 0], b[:, 0] @ a.T, np.vdot(a[0], a[1]), np.inner(a, a), a @ a.T,
            np.tensordot(a, b, 1), np.outer(a[0], b[:, 0]), a @ b.real,
        )  # fmt: skip

    both(f, numbers(4, 6).astype(dtype), numbers(6, 3).astype(dtype))


# ------------------------------------------------------------------------------------------------------------- scalars


def test_numpy_scalars_multiply_without_fma():
    def f(a, b):
        return (
            a * b,
            np.multiply(a, b),
            a / b,
            abs(a),
            np.abs(a),
            np.square(a),
            a**2,
            a + b,
            a.real,
            a.conjugate(),
            a == b,
        )

    for _ in range(20):
        both(f, *numbers(2))


def test_python_numbers():
    def f(z, w, t):
        return (
            z * w, z / w, w / z, z + w, z - w, z * t, t / z, -z, +z, abs(z), z.real, z.imag, z.conjugate(), z == w,
            z != 2, z**2, z**0.5, 2**z, 1j * t, bool(z), complex(z), complex(t, z.real), z / 3,
        )  # fmt: skip

    for _ in range(20):
        both(f, *(complex(z) for z in numbers(2)), 1.5)


@pytest.mark.parametrize(
    ("f", "z"),
    [
        (lambda z: 1 / z, 0j),
        (lambda z: z**-1, 0j),
        (lambda z: abs(z), 1.5e308 + 1.5e308j),
        (lambda z: z < 2, 1j),
        (lambda z: float(z), 1j),
        (lambda z: z % 2, 1j),
        (lambda z: z // 2, 1j),
    ],
)
def test_python_errors(f, z):
    with pytest.raises((ArithmeticError, TypeError)) as expected:
        f(z)
    with pytest.raises(expected.type, match=str(expected.value).split("(")[0]):
        jg.jit(f)(z)


def test_cmath():
    def f(z, t):
        return cmath.exp(z), cmath.sqrt(z), cmath.phase(z), cmath.sqrt(-t), cmath.rect(t, 1.0)

    both(f, 0.3 + 0.4j, 2.0)


def test_loops_and_branches():
    def f(x, c):
        total = 0j
        for i in range(x.shape[0]):
            total = total * 0.5 + x[i]
        z, steps = c, 0
        while abs(z) < 4 and steps < 50:
            z = z * z + c
            steps += 1
        return total, z, steps, (z * 2 if abs(c) > 1 else z)

    both(f, numbers(30), 0.5 + 0.1j)


def test_mandelbrot():
    def f(c):
        z = np.zeros_like(c)
        count = np.zeros(c.shape, int)
        for _ in range(30):
            inside = np.abs(z) < 2
            z[inside] = z[inside] ** 2 + c[inside]
            count[inside] += 1
        return z, count

    both(f, np.linspace(-2, 1, 24)[None, :] + 1j * np.linspace(-1, 1, 15)[:, None])


def test_fourier_matrix():
    def f(x):
        n = x.shape[0]
        k = np.arange(n)
        return np.exp(-2j * np.pi * k[:, None] * k / n) @ x, np.fft.fft(x)

    both(f, numbers(8))


Z, MATRIX = numbers(7), numbers(4, 7)
TURNS = np.abs(RNG.standard_normal(7)) + 0.5


def by_writes(x):
    z = np.zeros(7, complex)
    z.real = x
    z.imag = x * x
    z[2] *= 1j
    return np.abs(z * Z).sum()


def by_a_loop(x):
    z = 0j
    for i in range(x.shape[0]):
        z = z * 0.5 + x[i] * 1j * z + x[i]
    return abs(z)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: np.abs(x * (1 + 2j) + Z).sum() + (x * np.exp(1j * x) * Z).real.sum() + (x * 1j).imag.sum(),
        lambda x: np.abs(MATRIX @ (x * Z)).sum() + (np.abs(np.cumsum(x * Z)) ** 2).sum() + np.linalg.norm(x * Z),
        lambda x: np.angle(x + 1j * x**2).sum() + np.abs((x + 2j) / (x * x - 1j)).sum() + np.sqrt(x + 2j).imag.sum(),
        lambda x: np.where(x > 1, x * Z, x * 1j).imag.sum() + np.abs(np.prod(x * Z)) + np.abs((x * Z) ** -1).sum(),
        lambda x: np.sign(x + 1j * x[::-1]).imag.sum() + np.var(x * Z) + (x * Z)[1:4].conj().imag.sum(),
        lambda x: np.real(np.vdot(x * Z, (x * Z)[::-1])) + np.real(np.vdot((x * Z)[::-1], x * x * Z)),
        by_writes,
        by_a_loop,
    ],
)
def test_gradients_through_complex_numbers(loss):
    step = 1e-6
    slopes = np.array([(loss(TURNS + d) - loss(TURNS - d)) / (2 * step) for d in step * np.eye(7)])
    found = jg.jit(jg.grad(loss))(TURNS)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-6)
    along = np.linspace(-1, 1, 7)
    _, tangent = jg.jit(lambda x: jg.jvp(loss, (x,), (along,)))(TURNS)
    np.testing.assert_allclose(tangent, slopes @ along, rtol=1e-5, atol=1e-6)


def test_gradients_need_real_inputs_and_results():
    with pytest.raises(jg.errors.JitgraphError):
        jg.grad(lambda z: np.abs(z).sum())(Z)
    with pytest.raises(jg.errors.JitgraphError):
        jg.grad(lambda x: (x * 1j).sum())(TURNS)


def test_a_chain_is_one_kernel_of_whole_vectors():
    text = jg.jit(lambda z, c: (z * z + c) * np.conj(z)).inspect_ir(numbers(100), numbers(100), stage="llvm")
    assert text.count("define internal i32 @k") == text.count("define internal i32 @k0") == 2  # and a piece for threads
    assert "gather" not in text


def equalities(x):
    values = x[0], x[0].item(), np.float32(x[0].real), complex(x[0]), x
    constants = (1j, 2 + 0j, True, 2.5, np.float32(2), np.complex64(1j), np.True_, np.float64(2))
    return [(c == v, c != v, v == c, v != c) for v in values for c in constants]


def orders(x):
    values = x[0].real, float(x[0].real), np.float32(x[0].real)
    constants = (True, 3, 2.5, np.float32(2), np.int8(2), np.float64(2))
    return [(c < v, c <= v, v > c, v >= c, c < v <= c) for v in values for c in constants]


@pytest.mark.parametrize("dtype", ["f8", "c16", "c8", "i8"])
@pytest.mark.parametrize("f", [equalities, orders])
def test_comparisons_with_constants_have_python_s_kinds(f, dtype):
    """`1j == x[0]` asks the complex number, to which np.float64 is a float: it answers Python's bool."""
    x = np.array([2, 0, 3]).astype(dtype)
    found, expected = jg.jit(f)(x), f(x)
    assert [[type(a) for a in row] for row in found] == [[type(a) for a in row] for row in expected]
    assert str(found) == str(expected)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 1j < x[0].item(), lambda x: x[0].item() < 1j, lambda x: 2.5 >= complex(x[0]),  # noqa: SIM300
        lambda x: x[0].item() << 1,
        lambda x: 3 | x[0].item(), lambda x: x[0].item() @ 3, lambda x: complex(x[0]) // 2, lambda x: np.float32(2) @ x[0],
    ],
)  # fmt: skip
def test_operators_that_python_refuses(f):
    x = np.array([2.0, 3.0])
    with pytest.raises(TypeError) as wanted:
        f(x)
    with pytest.raises(TypeError) as found:
        jg.jit(f)(x)
    assert str(found.value).split("\n")[0] == str(wanted.value)
