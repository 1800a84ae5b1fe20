"""The loop level: what machine code is made from. Functions of statements over scalars, buffers and integer dims.

Complex numbers live in memory only: `Load` gives their parts, `Store` takes them, and scalars are real.
Integers that address memory are `Dim`s over symbols: sizes, run-time strides (bytes), loop indices and loaded integers
bound with `Bind`. Scalars are single-assignment `Var`s; inside a vector `For` they are varying: one per lane.
Invariants, checked by `verify`:
1. A `Var` is assigned once in its function, before its uses; one assigned in a body is not used outside it.
2. Operands of a `Let` have the dtypes that its primitive asks for (see `jitgraph.ir.opdef.Scalar`).
3. Each symbol of a `Dim` is a parameter, the index of an enclosing loop, or bound earlier.
4. A `vector` loop holds no `Alloc`, `Library`, `Host`, `CallKernel`, `Swap` and no other vector loop.
5. Iterations of a `vector` or `parallel` loop are independent; its carried list is empty.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

import numpy as np

from jitgraph import dtypes
from jitgraph.ir.dims import DimLike
from jitgraph.ir.graph import Site
from jitgraph.records import dataclass, field
from jitgraph.source import SourceLoc

if TYPE_CHECKING:
    from jitgraph.codegen.memory import Plan


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar; `name` is unique in the function."""

    name: str
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class Const:
    """A number; 0.0 and -0.0 are two."""

    value: Any
    dtype: np.dtype

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const) or self.dtype != other.dtype:
            return False
        a, b = self.value, other.value
        if self.dtype.kind != "f":
            return bool(a == b)
        return a is b or (bool(a == b) and math.copysign(1.0, a) == math.copysign(1.0, b))

    def __hash__(self) -> int:
        return hash((self.value, self.dtype))


Operand: TypeAlias = Union[Var, Const]


@dataclass(frozen=True, slots=True)
class Pair:
    """A complex scalar: its real and its imaginary part, of one float dtype."""

    real: Operand
    imag: Operand

    @property
    def dtype(self) -> np.dtype:
        return dtypes.complex_of(self.real.dtype)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of elements of one dtype (bool is one byte). Element i stands at byte sum(i[k] * strides[k]).

    The name says which memory; a statement may see it through another shape and other strides (flattened, say).

    Attributes:
        strides: in bytes; dims over sizes or run-time stride symbols. The item size on the innermost axis makes
            accesses whole vectors, 0 a splat, another constant or symbol a gather.
    """

    name: str
    dtype: np.dtype
    shape: tuple[DimLike, ...]
    strides: tuple[DimLike, ...]


@dataclass(slots=True)
class Let:
    """var = op(*args): a primitive of the `Scalar` protocol (`op` is the method's name; `call`, `cmp`, `cast` and
    `bitcast` carry `name`, `predicate` or their target in `attr`).
    """

    var: Var
    op: str
    args: tuple[Operand, ...]
    attr: str = ""


@dataclass(slots=True)
class DimValue:
    """var (int64) = the value of a dim; varying if it mentions the index of the vector loop around."""

    var: Var
    dim: DimLike


@dataclass(slots=True)
class Bind:
    """The symbol stands for the integer `value` from here to the end of the body (data-dependent sizes, gathers)."""

    symbol: str
    value: Operand


@dataclass(slots=True)
class Load:
    """var = an element; of a complex buffer `var` is the real part and `imag` the imaginary one."""

    var: Var
    buffer: Buffer
    index: tuple[DimLike, ...]
    imag: Var | None = None


@dataclass(slots=True)
class Store:
    """An element = `value`; of a complex buffer `value` is the real part and `imag` the imaginary one."""

    buffer: Buffer
    index: tuple[DimLike, ...]
    value: Operand
    imag: Operand | None = None


@dataclass(slots=True)
class Carry:
    """A scalar carried by a serial loop: `inner` in the body starts as `init` and becomes `next` after each turn;
    `result` is its value behind the loop.
    """

    inner: Var
    init: Operand
    next: Operand
    result: Var


@dataclass(slots=True)
class For:
    """for symbol in range(lower, upper, step): body. `step` is a non-zero constant or a positive dim.

    Attributes:
        role: "vector" runs lanes at once (whole vectors, then a masked tail); "serial" and "parallel" turn by turn, the
            latter in any order: its maker knows that turns are independent, and the loop becomes a call in pieces.
            "append" is a serial loop that may use lanes: it carries a count, its last statements are an `If` that binds
            the count to a symbol and stores at that place in buffers that the loop does not read, `one = cast
            condition` and `next = add count, one`.
        lanes: 0: the machine's width for the widest element in the body; else a power of two.
        interleave: vectors that run side by side, to hide the latency of what one of them waits for.
        going: of a serial loop: a bool of the body. Behind a turn in which it is false (in all lanes, for a loop inside
            a vector loop), the turns to come would change nothing, and the loop may end.
        streams: of a vector loop: the bytes that its nest moves, if its stores may pass the caches by where these are
            many; else 0. It means nothing for what is computed.
    """

    symbol: str
    lower: DimLike
    upper: DimLike
    body: list[Stmt]
    step: DimLike = 1
    role: Literal["serial", "vector", "parallel", "append"] = "serial"
    carried: list[Carry] = field(default_factory=list)
    lanes: int = 0
    interleave: int = 1
    going: Operand | None = None
    streams: DimLike = 0


@dataclass(slots=True)
class While:
    """while condition: body. `test` computes `condition` from the `inner` vars before each turn."""

    test: list[Stmt]
    condition: Operand
    body: list[Stmt]
    carried: list[Carry]


@dataclass(slots=True)
class Merge:
    """result = then if the condition held, else otherwise."""

    result: Var
    then: Operand
    otherwise: Operand


@dataclass(slots=True)
class If:
    """Attributes:
    cold: `otherwise` is hardly ever taken, and stays as it is: the version of `then` with all its checks.
    """

    condition: Operand
    then: list[Stmt]
    otherwise: list[Stmt]
    merges: list[Merge] = field(default_factory=list)
    cold: bool = False


ReduceKind = Literal["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]


@dataclass(slots=True)
class Part:
    """One accumulator of a `Reduce`: `value` of each turn goes into `result`.

    Attributes:
        order: "pairwise" is NumPy's float sum (`chunk` elements per call of its tree, chunks added one by one onto
            `init`); "serial" goes element by element; "free" may use lanes in any grouping (min, max, integers, any,
            all); "dot" is the sum of `value * factor` as BLAS adds the products of two vectors, see `dots.ORDERS`.
        init: value before the first element; None: the first element itself (min, max). For argmax/argmin the result
            is the int64 position of the first extreme (NaN wins).
        chunk: see `order`; None: everything in one pairwise call.
        period: the chunks begin anew after so many elements; None: never.
        width: accumulators of a leaf of the pairwise tree: 8, or 4 for each part of a complex sum.
        factor, model: of the order "dot": the other operand, and the name of the order in `dots.ORDERS`.
    """

    result: Var
    kind: ReduceKind
    order: Literal["pairwise", "serial", "free", "dot"]
    value: Operand
    init: Operand | None = None
    chunk: DimLike | None = None
    period: DimLike | None = None
    width: int = 8
    factor: Operand | None = None
    model: str = ""


@dataclass(slots=True)
class Reduce:
    """Reduce over symbol in range(extent): `body` computes the parts' values at one index. The lanes run along it."""

    symbol: str
    extent: DimLike
    body: list[Stmt]
    parts: list[Part]
    lanes: int = 0


#: Row buffers up to this size lie on the stack.
STACK_BYTES = 16 << 10


@dataclass(slots=True)
class Alloc:
    """Give `buffer` memory: "scratch" at the byte `offset` of the arena that `prepare` sized, "row" in fixed-size
    stack memory if small and constant, else like heap until the kernel returns; "heap" from the context, freed after
    the call or by `Free`; "result" for result slot `slot` whose size is known only now.

    Attributes:
        host: the buffer in whose memory scratch lies instead, at the byte `inside`, if `fits` is 1 (else it is 0).
    """

    buffer: Buffer
    scope: Literal["scratch", "row", "heap", "result"]
    offset: DimLike = 0
    slot: int = -1
    host: str = ""
    fits: DimLike = 1
    inside: DimLike = 0


@dataclass(slots=True)
class Free:
    buffer: Buffer


@dataclass(slots=True)
class Swap:
    """Exchange the memory of two buffers of equal shape and strides."""

    a: Buffer
    b: Buffer


@dataclass(slots=True)
class Check:
    """Leave with the error of `sites[site]` and `values` unless `condition` holds (in all active lanes; else the values
    are those of the first lane that failed).
    """

    condition: Operand
    site: int
    values: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """A call may be made in pieces, in any order and at the same time: the last two of its symbols are the bounds of a
    range.

    Attributes:
        unit: pieces begin at multiples of it behind the lower bound.
        cost: work of the whole range, in picoseconds, about.
        each: pieces a thread, at most. More of them share the work better; one where pieces are stretches of rows that
            each piece goes through: short stretches make poor use of the memory.
        alone: what the call means, as a statement in its place: what runs where threads do not pay. None: the call.
    """

    unit: int
    cost: DimLike
    each: int
    alone: For | None = None


@dataclass(slots=True)
class CallKernel:
    """Call another function of the program; arguments match its parameters. With `split`, in threads where it pays."""

    name: str
    buffers: tuple[Buffer, ...]
    symbols: tuple[DimLike, ...]
    scalars: tuple[Operand, ...]
    results: tuple[Var, ...] = ()
    split: Split | None = None


@dataclass(slots=True)
class Library:
    """Call a C function of the context's table by name, as in `cblas_dgemm`. Arguments are operands, dims (int64),
    or buffers (their address, plus the byte offset of the index given).
    """

    name: str
    args: tuple[Union[Operand, Address, DimLike], ...]
    result: Var | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an element of a buffer."""

    buffer: Buffer
    index: tuple[DimLike, ...]


@dataclass(slots=True)
class Host:
    """Call back into Python: `sites[site]` says whom. Inputs are buffers or scalars; results are buffers to fill, or
    scalars.

    Attributes:
        sizes: (result, axis) of sizes that only the call knows: the function is called, its results wait, and the
            outputs are these sizes (int64).
        waiting: no call: the outputs are the results that wait since the last call of the site with `sizes`.
        offsets: bytes from the address of each input that is a buffer to its first element; () for none.
    """

    site: int
    inputs: tuple[Union[Buffer, Operand, Pair], ...]
    outputs: tuple[Union[Buffer, Var, Pair], ...]
    sizes: tuple[tuple[int, int], ...] = ()
    waiting: bool = False
    offsets: tuple[DimLike, ...] = ()


@dataclass(slots=True)
class SetResult:
    """Store a scalar into result slot `slot`; `is_numpy` tells a NumPy float from a Python one (`maybe_np_float`)."""

    slot: int
    value: Union[Operand, Pair]
    is_numpy: Operand | None = None


Stmt: TypeAlias = Union[
    Let,
    DimValue,
    Bind,
    Load,
    Store,
    For,
    While,
    If,
    Reduce,
    Alloc,
    Free,
    Swap,
    Check,
    CallKernel,
    Library,
    Host,
    SetResult,
]


@dataclass(slots=True)
class Function:
    """A kernel: takes buffer addresses, int64 symbols and scalars; gives status (through checks) and scalar results.

    Attributes:
        origin: names of graph ops and the user's lines it came from, for `explain` and comments in dumps.
        polls: its outermost loops are the user's, and look for signals between two turns.
    """

    name: str
    buffers: list[Buffer]
    symbols: list[str]
    scalars: list[Var]
    body: list[Stmt]
    results: list[Operand] = field(default_factory=list)
    origin: list[str] = field(default_factory=list)
    polls: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """What a buffer was made for: the user's name of the value ("" without one), the graph op and its place."""

    value: str
    op: str
    loc: SourceLoc | None


@dataclass(slots=True)
class EntryBuffer:
    """A buffer of the entry that comes from outside: argument or result slot `slot`; strides that are run-time symbols
    (`stride_symbols[k]`, "" where derived) are read from the argument's slot.
    """

    buffer: Buffer
    source: Literal["arg", "result"]
    slot: int
    stride_symbols: tuple[str, ...] = ()


@dataclass(slots=True)
class Program:
    """A whole graph at the loop level.

    Attributes:
        kernels: functions called by the entry; equal text is compiled once.
        entry: body of the entry; `entry_buffers` and `entry_scalars` (var, argument slot) are bound before it.
        dims: (symbol, argument slot, axis) for each size that `prepare` reads; in the order of the `dims` array.
        guards: relations over `dims` that `prepare` tests: (relation, left, right).
        result_dims: for each result slot that is an array with a size known before the run: its shape; None for others.
        scratch_bytes: size of the arena, a dim over `dims` and `sizes`.
        sizes: symbols with their values over `dims` and those before: what the memory plan computes once a call.
        memory: the memory plan.
        origins: what buffers of the entry were made for, by name.
        sites: what checks and host calls name.
        tables: small constant arrays that the entry reads (C order), by the buffer that names them.
        fast_math: LLVM's fast-math flags for all floating-point instructions.
        lines: the user's line of each loop of the user's, by its index.
        inlined: kernels that have become part of loops of the entry.
        notes: what was done to loops, for `explain`: (what, indices of the loops, or the names of their kernels).
    """

    name: str
    kernels: list[Function]
    entry: list[Stmt]
    entry_buffers: list[EntryBuffer]
    entry_scalars: list[tuple[Union[Var, Pair], int]]
    dims: list[tuple[str, int, int]]
    guards: list[tuple[str, DimLike, DimLike]]
    result_dims: list[tuple[DimLike, ...] | None]
    scratch_bytes: DimLike
    sites: list[Site]
    tables: list[tuple[Buffer, np.ndarray]] = field(default_factory=list)
    fast_math: frozenset[str] = frozenset()
    lines: dict[str, int] = field(default_factory=dict)
    inlined: list[Function] = field(default_factory=list)
    notes: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    sizes: list[tuple[str, DimLike]] = field(default_factory=list)
    memory: Plan | None = None
    origins: dict[str, Origin] = field(default_factory=dict)
