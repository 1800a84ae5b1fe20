"""The memory pool: arrays that are ordinary ones to NumPy and to the user, blocks that come back, and what happens in
threads, forks and at exit."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import gc
import os
import pickle
import queue
import random
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.config import config
from jitgraph.runtime import pool_code
from jitgraph.runtime.pool import SMALL_BYTES, Counters, PlainMemory, Pool, most_bytes, pool, recipe, trim_memory

F64 = np.dtype(np.float64)
N = 50_000


def the_pool() -> Pool:
    found = pool()
    assert isinstance(found, Pool)
    assert found.makes_arrays
    return found


def new(shape: tuple[int, ...], dtype: np.dtype = F64, order: tuple[int, ...] | None = None) -> np.ndarray:
    """A new array as calls make it."""
    plan = recipe(dtype, tuple(range(len(shape))) if order is None else order)
    dims = (ctypes.c_int64 * len(shape))(*shape)
    return pool().array(ctypes.addressof(plan), ctypes.addressof(dims), None, 0)


def filled(n: int = N) -> np.ndarray:
    x = new((n,))
    x[:] = np.arange(n)
    return x


def handler(x: np.ndarray) -> str:
    name: str = np._core.multiarray.get_handler_name(x)
    return name


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    gc.collect()
    before = pool().counters()
    yield
    gc.collect()
    after = pool().counters()
    assert (after.asked, after.used) == (before.asked, before.used)
    assert after.held <= after.cap


# --- ordinary arrays


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
@pytest.mark.parametrize("dtype", ["f8", "i2", "?", "c16", ">f4"])
def test_an_array_is_like_numpys(order: tuple[int, ...], dtype: str) -> None:
    shape = (30, 40, 50)
    x = new(shape, np.dtype(dtype), order)
    like = np.empty([shape[k] for k in order], dtype).transpose([order.index(k) for k in range(3)])
    assert type(x) is np.ndarray
    assert (x.shape, x.strides, x.dtype) == (shape, like.strides, like.dtype)
    assert x.base is None
    assert x.flags.owndata
    assert x.flags.writeable
    assert x.flags.aligned
    assert (x.flags.c_contiguous, x.flags.f_contiguous) == (like.flags.c_contiguous, like.flags.f_contiguous)
    assert handler(x) == "jitgraph"
    assert sys.getsizeof(x) == x.nbytes + sys.getsizeof(np.empty((0, 0, 0)))
    assert x[1].base is x


@pytest.mark.parametrize("shape", [(), (3,), (0,), (5, 0, 7), (SMALL_BYTES // 8 - 1,)])
@pytest.mark.parametrize("reverse", [False, True])
def test_small_arrays_are_numpys_own(shape: tuple[int, ...], *, reverse: bool) -> None:
    order = tuple(range(len(shape)))[:: -1 if reverse else 1]
    x = new(shape, F64, order)
    like = np.empty(shape, order="F" if reverse else "C")
    assert handler(x) == handler(like)
    assert (x.shape, x.strides, x.flags.num) == (like.shape, like.strides, like.flags.num)


def test_resize() -> None:
    x = filled()
    for n in (N // 2, N + 5000, 10, 3 * N, 0, N):
        before = x.copy()
        x.resize(n, refcheck=False)
        assert x.shape == (n,)
        assert x.flags.owndata
        common = min(n, before.size)
        assert np.array_equal(x[:common], before[:common])
        assert not x[common:].any()
        assert x.ctypes.data % 64 == 0
        assert handler(x) == "jitgraph"
        assert pool().counters().asked >= x.nbytes


def test_copies_and_pickles() -> None:
    x = filled()
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(x, 5, buffer_callback=buffers.append)
    copies = [
        pickle.loads(pickle.dumps(x)),
        pickle.loads(pickle.dumps(x, 5)),
        pickle.loads(text, buffers=buffers),
        copy.copy(x),
        copy.deepcopy(x),
        np.from_dlpack(x),
        np.asarray(memoryview(x)),
        np.ctypeslib.as_array(x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), (N,)),
    ]
    for y in copies:
        assert np.array_equal(x, y)
    assert handler(copy.deepcopy(x)) == handler(np.empty(3))
    for k in (2, 5, 6, 7):
        assert np.shares_memory(copies[k], x)


def test_state_dtype_and_shape_can_be_set() -> None:
    x, y = filled(), filled()
    x.__setstate__(np.arange(7.0).__reduce__()[2])
    assert x.tolist() == [0.0, 1, 2, 3, 4, 5, 6]
    assert x.flags.owndata
    with contextlib.suppress(DeprecationWarning):
        y.shape = (2, N // 2)
        assert y[1, 0] == N // 2
    z = filled()
    with contextlib.suppress(DeprecationWarning):
        z.dtype = np.int64
        assert z[2] == np.float64(2).view(np.int64)


def test_weak_references_and_cycles() -> None:
    x = filled()
    gone = weakref.ref(x)
    holder = [x]
    holder.append(holder)  # type: ignore[arg-type]
    del x, holder
    gc.collect()
    assert gone() is None


def test_the_handlers_capsule_is_counted_right() -> None:
    capsule = ctypes.cast(the_pool().get("handler"), ctypes.py_object).value
    before = sys.getrefcount(capsule)
    x = filled()
    assert sys.getrefcount(capsule) == before + 1
    y = x.view()
    assert sys.getrefcount(capsule) <= before + 2
    del x, y
    assert sys.getrefcount(capsule) == before


def test_tracemalloc_sees_arrays() -> None:
    def traced() -> int:
        of_numpy = [tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)]
        return sum(s.size for s in tracemalloc.take_snapshot().filter_traces(of_numpy).statistics("filename"))

    old = filled()
    tracemalloc.start()
    try:
        before = traced()
        x = filled()
        assert traced() == before + x.nbytes
        x.resize(2 * N, refcheck=False)
        assert traced() == before + x.nbytes
        del old
        assert traced() == before + x.nbytes
        y = filled()
        del x
        assert traced() == before + y.nbytes
    finally:
        tracemalloc.stop()
    del y


# --- blocks


def test_memory_comes_back_and_is_taken_again() -> None:
    x = filled()
    address, before = x.ctypes.data, pool().counters()
    del x
    after = pool().counters()
    assert (after.asked, after.frees) == (before.asked - 8 * N, before.frees + 1)
    assert after.held > before.held
    y = filled(N - 100)  # of the same class
    assert y.ctypes.data == address
    assert pool().counters().hits == after.hits + 1
    assert pool().counters().taken == before.taken


def test_the_bytes_asked_for_are_exact() -> None:
    p = the_pool()
    p.reset_peak()
    before = p.counters()
    sizes = [0, 1, 100, 32704, 32705, 1 << 18, (5 << 20) + 3]
    blocks = [p.alloc(n, None, 0) or 0 for n in sizes]
    p.free(blocks.pop())
    after = p.counters()
    assert after.asked_peak - before.asked == sum(sizes)
    assert after.asked - before.asked == sum(sizes[:-1])
    assert after.asked_total - before.asked_total == sum(sizes)
    assert after.allocations - before.allocations == len(sizes)
    for block in blocks:
        p.free(block)


def test_blocks_are_apart_and_large_enough() -> None:
    p, rng = the_pool(), random.Random(0)
    blocks: dict[int, tuple[int, int]] = {}
    for turn in range(400):
        n = int(2 ** rng.uniform(0, 22))
        address = p.alloc(n, None, 0)
        assert address
        assert address % 64 == 0
        ctypes.memset(address, turn % 251, n)
        blocks[address] = (n, turn % 251)
        for old in rng.sample(sorted(blocks), len(blocks) // 4):
            n, byte = blocks.pop(old)
            assert ctypes.string_at(old, n) == bytes([byte]) * n
            p.free(old)
    for old, (n, byte) in blocks.items():
        assert ctypes.string_at(old, n) == bytes([byte]) * n
        p.free(old)


def test_large_blocks_lie_in_huge_pages() -> None:
    p = the_pool()
    address = p.alloc(20 << 20, None, 0)
    assert address is not None
    assert address % pool_code.HUGE_PAGE == 2048
    p.free(address)


def test_results_do_not_alias_their_arguments() -> None:
    """No argument lies up to 256 bytes in front of the result in the low 12 bits of addresses, if that can be."""
    p, rng = the_pool(), random.Random(1)
    slots = (ctypes.c_int64 * (4 * 6))()
    seen = set()
    for _ in range(300):
        count = rng.randrange(7)
        for k in range(count):
            slots[4 * k] = rng.randrange(1 << 40)
        address = p.alloc(100_000, ctypes.addressof(slots), count)
        assert address is not None
        p.free(address)
        bad = {
            o for o in (2048, 1024, 3072, 512) for k in range(count) if 0 < (o - slots[4 * k]) % 4096 < 256
        }  # fmt: skip
        assert address % 4096 not in bad or len(bad) == 4
        seen.add(address % 4096)
    assert seen >= {2048, 1024, 3072}


def test_no_memory() -> None:
    p = the_pool()
    assert p.alloc(1 << 46, None, 0) is None
    assert p.alloc(-1, None, 0) is None
    assert p.alloc((1 << 45) - 1, None, 0) is None
    for shape in [(1 << 42,), (1 << 40, 1 << 40), (-3, 5000)]:
        with pytest.raises((MemoryError, ValueError)):
            new(shape)


def test_trim_gives_everything_back() -> None:
    xs = [filled(), filled(200_000), filled(5_000_000)]
    del xs
    held = pool().counters().held
    assert held > 40_000_000
    assert trim_memory() == held == jg.trim_memory() + held
    after = pool().counters()
    assert (after.held, after.held_blocks) == (0, 0)


def test_the_cap_holds_and_the_least_recently_used_goes() -> None:
    trim_memory()
    with config.override(pool_bytes=3_200_000):
        assert pool().counters().cap == 3_200_000
        old, x, y = filled(60_000), filled(100_000), filled(250_000)
        del old
        del x
        assert pool().counters().held_blocks == 2
        before = pool().counters().released
        del y  # 2 MB more: the first has to go
        after = pool().counters()
        assert (after.held_blocks, after.released) == (2, before + 1)
        assert after.held <= 3_200_000
        large = filled(1_000_000)
        del large  # larger than all that may wait
        assert pool().counters().held_blocks == 2
    with config.override(pool_bytes=0):
        assert pool().counters().held == 0
        x = filled()
        del x
        assert pool().counters().held == 0
    assert pool().counters().cap == most_bytes() > 1 << 20


def test_what_nobody_needed_since_the_last_sweep_goes() -> None:
    p = the_pool()

    def sweep() -> None:
        p.set("swept_at", 0)
        p.free(p.alloc(1 << 30, None, 0) or 0)  # a miss looks whether it is time; too large to be kept
        p.set("swept_at", 1 << 62)

    trim_memory()
    p.set("swept_at", 1 << 62)
    try:
        xs = [filled() for _ in range(5)]
        del xs
        assert p.counters().held_blocks == 5
        sweep()
        two = [filled(), filled()]
        del two
        assert p.counters().held_blocks == 5
        sweep()
        assert p.counters().held_blocks == 2
        sweep()
        assert p.counters().held_blocks == 0
    finally:
        p.set("swept_at", 0)


def test_memory_stays_flat() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for _ in range(3):
        filled(2_000_000)
    before, taken = resident(), pool().counters().taken
    for k in range(200):
        filled(2_000_000 - k)
    assert resident() < before + 8_000_000
    assert pool().counters().taken == taken


def test_poison() -> None:
    with config.override(poison=True):
        assert np.isnan(new((N,))).all()
        assert np.isnan(new((3,))).all()
        address = pool().alloc(8, None, 0)
        assert ctypes.string_at(address, 8) == b"\xff" * 8  # type: ignore[arg-type]
        pool().free(address)  # type: ignore[arg-type]
    assert handler(new((3,))) != "jitgraph"


def test_the_pool_can_be_switched_off() -> None:
    with config.override(pool=False):
        assert handler(new((N,))) == handler(np.empty(N))
    assert handler(new((N,))) == "jitgraph"


def test_most_bytes() -> None:
    assert 0 < most_bytes() <= 1 << 30
    with config.override(pool_bytes=123):
        assert most_bytes() == 123


# --- calls


@jg.jit
def saxpy(x, y):
    return 2.0 * x + y


@jg.jit
def positive(x):
    return x[x > 0], x.sum()


@jg.jit
def columns(x):
    return (x.T + 1.0).copy(order="K"), x + 1


def test_results_of_calls_lie_in_the_pool() -> None:
    x, y = np.arange(float(N)), np.ones(N)
    first = saxpy(x, y)
    assert np.array_equal(first, saxpy.__wrapped__(x, y))
    assert handler(first) == "jitgraph"
    address = first.ctypes.data
    del first
    assert saxpy(x, y).ctypes.data == address
    assert handler(saxpy(x[:5], y[:5])) == handler(np.empty(3))
    found, total = positive(x - 5)
    assert np.array_equal(found, (x - 5)[x - 5 > 0])
    assert total == (x - 5).sum()
    assert handler(found) == "jitgraph"


def test_results_in_other_orders() -> None:
    x = np.arange(60_000.0).reshape(100, 20, 30).transpose(1, 0, 2)
    for made, expected in zip(columns(x), columns.__wrapped__(x), strict=True):
        assert np.array_equal(made, expected)
        assert made.strides == expected.strides
        assert made.flags.owndata == expected.flags.owndata is True
        assert handler(made) == "jitgraph"


def test_plain_memory_does_the_same() -> None:
    memory = PlainMemory()
    address = memory.alloc(1000)
    assert address is not None
    assert address % 64 == 0
    ctypes.memset(address, 7, 1000)
    memory.free(address)
    malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(memory.addresses["pool_malloc"])
    memory.free(malloc(10))
    assert memory.alloc(1 << 60) is None
    assert (memory.trim(), memory.counters()) == (0, Counters(*[0] * 12))
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        plan, dims = recipe(F64, order), (ctypes.c_int64 * 3)(2, 3, 4)
        made = memory.array(ctypes.addressof(plan), ctypes.addressof(dims))
        assert (made.shape, made.strides) == ((2, 3, 4), new((2, 3, 4), F64, order).strides)


# --- threads, forks, exit


def test_arrays_die_in_other_threads() -> None:
    handed: queue.Queue[np.ndarray | None] = queue.Queue(20)
    wrong: list[float] = []

    def produce(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(200):
            n = rng.randrange(3000, 40_000)
            x = new((n,))
            x[:] = n
            handed.put(x)

    def consume() -> None:
        while (x := handed.get()) is not None:
            if not (x == x.size).all():
                wrong.append(x.size)

    consumers = [threading.Thread(target=consume) for _ in range(3)]
    producers = [threading.Thread(target=produce, args=(k,)) for k in range(3)]
    for t in (*consumers, *producers):
        t.start()
    for t in producers:
        t.join()
    for _ in consumers:
        handed.put(None)
    for t in consumers:
        t.join()
    assert not wrong


def hammer(stop: list[bool], seed: int, errors: list[int]) -> None:
    """Take and give back blocks without the interpreter's lock held inside."""
    p, rng = the_pool(), random.Random(seed)
    alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(p.addresses["pool_malloc"])
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(p.addresses["pool_free"])
    blocks: list[tuple[int, int]] = []
    while not stop:
        n = int(2 ** rng.uniform(3, 19))
        block = alloc(n)
        ctypes.memset(block, seed, n)
        blocks.append((block, n))
        if len(blocks) > 8:
            old, n = blocks.pop(rng.randrange(8))
            if ctypes.string_at(old, 8 if n >= 8 else n).strip(bytes([seed])):
                errors.append(n)
            free(old)
    for block, _ in blocks:
        free(block)


def test_threads_without_the_lock_while_others_sweep() -> None:
    stop: list[bool] = []
    errors: list[int] = []
    threads = [threading.Thread(target=hammer, args=(stop, k, errors)) for k in (1, 2, 3)]
    for t in threads:
        t.start()
    for _ in range(100):
        trim_memory()
        filled(10_000)
    stop.append(True)
    for t in threads:
        t.join()
    assert not errors


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_can_use_the_pool() -> None:
    stop: list[bool] = []
    thread = threading.Thread(target=hammer, args=(stop, 1, []))
    thread.start()
    inherited = filled()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                code = 1
                with contextlib.suppress(BaseException):
                    mine = filled(70_000)
                    code = int(mine[-1] != 69_999 or inherited[-1] != N - 1)
                    del inherited
                    trim_memory()
                os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.append(True)
        thread.join()
    assert inherited[-1] == N - 1


def test_a_child_gives_up_what_another_thread_was_changing() -> None:
    p, inherited = the_pool(), filled()
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            p.set("lock", 1)  # as a thread had it that is not here
            ctypes.PYFUNCTYPE(None)(p.addresses["pool_forked"])()
            assert (p.get("lock"), p.counters().held, p.counters().held_blocks) == (0, 0, 0)
            del inherited
            assert p.counters().held_blocks == 1
            mine = filled()
            code = int(p.counters().held_blocks != 0 or mine[-1] != N - 1)
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert inherited[-1] == N - 1


AT_EXIT = """
import builtins, sys, threading
import numpy as np
import jitgraph as jg

@jg.jit
def f(x): return x * 2.0 + 1.0

x = np.ones(50_000)
builtins.kept = f(x)
sys.kept = [f(x)]
np.kept = f(x)
mine = f(x)

class Late:
    def __init__(self): self.cycle, self.array = self, f(x)
    def __del__(self):
        assert self.array[3] == 3.0
        self.array = self.array[:10].copy()

late = Late()
cycle = Late()
del cycle
sys.late = Late()

def work():
    while True: f(x)

for _ in range(2): threading.Thread(target=work, daemon=True).start()
import time
time.sleep(0.05)
print("done")
"""


def test_exit_with_arrays_alive() -> None:
    env = {**os.environ, "JITGRAPH_CACHE_DIR": config.cache_dir}
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
