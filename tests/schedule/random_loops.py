"""Random programs of the loop level, run by the interpreter before and behind the passes: quick, and close to them.

Accesses are in range by construction, or a check stands in front. `python -m tests.schedule.random_loops --count 20000`
runs more than the tests do; with `--machine` machine code runs, too.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jitgraph.codegen.interface import interface_of
from jitgraph.codegen.interpret import CheckFailed, run_program
from jitgraph.codegen.loops_printer import print_program
from jitgraph.codegen.loops_verify import verify
from jitgraph.codegen.loops_walk import read, walk
from jitgraph.errors import VerifyError
from jitgraph.ir.dims import DimLike, Facts, symbol, symbols
from jitgraph.ir.graph import Site
from jitgraph.schedule import pipeline
from jitgraph.schedule.statements import Renaming, assigned_in, bound_in, dims_of, rebuilt
from tests.loop_programs import F64, I64, B, L, array, executable, m, n, program

VECTORS = [array(name, F64, n) for name in "xyz"]
MATRICES = [array(name, F64, n, m) for name in "ab"]
#: Temporaries that are exchanged.
OLD, NEW = array("old", F64, n, m), array("new", F64, n, m)
P = symbol("p")


@dataclass(slots=True)
class Index:
    """A loop index on an axis of size `size`: from at least `low` to less than `size - high`."""

    symbol: str
    size: DimLike
    low: int
    high: int

    @property
    def dim(self) -> Any:
        return symbol(self.symbol)


@dataclass(slots=True)
class Maker:
    rng: random.Random
    numbers: Any = field(default_factory=lambda: itertools.count(1))
    indices: list[Index] = field(default_factory=list)
    #: Scalars that may be read, innermost last.
    scalars: list[L.Operand] = field(default_factory=list)
    left: int = 14
    kernels: list[L.Function] = field(default_factory=list)

    def pick(self, *items: Any) -> Any:
        return self.rng.choice(items)

    def var(self, dtype: np.dtype = F64) -> L.Var:
        return L.Var(f"v{next(self.numbers)}", dtype)

    # --- places

    def position(self, size: DimLike) -> DimLike:
        """An index of an axis, in range (the sizes are at least 2)."""
        fitting = [i for i in self.indices if i.size == size]
        if not fitting or self.rng.random() < 0.15:
            return self.pick(0, 1, size - 1)
        i = self.rng.choice(fitting[-2:])
        if self.rng.random() < 0.1:
            return size - 1 - i.dim
        return i.dim + self.rng.randint(-min(i.low, 2), min(i.high, 2)) if self.rng.random() < 0.6 else i.dim

    def place(self) -> tuple[L.Buffer, tuple[DimLike, ...]]:
        b = self.rng.choice(VECTORS + MATRICES)
        return b, tuple(self.position(d) for d in b.shape)

    def wild(self, out: list[L.Stmt]) -> tuple[L.Buffer, tuple[DimLike, ...]]:
        """A place that a check allows."""
        b = self.rng.choice(VECTORS)
        i = self.rng.choice(self.indices).dim if self.indices else P
        d = self.pick(i, i + 1, i * 2, P, i + P, i - P, n - i, i + 3)
        value, low, high, both = self.var(I64), self.var(B), self.var(B), self.var(B)
        size = self.var(I64)
        out += [
            L.DimValue(value, d),
            L.DimValue(size, n),
            L.Let(low, "cmp", (value, L.Const(0, I64)), "ge"),
            L.Let(high, "cmp", (value, size), "lt"),
            L.Let(both, "and_", (low, high)),
            L.Check(both, 0, (value, size)),
        ]
        return b, (d,)

    # --- scalars

    def value(self, out: list[L.Stmt], places: list[tuple[L.Buffer, tuple[DimLike, ...]]]) -> L.Operand:
        terms: list[L.Operand] = []
        for place in places:
            loaded = self.var()
            out.append(L.Load(loaded, *place))
            terms.append(loaded)
        if self.scalars and self.rng.random() < 0.4:
            terms.append(self.rng.choice(self.scalars[-3:]))
        if self.rng.random() < 0.3 or not terms:
            terms.append(L.Const(self.pick(0.5, -0.0, 0.0, 3.0), F64))
        total = terms[0]
        for x in terms[1:]:
            made = self.var()
            out.append(L.Let(made, self.pick("add", "add", "sub"), (total, x)))
            total = made
        if self.rng.random() < 0.5:
            made = self.var()
            out.append(L.Let(made, "mul", (total, L.Const(0.5, F64))))
            total = made
        return total

    # --- statements

    def block(self, count: int) -> list[L.Stmt]:
        out: list[L.Stmt] = []
        scalars = len(self.scalars)
        for _ in range(count):
            if self.left > 0:
                self.left -= 1
                self.statement(out)
        del self.scalars[scalars:]
        return out

    def statement(self, out: list[L.Stmt]) -> None:
        kind = self.rng.random()
        if kind < 0.3:
            places = [self.place() for _ in range(self.rng.randrange(3))]
            target = self.wild(out) if self.rng.random() < 0.25 else self.place()
            if self.rng.random() < 0.4:
                places.append(target)
            value = self.value(out, places)
            out.append(L.Store(*target, value))
            if isinstance(value, L.Var):
                self.scalars.append(value)
        elif kind < 0.55:
            self.nest(out)
        elif kind < 0.65:
            self.branch(out)
        elif kind < 0.7:
            self.ping_pong(out)
        elif len(self.indices) < 3:
            self.loop(out)

    def range(self, name: str) -> tuple[Index, DimLike, DimLike, int]:
        """A loop's index, its bounds and its step."""
        size = self.pick(n, n, m)
        low, high = self.pick((0, 0), (0, 0), (1, 0), (1, 1), (0, 1), (2, 0), (1, 2))
        outer = [i for i in self.indices if i.size == size]
        if outer and self.rng.random() < 0.3:  # triangles
            i = outer[-1]
            if self.rng.random() < 0.5:
                return Index(name, size, i.low + 1, high), i.dim + 1, size - high, 1
            return Index(name, size, low, i.high + 1), low, i.dim, 1
        if self.rng.random() < 0.2:
            return Index(name, size, low, high), size - high - 1, low - 1, -1
        return Index(name, size, low, high), low, size - high, self.pick(1, 1, 1, 1, 2, 3)

    def loop(self, out: list[L.Stmt]) -> None:
        index, lower, upper, step = self.range(f"i{next(self.numbers)}")
        carried: list[L.Carry] = []
        if self.rng.random() < 0.3:
            inner = self.var()
            init = self.rng.choice([*self.scalars[-2:], L.Const(self.pick(0.0, -0.0, 1.0), F64)])
            carried.append(L.Carry(inner, init, inner, self.var()))
            self.scalars.append(inner)
        self.indices.append(index)
        body = self.block(self.rng.randrange(1, 5))
        if carried:
            places = [self.place() for _ in range(self.rng.randrange(3))]
            kept, self.scalars = self.scalars, [carried[0].inner]
            carried[0].next = self.value(body, places)
            self.scalars = kept
            self.scalars.pop()
        self.indices.pop()
        out.append(L.For(index.symbol, lower, upper, body, step, carried=carried))
        if carried:
            self.scalars.append(carried[0].result)

    def branch(self, out: list[L.Stmt]) -> None:
        truth = self.var(B)
        if self.indices and self.rng.random() < 0.6:
            value, other = self.var(I64), self.var(I64)
            out += [
                L.DimValue(value, self.rng.choice(self.indices).dim),
                L.DimValue(other, self.pick(P, n - 1, 0, m - 2)),
                L.Let(truth, "cmp", (value, other), self.pick("lt", "gt", "eq", "ne", "le")),
            ]
        else:
            value = self.value(out, [self.place()])
            out.append(L.Let(truth, "cmp", (value, L.Const(0.0, F64)), self.pick("lt", "gt")))
        then, otherwise = self.block(2), self.block(1) if self.rng.random() < 0.4 else []
        merged = self.var()
        values = [L.Const(self.pick(0.0, -0.0), F64), L.Const(self.pick(0.0, 1.0), F64)]
        out.append(L.If(truth, then, otherwise, [L.Merge(merged, values[0], values[1])]))
        self.scalars.append(merged)

    def nest(self, out: list[L.Stmt]) -> None:
        """A nest over lanes whose turns are independent: it reads what it writes at the same place only."""
        target = self.rng.choice(VECTORS + MATRICES)
        axes = [
            Index(f"e{next(self.numbers)}", d, *self.pick((0, 0), (1, 1), (1, 0), (0, 1), (2, 1))) for d in target.shape
        ]
        fixed: dict[int, DimLike] = {}
        if len(axes) == 2 and self.rng.random() < 0.5:  # one row or one column
            gone = self.rng.randrange(2)
            fixed[gone] = self.position(target.shape[gone])
        loops = [x for k, x in enumerate(axes) if k not in fixed]
        outside = self.indices
        own = [fixed.get(k, x.dim + self.rng.randint(-min(x.low, 1), x.high)) for k, x in enumerate(axes)]
        body: list[L.Stmt] = []
        places = []
        for _ in range(self.rng.randrange(1, 4)):
            b = self.rng.choice(VECTORS + MATRICES)
            self.indices = outside + loops + loops
            places.append((b, tuple(own) if b is target else tuple(self.position(d) for d in b.shape)))
        self.indices = outside
        body.append(L.Store(target, tuple(own), self.value(body, places)))
        made: list[L.Stmt] = body
        for k, x in reversed(list(enumerate(loops))):
            role = "vector" if k == len(loops) - 1 else "serial"
            made = [L.For(x.symbol, x.low, x.size - x.high, made, 1, role)]  # type: ignore[arg-type]
        out += self.called(made) if self.rng.random() < 0.25 else made

    def called(self, body: list[L.Stmt]) -> list[L.Stmt]:
        """The statements as a kernel that is called."""
        made = assigned_in(body)
        scalars = list(
            dict.fromkeys(x for s in walk(body) for x in read(s) if isinstance(x, L.Var) and x.name not in made)
        )
        buffers = list(dict.fromkeys(s.buffer for s in walk(body) if isinstance(s, (L.Load, L.Store))))
        names = dict.fromkeys(name for s in walk(body) for d in dims_of(s) for name in symbols(d))
        free = [name for name in (*names, "n", "m") if name not in bound_in(body)]
        free = list(dict.fromkeys(free))
        name = f"k{len(self.kernels)}"
        self.kernels.append(L.Function(name, buffers, free, scalars, rebuilt(body, Renaming())))
        return [L.CallKernel(name, tuple(buffers), tuple(map(symbol, free)), tuple(scalars))]

    def ping_pong(self, out: list[L.Stmt]) -> None:
        """A loop that makes one temporary from another, and exchanges them."""
        k = next(self.numbers)
        old, new = (array(f"{b.name}{k}", F64, n, m) for b in (OLD, NEW))
        source = self.rng.choice(MATRICES)

        def copy(to: L.Buffer, of: L.Buffer, more: bool) -> L.Stmt:
            r, c = f"r{next(self.numbers)}", f"c{next(self.numbers)}"
            at = (symbol(r), symbol(c))
            body: list[L.Stmt] = []
            other = (of, (n - 1 - symbol(r), symbol(c))) if more and self.rng.random() < 0.3 else (source, at)
            body.append(L.Store(to, at, self.value(body, [(of, at), other] if more else [(of, at)])))
            return L.For(r, 0, n, [L.For(c, 0, m, body, role="vector")])

        out += [L.Alloc(old, "heap"), L.Alloc(new, "heap"), copy(old, source, False)]
        t = f"t{next(self.numbers)}"
        out.append(L.For(t, 0, self.pick(1, 2, 3, P), [copy(new, old, True), L.Swap(old, new)]))
        out += [copy(self.rng.choice([b for b in MATRICES if b is not source]), old, False), L.Free(old), L.Free(new)]


def draw(seed: int) -> tuple[L.Program, list[Any]]:
    """A program, and arguments."""
    rng = random.Random(seed)
    maker = Maker(rng, left=rng.choice((6, 10, 16)))
    body: list[L.Stmt] = [L.Bind("p", L.Var("p0", I64))]
    maker.loop(body)
    body += maker.block(6)
    arrays = [*VECTORS, *MATRICES]
    dims = [("n", 3, 0), ("m", 3, 1)]
    p = program(
        body, arrays, dims=dims, scalars=[(L.Var("p0", I64), len(arrays))], kernels=maker.kernels,
        sites=[Site("IndexError", "index {0} is out of bounds for size {1}", None)],
    )  # fmt: skip
    return p, arguments(rng)


def arguments(rng: random.Random) -> list[Any]:
    rows, columns = rng.choice((2, 3, 4, 5, 6, 9)), rng.choice((2, 3, 5, 9, 11))
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    vectors = [numbers.integers(-8, 9, rows) / 4.0 for _ in VECTORS]
    matrices = [numbers.integers(-8, 9, (rows, columns)) / 4.0 for _ in MATRICES]
    for x in (*vectors, *matrices):
        x[x == 0.25] = -0.0
    return [*vectors, *matrices, rng.randrange(-2, 5)]


def facts() -> Facts:
    made = Facts()
    for name in "nm":
        made.bound(name, lower=2)
    return made


def outcome(p: L.Program, args: list[Any]) -> tuple[str, list[bytes]]:
    """The check that failed, and the arguments behind the run."""
    given = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    failed = ""
    try:
        run_program(p, interface_of(p, len(args), []), given, poison=True)
    except CheckFailed as e:
        failed = str(e)
    return failed, [x.tobytes() for x in given if isinstance(x, np.ndarray)]


def machine_outcome(p: L.Program, args: list[Any]) -> tuple[bool, list[bytes]]:
    given = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    failed = False
    try:
        executable(p, len(args), [])(*given)
    except IndexError:
        failed = True
    return failed, [x.tobytes() for x in given if isinstance(x, np.ndarray)]


def copied(p: L.Program) -> L.Program:
    return replace(p, entry=rebuilt(p.entry, Renaming()))


def fault(seed: int, machine: bool = False) -> str:
    """What is wrong with a program, and the pass to blame; empty if nothing."""
    p, args = draw(seed)
    verify(p)
    wanted = outcome(p, args)
    made = p
    for name, made in pipeline.stages(copied(p), facts()):
        try:
            verify(made)
        except VerifyError as e:
            return f"{name}: {str(e).splitlines()[0]}\n{print_program(p)}\n--- becomes\n{print_program(made)}"
    if outcome(made, args) != wanted:
        return _blamed(p, args, wanted)
    if machine:
        for which, q in (("plain", p), ("scheduled", made)):
            found = machine_outcome(q, args)
            if found != (bool(wanted[0]), wanted[1]):
                return f"machine code, {which}: {found[0]} instead of {wanted[0]!r}\n{print_program(q)}"
    return ""


def _blamed(p: L.Program, args: list[Any], wanted: tuple[str, list[bytes]]) -> str:
    """The first pass behind which a program means something else."""
    last = copied(p)
    for name, made in pipeline.stages(copied(p), facts()):
        try:
            found = outcome(made, args)
        except Exception as e:  # noqa: BLE001 - any is a fault
            return f"{name}: {type(e).__name__}: {str(e).splitlines()[0]}\n{print_program(last)}"
        if found != wanted:
            return f"{name}: {found[0]!r} instead of {wanted[0]!r}\n{print_program(last)}\n--- becomes\n{print_program(made)}"
        last = copied(made)
    return "the last pass"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--machine", action="store_true")
    options = parser.parse_args()
    faults = 0
    for seed in range(options.seed, options.seed + options.count):
        print(f"@{seed}", file=sys.stderr, flush=True)
        try:
            what = fault(seed, options.machine)
        except Exception as e:  # noqa: BLE001 - a fault, too
            what = f"{type(e).__name__}: {e}"
        if what:
            faults += 1
            print(f"--- seed {seed}: {what}", flush=True)
    print(f"{options.count} programs, {faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
