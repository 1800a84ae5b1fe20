"""How each leaf of a function's result is made: `graph.results`; and the hidden arguments that nothing uses."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Sequence
from dataclasses import replace
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType
from typing import Any, NamedTuple

import numpy as np

from jitgraph.ir.dims import Dim, DimLike, symbols
from jitgraph.ir.graph import Graph, Result, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.transform import bound_symbols
from jitgraph.ir.types import IndexMap
from jitgraph.tensor import Storage, Tensor, is_writable, make, read, wrap
from jitgraph.tracing.choices import Choice
from jitgraph.tracing.globals import TraceGlobals
from jitgraph.tracing.hidden import HiddenArg, Live
from jitgraph.tracing.made_containers import holds_traced
from jitgraph.tracing.objects import UNSEEN, is_object, is_open, may_lie_in, sources
from jitgraph.tracing.outside import Outside
from jitgraph.tracing.poison import Poison
from jitgraph.tracing.restart import Restart


class _Within(NamedTuple):
    """A leaf for a chosen array that nobody sees by itself, within one that the user gets.

    Attributes:
        fresh: the leaf that holds the elements of both, where the way leads to something new.
    """

    storage: Storage
    fresh: int


class Results:
    """Fills in `graph.results`.

    Args:
        tensors: arrays are returned as `jg.Tensor`.
    """

    def __init__(self, outside: Outside, tensors: bool) -> None:
        self.outside = outside
        self.mode = outside.mode
        self.graph = outside.mode.builder.graph
        self.tensors = tensors
        self._known: set[str] | None = None
        #: The leaves, the user's first, and which of them is the whole of each storage.
        self._leaves: list[Any] = []
        self._bases: dict[Storage, int] = {}
        #: The first leaf that is a Tensor, by identity: one object stays one.
        self._first: dict[int, int] = {}
        #: How many results may be in each storage; and what `_is_seen` found, while `_bases` is as long as it was.
        self._seen: collections.Counter[Storage] = collections.Counter()
        self._found: tuple[int, dict[Storage, bool]] = (0, {})
        self._returned: list[Value] = []
        #: Recipes that the numbers of objects choose from.
        self._numbered: list[Result] = []
        self._is_returned: set[Value] = set()

    def record(self, values: list[Any], returned: list[Value]) -> None:
        """`graph.results` for each leaf, with operands of `return` in `returned`.

        Bases of returned views, and what a choice chooses from, come as further leaves.
        """
        self._returned = returned
        self._is_returned = set(returned)
        known = self.outside.static.known_array
        self._leaves = [known(x) if type(x) is not Tensor and isinstance(x, np.ndarray) else x for x in values]
        for k, x in enumerate(self._leaves):
            if type(x) is Tensor and x.is_traced and x.type.kind == "array":
                if not x._steps:
                    self._bases.setdefault(x._storage, k)
                self._first.setdefault(id(x), k)
        for storage in {x._storage: None for x in self._leaves if type(x) is Tensor and x.is_traced}:
            self._seen.update(sources(self.mode.choices, storage))
        users = len(self._leaves)
        self._look_for_objects()
        for k, x in enumerate(self._leaves):  # grows on the way
            made = self._result(k, x)
            self.graph.results.append(self._perhaps_earlier(k, x, made, users) if k < users else made)
        self._break_circles()

    def _break_circles(self) -> None:
        """A leaf that another one is on some path, by its recipe, is not made of that one: the two are told already."""
        results = self.graph.results
        for k, r in enumerate(results):
            if any(r is x for x in self._numbered) and k in self._reached(r.steps[0]):
                results[k] = Result("view_of_result", r.steps[1], (), tensor=self.tensors)

    def _reached(self, leaf: int) -> set[int]:
        """The leaves that one may be made of, and itself."""
        found: set[int] = set()
        waiting = [leaf]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                r = self.graph.results[at]
                waiting += r.steps if r.how == "choice" else (r.index,) if r.how == "view_of_result" else ()
        return found

    def _look_for_objects(self) -> None:
        """Begin the trace anew, with numbers for its arrays, if two of the results may be one object.

        Raises:
            Restart: they may.
        """
        if self.mode.objects is None and self.mode.either:
            leaves = {id(x): x for x in self._leaves if is_object(x)}
            pairs = list(itertools.combinations(leaves.values(), 2))
            if any(is_open(self.mode, a, b) for a, b in pairs) or any(
                may_lie_in(self.mode, a, b) or may_lie_in(self.mode, b, a) for a, b in pairs
            ):
                raise Restart(objects=True)

    def _perhaps_earlier(self, k: int, x: Any, made: Result, users: int) -> Result:
        """The recipe of leaf `k`: that of an earlier one if the run finds them one object, or a view of another one.

        Args:
            made: its own recipe.
        """
        objects = self.mode.objects
        if objects is None or (made.how == "view_of_result" and made.index < k and not made.steps):
            return made
        for j, other in enumerate(self._leaves[:users]):
            if j != k and may_lie_in(self.mode, x, other):
                mine, its = objects.memory(x), objects.memory(other)
                lies = (
                    objects.equal(mine.number, its.number)
                    if mine.steps not in (None, (), UNSEEN) and its.steps == ()
                    else False
                )
                if isinstance(lies, Value) and self._are_sizes(mine.steps or ()):
                    if x._storage in self.mode.locked:
                        self.mode.meet_locked(x._storage, "the return of an array")
                    self._returned.append(lies)
                    view = Result("view_of_result", j, mine.steps or (), 0, None, self.tensors, not is_writable(x))
                    made = self._either(self._further(view), self._further(made))
        for j, other in enumerate(self._leaves[:k]):
            if is_open(self.mode, other, x):
                same = objects.same(other, x)
                if isinstance(same, Value):
                    self._returned.append(same)
                    made = self._either(j, self._further(made))
        return made

    def _either(self, known: int, own: int) -> Result:
        """One leaf or the other, as what was returned last says: by the numbers of objects."""
        made = Result("choice", len(self._returned) - 1, (known, own), tensor=self.tensors)
        self._numbered.append(made)
        return made

    def _result(self, k: int, x: Any) -> Result:
        """The recipe of leaf `k`."""
        if type(x) is Poison:
            x.fail()
        if type(x) is Result:
            return x
        if type(x) is _Within:
            return self._chosen(self.mode.choices[x.storage], x.fresh)
        if type(x) is not Tensor:
            self._check_static(x)
            return Result("static", value=x)
        if not x.is_traced:
            return Result("static", value=x)
        storage, steps = x._storage, x._steps
        if storage.mode is not self.mode and (steps or storage not in self.mode.choices):
            storage.mode.apply(None, (), {})  # type: ignore[arg-type]  # stale, or of another trace: says so
        choice = self.mode.choices.get(storage)
        t = choice.merged.type if choice is not None and storage.value is None and not steps else x.type
        dim = x._dim
        if t.kind != "array":
            if not isinstance(dim, (int, Dim)):  # data, a quotient of sizes, or a mark
                return self._scalar(x)
            if self._is_size(dim):
                return Result("dim", dim=dim)
            return self._fresh(read(x))
        first = self._first.get(id(x), k)
        if first != k:
            return Result("view_of_result", first, (), tensor=self.tensors)
        if storage.origin is not None and storage.origin >= 0:
            if not steps:
                return Result("argument", storage.origin, tensor=self.tensors)
            if self._are_sizes(steps):
                return Result("view_of_argument", storage.origin, steps, 0, None, self.tensors, not is_writable(x))
            return self._fresh(read(x))
        if steps and not self._are_sizes(steps):
            return self._fresh(read(x))
        if storage in self.mode.locked and (choice is None or any(x is None for x in choice.options)):
            self.mode.meet_locked(storage, "the return of an array")
        base = self._bases.get(storage)
        if base is None:
            base = self._bases[storage] = self._further(self._whole(storage))
        if base != k:
            return Result("view_of_result", base, steps, 0, None, self.tensors, not is_writable(x))
        known = storage.value is not None  # else what it may be was written since
        if choice is not None and (not known or self._shows(choice) or storage in self.mode.locked):
            return self._chosen(choice)
        made = self._fresh(storage.value)
        return made if storage.writable else replace(made, read_only=True)

    def _whole(self, storage: Storage) -> Tensor:
        """All of a storage; a scalar, of which there is a view, as an array: views of it share its memory."""
        value = storage.value
        if value is None or value.type.kind == "array":
            return make(storage, ())
        return wrap(self.mode, self.mode.builder.apply(REGISTRY["as_kind"], value, kind="array")[0])

    def _is_seen(self, storage: Storage) -> bool:
        """Whether the caller can tell an array in it from a copy: he has what it is in by another way, too."""
        if self._found[0] != len(self._bases):
            self._found = (len(self._bases), {})
        found = self._found[1]
        waiting = [storage]
        while waiting:
            s = waiting[-1]
            choice = self.mode.choices.get(s)
            inner = [x._storage for x in choice.options if x is not None] if choice is not None else []
            if s.origin is not None or s in self._bases or self._seen[s] > 1 or any(found.get(i) for i in inner):
                found[s] = True
            elif unknown := [i for i in inner if i not in found]:
                waiting += unknown
                continue
            else:
                found[s] = False
            waiting.pop()
        return found[storage]

    def _shows(self, choice: Choice) -> bool:
        """Whether the caller can tell which of the two it is."""
        return any(x is not None and self._is_seen(x._storage) for x in choice.options)

    def _further(self, x: Any) -> int:
        """One more leaf, which the user does not see; its number."""
        self._leaves.append(x)
        return len(self._leaves) - 1

    def _chosen(self, choice: Choice, fresh: int | None = None) -> Result:
        """An array that is one of two: those as further leaves, and the bool.

        Args:
            fresh: the leaf to take where it is something new.
        """
        ways = []
        for x in choice.options:
            if x is not None and not self._is_alone(x, choice):
                ways.append(self._further(x))
                continue
            if fresh is None:
                fresh = self._further(self._fresh(choice.merged))
            inner = x is not None and self._is_seen(x._storage)
            ways.append(self._further(_Within(x._storage, fresh)) if x is not None and inner else fresh)
        self._returned.append(choice.flag)
        return Result("choice", len(self._returned) - 1, tuple(ways), tensor=self.tensors)

    def _is_alone(self, x: Tensor, merged: Choice) -> bool:
        """Whether the caller has an option by this choice only, so that a copy, the merged array, is as good.

        Of a chain of branches (`if a: x = f(x)`, `if b: x = g(x)`) one array is returned then, not that of each link.
        """
        s = x._storage
        choice = self.mode.choices.get(s)
        return (
            choice is not None
            and not x._steps
            and s.value is choice.merged  # not written since
            and choice.merged.type == merged.merged.type
            and s.origin is None
            and s not in self._bases
            and s not in self.mode.locked
            and s.writable
            and self._seen[s] <= 1
        )

    def _fresh(self, value: Value) -> Result:
        """A new array or scalar; values that are arguments themselves are copied."""
        if value.type.kind == "array" and (value.block is self.graph.body or value in self._is_returned):
            value = self.mode.builder.apply(REGISTRY["copy"], value, order="K")[0]
        self._returned.append(value)
        self._is_returned.add(value)
        return Result("fresh", len(self._returned) - 1, tensor=self.tensors and not value.type.is_python)

    def _scalar(self, x: Tensor) -> Result:
        value = read(x)
        if value.block is self.graph.body and x._storage.origin == value.index:
            return Result("argument", value.index)
        known = constant_of(value)
        if known is not None and value.type.is_python:
            return Result("static", value=known)
        return self._fresh(value)

    def _is_size(self, d: DimLike) -> bool:
        """Made of symbols that are known when the graph returns: argument sizes, and what its own block binds."""
        if self._known is None:
            bound = {name for op in self.graph.body.ops() if not op.regions for name in bound_symbols(op)}
            self._known = bound | {s.name for s in self.graph.symbols.values() if s.origin == "arg"}
        return all(name in self._known for name in symbols(d))

    def _are_sizes(self, steps: Sequence[Any]) -> bool:
        """Whether the view can be made when the graph has returned."""
        for step in steps:
            if isinstance(step, str | np.dtype):
                continue
            dims: list[DimLike] = list(step.shape) if isinstance(step, IndexMap) else list(step)
            if isinstance(step, IndexMap):
                for m in step.axes:
                    dims += (m.offset, m.step)
            if not all(self._is_size(d) for d in dims):
                return False
        return True

    def _check_static(self, x: Any) -> None:
        """Nothing traced may leave inside an object, a function or a text."""
        if type(x) is Live:
            return
        if isinstance(x, str) and ("\x01" in x or "<traced " in x):
            self.mode.leave("the text of a traced value leaves the function", "format it after the call.")
        if isinstance(x, slice) and any(type(i) is Tensor for i in (x.start, x.stop, x.step)):
            self.mode.leave("a slice of what only the run knows leaves the function", "return its numbers.")
        if holds_traced(x):
            what = f"a {type(x).__name__} that holds what only the run knows leaves the function"
            self.mode.leave(what, "return a tuple, or make its class a dataclass.")
        if isinstance(x, GeneratorType | CoroutineType | AsyncGeneratorType):
            what = "generator" if not isinstance(x, CoroutineType) else "coroutine"
            if isinstance(x, CoroutineType):
                x.close()
            self.mode.fail(
                f"{self.graph.name} returns a {what}, whose body would run after the trace",
                "jit a plain function that returns arrays: collect what is yielded in a list, or jit what it calls.",
            )
        inner: list[Any] = []
        if isinstance(x, FunctionType):
            for cell in x.__closure__ or ():
                try:
                    inner.append(cell.cell_contents)
                except ValueError:
                    continue
            if isinstance(x.__globals__, TraceGlobals):
                self.mode.leave(
                    f"{self.graph.name} returns a function that it defines",
                    "return the arrays that the function needs, and define it outside of the jitted function.",
                )
        else:
            inner = list(getattr(x, "__dict__", {}).values())
        if any(type(i) is Tensor and i.is_traced for i in inner):
            self.mode.fail(
                f"{self.graph.name} returns a {type(x).__name__} that holds traced values",
                "make its class a dataclass, register it with jitgraph.pytree.register, or return a tuple.",
            )


def prune(
    graph: Graph, hidden: list[HiddenArg], names: list[str]
) -> tuple[list[HiddenArg], list[str], list[HiddenArg]]:
    """Drop hidden arguments that nothing uses, and renumber the rest; the last of the answer are those dropped."""
    written = set(graph.body.terminator.attrs["mutates"])
    results = {r.index for r in graph.results if r.how in ("argument", "view_of_argument")}
    unused = [h for h in hidden if not graph.args[h.index].uses and h.index not in results and h.index not in written]
    if not unused:
        return hidden, names, []
    used = _used_symbols(graph)
    dropped = {h.index for h in unused if not any(s.arg == h.index and s.name in used for s in graph.symbols.values())}
    if not dropped:
        return hidden, names, []
    new: dict[int, int] = {}
    for old in range(len(graph.args)):
        if old not in dropped:
            new[old] = len(new)
    graph.body.args[:] = [v for v in graph.args if v.index not in dropped]
    for value in graph.args:
        value.index = new[value.index]
    for name, s in list(graph.symbols.items()):
        if s.origin == "arg" or s.arg >= 0:
            if s.arg in dropped:
                del graph.symbols[name]
                graph.facts.lower.pop(name, None)
                graph.facts.upper.pop(name, None)
            else:
                graph.symbols[name] = replace(s, arg=new[s.arg])
    graph.results[:] = [
        replace(r, index=new[r.index]) if r.how in ("argument", "view_of_argument") else r for r in graph.results
    ]
    terminator = graph.body.terminator
    terminator.attrs["mutates"] = tuple(new[i] for i in terminator.attrs["mutates"])
    kept = [h for h in hidden if h.index not in dropped]
    gone = [h for h in hidden if h.index in dropped]
    for h in kept:
        h.index = new[h.index]
    return kept, [n for k, n in enumerate(names) if k not in dropped], gone


def _used_symbols(graph: Graph) -> set[str]:
    """Symbols in guards, results, attributes and types of ops."""
    found: set[str] = set()
    for g in graph.guards:
        found |= {**symbols(g.left), **symbols(g.right)}.keys()
    for r in graph.results:
        found |= symbols(r.dim).keys()
        found |= _symbols_in(r.steps)
    for op in graph.walk():
        found |= _symbols_in(tuple(op.attrs.values()))
        for v in op.results:
            for d in v.type.shape:
                found |= symbols(d).keys()
    return found


def _symbols_in(x: Any) -> set[str]:
    if isinstance(x, IndexMap):
        return _symbols_in((*x.shape, *(d for m in x.axes for d in (m.offset, m.step))))
    if isinstance(x, tuple):
        return set().union(*(_symbols_in(i) for i in x)) if x else set()
    return (
        set(symbols(x))
        if not isinstance(x, str | bytes | float | np.generic | np.ndarray | np.dtype | bool) and _is_dim(x)
        else set()
    )


def _is_dim(x: Any) -> bool:
    return isinstance(x, Dim)
