"""What a trace leaves behind: the graph, and what calls need to know beside it. Made by `capture`, or recalled.

Nothing here needs the tracer: a process that finds everything on disk does without (`recall`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgraph.ir.graph import Graph
from jitgraph.pytree import TreeDef
from jitgraph.records import dataclass, field
from jitgraph.tensor import plain
from jitgraph.tracing.hidden import NO_CALL, Call, Guard, HiddenArg, Place, Replay, is_same
from jitgraph.tracing.leaves import Key, alias_pattern, leaf_type

if TYPE_CHECKING:
    from jitgraph.tracing.reads import Reads


@dataclass(frozen=True, slots=True)
class Assumption:
    """What stands behind the site of a check that the trace took for granted: the number of the assumption.

    Attributes:
        undone: what the caller could see of the call is put back in front of the check.
    """

    number: int
    undone: bool = False


class Path(tuple[bool, ...]):  # noqa: SLOT001  # tuples have none
    """Answers to `CaptureMode.assume`, in order.

    Attributes:
        settled: branches that the trace which asked had settled: one that settles others asks other questions.
    """

    settled: frozenset[Any] = frozenset()

    @staticmethod
    def of(answers: Iterable[bool], settled: Iterable[Any]) -> Path:
        made = Path(answers)
        made.settled = frozenset(settled)
        return made

    def other_way(self, number: int) -> Path:
        """What is known of a call for which the assumption of that number does not hold."""
        return Path.of((*self[:number], not self[number]), self.settled)


def may_serve(answers: tuple[bool, ...], known: tuple[bool, ...]) -> bool:
    """Whether a trace with these answers may serve a call of which some are known."""
    if isinstance(answers, Path) and isinstance(known, Path) and answers.settled != known.settled:
        return not answers.settled < known.settled  # else the call has been there
    return answers[: len(known)] == known


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The options of `jit` that change what is traced.

    Attributes:
        static_argnames: parameters that are static by value.
        specialize: "shape" makes sizes of arguments literal; "" keeps them symbolic.
        unroll_limit: longest static `range` that is unrolled; None: `config.unroll_limit`.
        fast_math: flags for `graph.fast_math`.
        donate_argnames: parameters whose arrays results may be put in.
        exact: Python's `math` gives the C library's bits.
    """

    static_argnames: tuple[str, ...] = ()
    specialize: str = ""
    unroll_limit: int | None = None
    fast_math: frozenset[str] = frozenset()
    donate_argnames: tuple[str, ...] = ()
    exact: bool = False


@dataclass(slots=True, eq=False)
class Trace:
    """A captured function.

    Attributes:
        graph: see `ir.graph`; its arguments are the leaves `arg_leaves`, then the hidden arguments.
        in_tree: structure of the call: of `(args,)`, or `(args, kwargs)` with keywords; see `CallSpec.flatten`.
        keys: `leaf_type` of each leaf.
        aliases: `alias_pattern` of the leaves: which array arguments were one and the same object.
        arg_leaves: leaf number of each argument that is not hidden.
        arg_names: readable names of all arguments, hidden ones included.
        leaf_values: leaves (by number) of which Python needed the value: it is baked in, and calls must have it.
        out_tree: structure of the result; its leaves are the first `out_tree.count` of `graph.results`. Further ones
            are bases of returned views and the values of `replays`.
        hidden: arguments that are read at call time.
        replays: stores outside, repeated after each successful call.
        guards_python: values and objects that were baked in; each has `check() -> bool`.
        writes: numbers of the arguments that the graph writes to (attr `mutates` of its `return`).
        also_arguments: (leaf, place): the array argument is the very object at that place.
        held: objects that the trace keeps alive (static arguments whose identity is in the key).
        path: answers to `CaptureMode.assume` that the graph was traced with.
        reads: what else was looked at; None of a trace that was recalled.
    """

    graph: Graph
    in_tree: TreeDef
    keys: tuple[Key, ...]
    aliases: tuple[int, ...]
    arg_leaves: tuple[int, ...]
    arg_names: tuple[str, ...]
    leaf_values: dict[int, Any]
    out_tree: TreeDef
    hidden: list[HiddenArg]
    replays: list[Replay]
    guards_python: list[Guard]
    writes: tuple[int, ...]
    also_arguments: list[tuple[int, Place]] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)
    path: tuple[bool, ...] = ()
    reads: Reads | None = None

    def valid(self, leaves: Sequence[Any], call: Call = NO_CALL) -> bool:
        """Whether the live world is still as it was: guards, types of hidden arguments, numbers baked in."""
        return self.holds(leaves, call) and all(h.fits(call) for h in self.hidden)

    def holds(self, leaves: Sequence[Any], call: Call = NO_CALL) -> bool:
        """`valid` without the hidden arguments, which a call reads and tests as it passes them."""
        if not all(is_same(leaves[k], value) for k, value in self.leaf_values.items()):
            return False
        if any(leaves[k] is not place.get(call) for k, place in self.also_arguments):
            return False
        return all(g.check(call) for g in self.guards_python)

    def arguments(self, leaves: Sequence[Any], call: Call = NO_CALL) -> list[Any]:
        """The graph's arguments for a call with these leaves: plain arrays and numbers, hidden ones read now."""
        found = [plain(leaves[k]) for k in self.arg_leaves]
        found += [plain(h.get(call)) for h in self.hidden]
        return found

    def overlaps(self, arguments: Sequence[Any]) -> bool:
        """Whether an argument that is written shares memory with another one in a way that was not traced."""
        arrays = [(k, x) for k, x in enumerate(arguments) if isinstance(x, np.ndarray)]
        return any(k != j and np.may_share_memory(arguments[j], x) for j in self.writes for k, x in arrays)


def call_key(leaves: Sequence[Any], tree: TreeDef, specialize: str = "") -> tuple[Any, ...]:
    """The specialisation key of a call: structure, leaf types, aliasing, static values; sizes only if asked for."""
    keys = tuple([leaf_type(x) for x in leaves])
    shapes = tuple([np.shape(plain(x)) for x in leaves if isinstance(x, np.ndarray)]) if specialize == "shape" else ()
    return (tree, keys, alias_pattern(leaves), shapes)
