"""Every operator through machine code against eager NumPy: dtypes x layouts x special values.

Operators of one kind share a function, so that each dtype and layout is one compile. Bits must agree where they are
promised; other float functions are held to their bound from the true value, estimated in a wider format.
"""

from __future__ import annotations

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.ir.opdef import REGISTRY
from tests.strategies import DTYPES, FLOATS, INTEGERS, LAYOUTS, array, assert_same_bits, ulp_distance

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
EVERY = pytest.mark.parametrize("layout", LAYOUTS)
BY_DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=str)

UNARY_ANY = [np.abs, np.square, np.logical_not, np.positive]
UNARY_FLOAT = [
    np.floor,
    np.ceil,
    np.trunc,
    np.rint,
    np.sqrt,
    np.isnan,
    np.isinf,
    np.isfinite,
    np.signbit,
    np.reciprocal,
]
BINARY_ANY = [
    np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.equal, np.not_equal, np.less, np.less_equal,
    np.greater, np.greater_equal, np.logical_and, np.logical_or, np.logical_xor,
]  # fmt: skip
BINARY_NUMBER = [np.subtract, np.floor_divide, np.remainder, np.fmod]
BINARY_BITS = [np.bitwise_and, np.bitwise_or, np.bitwise_xor]
SHIFTS = [np.left_shift, np.right_shift]
#: The sign of a zero is not promised for these.
FREE_ZERO = {np.maximum, np.minimum, np.fmax, np.fmin}


def compare(functions, *arrays, what):
    """Run all functions in one compiled function and one by one in NumPy."""

    def many(*xs):
        return [f(*xs) for f in functions]

    expected = many(*arrays)
    got = jg.jit(many)(*arrays)
    for f, a, b in zip(functions, expected, got, strict=True):
        assert type(a) is type(b), (f, type(a), type(b))
        assert_same_bits(b, a, f"{f.__name__} {what}", zero_sign=f not in FREE_ZERO)
        if isinstance(a, np.ndarray) and a.size > 1:
            assert a.strides == b.strides, (f, a.strides, b.strides)


@BY_DTYPE
@EVERY
def test_unary(dtype, layout):
    x = array(np.random.default_rng(1), dtype, layout)
    functions = list(UNARY_ANY) if dtype.kind != "b" else [np.abs, np.square, np.logical_not]
    if dtype.kind != "b":
        functions += [np.negative, np.sign]
    if dtype.kind == "f":
        functions += UNARY_FLOAT
    if dtype.kind in "iub":
        functions.append(np.invert)
    if layout == "broadcast":
        functions.remove(np.positive) if np.positive in functions else None  # a copy here: its strides differ
    compare(functions, x, what=f"{dtype} {layout}")


@BY_DTYPE
@EVERY
def test_binary(dtype, layout):
    rng = np.random.default_rng(2)
    x, y = array(rng, dtype, layout), array(rng, dtype, layout)
    functions = list(BINARY_ANY)
    if dtype.kind in "iuf":
        functions += BINARY_NUMBER
    if dtype.kind == "c":
        functions.append(np.subtract)
    if dtype.kind in "iub":
        functions += BINARY_BITS
    if dtype.kind in "iu":
        functions += SHIFTS
    if dtype.kind in "fc":
        functions.append(np.true_divide)
    if dtype.kind == "f":
        functions.append(np.copysign)
    compare(functions, x, y, what=f"{dtype} {layout}")


@pytest.mark.parametrize(
    "pair", [("C", "F"), ("strided", "C"), ("negative", "F"), ("broadcast", "strided"), ("permuted", "zero_d")]
)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_mixed_layouts(pair, dtype):
    rng = np.random.default_rng(3)
    x, y = array(rng, dtype, pair[0]), array(rng, dtype, pair[1])
    compare([np.add, np.true_divide, np.less], x, y, what=f"{dtype} {pair}")


@pytest.mark.parametrize("left", DTYPES, ids=str)
def test_promotion_of_all_pairs(left):
    rng = np.random.default_rng(4)
    for right in DTYPES:
        x, y = array(rng, left, special=0.1), array(rng, right, special=0.1)
        with np.errstate(all="ignore"):
            try:
                expected = np.add(x, y)
            except TypeError:
                continue
        got = jg.jit(lambda a, b: np.add(a, b))(x, y)
        assert_same_bits(got, expected, f"{left} + {right}")


@BY_DTYPE
@pytest.mark.parametrize("layout", ["C", "F", "strided", "negative", "empty", "zero_d"])
def test_casts(dtype, layout):
    x = array(np.random.default_rng(5), dtype, layout, special=0.0)
    if dtype.kind == "f":
        x = np.clip(x, -100, 100)
    targets = [d for d in DTYPES if not (dtype.kind == "f" and d.kind == "u")]

    def many(a):
        return [a.astype(t) for t in targets]

    for a, b in zip(many(x), jg.jit(many)(x), strict=True):
        assert_same_bits(b, a, f"{dtype} {layout} to {a.dtype}")


def reduced():
    """Sums over zero strides are excepted. Integers reduce in one way: behind the first layout, half of them in each."""
    for k, layout in enumerate(LAYOUTS):
        for n, dtype in enumerate(DTYPES):
            if layout != "broadcast" and (k == 0 or dtype.kind not in "iu" or (n + k) % 2):
                yield pytest.param(dtype, layout, id=f"{layout}-{dtype}")


@pytest.mark.parametrize(("dtype", "layout"), list(reduced()))
def test_reductions(dtype, layout):
    x = array(np.random.default_rng(6), dtype, layout)
    functions = [np.any, np.all, np.prod, np.sum]
    if x.size:
        functions += [np.max, np.min, np.argmax, np.argmin]
    if dtype.kind == "f" and x.size:
        functions += [np.mean, np.var, np.std]
    axes = [None, *range(x.ndim)]
    if layout == "empty":
        axes = [None, 0, 2]

    def many(a):
        return [f(a, axis=axis) for f in functions for axis in axes]

    for a, b in zip(many(x), jg.jit(many)(x), strict=True):
        assert type(a) is type(b)
        assert_same_bits(b, a, f"reductions {dtype} {layout}", zero_sign=False)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(7,), (1000,), (10000,), (3, 129), (129, 3), (40, 50), (9, 8, 150), (2, 3, 4, 5)])
@pytest.mark.parametrize("layout", ["C", "F", "permuted", "padded", "strided", "negative"])
def test_sums_in_numpys_order(dtype, shape, layout):
    x = array(np.random.default_rng(7), dtype, layout, shape, special=0.0)
    axes = [None, *range(len(shape)), tuple(range(len(shape)))[1:]]

    def many(a):
        return [np.sum(a, axis=axis) for axis in axes] + [np.sum(a * a, axis=axis, keepdims=True) for axis in axes]

    for axis, a, b in zip([*axes, *axes], many(x), jg.jit(many)(x), strict=True):
        assert_same_bits(b, a, f"sum {dtype} {shape} {layout} axis {axis}")


@BY_DTYPE
@pytest.mark.parametrize("layout", ["C", "F", "strided", "negative", "broadcast"])
def test_selection_and_movement(dtype, layout):
    rng = np.random.default_rng(8)
    x, y = array(rng, dtype, layout), array(rng, dtype, layout)
    index = np.array([2, 0, -1, 2])

    def many(a, b, i):
        return [
            np.where(a > b, a, b), np.clip(a, 1, 2), a[1:, ::-1, ::2], a.T, a.reshape(-1), a.ravel(), a[:, None], np.flip(a, 1),
            np.broadcast_to(a, (2, *a.shape)), np.concatenate([a, b], axis=1), np.stack([a, b], axis=-1), np.cumsum(a, axis=1),
            a[a > b], np.take(a, i, axis=0), a[i], a[..., 1], a.swapaxes(0, 2), np.zeros_like(a), np.full(a.shape, 1, a.dtype), a.copy(),
        ]  # fmt: skip

    if dtype.kind == "b":
        return
    for k, (a, b) in enumerate(zip(many(x, y, index), jg.jit(many)(x, y, index), strict=True)):
        assert_same_bits(b, a, f"movement {k} {dtype} {layout}")


FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "arcsin": np.arcsin, "arccos": np.arccos,
    "arctan": np.arctan,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", ["C", "strided", "negative", "zero_d"])
def test_functions_within_their_bound(dtype, layout):
    functions = {k: v for k, v in FUNCTIONS.items() if k in REGISTRY}
    for name, f in functions.items():
        defn = REGISTRY[name]
        x = array(np.random.default_rng(9), dtype, layout, (50, 20), defn.domain, special=0.1)
        got = jg.jit(lambda a, f=f: f(a))(x)
        assert type(got) is type(f(x))
        true = f(x.astype(np.longdouble))
        true = np.where(np.isinf(true.astype(dtype)), true.astype(dtype), true)  # what rounds to infinity is infinity
        off = ulp_distance(got, true, dtype)
        assert np.max(off) <= max(defn.ulp, 1.0) + 0.01, (
            name,
            dtype,
            np.max(off),
            np.asarray(x).ravel()[np.argmax(off)],
        )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_matmul_has_numpys_bits(dtype):
    rng = np.random.default_rng(10)

    def make(*shape):
        return rng.standard_normal(shape).astype(dtype)

    for a, b in [
        (make(5, 7), make(7, 3)), (make(7, 5).T, make(7, 3)), (make(5, 7), make(3, 7).T), (make(7, 5).T, make(3, 7).T), (make(5), make(5)),
        (make(4, 5), make(5)), (make(5), make(5, 4)), (make(2, 3, 4), make(4, 5)), (make(0, 3), make(3, 2)), (make(3, 0), make(0, 2)),
        (make(6, 8)[::2], make(8, 6)[:, ::2]), (make(64, 64), make(64, 64)),
    ]:  # fmt: skip
        assert_same_bits(jg.jit(lambda a, b: a @ b)(a, b), a @ b, f"{a.shape}{a.strides} @ {b.shape}{b.strides}")
    a = make(6, 4)
    assert_same_bits(jg.jit(lambda a: a @ a.T)(a), a @ a.T, "a @ a.T")


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_powers(dtype):
    x = array(np.random.default_rng(11), dtype)
    for p in (0, 1, 2, 3, 7):
        assert_same_bits(jg.jit(lambda a, p=p: a**p)(x), x**p, f"{dtype} ** {p}")
    e = np.abs(array(np.random.default_rng(12), dtype, special=0.0)) % dtype.type(9)
    assert_same_bits(jg.jit(lambda a, b: a**b)(x, e), x**e, f"{dtype} ** array")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_powers_with_numpys_fast_paths(dtype):
    x = np.abs(array(np.random.default_rng(13), dtype))
    for p in (-1, 0, 0.5, 1, 2):
        assert_same_bits(jg.jit(lambda a, p=p: a**p)(x), x**p, f"{dtype} ** {p}")
    x = np.random.default_rng(14).uniform(0.1, 5, 1000).astype(dtype)
    off = ulp_distance(
        jg.jit(lambda a: a**2.4)(x), np.power(x.astype(np.longdouble), np.longdouble(dtype.type(2.4))), dtype
    )
    assert off.max() <= 1.01


def test_sums_of_sizes_that_turn_out_to_be_one():
    """NumPy's order leaves axes of size 1 out: a derived size of 1 is guarded."""
    f = jg.jit(lambda x: (x[1:].sum(axis=1), x[1:].sum(), x[:, 1:].sum(axis=0)))
    for shape in ((2, 3000), (5, 3000), (3000, 2), (2, 2)):
        x = np.random.default_rng(15).standard_normal(shape).astype(np.float32)
        for a, b in zip(f.__wrapped__(x), f(x), strict=True):
            assert_same_bits(b, a, f"{shape}")
