"""cuFile: records, errors and conversions, with a library made for the test; the real one answers without a GPU too."""

from __future__ import annotations

import pickle
import shutil
import sys

import pytest

from bindgen.libraries import BINDINGS
from cupola.bindings import cufile
from cupola.pathfinder import DynamicLibNotFoundError
from tests import processes

LIBCUFILE = """
#include <errno.h>
#include <string.h>
#include "cupola/cufile.h"
CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr) {
    *fh = (CUfileHandle_t)(long)descr->handle.fd;
    return (CUfileError_t){descr->type == CU_FILE_HANDLE_TYPE_OPAQUE_FD ? 0 : CU_FILE_CUDA_DRIVER_ERROR, 201};
}
void cuFileHandleDeregister(CUfileHandle_t fh) { (void)fh; }
CUfileError_t cuFileDriverClose_v2(void) { return (CUfileError_t){CU_FILE_DRIVER_CLOSING, 0}; }
long cuFileUseCount(void) { return 3; }
ssize_t cuFileRead(CUfileHandle_t fh, void *memory, size_t size, off_t file, off_t offset) {
    (void)memory, (void)file, (void)offset;
    if (fh == (void *)1) return errno = EBADF, -1;
    return fh == (void *)2 ? -CU_FILE_IO_ERROR : (ssize_t)size;
}
ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t count, off_t file, unsigned flags) {
    (void)fh, (void)file;
    return (ssize_t)(iov[count - 1].len * 10 + flags);
}
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned nr, CUfileIOParams_t *params, unsigned flags) {
    (void)batch, (void)flags;
    return (CUfileError_t){params[nr - 1].u.batch.size == 8 ? 0 : CU_FILE_INVALID_VALUE, 0};
}
static char kept[64];
CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t parameter, const char *text) {
    (void)parameter, strcpy(kept, text);
    return (CUfileError_t){0};
}
CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t parameter, char *text, int size) {
    (void)parameter, strncpy(text, kept, (size_t)size);
    return (CUfileError_t){0};
}
CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t parameter, bool *value) {
    *value = parameter == CUFILE_PARAM_PROFILE_NVTX;
    return (CUfileError_t){0};
}
CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t parameter, size_t *least, size_t *most) {
    (void)parameter;
    return *least = 1, *most = 1ul << 40, (CUfileError_t){0};
}
CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats) { return stats->read_ops.ok = 4, (CUfileError_t){0}; }
"""
CALLS = [
    ("cufile.handle_register(cufile.Descr(type=cufile.FileHandleType.OPAQUE_FD, handle=handle))", 7),
    ("cufile.handle_deregister(7)", None),
    ("cufile.use_count()", 3),
    ("cufile.read(3, 0, 100, 0, 0)", 100),
    ("cufile.read(1, 0, 100, 0, 0)", ("OSError", "[Errno 9] Bad file descriptor")),
    ("cufile.read(2, 0, 100, 0, 0)", ("cuFileError", "IO_ERROR (5044): cufile io error")),
    ("cufile.readv(0, iov, 0)", 50),
    ("cufile.readv(0, iov, 0, flags=2)", 52),
    ("cufile.batch_io_submit(1, 2, params, 0)", None),
    ("cufile.batch_io_submit(1, 1, params.ptr, 0)", ("cuFileError", "INVALID_VALUE (5022): invalid arguments")),
    ("cufile.set_parameter_string(cufile.StringConfigParameter.LOG_DIR, '/tmp')", None),
    ("cufile.get_parameter_string(cufile.StringConfigParameter.LOG_DIR, 64)", "/tmp"),
    ("cufile.set_parameter_string(cufile.StringConfigParameter.LOG_DIR, b'/var')", None),
    ("cufile.get_parameter_string(cufile.StringConfigParameter.LOG_DIR, 2)", "/v"),
    ("cufile.get_parameter_bool(cufile.BoolConfigParameter.PROFILE_NVTX)", True),
    ("cufile.get_parameter_bool(0)", False),
    ("cufile.get_parameter_min_max_value(0)", (1, 1 << 40)),
    ("cufile.get_stats_l1(stats) or stats.read_ops.ok", 4),
    ("cufile.driver_close()", ("cuFileError", "DRIVER_CLOSING (5006): driver shutdown in progress")),
    (
        "cufile.handle_register(cufile.Descr())",
        (
            "cuFileError",
            "CUDA_DRIVER_ERROR (5011): CUDA Driver API error; CUDA status: CUDA_ERROR_INVALID_CONTEXT (201)",
        ),
    ),
    ("cufile.get_parameter_string(0, -1)", ("ValueError", "len must not be negative")),
    ("cufile.readv(0, cufile.Descr(), 0)[:0]", ("TypeError", "readv(), argument 'iov': expected IOVec, got Descr")),
]
PROGRAM = """
import ctypes, sys
import cupola.pathfinder as p
p.load_nvidia_dynamic_lib = lambda name: p.LoadedDL(sys.argv[1], False, ctypes.CDLL(sys.argv[1])._handle, "test")
from cupola.bindings import cufile
handle = cufile.Descr().handle
handle.fd = 7
iov, params, stats = cufile.IOVec(2), cufile.IOParams(2), cufile.StatsLevel1()
iov[1].len = 5
params[1].u.batch.size_ = 8
def outcome(call):
    try:
        return eval(call)
    except Exception as error:
        return type(error).__name__, str(error).replace("cupola.bindings.cufile.", "")
print([outcome(call) for call in eval(sys.stdin.read())])
for missing in ("driver_open()", "stats_start()", "batch_io_destroy(1)", "write(1, 0, 0, 0, 0)"):
    try:
        eval("cufile." + missing)
    except RuntimeError as error:
        print("is not found in" in str(error))
"""


def test_calls(tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    path = tmp_path / "libcufile.so.0"
    command = ["gcc", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{BINDINGS / 'include'}", "-x", "c", "-o", path, "-"]
    processes.run(command, input=LIBCUFILE, check=True)
    calls = [call for call, _ in CALLS]
    done = processes.run([sys.executable, "-c", PROGRAM, path], input=repr(calls))
    assert done.returncode == 0, done.stderr
    results, *missing = done.stdout.splitlines()
    for (call, expected), result in zip(CALLS, eval(results), strict=True):
        assert result == expected, call
    assert missing == ["True"] * 4, "functions that this library lacks"


def test_errors():
    plain, cuda = cufile.cuFileError(5001), cufile.cuFileError(5011, cu_err=2)
    assert (plain.status, plain.cuda_error) == (5001, None) and (cuda.status, cuda.cuda_error) == (5011, 2)
    assert str(plain).startswith("DRIVER_NOT_INITIALIZED (5001): nvidia-fs driver is not loaded")
    assert str(cuda).endswith("CUDA Driver API error; CUDA status: CUDA_ERROR_OUT_OF_MEMORY (2)")
    assert "CUDA status: unknown (99999)" in str(cufile.cuFileError(5011, 99999))
    assert str(cufile.cuFileError(1)) == "UNKNOWN_1 (1): unknown error"
    for error in (plain, cuda):
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.status, again.cuda_error) == (str(error), error.status, error.cuda_error)
    assert cufile.op_status_error(cufile.OpError.IO_ERROR) == "cufile io error"


def test_names():
    assert cufile.FileHandleType.OPAQUE_FD == 1 and cufile.Opcode.WRITE == 1 and cufile.Status.COMPLETE == 16
    assert cufile.SizeTConfigParameter.POLLTHRESHOLD_SIZE_KB == 10 and cufile.OpError.SUCCESS == 0
    assert len(cufile.IOParams(3)) == 3 and cufile.StatsLevel3().per_gpu_stats[15].uuid == bytes(16)
    descr = cufile.Descr(type=cufile.FileHandleType.OPAQUE_FD)
    descr.handle.fd = 5
    assert (descr.handle.fd, descr.handle.handle) == (5, 5)


def test_the_real_library():
    try:
        assert cufile.get_version() >= 1000
    except DynamicLibNotFoundError:
        pytest.skip("needs nvidia-cufile")
    level = cufile.StringConfigParameter.LOGGING_LEVEL
    cufile.set_parameter_string(level, "WARN")
    assert cufile.get_parameter_string(level, 64) == "WARN"
    assert cufile.get_parameter_bool(cufile.BoolConfigParameter.FORCE_COMPAT_MODE) in (False, True)
    with pytest.raises(cufile.cuFileError) as caught:
        cufile.get_parameter_min_max_value(1000)
    assert caught.value.status == cufile.OpError.INVALID_VALUE
