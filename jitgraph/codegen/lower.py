"""From a graph to a loop program: where values lie, which kernels run, in which order.

Every value has a place (a scalar, or memory seen through an index map) or is computed where it is read. After
`bufferize` all versions of a storage may share memory, so a `write` goes to the place of its base. Fresh results are
computed in the memory of their result slot where the graph allows it (`targets`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen import lower_control, lower_matmul, lower_reduce, lower_special
from jitgraph.codegen.exposed import exposed_versions
from jitgraph.codegen.loops import (
    Alloc,
    Bind,
    Buffer,
    EntryBuffer,
    Function,
    Origin,
    Pair,
    Program,
    SetResult,
    Var,
)
from jitgraph.codegen.loops_walk import called
from jitgraph.codegen.lower_kernel import Group, Nest, Root
from jitgraph.codegen.lower_lagged import emit_lagged
from jitgraph.codegen.lower_scalar import Frame, Scalar, store_of
from jitgraph.codegen.lower_targets import result_targets
from jitgraph.codegen.lower_values import Evaluator, Place, finish_kernel, origin_of
from jitgraph.codegen.lower_views import Memory, dense_strides, layout_strides, reshape_memory
from jitgraph.codegen.memory import ALIGNMENT, plan_memory
from jitgraph.errors import InternalError
from jitgraph.ir.dims import Facts, symbol, symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.storage import UPDATES
from jitgraph.ir.transform import ops_for_checks
from jitgraph.ir.types import Shape

__all__ = ["lower"]


def lower(graph: Graph, optimise: Callable[[Program, Facts], Program] | None = None) -> Program:
    """The loop program of a graph that all passes have run on.

    Args:
        optimise: what to make of it before its temporaries get their memory.

    Raises:
        InternalError: an op is left that has no lowering.
    """
    lowering = Lowering(graph)
    program = lowering.program()
    if optimise is not None:
        program = optimise(program, graph.facts)
    results = [e.buffer for e in program.entry_buffers if e.source == "result"]
    known = [name for name, _, _ in program.dims]
    given = [e.buffer for e in program.entry_buffers if e.source == "arg"]
    program.memory = plan_memory(program.entry, known, graph.facts, results, program.kernels, given)
    if lowering.reads_empty and program.memory.bytes != 0:
        program.memory.bytes += ALIGNMENT
    if program.memory.dropped:
        used = {name for f in (program.entry, *(k.body for k in program.kernels)) for name in called(f)}
        program.kernels = [k for k in program.kernels if k.name in used]
    program.scratch_bytes, program.sizes = program.memory.bytes, program.memory.sizes
    return program


def _is_handed_on(value: Value) -> bool:
    """Whether a call of Python gets an array, or a view of it."""
    users = value.users()
    return any(op.name == "host_call" or (op.name == "view" and _is_handed_on(op.result)) for op in users)


class Lowering:
    """State of lowering one graph.

    Attributes:
        frame: the entry, where code of the graph's own level goes.
        places: where values lie; a value that is in none is computed where it is read.
        orders: for each buffer by name, its axes from the outermost in memory to the innermost.
        targets: values that are computed in the memory of a result slot.
        lines: the user's lines of loops, by index.
        op: the one at hand.
        origins: what buffers are made for.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.frame = Frame([])
        self.places: dict[Value, Place] = {}
        self.kernels: list[Function] = []
        self.orders: dict[str, Sequence[int]] = {}
        self.row_buffers: list[Buffer] = []
        self.tables: dict[Op, Buffer] = {}
        self.entry_buffers: list[EntryBuffer] = []
        self.entry_scalars: list[tuple[Var | Pair, int]] = []
        self.names: set[str] = set()
        self.lines: dict[str, int] = {}
        self.op: Op | None = None
        self.origins: dict[str, Origin] = {}
        self.results: dict[int, Buffer] = {}
        self.known = {s.name for s in graph.symbols.values() if s.origin == "arg"}
        self.returned = graph.body.terminator
        self.fresh = len(self.returned.operands) - len(self.returned.attrs.get("mutates", ()))
        self.targets = result_targets(graph, self.fresh)
        #: Whether the first element of an array may be read that turns out to have none: the check comes later.
        self.reads_empty = False
        #: Versions, made in loops, of arrays without axes of the caller's, who sees them if an error ends the loop.
        self.exposed = exposed_versions(graph)

    def program(self) -> Program:
        g = self.graph
        for slot, arg in enumerate(g.args):
            self.places[arg] = self._argument(slot, arg)
        self.block(g.body)
        result_dims = [
            v.type.shape if v.type.kind == "array" and self.is_known(v.type.shape) else None
            for v in self.returned.operands[: self.fresh]
        ]
        return Program(
            g.name,
            self.kernels,
            self.frame.body,
            self.entry_buffers,
            self.entry_scalars,
            [(s.name, s.arg, s.axis) for s in g.symbols.values() if s.origin == "arg"],
            [(guard.relation, guard.left, guard.right) for guard in g.guards],
            result_dims,
            0,
            list(g.sites),
            tables=[(b, np.ascontiguousarray(op.attrs["value"])) for op, b in self.tables.items()],
            fast_math=g.fast_math,
            lines=self.lines,
            origins=self.origins,
        )

    # ---------------------------------------------------------------------------------------------------------- memory

    def _argument(self, slot: int, arg: Value) -> Place:
        t = arg.type
        if t.kind != "array":
            name = self.unique(arg.name or f"a{slot}")
            part = dtypes.part_of(t.dtype)
            scalar: Var | Pair = Var(name, t.dtype)
            if part != t.dtype:
                scalar = Pair(Var(self.unique(f"{name}_re"), part), Var(self.unique(f"{name}_im"), part))
            self.entry_scalars.append((scalar, slot))
            return scalar
        name = self.unique(arg.name or f"a{slot}")
        names = [f"{name}.s{k}" for k in range(t.ndim)]
        given = [symbol(s) for s in names]
        strides = layout_strides(t.shape, t.layout, t.dtype.itemsize, given)
        if 1 in t.shape and _is_handed_on(arg):  # NumPy's loops look at strides of axes of size 1, too
            strides = tuple([s if d == 1 else stride for d, s, stride in zip(t.shape, given, strides, strict=True)])
        buffer = Buffer(name, t.dtype, t.shape, strides)
        read = {s for d in strides for s in symbols(d)}
        self.entry_buffers.append(EntryBuffer(buffer, "arg", slot, tuple(s if s in read else "" for s in names)))
        self.orders[name] = t.layout.order
        return Memory(buffer)

    def unique(self, name: str) -> str:
        name = re.sub(r"\W", "_", name)
        at, found = 1, name
        while found in self.names or found in self.graph.symbols:
            at += 1
            found = f"{name}_{at}"
        self.names.add(found)
        return found

    def is_known(self, shape: Shape) -> bool:
        """Whether `prepare` knows these sizes."""
        return all(isinstance(d, int) or all(s in self.known for s in symbols(d)) for d in shape)

    def new_buffer(self, dtype: np.dtype, shape: Shape, order: Sequence[int], name: str = "t") -> Buffer:
        buffer = Buffer(
            self.unique(f"{name}{len(self.orders)}"), dtype, shape, dense_strides(shape, order, dtype.itemsize)
        )
        self.orders[buffer.name] = tuple(order)
        op = self.op
        if op is not None:
            k = next((k for k, r in enumerate(op.results) if r.type.shape == shape), 0)
            inner = op.regions[0].terminator.operands[k].producer if op.name == "kernel" else op
            named = op.results[k].name if op.results else ""
            self.origins[buffer.name] = Origin(named, inner.name if inner is not None else op.name, op.loc)
        return buffer

    def temporary(self, dtype: np.dtype, shape: Shape, order: Sequence[int]) -> Buffer:
        """Memory for a value of the graph's level, from here on; the memory plan says where it lies."""
        buffer = self.new_buffer(dtype, shape, order)
        self.frame.body.append(Alloc(buffer, "scratch"))
        return buffer

    def destination(self, value: Value) -> Memory:
        """Memory to compute `value` in: that of its target, else a temporary."""
        target = self.targets.get(value)
        if target is not None:
            buffer = target if isinstance(target, Buffer) else self.result_buffer(target)
            if buffer.shape == value.type.shape:
                return Memory(buffer)
            seen = reshape_memory(Memory(buffer), buffer.shape, value.type.shape)
            if seen is not None:
                return seen
        t = value.type
        return Memory(self.temporary(t.dtype, t.shape, t.layout.order))

    def result_buffer(self, slot: int) -> Buffer:
        """The memory of a result slot; a size that only the run knows is allocated at the first call of this."""
        buffer = self.results.get(slot)
        if buffer is None:
            t = self.returned.operands[slot].type
            buffer = self.results[slot] = self.new_buffer(t.dtype, t.shape, t.layout.order, "r")
            if self.is_known(t.shape):
                self.entry_buffers.append(EntryBuffer(buffer, "result", slot, ("",) * t.ndim))
            else:
                self.frame.body.append(Alloc(buffer, "result", 0, slot))
        return buffer

    def table(self, op: Op) -> Buffer:
        """The read-only memory of a constant array."""
        buffer = self.tables.get(op)
        if buffer is None:
            t = op.result.type
            buffer = self.tables[op] = self.new_buffer(t.dtype, t.shape, range(t.ndim), "c")
        return buffer

    # ---------------------------------------------------------------------------------------------- values on their own

    def scalar(self, value: Value) -> Any:
        """The value of a 0-d value, at the graph's level."""
        place = self.places.get(value)
        if place is not None and not isinstance(place, (Memory, Value)):
            return place
        return Evaluator(self, self.frame, {}).at(value, ())

    def memory(self, value: Value) -> Memory:
        """Memory that holds `value`; one that is computed where it is read is stored first."""
        place = self.places.get(value)
        if isinstance(place, Memory):
            return place
        memory = self.destination(value)
        self.copy_into(value, memory)
        return memory

    def copy_into(self, value: Value, memory: Memory) -> None:
        """Store `value` in `memory`."""
        if value.type.ndim == 0:
            self.frame.body.append(store_of(memory.buffer, memory.index(()), self.scalar(value)))
        else:
            self.run_group([], {}, {value: memory}, 0, ["copy"])

    # -------------------------------------------------------------------------------------------------------- kernels

    def run_group(
        self,
        ops: Sequence[Op],
        places: Mapping[Value, Place],
        outputs: Mapping[Value, Memory | None],
        rows: int,
        origin: list[str],
    ) -> dict[Value, Scalar]:
        """Emit one kernel; the outputs that are scalars."""
        group = Group(self, ops, places, outputs, rows)
        group.emit()
        scalars = [v for v, memory in outputs.items() if memory is None]
        found = finish_kernel(self, group, scalars, f"k{len(self.kernels)}", origin)
        return dict(zip(scalars, found, strict=True))

    def group(self, op: Op, ops: Sequence[Op], places: dict[Value, Place], yielded: Sequence[Value], rows: int) -> None:
        """Lower ops as one kernel whose `yielded` values are the results of `op`."""
        outputs: dict[Value, Memory | None] = {}
        for result, value in zip(op.results, yielded, strict=True):
            if value in outputs:
                continue
            if value in places:  # an operand handed through
                handed = places[value]
                if not isinstance(handed, Value):
                    self.places[result] = handed
                    continue
            root = value
            while root not in places and root not in self.places:
                if root.producer is None or root.producer.name not in UPDATES:
                    break
                root = root.producer.operands[UPDATES[root.producer.name]]
            place = places.get(root) or self.places.get(root)
            if root is not value and isinstance(place, Memory):
                outputs[value] = place
            else:
                outputs[value] = self.destination(result) if value.type.ndim else None
        scalars = self.run_group(ops, places, outputs, rows, origin_of(ops or (op,)))
        for result, value in zip(op.results, yielded, strict=True):
            if value in outputs:
                self.places[result] = outputs[value] or scalars[value]

    def emit_reductions(self, group: Group, nest: Nest) -> None:
        lower_reduce.emit_reductions(group, nest)

    def emit_special(self, group: Group, root: Root) -> None:
        """An op with nests of its own."""
        assert root.op is not None
        emit = lower_special.SPECIAL.get(root.op.name)
        if emit is None:
            raise InternalError(f"lower: {root.op.name} cannot stand in a kernel")
        emit(group, root.op, root)

    def check_array(self, op: Op) -> None:
        lower_special.check_array(self, op, origin_of([op]))

    # ----------------------------------------------------------------------------------------------------- operations

    def block(self, block: Block) -> None:
        """Lower the ops of a block, but for its `yield`."""
        ops = list(block.ops())
        for_checks = ops_for_checks(block)
        done: Op | None = None
        for op, following in zip(ops, [*ops[1:], None], strict=True):
            if op is done:
                continue
            self.op = op
            handler = _HANDLERS.get(op.name)
            if op.name == "kernel":
                places = _region_places(self, op)
                if emit_lagged(self, op, following, places):
                    done = following
                else:
                    region = op.regions[0]
                    inside = [o for o in region.ops() if o.name != "yield"]
                    self.group(op, inside, places, region.terminator.operands, op.attrs.get("rows", 0))
            elif handler is not None:
                handler(self, op)
            elif op.defn.lower is not None and op.result.type.ndim == 0:
                self.places[op.result] = Evaluator(self, self.frame, {}).at(op.result, ())
            elif op in for_checks:
                pass  # computed where the check reads it
            else:
                self.group(op, [op], {}, op.results, 0)
            if self.exposed:
                self._expose(op)

    def _expose(self, op: Op) -> None:
        """Bring what an op makes of a caller's array without axes to its memory: loops carry it as a scalar."""
        for value in op.results:
            argument = self.exposed.get(value)
            if argument is not None:
                target = self.places[argument]
                assert isinstance(target, Memory)
                if not target.same(self.places.get(value)):
                    self.copy_into(value, target)


def _region_places(low: Lowering, op: Op) -> dict[Value, Place]:
    """Where the arguments of a kernel's region lie."""
    places: dict[Value, Place] = {}
    for arg, operand in zip(op.regions[0].args, op.operands, strict=True):
        known = low.places.get(operand)
        if known is None:  # computed where it is read
            known = low.scalar(operand) if operand.type.ndim == 0 else operand
        places[arg] = known
    return places


def _view(low: Lowering, op: Op) -> None:
    place = low.places.get(op.operands[0])
    if op.result.type.ndim == 0:
        low.places[op.result] = Evaluator(low, low.frame, {}).at(op.result, ())
    elif isinstance(place, Memory):
        low.places[op.result] = place.view(op.attrs["map"])


def _reshape(low: Lowering, op: Op) -> None:
    x = op.operands[0]
    place = low.places.get(x)
    if op.result.type.ndim == 0:
        low.places[op.result] = Evaluator(low, low.frame, {}).at(op.result, ())
    elif isinstance(place, Memory):
        seen = reshape_memory(place, x.type.shape, op.result.type.shape)
        if seen is None:
            seen = low.destination(op.result)
            low.run_group([], {}, {op.result: seen}, 0, origin_of([op]))
        low.places[op.result] = seen
    elif place is not None:  # a scalar made an array of ones
        low.group(op, [op], {}, op.results, 0)


def _created(low: Lowering, op: Op) -> None:
    if op.name == "full" and op.result.type.ndim == 0:
        low.places[op.result] = Evaluator(low, low.frame, {}).at(op.result, ())


def _empty(low: Lowering, op: Op) -> None:
    low.places[op.result] = low.destination(op.result)


def _bind(low: Lowering, op: Op) -> None:
    low.frame.body.append(Bind(op.attrs["symbol"], low.scalar(op.operands[0])))


def _return(low: Lowering, op: Op) -> None:
    """Bring results to their slots, and the last version of each written argument to its memory."""
    mutates = op.attrs.get("mutates", ())
    for value, number in zip(op.operands[low.fresh :], mutates, strict=True):
        target = low.places[low.graph.args[number]]
        assert isinstance(target, Memory)
        if not target.same(low.places.get(value)):
            low.copy_into(value, target)
    for slot, value in enumerate(op.operands[: low.fresh]):
        if value.type.kind != "array":
            low.frame.body.append(SetResult(slot, low.scalar(value)))
            continue
        place = low.places.get(value)
        buffer = low.result_buffer(slot)
        if not (isinstance(place, Memory) and place.buffer.name == buffer.name and place.map is None):
            low.copy_into(value, Memory(buffer))


def _nothing(low: Lowering, op: Op) -> None:
    pass


_HANDLERS: dict[str, Callable[[Lowering, Op], None]] = {
    "view": _view,
    "reshape": _reshape,
    "constant": _nothing,
    "dim": _nothing,
    "full": _created,
    "empty": _empty,
    "iota": _nothing,
    "bind": _bind,
    "return": _return,
    "yield": _nothing,
    **lower_control.HANDLERS,
    **lower_matmul.HANDLERS,
    **lower_special.HANDLERS,
}
