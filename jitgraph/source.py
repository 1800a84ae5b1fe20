"""Where in the user's source an operation came from."""

from __future__ import annotations

import linecache
from types import CodeType
from typing import Any

from jitgraph.records import dataclass

#: Positions of each instruction by the identity of the code object, which is kept alive here; and places made of them.
_positions: dict[int, tuple[CodeType, list[Any]]] = {}
_places: dict[tuple[int, int], SourceLoc] = {}


@dataclass(frozen=True, slots=True)
class SourceLoc:
    """A place in the user's source; columns are 1-based, 0 when unknown."""

    filename: str
    line: int
    column: int = 0
    function: str = ""

    @staticmethod
    def of_instruction(code: CodeType, offset: int) -> SourceLoc:
        """The place of the bytecode instruction at `offset` of `code`."""
        key = (id(code), offset)
        found = _places.get(key)
        if found is None:
            positions = _positions.get(id(code))
            if positions is None:
                positions = (code, list(code.co_positions()))
                _positions[id(code)] = positions
            at = offset // 2
            line, _, column, _ = positions[1][at] if 0 <= at < len(positions[1]) else (None, None, None, None)
            found = SourceLoc(
                code.co_filename, line or code.co_firstlineno, 0 if column is None else column + 1, code.co_name
            )
            _places[key] = found
        return found

    @staticmethod
    def of_definition(fn: Any) -> SourceLoc | None:
        """The `def` line of a Python function or method; None if it has none."""
        code = getattr(getattr(fn, "__func__", fn), "__code__", None)
        if not isinstance(code, CodeType):
            return None
        line = code.co_firstlineno
        for k in range(line, line + 30):  # behind decorators
            text = linecache.getline(code.co_filename, k).strip()
            if text.startswith(("def ", "async def ")) or "lambda" in text:
                line = k
                break
        return SourceLoc(code.co_filename, line, 0, code.co_name)

    @property
    def text(self) -> str:
        """The source line, stripped; empty if the source is not at hand."""
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        return f"{self.filename.rpartition('/')[2]}:{self.line}:{self.column}"
