"""Branches on what does not change leave their loop: the branch chooses between two loops that have none."""

from __future__ import annotations

from dataclasses import replace

from jitgraph.ir.dims import Dim, DimLike, substitute, symbol, symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import BRANCHES, REGISTRY
from jitgraph.ir.storage import storage_root
from jitgraph.ir.transform import Substitution, bound_symbols, clone, inline
from jitgraph.passes.invariant_motion import hoist_from

#: Ops of a loop that is doubled, at most, and how many ops a graph may grow by in all.
MAX_LOOP = 100
MAX_GROWTH = 500


def unswitch(graph: Graph) -> bool:
    """for ...: if p: a else: b is if p: for ...: a else: for ...: b, for a p from outside; True if one was changed.

    Inner loops first, as long as loops and the growth are small. A branch that stays (its loop is too long, or makes
    arrays anew; the graph has grown enough) costs little: it is predicted well.
    """
    return _Unswitch(graph).block(graph.body)


class _Unswitch:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.left = MAX_GROWTH

    def block(self, block: Block) -> bool:
        changed = False
        op = block.first
        while op is not None:
            following = op.next
            for region in op.regions:
                changed |= self.block(region)
            changed |= self.split(op)
            op = following
        return changed

    def split(self, op: Op | None) -> bool:
        """Take all branches out of a loop that can be."""
        made = self.loop(op) if op is not None and op.name in ("for", "while") else None
        if made is None:
            return False
        for region in made.regions:
            self.split(region.terminator.prev)
        return True

    def loop(self, op: Op) -> Op | None:
        """The branch that a loop became."""
        branch = next((o for region in op.regions for o in region.ops() if _switches(o, op)), None)
        if branch is None:
            branch = next((o for region in op.regions for o in _inside(region) if _switches(o, op)), None)
        if branch is None:
            return None
        size = sum(1 for _ in op.walk())
        growth = size * (len(branch.regions) - 1)
        if size > MAX_LOOP or growth > self.left or _owns_memory(op):
            return None
        self.left -= growth
        predicate = branch.operands[0]
        loops = [op, *(clone(op, {}) for _ in branch.regions[1:])]
        for twin in loops[1:]:
            rename_symbols(self.graph, twin)
        block = op.block
        assert block is not None
        regions = [Block() for _ in loops]
        made = Op(branch.defn, (predicate,), [r.type for r in op.results], dict(branch.attrs), regions, op.loc)
        block.insert_before(op, made)
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
            old.name = ""
        block.unlink(op)
        for side, (region, loop) in enumerate(zip(regions, loops, strict=True)):
            region.append(loop)
            region.append(Op(REGISTRY["yield"], loop.results, [], {}, (), op.loc))
            for taken in [o for o in loop.walk() if o.operands[:1] == [predicate] and _is_like(o, made)]:
                if taken.block is None:
                    continue  # stood on the other side of one before
                given = inline(taken.regions[side], (), taken)
                for old, new in zip(taken.results, given, strict=True):
                    old.replace_all_uses_with(new)
                self.graph.erase(taken)
            hoist_from(self.graph, loop)
        return made


def _owns_memory(op: Op) -> bool:
    """Does the loop make a carried array anew in each turn? Two loops have twice the memory, and a copy behind them."""
    body = op.regions[-1]
    return any(
        r.type.ndim and storage_root(body.terminator.operands[k]) is not body.args[k] for k, r in enumerate(op.results)
    )


def _inside(region: Block) -> list[Op]:
    """The ops in branches of a region, but those in loops: these may leave their own loop first."""
    found: list[Op] = []
    for op in region.ops():
        if op.name in BRANCHES:
            for side in op.regions:
                found.extend(side.ops())
                found.extend(_inside(side))
    return found


def _switches(op: Op, loop: Op) -> bool:
    return op.name in BRANCHES and not _is_within(op.operands[0], loop)


def _is_like(op: Op, other: Op) -> bool:
    """Whether two branches on the same value go the same ways."""
    return op.name == other.name and op.attrs.get("cases") == other.attrs.get("cases")


def _is_within(value: Value, loop: Op) -> bool:
    block = value.producer.block if value.producer is not None else value.block
    while block is not None:
        if block in loop.regions:
            return True
        block = block.parent.block if block.parent is not None else None
    return False


def rename_symbols(graph: Graph, op: Op) -> None:
    """New names for the symbols that an op and its regions bind: they may turn out to be other sizes in its twin."""
    names = [name for inner in op.walk() for name in bound_symbols(inner)]
    if not names:
        return
    env: dict[str, DimLike] = {}
    new: dict[str, str] = {}
    for name in names:
        new[name] = graph.unused_name(f"{name}_", 1)
        env[name] = symbol(new[name])
        graph.symbols[new[name]] = replace(graph.symbols[name], name=new[name])
    for name in names:
        known = graph.symbols[new[name]]
        bounds = [b if b is None else substitute(b, env) for b in (known.lower, known.upper)]
        graph.add_symbol(replace(known, lower=bounds[0], upper=bounds[1]))
        for side in (graph.facts.lower, graph.facts.upper):
            if name in side:
                side[new[name]] = substitute(side[name], env)
    for fact in list(graph.facts.nonnegative):
        if isinstance(fact, Dim) and any(name in env for name in symbols(fact)):
            graph.facts.assume_nonnegative(substitute(fact, env))
    Substitution(env).apply(op)
    for inner in op.walk():
        for key in ("symbol", "index"):
            bound = inner.attrs.get(key)
            if isinstance(bound, str):
                inner.attrs[key] = new[bound]
            elif isinstance(bound, tuple):
                inner.attrs[key] = tuple(new[b] for b in bound)
        if "binds" in inner.attrs:
            inner.attrs["binds"] = tuple(new[b] for b in inner.attrs["binds"])
