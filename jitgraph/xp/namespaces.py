"""`jg.linalg` and `jg.fft`: NumPy's functions of those names, for arrays, Tensors and traced values."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import numpy as np

from jitgraph.xp.core import NUMPY_TABLE
from jitgraph.xp.hosted import hosted

_LINALG = """
    cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power matrix_rank
    matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv tensorsolve trace vecdot
    vector_norm
"""
_FFT = """
    fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn
"""


def _namespace(space: ModuleType, names: str) -> SimpleNamespace:
    found = {name: getattr(space, name) for name in names.split() if hasattr(space, name)}
    short = space.__name__.removeprefix("numpy.")
    return SimpleNamespace(**{n: NUMPY_TABLE.get(f) or hosted(f"{short}.{n}", f) for n, f in found.items()})


linalg = _namespace(np.linalg, _LINALG)
fft = _namespace(np.fft, _FFT)
