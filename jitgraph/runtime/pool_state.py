"""The state of the memory pool: what lies where in it, and the IR that reads and counts."""

from __future__ import annotations

#: Classes: four in each doubling from 256 bytes to 2**46.
CLASSES = 160
MOST_BYTES = 1 << 45
#: A class: {first: ptr, count: i64, lowest count since the last sweep: i64, last use: i64}.
CLASS_BYTES = 32
#: The state: one i64 each, in this order, then the classes.
FIELDS: tuple[str, ...] = (
    "lock",
    # C functions
    "mmap", "munmap", "madvise", "aligned_alloc", "free", "sched_yield", "clock_gettime",
    # of Python and NumPy, for arrays
    "new_array", "incref", "track", "array_type", "handler", "handler_at", "flags_at",
    # settings: most bytes that may wait in the pool; results below `small` bytes come from NumPy; fill blocks with ones
    "cap", "small", "poison", "clock",
    # counters
    "allocations", "hits", "frees", "asked", "asked_peak", "asked_total", "used", "held", "held_blocks", "taken",
    "released", "uses", "large_frees", "swept_at",
)  # fmt: skip
AT = {name: 8 * k for k, name in enumerate(FIELDS)}
CLASSES_AT = 512
STATE_BYTES = CLASSES_AT + CLASSES * CLASS_BYTES
assert 8 * len(FIELDS) <= CLASSES_AT


def field(name: str) -> str:
    """The address of a field of the state, as an operand."""
    return f"ptr getelementptr (i8, ptr @state, i64 {AT[name]})"


def load(result: str, name: str, ty: str = "i64") -> str:
    return f"%{result} = load {ty}, {field(name)}, align 8"


def add(name: str, amount: str, what: str = "add", mark: str = "") -> str:
    """Add to a counter, under the lock; `mark` tells two of one function apart."""
    old, new = f"%{name}.{what}{mark}", f"%{name}.{what}{mark}.new"
    return (
        f"{old} = load i64, {field(name)}, align 8\n"
        f"  {new} = {what} i64 {old}, {amount}\n"
        f"  store i64 {new}, {field(name)}, align 8"
    )
