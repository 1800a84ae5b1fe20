"""Kernels in a row, of which one reads what another has just stored, become one that goes row by row.

    lap = 4 * u[1:-1] - u[2:] - u[:-2]          k0 stores lap, k1 reads two rows of it for each row of its own:
    flux = lap[1:] - lap[:-1]                   one kernel, in which k1 runs a row behind k0

What stands between them then is in the first caches, and of an array that only they know a few rows are kept (`rings`).
Loops are joined as `join` does it; all that is new here is that kernels are looked into, and the result is a kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jitgraph.codegen.loops import Alloc, Buffer, CallKernel, For, Function, Load, Stmt, Store, Var
from jitgraph.codegen.loops_walk import read, walk
from jitgraph.codegen.lower_views import free_symbols
from jitgraph.ir.dims import Facts, symbol
from jitgraph.schedule.join import Joiner, is_plain
from jitgraph.schedule.memory import touched
from jitgraph.schedule.rings import rings
from jitgraph.schedule.statements import Names, Renaming, assigned_in, rebuilt


def chain(body: list[Stmt], kernels: list[Function], facts: Facts, names: Names) -> list[Stmt]:
    """A body that calls joined kernels where that is legal and pays; they are added to `kernels`."""
    return _Chain(kernels, facts, names).body(body)


class _Chain:
    """One run.

    Attributes:
        calls: of the chain at hand, and the memory that is made for them.
        loops: what these calls do, joined; empty if that is no chain.
        made: memory for temporaries.
        uses: how many statements touch a piece of memory.
    """

    def __init__(self, kernels: list[Function], facts: Facts, names: Names) -> None:
        self.kernels, self.facts, self.names = kernels, facts, names
        self.by_name = {k.name: k for k in kernels}
        self.calls: list[Stmt] = []
        self.loops: list[Stmt] = []
        self.made: set[str] = set()
        self.uses: Counter[str] = Counter()
        self.out: list[Stmt] = []

    def body(self, body: list[Stmt]) -> list[Stmt]:
        for s in walk(body):
            self.uses.update([s.buffer.name] if isinstance(s, (Load, Store)) else touched(s))
        for s in body:
            if isinstance(s, CallKernel):
                self.call(s)
            elif isinstance(s, Alloc) and s.scope == "scratch":
                self.calls.append(s)
                self.made.add(s.buffer.name)
            else:
                self.end()
                self.out.append(s)
        self.end()
        return self.out

    def call(self, s: CallKernel) -> None:
        loop = self.loop_of(s)
        if loop is not None and self.loops and self.reads_made(loop):
            joined = list(self.loops)
            Joiner(self.facts.copy(), self.names).append(loop, joined)
            if joined[-1] is not loop:
                self.calls.append(s)
                self.loops = joined
                return
        ahead: list[Stmt] = []  # memory for what this kernel makes
        while self.calls and isinstance(self.calls[-1], Alloc):
            ahead.insert(0, self.calls.pop())
        self.end()
        self.calls, self.loops = [*ahead, s], [] if loop is None else [loop]

    def loop_of(self, s: CallKernel) -> For | None:
        """What a kernel does, if that is one loop over rows."""
        kernel = self.by_name[s.name]
        if len(kernel.body) != 1 or s.results:
            return None
        (loop,) = kernel.body
        if not isinstance(loop, For) or loop.role != "serial" or loop.carried or not is_plain(loop):
            return None
        r = Renaming(names=self.names)
        for parameter, buffer in zip(kernel.buffers, s.buffers, strict=True):
            r.buffers[parameter.name] = buffer
        for name, d in zip(kernel.symbols, s.symbols, strict=True):
            r.set_dim(name, d)
        for var, x in zip(kernel.scalars, s.scalars, strict=True):
            r.vars[var.name] = x
        (made,) = rebuilt([loop], r)
        assert isinstance(made, For)
        return made

    def reads_made(self, loop: For) -> bool:
        """Whether a loop reads a temporary that the chain stores."""
        stored = {x.buffer.name for x in walk(self.loops) if isinstance(x, Store)} & self.made
        return any(isinstance(x, Load) and x.buffer.name in stored for x in walk(loop.body))

    def end(self) -> None:
        """Call what was gathered."""
        calls = [s for s in self.calls if isinstance(s, CallKernel)]
        if len(calls) < 2:
            self.out += self.calls
        else:
            own = Counter(name for s in self.calls for name in touched(s))
            allocs = [s for s in self.calls if isinstance(s, Alloc)]
            private = [s for s in allocs if own[s.buffer.name] == self.uses[s.buffer.name]]
            made = rings([*private, *self.loops])
            self.out += [s for s in allocs if s not in private]
            self.out += [s for s in made if isinstance(s, Alloc)]
            self.out.append(self.outlined([s for s in made if not isinstance(s, Alloc)], calls))
        self.calls, self.loops = [], []

    def outlined(self, body: list[Stmt], calls: Sequence[CallKernel]) -> CallKernel:
        """A call of a new kernel that does what stands in `body`."""
        buffers: dict[str, Buffer] = {}
        scalars: dict[str, Var] = {}
        own = assigned_in(body)
        for s in walk(body):
            if isinstance(s, (Load, Store)):
                buffers.setdefault(s.buffer.name, s.buffer)
            scalars.update((x.name, x) for x in read(s) if isinstance(x, Var) and x.name not in own)
        names = free_symbols(body, buffers.values())
        origin = [line for s in calls for line in self.by_name[s.name].origin]
        name = f"{calls[0].name}_{calls[-1].name}"
        kernel = Function(name, list(buffers.values()), names, list(scalars.values()), body, [], origin)
        self.kernels.append(kernel)
        return CallKernel(name, tuple(buffers.values()), tuple(map(symbol, names)), tuple(scalars.values()))
