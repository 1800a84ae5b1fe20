"""Views and writes against NumPy: results, arguments, memory that is shared; what is done in place."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from tests.e2e import view_cases, write_cases


def run(function, arguments):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return None, function(*arguments)
        except Exception as error:  # noqa: BLE001  # any exception is an outcome
            return error, None


def difference(a, b) -> str:
    """What differs between two results: type, dtype, sizes, strides, flags, bits."""
    if type(a) is not type(b):
        return f"type: {type(a)} {type(b)}"
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return "length"
        return next((found for x, y in zip(a, b, strict=True) if (found := difference(x, y))), "")
    if not isinstance(a, np.ndarray | np.generic):
        return "" if a == b or a != a else f"{a!r} {b!r}"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape} {b.dtype}{b.shape}"
    if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
        return f"values: {a} {b}"
    if isinstance(a, np.ndarray) and a.size > 1 and a.strides != b.strides:
        return f"strides: {a.strides} {b.strides}"
    if isinstance(a, np.ndarray) and a.flags.writeable != b.flags.writeable:
        return f"writeable: {a.flags.writeable} {b.flags.writeable}"
    return ""


def sharing(result, arguments):
    """Which of results and arguments share memory, and which are the same object."""
    results = result if isinstance(result, list | tuple) else [result]
    arrays = [x for x in (*arguments, *results) if isinstance(x, np.ndarray) and x.size]
    return [(np.shares_memory(x, y), x is y) for k, x in enumerate(arrays) for y in arrays[:k]]


def check(function, make) -> None:
    """The same outcome as NumPy's, at the first call and at the next."""
    mine, theirs, again = make(), make(), make()
    error, result = run(function, mine)
    jitted = jg.jit(function)
    for arguments in (theirs, again):
        found_error, found = run(jitted, arguments)
        if error is None:
            assert found_error is None, found_error
            assert difference(result, found) == ""
            assert sharing(found, arguments) == sharing(result, mine)
        else:
            kind = next(c for c in type(error).__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))
            assert isinstance(found_error, kind), f"{error!r} {found_error!r}"
        assert difference(tuple(mine), tuple(arguments)) == ""


@pytest.mark.parametrize("name", list(view_cases.CASES))
def test_views(name):
    check(*view_cases.CASES[name])


@pytest.mark.parametrize("name", list(write_cases.CASES))
def test_writes(name):
    if name == "cplx-0" and np.lib.NumpyVersion(np.__version__) < "2.4.0":
        pytest.skip("the class of the error differs")
    check(*write_cases.CASES[name])


def by_mask(x, v):
    x[x > 0] = v[v > 5]


def by_mask_part(x, v):
    x[x > 0] = v[3:]


def by_mask_twice(x, v):
    y = x[x > -1]
    y[y > 0] = v[v > 5]
    return y


@pytest.mark.parametrize("function", [by_mask, by_mask_part, by_mask_twice])
def test_one_value_or_as_many_as_a_mask_chooses(function):
    jitted = jg.jit(function)
    kinds = set()
    for v in ([6.0, 7, 8, 9, 10, 11], [9.0, 1, 1, 8], [1.0, 1, 1, 6], [1.0, 1, 2], [6.0, 6, 6, 1, 2]):
        for x in (np.arange(-1.0, 4), np.arange(-1.0, 2), np.arange(-3.0, 0), np.zeros(0)):
            mine, theirs = (x.copy(), np.array(v)), (x.copy(), np.array(v))
            (error, result), (found_error, found) = run(function, mine), run(jitted, theirs)
            assert isinstance(found_error, type(error)), (error, found_error)
            assert difference(result, found) == ""
            assert difference(mine, theirs) == ""
            kinds.add(type(error))
    assert kinds == {type(None), ValueError}


def flat_every_other(x):
    f = x.reshape(-1)
    f[::2] = 0


def flat_plus(x):
    f = x.reshape(-1)
    f += 1


def flat_neighbours(x):
    f = x.reshape(-1)
    f[1::2] += f[::2]


def ravel_part(x):
    x.ravel()[1:] = 7


def flat_loop(x):
    f = x.reshape(-1)
    for i in range(24):
        f[i] = f[i - 1] + 1


def flat_again(x):
    f = x.reshape(2, 12)
    for i in range(100):
        f *= 0.5
        f += i


def columns(x):
    x[:, ::2] *= 2
    x[:, 1::2] = x[:, ::2]


@pytest.mark.parametrize(
    "f", [flat_every_other, flat_plus, flat_neighbours, ravel_part, flat_loop, flat_again, columns]
)
def test_in_place(f):
    x = np.arange(24.0).reshape(4, 6)
    check(f, lambda: (x.copy(),))
    report = jg.jit(f).explain(x.copy())
    assert report.copies == []
    assert report.temporaries == []


def test_what_overlaps_is_read_first():
    def f(x):
        flat = x.reshape(-1)
        flat[1:] = flat[:-1]

    x = np.arange(24.0).reshape(4, 6)
    check(f, lambda: (x.copy(),))
    assert jg.jit(f).explain(x.copy()).copies == []


@pytest.mark.parametrize("columns", [6, 5])
def test_a_strided_reshape_is_a_view_for_some_sizes(columns):
    """One function, both kinds of sizes: guards tell them apart."""

    def f(x):
        y = x[:, ::2].reshape(-1)
        y[1] = 9
        return y

    jitted = jg.jit(f)
    for n in (4, 7):
        for m in (columns, 11 - columns):
            a, b = np.arange(1.0 * n * m).reshape(n, m), np.arange(1.0 * n * m).reshape(n, m)
            first, second = f(a), jitted(b)
            assert difference((first, a), (second, b)) == ""
            assert np.shares_memory(first, a) == np.shares_memory(second, b)


@pytest.mark.parametrize(
    "seen",
    [
        lambda x: x[::2].reshape(-1),
        lambda x: x[:, None, ::2].reshape(2, -1),
        lambda x: x[::-1, None][::2].reshape(-1),
        lambda x: x[1:2, :3][None].reshape(-1, 2),
        lambda x: x.T[::2].reshape(x.shape[0], -1),
    ],
)
def test_a_reshape_of_axes_of_one_element_is_a_view(seen):
    """Axes that turn out to have one element do not part the others."""
    jitted = jg.jit(seen)
    for shape in [(5, 4), (2, 2), (2, 4), (4, 2), (2, 6), (6, 1), (1, 6)]:
        for order in "CF":
            a, b = (np.arange(1.0 * shape[0] * shape[1]).reshape(shape, order=order) for _ in "ab")
            try:
                first = seen(a)
            except ValueError:
                continue
            second = jitted(b)
            assert difference((first, a), (second, b)) == ""
            assert np.shares_memory(first, a) == np.shares_memory(second, b)


def test_what_only_strides_decide_is_guarded():
    """`x[:, ::2].reshape(-1)` of strided arguments: a copy for most strides; where it is a view, Python writes to it."""
    make = lambda columns, taken: np.arange(4.0 * columns).reshape(4, columns)[:, :taken]

    def write(x):
        y = x[:, ::2].reshape(-1)
        y[0] = 1
        return y

    def read(x):
        return x[:, ::2].reshape(-1) + 1

    check(write, lambda: (make(9, 4),))
    check(read, lambda: (make(6, 5),))
    jitted = jg.jit(write)
    jitted(make(9, 4))
    x, y = make(6, 5), make(6, 5)
    with pytest.warns(UserWarning, match="copy it first"):
        jitted(x)
    write(y)
    np.testing.assert_array_equal(x, y)
    text = print_graph(jitted.graph(make(9, 4)))
    assert "stride0 = arg(0, -1)" in text
    assert print_graph(parse(text)) == text


def test_windows():
    windows = np.lib.stride_tricks.sliding_window_view

    def total(x):
        return windows(x, 3, axis=1).sum(-1), windows(x, (2, 2)).max(axis=(2, 3))

    def write(x):
        windows(x, 2, axis=1)[0] = 1

    def later(x):
        w = windows(x, 2, axis=1)
        x[0] = 5
        return w.sum()

    x = np.arange(24.0).reshape(4, 6)
    check(total, lambda: (x.copy(),))
    check(write, lambda: (x.copy(),))
    with pytest.warns(UserWarning, match="share memory"):
        assert jg.jit(later)(x.copy()) == later(x.copy())


UFUNCS = [np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.divide, np.power, np.hypot, np.arctan2, np.fmod]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_at(ufunc, dtype):
    index = np.array([0, 2, 2, -1, 0])

    def f(x, y):
        ufunc.at(x, index, y)

    x, y = np.arange(1, 6).astype(dtype), np.arange(1, 6).astype(dtype)
    a, b = x.copy(), x.copy()
    run(f, (a, y))
    run(jg.jit(f, numerics="numpy"), (b, y))
    np.testing.assert_allclose(a, b, rtol=1e-6)
    if ufunc in (np.add, np.subtract, np.multiply, np.maximum, np.minimum):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("ufunc", [np.negative, np.square, np.absolute, np.reciprocal], ids=lambda u: u.__name__)
def test_at_of_one_operand(ufunc):
    def f(x, i):
        ufunc.at(x, i)

    check(f, lambda: (np.arange(1.0, 6.0), np.array([1, 1, 3])))


def test_at_refuses_what_numpy_refuses():
    def second(x):
        np.add.at(x, [0])

    def one_too_many(x):
        np.negative.at(x, [0], 3)

    def shapes(x):
        np.add.at(x, [0, 1], [1, 2, 3])

    def outside(x):
        np.add.at(x, [9], 1)

    for f in (second, one_too_many, shapes, outside):
        check(f, lambda: (np.arange(4.0),))


def test_out_and_where():
    def out_is_checked(x):
        np.add(x, 1, out=np.zeros(3))

    def out_twice(x):
        np.add(x, 1, x, out=x)

    def two_outs(x):
        np.add(x, 1, out=(x, x))

    def unknown(x):
        np.add(x, 1, outt=x)

    def wide_where(x):
        np.add(x, 1, out=x, where=np.ones((2, 4), bool))

    def wide_out(x):
        o = np.zeros((2, 4))
        np.add(x, 1, out=o, where=np.array([[True], [False]]))
        return o

    def order(x):
        return np.add(x.reshape(2, 2), 1, order="F"), np.add(x.reshape(2, 2).T, 1, order="C")

    def signature(x):
        return np.add(x, 1, signature="ff->f", casting="unsafe"), np.multiply(x, 2, dtype=np.float32)

    def listed(x):
        np.add(x, 1, out=x, where=[1, 0, 1, 0])

    for f in (out_is_checked, out_twice, two_outs, unknown, wide_where, wide_out, order, signature, listed):
        check(f, lambda: (np.arange(4.0),))


def test_flat():
    def loop(x):
        total = 0.0
        for v in x.flat:
            total += v
        return total

    def numbered(x):
        for k, v in enumerate(x.flat):
            x.flat[k] = v * k

    def functions(x):
        return np.sum(x.flat), np.add(x.flat, 1), len(x.flat), list(x.flat)[3], max(x.flat)

    def masked(x):
        x.flat[x.flat[:] > 3] = [-1, -2]
        return x.flat[np.array([1, 2])], x.flat[-1]

    for f in (loop, numbered, functions, masked):
        for x in (
            np.arange(12.0).reshape(3, 4),
            np.asfortranarray(np.arange(12.0).reshape(3, 4)),
            np.arange(24.0).reshape(4, 6)[1:, ::2],
        ):
            check(f, lambda x=x: (x.copy("K"),))


def test_numbers_have_to_fit_integers():
    def number(x, v):
        x[0] = v

    def part(x, v):
        x[1:] = v

    def chosen(x, v):
        x[[0, 1]] = v

    for f in (number, part, chosen):
        for v in (3.7, float("nan"), float("inf"), 1e30, 300.0, -1.0, np.float64(5.5), np.float32(2.5)):
            check(f, lambda v=v: (np.zeros(4, np.int8), v))


def test_an_array_gets_another_shape():
    def fresh(x):
        y = x.copy()
        z = y
        y.shape = (6, 2)
        y[0] = 1
        z.shape = -1
        return y, y.shape[0]

    def view(x):
        y = x[1:]
        y.shape = (2, -1)
        y[1] = 7
        return y.ndim

    def impossible(x):
        y = x.copy().T
        y.shape = 12

    def argument(x):
        x.shape = 12

    for f in (fresh, view, impossible):
        check(f, lambda: (np.arange(12.0).reshape(3, 4),))
    with pytest.raises(jg.errors.TraceError, match=r"assignment to \.shape"):
        jg.jit(argument)(np.arange(12.0).reshape(3, 4))


def test_arguments_that_overlap_or_are_one():
    def f(a, b):
        a += 1
        b[0] = 5
        return a[:3] - b[:3]

    def one():
        x = np.arange(10.0)
        return x, x

    def overlapping():
        x = np.arange(10.0)
        return x[:6], x[3:]

    check(f, one)
    check(f, overlapping)


def test_a_write_of_nothing_keeps_the_one_element() -> None:
    """A new array of one element, seen through a view that may turn out to be empty."""

    def from_itself(a: np.ndarray) -> np.ndarray:
        v = np.asarray(4)[None]
        v[1:] = v[1::2]
        return v

    def front(a: np.ndarray) -> np.ndarray:
        v = np.asarray(2.0)[None]
        v[: a.shape[0] - 3] = 9.0
        return v

    def back(a: np.ndarray) -> np.ndarray:
        v = np.asarray(2.0)[None]
        v[a.shape[0] - 3 :] = 9.0
        return v

    for plain in (from_itself, front, back):
        for size in (3, 4):
            np.testing.assert_array_equal(jg.jit(plain)(np.ones(size)), plain(np.ones(size)))


@pytest.mark.parametrize("ufunc", [np.matmul, np.vecdot])
def test_at_of_products_of_vectors_is_refused(ufunc: np.ufunc) -> None:
    def f(x, i, y):
        ufunc.at(x, i, y)

    for g in (f, jg.jit(f)):
        with pytest.raises(TypeError, match="does not support ufunc with non-trivial signature"):
            g(np.ones((2, 3, 3)), np.array([0]), np.ones((1, 3, 3)))
