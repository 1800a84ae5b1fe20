"""Elements of values, computed where they are read.

`at(value, index)` emits what computes one element, once for each pair: elementwise ops by their scalar function,
views and other movement as an index into their operand, creation as constants and indices; what lies in memory is
loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from jitgraph import dtypes
from jitgraph.codegen.loops import Alloc, Bind, CallKernel, Const, DimValue, Function, Operand, Pair, Store, Var
from jitgraph.codegen.lower_scalar import Frame, KernelFrame, LetBuilder, Scalar, scalar_constant, store_of
from jitgraph.codegen.lower_views import Memory, broadcast_index, free_symbols, reindex, reshape_memory, simplify_index
from jitgraph.errors import InternalError
from jitgraph.ir.dims import DimLike, symbol, symbols
from jitgraph.ir.graph import Op, Value
from jitgraph.ir.printer import place_text
from jitgraph.ir.storage import target_of
from jitgraph.ir.types import IndexMap
from jitgraph.records import dataclass

if TYPE_CHECKING:
    from jitgraph.codegen.lower import Lowering

Index: TypeAlias = tuple[DimLike, ...]
Key: TypeAlias = tuple[Value, Index]
#: Where a value lies: a scalar, memory, or another value that it stands for and that is computed where it is read.
Place: TypeAlias = Union[Scalar, Memory, Value]
Finish: TypeAlias = "Callable[[list[Any]], Scalar | Key]"


@dataclass(slots=True)
class Slot:
    """Where a value computed by this kernel can be read in stages behind `stage`."""

    place: Place
    stage: int


class Evaluator:
    """Demand-driven evaluation of single elements in one function."""

    def __init__(self, low: Lowering, frame: Frame, places: Mapping[Value, Place]) -> None:
        self.low = low
        self.frame = frame
        self.builder = LetBuilder(frame)
        self.places = places
        #: Variables that hold a size or a loop's index.
        self.sizes: dict[Var, DimLike] = {}
        #: Indices of axes that may have no elements, bound by `within`: a view puts its element 0 anywhere.
        self.wild: set[str] = set()
        self.memo: dict[Key, Operand] = {}  # of complex values pairs: the dtype of the value says which
        self.slots: dict[Value, Slot] = {}
        self.stage = 0

    def at(self, value: Value, index: Index = ()) -> Operand:
        """The element of `value` at `index` (a `Pair` of a complex one); it is emitted at the insertion point, once."""
        memo = self.memo
        key = (value, index)
        found = memo.get(key)
        if found is not None:
            return found
        stack = [key]
        pending: dict[Key, tuple[Sequence[Key], Finish]] = {}
        while stack:
            key = stack[-1]
            if key in memo:
                stack.pop()
                continue
            entry = pending.get(key)
            if entry is None:
                entry = pending[key] = self.expand(*key)
            keys, finish = entry
            missing = [k for k in keys if k not in memo]
            if missing:
                stack.extend(reversed(missing))
                continue
            made = finish([memo[k] for k in keys])
            if isinstance(made, tuple):
                pending[key] = ((made,), _same)
                continue
            memo[key] = made  # type: ignore[assignment]
            stack.pop()
        return memo[value, index]

    def expand(self, value: Value, index: Index) -> tuple[Sequence[Key], Finish]:
        """What the element needs first, and how to make it from that."""
        slot = self.slots.get(value)
        if slot is not None and not isinstance(slot.place, (Memory, Value)):
            own = slot.place
            return (), lambda _: own
        place = self.place(value)
        if place is not None:
            if isinstance(place, Memory):
                memory = place
                return (), lambda _: self.load(memory, index)
            if isinstance(place, Value):
                return ((place, index),), _same
            scalar = place
            return (), lambda _: self.frame.scalar(scalar)
        op = value.producer
        if op is None:
            raise InternalError(f"lower: the block argument {value.name or value.index} has no place")
        defn = op.defn
        lower = defn.lower
        if lower is not None:
            shape = value.type.shape
            keys = [(o, index if o.type.shape == shape else broadcast_index(index, o.type.shape)) for o in op.operands]
            attrs = op.attrs
            builder = self.builder
            if value.type.dtype.kind == "c" or any(o.type.dtype.kind == "c" for o in op.operands):
                types, on_pairs = [o.type for o in op.operands], defn.pairs
                assert on_pairs is not None, f"{defn.name} of complex numbers is NumPy's"
                return keys, lambda args: on_pairs(builder, types, *args, **attrs)
            return keys, lambda args: lower(builder, *args, **attrs)
        rule = _RULES.get(defn.name)
        if rule is None:
            raise InternalError(f"lower: {defn.name} has no value before its kernel ran")
        return rule(self, op, index)

    def place(self, value: Value) -> Place | None:
        """Where the value lies already; None: it is computed on demand."""
        slot = self.slots.get(value)
        if slot is not None and (self.stage > slot.stage or not isinstance(slot.place, Memory)):
            return slot.place
        place = self.places.get(value)  # what is being stored may be a copy of what lies outside
        return place if place is not None else self.low.places.get(value)

    def load(self, memory: Memory, index: Index) -> Any:
        at = memory.index(index)
        if self.wild:
            sizes = memory.buffer.shape
            at = tuple(self.within(self.dim(d), n) if self._leaves(d) else d for d, n in zip(at, sizes, strict=True))
        buffer, at = simplify_index(memory.buffer, at)
        return self.frame.emit_load(self.frame.buffer(buffer), at)

    def _leaves(self, d: DimLike) -> bool:
        """Whether an index may lie outside, as one of `wild` was shifted or scaled."""
        if isinstance(d, int) or self.wild.isdisjoint(found := symbols(d)):
            return False
        return len(found) > 1 or d != symbol(next(iter(found)))

    def store(self, memory: Memory, index: Index, value: Scalar) -> None:
        value = self.builder.cast(value, memory.buffer.dtype)
        self.frame.body.append(self.store_of(memory, index, value))

    def store_of(self, memory: Memory, index: Index, value: Scalar) -> Store:
        buffer, at = simplify_index(memory.buffer, memory.index(index))
        return store_of(self.frame.buffer(buffer), at, value)

    def dim(self, d: DimLike) -> Operand:
        """The value of a dim as an int64."""
        if isinstance(d, int):
            return Const(d, dtypes.I64)
        var = self.frame.var(dtypes.I64)
        self.frame.body.append(DimValue(var, d))
        self.sizes[var] = d
        return var

    def within(self, value: Operand, size: DimLike) -> DimLike:
        """An index of an axis as a dim. It was checked, but what depends on it may run before the check does: one that
        is out of range becomes 0, so that nothing outside of the array is touched.
        """
        if isinstance(value, Const) and isinstance(size, int) and 0 <= value.value < size:
            return int(value.value)
        b = self.builder
        index = b.cast(value, dtypes.I64)
        inside = b.cmp("lt", b.cast(index, dtypes.U64), b.cast(self.dim(size), dtypes.U64))
        found = self.bind(b.select(inside, index, Const(0, dtypes.I64)))
        if not isinstance(found, int) and not self.low.graph.facts.is_lt(0, size):
            self.wild.update(symbols(found))
            self.low.reads_empty = True
        return found

    def bind(self, value: Operand) -> DimLike:
        """An integer scalar as a dim."""
        if isinstance(value, Const):
            return int(value.value)
        value = self.builder.cast(value, dtypes.I64)
        name = self.frame.index()
        self.frame.body.append(Bind(name, value))
        return symbol(name)


def _same(args: list[Scalar]) -> Scalar:
    return args[0]


# ------------------------------------------------------------------------------------------- elements of movement ops


def _view(e: Evaluator, op: Op, index: Index) -> tuple[Sequence[Key], Finish]:
    return ((op.operands[0], op.attrs["map"].index(index)),), _same


def _copy(e: Evaluator, op: Op, index: Index) -> tuple[Sequence[Key], Finish]:
    return ((op.operands[0], index),), _same


def _reshape(e: Evaluator, op: Op, index: Index) -> tuple[Sequence[Key], Finish]:
    x = op.operands[0]
    place = e.place(x)
    if isinstance(place, Memory):
        flat = reshape_memory(place, x.type.shape, op.result.type.shape)
        if flat is not None:
            return (), lambda _: e.load(flat, index)
    return ((x, reindex(index, op.result.type.shape, x.type.shape)),), _same


def _full(e: Evaluator, op: Op, index: Index) -> tuple[Sequence[Key], Finish]:
    dtype = op.result.type.dtype
    return ((op.operands[0], ()),), lambda args: e.builder.cast(args[0], dtype)


def _iota(e: Evaluator, op: Op, index: Index) -> tuple[Sequence[Key], Finish]:
    start, step = op.operands
    dtype = op.result.type.dtype

    def finish(args: list[Any]) -> Scalar:
        b = e.builder
        if dtype.kind == "c":
            return b.map_parts(_step, b.cast(args[0], dtype), b.cast(args[1], dtype))
        return _step(b.cast(args[0], dtype), b.cast(args[1], dtype))

    def _step(first: Operand, by: Operand) -> Operand:
        b = e.builder
        turn = b.cast(e.dim(index[0]), first.dtype)
        if not (isinstance(by, Const) and by.value == 1):
            turn = b.mul(turn, by)
        zero = isinstance(first, Const) and first.value == 0
        return turn if zero else b.add(first, turn)

    return ((start, ()), (step, ())), finish


def _constant(e: Evaluator, op: Op, index: Index) -> tuple[Sequence[Key], Finish]:
    if op.result.type.ndim == 0:
        const = scalar_constant(op.attrs["value"], op.result.type.dtype)
        return (), lambda _: const
    table = Memory(e.low.table(op))
    return (), lambda _: e.load(table, index)


def _dim(e: Evaluator, op: Op, index: Index) -> tuple[Sequence[Key], Finish]:
    return (), lambda _: e.builder.cast(e.dim(op.attrs["value"]), op.result.type.dtype)


def _take(e: Evaluator, op: Op, index: Index) -> tuple[Sequence[Key], Finish]:
    x, *where = op.operands
    axis, count = op.attrs["axis"], len(where)
    rank = op.result.type.ndim - (x.type.ndim - count)
    at = index[axis : axis + rank]

    def finish(args: list[Operand]) -> Key:
        places = []
        for k, a in enumerate(args):
            known = e.sizes.get(a) if isinstance(a, Var) else None
            size = x.type.shape[axis + k]
            if known is not None and known in at:  # the loop's own index
                extent = op.result.type.shape[axis + at.index(known)]
                if e.low.graph.facts.is_le(extent, size):
                    places.append(known)
                    continue
            places.append(e.within(a, size))
        return x, (*index[:axis], *places, *index[axis + rank :])

    return [(w, broadcast_index(at, w.type.shape)) for w in where], finish


_RULES: dict[str, Callable[[Evaluator, Op, Index], tuple[Sequence[Key], Finish]]] = {
    "view": _view,
    "copy": _copy,
    "reshape": _reshape,
    "full": _full,
    "iota": _iota,
    "constant": _constant,
    "dim": _dim,
    "take": _take,
}


def element_written(op: Op, index: Index) -> Index:
    """Where an op of `WRITES` stores the element of its value at `index`."""
    space, target = target_of(op)
    index = target.index(index)
    shapes = [op.operands[1].type.shape, *(s.shape if isinstance(s, IndexMap) else s for s in space)]
    for step, below, shape in zip(reversed(space), reversed(shapes[:-1]), reversed(shapes[1:]), strict=True):
        index = step.index(index) if isinstance(step, IndexMap) else reindex(index, shape, below)
    return index


def is_virtual(op: Op) -> bool:
    """Whether elements of the op's result can be computed on demand."""
    return op.defn.lower is not None or op.defn.name in _RULES


# --------------------------------------------------------------------------------------------------- what was emitted


def origin_of(ops: Iterable[Op]) -> list[str]:
    """Names of ops with the user's lines."""
    return [f"{o.name} @ {place_text(o.loc)}" if o.loc is not None else o.name for o in ops]


def finish_kernel(
    low: Lowering, group: Evaluator, scalars: Sequence[Value | Scalar], name: str, origin: list[str]
) -> list[Any]:
    """Make a function of what was emitted and call it; the scalars wanted of it, in the entry."""
    frame = group.frame
    wanted = [_scalar_of(group, v) if isinstance(v, Value) else v for v in scalars]
    if not isinstance(frame, KernelFrame):
        return wanted
    inside = [part for s in wanted for part in ((s.real, s.imag) if isinstance(s, Pair) else (s,))]
    rows = [Alloc(frame.buffer(b), "row") for b in low.row_buffers]
    local = {a.buffer.name for a in rows}
    low.row_buffers.clear()
    outside = [outer for outer, inner in frame.buffers.values() if inner.name not in local]
    parameters = [inner for _, inner in frame.buffers.values() if inner.name not in local]
    body = [*rows, *frame.body]
    names = free_symbols(body, parameters, inside)
    function = Function(name, parameters, names, list(frame.scalars.values()), body, inside, origin)
    low.kernels.append(function)
    results = tuple(low.frame.var(o.dtype) for o in inside)
    low.frame.body.append(
        CallKernel(name, tuple(outside), tuple(symbol(s) for s in names), tuple(frame.scalars), results)
    )
    found = iter(results)
    return [Pair(next(found), next(found)) if isinstance(s, Pair) else next(found) for s in wanted]


def _scalar_of(group: Evaluator, value: Value) -> Any:
    slot = group.slots.get(value)
    if slot is not None and not isinstance(slot.place, (Memory, Value)):
        return slot.place
    group.stage += 1
    return group.at(value, ())
