"""The memory pool as LLVM IR, for any CPU: blocks in size classes, and arrays of NumPy's that give theirs back.

Plain text rather than a program that writes it: nothing here depends on what is compiled. All C functions are reached
through pointers in the state (`FIELDS`), but for memset and memcpy.

A block lies in a size class, four of which are in each doubling; the free blocks of a class are a list, last in first
out, so that the next to take one gets what is still in the cache. It begins with a header of 64 bytes:
    {next: ptr, bytes of the class: i64, bytes asked for: i64, class: i64}
and the word in front of what the user gets is the distance to the header. Blocks below `LARGE` have their data 64 bytes
behind the header; larger ones begin at a page, and their data at one of four places in it (`offset`), so that stores
to it and loads of an argument do not meet at addresses that are equal in their low 12 bits: the processor would take
the one for the other and wait. Blocks from `MAPPED` on come from mmap, from `HUGE` on in huge pages.

A spin lock guards the state; nothing that may take long happens under it. Nothing here but `pool_array` touches Python,
so blocks come back from any thread, with or without the interpreter's lock, in finalisers and at exit.
"""

from __future__ import annotations

from jitgraph.runtime import pool_arrays
from jitgraph.runtime.pool_state import CLASS_BYTES, CLASSES, CLASSES_AT, MOST_BYTES, STATE_BYTES, add, field, load

HEADER = 64
PAGE = 4096
#: Bytes from which on a block begins at a page, comes from mmap, and is made of huge pages.
LARGE, MAPPED, HUGE = 32 << 10, 256 << 10, 4 << 20
HUGE_PAGE = 2 << 20
#: Between two sweeps there are at least so many nanoseconds and, but for misses, so many large blocks that came back.
_EPOCH_NS = 1_000_000_000
_EPOCH_FREES = 64
#: Arguments that are looked at for the place of a result.
_LOOKED_AT = 16

EXPORTS = (
    "pool_state", "pool_forked", "pool_alloc", "pool_free", "pool_malloc", "pool_trim", "pool_array",
    "pool_capsule",
)  # fmt: skip


def _lock(pause: str) -> str:
    return f"""
define internal void @pool_lock() nounwind {{
entry:
  br label %try
try:
  %old = atomicrmw xchg ptr @state, i32 1 acquire
  %won = icmp eq i32 %old, 0
  br i1 %won, label %done, label %wait
wait:
  %turn = phi i64 [ 0, %try ], [ %more, %again ]
  %seen = load atomic i32, ptr @state monotonic, align 8
  %open = icmp eq i32 %seen, 0
  br i1 %open, label %try, label %spin
spin:
  %more = add i64 %turn, 1
  %long = icmp ugt i64 %more, 100
  br i1 %long, label %yield, label %pause
pause:
  {pause}
  br label %again
yield:
  {load("yielding", "sched_yield", "ptr")}
  %ignored = call i32 %yielding()
  br label %again
again:
  br label %wait
done:
  ret void
}}

define internal void @pool_unlock() nounwind {{
  store atomic i32 0, ptr @state release, align 8
  ret void
}}
"""


def _classes() -> str:
    """Sizes and system memory."""
    return f"""
; The class of a size, and the size of all blocks in it.
define internal {{ i64, i64 }} @class_of(i64 %total) nounwind {{
  %some = call i64 @llvm.umax.i64(i64 %total, i64 256)
  %last = sub i64 %some, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %last, i1 true)
  %shift = sub i64 61, %zeros
  %top = lshr i64 %last, %shift
  %sub = and i64 %top, 3
  %octave = sub i64 %shift, 5
  %four = shl i64 %octave, 2
  %class = or i64 %four, %sub
  %next = add i64 %sub, 5
  %bytes = shl i64 %next, %shift
  %r0 = insertvalue {{ i64, i64 }} poison, i64 %class, 0
  %r1 = insertvalue {{ i64, i64 }} %r0, i64 %bytes, 1
  ret {{ i64, i64 }} %r1
}}

define internal ptr @class_at(i64 %class) nounwind {{
  %at = mul i64 %class, {CLASS_BYTES}
  %there = add i64 %at, {CLASSES_AT}
  %p = getelementptr i8, ptr @state, i64 %there
  ret ptr %p
}}

define internal i64 @mapped_bytes(i64 %bytes) nounwind {{
  %huge = icmp uge i64 %bytes, {HUGE}
  %unit = select i1 %huge, i64 {HUGE_PAGE}, i64 {PAGE}
  %less = sub i64 %unit, 1
  %up = add i64 %bytes, %less
  %mask = sub i64 0, %unit
  %whole = and i64 %up, %mask
  ret i64 %whole
}}

; A block of the system's for `total` bytes of a class of `bytes`, null if there is none. Of huge pages are as many as
; come nearest to what is needed: a page at the end that is hardly used would be resident as a whole.
define internal ptr @take(i64 %bytes, i64 %total) nounwind {{
entry:
  %maps = icmp uge i64 %bytes, {MAPPED}
  br i1 %maps, label %map, label %plain
plain:
  %paged = icmp uge i64 %bytes, {LARGE}
  %alignment = select i1 %paged, i64 {PAGE}, i64 {HEADER}
  {load("aligned_alloc", "aligned_alloc", "ptr")}
  %p = call ptr %aligned_alloc(i64 %alignment, i64 %bytes)
  ret ptr %p
map:
  %length = call i64 @mapped_bytes(i64 %bytes)
  %huge = icmp uge i64 %bytes, {HUGE}
  %slack = select i1 %huge, i64 {HUGE_PAGE}, i64 0
  %room = add i64 %length, %slack
  {load("mmap", "mmap", "ptr")}
  %m = call ptr %mmap(ptr null, i64 %room, i32 3, i32 34, i32 -1, i64 0)
  %number = ptrtoint ptr %m to i64
  %failed = icmp eq i64 %number, -1
  br i1 %failed, label %none, label %there
none:
  ret ptr null
there:
  br i1 %huge, label %align, label %done
align:
  %up = add i64 %number, {HUGE_PAGE - 1}
  %first = and i64 %up, {-HUGE_PAGE}
  %begin = inttoptr i64 %first to ptr
  %head = sub i64 %first, %number
  %tail = sub i64 %slack, %head
  %end = getelementptr i8, ptr %begin, i64 %length
  {load("munmap", "munmap", "ptr")}
  %no.head = icmp eq i64 %head, 0
  br i1 %no.head, label %cut.tail, label %cut.head
cut.head:
  %c0 = call i32 %munmap(ptr %m, i64 %head)
  br label %cut.tail
cut.tail:
  %no.tail = icmp eq i64 %tail, 0
  br i1 %no.tail, label %advise, label %cut
cut:
  %c1 = call i32 %munmap(ptr %end, i64 %tail)
  br label %advise
advise:
  {load("madvise", "madvise", "ptr")}
  %half.more = add i64 %total, {HUGE_PAGE // 2}
  %pages = and i64 %half.more, {-HUGE_PAGE}
  %c2 = call i32 %madvise(ptr %begin, i64 %pages, i32 14)
  br label %done
done:
  %found = phi ptr [ %m, %there ], [ %begin, %advise ]
  ret ptr %found
}}

; Give a list of blocks back to the system; not under the lock.
define internal void @give_back(ptr %list) nounwind {{
entry:
  br label %look
look:
  %block = phi ptr [ %list, %entry ], [ %next, %gone ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %one
one:
  %next = load ptr, ptr %block, align 8
  %bytes.at = getelementptr i8, ptr %block, i64 8
  %bytes = load i64, ptr %bytes.at, align 8
  %maps = icmp uge i64 %bytes, {MAPPED}
  br i1 %maps, label %unmap, label %plain
unmap:
  %length = call i64 @mapped_bytes(i64 %bytes)
  {load("munmap", "munmap", "ptr")}
  %c = call i32 %munmap(ptr %block, i64 %length)
  br label %gone
plain:
  {load("free", "free", "ptr")}
  call void %free(ptr %block)
  br label %gone
gone:
  br label %look
done:
  ret void
}}
"""


def _sweeping() -> str:
    """What goes back to the system, and when."""
    return f"""
; Take `count` blocks, the ones at hand longest, off the list of a class; put them in front of `list`. Under the lock.
define internal ptr @detach(ptr %class, i64 %count, ptr %list) nounwind {{
entry:
  %count.at = getelementptr i8, ptr %class, i64 8
  %low.at = getelementptr i8, ptr %class, i64 16
  %there = load i64, ptr %count.at, align 8
  %kept = sub i64 %there, %count
  br label %walk
walk:
  %left = phi i64 [ %kept, %entry ], [ %left.next, %step ]
  %link = phi ptr [ %class, %entry ], [ %block, %step ]
  %block = load ptr, ptr %link, align 8
  %arrived = icmp eq i64 %left, 0
  br i1 %arrived, label %cut, label %step
step:
  %left.next = sub i64 %left, 1
  br label %walk
cut:
  store ptr null, ptr %link, align 8
  store i64 %kept, ptr %count.at, align 8
  store i64 %kept, ptr %low.at, align 8
  br label %move
move:
  %moving = phi ptr [ %block, %cut ], [ %following, %one ]
  %done.list = phi ptr [ %list, %cut ], [ %moving, %one ]
  %end = icmp eq ptr %moving, null
  br i1 %end, label %done, label %one
one:
  %following = load ptr, ptr %moving, align 8
  store ptr %done.list, ptr %moving, align 8
  %bytes.at = getelementptr i8, ptr %moving, i64 8
  %bytes = load i64, ptr %bytes.at, align 8
  {add("held", "%bytes", "sub")}
  {add("held_blocks", "1", "sub")}
  {add("released", "1")}
  br label %move
done:
  ret ptr %done.list
}}

; Release all free blocks, or those that nobody needed since the last sweep; answers how many bytes.
define internal i64 @sweep(i1 %all) nounwind {{
entry:
  call void @pool_lock()
  {load("before", "held")}
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %k.next, %swept ]
  %list = phi ptr [ null, %entry ], [ %longer, %swept ]
  %class = call ptr @class_at(i64 %k)
  %count.at = getelementptr i8, ptr %class, i64 8
  %low.at = getelementptr i8, ptr %class, i64 16
  %count = load i64, ptr %count.at, align 8
  %low = load i64, ptr %low.at, align 8
  %spare = select i1 %all, i64 %count, i64 %low
  %none = icmp eq i64 %spare, 0
  br i1 %none, label %nothing, label %some
nothing:
  store i64 %count, ptr %low.at, align 8
  br label %swept
some:
  %detached = call ptr @detach(ptr %class, i64 %spare, ptr %list)
  br label %swept
swept:
  %longer = phi ptr [ %list, %nothing ], [ %detached, %some ]
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, {CLASSES}
  br i1 %more, label %look, label %end
end:
  {load("after", "held")}
  call void @pool_unlock()
  call void @give_back(ptr %longer)
  %bytes = sub i64 %before, %after
  ret i64 %bytes
}}

define internal void @sweep_if_due() nounwind {{
entry:
  %time = alloca [2 x i64], align 8
  {load("clock", "clock_gettime", "ptr")}
  %id = load i32, {field("clock")}, align 8
  %failed = call i32 %clock(i32 %id, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %rest.at, align 8
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %rest
  call void @pool_lock()
  {load("last", "swept_at")}
  %age = sub i64 %now, %last
  %due = icmp sgt i64 %age, {_EPOCH_NS}
  %stamp = select i1 %due, i64 %now, i64 %last
  store i64 %stamp, {field("swept_at")}, align 8
  call void @pool_unlock()
  br i1 %due, label %go, label %done
go:
  %ignored = call i64 @sweep(i1 false)
  br label %done
done:
  ret void
}}

; The free blocks of the classes unused longest, until `wanted` bytes more fit under the cap. Under the lock.
define internal ptr @evict(i64 %wanted) nounwind {{
entry:
  br label %test
test:
  %list = phi ptr [ null, %entry ], [ %longer, %out ]
  {load("held", "held")}
  {load("cap", "cap")}
  %would = add i64 %held, %wanted
  %fits = icmp sle i64 %would, %cap
  %empty = icmp eq i64 %held, 0
  %stop = or i1 %fits, %empty
  br i1 %stop, label %done, label %search
search:
  br label %look
look:
  %k = phi i64 [ 0, %search ], [ %k.next, %look ]
  %best = phi ptr [ null, %search ], [ %best.next, %look ]
  %oldest = phi i64 [ -1, %search ], [ %oldest.next, %look ]
  %class = call ptr @class_at(i64 %k)
  %count.at = getelementptr i8, ptr %class, i64 8
  %used.at = getelementptr i8, ptr %class, i64 24
  %count = load i64, ptr %count.at, align 8
  %used = load i64, ptr %used.at, align 8
  %some = icmp ne i64 %count, 0
  %older = icmp ult i64 %used, %oldest
  %better = and i1 %some, %older
  %best.next = select i1 %better, ptr %class, ptr %best
  %oldest.next = select i1 %better, i64 %used, i64 %oldest
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, {CLASSES}
  br i1 %more, label %look, label %out
out:
  %longer = call ptr @detach(ptr %best.next, i64 1, ptr %list)
  br label %test
done:
  ret ptr %list
}}

; In a child process: a thread that held the lock is not there, and may have left the lists half changed. What lies in
; them is given up then; blocks in use say themselves what they are.
define void @pool_forked() nounwind {{
entry:
  %locked = load atomic i32, ptr @state acquire, align 8
  %fine = icmp eq i32 %locked, 0
  br i1 %fine, label %done, label %forget
forget:
  %k = phi i64 [ 0, %entry ], [ %k.next, %forget ]
  %class = call ptr @class_at(i64 %k)
  call void @llvm.memset.p0.i64(ptr %class, i8 0, i64 24, i1 false)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, {CLASSES}
  br i1 %more, label %forget, label %unlock
unlock:
  store i64 0, {field("held")}, align 8
  store i64 0, {field("held_blocks")}, align 8
  call void @pool_unlock()
  br label %done
done:
  ret void
}}

; Bytes that the system got back.
define i64 @pool_trim() nounwind {{
  %bytes = call i64 @sweep(i1 true)
  ret i64 %bytes
}}
"""


def _blocks() -> str:
    """Memory for whoever asks."""
    return f"""
define ptr @pool_state() nounwind {{
  ret ptr @state
}}

; Where in its page data begins: the first of four places where no argument lies up to 256 bytes in front of it, in the
; low 12 bits. `slots` begin with the address of an argument each; a number there does no harm.
define internal i64 @offset(ptr %slots, i64 %count) nounwind {{
entry:
  %n = call i64 @llvm.umin.i64(i64 %count, i64 {_LOOKED_AT})
  br label %place
place:
  %k = phi i64 [ 0, %entry ], [ %k.next, %bad ]
  %packed = lshr i64 {0x02000C0004000800}, %k
  %offset = and i64 %packed, 65535
  %over = icmp eq i64 %k, 64
  br i1 %over, label %any, label %look
look:
  %i = phi i64 [ 0, %place ], [ %i.next, %apart ]
  %all = icmp eq i64 %i, %n
  br i1 %all, label %good, label %one
one:
  %at = mul i64 %i, 32
  %slot = getelementptr i8, ptr %slots, i64 %at
  %x = load i64, ptr %slot, align 1
  %distance = sub i64 %offset, %x
  %low = and i64 %distance, 4095
  %before = sub i64 %low, 1
  %close = icmp ult i64 %before, 255
  br i1 %close, label %bad, label %apart
apart:
  %i.next = add i64 %i, 1
  br label %look
bad:
  %k.next = add i64 %k, 16
  br label %place
any:
  ret i64 2048
good:
  ret i64 %offset
}}

; `bytes` of memory, aligned to 64, or null. `slots`, `count`: slots of arrays that are read where it is written.
define ptr @pool_alloc(i64 %n, ptr %slots, i64 %count) nounwind {{
entry:
  %possible = icmp ult i64 %n, {MOST_BYTES}
  br i1 %possible, label %sized, label %refuse
refuse:
  ret ptr null
sized:
  %small = icmp ult i64 %n, {LARGE - HEADER}
  %extra = select i1 %small, i64 {HEADER}, i64 {PAGE}
  %total = add i64 %n, %extra
  %found = call {{ i64, i64 }} @class_of(i64 %total)
  %k = extractvalue {{ i64, i64 }} %found, 0
  %bytes = extractvalue {{ i64, i64 }} %found, 1
  %class = call ptr @class_at(i64 %k)
  call void @pool_lock()
  %block = load ptr, ptr %class, align 8
  %none = icmp eq ptr %block, null
  br i1 %none, label %miss, label %hit
hit:
  %next = load ptr, ptr %block, align 8
  store ptr %next, ptr %class, align 8
  %count.at = getelementptr i8, ptr %class, i64 8
  %low.at = getelementptr i8, ptr %class, i64 16
  %free = load i64, ptr %count.at, align 8
  %free.now = sub i64 %free, 1
  store i64 %free.now, ptr %count.at, align 8
  %low = load i64, ptr %low.at, align 8
  %lower = call i64 @llvm.umin.i64(i64 %low, i64 %free.now)
  store i64 %lower, ptr %low.at, align 8
  {add("hits", "1")}
  {add("held", "%bytes", "sub")}
  {add("held_blocks", "1", "sub")}
  br label %count.it
miss:
  call void @pool_unlock()
  call void @sweep_if_due()
  %taken = call ptr @take(i64 %bytes, i64 %total)
  %failed = icmp eq ptr %taken, null
  br i1 %failed, label %poor, label %new
poor:
  %ignored = call i64 @sweep(i1 true)
  %second = call ptr @take(i64 %bytes, i64 %total)
  %failed.again = icmp eq ptr %second, null
  br i1 %failed.again, label %refuse, label %new
new:
  %made = phi ptr [ %taken, %miss ], [ %second, %poor ]
  %bytes.at = getelementptr i8, ptr %made, i64 8
  store i64 %bytes, ptr %bytes.at, align 8
  %class.at = getelementptr i8, ptr %made, i64 24
  store i64 %k, ptr %class.at, align 8
  call void @pool_lock()
  {add("taken", "1")}
  br label %count.it
count.it:
  %b = phi ptr [ %block, %hit ], [ %made, %new ]
  {add("uses", "1")}
  {load("stamp", "uses")}
  %used.at = getelementptr i8, ptr %class, i64 24
  store i64 %stamp, ptr %used.at, align 8
  {add("allocations", "1")}
  {add("used", "%bytes")}
  {add("asked_total", "%n")}
  {add("asked", "%n")}
  {load("now", "asked")}
  {load("peak", "asked_peak")}
  %higher = call i64 @llvm.umax.i64(i64 %now, i64 %peak)
  store i64 %higher, {field("asked_peak")}, align 8
  call void @pool_unlock()
  %asked.at = getelementptr i8, ptr %b, i64 16
  store i64 %n, ptr %asked.at, align 8
  br i1 %small, label %place, label %choose
choose:
  %chosen = call i64 @offset(ptr %slots, i64 %count)
  br label %place
place:
  %offset = phi i64 [ {HEADER}, %count.it ], [ %chosen, %choose ]
  %p = getelementptr i8, ptr %b, i64 %offset
  %word = getelementptr i8, ptr %p, i64 -8
  store i64 %offset, ptr %word, align 8
  {load("poison", "poison")}
  %clean = icmp eq i64 %poison, 0
  br i1 %clean, label %done, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %p, i8 -1, i64 %n, i1 false)
  br label %done
done:
  ret ptr %p
}}

; The block that memory lies in.
define internal ptr @block_of(ptr %p) nounwind {{
  %word = getelementptr i8, ptr %p, i64 -8
  %offset = load i64, ptr %word, align 8
  %back = sub i64 0, %offset
  %block = getelementptr i8, ptr %p, i64 %back
  ret ptr %block
}}

define void @pool_free(ptr %p) nounwind {{
entry:
  %nothing = icmp eq ptr %p, null
  br i1 %nothing, label %done, label %some
some:
  %block = call ptr @block_of(ptr %p)
  %bytes.at = getelementptr i8, ptr %block, i64 8
  %bytes = load i64, ptr %bytes.at, align 8
  %asked.at = getelementptr i8, ptr %block, i64 16
  %n = load i64, ptr %asked.at, align 8
  %class.at = getelementptr i8, ptr %block, i64 24
  %k = load i64, ptr %class.at, align 8
  %class = call ptr @class_at(i64 %k)
  call void @pool_lock()
  {add("frees", "1")}
  {add("asked", "%n", "sub")}
  {add("used", "%bytes", "sub")}
  {add("uses", "1")}
  {load("stamp", "uses")}
  %used.at = getelementptr i8, ptr %class, i64 24
  store i64 %stamp, ptr %used.at, align 8
  {load("held.before", "held")}
  {load("cap", "cap")}
  %would = add i64 %held.before, %bytes
  %fits = icmp sle i64 %would, %cap
  br i1 %fits, label %keep, label %full
keep:
  %first = load ptr, ptr %class, align 8
  store ptr %first, ptr %block, align 8
  store ptr %block, ptr %class, align 8
  %count.at = getelementptr i8, ptr %class, i64 8
  %count = load i64, ptr %count.at, align 8
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at, align 8
  store i64 %would, {field("held")}, align 8
  {add("held_blocks", "1")}
  %large = icmp uge i64 %bytes, {MAPPED}
  br i1 %large, label %large.one, label %unlock
large.one:
  {add("large_frees", "1")}
  {load("many", "large_frees")}
  %phase = and i64 %many, {_EPOCH_FREES - 1}
  call void @pool_unlock()
  %look = icmp eq i64 %phase, 0
  br i1 %look, label %sweep, label %done
sweep:
  call void @sweep_if_due()
  br label %done
unlock:
  call void @pool_unlock()
  br label %done
full:
  %too.large = icmp sgt i64 %bytes, %cap
  br i1 %too.large, label %drop, label %room
room:
  %list = call ptr @evict(i64 %bytes)
  {load("held.after", "held")}
  %held.new = add i64 %held.after, %bytes
  store i64 %held.new, {field("held")}, align 8
  {add("held_blocks", "1", mark=".2")}
  %first.2 = load ptr, ptr %class, align 8
  store ptr %first.2, ptr %block, align 8
  store ptr %block, ptr %class, align 8
  %count.at.2 = getelementptr i8, ptr %class, i64 8
  %count.2 = load i64, ptr %count.at.2, align 8
  %more.2 = add i64 %count.2, 1
  store i64 %more.2, ptr %count.at.2, align 8
  call void @pool_unlock()
  call void @give_back(ptr %list)
  br label %done
drop:
  {add("released", "1")}
  call void @pool_unlock()
  store ptr null, ptr %block, align 8
  call void @give_back(ptr %block)
  br label %done
done:
  ret void
}}

define ptr @pool_malloc(i64 %n) nounwind {{
  %p = call ptr @pool_alloc(i64 %n, ptr null, i64 0)
  ret ptr %p
}}
"""


def pool_text(triple: str) -> str:
    """The module. Its state is a variable of its own, so it must be loaded once only."""
    x86 = triple.startswith(("x86_64", "i686"))
    pause = "call void @llvm.x86.sse2.pause()" if x86 else ""
    parts = [
        f'; jitgraph\'s memory pool\ntarget triple = "{triple}"',
        f"@state = internal global [{STATE_BYTES} x i8] zeroinitializer, align 64",
        _lock(pause),
        _classes(),
        _sweeping(),
        _blocks(),
        pool_arrays.handler(),
        pool_arrays.arrays(),
        *[f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("umax", "umin", "smax")],
        "declare i64 @llvm.ctlz.i64(i64, i1)\ndeclare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        *(["declare void @llvm.x86.sse2.pause()"] if x86 else []),
    ]
    return "\n".join(parts) + "\n"
