"""Nussinov's dynamic program: the largest number of paired bases in a folded RNA strand (int32 table)."""

import numpy as np

SIZES = {"tiny": (8,), "small": (40,), "medium": (120,), "large": (220,)}
WRITES = ()


def nussinov(bases):
    n = bases.shape[0]
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1], table[i + 1, j])
            if i < j - 1:
                pair = 1 if bases[i] + bases[j] == 3 else 0
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + pair)
            else:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def loops(bases):
    """The largest value stays in a register."""
    n = bases.shape[0]
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            best = max(table[i, j], max(table[i, j - 1], table[i + 1, j]))
            pair = np.int32(0)
            if i < j - 1 and bases[i] + bases[j] == 3:
                pair = np.int32(1)
            best = max(best, np.int32(table[i + 1, j - 1] + pair))
            for k in range(i + 1, j):
                best = max(best, np.int32(table[i, k] + table[k + 1, j]))
            table[i, j] = best
    return table


def loops_by_rows(bases):
    """k outside j, so that the innermost loop runs along rows of the table: LLVM can vectorise it.

    Row i is finished from left to right, each element at once added to the sums of those behind it.
    """
    n = bases.shape[0]
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        row = table[i]
        for j in range(i + 1, n):
            best = max(row[j], max(row[j - 1], table[i + 1, j]))
            pair = np.int32(0)
            if i < j - 1 and bases[i] + bases[j] == 3:
                pair = np.int32(1)
            row[j] = max(best, np.int32(table[i + 1, j - 1] + pair))
            if j + 1 < n:
                first = row[j]
                below = table[j + 1]
                for m in range(j + 1, n):
                    row[m] = max(row[m], np.int32(first + below[m]))
    return table


def initialize(size):
    (n,) = SIZES[size]
    return (np.random.default_rng(13).integers(0, 4, n).astype(np.int32),)


def element_steps(size):
    (n,) = SIZES[size]
    return n**3 / 6


def numba_variants():
    return {"as_is": nussinov, "loops": loops, "loops_by_rows": loops_by_rows}
