"""Stockham's fast Fourier transform, radix R: each stage a product with twiddle factors and small transforms.

Stage i sees the n = R**K numbers as (R**i, R, R**(K - i - 1)).
"""

import numpy as np

#: radix, stages
SIZES = {"tiny": (2, 3), "small": (2, 8), "medium": (4, 8), "large": (4, 10)}
WRITES = ("y",)
TOLERANCE = 1e-12


def stockham_fft(R, K, x, y):
    y[:] = x
    turn = np.arange(R)
    small = np.exp(-2.0j * np.pi / R * turn[:, np.newaxis] * turn)
    for i in range(K):
        done, left = R**i, R ** (K - i - 1)
        part = np.reshape(y, (done, R, left)).transpose(1, 0, 2)
        phase = turn[:, np.newaxis] * np.arange(done) / (done * R)
        twiddled = np.exp(-2.0j * np.pi * phase)[:, :, np.newaxis] * part
        y[:] = (small @ np.reshape(twiddled, (R, done * left))).reshape(-1)


def loops(R, K, x, y):
    n = x.shape[0]
    other = np.empty_like(y)
    small = np.empty((R, R), np.complex128)
    for a in range(R):
        for b in range(R):
            small[a, b] = np.exp(-2.0j * np.pi / R * a * b)
    for t in range(n):
        y[t] = x[t]
    done = 1
    for _ in range(K):
        left = n // (done * R)
        for a in range(R):
            for d in range(done):
                for r in range(left):
                    other[(a * done + d) * left + r] = 0.0
        for b in range(R):
            for d in range(done):
                twiddle = np.exp(-2.0j * np.pi * (b * d / (done * R)))
                for a in range(R):
                    factor = small[a, b] * twiddle
                    for r in range(left):
                        other[(a * done + d) * left + r] += factor * y[(d * R + b) * left + r]
        for t in range(n):
            y[t] = other[t]
        done *= R


def initialize(size):
    R, K = SIZES[size]
    rng = np.random.default_rng(21)
    x = rng.normal(0, 1, R**K) + 1j * rng.normal(0, 1, R**K)
    return R, K, x, np.zeros_like(x)


def element_steps(size):
    R, K = SIZES[size]
    return R**K * K


def numba_variants():
    return {"loops": loops}
