"""Many signatures: machine code goes with the specialisations that leave the cache."""

import gc

import numpy as np

import jitgraph as jg
from jitgraph import compiler
from jitgraph.runtime import engine, linking


def test_code_goes_with_its_specialisation() -> None:
    gc.collect()
    before = len(linking._linked)
    with jg.config.override(entries=4, cache=False):
        f = jg.jit(lambda x, k: x * k + 0.125, static_argnames="k")
        for k in range(14):
            assert f(np.ones(3), k).tolist() == [k + 0.125] * 3
    gc.collect()
    assert f.cache_info().entries == 4
    held = len(linking._linked) - before
    assert 4 <= held <= 6
    f.clear_cache()
    gc.collect()
    assert len(linking._linked) - before <= 2
    assert f(np.ones(3), 5).tolist() == [5.125] * 3
    del f
    gc.collect()
    assert len(linking._linked) - before <= 2


def test_equal_code_is_linked_once_and_stays_while_one_holds_it() -> None:
    code = engine.compile_object("define i32 @entry() {\n  ret i32 41\n}\n")
    first, second = linking.link(code, ("entry",)), linking.link(code, ("entry",))
    assert first is second
    call = linking.function(first.addresses["entry"])
    del first
    gc.collect()
    assert call() == 41
    others = [
        linking.link(engine.compile_object(f"define i32 @entry() {{\n  ret i32 {k}\n}}\n"), ("entry",))
        for k in range(3 * engine.LINKS)
    ]
    assert [linking.function(o.addresses["entry"])() for o in others[::7]] == list(range(0, len(others), 7))
    del others
    gc.collect()
    assert call() == 41
    assert second.addresses


def test_code_kept_for_graphs_that_come_again(monkeypatch) -> None:
    monkeypatch.setattr(compiler, "_CODES_BYTES", 20_000)
    with jg.config.override(cache=False):
        for k in range(12):
            jg.jit(lambda x, k=k: np.tanh(x) + k)(1.5)
        assert sum(len(code) for code, _ in compiler._codes.values()) <= 20_000
        monkeypatch.setattr(compiler, "_CODES_KEPT", 3)
        jg.jit(lambda x: np.tanh(x) - 7)(1.5)
        assert len(compiler._codes) <= 3
