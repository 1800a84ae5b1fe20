"""Long loops look for signals, so that Ctrl-C ends them: the outermost loops of the entry, and each `while` in them
that does not run over lanes (there the count would cost up to a tenth).

A turn counts down; at 0 a helper looks at the clock and sets the count so that it does so about each millisecond. If
100 ms are over, Python is asked (`jitgraph.signals`), which may leave an exception for the end of the call. Workers of
the thread pool do not ask: the thread that called them does.
"""

from __future__ import annotations

from jitgraph.abi import CONTEXT_HOST, CONTEXT_TABLE, TABLE_CLOCK
from jitgraph.codegen.assembler import COLD, V
from jitgraph.codegen.llvm_function import CONTEXT, I64, FunctionEmitter
from jitgraph.codegen.loops import Stmt
from jitgraph.codegen.loops_walk import bodies
from jitgraph.signals import signals_function

#: Turns before the first look: of a loop with loops inside, and of one without.
FIRST_NESTED, FIRST_PLAIN = 4, 4096
#: Looks at the clock stand so far apart, about, and asking Python.
_SOON_NS, _LATE_NS, _ASK_NS = 250_000, 2_000_000, 100_000_000
_MONOTONIC = 1
_MOST = 1 << 20


def poll(f: FunctionEmitter, body: list[Stmt], *, bounded: bool = True) -> None:
    """At the end of a turn of a loop: leave if a signal's handler has raised."""
    if not f.polls or ((bounded or f.lanes > 1) and f.depth > 1):
        return
    a = f.a
    nested = any(bodies(s) for s in body)
    first = V(str(FIRST_NESTED if nested else FIRST_PLAIN), I64)
    state = f.alloca(I64, 4, align=8)  # turns to go, interval, last look, last question
    f.in_entry(lambda: _begin(f, state, first))
    left = a.sub(a.load(state, I64, align=8), V("1", I64))
    a.store(left, state, align=8)
    look, on = a.fresh_label("poll"), a.fresh_label("turn.done")
    a.condbr(a.icmp("sle", left, V("0", I64)), look, on, weights=COLD)
    a.label(look)
    status = a.call_pointer(f.module.poll_function(), "i32", [CONTEXT, state])
    bad = a.fresh_label("interrupted")
    a.condbr(a.icmp("ne", status, V("0", "i32")), bad, on, weights=COLD)
    a.label(bad)
    a.ret(status)
    a.label(on)


def _begin(f: FunctionEmitter, state: V, first: V) -> V:
    for k in range(4):
        f.a.store(first if k < 2 else V("0", I64), f.a.gep(state, k, I64), align=8)
    return state


def poll_function(attributes: str) -> str:
    """The helper `i32 poll(ctx, state)`."""
    return f"""{signals_function(attributes)}

define internal i32 @poll(ptr %ctx, ptr %state) cold noinline {attributes} {{
  %time = alloca [2 x i64], align 8
  %host.at = getelementptr i8, ptr %ctx, i64 {CONTEXT_HOST}
  %host = load ptr, ptr %host.at, align 8
  %worker = icmp eq ptr %host, null
  br i1 %worker, label %never, label %look
never:
  store i64 {1 << 62}, ptr %state, align 8
  ret i32 0
look:
  %table.at = getelementptr i8, ptr %ctx, i64 {CONTEXT_TABLE}
  %table = load ptr, ptr %table.at, align 8
  %clock.at = getelementptr i8, ptr %table, i64 {TABLE_CLOCK}
  %clock = load ptr, ptr %clock.at, align 8
  %r = call i32 %clock(i32 {_MONOTONIC}, ptr %time)
  %s = load i64, ptr %time, align 8
  %ns.at = getelementptr i8, ptr %time, i64 8
  %ns = load i64, ptr %ns.at, align 8
  %big = mul i64 %s, 1000000000
  %now = add i64 %big, %ns
  %interval.at = getelementptr i8, ptr %state, i64 8
  %last.at = getelementptr i8, ptr %state, i64 16
  %asked.at = getelementptr i8, ptr %state, i64 24
  %interval = load i64, ptr %interval.at, align 8
  %last = load i64, ptr %last.at, align 8
  store i64 %now, ptr %last.at, align 8
  %first = icmp eq i64 %last, 0
  br i1 %first, label %begin, label %again
begin:
  store i64 %now, ptr %asked.at, align 8
  store i64 %interval, ptr %state, align 8
  ret i32 0
again:
  %gone = sub i64 %now, %last
  %soon = icmp slt i64 %gone, {_SOON_NS}
  %late = icmp sgt i64 %gone, {_LATE_NS}
  %more = shl i64 %interval, 1
  %small = icmp slt i64 %more, {_MOST}
  %most = select i1 %small, i64 %more, i64 {_MOST}
  %quarter = lshr i64 %interval, 2
  %some = icmp sgt i64 %quarter, 1
  %less = select i1 %some, i64 %quarter, i64 1
  %a = select i1 %late, i64 %less, i64 %interval
  %b = select i1 %soon, i64 %most, i64 %a
  store i64 %b, ptr %interval.at, align 8
  store i64 %b, ptr %state, align 8
  %asked = load i64, ptr %asked.at, align 8
  %since = sub i64 %now, %asked
  %due = icmp sgt i64 %since, {_ASK_NS}
  br i1 %due, label %ask, label %on
ask:
  store i64 %now, ptr %asked.at, align 8
  %status = call i32 @signals(ptr %ctx)
  ret i32 %status
on:
  ret i32 0
}}"""
