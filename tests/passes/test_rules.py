"""Each rewrite rule fires once here, and gives what its law says."""

from __future__ import annotations

import textwrap

import pytest

from jitgraph.ir.parser import parse
from jitgraph.ir.rewrite import RULE_SETS, apply_rules
from jitgraph.passes import canonicalise, simplify
from tests.checks import SAME, check_pass, structure

#: Rule: (types of the operands x, y, ..., body, body afterwards). `=` in a body gives %r, which is returned negated or
#: as it is, so that views and arguments need no copy.
CASES: dict[str, list[tuple[str, str, str]]] = {
    # views
    "identity_view": [
        ("f64[n]", "%v = view %x {map = (d0: n) -> (d0)} : f64[n]\n%r = exp %v : f64[n]", "%r = exp %x : f64[n]"),
    ],
    "view_of_view": [
        (
            "f64[n, m]",
            "%v = view %x {map = (d0: m, d1: n) -> (d1, d0)} : f64[m, n]:F\n"
            "%w = view %v {map = (d0: m - 1, d1: n) -> (d0 + 1, d1)} : f64[m - 1, n]:strided(order=[1, 0], breaks=[0])\n"
            "%r = exp %w : f64[m - 1, n]:F",
            "%w = view %x {map = (d0: m - 1, d1: n) -> (d1, d0 + 1)} : f64[m - 1, n]:strided(order=[1, 0], breaks=[0])\n"
            "%r = exp %w : f64[m - 1, n]:F",
        ),
        (
            "f64[n]",
            "%v = view %x {map = (d0: n) -> (-d0 + n - 1)} : f64[n]:strided(order=[0], negative=[0])\n"
            "%w = view %v {map = (d0: n) -> (-d0 + n - 1)} : f64[n]\n%r = exp %w : f64[n]",
            "%r = exp %x : f64[n]",
        ),
    ],
    "view_of_written": [
        (
            "f64[n], f64[n + 1]",
            "%a = write %x, %y {map = (d0: n) -> (d0 + 1)} : f64[n + 1]\n"
            "%v = view %a {map = (d0: n) -> (d0 + 1)} : f64[n]\n%r = exp %v : f64[n]",
            "%r = exp %x : f64[n]",
        ),
    ],
    "view_of_full": [
        (
            "f64[n], f64[]",
            "%a = full %y {dtype = f64, shape = [n + 2]} : f64[n + 2]\n"
            "%v = view %a {map = (d0: n) -> (d0 + 1)} : f64[n]\n%r = mul %x, %v : f64[n]",
            "%a = full %y {dtype = f64, shape = [n]} : f64[n]\n%r = mul %x, %a : f64[n]",
        ),
    ],
    "reshape_identity": [
        ("f64[n]", "%v = reshape %x {shape = [n]} : f64[n]\n%r = exp %v : f64[n]", "%r = exp %x : f64[n]"),
    ],
    "reshape_of_reshape": [
        (
            "f64[n, m]",
            "%v = reshape %x {shape = [m*n]} : f64[m*n]\n%w = reshape %v {shape = [m, n]} : f64[m, n]\n%r = exp %w : f64[m, n]",
            "%w = reshape %x {shape = [m, n]} : f64[m, n]\n%r = exp %w : f64[m, n]",
        ),
    ],
    "reshape_of_units": [
        (
            "f64[n, 1]",
            "%v = reshape %x {shape = [1, n]} : f64[1, n]\n%r = exp %v : f64[1, n]",
            "%v = view %x {map = (d0: 1, d1: n) -> (d1, 0)} : f64[1, n]\n%r = exp %v : f64[1, n]",
        ),
    ],
    # writes
    "write_through_view": [
        (
            "f64[n], f64[n + 3]",
            "%v = view %y {map = (d0: n + 1) -> (d0 + 1)} : f64[n + 1]\n"
            "%w = write %x, %v {map = (d0: n) -> (d0 + 1)} : f64[n + 1]\n"
            "%r = write %w, %y {map = (d0: n + 1) -> (d0 + 1)} : f64[n + 3]",
            "%r = write %x, %y {map = (d0: n) -> (d0 + 2)} : f64[n + 3]",
        ),
    ],
    "write_of_whole": [
        (
            "f64[n], np.f64",
            "%z = full %y {dtype = f64, shape = [n]} : f64[n]\n%e = exp %x : f64[n]\n"
            "%w = write %e, %z {map = (d0: n) -> (d0)} : f64[n]\n%r = exp %w : f64[n]",
            "%e = exp %x : f64[n]\n%r = exp %e : f64[n]",
        ),
        (
            "f64[n], np.f64",
            "%z = full %y {dtype = f64, shape = [n]} : f64[n]\n"
            "%w = write %x, %z {map = (d0: n) -> (d0)} : f64[n]\n%r = write %y, %w {map = () -> (0)} : f64[n]",
            '%w = copy %x {order = "C"} : f64[n]\n%r = write %y, %w {map = () -> (0)} : f64[n]',
        ),
    ],
    "write_of_own_elements": [
        (
            "f64[n]",
            "%v = view %x {map = (d0: n - 1) -> (d0 + 1)} : f64[n - 1]\n"
            "%w = write %v, %x {map = (d0: n - 1) -> (d0 + 1)} : f64[n]\n%r = exp %w : f64[n]",
            "%r = exp %x : f64[n]",
        ),
    ],
    "write_of_own_version": [
        (
            "f64[n], i64[m], f64[m]",
            "%a = scatter_add %x, %y, %z {axis = 0} : f64[n]\n"
            "%w = write %a, %x {map = (d0: n) -> (d0)} : f64[n]\n%r = exp %w : f64[n]",
            "%a = scatter_add %x, %y, %z {axis = 0} : f64[n]\n%r = exp %a : f64[n]",
        ),
    ],
    "copy_of_fresh": [
        ("f64[n]", '%e = exp %x : f64[n]\n%r = copy %e {order = "K"} : f64[n]', "%r = exp %x : f64[n]"),
    ],
    "copy_only_read": [
        (
            "f64[n]",
            '%e = exp %x : f64[n]\n%c = copy %e {order = "K"} : f64[n]\n%d = neg %c : f64[n]\n%r = mul %d, %e : f64[n]',
            "%e = exp %x : f64[n]\n%d = neg %e : f64[n]\n%r = mul %d, %e : f64[n]",
        ),
    ],
    # casts and kinds
    "cast_to_same": [("f64[n]", "%c = cast %x {dtype = f64} : f64[n]\n%r = exp %c : f64[n]", "%r = exp %x : f64[n]")],
    "cast_of_cast": [
        (
            "i32[n]",
            "%a = cast %x {dtype = f64} : f64[n]\n%r = cast %a {dtype = f32} : f32[n]",
            "%r = cast %x {dtype = f32} : f32[n]",
        ),
        (
            "u8[n]",
            "%a = cast %x {dtype = i32} : i32[n]\n%b = cast %a {dtype = u8} : u8[n]\n%r = bit_not %b : u8[n]",
            "%r = bit_not %x : u8[n]",
        ),
        (
            "py_bool",
            "%a = cast %x {dtype = i8} : np.i8\n%b = cast %a {dtype = f64} : np.f64\n%r = exp %b : np.f64",
            '%a = as_kind %x {kind = "np_scalar"} : np.bool\n%b = cast %a {dtype = f64} : np.f64\n%r = exp %b : np.f64',
        ),
    ],
    "as_kind_of_same": [
        (
            "f64[]",
            '%a = as_kind %x {kind = "np_scalar"} : np.f64\n%r = as_kind %a {kind = "py_float"} : py_float',
            '%r = as_kind %x {kind = "py_float"} : py_float',
        ),
    ],
    "neg_of_neg": [("f64[n]", "%a = neg %x : f64[n]\n%b = neg %a : f64[n]\n%r = exp %b : f64[n]", "%r = exp %x : f64[n]")],
    "broadcast_operand": [
        (
            "f64[n, m], f64[m]",
            "%b = view %y {map = (d0: n, d1: m) -> (d1)} : f64[n, m]:strided(order=[1, 0], zero=[0])\n%r = mul %x, %b : f64[n, m]",
            "%r = mul %x, %y : f64[n, m]",
        ),
    ],
    # neutral elements
    "add_zero": [
        ("i64[n]", "%c = constant {value = 0} : py_int\n%a = add %x, %c : i64[n]\n%r = neg %a : i64[n]", "%r = neg %x : i64[n]"),
        ("f64[n]", "%c = constant {value = -0.0} : py_float\n%a = add %x, %c : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]"),
    ],
    "sub_zero": [("f64[n]", "%c = constant {value = 0.0} : py_float\n%a = sub %x, %c : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]")],
    "mul_one": [
        ("f64[n]", "%c = constant {value = 1.0} : py_float\n%a = mul %x, %c : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]"),
        ("f64[n]", "%c = constant {value = 1.0} : py_float\n%r = mul %x, %c : f64[n]", '%r = copy %x {order = "C"} : f64[n]'),
        (
            "f64[]",
            "%c = constant {value = 1.0} : py_float\n%a = mul %x, %c : np.f64\n%r = neg %a : np.f64",
            '%a = as_kind %x {kind = "np_scalar"} : np.f64\n%r = neg %a : np.f64',
        ),
    ],
    "div_one": [("f64[n]", "%c = constant {value = 1.0} : py_float\n%a = div %x, %c : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]")],
    "floordiv_one": [
        ("i64[n]", "%c = constant {value = 1} : py_int\n%a = floordiv %x, %c : i64[n]\n%r = neg %a : i64[n]", "%r = neg %x : i64[n]"),
    ],
    "mul_zero": [
        (
            "i64[n]",
            "%c = constant {value = 0} : py_int\n%a = mul %x, %c : i64[n]\n%r = neg %a : i64[n]",
            "%c = constant {value = i64(0)} : np.i64\n%a = full %c {dtype = i64, shape = [n]} : i64[n]\n%r = neg %a : i64[n]",
        ),
        (
            "i64[]",
            "%c = constant {value = 0} : py_int\n%a = mul %x, %c : np.i64\n%r = neg %a : np.i64",
            "%a = constant {value = i64(0)} : np.i64\n%r = neg %a : np.i64",
        ),
    ],
    "mod_one": [
        (
            "i64[]",
            "%c = constant {value = 1} : py_int\n%a = mod %x, %c : np.i64\n%r = neg %a : np.i64",
            "%a = constant {value = i64(0)} : np.i64\n%r = neg %a : np.i64",
        ),
    ],
    "mul_minus_one": [
        ("f64[n]", "%c = constant {value = -1.0} : py_float\n%r = mul %x, %c : f64[n]", "%r = neg %x : f64[n]"),
    ],
    "div_power_of_two": [
        (
            "f32[n]",
            "%c = constant {value = f32(8.0)} : np.f32\n%r = div %x, %c : f32[n]",
            "%c = constant {value = f32(0.125)} : np.f32\n%r = mul %x, %c : f32[n]",
        ),
    ],
    "floor_power_of_two": [
        (
            "i64[n]",
            "%c = constant {value = 8} : py_int\n%r = floordiv %x, %c : i64[n]",
            "%c = constant {value = 3} : py_int\n%r = shift_right %x, %c : i64[n]",
        ),
        (
            "u8[n]",
            "%c = constant {value = u8(4)} : np.u8\n%r = mod %x, %c : u8[n]",
            "%c = constant {value = u8(3)} : np.u8\n%r = bit_and %x, %c : u8[n]",
        ),
    ],
    # signs
    "sub_neg": [("f64[n], f64[n]", "%a = neg %y : f64[n]\n%r = sub %x, %a : f64[n]", "%r = add %x, %y : f64[n]")],
    "add_neg": [
        ("f64[n], f64[n]", "%a = neg %y : f64[n]\n%r = add %x, %a : f64[n]", "%r = sub %x, %y : f64[n]"),
        ("f64[n], f64[n]", "%a = neg %x : f64[n]\n%r = add %a, %y : f64[n]", "%r = sub %y, %x : f64[n]"),
    ],
    "signs_cancel": [
        ("f64[n], f64[n]", "%a = neg %x : f64[n]\n%b = neg %y : f64[n]\n%r = div %a, %b : f64[n]", "%r = div %x, %y : f64[n]"),
    ],
    "abs_of_signed": [
        ("f64[n]", "%a = neg %x : f64[n]\n%r = abs %a : f64[n]", "%r = abs %x : f64[n]"),
        ("f64[n]", "%a = abs %x : f64[n]\n%r = abs %a : f64[n]", "%r = abs %x : f64[n]"),
    ],
    "square_of_signed": [("f64[n]", "%a = neg %x : f64[n]\n%r = square %a : f64[n]", "%r = square %x : f64[n]")],
    # products and powers
    "mul_self": [("f64[n]", "%r = mul %x, %x : f64[n]", "%r = square %x : f64[n]")],
    "pow_special": [
        ("f64[n]", "%c = constant {value = 2.0} : py_float\n%r = pow %x, %c : f64[n]", "%r = square %x : f64[n]"),
        ("f64[n]", "%c = constant {value = 0.5} : py_float\n%r = pow %x, %c : f64[n]", "%r = sqrt %x : f64[n]"),
        ("f64[n]", "%c = constant {value = -1.0} : py_float\n%r = pow %x, %c : f64[n]", "%r = reciprocal %x : f64[n]"),
        ("i64[n]", "%c = constant {value = 2} : py_int\n%r = pow %x, %c : i64[n]", "%r = square %x : i64[n]"),
    ],
    "pow_one": [("f64[n]", "%c = constant {value = 1.0} : py_float\n%a = pow %x, %c : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]")],
    "pow_zero": [
        (
            "f64[]",
            "%c = constant {value = 0.0} : py_float\n%r = pow %x, %c : np.f64",
            "%r = constant {value = f64(1.0)} : np.f64",
        ),
    ],
    "pow_three": [
        ("i64[n]", "%c = constant {value = 3} : py_int\n%r = pow %x, %c : i64[n]", "%s = square %x : i64[n]\n%r = mul %s, %x : i64[n]"),
    ],
    # an operand with itself
    "difference_of_self": [
        ("i64[]", "%r = sub %x, %x : np.i64", "%r = constant {value = i64(0)} : np.i64"),
    ],
    "idempotent": [("f64[n]", "%a = maximum %x, %x : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]")],
    "compare_self": [
        ("i64[]", "%r = le %x, %x : np.bool", "%r = constant {value = bool(true)} : np.bool"),
        ("i64[]", "%r = ne %x, %x : np.bool", "%r = constant {value = bool(false)} : np.bool"),
    ],
    "nan_test": [("f64[n]", "%r = ne %x, %x : bool[n]", "%r = isnan %x : bool[n]")],
    "absorbed": [
        ("f64[n], f64[n]", "%a = minimum %x, %y : f64[n]\n%r = minimum %a, %y : f64[n]", "%r = minimum %x, %y : f64[n]"),
    ],
    # bits and logic
    "bits_with_constant": [
        ("u8[n]", "%c = constant {value = u8(255)} : np.u8\n%a = bit_and %x, %c : u8[n]\n%r = bit_not %a : u8[n]", "%r = bit_not %x : u8[n]"),
        ("u8[]", "%c = constant {value = u8(0)} : np.u8\n%r = bit_and %x, %c : np.u8", "%r = constant {value = u8(0)} : np.u8"),
        ("bool[]", "%c = constant {value = true} : py_bool\n%r = bit_or %x, %c : np.bool", "%r = constant {value = bool(true)} : np.bool"),
    ],
    "logic_with_constant": [
        (
            "bool[n], bool[n]",
            "%c = constant {value = true} : py_bool\n%a = logical_and %x, %c : bool[n]\n%r = logical_or %a, %y : bool[n]",
            "%r = logical_or %x, %y : bool[n]",
        ),
        ("bool[]", "%c = constant {value = true} : py_bool\n%r = logical_or %x, %c : np.bool", "%r = constant {value = bool(true)} : np.bool"),
    ],
    "not_not": [
        ("i64[n]", "%a = bit_not %x : i64[n]\n%b = bit_not %a : i64[n]\n%r = neg %b : i64[n]", "%r = neg %x : i64[n]"),
    ],
    "not_comparison": [
        ("f64[n], f64[n]", "%a = eq %x, %y : bool[n]\n%r = logical_not %a : bool[n]", "%r = ne %x, %y : bool[n]"),
        ("i64[n], i64[n]", "%a = lt %x, %y : bool[n]\n%r = logical_not %a : bool[n]", "%r = ge %x, %y : bool[n]"),
    ],
    "shift_by_zero": [
        ("i64[n]", "%c = constant {value = 0} : py_int\n%a = shift_left %x, %c : i64[n]\n%r = neg %a : i64[n]", "%r = neg %x : i64[n]"),
    ],
    # selection
    "where_same": [
        ("f64[n], bool[n]", "%a = where %y, %x, %x : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]"),
    ],
    "where_known": [
        (
            "f64[n], f64[n]",
            "%c = constant {value = false} : py_bool\n%a = where %c, %x, %y : f64[n]\n%r = exp %a : f64[n]",
            "%r = exp %y : f64[n]",
        ),
    ],
    "where_not": [
        (
            "f64[n], f64[n], bool[n]",
            "%c = logical_not %z : bool[n]\n%r = where %c, %x, %y : f64[n]",
            "%r = where %z, %y, %x : f64[n]",
        ),
    ],
    "where_of_where": [
        (
            "f64[n], f64[n], bool[n], f64[n]",
            "%a = where %z, %x, %y : f64[n]\n%r = where %z, %a, %u : f64[n]",
            "%r = where %z, %x, %u : f64[n]",
        ),
        (
            "f64[n], f64[n], bool[n], f64[n]",
            "%a = where %z, %x, %y : f64[n]\n%r = where %z, %u, %a : f64[n]",
            "%r = where %z, %u, %y : f64[n]",
        ),
    ],
    "where_of_bools": [
        (
            "bool[n]",
            "%t = constant {value = true} : py_bool\n%e = constant {value = false} : py_bool\n"
            "%a = where %x, %t, %e : bool[n]\n%r = logical_not %a : bool[n]",
            "%r = logical_not %x : bool[n]",
        ),
    ],
    "where_of_own_condition": [
        (
            "f64[]",
            "%m = isnan %x : np.bool\n%n = signbit %x : np.bool\n%a = where %m, %n, %m : bool[]\n%r = logical_not %a : np.bool",
            "%m = isnan %x : np.bool\n%n = signbit %x : np.bool\n%a = logical_and %m, %n : np.bool\n"
            '%b = as_kind %a {kind = "array"} : bool[]\n%r = logical_not %b : np.bool',
        ),
        (
            "f64[n]",
            "%t = constant {value = true} : py_bool\n%m = isnan %x : bool[n]\n%n = signbit %x : bool[n]\n"
            "%a = where %m, %m, %n : bool[n]\n%b = where %n, %t, %m : bool[n]\n%r = logical_xor %a, %b : bool[n]",
            "%m = isnan %x : bool[n]\n%n = signbit %x : bool[n]\n%a = logical_or %m, %n : bool[n]\n"
            "%b = logical_or %n, %m : bool[n]\n%r = logical_xor %a, %b : bool[n]",
        ),
    ],
    # rounding, tests, reductions
    "round_of_whole": [
        ("f64[n]", "%a = floor %x : f64[n]\n%r = rint %a : f64[n]", "%r = floor %x : f64[n]"),
        ("i32[n]", "%a = cast %x {dtype = f64} : f64[n]\n%b = ceil %a : f64[n]\n%r = exp %b : f64[n]", "%a = cast %x {dtype = f64} : f64[n]\n%r = exp %a : f64[n]"),
    ],
    "tests_of_integers": [
        ("i64[]", "%r = isfinite %x : np.bool", "%r = constant {value = bool(true)} : np.bool"),
    ],
    "reduce_nothing": [
        ("i64[n]", "%a = reduce_sum %x {axes = [], keepdims = false} : i64[n]\n%r = neg %a : i64[n]", "%r = neg %x : i64[n]"),
        ("f64[n]", "%a = reduce_prod %x {axes = [], keepdims = false} : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]"),
        (
            "f64[n]",
            "%a = reduce_sum %x {axes = [], keepdims = false} : f64[n]\n%r = exp %a : f64[n]",
            "%c = constant {value = f64(0.0)} : np.f64\n%a = add %x, %c : f64[n]\n%r = exp %a : f64[n]",
        ),
    ],
    # fast math
    "add_any_zero": [
        ("f64[n] fast nsz", "%c = constant {value = 0.0} : py_float\n%a = add %x, %c : f64[n]\n%r = exp %a : f64[n]", "%r = exp %x : f64[n]"),
    ],
    "mul_any_zero": [
        (
            "f64[] fast nnan, ninf, nsz",
            "%c = constant {value = 0.0} : py_float\n%r = mul %x, %c : np.f64",
            "%r = constant {value = f64(0.0)} : np.f64",
        ),
    ],
    "float_difference_of_self": [
        ("f64[] fast nnan, ninf", "%r = sub %x, %x : np.f64", "%r = constant {value = f64(0.0)} : np.f64"),
    ],
    "div_by_constant": [
        (
            "f64[n] fast arcp",
            "%c = constant {value = 3.0} : py_float\n%r = div %x, %c : f64[n]",
            "%c = constant {value = f64(0.3333333333333333)} : np.f64\n%r = mul %x, %c : f64[n]",
        ),
    ],
    "neg_of_sub": [
        ("f64[n], f64[n] fast nsz", "%a = sub %x, %y : f64[n]\n%r = neg %a : f64[n]", "%r = sub %y, %x : f64[n]"),
    ],
    "combine_constants": [
        (
            "f64[n] fast reassoc",
            "%c = constant {value = 3.0} : py_float\n%a = mul %x, %c : f64[n]\n%d = constant {value = 5.0} : py_float\n%r = mul %a, %d : f64[n]",
            "%c = constant {value = f64(15.0)} : np.f64\n%r = mul %x, %c : f64[n]",
        ),
    ],
    "mul_of_exp": [
        (
            "f64[n], f64[n] fast reassoc",
            "%a = exp %x : f64[n]\n%b = exp %y : f64[n]\n%r = mul %a, %b : f64[n]",
            "%a = add %x, %y : f64[n]\n%r = exp %a : f64[n]",
        ),
    ],
}  # fmt: skip

#: What must not fire without leave: float laws that NaN, infinities or -0.0 break, and others that look tempting.
FORBIDDEN = {
    "x + 0.0 where x may be -0.0": ("f64[n]", "%c = constant {value = 0.0} : py_float\n%r = add %x, %c : f64[n]"),
    "x - -0.0 where x may be -0.0": ("f64[n]", "%c = constant {value = -0.0} : py_float\n%r = sub %x, %c : f64[n]"),
    "x * 0.0 where x may be NaN": ("f64[n]", "%c = constant {value = 0.0} : py_float\n%r = mul %x, %c : f64[n]"),
    "x - x where x may be NaN": ("f64[n]", "%r = sub %x, %x : f64[n]"),
    "x == x where x may be NaN": ("f64[n]", "%r = eq %x, %x : bool[n]"),
    "not (x < y) where either may be NaN": ("f64[n], f64[n]", "%a = lt %x, %y : bool[n]\n%r = logical_not %a : bool[n]"),
    "-(x - y) where x may be y": ("f64[n], f64[n]", "%a = sub %x, %y : f64[n]\n%r = neg %a : f64[n]"),
    "x / 3": ("f64[n]", "%c = constant {value = 3.0} : py_float\n%r = div %x, %c : f64[n]"),
    "x / 2**1073, whose inverse is not exact": ("f32[n]", "%c = constant {value = f32(1e-45)} : np.f32\n%r = div %x, %c : f32[n]"),
    "x ** 0.5 of a scalar, which NumPy computes by C's pow": ("np.f64", "%c = constant {value = 0.5} : py_float\n%r = pow %x, %c : np.f64"),
    "x ** 0.5 of float16": ("f16[n]", "%c = constant {value = f16(0.5)} : np.f16\n%r = pow %x, %c : f16[n]"),
    "x ** 2 by an array, which NumPy computes by pow": (
        "f64[n], f64[]",
        "%c = constant {value = f64(2.0)} : np.f64\n%t = full %c {dtype = f64, shape = [n]} : f64[n]\n%r = pow %x, %t : f64[n]",
    ),
    "x // 1.0 of floats": ("f64[n]", "%c = constant {value = 1.0} : py_float\n%r = floordiv %x, %c : f64[n]"),
    "float32 to int32 and on": ("f32[n]", "%a = cast %x {dtype = i32} : i32[n]\n%r = cast %a {dtype = f32} : f32[n]"),
    "int64 to float64 and back": ("i64[n]", "%a = cast %x {dtype = f64} : f64[n]\n%r = cast %a {dtype = i64} : i64[n]"),
    "a sum of a value in another layout": (
        "f64[n, m]",
        "%v = view %x {map = (d0: m, d1: n) -> (-d1 + n - 1, d0)} : f64[m, n]:strided(order=[1, 0], breaks=[0], negative=[1])\n"
        "%s = reduce_sum %v {axes = [0], keepdims = false} : f64[n]\n%r = exp %s : f64[n]",
    ),
    "whole write to an argument stays in place": (
        "f64[n], f64[n]",
        "%e = exp %x : f64[n]\n%r = write %e, %y {map = (d0: n) -> (d0)} : f64[n]",
    ),
}  # fmt: skip


def graph_text(operands: str, body: str) -> str:
    operands, _, flags = operands.partition(" fast ")
    types, depth = [""], 0
    for c in operands:
        depth += (c == "[") - (c == "]")
        if c == "," and not depth:
            types.append("")
        else:
            types[-1] += c
    args = ", ".join(f"%{name}: {t.strip()}" for name, t in zip("xyzuv", types, strict=False))
    result = next(line for line in body.splitlines() if line.startswith("%r ")).rsplit(" : ", 1)[1]
    fast = f" fast_math [{flags}]" if flags else ""
    facts = " where " + ", ".join(f"{s} >= 2, {s} != 1" for s in ("n", "m") if f"{s}]" in args or f"[{s}" in args)
    return f"graph @f({args}) -> {result}{facts if facts != ' where ' else ''}{fast} {{\n{textwrap.indent(body, '  ')}\n  return %r\n}}"


@pytest.mark.parametrize("name", CASES)
def test_rule_fires_and_holds(name: str) -> None:
    sets = [s for s in RULE_SETS.values() if name in s.rules]
    assert len(sets) == 1
    for operands, body, after in CASES[name]:
        fired: list[str] = []
        text = graph_text(operands, body)
        apply_rules(parse(text), sets[0], fired.append)
        assert name in fired, f"{name} did not fire: {fired}"

        def run(graph, rules=sets[0]):
            return apply_rules(graph, rules)

        ulp = 4 if "reassoc" in operands or "arcp" in operands else 0
        wanted = structure(_without_dead(parse(graph_text(operands, after))))
        found = check_pass(run, text, evaluate="nnan" not in operands and "nsz" not in operands, ulp=ulp)
        assert structure(_without_dead(found)) == wanted, f"{name} gives\n{found}"


def _without_dead(graph):
    from jitgraph.passes.dce import dce

    dce(graph)
    return graph


def test_every_rule_has_a_case() -> None:
    rules = {name for s in RULE_SETS.values() if s.name != "masks" for name in s.rules}  # those: see `test_masks`
    assert set(CASES) == rules
    assert all(rule.law for s in RULE_SETS.values() for rule in s.rules.values())


@pytest.mark.parametrize("why", FORBIDDEN)
def test_tempting_rules_do_not_fire(why: str) -> None:
    text = graph_text(*FORBIDDEN[why])
    check_pass(simplify.simplify, text, SAME)
    check_pass(canonicalise.canonicalise, text, SAME)


def test_constants_stand_on_the_right() -> None:
    check_pass(
        canonicalise.canonicalise,
        graph_text("f64[n]", "%c = constant {value = 2.0} : py_float\n%r = add %c, %x : f64[n]"),
        graph_text("f64[n]", "%c = constant {value = 2.0} : py_float\n%r = add %x, %c : f64[n]"),
    )


@pytest.mark.parametrize(("versions", "fires"), [(20, True), (200, False)])
def test_a_write_of_a_whole_looks_at_few_versions(versions: int, fires: bool) -> None:
    """Each of many writes would look through all versions before it."""
    steps = [f"%z{k + 1} = scatter_add %z{k}, %y, %z {{axis = 0}} : f64[n]" for k in range(versions)]
    body = ["%e = exp %x : f64[n]", "%c = constant {value = 0.0} : py_float", "%f = cast %c {dtype = f64} : np.f64"]
    body += ["%z0 = full %f {dtype = f64, shape = [n]} : f64[n]", *steps]
    body += [f"%q = write %e, %z{versions} {{map = (d0: n) -> (d0)}} : f64[n]", "%r = exp %q : f64[n]"]
    graph = parse(textwrap.dedent(graph_text("f64[n], i64[m], f64[m]", "\n".join(body))).strip())
    canonicalise.canonicalise(graph)
    assert fires is not any(op.name == "write" for op in graph.walk())


def test_a_number_of_pythons_is_made_one_of_numpys_where_its_partner_goes() -> None:
    text = """
        graph @f(%k: py_float) -> np.f64 {
          %m = constant {value = f64(-1.0)} : np.f64
          %y = mul %k, %m : np.f64
          return %y
        }"""
    g = check_pass(simplify.simplify, text)
    assert [op.name for op in g.body.ops()][-3:] == ["as_kind", "neg", "return"]


def test_no_rule_makes_a_matrix_meet_itself() -> None:
    """BLAS computes `x.T @ x` by another function than a product of two arrays, with other bits."""
    text = """
        graph @f(%x: f64[n, n]) -> f64[n, n] {{
          %y = maximum %x, %x : f64[n, n]
          %t = view %{turned} {{map = (d0: n, d1: n) -> (d1, d0)}} : f64[n, n]:F
          %z = matmul %t, %{other} : f64[n, n]
          return %z
        }}"""
    for turned, other in (("x", "y"), ("y", "x")):
        g = check_pass(simplify.simplify, text.format(turned=turned, other=other))
        assert "maximum" in [op.name for op in g.body.ops()]
    g = check_pass(simplify.simplify, text.format(turned="y", other="y"))
    assert "maximum" not in [op.name for op in g.body.ops()]
