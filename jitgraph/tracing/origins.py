"""Which array from outside a region an array of it stands for, as numbers that branches and loops carry.

A Python name refers to an array; a region carries values. Where a name may be a view of an array from outside, a
number travels beside the value: 0 if it is something new, else which of a list of forms (`Origins.forms`); further
numbers are what only the region knows of that view: where it lies, how long it is. Behind the region a `Choice` of them
says what the name is, and the recipe of a result follows it. A name that is a view of one form throughout is that view,
with the numbers of the last turn, and its value is not carried at all.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any

from jitgraph.ir.dims import DimLike, substitute, symbol, symbols
from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.transform import dims_of_attr
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.records import dataclass, field
from jitgraph.tensor import READ_ONLY, Storage, Tensor, is_writable, make, view_of
from jitgraph.tracing.choices import Choice

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode


def moved(x: Tensor, numbers: dict[str, DimLike]) -> Tensor:
    """The same view with other numbers for symbols."""
    if not numbers or all(name not in numbers for d in dims_of_attr(x._steps) for name in symbols(d)):
        return x
    steps = tuple(
        step.substitute(numbers) if isinstance(step, IndexMap)
        else tuple(substitute(d, numbers) for d in step) if isinstance(step, tuple) else step
        for step in x._steps
    )  # fmt: skip
    made = make(x._storage, steps)
    if not is_writable(x):
        made._dim = READ_ONLY
    return made


@dataclass(frozen=True, slots=True)
class Form:
    """Views of one storage that differ in numbers only: where they lie, how long they are.

    Attributes:
        view: a view with the symbols `_0`, `_1`, ... for these numbers; it has no type.
        sizes: for each number whether it is a size.
    """

    view: Tensor
    sizes: tuple[bool, ...]

    @property
    def width(self) -> int:
        return len(self.sizes)

    def filled(self, numbers: Sequence[DimLike]) -> Tensor:
        """The view with these numbers."""
        return moved(self.view, {f"_{k}": d for k, d in enumerate(numbers)})


class _Pairing:
    """Walks the steps of two views side by side; a number is where they differ, or where the region's symbols are."""

    def __init__(self, mode: CaptureMode, inner: set[str]) -> None:
        self.mode = mode
        self.inner = inner
        self.sizes: list[bool] = []
        self.numbers: tuple[list[DimLike], list[DimLike]] = ([], [])

    def dim(self, a: DimLike, b: DimLike, *, size: bool) -> DimLike:
        known = a == b or self.mode.builder.prove("==", a, b) is True
        if known and self.inner.isdisjoint(symbols(a)):
            return a
        for numbers, d in zip(self.numbers, (a, b), strict=True):
            numbers.append(d)
        self.sizes.append(size)
        return symbol(f"_{len(self.sizes) - 1}")

    def step(self, a: Any, b: Any) -> Any:
        """The common step; None if there is none."""
        if isinstance(a, IndexMap) and isinstance(b, IndexMap):
            pairs = list(zip(a.axes, b.axes, strict=False))
            fits = len(a.axes) == len(b.axes) and len(a.shape) == len(b.shape)
            if not fits or not all(self._run_alike(m, n) for m, n in pairs):
                return None
            shape = tuple([self.dim(x, y, size=True) for x, y in zip(a.shape, b.shape, strict=True)])
            axes = [AxisMap(self.dim(m.offset, n.offset, size=False), m.step, m.axis) for m, n in pairs]
            return IndexMap(shape, tuple(axes))
        if type(a) is tuple and type(b) is tuple:
            if len(a) != len(b):
                return None
            return tuple([self.dim(x, y, size=True) for x, y in zip(a, b, strict=True)])
        return a if type(a) is type(b) and a == b else None

    def _run_alike(self, m: AxisMap, n: AxisMap) -> bool:
        """Whether two indices move with the same axis at the same pace, outside of the region, too."""
        return m.axis == n.axis and (m.axis is None or (m.step == n.step and self.inner.isdisjoint(symbols(m.step))))


def form_of(
    mode: CaptureMode, a: Tensor, b: Tensor, inner: set[str]
) -> tuple[Form, list[DimLike], list[DimLike]] | None:
    """The form that two views have in common, and the numbers of each; None if there is none.

    Args:
        inner: symbols of a region: what depends on them is a number.
    """
    if a._storage is not b._storage or len(a._steps) != len(b._steps) or is_writable(a) != is_writable(b):
        return None
    pairing = _Pairing(mode, inner)
    steps = tuple([pairing.step(x, y) for x, y in zip(a._steps, b._steps, strict=True)])
    if any(step is None for step in steps):
        return None
    view = make(a._storage, steps)
    view._dim = a._dim
    return Form(view, tuple(pairing.sizes)), *pairing.numbers


def choice_of(mode: CaptureMode, x: Any) -> Choice | None:
    """What a traced array is one of, if it is the copy of a merge that nothing has been written to."""
    if type(x) is not Tensor:
        return None
    choice = mode.choices.get(x._storage)
    return choice if choice is not None and choice.merged is x._storage.value else None


def _numbers(x: Tensor) -> set[str]:
    """The symbols that stand for numbers in the view of a form."""
    return {n for d in dims_of_attr(x._steps) for n in symbols(d) if n.startswith("_") and n[1:].isdigit()}


def through(x: Tensor, view: Tensor) -> Tensor:
    """The array `x`, seen as `view` sees its own storage."""
    for step in view._steps:
        x = view_of(x, step) if isinstance(step, IndexMap) else make(x._storage, (*x._steps, step))
    if not is_writable(view):
        x = make(x._storage, x._steps)
        x._dim = READ_ONLY
    return x


@dataclass(slots=True)
class Found:
    """What an array at the end of a region may be.

    Attributes:
        views: of arrays from outside.
        heads: the storages of what the region began with.
        moved: views of these.
        new: something that the region made.
    """

    views: list[Tensor] = field(default_factory=list)
    heads: list[Storage] = field(default_factory=list)
    moved: list[Tensor] = field(default_factory=list)
    new: bool = False


def look(mode: CaptureMode, x: Any, is_outer: Callable[[Storage], bool], heads: Container[Storage] = ()) -> Found:
    """All that `x` may be."""
    found = Found()

    def visit(x: Tensor) -> None:
        choice = choice_of(mode, x)
        if is_outer(x._storage):
            found.views.append(x)
        elif x._storage in heads:
            found.heads.append(x._storage)
            if x._steps:
                found.moved.append(x)
        elif choice is None:
            found.new = True
        else:
            for option in choice.options:
                if option is None:
                    found.new = True
                else:
                    visit(through(option, x))

    if type(x) is Tensor and x.is_traced and x._storage.value is not None and x.type.kind == "array":
        visit(x)
    return found


@dataclass(slots=True)
class Origins:
    """What one array that a region carries or yields may be.

    Attributes:
        arguments: the block arguments that say which it is at the start of a turn.
        alone: the array is always of the only form, so that its value is not carried.
        inside: a leaf (name, number) that is the array made in the turn which the only form is a view of.
    """

    forms: list[Form] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    alone: bool = False
    inside: tuple[str, int] | None = None

    def add(self, mode: CaptureMode, views: Sequence[Tensor], inner: set[str]) -> bool:
        """Make room for some views; whether there was none."""
        new = False
        for x in views:
            for k, form in enumerate(self.forms):
                joined = form_of(mode, form.view, x, {*inner, *(f"_{j}" for j in range(form.width))})
                if joined is not None:
                    new = new or joined[0].width != form.width
                    self.forms[k] = joined[0]
                    break
            else:
                made = form_of(mode, x, x, inner | _numbers(x))
                assert made is not None, "a view has a form in common with itself unless its steps are the turn's"
                self.forms.append(made[0])
                new = True
        return new

    def find(self, mode: CaptureMode, x: Tensor) -> tuple[int, list[DimLike]] | None:
        """The number of the form that an array from outside has, and its numbers; None if it has another."""
        for k, form in enumerate(self.forms):
            joined = form_of(mode, form.view, x, {f"_{j}" for j in range(form.width)})
            if joined is not None and joined[0].width == form.width:
                return k, joined[2]
        return None

    @property
    def width(self) -> int:
        """How many numbers are carried."""
        return 1 + max((form.width for form in self.forms), default=0)

    @property
    def storages(self) -> list[Storage]:
        return [form.view._storage for form in self.forms]

    def codes(self, mode: CaptureMode, x: Any, is_outer: Callable[[Storage], bool]) -> list[Value]:
        """The numbers of `x`, emitted at the builder's place: the form, counted from 1, and those of the form."""
        nothing: list[Any] = [0] * self.width

        def visit(x: Any) -> list[Any]:
            if type(x) is not Tensor:
                return nothing
            if is_outer(x._storage):  # one that a turn made unusable is still the array it was
                known = self.find(mode, x)
                if known is None:
                    return nothing
                more = [d if type(d) is int else mode.dim_value(d) for d in known[1]]
                return [known[0] + 1, *more, *nothing[len(more) + 1 :]]
            choice = choice_of(mode, x)
            if choice is None:
                return nothing
            first, second = (visit(None if o is None else through(o, x)) for o in choice.options)
            return [
                a if type(a) is int and type(b) is int and a == b else selected(mode, choice.flag, a, b)
                for a, b in zip(first, second, strict=True)
            ]

        return [mode.builder.constant(n) if type(n) is int else n for n in visit(x)]

    def choose(self, mode: CaptureMode, made: Tensor, codes: Sequence[Value]) -> None:
        """From here on the array `made` is known to be what the numbers say."""
        merged = made._storage.value
        rest: Tensor | None = None
        for k in reversed(range(len(self.forms))):
            storage = made._storage if k == 0 else Storage(mode, merged)
            flag = mode.builder.apply(REGISTRY["eq"], codes[0], k + 1)[0]
            if flag.type.kind != "py_bool":
                flag = mode.builder.apply(REGISTRY["as_kind"], flag, kind="py_bool")[0]
            mode.choices[storage] = Choice(flag, (self.view(mode, k, codes), rest), merged)
            rest = make(storage, ())

    def view(self, mode: CaptureMode, k: int, codes: Sequence[Value]) -> Tensor:
        """The view of form `k` with the numbers that the region leaves."""
        form = self.forms[k]
        return form.filled(bound(mode, codes[1:], form.sizes))


def bound(mode: CaptureMode, values: Sequence[Value], sizes: Sequence[bool]) -> list[DimLike]:
    """Run-time integers as offsets and sizes."""
    return [mode.bind(v, "at", 0 if size else None) for v, size in zip(values, sizes, strict=False)]


def selected(mode: CaptureMode, flag: Value, a: Any, b: Any) -> Value:
    """The one of two Python integers that a bool says."""
    value = mode.builder.apply(REGISTRY["where"], flag, a, b)[0]
    return value if value.type.kind == "py_int" else mode.builder.apply(REGISTRY["as_kind"], value, kind="py_int")[0]
