"""`einsum` by diagonals, sums, transposes and matrix products: operands are contracted from left to right.

Without a sum the result is a view of the operand, as in NumPy. Sums are added in the order of `sum` and of BLAS, not in
that of NumPy's einsum, unless bits have to be NumPy's: then it is called back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from jitgraph import errors
from jitgraph.dtypes import native
from jitgraph.ir.dims import DimLike
from jitgraph.modes import TraceMode
from jitgraph.tensor import Tensor, is_writable
from jitgraph.xp.core import array_tensor, deliver, fresh_scalar, mode_in, numpy_function, product
from jitgraph.xp.elementwise import multiply
from jitgraph.xp.linalg import product_of
from jitgraph.xp.merging import drop_axes
from jitgraph.xp.reductions import sum
from jitgraph.xp.shape import diagonal, reshape_to, retyped, transpose

#: One label an axis: a letter, or the number of an axis under an ellipsis, counted from the last (-1, -2, ...).
Labels: TypeAlias = list[Any]


@numpy_function(np.einsum, views=True)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    mode = mode_in(operands)
    text, arrays = _parse(operands)
    tensors = [array_tensor(x, mode) for x in arrays]
    given, wanted = _labels(text, tensors)
    exact = isinstance(mode, TraceMode) and mode.exact and _rounds(tensors, given, wanted)
    plain = None if kwargs else _reconciled(tensors, given)
    if plain is None or exact:
        if isinstance(mode, TraceMode):
            named = {**kwargs, "optimize": optimize} if out is None else {**kwargs, "optimize": optimize, "out": out}
            return mode.unsupported("np.einsum", operands, named, np.einsum)
        raise errors.GradientTypeError("einsum with these options has no gradient: use x.numpy()")
    tensors, given = plain
    left, have = _diagonals(tensors[0], given[0])
    for k in range(1, len(tensors)):
        right, other = _diagonals(tensors[k], given[k])
        needed = {*wanted, *(name for labels in given[k + 1 :] for name in labels)}
        left, have = _contract(left, have, right, other, needed)
    left, have = _summed(left, have, set(wanted))
    made = transpose(left, [have.index(name) for name in wanted]) if have != wanted else left
    return deliver(fresh_scalar(made) if not wanted else made, out, repeats=True)


def _rounds(tensors: Sequence[Tensor], given: Sequence[Labels], wanted: Labels) -> bool:
    """Whether floats are added up, so that NumPy's own order shows."""
    summed = any(name not in wanted for labels in given for name in labels)
    return (summed or len(tensors) > 1) and any(t.type.dtype.kind in "fc" for t in tensors)


def _parse(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts as text, and the arrays; of `einsum("ij,jk", a, b)` or `einsum(a, [0, 1], b, [1, 2])`."""
    if not operands:
        raise ValueError("must specify the einstein sum subscripts string and at least one operand, or at least one operand and its corresponding subscripts list")  # fmt: skip  # noqa: E501
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    pairs = list(operands)
    target = pairs.pop() if len(pairs) % 2 else None
    texts = [_letters(pairs[k]) for k in range(1, len(pairs), 2)]
    return ",".join(texts) + ("" if target is None else f"->{_letters(target)}"), pairs[::2]


def _letters(numbers: Any) -> str:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join("..." if n is Ellipsis else alphabet[int(n)] for n in numbers)


def _labels(text: str, tensors: Sequence[Tensor]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result.

    Raises:
        ValueError: subscripts that do not fit the operands, as NumPy refuses them.
    """
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(tensors):
        what = "fewer" if len(parts) > len(tensors) else "more"
        raise ValueError(f"{what} operands provided to einstein sum function than specified in the subscripts string")
    given = [_expanded(part, t.type.ndim, k) for k, (part, t) in enumerate(zip(parts, tensors, strict=True))]
    every = [name for labels in given for name in labels]
    hidden = sorted({name for name in every if isinstance(name, int)})
    if not arrow:
        return given, [*hidden, *sorted({name for name in every if isinstance(name, str) and every.count(name) == 1})]
    before, dots, after = output.partition("...")
    wanted = [*before, *(hidden if dots else ()), *after]
    for name in wanted:
        if name not in every:
            raise ValueError(f"einstein sum subscripts string included output subscript '{name}' which never appeared in an input")  # fmt: skip  # noqa: E501
    if len(set(wanted)) < len(wanted):
        raise ValueError("einstein sum subscripts string includes output subscript multiple times")
    if hidden and not dots:
        raise ValueError("output has no ellipsis, but the operands have broadcast dimensions")
    return given, wanted


def _expanded(part: str, ndim: int, number: int) -> Labels:
    before, dots, after = part.partition("...")
    count = ndim - len(before) - len(after)
    if not all(c.isalpha() for c in before + after):
        raise ValueError(f"invalid subscript in einstein sum subscripts string: {part!r}")
    if count < 0 or (count and not dots):
        raise ValueError(
            f"operand has {'more' if count > 0 else 'fewer'} dimensions than subscripts given in einstein sum "
            f"(operand {number} has {ndim})"
        )
    return [*before, *range(-count, 0), *after]


def _reconciled(tensors: Sequence[Tensor], given: Sequence[Labels]) -> tuple[list[Tensor], list[Labels]] | None:
    """The operands without their axes of size 1 whose label has another size elsewhere: these are repeated.

    Sizes are compared by proof, guard or assumption. None: sizes of 0 for which NumPy reads what is not there.

    Raises:
        ShapeError: sizes that differ, as NumPy refuses them.
    """
    sizes: dict[Any, DimLike] = {}
    repeated: list[tuple[int, int]] = []  # operand, axis
    for number, (t, labels) in enumerate(zip(tensors, given, strict=True)):
        decide = t._storage.mode.decide
        own: dict[Any, DimLike] = {}
        for axis, (name, d) in enumerate(zip(labels, t.type.shape, strict=True)):
            first, known = own.setdefault(name, d), sizes.setdefault(name, d)
            if not decide("==", first, d):
                if decide("==", first, 0) or decide("==", d, 0):
                    return None
                raise errors.ShapeError(
                    f"dimensions in operand {number} for collapsing index '{name}' don't match ({first} != {d})"
                )
            if decide("==", known, d):
                continue
            if decide("==", known, 1):
                sizes[name] = d
                seen = enumerate(given[:number])
                repeated += [(k, at) for k, before in seen for at, other in enumerate(before) if other == name]
            elif decide("==", d, 1):
                repeated.append((number, axis))
            else:
                raise errors.ShapeError(
                    f"operands could not be broadcast together: the index '{name}' has sizes {known} and {d}"
                )
    if not repeated:
        return list(tensors), list(given)
    whole = [[k for k in range(len(labels)) if (number, k) not in repeated] for number, labels in enumerate(given)]
    kept = [
        drop_axes(t, [k for k in range(t.type.ndim) if k not in axes]) for t, axes in zip(tensors, whole, strict=True)
    ]
    return kept, [[labels[k] for k in axes] for labels, axes in zip(given, whole, strict=True)]


def _diagonals(x: Tensor, labels: Labels) -> tuple[Tensor, Labels]:
    """Axes of the same label of one operand made one."""
    labels = list(labels)
    for name in dict.fromkeys(labels):
        while labels.count(name) > 1:
            first = labels.index(name)
            second = labels.index(name, first + 1)
            writable = is_writable(x)
            x = diagonal(x, 0, first, second)
            if writable:  # unlike that of `diagonal`
                x._dim = None
            del labels[second], labels[first]
            labels.append(name)
    return x, labels


def _summed(x: Tensor, labels: Labels, kept: set[Any]) -> tuple[Tensor, Labels]:
    axes = tuple(k for k, name in enumerate(labels) if name not in kept)
    if axes:
        x = sum(x, axis=axes, dtype=native(x.type.dtype))
    return x, [name for name in labels if name in kept]


def _contract(a: Tensor, left: Labels, b: Tensor, right: Labels, needed: set[Any]) -> tuple[Tensor, Labels]:
    """The sum over what both have and nobody needs any more."""
    a, left = _summed(a, left, {*needed, *right})
    b, right = _summed(b, right, {*needed, *left})
    both = [name for name in left if name in right]
    shared = [name for name in both if name in needed]
    inner = [name for name in both if name not in needed]
    rows = [name for name in left if name not in right]
    columns = [name for name in right if name not in left]
    size = dict(zip(left, a.type.shape, strict=True))
    b = retyped(b, tuple(size.get(name, d) for name, d in zip(right, b.type.shape, strict=True)))
    size.update(zip(right, b.type.shape, strict=True))
    outer = tuple(size[name] for name in shared)
    a = transpose(a, [left.index(name) for name in (*shared, *rows, *inner)])
    b = transpose(b, [right.index(name) for name in (*shared, *inner, *columns)])
    made = [*shared, *rows, *columns]
    shape = tuple(size[name] for name in made)
    if not inner:
        p = reshape_to(a, (*a.type.shape, *(1 for _ in columns)))
        q = reshape_to(b, (*outer, *(1 for _ in rows), *(size[name] for name in columns)))
        return array_tensor(multiply(p, q)), made
    count = product([size[name] for name in inner])
    height, width = (product([size[name] for name in names]) for names in (rows, columns))
    p = reshape_to(a, (*outer, height, count) if rows or shared else (count,))
    q = reshape_to(b, (*outer, count, width) if columns or shared else (count,))
    return reshape_to(array_tensor(product_of(p, q, "einsum")), shape), made
