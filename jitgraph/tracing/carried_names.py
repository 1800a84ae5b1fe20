"""A name that a loop carries, leaf by leaf, and what it is told apart by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from jitgraph import errors
from jitgraph.ir.graph import Value
from jitgraph.ir.types import Layout, TensorType
from jitgraph.pytree import TreeDef
from jitgraph.records import dataclass, field
from jitgraph.source import SourceLoc
from jitgraph.tensor import Tensor, is_writable
from jitgraph.tracing.joining import UNSET, describe, is_value, same_constant, same_place, same_static, structure
from jitgraph.tracing.origins import Origins
from jitgraph.tracing.poison import Poison


class Changed(Exception):  # noqa: N818  # an answer
    """A name changes in a turn to something that its value from before cannot be converted to."""

    def __init__(self, name: str, before: Any, after: Any) -> None:
        super().__init__(name)
        self.name, self.before, self.after = name, before, after

    def fail(self, place: SourceLoc | None) -> NoReturn:
        """No loop can carry it.

        Args:
            place: of the loop.
        """
        name = shown(self.name)
        before = str(self.before) if isinstance(self.before, TensorType) else describe(self.before)
        raise errors.LeftToPython(
            errors.describe(
                f"{name} changes its type in a loop: {before} at the start of a turn, "
                f"{describe(self.after)} at its end",
                place,
                remedy=f"give {name} its final type before the loop, e.g. 0.0 for 0, or an array of the right shape.",
            )
        )


@dataclass(frozen=True, slots=True)
class Option:
    """One of the types of a name.

    Attributes:
        kind: as `joining.kind_of` says.
        tree: its parts.
    """

    kind: Any
    tree: TreeDef


@dataclass(slots=True)
class Carried:
    """A name that a loop carries, leaf by leaf.

    Attributes:
        tree: structure of its value; None: one leaf.
        inits: what each leaf is before the loop; None: nothing that a turn looks at.
        types: the carried type of each leaf; None: a part that stays as it is in `fixed`.
        read: whether a turn may read the value of the one before.
        arguments: the block arguments of the attempt.
        wholes: leaves, by number, that are strided views of new arrays: the whole arrays are carried.
        moves: its parts that stay are views of arrays from before the loop, behind it those of the last turn.
        origins: of leaves, by number, that may be arrays from before the loop: which.
        varies: its parts that stayed in one attempt did not in the next.
        read_only: leaves, by number, that are arrays nobody may write to.
        perhaps: leaves, by number, that are so in some turns.
        options: of a name of one of several types: these (see `options`).
        aligned: what a turn leaves of such a name, and its parts in the order of the options.
    """

    name: str
    tree: TreeDef | None
    inits: list[Any]
    types: list[TensorType | None]
    fixed: list[Any]
    read: bool = True
    arguments: list[Value | None] = field(default_factory=list)
    wholes: dict[int, Tensor] = field(default_factory=dict)
    moves: bool = False
    origins: dict[int, Origins] = field(default_factory=dict)
    varies: bool = False
    read_only: frozenset[int] = frozenset()
    perhaps: frozenset[int] = frozenset()
    options: tuple[Option, ...] = ()
    aligned: tuple[Any, list[Any]] | None = None


def parts_of(x: Any) -> tuple[list[Any], TreeDef | None]:
    parts = structure(x)
    return ([x], None) if parts is None else parts


def is_array(x: Any) -> bool:
    return type(x) is Tensor and x.is_traced and x.type.kind == "array"


def is_whole(x: Any) -> bool:
    """A traced array that is all of its storage."""
    return is_array(x) and not x._steps


def protected(leaves: Sequence[Any]) -> frozenset[int]:
    """The numbers of the arrays that nobody may write to."""
    return frozenset([k for k, x in enumerate(leaves) if is_array(x) and not is_writable(x)])


def are_values(x: Any) -> bool:
    """Whether all parts of a value are known when the code runs only, or numbers."""
    return all(map(is_value, parts_of(x)[0]))


def unchanged(a: Any, b: Any) -> bool:
    """Whether a name stands for what it stood for."""
    if a is b or same_place(a, b):
        return True
    if type(a) is Tensor or type(b) is Tensor:
        return False
    if is_value(a) and is_value(b):
        return same_constant(a, b)
    return same_static(a, b)


def is_missing(x: Any) -> bool:
    return type(x) is Poison or x is UNSET


def shown(name: str) -> str:
    """What the user calls a name."""
    return "the value that the function returns" if name.startswith("_jg_") else name


def dense(t: TensorType | None) -> TensorType | None:
    """The type as it is carried: a strided view is copied, in its order if that is NumPy's for a copy."""
    if t is not None and t.kind == "array" and not t.layout.is_dense:
        plain = t.layout.zero or t.layout.order == tuple(range(t.ndim))
        return TensorType(t.dtype, t.shape) if plain else TensorType(t.dtype, t.shape, "array", Layout(t.layout.order))
    return t
