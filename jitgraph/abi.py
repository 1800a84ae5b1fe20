"""The binary interface between machine code and the Python side, defined once.

Two exports per graph:
    int32 prepare(const Context*, const Slot* args, int64* dims, int64* result_dims, int64* scratch_bytes)
    int32 entry(const Context*, const Slot* args, Slot* results, const int64* dims, uint8* scratch)
`prepare` reads the argument sizes into `dims`, tests the guards (GUARD_FAILED: try the next entry), writes the sizes of
all results one after the other into `result_dims` and the arena's size into `scratch_bytes`. `entry` runs the graph.

A slot is 32 bytes: {void* data, int64* dims, int64* strides (bytes), int64 flags}; scalars lie inline in its first 16.
Context: {error_site: int64, error_values: int64[4], table: void**, heap: Block*, result, host, host_table: void*}
    Block: {void* raw, Block* next, Block** previous}, the head of memory that `table`'s malloc gave as
        `raw`; what the program uses begins HEAP_HEAD bytes behind. What is in the list when the call returns is
        freed then.
    void* result(Context*, int64 slot, int64 ndim, const int64* dims)     memory of a data-dependent result
    int32 host(Context*, int64 site, const Slot* inputs, Slot* outputs)     calls back into Python, status as below;
        for a site in `Interface.sizes` the outputs are those sizes, and `~site` then copies the results themselves out
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from jitgraph.records import dataclass, field


class Status(IntEnum):
    """What `entry` and `prepare` return."""

    OK = 0
    ERROR = 1  # context.error_site, error_values
    PYTHON_ERROR = 2  # an exception of a host call is pending on the Python side
    INTERRUPTED = 3
    DEOPTIMISE = 4  # nothing visible was written: run the call in plain Python
    GUARD_FAILED = 5  # from `prepare` only


SLOT_BYTES = 32
SLOT_DATA, SLOT_DIMS, SLOT_STRIDES, SLOT_FLAGS = 0, 8, 16, 24

CONTEXT_ERROR_SITE = 0
CONTEXT_ERROR_VALUES = 8
CONTEXT_TABLE = 40
CONTEXT_HEAP = 48
CONTEXT_RESULT = 56
CONTEXT_HOST = 64
CONTEXT_HOST_TABLE = 72
CONTEXT_BYTES = 80

HEAP_RAW, HEAP_NEXT, HEAP_PREVIOUS, HEAP_HEAD = 0, 8, 16, 64

#: Names of C functions in `context.table`, by position: reached by machine code without any address baked in.
TABLE: tuple[str, ...] = (
    "cblas_sgemm", "cblas_dgemm", "cblas_sgemv", "cblas_dgemv", "cblas_sdot", "cblas_ddot",
    "cblas_ssyrk", "cblas_dsyrk",
    "cblas_cgemm", "cblas_zgemm", "cblas_cgemv", "cblas_zgemv", "cblas_cdotu_sub", "cblas_zdotu_sub", "cblas_csyrk",
    "cblas_zsyrk",
    "pow", "powf", "fmod", "fmodf", "sin", "sinf", "cos", "cosf", "tan", "tanf", "exp", "expf", "log", "logf",
    "atan2", "atan2f", "cbrt", "cbrtf", "asin", "asinf", "acos", "acosf", "atan", "atanf",
    "sinh", "sinhf", "cosh", "coshf",
    "tgamma", "tgammaf", "lgamma", "lgammaf", "erfc", "erfcf", "exp2",
    "exp2f", "hypot", "hypotf", "log2", "log2f", "log10", "log10f",
    "malloc", "free",
)  # fmt: skip

#: Behind the functions the table has what kernels need to run in several threads (see `runtime.threads`), in bytes:
#: int64 limit: work, in picoseconds, from which on a region may be split
#: int32 run(Context*, int32 part(Context*, void* closure, int64 lower, int64 upper), void* closure, int64 lower,
#:           int64 upper, int64 unit, int64 work): calls `part` on pieces of the range, in multiples of `unit` from
#:           `lower` on, in several threads with contexts of their own; the first status that is not 0
TABLE_LIMIT = 8 * len(TABLE)
TABLE_RUN = TABLE_LIMIT + 8
#: int64 stream: bytes that a kernel moves from which on its stores pass the caches by
TABLE_STREAM = TABLE_RUN + 8
#: int32 clock_gettime(int32, int64[2])
TABLE_CLOCK = TABLE_STREAM + 8
#: four functions of Python's C API that look for signals, and what a handler raised: type, value, traceback (`signals`)
TABLE_SIGNALS = TABLE_CLOCK + 8
TABLE_PENDING = TABLE_SIGNALS + 32
TABLE_BYTES = TABLE_PENDING + 24
#: The limit where regions are never split.
NEVER = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ResultSlot:
    """A fresh result.

    Attributes:
        dtype: short name.
        kind: of the value (see `ir.types.TensorType`); scalars lie in the slot itself.
        order: axes from the outermost to the innermost in memory; its length is the rank.
        sized: the size is known before the run.
    """

    dtype: str
    kind: str
    order: tuple[int, ...]
    sized: bool


@dataclass(frozen=True, slots=True)
class HostOperand:
    """An input or output of a host call; `ndim` -1 is a scalar."""

    dtype: str
    ndim: int


@dataclass(frozen=True, slots=True)
class Interface:
    """What a call needs to know of a program beside its code.

    Attributes:
        arguments: number of argument slots.
        arrays: argument slots that are arrays. Slots in neither list are not read.
        scalars: (argument slot, dtype) of those that are numbers.
        dim_count: length of the array of sizes that `prepare` fills.
        values: for each site the dtypes of the values of its message.
        hosts: for each site of a host call its inputs and outputs.
        sizes: for sites whose results have sizes that only the call knows: (result, axis) of these.
    """

    arguments: int
    arrays: tuple[int, ...]
    scalars: tuple[tuple[int, str], ...]
    dim_count: int
    results: tuple[ResultSlot, ...]
    values: dict[int, tuple[str, ...]] = field(default_factory=dict)
    hosts: dict[int, tuple[tuple[HostOperand, ...], tuple[HostOperand, ...]]] = field(default_factory=dict)
    sizes: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def check(self, arguments: int, results: int, sites: int) -> None:
        """See that it is the interface of a graph with so many arguments, fresh results and sites.

        Raises:
            ValueError: it is not.
        """
        if (self.arguments, len(self.results)) != (arguments, results) or self.dim_count < 0:
            raise ValueError(f"{self.arguments} arguments and {len(self.results)} results, not {arguments}, {results}")
        if not {*self.arrays, *(slot for slot, _ in self.scalars)} <= set(range(arguments)):
            raise ValueError("slots of arguments that are none")
        if not {*self.values, *self.hosts, *self.sizes} <= set(range(sites)):
            raise ValueError("sites that are none")
        for r in self.results:
            if sorted(r.order) != list(range(len(r.order))):
                raise ValueError(f"the order of axes {r.order}")

    def to_plain(self) -> dict[str, Any]:
        """As numbers, strings, lists and dicts, for a JSON file."""
        return {
            "arguments": self.arguments,
            "arrays": list(self.arrays),
            "scalars": [list(s) for s in self.scalars],
            "dim_count": self.dim_count,
            "results": [[r.dtype, r.kind, list(r.order), r.sized] for r in self.results],
            "values": {str(site): list(names) for site, names in self.values.items()},
            "hosts": {
                str(site): [[[o.dtype, o.ndim] for o in side] for side in sides] for site, sides in self.hosts.items()
            },
            "sizes": {str(site): [list(size) for size in sizes] for site, sizes in self.sizes.items()},
        }

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Interface:
        """The interface that `to_plain` wrote.

        Raises:
            KeyError, TypeError, ValueError: something else was written there.
        """
        found = Interface(
            int(plain["arguments"]),
            tuple(int(slot) for slot in plain["arrays"]),
            tuple((int(slot), str(name)) for slot, name in plain["scalars"]),
            int(plain["dim_count"]),
            tuple(
                ResultSlot(str(d), str(kind), tuple(order), bool(sized)) for d, kind, order, sized in plain["results"]
            ),
            {int(site): tuple(names) for site, names in plain["values"].items()},
            {
                int(site): (
                    tuple(HostOperand(str(d), int(n)) for d, n in inputs),
                    tuple(HostOperand(str(d), int(n)) for d, n in outputs),
                )
                for site, (inputs, outputs) in plain["hosts"].items()
            },
            {int(site): tuple((int(k), int(axis)) for k, axis in sizes) for site, sizes in plain["sizes"].items()},
        )
        if found.to_plain() != plain:
            raise ValueError("the interface is written in another way")
        return found
