"""The CPU device as ``libcudart.so.13`` for programs of other languages: what nvcc's host code calls, by hand."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from cupola.cli import elf
from cupola.cpu import _driver, programs
from cupola.pathfinder import load_nvidia_dynamic_lib
from tests import processes

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc"),
]

PROVIDER = Path(__file__).resolve().parents[3] / "src" / "cupola" / "cpu" / "provider"

PTX = """
.version 8.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 total = 5;
.visible .const .align 4 .u32 factor = 3;
.visible .global .attribute(.managed) .align 4 .u32 shared = 7;
.visible .entry work(.param .u64 out) {
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.eq.u64 %p1, %rd1, 0;
FOREVER:
    @%p1 bra FOREVER;
    ld.const.u32 %r2, [factor];
    mul.lo.u32 %r3, %r1, %r2;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    atom.global.add.u32 %r4, [total], 1;
    atom.global.add.u32 %r5, [shared], 1;
    ret;
}
"""

# Declarations as in the toolkit's headers, and what nvcc writes for the kernel and the variables above.
HEAD = (
    """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct { unsigned x, y, z; } dim3;
extern void **__cudaRegisterFatBinary(void *);
extern void __cudaRegisterFatBinaryEnd(void **), __cudaUnregisterFatBinary(void **);
extern void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *,
                                   int *);
extern void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
extern void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
extern char __cudaInitModule(void **);
extern unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void *);
extern int __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
extern int __cudaGetKernel(void **, const void *), __cudaLaunchKernel(void *, dim3, dim3, void **, size_t, void *);
extern int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *), cudaMalloc(void **, size_t);
extern int cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, void *);
extern int cudaMemcpy(void *, const void *, size_t, int), cudaDeviceSynchronize(void), cudaGetLastError(void);
extern int cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int);
extern int cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
extern int cudaGetFuncBySymbol(void **, const void *);
extern int cudaGetSymbolAddress(void **, const void *), cudaGetSymbolSize(size_t *, const void *);
extern int cudaVDPAUSetVDPAUDevice(int, void *, void *);
extern const char *cudaGetErrorName(int);
static const char ptx[] = """
    + "\n".join(f'"{line}\\n"' for line in PTX.strip().splitlines())
    + """;
static void **handle;
static unsigned total, factor;
static unsigned *shared;
static void unregister(void) { __cudaUnregisterFatBinary(handle); }
static void work(unsigned *out);
__attribute__((constructor)) static void register_all(void) {
    handle = __cudaRegisterFatBinary((void *)ptx);
    __cudaRegisterFunction(handle, (const char *)work, "work", "work", -1, 0, 0, 0, 0, 0);
    __cudaRegisterVar(handle, (char *)&total, "total", "total", 0, 4, 0, 0);
    __cudaRegisterVar(handle, (char *)&factor, "factor", "factor", 0, 4, 1, 0);
    __cudaRegisterManagedVar(handle, (void **)&shared, "shared", "shared", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    atexit(unregister);
}
static void *kernel;
static void work(unsigned *out) {
    dim3 grid, block;
    size_t bytes;
    void *stream, *arguments[] = {&out};
    if (!kernel) __cudaGetKernel(&kernel, (const void *)work);
    if (__cudaPopCallConfiguration(&grid, &block, &bytes, &stream)) return;
    __cudaLaunchKernel(kernel, grid, block, arguments, bytes, stream);
}
#define LAUNCH(g, b, ...) \\
    (__cudaPushCallConfiguration((dim3){g, 1, 1}, (dim3){b, 1, 1}, 0, 0) ? (void)0 : work(__VA_ARGS__))
#define TRY(call) do { int e = (call); if (e) { printf("%s: %s\\n", #call, cudaGetErrorName(e)); exit(1); } } while (0)
static unsigned *memory(void) { void *p; TRY(cudaMalloc(&p, 128)); return p; }
int main(void) {
"""
)

# What a program does -> what it prints, and what is on stderr.
PROGRAMS = {
    "launch": (
        "unsigned *p = memory(), got[32]; LAUNCH(1, 32, p);"
        'TRY(cudaMemcpy(got, p, 128, 2)); printf("%u %u\\n", got[1], got[31]);',
        "3 93\n",
        "",
    ),
    "launch by the host function": (
        "unsigned *p = memory(), got[32]; void *arguments[] = {&p};"
        "TRY(cudaLaunchKernel((void *)work, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, 0));"
        'TRY(cudaMemcpy(got, p, 128, 2)); printf("%u\\n", got[31]);',
        "93\n",
        "",
    ),
    "variables": (
        "unsigned *p = memory(), f = 10, got[32], sum; void *at; size_t size;"
        "TRY(cudaMemcpyToSymbol(&factor, &f, 4, 0, 1)); LAUNCH(1, 32, p); LAUNCH(1, 32, p);"
        "TRY(cudaMemcpy(got, p, 128, 2)); TRY(cudaMemcpyFromSymbol(&sum, &total, 4, 0, 2));"
        "TRY(cudaGetSymbolAddress(&at, &total)); TRY(cudaGetSymbolSize(&size, &total));"
        'TRY(cudaMemcpy(&f, at, 4, 2)); printf("%u %u %u %zu\\n", got[31], sum, f, size);',
        "310 69 69 4\n",
        "",
    ),
    "managed": (
        "__cudaInitModule(handle); *shared = 100; LAUNCH(1, 32, memory()); TRY(cudaDeviceSynchronize());"
        'void *at; TRY(cudaGetSymbolAddress(&at, shared)); printf("%u %d\\n", *shared, at == shared);',
        "132 1\n",
        "",
    ),
    "beyond a variable": (
        'printf("%s\\n", cudaGetErrorName(cudaMemcpyFromSymbol(&total, &total, 4, 1, 2)));',
        "cudaErrorInvalidValue\n",
        "cupola: cudaErrorInvalidValue: 4 bytes at offset 1 are not in the variable, which has 4 bytes\n",
    ),
    "wrong direction": (
        'printf("%s\\n", cudaGetErrorName(cudaMemcpyFromSymbol(&total, &total, 4, 0, 1)));',
        "cudaErrorInvalidMemcpyDirection\n",
        "cupola: cudaErrorInvalidMemcpyDirection: the source is a variable of the device\n",
    ),
    "no symbol": (
        'int x; printf("%s\\n", cudaGetErrorName(cudaMemcpyToSymbol(&x, &x, 4, 0, 1)));',
        "cudaErrorInvalidSymbol\n",
        r"cupola: cudaErrorInvalidSymbol: \w+ is not a symbol: .*\n",
    ),
    "a shape that no kernel can have": (
        'LAUNCH(1, 2000, memory()); printf("%s\\n", cudaGetErrorName(cudaGetLastError()));'
        "puts(cudaGetErrorName(cudaLaunchKernel((void *)work, (dim3){1, 1, 1}, (dim3){0, 1, 1}, 0, 0, 0)));",
        "cudaErrorInvalidValue\n" * 2,
        "cupola: cudaErrorInvalidValue: the block has 2000 threads along x: it must be from 1 to 1024\n"
        "cupola: cudaErrorInvalidValue: the block has 0 threads along x: it must be from 1 to 1024\n",
    ),
    "a cooperative launch without room": (
        "void *p = memory(), *arguments[] = {&p};"
        "puts(cudaGetErrorName(cudaLaunchCooperativeKernel(work, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 1 << 16,"
        " 0)));",
        "cudaErrorCooperativeLaunchTooLarge\n",
        "cupola: cudaErrorCooperativeLaunchTooLarge: 65536 bytes of dynamic shared memory, but the kernel may .*\n",
    ),
    "what is no kernel": (
        "void *p = 0; for (int i = 0; i < 2; i++) {"
        "puts(cudaGetErrorName(cudaLaunchKernel(i ? (void *)main : 0, (dim3){1, 1, 1}, (dim3){1, 1, 1}, &p, 0, 0)));"
        "puts(cudaGetErrorName(cudaGetFuncBySymbol(&p, i ? (void *)main : 0))); }",
        "cudaErrorInvalidDeviceFunction\n" * 2 + "cudaErrorInvalidResourceHandle\ncudaErrorInvalidDeviceFunction\n",
        r"(cupola: cudaErrorInvalid\w+: \S+ is not a kernel: .*\n)+",
    ),
    "nothing of a variable": ('TRY(cudaMemcpyToSymbol(&total, 0, 0, 9, 1)); puts("done");', "done\n", ""),
    "nested": (
        "unsigned *p = memory(); LAUNCH(1, 32, (LAUNCH(1, 1, p), LAUNCH(1, 2, p), p)); unsigned sum;"
        'TRY(cudaMemcpyFromSymbol(&sum, &total, 4, 0, 2)); printf("%u\\n", sum);',
        "40\n",
        "",
    ),
    "a fault": (
        'LAUNCH(1, 32, memory() + 32); printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));'
        "cudaDeviceSynchronize();",
        "cudaErrorIllegalAddress\n",
        r"cupola: cudaErrorIllegalAddress: kernel 'work': out-of-bounds write of 4 bytes [\s\S]*",
    ),
    "not emulated": (
        "for (int i = 0; i < 3; i++) puts(cudaGetErrorName(cudaVDPAUSetVDPAUDevice(0, 0, 0)));",
        "cudaErrorNotSupported\n" * 3,
        "cupola: the CPU device does not emulate cudaVDPAUSetVDPAUDevice: it returns cudaErrorNotSupported\n",
    ),
    "a kernel that does not end": ('LAUNCH(1, 1, 0); puts("the end");', "the end\n", ""),
    "no call of CUDA": ('puts("nothing");', "nothing\n", ""),
    "a pop without a push": (
        "dim3 d; size_t n; void *s; puts(cudaGetErrorName(__cudaPopCallConfiguration(&d, &d, &n, &s)));",
        "cudaErrorMissingConfiguration\n",
        "",
    ),
}


def build(folder, body, name="program", major=13, before=""):
    (folder / f"{name}.c").write_text(before + HEAD + body + "\n}\n")
    link = os.path.join(programs.library_folder(), f"link{major}")
    command = ["gcc", "-w", f"{name}.c", "-o", name, f"-L{link}", "-lcudart", "-ldl"]
    processes.run(command, cwd=folder, check=True)
    return folder / name


def cupola_run(program, *options):
    command = [sys.executable, "-m", "cupola", "run", *(options or ("--device", "cpu")), str(program)]
    return processes.run(command)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path):
    body, output, errors = PROGRAMS[name]
    done = cupola_run(build(tmp_path, body))
    assert done.stdout == output, done.stderr
    assert done.stderr == errors or re.fullmatch(errors, done.stderr), done.stderr


# Functions that had another signature in CUDA 12, as its headers declare them, and those whose names had a version.
OLDER = """
#include <stddef.h>
struct location { int type, id; };
struct edge { unsigned char bytes[8]; };
extern int cudaRuntimeGetVersion(int *), cudaGetDeviceProperties_v2(void *, int), cudaGetDeviceProperties(void *, int);
extern int cudaMallocManaged(void **, size_t, unsigned), cudaMemAdvise(const void *, size_t, int, int);
extern int cudaMemAdvise_v2(const void *, size_t, int, struct location), cudaStreamCreate(void **);
extern int cudaMemPrefetchAsync(const void *, size_t, int, void *), cudaStreamSynchronize(void *);
extern int cudaMemPrefetchAsync_v2(const void *, size_t, struct location, unsigned, void *);
extern int cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void **);
extern int cudaStreamGetCaptureInfo_v2(void *, int *, unsigned long long *, void **, void ***, size_t *);
extern int cudaStreamGetCaptureInfo_v3(void *, int *, unsigned long long *, void **, void ***, void **, size_t *);
extern int cudaStreamUpdateCaptureDependencies(void *, void **, size_t, unsigned);
extern int cudaGraphGetNodes(void *, void **, size_t *), cudaGraphGetEdges(void *, void **, void **, size_t *);
extern int cudaGraphGetEdges_v2(void *, void **, void **, struct edge *, size_t *);
extern int cudaGraphNodeGetDependencies(void *, void **, size_t *), cudaGraphCreate(void **, unsigned);
extern int cudaGraphNodeGetDependentNodes(void *, void **, size_t *);
extern int cudaGraphAddDependencies(void *, void **, void **, size_t);
extern int cudaGraphRemoveDependencies(void *, void **, void **, size_t);
extern int cudaMemcpyBatchAsync(void **, void **, size_t *, size_t, void *, size_t *, size_t, size_t *, void *);
extern int cudaMemcpyBatchAsync_ptsz(void **, void **, size_t *, size_t, void *, size_t *, size_t, size_t *, void *);
extern int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, int *);
extern int cudaEventCreate(void **), cudaEventRecord(void *, void *), cudaEventElapsedTime_v2(float *, void *, void *);
"""

CUDA_12 = """
    int version, properties[1032 / 4 + 8], before, status = 0, found = -1;
    TRY(cudaRuntimeGetVersion(&version));
    for (int i = 0; i < 1032 / 4 + 8; i++) properties[i] = -7;
    TRY(cudaGetDeviceProperties(properties, 0));
    before = properties[728 / 4];
    TRY(cudaGetDeviceProperties_v2(properties, 0));
    /* warpSize, major, multiProcessorCount, maxThreadsPerMultiProcessor as they lie in CUDA 12 */
    printf("%d %s %d %d %d %d %d %d\\n", version, (char *)properties, before, properties[308 / 4], properties[360 / 4],
           properties[388 / 4], properties[624 / 4], properties[1032 / 4]);

    unsigned *p; void *stream, *other; struct location device = {1, 0};
    TRY(cudaMallocManaged((void **)&p, 4096, 1)); TRY(cudaStreamCreate(&stream)); TRY(cudaStreamCreate(&other));
    TRY(cudaMemAdvise(p, 4096, 3, 0)); TRY(cudaMemAdvise_v2(p, 4096, 3, device)); TRY(cudaMemAdvise(p, 4096, 3, -1));
    TRY(cudaMemPrefetchAsync(p, 4096, 0, stream)); TRY(cudaMemPrefetchAsync(p, 4096, -1, stream));
    TRY(cudaMemPrefetchAsync_v2(p, 4096, device, 0, stream)); TRY(cudaStreamSynchronize(stream));

    void *graph, *nodes[4], **ready, *edges[2][4], *info;
    unsigned long long id; size_t count, ready_count, third, all = 4;
    dim3 one = {1, 1, 1}; void *arguments[] = {&p};
    TRY(cudaStreamBeginCapture(stream, 0));
    TRY(cudaLaunchKernel(work, one, one, arguments, 0, stream));
    TRY(cudaLaunchKernel(work, one, one, arguments, 0, stream));
    TRY(cudaStreamGetCaptureInfo_v2(stream, &status, &id, &info, &ready, &ready_count));
    TRY(cudaStreamGetCaptureInfo_v3(stream, &status, &id, &info, &ready, 0, &third));
    TRY(cudaStreamUpdateCaptureDependencies(stream, ready, 1, 1));
    TRY(cudaStreamEndCapture(stream, &graph));
    TRY(cudaGraphGetNodes(graph, 0, &count)); TRY(cudaGraphGetEdges(graph, edges[0], edges[1], &all));
    printf("%d %zu %zu %zu %zu ", status, ready_count, third, count, all);
    TRY(cudaGraphGetEdges_v2(graph, 0, 0, 0, &all)); TRY(cudaGraphNodeGetDependentNodes(edges[0][0], 0, &count));
    TRY(cudaGraphNodeGetDependencies(edges[0][0], 0, &third)); printf("%zu %zu %zu ", all, count, third);
    TRY(cudaGraphRemoveDependencies(graph, edges[0], edges[1], 1)); TRY(cudaGraphGetEdges(graph, 0, 0, &all));
    printf("%zu ", all);
    TRY(cudaGraphAddDependencies(graph, edges[0], edges[1], 1)); TRY(cudaGraphGetEdges(graph, 0, 0, &all));
    printf("%zu\\n", all);

    struct { int order; struct location from, to; unsigned flags; } how = {1, {0}, {0}, 0};
    unsigned a = 5, b = 0; void *to = &b, *from = &a; size_t size = 4, first = 0, failed = 99;
    TRY(cudaMemcpyBatchAsync(&to, &from, &size, 1, &how, &first, 1, &failed, stream));
    TRY(cudaStreamSynchronize(stream));
    status = cudaMemcpyBatchAsync_ptsz(&to, &from, &size, 1, &how, &first, 9, &failed, stream);
    void *function; TRY(cudaGetDriverEntryPoint("cuGraphGetEdges", &function, 0, &found));
    void *start, *stop; float time = -1; TRY(cudaEventCreate(&start)); TRY(cudaEventCreate(&stop));
    TRY(cudaEventRecord(start, 0)); TRY(cudaEventRecord(stop, 0)); TRY(cudaDeviceSynchronize());
    TRY(cudaEventElapsedTime_v2(&time, start, stop));
    printf("%u %s %d %d %d\\n", b, cudaGetErrorName(status), failed == (size_t)-1, found, time >= 0);
"""


def test_a_program_of_cuda_12(tmp_path):
    program = build(tmp_path, CUDA_12, major=12, before=OLDER)
    done = cupola_run(program)
    assert done.stdout.splitlines() == [
        "12090 cupola CPU device (H200 model) -7 32 9 132 2048 -7",
        "1 1 1 2 1 1 1 0 0 1",
        "5 cudaErrorInvalidValue 1 0 1",
    ], done.stderr


def test_without_cupola_run_the_error_says_what_to_do(tmp_path):
    program = build(tmp_path, "void *p; puts(cudaGetErrorName(cudaMalloc(&p, 8)));")
    variables = {key: value for key, value in os.environ.items() if not key.startswith("CUPOLA")}
    variables["LD_LIBRARY_PATH"] = programs.library_folder()
    done = processes.run([program], env=variables)
    assert done.stdout == "the CPU device cannot be used\n"
    assert "start this program with `cupola run`" in done.stderr


def test_a_library_that_is_unloaded_takes_its_kernels_along(tmp_path):
    use = "unsigned *p = memory(), got[32]; LAUNCH(1, 32, p); TRY(cudaMemcpy(got, p, 128, 2));"
    source = HEAD.replace("int main(void) {", "int other(void) {").replace("    atexit(unregister);\n", "")
    source += f"{use} return got[31]; }}\n__attribute__((destructor)) static void leave(void) {{ unregister(); }}\n"
    (tmp_path / "plugin.c").write_text(source)
    link = os.path.join(programs.library_folder(), "link13")
    command = ["gcc", "-w", "-shared", "-fPIC", "plugin.c", "-o", "plugin.so", f"-L{link}", "-lcudart"]
    processes.run(command, cwd=tmp_path, check=True)
    program = build(
        tmp_path,
        f"""
    for (int i = 0; i < 3; i++) {{
        void *plugin = dlopen("{tmp_path}/plugin.so", RTLD_NOW);
        if (!plugin) {{ puts(dlerror()); return 1; }}
        int (*other)(void) = (int (*)(void))dlsym(plugin, "other");
        printf("%d ", other());
        dlclose(plugin);
    }}
    {use} printf("%u\\n", got[31]);
    """,
    )
    done = cupola_run(program)
    assert done.stdout == "93 93 93 93\n", done.stderr


def test_the_folder_that_a_program_has_for_libraries_does_not_count(tmp_path):
    """A program that is linked with NVIDIA's library by RPATH, which comes before LD_LIBRARY_PATH."""
    folder = str(Path(load_nvidia_dynamic_lib("cudart").abs_path).parent)
    version = cudart_major(folder)
    path = build(tmp_path, "void *p; puts(cudaGetErrorName(cudaMalloc(&p, 8)));", major=version)
    link = os.path.join(programs.library_folder(), f"link{version}")
    flags = [f"-L{link}", "-lcudart", f"-Wl,--disable-new-dtags,-rpath,{folder}"]
    processes.run(["gcc", "-w", f"{path}.c", "-o", path, *flags], check=True)
    assert elf.read(path).has_rpath
    done = cupola_run(path)
    assert done.stdout == "cudaSuccess\n", done.stderr


def cudart_major(folder):
    return max(int(path.name.split(".")[2]) for path in Path(folder).glob("libcudart.so.*"))


@pytest.mark.parametrize("interpreter", [(sys.executable,), ()], ids=["a program", "a script"])
def test_a_module_of_python_in_c(tmp_path, interpreter):
    """It is linked with NVIDIA's library by RPATH, as PyTorch is, and gets that of the CPU device."""
    folder = str(Path(load_nvidia_dynamic_lib("cudart").abs_path).parent)
    body = HEAD.replace("int main(void) {", "int compute(int bad) {")
    (tmp_path / "module.c").write_text(
        body + "unsigned *p = memory(), got[32]; LAUNCH(1, 32, bad ? p + 32 : p);"
        "return cudaMemcpy(got, p, 128, 2) ? -1 : got[31]; }\n"
    )
    link = os.path.join(programs.library_folder(), f"link{cudart_major(folder)}")
    flags = [f"-L{link}", "-lcudart", *([] if interpreter else [f"-Wl,--disable-new-dtags,-rpath,{folder}"])]
    command = ["gcc", "-w", "-shared", "-fPIC", "module.c", "-o", "module.so", *flags]
    processes.run(command, cwd=tmp_path, check=True)
    script = "import ctypes; f = ctypes.CDLL('./module.so').compute; print(f(0), f(1))"
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", *interpreter, "script.py"]
    done = processes.run(command, cwd=tmp_path)
    assert done.stdout == "93 -1\n", done.stderr
    assert "out-of-bounds write" in done.stderr


def test_a_program_linked_with_the_driver(tmp_path):
    (tmp_path / "program.c").write_text("""
#include <stdio.h>
extern int cuInit(unsigned), cuDeviceGetCount(int *), cuFlushGPUDirectRDMAWrites(int, int);
int main(void) {
    int count = -1;
    int status = cuInit(0) ?: cuDeviceGetCount(&count);
    printf("%d %d %d\\n", status, count, cuFlushGPUDirectRDMAWrites(1, 100));
}
""")
    library = os.path.join(programs.library_folder(), "libcuda.so.1")
    processes.run(["gcc", "-w", "program.c", library, "-o", "program"], cwd=tmp_path, check=True)
    done = cupola_run(tmp_path / "program", "--model", "t4", "--devices", "2")
    assert done.stdout == "0 2 801\n", done.stderr
    assert "does not emulate cuFlushGPUDirectRDMAWrites" in done.stderr


@pytest.mark.parametrize(
    "library, function", [("libcudart.so.13", "cudaGetDeviceCount"), ("libcuda.so.1", "cuDriverGetVersion")]
)
def test_first_calls_of_threads_with_the_gil_do_not_wait_for_each_other(run_python, library, function):
    done = run_python(f"""
import ctypes, os, sys, threading
from cupola.cpu import programs
sys.setswitchinterval(1e-5)     # threads take turns during the import of the driver
library = ctypes.PyDLL(os.path.join(programs.library_folder(), {library!r}))    # which keeps the GIL in calls
found, start = [], threading.Barrier(4)
def call():
    start.wait()
    found.append(library.{function}(ctypes.byref(ctypes.c_int())))
threads = [threading.Thread(target=call, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(found)
""")
    assert done.stdout == "[0, 0, 0, 0]\n", done.stderr


def symbols(major):
    return set(re.findall(r"SYMBOL\((\w+)\)", (PROVIDER / f"libcudart{major}_symbols.h").read_text()))


@pytest.mark.parametrize("major", [12, 13])
def test_the_library_exports_what_nvidias_does(major):
    library = os.path.join(programs.library_folder(), f"libcudart.so.{major}")
    command = ["nm", "-D", "--defined-only", library]
    listing = processes.run(command, check=True).stdout
    exported = set(re.findall(rf" T (\w+)@@libcudart.so.{major}", listing))
    assert symbols(major) < exported
    assert {"__cudaRegisterFatBinary", "__cudaPushCallConfiguration"} <= exported - symbols(major)


def test_the_runtime_functions_are_exported():
    older = {name for name in _driver.runtime_symbols() if name not in symbols(13)}
    assert older <= symbols(12)
