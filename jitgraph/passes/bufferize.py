"""Make every update safe in place: afterwards all versions of a storage may share memory.

One walk in program order (one-shot analysis). An update may overwrite its base unless the old elements are needed:
by a reader behind it, by the next turn of a loop around it, or by reads in the same kernel of other elements than
the one written. Then, from cheap to dear: the value is stored before it is written (`x[1:] = x[:-1]`), or the base
is copied. The memory of arguments that the graph does not write, and of constants, is never written. What the caller
can see is written when the program says so, as an error may follow: not the argument is copied, but what is read later.

A `copy` made here has an attr `reason`: why, with the line of the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from jitgraph.ir.dims import Facts
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import BRANCHES, REGISTRY, Trait
from jitgraph.ir.storage import UPDATES, WRITES, Space, disjoint, extended, storage_root, target_of
from jitgraph.ir.types import IndexMap
from jitgraph.passes.fuse_access import is_free
from jitgraph.records import dataclass

#: Steps (a reshape first) and a map then: how an operand is seen.
_Path: TypeAlias = tuple[Space, IndexMap]
#: Ops whose result, if it has axes, may be the memory of its operand seen in another way.
_ALIASES = frozenset(["view", "reshape"])


def bufferize(graph: Graph) -> bool:
    """Insert copies where an update cannot be in place; True if one was inserted or a kernel was split."""
    return _Bufferize(graph).run()


@dataclass(frozen=True, slots=True)
class _Seen:
    """A value as a view of the version `of`: `map` of what that is seen as through `space`."""

    of: Value
    map: IndexMap
    space: Space = ()

    def through(self, steps: Space, map: IndexMap) -> _Seen:
        """What is seen of it through further steps (a reshape first), and a map then."""
        if not steps:
            return _Seen(self.of, self.map.then(map), self.space)
        return _Seen(self.of, map, extended(self.space, self.map, self.of.type.shape, steps))

    def same_or_disjoint(self, other: _Seen, facts: Facts) -> bool:
        """Whether both are the same elements at the same index, or have none in common."""
        if self.of.type.shape != other.of.type.shape or self.space != other.space:
            return False
        return self.map == other.map or disjoint(self.map, other.map, facts)


class _Bufferize:
    """State of the walk.

    Attributes:
        root: for each array, the value at which its storage begins.
        current: for each storage, the values that hold its latest content (a version and the views of it).
        written: storages that some update overwrites.
        seen: arrays that are views of others.
        views: those put behind the kernel at hand, which the walk has not met.
        number: position of each op in the program.
        visible: the versions of arguments' storages that the caller sees.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changed = False
        self.root: dict[Value, Value] = {}
        self.current: dict[Value, list[Value]] = {}
        self.written: set[Value] = set()
        self.seen: dict[Value, _Seen] = {}
        self.views: list[Op] = []
        self.number: dict[Op, float] = {}
        self.mutates = tuple(graph.body.terminator.attrs.get("mutates", ()))
        self.visible = _visible(
            graph.body.terminator.operands[len(graph.body.terminator.operands) - len(self.mutates) :]
        )

    def run(self) -> bool:
        count = 0.0
        for op in self.graph.walk():
            count += 4
            self.number[op] = count
        for arg in self.graph.args:
            self._begin(arg)
        self._block(self.graph.body)
        return self.changed

    # ------------------------------------------------------------------------------------------------------- storages

    def _begin(self, value: Value) -> None:
        self.root[value] = value
        self.current[value] = [value]

    def _join(self, value: Value, root: Value) -> None:
        """`value` has the latest content of the storage."""
        self.root[value] = root
        self.current[root].append(value)

    def _next_version(self, value: Value, root: Value) -> None:
        """`value` is what an update in place leaves in the storage."""
        self.root[value] = root
        self.written.add(root)
        if _block_of(root) is _block_of(value):
            self.current[root] = [value]
        else:  # in a branch: the other side begins with the old content
            self.current[root].append(value)

    # ------------------------------------------------------------------------------------------------------- the walk

    def _block(self, block: Block) -> None:
        for op in block.ops():
            self._op(op)

    def _op(self, op: Op) -> None:
        name = op.name
        if name in UPDATES:
            self._update(op)
        elif name == "kernel":
            self._kernel(op)
            while self.views:  # the later one stands in front
                self._op(self.views.pop())
        elif name in ("for", "while"):
            self._loop(op)
        elif name in BRANCHES:
            self._cond(op)
        elif name == "return":
            self._return(op)
        elif name in _ALIASES and op.result.type.ndim:
            x = op.operands[0]
            self._join(op.result, self.root[x])
            shape = op.result.type.shape
            steps, m = ((), op.attrs["map"]) if name == "view" else ((shape,), IndexMap.identity(shape))
            self.seen[op.result] = self._view(x).through(steps, m)
        else:
            for result in op.results:
                self._begin(result)

    def _view(self, value: Value) -> _Seen:
        return self.seen.get(value) or _Seen(value, IndexMap.identity(value.type.shape))

    def _update(self, op: Op) -> None:
        at = UPDATES[op.name]
        self._free(op, at, op.result)
        root = self.root[op.operands[at]]
        for i, value in enumerate(op.operands):
            if i == at or self.root.get(value) is not root or value.type.ndim == 0:
                continue
            written = self._view(op.operands[at]).through(*target_of(op)) if op.name in WRITES else None
            if written is None or not self._view(value).same_or_disjoint(written, self.graph.facts):
                self._copy(op, i, f"what is written overlaps what is read{_at(op)}")
        self._next_version(op.result, self.root[op.operands[at]])

    def _conflict(self, op: Op, base: Value, at: int) -> str | None:
        """Why `op` may not overwrite the storage of its operand `base`; None if it may."""
        root = self.root[base]
        if root.producer is None and root.block is self.graph.body and root.index not in self.mutates:
            return f"the argument {root.name or root.index} is not written by the function"
        if root.producer is not None and root.producer.name == "constant":
            return "constants are read-only"
        loop = _loop_between(op, root)
        if loop is not None:
            return f"each turn of the loop starts from the same array{_at(loop)}"
        return next((reason for *_, reason in self._needing(op, at)), None)

    def _needing(self, op: Op, at: int) -> Iterator[tuple[Value, Op, int, str]]:
        """The uses of what the storage of operand `at` holds that come when `op` has overwritten it, and why."""
        here = self.number[op]
        for value in self.current[self.root[op.operands[at]]]:
            for user, i in value.uses:
                if user is op:
                    if op.regions and op.name != "kernel" and i != at:
                        yield value, user, i, f"the loop carries it twice{_at(op)}"
                elif self.number.get(user, 0) > here and not _exclusive(user, op):
                    yield value, user, i, f"its old elements are read by {user.name}{_at(user)}"

    def _free(self, op: Op, at: int, result: Value) -> None:
        """Make `op` able to overwrite the storage of its operand `at`, the next version of which is `result`."""
        reason = self._conflict(op, op.operands[at], at)
        if reason is not None and not self._copy_readers(op, at, (result,)):
            self._copy(op, at, reason)

    def _copy_readers(self, op: Op, at: int, results: Sequence[Value]) -> bool:
        """If `op` writes what the caller sees, copy for those who read the old elements; True if that was all."""
        if not any(r in self.visible for r in results):
            return False
        copies: dict[Value, Value] = {}
        for value, user, i, reason in list(self._needing(op, at)):
            if value not in copies:
                copies[value] = self._insert_copy(_ancestor(op, _block_of(value)), value, reason)
            user.set_operand(i, copies[value])
        return self._conflict(op, op.operands[at], at) is None

    def _copy(self, op: Op, i: int, reason: str) -> Value:
        """Make operand `i` of `op` a copy."""
        old = op.operands[i]
        copied = self._insert_copy(op, old, reason)
        op.set_operand(i, copied)
        return copied

    def _insert_copy(self, before: Op, value: Value, reason: str) -> Value:
        """A copy of a version has its type, layout included, as later versions do; its memory is dense all the same."""
        copy = Op(
            REGISTRY["copy"],
            (value,),
            (value.type,),
            {"order": "K", "reason": reason},
            (),
            before.loc,
        )
        assert before.block is not None
        before.block.insert_before(before, copy)
        copy.result.name = value.name
        self.number[copy] = self.number[before] - 1
        self._begin(copy.result)
        self.changed = True
        return copy.result

    # -------------------------------------------------------------------------------------------------------- kernels

    def _kernel(self, op: Op) -> None:
        op = self._read_where_written(op)
        region = op.regions[0]
        updates = [o for o in region.ops() if o.name in UPDATES]
        bases: dict[Value, Op] = {}
        for o in updates:
            base = storage_root(o.operands[UPDATES[o.name]])
            if base.block is region:
                bases.setdefault(base, o)
        for arg in bases:
            reason = self._conflict(op, op.operands[arg.index], arg.index)
            if reason is not None and not self._copy_readers(op, arg.index, op.results):
                self._copy_base(op, arg, reason)
        for o in updates:
            base = storage_root(o.operands[UPDATES[o.name]])
            if base.block is region and not self._safe_inside(op, o, base):
                self._take_out(op, o)
                return
        for result, value in zip(op.results, region.terminator.operands, strict=True):
            base = storage_root(value)
            if base.block is not region:
                self._begin(result)
            elif base is value:
                self._join(result, self.root[op.operands[base.index]])
            else:
                self._next_version(result, self.root[op.operands[base.index]])

    def _read_where_written(self, op: Op) -> Op:
        """A result that the kernel also writes is not stored twice: it is read there, unless overwritten before."""
        values = op.regions[0].terminator.operands
        kept = list(range(len(values)))
        for k, written in enumerate(values):
            write = written.producer
            if write is None or write.name != "write" or write.operands[0] not in values:
                continue
            j = values.index(write.operands[0])
            value, target = values[j], write.attrs["map"]
            if j not in kept or value.type.shape != target.shape or value.type.dtype != written.type.dtype:
                continue
            readers = [self._position(user, op) for user in _readers(op.results[j])]
            known = [r for r in readers if r is not None]
            if len(known) < len(readers) or not self._unwritten_until(op, k, max(known, default=0.0)):
                continue
            kept.remove(j)
            view = Op(REGISTRY["view"], (op.results[k],), (value.type,), {"map": target}, (), op.loc)
            assert op.block is not None
            op.block.insert_after(op, view)
            self.number[view] = self.number[op] + 1
            self.views.append(view)
            op.results[j].replace_all_uses_with(view.result)
        return op if len(kept) == len(values) else self._with_results(op, kept)

    def _position(self, user: Op, op: Op) -> float | None:
        """The last moment at which `user`, somewhere behind `op`, reads; None if that is unknown or in another turn."""
        if user.name in ("yield", "return"):
            return None
        while user.block is not op.block:
            if user.block is None or user.block.parent is None:
                return None
            user = user.block.parent
        return self.number[user] if not user.regions or user.name == "kernel" else None

    def _unwritten_until(self, op: Op, k: int, last: float) -> bool:
        """Whether the storage of a result of `op` is not overwritten before the position `last`, nor there."""
        stack = [op.results[k]]
        while stack:
            for user, i in stack.pop().uses:
                if user.name in _ALIASES:
                    stack.append(user.result)
                elif user.name == "kernel":
                    if self.number[user] <= last and _overwrites(user.regions[0], user.regions[0].args[i]):
                        return False
                elif (user.regions or UPDATES.get(user.name) == i) and self.number[user] <= last:
                    return False
        return True

    def _with_results(self, op: Op, kept: list[int]) -> Op:
        """`op` without the results that nobody uses any more."""
        end = op.regions[0].terminator
        end.set_operands([end.operands[k] for k in kept])
        regions, op.regions = op.regions, []
        smaller = Op(op.defn, list(op.operands), [op.results[k].type for k in kept], op.attrs, regions, op.loc)
        assert op.block is not None
        op.block.insert_before(op, smaller)
        self.number[smaller] = self.number[op]
        for new, k in zip(smaller.results, kept, strict=True):
            op.results[k].replace_all_uses_with(new)
            new.name = new.name or op.results[k].name
        self.graph.erase(op)
        self.changed = True
        return smaller

    def _copy_base(self, op: Op, arg: Value, reason: str) -> None:
        """Give the updates of a kernel a copy to write into; reads of the old elements stay."""
        copied = self._insert_copy(op, op.operands[arg.index], reason)
        region = op.regions[0]
        fresh = region.add_arg(copied.type, arg.name)
        i = len(op.operands)
        op.operands.append(copied)
        copied.uses[(op, i)] = None
        for user, k in list(arg.uses):
            if user.name in UPDATES and k == UPDATES[user.name]:
                user.set_operand(k, fresh)

    def _safe_inside(self, op: Op, update: Op, base: Value) -> bool:
        """Whether reads of the base's storage in the kernel meet the old elements.

        All of them have to be in the computation of the value written, or of what the same nest stores beside it, at
        the element that is written then, or under a reduction that is complete before the first write.
        """
        if update.name not in WRITES:
            return True
        region = op.regions[0]
        outside = op.operands[base.index]
        anchor = self._view(outside)
        old: dict[Value, _Seen] = {}
        latest = update.operands[1]
        if latest is base:
            root = self.root[outside]
            for arg, operand in zip(region.args, op.operands, strict=True):
                if self.root.get(operand) is root and operand.type.ndim:
                    old[arg] = self._view(operand)
        else:
            old[latest] = anchor
        target = anchor.through(*target_of(update))
        rows = op.attrs.get("rows", 0)
        beside = [] if rows else _stored_beside(update, region)
        return _Cone(old, target, self.graph.facts, rows).covers(update, beside, region)

    def _take_out(self, op: Op, update: Op) -> None:
        """The value of `update` is stored first and written behind the kernel; else the kernel is dissolved."""
        region = op.regions[0]
        end = region.terminator
        users = list(update.result.uses)
        base = update.operands[1]
        block = op.block
        assert block is not None
        if base.block is region and all(user is end for user, _ in users) and len(users) == 1:
            ((_, k),) = users
            value = update.operands[0]
            types = [r.type for r in op.results]
            types[k] = value.type.with_shape(value.type.shape, value.type.layout)
            end.set_operand(k, value)
            self.graph.erase(update)
            operands, regions = list(op.operands), op.regions
            kernel = Op(op.defn, operands, types, op.attrs, regions, op.loc)
            block.insert_before(op, kernel)
            write = Op(
                update.defn,
                (kernel.results[k], operands[base.index]),
                (op.results[k].type,),
                update.attrs,
                (),
                update.loc,
            )
            block.insert_before(op, write)
            for i, (old, new) in enumerate(zip(op.results, kernel.results, strict=True)):
                old.replace_all_uses_with(write.result if i == k else new)
            if op.results[k].name:
                write.result.name = op.results[k].name
            op.regions = []
            self.number[kernel], self.number[write] = self.number[op], self.number[op] + 1
            self.graph.erase(op)
            self.changed = True
            self._kernel(kernel)
            self._update(write)
            return
        for arg, operand in zip(region.args, op.operands, strict=True):
            arg.replace_all_uses_with(operand)
        moved = [o for o in region.ops() if o is not end]
        for result, value in zip(op.results, list(end.operands), strict=True):
            result.replace_all_uses_with(value)
        end.set_operands(())
        at = self.number[op]
        for n, o in enumerate(moved):
            region.unlink(o)
            block.insert_before(op, o)
            self.number[o] = at + n / (len(moved) + 1)
        op.regions = []
        self.graph.erase(op)
        self.changed = True
        for o in moved:
            self._op(o)

    # -------------------------------------------------------------------------------------------------------- regions

    def _loop(self, op: Op) -> None:
        for region in op.regions:
            for arg in region.args:
                self._begin(arg)
            self._block(region)
        body = op.regions[-1]
        for k, (result, value) in enumerate(zip(op.results, body.terminator.operands, strict=True)):
            if result.type.ndim == 0 or storage_root(value) is not body.args[k]:
                self._begin(result)
            elif body.args[k] not in self.written:
                self._join(result, self.root[op.operands[k]])
            else:
                self._free(op, k, result)
                self._next_version(result, self.root[op.operands[k]])

    def _cond(self, op: Op) -> None:
        for region in op.regions:
            self._block(region)
        for k, result in enumerate(op.results):
            values = [r.terminator.operands[k] for r in op.regions]
            roots = [storage_root(v) for v in values]
            apart = any(root is not roots[0] for root in roots)
            if result.type.ndim == 0 or apart or _block_of(roots[0]) in op.regions:
                self._begin(result)
            elif all(value is values[0] for value in values):
                self._join(result, self.root[roots[0]])
            else:
                self._next_version(result, self.root[roots[0]])

    def _return(self, op: Op) -> None:
        """Results that have to be fresh are no memory of arguments and not the same memory twice."""
        given: dict[Value, None] = {}
        for k, value in enumerate(op.operands[: len(op.operands) - len(self.mutates)]):
            if value.type.kind != "array":
                continue
            root = self.root[value]
            if root.producer is None and root.block is self.graph.body:
                self._copy(op, k, f"a fresh result would be the memory of the argument {root.name or root.index}")
            elif root in given:
                self._copy(op, k, "two fresh results would be the same memory")
            given[root] = None


class _Cone:
    """The computation of the value of a `write`, inside a kernel: does it read the old elements in a safe way?"""

    def __init__(self, old: Mapping[Value, _Seen], target: _Seen, facts: Facts, rows: int) -> None:
        self.old, self.target, self.facts, self.rows = old, target, facts, rows

    def covers(self, update: Op, beside: Sequence[Value], region: Block) -> bool:
        """Whether all reads of old elements are in the value of `update`, or in those that are stored `beside` it,
        each at the element that is written then.
        """
        depends: set[Value] = set(self.old)
        visible = set(self.old)  # those computed where they are read, so that they read when they are used
        for op in region.ops():
            if op is not update and any(o in depends for o in op.operands):
                depends.update(op.results)
                if not op.defn.has(Trait.REDUCTION) and any(o in visible for o in op.operands):
                    visible.update(op.results)
        met: set[Op] = set()
        domain = target_of(update)[1].shape
        stack: list[tuple[Value, _Path | None, bool]] = [
            (v, ((), IndexMap.broadcast(v.type.shape, domain)), False) for v in (update.operands[0], *beside)
        ]
        done: set[tuple[Value, _Path | None, bool]] = set()
        while stack:
            item = stack.pop()
            value, at, reduced = item
            if item in done or value not in depends:
                continue
            done.add(item)
            if value in self.old:
                if not self._allowed(value, at, reduced):
                    return False
                continue
            producer = value.producer
            assert producer is not None
            met.add(producer)
            stack.extend((o, *self._step(producer, o, at, reduced)) for o in producer.operands)
        return all(
            op is update
            or op in met
            or (beside and (op is region.terminator or op.name in WRITES))
            or not any(o in visible and not _is_base(op, k) for k, o in enumerate(op.operands))
            for op in region.ops()
        )

    def _step(self, op: Op, operand: Value, at: _Path | None, reduced: bool) -> tuple[_Path | None, bool]:
        """How the elements of an operand relate to those of the result."""
        if op.defn.has(Trait.REDUCTION):
            return ((), IndexMap.identity(operand.type.shape)), True
        if at is None:
            return None, reduced
        steps, m = at
        shape = op.result.type.shape if op.results else ()
        if op.name == "reshape":
            return (None if steps and not isinstance(steps[0], IndexMap) else ((shape, *steps), m)), reduced
        if op.defn.lower is None and op.name not in ("copy", "view"):
            return None, reduced
        whole = op.attrs["map"] if op.name == "view" else IndexMap.broadcast(operand.type.shape, shape)
        if not steps:
            return ((), whole.then(m)), reduced
        return ((steps if whole.is_identity(operand.type.shape) else (whole, *steps)), m), reduced

    def _allowed(self, value: Value, at: _Path | None, reduced: bool) -> bool:
        if reduced and not self.rows:
            return True
        if at is None:
            return False
        read = self.old[value].through(*at)
        if not reduced:
            return read.same_or_disjoint(self.target, self.facts)
        if read.space or self.target.space:
            return False
        return all(
            any(p == q and p.axis == row for p, q in zip(read.map.axes, self.target.map.axes, strict=True))
            for row in range(self.rows)
        )


def _stored_beside(update: Op, region: Block) -> list[Value]:
    """What a kernel stores beside `update` in one nest, if it has no other: all is computed before any is stored."""
    domain = target_of(update)[1].shape
    end = region.terminator
    found: list[Value] = []
    for op in region.ops():
        if op.name in WRITES:
            alone = op.operands[1].block is region and all(user is end for user in op.result.users())
            if not alone or target_of(op)[1].shape != domain:
                return []
            if op is not update:
                found.append(op.operands[0])
        elif op is not end and not (op.defn.lower is not None or op.name in ("copy", "take") or is_free(op)):
            return []
    for value in end.operands:
        producer = value.producer
        if producer is None or producer.name not in WRITES:
            if producer is None or value.type.shape != domain:
                return []
            found.append(value)
    return found


def _readers(value: Value) -> Iterator[Op]:
    """The ops that use an array, or what may be the same memory seen in another way."""
    stack = [value]
    while stack:
        for user in stack.pop().users():
            yield user
            if user.name in _ALIASES:
                stack.append(user.result)


def _overwrites(region: Block, arg: Value) -> bool:
    """Whether a kernel updates the storage of its argument."""
    return any(o.name in UPDATES and storage_root(o.operands[UPDATES[o.name]]) is arg for o in region.ops())


def _is_base(op: Op, k: int) -> bool:
    return UPDATES.get(op.name) == k


def _visible(ends: Sequence[Value]) -> set[Value]:
    """The last versions of some storages, and those before them, in regions too."""
    found: set[Value] = set()
    stack = list(ends)
    while stack:
        value = stack.pop()
        op = value.producer
        if value in found:
            continue
        found.add(value)
        if op is None:
            continue
        if op.name in UPDATES:
            stack.append(op.operands[UPDATES[op.name]])
        elif op.name == "kernel":
            base = storage_root(op.regions[0].terminator.operands[value.index])
            if base.block is op.regions[0]:
                stack.append(op.operands[base.index])
        elif op.name in ("for", "while"):
            stack += (op.operands[value.index], op.regions[-1].terminator.operands[value.index])
        elif op.name in BRANCHES:
            stack.extend(r.terminator.operands[value.index] for r in op.regions)
    return found


def _ancestor(op: Op, block: Block | None) -> Op:
    """The op of a block that is `op` or stands around it."""
    while op.block is not block:
        assert op.block is not None
        assert op.block.parent is not None
        op = op.block.parent
    return op


def _block_of(value: Value) -> Block | None:
    return value.producer.block if value.producer is not None else value.block


def _loop_between(op: Op, root: Value) -> Op | None:
    """The outermost loop around `op` that the storage begins outside of."""
    home, block, found = _block_of(root), op.block, None
    while block is not None and block is not home:
        parent = block.parent
        if parent is None:
            break
        if parent.name in ("for", "while"):
            found = parent
        block = parent.block
    return found


def _exclusive(a: Op, b: Op) -> bool:
    """Whether the two stand on different sides of a branch."""
    sides = {parent: block for parent, block in _around(a) if parent.name in BRANCHES}
    return any(sides.get(parent, block) is not block for parent, block in _around(b))


def _around(op: Op) -> Iterator[tuple[Op, Block]]:
    """The ops around `op`, each with the region of it that holds `op`."""
    block = op.block
    while block is not None and block.parent is not None:
        yield block.parent, block
        block = block.parent.block


def _at(op: Op) -> str:
    return f" at {op.loc}" if op.loc is not None else ""
