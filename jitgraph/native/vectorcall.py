"""The native dispatcher: a call of a jitted function from its vectorcall to its result, as machine code.

Written in the language of `language.py`: never run by Python. It reads the records of `records.py`, which Python makes
for each specialisation (`entries.py`). What no entry serves goes to the Python dispatcher, which decides all the rest.

A call holds the GIL except around the machine code of the graph. C functions of Python's may run code of the user's
(attributes, finalisers), which may call this function again, or unlink entries: those stay in memory while
`Block.RUNNING` is not 0.
"""

from __future__ import annotations

from jitgraph.abi import CONTEXT_HEAP, HEAP_NEXT, HEAP_RAW
from jitgraph.native.language import (
    c,
    exported,
    invoke32,
    layout,
    load,
    load8,
    load32,
    set_word,
    stack,
    store,
    the,
    word,
)
from jitgraph.native.records import (
    MISS,
    SHORT_BYTES,
    Answer,
    Array,
    Block,
    Entry,
    Expansion,
    Frame,
    Guard,
    Leaf,
    Out,
    Place,
    Release,
    State,
    Step,
    Strided,
)

#: Of `nargsf`: the caller lends the word in front of the arguments.
COUNT_MASK = 0x7FFFFFFFFFFFFFFF
NO_MEMORY = -1
EQUAL = 2  # Py_EQ

__all__ = ["jg_vectorcall"]


@exported
def jg_vectorcall(self: int, args: int, nargsf: int, kwnames: int) -> int:
    block = load(self + layout.block)
    rt = word(block, Block.TABLE)
    if the.off == 0:
        found = stack(1)
        store(found, 0)
        if c.PyContextVar_Get(the.mode, 0, found) == 0:
            mode = load(found)
            c.Py_DecRef(mode)
            if mode == the.none:
                set_word(block, Block.RUNNING, word(block, Block.RUNNING) + 1)
                result = chain(rt, block, args, nargsf & COUNT_MASK, kwnames)
                set_word(block, Block.RUNNING, word(block, Block.RUNNING) - 1)
                if result != MISS:
                    return result
        else:
            c.PyErr_Clear()
    return c.PyObject_Vectorcall(word(block, Block.SLOW), args, nargsf, kwnames)


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


def attempt(rt: int, block: int, previous: int, entry: int, args: int, kwnames: int) -> int:
    """The result, MISS, or 0 with an exception."""
    st = stack(State.WORDS)
    set_word(st, State.OWNED_COUNT, 0)
    if admit(rt, entry, args, kwnames, st) == 0:
        release(rt, st)
        return MISS
    frame = word(entry, Entry.FRAMES)
    if frame == 0:
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
            if box(rt, entry, frame, st):
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
        c.Py_DecRef(word(st, State.MADE + k))
        k += 1
    release(rt, st)
    return result


def give_back(entry: int, frame: int) -> None:
    set_word(frame, Frame.NEXT, word(entry, Entry.FRAMES))
    set_word(entry, Entry.FRAMES, frame)


def own(st: int, x: int) -> None:
    """The state owns this reference; the checks of `entries.py` make sure that there is room."""
    count = word(st, State.OWNED_COUNT)
    set_word(st, State.OWNED + count, x)
    set_word(st, State.OWNED_COUNT, count + 1)


def release(rt: int, st: int) -> None:
    count = word(st, State.OWNED_COUNT)
    set_word(st, State.OWNED_COUNT, 0)
    k = 0
    while k < count:
        c.Py_DecRef(word(st, State.OWNED + k))
        k += 1


# --- guards


def admit(rt: int, entry: int, args: int, kwnames: int, st: int) -> int:
    """Whether the entry serves this call; if so, the argument slots are filled."""
    items = st + 8 * State.ITEMS
    n = word(entry, Entry.NARGS)
    k = 0
    while k < n:
        set_word(items, k, word(args, k))
        k += 1
    nkw = word(entry, Entry.NKW)
    k = 0
    while k < nkw:
        name = load(kwnames + layout.tuple_items + (k << 3))
        known = word(word(entry, Entry.NAMES), k)
        if name != known:
            if load(name + layout.type) != the.str or c.PyUnicode_Compare(name, known):
                return 0
        k += 1
    k = 0
    record = word(entry, Entry.EXPANSION_AT)
    while k < word(entry, Entry.EXPANSIONS):
        if expand(rt, record, st) == 0:
            return 0
        record += 8 * Expansion.WORDS
        k += 1
    leaf = word(entry, Entry.LEAF_AT)
    k = word(entry, Entry.LEAVES)
    if leaves(rt, leaf, k, st) == 0:
        return 0
    if word(entry, Entry.ALIASED) > 1 and aliased(entry, items) == 0:
        return 0
    if word(entry, Entry.PLACES):
        if places(rt, entry, st) == 0:
            return 0
        if guards(rt, entry, st) == 0:
            return 0
        hidden = word(entry, Entry.HIDDEN)
        first = word(entry, Entry.FIRST_HIDDEN)
        n = 0
        while n < hidden:
            x = word(st, State.PLACES + word(word(entry, Entry.HIDDEN_AT), n))
            if x == 0:
                return 0
            set_word(items, first + n, x)
            n += 1
        if leaves(rt, leaf + k * (8 * Leaf.WORDS), hidden, st) == 0:
            return 0
    elif word(entry, Entry.GUARDS) and guards(rt, entry, st) == 0:
        return 0
    if word(entry, Entry.WRITES) and overlap(entry, st):
        return 0
    return 1


def expand(rt: int, record: int, st: int) -> int:
    x = word(st, State.ITEMS + word(record, Expansion.ITEM))
    kind = word(record, Expansion.KIND)
    if kind == Expansion.NONE:
        return x == the.none
    if load(x + layout.type) != word(record, Expansion.TYPE):
        return 0
    count = word(record, Expansion.COUNT)
    first = st + 8 * (State.ITEMS + word(record, Expansion.FIRST))
    k = 0
    if kind == Expansion.TUPLE or kind == Expansion.LIST:
        if load(x + layout.size) != count:
            return 0
        source = x + layout.tuple_items
        if kind == Expansion.LIST:
            source = load(x + layout.list_items)
        while k < count:
            child = word(source, k)
            c.Py_IncRef(child)
            own(st, child)
            set_word(first, k, child)
            k += 1
        return 1
    keys = word(record, Expansion.KEYS)
    if kind == Expansion.DICT:
        return expand_dict(rt, x, count, keys, first, st)
    if kind == Expansion.OWN_DICT:
        attributes = c.PyObject_GenericGetDict(x, 0)
        if attributes == 0:
            c.PyErr_Clear()
            return 0
        found = 0
        if c.PyDict_Size(attributes) == count:
            found = 1
            while k < count and found:
                child = c.PyDict_GetItemWithError(attributes, word(keys, k))
                if child:
                    c.Py_IncRef(child)
                    own(st, child)
                    set_word(first, k, child)
                else:
                    c.PyErr_Clear()
                    found = 0
                k += 1
        c.Py_DecRef(attributes)
        return found
    while k < count:
        child = c.PyObject_GetAttr(x, word(keys, k))
        if child == 0:
            c.PyErr_Clear()
            return 0
        own(st, child)
        set_word(first, k, child)
        k += 1
    return 1


def expand_dict(rt: int, x: int, count: int, keys: int, first: int, st: int) -> int:
    """Keys in their order; `first` 0: the values are not wanted."""
    if c.PyDict_Size(x) != count:
        return 0
    cursor = stack(3)
    store(cursor, 0)
    k = 0
    while k < count:
        if c.PyDict_Next(x, cursor, cursor + 8, cursor + 16) == 0:
            return 0
        key = word(cursor, 1)
        if key != word(keys, k):
            if load(key + layout.type) != the.str or load(word(keys, k) + layout.type) != the.str:
                return 0
            if c.PyUnicode_Compare(key, word(keys, k)):
                return 0
        if first:
            child = word(cursor, 2)
            c.Py_IncRef(child)
            own(st, child)
            set_word(first, k, child)
        k += 1
    return 1


def leaves(rt: int, leaf: int, count: int, st: int) -> int:
    while count:
        x = word(st, State.ITEMS + word(leaf, Leaf.ITEM))
        kind = word(leaf, Leaf.KIND)
        slot = st + 8 * State.SLOTS + (word(leaf, Leaf.SLOT) << 5)
        if kind == Leaf.IDENTITY:
            if x != word(leaf, Leaf.VALUE):
                return 0
        elif load(x + layout.type) != word(leaf, Leaf.TYPE):
            return 0
        elif kind == Leaf.ARRAY:
            descr = load(x + layout.descr)
            if descr != word(leaf, Leaf.DESCR):
                if load32(descr + layout.type_num) != word(leaf, Leaf.TYPE_NUM):
                    return 0
                if load8(descr + layout.byteorder) != word(leaf, Leaf.BYTEORDER):
                    return 0
            ndim = word(leaf, Leaf.NDIM)
            if load32(x + layout.nd) != ndim:
                return 0
            if (load32(x + layout.flags) & word(leaf, Leaf.MASK)) != word(leaf, Leaf.FLAGS):
                return 0
            dims = load(x + layout.dims)
            ones = word(leaf, Leaf.ONES)
            k = 0
            while k < ndim:
                if (word(dims, k) == 1) != ((ones >> k) & 1):
                    return 0
                k += 1
            if word(leaf, Leaf.STRIDES) and strided(leaf, dims, load(x + layout.strides)) == 0:
                return 0
            known = word(leaf, Leaf.DIMS)
            if known:
                k = 0
                while k < ndim:
                    if word(dims, k) != word(known, k):
                        return 0
                    k += 1
            if word(leaf, Leaf.SLOT) >= 0:
                store(slot, load(x + layout.data))
                store(slot + 8, dims)
                store(slot + 16, load(x + layout.strides))
                store(slot + 24, 0)
        elif kind == Leaf.NUMBER:
            if word(leaf, Leaf.SLOT) >= 0:
                size = word(leaf, Leaf.BYTES)
                value = load(x + layout.value)
                store(slot + 8, 0)
                if size > 8:
                    store(slot + 8, load(x + layout.value + 8))
                elif size < 8:
                    value &= (1 << (size << 3)) - 1
                store(slot, value)
        elif kind == Leaf.INTEGER:
            overflow = stack(1)
            store(overflow, 0)
            value = c.PyLong_AsLongLongAndOverflow(x, overflow)
            if load32(overflow):
                return 0
            if word(leaf, Leaf.SLOT) >= 0:
                store(slot, value)
                store(slot + 8, 0)
        elif kind == Leaf.EQUAL:
            if x != word(leaf, Leaf.VALUE) and same_value(rt, x, word(leaf, Leaf.VALUE)) == 0:
                return 0
        elif kind == Leaf.FUNCTION:
            if c.PyFunction_GetCode(x) != word(leaf, Leaf.VALUE):
                return 0
            if c.PyFunction_GetGlobals(x) != word(leaf, Leaf.OTHER):
                return 0
        leaf += 8 * Leaf.WORDS
        count -= 1
    return 1


def same_value(rt: int, x: int, y: int) -> int:
    found = c.PyObject_RichCompareBool(x, y, EQUAL)
    if found < 0:
        c.PyErr_Clear()
    return found > 0


def strided(leaf: int, dims: int, strides: int) -> int:
    """Whether the strides are of the layout class, as `ir.layouts.layout_of` says; sizes of 1 are known to be where they were."""
    record = word(leaf, Leaf.STRIDES)
    count = word(leaf, Leaf.STRIDED)
    size = word(leaf, Leaf.BYTES)
    inner = size
    negative = 0
    outer = 0
    first = 1
    while count:
        axis = word(record, Strided.AXIS)
        stride = word(strides, axis)
        if word(record, Strided.ZERO):
            if stride:
                return 0
        else:
            if stride == 0 or (stride < 0) != word(record, Strided.NEGATIVE):
                return 0
            length = stride
            if stride < 0:
                length = -stride
            if first == 0 and (length < outer or (length == outer and word(record, Strided.TIE) == 0)):
                return 0
            broken = length != inner
            if word(record, Strided.LAST) == 0 and inner != size and (stride < 0) != negative:
                broken = 1
            if broken != word(record, Strided.BREAK):
                return 0
            negative = stride < 0
            inner = length * word(dims, axis)
            outer = length
            first = 0
        record += 8 * Strided.WORDS
        count -= 1
    return 1


def aliased(entry: int, items: int) -> int:
    """Whether the same arrays are the same object as were."""
    table = word(entry, Entry.ALIAS_AT)
    n = word(entry, Entry.ALIASED)
    k = 1
    while k < n:
        x = word(items, word(table, 2 * k))
        j = 0
        while j < k and word(items, word(table, 2 * j)) != x:
            j += 1
        if j != word(table, 2 * k + 1):
            return 0
        k += 1
    return 1


def places(rt: int, entry: int, st: int) -> int:
    """Read what the function reads from outside; 0 where nothing is."""
    record = word(entry, Entry.PLACE_AT)
    count = word(entry, Entry.PLACES)
    k = 0
    while k < count:
        kind = word(record, Place.KIND)
        owner = word(record, Place.OWNER)
        pointer = word(record, Place.POINTER)
        x = 0
        if kind == Place.ITEM:
            x = word(st, State.ITEMS + owner)
            c.Py_IncRef(x)
        elif kind == Place.GLOBAL:
            x = c.PyDict_GetItemWithError(pointer, word(record, Place.NAME))
            if x:
                c.Py_IncRef(x)
            elif c.PyErr_Occurred():
                c.PyErr_Clear()
                return 0
        elif kind == Place.FIXED:
            x = pointer
            c.Py_IncRef(x)
        elif kind == Place.CELL:
            x = c.PyCell_Get(pointer)
        else:
            holder = word(st, State.PLACES + owner)
            if holder:
                if kind == Place.ATTRIBUTE:
                    x = c.PyObject_GetAttr(holder, pointer)
                    if x == 0:
                        missing = c.PyErr_ExceptionMatches(the.AttributeError)
                        c.PyErr_Clear()
                        if missing == 0:
                            return 0
                elif kind == Place.SUBSCRIPT:
                    x = c.PyObject_GetItem(holder, pointer)
                    if x == 0:
                        c.PyErr_Clear()
                        return 0
                elif load(holder + layout.type) == the.function:
                    cells = c.PyFunction_GetClosure(holder)
                    if cells:
                        if word(record, Place.NAME) < load(cells + layout.size):
                            x = c.PyCell_Get(load(cells + layout.tuple_items + (word(record, Place.NAME) << 3)))
        if x:
            own(st, x)
        set_word(st, State.PLACES + k, x)
        record += 8 * Place.WORDS
        k += 1
    return 1


def guards(rt: int, entry: int, st: int) -> int:
    record = word(entry, Entry.GUARD_AT)
    count = word(entry, Entry.GUARDS)
    while count:
        if holds(rt, record, st) == 0:
            return 0
        record += 8 * Guard.WORDS
        count -= 1
    return 1


def holds(rt: int, record: int, st: int) -> int:
    kind = word(record, Guard.KIND)
    first = word(record, Guard.A)
    second = word(record, Guard.B)
    count = word(record, Guard.COUNT)
    if kind == Guard.MEMBER:
        return c._PyType_Lookup(first, second) == count
    x = word(st, State.PLACES + word(record, Guard.PLACE))
    if kind == Guard.IS:
        return x == first
    if kind == Guard.MISSING:
        return x == 0
    if kind == Guard.SAME:
        return x == word(st, State.PLACES + count)
    if kind == Guard.DISTINCT:
        return distinct(first, count, st)
    if x == 0:
        return kind == Guard.NOT_SHADOWED
    if kind == Guard.EQUAL:
        if x == first:
            return 1
        if load(x + layout.type) != load(first + layout.type):
            return 0
        return same_value(rt, x, first)
    if kind == Guard.BITS:
        if x == first:
            return 1
        if load(x + layout.type) != load(first + layout.type):
            return 0
        return same_bits(x + layout.value, first + layout.value, count)
    if kind == Guard.CLASS:
        return load(x + layout.type) == first
    if kind == Guard.CODE:
        if load(x + layout.type) != the.function:
            return 0
        return c.PyFunction_GetCode(x) == first and c.PyFunction_GetGlobals(x) == second
    if kind == Guard.NOT_SHADOWED:
        own_dict = c.PyObject_GetAttr(x, the.name_of_dict)
        if own_dict == 0:
            c.PyErr_Clear()
            return 1
        found = 0
        if load(own_dict + layout.type) == the.dict:
            found = c.PyDict_Contains(own_dict, first) == 0
        c.Py_DecRef(own_dict)
        return found
    if load(x + layout.type) != first:
        return 0
    if kind == Guard.LENGTH:
        return c.PyObject_Size(x) == count
    return expand_dict(rt, x, count, second, 0, st)


def same_bits(p: int, q: int, count: int) -> int:
    k = 0
    while k < count:
        if load8(p + k) != load8(q + k):
            return 0
        k += 1
    return 1


def distinct(numbers: int, count: int, st: int) -> int:
    k = 1
    while k < count:
        x = word(st, State.PLACES + word(numbers, k))
        j = 0
        while j < k:
            if word(st, State.PLACES + word(numbers, j)) == x:
                return 0
            j += 1
        k += 1
    return 1


def overlap(entry: int, st: int) -> int:
    """Whether an array that is written may share memory with another one, by their bounds."""
    record = word(entry, Entry.ARRAY_AT)
    n = word(entry, Entry.ARRAYS)
    k = 0
    while k < n:
        slot = st + 8 * State.SLOTS + (word(record, Array.SLOT) << 5)
        low = load(slot)
        high = low + word(record, Array.BYTES)
        dims = load(slot + 8)
        strides = load(slot + 16)
        axis = 0
        while axis < word(record, Array.NDIM):
            reach = (word(dims, axis) - 1) * word(strides, axis)
            if word(dims, axis) == 0:
                high = low  # no elements
                axis = word(record, Array.NDIM)
            elif reach < 0:
                low += reach
            else:
                high += reach
            axis += 1
        set_word(st, State.LOW + k, low)
        set_word(st, State.HIGH + k, high)
        record += 8 * Array.WORDS
        k += 1
    record = word(entry, Entry.ARRAY_AT)
    k = 0
    while k < n:
        low = word(st, State.LOW + k)
        high = word(st, State.HIGH + k)
        if word(record, Array.WRITTEN) and low < high:
            j = 0
            while j < n:
                if j != k and low < word(st, State.HIGH + j) and word(st, State.LOW + j) < high:
                    if word(st, State.LOW + j) < word(st, State.HIGH + j):
                        return 1
                j += 1
        record += 8 * Array.WORDS
        k += 1
    return 0


# --- the run


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


def work(entry: int, frame: int, st: int) -> int:
    """Bytes of the arrays of arguments and results."""
    total = 0
    record = word(entry, Entry.ARRAY_AT)
    n = word(entry, Entry.ARRAYS)
    while n:
        size = word(record, Array.BYTES)
        dims = load(st + 8 * State.SLOTS + (word(record, Array.SLOT) << 5) + 8)
        axis = 0
        while axis < word(record, Array.NDIM):
            size *= word(dims, axis)
            axis += 1
        total += size
        record += 8 * Array.WORDS
        n -= 1
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


def tidy(rt: int, context: int) -> None:
    """Free what the call left on its heap."""
    block = load(context + CONTEXT_HEAP)
    store(context + CONTEXT_HEAP, 0)
    while block:
        raw = load(block + HEAP_RAW)
        block = load(block + HEAP_NEXT)
        c.memory_free(raw)


# --- the answer


def box(rt: int, entry: int, frame: int, st: int) -> int:
    """Objects of the scalar results; 0 with an exception."""
    record = word(entry, Entry.RESULT_AT)
    slot = word(frame, Frame.SLOTS)
    n = word(entry, Entry.RESULTS)
    k = 0
    while k < n:
        kind = word(record, Out.KIND)
        if kind != Out.ARRAY:
            if kind == Out.MAYBE_NP_FLOAT:
                kind = Out.FLOAT
                if load8(slot + 8):
                    kind = Out.NP_SCALAR
            x = 0
            if kind == Out.NP_SCALAR:
                x = c.PyArray_Scalar(slot, word(record, Out.DESCR), 0)
            elif kind == Out.FLOAT:
                x = c.PyFloat_FromDouble(slot)
            elif kind == Out.INT:
                x = c.PyLong_FromLongLong(load(slot))
            elif kind == Out.COMPLEX:
                x = c.PyComplex_FromDoubles(slot, slot + 8)
            else:
                x = the.false
                if load8(slot):
                    x = the.true
                c.Py_IncRef(x)
            if x == 0:
                return 0
            set_word(st, State.MADE + k, x)
        slot += 32
        record += 8 * Out.WORDS
        k += 1
    return 1


def answer(rt: int, entry: int, frame: int, st: int, args: int, kwnames: int) -> int:
    how = word(entry, Entry.ANSWER)
    if how == Answer.SINGLE:
        x = word(st, State.MADE)
        set_word(st, State.MADE, 0)
        return x
    if how == Answer.TEMPLATE:
        return assemble(rt, entry, st)
    argv = stack(4)
    n = word(entry, Entry.RESULTS)
    made = c.PyTuple_New(n)
    if made == 0:
        return 0
    k = 0
    while k < n:
        x = word(st, State.MADE + k)
        if x == 0:  # of a size that only the run knew: in the frame
            x = the.none
        c.Py_IncRef(x)
        store(made + layout.tuple_items + (k << 3), x)
        k += 1
    n = word(entry, Entry.ARGUMENTS)
    arguments = c.PyTuple_New(n)
    call = 0
    result = 0
    if arguments:
        k = 0
        while k < n:
            x = word(st, State.ITEMS + word(word(entry, Entry.ARGUMENT_AT), k))
            c.Py_IncRef(x)
            store(arguments + layout.tuple_items + (k << 3), x)
            k += 1
        call = the_call(rt, entry, args, kwnames)
        if call:
            set_word(argv, 0, made)
            set_word(argv, 1, arguments)
            set_word(argv, 2, call)
            set_word(argv, 3, word(frame, Frame.OBJECT))
            result = c.PyObject_Vectorcall(word(entry, Entry.FINISH), argv, 4, 0)
    c.Py_DecRef(made)
    c.Py_DecRef(arguments)
    c.Py_DecRef(call)
    return result


def the_call(rt: int, entry: int, args: int, kwnames: int) -> int:
    """`(args, kwargs)` as Python has them."""
    nkw = word(entry, Entry.NKW)
    n = word(entry, Entry.NARGS) - nkw
    call = c.PyTuple_New(2)
    if call == 0:
        return 0
    positional = c.PyTuple_New(n)
    store(call + layout.tuple_items, positional)
    keywords = c.PyDict_New()
    store(call + layout.tuple_items + 8, keywords)
    if positional == 0 or keywords == 0:
        c.Py_DecRef(call)
        return 0
    k = 0
    while k < n:
        c.Py_IncRef(word(args, k))
        store(positional + layout.tuple_items + (k << 3), word(args, k))
        k += 1
    k = 0
    while k < nkw:
        if c.PyDict_SetItem(keywords, load(kwnames + layout.tuple_items + (k << 3)), word(args, n + k)) < 0:
            c.Py_DecRef(call)
            return 0
        k += 1
    return call


def failed(rt: int, entry: int, frame: int, status: int, args: int, kwnames: int) -> int:
    """The machine code stopped: Python raises, or runs the call in another way."""
    argv = stack(3)
    call = the_call(rt, entry, args, kwnames)
    code = c.PyLong_FromLongLong(status)
    result = 0
    if call and code:
        set_word(argv, 0, word(frame, Frame.OBJECT))
        set_word(argv, 1, code)
        set_word(argv, 2, call)
        result = c.PyObject_Vectorcall(word(entry, Entry.FAILED), argv, 3, 0)
    c.Py_DecRef(code)
    c.Py_DecRef(call)
    return result


def assemble(rt: int, entry: int, st: int) -> int:
    """Run the template of the result on a stack of objects that it owns."""
    values = st + 8 * State.VALUES
    record = word(entry, Entry.TEMPLATE_AT)
    count = word(entry, Entry.TEMPLATE)
    top = 0
    while count:
        kind = word(record, Step.KIND)
        first = word(record, Step.A)
        x = 0
        if kind == Step.MADE:
            x = word(st, State.MADE + first)
            c.Py_IncRef(x)
        elif kind == Step.ITEM:
            x = word(st, State.ITEMS + first)
            c.Py_IncRef(x)
        elif kind == Step.OBJECT:
            x = first
            c.Py_IncRef(x)
        elif kind == Step.SIZE:
            x = c.PyLong_FromLongLong(word(load(st + 8 * State.SLOTS + (first << 5) + 8), word(record, Step.B)))
        else:
            top -= first
            x = gather(rt, kind, values + (top << 3), first, word(record, Step.B))
        if x == 0:
            while top:
                top -= 1
                c.Py_DecRef(word(values, top))
            return 0
        set_word(values, top, x)
        top += 1
        record += 8 * Step.WORDS
        count -= 1
    return word(values, 0)


def gather(rt: int, kind: int, values: int, count: int, keys: int) -> int:
    """A container of `count` objects, whose references it takes; 0 with an exception."""
    k = 0
    if kind == Step.DICT:
        made = c.PyDict_New()
        while k < count:
            if made:
                if c.PyDict_SetItem(made, word(keys, k), word(values, k)) < 0:
                    c.Py_DecRef(made)
                    made = 0
            c.Py_DecRef(word(values, k))
            k += 1
        return made
    target = 0
    if kind == Step.TUPLE:
        made = c.PyTuple_New(count)
        target = made + layout.tuple_items
    else:
        made = c.PyList_New(count)
        if made:
            target = load(made + layout.list_items)
    while k < count:
        if made:
            set_word(target, k, word(values, k))
        else:
            c.Py_DecRef(word(values, k))
        k += 1
    return made
