"""The loop of dtypes that NumPy takes for a ufunc, and what it refuses before it looks at shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from jitgraph import errors
from jitgraph.tensor import Tensor

#: Python numbers that are weak.
_WEAK = {"py_int": int, "py_float": float, "py_complex": complex}
_KNOWN = (Tensor, np.ndarray, np.generic, int, float, complex)


def signature_of(ufunc: np.ufunc, kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The dtypes of the loop asked for by `dtype` or `signature`; None if none is."""
    dtype = kwargs.get("dtype")
    if dtype is not None:
        return (*[None] * ufunc.nin, *[np.dtype(dtype)] * ufunc.nout)
    given = kwargs.get("signature", kwargs.get("sig"))
    if given is None:
        return None
    if isinstance(given, str) and "->" in given:
        given = tuple(given.replace("->", ""))
    if isinstance(given, tuple) and len(given) == ufunc.nin + ufunc.nout:
        return tuple(None if d is None else np.dtype(d) for d in given)
    raise errors.DTypeError(f"{ufunc.__name__}: a signature names one dtype for each input and output, as in 'dd->d'")


def loop_of(
    ufunc: np.ufunc,
    values: Sequence[Any],
    outs: Sequence[Any] = (),
    signature: tuple[Any, ...] | None = None,
    casting: str = "same_kind",
) -> tuple[np.dtype, ...]:
    """The dtypes of the loop that NumPy takes, or of the one of that signature.

    Raises:
        DTypeError: no loop takes these operands, or what it gives cannot be cast to the dtype of its `out`.
    """
    codes = [_code(x) for x in values]
    codes += [x.type.dtype if type(x) is Tensor else None for x in outs]
    codes += [None] * (ufunc.nin + ufunc.nout - len(codes))
    chosen: dict[str, Any] = {} if signature is None else {"signature": signature}
    try:
        return ufunc.resolve_dtypes(tuple(codes), casting=casting, **chosen)  # type: ignore[arg-type]
    except TypeError as error:
        raise errors.DTypeError(str(error)) from None


def _code(x: Any) -> Any:
    """What NumPy's promotion looks at: a dtype, or the type of a Python number, which is weak."""
    if type(x) is Tensor:
        return _WEAK.get(x.type.kind, x.type.dtype)
    return type(x) if type(x) in (int, float, complex) else np.asarray(x).dtype


def raise_mask(dtype: np.dtype) -> NoReturn:
    """A `where=` that is no mask."""
    what = f"Cannot cast array data from dtype('{dtype}') to dtype('bool')"
    raise errors.DTypeError(f"{what} according to the rule 'safe'")


def first_refusal(
    function: Callable[..., Any], operands: Sequence[Any], kwargs: Mapping[str, Any], error: errors.JitgraphError
) -> errors.JitgraphError:
    """The error of a call that is refused for `error`: a ufunc looks at dtypes, that of `out` too, before shapes."""
    if not isinstance(error, errors.ShapeError) or not isinstance(function, np.ufunc):
        return error
    if not all(isinstance(x, _KNOWN) for x in operands[: function.nin]):
        return error  # a list, say
    ufunc = function
    given = kwargs.get("out")
    outs = operands[ufunc.nin :] or (given if isinstance(given, tuple) else (given,))
    if len(outs) > ufunc.nout:
        return error  # which is about that
    where = kwargs.get("where", True)
    try:
        if type(where) is Tensor and where.type.dtype.kind != "b":
            raise_mask(where.type.dtype)
        loop_of(ufunc, operands[: ufunc.nin], outs, signature_of(ufunc, kwargs), kwargs.get("casting", "same_kind"))
    except errors.DTypeError as first:
        return first
    return error
