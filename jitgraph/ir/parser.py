"""Text to graph: reads what `printer` writes, and the same written by hand.

By hand one may leave out the facts of argument sizes (a size named first in an argument's type is at least 0 and not
1), and write the result types instead of the results. `#` begins a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import JitgraphError
from jitgraph.ir.dims import DimLike, apply_atom, split_linear, symbol, symbols
from jitgraph.ir.graph import Block, Graph, Guard, Op, Result, Site, Symbol, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.printer import SYMBOL_ATTRS, Opaque, first_places
from jitgraph.ir.types import PYTHON_KINDS, AxisMap, IndexMap, Kind, Layout, TensorType, dense_layout, python_type
from jitgraph.source import SourceLoc


class ParseError(JitgraphError, ValueError):
    """The text is no graph."""


_SKIP = re.compile(r"(?:\s|#[^\n]*)*")
_TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"|%[A-Za-z_0-9][\w.]*|->|==|!=|>=|<='
    r"|\d+(?:\.\d*(?:e[+-]?\d+)?|e[+-]?\d+)|\d+|[^\W\d][\w.]*|.",
    re.DOTALL,
)
_LOC = re.compile(r'\s*(-(?=[\s,}])|("(?:\\.|[^"\\])*"|[^\s"][^\n]*?):(\d+):(\d+)(?=[\s,}]|$))')
_VIEW_AXIS = re.compile(r"d(\d+)$")
_HOW = {"fresh", "argument", "view_of_argument", "view_of_result", "dim", "static", "choice"}
_KINDS: frozenset[str] = frozenset(get_args(Kind)) - {"array", "np_scalar"}
_RELATIONS = ("==", "!=", ">=", "<")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.ahead = ""
        self.start = 0
        self.types: dict[str, TensorType] = {}
        self.graph = Graph("")
        self.values: dict[str, Value] = {}
        self.advance()

    # Tokens.

    def advance(self) -> str:
        """Step to the next token; answers the one passed."""
        passed = self.ahead
        self.start = _SKIP.match(self.text, self.at).end()  # type: ignore[union-attr]  # the pattern matches always
        found = _TOKEN.match(self.text, self.start)
        self.ahead = found.group() if found else ""
        self.at = found.end() if found else self.start
        return passed

    def fail(self, expected: str) -> ParseError:
        line = self.text.count("\n", 0, self.start)
        shown = self.text.split("\n")[line] if self.text else ""
        column = self.start - (self.text.rfind("\n", 0, self.start) + 1)
        return ParseError(f"line {line + 1}: expected {expected}, found {self.ahead!r}\n{shown}\n{' ' * column}^")

    def accept(self, token: str) -> bool:
        if self.ahead == token:
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        if self.ahead != token:
            raise self.fail(repr(token))
        self.advance()

    def word(self) -> str:
        if not self.ahead or not (self.ahead[0].isalpha() or self.ahead[0] == "_"):
            raise self.fail("a word")
        return self.advance()

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        if not self.ahead.isdigit():
            raise self.fail("an integer")
        return sign * int(self.advance())

    def string(self) -> str:
        if self.ahead[:1] != '"':
            raise self.fail("a string")
        return str(json.loads(self.advance()))

    def listed(self, close: str, item: Callable[[], Any]) -> tuple[Any, ...]:
        """Items up to `close`, with commas between."""
        items = []
        while self.ahead != close:
            items.append(item())
            if not self.accept(","):
                break
        self.expect(close)
        return tuple(items)

    def place(self) -> SourceLoc | None:
        """What stands behind `@`: file:line:column, or `-`."""
        if self.ahead != "@":
            return None
        found = _LOC.match(self.text, self.at)
        if found is None:
            raise self.fail("file:line:column")
        self.at = found.end()
        self.advance()
        name = found[2]
        if name is None:
            return None
        return SourceLoc(json.loads(name) if name[0] == '"' else name, int(found[3]), int(found[4]))

    # Sizes, types, attributes.

    def factor(self) -> DimLike:
        if self.ahead.isdigit():
            return int(self.advance())
        if self.accept("-"):
            return -self.factor()
        if self.accept("("):
            inner = self.dim()
            self.expect(")")
            return inner
        name = self.word()
        if self.ahead != "(":
            return symbol(name)
        if name not in ("floordiv", "mod", "min", "max", "ne1"):
            raise self.fail("a function of sizes before it")
        self.advance()
        return apply_atom(name, list(self.listed(")", self.dim)))

    def product(self) -> DimLike:
        value = self.factor()
        while self.accept("*"):
            value = value * self.factor()
        return value

    def dim(self) -> DimLike:
        value = self.product()
        while self.ahead in ("+", "-"):
            value = value + self.product() if self.advance() == "+" else value - self.product()
        return value

    def type(self) -> TensorType:
        start = self.start
        t = self._type()
        text = self.text[start : self.start]
        return self.types.setdefault(text.strip(), t)

    def dtype(self, name: str) -> np.dtype:
        try:
            return dtypes.from_short_name(name)
        except KeyError:
            try:
                return np.dtype(name)
            except TypeError:
                raise self.fail(f"a dtype before it ({name!r} is none)") from None

    def _type(self) -> TensorType:
        name = self.word()
        if name in _KINDS:
            if name in PYTHON_KINDS:
                t = python_type(name)
                return TensorType(self.dtype(self.word()), (), name) if self.accept(":") else t
            return TensorType(dtypes.F64, (), name)  # type: ignore[arg-type]  # one of the kinds
        if name.startswith("np."):
            return TensorType(self.dtype(name[3:]), (), "np_scalar")
        dtype = self.dtype(name)
        self.expect("[")
        shape = self.listed("]", self.dim)
        layout = None
        if self.accept(":"):
            kind = self.word()
            if kind == "F":
                layout = dense_layout(range(len(shape))[::-1])
            elif kind in ("strided", "unaligned"):
                self.expect("(")
                parts: dict[str, tuple[int, ...]] = dict(self.listed(")", self.layout_part))
                layout = Layout(**parts, unaligned=kind == "unaligned")
            elif kind != "C":
                raise self.fail("a layout before it (C, F, strided)")
        return TensorType(dtype, shape, "array", layout)  # type: ignore[arg-type]  # None is C order

    def layout_part(self) -> tuple[str, tuple[int, ...]]:
        name = self.word()
        self.expect("=")
        self.expect("[")
        return name, self.listed("]", self.integer)

    def index_map(self) -> IndexMap:
        self.expect("(")
        shape = self.listed(")", self.map_head)
        self.expect("->")
        self.expect("(")
        return IndexMap(shape, self.listed(")", self.axis_map))

    def map_head(self) -> DimLike:
        self.word()
        self.expect(":")
        return self.dim()

    def axis_map(self) -> AxisMap:
        at = self.dim()
        axes = [name for name in symbols(at) if _VIEW_AXIS.match(name)]
        if not axes:
            return AxisMap(at)
        split = split_linear(at, axes[0])
        if len(axes) > 1 or split is None:
            raise self.fail("an index that is linear in one view axis before it")
        return AxisMap(split[1], split[0], int(axes[0][1:]))

    def attr(self) -> Any:
        token = self.ahead
        head = token[:1]
        if head == '"':
            return self.string()
        if head == "[":
            self.advance()
            return self.listed("]", self.attr)
        if head.isdigit() and not token.isdigit():
            return float(self.advance())
        if head == "-":
            after = _TOKEN.match(self.text, self.at)
            following = after.group() if after else ""
            if following == "inf" or (following[:1].isdigit() and not following.isdigit()):
                self.advance()
                return -float(self.advance())
            return self.dim()
        if head == "(":
            return self.index_map() if re.compile(r"\s*(?:d0\s*:|\)\s*->)").match(self.text, self.at) else self.dim()
        return self.attr_word(token)

    def attr_word(self, word: str) -> Any:
        if word in ("true", "false", "none"):
            self.advance()
            return {"true": True, "false": False, "none": None}[word]
        if word in ("nan", "inf"):
            return float(self.advance())
        if word == "array":
            return self.array()
        if word == "type":
            self.advance()
            return self.type()
        if word in ("layout", "complex", "dim", "opaque"):
            self.advance()
            self.expect("(")
            if word == "dim":
                d = self.dim()
                self.expect(")")
                return d
            if word == "opaque":
                text = self.string()
                self.expect(")")
                return Opaque(text)
            parts = self.listed(")", self.attr)
            return Layout(*parts) if word == "layout" else complex(*parts)
        try:
            dtype = dtypes.from_short_name(word)
        except KeyError:
            return self.dim()
        self.advance()
        if not self.accept("("):
            return dtype
        parts = self.listed(")", self.attr)
        with np.errstate(all="ignore"):
            return dtype.type(complex(*parts) if dtype.kind == "c" else parts[0])

    def array(self) -> np.ndarray:
        self.advance()
        dtype = self.dtype(self.word())
        self.expect("[")
        shape = self.listed("]", self.integer)
        data: Any = self.attr()
        if dtype.kind == "c":
            parts = np.asarray(data, np.float64).astype(dtypes.part_of(dtype))
            return parts.reshape((*shape, 2)).view(dtype).reshape(shape)
        with np.errstate(all="ignore"):
            wide = np.float64 if dtype.kind == "f" else dtype
            return np.array(data, dtype=wide).astype(dtype).reshape(shape)

    # Ops and graphs.

    def use(self) -> Value:
        name = self.ahead
        if name not in self.values:
            raise self.fail("a value defined earlier")
        self.advance()
        return self.values[name]

    def define(self, name: str, value: Value) -> None:
        if name in self.values:
            raise self.fail(f"a new name before it ({name} is taken)")
        self.values[name] = value
        base = name[1:].partition(".")[0]
        value.name = "" if base.isdigit() else base

    def block_arg(self, block: Block) -> None:
        name = self.advance()
        if name[0] != "%":
            raise self.fail("a value name before it")
        self.expect(":")
        self.define(name, block.add_arg(self.type()))

    def label(self) -> bool:
        """What stands in front of a further region: `else`, `do` or `case 3`."""
        if self.accept("case"):
            self.accept("-")
            self.advance()
            return True
        return self.accept("else") or self.accept("do")

    def region(self) -> Block:
        block = Block()
        if self.accept("("):
            self.listed(")", lambda: self.block_arg(block))
        self.body(block)
        return block

    def body(self, block: Block) -> None:
        self.expect("{")
        while self.ahead != "}":
            self.op(block)
        self.advance()

    def attr_list(self, sites: list[tuple[int, Site, bool]]) -> dict[str, Any]:
        def entry() -> tuple[str, Any]:
            key = self.word()
            self.expect("=")
            if key in SYMBOL_ATTRS and self.ahead[:1] not in '"[' and not self.ahead.isdigit():
                return key, self.word()
            value = self.attr()
            if key == "site" and isinstance(value, int) and self.ahead not in (",", "}"):
                site, placed = self.site()
                sites.append((value, site, placed))
            return key, value

        return dict(self.listed("}", entry))

    def site(self) -> tuple[Site, bool]:
        error = self.string() if self.ahead[:1] == '"' else self.word()
        message = self.string()
        placed = self.ahead == "@"
        return Site(error, message, self.place()), placed

    def op(self, block: Block) -> None:
        names: list[str] = []
        if self.ahead[:1] == "%":
            names.append(self.advance())
            while self.accept(","):
                names.append(self.advance())
            self.expect("=")
        name = self.word()
        defn = REGISTRY.get(name)
        if defn is None:
            raise self.fail(f"an operator before it ({name!r} is none)")
        operands = []
        if self.ahead[:1] == "%":
            operands.append(self.use())
            while self.accept(","):
                operands.append(self.use())
        sites: list[tuple[int, Site, bool]] = []
        attrs = self.attr_list(sites) if self.accept("{") else {}
        types: list[TensorType] = []
        if names:
            self.expect(":")
            types.append(self.type())
            while self.accept(","):
                types.append(self.type())
        if len(types) != len(names):
            raise self.fail(f"{len(names)} result types before it")
        loc = self.place()
        for index, site, placed in sites:
            self.add_site(index, site if placed or loc is None else Site(site.error, site.message, loc))
        regions: list[Block] = []
        while self.ahead == "(" or (regions and self.label()):
            regions.append(self.region())
        op = block.append(Op(defn, operands, types, attrs, regions, loc))
        for result_name, value in zip(names, op.results, strict=True):
            self.define(result_name, value)

    def add_site(self, index: int, site: Site) -> None:
        while len(self.graph.sites) <= index:
            self.graph.sites.append(Site("", ""))
        self.graph.sites[index] = site

    def argument(self) -> None:
        if self.accept("hidden"):
            self.graph.hidden.append(self.string())
        elif self.graph.hidden:
            raise self.fail("'hidden' (hidden arguments come last)")
        self.block_arg(self.graph.body)

    def result(self) -> Result | None:
        """One entry of the results; None for a mere type."""
        if self.ahead not in _HOW:
            self.type()
            return None
        how = self.word()
        made: dict[str, Any] = {}
        if how == "dim":
            made["dim"] = self.dim()
        elif how == "static":
            made["value"] = self.attr()
        else:
            made["index"] = self.integer()
        if self.accept("via"):
            made["steps"] = self.attr()
        if self.accept("tensor"):
            made["tensor"] = True
        if self.accept("read_only"):
            made["read_only"] = True
        return Result(how, **made)  # type: ignore[arg-type]  # one of the words in _HOW

    def header_results(self) -> list[Result]:
        if self.accept("none"):
            return []
        found = self.listed(")", self.result) if self.accept("(") else (self.result(),)
        return [r or Result("fresh", i) for i, r in enumerate(found)]

    def header_symbols(self) -> None:
        g = self.graph
        places = first_places([a.type for a in g.args])
        known: dict[str, dict[str, Any]] = {}
        if not self.accept("where"):
            for name, (arg, axis) in places.items():
                g.add_symbol(Symbol(name, "arg", arg, axis, lower=0, not_one=True))
            return
        while True:
            origin = "arg"
            name = self.word()
            if name in ("index", "value") and self.ahead.isidentifier() and self.ahead not in ("if", "fast_math"):
                origin, name = name, self.word()
            made = known.setdefault(name, {"origin": origin, "lower": None})
            relation = self.ahead
            if relation in ("=", ">=", "<=", "!="):
                self.advance()
            if relation == "=":
                self.word()
                self.expect("(")
                made["arg"], made["axis"] = self.listed(")", self.integer)
            elif relation == ">=":
                made["lower"] = self.dim()
            elif relation == "<=":
                made["upper"] = self.dim()
            elif relation == "!=":
                self.dim()
                made["not_one"] = True
            if not self.accept(","):
                break
        for name, made in known.items():
            if made["origin"] == "arg" and "arg" not in made:
                if name not in places:
                    raise self.fail(f"facts of symbols before it ({name} is no size of an argument)")
                made["arg"], made["axis"] = places[name]
            g.add_symbol(Symbol(name, **made))

    def guard(self) -> None:
        left = self.dim()
        relation = self.advance()
        if relation not in _RELATIONS:
            raise self.fail("a relation (==, !=, >=, <) before it")
        right = self.dim()
        self.graph.add_guard(Guard(relation, left, right, self.place()))  # type: ignore[arg-type]  # checked above

    def run(self) -> Graph:
        g = self.graph
        self.expect("graph")
        self.expect("@")
        g.name = self.advance()
        self.expect("(")
        self.listed(")", self.argument)
        self.expect("->")
        g.results = self.header_results()
        self.header_symbols()
        if self.accept("if"):
            self.guard()
            while self.accept(","):
                self.guard()
        if self.accept("fast_math"):
            self.expect("[")
            g.fast_math = frozenset(self.listed("]", self.word))
        self.body(g.body)
        while self.accept("site"):
            index = self.integer()
            self.add_site(index, self.site()[0])
        if self.ahead:
            raise self.fail("the end")
        return g


def parse(text: str) -> Graph:
    """The graph that prints as `text`.

    Raises:
        ParseError: `text` is no graph; the message shows the line.
    """
    return _Parser(text).run()
