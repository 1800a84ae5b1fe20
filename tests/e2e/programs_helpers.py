"""A module of helpers that programs under test import."""

import numpy as np

CONSTANT = 3.5


def scaled(x, k=1.5):
    return x * k * CONSTANT


def iterate(x, steps):
    for _ in range(steps):
        x = _step(x)
    return x


def _step(x):
    return x - 0.5 * (x * x - 1) / np.maximum(np.abs(x), 0.1)


class Statistics:
    def __init__(self, x):
        self.x = x
        self.mean = x.mean()

    @property
    def deviation(self):
        return np.sqrt(((self.x - self.mean) ** 2).mean())

    def standardised(self):
        return (self.x - self.mean) / self.deviation
