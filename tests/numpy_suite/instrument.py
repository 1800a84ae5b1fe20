"""Test modules with their calls, subscripts and operators handed to a probe: an import hook that rewrites them.

`f(x)` becomes `PROBE.function(f)(x)`, `x.sum()` the same with the bound method, `x[i]` becomes `PROBE.getitem(x, i)`, `x + y`
`PROBE.binary("add", x, y)` and so on. Line numbers stay.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.MatMult: "matmul",
}  # fmt: skip
_IN_PLACE = {kind: f"i{name.rstrip('_')}" for kind, name in _BINARY.items()}
_UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
#: The name of the probe in rewritten modules.
PROBE = "__probe__"


def _probe(method: str, *args: ast.expr, at: ast.AST) -> ast.Call:
    function = ast.Attribute(ast.Name(PROBE, ast.Load()), method, ast.Load())
    made = ast.Call(function, list(args), [])
    return ast.fix_missing_locations(ast.copy_location(made, at))


class Instrument(ast.NodeTransformer):
    """Rewrites one module."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _probe("function", node.func, at=node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return _probe("getitem", node.value, _key(node.slice), at=node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
            return node
        # The value comes first, as in Python.
        call = _probe("setitem", node.value, target.value, _key(target.slice), at=node)
        return ast.copy_location(ast.Expr(call), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        name = ast.Constant(_IN_PLACE[type(node.op)])
        target = node.target
        if isinstance(target, ast.Name):
            value = _probe("in_place", name, ast.Name(target.id, ast.Load()), node.value, at=node)
            return ast.copy_location(ast.Assign([ast.Name(target.id, ast.Store())], value, lineno=node.lineno), node)
        if isinstance(target, ast.Subscript):
            call = _probe("in_place_item", name, target.value, _key(target.slice), node.value, at=node)
            return ast.copy_location(ast.Expr(call), node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _probe("binary", ast.Constant(_BINARY[type(node.op)]), node.left, node.right, at=node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in _UNARY or isinstance(node.operand, ast.Constant):
            return node
        return _probe("unary", ast.Constant(_UNARY[type(node.op)]), node.operand, at=node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1 or type(node.ops[0]) not in _COMPARE:
            return node
        return _probe("binary", ast.Constant(_COMPARE[type(node.ops[0])]), node.left, node.comparators[0], at=node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        return node


def _key(key: ast.expr) -> ast.expr:
    """A subscript as an expression: slices become calls of `slice`."""
    if isinstance(key, ast.Slice):
        parts = [p if p is not None else ast.Constant(None) for p in (key.lower, key.upper, key.step)]
        return _probe("slice", *parts, at=key)
    if isinstance(key, ast.Tuple) and any(isinstance(k, ast.Slice | ast.Starred) for k in key.elts):
        return ast.copy_location(ast.Tuple([_key(k) for k in key.elts], ast.Load()), key)
    return key


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the modules of a package whose names are given, rewritten."""

    def __init__(self, names: Sequence[str], probe: Any) -> None:
        self.names = frozenset(names)
        self.probe = probe
        self.files: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.names:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert found is not None, fullname
        assert found.origin is not None, fullname
        self.files[fullname] = found.origin
        return importlib.util.spec_from_file_location(fullname, found.origin, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        file = self.files[module.__name__]
        tree = Instrument().visit(ast.parse(Path(file).read_text("utf-8"), file))
        module.__dict__[PROBE] = self.probe
        exec(compile(ast.fix_missing_locations(tree), file, "exec"), module.__dict__)


def install(names: Sequence[str], probe: Any) -> None:
    sys.meta_path.insert(0, Finder(names, probe))
