"""Actors of Ray with a device each, which hand arrays to each other; one is killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")

import cupola.numpy as np  # noqa: E402
import cupola.ray  # noqa: E402
from tests.conftest import on_cpu_device  # noqa: E402
from tests.left_behind import left_behind  # noqa: E402

OPTIONS = {
    "num_cpus": 3, "include_dashboard": False, "logging_level": "ERROR", "log_to_driver": False,
    "object_store_memory": 80_000_000,
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
        cupola.ray.init(num_gpus=devices, **OPTIONS)
    remote = ray.remote(num_gpus=0.25, num_cpus=0, max_restarts=1)(Worker)
    yield [remote.remote() for _ in range(3)]
    ray.shutdown()


def test_processes_with_a_device(workers):
    found = ray.get([worker.where.remote() for worker in workers], timeout=60)
    assert len({process for process, _ in found} | {os.getpid()}) == 4
    assert {device for _, device in found} == {0}


@pytest.mark.parametrize("copy", [False, True])
def test_an_array_from_actor_to_actor(workers, copy):
    first, second, _ = workers
    assert ray.get(second.total.remote(first.make.remote(1000), copy), timeout=60) == (sum(range(500, 1000)), (500,))
    part = first.make.remote(1000, part=True)
    assert ray.get(second.total.remote(part, copy), timeout=60) == (sum(range(0, 1000, 2)), (2, 250))


def until_none_is_offered(worker):
    return any(not ray.get(worker.offered.remote(), timeout=60) for _ in range(1000))


def test_several_readers_and_no_more(workers):
    first, second, third = workers
    shared = first.make.remote(10, readers=2)
    assert ray.get([second.total.remote(shared), third.total.remote(shared)], timeout=60) == [(35, (5,))] * 2
    with pytest.raises(ConnectionError, match="no longer has it"):
        ray.get(third.total.remote(shared), timeout=60)
    assert until_none_is_offered(first)


def test_memory_stays_while_it_is_seen(workers):
    first, second, _ = workers
    ray.get(second.keep.remote(first.make.remote(100_000)), timeout=60)
    assert ray.get(first.offered.remote(), timeout=60) == 1
    assert ray.get(second.kept_total.remote(), timeout=60) == sum(range(50_000, 100_000))
    ray.get(second.drop.remote(), timeout=60)
    assert until_none_is_offered(first)


def test_the_program_itself(workers):
    shared = cupola.ray.share(np.asarray(numpy.arange(6)))
    assert repr(shared) == "<Shared (6,) <i8>"
    assert ray.get(workers[0].total.remote(shared), timeout=60) == (15, (6,))
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
    assert ray.get(near.where.remote(), timeout=60)[1] == (1 if on_cpu_device() else 0)
    made = first.make.remote(10_000)
    wanted = (sum(range(10_000)), [[0, 2], [3, 5]], (0, 3))
    assert ray.get(near.total.remote(made), timeout=60) == (*wanted, 2)
    assert ray.get(far.total.remote(made), timeout=60) == (*wanted, 0)
    assert ray.get(near.total.remote(made), timeout=60)[:3] == wanted
    del made
    assert any(not ray.get(first.kept.remote(), timeout=60) for _ in range(1000))
    process = process_of(first)
    ray.kill(first, no_restart=False)
    while process_of(first) in (process, None):
        time.sleep(0.05)
    assert ray.get(near.total.remote(first.make.remote(10_000)), timeout=60)[:3] == wanted
    gone = far.make.remote(10)
    ray.get(near.total.remote(gone), timeout=60)
    ray.kill(far)
    with pytest.raises(ray.exceptions.RayError):
        ray.get(first.total.remote(gone), timeout=60)


def process_of(worker):
    try:
        return ray.get(worker.where.remote(), timeout=60)[0]
    except ray.exceptions.RayActorError:
        return None


def test_an_actor_that_is_killed(workers):
    first, second, third = workers
    shared = ray.get(first.make.remote(10), timeout=60)
    process, _ = ray.get(first.where.remote(), timeout=60)
    ray.kill(first, no_restart=False)
    while process_of(first) in (process, None):  # until it is another one
        time.sleep(0.05)
    with pytest.raises(ConnectionError):
        ray.get(second.total.remote(shared), timeout=60)
    assert ray.get(third.total.remote(second.make.remote(10)), timeout=60) == (35, (5,))


def test_example():
    """On three CPU devices, or on as many GPUs as there are."""
    example = Path(__file__).resolve().parents[2] / "examples" / "ray_pipeline.py"
    environment = {**os.environ, "CUPOLA_CPU_DEVICES": "3", "RAY_USAGE_STATS_ENABLED": "0"}
    before = left_behind()
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr
    assert left_behind() <= before
    assert "piece 3 was lost" in done.stdout
    assert "the sum of 160000 squares is right" in done.stdout
