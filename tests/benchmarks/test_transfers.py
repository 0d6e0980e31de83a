"""The table of halo exchanges and all-reduces beside C: both sides run, and are measured."""

from __future__ import annotations

import argparse
import shutil

import pytest

pytest.importorskip("numpy", reason="the arrays of messages are NumPy's")

from benchmarks.transfers import __main__ as transfers

pytestmark = [
    pytest.mark.cpu_only("there may be one GPU only"),
    pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc"),
]


@pytest.mark.parametrize(("engine", "ranks"), [("mpi", 2), ("nccl", 1)])
def test_both_sides(engine, ranks, capsys):
    if engine == "mpi":
        pytest.importorskip("mpi4py", reason="needs mpi4py: pip install cupola[test]")
    found = transfers.transfers(engine, ranks, [8, 4096])
    assert found["ranks"] == ranks and found["device"].startswith("cupola")
    known = [(row["operation"], row["bytes"]) for row in found["rows"]]
    assert known == [(operation, size) for operation in ("halo exchange", "all-reduce") for size in (8, 4096)]
    assert all(0 < row[side] < 1 for row in found["rows"] for side in ("c", "cupola"))
    transfers.show(found)
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()].count(["all-reduce", "8", "B"]) == 1


def test_sizes():
    assert [transfers.size_of(text) for text in ("8", "4K", "16M")] == [8, 4096, 16 << 20]
    assert [transfers.text_of(size) for size in (8, 4096, 16 << 20)] == ["8 B", "4 KiB", "16 MiB"]
    with pytest.raises(argparse.ArgumentTypeError, match="multiple of 8"):
        transfers.size_of("12")


def test_speed_up(capsys):
    rows = [{"ranks": ranks, "strong": 1 / ranks, "weak": 1.0, "device": "x"} for ranks in (1, 2)]
    transfers.show_scaling(rows)
    assert "2.00" in capsys.readouterr().out
