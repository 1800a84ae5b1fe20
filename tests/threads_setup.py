"""Threads in tests: everything that can be split is, and what has run in the pool is counted."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import jitgraph as jg
from jitgraph import compiler
from jitgraph.runtime import threads, threads_code
from jitgraph.schedule import parallel, pieces


@contextmanager
def eager_threads() -> Iterator[None]:
    """Every region is worth it, arrays are cut from 8192 elements on, and pieces are small."""
    before = jg.get_num_threads()
    with (
        mock.patch.multiple(threads, WARM=0, COLD=0, PIECE=1000),
        mock.patch.object(pieces, "LARGE", 8192),
        mock.patch.multiple(parallel, LEAST=0, ELEMENTS=8),
        jg.config.override(cache=False),
    ):
        compiler._codes.clear()
        jg.set_num_threads(2)
        try:
            yield
        finally:
            compiler._codes.clear()
    jg.set_num_threads(before)


def regions_run() -> int:
    """How many regions and products the pool has run in this process."""
    if not threads._pool.addresses:
        return 0
    ticket = ctypes.c_uint64.from_address(threads._pool.addresses["state"] + threads_code.TICKET).value
    return ticket >> 33
