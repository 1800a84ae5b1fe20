"""Operator records: what an operator means, its types, its lowering, its gradient; and the registry of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Protocol, TypeAlias

import numpy as np

from jitgraph.ir.types import TensorType
from jitgraph.records import dataclass, field

Attrs: TypeAlias = Mapping[str, Any]


class Trait(Enum):
    """What passes may assume of an operator."""

    PURE = auto()  # no effect, never raises: may be erased, merged, moved
    ELEMENTWISE = auto()  # one scalar function at each index of the broadcast operands
    COMMUTATIVE = auto()  # f(a, b) = f(b, a), bit for bit
    REDUCTION = auto()  # attrs `axes`, `keepdims`
    MOVEMENT = auto()  # moves or selects elements, computes nothing
    MAY_RAISE = auto()  # never erased; raises as NumPy does
    ORDERED = auto()  # an effect: stays in program order with the others
    TERMINATOR = auto()  # ends a block
    CONTROL = auto()  # has regions that run zero or more times
    BINDS = auto()  # binds the symbol in attrs["symbol"]
    OPAQUE = auto()  # not fused: a library call, a callback, a region op


#: Operators of which one region runs, none twice: what they answer is what that region yields.
BRANCHES: frozenset[str] = frozenset(["cond", "switch"])


@dataclass(frozen=True, slots=True)
class Signature:
    """What a type rule answers: the dtype each operand is cast to (None: as it is) and the types of the results."""

    operands: tuple[np.dtype | None, ...]
    results: tuple[TensorType, ...]


class Scalar(Protocol):
    """What `lower` of an elementwise operator may use: scalar primitives; a handle `x` stands for one element.

    Operands of one primitive have one dtype; `cast` changes it. Integer arithmetic wraps; `idiv`/`irem` truncate and
    must not see a zero divisor or minimum / -1 (guard with `select` first). Shifts by the width or more are undefined.
    """

    def dtype(self, x: Any) -> np.dtype: ...
    def const(self, value: Any, dtype: np.dtype) -> Any: ...
    def like(self, value: Any, x: Any) -> Any:
        """The constant `value` in the dtype of `x`."""
        ...

    def cast(self, x: Any, dtype: np.dtype) -> Any: ...
    def bitcast(self, x: Any, dtype: np.dtype) -> Any: ...
    def add(self, a: Any, b: Any) -> Any: ...
    def sub(self, a: Any, b: Any) -> Any: ...
    def mul(self, a: Any, b: Any) -> Any: ...
    def fdiv(self, a: Any, b: Any) -> Any: ...
    def frem(self, a: Any, b: Any) -> Any:
        """C's fmod."""
        ...

    def idiv(self, a: Any, b: Any) -> Any: ...
    def irem(self, a: Any, b: Any) -> Any: ...
    def overflows(self, operation: str, a: Any, b: Any) -> Any:
        """Whether the exact result of `operation` (add, sub, mul) on two integers leaves their dtype. Gives bool."""
        ...

    def fma(self, a: Any, b: Any, c: Any) -> Any: ...
    def muladd(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c as NumPy's vector loops compute it: with one rounding where the CPU has FMA, with two elsewhere."""
        ...

    def pair(self, real: Any, imag: Any) -> Any:
        """A complex number, for `OpDef.pairs`; its parts are `.real` and `.imag`."""
        ...

    def neg(self, a: Any) -> Any: ...
    def fabs(self, a: Any) -> Any: ...
    def copysign(self, a: Any, b: Any) -> Any: ...
    def sqrt(self, a: Any) -> Any: ...
    def floor(self, a: Any) -> Any: ...
    def ceil(self, a: Any) -> Any: ...
    def trunc(self, a: Any) -> Any: ...
    def rint(self, a: Any) -> Any: ...
    def cmp(self, predicate: str, a: Any, b: Any) -> Any:
        """`predicate`: eq ne lt le gt ge (floats: ordered, ne unordered), or `uno` (either is NaN). Gives bool."""
        ...

    def select(self, condition: Any, a: Any, b: Any) -> Any: ...
    def and_(self, a: Any, b: Any) -> Any: ...
    def or_(self, a: Any, b: Any) -> Any: ...
    def xor(self, a: Any, b: Any) -> Any: ...
    def not_(self, a: Any) -> Any: ...
    def shl(self, a: Any, b: Any) -> Any: ...
    def shr(self, a: Any, b: Any) -> Any:
        """Arithmetic for signed dtypes, logical for unsigned."""
        ...

    def call(self, name: str, *args: Any) -> Any:
        """A function of the vector math library (`exp`, `log`, `sin`, ...) or of libm (`pow`, `fmod`), by name."""
        ...


Infer: TypeAlias = Callable[[Sequence[TensorType], Attrs], Signature]
#: vjp(b, cotangent(s), result(s), *operands, **attrs) -> one cotangent (or None) for each operand; `b` makes ops.
Vjp: TypeAlias = Callable[..., Sequence[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class OpDef:
    """One operator.

    Attributes:
        infer: type rule. Operands arrive as they are written; the builder casts them to `Signature.operands`.
        evaluate: the meaning: NumPy arrays (or scalars) and attributes to the result (a tuple if there are several).
        lower: `lower(s: Scalar, *operands)` for ELEMENTWISE operators; attributes are passed by keyword.
        vjp: reverse rule. Cotangents of broadcast operands may keep the result's shape: the driver sums them.
        jvp: forward rule `jvp(b, tangents, result, *operands, **attrs)`; elementwise operators need none (the diagonal
            Jacobian makes it the sum of the vjp applied to each tangent), linear movement and sums apply themselves.
        linear: linear in all its operands together, so that the operator itself is its forward rule.
        numpy: the NumPy callables that this record stands for.
        domain: interval from which differential tests draw float operands; None: everything.
        ulp: bound on the distance from the true value, for floats; 0 means NumPy's bits.
        arity: number of operands; -1: any.
        pairs: `pairs(s, types, *operands, **attrs)`: the lowering where an operand or the result is complex; `types`
            are those of the operands, complex ones are pairs of parts (`Scalar.pair`). Elementwise operators without it
            are computed by NumPy.
        by_numpy: whether results of such types (of the operands, then of the results) are computed by NumPy itself,
            called back from machine code (`passes/numpy_functions.py`), because `lower` has no code for them.
            ELEMENTWISE records without `lower` always are.
    """

    name: str
    doc: str
    infer: Infer
    evaluate: Callable[..., Any]
    lower: Callable[..., Any] | None = None
    vjp: Vjp | None = None
    jvp: Callable[..., Any] | None = None
    linear: bool = False
    traits: frozenset[Trait] = field(default_factory=frozenset)
    numpy: tuple[Any, ...] = ()
    domain: tuple[float, float] | None = None
    ulp: float = 0.0
    arity: int = 1
    by_numpy: Callable[[Sequence[TensorType]], bool] | None = None
    pairs: Callable[..., Any] | None = None

    def has(self, trait: Trait) -> bool:
        return trait in self.traits

    def commutes(self, types: Sequence[TensorType]) -> bool:
        """Whether the operands may change places, bit for bit: of a complex product one of two terms is fused."""
        return Trait.COMMUTATIVE in self.traits and not any(t.dtype.kind == "c" for t in types)

    def needs_numpy(self, types: Sequence[TensorType], attrs: Attrs | None = None) -> bool:
        """Whether NumPy itself computes the operator for these types (of operands and results)."""
        if attrs is not None:  # of an operator that applies another one
            function = attrs.get("function")
            if attrs.get("by_numpy") or (function is not None and REGISTRY[function].needs_numpy(types)):
                return True
        if self.by_numpy is not None:
            return self.by_numpy(types)
        if Trait.ELEMENTWISE not in self.traits:
            return False
        return self.lower is None or (self.pairs is None and any(t.dtype.kind == "c" for t in types))


REGISTRY: dict[str, OpDef] = {}


def register(defn: OpDef) -> OpDef:
    """Add a record to the registry.

    Raises:
        ValueError: the name is taken.
    """
    if defn.name in REGISTRY:
        raise ValueError(f"the operator {defn.name!r} is declared twice")
    REGISTRY[defn.name] = defn
    return defn
