"""What NumPy sees of the memory pool, as LLVM IR: the memory handler of its arrays, and arrays made on blocks."""

from __future__ import annotations

from jitgraph.runtime.pool_state import MOST_BYTES, add, load

#: NumPy's: domain of its blocks in tracemalloc, flags of arrays.
_TRACE_DOMAIN = 389047
_C, _F, _OWN = 0x1, 0x2, 0x4
#: The name of the handler, in the 127 bytes that it has.
_NAME = "jitgraph" + "\\00" * 119
#: A recipe of arrays, int64 each: the dtype object, rank, flags (C order, F order or neither), item size, then for
#: neither the axes from the outermost in memory to the innermost.
RECIPE_DTYPE, RECIPE_RANK, RECIPE_FLAGS, RECIPE_ITEM, RECIPE_ORDER = 0, 8, 16, 24, 32
C_ORDER, F_ORDER, OTHER_ORDER = 0x501, 0x502, 0x500  # aligned and writeable


def handler() -> str:
    """The functions that NumPy calls for arrays on blocks of the pool (NEP 49)."""
    return f"""
@handler = internal constant {{ [127 x i8], i8, ptr, ptr, ptr, ptr, ptr }} {{
  [127 x i8] c"{_NAME}", i8 1, ptr null, ptr @handler_malloc, ptr @handler_calloc,
  ptr @handler_realloc, ptr @handler_free }}, align 16
@handler_name = internal constant [12 x i8] c"mem_handler\\00"

; The handler as the object that arrays refer to, made by PyCapsule_New.
define ptr @pool_capsule(ptr %new_capsule) nounwind {{
  %capsule = call ptr %new_capsule(ptr @handler, ptr @handler_name, ptr null)
  ret ptr %capsule
}}

define internal ptr @handler_malloc(ptr %context, i64 %n) nounwind {{
  %p = call ptr @pool_alloc(i64 %n, ptr null, i64 0)
  ret ptr %p
}}

define internal ptr @handler_calloc(ptr %context, i64 %n, i64 %size) nounwind {{
entry:
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %n, i64 %size)
  %bytes = extractvalue {{ i64, i1 }} %product, 0
  %over = extractvalue {{ i64, i1 }} %product, 1
  br i1 %over, label %refuse, label %go
refuse:
  ret ptr null
go:
  %p = call ptr @pool_alloc(i64 %bytes, ptr null, i64 0)
  %none = icmp eq ptr %p, null
  br i1 %none, label %refuse, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %bytes, i1 false)
  ret ptr %p
}}

define internal ptr @handler_realloc(ptr %context, ptr %old, i64 %n) nounwind {{
entry:
  %fresh = icmp eq ptr %old, null
  br i1 %fresh, label %make, label %some
make:
  %first = call ptr @pool_alloc(i64 %n, ptr null, i64 0)
  ret ptr %first
some:
  %block = call ptr @block_of(ptr %old)
  %bytes.at = getelementptr i8, ptr %block, i64 8
  %bytes = load i64, ptr %bytes.at, align 8
  %asked.at = getelementptr i8, ptr %block, i64 16
  %asked = load i64, ptr %asked.at, align 8
  %word = getelementptr i8, ptr %old, i64 -8
  %offset = load i64, ptr %word, align 8
  %room = sub i64 %bytes, %offset
  %fits = icmp ule i64 %n, %room
  %half = lshr i64 %room, 1
  %filled = icmp uge i64 %n, %half
  %stays = and i1 %fits, %filled
  br i1 %stays, label %stay, label %move
stay:
  call void @pool_lock()
  {add("asked", "%asked", "sub")}
  {add("asked", "%n")}
  call void @pool_unlock()
  store i64 %n, ptr %asked.at, align 8
  ret ptr %old
move:
  %new = call ptr @pool_alloc(i64 %n, ptr null, i64 0)
  %none = icmp eq ptr %new, null
  br i1 %none, label %refuse, label %copy
refuse:
  ret ptr null
copy:
  %common = call i64 @llvm.umin.i64(i64 %n, i64 %asked)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %common, i1 false)
  call void @pool_free(ptr %old)
  ret ptr %new
}}

define internal void @handler_free(ptr %context, ptr %p, i64 %n) nounwind {{
  call void @pool_free(ptr %p)
  ret void
}}
"""


def arrays() -> str:
    return f"""
; A new array (with the interpreter's lock), null with an exception. `dims` has a size for each axis; `slots`, `count`
; as in `pool_alloc`. Small ones, and what the pool has no memory for, are left to NumPy's own allocator.
define ptr @pool_array(ptr %recipe, ptr %dims, ptr %slots, i64 %count) nounwind {{
entry:
  %strides = alloca [64 x i64], align 8
  %descr = load ptr, ptr %recipe, align 8
  %rank.at = getelementptr i8, ptr %recipe, i64 {RECIPE_RANK}
  %rank = load i64, ptr %rank.at, align 8
  %flags.at = getelementptr i8, ptr %recipe, i64 {RECIPE_FLAGS}
  %flags = load i64, ptr %flags.at, align 8
  %item.at = getelementptr i8, ptr %recipe, i64 {RECIPE_ITEM}
  %item = load i64, ptr %item.at, align 8
  %nd = trunc i64 %rank to i32
  {load("type", "array_type", "ptr")}
  {load("new_array", "new_array", "ptr")}
  {load("incref", "incref", "ptr")}
  %order = getelementptr i8, ptr %recipe, i64 {RECIPE_ORDER}
  %contiguous = and i64 %flags, {_C | _F}
  %plain.order = icmp ne i64 %contiguous, 0
  br label %size
size:
  %i = phi i64 [ 0, %entry ], [ %i.next, %axis ]
  %bytes = phi i64 [ %item, %entry ], [ %bytes.next, %axis ]
  %over = phi i1 [ false, %entry ], [ %over.next, %axis ]
  %sized = icmp eq i64 %i, %rank
  br i1 %sized, label %ordered, label %axis
axis:
  %dim.at = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.at, align 8
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %bytes, i64 %dim)
  %bytes.next = extractvalue {{ i64, i1 }} %product, 0
  %over.here = extractvalue {{ i64, i1 }} %product, 1
  %over.next = or i1 %over, %over.here
  %i.next = add i64 %i, 1
  br label %size
ordered:
  br i1 %plain.order, label %where, label %step
step:
  %j = phi i64 [ %rank, %ordered ], [ %j.next, %set ]
  %stride = phi i64 [ %item, %ordered ], [ %stride.next, %set ]
  %stepped = icmp eq i64 %j, 0
  br i1 %stepped, label %where, label %set
set:
  %j.next = sub i64 %j, 1
  %axis.at = getelementptr i64, ptr %order, i64 %j.next
  %axis.k = load i64, ptr %axis.at, align 8
  %stride.at = getelementptr i64, ptr %strides, i64 %axis.k
  store i64 %stride, ptr %stride.at, align 8
  %extent.at = getelementptr i64, ptr %dims, i64 %axis.k
  %extent = load i64, ptr %extent.at, align 8
  %extent.1 = call i64 @llvm.smax.i64(i64 %extent, i64 1)
  %stride.next = mul i64 %stride, %extent.1
  br label %step
where:
  %given = select i1 %plain.order, ptr null, ptr %strides
  {load("least", "small")}
  %small = icmp ult i64 %bytes, %least
  %huge = icmp uge i64 %bytes, {MOST_BYTES}
  %no = or i1 %small, %over
  %not.ours = or i1 %no, %huge
  br i1 %not.ours, label %numpy, label %ours
numpy:
  call void %incref(ptr %descr)
  %is.f = and i64 %flags, {_F}
  %fortran = icmp ne i64 %is.f, 0
  %how = zext i1 %fortran to i32
  %theirs = call ptr %new_array(ptr %type, ptr %descr, i32 %nd, ptr %dims, ptr %given, ptr null, i32 %how, ptr null)
  ret ptr %theirs
ours:
  %some = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  %data = call ptr @pool_alloc(i64 %some, ptr %slots, i64 %count)
  %poor = icmp eq ptr %data, null
  br i1 %poor, label %numpy, label %make
make:
  call void %incref(ptr %descr)
  %flags.32 = trunc i64 %flags to i32
  %made = call ptr %new_array(ptr %type, ptr %descr, i32 %nd, ptr %dims, ptr %given, ptr %data, i32 %flags.32, ptr null)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %undo, label %own
undo:
  call void @pool_free(ptr %data)
  ret ptr null
own:
  {load("handler", "handler", "ptr")}
  call void %incref(ptr %handler)
  {load("handler.offset", "handler_at")}
  %handler.at = getelementptr i8, ptr %made, i64 %handler.offset
  store ptr %handler, ptr %handler.at, align 8
  {load("flags.offset", "flags_at")}
  %own.at = getelementptr i8, ptr %made, i64 %flags.offset
  %word = load i32, ptr %own.at, align 4
  %owning = or i32 %word, {_OWN}
  store i32 %owning, ptr %own.at, align 4
  {load("track", "track", "ptr")}
  %address = ptrtoint ptr %data to i64
  %tracked = call i32 %track(i32 {_TRACE_DOMAIN}, i64 %address, i64 %some)
  ret ptr %made
}}
"""
