"""Actors of Ray with a device each, which hand arrays to each other; one is killed."""

import os
import sys
from pathlib import Path

import numpy
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")

import cupola.numpy as np  # noqa: E402
import cupola.ray  # noqa: E402
from tests import limits, processes  # noqa: E402
from tests.conftest import on_cpu_device  # noqa: E402
from tests.left_behind import nothing_left_behind  # noqa: E402
from tests.limits import eventually  # noqa: E402

OPTIONS = {
    "num_cpus": 3, "include_dashboard": False, "logging_level": "ERROR", "log_to_driver": False,
    "object_store_memory": 80_000_000,
}  # fmt: skip

# The limit of a test is the only one. (Ray waits 30 seconds for its first process whatever it is told.)
PATIENT = {
    "RAY_gcs_server_request_timeout_seconds": "3600", "RAY_worker_register_timeout_seconds": "3600",
    "RAY_rdt_fetch_fail_timeout_milliseconds": "3600000",
}  # fmt: skip


class Worker:
    """Three of these share a device."""

    def __init__(self):
        self.device = cupola.ray.device()
        self.kept = []

    def where(self):
        return os.getpid(), self.device.device_id

    def make(self, n, readers=1, part=False):
        x = np.arange(float(n)).reshape(2, -1)
        return cupola.ray.share(x[:, ::2] if part else x[1], readers)

    def total(self, shared, copy=False):
        x = shared.open(copy=copy)
        return float(x.sum()), x.shape

    def keep(self, shared):
        self.kept.append(shared.open())

    def drop(self):
        self.kept.clear()

    def kept_total(self):
        return float(self.kept[0].sum())

    def offered(self):
        from cupola import _same_host

        return 0 if _same_host._offers is None else len(_same_host._offers.kept)


@pytest.fixture(scope="module")
def workers():
    devices = 2 if on_cpu_device() else 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("CUPOLA_CPU_DEVICES", str(devices))  # of the actors
        for name, value in PATIENT.items():
            patch.setenv(name, value)
        cupola.ray.init(num_gpus=devices, **OPTIONS)
    remote = ray.remote(num_gpus=0.25, num_cpus=0, max_restarts=1)(Worker)
    yield [remote.remote() for _ in range(3)]
    ray.shutdown()


def test_processes_with_a_device(workers):
    found = ray.get([worker.where.remote() for worker in workers])
    assert len({process for process, _ in found} | {os.getpid()}) == 4
    assert {device for _, device in found} == {0}


@pytest.mark.parametrize("copy", [False, True])
def test_an_array_from_actor_to_actor(workers, copy):
    first, second, _ = workers
    assert ray.get(second.total.remote(first.make.remote(1000), copy)) == (sum(range(500, 1000)), (500,))
    part = first.make.remote(1000, part=True)
    assert ray.get(second.total.remote(part, copy)) == (sum(range(0, 1000, 2)), (2, 250))


def until_none_is_offered(worker):
    return eventually(lambda: not ray.get(worker.offered.remote()))


def test_several_readers_and_no_more(workers):
    first, second, third = workers
    shared = first.make.remote(10, readers=2)
    assert ray.get([second.total.remote(shared), third.total.remote(shared)]) == [(35, (5,))] * 2
    with pytest.raises(ConnectionError, match="no longer has it"):
        ray.get(third.total.remote(shared))
    assert until_none_is_offered(first)


def test_memory_stays_while_it_is_seen(workers):
    first, second, _ = workers
    ray.get(second.keep.remote(first.make.remote(100_000)))
    assert ray.get(first.offered.remote()) == 1
    assert ray.get(second.kept_total.remote()) == sum(range(50_000, 100_000))
    ray.get(second.drop.remote())
    assert until_none_is_offered(first)


def test_the_program_itself(workers):
    shared = cupola.ray.share(np.asarray(numpy.arange(6)))
    assert repr(shared) == "<Shared (6,) <i8>"
    assert ray.get(workers[0].total.remote(shared)) == (15, (6,))
    with pytest.raises(ValueError, match="readers is 0"):
        cupola.ray.share(np.zeros(3), 0)


def direct_class():
    cupola.ray.register_transport()

    class Direct:
        """Results stay on the device until another actor wants them; `far`: as on another machine."""

        def __init__(self, far=False):
            from cupola import _same_host
            from cupola.ray import _transport

            if far:
                _same_host.place, _transport.PIECE = lambda: "another machine", 1000

        @ray.method(tensor_transport="cupola")
        def make(self, n):
            cupola.ray.device()
            return [
                np.arange(float(n)),
                {"part": np.arange(6, dtype="i4").reshape(2, 3)[:, ::2], "none": np.zeros((0, 3))},
            ]

        def total(self, x):
            from cupola import _same_host

            cupola.ray.device()
            whole, rest = x
            return float(whole.sum()), rest["part"].to_numpy().tolist(), rest["none"].shape, _same_host.claims

        def kept(self):
            from cupola import _same_host
            from cupola.ray import _transport

            return 0 if _transport._server is None else len(_transport._server.arrays) + len(_same_host._offers.kept)

        def where(self):
            return os.getpid(), cupola.ray.device().device_id

    return Direct


def test_arrays_by_the_transport_of_ray(workers):
    """On one machine by IPC, between machines from the actor itself; arrays stay as long as somebody wants them."""
    remote = ray.remote(num_gpus=0.05, num_cpus=0, max_restarts=1)(direct_class())
    first, far = remote.remote(), remote.remote(far=True)
    near = remote.options(num_gpus=0.9 if on_cpu_device() else 0.05).remote()  # on a device of its own
    assert ray.get(near.where.remote())[1] == (1 if on_cpu_device() else 0)
    made = first.make.remote(10_000)
    wanted = (sum(range(10_000)), [[0, 2], [3, 5]], (0, 3))
    assert ray.get(near.total.remote(made)) == (*wanted, 2)
    assert ray.get(far.total.remote(made)) == (*wanted, 0)
    assert ray.get(near.total.remote(made))[:3] == wanted
    del made
    assert eventually(lambda: not ray.get(first.kept.remote()))
    process = process_of(first)
    ray.kill(first, no_restart=False)
    limits.until(lambda: process_of(first) not in (process, None), "the actor does not come back")
    assert ray.get(near.total.remote(first.make.remote(10_000)))[:3] == wanted
    gone = far.make.remote(10)
    ray.get(near.total.remote(gone))
    ray.kill(far)
    with pytest.raises(ray.exceptions.RayError):
        ray.get(first.total.remote(gone))


def process_of(worker):
    try:
        return ray.get(worker.where.remote())[0]
    except ray.exceptions.RayActorError:
        return None


def test_an_actor_that_is_killed(workers):
    first, second, third = workers
    shared = ray.get(first.make.remote(10))
    process, _ = ray.get(first.where.remote())
    ray.kill(first, no_restart=False)
    limits.until(lambda: process_of(first) not in (process, None), "the actor does not come back")
    with pytest.raises(ConnectionError):
        ray.get(second.total.remote(shared))
    assert ray.get(third.total.remote(second.make.remote(10))) == (35, (5,))


def test_example():
    """On three CPU devices, or on as many GPUs as there are."""
    example = Path(__file__).resolve().parents[2] / "examples" / "ray_pipeline.py"
    environment = {**os.environ, "CUPOLA_CPU_DEVICES": "3", "RAY_USAGE_STATS_ENABLED": "0", **PATIENT}
    with nothing_left_behind():
        done = processes.run([sys.executable, example], env=environment)
        assert done.returncode == 0, done.stderr
    assert "piece 3 was lost" in done.stdout
    assert "the sum of 160000 squares is right" in done.stdout
