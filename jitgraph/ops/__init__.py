"""The operator records: importing this package fills `ir.opdef.REGISTRY`."""

from jitgraph.ops import control, create, effect, elementwise, functions, index, kernel, linalg, reduce, shape

__all__ = ["control", "create", "effect", "elementwise", "functions", "index", "kernel", "linalg", "reduce", "shape"]
