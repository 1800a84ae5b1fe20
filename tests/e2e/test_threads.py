"""Results do not depend on the number of threads: the same bits on 1, 2, 3 and 8, and NumPy's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.runtime import threads
from tests.threads_setup import eager_threads, regions_run

COUNTS = (1, 2, 3, 8)
RNG = np.random.default_rng(31)


@pytest.fixture(scope="module", autouse=True)
def _threads() -> Iterator[None]:
    """However little there is to do, threads do it."""
    with eager_threads():
        yield


def softmax(x: Any) -> Any:
    t = np.exp(x - x.max(axis=1, keepdims=True))
    return t / t.sum(axis=1, keepdims=True)


def layer_norm(x: Any) -> Any:
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def inner_write(x: Any) -> Any:
    x[1:-1, 1:-1] = x[1:-1, 1:-1] * 2 + 1
    return x[::2].sum(axis=0)


def neighbours(x: Any) -> Any:
    x[1:] += x[:-1]
    x[:, :-1] -= x[:, 1:]
    return x


def stencil(x: Any) -> Any:
    return x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]


def masked(x: Any) -> Any:
    y = x.copy()
    y[x > 0.3] = -1.0
    y[y < -0.7] *= 2
    return y, x[x > 0.5].sum(), np.where(x > 0, x, -x)


def gathered(x: Any) -> Any:
    rows = np.arange(x.shape[0])[::-1]
    y = x[rows] + x[rows // 2]
    y[rows[: x.shape[0] // 2]] = 0.5
    return y, np.take(x, rows, axis=0)


def steps(x: Any) -> Any:
    u = x.copy()
    for _ in range(20):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return u


def loops(x: Any) -> Any:
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * (j + 1)
        out[i] = total
    return out


def recurrence(x: Any) -> Any:
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] * 0.5 + x[i]
    return y


PROGRAMS: list[Callable[[Any], Any]] = [
    softmax, layer_norm, inner_write, neighbours, stencil, masked, gathered, steps, loops, recurrence,
    lambda x: np.exp(x) * np.sin(x),
    lambda x: x.T * 2 + x.T[::-1],
    lambda x: x[::2, ::-3] + 1,
    lambda x: x + x[0] + x[:, :1],
    lambda x: np.broadcast_to(x[0], x.shape) * x,
    lambda x: (x.sum(), x.mean(), x.std(), x.var(ddof=1)),
    lambda x: (x.sum(axis=0), x.sum(axis=1), x.mean(axis=0), x.std(axis=1), x.var(axis=0)),
    lambda x: (x.T.sum(), x[::2].sum(), x[:, ::2].sum(axis=0), x[::-1].sum(), x.T.sum(axis=0)),
    lambda x: (x.max(), x.min(), x.argmax(), x.argmin(), np.ptp(x)),
    lambda x: (x.argmax(axis=0), x.argmin(axis=1), x.max(axis=0), x.min(axis=1)),
    lambda x: (np.cumsum(x), np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.cumprod(x, axis=1)),
    lambda x: ((x > 0).sum(), (x > 0).any(), (x > -9).all(), np.count_nonzero(x), (x > 0).any(axis=0)),
    lambda x: (np.prod(x[:3]), np.prod(x, axis=0)),
    lambda x: np.concatenate([x, x * 2], axis=1),
    lambda x: np.stack([x, -x]).reshape(-1, 2).sum(axis=1),
    lambda x: np.diff(x, axis=0) ** 2,
    lambda x: (x * 1000).astype(np.int32).sum() + (x * 1000).astype(np.int64).sum(axis=0),
    lambda x: (x.astype(np.float32).sum(), x.astype(np.float32).sum(dtype=np.float64), x.astype(np.float16).sum()),
    lambda x: (x + 1j * x[::-1]).sum() + ((x + 1j * x) * (x - 2j)).sum(axis=0),
    lambda x: np.sort(x, axis=1) + 1,
    lambda x: np.linalg.norm(x, axis=1),
    lambda x: x.ravel()[:100].sum() + (x * x).sum(),
]  # fmt: skip


def leaves(r: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in (r if isinstance(r, tuple) else (r,))]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_same_bits_on_any_number_of_threads(number: int) -> None:
    plain = PROGRAMS[number]
    for shape in ((97, 131), (3, 4000), (4000, 3)):
        x = RNG.uniform(-1, 1, shape)
        x[1, 2] = np.nan if number % 2 else 0.25
        compiled = jg.jit(plain)
        expected_argument = x.copy()
        with np.errstate(all="ignore"):
            expected = leaves(plain(expected_argument))
        found: list[list[bytes]] = []
        for count in COUNTS:
            jg.set_num_threads(count)
            argument = x.copy()
            result = leaves(compiled(argument))
            np.testing.assert_array_equal(argument, expected_argument)
            found.append([r.tobytes() for r in result])
            for r, e in zip(result, expected, strict=True):
                assert (r.dtype, r.shape) == (e.dtype, e.shape)
                np.testing.assert_allclose(r, e, rtol=1e-12 if e.dtype.itemsize > 4 else 1e-3, atol=1e-300)
        assert all(f == found[0] for f in found)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.complex128, bool]
)
def test_whole_sums_of_all_dtypes_are_numpys(dtype: type) -> None:
    total = jg.jit(lambda x: (x.sum(), (x * x).sum() if x.dtype != bool else x.any()))
    jg.set_num_threads(3)
    for n in (0, 1, 8191, 8192, 8193, 8192 + 127, 20_001):
        x = (RNG.standard_normal(n) * (0.5 if dtype is np.float16 else 5)).astype(dtype)
        before = regions_run()
        found = total(x)
        assert n < 8192 or regions_run() > before
        for a, b in zip(found, (x.sum(), (x * x).sum() if dtype is not bool else x.any()), strict=True):
            np.testing.assert_array_equal(a, b)


def test_first_extreme_wins_in_whichever_piece() -> None:
    where = jg.jit(lambda x: (x.argmax(), x.argmin(), x.max()))
    jg.set_num_threads(3)
    for at in ((5, 9000), (8191, 8192), (12_000, 19_999), (0, 0)):
        x = np.zeros(20_000)
        x[list(at)] = 1.0
        assert where(x)[:2] == (x.argmax(), x.argmin())
        x[at[1]] = np.nan
        assert where(x)[:2] == (x.argmax(), x.argmin())
        assert np.isnan(where(x)[2])


def test_a_failing_check_is_the_serial_one() -> None:
    """What may leave with an error runs in one thread: what was written before is what NumPy would have written."""

    def fill(out: Any, index: Any, x: Any) -> Any:
        for i in range(index.shape[0]):
            out[index[i]] = x[i]
        return out.sum()

    x = RNG.uniform(size=4000)
    index = np.arange(4000)
    index[3000] = 9999
    expected, given = np.zeros(4000), np.zeros(4000)
    with pytest.raises(IndexError) as plain:
        fill(expected, index, x)
    jg.set_num_threads(3)
    with pytest.raises(IndexError) as found:
        jg.jit(fill)(given, index, x)
    assert str(found.value).splitlines()[0] == str(plain.value)
    np.testing.assert_array_equal(given, expected)


def test_many_python_threads_call_at_once() -> None:
    """One has the pool, the others run alone; shapes change all the time."""
    function = jg.jit(lambda x, y: (np.exp(x) * y + x.T[0], (x * y).sum(), x.max(axis=0)))
    jg.set_num_threads(3)
    wrong: list[Any] = []
    end = time.monotonic() + 2.0

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            while time.monotonic() < end:
                n = int(rng.integers(2, 150))
                x, y = rng.random((n, n)), rng.random((n, n))
                found = function(x, y)
                for a, b in zip(found, (np.exp(x) * y + x.T[0], (x * y).sum(), x.max(axis=0)), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-14)
        except BaseException as e:  # noqa: BLE001  # told to the test's own thread
            wrong.append(e)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_products_keep_their_bits_on_the_pool() -> None:
    products = [(RNG.random((n, n)), RNG.random((n, n))) for n in (64, 130, 300)]
    expected = [a @ b for a, b in products]
    for count in (1, 2, 3):
        jg.set_num_threads(count)
        function = jg.jit(lambda a, b: a @ b)
        for (a, b), e in zip(products, expected, strict=True):
            np.testing.assert_array_equal(function(a, b), e)
            np.testing.assert_array_equal(a @ b, e)
    jg.set_num_threads(1)
    assert not threads._pool.blas


def test_late_threads_take_nothing_from_later_regions() -> None:
    """More threads than cores, and regions as short as can be: a thread that wakes late finds another region."""
    add = jg.jit(lambda x: x + 1.0)
    jg.set_num_threads(8)
    x = RNG.random(200)
    expected = x + 1.0
    for _ in range(4000):
        np.testing.assert_array_equal(add(x), expected)
