"""The machine code of the native dispatcher in this process: from the disk cache, or compiled."""

from __future__ import annotations

import sys

from jitgraph.native import layout, table
from jitgraph.native.records import VERSION
from jitgraph.runtime import prebuilt

EXPORT = "jg_vectorcall"
_NAME = "jitgraph.dispatcher"
#: Calls that go through Python before the code is compiled: that takes 0.1 s, which not every process gains back.
_PATIENCE = 200
_waited = 0
#: Of the native vectorcall, by `block_offset`.
_addresses: dict[int, int] = {}
#: Passes that inline what is marked and put variables into registers, in the order in which they run.
_PASSES = ("always_inliner", "sroa", "simplify_cfg")


def text_of(triple: str, block_offset: int) -> str:
    """The LLVM IR of the dispatcher for this interpreter and NumPy, and an object whose own word is at `block_offset`.

    Raises:
        OSError: its source is not at hand.
    """
    from jitgraph.native import answers, guards, language, vectorcall

    offsets = {**layout.offsets(), "block": block_offset}
    head = f'; jitgraph dispatcher {VERSION}\ntarget triple = "{triple}"\n\n'
    return head + language.compile_functions((guards, answers, vectorcall), offsets, table.NUMBERS)


def _made_of(block_offset: int) -> str:
    """What the code depends on besides the triple."""
    offsets = ",".join(f"{name}={at}" for name, at in sorted(layout.offsets().items()))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"dispatcher {VERSION}; CPython {version}; block={block_offset},{offsets}; {' '.join(table.NUMBERS)}"


def vectorcall_address(block_offset: int) -> int:
    """The address of the native vectorcall.

    Raises:
        OSError: it is not in the disk cache, and its source is not at hand.
    """
    if block_offset not in _addresses:
        made_of = _made_of(block_offset)
        found = prebuilt.linked(_NAME, lambda triple: text_of(triple, block_offset), made_of, (EXPORT,), _PASSES, opt=1)
        _addresses[block_offset] = found[EXPORT]
    return _addresses[block_offset]


def is_due(block_offset: int) -> bool:
    """Whether to use the code from now on; it is compiled only for processes that make many calls."""
    global _waited
    if block_offset in _addresses:
        return True
    if not _waited:
        found = prebuilt.stored(_NAME, _made_of(block_offset), (EXPORT,))
        if found is not None:
            _addresses[block_offset] = found[EXPORT]
            return True
    _waited += 1
    return _waited > _PATIENCE
