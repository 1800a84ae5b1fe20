"""What importing loads, and what the package's names are."""

import os
import subprocess
import sys
import textwrap

import jitgraph as jg


def modules_after(code: str, **environment: str) -> set[str]:
    program = f"{code}\nimport sys\nprint(*sys.modules, sep='\\n')"
    env = os.environ | environment
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
    return set(done.stdout.split())


def test_importing_loads_neither_llvm_nor_the_tracer() -> None:
    loaded = modules_after("import jitgraph as jg\n@jg.jit\ndef f(x):\n    return x + 1")
    ours = {m for m in loaded if m.startswith("jitgraph.")}
    assert not any(m.startswith("llvmlite") for m in loaded)
    assert ours <= {
        "jitgraph.api",
        "jitgraph.config",
        "jitgraph.errors",
        "jitgraph.native",
        "jitgraph.native.callable",
        "jitgraph.options",
        "jitgraph.pytree",
        "jitgraph.records",
        "jitgraph.source",
    }


def test_a_warm_start_loads_no_pass_and_no_code_generator(tmp_path, package_copy) -> None:
    program = (
        "import numpy as np, jitgraph as jg\n"
        f"jg.config.update(cache_dir={str(tmp_path)!r})\n"
        "jg.jit(lambda x: np.exp(x) + 1.0)(np.ones(3))\n"
    )
    cold, warm = (modules_after(program, PYTHONPATH=str(package_copy)) for _ in range(2))
    assert "jitgraph.codegen.llvm" in cold
    assert not any(m.startswith(("jitgraph.passes", "jitgraph.codegen")) for m in warm)


def test_a_first_call_loads_what_numpy_loads_and_what_it_needs(tmp_path) -> None:
    program = (
        "import numpy as np, jitgraph as jg\n"
        f"jg.config.update(cache_dir={str(tmp_path)!r})\n"
        "jg.jit(lambda x: np.exp(x) + 1.0)(np.ones(3))\n"
    )
    for loaded in modules_after(program), modules_after(program):
        loaded -= modules_after("import numpy")
        assert not loaded & {"numpy.random", "numpy.fft", "logging", "hashlib", "platformdirs", "sysconfig"}
        assert not loaded & OF_LOOPS


#: What functions without branches and loops do without.
OF_LOOPS = {
    "jitgraph.control",
    *[
        f"jitgraph.tracing.{name}"
        for name in (
            "branches",
            "carried",
            "carried_names",
            "kind_uses",
            "left_behind",
            "loop_regions",
            "same_arrays",
            "structured",
            "turn_ends",
            "turn_starts",
        )
    ],
}


def test_a_second_call_loads_no_dispatcher_before_it_is_due(tmp_path, package_copy) -> None:
    program = (
        "import numpy as np, jitgraph as jg\n"
        f"jg.config.update(cache_dir={str(tmp_path)!r})\n"
        "f = jg.jit(lambda x: np.exp(x) + 1.0)\n"
        "for _ in range({calls}): f(np.ones(3))\n"
    )
    own = {"jitgraph.native.function", "jitgraph.native.entries"}
    few, many, again = (modules_after(program.format(calls=n), PYTHONPATH=str(package_copy)) for n in (5, 300, 2))
    assert not few & (own | {"sysconfig"})
    assert own <= many
    assert own <= again, "the code is on disk"


def test_branches_and_loops_are_loaded_with_the_first_one(tmp_path) -> None:
    program = """
        import sys
        import numpy as np, jitgraph as jg
        jg.jit(lambda x: x + 1)(np.ones(3))
        assert "jitgraph.tracing.branches" not in sys.modules

        @jg.jit
        def branches(x):
            if x.sum() > 2.0:
                return x - 1.0
            return x + 1.0

        assert (branches(np.ones(3)) == 0.0).all() and (branches(np.zeros(3)) == 1.0).all()
        assert "jitgraph.tracing.branches" in sys.modules and "jitgraph.tracing.loop_regions" not in sys.modules

        @jg.jit
        def picks(x):
            return jg.cond(x[0] > 0, lambda v: v * 2.0, lambda v: v - 1.0, x)

        assert "jitgraph.control" not in sys.modules
        assert (picks(np.ones(3)) == 2.0).all() and (picks(np.zeros(3)) == -1.0).all()
        assert len(picks.signatures) == 1, "one machine code for both ways"

        @jg.jit
        def loops(x, n):
            k = 0
            while x.sum() < n:
                x = x + 1.0
                k += 1
            for i in range(len(x)):
                x[i] = x[i] + i
            return x, k

        x, k = loops(np.zeros(3), 6.0)
        assert (x == [2.0, 3.0, 4.0]).all() and k == 2
        assert "jitgraph.tracing.loop_regions" in sys.modules
    """
    path = tmp_path / "late.py"  # functions need a source
    path.write_text(textwrap.dedent(program))
    modules_after(f"import runpy\nrunpy.run_path({str(path)!r})")


def test_what_imports_make_is_old_at_once_and_what_is_frozen_stays() -> None:
    program = """
        import gc
        import numpy as np, jitgraph as jg
        {freeze}
        frozen = gc.get_freeze_count() > 1000
        runs = []
        gc.callbacks.append(lambda phase, info: runs.append(info["generation"]) if phase == "start" else None)
        kept = [[] for _ in range(5)]
        jg.jit(lambda x: x + 1)(np.ones(3))
        assert gc.isenabled() and (gc.get_freeze_count() > 1000) == frozen == {frozen}
        if not frozen:
            assert max(runs, default=0) == 0, runs
            assert len(gc.get_objects(generation=2)) > 30_000 > 10 * len(gc.get_objects(generation=0))
    """
    for freeze, frozen in (("", False), ("gc.freeze()", True)):
        modules_after(textwrap.dedent(program.format(freeze=freeze, frozen=frozen)))


def test_modules_that_are_imported_behind_the_first_call_have_their_standins(tmp_path) -> None:
    program = """
        import numpy as np, jitgraph as jg
        jg.jit(lambda x: x + 1)(np.ones(3))
        import random, logging

        @jg.jit
        def draws(x, own):
            made = np.random.default_rng(7)
            return x + own.normal(), made.random(), random.random(), np.fft.fft(x)

        @jg.jit
        def logs(x):
            logging.warning("sum %s", x.sum())
            return x

        def run(f):
            random.seed(3)
            return [f(np.arange(4.0), own) for own in [np.random.default_rng(1)] * 3]

        for a, b in zip(run(draws), run(draws.__wrapped__)):
            assert all(np.allclose(x, y) for x, y in zip(a, b)), (a, b)
        assert len({float(r[2]) for r in run(draws)}) == 3
        seen = []
        handler = logging.Handler()
        handler.emit = lambda record: seen.append(record.getMessage())
        logging.getLogger().addHandler(handler)
        logs(np.ones(3)), logs(np.ones(5))
        assert seen == ["sum 3.0", "sum 5.0"], seen
    """
    path = tmp_path / "late.py"  # functions need a source
    path.write_text(textwrap.dedent(program))
    modules_after(f"import runpy\nrunpy.run_path({str(path)!r})")


def test_all_is_what_is_public() -> None:
    assert jg.__all__ == sorted(set(jg.__all__))
    for name in jg.__all__:
        assert getattr(jg, name) is not None or name == "newaxis"
    assert {"jit", "grad", "Tensor", "sin", "matmul", "erf", "no_grad", "config", "errors", "host"} <= set(jg.__all__)
    assert set(jg.__all__) <= set(dir(jg))


def test_unknown_names_raise() -> None:
    try:
        jg.no_such_name  # noqa: B018
    except AttributeError as e:
        assert "no_such_name" in str(e)
    else:
        raise AssertionError("no error")
