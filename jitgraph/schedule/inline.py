"""Kernels that a loop calls in each turn become part of the loop, so that their addresses and nests are seen there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitgraph.codegen.loops import CallKernel, For, Function, Stmt, While
from jitgraph.codegen.loops_walk import walk
from jitgraph.schedule.statements import Names, Renaming, bound_in, changed_inside, rebuilt, size, with_bodies

#: Statements of a kernel that is worth it, and what the entry may grow by.
LARGEST = 120
MOST = 1500


def inline(body: list[Stmt], kernels: Sequence[Function], names: Names) -> list[Stmt]:
    """A body whose loops hold the kernels that they call."""
    inliner = _Inliner({k.name: k for k in kernels}, names)
    made = inliner.body(body, inside=False)
    return rebuilt(made, inliner.r) if inliner.r.vars else made


class _Inliner:
    def __init__(self, kernels: Mapping[str, Function], names: Names) -> None:
        self.kernels, self.names = kernels, names
        self.left = MOST
        self.r = Renaming()  # results of kernels

    def body(self, body: list[Stmt], *, inside: bool) -> list[Stmt]:
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, CallKernel) and inside and self.fits(s):
                out += self.call(s)
                continue
            if isinstance(s, For):
                out.append(with_bodies(s, self.body(s.body, inside=True)))
                continue
            within = inside or isinstance(s, While)
            out.append(changed_inside(s, lambda b, within=within: self.body(b, inside=within), tests=True))  # type: ignore[misc]
        return out

    def fits(self, s: CallKernel) -> bool:
        kernel = self.kernels[s.name]
        count = size(kernel.body)
        if count > LARGEST or count > self.left:
            return False
        self.left -= count
        return True

    def call(self, s: CallKernel) -> list[Stmt]:
        kernel = self.kernels[s.name]
        r = Renaming(names=self.names)
        for parameter, buffer in zip(kernel.buffers, s.buffers, strict=True):
            r.buffers[parameter.name] = buffer
        for symbol, d in zip(kernel.symbols, s.symbols, strict=True):
            r.set_dim(symbol, d)
        for var, x in zip(kernel.scalars, s.scalars, strict=True):
            r.vars[var.name] = x
        body = rebuilt(kernel.body, r)
        self.names.origin.update(dict.fromkeys(bound_in(body), kernel.name))
        for var, result in zip(s.results, kernel.results, strict=True):
            self.r.vars[var.name] = r.operand(result)
        return body


def used_kernels(body: list[Stmt], kernels: Sequence[Function]) -> list[Function]:
    """The kernels that a body still calls, through others too."""
    by_name = {k.name: k for k in kernels}
    found: dict[str, None] = {}

    def visit(statements: list[Stmt]) -> None:
        for s in walk(statements):
            if isinstance(s, CallKernel) and s.name not in found:
                found[s.name] = None
                visit(by_name[s.name].body)

    visit(body)
    return [k for k in kernels if k.name in found]
