"""Groups of ops that will be kernels, kept in an order in which they can run.

Each op that stands alone and each group has an `order`, unique in its block; whatever a group needs has a smaller one.
So there can be no cycle, and the answer to "may this op join that group?" is a comparison:

1. An op may join a group if all that it needs from elsewhere has a smaller order.
2. A group that nobody needs yet may move to the end. One with a write may not pass an ordered op.
3. Two groups may merge at the place of the later one if everything that needs the earlier one is behind it, or at the
   place of the earlier one if all that the later one needs is in front of it.
4. A group that updates a storage is behind all groups that read the version before.
"""

from __future__ import annotations

from jitgraph.ir.graph import Op, Value
from jitgraph.ir.types import Shape
from jitgraph.passes.fuse_access import is_row_shape, rows_lie_together
from jitgraph.records import dataclass, field

#: Bounds of one kernel: code size grows with ops, address registers with arrays.
MAX_OPS = 400
MAX_ARRAYS = 28


@dataclass(slots=True, eq=False)
class Group:
    """A kernel to be, or a single op that stands alone (`domain` None).

    Attributes:
        rows: the leading axes that all its ops share, if reductions over the other ones feed ops of the group.
        axes: what its reductions reduce over; None without one.
        needed_by: groups that must run behind this one.
        needs: groups that must run before this one.
        apart: groups that must not be merged with this one, as one reads the other's results at other elements.
        epoch: for a group with a write: how many ordered ops stood before it.
        arrays: operands and results that are whole arrays.
    """

    order: int
    domain: Shape | None
    ops: list[Op] = field(default_factory=list)
    rows: int = 0
    axes: tuple[int, ...] | None = None
    needed_by: set[Group] = field(default_factory=set)
    needs: set[Group] = field(default_factory=set)
    apart: set[Group] = field(default_factory=set)
    epoch: int | None = None
    arrays: set[Value] = field(default_factory=set)
    merged_into: Group | None = None

    def find(self) -> Group:
        """The group that this one has become a part of."""
        root = self
        while root.merged_into is not None:
            root = root.merged_into
        node = self
        while node is not root:
            following = node.merged_into
            assert following is not None
            node.merged_into = root
            node = following
        return root


class Order:
    """Hands out orders and knows which ordered ops stand between them."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.epoch = 0

    def next(self) -> int:
        self.epochs.append(self.epoch)
        return len(self.epochs) - 1

    def barrier(self) -> None:
        """An ordered op stands here."""
        self.epoch += 1

    def may_move(self, g: Group, to: int) -> bool:
        """May a write of `g` stand at the order `to`?"""
        return g.epoch is None or g.epoch == self.epochs[to]


def roots(groups: set[Group]) -> set[Group]:
    return {g.find() for g in groups}


def apart(a: Group, b: Group) -> bool:
    """Must the two stay apart?"""
    if not a.apart and not b.apart:
        return False
    a.apart, b.apart = roots(a.apart), roots(b.apart)
    return a in b.apart or b in a.apart


def compatible(a: Group, b: Group) -> bool:
    """Could one nest compute both, as far as their shapes go?"""
    if a.domain is None or a.domain != b.domain or len(a.ops) + len(b.ops) > MAX_OPS:
        return False
    if len(a.arrays | b.arrays) > MAX_ARRAYS or apart(a, b):
        return False
    if a.axes is not None and b.axes is not None and a.axes != b.axes:
        return False
    rows = a.rows or b.rows
    if not rows or a.rows == b.rows:
        return True
    other = b if a.rows else a
    return may_have_rows(other, rows)


def same_memory_order(a: Group, b: Group) -> bool:
    """Do the arrays over the whole domain lie in the same order of axes, so that one order of loops suits both?"""
    first, second = _memory_order(a), _memory_order(b)
    return first is None or second is None or first == second


def _memory_order(g: Group) -> tuple[int, ...] | None:
    for op in g.ops:
        for v in (*op.results, *op.operands):
            if v.type.shape == g.domain:
                return v.type.layout.order
    return None


def may_have_rows(g: Group, rows: int) -> bool:
    """Can the ops of `g` run row by row, with `rows` leading axes shared?"""
    assert g.domain is not None
    if g.axes is not None and g.axes != tuple(range(rows, len(g.domain))):
        return False
    return all(op_fits_rows(op, g.domain, rows) for op in g.ops)


def op_fits_rows(op: Op, domain: Shape, rows: int) -> bool:
    """Do the arrays that the op reads and makes lie row by row?"""
    values = [*op.operands, *op.results]
    if op.name == "write_through":
        return False
    for v in values:
        t = v.type
        if t.shape == domain:
            if not rows_lie_together(t, rows):
                return False
        elif op.name in ("write", "take", "copy") and t.ndim > rows:
            return False
    return all(r.type.shape == domain or is_row_shape(r.type.shape, domain, rows) for r in op.results)


def try_merge(order: Order, a: Group, b: Group) -> Group | None:
    """Merge two groups if that keeps the order; the group that remains."""
    if a is b:
        return a
    if a.order > b.order:
        a, b = b, a
    if not compatible(a, b):
        return None
    a.needed_by, b.needs = roots(a.needed_by), roots(b.needs)
    if order.may_move(a, b.order) and all(g.order > b.order for g in a.needed_by if g is not b and g is not a):
        place = b.order
    elif order.may_move(b, a.order) and all(g.order < a.order for g in b.needs if g is not a and g is not b):
        place = a.order
    else:
        return None
    return _merge(a, b, place)


def _merge(a: Group, b: Group, place: int) -> Group:
    into, gone = (a, b) if len(a.ops) >= len(b.ops) else (b, a)
    into.order = place
    into.ops += gone.ops
    into.rows = a.rows or b.rows
    into.axes = a.axes if a.axes is not None else b.axes
    into.needed_by |= gone.needed_by
    into.needs |= gone.needs
    into.apart |= gone.apart
    into.arrays |= gone.arrays
    if into.epoch is None:
        into.epoch = gone.epoch
    gone.merged_into = into
    for links in (into.needed_by, into.needs):
        links.discard(gone)
        links.discard(into)
    return into


def raise_to_end(order: Order, g: Group) -> bool:
    """Move a group that nobody needs yet behind everything; False if it must stay."""
    g.needed_by = {x for x in roots(g.needed_by) if x is not g}
    if g.needed_by or (g.epoch is not None and g.epoch != order.epoch):
        return False
    g.order = order.next()
    return True
