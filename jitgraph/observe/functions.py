"""Which NumPy functions compiled code has, and how: the table of `docs/functions.md`, made from the records.

Made by `python -m jitgraph functions > docs/functions.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

import numpy as np

from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType
from jitgraph.records import dataclass
from jitgraph.tensor import METHODS, Tensor
from jitgraph.tracing import host, numpy_python
from jitgraph.tracing.host_table import POLYNOMIALS
from jitgraph.xp.core import NUMPY_TABLE
from jitgraph.xp.hosted import UNSUPPORTED_METHODS

COMPILED: Final = "compiled"
INNER_LOOP: Final = "NumPy's inner loop"
TRACED: Final = "traced"
HOST: Final = "host"
AT_TRACE_TIME: Final = "at trace time"
NOT_SUPPORTED: Final = "not supported"

#: Functions of dtypes, sizes and Python objects: they run while tracing, and what they answer holds for all calls.
_STATIC_NAMES: Final = """
    can_cast promote_types min_scalar_type mintypecode issubdtype isdtype isscalar iterable common_type result_type
    broadcast_shapes isrealobj iscomplexobj ndim polynomial.chebyshev.chebpts1 polynomial.chebyshev.chebpts2
"""
_STATIC: Final = {
    *_STATIC_NAMES.split(),
    *(f"polynomial.{module}.{prefix}gauss" for module, prefix in POLYNOMIALS.items()),
}
#: Modules in the table.
_MODULES: Final[tuple[str, ...]] = ("", "linalg", "fft", "emath", "lib.stride_tricks")
#: Modules left out as a whole.
LEFT_OUT: Final[dict[str, str]] = {
    **{module.removeprefix("numpy."): why for module, why in host.REFUSED_MODULES.items()},
    "testing": "`assert_*` functions are called back in their place; the rest is for tests",
    "random": "generators draw from their own streams by calls back; their states are refused",
    "f2py": "a compiler of Fortran", "typing": "types", "exceptions": "classes",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One function: its public name, how compiled code has it, and why not."""

    name: str
    how: str
    why: str = ""


def functions() -> Iterator[Row]:
    """Every public function of the modules in the table."""
    for module in _MODULES:
        space = _module(module)
        for name in _public(space):
            yield _row(f"{module}.{name}" if module else name, getattr(space, name))
    for name in POLYNOMIALS:
        space = _module(f"polynomial.{name}")
        for inner in _public(space):
            if getattr(getattr(space, inner), "__module__", "") == space.__name__:
                yield _row(f"polynomial.{name}.{inner}", getattr(space, inner))


def _module(path: str) -> ModuleType:
    space: Any = np
    for part in path.split(".") if path else ():
        space = getattr(space, part)
    return space  # type: ignore[no-any-return]


def _public(space: ModuleType) -> list[str]:
    found = []
    for name in dir(space):
        x = getattr(space, name)
        if not name.startswith("_") and callable(x) and not isinstance(x, type | ModuleType):
            found.append(name)
    return sorted(found)


def _row(name: str, f: Callable[..., Any]) -> Row:
    if name in _STATIC:
        return Row(name, AT_TRACE_TIME)
    if name in host.REFUSED:
        return Row(name, NOT_SUPPORTED, host.REFUSED[name])
    if f in NUMPY_TABLE:
        return Row(name, INNER_LOOP if f in _inner_loops() else COMPILED)
    if numpy_python.implementation(f) is not None:
        return Row(name, TRACED)
    if host.rule_of(f) is not None:
        return Row(name, HOST)
    return Row(name, NOT_SUPPORTED)


def _inner_loops() -> set[Any]:
    """Functions whose record always goes to NumPy's inner loop."""
    if not _loops:
        double = TensorType(np.dtype("f8"), (3,))
        for defn in REGISTRY.values():
            by_numpy = getattr(defn, "by_numpy", None)
            if by_numpy is not None and by_numpy([double] * max(defn.arity, 1)):
                _loops.update(defn.numpy)
        _loops.add(None)
    return _loops


_loops: set[Any] = set()


def methods() -> Iterator[Row]:
    """Methods and attributes of ndarray."""
    for name in sorted(n for n in dir(np.ndarray) if not n.startswith("_")):
        why = UNSUPPORTED_METHODS.get(name)
        if why is None and not hasattr(Tensor, name):
            why = ""
        yield Row(name, COMPILED) if why is None else Row(name, NOT_SUPPORTED, why)


def ufunc_methods() -> Iterator[Row]:
    """Methods of ufuncs: those with a function of their own for `np.add`."""
    for name in ("reduce", "accumulate", "reduceat", "outer", "at"):
        ufuncs = sum((f, name) in NUMPY_TABLE for f in vars(np).values() if isinstance(f, np.ufunc))
        yield Row(name, COMPILED if ufuncs else NOT_SUPPORTED, f"(of {ufuncs} ufuncs)" if ufuncs else "")


_HEAD: Final = """# NumPy's functions under jit

Made by `python -m jitgraph functions`; a test runs a call of each function that is in the first five groups and
compares it with NumPy.

- **compiled**: machine code, fused with what stands around it.
- **NumPy's inner loop**: as an operator of the graph that runs NumPy's own loop on cached tiles.
- **traced**: NumPy writes the function in Python; its source is traced like the user's.
- **host**: compiled code calls NumPy. The types of the results come from a rule or from calls on small stand-ins while
  tracing; sizes that depend on data are found at each call.
- **at trace time**: answers of dtypes and shapes; NumPy's own answer is used while tracing.
- **not supported**: with a traced value a `TraceError` at the user's line, with the reason.

Functions called without any traced value are NumPy's own.
"""


def table() -> str:
    """The text of `docs/functions.md`."""
    parts = [_HEAD]
    rows = list(functions())
    for how in (COMPILED, INNER_LOOP, TRACED, HOST, AT_TRACE_TIME):
        names = [f"`{r.name}`" for r in rows if r.how == how]
        if names:
            parts.append(f"## {how[0].upper()}{how[1:]} ({len(names)})\n\n{_wrapped(names)}\n")
    refused: dict[str, list[str]] = {}
    for r in rows:
        if r.how == NOT_SUPPORTED:
            refused.setdefault(r.why, []).append(f"`{r.name}`")
    lines = [f"- {why}: {', '.join(names)}" for why, names in refused.items()]
    lines += [f"- `np.{name}`, all of it: {why}" for name, why in LEFT_OUT.items()]
    parts.append("## Not supported\n\n" + "\n".join(lines) + "\n")
    parts.append("## Methods and attributes of ndarray\n\n" + _table_of(methods()) + "\n")
    ufuncs = [f"- `{r.name}`: {r.how} {r.why}".rstrip() for r in ufunc_methods()]
    parts.append("## Methods of ufuncs\n\n" + "\n".join(ufuncs) + "\n")
    return "\n".join(parts)


def _table_of(rows: Iterator[Row]) -> str:
    found = list(rows)
    names = [f"`{r.name}`" for r in found if r.how == COMPILED]
    others = [f"- not supported: `{r.name}` ({r.why})" for r in found if r.how == NOT_SUPPORTED]
    return "\n".join([_wrapped(names), "", *others])


def _wrapped(names: list[str]) -> str:
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) > 116:
            lines.append(line.rstrip())
            line = ""
        line += f"{name} "
    return "\n".join([*lines, line.rstrip()])


__all__ = ["METHODS", "Row", "functions", "methods", "table", "ufunc_methods"]
