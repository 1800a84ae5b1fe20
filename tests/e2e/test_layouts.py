"""Arguments in every layout: byte-swapped, unaligned, fields, mapped files, up to 64 axes; what is refused."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest

import jitgraph as jg
from tests.e2e.test_writes import check, difference


def swapped(a):
    return a.astype(a.dtype.newbyteorder("S"))


def unaligned(a):
    bytes_ = np.frombuffer(bytearray(a.nbytes + 1), np.uint8)
    made = bytes_[1:].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made


def field(a):
    records = np.zeros(a.shape, dtype=[("p", "i1"), ("v", a.dtype)])
    records["v"] = a
    return records["v"]


LAYOUTS = {
    "swapped": swapped,
    "swapped-F": lambda a: np.asfortranarray(swapped(a)),
    "swapped-strided": lambda a: swapped(a)[::-1, ::2],
    "unaligned": unaligned,
    "unaligned-T": lambda a: unaligned(a).T,
    "field": field,
    "swapped-field": lambda a: field(swapped(a)),
    "negative": lambda a: a.copy()[::-1, ::-2],
}


def arithmetic(x):
    return x + x, x * 2, -x, x[0, 0] + 1, x.sum(0), np.where(x == 2, x, 0)


def views(x):
    return (
        x.T,
        x[1:],
        x.reshape(-1),
        x.ravel(),
        x[::-1].copy(),
        x.flatten(),
        x[0],
        x.astype(np.complex128),
        x.astype(x.dtype),
    )


def dtypes(x):
    return x.dtype.str, str(x.dtype), np.zeros(3, x.dtype), np.zeros_like(x), np.full_like(x, 2), x[0, 0].dtype.str


def moved(x):
    return (
        x[[1, 0]],
        x[x == 2],
        np.take(x, [0, 2], axis=1),
        x[1, ...],
        np.concatenate([x, x]),
        np.roll(x, 1),
        np.tile(x, 2),
    )


def in_place(x):
    x += 1
    x[1:] *= 2
    x[:, 0] = 7
    x[[0, 1]] = x[[1, 0]]
    x.reshape(-1)[::2] = 5
    np.add(x, 1, out=x)
    x[x == 6] = 0
    np.add.at(x, [0, 0], 1)
    return x


def controlled(x):
    total = x[0].copy()
    for i in range(100):
        total = total + x[i % 3]
        x[0] = total
    if x[0, 1].real > 0:
        x[0] = 5
    else:
        x[0] = 6
    return total, x * 2


FUNCTIONS = [arithmetic, views, dtypes, moved, in_place, controlled]
FLOATS = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_float64(f, layout):
    check(f, lambda: (LAYOUTS[layout](FLOATS),))


@pytest.mark.parametrize(
    "dtype",
    [np.int16, np.uint32, np.float16, np.float32, np.complex64, np.complex128, np.int8, np.bool_],
    ids=lambda t: t.__name__,
)
@pytest.mark.parametrize("f", [views, in_place], ids=lambda f: f.__name__)
def test_other_dtypes(f, dtype):
    if dtype is np.bool_ and f is in_place:
        pytest.skip("bools are not counted up")
    for layout in ("swapped", "swapped-field"):
        check(f, lambda layout=layout: (LAYOUTS[layout](FLOATS.astype(dtype)),))


@pytest.mark.parametrize("layout", ["swapped", "unaligned", "unaligned-T"])
@pytest.mark.parametrize("shape", [(20000,), (9000, 3), (50, 20, 30)])
def test_sums_go_through_the_buffer(layout, shape):
    """NumPy copies such arrays piece by piece, which its rounding shows."""
    x = np.random.default_rng(0).standard_normal(shape)

    def sums(x):
        return x.sum(), x.sum(0), x.mean(-1), x.var(), x.prod(0), np.sum(x, dtype=np.float32)

    check(sums, lambda: (LAYOUTS[layout](x),))


@pytest.mark.parametrize(
    "shape", [(1,) * 32, (1,) * 64, (2,) * 12, (1,) * 60 + (2,) * 4, (2,) * 4 + (1,) * 60, (2, 1) * 5 + (1,) * 54]
)
def test_many_axes(shape):
    def f(x):
        y = x + x.T
        x += x[::-1]
        return y, x.sum(), x.sum(0), x.reshape(-1) * 2, x.T[0].copy()

    x, y = (np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape) for _ in range(2))
    for a, b in zip((*f(x), x), (*jg.jit(f)(y), y), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
        real = [k for k, d in enumerate(np.shape(a)) if d != 1]  # NumPy's strides of axes of size 1 are not kept
        assert [a.strides[k] for k in real] == [b.strides[k] for k in real]


def mapped(mode="w+"):
    with tempfile.NamedTemporaryFile() as file:
        made = np.memmap(file.name, float, "w+", shape=(3, 4))
        made[...] = np.arange(12.0).reshape(3, 4)
        made.flush()
        return made if mode == "w+" else np.memmap(file.name, float, mode, shape=(3, 4))


def test_mapped_files():
    """Results of functions are plain arrays, views are of the mapped file."""

    def f(x):
        x += 1
        x[0] = x[1]
        return x, x[1:], x.T, x + 1, x.sum(), x.sum(0), x[x > 3], x.reshape(-1)

    check(f, lambda: (mapped(),))

    def write(x):
        x[0] = 1

    check(write, lambda: (mapped("r"),))


class Tagged(np.ndarray):
    """A subclass with rules of its own."""

    def __array_finalize__(self, obj):
        self.tag = getattr(obj, "tag", None)


REFUSED = {
    "subclass": lambda: np.arange(4.0).view(Tagged),
    "matrix": lambda: np.matrix([[1.0, 2.0]]),
    "masked": lambda: np.ma.array([1.0, 2.0], mask=[0, 1]),
    "records": lambda: np.rec.array([(1, 2.0)], dtype=[("a", int), ("b", float)])["a"].view(np.recarray),
    "structured": lambda: np.zeros(2, dtype=[("a", int)]),
    "objects": lambda: np.array([1, 2], object),
    "text": lambda: np.array(["a", "b"]),
    "bytes": lambda: np.array([b"a"]),
    "dates": lambda: np.array(["2020-01-01"], "M8[D]"),
    "spans": lambda: np.array([1], "m8[s]"),
    "longdouble": lambda: np.arange(3, dtype=np.longdouble),
    "clongdouble": lambda: np.arange(3, dtype=np.clongdouble),
    "strings": lambda: np.array(["a"], np.dtypes.StringDType()),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("name", list(REFUSED))
def test_what_compiled_code_cannot_hold_is_refused_or_runs_in_python(name):
    def f(x):
        return x[:1]

    with pytest.raises(jg.errors.JitgraphError, match="argument x"):
        jg.jit(f)(REFUSED[name]())
    with pytest.warns(UserWarning, match="plain Python"):
        found = jg.jit(f, fallback="eager")(REFUSED[name]())
    expected = f(REFUSED[name]())
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert str(found) == str(expected)


def test_such_arrays_in_structures_are_named():
    def f(items):
        return items["a"][0]

    with pytest.raises(jg.errors.JitgraphError, match=r"argument items.*object"):
        jg.jit(f)({"a": [np.array([None], object)]})


def test_text_of_types():
    """Byte order and alignment are part of the type, and of the text that is parsed back."""
    from jitgraph.ir.parser import parse
    from jitgraph.ir.printer import print_graph

    def f(x, y):
        x[1:] = y
        return x[1:] + y

    text = print_graph(jg.jit(f).graph(swapped(FLOATS), unaligned(FLOATS[:3])))
    assert "f64be[" in text or "f64le[" in text
    assert "unaligned(" in text
    assert print_graph(parse(text)) == text


def test_one_specialisation_for_each_layout():
    def f(x):
        return x * 2

    jitted = jg.jit(f)
    for layout in ("swapped", "unaligned", "swapped", "unaligned"):
        assert difference(f(LAYOUTS[layout](FLOATS)), jitted(LAYOUTS[layout](FLOATS))) == ""
    assert jitted.cache_info().misses == 2


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">i4", "<f4"])
def test_an_element_read_behind_its_write_has_the_byte_order_of_a_scalar(dtype):
    def f(x):
        total = 1
        for i in range(x.shape[0] - 1):
            x[i, ...] += 1
            total = np.prod(x, dtype=np.float64) + x[i]
        return total

    x, y = np.arange(1, 8).astype(dtype), np.arange(1, 8).astype(dtype)
    wanted, got = f(x), jg.jit(f)(y)
    assert type(got) is type(wanted)
    assert got == wanted
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">f2", ">i4", ">i2"])
def test_masks_select_of_swapped_arrays_without_vector_compress(dtype):
    def f(x):
        return x[x > 2], np.compress(x > 2, x), np.delete(x, slice(None, None, 2))

    x = np.arange(6).astype(dtype)
    with jg.config.override(cpu="x86-64-v3", cache=False):
        assert difference(f(x), jg.jit(f)(x)) == ""
