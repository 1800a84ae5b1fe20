"""Where in the user's source an operation came from."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from os.path import basename
from types import CodeType


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
        for at, (line, _, column, _) in enumerate(code.co_positions()):
            if at * 2 == offset:
                return SourceLoc(code.co_filename, line or code.co_firstlineno, (column or 0) + 1, code.co_name)
        return SourceLoc(code.co_filename, code.co_firstlineno, 0, code.co_name)

    @property
    def text(self) -> str:
        """The source line, stripped; empty if the source is not at hand."""
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        return f"{basename(self.filename)}:{self.line}:{self.column}"
