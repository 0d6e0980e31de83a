"""A bench for calls of CUDA's math libraries: one line of text is one call, its answer is what it changed.

The same lines run on a GPU, with NVIDIA's libraries, and on the CPU device, with the emulated ones: both are reached
by ctypes alone, through the functions' C names. A `Bench` has one block of device memory with small matrices of every
type (`As` is A of float32, `Bz` B of complex128), and one of host memory with scalars and places for results. After
each call it says what changed there and puts the old contents back, so that lines do not depend on each other.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Any

# Letter of a type: bytes, and how struct reads one part; complex numbers have two. k: of halves, g: of bfloat16.
TYPES = {
    "h": (2, "e"),
    "b": (2, "b"),
    "s": (4, "f"),
    "d": (8, "d"),
    "c": (8, "f"),
    "z": (16, "d"),
    "i": (4, "i"),
    "q": (1, "q"),
    "k": (4, "e"),
    "g": (4, "b"),
}
COMPLEX = "czkg"
ROOM = 1024  # bytes of a matrix or vector: 64 elements at least
COUNT = 32  # elements of it that have a value
# T: a triangle that is easy to solve, N: with NaN and infinity, S: symmetric (Hermitian) and positive definite, two of
# 4 by 4
ROWS = ("A", "B", "C", "x", "y", "T", "N", "R", "S")
SCALARS = {"zero": 0, "one": 1, "two": 2, "half": 0.5, "minus": -1, "nan": float("nan")}
UNTOUCHED = 0x5A


def encode(letter: str, value: complex) -> bytes:
    """One element as the device has it."""
    if letter == "q":
        return struct.pack("b", int(value.real) if value.real == value.real else 127)
    if letter == "i":
        return struct.pack("i", int(value.real) if value.real == value.real else 0)
    if letter == "b":
        word = struct.unpack("I", struct.pack("f", value.real))[0]
        return struct.pack("H", word >> 16)
    if letter == "g":
        return encode("b", value.real) + encode("b", value.imag)
    code = TYPES[letter][1]
    if letter in COMPLEX:
        return struct.pack(2 * code, value.real, value.imag)
    return struct.pack(code, value.real)


def decode(letter: str, data: bytes) -> str:
    """One element as text."""
    if letter == "q":
        return str(struct.unpack("b", data)[0])
    if letter == "b":
        return repr(struct.unpack("f", b"\0\0" + data)[0])
    if letter == "g":
        return f"{decode('b', data[:2])}:{decode('b', data[2:])}"
    code = TYPES[letter][1]
    if letter in COMPLEX:
        real, imaginary = struct.unpack(2 * code, data)
        return f"{real!r}:{imaginary!r}"
    return repr(struct.unpack(code, data)[0])


def element(row: str, letter: str, index: int) -> complex:
    """The value of an element before each call: small, so that sums are exact in any order."""
    whole = letter in "iq"
    part = 1.0 if whole else 0.25
    if row == "T":  # 4 by 4, powers of two on the diagonal; the second matrix is the same
        line, column = index % 4, index // 4 % 4
        value: complex = 2.0 if line == column else ((index % 16 * 5 + 1) % 3 - 1) * (1.0 if whole else 0.5)
        return value + (1j * ((index % 16 * 3) % 3 - 1) * 0.5 if letter in COMPLEX and line != column else 0)
    if row == "S":
        i, j = index % 4, index // 4 % 4
        off = ((i * j + i + j) % 3 - 1) * (1.0 if whole else 0.5)
        diagonal = 4.0 + i + index // 16
        return diagonal if i == j else off + (1j * (i - j) * 0.25 if letter in COMPLEX else 0)
    if row == "N" and whole:
        return index % 5 - 2
    if row == "N":
        return [1.5, float("nan"), -2.0, float("inf"), 0.5, float("-inf"), 0.0, -3.0][index % 8]
    step, start, modulus = {"A": (7, 3, 11), "B": (5, 4, 9), "C": (3, 1, 7), "x": (4, 5, 13), "y": (6, 1, 11)}[row]
    value = ((index * step + start) % modulus - modulus // 2) * part
    return value + (1j * ((index * (step + 1) + 2) % 7 - 3) * part if letter in COMPLEX else 0)


class Driver:
    """What the bench needs of ``libcuda.so.1``: the process's device, its memory."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        status = self.status(name, *arguments)
        if status:
            raise RuntimeError(f"{name} returned {status}")

    def status(self, name: str, *arguments: Any) -> int:
        wide = [ctypes.c_longlong(a) if isinstance(a, int) else a for a in arguments]
        return int(getattr(self._library, name)(*wide))

    def allocate(self, size: int) -> int:
        address = ctypes.c_ulonglong()
        self.call("cuMemAlloc_v2", ctypes.byref(address), size)
        return address.value


class Bench:
    """The blocks of memory, and the calls.

    Parameters
    ----------
    driver
        The device to use.
    find
        Gives the function of a C name, callable with ctypes' arguments; AttributeError when there is none.
    """

    def __init__(self, driver: Driver, find: Callable[[str], Any]) -> None:
        self._driver, self._find = driver, find
        self.places: dict[str, tuple[bool, int, str, int]] = {}  # name -> host?, offset, type, bytes
        self.names: dict[str, Any] = {}
        device, host = bytearray(), bytearray()
        for letter in TYPES:
            for row in ROWS:
                self.places[row + letter] = (False, len(device), letter, ROOM)
                values = b"" if row == "R" else b"".join(encode(letter, element(row, letter, i)) for i in range(COUNT))
                device += values.ljust(ROOM, bytes([UNTOUCHED]))
            self.places["r" + letter] = (True, len(host), letter, 64)
            host += bytes([UNTOUCHED]) * 64
            for name, scalar in SCALARS.items():
                self.places[f"{name}_{letter}"] = (True, len(host), letter, 16)
                host += encode(letter, complex(scalar)).ljust(16, b"\0")
                self.places[f"d{name}_{letter}"] = (False, len(device), letter, 16)
                device += encode(letter, complex(scalar)).ljust(16, b"\0")
        for name in ("P", "Q", "I"):  # the same for results that are integers
            self.places[name] = (False, len(device), "i", 256)
            device += bytes([UNTOUCHED]) * 256
        self.places["J"] = (False, len(device), "i", 256)  # pivots of 64 bits: rows that stay where they are
        device += struct.pack("8q", *range(1, 9)).ljust(256, bytes([UNTOUCHED]))
        self.places["info"] = (True, len(host), "i", 64)
        host += bytes([UNTOUCHED]) * 64
        pointers = {}
        for letter in TYPES:
            for row in "ABCTxyS":
                pointers[f"p{row}{letter}"] = row + letter
        start = len(device)
        self.device = driver.allocate(start + 64 * len(pointers))
        for i, (name, target) in enumerate(pointers.items()):
            _, offset, letter, _ = self.places[target]
            first = self.device + offset
            device += struct.pack("2Q", first, first + 16 * TYPES[letter][0]).ljust(64, b"\0")
            self.names[name] = self.device + start + 64 * i
        self._device, self._host = bytes(device), bytes(host)
        self._buffer = ctypes.create_string_buffer(self._host, len(host))
        for name, (is_host, offset, _, _) in self.places.items():
            self.names[name] = (ctypes.addressof(self._buffer) if is_host else self.device) + offset
        self.names["null"] = 0
        self.names["host"] = lambda value: ctypes.byref(value)
        self.names["f32"], self.names["f64"] = ctypes.c_float, ctypes.c_double
        self.names["p"] = self._pointer
        self.names["many"] = self._many
        slot = ctypes.c_longlong()  # where a line puts a handle of its own; not compared
        self.names["slot"], self.names["got"] = ctypes.addressof(slot), lambda: slot.value
        self.names["got_int"] = lambda: ctypes.c_int.from_buffer(slot).value
        self._slot = slot
        self._kept: list[Any] = []  # until the next line
        self._owned: list[Any] = []
        self.before_line: list[Callable[[], None]] = []
        self._restore()

    def _pointer(self, value: int) -> int:
        """The address of a host variable with a 64-bit value."""
        self._kept.append(ctypes.c_longlong(value))
        return ctypes.addressof(self._kept[-1])

    def _many(self, *values: int) -> int:
        """The address of a host array of int."""
        self._kept.append((ctypes.c_int * len(values))(*values))
        return ctypes.addressof(self._kept[-1])

    def keep(self, *objects: Any) -> None:
        """Let memory live as long as the bench."""
        self._owned += objects

    def _restore(self) -> None:
        self._driver.call("cuMemcpyHtoD_v2", self.device, self._device, len(self._device))
        ctypes.memmove(self._buffer, self._host, len(self._host))

    def function(self, name: str) -> Any:
        """The function as the lines call it: integers as wide as registers, the status as the result."""
        call = self._find(name)

        def run(*arguments: Any) -> int:
            wide = [ctypes.c_longlong(a) if isinstance(a, int) else a for a in arguments]
            return int(call(*wide))

        return run

    def answer(self, line: str) -> str:
        """Make the calls of a line. The statuses, and what changed; "fault N" when the context is unusable."""
        self._kept.clear()
        for clear in self.before_line:
            clear()
        names = _Names(self)
        try:
            result = eval(line, {"__builtins__": {}}, names)
        except AttributeError as error:
            return f"missing {str(error).rpartition(' ')[2]}"
        statuses = result if isinstance(result, tuple) else (result,)
        fault = self._driver.status("cuCtxSynchronize")
        if fault:
            return f"{' '.join(map(str, statuses))} fault {fault}"
        return " ".join([*map(str, statuses), *self._changes()])

    def _changes(self) -> Iterator[str]:
        after = ctypes.create_string_buffer(len(self._device))
        self._driver.call("cuMemcpyDtoH_v2", after, self.device, len(self._device))
        device, host = after.raw, self._buffer.raw
        if device != self._device or host != self._host:
            for name, (is_host, offset, letter, size) in self.places.items():
                old, new = (self._host, host) if is_host else (self._device, device)
                if old[offset : offset + size] != new[offset : offset + size]:
                    yield f"{name}={_difference(letter, old[offset : offset + size], new[offset : offset + size])}"
            self._restore()


class _Names(dict[str, Any]):
    """The variables of a line: places, and functions of the libraries."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.names)
        self._bench = bench

    def __missing__(self, name: str) -> Any:
        return self._bench.function(name)


def _difference(letter: str, old: bytes, new: bytes) -> str:
    size = TYPES[letter][0]
    parts = []
    for i in range(0, len(old), size):
        if old[i : i + size] != new[i : i + size]:
            parts.append(f"{i // size}>{decode(letter, new[i : i + size])}")
    return ",".join(parts)
