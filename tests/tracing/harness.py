"""Tracing a function and running its graph in the interpreter, as a dispatcher would; comparing with plain Python."""

import copy

import numpy as np

from jitgraph import pytree
from jitgraph.errors import TraceError
from jitgraph.ir.dims import evaluate
from jitgraph.ir.interpret import Deoptimise, Evaluation
from jitgraph.ir.types import IndexMap
from jitgraph.ir.verifier import verify
from jitgraph.specialise import chosen_order, replay_stores, wanted_leaves
from jitgraph.tensor import view_array
from jitgraph.tracing.capture import trace
from jitgraph.tracing.hidden import Live
from jitgraph.tracing.leaves import CallSpec
from jitgraph.tracing.trace import TraceOptions, call_key
from tests.fuzz.compare import difference, run


class Jit:
    """A function with its traces, run by the interpreter."""

    def __init__(self, fn, **options):
        self.fn = fn
        self.options = TraceOptions(**options)
        self.spec = CallSpec(fn, self.options.static_argnames)
        self.traces = {}
        self.count = 0
        self.deoptimised = 0

    def trace(self, *args, path=(), **kwargs):
        made = trace(self.fn, args, kwargs, self.options, self.spec, path)
        verify(made.graph)
        return made

    def __call__(self, *args, **kwargs):
        leaves, tree = self.spec.flatten(args, kwargs)
        key = call_key(leaves, tree, self.options.specialize)
        for known in self.traces.get(key, ()):
            if known.valid(leaves, (args, kwargs)) and self.guards_hold(known, known.arguments(leaves, (args, kwargs))):
                break
        else:
            known = self.trace(*args, **kwargs)
            self.count += 1
            self.traces.setdefault(key, []).append(known)
            assert known.valid(leaves, (args, kwargs))
        return self.run(known, leaves, args, kwargs)

    @staticmethod
    def sizes(graph, arguments):
        env = {}
        for s in graph.symbols.values():
            if s.arg >= 0:
                env[s.name] = np.shape(arguments[s.arg])[s.axis] if s.origin == "arg" else int(arguments[s.arg])
        return env

    def guards_hold(self, known, arguments):
        env = self.sizes(known.graph, arguments)
        for g in known.graph.guards:
            a, b = evaluate(g.left, env), evaluate(g.right, env)
            if not {"==": a == b, "!=": a != b, ">=": a >= b, "<": a < b}[g.relation]:
                return False
        return True

    def run(self, known, leaves, args, kwargs):
        graph = known.graph
        arguments = known.arguments(leaves, (args, kwargs))
        assert len(arguments) == len(graph.args) == len(known.arg_names)
        if known.writes and known.overlaps(arguments):
            return self.fn(*args, **kwargs)
        hosts = {k: s.call for k, s in enumerate(graph.sites) if s.error == "host"}
        run = Evaluation(graph, hosts)
        run.bind_arguments(arguments)
        try:
            with np.errstate(all="ignore"):
                returned = run.block(graph.body, [run.env[a] for a in graph.args])
        except Deoptimise as other:
            if other.args[0].startswith("assumption "):  # the call goes another way than the trace assumed
                number = int(other.args[0].split()[1])
                path = (*known.path[:number], not known.path[number])
                return self.run(self.trace(*args, path=path, **kwargs), leaves, args, kwargs)
            self.deoptimised += 1
            return self.fn(*args, **kwargs)
        fresh, written = returned[: len(returned) - len(known.writes)], returned[len(returned) - len(known.writes) :]
        for number, value in zip(known.writes, written, strict=True):
            np.asarray(arguments[number])[...] = value
        env = run.symbols
        results = [None] * len(graph.results)
        order = chosen_order(graph.results, wanted_leaves(known, fresh), fresh)
        for k in order:
            r = graph.results[k]
            if r.how == "fresh":
                results[k] = fresh[r.index]
            elif r.how == "argument":
                results[k] = arguments[r.index]
            elif r.how == "view_of_argument":
                results[k] = self.view(arguments[r.index], r.steps, env)
            elif r.how == "view_of_result":
                results[k] = self.view(results[r.index], r.steps, env)
            elif r.how == "choice":
                results[k] = results[r.steps[0 if fresh[r.index] else 1]]
            elif r.how == "dim":
                results[k] = evaluate(r.dim, env)
            else:
                results[k] = r.value
        results = [r.place.get((args, kwargs)) if type(r) is Live else r for r in results]
        replay_stores(known, results, (args, kwargs))
        return pytree.unflatten(known.out_tree, results[: known.out_tree.count])

    @staticmethod
    def view(array, steps, env):
        for step in steps:
            if isinstance(step, IndexMap):
                array = view_array(array, step.substitute(dict(env)))
            else:
                array = array.reshape([evaluate(d, env) for d in step])
        return array


def same(a, b, rtol=0.0):
    """Same type, dtype, shape and bits (NaNs equal), or within `rtol`."""
    assert type(a) is type(b), (type(a), type(b), a, b)
    leaves, tree = pytree.flatten(a)
    others, other_tree = pytree.flatten(b)
    assert tree == other_tree
    for x, y in zip(leaves, others, strict=True):
        assert type(x) is type(y), (type(x), type(y))
        if isinstance(x, np.ndarray | np.generic):
            assert x.dtype == y.dtype
            assert x.shape == y.shape
            if rtol:
                np.testing.assert_allclose(x, y, rtol=rtol, atol=0)
            else:
                np.testing.assert_array_equal(x, y)
        elif isinstance(x, float):
            assert x == y or (x != x and y != y) or (rtol and abs(x - y) <= rtol * abs(x)), (x, y)
        else:
            assert x == y, (x, y)


def alias(results, arguments):
    """Which result arrays share memory with which arguments, and with one another."""
    arrays = [x for x in pytree.flatten(results)[0] if isinstance(x, np.ndarray)]
    inputs = [x for x in pytree.flatten(arguments)[0] if isinstance(x, np.ndarray)]
    return (
        [[x is y for y in inputs] for x in arrays],
        [[np.shares_memory(x, y) for y in inputs] for x in arrays],
        [[np.shares_memory(x, y) for y in arrays] for x in arrays],
    )


def check(fn, *calls, traces=1, rtol=0.0, aliases=True, deoptimised=0, **options):
    """Call `fn` plainly and through its graph with each argument tuple: results, changed arguments and aliasing agree.

    Args:
        calls: argument tuples; a dict at the end of one gives keywords.
        traces: how many traces all the calls need (None: any number).
    """
    f = Jit(fn, **options)
    for call in calls:
        kwargs = call[-1] if call and isinstance(call[-1], dict) and call[-1].get("kwargs") else {}
        args = call[:-1] if kwargs else call
        kwargs = {k: v for k, v in kwargs.items() if k != "kwargs"}
        first, second = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
        with np.errstate(all="ignore"):
            expected = fn(*first[0], **first[1])
        got = f(*second[0], **second[1])
        same(expected, got, rtol)
        same(first, second, rtol)
        if aliases:
            assert alias(expected, first) == alias(got, second)
    if traces is not None:
        assert f.count == traces, f"{f.count} traces"
    assert f.deoptimised == deoptimised
    return f


def check_calls(fn, calls, *, refused=False):
    """Calls of one function, each with arguments of its own, do what NumPy does; if `refused`, they may be refused."""
    jitted = Jit(fn)
    for arguments in calls:
        given, mine, plain = (copy.deepcopy(arguments) for _ in range(3))
        found = run(jitted, mine)
        if isinstance(found.error, TraceError):
            assert refused, found.error
            continue
        assert not difference(given, run(fn, plain), found, free_zero=False), arguments
