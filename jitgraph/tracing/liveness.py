"""Which names a branch or loop assigns, needs and leaves behind: what a region carries.

A backward analysis over structured code (after `exits.lower_exits`): every statement has `gen`, the names read before
they are certainly assigned, `kill`, those certainly assigned, and `assigned`, those assigned perhaps. They are computed
once per statement; `annotate` then walks once from the end and leaves a `Live` on each `if`, `for` and `while`.
Names that nested functions read, and those read in exception handlers, count as live everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from jitgraph.records import dataclass
from jitgraph.tracing.exits import BREAK_FLAG, blocks_of

Names = frozenset[str]
NONE: Names = frozenset()

_FACTS = "_jg_facts"
LIVE = "_jg_live"


@dataclass(frozen=True, slots=True)
class Facts:
    gen: Names
    kill: Names
    assigned: Names


@dataclass(frozen=True, slots=True)
class Live:
    """For one region statement.

    Attributes:
        after: names that may be read after it.
        head: for loops: names that may be read at the start of a turn or after the loop.
        read: for loops: names that a turn may read before it assigns them.
    """

    after: Names
    head: Names = NONE
    read: Names = NONE


class _Reader(ast.NodeVisitor):
    """Names read and assigned by expressions and simple statements."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.assigned: set[str] = set()
        self.captured: set[str] = set()
        #: Declared nonlocal; variables around that nested functions bind when they are called.
        self.nonlocals: set[str] = set()
        self.shared: set[str] = set()
        self.depth = 0

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.read.add(node.id)
            if self.depth:
                self.captured.add(node.id)
        elif not self.depth:
            self.assigned.add(node.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.assigned.add(node.target.id)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._nested(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.assigned.add(node.name)
        if not self.depth:
            self.shared |= _bound_around(node)
        self._nested(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # the name that ast.NodeVisitor looks for
    visit_ClassDef = visit_FunctionDef  # noqa: N815  # the name that ast.NodeVisitor looks for

    def _nested(self, node: ast.AST) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    def visit_ListComp(self, node: ast.AST) -> None:
        inner = _Reader()
        inner.generic_visit(node)
        self.read |= inner.read
        self.captured |= inner.captured | (inner.read if self.depth else set())
        # only walrus targets of a comprehension reach the function; its own targets do not
        self.assigned |= {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815  # the name that ast.NodeVisitor looks for

    def visit_alias(self, node: ast.alias) -> None:
        self.assigned.add((node.asname or node.name).split(".")[0])

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.assigned.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs  # noqa: N815  # the name that ast.NodeVisitor looks for

    def visit_Try(self, node: ast.Try) -> None:
        self.captured |= block_facts([s for h in node.handlers for s in h.body] + node.finalbody).gen
        self.generic_visit(node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.assigned.add(node.rest)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.captured.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.captured.update(node.names)
        if not self.depth:
            self.nonlocals.update(node.names)


def _bound_around(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    """Variables of the functions around a nested one that it, or what it defines, may bind."""
    reader = _Reader()
    for stmt in node.body:
        reader.visit(stmt)
    if isinstance(node, ast.ClassDef):
        return reader.nonlocals | reader.shared
    own = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    return reader.nonlocals | (reader.shared - own - (reader.assigned - reader.nonlocals))


def _simple(nodes: Iterable[ast.AST | None]) -> Facts:
    reader = _Reader()
    for node in nodes:
        if node is not None:
            reader.visit(node)
    assigned = frozenset(reader.assigned)
    return Facts(frozenset(reader.read), assigned, assigned | reader.shared)


def facts(stmt: ast.stmt) -> Facts:
    """`gen`, `kill` and `assigned` of a statement."""
    known: Facts | None = getattr(stmt, _FACTS, None)
    if known is None:
        known = _facts(stmt)
        setattr(stmt, _FACTS, known)
    return known


def _facts(stmt: ast.stmt) -> Facts:
    if isinstance(stmt, ast.If):
        test = _simple([stmt.test])
        body, orelse = block_facts(stmt.body), block_facts(stmt.orelse)
        gen = test.gen | ((body.gen | orelse.gen) - test.kill)
        if _raises(stmt.body):
            kill = orelse.kill
        else:
            kill = body.kill if _raises(stmt.orelse) else body.kill & orelse.kill
        return Facts(gen, test.kill | kill, test.assigned | body.assigned | orelse.assigned)
    if isinstance(stmt, ast.For | ast.AsyncFor):
        head, target, body, orelse = (
            _simple([stmt.iter]),
            _simple([stmt.target]),
            block_facts(stmt.body),
            block_facts(stmt.orelse),
        )
        gen = head.gen | (target.gen | (body.gen - target.kill)) | orelse.gen
        return Facts(gen, head.kill, head.assigned | target.assigned | body.assigned | orelse.assigned)
    if isinstance(stmt, ast.While):
        test, body, orelse = _simple([stmt.test]), block_facts(stmt.body), block_facts(stmt.orelse)
        gen = test.gen | ((body.gen | orelse.gen) - test.kill)
        return Facts(gen, test.kill, test.assigned | body.assigned | orelse.assigned)
    if isinstance(stmt, ast.With | ast.AsyncWith):
        head = _simple([part for item in stmt.items for part in (item.context_expr, item.optional_vars)])
        body = block_facts(stmt.body)
        return Facts(head.gen | (body.gen - head.kill), head.kill | body.kill, head.assigned | body.assigned)
    if isinstance(stmt, ast.Try):
        parts = [block_facts(b) for b in (stmt.body, stmt.orelse, stmt.finalbody, *(h.body for h in stmt.handlers))]
        types = _simple([h.type for h in stmt.handlers])
        names = frozenset(h.name for h in stmt.handlers if h.name)
        gen = types.gen.union(*(p.gen for p in parts))
        return Facts(gen, NONE, names.union(*(p.assigned for p in parts)))
    if isinstance(stmt, ast.Match):
        head = _simple([stmt.subject, *(p for c in stmt.cases for p in (c.pattern, c.guard))])
        parts = [block_facts(c.body) for c in stmt.cases]
        return Facts(head.gen.union(*(p.gen for p in parts)), NONE, head.assigned.union(*(p.assigned for p in parts)))
    found = _simple([stmt])
    if isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name):
        return Facts(found.gen | {stmt.target.id}, found.kill, found.assigned)
    if isinstance(stmt, ast.Delete):
        return Facts(found.gen | found.assigned, found.kill, found.assigned)
    return found


def _raises(stmts: Sequence[ast.stmt]) -> bool:
    return bool(stmts) and isinstance(stmts[-1], ast.Raise)


def block_facts(stmts: Sequence[ast.stmt]) -> Facts:
    """`gen`, `kill` and `assigned` of a list of statements."""
    gen: set[str] = set()
    kill: set[str] = set()
    assigned: set[str] = set()
    for stmt in stmts:
        f = facts(stmt)
        gen |= f.gen - kill
        kill |= f.kill
        assigned |= f.assigned
    return Facts(frozenset(gen), frozenset(kill), frozenset(assigned))


def always_live(body: Sequence[ast.stmt]) -> Names:
    """Names read by nested functions and in handlers: their uses have no place in the order of statements."""
    reader = _Reader()
    for stmt in body:
        reader.visit(stmt)
    return frozenset(reader.captured)


def maybe_unbound(stmts: Sequence[ast.stmt], have: Names, found: set[str]) -> Names | None:
    """Add to `found` the names that some path leaves unbound.

    Args:
        have: names surely bound before the list.

    Returns:
        the names surely bound behind it; None if its end is never reached.
    """
    for stmt in stmts:
        f = facts(stmt)
        if isinstance(stmt, ast.If):
            sides = [maybe_unbound(block, have, found) for block in (stmt.body, stmt.orelse)]
            reached = [s for s in sides if s is not None]
            if not reached:
                return None
            after = reached[0].intersection(*reached[1:])
            found |= f.assigned - after
            have = after
        elif isinstance(stmt, ast.For | ast.AsyncFor | ast.While):
            have = have - _deleted(stmt)
            inner = have | (_simple([stmt.target]).kill if not isinstance(stmt, ast.While) else NONE)
            maybe_unbound(stmt.body, inner, found)
            found |= f.assigned - have
            have = have | f.kill
        elif isinstance(stmt, ast.With | ast.AsyncWith):
            have = maybe_unbound(stmt.body, have | f.kill, found) or have
        elif isinstance(stmt, ast.Try | ast.Match):
            have = have - _deleted(stmt)
            found |= f.assigned - have
            for block in blocks_of(stmt):
                maybe_unbound(block, have, found)
        elif isinstance(stmt, ast.Raise | ast.Return):
            return None
        else:
            have = have | f.kill
            if isinstance(stmt, ast.Delete):
                have = have - f.assigned
    return have


def _deleted(stmt: ast.stmt) -> Names:
    """Names that a statement, or one inside it, deletes."""
    parts = [t for n in ast.walk(stmt) if isinstance(n, ast.Delete) for t in n.targets]
    return frozenset(t.id for t in parts if isinstance(t, ast.Name))


def annotate(stmts: Sequence[ast.stmt], after: Names, always: Names) -> None:
    """Leave a `Live` on every `if`, `for` and `while` of the list, given the names live behind it."""
    live = after | always
    for stmt in reversed(stmts):
        if isinstance(stmt, ast.If):
            setattr(stmt, LIVE, Live(live))
            annotate(stmt.body, live, always)
            annotate(stmt.orelse, live, always)
        elif isinstance(stmt, ast.For | ast.While):
            f = facts(stmt)
            head = live | f.gen | {getattr(stmt, BREAK_FLAG, "")} - {""}
            behind = live | block_facts(stmt.orelse).gen
            setattr(stmt, LIVE, Live(behind, behind | _head(stmt), _head(stmt) | always))
            annotate(stmt.body, head, always)
            annotate(stmt.orelse, live, always)
        elif isinstance(stmt, ast.With | ast.AsyncWith | ast.Try | ast.Match | ast.AsyncFor):
            blocks = [getattr(stmt, n, []) for n in ("body", "orelse", "finalbody")]
            blocks += [h.body for h in getattr(stmt, "handlers", ())] + [c.body for c in getattr(stmt, "cases", ())]
            inner = live.union(*(block_facts(b).gen for b in blocks)) if isinstance(stmt, ast.Try) else live
            for block in blocks:
                annotate(block, inner, always)
        f = facts(stmt)
        live = f.gen | (live - f.kill) | always


def _head(loop: ast.For | ast.While) -> Names:
    """Names that a turn of the loop may read before it assigns them."""
    body = block_facts(loop.body)
    if isinstance(loop, ast.While):
        test = _simple([loop.test])
        return test.gen | (body.gen - test.kill)
    target = _simple([loop.target])
    return target.gen | (body.gen - target.kill)
