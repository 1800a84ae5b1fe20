"""`TraceMode`: operators, views and writes emitted as ops of a graph.

What a trace may override (in a subclass): `foreign` (an ndarray of unknown path meets a traced value), `concrete`
(Python needs the value of a traced scalar), `unsupported` (a NumPy function without an operator), `on_write`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from jitgraph import errors
from jitgraph.dtypes import COMPILED, COMPILED_TEXT, native, part_of
from jitgraph.inner_loops import Place, Side, plain_if_single
from jitgraph.ir.builder import Builder, is_long
from jitgraph.ir.dims import Dim, DimLike, evaluate, symbols
from jitgraph.ir.graph import Block, Op, Value
from jitgraph.ir.opdef import REGISTRY, OpDef, Trait
from jitgraph.ir.reshapes import reshape_view_layout
from jitgraph.ir.rewrite import constant_of
from jitgraph.ir.storage import UPDATES, WRITES
from jitgraph.ir.types import AxisMap, IndexMap, Shape, TensorType, c_layout
from jitgraph.ops.bits import reinterpret, reinterpreted_type
from jitgraph.ops.complexes import part_type
from jitgraph.ops.families import broadcast_layout
from jitgraph.sizes import Sizes, is_one
from jitgraph.source import SourceLoc
from jitgraph.tensor import Ratio, Step, Storage, Tensor

_CLASSES: dict[str, type] = {
    "array": np.ndarray,
    "py_bool": bool,
    "py_int": int,
    "py_float": float,
    "py_complex": complex,
    "maybe_np_float": float,
}
_ELEMENTWISE = Trait.ELEMENTWISE
_LOGICAL = frozenset(("logical_and", "logical_or", "logical_xor"))
#: What is done on memory in any byte order, and what of the rest gives arrays in the order of the first operand.
_ANY_ORDER = frozenset(("copy", "cast", "view", "reshape", "write", "write_through"))
_KEEP_ORDER = frozenset(("take", "compress"))
#: Reductions that take such arrays through NumPy's buffer, which their rounding shows.
_BUFFERED = frozenset(("reduce_sum", "reduce_prod"))
#: Records whose bits depend on NumPy's inner loop, to those of the loop that goes element by element.
_PLAIN = {"mul": "plain_mul", "square": "plain_mul", "abs": "plain_abs"}
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_CONVERSIONS = frozenset(("cast", "as_kind"))
#: What NumPy says of a Python int that no integer of its own holds.
LONG = "Python int too large to convert to C long"


class TraceMode(Sizes):
    """Emits every operator through `builder`.

    Attributes:
        journal: (storage, version before) of every write, in order; a region's driver reads it from a mark on.
        closed: set when the trace is over; a Tensor that survives it says so.
    """

    name = "trace"
    #: Whether arrays that NumPy makes of static values are traced from the start.
    lifts: bool = False
    #: Whether Python's `math` has to give the C library's bits.
    exact: bool = False
    #: How a trace calls a function without an operator: (function, args, kwargs).
    call_numpy: Callable[[Any, Any, Any], Any] | None = None

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder)
        self.journal: list[tuple[Storage, Any]] = []
        self.closed = False

    # --- operators

    def apply(self, defn: OpDef, values: Sequence[Any], attrs: dict[str, Any]) -> tuple[Value, ...]:
        if self.closed:
            self.fail(
                "a traced value is used after its trace has ended", "return it from the function instead of storing it."
            )
        if defn.name in _PLAIN and self.has_inner_loop(values):
            return self.by_inner_loop(defn.name, [(v, None) for v in values])
        return self._apply(defn, values, attrs)

    def _apply(self, defn: OpDef, values: Sequence[Any], attrs: dict[str, Any]) -> tuple[Value, ...]:
        mark = self.mark()
        try:
            return self._apply_in_order(defn, values, attrs)
        except errors.DTypeError:
            self.drop_checks(mark)
            raise

    def mark(self) -> tuple[Block, Op | None]:
        """Where the program is, for `drop_checks`."""
        block = self.builder.block
        return block, block.last

    def drop_checks(self, mark: tuple[Block, Op | None]) -> None:
        """Take back the checks of sizes since `mark`, of a ufunc that is refused: NumPy looks at dtypes first.

        What would compute with those sizes goes, too.
        """
        block, last = mark
        if self.builder.block is not block:
            return
        for op in block.ops_back():
            if op is last:
                break
            dropped = op.name == "check" and self.builder.graph.sites[op.attrs["site"]].error != "deoptimise"
            if dropped or (op.defn.has(Trait.PURE) and not any(r.uses for r in op.results)):
                self.builder.graph.erase(op)

    def _apply_in_order(self, defn: OpDef, values: Sequence[Any], attrs: dict[str, Any]) -> tuple[Value, ...]:
        for v in values:
            if not v.type.dtype.isnative:
                return self._on_swapped(defn, values, attrs)
        if _ELEMENTWISE in defn.traits and len(values) > 1:
            values = self._broadcast(defn, values, attrs)
            for v in values:
                if v.type.kind == "py_int":
                    if defn.name in _COMPARISONS:
                        defn, values = self._compare_weak_integers(defn, values)
                    elif defn.name in _LOGICAL:  # only its truth counts: any value will do
                        ne, b = REGISTRY["ne"], self.builder
                        if any(is_long(constant_of(v)) for v in values):
                            raise OverflowError(LONG)
                        values = [b.apply(ne, v, 0)[0] if v.type.kind == "py_int" else v for v in values]
                    else:
                        return self._with_weak_integers(defn, values, attrs)
                    break
        return self._emit(defn, values, attrs)

    def _broadcast(self, defn: OpDef, values: Sequence[Value], attrs: dict[str, Any]) -> list[Value]:
        """See `broadcast`.

        Raises:
            DTypeError, ShapeError: the operands do not fit; NumPy looks at dtypes first.
        """
        try:
            return self.broadcast(values, defn.name)
        except errors.ShapeError:
            self._infer(defn, [TensorType(v.type.dtype, (), v.type.kind) for v in values], attrs)
            raise

    def _infer(self, defn: OpDef, types: Sequence[TensorType], attrs: dict[str, Any]) -> None:
        """Raise what the type rule does."""
        try:
            defn.infer(types, attrs)
        except errors.JitgraphError as error:
            raise self.located(error) from None

    def _emit(self, defn: OpDef, values: Sequence[Value], attrs: dict[str, Any]) -> tuple[Value, ...]:
        if defn.name in _CONVERSIONS and values[0].type.kind == "py_int" and is_long(constant_of(values[0])):
            return self._of_long(values[0], attrs)
        try:
            return self.builder.apply(defn, *values, **attrs)
        except errors.JitgraphError as error:
            raise self.located(error) from None

    def _on_swapped(self, defn: OpDef, values: Sequence[Any], attrs: dict[str, Any]) -> tuple[Value, ...]:
        """An operator on elements whose bytes are swapped in memory: computed natively; NumPy's copies stay swapped."""
        if defn.name in _ANY_ORDER:
            return self.builder.apply(defn, *values, **attrs)
        if defn.name in _BUFFERED and values[0].type.dtype.kind in "fc":  # integers add up to the same in any order
            dtype = attrs.get("dtype") or native(values[0].type.dtype)
            return self.builder.apply(defn, *values, **{**attrs, "dtype": dtype})
        kept = values[0].type.dtype if defn.name in _KEEP_ORDER else None
        results = self._apply(defn, [self.native(v) for v in values], attrs)
        if results[0].type.kind != "array":
            return results
        if _ELEMENTWISE in defn.traits and any(v.type.layout.zero for v in values):
            for result in results:  # it lies as the operands do, not as their native copies
                t = result.type
                result.type = t.with_shape(t.shape, broadcast_layout(t.shape, [v.type for v in values]))
        if kept is None:
            return results
        return self.builder.apply(REGISTRY["cast"], results[0], dtype=kept)

    # --- inner loops

    def has_inner_loop(self, values: Sequence[Value]) -> bool:
        """Whether operands are complex, and not all scalars."""
        return any(v.type.dtype.kind == "c" for v in values) and any(v.type.kind == "array" for v in values)

    def by_inner_loop(
        self,
        name: str,
        operands: Sequence[tuple[Value, Place | None]],
        out: tuple[TensorType, Place] | None = None,
        mask: TensorType | None = None,
        order: str = "K",
    ) -> tuple[Value, ...]:
        """A product, square or absolute value of complex arrays with the bits of the inner loop that NumPy takes.

        Args:
            operands: with the places of those that may lie where the output does.
            out: the output, if it is given.
            mask: of `where=`.
            order: of a fresh result.
        """
        values = [v for v, _ in operands]
        if len(values) > 1:
            values = self._broadcast(REGISTRY[name], values, {})
        loop = _loop_dtype(values)
        sides = []
        for v, (_, place) in zip(values, operands, strict=True):
            buffered = v.type.ndim > 0 and (v.type.dtype != loop or v.type.layout.unaligned)
            place, is_output = place or self._seen_from(v), out is not None and place is out[1]
            t = v.type if out is None else self._repeated(v.type, out[0].shape)
            sides.append(Side(t, buffered, place, is_output))
        target = None
        if out is not None:
            made = part_of(loop) if name == "abs" else loop
            target = Side(out[0], out[0].dtype != made or out[0].layout.unaligned, out[1])
        plain = plain_if_single(self, name, loop, sides, target, mask, order)
        if plain is False:
            return self._apply(REGISTRY[name], values, {})
        single = self._apply(REGISTRY[_PLAIN[name]], values * 2 if name == "square" else values, {})
        if plain is True:
            return single
        (several,) = self._apply(REGISTRY[name], values, {})
        return self.builder.apply(REGISTRY["where"], self.compare("eq", plain, 1), single[0], several)

    def _repeated(self, t: TensorType, shape: Shape) -> TensorType:
        """The type of an operand with a literal 1 where a given output repeats its only element."""
        sizes = list(t.shape)
        for k in range(-min(len(sizes), len(shape)), 0):
            if sizes[k] != shape[k] and shape[k] != 1 and is_one(self, sizes[k]):
                sizes[k] = 1
        return t.with_shape(tuple(sizes), t.layout)

    def place(self, x: Tensor) -> Place:
        """Where an array lies in its storage; parts of complex numbers lie where these do."""
        storage = x._storage
        base: TensorType = storage.value.type
        path = _path(base.shape, [step for step in x._steps if not isinstance(step, str)]) if _is_plain(x) else ()
        return Place(storage, base, path[0] if len(path) == 1 else None, storage.origin)

    def _seen_from(self, value: Value) -> Place | None:
        """Where a view lies in what it is taken of."""
        view = IndexMap.identity(value.type.shape)
        while value.producer is not None and value.producer.name == "view":
            view, value = value.producer.attrs["map"].then(view), value.producer.operands[0]
        first = value
        while first.producer is not None and first.producer.name in WRITES:
            first = first.producer.operands[UPDATES[first.producer.name]]
        argument = first.index if first.producer is None and first.block is self.builder.graph.body else None
        return Place(value, value.type, view, argument)

    def no_data(self) -> NoReturn:
        """The data of a traced Tensor are asked for."""
        raise errors.InternalError("a traced Tensor has no data")

    def mixed(self, other: TraceMode) -> NoReturn:
        """A Tensor of another trace is an operand, or one that is not usable any more."""
        other.no_data()

    def lift_plain(self) -> None:
        """An ndarray is where a traced array is needed: a trace begins anew with NumPy's arrays traced."""

    def lifted(self, made: Any) -> Any:
        """What NumPy made of static values, as a traced array."""
        return made

    def native(self, value: Value) -> Value:
        """The value in the machine's byte order."""
        dtype = value.type.dtype
        return value if dtype.isnative else self.builder.apply(REGISTRY["cast"], value, dtype=native(dtype))[0]

    def view(self, value: Any, step: Step) -> Value:
        if isinstance(step, IndexMap):
            return self.builder.apply(REGISTRY["view"], value, map=step)[0]
        if isinstance(step, str):
            made = self.builder.apply(REGISTRY[step], self.native(value))[0]
            if value.type.dtype.isnative:
                return made
            seen = part_type(value.type)  # a view keeps the byte order, and lies as the array does
            swapped = self.builder.apply(REGISTRY["cast"], made, dtype=seen.dtype)[0]
            swapped.type = seen
            return swapped
        if isinstance(step, np.dtype):
            have = value.type.dtype
            if have != step and not (have.isnative and step.isnative):
                self.fail(
                    f"view({step}) of an array of dtype {have} reads bytes in another order: it has no compiled form",
                    "convert the values with x.astype(dtype).",
                )
            return reinterpret(self.builder, value, step)  # type: ignore[no-any-return]
        return self.builder.apply(REGISTRY["reshape"], value, shape=step)[0]

    def view_type(self, t: TensorType, step: Step) -> TensorType:
        """The type of one view step taken of an array of type `t`."""
        if isinstance(step, IndexMap):
            return TensorType(t.dtype, step.shape, "array", step.layout(t))
        if isinstance(step, str):
            return part_type(t)
        if isinstance(step, np.dtype):
            return reinterpreted_type(t, step)
        return TensorType(t.dtype, step, "array", reshape_view_layout(t, step) or c_layout(len(step)))

    def write(self, base: Any, steps: Sequence[Step], value: Any) -> Value:
        for k, step in enumerate(steps):
            if isinstance(step, np.dtype):  # all that is seen so is put together anew
                seen = base
                for outer in steps[:k]:
                    seen = self.view(seen, outer)
                written = self.write(self.view(seen, step), steps[k + 1 :], value)
                back = reinterpret(self.builder, written, seen.type.dtype)
                if back.type.shape != seen.type.shape:
                    back = self.renamed(back, IndexMap.identity(seen.type.shape))
                return self.write(base, steps[:k], back)
        part = next((step for step in steps if isinstance(step, str)), None)
        if part is not None:  # it does not change the shape: whole numbers are written, with the other part as it was
            steps = tuple([step for step in steps if not isinstance(step, str)])
            old = base
            for step in steps:
                old = self.view(old, step)
            value = self.builder.apply(REGISTRY[f"with_{part}"], old, value)[0]
        path = _path(base.type.shape, steps)
        if len(path) == 1:
            return self.builder.apply(REGISTRY["write"], value, base, map=path[0])[0]
        return self.builder.apply(REGISTRY["write_through"], value, base, steps=path)[0]

    def on_write(self, storage: Storage, old: Any) -> None:
        """Called after `storage` got a new version."""
        self.journal.append((storage, old))

    def stride(self, argument: int, axis: int) -> Dim | None:
        """The stride (bytes) of an axis of an argument, as a symbol for guards; None if there is no example of it."""
        return None

    def watch(self, storage: Storage, sources: list[Storage]) -> None:
        """`storage` may be the memory of `sources`, as only the run knows: a traced function must write to neither."""

    def perhaps_view(self, storage: Storage, source: Storage, sizes: list[DimLike]) -> None:
        """`storage` is a copy, and would be the memory of `source` if one of `sizes` was 1, as only the run knows."""

    def type_of(self, value: Any) -> TensorType:
        return value.type  # type: ignore[no-any-return]

    def lift(self, x: Any) -> Value:
        kind = type(x)
        if kind is Value:
            return x  # type: ignore[no-any-return]
        if isinstance(x, np.ndarray):
            return self.foreign(x)
        if kind in (int, float, bool, complex) or isinstance(x, np.generic):
            if kind not in (int, float, bool, complex):
                self._require_compiled(x.dtype, "number")
            return self.builder.constant(x)
        if isinstance(x, (int, float)):  # a subclass such as an enum member
            return self.builder.constant(float(x) if isinstance(x, float) else int(x))
        if isinstance(x, (list, tuple)):
            return self.literal(np.asarray(x))
        return self.leave(f"a {kind.__name__} meets a traced value; jitgraph computes with arrays and numbers")

    def literal(self, array: np.ndarray) -> Value:
        """An array whose elements stand in the user's code: a constant."""
        self._require_compiled(array.dtype, "array")
        if array.dtype.isnative:
            return self.builder.constant(array)
        value = self.builder.constant(array.astype(native(array.dtype)))
        return self.builder.apply(REGISTRY["cast"], value, dtype=array.dtype)[0]

    def foreign(self, array: np.ndarray) -> Value:
        """An ndarray that is no argument of the trace: a constant, copied as it is now."""
        self._require_compiled(array.dtype, "array")
        return self.builder.constant(array.copy())

    def _require_compiled(self, dtype: np.dtype, what: str) -> None:
        if native(dtype) not in COMPILED:
            self.fail(
                f"{'an' if what == 'array' else 'a'} {what} of dtype {dtype} meets a traced value",
                f"convert it, e.g. .astype(np.float32): compiled code has {COMPILED_TEXT}.",
            )

    def _with_weak_integers(self, defn: OpDef, values: Sequence[Value], attrs: dict[str, Any]) -> tuple[Value, ...]:
        """NumPy refuses a Python int that the integer loop it goes into cannot hold (`uint8 + 300`)."""
        results = self._emit(defn, values, attrs)
        op = results[0].producer
        if op is not None and len(op.operands) == len(values) and not all(v.type.is_python for v in values):
            for v, used in zip(values, op.operands, strict=True):
                if v.type.kind == "py_int" and used.type.dtype.kind in "iu":
                    try:
                        self.check_fits(v, used.type.dtype)
                    except OverflowError:  # of this turn or branch: what would compute with the int is not left there
                        self.builder.graph.erase(op)
                        raise
        return results

    def _compare_weak_integers(self, defn: OpDef, values: Sequence[Value]) -> tuple[OpDef, Sequence[Value]]:
        """An integer compared with a Python int that its dtype may not hold: exact, as in NumPy (`uint8 < 300`)."""
        k = 0 if values[0].type.kind == "py_int" else 1
        weak, strong = values[k], values[1 - k]
        dtype = strong.type.dtype
        known = constant_of(weak)
        if dtype.kind == "b" and not strong.type.is_python and is_long(known):  # whose loop is that of int64
            raise OverflowError(LONG)
        if strong.type.is_python or dtype.kind not in "iu" or (dtype == np.int64 and not is_long(known)):
            return defn, values
        info = np.iinfo(dtype)
        if known is not None and info.min <= known <= info.max:
            return defn, values
        if known is not None:  # the answer is the same for all elements
            greater = (known < info.min) == (k == 1)
            holds = defn.name in (("gt", "ge", "ne") if greater else ("lt", "le", "ne"))
            return REGISTRY["eq" if holds else "ne"], [strong, strong]
        apply = self.builder.apply
        if dtype != np.uint64:
            wide = apply(REGISTRY["cast"], strong, dtype=np.dtype(np.int64))[0]
            return defn, [weak, wide] if k == 0 else [wide, weak]
        found = apply(defn, *values)[0]
        negative = apply(REGISTRY["lt"], weak, 0)[0]
        if defn.name in (("gt", "ge", "ne") if k == 1 else ("lt", "le", "ne")):
            return REGISTRY["logical_or"], [found, negative]
        return REGISTRY["logical_and"], [found, apply(REGISTRY["logical_not"], negative)[0]]

    def _of_long(self, value: Value, attrs: dict[str, Any]) -> tuple[Value, ...]:
        """A Python int beyond 64 bits in a dtype, or in the one that NumPy finds for it.

        Raises:
            OverflowError: the dtype does not hold it, or it would be an object.
        """
        if "dtype" in attrs:
            return (self.builder.cast_to(value, attrs["dtype"]),)
        number = np.asarray(constant_of(value))
        if number.dtype.kind == "O":
            raise OverflowError(LONG)
        return self.builder.apply(REGISTRY["as_kind"], self.builder.constant(number[()]), **attrs)

    def check_fits(self, value: Value, dtype: np.dtype) -> None:
        """A Python int must fit an integer dtype: known ones now, others by a check that reruns the call in Python."""
        known = constant_of(value)
        if dtype == np.int64 and not is_long(known):
            return
        info = np.iinfo(dtype)
        if known is not None:
            if not info.min <= known <= info.max:
                raise OverflowError(f"Python integer {known} out of bounds for {dtype.name}")
            return
        fits = self.builder.apply(REGISTRY["ge"], value, int(info.min))[0]
        if info.max < 2**63 - 1:
            fits = self.builder.apply(
                REGISTRY["logical_and"], fits, self.builder.apply(REGISTRY["le"], value, int(info.max))[0]
            )[0]
        self.check(fits, "deoptimise", f"Python integer {{0}} out of bounds for {dtype.name}", value)

    def can_rerun(self) -> bool:
        """Whether `assume` is possible here."""
        return False

    def can_turn_back(self) -> bool:
        """The same, though arrays of the caller's may have been written."""
        return False

    def assume(self, flag: Value, why: str) -> bool:
        """The truth of a traced bool that decides what is traced; a mode that cannot trace anew refuses."""
        return self.fail(f"{why} depends on data", "give both cases one form and one dtype (np.where).")

    # --- Python needs the value

    def class_of(self, x: Tensor) -> type:
        kind = x.type.kind
        return x.type.dtype.type if kind == "np_scalar" else _CLASSES[kind]

    def concrete(self, x: Tensor, wanted: str) -> Any:
        """The value of a traced scalar for Python: argument sizes under a guard, constants; else an error.

        Args:
            wanted: "bool", "int", "float", "index", "len", "array", "numpy", "format", "hash", ...
        """
        dim = x._dim
        if isinstance(dim, Ratio):
            return self.concrete_dim(dim.numerator, wanted) / self.concrete_dim(dim.denominator, wanted)
        if isinstance(dim, Dim):
            return self.concrete_dim(dim, wanted)
        value = x._storage.value
        if isinstance(value, Value) and not x._steps and x.type.ndim == 0:
            known = constant_of(value)
            if known is not None:
                return known
        return self.refuse(x, wanted)

    def concrete_dim(self, dim: DimLike, wanted: str) -> int:
        """The example value of an argument's size, under the guard that it is this one."""
        if isinstance(dim, int):
            return dim
        env: dict[str, int] = {}
        for name in symbols(dim):
            s = self.builder.graph.symbols[name]
            if s.origin != "arg" or s.hint is None:
                self.leave(
                    f"Python needs the value of the size {dim} ({wanted}), known only when the compiled code runs",
                    "use it in NumPy expressions, or mark the argument it comes from as static.",
                )
            env[name] = s.hint
        value = evaluate(dim, env)
        self.decide("==", dim, value)
        return value

    def repr_of(self, x: Tensor) -> str | None:
        """What `repr` gives for a traced value; None: what is for people who look at the trace."""
        return None

    def refuse(self, x: Tensor, wanted: str) -> NoReturn:
        """Python needs a value that only the compiled code knows."""
        what, remedy = _WANTED.get(
            wanted, (f"Python needs the value of a traced {x.type} ({wanted})", "compute with it in NumPy.")
        )
        (self.leave if wanted in _LEFT else self.fail)(what.format(type=x.type), remedy)

    def unsupported(
        self,
        name: str,
        args: Sequence[Any],  # for the trace that calls it in Python
        kwargs: dict[str, Any],
        func: Callable[..., Any] | None = None,
    ) -> Any:
        """A NumPy function without an operator meets a traced value."""
        self.fail(
            f"{name} has no compiled form yet",
            "keep it outside the jitted function, wrap it with jg.host, or use @jit(fallback='eager').",
        )

    # --- errors

    def refused_at(self) -> SourceLoc | None:
        """The place that a refusal shows."""
        return self.locate()

    def fail(self, what: str, remedy: str = "") -> NoReturn:
        raise errors.TraceError(errors.describe(what, self.refused_at(), remedy=remedy))

    def leave(self, what: str, remedy: str = "") -> NoReturn:
        """Only Python can do this: calls are made there."""
        raise errors.LeftToPython(errors.describe(what, self.refused_at(), remedy=remedy))

    def located(self, error: errors.JitgraphError) -> errors.JitgraphError:
        """The same error with the user's place, if its text has none yet."""
        loc = self.locate()
        if loc is None:
            return error
        first, *rest = str(error).split("\n")
        place = errors.describe("", loc).strip("\n")
        if place in rest:
            return error
        return type(error)("\n".join([first, place, *rest]))


def _path(shape: Shape, steps: Sequence[Step]) -> tuple[Any, ...]:
    """A chain of views of an array of `shape` as maps and reshapes in turn, ending with a map; none can be left out."""
    path: list[Any] = []
    map = IndexMap.identity(shape)
    for step in steps:
        here = map.shape
        affine = step if isinstance(step, IndexMap) else _units(here, step)  # type: ignore[arg-type]
        if affine is not None:
            map = map.then(affine)
            continue
        if not map.is_identity(path[-1] if path else shape):
            path.append(map)
        elif path:
            path.pop()  # a reshape of a reshape
        path.append(step)
        map = IndexMap.identity(step)  # type: ignore[arg-type]  # the map is affine
    return (*path, map)


def _is_plain(x: Tensor) -> bool:
    """Whether the steps to a view keep the elements' size."""
    return not any(isinstance(step, np.dtype) for step in x._steps)


def _units(old: Shape, new: Shape) -> IndexMap | None:
    """A reshape that only adds or drops axes of size 1, as a map."""
    if [d for d in old if d != 1] != [d for d in new if d != 1]:
        return None
    at = [k for k, d in enumerate(new) if d != 1]
    return IndexMap(new, tuple(AxisMap(0) if d == 1 else AxisMap(0, 1, at.pop(0)) for d in old))


#: What Python wants values for in ordinary programs: their calls are left to it.
_LEFT = frozenset(("format", "hash", "index", "int", "float", "complex", "len"))
_WANTED: dict[str, tuple[str, str]] = {
    "bool": (
        "Python needs the truth of a traced value ({type})",
        "use np.where, or an `if` in a function whose source is at hand, which becomes a branch of the graph.",
    ),
    "int": ("Python needs the value of a traced {type} (int)", "keep it an array: x.astype(int)."),
    "index": (
        "Python needs a traced {type} as an index or count",
        "index an array with it, or make the argument static.",
    ),
    "float": ("Python needs the value of a traced {type} (float)", "use NumPy's functions in place of this one."),
    "array": (
        "a traced {type} is handed to code that needs its data",
        "use a NumPy function with an operator, or jg.host.",
    ),
    "numpy": ("a traced {type} has no data yet", "leave .numpy() out: inside jit values are arrays already."),
    "format": ("the text of a traced {type} is needed", "format it after the call, or print with jg.debug.print."),
    "hash": ("a traced {type} is used as a key", "use a static argument as the key."),
    "base": ("which object owns the memory of a traced {type} is for Python to know", "test it before the call."),
    "data": ("a traced {type} has no address yet (data)", "use it outside the jitted function."),
    "ctypes": ("a traced {type} has no address yet (ctypes)", "use it outside the jitted function."),
    "strides": ("the strides of a traced {type} are known only when the compiled code runs", ""),
    "len": ("Python needs the length of a traced {type}", "use x.shape[0], which stays symbolic."),
}


def _loop_dtype(values: Sequence[Value]) -> np.dtype:
    """The dtype of NumPy's loop over complex operands."""
    return np.result_type(*[native(v.type.dtype) for v in values if not v.type.is_python], np.complex64)
