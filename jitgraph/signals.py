"""Ctrl-C in machine code: the function that has Python do what is due about signals, as LLVM text, and what it left.

It is written in native code because a callback would begin to run in Python, where the handler may raise before its
first line. What a handler raises is taken from Python's thread state and waits in the table of C functions
(`abi.TABLE_PENDING`), for there is only one thread that runs handlers, until the machine code has returned.
"""

from __future__ import annotations

import ctypes
from typing import Any

from jitgraph.abi import CONTEXT_TABLE, TABLE_PENDING, TABLE_SIGNALS, Status

#: The functions that it calls, in the order of `abi.TABLE_SIGNALS`.
FUNCTIONS = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch")


def signals_function(attributes: str = "nounwind") -> str:
    """`i32 signals(ctx)`: a status, not 0 if a handler has raised."""
    loads = "\n".join(
        f"  %f{k}.at = getelementptr i8, ptr %table, i64 {TABLE_SIGNALS + 8 * k}\n"
        f"  %f{k} = load ptr, ptr %f{k}.at, align 8"
        for k in range(len(FUNCTIONS))
    )
    pending = "\n".join(f"  %p{k} = getelementptr i8, ptr %table, i64 {TABLE_PENDING + 8 * k}" for k in range(3))
    return f"""define internal i32 @signals(ptr %ctx) cold noinline {attributes} {{
  %table.at = getelementptr i8, ptr %ctx, i64 {CONTEXT_TABLE}
  %table = load ptr, ptr %table.at, align 8
{loads}
{pending}
  %gil = call i32 %f0()
  %raised = call i32 %f2()
  %none = icmp eq i32 %raised, 0
  br i1 %none, label %on, label %stop
on:
  call void %f1(i32 %gil)
  ret i32 0
stop:
  call void %f3(ptr %p0, ptr %p1, ptr %p2)
  call void %f1(i32 %gil)
  ret i32 {int(Status.INTERRUPTED)}
}}"""


def addresses() -> list[int]:
    """Where the functions are."""
    return [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in FUNCTIONS]


def raised(table: Any) -> BaseException:
    """What a handler has raised, taken from a table (an array of words)."""
    first = TABLE_PENDING // 8
    words = list(table[first : first + 3])
    table[first : first + 3] = [None] * 3
    kind, value, _ = (ctypes.cast(w, ctypes.py_object).value if w else None for w in words)
    for w in words:
        if w:
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(w))
    if isinstance(value, BaseException):
        return value
    made = KeyboardInterrupt() if kind is None else kind() if value is None else kind(value)
    return made if isinstance(made, BaseException) else KeyboardInterrupt()
