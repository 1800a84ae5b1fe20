"""The LLVM text of the thread pool: `run`, `blas`, and the `worker` that each thread stays in. See `threads`.

One job at a time. Its fields stand in the module's `state`; the *ticket* (a generation in the high half, the number of
the next piece in the low one) says whether it is open: odd generations are. A thread takes a piece by exchanging the
ticket for the one after it, which fails if the generation is another by now: what it read of the job before holds then,
as fields change only while the ticket is closed, and a thread that is late takes nothing from a later job. Threads look
for an open ticket a while, then sleep on a futex; the caller works too, then waits until all pieces are finished.

Some kernels put a thread that is woken on the core of the one that woke it, and leave the two there for longer than
most jobs take. A worker that finds itself on the core of its job's caller leaves it, for as long as callers are there.
"""

from __future__ import annotations

from jitgraph.abi import (
    CONTEXT_ERROR_SITE,
    CONTEXT_ERROR_VALUES,
    CONTEXT_HEAP,
    HEAP_NEXT,
    HEAP_RAW,
)
from jitgraph.signals import signals_function

EXPORTS = ("run", "blas", "worker", "state")

# Offsets in the state, each contended word in a cache line of its own.
TICKET = 0
FINISHED, WAITING = 64, 68  # pieces that are done; whether the caller sleeps
WAKE, SLEEPERS = 128, 132
JOB_PART, JOB_CLOSURE, JOB_LOWER, JOB_UPPER, JOB_UNIT, JOB_PIECES, JOB_THREADS = range(192, 248, 8)
LOCK, STATUS, STOP = 256, 320, 324
ERROR = 328  # error site and values of the piece that failed first
THREADS, COLD, PIECE, LONG, LONG_PIECE, POLL_NS = range(384, 432, 8)
SYSCALL, YIELD, CLOCK, FREE, GETCPU = range(448, 488, 8)  # C functions
CALLER = 488  # the core on which the job's caller began
CORES = 512  # those that threads may run on, one bit each
CORES_BYTES = 128
STATE_BYTES = CORES + CORES_BYTES

# Offsets in what a worker is started with.
WORKER_INDEX, WORKER_CONTEXT = 0, 8

_GENERATION = -(1 << 32)
#: Looks for work before a thread sleeps, about 40 ns each, and how many of them before it offers its core to others.
_SPINS = 2000
_LOOKS = 32
_CLOCK_MONOTONIC = 1
_FUTEX_WAIT, _FUTEX_WAKE = 128, 129  # private ones
_ALL = 0x7FFFFFFF


def text(triple: str) -> str:
    """The module.

    Raises:
        KeyError: no futex is known on this kind of machine.
    """
    architecture = triple.partition("-")[0]
    futex, set_affinity = {"x86_64": (202, 203), "aarch64": (98, 122)}[architecture]
    pause, hint = {"x86_64": ("llvm.x86.sse2.pause", ""), "aarch64": ("llvm.aarch64.hint", "i32 1")}[architecture]
    load_fields = "\n".join(
        f"  %{name}.at = getelementptr i8, ptr @state, i64 {at}\n"
        f"  %{name} = load atomic i64, ptr %{name}.at monotonic, align 8"
        for name, at in (
            ("part.bits", JOB_PART),
            ("closure.bits", JOB_CLOSURE),
            ("lower", JOB_LOWER),
            ("upper", JOB_UPPER),
            ("unit", JOB_UNIT),
            ("pieces", JOB_PIECES),
        )
    )

    def field(name: str, at: int) -> str:
        return f"  %{name} = getelementptr i8, ptr @state, i64 {at}"

    return f"""; the thread pool
target triple = "{triple}"

@state = global [{STATE_BYTES} x i8] zeroinitializer, align 64

declare void @{pause}({hint.split(" ")[0]})
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

{signals_function()}

define internal void @futex(ptr %word, i64 %op, i64 %value) nounwind {{
{field("at", SYSCALL)}
  %syscall = load ptr, ptr %at, align 8
  %r = call i64 (i64, ...) %syscall(i64 {futex}, ptr %word, i64 %op, i64 %value, ptr null, ptr null, i64 0)
  ret void
}}

; about the time in ns
define internal i64 @now() nounwind {{
  %time = alloca [2 x i64], align 8
{field("at", CLOCK)}
  %clock = load ptr, ptr %at, align 8
  %r = call i32 %clock(i32 {_CLOCK_MONOTONIC}, ptr %time)
  %s = load i64, ptr %time, align 8
  %ns.at = getelementptr i8, ptr %time, i64 8
  %ns = load i64, ptr %ns.at, align 8
  %big = mul i64 %s, 1000000000
  %t = add i64 %big, %ns
  ret i64 %t
}}

; leaves the core of the job's caller
define internal void @apart() nounwind {{
  %mask = alloca [{CORES_BYTES} x i8], align 8
{field("at", GETCPU)}
{field("caller.at", CALLER)}
  %getcpu = load ptr, ptr %at, align 8
  %here = call i32 %getcpu()
  %core = sext i32 %here to i64
  %caller = load atomic i64, ptr %caller.at monotonic, align 8
  %same = icmp eq i64 %core, %caller
  %known = icmp ult i64 %core, {8 * CORES_BYTES}
  %shared = and i1 %same, %known
  br i1 %shared, label %leave, label %done
leave:
{field("cores", CORES)}
{field("syscall.at", SYSCALL)}
  call void @llvm.memcpy.p0.p0.i64(ptr %mask, ptr %cores, i64 {CORES_BYTES}, i1 false)
  %byte = lshr i64 %core, 3
  %bits.at = getelementptr i8, ptr %mask, i64 %byte
  %bits = load i8, ptr %bits.at
  %low = and i64 %core, 7
  %narrow = trunc i64 %low to i8
  %bit = shl i8 1, %narrow
  %others = xor i8 %bit, -1
  %left = and i8 %bits, %others
  store i8 %left, ptr %bits.at
  %syscall = load ptr, ptr %syscall.at, align 8
  ; an empty mask is refused, and all stays as it was
  %r = call i64 (i64, ...) %syscall(i64 {set_affinity}, i64 0, i64 {CORES_BYTES}, ptr %mask)
  br label %done
done:
  ret void
}}

; gives back what pieces have left on the heap of a worker's context
define internal void @release(ptr %ctx) nounwind {{
  %head = getelementptr i8, ptr %ctx, i64 {CONTEXT_HEAP}
{field("at", FREE)}
  %free = load ptr, ptr %at, align 8
  br label %next
next:
  %block = load ptr, ptr %head, align 8
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %one
one:
  %raw.at = getelementptr i8, ptr %block, i64 {HEAP_RAW}
  %raw = load ptr, ptr %raw.at, align 8
  %next.at = getelementptr i8, ptr %block, i64 {HEAP_NEXT}
  %following = load ptr, ptr %next.at, align 8
  store ptr %following, ptr %head, align 8
  call void %free(ptr %raw)
  br label %next
done:
  ret void
}}

; takes pieces of the job of a generation until there are none; with %poll looks for signals now and then
define internal void @work(ptr %ctx, i64 %generation, i1 %poll) nounwind {{
entry:
{load_fields}
{field("finished.at", FINISHED)}
{field("waiting.at", WAITING)}
{field("status.at", STATUS)}
{field("error.at", ERROR)}
{field("interval.at", POLL_NS)}
  %part = inttoptr i64 %part.bits to ptr
  %closure = inttoptr i64 %closure.bits to ptr
  %distance = sub i64 %upper, %lower
  %less = sub i64 %unit, 1
  %up = add i64 %distance, %less
  %safe = call i64 @llvm.smax.i64(i64 %unit, i64 1)
  %units = sdiv i64 %up, %safe
  %some = call i64 @llvm.smax.i64(i64 %pieces, i64 1)
  %each = sdiv i64 %units, %some
  %over = srem i64 %units, %some
  br i1 %poll, label %timed, label %loop
timed:
  %start = call i64 @now()
  br label %loop
loop:
  %since = phi i64 [ 0, %entry ], [ %start, %timed ], [ %since.next, %again ]
  %now.ticket = load atomic i64, ptr @state acquire, align 8
  br label %try
try:
  %old = phi i64 [ %now.ticket, %loop ], [ %seen, %take ]
  %g = and i64 %old, {_GENERATION}
  %k = and i64 %old, 4294967295
  %same = icmp eq i64 %g, %generation
  %left = icmp ult i64 %k, %pieces
  %mine = and i1 %same, %left
  br i1 %mine, label %take, label %out
take:
  %next.ticket = add i64 %old, 1
  %taken = cmpxchg ptr @state, i64 %old, i64 %next.ticket acq_rel acquire
  %seen = extractvalue {{ i64, i1 }} %taken, 0
  %got = extractvalue {{ i64, i1 }} %taken, 1
  br i1 %got, label %piece, label %try
piece:
  ; the first `over` pieces have one unit more
  %a = mul i64 %k, %each
  %b = call i64 @llvm.smin.i64(i64 %k, i64 %over)
  %first = add i64 %a, %b
  %k1 = add i64 %k, 1
  %c = mul i64 %k1, %each
  %d = call i64 @llvm.smin.i64(i64 %k1, i64 %over)
  %last = add i64 %c, %d
  %e = mul i64 %first, %unit
  %lo = add i64 %lower, %e
  %h = mul i64 %last, %unit
  %i = add i64 %lower, %h
  %hi = call i64 @llvm.smin.i64(i64 %i, i64 %upper)
  %failed = load atomic i32, ptr %status.at monotonic, align 4
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %run, label %count
run:
  %status = call i32 %part(ptr %ctx, ptr %closure, i64 %lo, i64 %hi)
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %look, label %bad
bad:
  %pair = cmpxchg ptr %status.at, i32 0, i32 %status acq_rel monotonic
  %won = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %won, label %tell, label %count
tell:
  %site.at = getelementptr i8, ptr %ctx, i64 {CONTEXT_ERROR_SITE}
  call void @llvm.memcpy.p0.p0.i64(ptr %error.at, ptr %site.at, i64 {CONTEXT_ERROR_VALUES + 32}, i1 false)
  br label %count
look:
  br i1 %poll, label %clock, label %count
clock:
  %time = call i64 @now()
  %gone = sub i64 %time, %since
  %interval = load i64, ptr %interval.at, align 8
  %due = icmp sgt i64 %gone, %interval
  br i1 %due, label %signals, label %count
signals:
  %pending = call i32 @signals(ptr %ctx)
  %quiet = icmp eq i32 %pending, 0
  br i1 %quiet, label %count, label %interrupted
interrupted:
  store atomic i32 %pending, ptr %status.at seq_cst, align 4
  call void @llvm.memcpy.p0.p0.i64(ptr %error.at, ptr %ctx, i64 {CONTEXT_ERROR_VALUES + 32}, i1 false)
  br label %count
count:
  %since.next = phi i64 [ %since, %piece ], [ %since, %bad ], [ %since, %tell ], [ %since, %look ], [ %since, %clock ],
    [ %time, %signals ], [ %time, %interrupted ]
  %before = atomicrmw add ptr %finished.at, i32 1 seq_cst
  %done = add i32 %before, 1
  %wide = zext i32 %done to i64
  %complete = icmp eq i64 %wide, %pieces
  br i1 %complete, label %ring, label %again
ring:
  %sleeps = load atomic i32, ptr %waiting.at seq_cst, align 4
  %awake = icmp eq i32 %sleeps, 0
  br i1 %awake, label %again, label %wake
wake:
  call void @futex(ptr %finished.at, i64 {_FUTEX_WAKE}, i64 {_ALL})
  br label %again
again:
  br label %loop
out:
  ret void
}}

; the job whose fields are written, with the lock held
define internal i32 @execute(ptr %ctx, i64 %pieces, i1 %poll) nounwind {{
entry:
{field("finished.at", FINISHED)}
{field("waiting.at", WAITING)}
{field("status.at", STATUS)}
{field("error.at", ERROR)}
{field("wake.at", WAKE)}
{field("sleepers.at", SLEEPERS)}
{field("getcpu.at", GETCPU)}
{field("caller.at", CALLER)}
  %getcpu = load ptr, ptr %getcpu.at, align 8
  %here = call i32 %getcpu()
  %core = sext i32 %here to i64
  store atomic i64 %core, ptr %caller.at monotonic, align 8
  store atomic i32 0, ptr %finished.at monotonic, align 4
  store atomic i32 0, ptr %waiting.at monotonic, align 4
  store atomic i32 0, ptr %status.at monotonic, align 4
  %closed = load atomic i64, ptr @state monotonic, align 8
  %was = and i64 %closed, {_GENERATION}
  %open = add i64 %was, {1 << 32}
  store atomic i64 %open, ptr @state seq_cst, align 8
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %all.awake = icmp eq i32 %sleepers, 0
  br i1 %all.awake, label %work, label %wake
wake:
  %w = atomicrmw add ptr %wake.at, i32 1 seq_cst
  call void @futex(ptr %wake.at, i64 {_FUTEX_WAKE}, i64 {_ALL})
  br label %work
work:
  call void @work(ptr %ctx, i64 %open, i1 %poll)
  br label %wait
wait:
  %turn = phi i64 [ 0, %work ], [ %turn.next, %pause ], [ 0, %sleep ]
  %count = load atomic i32, ptr %finished.at acquire, align 4
  %wide = zext i32 %count to i64
  %complete = icmp eq i64 %wide, %pieces
  br i1 %complete, label %done, label %spin
spin:
  call void @{pause}({hint})
  %turn.next = add i64 %turn, 1
  %low = and i64 %turn.next, {_LOOKS - 1}
  %offer = icmp eq i64 %low, 0
  br i1 %offer, label %yield, label %pause
yield:
  call void @give()
  %long = icmp ugt i64 %turn.next, {_SPINS}
  br i1 %long, label %doze, label %pause
pause:
  br label %wait
doze:
  store atomic i32 1, ptr %waiting.at seq_cst, align 4
  %now = load atomic i32, ptr %finished.at seq_cst, align 4
  %now.wide = zext i32 %now to i64
  %now.complete = icmp eq i64 %now.wide, %pieces
  br i1 %now.complete, label %done, label %sleep
sleep:
  call void @futex(ptr %finished.at, i64 {_FUTEX_WAIT}, i64 %now.wide)
  br label %wait
done:
  %shut = add i64 %open, {1 << 32}
  store atomic i64 %shut, ptr @state seq_cst, align 8
  %status = load atomic i32, ptr %status.at acquire, align 4
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %end, label %failed
failed:
  call void @llvm.memcpy.p0.p0.i64(ptr %ctx, ptr %error.at, i64 {CONTEXT_ERROR_VALUES + 32}, i1 false)
  br label %end
end:
  ret i32 %status
}}

; the lock is 0: free, 1: taken, 2: taken, and somebody may sleep until it is free
define internal void @unlock() nounwind {{
{field("lock", LOCK)}
  %old = atomicrmw xchg ptr %lock, i32 0 release
  %waited = icmp eq i32 %old, 2
  br i1 %waited, label %wake, label %done
wake:
  call void @futex(ptr %lock, i64 {_FUTEX_WAKE}, i64 1)
  br label %done
done:
  ret void
}}

define internal void @give() nounwind {{
{field("at", YIELD)}
  %f = load ptr, ptr %at, align 8
  %r = call i32 %f()
  ret void
}}

define internal void @describe(ptr %part, ptr %closure, i64 %lower, i64 %upper, i64 %unit, i64 %pieces, i64 %threads)
  nounwind {{
  %part.bits = ptrtoint ptr %part to i64
  %closure.bits = ptrtoint ptr %closure to i64
{
        chr(10).join(
            f"{field(f'at.{at}', at)}{chr(10)}  store atomic i64 %{name}, ptr %at.{at} monotonic, align 8"
            for name, at in (
                ("part.bits", JOB_PART),
                ("closure.bits", JOB_CLOSURE),
                ("lower", JOB_LOWER),
                ("upper", JOB_UPPER),
                ("unit", JOB_UNIT),
                ("pieces", JOB_PIECES),
                ("threads", JOB_THREADS),
            )
        )
    }
  ret void
}}

define i32 @run(ptr %ctx, ptr %part, ptr %closure, i64 %lower, i64 %upper, i64 %unit, i64 %each, i64 %cost) nounwind {{
entry:
{field("lock", LOCK)}
{field("sleepers.at", SLEEPERS)}
{field("cold.at", COLD)}
{field("threads.at", THREADS)}
{field("piece.at", PIECE)}
{field("long.at", LONG)}
{field("long.piece.at", LONG_PIECE)}
  %sleepers = load atomic i32, ptr %sleepers.at monotonic, align 4
  %cold = load i64, ptr %cold.at, align 8
  %asleep = icmp ne i32 %sleepers, 0
  %little = icmp slt i64 %cost, %cold
  %skip = and i1 %asleep, %little
  br i1 %skip, label %serial, label %split
split:
  %threads = load i64, ptr %threads.at, align 8
  %piece = load i64, ptr %piece.at, align 8
  %long = load i64, ptr %long.at, align 8
  %long.piece = load i64, ptr %long.piece.at, align 8
  %distance = sub i64 %upper, %lower
  %less = sub i64 %unit, 1
  %up = add i64 %distance, %less
  %units = sdiv i64 %up, %unit
  %worth = sdiv i64 %cost, %piece
  %most = mul i64 %threads, %each
  %a = call i64 @llvm.smin.i64(i64 %worth, i64 %most)
  %is.long = icmp sgt i64 %cost, %long
  %millis = sdiv i64 %cost, %long.piece
  %b = select i1 %is.long, i64 %millis, i64 %a
  %c = call i64 @llvm.smin.i64(i64 %b, i64 %units)
  %pieces = call i64 @llvm.smin.i64(i64 %c, i64 1073741824)
  %few = icmp slt i64 %pieces, 2
  %single = icmp slt i64 %threads, 2
  %no = or i1 %few, %single
  br i1 %no, label %serial, label %take
take:
  %pair = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic
  %got = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %got, label %parallel, label %serial
parallel:
  call void @describe(ptr %part, ptr %closure, i64 %lower, i64 %upper, i64 %unit, i64 %pieces, i64 %threads)
  %status = call i32 @execute(ptr %ctx, i64 %pieces, i1 %is.long)
  call void @unlock()
  ret i32 %status
serial:
  %alone = call i32 %part(ptr %ctx, ptr %closure, i64 %lower, i64 %upper)
  ret i32 %alone
}}

; one job of OpenBLAS: the closure holds its function, the first job's data, the bytes of each, and a flag
define internal i32 @blas.job(ptr %ctx, ptr %closure, i64 %first, i64 %end) nounwind {{
  %f = load ptr, ptr %closure, align 8
  %data.at = getelementptr i8, ptr %closure, i64 8
  %data = load ptr, ptr %data.at, align 8
  %size.at = getelementptr i8, ptr %closure, i64 16
  %size = load i64, ptr %size.at, align 8
  %flag.at = getelementptr i8, ptr %closure, i64 24
  %flag = load i64, ptr %flag.at, align 8
  %narrow = trunc i64 %flag to i32
  %number = trunc i64 %first to i32
  %offset = mul i64 %first, %size
  %job = getelementptr i8, ptr %data, i64 %offset
  call void %f(i32 %number, ptr %job, i32 %narrow)
  ret i32 0
}}

; what OpenBLAS calls: all jobs at the same time, as they wait for each other
define void @blas(i32 %sync, ptr %function, i32 %count, i64 %size, ptr %data, i32 %flag) nounwind {{
entry:
{field("lock", LOCK)}
  %closure = alloca [4 x i64], align 8
  %context = alloca [8 x i64], align 8
  store ptr %function, ptr %closure, align 8
  %data.at = getelementptr i8, ptr %closure, i64 8
  store ptr %data, ptr %data.at, align 8
  %size.at = getelementptr i8, ptr %closure, i64 16
  store i64 %size, ptr %size.at, align 8
  %flag.at = getelementptr i8, ptr %closure, i64 24
  %wide.flag = sext i32 %flag to i64
  store i64 %wide.flag, ptr %flag.at, align 8
  br label %take
take:
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %busy ]
  %pair = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic
  %got = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %got, label %parallel, label %taken
taken:
  %turn.next = add i64 %turn, 1
  %soon = icmp ult i64 %turn.next, {_LOOKS}
  br i1 %soon, label %busy, label %sleep
busy:
  call void @{pause}({hint})
  call void @give()
  br label %take
sleep:
  %old = atomicrmw xchg ptr %lock, i32 2 acquire
  %free = icmp eq i32 %old, 0
  br i1 %free, label %parallel, label %doze
doze:
  call void @futex(ptr %lock, i64 {_FUTEX_WAIT}, i64 2)
  br label %sleep
parallel:
  %jobs = sext i32 %count to i64
  call void @describe(ptr @blas.job, ptr %closure, i64 0, i64 %jobs, i64 1, i64 %jobs, i64 {_ALL})
  %status = call i32 @execute(ptr %context, i64 %jobs, i1 false)
  call void @unlock()
  ret void
}}

define ptr @worker(ptr %self) nounwind {{
entry:
{field("stop.at", STOP)}
{field("wake.at", WAKE)}
{field("sleepers.at", SLEEPERS)}
{field("threads.at", JOB_THREADS)}
  %index.at = getelementptr i8, ptr %self, i64 {WORKER_INDEX}
  %index = load i64, ptr %index.at, align 8
  %context.at = getelementptr i8, ptr %self, i64 {WORKER_CONTEXT}
  %ctx = load ptr, ptr %context.at, align 8
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %seen, %skip ], [ %g, %look ], [ %g, %done ], [ %seen, %slept ]
  br label %spin
spin:
  %turn = phi i64 [ 0, %idle ], [ %turn.next, %more ]
  %ticket = load atomic i64, ptr @state acquire, align 8
  %g = and i64 %ticket, {_GENERATION}
  %odd = and i64 %ticket, {1 << 32}
  %is.open = icmp ne i64 %odd, 0
  %is.new = icmp ne i64 %g, %seen
  %is.work = and i1 %is.open, %is.new
  br i1 %is.work, label %look, label %none
none:
  %stop = load atomic i32, ptr %stop.at monotonic, align 4
  %over = icmp ne i32 %stop, 0
  br i1 %over, label %leave, label %rest
rest:
  call void @{pause}({hint})
  %turn.next = add i64 %turn, 1
  %low = and i64 %turn.next, {_LOOKS - 1}
  %offer = icmp eq i64 %low, 0
  br i1 %offer, label %yield, label %more
yield:
  call void @give()
  br label %more
more:
  %long = icmp ugt i64 %turn.next, {_SPINS}
  br i1 %long, label %doze, label %spin
doze:
  %word = load atomic i32, ptr %wake.at seq_cst, align 4
  %s = atomicrmw add ptr %sleepers.at, i32 1 seq_cst
  %late = load atomic i64, ptr @state seq_cst, align 8
  %late.g = and i64 %late, {_GENERATION}
  %late.odd = and i64 %late, {1 << 32}
  %late.open = icmp ne i64 %late.odd, 0
  %late.new = icmp ne i64 %late.g, %seen
  %late.work = and i1 %late.open, %late.new
  %late.stop = load atomic i32, ptr %stop.at seq_cst, align 4
  %late.over = icmp ne i32 %late.stop, 0
  %up = or i1 %late.work, %late.over
  br i1 %up, label %skip, label %sleep
sleep:
  %value = zext i32 %word to i64
  call void @futex(ptr %wake.at, i64 {_FUTEX_WAIT}, i64 %value)
  br label %slept
slept:
  %t = atomicrmw sub ptr %sleepers.at, i32 1 seq_cst
  br label %idle
skip:
  %u = atomicrmw sub ptr %sleepers.at, i32 1 seq_cst
  br label %idle
look:
  %limit = load atomic i64, ptr %threads.at monotonic, align 8
  %part = icmp slt i64 %index, %limit
  br i1 %part, label %take, label %idle
take:
  call void @apart()
  call void @work(ptr %ctx, i64 %g, i1 false)
  %heap.at = getelementptr i8, ptr %ctx, i64 {CONTEXT_HEAP}
  %heap = load ptr, ptr %heap.at, align 8
  %clean = icmp eq ptr %heap, null
  br i1 %clean, label %done, label %sweep
sweep:
  call void @release(ptr %ctx)
  br label %done
done:
  br label %idle
leave:
  ret ptr null
}}
"""
