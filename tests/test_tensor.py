"""Tensor in eager mode and on the tape: what it wraps, prints, converts, shares and refuses."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import jitgraph.xp as jg
from jitgraph.errors import (
    AxisError,
    DTypeError,
    GradientError,
    GradientTypeError,
    IndexingError,
    ReadOnlyError,
    ShapeError,
)
from jitgraph.ir.layouts import layout_of
from jitgraph.ir.types import AxisMap, IndexMap
from jitgraph.tensor import EAGER, Tensor, assign, plain, type_of_array, view_array, view_of

X = np.arange(6.0).reshape(2, 3)


def test_wraps_without_copying() -> None:
    a = X.copy()
    t = Tensor(a)
    t[0, 0] = 9
    t += 1
    assert a[0, 0] == 10
    assert t.numpy() is a
    assert plain(Tensor([1, 2])).dtype == np.int64
    assert Tensor(t).numpy() is a


def test_prints_as_an_array() -> None:
    assert repr(Tensor([1.0, 2.0])) == "jg.Tensor([1., 2.])"
    assert repr(Tensor(np.float32([[1, 2], [3, 4]]))) == "jg.Tensor([[1., 2.],\n           [3., 4.]], dtype=float32)"
    assert repr(Tensor([1.0], requires_grad=True)) == "jg.Tensor([1.], requires_grad=True)"
    assert repr(Tensor(X).sum()) == "jg.Tensor(15.)"
    assert str(Tensor([1.0, 2.0])) == "[1. 2.]"
    assert f"{Tensor(X)[0, 1]:.2f}" == "1.00"


def test_attributes_are_those_of_the_array() -> None:
    a = np.asfortranarray(X.astype(np.float32))
    t = Tensor(a)
    assert (t.shape, t.ndim, t.size, t.itemsize, t.nbytes, t.strides) == (a.shape, 2, 6, 4, 24, a.strides)
    assert t.dtype == np.float32
    assert t.flags.f_contiguous
    assert str(t.type) == "f32[2, 3]:F"
    assert len(t) == 2
    assert isinstance(t, Tensor)


def test_results_are_tensors_and_plain_stays_plain() -> None:
    t = Tensor(X)
    for result in (
        t + 1,
        1 + t,
        X + t,
        t + X,
        np.sin(t),
        np.sum(t),
        t.sum(),
        jg.mean(t),
        t[0],
        t[0, 0],
        t @ t.T,
        np.stack([t, t]),
    ):
        assert type(result) is Tensor
    for result in (jg.sin(X), jg.sum(X), jg.where(X > 1, X, 0), jg.zeros(3), jg.sigmoid(X)):
        assert type(result) is not Tensor
    assert type(jg.sum(X)) is np.float64
    assert type(t.sum().numpy()) is np.float64


def test_functions_without_operator_run_in_numpy() -> None:
    assert type(np.sort(Tensor([3.0, 1.0]))) is Tensor
    np.testing.assert_array_equal(np.sort(Tensor([3.0, 1.0])).numpy(), [1, 3])
    np.testing.assert_array_equal(Tensor([3.0, 1.0]).argsort().numpy(), [1, 0])
    assert np.unique(Tensor([3.0, 3.0])).numpy() == [3.0]
    with pytest.raises(GradientTypeError, match=r"np\.unique has no gradient here"):
        np.unique(Tensor([3.0], requires_grad=True))


def test_augmented_assignment_to_a_plain_array() -> None:
    a = X.copy()
    a += Tensor(X)
    np.testing.assert_array_equal(a, 2 * X)
    assert type(a) is np.ndarray
    with pytest.raises(GradientTypeError, match="written into a plain array by add"):
        a += Tensor(X, requires_grad=True)


def test_views_share_memory() -> None:
    t = Tensor(X.copy())
    for view in (t[1], t.T[:, 1], t.reshape(-1)[3:], t.ravel()[3:], t[1][None][0], t.swapaxes(0, 1)[:, 1]):
        view[...] = 7
        assert (t.numpy()[1] == 7).all()
        t[1] = 0
        assert (view.numpy() == 0).all()
    row = t[0]
    row[:] = 5
    assert (t[0] == 5).all()
    copied = t[[0, 1]]
    copied[:] = -1
    assert (t[0] == 5).all()


def test_scalars_are_immutable_and_zero_d_arrays_are_not() -> None:
    t = Tensor(X.copy())
    s = t[0, 1]
    s += 1
    assert s == 2
    assert t[0, 1] == 1
    z = t[0, 1, ...]
    z += 1
    assert t[0, 1] == 2


def test_conversions() -> None:
    t = Tensor(X)[0, 2]
    assert (float(t), int(t), bool(t), complex(t), math.floor(t), round(t), t.item()) == (
        2.0,
        2,
        True,
        2 + 0j,
        2,
        2,
        2.0,
    )
    assert [10, 20, 30][Tensor([1, 2])[0]] == 20
    assert np.asarray(Tensor(X)).dtype == np.float64
    assert np.asarray(Tensor(X), dtype=np.float32).dtype == np.float32
    assert Tensor(X).tolist() == X.tolist()
    assert hash(t) == hash(2.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Tensor(X))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(Tensor(X))
    assert 3.0 in Tensor(X)
    assert [float(v) for v in Tensor([1.0, 2.0])] == [1.0, 2.0]
    with pytest.raises(TypeError, match="0-d"):
        iter(Tensor(2.0))
    with pytest.raises(TypeError, match="len"):
        len(Tensor(2.0))


def test_copies_and_pickles() -> None:
    t = Tensor(X.copy())
    for other in (copy.copy(t), copy.deepcopy(t), t.copy(), pickle.loads(pickle.dumps(t))):
        assert type(other) is Tensor
        other[0] = 7
        np.testing.assert_array_equal(t.numpy(), X)


def test_unknown_operands_are_left_to_python() -> None:
    class Other:
        def __radd__(self, left):
            return "other"

    assert Tensor(X) + Other() == "other"
    assert not (Tensor(X) == None).numpy().any()  # noqa: E711  # element by element, as NumPy does
    with pytest.raises(TypeError):
        Tensor(X) + None


def test_refuses_what_holds_no_numbers() -> None:
    for data in (["a"], [object()], np.array(["2020-01-01"], "datetime64[D]")):
        with pytest.raises(TypeError, match="computes with bools and numbers"):
            Tensor(data)
    with pytest.raises(DTypeError, match="holds objects"):
        jg.add(np.array([object()]), 1)
    with pytest.raises(DTypeError, match="cannot require a gradient"):
        Tensor([1], requires_grad=True)


def test_errors_name_the_operation_and_operands() -> None:
    t = Tensor(X)
    with pytest.raises(ShapeError) as caught:
        t + np.ones(4)
    assert str(caught.value) == (
        "x + y: operands could not be broadcast together with shapes (2,3) (4,) \n"
        "  operand 1: f64[2, 3]\n  operand 2: float64[4]"
    )
    with pytest.raises(ShapeError, match=r"matmul: .*core dimension"):
        jg.matmul(X, X)
    with pytest.raises(AxisError, match="sum: axis 2 is out of bounds"):
        jg.sum(X, axis=2)
    with pytest.raises(IndexingError, match="index 5 is out of bounds for axis 0 with size 2"):
        t[5]
    with pytest.raises(DTypeError):
        np.bitwise_and(t, 1)
    with pytest.raises(ReadOnlyError):
        np.broadcast_to(t, (2, 2, 3))[0] = 1
    with pytest.raises(DTypeError, match="Cannot cast"):
        Tensor([1, 2]).__iadd__(0.5)


def test_gradients_reach_the_leaves() -> None:
    x = Tensor(X, requires_grad=True)
    y = np.sum(np.maximum(x * 2 - 3, 0) ** 2)
    assert y.requires_grad
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 4 * np.maximum(2 * X - 3, 0))
    y = (x * x).sum()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 4 * np.maximum(2 * X - 3, 0) + 2 * X)
    x.grad = None
    assert x.grad is None


def test_intermediate_gradients_can_be_kept() -> None:
    w = Tensor([[1.0, -2.0], [0.5, 1.0]], requires_grad=True)
    hidden = (Tensor([[1.0, 1.0]]) @ w).retain_grad()
    out = jg.sum(jg.relu(hidden))
    out.backward()
    np.testing.assert_array_equal(hidden.grad.numpy(), [[1.0, 0.0]])
    np.testing.assert_array_equal(w.grad.numpy(), [[1.0, 0.0], [1.0, 0.0]])


def test_recorded_writes_are_versions_of_a_storage() -> None:
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = Tensor(np.zeros(3))
    first = out[:2]
    out[1:] = x[:-1] * 2
    first *= 3  # a view taken before the recorded write sees it
    out.sum().backward()
    np.testing.assert_array_equal(out.numpy(), [0, 6, 4])
    np.testing.assert_array_equal(x.grad.numpy(), [6, 2, 0])
    y = x.reshape(3, 1).T
    z = jg.zeros_like(x)
    z[...] = y[0]
    z[[0, 2]] = x[1]
    x.grad = None
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 3, 0])


def test_no_gradient_is_lost_silently() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    for convert in (np.asarray, lambda t: float(t[0]), lambda t: math.sin(t[0]), lambda t: int(t[0])):
        with pytest.raises(GradientTypeError, match=r"\.numpy\(\)"):
            convert(x)
    with pytest.raises(ValueError, match="setting an array element"):  # NumPy's, from ours
        np.zeros(2)[0] = x[0]
    assert bool(x[0] > 0)
    np.testing.assert_array_equal(x.numpy(), [1, 2])
    assert not x.detach().requires_grad
    with pytest.raises(GradientError, match="requires a gradient"):
        Tensor([1.0]).sum().backward()
    with pytest.raises(GradientError, match="scalar"):
        (x * 2).backward()


def test_layouts_of_views_agree_with_their_strides() -> None:
    """The symbolic layout of a view, and that of the array NumPy makes."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        ndim = int(rng.integers(1, 4))
        base = np.zeros(rng.integers(2, 5, ndim)).transpose(rng.permutation(ndim))
        axes: list[AxisMap] = []
        shape: list[int] = []
        for size in base.shape:
            kind = rng.integers(0, 5)
            if kind == 0:
                axes.append(AxisMap(int(rng.integers(size)), 0, None))
                continue
            start, step, count = [(0, 1, size), (1, 1, size - 1), (size - 1, -1, size), (0, 2, (size + 1) // 2)][
                kind - 1
            ]
            axes.append(AxisMap(start, step, len(shape)))
            shape.append(count)
        map = IndexMap(tuple(shape), tuple(axes))
        view = view_array(base, map)
        if 1 in view.shape or 0 in view.shape:
            continue
        assert map.layout(type_of_array(base)) == layout_of(view.shape, view.strides, 8), (base.strides, str(map))


def test_view_of_is_an_affine_view() -> None:
    t = Tensor(np.arange(12.0).reshape(3, 4))
    view = view_of(t, IndexMap((2, 3), (AxisMap(2, -2, 0), AxisMap(1, 1, 1))))
    np.testing.assert_array_equal(view.numpy(), t.numpy()[::-2, 1:])
    assign(view, 0)
    assert t.numpy()[:, 1:].sum() == t.numpy()[1, 1:].sum()
    assert view._storage is t._storage
    assert view._storage.mode is EAGER
