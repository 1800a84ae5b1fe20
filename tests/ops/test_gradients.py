"""Gradient rules against central differences, and forward rules against reverse ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph import dtypes
from jitgraph.ir.opdef import REGISTRY, OpDef, Trait
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.ops.families import reverse_map
from tests.ops.evaluator import Evaluator

B = Evaluator()
STEP = 1e-6


def unbroadcast(ct: Any, like: Any) -> np.ndarray:
    """What the driver does: sum a cotangent over the axes that were broadcast."""
    ct = np.asarray(ct)
    shape = np.shape(like)
    ct = ct.sum(axis=tuple(range(ct.ndim - len(shape)))) if ct.ndim > len(shape) else ct
    ones = tuple(k for k, n in enumerate(shape) if n == 1 and ct.shape[k] != 1)
    return np.broadcast_to(ct.sum(axis=ones, keepdims=True) if ones else ct, shape)


def check_vjp(name: str, operands: list[Any], attrs: dict[str, Any], wrt: tuple[int, ...], tol: float = 1e-5) -> None:
    """The rule's cotangents of `operands[wrt]` against central differences along a random direction."""
    rng = np.random.default_rng(0)
    defn = REGISTRY[name]
    y = B.apply(name, *operands, **attrs)
    ct = rng.standard_normal(np.shape(y))
    found = defn.vjp(B, ct if np.ndim(y) else np.float64(ct), y, *operands, **attrs)
    assert len(found) == len(operands)
    for i in range(len(operands)):
        if i not in wrt:
            assert found[i] is None or np.asarray(operands[i]).dtype.kind == "f", (
                f"{name}: a cotangent of an operand without one"
            )
            continue
        direction = rng.standard_normal(np.shape(operands[i]))
        plus, minus = list(operands), list(operands)
        plus[i], minus[i] = operands[i] + STEP * direction, operands[i] - STEP * direction
        slope = (B.apply(name, *plus, **attrs) - B.apply(name, *minus, **attrs)) / (2 * STEP)
        expected = np.sum(ct * slope)
        actual = 0.0 if found[i] is None else np.sum(unbroadcast(found[i], operands[i]) * direction)
        assert actual == pytest.approx(expected, rel=tol, abs=tol), f"{name}, operand {i}"


def check_jvp(name: str, operands: list[Any], attrs: dict[str, Any], wrt: tuple[int, ...], tol: float = 1e-8) -> None:
    """<ct, J t> = <J^T ct, t>, for each operand alone and for all together."""
    rng = np.random.default_rng(1)
    defn = REGISTRY[name]
    y = B.apply(name, *operands, **attrs)
    ct = rng.standard_normal(np.shape(y))
    cotangents = defn.vjp(B, ct, y, *operands, **attrs)
    for chosen in [(i,) for i in wrt] + [wrt]:
        tangents = [rng.standard_normal(np.shape(x)) if i in chosen else None for i, x in enumerate(operands)]
        if defn.linear:
            filled = [
                t if t is not None else np.zeros(np.shape(x)) if np.asarray(x).dtype.kind == "f" else x
                for t, x in zip(tangents, operands, strict=True)
            ]
            forward = B.apply(name, *filled, **attrs)
        else:
            forward = defn.jvp(B, tuple(tangents), y, *operands, **attrs)
        left = np.sum(ct * forward)
        right = sum(
            np.sum(unbroadcast(cotangents[i], operands[i]) * tangents[i]) for i in chosen if cotangents[i] is not None
        )
        assert left == pytest.approx(right, rel=tol, abs=tol), f"{name} {chosen}"


# -------------------------------------------------------------------------------------------------------- elementwise

#: With attributes, kinks or integers: they have tests of their own.
OTHERS = (
    "cast", "as_kind", "where", "clip", "bitcast", "ldexp", "real", "imag", "with_real", "with_imag", "python_complex",
)  # fmt: skip
SMOOTH = [
    d
    for d in REGISTRY.values()
    if d.has(Trait.ELEMENTWISE)
    and d.name not in OTHERS
    and d.vjp is not None
    and d.vjp(B, 1.0, 1.0, *(1.0,) * d.arity) != (None,) * d.arity
]


def smooth_operands(defn: OpDef, rng: np.random.Generator) -> list[np.ndarray]:
    """Points in the domain and away from kinks."""
    low, high = defn.domain or (-3.0, 3.0)
    low, high = max(low, -3.0), min(high, 3.0)
    margin = 0.02 * (high - low)
    first = rng.uniform(low + margin, high - margin, (3, 4))
    if defn.name in ("sqrt", "pow"):
        first = np.abs(first) + 0.1
    first[np.abs(first) < 0.05] = 0.05
    others = [rng.uniform(0.3, 2.0, shape) for shape in [(4,), (3, 1)][: defn.arity - 1]]
    return [first, *others]


@pytest.mark.parametrize("defn", SMOOTH, ids=lambda d: d.name)
def test_elementwise_gradients(defn: OpDef) -> None:
    operands = smooth_operands(defn, np.random.default_rng(3))
    wrt = (
        tuple(i for i, g in enumerate(defn.vjp(B, 1.0, 1.0, *(1.0,) * defn.arity)) if g is not None)
        if defn.name != "pow"
        else (0, 1)
    )
    check_vjp(defn.name, operands, {}, wrt)


def test_the_differentiable_functions_are_all_there() -> None:
    """A record whose rule answers None everywhere would slip through the test above."""
    zero = {"sign", "floordiv", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "signbit"}
    zero |= {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not"}
    zero |= {"bit_and", "bit_or", "bit_xor", "bit_not", "shift_left", "shift_right"}
    zero |= {"spacing", "frexp_exponent", "bitwise_count", "gcd", "lcm", "isnat"}
    zero |= {"add_overflows", "sub_overflows", "mul_overflows"}
    elementwise = {d.name for d in REGISTRY.values() if d.has(Trait.ELEMENTWISE)} - {*OTHERS}
    assert {d.name for d in SMOOTH} | {"pow"} == elementwise - zero


@pytest.mark.parametrize("exponent", [3.0, 2.0, 2, 1.0, 0.5, -1.0, -1.5, 0.0])
def test_powers_with_a_constant_exponent_take_no_logarithm(exponent: float) -> None:
    x = np.array([0.5, 1.5, 2.0])
    check_vjp("pow", [x, exponent], {}, (0,))
    assert REGISTRY["pow"].vjp(B, x, x, x, exponent)[1] is None


def test_power_gradients_at_zero_and_below() -> None:
    x = np.array([0.0, -2.0])
    for p in (2.0, np.array([2.0, 2.0])):
        dx, _ = REGISTRY["pow"].vjp(B, np.ones(2), x**2.0, x, p)
        assert dx.tolist() == [0.0, -4.0]
    _, dp = REGISTRY["pow"].vjp(B, np.ones(1), np.zeros(1), np.zeros(1), np.array([2.0]))
    assert dp.tolist() == [0.0]
    dx, _ = REGISTRY["pow"].vjp(B, np.ones(1), np.ones(1), np.zeros(1), np.array([0.0]))
    assert dx.tolist() == [0.0]


def test_gradients_at_kinks() -> None:
    one = np.ones(1)
    zero = np.zeros(1)
    nan = np.array([np.nan])
    assert REGISTRY["abs"].vjp(B, one, zero, zero)[0].tolist() == [0.0]
    assert REGISTRY["relu"].vjp(B, one, zero, zero)[0].tolist() == [0.0]
    for name in ("maximum", "minimum", "fmax", "fmin"):
        assert [g.tolist() for g in REGISTRY[name].vjp(B, one, one, one, one)] == [[0.5], [0.5]], name
    for name in ("fmax", "fmin"):
        assert [g.tolist() for g in REGISTRY[name].vjp(B, one, one, one, nan)] == [[1.0], [0.0]], name
    gradients = REGISTRY["clip"].vjp(B, np.ones(5), np.ones(5), np.array([-1.0, 0.0, 0.5, 1.0, 2.0]), zero, one)
    assert [g.tolist() for g in gradients] == [[0, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    crossed = REGISTRY["clip"].vjp(B, np.ones(2), np.ones(2), np.array([-1.0, 3.0]), np.ones(2), zero)
    assert [g.tolist() for g in crossed] == [[0, 0], [0, 0], [1, 1]]  # the upper bound wins


def test_selection_and_casts() -> None:
    rng = np.random.default_rng(5)
    c, x, y = rng.random((3, 4)) < 0.5, rng.standard_normal((3, 4)), rng.standard_normal(4)
    check_vjp("where", [c, x, y], {}, (1, 2))
    check_jvp("where", [c, x, y], {}, (1, 2))
    check_vjp("clip", [x, -0.5, np.full(4, 0.5)], {}, (0, 2))
    check_vjp("cast", [x], {"dtype": dtypes.F64}, (0,))
    assert REGISTRY["cast"].vjp(B, x, x, x.astype(np.float32), dtype=dtypes.F64)[0].dtype == np.float32
    assert REGISTRY["cast"].vjp(B, x, x, np.arange(3), dtype=dtypes.F64) == (None,)
    assert REGISTRY["as_kind"].vjp(B, 2.0, 1.0, 1.0, kind="py_float") == (2.0,)


def test_weak_numbers_keep_float32() -> None:
    """Constants in the rules are Python numbers: float32 stays float32."""
    rng = np.random.default_rng(6)
    for defn in SMOOTH:
        if defn.name == "float_power":  # float64 whatever its operands
            continue
        operands = [x.astype(np.float32) for x in smooth_operands(defn, rng)]
        y = B.apply(defn.name, *operands)
        for g in defn.vjp(B, np.ones_like(y), y, *operands):
            assert g is None or g.dtype == np.float32, defn.name


# --------------------------------------------------------------------------------------------------------- reductions


def both(name: str, operands: list[Any], attrs: dict[str, Any], wrt: tuple[int, ...] = (0,)) -> None:
    check_vjp(name, operands, attrs, wrt)
    check_jvp(name, operands, attrs, wrt)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"])
def test_reductions(name: str, axes: tuple[int, ...], keepdims: bool) -> None:
    x = np.random.default_rng(7).standard_normal((2, 3, 4))
    both(name, [x], {"axes": axes, "keepdims": keepdims})


@pytest.mark.parametrize("axes", [(0,), (0, 2)])
def test_reductions_from_a_value_and_under_a_mask(axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(9)
    x, start, attrs = rng.standard_normal((2, 3, 4)), np.float64(1.5), {"axes": axes, "keepdims": False}
    both("reduce_sum", [x, start], attrs, (0, 1))
    both("reduce_sum", [x], {**attrs, "dtype": dtypes.F64})
    both("reduce_prod", [x, start], attrs, (0, 1))
    both("reduce_sum_where", [x, rng.random(x.shape) < 0.5, start], attrs, (0, 2))


@pytest.mark.parametrize("zeros", [1, 2])
def test_products_with_zeros(zeros: int) -> None:
    x = np.array([[2.0, 0.0, 3.0, 0.0 if zeros == 2 else 4.0], [1.0, 2.0, 3.0, 4.0]])
    both("reduce_prod", [x], {"axes": (1,), "keepdims": False})
    both("cumprod", [x], {"axis": 1})
    both("cumprod", [x.T], {"axis": 0})


def test_ties_share_the_gradient_of_an_extreme() -> None:
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    (g,) = REGISTRY["reduce_max"].vjp(B, np.array([1.0, 3.0]), x.max(1), x, axes=(1,), keepdims=False)
    assert g.tolist() == [[0, 0.5, 0.5], [1, 1, 1]]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_sums(name: str, axis: int) -> None:
    both(name, [np.random.default_rng(8).standard_normal((3, 4))], {"axis": axis})


# ----------------------------------------------------------------------------------------------------------- movement

SHAPE = (4, 5)
MAPS = {
    "identity": IndexMap.identity(SHAPE),
    "transpose": IndexMap.permute(SHAPE, (1, 0)),
    "slice": IndexMap((2, 2), (AxisMap(1, 1, 0), AxisMap(0, 2, 1))),
    "row": IndexMap((5,), (AxisMap(2), AxisMap(0, 1, 0))),
    "reverse": reverse_map(SHAPE, 1),
    "diagonal": IndexMap((4,), (AxisMap(0, 1, 0), AxisMap(1, 1, 0))),
    "newaxis": IndexMap((4, 1, 5), (AxisMap(0, 1, 0), AxisMap(0, 1, 2))),
    "broadcast": IndexMap((3, 4, 2, 5), (AxisMap(0, 1, 1), AxisMap(0, 1, 3))),
    "repeated slice": IndexMap((3, 2, 5), (AxisMap(1, 2, 1), AxisMap(0, 1, 2))),
    "element": IndexMap((), (AxisMap(3), AxisMap(1))),
    "empty": IndexMap((0, 5), (AxisMap(4, 1, 0), AxisMap(0, 1, 1))),
}


@pytest.mark.parametrize("name", MAPS)
def test_views(name: str) -> None:
    both("view", [np.random.default_rng(9).standard_normal(SHAPE)], {"map": MAPS[name]})


@pytest.mark.parametrize("name", [n for n in MAPS if "broadcast" not in n and "repeated" not in n])
def test_writes(name: str) -> None:
    rng = np.random.default_rng(10)
    value = rng.standard_normal(MAPS[name].shape)
    both("write", [value, rng.standard_normal(SHAPE)], {"map": MAPS[name]}, (0, 1))
    if value.ndim:
        check_vjp(
            "write", [rng.standard_normal(value.shape[-1:]), rng.standard_normal(SHAPE)], {"map": MAPS[name]}, (0, 1)
        )


def test_a_scalar_operand_may_be_viewed_and_written() -> None:
    check_vjp("view", [np.float64(2.0)], {"map": IndexMap((3, 2), ())}, (0,))
    check_vjp("write", [np.float64(2.0), np.ones((3, 2))], {"map": IndexMap.identity((3, 2))}, (0, 1))


@pytest.mark.parametrize(
    ("name", "shapes", "attrs"),
    [
        ("reshape", [(4, 6)], {"shape": (3, 8)}),
        ("copy", [(4, 6)], {"order": "F"}),
        ("concatenate", [(2, 3), (4, 3), (1, 3)], {"axis": 0}),
        ("concatenate", [(2, 3), (2, 1)], {"axis": 1}),
    ],
)
def test_shapes(name: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any]) -> None:
    rng = np.random.default_rng(11)
    operands = [rng.standard_normal(s) for s in shapes]
    both(name, operands, attrs, tuple(range(len(operands))))


# ----------------------------------------------------------------------------------------- indices, products, creation


@pytest.mark.parametrize(
    "index", [np.array([2, 0, 2, 1]), np.array([[1, 1], [0, 3]]), np.array([], int), np.int64(2)], ids=str
)
@pytest.mark.parametrize("axis", [0, 1])
def test_indices(index: Any, axis: int) -> None:
    rng = np.random.default_rng(12)
    x = rng.standard_normal((4, 5))
    both("take", [x, index], {"axis": axis})
    values = rng.standard_normal(np.take(x, index, axis=axis).shape)
    both("scatter_add", [x, index, values], {"axis": axis}, (0, 2))


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_masks(share: float) -> None:
    rng = np.random.default_rng(13)
    x = rng.standard_normal((4, 5))
    mask = rng.random((4, 5)) < share
    both("compress", [x, mask], {"size": None})
    both("expand", [x, mask, rng.standard_normal(int(mask.sum()))], {}, (0, 2))
    check_vjp("expand", [x, mask, np.float64(2.0)], {}, (0, 2))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)),
        ((3, 0), (0, 5)),
    ],
    ids=str,
)
def test_products(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(14)
    both("matmul", [rng.standard_normal(left), rng.standard_normal(right)], {}, (0, 1))


def test_creation() -> None:
    check_vjp("full", [np.float64(2.0)], {"shape": (2, 3), "dtype": dtypes.F64}, (0,))
    check_vjp("full", [np.float64(2.0)], {"shape": (), "dtype": dtypes.F64}, (0,))
    check_vjp("iota", [np.float64(2.0), np.float64(0.5)], {"size": 4, "dtype": dtypes.F64}, (0, 1))
    assert REGISTRY["full"].vjp(B, np.ones(2), None, 1, shape=(2,), dtype=dtypes.I64) == (None,)
    assert REGISTRY["iota"].vjp(B, np.ones(2), None, 0, 1, size=2, dtype=dtypes.I64) == (None, None)


@pytest.mark.parametrize("name", ["argmax", "nonzero", "reduce_any", "reduce_all", "constant", "dim"])
def test_nothing_flows_through_positions_and_truth(name: str) -> None:
    defn = REGISTRY[name]
    rule: Callable[..., Any] = defn.vjp
    assert rule(B, 1.0, 1.0, *(1.0,) * defn.arity) == (None,) * defn.arity
