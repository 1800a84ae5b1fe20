"""`jg.cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`, `associative_scan` in a trace.

Branches and loops are the regions that `if`, `for` and `while` become. `scan` and `map` are a `for` whose turns also
write a row of each result: what a row looks like is known when a turn has been traced, so the first attempt writes
nothing, and the arrays are made in front of the loop for the second one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

from jitgraph import control, errors, pytree
from jitgraph.ir.builder import Undecided
from jitgraph.ir.dims import symbols
from jitgraph.ir.graph import Value
from jitgraph.ir.opdef import REGISTRY
from jitgraph.ir.types import TensorType, python_type
from jitgraph.tensor import Storage, Tensor, dim_tensor, lift, wrap
from jitgraph.tracing.branches import Branch
from jitgraph.tracing.iteration import Sequenced, integer_dim
from jitgraph.tracing.joining import convert, inner_symbols, placeholder
from jitgraph.tracing.loop_regions import MOST_TURNS, ForRegion
from jitgraph.tracing.rewrite import BranchInfo, LoopInfo
from jitgraph.tracing.scopes import Names, Overlay, Scope

if TYPE_CHECKING:
    from jitgraph.tracing.capture_mode import CaptureMode

_VALUE = BranchInfo(("value",), (), ())
_STATE = LoopInfo(("state",), ("state",), ("state",), (), ("state",), "", "", 0, ())


# --- branches


def _in_reach(*values: Any) -> dict[str, Any]:
    """Functions and arguments as variables: what they lead to may change in a region, as what the user's own do."""
    found: dict[str, Any] = {}
    work = list(values)
    while work:
        x = work.pop()
        x = getattr(x, "__wrapped__", x) if getattr(x, "__jitgraph_jit__", False) else x
        if type(x) is functools.partial:
            work += [x.func, *x.args, *x.keywords.values()]
        elif type(x) is MethodType:
            work += [x.__func__, x.__self__]
        else:
            name = getattr(x, "__name__", "an argument")
            found[f"{name} {len(found)}" if name in found else name] = x
    return found


def _one_of(
    tracer: Any, tests: Sequence[Any], ways: Sequence[Callable[[], Any]], answers: list[Any], reach: dict[str, Any]
) -> Any:
    """The answer of the first way whose test holds, of the last one if none does; each answer goes to `answers`."""

    def go(way: Callable[[], Any]) -> Any:
        answers.append(way())
        return answers[-1]

    if not tests:
        return go(ways[0])
    regions = tracer.regions
    truth = regions.truth(tests[0])
    if isinstance(truth, Value):
        key = regions.key_of()
        if regions.is_settled(key):
            truth = regions.mode.assume(truth, "the way through a branch")
    if not isinstance(truth, Value):
        return go(ways[0]) if truth else _one_of(tracer, tests[1:], ways[1:], answers, reach)
    branch = Branch(regions, truth, _VALUE, key)
    branch.begin(Overlay(reach, Names()))
    while branch.turn():
        value: Any = None
        try:
            value = go(ways[0]) if branch.taken else _one_of(tracer, tests[1:], ways[1:], answers, reach)
        except Exception as error:
            if not branch.caught(error):
                raise
        branch.end(Names(value=value))
    return branch.get("value")


def _choose(tracer: Any, what: str, tests: Sequence[Any], functions: Sequence[Any], operands: Sequence[Any]) -> Any:
    def way(f: Any) -> Callable[[], Any]:
        def call() -> Any:
            answer = tracer.call(f, *operands)
            known.append(f)
            return answer

        return call

    known: list[Any] = []
    answers: list[Any] = []
    result = _one_of(tracer, tests, [way(f) for f in functions], answers, _in_reach(*functions, *operands))
    control.same_answers(what, known, answers)
    return result


def _cond(tracer: Any, pred: Any, true_fn: Any, false_fn: Any, *operands: Any) -> Any:
    return _choose(tracer, "cond", [pred], [true_fn, false_fn], operands)


def _switch(tracer: Any, index: Any, branches: Sequence[Any], *operands: Any) -> Any:
    control.require_branches(branches)
    last = len(branches) - 1
    if type(index) is not Tensor or not index.is_traced:
        return tracer.call(branches[min(max(operator.index(index), 0), last)], *operands)
    mode = tracer.mode
    if index.type.dtype.kind not in "iub" or any(d != 1 for d in index.type.shape):
        raise TypeError(f"'{index.__class__.__name__}' object cannot be interpreted as an integer")
    number = index if isinstance(index._dim, int) else dim_tensor(mode, integer_dim(mode, index))
    value = convert(mode, lift(mode, number), python_type("py_int"))
    apply = mode.builder.apply
    clamped = apply(REGISTRY["minimum"], apply(REGISTRY["maximum"], value, 0)[0], last)[0]
    tests = [wrap(mode, apply(REGISTRY["eq"], clamped, k)[0]) for k in range(last)]
    return _choose(tracer, "switch", tests, branches, operands)


# --- loops


def _while_loop(tracer: Any, cond_fn: Any, body_fn: Any, init: Any) -> Any:
    return tracer.converted(control.while_loop)(cond_fn, body_fn, init)


def _fori_loop(tracer: Any, lower: Any, upper: Any, body_fn: Any, init: Any) -> Any:
    return tracer.converted(control.fori_loop)(lower, upper, body_fn, init)


class _Rows:
    """The arrays that a loop writes its results to.

    Attributes:
        tree, types: structure of a result, and the types of its leaves; None as long as no turn is traced.
        arrays: where they go, f[count, ...]; None as long as the types are not those of the last attempt.
        ahead: results of turns that are traced in front of the loop, with their places.
    """

    def __init__(self, tracer: Any, what: str, f: Any, count: Any) -> None:
        self.mode = tracer.mode
        self.what, self.f, self.count = what, f, count
        self.tree: pytree.TreeDef | None = None
        self.types: list[TensorType] = []
        self.first: Any = None
        self.arrays: list[Tensor] | None = None
        self.ahead: list[tuple[Any, list[Any]]] = []
        #: A number of Python's comes first, and NumPy's of another dtype follow: so there are two turns.
        self.mixed = False

    def put(self, k: Any, y: Any, *, ahead: bool) -> None:
        """Row `k` is `y`."""
        leaves, tree = pytree.flatten(y)
        types = [control.require_value(self.what, x) for x in leaves]
        if self.tree is None:
            self.tree, self.types, self.first = tree, [_row_type(t) for t in types], y
        else:
            found = control.difference("y", self.first, y, control.either_fits)
            if found is not None:
                raise control.y_changes(self.what, self.f, *found)
            joined = [_joined(a, b) for a, b in zip(self.types, types, strict=True)]
            if joined != self.types:
                self.mixed = self.mixed or [t.dtype for t in joined] != [t.dtype for t in self.types]
                self.types, self.arrays = joined, None
        if ahead:
            self.ahead.append((k, leaves))
        elif self.arrays is not None:
            for array, x in zip(self.arrays, leaves, strict=True):
                array[k] = x

    def make(self) -> None:
        """Make the arrays, at the builder's place; rows of turns in front of it are written."""
        mode = self.mode
        length = integer_dim(mode, self.count)
        self.arrays = []
        for t in self.types:
            zero = placeholder(mode, TensorType(t.dtype, (), "np_scalar"))
            value = mode.builder.apply(REGISTRY["full"], zero, shape=(length, *t.shape), dtype=t.dtype)[0]
            self.arrays.append(wrap(mode, value))
        for k, leaves in self.ahead:
            for array, x in zip(self.arrays, leaves, strict=True):
                array[k] = x

    def storages(self) -> list[Storage]:
        return [] if self.arrays is None else [x._storage for x in self.arrays]

    def result(self) -> Any:
        if self.arrays is None:
            self.make()
        assert self.tree is not None
        return pytree.unflatten(self.tree, self.arrays or [])


def _row_type(t: TensorType) -> TensorType:
    """The type of a row: that of a Python number gives way to NumPy's."""
    return t if t.is_python else TensorType(t.dtype, t.shape)


def _joined(known: TensorType, t: TensorType) -> TensorType:
    """The type of rows of two types that fit one another."""
    if known.dtype == t.dtype:
        return known if not known.is_python else _row_type(t)
    if known.is_python and t.is_python:
        return known if control.becomes(t, known) else t
    weak, strong = (known, t) if known.is_python else (t, known)
    return _row_type(strong) if control.becomes(weak, strong) else known


class _RowLoop(ForRegion):
    """A `for` whose turns write rows."""

    def __init__(self, tracer: Any, rows: _Rows, reverse: bool) -> None:
        mode = tracer.mode
        length = integer_dim(mode, rows.count)

        def place(k: Any) -> Any:
            at: Any = k._dim if type(k) is Tensor else k
            return dim_tensor(mode, length - 1 - at if reverse else at)

        super().__init__(tracer.regions, Sequenced(mode, length, place), _STATE, tracer.regions.place_of())
        self.rows = rows

    def _begin(self, scope: Scope) -> None:
        super()._begin(scope)
        self.storages += self.rows.storages()

    def begin_turn(self) -> None:
        """Arrays whose types are known are made in front of the loop."""
        if self.turn_at or self.tail is not None or self.peeling:
            return
        rows = self.rows
        if rows.tree is not None and rows.arrays is None:
            rows.make()
            self.storages = [s for s in self.storages if s not in self.made] + rows.storages()
        self.made = rows.storages()

    made: Sequence[Storage] = ()

    def _compare(self, scope: Scope) -> bool:
        inner = inner_symbols([self.block]) | {self.index}
        for t in self.rows.types:
            if any(not inner.isdisjoint(symbols(d)) for d in t.shape):
                raise control.y_changes(self.rows.what, self.rows.f, "y", str(t), "another size")
        return super()._compare(scope) and self.rows.arrays is not None


def _rows_of(
    tracer: Any,
    what: str,
    f: Any,
    init: Any,
    count: Any,
    turn: Callable[[Any, Any], tuple[Any, Any]],
    idle: Callable[[], Any],
    *,
    reverse: bool = False,
    unroll: bool = False,
) -> tuple[Any, Any]:
    """Run `turn(state, k) -> (state, y)` for each k in a region; the last state and the stacked results.

    Args:
        idle: what is run in place of a turn if there is none: answers a y.
        unroll: trace the turns one by one.
    """
    rows = _Rows(tracer, what, f, count)
    state, mode = init, tracer.mode
    length = integer_dim(mode, count)
    example = mode.example(length)
    few = isinstance(example, int) and example < 2 and not mode.decide(">=", length, 2)
    if few or unroll or tracer.regions.place_of() in mode.unrolled:  # as in plain Python
        turns = mode.concrete_dim(length, "len")
        if turns > MOST_TURNS:
            mode.fail(f"{what}: {turns} turns are too many to be traced one by one", "let all turns be alike.")
        for k in reversed(range(turns)) if reverse else range(turns):
            state, y = turn(state, k)
            rows.put(k, y, ahead=True)
        if not turns:
            rows.put(0, idle(), ahead=False)
        return state, rows.result()
    loop, reach = _RowLoop(tracer, rows, reverse), _in_reach(f)
    for _ in loop:
        loop.begin_turn()
        loop.enter(reach | {"state": state})
        state = loop.get("state")
        k = loop.element()
        try:
            state, y = turn(state, k)
            rows.put(k, y, ahead=loop.peeling)
        except Exception as error:
            if not loop.caught(error):
                raise
        loop.leave(reach | {"state": state})
    state = loop.get("state")
    if rows.tree is None:  # no turn comes to its end
        raise loop.failure or errors.InternalError(f"{what}: no turn was traced")
    if rows.mixed and tracer.regions.at_least_one(length - 1) is None:
        why = f"{what}: the dtype of what is stacked is another one if there is one turn"
        if not tracer.regions.deoptimise_unless(length - 1, why):
            mode.fail(why, "begin with numbers of the final dtype, e.g. np.float32(0) for 0.")
    return state, rows.result()


def _scan(
    tracer: Any, f: Any, init: Any, xs: Any = None, length: Any = None, reverse: Any = False, unroll: int | bool = 1
) -> Any:
    if type(length) is Tensor:
        length = dim_tensor(tracer.mode, integer_dim(tracer.mode, length))
    count = control.trips_of("scan", xs, length)

    def turn(state: Any, k: Any) -> tuple[Any, Any]:
        following, y = control.as_pair("scan", f, tracer.call(f, state, control.row(xs, k)))
        return control.same_state("scan", f, state, following), y

    def idle() -> Any:
        return control.as_pair("scan", f, tracer.call(f, control.own_state(init), control.zeros_row(xs)))[1]

    unrolled = unroll is True and isinstance(integer_dim(tracer.mode, count), int)
    state = control.own_state(init)
    return _rows_of(tracer, "scan", f, state, count, turn, idle, reverse=bool(reverse), unroll=unrolled)


def _map(tracer: Any, f: Any, xs: Any) -> Any:
    count = control.trips_of("map", xs, None)

    def turn(state: Any, k: Any) -> tuple[Any, Any]:
        return state, tracer.call(f, control.row(xs, k))

    def idle() -> Any:
        return tracer.call(f, control.zeros_row(xs))

    return _rows_of(tracer, "map", f, None, count, turn, idle)[1]


def _associative_scan(tracer: Any, fn: Any, elems: Any, reverse: Any = False, axis: Any = 0) -> Any:
    mode: CaptureMode = tracer.mode

    def is_at_least(size: Any, least: int) -> bool:
        try:
            return bool(mode.decide(">=", integer_dim(mode, size), least))
        except Undecided:
            mode.fail(
                "associative_scan along an axis whose size only the run knows: it decides how many steps there are",
                "use jg.scan, or arrays of a known size.",
            )

    return control.tree_scan(
        fn, elems, bool(reverse), operator.index(axis), lambda a, b: tracer.call(fn, a, b), is_at_least
    )


def _as_it_is(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tracer, *args: f(*args)


#: Stand-ins of this module, which take the tracer first.
BODIES: dict[Any, Callable[..., Any]] = {
    control.cond: _cond,
    control.switch: _switch,
    control.while_loop: _while_loop,
    control.fori_loop: _fori_loop,
    control.scan: _scan,
    control.map: _map,
    control.associative_scan: _associative_scan,
    control.own_state: _as_it_is(control.own_state),
    control.same_state: _as_it_is(control.same_state),
}
