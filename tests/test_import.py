"""What importing loads, and what the package's names are."""

import subprocess
import sys

import jitgraph as jg


def modules_after(code: str) -> set[str]:
    program = f"{code}\nimport sys\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_neither_llvm_nor_the_tracer() -> None:
    loaded = modules_after("import jitgraph as jg\n@jg.jit\ndef f(x):\n    return x + 1")
    ours = {m for m in loaded if m.startswith("jitgraph.")}
    assert not any(m.startswith("llvmlite") for m in loaded)
    assert ours <= {
        "jitgraph.api",
        "jitgraph.config",
        "jitgraph.errors",
        "jitgraph.options",
        "jitgraph.pytree",
        "jitgraph.source",
    }


def test_a_warm_start_loads_no_pass_and_no_code_generator(tmp_path) -> None:
    program = (
        "import numpy as np, jitgraph as jg\n"
        f"jg.config.update(cache_dir={str(tmp_path)!r})\n"
        "jg.jit(lambda x: np.exp(x) + 1.0)(np.ones(3))\n"
    )
    cold, warm = modules_after(program), modules_after(program)
    assert "jitgraph.codegen.llvm" in cold
    assert not any(m.startswith(("jitgraph.passes", "jitgraph.codegen")) for m in warm)


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
