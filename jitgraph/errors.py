"""Every exception of jitgraph, each also the builtin that NumPy or Python raises in its place.

JitgraphError
├── TraceError (TypeError)          what cannot be captured, with the user's line and a remedy
│   └── LeftToPython                what only Python can do with data (keys, texts, lists that grow): calls run there
├── ShapeError (ValueError)         shapes that do not fit
├── DTypeError (TypeError)          dtypes that do not fit
├── SignatureError (TypeError)      a call that does not fit the function's parameters
├── StateTypeError (TypeError)      what a loop carries changes its type, or branches answer different types
├── UnsupportedDTypeError           (TraceError and DTypeError) dtypes that NumPy takes and compiled code does not
├── AxisError (numpy AxisError)     an axis out of range
├── IndexingError (IndexError)      an index out of range, a bad index
├── ReadOnlyError (ValueError)      a write to a read-only view
├── GradientError (ValueError)      a gradient where there is none
├── GradientTypeError (TypeError)   a conversion that would lose the gradient
├── MismatchError (InternalError)   `check=True` found a result that differs from NumPy's
├── VerifyError (InternalError)     a graph or loop program that breaks an invariant
└── InternalError (RuntimeError)    a fault of jitgraph's own
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from jitgraph.records import dataclass
from jitgraph.source import SourceLoc


class JitgraphError(Exception):
    """Base of all errors of jitgraph."""


class TraceError(JitgraphError, TypeError):
    """The function does something that cannot be captured in a graph."""


class LeftToPython(TraceError):  # noqa: N818  # a refusal like others, but where calls are made
    """What only Python can do with data: a key, a text, a list that grows in a loop of the data's. Calls run in Python.

    Raised where a function is only traced (`lower`, `explain`, gradients).
    """


class ShapeError(JitgraphError, ValueError):
    """Shapes do not fit."""


class DTypeError(JitgraphError, TypeError):
    """dtypes do not fit, or are not supported."""


class UnsupportedDTypeError(TraceError, DTypeError):
    """A dtype that NumPy takes and compiled code does not."""


class SignatureError(JitgraphError, TypeError):
    """A call does not fit the function's parameters."""


class StateTypeError(JitgraphError, TypeError):
    """What a loop of `jg` carries changes its type, or the branches of `jg.cond` answer different types."""


class AxisError(JitgraphError, np.exceptions.AxisError):
    """An axis is out of range."""

    def __init__(self, message: str) -> None:
        np.exceptions.AxisError.__init__(self, message)


class IndexingError(JitgraphError, IndexError):
    """An index is out of range or of a kind that arrays do not take."""


class ReadOnlyError(JitgraphError, ValueError):
    """The array is read-only (a broadcast, a diagonal, or flagged so)."""


class GradientError(JitgraphError, ValueError):
    """A gradient is asked for where there is none."""


class GradientTypeError(JitgraphError, TypeError):
    """A conversion to plain numbers that would lose the gradient."""


class InternalError(JitgraphError, RuntimeError):
    """An invariant of jitgraph itself is broken."""


class MismatchError(InternalError):
    """Compiled code and NumPy differ."""


class VerifyError(InternalError):
    """A graph breaks an invariant."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text with places for values that only the run knows: `{0:.2f}`."""

    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A value that only the run knows, by number."""

    number: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an exception of the user's is made when compiled code raises it: as the user made it, with the run's values.

    Attributes:
        kind: its class.
        args, attributes: as the exception has them, `Template`s and `Shown`s in place of what only the run knows.
        cause: of `raise ... from`.
        quiet: `raise ... from None`.
        kinds: makes each value of the run what it is in Python (`float`, `np.float32`).
    """

    kind: type[BaseException]
    args: tuple[Any, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    cause: Recipe | None = None
    quiet: bool = False
    kinds: tuple[Any, ...] = ()

    def make(self, values: Sequence[Any]) -> BaseException:
        """The exception, for the values of the failed check."""
        if self.kinds:
            values = [kind(x) for kind, x in zip(self.kinds, values, strict=False)]
        args = tuple([_filled(x, values) for x in self.args])
        if isinstance(self.kind.__init__, FunctionType):
            made = self.kind.__new__(self.kind, *args)
            made.args = args
        else:
            made = self.kind(*args)
        for name, x in self.attributes:
            setattr(made, name, _filled(x, values))
        if self.cause is not None:
            made.__cause__ = self.cause.make(values)
        made.__suppress_context__ = self.quiet
        return made


def _filled(x: Any, values: Sequence[Any]) -> Any:
    if type(x) is Template:
        return x.text.format(*values)
    if type(x) in (tuple, list):
        return type(x)([_filled(i, values) for i in x])
    return values[x.number] if type(x) is Shown else x


def describe(what: str, loc: SourceLoc | None = None, facts: Sequence[str] = (), remedy: str = "") -> str:
    """The text of an error: what is wrong, the user's line, facts (one a line), how to mend it."""
    lines = [what]
    if loc is not None:
        where = f"  {loc.filename.rsplit('/', 1)[-1]}:{loc.line}"
        if loc.function:
            where += f", in {loc.function}"
        lines.append(f"{where}:    {loc.text}" if loc.text else where)
    lines += [f"  {fact}" for fact in facts]
    if remedy:
        lines.append(f"  To mend: {remedy}")
    return "\n".join(lines)
