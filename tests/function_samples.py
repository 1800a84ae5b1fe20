"""A generic call, or several, of every public NumPy function that compiled code knows: what the table in the docs says of it is tested by these.

Parameters are taken from `pool()` by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

L = np.linalg
F = np.fft


def pool() -> dict[str, Any]:
    """Fresh arguments: x, y, z f64[7] (z in [0, 1]); p f64[3]; A, B f64[4, 4], S positive definite; R f64[4, 3]; T
    f64[2, 3, 4]; f f32[7]; i, j i64[7] (small, not negative); u u8[7]; b bool[7]; M bool[4, 4]; c c128[7]; s, t scalars.
    """
    r = np.random.default_rng(7)
    a = r.normal(size=(4, 4))
    return {
        "x": r.normal(size=7),
        "y": np.array([0.5, -1.5, 2.0, -0.0, 3.25, -2.0, 1.0]),
        "z": r.random(7),
        "e": np.linspace(-1, 2, 5),
        "p": np.array([1.0, -3.0, 2.0]),
        "v": r.normal(size=3),
        "w": r.normal(size=3),
        "A": a,
        "B": r.normal(size=(4, 4)),
        "S": a @ a.T + 4 * np.eye(4),
        "R": r.normal(size=(4, 3)),
        "T": r.normal(size=(2, 3, 4)),
        "f": r.normal(size=7).astype(np.float32),
        "i": np.array([3, 0, 2, 3, 1, 5, 2]),
        "j": np.array([1, 2, 4, 3, 6, 5, 0]),
        "u": np.array([7, 0, 255, 16, 3, 128, 9], np.uint8),
        "b": np.array([True, False, True, True, False, False, True]),
        "M": a > 0,
        "c": r.normal(size=7) + 1j * r.normal(size=7),
        "s": np.float64(1.75),
        "t": 2.5,
        "n": 3,
    }


def _written(x: np.ndarray, write: Callable[[np.ndarray], Any]) -> np.ndarray:
    write(x)
    return x


def each(
    module: str, names: str, make: Callable[[Any], Callable[..., Any]]
) -> dict[str, tuple[Callable[..., Any], ...]]:
    """The call that `make` makes of each function named, by public name."""
    space = {"np": np, "np.fft": np.fft, "np.emath": np.emath}[module]
    return {f"{module}.{name}": (make(getattr(space, name)),) for name in names.split()}


def _method(name: str) -> Callable[..., Any]:
    """A call of a method of ndarray without arguments, and along an axis."""
    return lambda x, A, i: (getattr(x, name)(), getattr(A, name)(axis=0), getattr(i, name)())


#: Public name of a function (a method of ndarray, of a ufunc) to calls of it.
CALLS: dict[str, tuple[Callable[..., Any], ...]] = {
    # elementwise
    **each(
        "np",
        """
            absolute abs fabs negative positive sign square ceil floor trunc rint exp expm1 exp2 sin
            cos tan tanh sinh cosh arctan atan arcsinh asinh degrees radians deg2rad rad2deg
            isfinite isinf isnan signbit logical_not conjugate conj cbrt sinc spacing
        """,
        lambda op: lambda x, f, i, u, t: (op(x), op(f), op(t)),
    ),
    **each(
        "np",
        """
            sqrt log log2 log10 log1p reciprocal arcsin asin arccos acos arctanh atanh
        """,
        lambda op: lambda z, s: (op(z), op(z.astype(np.float32)), op(s / 4)),
    ),
    "np.arccosh": (lambda z: np.arccosh(z + 1),),
    "np.acosh": (lambda z: np.acosh(z + 1),),
    **each(
        "np",
        """
            add subtract multiply divide true_divide equal not_equal less less_equal greater
            greater_equal maximum minimum fmax fmin hypot arctan2 atan2 copysign logaddexp
            logaddexp2 fmod mod remainder floor_divide heaviside logical_and logical_or logical_xor
            nextafter
        """,
        lambda op: lambda x, y, s, f, i: (op(x, y), op(x, s), op(f, f[::-1]), op(i, 2.5)),
    ),
    **each("np", "power pow float_power", lambda op: lambda z, y, s: (op(z, y), op(z, 2), op(s, z))),
    **each(
        "np",
        "bitwise_and bitwise_or bitwise_xor gcd lcm",
        lambda op: lambda i, j, u: (op(i, j), op(u, 3), op(u, u[::-1])),
    ),
    **each(
        "np",
        """
            left_shift right_shift bitwise_left_shift bitwise_right_shift
        """,
        lambda op: lambda i, j, u: (op(i, j), op(u, 3)),
    ),
    **each("np", "invert bitwise_not bitwise_invert bitwise_count", lambda op: lambda i, u, b: (op(i), op(u))),
    "np.divmod": (lambda x, y: np.divmod(x, 1.5), lambda i, j: np.divmod(i, j + 1)),
    "np.modf": (lambda x: np.modf(x),),
    "np.frexp": (lambda x: np.frexp(x),),
    "np.ldexp": (lambda x, i: np.ldexp(x, i),),
    "np.clip": (lambda x, y, i: (np.clip(x, -0.5, 0.5), np.clip(x, None, y), np.clip(i, 1, 3)),),
    "np.where": (lambda b, x, y: (np.where(b, x, y), np.where(b, x, 0), np.where(b)),),
    "np.select": (lambda b, x, y: np.select([b, x > 0], [x, y], 5.0),),
    "np.isclose": (lambda x, y: (np.isclose(x, x + 1e-12), np.isclose(x, y)),),
    "np.allclose": (lambda x, y: np.allclose(x, x + 1e-12),),
    "np.array_equal": (lambda x, y: (np.array_equal(x, y), np.array_equal(x, x * 1)),),
    "np.array_equiv": (lambda x, y: (np.array_equiv(x, y), np.array_equiv(x, x + 0), np.array_equiv(x, 1.0)),),
    "np.nan_to_num": (lambda x: np.nan_to_num(np.log(x)),),
    "np.fix": (lambda x, f: (np.fix(x), np.fix(f)),),
    "np.round": (lambda x, f: (np.round(x), np.round(x, 2), np.round(f, 1)),),
    "np.around": (lambda x: np.around(x, 1),),
    "np.angle": (lambda x: (np.angle(x), np.angle(x, deg=True)),),
    "np.real": (lambda x: np.real(x),),
    "np.imag": (lambda x: np.imag(x),),
    "np.isreal": (lambda x: np.isreal(x),),
    "np.iscomplex": (lambda x: np.iscomplex(x),),
    "np.isrealobj": (lambda x: np.isrealobj(x),),
    "np.iscomplexobj": (lambda x: np.iscomplexobj(x),),
    "np.real_if_close": (lambda x: np.real_if_close(x),),
    "np.isposinf": (lambda x: np.isposinf(x / 0.0),),
    "np.isneginf": (lambda x: np.isneginf(x / 0.0),),
    "np.i0": (lambda x: np.i0(x),),
    "np.unwrap": (lambda x: np.unwrap(x * 3),),
    # reductions
    **each(
        "np",
        """
            sum prod max min amax amin mean var std any all ptp nansum nanprod nanmax nanmin nanmean
            nanvar nanstd median nanmedian count_nonzero
        """,
        lambda op: lambda x, A, T, i, f: (op(x), op(A, axis=0), op(T, axis=(0, 2)), op(i)),
    ),
    **each(
        "np",
        """
            argmax argmin nanargmax nanargmin cumsum cumprod nancumsum nancumprod
        """,
        lambda op: lambda x, A, i: (op(x), op(A, axis=0), op(i)),
    ),
    "np.cumulative_sum": (lambda x, A: (np.cumulative_sum(x), np.cumulative_sum(A, axis=1)),),
    "np.cumulative_prod": (lambda x, A: (np.cumulative_prod(x), np.cumulative_prod(A, axis=1)),),
    "np.average": (lambda x, z: (np.average(x), np.average(x, weights=z)),),
    **each("np", "percentile nanpercentile", lambda op: lambda x, A: (op(x, 30), op(A, 30, axis=0), op(x, [30, 15]))),
    **each("np", "quantile nanquantile", lambda op: lambda x, A: (op(x, 0.3), op(A, 0.3, axis=0), op(x, [0.3, 0.15]))),
    "np.diff": (lambda x, A: (np.diff(x), np.diff(A, axis=0), np.diff(x, 2)),),
    "np.ediff1d": (lambda x: (np.ediff1d(x), np.ediff1d(x, to_begin=[0.0], to_end=[1.0, 2.0])),),
    "np.gradient": (lambda x, A: (np.gradient(x), np.gradient(A), np.gradient(x, 0.5)),),
    "np.trapezoid": (lambda x, y: (np.trapezoid(x), np.trapezoid(x, y), np.trapezoid(x, dx=0.1)),),
    "np.cov": (lambda A, x, y: (np.cov(A), np.cov(x, y)),),
    "np.corrcoef": (lambda A: np.corrcoef(A),),
    # making
    "np.zeros": (lambda x: np.zeros(x.shape[0]) + x,),
    "np.ones": (lambda x: np.ones(x.shape) + x,),
    "np.empty": (lambda x: np.empty(x.shape[0]) * 0 == x,),
    "np.full": (lambda x: np.full(x.shape, x[0]),),
    "np.zeros_like": (lambda A: np.zeros_like(A),),
    "np.ones_like": (lambda A: np.ones_like(A),),
    "np.empty_like": (lambda A: np.empty_like(A).shape[0] + A,),
    "np.full_like": (lambda A, s: np.full_like(A, s),),
    "np.arange": (lambda x, n: (np.arange(x.shape[0]), np.arange(n) + n, np.arange(0.5, 3)),),
    "np.linspace": (lambda x, s: (np.linspace(0, 1, x.shape[0]), np.linspace(x[0], s, 5)),),
    "np.logspace": (lambda x, s: (np.logspace(0, s, 5), np.logspace(x[0], s, 4, base=2.0)),),
    "np.geomspace": (lambda z: np.geomspace(z[0] + 1, z[1] + 5, 6),),
    "np.eye": (lambda A: np.eye(A.shape[0]) + A,),
    "np.identity": (lambda A: np.identity(A.shape[0]) + A,),
    "np.diag": (lambda A, x: (np.diag(A), np.diag(x), np.diag(A, 1)),),
    "np.diagflat": (lambda x, A: (np.diagflat(x), np.diagflat(A, 1)),),
    "np.tri": (lambda A: np.tri(A.shape[0]) + A,),
    "np.tril": (lambda A: np.tril(A, -1),),
    "np.triu": (lambda A: np.triu(A),),
    "np.vander": (lambda x: (np.vander(x), np.vander(x, 3, increasing=True)),),
    "np.meshgrid": (lambda x, v: np.meshgrid(x, v), lambda x, v: np.meshgrid(x, v, indexing="ij")),
    "np.indices": (lambda A: np.indices(A.shape),),
    "np.fromfunction": (lambda A: np.fromfunction(lambda i, j: i + 2 * j, (3, 4)) + A[:3],),
    "np.array": (lambda x, s: (np.array(x), np.array([x[0], s, 2.0]), np.array([x, x])),),
    "np.asarray": (lambda x, A: (np.asarray(A) + 1, np.asarray([x[0], 2.0])),),
    "np.asanyarray": (lambda A: np.asanyarray(A) + 1,),
    "np.ascontiguousarray": (lambda A: np.ascontiguousarray(A.T),),
    "np.asfortranarray": (lambda A: np.asfortranarray(A) + 0,),
    "np.asarray_chkfinite": (lambda x: np.asarray_chkfinite(x) + 1,),
    "np.require": (lambda x: np.require(x, np.float64) + 1,),
    "np.copy": (lambda A: np.copy(A),),
    "np.astype": (lambda x: np.astype(x, np.float32),),
    "np.hanning": (lambda x: np.hanning(x.shape[0]) * x,),
    "np.hamming": (lambda x: np.hamming(x.shape[0]) * x,),
    "np.blackman": (lambda x: np.blackman(x.shape[0]) * x,),
    "np.bartlett": (lambda x: np.bartlett(x.shape[0]) * x,),
    "np.kaiser": (lambda x: np.kaiser(x.shape[0], 3.0) * x,),
    # shapes
    "np.reshape": (lambda T: np.reshape(T, (4, 6)) + 0,),
    "np.ravel": (lambda A: np.ravel(A.T),),
    "np.transpose": (lambda T: np.transpose(T, (2, 0, 1)) + 0,),
    "np.permute_dims": (lambda T: np.permute_dims(T, (2, 0, 1)) + 0,),
    "np.matrix_transpose": (lambda T: np.matrix_transpose(T) + 0,),
    "np.swapaxes": (lambda T: np.swapaxes(T, 0, 2) + 0,),
    "np.moveaxis": (lambda T: np.moveaxis(T, 0, -1) + 0,),
    "np.rollaxis": (lambda T: np.rollaxis(T, 2) + 0,),
    "np.expand_dims": (lambda A: np.expand_dims(A, (0, 2)) + 0,),
    "np.squeeze": (lambda A: np.squeeze(A[:, None]) + 0,),
    "np.atleast_1d": (lambda x, s: (np.atleast_1d(s) + 0, np.atleast_1d(x) + 0),),
    "np.atleast_2d": (lambda x: np.atleast_2d(x) + 0,),
    "np.atleast_3d": (lambda A: np.atleast_3d(A) + 0,),
    "np.broadcast_to": (lambda v, R: np.broadcast_to(v, (4, 3)) + R,),
    "np.broadcast_arrays": (lambda v, R: [a + 0 for a in np.broadcast_arrays(v, R)],),
    "np.broadcast_shapes": (lambda v, R: np.zeros(np.broadcast_shapes(v.shape, R.shape)) + R,),
    "np.concatenate": (lambda x, v, A: (np.concatenate([x, v]), np.concatenate((A, A), axis=1)),),
    "np.concat": (lambda x, v: np.concat([x, v]),),
    "np.stack": (lambda x, y: (np.stack([x, y]), np.stack([x, y], axis=-1)),),
    "np.unstack": (lambda R: np.unstack(R + 0, axis=1),),
    "np.hstack": (lambda x, v: np.hstack([x, v]),),
    "np.vstack": (lambda x, y: np.vstack([x, y]),),
    "np.row_stack": (lambda x, y: np.row_stack([x, y]),),  # noqa: NPY201
    "np.dstack": (lambda A, B: np.dstack([A, B]),),
    "np.column_stack": (lambda x, y: np.column_stack([x, y]),),
    "np.block": (lambda A, B: np.block([[A, B], [B, A]]),),
    "np.append": (lambda x, v, A, B: (np.append(x, v), np.append(A, B, axis=0)),),
    "np.insert": (lambda x, A: (np.insert(x, 2, 9.0), np.insert(A, 1, 0.0, axis=1), np.insert(x, [1, 3], [7.0, 8.0])),),
    "np.delete": (lambda x, A: (np.delete(x, 2), np.delete(A, [0, 2], axis=0), np.delete(x, slice(1, 3))),),
    "np.resize": (lambda x: np.resize(x, (3, 5)),),
    "np.pad": (
        lambda x, A: (np.pad(x, 2), np.pad(A, ((1, 2), (0, 1)), constant_values=3.0), np.pad(x, 2, mode="edge")),
        lambda x: (np.pad(x, 3, mode="reflect"), np.pad(x, (2, 1), mode="wrap"), np.pad(x, 2, mode="symmetric")),
        lambda x: (np.pad(x, 2, mode="linear_ramp"), np.pad(x, 2, mode="mean"), np.pad(x, 2, mode="maximum")),
    ),
    "np.repeat": (lambda x, A: (np.repeat(x, 3), np.repeat(A, 2, axis=1)),),
    "np.tile": (lambda x, A: (np.tile(x, 3), np.tile(A, (2, 2))),),
    "np.flip": (lambda A: np.flip(A, 0) + 0,),
    "np.flipud": (lambda A: np.flipud(A) + 0,),
    "np.fliplr": (lambda A: np.fliplr(A) + 0,),
    "np.rot90": (lambda A: (np.rot90(A) + 0, np.rot90(A, 2) + 0),),
    "np.roll": (lambda x, A: (np.roll(x, 2), np.roll(A, 1, axis=0)),),
    "np.split": (lambda A: [a + 0 for a in np.split(A, 2)],),
    "np.array_split": (lambda x: [a + 0 for a in np.array_split(x, 3)],),
    "np.hsplit": (lambda A: [a + 0 for a in np.hsplit(A, 2)],),
    "np.vsplit": (lambda A: [a + 0 for a in np.vsplit(A, 2)],),
    "np.dsplit": (lambda T: [a + 0 for a in np.dsplit(T, 2)],),
    "np.trim_zeros": (lambda i: np.trim_zeros(i - 3),),
    "np.shape": (lambda A: A + np.shape(A)[0],),
    "np.size": (lambda A: A + np.size(A),),
    "np.ndim": (lambda A: A + np.ndim(A),),
    "np.isscalar": (lambda A, s: A + np.isscalar(s),),
    "np.isfortran": (lambda A: A + np.isfortran(A),),
    "np.iterable": (lambda A: A + np.iterable(A),),
    # indexing
    "np.take": (lambda x, i, A: (np.take(x, i), np.take(A, [1, 0], axis=1)),),
    "np.take_along_axis": (lambda A: np.take_along_axis(A, np.argmax(A, axis=1)[:, None], axis=1),),
    "np.put_along_axis": (
        lambda A: _written(A, lambda a: np.put_along_axis(a, np.array([[0], [1], [2], [0]]), 9.0, axis=1)),
    ),
    "np.choose": (lambda x, y, b: np.choose(b, [x, y]),),
    "np.compress": (lambda x, b: np.compress(b, x),),
    "np.extract": (lambda x, b: np.extract(b, x),),
    "np.nonzero": (lambda b, M: (np.nonzero(b), np.nonzero(M)),),
    "np.flatnonzero": (lambda M: np.flatnonzero(M),),
    "np.argwhere": (lambda M: np.argwhere(M),),
    "np.ix_": (lambda A: A[np.ix_([0, 2], [1, 3])] + 0,),
    "np.diagonal": (lambda A: np.diagonal(A) + 0,),
    "np.fill_diagonal": (lambda A: _written(A, lambda a: np.fill_diagonal(a, 7.0)),),
    "np.put": (lambda x: _written(x, lambda a: np.put(a, [1, 3], [7.0, 8.0])),),
    "np.place": (lambda x, b: _written(x, lambda a: np.place(a, b, [7.0, 8.0])),),
    "np.putmask": (lambda x, y, b: _written(x, lambda a: np.putmask(a, b, y)),),
    "np.copyto": (lambda x, y, b: _written(x, lambda a: np.copyto(a, y, where=b)),),
    "np.piecewise": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda a: -a, lambda a: 2 * a]),),
    "np.tril_indices": (lambda A: A[np.tril_indices(4)],),
    "np.triu_indices": (lambda A: A[np.triu_indices(4, 1)],),
    "np.tril_indices_from": (lambda A: A[np.tril_indices_from(A)],),
    "np.triu_indices_from": (lambda A: A[np.triu_indices_from(A)],),
    "np.diag_indices": (lambda A: A[np.diag_indices(4)],),
    "np.diag_indices_from": (lambda A: A[np.diag_indices_from(A)],),
    "np.mask_indices": (lambda A: A[np.mask_indices(4, np.triu)],),
    "np.unravel_index": (lambda i: np.unravel_index(i, (3, 4)),),
    "np.ravel_multi_index": (lambda i: np.ravel_multi_index((i % 2, i % 3), (2, 3)),),
    "np.searchsorted": (lambda e, x: (np.searchsorted(e, x), np.searchsorted(e, x, side="right")),),
    "np.digitize": (lambda x, e: np.digitize(x, e),),
    "np.interp": (lambda x, e: np.interp(x, e, e**2),),
    # order and sets
    "np.sort": (lambda x, A, f: (np.sort(x), np.sort(A, axis=0), np.sort(A, axis=None), np.sort(f)),),
    "np.argsort": (lambda x, A: (np.argsort(x), np.argsort(A, axis=0), np.argsort(A, axis=None)),),
    "np.partition": (lambda x: np.partition(x, 3)[3],),
    "np.argpartition": (lambda x: x[np.argpartition(x, 3)[3]],),
    "np.lexsort": (lambda i, j: np.lexsort((j, i)),),
    "np.sort_complex": (lambda x: np.sort_complex(x),),
    "np.unique": (
        lambda i, A: (np.unique(i), np.unique(A > 0, axis=0)),
        lambda i: np.unique(i, return_index=True, return_inverse=True, return_counts=True),
    ),
    "np.unique_all": (lambda i: np.unique_all(i),),
    "np.unique_counts": (lambda i: np.unique_counts(i),),
    "np.unique_inverse": (lambda i: np.unique_inverse(i),),
    "np.unique_values": (lambda i: np.sort(np.unique_values(i)),),
    "np.intersect1d": (lambda i, j: np.intersect1d(i, j),),
    "np.union1d": (lambda i, j: np.union1d(i, j),),
    "np.setdiff1d": (lambda i, j: np.setdiff1d(i, j[:3]),),
    "np.setxor1d": (lambda i, j: np.setxor1d(i, j[:3]),),
    "np.isin": (lambda i, j: (np.isin(i, j[:3]), np.isin(i, [1, 3])),),
    "np.histogram": (
        lambda x, z: (np.histogram(x), np.histogram(x, bins=4, range=(-1, 1)), np.histogram(x, weights=z)),
    ),
    "np.histogram2d": (lambda x, y: np.histogram2d(x, y, bins=3),),
    "np.histogramdd": (lambda R: np.histogramdd(R, bins=2)[0],),
    "np.histogram_bin_edges": (lambda x: np.histogram_bin_edges(x, bins=5),),
    "np.bincount": (lambda i, z: (np.bincount(i), np.bincount(i, weights=z), np.bincount(i, minlength=9)),),
    "np.packbits": (lambda u: np.packbits(u > 10),),
    "np.unpackbits": (lambda u: np.unpackbits(u),),
    # products, polynomials, signals
    "np.matmul": (lambda A, B, x: np.matmul(A, B),),
    "np.dot": (lambda A, B, x, y: (np.dot(A, B), np.dot(x, y)),),
    "np.vdot": (lambda x, y: np.vdot(x, y),),
    "np.inner": (lambda x, y: np.inner(x, y),),
    "np.outer": (lambda x, v: np.outer(x, v),),
    "np.vecdot": (lambda A, B: np.vecdot(A, B),),
    "np.matvec": (lambda R, v: np.matvec(R, v),),
    "np.vecmat": (lambda A, R: np.vecmat(A[0], R),),
    "np.tensordot": (lambda T, A: (np.tensordot(T, A, axes=1), np.tensordot(A, A, axes=([0, 1], [0, 1]))),),
    "np.kron": (lambda A, R: np.kron(A, R),),
    "np.trace": (lambda A: np.trace(A),),
    "np.cross": (lambda v, w: np.cross(v, w),),
    "np.einsum": (lambda A, B, T: (np.einsum("ij,jk->ik", A, B), np.einsum("ii", A), np.einsum("abc->cb", T) + 0),),
    "np.convolve": (lambda x, v: (np.convolve(x, v), np.convolve(x, v, "same"), np.convolve(x, v, "valid")),),
    "np.correlate": (lambda x, v: (np.correlate(x, v), np.correlate(x, v, "full")),),
    "np.polyval": (lambda p, x: np.polyval(p, x),),
    "np.polyadd": (lambda p, x: np.polyadd(p, x),),
    "np.polysub": (lambda p, x: np.polysub(p, x),),
    "np.polymul": (lambda p, x: np.polymul(p, x),),
    "np.polydiv": (lambda p, x: np.polydiv(x, p),),
    "np.polyder": (lambda p, x: (np.polyder(p), np.polyder(x, 2)),),
    "np.polyint": (lambda p, x: (np.polyint(p), np.polyint(x, 2)),),
    "np.polyfit": (lambda x, y: np.polyfit(x, y, 2),),
    "np.poly": (lambda p: np.poly(p),),
    "np.roots": (lambda p: np.roots(p),),
    "np.apply_along_axis": (
        lambda A: (np.apply_along_axis(np.sum, 0, A), np.apply_along_axis(lambda r: r * 2 + r[0], 1, A)),
    ),
    "np.apply_over_axes": (lambda T: np.apply_over_axes(np.sum, T, [0, 2]),),
    "np.common_type": (lambda A, f: A.astype(np.common_type(f)),),
    "np.result_type": (lambda A, f: A.astype(np.result_type(f, np.int16)),),
    "np.can_cast": (lambda A: A + np.can_cast(A.dtype, np.float32),),
    "np.promote_types": (lambda f: f.astype(np.promote_types(f.dtype, "f8")),),
    "np.min_scalar_type": (lambda A: A + np.min_scalar_type(7).itemsize,),
    "np.mintypecode": (lambda A: A.astype(np.mintypecode(["f", "d"])),),
    "np.issubdtype": (lambda A: A + np.issubdtype(A.dtype, np.floating),),
    "np.isdtype": (lambda A: A + np.isdtype(A.dtype, "real floating"),),
    "np.lib.stride_tricks.sliding_window_view": (
        lambda x, A: (
            np.lib.stride_tricks.sliding_window_view(x, 3) + 0,
            np.lib.stride_tricks.sliding_window_view(A, (2, 3)).mean(axis=(-1, -2)),
            np.lib.stride_tricks.sliding_window_view(A, 2, axis=1) + 0,
        ),
    ),
    # linalg
    "np.linalg.norm": (
        lambda A, x: (L.norm(x), L.norm(A), L.norm(x, 1), L.norm(A, axis=1), L.norm(A, 2), L.norm(A, "nuc")),
    ),
    "np.linalg.vector_norm": (lambda A, x: (L.vector_norm(x), L.vector_norm(A, axis=1)),),
    "np.linalg.matrix_norm": (lambda A: (L.matrix_norm(A), L.matrix_norm(A, ord=2)),),
    "np.linalg.solve": (lambda A, x, B: (L.solve(A, x[:4]), L.solve(A, B)),),
    "np.linalg.inv": (lambda A: L.inv(A),),
    "np.linalg.pinv": (lambda R: L.pinv(R),),
    "np.linalg.det": (lambda A: L.det(A),),
    "np.linalg.slogdet": (lambda A: L.slogdet(A),),
    "np.linalg.eig": (lambda A, S: (L.eig(S), L.eig(A)),),
    "np.linalg.eigvals": (lambda A, S: (L.eigvals(S), L.eigvals(A)),),
    "np.linalg.eigh": (lambda S: L.eigh(S),),
    "np.linalg.eigvalsh": (lambda S: L.eigvalsh(S),),
    "np.linalg.svd": (lambda R: (L.svd(R), L.svd(R, full_matrices=False), L.svd(R, compute_uv=False)),),
    "np.linalg.svdvals": (lambda R: L.svdvals(R),),
    "np.linalg.qr": (lambda R: (L.qr(R), L.qr(R, mode="r"), L.qr(R, mode="complete")),),
    "np.linalg.cholesky": (lambda S: (L.cholesky(S), L.cholesky(S, upper=True)),),
    "np.linalg.lstsq": (lambda R, x: L.lstsq(R, x[:4]),),
    "np.linalg.matrix_rank": (lambda A: L.matrix_rank(A),),
    "np.linalg.matrix_power": (lambda A: (L.matrix_power(A, 3), L.matrix_power(A, -1)),),
    "np.linalg.cond": (lambda A: L.cond(A),),
    "np.linalg.multi_dot": (lambda A, B, R: L.multi_dot([A, B, R]),),
    "np.linalg.tensorsolve": (lambda A, x: L.tensorsolve(A, x[:4]),),
    "np.linalg.tensorinv": (lambda A: L.tensorinv(A, ind=1),),
    "np.linalg.cross": (lambda v, w: L.cross(v, w),),
    "np.linalg.outer": (lambda v, w: L.outer(v, w),),
    "np.linalg.trace": (lambda A: L.trace(A),),
    "np.linalg.diagonal": (lambda A: L.diagonal(A) + 0,),
    "np.linalg.matmul": (lambda A, B: L.matmul(A, B),),
    "np.linalg.matrix_transpose": (lambda R: L.matrix_transpose(R) + 0,),
    "np.linalg.tensordot": (lambda T, A: L.tensordot(T, A, axes=1),),
    "np.linalg.vecdot": (lambda A, B: L.vecdot(A, B),),
    # fft
    **each("np.fft", "fft ifft irfft hfft", lambda op: lambda x, c: (op(x), op(c), op(x, 5))),
    **each("np.fft", "rfft ihfft", lambda op: lambda x: (op(x), op(x, 5))),
    **each("np.fft", "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn", lambda op: lambda A: op(A)),
    "np.fft.fftshift": (lambda x: F.fftshift(x),),
    "np.fft.ifftshift": (lambda x: F.ifftshift(x),),
    "np.fft.fftfreq": (lambda x: F.fftfreq(x.shape[0], 0.5) * x,),
    "np.fft.rfftfreq": (lambda x: F.rfftfreq(7, 0.5) + x[:4],),
    # emath
    **each("np.emath", "sqrt log log2 log10 arccos arcsin arctanh", lambda op: lambda z: op(z + 0.001)),
    "np.emath.logn": (lambda z: np.emath.logn(2, z + 1),),
    "np.emath.power": (lambda z: np.emath.power(z, 2),),
}

#: Calls of methods and attributes of ndarray, by name.
METHOD_CALLS: dict[str, tuple[Callable[..., Any], ...]] = {
    **{
        name: (_method(name),)
        for name in [
            "sum",
            "prod",
            "max",
            "min",
            "mean",
            "var",
            "std",
            "any",
            "all",
            "argmax",
            "argmin",
            "cumsum",
            "cumprod",
            "argsort",
        ]
    },
    "T": (lambda A: A.T + 0,),
    "mT": (lambda T: T.mT + 0,),
    "argpartition": (lambda x: x[x.argpartition(3)[3]],),
    "astype": (lambda x: x.astype(np.float32),),
    "choose": (lambda i, x, y: (i % 2).choose([x, y]),),
    "clip": (lambda x: x.clip(-0.5, 0.5),),
    "compress": (lambda x, b: x.compress(b),),
    "conj": (lambda x: x.conj(),),
    "conjugate": (lambda x: x.conjugate() + 0,),
    "copy": (lambda A: A.copy(),),
    "diagonal": (lambda A: A.diagonal() + 0,),
    "dot": (lambda A, B: A.dot(B),),
    "dtype": (lambda x: x.astype(x.dtype),),
    "fill": (lambda x: _written(x, lambda a: a.fill(2.0)),),
    "flat": (lambda A: A.flat[3] + A.flat[0],),
    "flatten": (lambda A: A.flatten(),),
    "imag": (lambda x: x.imag + 0,),
    "item": (lambda x: (x.item(2), x[1].item()),),
    "itemsize": (lambda x: x * x.itemsize,),
    "nbytes": (lambda x: x * x.nbytes,),
    "ndim": (lambda x: x * x.ndim,),
    "nonzero": (lambda b: b.nonzero(),),
    "partition": (lambda x: _written(x, lambda a: a.partition(3))[3],),
    "put": (lambda x: _written(x, lambda a: a.put([0, 2], 5.0)),),
    "ravel": (lambda A: A.ravel() + 0,),
    "real": (lambda x: x.real + 0,),
    "repeat": (lambda x: x.repeat(2),),
    "reshape": (lambda T: T.reshape(6, 4) + 0,),
    "round": (lambda x: x.round(2),),
    "searchsorted": (lambda e, x: e.searchsorted(x),),
    "shape": (lambda A: A * A.shape[0],),
    "size": (lambda A: A * A.size,),
    "sort": (lambda A: _written(A, lambda a: a.sort(axis=0)),),
    "squeeze": (lambda A: A[:1].squeeze() + 0,),
    "swapaxes": (lambda T: T.swapaxes(0, 1) + 0,),
    "take": (lambda x, i: x.take(i),),
    "tolist": (lambda v: v.tolist(),),
    "trace": (lambda A: A.trace(),),
    "transpose": (lambda T: T.transpose(1, 0, 2) + 0,),
    "view": (lambda x: x.view() + 0,),
    "flags": (
        lambda A: (A * A.flags.c_contiguous, A.T * A.T.flags["F"], A.T * A.T.flags.c_contiguous, A * A.flags.fnc),
    ),
    "strides": (lambda A, T: (A * A.strides[0], T * T.T.strides[1]),),
    "device": (lambda x: x + len(x.device),),
    "to_device": (lambda x: x.to_device("cpu") + 0,),
}

#: Calls of the functions of each basis of polynomials, by their name behind its prefix.
_OF_POLYNOMIALS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "val": lambda f: (
        lambda x, p, A: (f(x, p), f(x, [1.0, 2.0, 0.5, -1.0]), f(x, [2.0]), f(x[:3], A[:, :3], tensor=False))
    ),
    "val2d": lambda f: lambda x, y, A: f(x, y, A),
    "val3d": lambda f: lambda x, y, T: f(x, y, x, T),
    "grid2d": lambda f: lambda v, w, A: f(v, w, A),
    "grid3d": lambda f: lambda v, w, T: f(v, w, v, T),
    "vander": lambda f: lambda x: (f(x, 3), f(x, 0)),
    "vander2d": lambda f: lambda x, y: f(x, y, [1, 2]),
    "vander3d": lambda f: lambda x, y: f(x, y, x, [1, 0, 1]),
    "add": lambda f: lambda p, x: f(p, x),
    "sub": lambda f: lambda p, x: f(p, x),
    "mulx": lambda f: lambda p: f(p),
    "der": lambda f: lambda x, A: (f(x), f(x, 2), f(A, axis=1)),
    "int": lambda f: lambda x, A: (f(x), f(x, 2, k=[1.0, 2.0]), f(A, axis=1)),
    "line": lambda f: lambda s: f(s, 2.0),
    "valfromroots": lambda f: lambda x, p: f(x, p),
    "fit": lambda f: lambda x, y: f(x, y, 2),
    "roots": lambda f: lambda p: f(p),
    "fromroots": lambda f: lambda p: f(p),
    "mul": lambda f: lambda p, v: f(p, v),
    "div": lambda f: lambda p, x: f(x, p),
    "pow": lambda f: lambda p: f(p, 2),
    "companion": lambda f: lambda p: f(p),
    "weight": lambda f: lambda x: f(x),
    "gauss": lambda f: lambda x: f(3)[0] + x[0],
}


def _unary(f: Any) -> Callable[..., Any]:
    return lambda x: f(x)


def polynomial_calls() -> dict[str, tuple[Callable[..., Any], ...]]:
    """Calls of every function of `np.polynomial`'s modules, by public name."""
    found: dict[str, tuple[Callable[..., Any], ...]] = {}
    bases = [
        ("polynomial", "poly"),
        ("chebyshev", "cheb"),
        ("legendre", "leg"),
        ("hermite", "herm"),
        ("hermite_e", "herme"),
        ("laguerre", "lag"),
    ]
    for name, prefix in bases:
        module = getattr(np.polynomial, name)
        for inner, make in _OF_POLYNOMIALS.items():
            f = getattr(module, prefix + inner, None)
            if f is not None:
                found[f"np.polynomial.{name}.{prefix}{inner}"] = (make(f),)
        for inner in (f"{prefix}2poly", f"poly2{prefix}"):
            f = getattr(module, inner, None)
            if f is not None:
                found[f"np.polynomial.{name}.{inner}"] = (_unary(f),)
    cheb = np.polynomial.chebyshev
    found["np.polynomial.chebyshev.chebpts1"] = (lambda x: cheb.chebpts1(7) + x,)
    found["np.polynomial.chebyshev.chebpts2"] = (lambda x: cheb.chebpts2(7) + x,)
    return found
