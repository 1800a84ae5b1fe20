"""Random loop nests as Python source: what the passes over loops move, join and leave alone, in all its neighbourhoods.

`python -m tests.schedule.random_nests --count 3000 --seed 0` runs more than the tests do, each program in NumPy, in the
interpreter of the loops before and behind the passes, and as machine code.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.programs import Fuzzed
from tests.schedule.campaign import main

#: Arguments by name: vectors, matrices, integers in arrays, numbers.
VECTORS, MATRICES, INDICES, NUMBERS = ("x", "y", "z"), ("a", "b", "c"), ("h",), ("n", "m", "p")
_ROWS, _COLUMNS = (0, 1, 2, 3, 5, 6), (0, 1, 2, 3, 5, 9, 12, 17)


@dataclass(slots=True)
class Nests(Fuzzed):
    """A program whose arguments have names; `calls` say how large they are, and which of them share memory."""

    @property
    def source(self) -> str:
        names = ", ".join((*VECTORS, *MATRICES, *INDICES, *NUMBERS))
        body = "\n".join(f"    {line}" for line in [*self.lines, f"return {self.returned or 'None'}"])
        return f"def program({names}):\n{body}\n"

    def make(self, call: int) -> list[Any]:
        """Fresh arguments, equal each time."""
        s = self.calls[call]
        rng = np.random.default_rng([self.seed, call])
        n, m = s["rows"], s["columns"]
        dtype = np.dtype("float32" if s["single"] else "float64")
        vectors = [numbers(rng, (n,), dtype) for _ in VECTORS]
        matrices = [numbers(rng, (n, m), dtype) for _ in MATRICES]
        if s["layout"] == 1:
            matrices[0] = np.asfortranarray(matrices[0])
        elif s["layout"] == 2:
            vectors[0] = numbers(rng, (2 * n,), dtype)[::2]
            matrices[1] = numbers(rng, (n, 2 * m + 1), dtype)[:, :m]
        elif s["layout"] == 3:
            vectors[1] = vectors[1][::-1]
            matrices[0] = numbers(rng, (m, n), dtype).T
        if s["shared"] == 1:
            vectors[1] = vectors[0]
        elif s["shared"] == 2:
            matrices[1] = matrices[0]
        elif s["shared"] == 3:
            vectors[2] = matrices[0][:, 0] if m else vectors[2]
        indices = rng.integers(-1, max(n, 1) + s["wild"], (n,))
        return [*vectors, *matrices, indices, s["n"], s["m"], s["p"]]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Some that are exact, zeros of both signs among them."""
    made = rng.integers(-8, 9, shape).astype(dtype) / 4
    made[rng.random(shape) < 0.1] = -0.0
    return made


@dataclass(slots=True)
class Writer:
    """Draws one program."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    made: int = 0
    #: Statements that may still be written.
    left: int = 9

    def pick(self, *items: Any) -> Any:
        return self.rng.choice(items)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # --- parts

    def index(self) -> str:
        """An affine index, mostly in range."""
        if not self.counters:
            return self.pick("0", "1", "-1", "p", "n - 1", "m - 1")
        i, j = self.rng.choice(self.counters), self.rng.choice(self.counters)
        return self.pick(
            i, i, i, i, f"{i} + 1", f"{i} - 1", f"{i} - 1", f"n - 1 - {i}", f"2 * {i}", f"{i} + {j}", f"{i} - {j}", f"{i} // 2",
            "0", "p", f"h[{i}]", f"-{i} - 1", f"{i} - 2", f"({i} + 1) % n",
        )  # fmt: skip

    def vector(self) -> str:
        return self.rng.choice(VECTORS)

    def matrix(self) -> str:
        return self.rng.choice(MATRICES)

    def element(self) -> str:
        if self.rng.random() < 0.5:
            return f"{self.vector()}[{self.index()}]"
        return f"{self.matrix()}[{self.index()}, {self.index()}]"

    def number(self, depth: int = 0) -> str:
        kind = self.rng.random()
        if depth > 2 or kind < 0.2:
            return self.pick("s", "t", "0.5", "-0.0", "2.0", "p", *self.counters)
        if kind < 0.6:
            return self.element()
        left, right = self.number(depth + 1), self.number(depth + 2)
        return self.pick(
            f"({left} + {right})", f"({left} - {right})", f"{left} * 0.5", f"({left} * {right})", f"np.maximum({left}, {right})",
            f"np.sqrt(abs({left}))", f"{left} / 4.0", f"({left} if {right} > 0.5 else -{left})", f"-{left}",
        )  # fmt: skip

    def condition(self) -> str:
        kind = self.rng.random()
        if self.counters and kind < 0.4:
            i = self.rng.choice(self.counters)
            return self.pick(f"{i} > p", f"{i} % 2 == 0", f"{i} < n - 1", f"{i} > 0", f"0 <= p < len({self.vector()})")
        return self.pick(f"{self.number(2)} > 0.0", "p > 2", "s < t", "0 <= p < n", f"p < len({self.vector()})")

    def bounds(self) -> str:
        i = self.rng.choice(self.counters) if self.counters else "p"
        return self.pick(
            "n", "n", "m", "m", "n - 1", "1, n", "1, n - 1", "1, m - 1", "2, n", f"{i}", f"{i} + 1, n", f"{i} - 1, n - 2", "p",
            "n - 1, -1, -1", "n - 2, 0, -1", "0, n, 2", "1, m, 3", f"{i}, -1, -1", "len(x)", "p, n", "n, p", "3", "n // 2",
        )  # fmt: skip

    def piece(self) -> str:
        """A slice; most have one length."""
        i = self.rng.choice(self.counters) if self.counters else "p"
        return self.pick(":", ":", ":", "1:", ":-1", "1:-1", "2:", ":-2", f":{i}", f"{i}:", f"{i} + 1:", "::2", "::-1")

    def slices(self) -> str:
        """Vectors of a matrix or a vector."""
        kind = self.rng.random()
        if kind < 0.3:
            return f"{self.vector()}[{self.piece()}]"
        if kind < 0.55:
            return f"{self.matrix()}[{self.index()}, {self.piece()}]"
        if kind < 0.75:
            return f"{self.matrix()}[{self.piece()}, {self.index()}]"
        return f"{self.matrix()}[{self.piece()}, {self.piece()}]"

    def whole(self, depth: int = 0) -> str:
        """An array expression whose shapes may well not fit."""
        kind = self.rng.random()
        if depth > 1 or kind < 0.5:
            return self.slices()
        left, right = self.whole(depth + 1), self.whole(depth + 1) if kind < 0.8 else self.number(2)
        return self.pick(f"({left} + {right})", f"({left} - {right})", f"{left} * 0.5", f"np.maximum({left}, {right})")

    def like(self, target: str) -> str:
        """An array expression with the shape of a slice, give or take one element."""
        name, inside = target.split("[", maxsplit=1)
        parts = inside[:-1].split(", ")
        terms = []
        for _ in range(self.rng.randrange(1, 4)):
            moved = []
            for part in parts:
                if part == "1:-1":
                    moved.append(self.pick("1:-1", "2:", ":-2", "1:-1"))
                elif part in ("1:", ":-1"):
                    moved.append(self.pick("1:", ":-1"))
                elif ":" in part:
                    moved.append(part)
                else:
                    moved.append(self.pick(part, part, self.index()))
            owner = self.rng.choice(MATRICES if len(parts) == 2 else VECTORS) if self.rng.random() < 0.6 else name
            terms.append(f"{owner}[{', '.join(moved)}]")
        if self.rng.random() < 0.3:
            terms.append(self.number(2))
        text = terms[0]
        for term in terms[1:]:
            text = f"({text} {self.pick('+', '-')} {term})"
        return text + self.pick("", "", " * 0.5", " / 4.0")

    # --- statements

    def statement(self, depth: int) -> None:
        self.left -= 1
        kind = self.rng.random()
        if kind < 0.2:
            self.line(depth, f"{self.pick('s', 't')} {self.pick('= t +', '= s -', '+=', '+=', '-=')} {self.number()}")
        elif kind < 0.45:
            self.line(depth, f"{self.element()} {self.pick('=', '=', '+=', '*=')} {self.number()}")
        elif kind < 0.7:
            target = self.slices()
            value = self.like(target) if self.rng.random() < 0.9 else self.whole()
            self.line(depth, f"{target} {self.pick('=', '=', '+=', '-=')} {value}")
        elif kind < 0.75:
            u, v = self.pick(VECTORS, MATRICES), self.rng.random()
            first, second = self.rng.sample(u, 2)
            self.line(
                depth, f"{first}, {second} = {second}, {first}" if v < 0.6 else f"{first} = {first} * 0.5 + {second}"
            )
        elif kind < 0.85:
            self.line(depth, f"if {self.condition()}:")
            self.block(depth + 1, self.rng.randrange(1, 3))
            if self.rng.random() < 0.4:
                self.line(depth, "else:")
                self.block(depth + 1, self.rng.randrange(1, 3))
        elif kind < 0.88 and self.counters:
            self.line(depth, f"if {self.condition()}:")
            self.line(depth + 1, self.pick("break", "continue"))
        else:
            self.loop(depth)

    def block(self, depth: int, count: int) -> None:
        before = len(self.lines)
        for _ in range(count):
            if self.left > 0:
                self.statement(depth)
        if len(self.lines) == before:
            self.line(depth, "s += 1.0")

    def loop(self, depth: int) -> None:
        if len(self.counters) > 2:
            self.line(depth, f"{self.element()} += s")
            return
        self.made += 1
        i = f"{'ijk'[len(self.counters)]}{self.made if self.rng.random() < 0.3 else ''}"
        if self.rng.random() < 0.12:
            i = f"w{self.made}"
            self.line(depth, f"{i} = {self.pick('0', '1', 'p')}")
            self.line(depth, f"while {i} < {self.pick('n', 'm', 'n - 1', '4')}:")
            self.counters.append(i)
            self.block(depth + 1, self.rng.randrange(1, 4))
            self.line(depth + 1, f"{i} += {self.pick('1', '1', '2')}")
            if "continue" in "".join(self.lines):  # the loop would not end
                self.lines = [line.replace("continue", "break") for line in self.lines]
        else:
            self.line(depth, f"for {i} in range({self.bounds()}):")
            self.counters.append(i)
            self.block(depth + 1, self.rng.randrange(1, 5))
        self.counters.pop()


def draw(seed: int) -> Nests:
    """The program of a seed."""
    rng = random.Random(seed)
    w = Writer(rng, left=rng.choice((4, 6, 9, 14)))
    w.line(0, "s = x.dtype.type(0.0)")
    w.line(0, "t = x.dtype.type(1.5)")
    w.loop(0)
    while w.left > 0:
        if rng.random() < 0.8:
            w.loop(0)
        else:
            w.statement(0)
    calls = []
    for k in range(2):
        rows, columns = rng.choice(_ROWS[2 - 2 * k :]), rng.choice(_COLUMNS[2 - 2 * k :])
        calls.append(
            {
                "rows": rows, "columns": rows if rng.random() < 0.4 else columns,
                "n": rows + rng.choice((0, 0, 0, 0, 1, -1, 3)), "m": columns if rng.random() < 0.8 else rows, "p": rng.randrange(-2, 7),
                "single": int(rng.random() < 0.15), "layout": rng.choice((0, 0, 0, 1, 2, 3)) if k else 0,
                "shared": rng.choice((0, 0, 0, 0, 1, 2, 3)) if k else 0, "wild": rng.choice((0, 0, 1)),
            }
        )  # fmt: skip
    return Nests(seed, [], w.lines, calls, "s, t, x, y, z, a, b, c")


if __name__ == "__main__":
    sys.exit(main(draw, __doc__))
