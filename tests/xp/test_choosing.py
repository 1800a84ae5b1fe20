"""`np.select`, grids and flat positions in NumPy's steps: dtypes, memory, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph as jg

SELECTIONS: dict[str, Callable[[Any, int], Any]] = {
    "all Python numbers are weak": lambda x, k: np.select([x < 1, x > 2], [x, k], default=len(x) // 2),
    "a weak default": lambda x, k: np.select([x < 1], [x], default=k + 300),
    "only Python numbers": lambda x, k: np.select([x < 1, x > 2], [k, 1.5]),
    "C order": lambda x, k: np.select([x[:, None] + x > 2], [np.outer(x, x).T]),
    "a static condition": lambda x, k: np.select([True, x > 1], [x * 2, k]),
    "a choice that the dtype does not take": lambda x, k: np.select([x > 1], [k], default=x),
    "integers as conditions": lambda x, k: np.select([x], [x], default=k),
    "no conditions": lambda x, k: (x, np.select([], [], default=x)),
    "more choices": lambda x, k: np.select([x > 1], [x, k]),
    "sizes that do not fit": lambda x, k: np.select([x > 1], [x[:k]]),
}
GRIDS: dict[str, Callable[[Any, int], Any]] = {
    "backwards": lambda x, k: np.mgrid[:k, 1 : k - 1],
    "by two": lambda x, k: np.mgrid[k:0:2, 0:3],
    "down": lambda x, k: np.mgrid[0:k:-1, 0 : len(x)],
    "floats": lambda x, k: np.mgrid[0 : x[1] * k : 0.5, 0:2],
    "one slice": lambda x, k: np.mgrid[:k],
    "sparse": lambda x, k: np.ogrid[:k, 1 : k - 1],
}
POSITIONS: dict[str, Callable[[Any, int], Any]] = {
    "an empty axis": lambda x, k: np.ravel_multi_index((x, x), (3, k), mode="clip"),
    "an empty axis around": lambda x, k: np.ravel_multi_index((x[:k], x[:k]), (k, 3), mode="wrap"),
}


def _outcome(f: Callable[..., Any], *args: Any) -> Any:
    try:
        return f(*args)
    except (ValueError, TypeError) as e:
        return (TypeError if isinstance(e, TypeError) else ValueError), str(e).split("\n")[0]


def _assert_same(f: Callable[[Any, int], Any], x: Any, calls: tuple[int, ...]) -> None:
    jitted = jg.jit(f)
    for k in calls:
        wanted, found = _outcome(f, x, k), _outcome(jitted, x, k)
        assert type(found) is type(wanted), (k, wanted, found)
        if isinstance(wanted, np.ndarray):
            np.testing.assert_array_equal(found, wanted, strict=True)
            assert found.flags.c_contiguous == wanted.flags.c_contiguous
        elif wanted and isinstance(wanted[0], type):
            assert found[0] is wanted[0], (k, wanted, found)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", ">i4"])
@pytest.mark.parametrize("name", SELECTIONS)
def test_select(name: str, dtype: str) -> None:
    _assert_same(SELECTIONS[name], np.arange(4).astype(dtype), (1, 4))


@pytest.mark.parametrize("name", GRIDS)
def test_grids(name: str) -> None:
    _assert_same(GRIDS[name], np.arange(3), (2, -1, 0, 1, -3, 3))


@pytest.mark.parametrize("name", POSITIONS)
def test_positions(name: str) -> None:
    _assert_same(POSITIONS[name], np.arange(3), (2, 0, 1, 3))


def test_errors_of_calls_back_name_the_users_line() -> None:
    def f(x: Any, k: int) -> Any:
        return np.partition(x, k)

    jitted = jg.jit(f)
    jitted(np.arange(3), 1)
    with pytest.raises(ValueError, match="out of bounds") as caught:
        jitted(np.arange(3), 7)
    (note,) = caught.value.__notes__
    assert "np.partition(x, k)" in note
