"""Elementary functions as straight-line vector code for any number of lanes: `FUNCTIONS[name].emit(assembler, x)`.

Each is written once for `float` and `double`, keeps NumPy's special values, subnormals included, and publishes its
error bound. What has no recipe calls the C library lane by lane, under the same interface.
"""

from jitgraph.codegen.vecmath.function import VectorFunction
from jitgraph.codegen.vecmath.registry import FUNCTIONS, library_function

__all__ = ["FUNCTIONS", "VectorFunction", "library_function"]
