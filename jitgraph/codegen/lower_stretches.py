"""Float sums under a mask: NumPy adds each stretch of true elements pairwise, one after the other onto the total.

    begin = 0
    for p in range(n):
        if begin < p and (not mask[p] or a chunk begins at p): total += pairwise(x[begin:p])
        begin = p + 1 if not mask[p], p if a chunk begins at p
    if begin < n: total += pairwise(x[begin:n])

A run of several axes that is no single sequence in memory is put down as one first, with its mask.
"""

from __future__ import annotations

from collections.abc import Callable

from jitgraph import dtypes
from jitgraph.codegen.loops import Buffer, Carry, Const, For, If, Load, Merge, Operand, Part, Reduce, Stmt
from jitgraph.codegen.lower_kernel import Group, Nest, Root
from jitgraph.codegen.lower_values import Slot
from jitgraph.codegen.lower_views import Memory
from jitgraph.ir.dims import DimLike, mod, symbol
from jitgraph.ir.graph import Value
from jitgraph.ops.reduction_plan import ReductionPlan

#: The element of an array at a place of the flat run.
Element = Callable[[DimLike], Operand]


def emit_stretches(group: Group, n: Nest, plan: ReductionPlan, root: Root, mask: Value, start: Operand) -> None:
    """Emit the nest of one masked sum; `start` is what each total begins with, of the dtype that is computed in."""
    _Stretches(group, n, plan, root, mask, start).emit()


class _Stretches:
    def __init__(self, group: Group, n: Nest, plan: ReductionPlan, root: Root, mask: Value, start: Operand) -> None:
        self.group, self.nest, self.plan, self.root, self.mask, self.start = group, n, plan, root, mask, start
        self.frame, self.b = group.frame, group.builder
        self.index: list[DimLike] = []
        self.sizes: dict[int, DimLike] = {}
        for k, d in enumerate(root.domain):
            if k < group.rows:
                self.index.append(group.row_index[k])
            elif d == 1:
                self.index.append(0)
            else:
                self.sizes[k] = d
                self.index.append(symbol(self.frame.index()))

    def emit(self) -> None:
        group, plan, frame = self.group, self.plan, self.frame
        inner = [k for k in plan.inner if k in self.sizes]
        size: DimLike = 1
        for k in inner:
            size = size * self.sizes[k]
        if len(inner) == 1:
            value, chosen = self._along(self.root.value, inner[0]), self._along(self.mask, inner[0])
        else:
            value, chosen = self._put_down(self.root.value, inner), self._put_down(self.mask, inner)
        memo = group.memo
        group.memo = dict(memo)
        outer, frame.body = frame.body, []
        serial = [k for k in plan.outer_serial if k in self.sizes]
        total = self._serial(serial, self.start, value, chosen, size)
        self._result(total)
        current, frame.body = frame.body, outer
        group.memo = memo
        for k in reversed([k for k in plan.kept if k in self.sizes]):
            current = [For(str(self.index[k]), 0, self.sizes[k], current)]
        frame.body.extend(current)

    def _along(self, v: Value, axis: int) -> Element:
        def element(at: DimLike) -> Operand:
            return self.group.at(v, tuple(at if k == axis else i for k, i in enumerate(self.index)))

        return element

    def _put_down(self, v: Value, inner: list[int]) -> Element:
        """Store `v` as the plan walks it; its elements by their place in the flat run."""
        group, n, rows = self.group, self.nest, self.group.rows
        domain = self.root.domain
        order = [*self.plan.loops, *self.plan.inner]
        order += [k for k in range(len(domain)) if k not in order]
        order = [k - rows for k in order if k >= rows]
        dtype = v.type.dtype
        if rows:
            buffer = group.low.new_buffer(dtype, domain[rows:], order)
            group.low.row_buffers.append(buffer)
        else:
            buffer = group.low.temporary(dtype, domain, order)
        store = Root("store", v, domain, n.stage, None, Memory(buffer, None, rows))
        group.emit_stores(Nest(n.stage, n.domain, None, [store]))
        outside = [k for k in range(rows, len(domain)) if k not in inner]
        size: DimLike = 1
        for k in inner:
            size = size * domain[k]
        flat = Buffer(
            buffer.name,
            dtype,
            (*(domain[k] for k in outside), size),
            (*(buffer.strides[k - rows] for k in outside), dtype.itemsize),
        )

        def element(at: DimLike) -> Operand:
            var = self.frame.var(dtype)
            self.frame.body.append(Load(var, self.frame.buffer(flat), (*(self.index[k] for k in outside), at)))
            return var

        return element

    def _serial(self, axes: list[int], total: Operand, value: Element, chosen: Element, size: DimLike) -> Operand:
        """Loops over the reduced axes around the run, which carry the total."""
        frame = self.frame
        if not axes:
            return self._run(total, value, chosen, size)
        k, *rest = axes
        inner, result = frame.var(total.dtype), frame.var(total.dtype)
        outer, frame.body = frame.body, []
        end = self._serial(rest, inner, value, chosen, size)
        body, frame.body = frame.body, outer
        outer.append(For(str(self.index[k]), 0, self.sizes[k], body, carried=[Carry(inner, total, end, result)]))
        return result

    def _run(self, total: Operand, value: Element, chosen: Element, size: DimLike) -> Operand:
        frame, b, plan = self.frame, self.b, self.plan
        name = frame.index()
        place = symbol(name)
        begin, total_in = frame.var(dtypes.I64), frame.var(total.dtype)
        outer, frame.body = frame.body, []
        memo = self.group.memo
        self.group.memo = dict(memo)  # what the turns read, the same element in each or not, is not read behind them
        true = chosen(place)
        at = self.group.dim(place)
        ends: Operand = b.not_(true)
        cut: Operand | None = None
        if plan.chunk is not None:
            turn = place if plan.period is None else mod(place, plan.period)
            cut = b.cmp("eq", self.group.dim(mod(turn, plan.chunk)), Const(0, dtypes.I64))
            ends = b.or_(ends, cut)
        added = self._flush(b.and_(b.cmp("lt", begin, at), ends), begin, at, place, total_in, value)
        kept = begin if cut is None else b.select(cut, at, begin)
        following = b.select(true, kept, self.group.dim(place + 1))
        body, frame.body = frame.body, outer
        self.group.memo = memo
        last, total_out = frame.var(dtypes.I64), frame.var(total.dtype)
        carried = [Carry(begin, Const(0, dtypes.I64), following, last), Carry(total_in, total, added, total_out)]
        outer.append(For(name, 0, size, body, carried=carried))
        end = self.group.dim(size)
        return self._flush(b.cmp("lt", last, end), last, end, size, total_out, value)

    def _flush(
        self, condition: Operand, begin: Operand, end: Operand, stop: DimLike, total: Operand, value: Element
    ) -> Operand:
        """If the condition holds the total with the elements from `begin` to `stop` added, else the total."""
        group, frame = self.group, self.frame
        then: list[Stmt] = []
        outer, frame.body = frame.body, then
        memo, group.memo = group.memo, dict(group.memo)
        first = group.bind(begin)
        name = frame.index()
        frame.body = []
        element = self.b.cast(value(first + symbol(name)), total.dtype)
        body, frame.body = frame.body, outer
        group.memo = memo
        added, merged = frame.var(total.dtype), frame.var(total.dtype)
        then.append(Reduce(name, stop - first, body, [Part(added, "sum", "pairwise", element, total)]))
        outer.append(If(condition, then, [], [Merge(merged, added, total)]))
        return merged

    def _result(self, total: Operand) -> None:
        group, op = self.group, self.root.op
        assert op is not None
        axes, keep = op.attrs["axes"], op.attrs.get("keepdims", False)
        at = tuple(0 if k in axes else i for k, i in enumerate(self.index) if keep or k not in axes)
        end = self.b.cast(total, op.result.type.dtype)
        if self.root.memory is None:
            group.slots[op.result] = Slot(end, self.root.stage)
        memory = self.root.memory or group.outputs.get(op.result)
        if memory is not None:
            group.store(memory, at, end)
