"""Kinds of arguments, a function each that makes one: what a dispatcher has to tell apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Make = Callable[[np.random.Generator], Any]


class Own(np.ndarray):
    """A subclass without rules of its own."""


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-8, 9, shape) / 4.0


def _read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


def _unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    made = memory[1:].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


ARRAYS: dict[str, Make] = {
    "vector": lambda r: _floats(r, 5),
    "longer": lambda r: _floats(r, 9),
    "one": lambda r: _floats(r, 1),
    "empty": lambda r: _floats(r, 0),
    "scalar array": lambda r: np.array(_floats(r, 1)[0]),
    "matrix": lambda r: _floats(r, 3, 5),
    "row": lambda r: _floats(r, 1, 5),
    "column": lambda r: _floats(r, 5, 1),
    "columns first": lambda r: np.asfortranarray(_floats(r, 3, 5)),
    "every other": lambda r: _floats(r, 10)[::2],
    "reversed": lambda r: _floats(r, 5)[::-1],
    "transposed": lambda r: _floats(r, 5, 3).T,
    "part": lambda r: _floats(r, 6, 8)[::2, 1:6],
    "three": lambda r: _floats(r, 2, 3, 5).transpose(1, 0, 2),
    "broadcast": lambda r: np.broadcast_to(_floats(r, 5), (3, 5)),
    "float32": lambda r: _floats(r, 5).astype(np.float32),
    "int64": lambda r: r.integers(-9, 9, 5),
    "int8": lambda r: r.integers(-9, 9, 5).astype(np.int8),
    "bool": lambda r: r.integers(0, 2, 5).astype(bool),
    "complex": lambda r: _floats(r, 5) + 1j,
    "other byte order": lambda r: _floats(r, 5).astype(">f8"),
    "read-only": lambda r: _read_only(_floats(r, 5)),
    "unaligned": lambda r: _unaligned(_floats(r, 5)),
    "long long": lambda r: r.integers(-9, 9, 5).astype(np.longlong),
}
NUMBERS: dict[str, Make] = {
    "float": lambda r: float(r.integers(-9, 9)) / 4,
    "nan": lambda r: float("nan"),
    "int": lambda r: int(r.integers(-9, 9)),
    "big int": lambda r: int(r.integers(2**60, 2**62)),
    "huge int": lambda r: 2**70 + int(r.integers(0, 9)),
    "bool value": lambda r: bool(r.integers(0, 2)),
    "complex value": lambda r: complex(int(r.integers(-9, 9)), 2.0),
    "np.float64": lambda r: np.float64(r.integers(-9, 9)),
    "np.float32": lambda r: np.float32(r.integers(-9, 9)),
    "np.int16": lambda r: np.int16(r.integers(-9, 9)),
    "np.bool": lambda r: np.bool_(r.integers(0, 2)),
    "np.complex64": lambda r: np.complex64(r.integers(-9, 9) + 2j),
}
#: Refused, by jitgraph or by the function.
OTHERS: dict[str, Make] = {
    "list": lambda r: _floats(r, 5).tolist(),
    "subclass": lambda r: _floats(r, 5).view(Own),
    "text": lambda r: "text",
    "nothing": lambda r: None,
    "object": lambda r: object(),
    "objects": lambda r: np.array([1, None], object),
}
ALL = {**ARRAYS, **NUMBERS, **OTHERS}
