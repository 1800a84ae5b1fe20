"""Dumps of a compile: what each stage left, numbered, with op counts and times (JITGRAPH_DUMP, JITGRAPH_DUMP_DIR)."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from jitgraph.config import config
from jitgraph.ir.graph import Graph
from jitgraph.ir.printer import print_graph
from jitgraph.records import dataclass, field

_compiles = count(1)


@dataclass(slots=True)
class Dumper:
    """Writes the stages of one compile that the settings ask for.

    Attributes:
        stages: names asked for (`all` for everything): `trace`, pass names, `loops`, `llvm`, `asm`.
        folder: one file a stage goes there; None: standard error.
    """

    title: str
    stages: frozenset[str]
    folder: Path | None
    number: int = field(default_factory=lambda: next(_compiles))

    @staticmethod
    def from_config(title: str) -> Dumper | None:
        """The dumper that the settings ask for, or None."""
        stages = frozenset(filter(None, (s.strip() for s in config.dump.split(","))))
        if not stages:
            return None
        return Dumper(title, stages, Path(config.dump_dir) if config.dump_dir else None)

    def wants(self, stage: str) -> bool:
        return "all" in self.stages or stage in self.stages

    def write(self, index: int, stage: str, text: str, suffix: str = "ir") -> None:
        """Write one stage; a folder that cannot be written is reported once on standard error and not used."""
        if self.folder is not None:
            path = self.folder / f"{self.number:03d}-{self.title}" / f"{index:02d}-{stage}.{suffix}"
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            except OSError as e:
                sys.stderr.write(f"jitgraph: no dumps in {self.folder}: {e}\n")
                self.folder = None
            else:
                return
        sys.stderr.write(f"{text}\n")

    def after_pass(self, index: int, name: str, graph: Graph, before: int, after: int, wall_ms: float) -> None:
        """Observer of the pipeline: the graph behind a pass, under a line with op counts and time."""
        if self.wants(name):
            changed = f"{before} -> {after} ops" if before != after else f"{after} ops"
            self.write(
                index + 1, name, f"# after {name} ({index + 1}): {changed}, {wall_ms:.2f} ms\n{print_graph(graph)}"
            )
