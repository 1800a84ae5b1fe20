"""Calls that must take place at each run: random generators, clocks, warnings, logging.

Each becomes a host call that keeps its place in the program and works on the live object: a generator that is an
argument, a global, an attribute, or that the function itself makes. Draws come from the same stream as in plain Python;
when a call is given up and run in Python, the generators get back the state that they had.

`numpy.random`, `random` and `logging` take milliseconds to import, and a function cannot meet what belongs to a module
that is not imported: nothing here imports them (`LATE`).
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from jitgraph.ir.types import python_type
from jitgraph.pytree import flatten, register_leaf
from jitgraph.tensor import Tensor, assign
from jitgraph.tracing import host, running
from jitgraph.tracing.hidden import Fixed, Place
from jitgraph.tracing.leaves import generators
from jitgraph.tracing.probe import Refused, learn, refuse


class Slot(Place):
    """An object that the running call made."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    @property
    def text(self) -> str:
        return f"object {self.number}"

    def get(self, call: Any = None) -> Any:
        return running.current().slots[self.number]


class Made:
    """A generator, or its parts, that the function makes at each call: a handle of the trace."""

    __slots__ = ("kind", "place")

    def __init__(self, kind: type, place: Slot) -> None:
        self.kind, self.place = kind, place

    __class__ = property(lambda self: self.kind)  # it passes isinstance


register_leaf(Made)


class Draw:
    """Behind a host call: a method of the live object at a place.

    Attributes:
        undone: the call may be given up afterwards.
    """

    undone = True

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name = place, name
        self.__name__ = self.__qualname__ = f"random.{name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        now = running.current()
        owner = self.place.get(now.call)
        if id(owner) not in now.seen:
            now.seen.add(id(owner))
            now.undo.append(_restore(owner))
        return _invoke(owner, self.name, [_live(x) for x in args], {k: _live(x) for k, x in kwargs.items()})


class Make:
    """Behind a host call: makes an object for the rest of the call."""

    undone = True

    def __init__(self, kind: Callable[..., Any], slot: Slot) -> None:
        self.kind, self.slot = kind, slot
        self.__name__ = self.__qualname__ = kind.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        made = self.kind(*[_live(x) for x in args], **{k: _live(x) for k, x in kwargs.items()})
        running.current().slots[self.slot.number] = made


def _live(x: Any) -> Any:
    if type(x) is Made:
        return x.place.get()
    return x.place.get(running.current().call) if type(x) is _At else x


class _At:
    """A static operand of a host call: the live object at a place."""

    __slots__ = ("place",)

    def __init__(self, place: Place) -> None:
        self.place = place


register_leaf(_At)


def _restore(owner: Any) -> Callable[[], None]:
    """What brings a generator back to the state it has now."""
    if _is_python(owner):
        state = owner.getstate()
        return lambda: owner.setstate(state)
    if isinstance(owner, np.random.RandomState):
        legacy = owner.get_state(legacy=False)
        return lambda: owner.set_state(legacy)
    bits: Any = owner.bit_generator
    now = copy.deepcopy(bits.state)

    def restore() -> None:
        bits.state = now

    return restore


def _invoke(owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if name == "shuffle" and not _is_python(owner):
        shuffled = np.array(args[0])
        owner.shuffle(shuffled, *args[1:], **kwargs)
        return shuffled
    return getattr(owner, name)(*args, **kwargs)


def _throwaway(kind: type) -> Any:
    """A generator of its own, to learn what a method returns."""
    if issubclass(kind, np.random.Generator):
        return np.random.Generator(np.random.PCG64(0))
    return np.random.RandomState(0) if issubclass(kind, np.random.RandomState) else sys.modules["random"].Random(0)


def _place_of(tracer: Any, owner: Any) -> Place | None:
    if type(owner) is Made:
        return owner.place
    known = tracer.outside.objects.get(id(owner))
    if known is not None:
        place: Place = known[1]
        return place
    return Fixed(owner, "random") if any(owner is x for x in _only_ones()) else None


def _only_ones() -> list[Any]:
    """The generators behind the functions of the modules."""
    found = [getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)]
    return [*found, getattr(sys.modules.get("random"), "_inst", None)]


#: Classes to whether their objects draw random numbers.
_stateful: dict[type, bool] = {}


def is_stateful(owner: Any) -> bool:
    """Whether the methods of an object draw random numbers."""
    kind = type(owner)
    found = _stateful.get(kind)
    if found is None:  # of a class that exists, the bases are imported
        found = _stateful[kind] = issubclass(kind, generators()) or _is_python(owner)
    return found


def _is_python(owner: Any) -> bool:
    python = getattr(sys.modules.get("random"), "Random", None)
    return python is not None and isinstance(owner, python)


_SILENT: Final = frozenset(("seed", "setstate", "set_state", "shuffle"))
_NOT_COMPILED: Final = frozenset(("spawn", "getstate", "get_state", "bit_generator", "__getstate__", "__reduce__"))


def draw(tracer: Any, owner: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A method of a random generator: called on the live one at each run."""
    mode = tracer.mode
    place = _place_of(tracer, owner)
    kind = owner.__class__
    shown = f"{kind.__name__}.{name}"
    if place is None or name in _NOT_COMPILED:
        why = "it works on the state of a generator" if place is not None else "the generator is made behind the trace"
        raise refuse(mode, shown, why)
    kwargs = dict(kwargs)
    out = kwargs.pop("out", None)
    if type(out) is Tensor and not args and "size" not in kwargs:
        kwargs["size"] = out.shape
        if out.type.dtype == np.float32:
            kwargs.setdefault("dtype", np.float32)
    if name == "shuffle":
        if not args or type(args[0]) is not Tensor:
            raise refuse(mode, shown, "it shuffles something else than an array")
        target = args[0]
        shape = target.type.shape
        from jitgraph.ir.types import TensorType

        result = emit(tracer, Draw(place, name), lambda *a, **k: TensorType(target.type.dtype, shape), args, kwargs)
        assign(target, result)
        return None
    if name in _SILENT:
        return emit(tracer, Draw(place, name), lambda *a, **k: None, args, kwargs)
    leaves, tree = flatten((tuple(args), kwargs))
    dynamic = [k for k, x in enumerate(leaves) if type(x) is Tensor or isinstance(x, np.ndarray)]

    def example(*args: Any, **kwargs: Any) -> Any:
        return getattr(_throwaway(kind), name)(*args, **kwargs)

    try:
        promised = learn(mode, example, tree, leaves, dynamic)
    except Refused as why:
        raise refuse(mode, shown, str(why)) from None
    except Exception as error:  # noqa: BLE001  # the method's own, for all stand-ins: perhaps these do not suit it
        mode.leave(f"{shown} is for Python to call: {error}", "pass what it draws as an argument.")
    result = emit(tracer, Draw(place, name), lambda *a, **k: promised, args, kwargs)
    if out is not None:
        from jitgraph.xp.core import deliver

        return deliver(result, out)
    return result


def emit(tracer: Any, fn: Any, rule: Any, args: Any, kwargs: Any) -> Any:
    """A host call in its place; one that can be undone does not keep the call from being given up."""
    mode = tracer.mode
    before = mode.effects
    args = tuple([_operand(tracer, x) for x in args])
    kwargs = {k: _operand(tracer, x) for k, x in kwargs.items()}
    result = host.call(mode, fn, rule, args, kwargs, effects=True)
    if getattr(fn, "undone", False):
        mode.effects = before
    return result


def _operand(tracer: Any, x: Any) -> Any:
    """Objects from outside are looked up when the call runs."""
    known = tracer.outside.objects.get(id(x)) if not isinstance(x, Tensor | np.ndarray) else None
    return x if known is None or isinstance(known[1], Fixed) else _At(known[1])


def make(tracer: Any, kind: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A generator that the function makes: at each call."""
    if kind is np.random.default_rng and args and isinstance(args[0], np.random.Generator):
        return args[0]
    number = len(tracer.graph.sites)
    slot = Slot(number)
    emit(tracer, Make(kind, slot), lambda *a, **k: None, args, kwargs)
    return Made(np.random.Generator if kind is np.random.default_rng else kind, slot)  # type: ignore[arg-type]


# --- clocks


def _undone(fn: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any) -> Any:
        return fn(*args)

    called.__name__ = called.__qualname__ = fn.__name__
    called.undone = True  # type: ignore[attr-defined]
    return called


def _clock(fn: Callable[..., Any]) -> Callable[..., Any]:
    kind: Any = "py_int" if fn.__name__.endswith("_ns") else "py_float"
    behind = _undone(fn)

    def standin(tracer: Any, *args: Any) -> Any:
        return emit(tracer, behind, lambda *a: python_type(kind), args, {})

    return standin


# --- warnings and logging


def _warn(
    tracer: Any, message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **rest: Any
) -> None:
    loc = tracer.mode.locate()
    place = (loc.path if hasattr(loc, "path") else loc.filename, loc.line) if loc is not None else ("<unknown>", 1)

    def behind(*args: Any) -> None:
        kind = category or (type(message) if isinstance(message, Warning) else UserWarning)
        if stacklevel <= 1:
            warnings.warn_explicit(message, kind, *place)
            return
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
            frame = frame.f_back
        warnings.warn_explicit(message, kind, frame.f_code.co_filename, frame.f_lineno)

    behind.__name__ = behind.__qualname__ = "warnings.warn"
    emit(tracer, behind, lambda *a, **k: None, (), {})


_OURS: Final = frozenset(("jitgraph", "ctypes"))


def _effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function without a result that is called at each run, with the run's values."""

    def behind(*args: Any, **kwargs: Any) -> None:
        fn(*[_live(x) for x in args], **{k: _live(x) for k, x in kwargs.items()})

    behind.__name__ = behind.__qualname__ = fn.__qualname__

    def standin(tracer: Any, *args: Any, **kwargs: Any) -> None:
        emit(tracer, behind, lambda *a, **k: None, args, kwargs)

    return standin


_LEVELS: Final = ("debug", "info", "warning", "error", "critical", "exception", "log")
_MAKERS: Final = "default_rng Generator RandomState PCG64 PCG64DXSM MT19937 Philox SFC64 SeedSequence"


def _maker(kind: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tracer, *args, **kwargs: make(tracer, kind, args, kwargs)


def _module_function(name: str) -> Callable[..., Any]:
    return lambda tracer, *args, **kwargs: draw(tracer, np.random.mtrand._rand, name, args, kwargs)


#: Stand-ins, which take the tracer first.
BODIES: dict[Any, Callable[..., Any]] = {
    **{f: _clock(f) for n in ("time", "perf_counter", "monotonic", "process_time", "thread_time")
       for f in (getattr(time, n), getattr(time, f"{n}_ns"))},
    time.sleep: _effect(time.sleep),
    warnings.warn: _warn,
}  # fmt: skip


def _of_numpy_random(module: Any) -> dict[Any, Callable[..., Any]]:
    makers = [getattr(module, name) for name in _MAKERS.split()]
    return {**{f: _maker(f) for f in makers}, module.seed: _module_function("seed")}


def _of_random(module: Any) -> dict[Any, Callable[..., Any]]:
    return {module.Random: _maker(module.Random)}


def _of_logging(module: Any) -> dict[Any, Callable[..., Any]]:
    return {f: _effect(f) for owner in (module, module.Logger) for f in (getattr(owner, n) for n in _LEVELS)}


#: Modules to what makes the stand-ins of their functions once they are imported.
LATE: Final[dict[str, Callable[[Any], dict[Any, Callable[..., Any]]]]] = {
    "numpy.random": _of_numpy_random, "random": _of_random, "logging": _of_logging,
}  # fmt: skip


def bound(f: Any) -> tuple[Any, str] | None:
    """The generator and the name of one of its methods; None if `f` is something else."""
    owner = getattr(f, "__self__", None)
    if owner is not None and is_stateful(owner):
        return owner, f.__name__
    return None
