"""`grad`, `value_and_grad`, `vjp`, `jvp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from jitgraph import pytree
from jitgraph.autodiff.runs import Call, Ran, call_plainly, run_for, shapes_agree, trace_mode, type_of
from jitgraph.errors import GradientError, describe
from jitgraph.ir.types import TensorType
from jitgraph.tensor import lift, wrap
from jitgraph.transforms import graph
from jitgraph.transforms.tape import UNTRACKED, Node
from jitgraph.transforms.vjp import conform

Argnums: TypeAlias = "int | Sequence[int]"
#: run(call, args, kwargs): what a transformed function does.
Run: TypeAlias = Callable[[Call, tuple[Any, ...], dict[str, Any]], Any]


def positions(argnums: Argnums, count: int, what: str) -> list[int]:
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for i in numbers:
        if not -count <= i < count:
            remedy = "gradients are for positional arguments: pass it by position, or correct argnums"
            raise GradientError(describe(f"{what}: argnums names argument {i}, but {count} were given", remedy=remedy))
    return [i % count for i in numbers]


def dressed(run: Run, f: Callable[..., Any], verb: str, same_arguments: bool = True) -> Callable[..., Any]:
    """The function that does `run`: named after `f`, jitted as `f` is.

    Args:
        same_arguments: it takes the arguments of `f`, and so has its signature.
    """

    def g(*args: Any, **kwargs: Any) -> Any:
        return run(call_plainly, args, kwargs)

    name = getattr(f, "__name__", type(f).__name__)
    g.__name__ = g.__qualname__ = f"{verb}_{name}"
    g.__doc__ = f"The {verb} of `{name}`."
    if same_arguments:
        vars(g)["__wrapped__"] = python_of(f)
    traceable(g, run)
    rejit = getattr(f, "__jitgraph_rejit__", None)
    made: Callable[..., Any] = g if rejit is None else rejit(g, same_arguments)
    return made


def traceable(g: Callable[..., Any], run: Run) -> None:
    """Let a tracer run `g` with its own way to call user functions."""
    vars(g)["__jitgraph_trace__"] = lambda tracer, args, kwargs: run(tracer.call, args, kwargs)


def python_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function to differentiate: of a jitted one, what it wraps (the gradient is jitted in its place)."""
    return getattr(f, "__wrapped__", f) if hasattr(f, "__jitgraph_rejit__") else f


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that answers `(f(*args), gradient)`.

    Args:
        f: returns a float scalar; with `has_aux` the pair (scalar, anything).
        argnums: the argument(s) to differentiate by; a sequence makes the gradient a tuple. Arguments may be tuples,
            lists, dicts, dataclasses of float arrays; the gradient has their structure, shapes and dtypes.

    Raises (the function made):
        GradientError: the output is no float scalar, or an argument holds integers.
        TraceError: something in the way has no gradient.
    """
    inner = python_of(f)

    def run(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        what = "grad"
        ran = run_for(call, inner, args, kwargs, positions(argnums, len(args), what), has_aux, what)
        types = ran.run.output_types()
        if len(types) != 1:
            remedy = "return one float; other results go through has_aux=True: return loss, others"
            raise GradientError(describe(f"grad needs a scalar output, got {len(types)} results", remedy=remedy))
        graph.require_scalar(types[0])
        trees = ran.rebuild(ran.run.pull(ran.run.seeds()))
        gradient = trees[0] if isinstance(argnums, int) else tuple(trees)
        return ((ran.out, ran.aux) if has_aux else ran.out), gradient

    return dressed(run, f, "value_and_grad")


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that answers the gradient of `f`; with `has_aux` the pair (gradient, aux). See `value_and_grad`."""
    both = value_and_grad(python_of(f), argnums, has_aux)

    def run(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value, gradient = call(both, *args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return dressed(run, f, "grad")


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(f(*primals), pullback) where pullback(cotangent) is a tuple of gradients, one for each primal.

    The cotangent has the structure and the shapes of the output. With `has_aux`: (output, pullback, aux).

    Raises:
        GradientError: a primal holds integers; the cotangent does not fit.
    """
    return vjp_by(call_plainly, f, *primals, has_aux=has_aux)


def vjp_by(call: Call, f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    ran = run_for(call, python_of(f), primals, {}, range(len(primals)), has_aux, "vjp")

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        return tuple(ran.rebuild(ran.run.pull(_fitting(ran, cotangent))))

    return (ran.out, pullback, ran.aux) if has_aux else (ran.out, pullback)


def _fitting(ran: Ran, cotangent: Any) -> list[Any]:
    """The leaves of a cotangent as values of the run; None for outputs that are no floats."""
    leaves, structure = pytree.flatten(cotangent)
    types = ran.run.output_types()
    mode = trace_mode(leaves)
    if structure != ran.out_tree or len(leaves) != len(types):
        raise GradientError(describe(f"the cotangent has the structure {structure}, the output {ran.out_tree}"))
    found = []
    for leaf, t in zip(leaves, types, strict=True):
        given = type_of(leaf, "the cotangent", "vjp")
        if not shapes_agree(given, t, mode):
            raise GradientError(describe(f"the cotangent of an output {t} is {given}: the shapes differ"))
        found.append(ran.run.lift(leaf) if t.dtype.kind == "f" else None)
    return found


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """(f(*primals), the derivative of f along `tangents`).

    Args:
        primals, tangents: sequences of the same length, each tangent with the structure and shapes of its primal.

    Raises:
        GradientError: a primal holds integers; the tangents do not fit.
    """
    return jvp_by(call_plainly, f, primals, tangents)


def jvp_by(call: Call, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    primals, tangents = tuple(primals), tuple(tangents)
    if len(primals) != len(tangents):
        raise GradientError(f"jvp needs one tangent for each primal, got {len(primals)} and {len(tangents)}")
    given = [pytree.flatten(p) for p in primals]
    directions = [pytree.flatten(t) for t in tangents]
    mode = trace_mode([x for leaves, _ in (*given, *directions) for x in leaves])
    seeds: list[Any] = []
    for i, ((have, structure), (along, other)) in enumerate(zip(given, directions, strict=True)):
        if structure != other or len(have) != len(along):
            raise GradientError(f"the tangent of argument {i} has the structure {other}, the argument {structure}")
        for x, d in zip(have, along, strict=True):
            t, u = type_of(x, f"argument {i}", "jvp"), type_of(d, f"tangent {i}", "jvp")
            if not shapes_agree(t, u, mode):
                raise GradientError(f"the tangent of argument {i}, {t}, is {u}: the shapes differ")
            # in a trace the tangents stand in front of what f emits
            seeds.append(d if mode is None else wrap(mode, conform(mode.builder, lift(mode, d), t)))
    ran = run_for(call, python_of(f), primals, {}, range(len(primals)), False, "jvp")
    lifted: list[Any] = [ran.run.lift(x) for x in seeds]
    if mode is None:
        lifted = [_cast(x, t) for x, t in zip(lifted, ran.run.input_types(), strict=True)]
    return ran.out, pytree.unflatten(ran.out_tree, ran.run.push(lifted))


traceable(vjp, lambda call, args, kwargs: vjp_by(call, *args, **kwargs))
traceable(jvp, lambda call, args, kwargs: jvp_by(call, *args, **kwargs))


def _cast(x: Node, t: TensorType) -> Node:
    """A constant tangent in the dtype of its primal; the sweep casts what is recorded."""
    return Node(np.asarray(x.array, t.dtype)[()]) if x.type.dtype != t.dtype and x.level == UNTRACKED else x
