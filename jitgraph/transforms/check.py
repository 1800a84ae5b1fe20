"""Numerical derivatives, to test the others against."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

#: A function of float64 arrays to float64 arrays.
Numeric = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]

#: Central differences are exact to about the square of this, relative to third derivatives.
STEP = 6e-6


def central_difference(
    f: Numeric, inputs: Sequence[np.ndarray], direction: Sequence[np.ndarray], step: float = STEP
) -> list[np.ndarray]:
    """The derivative of `f` at `inputs` along `direction`: (f(x + h d) - f(x - h d)) / 2h."""
    ahead = f([x + step * d for x, d in zip(inputs, direction, strict=True)])
    behind = f([x - step * d for x, d in zip(inputs, direction, strict=True)])
    return [(np.asarray(p) - np.asarray(q)) / (2 * step) for p, q in zip(ahead, behind, strict=True)]


def inner(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """The inner product of two lists of arrays."""
    return float(sum(np.sum(np.multiply(x, y, dtype=np.float64)) for x, y in zip(a, b, strict=True)))


def directions(shapes: Sequence[tuple[int, ...]], seed: int) -> list[np.ndarray]:
    """Reproducible directions of length about one in each component."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(0.5, 1.5, s) * rng.choice([-1.0, 1.0], s)) for s in shapes]


def tolerance(dtypes: Sequence[np.dtype]) -> float:
    """What to expect of central differences in float64 against gradients in the coarsest of `dtypes`."""
    return max((1e-6 if d.itemsize >= 8 else 2e-3 for d in dtypes), default=1e-6)
