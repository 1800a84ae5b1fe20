"""`jacrev`, `jacfwd`, `hessian`: all derivatives of an array, one sweep for each row or column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph import pytree
from jitgraph.autodiff.functions import Argnums, dressed, grad, jvp_by, positions, python_of
from jitgraph.autodiff.runs import Call, Ran, run_for, trace_mode, type_of
from jitgraph.errors import GradientError, describe
from jitgraph.ir.types import TensorType
from jitgraph.tensor import wrap
from jitgraph.transforms import graph


def _basis(t: TensorType, what: str, mode: Any) -> list[Any]:
    """The unit arrays of the shape and dtype of `t`; in a trace they are constants of the graph."""
    shape = t.shape
    if not all(isinstance(d, int) for d in shape):
        remedy = "call it outside of jit, or fix the sizes with specialize='shape'"
        raise GradientError(describe(f"{what} needs known sizes, got {t}", remedy=remedy))
    sizes = [int(d) for d in shape]  # type: ignore[arg-type]  # numbers, as was just checked
    size = math.prod(sizes)
    units = list(np.eye(size, dtype=t.dtype).reshape(size, *sizes))
    return units if mode is None else [wrap(mode, mode.builder.constant(e)) for e in units]


def jacrev(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that answers the Jacobian of `f`: output.shape + argument.shape, by one reverse sweep a row."""

    def run(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        which = positions(argnums, len(args), "jacrev")
        ran = run_for(call, python_of(f), args, kwargs, which, False, "jacrev")
        (t,) = _one_output(ran, "jacrev")
        rows = [ran.rebuild(ran.run.pull([ran.run.lift(e)])) for e in _basis(t, "jacrev", trace_mode(args))]
        trees = []
        for k in range(len(which)):
            flat = [pytree.flatten(row[k]) for row in rows]
            stacked = [_stack([leaves[j] for leaves, _ in flat], t.shape) for j in range(len(flat[0][0]))]
            trees.append(pytree.unflatten(flat[0][1], stacked))
        return trees[0] if isinstance(argnums, int) else tuple(trees)

    return dressed(run, f, "jacrev")


def jacfwd(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that answers the Jacobian of `f`: output.shape + argument.shape, by one forward pass a column."""

    def run(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        (i,) = positions(argnums, len(args), "jacfwd")
        x = args[i]
        t = type_of(x, f"argument {i}", "jacfwd")
        graph.require_float(t, f"argument {i}", "jacfwd")

        def of_one(f: Callable[..., Any], value: Any) -> Any:
            return call(f, *args[:i], value, *args[i + 1 :], **kwargs)

        columns = [jvp_by(of_one, f, (x,), (e,))[1] for e in _basis(t, "jacfwd", trace_mode(args))]
        flat = [pytree.flatten(c) for c in columns]
        leaves = []
        for k in range(len(flat[0][0])):
            parts = [found[k] for found, _ in flat]
            shape = getattr(parts[0], "shape", ())
            moved = np.moveaxis(np.stack(parts), 0, -1) if shape else np.stack(parts)
            leaves.append(moved.reshape((*shape, *t.shape)))
        return pytree.unflatten(flat[0][1], leaves)

    return dressed(run, f, "jacfwd")


def hessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that answers the matrix of second derivatives of a scalar `f`: forward over reverse."""
    return jacfwd(grad(f, argnums), argnums)


def _one_output(ran: Ran, what: str) -> list[TensorType]:
    types = ran.run.output_types()
    if len(types) != 1 or types[0].dtype.kind != "f":
        raise GradientError(describe(f"{what} needs one float output, got {len(types)} results"))
    return types


def _stack(rows: Sequence[Any], shape: Sequence[Any]) -> Any:
    stacked = np.stack(rows)
    return stacked.reshape((*shape, *stacked.shape[1:]))
