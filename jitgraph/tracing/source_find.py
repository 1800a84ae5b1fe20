"""Finding the syntax tree of a live code object, by code positions, and proving that it is the right one.

`inspect.getsource` guesses; here the lines are those that the code object itself names, and the tree found is compiled
untouched and compared with the live code (names, constants, locals, positions). A file edited since its import, code of
`exec` that names an existing file, or one of several lambdas in a line are told apart this way.
"""

from __future__ import annotations
import __future__

import ast
import dis
import linecache
from collections.abc import Iterator
from types import CodeType
from typing import Any, Final

_FUTURE_MASK = 0
for _name in __future__.all_feature_names:
    _FUTURE_MASK |= getattr(__future__, _name).compiler_flag

#: A statement that holds a lambda begins at most this many lines above it, before the whole file is parsed.
_LINES_ABOVE = 12

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Position = tuple[int | None, int | None, int | None, int | None]

#: Names of the factory function and of the function in it that `in_factory` makes.
FACTORY, FUNCTION = "_jitgraph_factory", "_jitgraph_function"


def nested(code: CodeType) -> Iterator[CodeType]:
    """`code` and all code objects in its constants."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from nested(const)


def future_flags(code: CodeType) -> int:
    """The `from __future__` features that `code` was compiled with."""
    return code.co_flags & _FUTURE_MASK


def find(code: CodeType) -> FunctionNode | None:
    """The verified tree of `code`, fresh for the caller to change; None if its source is not at hand."""
    if not code.co_firstlineno or code.co_filename.startswith("<frozen"):
        return None
    linecache.checkcache(code.co_filename)  # a module that was edited and loaded again
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno
    last = max((p[1] or 0 for c in nested(code) for p in c.co_positions()), default=first)
    if not lines or last > len(lines):
        return None
    for tree in _parses(lines, first, last, is_lambda=code.co_name == "<lambda>"):
        for node in _candidates(tree, code):
            if _matches(node, code):
                return node
    return None


def _parses(lines: list[str], first: int, last: int, *, is_lambda: bool) -> Iterator[ast.AST]:
    """Trees of slices of the file around lines first..last that are syntactically whole; at the end of the file's."""
    for start in range(first, max(first - (_LINES_ABOVE if is_lambda else 1), 0), -1):
        for end in range(last, min(last + 6, len(lines)) + 1):
            tree = _parse_slice(lines, start, end)
            if tree is not None:
                yield tree
                break
    if not is_lambda:  # statements behind the last `return` have no code, but names
        tree = _parse_slice(lines, first, _block_end(lines, first, last))
        if tree is not None:
            yield tree
    if is_lambda:
        try:
            yield ast.parse("".join(lines))
        except SyntaxError:
            return


def _block_end(lines: list[str], first: int, last: int) -> int:
    """The last line of the block whose head stands in line `first`: what follows is indented no more than that."""
    margin = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    end = last
    for number in range(last + 1, len(lines) + 1):
        text = lines[number - 1].strip()
        if text and not text.startswith("#"):
            if len(lines[number - 1]) - len(lines[number - 1].lstrip()) <= margin:
                break
            end = number
    return end


def _parse_slice(lines: list[str], start: int, end: int) -> ast.AST | None:
    text = lines[start - 1 : end]
    indented = text[0][:1] in " \t"
    try:
        tree = ast.parse(("if 1:\n" if indented else "") + "".join(text))
    except (SyntaxError, ValueError):
        return None
    return ast.increment_lineno(tree, start - 2 if indented else start - 1)


def _candidates(tree: ast.AST, code: CodeType) -> Iterator[FunctionNode]:
    if code.co_name == "<lambda>":
        ends = {(p[1], p[3]) for p in code.co_positions() if p[1] is not None}
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda) and (node.body.end_lineno, node.body.end_col_offset) in ends:
                yield node
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _mangled(node.name, code) == code.co_name:
            start = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if start == code.co_firstlineno:
                yield node


def _mangled(name: str, code: CodeType) -> str:
    owner = class_name(code)
    return (
        f"_{owner}{name}"
        if owner and name.startswith("__") and not name.endswith("__") and code.co_name != name
        else name
    )


def class_name(code: CodeType) -> str:
    """The class in whose body the function stands, without leading underscores: what private names are mangled with."""
    parts = code.co_qualname.rsplit(".", 2)
    owner = parts[-2] if len(parts) > 1 else ""
    return "" if owner == "<locals>" else owner.lstrip("_")


class _Mangler(ast.NodeTransformer):
    """Private names `__x` in a method as the compiler sees them: `_Class__x`."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def _name(self, name: str) -> str:
        return f"_{self.owner}{name}" if name.startswith("__") and not name.endswith("__") and "." not in name else name

    def visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "attr", "arg", "name"):
            value = getattr(node, field, None)
            if type(value) is str and not isinstance(node, ast.alias | ast.keyword):
                setattr(node, field, self._name(value))
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [self._name(n) for n in node.names]
        if isinstance(node, ast.ClassDef):  # mangles its own names
            return node
        self.generic_visit(node)
        return node


def _matches(node: FunctionNode, code: CodeType) -> bool:
    """Compile `node` as it stands and compare with the live code. Private names are mangled in place."""
    owner = class_name(code)
    if owner and any(n.startswith(f"_{owner}__") for n in (*code.co_names, *code.co_varnames, *code.co_freevars)):
        _Mangler(owner).visit(node)
    try:
        compiled = compile_in_factory(node, code, code.co_freevars)
    except (SyntaxError, ValueError, RecursionError):  # an expression too deep for Python's own tree
        return False
    return (
        compiled.co_names == code.co_names
        and compiled.co_varnames == code.co_varnames
        and compiled.co_freevars == code.co_freevars
        and _constants(compiled) == _constants(code)
        and set(compiled.co_positions()) == set(code.co_positions())
        and _told(compiled) == _told(code)
    )


#: Instructions that say which variables, constants and operators there are (`a - b` and `b + a` have the same places),
#: and by how many bits their argument is shifted. How calls are prepared depends on what the module imports.
_TELLING: Final = {
    dis.opmap[name]: shift
    for names, shift in (
        ("LOAD_FAST STORE_FAST LOAD_CONST LOAD_DEREF STORE_DEREF BINARY_OP COMPARE_OP IS_OP CONTAINS_OP", 0),
        ("LOAD_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_FAST_LOAD_FAST UNARY_NEGATIVE UNARY_NOT UNARY_INVERT", 0),
        ("LOAD_GLOBAL", 1),
    )
    for name in names.split()
    if name in dis.opmap
}


def _told(code: CodeType) -> list[tuple[int, int]]:
    found = []
    for c in nested(code):
        high = 0
        raw = c.co_code
        for op, low in zip(raw[::2], raw[1::2], strict=True):
            if op == dis.EXTENDED_ARG:
                high = (high | low) << 8
                continue
            if op in _TELLING:
                found.append((op, (high | low) >> _TELLING[op]))
            high = 0
    return found


def _constants(code: CodeType) -> list[tuple[type, str]]:
    return [(type(c), repr(c)) for c in code.co_consts if not isinstance(c, CodeType)]


def compile_in_factory(node: FunctionNode, code: CodeType, free: tuple[str, ...]) -> CodeType:
    """The code object of `node`, compiled inside a function whose parameters are the free variables.

    Raises:
        SyntaxError: the node cannot stand there.
    """
    parameters = ast.arguments(
        posonlyargs=[], args=[ast.arg(arg=n, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0) for n in free],
        kwonlyargs=[], kw_defaults=[], defaults=[],
    )  # fmt: skip
    place: Any = {"lineno": node.lineno, "col_offset": 0, "end_lineno": node.lineno, "end_col_offset": 0}
    body: ast.stmt
    if isinstance(node, ast.Lambda):
        body = ast.Expr(value=node, **place)
        name = "<lambda>"
    else:
        body, name, node.name = node, node.name, FUNCTION
    factory = ast.FunctionDef(name=FACTORY, args=parameters, body=[body], decorator_list=[], **place)
    if "type_params" in ast.FunctionDef._fields:
        vars(factory)["type_params"] = []
    module = ast.Module(body=[factory], type_ignores=[])
    try:
        outer = compile(module, code.co_filename, "exec", flags=future_flags(code), dont_inherit=True)
    finally:
        if not isinstance(node, ast.Lambda):
            node.name = name
    wanted = "<lambda>" if isinstance(node, ast.Lambda) else FUNCTION
    made = [c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name == FACTORY]
    inner = [c for f in made for c in f.co_consts if isinstance(c, CodeType) and c.co_name == wanted]
    if not inner:
        raise SyntaxError("the function vanished")
    return inner[-1]  # lambdas in its defaults and decorators are made before it
