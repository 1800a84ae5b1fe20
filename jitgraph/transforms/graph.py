"""Gradients of parts of a graph, and of whole graphs: what runs under `jit`.

A gradient inside a traced function needs no graph of its own. Its function is traced in line, on `fresh` values for
its inputs; the ops emitted since then (a `Segment`) are what the sweeps go over, and what they emit goes into the same
block.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitgraph.errors import GradientError, describe
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Block, Graph, Op, Result, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import IndexMap, TensorType
from jitgraph.transforms import control as _control  # noqa: F401  # registers the rules of regions
from jitgraph.transforms.jvp import Forward
from jitgraph.transforms.vjp import Sweep, conform, is_differentiable, mark_active, ones, zeros


class Segment:
    """The ops that a builder emits into its block from now on."""

    def __init__(self, b: Builder) -> None:
        self.block: Block = b.block
        self.before = b.before
        self._border = b.block.last if b.before is None else b.before.prev

    def ops(self) -> list[Op]:
        """The ops emitted so far; those that a retried region withdrew are not among them."""
        found: list[Op] = []
        op = self.block.first if self._border is None else self._border.next
        while op is not None and op is not self.before:
            found.append(op)
            op = op.next
        return found


def fresh(b: Builder, value: Value) -> Value:
    """The same value as a new one: gradients with respect to it do not meet other uses of `value`."""
    t = value.type
    if t.kind == "array":
        return b.emit(REGISTRY["view"], [value], [t], {"map": IndexMap.identity(t.shape)}).results[0]
    return b.emit(REGISTRY["as_kind"], [value], [t], {"kind": t.kind}).results[0]


def vjp_of_ops(
    b: Builder, ops: Sequence[Op], inputs: Sequence[Value], outputs: Sequence[Value], cotangents: Sequence[Value | None]
) -> list[Value]:
    """Emit at `b` the cotangents of `inputs`, given those of `outputs`, through the ops of one block.

    Args:
        ops: what lies between, in order; loops among them are extended to record what the sweep needs.

    Returns:
        one for each input, of its shape, dtype and kind.

    Raises:
        TraceError: an op in the way has no gradient.
    """
    active = set(inputs)
    mark_active(ops, active)
    place = _aside(b)
    sweep = Sweep(place, active, set(inputs))
    for output, ct in zip(outputs, cotangents, strict=True):
        sweep.add(output, ct)
    sweep.run(ops)
    return [_finished(place, sweep.cotangents.get(x), x.type) for x in inputs]


def jvp_of_ops(
    b: Builder, ops: Sequence[Op], inputs: Sequence[Value], tangents: Sequence[Value | None], outputs: Sequence[Value]
) -> list[Value]:
    """Emit, behind each of `ops`, the tangents of its results; those of `outputs`, of their shapes, dtypes and kinds.

    Args:
        tangents: of `inputs`, made in front of `ops`; None: zero. Loops and branches among `ops` are extended in place.

    Raises:
        TraceError: an op in the way has no gradient.
    """
    given = {x: t for x, t in zip(inputs, tangents, strict=True) if t is not None}
    Forward(_aside(b), given).run(ops)
    place = _aside(b)
    return [_finished(place, given.get(x), x.type) for x in outputs]


def _aside(b: Builder) -> Builder:
    """A builder at the place of `b`, to be moved and located freely."""
    other = Builder(b.graph, b.block)
    other.before = b.before
    other.loc = b.loc if b.locate is None else b.locate()
    return other


def _finished(b: Builder, x: Value | None, t: TensorType) -> Value:
    if not is_differentiable(t):
        t = TensorType(t.dtype, t.shape)
    if x is None:
        x = zeros(b, t)
    x = conform(b, x, t)
    return x if x.type.kind == t.kind else b.as_kind(x, kind=t.kind)


def grad_graph(graph: Graph, wrt: Sequence[int]) -> Graph:
    """A graph that returns what `graph` returns and then the gradients of its first result.

    Args:
        graph: its first result is a float scalar made by the graph.
        wrt: numbers of float arguments.

    Returns:
        a new graph; its fresh results are those of `graph`, then one gradient for each of `wrt`.

    Raises:
        GradientError: the first result is no float scalar, or an argument of `wrt` is no float.
        TraceError: an op in the way has no gradient.
    """
    result = graph.clone()
    ops = [op for op in result.body.ops() if op is not result.body.last]
    last = result.body.terminator
    inputs = [result.args[i] for i in wrt]
    for i, x in zip(wrt, inputs, strict=True):
        require_float(x.type, f"argument {i}")
    fresh_count = len(last.operands) - len(last.attrs.get("mutates", ()))
    first = result.results[0] if result.results else Result("fresh", 0)
    output = last.operands[first.index] if first.how == "fresh" else result.args[first.index]
    require_scalar(output.type)
    b = Builder(result).ahead_of(last)
    gradients = vjp_of_ops(b, ops, inputs, [output], [ones(b, output.type)])
    last.set_operands([*last.operands[:fresh_count], *gradients, *last.operands[fresh_count:]])
    if result.results:
        result.results += [Result("fresh", fresh_count + k, tensor=first.tensor) for k in range(len(gradients))]
    return result


def require_scalar(t: TensorType, what: str = "grad") -> None:
    """The output of a gradient is one float.

    Raises:
        GradientError: it is not.
    """
    if t.shape:
        remedy = "reduce it first, e.g. with np.sum or np.mean; for all derivatives of an array use jg.jacrev or jg.vjp"
        raise GradientError(describe(f"{what} needs a scalar output, got {t}", remedy=remedy))
    if not is_differentiable(t):
        remedy = "return the float that is to be minimised"
        raise GradientError(describe(f"{what} needs a float output, got {t}", remedy=remedy))


def require_float(t: TensorType, name: str, what: str = "grad") -> None:
    """Gradients are with respect to floats.

    Raises:
        GradientError: `t` is an integer or bool.
    """
    if not is_differentiable(t):
        remedy = "convert it to floats, e.g. x.astype(float) or 2.0 for 2, or choose other arguments with argnums"
        raise GradientError(describe(f"{what} needs float inputs, but {name} is {t}", remedy=remedy))
