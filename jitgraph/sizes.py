"""What a trace knows about sizes: compared by proof, by a guard or, where only data tell, by a check in each run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from jitgraph import errors
from jitgraph.ir.builder import Builder, Undecided
from jitgraph.ir.dims import Dim, DimLike, ne1, substitute, symbol, symbols
from jitgraph.ir.graph import Block, Op, Site, Symbol, Value
from jitgraph.ir.opdef import REGISTRY, Trait
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.types import AxisMap, IndexMap, Shape, TensorType
from jitgraph.source import SourceLoc
from jitgraph.storage import Mode, Ratio


class Sizes(ABC):
    """Emits through `builder` what sizes need.

    Attributes:
        order: number of the last ordered op.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.order = 0
        #: How a mask was computed to its number of true elements, and the block in which that is bound.
        self._masks: dict[Any, tuple[DimLike, Block]] = {}
        #: Pairs of sizes to what they broadcast to, once decided for good.
        self._merged: dict[tuple[DimLike, DimLike], DimLike] = {}
        #: (value, shape) to the block and the value with those sizes.
        self._renamed: dict[tuple[int, Shape], tuple[Block, Value, Value]] = {}

    @abstractmethod
    def view(self, value: Any, step: IndexMap) -> Value:
        """A view of a value."""

    @abstractmethod
    def stride(self, argument: int, axis: int) -> Dim | None:
        """The stride (bytes) of an axis of an argument, as a symbol for guards; None if there is no example of it."""

    def conclusions(self) -> tuple[dict[Any, Any], ...]:
        """What was concluded so far and holds as long as the guards and symbols behind it."""
        return dict(self._merged), dict(self._masks)

    def restore_conclusions(self, known: tuple[dict[Any, Any], ...]) -> None:
        """Forget what was concluded since: the guards and symbols behind it are gone."""
        self._merged, self._masks = dict(known[0]), dict(known[1])

    # --- sizes as values and symbols

    def dim_value(self, dim: DimLike | Ratio) -> Value:
        """A size as a value."""
        if isinstance(dim, Ratio):
            return self.builder.apply(REGISTRY["div"], self.dim_value(dim.numerator), self.dim_value(dim.denominator))[
                0
            ]
        if isinstance(dim, int):
            return self.builder.constant(dim)
        return self.builder.apply(REGISTRY["dim"], value=dim)[0]

    def decide(self, relation: str, a: DimLike, b: DimLike) -> bool:
        return self.builder.decide(relation, a, b)

    def fresh_symbol(
        self,
        prefix: str,
        origin: Literal["arg", "index", "value"] = "value",
        lower: DimLike | None = 0,
        upper: DimLike | None = None,
    ) -> Dim:
        """A new symbol of the graph, bound by the op that the caller emits."""
        name = self.builder.graph.unused_name(prefix)
        self.builder.graph.add_symbol(Symbol(name, origin, lower=lower, upper=upper))
        return symbol(name)

    def bind(
        self, value: Value, prefix: str = "i", lower: DimLike | None = None, upper: DimLike | None = None
    ) -> DimLike:
        """The run-time integer `value` (known to lie in the inclusive bounds) as a dim."""
        known = constant_of(value)
        if known is not None:
            return int(known)
        if value.producer is not None and value.producer.name == "dim":
            return value.producer.attrs["value"]  # type: ignore[no-any-return]
        dim = self.fresh_symbol(prefix, "value", lower, upper)
        self.builder.apply(REGISTRY["bind"], value, symbol=str(dim))
        return dim

    def compare(self, op: str, a: DimLike, b: DimLike) -> Value:
        """A comparison of sizes at run time."""
        return self.builder.apply(REGISTRY[op], self.dim_value(a), self.dim_value(b))[0]

    def any_of(self, *conditions: Value) -> Value:
        total = conditions[0]
        for c in conditions[1:]:
            total = self.builder.apply(REGISTRY["logical_or"], total, c)[0]
        return total

    def example(self, d: DimLike) -> DimLike:
        """The size in the call that is traced, for messages; the dim itself where that is not known."""
        known = self.builder.graph.symbols
        hints = {name: hint for name in symbols(d) if (hint := known[name].hint) is not None}
        return substitute(d, hints)

    # --- broadcasting

    def broadcast(self, values: Sequence[Value], what: str) -> list[Value]:
        """The operands with sizes made literally equal (or 1): guards, facts or run-time checks and strides."""
        shape: Shape | None = None
        equal = True
        for v in values:
            s = v.type.shape
            if s and s != shape:
                if shape is not None:
                    equal = False
                    break
                shape = s
        if equal:
            return list(values)
        try:
            result = self.broadcast_shape([v.type.shape for v in values], what)
        except errors.ShapeError as error:
            raise errors.ShapeError(_with_operands(str(error), what, values)) from None
        return [self.stretch(v, result) for v in values]

    def broadcast_shape(self, shapes: Sequence[Shape], what: str, of_indices: str = "") -> Shape:
        """The shape that `shapes` broadcast to.

        Args:
            of_indices: for shapes of index arrays: begins the message of the IndexError if they do not fit.

        Raises:
            ShapeError: they do not, for certain or (under a guard) for the example sizes.
        """
        ndim = max(len(s) for s in shapes)
        result: list[DimLike] = [1] * ndim
        for s in shapes:
            for k, d in enumerate(s, ndim - len(s)):
                have = result[k]
                if d is have or d == have or (isinstance(d, int) and d == 1):
                    continue
                if isinstance(have, int) and have == 1:
                    result[k] = d
                else:
                    merged = self._merged.get((have, d))
                    result[k] = self._reconcile(have, d, shapes, what, of_indices) if merged is None else merged
        return tuple(result)

    def _reconcile(self, a: DimLike, b: DimLike, shapes: Sequence[Shape], what: str, of_indices: str = "") -> DimLike:
        try:
            if self.decide("==", a, b):
                found = b if isinstance(b, int) else a
            elif self.decide("==", a, 1):
                found = b
            elif self.decide("==", b, 1):
                found = a
            else:
                raise errors.ShapeError(self._unbroadcastable(shapes, what))
        except Undecided:
            fits = self.any_of(self.compare("eq", a, b), self.compare("eq", a, 1), self.compare("eq", b, 1))
            if of_indices:
                dims: list[DimLike] = []
                texts = " ".join(_shape_template(s, dims) for s in shapes)
                self.check(fits, "IndexError", f"{of_indices} {texts} ", *dims)
            else:
                self.check(
                    fits, "ShapeError", f"{what}: operands could not be broadcast together: sizes {{0}} and {{1}}", a, b
                )
            if "ne1" not in f"{a} {b}":
                return ne1(a) * a + (1 - ne1(a)) * b
            # of sizes that are chosen themselves: an expression would double with each operator
            sizes = self.dim_value(a), self.dim_value(b)
            (size,) = self.builder.apply(REGISTRY["where"], self.compare("ne", a, 1), *sizes)
            return self.bind(self.builder.apply(REGISTRY["as_kind"], size, kind="py_int")[0], "k", 0)
        self._merged[a, b] = found
        return found

    def repeats_to(self, shape: Shape, target: Shape) -> bool:
        """Whether an array of `shape` can be assigned to one of `target`: its sizes are 1 or equal. May emit checks."""
        for d, e in zip(reversed(shape), reversed(target), strict=False):
            if d == e or (isinstance(d, int) and d == 1):
                continue
            try:
                if not self.decide("==", d, e) and not self.decide("==", d, 1):
                    return False
            except Undecided:
                fits = self.compare("eq", d, e)
                if not isinstance(d, int):
                    fits = self.any_of(fits, self.compare("eq", d, 1))
                self.check(fits, "ShapeError", "could not broadcast input array: size {0} into {1}", d, e)
        return True

    def _unbroadcastable(self, shapes: Sequence[Shape], what: str) -> str:
        texts = [shape_text(tuple(self.example(d) for d in s)) for s in shapes]
        return errors.describe(
            f"{what}: operands could not be broadcast together with shapes {' '.join(texts)}",
            self.locate(),
            remedy="make the sizes equal, or 1 where an axis is to be repeated (x[:, np.newaxis]).",
        )

    def stretch(self, value: Value, shape: Shape) -> Value:
        """`value`, whose axes fit those of `shape` (decided before), with sizes that equal them or are literally 1."""
        own = value.type.shape
        if not own or own == shape:
            return value
        key = (id(value), shape)
        block = self.builder.block
        done = self._renamed.get(key)
        if done is not None and done[0] is block and done[1] is value:
            return done[2]
        made = self._stretch(value, own, shape)
        self._renamed[key] = (block, value, made)
        return made

    def _stretch(self, value: Value, own: Shape, shape: Shape) -> Value:
        shift = len(shape) - len(own)
        if all(d == 1 or d == shape[k + shift] for k, d in enumerate(own)):
            return value
        axes: list[AxisMap] = []
        sizes: list[DimLike] = []
        for k, d in enumerate(own):
            target = shape[k + shift]
            same = True if isinstance(d, int) and d == 1 else self.builder.prove("==", d, target)
            if same:
                axes.append(AxisMap(0, 1, k))
                sizes.append(d if isinstance(d, int) and d == 1 else target)
            elif self.builder.prove("==", d, 1):
                axes.append(AxisMap(0, 0, None))
                sizes.append(1)
            else:
                axes.append(AxisMap(0, ne1(d), k))
                sizes.append(target)
        map = IndexMap(tuple(sizes), tuple(axes))
        if all(m.axis == k and m.step == 1 for k, m in enumerate(axes)):
            return self.renamed(value, map)
        return self.view(value, map)

    def matched(self, value: Value, shape: Shape) -> Value:
        """`value`, whose sizes equal those of `shape` (decided before), with literally these, be they 1 or not."""
        return value if value.type.shape == shape else self.renamed(value, IndexMap.identity(shape))

    def renamed(self, value: Value, map: IndexMap) -> Value:
        """`value` with sizes that are known to be equal to its own: memory order and all stay."""
        t = TensorType(value.type.dtype, map.shape, "array", value.type.layout)
        return self.builder.emit(REGISTRY["view"], [value], [t], {"map": map}).result

    # --- masks

    def count_of_mask(self, mask: Value) -> DimLike | None:
        """The number of true elements of a mask, if one that is computed alike has been counted in scope."""
        known = self._masks.get(_recipe(mask, 6))
        return known[0] if known is not None and _encloses(known[1], self.builder.block) else None

    def note_count(self, mask: Value, count: DimLike) -> None:
        """Note that `count` elements of `mask` are true."""
        key = _recipe(mask, 6)
        known = self._masks.get(key)
        if known is not None:
            self.builder.assume_equal(known[0], count)
        self._masks[key] = count, self.builder.block

    # --- checks

    def next_order(self) -> int:
        """Number for the next op whose place in the program is fixed."""
        self.order += 1
        return self.order

    def check(self, condition: Value, error: str, message: str, *values: Value | DimLike) -> None:
        """Raise `error` with `message` (`{0}` is the first of `values`) at the user's line unless `condition`."""
        operands = [v if isinstance(v, Value) else self.dim_value(v) for v in values]
        graph = self.builder.graph
        site = Site(error, message, self.locate())
        try:
            number = graph.sites.index(site) if len(graph.sites) < 64 else len(graph.sites)
        except ValueError:
            number = len(graph.sites)
        if number == len(graph.sites):
            graph.sites.append(site)
        self.emit_effect("check", [condition, *operands], site=number)

    def emit_effect(self, name: str, operands: Sequence[Value], **attrs: Any) -> Op:
        """An op without results that keeps its place in the program."""
        return self.builder.emit(REGISTRY[name], operands, (), {**attrs, "order": self.next_order()})

    def locate(self) -> SourceLoc | None:
        """The user's place."""
        b = self.builder
        return b.loc if b.locate is None else b.locate()


def is_one(mode: Mode | Sizes, d: DimLike) -> bool:
    """Whether a size is 1, by proof or under a guard; False if only the run knows."""
    try:
        return mode.decide("==", d, 1)
    except Undecided:
        return False


_ELEMENTWISE = Trait.ELEMENTWISE
#: Values that a check can show.
_SHOWN = 4
_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "eq": "==", "ne": "!=",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "bit_and": "&", "bit_or": "|", "bit_xor": "^",
}  # fmt: skip


def _with_operands(text: str, what: str, values: Sequence[Value]) -> str:
    """The message in the user's own operators and names, and the types of the operands."""
    names = [v.name or default for v, default in zip(values, "xyzuvw", strict=False)]
    symbol = _SYMBOLS.get(what)
    shown = f" {symbol} ".join(names) if symbol else f"{what}({', '.join(names)})"
    lines = text.removeprefix(f"{what}: ").split("\n")
    remedy = [lines.pop()] if len(lines) > 1 else []
    facts = [f"  {name}: {v.type}" for name, v in zip(names, values, strict=False)]
    return "\n".join([f"{shown}: {lines[0]}", *lines[1:], *facts, *remedy])


def _encloses(outer: Block, block: Block | None) -> bool:
    """Is `block` the block `outer`, or inside of it?"""
    while block is not None and block is not outer:
        block = block.parent.block if block.parent is not None else None
    return block is outer


def _recipe(value: Value, depth: int) -> Any:
    """Equal for values that are computed alike, by elementwise operators, from the same values."""
    producer = value.producer
    if producer is None or depth == 0:
        return value
    if producer.defn.name == "constant" and not value.type.shape:
        return ("constant", value.type.kind, value.type.dtype, repr(producer.attrs["value"]))
    if _ELEMENTWISE not in producer.defn.traits and producer.defn.name not in ("view", "dim"):
        return value
    attrs = tuple((k, str(v)) for k, v in producer.attrs.items())
    return (producer.defn.name, attrs, *[_recipe(v, depth - 1) for v in producer.operands])


def _shape_template(shape: Shape, dims: list[DimLike]) -> str:
    """A shape for a message of `check`: `({0},4)`; sizes that are not known yet are added to `dims`."""
    parts = []
    for d in shape:
        if isinstance(d, int) or len(dims) == _SHOWN:
            parts.append(str(d))
            continue
        parts.append(f"{{{len(dims)}}}")
        dims.append(d)
    return f"({parts[0]},)" if len(parts) == 1 else f"({','.join(parts)})"


def array_shape_text(shape: Shape) -> str:
    """A shape as NumPy's indexing writes it in its messages: (3,), (2,4)."""
    return f"({shape[0]},)" if len(shape) == 1 else f"({','.join(str(d) for d in shape)})"


def shape_text(shape: Shape) -> str:
    """A shape as NumPy prints it: (3,), (n, 4)."""
    return f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(str(d) for d in shape)})"
