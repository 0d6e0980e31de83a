"""Every example checks its result against NumPy; here each runs as a user would run it."""

from __future__ import annotations

import os
import struct
import sys
import zlib
from pathlib import Path

import pytest

from tests import processes
from tests.conftest import on_cpu_device
from tests.cpu.engine.kernels import skip_without_crt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Modules that others import, and programs that have tests of their own.
OTHERS = {"arrays", "opengl", "pictures", "mpi_heat", "dask_statistics", "ray_pipeline", "nccl_allreduce"}
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in OTHERS)

# Programs that everybody knows, each on a page.
TYPICAL = ("vector_add", "matmul", "reduction", "histogram", "image_filter", "nbody", "game_of_life", "mandelbrot",
           "heat_equation", "k_means", "sort", "attention")  # fmt: skip

# Those that save a picture, and how many frames it has.
PICTURES = dict.fromkeys(TYPICAL, 1) | {"game_of_life": 61, "heat_equation": 21}


@pytest.mark.parametrize("name", SCRIPTS)
def test_example(name, tmp_path):
    environment = {**os.environ, **({"CUPOLA_CPU_DEVICES": "3"} if name == "several_devices" else {})}
    command = [sys.executable, EXAMPLES / f"{name}.py"]
    done = processes.run(command, env=environment, cwd=tmp_path)
    if done.returncode:
        skip_without_crt(done.stderr)
        if "LostContext" in done.stderr:
            assert not on_cpu_device(), done.stderr
            pytest.skip(
                "kernels of other tests have faulted on the GPU, whose driver then ends contexts of OpenGL (Xid 109)"
            )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip(), "an example says what it shows"
    assert not done.stderr.strip(), done.stderr
    assert {path.name: frames(path) for path in tmp_path.iterdir()} == (
        {f"{name}.png": PICTURES[name]} if name in PICTURES else {}
    )


def frames(path: Path) -> int:
    """How many pictures a PNG file has, each of which is as large as it says."""
    data, at, header, count, pixels = path.read_bytes(), 8, (0, 0), 0, []
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, _, color = struct.unpack_from(">IIBB", body)
            header = (height, width * (3 if color == 2 else 1))
        elif kind == b"acTL":
            (count,) = struct.unpack_from(">I", body)
        elif kind in (b"IDAT", b"fdAT"):
            pixels.append(len(zlib.decompress(body[4 if kind == b"fdAT" else 0 :])))
        at += 12 + length
    assert set(pixels) == {header[0] * (1 + header[1])} and len(pixels) == (count or 1)
    return len(pixels)


@pytest.mark.parametrize("name", TYPICAL)
def test_typical_programs_are_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 60


def test_there_are_examples():
    assert {"tour", "saxpy", "reduction", "matmul", "histogram", "nbody", "stencil", "prefix_sum"} <= set(SCRIPTS)
