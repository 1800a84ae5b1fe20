"""`np.errstate` in a trace: `raise` becomes checks behind the operators, `ignore` and `warn` are dropped.

The conditions are those of IEEE 754 as NumPy reports them: a division of a finite number by zero, an infinite result of
finite operands (overflow), a result below the normal numbers of operands that are not zero (underflow, also where it is
exact), a NaN that no operand brought (invalid).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY, OpDef, Trait

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode
    from jitgraph.tracing.standins import Tracer

_KINDS: Final = ("divide", "over", "under", "invalid")
_TEXTS: Final = {
    "divide": "divide by zero encountered in",
    "over": "overflow encountered in",
    "under": "underflow encountered in",
    "invalid": "invalid value encountered in",
}
#: Operators by NumPy's names, where these differ.
_NAMES: Final = {
    "div": "divide", "mul": "multiply", "sub": "subtract", "pow": "power", "mod": "remainder", "neg": "negative",
    "floordiv": "floor_divide", "reduce_sum": "reduce", "reduce_prod": "reduce",
}  # fmt: skip
_UNDERFLOW: Final = frozenset(("mul", "div", "exp", "exp2", "pow", "square", "reduce_prod"))
_POLES: Final = frozenset(("log", "log2", "log10", "log1p"))
#: Operators that only move or compare numbers, or are made to bring NaN.
_SILENT: Final = frozenset(
    ("where", "copysign", "clip", "abs", "sign", "minimum", "maximum", "fmin", "fmax", "as_kind")
)


class Errstate:
    """What `np.errstate(...)` is in a trace: a context manager that says which conditions raise."""

    def __init__(self, tracer: Tracer, **options: Any) -> None:
        self.mode = tracer.mode
        every = options.pop("all", None)
        call = options.pop("call", None)
        states = {k: options.get(k) or every for k in _KINDS}
        for name in (*states.values(), *("call" for _ in (call,) if call is not None)):
            if name not in (None, "ignore", "warn", "raise"):
                self.mode.fail(
                    f"np.errstate(...={name!r}) has no compiled form", "use 'ignore' or 'raise', or fallback='eager'."
                )
        self.states = states
        self.before: frozenset[str] = frozenset()

    def __enter__(self) -> None:
        self.before = self.mode.raising
        raising = set(self.before)
        for name, state in self.states.items():
            if state is not None:
                (raising.add if state == "raise" else raising.discard)(name)
        self.mode.raising = frozenset(raising)

    def __exit__(self, *error: object) -> None:
        self.mode.raising = self.before


def _seterr(tracer: Tracer, **options: Any) -> None:
    for name, state in options.items():
        if state not in (None, "ignore", "warn"):
            tracer.mode.fail(
                f"np.seterr({name}={state!r}) in a jitted function has no compiled form", "use `with np.errstate(...)`."
            )


#: Stand-ins, which take the tracer first.
BODIES: dict[Any, Callable[..., Any]] = {np.errstate: Errstate, np.seterr: _seterr}


def check(mode: CaptureMode, defn: OpDef, values: Sequence[Value], results: Sequence[Value]) -> None:
    """Emit what `mode.raising` asks of an operator that was just emitted."""
    elementwise = Trait.ELEMENTWISE in defn.traits
    if not (elementwise or defn.name in ("reduce_sum", "reduce_prod", "matmul")) or defn.name in _SILENT:
        return
    result = results[0]
    if result.type.is_python or any(v.type.dtype.kind == "c" for v in (*values, result)):
        return
    raising, mode.raising = mode.raising, frozenset()
    try:
        conditions = _Conditions(mode, defn.name, values, result, elementwise)
        name = _NAMES.get(defn.name, defn.name)
        shown = f"scalar {name}" if result.type.kind == "np_scalar" else name
        for kind in _KINDS:
            condition = getattr(conditions, kind)() if kind in raising else None
            if condition is not None:
                if condition.type.kind == "array":
                    axes = tuple(range(condition.type.ndim))
                    condition = mode.builder.apply(REGISTRY["reduce_any"], condition, axes=axes, keepdims=False)[0]
                fine = mode.builder.apply(REGISTRY["logical_not"], condition)[0]
                mode.check(fine, "FloatingPointError", f"{_TEXTS[kind]} {shown}")
    finally:
        mode.raising = raising


class _Conditions:
    """The conditions of one operator, as traced bools of the shape of its result."""

    def __init__(self, mode: CaptureMode, name: str, values: Sequence[Value], result: Value, elementwise: bool) -> None:
        self.mode, self.name, self.values, self.result, self.elementwise = mode, name, values, result, elementwise
        self.is_float = result.type.dtype.kind == "f"

    def _op(self, name: str, *operands: Any) -> Value:
        values = [x if isinstance(x, Value) else self.mode.lift(x) for x in operands]
        return self.mode.apply(REGISTRY[name], values, {})[0]

    def _all(self, test: str) -> Value | None:
        """Where no operand is NaN, or all are finite; over all elements for a reduction."""
        total: Value | None = None
        for v in self.values:
            if v.type.dtype.kind != "f":
                continue
            holds = self._op("isfinite", v) if test == "finite" else self._op("logical_not", self._op("isnan", v))
            if not self.elementwise and holds.type.kind == "array":
                axes = tuple(range(holds.type.ndim))
                holds = self.mode.builder.apply(REGISTRY["reduce_all"], holds, axes=axes, keepdims=False)[0]
            total = holds if total is None else self._op("logical_and", total, holds)
        return total

    def _where(self, condition: Value, extra: Value | None) -> Value:
        if not self.elementwise and condition.type.kind == "array":
            axes = tuple(range(condition.type.ndim))
            condition = self.mode.builder.apply(REGISTRY["reduce_any"], condition, axes=axes, keepdims=False)[0]
        return condition if extra is None else self._op("logical_and", condition, extra)

    def divide(self) -> Value | None:
        name, values = self.name, self.values
        if name in ("floordiv", "mod") and not self.is_float:
            return self._op("eq", values[1], 0)
        if not self.is_float:
            return None
        if name in ("div", "floordiv"):
            zero = self._op("eq", values[1], 0.0)
            finite = self._op("logical_and", self._op("isfinite", values[0]), self._op("ne", values[0], 0.0))
            return self._op("logical_and", zero, finite)
        if name in _POLES:
            return self._op("eq", values[0], -1.0 if name == "log1p" else 0.0)
        if name == "reciprocal":
            return self._op("eq", values[0], 0.0)
        if name == "pow":
            base = self._op("eq", values[0], 0.0)
            return self._op("logical_and", base, self._op("lt", values[1], 0.0))
        return None

    def over(self) -> Value | None:
        if not self.is_float:
            return None
        condition = self._where(self._op("isinf", self.result), self._all("finite"))
        pole = self.divide()
        return condition if pole is None else self._op("logical_and", condition, self._op("logical_not", pole))

    def under(self) -> Value | None:
        if not self.is_float or self.name not in _UNDERFLOW:
            return None
        tiny = float(np.finfo(self.result.type.dtype).tiny)
        condition = self._op("lt", self._op("abs", self.result), tiny)
        for k, v in enumerate(self.values):
            if self.name in ("mul", "div", "square", "pow", "reduce_prod"):
                if k == 1 and self.name in ("pow", "div"):
                    continue
                condition = self._where(condition, None)
                nonzero = self._op("ne", v, 0.0)
                if not self.elementwise and nonzero.type.kind == "array":
                    axes = tuple(range(nonzero.type.ndim))
                    nonzero = self.mode.builder.apply(REGISTRY["reduce_all"], nonzero, axes=axes, keepdims=False)[0]
                condition = self._op("logical_and", condition, nonzero)
        return self._where(condition, self._all("finite"))

    def invalid(self) -> Value | None:
        if not self.is_float:
            return None
        return self._where(self._op("isnan", self.result), self._all("numbers"))
