"""The binary interface between machine code and the Python side, defined once.

Two exports per graph:
    int32 prepare(const Context*, const Slot* args, int64* dims, int64* result_dims, int64* scratch_bytes)
    int32 entry(const Context*, const Slot* args, Slot* results, const int64* dims, uint8* scratch)
`prepare` reads the argument sizes into `dims`, tests the guards (GUARD_FAILED: try the next entry), writes the sizes of
all results one after the other into `result_dims` and the arena's size into `scratch_bytes`. `entry` runs the graph.

A slot is 32 bytes: {void* data, int64* dims, int64* strides (bytes), int64 flags}; a scalar lies inline in its first 16.
Context: {error_site: int64, error_values: int64[4], table: void**, alloc, free, result, host, host_table: void*}
    void* alloc(Context*, int64 bytes)        memory that lives until the call returns, 64-byte aligned
    void  free(Context*, void*)
    void* result(Context*, int64 slot, int64 ndim, const int64* dims)     memory of a data-dependent result
    int32 host(Context*, int64 site, const Slot* inputs, Slot* outputs)     calls back into Python, status as below
"""

from __future__ import annotations

from enum import IntEnum


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
CONTEXT_ALLOC = 48
CONTEXT_FREE = 56
CONTEXT_RESULT = 64
CONTEXT_HOST = 72
CONTEXT_HOST_TABLE = 80
CONTEXT_BYTES = 96

#: Names of C functions in `context.table`, by position: reached by machine code without any address baked in.
TABLE: tuple[str, ...] = (
    "cblas_sgemm", "cblas_dgemm", "cblas_sgemv", "cblas_dgemv", "cblas_sdot", "cblas_ddot", "cblas_ssyrk", "cblas_dsyrk",
    "pow", "powf", "fmod", "fmodf", "sin", "sinf", "cos", "cosf", "tan", "tanf", "exp", "expf", "log", "logf",
    "atan2", "atan2f", "cbrt", "cbrtf", "asin", "asinf", "acos", "acosf", "atan", "atanf", "sinh", "sinhf", "cosh", "coshf",
    "tgamma", "tgammaf", "lgamma", "lgammaf", "erfc", "erfcf", "exp2", "exp2f", "log2", "log2f", "log10", "log10f",
)  # fmt: skip
