"""Folds by any operator, sums under masks, sums of cast and broadcast arrays: loops, lowered and run in every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowered import Lowered, check_lowered, loops_text

HEAD = "%x: f64[n, m]{layout}"
LAYOUTS: dict[str, Any] = {
    "": lambda x: x,
    ":F": np.asfortranarray,
    ":strided(order=[0, 1], breaks=[0, 1], negative=[1])": lambda x: np.repeat(x, 2, 1)[:, ::-2],
}
BY_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS)


def numbers(*shape: int, dtype: str = "f8") -> np.ndarray:
    rng = np.random.default_rng(5)
    return (rng.standard_normal(shape) * 10.0 ** rng.uniform(-4, 4, shape)).astype(dtype)


@BY_LAYOUT
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", ["sub", "div", "minimum", "copysign"])
def test_fold(function: str, axis: int, layout: str) -> None:
    kept = "m" if axis == 0 else "n"
    x = LAYOUTS[layout](numbers(7, 9))
    check_lowered(
        f"""
        graph @f(%x: f64[n, m]{layout}, %s: np.f64, %k: bool[n, m]) -> (f64[{kept}], f64[{kept}], f64[{kept}]) {{
          %a = fold %x {{function = "{function}", axes = [{axis}], keepdims = false}} : f64[{kept}]
          %b = fold %x, %s {{function = "{function}", axes = [{axis}], keepdims = false}} : f64[{kept}]
          %c = fold %x, %s, %k {{function = "{function}", axes = [{axis}], keepdims = false}} : f64[{kept}]
          return %a, %b, %c {{mutates = []}}
        }}""",
        x,
        np.float64(2.5),
        np.random.default_rng(1).random((7, 9)) < 0.6,
    )


def test_a_fold_of_several_axes_walks_them_in_memory_order() -> None:
    text = """
        graph @f(%x: f64[n, m, k]:strided(order=[2, 0, 1]), %s: np.f64) -> (f64[m], np.f64) {
          %a = fold %x, %s {function = "fmax", axes = [0, 2], keepdims = false} : f64[m]
          %b = fold %x, %s {function = "copysign", axes = [0, 1, 2], keepdims = false} : np.f64
          return %a, %b {mutates = []}
        }"""
    x = numbers(4, 3, 5)
    with pytest.raises(ValueError, match="not reorderable"):  # copysign: the front end never asks for it
        check_lowered(text, x, np.float64(1))
    permuted = np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)
    check_lowered(text.replace("copysign", "fmin"), permuted, np.float64(1))


@BY_LAYOUT
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", ["sub", "maximum", "div"])
def test_scan(function: str, axis: int, layout: str) -> None:
    result = "f64[n, m]:F" if layout == ":F" else "f64[n, m]"
    text = f"""
        graph @f(%x: f64[n, m]{layout}) -> {result} {{
          %a = scan %x {{function = "{function}", axis = {axis}}} : {result}
          return %a {{mutates = []}}
        }}"""
    check_lowered(text, LAYOUTS[layout](numbers(7, 9)))
    if not layout:
        check_lowered(text, np.zeros((0, 9)))
        check_lowered(text, np.zeros((7, 0)))


def test_a_scan_carries_its_first_element_and_has_lanes_along_the_other_axis() -> None:
    found = loops_text("""
        graph @f(%x: f64[4, m]) -> f64[4, m] {
          %a = scan %x {function = "sub", axis = 0} : f64[4, m]
          return %a {mutates = []}
        }""")
    assert (
        """
  for _i2 in range(0, m) vector {
    v3: f64 = load b0[0, _i2]
    store b1[0, _i2] = v3
    for _i1 in range(1, 4) carry (v4: f64 = v3 next v6 -> v7) {
      v5: f64 = load b0[_i1, _i2]
      v6: f64 = sub v4, v5
      store b1[_i1, _i2] = v6
    }
  }
"""
        in found
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", ["add", "mul", "sub", "minimum"])
def test_reduceat(function: str, axis: int) -> None:
    shape = "f64[k, m]" if axis == 0 else "f64[n, k]"
    text = f"""
        graph @f(%x: f64[n, m], %i: i64[k]) -> {shape} {{
          %a = reduceat %x, %i {{function = "{function}", axis = {axis}}} : {shape}
          return %a {{mutates = []}}
        }}"""
    lowered = Lowered(text)
    for starts in ([0, 3, 3, 1, 5], [5, 0]):
        lowered(numbers(6, 7), np.array(starts))
    check_lowered(text.replace("[k", "[1").replace("k]", "1]"), numbers(6, 7), np.array([2]))


@pytest.mark.parametrize("size", [1, 9, 130, 300])
def test_reduceat_adds_stretches_pairwise(size: int) -> None:
    check_lowered(
        """
        graph @f(%x: f32[n], %i: i64[k]) -> f32[k] {
          %a = reduceat %x, %i {function = "add", axis = 0} : f32[k]
          return %a {mutates = []}
        }""",
        numbers(size, dtype="f4"),
        np.array([0, size // 2, size // 3]),
    )


CASES = [
    ("f64[n, m]", "[1]", "f64[n]", lambda x: x),
    ("f64[n, m]", "[0]", "f64[m]", lambda x: x),
    ("f64[n, m]", "[0, 1]", "np.f64", lambda x: x),
    ("f64[n, m]:F", "[1]", "f64[n]", np.asfortranarray),
    ("f64[n, m]:F", "[0, 1]", "np.f64", np.asfortranarray),
]


@pytest.mark.parametrize(("t", "axes", "r", "make"), CASES)
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_sums_under_a_mask(t: str, axes: str, r: str, make: Any, share: float) -> None:
    """The mask lies in C order, whatever the array's order."""
    text = f"""
        graph @f(%x: {t}, %k: bool[n, m], %s: np.f64) -> ({r}, {r}) {{
          %a = reduce_sum_where %x, %k {{axes = {axes}, keepdims = false}} : {r}
          %y = mul %x, %s : {t}
          %b = reduce_sum_where %y, %k, %s {{axes = {axes}, keepdims = false}} : {r}
          return %a, %b {{mutates = []}}
        }}"""
    lowered = Lowered(text)
    for shape in ((5, 40), (40, 5), (3, 300), (0, 4), (4, 0)):
        mask = np.random.default_rng(2).random(shape) < share
        lowered(make(numbers(*shape)), mask, np.float64(1.5), interpreter=shape[1] < 300)


def test_a_masked_sum_looks_for_stretches() -> None:
    found = loops_text("""
        graph @f(%x: f64[n], %k: bool[n]) -> np.f64 {
          %a = reduce_sum_where %x, %k {axes = [0], keepdims = false} : np.f64
          return %a {mutates = []}
        }""")
    assert found.count("pairwise sum") == 2
    assert "for " in found


@pytest.mark.parametrize("dtype", ["i64", "f32"])
@pytest.mark.parametrize(("axes", "r"), [("[0, 1]", "np.f64"), ("[1]", "f64[n]"), ("[0]", "f64[m]")])
def test_cast_operands_are_added_in_chunks_of_the_buffer(dtype: str, axes: str, r: str) -> None:
    x = (numbers(3, 9000) * 100).astype({"i64": "i8", "f32": "f4"}[dtype])
    lowered = Lowered(f"""
        graph @f(%x: {dtype}[n, m], %s: np.f64) -> ({r}, {r}) {{
          %a = reduce_sum %x {{axes = {axes}, keepdims = false, dtype = f64}} : {r}
          %b = reduce_sum %x, %s {{axes = {axes}, keepdims = false, dtype = f64}} : {r}
          return %a, %b {{mutates = []}}
        }}""")
    lowered(x, np.float64(0.1), interpreter=False)
    lowered(x[:, :50].copy(), np.float64(0.1))


@pytest.mark.parametrize(
    ("t", "axes", "r", "make"),
    [
        ("f64[n, m]:strided(order=[1, 0], zero=[0])", "[0]", "f64[m]", lambda: np.broadcast_to(numbers(9), (20, 9))),
        ("f64[n, m]:strided(order=[1, 0], zero=[0])", "[0, 1]", "np.f64", lambda: np.broadcast_to(numbers(9), (20, 9))),
        ("f64[n, m]:strided(order=[0, 1], zero=[1])", "[1]", "f64[n]", lambda: np.broadcast_to(numbers(9)[:, None], (9, 200))),
        (
            "f64[n, m, k]:strided(order=[2, 0, 1], zero=[0, 1])",
            "[0, 2]",
            "f64[m]",
            lambda: np.broadcast_to(numbers(9), (20, 4, 9)),
        ),
    ],
)  # fmt: skip
def test_sums_of_broadcast_arrays(t: str, axes: str, r: str, make: Any) -> None:
    check_lowered(
        f"""
        graph @f(%x: {t}) -> {r} {{
          %a = reduce_sum %x {{axes = {axes}, keepdims = false}} : {r}
          return %a {{mutates = []}}
        }}""",
        make(),
    )


def test_products_from_a_value() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n, m], %s: np.f64) -> (f64[m], f64[n]) {
          %a = reduce_prod %x, %s {axes = [0], keepdims = false} : f64[m]
          %b = reduce_prod %x, %s {axes = [1], keepdims = false} : f64[n]
          return %a, %b {mutates = []}
        }""",
        numbers(5, 7),
        np.float64(1.1),
    )
