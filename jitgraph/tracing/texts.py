"""Texts that show traced values: marks in their place, filled in when the text is the message of an error."""

from __future__ import annotations

import re
from typing import Any

from jitgraph.tensor import Tensor

_CONVERSION = re.compile(r"%(?:\((\w+)\))?([#0\- +]*)(\d*)(\.\d+)?([diouxXeEfFgGcrsa%])")


#: Functions for which a text is more than part of a message.
_READING = (len, hash, ord, int, float, complex, list, tuple, set, frozenset, sorted, iter, enumerate, min, max, bytes)
_TEXTUAL = frozenset(("format", "join", "__format__", "__str__", "__add__", "__mod__"))


def is_marked(x: Any) -> bool:
    """Whether it is a text with traced values in it: good for messages of errors only."""
    return type(x) is str and "\x01" in x


def check_reading(tracer: Any, f: Any, args: Any) -> None:
    """Refuse calls that look at a text with traced values.

    Raises:
        TraceError: it is one.
    """
    owner = getattr(f, "__self__", None)
    looked_into = is_marked(owner) and f.__name__ not in _TEXTUAL
    if looked_into or (any(f is r for r in _READING) and any(map(is_marked, args))):
        refuse(tracer)


def refuse(tracer: Any) -> None:
    tracer.mode.leave(
        "the text of a traced value is needed, for more than the message of an error",
        "format it after the call, or print with jg.debug.print.",
    )


def percent(tracer: Any, template: str, given: Any) -> Any:
    """`template % given` with traced values; NotImplemented if there are none.

    Raises:
        TraceError: it asks for what `format` cannot say.
    """
    values = given if isinstance(given, tuple) else (given,)
    if not any(type(x) is Tensor and x.is_traced for x in (given.values() if isinstance(given, dict) else values)):
        return NotImplemented
    rest = list(values)
    out: list[str] = []
    end = 0
    for match in _CONVERSION.finditer(template):
        out.append(template[end : match.start()])
        end = match.end()
        name, flags, width, precision, letter = match.groups()
        if letter == "%":
            out.append("%")
            continue
        x = given[name] if name else rest.pop(0)
        if type(x) is not Tensor or not x.is_traced:
            out.append(match.group().replace(f"({name})", "") % (x,))
            continue
        spec = f"{'<' if '-' in flags else ''}{'+' if '+' in flags else ''}{'0' if '0' in flags else ''}{width}"
        if letter == "r":
            out.append(repr(x))
        elif letter == "s":
            out.append(format(x, f"{spec}{precision or ''}"))
        elif letter in "eEfFgG":
            out.append(format(x, f"{spec}{precision or ''}{letter}"))
        elif letter in "di" and x.type.dtype.kind in "iub":
            out.append(format(x, f"{spec}d"))
        else:
            refuse(tracer)
    return "".join([*out, template[end:]])
