"""Random graphs for the tests of passes: elementwise ops, views, reductions, writes, checks, loops and branches."""

from __future__ import annotations

import random

import numpy as np

import jitgraph.ops  # noqa: F401
from jitgraph.ir.builder import Builder
from jitgraph.ir.dims import symbol
from jitgraph.ir.graph import Block, Graph, Op, Result, Site, Symbol, Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.printer import first_places
from jitgraph.ir.types import AxisMap, IndexMap, TensorType, dense_layout
from jitgraph.source import SourceLoc

F8 = np.dtype("f8")
N, M = symbol("n"), symbol("m")
UNARY = ("neg", "abs", "square", "sqrt", "floor", "exp", "sign")
EXACT_UNARY = ("neg", "abs", "square", "sqrt", "floor", "ceil", "sign")
BINARY = ("add", "sub", "mul", "minimum", "maximum")


class RandomGraph:
    """Builds a graph of about `size` ops over arrays of shapes (n, m), (m,), (n, 1) and scalars."""

    def __init__(self, seed: int, size: int = 20, unary: tuple[str, ...] = UNARY, wide: bool = False) -> None:
        self.wide = wide
        self.unary = unary
        self.r = random.Random(seed)
        g = self.graph = Graph("random")
        for name, shape in (("a", (N, M)), ("b", (N, M)), ("c", (M,)), ("d", (N, 1))):
            g.body.add_arg(TensorType(F8, shape), name)
        g.body.add_arg(TensorType(F8, (), "np_scalar"), "s")
        if wide:
            g.body.add_arg(TensorType(F8, (N, M), "array", dense_layout((1, 0))), "fo")
            g.body.add_arg(TensorType(np.dtype("f4"), (N, M)), "f")
            g.body.add_arg(TensorType(np.dtype("i8"), (N, M)), "k")
            g.body.add_arg(TensorType(np.dtype("i4"), (M,)), "u")
        for name, (arg, axis) in first_places([a.type for a in g.args]).items():
            g.add_symbol(Symbol(name, "arg", arg, axis, 2, None, True))
        self.line = 0
        self.order = 0
        self.loops = 0
        self.b = Builder(g)
        self.b.locate = self.place
        #: Current versions of the storages: the first two arguments, which are written.
        self.versions: list[Value] = g.args[:2]
        self.pool: list[Value] = g.args[2:]
        self.steps(size, depth=0)
        results = self.r.sample(self.pool, min(3, len(self.pool)))
        results = [v for v in dict.fromkeys(results) if v.producer is not None]
        self.b.emit(REGISTRY["return"], [*results, *self.versions], (), {"mutates": (0, 1)})
        g.results = [Result("fresh", i) for i in range(len(results))]

    def place(self) -> SourceLoc:
        self.line += 1
        return SourceLoc("random.py", self.line, 1)

    def steps(self, count: int, depth: int) -> None:
        for _ in range(count):
            kind = self.r.random()
            if kind < 0.45:
                self.pool.append(self.elementwise())
            elif kind < 0.6:
                self.pool.append(self.view())
            elif kind < 0.72:
                x = self.pick(2)
                axes = self.r.choice([(0,), (1,), (0, 1)])
                name = self.r.choice(["reduce_sum", "reduce_max", "reduce_min"])
                self.pool.append(self.b.apply(REGISTRY[name], x, axes=axes, keepdims=self.r.random() < 0.7)[0])
            elif kind < 0.84:
                self.write()
            elif kind < 0.88:
                self.check()
            elif kind < 0.94 and self.wide:
                self.unusual()
            elif depth < 2:
                self.region(depth)

    def unusual(self) -> None:
        """Casts, selections, running sums, gathers, concatenations, positions of extremes, reshapes, while loops."""
        kind = self.r.randrange(8)
        x = self.pick(2)
        emit = lambda name, *operands, **attrs: self.b.apply(REGISTRY[name], *operands, **attrs)[0]
        if kind == 0:
            made = emit("cast", self.pick(), dtype=np.dtype(self.r.choice(["f4", "f8"])))
        elif kind == 1:
            made = emit("where", emit("lt", x, 0.5), self.pick(2), x)
        elif kind == 2:
            made = emit("cumsum", x, axis=self.r.randrange(2))
        elif kind == 3:
            count = emit("iota", 0, 1, size=N, dtype=np.dtype("i8"))
            index = emit("sub", emit("cast", self.b.dim(value=N - 1), dtype=np.dtype("i8")), count)
            made = emit("take", x, index, axis=0)
        elif kind == 4:
            joined = emit("concatenate", x, self.pick(2), axis=0)
            made = emit("view", joined, map=IndexMap((N, M), (AxisMap(1, 2, 0), AxisMap(0, 1, 1))))
        elif kind == 5:
            found = emit(self.r.choice(["argmax", "argmin"]), x, axis=self.r.randrange(2), keepdims=True)
            made = emit("add", emit("cast", found, dtype=F8), x)
        elif kind == 6:
            made = emit("reshape", emit("neg", emit("reshape", x, shape=(M * N,))), shape=(N, M))
        else:
            made = emit("view", x, map=IndexMap.permute((N, M), (1, 0)))
            made = emit("view", emit("neg", made), map=IndexMap.permute((M, N), (1, 0)))
        self.pool.append(made)

    def pick(self, ndim: int | None = None) -> Value:
        """An array of the full domain if `ndim` is 2, else anything."""
        if ndim == 2:
            full = [v for v in self.pool if v.type.shape == (N, M)]
            return self.r.choice([*full, *self.versions, *full[-2:]])
        return self.r.choice([*self.pool, *self.pool[-3:], *self.versions])

    def elementwise(self) -> Value:
        x = self.pick(2 if self.r.random() < 0.7 else None)
        if self.r.random() < 0.4:
            return self.b.apply(REGISTRY[self.r.choice(self.unary)], x)[0]
        fitting = [v for v in [*self.pool, *self.versions] if self.fits(x, v)]
        y = (
            self.r.choice(fitting)
            if fitting and self.r.random() < 0.8
            else self.b.constant(self.r.choice([0.0, 1.0, 2.0, -1.0, 0.5]))
        )
        return self.b.apply(REGISTRY[self.r.choice(BINARY)], x, y)[0]

    @staticmethod
    def fits(x: Value, y: Value) -> bool:
        a, b = x.type.shape[::-1], y.type.shape[::-1]
        return all(p == q or p == 1 or q == 1 for p, q in zip(a, b, strict=False))

    def view(self) -> Value:
        x = self.pick()
        shape = x.type.shape
        if len(shape) == 2 and shape[1] == M and shape[0] == N:
            kind = self.r.randrange(4)
            if kind == 0:
                m = IndexMap((N, M), (AxisMap(N - 1, -1, 0), AxisMap(0, 1, 1)))
            elif kind == 1:
                m = IndexMap((M,), (AxisMap(self.r.choice([0, 1]), 1), AxisMap(0, 1, 0)))
            elif kind == 2:
                m = IndexMap((N,), (AxisMap(0, 1, 0), AxisMap(M - 1)))
            else:
                m = IndexMap((N - 1, M), (AxisMap(self.r.choice([0, 1]), 1, 0), AxisMap(0, 1, 1)))
        elif len(shape) == 1 and shape == (N,):
            m = IndexMap((N, M), (AxisMap(0, 1, 0),))
        elif shape == (N - 1, M):
            m = IndexMap((M,), (AxisMap(0), AxisMap(0, 1, 0)))
        else:
            return self.b.apply(REGISTRY["neg"], x)[0]
        return self.b.apply(REGISTRY["view"], x, map=m)[0]

    def write(self) -> None:
        k = self.r.randrange(len(self.versions))
        base = self.versions[k]
        maps = [
            IndexMap.identity((N, M)),
            IndexMap((N - 1, M), (AxisMap(1, 1, 0), AxisMap(0, 1, 1))),
            IndexMap((N - 1, M), (AxisMap(0, 1, 0), AxisMap(0, 1, 1))),
            IndexMap((M,), (AxisMap(0), AxisMap(0, 1, 0))),
            IndexMap((), (AxisMap(N - 1), AxisMap(0))),
        ]
        m = self.r.choice(maps)
        values = [v for v in [*self.pool, *self.versions] if v.type.shape == m.shape]
        if self.r.random() < 0.3 and len(m.shape) == 2 and m.shape[0] != N:
            other = self.r.choice(maps[1:3])
            values = [self.b.apply(REGISTRY["view"], self.r.choice(self.versions), map=other)[0]]
        value = self.r.choice(values) if values else self.pool[0] if m.shape else self.b.constant(np.float64(3.0))
        if value.type.shape and value.type.shape != m.shape and value.type.shape != (M,):
            return
        self.versions[k] = self.b.apply(REGISTRY["write"], value, base, map=m)[0]
        # a view sees its storage as it is now: those of the version before are gone
        self.pool = [v for v in self.pool if not (v.producer is not None and v.producer.name == "view")]

    def check(self) -> None:
        scalars = [v for v in self.pool if v.type.ndim == 0]
        condition = self.b.apply(REGISTRY["ne"], self.r.choice(scalars), self.b.constant(0.123))[0]
        self.order += 1
        self.graph.sites.append(Site("ValueError", f"check {self.order}"))
        self.b.emit(REGISTRY["check"], (condition,), (), {"site": len(self.graph.sites) - 1, "order": self.order})

    def region(self, depth: int) -> None:
        pool, versions = list(self.pool), list(self.versions)
        outer = self.b.block
        if self.r.random() < 0.6:
            body = Block([v.type for v in versions])
            self.b.at_end(body)
            self.versions = list(body.args)
            self.pool = [v for v in pool if not (v.producer is not None and v.producer.name == "view")]
            self.steps(5, depth + 1)
            self.b.emit(REGISTRY["yield"], self.versions, ())
            self.loops += 1
            name = f"i{self.loops}"
            upper = self.r.choice([0, 1, 2, N])
            self.graph.add_symbol(Symbol(name, "index", lower=0, upper=upper - 1))
            attrs = {"index": name, "lower": 0, "upper": upper, "step": 1}
            self.b.at_end(outer)
            op = self.b.emit(REGISTRY["for"], versions, [v.type for v in versions], attrs, (body,))
            self.versions = list(op.results)
        else:
            condition = self.b.apply(REGISTRY["lt"], self.r.choice([v for v in pool if v.type.ndim == 0]), 0.0)[0]
            regions = []
            for _ in range(2):
                block = Block()
                self.b.at_end(block)
                self.pool, self.versions = list(pool), list(versions)
                self.steps(3, depth + 1)
                self.b.emit(REGISTRY["yield"], self.versions, ())
                regions.append(block)
            self.b.at_end(outer)
            op = self.b.emit(REGISTRY["cond"], (condition,), [v.type for v in versions], {}, regions)
            self.versions = list(op.results)
        self.pool = [v for v in pool if not (v.producer is not None and v.producer.name == "view")]


def effects(graph: Graph) -> list[tuple[int, str]]:
    """Line and name of each write and ordered op, in the order of execution."""
    return [(op.loc.line if op.loc else 0, op.name) for op in graph.walk() if op.name in ("write", "check")]


def late_readers(block: Block) -> list[Op]:
    """Ops that read a version of a storage after one that updates it."""
    overwritten: set[Value] = set()
    late: list[Op] = []
    for op in block.ops():
        if any(behind(v) in overwritten for v in op.operands):
            late.append(op)
        overwritten.update(updates(op))
    return late


def behind(value: Value) -> Value:
    while value.producer is not None and value.producer.name in ("view", "reshape"):
        value = value.producer.operands[0]
    return value


def updates(op: Op) -> list[Value]:
    if op.name == "write":
        return [behind(op.operands[1])]
    if op.name == "kernel":
        args = dict(zip(op.regions[0].args, op.operands, strict=True))
        inner = [behind(w.operands[1]) for w in op.regions[0].ops() if w.name == "write"]
        return [behind(args[v]) for v in inner if v in args]
    if op.name in ("for", "while"):
        return [behind(v) for v in op.operands]
    return []
