"""Buffers that a loop exchanges although it could write in place.

A carried array that each turn computes anew lies in two buffers by turns. Where each element of the new one is computed
from the same element of the old one only, one buffer does, and nothing is exchanged.
"""

from __future__ import annotations

from collections import Counter

from jitgraph.codegen.loops import Alloc, Buffer, For, Load, Stmt, Store, Swap, While
from jitgraph.codegen.loops_walk import bodies, walk
from jitgraph.schedule.memory import dense, place_of, touched
from jitgraph.schedule.nests import nest_of
from jitgraph.schedule.statements import Renaming, changed_inside, rebuilt, with_bodies


def without_swaps(body: list[Stmt]) -> list[Stmt]:
    """A body whose loops write in place where they can."""
    uses: Counter[str] = Counter()
    made: set[str] = set()
    for s in walk(body):
        if isinstance(s, (Load, Store)):
            uses[s.buffer.name] += 1
        else:
            uses.update(touched(s))
            if isinstance(s, Alloc) and s.scope != "result":
                made.add(s.buffer.name)
    return _body(body, uses, made)


def _body(body: list[Stmt], uses: Counter[str], made: set[str]) -> list[Stmt]:
    def inside(inner: list[Stmt]) -> list[Stmt]:
        return _body(inner, uses, made)

    out: list[Stmt] = []
    for s in body:
        changed = changed_inside(s, inside)
        if isinstance(changed, (For, While)) and changed is not s:
            *test, turn = bodies(changed)
            changed = with_bodies(changed, *test, _in_place(turn, uses, made))
        out.append(changed)
    return out


def _in_place(body: list[Stmt], uses: Counter[str], made: set[str]) -> list[Stmt]:
    for swap in [s for s in body if isinstance(s, Swap)]:
        for old, new in ((swap.a, swap.b), (swap.b, swap.a)):
            if new.name in made and _only_here(body, new, uses) and _elementwise(body, old, new):
                r = Renaming(buffers={new.name: old})
                pair = {old.name, new.name}
                body = rebuilt([s for s in body if not (isinstance(s, Swap) and {s.a.name, s.b.name} == pair)], r)
                break
    return body


def _only_here(body: list[Stmt], new: Buffer, uses: Counter[str]) -> bool:
    """Whether a buffer is stored to and exchanged once in the body, made, and used nowhere else."""
    stores = sum(isinstance(s, Store) and s.buffer.name == new.name for s in walk(body))
    return stores == 1 and uses[new.name] == 3  # Alloc, Store, Swap


def _elementwise(body: list[Stmt], old: Buffer, new: Buffer) -> bool:
    """Whether the one nest that stores `new` is the only one that loads `old`, at the same place and before."""
    if sum(isinstance(s, Swap) and old.name in (s.a.name, s.b.name) for s in walk(body)) != 1:
        return False  # exchanged with a third one: its elements are still needed
    for s in body:
        touches = any(isinstance(x, (Load, Store)) and x.buffer.name in (old.name, new.name) for x in walk([s]))
        if not touches:
            if not isinstance(s, Swap) and any(name in (old.name, new.name) for x in walk([s]) for name in touched(x)):
                return False
            continue
        nest = nest_of(s)
        if nest is None:
            return False
        accesses = [x for x in nest.body if isinstance(x, (Load, Store)) and x.buffer.name in (old.name, new.name)]
        store = accesses[-1]
        if not isinstance(store, Store) or store.buffer.name != new.name:
            return False
        for x in accesses[:-1]:
            same = place_of(x)[1] == store.index and x.buffer.strides == store.buffer.strides
            if not isinstance(x, Load) or x.buffer.name != old.name or not same or not dense(x.buffer):
                return False
    return True
