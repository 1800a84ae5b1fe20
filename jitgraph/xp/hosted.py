"""NumPy's functions without an operator as functions of this namespace: NumPy itself, or a call back in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgraph.modes import TraceMode
from jitgraph.tensor import EAGER, Tensor, assign, current_mode, plain
from jitgraph.xp import flags
from jitgraph.xp.core import EXPORTS, mode_in
from jitgraph.xp.methods import FRONT, without_operator

#: Functions that `jg` exports beside those of its own.
NAMES = [
    "sort",
    "argsort",
    "partition",
    "argpartition",
    "lexsort",
    "sort_complex",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "intersect1d",
    "union1d",
    "setdiff1d",
    "setxor1d",
    "isin",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "bincount",
    "digitize",
    "convolve",
    "correlate",
    "polyfit",
    "polyval",
    "polyadd",
    "polysub",
    "polymul",
    "polyder",
    "polyint",
    "roots",
    "poly",
    "packbits",
    "unpackbits",
    "cov",
    "corrcoef",
    "einsum",
    "unravel_index",
    "ravel_multi_index",
    "searchsorted",
    "interp",
    "i0",
    "angle",
    "sinc",
    "logspace",
    "geomspace",
    "isposinf",
    "isneginf",
    "isreal",
    "iscomplex",
    "unwrap",
    "piecewise",
    "gradient",
    "apply_over_axes",
    "real_if_close",
    "tril_indices",
    "triu_indices",
    "diag_indices",
    "tril_indices_from",
    "triu_indices_from",
    "diag_indices_from",
    "fromfunction",
    "dsplit",
    "resize",
    "spacing",
]


def hosted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function `original` for this namespace."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if mode_in((args, tuple(kwargs.values()))) is None and current_mode() is None:
            return original(*args, **kwargs)
        return without_operator(original, f"np.{name}", args, kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (original.__doc__ or "").strip().split("\n")[0]
    return function


def _in_place(original: Callable[..., Any]) -> Callable[..., Any]:
    """A method of ndarray that reorders it: NumPy's function, whose result is written back."""
    name = original.__name__

    def method(x: Tensor, *args: Any, **kwargs: Any) -> None:
        if x._storage.mode is EAGER:
            getattr(plain(x), name)(*args, **kwargs)
        else:
            assign(x, without_operator(original, f"ndarray.{name}", (x, *args), kwargs))

    method.__name__ = name
    return method


FRONT.flags, FRONT.strides = flags.flags, flags.strides
for _function_in_place in (np.sort, np.partition):
    setattr(FRONT, _function_in_place.__name__, _in_place(_function_in_place))


#: Methods and attributes of ndarray that a traced array does not have, and why.
UNSUPPORTED_METHODS: dict[str, str] = {
    "base": "which object owns the memory is for Python to know",
    "byteswap": "it is about the bytes of the elements",
    "ctypes": "it is an address",
    "data": "it is an address",
    "dump": "it writes a file",
    "dumps": "its result is bytes",
    "getfield": "it is about the bytes of the elements",
    "resize": "it changes the size of an array in place: use np.resize",
    "setfield": "it is about the bytes of the elements",
    "setflags": "it changes flags of the memory",
    "tobytes": "its result is bytes",
    "tofile": "it writes a file",
}


#: Why calls are left to Python rather than refused: what the method answers is all that it does.
_LEFT = ("its result is bytes", "it is about the bytes of the elements")


def _refused(name: str, why: str) -> Callable[..., Any]:
    """A method that a traced array does not have; that of eager ones as before."""
    eager = getattr(FRONT, name)

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        mode = x._storage.mode
        if isinstance(mode, TraceMode):
            (mode.leave if why in _LEFT else mode.fail)(
                f"ndarray.{name} has no compiled form: {why}",
                "keep it outside the jitted function, wrap it with jg.host, or use @jit(fallback='eager').",
            )
        return eager(x, *args, **kwargs)

    method.__name__ = name
    return method


for _name, _why in UNSUPPORTED_METHODS.items():
    if hasattr(FRONT, _name):
        setattr(FRONT, _name, _refused(_name, _why))


def export() -> None:
    """Fill `EXPORTS` with what no family here has."""
    for name in NAMES:
        original = getattr(np, name, None)
        if original is not None and name not in EXPORTS:
            EXPORTS[name] = hosted(name, original)
