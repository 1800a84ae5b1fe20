"""Sizes that a guard says are equal become one symbol, so that the passes behind see equal shapes as equal.

Law: under the guard `m == e`, any `m` may be read as `e`. The guards themselves keep both sides: `prepare` tests them.
"""

from __future__ import annotations

from jitgraph.ir.dims import Dim, DimLike, split_linear, substitute, symbols
from jitgraph.ir.graph import Graph
from jitgraph.ir.opdef import Trait
from jitgraph.ir.transform import Substitution


def unify_sizes(graph: Graph) -> bool:
    """Solve each equality guard for its youngest symbol and substitute it in all types, attributes and results."""
    env = _solutions(graph)
    used = {name for a in graph.args for d in a.type.shape for name in symbols(d)} & env.keys()
    if not used:
        return False
    replace = Substitution(env)
    for arg in graph.args:
        arg.type = replace.type(arg.type)
    replace.apply_graph(graph)
    for known in list(graph.facts.nonnegative):
        graph.facts.assume_nonnegative(replace.dim(known))
    _settle_layouts(graph)
    for name in env:
        lower = graph.symbols[name].lower
        if lower is not None:
            graph.facts.assume_nonnegative(env[name] - lower)
    return True


def _settle_layouts(graph: Graph) -> None:
    """A view of what is now seen to be the whole array lies as that array: sums round in the order of memory."""
    for op in graph.walk():
        if op.name != "view" or not op.attrs["map"].is_identity(op.operands[0].type.shape):
            continue
        plain = all(not user.regions and Trait.TERMINATOR not in user.defn.traits for user in op.result.users())
        if plain and op.result.type.kind == "array":
            op.result.type = op.result.type.with_shape(op.result.type.shape, op.operands[0].type.layout)


def _solutions(graph: Graph) -> dict[str, DimLike]:
    """Symbol to what it equals, with no symbol on the left appearing on a right."""
    age = {name: k for k, name in enumerate(graph.symbols)}
    env: dict[str, DimLike] = {}
    #: Symbols to those whose solutions they stand in.
    inside: dict[str, dict[str, None]] = {}
    for guard in graph.guards:
        if guard.relation != "==":
            continue
        difference = substitute(guard.left - guard.right, env)
        if not isinstance(difference, Dim):
            continue
        for name in sorted(symbols(difference), key=lambda s: -age[s]):
            split = split_linear(difference, name)
            if split is None or split[0] not in (1, -1):
                continue
            solution = -split[1] if split[0] == 1 else split[1]
            for known in (name, *inside.pop(name, ())):
                env[known] = substitute(env[known], {name: solution}) if known != name else solution
                for symbol in symbols(env[known]):
                    inside.setdefault(symbol, {})[known] = None
            break
    return env
