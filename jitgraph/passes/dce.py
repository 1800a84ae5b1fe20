"""Dead code: pure ops without a live user, symbols nobody mentions, and what regions carry or yield for nobody."""

from __future__ import annotations

from jitgraph.ir.dims import symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import BRANCHES, Trait
from jitgraph.ir.rewrite import constant_number
from jitgraph.ir.transform import bound_symbols, dims_of_attr


def dce(graph: Graph) -> bool:
    """Erase what has no effect and is not used by what has; True if something was erased.

    Marks from the effects and the return, through operands, regions and symbols; then sweeps. So a loop that carries a
    value only for itself loses it.
    """
    live = _Liveness(graph)
    return _sweep(graph, graph.body, live)


class _Liveness:
    def __init__(self, graph: Graph) -> None:
        self.ops: set[Op] = set()
        self.values: set[Value] = set()
        self.symbols: set[str] = set()
        self.binders: dict[str, list[Op]] = {}
        self.work: list[Value] = []
        roots = []
        for op in graph.walk():
            for name in bound_symbols(op):
                self.binders.setdefault(name, []).append(op)
            if _is_root(op):
                roots.append(op)
        for d in (d for r in graph.results for d in dims_of_attr((r.dim, *r.steps))):
            self.mention(symbols(d))
        for op in roots:
            self.mark(op)
        while self.work:
            self.follow(self.work.pop())

    def value(self, v: Value) -> None:
        if v not in self.values:
            self.values.add(v)
            self.work.append(v)

    def mention(self, names: dict[str, None]) -> None:
        for name in names:
            if name not in self.symbols:
                self.symbols.add(name)
                for op in self.binders.get(name, ()):
                    if op.name not in ("for", "while"):
                        self.mark(op)

    def types(self, values: list[Value]) -> None:
        for v in values:
            for d in v.type.shape:
                if not isinstance(d, int):
                    self.mention(symbols(d))

    def mark(self, op: Op) -> None:
        """The op itself must run: its attributes and, if it is no region op, its operands are live."""
        if op in self.ops:
            return
        self.ops.add(op)
        for attr in op.attrs.values():
            for d in dims_of_attr(attr):
                self.mention(symbols(d))
        self.types(op.results)
        parent = op.block.parent if op.block is not None else None
        if parent is not None:
            self.mark(parent)
        if op.name == "yield":
            return
        if op.name == "while":
            self.value(op.regions[0].terminator.operands[0])
        if op.name in ("for", "while", "kernel"):
            return
        for v in op.operands:
            self.value(v)

    def follow(self, v: Value) -> None:
        """What a live value needs."""
        self.types([v])
        op = v.producer
        if op is None:
            assert v.block is not None
            owner = v.block.parent
            if owner is not None:
                self.mark(owner)
                self.carried(owner, v.index)
            return
        self.mark(op)
        if op.name in ("for", "while"):
            self.carried(op, v.index)
        elif op.regions:
            for region in op.regions:
                self.value(region.terminator.operands[v.index])

    def carried(self, op: Op, i: int) -> None:
        self.value(op.operands[i])
        if op.name == "kernel":
            return
        for region in op.regions:
            self.value(region.args[i])
        self.value(op.regions[-1].terminator.operands[i])
        self.value(op.results[i])


def _is_root(op: Op) -> bool:
    traits = op.defn.traits
    if op.regions:
        return op.name == "while"  # perhaps endless; other region ops live by what is in them
    if op.name == "check":
        return not constant_number(op.operands[0])  # one that surely holds is no effect
    if traits & _EFFECTS:
        return True
    return not traits & _ERASABLE and op.name != "yield"


_EFFECTS = frozenset([Trait.ORDERED, Trait.MAY_RAISE])
_ERASABLE = frozenset([Trait.PURE, Trait.BINDS])


def _sweep(graph: Graph, block: Block, live: _Liveness) -> bool:
    changed = False
    for op in block.ops_back():
        if op.name in ("yield", "return"):
            continue
        if op not in live.ops:
            graph.erase(op)
            changed = True
            continue
        if op.regions:
            changed |= _prune(op, live)
            for region in op.regions:
                changed |= _sweep(graph, region, live)
    return changed


def _prune(op: Op, live: _Liveness) -> bool:
    """Drop dead results, and for loops and kernels the operands and arguments that go with them."""
    loop = op.name in ("for", "while")
    results = [i for i, r in enumerate(op.results) if r in live.values]
    changed = len(results) < len(op.results)
    if changed:
        for region in op.regions[1:] if op.name == "while" else op.regions:
            yielded = region.terminator.operands
            region.terminator.set_operands([yielded[i] for i in results])
        op.results = [op.results[i] for i in results]
        for i, r in enumerate(op.results):
            r.index = i
    args = results if loop else [i for i, a in enumerate(op.regions[0].args) if a in live.values]
    if op.name in BRANCHES or len(args) == len(op.operands):
        return changed
    for region in op.regions:
        region.args = [region.args[i] for i in args]  # what still uses the others is dead: the sweep inside drops it
        for i, a in enumerate(region.args):
            a.index = i
    op.set_operands([op.operands[i] for i in args])
    return True
