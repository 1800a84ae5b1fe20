"""Hand-written loop programs: pieces to build them, and `check`, which runs one in every way there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

from jitgraph import dtypes, target
from jitgraph.codegen import loops as L  # noqa: N812
from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import CheckFailed, run_program
from jitgraph.codegen.llvm import emit_program
from jitgraph.codegen.loops_printer import c_strides
from jitgraph.codegen.loops_verify import verify
from jitgraph.ir.dims import DimLike, symbol
from jitgraph.ir.graph import Site
from jitgraph.ir.types import TensorType, scalar_type
from jitgraph.runtime import engine, table
from jitgraph.runtime.invoke import Executable

B, I32, I64, F32, F64 = dtypes.BOOL, dtypes.I32, dtypes.I64, dtypes.F32, dtypes.F64
n, m, i, j, k = (symbol(name) for name in "nmijk")


def array(name: str, dtype: np.dtype, *shape: DimLike, strides: tuple[DimLike, ...] | None = None) -> L.Buffer:
    """A buffer in C order unless told otherwise."""
    b = L.Buffer(name, dtype, shape, strides or ())
    return b if strides is not None else L.Buffer(name, dtype, shape, c_strides(b))


def var(name: str, dtype: np.dtype = F64) -> L.Var:
    return L.Var(name, dtype)


def const(value: Any, dtype: np.dtype = F64) -> L.Const:
    return L.Const(value, dtype)


def let(name: str, op: str, *args: L.Operand, dtype: np.dtype | None = None, attr: str = "") -> L.Let:
    """The dtype is the first operand's unless told otherwise."""
    return L.Let(L.Var(name, dtype or args[0].dtype), op, args, attr)


def program(
    body: list[L.Stmt],
    arrays: Sequence[L.Buffer] = (),
    results: Sequence[L.Buffer | TensorType] = (),
    *,
    dims: Sequence[tuple[str, int, int]] = (),
    scalars: Sequence[tuple[L.Var, int]] = (),
    kernels: Sequence[L.Function] = (),
    sites: Sequence[Site] = (),
    guards: Sequence[tuple[str, DimLike, DimLike]] = (),
    scratch: DimLike = 0,
    strides: Mapping[str, tuple[str, ...]] | None = None,
) -> L.Program:
    """A program whose entry is `body`; results that are buffers are allocated before the run, others are set by it."""
    entry = [L.EntryBuffer(b, "arg", s, (strides or {}).get(b.name, ())) for s, b in enumerate(arrays)]
    entry += [L.EntryBuffer(b, "result", s) for s, b in enumerate(results) if isinstance(b, L.Buffer)]
    shapes = [b.shape if isinstance(b, L.Buffer) else None for b in results]
    return L.Program(
        "test", list(kernels), body, entry, list(scalars), list(dims), list(guards), shapes, scratch, list(sites)
    )


def types_of(results: Sequence[L.Buffer | TensorType]) -> list[TensorType]:
    return [TensorType(b.dtype, b.shape) if isinstance(b, L.Buffer) else b for b in results]


def executable(
    p: L.Program,
    arguments: int,
    results: Sequence[L.Buffer | TensorType],
    hosts: Mapping[int, Callable[..., Any]] | None = None,
) -> Executable:
    """The program as machine code of this CPU."""
    verify(p)
    text = emit_program(p, target.host())
    code = engine.compile_object(text, target.host(), verify=True)
    return Executable(interface_of(p, arguments, types_of(results)), code, p.sites, hosts)


def check(
    p: L.Program,
    args: Sequence[Any],
    results: Sequence[L.Buffer | TensorType],
    expect: Sequence[Any] | None = None,
    *,
    hosts: Mapping[int, Callable[..., Any]] | None = None,
    run: Executable | None = None,
    interpret: bool = True,
) -> list[Any]:
    """Run as machine code and in the interpreter, each on copies of `args`; both agree bit for bit, with `expect` too.

    Argument arrays that the program wrote are compared as well.
    """
    run = run or executable(p, len(args), results, hosts)
    machine_args = [copied(a) for a in args]
    found = run(*machine_args)
    assert found is not None, "a guard does not hold"
    if expect is not None:
        for got, wanted in zip(found, expect, strict=True):
            assert type(got) is type(wanted) or isinstance(got, np.ndarray)
            assert_array_equal(got, wanted, strict=isinstance(wanted, np.ndarray))
    if interpret:
        other_args = [copied(a) for a in args]
        other = run_program(p, run.interface, other_args, hosts, table.call)
        assert other is not None
        for got, wanted in zip((*found, *machine_args), (*other, *other_args), strict=True):
            assert_array_equal(got, wanted)
            if isinstance(got, np.ndarray) and got.dtype.kind == "f":
                numbers = ~np.isnan(got)  # the sign of a NaN means nothing
                assert_array_equal(np.signbit(got)[numbers], np.signbit(wanted)[numbers])
    return found


def copied(a: Any) -> Any:
    """A copy of an array with the same strides."""
    if not isinstance(a, np.ndarray) or a.size == 0:
        return a
    low, high = np.lib.array_utils.byte_bounds(a)
    memory = np.empty(high - low, np.uint8)
    view = np.ndarray(a.shape, a.dtype, memory.data, a.__array_interface__["data"][0] - low, a.strides)
    view[...] = a
    return view


__all__ = [
    "F32",
    "F64",
    "I32",
    "I64",
    "B",
    "CheckFailed",
    "L",
    "array",
    "check",
    "const",
    "copied",
    "executable",
    "i",
    "j",
    "k",
    "let",
    "m",
    "n",
    "program",
    "scalar_type",
    "types_of",
    "var",
]  # fmt: skip
