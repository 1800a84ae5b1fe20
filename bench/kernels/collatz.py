"""The longest Collatz chain below a limit: scalars only, a `while` of data-dependent length in a `for`."""

#: limit, steps that all chains take
SIZES = {"tiny": (12, 81), "small": (100, 3117), "medium": (10_000, 849_637), "large": (100_000, 10_753_712)}
WRITES = ()


def collatz(limit):
    longest = 0
    for start in range(1, limit):
        n = start
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        longest = max(longest, steps)
    return longest


def loops(limit):
    """Bits instead of remainders and quotients."""
    longest = 0
    for start in range(1, limit):
        n = start
        steps = 0
        while n != 1:
            n = 3 * n + 1 if n & 1 else n >> 1
            steps += 1
        longest = max(longest, steps)
    return longest


def initialize(size):
    return SIZES[size][:1]


def element_steps(size):
    return SIZES[size][1]


def numba_variants():
    return {"as_is": collatz, "loops": loops}
