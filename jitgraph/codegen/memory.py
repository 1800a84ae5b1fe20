"""Where temporaries lie: in memory from outside that is not written yet, in one arena, or on the heap.

Lowering leaves an `Alloc(scratch)` where a temporary begins; the plan is made of lifetimes (`lifetimes.py`), behind all
passes over loops. In order:
1. Chains: what begins in place, where another buffer of its size dies, shares its address (`begins_in_place`). A chain
   that ends in a result lies in the memory of the result; so with an argument that is overwritten. A copy inside a
   chain is no work and goes.
2. Hosts: before its first write, the memory of a result serves chains that fit, that of an argument between its last
   read, or the last statement that may end the call with an error, and its first write. Where only the run knows if
   they do, a test says so (`Alloc.fits`); else they lie in the arena. Which host may serve is chosen by sample sizes.
3. The arena: sizes are run-time values, so the plan fixes which of two chains that live at the same time lies below,
   and an offset is the largest end of those below (a dim with `max`). Among a few orders the one is taken that comes
   closest to the largest sum of live bytes for sample sizes; equal sizes are simply stacked. Numbers are packed as
   numbers, the large ones first.
Sizes over symbols that `prepare` does not know go to the heap, freed behind their last use, unless a bound of the
symbol makes them known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from jitgraph.codegen.in_place import begins_in_place, is_copy
from jitgraph.codegen.lifetimes import Life, lifetimes, mentions, size_of
from jitgraph.codegen.loops import STACK_BYTES, Alloc, Buffer, Free, Function, Stmt
from jitgraph.codegen.loops_walk import walk
from jitgraph.ir.dims import (
    Atom,
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
#: More pairs of chains that live together are not looked at one by one; of more chains no further orders are tried.
_PAIRS, _TRIED = 1 << 13, 64
#: Chains that live together in memory from outside, and looks for such memory in all.
_STACKED, _SERVED = 4, 1 << 12
#: Names of the plan's symbols begin so; none of them is negative.
_PREFIX = "mem."
#: Terms of a maximum beyond so many are not compared.
_COMPARED = 8


@dataclass(slots=True, eq=False)
class Chain:
    """Buffers of one size that lie at one address, each begun where the one before dies.

    Attributes:
        size: bytes, known before the run.
        host: the chain from outside whose memory it uses, if `fits` (a dim that is 1 if it does, else 0).
        inside: where in that memory.
        offset: in the arena.
    """

    lives: list[Life]
    size: DimLike
    host: Chain | None = None
    fits: DimLike = 0
    inside: DimLike = 0
    offset: DimLike = 0
    first: int = 0
    last: int = 0

    def add(self, life: Life) -> None:
        """One more buffer, which begins where the last one dies."""
        self.first = min(self.first, life.first) if self.lives else life.first
        self.last = max(self.last, life.last)
        self.lives.append(life)

    @property
    def outside(self) -> Life | None:
        """The result or argument that it ends in."""
        return self.lives[-1] if self.lives[-1].alloc is None else None


@dataclass(slots=True, eq=False)
class Plan:
    """Attributes:
    chains: with those of results and of arguments that are overwritten.
    heap: what has no size before the run.
    bytes: of the arena.
    sizes: symbols of the plan, each over those before it: what offsets and tests are made of.
    end: the last position of the program.
    dropped: copies that have nothing to do, as both arrays are one: they are gone from the program.
    """

    chains: list[Chain]
    heap: list[Life]
    bytes: DimLike
    sizes: list[tuple[str, DimLike]] = field(default_factory=list)
    end: int = 0
    dropped: list[Stmt] = field(default_factory=list)


def plan_memory(
    entry: list[Stmt],
    known: Collection[str],
    facts: Facts,
    results: Sequence[Buffer] = (),
    kernels: Iterable[Function] = (),
    arguments: Sequence[Buffer] = (),
) -> Plan:
    """Give each scratch allocation of the entry its place.

    Args:
        known: symbols whose value `prepare` knows.
        results: the buffers of results that have their memory before the run.
        arguments: those of arguments.
    """
    for s in walk(entry):
        if isinstance(s, Alloc) and s.scope == "row":  # of a kernel that has become part of a loop
            size = size_of(s.buffer)
            if not isinstance(size, int) or size > STACK_BYTES:
                s.scope = "scratch"
    functions = {k.name: k for k in kernels}
    lives, end = lifetimes(entry, results, arguments, functions)
    heap: list[Life] = []
    planned: list[Life] = []
    sizes: dict[Life, DimLike] = {}
    for life in lives:
        if life.alloc is None:
            sizes[life] = life.size
            planned.append(life)
            continue
        bytes_known = _known_size(life.size, known, facts)
        if bytes_known is None:
            life.alloc.scope = "heap"
            heap.append(life)
        else:
            sizes[life] = bytes_known
            planned.append(life)
    chains = _chains(planned, sizes, functions)
    plan = Plan(chains, heap, 0, [], end)
    packing = _Packing(plan, facts)
    packing.host()
    packing.arena()
    for chain in chains:
        for life in chain.lives:
            if life.alloc is not None:
                host = chain.host.outside if chain.host is not None else chain.outside
                life.alloc.host = host.buffer.name if host is not None else ""
                life.alloc.fits = chain.fits if chain.host is not None else 1
                life.alloc.inside, life.alloc.offset = chain.inside, chain.offset
        _drop_copies(plan, chain, functions)
    for life in heap:
        _free(life)
    return plan


def _drop_copies(plan: Plan, chain: Chain, kernels: dict[str, Function]) -> None:
    """Take copies from one buffer of a chain to the next out of the program."""
    for old, new in zip(chain.lives, chain.lives[1:], strict=False):
        p = new.born
        if p is not None and is_copy(p.stmt, old.buffer.name, new.buffer.name, kernels):
            p.body[:] = [s for s in p.body if s is not p.stmt]
            plan.dropped.append(p.stmt)


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
            if chain_of[old].first <= life.free_from:
                continue
            assert life.born is not None
            if begins_in_place(life.born.stmt, old.buffer.name, life.buffer.name, kernels):
                found = chain_of[old]
                break
        if found is None:
            found = Chain([], sizes[life])
        found.add(life)
        chain_of[life] = found
    return list(dict.fromkeys(chain_of.values()))


class _Packing:
    """Gives the chains of a plan their places."""

    def __init__(self, plan: Plan, facts: Facts) -> None:
        self.plan, self.facts = plan, facts
        self.choosing = True
        self.natural: dict[Atom, bool] = {}
        self.samples = _samples([c.size for c in plan.chains])

    def named(self, value: DimLike) -> DimLike:
        """A symbol of the plan that stands for a value."""
        if isinstance(value, int):
            return value
        name = f"{_PREFIX}{len(self.plan.sizes)}"
        self.plan.sizes.append((name, value))
        for env in self.samples if self.choosing else ():
            env[name] = evaluate(value, env)
        return symbol(name)

    # --- memory from outside ------------------------------------------------------------------------------------------

    def host(self) -> None:
        """Let results and overwritten arguments serve chains that are dead when they begin.

        Backwards in time, each chain goes where it fits for most sample sizes; those that live together are stacked.
        """
        chains = [c for c in self.plan.chains if c.outside is None and c.size != 0]
        hosts = [c for c in self.plan.chains if c.outside is not None]
        hosts = sorted(hosts, key=lambda c: -c.first)[: _SERVED // max(1, len(chains))]
        #: What may live at the same time as chains to come.
        served: dict[Chain, list[Chain]] = {host: [] for host in hosts}
        sizes = {c: [evaluate(c.size, env) for env in self.samples] for c in (*hosts, *chains)} if hosts else {}
        #: Ends of what is served, for each sample; 0 where it does not fit.
        ends: dict[Chain, list[int]] = {}
        for chain in sorted(chains, key=lambda c: (-c.last, -c.first)) if hosts else ():
            best: tuple[int, int, Chain] | None = None
            for host in hosts:
                life = host.outside
                if life is None or chain.last >= host.first or chain.first <= life.free_from:
                    continue
                beside = served[host] = _beside(chain, served[host])
                if len(beside) >= _STACKED:
                    continue
                room = [space - max((ends[d][k] for d in beside), default=0) for k, space in enumerate(sizes[host])]
                fitting = sum(space >= size for space, size in zip(room, sizes[chain], strict=True))
                waste = sum(space - size for space, size in zip(room, sizes[chain], strict=True))
                if best is None or (fitting, -waste) > best[:2]:
                    best = (fitting, -waste, host)
            if best is not None and best[0]:
                self._serve(chain, best[2], served[best[2]])
                above = [
                    max((ends[d][k] for d in _beside(chain, served[best[2]])), default=0)
                    for k in range(len(self.samples))
                ]
                ends[chain] = [
                    -(-(at + size) // ALIGNMENT) * ALIGNMENT if at + size <= space else 0
                    for at, size, space in zip(above, sizes[chain], sizes[best[2]], strict=True)
                ]
                served[best[2]].append(chain)

    def _serve(self, chain: Chain, host: Chain, served: list[Chain]) -> None:
        """Put a chain into the memory of a host, above those that it serves at the same time."""
        beside = _beside(chain, served)
        chain.host = host
        chain.inside = self._largest([d.fits * (d.inside + rounded(d.size)) for d in beside])
        surely = self._fits(chain.inside + chain.size, host.size)
        chain.fits = 1 if surely else self.named(dim_min(1, dim_max(0, 1 + host.size - chain.inside - chain.size)))

    def _fits(self, size: DimLike, space: DimLike) -> bool:
        """Whether a size is at most another one, whatever the symbols are: told from the signs of the difference."""
        return size == space or self._is_natural(space - size)

    def _is_natural(self, d: DimLike) -> bool:
        if isinstance(d, int):
            return d >= 0
        return all(factor >= 0 and all(map(self._is_natural_atom, mono)) for mono, factor in d.terms)

    def _is_natural_atom(self, atom: Atom) -> bool:
        known = self.natural.get(atom)
        if known is None:
            if atom.op == "sym":
                lower = self.facts.lower.get(atom.name)
                known = atom.name.startswith(_PREFIX) or (isinstance(lower, int) and lower >= 0)
            else:
                parts = [self._is_natural(a) for a in atom.args if not isinstance(a, str)]
                known = any(parts) if atom.op == "max" else all(parts)
            self.natural[atom] = known
        return known

    # --- the arena ----------------------------------------------------------------------------------------------------

    def arena(self) -> None:
        """Offsets of what no memory from outside surely serves."""
        chains = [c for c in self.plan.chains if c.outside is None and c.fits != 1 and c.size != 0]
        chains.sort(key=lambda c: (-c.last, -c.first))
        if not chains:
            return
        needs = {c: (1 - c.fits) * rounded(c.size) for c in chains}
        if all(isinstance(size, int) for size in needs.values()):
            self._pack({c: int(size) for c, size in needs.items() if isinstance(size, int)})
            return
        colors = _colored(chains, needs)
        together = _together(chains)
        if together is None:
            self._stretches(chains, colors, needs)
            return
        order = sorted(chains, key=lambda c: colors[c])
        if len(set(needs.values())) > 1 and len(chains) <= _TRIED:
            order = self._best(order, needs, together)
        self.choosing = False
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
            for d in sorted(_beside(c, placed), key=lambda d: at[d]):
                gap = at[d] - end
                if gap >= needs[c] and (best is None or gap < best[0]):
                    best = (gap, end)
                end = max(end, at[d] + needs[d])
            c.offset = at[c] = best[1] if best is not None else end
            placed.append(c)
        self.plan.bytes = max(at[c] + needs[c] for c in placed)

    def _stretches(self, chains: Sequence[Chain], colors: dict[Chain, int], needs: dict[Chain, DimLike]) -> None:
        """Chains of one colour share a stretch as long as the longest of them."""
        self.choosing = False
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
                if any(v is not w and self._fits(v, w) for w in distinct):
                    distinct.remove(v)
        if not distinct:
            return 0
        largest = dim_max(*distinct)
        return self.named(largest) if parts_of(largest, "max") else largest

    # --- which lies below ---------------------------------------------------------------------------------------------

    def _best(self, first: list[Chain], needs: dict[Chain, DimLike], together: dict[Chain, list[Chain]]) -> list[Chain]:
        """The order, from the bottom, that comes closest to the largest sum of live bytes for some sizes."""
        samples = []
        for env in self.samples:
            samples.append({c: evaluate(size, env) for c, size in needs.items()})
        orders = [first, sorted(first, key=lambda c: (c.first, c.last)), sorted(first, key=lambda c: c.first - c.last)]
        orders += [sorted(first, key=sample.__getitem__, reverse=True) for sample in samples[1:3]]
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


def _samples(sizes: Sequence[DimLike]) -> list[dict[str, int]]:
    """Values for the symbols of sizes: all alike; that of most sizes (the rows of a batch) smaller or larger than the
    others; of three magnitudes by chance.
    """
    uses: dict[str, int] = {}
    for size in sizes:
        for name in symbols(size):
            uses[name] = uses.get(name, 0) + 1
    if not uses:
        return [{}]
    common = max(uses, key=lambda name: uses[name])
    found = [{name: rows if name == common else 64 for name in uses} for rows in (64, 32, 16, 128, 512)]
    state = 12345
    for _ in range(3):
        env: dict[str, int] = {}
        for name in uses:
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            env[name] = (16, 128, 1024)[(state >> 16) % 3]
        found.append(env)
    return found


def _beside(chain: Chain, others: Iterable[Chain]) -> list[Chain]:
    """Those that live at some time at which the chain lives."""
    return [d for d in others if d is not chain and d.first <= chain.last and chain.first <= d.last]


def _together(chains: Sequence[Chain]) -> dict[Chain, list[Chain]] | None:
    """For each chain those that live at some time at which it lives; None if that is too much to look at."""
    found: dict[Chain, list[Chain]] = {c: [] for c in chains}
    alive: list[Chain] = []
    pairs = 0
    for c in sorted(chains, key=lambda c: c.first):
        alive = [d for d in alive if d.last >= c.first]
        pairs += len(alive)
        if pairs > _PAIRS:
            return None
        for d in alive:
            found[c].append(d)
            found[d].append(c)
        alive.append(c)
    return found


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
