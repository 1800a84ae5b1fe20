"""The memory layout of an array with given strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jitgraph.ir.types import Layout, c_layout


def layout_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Layout:
    """The layout of an array with these strides (bytes). Axes of size 1 break no order; C order wins where it fits."""
    ndim = len(shape)
    expected = itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return c_layout(ndim)
        if size != 1:
            if stride != expected:
                break
            expected *= size
    else:
        return c_layout(ndim)
    zero = tuple(k for k in range(ndim) if strides[k] == 0 and shape[k] != 1)
    real = [k for k in range(ndim) if k not in zero]
    order: list[int] = []
    for k in real:  # stable: a size-1 axis stays behind the axis in front of it
        at = len(order)
        if shape[k] != 1:
            while at and (shape[order[at - 1]] == 1 or abs(strides[order[at - 1]]) < abs(strides[k])):
                at -= 1
            while at < len(order) and shape[order[at]] == 1 and order[at] < k:
                at += 1
        order.insert(at, k)
    breaks = []
    inner: int | None = itemsize
    sign = 1
    for position in range(len(order) - 1, -1, -1):
        k = order[position]
        if shape[k] == 1:
            continue
        if abs(strides[k]) != inner or (
            position < len(order) - 1 and inner != itemsize and (strides[k] < 0) != (sign < 0)
        ):
            breaks.append(position)
        sign = strides[k]
        inner = abs(strides[k]) * shape[k]
    negative = tuple(k for k in real if strides[k] < 0 and shape[k] != 1)
    return Layout((*order, *zero), tuple(reversed(breaks)), negative, zero)


def extent(x: np.ndarray, axis: int) -> int:
    """What a symbol of an argument stands for: the size of an axis, or for -1 - k the stride of axis k."""
    return x.shape[axis] if axis >= 0 else x.strides[-1 - axis]


def layout_of_array(x: np.ndarray) -> Layout:
    """The layout of an array, as part of its type."""
    flags = x.flags
    layout = c_layout(x.ndim) if flags.c_contiguous else layout_of(x.shape, x.strides, x.itemsize)
    return layout if flags.aligned else replace(layout, unaligned=True)
