"""A driver made of Python functions, in a process of its own: a process keeps the provider that it chose.

Run as a program, it installs the stub and evaluates one expression a line, answering with a line of JSON. `Stub` is
the other end of the pipe.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import types
from collections.abc import Callable
from typing import Any

U32, U64, P = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


class Stub:
    """The test's end."""

    def __init__(self, **environment: str) -> None:
        from tests import processes  # which the other process has no need of

        command = [sys.executable, "-u", __file__]
        env = {**os.environ, **environment}
        self._process = processes.Child(command, stdin=processes.PIPE, stdout=processes.PIPE, env=env)

    def __call__(self, expression: str) -> str:
        """The repr of the expression's value, or ``ErrorName: message``."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(expression) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the stub's process died of {expression} (status {self._process.wait()})"
        return str(json.loads(answer))

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


# ---- the other process ----

FUNCTIONS: dict[str, Any] = {}
calls: list[Any] = []  # what the stub's functions were given
missing: set[str] = set()  # symbols that the stub does not have
default_status = 801  # of every function that is not below: CUDA_ERROR_NOT_SUPPORTED
asked: list[str] = []  # symbols that were looked up


def entry(*types: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make a Python function the entry point of its name."""

    def register(function: Callable[..., int]) -> Callable[..., int]:
        FUNCTIONS[function.__name__] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(function)
        return function

    return register


class Emptying:
    """A number whose conversion empties lists."""

    def __init__(self, number: int, *lists: list[Any]) -> None:
        self.number, self.lists = number, lists

    def __index__(self) -> int:
        for items in self.lists:
            items.clear()
        return self.number


def at(kind: Any, address: int, index: int = 0) -> Any:
    return kind.from_address(address + index * ctypes.sizeof(kind))


@entry(U32)
def cuInit(flags):
    calls.append(flags)
    return 0


@entry(P)
def cuDriverGetVersion(version):
    at(ctypes.c_int, version).value = 13050
    return 0


@entry(P, U64)
def cuMemAlloc_v2(pointer, size):
    calls.append(size)
    at(U64, pointer).value = 0x1000
    return 0 if size else 1


@entry(U64)
def cuMemFree_v2(pointer):
    calls.append(pointer)
    return 0


@entry(P, P, U64)
def cuMemGetAddressRange_v2(base, size, pointer):
    at(U64, base).value, at(U64, size).value = pointer & ~0xFFF, 4096
    return 0


@entry(P, ctypes.c_int)
def cuDeviceGet(device, ordinal):
    at(ctypes.c_int, device).value = ordinal
    return 0


@entry(P, ctypes.c_int, ctypes.c_int)
def cuDeviceGetName(name, length, device):
    ctypes.memmove(name, b"stub", min(4, length))
    return 0


@entry(P, ctypes.c_int)
def cuDeviceGetUuid_v2(uuid, device):
    ctypes.memmove(uuid, bytes(range(16)), 16)
    return 0


@entry(ctypes.c_int, P)
def cuGetErrorName(error, text):
    name = {1: b"CUDA_ERROR_INVALID_VALUE"}.get(error)
    names.append(ctypes.create_string_buffer(name) if name else None)
    at(U64, text).value = ctypes.addressof(names[-1]) if name else 0
    return 0 if name else 1


names: list[Any] = []


@ctypes.CFUNCTYPE(P, ctypes.c_int)
def error_text(error):
    return ctypes.addressof(ERROR_TEXT)


ERROR_TEXT = ctypes.create_string_buffer(b"an error")


@entry(P, P, P)
def cuGraphGetNodes(graph, nodes, count):
    room = at(U64, count).value
    if nodes:
        for i in range(min(room, 3)):
            at(U64, nodes, i).value = 0x100 + i
    at(U64, count).value = 3
    return 0


@entry(P, P, P, U64, ctypes.c_int)
def cuStreamUpdateCaptureDependencies_v2(stream, nodes, edges, count, flags):
    calls.append([at(U64, nodes, i).value for i in range(count)])
    return 0


BORROWED = (U64 * 2)(0x200, 0x201)


@entry(P, P, P, P, P, P, P)
def cuStreamGetCaptureInfo_v3(stream, status, number, graph, nodes, edges, count):
    at(ctypes.c_int, status).value, at(U64, number).value, at(U64, graph).value = 1, 7, 0x300
    at(U64, nodes).value, at(U64, edges).value, at(U64, count).value = ctypes.addressof(BORROWED), 0, 2
    return 0


@entry(P, ctypes.c_int, U64)
def cuPointerGetAttribute(data, attribute, pointer):
    at(U32, data).value = 1
    return 0


@entry(P, ctypes.c_int, P)
def cuMemPoolSetAttribute(pool, attribute, value):
    calls.append((attribute, at(U64, value).value))
    return 0


@entry(P)
def cuThreadExchangeStreamCaptureMode(mode):
    calls.append(at(ctypes.c_int, mode).value)
    at(ctypes.c_int, mode).value = 2
    return 0


@entry(P, U32, U32, U32, U32, U32, U32, U32, P, P, P)
def cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra):
    calls.append((gx, gy, gz, bx, by, bz, shared, stream))
    calls.append([at(U64, arguments, i).value for i in range(expected_arguments)] if arguments else None)
    calls.append([at(k, p).value for k, p in zip(kinds, calls[-1] or (), strict=False)])
    return 0


kinds: tuple[Any, ...] = ()
expected_arguments = 0


def launch(arguments: Any, *expected: Any) -> Any:
    """Launch with `arguments` and read them back as the ctypes types `expected`."""
    global kinds, expected_arguments
    kinds, expected_arguments = expected, len(expected)
    driver.cuLaunchKernel(0x10, 1, 2, 3, 4, 5, 6, 7, 8, arguments, 0)
    return calls[-1]


@entry(P, P, U32, P, P)
def cuModuleLoadDataEx(module, image, count, options, values):
    calls.append([(at(U32, options, i).value, at(U64, values, i).value or 0) for i in range(count)])
    for i in range(count):
        if at(U32, options, i).value == 5:
            ctypes.memmove(at(U64, values, i).value, b"log", 3)
    at(U64, module).value = 0x400
    return 0


@entry(P, P, P, P)
def cuGraphExecUpdate_v2(executable, graph, info, unused):
    at(ctypes.c_int, info).value = 2
    return 910


def answer(status: int) -> None:
    global default_status
    default_status = status


@ctypes.CFUNCTYPE(ctypes.c_int)
def anything() -> int:
    return default_status


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
def lookup(symbol: bytes) -> int | None:
    name = symbol.decode()
    asked.append(name)
    if name in missing:
        return None
    return ctypes.cast(FUNCTIONS.get(name, anything), P).value


def capsule(function: Any, name: bytes) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [P, ctypes.c_char_p, P]
    return new(ctypes.cast(function, P), name, None)


def serve() -> None:
    from cupola.bindings import _provider

    per_thread = _provider._per_thread_stream()
    _provider._driver = ("stub driver", None, capsule(lookup, b"stub.lookup"), None, per_thread)
    emulated = types.ModuleType("cupola.cpu._driver")
    emulated.runtime_lookup = capsule(lookup, b"stub.lookup")
    sys.modules["cupola.cpu._driver"] = emulated
    for line in sys.stdin:
        try:
            value = repr(eval(json.loads(line), globals()))
        except Exception as error:
            value = f"{type(error).__name__}: {error}"
        print(json.dumps(value))


if __name__ == "__main__":
    from cupola.bindings import driver, runtime  # noqa: F401  (for the expressions)

    serve()
