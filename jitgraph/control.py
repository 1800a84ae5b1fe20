"""Control flow as functions: `cond, switch, while_loop, fori_loop, scan, map, associative_scan`.

In plain Python they are ordinary loops and calls, so that a debugger steps through them, and Tensors of the tape are
recorded. In a trace `while_loop`, `fori_loop` are traced from the source here, like a user's; the others have bodies in
`tracing.structured`. Names and arguments are those of `jax.lax`; the meaning is NumPy's.

What a loop carries (the state) is a tree of arrays and numbers:
1. Arrays in the first state are copied, and so are views that a turn leaves (a row of `xs`), so what a loop carries is
   its own, and a turn may write to it in place. Copied arrays without axes become NumPy scalars, which is what NumPy's
   operators make of them.
2. Each turn leaves a state of the same structure, shapes and dtypes, else `StateTypeError` names the part that is not.
3. A Python number may become a wider Python number or a NumPy scalar that NumPy's promotion makes of it (0 to
   float32, 0.0 to float64, not 0.5 to int64, not True to 1): this is all that JAX's weak types mean here.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from jitgraph import errors, pytree
from jitgraph.ir.builder import Undecided, constant_type
from jitgraph.ir.types import TensorType
from jitgraph.source import SourceLoc
from jitgraph.tensor import Tensor, current_mode, plain
from jitgraph.xp.creation import copy as copy_array
from jitgraph.xp.joining import stack as stack_arrays

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]

#: Kinds of dtypes, each holds the numbers of those in front of it (but for bools, which are no numbers here).
_ORDER: Final = "iufc"


# --- types of what is carried -----------------------------------------------------------------------------------------


def type_of_leaf(x: Any) -> TensorType | None:
    """The type of an array or number; None for anything else."""
    if type(x) is Tensor:
        return x.type
    if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        try:
            return constant_type(x)
        except TypeError:
            return None
    return None


def text_of_leaf(x: Any) -> str:
    """What a leaf is, for an error."""
    t = type_of_leaf(x)
    if t is not None:
        return str(t)
    return "None" if x is None else f"a {type(x).__name__}"


def _same_shape(a: TensorType, b: TensorType) -> bool:
    return a.ndim == b.ndim and all(_same_size(x, y) for x, y in zip(a.shape, b.shape, strict=True))


def _same_size(a: Any, b: Any) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    try:
        return bool(current_mode().decide("==", a, b))  # type: ignore[union-attr]  # symbolic: in a trace
    except Undecided:
        return True  # the run compares them


def becomes(a: TensorType, b: TensorType) -> bool:
    """Whether a value of type `a` may be one of type `b` in the next turn (law 3)."""
    if not _same_shape(a, b):
        return False
    if a.dtype == b.dtype:
        return True
    if not a.is_python or a.dtype.kind not in _ORDER or b.dtype.kind not in _ORDER:
        return False
    return _ORDER.index(b.dtype.kind) >= _ORDER.index(a.dtype.kind)


def _fits(a: Any, b: Any) -> bool:
    before, after = type_of_leaf(a), type_of_leaf(b)
    if before is None or after is None:
        return before is after and type(a) is type(b)
    return becomes(before, after)


def difference(name: str, a: Any, b: Any, fits: Callable[[Any, Any], bool]) -> tuple[str, str, str] | None:
    """The first place where two trees differ: (its path, what `a` has there, what `b` has there); None: nowhere."""
    leaves_a, tree_a = pytree.flatten(a)
    leaves_b, tree_b = pytree.flatten(b)
    if tree_a == tree_b:
        for k, (x, y) in enumerate(zip(leaves_a, leaves_b, strict=True)):
            if not fits(x, y):
                return pytree.paths(tree_a, name)[k], text_of_leaf(x), text_of_leaf(y)
        return None
    found = _apart(name, tree_a, tree_b)
    texts = []
    for leaves, node, path in ((leaves_a, found[1], found[0]), (leaves_b, found[2], found[0])):
        tree = tree_a if leaves is leaves_a else tree_b
        at = pytree.paths(tree, name).index(path) if node.kind is None else -1
        texts.append(text_of_leaf(leaves[at]) if node.kind is None else str(node))
    return found[0], texts[0], texts[1]


def _apart(name: str, a: pytree.TreeDef, b: pytree.TreeDef) -> tuple[str, pytree.TreeDef, pytree.TreeDef]:
    """The first place where two structures differ."""
    same = a.kind is b.kind and a.meta == b.meta and len(a.children) == len(b.children)
    if same:
        for path, x, y in zip(pytree.child_paths(a, name), a.children, b.children, strict=True):
            if x != y:
                return _apart(path, x, y)
    return name, a, b


def caller() -> SourceLoc | None:
    """The innermost line that is neither ours nor NumPy's."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("jitgraph", "numpy"):
            return SourceLoc.of_instruction(frame.f_code, frame.f_lasti)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def defined_at(f: Any) -> list[str]:
    """Where a function is defined, for an error."""
    f = getattr(f, "__wrapped__", f)
    place = SourceLoc.of_definition(f)
    if place is None:
        return []
    return [f"{getattr(f, '__name__', 'it')} is defined at {place.filename.rpartition('/')[2]}:{place.line}"]


def same_state(what: str, f: Callable[..., Any], before: Any, after: Any) -> Any:
    """The state at the end of a turn, `after`, if its type is that of the one at its start; views in it copied (law 1).

    Raises:
        StateTypeError: it is not.
    """
    found = difference("state", before, after, _fits)
    if found is None:
        leaves, tree = pytree.flatten(after)
        if not any(_is_view(x) for x in leaves):
            return after
        return pytree.unflatten(tree, [_own(x) if _is_view(x) else x for x in leaves])
    path, first, second = found
    raise errors.StateTypeError(
        errors.describe(
            f"{what}: {path} changes its type: {first} at the start of a turn, {second} at its end",
            caller(),
            defined_at(f),
            "return what came in: the same structure, shapes and dtypes; or begin with the final type.",
        )
    )


def same_answers(what: str, functions: Sequence[Any], answers: Sequence[Any]) -> None:
    """Branches answer values of the same types.

    Raises:
        StateTypeError: they do not.
    """
    for f, answer in zip(functions[1:], answers[1:], strict=True):
        found = difference("result", answers[0], answer, either_fits)
        if found is not None:
            path, first, second = found
            names = [getattr(g, "__name__", type(g).__name__) for g in (functions[0], f)]
            raise errors.StateTypeError(
                errors.describe(
                    f"{what}: the branches answer different types: {path} is {first} from {names[0]} "
                    f"and {second} from {names[1]}",
                    caller(),
                    [*defined_at(functions[0]), *defined_at(f)],
                    "let all branches answer the same structure, shapes and dtypes.",
                )
            )


def own_state(init: Any) -> Any:
    """The first state: its arrays copied (law 1)."""
    leaves, tree = pytree.flatten(init)
    return pytree.unflatten(tree, [_own(x) for x in leaves])


def _is_view(x: Any) -> bool:
    """Whether it is, or may be, a view of another array: a row of `xs`, say."""
    if type(x) is Tensor:
        return x.type.kind == "array" and bool(x._steps)
    return isinstance(x, np.ndarray) and x.base is not None


def _own(x: Any) -> Any:
    if type(x) is Tensor:
        return copy_array(x, "C")[()] if x.type.kind == "array" else x
    return x.copy()[()] if isinstance(x, np.ndarray) else x


# --- branches ---------------------------------------------------------------------------------------------------------


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`; only that one is run.

    Under `jit`, where both are compiled, they have to answer the same structure, shapes and dtypes.

    Raises (in a trace):
        StateTypeError: they do not.
    """
    return true_fn(*operands) if pred else false_fn(*operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`, the index clamped to the branches there are; see `cond`.

    Raises:
        TypeError: the index is no integer.
        ValueError: there are no branches.
        StateTypeError: under `jit`, the branches answer different types.
    """
    require_branches(branches)
    return branches[min(max(operator.index(plain(index)), 0), len(branches) - 1)](*operands)


def require_branches(branches: Sequence[Any]) -> None:
    if not branches:
        raise ValueError("switch: there are no branches")


# --- loops ------------------------------------------------------------------------------------------------------------


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any) -> Any:
    """`state = body_fn(state)` as long as `cond_fn(state)` holds; the last state.

    Raises:
        StateTypeError: `body_fn` changes the structure, a shape or a dtype of the state.
    """
    state = own_state(init)
    while cond_fn(state):
        state = same_state("while_loop", body_fn, state, body_fn(state))
    return state


def fori_loop(lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init: Any) -> Any:
    """`state = body_fn(i, state)` for i in range(lower, upper); the last state.

    Raises:
        StateTypeError: `body_fn` changes the structure, a shape or a dtype of the state.
    """
    state = own_state(init)
    for i in range(lower, upper):
        state = same_state("fori_loop", body_fn, state, body_fn(i, state))
    return state


# --- loops over axes --------------------------------------------------------------------------------------------------


def trips_of(what: str, xs: Any, length: Any) -> Any:
    """The number of turns: the size of the first axis of all arrays in `xs`, and `length`, if it is given.

    Raises:
        TypeError: something in `xs` is no array with an axis.
        ShapeError: the sizes differ.
        ValueError: neither `xs` nor `length` says it.
    """
    leaves, tree = pytree.flatten(xs)
    found, first = length, "length"
    for k, x in enumerate(leaves):
        t = type_of_leaf(x)
        path = pytree.paths(tree, "xs")[k]
        if t is None or not t.ndim:
            raise errors.StateTypeError(
                errors.describe(f"{what}: {path} has no axis to run along: it is {text_of_leaf(x)}", caller())
            )
        size = x.shape[0]
        if found is None:
            found, first = size, path
        else:
            says = "says" if first == "length" else "has"
            _require_equal(
                found, size, f"{what}: sizes differ: {first} {says} {{0}}, {path} has {{1}} on its first axis"
            )
    if found is None:
        raise ValueError(f"{what}: xs has no arrays, so length= has to say how many turns there are")
    return found if type(found) is Tensor else operator.index(found)


def _require_equal(a: Any, b: Any, text: str) -> None:
    """Two sizes, plain or traced, are equal.

    Args:
        text: what is wrong otherwise, with places for both.

    Raises:
        ShapeError: they are not; where only the run knows, it raises.
    """
    mode: Any = current_mode()
    dims = [x._dim if type(x) is Tensor else x for x in (a, b)]
    if mode is None or all(isinstance(d, int) for d in dims):
        equal = dims[0] == dims[1]
    else:
        try:
            equal = mode.decide("==", *dims)
        except Undecided:
            mode.check(mode.compare("eq", *dims), "ShapeError", text, *dims)
            return
        dims = [mode.example(d) for d in dims]
    if not equal:
        raise errors.ShapeError(errors.describe(text.format(*dims), caller()))


def row(xs: Any, k: Any) -> Any:
    """Element `k` of each array in `xs`."""
    leaves, tree = pytree.flatten(xs)
    return pytree.unflatten(tree, [x[k] for x in leaves])


def as_pair(what: str, f: Any, answer: Any) -> tuple[Any, Any]:
    """What a turn of `scan` answers.

    Raises:
        StateTypeError: no pair.
    """
    if type(answer) in (tuple, list) and len(answer) == 2:
        return answer[0], answer[1]
    raise errors.StateTypeError(
        errors.describe(
            f"{what}: f answers {text_of_leaf(answer)}, not a pair",
            caller(),
            defined_at(f),
            "return (state, y); y may be None.",
        )
    )


class _Rows:
    """The values of one leaf in each turn: rows of an array; once there is a Tensor, kept one by one."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.kept: list[Any] | None = None
        self.array: Any = None
        #: What the dtype is made of: a dtype, or a number of Python's as long as there are no others.
        self.like: Any = None

    def put(self, k: int, x: Any) -> None:
        if type(x) is Tensor and self.kept is None:
            self.kept = [None] * self.count if self.array is None else list(self.array)
        if self.kept is not None:
            self.kept[k] = x
            return
        like = x.dtype if isinstance(x, (np.ndarray, np.generic)) else x
        if self.array is None:
            self.like = like
            self.array = np.zeros((self.count, *np.shape(x)), np.result_type(like))
        elif like is not self.like:
            joined = np.result_type(self.like, like)
            self.like = like if type(self.like) in (bool, int, float, complex) else self.like
            if joined != self.array.dtype:
                self.array = self.array.astype(joined)
        self.array[k] = x

    def result(self) -> Any:
        if self.kept is None:
            return self.array
        dtype = next(t.dtype for t in [x.type for x in self.kept if type(x) is Tensor])
        return stack_arrays([x if type(x) is Tensor else np.asarray(x, dtype) for x in self.kept])


class Stacked:
    """The results of turns, row by row.

    Args:
        count: how many turns.
    """

    def __init__(self, what: str, f: Callable[..., Any], count: int) -> None:
        self.what, self.f, self.count = what, f, count
        self.tree: pytree.TreeDef | None = None
        self.first: Any = None
        self.rows: list[_Rows] = []

    def put(self, k: int, y: Any) -> None:
        """Row `k` is `y`.

        Raises:
            StateTypeError: it has another structure, shape or dtype than the first one put.
        """
        leaves = self._compared(y)
        for rows, leaf in zip(self.rows, leaves, strict=True):
            rows.put(k, leaf)

    def _compared(self, y: Any) -> list[Any]:
        leaves, tree = pytree.flatten(y)
        if self.tree is None:
            for x in leaves:
                require_value(self.what, x)
            self.tree, self.first = tree, [_own(x) for x in leaves]
            self.rows = [_Rows(self.count) for _ in leaves]
            return leaves
        found = difference("y", pytree.unflatten(self.tree, self.first), y, either_fits)
        if found is not None:
            raise y_changes(self.what, self.f, *found)
        return leaves

    def be_like(self, y: Any) -> None:
        """There are no rows; they would be like `y`."""
        leaves = self._compared(y)
        for rows, leaf in zip(self.rows, leaves, strict=True):
            rows.array = np.zeros((0, *np.shape(leaf)), np.result_type(plain(leaf)))

    def result(self) -> Any:
        assert self.tree is not None
        return pytree.unflatten(self.tree, [rows.result() for rows in self.rows])


def either_fits(a: Any, b: Any) -> bool:
    """Whether values may be rows of one array, or answers of two branches."""
    return _fits(a, b) or _fits(b, a)


def y_changes(what: str, f: Any, path: str, first: str, second: str) -> errors.StateTypeError:
    """The error of rows that do not fit one another."""
    return errors.StateTypeError(
        errors.describe(
            f"{what}: {path}, which is stacked, changes from turn to turn: {first} in one, {second} in another",
            caller(),
            defined_at(f),
            "answer the same structure, shapes and dtypes in each turn.",
        )
    )


def require_value(what: str, x: Any) -> TensorType:
    """The type of something that is to be stacked.

    Raises:
        StateTypeError: it is no array and no number.
    """
    t = type_of_leaf(x)
    if t is None:
        raise errors.StateTypeError(
            errors.describe(f"{what}: {text_of_leaf(x)} cannot be stacked: arrays and numbers can", caller())
        )
    return t


def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """`state, y = f(state, x)` for the rows `x` of `xs`; the last state, and the `y`s stacked along a new first axis.

    Args:
        xs: a tree of arrays with first axes of one size; None: `f` gets None, and `length` says how often.
        reverse: from the last row to the first; `y`s lie at the place of their row.
        unroll: turns a turn of the compiled loop stands for, True: all of them (of a static length). No other effect.

    Without a turn `f` is called once, on zeros, to know what a `y` is.

    Raises:
        StateTypeError: `f` answers no pair, or a state or `y` of another structure, shape or dtype than before.
        ShapeError: first axes of different sizes.
    """
    count = trips_of("scan", xs, length)
    state, ys = own_state(init), Stacked("scan", f, count)
    for k in reversed(range(count)) if reverse else range(count):
        following, y = as_pair("scan", f, f(state, row(xs, k)))
        ys.put(k, y)
        state = same_state("scan", f, state, following)
    if not count:
        ys.be_like(as_pair("scan", f, f(own_state(init), zeros_row(xs)))[1])
    return state, ys.result()


def zeros_row(xs: Any) -> Any:
    """A row of zeros for arrays without rows."""
    leaves, tree = pytree.flatten(xs)
    return pytree.unflatten(tree, [np.zeros(x.shape[1:], x.dtype)[()] for x in leaves])


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f(x)` for the rows `x` of `xs`, stacked along a new first axis; see `scan`."""
    count = trips_of("map", xs, None)
    ys = Stacked("map", f, count)
    for k in range(count):
        ys.put(k, f(row(xs, k)))
    if not count:
        ys.be_like(f(zeros_row(xs)))
    return ys.result()


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All running results of `fn` along an axis, in about 2 log2(n) calls of `fn` on whole slices.

    `r[0] = e[0]`, `r[k] = fn(r[k - 1], e[k])`, if `fn` is associative: it is called on neighbours, then on neighbours
    of these, so floats round in another order than one after the other.

    Args:
        fn: of two trees like `elems`, the earlier elements first, element by element along the axis.
        reverse: from the end: `r[k] = fn(r[k + 1], e[k])`.

    Raises:
        StateTypeError: `fn` answers another structure, shape or dtype.
        ShapeError: axes of different sizes.
    """
    return tree_scan(fn, elems, reverse, axis, fn, lambda size, least: bool(size >= least))


def tree_scan(
    fn: Any, elems: Any, reverse: bool, axis: int, call: Callable[..., Any], is_at_least: Callable[[Any, int], bool]
) -> Any:
    """`associative_scan` in place, on a copy (Brent and Kung's network): level by level up, then down.

    Going up, `x[2d - 1::2d] = fn(x[d - 1::2d], x[2d - 1::2d])` for d = 1, 2, 4, ...: behind it element k holds the
    result of as many elements as the lowest set bit of k + 1 says. Going down, the elements in the middle between these
    get what precedes them. No step depends on whether a size is odd.

    Args:
        call: calls `fn`.
        is_at_least: whether the size is at least a number; in a trace this is a guard.

    Source: Brent and Kung, "A Regular Layout for Parallel Adders", 1982.
    """
    what = "associative_scan"
    leaves, tree = pytree.flatten(elems)
    copies = [copy_array(x, "C") for x in leaves]
    moved = [_along(x, axis, reverse) for x in copies]
    size = trips_of(what, pytree.unflatten(tree, moved), None)

    def combine(first: int, distance: int) -> None:
        """Every other element from `first` on, as many as have a partner that far behind them, and these partners."""
        parts = slice(first, size - distance, 2 * distance), slice(first + distance, None, 2 * distance)
        left, right = ([x[part] for x in moved] for part in parts)
        given = pytree.unflatten(tree, right)
        answer = call(pytree.unflatten(tree, left), given)
        found = difference("elems", given, answer, lambda a, b: _fits(a, b) and _fits(b, a))
        if found is not None:
            raise errors.StateTypeError(
                errors.describe(
                    f"{what}: {found[0]} is {found[1]}, and fn answers {found[2]}",
                    caller(),
                    defined_at(fn),
                    "answer the structure, shapes and dtypes of the arguments.",
                )
            )
        for x, part in zip(moved, pytree.flatten(answer)[0], strict=True):
            x[parts[1]] = part

    d = 1
    while is_at_least(size, 2 * d):
        combine(d - 1, d)
        d *= 2
    while d > 1:
        d //= 2
        if is_at_least(size, 3 * d):
            combine(2 * d - 1, d)
    return pytree.unflatten(tree, copies)


def _along(x: Any, axis: int, reverse: bool) -> Any:
    """The array with the axis in front, perhaps from its end: a view."""
    moved = np.moveaxis(x, axis, 0)
    return moved[::-1] if reverse else moved
