"""Evaluation of graphs with NumPy, op by op: the oracle that passes and machine code are tested against.

Every value is what NumPy would hold: an array in its type's memory layout (so that sums round as NumPy's do), a NumPy
scalar or a Python number. Nothing is written in place: `write` copies.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgraph import errors
from jitgraph.errors import InternalError
from jitgraph.ir.dims import Dim, DimLike, evaluate
from jitgraph.ir.graph import Block, Graph, Op, Site, Value
from jitgraph.ir.layouts import extent
from jitgraph.ir.types import IndexMap, Layout, TensorType
from jitgraph.records import dataclass, field


class Deoptimise(Exception):  # noqa: N818 - no error: an instruction to run the call in plain Python
    """A check of a "deoptimise" site failed: its message, and perhaps its number."""


Host = Callable[..., Any]


def interpret(
    graph: Graph, args: Sequence[Any], hosts: Mapping[int, Host] | None = None
) -> tuple[list[Any], list[Any]]:
    """Evaluate `graph` on `args` (hidden arguments included).

    Args:
        hosts: the Python function behind each site that a `host_call` names.

    Returns:
        the fresh results, and the final values of the arguments that `return` says are mutated.

    Raises:
        the exception of a check that fails; Deoptimise for a "deoptimise" site.
        InternalError: a guard of the graph does not hold for `args`, or their types do not fit.
    """
    run = Evaluation(graph, hosts or {})
    run.bind_arguments(args)
    with np.errstate(all="ignore"):
        returned = run.block(graph.body, [run.env[a] for a in graph.args])
    mutated = len(graph.body.terminator.attrs.get("mutates", ()))
    fresh = len(returned) - mutated
    return returned[:fresh], returned[fresh:]


def exception_of(site: Site, message: str, values: Sequence[Any] = (), number: int | None = None) -> BaseException:
    """The exception a site names: a class of the user's, a builtin or a class of `jitgraph.errors`."""
    error = site.error
    if error == "deoptimise":
        return Deoptimise(message, number)
    if isinstance(site.call, errors.Recipe):
        return site.call.make(values)
    found = getattr(errors, error, None) or getattr(builtins, error, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise InternalError(f"a site names {error!r}, which is no exception")
    return found(message)


def apply_map(base: np.ndarray, m: IndexMap) -> np.ndarray:
    """The view of `base` that a map with constant sizes describes; it shares memory and may be written.

    Raises:
        InternalError: the map leaves `base`.
    """
    shape: tuple[int, ...] = m.shape  # type: ignore[assignment]  # sizes are constants here
    strides = [0] * len(shape)
    offset = 0
    empty = 0 in shape
    for axis, a in enumerate(m.axes):
        assert isinstance(a.offset, int)
        assert isinstance(a.step, int)
        last = a.offset if a.axis is None else a.offset + a.step * (shape[a.axis] - 1)
        if not empty and not (0 <= a.offset < base.shape[axis] and 0 <= last < base.shape[axis]):
            raise InternalError(f"the view {m} leaves its base of shape {base.shape}")
        offset += a.offset * base.strides[axis]
        if a.axis is not None:
            strides[a.axis] += a.step * base.strides[axis]
    if empty:
        return np.empty(shape, base.dtype)
    interface = dict(base.__array_interface__)
    interface["data"] = (interface["data"][0] + offset, not base.flags.writeable)
    interface["shape"], interface["strides"] = shape, tuple(strides)
    return np.asarray(_Holder(interface, base))


class _Holder:
    """Gives memory to `np.asarray` and keeps its owner alive."""

    def __init__(self, interface: dict[str, Any], owner: np.ndarray) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def in_layout(array: np.ndarray, layout: Layout) -> np.ndarray:
    """`array`, copied if its memory order is not that of a dense `layout`."""
    if not layout.is_dense or (array.ndim < 2 and array.flags.c_contiguous):
        return array
    order = layout.order
    if array.transpose(order).flags.c_contiguous:
        return array
    out = np.empty([array.shape[k] for k in order], array.dtype).transpose(np.argsort(order))
    out[...] = array
    return out


def copy_alike(base: np.ndarray) -> np.ndarray:
    """A writable copy with the strides of `base` (gaps and signs included), unless some are zero."""
    if base.size == 0 or any(s == 0 and n > 1 for s, n in zip(base.strides, base.shape, strict=True)):
        return base.copy(order="K")
    spans = [s * (n - 1) for s, n in zip(base.strides, base.shape, strict=True)]
    low = sum(s for s in spans if s < 0)
    high = sum(s for s in spans if s > 0) + base.itemsize
    copy: np.ndarray = np.ndarray(base.shape, base.dtype, np.zeros(high - low, np.uint8), -low, base.strides)
    copy[...] = base
    return copy


def as_kind(x: Any, t: TensorType) -> Any:
    """`x` as a value of type `t` is held: array in its layout, NumPy scalar or Python number."""
    if t.kind == "array":
        return in_layout(np.asarray(x, t.dtype), t.layout)
    number = x[()] if isinstance(x, np.ndarray) else x
    if t.kind in ("np_scalar", "maybe_np_float"):
        return np.asarray(number).astype(t.dtype)[()]
    return number.item() if isinstance(number, np.generic) else number


@dataclass(slots=True)
class Evaluation:
    """State of evaluating one graph: the values and symbols known so far."""

    graph: Graph
    hosts: Mapping[int, Host]
    env: dict[Value, Any] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)

    def bind_arguments(self, args: Sequence[Any]) -> None:
        g = self.graph
        if len(args) != len(g.args):
            raise InternalError(f"{g.name} takes {len(g.args)} arguments, {len(args)} given")
        for value, x in zip(g.args, args, strict=True):
            if value.type.kind == "array":
                x = np.asarray(x)
                if x.dtype != value.type.dtype or x.ndim != value.type.ndim:
                    raise InternalError(f"argument {value.name}: {value.type} expected, {x.dtype}{x.shape} given")
            self.env[value] = x if value.type.kind == "array" else as_kind(x, value.type)
        for s in g.symbols.values():
            if s.origin == "arg":
                self.symbols[s.name] = extent(np.asarray(self.env[g.args[s.arg]]), s.axis)
        for value in g.args:
            expected = tuple(self.size(d) for d in value.type.shape)
            if np.shape(self.env[value]) != expected:
                raise InternalError(
                    f"argument {value.name}: shape {expected} expected, {np.shape(self.env[value])} given"
                )
        for guard in g.guards:
            left, right = self.size(guard.left), self.size(guard.right)
            holds = {"==": left == right, "!=": left != right, ">=": left >= right, "<": left < right}[guard.relation]
            if not holds:
                raise InternalError(f"the guard {guard} does not hold: {left} and {right}")

    def size(self, d: DimLike) -> int:
        return evaluate(d, self.symbols)

    def resolved(self, attr: Any) -> Any:
        """The attribute with every size evaluated."""
        if isinstance(attr, Dim):
            return self.size(attr)
        if isinstance(attr, IndexMap):
            return attr.substitute(dict(self.symbols))
        if isinstance(attr, tuple):
            return tuple(self.resolved(a) for a in attr)
        return attr

    def block(self, block: Block, args: Sequence[Any]) -> list[Any]:
        """Run a block; the operands of its terminator."""
        self.env.update(zip(block.args, args, strict=True))
        for op in block.ops():
            for result, x in zip(op.results, self.step(op), strict=True):
                self.env[result] = x
        return [self.env[v] for v in block.terminator.operands]

    def step(self, op: Op) -> Sequence[Any]:
        """The results of one op, whose operands are in `env`."""
        return _STEPS.get(op.name, _evaluate)(self, op)

    def operands(self, op: Op) -> list[Any]:
        return [self.env[v] for v in op.operands]


def _evaluate(run: Evaluation, op: Op) -> Sequence[Any]:
    attrs = {key: run.resolved(value) for key, value in op.attrs.items()}
    out = op.defn.evaluate(*run.operands(op), **attrs)
    outs = out if isinstance(out, (tuple, list)) else (out,)
    if "symbol" in op.attrs and op.name != "bind":
        run.symbols[op.attrs["symbol"]] = len(outs[0])
    return [as_kind(x, r.type) for x, r in zip(outs, op.results, strict=True)]


def _constant(_run: Evaluation, op: Op) -> Sequence[Any]:
    value = op.attrs["value"]
    return [value if op.result.type.kind == "array" else as_kind(value, op.result.type)]


def _dim(run: Evaluation, op: Op) -> Sequence[Any]:
    return [as_kind(run.size(op.attrs["value"]), op.result.type)]


def _bind(run: Evaluation, op: Op) -> Sequence[Any]:
    run.symbols[op.attrs["symbol"]] = int(run.env[op.operands[0]])
    return ()


def _view(run: Evaluation, op: Op) -> Sequence[Any]:
    return [apply_map(np.asarray(run.env[op.operands[0]]), run.resolved(op.attrs["map"]))]


def _reshape(run: Evaluation, op: Op) -> Sequence[Any]:
    return [as_kind(np.reshape(run.env[op.operands[0]], run.resolved(op.attrs["shape"])), op.result.type)]


def _write(run: Evaluation, op: Op) -> Sequence[Any]:
    value, base = run.operands(op)
    updated = copy_alike(np.asarray(base))
    target = apply_map(updated, run.resolved(op.attrs["map"]))
    if np.shape(value) != target.shape:
        value = np.broadcast_to(value, target.shape)
    np.copyto(target, value, casting="unsafe")
    return [updated]


def _full(run: Evaluation, op: Op) -> Sequence[Any]:
    t = op.result.type
    filled = np.full(run.resolved(op.attrs["shape"]), run.env[op.operands[0]], t.dtype)
    return [as_kind(filled, t)]


def _empty(run: Evaluation, op: Op) -> Sequence[Any]:
    return [np.zeros(run.resolved(op.attrs["shape"]), op.attrs["dtype"])]


def _for(run: Evaluation, op: Op) -> Sequence[Any]:
    carried = run.operands(op)
    bounds = range(run.size(op.attrs["lower"]), run.size(op.attrs["upper"]), run.size(op.attrs["step"]))
    for i in bounds:
        run.symbols[op.attrs["index"]] = i
        carried = run.block(op.regions[0], carried)
    return carried


def _while(run: Evaluation, op: Op) -> Sequence[Any]:
    carried = run.operands(op)
    test, body = op.regions
    while run.block(test, carried)[0]:
        carried = run.block(body, carried)
    return carried


def _cond(run: Evaluation, op: Op) -> Sequence[Any]:
    return run.block(op.regions[0 if run.env[op.operands[0]] else 1], ())


def _switch(run: Evaluation, op: Op) -> Sequence[Any]:
    cases, number = op.attrs["cases"], int(run.env[op.operands[0]])
    return run.block(op.regions[cases.index(number) if number in cases else -1], ())


def _kernel(run: Evaluation, op: Op) -> Sequence[Any]:
    return run.block(op.regions[0], run.operands(op))


def _check(run: Evaluation, op: Op) -> Sequence[Any]:
    condition, *values = run.operands(op)
    holds = np.asarray(condition)
    if not holds.all():
        site = run.graph.sites[op.attrs["site"]]
        at = tuple(np.argwhere(~np.broadcast_to(holds, holds.shape))[0]) if holds.ndim else ()
        shown = [np.broadcast_to(v, holds.shape)[at] if holds.ndim else v for v in values]
        raise exception_of(site, site.message.format(*shown), shown, op.attrs["site"])
    return ()


def _raise(run: Evaluation, op: Op) -> Sequence[Any]:
    site = run.graph.sites[op.attrs["site"]]
    raise exception_of(site, site.message.format(*run.operands(op)), run.operands(op), op.attrs["site"])


def _host_call(run: Evaluation, op: Op) -> Sequence[Any]:
    site = op.attrs["site"]
    if site not in run.hosts:
        raise InternalError(f"no Python function for the host call of site {site}")
    out = run.hosts[site](*run.operands(op))
    if not op.results:
        return ()
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for result, x in zip(op.results, outs, strict=True):
        for d, n in zip(result.type.shape, np.shape(x), strict=True):
            if isinstance(d, Dim) and str(d) in op.attrs.get("binds", ()):
                run.symbols[str(d)] = n
    return [as_kind(x, r.type) for x, r in zip(outs, op.results, strict=True)]


def _nothing(_run: Evaluation, _op: Op) -> Sequence[Any]:
    return ()


_STEPS: dict[str, Callable[[Evaluation, Op], Sequence[Any]]] = {
    "constant": _constant,
    "dim": _dim,
    "bind": _bind,
    "view": _view,
    "reshape": _reshape,
    "write": _write,
    "full": _full,
    "empty": _empty,
    "for": _for,
    "while": _while,
    "cond": _cond,
    "switch": _switch,
    "kernel": _kernel,
    "check": _check,
    "raise": _raise,
    "host_call": _host_call,
    "yield": _nothing,
    "return": _nothing,
}
