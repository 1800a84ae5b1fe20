"""The 16-bit cyclic redundancy check of bytes, bit by bit."""

import numpy as np

SIZES = {"tiny": (9,), "small": (200,), "medium": (4000,), "large": (400_000,)}
WRITES = ()


def crc16(data, polynomial):
    crc = 0xFFFF
    for byte in data:
        current = int(byte)
        for _ in range(8):
            if (crc ^ current) & 1:
                crc = (crc >> 1) ^ polynomial
            else:
                crc >>= 1
            current >>= 1
    crc = ~crc & 0xFFFF
    return (crc << 8 & 0xFF00) | (crc >> 8 & 0xFF)


def loops(data, polynomial):
    """The choice without a branch."""
    crc = 0xFFFF
    for i in range(data.shape[0]):
        current = np.int64(data[i])
        for _ in range(8):
            crc = (crc >> 1) ^ (polynomial & -((crc ^ current) & 1))
            current >>= 1
    crc = ~crc & 0xFFFF
    return (crc << 8 & 0xFF00) | (crc >> 8 & 0xFF)


def initialize(size):
    (n,) = SIZES[size]
    return np.random.default_rng(22).integers(0, 256, n).astype(np.uint8), 0x8408


def element_steps(size):
    (n,) = SIZES[size]
    return 8 * n


def numba_variants():
    return {"as_is": crc16, "loops": loops}
