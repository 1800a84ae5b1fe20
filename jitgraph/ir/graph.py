"""The SSA graph: values, operations, blocks (the one block of a region) and graphs.

Invariants, checked by `ir.verifier`:
1. A value is defined once, by one op result or one block argument, before its uses; a region sees the values of the
   blocks around it.
2. Use lists are exact: `(op, i)` is in `value.uses` exactly when `op.operands[i] is value`.
3. The last op of a block, and only the last, has the trait TERMINATOR.
4. Ops with the trait ORDERED (checks, raises, effectful calls, writes to arguments) stand in the order of the program;
   `order` numbers them at capture and increases along each block.
5. Each symbol in a type, map or attribute is bound by an argument, an enclosing loop or an earlier op of the scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from jitgraph.ir.dims import DimLike, Facts, evaluate
from jitgraph.ir.types import TensorType
from jitgraph.records import dataclass, field
from jitgraph.source import SourceLoc

if TYPE_CHECKING:
    from jitgraph.ir.opdef import OpDef


@dataclass(slots=True, eq=False)
class Value:
    """One SSA value. `producer` is None for a block argument, whose block is then `block`."""

    type: TensorType
    name: str = ""
    producer: Op | None = None
    index: int = 0
    block: Block | None = None
    uses: dict[tuple[Op, int], None] = field(default_factory=dict)

    def replace_all_uses_with(self, other: Value) -> None:
        """Every operand that is this value becomes `other`."""
        for op, i in list(self.uses):
            op.set_operand(i, other)
        if self.name and not other.name:
            other.name = self.name

    def users(self) -> Iterator[Op]:
        """The ops that use this value, each as often as it uses it."""
        return (op for op, _ in self.uses)


class Op:
    """One operation in a block. Change operands and place only through the methods, which keep use lists right."""

    __slots__ = ("attrs", "block", "defn", "loc", "next", "operands", "prev", "regions", "results")

    def __init__(
        self,
        defn: OpDef,
        operands: Iterable[Value],
        result_types: Iterable[TensorType],
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
        loc: SourceLoc | None = None,
    ) -> None:
        self.defn = defn
        self.operands: list[Value] = list(operands)
        self.attrs: dict[str, Any] = attrs or {}
        self.regions: list[Block] = list(regions)
        self.loc = loc
        self.block: Block | None = None
        self.prev: Op | None = None
        self.next: Op | None = None
        self.results: list[Value] = [Value(t, "", self, i) for i, t in enumerate(result_types)]
        for i, operand in enumerate(self.operands):
            operand.uses[(self, i)] = None
        for region in self.regions:
            region.parent = self

    @property
    def name(self) -> str:
        return self.defn.name

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def set_operand(self, i: int, value: Value) -> None:
        del self.operands[i].uses[(self, i)]
        self.operands[i] = value
        value.uses[(self, i)] = None

    def set_operands(self, values: Iterable[Value]) -> None:
        for i, operand in enumerate(self.operands):
            del operand.uses[(self, i)]
        self.operands = list(values)
        for i, operand in enumerate(self.operands):
            operand.uses[(self, i)] = None

    def walk(self) -> Iterator[Op]:
        """This op and all ops in its regions, in program order."""
        yield self
        for region in self.regions:
            for op in region.ops():
                yield from op.walk()

    def __repr__(self) -> str:
        return f"<{self.name} -> {', '.join(str(r.type) for r in self.results)}>"


class Block:
    """A list of ops with arguments: a graph's body or the one block of a region."""

    __slots__ = ("args", "first", "last", "parent")

    def __init__(self, arg_types: Iterable[TensorType] = (), names: Iterable[str] = ()) -> None:
        self.args: list[Value] = []
        self.first: Op | None = None
        self.last: Op | None = None
        self.parent: Op | None = None
        names = list(names)
        for i, t in enumerate(arg_types):
            self.add_arg(t, names[i] if i < len(names) else "")

    def add_arg(self, t: TensorType, name: str = "") -> Value:
        value = Value(t, name, None, len(self.args), self)
        self.args.append(value)
        return value

    def ops(self) -> Iterator[Op]:
        """The ops in order; the one just yielded may be erased or moved."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    def ops_back(self) -> Iterator[Op]:
        op = self.last
        while op is not None:
            following = op.prev
            yield op
            op = following

    @property
    def terminator(self) -> Op:
        assert self.last is not None, "block without a terminator"
        return self.last

    def append(self, op: Op) -> Op:
        return self.insert_after(self.last, op)

    def insert_after(self, at: Op | None, op: Op) -> Op:
        """Put `op` behind `at`; at the front if `at` is None."""
        op.block = self
        op.prev = at
        op.next = self.first if at is None else at.next
        if op.prev is None:
            self.first = op
        else:
            op.prev.next = op
        if op.next is None:
            self.last = op
        else:
            op.next.prev = op
        return op

    def insert_before(self, at: Op, op: Op) -> Op:
        return self.insert_after(at.prev, op)

    def unlink(self, op: Op) -> None:
        """Take `op` out of the block; its operands and uses stay."""
        if op.prev is None:
            self.first = op.next
        else:
            op.prev.next = op.next
        if op.next is None:
            self.last = op.prev
        else:
            op.next.prev = op.prev
        op.block = op.prev = op.next = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """A run-time integer of the graph.

    Attributes:
        origin: "arg" (the size of an axis of an argument), "index" (of an enclosing loop) or "value" (bound by an op).
        arg, axis: for "arg", whose size it is; axis -1 - k is the stride of axis k in bytes (see `ir.layouts.extent`).
        lower, upper: inclusive bounds that hold always.
        not_one: an argument's size of 1 is part of the specialisation key, so this is not 1.
        hint: an example value, used where capture has to choose under a guard.
    """

    name: str
    origin: Literal["arg", "index", "value"]
    arg: int = -1
    axis: int = -1
    lower: DimLike | None = 0
    upper: DimLike | None = None
    not_one: bool = False
    hint: int | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """A relation of argument sizes under which the graph is valid; evaluated before anything runs."""

    relation: Literal["==", "!=", ">=", "<"]
    left: DimLike
    right: DimLike
    loc: SourceLoc | None = field(default=None, compare=False)

    def holds(self, env: Mapping[str, int]) -> bool:
        """Whether the relation holds for these sizes."""
        left, right = evaluate(self.left, env), evaluate(self.right, env)
        if self.relation in ("==", "!="):
            return (left == right) == (self.relation == "==")
        return (left < right) == (self.relation == "<")

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


@dataclass(frozen=True, slots=True)
class Site:
    """What to raise when a check fails; `values` of the message are filled in from the check's operands.

    Attributes:
        error: name of the exception class (builtin or of `jitgraph.errors`); "deoptimise" reruns the call in Python.
        message: a format string; `{0}` is the first value operand of the check.
        call: the Python function behind a `host_call`, or the `errors.Recipe` of an exception of the user's.
    """

    error: str
    message: str
    loc: SourceLoc | None = None
    call: Any = field(default=None, compare=False)


class Graph:
    """A function in SSA form: arguments, body, symbols, guards and the sites that its checks name."""

    __slots__ = (
        "_known_guards", "_numbers", "body", "facts", "fast_math", "guards", "hidden", "loop_casts", "name", "results",
        "sites", "symbols",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.body = Block()
        self.symbols: dict[str, Symbol] = {}
        self.guards: list[Guard] = []
        self._known_guards: set[Guard] = set()
        #: The number to try next for symbols whose names begin alike.
        self._numbers: dict[str, int] = {}
        self.sites: list[Site] = []
        self.facts = Facts()
        #: Names of hidden arguments (globals, closure cells, attributes): the last ones of `args`.
        self.hidden: list[str] = []
        #: How each result leaf is returned: see `Result`.
        self.results: list[Result] = []
        self.fast_math: frozenset[str] = frozenset()
        #: The casts that operators asked for, not the program: NumPy has them in its loops. Known of captured graphs.
        self.loop_casts: set[Op] = set()

    @property
    def args(self) -> list[Value]:
        return self.body.args

    def add_symbol(self, s: Symbol) -> None:
        self.symbols[s.name] = s
        self.facts.bound(s.name, s.lower, s.upper)

    def unused_name(self, prefix: str, first: int = 0) -> str:
        """`prefix` and a number, from `first` on, that no symbol is named; no number is tried twice."""
        number = self._numbers.get(prefix, first)
        while f"{prefix}{number}" in self.symbols:
            number += 1
        self._numbers[prefix] = number + 1
        return f"{prefix}{number}"

    def add_guard(self, guard: Guard) -> None:
        """Record a guard and what follows from it."""
        if guard not in self._guards():
            self.guards.append(guard)
            self._known_guards.add(guard)
            if guard.relation == ">=":
                self.facts.assume_nonnegative(guard.left - guard.right)
            elif guard.relation == "<":
                self.facts.assume_nonnegative(guard.right - guard.left - 1)

    def _guards(self) -> set[Guard]:
        """The guards as a set, which is made anew if some were taken back meanwhile."""
        if len(self._known_guards) != len(self.guards):
            self._known_guards = set(self.guards)
        return self._known_guards

    def walk(self) -> Iterator[Op]:
        """All ops in program order, those in regions after the op that holds them."""
        for op in self.body.ops():
            yield from op.walk()

    def blocks(self) -> Iterator[Block]:
        """All blocks, outer ones first."""
        yield self.body
        for op in self.walk():
            yield from op.regions

    def walk_back(self) -> Iterator[Op]:
        """All ops, users before producers: a block from its end, regions before the op that holds them."""
        yield from _walk_back(self.body)

    def is_used(self, value: Value) -> bool:
        return bool(value.uses)

    def erase(self, op: Op) -> None:
        """Remove an op whose results nobody uses, with its regions."""
        assert not any(r.uses for r in op.results), f"{op} is still used"
        block = op.block
        for inner in op.walk():
            for i, operand in enumerate(inner.operands):
                operand.uses.pop((inner, i), None)
            inner.block = None
        if block is not None:
            block.unlink(op)

    def clone(self) -> Graph:
        """A copy that shares types, attributes and locations but no value, op or block."""
        other = Graph(self.name)
        other.symbols, other.guards, other.sites = dict(self.symbols), list(self.guards), list(self.sites)
        other.facts, other.hidden, other.results = self.facts.copy(), list(self.hidden), list(self.results)
        other.fast_math = self.fast_math
        copy_block(self.body, other.body, {})
        return other

    def replace(self, op: Op, values: Sequence[Value]) -> None:
        """Replace the results of `op` by `values` (same types) and erase it; names are handed on."""
        for old, new in zip(op.results, values, strict=True):
            old.replace_all_uses_with(new)
        self.erase(op)

    def __str__(self) -> str:
        from jitgraph.ir.printer import print_graph  # the printer stands on this module

        return print_graph(self)


def copy_block(source: Block, target: Block, values: dict[Value, Value]) -> None:
    """Append copies of the arguments and ops of `source` to `target`.

    Args:
        values: what stands for values from outside `source` (missing: the value itself); copies are added to it.
    """
    for arg in source.args:
        values[arg] = target.add_arg(arg.type, arg.name)
    for op in source.ops():
        regions = [Block() for _ in op.regions]
        copy = Op(op.defn, [values.get(v, v) for v in op.operands], [], dict(op.attrs), regions, op.loc)
        for r in op.results:
            value = Value(r.type, r.name, copy, r.index)
            copy.results.append(value)
            values[r] = value
        target.append(copy)
        for inner, region in zip(op.regions, regions, strict=True):
            copy_block(inner, region, values)


def _walk_back(block: Block) -> Iterator[Op]:
    for op in block.ops_back():
        for region in reversed(op.regions):
            yield from _walk_back(region)
        yield op


@dataclass(frozen=True, slots=True)
class Result:
    """How one leaf of the user's result is made.

    Attributes:
        how: "fresh" (operand `index` of `return`), "argument" (argument `index` itself), "view_of_argument",
            "view_of_result" (of the result leaf `index`), "dim" (a Python int from sizes), "static" (a constant),
            "choice" (the first of the two result leaves `steps` if operand `index` of `return`, a bool, holds, else the
            second).
        index: see `how`.
        steps: for a view: the chain of `IndexMap`s and reshapes (a tuple of sizes) that makes it.
        dim: for "dim".
        value: for "static".
        tensor: wrap in `Tensor` rather than `ndarray`.
        read_only: a view that must not be written.
    """

    how: Literal["fresh", "argument", "view_of_argument", "view_of_result", "dim", "static", "choice"]
    index: int = -1
    steps: tuple[Any, ...] = ()
    dim: DimLike = 0
    value: Any = None
    tensor: bool = False
    read_only: bool = False
