"""What cannot be captured or is wrong: exception class, the user's line, the remedy; calls back into Python."""

import contextlib
import io
import os
import time

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errors
from jitgraph.tracing.capture import trace as trace_function
from jitgraph.tracing.host import Host
from tests.tracing.harness import Jit, check

V, W = np.arange(7.0) - 3, np.arange(7.0) * 0.5
X = np.arange(12.0).reshape(3, 4)


def message(error, fn, *args, **options):
    with pytest.raises(error) as info:
        Jit(fn, **options)(*args)
    return str(info.value)


def test_shapes_that_do_not_fit():
    def f(x, w):
        return x + w

    text = message(errors.ShapeError, f, V, np.ones(3))
    lines = text.split("\n")
    assert lines[0] == "x + w: operands could not be broadcast together with shapes (7,) (3,)"
    assert lines[1].startswith("  test_errors.py:")
    assert lines[1].endswith(", in f:    return x + w")
    assert "  x: f64[n]" in lines
    assert "  w: f64[m]" in lines
    with pytest.raises(ValueError, match="broadcast"):
        Jit(f)(V, np.ones(3))


def test_matmul():
    text = message(ValueError, lambda x, w: x @ w, X, np.ones((3, 2)))
    assert "test_errors.py" in text


def test_bad_axis_and_index():
    assert "test_errors.py" in message(np.exceptions.AxisError, lambda x: x.sum(axis=3), X)
    assert "test_errors.py" in message(IndexError, lambda x: x[0, 0, 0], X)


def test_dtypes():
    assert "argument x has dtype" in message(errors.DTypeError, lambda x: x, V.astype(np.longdouble))
    text = message(TypeError, lambda x: x, np.array(["a", "b"]))
    assert "argument x" in text
    assert "To mend" in text


def test_arity():
    def f(x, y):
        return x

    assert "f() missing a required argument: 'y'" in message(TypeError, f, V)


def test_what_differs_from_call_to_call_is_refused():
    def f(x):
        return x * time.strftime("%S").count("1")

    text = message(errors.TraceError, f, V)
    assert (
        text.split("\n")[0]
        == "time.strftime may give another result at each call; while tracing it would run once and be frozen"
    )
    assert "return x * time.strftime" in text
    assert "jg.host" in text
    assert "urandom" in message(errors.TraceError, lambda x: x + len(os.urandom(2)), V)
    rng = np.random.default_rng(0)
    assert "spawn" in message(errors.TraceError, lambda x: x + rng.spawn(1)[0].normal(size=7), V)


def test_files_are_refused():
    assert "open" in message(errors.TraceError, lambda x: open("nowhere") and x, V)  # noqa: SIM115, PTH123


def test_a_numpy_function_without_an_operator():
    text = message(errors.TraceError, lambda x: np.array2string(x), V)
    assert "its result is text" in text
    assert "jg.host" in text
    assert "np.array2string(x)" in text


def test_an_unknown_array_is_no_constant():
    class Opaque:
        __slots__ = ("items",)

        def __init__(self):
            self.items = {1: np.ones(7)}

        def __iter__(self):
            return iter(self.items.values())

    o = Opaque()
    holder = iter([np.ones(7)])

    def f(x):
        return x + next(holder)

    text = message(errors.TraceError, f, V)
    assert "holder is an iterator from outside" in text
    del o


def test_python_needs_data():
    text = message(errors.TraceError, lambda x: "abc"[x[0]], np.arange(3))
    assert "as an index" in text
    text = message(errors.TraceError, lambda x: f"{x.sum():.3f}", V)
    assert "text of a traced" in text


def test_print_prints_the_type_and_warns(capsys):
    def f(x):
        print("x is", x)
        return x + 1

    with pytest.warns(UserWarning, match="runs once, while it is traced"):
        Jit(f)(V)
    assert capsys.readouterr().out == "x is <traced f64[n]>\n"


def test_an_error_of_the_function_itself():
    def f(x, mode):
        raise LookupError(mode)

    with pytest.raises(LookupError, match="what"):
        Jit(f)(V, "what")


def test_returning_a_function_is_refused():
    def f(x):
        return lambda: x

    assert "returns a function" in message(errors.TraceError, f, V)


def test_returning_an_object_twice_is_refused():
    class Box:
        def __init__(self, x):
            self.x = x

    def f(x):
        box = Box(x)
        return box, box

    assert "a Box that the function made is in its result" in message(errors.TraceError, f, V)


def test_writing_to_a_read_only_argument():
    x = V.copy()
    x.flags.writeable = False

    def f(x):
        x[0] = 1

    assert "read-only" in message(ValueError, f, x)


def test_static_argnames_must_exist():
    with pytest.raises(ValueError, match="mode is no parameter of f"):

        def f(x):
            return x

        Jit(f, static_argnames=("mode",))


def test_user_error_class_in_a_branch():
    class MyError(Exception):
        pass

    def f(x, s):
        if s < 0:
            raise MyError("mine")
        return x * s

    made = Jit(f).trace(V, 1.0)
    (site,) = [s for s in made.graph.sites if s.error == "MyError"]
    assert site.call.kind is MyError
    assert site.call.args == ("mine",)
    assert site.message == "mine"
    assert site.loc.text == 'raise MyError("mine")'


# --- calls back into Python


def test_linear_algebra_is_a_host_call():
    a = np.array([[4.0, 1.0], [2.0, 3.0]])
    b = np.array([1.0, 2.0])
    f = check(
        lambda a, b: (np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.det(a)), (a, b), (np.eye(3) * 2, np.ones(3))
    )
    assert [op.name for op in f.trace(a, b).graph.walk()].count("host_call") == 3


def test_sort_argsort_interp_searchsorted():
    check(lambda x: (np.sort(x), np.argsort(x)), (V[::-1].copy(),), (W[::-1].copy() * 2,))
    check(lambda x, xp, fp: np.interp(x, xp, fp), (V, np.arange(4.0), np.ones(4)), (W, np.arange(5.0), np.arange(5.0)))
    check(lambda a, v: np.searchsorted(a, v), (W, V), (W, V * 0.25))


def test_host_functions_of_the_user():
    calls = []

    def smooth(x, width):
        calls.append(width)
        return np.convolve(x, np.ones(width) / width, mode="same")

    host = Host(smooth, result=lambda x, width: x)
    check(lambda x: host(x * 2, 3) + 1, (V,), (np.arange(9.0),))
    assert calls == [3] * 4


def test_host_with_effects_and_a_wrong_promise():
    out = io.StringIO()
    log = Host(lambda x: print(float(x), file=out), effects=True)

    def f(x):
        log(x.sum())
        return x

    f_ = Jit(f)
    f_(V)
    f_(W)
    assert out.getvalue() == f"{V.sum()}\n{W.sum()}\n"
    wrong = Host(lambda x: x.astype("f4"), result=lambda x: x)
    with pytest.raises(errors.DTypeError, match="returned float32"):
        Jit(lambda x: wrong(x))(V)


def twice(f):
    return f


def test_lines_of_a_decorated_function_are_its_own():
    @twice
    @twice
    def f(x, n):
        for i in range(n):
            x[i] = 1.0

    graph = trace_function(f, (V.copy(), 3), {}).graph
    texts = {op.loc.text for op in graph.walk() if op.loc is not None and op.name in ("write", "for")}
    assert texts == {"for i in range(n):", "x[i] = 1.0"}


@contextlib.contextmanager
def _swallowing():
    try:  # noqa: SIM105  # one of the forms that are tested
        yield
    except Exception:  # noqa: BLE001
        pass


class _Swallowing:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


@pytest.mark.parametrize("around", ["TypeError", "Exception", "BaseException", "suppress", "generator", "context"])
def test_no_handler_of_the_users_takes_a_refusal(around):
    def by_try(x):
        try:
            return len(f"{float(x.sum())}")
        except kinds:
            return -1

    def by_with(x):
        with make():
            return len(f"{float(x.sum())}")
        return -1

    kinds = {"TypeError": TypeError, "Exception": Exception, "BaseException": BaseException}.get(around)
    make = {
        "suppress": lambda: contextlib.suppress(Exception), "generator": _swallowing, "context": _Swallowing,
    }.get(around)  # fmt: skip
    with pytest.raises(errors.TraceError, match="the text of a traced py_float is needed"):
        Jit(by_try if kinds else by_with)(np.ones(3))


@pytest.mark.parametrize("read", [len, lambda text: text == "3.0", lambda text: {"3.0": 1}[text], str.upper, str.strip])
def test_texts_of_traced_values_in_a_loop_are_good_for_messages_only(read):
    def f(x):
        found = None
        for _ in range(80):
            found = read(f"{float(x.sum())}")
        return found

    with pytest.raises(errors.TraceError, match="the text of a traced"):
        Jit(f)(np.ones(3))


class SlottedError(ValueError):
    __slots__ = ("__hidden", "_n", "shape")

    def __init__(self, n, shape):
        super().__init__("slotted")
        self._n, self.shape, self.__hidden = n, shape, 2 * n

    def __str__(self):
        return f"{self._n} {self.shape} {self.__hidden}"


class NamedError(SlottedError):
    __slots__ = ("name",)

    def __init__(self, n, name):
        super().__init__(n, ())
        self.name = name


def test_exceptions_with_slots_are_made_whole():
    def axis(x):
        if x[0] > 0:
            raise np.exceptions.AxisError(x.shape[0], 2)
        return x

    def text(x):
        if x[0] > 0:
            raise np.exceptions.AxisError("no such axis")
        return x

    def reduces(x):
        y = x * 2
        if y[0] > 0:
            y.sum(axis=3)
        return y

    def slotted(x):
        if x[0] > 0:
            raise SlottedError(x[1], x.shape)
        return x

    def named(x):
        if x[0] > 0:
            raise NamedError(x[1], "a name")
        return x

    x = np.arange(1.0, 4.0)
    for f in (axis, text, reduces, slotted, named):
        made = jg.jit(f)
        made(-x)
        with pytest.raises(Exception) as expected:
            f(x)
        for _ in range(3):
            with pytest.raises(type(expected.value)) as info:
                made(x)
            if f is reduces:
                assert "axis 3 is out of bounds for array of dimension 1" in str(info.value)
                continue
            assert str(info.value) == str(expected.value)
            assert info.value.args == expected.value.args
            for name in ("axis", "ndim", "shape", "name"):
                assert getattr(info.value, name, None) == getattr(expected.value, name, None)


def test_a_name_that_is_unbound_is_read_before_what_is_added_to_it():
    def program(x, y):
        w = 0
        while w < len(x) and not x.any():
            w += 1
            v = x + 1
        v *= y[np.array([1, 0])]
        return v

    jitted = jg.jit(program)
    np.testing.assert_array_equal(jitted(np.zeros(2), np.ones(2)), program(np.zeros(2), np.ones(2)))
    with pytest.raises(IndexError):
        jitted(np.zeros(2), np.ones(1))
    for x in (np.zeros(0), np.ones(2)):
        with pytest.raises(UnboundLocalError, match="'v'"):
            jitted(x, np.ones(1))


class MeasuredError(ValueError):
    pass


@pytest.mark.parametrize("k", [2, -2.5])
def test_errors_that_are_certain_hold_what_python_puts_in_them(k):
    def plain(x, k):
        raise MeasuredError(x[1], k)

    def not_handled(x, k):
        try:
            raise RuntimeError("no") from MeasuredError(x[1], k)
        except KeyError:
            return x

    def behind_a_write(x, k):
        x[0] = k
        raise MeasuredError(x[0] + 1.0, k)

    for fn in (plain, not_handled, behind_a_write):
        for _ in range(2):
            x, y = V.copy(), V.copy()
            with pytest.raises((MeasuredError, RuntimeError)) as found:
                jg.jit(fn)(x, k)
            with pytest.raises((MeasuredError, RuntimeError)) as wanted:
                fn(y, k)
            mine, its = found.value, wanted.value
            assert type(mine) is type(its)
            assert mine.__context__ is its.__context__ is None
            for a, b in ((mine, its), (mine.__cause__, its.__cause__)):
                assert repr(a) == repr(b)
            np.testing.assert_array_equal(x, y)


def test_a_refused_ufunc_leaves_nothing_that_computes() -> None:
    """NumPy looks at the dtypes first; views of sizes that nobody has checked are not left in the graph."""

    def f(x, y):
        n = 0
        while n < 2 and not np.any(x > 50):
            n += 1
        v = np.argwhere(y)[:, 0] > 2.5
        v[:] *= np.clip(3, x, 3)
        return v

    graph = Jit(f).trace(np.ones((3, 3), complex), np.ones(4)).graph
    assert not [op for op in graph.walk() if op.name == "mul"]
    assert [site.error for site in graph.sites if "Cannot cast" in site.message] == ["DTypeError"]
