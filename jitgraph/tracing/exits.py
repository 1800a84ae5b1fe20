"""Structured exits: `return`, `break` and `continue` inside compound statements become assignments to flags.

After `lower_exits` a function body has one `return`, at its end, and loops end by their test or by a flag, so that each
branch and each loop body has one way in and one way out: what a region needs. An `if` whose branch always leaves takes
the rest of the block as its other branch, which needs no flag.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

from jitgraph.records import dataclass, field

RETURNED, DID_RETURN = "_jg_returned", "_jg_did_return"
#: Attribute that `lower_exits` sets on loops: the name of the break flag, if the body may break.
BREAK_FLAG = "_jg_break_flag"

Node = TypeVar("Node", bound=ast.AST)
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_EXITS = (ast.Return, ast.Break, ast.Continue)
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)


@dataclass(slots=True)
class _Loop:
    """The flags of the loop around; a flag is kept only if something tests it."""

    break_flag: str
    continue_flag: str
    breaks: bool = False
    tested_continue: bool = False


@dataclass(slots=True)
class _State:
    counter: int = 0
    tested_return: bool = False
    loops: list[_Loop] = field(default_factory=list)


def blocks_of(stmt: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists of a compound statement."""
    found = [b for name in ("body", "orelse", "finalbody") if isinstance(b := getattr(stmt, name, None), list) and b]
    found += [h.body for h in getattr(stmt, "handlers", ())]
    found += [c.body for c in getattr(stmt, "cases", ())]
    return found


def _exits(stmts: Sequence[ast.stmt], *, in_loop: bool = False) -> set[str]:
    """Which exits of {"return", "break", "continue"} leave this list; those of inner loops stay inside."""
    found: set[str] = set()
    for stmt in stmts:
        if isinstance(stmt, ast.Return):
            found.add("return")
        elif isinstance(stmt, ast.Break) and not in_loop:
            found.add("break")
        elif isinstance(stmt, ast.Continue) and not in_loop:
            found.add("continue")
        elif isinstance(stmt, ast.For | ast.While):
            found |= _exits(stmt.body, in_loop=True) | _exits(stmt.orelse, in_loop=in_loop)
        elif isinstance(stmt, _COMPOUND):
            for block in blocks_of(stmt):
                found |= _exits(block, in_loop=in_loop)
    return found


def lower_exits(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a function with structured exits; the list as it is when there is nothing to do."""
    inner = any(isinstance(s, _COMPOUND) and _exits([s]) for s in body)
    loops = any(isinstance(s, ast.For | ast.While) and _has_jumps(s) for s in _walk(body))
    if not inner and not loops:
        return body
    state = _State()
    if not inner:
        return _block(body, state, returns=False)[0]
    place = body[-1]
    if not _always_leaves(body):
        body = [*body, at(ast.Return(value=at(ast.Constant(value=None), place)), place)]
    lowered, _ = _block(body, state, returns=True)
    first = body[0]
    head = [_unset(first)]
    if state.tested_return:
        head.append(_assign(DID_RETURN, at(ast.Constant(value=False), first), first))
    tail = at(ast.Return(value=_load(RETURNED, place)), place)
    start = 1 if _is_docstring(lowered[0]) else 0
    return [*lowered[:start], *head, *lowered[start:], tail]


def _is_docstring(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant) and isinstance(stmt.value.value, str)


def leaves_list(stmts: Sequence[ast.stmt]) -> bool:
    """Whether `return`, `break` or `continue` leaves this list of statements."""
    return bool(_exits(stmts))


def _walk(stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for stmt in stmts:
        found.append(stmt)
        if isinstance(stmt, _COMPOUND):
            for block in blocks_of(stmt):
                found += _walk(block)
    return found


def _has_jumps(loop: ast.For | ast.While) -> bool:
    return bool(_exits(loop.body) & {"break", "continue"})


def _always_leaves(stmts: Sequence[ast.stmt]) -> bool:
    """Whether control never reaches the end of the list."""
    for stmt in stmts:
        if isinstance(stmt, (*_EXITS, ast.Raise)):
            return True
        if isinstance(stmt, ast.If) and _always_leaves(stmt.body) and _always_leaves(stmt.orelse):
            return True
        if isinstance(stmt, ast.With) and _always_leaves(stmt.body):
            return True
    return False


def _block(stmts: Sequence[ast.stmt], state: _State, *, returns: bool) -> tuple[list[ast.stmt], bool]:
    """Lower a list of statements; also whether control never reaches its end."""
    out: list[ast.stmt] = []
    for k, stmt in enumerate(stmts):
        rest = stmts[k + 1 :]
        if isinstance(stmt, ast.Return) and returns:
            value = stmt.value or at(ast.Constant(value=None), stmt)
            out += [_assign(RETURNED, value, stmt), _assign(DID_RETURN, at(ast.Constant(value=True), stmt), stmt)]
            if state.loops:
                out.append(_break(state.loops[-1], stmt))
            return out, True
        if isinstance(stmt, ast.Break):
            return [*out, _break(state.loops[-1], stmt)], True
        if isinstance(stmt, ast.Continue):
            return [*out, _assign(state.loops[-1].continue_flag, at(ast.Constant(value=True), stmt), stmt)], True
        if isinstance(stmt, ast.Raise):
            return [*out, stmt], True
        if not isinstance(stmt, _COMPOUND):
            out.append(stmt)
            continue
        leaves = _exits([stmt]) if returns else _exits([stmt]) - {"return"}
        if isinstance(stmt, ast.If) and leaves:
            in_body, in_else = _always_leaves(stmt.body), _always_leaves(stmt.orelse)
            if in_body and not in_else:
                stmt.body, _ = _block(stmt.body, state, returns=returns)
                stmt.orelse, always = _block([*stmt.orelse, *rest], state, returns=returns)
                return [*out, stmt], always
            if in_else and not in_body:
                stmt.body, always = _block([*stmt.body, *rest], state, returns=returns)
                stmt.orelse, _ = _block(stmt.orelse, state, returns=returns)
                return [*out, stmt], always
        out += _compound(stmt, state, returns=returns)
        if leaves and _always_leaves([stmt]):
            return out, True
        if leaves and (rest or state.loops):
            out += _guarded_rest(stmt, leaves, rest, state, returns=returns)
            return out, False
    return out, False


def _guarded_rest(
    stmt: ast.stmt, leaves: set[str], rest: Sequence[ast.stmt], state: _State, *, returns: bool
) -> list[ast.stmt]:
    """`if not flag: rest` for the flags that `stmt` may have set; a return inside an inner loop leaves this one too."""
    flags: list[str] = []
    loop = state.loops[-1] if state.loops else None
    if "return" in leaves:
        flags.append(DID_RETURN)
        state.tested_return = True
    if loop is not None and "break" in leaves:
        flags.append(loop.break_flag)
    if loop is not None and "continue" in leaves:
        flags.append(loop.continue_flag)
        loop.tested_continue = True
    out: list[ast.stmt] = []
    # the rest runs if the function has not returned: what another path returns need not fit what this one does
    unset = [_unset(stmt)] if "return" in leaves and "return" in _exits(rest) else []
    if loop is not None and "return" in leaves and isinstance(stmt, ast.For | ast.While):
        inner = at(ast.If(test=_load(DID_RETURN, stmt), body=[_break(loop, stmt)], orelse=[]), stmt)
        lowered, _ = _block(rest, state, returns=returns)
        lowered = [*unset, *lowered]
        if flags == [DID_RETURN]:
            inner.orelse = lowered
            return [inner]
        out.append(inner)
        flags.append(loop.break_flag)
    else:
        lowered, _ = _block(rest, state, returns=returns)
        lowered = [*unset, *lowered]
    if not lowered:
        return out
    test: ast.expr = _load(flags[0], stmt)
    if len(flags) > 1:
        test = at(ast.BoolOp(op=ast.Or(), values=[_load(f, stmt) for f in flags]), stmt)
    out.append(at(ast.If(test=at(ast.UnaryOp(op=ast.Not(), operand=test), stmt), body=lowered, orelse=[]), stmt))
    return out


def _compound(stmt: ast.stmt, state: _State, *, returns: bool) -> list[ast.stmt]:
    """Lower the blocks of a compound statement in place; a loop comes with the flags it needs."""
    if not isinstance(stmt, ast.For | ast.While):
        left = _exits(stmt.body) if isinstance(stmt, ast.Try) and stmt.orelse else set()
        left = left if returns else left - {"return"}
        if isinstance(stmt, ast.Try) and left:  # what leaves the body skips `else`
            stmt.orelse = _guarded_rest(stmt, left, stmt.orelse, state, returns=returns)
            stmt.body = _block(stmt.body, state, returns=returns)[0]
            stmt.finalbody = _block(stmt.finalbody, state, returns=returns)[0]
            for handler in stmt.handlers:
                handler.body = _block(handler.body, state, returns=returns)[0]
            return [stmt]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(stmt, name, None)
            if isinstance(block, list) and block:
                setattr(stmt, name, _block(block, state, returns=returns)[0])
        for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
            part.body = _block(part.body, state, returns=returns)[0]
        return [stmt]
    state.counter += 1
    loop = _Loop(f"_jg_break{state.counter}", f"_jg_continue{state.counter}")
    state.loops.append(loop)
    stmt.body, _ = _block(stmt.body, state, returns=returns)
    state.loops.pop()
    false = at(ast.Constant(value=False), stmt)
    if loop.tested_continue:
        stmt.body.insert(0, _assign(loop.continue_flag, false, stmt))
    else:
        stmt.body = _without(stmt.body, loop.continue_flag) or [at(ast.Pass(), stmt)]
    out: list[ast.stmt] = [stmt]
    orelse, stmt.orelse = stmt.orelse, []
    if orelse:
        orelse, _ = _block(orelse, state, returns=returns)
    if loop.breaks:
        out.insert(0, _assign(loop.break_flag, false, stmt))
        setattr(stmt, BREAK_FLAG, loop.break_flag)
        if orelse:
            test = at(ast.UnaryOp(op=ast.Not(), operand=_load(loop.break_flag, stmt)), stmt)
            out.append(at(ast.If(test=test, body=orelse, orelse=[]), stmt))
    else:
        out += orelse
    return out


def _without(stmts: list[ast.stmt], flag: str) -> list[ast.stmt]:
    """The statements without assignments to a flag that nothing tests."""
    kept: list[ast.stmt] = []
    for stmt in stmts:
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name) and stmt.targets[0].id == flag:
            continue
        if isinstance(stmt, ast.If | ast.With | ast.Try):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(stmt, name, None)
                if isinstance(block, list) and block:
                    setattr(stmt, name, _without(block, flag) or ([at(ast.Pass(), stmt)] if name == "body" else []))
            for part in getattr(stmt, "handlers", ()):
                part.body = _without(part.body, flag) or [at(ast.Pass(), stmt)]
        kept.append(stmt)
    return kept


def _break(loop: _Loop, place: ast.stmt) -> ast.stmt:
    loop.breaks = True
    return _assign(loop.break_flag, at(ast.Constant(value=True), place), place)


def _unset(place: ast.AST) -> ast.stmt:
    """The function has not returned."""
    return _assign(RETURNED, at(ast.Attribute(value=_load("_jg_", place), attr="UNSET", ctx=ast.Load()), place), place)


def _assign(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    return at(ast.Assign(targets=[at(ast.Name(id=name, ctx=ast.Store()), place)], value=value), place)


def _load(name: str, place: ast.AST) -> ast.Name:
    return at(ast.Name(id=name, ctx=ast.Load()), place)


def at(node: Node, place: ast.AST) -> Node:
    """`node` at the position of `place`."""
    return ast.copy_location(node, place)
