"""Trace a function of arrays and numbers into a graph, evaluate the graph, compare with NumPy."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jitgraph.xp  # noqa: F401  # gives Tensor its methods
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import Dim, evaluate, symbol, symbols
from jitgraph.ir.graph import Graph, Result, Symbol
from jitgraph.ir.interpret import interpret
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType, python_type, scalar_type
from jitgraph.ir.verifier import verify
from jitgraph.modes import TraceMode
from jitgraph.tensor import Storage, Tensor, make, read, use_mode, view_array
from jitgraph.xp.core import as_kind


class Traced:
    """A function traced for example arguments."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.graph = Graph(getattr(f, "__name__", "f").strip("<>") or "f")
        self.mode = TraceMode(Builder(self.graph))
        self.args = [self._argument(i, x) for i, x in enumerate(args)]
        self.storages = [t._storage for t in self.args]
        self.entry = [s.value for s in self.storages]
        self.storage_of = {id(s): i for i, s in enumerate(self.storages)}
        with use_mode(self.mode):
            self.out = f(*self.args)
        self._finish()

    def _argument(self, i: int, x: Any) -> Tensor:
        if isinstance(x, np.ndarray):
            shape: list[Any] = []
            for axis, size in enumerate(x.shape):
                if size == 1:
                    shape.append(1)
                    continue
                name = f"n{i}_{axis}"
                self.graph.add_symbol(Symbol(name, "arg", i, axis, 0, None, True, size))
                shape.append(symbol(name))
            t = TensorType(x.dtype, tuple(shape), "array", layout_of(x.shape, x.strides, x.itemsize))
        elif isinstance(x, np.generic):
            t = scalar_type(x.dtype)
        else:
            t = python_type({bool: "py_bool", int: "py_int", float: "py_float"}[type(x)])
        value = self.graph.body.add_arg(t, f"a{i}")
        return make(Storage(self.mode, value, i))

    def _finish(self) -> None:
        self.leaves: list[Any] = []
        self.tree = self._collect(self.out)
        mutates = [i for i, s in enumerate(self.storages) if s.value is not self.entry[i]]
        values = list(self.leaves)
        results = [Result("fresh", k) for k in range(len(values))]
        values += [self.storages[i].value for i in mutates]
        self.mutates = mutates
        self.graph.results = results
        self.mode.builder.emit(REGISTRY["return"], values, (), {"mutates": tuple(mutates)})
        verify(self.graph)

    def _collect(self, out: Any) -> Any:
        if type(out) is Tensor:
            at = self.storage_of.get(id(out._storage))
            if at is not None and out.type.kind == "array":
                names = [str(a) for step in out._steps for a in _bound(self.graph, step)]
                for name in names:
                    self.leaves.append(self.mode.dim_value(symbol(name)))
                return (
                    "view",
                    at,
                    out._steps,
                    dict(zip(names, range(len(self.leaves) - len(names), len(self.leaves)), strict=True)),
                )
            self.leaves.append(read(out))
            return ("leaf", len(self.leaves) - 1)
        if isinstance(out, (tuple, list)):
            return (type(out), [self._collect(x) for x in out])
        return ("static", out)

    def __call__(self, *args: Any) -> Any:
        """Results and the arguments as they are afterwards."""
        args = tuple(copy.deepcopy(a) for a in args)
        fresh, mutated = interpret(self.graph, args)
        after = list(args)
        for i, value in zip(self.mutates, mutated, strict=True):
            after[i] = value
        env = {s.name: np.shape(args[s.arg])[s.axis] for s in self.graph.symbols.values() if s.origin == "arg"}

        def build(node: Any) -> Any:
            kind = node[0]
            if kind == "leaf":
                return fresh[node[1]]
            if kind == "view":
                array = after[node[1]]
                values = {name: fresh[k] for name, k in node[3].items()}
                for step in node[2]:
                    known = (
                        step.substitute({**env, **values})
                        if hasattr(step, "axes")
                        else tuple(evaluate(d, {**env, **values}) for d in step)
                    )
                    array = view_array(array, known)
                return array
            return node[1] if kind == "static" else kind(build(x) for x in node[1])

        return build(self.tree), after


def _bound(graph: Graph, step: Any) -> list[str]:
    """Symbols in a view step that are no argument's size."""
    dims = [*step.shape, *(d for m in step.axes for d in (m.offset, m.step))] if hasattr(step, "axes") else list(step)
    return [name for d in dims for name in symbols(d) if graph.symbols[name].origin != "arg"]


def trace(f: Callable[..., Any], *args: Any) -> Traced:
    return Traced(f, args)


def same(a: Any, b: Any, ulp: float = 0.0, where: str = "") -> None:
    """Equal kind, dtype, shape and elements (NaN equal to NaN)."""
    if isinstance(b, (tuple, list)):
        assert isinstance(a, (tuple, list)), where
        assert len(a) == len(b), where
        for x, y in zip(a, b, strict=True):
            same(x, y, ulp, where)
        return
    if type(a) is Tensor:
        a = a.numpy()
    assert type(a) is type(b), f"{where}: {type(a)} {a!r} for {type(b)} {b!r}"
    if isinstance(b, (np.ndarray, np.generic)):
        assert a.dtype == b.dtype, f"{where}: {a.dtype} for {b.dtype}"
        assert a.shape == b.shape, f"{where}: {a.shape} for {b.shape}"
    if ulp:
        np.testing.assert_array_max_ulp(np.asarray(a), np.asarray(b), ulp)
    else:
        np.testing.assert_array_equal(a, b, err_msg=where)


def check(f: Callable[..., Any], *args: Any, more: tuple[tuple[Any, ...], ...] = (), ulp: float = 0.0) -> Traced:
    """`f` traced gives what NumPy gives: results, kinds, changed arguments; also eagerly on Tensors.

    Args:
        more: other arguments for the same graph (their guards must hold).
    """
    traced = trace(f, *args)
    for given in (args, *more):
        expected_args = [copy.deepcopy(a) for a in given]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = f(*expected_args)
        found, after = traced(*given)
        same(found, expected, ulp, "traced")
        for a, b in zip(after, expected_args, strict=True):
            same(a, b, ulp, "argument")
        tensors = [Tensor(copy.deepcopy(a)) if isinstance(a, np.ndarray) else a for a in given]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eager = f(*tensors)
        same(eager, expected, ulp, "eager")
        for t, b in zip(tensors, expected_args, strict=True):
            same(t, b, ulp, "eager argument")
        recorded = [
            Tensor(copy.deepcopy(a), requires_grad=True) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
            for a in given
        ]
        if any(type(t) is Tensor for t in recorded):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                taped = f(*[copy.deepcopy(a) if isinstance(a, np.ndarray) else a for a in recorded])
            same(taped, expected, ulp, "recorded")
            for t, b in zip(recorded, expected_args, strict=True):
                if type(t) is Tensor:
                    same(t, b, ulp, "recorded argument")
    return traced


__all__ = ["Dim", "Traced", "as_kind", "check", "np", "same", "trace"]
