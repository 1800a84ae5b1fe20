"""The machine code of the native dispatcher in this process: from the disk cache, or compiled."""

from __future__ import annotations

import sys
from functools import cache

from jitgraph.native import layout, table
from jitgraph.native.records import VERSION
from jitgraph.runtime import linking, prebuilt

EXPORT = "jg_vectorcall"
_NAME = "jitgraph.dispatcher"
#: Calls that go through Python before the code is compiled: that takes 0.1 s, which not every process gains back.
_PATIENCE = 200
_waited = 0
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


@cache
def vectorcall_address(block_offset: int) -> int:
    """The address of the native vectorcall.

    Raises:
        OSError: it is not in the disk cache, and its source is not at hand.
    """
    code = prebuilt.object_code(
        _NAME,
        lambda triple: text_of(triple, block_offset),
        made_of=_made_of(block_offset),
        passes=_PASSES,
        opt=1,
    )
    return linking.load(code, (EXPORT,))[EXPORT]


def is_due(block_offset: int) -> bool:
    """Whether to use the code from now on; it is compiled only for processes that make many calls."""
    global _waited
    if vectorcall_address.cache_info().currsize:
        return True
    if not _waited and prebuilt.is_stored(_NAME, _made_of(block_offset)):
        _waited = _PATIENCE
    _waited += 1
    return _waited > _PATIENCE
