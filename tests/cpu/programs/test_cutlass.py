"""CUTLASS's matrix product for compute capability 9.0, from its headers: cutlass_gemm.cu.

``make cutlass`` fetches the headers and runs this. Other headers of CUDA 13.0 come with them, as CUTLASS 4.2 and
libcu++ of later ones define the same names. NVRTC takes half a minute, so it is no part of the usual run.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cupola import Buffer, Device, LaunchConfig, ObjectCode, Program, ProgramOptions, Stream, launch
from cupola.core.exchange._tensor_map import TensorMapDescriptor, TensorMapSwizzle
from cupola.utils import StridedMemoryView
from tests.conftest import on_cpu_device

ROOT = Path(__file__).resolve().parents[3]
HEADERS = Path(os.environ.get("CUPOLA_CUTLASS", ROOT / "build" / "cutlass"))
INCLUDE = [HEADERS / "cutlass_library" / "source" / "include", HEADERS / "nvidia/cu13/include/cccl"]
INCLUDE.append(INCLUDE[-1].parent)

pytestmark = [
    pytest.mark.skipif(not INCLUDE[0].is_dir(), reason="needs the headers of CUTLASS: make cutlass"),
    pytest.mark.skipif(
        tuple(Device(0).compute_capability) != (9, 0), reason="the kernel is for devices of compute capability 9.0"
    ),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def code() -> ObjectCode:
    Device(0).set_current()
    options = ProgramOptions(
        std="c++17",
        arch="sm_90a",
        include_path=[str(folder) for folder in INCLUDE],
        device_as_default_execution_space=True,
    )
    source = Path(__file__).with_name("cutlass_gemm.cu").read_text()
    return Program(source, "c++", options).compile("ptx" if on_cpu_device() else "cubin")


@pytest.fixture
def stream() -> Iterator[Stream]:
    Device(0).set_current()
    stream = Device(0).create_stream()
    yield stream
    stream.close()


def tensor_map(buffer: Buffer, matrix: np.ndarray, rows: int, columns: int) -> TensorMapDescriptor:
    view = StridedMemoryView.from_buffer(buffer, (1, *matrix.shape), dtype=matrix.dtype)
    return view.as_tensor_map((1, rows, columns), swizzle=TensorMapSwizzle.SWIZZLE_128B)


# CUTLASS computes on the device only with powers of two as the numbers of tiles.
@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"),
    [
        (256, 128, 64, 2),  # a tile for each block of a cluster
        (500, 252, 200, 2),  # four tiles a block; matrices that end within tiles
        (1000, 508, 72, 8),
    ],
)
def test_product(code: ObjectCode, stream: Stream, m: int, n: int, k: int, blocks: int) -> None:
    device = Device(0)

    def on_device(array: np.ndarray) -> Buffer:
        buffer = device.allocate(array.nbytes, stream=stream)
        buffer.copy_from(array, stream=stream)
        return buffer

    def on_host(buffer: Buffer, array: np.ndarray) -> np.ndarray:
        buffer.copy_to(array, stream=stream)
        stream.sync()
        return array

    rng = np.random.default_rng(m)
    a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    c, d = rng.uniform(-1, 1, (m, n)).astype(np.float32), np.full((m, n), np.nan, np.float32)
    given = [on_device(array) for array in (a, b, c, d)]
    one = LaunchConfig(grid=1, block=1)
    sizes = device.allocate(5 * 4, stream=stream)
    launch(stream, one, code.get_kernel("facts"), sizes)
    size, shared, threads, rows, columns = on_host(sizes, np.empty(5, np.int32)).tolist()

    boxes = [
        (128, 64),
        (64, 64),
        (rows, columns),
        (rows, columns),
    ]  # each block of a cluster copies half of a tile of B
    maps = [tensor_map(buffer, array, *box) for buffer, array, box in zip(given, (a, b, c, d), boxes, strict=True)]
    made = device.allocate(size, stream=stream)
    numbers = [np.int32(number) for number in (m, n, k, blocks)]
    launch(stream, one, code.get_kernel("parameters"), made, *maps, *given, *numbers)

    class Parameters(ctypes.Structure):
        _fields_ = (("bytes", ctypes.c_char * size),)

    parameters = Parameters.from_buffer_copy(on_host(made, np.empty(size, np.uint8)))
    config = LaunchConfig(grid=blocks // 2, cluster=2, block=threads, shmem_size=shared)
    launch(stream, config, code.get_kernel("product"), parameters)
    found = on_host(given[3], d)
    assert np.abs(found - (a.astype(np.float64) @ b.astype(np.float64).T + 0.5 * c)).max() < k * 2.0**-18
    for buffer in (*given, sizes, made):
        buffer.close()
