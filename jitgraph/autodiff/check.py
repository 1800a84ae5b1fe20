"""`check_grads`: gradients against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import pytree
from jitgraph.autodiff.functions import jvp, vjp
from jitgraph.tensor import Tensor
from jitgraph.transforms import check


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = ("rev", "fwd"),
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Compare gradients of `f` at `args` with central differences along random directions, evaluated in float64.

    Args:
        order: derivatives up to this one are compared.
        modes: "rev" (vjp), "fwd" (jvp).
        eps: the step of the differences.
        atol, rtol: allowed differences; by default 1e-6 for float64, 2e-3 for float32, ten times that for each order.

    Raises:
        AssertionError: a derivative differs; says which, and both values.
    """
    _check(f, tuple(args), order, tuple(modes), check.STEP if eps is None else eps, atol, rtol, "")


def _check(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    eps: float,
    atol: float | None,
    rtol: float | None,
    path: str,
) -> None:
    leaves, structure = pytree.flatten(args)
    arrays = [_array(x) for x in leaves]
    along = check.directions([x.shape for x in arrays], seed=len(path))

    def numeric(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        out = f(*pytree.unflatten(structure, [x[()] if not x.shape else x for x in inputs]))
        return [np.asarray(_array(x), np.float64) for x in pytree.flatten(out)[0]]

    wide = [x.astype(np.float64) for x in arrays]
    expected = check.central_difference(numeric, wide, along, eps)
    slack = check.tolerance([x.dtype for x in arrays])
    atol, rtol = slack if atol is None else atol, slack if rtol is None else rtol
    tangents = pytree.unflatten(structure, [d.astype(x.dtype)[()] for d, x in zip(along, arrays, strict=True)])
    if "fwd" in modes:
        _, moved = jvp(f, args, tangents)
        for found, wanted in zip(pytree.flatten(moved)[0], expected, strict=True):
            text = f"{path}jvp differs from the differences"
            np.testing.assert_allclose(_array(found), wanted, rtol, atol, err_msg=text)
    if "rev" in modes:
        out, pullback = vjp(f, *args)
        outputs, out_tree = pytree.flatten(out)
        weights = check.directions([_array(x).shape for x in outputs], seed=len(path) + 7)
        cotangent = pytree.unflatten(
            out_tree, [w.astype(_array(x).dtype)[()] for w, x in zip(weights, outputs, strict=True)]
        )
        gradients = [_array(g) for g in pytree.flatten(pullback(cotangent))[0]]
        turned, wanted_sum = check.inner(gradients, along), check.inner(weights, expected)
        size = 1.0 + sum(float(np.sum(np.abs(w * e))) for w, e in zip(weights, expected, strict=True))
        text = f"{path}vjp differs from the differences"
        np.testing.assert_allclose(turned, wanted_sum, rtol, atol * size, err_msg=text)
        for g, x in zip(gradients, arrays, strict=True):
            if g.shape != x.shape or g.dtype != x.dtype:
                raise AssertionError(f"{path}vjp: the gradient is {g.dtype}{g.shape}, the input {x.dtype}{x.shape}")
    if order > 1:
        deeper = (eps, atol * 10, rtol * 10)
        if "fwd" in modes:
            _check(lambda *a: jvp(f, a, _as(a, tangents))[1], args, order - 1, modes, *deeper, f"{path}jvp of ")
        if "rev" in modes:
            _check(lambda *a: _pulled(f, a), args, order - 1, modes, *deeper, f"{path}vjp of ")


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.numpy() if type(x) is Tensor else x)


def _as(args: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tangents in the dtypes of `args`."""
    leaves, structure = pytree.flatten(args)
    along = pytree.flatten(tangents)[0]
    return tuple(pytree.unflatten(structure, [np.asarray(d, x.dtype)[()] for d, x in zip(along, leaves, strict=True)]))


def _pulled(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    out, pullback = vjp(f, *args)
    leaves, structure = pytree.flatten(out)
    return pullback(pytree.unflatten(structure, [np.ones(np.shape(x), x.dtype)[()] for x in leaves]))
