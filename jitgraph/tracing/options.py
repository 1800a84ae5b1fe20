"""Values of one of several types, where data decides and no call can turn back: None or a number, one text or another.

Such a value is a `OneOf`: its options side by side, and a traced int that says which it is. An operation on it is a
branch on that int, whose sides know the option: what `is` and `==` say of options that Python knows is the bool itself,
and an option that Python refuses is a check. Within `if best is not None` the test rules an option out, so that `best`
is a number there (`CaptureMode.tested`). Loops carry the int and what the options consist of (`carried_options`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgraph.errors import JitgraphError, TraceError
from jitgraph.errors import describe as describe_error
from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.rewrite import constant_of
from jitgraph.tensor import Tensor, lift, wrap
from jitgraph.tracing import control_flow
from jitgraph.tracing.joining import describe, is_value
from jitgraph.tracing.poison import OneOf, Poison


def found_in(args: Sequence[Any], kwargs: dict[str, Any]) -> OneOf | None:
    """An argument of several types, if there is one.

    Raises:
        UnboundLocalError, TraceError, Restart: one without a value fails here, by its own error.
    """
    found: OneOf | None = None
    for x in (*args, *kwargs.values()) if kwargs else args:
        kind = type(x)
        if kind is Poison:
            x.fail()
        if kind is OneOf:
            found = x
        elif kind is tuple or kind is list or kind is slice:
            inner = within(x)
            found = found if inner is None else inner
    return found


def within(x: Any) -> OneOf | None:
    """An item of several types in a tuple, list or slice.

    Raises:
        UnboundLocalError, TraceError, Restart: an item without a value fails here, by its own error.
    """
    for item in (x.start, x.stop, x.step) if type(x) is slice else x:
        kind = type(item)
        if kind is Poison:
            item.fail()
        if kind is OneOf:
            return item  # type: ignore[no-any-return]
        if kind is slice or kind is tuple or kind is list:
            found = within(item)
            if found is not None:
                return found
    return None


def _replaced(x: Any, old: OneOf, new: Any) -> Any:
    """`x` with an option in place of a value of several types."""
    if x is old:
        return new
    if type(x) is slice:
        return slice(*(_replaced(i, old, new) for i in (x.start, x.stop, x.step)))
    if (type(x) is tuple or type(x) is list) and within(x) is not None:
        return type(x)([_replaced(i, old, new) for i in x])
    return x


def called(
    tracer: Any, x: OneOf, call: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], numpys: Any = None
) -> Any:
    """What a function gives that has `x` among its arguments.

    Args:
        numpys: what NumPy has for `call`, to be asked what it says of options that are no numbers.
    """

    def compute(option: Any) -> Any:
        given = [_replaced(v, x, option) for v in args]
        named = {k: _replaced(v, x, option) for k, v in kwargs.items()}
        if numpys is None or is_value(option):
            return call(*given, **named)
        try:
            return call(*given, **named)
        except (JitgraphError, TypeError, AttributeError) as error:
            _ask_numpy(numpys, given, named)
            if isinstance(error, TraceError):
                raise
            name, place = getattr(numpys, "__name__", "this"), tracer.mode.locate()
            raise TraceError(describe_error(f"{name} of {describe(option)} is not compiled", place)) from error

    return choose(tracer, x, compute)


def _ask_numpy(f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Call NumPy's function on arrays of these types, for the error that it raises whatever they hold.

    Raises:
        TypeError, AttributeError: it refuses one of the others.
    """
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f(*map(sample, args), **{k: sample(v) for k, v in kwargs.items()})
    except (TypeError, AttributeError) as error:
        kind = next(k for k in type(error).__mro__ if k.__module__ != "numpy._core._exceptions")
        raise kind(str(error)) from None
    except Exception:  # noqa: BLE001, S110  # of sizes, which are not the call's
        pass


def overflows(f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether NumPy raises an OverflowError for arrays of these types."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f(*map(sample, args), **{k: sample(v) for k, v in kwargs.items()})
    except OverflowError:
        return True
    except Exception:  # noqa: BLE001, S110  # its own, or of sizes
        pass
    return False


def sample(x: Any) -> Any:
    """Something of the type of a traced value."""
    if type(x) is not Tensor:
        return type(x)([sample(i) for i in x]) if type(x) in (list, tuple) else x
    made = np.zeros((2,) * x.type.ndim, x.type.dtype)
    return made if x.type.kind == "array" else made.item() if x.type.is_python else made[()]


def narrowed(mode: Any, x: Any) -> Any:
    """A value of several types as the one that the tests around leave, if that is known."""
    if type(x) is not OneOf or type(x.which) is int:
        return x
    which = x.which._storage.value
    left = []
    for k, option in enumerate(x.options):
        known = mode.tested.get(mode.option_flags.get((which, k)))
        if known:
            return option
        if known is None:
            left.append(option)
    return left[0] if len(left) == 1 else x


def choose(tracer: Any, x: OneOf, compute: Callable[[Any], Any], first: int = 0) -> Any:
    """What an operation gives on a value of several types: the one from number `first` on that the run says."""
    mode = tracer.mode
    for option in x.options:
        mode.ask(option)
    if type(x.which) is int:
        return compute(x.options[x.which])
    last = len(x.options) - 1
    for k in range(first, last):
        flag = _flag(mode, x, k)
        known = mode.tested.get(flag, constant_of(flag))
        if known is None:
            return control_flow.choose(
                tracer.regions,
                wrap(mode, flag),
                lambda k=k: compute(x.options[k]),  # type: ignore[misc]
                lambda k=k: choose(tracer, x, compute, k + 1),  # type: ignore[misc]
            )
        if known:
            return compute(x.options[k])
    return compute(x.options[last])


def _flag(mode: Any, x: OneOf, k: int) -> Value:
    """Whether the value is option `k`: one bool wherever it is asked, so that what tests said of it is known."""
    which = lift(mode, x.which)
    known = mode.option_flags.get((which, k))
    if known is None or not mode.is_visible(known):
        known = mode.builder.apply(REGISTRY["eq"], which, k)[0]
        if known.type.kind != "py_bool":
            known = mode.builder.apply(REGISTRY["as_kind"], known, kind="py_bool")[0]
        mode.option_flags[which, k] = known
    return known  # type: ignore[no-any-return]
