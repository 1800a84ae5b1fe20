"""A small language for the machine code of the dispatcher: a subset of Python, compiled to LLVM IR text.

Every value is a 64-bit integer; addresses are integers. A module of the language is a Python file whose functions are
never run by Python: `compile_functions` reads their source. There are:

    x = e, x += e; if, while, break, continue, return; + - * & | ^ << >>, // and % (both towards 0)
    comparisons (signed), and, or, not, a if t else b
    load(p) load32(p) load8(p)   an integer at an address: 64 bits, 32 with its sign, 8 without
    store(p, v)                  64 bits
    word(p, k), set_word(p, k, v)       the word number k from p on
    stack(n)                     address of n words of this call; n is a constant
    invoke32(f, ...)             the function at address f, which answers an int
    c.Name(...)                  a function of C's whose address is in the table `rt`, a variable of the caller's
    the.name                     a word of that table
    layout.name                  a constant that is known when the code is made: an offset inside objects
    Record.NAME, NAME            constants of the module
    other(...)                   a function of one of the modules

Functions decorated with `exported` have C's calling convention and their own name; the others are internal, those
decorated with `inlined` parts of their callers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from jitgraph.errors import InternalError

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "ashr", ast.FloorDiv: "sdiv", ast.Mod: "srem",
}  # fmt: skip
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge"}
#: C functions that answer int or nothing, or that take doubles (read from the addresses given); all others answer 64
#: bits and take integers.
RETURNS = {
    "Py_IncRef": "void", "Py_DecRef": "void", "PyErr_Clear": "void", "PyEval_RestoreThread": "void",
    "memory_free": "void",
    "PyContextVar_Get": "i32", "PyDict_Next": "i32", "PyObject_RichCompareBool": "i32", "PyUnicode_Compare": "i32",
    "PyDict_Contains": "i32", "PyErr_ExceptionMatches": "i32", "PyDict_SetItem": "i32", "PyArray_SetBaseObject": "i32",
}  # fmt: skip
TAKES_DOUBLES = ("PyFloat_FromDouble", "PyComplex_FromDoubles")


# what the functions of the language see when Python looks at them: names and types only
def load(p: int) -> int: ...  # type: ignore[empty-body]
def load32(p: int) -> int: ...  # type: ignore[empty-body]
def load8(p: int) -> int: ...  # type: ignore[empty-body]
def store(p: int, v: int) -> None: ...
def word(p: int, k: int) -> int: ...  # type: ignore[empty-body]
def set_word(p: int, k: int, v: int) -> None: ...
def stack(n: int) -> int: ...  # type: ignore[empty-body]
def invoke32(f: int, *arguments: int) -> int: ...  # type: ignore[empty-body]


_F = TypeVar("_F", bound=Callable[..., Any])


class _Functions:
    def __getattr__(self, name: str) -> Callable[..., int]: ...  # type: ignore[empty-body]


class _Words:
    def __getattr__(self, name: str) -> int: ...  # type: ignore[empty-body]


c, the, layout = _Functions(), _Words(), _Words()


def exported(fn: _F) -> _F:
    """Mark a function of the language that is called from outside."""
    return fn


def inlined(fn: _F) -> _F:
    """Mark a function of the language that becomes part of its callers."""
    return fn


def compile_functions(modules: Iterable[ModuleType], layout_of: Mapping[str, int], table: Mapping[str, int]) -> str:
    """The LLVM IR text of all functions of these modules, which know each other by name.

    Args:
        layout_of: values of `layout.name`.
        table: number of each name (C functions and values) in the table `rt`.

    Raises:
        OSError: a module's source is not at hand.
        InternalError: it is not of the language.
    """
    found: list[tuple[ast.FunctionDef, Mapping[str, Any]]] = []
    for module in modules:
        loader: Any = module.__spec__.loader if module.__spec__ else None
        source = loader.get_source(module.__name__) if hasattr(loader, "get_source") else None
        if source is None:
            raise OSError(f"no source of {module.__name__}")
        found += [(node, vars(module)) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    names = {node.name for node, _ in found}
    return "\n\n".join(_Function(node, own, names, layout_of, table).text() for node, own in found) + "\n"


class _Function:
    """One function on its way to text."""

    def __init__(
        self,
        node: ast.FunctionDef,
        constants: Mapping[str, Any],
        functions: set[str],
        layout_of: Mapping[str, int],
        table: Mapping[str, int],
    ) -> None:
        self.node = node
        self.constants, self.functions, self.layout, self.table = constants, functions, layout_of, table
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.variables: set[str] = set()
        self.count = 0
        self.loops: list[tuple[str, str]] = []
        self.open = True

    def text(self) -> str:
        node = self.node
        marks = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
        linkage = "" if "exported" in marks else "internal "
        attributes = "nounwind alwaysinline" if "inlined" in marks else "nounwind"
        parameters = [a.arg for a in node.args.args]
        for name in parameters:
            self.put(f"store i64 %a.{name}, ptr {self.variable(name)}")
        self.body(node.body)
        if self.open:
            self.end("ret i64 0")
        head = f"define {linkage}i64 @{node.name}({', '.join(f'i64 %a.{p}' for p in parameters)}) {attributes} {{"
        return "\n".join([head, "entry:", *self.allocas, *self.lines, "}"])

    # --- writing

    def put(self, line: str) -> None:
        if self.open:
            self.lines.append(f"  {line}")

    def end(self, line: str) -> None:
        self.put(line)
        self.open = False

    def define(self, line: str) -> str:
        self.count += 1
        self.put(f"%t{self.count} = {line}")
        return f"%t{self.count}"

    def fresh(self, hint: str) -> str:
        self.count += 1
        return f"{hint}.{self.count}"

    def label(self, name: str) -> None:
        if self.open:
            self.end(f"br label %{name}")
        self.lines.append(f"{name}:")
        self.open = True

    def variable(self, name: str) -> str:
        if name not in self.variables:
            self.variables.add(name)
            self.allocas.append(f"  %v.{name} = alloca i64")
        return f"%v.{name}"

    def pointer(self, address: str) -> str:
        return self.define(f"inttoptr i64 {address} to ptr")

    def fail(self, node: ast.AST) -> InternalError:
        return InternalError(f"{self.node.name}, line {getattr(node, 'lineno', 0)}: not of the language")

    # --- statements

    def body(self, statements: list[ast.stmt]) -> None:
        for s in statements:
            self.statement(s)

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
            value = self.value(s.value)
            self.put(f"store i64 {value}, ptr {self.variable(s.targets[0].id)}")
        elif isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
            value = self.value(ast.BinOp(ast.Name(s.target.id), s.op, s.value))
            self.put(f"store i64 {value}, ptr {self.variable(s.target.id)}")
        elif isinstance(s, ast.If):
            self.branch(s)
        elif isinstance(s, ast.While):
            test, body, behind = self.fresh("test"), self.fresh("body"), self.fresh("behind")
            self.label(test)
            self.condition(s.test, body, behind)
            self.label(body)
            self.loops.append((test, behind))
            self.body(s.body)
            self.loops.pop()
            self.end(f"br label %{test}")
            self.label(behind)
        elif isinstance(s, ast.Break | ast.Continue):
            self.end(f"br label %{self.loops[-1][isinstance(s, ast.Break)]}")
        elif isinstance(s, ast.Return):
            self.end(f"ret i64 {'0' if s.value is None else self.value(s.value)}")
        elif isinstance(s, ast.Expr):
            if not isinstance(s.value, ast.Constant):  # a docstring
                self.value(s.value)
        else:
            raise self.fail(s)

    def branch(self, s: ast.If) -> None:
        yes, behind = self.fresh("then"), self.fresh("behind")
        no = self.fresh("else") if s.orelse else behind
        self.condition(s.test, yes, no)
        self.label(yes)
        self.body(s.body)
        if self.open:
            self.end(f"br label %{behind}")
        if s.orelse:
            self.label(no)
            self.body(s.orelse)
            if self.open:
                self.end(f"br label %{behind}")
        self.label(behind)

    def condition(self, e: ast.expr, yes: str, no: str) -> None:
        """Go to one of two labels."""
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
            self.condition(e.operand, no, yes)
        elif isinstance(e, ast.BoolOp):
            for part in e.values[:-1]:
                following = self.fresh("next")
                targets = (following, no) if isinstance(e.op, ast.And) else (yes, following)
                self.condition(part, *targets)
                self.label(following)
            self.condition(e.values[-1], yes, no)
        else:
            self.end(f"br i1 {self.truth(e)}, label %{yes}, label %{no}")

    # --- expressions

    def truth(self, e: ast.expr) -> str:
        if isinstance(e, ast.Compare) and len(e.ops) == 1:
            left, right = self.value(e.left), self.value(e.comparators[0])
            return self.define(f"icmp {_COMPARE[type(e.ops[0])]} i64 {left}, {right}")
        return self.define(f"icmp ne i64 {self.value(e)}, 0")

    def value(self, e: ast.expr) -> str:
        known = self.constant(e)
        if known is not None:
            return str(known)
        if isinstance(e, ast.Name):
            if e.id not in self.variables:
                raise self.fail(e)
            return self.define(f"load i64, ptr {self.variable(e.id)}")
        if isinstance(e, ast.BinOp):
            left, right = self.value(e.left), self.value(e.right)
            return self.define(f"{_BINARY[type(e.op)]} i64 {left}, {right}")
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            return self.define(f"sub i64 0, {self.value(e.operand)}")
        if isinstance(e, ast.Compare) and len(e.ops) == 1:
            return self.define(f"zext i1 {self.truth(e)} to i64")
        if isinstance(e, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.IfExp):
            return self.chosen(e)
        if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id == "the":
            return self.of_table(e.attr)
        if isinstance(e, ast.Call):
            return self.call(e)
        raise self.fail(e)

    def constant(self, e: ast.expr) -> int | None:
        """The value of a constant of the module, or None."""
        if isinstance(e, ast.Constant) and isinstance(e.value, int):
            return int(e.value)
        if isinstance(e, ast.Name) and e.id not in self.variables and isinstance(self.constants.get(e.id), int):
            return int(self.constants[e.id])
        if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name):
            if e.value.id == "layout":
                return self.layout[e.attr]
            if e.value.id != "the":
                return int(getattr(self.constants[e.value.id], e.attr))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            inner = self.constant(e.operand)
            return None if inner is None else -inner
        if isinstance(e, ast.BinOp):
            left, right = self.constant(e.left), self.constant(e.right)
            if left is not None and right is not None and isinstance(e.op, ast.Add | ast.Sub | ast.Mult):
                return {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}[type(e.op)]
        return None

    def chosen(self, e: ast.expr) -> str:
        """A value that is one of two."""
        yes, no, behind = self.fresh("yes"), self.fresh("no"), self.fresh("chosen")
        place = self.variable(self.fresh("choice"))
        test, first, second = (e.test, e.body, e.orelse) if isinstance(e, ast.IfExp) else (e, None, None)
        self.condition(test, yes, no)
        for name, value, default in ((yes, first, "1"), (no, second, "0")):
            self.label(name)
            self.put(f"store i64 {default if value is None else self.value(value)}, ptr {place}")
            self.end(f"br label %{behind}")
        self.label(behind)
        return self.define(f"load i64, ptr {place}")

    def of_table(self, name: str) -> str:
        return self.read(self.value(ast.Name("rt")), self.table[name])

    def read(self, base: str, number: int) -> str:
        address = self.define(f"add i64 {base}, {8 * number}") if number else base
        return self.define(f"load i64, ptr {self.pointer(address)}")

    def element(self, base: ast.expr, index: ast.expr) -> str:
        """The address of a word."""
        start, known = self.value(base), self.constant(index)
        if known is not None:
            offset = str(8 * known)
        else:
            offset = self.define(f"shl i64 {self.value(index)}, 3")
        return start if offset == "0" else self.define(f"add i64 {start}, {offset}")

    def call(self, e: ast.Call) -> str:
        arguments = e.args
        if isinstance(e.func, ast.Attribute) and isinstance(e.func.value, ast.Name) and e.func.value.id == "c":
            return self.call_c(e.func.attr, arguments)
        name = e.func.id if isinstance(e.func, ast.Name) else ""
        if name in self.functions:
            given = ", ".join([f"i64 {self.value(a)}" for a in arguments])
            return self.define(f"call i64 @{name}({given})")
        if name == "load":
            return self.define(f"load i64, ptr {self.pointer(self.value(arguments[0]))}")
        if name in ("load32", "load8"):
            ty, widen = ("i32", "sext") if name == "load32" else ("i8", "zext")
            narrow = self.define(f"load {ty}, ptr {self.pointer(self.value(arguments[0]))}")
            return self.define(f"{widen} {ty} {narrow} to i64")
        if name == "word":
            return self.define(f"load i64, ptr {self.pointer(self.element(arguments[0], arguments[1]))}")
        if name in ("store", "set_word"):
            address = self.value(arguments[0]) if name == "store" else self.element(arguments[0], arguments[1])
            value = self.value(arguments[-1])
            self.put(f"store i64 {value}, ptr {self.pointer(address)}")
            return "0"
        if name == "stack":
            count = self.constant(arguments[0])
            place = self.fresh("%stack")
            self.allocas.append(f"  {place} = alloca [{count} x i64], align 16")
            return self.define(f"ptrtoint ptr {place} to i64")
        if name == "invoke32":
            return self.indirect(self.value(arguments[0]), arguments[1:], "i32")
        raise self.fail(e)

    def call_c(self, name: str, arguments: list[ast.expr]) -> str:
        function = self.of_table(name)
        if name in TAKES_DOUBLES:
            pointers = [self.pointer(self.value(a)) for a in arguments]
            given = ", ".join([f"double {self.define(f'load double, ptr {p}')}" for p in pointers])
            return self.define(f"call i64 {self.pointer(function)}({given})")
        return self.indirect(function, arguments, RETURNS.get(name, "i64"))

    def indirect(self, function: str, arguments: list[ast.expr], returns: str) -> str:
        given = ", ".join([f"i64 {self.value(a)}" for a in arguments])
        called = f"call {returns} {self.pointer(function)}({given})"
        if returns == "void":
            self.put(called)
            return "0"
        found = self.define(called)
        return self.define(f"sext i32 {found} to i64") if returns == "i32" else found
