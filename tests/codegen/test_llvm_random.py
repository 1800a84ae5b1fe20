"""Random loop programs, with nested loops, branches and gathers on lanes: machine code equals the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph.codegen.loops_printer import print_program
from jitgraph.ir.dims import DimLike, floordiv, mod, symbol
from tests.loop_programs import F32, F64, I64, B, L, array, check, const, executable, program, var

N, M = symbol("n"), symbol("m")


class Generator:
    """Writes one program. Values of `floats`, `ints` and indices of `rows`, `columns` are those in scope."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.count = 0
        self.real = F32 if seed % 4 == 1 else F64
        self.x = array("x", self.real, N, M, strides=(symbol("s0"), symbol("s1")))
        self.y = array("y", self.real, M)
        self.at = array("at", I64, M)
        self.out, self.more = array("out", self.real, N, M), array("more", I64, M)
        self.floats: list[L.Operand] = [const(0.5, self.real), var("f", self.real)]
        self.ints: list[L.Operand] = [const(3, I64), var("c", I64)]
        self.rows: list[DimLike] = [0, N - 1]
        self.columns: list[DimLike] = [0, M - 1]
        self.place: DimLike | None = None  # column that this iteration may write
        self.row: DimLike = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pick(self, items: list) -> object:  # type: ignore[type-arg]
        return items[self.rng.integers(len(items))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def float(self) -> L.Operand:
        return self.pick(self.floats)  # type: ignore[return-value]

    def int(self) -> L.Operand:
        return self.pick(self.ints)  # type: ignore[return-value]

    def scoped(self, depth: int, count: int) -> list[L.Stmt]:
        saved = list(self.floats), list(self.ints), list(self.rows), list(self.columns)
        body = self.body(depth, count)
        self.inner = list(self.floats), list(self.ints)
        self.floats, self.ints, self.rows, self.columns = saved
        return body

    def body(self, depth: int, count: int) -> list[L.Stmt]:
        body: list[L.Stmt] = []
        for _ in range(count):
            kinds = ["load", "row", "float", "float", "int", "bind", "store", "dim"]
            if depth < 3:
                kinds += ["if", "for", "while", "if", "for"]
            getattr(self, f"add_{self.pick(kinds)}")(body, depth)
        return body

    def add_load(self, body: list[L.Stmt], _: int) -> None:
        v = var(self.name(), self.real)
        body.append(L.Load(v, self.x, (self.pick(self.rows), self.pick(self.columns))))  # type: ignore[arg-type]
        self.floats.append(v)

    def add_row(self, body: list[L.Stmt], _: int) -> None:
        v = var(self.name(), self.real)
        body.append(L.Load(v, self.y, (self.pick(self.columns),)))  # type: ignore[arg-type]
        self.floats.append(v)

    def add_float(self, body: list[L.Stmt], _: int) -> None:
        if self.chance(0.3):
            p, v = var(self.name(), B), var(self.name(), self.real)
            body += [
                L.Let(p, "cmp", (self.float(), self.float()), "lt"),
                L.Let(v, "select", (p, self.float(), self.float())),
            ]
        else:
            v = var(self.name(), self.real)
            body.append(L.Let(v, str(self.pick(["add", "sub", "mul"])), (self.float(), self.float())))
        self.floats.append(v)

    def add_int(self, body: list[L.Stmt], _: int) -> None:
        v = var(self.name(), I64)
        op = str(self.pick(["add", "sub", "and_", "xor", "irem"]))
        divisor = const(int(self.rng.integers(1, 9)), I64)
        body.append(L.Let(v, op, (self.int(), divisor if op == "irem" else self.int())))
        self.ints.append(v)

    def add_bind(self, body: list[L.Stmt], _: int) -> None:
        """A data-dependent column."""
        v, name = var(self.name(), I64), f"t{self.count}"
        body += [L.Load(v, self.at, (self.pick(self.columns),)), L.Bind(name, v)]  # type: ignore[arg-type]
        self.columns.append(symbol(name))
        self.ints.append(v)

    def add_dim(self, body: list[L.Stmt], _: int) -> None:
        v = var(self.name(), I64)
        c, r = self.pick(self.columns), self.pick(self.rows)
        d = self.pick([c + r, 3 * c - r, floordiv(c + 1, 3), mod(c - r, M), floordiv(r - c, M)])  # type: ignore[operator,arg-type]
        body.append(L.DimValue(v, d))  # type: ignore[arg-type]
        self.ints.append(v)

    def add_store(self, body: list[L.Stmt], _: int) -> None:
        if self.place is not None:
            if self.chance(0.6):
                body.append(L.Store(self.out, (self.row, self.place), self.float()))
            else:
                body.append(L.Store(self.more, (self.place,), self.int()))

    def condition(self, body: list[L.Stmt]) -> L.Operand:
        p = var(self.name(), B)
        if self.chance(0.5):
            body.append(L.Let(p, "cmp", (self.float(), self.float()), str(self.pick(["lt", "ge"]))))
        else:
            body.append(L.Let(p, "cmp", (self.int(), self.int()), str(self.pick(["lt", "ne"]))))
        return p

    def add_if(self, body: list[L.Stmt], depth: int) -> None:
        p = self.condition(body)
        then = self.scoped(depth + 1, int(self.rng.integers(1, 5)))
        (floats, ints) = self.inner
        yes, more = self.pick(floats), self.pick(ints)
        otherwise = self.scoped(depth + 1, int(self.rng.integers(0, 3)))
        (floats, ints) = self.inner
        f, c = var(self.name(), self.real), var(self.name(), I64)
        merges = [L.Merge(f, yes, self.pick(floats)), L.Merge(c, more, self.pick(ints))]  # type: ignore[arg-type]
        body.append(L.If(p, then, otherwise, merges))
        self.floats.append(f)
        self.ints.append(c)

    def carries(self) -> tuple[list[L.Carry], L.Var, L.Var]:
        f, c = var(self.name(), self.real), var(self.name(), I64)
        carried = [
            L.Carry(f, self.float(), f, var(self.name(), self.real)),
            L.Carry(c, self.int(), c, var(self.name(), I64)),
        ]
        return carried, f, c

    def add_for(self, body: list[L.Stmt], depth: int) -> None:
        carried, f, c = self.carries()
        index = f"i{self.count}"
        saved = list(self.floats), list(self.ints), list(self.rows), list(self.columns)
        self.floats.append(f)
        self.ints.append(c)
        if self.chance(0.5):
            self.rows += [symbol(index)] * 3
            upper: DimLike = N
        else:
            upper = self.pick(self.columns)  # type: ignore[assignment]
            self.columns += [symbol(index)] * 3
        inner = self.body(depth + 1, int(self.rng.integers(1, 4)))
        carried[0].next, carried[1].next = self.float(), self.int()
        self.floats, self.ints, self.rows, self.columns = saved
        lower, step = 0, 1
        if self.chance(0.3):
            step = 2
        body.append(L.For(index, lower, upper, inner, step=step, carried=carried))
        self.floats.append(carried[0].result)
        self.ints.append(carried[1].result)

    def add_while(self, body: list[L.Stmt], depth: int) -> None:
        """Counts up to a value that may differ between lanes."""
        carried, f, c = self.carries()
        turn, ahead, limit = var(self.name(), I64), var(self.name(), I64), var(self.name(), I64)
        body.append(L.Let(limit, "and_", (self.int(), const(7, I64))))
        carried.append(L.Carry(turn, const(0, I64), ahead, var(self.name(), I64)))
        p = var(self.name(), B)
        test: list[L.Stmt] = [L.Let(p, "cmp", (turn, limit), "lt")]
        saved = list(self.floats), list(self.ints), list(self.rows), list(self.columns)
        self.floats.append(f)
        self.ints += [c, turn]
        inner = self.body(depth + 1, int(self.rng.integers(1, 4)))
        inner.append(L.Let(ahead, "add", (turn, const(1, I64))))
        carried[0].next, carried[1].next = self.float(), self.int()
        self.floats, self.ints, self.rows, self.columns = saved
        body.append(L.While(test, p, inner, carried))
        self.floats.append(carried[0].result)
        self.ints += [carried[1].result, carried[2].result]

    def program(self) -> L.Program:
        """A vector loop over the columns, in a loop over the rows or alone."""
        role = "vector" if self.chance(0.85) else "serial"
        outer = self.chance(0.5)
        if outer:
            self.rows += [symbol("i")] * 2
            self.row = symbol("i")
        before = self.body(3, 2) if outer else []
        self.place = symbol("j")
        self.columns += [symbol("j")] * 4 + [M - 1 - symbol("j")]
        body = self.body(0, int(self.rng.integers(3, 9)))
        body += [L.Store(self.out, (self.row, self.place), self.float()), L.Store(self.more, (self.place,), self.int())]
        lanes, interleave = int(self.rng.choice([0, 0, 4])), int(self.rng.choice([1, 1, 2]))
        loop = L.For("j", 0, M, body, role=role, lanes=lanes, interleave=interleave)  # type: ignore[arg-type]
        nest: list[L.Stmt] = [L.For("i", 0, N, [*before, loop])] if outer else [loop]
        kernel = L.Function(
            "k",
            [self.x, self.y, self.at, self.out, self.more],
            ["n", "m", "s0", "s1"],
            [var("f", self.real), var("c", I64)],
            nest,
        )
        call = L.CallKernel(
            "k",
            (self.x, self.y, self.at, self.out, self.more),
            (N, M, symbol("s0"), symbol("s1")),
            (var("f", self.real), var("c", I64)),
        )
        return program(
            [call],
            [self.x, self.y, self.at, self.out, self.more],
            [],
            dims=[("n", 0, 0), ("m", 0, 1)],
            scalars=[(var("f", self.real), 5), (var("c", I64), 6)],
            kernels=[kernel],
            strides={"x": ("s0", "s1")},
        )


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed: int) -> None:
    generator = Generator(seed)
    p, real = generator.program(), generator.real
    rng = np.random.default_rng(1000 + seed)
    try:
        run = executable(p, 7, [])
        for rows, columns in ((2, 13), (1, 8), (3, 3)):
            x = rng.integers(-4, 5, (rows, 2 * columns)).astype(real)[:, ::2]
            if seed % 3 == 0:
                x = np.asfortranarray(x)
            args = [
                x,
                rng.integers(-4, 5, columns).astype(real),
                rng.integers(0, columns, columns),
                np.zeros((rows, columns), real),
                np.zeros(columns, np.int64),
                1.5,
                -3,
            ]
            check(p, args, [], run=run)
    except BaseException:
        print(print_program(p))
        raise
