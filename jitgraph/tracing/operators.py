"""Operators, tests and names of rewritten functions."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

import numpy as np

from jitgraph import errors
from jitgraph.ir.graph import Value
from jitgraph.tensor import Tensor, wrap
from jitgraph.tracing import comparing, contexts, control_flow, entrust, identity, iteration, kinds, options, texts
from jitgraph.tracing.leaves import is_opaque_module
from jitgraph.tracing.members import PLAIN, Members
from jitgraph.tracing.poison import Maybe, OneOf, Poison


def _compared(name: str) -> Callable[[Any, Any], Any]:
    """A comparison; a number's with a Tensor keeps its order, where Python would ask the Tensor the other way round."""
    plain, reflected = getattr(operator, name), f"__r{name}__"

    def compare(a: Any, b: Any) -> Any:
        if type(b) is Tensor and type(a) in _NUMBERS:
            return getattr(b, reflected)(a)
        return plain(a, b)

    return compare


_NUMBERS: Final = frozenset((int, float, complex, bool))
_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    n: getattr(operator, n)
    for n in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "lshift",
        "rshift",
        "and_",
        "or_",
        "xor",
        "is_",
        "is_not",
    ]
} | {"in_": lambda a, b: a in b, "not_in": lambda a, b: a not in b}
_BINARY.update({n: _compared(n) for n in ("lt", "le", "gt", "ge", "eq", "ne")})
_UNARY: Final[dict[str, Callable[[Any], Any]]] = {"neg": operator.neg, "pos": operator.pos, "invert": operator.invert}
_AUGMENTED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    n: getattr(operator, n)
    for n in [
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
        "imatmul",
        "ilshift",
        "irshift",
        "iand",
        "ior",
        "ixor",
    ]
}


_MIRRORED: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def _mirrored(name: str) -> str:
    """The method that the right operand is asked for."""
    return f"__{_MIRRORED[name]}__" if name in _MIRRORED else f"__r{name}__"


_SIGNS: Final = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "** or pow()", "and_": "&",
    "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "matmul": "@", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


def refuse_none(name: str, a: Any, b: Any) -> None:
    """An operator between None and a traced value, where Python has none.

    Raises:
        TypeError: as Python.
    """
    in_place = name not in _SIGNS and name.startswith("i")
    name = name[1:] + ("_" if name in ("iand", "ior") else "") if in_place else name
    if name not in _SIGNS or (type(a) is not Tensor and type(b) is not Tensor):
        return
    shown = [repr("NoneType" if x is None else x.type.dtype.type().item().__class__.__name__) for x in (a, b)]
    if name in ("lt", "le", "gt", "ge"):
        raise TypeError(f"{_SIGNS[name]!r} not supported between instances of {shown[0]} and {shown[1]}")
    raise TypeError(f"unsupported operand type(s) for {_SIGNS[name]}{'=' * in_place}: {shown[0]} and {shown[1]}")


def of_sequence(name: str, a: Any, b: Any) -> Any:
    """An operator between a traced scalar and a list or tuple, where Python does not ask NumPy; else NotImplemented.

    Raises:
        TypeError: as Python.
        Restart, LeftToPython: a sequence is repeated, as often as data says.
    """
    x, items = (b, a) if type(a) in (list, tuple) else (a, b)
    if type(x) is not Tensor or not x.is_traced or x.type.kind == "array":
        return NotImplemented
    base = name[1:] + ("_" if name in ("iand", "ior") else "") if name not in _BINARY else name
    if base == "mul":
        if x.type.dtype.kind not in "iub" or (x.type.kind == "np_scalar" and x.type.dtype.kind == "b"):
            kind = x.type.dtype.type().item().__class__.__name__ if x.type.is_python else f"numpy.{x.type.dtype}"
            raise TypeError(f"can't multiply sequence by non-int of type {kind!r}")
        count = operator.index(x)
        return _AUGMENTED["imul"](items, count) if name == "imul" and items is a else items * count
    if not x.type.is_python or (name == "iadd" and type(a) is list):
        return NotImplemented
    if base in ("eq", "ne"):
        return base == "ne"
    shown = [repr((y.type.dtype.type().item().__class__ if type(y) is Tensor else type(y)).__name__) for y in (a, b)]
    if base in ("lt", "le", "gt", "ge"):
        raise TypeError(f"{_SIGNS[base]!r} not supported between instances of {shown[0]} and {shown[1]}")
    if base in _SIGNS:
        sign = _SIGNS[base] if base == name else f"{_SIGNS[base].partition(' ')[0]}="
        raise TypeError(f"unsupported operand type(s) for {sign}: {shown[0]} and {shown[1]}")
    return NotImplemented


_SEQUENCES = frozenset((list, tuple))
_RANGES = frozenset((range, iteration.Range))
#: Operators that do not look into a text.
_JOINING = frozenset(("add", "mod", "mul", "is_", "is_not"))


def _meets_sequence(a: Any, b: Any) -> bool:
    """Whether a list or tuple with traced items meets a number or an array of NumPy's that Python knows."""
    x, items = (b, a) if type(a) in _SEQUENCES else (a, b)
    known = isinstance(x, np.generic | np.ndarray) and x.dtype.kind in "biufc"
    return known and type(items) in _SEQUENCES and iteration.any_traced(items)


#: Functions of `operator` to the method of a tracer that does it, its name, and how many operands it takes.
FUNCTIONS: Final[dict[int, tuple[str, str, int]]] = {
    id(getattr(operator, name)): (method, name, count)
    for method, names, count in (("binary", _BINARY, 2), ("unary", _UNARY, 1), ("augmented", _AUGMENTED, 2))
    for name in names
    if hasattr(operator, name)
}


class Operators(Members):
    """What a tracer does for operators, tests and names."""

    #: The errors that were handled where each open `try` began, None mostly.
    errors_around: list[BaseException | None]

    def binary(self, name: str, a: Any, b: Any) -> Any:
        kind_a, kind_b = type(a), type(b)
        if kind_a is Poison or kind_b is Poison:
            (a if kind_a is Poison else b).fail()
        if kind_a is OneOf:
            return options.choose(self, a, lambda x: self.binary(name, x, b))
        if kind_b is OneOf:
            return options.choose(self, b, lambda x: self.binary(name, a, x))
        if a is None or b is None:
            refuse_none(name, a, b)
        if kind_a is str and name == "mod":
            text = texts.percent(self, a, b)
            if text is not NotImplemented:
                return text
        if self.mode.shown and name not in _JOINING and (texts.is_marked(a) or texts.is_marked(b)):
            texts.refuse(self)
        if name in ("is_", "is_not") and a is not b:
            if kind_a is Tensor or kind_b is Tensor:
                found = identity.same(self.mode, a, b, self.outside.keep_apart)
                return found if name == "is_" else self.not_(found)
            self.outside.keep_apart(a, b)
        if name in ("in_", "not_in"):
            if kind_a is Tensor and (kind_b is range or kind_b is iteration.Range) and not a.type.shape:
                found = iteration.contains(self, a, b)
            else:
                found = entrust.contains(self, a, b)
            return found if name == "in_" else self.not_(found)
        if self.mode.kinds and (kinds.tag_of(self.mode, a) or kinds.tag_of(self.mode, b)):
            try:
                a, b = kinds.operands(self.mode, name, (a, b))
            except kinds.Open as answer:
                return self.by_kind(answer, lambda: self.binary(name, a, b))
            return kinds.tag_result(self.mode, name, (a, b), _BINARY[name](a, b))
        if self.mode.kinds and kinds.in_sequence(self.mode, a, b):
            try:
                a, b = kinds.told_in(self.mode, a), kinds.told_in(self.mode, b)
            except kinds.Open as answer:
                return self.by_kind(answer, lambda: self.binary(name, a, b))
        if kind_a in PLAIN and kind_b in PLAIN:
            if kind_a in _SEQUENCES or kind_b in _SEQUENCES:
                found = of_sequence(name, a, b)
                if found is NotImplemented:
                    found = comparing.sequences(self, name, a, b)
                if found is not NotImplemented:
                    return found
            return _BINARY[name](a, b)
        if _meets_sequence(a, b):
            return self.binary(name, self._as_traced(a), self._as_traced(b))
        if kind_a in _RANGES and kind_b is Tensor and not b.type.is_python:
            return self.binary(name, wrap(self.mode, self.mode.lift(a)), b)
        if kind_b in _RANGES and kind_a is Tensor and not a.type.is_python:
            return self.binary(name, a, wrap(self.mode, self.mode.lift(b)))
        if not self._is_user_operator(name, kind_a, kind_b):
            found = _BINARY[name](a, b)
            self.outside.reads.made(found)
            return self.mode.lifted(found) if self.mode.lifts and type(found) is np.ndarray else found
        plain = name.rstrip("_")
        method, mirrored = self.member(kind_a, f"__{plain}__"), self.member(kind_b, _mirrored(plain))
        order = [(method, a, b), (mirrored, b, a)]
        if kind_b is not kind_a and issubclass(kind_b, kind_a) and isinstance(mirrored, FunctionType):
            order.reverse()
        for f, x, y in order:
            if isinstance(f, FunctionType):
                result = self.call(f, x, y)
                if result is not NotImplemented:
                    return result
            elif f is object.__ne__:  # the opposite of a user's `__eq__`
                equal = self.member(type(x), "__eq__")
                result = self.call(equal, x, y) if isinstance(equal, FunctionType) else NotImplemented
                if result is not NotImplemented:
                    return self.not_(result)
            elif f is not None and x is a:
                result = f(x, y)
                if result is not NotImplemented:
                    return result
        return _BINARY[name](a, b)

    def _as_traced(self, x: Any) -> Any:
        """A number or an array of NumPy's as a traced one."""
        if isinstance(x, np.generic):
            return wrap(self.mode, self.mode.builder.constant(x))
        return self.mode.lifted(x) if isinstance(x, np.ndarray) else x

    def _is_user_operator(self, name: str, *kinds: type) -> bool:
        plain = name.rstrip("_")
        return any(
            isinstance(self.member(k, "__eq__" if plain == "ne" else f"__{plain}__"), FunctionType)
            or isinstance(self.member(k, f"__{plain}__"), FunctionType)
            or isinstance(self.member(k, _mirrored(plain)), FunctionType)
            for k in kinds
            if k not in PLAIN and not is_opaque_module(k.__module__)
        )

    def augmented(self, name: str, a: Any, b: Any) -> Any:
        a = self.use(a)
        if type(a) is OneOf:
            return options.choose(self, a, lambda x: self.augmented(name, x, b))
        if type(b) is OneOf:
            return options.choose(self, b, lambda x: self.augmented(name, a, x))
        if a is None or b is None:
            refuse_none(name, a, b)
        if isinstance(a, np.ndarray):
            a = self.outside.static.before_write(a, b)
        kind = type(a)
        if self.mode.kinds and (kinds.tag_of(self.mode, a) or kinds.tag_of(self.mode, b)):
            try:
                a, b = kinds.operands(self.mode, name, (a, b))
            except kinds.Open as answer:
                return self.by_kind(answer, lambda: self.augmented(name, a, b))
            return kinds.tag_result(self.mode, name, (a, b), _AUGMENTED[name](a, b))
        if self.mode.kinds and kinds.in_sequence(self.mode, a, b):
            try:
                a, b = kinds.told_in(self.mode, a), kinds.told_in(self.mode, b)
            except kinds.Open as answer:
                return self.by_kind(answer, lambda: self.augmented(name, a, b))
        if kind in _SEQUENCES or type(b) in _SEQUENCES:
            found = of_sequence(name, a, b)
            if found is not NotImplemented:
                return found
            if kind is not list and not isinstance(a, np.ndarray) and _meets_sequence(a, b):
                return self.binary(name[1:] + ("_" if name in ("iand", "ior") else ""), a, b)
        if kind not in PLAIN and not is_opaque_module(kind.__module__):
            method = self.member(kind, f"__{name}__")
            if isinstance(method, FunctionType):
                result = self.call(method, a, b)
                if result is not NotImplemented:
                    return result
            base = name[1:] + ("_" if name in ("iand", "ior") else "")
            if self._is_user_operator(base, kind, type(b)):
                return self.binary(base, a, b)
        found = _AUGMENTED[name](a, b)
        if kind not in PLAIN:
            self.outside.reads.made(found)
        return self.mode.lifted(found) if self.mode.lifts and type(found) is np.ndarray else found

    def by_kind(self, answer: kinds.Open, compute: Callable[[], Any]) -> Any:
        """What an operation gives, as a branch on the kind of an operand: each side knows it."""

        def side(holds: bool) -> Callable[[], Any]:
            def run() -> Any:
                self.mode.known_flags[answer.flag] = holds
                try:
                    return compute()
                finally:
                    self.mode.known_flags.pop(answer.flag, None)

            return run

        return control_flow.choose(self.regions, wrap(self.mode, answer.flag), side(True), side(False))

    def iterable(self, x: Any) -> Any:
        """What a comprehension or an unpacking goes through."""
        if type(x) in PLAIN:
            return x
        if self.regions.opened and hasattr(type(x), "__next__"):
            self.regions.check_iterator(x)
        return entrust.iterable(self, x)

    def unary(self, name: str, x: Any) -> Any:
        if type(x) is OneOf:
            return options.choose(self, x, lambda option: self.unary(name, option))
        if self.mode.kinds and kinds.tag_of(self.mode, x):
            try:
                values = kinds.operands(self.mode, name, (x,))
            except kinds.Open as answer:
                return self.by_kind(answer, lambda: self.unary(name, x))
            return kinds.tag_result(self.mode, name, values, _UNARY[name](values[0]))
        kind = type(x)
        if kind not in PLAIN and not is_opaque_module(kind.__module__):
            method = self.member(kind, f"__{name}__")
            if isinstance(method, FunctionType):
                return self.call(method, x)
        return _UNARY[name](x)

    # --- tests

    def branch(self, test: Any, info: Any) -> Any:
        return control_flow.branch(self.regions, entrust.truth(self, test), info)

    def loop(self, iterable: Any, info: Any) -> Any:
        return control_flow.loop(self.regions, entrust.iterable(self, iterable), info)

    def while_loop(self, info: Any) -> Any:
        return control_flow.while_loop(self.regions, info)

    def decided(self, x: Any) -> bool:
        """A test that Python decides: of a comprehension, a generator, a `case`."""
        truth = self.regions.truth(entrust.truth(self, x))
        if isinstance(truth, Value):
            return self.mode.assume(truth, "a test in a comprehension, a generator or a `case`")
        return truth

    def subject(self, x: Any) -> Any:
        """What a `case` looks into.

        Raises:
            TraceError, Restart: it is of several types.
        """
        if isinstance(x, Poison):
            x.fail()
        try:
            return kinds.told_in(self.mode, x)
        except kinds.Open:
            self.mode.fail("a `case` depends on the class of a number, which is data", "test it with isinstance().")

    def not_(self, x: Any) -> Any:
        return control_flow.logical_not(self.regions, entrust.truth(self, x))

    def and_(self, a: Any, b: Callable[[], Any]) -> Any:
        return control_flow.choose(self.regions, entrust.truth(self, a), b, lambda: a)

    def or_(self, a: Any, b: Callable[[], Any]) -> Any:
        return control_flow.choose(self.regions, entrust.truth(self, a), lambda: a, b)

    def choose(self, test: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        return control_flow.choose(self.regions, entrust.truth(self, test), a, b)

    def chain(self, first: Any, *links: tuple[str, Callable[[], Any]]) -> Any:
        name, get = links[0]
        right = control_flow.operand(get)
        result = self.binary(name, first, right)
        if len(links) == 1:
            return result
        return self.and_(result, lambda: self.chain(right, *links[1:]))

    def assert_(self, test: Any, message: Callable[[], Any] | None) -> None:
        control_flow.check(self.regions, test, message)

    def handle(self, *kinds: Any) -> None:
        """A `try` with handlers for these exceptions begins."""
        found: list[type[BaseException]] = []
        for kind in kinds:
            found += kind if isinstance(kind, tuple) else (kind,)
        self.mode.handled.append(tuple(found))
        self.errors_around.append(sys.exc_info()[1])

    def handled(self) -> None:
        """It ends, or is left by an error."""
        kinds, error = self.mode.handled.pop(), sys.exc_info()[1]
        if error is not self.errors_around.pop() and isinstance(error, Exception) and isinstance(error, kinds):
            self.regions.ask_first_turns(error)

    def look_at_error(self, error: BaseException) -> None:
        """A handler looks at what it takes: errors found while tracing have other texts and classes than NumPy's."""
        if isinstance(error, errors.JitgraphError) or hasattr(error, "__jitgraph_stand_in__"):
            why = f"the {type(error).__name__} of sizes or dtypes that a handler looks at"
            if not self.mode.can_turn_back():
                self.mode.leave(why, "handle it without a name.")
            self.mode.leave_to_python(self.mode.builder.constant(False), why)

    def class_made(self, cls: type) -> type:
        """A class that the function makes itself."""
        self.outside.made_classes[id(cls)] = cls
        return cls

    def context(self, manager: Any) -> Any:
        """A context manager that a `with` enters."""
        return contexts.context(self, manager)  # type: ignore[arg-type]  # the tracer is the only subclass

    def use(self, x: Any) -> Any:
        """A variable that may be unbound is read."""
        if type(x) is Poison and x.unbound:
            x.fail()
        return self.regions.resolve(x) if type(x) is Maybe else x

    def named(self, name: str, x: Any) -> Any:
        """The value of an assignment: what the user calls it is its name in the graph."""
        if type(x) is Tensor and not x._steps:
            value = x._storage.value
            if value is not None and x._storage.mode is self.mode and not value.name and value.producer is not None:
                value.name = name
        return x
