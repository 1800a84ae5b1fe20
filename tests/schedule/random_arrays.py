"""Random index loops over arguments and over arrays that the program makes, as Python source: names bound anew in some
turns, views of rows and columns that names hold on to, arrays that change places, sums as scalars, early exits.

`python -m tests.schedule.random_arrays --count 3000 --seed 0 --quick` runs more than the tests do.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.programs import Fuzzed
from tests.schedule.campaign import main

#: Arguments, and arrays of the program's own, which it also binds anew.
VECTORS, MATRICES, OWN, OWN_MATRICES = ("x", "y"), ("A", "B"), ("k", "t"), ("C",)
SCALARS = ("s", "u")
#: Names of views of what is there, bound on the way.
VIEWS = ("r", "q")
_SIZES = (5, 17, 2, 1, 0, 33)


@dataclass(slots=True)
class Arrays(Fuzzed):
    """A program of two vectors and two square matrices."""

    @property
    def source(self) -> str:
        body = "\n".join(f"    {line}" for line in [*self.lines, f"return {self.returned or 'None'}"])
        return f"def program({', '.join((*VECTORS, *MATRICES))}):\n{body}\n"

    def make(self, call: int) -> list[Any]:
        """Fresh arguments, equal each time."""
        s = self.calls[call]
        n, dtype = s["n"], ("float64", "float32", "int64")[s["dtype"]]
        rng = np.random.default_rng([self.seed, call])
        made = [
            (rng.standard_normal(shape) * (9 if s["dtype"] == 2 else 1)).astype(dtype)
            for shape in (n, n, (n, n), (n, n))
        ]
        if s["layout"] == 1:
            made[2] = np.asfortranarray(made[2])
        elif s["layout"] == 2:
            made[0] = np.repeat(made[0], 2)[::2]
            made[3] = made[3][::-1]
        elif s["layout"] == 3:
            made[1] = made[2][:, 0] if n else made[1]
        elif s["layout"] == 4:
            made[1] = made[0]
        return made


@dataclass(slots=True)
class Writer:
    """Draws one program.

    Attributes:
        integers: arrays hold integers.
        views: which names of views are bound.
    """

    rng: random.Random
    integers: bool = False
    indices: list[str] = field(default_factory=list)
    loops: int = 0
    views: list[str] = field(default_factory=list)
    #: Statements that may still be drawn.
    left: int = 14
    returned: str = ""

    def pick(self, *items: Any) -> Any:
        return self.rng.choice(items)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def one_of(self, *choices: tuple[int, Callable[[], str]]) -> str:
        weights, made = zip(*choices, strict=True)
        return self.rng.choices(made, weights)[0]()

    # --- parts

    def index(self) -> str:
        if not self.indices:
            return self.pick("0", "-1", "n//2")
        i = self.rng.choice(self.indices)
        return self.pick(i, i, i, i, f"{i}-1", f"n-1-{i}", f"({i}+1)%n", "0", "-1", f"-{i}", f"{i}//2")

    def piece(self) -> str:
        i = self.rng.choice(self.indices) if self.indices else "1"
        return self.pick(":", ":", "1:", ":-1", "::-1", f"{i}:", f":{i}", "::2", f"{i}:{i}+2")

    def vector_name(self) -> str:
        return self.rng.choice([*VECTORS, *OWN, *OWN, *self.views])

    def matrix_name(self) -> str:
        return self.pick(*MATRICES, *OWN_MATRICES)

    def element(self) -> str:
        if self.chance(0.5):
            return f"{self.vector_name()}[{self.index()}]"
        return f"{self.matrix_name()}[{self.index()}, {self.index()}]"

    def scalar(self, depth: int = 0) -> str:
        def two(form: str) -> str:
            return form.format(self.scalar(depth + 1), self.scalar(depth + 1))

        inner = 6 if depth < 2 else 0
        return self.one_of(
            (4, self.element),
            (2, lambda: self.pick(*SCALARS)),
            (2, lambda: self.pick("2.0", "0.5", "1", "3")),
            (1, lambda: self.pick(*self.indices, "n", "1.5")),
            (1, lambda: f"np.sum({self.vector_name()})"),
            (1, lambda: f"{self.matrix_name()}[{self.index()}].sum()"),
            (1, lambda: f"np.max({self.matrix_name()}[:, {self.index()}])"),
            (1, lambda: f"{self.vector_name()}[{self.piece()}].sum()"),
            (1, lambda: f"{self.vector_name()} @ {self.vector_name()}"),
            (inner, lambda: two(f"({{}} {self.pick('+', '-', '*')} {{}})")),
            (inner // 3, lambda: f"abs({self.scalar(depth + 1)})"),
            # of two kinds, in the common one (docs/limits.md)
            (inner // 3, lambda: two(f"({self.pick('min', 'max')}({{}}, {{}}) + x.dtype.type(0))")),
            (inner // 3, lambda: f"np.sqrt(abs({self.scalar(depth + 1)}))"),
            (inner // 3, lambda: two(f"({{}} if {self.test()} else {{}})")),
        )

    def vector(self, depth: int = 0) -> str:
        def two(form: str) -> str:
            return form.format(self.vector(depth + 1), self.vector(depth + 1))

        inner = 4 if depth < 2 else 0
        return self.one_of(
            (4, self.vector_name),
            (2, self.line),
            (1, lambda: f"{self.vector_name()}[::-1]"),
            (1, lambda: f"{self.matrix_name()}.sum(axis={self.pick(0, 1)})"),
            (1, lambda: f"{self.matrix_name()} @ {self.vector_name()}"),
            (inner, lambda: two(f"({{}} {self.pick('+', '-', '*')} {{}})")),
            (inner, lambda: f"({self.vector(depth + 1)} {self.pick('+', '-', '*')} {self.scalar(1)})"),
            (inner // 2, lambda: two(f"np.where({self.vector(2)} > {self.scalar(2)}, {{}}, {{}})")),
        )

    def line(self) -> str:
        """A row, column or diagonal."""
        return f"{self.matrix_name()}" + self.pick(f"[{self.index()}]", f"[:, {self.index()}]", ".T[0]", ".diagonal()")

    def test(self) -> str:
        return f"{self.scalar(2)} {self.pick('>', '<', '>=')} {self.scalar(2)}"

    # --- statements

    def simple(self) -> str:
        """A statement of one line."""
        v, m = self.vector_name, self.matrix_name

        def smooth_vector() -> str:
            a = v()
            return f"{v()}[1:-1] = {self.scalar()}*0.1 + 0.3*({a}[:-2] + {a}[2:])"

        def smooth_matrix() -> str:
            a = m()
            return f"{m()}[1:-1, 1:-1] = 0.25*({a}[:-2, 1:-1] + {a}[2:, 1:-1] + {a}[1:-1, :-2])"

        return self.one_of(
            (4, lambda: f"{v()}[{self.index()}] = {self.scalar()}"),
            (2, lambda: f"{v()}[{self.index()}] {self.pick('+', '-')}= {self.scalar()}"),
            (2, lambda: f"{m()}[{self.index()}, {self.index()}] {self.pick('', '+', '-')}= {self.scalar()}"),
            (2, lambda: f"{self.pick(*SCALARS)} {self.pick('', '+', '-')}= {self.scalar()}"),
            (1, lambda: f"{v()}[{self.piece()}] {self.pick('', '+', '*')}= {self.scalar()}"),
            (1, lambda: f"{v()}[:] = {self.vector()}"),
            (1, lambda: f"{v()} += {self.vector()} * 1"),
            (1, lambda: f"{m()}[{self.index()}] = {self.vector()} * 1"),  # a view may cross what is written
            (1, lambda: f"{m()}[:, {self.index()}] = {self.vector()} * 1"),
            (1, lambda: f"{m()}[{self.index()}] *= 2"),
            (3, lambda: f"{self.pick(*OWN)} = {self.vector()}" + self.pick("", " * 1", " + 0.5")),
            (1, lambda: f"{self.pick(*OWN)} = {self.pick('np.zeros(n)', 'np.ones(n)', 'np.full(n, 2.5)', 'x.copy()')}"),
            (1, lambda: "k, t = t, k"),
            (1, lambda: self.pick("k = t", "t = k", "t = k.copy()", "k = x", "t = y[::-1]")),
            (
                1,
                lambda: (
                    f"C = {self.pick('np.ones((n, n))', 'np.zeros((n, n))', 'A * 0.5', 'np.outer(x, y)', 'B.T', 'C.T')}"
                ),
            ),
            (2, self.view),
            (1, smooth_vector),
            (1, smooth_matrix),
        )

    def view(self) -> str:
        """A name for a part of an array."""
        name = self.pick(*VIEWS)
        value = self.pick(self.line(), self.line(), f"{self.pick(*VECTORS, *OWN)}[::-1]", f"{self.pick(*OWN)}[:]")
        if name not in self.views:
            if self.indices or self.chance(0.3):  # bound before the loops, if the program uses it
                return "pass"
            self.views.append(name)
        return f"{name} = {value}"

    def bounds(self) -> str:
        more = [f"range({self.indices[-1]}, n)", f"range({self.indices[-1]})"] if self.indices else []
        return self.pick(
            "range(n)", "range(n)", "range(n)", "range(1, n)", "range(n - 1)", "range(n - 1, -1, -1)", "range(0, n, 2)",
            "range(3)", "range(12)", *more,
        )  # fmt: skip

    def block(self, depth: int, count: int) -> list[str]:
        made: list[str] = []
        for _ in range(count):
            self.left -= 1
            kind = self.rng.random()
            if self.left < 0 or kind < 0.55:
                made.append(self.simple())
            elif kind < 0.8 and len(self.indices) < 3:
                made += self.loop(depth)
            elif depth < 5:
                made += self.branch(depth)
        return made or ["s += 1.0"]

    def loop(self, depth: int) -> list[str]:
        i = "ijl"[len(self.indices)]
        self.loops += 1
        head, last = [f"for {i} in {self.bounds()}:"], []
        if self.chance(0.1):
            more = self.pick("", "", " and abs(s) < 100", " and u < 50")
            head, last = [f"{i} = 0", f"while {i} < {self.pick('n', '3', 'n - 1')}{more}:"], [f"    {i} += 1"]
        self.indices.append(i)
        body = [f"    {line}" for line in self.block(depth + 1, self.rng.randint(1, 3))]
        self.indices.pop()
        if last:  # `continue` would skip the step
            body = [line.replace("continue", "break") for line in body]
        made = [*head, *body, *last]
        if self.chance(0.08):
            made += ["else:", f"    {self.simple()}"]
        return made

    def branch(self, depth: int) -> list[str]:
        made = [f"if {self.test()}:", *(f"    {line}" for line in self.block(depth + 1, self.rng.randint(1, 2)))]
        if self.indices and self.chance(0.3):
            leaves = self.pick("break", "break", "continue", f"return {self.returned}")
            return [*made, f"    {leaves}"]
        if self.chance(0.4):
            made += ["else:", *(f"    {line}" for line in self.block(depth + 1, 1))]
        return made


def draw(seed: int) -> Arrays:
    """The program of a seed."""
    rng = random.Random(seed)
    integers = rng.random() < 0.1
    w = Writer(rng, integers, left=rng.choice((6, 9, 14)))
    w.returned = w.pick("k, t, C, s, u", "k, s", "C, t", "s, u", "k[::-1], u", "k, t")
    head = [
        "n = len(x)",
        f"k = {w.pick('np.zeros(n)', 'np.ones(n)', 'x * 2', 'np.empty(n); k[:] = 3', 'y.copy()')}",
        f"t = {w.pick('np.zeros(n)', 'np.ones(n)', 'y + 1', 'k')}",
        f"C = {w.pick('np.zeros((n, n))', 'np.ones((n, n))', 'A + B', 'A.T.copy()')}",
        "s = 0.0",
        f"u = {w.pick('1.0', '0', 'x.dtype.type(1)')}",
    ]
    body: list[str] = []
    while not w.loops:
        w.left = max(w.left, 6)
        w.views.clear()
        body = [line for _ in range(rng.randint(1, 2)) for line in w.block(0, rng.randint(1, 3))]
    layout = rng.choice((0, 0, 0, 1, 1, 2, 3, 4))
    dtype = 2 if integers else rng.choice((0, 0, 0, 0, 1))
    calls = [{"n": n, "layout": layout if n != 17 else 0, "dtype": dtype} for n in _SIZES]
    return Arrays(seed, [], [*head, *body], calls, w.returned)


if __name__ == "__main__":
    sys.exit(main(draw, __doc__))
