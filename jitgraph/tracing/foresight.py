"""What a bool of the graph is for the call that is traced: the way that this call takes is the one to trace first.

Only a guess: the compiled code checks it as any assumption. So what would cost too much, or has effects, is left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from jitgraph import errors
from jitgraph.ir.graph import Graph, Op, Value
from jitgraph.ir.interpret import Evaluation, as_kind
from jitgraph.ir.layouts import extent
from jitgraph.ir.opdef import Trait
from jitgraph.ir.transform import op_symbols
from jitgraph.tensor import plain

#: Most operators of one trace that are computed, and most elements of their results.
_MOST_OPS: Final = 4000
_MOST_ELEMENTS: Final = 1 << 18
#: Operators of which nobody knows what they take.
_LOOPS: Final = frozenset(("for", "while", "host_call"))
_VIEWS: Final = frozenset(("view", "reshape"))
_REFUSED: Final = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError, errors.JitgraphError)


class Foresight:
    """Evaluates values of a graph on the arguments of the call, as far as they are asked for.

    Attributes:
        arguments: those of the graph, in order; more are found while tracing.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.arguments: list[Any] = []
        self._run = Evaluation(graph, {})
        self._known = 0
        self._ops = _MOST_OPS
        self._elements = _MOST_ELEMENTS

    def truth(self, flag: Value) -> bool | None:
        """Whether `flag` holds in this call; None if that is not worth knowing."""
        found = self._found(flag)
        return None if found is None else bool(found)

    def number(self, wanted: Value) -> Any:
        """What a scalar is in this call; None as above."""
        found = self._found(wanted)
        return None if found is None else np.asarray(found).item()

    def _found(self, wanted: Value) -> Any:
        self._bind_arguments()
        try:
            with np.errstate(all="ignore"):
                self._need(wanted)
        except _REFUSED:
            return None
        return self._run.env.get(wanted)

    def _bind_arguments(self) -> None:
        run, graph = self._run, self.graph
        for k in range(self._known, min(len(graph.args), len(self.arguments))):
            value, x = graph.args[k], plain(self.arguments[k])
            run.env[value] = x if value.type.kind == "array" else as_kind(x, value.type)
        self._known = len(self.arguments)
        for s in graph.symbols.values():
            if s.origin == "arg" and s.name not in run.symbols and s.arg < self._known:
                run.symbols[s.name] = extent(np.asarray(plain(self.arguments[s.arg])), s.axis)

    def _need(self, wanted: Value) -> None:
        """Compute a value and what it is made of, deepest first.

        Raises:
            LookupError: something among that is not to be computed.
        """
        env = self._run.env
        todo: list[Op] = [] if wanted in env else [_producer(wanted)]
        while todo:
            op = todo[-1]
            missing = [_producer(v) for v in _operands(op) if v not in env]
            missing += [b for b in map(self._bind, op_symbols(op)) if b is not None]
            if missing:
                todo += missing
                continue
            todo.pop()
            if not op.results or op.results[0] not in env:
                self._step(op)

    def _bind(self, name: str) -> Op | None:
        """What binds a symbol that is not known yet; None if it is known."""
        if name in self._run.symbols:
            return None
        for op in self.graph.body.ops():
            self._ops -= 1
            if op.name == "bind" and op.attrs["symbol"] == name:
                return op
        raise LookupError(name)

    def _step(self, op: Op) -> None:
        for o in op.walk():
            self._ops -= 1
            if o.name in _LOOPS or Trait.ORDERED in o.defn.traits:
                raise LookupError(o.name)
        for v in op.results if op.name in _VIEWS else (*op.results, *op.operands):
            count = 1
            for d in v.type.shape:
                count *= self._run.size(d)
            self._elements -= count
        if self._ops < 0 or self._elements < 0:
            raise LookupError("too much")
        for r, x in zip(op.results, self._run.step(op), strict=True):
            self._run.env[r] = x


def _operands(op: Op) -> Sequence[Value]:
    """What an operator reads, in its regions too."""
    if not op.regions:
        return op.operands
    inner = list(op.walk())
    made = {v for o in inner for v in (*o.results, *(a for region in o.regions for a in region.args))}
    return [v for o in inner for v in o.operands if v not in made or v in op.operands]


def _producer(v: Value) -> Op:
    if v.producer is None:
        raise LookupError("an argument of a block")
    return v.producer
