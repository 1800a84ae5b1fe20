"""The `abi.Interface` of a program: what a call needs to know of it beside its code."""

from __future__ import annotations

from collections.abc import Sequence

from jitgraph import dtypes
from jitgraph.abi import HostOperand, Interface, ResultSlot
from jitgraph.codegen.loops import Buffer, Check, Const, Host, Pair, Program, Stmt, Var
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.types import TensorType


def interface_of(program: Program, arguments: int, results: Sequence[TensorType]) -> Interface:
    """The interface of `program`.

    Args:
        arguments: number of argument slots; those that the program does not read may hold anything.
        results: types of the fresh results, one for each result slot.
    """
    arrays = {e.slot for e in program.entry_buffers if e.source == "arg"} | {slot for _, slot, _ in program.dims}
    values: dict[int, tuple[str, ...]] = {}
    hosts: dict[int, tuple[tuple[HostOperand, ...], tuple[HostOperand, ...]]] = {}
    sizes: dict[int, tuple[tuple[int, int], ...]] = {}
    bodies: list[list[Stmt]] = [program.entry, *(k.body for k in program.kernels)]
    for body in bodies:
        for s in walk(body):
            if isinstance(s, Check):
                values[s.site] = tuple(dtypes.short_name(x.dtype) for x in s.values[:4])
            elif isinstance(s, Host):
                inputs, outputs = tuple(map(_host_operand, s.inputs)), tuple(map(_host_operand, s.outputs))
                if s.sizes:
                    sizes[s.site] = s.sizes
                if s.sizes or s.waiting:  # one entry for the call and for what waits
                    known = hosts.get(s.site, ((), ()))
                    inputs, outputs = (known[0], outputs) if s.waiting else (inputs, known[1])
                hosts[s.site] = inputs, outputs
    return Interface(
        arguments=arguments,
        arrays=tuple(sorted(arrays)),
        scalars=tuple((slot, dtypes.short_name(var.dtype)) for var, slot in program.entry_scalars),
        dim_count=len(program.dims),
        results=tuple(
            ResultSlot(
                dtypes.short_name(t.dtype), t.kind, t.layout.order if t.kind == "array" else (), shape is not None
            )
            for t, shape in zip(results, program.result_dims, strict=True)
        ),
        values=values,
        hosts=hosts,
        sizes=sizes,
    )


def _host_operand(x: Buffer | Var | Const | Pair) -> HostOperand:
    return HostOperand(dtypes.short_name(x.dtype), len(x.shape) if isinstance(x, Buffer) else -1)
