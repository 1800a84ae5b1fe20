"""The corpus of loop kernels: what a kernel's file holds, how it is loaded, run once and compared.

A kernel is a file of plain NumPy beside this one; nothing in it knows of a compiler. It holds

- a function of the file's name (helpers beside it), as a NumPy user writes it;
- `SIZES`: tiny (tests), small, medium, large; `initialize(size)`: the arguments, from a seeded generator;
- `WRITES`: the parameters whose arrays the function writes;
- `element_steps(size)`: how many innermost steps a run takes, for times per step;
- `TOLERANCE` (default 0: the same bits): the difference from NumPy, relative to the largest element, that a compiled
  function may have, because it holds functions whose last bits are not promised (docs/numerics.md);
- `numba_variants()`: plain functions, by name, that numba is given; the fastest that is right counts as numba.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).parent
#: Files here that are no kernels.
_OTHERS = ("corpus", "run", "worker")


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in _OTHERS)


@dataclass(frozen=True)
class Kernel:
    """One file of the corpus; see the module's text."""

    name: str
    module: ModuleType

    @property
    def function(self) -> Callable[..., Any]:
        return getattr(self.module, self.name)

    @property
    def tolerance(self) -> float:
        return getattr(self.module, "TOLERANCE", 0.0)

    @property
    def written(self) -> list[int]:
        """Numbers of the arguments that the function writes."""
        parameters = list(inspect.signature(self.function).parameters)
        return [parameters.index(name) for name in self.module.WRITES]

    def initialize(self, size: str) -> tuple[Any, ...]:
        return self.module.initialize(size)

    def element_steps(self, size: str) -> float:
        return self.module.element_steps(size)

    def variants(self) -> dict[str, Callable[..., Any]]:
        return self.module.numba_variants()


def load(name: str) -> Kernel:
    """The kernel of that name.

    Raises:
        LookupError: there is none.
    """
    if name not in names():
        raise LookupError(f"no kernel {name!r}; there are {', '.join(names())}")
    qualified = f"jitgraph_bench_{name}"
    if qualified not in sys.modules:
        spec = importlib.util.spec_from_file_location(qualified, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[qualified] = module  # numba and pickle look modules up by name
        spec.loader.exec_module(module)
    return Kernel(name, sys.modules[qualified])


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def outcome(kernel: Kernel, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    """What a call leaves: its results in a row, then the written arguments; `args` are changed."""
    result = function(*args)
    results = [] if result is None else list(result) if isinstance(result, tuple) else [result]
    return results + [args[i] for i in kernel.written]


def difference(expected: list[Any], found: list[Any]) -> tuple[bool, float]:
    """Whether all bits are equal (NaNs count as equal), and the largest difference relative to the largest element.

    Other dtypes or shapes are an infinite difference; another kind of number (a Python int, an np.int64) is none.
    """
    if len(expected) != len(found):
        return False, np.inf
    equal, largest = True, 0.0
    for one, other in zip(map(np.asarray, expected), map(np.asarray, found), strict=True):
        if one.shape != other.shape:
            return False, np.inf
        if one.dtype != other.dtype:
            equal = False
        if np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"):
            continue
        equal = False
        scale = float(np.max(np.abs(one))) or 1.0
        apart = float(np.max(np.abs(one - other))) / scale
        largest = max(largest, apart if np.isfinite(apart) else np.inf)
    return equal, largest


def allowed_of_others(args: tuple[Any, ...]) -> float:
    """What other compilers, which sum in orders of their own, may differ by, relative to the largest element."""
    return 1e-4 if any(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in args) else 1e-7


def with_helpers(function: FunctionType, wrap: Callable[[FunctionType], Any]) -> Any:
    """`wrap(function)`, where the functions of its own file that it calls are wrapped, too.

    For compilers that cannot call plain Python functions; the file itself stays as it is.
    """
    done: dict[str, Any] = {}

    def wrapped(f: FunctionType) -> Any:
        if f.__name__ not in done:
            own = {**f.__globals__}
            for name in f.__code__.co_names:
                helper = own.get(name)
                if isinstance(helper, FunctionType) and helper.__module__ == f.__module__:
                    own[name] = wrapped(helper)
            twin = FunctionType(f.__code__, own, f.__name__, f.__defaults__, f.__closure__)
            twin.__module__, twin.__qualname__, twin.__doc__ = f.__module__, f.__qualname__, f.__doc__
            done[f.__name__] = wrap(twin)
        return done[f.__name__]

    return wrapped(function)
