"""``libnvrtc.so.12`` and ``.13`` for programs that compile CUDA C++ themselves: their cubins keep the PTX.

NVRTC of CUDA 12 comes with ``make headers``, which runs these tests again.
"""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from cupola.cpu import programs
from cupola.pathfinder._dynamic_libraries import copies_of
from tests import processes

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc"),
    pytest.mark.parametrize("major", [12, 13]),
]

# Declarations as in the toolkit's headers. A cubin for sm_90, loaded and launched by the driver API.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int nvrtcCreateProgram(void **, const char *, const char *, int, void *, void *), nvrtcVersion(int *, int *);
extern int nvrtcCompileProgram(void *, int, const char *const *), nvrtcGetCUBINSize(void *, size_t *);
extern int nvrtcGetCUBIN(void *, char *), nvrtcGetPTXSize(void *, size_t *), nvrtcGetPTX(void *, char *);
extern const char *nvrtcGetErrorString(int);
extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
extern int cuMemAlloc_v2(unsigned long long *, size_t), cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
#define TRY(call) do { int e = (call); if (e) { printf("%s: %d\n", #call, e); exit(1); } } while (0)
int main(int count, char **words) {
    const char *source = "extern \"C\" __global__ void square(int *x) { x[threadIdx.x] = threadIdx.x * threadIdx.x; }";
    const char *options[] = {count > 1 ? words[1] : "-arch=sm_90", "-lineinfo"};
    void *program, *context, *module, *kernel;
    size_t size, ptx, untouched = 0;
    int major, minor;
    TRY(nvrtcVersion(&major, &minor));
    TRY(nvrtcCreateProgram(&program, source, "square.cu", 0, 0, 0));
    TRY(nvrtcCompileProgram(program, 2, options));
    TRY(nvrtcGetCUBINSize(program, &size));
    TRY(nvrtcGetPTXSize(program, &ptx));
    printf("%d %d %s\n", major, size > ptx, nvrtcGetErrorString(0));
    if (!size) return 0;
    char *cubin = malloc(size + 8), *text = malloc(ptx);
    memset(cubin + size, 7, 8);
    TRY(nvrtcGetCUBIN(program, cubin));
    TRY(nvrtcGetPTX(program, text));
    for (int i = 0; i < 8; i++) untouched += cubin[size + i] == 7;
    /* the ELF image, and one copy of the PTX */
    size_t copies = 0;
    for (size_t i = 0; i + ptx < size; i++) copies += !memcmp(cubin + i, text, ptx - 1);
    printf("%d %zu %zu %d\n", !memcmp(cubin, "\177ELF", 4), untouched, copies, nvrtcGetCUBIN(program, NULL) != 0);
    unsigned long long memory;
    int squares[32];
    TRY(cuInit(0));
    TRY(cuDevicePrimaryCtxRetain(&context, 0));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, cubin));
    TRY(cuModuleGetFunction(&kernel, module, "square"));
    TRY(cuMemAlloc_v2(&memory, 128));
    void *arguments[] = {&memory};
    TRY(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, arguments, 0));
    TRY(cuMemcpyDtoH_v2(squares, memory, 128));
    printf("%d %d\n", squares[5], squares[31]);
}
"""


@pytest.fixture(autouse=True)
def needs_the_compiler(major):
    if not any(path.endswith(f".so.{major}") for path, _ in copies_of("nvrtc")):
        pytest.skip(f"NVRTC of CUDA {major} is not installed")


def build(folder, major):
    (folder / "program.c").write_text(PROGRAM)
    link = os.path.join(programs.library_folder(), f"link{major}")
    processes.run(["gcc", "-w", "program.c", "-o", "program", f"-L{link}", "-lnvrtc", "-lcuda"], cwd=folder, check=True)
    return folder / "program"


def cupola_run(*arguments):
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", *map(str, arguments)]
    return processes.run(command)


def test_a_program_compiles_and_runs_its_kernel(tmp_path, major):
    done = cupola_run(build(tmp_path, major))
    assert done.stdout == f"{major} 1 NVRTC_SUCCESS\n1 8 1 1\n25 961\n", done.stderr
    assert not done.stderr


def test_what_its_kernel_does_is_counted(tmp_path, major):
    done = cupola_run("--coverage", build(tmp_path, major))
    assert done.stdout == f"{major} 1 NVRTC_SUCCESS\n1 8 1 1\n25 961\n", done.stderr
    assert "square.cu      1      1  100%" in done.stderr


def test_a_virtual_architecture_has_no_cubin(tmp_path, major):
    done = cupola_run(build(tmp_path, major), "-arch=compute_90")
    assert done.stdout == f"{major} 0 NVRTC_SUCCESS\n", done.stderr


def test_a_module_of_python_and_the_bindings_use_both(tmp_path, major):
    # The extension module's NVRTC is the CPU device's, that of the bindings NVIDIA's: each adds the PTX once.
    (tmp_path / "script.py").write_text(
        """
import ctypes
from cupola import Program, ProgramOptions
source = 'extern "C" __global__ void nothing() {}'
lib = ctypes.CDLL("libnvrtc.so.MAJOR")
program, size = ctypes.c_void_p(), ctypes.c_size_t()
assert lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), None, 0, None, None) == 0
assert lib.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"-arch=sm_90")) == 0
assert lib.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
image = ctypes.create_string_buffer(size.value)
assert lib.nvrtcGetCUBIN(program, image) == 0
mine = Program(source, "c++", ProgramOptions(arch="sm_90")).compile("cubin").code
print(hasattr(lib, "cupola_keeps_ptx"), image.raw.count(b"the digest is"), mine.count(b"the digest is"))
""".replace("MAJOR", str(major))
    )
    done = cupola_run(sys.executable, tmp_path / "script.py")
    assert done.stdout == "True 1 1\n", done.stderr


def test_libraries_that_are_linked_with_it_are_not_taken_for_it(tmp_path, major):
    """As libmathdx is, which the finder of libraries then asks the loader for."""
    (tmp_path / "needs.c").write_text(
        "extern int nvrtcVersion(int *, int *); int ask(void) { int a, b; return nvrtcVersion(&a, &b); }"
    )
    shim = os.path.join(programs.library_folder(), f"libnvrtc.so.{major}")
    command = ["gcc", "-w", "-shared", "-fPIC", "needs.c", "-o", "needs.so", shim]
    processes.run(command, cwd=tmp_path, check=True)
    (tmp_path / "script.py").write_text(
        f"""
from cupola.pathfinder import _loader
print(_loader.try_open({str(tmp_path / "needs.so")!r}) != 0, _loader.try_open("libnvrtc.so.{major}"))
"""
    )
    done = cupola_run(sys.executable, tmp_path / "script.py")
    assert done.stdout == "True 0\n", done.stderr


def test_without_the_real_library_the_error_says_what_to_install(tmp_path, major):
    program = build(tmp_path, major)
    variables = {**os.environ, "LD_LIBRARY_PATH": programs.library_folder(), "CUPOLA_LIBNVRTC": "/no"}
    done = processes.run([program], env=variables)
    assert done.stdout == "nvrtcVersion(&major, &minor): 11\n"
    wheel = "nvidia-cuda-nvrtc" + "-cu12" * (major == 12)
    assert f"cupola: libnvrtc.so.{major} is not installed: pip install {wheel}," in done.stderr
