"""Loads and links changed images with changed options in this process, and tells of each what came of it.

    python -m tests.cpu.fuzz.image_child SEED ...

It prints what `child` prints. The driver is called by its C functions, with options that the bindings would refuse.
"""

from __future__ import annotations

import ctypes
import faulthandler
import random
import tempfile
from typing import Any

from .child import explanation, run_all, tell
from .image_mutation import CALLEE, CALLER, images, mutant, mutate

ALLOWED = {"INVALID_PTX", "INVALID_IMAGE", "INVALID_VALUE", "NOT_FOUND", "NOT_SUPPORTED", "NO_BINARY_FOR_GPU"}
ALLOWED |= {"UNSUPPORTED_PTX_VERSION", "OUT_OF_MEMORY", "FILE_NOT_FOUND", "INVALID_HANDLE"}

# CUjit_option
INFO, INFO_SIZE, ERROR, ERROR_SIZE, TARGET = 3, 4, 5, 6, 9


class Options:
    """Arrays of options, with buffers for logs that are as large as the options say, and what must stay untouched."""

    GUARD = b"\xa5" * 64

    def __init__(self, chance: random.Random) -> None:
        numbers, values = [], []
        self.buffers: list[tuple[Any, int]] = []
        for buffer, size in ((INFO, INFO_SIZE), (ERROR, ERROR_SIZE)):
            if chance.random() < 0.6:
                room = chance.choice([0, 1, 2, 10, 100, 4000])
                memory = ctypes.create_string_buffer(bytes(room) + self.GUARD, room + len(self.GUARD))
                self.buffers.append((memory, room))
                pair = [(buffer, ctypes.addressof(memory)), (size, room)]
                for number, value in pair if chance.random() < 0.8 else [chance.choice([pair[1], pair[1]])]:
                    numbers.append(number)
                    values.append(value)
        for _ in range(chance.choice([0, 0, 1, 2, 5])):
            number = chance.choice([0, 1, 2, 7, 8, TARGET, 10, 11, 12, 13, 14, 15, 16, 25, 33, 34, 1000, 2**31 - 1, -1])
            numbers.append(number)
            values.append(chance.choice([0, 1, 80, 90, 0x1005A, 0x7FFFFFFF, 2**64 - 1]))
        self.count = len(numbers)
        self.numbers = (ctypes.c_int * (self.count + 1))(*numbers)
        self.values = (ctypes.c_void_p * (self.count + 1))(*values)

    def problem(self) -> str | None:
        for memory, room in self.buffers:
            if memory.raw[room:] != self.GUARD:
                return "ERROR a log is longer than its buffer"
        return None


class Driver:
    """The C functions of the CPU device."""

    def __init__(self) -> None:
        import cupola.cpu._driver as native

        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
        self._lookup = kind(pointer(native.lookup, b"cupola.cpu._driver.lookup"))  # type: ignore[call-overload]

    def call(self, name: str, *arguments: Any) -> int:
        return int(ctypes.CFUNCTYPE(ctypes.c_int)(self._lookup(name.encode()))(*arguments))  # type: ignore[call-overload]


def _load(driver: Driver, chance: random.Random, data: bytes) -> int:
    """Load an image by one of the functions that do; what it gave is unloaded."""
    handle, options = ctypes.c_void_p(), Options(chance)
    # Behind the image follow zeros, as behind a string.
    memory = ctypes.create_string_buffer(data, len(data) + 64)
    way = chance.randrange(5)
    if way == 0:
        status = driver.call("cuModuleLoadData", ctypes.byref(handle), memory)
    elif way == 1:
        status = driver.call("cuModuleLoadFatBinary", ctypes.byref(handle), memory)
    elif way == 2:
        status = driver.call(
            "cuModuleLoadDataEx", ctypes.byref(handle), memory, options.count, options.numbers, options.values
        )
    else:
        more = chance.choice([0, 0, 1, 2])
        library_options = (ctypes.c_int * 3)(*(chance.choice([0, 1, 2, -1]) for _ in range(3)))
        library_values = (ctypes.c_void_p * 3)(1, 0, 1)
        rest = (options.numbers, options.values, options.count, library_options, library_values, more)
        if way == 3:
            status = driver.call("cuLibraryLoadData", ctypes.byref(handle), memory, *rest)
        else:
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                if chance.random() < 0.5:
                    way = 0
                    status = driver.call("cuModuleLoad", ctypes.byref(handle), file.name.encode())
                else:
                    status = driver.call("cuLibraryLoadFromFile", ctypes.byref(handle), file.name.encode(), *rest)
    if status:
        return status
    found = ctypes.c_void_p()
    kinds = ("cuLibraryGetKernel", "cuLibraryUnload") if way >= 3 else ("cuModuleGetFunction", "cuModuleUnload")
    driver.call(kinds[0], ctypes.byref(found), handle, b"k")
    return driver.call(kinds[1], handle)


def _link(driver: Driver, chance: random.Random, data: bytes) -> int:
    """Link the image with others, changed or not, and load the result."""
    state, options = ctypes.c_void_p(), Options(chance)
    status = driver.call("cuLinkCreate_v2", options.count, options.numbers, options.values, ctypes.byref(state))
    if status:
        return status
    inputs = [data, CALLER.encode() + b"\0", CALLEE.encode() + b"\0"]
    chance.shuffle(inputs)
    cubin, size = ctypes.c_void_p(), ctypes.c_size_t()
    for each in inputs[: chance.choice([1, 2, 3, 3, 3])]:
        if chance.random() < 0.2:
            each = mutate(each, chance, list(images().values()))
        kind = chance.choice([0, 1, 1, 1, 2, 2, 3, 4, 5, 6, -1]) if chance.random() < 0.3 else 1
        name = chance.choice([b"a.ptx", b"b.ptx", b"", b"\xff\xfe", b"%s%n"])
        status = driver.call("cuLinkAddData_v2", state, kind, each, len(each), name, 0, None, None)
        if status:
            break
    if not status:
        status = driver.call("cuLinkComplete", state, ctypes.byref(cubin), ctypes.byref(size))
    if not status and chance.random() < 0.5:
        status = _load(driver, chance, ctypes.string_at(cubin.value or 0, size.value))
    text = explanation(status) if status else ""
    driver.call("cuLinkDestroy", state)
    if problem := options.problem():
        raise AssertionError(problem)
    if "compiler of the CPU device failed" in text:
        raise AssertionError(text)
    return status


def run(driver: Driver, seed: int) -> str:
    """The outcome of one mutant: "ok", the name of a CUDA error, or "ERROR" and what is wrong with the device."""
    from cupola.bindings.driver import CUresult

    chance = random.Random(f"use {seed}")
    name, data = mutant(seed)
    tell("begin", seed, f"of {name}")
    status = (_load if chance.random() < 0.7 else _link)(driver, chance, data)
    if not status:
        return "ok"
    found = CUresult(status).name.removeprefix("CUDA_ERROR_")  # type: ignore[call-overload]
    text = explanation(status)
    if found not in ALLOWED or "compiler of the CPU device failed" in text:
        return f"ERROR {name}: {found}: {text}"
    return found if text or found == "OUT_OF_MEMORY" else f"ERROR {name}: {found} without an explanation"


def main() -> None:
    faulthandler.enable()
    import cupola.cpu

    cupola.cpu.use()
    from cupola.bindings import driver as bindings

    bindings.cuInit(0)
    bindings.cuDevicePrimaryCtxRetain(0)
    bindings.cuCtxSetCurrent(bindings.cuDevicePrimaryCtxRetain(0)[1])
    driver = Driver()
    run_all(lambda seed: run(driver, seed))


if __name__ == "__main__":
    main()
