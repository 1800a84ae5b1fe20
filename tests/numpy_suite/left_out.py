"""NumPy functions whose calls in NumPy's tests are not compared, with the reason of each."""

from __future__ import annotations

#: Name of a function or method to why it is left out.
LEFT_OUT: dict[str, str] = {
    "np.empty": "its values are undefined",
    "np.empty_like": "its values are undefined",
    "np.shares_memory": "asks about memory; the jitted form sees copies",
    "np.may_share_memory": "asks about memory; the jitted form sees copies",
}

#: Functions of which the sign of a zero result is not promised (docs/numerics.md).
NO_ZERO_SIGN = frozenset(
    f"{owner}.{name}"
    for owner in ("np", "ndarray")
    for name in ("max", "min", "amax", "amin", "clip", "maximum", "minimum", "fmax", "fmin")
) | {
    f"np.{u}.{m}" for u in ("maximum", "minimum", "fmax", "fmin") for m in ("reduce", "accumulate", "reduceat", "outer")
}
