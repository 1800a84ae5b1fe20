"""Calling machine code: slots from arguments, results and scratch memory, errors from statuses.

An `Executable` joins object code with its `abi.Interface`, the sites and the host functions. Calls are reentrant and
thread-safe: what one call needs (context, slots, dims) is a `Frame`, taken from a pool.
"""

from __future__ import annotations

import builtins
import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from jitgraph import dtypes, errors, signals
from jitgraph.abi import (
    CONTEXT_BYTES,
    CONTEXT_ERROR_VALUES,
    CONTEXT_HEAP,
    CONTEXT_HOST,
    CONTEXT_RESULT,
    CONTEXT_TABLE,
    HEAP_NEXT,
    HEAP_RAW,
    SLOT_BYTES,
    HostOperand,
    Interface,
    ResultSlot,
    Status,
)
from jitgraph.ir.graph import Site
from jitgraph.once import once
from jitgraph.runtime import linking, table, threads
from jitgraph.runtime.pool import pool as memory
from jitgraph.runtime.pool import recipe

EXPORTS = ("entry", "prepare")
_FORMATS = {
    "bool": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "f16": "e", "f32": "f", "f64": "d", "c64": "ff", "c128": "dd",
}  # fmt: skip


class _ComplexStruct(struct.Struct):
    """Complex numbers as their two parts."""

    def pack(self, x: Any) -> bytes:
        return super().pack(x.real, x.imag)

    def unpack_from(self, buffer: Any, offset: int = 0) -> tuple[complex]:
        return (complex(*super().unpack_from(buffer, offset)),)


def _struct(name: str, padding: int = 0) -> struct.Struct:
    """Scalars of a dtype as bytes, with `padding` bytes behind."""
    kind = _ComplexStruct if name in ("c64", "c128") else struct.Struct
    return kind(f"={_FORMATS[name]}{padding}x")


_ZERO = bytes(8)


class Deoptimise(Exception):  # noqa: N818  # not an error: the call is to be run in plain Python
    """The compiled code met a case that only Python handles; nothing visible was written."""


# --- one call -------------------------------------------------------------------------------------------------------


class Frame:
    """The memory of one call; used by one call at a time."""

    __slots__ = (
        "__weakref__", "address", "args", "context", "dims", "dims_address", "executable", "made",
        "pending", "result_dims", "result_dims_address", "scratch", "size", "size_address", "slots",
        "slots_address", "slots_view", "waiting",
    )  # fmt: skip

    def __init__(self, executable: Executable) -> None:
        interface = executable.interface
        self.executable = ref(executable)
        self.context = (ctypes.c_int64 * (CONTEXT_BYTES // 8))()
        self.address = ctypes.addressof(self.context)
        for offset, value in _context_fields():
            self.context[offset // 8] = value
        self.dims = (ctypes.c_int64 * max(1, interface.dim_count))()
        self.dims_address = ctypes.addressof(self.dims)
        self.result_dims = (ctypes.c_int64 * max(1, executable.result_dim_count))()
        self.result_dims_address = ctypes.addressof(self.result_dims)
        self.size = ctypes.c_int64()
        self.size_address = ctypes.addressof(self.size)
        self.slots = (ctypes.c_char * (SLOT_BYTES * max(1, len(interface.results))))()
        self.slots_address = ctypes.addressof(self.slots)
        self.slots_view = memoryview(self.slots).cast("B")
        self.args = b""
        self.scratch = 0
        self.made: list[Any] = []
        self.pending: BaseException | None = None
        #: Results of host calls that said their sizes and are not fetched yet, by site.
        self.waiting: dict[int, tuple[Any, ...]] = {}
        _frames[self.address] = self

    def arena(self, size: int, arguments: int) -> int:
        """The address of `size` bytes, 64-byte aligned.

        Raises:
            MemoryError: there are none.
        """
        address = memory().alloc(size, self.args, arguments)
        if address is None:
            self.done(_executable(self).pool)
            raise MemoryError("no memory for intermediate results")
        self.scratch = address
        return address

    def done(self, pool: list[Frame]) -> None:
        """Give back what only this call needed, and the frame itself."""
        self.reset()
        pool.append(self)

    def reset(self) -> None:
        """Give back what only this call needed."""
        self.made = []
        self.args = b""
        if self.context[CONTEXT_HEAP // 8]:
            release(self.context)
        if self.waiting:
            self.waiting.clear()
        if self.scratch:
            memory().free(self.scratch)
            self.scratch = 0


def release(context: ctypes.Array[ctypes.c_int64]) -> int:
    """Free what a call has left on its heap; the number of blocks."""
    block, count = context[CONTEXT_HEAP // 8], 0
    context[CONTEXT_HEAP // 8] = 0
    while block:
        raw, block = (ctypes.c_int64.from_address(block + at).value for at in (HEAP_RAW, HEAP_NEXT))
        memory().free(raw)
        count += 1
    return count


#: Frames by the address of their context, for callbacks.
_frames: WeakValueDictionary[int, Frame] = WeakValueDictionary()


# --- callbacks ------------------------------------------------------------------------------------------------------

_P, _I = ctypes.c_void_p, ctypes.c_int64


def _result(context: int, slot: int, ndim: int, dims: int) -> int | None:
    """A result whose size only the run knows."""
    frame = _frames[context]
    try:
        array = _executable(frame).empty(slot, dims, frame.args)
    except MemoryError:
        return None
    frame.made[slot] = array
    address: int = array.__array_interface__["data"][0]
    return address


def _host(context: int, site: int, inputs: int, outputs: int) -> int:
    """Call the Python function behind `site`; its exception waits in the frame until the machine code has returned."""
    frame = _frames[context]
    try:
        _executable(frame).call_host(frame, site, inputs, outputs)
    except BaseException as e:  # noqa: BLE001  # machine code lies in between: raised again by `run`
        frame.pending = Deoptimise(str(e)) if getattr(e, "__jitgraph_rerun__", False) else e
        return int(Status.PYTHON_ERROR)
    return int(Status.OK)


#: (offset in the context, C function) of each callback.
_CALLBACKS: tuple[tuple[int, Any], ...] = (
    (CONTEXT_RESULT, ctypes.CFUNCTYPE(_P, _P, _I, _I, _P)(_result)),
    (CONTEXT_HOST, ctypes.CFUNCTYPE(ctypes.c_int32, _P, _I, _P, _P)(_host)),
)


def _executable(frame: Frame) -> Executable:
    executable = frame.executable()
    assert executable is not None, "a call outlives what it calls"
    return executable


@once
def _context_fields() -> list[tuple[int, int]]:
    """What every context holds: offset and value."""
    fields = [(offset, ctypes.cast(callback, _P).value or 0) for offset, callback in _CALLBACKS]
    fields.append((CONTEXT_TABLE, ctypes.addressof(table.table())))
    threads.configure()
    return fields


threads.context_fields = _context_fields


# --- arrays as slots ------------------------------------------------------------------------------------------------

#: As `ctypes.string_at`, without its Python wrapper: bytes at an address.
_string_at: Callable[[int, int], bytes] = ctypes.PYFUNCTYPE(ctypes.py_object, _P, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)


def _slot_by_layout(x: np.ndarray) -> bytes:
    """The slot of an array out of the head of its object: data, ndim, dims, strides stand there in a row."""
    head = _string_at(id(x) + _HEAD, 32)
    return head[:8] + head[16:] + _ZERO


def _slot_by_interface(x: np.ndarray) -> bytes:
    """The slot of an array whose object's layout is not known; the sizes live in `_kept` until the array dies."""
    sizes = np.array(x.shape + x.strides, np.int64)
    at = sizes.__array_interface__["data"][0]
    _kept_sizes.append(sizes)
    if len(_kept_sizes) > 4096:
        del _kept_sizes[:2048]
    return struct.pack("4q", x.__array_interface__["data"][0], at, at + 8 * x.ndim, 0)


_kept_sizes: list[np.ndarray] = []
_HEAD = object.__basicsize__


def _layout_known() -> bool:
    """Whether array objects begin as NumPy's C API documents: data, ndim, dimensions, strides."""
    x = np.arange(24.0).reshape(2, 3, 4)[:, ::-1, ::2]
    data, ndim, dims, strides = struct.unpack("4q", _string_at(id(x) + _HEAD, 32))
    if data != x.__array_interface__["data"][0] or ndim & 0xFFFFFFFF != 3:
        return False
    sizes = [tuple((ctypes.c_int64 * 3).from_address(at)) for at in (dims, strides)]
    return sizes == [x.shape, x.strides]


array_slot: Callable[[np.ndarray], bytes] = _slot_by_layout if _layout_known() else _slot_by_interface


# --- the executable -------------------------------------------------------------------------------------------------


class Executable:
    """Loaded machine code that can be called.

    `frame = e.prepare(args)` tests the guards (None: they do not hold) and makes the results; `e.run(frame)` runs and
    gives the fresh results, one for each result slot.

    Attributes:
        hosts: the function behind each site of a host call: takes arrays and scalars, gives one result or a tuple.
    """

    def __init__(
        self,
        interface: Interface,
        code: bytes,
        sites: Sequence[Site] = (),
        hosts: Mapping[int, Callable[..., Any]] | None = None,
    ) -> None:
        self.interface = interface
        self.sites = list(sites)
        self.hosts = dict(hosts or {})
        #: Held as long as the code may run.
        self.library = linking.link(code, EXPORTS)
        self.addresses = self.library.addresses
        self._prepare = linking.function(self.addresses["prepare"], _P, ctypes.c_char_p, _P, _P, _P, hold_gil=True)
        self._entry = linking.function(self.addresses["entry"], _P, ctypes.c_char_p, _P, _P, _P)
        self.pool: list[Frame] = []
        kinds: list[struct.Struct | bool | None] = [False] * interface.arguments
        for slot in interface.arrays:
            kinds[slot] = None
        for slot, name in interface.scalars:
            kinds[slot] = _struct(name, SLOT_BYTES - dtypes.from_short_name(name).itemsize)
        self._kinds = kinds
        self._only_arrays = all(kind is None for kind in kinds)
        self._dtypes = [dtypes.from_short_name(r.dtype) for r in interface.results]
        self._recipes = [recipe(d, r.order) for d, r in zip(self._dtypes, interface.results, strict=True)]
        self._array = memory().array
        #: (place of the slot, place of the sizes, recipe) of each result that is made before the run.
        self._plan: list[tuple[int, int, int]] = []
        at = 0
        for slot, r in enumerate(interface.results):
            if r.sized and r.kind == "array":
                self._plan.append((slot * SLOT_BYTES, 8 * at, ctypes.addressof(self._recipes[slot])))
                at += len(r.order)
        self.result_dim_count = at
        self._boxes = [(slot, _box(r)) for slot, r in enumerate(interface.results) if r.kind != "array"]
        self._unsized = [slot for slot, r in enumerate(interface.results) if r.kind == "array" and not r.sized]
        self._simple = not self._boxes and not self._unsized

    def prepare(self, args: Sequence[Any]) -> Frame | None:
        """A frame ready to run, or None if a guard does not hold for these sizes.

        Args:
            args: one ndarray or number for each argument slot, of the dtypes that the program was compiled for; they
                have to stay alive until `run` has returned.

        Raises:
            Deoptimise: a Python integer does not fit the slot.
        """
        try:
            frame = self.pool.pop()
        except IndexError:
            frame = Frame(self)
        if self._only_arrays:
            packed = b"".join([array_slot(x) for x in args])
        else:
            packed = self._pack(args)
        frame.args = packed
        if self._prepare(frame.address, packed, frame.dims_address, frame.result_dims_address, frame.size_address):
            frame.done(self.pool)
            return None
        made: list[Any] = []
        dims, view, new, count = frame.result_dims_address, frame.slots_view, self._array, self.interface.arguments
        for place, at, plan in self._plan:
            array = new(plan, dims + at, packed, count)
            view[place : place + SLOT_BYTES] = array_slot(array)
            made.append(array)
        if not self._simple:
            made = self._with_holes(made)
        frame.made = made
        return frame

    def run(self, frame: Frame) -> list[Any]:
        """The fresh results.

        Raises:
            Deoptimise: the call is to be run in plain Python.
            Exception: what the check that failed says, at the user's line; what a host function raised.
        """
        size = frame.size.value
        scratch = frame.arena(size, self.interface.arguments) if size else 0
        status = self._entry(frame.address, frame.args, frame.slots_address, frame.dims_address, scratch)
        results = frame.made
        if status:
            error = self.failure(status, frame)
            frame.done(self.pool)
            raise error
        if not self._simple:
            for slot, box in self._boxes:
                results[slot] = box(frame.slots_view, slot * SLOT_BYTES)
        frame.done(self.pool)
        return results

    def __call__(self, *args: Any) -> list[Any] | None:
        """`prepare` and `run`; None if a guard does not hold."""
        frame = self.prepare(args)
        return None if frame is None else self.run(frame)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _pack(self, args: Sequence[Any]) -> bytes:
        parts: list[bytes] = []
        for kind, x in zip(self._kinds, args, strict=True):
            if kind is None:
                parts.append(array_slot(x))
            elif isinstance(kind, struct.Struct):
                try:
                    parts.append(kind.pack(x))
                except (struct.error, OverflowError) as e:
                    raise Deoptimise(str(e)) from e
            else:
                parts.append(bytes(SLOT_BYTES))
        return b"".join(parts)

    def _with_holes(self, arrays: list[Any]) -> list[Any]:
        """`arrays` at the slots whose size is known, None at the others."""
        made: list[Any] = [None] * len(self.interface.results)
        for (place, _, _), array in zip(self._plan, arrays, strict=True):
            made[place // SLOT_BYTES] = array
        return made

    def empty(self, slot: int, dims: int, args: bytes) -> np.ndarray:
        """A new array for result `slot`, whose sizes are at the address `dims`."""
        return self._array(ctypes.addressof(self._recipes[slot]), dims, args, self.interface.arguments if args else 0)

    def recipe_address(self, slot: int) -> int:
        """Where the recipe of a result is, for `Pool.array`; it lives as long as the executable."""
        return ctypes.addressof(self._recipes[slot])

    def failure(self, status: int, frame: Frame) -> BaseException:
        """What to raise for a status other than OK; the frame may then be used again."""
        site, pending = int(frame.context[0]), frame.pending
        at = CONTEXT_ERROR_VALUES // 8
        raw = list(frame.context[at : at + 4])
        frame.pending = None
        if status == Status.PYTHON_ERROR and pending is not None:
            if isinstance(pending, Exception) and not isinstance(pending, Deoptimise) and site >= 0:
                return _with_line(pending, self.sites[site])
            return pending
        if status == Status.DEOPTIMISE:
            return Deoptimise(self.sites[site].message, site)
        if status == Status.INTERRUPTED:
            return signals.raised(table.table())
        if status != Status.ERROR:
            return errors.InternalError(f"machine code returned the status {status}")
        if site < 0:
            return MemoryError("no memory for an intermediate result")
        names = self.interface.values.get(site, ())
        return error_of(self.sites[site], [_value(bits, name) for bits, name in zip(raw, names, strict=False)])

    def call_host(self, frame: Frame, site: int, inputs: int, outputs: int) -> None:
        """Unpack the slots, call, and copy what comes back into the output buffers or slots; see `abi.Interface`.

        Args:
            site: of the call; `~site` fetches the results of the last call of a site that says sizes first.

        Raises:
            Deoptimise: the function gave something else than it did when traced, and the call can be rerun in Python.
            DTypeError, ShapeError: it cannot.
        """
        fetch = site < 0
        site = ~site if fetch else site
        ins, outs = self.interface.hosts[site]
        if fetch:
            answers = frame.waiting.pop(site)
        else:
            function = self.hosts[site]
            keep = not getattr(function, "borrows", False)
            arguments = [_read_slot(inputs + k * SLOT_BYTES, o, keep) for k, o in enumerate(ins)]
            answer = function(*arguments)
            answers = answer if len(outs) > 1 else (answer,)
            sizes = self.interface.sizes.get(site)
            if sizes is not None:
                frame.waiting[site] = answers
                for k, (result, axis) in enumerate(sizes):
                    ctypes.c_int64.from_address(outputs + k * SLOT_BYTES).value = np.shape(answers[result])[axis]
                return
        try:
            for k, (o, value) in enumerate(zip(outs, answers, strict=False)):
                _write_slot(outputs + k * SLOT_BYTES, o, value, self.sites[site])
        except (errors.DTypeError, errors.ShapeError) as e:
            if getattr(self.hosts[site], "is_lenient", False):
                raise Deoptimise(str(e)) from e
            raise


def error_of(site: Site, values: Sequence[Any]) -> Exception:
    """The exception that `site` describes, with the user's line; one that the user raises is as the user made it.

    One of Python's or NumPy's has their text, one of the user's the user's; the line is a note, which tracebacks show.
    """
    if isinstance(site.call, errors.Recipe):
        raised: Any = site.call.make(values)  # an Exception, as the user raised one
        return _with_line(raised, site)
    message = site.message.format(*values)
    own: Any = getattr(errors, site.error, None)
    if own is not None:
        described: Exception = own(errors.describe(message, site.loc))
        return described
    kind: Any = getattr(builtins, site.error, RuntimeError)
    return _with_line(kind(message) if message else kind(), site)


def _with_line(error: Exception, site: Site) -> Exception:
    if site.loc is not None:
        error.add_note(errors.describe("", site.loc).removeprefix("\n"))
    return error


def _value(bits: int, name: str) -> Any:
    """A value of `context.error_values`."""
    if name in ("f16", "f32", "f64"):
        return struct.unpack("d", struct.pack("q", bits))[0]
    if name == "bool":
        return bool(bits & 1)
    return bits if name != "u64" else bits & (2**64 - 1)


def _box(r: ResultSlot) -> Callable[[memoryview, int], Any]:
    """A function from a slot to the scalar in it, as the user is to see it."""
    unpack = _struct(r.dtype).unpack_from
    if r.kind == "np_scalar":
        scalar = dtypes.from_short_name(r.dtype).type
        return lambda view, at: scalar(unpack(view, at)[0])
    if r.kind == "maybe_np_float":
        return lambda view, at: np.float64(unpack(view, at)[0]) if view[at + 8] else unpack(view, at)[0]
    return lambda view, at: unpack(view, at)[0]


#: Memory from an address on; a type for each size would cost more than the calls that need it.
_MEMORY = ctypes.c_char * (1 << 62)
_integers = cache(lambda count: _I * count)


def _array_at(address: int, o: HostOperand) -> np.ndarray:
    data, dims, strides, _ = _integers(4).from_address(address)
    shape = list(_integers(o.ndim).from_address(dims)) if o.ndim else []
    steps = list(_integers(o.ndim).from_address(strides)) if o.ndim else []
    dtype = dtypes.from_short_name(o.dtype)
    if 0 in shape:
        return np.empty(shape, dtype)
    low = sum([(n - 1) * s for n, s in zip(shape, steps, strict=True) if s < 0])
    memory: Any = _MEMORY.from_address(data + low)
    return np.ndarray(shape, dtype, memory, -low, steps)


def _read_slot(address: int, o: HostOperand, keep: bool) -> Any:
    """A NumPy scalar, or an array: a copy of its own if the host function may keep it."""
    if o.ndim >= 0:
        array = _array_at(address, o)
        return array.copy() if keep else array
    return dtypes.from_short_name(o.dtype).type(_struct(o.dtype).unpack_from(_string_at(address, 16))[0])


def _write_slot(address: int, o: HostOperand, value: Any, site: Site) -> None:
    dtype = dtypes.from_short_name(o.dtype)
    given = np.asarray(value)
    if not np.can_cast(given.dtype, dtype, "same_kind"):
        text = f"{site.message}: gave {given.dtype}, but {dtype} when the function was traced"
        raise errors.DTypeError(errors.describe(text, site.loc))
    if o.ndim < 0:
        if given.shape != ():
            text = f"{site.message}: gave an array of shape {given.shape}, but a scalar when the function was traced"
            raise errors.ShapeError(errors.describe(text, site.loc))
        ctypes.memmove(address, _struct(o.dtype).pack(given.astype(dtype)[()]), dtype.itemsize)
        return
    target = _array_at(address, o)
    if given.shape != target.shape:
        text = f"{site.message}: gave shape {given.shape}, but {target.shape} was expected"
        raise errors.ShapeError(errors.describe(text, site.loc))
    target[...] = given
