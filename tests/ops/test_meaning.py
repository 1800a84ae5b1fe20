"""The meaning of operators that NumPy has no single function for, and the lowering's defined corners."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jitgraph.ops  # noqa: F401 - fills the registry
from jitgraph import dtypes
from jitgraph.errors import InternalError
from jitgraph.ir.dims import symbol
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.scalar_eval import NumpyScalar
from jitgraph.ir.types import TensorType, python_type, scalar_type
from jitgraph.ops.effect import CheckError

S = NumpyScalar()
N = symbol("n")


def meaning(name: str, *operands: Any, **attrs: Any) -> Any:
    with np.errstate(all="ignore"):
        return REGISTRY[name].evaluate(*operands, **attrs)


def test_erf_and_sigmoid() -> None:
    x = np.array([-math.inf, -7.0, -1.0, -1e-300, -0.0, 0.0, 0.5, 3.0, math.inf, math.nan])
    np.testing.assert_array_equal(meaning("erf", x), [math.erf(v) for v in x])
    assert meaning("erf", x.astype(np.float32)).dtype == np.float32
    assert meaning("erf", np.float64(0.5)) == math.erf(0.5)
    found = meaning("sigmoid", np.array([-800.0, -740.0, 0.0, 800.0, math.nan]))
    np.testing.assert_array_equal(found, [math.exp(-800), math.exp(-740), 0.5, 1.0, math.nan])
    assert meaning("sigmoid", np.array([-100.0], np.float32))[0] == np.float32(math.exp(-100))  # subnormal, not 0


def test_relu_keeps_nan_and_integers() -> None:
    assert meaning("relu", np.array([-1, 2], np.int8)).tolist() == [0, 2]
    assert REGISTRY["relu"].infer([TensorType(dtypes.I8, (N,))], {}).results[0].dtype == dtypes.I8
    assert np.isnan(meaning("relu", np.array([np.nan])))[0]


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_overflow_is_judged_by_exact_integers(name: str) -> None:
    operation = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[name]
    edges = [
        0,
        1,
        -1,
        2,
        -2,
        3,
        2**31,
        2**32,
        -(2**31),
        3037000499,
        3037000500,
        2**62,
        -(2**62),
        2**63 - 1,
        -(2**63),
        -(2**63) + 1,
    ]
    a, b = (x.ravel() for x in np.meshgrid(np.array(edges), np.array(edges)))
    expected = [not -(2**63) <= operation(int(p), int(q)) < 2**63 for p, q in zip(a, b, strict=True)]
    assert meaning(f"{name}_overflows", a, b).tolist() == expected
    with np.errstate(all="ignore"):
        assert REGISTRY[f"{name}_overflows"].lower(S, a, b).tolist() == expected
    assert meaning(f"{name}_overflows", 2**63 - 1, 2) == (name != "sub")


def test_sequences_round_as_arange_does() -> None:
    for dtype in (dtypes.F32, dtypes.F64):
        start, stop, step = 0.1, 7.3, 0.1
        reference = np.arange(start, stop, step, dtype)
        delta = reference[1] - reference[0]
        np.testing.assert_array_equal(meaning("iota", reference[0], delta, size=len(reference), dtype=dtype), reference)
    assert meaning("iota", 5, -2, size=3, dtype=dtypes.I32).tolist() == [5, 3, 1]
    assert meaning("iota", 120, 5, size=3, dtype=dtypes.I8).tolist() == [120, 125, -126]
    assert meaning("iota", 0, 1, size=0, dtype=dtypes.I64).shape == (0,)


def test_filled_arrays() -> None:
    found = meaning("full", 2, shape=(2, 3), dtype=dtypes.F32, order="F")
    assert (found.dtype, found.flags.f_contiguous) == (dtypes.F32, True)
    (t,) = REGISTRY["full"].infer([python_type("py_int")], {"shape": (N, 3), "dtype": dtypes.F32, "order": "F"}).results
    assert t.layout.is_f


def test_masks_and_positions() -> None:
    x = np.arange(6.0).reshape(2, 3)
    mask = x % 2 == 0
    assert meaning("compress", x, mask, size=None).tolist() == [0, 2, 4]
    assert meaning("expand", x, mask, np.array([7.0, 8.0, 9.0])).tolist() == [[7, 1, 8], [3, 9, 5]]
    assert meaning("expand", x, mask, 0.0).tolist() == [[0, 1, 0], [3, 0, 5]]
    assert [i.tolist() for i in meaning("nonzero", mask, size=None)] == [[0, 0, 1], [0, 2, 1]]
    found = REGISTRY["nonzero"].infer([TensorType(dtypes.F64, (N, 3))], {"size": None})
    assert found.operands == (dtypes.BOOL,)
    assert found.results == (TensorType(dtypes.I64, (symbol("k"),)),) * 2


def test_repeated_indices_add_up() -> None:
    base = np.zeros((2, 3))
    found = meaning("scatter_add", base, np.array([1, 1, 0]), np.ones((2, 3)), axis=1)
    assert found.tolist() == [[1, 2, 0]] * 2
    assert not base.any()
    assert REGISTRY["take"].infer([TensorType(dtypes.F64, (N,)), scalar_type(dtypes.U8)], {"axis": 0}).results == (
        scalar_type(dtypes.F64),
    )


def test_checks_raise_for_the_first_failing_element() -> None:
    meaning("check", True, 1, site=0, order=0)
    meaning("check", np.ones(3, bool), site=0)
    with pytest.raises(CheckError) as caught:
        meaning("check", np.array([True, False, False]), np.array([4, 5, 6]), 9, site=2, order=1)
    assert (caught.value.site, caught.value.values) == (2, (5, 9))
    with pytest.raises(CheckError):
        meaning("raise", 3, site=1, order=0)


def test_kinds_of_scalars() -> None:
    assert type(meaning("as_kind", np.float64(2.0), kind="py_float")) is float
    assert type(meaning("as_kind", 2, kind="np_scalar")) is np.int64
    assert isinstance(meaning("as_kind", 2.0, kind="array"), np.ndarray)


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("idiv", (np.array([1]), np.array([0]))),
        ("irem", (np.array([-(2**63)]), np.array([-1]))),
        ("shl", (np.array([1], np.int8), np.array([8], np.int8))),
        ("shr", (np.array([1]), np.array([-1]))),
        ("cast", (np.array([300.0]), dtypes.U8)),
        ("cast", (np.array([np.nan]), dtypes.I32)),
        ("call", ("no_such_function", np.ones(1))),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_the_evaluator_of_scalars_refuses_what_is_undefined(call: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(InternalError), np.errstate(all="ignore"):
        getattr(S, call)(*args)


def test_fma_rounds_once() -> None:
    a = np.array([1 + 2.0**-30, 1e200, 0.0, math.inf, 2.0**-1060])
    c = np.array([-1.0, -math.inf, -0.0, 1.0, 2.0**-1074])
    found = S.fma(a, a, c)
    assert found[0] == 2.0**-29 + 2.0**-60
    assert (found[1], found[3]) == (-math.inf, math.inf)
    assert found[4] == 2.0**-1074
    far = np.array([1e200, -1e200])
    assert S.fma(far, np.array(1e200), np.array(1.0)).tolist() == [math.inf, -math.inf]
    x = np.array([1 + 2.0**-12], np.float32)
    assert S.fma(x, x, np.array([-1.0], np.float32))[0] == np.float32(2.0**-11 + 2.0**-24)
