"""Where temporaries lie: in the memory of a result that is not written yet, in one arena, or on the heap.

Lowering leaves an `Alloc(scratch)` where a temporary begins; the plan is made of lifetimes (`lifetimes.py`), behind all
passes over loops. In order:
1. Chains: what begins in place, where another buffer of its size dies, shares its address (`begins_in_place`). A chain
   that ends in a result lies in the memory of the result.
2. Hosts: before its first write, the memory of a result serves chains that fit. Where only the run knows whether they
   do, they fit by a test (`Alloc.fits`), else they lie in the arena.
3. The arena: sizes are run-time values, so the plan fixes which of two chains that live at the same time lies below,
   and an offset is the largest end of those below (a dim with `max`). Among a few orders the one is taken that comes
   closest to the largest sum of live bytes for sample sizes; equal sizes are simply stacked. Numbers are packed as
   numbers, the large ones first.
Sizes over symbols that `prepare` does not know go to the heap, freed behind their last use, unless a bound of the
symbol makes them known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from jitgraph.codegen.in_place import begins_in_place
from jitgraph.codegen.lifetimes import Life, lifetimes, mentions, size_of
from jitgraph.codegen.loops import STACK_BYTES, Alloc, Buffer, Free, Function, Stmt
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import (
    DimLike,
    Facts,
    dim_max,
    dim_min,
    evaluate,
    floordiv,
    parts_of,
    split_linear,
    substitute,
    symbol,
    symbols,
)
from jitgraph.records import dataclass, field

ALIGNMENT = 64
#: Chains beyond so many are not compared in pairs, and orders beyond so many are not tried.
_PAIRS, _TRIED = 400, 64
#: Terms of a maximum beyond so many are not compared.
_COMPARED = 8


@dataclass(slots=True, eq=False)
class Chain:
    """Buffers of one size that lie at one address, each begun where the one before dies.

    Attributes:
        size: bytes, known before the run.
        host: the result whose memory it uses, if `fits` (a dim that is 1 if it does, else 0).
        offset: in the arena.
    """

    lives: list[Life]
    size: DimLike
    host: Chain | None = None
    fits: DimLike = 0
    offset: DimLike = 0

    @property
    def first(self) -> int:
        return min(life.first for life in self.lives)

    @property
    def last(self) -> int:
        return max(life.last for life in self.lives)

    @property
    def result(self) -> Buffer | None:
        """The result that it ends in."""
        return self.lives[-1].buffer if self.lives[-1].alloc is None else None


@dataclass(slots=True, eq=False)
class Plan:
    """Attributes:
    chains: with the results', in the order in which they begin.
    heap: what has no size before the run.
    bytes: of the arena.
    sizes: symbols of the plan, each over those before it: what offsets and tests are made of.
    end: the last position of the program.
    """

    chains: list[Chain]
    heap: list[Life]
    bytes: DimLike
    sizes: list[tuple[str, DimLike]] = field(default_factory=list)
    end: int = 0


def plan_memory(
    entry: list[Stmt],
    known: Collection[str],
    facts: Facts,
    results: Sequence[Buffer] = (),
    kernels: Iterable[Function] = (),
) -> Plan:
    """Give each scratch allocation of the entry its place.

    Args:
        known: symbols whose value `prepare` knows.
        results: the buffers of results that have their memory before the run.
    """
    for s in walk(entry):
        if isinstance(s, Alloc) and s.scope == "row":  # of a kernel that has become part of a loop
            size = size_of(s.buffer)
            if not isinstance(size, int) or size > STACK_BYTES:
                s.scope = "scratch"
    lives, end = lifetimes(entry, results)
    functions = {k.name: k for k in kernels}
    heap: list[Life] = []
    planned: list[Life] = []
    sizes: dict[Life, DimLike] = {}
    for life in lives:
        if life.alloc is None:  # a result: the caller has it from its first write on
            life.first, life.last = life.first or end + 1, end + 1
            sizes[life] = life.size
            planned.append(life)
            continue
        size = _known_size(life.size, known, facts)
        if size is None:
            life.alloc.scope = "heap"
            heap.append(life)
        else:
            sizes[life] = size
            planned.append(life)
    chains = _chains(planned, sizes, functions)
    plan = Plan(chains, heap, 0, [], end)
    packing = _Packing(plan, facts)
    packing.host()
    packing.arena()
    for chain in chains:
        for life in chain.lives:
            if life.alloc is not None:
                host = chain.host.result if chain.host is not None else chain.result
                life.alloc.host = host.name if host is not None else ""
                life.alloc.fits = chain.fits if chain.host is not None else 1
                life.alloc.offset = chain.offset
    for life in heap:
        _free(life)
    return plan


def _chains(lives: Sequence[Life], sizes: dict[Life, DimLike], kernels: dict[str, Function]) -> list[Chain]:
    """Buffers that share an address because one begins in place of the other."""
    dying: dict[int, list[Life]] = {}
    for life in lives:
        if life.dies is not None and life.alloc is not None and not life.exchanged:
            dying.setdefault(id(life.dies), []).append(life)
    chain_of: dict[Life, Chain] = {}
    for life in sorted(lives, key=lambda x: x.first):
        found: Chain | None = None
        for old in dying.get(id(life.born), ()) if life.born is not None else ():
            if old is life or old not in chain_of or chain_of[old].lives[-1] is not old or sizes[old] != sizes[life]:
                continue
            assert life.born is not None
            if begins_in_place(life.born.stmt, old.buffer.name, life.buffer.name, kernels):
                found = chain_of[old]
                break
        if found is None:
            found = Chain([], sizes[life])
        found.lives.append(life)
        chain_of[life] = found
    return list(dict.fromkeys(chain_of.values()))


class _Packing:
    """Gives the chains of a plan their places."""

    def __init__(self, plan: Plan, facts: Facts) -> None:
        self.plan, self.facts = plan, facts
        self.count = 0

    def named(self, value: DimLike) -> DimLike:
        """A symbol of the plan that stands for a value."""
        if isinstance(value, int):
            return value
        name = f"mem.{len(self.plan.sizes)}"
        self.plan.sizes.append((name, value))
        return symbol(name)

    # --- results as hosts ---------------------------------------------------------------------------------------------

    def host(self) -> None:
        """Let results serve chains that are dead when they begin.

        Backwards in time: a result is free before its first write, then before the first write of what it serves.
        """
        free = {chain: chain.first for chain in self.plan.chains if chain.result is not None}
        if not free:
            return
        for chain in sorted(self.plan.chains, key=lambda c: (-c.last, -c.first)):
            if chain.result is not None:
                continue
            maybe: Chain | None = None
            surely: Chain | None = None
            for host, until in free.items():
                if chain.last >= until:
                    continue
                if self._fits(chain.size, host.size):
                    if surely is None or self._fits(host.size, surely.size):
                        surely = host
                elif maybe is None and not self._fits(host.size + 1, chain.size):
                    maybe = host
            if surely is not None:
                chain.host, chain.fits = surely, 1
            elif maybe is not None:
                chain.host = maybe
                chain.fits = self.named(dim_min(1, dim_max(0, 1 + maybe.size - chain.size)))
            if chain.host is not None:
                free[chain.host] = chain.first

    def _fits(self, size: DimLike, space: DimLike) -> bool:
        return size == space or self.facts.is_le(size, space)

    # --- the arena ----------------------------------------------------------------------------------------------------

    def arena(self) -> None:
        """Offsets of what no result surely serves."""
        chains = [c for c in self.plan.chains if c.result is None and c.fits != 1 and c.size != 0]
        chains.sort(key=lambda c: (-c.last, -c.first))
        if not chains:
            return
        needs = {c: (1 - c.fits) * rounded(c.size) for c in chains}
        if all(isinstance(size, int) for size in needs.values()):
            self._pack({c: int(size) for c, size in needs.items() if isinstance(size, int)})
            return
        colors = _colored(chains, needs)
        if len(chains) > _PAIRS:
            self._stretches(chains, colors, needs)
            return
        order = sorted(chains, key=lambda c: colors[c])
        together = {c: [d for d in chains if d is not c and c.first <= d.last and d.first <= c.last] for c in chains}
        if len(set(needs.values())) > 1 and len(chains) <= _TRIED:
            order = self._best(order, needs, together)
        rank = {c: k for k, c in enumerate(order)}
        ends: dict[Chain, DimLike] = {}
        for c in order:
            below = [ends[d] for d in together[c] if rank[d] < rank[c]]
            c.offset = self._largest(below)
            ends[c] = c.offset + needs[c]
        self.plan.bytes = self._largest(list(ends.values()))

    def _pack(self, needs: dict[Chain, int]) -> None:
        """Numbers: the large ones first, each in the smallest gap that it fits."""
        placed: list[Chain] = []
        at: dict[Chain, int] = {}
        for c in sorted(needs, key=lambda c: (-needs[c], -(c.last - c.first), c.first)):
            best: tuple[int, int] | None = None
            end = 0
            for d in sorted((d for d in placed if c.first <= d.last and d.first <= c.last), key=lambda d: at[d]):
                gap = at[d] - end
                if gap >= needs[c] and (best is None or gap < best[0]):
                    best = (gap, end)
                end = max(end, at[d] + needs[d])
            c.offset = at[c] = best[1] if best is not None else end
            placed.append(c)
        self.plan.bytes = max(at[c] + needs[c] for c in placed)

    def _stretches(self, chains: Sequence[Chain], colors: dict[Chain, int], needs: dict[Chain, DimLike]) -> None:
        """Chains of one colour share a stretch as long as the longest of them."""
        total: DimLike = 0
        for color in range(max(colors.values()) + 1):
            own = [c for c in chains if colors[c] == color]
            for c in own:
                c.offset = total
            total = self._sum(total, self._largest([needs[c] for c in own]))
        self.plan.bytes = total

    def _sum(self, a: DimLike, b: DimLike) -> DimLike:
        total = a + b
        return self.named(total) if not isinstance(total, int) and len(total.terms) > _COMPARED else total

    def _largest(self, values: Sequence[DimLike]) -> DimLike:
        """The largest of values, none of which is negative: without those that are proven to be smaller."""
        distinct = list(dict.fromkeys(values))
        if len(distinct) <= _COMPARED:
            for v in list(distinct):
                if any(v is not w and self.facts.is_le(v, w) for w in distinct):
                    distinct.remove(v)
        if not distinct:
            return 0
        largest = dim_max(*distinct)
        return self.named(largest) if parts_of(largest, "max") else largest

    # --- which lies below ---------------------------------------------------------------------------------------------

    def _best(self, first: list[Chain], needs: dict[Chain, DimLike], together: dict[Chain, list[Chain]]) -> list[Chain]:
        """The order, from the bottom, that comes closest to the largest sum of live bytes for some sizes."""
        samples = [self._sample(needs, k) for k in range(6)]
        orders = [first, sorted(first, key=lambda c: (c.first, c.last)), sorted(first, key=lambda c: c.first - c.last)]
        orders += [sorted(first, key=lambda c: -sample[c]) for sample in samples[1:3]]
        bounds = [max(1, largest_sum([(c.first, c.last, sample[c]) for c in first])) for sample in samples]
        best, best_score = first, (0.0, 0.0)
        for order in orders:
            rank = {c: k for k, c in enumerate(order)}
            ratios = []
            for sample, bound in zip(samples, bounds, strict=True):
                ends: dict[Chain, int] = {}
                for c in order:
                    below = max((ends[d] for d in together[c] if rank[d] < rank[c]), default=0)
                    ends[c] = below + sample[c]
                ratios.append(max(ends.values()) / bound)
            score = (max(ratios), sum(ratios))
            if best_score == (0.0, 0.0) or score < best_score:
                best, best_score = order, score
            if best_score[0] == 1.0:
                break
        return best

    def _sample(self, needs: dict[Chain, DimLike], number: int) -> dict[Chain, int]:
        """Sizes for some values of the symbols: all alike, then of three magnitudes."""
        env: dict[str, int] = {}
        state = 12345 + number
        for c in needs:
            for name in symbols(rounded(c.size)):
                if name not in env:
                    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                    env[name] = 64 if number == 0 else (16, 128, 1024)[(state >> 16) % 3]
        found = {}
        for c in needs:
            served = c.host is not None and evaluate(c.size, env) <= evaluate(c.host.size, dict(_rest(c.host, env)))
            found[c] = 0 if served else evaluate(rounded(c.size), env)
        return found


def _rest(chain: Chain, env: dict[str, int]) -> Iterable[tuple[str, int]]:
    return [(name, env.get(name, 64)) for name in symbols(chain.size)]


def _colored(chains: Sequence[Chain], needs: dict[Chain, DimLike]) -> dict[Chain, int]:
    """A number for each chain, different for those that live together; as few as can be.

    Backwards in time; of the numbers that are free, one whose last chain was as large, else the lowest.
    """
    free: list[int] = []
    size: list[DimLike] = []
    colors: dict[Chain, int] = {}
    for c in chains:
        fitting = [k for k, until in enumerate(free) if c.last < until]
        color = next((k for k in fitting if size[k] == needs[c]), fitting[0] if fitting else len(free))
        if color == len(free):
            free.append(0)
            size.append(0)
        free[color], size[color] = c.first, needs[c]
        colors[c] = color
    return colors


def largest_sum(lives: Iterable[tuple[int, int, int]]) -> int:
    """The largest sum of bytes that live at one position; of (first, last, bytes), both inclusive."""
    changes: dict[int, int] = {}
    for first, last, size in lives:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    total = largest = 0
    for at in sorted(changes):
        total += changes[at]
        largest = max(largest, total)
    return largest


def rounded(size: DimLike) -> DimLike:
    """Bytes as a multiple of the alignment."""
    if isinstance(size, int):
        return -(-size // ALIGNMENT) * ALIGNMENT
    return floordiv(size + (ALIGNMENT - 1), ALIGNMENT) * ALIGNMENT


def _known_size(size: DimLike, known: Collection[str], facts: Facts) -> DimLike | None:
    """The size, or an upper bound of it, over known symbols."""
    for _ in range(8):
        unknown = next((s for s in symbols(size) if s not in known), None)
        if unknown is None:
            return size
        upper = facts.upper.get(unknown)
        split = split_linear(size, unknown)
        if upper is None or split is None or not facts.is_le(0, split[0]):
            return None
        size = substitute(size, {unknown: upper})
    return None


def _free(life: Life) -> None:
    """Free a heap buffer behind the last statement of its body that mentions it."""
    name = life.buffer.name
    last = max(k for k, s in enumerate(life.body) if s is life.alloc or mentions(s, name))
    life.body.insert(last + 1, Free(life.buffer))
