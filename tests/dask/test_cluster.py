"""A cluster with a worker for each device: what does not fit into a device's memory, and a worker that is killed."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import numpy
import pytest

da = pytest.importorskip("dask.array", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
import dask  # noqa: E402

import cupola.dask  # noqa: E402
import cupola.numpy as np  # noqa: E402
from cupola.bindings import runtime  # noqa: E402
from cupola.dask._spilling import SpillToHost  # noqa: E402
from tests import limits, processes  # noqa: E402
from tests.left_behind import nothing_left_behind  # noqa: E402

WORKERS = 3
LIMIT = 8 << 20
CHUNK = 2 << 20  # bytes, which is what the device's memory comes in
MEMORY = 13 * CHUNK  # of each CPU device
# The limit of a test is the only one.
PATIENT = {"distributed.comm.timeouts.connect": "1h", "distributed.comm.timeouts.tcp": "1h"}


def free_memory():
    """What a worker's device still has."""
    return int(runtime.cudaMemGetInfo()[1])


def finished(client, collection, seconds=None):
    """The result of a collection; if that takes too long, what the workers do is told."""
    future = client.compute(collection)
    try:
        return future.result(timeout=limits.seconds() if seconds is None else seconds)
    except TimeoutError:
        print("tasks:", client.call_stack(), "of", client.processing(), file=sys.stderr)
        for address, told in client.run(state_of_worker, wait=True).items():
            print(address, told, sep="\n", file=sys.stderr)
        raise


def state_of_worker(dask_worker):
    """Its status, memory and results, and the stacks of its threads."""
    import faulthandler
    import tempfile

    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        memory = dask_worker.monitor.get_process_memory() >> 20
        kept = (len(dask_worker.data.device), len(dask_worker.data.host.fast), len(dask_worker.data.host.slow))
        return f"{dask_worker.status}, {memory} MiB, results on device, host and disk: {kept}\n{file.read()}"


@contextlib.contextmanager
def small_devices():
    """Give the CPU devices of processes that are started little memory; this process has asked for its own already."""
    cupola.Device(0).set_current()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUPOLA_CPU_MEMORY", str(MEMORY))
        yield


@pytest.fixture(scope="module")
def client():
    with (
        small_devices(),
        dask.config.set(PATIENT),
        cupola.dask.local_cluster(WORKERS, device_memory_limit=LIMIT, memory_limit="4 GiB") as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(WORKERS, timeout=limits.seconds())
        yield client


def test_each_worker_begins_with_a_device_of_its_own(client):
    def first():
        return os.environ["CUDA_VISIBLE_DEVICES"].split(",")[0]

    from cupola import Device

    count = len(Device.get_all_devices())
    names = (os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))).split(",")
    assert sorted(client.run(first).values()) == sorted((names * WORKERS)[:WORKERS])


def test_what_dask_makes_is_on_the_devices(client):
    for x in (da.ones(10, chunks=5), da.random.default_rng(1).random(10, chunks=5)):
        assert type(finished(client, x)) is np.ndarray


def test_more_than_the_device_may_hold(client):
    """Ten times the memory of a CPU device, and ten times what the workers' results may take in all."""
    count, elements = 130, CHUNK // 8
    x = da.random.default_rng(1).random(count * elements, chunks=elements).persist()
    if cupola.Device(0).name.startswith("cupola"):
        assert x.nbytes >= 10 * MEMORY >= 10 * max(client.run(free_memory).values())
    distributed.wait(x, timeout=limits.seconds())
    found = float(finished(client, ((x - x.mean()) ** 2).mean()))
    moved = client.run(lambda dask_worker: dask_worker.data.moved)
    kept = client.run(lambda dask_worker: dask_worker.data.device.total_weight)
    host = finished(client, x.to_backend("numpy"))
    assert host.shape == x.shape and 0.49 < host.mean() < 0.51
    assert abs(found - host.var()) < 1e-9
    assert min(moved.values()) > 0
    assert max(kept.values()) <= LIMIT
    # A pause might not end, as memory that CUDA keeps is not given back.
    assert set(client.run(lambda dask_worker: dask_worker.memory_manager.memory_pause_fraction).values()) == {False}


def test_what_workers_do_is_told(client, capsys):
    def hold():
        distributed.Event("told").wait()

    with pytest.raises(TimeoutError):
        finished(client, dask.delayed(hold)(), seconds=0.5)
    distributed.Event("told", client=client).set()
    told = capsys.readouterr().err
    assert told.count("MiB, results on device, host and disk") == WORKERS and "Current thread" in told


def test_results_go_to_disk_when_the_process_becomes_too_large(device, tmp_path):
    """Dask's worker looks at `fast`, and calls `evict` until its process is small enough."""
    data = SpillToHost(str(tmp_path), device_limit=0, host_limit=1 << 30)
    rows = numpy.arange(12.0).reshape(3, 4)
    data.update({k: (np.asarray(row), k) for k, row in enumerate(rows)})
    data["text"] = "kept on the host"
    assert len(data.fast) == 4 and len(data) == 4
    while data.fast:
        assert data.evict() > 0
    assert len(data.host.slow) == 4 and data["text"] == "kept on the host"
    for k, row in enumerate(rows):
        found, number = data[k]
        assert isinstance(found, np.ndarray) and number == k
        numpy.testing.assert_array_equal(found.to_numpy(), row)


def test_elements_of_every_type_travel(client):
    for dtype in ("?", "i1", "u8", "f2", "f4", "f8", "c8", "c16"):
        x = np.asarray(numpy.arange(24).reshape(2, 3, 4).astype(dtype))[:, ::2, ::-1]
        found = client.submit(lambda y: y, x, pure=False).result()
        assert type(found) is np.ndarray and found.dtype == dtype
        numpy.testing.assert_array_equal(found.to_numpy(), x.to_numpy())
    assert client.submit(lambda: np.zeros((0, 3))).result().shape == (0, 3)


def test_within_a_machine_arrays_do_not_go_through_the_host(client):
    from cupola import _same_host

    def claims():
        from cupola import _same_host

        return _same_host.claims

    def offered(dask_worker):
        from cupola import _same_host

        return len(_same_host._offers.kept) if _same_host._offers else 0

    first, second = list(client.scheduler_info()["workers"])[:2]
    before = client.run(claims)[second]
    large = client.submit(lambda: np.arange(300_000.0).reshape(300, 1000)[::2, ::-1], workers=[first], pure=False)
    small = client.submit(lambda: np.arange(6), workers=[first], pure=False)
    found = client.submit(lambda x, y: (x + 1, y), large, small, workers=[second], pure=False).result()
    numpy.testing.assert_array_equal(found[0].to_numpy(), numpy.arange(300_000.0).reshape(300, 1000)[::2, ::-1] + 1)
    numpy.testing.assert_array_equal(found[1].to_numpy(), numpy.arange(6))
    assert client.run(claims)[second] == before + 1
    assert client.run(offered)[first] == 0
    assert _same_host.claims == 0  # the client gets arrays as bytes


def test_kernels_over_chunks_with_their_neighbours(client):
    def smooth(block):
        """A kernel of CUDA C++ on a chunk with a border of one element."""
        import cupola

        source = """
        extern "C" __global__ void smooth(const double* x, double* y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i > 0 && i < n - 1) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3;
        }"""
        made = np.zeros_like(block)
        config = cupola.LaunchConfig.for_elements(block.size)
        kernel = cupola.compile(source).get_kernel("smooth")
        cupola.launch(cupola.Device().default_stream, config, kernel, block, made, numpy.int32(block.size))
        return made

    def square(block):
        """A kernel on a chunk alone."""
        import cupola

        source = """extern "C" __global__ void square(const double* x, double* y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = x[i] * x[i];
        }"""
        made = np.empty_like(block)
        config = cupola.LaunchConfig.for_elements(block.size)
        kernel = cupola.compile(source).get_kernel("square")
        cupola.launch(cupola.Device().default_stream, config, kernel, block, made, numpy.int32(block.size))
        return made

    host = numpy.random.default_rng(4).random(1000)
    x = da.from_array(np.asarray(host), chunks=150)
    assert abs(float(da.map_blocks(square, x).sum().compute()) - (host**2).sum()) < 1e-9
    found = da.map_overlap(smooth, x, depth=1, boundary="periodic").compute().to_numpy()
    around = numpy.concatenate([host[-1:], host, host[:1]])
    numpy.testing.assert_allclose(found, (around[:-2] + around[1:-1] + around[2:]) / 3)


def test_a_worker_that_is_killed(client):
    x = da.random.default_rng(2).random((2000, 1000), chunks=(100, 1000)).persist()
    distributed.wait(x)
    victim = next(iter(client.run(os.getpid).values()))
    total = client.compute((x * 2).sum())
    os.kill(victim, signal.SIGKILL)
    again = float(finished(client, x.sum()))
    assert abs(float(total.result(timeout=limits.seconds())) - 2 * again) < 1e-6
    assert abs(again - 1e6) < 5e3


# The example, of which one worker is killed while it computes.
KILLED = """
import os, signal, sys
sys.path.insert(0, {folder!r})
import dask
import cupola.dask
import dask_statistics

if __name__ == "__main__":
    start, compute, clusters = cupola.dask.local_cluster, dask.compute, []

    def kept(*arguments, **options):
        clusters.append(start(*arguments, **options))
        return clusters[0]

    def fatal(*arguments):
        os.kill(clusters[0].workers[1].pid, signal.SIGKILL)
        return compute(*arguments)

    cupola.dask.local_cluster, dask.compute = kept, fatal
    dask_statistics.main(1200, 200)
"""


def test_example_with_a_worker_that_is_killed(tmp_path):
    """What Dask says of it, and on a busy machine, goes to the standard error."""
    folder = Path(__file__).resolve().parents[2] / "examples"
    program = tmp_path / "killed.py"
    program.write_text(KILLED.format(folder=str(folder)))
    with nothing_left_behind():
        patient = {f"DASK_{name.replace('.', '__').upper()}": value for name, value in PATIENT.items()}
        done = processes.run([sys.executable, program], env={**os.environ, **patient})
        assert done.returncode == 0, done.stderr
        assert "deviation 1.998" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"devices": 0}, "at least one device"),
        ({"threads_per_worker": 0}, "one thread for each"),
        ({"device_memory_limit": 1.5}, "at most 1"),
    ],
)
def test_numbers_that_make_no_sense(options, words):
    with pytest.raises(ValueError, match=words):
        cupola.dask.local_cluster(**options)
