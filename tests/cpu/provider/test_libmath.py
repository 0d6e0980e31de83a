"""The math libraries under NVIDIA's names: programs in C that are linked with them, and what is loaded with ctypes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from cupola.cpu import programs
from cupola.cpu.mathlibs import SONAMES
from cupola.pathfinder._dynamic_libraries import copies_of
from tests import processes

PROVIDER = Path(__file__).resolve().parents[3] / "src" / "cupola" / "cpu" / "provider"
NAMES = sorted(
    {f"lib{name}.so.{version}" for name, versions in SONAMES.items() for version in versions} | {"libcudss.so.0"}
)

HEAD = """
#include <stdio.h>
int main(void) {
    void *handle = 0;
    float one = 1, zero = 0, x[4] = {1, 2, 3, 4}, y[4], *p;
"""
MATRIX = """
    cublasCreate_v2(&handle); cudaMalloc(&p, 64); cudaMemcpy(p, x, 16, 1);
    int status = cublasSgemm_v2(handle, 0, 0, 2, 2, 2, &one, p, 2, p, 2, &zero, p + 8, 2);
    cudaMemcpy(y, p + 8, 16, 2);
    printf("%d %g %g %g %g\\n", status, y[0], y[1], y[2], y[3]);
"""
# What a program does -> what it says, and what stderr says.
PROGRAMS = {
    "a product": (MATRIX, "0 7 10 15 22\n", ""),
    "a bad argument": (
        "cublasCreate_v2(&handle);"
        'printf("%d\\n", cublasSgemm_v2(handle, 0, 0, 2, 2, 2, &one, x, 1, x, 2, &zero, y, 2));',
        "7\n",
        "cupola: cublasSgemm: lda is 1, but A has 2 rows\n",
    ),
    "not emulated": (
        'cublasCreate_v2(&handle); for (int i = 0; i < 3; i++) printf("%d ", cublasSrotg_v2(handle, x, x, x, x));',
        "15 15 15 ",
        "cupola: the CPU device does not emulate cublasSrotg_v2: it returns CUBLAS_STATUS_NOT_SUPPORTED\n",
    ),
    "linear equations": (
        "float a[4] = {4, 2, 2, 5}, *work; int *info, got = -1, size = 0;"
        "cusolverDnCreate(&handle); cudaMalloc(&p, 64);"
        "cudaMalloc(&info, 4); cusolverDnSpotrf_bufferSize(handle, 0, 2, p, 2, &size); cudaMalloc(&work, 4 * size);"
        "cudaMemcpy(p, a, 16, 1); int status = cusolverDnSpotrf(handle, 0, 2, p, 2, work, size, info);"
        "cudaMemcpy(a, p, 16, 2); cudaMemcpy(&got, info, 4, 2);"
        'printf("%d %d %g %g %g\\n", status, got, a[0], a[1], a[3]);',
        "0 0 2 1 2\n",
        "",
    ),
    "random numbers": (
        "curandCreateGenerator(&handle, 161); cudaMalloc(&p, 16);"
        'printf("%d ", curandGenerateUniform(handle, p, 4)); cudaMemcpy(y, p, 16, 2);'
        "int good = y[0] != y[1]; for (int i = 0; i < 4; i++) good &= y[i] > 0 && y[i] <= 1;"
        'puts(good ? "fine" : "bad");',
        "0 fine\n",
        "",
    ),
    "a sparse vector": (
        "int n[] = {1}, *i; void *sparse, *dense; cusparseCreate(&handle); cudaMalloc(&p, 16); cudaMalloc(&i, 16);"
        "cudaMemcpy(p, x, 16, 1); cudaMemcpy(i, n, 4, 1); cusparseCreateDnVec(&dense, 4LL, p, 0);"
        "cusparseCreateSpVec(&sparse, 4LL, 1LL, i, p, 2, 0, 0);"
        'printf("%d ", cusparseGather(handle, dense, sparse)); cudaMemcpy(y, p, 16, 2); printf("%g\\n", y[0]);',
        "0 2\n",
        "",
    ),
}  # fmt: skip


def run(program, **variables):
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", str(program)]
    return processes.run(command, env=os.environ | variables)


def build(folder, body, major, *flags):
    (folder / "program.c").write_text(HEAD + body + "\n}\n")
    link = os.path.join(programs.library_folder(), f"link{major}")
    libraries = ["-lcublas", "-lcurand", "-lcusolver", "-lcusparse", "-lcudart"]
    command = ["gcc", "-w", "program.c", "-o", "program", f"-L{link}", *flags, *libraries]
    processes.run(command, cwd=folder, check=True)
    return folder / "program"


@pytest.mark.parametrize("major", [12, 13])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_in_c(name, major, tmp_path):
    pytest.importorskip("scipy_openblas64", reason="the emulated math libraries calculate with OpenBLAS")
    body, output, errors = PROGRAMS[name]
    done = run(build(tmp_path, body, major))
    assert (done.stdout, done.stderr) == (output, errors)


def test_the_linker_takes_a_library_of_nvidias_name(tmp_path):
    """As it would be linked with NVIDIA's: a library with that name and versions, found by RPATH."""
    pytest.importorskip("scipy_openblas64", reason="the emulated math libraries calculate with OpenBLAS")
    names = ("cublasCreate_v2", "cublasSgemm_v2")
    (tmp_path / "stub.c").write_text("".join(f"int {name}(void) {{ return -1; }}\n" for name in names))
    (tmp_path / "stub.map").write_text("libcublas.so.13 { global: cublas*; local: *; };\n")
    flags = ["-shared", "-fPIC", "-Wl,-soname,libcublas.so.13", "-Wl,--version-script,stub.map"]
    processes.run(["gcc", "stub.c", "-o", "libcublas.so.13", *flags], cwd=tmp_path, check=True)
    os.symlink("libcublas.so.13", tmp_path / "libcublas.so")
    program = build(tmp_path, MATRIX, 13, f"-L{tmp_path}", f"-Wl,--disable-new-dtags,-rpath,{tmp_path}")
    done = run(program)
    assert (done.stdout, done.stderr) == ("0 7 10 15 22\n", "")


def test_without_openblas_the_program_is_told(tmp_path):
    (tmp_path / "scipy_openblas64.py").write_text("")  # a module, which has no folder with the library
    body = 'printf("%d %d\\n", cublasCreate_v2(&handle), cublasDestroy_v2(handle));'
    folders = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]  # cupola may be there
    done = run(build(tmp_path, body, 13), PYTHONPATH=os.pathsep.join(folders))
    assert done.stdout == "15 15\n", done.stderr
    assert done.stderr.count("calculates cublas with OpenBLAS, which is not installed") == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_library_exports_what_nvidias_does(name):
    library = re.sub(r"^lib|\.so\.\d+$", "", name)
    path = os.path.join(programs.library_folder(), name)
    command = ["nm", "-D", "--defined-only", path]
    listing = processes.run(command, check=True).stdout
    wanted = set(re.findall(r"SYMBOL\((\w+)\)", (PROVIDER / f"lib{library}_symbols.h").read_text()))
    assert wanted and wanted == set(re.findall(rf" T (\w+)@@{re.escape(name)}$", listing, re.MULTILINE))


def test_ctypes(run_python):
    pytest.importorskip("scipy_openblas64", reason="the emulated math libraries calculate with OpenBLAS")
    done = run_python("""
import ctypes, os
from cupola.cpu import programs
library = ctypes.CDLL(os.path.join(programs.library_folder(), "libcublas.so.13"))
handle, number = ctypes.c_void_p(), ctypes.c_int()
print(library.cublasCreate_v2(ctypes.byref(handle)), library.cublasGetPointerMode_v2(handle, ctypes.byref(number)),
      number.value, library.cublasSetPointerMode_v2(handle, 9), library.cublasDestroy_v2(handle))
""")
    assert done.stdout == "0 0 0 7 0\n", done.stderr


def test_tables_of_nvidias_library_where_ours_has_its_name(run_python):
    if not copies_of("curand"):
        pytest.skip("the tables of quasirandom numbers come from NVIDIA's libcurand, which is not installed")
    done = run_python("""
import ctypes, os
from cupola.cpu import programs
library = ctypes.CDLL(os.path.join(programs.library_folder(), "libcurand.so.10"))
generator = ctypes.c_void_p()
print([library.curandCreateGenerator(ctypes.byref(generator), kind) for kind in (201, 202, 203, 204)])
""")
    assert done.stdout == "[0, 0, 0, 0]\n", done.stderr


def test_both_versions_of_cudss(run_python):
    done = run_python("""
import ctypes, os
from cupola.cpu import programs
for major in (0, 1):
    library = ctypes.CDLL(os.path.join(programs.library_folder(), f"libcudss.so.{major}"))
    handle, parts, part = ctypes.c_void_p(), [], ctypes.c_int()
    for number in range(4):
        parts.append((library.cudssGetProperty(number, ctypes.byref(part)), part.value))
    print(parts, library.cudssCreate(ctypes.byref(handle)), library.cudssDestroy(handle))
""")
    assert done.stdout == ("[(0, 0), (0, 8), (0, 0), (3, 0)] 0 0\n[(0, 1), (0, 0), (0, 0), (3, 0)] 0 0\n"), done.stderr


@pytest.mark.parametrize(
    ("wheel", "wanted", "version"),
    [
        (None, None, 1),
        (None, [], 1),
        (None, ['nvidia-cudss-cu13==0.8.*; extra == "cu13"'], 0),
        (None, ['nvidia-cudss-cu13==1.0.*; extra == "cu13"'], 1),
        ("libcudss.so.0", ['nvidia-cudss-cu13==1.0.*; extra == "cu13"'], 0),
        ("libcudss.so.1", ['nvidia-cudss-cu13==0.8.*; extra == "cu13"'], 1),
    ],
)
def test_which_cudss_a_process_gets(wheel, wanted, version, monkeypatch):
    """That of the wheel, or the one that nvmath-python asks for."""

    def requires(name):
        if wanted is None:
            raise programs.importlib.metadata.PackageNotFoundError(name)
        return wanted

    monkeypatch.setattr(programs, "copies_of", lambda _: [(f"/lib/{wheel}", "site-packages")] if wheel else [])
    monkeypatch.setattr(programs.importlib.metadata, "requires", requires)
    assert programs.cudss_version() == version


def test_handles_may_be_freed_when_python_has_ended(tmp_path):
    """As PyTorch's plans of Fourier transforms are, by destructors of C++; what was not called before is looked up."""
    (tmp_path / "module.c").write_text("""
#include <stdio.h>
extern int curandCreateGenerator(void **, int), curandDestroyGenerator(void *);
static void *handle;
int make(void) { return curandCreateGenerator(&handle, 161); }
__attribute__((destructor)) static void leave(void) { printf("freed %d\\n", curandDestroyGenerator(handle)); }
""")
    link = os.path.join(programs.library_folder(), "link13")
    command = ["gcc", "-w", "-shared", "-fPIC", "module.c", "-o", "module.so", f"-L{link}", "-lcurand"]
    processes.run(command, cwd=tmp_path, check=True)
    (tmp_path / "script.py").write_text("import ctypes; print(ctypes.CDLL('./module.so').make(), flush=True)\n")
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "script.py"]
    done = processes.run(command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0\nfreed 0\n"), done.stderr


def test_what_the_bindings_leave_out_is_exported(tmp_path):
    """A program such as PyTorch is linked with all functions, and would not start if one of them were missing."""
    (tmp_path / "script.py").write_text("""
import ctypes
for library, function in ("libcusparse.so.12", "cusparseDestroyBsrsv2Info"), ("libcusolver.so.12", "cusolverSpCreate"):
    print(getattr(ctypes.CDLL(library), function)(None))
""")
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "script.py"]
    done = processes.run(command, cwd=tmp_path)
    assert done.stdout == "10\n9\n", done.stderr
    assert "does not emulate cusparseDestroyBsrsv2Info" in done.stderr


# Of each library a function that is not emulated, the status that it returns, and its name.
NOT_EMULATED = (
    ("libcublas.so.13", "cublasSrotg_v2", 15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    ("libcublasLt.so.13", "cublasLtGroupedMatrixLayoutCreate", 15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    ("libcufft.so.12", "cufftXtSetGPUs", 14, "CUFFT_NOT_IMPLEMENTED"),
    ("libcurand.so.10", "curandGenerateBinomial", 999, "CURAND_STATUS_INTERNAL_ERROR"),  # it has no such status
    ("libcusolver.so.12", "cusolverDnXsytrf", 9, "CUSOLVER_STATUS_NOT_SUPPORTED"),
    ("libcusparse.so.12", "cusparseSgtsv2", 10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
    (f"libcudss.so.{programs.cudss_version()}", "cudssCreateMg", 4, "CUDSS_STATUS_NOT_SUPPORTED"),
)


def test_what_is_not_emulated_is_named_once(tmp_path):
    (tmp_path / "script.py").write_text(f"""
import ctypes
for library, function, *_ in {NOT_EMULATED}:
    print(*[getattr(ctypes.CDLL(library), function)(None, None, None) for _ in range(2)])
""")
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "script.py"]
    done = processes.run(command, cwd=tmp_path)
    assert done.stdout.splitlines() == [f"{status} {status}" for _, _, status, _ in NOT_EMULATED], done.stderr
    for _, function, _, name in NOT_EMULATED:
        assert done.stderr.count(f"does not emulate {function}: it returns {name}\n") == 1, done.stderr
