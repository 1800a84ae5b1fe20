"""The native dispatcher: a call of a jitted function from its vectorcall to its result, as machine code.

Written in the language of `language.py`, never run by Python, with `guards.py` and `answers.py`. It reads the
records of `records.py`, which Python makes for each specialisation (`entries.py`). What no entry serves goes to the
Python dispatcher, which decides all the rest.

A call holds the GIL except around the machine code of the graph. C functions of Python's may run code of the user's
(attributes, finalisers), which may call this function again, or unlink entries: those stay in memory while
`Block.RUNNING` is not 0.
"""

from __future__ import annotations

from jitgraph.abi import CONTEXT_HEAP, HEAP_NEXT, HEAP_RAW
from jitgraph.native.answers import answer, box, failed
from jitgraph.native.guards import admit, release
from jitgraph.native.language import c, exported, inlined, invoke32, layout, load, set_word, stack, store, the, word
from jitgraph.native.records import MISS, SHORT_BYTES, Block, Entry, Frame, Out, Release, State

#: Of `nargsf`: the caller lends the word in front of the arguments.
COUNT_MASK = 0x7FFFFFFFFFFFFFFF
NO_MEMORY = -1
#: Three bits for each kind of floating-point error say how it is handled: 0 ignored, 1 warned of, or more.
MORE_THAN_WARNINGS = 0xDB6


@exported
def jg_vectorcall(self: int, args: int, nargsf: int, kwnames: int) -> int:
    block = load(self + layout.block)
    rt = word(block, Block.TABLE)
    if (the.off & word(block, Block.HEEDS)) == 0:
        found = stack(1)
        store(found, 0)
        if c.PyContextVar_Get(the.mode, 0, found) == 0:
            mode = load(found)
            c.Py_DecRef(mode)
            if mode == the.none and unheard(rt):
                set_word(block, Block.RUNNING, word(block, Block.RUNNING) + 1)
                result = chain(rt, block, args, nargsf & COUNT_MASK, kwnames)
                set_word(block, Block.RUNNING, word(block, Block.RUNNING) - 1)
                if result != MISS:
                    return result
        else:
            c.PyErr_Clear()
    return c.PyObject_Vectorcall(word(block, Block.SLOW), args, nargsf, kwnames)


@inlined
def unheard(rt: int) -> int:
    """Whether nobody asks for more than warnings of floating-point errors; see `errstate`."""
    found = stack(1)
    store(found, 0)
    if c.PyContextVar_Get(the.errors, 0, found):
        c.PyErr_Clear()
        return 0
    state = load(found)
    answer = 1
    if state != the.errors_default:
        answer = 1 if (load(load(state + layout.value)) & MORE_THAN_WARNINGS) == 0 else 0
    c.Py_DecRef(state)
    return answer


@inlined
def chain(rt: int, block: int, args: int, nargs: int, kwnames: int) -> int:
    nkw = 0
    if kwnames:
        nkw = load(kwnames + layout.size)
    total = nargs + nkw
    previous = 0
    entry = word(block, Block.HEAD)
    while entry:
        if word(entry, Entry.NARGS) == total and word(entry, Entry.NKW) == nkw:
            result = attempt(rt, block, previous, entry, args, kwnames)
            if result != MISS:
                return result
        previous = entry
        entry = word(entry, Entry.NEXT)
    return MISS


def to_front(block: int, previous: int, entry: int) -> None:
    """Unless guards ran code that changed the chain."""
    if word(previous, Entry.NEXT) == entry and word(previous, Entry.DEAD) + word(entry, Entry.DEAD) == 0:
        set_word(previous, Entry.NEXT, word(entry, Entry.NEXT))
        set_word(entry, Entry.NEXT, word(block, Block.HEAD))
        set_word(block, Block.HEAD, entry)


@inlined
def attempt(rt: int, block: int, previous: int, entry: int, args: int, kwnames: int) -> int:
    """The result, MISS, or 0 with an exception."""
    st = stack(State.WORDS)
    set_word(st, State.OWNED_COUNT, 0)
    set_word(st, State.BYTES, 0)
    if admit(rt, entry, args, kwnames, st) == 0:
        release(rt, st)
        return MISS
    frame = word(entry, Entry.FRAMES)
    if frame == 0:
        set_word(entry, Entry.STARVED, word(entry, Entry.STARVED) + 1)
        release(rt, st)
        return MISS
    set_word(entry, Entry.FRAMES, word(frame, Frame.NEXT))
    context = word(frame, Frame.CONTEXT)
    slots = st + 8 * State.SLOTS
    prepare = word(entry, Entry.PREPARE)
    status = invoke32(
        prepare, context, slots, word(frame, Frame.DIMS), word(frame, Frame.RESULT_DIMS), word(frame, Frame.SIZE)
    )
    if status:
        give_back(entry, frame)
        release(rt, st)
        return MISS
    if previous:
        to_front(block, previous, entry)
    result = 0
    if make(rt, entry, frame, st):
        status = run(rt, entry, frame, st)
        if status == 0:
            set_word(block, Block.HITS, word(block, Block.HITS) + 1)
            tidy(rt, context)
            if word(entry, Entry.SCALARS) == 0 or box(rt, entry, frame, st):
                result = answer(rt, entry, frame, st, args, kwnames)
            give_back(entry, frame)
        elif status == NO_MEMORY:
            give_back(entry, frame)
            c.PyErr_NoMemory()
        else:
            result = failed(rt, entry, frame, status, args, kwnames)
            give_back(entry, frame)
    else:
        give_back(entry, frame)
    k = 0
    while k < word(entry, Entry.RESULTS):
        if word(st, State.MADE + k):
            c.Py_DecRef(word(st, State.MADE + k))
        k += 1
    release(rt, st)
    return result


@inlined
def give_back(entry: int, frame: int) -> None:
    set_word(frame, Frame.NEXT, word(entry, Entry.FRAMES))
    set_word(entry, Entry.FRAMES, frame)


# --- the run


@inlined
def make(rt: int, entry: int, frame: int, st: int) -> int:
    """New arrays for the results; 0 with an exception if there is no memory."""
    made = st + 8 * State.MADE
    n = word(entry, Entry.RESULTS)
    k = 0
    while k < n:
        set_word(made, k, 0)
        k += 1
    record = word(entry, Entry.RESULT_AT)
    dims = word(frame, Frame.RESULT_DIMS)
    slot = word(frame, Frame.SLOTS)
    k = 0
    while k < n:
        if word(record, Out.KIND) == Out.ARRAY and word(record, Out.SIZED):
            x = fresh(rt, entry, record, dims, st)
            if x == 0:
                return 0
            set_word(made, k, x)
            store(slot, load(x + layout.data))
            store(slot + 8, load(x + layout.dims))
            store(slot + 16, load(x + layout.strides))
            store(slot + 24, 0)
            dims += word(record, Out.NDIM) << 3
        slot += 32
        record += 8 * Out.WORDS
        k += 1
    return 1


@inlined
def fresh(rt: int, entry: int, record: int, dims: int, st: int) -> int:
    """A new array: of the memory pool, or where there is none as NumPy makes it."""
    if the.pool_array:
        return c.pool_array(word(record, Out.RECIPE), dims, st + 8 * State.SLOTS, word(entry, Entry.ARGUMENTS))
    ndim = word(record, Out.NDIM)
    strides = 0
    order = word(record, Out.ORDER)
    if order:
        size = word(record, Out.BYTES)
        strides = st + 8 * State.TEMPORARY
        k = ndim
        while k:
            k -= 1
            axis = word(order, k)
            set_word(strides, axis, size)
            if word(dims, axis):
                size *= word(dims, axis)
    descr = word(record, Out.DESCR)
    c.Py_IncRef(descr)
    return c.PyArray_NewFromDescr(the.ndarray, descr, ndim, dims, strides, 0, word(record, Out.FORTRAN), 0)


@inlined
def run(rt: int, entry: int, frame: int, st: int) -> int:
    """The status of the machine code, or NO_MEMORY."""
    context = word(frame, Frame.CONTEXT)
    slots = st + 8 * State.SLOTS
    size = load(word(frame, Frame.SIZE))
    scratch = 0
    if size:
        if the.pool_alloc:
            scratch = c.pool_alloc(size, slots, word(entry, Entry.ARGUMENTS))
        else:
            scratch = c.aligned_alloc(64, (size + 63) & -64)
        if scratch == 0:
            return NO_MEMORY
    free = word(entry, Entry.RELEASE)
    if free == Release.BY_SIZE:
        free = work(entry, frame, st) > SHORT_BYTES
    results = word(frame, Frame.SLOTS)
    dims = word(frame, Frame.DIMS)
    if free:
        thread = c.PyEval_SaveThread()
        status = invoke32(word(entry, Entry.RUN), context, slots, results, dims, scratch)
        c.PyEval_RestoreThread(thread)
    else:
        status = invoke32(word(entry, Entry.RUN), context, slots, results, dims, scratch)
    if scratch:
        c.memory_free(scratch)
    return status


@inlined
def work(entry: int, frame: int, st: int) -> int:
    """Bytes of the arrays of arguments and results."""
    total = word(st, State.BYTES)
    record = word(entry, Entry.RESULT_AT)
    n = word(entry, Entry.RESULTS)
    dims = word(frame, Frame.RESULT_DIMS)
    while n:
        if word(record, Out.SIZED):
            size = word(record, Out.BYTES)
            axis = 0
            while axis < word(record, Out.NDIM):
                size *= word(dims, axis)
                axis += 1
            dims += word(record, Out.NDIM) << 3
            total += size
        record += 8 * Out.WORDS
        n -= 1
    return total


@inlined
def tidy(rt: int, context: int) -> None:
    """Free what the call left on its heap."""
    block = load(context + CONTEXT_HEAP)
    store(context + CONTEXT_HEAP, 0)
    while block:
        raw = load(block + HEAP_RAW)
        block = load(block + HEAP_NEXT)
        c.memory_free(raw)
