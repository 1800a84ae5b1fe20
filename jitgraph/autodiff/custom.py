"""Operations of the tape with gradients of their own: `Function`, and jitted functions called on Tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from jitgraph import pytree
from jitgraph.autodiff.functions import dressed, jvp_by, python_of, vjp_by
from jitgraph.autodiff.runs import Call, call_plainly
from jitgraph.errors import GradientError, InternalError, ReadOnlyError, TraceError, describe
from jitgraph.ir.opdef import OpDef
from jitgraph.tensor import EAGER, Storage, Tensor, make, mode_of, plain, read, wrap
from jitgraph.tracing.leaves import Static, static_key
from jitgraph.transforms.tape import TAPE, Node
from jitgraph.transforms.vjp import zeros


class Context:
    """What `Function.forward` hands to `Function.backward`: any attribute may be set."""

    saved: tuple[Any, ...] = ()

    def save(self, *values: Any) -> None:
        """Keep values for `backward`, which finds them in `saved`."""
        self.saved = values


class Function:
    """An operation with a gradient of its own, for Tensors: subclass it, and call `apply`.

    `forward(ctx, *args)` computes with plain arrays; `backward(ctx, gradient)` answers the cotangent of each argument
    (None: no gradient; a tuple unless there is one argument) as arrays or Tensors.
    """

    @staticmethod
    def forward(ctx: Context, *args: Any) -> Any:  # an interface
        raise GradientError("a jg.Function needs a static method forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Context, gradient: Any) -> Any:  # an interface
        raise GradientError("a jg.Function needs a static method backward(ctx, gradient)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The result of `forward` as a Tensor; its gradient is that of `backward`.

        Raises:
            TraceError: an argument is traced.
        """
        if mode_of(args).name == "trace":
            remedy = "write it with operators, or call the jitted parts from it"
            what = f"{cls.__name__} is a jg.Function, which runs outside of jit only"
            raise TraceError(describe(what, remedy=remedy))
        ctx = Context()
        nodes = [TAPE.lift(read(x) if type(x) is Tensor else x) for x in args]
        out = cls.forward(ctx, *[x.array for x in nodes])

        def rule(b: Any, ct: Any, _y: Any, *operands: Any) -> list[Any]:
            given = wrap(TAPE, ct) if b.record else make(Storage(EAGER, ct.array))
            made = cls.backward(ctx, given)
            made = made if isinstance(made, (tuple, list)) else (made,)
            if len(made) != len(operands):
                raise GradientError(f"{cls.__name__}.backward gave {len(made)} gradients for {len(operands)} arguments")
            return [None if g is None else TAPE.lift(read(g) if type(g) is Tensor else np.asarray(g)) for g in made]

        defn = OpDef(cls.__name__, cls.__doc__ or "", untyped, lambda *_: plain(out), vjp=rule)
        return wrap(TAPE, TAPE.apply(defn, nodes, {})[0])


# --- jitted functions on the tape -------------------------------------------------------------------------------------


def taped_call(f: Any, leaves: Sequence[Any], tree: pytree.TreeDef) -> Any:
    """Call a jitted function on Tensors of which some require gradients: one operation of the tape.

    Forward it is the compiled function; its gradients in both modes are jitted too. A function that writes into its
    arguments runs in plain Python instead, operator by operator.

    Args:
        f: has `__wrapped__`, the Python function, and `__jitgraph_rejit__`.
        leaves, tree: of `(args,)` or `(args, kwargs)`, static arguments as `Static`.
    """
    moving = [i for i, x in enumerate(leaves) if type(x) is Tensor and x.requires_grad]
    nodes = [read(leaves[i]) for i in moving]
    values = [_sealed(plain(x)) if type(x) is Tensor else x for x in leaves]
    try:
        out = _applied(call_plainly, f, tree, values)
    except ReadOnlyError:
        return _applied(call_plainly, f.__wrapped__, tree, leaves)
    outputs, out_tree = pytree.flatten(out)
    whole = _Inner(f, tree, values, moving)

    def back(b: Any, cts: Any, _results: Any, *operands: Any) -> list[Any]:
        cts = cts if isinstance(cts, tuple) else (cts,)
        return [_node(g) for g in whole.pullback(_given(b, operands), _given(b, cts))]

    def ahead(b: Any, tangents: Any, _results: Any, *operands: Any) -> list[Any]:
        filled = [zeros(b, x.type) if t is None else t for t, x in zip(tangents, operands, strict=True)]
        return [_node(t) for t in whole.pushed(_given(b, operands), _given(b, filled))]

    results = tuple(plain(x) for x in outputs)
    defn = OpDef(getattr(f, "__name__", "jit"), "", untyped, lambda *_: results, vjp=back, jvp=ahead)
    made = TAPE.apply(defn, nodes, {})
    return pytree.unflatten(out_tree, [wrap(TAPE, x) for x in made])


def _applied(call: Call, f: Callable[..., Any], tree: pytree.TreeDef, leaves: Sequence[Any]) -> Any:
    args, *rest = pytree.unflatten(tree, [x.value if type(x) is Static else x for x in leaves])
    return call(f, *args, **(rest[0] if rest else {}))


def _sealed(x: Any) -> Any:
    """A read-only view: the arrays of the tape are never written."""
    if not isinstance(x, np.ndarray):
        return x
    view = x.view()
    view.flags.writeable = False
    return view


def _given(b: Any, nodes: Sequence[Node]) -> tuple[Any, ...]:
    """Operands for a jitted gradient: Tensors if it is to be recorded in its turn, else the data."""
    return tuple([wrap(TAPE, x) if b.record else x.array for x in nodes])


def _node(x: Any) -> Node:
    return TAPE.lift(read(x) if type(x) is Tensor else x)


def untyped(_types: Any, _attrs: Any) -> Any:
    raise InternalError("an operation of the tape has no type rule")


class _Inner:
    """The gradients of a jitted function by some leaves of its arguments, jitted as it is.

    Arrays and floats among the other leaves are arguments of these gradients; the rest is part of what they are.
    """

    def __init__(self, f: Any, tree: pytree.TreeDef, leaves: Sequence[Any], moving: Sequence[int]) -> None:
        self.f, self.tree, self.leaves, self.moving = f, tree, list(leaves), list(moving)
        others = [i for i in range(len(leaves)) if i not in moving]
        self.fixed = [i for i in others if isinstance(leaves[i], (np.ndarray, np.generic, float))]
        rest = [leaves[i] for i in others if i not in self.fixed]
        #: What the jitted gradients depend on besides their arguments.
        self.key = (tree, tuple(moving), tuple(self.fixed), tuple([static_key(_value(x)) for x in rest]))

    def pullback(self, moving: tuple[Any, ...], cotangents: tuple[Any, ...]) -> Any:
        return self._jitted("vjp")(moving, self._others(), cotangents)

    def pushed(self, moving: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        return self._jitted("jvp")(moving, self._others(), tangents)

    def _others(self) -> tuple[Any, ...]:
        return tuple([self.leaves[i] for i in self.fixed])

    def _jitted(self, verb: str) -> Callable[..., Any]:
        cache = _inner_cache.setdefault(self.f, {})
        found = cache.get((verb, self.key))
        if found is None:
            found = cache[verb, self.key] = self._made(verb)
        return found

    def _made(self, verb: str) -> Callable[..., Any]:
        given = {*self.moving, *self.fixed}
        static = [None if i in given else x for i, x in enumerate(self.leaves)]

        def run(call: Call, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
            moving, fixed, along = args

            def flat(*moved: Any) -> tuple[Any, ...]:
                leaves = list(static)
                for i, x in (*zip(self.moving, moved, strict=True), *zip(self.fixed, fixed, strict=True)):
                    leaves[i] = x
                return tuple(pytree.flatten(_applied(call, python_of(self.f), self.tree, leaves))[0])

            if verb == "jvp":
                return jvp_by(call_plainly, flat, moving, along)[1]
            return vjp_by(call_plainly, flat, *moving)[1](along)

        return dressed(run, self.f, verb, same_arguments=False)


def _value(x: Any) -> Any:
    return x.value if type(x) is Static else x


_inner_cache: WeakKeyDictionary[Any, dict[Any, Callable[..., Any]]] = WeakKeyDictionary()
