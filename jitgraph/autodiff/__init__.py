"""Gradients as users call them: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `check_grads`.

All are made of two primitives on functions whose differentiable inputs and outputs are flat lists:
- outside `jit` the function runs on Tensors of the tape (`transforms.tape`), so that a debugger can step through;
- under `jit` it is traced in line and differentiated as a part of the graph (`transforms.graph`).
What decides is whether a trace runs. The tracer knows our functions by the attribute `__jitgraph_trace__`, and brings
its own way to call user functions (`Call`). A jitted function is differentiated as a whole: the gradient of `jit(f)`
is the jitted gradient of `f`. It says how by the method `__jitgraph_rejit__(g, same_arguments)`, which answers `g`
jitted with the same options. Called on Tensors of the tape, a jitted function is one operation of it (`taped_call`).
Plain arrays in, plain arrays out; a Tensor in, Tensors out.
"""

from __future__ import annotations

from jitgraph.autodiff.check import check_grads
from jitgraph.autodiff.custom import Function, taped_call
from jitgraph.autodiff.functions import grad, jvp, value_and_grad, vjp
from jitgraph.autodiff.jacobian import hessian, jacfwd, jacrev
from jitgraph.transforms.tape import enable_grad, no_grad

__all__ = [
    "Function",
    "check_grads",
    "enable_grad",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "no_grad",
    "taped_call",
    "value_and_grad",
    "vjp",
]
