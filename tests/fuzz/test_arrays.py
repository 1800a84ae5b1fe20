"""Programs about which arrays lie in one another's memory, and who may write to them, compared with NumPy at each level."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph.config import config
from tests.fuzz.arguments import Argument
from tests.fuzz.levels import Counts, check
from tests.fuzz.programs import Fuzzed

_F = Argument("array", "float64", ("n",), seed=1)
_F2 = Argument("array", "float64", ("n", "m"), seed=2)
_SIZES = [{"n": 7, "m": 4}, {"n": 3, "m": 5}]
_LOCKED = "np.broadcast_to(a0 + 1, a0.shape)"


@pytest.fixture(autouse=True)
def _no_disk_cache():
    with config.override(cache=False), np.errstate(all="ignore"):
        yield


def _program(lines: list[str], returned: str, argument: Argument) -> Fuzzed:
    return Fuzzed(1, [argument], lines, _SIZES, returned)


#: Arrays that nobody may write to, behind loops and branches.
READ_ONLY = {
    "in a loop of turns that are data": (["v = 0", "for i in range(min(12, int(np.sum(a0 > 0)))):", f"    v = {_LOCKED}"], "v"),
    "in a loop": (["v = 0", "for i in range(a0.shape[0]):", f"    v = {_LOCKED}"], "v"),
    "before and in a loop": ([f"v = {_LOCKED}", "for i in range(a0.shape[0]):", f"    v = {_LOCKED}"], "v"),
    "in a loop only": (["v = a0 * 1", "for i in range(a0.shape[0]):", f"    v = {_LOCKED}"], "v"),
    "before a loop only": ([f"v = {_LOCKED}", "for i in range(a0.shape[0]):", "    v = v + 1"], "v"),
    "written in the second turn": (["v = a0 * 1", "for i in range(a0.shape[0]):", "    v[0] += 1", f"    v = {_LOCKED}"], "v"),
    "written if there is a second turn": (
        ["v = a0 * 1", "for i in range(a0.shape[0] - 2):", "    v[0] += 1", f"    v = {_LOCKED}"], "v",
    ),
    "bound by a branch in a loop": (
        ["for r in a0:", "    if np.sum(a0) > 0:", f"        v = {_LOCKED}", "    else:", "        w = 1"], "v",
    ),
    "both sides of a branch": (
        ["if np.sum(a0) > 0:", f"    v = {_LOCKED}", "else:", "    v = np.broadcast_to(a0[0], a0.shape)"], "v",
    ),
    "one side of a branch": (["if np.sum(a0) > 0:", f"    v = {_LOCKED}", "else:", "    v = a0 + 2"], "v"),
    "the other side of a branch": (["if np.sum(a0) < 0:", f"    v = {_LOCKED}", "else:", "    v = a0 + 2"], "v"),
    "one side, written": (["if np.sum(a0) > 0:", f"    v = {_LOCKED}", "else:", "    v = a0 + 2", "v[0] = 3"], "v"),
    "the other side, written": (["if np.sum(a0) < 0:", f"    v = {_LOCKED}", "else:", "    v = a0 + 2", "v[0] = 3"], "v"),
    "one side, the argument on the other": (["if np.sum(a0) > 0:", f"    v = {_LOCKED}", "else:", "    v = a0"], "v"),
    "views of the argument on both sides": (
        ["if np.sum(a0) < 0:", "    v = np.broadcast_to(a0[0], a0.shape)", "else:", "    v = a0", "v[1] = 2"], "v",
    ),
    "behind a write": (["a0[0] = 3", "if np.sum(a0) < 0:", f"    v = {_LOCKED}", "else:", "    v = a0 + 1", "w = v + 1"], "v, w"),
    "a diagonal in a loop": (
        ["v = a0 * 1", "for i in range(3, a0.shape[0]):", "    v = (a0[:, None] * a0).diagonal()", "w = v + 1"], "v, w",
    ),
    "in nested loops": (["v = 0", "for i in range(a0.shape[0]):", "    for j in range(i, a0.shape[0]):", f"        v = {_LOCKED}"], "v"),
    "in a tuple": ([f"v = (a0, {_LOCKED})", "for i in range(a0.shape[0]):", f"    v = (v[0] + 1, {_LOCKED})"], "v"),
    "in a while": (["v = a0 + 1", "w = 0", "while w < a0.shape[0]:", "    w += 1", f"    v = {_LOCKED}"], "v"),
    "in a while on data": (["v = a0 + 1", "w = 0", "while w < np.sum(a0 > 0):", "    w += 1", f"    v = {_LOCKED}"], "v"),
    "of the argument, written": (
        ["v = a0", "for i in range(len(a0)):", "    v = np.broadcast_to(a0, a0.shape)", "a0[0] = 5"], "v",
    ),
    "of a number": (["s = 2.5", "w = np.broadcast_to(s, (3,))", "u = w[1:]"], "w, u"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READ_ONLY)
def test_read_only_arrays_stay_read_only(name: str) -> None:
    lines, returned = READ_ONLY[name]
    found = check(_program(lines, returned, _F))
    assert found is None, str(found)


@pytest.mark.filterwarnings("ignore")
def test_a_write_to_what_is_read_only_in_some_turns_is_left_to_python() -> None:
    lines = ["a0[0] = 1", "v = a0 * 1", "for i in range(int(np.sum(a0 > 0))):", "    v[1] += 1", "    if a0[i] > 1:"]
    counts = Counts()
    assert check(_program([*lines, f"        v = {_LOCKED}"], "v", _F), counts) is None
    assert counts.levels["plain Python"] == len(_SIZES)


#: Arrays that NumPy makes of numbers which Python knows, and views of them.
STATIC = {
    "roll of a number": (["v = np.roll(0 ** 0.5, 1)", "w = v.T"], "w, v"),
    "at least two axes": (["v = np.atleast_2d(3)", "w = v.T"], "w, v"),
    "in a loop": (["v = np.atleast_2d(3)", "for i in range(len(a0)):", "    w = v.swapaxes(0, -1)"], "v, w"),
    "views that a loop chooses": (["v = np.arange(4)", "for i in range(len(a0)):", "    w = v[i % 3:]"], "v, w"),
    "views that a branch chooses": (["v = np.arange(4)", "if np.sum(a0) > 0:", "    w = v[1:]", "else:", "    w = v[:-1]"], "v, w"),
    "views of views": (["v = np.atleast_1d(2)", "w = np.expand_dims(v, 0)", "u = np.squeeze(w)"], "v, w, u"),
    "the base is nobody's": (["w = np.expand_dims(2, 0)", "u = np.squeeze(w)"], "w, u"),
    "of a NumPy scalar": (["w = np.atleast_3d(np.float32(2.5))", "u = np.ravel(w)", "x = np.rot90(np.atleast_2d(w[0]))"], "w, u, x"),
    "written": (["v = np.array([1, 2, 3])", "for i in range(len(a0)):", "    w = v[1:]", "    w[0] = i"], "v, w"),
    "reversed in turns": (["s = np.arange(5)", "t = s", "for i in range(a0.shape[0]):", "    s = s[::-1]"], "s, t"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STATIC)
def test_views_of_arrays_made_while_tracing(name: str) -> None:
    lines, returned = STATIC[name]
    found = check(_program(lines, returned, _F))
    assert found is None, str(found)


#: Names of rows of new arrays that have a name, too.
ROWS = {
    "of an array made in the turn": (["for i in range(len(a0)):", "    v = a0 * i", "    w = v[i]"], "v, w"),
    "from the second on": (["for i in range(1, len(a0)):", "    v = a0 * i", "    w = v[i]"], "v, w"),
    "of an array that turns hand on": (["v = a0 + 1", "for i in range(1, len(a0)):", "    v = v * i", "    w = v[i]"], "v, w"),
    "written in the turn": (["v = a0 + 1", "for i in range(1, len(a0)):", "    v = v * i", "    w = v[i]", "    v[0] = 7"], "v, w"),
    "from the last one down": (["for i in range(len(a0) - 1, 0, -1):", "    v = a0 * i", "    w = v[i]"], "v, w"),
    "in steps": (["for i in range(0, len(a0), 2):", "    v = a0 * i", "    w = v[i]"], "v, w"),
    "in a number of turns that is data": (["for i in range(int(np.sum(a0 > 0))):", "    v = a0 * i", "    w = v[i % 2]"], "v, w"),
    "of an array that no turn binds anew": (
        ["v = a0 * 2", "for i in range(len(a0)):", "    if v.ndim == 1:", "        v = v * 2", "    w = v[i]", "    u = v"], "v, w, u",
    ),
    "and the array again": (["v = a0 * 2", "for i in range(len(a0)):", "    v = v * 2", "    w = v", "    u = w.T", "x = u[0]"], "v, w, u, x"),
    "of the array before": (["v = a0 * 2", "for i in range(len(a0)):", "    w = v", "    v = v * 2", "    w[0] = 1"], "v, w"),
    "in a while": (["i = 0", "while i < len(a0):", "    v = a0 * i", "    w = v[i]", "    i += 1"], "v, w"),
    "until a break": (["for i in range(len(a0)):", "    v = a0 * i", "    w = v[i]", "    if a0[i, 0] > 1:", "        break"], "v, w"),
    "of a reversed view": (["for i in range(len(a0)):", "    v = a0 * i", "    w = v[::-1][i]"], "v, w"),
    "in nested loops": (
        ["for i in range(len(a0)):", "    for j in range(1, len(a0)):", "        v = a0 * i", "        w = v[j]", "        u = v[:, j % 2]"], "v, w, u",
    ),
    "in an inner loop that may have no turn": (
        ["for i in range(len(a0)):", "    for j in range(i, 4):", "        v = a0 * i", "        w = v[j % 3]"], "w",
    ),
    "written behind": (["for i in range(len(a0)):", "    v = a0 * i", "    w = v[i]", "w[0] = 9"], "v, w"),
    "of what is written behind": (["for i in range(len(a0)):", "    v = a0 * i", "    w = v[i]", "v[:] = 9"], "v, w"),
    "that data choose": (["for i in range(len(a0)):", "    v = a0 * i", "    w = v[int(a0[i, 0] > 0)]"], "v, w"),
    # the array itself is forgotten
    "turned, and a row of that": (["for i in range(len(a0)):", "    u = a0 * i", "    v = u.T", "    w = v[i % 3]"], "v, w"),
    "two that overlap": (["for i in range(len(a0)):", "    u = a0 * i", "    v = u[:2]", "    w = u[1:]"], "v, w"),
    "a row and a column": (["for i in range(1, len(a0)):", "    u = a0 * i", "    v = u[i]", "    w = u[:, i % 3]"], "v, w"),
    "flat, and a row": (["for i in range(len(a0)):", "    u = a0 * i", "    v = u.reshape(-1)", "    w = u[i]"], "v, w"),
    "of an expression": (["for i in range(len(a0)):", "    v, w = (lambda u: (u[0], u[1:]))(a0 * i)"], "v, w"),
    "in a tuple": (["for i in range(len(a0)):", "    u = a0 * i", "    v = (u.T, u[i])"], "v"),
    "one written": (["for i in range(len(a0)):", "    u = a0 * i", "    v = u[1:]", "    w = u[i]", "    w[0] = 7"], "v, w"),
    "one written behind": (["for i in range(len(a0)):", "    u = a0 * i", "    v = u[1:]", "    w = u[i]", "w[0] = 7"], "v, w"),
    "of two arrays": (["for i in range(len(a0)):", "    u = a0 * i", "    v, w = u[1:], u[i]", "    u = a0 + i", "    x, y = u[i], u.T"], "v, w, x, y"),
    "until a break of data": (
        ["for i in range(len(a0)):", "    u = np.outer(a0, 2.0 * i)", "    v = u.T", "    w = v[:, i:i + 2]", "    if np.any(a0 > 1):", "        break"], "v, w",
    ),
    "in a nested loop": (["for i in range(len(a0)):", "    for j in range(3):", "        u = a0 * i", "        v, w = u[1:], u[j]"], "v, w"),
}  # fmt: skip

#: Views of a new array that a branch makes and forgets.
SIDES = {
    "turned, and a row of that": (["if np.sum(a0) < 1e9:", "    u = a0 * 2", "    v = u.T", "    w = v[0]"], "v, w"),
    "two that overlap": (["if np.sum(a0) < 1e9:", "    u = a0 * 2", "    v, w = u[:2], u[1:]"], "v, w"),
    "or others": (["v = w = a0", "if np.sum(a0) < 1e9:", "    u = a0 * 2", "    v = u.T", "    w = v[1:]"], "v, w"),
    "or others, backwards": (["v = w = a0", "if np.sum(a0) < 1e9:", "    u = a0 * 2", "    v = u[::-1]", "    w = v[1:]"], "v, w"),
    "of both sides": (
        ["if np.sum(a0) < 1e9:", "    u = a0 * 2", "    v, w = u.T, u[0]", "else:", "    u = a0 + 1", "    v, w = u.T, u[1]"], "v, w",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SIDES)
@pytest.mark.parametrize("taken", [True, False])
def test_views_of_what_a_branch_makes(name: str, taken: bool) -> None:
    lines, returned = SIDES[name]
    found = check(_program(lines if taken else [line.replace("<", ">") for line in lines], returned, _F2))
    assert found is None, str(found)


def test_a_view_in_a_place_that_a_side_computes() -> None:
    """Nothing of the side is left behind it but numbers: the machine code knew of no such place once."""
    lines = ["k = int(abs(a0[0, 0]))", "if np.sum(a0) < 1e9:", "    u = a0 * 2", "    v = u[1:]", "    w = u[k]"]
    found = check(_program(lines, "v * 1, w", _F2))
    assert found is None, str(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_new_arrays_share_their_memory(name: str) -> None:
    lines, returned = ROWS[name]
    found = check(_program(lines, returned, _F2))
    assert found is None, str(found)


def test_a_view_of_what_a_turn_begins_with_which_the_first_turn_has_from_outside() -> None:
    lines = ["v = a0", "for i in range(len(a0) - 1):", "    w = v[-2:]", "    v = v + i"]
    argument = Argument("array", "uint16", ("m", "m"), "F", seed=1)
    found = check(Fuzzed(1, [argument], lines, [{"m": 2}, {"m": 2}, {"m": 4}, {"m": 2}], "v, w"), Counts())
    assert found is None, str(found)
