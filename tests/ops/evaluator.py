"""A builder that evaluates: gradient rules run on arrays with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph.ir.layouts import layout_of
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType
from jitgraph.ops.create import constant_type


class Evaluator:
    """`b.mul(x, 2.0)` on arrays and numbers: infers, casts and evaluates as a graph of these operators would."""

    def type_of(self, x: Any) -> TensorType:
        if isinstance(x, np.ndarray):
            return TensorType(x.dtype, x.shape, "array", layout_of(x.shape, x.strides, x.itemsize))
        return constant_type(x)

    def apply(self, name: str, *operands: Any, **attrs: Any) -> Any:
        defn = REGISTRY[name]
        signature = defn.infer([self.type_of(x) for x in operands], attrs)
        wanted = signature.operands or (None,) * len(operands)
        cast = [x if d is None else _cast(x, d) for x, d in zip(operands, wanted, strict=True)]
        with np.errstate(all="ignore"):
            result = defn.evaluate(*cast, **attrs)
        if len(signature.results) == 1:
            assert "size" in attrs or np.shape(result) == signature.results[0].shape, name
            assert np.asarray(result).dtype == signature.results[0].dtype, name
        return result

    def __getattr__(self, name: str) -> Any:
        if name not in REGISTRY:
            raise AttributeError(name)
        return lambda *operands, **attrs: self.apply(name, *operands, **attrs)


def _cast(x: Any, dtype: np.dtype) -> Any:
    return x.astype(dtype, copy=False) if isinstance(x, np.ndarray) else np.asarray(x).astype(dtype)[()]
