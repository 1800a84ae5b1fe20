"""Threads: how many there may be, and the pool that kernels of machine code split their work over.

Kernels reach the pool through the table of C functions (`abi.TABLE_LIMIT`, `TABLE_RUN`): a limit of work, below which
they run as ever, and a function that runs pieces of a range. With one thread the limit is never reached, and nothing
of the pool is loaded. Otherwise `TABLE_RUN` is `_start` here until the first large kernel: it loads `threads_code`,
starts the workers and puts the real function in its place.

A region runs in the calling thread and in the workers; one that begins while another runs (in another Python thread,
or inside of it) is run by its caller alone. A child of `os.fork` has no workers and starts its own. At exit the workers
end before the interpreter goes. They are threads of the C library with all signals blocked: Python does not know them.

OpenBLAS's products run on the pool too, if NumPy's OpenBLAS can be told to (`blas_on_pool`) and does not want more
threads than there are: its own ones would spin on the cores for 100 ms after each product. The number of its threads
is not changed, so that products keep their bits.
"""

from __future__ import annotations

import atexit
import ctypes
import operator
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jitgraph.abi import CONTEXT_BYTES, CONTEXT_HOST, NEVER, TABLE, TABLE_LIMIT, TABLE_RUN
from jitgraph.config import config
from jitgraph.runtime import table

#: Work that is worth a fork and join while the workers look for work, in picoseconds; and when they have to be woken.
WARM, COLD = 5_000_000, 20_000_000
#: Pieces are not smaller than this.
PIECE = 2_500_000
#: Work that is long is cut into pieces of about a millisecond; between them the caller looks for signals.
LONG, LONG_PIECE, POLL_NS = 50_000_000_000, 1_000_000_000, 100_000_000
MOST = 1024

_P, _I = ctypes.c_void_p, ctypes.c_int64
_PART = ctypes.CFUNCTYPE(ctypes.c_int32, _P, _P, _I, _I)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int32, _P, _P, _P, _I, _I, _I, _I, _I)
_BLAS_SETTER = "scipy_openblas_set_threads_callback_function64_"
_BLAS_COUNT = "scipy_openblas_get_num_threads64_"


def usable_cores() -> int:
    """How many threads can run at once: the cores we may use, less if the container may not use all of their time."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    quota = _quota()
    return max(1, cores if quota is None else min(cores, quota))


def _quota(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Cores' worth of time that cgroups allow, rounded up; None without a limit. The smallest on the way counts."""
    found: list[int] = []
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        for base in (root,) if not controllers else (root / controllers, root / "cpu"):
            folder = base / path.lstrip("/")
            for at in (folder, *folder.parents):
                found += _limit_of(at)
                if at == base:
                    break
    return min(found, default=None)


def _text(path: str) -> str:
    with open(path) as f:  # noqa: PTH123  # pathlib takes longer
        return f.read()


def _limit_of(folder: Path) -> list[int]:
    try:
        quota, period = _text(f"{folder}/cpu.max").split()[:2]  # version 2
    except (OSError, ValueError):
        try:
            quota, period = _text(f"{folder}/cpu.cfs_quota_us"), _text(f"{folder}/cpu.cfs_period_us")
        except OSError:
            return []
    try:
        limit, whole = int(quota), int(period)
    except ValueError:  # "max"
        return []
    return [-(-limit // whole)] if limit > 0 and whole > 0 else []


class _Pool:
    """What is known of the threads of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.count = 0  # threads that regions may use; 0: not asked yet
        self.addresses: dict[str, int] = {}  # of the module, once it is loaded
        self.workers: list[int] = []  # pthread_t
        self.keep: list[Any] = []  # memory that workers use
        self.blas = False  # OpenBLAS runs on the pool


_pool = _Pool()


def get_num_threads() -> int:
    """Threads that large kernels run in."""
    with _pool.lock:
        if not _pool.count:
            _pool.count = _allowed(config.num_threads or usable_cores())
        return _pool.count


def set_num_threads(n: int) -> None:
    """Run large kernels in `n` threads from now on. Results do not depend on it.

    Raises:
        TypeError: no integer.
        ValueError: fewer than one.
    """
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"the number of threads must be at least 1, got {n}")
    with _pool.lock:
        _pool.count = _allowed(n)
        configure()
        if _pool.workers or _pool.blas:
            _settle()


def _allowed(n: int) -> int:
    """`n`, or 1 where there is no pool: its threads sleep on Linux's futex."""
    machine = os.uname().machine if hasattr(os, "uname") else ""
    usable = sys.platform == "linux" and machine in ("x86_64", "aarch64") and ctypes.sizeof(ctypes.c_void_p) == 8
    return min(n, MOST) if usable else 1


def configure() -> None:
    """Let machine code know of the threads."""
    addresses = table.table()
    several = get_num_threads() > 1
    if not addresses[TABLE_RUN // 8]:
        addresses[TABLE_RUN // 8] = ctypes.cast(_first, _P).value
    addresses[TABLE_LIMIT // 8] = WARM if several else NEVER


# --- starting and ending --------------------------------------------------------------------------------------------


def _start(context: int, part: int, closure: int, *job: int) -> int:
    """The first region: start the pool, then run it there; alone if that fails."""
    try:
        with _pool.lock:
            _load()
            _settle()
            table.table()[TABLE_RUN // 8] = _pool.addresses["run"]
        run = _RUN(_pool.addresses["run"])
    except Exception as e:  # noqa: BLE001  # machine code lies in between, and can do without
        sys.stderr.write(f"jitgraph: no threads: {type(e).__name__}: {e}\n")
        _pool.count = 1
        table.table()[TABLE_LIMIT // 8] = NEVER
        return int(_PART(part)(context, closure, *job[:2]))  # from the lower to the upper bound
    return int(run(context, part, closure, *job))


_first = _RUN(_start)


def _load() -> None:
    """Load the pool's code, and tell it what it needs."""
    if _pool.addresses:
        return
    from jitgraph.runtime import prebuilt, threads_code

    _pool.addresses = prebuilt.linked("jitgraph.threads", threads_code.text, "threads", threads_code.EXPORTS)
    c = ctypes.CDLL(None)
    state = _state()
    functions = {
        threads_code.SYSCALL: c.syscall,
        threads_code.YIELD: c.sched_yield,
        threads_code.CLOCK: c.clock_gettime,
        threads_code.GETCPU: c.sched_getcpu,
        threads_code.FREE: _P(table.table()[TABLE.index("free")]),
    }
    for at, function in functions.items():
        state[at // 8] = ctypes.cast(function, _P).value or 0
    cores = (ctypes.c_uint8 * threads_code.CORES_BYTES).from_address(_pool.addresses["state"] + threads_code.CORES)
    for core in os.sched_getaffinity(0):
        if core < 8 * threads_code.CORES_BYTES:
            cores[core // 8] |= 1 << core % 8


def _state() -> ctypes.Array[ctypes.c_int64]:
    from jitgraph.runtime import threads_code

    return (_I * (threads_code.STATE_BYTES // 8)).from_address(_pool.addresses["state"])


def _settle() -> None:
    """As many workers as are wanted, at least; OpenBLAS on them if it does not want more."""
    from jitgraph.runtime import threads_code

    state = _state()
    for at, value in (
        (threads_code.THREADS, _pool.count), (threads_code.COLD, COLD), (threads_code.PIECE, PIECE),
        (threads_code.LONG, LONG), (threads_code.LONG_PIECE, LONG_PIECE), (threads_code.POLL_NS, POLL_NS),
    ):  # fmt: skip
        state[at // 8] = value
    if _pool.count - 1 > len(_pool.workers):
        _spawn(_pool.count - 1 - len(_pool.workers))
    blas_on_pool(on=config.blas_on_pool)


def _spawn(more: int) -> None:
    """Start workers, with all signals blocked: Python's handlers belong to its own threads."""
    import signal  # makes many constants, of which most processes need none

    from jitgraph.runtime import threads_code

    c = ctypes.CDLL(None, use_errno=True)
    c.pthread_create.argtypes = [_P, _P, _P, _P]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        for _ in range(more):
            context = (_I * (CONTEXT_BYTES // 8))()
            for offset, value in context_fields():
                if offset != CONTEXT_HOST:  # workers never call Python
                    context[offset // 8] = value
            record = (_I * 2)()
            record[threads_code.WORKER_INDEX // 8] = len(_pool.workers) + 1
            record[threads_code.WORKER_CONTEXT // 8] = ctypes.addressof(context)
            _pool.keep.append((context, record))
            thread = ctypes.c_ulong()
            error = c.pthread_create(
                ctypes.byref(thread), None, _P(_pool.addresses["worker"]), _P(ctypes.addressof(record))
            )
            if error:
                raise OSError(error, os.strerror(error))
            _pool.workers.append(thread.value)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _context_fields() -> list[tuple[int, int]]:
    return []


#: What every context holds, as offsets and values; `invoke` says it.
context_fields: Callable[[], list[tuple[int, int]]] = _context_fields


def _end() -> None:
    """At exit: no thread may run code of ours when it is unloaded. Workers end, unless a region is running still (in a
    daemon thread): that goes on until the process is gone.
    """
    with _pool.lock:
        if table.table.is_made:
            table.table()[TABLE_LIMIT // 8] = NEVER
        if not _pool.addresses:
            return
        from jitgraph.runtime import threads_code

        blas_on_pool(on=False)
        state = _state()
        words = (ctypes.c_int32 * (threads_code.STATE_BYTES // 4)).from_buffer(state)
        if words[threads_code.LOCK // 4]:
            return
        words[threads_code.STOP // 4] = 1
        words[threads_code.WAKE // 4] += 1
        c = ctypes.CDLL(None)
        number = {"x86_64": 202, "aarch64": 98}[os.uname().machine]
        wake = _P(_pool.addresses["state"] + threads_code.WAKE)
        c.syscall(ctypes.c_long(number), wake, _I(129), _I(0x7FFFFFFF), None, None, _I(0))
        for thread in _pool.workers:
            c.pthread_join(ctypes.c_ulong(thread), None)
        _pool.workers.clear()


def _after_fork() -> None:
    """In a child: the workers are the parent's. What a region of another thread was doing there is forgotten."""
    _pool.lock = threading.RLock()
    if not _pool.addresses:
        return
    from jitgraph.runtime import threads_code

    if _pool.blas:
        blas_on_pool(on=False)
    _pool.workers.clear()
    _pool.keep.clear()
    state = _state()
    for at in range(0, threads_code.THREADS, 8):
        state[at // 8] = 0
    table.table()[TABLE_RUN // 8] = ctypes.cast(_first, _P).value


# --- OpenBLAS -------------------------------------------------------------------------------------------------------


def blas_on_pool(*, on: bool) -> bool:
    """Let NumPy's OpenBLAS run its jobs on the pool, or on threads of its own again; whether it does.

    Its jobs wait for each other, so that there have to be as many threads as it uses.
    """
    library = table.blas_library()
    if library is None or not hasattr(library, _BLAS_SETTER) or not _pool.addresses:
        return False
    wanted = getattr(library, _BLAS_COUNT)()
    fits = on and 1 < wanted <= len(_pool.workers) + 1 and wanted <= _pool.count
    if fits != _pool.blas:
        getattr(library, _BLAS_SETTER)(_P(_pool.addresses["blas"]) if fits else None)
        _pool.blas = fits
    return fits


def prepare_blas() -> None:
    """Before the first product: let OpenBLAS run on the pool, if there is to be one."""
    with _pool.lock:
        if get_num_threads() > 1 and config.blas_on_pool and not _pool.blas and table.blas_library() is not None:
            _load()
            _settle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_end)
