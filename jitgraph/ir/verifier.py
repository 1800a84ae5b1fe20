"""Checks a graph. Invariants (the first five are those of `ir.graph`):

1. A value is defined once, before its uses, in its block or one around it.
2. Use lists are exact.
3. The last op of a block, and only the last, is a terminator: `return` in the body, `yield` in regions; a `raise` may
   stand before it.
4. ORDERED ops have an `order` that increases along their block.
5. Each symbol is declared and bound where it is used: by an argument, a loop around, or an earlier op in scope.
6. Operand and result types are what the record's type rule says (layouts of results are the capture's choice).
7. Regions fit their op: arguments, yields, operands and results of `for`, `while`, `cond`, `kernel` agree in type (in
   layout but for axes of size 1).
8. A `kernel` sees nothing but its arguments, and holds no ordered, opaque or control op.
9. A view or write map fits its base: one entry an axis, inside the base as far as can be proven. What accesses
   an element that turns out to be outside stands behind a check that fails, or in a loop without turns.
10. Blocks, ops and values link to one another consistently.
11. Sites exist.
12. `return` agrees with the results recipe: its operands are the fresh results and the last versions of `mutates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jitgraph import dtypes
from jitgraph.errors import JitgraphError, VerifyError
from jitgraph.ir.dims import Dim, DimLike, as_symbol, substitute, symbols
from jitgraph.ir.graph import Block, Graph, Op, Value
from jitgraph.ir.opdef import Trait
from jitgraph.ir.printer import print_with_lines, type_text
from jitgraph.ir.types import IndexMap, TensorType, same_layout

#: Ops whose types and regions are checked here rather than by their record's type rule.
STRUCTURED = frozenset(["for", "while", "cond", "switch", "kernel", "yield", "return", "view", "write", "host_call"])
_SHOWN_LINES = 60


def verify(graph: Graph) -> None:
    """Check all invariants.

    Raises:
        VerifyError: an invariant does not hold; the message is the dump with the line underlined.
    """
    _Verifier(graph).run()


def equal_dims(graph: Graph) -> Callable[[DimLike, DimLike], bool]:
    """A test whether two sizes are equal, given the guards."""
    known: dict[str, DimLike] = {}
    for g in graph.guards:
        if g.relation == "==":
            left, right = substitute(g.left, known), substitute(g.right, known)
            for a, b in ((left, right), (right, left)):
                name = as_symbol(a)
                if name is not None and name not in symbols(b):
                    known = {s: substitute(d, {name: b}) for s, d in known.items()}
                    known[name] = b
                    break

    def equal(a: DimLike, b: DimLike) -> bool:
        if a == b:
            return True
        if not known:
            return False
        return substitute(a, known) == substitute(b, known)

    return equal


class _Verifier:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.same_dim = equal_dims(graph)
        self.visible: set[Value] = set()
        self.uses: dict[Value, int] = {}
        self.bound: set[str] = {s.name for s in graph.symbols.values() if s.origin == "arg"}

    def fail(self, invariant: int, what: str, at: Op | Block | None) -> VerifyError:
        lines, line_of = print_with_lines(self.graph)
        line = line_of.get(at)
        if line is None:
            return VerifyError(f"invariant {invariant}: {what}\n" + "\n".join(lines[:_SHOWN_LINES]))
        shown = lines[line]
        indent = len(shown) - len(shown.lstrip())
        underline = " " * indent + "^" * (len(shown) - indent)
        first, last = max(0, line - _SHOWN_LINES), line + _SHOWN_LINES
        text = [*lines[first : line + 1], underline, *lines[line + 1 : last]]
        return VerifyError(f"invariant {invariant}: {what}\n" + "\n".join(text))

    def run(self) -> None:
        g = self.graph
        self.body(g.body, None)
        for value, count in self.uses.items():
            if len(value.uses) != count:
                at = value.producer or value.block
                raise self.fail(2, f"the use list of %{value.name} has {len(value.uses)} uses, there are {count}", at)

    # Blocks and ops.

    def body(self, block: Block, owner: Op | None) -> None:
        if block.parent is not owner:
            raise self.fail(10, "the region does not link to its op", owner or block)
        added: list[Value] = []
        bound = set(self.bound)
        for i, arg in enumerate(block.args):
            if arg.block is not block or arg.producer is not None or arg.index != i:
                raise self.fail(10, f"block argument {i} does not link to its block", owner or block)
            self.define(arg, owner or block, added)
            self.symbols_bound([*arg.type.shape], owner or block)
        last_order = -1
        previous: Op | None = None
        for op in block.ops():
            if op.block is not block or op.prev is not previous:
                raise self.fail(10, "the op does not link to its block", op)
            previous = op
            last_order = self.op(op, last_order)
            for i, result in enumerate(op.results):
                if result.producer is not op or result.index != i:
                    raise self.fail(10, f"result {i} does not link to its op", op)
                self.define(result, op, added)
        self.terminated(block, owner)
        self.visible.difference_update(added)
        self.bound = bound

    def define(self, value: Value, at: Op | Block, added: list[Value]) -> None:
        if value in self.visible:
            raise self.fail(1, f"%{value.name} is defined twice", at)
        self.visible.add(value)
        added.append(value)
        self.uses.setdefault(value, 0)

    def terminated(self, block: Block, owner: Op | None) -> None:
        last = block.last
        if last is None or not last.defn.has(Trait.TERMINATOR):
            raise self.fail(3, "the block does not end in a terminator", last or owner or block)
        expected = "return" if owner is None else "yield"
        if last.name != expected:
            raise self.fail(3, f"the block ends in {last.name}, not {expected}", last)

    def op(self, op: Op, last_order: int) -> int:
        for i, operand in enumerate(op.operands):
            if operand not in self.visible:
                raise self.fail(1, f"operand {i} of {op.name}, %{operand.name}, is not defined before it", op)
            if (op, i) not in operand.uses:
                raise self.fail(2, f"the use of %{operand.name} as operand {i} is missing in its use list", op)
            self.uses[operand] += 1
        if op.defn.has(Trait.TERMINATOR) and op.next is not None:
            raise self.fail(3, f"{op.name} is not the last op of its block", op)
        if op.defn.has(Trait.ORDERED):
            order = op.attrs.get("order")
            if not isinstance(order, int) or order <= last_order:
                raise self.fail(4, f"order {order} does not follow {last_order}", op)
            last_order = order
        site = op.attrs.get("site")
        if site is not None and not 0 <= site < len(self.graph.sites):
            raise self.fail(11, f"there is no site {site}", op)
        self.symbols_of(op)
        self.types(op)
        for region in op.regions:
            self.region(op, region)
        return last_order

    def region(self, op: Op, region: Block) -> None:
        index = op.attrs.get("index") if op.name == "for" else None
        if isinstance(index, str):
            self.declared(index, op)
            self.bound.add(index)
        if op.name == "kernel":
            outside, self.visible = self.visible, set()
            for inner in region.ops():
                forbidden = {Trait.ORDERED, Trait.OPAQUE, Trait.CONTROL, Trait.MAY_RAISE} & inner.defn.traits
                if forbidden or inner.regions:
                    raise self.fail(8, f"{inner.name} may not stand in a kernel", inner)
            try:
                self.body(region, op)
            except VerifyError as e:
                if "invariant 1:" in str(e) and any(v in outside for inner in region.ops() for v in inner.operands):
                    raise self.fail(8, "the kernel uses a value from outside", op) from None
                raise
            self.visible = outside
        else:
            self.body(region, op)
        if isinstance(index, str):
            self.bound.discard(index)

    # Symbols.

    def declared(self, name: str, op: Op | Block) -> None:
        if name not in self.graph.symbols:
            raise self.fail(5, f"the symbol {name} is not declared", op)

    def symbols_bound(self, dims: Iterable[DimLike], at: Op | Block) -> None:
        for d in dims:
            if isinstance(d, Dim):
                for name in symbols(d):
                    self.declared(name, at)
                    if name not in self.bound:
                        raise self.fail(5, f"the symbol {name} is not bound here", at)

    def symbols_of(self, op: Op) -> None:
        binds = op.attrs.get("symbol")
        for value in op.attrs.values():
            if isinstance(value, Dim):
                self.symbols_bound((value,), op)
            elif isinstance(value, IndexMap):
                self.symbols_bound(value.shape, op)
                self.symbols_bound((d for a in value.axes for d in (a.offset, a.step)), op)
            elif isinstance(value, tuple):
                self.symbols_bound((d for d in value if isinstance(d, Dim)), op)
        names = (binds,) if isinstance(binds, str) else binds or ()
        for name in (*names, *op.attrs.get("binds", ())):
            self.declared(name, op)
            self.bound.add(name)
        for result in op.results:
            self.symbols_bound(result.type.shape, op)

    # Types.

    def same(self, a: TensorType, b: TensorType, layout: bool = True) -> bool:
        if a is b or a == b:
            return True
        return (
            a.dtype == b.dtype
            and a.kind == b.kind
            and a.ndim == b.ndim
            and all(self.same_dim(x, y) for x, y in zip(a.shape, b.shape, strict=True))
            and (not layout or same_layout(a, b))
        )

    def agree(self, op: Op, what: str, values: Sequence[Value], types: Sequence[Value]) -> None:
        if len(values) != len(types):
            raise self.fail(7, f"{op.name}: {len(values)} {what}, {len(types)} expected", op)
        for i, (a, b) in enumerate(zip(values, types, strict=True)):
            if not self.same(a.type, b.type):
                raise self.fail(7, f"{op.name}: {what} {i} is {type_text(a.type)}, not {type_text(b.type)}", op)

    def types(self, op: Op) -> None:
        check = getattr(self, f"_{op.name}", None) if op.name in STRUCTURED else self.inferred
        if check is not None:
            check(op)

    def inferred(self, op: Op) -> None:
        try:
            signature = op.defn.infer([v.type for v in op.operands], op.attrs)
        except (JitgraphError, TypeError, ValueError) as e:
            raise self.fail(6, f"{op.name}: the type rule refuses the operands: {e}", op) from e
        for i, dtype in enumerate(signature.operands):
            if dtype is not None and op.operands[i].type.dtype != dtype:
                raise self.fail(6, f"{op.name}: operand {i} is not cast to {dtype}", op)
        if len(signature.results) != len(op.results):
            raise self.fail(6, f"{op.name}: {len(op.results)} results, {len(signature.results)} expected", op)
        for i, (result, expected) in enumerate(zip(op.results, signature.results, strict=True)):
            if not self.same(result.type, expected, layout=False):
                text = f"{op.name}: result {i} is {type_text(result.type)}, its type rule says {type_text(expected)}"
                raise self.fail(6, text, op)

    def mapped(self, op: Op, base: Value, view: TensorType) -> None:
        m = op.attrs.get("map")
        if not isinstance(m, IndexMap) or len(m.axes) != base.type.ndim:
            raise self.fail(9, f"the map has not one entry for each axis of {type_text(base.type)}", op)
        if view.ndim != len(m.shape) or not all(map(self.same_dim, view.shape, m.shape)):
            raise self.fail(9, f"the map makes {list(m.shape)}, not {type_text(view)}", op)
        facts = self.graph.facts
        for a, size in zip(m.axes, base.type.shape, strict=True):
            if a.axis is not None and not 0 <= a.axis < len(m.shape):
                raise self.fail(9, f"the map names the view axis d{a.axis}", op)
            if any(not facts.is_le(1, d) for d in m.shape):
                continue  # perhaps empty
            if facts.is_le(size, 0) and not isinstance(size, int):
                continue  # never runs
            ends = [a.offset] if a.axis is None else [a.offset, a.offset + a.step * (m.shape[a.axis] - 1)]
            outside = any(
                (facts.is_lt(e, 0) and not facts.is_le(0, e)) or (facts.is_le(size, e) and not facts.is_lt(e, size))
                for e in ends  # what is proven with its contrary never runs
            )
            if outside and not (a.axis is None and _behind_a_check(op)):
                raise self.fail(9, "the map leaves its base", op)

    def _view(self, op: Op) -> None:
        if len(op.operands) != 1 or len(op.results) != 1 or op.result.type.dtype != op.operands[0].type.dtype:
            raise self.fail(6, "a view has one operand and one result of its dtype", op)
        self.mapped(op, op.operands[0], op.result.type)

    def _write(self, op: Op) -> None:
        if len(op.operands) != 2 or len(op.results) != 1:
            raise self.fail(6, "a write has two operands and one result", op)
        value, base = op.operands
        dtype = base.type.dtype if value.type.kind == "array" else dtypes.native(base.type.dtype)
        if value.type.dtype != dtype or not self.same(op.result.type, base.type):
            raise self.fail(6, "a write makes another version of its base, from a value of its dtype", op)
        m = op.attrs.get("map")
        shape = m.shape if isinstance(m, IndexMap) else ()
        shift = len(shape) - value.type.ndim
        fits = shift >= 0 and all(d == 1 or self.same_dim(d, shape[k + shift]) for k, d in enumerate(value.type.shape))
        if not fits:
            raise self.fail(9, f"the value {type_text(value.type)} does not fit the map", op)
        self.mapped(op, base, TensorType(base.type.dtype, shape))

    def regions(self, op: Op, count: int) -> None:
        if len(op.regions) != count:
            raise self.fail(7, f"{op.name} has {len(op.regions)} regions, not {count}", op)
        for region in op.regions:
            if region.last is None or region.last.name != "yield":
                raise self.fail(3, f"a region of {op.name} does not end in yield", region.last or op)

    def _for(self, op: Op) -> None:
        self.regions(op, 1)
        if not isinstance(op.attrs.get("index"), str) or op.attrs.get("step") == 0:
            raise self.fail(7, "a for has an index and a step that is not 0", op)
        self.agree(op, "carried", op.operands, op.results)
        self.agree(op, "region arguments", op.regions[0].args, op.results)
        self.agree(op, "yields", op.regions[0].terminator.operands, op.results)

    def _while(self, op: Op) -> None:
        self.regions(op, 2)
        self.agree(op, "carried", op.operands, op.results)
        test, body = op.regions
        self.agree(op, "region arguments", test.args, op.results)
        self.agree(op, "region arguments", body.args, op.results)
        self.agree(op, "yields", body.terminator.operands, op.results)
        condition = test.terminator.operands
        if len(condition) != 1 or condition[0].type.dtype.kind != "b" or condition[0].type.ndim:
            raise self.fail(7, "the test of a while yields one bool", op)

    def _cond(self, op: Op) -> None:
        self.regions(op, 2)
        if len(op.operands) != 1 or op.operands[0].type.dtype.kind != "b" or op.operands[0].type.ndim:
            raise self.fail(7, "a cond has one bool operand", op)
        self.branches(op)

    def _switch(self, op: Op) -> None:
        cases = op.attrs.get("cases", ())
        self.regions(op, len(cases) + 1)
        if len(op.operands) != 1 or op.operands[0].type.dtype.kind not in "iu" or op.operands[0].type.ndim:
            raise self.fail(7, "a switch has one integer operand", op)
        if not all(type(case) is int for case in cases) or len(set(cases)) != len(cases) or not cases:
            raise self.fail(7, "the cases of a switch are integers that differ", op)
        self.branches(op)

    def branches(self, op: Op) -> None:
        for region in op.regions:
            self.agree(op, "region arguments", region.args, ())
            self.agree(op, "yields", region.terminator.operands, op.results)

    def _kernel(self, op: Op) -> None:
        self.regions(op, 1)
        self.agree(op, "region arguments", op.regions[0].args, op.operands)
        self.agree(op, "yields", op.regions[0].terminator.operands, op.results)

    def _return(self, op: Op) -> None:
        g = self.graph
        mutates = op.attrs.get("mutates", ())
        fresh = len(op.operands) - len(mutates)
        if fresh < 0 or any(not 0 <= a < len(g.args) for a in mutates):
            raise self.fail(12, f"return mutates {list(mutates)} with {len(op.operands)} operands", op)
        for r in g.results:
            limit = {"fresh": fresh, "choice": fresh, "view_of_result": len(g.results)}.get(r.how, len(g.args))
            if r.how not in ("dim", "static") and not 0 <= r.index < limit:
                raise self.fail(12, f"the result {r.how} {r.index} is not there", op)
        for a, version in zip(mutates, op.operands[fresh:], strict=True):
            if not self.same(version.type, g.args[a].type, layout=False):
                raise self.fail(12, f"the last version of argument {a} is {type_text(version.type)}", op)


def _behind_a_check(op: Op) -> bool:
    """Whether something may fail before `op` is reached: in front of it, in its block or one around, loops included."""
    at: Op | None = op
    while at is not None:
        before = at.prev
        while before is not None:
            if any(inner.name in ("check", "raise") for inner in before.walk()):
                return True
            before = before.prev
        at = at.block.parent if at.block is not None else None
    return False
