"""What passes share: the symbols an op uses, substitution of symbols, cloning and inlining."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jitgraph.ir.dims import Dim, DimLike, substitute, symbols
from jitgraph.ir.graph import Block, Graph, Op, Result, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.types import IndexMap, TensorType


def dims_of_attr(value: Any) -> Iterator[Dim]:
    """The symbolic sizes in an attribute."""
    if isinstance(value, Dim):
        yield value
    elif isinstance(value, IndexMap):
        for d in value.shape:
            if isinstance(d, Dim):
                yield d
        for a in value.axes:
            if isinstance(a.offset, Dim):
                yield a.offset
            if isinstance(a.step, Dim):
                yield a.step
    elif isinstance(value, tuple):
        for v in value:
            yield from dims_of_attr(v)


def _dims_of_values(values: Iterable[Value]) -> Iterator[Dim]:
    for value in values:
        for d in value.type.shape:
            if isinstance(d, Dim):
                yield d


def op_symbols(op: Op) -> set[str]:
    """Names of the symbols in attributes and result types of `op`, and of all ops in its regions."""
    found: set[Dim] = set()
    for inner in op.walk() if op.regions else (op,):
        found.update(_dims_of_values(inner.results))
        for value in inner.attrs.values():
            found.update(dims_of_attr(value))
        for region in inner.regions:
            found.update(_dims_of_values(region.args))
    names: set[str] = set()
    for d in found:
        names.update(symbols(d))
    return names


def bound_symbols(op: Op) -> Iterator[str]:
    """Names of the symbols that the op itself binds (not those of its regions), a loop's index included."""
    for key in ("symbol", "index"):
        name = op.attrs.get(key)
        if isinstance(name, str):
            yield name
        elif isinstance(name, tuple):
            yield from name
    yield from op.attrs.get("binds", ())


def ops_for_checks(block: Block) -> set[Op]:
    """The elementwise ops of a block that only guarded checks of arrays use. They stand in no kernel."""
    found: set[Op] = set()
    for op in block.ops_back():
        if not op.defn.has(Trait.ELEMENTWISE) or not op.results[0].type.ndim or not op.results[0].uses:
            continue
        if all(user in found or (user.name == "check" and user.attrs.get("guarded")) for user in op.results[0].users()):
            found.add(op)
    return found


class Substitution:
    """Replaces symbols in types and attributes; unchanged objects stay the same."""

    def __init__(self, env: Mapping[str, DimLike]) -> None:
        self.env = dict(env)
        self.types: dict[int, tuple[TensorType, TensorType]] = {}

    def dim(self, d: DimLike) -> DimLike:
        return substitute(d, self.env)

    def type(self, t: TensorType) -> TensorType:
        known = self.types.get(id(t))
        if known is None:
            made = t
            if any(isinstance(d, Dim) for d in t.shape):
                shape = tuple(substitute(d, self.env) for d in t.shape)
                if shape != t.shape:
                    made = replace(t, shape=shape)
            known = self.types[id(t)] = (t, made)
        return known[1]

    def attr(self, value: Any) -> Any:
        if isinstance(value, Dim):
            return substitute(value, self.env)
        if isinstance(value, IndexMap):
            return value.substitute(self.env)
        if isinstance(value, tuple):
            return tuple(self.attr(v) for v in value)
        return value

    def apply(self, op: Op) -> None:
        """In place, on the op and its regions."""
        for inner in op.walk():
            inner.attrs = {key: self.attr(value) for key, value in inner.attrs.items()}
            for r in inner.results:
                r.type = self.type(r.type)
            for region in inner.regions:
                for a in region.args:
                    a.type = self.type(a.type)

    def apply_graph(self, graph: Graph) -> None:
        """On the body, the results, bounds of symbols and facts; arguments and guards speak of argument sizes only."""
        for op in graph.body.ops():
            self.apply(op)
        graph.results = [self.result(r) for r in graph.results]
        for s in list(graph.symbols.values()):
            lower, upper = self.attr(s.lower), self.attr(s.upper)
            if lower != s.lower or upper != s.upper:
                graph.add_symbol(replace(s, lower=lower, upper=upper))
        for known in list(graph.facts.nonnegative):
            graph.facts.assume_nonnegative(self.dim(known))

    def result(self, r: Result) -> Result:
        return replace(r, dim=self.dim(r.dim), steps=self.attr(r.steps)) if r.how == "dim" or r.steps else r


def clone(op: Op, values: dict[Value, Value]) -> Op:
    """A copy of `op`, in no block; operands are mapped by `values`, which learns the results."""
    regions = [clone_block(region, values) for region in op.regions]
    copy = Op(
        op.defn,
        [values.get(v, v) for v in op.operands],
        [r.type for r in op.results],
        dict(op.attrs),
        regions,
        op.loc,
    )
    for old, new in zip(op.results, copy.results, strict=True):
        new.name = old.name
        values[old] = new
    return copy


def clone_block(block: Block, values: dict[Value, Value]) -> Block:
    made = Block([a.type for a in block.args], [a.name for a in block.args])
    values.update(zip(block.args, made.args, strict=True))
    for op in block.ops():
        made.append(clone(op, values))
    return made


def inline(region: Block, args: Sequence[Value], before: Op) -> list[Value]:
    """Move the ops of `region` in front of `before`, its arguments replaced by `args`; what its `yield` gave.

    The region is left empty.
    """
    for a, value in zip(region.args, args, strict=True):
        a.replace_all_uses_with(value)
    yielded: list[Value] = []
    target = before.block
    assert target is not None
    for op in region.ops():
        region.unlink(op)
        if op.name == "yield":
            yielded = list(op.operands)
            op.set_operands(())
        else:
            target.insert_before(before, op)
    return yielded


def has_effects(op: Op) -> bool:
    """Does the op, or one in its regions, do more than give results (raise, call back, bind a symbol)?"""
    effects = (Trait.ORDERED, Trait.MAY_RAISE)
    return any(any(inner.defn.has(t) for t in effects) for inner in op.walk())
