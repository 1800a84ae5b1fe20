"""Bad input to a jitted function: NumPy's exception class, and the full text: what is wrong, the user's line, a remedy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errors
from jitgraph.dtypes import COMPILED_TEXT

V = np.arange(7.0) - 3
X = np.arange(12.0).reshape(3, 4)


@jg.jit
def double(x, y=2):
    return x * y


def text_of(error, f, *args, **kwargs):
    """What a traceback shows: the message and the notes."""
    with pytest.raises(error) as info:
        f(*args, **kwargs)
    return "\n".join([str(info.value), *getattr(info.value, "__notes__", ())])


def numbered(text):
    """The text without line numbers."""
    parts = text.split("test_errors.py:")
    return "test_errors.py:".join([parts[0], *(p.lstrip("0123456789") for p in parts[1:])])


DTYPES = {
    "object": (np.array([1, None], object), "convert it before the call, e.g. x.astype(float), or use @jit(fallback='eager')."),
    "<U1": (np.array(["a"]), "convert it before the call, e.g. x.astype(float), or use @jit(fallback='eager')."),
    "|S1": (np.array([b"a"]), "convert it before the call, e.g. x.astype(float), or use @jit(fallback='eager')."),
    "datetime64[D]": (np.array(["2020-01-01"], "M8[D]"), "pass its numbers: x.astype('int64')."),
    "timedelta64[s]": (np.array([1], "m8[s]"), "pass its numbers: x.astype('int64')."),
    "[('a', '<f4')]": (np.zeros(3, [("a", "f4")]), "pass its fields as arguments: x['a']."),
    "complex256": (np.zeros(3, np.clongdouble), "convert it before the call, e.g. x.astype(float), or use @jit(fallback='eager')."),
    "float128": (np.zeros(3, np.longdouble), "convert it before the call, e.g. x.astype(float), or use @jit(fallback='eager')."),
    "datetime64[Y]": (np.datetime64("2020"), "pass its numbers: x.astype('int64')."),
}  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_that_are_not_compiled(name):
    x, remedy = DTYPES[name]
    text = text_of(TypeError, double, x)
    assert numbered(text) == (
        f"argument x has dtype {name}, which is not supported (supported: {COMPILED_TEXT})\n"
        f"  test_errors.py:, in double:    def double(x, y=2):\n  To mend: {remedy}"
    )
    assert issubclass(errors.UnsupportedDTypeError, errors.TraceError)
    assert issubclass(errors.UnsupportedDTypeError, errors.DTypeError)


def test_subclasses_of_ndarray():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = np.matrix([[1.0, 2.0]])
    assert numbered(text_of(TypeError, double, matrix)) == (
        "argument x is a matrix, a subclass of ndarray with rules of its own, which is not supported\n"
        "  test_errors.py:, in double:    def double(x, y=2):\n  To mend: pass np.asarray(x)."
    )
    text = text_of(TypeError, double, np.ma.array([1.0, 2.0], mask=[False, True]))
    assert text.startswith("argument x is a masked array, which is not supported\n")
    assert text.endswith("  To mend: pass x.filled(...) and x.mask.")
    table = matrix

    @jg.jit
    def product(x):
        return x @ table

    assert numbered(text_of(TypeError, product, np.ones(1))) == (
        "table is a matrix, a subclass of ndarray with rules of its own, which is not supported\n"
        "  test_errors.py:, in product:    def product(x):\n  To mend: use np.asarray(table)."
    )


def test_fallback_runs_what_is_not_compiled_in_python():
    f = jg.jit(double.__wrapped__, fallback="eager")
    with pytest.warns(UserWarning, match="runs in plain Python: argument x has dtype float128"):
        np.testing.assert_array_equal(f(np.array([1, 2], np.longdouble)), np.array([2, 4], np.longdouble))


ARITY = {
    "missing a required argument: 'x'": ((), {}),
    "too many positional arguments": ((V, 1, 2), {}),
    "got an unexpected keyword argument 'z'": ((V,), {"z": 1}),
    "multiple values for argument 'x'": ((V,), {"x": V}),
}


@pytest.mark.parametrize("what", ARITY)
def test_arity(what):
    args, kwargs = ARITY[what]
    with pytest.raises(TypeError):
        double.__wrapped__(*args, **kwargs)
    assert numbered(text_of(TypeError, double, *args, **kwargs)) == (
        f"double() {what}\n  test_errors.py:, in double:    def double(x, y=2):\n"
        "  To mend: call it with the parameters of its signature."
    )


def test_shapes():
    def add(x, w):
        return x + w

    assert numbered(text_of(ValueError, jg.jit(add), V, np.ones(3))) == (
        "x + w: operands could not be broadcast together with shapes (7,) (3,)\n"
        "  test_errors.py:, in add:    return x + w\n  x: f64[n]\n  w: f64[m]\n"
        "  To mend: make the sizes equal, or 1 where an axis is to be repeated (x[:, np.newaxis])."
    )


BAD = {
    "axis": (np.exceptions.AxisError, lambda x: x.sum(axis=3)),
    "index": (IndexError, lambda x: x[9]),
    "too many indices": (IndexError, lambda x: x[0, 0, 0]),
    "reshape": (ValueError, lambda x: x.reshape(5, -1)),
    "matmul": (ValueError, lambda x: x @ x),
    "concatenate": (ValueError, lambda x: np.concatenate([x, x.T])),
    "negative powers": (ValueError, lambda x: x.astype(int) ** -1),
    "empty extreme": (ValueError, lambda x: x[:0].max()),
    "assignment": (ValueError, lambda x: x.__setitem__(0, np.ones(9))),
    "float index": (IndexError, lambda x: x[1.5]),
    "truth of an array": (ValueError, lambda x: 1 if x > 0 else 2),
    "write to a broadcast": (ValueError, lambda x: np.broadcast_to(x, (2, 3, 4)).__setitem__(0, 1.0)),
    "out of a shape that does not fit": (ValueError, lambda x: np.add(x, x, out=x[0])),
    "out of a dtype that does not fit": (TypeError, lambda x: np.add(x, 0.5, out=x.astype(int))),
    "unknown keyword": (TypeError, lambda x: np.sum(x, axes=0)),
    "string": (TypeError, lambda x: x + "a"),
    "None": (TypeError, lambda x: x + None),
}


@pytest.mark.parametrize("name", BAD)
def test_numpys_exception_class_and_the_users_line(name):
    error, f = BAD[name]
    with pytest.raises(error):
        f(X.copy())
    with pytest.raises(error) as info:
        jg.jit(f)(X.copy())
    frames = [info.traceback[k] for k in range(len(info.traceback))]
    assert "test_errors.py" in str(info.value) or any(
        "test_errors.py" in str(t.path) and t.name == "<lambda>" for t in frames
    )
    assert str(info.value).split("\n")[0]


def test_an_error_that_depends_on_data_names_the_line_and_keeps_earlier_writes():
    def f(x, i):
        x[0] = 7.0
        y = x[i]
        x[1] = 8.0
        return y

    a, b = V.copy(), V.copy()
    with pytest.raises(IndexError):
        f(a, 99)
    text = text_of(IndexError, jg.jit(f), b, 99)
    assert numbered(text) == "index 99 is out of bounds for axis 0 with size 7\n  test_errors.py:, in f:    y = x[i]"
    np.testing.assert_array_equal(a, b)


def test_a_rerun_after_a_visible_write():
    """The call is rerun in Python if that can be known in time; otherwise it raises at the user's line."""

    def early(x, u, k):
        x += 1
        return u & k

    def late(x, u):
        for i in range(x.shape[0]):
            x[i] += 1
            u = u + (i - 2)
        return u

    u, x, y = np.ones(3, "u4"), V.copy(), V.copy()
    assert text_of(OverflowError, jg.jit(early), x, u, -1) == "Python integer -1 out of bounds for uint32"
    np.testing.assert_array_equal(x, V + 1)  # once, not twice
    with pytest.raises(OverflowError):
        late(y, u)
    x = np.arange(13.0)
    text = text_of(OverflowError, jg.jit(late), x, u)
    assert numbered(text) == (
        "Python integer -2 out of bounds for uint32; the call cannot be rerun in Python, for arrays of the caller's may have "
        "been written (use NumPy numbers, np.int64(k))\n  test_errors.py:, in late:    u = u + (i - 2)"
    )
    np.testing.assert_array_equal(x, np.r_[1.0, np.arange(1.0, 13)])


def test_functions_that_are_none():
    async def coroutine(x):
        return x

    def generator(x):
        yield x

    for f, what in ((coroutine, "coroutine returns a coroutine"), (generator, "generator returns a generator")):
        text = text_of(errors.TraceError, jg.jit(f), V)
        assert text.startswith(f"{what}, whose body would run after the trace\n")
        assert "To mend: jit a plain function that returns arrays" in text
    with pytest.raises(TypeError, match="jit takes a function, got int"):
        jg.jit(3)
    with pytest.raises(ValueError, match="numerics: 'fast' is none of 'default', 'numpy'"):
        jg.jit(numerics="fast")(double)
    with pytest.raises(ValueError, match="fastmath: no flag 'fast'"):
        jg.jit(fastmath={"fast"})


def test_without_source_a_traced_test_is_refused_with_a_remedy():
    space = {}
    exec("def g(x):\n    return x + 1 if x[0] > 0 else x", space)
    text = text_of(errors.TraceError, jg.jit(space["g"]), V)
    assert text.startswith("Python needs the truth of a traced value (np.bool)\n")
    assert "an `if` in a function whose source is at hand" in text


class RefusedError(Exception):
    def __init__(self, text, values):
        super().__init__(text)
        self.values = values


def checked(x):
    if x.max() > 3:
        raise RefusedError("too large", [x.max()])
    return x


@jg.jit
def users_errors(x, limit):
    y = checked(x) * 2
    for k in range(len(x)):
        if y[k] > limit:
            raise ValueError(f"bad {k}")
    return y


@pytest.mark.parametrize(
    ("x", "limit", "error", "text"),
    [
        (
            [1.0, 4.0],
            9,
            RefusedError,
            'too large\n  test_errors.py:, in checked:    raise RefusedError("too large", [x.max()])',
        ),
        ([1.0, 2.0], 3, ValueError, 'bad 1\n  test_errors.py:, in users_errors:    raise ValueError(f"bad {k}")'),
    ],
)
def test_errors_of_the_user_name_their_line_in_a_note(x, limit, error, text):
    """The message and attributes are the user's own; the line comes behind, once, in each call."""
    for _ in range(2):
        assert numbered(text_of(error, users_errors, np.array(x), limit)) == text
    with pytest.raises(RefusedError) as info:
        users_errors(np.array([4.0]), 9)
    assert (info.value.args, info.value.values) == (("too large",), [4.0])
