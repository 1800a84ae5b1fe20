"""Regions and effects at the loop level: loops with what they carry, branches, checks, calls back into Python.

Carried scalars become `Carry`s. A carried array whose yield is a version of what the turn was given stays in its
memory. Otherwise the loop owns memory: the yield is computed into a spare buffer (or lies in that of another carried
array, as in `a, b = b, a`), and buffers are exchanged at the end of the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jitgraph import dtypes
from jitgraph.codegen.loops import (
    Alloc,
    Bind,
    Buffer,
    Carry,
    Check,
    Const,
    For,
    Host,
    If,
    Let,
    Merge,
    Operand,
    Pair,
    Stmt,
    Swap,
    Var,
    While,
)
from jitgraph.codegen.lower_scalar import Scalar, carries, parts
from jitgraph.codegen.lower_targets import propagate_targets
from jitgraph.codegen.lower_views import Memory, as_buffer, strided
from jitgraph.codegen.overwritten import is_overwritten
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Block, Op, Value
from jitgraph.ir.storage import storage_argument, storage_before, storage_root

if TYPE_CHECKING:
    from jitgraph.codegen.lower import Lowering


class _Loop:
    """What a loop carries, and how each turn hands it on."""

    def __init__(self, low: Lowering, op: Op) -> None:
        self.low, self.op = low, op
        self.body = op.regions[-1]
        self.yields = self.body.terminator.operands
        self.scalars: dict[int, tuple[Scalar, Var | Pair]] = {}
        self.arrays: dict[int, Memory] = {}
        #: Carried arrays whose buffers are exchanged, with a spare buffer where the yield is new in each turn.
        self.owned: dict[int, Buffer] = {}
        self.spares: dict[int, Buffer] = {}
        for k, init in enumerate(op.operands):
            if init.type.ndim == 0:
                self.scalars[k] = (low.scalar(init), low.frame.scalar_var(init.type.dtype))
            elif storage_argument(self.yields[k]) is self.body.args[k]:
                if init not in low.places and is_overwritten(op, k):
                    low.places[init] = low.destination(init)
                self.arrays[k] = low.memory(init)
            else:
                self.owned[k] = self._own(init)
                self.arrays[k] = Memory(self.owned[k])
        sources: dict[Value, None] = {}
        for k, buffer in self.owned.items():
            base = storage_argument(self.yields[k])
            exchanged = (
                base is not None and base.block is self.body and base.index in self.owned and base not in sources
            )
            if exchanged and base is not None and self._whole(self.yields[k], base):
                sources[base] = None
                continue
            self.spares[k] = low.temporary(buffer.dtype, buffer.shape, low.orders[buffer.name])
            if base is None and storage_root(self.yields[k]).producer is not None:
                propagate_targets(self.body, {self.yields[k]: self.spares[k]}, low.targets)

    def _whole(self, value: Value, base: Value) -> bool:
        """Whether `value` is all of the storage of `base`, not a view."""
        return value.type.shape == base.type.shape

    def _own(self, init: Value) -> Buffer:
        """Memory of the loop's own with the first value: that of `init` if nobody else needs it."""
        low = self.low
        place = low.places.get(init)
        if (
            isinstance(place, Memory)
            and place.map is None
            and len(init.uses) == 1
            and init.producer is not None
            and init.producer.block is self.op.block
            and storage_root(init) is init
            and init.producer.name not in ("view", "reshape", "cond", "switch", "host_call")
            and any(isinstance(s, Alloc) and s.buffer.name == place.buffer.name for s in low.frame.body)
        ):
            return place.buffer
        t = init.type
        buffer = low.temporary(t.dtype, t.shape, t.layout.order)
        low.copy_into(init, Memory(buffer))
        return buffer

    def bind(self, block: Block) -> None:
        """Arguments of a region stand for what is carried."""
        for k, arg in enumerate(block.args):
            self.low.places[arg] = self.scalars[k][1] if k in self.scalars else self.arrays[k]

    def hand_on(self) -> list[Operand]:
        """At the end of a turn: next values of scalars in order, and buffers brought to their places."""
        low = self.low
        following = [low.scalar(self.yields[k]) for k in self.scalars]
        for k, memory in self.arrays.items():
            if k not in self.owned and not memory.same(low.places.get(self.yields[k])):
                low.copy_into(self.yields[k], memory)
        holder: dict[int, str] = {}
        buffers = {b.name: b for b in (*self.owned.values(), *self.spares.values())}
        for k in self.owned:
            if k in self.spares:
                spare = Memory(self.spares[k])
                if not spare.same(low.places.get(self.yields[k])):
                    low.copy_into(self.yields[k], spare)
                holder[k] = self.spares[k].name
            else:
                place = low.places[self.yields[k]]
                assert isinstance(place, Memory)
                holder[k] = place.buffer.name
        for k, home in self.owned.items():
            source = holder[k]
            if source != home.name:
                low.frame.body.append(Swap(home, buffers[source]))
                for other, name in holder.items():
                    if name == home.name:
                        holder[other] = source
                holder[k] = home.name
        return following

    def finish(self, following: Sequence[Scalar]) -> list[Carry]:
        """Places of the results, and the carried scalars."""
        low = self.low
        carried: list[Carry] = []
        for (k, (init, inner)), end in zip(self.scalars.items(), following, strict=True):
            result = low.frame.scalar_var(inner.dtype)
            carried += carries(inner, init, end, result)
            low.places[self.op.results[k]] = result
        for k, memory in self.arrays.items():
            low.places[self.op.results[k]] = memory
        return carried


def _within(low: Lowering, emit: Callable[[], None]) -> list[Stmt]:
    """The statements that `emit` appends."""
    outer = low.frame.body
    inner: list[Stmt] = []
    low.frame.body = inner
    emit()
    low.frame.body = outer
    return inner


def _for(low: Lowering, op: Op) -> None:
    loop = _Loop(low, op)
    loop.bind(loop.body)
    following: list[Scalar] = []

    def turn() -> None:
        low.block(loop.body)
        following.extend(loop.hand_on())

    body = _within(low, turn)
    attrs = op.attrs
    carried = loop.finish(following)
    if op.loc is not None:
        low.lines[attrs["index"]] = op.loc.line
    low.frame.body.append(For(attrs["index"], attrs["lower"], attrs["upper"], body, attrs["step"], carried=carried))


def _while(low: Lowering, op: Op) -> None:
    loop = _Loop(low, op)
    test = op.regions[0]
    loop.bind(test)
    loop.bind(loop.body)
    condition: list[Operand] = []
    following: list[Scalar] = []

    def tested() -> None:
        low.block(test)
        condition.append(low.scalar(test.terminator.operands[0]))

    def turn() -> None:
        low.block(loop.body)
        following.extend(loop.hand_on())

    test_body = _within(low, tested)
    body = _within(low, turn)
    carried = loop.finish(following)
    low.frame.body.append(While(test_body, condition[0], body, carried))


def _branch(low: Lowering, op: Op) -> None:
    """A branch: arrays that all sides make from one storage stay in it, others go to memory made before."""
    tests = _tests(low, op)
    arrays: dict[int, Memory] = {}
    for k, result in enumerate(op.results):
        if result.type.ndim == 0:
            continue
        values = [r.terminator.operands[k] for r in op.regions]
        roots = [storage_root(v) for v in values]
        if all(root is roots[0] for root in roots) and _is_outside(roots[0], op):
            found_in = [low.places.get(storage_before(v, op)) for v in values]
            memory = next((place for place in found_in if isinstance(place, Memory)), None)
            if memory is None:  # a fill that nobody has stored
                memory = low.places[roots[0]] = low.memory(roots[0])
            arrays[k] = memory
            continue
        arrays[k] = low.destination(result)
        for region, value, root in zip(op.regions, values, roots, strict=True):
            if not _is_outside(root, op) and arrays[k].map is None:
                propagate_targets(region, {value: arrays[k].buffer}, low.targets)
    sides: list[list[Stmt]] = []
    scalars: list[dict[int, Scalar]] = []
    for region in op.regions:
        found: dict[int, Scalar] = {}

        def side(region: Block = region, found: dict[int, Scalar] = found) -> None:
            low.block(region)
            for k, value in enumerate(region.terminator.operands):
                if k not in arrays:
                    found[k] = low.scalar(value)
                elif not arrays[k].same(low.places.get(value)):
                    low.copy_into(value, arrays[k])

        sides.append(_within(low, side))
        scalars.append(found)
    body, found = sides[-1], scalars[-1]
    for test, then, held in reversed(list(zip(tests, sides, scalars, strict=False))):
        merges, results = [], dict[int, Scalar]()
        for k, otherwise in found.items():
            merged = results[k] = low.frame.scalar_var(otherwise.dtype)
            for part, *given in zip(*map(parts, (merged, held[k], otherwise)), strict=True):
                assert isinstance(part, Var)
                merges.append(Merge(part, *given))
        body, found = [If(test, then, body, merges)], results
    low.frame.body += body
    for k, result in enumerate(op.results):
        low.places[result] = arrays[k] if k in arrays else found[k]


def _tests(low: Lowering, op: Op) -> list[Operand]:
    """A condition for each region but the last: one `If` after another, which the emitter makes a jump of."""
    chosen = low.scalar(op.operands[0])
    if op.name == "cond":
        return [chosen]
    tests: list[Operand] = []
    for case in op.attrs["cases"]:
        test = low.frame.var(dtypes.BOOL)
        low.frame.body.append(Let(test, "cmp", (chosen, Const(case, chosen.dtype)), "eq"))
        tests.append(test)
    return tests


def _is_outside(value: Value, op: Op) -> bool:
    """Whether `value` is defined outside the regions of `op`."""
    block = value.producer.block if value.producer is not None else value.block
    while block is not None:
        if block in op.regions:
            return False
        block = block.parent.block if block.parent is not None else None
    return True


def _shown(low: Lowering, values: Sequence[Value]) -> tuple[Operand, ...]:
    """The real scalars that the message of a check shows."""
    return tuple(low.scalar(v) for v in values[:4] if v.type.ndim == 0 and v.type.dtype.kind != "c")


def _check(low: Lowering, op: Op) -> None:
    condition, *values = op.operands
    if condition.type.ndim:
        low.check_array(op)
        return
    low.frame.body.append(Check(low.scalar(condition), op.attrs["site"], _shown(low, values)))


def _raise(low: Lowering, op: Op) -> None:
    values = _shown(low, op.operands)
    low.frame.body.append(Check(Const(False, dtypes.BOOL), op.attrs["site"], values))


def _host_call(low: Lowering, op: Op) -> None:
    inputs: list[Buffer | Scalar] = []
    starts: list[DimLike] = []
    for value in op.operands:
        if value.type.kind != "array":
            inputs.append(low.scalar(value))
            starts.append(0)
            continue
        seen = strided(low.memory(value))  # with its strides: NumPy's bits depend on them
        if seen is None:
            t = value.type
            seen = low.temporary(t.dtype, t.shape, t.layout.order), 0
            low.copy_into(value, Memory(seen[0]))
        inputs.append(seen[0])
        starts.append(seen[1])
    offsets = tuple(starts) if any(d != 0 for d in starts) else ()
    site, sizes = op.attrs["site"], _sizes_of(low, op)
    if sizes:
        counts = tuple(low.frame.var(dtypes.I64) for _ in sizes)
        low.frame.body.append(Host(site, tuple(inputs), counts, tuple(sizes.values()), offsets=offsets))
        low.frame.body.extend(Bind(name, count) for name, count in zip(sizes, counts, strict=True))
    outputs: list[Buffer | Var | Pair] = []
    for result in op.results:
        if result.type.kind != "array":
            var = low.frame.scalar_var(result.type.dtype)
            low.places[result] = var
            outputs.append(var)
        else:
            memory = low.destination(result)
            target = as_buffer(memory)
            if target is None:
                t = result.type
                target = low.temporary(t.dtype, t.shape, t.layout.order)
                memory = Memory(target)
            low.places[result] = memory
            outputs.append(target)
    call = Host(site, tuple(inputs), tuple(outputs), offsets=offsets)
    low.frame.body.append(Host(site, (), tuple(outputs), waiting=True) if sizes else call)


def _sizes_of(low: Lowering, op: Op) -> dict[str, tuple[int, int]]:
    """The symbols that the call itself binds, each by the (result, axis) that it is the size of."""
    found: dict[str, tuple[int, int]] = {}
    for k, result in enumerate(op.results):
        for axis, d in enumerate(result.type.shape):
            name = str(d)
            if not isinstance(d, int) and name in op.attrs.get("binds", ()):
                found.setdefault(name, (k, axis))
    return found


HANDLERS: dict[str, Callable[[Lowering, Op], None]] = {
    "for": _for,
    "while": _while,
    "cond": _branch,
    "switch": _branch,
    "check": _check,
    "raise": _raise,
    "host_call": _host_call,
}
