"""NumPy while statements are tried: it refuses what is not drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.accidents import Refused, check_in_place, check_product, check_target


def _zero_strides(x: Any) -> bool:
    return isinstance(x, np.ndarray) and any(s == 0 and d > 1 for s, d in zip(x.strides, x.shape, strict=True))


def _sum_guard(function: Any) -> Any:
    def guarded(x: Any, *args: Any, **kwargs: Any) -> Any:
        if _zero_strides(x) and x.dtype.kind in "fc":
            raise Refused("a sum over zero strides")
        return function(x, *args, **kwargs)

    return guarded


def _accumulate_guard(function: Any) -> Any:
    def guarded(x: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None and np.shape(out) != np.shape(x):
            raise Refused("a running sum into an array of another shape: NumPy takes some")
        return function(x, *args, out=out, **kwargs)

    return _into_guard(guarded)


def _into_guard(function: Any) -> Any:
    """Of reductions: they compute in the dtype of `out`; casts of floats out of its range are not promised."""

    def guarded(x: Any, *args: Any, **kwargs: Any) -> Any:
        into = getattr(kwargs.get("out"), "dtype", None)
        numbers = np.asarray(x).real
        if into is not None and into.kind in "iu" and numbers.dtype.kind == "f":
            limits = np.iinfo(into)
            if not np.all((numbers >= limits.min) & (numbers <= limits.max / 2)):
                raise Refused("floats cast to integers out of range")
        return function(x, *args, **kwargs)

    return guarded


def _overlap_guard(function: Any) -> Any:
    def guarded(x: Any, mask: Any, values: Any) -> Any:
        if isinstance(values, np.ndarray) and np.may_share_memory(x, values):
            raise Refused("values that NumPy overwrites before it reads them")
        return function(x, mask, values)

    return guarded


def _product_guard(function: Any, features: frozenset[str]) -> Any:
    """Of `multiply`, `square` and `outer`; their methods are NumPy's."""

    class Product:
        def __call__(self, *operands: Any, out: Any = None, **kwargs: Any) -> Any:
            if out is not None:
                if "products" not in features:
                    check_target(out)
                kwargs["out"] = out
            made = function(*operands, **kwargs)
            check_product(made, *operands)
            return made

        def __getattr__(self, name: str) -> Any:
            return getattr(function, name)

    return Product()


def _in_place_guard(function: Any) -> Any:
    """Of `negative`: NumPy 2.4 gets some strides wrong where it writes over its operand."""

    def guarded(x: Any, *, out: Any = None, **kwargs: Any) -> Any:
        right = function(np.copy(x), **kwargs)
        made = function(x, out=out, **kwargs)
        check_in_place(right, made)
        return made

    return guarded


class Guarded:
    """`np` while statements are tried: refuses what is not promised."""

    def __init__(self, features: frozenset[str]) -> None:
        self.features = features

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name in ("sum", "mean", "var", "std", "trace") and "zero_sums" not in self.features:
            return _sum_guard(found)
        if name == "place":
            return _overlap_guard(found)
        if name in ("multiply", "square", "power", "outer"):
            return _product_guard(found, self.features)
        if name in ("sum", "max"):
            return _into_guard(found)
        if name == "negative":
            return _in_place_guard(found)
        return _accumulate_guard(found) if name == "cumsum" else found
