"""NumPy's functions that compiled code calls back (`host.TABLE`): each has a rule for its results or is probed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from jitgraph import errors
from jitgraph.ir.types import TensorType, python_type, scalar_type
from jitgraph.tracing.host import NAMED, PROBE, REFUSED, TABLE, Rule

_FLOAT = np.dtype("f8")
_INT = np.dtype(np.intp)


def rule_for(*functions: Any) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for f in functions:
            TABLE[f] = rule
        return rule

    return register


def _as_type(x: Any) -> TensorType:
    if isinstance(x, TensorType):
        return x
    array = np.asarray(x)
    return TensorType(array.dtype, array.shape)


def _refuse(name: str, why: str) -> NoReturn:
    raise errors.ShapeError(f"{name}: {why}")


#: Also what is an operator unless bits have to be the C library's.
_MATH = (
    "gamma", "lgamma", "fsum", "remainder", "ulp", "dist", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
    "erfc", "cbrt", "pow",
)  # fmt: skip


@rule_for(*[getattr(math, name) for name in _MATH if hasattr(math, name)])
def _math(*_args: Any) -> Any:
    return python_type("py_float")


@rule_for(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, dtype = _as_type(x), np.dtype("c16") if _as_type(fp).dtype.kind == "c" else _FLOAT
    return TensorType(dtype, x.shape) if x.shape else scalar_type(dtype)


@rule_for(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    v = _as_type(v)
    return TensorType(_INT, v.shape) if v.shape else scalar_type(_INT)


def _axes(axis: Any, ndim: int) -> set[int]:
    if axis is None:
        return set(range(ndim))
    return {int(np.lib.array_utils.normalize_axis_index(k, ndim)) for k in np.atleast_1d(axis).tolist()}


def _reduced(t: TensorType, axis: Any, keepdims: bool) -> tuple[Any, ...]:
    axes = _axes(axis, t.ndim)
    return tuple(1 if k in axes else d for k, d in enumerate(t.shape) if keepdims or k not in axes)


def _lines(dtype: np.dtype, shape: tuple[Any, ...]) -> TensorType:
    return TensorType(dtype, shape) if shape else scalar_type(dtype)


@rule_for(np.median, np.nanmedian)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    a = _as_type(a)
    return _lines(np.median(np.ones(1, a.dtype)).dtype, _reduced(a, axis, bool(keepdims)))


@rule_for(np.quantile, np.nanquantile)
def _quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None, function: Callable[..., Any] = np.quantile,
) -> Any:  # fmt: skip
    a, places = _as_type(a), _as_type(q)
    example: Any = q if isinstance(q, (int, float)) else np.full((1,) * places.ndim, 0.5, places.dtype)
    if isinstance(q, (int, float)) or (isinstance(q, TensorType) and q.is_python):
        example = q.dtype.type(0).item() if isinstance(q, TensorType) else type(q)(0)  # weak beside the array's dtype
    weighted = {} if weights is None else {"weights": np.ones(1, _as_type(weights).dtype)}
    dtype = function(np.ones(1, a.dtype), example, method=method, **weighted).dtype
    return _lines(dtype, (*places.shape, *_reduced(a, axis, bool(keepdims))))


@rule_for(np.percentile, np.nanpercentile)
def _percentile(*args: Any, **kwargs: Any) -> Any:
    """Its places are divided by 100, which makes floats of integers; `np.quantile` of integer places keeps integers."""
    return _quantile(*args, **kwargs, function=np.percentile)


@rule_for(np.polyfit)
def _polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    y = _as_type(y)
    if full or cov or not isinstance(deg, int) or y.ndim not in (1, 2):
        raise errors.LeftToPython("np.polyfit with full=, cov= or a list of degrees has no compiled form")
    dtype = np.dtype("c16") if "c" in (y.dtype.kind, _as_type(x).dtype.kind) else _FLOAT
    return TensorType(dtype, (deg + 1, *y.shape[1:]))


#: Learnt by a probe: modules of NumPy to names in them.
PROBED: dict[str, str] = {
    "": """
        sort argsort partition argpartition lexsort sort_complex unique unique_all unique_counts unique_inverse
        unique_values intersect1d union1d setdiff1d setxor1d isin histogram histogram2d histogramdd
        histogram_bin_edges bincount digitize convolve correlate polyfit roots poly polydiv packbits unpackbits
        trim_zeros cov corrcoef einsum unravel_index ravel_multi_index apply_along_axis
        searchsorted median percentile quantile i0
        resize pad insert delete trim_zeros polymul array_equiv require
    """,
    "linalg": """
        solve inv pinv det slogdet eig eigh eigvals eigvalsh svd svdvals qr cholesky lstsq matrix_rank matrix_power
        cond multi_dot tensorsolve tensorinv norm matrix_norm vector_norm
    """,
}
#: The same in modules that NumPy loads when they are first used.
_LAZY: dict[str, str] = {
    "numpy.fft": """
        fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift ifftshift fftfreq
        rfftfreq
    """,
}

#: NumPy's bases of polynomials (their modules are loaded when they are first used), and the prefixes of their names.
POLYNOMIALS: dict[str, str] = {
    "polynomial": "poly", "chebyshev": "cheb", "legendre": "leg", "hermite": "herm", "hermite_e": "herme",
    "laguerre": "lag",
}  # fmt: skip

#: Why others have no compiled form.
_REASONS: dict[str, str] = {
    "its result is text": """
        array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific typename
    """,
    "it reads or writes files, or memory of other libraries": """
        load loadtxt genfromtxt fromfile fromregex save savetxt savez savez_compressed memmap DataSource from_dlpack
        frombuffer
    """,
    "it reads text": "fromstring",
    "it consumes a Python iterator": "fromiter",
    "it steps through memory: loop over x.flat or np.ndindex(x.shape)": "nditer nested_iters",
    "it is about dates": """
        busday_count busday_offset is_busday datetime_as_string datetime_data isnat busdaycalendar
    """,
    "it makes a matrix, a subclass of ndarray": "asmatrix bmat matrix",
    "its result is an array of objects: use np.vectorize": "frompyfunc",
    "it is about the process, not about arrays": """
        get_include get_printoptions getbufsize geterr geterrcall info printoptions set_printoptions setbufsize seterr
        seterrcall show_config show_runtime test linalg.test fft.test errstate
    """,
    "it is about memory, which compiled code lays out": "may_share_memory shares_memory byte_bounds",
    "it plans contractions for Python to read": "einsum_path",
    "it samples a Python function": "polynomial.chebyshev.chebinterpolate",
    "its view steps over memory without bounds": "lib.stride_tricks.as_strided",
}


def _register() -> None:
    for why, names in _REASONS.items():
        REFUSED.update(dict.fromkeys(names.split(), why))
    for module, prefix in POLYNOMIALS.items():
        for name in ("fit", "roots", "fromroots", "mul", "div", "pow", "companion", "weight"):
            NAMED.add((f"numpy.polynomial.{module}", prefix + name))
        NAMED.update((f"numpy.polynomial.{module}", name) for name in (f"{prefix}2poly", f"poly2{prefix}"))
    NAMED.update((module, name) for module, names in _LAZY.items() for name in names.split())
    for module, names in PROBED.items():
        space = getattr(np, module) if module else np
        for name in names.split():
            f = getattr(space, name, None)
            if f is not None:
                TABLE.setdefault(f, PROBE)


_register()
