"""A fixed set of fuzzed programs, the tools of the fuzzer, and the programs that once failed."""

from __future__ import annotations

import contextlib
from unittest import mock

import numpy as np
import pytest

from jitgraph.config import config
from tests.fuzz import captured
from tests.fuzz.arguments import Argument
from tests.fuzz.compare import Outcome, difference, layout_difference, undefined, value_difference
from tests.fuzz.grammar import CONTAINERS_FROM
from tests.fuzz.levels import LEVELS, Counts, Unsupported, check
from tests.fuzz.programs import Fuzzed, draw


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False), np.errstate(all="ignore"):
        yield


#: Checked in each run of the tests; a long run of other seeds is one command, see `tests.fuzz.run`.
_BLOCKS, _IN_BLOCK = 12, 25


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(_BLOCKS))
def test_fixed_seeds(block: int) -> None:
    counts = Counts()
    refused = 0
    for seed in range(20_100 + _IN_BLOCK * block, 20_100 + _IN_BLOCK * (block + 1)):
        try:
            with config.override(poison=seed % 2 == 0):  # what reads fresh memory shows
                found = check(draw(seed), counts)
        except Unsupported:
            refused += 1
            continue
        assert found is None, str(found)
    assert refused < _IN_BLOCK // 4
    assert not counts.layouts
    assert all(counts.levels[level] > _IN_BLOCK for level in LEVELS)


@pytest.mark.filterwarnings("ignore")
def test_fixed_seeds_with_containers() -> None:
    """Lists, dicts, named tuples and objects; what no graph can say of them runs in Python."""
    counts = Counts()
    for seed in range(CONTAINERS_FROM, CONTAINERS_FROM + 2 * _IN_BLOCK):
        found = check(draw(seed), counts, ("graph",))
        assert found is None, str(found)
    assert counts.levels["machine code"] > 2 * counts.levels["plain Python"]


@pytest.mark.filterwarnings("ignore")
def test_programs_as_captured() -> None:
    """The interpreter in place of machine code says the same; what it computes is what is compared."""
    counts = Counts()
    with captured.interpreted():
        for seed in range(20_500, 20_500 + _IN_BLOCK):
            with contextlib.suppress(Unsupported):
                found = captured.check(draw(seed), counts)
                assert found is None, str(found)
        program = Fuzzed(1, [_F], ["v = a0 + 1"], [_SIZES], "v")
        assert captured.check(program, counts) is None
        with mock.patch.object(captured, "interpret", lambda graph, args, hosts: ([args[0]], [])):
            assert "elements differ" in str(captured.check(program, counts))
    assert counts.levels["graph"] > 3 * _IN_BLOCK


def test_a_seed_draws_the_same_program_again() -> None:
    first, second = draw(7), draw(7)
    assert first.source == second.source
    for a, b in zip(first.make(0), second.make(0), strict=True):
        np.testing.assert_array_equal(a, b)


def test_differences_are_seen() -> None:
    x, y = np.array([1.0, -0.0]), np.array([1.0, 0.0])
    assert value_difference(x, y, free_zero=True) == ""
    assert "1 of 2 elements differ, at (1,)" in value_difference(x, y, free_zero=False)
    assert "NumPy has float64(2,), compiled float32(2,)" in value_difference(x, x.astype("f4"), free_zero=True)
    assert "strides" in layout_difference(Outcome(np.ones((2, 3)), []), Outcome(np.ones((3, 2)).T, []))
    assert "a float" in value_difference(1.0, np.float64(1), free_zero=True)
    same, other = Outcome(x, [x]), Outcome(x.copy(), [x])
    assert "is argument 0 only in NumPy" in difference([x], same, other, free_zero=True)
    assert "raises ValueError" in difference([x], Outcome(None, [x], ValueError("a")), same, free_zero=True)


# --- programs that failed, shrunk: (lines, returned, arguments, sizes)

_F = Argument("array", "float64", ("n",), seed=1)
_F2 = Argument("array", "float64", ("n", "m"), seed=2)
_F4 = Argument("array", "float32", ("n",), seed=3)
_U1 = Argument("array", "uint8", ("n",), seed=4)
_U4 = Argument("array", "uint32", ("n",), seed=5)
_SIZES = {"n": 9, "m": 4}
FAILED = {
    "an integer is compared with a number out of its range": (["v = (a0 < 300) & (-1 < a0)"], "v, a0 > a1", [_U1, Argument("int", seed=1)]),
    "reductions of scalars take axis 0": (["s = np.sum(a0)"], "np.sum(s, axis=0), np.max(s, axis=-1), np.cumsum(s, axis=0)", [_F]),
    "clip with bounds past the limits": ([], "np.clip(a0, -1, 300), np.clip(0.5, a1, 3)", [_U1, _F4]),
    "a constant array is returned": (["v = np.repeat(1e3, 2)"], "v, np.squeeze(2)", [_F]),
    "layout of a gather": ([], "a0[:, np.array([1, 0])], a0.T[..., np.array([0, 1])]", [_F2]),
    "bools squared": ([], "(a0 > 1) ** 2, (a0 > 1) ** 3", [_F]),
    "where casts Python ints": ([], "np.where(a0 > 3, -1, a0)", [_U4]),
    "scalars stay scalars in views": (["s = np.sum(a0)"], "np.squeeze(s), np.transpose(s), np.flip(s)", [_F]),
    "an array of an outer name is written through a loop's name": (["for i in range(10):", "    v = a0", "v[0] = 9"], "v", [_F]),
    "an array of an outer name is written through a branch's name": (["if np.sum(a0) < 1e9:", "    v = a0", "v[0] = 9"], "v", [_F]),
    "the dtype of the first turn": (["v = a0", "for i in range(a0.shape[0]):", "    v = (v >= 2).astype(np.uint8)"], "v", [_U4]),
    "the first turn in single precision": (["v = a0", "for i in range(a0.shape[0]):", "    v = v * 1.1 + a1"], "v", [_F4, _F]),
    "a permuted array made in a loop": (["for i in range(12):", "    v = np.zeros((3, 4)).T + i"], "v", [_F]),
    "an augmented assignment to a name bound in a branch": (["if np.sum(a0) < 1e9:", "    v = a0 * 2", "v -= a0"], "v", [_F]),
    "a strided array reshaped to its own sizes": (["v = np.reshape(a0[::2], a1[::2].shape)", "v[...] = 7.0"], "v", [_F2, _F2]),
    "leading axes of size 1 are written": (["a0[...] = a1[:1] % a0"], "a0", [_F, Argument("array", "float64", ("m", "n"), seed=6)]),
    "linspace of a size that is data": ([], "np.linspace(0, 1, a0[a0 > 0].shape[0])", [_F]),
    "a read-only argument is written by an index array": (["a0[np.array([0, 1])] = 1.0"], "a0", [Argument("array", "float64", ("n",), "broadcast", 7)]),
    "out= broadcasts an axis of size 1": (["np.maximum(a0[:1], 1.0, out=a0)"], "a0", [_F2]),
    "a function of plain numbers with out=": (["np.add(-1, 1, out=a0)"], "a0", [_F]),
    "a call that is rerun after a write": (["a0 += 1"], "a1 & a2", [_F, _U4, Argument("int", seed=8)]),
    "an empty extreme over one of two empty axes": ([], "np.min(a0[:0, :0], axis=0)", [_F2]),
    "a view of an argument on either path": (["if np.sum(a0) > 0:", "    v = a0[1:]", "else:", "    v = a0[:-1]"], "v, v[1:]", [_F]),
    "an argument or a new array": (["a0[0] = 1", "if np.sum(a0) > 99:", "    v = a0", "else:", "    v = a0 * 2"], "v", [_F]),
    "a write through one of two views": (["if np.sum(a0) > 0:", "    v = a0[1:]", "else:", "    v = a0[:-1]", "v[0] = 9"], "v", [_F]),
    "views of one array made in a branch": (["if np.sum(a0) < 1e9:", "    v = np.concatenate([a0, a0])", "    w = v[1:]"], "w, v", [_F]),
    "names of one array made in a loop": (["for i in range(12):", "    v = a0 * 2", "    w = v"], "w, v", [_F]),
    "a view of an array made in a loop": (["for i in range(12):", "    v = a0 * 2", "    w = v[::2]"], "w", [_F2]),
    "the last row of a loop": (["for r in a0:", "    v = a0[0] + r", "r[0] = 7.0"], "r, v", [_F2]),
    "the last slice of a loop": (["for i in range(a0.shape[0]):", "    v = a0[i:i + 2]"], "v", [_F2]),
    "a container with a row": (["for r in a0:", "    v = {'x': r * 2, 'y': r}"], "v", [_F2]),
    "a while that leaves a view": (["w = 0", "while w < 3 and np.sum(a0) < 1e9:", "    v = a0[::-1]", "    w += 1"], "v", [_F]),
    "a loop that may have no turn": (["v = a0 * 2", "for i in range(a1):", "    v = a0"], "v", [_F, Argument("int", seed=1)]),
    "a name that a loop hands on": (["v = a0[:-1]", "for i in range(a0.shape[0] - 1):", "    v = v"], "v", [_F]),
    "a first turn that breaks": (["v = 0.0", "for i in range(a0.shape[0]):", "    v = v + a0[i]", "    if a0.shape[0] > 2:", "        break"], "v, i", [_F2]),
    "no turn leaves names unbound": (["for i, r in enumerate(a0[:0]):", "    v = i * 2"], "v", [_F]),
    "a size decided in a loop that is traced again": (["s = 0.0", "for r in a0:", "    v = a0[np.array([0, 1, 1])] - a0", "    s = s + np.sum(r)"], "1", [_F2]),
    "zip of a size that is data": (["s = 0.0", "for r, q in zip(np.flatnonzero(a0), a0):", "    s = s + q * r"], "s", [_F]),
    "a plain array is written and then filled": (["v = np.ravel(2.5)", "v[v > 0] += 1", "v.fill(7)"], "v", [_F]),
    "the columns of nonzero": ([], "np.nonzero(a0 > 0)[0], np.nonzero(a0 > 0)[1]", [_F2]),
    "one object twice": (["v = a0[1:]"], "v, v, v.squeeze()", [_F]),
    "read-only results of a branch": (["if np.sum(a0) > 0:", "    v = np.broadcast_to(a0 + 1, (2, len(a0)))", "else:", "    v = np.broadcast_to(a0 * 2, (2, len(a0)))"], "v", [_F]),
    "a reshape that is a view for some sizes": (["a0[::-1].reshape(2, -1)[-1] = 0"], "a0", [Argument("array", "float64", ("m",), seed=1)]),
    "a value is read in another shape where it was written": (
        ["v = np.where(a1 != 0, a1 * 2, 1.0)", "a0[...] = v"], "np.vdot(-v, v)", [_F2, Argument("array", "float64", ("n", "m"), "F", 8)],
    ),
    "one value for all that a mask chooses, as the run finds": (["a0[a0 > 0] = a0[a0 > np.max(a0) - 1e-9]"], "a0", [_F]),
    "an empty array to a negative power": (["v = a0[:0] ** -1", "w = np.power(a0[a0 > 300], -2)"], "v, w", [Argument("array", "int64", ("n",), seed=3)]),
    "a negative power that is not asked for": (["v = np.power(a0, a1, where=a1 >= 0, out=np.zeros_like(a0))"], "v", [Argument("array", "int32", ("n",), seed=1), Argument("array", "int32", ("n",), seed=2)]),
    "nothing is taken from an empty array": (["v = np.compress(a1 > 0, a0[:0])"], "v", [_F, _F4]),
    "a gather from a view that the run finds empty": (["v = a0[np.sum(a0 < 1e9):][np.array([0, 0, 1])]"], "v", [_F]),
    "nothing is taken from a view that the run finds empty": (["v = np.take(a0[np.sum(a0 < 1e9):], [0, 5], mode='clip')"], "v", [_F]),
    "a product of two single numbers that is a zero": (
        ["v = a0[:1] * 0.0", "w = v * 0.0 + 1.0"], "np.dot(v, w), np.dot(-v, w), np.inner(-v, w), np.dot(-v.reshape(1, 1), w), np.dot(v.reshape(1, 1), w)", [_F],
    ),
    "a read-only array is copied onto itself": (["np.copyto(a0, a0[:])", "np.copyto(a0, a0, where=a0 > 0)"], "a0", [Argument("array", "float64", ("n",), "readonly", 7)]),
    "the imaginary part of a real array": ([], "a0.imag, a0.T.imag, a0[::2].imag", [Argument("array", "float64", ("n", "m"), "F", 8)]),
    "old elements of a strided array are read after a write": (
        ["for i in range(3):", "    v = np.clip(a0, a0, 3)", "    a0[i] = a0[i - 1]"], "v, a0", [Argument("array", "int32", ("n", "1"), "strided", 9)],
    ),
    "a name that only an earlier turn binds": (
        ["for i in range(a0.shape[0]):", "    if a0[i] > np.median(a0):", "        v = a0 * i", "        w = np.int8(3), a0[i]", "        u = a0[1:]"], "v, w, u", [_F],
    ),
    "a name that only an earlier turn binds, read in a turn": (
        ["for i in range(a0.shape[0]):", "    if i > 1:", "        v = a0[i]", "    if i > 3 and a0[i] < v:", "        a0[i] = v"], "v, a0", [_F],
    ),
    "a name that only an earlier turn of a while binds": (
        ["i = 0", "while i < a0.shape[0]:", "    if a0[i] == np.max(a0):", "        v = i", "    i += 1"], "v, i", [_F],
    ),
    "a matrix in another order times a number": ([], "np.dot(a0, 4.5), np.inner(np.float32(-1), a0.T), np.dot(a0[::-1], 0)", [Argument("array", "float64", ("n", "m"), "F", 8)]),
    "short cuts of powers of broadcast integers": ([], "a0 ** 2.0, a0.T ** 0.5, a0 ** a1", [Argument("array", "int32", ("n", "m"), "broadcast", 8), Argument("float", seed=3)]),
    "an error of a test that is not reached": (["v = 0", "if np.sum(a0) < -1e9 and len(a1) > 2:", "    v = 1"], "v", [_F, Argument("array", "float64", (), seed=2)]),
    "an array of static values is written in loops and branches": (
        ["v, w, u = np.repeat(1.0, 2), np.roll(3, 1), np.full_like(np.float64(1), 1)", "t = v", "for i in range(a0.shape[0]):", "    v += 1", "    np.add(w, i, out=w)",
         "    if a0[i] > 1:", "        u.fill(7)", "        v[0] = i"], "v, w, u, t", [_F],
    ),
    "what breaks a loop that is unrolled keeps its variable": (
        ["for i in range(3):", "    if a0[i] > np.median(a0):", "        break", "for k, x in enumerate(a0[:3]):", "    if x < np.median(a0):", "        break"], "i, k, x", [_F],
    ),
    "a number before a loop, an array behind it, in another loop": (
        ["for k in range(10):", "    v = 0", "    for r in a0:", "        v = r * 2"], "v", [_F2],
    ),
    "a return that one of its values fails": (
        ["v = a0[:2]", "if np.any(v):", "    v[...] = np.zeros(3)", "    w = v[:-1]", "elif np.sum(a0) > 0 and len(a0) > 2:", "    v = v[np.array([[0, 1]])]"], "v, w", [_F],
    ),
    "traced values meet arrays of static ones": (
        ["v, w, u = np.repeat(1.0, 2), np.repeat(2.0, 2), np.repeat(3.0, 2)", "np.add(a0[:2], 1, out=v)", "np.copyto(w, a0[:2])", "u += a0[:2]"],
        "v, w, u, np.repeat(1.0, 2) + a0[:2]", [_F],
    ),
    "a row that only some turns choose": (
        ["for i in range(a0.shape[0]):", "    if a0[i, 0] > np.median(a0):", "        v = a0[i]"], "v * 1", [_F2],
    ),
    "a view in the test of a while whose first turn stands in front": (
        ["v, w = a0[::2], 0", "while w < 3 and np.sum(v) < 1e6:", "    for i in range(len(v) - 99, 0, -1):", "        v = 1", "    w += 1"], "v, w", [_F],
    ),
    "a broadcast operand in another dtype": (
        [], "np.fmax(a0, 0.0, dtype=np.float64), np.add(a0, a0.T, dtype=np.float64)", [Argument("array", "int64", ("n", "n"), "broadcast", 3)],
    ),
    "an axis of size 1 among others": (
        ["if np.sum(a0) < 1e9 and len(a0) > 2:", "    v = np.sort(a0[::-1, None])"], "v", [Argument("array", "float64", ("m", "n"), "F", 8)],
    ),
    "complex scalars are ordered without regard to NaN": (
        ["v = np.sum(a0)", "w = complex(1.0, np.nan) * v"], "w > 0, v < w, np.greater(w, 0), a0 >= w", [Argument("array", "complex128", ("n",), "C", 8, 0.3)],
    ),
    "a Python number kept from the first turn": (
        ["v = 0", "for i in range(a0.shape[0]):", "    w = v", "    u = np.uint8(2) * v", "    v = v + a0[i]"], "w, u, v", [Argument("array", "int32", ("n",), "C", 3)],
    ),
    "a Python number kept from the first turn of a while": (
        ["v = i = 0", "while i < a0.shape[0] and a1[i] < 1e30:", "    w = 1 + v", "    v = v + a0[i]", "    i = i + 1"], "w, v", [_F4, _F],
    ),
    "an element that every call finds outside": (
        ["for i in range(12):", "    v = a0[i]", "if a0.shape[0] > 2:", "    w = 1", "else:", "    w = a0[11, a1[0]]"], "v", [_F2, Argument("array", "int64", ("n",), seed=3)],
    ),
    "a read-only array and a number that does not fit": (
        ["for i in range(len(a0) - 1, 0, -1):", "    a0[::-2] += -1"], "1", [Argument("array", "uint64", ("n",), "readonly", 7)],
    ),
    "complex products of one element": (
        ["v = a0 * a0.reshape(1, 1)", "np.put(a0.T, [1, 0], np.outer(a0, a0), mode='wrap')", "w = a0 * 1", "w *= a0", "np.multiply(w, a0, out=w)"], "v, w, np.square(a0[None])",
        [Argument("array", "complex64", ("1",), "C", 8)],
    ),
    "an array made and written in each turn of two loops": (
        ["w = 0", "while w < 3:", "    u = 0", "    while u < 3 and np.sum(a0) < 1e9:", "        v = np.nonzero(a0 > 0)[0]", "        v[:] = 3", "        u += 1", "    w += 1"], "w, u", [_F],
    ),
    "a check on what was written into an array without axes": (
        ["np.place(a0, a0 > -9, 2.0)", "for i in range(len(a1) - 1, -1, -1 - int(np.any(a0))):", "    v = i"], "v", [Argument("array", "float64", (), seed=2), _F],
    ),
    "sums over no axes lose the sign of zeros": (
        ["v = np.zeros(3) * -1", "w = np.asarray(v[0])"], "np.sum(v, axis=()), np.mean(v, axis=()), np.sum(w), np.prod(v, axis=()), np.sum(v * 1j, axis=())", [_F],
    ),
    "a keyword that is an array on one path only": (
        ["v = [np.sum(a0), a0]", "if np.sum(a0) < 1e9:", "    v = np.flip(a0) * 1.0", "np.add(a0, a0, out=v)"], "v", [_F],
    ),
    "an unsigned number and its opposite have two sizes": ([], "abs(-a0), -a0, np.abs(-(-a0))", [_U4]),
    "integers through complex numbers": (
        ["v = a0.astype(np.complex128)"], "v.real.astype(np.int64), v.astype(np.complex64)", [Argument("array", "int64", ("n",), seed=3)],
    ),
    "operands of matrix products that are cast": (
        [], "a0 @ a1, a1 @ a0, a0 @ a1[0], np.dot(a1[::-1], a0), np.dot(a0, a1[:, ::2].T[0])",
        [Argument("array", "int16", ("n", "n"), "F", 8), Argument("array", "float64", ("n", "n"), seed=9)],
    ),
    "complex vectors with gaps and numbers of another dtype": (
        [], "np.vdot(a0, a1), np.vdot(a1, a0), np.vdot(a0[0], a1[0])", [Argument("array", "complex128", ("n", "n"), "strided", 8), Argument("array", "float64", ("n", "n"), seed=9)],
    ),
    "an integer that a narrower one does not hold": (["a0[...] = np.sum(a1)"], "a0", [Argument("array", "int8", ("n",), seed=4), _U4]),
    "integers that narrower ones do not hold, in a list": (["a0[:2] = [np.sum(a1), 1]"], "a0", [Argument("array", "int8", ("n",), seed=4), _U4]),
    "putmask casts arrays safely": (["np.putmask(a0, a0 > 0, a0.astype(np.int64) * 1)"], "a0", [_U1]),
    "place casts numbers by any rule": (["np.place(a0, a0 > 0, np.sum(a1))"], "a0", [_U1, _U4]),
    "the square of a scalar into an array": (["np.square(a0 @ a0, out=a0)"], "a0", [Argument("array", "complex128", ("n",), seed=8)]),
    "a number along its only axis": (
        [], "np.take(a0, [0, -1], axis=0), np.repeat(a0, 2, axis=-1), np.squeeze(a0, 0), np.compress([True], a0, axis=0), np.cumulative_sum(a0)",
        [Argument("array", "complex64", (), seed=8)],
    ),
    "floats to integers in the other byte order": ([], "(np.abs(a0) * 2.0**61).astype('>u8'), (a0 * 2.0**40).astype('>i8')", [_F]),
    "what the caller sees is written before an error": (
        ["v = a0 + 0", "for i in range(12):", "    a0[i % 3] += v[i % 4]", "s = a0[a1 + 40]"], "v", [Argument("array", "int64", ("n",), seed=3), Argument("int", seed=1)],
    ),
    "a loop that carries a view of what it writes, and then an error": (
        ["v = 0", "for q in a0:", "    a0 += a0[::-1]", "    v = v + q", "for i in range(a0.shape[0] + a1):", "    a0[0] += q[i]"], "v",
        [Argument("array", "int64", ("n", "m"), seed=3), Argument("int", seed=1)],
    ),
    "sizes that no small stand-in has": (["v = np.sort(np.repeat(a0[:, None, -3:1:3], 2))"], "v", [Argument("array", "float16", ("m", "m"), seed=3)]),
    "a name that is a view of what the loop writes, in its first turn": (
        ["v, w = a0[1:], {'x': a0.T}", "for i in range(a0.shape[0]):", "    a0[i] = 3", "    v, w = v + 1, {'x': w['x'] * 2}"], "v, w", [_F],
    ),
    "the same, written by a loop in the loop": (
        ["v, s = a0[1:], 0.0", "for i in range(12):", "    for j in range(12):", "        s += v[0]", "        a0[1] += 1", "    v = v + 1"], "v, s", [_F],
    ),
    "the same, bound anew before the write": (["v = a0", "for i in range(12):", "    v = v + a0", "    a0[i % 5] = 3"], "v", [_F]),
    "the same, of a while": (["v = a0", "while np.sum(np.abs(v)) < 1e4:", "    a0[0] = 3", "    v = v * 2 + 1"], "v", [_F]),
    "a name that is another view of what the loop writes in each turn": (
        ["v, s = a0.T, 0.0", "for i in range(a0.shape[0]):", "    s += v[0]", "    a0[0] = i", "    v = v[::-1]"], "v, s", [_F],
    ),
    "a NumPy scalar that turns replace by Python numbers, if there is one": (
        ["v, w, u = np.argmax(a0), a0[0], np.int64(1)", "for i in range(int(np.sum(a0 > a1))):", "    v, w, u = i, float(i), i * 2"], "v, w, u", [_F, Argument("float", seed=3)],
    ),
    "the same, and none": (["a0[0] = 5", "v, w = 3, np.argmax(a0)", "for i in range(int(np.sum(a0 > 300))):", "    v, w = a0[i], i"], "v, w", [_F]),
    "the variable of a loop in its `else`": (
        ["for i in range(a0.shape[0]):", "    pass", "else:", "    a0 += i", "for i in range(12):", "    for i in range(12):", "        pass", "    else:", "        a0 += i"], "a0", [_F],
    ),
    "a number of either kind that only some turns bind": (
        ["for i in range(a0.shape[0]):", "    if a0[i] > np.median(a0):", "        continue", "    v = np.int8(3) if a0[i] < -2 else a1"], "v", [_F, Argument("int", seed=1)],
    ),
    "the same in a container": (
        ["for i in range(a0.shape[0]):", "    if a0[i] > np.median(a0):", "        v = {'x': (1 if a0[i] > 3 else np.int64(2)), 'y': a0[i]}"], "v", [_F],
    ),
    "a method of a ufunc is given a name of two types": (["v = a0 * 1.5", "if np.sum(a0) > 0:", "    v = a1", "np.add.at(v, np.array([0, 1, 1]), 1)"], "v", [_F, _U4]),
    "a mask that is known": (
        ["v = np.min(a0, where=(a0 != a0), initial=1)"], "v, np.where(np.isfinite(a0), a1, 2.5)", [Argument("array", "int8", ("n",), "C", 3), _F],
    ),
    "products of half precision under a mask": (
        [], "np.prod(a0, axis=-1, where=(a0 <= np.uint8(2)), initial=7)", [Argument("array", "float16", ("m", "n"), "negative", 8, 0.1)],
    ),
    "complex products under a mask": ([], "np.prod(a0 * 1e200, where=(a0 != 0))", [Argument("array", "complex128", ("n",), "C", 8, 0.3)]),
    "a size known in the last turn": (["for i in range(a0.shape[0]):", "    v = a0[:i] * 2"], "v", [_F]),
    "a view that a loop leaves in a name it reads": (["v = a0[:]", "for i in range(len(a0)):", "    w = np.square(v)", "    v = a0[:]"], "v, w", [_F]),
    "a write through what the turn before left": (["v = a0 * 1", "for i in range(12):", "    v[0] += 1", "    v = a0[:]"], "v, a0", [_F]),
    "a read of what the turn before left, written since": (
        ["v, s = a0 * 1, 0.0", "for i in range(12):", "    a0[0] = i", "    s = s + v[0]", "    v = a0[:]"], "v, s, a0", [_F],
    ),
    "a view that a loop in a loop leaves": (
        ["for i in range(12):", "    w = 0", "    while w < 3 and np.sum(a0) < 1e9:", "        v = a0[1:]", "        w += 1"], "v", [_F],
    ),
    "one of three arrays": (
        ["v = a0", "for i in range(a0.shape[0]):", "    if a0[i] > 1:", "        v = a0[::-1]", "    elif a0[i] < 0:", "        v = a1", "    else:", "        v = v * 2"],
        "v, v[1:], a1", [_F, Argument("array", "float64", ("n",), seed=2)],
    ),
    "a row that a loop chooses is written": (
        ["v, k = a0 * 1, 0", "for i in range(a0.shape[0]):", "    if np.sum(v[i]) >= np.sum(v[k]):", "        k, w = i, v[i]", "w[0] = 77"], "v, w", [_F2],
    ),
    "rows of an argument that change places": (
        ["u, v = a0[0], a0[1]", "for r in a0:", "    if r[0] < u[0]:", "        u, v = r, u", "    elif r[0] > v[0]:", "        v = r"], "u, v", [_F2],
    ),
    "a slice of a size that only a turn knows": (["for i in range(a0.shape[0]):", "    if a0[i] > np.median(a0):", "        v = a0[i:]"], "v", [_F]),
    "arrays of the caller's that change places": (
        ["u, v = a0, a1", "for i in range(a0.shape[0]):", "    u, v = v, u"], "u, v", [_F, Argument("array", "float64", ("n",), seed=2)],
    ),
    "two names of one array from before a loop": (
        ["v = a0 * 1", "w = v", "for i in range(12):", "    if a0[0] < i - 3:", "        v = v * 2", "        w = v", "    w += 1"], "v, w", [_F],
    ),
    "a list with an array made in a turn": (["for i in range(12):", "    v = a0 // 2", "    w = [a0, v]"], "w, v", [_F]),
    "a list with an array made in some turns": (
        ["for i in range(12):", "    if a0[0] < i - 3:", "        v = a0 // 2", "        w = [a0, v]"], "w, v", [_F],
    ),
    "a total that began as a number is written": (["t = 0", "for r in a0:", "    t = t + r", "t[0] = 3"], "t", [_F2]),
    "the first turn lies in memory in another way": (
        ["v = np.asfortranarray(a0 * 2)", "for i in range(12):", "    v = np.ascontiguousarray(v) + i"], "v, v.sum()", [_F2],
    ),
    "one path raises, the other returns or leaves a name unbound": (
        ["if a0[0] > 1e9:", "    v = a0[99:][0]", "elif a0[0] < -1e9:", "    return a0"], "v", [_F],
    ),
    "results of two structures": (["v = a0[:2]", "if a0[0] < 1e9:", "    return v, a0"], "v, a0, a0[1:]", [_F]),
    "a list that a loop in a loop binds": (
        ["for i in range(12):", "    w = 0", "    while w < a0.shape[0] and np.sum(a0) < 1e6:", "        w += 1", "        if a0[0] > 99:", "            continue",
         "        v = [np.mean(a0), a0]"], "v", [_F],
    ),
    "a broadcast number that a loop hands on": (["v = np.broadcast_to(2, a0.shape)", "for i in range(12):", "    w = v"], "v, w", [_F]),
    "axes that repeat are merged": ([], "np.broadcast_to(2.0, a0.shape).reshape(-1), np.broadcast_to(a0[0, 0], a0.shape).reshape(-1)", [_F2]),
    "a scalar that another path makes an array is written": (["v = np.float64(1)", "if np.sum(a0) < 1e9:", "    v = a0 * 2", "v[...] = 3"], "v", [_F]),
    "a scalar that no other path made an array is written": (["v = np.float64(1)", "if np.sum(a0) > 1e9:", "    v = a0 * 2", "v[...] = 3"], "v", [_F]),
    "an argument returned in a turn": (["for i in range(a0.shape[0]):", "    if a0[i] > np.median(a0):", "        return a0", "    a0[i] = 3"], "a0 * 2", [_F]),
    "two names of a view left by a loop": (["for i in range(len(a0) - 1, 0, -1):", "    v = a0[i]", "    w = v"], "v, w", [_F2]),
    "a refusal is no TypeError of the program's": (
        ["for i in range(12):", "    v = a0[i] if np.sum(a0) < np.sum(a1) else a1", "    try:", "        w = np.sum(v > 0)", "    except (TypeError, ValueError):", "        pass"],
        "w", [Argument("array", "float64", ("n", "m"), "C", 3), _F2],
    ),
    "each turn writes to an argument, then raises": (
        ["for i in range(a0.shape[0]):", "    v = a0", "    v[1:, np.arange(2)] = 12", "    w = u + 1"], "v", [_F2],
    ),
    "the element of an update is read before its value is": (
        ["v = np.compress(a1 > 1e9, a1)", "a0[:, [0, 99]] += np.max(v)"], "a0", [_F2, _F],
    ),
    "an array is read while a loop fills it": (
        ["v, w = np.ones(a0.shape[0]), np.zeros(a0.shape[0])", "for i in range(a0.shape[0]):", "    v[i] = a0[i]", "    w += v"], "v, w", [_F],
    ),
    "an array that a loop fills is copied, then the loop raises": (
        ["v = np.ones(a0.shape[0])", "for i in range(a0.shape[0]):", "    v[i] = 5", "    a0[:] = v", "    u"], "v", [_F],
    ),
    "an array that a loop writes, then a branch": (
        ["v = np.zeros(a0.shape)", "for i in range(1, a0.shape[0]):", "    v[i] = a0[i]", "if np.sum(a0) < 1e9:", "    v[0] = 7"], "v", [_F],
    ),
    "arrays change places around a loop that writes a third": (
        ["u, v, w = np.ones(a0.shape[0]), np.ones(a0.shape[0]), np.zeros(a0.shape)", "for i in range(a0.shape[0] - 1):", "    u, v = v, u",
         "    for j in range(a0.shape[0]):", "        u[-1 - i] = a0[j].sum()", "        w[1:] = a0[:-1]"], "w, v", [_F2],
    ),
    "a float before the loop, an int from the first turn on": (
        ["v, w = 0.5, 1", "for i in range(a0.shape[0]):", "    v = int(v) + 1", "    w = w > 3"], "v, w", [_F],
    ),
    "a while makes another kind of a Python number, behind a write": (
        ["a0[0] = a0[0]", "v = 1", "w = 0", "while w < 5 and not np.any(a0 > 1e9):", "    w += 1", "    v = v > 3"], "v", [_F],
    ),
    "a loop without a turn keeps the kind of a Python number, behind a write": (
        ["a0[0] = a0[0]", "s = 0", "t = 1", "for i in range(int(a0[0] * 0)):", "    u = t", "    t = t * 0.5", "    s = s + a0[i]"], "s, t", [_F],
    ),
    "a loop goes over an array that a turn writes and then replaces": (
        ["v = a0 * 1", "s = 0.0", "for r in v:", "    v[:] = v * 2", "    s = s + r", "    v = v + 1"], "s, v", [_F],
    ),
    "a view from before a loop of an array that a turn writes and then replaces": (
        ["v = a0 * 1", "w = v[1:]", "s = 0.0", "for i in range(len(a0)):", "    s = s + w[0]", "    v[1] = 7", "    v = v + 1"], "s, v", [_F],
    ),
    "names bound to views of themselves in a loop": (
        ["u = v = a0", "for i in range(len(a0)):", "    u = u[:]", "    v = v[::-1]"], "u, v", [_F],
    ),
    "names bound to views of themselves in a while": (
        ["u = a0.view()", "v = a0", "w = 0", "while w < u.shape[0]:", "    w += 1", "    u = np.reshape(u, u.shape)", "    v = v.T"], "u, v", [Argument("array", "uint32", ("n", "n"), "padded", seed=5)],
    ),
    "a function that refuses the type of later turns only": (
        ["v = 0.0", "for i in range(a0.shape[0] // 8):", "    u = np.floor(v)", "    v = v + a0[i]"], "u, v", [Argument("array", "complex64", ("n",), seed=6)],
    ),
    "an argument twice in what a turn returns": (
        ["s = 0", "for i in range(1, a0.shape[0]):", "    s = s + a0[i]", "    if np.all(a0 == a0):", "        return a0, a0"], "s", [Argument("array", "uint32", ("n", "m"), seed=7)],
    ),
    "a buffer that a reduction fills for nobody": (
        ["v = a0.flatten()", "for i in range(10):", "    u = a0[np.array([[0, 1], [1, 0]])]", "    if np.sum(v) > 0:", "        continue", "    a0[3:2, np.array([0, 1, -1])] = True"], "u", [_F2],
    ),
    "np.put into a scalar changes a copy": (["v = np.sum(a0)", "np.put(v, [0, -1], 7, mode='wrap')"], "v", [_F]),
    "a while returns an array that its turns write": (
        ["w = 0", "while w < 5 and not np.any(a0 > 1e9):", "    w += 1", "    a0 *= 2", "    if np.sum(a0) < 0:", "        return a0, 3"], "a0, w", [_F],
    ),
    "two returns in a loop that writes what one returns": (
        ["v = 0", "for i in range(len(a0)):", "    v = v + a0[i]", "    a0 *= 2", "    if np.max(a0) > 40:", "        return a0, i", "    if v > 3:", "        return a0 * 2, i"],
        "a0, -1", [_F],
    ),
    "an unbound variable in an operand of a test": (["if np.sum(a0) > -99 and len(v) > 2:", "    v = 3"], "a0", [_F]),
    "an unbound variable in a nested operand": (["w = 1 if np.sum(a0) > -99 and (a0[0] > 100 or v) else 3", "v = w"], "v", [_F]),
    "an unbound variable in a chain": (["w = 0 < np.sum(a0) + 99 < v", "v = w"], "v", [_F]),
    "an unbound variable in a message": (["assert np.sum(a0) < -99, v", "v = 1"], "v", [_F]),
    "an unbound variable of a function around in an operand": (
        ["def g():", "    return np.sum(a0) > -99 and v", "w = g()", "v = w"], "v", [_F],
    ),
    "elements of a short array that turns write": (
        ["v = a0[-2:]", "s = 0.0", "for k, r in enumerate(v):", "    v += v[::-1]", "    s = s + r"], "s, v", [_F],
    ),
    "a loop that carries a number of the other byte order": (
        ["w = 0", "while w < 3 and np.sum(a0) < 1e6:", "    a0[np.isfinite(a0)] = 1.5", "    w += 1"], "w", [Argument("array", ">f2", ())],
    ),
    "an array of static values is written": (["v = np.tile(2.0, 3)", "v[...] = a0[0]"], "np.sum(v), v + 1, v", [_F]),
    "an array of static values is written by static values": (["v = np.tile(2.0, 3)", "v[...] += 4"], "np.sum(v), v + 1, v", [_F]),
    "a view of an array of static values is written": (
        ["v, w = np.tile(2.0, 3), np.tile(3.0, 4)", "u = v[1:]", "u[0] = 5", "t = w.T", "t += a0[0]"], "np.sum(v), v + 1, np.max(w), w", [_F],
    ),
    "a list has an array of static values, and its view, which is written": (
        ["v = np.tile(2.0, 2)", "w = [v, v[1:]]", "w[1][0] = 3"], "np.sum(v), np.stack([v, v]), w", [_F],
    ),
    "two halves of an array of static values change places": (
        ["v = np.tile(np.floor(1.5), 2)", "v[1:], v[:-1] = v[:-1], v[1:] + 1"], "v @ v, np.cumsum(v)", [_F],
    ),
    "the first turn raises, if there is one": (
        ["v = True", "for i in range(int(np.sum(a0 > 1e9))):", "    a1[i:] = a0[:0][i]", "    v = a1[3:]"], "v, a1", [_F, _F],
    ),
    "the first turn raises, if there is one, behind a write": (
        ["v = True", "a1[1] = 2", "for i in range(int(np.sum(a0 > a1[0] - 9))):", "    a1[i:] = a0[99:][i]", "    v = a1[3:]"], "v, a1", [_F, _F],
    ),
    "powers of scalars that NumPy's scalars leave to the ufunc": (
        ["u, v, w = np.int64(2), np.float16(2.719), np.float64(2.71875)", "u = u + (a0[0] > 99)", "v = v + (a0[0] > 99)", "w = w + (a0[0] > 99)"],
        "u ** v, v ** u, (u > 1) ** w, u ** w, w ** v, np.power(u, v, dtype=np.float64), np.power(u, np.exp(True))", [_F],
    ),
    "products of complex scalars that NumPy's scalars leave to the ufunc": (
        ["u = np.complex64(1.3 + 0.7j) * (1 + (a0[0] > 99))", "v = np.float64(0.3) + (a0[0] > 99)", "w = np.int64(3) + (a0[0] > 99)"],
        "u * v, v * u, u * w, w * u, (w > 1) * u, u * (w > 1), u < v", [_F],
    ),
    "a reshape of rows that the run counts": (
        ["v = a0[np.arange(len(a0)) > len(a0) - 2][:, np.array([1, 0])]", "w = v.reshape(2, -1)", "u = a0[a0[:, 0] > 1e9].T.ravel()"], "v, w, u", [_F2],
    ),
    "a reshape of rows that the run counts is written": (
        ["v = a0[np.arange(len(a0)) > len(a0) - 2].T", "w = v.ravel()", "w += 1", "u = a0[np.arange(len(a0)) > len(a0) - 3].T", "t = u.reshape(-1)", "t[:1] = 9"], "v, w, u", [_F2],
    ),
    "more axes of values than an empty selection has": (
        ["v = np.zeros((2, 2, 0))", "v[np.array([1, 0]), np.array([True, False])] = v[2:]", "a0[[]] = np.ones((3, 1)) * a0[0] * np.ones((4, 3, 0))[:, :, :1]"], "v, a0", [_F],
    ),
    "more axes of values than an empty selection has, which do not fit": (
        ["a0[[]] = np.ones((4, 3)) * a0[0]"], "a0", [_F],
    ),
    "a number of two kinds in lists": (
        ["v = 0", "w = 0.0", "if np.sum(a0) > 1e9:", "    v = a0[0]", "    w = a0[1]"],
        "np.array([v, 1]), np.stack([v, v]), np.mean((v, 1)), np.max([[v, 0]]), np.sum([w, a0[0]]), [v, w]", [_F],
    ),
    "an asarray of static values is one more name": (
        ["v = np.tile(1.0, 3)", "w = np.asarray(v)", "w[0] = 2", "u = np.ascontiguousarray(v)", "u[1] = a0[0]"], "np.sum(v), np.sum(w), u, v, w", [_F],
    ),
    "a slice of one element is contiguous": (["v = np.ascontiguousarray(a0[1::2])", "w = a1[::2].ravel()", "u = np.asfortranarray(a1[::4])"], "v, w, u", [_F, _F2]),
    "a division by a number that no turn made NumPy's": (
        ["a0[0] = 5", "v = 0.0", "for i in range(40):", "    if a0[i % 3] > 1e9:", "        v += a0[i % 3]"], "1 / v", [_F],
    ),
    "a division by a number that some turn made NumPy's": (
        ["a0[0] = 5", "v, w = 0.0, 0", "for i in range(40):", "    if a0[i % 3] > 4:", "        v, w = a0[i % 3] * 0, w + 1", "    a0[2] = 1 / v if i > 9 else 7"], "1 / v, v / w", [_F],
    ),
    "an empty array that is tiled stays read-only": (
        ["v = np.tile(a0[:0], 2)", "w = np.tile(a0, 2)", "w.sort()", "v.sort()"], "v, w", [Argument("array", "float64", ("n",), "readonly", seed=1)],
    ),
    "a name keeps an argument that no turn writes": (
        ["v = a0", "for i in range(len(a0) // 2):", "    for j in range(9, len(a0), 2):", "        v = np.var(a0)", "        a0[-1] += 2"], "v, a0", [_F],
    ),
    "a name keeps an argument that turns write": (
        ["v = a0", "u = 0", "for i in range(len(a0) // 2):", "    if len(a0) > 99:", "        v = 3.0", "    a0[-1] += 2", "    u = u + v.sum()"], "v, a0, u", [_F],
    ),
    "a complex array that is reversed, and has one row": (
        ["v = a0[3:, ::-1]", "w = a1[3:, ::-1]"], "np.abs(v), v * v, np.square(w), v * 2.5, abs(w.T), np.float32(2) * w",
        [Argument("array", "complex128", ("m", "n"), seed=1), Argument("array", "complex64", ("m", "n"), seed=2)],
    ),
    "a sum of ints and floats, as each turn says": (
        ["v = 0", "for i in range(40):", "    if a0[i % 3] > 0:", "        v += 1", "    else:", "        v += 0.5", "    a0[2] = np.abs(v)"], "v, np.abs(v), a0", [_F],
    ),
    "NumPy's functions of an int or a float behind a write": (
        ["a0[0] = 5", "v = 1 if np.sum(a0) < 1e9 else 0.5", "w = 2 if np.sum(a0) > 1e9 else 1.5", "u = True if np.sum(a0) < 1e9 else 2"],
        "np.abs(v), np.square(w), np.sqrt(v), np.maximum(v, 2), np.full(3, v), np.array([w, 2]), np.sum([v, 1]), np.abs(u), np.power(w, 2)", [_F],
    ),
    "a number that some turn makes complex": (
        ["v = w = 0", "for i in range(30):", "    if a0[i % 3] > 1e9:", "        v = v + 1j", "    else:", "        v = v * 2", "    w = w + 1j if a0[0] < 1e9 else w * 2"], "v, w", [_F],
    ),
    "forms that an int of the caller's decides": (
        ["v = a0[:8].reshape(2, 4)", "u = a1 % 3"], "np.eye(3, k=a1), np.eye(2, 4, np.argmax(a0)), np.rot90(v, a1), np.diff(a0, a1 % 7), np.insert(a0, u, 7), np.delete(v, 0 * u, axis=1)",
        [_F, Argument("int", seed=1)],
    ),
    "an arange whose step is data": (
        ["v = int(np.sum(a0 > 1e9)) + 2", "w = 1 - v"], "np.arange(0, 9, v), np.arange(9, -3, w), np.arange(v, 0, v), np.arange(len(a0), 0, w).sum()", [_F],
    ),
    "a view with gaps of an array that an inner loop makes": (
        ["for i in range(12):", "    for j in range(1, a0.shape[0]):", "        v = np.flip(a0 * i)", "        w = a0 * j", "        u = w[:, ::2]"], "v, u, w, v", [_F2],
    ),
    "a size of a call back that only the first turn has": (
        ["for i in range(12):", "    v = a0[i:i + 2]", "    for j in range(12):", "        w = np.sort(v)"], "v, w", [Argument("array", "float64", ("1",))],
    ),
    "one element of a mask is repeated into an out": (
        ["v = np.subtract(a0[:1], a1[a1 == a1[0]], out=a1)"], "v", [_F, _F],
    ),
    "a rest of one lane is truncated": (
        ["v = np.ones((2, 9), np.uint16)", "w = np.arange(27).reshape(3, 9) * len(a0)", "for i in range(12):", "    np.add.at(v, np.array([0, 1, 1]), w + i)"], "v", [_F],
    ),
    "a tuple of a variable that no path binds": (
        ["if np.any(a0 == a0):", "    if len(a0) > 3:", "        if np.sum(a0) > 1e9:", "            return a0, a0", "    else:", "        v = 1"], "v, v", [_F],
    ),
    "np.power casts one operand and goes backwards over the other": (
        ["v = np.power(a0[-2:, None], a1[::-1])", "w = np.arctan2(a1[::-1], a0[-2:, None])"], "v, w", [Argument("array", "float16", ("n",), seed=3), Argument("array", "float32", ("n",), seed=4)],
    ),
    "names of one new array that branches merge apart": (
        ["w = a0 * 3", "if np.sum(a0 == a0) > 0:", "    v = a0 * 2", "    w = v", "w[0] = 7"], "v", [_F],
    ),
    "names of one new array that come back": (
        ["a0[0] = 1", "w = a0 * 3", "if np.sum(a0 == a0) > 0:", "    v = a0 * 2", "    w = v", "else:", "    v = a0 + 1"], "v, w", [_F],
    ),
    "a branch refuses the type that a number has from the second turn on": (
        ["a0 += 1", "v = 0", "for r, q in zip(a2, a1):", "    a0 += ((0 if np.sum(r) > 0 else 1) if np.sum(a2) > 0 and len(q) > 2 else v)",
         "    if np.sum(q) < np.sum(a0) + 1e9:", "        return a0, (q > 0) & (a3 < 2)", "    v = v + np.sum(r)"],
        "v, a3", [Argument("array", "int32", ("n", "m"), seed=5), Argument("array", "uint16", ("n", "n"), seed=6), Argument("array", "float64", ("n", "m"), seed=7), Argument("array", "uint16", ("m",), seed=8)],
    ),
    "a name of two types around two loops, one a row that is not there": (
        ["v = 2.0", "for r in a0:", "    for i in range(min(12, int(np.sum(a0 > -1e9)))):", "        w = a0[i] if np.sum(r) > 1e9 else 3", "    v = v + r[0]"], "w, v", [_F2],
    ),
    "a name of two types that turns write to and read": (
        ["a1[0] = a1[0]", "v = 2.0", "for i in range(len(a0)):", "    v = v + 1 if a0[i] > 0.5 else a0 * 2", "    v -= 1", "    a1[i] = np.sum(v) + np.ndim(v)"], "v, a1", [_F, Argument("array", "float64", ("n",), seed=5)],
    ),
    "a text, a number or nothing in turns": (
        ["v = None", "s = 0.0", "a0[0] = 0.75", "for i in range(len(a0)):", "    s = s + (1 if v is None else 2 if v == 'low' else v)", "    v = 'low' if a0[i] < -0.5 else None if a0[i] < 0 else a0[i]"], "s, v == 'low', v is None", [_F],
    ),
    "a view of an array that turns make anew, and made before": (
        ["if np.any(a0):", "    u = 0", "    while u < 5:", "        u += 1", "        v = a0[None] * np.ones((3, 1))", "        w = v.T", "        if np.max(a0) > 1:", "            break"], "w, v", [_F],
    ),
    "a name that no turn binds, behind a loop that returns": (
        ["v = 0", "for i in range(a0.shape[0]):", "    try:", "        u = a0[4]", "    except IndexError:", "        w = 3", "    if np.any(a0):", "        return a0.ndim"], "v, w", [_F],
    ),
    "a loop without a turn in a branch keeps the kind of a Python number": (
        ["v = 1", "if np.sum(a0 == a0) > 0:", "    v = 0.0", "    for i in range(int(np.sum(a0 > 1e9))):", "        a1[i:] = -0.5", "        v = v + a1[i]"],
        "v, a1", [_F, Argument("array", "float32", ("n",), seed=5)],
    ),
    "sizes of data in each of many turns": (
        ["v = np.compress(a0 > 0, a0)[:1]", "for i in range(1, len(a0)):", "    v = v + np.compress(a0 <= a0[0], a0)[:1]"], "v", [_F],
    ),
    "an array of numbers or of bools": (
        ["v = a0", "for i in range(80):", "    if a0[i % 5] > 0:", "        v = a0 > 1"], "v * 1", [_F],
    ),
    "a sum of one of two types": (
        ["v = sum([a0, (np.argmax(a0) if np.any(a0)or(len(a0)>4) else np.mean(a0, axis=0))])", "v += v[::-1]"], "v", [_F],
    ),
    "a sum of two ranks": (
        ["v = sum([a0, (a0 if 2.5<=np.max(a0)<0.5 else a0[None,np.array([0,1,-1])][:, :1])])", "v = v ** 2"], "v", [_F],
    ),
    "a number that an inner loop makes NumPy's": (
        ["v = 1", "for i in range(0,a0.shape[0],1+int(np.sum(a0>0))):", "    w = 0", "    while w < 5 and np.sum(a0) < -1e6:", "        w += 1", "        v = np.fmod(i, 1e3, dtype=np.float64)"], "v", [_F],
    ),
    "a strided column reshaped by a size that is data": (["v = np.nonzero(a0)[0]"], "v, v.reshape(1,-1)", [_F2]),
    "a name that some paths bind to another name's view": (
        ["v = a0[::-2]", "if np.sum(v)>1e9:", "    v = v[1:]", "elif np.sum(a0)>-1e9 and len(v)>2:", "    w = v"], "w, v", [_F],
    ),
    "a view that inner turns take of what an outer one makes": (
        ["for i in range(10):", "    v = a0 * i", "    for j in range(len(a0)):", "        if a0[j]<i:", "            w = v[None]"], "v, w", [_F],
    ),
    "two types in a branch of a branch, in a tuple": (
        ["if np.sum(a0) > -1e9:", "    v = a0 > 0 if a0[0] < 0 else a0 * 2", "    if np.sum(a0) > -1e8:", "        return v, 1", "else:", "    u = a0[:-1]"], "u", [_F],
    ),
    "a cast of the program's own in front of an operator of NumPy's": (
        ["v = np.max(np.reciprocal((a0[-2:] != 7)), axis=(-1,))", "w = np.asarray(v).astype(np.uint8) ** 0"], "w ** 2, -np.rint(v)", [_F],
    ),
    "complex elements stored beside sums in two orders": (
        ["v = (np.std(a0, axis=-1) * (a0 / a0[:])) <= (a0 + a0[0])"], "a0 * 7 + np.sum(a0), v", [Argument("array", "complex64", ("n",), seed=4)],
    ),
    "one element of an array that repeats it": ([], "np.expm1(a0[::-2]), np.expm1(a0)", [Argument("array", "float64", ("1",), "broadcast", 2122153958)]),
    "a mean beside an axis of every other element": ([], "a0[:, ::-2].mean(0), a0[:, 1::3].sum(0)", [Argument("array", "float32", ("n", "m"), "broadcast", 247943969)]),
    "results that are one another, by a branch and by a merge": (
        ["v = np.sign(a0 - 9)", "if np.sum(v) > 0:", "    np.minimum(a0, a0 * 3, out=v, where=v > 1)", "    a0[...] = a0 * 2", "else:", "    w = a0", "    if np.max(w) > 1:", "        if np.all(a0 == w):", "            return v, v"],
        "w, v", [Argument("array", "int32", ("n", "m"), seed=3)],
    ),
    "what a name was before a loop, and an inner one binds anew": (
        ["v, w, u = a0, a0, a0", "for i in range(len(a0)):", "    w = u", "    u = None", "    for j in range(len(a0)):", "        v, u = u, v", "    v = a0[:2] * i"],
        "v, w", [Argument("array", "float64", ("n",), seed=1)],
    ),
    "a scalar is filled to no effect": (["v = np.cos(a0)", "v.fill(2)"], "v", [Argument("float", seed=1)]),
    "one array by two names, of which one is a number in other turns": (
        ["for i in range(12):", "    v = np.std(0, keepdims=True)", "    if np.any(a0):", "        v = np.isinf(a0[1:3])", "        w = v"], "v, w", [_F],
    ),
    "one array by two names that are None until a turn binds them": (
        ["v = w = None", "for i in range(12):", "    if i < a1:", "        v = a0 * i", "    else:", "        w = v"], "v, w, v is w", [_F, Argument("int", seed=1)],
    ),
    "the last turn of the outer loop has none of the inner one": (
        ["for i in range(12):", "    a0 += -1", "    v1 = np.compress(a0.ravel() > 0, a0.ravel())", "    v2 = 0.0", "    for i in range(v1.shape[0] // 2):", "        v2 = v2 + v1[i]"],
        "v2, a0", [Argument("array", "float16", ("n", "m"), "negative", 147534151, special=0.1)],
    ),
    "dtypes are refused before shapes": (
        ["v = a0 if np.sum(a0) > 0 else a1", "np.minimum(a1, a1 * 2, out=v)"], "v", [Argument("array", "uint16", ("n",), seed=1), Argument("array", "float64", ("m", "n"), seed=2)],
    ),
    "a loop of a loop writes to an argument by a name that it binds anew": (
        ["v = a0", "for i in range(12):", "    for i in range(0, 3, 1 + int(np.sum(a0 > 0))):", "        np.put(v, np.array([[0, 1], [1, 0]]), v, mode='wrap')", "        v = np.take(a0, np.array([0, 1, 1]), axis=0)"],
        "v, a0", [Argument("array", "int8", ("n", "m"), "strided", seed=1)],
    ),
    "one side of a branch writes to an array and leaves it behind in a loop": (
        ["v = np.outer(a0, a0)", "if np.any(a0):", "    v[0] += 1", "    for r in a0[::-1]:", "        v[:] = np.cumsum(a0)", "        if len(v) <= 2:", "            v = v.diagonal()"],
        "v", [Argument("array", "int32", ("n",), "readonly", seed=1)],
    ),
    "a power of nothing looks at what a name is": (
        ["v = 0", "for r in a0:", "    v = np.fmod(v**0, np.log(r))", "    v = np.reshape(r % r, (-1, 2))"], "v",
        [Argument("array", "int8", ("m", "m"), seed=1241671393)],
    ),
    "one element on one side, a size that is 1 by chance on the other": (
        ["v = np.sum(a0[:1], keepdims=True)", "if np.sum(a0) > 0:", "    v = a0[::-2][: a0.shape[0] // 7]"], "v",
        [Argument("array", "float64", ("n",), seed=389061537)],
    ),
    "one static number is written through a view of its array": (
        ["v = np.cumsum(np.min(0.5, axis=None), axis=None)", "v.ravel()[:] -= np.std(a0)", "a0[[1, 0]] += v"], "a0, v", [_F],
    ),
    "a static array is written through a view, and NumPy reads it": (
        ["v = np.cumsum(np.min(0.5, axis=None), axis=None)", "v.ravel()[:] -= np.std(a0)", "w = np.expm1(v)"], "w, v", [_F],
    ),
    "put of no values behind a write": (["a0[0] = 3", "v = a0 * 1", "np.put(a0, [0, 1], v[v > 99])", "np.put(a0, np.flatnonzero(a0 > 99), v)"], "v, a0", [_F]),
    "turns that never run": (
        ["v = np.maximum(a0[a0 > 0], 1)", "w = 0", "for i, r in enumerate(v):", "    w = a0[i]", "    v[i:] = -0.5"], "w",
        [Argument("array", "float64", ("1", "1"), seed=1029848607)],
    ),
    "the size of a name that is an array or a number": (
        ["v = a0 >= 0", "for i in range(a0.shape[0] // 2):", "    v[i] = v[i - 1]", "    w = np.linspace(0, 1, v.shape[0])", "    v = v + a0[i]",
         "    if np.sum(v) > 0:", "        continue", "    v = float(np.max(v))"],
        "w", [Argument("array", "float64", ("n",), "broadcast", seed=141675795)],
    ),
    "rows that a turn numbers, of a name that was an array of another rank": (
        ["v = a0 + 1", "w = np.argwhere(a0)[:, 0]", "for i in range(1, w.shape[0]):", "    w = v[i : i + 2]"], "w", [_F2],
    ),
    "an inner loop writes to what the outer one began its turn with": (
        ["v = a0 * 1.0", "for i in range(12):", "    a0[0] *= 2", "    w = 0", "    while w < 3 and np.sum(a0) < 1e6:", "        w += 1", "        v += v[::-1]", "        v = np.less_equal(a0, 2)"],
        "w, a0", [Argument("array", "int16", ("m",), "strided", seed=1)],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FAILED)
def test_programs_that_failed(name: str) -> None:
    lines, returned, arguments = FAILED[name]
    program = Fuzzed(1, arguments, lines, [_SIZES, _SIZES, {"n": 5, "m": 7}], returned)
    counts = Counts()
    found = check(program, counts)
    assert found is None, str(found)
    assert not counts.layouts


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["for i in range(a0.shape[0]):", "    v = a0[:i] * 1"], "size of v is known only within a turn of the loop"),
        (
            ["v = a0 + 1", "for i in range(80):", "    if a0[i] > a1:", "        v = a0", "a0[0] = 9"],
            "may share memory",
        ),
        (
            [
                "v, w = a0 + 1, a0 + 2",
                "for i in range(80):",
                "    if a0[i] > a1:",
                "        w = a0 * i",
                "        v = w",
                "w[0] = 9",
            ],
            "may share memory|may be one of two",
        ),
        (
            [
                "v, w = a0 + 1, a0 + 2",
                "for i in range(80):",
                "    if a0[i] > a1:",
                "        w = a0 * i",
                "        v = w",
                "    w[0] = 9",
            ],
            "may share memory|may be one of two",
        ),
    ],
)
def test_what_no_graph_can_say_is_left_to_python(lines: list[str], text: str) -> None:
    sizes = {"n": 80, "m": 4}  # more turns than are traced one by one
    program = Fuzzed(1, [_F, Argument("int", seed=1)], lines, [sizes], "v * 1")
    counts = Counts()
    with pytest.warns(UserWarning, match=f"plain Python: .*({text})"):
        assert check(program, counts) is None
    assert counts.levels["plain Python"] == 1


def test_what_nothing_is_promised_about() -> None:
    nan, numbers = np.array([1.0, np.nan]), np.array([1.0, -2.0])
    for function in (lambda x: np.signbit(x[:]), lambda x: np.copysign(1, x), lambda x: (x * np.inf).astype(np.int8)):
        assert undefined(function, lambda: [nan])
    for function in (lambda x: np.signbit(x[:]), lambda x: np.copysign(np.nan, x), lambda x: x.astype(np.int8)):
        assert not undefined(function, lambda: [numbers])
