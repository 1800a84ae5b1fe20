"""Medians, percentiles, quantiles: NumPy itself sorts and interpolates, called back from compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph.xp.core import deliver, mode_in, numpy_function, tensor
from jitgraph.xp.methods import without_operator

NAMES = ("median", "percentile", "quantile", "nanmedian", "nanpercentile", "nanquantile")
#: Where `out` stands among the positional arguments.
_OUT = {"median": 2, "nanmedian": 2}


def _function(name: str) -> None:
    original = getattr(np, name)
    place = _OUT.get(name, 3)

    def body(a: Any, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if len(args) >= place:
            out, args = args[place - 1], (*args[: place - 1], None, *args[place:])
        kwargs.pop("overwrite_input", None)  # the callee has a copy
        if len(args) > place:
            args = (*args[:place], False, *args[place + 1 :])
        mode = mode_in((a, args, tuple(kwargs.values())))
        x = tensor(a, mode)
        if place == 3:  # traced numbers in a list of places are an array
            if args and isinstance(args[0], list | tuple):
                args = (tensor(args[0], mode), *args[1:])
            elif isinstance(kwargs.get("q"), list | tuple):
                kwargs["q"] = tensor(kwargs["q"], mode)
        made = without_operator(original, f"np.{name}", (x, *args), kwargs)
        return deliver(made, out, "unsafe", repeats=not name.endswith("median"))

    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"NumPy's `{name}`."
    numpy_function(original, name=name)(body)


def export() -> None:
    """Fill the table of stand-ins."""
    for name in NAMES:
        _function(name)


__all__ = ["NAMES", "export"]
