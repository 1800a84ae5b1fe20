"""A name that a loop carries, leaf by leaf, and what it is told apart by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgraph.ir.graph import Value
from jitgraph.ir.types import Layout, TensorType
from jitgraph.pytree import TreeDef
from jitgraph.records import dataclass, field
from jitgraph.tensor import Tensor, is_writable
from jitgraph.tracing.joining import UNSET, structure
from jitgraph.tracing.origins import Origins
from jitgraph.tracing.poison import Poison


class Changed(Exception):  # noqa: N818  # an answer
    """A name changes in a turn to something that its value from before cannot be converted to."""

    def __init__(self, name: str, before: Any, after: Any) -> None:
        super().__init__(name)
        self.name, self.before, self.after = name, before, after


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


def protected(leaves: Sequence[Any]) -> frozenset[int]:
    """The numbers of the arrays that nobody may write to."""
    return frozenset([k for k, x in enumerate(leaves) if is_array(x) and not is_writable(x)])


def is_missing(x: Any) -> bool:
    return type(x) is Poison or x is UNSET


def dense(t: TensorType | None) -> TensorType | None:
    """The type as it is carried: a strided view is copied, in its order if that is NumPy's for a copy."""
    if t is not None and t.kind == "array" and not t.layout.is_dense:
        plain = t.layout.zero or t.layout.order == tuple(range(t.ndim))
        return TensorType(t.dtype, t.shape) if plain else TensorType(t.dtype, t.shape, "array", Layout(t.layout.order))
    return t
