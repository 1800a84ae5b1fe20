"""One contestant in a process of its own: reads requests as JSON lines, times, answers as JSON lines.

A process each, because compilers change process-wide LLVM options, allocators and thread pools.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time

import numpy as np
from cases import CASES

BY_NAME = {c.name: c for c in CASES}


def numpy_contestant(case, args):
    return case.make(np), args, np.asarray


def jitgraph_contestant(case, args):
    import jitgraph as jg

    return jg.jit(case.make(np)), args, np.asarray


def numba_contestant(case, args):
    import numba

    return numba.njit(case.make(np)), args, np.asarray


def jax_contestant(case, args):
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    f = jax.jit(case.make(jnp))
    return (lambda *a: f(*a).block_until_ready()), tuple(jnp.asarray(a) for a in args), np.asarray


def torch_contestant(case, args):
    import torch

    torch.set_num_threads(1)

    class Namespace:
        """torch under NumPy's keyword names."""

        exp, sqrt, tanh, sin, log1p, where, mean, argmax = (
            torch.exp, torch.sqrt, torch.tanh, torch.sin, torch.log1p, torch.where, torch.mean, torch.argmax,
        )  # fmt: skip
        sum = staticmethod(lambda x, axis=None, keepdims=False: torch.sum(x, dim=axis, keepdim=keepdims))
        max = staticmethod(
            lambda x, axis=None, keepdims=False: torch.amax(x, dim=() if axis is None else axis, keepdim=keepdims)
        )
        var = staticmethod(lambda x: torch.var(x, correction=0))

    Namespace.mean = staticmethod(lambda x, axis=None, keepdims=False: torch.mean(x, dim=axis, keepdim=keepdims))
    return torch.compile(case.make(Namespace)), tuple(torch.from_numpy(a) for a in args), lambda t: t.numpy()


def numexpr_contestant(case, args):
    import numexpr

    if not case.numexpr:
        raise LookupError("no expression")
    numexpr.set_num_threads(1)
    names = dict(zip("abc", args, strict=False))
    return (lambda *_: numexpr.evaluate(case.numexpr, names)), args, np.asarray


CONTESTANTS = {
    "numpy": numpy_contestant,
    "jitgraph": jitgraph_contestant,
    "numba": numba_contestant,
    "jax": jax_contestant,
    "torch": torch_contestant,
    "numexpr": numexpr_contestant,
}


class Session:
    """The prepared function of the case at hand."""

    def __init__(self, who):
        self.who = who

    def prepare(self, name, n, dtype):
        """Build, run once, and report how far the result is from NumPy's."""
        case = BY_NAME[name]
        if self.who in case.skip:
            raise LookupError("not applicable")
        args = case.inputs(n, dtype)
        expected = np.asarray(case.make(np)(*args))
        start = time.perf_counter()
        self.fn, self.args, back = CONTESTANTS[self.who](case, args)
        result = back(self.fn(*self.args))
        first = time.perf_counter() - start
        assert result.shape == expected.shape, (result.shape, expected.shape)
        scale = float(np.max(np.abs(expected))) or 1.0
        difference = float(np.max(np.abs(np.asarray(result, dtype=np.float64) - expected.astype(np.float64)))) / scale
        bits = float(np.mean(result != expected)) if result.dtype == expected.dtype else 1.0
        once = self.sample(1)
        self.count = max(1, min(10000, int(0.004 / max(once, 1e-7))))
        return {"first_s": first, "difference": difference, "bits_off": bits}

    def sample(self, count):
        fn, args = self.fn, self.args
        start = time.perf_counter()
        for _ in range(count):
            fn(*args)
        return (time.perf_counter() - start) / count

    def handle(self, request):
        match request["do"]:
            case "import":
                if self.who not in ("numpy", "jitgraph"):
                    importlib.import_module(self.who)
                return {}
            case "prepare":
                return self.prepare(request["case"], request["n"], request["dtype"])
            case "time":
                return {"seconds": self.sample(self.count)}
            case _:
                raise LookupError(request["do"])


def main():
    if hasattr(os, "sched_setaffinity"):  # one core for each: XLA does not obey the setting of its thread count
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    session = Session(sys.argv[1])
    out = sys.stdout
    sys.stdout = sys.stderr  # libraries that print must not disturb the answers
    for line in sys.stdin:
        try:
            answer = session.handle(json.loads(line))
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:200]}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
