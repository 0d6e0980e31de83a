"""Loads, compiles and launches mutants in this process, and tells of each what came of it.

    python -m tests.cpu.fuzz.child SEED ...

Prints a line ``begin SEED STAGE`` at each stage and ``end SEED OUTCOME`` behind the last one. Who starts this waits
for the lines: a process that ends, or that stays too long at the stage of loading, has found an error; at the launch, a
mutant may well run forever.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from .mutation import mutant

BLOCK, GRID, BYTES = 64, 2, 4096

_OF_THE_MODULE = {
    "INVALID_PTX",
    "INVALID_IMAGE",
    "NOT_FOUND",
    "INVALID_VALUE",
    "LAUNCH_OUT_OF_RESOURCES",
    "OUT_OF_MEMORY",
}
_OF_THE_MODULE |= {"NOT_SUPPORTED", "UNSUPPORTED_PTX_VERSION", "NO_BINARY_FOR_GPU"}
_OF_THE_LAUNCH = {
    "ILLEGAL_ADDRESS",
    "MISALIGNED_ADDRESS",
    "ASSERT",
    "LAUNCH_FAILED",
    "HARDWARE_STACK_ERROR",
    "INVALID_PC",
}
_OF_THE_LAUNCH |= {"ILLEGAL_INSTRUCTION", "LAUNCH_OUT_OF_RESOURCES"}


def run(seed: int) -> str:
    """The outcome of one mutant: "ok", the name of a CUDA error, or "ERROR" and what is wrong with the device."""
    from cupola.bindings import driver

    def name(status: object) -> str:
        return driver.CUresult(int(status)).name.removeprefix("CUDA_ERROR_")  # type: ignore[call-overload]

    def judge(status: object, allowed: set[str], what: str) -> str:
        found = name(status)
        text = explanation(status)
        if found not in allowed or "compiler of the CPU device failed" in text:
            return f"ERROR {what}: {found}: {text}"
        return found

    _, device = driver.cuDeviceGet(0)
    _, context = driver.cuCtxCreate(None, 0, device)
    try:
        tell("begin", seed, "load")
        status, module = driver.cuModuleLoadData(mutant(seed).encode() + b"\0")
        if int(status):
            return judge(status, _OF_THE_MODULE, "load")
        status, kernel = driver.cuModuleGetFunction(module, b"k")
        if int(status):
            return judge(status, _OF_THE_MODULE, "get")
        buffers = [driver.cuMemAlloc(BYTES)[1] for _ in range(3)]
        for buffer in buffers:
            driver.cuMemsetD8(buffer, 7, BYTES)
        tell("begin", seed, "compile")
        values = (tuple(buffers) + (100,) + (0,) * 28, (None,) * 3 + (ctypes.c_int,) + (ctypes.c_int,) * 28)
        status = driver.cuLaunchKernel(kernel, GRID, 1, 1, BLOCK, 1, 1, 1024, 0, values, 0)[0]
        if int(status):
            return judge(status, _OF_THE_MODULE, "compile")
        tell("begin", seed, "launch")
        status = driver.cuCtxSynchronize()[0]
        return "ok" if not int(status) else judge(status, _OF_THE_LAUNCH, "launch")
    finally:
        driver.cuCtxDestroy(context)


def explanation(status: object) -> str:
    """What the device says about its last error."""
    import cupola.cpu._driver as native

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    kind = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
    text = ctypes.create_string_buffer(4096)
    kind(pointer(native.explain, b"cupola.cpu._driver.explain"))(int(status), text, len(text))  # type: ignore[call-overload]
    return text.value.decode(errors="replace")


def tell(*words: object) -> None:
    print(*words, flush=True)


def run_all(run: Callable[[int], str]) -> NoReturn:
    """Run each seed of the command line, tell what came of it, and end the process."""
    for seed in map(int, sys.argv[1:]):
        try:
            outcome = run(seed)
        except Exception as error:
            outcome = f"ERROR {type(error).__name__}: {error}"
        tell("end", seed, outcome.replace("\n", " | "))
    sys.stdout.flush()
    os._exit(0)


def main() -> None:
    faulthandler.enable()
    import cupola.cpu

    cupola.cpu.use()
    from cupola.bindings import driver

    driver.cuInit(0)
    run_all(run)


if __name__ == "__main__":
    main()
