"""The native side of one jitted function: its chain of entries, and how they come and go."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from jitgraph.config import config
from jitgraph.native import callable as callable_
from jitgraph.native import code, table
from jitgraph.native.entries import NativeEntry, Refused, make_entry
from jitgraph.native.records import Block, Entry, Off
from jitgraph.specialise import Specialisation
from jitgraph.tracing.hidden import Call

#: Most entries of a function; of one specialisation (equal values that are other objects, dtypes of two names).
_ENTRIES, _EACH = 64, 4


class NativeCalls:
    """The entries of one jitted function.

    Args:
        target: the object whose vectorcall it is.
        slow: callable as the function: serves what no entry does.
        heeds: bits of `Off` that send all calls to it.
    """

    def __init__(self, target: Any, slow: Callable[..., Any], heeds: int = Off.ALWAYS | Off.COMPARED) -> None:
        self.address = code.vectorcall_address(callable_.block_offset(type(target)))
        self.slow = slow
        self.block = (ctypes.c_int64 * Block.WORDS)()
        self.block[Block.SLOW] = id(slow)
        self.block[Block.HEEDS] = heeds
        self.block[Block.TABLE] = ctypes.addressof(table.table())
        #: In no order: the chain has the one in which they are tried.
        self.entries: list[NativeEntry] = []
        #: Unlinked while calls were running.
        self._unlinked: list[NativeEntry] = []
        self._refused: WeakSet[Specialisation] = WeakSet()
        callable_.patch(target, self.address, ctypes.addressof(self.block))

    @property
    def hits(self) -> int:
        """Calls served."""
        return int(self.block[Block.HITS])

    def promote(
        self,
        specialisation: Specialisation,
        key: Any,
        leaves: Sequence[Any],
        call: Call,
        failed: Callable[..., Any],
    ) -> None:
        """Have native code serve calls like this one, which the specialisation has served; the caller holds the lock.

        Args:
            key: of the call, see `call_key`.
        """
        mine = [e for e in self.entries if e.specialisation is specialisation]
        for entry in mine:
            if entry.words[Entry.STARVED]:  # this call, or another one that comes here: one frame for each
                entry.words[Entry.STARVED] -= 1
                entry.add_frame()
                return
        if specialisation in self._refused:
            return
        tree, keys, aliases, shapes, *variant = key
        if variant or len(mine) >= _EACH:
            self._refused.add(specialisation)
            return
        try:
            like = mine[0] if mine else None
            made = make_entry(specialisation, keys, aliases, tree, leaves, call, bool(shapes), failed, like)
        except Refused as reason:
            self._refused.add(specialisation)
            if "miss" in config.log:
                sys.stderr.write(f"jitgraph: calls of {specialisation.graph.name} go through Python: {reason}\n")
            return
        if any(made.admits_as(entry) for entry in mine):  # made while this call was on its way
            return
        if len(self.entries) >= _ENTRIES:
            self._unlink_last()
        self.entries.append(made)
        made.words[Entry.NEXT] = self.block[Block.HEAD]
        self.block[Block.HEAD] = made.address

    def clear(self) -> None:
        """Unlink all entries."""
        self._refused.clear()
        self.block[Block.HEAD] = 0
        for entry in self.entries:
            entry.words[Entry.DEAD] = 1
        self._unlinked += self.entries
        self.entries = []
        self._let_go()

    def _unlink_last(self) -> None:
        """Unlink the entry at the end of the chain: the one whose last call is longest ago."""
        by_address = {e.address: e for e in self.entries}
        previous, entry = 0, self.block[Block.HEAD]
        while by_address[entry].words[Entry.NEXT]:
            previous, entry = entry, by_address[entry].words[Entry.NEXT]
        last = by_address[entry]
        last.words[Entry.DEAD] = 1
        if previous:
            by_address[previous].words[Entry.NEXT] = 0
        else:
            self.block[Block.HEAD] = 0
        self.entries.remove(last)
        self._unlinked.append(last)
        self._let_go()

    def _let_go(self) -> None:
        """Drop what was unlinked, unless a call that is running may still look at it."""
        if not self.block[Block.RUNNING]:
            self._unlinked.clear()
