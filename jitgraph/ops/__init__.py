"""The operator records: importing this package fills `ir.opdef.REGISTRY`."""

from jitgraph.ops import (
    bits,
    complexes,
    control,
    create,
    effect,
    elementwise,
    fold,
    functions,
    index,
    kernel,
    linalg,
    reduce,
    shape,
    ufuncs,
)

__all__ = [
    "bits", "complexes", "control", "create", "effect", "elementwise", "fold", "functions", "index", "kernel", "linalg",
    "reduce", "shape", "ufuncs",
]  # fmt: skip
