"""Graph to text. Invariants:

1. Equal graphs print the same bytes in every run; `parse(print_graph(g))` prints the same bytes again.
2. Without locations the text holds all that has a meaning (symbols, guards, results, sites, flags): cache keys use it.
3. A value keeps its user's name; later ones of that name get `.2`, `.3`, in program order. Unnamed ones are numbered.

Left out: hints of symbols (an example that no meaning depends on) and functions of locations.

    graph @f(%x: f64[n], hidden "mod.gain" %g: f64[]) -> f64[n] where n >= 0, n != 1 if n >= 4 {
      %y = mul %x, %g : f64[n] @ norm.py:5:10
      return %y
    }
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.dims import Dim, as_symbol
from jitgraph.ir.graph import Block, Graph, Op, Result, Site, Value
from jitgraph.ir.types import IndexMap, Layout, TensorType, python_type
from jitgraph.source import SourceLoc

#: Words that attributes use for other things: a size that begins with one is written `dim(...)`.
RESERVED = frozenset(
    ["nan", "inf", "true", "false", "none", "array", "layout", "type", "complex", "dim", "opaque"]
    + [dtypes.short_name(d) for d in dtypes.in_memory()]
)
#: Attributes whose strings are names of symbols and print bare.
SYMBOL_ATTRS = frozenset(["symbol", "index"])

_UNSAFE = re.compile(r"\W", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: Names of files that stand behind `@` as they are.
_PLAIN_FILE = re.compile(r"[\w.<>+=()\[\]][\w.<>+=()\[\] -]*")


class Opaque:
    """An attribute that has no text form; equal by its description."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def type_text(t: TensorType) -> str:
    """`f32[n, m]:F`, `np.f64`, `py_int`; a Python number held in an unusual dtype is `py_int:u64`."""
    if t.is_python and t.dtype != python_type(t.kind).dtype:
        return f"{t.kind}:{dtypes.short_name(t.dtype)}"
    return str(t)


def attr_text(value: Any, key: str = "") -> str:
    """The canonical text of an attribute."""
    if value is True or value is False:
        return "true" if value else "false"
    if value is None:
        return "none"
    if isinstance(value, str):
        return value if key in SYMBOL_ATTRS and _WORD.match(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, np.ndarray):
        shape = ", ".join(map(str, value.shape))
        data = _nested(value) if value.size else "[]"
        return f"array {dtypes.short_name(value.dtype)}[{shape}] {data}"
    if isinstance(value, np.generic):
        return f"{dtypes.short_name(value.dtype)}({_number(value)})"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Dim):
        text = str(value)
        word = _WORD.search(text)
        return f"dim({text})" if word is not None and word.group() in RESERVED else text
    if isinstance(value, (tuple, list)):
        return f"[{', '.join([attr_text(v) for v in value])}]"
    if isinstance(value, np.dtype):
        return dtypes.short_name(value)
    if isinstance(value, IndexMap):
        return str(value)
    if isinstance(value, TensorType):
        return f"type {type_text(value)}"
    if isinstance(value, Layout):
        parts = (value.order, value.breaks, value.negative, value.zero)
        return f"layout({', '.join(attr_text(p) for p in parts)})"
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, Opaque):
        return f"opaque({json.dumps(value.text)})"
    if isinstance(value, type) and issubclass(value, np.generic):
        return attr_text(np.dtype(value))
    name = getattr(value, "__qualname__", None)
    described = f"{getattr(value, '__module__', '')}.{name}" if name else type(value).__qualname__
    return f"opaque({json.dumps(described)})"


def _number(value: Any) -> str:
    """A NumPy number; floats in the shortest form that reads back exactly."""
    if value.dtype.kind == "b":
        return "true" if value else "false"
    if value.dtype.kind in "iu":
        return str(int(value))
    if value.dtype.kind in "mM":  # NaT is a number, too
        return str(int(value.view(np.int64)))
    if value.dtype.kind == "c":
        return f"{float(value.real)!r}, {float(value.imag)!r}"
    exact = float(value)
    if value.dtype.itemsize < 8 and not math.isnan(exact) and value.dtype.kind == "f":
        short = str(value)
        if float(value.dtype.type(float(short))) == exact:
            return repr(float(short))
    return repr(exact)


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        text = _number(array[()])
        return f"[{text}]" if array.dtype.kind == "c" else text
    if array.ndim == 1 and array.dtype.kind in "iu":
        return str(array.tolist())
    return f"[{', '.join([_nested(array[i, ...]) for i in range(len(array))])}]"


class _Printer:
    def __init__(self, graph: Graph, loc: bool) -> None:
        self.graph = graph
        self.loc = loc
        self.lines: list[str] = []
        self.line_of: dict[Op | Block | None, int] = {}
        self.names: dict[Value, str] = {}
        self.used: dict[str, int] = {}
        self.numbered = 0
        self.types: dict[int, str] = {}
        self.locs: dict[int, str] = {}
        self.attrs: dict[int, tuple[Any, str]] = {}
        self.named_sites: set[int] = set()

    def name(self, value: Value) -> str:
        """The name of a value at its definition."""
        known = self.names.get(value)
        if known is not None:
            return known
        base = value.name
        if not base:
            text = f"%{self.numbered}"
            self.numbered += 1
        else:
            base = _UNSAFE.sub("_", base)
            if not (base[0].isalpha() or base[0] == "_"):
                base = "_" + base
            count = self.used.get(base, 0) + 1
            self.used[base] = count
            text = f"%{base}" if count == 1 else f"%{base}.{count}"
        self.names[value] = text
        return text

    def use(self, value: Value) -> str:
        return self.names.get(value) or f"%<undefined {value.name}>"

    def type(self, t: TensorType) -> str:
        text = self.types.get(id(t))
        if text is None:
            text = self.types[id(t)] = type_text(t)
        return text

    def place(self, loc: SourceLoc | None) -> str:
        if loc is None or not self.loc:
            return ""
        text = self.locs.get(id(loc))
        if text is None:
            text = self.locs[id(loc)] = f" @ {place_text(loc)}"
        return text

    def attr_list(self, op: Op) -> str:
        if not op.attrs:
            return ""
        parts = []
        for key in sorted(op.attrs):
            value = op.attrs[key]
            if isinstance(value, (IndexMap, Dim)):
                entry = self.attrs.get(id(value))
                if entry is None:
                    entry = self.attrs[id(value)] = (value, attr_text(value, key))
                text = entry[1]
            else:
                text = attr_text(value, key)
            if key == "site" and isinstance(value, int) and 0 <= value < len(self.graph.sites):
                text += " " + self.site(self.graph.sites[value], op.loc)
                self.named_sites.add(value)
            parts.append(f"{key} = {text}")
        return f" {{{', '.join(parts)}}}"

    def site(self, site: Site, near: SourceLoc | None) -> str:
        error = site.error if site.error.isidentifier() else json.dumps(site.error)
        text = f"{error} {json.dumps(site.message, ensure_ascii=False)}"
        place = self.place(site.loc)
        if self.loc and place != self.place(near):  # the text does not say in which function
            text += place or " @ -"
        return text

    def block_args(self, args: Sequence[Value]) -> str:
        return ", ".join([f"{self.name(a)}: {self.type(a.type)}" for a in args])

    def op(self, op: Op, indent: str) -> None:
        text = indent
        operands = ", ".join([self.use(v) for v in op.operands])
        regions = op.regions
        if op.results:
            text += ", ".join([self.name(r) for r in op.results]) + " = "
        text += op.defn.name
        if operands:
            text += " " + operands
        text += self.attr_list(op)
        if op.results:
            text += " : " + ", ".join([self.type(r.type) for r in op.results])
        text += self.place(op.loc)
        self.line_of[op] = len(self.lines)
        if not regions:
            self.lines.append(text)
            return
        for k, region in enumerate(regions):
            self.line_of[region] = len(self.lines)
            head = f"({self.block_args(region.args)}) " if region.args or not k else ""
            self.lines.append(f"{text} {_label(op, k)}{head}{{")
            for inner in region.ops():
                self.op(inner, indent + "  ")
            text = indent + "}"
        self.lines.append(text)

    def header(self) -> str:
        g = self.graph
        first_hidden = len(g.args) - len(g.hidden)
        args = []
        for i, a in enumerate(g.args):
            mark = f"hidden {json.dumps(g.hidden[i - first_hidden])} " if i >= first_hidden else ""
            args.append(f"{mark}{self.name(a)}: {self.type(a.type)}")
        text = f"graph @{_UNSAFE.sub('_', g.name)}({', '.join(args)}) -> {self.results()}"
        facts = self.symbol_facts()
        if facts:
            text += f" where {', '.join(facts)}"
        if g.guards:
            text += f" if {', '.join([str(guard) + self.place(guard.loc) for guard in g.guards])}"
        if g.fast_math:
            text += f" fast_math [{', '.join(sorted(g.fast_math))}]"
        return text + " {"

    def symbol_facts(self) -> list[str]:
        places = first_places([a.type for a in self.graph.args])
        facts = []
        for s in self.graph.symbols.values():
            known = []
            if s.origin == "arg" and places.get(s.name) != (s.arg, s.axis):
                known.append(f"{s.name} = arg({s.arg}, {s.axis})")
            if s.lower is not None:
                known.append(f"{s.name} >= {s.lower}")
            if s.upper is not None:
                known.append(f"{s.name} <= {s.upper}")
            if s.not_one:
                known.append(f"{s.name} != 1")
            if not known:
                known.append(s.name)
            if s.origin != "arg":
                known[0] = f"{s.origin} {known[0]}"
            facts += known
        return facts

    def results(self) -> str:
        g = self.graph
        last = g.body.last
        returned = last.operands if last is not None else []
        fresh = len(returned) - (len(last.attrs.get("mutates", ())) if last is not None else 0)
        if g.results == [Result("fresh", i) for i in range(fresh)]:
            types = [self.type(v.type) for v in returned[:fresh]]
            return types[0] if len(types) == 1 else f"({', '.join(types)})"
        return f"({', '.join([_result_text(r) for r in g.results])})" if g.results else "none"

    def run(self) -> str:
        self.lines.append(self.header())
        self.line_of[self.graph.body] = 0
        for op in self.graph.body.ops():
            self.op(op, "  ")
        self.line_of[None] = len(self.lines)
        self.lines.append("}")
        for i, site in enumerate(self.graph.sites):
            if i not in self.named_sites:
                self.lines.append(f"site {i} {self.site(site, None)}")
        return "\n".join(self.lines) + "\n"


def _label(op: Op, k: int) -> str:
    """What region `k` of an op is called, in front of it."""
    if not k:
        return ""
    if op.name == "switch":
        cases = op.attrs["cases"]
        return f"case {cases[k]} " if k < len(cases) else "else "
    return "else " if op.name == "cond" else "do "


def first_places(types: Sequence[TensorType]) -> Mapping[str, tuple[int, int]]:
    """Where each symbol first stands alone as a size of an argument: (argument, axis)."""
    places: dict[str, tuple[int, int]] = {}
    for i, t in enumerate(types):
        for axis, d in enumerate(t.shape):
            name = as_symbol(d) if isinstance(d, Dim) else None
            if name is not None:
                places.setdefault(name, (i, axis))
    return places


def place_text(loc: SourceLoc) -> str:
    """`norm.py:5:10`; a file name that would not be read back so (of several lines, of code of `exec`) is quoted."""
    name, line, column = str(loc).rsplit(":", 2)
    return f"{name if _PLAIN_FILE.fullmatch(name) else json.dumps(name)}:{line}:{column}"


def _result_text(r: Result) -> str:
    text: str = r.how
    if r.how == "dim":
        text += f" {r.dim}"
    elif r.how == "static":
        text += f" {attr_text(r.value)}"
    else:
        text += f" {r.index}"
    if r.steps:
        text += f" via {attr_text(r.steps)}"
    return text + (" tensor" if r.tensor else "") + (" read_only" if r.read_only else "")


def print_graph(graph: Graph, loc: bool = True) -> str:
    """The graph as text, one op a line; `loc` adds the user's file, line and column."""
    return _Printer(graph, loc).run()


def print_with_lines(graph: Graph) -> tuple[list[str], Mapping[Op | Block | None, int]]:
    """The lines of the text, and on which line each op and block begins."""
    printer = _Printer(graph, loc=True)
    printer.run()
    return printer.lines, printer.line_of
