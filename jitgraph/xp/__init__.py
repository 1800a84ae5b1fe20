"""NumPy's functions for arrays, Tensors and traced values: written once over `tensor.apply`, exported as `jg.*`.

`NUMPY_TABLE` maps NumPy's (and `math`'s) callables to the functions here, `BUILTIN_TABLE` Python's numeric builtins; a
ufunc's method stands under `(ufunc, "reduce")`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph.xp import (  # noqa: F401  # give Tensor its methods; fill the tables
    choosing,
    contraction,
    editing,
    hosted,
    methods,
    padding,
    quantiles,
    scimath,
    selecting,
    vectors,
    windows,
)
from jitgraph.xp.core import EXPORTS, NUMPY_TABLE
from jitgraph.xp.hosted import export
from jitgraph.xp.scalars import BUILTIN_TABLE

quantiles.export()
export()
_ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh",
    "bitwise_invert": "invert", "bitwise_left_shift": "left_shift", "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift", "conj": "conjugate", "mod":
    "remainder", "pow": "power", "true_divide": "divide",
}  # fmt: skip
for _alias, _name in _ALIASES.items():
    EXPORTS[_alias] = EXPORTS[_name]

#: Constants and types of NumPy's that code written for the namespace needs.
CONSTANTS = ("e", "euler_gamma", "inf", "nan", "newaxis", "pi")
DTYPES = (
    "bool_", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
_namespace: dict[str, Any] = {k: v for k, v in EXPORTS.items() if not k.startswith(("emath_", "linalg_"))}
_namespace.update({name: getattr(np, name) for name in (*CONSTANTS, *DTYPES)})
_namespace.update(BUILTIN_TABLE=BUILTIN_TABLE, NUMPY_TABLE=NUMPY_TABLE)
globals().update(_namespace)

__all__ = sorted(_namespace)  # noqa: PLE0605  # made from the tables
