"""State in objects, containers and enclosing functions, changed in branches and loops.

PYTEST_DONT_REWRITE: the functions are compiled from their source, assertions too.
"""

# ruff: noqa: B007

import numpy as np

from tests.e2e.flow import Cases

cases = Cases()
X = np.array([3.0, -1.0, 4.0, -1.5, 5.0])


class Walker:
    def __init__(self, x):
        self.x, self.v, self.steps, self.best, self.log = x, 0.5, 0, None, [0.0, 0]

    def step(self, dt):
        self.x = self.x + self.v * dt
        self.v *= 0.9
        self.steps += 1

    def run(self, n):
        for _ in range(n):
            self.step(0.1)
        return self.x

    def run_until(self, limit):
        while self.x < limit:
            self.step(1.0)
            if self.steps >= 50:
                break
        return self.steps

    def improve(self, xs):
        for v in xs:
            if self.best is None or v > self.best:
                self.best = v

    def note(self, v):
        self.log[0] += v
        self.log[1] += 1


@cases.add((Walker(1.0), 3), (Walker(1.0), 0), (Walker(2.0), 40))
def method_loop_on_argument(w, n):
    return w.run(n)


@cases.add((Walker(1.0), 3.0), (Walker(1.0), 0.0), (Walker(2.0), 1e9))
def while_on_argument_state(w, limit):
    return w.run_until(limit)


@cases.add((Walker(1.0), X), (Walker(1.0), -X))
def best_in_argument(w, x):
    w.improve(x)
    return w.best


@cases.add((Walker(1.0), X), (Walker(1.0), -X))
def list_in_argument(w, x):
    for v in x:
        w.note(v)
    return w.log[0] / w.log[1]


@cases.add((Walker(X.copy()), 3), (Walker(X.copy()), 0), reruns=(1,))
def array_attribute_rebound(w, n):
    for _ in range(n):
        w.x = w.x * 0.5 + 1
    return w.x.sum()


@cases.add((Walker(X.copy()), 3), (Walker(X.copy()), 0))
def array_attribute_written(w, n):
    for i in range(n):
        w.x[i] += 1
        w.x *= 2
    return w.x.sum()


@cases.add((Walker(1.0), 1.0), (Walker(1.0), -1.0))
def attribute_in_branch(w, c):
    if c > 0:
        w.x = c
        w.steps += 1
    else:
        w.v = -c
    return w.x + w.v


@cases.add((Walker(1.0), 1.0), (Walker(1.0), -1.0), reruns=(1,))
def attribute_then_raise(w, c):
    if c < 0:
        w.steps += 1
        raise ValueError("c")
    return w.x


@cases.add((Walker(1.0), 3), (Walker(1.0), 60), reruns=(1,))
def attribute_in_loop_then_raise(w, n):
    for i in range(n):
        w.steps += 1
        if w.steps > 50:
            raise RuntimeError(f"too many: {w.steps}")
    return w.x


@cases.add(({"a": 1.0, "n": 0}, X), ({"a": -1.0, "n": 0}, X))
def dict_argument_in_loop(d, x):
    for v in x:
        d["a"] += v
        if v > 0:
            d["n"] += 1
    return d["a"]


@cases.add(([0.0, 0.0], X), ([1.0, 0.5], X))
def list_argument_in_loop(acc, x):
    for v in x:
        acc[0], acc[1] = acc[1], acc[0] + v
    return acc[0]


@cases.add((X, 3), (X, 0))
def closure_counter(x, n):
    calls = 0

    def f(v):
        nonlocal calls
        calls += 1
        return v * v - 2

    lo, hi = 0.0, 2.0
    while hi - lo > 1e-6:
        mid = (lo + hi) / 2
        if f(mid) < 0:
            lo = mid
        else:
            hi = mid
    return lo, calls


@cases.add((X, 3), (X, 0))
def swap_attributes(x, n):
    class Grid:
        def __init__(self):
            self.u, self.w = x.copy(), np.zeros(5)

        def step(self):
            self.w[1:-1] = 0.5 * (self.u[:-2] + self.u[2:])
            self.u, self.w = self.w, self.u

    g = Grid()
    for _ in range(n):
        g.step()
    return g.u


@cases.add((X, 3), (X, 0), reruns=(1,))
def dict_state_of_arrays(x, n):
    s = {"p": np.zeros(5), "m": np.ones(5), "t": 0}
    for _ in range(n):
        s["t"] += 1
        s["m"] = 0.9 * s["m"] + 0.1 * x
        s["p"] -= s["m"] / s["t"]
    return s


@cases.add((X, 3), (X, 0), reruns=(1,))
def nested_containers(x, n):
    s = {"a": [0.0, {"k": 1}], "b": (1, [2.0])}
    for i in range(n):
        s["a"][0] += x[i]
        s["a"][1]["k"] += i
        s["b"][1][0] *= 0.5
    return s


@cases.add((X, 3), (X, 0))
def objects_in_lists(x, n):
    ps = [Walker(v) for v in (1.0, 2.0)]
    for _ in range(n):
        for p in ps:
            p.step(0.1)
    return ps[0].x, ps[1].x, ps[0].steps


@cases.add((X, 1.0), (X, -1.0))
def object_in_nested_branch_and_loop(x, c):
    w = Walker(c)
    for v in x:
        if v > 0:
            if c > 0:
                w.x += v
            else:
                w.v -= v
        else:
            w.steps += 1
    return w.x, w.v, w.steps


@cases.add((X, 3), (X, 0), reruns=(1,))
def attribute_changes_type(x, n):
    w = Walker(0)
    for i in range(n):
        w.x = w.x + 0.5
    return w.x


@cases.add((Walker(1.0), 3), (Walker(1.0), 0), reruns=(1,))
def new_attribute_in_loop(w, n):
    for i in range(n):
        w.last = i
    return w.x


@cases.add((X, 2), (X, 4))
def list_append_static_then_loop(x, n):
    out = [x[0]]
    for k in range(3):
        out.append(out[-1] * 2)
    for i in range(n):
        out[0] = out[0] + i
    return out


@cases.add((X,), (-X,))
def append_over_array(x):
    out = []
    for v in x:
        out.append(v * 2)
    return out


@cases.add((X,), (-X,))
def append_under_test(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out


@cases.add((X, 3), (X, 5))
def history_of_objects(x, n):
    w = Walker(x[0])
    hist = []
    for _ in range(n):
        w.step(0.5)
        hist.append(w.x)
    return hist


@cases.add((X,))
def iterator_advanced_in_loop(x):
    it = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    t = 0.0
    for v in x:
        t += v * next(it)
    return t


@cases.add((X,), (-X,))
def set_and_dict_keys_in_loop(x):
    seen = set()
    count = {}
    for k, v in enumerate(x):
        seen.add(k % 2)
        count[k] = v
    return seen, count


test_state = cases.tests()
