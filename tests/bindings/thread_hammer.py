"""Eight threads in the bindings at once: what is made at first use, shared records, lists that change, calls, launches.

Prints as JSON which modules were imported with the GIL off and what went wrong. `test_threads.py` runs it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

THREADS = 8
MODULES = ("cupola.bindings", "cupola.bindings.driver", "cupola.bindings.runtime", "cupola.bindings.nvrtc",
           "cupola.bindings.nvjitlink", "cupola.bindings.nvvm", "cupola.bindings.nvfatbin", "cupola.bindings.nvml",
           "cupola.bindings.cufile", "cupola.cpu._driver")  # fmt: skip

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 to, .param .u32 value)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    atom.global.add.u32 %r2, [%rd1], %r1;
    ret;
}
"""


def has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def together(work: Callable[[int], Any]) -> list[Any]:
    """The results of `work`, which all threads begin at the same moment."""
    barrier, results, failures = threading.Barrier(THREADS), [None] * THREADS, []

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = work(number)
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise AssertionError(failures[0])
    return results


def must(result: tuple[Any, ...]) -> Any:
    assert result[0] == 0, result
    return result[1] if len(result) == 2 else result[1:]


def first_use(modules: list[Any]) -> None:
    """All threads see the same class, member and constant, whoever made it."""
    for module in modules:
        names = module.__dir__()
        found = together(lambda _, m=module, n=names: [id(getattr(m, name)) for name in n])
        for name, *objects in zip(names, *found, strict=True):
            if isinstance(getattr(module, name), type):
                assert len(set(objects)) == 1, f"{module.__name__}.{name} is {len(set(objects))} classes"
    driver = modules[0]
    assert together(lambda _: driver.cuInit(0)) == [(driver.CUresult.CUDA_SUCCESS,)] * THREADS
    assert len({id(dtype) for dtype in together(lambda _: driver.CUlaunchConfig.dtype)}) == 1


def records(driver: Any, until: float) -> None:
    """One record whose fields, one of them a pointer, all threads set and read; and views of it by its address."""
    shared = driver.CUlaunchConfig()

    def work(number: int) -> None:
        attribute = driver.CUlaunchAttribute()
        attribute.value.priority = number
        while time.monotonic() < until:
            shared.gridDimX = number
            shared.attrs = [attribute] * (number + 1)
            shared.hStream = driver.CUstream(number)
            for read in shared.attrs[:1]:
                assert 0 <= read.value.priority < THREADS
            assert int(shared.hStream) < THREADS and shared.gridDimX < THREADS
            assert driver.CUlaunchConfig(shared.getPtr()).blockDimX == 0
            assert attribute.value is attribute.value

    together(work)


def lists(driver: Any, until: float) -> None:
    """A list that becomes shorter while calls read it is an error of the call, and nothing else."""
    option = driver.CUjit_option
    options: list[Any] = []
    sizes: list[Any] = []

    def work(number: int) -> None:
        record = driver.CUDA_TEXTURE_DESC()
        while time.monotonic() < until:
            if number % 2:
                options.extend([option.CU_JIT_MAX_REGISTERS, option.CU_JIT_THREADS_PER_BLOCK] * 2)
                sizes.extend(range(4))
                del options[:], sizes[:]
                continue
            with contextlib.suppress(IndexError, RuntimeError):  # it is too short
                assert driver.cuModuleLoadDataEx(None, 3, options, sizes)[0] != 0
            with contextlib.suppress(IndexError):
                record.addressMode = sizes

    together(work)


def calls(driver: Any, seconds: float) -> int:
    """Allocations, copies, events and launches; one sum of all threads says whether each launch ran once."""
    device = must(driver.cuDeviceGet(0))
    context = must(driver.cuDevicePrimaryCtxRetain(device))
    must(driver.cuCtxSetCurrent(context))
    kernel = must(driver.cuModuleGetFunction(must(driver.cuModuleLoadData(PTX)), b"add"))
    total = must(driver.cuMemAlloc(4))
    must(driver.cuMemsetD32(total, 0, 1))
    must(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, ((total, 0), (ctypes.c_void_p, ctypes.c_uint32)), 0))
    must(driver.cuCtxSynchronize())
    until = time.monotonic() + seconds

    def work(number: int) -> int:
        must(driver.cuCtxSetCurrent(context))
        stream = must(driver.cuStreamCreate(1))
        event = must(driver.cuEventCreate(2))
        host = ctypes.c_uint32()
        added = 0
        while added == 0 or time.monotonic() < until:
            types = (ctypes.c_void_p, (ctypes.c_uint32, ctypes.c_int, ctypes.c_long)[added % 3])
            must(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, ((total, number + 1), types), 0))
            added += number + 1
            must(driver.cuEventRecord(event, stream))
            must(driver.cuStreamWaitEvent(stream, event, 0))
            pointer = must(driver.cuMemAllocAsync(64, stream))
            must(driver.cuMemsetD32Async(pointer, number, 1, stream))
            must(driver.cuMemcpyDtoHAsync(ctypes.addressof(host), pointer, 4, stream))
            must(driver.cuMemFreeAsync(pointer, stream))
            must(driver.cuStreamSynchronize(stream))
            assert host.value == number
            assert driver.cuMemFree(0xDEAD0000)[0] != 0
        must(driver.cuEventDestroy(event))
        must(driver.cuStreamDestroy(stream))
        return added

    expected = sum(together(work))
    found = ctypes.c_uint32()
    must(driver.cuMemcpyDtoH(ctypes.addressof(found), total, 4))
    assert found.value == expected % 2**32, (found.value, expected)
    return expected


def main(seconds: float) -> dict[str, Any]:
    without = {}
    modules = []
    for name in MODULES:
        modules.append(importlib.import_module(name))
        without[name] = not has_gil()
    first_use(modules[1:9])
    driver = modules[1]
    records(driver, time.monotonic() + seconds)
    lists(driver, time.monotonic() + seconds)
    added = calls(driver, seconds)
    return {"without": without, "added": added, "gil": has_gil()}


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]))))
