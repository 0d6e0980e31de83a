"""Device.for_rank: which device a process of a job takes."""

from __future__ import annotations

import pytest

from cupola import Device
from cupola.core.device._ranks import LOCAL_RANKS


@pytest.fixture(autouse=True)
def _no_job(monkeypatch):
    for variable in LOCAL_RANKS:
        monkeypatch.delenv(variable, raising=False)


def test_outside_a_job():
    assert Device.for_rank() is Device(0)


@pytest.mark.parametrize("variable", LOCAL_RANKS)
def test_what_started_the_process_says_it(monkeypatch, variable):
    devices = Device.get_all_devices()
    for rank in range(5):
        monkeypatch.setenv(variable, str(rank))
        assert Device.for_rank() is devices[rank % len(devices)]


def test_the_rank_of_the_caller_counts_more(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "nonsense")
    devices = Device.get_all_devices()
    assert Device.for_rank(len(devices)) is devices[0]


@pytest.mark.parametrize(
    ("rank", "kind", "words"),
    [(-1, ValueError, "0 or more"), (1.5, TypeError, "integer"), ("1", TypeError, "integer")],
)
def test_bad_rank(rank, kind, words):
    with pytest.raises(kind, match=words):
        Device.for_rank(rank)


def test_bad_variable(monkeypatch):
    monkeypatch.setenv("SLURM_LOCALID", "two")
    with pytest.raises(ValueError, match="SLURM_LOCALID is 'two'.*srun"):
        Device.for_rank()
