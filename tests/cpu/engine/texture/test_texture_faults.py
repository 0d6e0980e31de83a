"""What the CPU device says of textures and surfaces that a kernel cannot use as it does."""

from __future__ import annotations

import json

import pytest

from tests.cpu.engine.faulting import printed

pytestmark = pytest.mark.cpu_only

SOURCE = r"""
extern "C" __global__ void destroyed(unsigned long long t, unsigned long long s, float *out) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0);  // LINE destroyed
}
extern "C" __global__ void freed(unsigned long long t, unsigned long long s, float *out) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0);  // LINE freed
}
extern "C" __global__ void no_object(unsigned long long t, unsigned long long s, float *out) {
    out[threadIdx.x] = tex2D<float>(threadIdx.x == 5 ? 16 : t, 0, 0);  // LINE no_object
}
extern "C" __global__ void surface_for_texture(unsigned long long t, unsigned long long s, float *out) {
    out[0] = tex2D<float>(s, 0, 0);  // LINE surface_for_texture
}
extern "C" __global__ void other_shape(unsigned long long t, unsigned long long s, float *out) {
    out[0] = tex3D<float>(t, 0, 0, 0);  // LINE other_shape
}
extern "C" __global__ void layers(unsigned long long t, unsigned long long s, float *out) {
    surf2DLayeredwrite<float>(1, s, 0, 0, 0);  // LINE layers
}
extern "C" __global__ void outside(unsigned long long t, unsigned long long s, float *out) {
    surf2Dwrite<float>(1, s, 4 * threadIdx.x, 3);  // LINE outside
}
extern "C" __global__ void misaligned(unsigned long long t, unsigned long long s, float *out) {
    out[0] = surf2Dread<float>(s, 6, 0);  // LINE misaligned
}
extern "C" __global__ void query(unsigned long long t, unsigned long long s, float *out) {
    int width;
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(width) : "l"(t + 8));  // LINE query
    out[0] = width;
}
extern "C" __global__ void array_as_memory(unsigned long long t, unsigned long long s, float *out) {
    out[0] = tex1Dfetch<float>(t, 0);  // LINE array_as_memory
}
extern "C" __global__ void memory_as_array(unsigned long long t, unsigned long long s, float *out) {
    out[0] = tex1D<float>(t, 0.5f);  // LINE memory_as_array
}
extern "C" __global__ void anisotropic(unsigned long long t, unsigned long long s, float *out) {
    out[0] = tex2DGrad<float>(t, 0, 0, make_float2(4, 0), make_float2(0, 1));  // LINE anisotropic
}
extern "C" __global__ void without_an_axis(unsigned long long t, unsigned long long s, float *out) {
    out[0] = tex2DLod<float>(t, 0, 0, 0) + tex2D<float>(t, 0, 0);
    out[2] = tex2DGrad<float>(t, 0, 0, make_float2(1, 0), make_float2(0, 0.5f));
    out[1] = tex2D<float>(t + 8, 0, 0);  // LINE without_an_axis
}
"""

EXPECTED = {
    "destroyed": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "not a live texture object: was it destroyed before"),
    "freed": ("CUDA_ERROR_ILLEGAL_ADDRESS", "allocation at"),
    "no_object": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "0x10 is not a live texture object"),
    "surface_for_texture": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "is a surface object"),
    "other_shape": (
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "the texture has the geometry '.2d' (20 x 4 x 1 texels, 1 layers), the instruction is for '.3d'",
    ),
    "layers": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "the surface has the geometry '.2d'"),
    "outside": (
        "CUDA_ERROR_LAUNCH_FAILED",
        "at byte 80, y 3, z 0, layer 0 of a surface of 20 x 4 x 1 texels of 4 bytes",
    ),
    "misaligned": ("CUDA_ERROR_MISALIGNED_ADDRESS", "a multiple of 4"),
    "query": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "not a live texture object"),
    "array_as_memory": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "which is for linear memory"),
    "memory_as_array": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "which is for arrays"),
    "anisotropic": (
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "a maxAnisotropy of 8, and the gradients (.grad) are longer than a texel: the CPU device has no anisotropic",
    ),
    "without_an_axis": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "not a live texture object"),
}

PROGRAM = """
import json, sys
import cupola.cpu
source, names = json.loads(sys.argv[1])
cupola.cpu.use(devices=len(names))
import numpy as np
from cupola import LaunchConfig, Program, ProgramOptions, launch
from cupola.bindings import driver
from tests.cpu.engine.faulting import print_errors
from tests.cpu.engine.texture import texturing

def start(name, device, stream):
    options = ProgramOptions(arch=f"sm_{device.arch}", lineinfo=True)
    kernel = Program(source, code_type="c++", options=options).compile("cubin").get_kernel(name)
    out = device.allocate(256, stream=stream)
    stream.sync()
    made = texturing.Textures(device.device_id)
    array = made.array(np.zeros((4, 20, 1), np.float32), "2d", "surface")
    texture, surface = made.of_array(array), made.surface(array)
    if name == "array_as_memory":
        texture = made.of(np.zeros((20, 1), np.float32), "1d")
    if name == "memory_as_array":
        texture = made.linear(np.zeros((20, 1), np.float32))
    if name in ("anisotropic", "without_an_axis"):
        texture = made.of_array(array, texturing.Sampler(linear=True, anisotropy=8))
    if name == "destroyed":
        driver.cuTexObjectDestroy(int(texture))
    if name == "freed":
        driver.cuArrayDestroy(array)
    launch(stream, LaunchConfig(grid=1, block=32), kernel, texture, surface, out)
    return out, made

print_errors(names, start)
"""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The error of each kernel."""
    return printed(PROGRAM, json.dumps([SOURCE, list(EXPECTED)]))


@pytest.mark.parametrize("name", EXPECTED)
def test_fault(texts: dict[str, str], name: str) -> None:
    status, words = EXPECTED[name]
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if text.endswith(f"LINE {name}"))
    assert status in texts[name] and words in texts[name] and f":{line}" in texts[name], texts[name]
    if name == "no_object":
        assert "in thread (5, 0, 0)" in texts[name]
