"""Gradients as users call them: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `check_grads`.

All are made of two primitives on functions whose differentiable inputs and outputs are flat lists:
- outside `jit` the function runs on Tensors of the tape (`transforms.tape`), so that a debugger can step through it;
- under `jit` it is traced in line and differentiated as a part of the graph (`transforms.graph`).
What decides is whether a trace runs. A jitted function is differentiated as a whole: the gradient of `jit(f)` is the
jitted gradient of `f`. It says how by the method `__jitgraph_rejit__(g)`, which answers `g` jitted with its options.
Plain arrays in, plain arrays out; a Tensor in, Tensors out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from jitgraph import pytree
from jitgraph.errors import GradientError, describe
from jitgraph.ir.graph import Value
from jitgraph.ir.types import TensorType
from jitgraph.tensor import EAGER, Storage, Tensor, current_mode, make, mode_of, read, type_of_array, wrap
from jitgraph.transforms import check, graph, tape
from jitgraph.transforms.tape import TAPE, Node, enable_grad, no_grad
from jitgraph.transforms.vjp import ones, zeros

__all__ = [
    "Function",
    "check_grads",
    "enable_grad",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "no_grad",
    "value_and_grad",
    "vjp",
]

Argnums: TypeAlias = "int | Sequence[int]"


# --- the two ways to differentiate a run of a function ----------------------------------------------------------------


class _TapeRun:
    """A function runs once, eagerly, on inputs whose uses the tape remembers.

    Args:
        as_tensors: results are Tensors rather than ndarrays.
    """

    def __init__(self, leaves: Sequence[Any], as_tensors: bool) -> None:
        self.as_tensors = as_tensors
        self.given = list(leaves)
        self._stack = ExitStack()
        self.level = self._stack.enter_context(tape.gradient_level())
        self.inputs = [tape.fresh_input(self._value(x), self.level) for x in leaves]
        self.outputs: list[Node] = []

    def tensors(self) -> list[Tensor]:
        return [wrap(TAPE, x) for x in self.inputs]

    def finish(self, outputs: Sequence[Any]) -> None:
        """The function has returned `outputs`."""
        self.outputs = [TAPE.lift(self._value(x)) for x in outputs]
        self._stack.close()

    def close(self) -> None:
        self._stack.close()

    def output_types(self) -> list[TensorType]:
        return [x.type for x in self.outputs]

    def seeds(self) -> list[Any]:
        return [ones(tape.EagerBuilder(), x.type) for x in self.outputs]

    def lift(self, x: Any) -> Node:
        return TAPE.lift(self._value(x))

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Gradients of the inputs, as users get them."""
        found, _ = tape.pull_back(self.outputs, list(cotangents), self.inputs, self.level)
        return [
            self.shown(zeros(tape.EagerBuilder(), x.type) if ct is None else ct, like=given)
            for ct, x, given in zip(found, self.inputs, self.given, strict=True)
        ]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the outputs, as users get them."""
        found = tape.push_forward(self.outputs, self.inputs, list(tangents), self.level)
        return [
            self.shown(zeros(tape.EagerBuilder(), x.type) if t is None else t, like=x.array)
            for t, x in zip(found, self.outputs, strict=True)
        ]

    def shown(self, node: Node, like: Any = None) -> Any:
        """A node as the user's value: recorded further if a gradient function around this one needs it."""
        if node.level < self.level:
            return wrap(TAPE, node)
        data = node.array
        if isinstance(like, np.ndarray) and not isinstance(data, np.ndarray):
            data = np.asarray(data)
        elif isinstance(data, np.ndarray) and not data.shape and not isinstance(like, np.ndarray):
            data = data[()]
        return make(Storage(EAGER, data)) if self.as_tensors else data

    def result(self, i: int) -> Any:
        return self.shown(self.outputs[i], self.outputs[i].array)

    @staticmethod
    def _value(x: Any) -> Any:
        if type(x) is not Tensor:
            return x
        return read(x)


class _TraceRun:
    """A function is traced in line, and what it emits is differentiated as a part of the graph."""

    def __init__(self, leaves: Sequence[Any], mode: Any) -> None:
        self.mode = mode
        self.builder = mode.builder
        values = [self.lift(x) for x in leaves]
        self.inputs = [graph.fresh(self.builder, x) for x in values]
        self.segment = graph.Segment(self.builder)
        self.ops: list[Any] = []
        self.outputs: list[Value] = []

    def tensors(self) -> list[Tensor]:
        return [wrap(self.mode, x) for x in self.inputs]

    def finish(self, outputs: Sequence[Any]) -> None:
        self.outputs = [self.lift(x) for x in outputs]
        self.ops = self.segment.ops()

    def close(self) -> None:
        pass

    def output_types(self) -> list[TensorType]:
        return [x.type for x in self.outputs]

    def seeds(self) -> list[Any]:
        return [ones(self.builder, x.type) for x in self.outputs]

    def lift(self, x: Any) -> Value:
        if type(x) is Tensor and x._storage.mode is self.mode:
            return read(x)  # type: ignore[no-any-return]
        return self.mode.lift(x.numpy() if type(x) is Tensor else x)  # type: ignore[no-any-return]

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        made = graph.vjp_of_ops(self.builder, self.ops, self.inputs, self.outputs, cotangents)
        return [wrap(self.mode, x) for x in made]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        made = graph.jvp_of_ops(self.builder, self.ops, self.inputs, tangents, self.outputs)
        return [wrap(self.mode, x) for x in made]

    def result(self, i: int) -> Any:
        return wrap(self.mode, self.outputs[i])


@dataclass(slots=True)
class _Ran:
    """A run of a function that can be differentiated.

    Attributes:
        out: what the function returned (without the auxiliary part), as users get it.
        aux: the auxiliary part.
        in_trees, out_tree: how the flat inputs and outputs stand in the arguments and the result.
    """

    run: _TapeRun | _TraceRun
    out: Any
    aux: Any
    in_trees: list[Any]
    out_tree: Any
    counts: list[int]

    def rebuild(self, leaves: Sequence[Any]) -> list[Any]:
        """One tree for each differentiated argument."""
        trees, at = [], 0
        for structure, count in zip(self.in_trees, self.counts, strict=True):
            trees.append(pytree.unflatten(structure, leaves[at : at + count]))
            at += count
        return trees


def _run(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], which: Sequence[int], has_aux: bool, what: str
) -> _Ran:
    leaves: list[Any] = []
    structures, counts = [], []
    for i in which:
        found, structure = pytree.flatten(args[i])
        for k, leaf in enumerate(found):
            name = f"argument {i}" if len(found) == 1 else f"leaf {k} of argument {i}"
            graph.require_float(_type_of(leaf, name, what), name, what)
        leaves += found
        structures.append(structure)
        counts.append(len(found))
    mode = current_mode()
    if mode is None or mode.name != "trace":
        mode = mode_of(leaves)
    run: _TapeRun | _TraceRun
    if mode.name == "trace":
        run = _TraceRun(leaves, mode)
        f = getattr(mode, "converted", _same)(f)
    else:
        everything = pytree.flatten((args, kwargs))[0]
        run = _TapeRun(leaves, any(type(x) is Tensor for x in everything))
    ran = _Ran(run, None, None, structures, None, counts)
    try:
        called = list(args)
        for i, tree in zip(which, ran.rebuild(run.tensors()), strict=True):
            called[i] = tree
        out = f(*called, **kwargs)
        if has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise GradientError(describe(f"{what} with has_aux=True needs a function that returns (output, aux)"))
            out, ran.aux = out
        outputs, ran.out_tree = pytree.flatten(out)
        for leaf in outputs:
            _type_of(leaf, "a result", what)
        run.finish(outputs)
    finally:
        run.close()
    ran.out = pytree.unflatten(ran.out_tree, [run.result(i) for i in range(len(outputs))])
    if has_aux and isinstance(run, _TapeRun):
        found, structure = pytree.flatten(ran.aux)
        ran.aux = pytree.unflatten(structure, [_detached(run, x) for x in found])
    return ran


def _same(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


def _detached(run: _TapeRun, x: Any) -> Any:
    """An auxiliary result: no gradient of this run flows through it."""
    return run.shown(read(x), read(x).array) if type(x) is Tensor and x._storage.mode is TAPE else x


def _type_of(x: Any, name: str, what: str) -> TensorType:
    if type(x) is Tensor:
        return x.type
    if isinstance(x, (np.ndarray, np.generic, bool, int, float)):
        t = type_of_array(x)
        if t.dtype.kind in "biuf":
            return t
        raise GradientError(describe(f"{what}: {name} has the dtype {t.dtype}, which holds no real numbers"))
    remedy = "arguments and results are arrays, numbers, and tuples, lists, dicts or dataclasses of them"
    raise GradientError(describe(f"{what}: {name} is a {type(x).__name__}, no array and no number", remedy=remedy))


# --- gradients --------------------------------------------------------------------------------------------------------


def _positions(argnums: Argnums, count: int, what: str) -> list[int]:
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for i in numbers:
        if not -count <= i < count:
            remedy = "gradients are for positional arguments: pass it by position, or correct argnums"
            raise GradientError(describe(f"{what}: argnums names argument {i}, but {count} were given", remedy=remedy))
    return [i % count for i in numbers]


def _dressed(g: Callable[..., Any], f: Callable[..., Any], verb: str) -> Callable[..., Any]:
    """`g`, named after `f`; jitted as `f` is."""
    name = getattr(f, "__name__", type(f).__name__)
    g.__name__ = g.__qualname__ = f"{verb}_{name}"
    g.__doc__ = f"The {verb} of `{name}`."
    g.__module__ = getattr(f, "__module__", __name__)
    rejit = getattr(f, "__jitgraph_rejit__", None)
    return g if rejit is None else rejit(g)  # type: ignore[no-any-return]


def _python(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function to differentiate: of a jitted one, what it wraps (the gradient is jitted in its place)."""
    return f.__wrapped__ if hasattr(f, "__jitgraph_rejit__") else f  # type: ignore[attr-defined,no-any-return]


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
    inner = _python(f)

    def run(*args: Any, **kwargs: Any) -> Any:
        what = "grad"
        ran = _run(inner, args, kwargs, _positions(argnums, len(args), what), has_aux, what)
        types = ran.run.output_types()
        if len(types) != 1:
            remedy = "return one float; other results go through has_aux=True: return loss, others"
            raise GradientError(describe(f"grad needs a scalar output, got {len(types)} results", remedy=remedy))
        graph.require_scalar(types[0])
        trees = ran.rebuild(ran.run.pull(ran.run.seeds()))
        gradient = trees[0] if isinstance(argnums, int) else tuple(trees)
        return ((ran.out, ran.aux) if has_aux else ran.out), gradient

    return _dressed(run, f, "value_and_grad")


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that answers the gradient of `f`; with `has_aux` the pair (gradient, aux). See `value_and_grad`."""
    both = value_and_grad(_python(f), argnums, has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return _dressed(run, f, "grad")


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(f(*primals), pullback) where pullback(cotangent) is a tuple of gradients, one for each primal.

    The cotangent has the structure and the shapes of the output. With `has_aux`: (output, pullback, aux).

    Raises:
        GradientError: a primal holds integers; the cotangent does not fit.
    """
    ran = _run(_python(f), primals, {}, range(len(primals)), has_aux, "vjp")

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        return tuple(ran.rebuild(ran.run.pull(_fitting(ran, cotangent))))

    return (ran.out, pullback, ran.aux) if has_aux else (ran.out, pullback)


def _fitting(ran: _Ran, cotangent: Any) -> list[Any]:
    """The leaves of a cotangent as values of the run; None for outputs that are no floats."""
    leaves, structure = pytree.flatten(cotangent)
    types = ran.run.output_types()
    if structure != ran.out_tree or len(leaves) != len(types):
        raise GradientError(describe(f"the cotangent has the structure {structure}, the output {ran.out_tree}"))
    found = []
    for leaf, t in zip(leaves, types, strict=True):
        given = _type_of(leaf, "the cotangent", "vjp")
        if given.shape != t.shape:
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
    primals, tangents = tuple(primals), tuple(tangents)
    if len(primals) != len(tangents):
        raise GradientError(f"jvp needs one tangent for each primal, got {len(primals)} and {len(tangents)}")
    given = [pytree.flatten(p) for p in primals]
    directions = [pytree.flatten(t) for t in tangents]
    leaves: list[Any] = []
    for i, ((have, structure), (along, other)) in enumerate(zip(given, directions, strict=True)):
        if structure != other or len(have) != len(along):
            raise GradientError(f"the tangent of argument {i} has the structure {other}, the argument {structure}")
        for x, d in zip(have, along, strict=True):
            t, u = _type_of(x, f"argument {i}", "jvp"), _type_of(d, f"tangent {i}", "jvp")
            if t.shape != u.shape:
                raise GradientError(f"the tangent of argument {i}, {t}, is {u}: the shapes differ")
        leaves += along
    mode = current_mode()
    lifted = leaves
    if mode is not None and mode.name == "trace":  # in the block in front of what f emits
        lifted = [wrap(mode, read(x) if type(x) is Tensor and x._storage.mode is mode else mode.lift(x)) for x in leaves]
    ran = _run(_python(f), primals, {}, range(len(primals)), False, "jvp")
    types = [x.type for x in ran.run.inputs]
    seeds = [_cast(ran.run.lift(x), t) for x, t in zip(lifted, types, strict=True)]
    return ran.out, pytree.unflatten(ran.out_tree, ran.run.push(seeds))


def _cast(x: Any, t: TensorType) -> Any:
    """A tangent in the dtype of its primal, where that is free of charge (the passes cast the others)."""
    if isinstance(x, Node) and x.type.dtype != t.dtype and x.level == tape.UNTRACKED:
        return Node(np.asarray(x.array, t.dtype))
    return x


# --- Jacobians --------------------------------------------------------------------------------------------------------


def _basis(shape: Sequence[Any], dtype: np.dtype, what: str) -> list[np.ndarray]:
    if not all(isinstance(d, int) for d in shape):
        remedy = "call it outside of jit, or fix the sizes with specialize='shape'"
        raise GradientError(describe(f"{what} needs known sizes, got {tuple(shape)}", remedy=remedy))
    size = int(np.prod(shape)) if shape else 1
    return list(np.eye(size, dtype=dtype).reshape(size, *shape))


def jacrev(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that answers the Jacobian of `f`, of shape output.shape + argument.shape, by one reverse sweep a row."""

    def run(*args: Any, **kwargs: Any) -> Any:
        which = _positions(argnums, len(args), "jacrev")
        ran = _run(_python(f), args, kwargs, which, False, "jacrev")
        (t,) = _one_output(ran, "jacrev")
        rows = [ran.rebuild(ran.run.pull([ran.run.lift(e)])) for e in _basis(t.shape, t.dtype, "jacrev")]
        trees = []
        for k in range(len(which)):
            flat = [pytree.flatten(row[k]) for row in rows]
            stacked = [_stack([leaves[j] for leaves, _ in flat], t.shape) for j in range(len(flat[0][0]))]
            trees.append(pytree.unflatten(flat[0][1], stacked))
        return trees[0] if isinstance(argnums, int) else tuple(trees)

    return _dressed(run, f, "jacrev")


def jacfwd(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that answers the Jacobian of `f`, of shape output.shape + argument.shape, by one pass a column."""

    def run(*args: Any, **kwargs: Any) -> Any:
        (i,) = _positions(argnums, len(args), "jacfwd")
        x = args[i]
        t = _type_of(x, f"argument {i}", "jacfwd")
        graph.require_float(t, f"argument {i}", "jacfwd")

        def of_one(value: Any) -> Any:
            return _python(f)(*args[:i], value, *args[i + 1 :], **kwargs)

        columns = [jvp(of_one, (x,), (e,))[1] for e in _basis(t.shape, t.dtype, "jacfwd")]
        flat = [pytree.flatten(c) for c in columns]
        leaves = []
        for k in range(len(flat[0][0])):
            parts = [found[k] for found, _ in flat]
            shape = np.shape(parts[0])
            moved = np.moveaxis(np.stack(parts), 0, -1) if shape else np.stack(parts)
            leaves.append(moved.reshape((*shape, *t.shape)))
        return pytree.unflatten(flat[0][1], leaves)

    return _dressed(run, f, "jacfwd")


def hessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that answers the matrix of second derivatives of a scalar `f`: forward over reverse."""
    return jacfwd(grad(f, argnums), argnums)


def _one_output(ran: _Ran, what: str) -> list[TensorType]:
    types = ran.run.output_types()
    if len(types) != 1 or types[0].dtype.kind != "f":
        raise GradientError(describe(f"{what} needs one float output, got {len(types)} results"))
    return types


def _stack(rows: Sequence[Any], shape: Sequence[Any]) -> Any:
    stacked = np.stack(rows)
    return stacked.reshape((*shape, *stacked.shape[1:]))


# --- tests of gradients -----------------------------------------------------------------------------------------------


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
            np.testing.assert_allclose(_array(found), wanted, rtol, atol, err_msg=f"{path}jvp differs from the differences")
    if "rev" in modes:
        out, pullback = vjp(f, *args)
        outputs, out_tree = pytree.flatten(out)
        weights = check.directions([_array(x).shape for x in outputs], seed=len(path) + 7)
        cotangent = pytree.unflatten(
            out_tree, [w.astype(_array(x).dtype)[()] for w, x in zip(weights, outputs, strict=True)]
        )
        gradients = [_array(g) for g in pytree.flatten(pullback(cotangent))[0]]
        found, wanted = check.inner(gradients, along), check.inner(weights, expected)
        size = 1.0 + sum(float(np.sum(np.abs(w * e))) for w, e in zip(weights, expected, strict=True))
        np.testing.assert_allclose(found, wanted, rtol, atol * size, err_msg=f"{path}vjp differs from the differences")
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
    return tuple(
        pytree.unflatten(structure, [np.asarray(d, x.dtype)[()] for d, x in zip(along, leaves, strict=True)])
    )


def _pulled(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    out, pullback = vjp(f, *args)
    leaves, structure = pytree.flatten(out)
    return pullback(pytree.unflatten(structure, [np.ones(np.shape(x), x.dtype)[()] for x in leaves]))
