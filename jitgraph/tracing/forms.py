"""Whether data that was read has the form that the annotations of a record say, as far as types go.

Forms are annotations as texts. What is not listed in `_TYPES` is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from jitgraph.ir import dims, graph, types
from jitgraph.pytree import TreeDef
from jitgraph.source import SourceLoc
from jitgraph.tracing import hidden

Test = Callable[[Any], bool]
_TYPES: Final[dict[str, Any]] = {
    "None": type(None), "bool": bool, "int": int, "str": str, "tuple": tuple, "list": list, "dict": dict, "type": type,
    "DimLike": (int, dims.Dim), "Atom": dims.Atom, "Symbol": graph.Symbol, "Site": graph.Site, "Result": graph.Result,
    "Guard": graph.Guard, "SourceLoc": SourceLoc, "AxisMap": types.AxisMap, "IndexMap": types.IndexMap,
    "dtype": np.dtype, "TreeDef": TreeDef, "Place": hidden.Place, "HiddenArg": hidden.HiddenArg,
    "PlaceGuard": hidden.Guard,
}  # fmt: skip
#: Aliases, and forms of fields whose annotations say less, or something else.
_FORMS: Final = {
    "Shape": "tuple[DimLike, ...]",
    "Monomial": "tuple[Atom, ...]",
    "Sequence[Place]": "tuple[Place, ...] | list[Place]",
}
_FIELDS: Final = {
    ("Result", "steps"): "tuple[IndexMap | str | int | dtype | Shape, ...]",
    ("Trace", "guards_python"): "list[PlaceGuard]",
}


def check(value: Any, form: str) -> None:
    """See that a value has a form.

    Raises:
        TypeError: it has not.
    """
    test = _test(form)
    if test is not None and not test(value):
        raise TypeError(f"{type(value).__name__} where {form} belongs")


def check_fields(kind: Any, values: Sequence[Any], names: Sequence[str] = ()) -> None:
    """See that values have the forms of the fields of a dataclass.

    Args:
        names: of the fields; empty: all.

    Raises:
        TypeError: one has not, or they are not as many.
    """
    tests = _tests(kind, tuple(names))
    if len(values) != len(tests):
        raise TypeError(f"{len(values)} fields of {kind.__name__}, not {len(tests)}")
    for value, (name, form, test) in zip(values, tests, strict=True):
        if test is not None and not test(value):
            raise TypeError(f"{name} of {kind.__name__}: {type(value).__name__} where {form} belongs")


@cache
def _tests(kind: Any, names: tuple[str, ...]) -> list[tuple[str, str, Test | None]]:
    fields = kind.__dataclass_fields__
    forms = [(name, _FIELDS.get((kind.__name__, name), str(fields[name].type))) for name in names or fields]
    return [(name, form, _test(form)) for name, form in forms]


@cache
def _test(form: str) -> Test | None:
    """Whether a value has the form; None if any value has."""
    form = _FORMS.get(form, form)
    parts = _parts(form, " | ")
    if len(parts) > 1:
        tests = [_test(part) for part in parts]
        known = [test for test in tests if test is not None]
        return (lambda x: any(test(x) for test in known)) if len(known) == len(tests) else None
    head, _, inner = form.removesuffix("]").partition("[")
    if head == "Literal":
        values = frozenset(text.strip("'") for text in inner.split(", "))
        return lambda x: isinstance(x, str) and x in values
    kind = _TYPES.get(head)
    if kind is None:
        return None
    item = inner.removesuffix(", ...") if inner.endswith(", ...") or head == "list" else ""
    of_items = _test(item) if item else None
    if of_items is None:
        return lambda x: isinstance(x, kind)
    return lambda x: isinstance(x, kind) and all(map(of_items, x))


def _parts(text: str, separator: str) -> list[str]:
    """The parts of a form between separators that are not inside brackets."""
    found, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if not depth and text.startswith(separator, at):
            found.append(text[start:at])
            start = at + len(separator)
    return [*found, text[start:]]
