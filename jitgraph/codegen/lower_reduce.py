"""Nests of reductions, in NumPy's order of summation (`ops.reduction_plan`).

If the innermost axis is kept: totals lie in memory, and row after row is added to them. If it is reduced: a `Reduce`
over the innermost run for each kept index, with the reduced axes further out in serial loops around it. Producers
are computed in the body; reductions over one domain share it where their orders allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.loops import Carry, Const, For, If, Let, Load, Operand, Part, Reduce, Stmt, Store, Var
from jitgraph.codegen.lower_borders import Border, borders_of
from jitgraph.codegen.lower_kernel import Group, Nest, Root, width_of
from jitgraph.codegen.lower_nest import Axis, merge_axes, nest, split_levels
from jitgraph.codegen.lower_scalar import constant
from jitgraph.codegen.lower_short import is_short, short_test
from jitgraph.codegen.lower_stretches import emit_stretches
from jitgraph.codegen.lower_values import Index, Slot
from jitgraph.codegen.lower_views import Memory, dense_strides
from jitgraph.ir.dims import DimLike, as_symbol, dim_max, dim_min, symbol
from jitgraph.ir.graph import Op, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import Shape, TensorType
from jitgraph.ops.reduction_plan import ReductionPlan, reduction_plan
from jitgraph.records import dataclass

Kind = Literal["sum", "prod", "max", "min", "any", "all"]
#: Primitives of a row up to which four rows are added at a time.
LIGHT = 12
#: Rows of fewer elements leave lanes idle: dear values are computed all together first, and added up from memory.
SHORT_ROW = 16
#: Axes of a nest whose sizes may turn out to be 1: each of them doubles its code.
MOST_OPEN = 2
_COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and"}


def kind_of(op: Op) -> Kind:
    return op.name.removeprefix("reduce_").removesuffix("_where").removesuffix("_parts")  # type: ignore[return-value]


def mask_of(op: Op) -> Value | None:
    """What says which elements count."""
    return op.operands[1] if op.name.endswith("_where") else None


def computed_in(op: Op) -> np.dtype:
    """The dtype in which a reduction adds up: each element is cast to it."""
    dtype: np.dtype = op.attrs.get("dtype") or op.operands[0].type.dtype
    return dtype


def plan_of(op: Op, domain: Shape) -> ReductionPlan:
    """The plan of a reduction; `domain` may say that sizes are 1."""
    return _plan(op, [v.type.with_shape(domain, v.type.layout) for v in _read(op)])


def _read(op: Op) -> list[Value]:
    """What a reduction goes over: the array, and the mask if there is one."""
    mask = mask_of(op)
    return [op.operands[0]] if mask is None else [op.operands[0], mask]


def _plan(op: Op, types: Sequence[TensorType]) -> ReductionPlan:
    mask = types[1] if len(types) > 1 else None
    return reduction_plan(types[0], op.attrs["axes"], kind_of(op), dtype=computed_in(op), mask=mask)


def emit_reductions(group: Group, n: Nest, settled: frozenset[int] = frozenset()) -> None:
    """Emit the reductions of one nest (and the stores that joined it): one pass for those whose orders agree.

    NumPy leaves axes of size 1 out. Where a size may turn out to be 1, and that would be another order, the nest is
    there twice.

    Args:
        settled: the axes of which that is known here: those of size 1 are so in the nest's domain.
    """
    for axis in range(group.rows, len(n.domain)):
        if axis in settled or _is_argument(group, n.domain[axis]) or not _shows(n, axis):
            continue
        single = _is_one(group, n.domain[axis])
        settled |= {axis}
        if single:
            n = _with_one(n, axis)
        elif single is None and len(settled) <= MOST_OPEN and all(_in_memory(group, r) for r in n.roots):
            size, frame = n.domain[axis], group.frame
            test = group.builder.cmp("eq", group.dim(size), Const(1, dtypes.I64))
            then = _variant(group, partial(emit_reductions, group, _with_one(n, axis), settled))
            otherwise = _variant(group, partial(emit_reductions, group, n, settled))
            frame.body.append(If(test, then, otherwise))
            return
    reduces = [r for r in n.roots if r.kind == "reduce"]
    stores = [r for r in n.roots if r.kind != "reduce"]
    plans = {}
    for r in reduces:
        assert r.op is not None
        plans[r] = _chunked(group, r, plan_of(r.op, r.domain))
    while reduces:
        master = next((r for r in reduces if plans[r].order != "free"), reduces[0])
        plan = plans[master]
        alike = [
            r
            for r in reduces
            if plans[r].order == "free" or (plans[r].loops == plan.loops and plans[r].inner == plan.inner)
        ]
        masked = next((r for r in alike if _by_stretches(r, plans[r])), None)
        if masked is not None:
            alike, master = [masked], masked
            plan = plans[master]
        reduces = [r for r in reduces if r not in alike]
        # the last pass stores: what it stores may be what the others read
        if masked is not None:
            if not reduces and stores:
                group.emit_stores(Nest(n.stage, n.domain, None, stores))
            assert masked.op is not None
            mask = mask_of(masked.op)
            assert mask is not None
            emit_stretches(group, n, plan, masked, mask, start_of(group, masked.op, plan))
            continue
        with group.apart(n.domain):
            _Pass(group, n, plan, alike, [plans[r] for r in alike], [] if reduces else stores).emit()


def _shows(n: Nest, axis: int) -> bool:
    """Whether the bits of a reduction depend on whether an axis, which its plan has, is of size 1."""
    for r in n.roots:
        if r.kind != "reduce" or r.domain[axis] == 1:
            continue
        assert r.op is not None
        plan, without = plan_of(r.op, r.domain), plan_of(r.op, _one_at(r.domain, axis))
        if plan.order != "free" and _walk(plan, axis) != _walk(without, axis):
            return True
    return False


def _chunked(group: Group, r: Root, plan: ReductionPlan) -> ReductionPlan:
    """The plan with the chunks that NumPy makes of its inner run also where one of its sizes turns out to be 1, or
    where axes turn out to follow one another.
    """
    if plan.chunk is None or r.op is None:
        return plan
    total: DimLike = 1
    for k in plan.inner:
        total = total * r.domain[k]
    domain, open_ = r.domain, []
    for axis in plan.inner:
        single = False if axis < group.rows or _is_argument(group, domain[axis]) else _is_one(group, domain[axis])
        if single:
            domain = _one_at(domain, axis)
        elif single is None:
            open_.append(axis)
    chunk, period = _chunks(group, r.op, domain, total, open_[-MOST_OPEN:])
    return replace(plan, chunk=dim_max(1, chunk), period=None if period == total else dim_max(1, period))


#: Elements of a chunk, and after how many the chunks begin anew.
_Chunks: TypeAlias = tuple[DimLike, DimLike]


def _chunks(group: Group, op: Op, domain: Shape, total: DimLike, open_: Sequence[int]) -> _Chunks:
    """The chunks of `total` elements: formulas over whether the axes `open_` are of size 1, and whether the borders
    that the run may find closed are.
    """
    if open_:
        axis, *others = open_
        many, one = _chunks(group, op, domain, total, others), _chunks(group, op, _one_at(domain, axis), total, others)
        return _either(dim_max(0, dim_min(1, domain[axis] - 1)), many, one)
    types = [v.type.with_shape(domain, v.type.layout) for v in _read(op)]
    borders = borders_of(_read(op), types, _plan(op, types), group.low.graph.facts)

    def of(types: list[TensorType], borders: Sequence[Border]) -> _Chunks:
        if not borders:
            plan = _plan(op, types)
            return total if plan.chunk is None else plan.chunk, total if plan.period is None else plan.period
        border, *rest = borders
        shut = [border.shut(t) if k == border.operand else t for k, t in enumerate(types)]
        return _either(border.closed, of(shut, rest), of(types, rest))

    return of(types, borders)


def _either(flag: DimLike, a: _Chunks, b: _Chunks) -> _Chunks:
    """`a` if the flag is 1, `b` if it is 0."""
    chunk, period = (p if p == q else flag * p + (1 - flag) * q for p, q in zip(a, b, strict=True))
    return chunk, period


def _walk(plan: ReductionPlan, axis: int) -> tuple[list[int], list[int]]:
    """The reduced axes but for one: those around the inner run, and the run."""
    return [k for k in plan.outer_serial if k != axis], [k for k in plan.inner if k != axis]


def _is_argument(group: Group, d: DimLike) -> bool:
    """Whether a size is that of an argument, or a number: it is known then whether it is 1."""
    name = None if isinstance(d, int) else as_symbol(d)
    known = group.low.graph.symbols.get(name) if name is not None else None
    return isinstance(d, int) or (known is not None and known.not_one)


def _is_one(group: Group, d: DimLike) -> bool | None:
    """Whether a size is 1; None if only the run knows."""
    graph = group.low.graph
    if graph.facts.is_ne(d, 1):
        return False
    for guard in graph.guards:
        if guard.relation in ("==", "!=") and guard.left - guard.right in (d - 1, 1 - d):
            return guard.relation == "=="
    return None


def _in_memory(group: Group, r: Root) -> bool:
    """Whether what a root gives is stored, so that it may be computed on either side of a branch."""
    return r.kind != "reduce" or (r.op is not None and (r.memory or group.outputs.get(r.op.result)) is not None)


def _one_at(domain: Shape, axis: int) -> Shape:
    return (*domain[:axis], 1, *domain[axis + 1 :])


def _with_one(n: Nest, axis: int) -> Nest:
    """The nest for an axis of size 1."""
    roots = [Root(r.kind, r.value, _one_at(r.domain, axis), r.stage, r.op, r.memory) for r in n.roots]
    return Nest(n.stage, _one_at(n.domain, axis), n.axes, roots)


def _variant(group: Group, emit: Callable[[], None]) -> list[Stmt]:
    """What `emit` emits, for one side of a branch."""
    frame, memo, slots = group.frame, dict(group.memo), dict(group.slots)
    outer, frame.body = frame.body, []
    emit()
    body, frame.body = frame.body, outer
    group.memo, group.slots = memo, slots
    return body


def _by_stretches(r: Root, plan: ReductionPlan) -> bool:
    """Whether NumPy adds each stretch of true elements pairwise; elsewhere a mask may put in what changes nothing."""
    assert r.op is not None
    return mask_of(r.op) is not None and plan.order == "pairwise"


@dataclass(slots=True)
class _Pass:
    group: Group
    nest: Nest
    plan: ReductionPlan
    roots: list[Root]
    plans: list[ReductionPlan]
    stores: list[Root]

    def emit(self) -> None:
        """Emit the pass; where the one reduced axis may be short, also with a lane for each kept index."""
        group, plan = self.group, self.plan
        shape = self.roots[0].domain
        inner = [shape[k] for k in plan.inner if shape[k] != 1]
        kept = [k for k in plan.kept if k >= group.rows and shape[k] != 1]
        limit = min(map(width_of, self.roots))
        if group.rows or not kept or plan.outer_serial or len(inner) != 1 or not is_short(group, inner[0], limit):
            self._emit()
            return
        frame, size = group.frame, inner[0]
        if isinstance(size, int):
            frame.body.extend(self._variant(lanes=True))
            return
        few = short_test(group, size, limit)
        frame.body.append(If(few, self._variant(lanes=True), self._variant(lanes=False)))

    def _variant(self, *, lanes: bool) -> list[Stmt]:
        self.group.lanes_over_rows = lanes
        body = _variant(self.group, self._emit)
        self.group.lanes_over_rows = False
        return body

    def _emit(self) -> None:
        group, plan = self.group, self.plan
        shape = self.roots[0].domain
        axes: dict[int, Axis] = {}
        index: list[DimLike] = []
        for k, d in enumerate(shape):
            if k < group.rows:
                index.append(group.row_index[k])
            elif d == 1:
                index.append(0)
            else:
                axes[k] = Axis(group.frame.index(), d)
                index.append(symbol(axes[k].symbol))
        kept = [axes[k] for k in plan.loops if k in axes and k in plan.kept]
        outer = [axes[k] for k in plan.outer_serial if k in axes]
        inner = [axes[k] for k in plan.inner if k in axes]
        for role, run in (("kept", kept), ("serial", outer), ("inner", inner)):
            for a in run:
                a.role = role
        if kept and outer and not inner:
            self._by_rows([axes[k] for k in plan.loops if k in axes], index)
            return
        frame = group.frame
        around, frame.body = frame.body, []
        memo = dict(group.memo) if len(inner) > 1 else group.memo
        values = [self._value(r, tuple(index)) for r in self.roots]
        group.store_roots(self.stores, tuple(index))
        body, frame.body = frame.body, around
        stores = self._result_stores(index)
        merged = merge_axes([*kept, *outer, *inner], [*body, *stores.values()])
        run = [a for a in merged if a.role == "inner"]
        if len(run) > 1 and any(p.order == "pairwise" for p in self.plans):
            group.memo = memo
            self._through_memory()
            return
        kept = [a for a in merged if a.role == "kept"]
        serial = [a for a in merged if a.role == "serial"] + run[:-1]
        self._assemble(kept, serial, run[-1] if run else None, body, values, stores)

    def _by_rows(self, order: list[Axis], index: list[DimLike]) -> None:
        """Totals in memory, to which row after row is added as it lies there; four rows at a time if that is cheap.

        Each total sees its elements in the order of the rows, so nothing but the traffic changes.
        """
        frame = self.group.frame
        last = max(k for k, a in enumerate(order) if a.role == "serial")
        around, row, inside = order[:last], order[last], order[last + 1 :]
        single, inner = self._rows_body(row, inside, index, 1)
        light = sum(isinstance(s, Let) for s in single) <= LIGHT and not any(
            isinstance(s, Let) and s.op == "call" for s in single
        )
        if not light and not self.group.rows and is_short(self.group, inner[-1].size, SHORT_ROW):
            self._through_memory()
            return
        kept = [a for a in order if a.role == "kept"]
        starts = self._result_stores(index)
        for r, p in zip(self.roots, self.plans, strict=True):
            assert r.op is not None
            starts[r].value = self._start(r, p)
        frame.body.extend(nest([Axis(a.symbol, a.size, a.role) for a in kept], list(starts.values())))
        jam = 4 if light and not self.stores else 1
        levels = split_levels([*around, row, *inner], single)
        done = row.size - row.size % jam if jam > 1 else 0
        levels[last].append(self._row_loop(row, inner, levels[last + 1 :], done, row.size, 1))
        if jam > 1:
            jammed, inner = self._rows_body(row, inside, index, jam)
            more = split_levels([*around, row, *inner], jammed)
            whole = self._row_loop(row, inner, more[last + 1 :], 0, done, jam)
            levels = [[*before, *after] for before, after in zip(more[: last + 1], levels, strict=False)]
            levels[last].insert(len(more[last]), whole)
        current = levels[last]
        for k in range(last - 1, -1, -1):
            current = [*levels[k], For(around[k].symbol, 0, around[k].size, current)]
        frame.body.extend(current)

    def _rows_body(
        self, row: Axis, inside: list[Axis], index: list[DimLike], jam: int
    ) -> tuple[list[Stmt], list[Axis]]:
        """What `jam` rows in succession add to the totals, and the merged axes of a row."""
        group = self.group
        frame, memo, b = group.frame, group.memo, group.builder
        group.memo = dict(memo)
        outer, frame.body = frame.body, []
        stores = self._result_stores(index)
        totals: list[Operand] = []
        for store in stores.values():
            var = frame.var(store.buffer.dtype)
            frame.body.append(Load(var, store.buffer, store.index))
            totals.append(var)
        at = symbol(row.symbol)
        for t in range(jam):
            here = tuple(i + t if i == at else i for i in index)
            values = [self._value(r, here) for r in self.roots]
            group.store_roots(self.stores, here)
            totals = [
                self._combine(r, total, value) for r, total, value in zip(self.roots, totals, values, strict=True)
            ]
        for store, total in zip(stores.values(), totals, strict=True):
            store.value = b.cast(total, store.buffer.dtype)
            frame.body.append(store)
        body, frame.body = frame.body, outer
        group.memo = memo
        return body, merge_axes([Axis(a.symbol, a.size, a.role) for a in inside], body)

    def _row_loop(
        self, row: Axis, inner: list[Axis], levels: list[list[Stmt]], lower: DimLike, upper: DimLike, step: int
    ) -> For:
        current = levels[-1]
        for k in range(len(inner) - 1, -1, -1):
            role: Literal["vector", "serial"] = "vector" if k == len(inner) - 1 else "serial"
            current = [*levels[k], For(inner[k].symbol, 0, inner[k].size, current, role=role)]
        return For(row.symbol, lower, upper, current, step)

    def _value(self, r: Root, index: Index) -> Operand:
        """One element as it is reduced; what a mask leaves out changes nothing."""
        assert r.op is not None
        group, dtype = self.group, computed_in(r.op)
        value = group.builder.cast(group.at(r.value, index), dtype)
        mask = mask_of(r.op)
        if mask is None:
            return value
        neutral = Const(-0.0 if dtype.kind == "f" else 0, dtype)
        return group.builder.select(group.at(mask, index), value, neutral)

    def _start(self, r: Root, plan: ReductionPlan) -> Operand:
        assert r.op is not None
        return start_of(self.group, r.op, plan)

    def _combine(self, r: Root, total: Operand, value: Operand) -> Operand:
        assert r.op is not None
        made: Operand = REGISTRY[_COMBINE[kind_of(r.op)]].lower(self.group.builder, total, value)  # type: ignore[misc]
        return made

    def _through_memory(self) -> None:
        """NumPy's flat sequence is no single loop over what is read: store the values as it would, then reduce them.

        What the nest stores anyway is stored there too, and reduced from there if it lies as NumPy would walk it.
        """
        group, n = self.group, self.nest
        order = [*self.plan.loops, *self.plan.inner]
        order += [k for k in range(len(self.roots[0].domain)) if k not in order]
        stored = {} if group.rows else {r.value: r.memory for r in self.stores if _lies_as(r, order)}
        roots = list(self.stores)
        for r in {r.value: r for r in self.roots}.values():
            memory = stored.get(r.value)
            if memory is None:
                memory = self._temporary(r, order)
                roots.append(Root("store", r.value, r.domain, n.stage, None, memory))
            stored[r.value] = memory
        self.stores = []
        group.emit_stores(Nest(n.stage, n.domain, None, roots))
        for value, memory in stored.items():
            if memory is not None:
                group.slots[value] = Slot(memory, n.stage - 1)
        self.emit()

    def _temporary(self, r: Root, order: list[int]) -> Memory:
        """Memory for the values that are reduced, its axes from the outermost to the innermost given."""
        group = self.group
        if not group.rows:
            return Memory(group.low.temporary(r.value.type.dtype, r.domain, order))
        inner = [k - group.rows for k in order if k >= group.rows]
        buffer = group.low.new_buffer(r.value.type.dtype, r.domain[group.rows :], inner)
        group.low.row_buffers.append(buffer)
        return Memory(buffer, None, group.rows)

    def _assemble(
        self,
        kept: list[Axis],
        serial: list[Axis],
        inner: Axis | None,
        body: list[Stmt],
        values: list[Operand],
        stores: dict[Root, Store],
    ) -> None:
        """kept loops, serial loops with the accumulators carried, then the innermost run."""
        group = self.group
        frame = group.frame
        axes = [*kept, *serial, *([inner] if inner is not None else [])]
        levels = split_levels(axes, body)
        totals: list[Operand] = []
        for r, p in zip(self.roots, self.plans, strict=True):
            assert r.op is not None
            totals.append(self._start(r, p))
        chains: list[list[tuple[Operand, Var, Var]]] = []
        around: list[Operand] = totals
        for _ in serial:
            chain = []
            for total in around:
                chain.append((total, frame.var(total.dtype), frame.var(total.dtype)))
            chains.append(chain)
            around = [inside for _, inside, _ in chain]
        outer_body = frame.body
        depth = len(axes)
        ends: list[Operand] = []
        if inner is not None and group.lanes_over_rows:
            depth -= 1
            current = levels[depth]
            ends = self._one_by_one(inner, levels[depth + 1], values, around, current)
        elif inner is not None:
            parts = []
            for r, p, value, start in zip(self.roots, self.plans, values, around, strict=True):
                assert r.op is not None
                init = start if serial or p.init is not None else None
                kind = kind_of(r.op)
                parts.append(Part(frame.var(start.dtype), kind, p.order, value, init, p.chunk, p.period, width_of(r)))
            ends += [p.result for p in parts]
            depth -= 1
            current = [*levels[depth], Reduce(inner.symbol, inner.size, levels[depth + 1], parts)]
        else:
            frame.body = current = levels[depth]
            ends += [self._combine(r, start, value) for r, value, start in zip(self.roots, values, around, strict=True)]
        for axis, chain in zip(reversed(serial), reversed(chains), strict=True):
            carried = [Carry(inside, init, end, out) for (init, inside, out), end in zip(chain, ends, strict=True)]
            ends = [out for _, _, out in chain]
            depth -= 1
            current = [*levels[depth], For(axis.symbol, 0, axis.size, current, carried=carried)]
        frame.body = current
        self._results(ends, stores)
        frame.body = outer_body
        for k in range(len(kept) - 1, -1, -1):
            vector = k == len(kept) - 1 and (inner is None or group.lanes_over_rows)
            loop = For(kept[k].symbol, 0, kept[k].size, current, role="vector" if vector else "serial")
            current = [*levels[k], loop]
        outer_body.extend(current)

    def _one_by_one(
        self, inner: Axis, body: list[Stmt], values: list[Operand], around: list[Operand], into: list[Stmt]
    ) -> list[Operand]:
        """A serial loop over fewer than eight elements, in `into`; NumPy's sum of so few is a serial one from -0.0."""
        frame = self.group.frame
        outer, frame.body = frame.body, body
        carried: list[Carry] = []
        for r, p, value, start in zip(self.roots, self.plans, values, around, strict=True):
            first = Const(-0.0, start.dtype) if p.order == "pairwise" else start
            total = frame.var(start.dtype)
            carried.append(Carry(total, first, self._combine(r, total, value), frame.var(start.dtype)))
        into.append(For(inner.symbol, 0, inner.size, body, carried=carried))
        frame.body = into
        ends: list[Operand] = []
        for r, p, c, start in zip(self.roots, self.plans, carried, around, strict=True):
            ends.append(self._combine(r, start, c.result) if p.order == "pairwise" else c.result)
        frame.body = outer
        return ends

    def _result_stores(self, index: list[DimLike]) -> dict[Root, Store]:
        """Where totals go, by the kept index; what is stored is filled in when it is known."""
        group = self.group
        stores: dict[Root, Store] = {}
        for r in self.roots:
            op = r.op
            assert op is not None
            axes, keep = op.attrs["axes"], op.attrs.get("keepdims", False)
            at = tuple(0 if k in axes else i for k, i in enumerate(index) if keep or k not in axes)
            memory = r.memory or group.outputs.get(op.result)
            if memory is not None:
                stores[r] = group.store_of(memory, at, Const(0, op.result.type.dtype))
        return stores

    def _results(self, ends: list[Operand], stores: dict[Root, Store]) -> None:
        """Store the totals at their kept index; those of a row are scalars too."""
        group = self.group
        for r, end in zip(self.roots, ends, strict=True):
            op = r.op
            assert op is not None
            end = group.builder.cast(end, op.result.type.dtype)
            if r.memory is None:
                group.slots[op.result] = Slot(end, r.stage)
            store = stores.get(r)
            if store is not None:
                store.value = group.builder.cast(end, store.buffer.dtype)
                group.frame.body.append(store)


def _lies_as(r: Root, order: list[int]) -> bool:
    """Whether a store's memory is all of a buffer without gaps, its axes in this order."""
    memory = r.memory
    if r.kind != "store" or memory is None or memory.map is not None:
        return False
    buffer = memory.buffer
    same = buffer.shape == r.domain and buffer.dtype == r.value.type.dtype
    return same and buffer.strides == dense_strides(r.domain, order, buffer.dtype.itemsize)


def start_of(group: Group, op: Op, plan: ReductionPlan) -> Operand:
    """What an accumulator starts from; an extreme starts from the worst value where it is carried."""
    kind, dtype = kind_of(op), computed_in(op)
    given = op.operands[1 if mask_of(op) is None else 2 :]
    if given:
        return group.builder.cast(group.at(given[0], ()), dtype)
    if plan.init is not None:
        return constant(plan.init, dtypes.BOOL if kind in ("any", "all") else dtype)
    if dtype.kind == "f":
        return Const(float("-inf" if kind == "max" else "inf"), dtype)
    if dtype == dtypes.BOOL:
        return Const(kind == "min", dtype)
    info = np.iinfo(dtype)
    return Const(int(info.min if kind == "max" else info.max), dtype)
