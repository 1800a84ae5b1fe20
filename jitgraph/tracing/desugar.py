"""Statements that regions do not know, said in those that they do; before exits become flags.

    match s: case ...                 a chain of `if`; a `match` of one case is left where a pattern has structure
    while (v := f()) > 0: body        while True: [if not (v := f()) > 0: break]; body
    a and (v := f()), x if t else v := y      `if` statements that assign to a temporary
    finally: return x                 what is raised in front of it is dropped by a handler

A name bound inside of an operand that Python may skip cannot move into a lambda, which is what `and`, `or`, `if` in
expressions and chained comparisons become: such an operand becomes a statement, and so do those evaluated before it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import cast

from jitgraph.tracing.exits import at, blocks_of, leaves_list

_INNER = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WHOLE = (*_INNER, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def desugar(stmts: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function, changed in place; functions inside are left alone."""
    if not any(isinstance(n, ast.NamedExpr | ast.Match | ast.Try) for stmt in stmts for n in ast.walk(stmt)):
        return stmts
    return _Desugar().block(stmts)


def _binds(*nodes: ast.AST) -> bool:
    """Whether an expression binds a name of the function."""
    return any(isinstance(n, ast.NamedExpr) for node in nodes for n in ast.walk(node))


def _skips(node: ast.AST) -> bool:
    """Whether an expression binds a name in a part that Python may skip."""
    if isinstance(node, _WHOLE):
        return False
    if isinstance(node, ast.BoolOp) and _binds(*node.values[1:]):
        return True
    if isinstance(node, ast.IfExp) and _binds(node.body, node.orelse):
        return True
    if isinstance(node, ast.Compare) and _binds(*node.comparators[1:]):
        return True
    return any(_skips(child) for child in ast.iter_child_nodes(node))


def _name(name: str, place: ast.AST) -> ast.Name:
    return at(ast.Name(id=name, ctx=ast.Load()), place)


def _assign(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    return at(ast.Assign(targets=[at(ast.Name(id=name, ctx=ast.Store()), place)], value=value), place)


def _const(value: bool | None, place: ast.AST) -> ast.Constant:
    return at(ast.Constant(value=value), place)


def _not(value: ast.expr) -> ast.expr:
    return at(ast.UnaryOp(op=ast.Not(), operand=value), value)


def _compare(left: ast.expr, op: ast.cmpop, right: ast.expr, place: ast.AST) -> ast.expr:
    return at(ast.Compare(left=left, ops=[op], comparators=[right]), place)


def _if(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], place: ast.AST) -> ast.stmt:
    return at(ast.If(test=test, body=body or [at(ast.Pass(), place)], orelse=orelse), place)


def _both(tests: Sequence[ast.expr], place: ast.AST) -> ast.expr | None:
    """All of the tests; None if there is none."""
    if len(tests) < 2:
        return tests[0] if tests else None
    return at(ast.BoolOp(op=ast.And(), values=list(tests)), place)


class _Desugar:
    def __init__(self) -> None:
        self.counter = 0

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"_jg_{prefix}{self.counter}"

    def block(self, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for stmt in stmts:
            out += self.statement(stmt)
        return out

    def statement(self, stmt: ast.stmt) -> list[ast.stmt]:
        if isinstance(stmt, _INNER):
            return [stmt]
        if isinstance(stmt, ast.Match):
            return self.match(stmt)
        if isinstance(stmt, ast.While) and _binds(stmt.test):
            return self.while_true(stmt)
        out: list[ast.stmt] = []
        for part in ("test", "iter", "subject") if blocks_of(stmt) else ("value", "test", "exc"):
            value = getattr(stmt, part, None)
            if isinstance(value, ast.expr) and _skips(value) and not isinstance(stmt, ast.While):
                setattr(stmt, part, self.hoist(value, out))
        for part in ("body", "orelse", "finalbody"):
            if isinstance(inner := getattr(stmt, part, None), list):
                setattr(stmt, part, self.block(inner))
        for handler in getattr(stmt, "handlers", ()):
            handler.body = self.block(handler.body)
        if isinstance(stmt, ast.Try) and leaves_list(stmt.finalbody):
            self.drop_errors(stmt)
        return [*out, stmt]

    # --- loops and errors

    def while_true(self, stmt: ast.While) -> list[ast.stmt]:
        """A loop whose test binds names: the test is the first statement of a turn."""
        out: list[ast.stmt] = []
        ends: list[ast.stmt] = [at(ast.Break(), stmt.test)]
        orelse, stmt.orelse = stmt.orelse, []
        ended = self.fresh("ended") if orelse else ""
        if ended:
            out.append(_assign(ended, _const(value=False, place=stmt), stmt))
            ends.insert(0, _assign(ended, _const(value=True, place=stmt.test), stmt.test))
        stmt.body.insert(0, _if(_not(stmt.test), ends, [], stmt.test))
        stmt.test = _const(value=True, place=stmt)
        stmt.body = self.block(stmt.body)
        out.append(stmt)
        if ended:
            out.append(_if(_name(ended, orelse[0]), self.block(orelse), [], orelse[0]))
        return out

    def drop_errors(self, stmt: ast.Try) -> None:
        """A `finally` that may leave by `return`, `break` or `continue` drops the error on its way; else it goes on."""
        error, caught = self.fresh("pending"), self.fresh("caught")
        first = stmt.body[0]
        inner = stmt.body
        if stmt.handlers or stmt.orelse:
            inner = [at(ast.Try(body=stmt.body, handlers=stmt.handlers, orelse=stmt.orelse, finalbody=[]), stmt)]
        keep = at(
            ast.ExceptHandler(
                type=_name("BaseException", first), name=caught, body=[_assign(error, _name(caught, first), first)]
            ),
            first,
        )
        stmt.body = [_assign(error, _const(value=None, place=first), first), *inner]
        stmt.handlers, stmt.orelse = [keep], []
        last = stmt.finalbody[-1]
        is_pending = _compare(_name(error, last), ast.IsNot(), _const(value=None, place=last), last)
        again = at(ast.Raise(exc=_name(error, last), cause=None), last)
        stmt.finalbody.append(_if(is_pending, [again], [], last))

    # --- operands that may be skipped

    def hoist(self, node: ast.expr, out: list[ast.stmt]) -> ast.expr:
        """The value of an expression; what comes before it is added to `out`."""
        if not _skips(node):
            return node
        if isinstance(node, ast.BoolOp):
            kept = self.keep(node.values[0], out)
            block = out
            for value in node.values[1:]:
                inner: list[ast.stmt] = []
                inner.append(_assign(kept, self.hoist(value, inner), value))
                test: ast.expr = _name(kept, value)
                block.append(_if(test if isinstance(node.op, ast.And) else _not(test), inner, [], value))
                block = inner
            return _name(kept, node)
        if isinstance(node, ast.IfExp):
            test = self.hoist(node.test, out)
            kept = self.fresh("kept")
            sides: list[list[ast.stmt]] = []
            for value in (node.body, node.orelse):
                side: list[ast.stmt] = []
                side.append(_assign(kept, self.hoist(value, side), value))
                sides.append(side)
            out.append(_if(test, sides[0], sides[1], node))
            return _name(kept, node)
        if isinstance(node, ast.Compare) and _binds(*node.comparators[1:]):
            kept, left, block = self.fresh("kept"), self.keep(node.left, out), out
            for number, (op, value) in enumerate(zip(node.ops, node.comparators, strict=True)):
                inner = []
                right = self.keep(value, inner)
                inner.append(_assign(kept, _compare(_name(left, value), op, _name(right, value), node), node))
                block += [_if(_name(kept, node), inner, [], value)] if number else inner
                left, block = right, inner if number else block
            return _name(kept, node)
        self.operands(node, out)
        return node

    def operands(self, node: ast.AST, out: list[ast.stmt]) -> None:
        """Hoist the parts of a node in place; those in front of the last one that needs it become temporaries."""
        parts: list[tuple[ast.AST, str, int]] = []
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                parts.append((node, field, -1))
            elif isinstance(value, list):
                parts += [(node, field, k) for k, v in enumerate(value) if isinstance(v, ast.expr | ast.keyword)]

        def get(owner: ast.AST, field: str, k: int) -> ast.AST:
            found = getattr(owner, field)
            return cast("ast.AST", found if k < 0 else found[k])

        last = max((n for n, p in enumerate(parts) if _skips(get(*p))), default=-1)
        for number, (owner, field, k) in enumerate(parts[: last + 1]):
            part = get(owner, field, k)
            if isinstance(part, ast.keyword | ast.Starred):
                holder: ast.keyword | ast.Starred = part
                holder.value = self.before(holder.value, out, last=number == last)
                continue
            if isinstance(part, ast.Slice | ast.FormattedValue | ast.JoinedStr):
                self.operands(part, out)
                continue
            if not isinstance(part, ast.expr) or isinstance(getattr(part, "ctx", None), ast.Store):
                continue
            made = self.before(part, out, last=number == last)
            if k < 0:
                setattr(owner, field, made)
            else:
                getattr(owner, field)[k] = made

    def before(self, part: ast.expr, out: list[ast.stmt], *, last: bool) -> ast.expr:
        if isinstance(part, ast.Constant):
            return part
        return self.hoist(part, out) if last else _name(self.keep(part, out), part)

    def keep(self, part: ast.expr, out: list[ast.stmt]) -> str:
        """A temporary with the value of an expression."""
        kept = self.fresh("kept")
        out.append(_assign(kept, self.hoist(part, out), part))
        return kept

    # --- match

    def match(self, stmt: ast.Match) -> list[ast.stmt]:
        subject = self.fresh("subject")
        out: list[ast.stmt] = []
        value = self.hoist(stmt.subject, out)
        out.append(_assign(subject, value, stmt))
        return [*out, *self.cases(subject, stmt.cases, stmt)]

    def cases(self, subject: str, cases: Sequence[ast.match_case], place: ast.AST) -> list[ast.stmt]:
        """The cases in turn, as a chain of `if`."""
        if not cases:
            return []
        case, rest = cases[0], cases[1:]
        pattern, body = case.pattern, self.block(case.body)
        names: list[str] = []
        test = self.simple(pattern, subject, names)
        bound = [_assign(n, _name(subject, pattern), pattern) for n in names]
        if test is not None and (case.guard is None or not bound):
            tests = [t for t in (test, case.guard) if not (isinstance(t, ast.Constant) and t.value is True)]
            all_of = _both([t for t in tests if t is not None], pattern)
            if all_of is None:
                return [*bound, *body]
            return self.statement_if(all_of, [*bound, *body], self.cases(subject, rest, place), pattern)
        matched = self.fresh("matched")
        out: list[ast.stmt] = []
        guard = case.guard
        if test is not None:  # the guard may read what the pattern binds
            found: list[ast.stmt] = [*bound, _assign(matched, cast("ast.expr", guard), pattern)]
            if isinstance(test, ast.Constant):
                out += self.block(found)
            else:
                out.append(_assign(matched, _const(value=False, place=pattern), pattern))
                out += self.statement_if(test, found, [], pattern)
        else:
            out.append(_assign(matched, _const(value=False, place=pattern), pattern))
            alternatives = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
            for number, alternative in enumerate(alternatives):
                parts: list[ast.expr] = []
                shape = self.structure(alternative, parts)
                if guard is not None and len(alternatives) == 1:
                    parts.append(guard)
                holds = _both(parts, alternative) or _const(value=True, place=alternative)
                inner = self.block([_assign(matched, holds, alternative)])
                one = ast.match_case(pattern=shape, guard=None, body=inner)
                tried: list[ast.stmt] = [at(ast.Match(subject=_name(subject, alternative), cases=[one]), alternative)]
                out += [_if(_not(_name(matched, alternative)), tried, [], alternative)] if number else tried
            if guard is not None and len(alternatives) > 1:
                out += self.statement_if(_name(matched, guard), [_assign(matched, guard, guard)], [], guard)
        out.append(_if(_name(matched, pattern), body, self.cases(subject, rest, place), pattern))
        return out

    def statement_if(
        self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], place: ast.AST
    ) -> list[ast.stmt]:
        """An `if` whose parts are done but for its test."""
        out: list[ast.stmt] = []
        test = self.hoist(test, out)
        return [*out, _if(test, body, orelse, place)]

    def simple(self, pattern: ast.pattern, subject: str, names: list[str]) -> ast.expr | None:
        """The test of a pattern that looks at the subject as a whole; None if it has structure.

        Args:
            names: those it binds to the subject are added.
        """
        if isinstance(pattern, ast.MatchValue):
            return _compare(_name(subject, pattern), ast.Eq(), pattern.value, pattern)
        if isinstance(pattern, ast.MatchSingleton):
            return _compare(_name(subject, pattern), ast.Is(), at(ast.Constant(value=pattern.value), pattern), pattern)
        if isinstance(pattern, ast.MatchClass) and not pattern.patterns and not pattern.kwd_patterns:
            return at(ast.Call(_name("isinstance", pattern), [_name(subject, pattern), pattern.cls], []), pattern)
        if isinstance(pattern, ast.MatchOr):
            tests = [self.simple(p, subject, names) for p in pattern.patterns]
            if any(t is None for t in tests):
                names.clear()
                return None
            return at(ast.BoolOp(op=ast.Or(), values=cast("list[ast.expr]", tests)), pattern)
        if isinstance(pattern, ast.MatchAs):
            whole = at(ast.Constant(value=True), pattern)
            test = whole if pattern.pattern is None else self.simple(pattern.pattern, subject, names)
            if test is not None and pattern.name:
                names.append(pattern.name)
            return test
        return None

    def structure(self, pattern: ast.pattern, tests: list[ast.expr]) -> ast.pattern:
        """The pattern with captures in place of values, whose tests are added to `tests`."""
        if isinstance(pattern, ast.MatchValue | ast.MatchSingleton | ast.MatchOr):
            held = self.fresh("part")
            names: list[str] = []
            test = self.simple(pattern, held, names)
            if test is None or names:
                return pattern
            tests.append(test)
            return at(ast.MatchAs(pattern=None, name=held), pattern)
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
            pattern.pattern = self.structure(pattern.pattern, tests)
        for field in ("patterns", "kwd_patterns"):
            inner = getattr(pattern, field, None)
            if inner:
                setattr(pattern, field, [self.structure(p, tests) for p in inner])
        return pattern
