"""A tracing JIT compiler for NumPy code on the CPU: `@jit` on a NumPy function; eager `Tensor`s with gradients.

Beside the names listed here, the namespace has NumPy's functions (`jg.sin`, `jg.sum`, ...), from `jitgraph.xp`. What
decorating a function does not need is loaded when it is first asked for, so that importing costs milliseconds.
"""

import importlib
from pathlib import Path
from typing import Any

from jitgraph import errors, pytree
from jitgraph.api import JitFunction, host, jit, warmup
from jitgraph.config import config

__version__ = "0.1.0"

#: Names loaded on demand, and where from.
_LATE = {
    "ShapeDtype": "tracing.host",
    "trim_memory": "runtime.pool",
    **dict.fromkeys(("get_num_threads", "set_num_threads"), "runtime.threads"),
    "fft": "xp.namespaces",
    "linalg": "xp.namespaces",
    "Tensor": "xp.methods",  # with its methods
    **dict.fromkeys(
        (
            "Function", "check_grads", "enable_grad", "grad", "hessian", "jacfwd", "jacrev", "jvp", "no_grad",
            "value_and_grad", "vjp",
        ),
        "autodiff",
    ),
    **dict.fromkeys(("associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"), "control"),
}  # fmt: skip
#: Modules of the package: the import system asks here first, and imports them itself.
_MODULES = {entry.stem for entry in Path(__file__).parent.iterdir()} - {"xp", "debug", "random"}
_NOW = ("JitFunction", "config", "errors", "host", "jit", "warmup")


def __getattr__(name: str) -> Any:
    if name in _MODULES or (name.startswith("__") and name != "__all__"):
        raise AttributeError(f"module 'jitgraph' has no attribute {name!r}")
    if name in ("xp", "debug", "random"):
        return importlib.import_module(f"jitgraph.{name}")
    if name in _LATE:
        found = getattr(importlib.import_module(f"jitgraph.{_LATE[name]}"), name)
    else:
        xp = importlib.import_module("jitgraph.xp")
        functions = [n for n in xp.__all__ if not n.endswith("_TABLE")]
        if name == "__all__":
            return sorted({*_NOW, *_LATE, "debug", "pytree", "random", "xp", *functions})
        if name not in functions:
            raise AttributeError(f"module 'jitgraph' has no attribute {name!r}")
        found = getattr(xp, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]
