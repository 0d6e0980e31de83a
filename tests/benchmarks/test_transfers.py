"""The table of halo exchanges and all-reduces beside C: both sides run, and are measured."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the arrays of messages are NumPy's")

from benchmarks.transfers import __main__ as transfers
from benchmarks.transfers import tables

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


def test_tables_are_those_of_the_page():
    """Their heads, and what a line of each page's table was made of."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "performance.md").read_text().splitlines()
    row = {"operation": "halo exchange", "bytes": 8, "c": 4.4e-6, "cupola": 5.24e-6}
    large = {"operation": "halo exchange", "bytes": 1 << 20, "c": 394e-6, "cupola": 399e-6}
    job = {"engine": "nccl", "ranks": 4, "device": "cupola CPU device (H200 model)", "rows": [row, large]}
    made = tables.table([job]).splitlines()
    assert made[0] in page and made[1] in page
    assert made[2:] == [
        "| NCCL, 4 ranks, CPU device | halo exchange | 8 B | 4.4 | 5.2 | +0.8 | 1.19 |",
        "| NCCL, 4 ranks, CPU device | halo exchange | 1 MiB | 394 | 399 | +5.0 | 1.01 |",
    ]
    assert set(made[2:]) <= set(page)
    rows = [{"ranks": n, "strong": 3.65e-3 / n, "weak": 0.91e-3, "device": "NVIDIA H200"} for n in (1, 2)]
    made = tables.table(rows).splitlines()
    assert set(made[:3]) <= set(page) and made[3] == "| 2 | 1.82 | 2.00 | 0.91 | 100% |"


@pytest.mark.parametrize(
    ("size", "c", "cupola", "said"),
    [
        (8, 5e-6, 6.9e-6, ""), (8, 5e-6, 7.1e-6, "more than 2 µs"), (1 << 19, 1e-3, 1.01e-3, "more than 2 µs"),
        (1 << 20, 1e-3, 1.04e-3, ""), (1 << 20, 1e-3, 1.06e-3, "more than 5%"), (1 << 24, 1.0, 0.9, ""),
    ],
)  # fmt: skip
def test_what_is_asked(size, c, cupola, said):
    row = {"operation": "all-reduce", "bytes": size, "c": c, "cupola": cupola}
    assert transfers.too_much(row) == said


def test_strict(monkeypatch, capsys):
    """The exit status tells whether a line takes more than is asked."""
    rows = [{"operation": "all-reduce", "bytes": 8, "c": 1e-6, "cupola": 9e-6}]
    found = {"engine": "mpi", "ranks": 2, "device": "x", "rows": rows}
    monkeypatch.setattr(transfers, "transfers", lambda *arguments: found)
    for options, status in ((["--strict"], 1), ([], 0)):
        monkeypatch.setattr("sys.argv", ["transfers", "--engine", "mpi", *options])
        assert transfers.main() == status
    rows[0]["cupola"] = 2e-6
    monkeypatch.setattr("sys.argv", ["transfers", "--engine", "mpi", "--strict"])
    assert transfers.main() == 0
    text = capsys.readouterr()
    assert text.out.count("more than 2 µs") == 2 and "1 lines take more" in text.err
