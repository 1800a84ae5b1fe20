"""Fusion: ops become kernels, each one loop nest (or a few over one domain).

One sweep in program order, block by block. An op joins the group that computes its operands if it reads them at its
own index, or, in a group that works row by row, if it reads what a reduction gave for its row. Groups that read one
array over the same domain merge. So a kernel may be a DAG with several results, reductions included, and writes at its
end. What it must not be:
- no value is computed twice: what is read at other elements, or by two kernels, is a result of one; but views, fills,
  sequences and constants, which cost nothing;
- no write in a kernel that reads other elements of the storage it writes;
- no write passes an ordered op, or a read of the version before it;
- no read passes the check that keeps it inside of its array.
Scalars are computed outside of kernels. Layout of groups and the order they run in: `fuse_groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jitgraph.ir.dims import Facts
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.storage import UPDATES, WRITES, Space, target_of
from jitgraph.ir.transform import bound_symbols, has_effects, op_symbols, ops_for_checks
from jitgraph.ir.types import IndexMap, Shape, TensorType
from jitgraph.passes import safety
from jitgraph.passes.fuse_access import (
    Access,
    access,
    captured,
    domain_of,
    elsewhere_of,
    harmless,
    inputs_of,
    is_free,
    is_row_access,
    is_row_shape,
    sources,
    updated_arguments,
)
from jitgraph.passes.fuse_build import build, erase_free
from jitgraph.passes.fuse_groups import (
    MAX_ARRAYS,
    MAX_OPS,
    Group,
    Order,
    may_have_rows,
    op_fits_rows,
    raise_to_end,
    same_memory_order,
    try_merge,
)


def fuse(graph: Graph) -> bool:
    """Gather ops into kernels, in all blocks; True if one was made."""
    changed = False
    bound = safety.names_of(graph)
    for block in reversed(list(graph.blocks())):  # inner ones first: they take copies of free ops from outside
        if block.parent is None or block.parent.name != "kernel":
            changed |= _Fuser(graph, block, bound).run()
    return changed


class _Fuser:
    def __init__(self, graph: Graph, block: Block, bound: Mapping[Value, set[str]]) -> None:
        self.graph = graph
        self.facts: Facts = graph.facts
        self.block = block
        self.order = Order()
        self.groups: list[Group] = []
        #: The group that computes a value of this block.
        self.of: dict[Value, Group] = {}
        #: Groups that read a version of a storage, whole or through views.
        self.readers: dict[Value, list[Group]] = {}
        #: Groups over one domain that read an array from outside, by (array, domain).
        self.siblings: dict[tuple[Value, Shape], Group] = {}
        self.binders: dict[str, Group] = {}
        #: The last check of a symbol: views that rely on it are behind it.
        self.guards: dict[str, Group] = {}
        self.bound = bound
        self.for_checks = ops_for_checks(block)

    def run(self) -> bool:
        fused = False
        for op in self.block.ops():
            if not is_free(op):
                fused |= self.visit(op)
        if not fused:
            return erase_free(self.graph, self.block)
        build(self.block, {g.find(): None for g in self.groups})
        return True

    def visit(self, op: Op) -> bool:
        """Give an op its group; True if that will be a kernel."""
        domain = None if op.defn.has(Trait.OPAQUE) or op in self.for_checks else domain_of(op)
        if domain is None:
            self.alone(op)
            return False
        if op.name in WRITES:
            self.part_overlap(op, domain)
        self.fusable(op, domain)
        return True

    def part_overlap(self, op: Op, domain: Shape) -> None:
        """write(view(x, m1), x, m2) of overlapping elements reads a copy first: x[1:] = x[:-1]."""
        value, base = op.operands
        found = access(value, domain)
        if found.base is not access(base, base.type.shape).base or harmless(found, *target_of(op), self.facts):
            return
        t = TensorType(value.type.dtype, value.type.shape)
        copy = self.block.insert_before(op, Op(REGISTRY["copy"], (value,), (t,), {"order": "C"}, (), op.loc))
        self.visit(copy)
        op.set_operand(0, copy.result)

    # What an op needs.

    def needs(self, op: Op) -> dict[Group, None]:
        """Groups that must run before `op`: of its operands, its symbols, what checks these, and readers before an
        update.
        """
        found: dict[Group, None] = {}
        for value in sources(op):
            g = self.of.get(value)
            if g is not None:
                found[g.find()] = None
        if self.binders or self.guards:
            names, unproven = self.symbols_of(op)
            for known, wanted in ((self.binders, names), (self.guards, unproven)):
                for name in wanted:
                    g = known.get(name)
                    if g is not None:
                        found[g.find()] = None
        for value in self.updated(op):
            for g in self.readers.get(value, ()):
                found[g.find()] = None
        return found

    def symbols_of(self, op: Op) -> tuple[set[str], set[str]]:
        """The symbols in an op and the free ones that it reads through, and those on which views among these rely."""
        names = op_symbols(op)
        unproven: set[str] = set()
        stack = [v.producer for v in op.operands]
        if op.regions:
            stack += [v.producer for v in captured(op)]
        while stack:
            producer = stack.pop()
            if producer is not None and is_free(producer):
                names |= op_symbols(producer)
                if self.guards:
                    unproven |= safety.needs(producer, self.facts)
                stack += [v.producer for v in producer.operands]
        return names, unproven

    def updated(self, op: Op) -> Iterable[Value]:
        """Storages of which `op` makes the next version, as the values it overwrites."""
        at = UPDATES.get(op.defn.name)
        operands: Iterable[Value] = () if at is None else (op.operands[at],)
        if op.name in ("for", "while"):
            operands = op.operands
        elif op.name == "kernel":
            operands = [op.operands[k] for k in updated_arguments(op.regions[0])]
        for value in operands:
            if value.type.kind == "array":
                yield access(value, value.type.shape).base

    def register(self, op: Op, g: Group, needs: Iterable[Group]) -> None:
        """Note that `g` computes `op`, needs these groups, and reads what `op` reads."""
        for need in needs:
            need = need.find()
            if need is not g:
                g.needs.add(need)
                need.needed_by.add(g)
        for r in op.results:
            self.of[r] = g
        for value in sources(op):
            if value.type.ndim:
                self.readers.setdefault(value, []).append(g)

    # Ops that stay alone.

    def alone(self, op: Op) -> None:
        needs = self.needs(op)
        if op.defn.has(Trait.ORDERED) or (op.regions and has_effects(op)):
            self.order.barrier()
        g = Group(self.order.next(), None, [op])
        if op.defn.has(Trait.ORDERED) or (op.regions and has_effects(op)):
            self.order.barrier()
        self.groups.append(g)
        self.register(op, g, needs)
        for name in bound_symbols(op):
            self.binders[name] = g
        if op.name == "check":
            self.guards.update(dict.fromkeys(safety.guarded_by(op.operands[0], self.bound), g))

    # Ops for kernels.

    def fusable(self, op: Op, domain: Shape) -> None:
        needs = self.needs(op)
        reads = [access(v, domain) for v in inputs_of(op)]
        kept_apart: list[Group] = []
        joinable: dict[Group, int] = {}
        for found in reads:
            g = self.of.get(found.base)
            if g is None:
                continue
            g = g.find()
            rows = self.edge(op, domain, g, found)
            if rows is not None:
                joinable[g] = max(joinable.get(g, 0), rows)
            elif g.domain is not None:
                kept_apart.append(g)
        for value in elsewhere_of(op):
            g = self.of.get(access(value, value.type.shape).base)
            if g is not None and g.find().domain is not None:
                kept_apart.append(g.find())
        if op.name in WRITES:
            kept_apart += self.write_hazards(op)
        for g in kept_apart:
            joinable.pop(g, None)
        home = self.join(op, domain, needs, joinable, kept_apart)
        if home is None:
            home = Group(self.order.next(), domain)
            self.groups.append(home)
        self.add(op, domain, home)
        home.apart.update(kept_apart)
        home.apart.update(g for g, rows in joinable.items() if rows and g.find() is not home)
        self.register(op, home, needs)
        self.merge_siblings(home, domain, reads)

    def edge(self, op: Op, domain: Shape, g: Group, found: Access) -> int | None:
        """How `op` may join `g`, whose value it reads: 0 at its element, k > 0 by rows of k axes, None not at all."""
        if g.domain is None or found.opaque:
            return None
        base = found.base
        producer = base.producer
        if producer is None or producer.name in UPDATES or (op.name == "take" and base is op.operands[0]):
            return None
        reduced = producer.defn.has(Trait.REDUCTION)
        if domain == g.domain:
            if found.map is None and not reduced:
                return 0
            rows = self.rows_of(g)
            return rows if rows and is_row_access(found, rows) else None
        rows = self.rows_of(g)
        if not rows or op.name == "take" or op.name in WRITES or op.defn.has(Trait.REDUCTION):
            return None
        return rows if is_row_shape(domain, g.domain, rows) and is_row_access(found, rows) else None

    def rows_of(self, g: Group) -> int:
        """The rows of a group, or those that its reductions (over all trailing axes) would give it; 0 without."""
        if g.rows:
            return g.rows
        if g.axes is None or g.domain is None or not g.axes:
            return 0
        rows = g.axes[0]
        return rows if g.axes == tuple(range(rows, len(g.domain))) else 0

    def write_hazards(self, op: Op) -> list[Group]:
        """Groups that read other elements of what a write overwrites than the one it writes at the same index."""
        base = access(op.operands[1], op.operands[1].type.shape).base
        space, target = target_of(op)
        readers = {g.find() for g in self.readers.get(base, ())}
        return [g for g in readers if g.domain and any(self.reads_elsewhere(o, base, space, target) for o in g.ops)]

    def reads_elsewhere(self, op: Op, base: Value, space: Space, target: IndexMap) -> bool:
        if any(access(v, v.type.shape).base is base for v in elsewhere_of(op)):
            return True
        domain = domain_of(op)
        assert domain is not None
        found = (access(v, domain) for v in inputs_of(op))
        return any(f.base is base and not harmless(f, space, target, self.facts) for f in found)

    def join(
        self, op: Op, domain: Shape, needs: dict[Group, None], joinable: dict[Group, int], kept_apart: list[Group]
    ) -> Group | None:
        """The group that `op` joins, all candidates merged into it as far as can be."""
        home: Group | None = None
        for g in sorted(joinable, key=lambda g: (-len(g.domain or ()), -g.order)):
            if any(a.find() is g for a in kept_apart) or not self.fits(op, g, domain, joinable[g]):
                continue
            if home is None:
                if self.reachable(g, needs):
                    home = g
            else:
                home = try_merge(self.order, home, g) or home
        if home is None or not self.reachable(home, needs):
            return None
        if op.name in WRITES and self.order.epochs[home.order] != self.order.epoch:
            return home if raise_to_end(self.order, home) else None
        return home

    def fits(self, op: Op, g: Group, domain: Shape, rows: int) -> bool:
        assert g.domain is not None
        if len(g.ops) >= MAX_OPS or len(g.arrays) >= MAX_ARRAYS:
            return False
        if op.defn.has(Trait.REDUCTION) and g.axes is not None and g.axes != tuple(op.attrs["axes"]):
            return False
        if op.name in WRITES and g.epoch is not None and g.epoch != self.order.epoch:
            return False
        rows = rows or g.rows
        if not rows:
            return True
        if op.defn.has(Trait.REDUCTION) and tuple(op.attrs["axes"]) != tuple(range(rows, len(domain))):
            return False
        return (g.rows == rows or may_have_rows(g, rows)) and op_fits_rows(op, g.domain, rows)

    def reachable(self, g: Group, needs: dict[Group, None]) -> bool:
        """Can `g` run behind all that the op needs?"""
        if all(need.find() is g or need.find().order < g.order for need in needs):
            return True
        return raise_to_end(self.order, g)

    def add(self, op: Op, domain: Shape, g: Group) -> None:
        g.ops.append(op)
        assert g.domain is not None
        if op.defn.has(Trait.REDUCTION):
            g.axes = tuple(op.attrs["axes"])
        if op.name in WRITES:
            g.epoch = self.order.epoch
        if not g.rows and self.needs_rows(op, g, domain):
            g.rows = self.rows_of(g)
        for value in op.operands:
            base = access(value, value.type.shape).base
            if base.type.ndim and self.of.get(base) is not g:
                g.arrays.add(base)

    def needs_rows(self, op: Op, g: Group, domain: Shape) -> bool:
        """Does `op` read what a reduction of its own group gave?"""
        if domain != g.domain:
            return True
        for v in inputs_of(op):
            found = access(v, domain)
            maker = self.of.get(found.base)
            if maker is None or maker.find() is not g:
                continue
            producer = found.base.producer
            if found.map is not None or (producer is not None and producer.defn.has(Trait.REDUCTION)):
                return True
        return False

    def merge_siblings(self, home: Group, domain: Shape, reads: list[Access]) -> None:
        """Merge with a group over the same domain that reads the same array."""
        if home.domain != domain:
            return
        for found in reads:
            base = found.base
            if base.type.ndim < len(domain):
                continue
            maker = self.of.get(base)
            if maker is not None and maker.find() is home:
                continue
            key = (base, domain)
            other = self.siblings.get(key)
            if other is not None and other.find() is not home.find() and same_memory_order(other.find(), home):
                merged = try_merge(self.order, other.find(), home.find())
                if merged is not None:
                    home = merged
                    self.siblings[key] = home
                    continue
            self.siblings[key] = home
