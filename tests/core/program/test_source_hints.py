"""What a failed compilation says about headers and names that the runtime compiler does not know."""

from __future__ import annotations

import io

import pytest

from cupola import NVRTCError, Program
from cupola.pathfinder import find_nvidia_header_directory

KERNEL = 'extern "C" __global__ void k(float* x) { BODY }'

CASES = [
    ("#include <cassert>", "", ["Device code has assert() without any header", "<cuda/std/cassert>"], ["no folder"]),
    ("#include <assert.h>", "", ["<assert.h> is a host header", "<cuda/std/cassert>"], ["no folder"]),
    ("#include <cstdio>", "", ["Device code has printf() without any header"], ["<cuda/std", "no folder"]),
    ("#include <stdio.h>", "", ["Device code has printf() without any header"], ["<cuda/std", "no folder"]),
    ("#include <math.h>", "", ["the functions of <cmath>", "<cuda/std/cmath>"], ["no folder"]),
    ("#include <cstdint>", "", ["from libcu++: #include <cuda/std/cstdint>"], ["without any header"]),
    ("#include <stdint.h>", "", ["from libcu++: #include <cuda/std/cstdint>"], ["without any header"]),
    ("#include <type_traits>", "", ["from libcu++: #include <cuda/std/type_traits>"], []),
    ("#include <vector>", "", ["<vector> is a host header", "no replacement"], ["<cuda/std", "no folder"]),
    ("#include <iostream>", "", ["no replacement", "__CUDACC_RTC__"], ["<cuda/std"]),
    ("#include <string.h>", "", ["memcpy() and memset()", "<cuda/std/cstring>"], []),
    ("#include <string>", "", ["no replacement"], ["<cuda/std"]),
    ("#include <pthread.h>", "", ["no replacement"], []),
    ("#include <cuda_fp16.h>", "", ["were not found", "pip install"], ["a host header"]),
    ("#include <cuda/std/array>", "", ["were not found", "pip install"], ["a host header"]),
    ('#include "crt/mma.h"', "", ["pip install nvidia-cuda-crt", "CUDA toolkit"], ["searches no folder"]),
    ('#include "mine.h"', "", ['the one that "mine.h" is in with ProgramOptions(include_path=...)'], ["a host header"]),
    ("", "uint32_t n = 1;", ["For uint32_t, #include <cuda/std/cstdint>", "unsigned int"], []),
    ("", "x[0] = FLT_MAX;", ["For FLT_MAX, #include <cuda/std/cfloat>"], ["unsigned int"]),
    ("", "half h;", ["For half, #include <cuda_fp16.h>", "cupola[cu13]"], ["unsigned int"]),
    ("", "curandState s;", ["For curandState, #include <curand_kernel.h>", "nvidia-curand"], []),
    ("namespace cg = cooperative_groups;", "", ["namespace cooperative_groups, #include <cooperative_groups.h>"], []),
    ("", "cuda::std::array<int, 3> a;", ["For the namespace cuda, #include the header of cuda/std"], []),
    ("", "x[0] = std::min(1, 2);", ["has no std::min.", "min(), max()", "cuda::std::min"], []),
    ("", "std::vector<int> v;", ["std::vector is for the host only", "no replacement"], ["libcu++"]),
    ("int main() { return 0; }", "", ["leave main()", "launch(stream, LaunchConfig(", "`cupola nvcc program.cu"], []),
    ("void go(float* p) { cudaFree(p); }", "", ["leave main()", "cudaFree: buffer.close()."], ["cudaMalloc"]),
    ("__global__ void f(); void go() { f<<<1, 2>>>(); }", "", ["kernel<<<grid, block>>>(...)"], []),
    ("int plain(int i) { return i; }", "", ["put __device__ in front", "device_as_default"], ["main()"]),
    ("", "__shared__ float s[20000]; s[threadIdx.x] = 1; __syncthreads(); x[0] = s[(int)x[1]];",
     ["may have 48 KB together, and those of k have 80,000 bytes", "shmem_size=80000"], []),
    ("", "cudaGraphSetConditional(1, 2);", ["__cudart_builtin__ void cudaGraphSetConditional(unsigned long long"], []),
    ("", "oops = 1;", ['identifier "oops" is undefined'], ["libcu++", "folder"]),
]  # fmt: skip


@pytest.mark.parametrize(("include", "body", "said", "unsaid"), CASES, ids=[c[0] or c[1] for c in CASES])
def test_hint(include, body, said, unsaid):
    with pytest.raises(NVRTCError) as caught:
        source = f"{include}\n{KERNEL.replace('BODY', body)}"
        Program(source, "c++", {"name": "mine.cu", "cuda_headers": False}).compile("ptx")
    for text in said:
        assert text in str(caught.value)
    for text in unsaid:
        assert text not in str(caught.value)


BUILT_IN = [
    "assert(x[0] > 0);",
    'printf("%d", 1);',
    "x[0] = sinf(x[0]) + isnan(x[1]);",
    "memset(x, 0, 4); memcpy(x, x + 1, 4);",
    "free(malloc(4));",
    "x[0] = abs(-1);",
    "x[0] = (float)clock();",
    "size_t s = 0; ptrdiff_t d = s;",
    "delete new int;",
]


@pytest.mark.parametrize("body", BUILT_IN)
def test_what_needs_no_header(body):
    assert Program(KERNEL.replace("BODY", body), "c++").compile("ptx", logs=io.StringIO()).code


def test_the_advice_works():
    if None in [find_nvidia_header_directory(part) for part in ("cudart", "cccl")]:
        pytest.skip("the headers of CUDA are not installed")
    names = (
        "cassert",
        "cfloat",
        "climits",
        "cmath",
        "cstddef",
        "cstdint",
        "cstdlib",
        "cstring",
        "ctime",
        "type_traits",
    )
    source = "".join(f"#include <cuda/std/{name}>\n" for name in names) + KERNEL.replace(
        "BODY", "x[0] = uint32_t(INT_MAX);"
    )
    assert Program(source, "c++").compile("ptx").code
