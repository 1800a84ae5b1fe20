"""Arrays that NumPy makes while tracing, of numbers that Python knows: ndarrays for Python, constants in the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.tensor import Storage, Tensor, wrap
from jitgraph.tracing.hidden import Fixed
from jitgraph.tracing.iteration import any_traced
from jitgraph.tracing.restart import Restart
from jitgraph.xp.core import mode_in

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode
    from jitgraph.tracing.outside import Outside

#: Arrays made of static values while tracing are constants up to this many elements, else hidden arguments.
_CONSTANT_ELEMENTS: Final = 256


class StaticArrays:
    """The arrays of one trace that NumPy made of static values, and the Tensors that stand for them."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.mode: CaptureMode = outside.mode
        #: Arrays made of static values while tracing.
        self.made: dict[int, Any] = {}
        #: Storages of those that user code holds as ndarrays.
        self._held: set[Storage] = set()
        #: Storages of views that NumPy made of static arrays, which user code may hold.
        self._views: set[Storage] = set()
        #: By identity, arrays that own the memory of such, with the first that lies in it.
        self._roots: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def known_array(self, array: Any) -> Tensor:
        """The Tensor of an ndarray that user code holds."""
        known = self.outside.arrays.get(id(array))
        if known is not None and id(array) not in self.made:
            self.foreign(array)
        tensor = known[1] if known is not None else self.constant(array, "array")
        self._held.add(tensor._storage)
        return tensor

    def before_write(self, array: Any, *operands: Any) -> Any:
        """An array that is about to be written to: a Tensor, or an ndarray of static values that NumPy can write here
        and now, as the operands are static and no Tensor stands for its memory.

        Raises:
            Restart, TraceError: see `refuse_write`.
        """
        if type(array) is Tensor:  # it says of itself that it is an ndarray
            return array
        known = id(array) in self.outside.arrays or id(_root(array)) in self._roots
        if known or len(self.mode.blocks) > 1 or mode_in(operands) is not None or any_traced(operands):
            self.refuse_write()
        return array

    def on_write(self, storage: Storage) -> None:
        """The Tensor of an ndarray that user code holds may not be written to: see `refuse_write`."""
        if storage in self._held:
            self.refuse_write()
        if storage in self._views and not self.mode.lifts:
            raise Restart(lifts=True)

    def refuse_write(self) -> NoReturn:
        """An ndarray of static values is written to.

        There may be views of it that nobody knows of, and NumPy's functions read it as it stands: once one is written,
        all are traced from the start.

        Raises:
            Restart: NumPy made it of static values, perhaps.
            TraceError: no function of NumPy made it.
        """
        if not self.mode.lifts:
            raise Restart(lifts=True)
        self.mode.fail(
            "an array that was made while tracing is written to", "make a traced array of it first: np.array(x)."
        )

    def constant(self, array: np.ndarray, name: str) -> Tensor:
        """An array that was made of static values while tracing.

        Raises:
            Restart: it shares memory with another one, or was met in another turn or branch: traced from the start.
        """
        known = self.outside.arrays.get(id(array))
        if known is not None:
            return known[1]
        root = _root(array)
        shares = self._roots.setdefault(id(root), (root, array))[1] is not array
        if (shares or id(array) in self.made) and not self.mode.lifts:
            raise Restart(lifts=True)
        if array.size <= _CONSTANT_ELEMENTS:
            tensor = wrap(
                self.mode,
                self.mode.builder.apply(REGISTRY["copy"], self.mode.builder.constant(np.array(array)), order="K")[0],
            )
        else:
            hidden = self.outside.hide(Fixed(array, name), array)
            tensor = wrap(self.mode, self.mode.builder.apply(REGISTRY["copy"], hidden._storage.value, order="K")[0])
        tensor._storage.writable = bool(array.flags.writeable)
        if root is not array:
            self._views.add(tensor._storage)
        self.made[id(array)] = array
        if len(self.mode.blocks) == 1:  # a value made inside a region is not seen outside of it
            self.outside.arrays[id(array)] = (array, tensor, None)
        return tensor

    def foreign(self, array: np.ndarray) -> Value:
        """An ndarray that meets a traced value.

        Raises:
            TraceError: it came in by a way that cannot be repeated at the next call.
        """
        known = self.outside.arrays.get(id(array))
        if known is not None and id(array) in self.made:
            return known[1]._storage.value  # type: ignore[no-any-return]
        if known is None and array.size <= 1 and id(_root(array)) not in self._roots:
            return self.mode.builder.constant(np.array(array))
        if known is None and not self.mode.lifts:  # perhaps NumPy made it of static values
            raise Restart(lifts=True)
        return self.mode.fail(
            f"an array of shape {array.shape} that is no argument meets a traced value; "
            "it would be frozen into the compiled code",
            "pass it as an argument, or read it from a global, a closure or an attribute inside the function.",
        )


def _root(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
