"""From the result slots of a call to what the user gets, in the language of `language.py`."""

from __future__ import annotations

from jitgraph.native.language import c, layout, load, load8, load32, set_word, stack, store, the, word
from jitgraph.native.records import MAX_NDIM, Answer, Entry, Frame, Number, Out, State, Step, View, ViewStep

WRITEABLE = 0x400


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
        if word(entry, Entry.NUMBERS):
            numbers(entry, frame, st)
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
        elif kind == Step.NUMBER:
            x = c.PyLong_FromLongLong(word(st, State.NUMBERS + first))
        elif kind == Step.VIEW:
            x = view(rt, first, st)
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


def numbers(entry: int, frame: int, st: int) -> None:
    """Compute what views and sizes among the results need."""
    record = word(entry, Entry.NUMBER_AT)
    count = word(entry, Entry.NUMBERS)
    stacked = st + 8 * State.DEPTH
    top = 0
    while count:
        kind = word(record, Number.KIND)
        first = word(record, Number.A)
        if kind == Number.KEEP:
            top -= 1
            set_word(st, State.NUMBERS + first, word(stacked, top))
        elif kind <= Number.RESULT:
            value = first
            if kind == Number.SIZE:
                value = word(load(st + 8 * State.SLOTS + (first << 5) + 8), word(record, Number.B))
            elif kind == Number.STRIDE:
                value = word(load(st + 8 * State.SLOTS + (first << 5) + 16), word(record, Number.B))
            elif kind == Number.RESULT:
                value = load(word(frame, Frame.SLOTS) + (first << 5))
            set_word(stacked, top, value)
            top += 1
        elif kind == Number.NOT_ONE:
            set_word(stacked, top - 1, word(stacked, top - 1) != 1)
        else:
            top -= 1
            set_word(stacked, top - 1, combined(kind, word(stacked, top - 1), word(stacked, top)))
        record += 8 * Number.WORDS
        count -= 1


def combined(kind: int, x: int, y: int) -> int:
    if kind == Number.ADD:
        return x + y
    if kind == Number.MUL:
        return x * y
    if kind == Number.MIN:
        return x if x < y else y
    if kind == Number.MAX:
        return x if x > y else y
    if y == 0:
        y = 1
    if y == -1:
        return -x if kind == Number.FLOORDIV else 0
    rest = x % y
    if rest and (rest < 0) != (y < 0):
        rest += y
    if kind == Number.MOD:
        return rest
    return (x - rest) // y


def view(rt: int, record: int, st: int) -> int:
    """A view of an array as its steps say; 0 with an exception."""
    if word(record, View.OF_MADE):
        base = word(st, State.MADE + word(record, View.BASE))
    else:
        base = word(st, State.ITEMS + word(record, View.BASE))
    data = load(base + layout.data)
    ndim = load32(base + layout.nd)
    dims = load(base + layout.dims)
    strides = load(base + layout.strides)
    flags = load32(base + layout.flags) & WRITEABLE
    descr = load(base + layout.descr)
    step = word(record, View.STEP_AT)
    count = word(record, View.STEPS)
    made = stack(MAX_NDIM)
    while count:
        ndim = word(step, ViewStep.NDIM)
        mapped = word(step, ViewStep.MAPPED)
        dims = st + 8 * (State.NUMBERS + word(step, ViewStep.SHAPE))
        empty = 0
        k = 0
        while k < ndim:
            set_word(made, k, 0)
            if word(dims, k) == 0:
                empty = 1
            k += 1
        if mapped:
            axes = word(step, ViewStep.AXES)
            used = 0
            k = 0
            while k < mapped:
                stride = word(strides, k)
                if empty == 0:
                    data += word(st, State.NUMBERS + load(axes)) * stride
                axis = load(axes + 16)
                if axis >= 0:
                    set_word(made, axis, word(made, axis) + word(st, State.NUMBERS + load(axes + 8)) * stride)
                    used |= 1 << axis
                axes += 24
                k += 1
            k = 0
            while k < ndim:
                if ((used >> k) & 1) == 0 and word(dims, k) != 1:
                    flags = 0  # elements that stand at several places
                k += 1
        else:
            size = word(record, View.BYTES)
            k = ndim
            while k:
                k -= 1
                set_word(made, k, size)
                if word(dims, k):
                    size *= word(dims, k)
        strides = st + 8 * State.STRIDES
        k = 0
        while k < ndim:
            set_word(strides, k, word(made, k))
            k += 1
        step += 8 * ViewStep.WORDS
        count -= 1
    c.Py_IncRef(descr)
    x = c.PyArray_NewFromDescr(the.ndarray, descr, ndim, dims, strides, data, flags, 0)
    if x:
        c.Py_IncRef(base)
        if c.PyArray_SetBaseObject(x, base) < 0:
            c.Py_DecRef(x)
            return 0
    return x


def gather(rt: int, kind: int, values: int, count: int, keys: int) -> int:
    """A container of `count` objects, whose references it takes; 0 with an exception."""
    k = 0
    if kind == Step.DICT:
        made = c.PyDict_New()
        while k < count:
            if made and c.PyDict_SetItem(made, word(keys, k), word(values, k)) < 0:
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
