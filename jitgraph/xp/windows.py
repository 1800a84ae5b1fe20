"""NumPy's window functions: the number of points may be symbolic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.modes import TraceMode
from jitgraph.tensor import current_mode, dim_tensor
from jitgraph.xp.core import EXPORTS, mode_in, numpy_function, size_of
from jitgraph.xp.creation import arange, zeros
from jitgraph.xp.elementwise import sqrt, where

cos = EXPORTS["cos"]


def _window(points: Any, body: Callable[[Any, Any], Any]) -> Any:
    """`body(m, n)` of the number of points and the positions 1 - m, 3 - m, ..., m - 1; one point is 1.

    Raises:
        TypeError: a number of points that is no integer.
    """
    mode = mode_in((points,)) or current_mode()
    if not isinstance(mode, TraceMode):
        raise errors.InternalError("windows of plain numbers are NumPy's")
    if isinstance(points, float | np.floating):
        if not float(points).is_integer():
            raise errors.DTypeError(f"a window of {points} points: give a whole number under jit")
        points = int(points)
    size = size_of(points)
    if mode.decide("<", size, 1):
        return zeros(0)
    if mode.decide("==", size, 1):
        return EXPORTS["ones"](1)
    m = dim_tensor(mode, size)
    return body(m, arange(m) * 2.0 + (1.0 - m))


@numpy_function(np.hanning, creates=True)
def hanning(M: Any) -> Any:  # NumPy's name
    return _window(M, lambda m, n: 0.5 + 0.5 * cos(np.pi * n / (m - 1.0)))


@numpy_function(np.hamming, creates=True)
def hamming(M: Any) -> Any:
    return _window(M, lambda m, n: 0.54 + 0.46 * cos(np.pi * n / (m - 1.0)))


@numpy_function(np.blackman, creates=True)
def blackman(M: Any) -> Any:
    return _window(M, lambda m, n: 0.42 + 0.5 * cos(np.pi * n / (m - 1.0)) + 0.08 * cos(2.0 * np.pi * n / (m - 1.0)))


@numpy_function(np.bartlett, creates=True)
def bartlett(M: Any) -> Any:
    return _window(M, lambda m, n: where(n <= 0, 1 + n / (m - 1.0), 1 - n / (m - 1.0)))


@numpy_function(np.kaiser, creates=True)
def kaiser(M: Any, beta: Any) -> Any:
    """I0 of a half circle over I0(beta); see `np.i0`, which is called back."""

    def body(m: Any, _n: Any) -> Any:
        alpha = (m - 1.0) / 2.0
        n = arange(m) * 1.0
        i0 = EXPORTS["i0"]
        return i0(beta * sqrt(1 - ((n - alpha) / alpha) ** 2.0)) / i0(beta)

    return _window(M, body)
