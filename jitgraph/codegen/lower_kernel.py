"""Lowering of one kernel: a group of tensor-level ops becomes a few loop nests in one function.

Ops with a scalar function, views and creation are computed where they are read, and stored only if they are yielded.
Reductions, writes and the like are *roots*, each computed in a nest of its *stage*: one more than the stages of the
roots that it reads. Roots of one stage over one domain share a nest. With `rows = k` all nests stand inside one nest
over the k leading axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from jitgraph.codegen.loops import For, If, Stmt
from jitgraph.codegen.lower_nest import Axis, affine, loops_over, merge_axes, nest
from jitgraph.codegen.lower_scalar import KernelFrame, LetBuilder
from jitgraph.codegen.lower_short import is_short, short_nest, short_test
from jitgraph.codegen.lower_values import Evaluator, Index, Place, Slot, element_written, is_virtual
from jitgraph.codegen.lower_views import Memory, broadcast_index
from jitgraph.ir.dims import DimLike, symbol
from jitgraph.ir.graph import Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.storage import UPDATES, WRITES, target_of
from jitgraph.ir.types import Shape
from jitgraph.records import dataclass, field

if TYPE_CHECKING:
    from jitgraph.codegen.lower import Lowering

#: Work that is cheaper to repeat than to store and load again; a transcendental function costs more.
RECOMPUTE_COST = 12
#: Fewer elements are added one by one by NumPy: accumulators of its pairwise sum.
SHORT_SUM = 8
SHORT_SUM_OF_PARTS = 4
_COSTS = {"div": 4, "floordiv": 6, "mod": 6, "fmod": 6, "sqrt": 5, "reciprocal": 4, "pow": 20, "take": 6}


@dataclass(slots=True, eq=False)
class Root:
    """Something that a nest computes: `value` at each index of `domain`, stored or reduced."""

    kind: Literal["store", "write", "reduce", "special"]
    value: Value
    domain: Shape
    stage: int
    op: Op | None = None
    memory: Memory | None = None


@dataclass(slots=True, eq=False)
class Nest:
    stage: int
    domain: Shape
    axes: tuple[int, ...] | None = None  # of its reductions
    roots: list[Root] = field(default_factory=list)


def width_of(root: Root) -> int:
    """Accumulators of the pairwise sum that a reduction is, or might be."""
    return SHORT_SUM_OF_PARTS if root.op is not None and root.op.name == "reduce_sum_parts" else SHORT_SUM


class Group(Evaluator):
    """One kernel: `ops` in order, some of whose values go to memory or out as scalars.

    Args:
        places: where operands lie, by the value that stands for them in `ops`.
        outputs: values wanted, with the memory to fill (a version of a storage: its own); None for scalars.
        rows: how many leading axes the ops share.
    """

    def __init__(
        self,
        low: Lowering,
        ops: Sequence[Op],
        places: Mapping[Value, Place],
        outputs: Mapping[Value, Memory | None],
        rows: int = 0,
    ) -> None:
        self.ops = ops
        self.rows = rows
        self.row_index: Index = ()
        self.lanes_over_rows = False
        self.outputs = outputs
        #: Memory of each version of a storage that this kernel updates.
        self.memory_of: dict[Value, Memory] = {}
        super().__init__(low, low.frame, places)
        self.nests = self._plan()
        if (
            rows
            or any(d != 1 for n in self.nests for d in n.domain)
            or any(n.axes is not None or n.roots[0].kind == "special" for n in self.nests)
        ):
            self.frame = KernelFrame()
            self.builder = LetBuilder(self.frame)

    # ------------------------------------------------------------------------------------------------------- planning

    def _plan(self) -> list[Nest]:
        """Roots with their stages, gathered into nests in the order of their execution."""
        need: dict[Value, int] = {}
        roots: list[Root] = []
        own = {op for op in self.ops if op.name in UPDATES}
        for output, memory in self.outputs.items():
            if memory is not None:
                self._claim(output, memory, own)
        for op in self.ops:
            stage = max((need.get(o, 0) for o in op.operands), default=0)
            if is_virtual(op):
                need[op.result] = stage
                continue
            name = op.defn.name
            if name in WRITES:
                root, stage = self._plan_write(op, stage, roots)
            elif op.defn.has(Trait.REDUCTION):
                root = Root("reduce", op.operands[0], op.operands[0].type.shape, stage, op)
            else:
                if name in UPDATES:
                    stage = self._plan_base(op, stage, roots)[1]
                root = Root("special", op.result, op.result.type.shape, stage, op)
            roots.append(root)
            for result in op.results:
                need[result] = stage + 1
        produced = {r.op.result for r in roots if r.op is not None}
        for value, memory in self.outputs.items():
            if value not in produced:
                roots.append(Root("store", value, value.type.shape, need.get(value, 0), None, memory))
        self._store_shared(roots, need)
        nests: dict[tuple[Any, ...], Nest] = {}
        for root in sorted(roots, key=_stage):
            domain = root.domain[self.rows :]
            if root.kind == "reduce":
                assert root.op is not None
                axes = tuple(root.op.attrs["axes"])
                found = nests.setdefault((root.stage, domain, axes), Nest(root.stage, domain, axes))
            elif root.kind == "special":
                found = nests.setdefault((root,), Nest(root.stage, domain))
            else:
                found = nests.setdefault((root.stage, domain), Nest(root.stage, domain))
            found.roots.append(root)
        for root in roots:
            self._place_root(root)
        return _join_stores(list(nests.values()))

    def _claim(self, output: Value, memory: Memory, own: set[Op]) -> None:
        """All versions of the storage that `output` is the last of share `memory`; of those from outside, the last.

        Args:
            own: the updates among the group's ops.
        """
        value = output
        while value not in self.memory_of:
            self.memory_of[value] = memory
            op = value.producer
            if op is None or op not in own or value in self.places:
                return
            value = op.operands[UPDATES[op.name]]

    def _plan_write(self, op: Op, stage: int, roots: list[Root]) -> tuple[Root, int]:
        memory, stage = self._plan_base(op, stage, roots)
        return Root("write", op.operands[0], target_of(op)[1].shape, stage, op, memory), stage

    def _plan_base(self, op: Op, stage: int, roots: list[Root]) -> tuple[Memory, int]:
        """The memory in which an update happens, and its stage: behind the one that stores a base computed here."""
        base = op.operands[UPDATES[op.name]]
        memory = self.memory_of.get(op.result)
        known = self.place(base)
        if memory is None:
            if isinstance(known, Memory):
                memory = known
            elif base in self.memory_of:
                memory = self.memory_of[base]
            else:
                memory = self.temporary(base)
            self.memory_of[op.result] = memory
        version = base.producer is not None and base.producer.name in UPDATES
        if base.type.ndim:
            whole = op.name == "write" and op.attrs["map"].is_identity(base.type.shape)
        else:  # the one element is written, unless what is written may be empty, or masked
            whole = op.name == "write" and all(isinstance(d, int) and d > 0 for d in op.attrs["map"].shape)
        if not isinstance(known, Memory) and not version and not whole:
            roots.append(Root("store", base, base.type.shape, stage, None, memory))
            stage += 1
        return memory, stage

    def _place_root(self, root: Root) -> None:
        """Where the root's result can be read by later stages."""
        if root.kind == "write":
            assert root.op is not None
            assert root.memory is not None
            self.slots[root.op.result] = Slot(root.memory, root.stage)
        elif root.kind == "store" and root.memory is not None and root.value not in self.slots:
            if self.outputs.get(root.value) is root.memory:
                self.slots[root.value] = Slot(root.memory, root.stage)
        elif root.kind in ("reduce", "special"):
            assert root.op is not None
            for result in root.op.results:
                inner = result.type.shape[self.rows :] if root.kind == "reduce" else result.type.shape
                if any(d != 1 for d in inner) or (result.type.ndim and root.kind == "special"):
                    memory = self.memory_of.get(result) or self.temporary(result)
                    self.slots[result] = Slot(memory, root.stage)
                    root.memory = memory

    def _store_shared(self, roots: list[Root], need: dict[Value, int]) -> None:
        """Store what is dear to compute and read in several stages, at its first one."""
        if not roots or max(r.stage for r in roots) == min(r.stage for r in roots):
            return
        last: dict[Value, int] = {}
        for root in roots:
            last[root.value] = max(last.get(root.value, 0), root.stage)
        for op in reversed(self.ops):
            if is_virtual(op) and op.result in last:
                stage = last[op.result]
                for o in op.operands:
                    if last.get(o, -1) < stage:
                        last[o] = stage
        cost: dict[Value, int] = {}
        stored = {r.value for r in roots if r.kind == "store" and r.memory is not None}
        for op in self.ops:
            if not is_virtual(op):
                continue
            value = op.result
            total = (20 if op.defn.ulp else _COSTS.get(op.name, 1)) + sum(cost.get(o, 0) for o in op.operands)
            cost[value] = total
            if value in stored:
                cost[value] = 1
            elif total >= RECOMPUTE_COST and value.type.ndim > self.rows and last.get(value, 0) > need[value]:
                if all(d == 1 for d in value.type.shape[self.rows :]):
                    continue
                memory = self._row_of_output(value, roots) or self.temporary(value)
                roots.append(Root("store", value, value.type.shape, need[value], None, memory))
                self.slots[value] = Slot(memory, need[value])
                cost[value] = 1

    def _row_of_output(self, value: Value, roots: list[Root]) -> Memory | None:
        """The memory of a fresh output that may hold `value` until the output itself is stored there."""
        for root in roots:
            memory = root.memory
            if (
                root.kind != "store"
                or memory is None
                or root.value.type.shape != value.type.shape
                or root.value.type.dtype != value.type.dtype
                or self.outputs.get(root.value) is not memory
                or root.value is value
                or any(slot.place is memory for slot in self.slots.values())
            ):
                continue
            latest = max(r.stage for r in roots)
            if root.stage == latest and self._same_index_only(
                value, root.value, [r for r in roots if r.stage == latest]
            ):
                return memory
        return None

    def _same_index_only(self, value: Value, output: Value, roots: list[Root]) -> bool:
        """Whether the nest of `roots` reads `value` only at the index at which it stores `output`."""
        shape = value.type.shape
        reads: set[Value] = {value}
        for op in self.ops:
            if not is_virtual(op) or not any(o in reads for o in op.operands):
                continue
            if op.defn.lower is None or op.result.type.shape != shape:
                return False
            if any(o in reads and o.type.shape != shape for o in op.operands):
                return False
            reads.add(op.result)
        return all(r.value is output or r.value not in reads for r in roots)

    def temporary(self, value: Value) -> Memory:
        """Memory for a value of this kernel alone: row-sized, or from the arena."""
        shape = value.type.shape
        if self.rows:
            order = [k - self.rows for k in value.type.layout.order if k >= self.rows]
            buffer = self.low.new_buffer(value.type.dtype, shape[self.rows :], order)
            self.low.row_buffers.append(buffer)
            return Memory(buffer, None, self.rows)
        return Memory(self.low.temporary(value.type.dtype, shape, value.type.layout.order))

    # ------------------------------------------------------------------------------------------------------- emission

    def emit(self) -> None:
        """Emit all nests, inside the loops over the shared rows."""
        frame = self.frame
        if not self.rows:
            for n in self.nests:
                self.emit_nest(n)
            return
        size = self._short_axis()
        if size is None:
            frame.body.extend(self._row_loops())
        elif isinstance(size, int):
            frame.body.extend(self._row_loops(lanes=True))
        else:
            few = short_test(self, size, self._short_limit())
            frame.body.append(If(few, self._row_loops(lanes=True), self._row_loops()))

    def _row_loops(self, *, lanes: bool = False) -> list[Stmt]:
        """The nests inside of loops over the rows; with `lanes` the last row axis is a vector loop."""
        frame = self.frame
        memo, slots, outer = dict(self.memo), dict(self.slots), frame.body
        shape = next(r.domain for n in self.nests for r in n.roots if len(r.domain) >= self.rows)
        axes = []
        index: list[DimLike] = []
        for d in shape[: self.rows]:
            if d == 1:
                index.append(0)
            else:
                axes.append(Axis(frame.index(), d))
                index.append(symbol(axes[-1].symbol))
        self.row_index = tuple(index)
        self.lanes_over_rows = lanes
        inner: list[Stmt] = []
        frame.body = inner
        for n in self.nests:
            self.emit_nest(n)
        for axis in reversed(axes):
            inner = [For(axis.symbol, 0, axis.size, inner, role="vector" if lanes else "serial")]
            lanes = False
        frame.body = outer
        self.memo, self.slots = memo, slots
        return inner

    def _short_axis(self) -> DimLike | None:
        """The one axis that all rows have, if it is so short that a row leaves lanes idle; None otherwise.

        NumPy adds fewer than eight elements one by one, so that each lane may do a row.
        """
        if self.low.row_buffers or all(d == 1 for d in self.nests[0].domain[: self.rows]):
            return None
        found: DimLike | None = None
        for root in (r for n in self.nests for r in n.roots):
            if root.kind == "reduce":
                assert root.op is not None
                sizes = [root.domain[k] for k in root.op.attrs["axes"] if root.domain[k] != 1]
                if len(sizes) != 1 or (found is not None and found != sizes[0]) or root.op.name.endswith("_where"):
                    return None
                found = sizes[0]
            elif root.kind != "store":
                return None
            if len(root.domain) < self.rows or root.domain[: self.rows] != self.nests[0].roots[0].domain[: self.rows]:
                return None
        return found if found is not None and is_short(self, found, self._short_limit()) else None

    def _short_limit(self) -> int:
        return min(width_of(r) for n in self.nests for r in n.roots)

    def emit_nest(self, n: Nest) -> None:
        self.stage = n.stage
        if n.axes is not None:
            self.low.emit_reductions(self, n)
        elif n.roots[0].kind == "special":
            with self.apart(n.domain):
                self.low.emit_special(self, n.roots[0])
        else:
            self.emit_stores(n)

    def axes_of(self, domain: Shape) -> tuple[list[Axis], Index]:
        """Fresh loop axes over a domain (without its axes of size 1), and the full index."""
        axes, index = loops_over(self.frame.index, domain)
        return axes, (*self.row_index, *index)

    @contextmanager
    def apart(self, domain: Shape) -> Iterator[None]:
        """Around loops over a domain: if it is empty no element that they read, however often, is one for others."""
        memo = dict(self.memo) if 0 in domain else None
        yield
        if memo is not None:
            self.memo = memo

    def emit_stores(self, n: Nest) -> None:
        with self.apart(n.domain):
            self._emit_stores(n)

    def _emit_stores(self, n: Nest) -> None:
        frame = self.frame
        axes, index = self.axes_of(n.domain)
        outer, frame.body = frame.body, []
        self.store_roots(n.roots, index)
        flat, frame.body = frame.body, outer
        memory = next((r.memory for r in n.roots if r.memory is not None), None)
        if len(axes) > 1 and memory is not None:
            root = n.roots[0]
            at = self.target_index(root, index)
            axes = self.in_memory_order(axes, memory, at)
        axes = merge_axes(axes, flat)
        if self.rows:
            outer.extend(nest(axes, flat, vector=not self.lanes_over_rows))
        else:
            outer.extend(short_nest(self, axes, flat) or nest(axes, flat, tile=(frame.index(), frame.index())))

    def store_roots(self, roots: Iterable[Root], index: Index) -> None:
        """Compute the roots' values at `index`, then store them: reads come before the writes."""
        found = [(r, self.at(r.value, broadcast_index(index, r.value.type.shape))) for r in roots]
        for root, value in found:
            if root.memory is None:
                self.slots[root.value] = Slot(value, root.stage)
            elif root.op is not None and root.op.result.type.ndim == 0:
                value = self.builder.cast(value, root.op.result.type.dtype)
                self.store(root.memory, (), value)
            else:
                self.store(root.memory, self.target_index(root, index), value)

    def target_index(self, root: Root, index: Index) -> Index:
        if root.kind == "write":
            assert root.op is not None
            return element_written(root.op, index)
        return index

    def in_memory_order(self, axes: list[Axis], memory: Memory, index: Index) -> list[Axis]:
        """The axes as they lie in memory, outermost first; axes that the memory does not have come first."""
        at = memory.index(index)
        names = {a.symbol: a for a in axes}
        found: dict[str, Axis] = {}
        order = self.low.orders.get(memory.buffer.name, ())
        for k in order if len(order) == len(at) else range(len(at)):  # a buffer may be seen with other axes
            split = affine(at[k], names)
            for name in split[0] if split is not None else ():
                found[name] = names[name]
        return [a for a in axes if a.symbol not in found] + list(found.values())


def _stage(root: Root) -> int:
    return root.stage


def _join_stores(nests: list[Nest]) -> list[Nest]:
    """Stores over the domain of a reduction of the same stage join its nest, so that their values are computed once."""
    by_key = {(n.stage, n.domain): n for n in nests if n.axes is not None}
    kept = []
    for n in nests:
        host = by_key.get((n.stage, n.domain)) if n.axes is None and n.roots[0].kind != "special" else None
        if host is not None and host is not n and n.domain:
            host.roots.extend(n.roots)
        else:
            kept.append(n)
    kept.sort(key=lambda n: n.stage)
    return kept
