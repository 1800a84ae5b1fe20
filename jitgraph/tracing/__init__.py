"""Capture: from a Python function and example arguments to a `Graph`, by running a rewritten copy of the function.

For callers:
    options = TraceOptions(static_argnames=("mode",), specialize="", unroll_limit=None, fast_math=frozenset())
    spec = CallSpec(fn, options.static_argnames)          once a function: how calls are flattened
    leaves, tree = spec.flatten(args, kwargs)             at each call
    key = call_key(leaves, tree, options.specialize)      hashable: structure, leaf types, aliasing, static values
    trace = capture.trace(fn, args, kwargs, options, spec)
and at each call with an equal key: `trace.valid(leaves, (args, kwargs))` (guards on globals, closures and attributes;
types of hidden arguments; numbers that were baked in), then `trace.arguments(leaves, (args, kwargs))` are the plain
arguments of the graph, in order. A check whose site holds an `Assumption` sends the call to a trace of another `path`.
`graph.results` says how each leaf of `trace.out_tree` is made; further results are bases of views and the values of
`trace.replays`, which are stored after a successful call (`specialise.replay_stores`).

Callables known by a dunder attribute:
    f.__jitgraph_jit__ = True          a jitted function: `f.__wrapped__` is traced inline
    f.__jitgraph_trace__(tracer, args, kwargs)      anything else of jitgraph's own (host functions, gradients)

Files: `source_find` (trees of live code), `exits` and `liveness` (structured code and what it carries), `rewrite` (the
copy), `standins` (what the copy calls), `globals`, `hidden` and `outside` (state outside of the arguments), `regions`,
`control_flow`, `branches`, `carried`, `loop_regions`, `merging`, `iteration`, `poison` (branches and loops), `host`
(calls back), `leaves` (keys), `capture_mode`, `results` and `capture` (the trace).
"""
