"""Rewriting: a user's function as a copy in which every call, attribute, subscript and branch goes through the tracer.

The copy is compiled with the user's file name and positions, so tracebacks and op locations are the user's. What it
calls is `_jg_`, a free variable that holds the `Tracer` of the trace (`jitgraph.tracing.standins`):

    f(a, k=b)            _jg_.call(f, a, k=b)
    o.m(a)               _jg_.method(o, "m", a)
    o.w, a[i]            _jg_.attr(o, "w"), _jg_.item(a, i)
    o.w = v, a[i] = v    _jg_.set_attr(v, o, "w"), _jg_.set_item(v, a, i)
    a[i] += v            _jg_.augmented_item("iadd", _jg_.target_item(a, i), v)
    a + b, a += b        _jg_.binary("add", a, b), a = _jg_.augmented("iadd", a, b)
    a and b, a < b < c   _jg_.and_(a, lambda: b), _jg_.chain(a, ("lt", lambda: b), ("lt", lambda: c))
    x if t else y        _jg_.choose(t, lambda: x, lambda: y)
    if, for, while       region protocols of `jitgraph.tracing.control_flow`, inline in the user's frame

    s = _jg_.branch(test, INFO)              l = _jg_.loop(iterable, INFO)         w = _jg_.while_loop(INFO)
    if s.traced: s.enter(locals())           for i in l:                           while w.turn():
    while s.turn():                              if l.traced:                          if w.traced:
        try:                                         l.enter(locals())                     w.enter(locals())
            if s.taken:                              y = l.get("y")                        y = w.get("y")
                body                                 i = l.element()                   try:
            else:                                try:                                      t = w.test(test)
                if s.traced: y = s.get("y")          target = i; body                      if t is None: continue
                orelse                           except Exception as e:                    if not t: break
        except Exception as e:                       if not l.caught(e): raise             if w.traced: y = w.get("y")
            if not s.caught(e): raise            if l.traced: l.leave(locals())            body
        if s.traced: s.leave(locals())           [if l.stop(flag): break]              except Exception as e:
    if s.traced: y = s.get("y")              if l.traced: y = l.get("y")                   if not w.caught(e): raise
                                                                                       if w.traced: w.leave(locals())
                                                                                   if w.traced: y = w.get("y")
A branch that sees a traced test takes both sides in turn; a loop that becomes a region takes its body once an attempt.
INFO is a tuple of names, see `BranchInfo` and `LoopInfo`. Generators and class bodies have no regions.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
from collections.abc import Iterable, Sequence
from threading import Lock
from types import CodeType
from typing import NamedTuple, cast

from jitgraph.forking import open_in_child
from jitgraph.records import dataclass
from jitgraph.tracing.desugar import desugar
from jitgraph.tracing.exits import BREAK_FLAG, RETURNED, at, blocks_of, lower_exits
from jitgraph.tracing.liveness import LIVE, NONE, Live, always_live, annotate, block_facts, maybe_unbound
from jitgraph.tracing.source_find import FunctionNode, compile_in_factory, find, nested

#: The free variable that holds the tracer.
TRACER = "_jg_"
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
#: CPython allows 20 nested blocks in a function, and a region takes two; statements that would need more stay plain.
_MOST_BLOCKS = 18
#: Functions that look at the frame that calls them: called as they stand.
FRAME_FUNCTIONS = frozenset({"super", "locals", "eval", "exec", "globals", "vars", "dir"})


class BranchInfo(NamedTuple):
    """What an `if` needs to know of its names.

    Attributes:
        names: assigned in a branch and live behind it.
        kept: those of `names` that the `else` branch does not assign: they have their value from before.
        assigned: all names that a branch assigns.
    """

    names: tuple[str, ...]
    kept: tuple[str, ...]
    assigned: tuple[str, ...]


class LoopInfo(NamedTuple):
    """What a loop needs to know of its names.

    Attributes:
        head: assigned in the body, and perhaps read at the start of a turn: carried.
        after: assigned in the body and live behind the loop.
        rebound: assigned other than by an augmented assignment.
        written: bases of subscript stores and targets of augmented assignments: their storages are likely carried.
        assigned: all names the body assigns.
        break_flag: name of the flag that ends the loop, or "".
        target: the loop variable of a `for`, if it is one name, else "".
        line: of the statement.
        unread: names that each turn assigns before it reads them.
    """

    head: tuple[str, ...]
    after: tuple[str, ...]
    rebound: tuple[str, ...]
    written: tuple[str, ...]
    assigned: tuple[str, ...]
    break_flag: str
    target: str
    line: int
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewritten code object; `TRACER` is among its free variables."""

    code: CodeType


_cache: dict[int, tuple[CodeType, Rewritten | None]] = {}
_made: dict[int, CodeType] = {}
_lock = Lock()
open_in_child(_lock)


def rewritten(code: CodeType) -> Rewritten | None:
    """The rewritten copy of `code`, made once a process; None if its source is not at hand."""
    known = _cache.get(id(code))
    if known is None:
        result = _rewrite(code)
        with _lock:
            known = _cache.setdefault(id(code), (code, result))
            if known[1] is not None:
                for inner in nested(known[1].code):
                    _made[id(inner)] = inner
    return known[1]


def is_rewritten(code: CodeType) -> bool:
    """Whether `code` is the product of a rewrite."""
    return id(code) in _made


def _rewrite(code: CodeType) -> Rewritten | None:
    node = find(code)
    if node is None:
        return None
    tree = _function(node, outermost=True, suspends=bool(code.co_flags & _SUSPENDS))
    free = tuple(dict.fromkeys((TRACER, *code.co_freevars)))
    made = compile_in_factory(tree, code, free)
    # The first line stays that of `def`: positions are relative to it, and decorators are stripped here.
    return Rewritten(made.replace(co_name=code.co_name, co_qualname=code.co_qualname))


def _function(
    node: FunctionNode, *, outermost: bool, suspends: bool | None = None, around: frozenset[str] = NONE
) -> FunctionNode:
    """Rewrite a function in place. The outermost one loses decorators, annotations and (the values of) its defaults.

    Args:
        suspends: it is a generator or coroutine; None: look.
        around: names that some path of the functions around it leaves unbound.
    """
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    names = frozenset(a.arg for a in every if a is not None)
    for arg in every:
        if arg is not None:
            arg.annotation = None
    if outermost:
        none = at(ast.Constant(value=None), node)
        arguments.defaults = [none for _ in arguments.defaults]
        arguments.kw_defaults = [None if d is None else none for d in arguments.kw_defaults]
    if isinstance(node, ast.Lambda):
        node.body = cast("ast.expr", _Rewriter(regions=False, maybe=around - names).visit(node.body))
        return node
    if outermost:
        node.decorator_list = []
    node.returns = None
    if getattr(node, "type_params", None):
        vars(node)["type_params"] = []
    maybe = around - names
    node.body = desugar(node.body)
    regions = not (_suspends(node) if suspends is None else suspends)
    if regions and any(isinstance(s, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Match) for s in node.body):
        node.body = lower_exits(node.body)
        found: set[str] = set()
        maybe_unbound(node.body, names, found)
        maybe |= {n for n in found if not n.startswith("_jg_")}
        annotate(node.body, NONE, always_live(node.body) - (names - block_facts(node.body).assigned))
    node.body = _Rewriter(regions=regions, maybe=maybe).block(node.body)
    return node


def _suspends(node: FunctionNode) -> bool:
    """Whether the function is a generator or a coroutine."""
    if isinstance(node, ast.AsyncFunctionDef):
        return True
    stack: list[ast.AST] = list(ast.iter_child_nodes(node))
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.Yield | ast.YieldFrom | ast.Await):
            return True
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack += ast.iter_child_nodes(inner)
    return False


def _binds(*nodes: ast.AST) -> bool:
    """Whether an expression holds what must not move into a lambda: a walrus, `yield` or `await`."""
    return any(
        isinstance(n, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await) for node in nodes for n in ast.walk(node)
    )


_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq",
    ast.NotEq: "ne", ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in",
}  # fmt: skip


_UNARY: dict[type[ast.AST], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


def _name(name: str, place: ast.AST) -> ast.Name:
    return at(ast.Name(id=name, ctx=ast.Load()), place)


def _attribute(owner: str, attr: str, place: ast.AST) -> ast.Attribute:
    """`owner.attr`, on the first line of `place`: a call is located at the last line of its method's name."""
    node = at(ast.Attribute(value=_name(owner, place), attr=attr, ctx=ast.Load()), place)
    node.end_lineno, node.end_col_offset = node.lineno, node.col_offset + 1
    return node


def _call(
    place: ast.AST, function: str, *args: ast.expr, owner: str = TRACER, keywords: Sequence[ast.keyword] = ()
) -> ast.Call:
    return at(ast.Call(func=_attribute(owner, function, place), args=list(args), keywords=list(keywords)), place)


def _text(value: object, place: ast.AST) -> ast.Constant:
    return at(ast.Constant(value=value), place)  # type: ignore[arg-type]  # tuples of names are constants too


def _lambda(body: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return at(ast.Lambda(args=nothing, body=body), body)


def _assign(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    return at(ast.Assign(targets=[at(ast.Name(id=name, ctx=ast.Store()), place)], value=value), place)


def _expr(value: ast.expr) -> ast.stmt:
    return at(ast.Expr(value=value), value)


def _if(test: ast.expr, body: list[ast.stmt], orelse: Sequence[ast.stmt] = (), *, place: ast.AST) -> ast.If:
    return at(ast.If(test=test, body=body or [at(ast.Pass(), place)], orelse=list(orelse)), place)


class _Rewriter(ast.NodeTransformer):
    """Rewrites the body of one function; nested functions get a rewriter of their own."""

    def __init__(self, *, regions: bool, in_class: bool = False, maybe: frozenset[str] = NONE) -> None:
        #: Names that some path leaves unbound: their uses are calls.
        self.maybe = maybe
        self.regions = regions
        self.in_class = in_class
        self.counter = 0
        #: Blocks of CPython's around the statement at hand.
        self.blocks = 0

    def _fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"_jg_{prefix}{self.counter}"

    def block(self, stmts: Iterable[ast.stmt]) -> list[ast.stmt]:
        """The statements, rewritten.

        Names of ours that one statement uses are free again for the next one: each region looks at all variables of the
        frame, which are not to be more where there are more statements.
        """
        out: list[ast.stmt] = []
        for stmt in stmts:
            known = self.counter
            made = self.visit(stmt)
            if isinstance(made, list):
                out += made
            elif made is not None:
                out.append(made)
            self.counter = known
        return out

    def inner(self, stmts: Iterable[ast.stmt], blocks: int) -> list[ast.stmt]:
        """The statements, rewritten, inside of so many more blocks."""
        self.blocks += blocks
        try:
            return self.block(stmts)
        finally:
            self.blocks -= blocks

    def _is_plain(self) -> bool:
        """Whether control flow stays as it is here."""
        return not self.regions or self.in_class or self.blocks + 2 > _MOST_BLOCKS

    def expr(self, node: ast.expr) -> ast.expr:
        return cast("ast.expr", self.visit(node))

    # --- expressions

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.maybe and isinstance(node.ctx, ast.Load):
            return _call(node, "use", node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        if isinstance(func, ast.Name) and func.id in FRAME_FUNCTIONS and not (func.id in ("vars", "dir") and node.args):
            self.generic_visit(node)
            return node
        args = [self.expr(a) for a in node.args]
        keywords = [at(ast.keyword(arg=k.arg, value=self.expr(k.value)), k) for k in node.keywords]
        if isinstance(func, ast.Attribute):
            return _call(node, "method", self.expr(func.value), _text(func.attr, func), *args, keywords=keywords)
        return _call(node, "call", self.expr(func), *args, keywords=keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == TRACER:
            return node
        value = self.expr(node.value)
        if isinstance(node.ctx, ast.Load):
            return _call(node, "attr", value, _text(node.attr, node))
        node.value = value
        return node

    def index(self, node: ast.expr) -> ast.expr:
        """An index as a plain expression: slices become calls."""
        if isinstance(node, ast.Slice):
            parts = [_text(None, node) if p is None else self.expr(p) for p in (node.lower, node.upper, node.step)]
            return _call(node, "slice", *parts)
        if isinstance(node, ast.Tuple):
            return at(ast.Tuple(elts=[self.index(e) for e in node.elts], ctx=ast.Load()), node)
        return self.expr(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            return _call(node, "item", self.expr(node.value), self.index(node.slice))
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        name = _OPERATORS[type(node.op)]
        return _call(node, "binary", _text(name, node), self.expr(node.left), self.expr(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = self.expr(node.operand)
        if isinstance(node.op, ast.Not):
            return _call(node, "not_", operand)
        if not isinstance(operand, ast.Constant):
            return _call(node, "unary", _text(_UNARY[type(node.op)], node), operand)
        node.operand = operand
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self.in_class or _binds(*node.values[1:]):
            self.generic_visit(node)
            return node
        function = "and_" if isinstance(node.op, ast.And) else "or_"
        result = self.expr(node.values[0])
        for value in node.values[1:]:
            result = _call(node, function, result, _lambda(self.expr(value)))
        return result

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1 and not self.in_class:
            name = _text(_OPERATORS[type(node.ops[0])], node)
            return _call(node, "binary", name, self.expr(node.left), self.expr(node.comparators[0]))
        if self.in_class or _binds(*node.comparators):
            self.generic_visit(node)
            return node
        links: list[ast.expr] = [
            at(ast.Tuple(elts=[_text(_OPERATORS[type(op)], right), _lambda(self.expr(right))], ctx=ast.Load()), right)
            for op, right in zip(node.ops, node.comparators, strict=True)
        ]
        return _call(node, "chain", self.expr(node.left), *links)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if self.in_class or _binds(node.body, node.orelse):
            self.generic_visit(node)
            return node
        return _call(
            node, "choose", self.expr(node.test), _lambda(self.expr(node.body)), _lambda(self.expr(node.orelse))
        )

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = _call(node.iter, "iterable", node.iter)
        node.ifs = [_call(test, "decided", test) for test in node.ifs]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args.defaults = [self.expr(d) for d in node.args.defaults]
        node.args.kw_defaults = [None if d is None else self.expr(d) for d in node.args.kw_defaults]
        return _function(node, outermost=False, around=self.maybe)

    # --- simple statements

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt] | ast.stmt:
        value = self.expr(node.value)
        if len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                if isinstance(value, ast.Call) and not target.id.startswith("_jg_"):
                    value = _call(value, "named", _text(target.id, node), value)
                node.value = value
                return node
            if isinstance(target, ast.Attribute | ast.Subscript):
                return self._store(target, value)
        after: list[ast.stmt] = []
        if any(isinstance(t, ast.Tuple | ast.List) for t in node.targets) and not isinstance(value, ast.Tuple):
            value = _call(value, "iterable", value) if len(node.targets) == 1 else value
        node.targets = [self._target(t, after) for t in node.targets]
        node.value = value
        return [node, *after]

    def _store(self, target: ast.Attribute | ast.Subscript, value: ast.expr) -> ast.stmt:
        if isinstance(target, ast.Attribute):
            return _expr(_call(target, "set_attr", value, self.expr(target.value), _text(target.attr, target)))
        return _expr(_call(target, "set_item", value, self.expr(target.value), self.index(target.slice)))

    def _target(self, target: ast.expr, after: list[ast.stmt]) -> ast.expr:
        """A target in which attributes and subscripts are temporaries, stored by the statements added to `after`."""
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self._target(e, after) for e in target.elts]
        elif isinstance(target, ast.Starred):
            target.value = self._target(target.value, after)
        elif isinstance(target, ast.Attribute | ast.Subscript):
            name = self._fresh("value")
            after.append(self._store(target, _name(name, target)))
            return at(ast.Name(id=name, ctx=ast.Store()), target)
        return target

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt] | ast.stmt:
        if self.in_class:
            return node
        if node.value is None:
            return at(ast.Pass(), node)
        return self.visit_Assign(at(ast.Assign(targets=[node.target], value=node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        name = _text("i" + _OPERATORS[type(node.op)].rstrip("_"), node)
        target, value = node.target, self.expr(node.value)
        if isinstance(target, ast.Name):
            loaded = self.expr(_name(target.id, target))  # before the value: if it is unbound, that is the first error
            return _assign(target.id, _call(node, "augmented", name, loaded, value), node)
        if isinstance(target, ast.Attribute):
            known = _call(node, "target_attr", self.expr(target.value), _text(target.attr, target))
            return _expr(_call(node, "augmented_attr", name, known, value))
        known = _call(node, "target_item", self.expr(target.value), self.index(target.slice))
        return _expr(_call(node, "augmented_item", name, known, value))

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                out.append(_expr(_call(target, "del_item", self.expr(target.value), self.index(target.slice))))
            elif isinstance(target, ast.Attribute):
                out.append(_expr(_call(target, "del_attr", self.expr(target.value), _text(target.attr, target))))
            else:
                if isinstance(target, ast.Name) and target.id in self.maybe:
                    out.append(_expr(_call(target, "use", _name(target.id, target))))
                elif isinstance(target, ast.Name):  # a global that nobody has read is not in the trace's dict
                    out.append(_expr(_name(target.id, target)))
                out.append(at(ast.Delete(targets=[target]), node))
        return out

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        if sys.flags.optimize:  # as the function's own code, which has none
            return at(ast.Pass(), node)
        if self.in_class or (node.msg is not None and _binds(node.msg)):
            self.generic_visit(node)
            return node
        message = _text(None, node) if node.msg is None else _lambda(self.expr(node.msg))
        return _expr(_call(node, "assert_", self.expr(node.test), message))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = [self.expr(d) for d in node.decorator_list]
        node.args.defaults = [self.expr(d) for d in node.args.defaults]
        node.args.kw_defaults = [None if d is None else self.expr(d) for d in node.args.kw_defaults]
        return _function(node, outermost=False, around=self.maybe)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # the name that ast.NodeVisitor looks for

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        inner = _Rewriter(regions=False, in_class=True, maybe=self.maybe)
        made = _attribute(TRACER, "class_made", node)
        node.decorator_list = [*(self.expr(d) for d in node.decorator_list), made]
        node.bases = [self.expr(b) for b in node.bases]
        node.body = inner.block(node.body)
        return node

    # --- control flow

    def visit_If(self, node: ast.If) -> list[ast.stmt] | ast.stmt:
        test = self.expr(node.test)
        if self._is_plain():
            test = _call(test, "decided", test)
            node.test, node.body, node.orelse = test, self.block(node.body), self.block(node.orelse)
            return node
        live: Live = getattr(node, LIVE)
        body, orelse = block_facts(node.body), block_facts(node.orelse)
        names = tuple(sorted((body.assigned | orelse.assigned) & live.after))
        kept = tuple(n for n in names if n not in orelse.assigned)
        stale = body.assigned & (orelse.gen | ((live.after & orelse.assigned) - orelse.kill))
        s = self._fresh("branch")
        taken = self.inner(node.body, 2)
        other = self.inner(node.orelse, 2)
        if stale:
            restore = [_assign(n, _call(node, "get", _text(n, node), owner=s), node) for n in sorted(stale)]
            other = [_if(_attribute(s, "traced", node), restore, place=node), *other]
        choice = _if(_attribute(s, "taken", node), taken, other, place=node)
        turn = [
            self._guarded([choice], s, node),
            _if(_attribute(s, "traced", node), [_expr(self._locals(s, "leave", node))], place=node),
        ]
        out = [
            _assign(
                s,
                _call(
                    node,
                    "branch",
                    test,
                    _text(tuple(BranchInfo(names, kept, tuple(sorted(body.assigned | orelse.assigned)))), node),
                ),
                node,
            ),
            _if(_attribute(s, "traced", node), [_expr(self._locals(s, "enter", node))], place=node),
            at(ast.While(test=_call(node, "turn", owner=s), body=turn, orelse=[]), node),
        ]
        if names:
            out.append(self._fetch(s, names, node))
        return out

    def _guarded(self, body: list[ast.stmt], s: str, node: ast.AST) -> ast.stmt:
        error = self._fresh("error")
        caught = at(ast.UnaryOp(op=ast.Not(), operand=_call(node, "caught", _name(error, node), owner=s)), node)
        handler = at(
            ast.ExceptHandler(
                type=_attribute(TRACER, "Exception", node),
                name=error,
                body=[_if(caught, [at(ast.Raise(exc=None, cause=None), node)], place=node)],
            ),
            node,
        )
        return at(ast.Try(body=body, handlers=[handler], orelse=[], finalbody=[]), node)

    def _locals(self, s: str, function: str, node: ast.AST) -> ast.Call:
        return _call(
            node, function, at(ast.Call(func=_attribute(TRACER, "locals", node), args=[], keywords=[]), node), owner=s
        )

    def _fetch(self, s: str, names: Sequence[str], node: ast.AST) -> ast.If:
        body = [_assign(n, _call(node, "get", _text(n, node), owner=s), node) for n in names]
        return _if(_attribute(s, "traced", node), body, place=node)

    def _loop_info(self, node: ast.For | ast.While) -> LoopInfo:
        live: Live = getattr(node, LIVE)
        facts = block_facts(node.body)
        targets = (
            set() if isinstance(node, ast.While) else {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        )
        walrus = (
            {n.target.id for n in ast.walk(node.test) if isinstance(n, ast.NamedExpr)}
            if isinstance(node, ast.While)
            else set()
        )
        assigned = facts.assigned | targets | walrus
        rebound, written = set(targets), set[str]()
        _stores(node.body, rebound, written)
        flag = getattr(node, BREAK_FLAG, "")
        head = (assigned & live.head) | ({flag} - {""})
        return LoopInfo(
            tuple(sorted(head)), tuple(sorted((assigned & live.after) | ({flag} - {""}))), tuple(sorted(rebound)),
            tuple(sorted(written)), tuple(sorted(assigned)), flag,
            node.target.id if isinstance(node, ast.For) and isinstance(node.target, ast.Name) else "", node.lineno,
            tuple(sorted((facts.kill | targets) - live.read)),
        )  # fmt: skip

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        self.generic_visit(node)
        node.subject = _call(node.subject, "subject", node.subject)
        return node

    def visit_For(self, node: ast.For) -> list[ast.stmt] | ast.stmt:
        iterable = self.expr(node.iter)
        after: list[ast.stmt] = []
        if self._is_plain():
            node.iter, node.target = iterable, self._target(node.target, after)
            node.body, node.orelse = [*after, *self.inner(node.body, 1)], self.block(node.orelse)
            if getattr(node, BREAK_FLAG, ""):  # the flag stands for the `break` that was there
                stop: ast.expr = _name(getattr(node, BREAK_FLAG), node)
                node.body.append(_if(stop, [at(ast.Break(), node)], place=node))
            return node
        info = self._loop_info(node)
        s, element = self._fresh("loop"), self._fresh("element")
        bind = at(ast.Assign(targets=[node.target], value=_name(element, node.target)), node.target)
        if info.break_flag:  # turns after a traced break do nothing
            stop = at(ast.UnaryOp(op=ast.Not(), operand=_name(info.break_flag, node)), node)
            guard = _if(stop, [bind, *node.body], place=node)
            setattr(
                guard, LIVE, Live(frozenset(info.head) | frozenset(info.after) | cast("Live", getattr(node, LIVE)).head)
            )
            body = self.inner([guard], 2)
        else:
            bind.targets = [self._target(node.target, after)]
            body = [bind, *after, *self.inner(node.body, 2)]
        turn: list[ast.stmt] = [
            _if(
                _attribute(s, "traced", node),
                [
                    _expr(self._locals(s, "enter", node)),
                    *(_assign(n, _call(node, "get", _text(n, node), owner=s), node) for n in info.head),
                    _assign(element, _call(node.iter, "element", owner=s), node),
                ],
                place=node,
            ),
            self._guarded(body, s, node),
            _if(_attribute(s, "traced", node), [_expr(self._locals(s, "leave", node))], place=node),
        ]
        if info.break_flag:
            turn.append(
                _if(_call(node, "stop", _name(info.break_flag, node), owner=s), [at(ast.Break(), node)], place=node)
            )
        loop = at(
            ast.For(target=at(ast.Name(id=element, ctx=ast.Store()), node), iter=_name(s, node), body=turn, orelse=[]),
            node,
        )
        out: list[ast.stmt] = [_assign(s, _call(node.iter, "loop", iterable, _text(tuple(info), node)), node), loop]
        if info.after:
            out.append(self._fetch(s, info.after, node))
        return out + self.block(node.orelse)

    def visit_While(self, node: ast.While) -> list[ast.stmt] | ast.stmt:
        info = None if self._is_plain() else self._loop_info(node)
        flag = getattr(node, BREAK_FLAG, "")
        if flag:
            stopped: ast.expr = at(ast.UnaryOp(op=ast.Not(), operand=_name(flag, node)), node)
            node.test = at(ast.BoolOp(op=ast.And(), values=[stopped, node.test]), node.test)
        test = self.expr(node.test)
        if info is None:
            test = _call(test, "decided", test)
            node.test, node.body, node.orelse = test, self.inner(node.body, 1), self.block(node.orelse)
            return node
        s, known = self._fresh("loop"), self._fresh("test")
        heads = [_assign(n, _call(node, "get", _text(n, node), owner=s), node) for n in info.head]
        is_none = at(ast.Compare(left=_name(known, node), ops=[ast.Is()], comparators=[_text(None, node)]), node)
        body = [
            _assign(known, _call(node.test, "test", test, owner=s), node.test),
            _if(is_none, [at(ast.Continue(), node)], place=node),
            _if(at(ast.UnaryOp(op=ast.Not(), operand=_name(known, node)), node), [at(ast.Break(), node)], place=node),
            *([_if(_attribute(s, "traced", node), list(heads), place=node)] if heads else []),
            *self.inner(node.body, 2),
        ]
        turn: list[ast.stmt] = [
            _if(_attribute(s, "traced", node), [_expr(self._locals(s, "enter", node)), *heads], place=node),
            self._guarded(body, s, node),
            _if(_attribute(s, "traced", node), [_expr(self._locals(s, "leave", node))], place=node),
        ]
        out: list[ast.stmt] = [
            _assign(s, _call(node, "while_loop", _text(tuple(info), node)), node),
            at(ast.While(test=_call(node, "turn", owner=s), body=turn, orelse=[]), node),
        ]
        if info.after:
            out.append(self._fetch(s, info.after, node))
        return out + self.block(node.orelse)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.stmt:
        for item in node.items:
            item.context_expr = self.expr(item.context_expr)
            if isinstance(node, ast.With) and not self.in_class:
                item.context_expr = _call(item.context_expr, "context", item.context_expr)
        node.body = self.inner(node.body, 1)
        return node

    visit_AsyncWith = visit_With  # noqa: N815  # the name that ast.NodeVisitor looks for

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        if node.finalbody and not _is_private(node.finalbody) and not self._is_plain():
            # what `finally` does must come behind the error, too
            inner: list[ast.stmt] = node.body
            if node.handlers:
                inner = [at(ast.Try(body=inner, handlers=node.handlers, orelse=node.orelse, finalbody=[]), node)]
            node.handlers, node.orelse = [], []
            node.body = self._handling(inner, [_name("BaseException", node)], node)
            node.finalbody = self.inner(node.finalbody, 1)
            return node
        handled = [_name("BaseException", h) if h.type is None else h.type for h in node.handlers]
        if handled and not self._is_plain():
            # what the handlers take must not become an error of the compiled code
            node.body = self._handling(node.body, handled, node)
        else:
            node.body = self.inner(node.body, 2)
        node.orelse = self.inner(node.orelse, 2)
        node.finalbody = self.inner(node.finalbody, 1)
        for handler in node.handlers:
            if handler.type is not None:
                handler.type = self.expr(handler.type)
            looked_at = handler.name is not None and any(
                isinstance(n, ast.Name) and n.id == handler.name for s in handler.body for n in ast.walk(s)
            )
            handler.body = self.inner(handler.body, 2)
            if looked_at:
                handler.body.insert(0, _expr(_call(handler, "look_at_error", _name(str(handler.name), handler))))
        if node.handlers:
            again: list[ast.stmt] = [at(ast.Raise(exc=None, cause=None), node)]
            passed = ast.ExceptHandler(type=_attribute(TRACER, "Refusals", node), name=None, body=again)
            node.handlers.insert(0, at(passed, node))
        return node

    def _handling(self, body: list[ast.stmt], kinds: list[ast.expr], node: ast.Try) -> list[ast.stmt]:
        """The body of a `try`, rewritten, while errors of these kinds are handled."""
        enter = _expr(_call(node, "handle", *(self.expr(copy.deepcopy(k)) for k in kinds)))
        leave = _expr(_call(node, "handled"))
        return [enter, at(ast.Try(body=self.inner(body, 3), handlers=[], orelse=[], finalbody=[leave]), node)]

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        if node.guard is not None:
            node.guard = self.expr(node.guard)
            node.guard = _call(node.guard, "decided", node.guard)
        node.body = self.block(node.body)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is not None and not (isinstance(node.value, ast.Name) and node.value.id == RETURNED):
            node.value = self.expr(node.value)
        return node


def _is_private(stmts: Sequence[ast.stmt]) -> bool:
    """Whether statements do no more than bind names to what has no effect."""
    plain = (ast.Assign, ast.AugAssign, ast.Pass, ast.If)
    effects = (ast.Call, ast.Subscript, ast.Attribute, ast.Raise, ast.Delete, ast.Global, ast.Nonlocal)
    return all(isinstance(s, plain) and not any(isinstance(n, effects) for n in ast.walk(s)) for s in stmts)


def _stores(stmts: Sequence[ast.stmt], rebound: set[str], written: set[str]) -> None:
    """Names that the statements bind anew, and those whose array they write to."""
    for stmt in stmts:
        if isinstance(stmt, ast.AugAssign):
            base: ast.expr = stmt.target
            while isinstance(base, ast.Subscript | ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name):
                written.add(base.id)
        elif isinstance(stmt, ast.Assign):
            for node in (n for t in stmt.targets for n in ast.walk(t)):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    rebound.add(node.id)
                elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    base = node.value
                    while isinstance(base, ast.Subscript | ast.Attribute):
                        base = base.value
                    if isinstance(base, ast.Name):
                        written.add(base.id)
        elif isinstance(stmt, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Match):
            if isinstance(stmt, ast.For):
                rebound |= {n.id for n in ast.walk(stmt.target) if isinstance(n, ast.Name)}
            for block in blocks_of(stmt):
                _stores(block, rebound, written)
        else:
            rebound |= block_facts([stmt]).assigned
