"""What to do about a header that the runtime compiler cannot find, or a name that needs one.

NVRTC searches no folder by itself, which nobody expects who comes from nvcc; and it compiles device code only, so the
headers of the host's C and C++ libraries are of no use to it. Some of what they declare is built into the compiler,
some is in libcu++ under cuda/std.

Imported when a program did not compile.
"""

from __future__ import annotations

import re

_MISSING = re.compile(r'(?:could not|cannot) open source file "([^"]+)"')
_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined')
_NO_NAMESPACE = re.compile(r"(?:must be a namespace name|must be a class or namespace name)\n(.*)")
_NOT_IN_STD = re.compile(r'namespace "std" has no member "(\w+)"')

_HOST_FUNCTION = "host functions are not allowed in JIT mode"
_TOO_MUCH_SHARED = re.compile(r"'(\w+)' uses too much shared data \((0x[0-9a-f]+|\d+) bytes, (0x[0-9a-f]+|\d+) max\)")

# What the host's part of CUDA programs is in Python.
_IN_PYTHON = {
    "cudaMalloc": "device.allocate(size, stream=stream), or device.empty(shape, dtype)",
    "cudaMallocManaged": "ManagedMemoryResource().allocate(size, stream=stream)",
    "cudaFree": "buffer.close()",
    "cudaMemcpy": "buffer.copy_from(array, stream=stream), or device.array(array)",
    "cudaMemcpyAsync": "buffer.copy_from(array, stream=stream)",
    "cudaMemset": "buffer.fill(0, stream=stream)",
    "cudaDeviceSynchronize": "stream.sync(), or device.sync()",
    "cudaStreamSynchronize": "stream.sync()",
    "cudaStreamCreate": "device.create_stream()",
    "cudaEventCreate": "device.create_event()",
    "cudaGetLastError": "nothing: errors are exceptions",
}

# Headers of the host, by their C++ names, of which the compiler has the most wanted functions built in.
_BUILT_IN = {
    "cassert": "assert()",
    "cmath": "the functions of <cmath>",
    "cstddef": "size_t and ptrdiff_t",
    "cstdio": "printf()",
    "cstdlib": "malloc(), free() and abs()",
    "cstring": "memcpy() and memset()",
    "ctime": "clock()",
    "new": "new and delete",
}

# Those that libcu++ has under cuda/std.
_IN_LIBCUXX = """
    algorithm array atomic barrier bit bitset cassert cfloat charconv chrono climits cmath complex concepts cstddef
    cstdint cstdlib cstring ctime expected functional initializer_list inplace_vector iterator latch limits linalg
    mdspan memory numbers numeric optional random ranges ratio semaphore source_location span string_view tuple
    type_traits utility variant version
"""

# The others.
_HOST_ONLY = """
    any cctype cerrno cfenv cinttypes clocale condition_variable csetjmp csignal cstdarg cuchar cwchar cwctype deque
    exception filesystem forward_list fstream future iomanip ios iostream istream list locale map mutex ostream
    queue regex set shared_mutex sstream stack stdexcept streambuf string system_error thread typeindex typeinfo
    unordered_map unordered_set valarray vector sys/types unistd pthread omp
"""

# Where the names are that NVRTC does not know without a header.
_NAMES = {
    name: header
    for header, names in {
        "cuda/std/cstdint": """int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t uintptr_t
            INT32_MAX INT64_MAX UINT32_MAX""",
        "cuda/std/climits": "CHAR_BIT INT_MAX INT_MIN UINT_MAX LONG_MAX LLONG_MAX",
        "cuda/std/cfloat": "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON",
        "cuda/std/cmath": "INFINITY NAN HUGE_VAL",
        "cuda_fp16.h": "half half2 __half __half2",
        "cuda_bf16.h": "nv_bfloat16 nv_bfloat162 __nv_bfloat16 __nv_bfloat162",
        "cuda_fp8.h": "__nv_fp8_e4m3 __nv_fp8_e5m2",
        "cuComplex.h": "cuComplex cuFloatComplex cuDoubleComplex",
        "curand_kernel.h": "curandState curandState_t curandStatePhilox4_32_10_t curandStateXORWOW_t curand_init",
    }.items()
    for name in names.split()
}

# Where the namespaces are, by how programs call them.
_NAMESPACES = {
    "cooperative_groups": "cooperative_groups.h",
    "nvcuda": "mma.h",
    "wmma": "mma.h",
    "cuda": "the header of cuda/std, such as cuda/std/array,",
    "cub": "cub/cub.cuh",
    "thrust": "the header of thrust",
}

_CUDA = re.compile(r"cuda|cooperative_groups|cub/|thrust/|nv/|curand|cublas|cufft|mma\.h|crt/|vector_types|device_")

# CUDA's headers are found without being asked for, where they are installed.
_FIND = 'pip install "cupola[cu13]" (or cu12), or a CUDA toolkit'


def hint(log: str) -> str:
    """Say what to do about the first missing header or name in a compilation log; empty when there is none."""
    missing = _MISSING.search(log)
    if missing:
        return _about_header(missing[1])
    for name in _UNDEFINED.findall(log):
        if name in _NAMES:
            header = _NAMES[name]
            instead = " Or write the type out, as in unsigned int." if header.endswith("cstdint") else ""
            find = "pip install nvidia-curand, or a CUDA toolkit" if header.startswith("curand") else _FIND
            return f"For {name}, #include <{header}>, which comes with\n{find}.{instead}"
        if name == "cudaGraphSetConditional":
            return (
                f"{name} is a function of the device runtime, which NVRTC leaves to the program to declare:\n"
                f'extern "C" __device__ __cudart_builtin__ void {name}'
                "(unsigned long long condition, unsigned int value);"
            )
    if _HOST_FUNCTION in log:
        return _about_the_host(log)
    shared = _TOO_MUCH_SHARED.search(log)
    if shared:
        size, most = (int(text, 0) for text in shared.groups()[1:])
        return (
            f"Arrays with a fixed size in shared memory may have {most // 1024} KB together, and those of {shared[1]} "
            f"have {size:,} bytes. For more, declare one array\nwithout a size, extern __shared__ float tile[]; and "
            f"give its size at the launch: LaunchConfig(grid=..., block=..., shmem_size={size}).\nHow much a block may "
            "have then is Device.properties.max_shared_memory_per_block_optin."
        )
    line = _NO_NAMESPACE.search(log)
    for name, header in _NAMESPACES.items() if line else ():
        if re.search(rf"\b{name}\b", line[1]):  # type: ignore[index]
            return f"For the namespace {name}, #include {_bracketed(header)} which comes with\n{_FIND}."
    absent = _NOT_IN_STD.search(log)
    if absent and absent[1] in _HOST_ONLY.split():
        return f"std::{absent[1]} is for the host only, and device code has no replacement."
    if absent:
        return (
            f"Device code has no std::{absent[1]}. What the compiler has built in, such as min(), max() and the "
            f"functions of <cmath>, needs no namespace;\nmuch of the rest is in libcu++ as cuda::std::{absent[1]}, "
            f"whose headers (cuda/std/...) come with\n{_FIND}."
        )
    return ""


def _about_the_host(log: str) -> str:
    whole = re.search(r"^\s+(?:int|void)\s+main\s*\(", log, re.MULTILINE) or "<<<" in log
    called = [name for name in dict.fromkeys(_UNDEFINED.findall(log)) if name in _IN_PYTHON]
    if not whole and not called:
        return (
            "NVRTC compiles device code only: put __device__ in front of functions that kernels call, or set "
            "ProgramOptions(device_as_default_execution_space=True)."
        )
    text = (
        "NVRTC compiles device code only: leave main() and other functions of the host out. Python does their part, "
        "and launches kernels:\nlaunch(stream, LaunchConfig(grid=..., block=...), kernel, ...) is "
        "kernel<<<grid, block>>>(...)."
    )
    text += "".join(f"\n{name}: {_IN_PYTHON[name]}." for name in called)
    return text + "\nWhole programs are for nvcc: `cupola nvcc program.cu -o program`, then `cupola run ./program`."


def _bracketed(header: str) -> str:
    return header if " " in header else f"<{header}>,"


def _about_header(path: str) -> str:
    name = path.removesuffix(".h")
    if path.endswith(".h") and name != "new" and f"c{name}" in {*_BUILT_IN, *_IN_LIBCUXX.split(), *_HOST_ONLY.split()}:
        name = f"c{name}"  # <math.h> is <cmath>
    elif path != name and name not in ("sys/types", "unistd", "pthread", "omp"):
        name = path
    if name in _BUILT_IN:
        text = (
            f"<{path}> is a host header. Device code has {_BUILT_IN[name]} without any header: "
            "leave the #include out, or put it between #ifndef __CUDACC_RTC__ and #endif."
        )
        if name in _IN_LIBCUXX.split():
            text += f"\nThe rest of it is in libcu++ as <cuda/std/{name}>, which comes with\n{_FIND}."
        return text
    if name in _IN_LIBCUXX.split():
        return (
            f"<{path}> is a host header. Device code has it from libcu++: #include <cuda/std/{name}>, which comes "
            f"with\n{_FIND}."
        )
    if name in _HOST_ONLY.split():
        return (
            f"<{path}> is a host header, and device code has no replacement: leave the #include out, or "
            "put it between\n#ifndef __CUDACC_RTC__ and #endif. Data comes as pointers to the memory of Buffers."
        )
    if path.startswith("crt/"):
        return (
            f"<{path}> is in a package of its own, nvidia-cuda-crt (pip install nvidia-cuda-crt), and in the include "
            "folder of an installed\nCUDA toolkit, often /usr/local/cuda/include, for ProgramOptions(include_path=...)."
        )
    if _CUDA.match(path):
        return (
            "The headers of CUDA and of libcu++ were not found, or cuda_headers=False kept them out. They come with\n"
            f"{_FIND}; or name their folder with ProgramOptions(include_path=...)."
        )
    return (
        f'NVRTC searches no folder by itself: name the one that "{path}" is in with ProgramOptions(include_path=...).'
    )
