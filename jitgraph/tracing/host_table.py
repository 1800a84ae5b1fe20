"""NumPy's functions that compiled code calls back (`host.TABLE`), each with a rule for its results or learnt by a probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from jitgraph import errors
from jitgraph.ir.types import TensorType, scalar_type
from jitgraph.tracing.host import PROBE, TABLE, Rule

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


@rule_for(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, dtype = _as_type(x), np.dtype("c16") if _as_type(fp).dtype.kind == "c" else _FLOAT
    return TensorType(dtype, x.shape) if x.shape else scalar_type(dtype)


@rule_for(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    v = _as_type(v)
    return TensorType(_INT, v.shape) if v.shape else scalar_type(_INT)


#: Learnt by a probe: modules of NumPy to names in them.
PROBED: dict[str, str] = {
    "": """
        sort argsort partition argpartition lexsort sort_complex unique unique_all unique_counts unique_inverse
        unique_values intersect1d union1d setdiff1d setxor1d isin in1d histogram histogram2d histogramdd
        histogram_bin_edges bincount digitize convolve correlate polyfit roots poly polydiv packbits unpackbits
        trim_zeros cov corrcoef einsum tensordot kron unravel_index ravel_multi_index apply_along_axis
        apply_over_axes searchsorted nanmedian nanpercentile nanquantile i0 spacing cross place
        mask_indices resize interp
    """,
    "linalg": """
        solve inv pinv det slogdet eig eigh eigvals eigvalsh svd svdvals qr cholesky lstsq matrix_rank matrix_power
        cond multi_dot tensorsolve tensorinv norm matrix_norm vector_norm
    """,
    "fft": """
        fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift ifftshift fftfreq
        rfftfreq
    """,
}


def _register() -> None:
    for module, names in PROBED.items():
        space = getattr(np, module) if module else np
        for name in names.split():
            f = getattr(space, name, None)
            if f is not None:
                TABLE.setdefault(f, PROBE)


_register()
