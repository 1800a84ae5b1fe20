"""`jg.random`: the same numbers eager and compiled, by known answers and statistics; `jg.debug`."""

import math
import statistics

import numpy as np
import pytest

import jitgraph as jg

KEY = jg.random.key(2024)
N = 40_000

DRAWS = {
    "bits": lambda k: jg.random.bits(k, (7, 3)),
    "bits64": lambda k: jg.random.bits(k, 9, np.uint64),
    "uniform": lambda k: jg.random.uniform(k, (5, 4)),
    "uniform32": lambda k: jg.random.uniform(k, 33, np.float32, -1.0, 3.0),
    "uniform_scalar": lambda k: jg.random.uniform(k),
    "normal": lambda k: jg.random.normal(k, (50, 4)),
    "normal32": lambda k: jg.random.normal(k, 101, np.float32),
    "truncated": lambda k: jg.random.truncated_normal(k, -0.5, 2.0, 60),
    "exponential": lambda k: jg.random.exponential(k, 100),
    "gumbel": lambda k: jg.random.gumbel(k, (3, 30)),
    "laplace": lambda k: jg.random.laplace(k, 55),
    "randint": lambda k: jg.random.randint(k, (20,), -3, 11),
    "randint32": lambda k: jg.random.randint(k, (20,), 0, 5, np.int32),
    "bernoulli": lambda k: jg.random.bernoulli(k, 0.3, (40,)),
    "rademacher": lambda k: jg.random.rademacher(k, (40,)),
    "permutation": lambda k: jg.random.permutation(k, 17),
    "permuted_rows": lambda k: jg.random.permutation(k, np.arange(12.0).reshape(6, 2)),
    "choice": lambda k: jg.random.choice(k, np.arange(5.0), (8,)),
    "choice_without": lambda k: jg.random.choice(k, 9, (4,), replace=False),
    "choice_weighted": lambda k: jg.random.choice(k, 3, (30,), p=np.array([0.2, 0.5, 0.3])),
    "categorical": lambda k: jg.random.categorical(k, np.array([[0.1, 2.0, -1.0], [0.0, 0.0, 3.0]])),
    "split": lambda k: jg.random.split(k, 5),
    "fold_in": lambda k: jg.random.fold_in(k, 3),
    "chain": lambda k: jg.random.normal(jg.random.fold_in(jg.random.split(k)[1], 2), 6),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_bits_eager_and_compiled(name):
    draw = DRAWS[name]
    eager, compiled = draw(KEY), jg.jit(draw)(KEY)
    assert type(eager) is type(compiled)
    assert np.asarray(eager).dtype == np.asarray(compiled).dtype
    np.testing.assert_array_equal(eager, compiled, strict=True)
    other = draw(jg.random.key(2025))
    assert not np.array_equal(eager, other) or np.size(eager) < 6


def test_known_answers():
    """Of the reference implementation of Threefry-2x32 with 20 rounds."""
    for word, expected in ((0, (0x6B200159, 0x99BA4EFE)), (0xFFFFFFFF, (0x1CB996FC, 0xBB002BE7))):
        counter = np.full(1, word, np.uint32)
        found = jg.random._hash(np.full(2, word, np.uint32), counter, counter)
        assert tuple(int(x[0]) for x in found) == expected


def test_seeds_and_counters_inside_jit():
    @jg.jit
    def f(seed, n):
        key = jg.random.key(seed)
        total = np.zeros(3)
        for i in range(n):
            total += jg.random.normal(jg.random.fold_in(key, i), 3)
        return total

    def plain(seed, n):
        key = jg.random.key(seed)
        return sum((jg.random.normal(jg.random.fold_in(key, i), 3) for i in range(n)), np.zeros(3))

    for seed, n in ((0, 5), (-1, 20), (2**40 + 3, 7)):
        np.testing.assert_array_equal(f(seed, n), plain(seed, n))


def test_sizes_of_arguments():
    @jg.jit
    def dropout(key, x, rate):
        return np.where(jg.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0.0)

    for n in (5, 8, 100):
        x = np.arange(float(n))
        keep = jg.random.bernoulli(KEY, 0.75, x.shape)
        np.testing.assert_array_equal(dropout(KEY, x, 0.25), np.where(keep, x / 0.75, 0.0))
    assert dropout.cache_info().misses == 1


def test_elements_do_not_depend_on_the_size():
    np.testing.assert_array_equal(jg.random.normal(KEY, 10), jg.random.normal(KEY, 1000)[:10])


def chi_square(counts, expected):
    return float(((counts - expected) ** 2 / expected).sum())


def test_uniform_numbers():
    for x in (jg.random.uniform(KEY, N), jg.random.uniform(KEY, N, np.float32)):
        assert x.min() >= 0
        assert x.max() < 1
        counts = np.histogram(x, 64, (0, 1))[0]
        assert chi_square(counts, N / 64) < 110  # 63 degrees of freedom: 1 in 5000
        assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 5 / math.sqrt(N)


def test_normal_numbers():
    x = jg.random.normal(KEY, N)
    assert abs(x.mean()) < 5 / math.sqrt(N)
    assert abs((x**2).mean() - 1) < 5 * math.sqrt(2 / N)
    assert abs((x**4).mean() - 3) < 5 * math.sqrt(96 / N)
    edges = np.array([statistics.NormalDist().inv_cdf(k / 64) for k in range(1, 64)])
    counts = np.bincount(np.searchsorted(edges, x), minlength=64)
    assert chi_square(counts, N / 64) < 110


def test_the_quantile_is_right_to_the_last_bits():
    exact = statistics.NormalDist()
    p = np.concatenate([np.linspace(0.001, 0.999, 997), 2.0 ** -np.arange(11.0, 53), 1 - 2.0 ** -np.arange(11.0, 53)])
    np.testing.assert_allclose(jg.random._normal_quantile(p), [exact.inv_cdf(v) for v in p], rtol=1e-13)
    np.testing.assert_allclose(jg.random._log(p), np.log(p), rtol=4e-16)


def test_bits_are_balanced():
    words = jg.random.bits(KEY, N, np.uint64)
    share = np.array([((words >> np.uint64(b)) & np.uint64(1)).mean() for b in range(64)])
    assert abs(share - 0.5).max() < 5 * 0.5 / math.sqrt(N)


def test_other_distributions():
    assert abs(jg.random.exponential(KEY, N).mean() - 1) < 5 / math.sqrt(N)
    assert abs(jg.random.gumbel(KEY, N).mean() - 0.5772156649) < 5 * 1.2825 / math.sqrt(N)
    assert abs(np.abs(jg.random.laplace(KEY, N)).mean() - 1) < 5 / math.sqrt(N)
    t = jg.random.truncated_normal(KEY, -0.5, 2.0, N)
    assert t.min() >= -0.5
    assert t.max() <= 2.0
    counts = np.bincount(jg.random.randint(KEY, (N,), 0, 10), minlength=10)
    assert chi_square(counts, N / 10) < 35
    p = np.array([0.1, 0.2, 0.3, 0.4])
    counts = np.bincount(jg.random.categorical(KEY, np.log(p), shape=(N,)), minlength=4)
    assert chi_square(counts, N * p) < 25
    counts = np.bincount(jg.random.choice(KEY, 4, (N,), p=p), minlength=4)
    assert chi_square(counts, N * p) < 25
    assert sorted(jg.random.permutation(KEY, 100)) == list(range(100))
    assert len(set(jg.random.choice(KEY, 50, (50,), replace=False).tolist())) == 50


def test_keys_are_independent():
    keys = jg.random.split(KEY, 200)
    assert len({tuple(k) for k in keys.tolist()}) == 200
    x = np.stack([jg.random.normal(k, 200) for k in keys])
    assert abs(x.mean()) < 5 / 200
    assert abs(np.corrcoef(x[0], x[1])[0, 1]) < 5 / math.sqrt(200)


def test_refusals():
    with pytest.raises(TypeError, match="float16"):
        jg.random.normal(KEY, 3, np.float16)
    with pytest.raises(TypeError, match="int8"):
        jg.random.bits(KEY, 3, np.int8)
    with pytest.raises(ValueError, match="without replacement"):
        jg.random.choice(KEY, 3, (4,), replace=False)


# --- jg.debug


def shown(f, capsys, *args):
    f(*args)
    return capsys.readouterr().out


def test_debug_print(capsys):
    def f(x, n):
        jg.debug.print("start {} of {n:03d}, {name}", x, n=n, name="f")
        total = 0.0
        for k in range(n):
            if x[k] > 1:
                jg.debug.print("  {}: {:.2f}", k, x[k])
            total += x[k]
        jg.debug.print("total {total:.1f} {0.shape}", x, total=total)
        return total

    compiled = jg.jit(f)
    for args in ((np.arange(4.0), 4), (np.ones(3), 2), (np.arange(4.0), 3)):
        assert shown(compiled, capsys, *args) == shown(f, capsys, *args)


def test_tap():
    seen = []

    @jg.jit
    def f(x):
        y = jg.debug.tap(x * 2, lambda v: seen.append(v.sum()))
        return y + 1

    np.testing.assert_array_equal(f(np.ones(3)), [3, 3, 3])
    f(np.zeros(3))
    assert seen == [6.0, 0.0]


def test_breakpoint(monkeypatch):
    seen = []
    monkeypatch.setattr("builtins.breakpoint", lambda: seen.append("stopped"))

    @jg.jit
    def f(x):
        y = x * 2
        jg.debug.breakpoint(y=y)
        return y

    f(np.ones(3))
    f(np.ones(3))
    assert seen == ["stopped", "stopped"]
