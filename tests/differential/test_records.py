"""Every record against NumPy: type rule, scalar lowering, movement, on all dtypes, layouts and special values."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph import dtypes
from jitgraph.errors import DTypeError
from jitgraph.ir.builder import Builder
from jitgraph.ir.graph import Graph
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.opdef import REGISTRY, OpDef, Trait
from jitgraph.ir.scalar_eval import NumpyScalar
from jitgraph.ir.types import TensorType, python_type, scalar_type
from jitgraph.ops.create import constant_type
from tests.strategies import DTYPES, LAYOUTS, array, array_cases, assert_same_bits, numbers

#: Elementwise operators without attributes; `cast` and `as_kind` have tests of their own.
ELEMENTWISE = [
    d for d in REGISTRY.values() if d.has(Trait.ELEMENTWISE) and d.name not in ("cast", "as_kind", "bitcast")
]
#: Complex numbers are lowered as pairs of these.
REAL = tuple(d for d in DTYPES if d.kind != "c")
#: Those that machine code computes.
LOWERED = [d for d in ELEMENTWISE if d.lower is not None and d.name not in ("real", "imag", "with_real", "with_imag")]
#: The sign of a zero among equals is not promised.
ZERO_SIGN_FREE = ("maximum", "minimum", "fmax", "fmin", "clip", "relu", "reduce_max", "reduce_min")
#: isnat takes no number; NumPy takes another loop of ldexp for bools than for the float16 they become.
UNSTEADY = ("isnat", "ldexp")
OWN = ("sigmoid", "relu", "erf", "erfc", "add_overflows", "sub_overflows", "mul_overflows")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def type_of(x: Any) -> TensorType:
    """The type under which capture would see a value."""
    if isinstance(x, np.ndarray):
        return TensorType(x.dtype, x.shape, "array", layout_of(x.shape, x.strides, x.itemsize))
    return constant_type(x)


def assert_type(t: TensorType, x: Any, what: str, layout: bool = True) -> None:
    """`x` is what `t` promises: dtype, shape, scalar or array, order of the axes in memory."""
    assert t.dtype == np.asarray(x).dtype, f"{what}: {t} but {np.asarray(x).dtype}"
    assert t.shape == np.shape(x), f"{what}: {t} but {np.shape(x)}"
    if t.kind in ("array", "np_scalar"):
        assert isinstance(x, np.ndarray) == (t.kind == "array"), f"{what}: {t} but {type(x)}"
    if isinstance(x, np.ndarray) and x.size and layout:
        order = [k for k in t.layout.order if x.shape[k] != 1]
        strides = [abs(x.strides[k]) for k in order]
        assert strides == sorted(strides, reverse=True), f"{what}: {t} but strides {x.strides} for {x.shape}"
        real = layout_of(x.shape, x.strides, x.itemsize)
        assert (t.layout.is_c, t.layout.is_dense) == (real.is_c, real.is_dense), f"{what}: {t.layout} but {real}"


def loop_operands(defn: OpDef, operands: list[Any], attrs: dict[str, Any]) -> tuple[list[Any], TensorType]:
    """The operands cast as the builder would, and the result type."""
    signature = defn.infer([type_of(x) for x in operands], attrs)
    cast = [x if d is None else _cast(x, d) for x, d in zip(operands, signature.operands, strict=True)]
    return cast, signature.results[0]


def _cast(x: Any, dtype: np.dtype) -> Any:
    return x.astype(dtype, copy=False) if isinstance(x, np.ndarray) else np.asarray(x).astype(dtype)[()]


def evaluate(defn: OpDef, operands: list[Any], **attrs: Any) -> Any:
    with np.errstate(all="ignore"):
        return defn.evaluate(*operands, **attrs)


def lower(defn: OpDef, operands: list[Any], **attrs: Any) -> Any:
    with np.errstate(all="ignore"):
        return defn.lower(NumpyScalar(), *(np.asarray(x) for x in operands), **attrs)


# ------------------------------------------------------------------------------------------------ type rules, dtypes


def python_numbers(rng: np.random.Generator) -> list[Any]:
    return [True, int(rng.integers(0, 5)), float(rng.integers(1, 5))]


@pytest.mark.parametrize("defn", [d for d in ELEMENTWISE if d.numpy], ids=lambda d: d.name)
def test_types_and_refusals_are_those_of_numpy(defn: OpDef) -> None:
    """All combinations of array, NumPy scalar and weak Python number; the rule raises TypeError where NumPy does."""
    rng = np.random.default_rng(1)
    choices: list[Any] = []
    for dtype in DTYPES:
        one = np.array([1, 0, 1]).astype(dtype)
        choices += [one, one[0], np.array(one[0])]
    pool = choices + python_numbers(rng) if defn.arity > 1 else choices
    if defn.arity == 3:
        pool = pool[::3] + python_numbers(rng)
    for operands in itertools.product(pool, repeat=defn.arity):
        if all(isinstance(x, (bool, int, float)) for x in operands):
            continue
        what = f"{defn.name}({', '.join(str(type_of(x)) for x in operands)})"
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = defn.numpy[-1](*operands)  # the ufunc, where there is one
        except TypeError:
            with pytest.raises(DTypeError):
                defn.infer([type_of(x) for x in operands], {})
            continue
        (result,) = defn.infer([type_of(x) for x in operands], {}).results
        assert_type(result, found, what)
        cast, _ = loop_operands(defn, list(operands), {})
        assert_type(result, evaluate(defn, cast), f"evaluate {what}")


@pytest.mark.parametrize(
    ("name", "operands", "kind"),
    [
        ("add", (2, 3), "py_int"),
        ("add", (True, True), "py_int"),
        ("div", (1, 2), "py_float"),
        ("mul", (2, 0.5), "py_float"),
        ("lt", (1, 2.0), "py_bool"),
        ("eq", (True, False), "py_bool"),
        ("bit_and", (True, False), "py_bool"),
        ("bit_and", (6, 3), "py_int"),
        ("shift_left", (True, 3), "py_int"),
        ("neg", (True,), "py_int"),
        ("abs", (-2.0,), "py_float"),
        ("exp", (1,), "py_float"),
        ("logical_not", (0.5,), "py_bool"),
        ("maximum", (1, 2.5), "py_float"),
        ("add_overflows", (1, 2), "py_bool"),
        ("where", (True, 1, 2), "array"),
    ],
)
def test_python_numbers_alone_follow_python(name: str, operands: tuple[Any, ...], kind: str) -> None:
    (result,) = REGISTRY[name].infer([constant_type(x) for x in operands], {}).results
    assert result.kind == kind
    assert result.shape == ()


SCALARS = [
    *(scalar_type(d) for d in DTYPES),
    *(TensorType(d, (3,)) for d in DTYPES),
    *(python_type(k) for k in ("py_bool", "py_int", "py_float")),
    TensorType(dtypes.F64, (), "maybe_np_float"),
]


@pytest.mark.parametrize(
    "defn", [d for d in ELEMENTWISE if d.name not in UNSTEADY and d.arity >= 0], ids=lambda d: d.name
)
def test_types_stay_when_operands_have_been_cast(defn: OpDef) -> None:
    """The rule gives the same answer for the operands as the builder casts them, so that a verifier may ask again."""
    cast = REGISTRY["cast"]
    pool = SCALARS if defn.arity < 3 else SCALARS[::3] + SCALARS[-4:]
    agreed = 0
    for types in itertools.product(pool, repeat=defn.arity):
        try:
            first = defn.infer(types, {})
        except DTypeError:
            continue
        again = [
            t if d is None or t.dtype == d else cast.infer([t], {"dtype": d}).results[0]
            for t, d in zip(types, first.operands, strict=True)
        ]
        second = defn.infer(again, {})
        assert second.results == first.results, f"{defn.name} {[str(t) for t in types]}"
        assert all(d is None or d == t.dtype for t, d in zip(again, second.operands, strict=True))
        agreed += 1
    assert agreed


def test_a_python_constant_that_is_cast_stays_a_python_number() -> None:
    graph = Graph("f")
    x = graph.body.add_arg(python_type("py_float"))
    total = Builder(graph).add(x, 1)
    constant = total.producer.operands[1]
    assert (constant.type, constant.producer.attrs["value"]) == (python_type("py_float"), 1.0)
    narrow = Builder(graph).add(graph.body.add_arg(TensorType(dtypes.F32, (3,))), 0.1)
    assert narrow.producer.operands[1].producer.attrs["value"].dtype == dtypes.F32


def test_a_float_of_unknown_kind_keeps_it_unless_it_decides_the_dtype() -> None:
    maybe = TensorType(dtypes.F64, (), "maybe_np_float")
    add = REGISTRY["add"]
    assert add.infer([maybe, python_type("py_float")], {}).results[0].kind == "maybe_np_float"
    assert add.infer([maybe, scalar_type(dtypes.F64)], {}).results[0].kind == "np_scalar"
    assert add.infer([maybe, TensorType(dtypes.F64, (3,))], {}).results[0].dtype == dtypes.F64
    with pytest.raises(DTypeError, match="a Python float on one path and np"):
        add.infer([maybe, TensorType(dtypes.F32, (3,))], {})
    with pytest.raises(DTypeError, match="a Python float on one path"):
        REGISTRY["where"].infer([scalar_type(dtypes.BOOL), maybe, TensorType(dtypes.F32, (3,))], {})


# ---------------------------------------------------------------------------------------------- lowering: bit for bit


def promised_bits(defn: OpDef) -> bool:
    return defn.ulp == 0


def draw_operands(defn: OpDef, dtypes_: tuple[np.dtype, ...], rng: np.random.Generator, count: int = 4000) -> list[Any]:
    operands = [numbers(rng, d, count, defn.domain) for d in dtypes_]
    if defn.name == "pow" and dtypes_[1].kind == "i":
        operands[1] = np.abs(operands[1]) // 2  # the front end refuses negative exponents
        operands[1][operands[1] < 0] = 0
    return operands


@pytest.mark.parametrize("defn", LOWERED, ids=lambda d: d.name)
def test_lowering_gives_the_bits_of_the_meaning(defn: OpDef) -> None:
    rng = np.random.default_rng(2)
    ran = 0
    for dtype in REAL:
        combinations = [(dtype,) * defn.arity]
        if defn.name == "where":
            combinations = [(dtypes.BOOL, dtype, dtype)]
        elif defn.arity == 2 and dtype == dtypes.I64:
            combinations += [(dtypes.I64, dtypes.U64), (dtypes.U64, dtypes.I64)]
        for combination in combinations:
            operands = draw_operands(defn, combination, rng)
            try:
                cast, result = loop_operands(defn, operands, {})
            except DTypeError:
                continue
            ran += 1
            found = lower(defn, cast)
            meaning = evaluate(defn, cast)
            what = f"{defn.name} on {', '.join(d.name for d in combination)}"
            assert np.asarray(found).dtype == result.dtype, what
            if promised_bits(defn) or result.dtype.kind != "f":
                found = np.broadcast_to(found, meaning.shape)
                assert_same_bits(found, meaning, what, zero_sign=defn.name not in ZERO_SIGN_FREE)
    assert ran, defn.name


@pytest.mark.parametrize(
    "defn", [d for d in LOWERED if d.arity == 2 and d.name not in OWN and d.ulp == 0], ids=lambda d: d.name
)
def test_lowering_at_all_pairs_of_special_values(defn: OpDef) -> None:
    from tests.strategies import specials

    for dtype in REAL:
        values = specials(dtype)
        operands = [x.ravel() for x in np.meshgrid(values, values)]
        try:
            cast, _ = loop_operands(defn, operands, {})
        except DTypeError:
            continue
        meaning = evaluate(defn, cast)
        found = np.broadcast_to(lower(defn, cast), meaning.shape)
        assert_same_bits(found, meaning, f"{defn.name} {dtype}", zero_sign=defn.name not in ZERO_SIGN_FREE)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.itemsize == 1], ids=str)
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "floordiv", "mod", "fmod", "pow", "shift_left", "shift_right", "maximum"]
)
def test_small_integers_exhaustively(name: str, dtype: np.dtype) -> None:
    defn = REGISTRY[name]
    info = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = np.arange(info[0], info[1] + 1).astype(dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    if name == "pow":
        a, b = a[b >= 0], b[b >= 0]
    try:
        cast, _ = loop_operands(defn, [a, b], {})
    except DTypeError:
        assert (name, dtype) == ("sub", dtypes.BOOL)
        return
    assert_same_bits(lower(defn, cast), evaluate(defn, cast), name)


@pytest.mark.parametrize("source", REAL, ids=str)
@pytest.mark.parametrize("target", REAL, ids=str)
def test_casts(source: np.dtype, target: np.dtype) -> None:
    """All values that the target holds, by NumPy's bits; floats beyond it are defined, and wrap as on x86."""
    cast = REGISTRY["cast"]
    rng = np.random.default_rng(3)
    x = numbers(rng, source, 4000)
    if source.kind == "f" and target.kind in "iu":
        beyond = lower(cast, [x], dtype=target)  # nothing is undefined
        assert beyond.dtype == target
        info = np.iinfo(target)
        near = np.array([info.min, info.max, 0, -1 if info.min else 1], np.float64)
        edges = np.concatenate([near + k for k in (-1, -0.99, -0.5, 0, 0.25, 0.5, 0.99)]).astype(source)
        x = np.concatenate([x, edges])
        with np.errstate(all="ignore"):
            whole = np.trunc(x.astype(np.longdouble))
        x = x[(whole >= info.min) & (whole <= info.max)]
        assert len(x) > 100
    (result,) = cast.infer([type_of(x)], {"dtype": target}).results
    meaning = evaluate(cast, [x], dtype=target)
    assert_type(result, meaning, f"{source} to {target}")
    assert_same_bits(lower(cast, [x], dtype=target), meaning, f"{source} to {target}")


def test_casts_beyond_the_range() -> None:
    """As NumPy converts on x86: to narrow integers by way of a wide one, keeping the low bits."""
    cast = REGISTRY["cast"]
    x = np.array([-1.0, 255.5, 256.0, 300.0, -300.0, 2.0**31, -(2.0**40), np.nan, np.inf])
    least = -(2**31)
    through = np.array([-1, 255, 256, 300, -300, least, least, least, least], np.int32)
    for target in (dtypes.U8, dtypes.I8, dtypes.U16, dtypes.I16):
        assert lower(cast, [x], dtype=target).tolist() == through.astype(target).tolist()
    assert lower(cast, [x], dtype=dtypes.I32).tolist() == through.tolist()
    assert lower(cast, [np.array([-1.0, 2.0**32 - 1])], dtype=dtypes.U32).tolist() == [2**32 - 1] * 2
    assert lower(cast, [np.array([-2.0, 2.0**63, 2.0**64 - 2048])], dtype=dtypes.U64).tolist() == [
        2**64 - 2,
        2**63,
        2**64 - 2048,
    ]


def test_python_numbers_stay_python_numbers_in_casts_that_python_has() -> None:
    cast = REGISTRY["cast"]
    assert cast.infer([python_type("py_int")], {"dtype": dtypes.F64}).results[0].kind == "py_float"
    assert cast.infer([python_type("py_float")], {"dtype": dtypes.F32}).results[0].kind == "np_scalar"


# ------------------------------------------------------------------------------------------------------------ layouts


@pytest.mark.parametrize("layouts", list(itertools.product(LAYOUTS, repeat=2)), ids="-".join)
@pytest.mark.parametrize("name", ["add", "lt", "where"])
def test_layout_of_elementwise_results(name: str, layouts: tuple[str, str]) -> None:
    rng = np.random.default_rng(4)
    shape = (3, 4, 0) if "empty" in layouts else (3, 4, 5)
    operands = [array(rng, dtypes.F64, layout if layout != "empty" else "C", shape) for layout in layouts]
    if "empty" not in layouts and rng.random() < 0.5:
        operands[1] = operands[1][:, :1] if operands[1].ndim else operands[1]
    if name == "where":
        operands = [operands[0] > 0, operands[1], 1.0]
    defn = REGISTRY[name]
    cast, result = loop_operands(defn, operands, {})
    assert_type(result, evaluate(defn, cast), f"{name} {layouts}")


@settings(max_examples=150, deadline=None)
@given(array_cases(max_ndim=4), st.randoms(use_true_random=False))
def test_layouts_of_random_operands(x: np.ndarray, random: Any) -> None:
    """Elementwise results, running sums, copies and every reduction, on arbitrary layouts and axes."""
    y = x.transpose(random.sample(range(x.ndim), x.ndim)) if random.random() < 0.5 else x
    for defn, attrs in (
        (REGISTRY["logical_not"], {}),
        (REGISTRY["cast"], {"dtype": dtypes.F64}),
        (REGISTRY["copy"], {"order": random.choice("CFK")}),
    ):
        (result,) = defn.infer([type_of(y)], attrs).results
        found = evaluate(defn, [y], **attrs)
        if defn.name == "logical_not" and y.ndim == 0:
            found = np.asarray(found)
            result = TensorType(result.dtype)
        assert_type(result, found, f"{defn.name} {attrs} of {type_of(y)}")
    axes = tuple(k for k in range(y.ndim) if random.random() < 0.5)
    keepdims = random.random() < 0.3
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_any", "reduce_all"):
        if name == "reduce_max" and y.size == 0:
            continue
        attrs = {"axes": axes, "keepdims": keepdims}
        _, result = loop_operands(REGISTRY[name], [y], attrs)
        # the layout of an empty array is taken for C
        assert_type(result, evaluate(REGISTRY[name], [y], **attrs), f"{name} {attrs} of {type_of(y)}", y.size > 0)
    if y.ndim and y.size:
        axis = random.randrange(y.ndim)
        for name in ("argmax", "argmin", "cumsum", "cumprod"):
            attrs = {"axis": axis} if name.startswith("cum") else {"axis": axis, "keepdims": keepdims}
            _, result = loop_operands(REGISTRY[name], [y], attrs)
            assert_type(result, evaluate(REGISTRY[name], [y], **attrs), f"{name} {attrs} of {type_of(y)}")


@settings(max_examples=100, deadline=None)
@given(array_cases(max_ndim=3), st.integers(0, 2**31))
def test_layouts_of_concatenations_and_products(x: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if x.ndim == 0 or x.size == 0:
        return
    axis = int(rng.integers(x.ndim))
    y = x.astype(rng.choice(DTYPES), order=rng.choice(["C", "F"]))
    y = y[tuple(slice(0, 2) if k == axis else slice(None) for k in range(x.ndim))]
    defn = REGISTRY["concatenate"]
    _, result = loop_operands(defn, [x, y], {"axis": axis})
    assert_type(result, np.concatenate([x, y], axis=axis), f"concatenate {type_of(x)} {type_of(y)}")
    matmul = REGISTRY["matmul"]
    other = array(
        rng,
        y.dtype,
        str(rng.choice(["C", "F", "negative"])),
        (x.shape[-1], 3) if rng.random() < 0.7 else (x.shape[-1],),
    )
    _, result = loop_operands(matmul, [x, other], {})
    assert_type(result, evaluate(matmul, [x, other]), f"matmul {type_of(x)} {type_of(other)}")
