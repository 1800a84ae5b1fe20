"""NumPy's functions that NumPy itself writes in Python on top of array functions: their own source is traced.

Only those listed in `TRACED` are, as each was compared with NumPy: a `try` inside of NumPy may swallow an error of the
trace. NumPy's private helpers that they call are traced with them. The user's line stays the place of all their ops.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitgraph import errors
from jitgraph.tensor import Tensor
from jitgraph.tracing import host, numpy_programs
from jitgraph.tracing.capture_mode import called_by_user
from jitgraph.tracing.host_table import POLYNOMIALS
from jitgraph.tracing.iteration import any_traced
from jitgraph.xp.core import NUMPY_TABLE
from jitgraph.xp.shape import retyped

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitgraph.tracing.standins import Tracer

#: Modules to the names of their functions that are traced.
TRACED: Final[dict[str, str]] = {
    "numpy": """
        angle sinc logspace geomspace isposinf isneginf isreal iscomplex isrealobj iscomplexobj nan_to_num
        fromfunction tril_indices triu_indices tril_indices_from triu_indices_from diag_indices
        diag_indices_from mask_indices piecewise unwrap apply_over_axes polyval polyadd polysub polyder polyint
        dsplit real_if_close resize gradient common_type iscomplexobj
    """,
    "numpy.lib._polynomial_impl": "__call__",
    "numpy.polynomial._polybase": "__call__ __init__ fit deriv integ linspace mapparms degree",
    "numpy.polynomial.polyutils": "mapdomain mapparms getdomain",
    "numpy.linalg": "cross diagonal matmul matrix_transpose outer tensordot trace vecdot matrix_norm vector_norm",
}
#: What is traced of NumPy's bases of polynomials, by the names behind the prefix of each basis.
_OF_POLYNOMIALS: Final = """
    val val2d val3d grid2d grid3d vander vander2d vander3d add sub mulx der int line valfromroots
"""
#: Sums of series in a loop over their coefficients, the last argument.
_SERIES: Final = {
    (f"numpy.polynomial.{module}", prefix + name)
    for module, prefix in POLYNOMIALS.items()
    for name in ("val", "val2d", "val3d", "grid2d", "grid3d")
    if prefix != "poly"
}
#: Functions that are traced from a program of ours.
PROGRAMS: Final[dict[Any, Any]] = {
    np.apply_along_axis: numpy_programs.apply_along_axis,
    np.vectorize.__call__: numpy_programs.vectorize,
}
_names: Final = {(module, name) for module, names in TRACED.items() for name in names.split()} | {
    (f"numpy.polynomial.{module}", prefix + name)
    for module, prefix in POLYNOMIALS.items()
    for name in _OF_POLYNOMIALS.split()
}
_PUBLIC: Final = {"numpy.linalg": np.linalg}


def implementation(f: Any) -> FunctionType | None:
    """The Python function that is traced for NumPy's `f`; None if it is not listed."""
    program = PROGRAMS.get(f) if isinstance(f, FunctionType | type(np.sort)) else None
    if program is not None:
        return program  # type: ignore[no-any-return]
    if (getattr(f, "__module__", None), getattr(f, "__name__", None)) not in _names:
        return None
    inner = getattr(f, "__wrapped__", f)
    return inner if type(inner) is FunctionType else None


def is_traced_class(cls: type, args: Any, kwargs: Any) -> bool:
    """Whether an object of one of NumPy's classes of polynomials is made of traced values."""
    return cls.__module__.startswith("numpy.polynomial") and traced_values(args, kwargs)


def is_helper(f: Any) -> bool:
    """Whether `f` is one of NumPy's own Python functions, called by one that is traced (not by the user's)."""
    return type(f) is FunctionType and f.__module__.startswith("numpy.") and not called_by_user()


def call(tracer: Tracer, implementation: FunctionType, args: Any, kwargs: Any) -> Any:
    """Trace NumPy's own function."""
    if (implementation.__module__, implementation.__name__) in _SERIES:
        fixed = _with_known_count(tracer, args)
        if fixed is None:
            return host.call(tracer.mode, implementation, host.PROBE, args, kwargs, numpy=True)
        args = fixed
    return tracer.converted(implementation)(*args, **kwargs)


def _with_known_count(tracer: Tracer, args: Any) -> Any:
    """The arguments of a function of `_SERIES`, the sizes of the coefficients fixed by guards; None: too many.

    NumPy's loop over the coefficients begins with other sizes than it ends with, so it has to be unrolled.
    """
    coefficients = args[-1]
    if type(coefficients) is not Tensor or not coefficients.type.ndim:
        count = len(coefficients) if isinstance(coefficients, list | tuple) else np.size(coefficients)
        return args if count <= tracer.unroll_limit else None
    mode, shape = tracer.mode, coefficients.type.shape
    try:
        known = tuple(mode.concrete_dim(d, "len") for d in shape[: len(args) - 1])
    except errors.TraceError:
        return None
    if max(known) > tracer.unroll_limit:
        return None
    return (*args[:-1], retyped(coefficients, (*known, *shape[len(known) :])))


def standins() -> dict[Any, Callable[..., Any]]:
    """A body for each function of NumPy's that is traced or called back: takes the tracer and the arguments."""
    found: dict[Any, Callable[..., Any]] = {
        f: partial(_call, f) for f in (*host.TABLE, *PROGRAMS) if f not in NUMPY_TABLE
    }
    found[np.nditer] = partial(_call, np.nditer)
    for module, names in TRACED.items():
        space = np if module == "numpy" else _PUBLIC.get(module)
        for name in names.split() if space is not None else ():
            f = getattr(space, name, None)
            if f is not None and f not in NUMPY_TABLE:
                found[f] = partial(_call, f)
    return found


def _call(f: Any, tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
    return tracer.call_numpy(f, args, kwargs)


def nothing(*_args: Any, **_kwargs: Any) -> None:
    """The rule of functions that return None."""


def traced_values(args: Any, kwargs: Any) -> bool:
    """Whether there are traced values in arguments, one of NumPy's polynomials included."""
    if not args and not kwargs:
        return False
    return any_traced((args, kwargs)) or bool(args and _is_traced_polynomial(args[0]))


def _is_traced_polynomial(x: Any) -> bool:
    return type(x).__module__.startswith("numpy.polynomial") and any_traced(list(vars(x).values()))
