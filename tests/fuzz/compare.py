"""What a call of a program did, and what differs between two such outcomes."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from unittest import mock

import numpy as np

from tests.fuzz.containers import parts


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results and arguments of a call, or its exception."""

    results: Any
    arguments: list[Any]
    error: BaseException | None = None


def undefined(function: Callable[..., Any], make: Callable[[], list[Any]]) -> bool:
    """Whether a call, in NumPy, does what docs/numerics.md promises nothing about; `make` gives its arguments."""
    return casts_out_of_range(function, make()) or reads_sign_of_nan(function, make())


def casts_out_of_range(function: Callable[..., Any], arguments: list[Any]) -> bool:
    """Whether NumPy, in a call, casts floats to integers that cannot hold them: docs/numerics.md promises nothing."""
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="ignore", invalid="warn"):
        warnings.simplefilter("always")
        with contextlib.suppress(Exception):
            function(*arguments)
    return any("encountered in cast" in str(w.message) for w in seen)


def reads_sign_of_nan(function: Callable[..., Any], arguments: list[Any]) -> bool:
    """Whether NumPy, in a call, is asked for the sign of a NaN, which IEEE 754 leaves open and NumPy's own loops, too."""
    seen = []

    def watched(name: str) -> Any:
        plain = getattr(np, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            sign = np.asarray(args[:2][-1])  # of signbit's only operand, of copysign's second
            seen.append(sign.dtype.kind == "f" and np.isnan(sign).any())
            return plain(*args, **kwargs)

        return mock.patch.object(np, name, call)

    with watched("signbit"), watched("copysign"), np.errstate(all="ignore"), contextlib.suppress(Exception):
        function(*arguments)
    return any(seen)


def run(function: Callable[..., Any], arguments: list[Any]) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            results = function(*arguments)
    except Exception as e:  # noqa: BLE001 - any exception is an outcome
        return Outcome(None, arguments, e)
    return Outcome(results, arguments)


def difference(given: list[Any], expected: Outcome, found: Outcome, *, free_zero: bool, memory: bool = True) -> str:
    """What differs; empty if nothing does.

    Args:
        given: the arguments as they were before the call.
        free_zero: -0.0 and 0.0 are one (the sign of zero in `min` and `max` is not promised).
        memory: writeability and shared memory count, too.
    """
    if expected.error is not None or found.error is not None:
        return _error_difference(given, expected, found, free_zero)
    for k, (a, b) in enumerate(zip(expected.arguments, found.arguments, strict=True)):
        what = value_difference(a, b, free_zero, memory)
        if what:
            return f"argument {k}: {what}"
    first, second = flat(expected.results), flat(found.results)
    if len(first) != len(second) or tree_of(expected.results) != tree_of(found.results):
        return f"structure: {tree_of(expected.results)}, {tree_of(found.results)}"
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        what = value_difference(a, b, free_zero, memory)
        if what:
            return f"result {k}: {what}"
    return alias_difference(first, expected.arguments, second, found.arguments) if memory else ""


def _error_difference(given: list[Any], expected: Outcome, found: Outcome, free_zero: bool) -> str:
    """One of the two calls raised."""
    if expected.error is None or found.error is None:
        error = found.error or expected.error
        return f"{'compiled' if found.error else 'NumPy'} raises {type(error).__name__}: {error}"

    def untouched() -> bool:
        return not any(value_difference(a, b, free_zero=True) for a, b in zip(given, found.arguments, strict=True))

    if not isinstance(found.error, _public(type(expected.error))):
        if line_of(found.error) >= line_of(expected.error) and untouched():
            return ""  # what comes later in the program fails whatever the data: found out while it was traced
        return f"NumPy raises {expected.error!r}, compiled {found.error!r}"
    if untouched():
        return ""  # found out while it was traced, before anything was written
    for k, (a, b) in enumerate(zip(expected.arguments, found.arguments, strict=True)):
        what = value_difference(a, b, free_zero)
        if what:
            return f"argument {k}: {what}"
    return ""


def _public(error: type[BaseException]) -> type[BaseException]:
    """The class that users can name: NumPy has some of its own below TypeError."""
    return TypeError if error.__module__ == "numpy._core._exceptions" and issubclass(error, TypeError) else error


def line_of(error: BaseException | None) -> int:
    """The line of the program that raised: of the traceback, or named in the message."""
    assert error is not None
    named = re.search(r"<fuzz[^>]*>:([0-9]+)", str(error))
    if named is not None:
        return int(named.group(1))
    lines = [t.tb_lineno for t in _frames(error) if t.tb_frame.f_code.co_name == "program"]
    return lines[-1] if lines else 0


def _frames(error: BaseException) -> Iterator[TracebackType]:
    tb = error.__traceback__
    while tb is not None:
        yield tb
        tb = tb.tb_next


def flat(results: Any) -> list[Any]:
    """The leaves of tuples, lists, dicts and the objects of fuzzed programs."""
    inner = parts(results)
    return [results] if inner is None else [leaf for x in inner for leaf in flat(x)]


def tree_of(x: Any) -> Any:
    """The containers of a result, without its leaves."""
    if isinstance(x, tuple | list):
        return type(x).__name__, [tree_of(i) for i in x]
    if isinstance(x, dict):
        return "dict", {k: tree_of(i) for k, i in x.items()}
    if parts(x) is not None:
        return type(x).__name__, {k: tree_of(i) for k, i in vars(x).items()}
    return None


def value_difference(a: Any, b: Any, free_zero: bool, memory: bool = True) -> str:
    if type(a) is not type(b):
        return f"NumPy has a {type(a).__name__} {a!r:.80}, compiled a {type(b).__name__} {b!r:.80}"
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"NumPy has {x.dtype}{x.shape}, compiled {y.dtype}{y.shape}"
    equal = np.asarray(_equal(x, y, free_zero))
    if not np.all(equal):
        at = tuple(int(i) for i in np.argwhere(~equal)[0]) if x.ndim else ()
        return f"{np.count_nonzero(~equal)} of {x.size} elements differ, at {at}: NumPy {x[at]!r}, compiled {y[at]!r}"
    if memory and isinstance(a, np.ndarray) and a.size > 1 and a.flags.writeable != b.flags.writeable:
        return f"writeable: NumPy {a.flags.writeable}, compiled {b.flags.writeable}"
    return ""


def layout_difference(expected: Outcome, found: Outcome) -> str:
    """Which result lies in memory in another way, of two outcomes without a `difference`; empty if none does."""
    for k, (a, b) in enumerate(zip(flat(expected.results), flat(found.results), strict=True)):
        moves = [] if not isinstance(a, np.ndarray) or a.size < 2 else zip(a.strides, b.strides, a.shape, strict=True)
        if any(s != t for s, t, d in moves if d > 1):
            return f"result {k}: strides: NumPy {a.strides}, compiled {b.strides} of shape {a.shape}"
    return ""


def _equal(x: np.ndarray, y: np.ndarray, free_zero: bool) -> Any:
    """Elementwise: the same bits, all NaNs being one."""
    if x.dtype.kind == "c":
        return _equal(x.real, y.real, free_zero) & _equal(x.imag, y.imag, free_zero)
    equal = x == y
    if x.dtype.kind == "f":
        nan = np.isnan(x) & np.isnan(y)
        equal = equal | nan
        if not free_zero:
            equal &= (np.signbit(x) == np.signbit(y)) | nan
    return equal


def alias_difference(first: list[Any], given: list[Any], second: list[Any], mine: list[Any]) -> str:
    """Results that are arguments, or share memory with them or with one another, in one run only."""
    arrays = [k for k, x in enumerate(first) if isinstance(x, np.ndarray)]
    inputs = [k for k, x in enumerate(given) if isinstance(x, np.ndarray)]
    for k in arrays:
        for j in inputs:
            if (first[k] is given[j]) != (second[k] is mine[j]):
                return f"result {k} is argument {j} only in {'NumPy' if first[k] is given[j] else 'compiled code'}"
            a, b = np.shares_memory(first[k], given[j]), np.shares_memory(second[k], mine[j])
            if a != b:
                return f"result {k} shares memory with argument {j} only in {'NumPy' if a else 'compiled code'}"
        for j in arrays:
            if j < k:
                a, b = np.shares_memory(first[k], first[j]), np.shares_memory(second[k], second[j])
                if a != b or (first[k] is first[j]) != (second[k] is second[j]):
                    return f"results {k} and {j} share memory only in {'NumPy' if a else 'compiled code'}"
    return ""
