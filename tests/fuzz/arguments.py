"""Arguments of fuzzed programs: described by data, made anew for each call, equal each time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.strategies import array

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
LAYOUTS = ("C", "C", "C", "F", "permuted", "strided", "padded", "negative", "broadcast", "readonly")
SIZES = (0, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33)
SIZE_NAMES = "nmk"
#: No argument is greater: the interpreters run every program, too.
LARGEST_ARGUMENT = 600

Sizes = dict[str, int]


@dataclass(frozen=True, slots=True)
class Argument:
    """How to make an argument.

    Attributes:
        kind: "array", "scalar" (a NumPy scalar), "int", "float", "bool", "same" (as argument `of`) or "view" (of it).
        dtype: its name; a byte-swapped one begins with ">".
        axes: names of sizes, or "1"; none: a 0-d array.
        view: subscript of a "view".
    """

    kind: str
    dtype: str = "float64"
    axes: tuple[str, ...] = ()
    layout: str = "C"
    seed: int = 0
    special: float = 0.0
    of: int = 0
    view: str = ""


def make_arguments(arguments: list[Argument], sizes: Sizes, call: int) -> list[Any]:
    made: list[Any] = []
    for a in arguments:
        rng = np.random.default_rng([a.seed, call])
        if a.kind == "array":
            made.append(_array(a, sizes, rng))
        elif a.kind == "scalar":
            dtype = np.dtype(a.dtype)
            made.append(dtype.type(rng.integers(0, 5) * (1.5 if dtype.kind in "fc" else 1)))
        elif a.kind == "int":
            made.append(int(rng.integers(-3, 6)))
        elif a.kind == "float":
            made.append(float(rng.choice([0.0, 1.0, -1.5, 0.25, 2.0, 3.75])))
        elif a.kind == "bool":
            made.append(bool(rng.integers(0, 2)))
        elif a.kind == "same":
            made.append(made[a.of])
        else:
            made.append(eval(f"x{a.view}", {"x": made[a.of], "np": np}))
    return made


def _array(a: Argument, sizes: Sizes, rng: np.random.Generator) -> np.ndarray:
    shape = tuple(1 if name == "1" else sizes[name] for name in a.axes)
    dtype = np.dtype(a.dtype)
    native = dtype.newbyteorder("=")
    layout = "C" if not shape or a.layout == "readonly" or (a.layout == "broadcast" and 0 in shape) else a.layout
    domain = (-4.0, 4.0) if dtype.kind == "f" else None
    if native.kind == "c":
        real = np.dtype(f"f{native.itemsize // 2}")
        parts = [array(rng, real, layout, shape, (-4.0, 4.0), a.special) for _ in range(2)]
        x = np.empty_like(parts[0], native) if layout != "broadcast" else np.empty(shape, native)
        x.real, x.imag = parts
    elif native == np.float16:
        x = array(rng, np.dtype(np.float32), layout, shape, (-4.0, 4.0), 0.0).astype(native)
    else:
        x = array(rng, native, layout, shape, domain, a.special)
    if a.dtype in INTEGERS and a.special == 0:
        x = x if not x.flags.writeable else np.remainder(x, np.asarray(13, native), out=x)
    x = np.asarray(x, dtype)
    if a.layout == "readonly":
        x.flags.writeable = False
    return x


def fits(arguments: list[Argument], sizes: Sizes) -> bool:
    """Whether no argument is too large."""
    return all(math.prod(sizes.get(name, 1) for name in a.axes) <= LARGEST_ARGUMENT for a in arguments)
