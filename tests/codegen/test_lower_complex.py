"""Complex numbers at the loop level: pairs of real scalars, elements side by side in memory; all levels agree."""

from __future__ import annotations

import numpy as np
import pytest

from jitgraph.codegen.loops import Buffer, Const, For, Load, Store, Var
from jitgraph.codegen.loops_verify import verify
from jitgraph.dtypes import C128, F64
from jitgraph.errors import VerifyError
from jitgraph.ir.dims import symbol
from jitgraph.passes.complex_sums import complex_sums
from tests.loop_programs import program
from tests.lowered import Lowered, graph_of, loops_text

RNG = np.random.default_rng(3)


def numbers(*shape):
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


def test_a_product_is_loops_over_pairs():
    text = loops_text("""
        graph @f(%x: c128[n], %y: c128[n]) -> c128[n] where n >= 0, n != 1 {
          %z = add %x, %y : c128[n]
          return %z {mutates = []}
        }""")
    kernel = text[: text.index("program")]
    assert kernel.count(" = load b") == 2
    assert "v2: f64, v3: f64 = load b0" in kernel
    assert kernel.count("= add ") == 2


@pytest.mark.parametrize("name", ["mul", "div", "sub", "minimum", "fmax"])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_binary_operators(name, dtype):
    lowered = Lowered(f"""
        graph @f(%x: {dtype}[n], %y: {dtype}[n]) -> {dtype}[n] where n >= 0, n != 1 {{
          %z = {name} %x, %y : {dtype}[n]
          return %z {{mutates = []}}
        }}""")
    kind = {"c64": np.complex64, "c128": np.complex128}[dtype]
    for n in (0, 2, 3, 7, 8, 9, 17, 40):
        lowered(numbers(n).astype(kind), numbers(n).astype(kind))
    special = np.array(
        [complex(a, b) for a in (0.0, -0.0, np.inf, np.nan, 2) for b in (-0.0, 1, -np.inf, np.nan)], kind
    )
    lowered(np.repeat(special, 20), np.tile(special, 20))


@pytest.mark.parametrize("layout", ["", ":strided(order=[1, 0])", ":strided(order=[0, 1], breaks=[1], negative=[1])"])
def test_layouts(layout):
    lowered = Lowered(f"""
        graph @f(%x: c128[n, m]{layout}) -> (fresh 0, fresh 1, fresh 2) where n >= 0, n != 1, m >= 0, m != 1 {{
          %y = conj %x : c128[n, m]
          %a = imag %y : f64[n, m]:strided(order=[0, 1], breaks=[1])
          %r = copy %a {{order = "C"}} : f64[n, m]
          %c = cast %x {{dtype = c64}} : c64[n, m]
          %b = isfinite %x : bool[n, m]
          return %r, %c, %b {{mutates = []}}
        }}""")
    x = numbers(5, 12)
    lowered(x if not layout else x[:, ::-1] if "negative" in layout else np.asfortranarray(x))


def test_sums():
    graph = graph_of("""
        graph @f(%x: c128[n]) -> (fresh 0, fresh 1) where n >= 0, n != 1 {
          %s = reduce_sum %x {axes = [0], keepdims = false} : np.c128
          %y = conj %x : c128[n]
          %t = reduce_sum %y {axes = [0], keepdims = false} : np.c128
          return %s, %t {mutates = []}
        }""")
    complex_sums(graph)
    lowered = Lowered(graph)
    for n in (0, 2, 3, 4, 5, 7, 8, 63, 64, 65, 200):
        x = numbers(n)
        found = lowered(x)
        assert found[0] == x.sum()
        assert found[1] == x.conj().sum()


def test_scalars_in_loops_and_branches():
    lowered = Lowered("""
        graph @f(%x: c128[n], %z: py_complex, %k: np.c64) -> (fresh 0, fresh 1, fresh 2) where n >= 0, n != 1, index i >= 0, i <= n - 1 {
          %one = constant {value = complex(0.0, 1.0)} : py_complex
          %start = mul %z, %one : py_complex
          %zero = constant {value = f64(0.0)} : np.f64
          %first = cast %zero {dtype = c128} : np.c128
          %a, %b = for %start, %first {index = "i", lower = 0, step = 1, upper = n} : py_complex, np.c128 (%p: py_complex, %q: np.c128) {
            %e = view %x {map = () -> (i)} : c128[]
            %s = as_kind %e {kind = "np_scalar"} : np.c128
            %t = add %q, %s : np.c128
            %u = mul %p, %one : py_complex
            yield %u, %t
          }
          %re = real %a : py_float
          %limit = constant {value = 0.0} : py_float
          %big = gt %re, %limit : py_bool
          %c = cond %big : np.c64 () {
            %d = mul %k, %k : np.c64
            yield %d
          } () {
            yield %k
          }
          return %a, %b, %c {mutates = []}
        }""")
    for n in (0, 2, 3, 6):
        lowered(numbers(n), 0.5 - 2j, np.complex64(1 + 2j))


def test_writes_in_place():
    lowered = Lowered("""
        graph @f(%x: c128[n], %r: f64[n]) -> (argument 0) where n >= 0, n != 1 {
          %v = with_real %x, %r : c128[n]
          %y = write %v, %x {map = (d0: n) -> (d0)} : c128[n]
          return %y {mutates = [0]}
        }""")
    lowered(numbers(9), RNG.standard_normal(9))


@pytest.mark.parametrize(
    "body",
    [
        [Load(Var("v", C128), Buffer("x", C128, (symbol("n"),), (16,)), (0,))],
        [Load(Var("v", F64), Buffer("x", C128, (symbol("n"),), (16,)), (0,))],
        [Store(Buffer("x", C128, (symbol("n"),), (16,)), (0,), Const(1.0, F64))],
        [For("i", 0, 1, [Store(Buffer("x", C128, (symbol("n"),), (16,)), (0,), Const(1.0, F64), Const(1, C128))])],
    ],
)
def test_elements_have_two_parts(body):
    with pytest.raises(VerifyError, match="invariant 2"):
        verify(program(body, [Buffer("x", C128, (symbol("n"),), (16,))], dims=[("n", 0, 0)]))
