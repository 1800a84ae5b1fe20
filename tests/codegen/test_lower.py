"""Lowering: graphs as loop programs and as machine code, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from tests.lowered import Lowered, check_lowered, loops_text, program_of

RNG = np.random.default_rng(3)


def floats(*shape: int, dtype: str = "f8") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def ints(*shape: int, low: int = -9, high: int = 10, dtype: str = "i8") -> np.ndarray:
    return RNG.integers(low, high, shape).astype(dtype)


# ------------------------------------------------------------------------------------------------------- elementwise


def test_arrays_in_c_order_are_one_flat_loop() -> None:
    assert loops_text(
        """
        graph @f(%x: f64[n, m], %y: f64[n, m]) -> f64[n, m] {
          %k = kernel %x, %y : f64[n, m] (%p: f64[n, m], %q: f64[n, m]) {
            %a = mul %p, %q : f64[n, m]
            %b = add %a, %p : f64[n, m]
            yield %b
          }
          return %k
        }"""
    ) == (
        "# mul, add\n"
        "kernel k0(b0: f64[n, m], b1: f64[n, m], b2: f64[n, m]; n, m) {\n"
        "  for _i2 in range(0, m*n) vector {\n"
        "    v3: f64 = load b0[_i2]\n"
        "    v4: f64 = load b1[_i2]\n"
        "    v5: f64 = mul v3, v4\n"
        "    v6: f64 = add v5, v3\n"
        "    store b2[_i2] = v6\n"
        "  }\n"
        "}\n"
        "\n"
        "program f {\n"
        "  n = size of argument 0, axis 0\n"
        "  m = size of argument 0, axis 1\n"
        "  x: f64[n, m] = argument 0\n"
        "  y: f64[n, m] = argument 1\n"
        "  r2: f64[n, m] = result 0\n"
        "  result 0: [n, m]\n"
        "  call k0(x, y, r2; n, m)\n"
        "}\n"
    )


def test_a_column_is_read_outside_of_the_inner_loop() -> None:
    text = loops_text(
        """
        graph @f(%x: f64[n, m], %y: f64[n, 1]) -> f64[n, m] {
          %e = exp %y : f64[n, 1]
          %k = kernel %x, %y : f64[n, m] (%p: f64[n, m], %q: f64[n, 1]) {
            %r = sqrt %q : f64[n, 1]
            %a = mul %p, %r : f64[n, m]
            yield %a
          }
          return %k
        }"""
    )
    outer = text.index("for _i1 in range(0, n) {")
    inner = text.index("for _i2 in range(0, m) vector {")
    assert outer < text.index("= sqrt ") < inner


def test_scalars_alone_need_no_loop_and_no_kernel() -> None:
    p = program_of(
        """
        graph @f(%x: py_float, %y: np.f32) -> np.f64 {
          %a = mul %x, %x : py_float
          %b = cast %y {dtype = f64} : np.f64
          %c = add %a, %b : np.f64
          return %c
        }"""
    )
    assert not p.kernels


ELEMENTWISE = """
graph @f(%x: {t}, %y: {u}, %s: py_float) -> {r} {{
  %k = kernel %x, %y, %s : {r} (%p: {t}, %q: {u}, %c: py_float) {{
    %a = mul %p, %q : {r}
    %b = add %a, %c : {r}
    %d = maximum %b, %p : {r}
    yield %d
  }}
  return %k
}}"""


@pytest.mark.parametrize(
    ("t", "u", "r", "make"),
    [
        ("f64[n]", "f64[n]", "f64[n]", lambda: (floats(37), floats(37))),
        ("f64[n]", "f64[n]", "f64[n]", lambda: (floats(0), floats(0))),
        ("f64[n, m]", "f64[m]", "f64[n, m]", lambda: (floats(5, 9), floats(9))),
        ("f64[n, m]", "f64[n, 1]", "f64[n, m]", lambda: (floats(5, 9), floats(5, 1))),
        ("f64[n, m]:F", "f64[n, m]:F", "f64[n, m]:F", lambda: (floats(9, 5).T, floats(9, 5).T)),
        ("f64[n, m]", "f64[n, m]:F", "f64[n, m]", lambda: (floats(5, 9), floats(9, 5).T)),
        ("f64[n, m]:strided(order=[0, 1], breaks=[0, 1])", "f64[n, m]", "f64[n, m]", lambda: (floats(10, 27)[::2, ::3], floats(5, 9))),
        ("f64[n, m]:strided(order=[0, 1], negative=[0, 1])", "f64[n, m]", "f64[n, m]", lambda: (floats(5, 9)[::-1, ::-1], floats(5, 9))),
        ("f64[n, m]:strided(order=[0, 1], breaks=[0])", "f64[]", "f64[n, m]", lambda: (floats(5, 12)[:, :9], np.array(2.5))),
        ("f64[n, m]:strided(order=[0, 1], breaks=[], zero=[1])", "f64[n, m]", "f64[n, m]", lambda: (np.broadcast_to(floats(5, 1), (5, 9)), floats(5, 9))),
        ("f64[n, m, k]:strided(order=[2, 0, 1])", "f64[n, m, k]:strided(order=[2, 0, 1])", "f64[n, m, k]:strided(order=[2, 0, 1])",
         lambda: (floats(4, 3, 5).transpose(1, 2, 0), floats(4, 3, 5).transpose(1, 2, 0))),
    ],
)  # fmt: skip
def test_elementwise_layouts(t: str, u: str, r: str, make: Any) -> None:
    (found,) = check_lowered(ELEMENTWISE.format(t=t, u=u, r=r), *make(), 0.5)
    assert found.size == 0 or found.flags.f_contiguous == (":F" in r or found.ndim == 1)


def test_views_are_index_maps() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n, m]) -> f64[m - 2, n] if m >= 2 {
          %k = kernel %x : f64[m - 2, n] (%p: f64[n, m]) {
            %l = view %p {map = (d0: m - 2, d1: n) -> (d1, d0)} : f64[m - 2, n]
            %u = view %p {map = (d0: m - 2, d1: n) -> (n - 1 + -1*d1, d0 + 2)} : f64[m - 2, n]
            %a = sub %l, %u : f64[m - 2, n]
            yield %a
          }
          return %k
        }""",
        floats(5, 9),
    )


@pytest.mark.parametrize(
    ("t", "r", "shape", "array"),
    [
        ("f64[n, m]", "f64[m*n]", "[m*n]", floats(5, 9)),
        ("f64[n, m]:F", "f64[m*n]", "[m*n]", floats(9, 5).T),
        ("f64[n, 6]", "f64[n, 2, 3]", "[n, 2, 3]", floats(5, 6)),
        ("f64[n, 2, 3]", "f64[n, 6]", "[n, 6]", floats(5, 2, 3)),
        ("f64[4, 6]", "f64[8, 3]", "[8, 3]", floats(4, 6)),
        ("f64[4, 6]:F", "f64[8, 3]", "[8, 3]", floats(6, 4).T),
        ("f64[n]", "f64[1, n, 1]", "[1, n, 1]", floats(7)),
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_reshape(t: str, r: str, shape: str, array: np.ndarray, inside: bool) -> None:
    body = f"""
            %b = mul %p, %p : {t}
            %l = reshape %b {{shape = {shape}}} : {r}
            %u = reshape %p {{shape = {shape}}} : {r}
            %a = sub %l, %u : {r}"""
    if inside:
        body = f"%k = kernel %x : {r} (%p: {t}) {{ {body}\n yield %a\n }}\n return %k"
        check_lowered(f"graph @f(%x: {t}) -> {r} {{\n{body}\n}}", array)
    else:
        check_lowered(f"graph @f(%p: {t}) -> {r} {{\n{body}\n return %a\n}}", array)


def test_a_reshape_of_what_is_contiguous_needs_no_division() -> None:
    text = loops_text(
        """
        graph @f(%x: f64[n, m], %y: f64[m*n]) -> f64[m*n] {
          %k = kernel %x, %y : f64[m*n] (%p: f64[n, m], %q: f64[m*n]) {
            %b = mul %p, %p : f64[n, m]
            %l = reshape %b {shape = [m*n]} : f64[m*n]
            %a = sub %l, %q : f64[m*n]
            yield %a
          }
          return %k
        }"""
    )
    assert "floordiv" not in text
    assert "mod" not in text


def test_creation() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n], %s: py_float) -> (f64[n], f64[n, 3], i64[n], f64[3], f64[]) {
          %two = constant {value = 2.0} : py_float
          %i = iota %s, %two {dtype = f64, size = n} : f64[n]
          %a = add %x, %i : f64[n]
          %z = full %s {dtype = f64, shape = [n, 3]} : f64[n, 3]
          %zero = constant {value = 0} : py_int
          %one = constant {value = 1} : py_int
          %j = iota %zero, %one {dtype = i64, size = n} : i64[n]
          %c = constant {value = array f64[3] [1.5, 2.5, -0.0]} : f64[3]
          %d = full %s {dtype = f64, shape = []} : f64[]
          return %a, %z, %j, %c, %d
        }""",
        floats(7),
        0.25,
    )


def test_a_constant_array_is_read_from_its_table() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n, 3]) -> f64[n, 3] {
          %c = constant {value = array f64[3] [0.25, 0.5, 4.0]} : f64[3]
          %a = mul %x, %c : f64[n, 3]
          return %a
        }""",
        floats(5, 3),
    )


def test_sizes_and_scalars_of_arrays() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n, m]) -> (py_int, np.f64, f64[n]) if n >= 2 {
          %d = dim {value = m*n} : py_int
          %e = view %x {map = () -> (n - 1, 0)} : f64[]
          %s = as_kind %e {kind = "np_scalar"} : np.f64
          %l = view %x {map = (d0: n) -> (d0, m - 1)} : f64[n]
          %a = mul %l, %s : f64[n]
          return %d, %s, %a
        }""",
        floats(5, 9),
    )


# --------------------------------------------------------------------------------------------------------- reductions

KINDS = ("sum", "prod", "max", "min")
LAYOUTS: Sequence[tuple[str, Any]] = (
    ("", lambda x: x),
    (":F", lambda x: np.asfortranarray(x)),
    (":strided(order=[0, 1], breaks=[0])", lambda x: np.hstack([x, x])[:, : x.shape[1]]),
    (":strided(order=[0, 1], breaks=[1])", lambda x: np.repeat(x, 2, axis=1)[:, ::2]),
    (":strided(order=[1, 0], negative=[0, 1])", lambda x: np.asfortranarray(x)[::-1, ::-1]),
)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("axes", "rest"), [("[0]", "[m]"), ("[1]", "[n]"), ("[0, 1]", "")])
@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
def test_reductions_have_numpys_bits(dtype: str, kind: str, axes: str, rest: str, layout: int) -> None:
    r = dtype + rest if rest else f"np.{dtype}"
    suffix, arrange = LAYOUTS[layout]
    run = Lowered(
        f"""
        graph @f(%x: {dtype}[n, m]{suffix}) -> {r} {{
          %s = reduce_{kind} %x {{axes = {axes}}} : {r}
          return %s
        }}"""
    )
    for shape in [(3, 5), (3, 411), (411, 3), (37, 411), (411, 37), (2, 9001)]:
        x = arrange(floats(*shape, dtype=dtype.replace("64", "8").replace("32", "4")))
        run(x, interpreter=x.size < 2000)


@pytest.mark.parametrize("kind", [*KINDS, "any", "all"])
@pytest.mark.parametrize("dtype", ["i64", "bool"])
@pytest.mark.parametrize(("axes", "rest"), [("[0]", "[m]"), ("[1]", "[n]"), ("[0, 1]", "")])
def test_reductions_of_integers(dtype: str, kind: str, axes: str, rest: str) -> None:
    t = "bool" if kind in ("any", "all") else dtype
    if dtype == "bool" and kind in ("sum", "prod"):
        pytest.skip("sums of bools are sums of integers")
    if dtype == "i64" and kind in ("any", "all"):
        pytest.skip("any and all take bools")
    r = t + rest if rest else f"np.{t}"
    run = Lowered(
        f"""
        graph @f(%x: {dtype}[n, m]) -> {r} {{
          %s = reduce_{kind} %x {{axes = {axes}}} : {r}
          return %s
        }}"""
    )
    for shape in [(3, 5), (7, 41)]:
        run(ints(*shape, dtype="i8") if dtype == "i64" else ints(*shape, low=0, high=2).astype(bool))


@pytest.mark.parametrize("axes", ["[0]", "[1]", "[2]", "[0, 1]", "[0, 2]", "[1, 2]", "[0, 1, 2]"])
@pytest.mark.parametrize("keepdims", ["true", "false"])
@pytest.mark.parametrize("layout", ["", ":strided(order=[1, 0, 2])", ":strided(order=[2, 1, 0])"])
def test_sums_over_any_axes(axes: str, keepdims: str, layout: str) -> None:
    reduced = eval(axes)
    sizes = ["1" if k in reduced else s for k, s in enumerate("nmk") if keepdims == "true" or k not in reduced]
    order = [k for k in ({"": [0, 1, 2]}.get(layout) or eval(layout[15:-1])) if keepdims == "true" or k not in reduced]
    number = {k: i for i, k in enumerate(sorted(order))}
    order = [number[k] for k in order]
    kept = f":strided(order={order})" if order != sorted(order) and sum(s != "1" for s in sizes) > 1 else ""
    r = f"f64[{', '.join(sizes)}]{kept}" if sizes else "np.f64"
    run = Lowered(
        f"""
        graph @f(%x: f64[n, m, k]{layout}) -> {r} {{
          %s = reduce_sum %x {{axes = {axes}, keepdims = {keepdims}}} : {r}
          return %s
        }}"""
    )
    memory = eval(layout[15:-1]) if layout else [0, 1, 2]
    shape = (11, 13, 17)
    run(floats(*(shape[k] for k in memory)).transpose(np.argsort(memory)))


def test_producers_are_computed_in_the_reduction() -> None:
    source = """
        graph @f(%x: f64[n, m], %r: f64[m]) -> (np.f64, np.f64, f64[n]) {
          %s, %t, %u = kernel %x, %r : np.f64, np.f64, f64[n] (%p: f64[n, m], %q: f64[m]) {
            %a = mul %p, %q : f64[n, m]
            %b = reduce_sum %a {axes = [0, 1]} : np.f64
            %c = reduce_max %a {axes = [0, 1]} : np.f64
            %d = reduce_sum %a {axes = [1]} : f64[n]
            yield %b, %c, %d
          }
          return %s, %t, %u
        }"""
    check_lowered(source, floats(23, 57), floats(57))


def test_sibling_reductions_share_one_pass() -> None:
    text = loops_text(
        """
        graph @f(%x: f64[n]) -> (np.f64, np.f64, np.f64) {
          %s, %t, %u = kernel %x : np.f64, np.f64, np.f64 (%p: f64[n]) {
            %a = mul %p, %p : f64[n]
            %b = reduce_sum %a {axes = [0]} : np.f64
            %c = reduce_max %a {axes = [0]} : np.f64
            %d = reduce_sum %p {axes = [0]} : np.f64
            yield %b, %c, %d
          }
          return %s, %t, %u
        }"""
    )
    assert text.count("reduce ") == 1
    assert text.count("load") == 1


SOFTMAX = """
graph @softmax(%x: {t}[n, m]) -> {t}[n, m] {{
  %k = kernel %x {{rows = 1}} : {t}[n, m] (%p: {t}[n, m]) {{
    %a = reduce_max %p {{axes = [1], keepdims = true}} : {t}[n, 1]
    %b = sub %p, %a : {t}[n, m]
    %e = exp %b : {t}[n, m]
    %s = reduce_sum %e {{axes = [1], keepdims = true}} : {t}[n, 1]
    %r = div %e, %s : {t}[n, m]
    yield %r
  }}
  return %k
}}"""


@pytest.mark.parametrize("t", ["f64", "f32"])
def test_softmax(t: str) -> None:
    run = Lowered(SOFTMAX.format(t=t), ulp=8)
    for shape in [(5, 300), (1000, 3), (3, 0), (0, 4)]:
        if shape[1]:
            run(floats(*shape, dtype="f8" if t == "f64" else "f4"))
    assert len(run.program.kernels) == 1
    assert run.program.scratch_bytes == 0


def test_softmax_has_three_passes_and_no_temporary() -> None:
    assert loops_text(SOFTMAX.format(t="f64")).startswith(
        "# reduce_max, sub, exp, reduce_sum, div\n"
        "kernel k0(b0: f64[n, m], b1: f64[n, m]; n, m) {\n"
        "  for _i1 in range(0, n) {\n"
        "    reduce _i2 in range(m) (v4: f64 = free max of v3) {\n"
        "      v3: f64 = load b0[_i1, _i2]\n"
        "    }\n"
        "    reduce _i5 in range(m) (v9: f64 = pairwise sum of v8, init 0.0) {\n"
        "      v6: f64 = load b0[_i1, _i5]\n"
        "      v7: f64 = sub v6, v4\n"
        "      v8: f64 = call exp v7\n"
        "      store b1[_i1, _i5] = v8\n"
        "    }\n"
        "    for _i10 in range(0, m) vector {\n"
        "      v11: f64 = load b1[_i1, _i10]\n"
        "      v12: f64 = fdiv v11, v9\n"
        "      store b1[_i1, _i10] = v12\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_variance_of_rows() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n, m], %g: f64[m]) -> (f64[n, m], f64[n]) if m >= 2 {
          %k, %l = kernel %x, %g {rows = 1} : f64[n, m], f64[n] (%p: f64[n, m], %w: f64[m]) {
            %c = dim {value = m} : py_int
            %f = cast %c {dtype = f64} : py_float
            %s = reduce_sum %p {axes = [1], keepdims = true} : f64[n, 1]
            %mean = div %s, %f : f64[n, 1]
            %d = sub %p, %mean : f64[n, m]
            %q = mul %d, %d : f64[n, m]
            %v = reduce_sum %q {axes = [1], keepdims = true} : f64[n, 1]
            %var = div %v, %f : f64[n, 1]
            %e = sqrt %var : f64[n, 1]
            %h = div %d, %e : f64[n, m]
            %y = mul %h, %w : f64[n, m]
            %z = reshape %var {shape = [n]} : f64[n]
            yield %y, %z
          }
          return %k, %l
        }""",
        floats(7, 300),
        floats(300),
    )


def test_variance_over_columns_in_one_kernel() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n, m]) -> f64[n, m] {
          %k = kernel %x : f64[n, m] (%p: f64[n, m]) {
            %s = reduce_sum %p {axes = [0], keepdims = true} : f64[1, m]
            %d = sub %p, %s : f64[n, m]
            %e = exp %d : f64[n, m]
            %v = reduce_sum %e {axes = [0], keepdims = true} : f64[1, m]
            %y = div %e, %v : f64[n, m]
            yield %y
          }
          return %k
        }""",
        floats(7, 13),
        ulp=8,
    )


# ------------------------------------------------------------------------------------------------------- other nests


def test_concatenate() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n, m], %y: f64[k, m]) -> f64[k + n, m] {
          %a = mul %x, %x : f64[n, m]
          %c = concatenate %a, %y {axis = 0} : f64[k + n, m]
          return %c
        }""",
        floats(3, 4),
        floats(2, 4),
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("layout", ["", ":F"])
def test_running(axis: int, name: str, layout: str) -> None:
    run = Lowered(
        f"""
        graph @f(%x: f64[n, m]{layout}) -> f64[n, m]{layout} {{
          %c = {name} %x {{axis = {axis}}} : f64[n, m]{layout}
          return %c
        }}"""
    )
    for shape in [(5, 19), (0, 3), (3, 0)]:
        x = floats(*shape)
        x[:1] = -0.0
        (found,) = run(np.asfortranarray(x) if layout else x)
        assert np.array_equal(
            np.signbit(found), np.signbit(np.cumsum(x, axis) if name == "cumsum" else np.cumprod(x, axis))
        )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f64", "i64"])
@pytest.mark.parametrize("layout", ["", ":F"])
def test_positions(axis: int, name: str, dtype: str, layout: str) -> None:
    run = Lowered(
        f"""
        graph @f(%x: {dtype}[n, m]{layout}) -> i64[{"mn"[axis]}] {{
          %c = {name} %x {{axis = {axis}}} : i64[{"mn"[axis]}]
          return %c
        }}"""
    )
    x: np.ndarray = ints(23, 37)
    if dtype == "f64":
        x = x.astype(float)
        x[3, 5] = x[3, 8] = x[9, 5] = np.nan
    run(np.asfortranarray(x) if layout else x)


def test_take() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n, m], %i: i64[k]) -> (f64[k, m], f64[n, k]) {
          %a = take %x, %i {axis = 0} : f64[k, m]
          %b = kernel %x, %i : f64[n, k] (%p: f64[n, m], %j: i64[k]) {
            %c = mul %p, %p : f64[n, m]
            %d = take %c, %j {axis = 1} : f64[n, k]
            yield %d
          }
          return %a, %b
        }""",
        floats(5, 9),
        ints(21, low=0, high=5),
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_add(axis: int) -> None:
    shape = ["n", "m"]
    shape[axis] = "k"
    check_lowered(
        f"""
        graph @f(%x: f64[n, m], %i: i64[k], %v: f64[{", ".join(shape)}]) -> f64[n, m] {{
          %a = scatter_add %x, %i, %v {{axis = {axis}}} : f64[n, m]
          return %a
        }}""",
        floats(5, 9),
        ints(21, low=0, high=5),
        floats(*((21, 9), (5, 21))[axis]),
    )


def test_masks() -> None:
    run = Lowered(
        """
        graph @f(%x: f64[n, m], %v: f64[k]) -> (f64[c], f64[n, m], f64[n, m], i64[c], i64[c]) where n >= 0, m >= 0, k >= 0, value c >= 0 {
          %zero = constant {value = 0.0} : py_float
          %mask = gt %x, %zero : bool[n, m]
          %bits = cast %mask {dtype = i64} : i64[n, m]
          %count = reduce_sum %bits {axes = [0, 1]} : np.i64
          bind %count {symbol = c}
          %a = compress %x, %mask {size = c} : f64[c]
          %b = expand %x, %mask, %zero : f64[n, m]
          %e = expand %x, %mask, %v : f64[n, m]
          %r, %s = nonzero %mask {size = c} : i64[c], i64[c]
          return %a, %b, %e, %r, %s
        }"""
    )
    for shape in [(5, 9), (0, 3), (31, 41)]:
        x = floats(*shape)
        run(x, floats(int((x > 0).sum())))


def test_a_result_of_unknown_size_feeds_kernels() -> None:
    run = Lowered(
        """
        graph @f(%x: f64[n]) -> (f64[c], np.f64) where n >= 0, value c >= 0 {
          %zero = constant {value = 0.0} : py_float
          %mask = gt %x, %zero : bool[n]
          %bits = cast %mask {dtype = i64} : i64[n]
          %count = reduce_sum %bits {axes = [0]} : np.i64
          bind %count {symbol = c}
          %a = compress %x, %mask {size = c} : f64[c]
          %b = sqrt %a : f64[c]
          %s = reduce_sum %b {axes = [0]} : np.f64
          %y = mul %b, %s : f64[c]
          return %y, %s
        }"""
    )
    for n in (0, 1, 1000):
        run(floats(n))


# ------------------------------------------------------------------------------------------------------------- matmul


def matmul(a: str, b: str, r: str) -> str:
    return f"graph @f(%a: {a}, %b: {b}) -> {r} {{\n  %c = matmul %a, %b : {r}\n  return %c\n}}"


@pytest.mark.parametrize("dtype", ["f64", "f32", "i64", "bool"])
def test_matmul(dtype: str) -> None:
    t = {"f64": "f8", "f32": "f4", "i64": "i8", "bool": "?"}[dtype]

    def make(*shape: int) -> np.ndarray:
        return (floats(*shape) * 5).astype(t)

    def check(a: str, b: str, r: str, *args: Any) -> None:
        check_lowered(matmul(*(s.replace("T", dtype) for s in (a, b, r))), *args)

    check("T[n, m]", "T[m, k]", "T[n, k]", make(7, 5), make(5, 9))
    check("T[n, m]", "T[m, k]", "T[n, k]", make(7, 0), make(0, 9))
    check("T[n, m]", "T[m, k]", "T[n, k]", make(0, 3), make(3, 9))
    check("T[n, m]:F", "T[m, k]", "T[n, k]", np.asfortranarray(make(7, 5)), make(5, 9))
    check("T[n, m]", "T[m, k]:F", "T[n, k]", make(7, 5), np.asfortranarray(make(5, 9)))
    check("T[n, m]", "T[m]", "T[n]", make(7, 5), make(5))
    check("T[n, m]", "T[m]", "T[n]", make(7, 0), make(0))
    check("T[n]", "T[n, m]", "T[m]", make(7), make(7, 5))
    check("T[n]", "T[n]", "np.T", make(7), make(7))
    check("T[n]", "T[n]", "np.T", make(0), make(0))
    check("T[n, 1]", "T[1, k]", "T[n, k]", make(7, 1), make(1, 9))
    check("T[1, n]", "T[n, k]", "T[1, k]", make(1, 7), make(7, 9))
    check("T[1, n]", "T[n, 1]", "T[1, 1]", make(1, 7), make(7, 1))
    check("T[b, n, m]", "T[m, k]", "T[b, n, k]", make(3, 7, 5), make(5, 9))
    check("T[b, n, m]", "T[1, m, k]", "T[b, n, k]", make(3, 7, 5), make(1, 5, 9))
    check("T[b, n, m]", "T[m]", "T[b, n]", make(3, 7, 5), make(5))
    rows = ":strided(order=[0, 1], breaks=[0, 1])"
    check(
        f"T[n, m]{rows}",
        "T[m, k]:strided(order=[0, 1], breaks=[0])",
        "T[n, k]",
        make(14, 10)[::2, ::2],
        make(5, 12)[:, :9],
    )
    check(
        "T[n]:strided(order=[0], breaks=[0])",
        "T[n]:strided(order=[0], negative=[0])",
        "np.T",
        make(14)[::2],
        make(7)[::-1],
    )


def test_a_matrix_times_its_own_transpose_is_syrk() -> None:
    source = """
        graph @f(%a: f64[n, m]) -> (f64[n, n], f64[m, m]) {
          %t = view %a {map = (d0: m, d1: n) -> (d1, d0)} : f64[m, n]:F
          %s = matmul %a, %t : f64[n, n]
          %u = matmul %t, %a : f64[m, m]
          return %s, %u
        }"""
    check_lowered(source, floats(7, 5))
    assert loops_text(source).count("cblas_dsyrk") == 2


def test_matmul_where_a_size_may_be_one() -> None:
    run = Lowered(
        """
        graph @f(%a: f64[n, m], %b: f64[m, k]) -> f64[n - 1, k - 1] if n >= 1, k >= 1 {
          %u = view %a {map = (d0: n - 1, d1: m) -> (d0 + 1, d1)} : f64[n - 1, m]
          %v = view %b {map = (d0: m, d1: k - 1) -> (d0, d1)} : f64[m, k - 1]:strided(order=[0, 1], breaks=[0])
          %c = matmul %u, %v : f64[n - 1, k - 1]
          return %c
        }"""
    )
    for n, m, k in [(5, 6, 7), (2, 6, 7), (5, 6, 2), (2, 6, 2), (5, 0, 7)]:
        run(floats(n, m), floats(m, k))


# ------------------------------------------------------------------------------------------------------------ control


def test_a_scalar_loop_carries_registers() -> None:
    source = """
        graph @newton(%a: py_float, %n: py_int) -> py_float where value t, index k {
          bind %n {symbol = t}
          %half = constant {value = 0.5} : py_float
          %r = for %a {index = k, lower = 0, step = 1, upper = t} : py_float (%x: py_float) {
            %q = div %a, %x : py_float
            %s = add %x, %q : py_float
            %y = mul %s, %half : py_float
            yield %y
          }
          return %r
        }"""
    check_lowered(source, 2.0, 6)
    assert not program_of(source).kernels


def test_while() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n], %limit: py_float) -> (f64[n], py_int) {
          %zero = constant {value = 0} : py_int
          %one = constant {value = 1} : py_int
          %half = constant {value = 0.5} : py_float
          %r, %c = while %x, %zero : f64[n], py_int (%v: f64[n], %i: py_int) {
            %s = reduce_max %v {axes = [0]} : np.f64
            %go = gt %s, %limit : np.bool
            yield %go
          } (%u: f64[n], %j: py_int) {
            %y = mul %u, %half : f64[n]
            %k = add %j, %one : py_int
            yield %y, %k
          }
          return %r, %c
        }""",
        floats(11),
        0.01,
    )


def test_branches() -> None:
    run = Lowered(
        """
        graph @f(%x: f64[n], %s: py_float) -> (fresh 0, fresh 1, argument 0) if n >= 2 {
          %zero = constant {value = 0.0} : py_float
          %p = gt %s, %zero : py_bool
          %a, %t, %w = cond %p : f64[n], py_float, f64[n] () {
            %y = mul %x, %s : f64[n]
            %v = view %x {map = (d0: n - 1) -> (d0)} : f64[n - 1]
            %h = write %v, %x {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
            yield %y, %s, %h
          } () {
            %z = full %zero {dtype = f64, shape = [n]} : f64[n]
            %m = neg %s : py_float
            yield %z, %m, %x
          }
          return %a, %t, %w {mutates = [0]}
        }"""
    )
    run(floats(9), 2.0)
    run(floats(9), -2.0)


def test_exchanged_buffers() -> None:
    source = """
        graph @ping_pong(%u: f64[n], %v: f64[n], %t: py_int) -> (f64[n], f64[n]) where n >= 0, n != 1, value t, index k if n >= 2 {
          bind %t {symbol = t}
          %r, %s = for %u, %v {index = k, lower = 0, step = 1, upper = t} : f64[n], f64[n] (%p: f64[n], %q: f64[n]) {
            %q2 = kernel %p, %q : f64[n] (%x: f64[n], %y: f64[n]) {
              %l = view %x {map = (d0: n - 2) -> (d0)} : f64[n - 2]
              %h = view %x {map = (d0: n - 2) -> (d0 + 2)} : f64[n - 2]
              %m = add %l, %h : f64[n - 2]
              %w = write %m, %y {map = (d0: n - 2) -> (d0 + 1)} : f64[n]
              yield %w
            }
            yield %q2, %p
          }
          return %r, %s
        }"""
    run = Lowered(source)
    for turns in (0, 1, 2, 5):
        run(floats(9), floats(9), turns)
    text = loops_text(source)
    body = text[text.index("for k in") :]
    assert body[: body.index("\n  }")].count("call") == 1
    assert "swap" in body


def test_an_array_that_is_new_in_each_turn() -> None:
    run = Lowered(
        """
        graph @f(%u: f64[n], %t: py_int) -> f64[n] where n >= 0, n != 1, value t, index k {
          bind %t {symbol = t}
          %r = for %u {index = k, lower = 0, step = 1, upper = t} : f64[n] (%p: f64[n]) {
            %f = view %p {map = (d0: n) -> (n - 1 + -1*d0)} : f64[n]:strided(order=[0], negative=[0])
            %m = add %p, %f : f64[n]
            yield %m
          }
          return %r
        }"""
    )
    for turns in (0, 1, 2, 5):
        run(floats(9), turns)


def test_checks_raise_at_the_users_line() -> None:
    run = Lowered(
        """
        graph @f(%x: f64[n], %i: py_int) -> np.f64 where n >= 0, value i {
          %n = dim {value = n} : py_int
          %ok = lt %i, %n : py_bool
          check %ok, %i, %n {order = 1, site = 0 IndexError "index {0} is out of bounds for axis 0 with size {1}"}
          bind %i {symbol = i}
          %e = view %x {map = () -> (i)} : f64[]
          %s = as_kind %e {kind = "np_scalar"} : np.f64
          return %s
        }"""
    )
    run(floats(5), 3)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
        run.machine(floats(5), 7)


def test_checks_of_arrays_report_the_first_in_c_order() -> None:
    run = Lowered(
        """
        graph @f(%i: i64[n, m], %k: py_int) -> i64[n, m] {
          %ok = lt %i, %k : bool[n, m]
          check %ok, %i, %k {order = 1, site = 0 IndexError "index {0} is out of bounds, {1}"}
          %a = add %i, %k : i64[n, m]
          return %a
        }"""
    )
    i = ints(5, 40, low=0, high=5)
    run(i, 5)
    i[3, 20], i[3, 38], i[4, 0] = 8, 9, 7
    with pytest.raises(IndexError, match="index 8 is out of bounds, 5"):
        run.machine(i, 5)


def test_host_calls() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n]) -> (f64[n], np.f64) if n >= 2 {
          %a = mul %x, %x : f64[n]
          %v = view %a {map = (d0: n - 1) -> (d0 + 1)} : f64[n - 1]
          %s, %t = host_call %a, %v {order = 1, site = 0 host "", types = [type f64[n], type np.f64]} : f64[n], np.f64
          %y = add %s, %a : f64[n]
          return %y, %t
        }""",
        floats(9),
        hosts={0: lambda a, v: (np.sort(a), v.sum())},
    )


def test_a_chain_of_a_thousand_ops_is_lowered_without_recursion() -> None:
    lines = ["graph @f(%x: f64[n]) -> f64[n] {", "  %k = kernel %x : f64[n] (%v0: f64[n]) {"]
    lines += [f"  %v{i + 1} = mul %v{i}, %v{i // 2} : f64[n]" for i in range(1500)]
    lines += ["  yield %v1500", "}", "return %k", "}"]
    p = program_of("\n".join(lines))
    assert len(p.kernels) == 1


def test_updates_of_a_filled_array_start_from_its_elements() -> None:
    check_lowered(
        """
        graph @f(%i: i64[k], %v: f64[k], %m: bool[n]) -> (f64[n], f64[n]) {
          %one = constant {value = 1.0} : py_float
          %z = full %one {dtype = f64, shape = [n]} : f64[n]
          %a = scatter_add %z, %i, %v {axis = 0} : f64[n]
          %b = expand %z, %m, %one : f64[n]
          return %a, %b
        }""",
        np.array([0, 3, 3, 8]),
        floats(4),
        floats(9) > 0,
    )


def test_updates_one_after_the_other_share_memory() -> None:
    check_lowered(
        """
        graph @f(%x: f64[n], %i: i64[k]) -> np.f64 if n >= 2 {
          %one = constant {value = 1.0} : py_float
          %z = full %one {dtype = f64, shape = [n]} : f64[n]
          %a = write %one, %z {map = () -> (0)} : f64[n]
          %b = scatter_add %a, %i, %one {axis = 0} : f64[n]
          %c = write %one, %b {map = () -> (n - 1)} : f64[n]
          %y = mul %x, %c : f64[n]
          %s = reduce_sum %y {axes = [0]} : np.f64
          return %s
        }""",
        floats(9),
        np.array([0, 3, 3, 8]),
    )


def test_an_argument_without_axes_is_written() -> None:
    check_lowered(
        """
        graph @f(%x: f64[], %t: py_int) -> (argument 0, fresh 0) where value t, index k {
          bind %t {symbol = t}
          %one = constant {value = 1.0} : py_float
          %y = add %x, %one : np.f64
          %w = write %y, %x {map = () -> ()} : f64[]
          %r = for %w {index = k, lower = 0, step = 1, upper = t} : f64[] (%p: f64[]) {
            %d = add %p, %p : np.f64
            %q = write %d, %p {map = () -> ()} : f64[]
            yield %q
          }
          %c = copy %r : f64[]
          return %c, %r {mutates = [0]}
        }""",
        np.array(1.5),
        3,
    )


def test_a_loop_in_a_loop_exchanges_buffers() -> None:
    run = Lowered(
        """
        graph @f(%u: f64[n], %t: py_int) -> f64[n] where n >= 0, n != 1, value t, index k, index l {
          bind %t {symbol = t}
          %r = for %u {index = k, lower = 0, step = 1, upper = t} : f64[n] (%p: f64[n]) {
            %s = for %p {index = l, lower = 0, step = 1, upper = k + 1} : f64[n] (%q: f64[n]) {
              %f = view %q {map = (d0: n) -> (n - 1 + -1*d0)} : f64[n]:strided(order=[0], negative=[0])
              %m = sub %q, %f : f64[n]
              %h = add %m, %q : f64[n]
              yield %h
            }
            %g = view %s {map = (d0: n) -> (n - 1 + -1*d0)} : f64[n]:strided(order=[0], negative=[0])
            %e = add %s, %g : f64[n]
            yield %e
          }
          return %r
        }"""
    )
    for turns in (0, 1, 2, 4):
        run(floats(9), turns)


def test_a_loop_in_a_loop_that_hands_on_the_inner_result() -> None:
    run = Lowered(
        """
        graph @f(%u: f64[n], %t: py_int) -> f64[n] where n >= 0, n != 1, value t, index k, index l {
          bind %t {symbol = t}
          %r = for %u {index = k, lower = 0, step = 1, upper = t} : f64[n] (%p: f64[n]) {
            %s = for %p {index = l, lower = 0, step = 1, upper = 3} : f64[n] (%q: f64[n]) {
              %f = view %q {map = (d0: n) -> (n - 1 + -1*d0)} : f64[n]:strided(order=[0], negative=[0])
              %m = sub %q, %f : f64[n]
              %h = add %m, %q : f64[n]
              yield %h
            }
            yield %s
          }
          return %r
        }"""
    )
    for turns in (0, 1, 2, 4):
        run(floats(9), turns)


def test_nothing_is_read_in_front_of_a_loop_without_a_turn() -> None:
    def empty(a: np.ndarray) -> np.ndarray:
        return a[0:0].ravel()[:1].sum()

    text = jg.jit(empty).inspect_ir(np.ones((3, 4)), stage="loops")
    assert text.index("load b0") > text.index("reduce _")
    assert jg.jit(empty)(np.ones((3, 4))) == 0
