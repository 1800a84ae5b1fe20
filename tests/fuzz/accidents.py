"""What NumPy does by accident, and so is not drawn: a program is run with its products and writes watched.

- The last bit of complex64 products of one reversed element (docs/numerics.md); of programs of small seeds also in place
  over reversed axes, which had other bits when they were recorded.
- Values of a masked write that lie in the array that is written: NumPy reads some of them after it overwrote them.
- `np.negative(x, out=x)` of elements 16 (of 4 bytes) or 64 bytes (of 8) apart: NumPy 2.4 negates the first one only.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

import numpy as np


class Refused(Exception):  # noqa: N818
    """A statement is not to be kept."""


def watched(source: str) -> CodeType:
    """Statements that call `product`, `in_place` and `masked` of `WATCHERS` on the way."""
    tree = _Watched().visit(ast.parse(source))
    return compile(ast.fix_missing_locations(tree), "<watched>", "exec")


class _Watched(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult | ast.Pow):
            return _call("product", node.left, node.right, ast.Constant(isinstance(node.op, ast.Pow)))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = _read(node.target)
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult | ast.Pow):
            return [ast.Expr(_call("in_place", target)), node]
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        (target,) = node.targets
        self.generic_visit(node)
        if isinstance(target, ast.Subscript):
            read = _read(target)
            index = ast.Subscript(_watcher("index"), read.slice, ast.Load())
            return [ast.Expr(_call("masked", read.value, index, node.value)), node]
        return node


_Target = TypeVar("_Target", bound=ast.expr)


def _read(target: _Target) -> _Target:
    """What is written, as an expression."""
    made = copy.deepcopy(target)
    made.ctx = ast.Load()  # type: ignore[attr-defined]
    return made


def _watcher(name: str) -> ast.expr:
    return ast.Subscript(ast.Name("watchers", ast.Load()), ast.Constant(name), ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_watcher(name), list(arguments), [])


def _reversed(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.complex64 and min(x.strides, default=0) < 0


def check_product(result: Any, *operands: Any) -> None:
    """Refuse products of one element that lies reversed."""
    if np.size(result) == 1 and any(_reversed(x) for x in operands):
        raise Refused("a complex64 product of one element in a reversed array")


def check_target(x: Any) -> None:
    """Refuse an array into which a complex product is written."""
    if _reversed(x):
        raise Refused("a complex64 product in place over reversed axes")


def check_in_place(right: Any, made: Any) -> None:
    """Refuse what NumPy computes wrongly where it writes over its operand."""
    if np.shape(right) == np.shape(made) and not np.array_equal(
        right, made, equal_nan=np.asarray(made).dtype.kind in "fc"
    ):
        raise Refused("an operator in place that NumPy gets wrong")


def _product(a: Any, b: Any, power: bool) -> Any:
    made = a**b if power else a * b
    check_product(made, a, b)
    return made


def _masked(x: Any, index: Any, values: Any) -> None:
    mask = isinstance(index, np.ndarray) and index.dtype.kind == "b"
    if mask and isinstance(values, np.ndarray) and values.ndim and np.may_share_memory(x, values):
        raise Refused("values that NumPy overwrites before it reads them")


def watchers(features: frozenset[str]) -> dict[str, Callable[..., Any] | Any]:
    """What is in the globals of watched code, as `watchers`."""
    in_place = (lambda x: None) if "products" in features else check_target
    return {"product": _product, "in_place": in_place, "masked": _masked, "index": np.s_}
