"""Programs with PyTorch's CUDA build: each compares its result with PyTorch's on the host.

The kernels of its wheels are machine code only, which no model of the CPU device runs. The other ways to a result do:
what PyTorch compiles with Triton (``torch.compile``) or NVRTC when the program runs, and NVIDIA's math libraries.

usage: cupola run --device cpu --model rtx5090 tests/ecosystem/torch_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import torch
import triton
import triton.language as tl

torch.manual_seed(5)
DEVICE = "cuda"


def agree(found, expected, error=1e-5):
    torch.testing.assert_close(found.cpu(), expected, rtol=error, atol=error)


def properties():
    assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
    found = torch.cuda.get_device_properties(0)
    assert found.major * 10 + found.minor == 10 * torch.cuda.get_device_capability()[0] + found.minor
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total == found.total_memory


def copies():
    host = torch.randn(30, 50)
    device = host.to(DEVICE)
    agree(device, host)
    agree(host.pin_memory().to(DEVICE, non_blocking=True), host)
    agree(device.clone(), host)
    agree(device[3:7].contiguous(), host[3:7])
    agree(torch.zeros(5, device=DEVICE), torch.zeros(5))


def streams_and_events():
    host = torch.randn(1000).pin_memory()
    stream, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        start.record()
        device = host.to(DEVICE, non_blocking=True)
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    back = device.cpu()
    assert end.query() and start.elapsed_time(end) >= 0
    agree(back, host)


def matmul():
    a, b = torch.randn(40, 70), torch.randn(70, 30)
    agree(a.to(DEVICE) @ b.to(DEVICE), a @ b, 1e-4)
    agree(a.double().to(DEVICE) @ b.double().to(DEVICE), a.double() @ b.double(), 1e-12)
    half = a.half().to(DEVICE) @ b.half().to(DEVICE)
    agree(half.cpu().float(), a @ b, 0.05)
    agree(a.to(DEVICE).t() @ a.to(DEVICE), a.t() @ a, 1e-4)
    agree(torch.bmm(a.to(DEVICE)[None], b.to(DEVICE)[None]), (a @ b)[None], 1e-4)


def fourier_transform():
    x = torch.randn(64)
    agree(torch.fft.rfft(x.to(DEVICE)), torch.fft.rfft(x), 1e-4)


def jiterator():
    """A kernel of the user's, which PyTorch compiles with NVRTC."""
    source = "template <typename T> T fused(T x, T y, T alpha) { return x * y + alpha; }"
    fused = torch.cuda.jiterator._create_jit_fn(source, alpha=1.5)
    x, y = torch.randn(333), torch.randn(333)
    agree(fused(x.to(DEVICE), y.to(DEVICE)), x * y + 1.5)


def special_functions():
    """Kernels of PyTorch's own that it compiles with NVRTC."""
    x = torch.rand(100) * 10
    agree(torch.special.bessel_j0(x.to(DEVICE)), torch.special.bessel_j0(x), 1e-4)
    agree(torch.special.spherical_bessel_j0(x.to(DEVICE)), torch.special.spherical_bessel_j0(x), 1e-4)


def compiled_elementwise():
    def f(x, y):
        return torch.sin(x) * y + torch.where(x > 0, x, -2 * y)

    x, y = torch.randn(64, 100), torch.randn(64, 100)
    agree(torch.compile(f)(x.to(DEVICE), y.to(DEVICE)), f(x, y))


def compiled_reductions():
    def f(x):
        return torch.softmax(x, -1), x.sum(), x.std(0), x.amax(-1)

    x = torch.randn(64, 100)
    for found, expected in zip(torch.compile(f)(x.to(DEVICE)), f(x), strict=True):
        agree(found, expected, 1e-4)


def compiled_model():
    """A step of training, forward and backward: the layers' products by cuBLAS, all else by Triton."""

    def layers():
        return torch.nn.Sequential(
            torch.nn.Linear(20, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
        )

    model, copy = layers(), layers()
    x, y = torch.randn(16, 20), torch.randn(16, 4)
    copy.load_state_dict(model.state_dict())
    copy.to(DEVICE)

    def loss(model, x, y):
        return ((model(x) - y) ** 2).mean()

    expected = loss(model, x, y)
    expected.backward()
    found = torch.compile(loss)(copy, x.to(DEVICE), y.to(DEVICE))
    found.backward(torch.tensor(1.0).to(DEVICE))  # PyTorch's own 1 comes from a kernel of its own
    agree(found, expected, 1e-4)
    for own, other in zip(copy.parameters(), model.parameters(), strict=True):
        agree(own.grad, other.grad, 1e-4)


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, inside) + tl.load(y + i, inside), inside)


def triton_kernel():
    """Triton with PyTorch's tensors, as its documentation writes it."""
    x, y = torch.randn(1000), torch.randn(1000)
    out = torch.empty(1000, device=DEVICE)
    add_kernel[(triton.cdiv(1000, 256),)](x.to(DEVICE), y.to(DEVICE), out, 1000, BLOCK=256)
    agree(out, x + y)


def extension():
    """A module in CUDA C++, which PyTorch has nvcc compile and links with the shared runtime."""
    import nvidia.cu13

    toolkit = Path(nvidia.cu13.__path__[0])  # nvidia-cuda-nvcc from pip, which has no libcudart.so to link with
    major, minor = torch.cuda.get_device_capability()
    os.environ.setdefault("CUDA_HOME", str(toolkit))
    os.environ["TORCH_CUDA_ARCH_LIST"] = f"{major}.{minor}+PTX"
    from torch.utils.cpp_extension import load_inline

    source = """
#include <ATen/cuda/CUDAContext.h>
__global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
torch::Tensor twice_of(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    twice<<<(n + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(next((toolkit / "lib").glob("libcudart.so.*")), f"{folder}/libcudart.so")
        module = load_inline(
            "twice_extension",
            "torch::Tensor twice_of(torch::Tensor x);",
            source,
            functions=["twice_of"],
            extra_ldflags=[f"-L{folder}"],
        )
    x = torch.randn(1000)
    agree(module.twice_of(x.to(DEVICE)), 2 * x, 0)


def eager_add():
    x = torch.randn(10)
    agree(x.to(DEVICE) + x.to(DEVICE), x + x)


def eager_sum():
    x = torch.randn(10)
    agree(x.to(DEVICE).sum(), x.sum())


def eager_random_numbers():
    assert torch.rand(10, device=DEVICE).cpu().max() < 1


def eager_solve():
    a, b = torch.randn(5, 5), torch.randn(5, 2)
    agree(torch.linalg.solve(a.to(DEVICE), b.to(DEVICE)), torch.linalg.solve(a, b), 1e-3)


def eager_convolution():
    x, w = torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3)
    agree(torch.nn.functional.conv2d(x.to(DEVICE), w.to(DEVICE)), torch.nn.functional.conv2d(x, w), 1e-4)


PROGRAMS = {
    f.__name__: f
    for f in (
        properties, copies, streams_and_events, matmul, fourier_transform, jiterator, special_functions,
        compiled_elementwise, compiled_reductions, compiled_model, triton_kernel, extension, eager_add, eager_sum,
        eager_random_numbers, eager_solve, eager_convolution,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
        print(name, "agrees with PyTorch on the host")
