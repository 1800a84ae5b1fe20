"""Names that a loop finds as one kind of number and leaves as another: Python's 0 before it, NumPy's behind a turn.

Each program runs as machine code at sizes that give its loops no turn, one, two and more, once with a write to an
argument in front that the caller can see, and is compared with Python: kinds, dtypes, values, errors.
"""

import numpy as np
import pytest

import jitgraph as jg
from tests.fuzz.compare import difference, run
from tests.tracing.harness import Jit

SIZES = ((2, 1), (0, 0), (2, 2), (4, 2), (5, 5), (3, 1))


def seen_by_a_reduction(x, k):
    v = t = 0
    for i in range(len(x) // 2):
        t = np.sum(v, axis=-1)
        v = v + x[i]
    return v, t


def seen_by_numpy(x, k):
    v, t = 1, None
    for i in range(len(x) // 2):
        t = np.sqrt(v), np.mean(v), np.full(2, v), np.array([v, x[i]]), np.zeros_like(v), np.asarray(v).dtype.itemsize
        v = v + x[i] + 9
    return v, t


def seen_by_its_class(x, k):
    v = c = d = 0
    for i in range(len(x) // 2):
        w = v + 1
        c += isinstance(w, int)
        d += type(v) is int
        v = v + x[i]
    return v, c, d, v.real, round(v)


def seen_by_an_index(x, k):
    v, t = 0, 0.0
    for _ in range(len(x) // 2):
        t += x[v]
        v = v + 0.5
    return v, t


def added_to_another_name(x, k):
    u, w = True, True
    for _ in range(k):
        w += u
        u = 2.5
    return u, w


def handed_on(x, k):
    a, b, c = 0, 1, True
    for i in range(k):
        c = c if c > 3 else a
        a, b = b, a + x[i]
    return a, b, c


def items_of_a_tuple(x, k):
    t, r = (0, 1.5), None
    for i in range(k):
        t = (t[1], t[0] + x[i])
        s = (0, 1)
        for j in range(i):
            s = (s[1], s[0] + x[j])
        r = s
    return t, r


def class_behind_an_inner_loop(x, k):
    ints, halves = 0, 0.0
    for i in range(len(x)):
        s = 0
        for j in range(i):
            s = s + x[j]
        if isinstance(s, int):
            ints += 1
        halves = halves + s / 2
    return ints, halves


def divided_behind_an_inner_loop(x, k):
    out = np.zeros(len(x))
    for i in range(len(x)):
        s = 0.0
        for j in range(i):
            s += x[j]
        out[i] = s / i
    return out


def dtypes_by_path(x, k):
    u, v = np.int8(3), 0
    for i in range(len(x)):
        if v < 1:
            u = v + u
        else:
            v = u + x[i]
    return u, v, u + v


def reduced_in_each_turn(x, k):
    u = k
    for i in range(len(x)):
        u = u + i
        if x[i] > 0:
            u = np.max(u)
    return u


def the_greatest(x, k):
    s, t, m = 0, 0.0, -np.inf
    for i in range(k):
        s = max(s, x[i])
        t += max(x[i], 0)
        m = max(m, min(x[i], 2, k))
    return s, t, m


def one_of_several(x, k):
    if len(x) < 2:
        return k
    v = max(x[0], 0)
    a = np.zeros(2)
    a[0] = min(v, k, x[1])
    return v, min(2, v), max([k, x[0], 1.5]), v / 2, -v, np.sqrt(abs(v)), [v, 1], round(v), type(v) is int, a, v * x


def compared_beside_float32(x, k):
    v = 0.1
    for i in range(k):
        if x[i] > 2:
            v = x[i]
    return v, v == np.float32(0.1), v < np.float32(0.1), max(v, np.float32(0.1))


def several_types_in_any(x, k):
    if not len(x):
        return False
    v = None if x[0] > 0 else k
    return any(w is None for w in (v, x[0])), all([v, k]), all(w > 0 for w in (x[0], (1, 2), k))


def refused_behind_what_decides(x, k):
    found = 0
    for i in range(k):
        found += any(w > -9 for w in (x[i], (1, 2), k))
    return found


def several_types_unbound(x, k):
    u = np.float64(1.5)
    for i in range(len(x)):
        u = 2 if x[i] < 0 else u + k
        v = u
    return u, v


def sequences_and_numbers(x, k):
    v = [1]
    v *= k
    v += [k, 2]
    return v, (0, 1) * k, v == k, k != (1,)


def refused_by_sequences(x, k):
    u, v = 0, k
    for _ in range(len(x) // 2):
        u -= v
        v = (v, u)
    return u, v


def looked_at_and_bound_anew(x, k):
    u = np.float32(2)
    for _ in range(len(x) - 1):
        u = isinstance(u, int)
    return u


def settled_by_a_test_of_a_while(x, k):
    u, v, c = (0, 1.5), np.zeros(()), 0
    while c < len(x) and x[c] < 2:
        u = min(False, x[-1])
        v = u or 2
        c += 1
    return u, v


def complex_behind_a_turn(x, k):
    u = 0.0
    for _ in range(k):
        if u != 0:
            u = min(u, k)
        u = u // 2
        u = u + np.complex64(4.5)
    return u


def tuples_and_numbers_of_numpy(x, k):
    t = (k, 1)
    t += np.float32(1.5)
    v = (0, 1) + np.float32(1.5)
    v += k
    return t, v, np.full(2, (k, 1.5)), np.float32(2) - (k, 3), (k, 1) == np.int8(1)


PROGRAMS = [
    seen_by_a_reduction, seen_by_numpy, seen_by_its_class, seen_by_an_index, added_to_another_name, handed_on,
    items_of_a_tuple, class_behind_an_inner_loop, divided_behind_an_inner_loop, dtypes_by_path, reduced_in_each_turn,
    the_greatest, one_of_several, compared_beside_float32, several_types_in_any, refused_behind_what_decides,
    several_types_unbound, sequences_and_numbers, refused_by_sequences, looked_at_and_bound_anew,
    settled_by_a_test_of_a_while, complex_behind_a_turn, tuples_and_numbers_of_numpy,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "i8"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_kinds_at_all_numbers_of_turns(program, dtype):
    def written(x, k, out):
        out[0] = k
        return program(x, k)

    for function in (program, written):
        jitted = jg.jit(function)
        rng = np.random.default_rng(0)
        for n, k in SIZES:
            given = [rng.integers(-3, 6, n).astype(dtype), k, np.zeros(2)][: 3 if function is written else 2]
            expected = run(function, [np.copy(a) if type(a) is np.ndarray else a for a in given])
            found = run(jitted, [np.copy(a) if type(a) is np.ndarray else a for a in given])
            what = difference(given, expected, found, free_zero=True, memory=False)
            assert not what, (n, k, what)


def loops(f, *args):
    return [op for op in Jit(f).trace(*args).graph.walk() if op.name == "for"]


def test_no_turn_in_front_where_none_sees_the_kind():
    def f(x, out):
        prev = total = 0
        for i in range(len(x)):
            total += x[i] - prev
            prev = x[i]
            out[i] = total / 2.0
        return total

    (loop,) = loops(f, np.ones(9, "f4"), np.ones(9))
    assert loop.attrs["lower"] == 0
    assert [str(v.type) for v in loop.operands[:2]] == ["np.f32", "np.f32"]


def test_no_bool_behind_an_inner_loop_where_none_sees_the_kind():
    def f(x, out):
        for i in range(len(x)):
            s = 0
            for j in range(i):
                s += x[j]
            out[i] = s

    inner = loops(f, np.ones(9), np.ones(9))[-1]
    assert [str(v.type) for v in inner.results] == ["np.f64"]


def test_a_constant_and_float32_are_held_as_float32():
    def f(x):
        best = 0
        for i in range(len(x)):
            best = max(best, x[i])
        return best

    (loop,) = loops(f, np.ones(9, "f4"))
    assert [str(v.type) for v in loop.results] == ["np.f32", "py_bool"]


def test_the_greater_of_two_types_is_a_select():
    def f(x):
        for i in range(len(x)):
            x[i] = max(x[i], 0.0)

    graph = Jit(f).trace(np.ones(9)).graph
    assert not [op for op in graph.walk() if op.name == "cond"]


def multiplied_from(x, c):
    s = c
    for v in x:
        s = s * v
    return s


def sum_of_open_kind(x, c):
    s = c
    for k, v in enumerate(x):
        s = int(v) + s if k % 2 == 0 else s + v
    return s


def greater_than_all(x, c):
    s = c
    for v in x:
        if s < v:
            s = v
    return s


@pytest.mark.parametrize("f", [multiplied_from, sum_of_open_kind, greater_than_all], ids=lambda f: f.__name__)
def test_python_ints_that_the_dtype_of_an_array_does_not_hold(f):
    jitted = jg.jit(f)
    for dtype in ("i1", "u1", "u4", "i8"):
        for c in (-1, 300, 2**40, 3):
            args = [np.array([1, 5, 2], dtype), c]
            assert difference(args, run(f, args), run(jitted, args), free_zero=False) == "", (dtype, c)


def refused_by_an_inner_loop(x, k):
    v = w = 0
    for r in x:
        for _ in range(k):
            w = k ^ v
        v = v + r
        if np.sum(x) > 0:
            break
    return v, w


def no_index_in_an_inner_loop(x, k):
    v = w = j = 0
    for r in x:
        while j < k:
            w = x[v]
            j += 1
        v = r * 1
        if np.sum(x) > 0:
            break
    return v, w


def no_key_in_a_branch(x, k):
    v = w = 0
    for _ in x:
        if k > 1:
            w = {0: 1}[v]
        v = v - 1
        if np.sum(x) > 0:
            break
    return v, w


def no_method_in_a_branch_of_an_inner_loop(x, k):
    v = w = 0
    for r in x:
        for q in x:
            if q > 0:
                w = v.bit_length()
        v = v + r
        if np.sum(x) > 0:
            break
    return v, w


def no_axis_in_a_branch(x, k):
    v = w = 0
    for _ in x:
        if k > 1:
            w = x.sum(axis=v)
        v = v + 1.5
        if np.sum(x) > 0:
            break
    return v, w


def handled_from_the_second_turn_on(x, k):
    v = w = 0
    for r in x:
        try:
            w = x[:v].sum()
        except (TypeError, IndexError):
            w = -1
        v = v + r
        if np.sum(x) > 0:
            break
    return v, w


def handled_by_any_name_error(x, k):
    for r in x:
        try:
            w = v + 1  # bound below
        except NameError:
            w = -1
        v = r * 1
        if np.sum(x) > 0:
            break
    return w


@pytest.mark.parametrize(
    "f",
    [
        refused_by_an_inner_loop,
        no_index_in_an_inner_loop,
        no_key_in_a_branch,
        no_method_in_a_branch_of_an_inner_loop,
        no_axis_in_a_branch,
        handled_from_the_second_turn_on,
        handled_by_any_name_error,
    ],
    ids=lambda f: f.__name__,
)
def test_errors_of_a_type_from_the_second_turn_on(f):
    jitted = Jit(f)
    for x, k in (([1.0, 2.0], 2), ([-1.0, -2.0], 2), ([-1.0, -2.0], 0), ([1.0, -2.0], 1), ([1.0], 3)):
        args = [np.array(x), k]
        assert difference(args, run(f, args), run(jitted, args), free_zero=False) == "", args
