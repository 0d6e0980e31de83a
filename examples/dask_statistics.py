"""Statistics of an array that is ten times as large as what the devices may hold, by Dask: a worker for each device.

Run it with several CPU devices: CUPOLA_DEVICE=cpu CUPOLA_CPU_DEVICES=3 python examples/dask_statistics.py
"""

import dask
import dask.array as da
import distributed
import numpy

import cupola.dask


def main(rows: int = 6000, columns: int = 1000, workers: int = 3, device_memory_limit: str = "1.6 MB") -> None:
    with (
        cupola.dask.local_cluster(workers, device_memory_limit=device_memory_limit) as cluster,
        distributed.Client(cluster) as client,
    ):
        x = da.random.default_rng(1).normal(3, 2, (rows, columns), chunks=(rows // 60, columns)).persist()
        mean, deviation = dask.compute(x.mean(axis=0), x.std(axis=0))
        standard = (x - mean) / deviation
        largest = float(abs(standard).max().compute())
        moved = sum(client.run(lambda dask_worker: dask_worker.data.moved).values())
        print(
            f"{x.nbytes / 1e6:.0f} MB on {workers} workers of {device_memory_limit}; {moved} results moved to the host"
        )
        print(
            f"mean {float(mean.mean()):.3f}, deviation {float(deviation.mean()):.3f}, at most {largest:.2f} of it away"
        )
        numpy.testing.assert_allclose(float(standard.mean().compute()), 0, atol=1e-9)
        numpy.testing.assert_allclose(float(standard.std().compute()), 1, rtol=1e-9)


if __name__ == "__main__":
    main()
