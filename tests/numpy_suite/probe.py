"""Each NumPy call of a test a second time, jitted, on copies of its arguments; what differs is recorded, the test goes on.

A call is compared if NumPy's own succeeded and its array arguments are plain arrays of a compiled dtype. With
`NUMPY_SUITE_WIDE` so are calls of numbers alone, and what NumPy refuses has to raise the same class.
"""

from __future__ import annotations

import builtins
import collections
import functools
import operator
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

import jitgraph as jg
from jitgraph import errors
from tests.numpy_suite.left_out import LEFT_OUT, LEFT_OUT_TESTS, NO_ZERO_SIGN

#: Calls of one line that are compared: loops over thousands of values say nothing new.
_CALLS_OF_A_LINE = int(os.environ.get("NUMPY_SUITE_CALLS", "250"))
_WIDE = os.environ.get("NUMPY_SUITE_WIDE") == "1"
_SECONDS = 20
_LARGEST = 2_000_000
#: The most items of containers: each is an argument of its own.
_ITEMS = 64


class Plain(Exception):  # noqa: N818
    """A call that is not compared; says why."""


@dataclass(slots=True)
class Report:
    """What was seen.

    Attributes:
        compared: calls that gave the same.
        refused: function and text of a refusal to where it was.
        left: why calls were not compared, and how many.
    """

    compared: collections.Counter[str] = field(default_factory=collections.Counter)
    differ: list[tuple[str, str, str]] = field(default_factory=list)
    refused: dict[tuple[str, str], list[str]] = field(default_factory=lambda: collections.defaultdict(list))
    left: collections.Counter[str] = field(default_factory=collections.Counter)


def _array_ok(x: np.ndarray[Any, Any] | np.generic) -> bool:
    return x.dtype.kind in "biufc" and x.dtype.char not in "gG"


def _numbers(x: Any) -> int:
    """How many numbers there are in arguments."""
    if isinstance(x, tuple | list):
        return sum(_numbers(item) for item in x)
    if isinstance(x, dict):
        return _numbers(list(x.values()))
    if isinstance(x, slice):
        return _numbers((x.start, x.stop, x.step))
    return int(isinstance(x, int | float | complex | np.generic) and not isinstance(x, bool))


def _walk(x: Any, arrays: list[np.ndarray[Any, Any]]) -> None:
    """Collect plain arrays. Raises Plain for what jit does not take."""
    if isinstance(x, np.ndarray):
        if type(x) is not np.ndarray:
            raise Plain("subclass of ndarray")
        if not _array_ok(x):
            raise Plain("dtype without compiled form")
        if x.size > _LARGEST:
            raise Plain("large array")
        arrays.append(x)
    elif isinstance(x, np.generic):
        if not _array_ok(x):
            raise Plain("dtype without compiled form")
    elif isinstance(x, tuple | list):
        for item in x:
            _walk(item, arrays)
    elif isinstance(x, dict):
        for item in x.values():
            _walk(item, arrays)
    elif isinstance(x, slice):
        _walk((x.start, x.stop, x.step), arrays)
    elif isinstance(x, np.dtype):
        if x.kind not in "biufc" or x.char in "gG":
            raise Plain("dtype without compiled form")
    elif isinstance(x, type):
        if issubclass(x, np.generic) and (
            not issubclass(x, np.number | np.bool_) or x in (np.longdouble, np.clongdouble)
        ):
            raise Plain("dtype without compiled form")
        if not issubclass(x, np.generic) and x not in (int, float, bool, complex):
            raise Plain("another type")
    elif x is not None and not isinstance(x, bool | int | float | complex | str | type(...) | type(np._NoValue)):
        raise Plain("object that is no array")


class _Copies:
    """Copies of arrays that share memory as the originals do, with the same strides and flags."""

    def __init__(self, arrays: list[np.ndarray[Any, Any]]) -> None:
        self.made: dict[int, np.ndarray[Any, Any]] = {}
        bounds = sorted({byte_bounds(x) for x in arrays if x.size})
        self.blocks: list[tuple[int, int, np.ndarray[Any, Any]]] = []
        merged: list[list[int]] = []
        for low, high in bounds:
            if merged and low < merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        for low, high in merged:
            if high - low > 8 * _LARGEST:
                raise Plain("large array")
            # As far from a multiple of 64 as the original is, so that alignment is the same.
            room = np.empty(high - low + 128, np.uint8)
            shift = (low - room.ctypes.data) % 64
            block = room[shift : shift + high - low]
            source = np.ndarray((high - low,), np.uint8, buffer=(_bytes_at(low, high - low)))
            block[:] = source
            self.blocks.append((low, high, block))

    def of(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            if id(x) not in self.made:
                self.made[id(x)] = self._copy(x)
            return self.made[id(x)]
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*[self.of(i) for i in x])
        if isinstance(x, tuple | list):
            return type(x)([self.of(i) for i in x])
        if isinstance(x, dict):
            return {k: self.of(v) for k, v in x.items()}
        if isinstance(x, slice):
            return slice(self.of(x.start), self.of(x.stop), self.of(x.step))
        return x

    def _copy(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if not x.size:
            made = np.ndarray(x.shape, x.dtype, np.empty(0, np.uint8), strides=None)
        else:
            at = x.__array_interface__["data"][0]
            block, low = next((b, low) for low, high, b in self.blocks if low <= at < high)
            made = np.ndarray(x.shape, x.dtype, block.data, at - low, x.strides)
        made.flags.writeable = x.flags.writeable
        return made


def _bytes_at(address: int, size: int) -> Any:
    import ctypes

    return (ctypes.c_char * size).from_address(address)


class Probe:
    """What rewritten modules call."""

    slice = staticmethod(builtins.slice)

    def __init__(self) -> None:
        self.report = Report()
        self.jitted: dict[Any, Any] = {}
        self.lines: collections.Counter[tuple[str, int, str]] = collections.Counter()
        self.busy = False

    # --- what the modules do

    def function(self, f: Any) -> Any:
        name = _name(f)
        if name is None or self.busy:
            return f
        return functools.partial(self._call, name, f)

    def getitem(self, x: Any, key: Any) -> Any:
        if type(x) is not np.ndarray or self.busy:
            return x[key]
        return self._call("ndarray[...]", operator.getitem, x, key)

    def setitem(self, value: Any, x: Any, key: Any) -> None:
        if type(x) is np.ndarray and not self.busy:
            self._call("ndarray[...] = ", operator.setitem, x, key, value)
        else:
            x[key] = value

    def binary(self, name: str, x: Any, y: Any) -> Any:
        f = getattr(operator, name)
        if _is_numpy(x) or _is_numpy(y):
            return self._call(f"operator.{name}", f, x, y)
        return f(x, y)

    def unary(self, name: str, x: Any) -> Any:
        f = getattr(operator, name)
        return self._call(f"operator.{name}", f, x) if _is_numpy(x) else f(x)

    def in_place(self, name: str, x: Any, y: Any) -> Any:
        f = getattr(operator, name)
        return self._call(f"operator.{name}", f, x, y) if _is_numpy(x) else f(x, y)

    def in_place_item(self, name: str, x: Any, key: Any, y: Any) -> None:
        self.setitem(self.in_place(name, self.getitem(x, key), y), x, key)

    # --- comparing

    def _call(self, name: str, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.busy or threading.current_thread() is not threading.main_thread():  # of which a call is limited in time
            return f(*args, **kwargs)
        self.busy = True
        try:
            owner = getattr(f, "__self__", None)
            method = _is_numpy(owner)
            given = ((owner, *args) if method else args, kwargs)
            try:
                arrays = self._arrays(name, given)
                copied = _Copies(arrays).of(given)
                kept = [_Copies([x]).of(x) for x in arrays]
            except Plain as e:
                self.report.left[str(e)] += 1
                return f(*args, **kwargs)
            try:
                result = f(*args, **kwargs)
            except Exception as e:
                if _WIDE and not isinstance(e, Warning | FloatingPointError):  # of the error state of a test
                    self._compare_error(name, f, method, e, given, copied, kept)
                raise
            self._compare(name, f, method, result, given, copied, kept)
            return result
        finally:
            self.busy = False

    def _arrays(self, name: str, given: Any) -> list[np.ndarray[Any, Any]]:
        """The arrays of a call that is to be compared. Raises Plain if it is not."""
        if name in LEFT_OUT:
            raise Plain(f"{name}: {LEFT_OUT[name]}")
        frame = _caller()
        if frame.f_code.co_name in LEFT_OUT_TESTS:
            raise Plain(LEFT_OUT_TESTS[frame.f_code.co_name])
        key = (frame.f_code.co_filename, frame.f_lineno, name)
        if self.lines[key] >= _CALLS_OF_A_LINE:
            raise Plain("one line, many times")
        arrays: list[np.ndarray[Any, Any]] = []
        _walk(given, arrays)
        numbers = _numbers(given)
        if not arrays and not (_WIDE and numbers):
            raise Plain("no array")
        if _WIDE and numbers > _ITEMS:
            raise Plain("many numbers")
        undefined = given[1].get("where", True) is not True and given[1].get("out") is None
        if undefined and name.removeprefix("np.") in _UFUNCS:
            raise Plain("where= without out=: what is left out is undefined")
        if name == "np.pad" and "empty" in (*given[0][2:3], given[1].get("mode")):
            raise Plain("np.pad: what stands around is undefined")
        self.lines[key] += 1
        return arrays

    def _compare(
        self, name: str, f: Any, method: bool, result: Any, given: Any, copied: Any, kept: list[np.ndarray[Any, Any]]
    ) -> None:
        place = _place()
        jitted = self._jitted(name, f, method)
        try:
            found = _limited(lambda: jitted(*copied[0], **copied[1]))
        except (errors.TraceError, errors.DTypeError) as e:
            text = str(e).split("\n", maxsplit=1)[0]
            self.report.refused[name, text].append(place)
            return
        except Exception as e:  # noqa: BLE001 - any exception is a finding
            self.report.differ.append(
                (name, place, f"raises {type(e).__name__}: {str(e)[:300]} for {_shown(kept, given)}")
            )
            return
        what = difference(result, found, name in NO_ZERO_SIGN)
        if not what:
            first: list[np.ndarray[Any, Any]] = []
            second: list[np.ndarray[Any, Any]] = []
            _walk(given, first)
            _walk(copied, second)
            what = next(
                (f"argument after: {d}" for a, b in zip(first, second, strict=True) if (d := difference(a, b))), ""
            )
        if what:
            self.report.differ.append((name, place, f"{what} for {_shown(kept, given)}"))
        else:
            self.report.compared[name] += 1

    def _compare_error(
        self,
        name: str,
        f: Any,
        method: bool,
        error: Exception,
        given: Any,
        copied: Any,
        kept: list[np.ndarray[Any, Any]],
    ) -> None:
        place = _place()
        said = f"{type(error).__name__}: {str(error)[:100]}"
        try:
            found = _limited(lambda: self._jitted(name, f, method)(*copied[0], **copied[1]))
        except (errors.TraceError, errors.DTypeError) as e:
            if isinstance(e, type(error)):
                self.report.compared[name] += 1
            else:
                self.report.refused[name, str(e).split("\n", maxsplit=1)[0]].append(f"{place} instead of {said}")
        except Exception as e:  # noqa: BLE001 - its class is what is asked
            if isinstance(e, type(error)):
                self.report.compared[name] += 1
            else:
                text = f"raises {type(e).__name__}: {str(e)[:300]} against {said}"
                self.report.differ.append((name, place, f"{text} for {_shown(kept, given)}"))
        else:
            self.report.differ.append((name, place, f"gives {found!r:.60} against {said} for {_shown(kept, given)}"))

    def _jitted(self, name: str, f: Any, method: bool) -> Any:
        if method:
            attribute = f.__name__
            if name not in self.jitted:
                self.jitted[name] = jg.jit(_method_caller(attribute), numerics="numpy")
            return self.jitted[name]
        if name not in self.jitted:
            self.jitted[name] = jg.jit(_function_caller(f), numerics="numpy")
        return self.jitted[name]


#: Classes of NumPy's numbers.
_SCALARS = frozenset(np.dtype(c).type for c in "?bBhHiIlLefdFD") if _WIDE else frozenset()


def _is_numpy(x: Any) -> bool:
    return type(x) is np.ndarray or type(x) in _SCALARS


def _method_caller(attribute: str) -> Callable[..., Any]:
    space: dict[str, Any] = {}
    exec(f"def call(x, *args, **kwargs):\n    return x.{attribute}(*args, **kwargs)\n", space)
    made: Callable[..., Any] = space["call"]
    return made


def _function_caller(f: Any) -> Callable[..., Any]:
    if f is operator.getitem:
        return lambda x, key: x[key]
    if f is operator.setitem:

        def store(x: Any, key: Any, value: Any) -> None:
            x[key] = value

        return store

    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    return call


def _name(f: Any) -> str | None:
    """The name of a NumPy function, or method of an array; None for anything else."""
    owner = getattr(f, "__self__", None)
    if _is_numpy(owner):
        return f"{'ndarray' if isinstance(owner, np.ndarray) else 'generic'}.{f.__name__}"
    if isinstance(f, type):
        return f"np.{f.__name__}" if f in _SCALARS else None
    if isinstance(f, np.ufunc):
        return f"np.{f.__name__}" if getattr(np, f.__name__, None) is f else None
    if isinstance(owner, np.ufunc):
        return f"np.{owner.__name__}.{f.__name__}" if getattr(np, owner.__name__, None) is owner else None
    name = _NAMES.get(id(f))
    return name[0] if name is not None and name[1] is f else None


def _public() -> dict[int, tuple[str, Any]]:
    found: dict[int, tuple[str, Any]] = {}
    bases = ("polynomial", "chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polyutils")
    spaces = ("emath", "lib.stride_tricks", "fft", "linalg", *(f"polynomial.{base}" for base in bases))
    for path in (*spaces, ""):
        space = operator.attrgetter(path)(np) if path else np
        prefix = f"np.{path}." if path else "np."
        for name in dir(space):
            f = getattr(space, name, None) if not name.startswith("_") else None
            if (
                callable(f)
                and not isinstance(f, type)
                and (getattr(f, "__module__", None) or "numpy").startswith("numpy")
            ):
                found[id(f)] = (prefix + name, f)
    return found


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _NAMES = _public()


_UFUNCS = frozenset(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))


def _caller() -> FrameType:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    assert frame is not None
    return frame


def _place() -> str:
    frame = _caller()
    return f"{frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno} {frame.f_code.co_name}"


def _shown(kept: list[np.ndarray[Any, Any]], given: Any) -> str:
    text = ", ".join(f"{x.dtype.str}{list(x.shape)} strides {list(x.strides)}" for x in kept)
    rest = repr([a for a in given[0] if not isinstance(a, np.ndarray)])[:120] + repr(given[1])[:120]
    values = "; ".join(repr(x.ravel()[:4].tolist()) for x in kept[:3])
    return f"({text}) {rest} values {values}"


class _Slow(Exception):  # noqa: N818
    pass


def _limited(call: Callable[[], Any]) -> Any:
    """The call within a time, without NumPy's warnings."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise _Slow(f"more than {_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def difference(a: Any, b: Any, free_zero: bool = False) -> str:
    """What differs in type, dtype, shape or value; empty if nothing does. All NaNs are equal."""
    # `longlong` and `int64` are two scalar classes of one dtype.
    if type(a) is not type(b) and not (isinstance(a, np.generic) and isinstance(b, np.generic)):
        return f"{type(a).__name__} {a!r:.60} against {type(b).__name__} {b!r:.60}"
    if isinstance(a, tuple | list):
        if len(a) != len(b):
            return f"{len(a)} results against {len(b)}"
        return next((d for x, y in zip(a, b, strict=True) if (d := difference(x, y, free_zero))), "")
    if not isinstance(a, np.ndarray | np.generic):
        return "" if a == b or (a != a and b != b) else f"{a!r:.60} against {b!r:.60}"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape} against {b.dtype}{b.shape}"
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype.kind == "c":
        return difference(x.real, y.real, free_zero) or difference(x.imag, y.imag, free_zero)
    equal = x == y
    if x.dtype.kind == "f":
        nan = np.isnan(x) & np.isnan(y)
        equal = (equal & (free_zero | (np.signbit(x) == np.signbit(y)))) | nan
    if np.all(equal):
        return ""
    at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(equal))[0])
    return f"{np.count_nonzero(~np.asarray(equal))} of {x.size} differ, at {at} {np.atleast_1d(x)[at]!r} against {np.atleast_1d(y)[at]!r}"
