"""Operators with an effect: checks, raises and calls back into Python. They stay in the order of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgraph import dtypes
from jitgraph.errors import DTypeError, InternalError
from jitgraph.ir.opdef import Attrs, Signature, Trait
from jitgraph.ir.types import TensorType
from jitgraph.ops.control import by_regions
from jitgraph.ops.families import define, keep

EFFECT = frozenset({Trait.ORDERED, Trait.MAY_RAISE, Trait.OPAQUE})


class CheckError(Exception):
    """A check failed while a graph was evaluated in NumPy; the evaluator turns it into the error of the site.

    Attributes:
        site: position in `graph.sites`.
        values: what the site's message is filled with.
    """

    def __init__(self, site: int, values: tuple[Any, ...]) -> None:
        super().__init__(f"check {site} failed: {values}")
        self.site, self.values = site, values


def _check_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    if types[0].dtype != dtypes.BOOL:
        raise DTypeError(f"a check takes a bool, not {types[0].dtype.name}")
    return Signature(keep(types), ())


def _check(condition: Any, *values: Any, site: int, order: int = 0) -> tuple[()]:
    """Raises for the first element in C order where the condition fails, with the values there."""
    failed = np.flatnonzero(~np.asarray(condition, bool))
    if len(failed):
        shape = np.shape(condition)
        first = int(failed[0])
        raise CheckError(site, tuple(np.broadcast_to(v, shape).ravel()[first] if shape else v for v in values))
    return ()


def _raise(*values: Any, site: int, order: int = 0) -> Any:
    raise CheckError(site, values)


def _raise_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    return Signature(keep(types), ())


def _host_infer(types: Sequence[TensorType], attrs: Attrs) -> Signature:
    """Results have the types that the front end found: attr `types` if present."""
    if "types" not in attrs:
        raise InternalError("a `host_call` is emitted with its result types")
    return Signature(keep(types), tuple(attrs["types"]))


define(
    "check",
    "Raises the error of the site unless the condition holds everywhere.",
    _check_infer,
    _check,
    vjp=lambda b, ct, y, *operands, **attrs: (None,) * len(operands),
    traits=EFFECT,
    arity=-1,
)
define("raise", "Raises the error of the site.", _raise_infer, _raise, traits=EFFECT, arity=-1)
define(
    "host_call",
    "Calls the Python function behind the site.",
    _host_infer,
    by_regions("host_call"),
    traits=EFFECT,
    arity=-1,
)
