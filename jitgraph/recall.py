"""Specialisations from disk: a process that makes a call which an earlier one has made needs no tracer, and no LLVM.

An entry has a trace in plain data (`tracing.portable`) with its object code. Its key says all that a trace depends on
before it looks at anything outside: the function's code, the options, the call's key, settings, versions, the CPU. What
the trace looked at is in the entry, and is compared with this process when it is read. Whatever differs is a miss: the
call is traced, and the entry is written anew.
"""

from __future__ import annotations

import marshal
import sys
import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from jitgraph import compiler
from jitgraph.abi import Interface
from jitgraph.cache import disk
from jitgraph.cache.key import Parts, digest, parts
from jitgraph.config import config
from jitgraph.options import JitOptions
from jitgraph.runtime import cpu
from jitgraph.specialise import Recalled, Specialisation, serves
from jitgraph.tracing import portable
from jitgraph.tracing.hidden import Call
from jitgraph.tracing.trace import Trace

#: Entries of one key: traces that differ in what they looked at, or in how sizes compare.
_VARIANTS = 4
#: Header of an entry: what is under another one is not given to `marshal`, which trusts what it reads.
_HEADER = {"trace": 1, "marshal": marshal.version}


class Found(NamedTuple):
    """What a look at the disk has found.

    Attributes:
        made: a specialisation, if one serves the call.
        key: where a new one is to be written; empty: nowhere.
    """

    made: Specialisation | None
    key: str = ""


class Recall:
    """The entries of one function.

    Args:
        fn: the function, of which only Python ones have entries.
    """

    def __init__(self, fn: Any, options: JitOptions) -> None:
        self.fn = fn
        self.options = options
        self.name = f"trace of {getattr(fn, '__qualname__', '')}"
        #: What all keys of the function have.
        self._made_of: tuple[Any, ...] | None = None
        if type(fn) is FunctionType:
            module = sys.modules.get(fn.__module__ or "")
            if module is not None and vars(module) is fn.__globals__:
                code = options.code
                self._made_of = (
                    portable.digest_of(fn.__code__), fn.__module__, options.static_argnames, options.specialize,
                    sorted(code.fastmath), code.numerics, options.donate_argnames,
                )  # fmt: skip

    def find(self, call_key: Sequence[Any], leaves: Sequence[Any], call: Call) -> Found:
        """A specialisation that serves the call, if there is one on disk."""
        text = self._text(call_key)
        if text is None:
            return Found(None)
        made_of = self._parts()
        for variant in range(_VARIANTS):
            key = digest(f"{text}{variant}", made_of)
            found, _ = disk.use(key, self.name, lambda entry: Found(self._read(entry, call_key, leaves, call)))
            if found is None:
                return Found(None, key)
            if found.made is not None:
                return found
        return Found(None, key)

    def _read(
        self, entry: disk.Entry, call_key: Sequence[Any], leaves: Sequence[Any], call: Call
    ) -> Specialisation | None:
        """The specialisation of an entry; None if it does not serve the call.

        Raises:
            whatever comes of content of another form (see `disk.use`).
        """
        if entry.header != _HEADER:
            raise ValueError(f"{entry.header} is no header of a trace")
        content = marshal.loads(entry.code)  # noqa: S302  # checksummed
        written, exported, is_long, products, blas, interface, code = content
        tree, keys, aliases = call_key[:3]
        try:
            trace = portable.read(self.fn, written, {"in_tree": tree, "keys": keys, "aliases": aliases}, call)
        except portable.Elsewhere:
            return None
        called = Interface.from_plain(interface)
        _check(trace, called, exported, len(leaves))
        if not serves(trace, leaves, call) or (products and compiler.order_now() != blas):
            return None
        compiled = compiler.with_code(trace.graph, called, code, products=products)
        return Specialisation(trace, keys, Recalled(compiled, exported, is_long))

    def keep(self, key: str, made: Specialisation) -> None:
        """Write a specialisation to disk, if another process could use it.

        Args:
            key: where, as `find` has said.
        """
        found = compiler.code_of(made.compiled)
        if not key or found is None:
            return
        code, interface = found
        products = made.compiled.has_products
        blas = compiler.order_now() if products else ""
        try:
            written = portable.write(self.fn, made.trace)
            content = marshal.dumps((tuple(written), made.exported, made.is_long, products, blas, interface, code))
        except (portable.Refused, RecursionError, ValueError):  # ValueError: too deep for marshal
            return
        disk.store(key, self.name, disk.Entry(_HEADER, content, {"function": self.name, **self._parts()._asdict()}))

    def _text(self, call_key: Sequence[Any]) -> str | None:
        """What a trace depends on, beside versions and the CPU; None where there is to be no entry."""
        if self._made_of is None or not config.cache or config.verify or config.dump or config.opaque_modules:
            return None
        try:
            said = portable.key_of(tuple(call_key))
        except (portable.Refused, RecursionError):
            return None
        # constants are computed while tracing, and may be shown
        state = np.geterr(), np.get_printoptions(), [f for f in warnings.filters if f[0] == "error"]
        return repr((self._made_of, said, config.unroll_limit, sys.version, sys.flags.optimize, state))

    @staticmethod
    def _parts() -> Parts:
        cpu_key = f"{cpu.identity() or cpu.recognise().key};{config.cpu}"
        return parts(cpu_key, compiler.backend().llvm_version)


def _check(trace: Trace, interface: Interface, exported: dict[str, int], leaves: int) -> None:
    """See that what calls look up by number is there.

    Args:
        leaves: number of the call's.

    Raises:
        ValueError: it is not.
    """
    graph = trace.graph
    arguments, slots = len(trace.arg_leaves) + len(trace.hidden), range(len(interface.results))
    interface.check(arguments, len(slots), len(graph.sites))
    of_arguments, of_results, none = range(arguments), range(len(graph.results)), range(-1, 0)
    numbers = {
        "fresh": slots, "choice": slots, "argument": of_arguments, "view_of_argument": of_arguments,
        "view_of_result": of_results, "dim": none, "static": none,
    }  # fmt: skip
    wrong = [r for r in graph.results if r.index not in numbers[r.how]]
    if wrong or not set(trace.arg_leaves) <= set(range(leaves)) or not set(exported.values()) <= set(slots):
        raise ValueError(f"numbers of results or arguments that are none: {wrong}")
    if trace.out_tree.count > len(graph.results):
        raise ValueError("a tree with more leaves than there are results")
