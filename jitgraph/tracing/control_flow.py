"""`if`, `and`, `or`, `x if t else y` and `assert` of rewritten functions; loops are in `loop_regions`.

A test that is known while tracing is ordinary Python. Otherwise both sides are traced, one after the other, in the
user's own frame, and a `cond` yields the names that are live behind the statement and the storages that were written.
A side that raises becomes a check in front of the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.loading import uncollected
from jitgraph.tensor import wrap
from jitgraph.tracing.capture_mode import user_frame
from jitgraph.tracing.joining import UNSET
from jitgraph.tracing.poison import unbound_text
from jitgraph.tracing.regions import ENDLESS, Regions
from jitgraph.tracing.rewrite import BranchInfo
from jitgraph.tracing.scopes import Names

if TYPE_CHECKING:
    from jitgraph.tracing.branches import Branch
    from jitgraph.tracing.loop_regions import ForRegion, Unrolled, WhileLoop

__all__ = ["UNSET", "Regions", "branch", "check", "choose", "logical_not", "loop", "operand", "while_loop"]


class Known:
    """An `if` whose test is known: ordinary Python."""

    __slots__ = ("_done", "taken")
    traced = False

    def __init__(self, taken: bool) -> None:
        self.taken = taken
        self._done = False

    def turn(self) -> bool:
        done, self._done = self._done, True
        return not done

    def caught(self, error: Exception) -> bool:
        return False


def branch(regions: Regions, test: Any, info: Any) -> Known | Branch:
    """The driver of an `if` statement."""
    truth = regions.truth(test)
    if not isinstance(truth, Value):
        return Known(truth)
    key = regions.key_of()
    if regions.is_settled(key) or (key[0] in ENDLESS and regions.mode.can_turn_back()):
        return Known(regions.mode.assume(truth, "the way through a branch"))
    return _branch(regions, truth, BranchInfo(*info), key)


def _branch(regions: Regions, truth: Value, info: BranchInfo, key: Any) -> Branch:
    """A branch of machine code. Most functions have none, so that it is loaded with the first one."""
    with uncollected():
        from jitgraph.tracing.branches import Branch

    return Branch(regions, truth, info, key)


def loop(regions: Regions, iterable: Any, info: Any) -> Unrolled | ForRegion:
    """The driver of a `for` statement, loaded with the first one."""
    with uncollected():
        from jitgraph.tracing import loop_regions

    return loop_regions.loop(regions, iterable, info)


def while_loop(regions: Regions, info: Any) -> WhileLoop:
    """The driver of a `while` statement, loaded with the first one."""
    with uncollected():
        from jitgraph.tracing import loop_regions

    return loop_regions.while_loop(regions, info)


_CHOICE = BranchInfo(("value",), (), ())


def operand(get: Callable[[], Any]) -> Any:
    """The value of an operand that Python may skip, moved into a lambda: its variables are the function's own.

    Raises:
        UnboundLocalError: one is not bound yet.
    """
    try:
        return get()
    except NameError as error:
        tb, name = error.__traceback__, error.name or ""
        while tb is not None and tb.tb_next is not None:
            tb = tb.tb_next
        inner = tb.tb_frame.f_code if tb is not None else get.__code__
        frame = user_frame()
        while frame is not None and frame.f_code.co_name == "<lambda>" and name not in frame.f_code.co_cellvars:
            frame = None if frame.f_back is None else user_frame(frame.f_back)
        moved = inner.co_name == "<lambda>" and name in inner.co_freevars
        if not moved or frame is None or name not in frame.f_code.co_cellvars:
            raise
        raise UnboundLocalError(unbound_text(name), name=name) from None


def choose(regions: Regions, test: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """`a() if test else b()`."""
    truth = regions.truth(test)
    if not isinstance(truth, Value):
        return operand(a if truth else b)
    key = regions.key_of()
    if regions.is_settled(key) or (key[0] in ENDLESS and regions.mode.can_turn_back()):
        return operand(a if regions.mode.assume(truth, "the way through an expression") else b)
    s = _branch(regions, truth, _CHOICE, key)
    s.begin(Names())
    while s.turn():
        value: Any = None
        try:
            value = operand(a if s.taken else b)
        except Exception as error:
            if not s.caught(error):
                raise
        s.end(Names(value=value))
    return s.get("value")


def logical_not(regions: Regions, x: Any) -> Any:
    truth = regions.truth(x)
    if not isinstance(truth, Value):
        return not truth
    mode = regions.mode
    value = mode.builder.apply(REGISTRY["logical_not"], truth)[0]
    if value.type.kind != "py_bool":
        value = mode.builder.apply(REGISTRY["as_kind"], value, kind="py_bool")[0]
    return wrap(mode, value)


def check(regions: Regions, test: Any, message: Callable[[], Any] | None) -> None:
    """`assert test, message`: `if not test: raise AssertionError(message)`."""
    truth = regions.truth(test)
    key = regions.key_of() if isinstance(truth, Value) else None
    if isinstance(truth, Value) and regions.is_settled(key):
        truth = regions.mode.assume(truth, "an assertion")
    if not isinstance(truth, Value):
        if not truth:
            _fail(message)
        return
    s = _branch(regions, truth, BranchInfo((), (), ()), key)
    s.begin(Names())
    while s.turn():
        try:
            if not s.taken:
                _fail(message)
        except Exception as error:
            if not s.caught(error):
                raise
        s.end(Names())


def _fail(message: Callable[[], Any] | None) -> None:
    raise AssertionError(*(() if message is None else (operand(message),)))
