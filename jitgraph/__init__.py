"""A tracing JIT compiler for NumPy code on the CPU: `@jit` on a NumPy function; eager `Tensor`s with gradients.

Beside the names imported here, the namespace has NumPy's functions (`jg.sin`, `jg.sum`, ...), from `jitgraph.xp`.
"""

from jitgraph import errors, pytree, xp
from jitgraph.api import JitFunction, host, jit
from jitgraph.autodiff import (
    Function,
    check_grads,
    enable_grad,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    no_grad,
    value_and_grad,
    vjp,
)
from jitgraph.config import config
from jitgraph.tensor import Tensor
from jitgraph.xp import *  # noqa: F403

__version__ = "0.1.0"
__all__ = sorted(
    {
        "Function", "JitFunction", "Tensor", "check_grads", "config", "enable_grad", "errors", "grad", "hessian", "host", "jacfwd",
        "jacrev", "jit", "jvp", "no_grad", "pytree", "value_and_grad", "vjp", "xp",
        *(name for name in xp.__all__ if not name.endswith("_TABLE")),
    }
)  # fmt: skip  # noqa: PLE0605
