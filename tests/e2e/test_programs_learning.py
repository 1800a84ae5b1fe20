"""Programs of machine learning, statistics and finance, many with gradients in the three modes."""

import math

import numpy as np

from tests.e2e.programs import Programs

programs = Programs()


def matrix(r, n):
    return (r.standard_normal((n, n + 3)),)


@programs.add(matrix, ulp=16)
def softmax_rows(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@programs.add(matrix, ulp=16)
def log_softmax_columns(x):
    shifted = x - np.max(x, axis=0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=0))


@programs.add(lambda r, n: (r.standard_normal((2, n)).astype("f4"),), ulp=32)
def softmax_float32(x):
    e = np.exp(x - x.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    return e


@programs.add(lambda r, n: (r.standard_normal((n, 6)), r.standard_normal(6), r.standard_normal(6)))
def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * gain + bias


@programs.add(lambda r, n: (r.standard_normal((n, 6)).astype(np.float32), r.standard_normal(6).astype(np.float32)))
def rms_norm(x, gain):
    return x * (1.0 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)) * gain


@programs.add(lambda r, n: tuple(r.standard_normal((n, 4)) for _ in range(3)), ulp=32)
def attention(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    mask = np.tril(np.ones((q.shape[0], q.shape[0]), dtype=bool))
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v


@programs.add(lambda r, n: tuple(r.standard_normal((2, n, 6)) for _ in range(3)), ulp=32)
def multi_head_attention(q, k, v):
    batch, length, width = q.shape
    heads = 3

    def split(x):
        return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    q, k, v = split(q), split(k), split(v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width // heads)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return (w @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)


@programs.add(
    lambda r, n: (
        r.standard_normal((n, 3)),
        [(r.standard_normal((3, 5)), r.standard_normal(5)), (r.standard_normal((5, 2)), r.standard_normal(2))],
    ),
    ulp=16,
)
def mlp_forward(x, layers):
    for w, b in layers[:-1]:
        x = np.tanh(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


@programs.add(lambda r, n: ({"w": r.standard_normal((n, 2)), "b": r.standard_normal(2)}, r.standard_normal((4, n))))
def relu_layer_of_a_dict(params, x):
    return np.maximum(x @ params["w"] + params["b"], 0)


@programs.add(
    lambda r, n: (r.standard_normal((n, 3)), 0.5, r.standard_normal((7, n)), r.standard_normal((7, 3))),
    ulp=16,
    grad=(0, 1),
)
def mean_squared_error(w, b, x, y):
    return ((x @ w + b - y) ** 2).mean()


@programs.add(
    lambda r, n: (r.standard_normal(n), r.standard_normal((9, n)), (r.standard_normal(9) > 0).astype(float)),
    ulp=32,
    grad=(0,),
)
def logistic_loss(w, x, y):
    z = x @ w
    p = 1 / (1 + np.exp(-z))
    return -np.mean(y * np.log(p + 1e-12) + (1 - y) * np.log(1 - p + 1e-12))


@programs.add(
    lambda r, n: (r.standard_normal((n, 4)), r.standard_normal((4, 3)), r.standard_normal((n, 4)) * 0 + 1),
    ulp=32,
    grad=(0, 1),
)
def two_layers_loss(x, w, scale):
    h = np.tanh(x * scale) @ w
    return np.sum(h * h) / h.size


@programs.add(lambda r, n: (r.standard_normal((n, 5)), r.integers(0, 5, n)), ulp=64, grad=(0,))
def cross_entropy(logits, labels):
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=1))
    picked = shifted[np.arange(logits.shape[0]), labels]
    return np.mean(log_sum - picked)


@programs.add(lambda r, n: (r.standard_normal((n, 2)), r.standard_normal((3, 2))), ulp=8)
def k_means_step(points, centres):
    distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    nearest = distance.argmin(axis=1)
    one_hot = nearest[:, None] == np.arange(centres.shape[0])
    counts = one_hot.sum(axis=0)
    sums = one_hot.T.astype(points.dtype) @ points
    return nearest, sums / np.maximum(counts, 1)[:, None]


@programs.add(lambda r, n: (r.standard_normal((n, 2)), r.standard_normal((3, 2))), sizes=(6, 9, 15))
def k_means_with_a_loop_over_clusters(points, centres):
    new = np.zeros_like(centres)
    nearest = np.argmin(np.sum((points[:, np.newaxis] - centres) ** 2, axis=-1), axis=-1)
    for k in range(len(centres)):
        members = nearest == k
        count = members.sum()
        if count > 0:
            new[k] = (points * members[:, None]).sum(axis=0) / count
        else:
            new[k] = centres[k]
    return new


@programs.add(lambda r, n: (r.standard_normal((n, 2)), r.standard_normal((n + 1, 2))))
def pairwise_distances(a, b):
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


@programs.add(lambda r, n: (r.standard_normal((n, 3)),), ulp=64)
def gram_trick_distances(a):
    squares = (a**2).sum(axis=1)
    return np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * a @ a.T, 0))


@programs.add(lambda r, n: (r.standard_normal((n, 2)),), ulp=16, grad=(0,))
def rbf_kernel_energy(a):
    d = a[:, None, :] - a[None, :, :]
    return np.exp(-0.5 * np.sum(d**2, axis=-1)).sum()


@programs.add(lambda r, n: (r.standard_normal((n, 2)), r.standard_normal(n)), ulp=4096)
def least_squares_by_normal_equations(x, y):
    a = np.concatenate([x, np.ones((x.shape[0], 1))], axis=1)
    ata = a.T @ a
    aty = a.T @ y
    w = np.zeros(3)
    for _ in range(20):
        for i in range(3):
            w[i] = (aty[i] - ata[i] @ w + ata[i, i] * w[i]) / ata[i, i]
    return w


@programs.add(lambda r, n: (r.standard_normal((n, 3)), r.standard_normal(n), 0.01, 20), ulp=1024)
def linear_regression_training(x, y, rate, steps):
    w = np.zeros(x.shape[1])
    b = 0.0
    for _ in range(steps):
        error = x @ w + b - y
        w -= rate * 2 * (x.T @ error) / x.shape[0]
        b -= rate * 2 * error.mean()
    return w, b


@programs.add(lambda r, n: (r.standard_normal((n, 4)),))
def z_score(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


@programs.add(lambda r, n: (r.standard_normal((n, 4)), r.standard_normal((3, n, 2))))
def statistics_over_axes(x, y):
    return (
        x.mean(),
        x.mean(0),
        x.var(1),
        x.std(ddof=1),
        y.sum((0, 2)),
        y.max(axis=(0, 1)),
        y.min(),
        y.prod(axis=2),
        np.any(x > 1, axis=0),
        np.all(x < 3),
        np.ptp(x, axis=0),
        np.count_nonzero(x > 0),
    )


@programs.add(lambda r, n: (r.standard_normal((3, n)),), ulp=16)
def covariance_by_hand(x):
    centred = x - x.mean(axis=1, keepdims=True)
    cov = centred @ centred.T / (x.shape[1] - 1)
    d = np.sqrt(np.diag(cov))
    return cov, cov / np.outer(d, d)


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal(n)), ulp=16)
def pearson_correlation(x, y):
    xm, ym = x - x.mean(), y - y.mean()
    return (xm * ym).sum() / np.sqrt((xm**2).sum() * (ym**2).sum())


@programs.add(lambda r, n: (r.standard_normal(n),), ulp=8)
def moments(x):
    m = x.mean()
    s = x.std()
    z = (x - m) / s
    return {"mean": m, "std": s, "skew": (z**3).mean(), "kurtosis": (z**4).mean() - 3}


@programs.add(lambda r, n: (r.standard_normal(n),))
def min_max_normalise(x):
    low, high = x.min(), x.max()
    return (x - low) / (high - low)


@programs.add(lambda r, n: (r.standard_normal((n, 3)),))
def normalise_rows_in_place(x):
    x /= np.sqrt((x * x).sum(axis=1))[:, None]
    return x


@programs.add(lambda r, n: (r.uniform(80, 120, n), 100.0, r.uniform(0.1, 2, n), 0.02, 0.3), ulp=256)
def black_scholes(spot, strike, time, rate, vol):
    def cdf(x):
        # Abramowitz and Stegun 26.2.17
        k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
        poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        tail = poly * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return np.where(x >= 0, 1 - tail, tail)

    sigma = vol * np.sqrt(time)
    d1 = (np.log(spot / strike) + (rate + 0.5 * vol**2) * time) / sigma
    d2 = d1 - sigma
    discount = strike * np.exp(-rate * time)
    call = spot * cdf(d1) - discount * cdf(d2)
    put = discount * cdf(-d2) - spot * cdf(-d1)
    return call, put


@programs.add(lambda r, n: (100.0, 105.0, 0.03, 0.2, r.standard_normal(20 * n)), ulp=64, grad=(0, 3))
def monte_carlo_call(spot, strike, rate, vol, normals):
    terminal = spot * np.exp((rate - 0.5 * vol * vol) + vol * normals)
    return np.exp(-rate) * np.maximum(terminal - strike, 0.0).mean()


@programs.add(lambda r, n: (r.standard_normal((n, 12)), 100.0, 0.01), ulp=64)
def monte_carlo_paths_asian(normals, spot, drift):
    logs = np.cumsum(drift + 0.1 * normals, axis=1)
    paths = spot * np.exp(logs)
    average = paths.mean(axis=1)
    drawdown = (np.maximum(paths, spot) - paths).max()
    return average, drawdown


@programs.add(lambda r, n: (100.0, 95.0, 0.02, 0.25, 8 * n), ulp=512)
def binomial_tree_american_put(spot, strike, rate, vol, steps):
    dt = 1.0 / steps
    up = math.exp(vol * math.sqrt(dt))
    p = (math.exp(rate * dt) - 1 / up) / (up - 1 / up)
    j = np.arange(steps + 1)
    price = spot * up ** (2.0 * j - steps)
    value = np.maximum(strike - price, 0.0)
    for i in range(steps - 1, -1, -1):
        value[: i + 1] = math.exp(-rate * dt) * (p * value[1 : i + 2] + (1 - p) * value[: i + 1])
        exercise = strike - spot * up ** (2.0 * np.arange(i + 1) - i)
        value[: i + 1] = np.maximum(value[: i + 1], exercise)
    return value[0]


@programs.add(lambda r, n: (r.uniform(-0.05, 0.05, n), 12), ulp=16)
def portfolio_sharpe(returns, periods):
    excess = returns - 0.001
    growth = (1 + returns).cumprod()
    return np.sqrt(periods) * excess.mean() / excess.std(ddof=1), growth[-1] ** (periods / len(returns)) - 1


@programs.add(lambda r, n: (r.uniform(50, 60, n), 3))
def moving_average_by_cumsum(x, window):
    c = np.cumsum(np.concatenate(([0.0], x)))
    return (c[window:] - c[:-window]) / window


@programs.add(lambda r, n: (r.standard_normal(n), 0.3))
def exponential_smoothing(x, alpha):
    out = np.empty_like(x)
    out[0] = x[0]
    for i in range(1, x.size):
        out[i] = alpha * x[i] + (1 - alpha) * out[i - 1]
    return out


@programs.add(lambda r, n: (r.standard_normal((n, 2)), r.uniform(0.1, 1, n)), ulp=16)
def weighted_average(x, w):
    return (x * w[:, None]).sum(0) / w.sum(), np.average(x, axis=0, weights=w)


@programs.add(lambda r, n: (r.standard_normal(n), 1.0), grad=(0,), ulp=8)
def huber_loss(residual, delta):
    a = np.abs(residual)
    return np.where(a <= delta, 0.5 * residual**2, delta * (a - 0.5 * delta)).sum()


@programs.add(lambda r, n: (r.standard_normal(n), 5), grad=(0,), ulp=8)
def loss_after_a_time_loop(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = v[1:-1] + 0.2 * (v[2:] - 2 * v[1:-1] + v[:-2])
    return np.sum(v**2)


@programs.add(lambda r, n: (r.standard_normal(n), r.standard_normal((n, n)) * 0.1, 4), grad=(0, 1), ulp=64)
def loss_of_a_recurrent_network(h, w, steps):
    for _ in range(steps):
        h = np.tanh(w @ h)
    return (h * h).sum()


@programs.add(lambda r, n: (r.standard_normal(n), 0.7), grad=(0, 1), ulp=8)
def rosenbrock(x, a):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)


@programs.add(lambda r, n: (r.uniform(1, 2), 2.0), grad=(0, 1), ulp=16)
def newton_iteration_differentiated(x, a):
    for _ in range(6):
        if x * x > 0.1 * a:
            x = 0.5 * (x + a / x)
        else:
            x = x + 0.1
    return x


@programs.add(lambda r, n: (r.standard_normal((n, 3)), r.integers(0, n, 4)), grad=(0,), ulp=8)
def embedding_lookup_loss(table, ids):
    return (table[ids] ** 3).sum()


@programs.add(lambda r, n: (r.standard_normal((n, 3)),), grad=(0,), ulp=8)
def normalised_cosine_loss(x):
    unit = x / np.sqrt((x * x).sum(axis=1, keepdims=True))
    return ((unit @ unit.T) ** 2).sum()


@programs.add(lambda r, n: (r.standard_normal((n, 3)), r.standard_normal((3, 2))), grad=(0, 1), ulp=32)
def stacked_and_concatenated_loss(x, w):
    both = np.concatenate([x @ w, np.sin(x)], axis=1)
    s = np.stack([both, both * 2])
    return s[:, 1:].sum() * s.max()


@programs.add(lambda r, n: (r.standard_normal(n),), grad=(0,), ulp=8)
def cumulative_loss(x):
    c = np.cumsum(x)
    return (c[::2] ** 2).sum() + np.clip(x, -0.5, 0.5).sum()


test_programs = programs.tests()
test_gradients = programs.gradient_tests()
