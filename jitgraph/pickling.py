"""How jitted functions are pickled: like functions.

By reference (module and name) where the name leads back to the object. Picklers that take functions by value
(cloudpickle and its copies, dill) get the function and the options of what is in `__main__`, in no module (closures,
lambdas), or in a module that the user asked to have pickled by value; machine code comes from the disk cache, or anew.
"""

from __future__ import annotations

import contextlib
import linecache
import pickle
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

_BY_VALUE = ("cloudpickle", "dill")


def reduce(jitted: Any, fn: Callable[..., Any], options: Any, unmade: Callable[[], Any]) -> Any:
    """What `__reduce__` of a jitted function answers.

    Args:
        unmade: makes the object that a pickle by value begins with, before its state.

    Raises:
        PicklingError: the pickler takes functions by name only, and the name leads elsewhere.
    """
    module = getattr(jitted, "__module__", None) or "__main__"
    name = getattr(fn, "__qualname__", "") or getattr(jitted, "__qualname__", "")
    pickler = _pickler()
    found = _find(module, name)
    named = found is jitted or getattr(found, "__func__", None) is jitted
    if pickler is not None and (not named or module == "__main__" or _asked_for(pickler, module)):
        return unmade, (), (fn, options, sources(fn))
    if not named:
        raise pickle.PicklingError(
            f"cannot pickle {jitted!r}: {module}.{name} is something else (a function in a function, a "
            "lambda, a name that was bound anew). Give it a name in a module, or use cloudpickle."
        )
    return by_reference, (module, name)


class Sources(NamedTuple):
    """Where the code of functions that are pickled by value is written: the tracer reads it. Picklers forget the file,
    and the process that loads the pickle may not have it (cells of notebooks).

    Attributes:
        texts: of files.
        files: of functions, by qualified name and first line.
    """

    texts: dict[str, str]
    files: dict[tuple[str, int], str]


def sources(fn: Callable[..., Any]) -> Sources:
    """Of a function, and of the functions and classes that it names and that are pickled by value, too."""
    found = Sources({}, {})
    for f in _named(fn):
        file = f.__code__.co_filename
        if f.__module__ == "__main__" or _find(f.__module__ or "", f.__qualname__) is not f:
            if file not in found.texts:
                found.texts[file] = "".join(linecache.getlines(file))
            if found.texts[file]:
                found.files[f.__qualname__, f.__code__.co_firstlineno] = file
    return found


def know_sources(fn: Callable[..., Any], known: Sources) -> None:
    """Have the functions that `fn` names, unpickled, say where their code is written, and `linecache` find it."""
    for file, text in known.texts.items():
        if text and not linecache.getlines(file):
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    for f in _named(fn):
        written = known.files.get((f.__qualname__, f.__code__.co_firstlineno))
        if written is not None and written != f.__code__.co_filename:
            f.__code__ = _moved(f.__code__, written)


def _moved(code: CodeType, file: str) -> CodeType:
    inner = tuple([_moved(c, file) if isinstance(c, CodeType) else c for c in code.co_consts])
    return code.replace(co_filename=file, co_consts=inner)


def _named(fn: Callable[..., Any]) -> Iterator[FunctionType]:
    """The functions that a function names, over all of those."""
    seen: set[int] = set()
    waiting: list[Any] = [fn]
    while waiting:
        f = waiting.pop()
        f = getattr(f, "__func__", f)
        if getattr(f, "__jitgraph_jit__", False):
            f = vars(f).get("__wrapped__")  # none yet while a pickle is loaded
        if id(f) in seen:
            continue
        seen.add(id(f))
        if isinstance(f, FunctionType):
            yield f
            waiting += [f.__globals__[name] for name in f.__code__.co_names if name in f.__globals__]
            for cell in f.__closure__ or ():
                with contextlib.suppress(ValueError):  # empty
                    waiting.append(cell.cell_contents)
        elif isinstance(f, type):
            if f.__module__ == "__main__":
                waiting += vars(f).values()
        elif type(f).__module__ == "__main__":
            waiting.append(type(f))


def by_reference(module: str, name: str) -> Any:
    """The object of a pickle by reference.

    Raises:
        AttributeError: there is none of the name.
    """
    __import__(module)
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _find(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _pickler() -> Any:
    """The pickler at work, if it takes functions by value: it is in the nearest frame that is not ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "jitgraph":
        frame = frame.f_back
    for _ in range(4):  # written in Python, a pickler has frames of its own in between
        at_work = frame.f_locals.get("self")
        if isinstance(at_work, pickle.Pickler | pickle._Pickler):
            names = [part for kind in type(at_work).__mro__ for part in kind.__module__.split(".")]
            return at_work if any(name.lstrip("_") in _BY_VALUE for name in names) else None
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def _asked_for(pickler: Any, module: str) -> bool:
    """Whether the user asked cloudpickle to pickle the module, or a package it is in, by value."""
    for kind in type(pickler).__mro__:
        listed = getattr(sys.modules.get(kind.__module__), "list_registry_pickle_by_value", None)
        if listed is not None:
            return any(module == asked or module.startswith(f"{asked}.") for asked in listed())
    return False
