"""complex_sums: reductions of complex numbers by their parts."""

from jitgraph.passes.complex_sums import complex_sums
from tests.checks import SAME, check_pass


def test_a_sum_goes_by_parts() -> None:
    check_pass(
        complex_sums,
        """
        graph @f(%x: c128[n, m]) -> c128[m] where n >= 0, n != 1, m >= 0, m != 1 {
          %y = reduce_sum %x {axes = [0], keepdims = false} : c128[m]
          return %y {mutates = []}
        }""",
        expect="""
        graph @f(%x: c128[n, m]) -> c128[m] where n >= 0, n != 1, m >= 0, m != 1 {
          %re = real %x : f64[n, m]:strided(order=[0, 1], breaks=[1])
          %a = reduce_sum_parts %re {axes = [0], keepdims = false} : f64[m]
          %im = imag %x : f64[n, m]:strided(order=[0, 1], breaks=[1])
          %b = reduce_sum_parts %im {axes = [0], keepdims = false} : f64[m]
          %c = cast %a {dtype = c128} : c128[m]
          %y = with_imag %c, %b : c128[m]
          return %y {mutates = []}
        }""",
    )


def test_running_sums() -> None:
    check_pass(
        complex_sums,
        """
        graph @f(%x: c64[n]) -> c64[n] where n >= 0, n != 1 {
          %y = cumsum %x {axis = 0} : c64[n]
          return %y {mutates = []}
        }""",
        expect="""
        graph @f(%x: c64[n]) -> c64[n] where n >= 0, n != 1 {
          %re = real %x : f32[n]:strided(order=[0], breaks=[0])
          %a = cumsum %re {axis = 0} : f32[n]
          %im = imag %x : f32[n]:strided(order=[0], breaks=[0])
          %b = cumsum %im {axis = 0} : f32[n]
          %c = cast %a {dtype = c64} : c64[n]
          %y = with_imag %c, %b : c64[n]
          return %y {mutates = []}
        }""",
    )


def test_real_sums_stay() -> None:
    check_pass(
        complex_sums,
        """
        graph @f(%x: f64[n]) -> np.f64 where n >= 0, n != 1 {
          %y = reduce_sum %x {axes = [0], keepdims = false} : np.f64
          return %y {mutates = []}
        }""",
        expect=SAME,
    )
