"""Which memory layout a reshape gives, and the order of axes where some have size 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from jitgraph.ir.dims import is_factor
from jitgraph.ir.types import Layout, Shape, TensorType, c_layout


def canonical_order(order: Sequence[int], shape: Shape) -> tuple[int, ...]:
    """`order` with the axes of size 1 put where they leave a C (or else F) order of the others C (or F)."""
    if 1 not in shape:
        return tuple(order)
    real = [k for k in order if shape[k] != 1]
    ndim = len(shape)
    if all(a < b for a, b in pairwise(real)):
        return tuple(range(ndim))
    if all(a > b for a, b in pairwise(real)):
        return tuple(range(ndim - 1, -1, -1))
    for k in range(ndim - 1, -1, -1):
        if shape[k] == 1:
            real.insert(real.index(k + 1) if k + 1 < ndim else len(real), k)
    return tuple(real)


def reshape_view_layout(x: TensorType, shape: Shape) -> Layout | None:
    """The layout of `x.reshape(shape)`, as many elements, where NumPy gives a view of every such `x`.

    None if it copies, or may.

    Source: NumPy's `_attempt_nocopy_reshape`: axes of size 1 apart, the shortest runs of old and new axes with equal
    products are matched, and the old axes of each run must continue one another in C order.
    """
    if x.layout.is_c or 0 in x.shape or 0 in shape:
        return replace(c_layout(len(shape)), unaligned=True) if x.layout.unaligned else c_layout(len(shape))
    old = [k for k, d in enumerate(x.shape) if d != 1]
    new = [k for k, d in enumerate(shape) if d != 1]
    runs: list[tuple[list[int], list[int]]] = []
    while old and new and x.shape[old[-1]] == shape[new[-1]]:
        runs.append(([old.pop()], [new.pop()]))
    i = j = 0
    while i < len(old) and j < len(new):
        olds, news = [old[i]], [new[j]]
        left, right = x.shape[old[i]], shape[new[j]]
        i, j = i + 1, j + 1
        while left != right:
            if is_factor(left, right) and i < len(old):
                left, i = left * x.shape[old[i]], i + 1
                olds.append(old[i - 1])
            elif is_factor(right, left) and j < len(new):
                right, j = right * shape[new[j]], j + 1
                news.append(new[j - 1])
            elif i == len(old) and j < len(new):  # sizes that are data: all that is left is of the last axis
                news, j = news + new[j:], len(new)
                break
            else:
                return None
        runs.append((olds, news))
    if i < len(old) or j < len(new):
        return None
    return _reshaped(x, shape, runs) if all(_continue_in_c_order(x, olds) for olds, _ in runs) else None


def _continue_in_c_order(x: TensorType, axes: Sequence[int]) -> bool:
    """Whether each of the axes is a run of the next one in memory, so that one stride serves them all."""
    return all(continues(x, a, b) for a, b in pairwise(axes))


def continues(x: TensorType, a: int, b: int) -> bool:
    """Whether the layout says that a step along axis `a` is a run of axis `b`."""
    order = x.layout.order
    first, second = order.index(a), order.index(b)
    between = order[first + 1 : second]
    gap = any(k in x.layout.breaks for k in range(first, second))
    if second < first or gap or any(x.shape[k] != 1 for k in between):
        return False
    return (a in x.layout.zero) == (b in x.layout.zero)


def _reshaped(x: TensorType, shape: Shape, runs: list[tuple[list[int], list[int]]]) -> Layout:
    """The layout of a view whose runs of axes (new ones) stand where those of the old ones stood."""
    layout = x.layout
    new_of = {olds[-1]: news for olds, news in runs}
    order: list[int] = []
    broken: set[int] = set()
    negative: list[int] = []
    zero: list[int] = []
    for at, axis in enumerate(layout.order):
        news = new_of.get(axis)
        if news is None:
            continue
        order += news
        if axis in layout.negative:
            negative += news
        if axis in layout.zero:
            zero += news
        following = at + 1
        while following < len(layout.order) and x.shape[layout.order[following]] == 1:
            following += 1
        if any(k in layout.breaks for k in range(at, following)):
            broken.add(news[-1])
    whole = canonical_order([*order, *(k for k, d in enumerate(shape) if d == 1)], shape)
    breaks = tuple(k for k, axis in enumerate(whole) if axis in broken)
    return Layout(whole, breaks, tuple(sorted(negative)), tuple(sorted(zero)), x.layout.unaligned)
