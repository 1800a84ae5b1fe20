"""The eager tape: nodes that hold arrays and remember how they were made; gradients over them evaluate at once.

A `Node` is a value and the operation that made it in one, so that a tape is freed by reference counting. Its attributes
are those the sweeps in `vjp` and `jvp` ask of an operation and of a value.
Laws:
1. A node's array is never written: `write` makes a new node (`Tensor` keeps the newest one as its storage's version).
2. `level` is the lowest level of the inputs that a node depends on: 1 for Tensors with `requires_grad`, one more for
   each running gradient function inside another; `UNTRACKED` for constants.
3. A sweep for inputs of level k records its own operations only if what it meets depends on a lower level too: only
   those who ask for gradients of gradients pay for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from jitgraph.errors import GradientError, describe
from jitgraph.ir.dims import DimLike
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.opdef import REGISTRY, OpDef
from jitgraph.ir.types import IndexMap, Kind, Shape, TensorType, python_type
from jitgraph.transforms.jvp import Forward
from jitgraph.transforms.vjp import Sweep, mark_active, ones

UNTRACKED = 1 << 30
_serials = itertools.count()
_recording: ContextVar[bool] = ContextVar("jitgraph_recording", default=True)
_depth: ContextVar[int] = ContextVar("jitgraph_gradient_depth", default=1)
_PYTHON_KINDS: dict[type, Kind] = {bool: "py_bool", int: "py_int", float: "py_float", complex: "py_complex"}


class Node:
    """A value of the tape: an ndarray, NumPy scalar or Python number, and the operation that made it (if recorded).

    Attributes:
        gradient: what `backward()` accumulated, for a leaf and for a node with `retained`.
        serial: increases with time, so that sorting by it sorts topologically.
    """

    __slots__ = ("_group", "_type", "array", "attrs", "defn", "gradient", "level", "operands", "retained", "serial")

    #: As an operation of the tape, it has no regions.
    regions: tuple[()] = ()

    def __init__(
        self,
        array: Any,
        level: int = UNTRACKED,
        defn: OpDef | None = None,
        operands: Sequence[Node] = (),
        attrs: dict[str, Any] | None = None,
    ) -> None:
        self.array = array
        self.level = level
        self.defn: Any = defn
        self.operands = operands
        self.attrs = attrs or {}
        self.gradient: np.ndarray | None = None
        self.retained = False
        self.serial = next(_serials)
        self._group: tuple[Node, ...] | None = None
        self._type: TensorType | None = None

    @property
    def type(self) -> TensorType:
        t = self._type
        if t is None:
            t = self._type = _type_of(self.array)
        return t

    @property
    def results(self) -> tuple[Node, ...]:
        """The results of the operation that made this node: itself, unless that has several."""
        return (self,) if self._group is None else self._group

    @property
    def producer(self) -> Node | None:
        """The operation that made this node; None for an input."""
        return None if self.defn is None else self

    @property
    def name(self) -> str:
        """The name of the operation."""
        return "" if self.defn is None else self.defn.name

    def __repr__(self) -> str:
        return f"<{self.name or 'input'}: {self.type}>"


def _type_of(x: Any) -> TensorType:
    if isinstance(x, np.ndarray):
        if x.flags.c_contiguous:
            return _dense_type(x.dtype, x.shape, "array")
        return TensorType(x.dtype, x.shape, "array", layout_of(x.shape, x.strides, x.itemsize))
    if isinstance(x, np.generic):
        return _dense_type(x.dtype, (), "np_scalar")
    return python_type(_PYTHON_KINDS[type(x)])


@lru_cache(maxsize=4096)
def _dense_type(dtype: np.dtype, shape: Shape, kind: Kind) -> TensorType:
    return TensorType(dtype, shape, kind)


class EagerBuilder:
    """What gradient rules call `b`, evaluating at once: `b.mul(ct, x)` is a node with NumPy's product.

    Args:
        record: whether nodes remember their operands, so that gradients of gradients can be taken.
    """

    def __init__(self, record: bool = False) -> None:
        self.record = record
        #: Operations made while `recorded` runs.
        self._log: list[Node] | None = None
        #: Set by the sweeps for graph builders.
        self.loc: Any = None

    def apply(self, defn: OpDef, *operands: Any, **attrs: Any) -> tuple[Node, ...]:
        """Evaluate one operator on nodes, arrays and numbers."""
        nodes = [x if type(x) is Node else self.constant(x) for x in operands]
        out = defn.evaluate(*[n.array for n in nodes], **attrs)
        level = UNTRACKED
        if self.record:
            for n in nodes:
                level = min(level, n.level)
        if level == UNTRACKED and self._log is None:
            return tuple(Node(x) for x in out) if isinstance(out, tuple) else (Node(out),)
        if not isinstance(out, tuple):
            made: tuple[Node, ...] = (Node(out, level, defn, nodes, attrs),)
        else:
            made = tuple(Node(x, level, defn, nodes, attrs) for x in out)
            if len(made) > 1:
                for node in made:
                    node._group = made
        if self._log is not None:
            self._log.append(made[0])
        return made

    def constant(self, value: Any) -> Node:
        """A number or an array that depends on nothing; rules see a number's value in `producer.attrs`."""
        return Node(value, UNTRACKED, REGISTRY["constant"], (), {"value": value})

    def recorded(self, run: Callable[[], Any]) -> tuple[Any, list[Node]]:
        """What `run` returns, and the operations that it made."""
        outer, self._log = self._log, []
        try:
            return run(), self._log
        finally:
            if outer is not None:
                outer += self._log
            self._log = outer

    def __getattr__(self, name: str) -> Callable[..., Any]:
        defn = REGISTRY.get(name)
        if defn is None:
            raise AttributeError(f"no operator {name!r}")

        def call(*operands: Any, **attrs: Any) -> Any:
            results = self.apply(defn, *operands, **attrs)
            return results[0] if len(results) == 1 else results

        return call


# --- gradients over recorded nodes ------------------------------------------------------------------------------------


def history(outputs: Sequence[Node]) -> list[Node]:
    """The recorded operations that `outputs` depend on, in the order in which they were made."""
    seen: set[Node] = set()
    found: list[Node] = []
    work = [n for n in outputs if n.level < UNTRACKED]
    while work:
        node = work.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.defn is not None:
            head = node.results[0]
            if head is node or head not in seen:
                found.append(head)
                seen.add(head)
            work += [x for x in node.operands if x.level < UNTRACKED and x not in seen]
    found.sort(key=_serial)
    return found


def _serial(node: Node) -> int:
    return node.serial


def pull_back(
    outputs: Sequence[Node],
    cotangents: Sequence[Node | None],
    inputs: Sequence[Node],
    level: int = 1,
    keep: Collection[Node] = (),
) -> tuple[list[Node | None], dict[Node, Node]]:
    """Cotangents of `inputs` from those of `outputs`: one reverse sweep.

    Args:
        level: that of the gradient function the sweep is for.
        keep: intermediate nodes whose cotangents are wanted too.

    Returns:
        the cotangents (None: zero), and those of the nodes in `keep`.
    """
    ops = history(outputs)
    active = set(inputs)
    mark_active(ops, active)
    sweep = Sweep(_builder_below(level, [*ops, *(ct for ct in cotangents if ct is not None)]), active, {*keep, *inputs})
    with np.errstate(all="ignore"):
        for output, ct in zip(outputs, cotangents, strict=True):
            sweep.add(output, ct)
        sweep.run(ops)
    return [sweep.cotangents.get(x) for x in inputs], {x: sweep.cotangents[x] for x in keep if x in sweep.cotangents}


def push_forward(
    outputs: Sequence[Node], inputs: Sequence[Node], tangents: Sequence[Node | None], level: int
) -> list[Node | None]:
    """Tangents of `outputs` from those of `inputs`: one forward pass over the tape."""
    ops = history(outputs)
    given = {x: t for x, t in zip(inputs, tangents, strict=True) if t is not None}
    forward = Forward(_builder_below(level, [*ops, *given.values()]), given)
    with np.errstate(all="ignore"):
        forward.run(ops)
    return [forward.tangents.get(x) for x in outputs]


def _builder_below(level: int, nodes: Sequence[Node]) -> EagerBuilder:
    """A builder that records if one of the nodes depends on inputs of a lower level than `level`."""
    return EagerBuilder(record=any(n.level < level for n in nodes))


# --- the mode of Tensors ----------------------------------------------------------------------------------------------


class TapeMode:
    """Carries out operators of Tensors on nodes, and remembers them. The interface is `tensor.TapeMode`."""

    name = "tape"

    def apply(self, defn: OpDef, values: Sequence[Node], attrs: dict[str, Any]) -> tuple[Node, ...]:
        return (_RECORDER if _recording.get() else _EVALUATOR).apply(defn, *values, **attrs)

    def view(self, value: Node, step: IndexMap | Shape | str | np.dtype) -> Node:
        """`value` seen through one affine map, or reshaped."""
        if isinstance(step, str):  # a part of complex numbers, which have no gradient
            return self.apply(REGISTRY[step], [value], {})[0]
        if isinstance(step, np.dtype):
            raise GradientError(describe("no gradient flows through memory read as another dtype"))
        if isinstance(step, IndexMap):
            return self.apply(REGISTRY["view"], [value], {"map": step})[0]
        return self.apply(REGISTRY["reshape"], [value], {"shape": step})[0]

    def write(self, base: Node, steps: Sequence[IndexMap | Shape | str | np.dtype], value: Node) -> Node:
        """The next version of a storage at version `base`, with `value` written through the chain of views."""
        seen = [base]
        for step in steps[:-1]:
            seen.append(self.view(seen[-1], step))
        for inner, step in zip(reversed(seen), reversed(steps or ((),)), strict=True):
            if not steps:
                step = IndexMap.identity(inner.type.shape)
            if isinstance(step, IndexMap):
                value = self.apply(REGISTRY["write"], [value, inner], {"map": step})[0]
            else:
                value = self.apply(REGISTRY["reshape"], [value], {"shape": inner.type.shape})[0]
        return value

    def type_of(self, value: Node) -> TensorType:
        return value.type

    def lift(self, x: Any) -> Node:
        return x if type(x) is Node else _EVALUATOR.constant(x)

    def decide(self, relation: str, a: DimLike, b: DimLike) -> bool:
        return bool(_RELATIONS[relation](a, b))

    def leaf(self, array: Any, level: int = 1) -> Node:
        """A node for which gradients are accumulated."""
        return Node(array, level)

    def data(self, value: Node) -> Any:
        return value.array

    def requires_grad(self, value: Node) -> bool:
        return value.level < UNTRACKED

    def retain(self, value: Node) -> None:
        """Let `backward()` leave the gradient of this intermediate node in it."""
        value.retained = True

    def backward(self, value: Node, gradient: Any = None) -> None:
        """Add the gradients of `value` to `gradient` of the leaves that it depends on, and of retained nodes.

        Raises:
            GradientError: `value` depends on no leaf; no gradient is given and `value` is no scalar; a wrong shape.
        """
        t = value.type
        if value.level == UNTRACKED:
            remedy = "make the inputs with jg.Tensor(data, requires_grad=True), and compute outside of no_grad()"
            raise GradientError(
                describe("backward() of a value that depends on no Tensor that requires a gradient", remedy=remedy)
            )
        if gradient is None:
            if t.shape:
                raise GradientError(describe(f"backward() needs a scalar, got {t}", remedy=BACKWARD_REMEDY))
            seed = ones(_EVALUATOR, t)
        else:
            seed = Node(np.asarray(gradient, t.dtype))
            if seed.type.shape != t.shape:
                raise GradientError(f"backward() of {t} was given a gradient of shape {seed.type.shape}")
        ops = history([value])
        leaves = {x: None for op in ops for x in op.operands if x.defn is None and x.level < UNTRACKED}
        if value.defn is None:
            leaves[value] = None
        retained = [r for op in ops for r in op.results if r.retained]
        found, kept = pull_back([value], [seed], list(leaves), keep=retained)
        for leaf, ct in (*zip(leaves, found, strict=True), *kept.items()):
            if ct is not None:
                total = ct.array if leaf.gradient is None else leaf.gradient + ct.array
                leaf.gradient = np.array(total, leaf.type.dtype)

    def grad(self, leaf: Node) -> np.ndarray | None:
        return leaf.gradient

    def set_grad(self, leaf: Node, gradient: Any) -> None:
        leaf.gradient = None if gradient is None else np.asarray(gradient, leaf.type.dtype)


BACKWARD_REMEDY = "pass the cotangent, backward(gradient), or reduce to a scalar first, e.g. with sum()"
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_RECORDER = EagerBuilder(record=True)
_EVALUATOR = EagerBuilder()
TAPE = TapeMode()


@contextmanager
def no_grad() -> Iterator[None]:
    """Within, nothing is recorded: results do not require gradients."""
    yield from _switch(False)


@contextmanager
def enable_grad() -> Iterator[None]:
    """Within, operators are recorded, also inside `no_grad()`."""
    yield from _switch(True)


def _switch(on: bool) -> Iterator[None]:
    token = _recording.set(on)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def gradient_level() -> Iterator[int]:
    """The level for inputs of a gradient function that runs within; recording is on."""
    depth = _depth.set(_depth.get() + 1)
    recording = _recording.set(True)
    try:
        yield _depth.get()
    finally:
        _recording.reset(recording)
        _depth.reset(depth)


def fresh_input(value: Any, level: int) -> Node:
    """A distinct node for an input of a gradient function: gradients of outer functions still flow through it."""
    if type(value) is not Node:
        return Node(value, level)
    if value.level == UNTRACKED:
        return Node(value.array, level)
    t = value.type
    attrs: dict[str, Any] = {"map": IndexMap.identity(t.shape)} if t.shape else {"kind": t.kind}
    defn = REGISTRY["view" if t.shape else "as_kind"]
    return Node(value.array, min(level, value.level), defn, (value,), attrs)
