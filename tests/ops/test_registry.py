"""The registry as a whole: it holds the operators of docs/architecture.md, each with what its traits promise."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph.errors import InternalError
from jitgraph.ir.opdef import REGISTRY, OpDef, Trait, register

ROOT = Path(__file__).parents[2]
RECORDS = pytest.mark.parametrize("defn", REGISTRY.values(), ids=lambda d: d.name)


def documented() -> set[str]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text[text.index("## Operators of the graph") : text.index("A `kernel` is a group")]
    prose, table = section.split("| op | operands, attrs | meaning |")
    names = set(
        re.findall(r"[a-z][a-z0-9_]*", " ".join(re.findall(r"`([^`]*)`", re.sub(r"\(one `lower` each\)", "", prose))))
    )
    for row in table.splitlines():
        if row.startswith("| `"):
            names |= set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]*)`", row.split("|")[1]))))
    return names - {"dtype", "kind"}  # attributes of cast and as_kind


def test_the_registry_is_what_the_documentation_lists() -> None:
    assert set(REGISTRY) == documented()


@RECORDS
def test_records_say_what_they_are(defn: OpDef) -> None:
    assert re.fullmatch(r"[^\n]+[.)]", defn.doc), defn.doc
    assert defn.lower is None or defn.has(Trait.ELEMENTWISE)
    if defn.has(Trait.ELEMENTWISE):
        assert defn.has(Trait.PURE)
        assert defn.vjp is not None
    if defn.has(Trait.COMMUTATIVE):
        assert defn.arity == 2
    if defn.has(Trait.ORDERED) or defn.has(Trait.TERMINATOR) or defn.has(Trait.BINDS):
        assert not defn.has(Trait.PURE)
    if defn.linear or defn.jvp is not None:
        assert defn.vjp is not None
    assert all(callable(f) for f in defn.numpy)


@RECORDS
def test_gradient_rules_take_the_operands_and_attributes_of_the_meaning(defn: OpDef) -> None:
    """vjp(b, ct, y, *operands, **attrs) and lower(s, *operands, **attrs) fit the arity and the attributes."""
    attrs: list[str] = []
    if not isinstance(defn.evaluate, np.ufunc) and defn.evaluate is not np.where:
        parameters = list(inspect.signature(defn.evaluate).parameters.values())
        named = parameters[defn.arity :] if defn.arity >= 0 else [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        attrs = [p.name for p in named if p.kind is not p.VAR_KEYWORD]
    operands = (None,) * max(defn.arity, 1 if defn.arity < 0 else 0)
    for rule, extra in ((defn.vjp, 3), (defn.lower, 1), (defn.jvp, 3)):
        if rule is not None:
            inspect.signature(rule).bind(*(None,) * extra, *operands, **dict.fromkeys(attrs))


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match="'add' is declared twice"):
        register(REGISTRY["add"])


@pytest.mark.parametrize("name", ["for", "while", "cond", "kernel", "host_call"])
def test_region_operators_have_no_meaning_without_regions(name: str) -> None:
    with pytest.raises(InternalError, match="is typed and run by its regions"):
        REGISTRY[name].evaluate(1)


def test_importing_the_records_is_quick_and_needs_no_compiler() -> None:
    code = (
        "import sys, itertools, numpy, jitgraph.ir.builder\n"
        "calls = itertools.count()\n"
        "sys.setprofile(lambda *_: next(calls) and None); import jitgraph.ops; sys.setprofile(None)\n"
        "assert not any(m.startswith('llvmlite') for m in sys.modules)\n"
        "print(next(calls))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert int(done.stdout) < 20_000  # half as many; 6 ms with compiled files


def test_bounds_are_those_of_the_vector_library() -> None:
    """A record promises no less than the function it is lowered to keeps, on float32 and float64."""
    from jitgraph.codegen.vecmath.registry import FUNCTIONS
    from jitgraph.ir.scalar_eval import NumpyScalar

    class Recorder(NumpyScalar):
        called = ""

        def call(self, name: str, *args: object) -> object:
            self.called = name
            return super().call(name, *args)

    lowered = 0
    for defn in REGISTRY.values():
        if defn.ulp:
            recorder = Recorder()
            assert defn.lower is not None
            with np.errstate(invalid="ignore"):
                defn.lower(recorder, *(np.full(1, 0.5),) * defn.arity)
            assert max(FUNCTIONS[recorder.called].ulp.values()) <= defn.ulp, defn.name
            lowered += 1
    assert lowered >= 20
