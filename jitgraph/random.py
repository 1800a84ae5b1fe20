"""Random numbers from explicit keys: the same numbers in Python and in compiled code, on every machine.

    key = jg.random.key(0)
    k1, k2 = jg.random.split(key)
    x = jg.random.normal(k1, (1000, 3))

A key is an array of two uint32. The same key gives the same numbers, so split it and use each part once. Element `i` of
a result depends on the key and on `i` alone: it is the hash Threefry-2x32 (20 rounds) of the counter `i` under the key.
All functions are made of integer operations, `+ - * /` and `sqrt`, which are exact or correctly rounded: eager and
compiled results have the same bits. Names and arguments are those of `jax.random`; the numbers are not.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011 (Threefry); Wichura,
"Algorithm AS 241: The Percentage Points of the Normal Distribution", 1988 (PPND16).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

__all__ = [
    "bernoulli", "bits", "categorical", "choice", "exponential", "fold_in", "gumbel", "key", "laplace", "normal",
    "permutation", "rademacher", "randint", "split", "truncated_normal", "uniform",
]  # fmt: skip

Shape = int | Sequence[int]
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA
#: High words of the counters of `split` and `fold_in`, which no element of a result has.
_SPLIT: Final = 0x80000000
_FOLD: Final = 0x40000000


def key(seed: int) -> Any:
    """A key from an integer: uint32[2]."""
    return np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF]).astype(np.uint32)


def split(key: Any, num: int = 2) -> Any:
    """`num` new keys: uint32[num, 2]."""
    low = np.arange(num).astype(np.uint32)
    first, second = _hash(key, np.zeros_like(low) + np.uint32(_SPLIT), low)
    return np.stack([first, second], axis=1)


def fold_in(key: Any, data: int) -> Any:
    """A new key from a key and an integer, such as the number of a step."""
    low = np.array([data & 0xFFFFFFFF]).astype(np.uint32)
    high = np.array([((data >> 32) & 0x3FFFFFFF) | _FOLD]).astype(np.uint32)
    first, second = _hash(key, high, low)
    return np.concatenate([first, second])


def _hash(key: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """Threefry-2x32 with 20 rounds of the counters (high, low): uint32[n] both."""
    k0, k1 = key[0:1], key[1:2]
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    x, y = high + keys[0], low + keys[1]
    for r in range(5):
        for turn in _ROTATIONS[r % 2]:
            x = x + y
            y = ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn))) ^ x
        x = x + keys[(r + 1) % 3]
        y = y + keys[(r + 2) % 3] + np.uint32(r + 1)
    return x, y


def _words(key: Any, size: int) -> tuple[Any, Any]:
    counter = np.arange(size)
    return _hash(key, (counter >> 32).astype(np.uint32), counter.astype(np.uint32))


def _sizes(shape: Shape) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, tuple | list) else (shape,)


def _total(sizes: tuple[Any, ...]) -> Any:
    total = 1
    for d in sizes:
        total = total * d
    return total


def _bits64(key: Any, sizes: tuple[Any, ...]) -> Any:
    first, second = _words(key, _total(sizes))
    return ((first.astype(np.uint64) << np.uint64(32)) | second.astype(np.uint64)).reshape(sizes)


def bits(key: Any, shape: Shape = (), dtype: Any = np.uint32) -> Any:
    """Random bits: uint32 or uint64.

    Raises:
        TypeError: another dtype.
    """
    sizes = _sizes(shape)
    if np.dtype(dtype) == np.uint64:
        return _bits64(key, sizes)
    if np.dtype(dtype) != np.uint32:
        raise TypeError(f"bits: dtype is {np.dtype(dtype)}; there are uint32 and uint64")
    first, second = _words(key, _total(sizes))
    return (first ^ second).reshape(sizes)


def _unit(key: Any, sizes: tuple[Any, ...]) -> Any:
    """float64 in [0, 1): multiples of 2^-53."""
    return (_bits64(key, sizes) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _open_unit(key: Any, sizes: tuple[Any, ...]) -> Any:
    """float64 in (0, 1): odd multiples of 2^-53."""
    return ((_bits64(key, sizes) >> np.uint64(12)).astype(np.float64) * 2.0 + 1.0) * 2.0**-53


def _float(dtype: Any, name: str) -> np.dtype:
    found: np.dtype = np.dtype(dtype)
    if found not in (np.float32, np.float64):
        raise TypeError(f"{name}: dtype is {found}; there are float32 and float64")
    return found


def uniform(key: Any, shape: Shape = (), dtype: Any = np.float64, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Uniform in [minval, maxval).

    Raises:
        TypeError: a dtype that is not float32 or float64.
    """
    sizes = _sizes(shape)
    if _float(dtype, "uniform") == np.float32:
        unit: Any = (bits(key, sizes) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
        return unit * np.float32(maxval - minval) + np.float32(minval)
    return _unit(key, sizes) * (maxval - minval) + minval


def _log(x: Any) -> Any:
    """The natural logarithm for 2^-63 <= x < 2^63, made of exact scalings, one division and a polynomial."""
    exponent = x * 0.0
    for power in (32, 16, 8, 4, 2, 1):
        small = x < 2.0 ** (1 - power)
        x = np.where(small, x * 2.0**power, x)
        exponent = np.where(small, exponent - power, exponent)
        large = x >= 2.0**power
        x = np.where(large, x * 2.0**-power, x)
        exponent = np.where(large, exponent + power, exponent)
    high = x > math.sqrt(2.0)
    x = np.where(high, x * 0.5, x)
    exponent = np.where(high, exponent + 1.0, exponent)
    s = (x - 1.0) / (x + 1.0)
    square = s * s
    series = square * 0.0
    for k in range(23, 1, -2):
        series = (series + 1.0 / k) * square
    return exponent * math.log(2.0) + 2.0 * s * (1.0 + series)


_CENTRE: Final = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_NEAR: Final = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR: Final = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def _ratio(x: Any, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Any:
    parts = []
    for row in coefficients:
        value = x * row[0] + row[1]
        for c in row[2:]:
            value = value * x + c
        parts.append(value)
    return parts[0] / parts[1]


def _normal_quantile(p: Any) -> Any:
    """The standard normal's quantile function for 0 < p < 1."""
    q = p - 0.5
    centre = q * _ratio(0.180625 - q * q, _CENTRE)
    r = np.sqrt(-_log(np.where(q < 0.0, p, 1.0 - p)))
    tail = np.where(r <= 5.0, _ratio(r - 1.6, _NEAR), _ratio(r - 5.0, _FAR))
    return np.where(np.abs(q) <= 0.425, centre, np.where(q < 0.0, -tail, tail))


def normal(key: Any, shape: Shape = (), dtype: Any = np.float64) -> Any:
    """Standard normal, by inversion.

    Raises:
        TypeError: a dtype that is not float32 or float64.
    """
    found = _float(dtype, "normal")
    result = _normal_quantile(_open_unit(key, _sizes(shape)))
    return result.astype(np.float32) if found == np.float32 else result


def truncated_normal(key: Any, lower: float, upper: float, shape: Shape = (), dtype: Any = np.float64) -> Any:
    """Standard normal between the numbers `lower` and `upper`.

    Raises:
        TypeError: a dtype that is not float32 or float64.
    """
    found = _float(dtype, "truncated_normal")
    low, high = 0.5 * math.erfc(-lower / math.sqrt(2.0)), 0.5 * math.erfc(-upper / math.sqrt(2.0))
    p = _open_unit(key, _sizes(shape)) * (high - low) + low
    result = np.clip(_normal_quantile(np.clip(p, 2.0**-60, 1.0 - 2.0**-53)), lower, upper)
    return result.astype(np.float32) if found == np.float32 else result


def exponential(key: Any, shape: Shape = (), dtype: Any = np.float64) -> Any:
    """Exponential with mean 1.

    Raises:
        TypeError: a dtype that is not float32 or float64.
    """
    found = _float(dtype, "exponential")
    result = -_log(_open_unit(key, _sizes(shape)))
    return result.astype(np.float32) if found == np.float32 else result


def gumbel(key: Any, shape: Shape = (), dtype: Any = np.float64) -> Any:
    """Gumbel: the largest of many.

    Raises:
        TypeError: a dtype that is not float32 or float64.
    """
    found = _float(dtype, "gumbel")
    result = -_log(-_log(_open_unit(key, _sizes(shape))))
    return result.astype(np.float32) if found == np.float32 else result


def laplace(key: Any, shape: Shape = (), dtype: Any = np.float64) -> Any:
    """Laplace: the difference of two exponentials.

    Raises:
        TypeError: a dtype that is not float32 or float64.
    """
    found = _float(dtype, "laplace")
    p = _open_unit(key, _sizes(shape))
    tail = _log(2.0 * np.where(p < 0.5, p, 1.0 - p))
    result = np.where(p < 0.5, tail, -tail)
    return result.astype(np.float32) if found == np.float32 else result


def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: Any = np.int64) -> Any:
    """Integers in [minval, maxval): 64 random bits modulo the span, uniform to one part in 2^64 / span."""
    low = np.asarray(minval).astype(np.int64)
    span = (np.asarray(maxval).astype(np.int64) - low).astype(np.uint64)
    drawn = (_bits64(key, _sizes(shape)) % span).astype(np.int64) + low
    return drawn.astype(dtype)


def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None) -> Any:
    """True with probability `p`; the shape is that of `p` by default."""
    sizes = np.shape(p) if shape is None else _sizes(shape)
    return _unit(key, sizes) < p


def rademacher(key: Any, shape: Shape = (), dtype: Any = np.int64) -> Any:
    """-1 or 1."""
    return ((_bits64(key, _sizes(shape)) >> np.uint64(63)).astype(np.int64) * 2 - 1).astype(dtype)


def permutation(key: Any, x: Any) -> Any:
    """The rows of an array, or the numbers below an integer, in random order."""
    size = x if np.ndim(x) == 0 else np.shape(x)[0]
    order = np.argsort(_bits64(key, (size,)), kind="stable")
    return order if np.ndim(x) == 0 else x[order]


def choice(key: Any, a: Any, shape: Shape = (), replace: bool = True, p: Any = None) -> Any:
    """Rows of an array, or numbers below an integer.

    Args:
        replace: rows may come more than once.
        p: the probability of each row; needs `replace`.

    Raises:
        ValueError: `p` without `replace`; more rows than there are.
    """
    sizes = _sizes(shape)
    size = a if np.ndim(a) == 0 else np.shape(a)[0]
    if p is not None:
        if not replace:
            raise ValueError("choice: p needs replace=True")
        sums = np.cumsum(p)
        index = np.searchsorted(sums, _unit(key, sizes) * sums[-1], side="right")
    elif replace:
        index = randint(key, sizes, 0, size)
    else:
        total = _total(sizes)
        if total > size:
            raise ValueError(f"choice: {total} rows without replacement of {size}")
        index = permutation(key, size)[:total].reshape(sizes)
    return index if np.ndim(a) == 0 else a[index]


def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape | None = None) -> Any:
    """Indices along `axis` with probabilities proportional to `exp(logits)`.

    Args:
        shape: of the result; the shape of `logits` without `axis` by default, with further axes in front.
    """
    logits = np.moveaxis(np.asarray(logits), axis, -1)
    batch = np.shape(logits)[:-1]
    sizes = batch if shape is None else _sizes(shape)
    return np.argmax(logits + gumbel(key, (*sizes, np.shape(logits)[-1])), axis=-1)
