"""A run of a function that can be differentiated: on the tape, or in line in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

import numpy as np

from jitgraph import pytree
from jitgraph.errors import GradientError, describe
from jitgraph.ir.builder import Undecided
from jitgraph.ir.graph import Value
from jitgraph.ir.types import TensorType
from jitgraph.records import dataclass
from jitgraph.tensor import EAGER, Storage, Tensor, current_mode, make, mode_of, read, type_of_array, wrap
from jitgraph.transforms import graph, tape
from jitgraph.transforms.tape import TAPE, Node
from jitgraph.transforms.vjp import ones, zeros

#: call(f, *args, **kwargs): how user functions are called.
Call: TypeAlias = Callable[..., Any]


class TapeRun:
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

    def input_types(self) -> list[TensorType]:
        return [x.type for x in self.inputs]

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
        if type(like) is float:
            data = float(data)
        return make(Storage(EAGER, data)) if self.as_tensors else data

    def result(self, i: int) -> Any:
        return self.shown(self.outputs[i], self.outputs[i].array)

    @staticmethod
    def _value(x: Any) -> Any:
        if type(x) is not Tensor:
            return x
        return read(x)


class TraceRun:
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

    def input_types(self) -> list[TensorType]:
        return [x.type for x in self.inputs]

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
class Ran:
    """A run of a function that can be differentiated.

    Attributes:
        out: what the function returned (without the auxiliary part), as users get it.
        aux: the auxiliary part.
        in_trees, out_tree: how the flat inputs and outputs stand in the arguments and the result.
    """

    run: TapeRun | TraceRun
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


def trace_mode(leaves: Sequence[Any]) -> Any:
    """The mode of the trace that runs or that a leaf belongs to; None outside."""
    mode = current_mode()
    if mode is None or mode.name != "trace":
        mode = mode_of(leaves)
    return mode if mode.name == "trace" else None


def shapes_agree(a: TensorType, b: TensorType, mode: Any) -> bool:
    """Whether two shapes are equal; in a trace perhaps under a guard."""
    if mode is None or a.shape == b.shape:
        return a.shape == b.shape
    try:
        return a.ndim == b.ndim and all(mode.decide("==", m, n) for m, n in zip(a.shape, b.shape, strict=True))
    except Undecided:
        return False


def run_for(
    call: Call,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    which: Sequence[int],
    has_aux: bool,
    what: str,
) -> Ran:
    """Run `f` on `args`, of which `which` are differentiated; `what` is asked for, for errors."""
    leaves: list[Any] = []
    structures, counts = [], []
    for i in which:
        found, structure = pytree.flatten(args[i])
        for k, leaf in enumerate(found):
            name = f"argument {i}" if len(found) == 1 else f"leaf {k} of argument {i}"
            graph.require_float(type_of(leaf, name, what), name, what)
        leaves += found
        structures.append(structure)
        counts.append(len(found))
    mode = trace_mode(leaves)
    run: TapeRun | TraceRun
    if mode is not None:
        run = TraceRun(leaves, mode)
    else:
        everything = pytree.flatten((args, kwargs))[0]
        run = TapeRun(leaves, any(type(x) is Tensor for x in everything))
    ran = Ran(run, None, None, structures, None, counts)
    try:
        called = list(args)
        for i, tree in zip(which, ran.rebuild(run.tensors()), strict=True):
            called[i] = tree
        out = call(f, *called, **kwargs)
        if has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise GradientError(describe(f"{what} with has_aux=True needs a function that returns (output, aux)"))
            out, ran.aux = out
        outputs, ran.out_tree = pytree.flatten(out)
        for leaf in outputs:
            type_of(leaf, "a result", what)
        run.finish(outputs)
    finally:
        run.close()
    ran.out = pytree.unflatten(ran.out_tree, [run.result(i) for i in range(len(outputs))])
    if has_aux and isinstance(run, TapeRun):
        found, structure = pytree.flatten(ran.aux)
        ran.aux = pytree.unflatten(structure, [_detached(run, x) for x in found])
    return ran


def call_plainly(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return f(*args, **kwargs)


def _detached(run: TapeRun, x: Any) -> Any:
    """An auxiliary result: no gradient of this run flows through it."""
    return run.shown(read(x), read(x).array) if type(x) is Tensor and x._storage.mode is TAPE else x


def type_of(x: Any, name: str, what: str) -> TensorType:
    if type(x) is Tensor:
        return x.type
    if isinstance(x, (np.ndarray, np.generic, bool, int, float)):
        t = type_of_array(x)
        if t.dtype.kind in "biuf":
            return t
        raise GradientError(describe(f"{what}: {name} has the dtype {t.dtype}, which holds no real numbers"))
    remedy = "arguments and results are arrays, numbers, and tuples, lists, dicts or dataclasses of them"
    raise GradientError(describe(f"{what}: {name} is a {type(x).__name__}, no array and no number", remedy=remedy))
