"""Golden tests of fusion."""

from __future__ import annotations

import textwrap

import pytest

from jitgraph.ir.graph import Graph
from jitgraph.ir.parser import parse
from jitgraph.passes.fuse import fuse
from jitgraph.passes.fuse_groups import MAX_OPS
from tests.checks import SAME, check_pass


def kernels(graph: Graph) -> list[tuple[list[str], int]]:
    """For each kernel the names of its ops and its rows."""
    return [
        ([inner.name for inner in op.regions[0].ops() if inner.name != "yield"], op.attrs["rows"])
        for op in graph.walk()
        if op.name == "kernel"
    ]


def fused(text: str) -> list[tuple[list[str], int]]:
    return kernels(check_pass(fuse, text))


def test_chain_is_one_kernel_with_its_constants() -> None:
    check_pass(
        fuse,
        """
        graph @f(%x: f64[n], %y: f64[n], %s: np.f64) -> f64[n] {
          %c = constant {value = 0.5} : py_float
          %a = mul %x, %x : f64[n]
          %b = exp %a : f64[n]
          %t = exp %s : np.f64
          %d = mul %y, %c : f64[n]
          %e = add %b, %d : f64[n]
          %g = mul %e, %t : f64[n]
          return %g
        }""",
        """
        graph @f(%x: f64[n], %y: f64[n], %s: np.f64) -> f64[n] {
          %t = exp %s : np.f64
          %g = kernel %x, %y, %t {rows = 0} : f64[n] (%p: f64[n], %q: f64[n], %r: np.f64) {
            %a = mul %p, %p : f64[n]
            %b = exp %a : f64[n]
            %c = constant {value = 0.5} : py_float
            %d = mul %q, %c : f64[n]
            %e = add %b, %d : f64[n]
            %g1 = mul %e, %r : f64[n]
            yield %g1
          }
          return %g
        }""",
    )


def test_scalars_make_no_kernel() -> None:
    check_pass(
        fuse,
        """
        graph @f(%x: f64[], %y: f64[1, 1]) -> (np.f64, f64[1, 1]) {
          %a = exp %x : np.f64
          %b = mul %a, %a : np.f64
          %c = mul %y, %b : f64[1, 1]
          return %b, %c
        }""",
        SAME,
    )


def test_value_with_two_users_is_computed_once() -> None:
    assert fused("""
        graph @f(%x: f64[n], %y: f64[n + 1]) -> (f64[n], f64[n + 1]) {
          %e = exp %x : f64[n]
          %a = neg %e : f64[n]
          %v = view %y {map = (d0: n) -> (d0 + 1)} : f64[n]
          %b = mul %e, %v : f64[n]
          %w = write %b, %y {map = (d0: n) -> (d0)} : f64[n + 1]
          %s = mul %w, %w : f64[n + 1]
          return %a, %s
        }""") == [(["exp", "neg", "view", "mul"], 0), (["write"], 0), (["mul"], 0)]


def test_views_of_arguments_are_index_maps() -> None:
    assert fused("""
        graph @f(%x: f64[n, m]) -> f64[n - 2, m] where n >= 2, n != 1, m >= 0, m != 1 {
          %a = view %x {map = (d0: n - 2, d1: m) -> (d0, d1)} : f64[n - 2, m]
          %b = view %x {map = (d0: n - 2, d1: m) -> (d0 + 2, -d1 + m - 1)} : f64[n - 2, m]:strided(order=[0, 1], breaks=[0], negative=[1])
          %c = add %a, %b : f64[n - 2, m]
          return %c
        }""") == [(["view", "view", "add"], 0)]


def test_value_read_at_other_elements_is_stored() -> None:
    assert fused("""
        graph @f(%x: f64[n]) -> f64[n - 1] where n >= 2, n != 1 {
          %e = exp %x : f64[n]
          %a = view %e {map = (d0: n - 1) -> (d0)} : f64[n - 1]
          %b = view %e {map = (d0: n - 1) -> (d0 + 1)} : f64[n - 1]
          %c = sub %b, %a : f64[n - 1]
          return %c
        }""") == [(["exp"], 0), (["view", "view", "sub"], 0)]


def test_reductions_take_their_producers_and_share_a_domain() -> None:
    check_pass(
        fuse,
        """
        graph @f(%x: f64[n], %y: f64[n]) -> (np.f64, np.f64, np.f64) {
          %a = mul %x, %y : f64[n]
          %s = reduce_sum %a {axes = [0], keepdims = false} : np.f64
          %m = reduce_max %x {axes = [0], keepdims = false} : np.f64
          %b = sub %a, %y : f64[n]
          %t = reduce_sum %b {axes = [0], keepdims = false} : np.f64
          return %s, %m, %t
        }""",
        """
        graph @f(%x: f64[n], %y: f64[n]) -> (np.f64, np.f64, np.f64) {
          %s, %m, %t = kernel %x, %y {rows = 0} : np.f64, np.f64, np.f64 (%p: f64[n], %q: f64[n]) {
            %a = mul %p, %q : f64[n]
            %s1 = reduce_sum %a {axes = [0], keepdims = false} : np.f64
            %m1 = reduce_max %p {axes = [0], keepdims = false} : np.f64
            %b = sub %a, %q : f64[n]
            %t1 = reduce_sum %b {axes = [0], keepdims = false} : np.f64
            yield %s1, %m1, %t1
          }
          return %s, %m, %t
        }""",
    )


def test_reductions_over_other_axes_are_kernels_of_their_own() -> None:
    assert fused("""
        graph @f(%x: f64[n, m]) -> (f64[n], f64[m]) {
          %e = exp %x : f64[n, m]
          %s = reduce_sum %e {axes = [1], keepdims = false} : f64[n]
          %t = reduce_sum %e {axes = [0], keepdims = false} : f64[m]
          return %s, %t
        }""") == [(["exp", "reduce_sum"], 0), (["reduce_sum"], 0)]


SOFTMAX = """
    graph @f(%x: f64[n, m]{layout}) -> f64[n, m]{layout} {
      %m = reduce_max %x {axes = [1], keepdims = true} : f64[n, 1]
      %d = sub %x, %m : f64[n, m]{layout}
      %e = exp %d : f64[n, m]{layout}
      %s = reduce_sum %e {axes = [1], keepdims = true} : f64[n, 1]
      %y = div %e, %s : f64[n, m]{layout}
      return %y
    }"""


def test_softmax_over_rows_is_one_kernel() -> None:
    text = SOFTMAX.replace("{layout}", "")
    assert fused(text) == [(["reduce_max", "sub", "exp", "reduce_sum", "div"], 1)]


def test_softmax_across_rows_of_memory_is_not() -> None:
    text = SOFTMAX.replace("{layout}", ":F")
    assert [rows for _, rows in fused(text)] == [0, 0, 0]


def test_layer_norm_with_gain_and_row_results_is_one_kernel() -> None:
    assert fused("""
        graph @f(%x: f64[k, n, m], %gain: f64[m], %count: py_float) -> (f64[k, n, m], f64[k, n]) {
          %s = reduce_sum %x {axes = [2], keepdims = false} : f64[k, n]
          %mean = div %s, %count : f64[k, n]
          %wide = view %mean {map = (d0: k, d1: n, d2: m) -> (d0, d1)} : f64[k, n, m]:strided(order=[0, 1, 2], zero=[2])
          %d = sub %x, %wide : f64[k, n, m]
          %q = square %d : f64[k, n, m]
          %v = reduce_sum %q {axes = [2], keepdims = true} : f64[k, n, 1]
          %w = sqrt %v : f64[k, n, 1]
          %r = div %d, %w : f64[k, n, m]
          %y = mul %r, %gain : f64[k, n, m]
          return %y, %mean
        }""") == [(["reduce_sum", "div", "view", "sub", "square", "reduce_sum", "sqrt", "div", "mul"], 2)]


def test_whole_reduction_ends_its_kernel() -> None:
    assert fused("""
        graph @f(%x: f64[n], %count: py_float) -> np.f64 {
          %s = reduce_sum %x {axes = [0], keepdims = false} : np.f64
          %mean = div %s, %count : np.f64
          %d = sub %x, %mean : f64[n]
          %q = square %d : f64[n]
          %v = reduce_sum %q {axes = [0], keepdims = false} : np.f64
          %r = div %v, %count : np.f64
          return %r
        }""") == [(["reduce_sum"], 0), (["sub", "square", "reduce_sum"], 0)]


JACOBI = """
    graph @f(%a: f64[n], %b: f64[n]) -> () where n >= 2, n != 1, index i >= 0 {
      %c = constant {value = 0.5} : py_float
      %p, %q = for %a, %b {index = i, lower = 0, step = 1, upper = 3} : f64[n], f64[n] (%u: f64[n], %v: f64[n]) {
        %l = view %u {map = (d0: n - 2) -> (d0)} : f64[n - 2]
        %r = view %u {map = (d0: n - 2) -> (d0 + 2)} : f64[n - 2]
        %s = add %l, %r : f64[n - 2]
        %h = mul %s, %c : f64[n - 2]
        %v2 = write %h, %v {map = (d0: n - 2) -> (d0 + 1)} : f64[n]
        %l2 = view %v2 {map = (d0: n - 2) -> (d0)} : f64[n - 2]
        %r2 = view %v2 {map = (d0: n - 2) -> (d0 + 2)} : f64[n - 2]
        %s2 = add %l2, %r2 : f64[n - 2]
        %h2 = mul %s2, %c : f64[n - 2]
        %u2 = write %h2, %u {map = (d0: n - 2) -> (d0 + 1)} : f64[n]
        yield %u2, %v2
      }
      return %p, %q {mutates = [0, 1]}
    }"""


def test_jacobi_is_one_kernel_a_statement_and_copies_nothing() -> None:
    statement = ["view", "view", "add", "constant", "mul", "write"]
    assert fused(JACOBI) == [(statement, 0), (statement, 0)]
    from jitgraph.passes.bufferize import bufferize

    g = parse(JACOBI)
    fuse(g)
    bufferize(g)
    assert not any(op.name == "copy" for op in g.walk())


def test_update_that_reads_its_neighbours_is_stored_first() -> None:
    assert fused("""
        graph @f(%u: f64[n]) -> () where n >= 3, n != 1 {
          %l = view %u {map = (d0: n - 2) -> (d0)} : f64[n - 2]
          %r = view %u {map = (d0: n - 2) -> (d0 + 2)} : f64[n - 2]
          %s = add %l, %r : f64[n - 2]
          %u2 = write %s, %u {map = (d0: n - 2) -> (d0 + 1)} : f64[n]
          return %u2 {mutates = [0]}
        }""") == [(["view", "view", "add"], 0), (["write"], 0)]


def test_update_of_the_elements_it_reads_is_one_kernel() -> None:
    assert fused("""
        graph @f(%u: f64[n], %y: f64[n]) -> () where n >= 3, n != 1 {
          %l = view %u {map = (d0: n - 2) -> (d0 + 1)} : f64[n - 2]
          %r = view %y {map = (d0: n - 2) -> (d0)} : f64[n - 2]
          %s = add %l, %r : f64[n - 2]
          %u2 = write %s, %u {map = (d0: n - 2) -> (d0 + 1)} : f64[n]
          return %u2 {mutates = [0]}
        }""") == [(["view", "view", "add", "write"], 0)]


def test_shift_within_one_array_reads_a_copy() -> None:
    check_pass(
        fuse,
        """
        graph @f(%u: f64[n]) -> () where n >= 3, n != 1 {
          %l = view %u {map = (d0: n - 1) -> (d0)} : f64[n - 1]
          %u2 = write %l, %u {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
          return %u2 {mutates = [0]}
        }""",
        """
        graph @f(%u: f64[n]) -> () where n >= 3, n != 1 {
          %c = kernel %u {rows = 0} : f64[n - 1] (%p: f64[n]) {
            %l = view %p {map = (d0: n - 1) -> (d0)} : f64[n - 1]
            %l2 = copy %l {order = "C"} : f64[n - 1]
            yield %l2
          }
          %u2 = kernel %c, %u {rows = 0} : f64[n] (%q: f64[n - 1], %r: f64[n]) {
            %w = write %q, %r {map = (d0: n - 1) -> (d0 + 1)} : f64[n]
            yield %w
          }
          return %u2 {mutates = [0]}
        }""",
    )


def test_writes_do_not_pass_checks() -> None:
    text = """
        graph @f(%u: f64[n], %v: f64[n], %ok: py_bool) -> () {
          %a = exp %u : f64[n]
          %u2 = write %a, %u {map = (d0: n) -> (d0)} : f64[n]
          check %ok {order = 1, site = 0 ValueError "no"}
          %b = mul %a, %v : f64[n]
          %v2 = write %b, %v {map = (d0: n) -> (d0)} : f64[n]
          return %u2, %v2 {mutates = [0, 1]}
        }"""
    g = check_pass(fuse, text)
    order = [[inner.name for inner in op.walk() if inner.name in ("write", "check")] for op in g.body.ops()]
    assert [names for names in order if names] == [["write"], ["check"], ["write"]]


def test_reader_of_the_old_version_stays_in_front_of_the_write() -> None:
    text = """
        graph @f(%u: f64[n], %v: f64[n]) -> np.f64 {
          %c = constant {value = 1.0} : py_float
          %a = exp %u : f64[n]
          %u2 = write %c, %u {map = (d0: n) -> (d0)} : f64[n]
          %s = reduce_sum %v {axes = [0], keepdims = false} : np.f64
          %b = mul %a, %s : f64[n]
          %t = reduce_sum %b {axes = [0], keepdims = false} : np.f64
          return %t, %u2 {mutates = [0]}
        }"""
    g = check_pass(fuse, text)
    names = [[inner.name for inner in op.walk()] for op in g.body.ops() if op.name == "kernel"]
    reader = next(i for i, n in enumerate(names) if "exp" in n)
    writer = next(i for i, n in enumerate(names) if "write" in n)
    assert reader <= writer


def test_group_moves_behind_what_its_users_need() -> None:
    assert fused("""
        graph @f(%x: f64[n], %z: f64[m]) -> f64[n] {
          %a = exp %x : f64[n]
          %s = reduce_sum %z {axes = [0], keepdims = false} : np.f64
          %t = sqrt %s : np.f64
          %b = mul %a, %t : f64[n]
          return %b
        }""") == [(["reduce_sum"], 0), (["exp", "mul"], 0)]


def test_no_cycle_through_an_op_that_is_not_fused() -> None:
    g = check_pass(
        fuse,
        """
        graph @f(%x: f64[n], %w: f64[n, n]) -> f64[n] {
          %a = exp %x : f64[n]
          %b = matmul %w, %a : f64[n]
          %c = mul %a, %b : f64[n]
          return %c
        }""",
        evaluate=False,
    )
    assert [names for names, _ in kernels(g)] == [["exp"], ["mul"]]
    assert [op.name for op in g.body.ops()] == ["kernel", "matmul", "kernel", "return"]


def test_fills_and_sequences_cost_no_memory() -> None:
    assert fused("""
        graph @f(%x: f64[n]) -> (f64[n], f64[n]) {
          %zero = constant {value = 0.0} : py_float
          %one = constant {value = 1.0} : py_float
          %i = iota %zero, %one {dtype = f64, size = n} : f64[n]
          %c = constant {value = f64(2.0)} : np.f64
          %two = full %c {dtype = f64, shape = [n]} : f64[n]
          %a = mul %x, %i : f64[n]
          %b = exp %two : f64[n]
          %d = write %b, %two {map = (d0: n) -> (d0)} : f64[n]
          return %a, %d
        }""") == [
        (["constant", "constant", "iota", "mul"], 0),
        (["constant", "full", "exp", "write"], 0),
    ]


def test_gather_is_part_of_a_kernel_but_its_array_is_stored() -> None:
    assert fused("""
        graph @f(%x: f64[n]) -> f64[n] where n >= 2, n != 1 {
          %e = exp %x : f64[n]
          %zero = constant {value = 0} : py_int
          %one = constant {value = 1} : py_int
          %i = iota %zero, %one {dtype = i64, size = n} : i64[n]
          %k = minimum %i, %one : i64[n]
          %t = take %e, %k {axis = 0} : f64[n]
          %y = mul %t, %e : f64[n]
          return %y
        }""") == [(["exp"], 0), (["constant", "constant", "iota", "minimum", "take", "mul"], 0)]


def test_regions_fuse_within_themselves_and_take_constants_along() -> None:
    check_pass(
        fuse,
        """
        graph @f(%x: f64[n], %p: py_bool) -> f64[n] {
          %c = constant {value = 0.5} : py_float
          %r = cond %p : f64[n] () {
            %a = mul %x, %c : f64[n]
            %b = exp %a : f64[n]
            yield %b
          } () {
            %d = neg %x : f64[n]
            yield %d
          }
          return %r
        }""",
        """
        graph @f(%x: f64[n], %p: py_bool) -> f64[n] {
          %r = cond %p : f64[n] () {
            %b = kernel %x {rows = 0} : f64[n] (%y: f64[n]) {
              %c = constant {value = 0.5} : py_float
              %a = mul %y, %c : f64[n]
              %e = exp %a : f64[n]
              yield %e
            }
            yield %b
          } () {
            %d = kernel %x {rows = 0} : f64[n] (%z: f64[n]) {
              %g = neg %z : f64[n]
              yield %g
            }
            yield %d
          }
          return %r
        }""",
    )


def test_kernels_behind_a_bound_size_stay_behind_it() -> None:
    g = check_pass(
        fuse,
        """
        graph @f(%x: f64[n], %y: f64[n]) -> f64[k] where n >= 0, n != 1, value k >= 0 {
          %z = constant {value = 0.0} : py_float
          %m = gt %x, %z : bool[n]
          %e = exp %y : f64[n]
          %bits = cast %m {dtype = i64} : i64[n]
          %count = reduce_sum %bits {axes = [0]} : np.i64
          bind %count {symbol = k}
          %c = compress %e, %m {size = k} : f64[k]
          %one = constant {value = f64(1.0)} : np.f64
          %o = full %one {dtype = f64, shape = [k]} : f64[k]
          %a = exp %o : f64[k]
          %b = add %a, %c : f64[k]
          return %b
        }""",
    )
    names = [op.name for op in g.body.ops()]
    assert names.index("bind") < max(i for i, name in enumerate(names) if name == "kernel")


@pytest.mark.parametrize("count", [MAX_OPS - 1, 2 * MAX_OPS + 10])
def test_kernels_are_bounded(count: int) -> None:
    body = "\n".join(f"  %a{i} = add %a{i - 1}, %x : f64[n]" for i in range(1, count))
    g = parse(f"graph @f(%x: f64[n]) -> f64[n] {{\n  %a0 = exp %x : f64[n]\n{body}\n  return %a{count - 1}\n}}")
    fuse(g)
    assert len(kernels(g)) == -(-count // MAX_OPS)
    assert all(len(names) <= MAX_OPS for names, _ in kernels(g))


def test_text_of_a_kernel_comes_back() -> None:
    g = parse(textwrap.dedent(JACOBI).strip())
    fuse(g)
    assert str(parse(str(g))) == str(g)


def test_no_read_passes_the_check_that_keeps_it_inside() -> None:
    """`%w` shares `%a` with `%y`, and what is between needs `%y`: beside it, `%w` would be in front of the check."""
    text = """
        graph @f(%a: f64[n], %b: f64[k, n], %i: py_int) -> (f64[2*n], f64[n]) where n >= 0, k >= 1, value j >= 0 {{
          bind %i {{symbol = j}}
          %y = neg %a : f64[n]
          %z = concatenate %y, %y {{axis = 0}} : f64[2*n]
          %k = dim {{value = k}} : py_int
          %ok = {condition} : py_bool
          check %ok, %i, %k {{order = 1, site = 0 IndexError "index {{0}} of {{1}}"}}
          %v = view %b {{map = (d0: n) -> ({index}, d0)}} : f64[n]
          %w = add %a, %v : f64[n]
          return %z, %w
        }}"""
    for condition in ("lt %i, %k", "constant {value = false}"):
        assert fused(text.format(index="j", condition=condition)) == [(["neg"], 0), (["view", "add"], 0)]
        assert fused(text.format(index="0", condition=condition)) == [(["neg", "view", "add"], 0)]
