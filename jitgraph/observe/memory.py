"""`f.memory(*specs)`: what a call asks for, how long each buffer lives, and whose memory it lies in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jitgraph import dtypes
from jitgraph.abi import HEAP_HEAD
from jitgraph.codegen.lifetimes import Life, Point, size_of
from jitgraph.codegen.loops import (
    STACK_BYTES,
    Address,
    Alloc,
    Buffer,
    CallKernel,
    Check,
    For,
    Function,
    Host,
    Library,
    Origin,
    Program,
    SetResult,
    Stmt,
    Store,
    While,
)
from jitgraph.codegen.loops_walk import walk
from jitgraph.codegen.memory import ALIGNMENT, Chain, Plan, largest_sum
from jitgraph.ir.dims import DimLike, evaluate, symbols
from jitgraph.records import dataclass, field
from jitgraph.runtime.pool import SMALL_BYTES


class Step(NamedTuple):
    """A statement of the program that touches memory: a kernel, a product, a loop.

    Attributes:
        number: from 1 on, in the order of the program.
        text: its name and operators.
        lines: the user's.
    """

    number: int
    text: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.number}. {self.text}{_line_text(self.lines)}"


class BufferLife(NamedTuple):
    """One buffer of a call.

    Attributes:
        name: the user's name of the value, else that of the operator, with the number of the buffer.
        kind: "temporary", "result", "heap" (a temporary whose size only the run knows), or "argument": from where it is
            overwritten on; its memory is the caller's.
        shape, dtype, size_bytes: as they are for these arguments; the size is None where only the run knows it.
        line: the user's, 0 if unknown.
        first, last: the steps that mention it first and last; `last` of a result is that which the call returns behind.
        place: "arena", "heap", or the name of the result or argument whose memory it lies in.
        offset: bytes from the beginning of the arena or that memory.
        in_place_of: the buffer whose memory it goes on in, without a gap: it is written where that one is read.
        reuses: those that are dead and had some of its memory before.
    """

    name: str
    kind: str
    shape: tuple[int | None, ...]
    dtype: str
    size_bytes: int | None
    line: int
    first: int
    last: int
    place: str
    offset: int
    in_place_of: str
    reuses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory of a call. `str()` is the report.

    Attributes:
        peak: bytes of results, arena and row buffers: the most that a call holds at a time.
        lower_bound: the largest sum of bytes of buffers that live at one time, as the program stands.
        result_bytes, arena_bytes: parts of the peak.
        row_bytes: memory inside kernels (in each thread that one runs in), beside small rows on the stack.
        pool_bytes: what of the peak is asked of the pool; small results come from NumPy's allocator.
        exact: nothing has a size that only the run knows.
        buffers: results and temporaries, in the order in which they begin.
        steps: what they are mentioned by.
        host_calls: functions that are called back: what they allocate is theirs.
        blas: routines of BLAS, which have work space of their own.
    """

    name: str
    peak: int
    lower_bound: int
    result_bytes: int
    arena_bytes: int
    row_bytes: int
    pool_bytes: int
    exact: bool
    buffers: list[BufferLife]
    steps: list[Step] = field(default_factory=list)
    host_calls: list[str] = field(default_factory=list)
    blas: list[str] = field(default_factory=list)

    @property
    def temporaries(self) -> list[BufferLife]:
        """The buffers that are no results."""
        return [b for b in self.buffers if b.kind in ("temporary", "heap")]

    @property
    def in_place(self) -> list[BufferLife]:
        """Those that go on in the memory of another one."""
        return [b for b in self.buffers if b.in_place_of]

    def __str__(self) -> str:
        rows = f" + {self.row_bytes} in kernels" if self.row_bytes else ""
        more = "" if self.exact else ", and what only the run knows"
        ratio = f" ({self.peak / self.lower_bound:.2f} of it)" if self.lower_bound else ""
        out = [
            f"{self.name}: peak {self.peak} bytes = {self.result_bytes} of results + {self.arena_bytes} of arena{rows}"
            f"{more}; lower bound {self.lower_bound} bytes{ratio}"
        ]
        out += [f"  {step}" for step in self.steps]
        out += [f"  {_buffer_text(b)}" for b in self.buffers]
        if self.blas:
            out.append(f"  beside: work space of BLAS ({', '.join(self.blas)})")
        if self.host_calls:
            out.append(f"  beside: what Python functions allocate ({', '.join(self.host_calls)})")
        return "\n".join(out)


def _line_text(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    return f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))})"


def _buffer_text(b: BufferLife) -> str:
    shape = ", ".join("?" if d is None else str(d) for d in b.shape)
    size = "size known at run time" if b.size_bytes is None else f"{b.size_bytes} bytes"
    where = (
        f"arena at {b.offset}"
        if b.place == "arena"
        else "on the heap"
        if b.place == "heap"
        else f"in {b.place}{f' at {b.offset}' if b.offset else ''}"
    )
    text = f"{b.name}: {b.dtype}[{shape}], {size}{_line_text([b.line] if b.line else [])}, steps {b.first} to {b.last}"
    if b.kind in ("temporary", "heap"):
        text += f", {where}"
    if b.in_place_of:
        text += f", in place of {b.in_place_of}"
    if b.reuses:
        text += f", reuses {', '.join(b.reuses)}"
    return text


def _covers(b: BufferLife, other: BufferLife) -> bool:
    """Whether a buffer lies over all of another one."""
    return b.offset <= other.offset and b.offset + (b.size_bytes or 0) >= other.offset + (other.size_bytes or 0)


def memory_report(program: Program, sizes: Mapping[str, int]) -> MemoryReport:
    """The report of a program for these sizes of arguments."""
    plan = program.memory
    assert plan is not None
    env = dict(sizes)
    for name, value in program.sizes:
        env[name] = evaluate(value, env)
    return _Report(program, plan, env).made()


class _Report:
    def __init__(self, program: Program, plan: Plan, env: Mapping[str, int]) -> None:
        self.program, self.plan, self.env = program, plan, env
        self.kernels = {k.name: k for k in (*program.kernels, *program.inlined)}
        self.slots = {e.buffer.name: e.slot for e in program.entry_buffers if e.source == "result"}
        self.given = {e.buffer.name for e in program.entry_buffers if e.source == "arg"}
        self.steps: list[Step] = []
        self.starts: list[int] = []
        self.known: dict[str, str] = {}

    def made(self) -> MemoryReport:
        program = self.program
        late = [s for s in walk(program.entry) if isinstance(s, Alloc) and s.scope == "result"]
        lives = [(life, chain) for chain in self.plan.chains for life in chain.lives]
        self._find_steps([life for life, _ in lives] + self.plan.heap)
        size_of_chain = {chain: self._bytes(chain.size) for chain in self.plan.chains}
        buffers: list[BufferLife] = []
        places: list[tuple[BufferLife, Chain, Life]] = []
        for life, chain in sorted(lives, key=lambda x: (x[0].first, x[0].last, x[0].buffer.name)):
            places.append((self._life(life, chain, places), chain, life))
        buffers += [b for b, _, _ in places]
        buffers += [self._unknown(life.buffer, "heap", life) for life in self.plan.heap]
        buffers += [self._unknown(s.buffer, "result", None) for s in late]
        kinds = {chain: chain.outside.kind if chain.outside is not None else "" for chain in size_of_chain}
        results = sum(size for chain, size in size_of_chain.items() if kinds[chain] == "result")
        pooled = sum(size for c, size in size_of_chain.items() if kinds[c] == "result" and size >= SMALL_BYTES)
        arena = self._bytes(program.scratch_bytes)
        rows, exact = self._rows(program.entry)
        bound = largest_sum([(c.first, c.last, size) for c, size in size_of_chain.items() if kinds[c] != "argument"])
        return MemoryReport(
            program.name,
            results + arena + rows,
            bound + rows,
            results,
            arena,
            rows,
            pooled + arena + rows,
            exact and not self.plan.heap and not late,
            buffers,
            self.steps,
            list(dict.fromkeys(program.sites[s.site].message for s in walk(program.entry) if isinstance(s, Host))),
            list(dict.fromkeys(s.name for s in self._all(program.entry) if isinstance(s, Library))),
        )

    def _bytes(self, size: DimLike) -> int:
        return size if isinstance(size, int) else evaluate(size, self.env)

    def _all(self, body: list[Stmt]) -> Iterator[Stmt]:
        """All statements, those of the kernels called included."""
        for s in walk(body):
            yield s
            if isinstance(s, CallKernel):
                yield from self._all(self.kernels[s.name].body)

    # --- buffers ------------------------------------------------------------------------------------------------------

    def _life(self, life: Life, chain: Chain, before: Iterable[tuple[BufferLife, Chain, Life]]) -> BufferLife:
        before = list(before)
        at = chain.lives.index(life)
        host = chain.outside
        if host is None and chain.host is not None and self._bytes(chain.fits):
            host = chain.host.outside
        place, offset = "arena", self._bytes(chain.offset)
        if host is not None:
            place, offset = self._name(host.buffer), self._bytes(chain.inside) if chain.outside is None else 0
        start, end = offset, offset + self._bytes(chain.size)
        reuses: list[BufferLife] = []
        for b, other, dead in before if at == 0 else ():
            overlaps = b.place == place and b.offset < end and start < b.offset + (b.size_bytes or 0)
            if other is not chain and overlaps and dead.last < life.first:
                reuses = [x for x in reuses if not _covers(b, x)]  # what it had taken over itself
                reuses.append(b)
        return BufferLife(
            self._name(life.buffer),
            "temporary" if life.kind == "scratch" else life.kind,
            tuple(self._bytes(d) if self._is_known(d) else None for d in life.buffer.shape),
            dtypes.short_name(life.buffer.dtype),
            self._bytes(chain.size),
            self._line(life.buffer.name),
            self._step(life.start),
            len(self.steps) if life.alloc is None else self._step(life.end),
            place,
            offset,
            self._name(chain.lives[at - 1].buffer) if at else "",
            tuple(b.name for b in reuses),
        )

    def _unknown(self, b: Buffer, kind: str, life: Life | None) -> BufferLife:
        shape = tuple(self._bytes(d) if self._is_known(d) else None for d in b.shape)
        first, last = (self._step(life.start), self._step(life.end)) if life is not None else (0, len(self.steps))
        line = self._line(b.name)
        return BufferLife(
            self._name(b), kind, shape, dtypes.short_name(b.dtype), None, line, first, last, "heap", 0, "", ()
        )

    def _is_known(self, d: DimLike) -> bool:
        return all(s in self.env for s in symbols(d))

    def _name(self, b: Buffer) -> str:
        """A name of its own for each buffer, for people."""
        found = self.known.get(b.name)
        if found is None:
            origin = self.program.origins.get(b.name)
            found = (origin.value or origin.op) if origin is not None else b.name
            if b.name in self.slots:
                found = f"result {self.slots[b.name]}"
            elif b.name in self.given:
                found = f"argument {b.name}"
            taken = set(self.known.values())
            at, base = 1, found
            while found in taken:
                at += 1
                found = f"{base} ({at})"
            self.known[b.name] = found
        return found

    def _line(self, name: str) -> int:
        origin = self.program.origins.get(name)
        return origin.loc.line if origin is not None and origin.loc is not None else 0

    # --- steps --------------------------------------------------------------------------------------------------------

    def _find_steps(self, lives: Sequence[Life]) -> None:
        points = {id(p): p for life in lives for p in (life.start, life.end) if p is not None}
        for number, p in enumerate(sorted(points.values(), key=lambda p: p.first), 1):
            text, lines = self._describe(p.stmt)
            self.steps.append(Step(number, text, lines))
            self.starts.append(p.first)

    def _step(self, p: Point | None) -> int:
        return self.starts.index(p.first) + 1 if p is not None else len(self.steps)

    def _describe(self, stmt: Stmt) -> tuple[str, tuple[int, ...]]:
        """What a statement is to its reader, and the user's lines."""
        if any(s is stmt for s in self.plan.dropped):
            return "nothing: a copy of what is there", self._lines_of(stmt)
        found = list(walk([stmt]))
        found.sort(key=lambda s: not isinstance(s, Library))
        for s in found:
            if isinstance(s, CallKernel):
                k = self.kernels[s.name]
                operators = ", ".join(dict.fromkeys(text.split(" @ ")[0] for text in k.origin))
                if not operators:  # a loop of the entry that became a function of its own
                    made = [self.program.origins[b.name] for b in s.buffers if b.name in self.program.origins]
                    lines = (*_lines(k), *(o.loc.line for o in made[-1:] if o.loc is not None))
                    return f"{s.name}: {made[-1].op}" if made else s.name, lines
                return f"{s.name}: {operators}", _lines(k)
            if isinstance(s, Library):
                names = dict.fromkeys(x.buffer.name for x in s.args if isinstance(x, Address))
                return s.name, tuple(dict.fromkeys(line for line in [self._line(list(names)[-1])] if line))
            if isinstance(s, Host):
                site = self.program.sites[s.site]
                return site.message or "a call of Python", (site.loc.line,) if site.loc is not None else ()
        if isinstance(stmt, (For, While)):
            return "a loop", self._lines_of(stmt)
        if isinstance(stmt, (Check, SetResult, Store)):
            return "scalar code", self._lines_of(stmt)
        return "loops", self._lines_of(stmt)

    def _lines_of(self, stmt: Stmt) -> tuple[int, ...]:
        own = [
            self.program.lines[s.symbol] for s in walk([stmt]) if isinstance(s, For) and s.symbol in self.program.lines
        ]
        if own:
            return tuple(dict.fromkeys(own))
        names = [s.buffer.name for s in walk([stmt]) if isinstance(s, Store)]
        return tuple(dict.fromkeys(line for line in map(self._line, names) if line))

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _rows(self, body: list[Stmt]) -> tuple[int, bool]:
        """Bytes of the row buffers of one kernel at a time that lie on no stack; whether they are all known."""
        most, exact = 0, True
        for s in walk(body):
            if isinstance(s, CallKernel):
                size = self._kernel_rows(s, self.env)
                exact &= size is not None
                most = max(most, size or 0)
        return most, exact

    def _kernel_rows(self, call: CallKernel, env: Mapping[str, int]) -> int | None:
        k = self.kernels[call.name]
        inside: dict[str, int] = {}
        for name, d in zip(k.symbols, call.symbols, strict=True):
            if all(s in env for s in symbols(d)):
                inside[name] = evaluate(d, env)
        total = 0
        for s in walk(k.body):
            if isinstance(s, Alloc) and s.scope == "row":
                size = size_of(s.buffer)
                if isinstance(size, int) and size <= STACK_BYTES:
                    continue
                if any(name not in inside for name in symbols(size)):
                    return None
                total += evaluate(size, inside) + HEAP_HEAD + ALIGNMENT
        deeper = [self._kernel_rows(s, inside) for s in walk(k.body) if isinstance(s, CallKernel)]
        if any(size is None for size in deeper):
            return None
        return total + max((size or 0 for size in deeper), default=0)


def _lines(k: Function) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(text.rsplit(":", 2)[-2]) for text in k.origin if " @ " in text))


__all__ = ["BufferLife", "MemoryReport", "Origin", "Step", "memory_report"]
