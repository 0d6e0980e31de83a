"""``libnvJitLink.so.12`` and ``.13`` for programs that link device code themselves: their cubins keep the PTX."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cupola.cpu import programs
from cupola.pathfinder._dynamic_libraries import copies_of
from tests import processes

MAJORS = sorted({int(path.rpartition(".")[2]) for path, _ in copies_of("nvJitLink")})
pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc"),
    pytest.mark.skipif(not MAJORS, reason="needs nvJitLink"),
]

# Two modules of PTX, one of which calls the other, linked to a cubin for sm_90 that the driver API loads and launches.
# The names are those that the toolkit's headers give, or the plain ones, by which packages of Python look them up.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int CREATE(void **, unsigned, const char **), DESTROY(void **), COMPLETE(void *);
extern int ADD_DATA(void *, int, const void *, size_t, const char *), ADD_FILE(void *, int, const char *);
extern int CUBIN_SIZE(void *, size_t *), CUBIN(void *, void *), nvJitLinkVersion(unsigned *, unsigned *);
extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
extern int cuMemAlloc_v2(unsigned long long *, size_t), cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
#define TRY(call) do { int e = (call); if (e) { printf("%s: %d\n", #call, e); exit(1); } } while (0)
#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
static const char calls[] = HEAD ".extern .func (.param .b32 r) f(.param .b32 p);\n"
    ".visible .entry k(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %rd<2>; .param .b32 a; .param .b32 b;\n"
    "ld.param.u64 %rd1, [p]; st.param.b32 [a], 5; call (b), f, (a); ld.param.b32 %r1, [b];\n"
    "st.global.u32 [%rd1], %r1; ret; }\n";
static const char answers[] = HEAD ".visible .func (.param .b32 r) f(.param .b32 p) { .reg .b32 %r<3>;\n"
    "ld.param.b32 %r1, [p]; add.s32 %r2, %r1, 37; st.param.b32 [r], %r2; ret; }\n";
int main(int count, char **words) {
    const char *options[] = {"-arch=sm_90"};
    void *link, *context, *module, *kernel;
    unsigned major, minor;
    size_t size;
    TRY(nvJitLinkVersion(&major, &minor));
    TRY(CREATE(&link, 1, options));
    TRY(ADD_DATA(link, 2, calls, sizeof calls, "calls"));
    FILE *file = fopen(words[1], "w");
    fputs(answers, file);
    fclose(file);
    TRY(ADD_FILE(link, 2, words[1]));
    TRY(COMPLETE(link));
    TRY(CUBIN_SIZE(link, &size));
    char *cubin = malloc(size);
    TRY(CUBIN(link, cubin));
    TRY(DESTROY(&link));
    unsigned long long memory;
    int answer;
    TRY(cuInit(0));
    TRY(cuDevicePrimaryCtxRetain(&context, 0));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, cubin));
    TRY(cuModuleGetFunction(&kernel, module, "k"));
    TRY(cuMemAlloc_v2(&memory, 4));
    void *arguments[] = {&memory};
    TRY(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0));
    TRY(cuMemcpyDtoH_v2(&answer, memory, 4));
    printf("%u %d %d\n", major, !memcmp(cubin, "\177ELF", 4), answer);
}
"""
NAMES = {
    "CREATE": "Create",
    "DESTROY": "Destroy",
    "COMPLETE": "Complete",
    "ADD_DATA": "AddData",
    "ADD_FILE": "AddFile",
    "CUBIN_SIZE": "GetLinkedCubinSize",
    "CUBIN": "GetLinkedCubin",
}


def build(folder: Path, major: int, prefix: str, suffix: str) -> Path:
    (folder / "program.c").write_text(PROGRAM)
    link = os.path.join(programs.library_folder(), f"link{major}")
    names = [f"-D{macro}={prefix}nvJitLink{name}{suffix}" for macro, name in NAMES.items()]
    command = ["gcc", "-w", *names, "program.c", "-o", "program", f"-L{link}", "-lnvJitLink", "-lcuda"]
    processes.run(command, cwd=folder, check=True)
    return folder / "program"


def cupola_run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", *map(str, arguments)]
    return processes.run(command)


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize("named", ["plain", "by the headers"])
def test_a_program_links_and_runs_its_kernel(tmp_path: Path, major: int, named: str) -> None:
    program = build(tmp_path, major, *(("", "") if named == "plain" else ("__", f"_{major}_0")))
    done = cupola_run(program, tmp_path / "answers.ptx")
    assert done.stdout == f"{major} 1 42\n", done.stderr
    assert not done.stderr


@pytest.mark.parametrize("major", MAJORS)
def test_without_the_real_library_the_error_says_what_to_install(tmp_path: Path, major: int) -> None:
    program = build(tmp_path, major, "", "")
    variables = {**os.environ, "LD_LIBRARY_PATH": programs.library_folder(), "CUPOLA_LIBNVJITLINK": "/no"}
    done = processes.run([program, "x"], env=variables)
    assert done.stdout == "nvJitLinkVersion(&major, &minor): 6\n"
    wheel = "nvidia-nvjitlink" + "-cu12" * (major == 12)
    assert f"cupola: libnvJitLink.so.{major} is not installed: pip install {wheel}," in done.stderr


@pytest.mark.parametrize("name", ["nvrtc", "nvJitLink"])
def test_packages_of_python_find_it_by_its_name(name: str) -> None:
    """As cuda.pathfinder does, which takes what is loaded before it looks into the wheels."""
    for path, _ in copies_of(name):
        marked = f"hasattr(ctypes.CDLL({os.path.basename(path)!r}, mode=os.RTLD_NOLOAD), 'cupola_keeps_ptx')"
        done = cupola_run(sys.executable, "-c", f"import ctypes, os; print({marked})")
        assert done.stdout == "True\n", done.stderr
        # A Python that a program starts, as soon as it has the driver.
        text = f"import ctypes, os; ctypes.CDLL('libcuda.so.1'); print({marked})"
        done = cupola_run(shutil.which("env"), sys.executable, "-c", text)
        assert done.stdout == "True\n", done.stderr
