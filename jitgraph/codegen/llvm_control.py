"""`For`, `While`, `If`, `Check`: rotated loops with phis, jumps; in vector loops masks where lanes go different ways.

Inside a vector loop (`llvm_vector`), a branch or loop whose condition is the same for all lanes stays one. Otherwise
both sides of a branch run under their masks, a loop runs until no lane is left, and what it carries stays as it is in
lanes that left.
"""

from __future__ import annotations

from jitgraph.abi import CONTEXT_ERROR_SITE, CONTEXT_ERROR_VALUES, Status
from jitgraph.codegen.assembler import COLD, FLOAT_BITS, HOT, V
from jitgraph.codegen.llvm_function import CONTEXT, I64, FunctionEmitter
from jitgraph.codegen.llvm_poll import poll
from jitgraph.codegen.llvm_prefetch import prefetch_next
from jitgraph.codegen.llvm_vector import emit_vector_for, lanes_of
from jitgraph.codegen.loops import (
    Carry,
    Check,
    Const,
    DimValue,
    For,
    If,
    Let,
    Load,
    Merge,
    Operand,
    Stmt,
    Var,
    While,
)
from jitgraph.codegen.loops_walk import summarize

#: A branch of a divergent `if` with more statements is skipped when no lane takes it.
LARGE_BRANCH = 6
#: Statements of the test of a `while` that is emitted twice.
SHORT_TEST = 16


def emit_for(f: FunctionEmitter, s: For) -> None:
    summary = summarize(s.body) if s.role == "vector" and f.lanes == 1 and s.step == 1 and not s.carried else None
    lanes = 1 if summary is None else s.lanes or lanes_of(f, s, summary)
    if summary is not None and lanes > 1:
        emit_vector_for(f, s, summary, lanes)
    elif f.lanes > 1 and (f.varies(s.lower) or f.varies(s.upper) or f.varies(s.step)):
        _divergent_for(f, s)
    else:
        _serial_for(f, s)


# --- serial loops ---------------------------------------------------------------------------------------------------


def _varying_carry(f: FunctionEmitter, c: Carry) -> bool:
    return f.lanes > 1 and c.inner.name in f.varying_vars


def _carried_value(f: FunctionEmitter, c: Carry, x: Var | Const) -> V:
    value = f.operand(x)
    return f.wide(value) if _varying_carry(f, c) else value


def _serial_for(f: FunctionEmitter, s: For) -> None:
    """for i = lower; i < upper; i += step: rotated, behind one test that there is a first turn."""
    a = f.a
    lower, upper, step = f.dim(s.lower), f.dim(s.upper), f.dim(s.step)
    down = isinstance(s.step, int) and s.step < 0
    inside = "sgt" if down else "slt"
    inits = [_carried_value(f, c, c.init) for c in s.carried]
    distance = s.upper - s.lower
    runs = isinstance(distance, int) and (distance < 0 if down else distance > 0)
    before, done = a.block, a.fresh_label("for.done")
    if not runs:
        start = a.fresh_label("for")
        a.condbr(a.icmp(inside, lower, upper), start, done)
        a.label(start)
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("for.loop")
    a.label(loop)
    at = a.phi([(lower, preheader)])
    inners = [a.phi([(init, preheader)]) for init in inits]
    f.bind(s.symbol, at)
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.inner.name] = inner
    f.hoist_loads = None
    f.chain = level.chain = [{}]
    if f.lanes > 1:
        prefetch_next(f, s, at, lower)
    f.statements(s.body)
    poll(f, s.body)
    nexts = [_carried_value(f, c, c.next) for c in s.carried]
    following = a.add(at, step)
    latch = a.block
    a.add_incoming(at, following, latch)
    for inner, value in zip(inners, nexts, strict=True):
        a.add_incoming(inner, value, latch)
    again = a.icmp(inside, following, upper)
    if s.going is not None:
        going = f.operand(s.going)
        if going.lanes > 1 and f.mask is not None:
            going = a.and_(going, f.mask)
        again = a.and_(again, a.any_lane(going))
    a.condbr(again, loop, done)
    f.close_level()
    a.label(done)
    for c, init, value in zip(s.carried, inits, nexts, strict=True):
        f.values[c.result.name] = value if runs else a.phi([(init, before), (value, latch)])


def _divergent_for(f: FunctionEmitter, s: For) -> None:
    """Each lane has its own bounds: turn k until no lane has a turn k; lane by lane the index is lower + k * step."""
    a = f.a
    saved = f.mask, f.divergent
    lower, upper, step = f.lanes_dim(s.lower), f.lanes_dim(s.upper), f.lanes_dim(s.step)
    upper = f.wide(upper)
    inside = "sgt" if isinstance(s.step, int) and s.step < 0 else "slt"
    inits = [_carried_value(f, c, c.init) for c in s.carried]
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("lanes.loop")
    a.label(loop)
    at = a.phi([(lower, preheader)])
    inners = [a.phi([(init, preheader)]) for init in inits]
    active = a.icmp(inside, f.wide(at), upper)
    if saved[0] is not None:
        active = a.and_(active, saved[0])
    body, done = a.fresh_label("lanes.body"), a.fresh_label("lanes.done")
    a.condbr(a.any_lane(active), body, done)
    a.label(body)
    f.bind(s.symbol, at)
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.inner.name] = inner
    f.mask, f.divergent, f.hoist_loads = active, True, None
    f.chain = level.chain = [{}]
    f.statements(s.body)
    for c, inner in zip(s.carried, inners, strict=True):
        a.add_incoming(inner, a.select(active, f.wide(f.operand(c.next)), inner), a.block)
    a.add_incoming(at, a.add(at, step), a.block)
    a.br(loop)
    f.close_level()
    a.label(done)
    f.mask, f.divergent = saved
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.result.name] = inner


def emit_while(f: FunctionEmitter, s: While) -> None:
    if f.lanes == 1 and len(s.test) <= SHORT_TEST and all(isinstance(x, (Let, DimValue, Load)) for x in s.test):
        _rotated_while(f, s)
        return
    a = f.a
    apart = f.lanes > 1 and isinstance(s.condition, Var) and s.condition.name in f.varying_vars
    saved = f.mask, f.divergent
    inits = [_carried_value(f, c, c.init) for c in s.carried]
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("while")
    a.label(loop)
    inners = [a.phi([(init, preheader)]) for init in inits]
    active: V | None = None
    if apart:
        active = a.phi([(f.mask if f.mask is not None else a.const(1, "i1", f.lanes), preheader)])
        f.mask, f.divergent = active, True
    f.hoist_loads = None
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.inner.name] = inner
    f.chain = level.chain = [{}]
    f.statements(s.test)
    condition = f.operand(s.condition)
    body, done = a.fresh_label("while.body"), a.fresh_label("while.done")
    if apart:
        assert active is not None
        f.mask = a.and_(active, f.wide(condition))
        condition = a.any_lane(f.mask)
    a.condbr(condition, body, done)
    a.label(body)
    still = f.mask
    f.statements(s.body)
    poll(f, s.body, bounded=False)
    for c, inner in zip(s.carried, inners, strict=True):
        value = _carried_value(f, c, c.next)
        if apart:
            assert still is not None
            value = a.select(still, value, inner)
        a.add_incoming(inner, value, a.block)
    if apart:
        assert active is not None
        assert still is not None
        a.add_incoming(active, still, a.block)
    a.br(loop)
    f.close_level()
    a.label(done)
    f.mask, f.divergent = saved
    for c, inner in zip(s.carried, inners, strict=True):
        f.values[c.result.name] = inner


def _rotated_while(f: FunctionEmitter, s: While) -> None:
    """The test stands in front of the loop and at its end: one jump a turn."""
    a = f.a
    inits = [f.operand(c.init) for c in s.carried]

    def test(values: list[V]) -> V:
        for c, value in zip(s.carried, values, strict=True):
            f.values[c.inner.name] = value
        f.statements(s.test)
        return f.operand(s.condition)

    runs = test(inits)
    before, start, done = a.block, a.fresh_label("while"), a.fresh_label("while.done")
    a.condbr(runs, start, done)
    a.label(start)
    level = f.open_level(s)
    preheader, loop = a.block, a.fresh_label("while.loop")
    a.label(loop)
    plain = [t for t in s.test if isinstance(t, (Let, DimValue, Load))]
    tested = [*(t.var.name for t in plain), *(t.imag.name for t in plain if isinstance(t, Load) and t.imag is not None)]
    inners = [a.phi([(init, preheader)]) for init in inits]
    handed = [a.phi([(f.values[name], preheader)]) for name in tested]
    f.values.update(zip((*(c.inner.name for c in s.carried), *tested), (*inners, *handed), strict=True))
    f.hoist_loads = None
    f.chain = level.chain = [{}]
    f.statements(s.body)
    poll(f, s.body, bounded=False)
    nexts = [f.operand(c.next) for c in s.carried]
    again = test(nexts)
    latch = a.block
    for inner, value in zip(inners, nexts, strict=True):
        a.add_incoming(inner, value, latch)
    for inner, name in zip(handed, tested, strict=True):
        a.add_incoming(inner, f.values[name], latch)
    a.condbr(again, loop, done)
    f.close_level()
    a.label(done)
    for c, init, value in zip(s.carried, inits, nexts, strict=True):
        f.values[c.result.name] = a.phi([(init, before), (value, latch)])


# --- branches -------------------------------------------------------------------------------------------------------


def emit_if(f: FunctionEmitter, s: If) -> None:
    ways = _ways(f, s)
    if ways:
        _jump(f, s, ways)
        return
    condition = f.operand(s.condition)
    f.hoist_loads = None  # neither inside, where the address may be out of bounds, nor behind a check in there
    if condition.lanes == 1:
        _uniform_if(f, s, condition)
    else:
        _divergent_if(f, s, condition)


def _ways(f: FunctionEmitter, s: If) -> list[tuple[int, If]]:
    """Branches, one in the other, that ask for one integer after another, with these; [] if fewer than two."""
    ways: list[tuple[int, If]] = []
    at: Stmt | None = s if f.lanes == 1 else None
    while isinstance(at, If) and isinstance(at.condition, Var):
        known = f.equalities.get(at.condition.name)
        if known is None or any(case == known[1] for case, _ in ways):
            break
        if ways and known[0] != f.equalities[ways[0][1].condition.name][0]:  # type: ignore[union-attr]  # a Var, as all
            break
        ways.append((known[1], at))
        at = at.otherwise[0] if len(at.otherwise) == 1 else None
    return ways if len(ways) > 1 else []


def _jump(f: FunctionEmitter, s: If, ways: list[tuple[int, If]]) -> None:
    """A jump by number."""
    a = f.a
    assert isinstance(s.condition, Var)
    value = f.operand(f.equalities[s.condition.name][0])
    f.hoist_loads = None
    labels = [a.fresh_label("case") for _ in ways]
    default, done = a.fresh_label("default"), a.fresh_label("switch.done")
    a.switch(value, default, [(case, label) for (case, _), label in zip(ways, labels, strict=True)])
    made = [{m.result.name: m for m in way.merges} for _, way in ways]

    def given(m: Merge, side: int, at: int = 0) -> Operand:
        """What a merge of branch `at` gives if that side runs."""
        if side == at:
            return m.then
        inner = made[at + 1].get(m.otherwise.name) if at + 1 < len(ways) and isinstance(m.otherwise, Var) else None
        return m.otherwise if inner is None else given(inner, side, at + 1)

    ends: list[tuple[list[V], str]] = []
    bodies = [*(way.then for _, way in ways), ways[-1][1].otherwise]
    for side, (label, body) in enumerate(zip([*labels, default], bodies, strict=True)):
        a.label(label)
        f.branch(body)
        ends.append(([f.operand(given(m, side)) for m in s.merges], a.block))
        a.br(done)
    a.label(done)
    for k, m in enumerate(s.merges):
        f.values[m.result.name] = a.phi([(values[k], block) for values, block in ends])


def _uniform_if(f: FunctionEmitter, s: If, condition: V) -> None:
    a = f.a
    then, otherwise, done = a.fresh_label("then"), a.fresh_label("else"), a.fresh_label("if.done")
    a.condbr(condition, then, otherwise, weights=HOT if s.cold else None)
    wide = [
        f.lanes > 1 and any(isinstance(x, Var) and _may_vary(f, x) for x in (m.then, m.otherwise)) for m in s.merges
    ]
    ends: list[tuple[list[V], str]] = []
    for label, body, side in ((then, s.then, "then"), (otherwise, s.otherwise, "otherwise")):
        a.label(label)
        f.branch(body)
        values = [f.operand(getattr(m, side)) for m in s.merges]
        ends.append(([f.wide(v) if w else v for v, w in zip(values, wide, strict=True)], a.block))
        a.br(done)
    a.label(done)
    for k, m in enumerate(s.merges):
        f.values[m.result.name] = a.phi([(values[k], block) for values, block in ends])


def _may_vary(f: FunctionEmitter, x: Var) -> bool:
    known = f.values.get(x.name)
    return x.name in f.varying_vars or (known is not None and known.lanes > 1)


def _divergent_if(f: FunctionEmitter, s: If, condition: V) -> None:
    a = f.a
    saved = f.mask, f.divergent
    masks = (condition, a.not_(condition))
    sides: list[list[V]] = []
    for mask, body, side in ((masks[0], s.then, "then"), (masks[1], s.otherwise, "otherwise")):
        f.mask = mask if saved[0] is None else a.and_(mask, saved[0])
        f.divergent = True
        results = [getattr(m, side) for m in s.merges]
        if len(body) > LARGE_BRANCH or summarize(body).nested:
            before, taken, skip = a.block, a.fresh_label("lanes.then"), a.fresh_label("lanes.skip")
            a.condbr(a.any_lane(f.mask), taken, skip)
            a.label(taken)
            f.branch(body)
            values = [f.wide(f.operand(x)) for x in results]
            after = a.block
            a.label(skip)
            sides.append([a.phi([(V("zeroinitializer", v.ty, v.lanes), before), (v, after)]) for v in values])
        else:
            f.branch(body)
            sides.append([f.wide(f.operand(x)) for x in results])
    f.mask, f.divergent = saved
    for m, yes, no in zip(s.merges, *sides, strict=True):
        f.values[m.result.name] = a.select(condition, yes, no)


# --- checks ---------------------------------------------------------------------------------------------------------


def emit_check(f: FunctionEmitter, s: Check) -> None:
    """Leave with the site's error unless the condition holds; the values are those of the first lane that failed."""
    a = f.a
    f.hoist_loads = None
    condition = f.operand(s.condition)
    if condition.text == "true":
        return
    failed = a.not_(condition)
    if f.mask is not None and (f.divergent or failed.lanes > 1):
        failed = a.and_(failed, f.mask)
    bad, good = a.fresh_label("failed"), a.fresh_label("checked")
    a.condbr(a.any_lane(failed), bad, good, weights=COLD)
    a.label(bad)
    lane: V | None = None
    if failed.lanes > 1:
        bits = a.zext(a.lane_bits(failed), I64) if failed.lanes < 64 else a.lane_bits(failed)
        lane = a.trunc_int(a.int_intrinsic("cttz", bits, flag=True), "i32")
    a.store(V(str(s.site), I64), a.gep(CONTEXT, CONTEXT_ERROR_SITE, "i8"), align=8)
    for k, x in enumerate(s.values[:4]):
        value = f.operand(x)
        if value.lanes > 1:
            value = a.extract(value, lane if lane is not None else 0)
        a.store(error_value(f, value, x), a.gep(CONTEXT, CONTEXT_ERROR_VALUES + 8 * k, "i8"), align=8)
    deoptimise = f.module.sites[s.site].error == "deoptimise"
    a.ret(V(str(int(Status.DEOPTIMISE if deoptimise else Status.ERROR)), "i32"))
    a.label(good)


def error_value(f: FunctionEmitter, value: V, x: Var | Const) -> V:
    """A scalar as the int64 of `context.error_values`: integers as they are, floats as the bits of a float64."""
    if x.dtype.kind == "f":
        wide = f.a.half_to_float(value) if value.ty == "half" else value
        wide = wide if wide.ty == "double" else f.a.fpext(wide, "double")
        return f.a.bitcast(wide, I64)
    return f.as_i64(value, x.dtype)


def zero(ty: str, lanes: int = 1) -> V:
    return V("zeroinitializer", ty, lanes) if lanes > 1 else V("0.0" if ty in FLOAT_BITS else "0", ty)
