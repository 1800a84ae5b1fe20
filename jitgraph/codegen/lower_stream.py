"""The sum of the elements under a mask, in the order in which NumPy adds those of `x[mask]`, without that array.

NumPy splits n elements in two, and each part again (see `llvm_pairwise`), so the order depends on n, which is known:
the mask was counted. Here the splitting goes on until at most `PIECE` elements are left. The next so many elements
under the mask are packed into a buffer in the first cache and added up from there by a `Reduce`, which splits further.
Sums that wait for their right half are on a stack, as there: the size of that half, or 0 once the left sum waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jitgraph import dtypes
from jitgraph.codegen.loops import Carry, Const, For, If, Load, Operand, Part, Reduce, Stmt, Store, Var, While
from jitgraph.codegen.lower_scalar import constant
from jitgraph.codegen.lower_values import Slot
from jitgraph.ir.dims import symbol
from jitgraph.ir.types import TensorType
from jitgraph.ops.reduction_plan import reduction_plan

if TYPE_CHECKING:
    from jitgraph.codegen.lower_kernel import Group, Root
    from jitgraph.ir.graph import Op

#: Elements of a piece that is added up from the buffer, and how many of the mask are looked at in one go.
PIECE = 2048
SCAN = 512
_STACK = 64
_ZERO = Const(0, dtypes.I64)
_ONE = Const(1, dtypes.I64)


def packed_sum(group: Group, op: Op, root: Root) -> None:
    """Emit the sum; its value is a scalar of the kernel."""
    _Stream(group, op).emit(root)


class _Stream:
    def __init__(self, group: Group, op: Op) -> None:
        self.group, self.op = group, op
        self.frame, self.b = group.frame, group.builder
        self.x, self.mask = op.operands
        self.dtype = op.result.type.dtype
        self.packed = self._buffer(self.dtype, PIECE + SCAN)
        self.halves = self._buffer(dtypes.I64, _STACK)
        self.sums = self._buffer(self.dtype, _STACK)

    def _buffer(self, dtype: np.dtype, size: int) -> Callable[[], object]:
        buffer = self.group.low.new_buffer(dtype, (size,), (0,))
        self.group.low.row_buffers.append(buffer)
        return lambda: self.frame.buffer(buffer)

    # --- statements

    def within(self, emit: Callable[[], None]) -> list[Stmt]:
        """The statements that `emit` appends."""
        outer, self.frame.body = self.frame.body, []
        emit()
        body, self.frame.body = self.frame.body, outer
        return body

    def loop(
        self,
        inits: Sequence[Operand],
        test: Callable[..., Operand],
        turn: Callable[..., Sequence[Operand]],
    ) -> list[Var]:
        """While `test(*carried)`, the carried become `turn(*carried)`; their last values."""
        inner = [self.frame.var(x.dtype) for x in inits]
        results = [self.frame.var(x.dtype) for x in inits]
        condition: list[Operand] = []
        following: list[Operand] = []
        tests = self.within(lambda: condition.append(test(*inner)))
        body = self.within(lambda: following.extend(turn(*inner)))
        carried = [Carry(i, x, n, r) for i, x, n, r in zip(inner, inits, following, results, strict=True)]
        self.frame.body.append(While(tests, condition[0], body, carried))
        return results

    def load(self, buffer: Callable[[], object], at: Operand) -> Var:
        return self.frame.emit_load(buffer(), (self.group.bind(at),))  # type: ignore[arg-type, return-value]

    def store(self, buffer: Callable[[], object], at: Operand, value: Operand) -> None:
        self.frame.body.append(Store(buffer(), (self.group.bind(at),), value))  # type: ignore[arg-type]

    # --- the algorithm

    def emit(self, root: Root) -> None:
        b, group = self.b, self.group
        self.extent = group.dim(self.mask.type.shape[0])
        size = group.dim(self.op.attrs["size"])
        nothing = constant(0, self.dtype)
        _, _, _, _, total, _ = self.loop(
            [size, _ZERO, _ZERO, _ZERO, nothing, _ONE],
            lambda n, top, place, fill, total, going: b.cmp("ne", going, _ZERO),
            self.piece,
        )
        plan = reduction_plan(TensorType(self.dtype, (self.op.attrs["size"],)), (0,), "sum")
        result: Operand = total
        if plan.init is not None:
            result = b.add(constant(plan.init, self.dtype), total)
        group.slots[self.op.result] = Slot(result, root.stage)

    def piece(
        self, n: Operand, top: Operand, place: Operand, fill: Operand, total: Operand, going: Operand
    ) -> Sequence[Operand]:
        """One piece: split down to it, fill the buffer, add it up, join sums whose halves are both there."""
        b = self.b
        following: Operand
        n, top = self.loop([n, top], lambda n, top: b.cmp("gt", n, Const(PIECE, dtypes.I64)), self.split)
        place, fill = self.loop(
            [place, fill],
            lambda place, fill: b.and_(b.cmp("lt", fill, n), b.cmp("lt", place, self.extent)),
            self.scan,
        )
        made: Operand = self.sum_of(n)
        left = b.sub(fill, n)
        self.move(n, left)
        top, made = self.loop([top, made], self.waits, self.join)
        below = self.below(top)
        following = self.load(self.halves, below)
        self.store(self.sums, below, made)
        self.store(self.halves, below, _ZERO)
        return following, top, place, left, made, b.cast(b.cmp("gt", top, _ZERO), dtypes.I64)

    def split(self, n: Operand, top: Operand) -> Sequence[Operand]:
        b = self.b
        left = b.mul(b.idiv(n, Const(16, dtypes.I64)), Const(8, dtypes.I64))
        self.store(self.halves, top, b.sub(n, left))
        return left, b.add(top, _ONE)

    def scan(self, place: Operand, fill: Operand) -> Sequence[Operand]:
        """Append the elements under the next part of the mask."""
        b, frame, group = self.b, self.frame, self.group
        end: Operand = b.add(place, Const(SCAN, dtypes.I64))
        end = b.select(b.cmp("lt", end, self.extent), end, self.extent)
        lower, upper = group.bind(place), group.bind(end)
        index = frame.index()
        count, result = frame.var(dtypes.I64), frame.var(dtypes.I64)
        following: list[Operand] = []
        memo, group.memo = group.memo, dict(group.memo)

        def turn() -> None:
            at = (symbol(index),)
            chosen = group.at(self.mask, at)
            inner = dict(group.memo)
            then = self.within(lambda: self.store(self.packed, count, b.cast(group.at(self.x, at), self.dtype)))
            group.memo = inner
            frame.body.append(If(chosen, then, []))
            following.append(b.add(count, b.cast(chosen, dtypes.I64)))

        body = self.within(turn)
        group.memo = memo
        carried = [Carry(count, fill, following[0], result)]
        frame.body.append(For(index, lower, upper, body, role="append", carried=carried))
        return end, result

    def sum_of(self, n: Operand) -> Operand:
        """The first `n` elements of the buffer, added up as NumPy adds them."""
        frame = self.frame
        index, result = frame.index(), frame.var(self.dtype)
        var = frame.var(self.dtype)
        body: list[Stmt] = [Load(var, self.packed(), (symbol(index),))]  # type: ignore[arg-type]
        frame.body.append(Reduce(index, self.group.bind(n), body, [Part(result, "sum", "pairwise", var)]))
        return result

    def move(self, n: Operand, left: Operand) -> None:
        """What was packed beyond the piece goes to the front of the buffer."""
        frame = self.frame
        index, var = frame.index(), frame.var(self.dtype)
        start = self.group.bind(n)
        body: list[Stmt] = [
            Load(var, self.packed(), (symbol(index) + start,)),  # type: ignore[arg-type]
            Store(self.packed(), (symbol(index),), var),  # type: ignore[arg-type]
        ]
        frame.body.append(For(index, 0, self.group.bind(left), body))

    def below(self, top: Operand) -> Operand:
        b = self.b
        return b.select(b.cmp("gt", top, _ZERO), b.sub(top, _ONE), _ZERO)

    def waits(self, top: Operand, total: Operand) -> Operand:
        """Does a left half's sum wait for this one?"""
        b = self.b
        waiting = self.load(self.halves, self.below(top))
        return b.and_(b.cmp("gt", top, _ZERO), b.cmp("eq", waiting, _ZERO))

    def join(self, top: Operand, total: Operand) -> Sequence[Operand]:
        b = self.b
        below = self.below(top)
        return below, b.add(self.load(self.sums, below), total)
