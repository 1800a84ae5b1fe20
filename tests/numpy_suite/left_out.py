"""What of NumPy's tests is not compared, and which refusals are right: each with its reason."""

from __future__ import annotations

import re

#: Functions and methods whose calls are not compared.
LEFT_OUT: dict[str, str] = {
    "np.empty": "its values are undefined",
    "np.empty_like": "its values are undefined",
    "np.shares_memory": "asks about memory; the jitted form sees copies",
    "np.may_share_memory": "asks about memory; the jitted form sees copies",
}

#: Tests whose calls are not compared.
LEFT_OUT_TESTS: dict[str, str] = {
    "test_set_stridesattr": "strides set by hand reach memory that is not the array's",
    "test_small_large": "what `overwrite_input=True` leaves of the argument is undefined",
}

#: Texts of errors, refused before anything is computed, to the reason.
REFUSED: dict[str, str] = {
    r"steps over memory without bounds": "its view reaches memory that no index is checked for",
    r"a number of dtype (float128|complex256)": "extended precision has no machine code of ours",
    r"holds (objects|bytes|text|records|time spans|dates)": "compiled code computes with bools and numbers",
    r"does not support (float128|complex256|longdouble)": "extended precision has no machine code of ours",
    r"tolist\(\) of \d+ elements": "a list of many numbers is made after the call",
    r"its result is bytes|it writes a file": "results are arrays, numbers and containers of them",
    r"flags of the memory|size of an array in place|bytes of the elements": "changes the array object, not its elements",
    r"needs the value of a traced|code that needs its data": "a special method called by hand asks for data at trace time",
    r"needs a traced \w+\[\] as an index": "an array as an axis is data",
    r"frombuffer": "it takes memory that is no array's",
}

#: Functions of which the sign of a zero result is not promised (docs/numerics.md).
NO_ZERO_SIGN = frozenset(
    f"{owner}.{name}"
    for owner in ("np", "ndarray")
    for name in ("max", "min", "amax", "amin", "clip", "maximum", "minimum", "fmax", "fmin")
) | {
    f"np.{u}.{m}" for u in ("maximum", "minimum", "fmax", "fmin") for m in ("reduce", "accumulate", "reduceat", "outer")
}


def refusal(text: str) -> str | None:
    """Why a refusal with this text is right; None if it is a gap."""
    return next((reason for pattern, reason in REFUSED.items() if re.search(pattern, text)), None)
