"""Whether an entry serves a call, in the language of `language.py`.

What it admits is what the key and the guards of the specialisation admit (`entries.py` says how), or less.
"""

from __future__ import annotations

from jitgraph.native.language import c, inlined, layout, load, load8, load32, set_word, stack, store, the, word
from jitgraph.native.records import Array, Entry, Expansion, Guard, Leaf, Place, State, Strided

EQUAL = 2  # Py_EQ


@inlined
def own(st: int, x: int) -> None:
    """The state owns this reference; the checks of `entries.py` make sure that there is room."""
    count = word(st, State.OWNED_COUNT)
    set_word(st, State.OWNED + count, x)
    set_word(st, State.OWNED_COUNT, count + 1)


@inlined
def release(rt: int, st: int) -> None:
    count = word(st, State.OWNED_COUNT)
    set_word(st, State.OWNED_COUNT, 0)
    k = 0
    while k < count:
        c.Py_DecRef(word(st, State.OWNED + k))
        k += 1


@inlined
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
        if name != known and (load(name + layout.type) != the.str or c.PyUnicode_Compare(name, known)):
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
    if kind <= Expansion.LIST:
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
            size = word(leaf, Leaf.BYTES)
            k = 0
            while k < ndim:
                if (word(dims, k) == 1) != ((ones >> k) & 1):
                    return 0
                size *= word(dims, k)
                k += 1
            set_word(st, State.BYTES, word(st, State.BYTES) + size)
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
    """Whether the strides are of the layout class that `ir.layouts.layout_of` tells; the sizes of 1 are known."""
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
            broken = 1 if length != inner else 0
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
                    if cells and word(record, Place.NAME) < load(cells + layout.size):
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
        x = word(st, word(numbers, k))
        j = 0
        while j < k:
            if word(st, word(numbers, j)) == x:
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
            if word(dims, axis) == 0:  # no elements: an interval that meets none
                low = 0
                high = 0
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
                    return 1
                j += 1
        record += 8 * Array.WORDS
        k += 1
    return 0
