"""A jitted function over the blocks of a dask array, in worker processes that share the disk cache.

The client compiles once (`jg.warmup`); the workers trace, and read the machine code from disk. Needs
`pip install 'jitgraph[dask]'`.
"""

import numpy as np

import jitgraph as jg

GAIN = 1.5


@jg.jit
def smooth(block):
    """Three sweeps of a running mean along the last axis, with a weight that is a global of this module."""
    out = block.copy()
    for _ in range(3):
        out[:, 1:-1] = (block[:, :-2] + GAIN * block[:, 1:-1] + block[:, 2:]) / (2 + GAIN)
        block = out.copy()
    return np.sqrt(np.abs(out))


def process(block):
    """What a worker does with a block; it notes how its machine code came about."""
    from distributed import get_worker

    out = smooth(block)
    get_worker().sources = [miss.source for miss in smooth.explain_misses()]
    return out


def sources(dask_worker):
    return getattr(dask_worker, "sources", [])


def main(rows=2000, columns=300, workers=2):
    """Compute with dask and with NumPy; returns whether the bits are the same, and how the workers got their code."""
    import dask.array as da
    from distributed import Client, LocalCluster

    data = np.random.default_rng(0).normal(size=(rows, columns))
    size = rows // (2 * workers)
    jg.warmup(smooth, jg.ShapeDtype((size, columns), data.dtype))
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        blocks = da.from_array(data, chunks=(size, columns))
        got = blocks.map_blocks(process, dtype=data.dtype, meta=np.empty((0, 0))).compute()
        codes = client.run(sources)
    want = np.concatenate([smooth.__wrapped__(data[k : k + size].copy()) for k in range(0, rows, size)])
    return np.array_equal(got, want), codes


if __name__ == "__main__":
    same, codes = main()
    print(f"dask and NumPy: {'the same bits' if same else 'DIFFERENT'}")
    for worker, found in codes.items():
        print(f"  {worker}: machine code from {', '.join(found) or 'nowhere, it got no block'}")
