"""Layouts of the data that the native dispatcher reads: numbers of 64-bit words, and the kinds that stand in them.

Python fills these records (`entries.py`), machine code reads them (`vectorcall.py`); both take the numbers from here.

    block      one for each jitted function: the head of a chain of entries
    entry      one specialisation: arrays of the records below, and where the machine code is
    frame      what one running call needs: context, sizes, result slots; in a list of free ones of the entry
    state      the native stack of a call: items, places, argument slots, results
Items are Python objects: the arguments in order (keywords behind), what containers expand to, hidden arguments. The
caller holds the arguments; the state owns a reference to everything else.
"""

from __future__ import annotations

#: Changes with anything that stored machine code depends on and no other part of its key says.
VERSION = 6
#: What `jg_vectorcall` answers inside where no entry serves: an address that no object has.
MISS = 1

MAX_ITEMS = 192
MAX_PLACES = 128
MAX_SLOTS = 64
MAX_RESULTS = 64
#: Deepest stack of a result template: all leaves of a tree may wait.
MAX_VALUES = 96
MAX_NDIM = 64
MAX_NUMBERS = 128
#: A call on arrays of so few bytes in all keeps the GIL, where an entry decides by size.
SHORT_BYTES = 8 << 10


class Block:
    HEAD = 0
    SLOW = 1  # callable: serves what no entry does
    TABLE = 2
    HITS = 3
    RUNNING = 4  # calls inside; entries that were unlinked are kept meanwhile
    HEEDS = 5  # bits of `the.off` that send all calls to Python
    WORDS = 6


class Off:
    """Bits of the table's word `off`."""

    ALWAYS = 1  # a setting wants Python to see each call
    COMPARED = 2  # calls of users go through Python, which compares


class Entry:
    NEXT = 0
    DEAD = 1  # unlinked
    NARGS = 2  # keywords included
    NKW = 3
    NAMES = 4  # NKW strings
    EXPANSIONS = 5
    EXPANSION_AT = 6
    LEAVES = 7  # of the arguments
    LEAF_AT = 8
    HIDDEN = 9  # leaves behind those, of values at places
    PLACES = 10
    PLACE_AT = 11
    GUARDS = 12
    GUARD_AT = 13
    ALIASED = 14  # array leaves
    ALIAS_AT = 15  # for each: its item, and the number of the first of them that is the same object
    ARRAYS = 16  # arrays among the argument slots
    ARRAY_AT = 17
    WRITES = 18  # whether one is written
    PREPARE = 19
    RUN = 20
    RESULTS = 21
    RESULT_AT = 22
    FRAMES = 23  # free ones
    RELEASE = 24  # of the GIL: NEVER, ALWAYS, BY_SIZE
    ANSWER = 25
    TEMPLATE = 26  # number of instructions
    TEMPLATE_AT = 27
    FINISH = 28  # callable(made, arguments, call, frame): the result
    FAILED = 29  # callable(frame, status, call): the result, or an exception
    ARGUMENTS = 30
    ARGUMENT_AT = 31  # item of each argument of the graph
    FIRST_HIDDEN = 32  # item of the first hidden value
    HIDDEN_AT = 33  # place of each hidden value
    SCALARS = 34  # fresh results that are no arrays
    NUMBERS = 35  # instructions that compute sizes of views and sizes among the results
    NUMBER_AT = 36
    STARVED = 37  # calls that found no free frame, and for which none was made yet
    WORDS = 38


class Release:
    NEVER = 0
    ALWAYS = 1
    BY_SIZE = 2


class Answer:
    SINGLE = 0  # the first fresh result
    TEMPLATE = 1
    FINISH = 2


class Expansion:
    """A container among the items: its children are items from FIRST on."""

    KIND = 0
    ITEM = 1
    TYPE = 2
    COUNT = 3
    FIRST = 4
    KEYS = 5  # COUNT objects
    WORDS = 6
    # kinds
    TUPLE = 0
    LIST = 1
    DICT = 2
    NONE = 3
    OWN_DICT = 4  # KEYS are all attributes in the instance's dict
    ATTRIBUTES = 5


class Leaf:
    KIND = 0
    ITEM = 1
    TYPE = 2
    SLOT = 3  # -1: no argument of the graph
    DESCR = 4
    TYPE_NUM = 5
    BYTEORDER = 6
    NDIM = 7
    MASK = 8  # of the flags, and what is to be there
    FLAGS = 9
    ONES = 10  # bits of the axes of size 1
    STRIDES = 11  # records, innermost axis first; 0: C order, which the flags say
    STRIDED = 12  # how many
    DIMS = 13  # exact sizes, or 0
    VALUE = 14
    BYTES = 15  # of a scalar, of an element
    OTHER = 16
    WORDS = 17
    # kinds
    ARRAY = 0
    NUMBER = 1  # float, complex, NumPy scalars: BYTES at the head
    INTEGER = 2  # a Python int
    IDENTITY = 3
    EQUAL = 4  # of the same type and equal
    CLASS = 5
    FUNCTION = 6  # VALUE its code, OTHER its globals


class Strided:
    """What the layout says of one axis that is not of size 1."""

    AXIS = 0
    ZERO = 1
    NEGATIVE = 2
    BREAK = 3
    LAST = 4  # the innermost position: its sign is not compared
    TIE = 5  # it may have the stride of the axis before (inside) it
    WORDS = 6


class Place:
    KIND = 0
    OWNER = 1  # number of a place before it, or of an item
    POINTER = 2
    NAME = 3
    WORDS = 4
    # kinds
    ITEM = 0
    GLOBAL = 1
    CELL = 2
    CELL_OF = 3  # NAME is the number
    FIXED = 4
    ATTRIBUTE = 5
    SUBSCRIPT = 6


class Guard:
    KIND = 0
    PLACE = 1
    A = 2
    B = 3
    COUNT = 4
    WORDS = 5
    # kinds
    IS = 0
    EQUAL = 1
    BITS = 2  # COUNT bytes at the head of a number
    CLASS = 3
    CODE = 4
    MISSING = 5
    NOT_SHADOWED = 6
    MEMBER = 7  # A class, B name, COUNT member
    SAME = 8  # COUNT the other place
    DISTINCT = 9  # COUNT items and places: words of the state, numbers at A
    LENGTH = 10  # type A, COUNT
    KEYS = 11  # dict of COUNT keys at B


class Array:
    """An array among the argument slots."""

    SLOT = 0
    NDIM = 1
    BYTES = 2  # of an element
    WRITTEN = 3
    WORDS = 4


class Out:
    """A fresh result."""

    KIND = 0
    DESCR = 1
    NDIM = 2
    FORTRAN = 3
    ORDER = 4  # axes, outermost first, of another order; or 0
    BYTES = 5
    SIZED = 6  # an array whose size is known before the run
    RECIPE = 7  # for the memory pool
    WORDS = 8
    # kinds
    ARRAY = 0
    NP_SCALAR = 1
    FLOAT = 2
    INT = 3
    BOOL = 4
    COMPLEX = 5
    MAYBE_NP_FLOAT = 6


class Step:
    """An instruction of a result template: it works on a stack of objects."""

    KIND = 0
    A = 1
    B = 2
    WORDS = 3
    # kinds
    MADE = 0  # fresh result A
    ITEM = 1
    OBJECT = 2
    NUMBER = 3  # number A as an int
    TUPLE = 4  # of the A topmost
    LIST = 5
    DICT = 6  # with keys at B
    VIEW = 7  # A


class View:
    """A view of an array: its steps one after the other. Sizes are numbers that were computed."""

    OF_MADE = 0  # of fresh result BASE, else of item BASE
    BASE = 1
    STEPS = 2
    STEP_AT = 3
    BYTES = 4  # of an element
    WORDS = 5


class ViewStep:
    """A map or, of memory in C order, a reshape."""

    NDIM = 0
    SHAPE = 1  # number of the first size; those of further axes follow
    MAPPED = 2  # axes of the base, 0: a reshape
    AXES = 3  # for each: number of its offset, number of its step, axis of the view or -1
    WORDS = 4


class Number:
    """An instruction of a stack machine of integers."""

    KIND = 0
    A = 1
    B = 2
    WORDS = 3
    # kinds
    CONSTANT = 0
    SIZE = 1  # of axis B of argument slot A
    STRIDE = 2
    RESULT = 3  # an int in result slot A
    ADD = 4
    MUL = 5
    FLOORDIV = 6
    MOD = 7
    MIN = 8
    MAX = 9
    NOT_ONE = 10
    KEEP = 11  # the topmost is number A


class Frame:
    NEXT = 0
    CONTEXT = 1
    DIMS = 2
    RESULT_DIMS = 3
    SIZE = 4
    SLOTS = 5
    OBJECT = 6  # the `invoke.Frame`
    WORDS = 7


class State:
    """Words of a call's own memory; each area has its own maximum."""

    OWNED_COUNT = 0
    BYTES = 1  # of the arrays among the arguments
    ITEMS = 2
    PLACES = ITEMS + MAX_ITEMS
    OWNED = PLACES + MAX_PLACES
    SLOTS = OWNED + MAX_ITEMS + MAX_PLACES
    MADE = SLOTS + 4 * MAX_SLOTS
    VALUES = MADE + MAX_RESULTS
    TEMPORARY = VALUES + MAX_VALUES
    STRIDES = TEMPORARY + MAX_NDIM
    NUMBERS = STRIDES + MAX_NDIM
    DEPTH = NUMBERS + MAX_NUMBERS  # the stack of numbers
    LOW = DEPTH + MAX_NUMBERS
    HIGH = LOW + MAX_SLOTS
    WORDS = HIGH + MAX_SLOTS
