"""The options of `jit`, settings that change calls, and the object that `jit` makes."""

import copy
import inspect
import pickle
import weakref

import numpy as np
import pytest

import jitgraph as jg
from jitgraph.ir.opdef import REGISTRY

X = np.random.default_rng(0).uniform(0.1, 2.0, 1003)


def functions(x):
    return np.exp(x) + np.log(x) * np.sin(x) - np.tanh(x) ** 1.5


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numpy_numerics_has_eager_bits(dtype):
    x = X.astype(dtype)
    f = jg.jit(numerics="numpy")(functions)
    assert f(x).tobytes() == functions(x).tobytes()
    names = {h.name for h in f.explain(x).host_calls}
    assert {"np.exp", "np.log", "np.sin", "np.tanh", "np.pow"} <= names


def test_numpy_numerics_inside_a_loop():
    def f(x, n):
        for _ in range(n):
            x = np.cos(x)
        return x

    assert jg.jit(f, numerics="numpy")(X, 20).tobytes() == f(X, 20).tobytes()


def test_fastmath_contracts():
    def f(x, y):
        return x * y + 1.0

    assert "fma" in jg.jit(f, fastmath=("contract",)).inspect_asm(X, X)
    assert "fma" not in jg.jit(f).inspect_asm(X, X)
    np.testing.assert_allclose(jg.jit(f, fastmath=True)(X, X), f(X, X), rtol=1e-15)


def test_specialize_shape_makes_sizes_literal():
    f = jg.jit(specialize="shape")(lambda x: x * x.shape[0])
    assert "f64[7]" in str(f.graph(np.ones(7)))
    f(np.ones(7))
    f(np.ones(8))
    assert f.cache_info().misses == 2


def test_static_names_are_values():
    @jg.jit(static_argnames="mode")
    def f(x, mode):
        return x + 1 if mode == "add" else x * 3

    assert f(2.0, "add") == 3.0
    assert f(2.0, mode="mul") == 6.0
    assert f.cache_info().misses == 2


def test_check_passes_on_right_code_and_names_the_line_of_wrong_code():
    def f(x):
        y = x * 2.0
        return np.exp(y) - y

    checked = jg.jit(f, check=True)
    np.testing.assert_allclose(checked(X), f(X), rtol=1e-14)

    mul = REGISTRY["mul"]
    right = mul.lower
    object.__setattr__(mul, "lower", lambda s, a, b: s.add(a, b))  # a wrong lowering
    try:
        with jg.config.override(cache=False), pytest.raises(jg.errors.MismatchError) as info:
            jg.jit(lambda x: np.sqrt(x * 3.0), check=True)(X)
    finally:
        object.__setattr__(mul, "lower", right)
    assert str(info.value).startswith("mul of ")
    assert "np.sqrt(x * 3.0)" in str(info.value)


def test_disable_jit_runs_python():
    seen = []

    def f(x):
        seen.append(type(x))
        return x + 1

    with jg.config.override(disable_jit=True):
        jg.jit(f)(X)
    assert seen == [np.ndarray]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"numerics": "fast"}, "numerics: 'fast' is none of"),
        ({"specialize": "all"}, "specialize: 'all' is none of"),
        ({"fallback": "maybe"}, "fallback: 'maybe' is none of"),
        ({"fastmath": ("fast",)}, "fastmath: no flag 'fast'"),
        ({"static_argnames": "z"}, "'z' is no parameter of f"),
    ],
)
def test_bad_options(options, text):
    def f(x):
        return x

    with pytest.raises(ValueError, match=text):
        jg.jit(f, **options)


def test_jit_of_no_function():
    with pytest.raises(TypeError, match="jit takes a function, got int"):
        jg.jit(3)


@jg.jit
def module_level(x, scale: float = 2.0):
    """Scaled."""
    return x * scale


def test_a_jitted_function_is_a_function():
    assert module_level.__name__ == "module_level"
    assert module_level.__doc__ == "Scaled."
    assert list(inspect.signature(module_level).parameters) == ["x", "scale"]
    assert copy.copy(module_level) is module_level
    assert copy.deepcopy(module_level) is module_level
    assert weakref.ref(module_level)() is module_level
    assert repr(module_level) == "<jit module_level>"
    assert module_level.__wrapped__(2.0) == 4.0


def test_pickle_by_reference():
    assert pickle.loads(pickle.dumps(module_level)) is module_level


def test_cache_info_and_clear():
    f = jg.jit(lambda x: x - 1)
    f(X)
    f(X)
    info = f.cache_info()
    assert (info.hits, info.misses, info.entries) == (1, 1, 1)
    assert info._fields == ("hits", "misses", "compiles", "disk_hits", "entries")
    assert f.signatures == ["(float64[1d])"]
    f.clear_cache()
    assert f.cache_info().entries == 0
    f(X)
    assert f.cache_info().misses == 2


def test_entries_are_bounded():
    with jg.config.override(entries=3):
        f = jg.jit(static_argnames="k")(lambda x, k: x + k)
        for k in range(10):
            f(1.0, k)
        assert f.cache_info().entries == 3


def test_dump_writes_numbered_stages(tmp_path):
    with jg.config.override(dump="trace,fuse,loops,llvm", dump_dir=str(tmp_path)):
        jg.jit(lambda x: np.exp(x) * 2 + 1)(X)
    (folder,) = tmp_path.iterdir()
    names = sorted(p.name for p in folder.iterdir())
    assert [n.split("-", 1)[1] for n in names] == ["trace.ir", "fuse.ir", "loops.txt", "llvm.ll"]
    fuse = next(p for p in folder.iterdir() if "fuse" in p.name).read_text()
    assert fuse.startswith("# after fuse (")
    assert "kernel" in fuse


def test_disk_hits_are_counted(tmp_path):
    def make():
        return jg.jit(lambda x: np.exp(x) * 7 - 1)

    with jg.config.override(cache_dir=str(tmp_path)):
        from jitgraph import compiler

        first = make()
        first(X)
        compiler._codes.clear()
        second = make()
        assert second(X).tobytes() == first(X).tobytes()
        assert (first.cache_info().compiles, second.cache_info().disk_hits) == (1, 1)
        for path in tmp_path.rglob("*.jgo"):
            path.write_bytes(b"damaged")
        compiler._codes.clear()
        third = make()
        third(X)
        assert (third.cache_info().compiles, third.cache_info().disk_hits) == (1, 0)


#: Equal to Python, and not the same.
LIKE_ZERO = (0.0, -0.0, complex(0.0, 0.0), complex(-0.0, 0.0), np.float64(-0.0), 0, False)
LIKE_ONE = (1, 1.0, True, np.float32(1.0))


@pytest.mark.parametrize(
    "values", [LIKE_ZERO, LIKE_ONE, (float("nan"), float("nan"), -0.0)], ids=["zero", "one", "nan"]
)
@pytest.mark.parametrize("wrapped", [lambda v: v, lambda v: (v, "a"), lambda v: ((v,),)], ids=["alone", "in", "in in"])
def test_static_values_that_are_equal_and_not_the_same(values, wrapped) -> None:
    def f(x, s):
        while isinstance(s, tuple):
            s = s[0]
        return x * s, s

    x = np.arange(3)
    compiled = jg.jit(f, static_argnames="s")
    for _ in range(3):  # native code serves the third round
        for v in values:
            assert repr(compiled(x, wrapped(v))) == repr(f(x, wrapped(v)))
    assert compiled.cache_info().misses <= len(values)


def test_numbers_that_are_compiled_in_and_equal() -> None:
    def f(x, s):
        return x, str(s), len(f"{s:.1f}")

    compiled = jg.jit(f)
    values = (0.0, -0.0, 0j, -0j, complex(-0.0, 0.0), float("nan"), 1.0)
    for _ in range(3):
        for v in values:
            assert repr(compiled(np.ones(2), v)) == repr(f(np.ones(2), v))
    assert compiled.cache_info().misses <= len(values)
