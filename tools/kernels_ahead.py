#!/usr/bin/env python
"""The kernels that come with the package: tools/kernels_ahead.py write, or check.

The statements of cupola.numpy._common are run on the CPU device with kernels that do nothing, which shows what they
would compile, in a second. `write` compiles what src/cupola/numpy/kernels/ahead.bin lacks, and drops what no statement
needs. `check` says whether that is to be done, and needs no compiler; a test runs it. `list` shows their sources.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import sys
from collections.abc import Container, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ["CUPOLA_DEVICE"] = "cpu"

from packed import packed, write

import cupola.numpy as np
from cupola import ObjectCode, Program
from cupola._packed import Packed
from cupola.numpy import _ahead, _common, _evaluate, _rows
from cupola.numpy._ahead import FILE, MACHINE_CODE, for_cpu, name_of
from cupola.pathfinder import load_nvidia_dynamic_lib

ARCHITECTURE = "compute_75"
VERSION = b".version 8.0"  # of PTX: that of CUDA 12.0
NOTHING = b".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n"
LONG = 30_000  # bytes of PTX, for which a driver needs about a tenth of a second: these kernels have machine code, too
NOT_SHORT = 5_000  # the same, of what programs begin with: their first statements need several kernels each
LIMIT = 700_000  # bytes of the file


def needed(statements: Iterable[_common.Statement] | None = None) -> dict[bytes, str]:
    """The sources that the statements compile, by name: those whose kernels come with the package, or others."""
    found: dict[bytes, str] = {}
    _evaluate.device()  # which is made current
    nothing = ObjectCode.from_ptx(NOTHING).get_kernel("nothing")

    class Pretended:
        def get_kernel(self, name: str) -> Any:
            return nothing

    def code(source: str, *, fma: bool = False, **options: Any) -> Any:
        if not fma and not options:
            for text in (source, for_cpu(source)):
                found[name_of(text, fma)] = text
        return Pretended()

    real_places = _rows.true_places

    def true_places(flags: Any) -> Any:
        for name in ("count_true", "place_true"):
            _rows._plain_kernels("compact.cu", "")[name]
        return np.zeros(5, "l")

    real_code, real_enqueue = _ahead.code, _rows.enqueue
    _ahead.code = code
    _rows.enqueue = lambda *arguments: None
    _rows.true_places = true_places
    try:
        for statement in _common.statements(np) if statements is None else statements:
            statement()
    finally:
        _ahead.code, _rows.enqueue, _rows.true_places = real_code, real_enqueue, real_places
    return found


def assembled(source: str) -> bytes:
    """The PTX of a source, without comments and as old as it may be."""
    options = {"std": "c++17", "fma": False, "name": "cupola.numpy", "arch": ARCHITECTURE, "lineinfo": False}
    with Program(source, "c++", options) as program:
        text = bytes(program.compile("ptx").code)
    text = re.sub(rb"//[^\n]*|\0|^\s*\.(?:loc|file)\s[^\n]*", b"", text, flags=re.MULTILINE)
    text = re.sub(rb"[ \t]+", b" ", text)
    text = re.sub(rb"\s*\n\s*", b"\n", text).lstrip()
    text, count = re.subn(rb"\.version \d+\.\d+", VERSION, text, count=1)
    if count != 1:
        raise ValueError("the PTX has no version")
    return text


def machine_code(source: str, architecture: str) -> bytes:
    """The cubin of a source, by NVRTC itself: on the CPU device, cupola would have it add the lines of the source."""
    nvrtc = ctypes.CDLL(load_nvidia_dynamic_lib("nvrtc").abs_path)

    def call(name: str, *arguments: Any) -> None:
        if status := getattr(nvrtc, name)(*arguments):
            raise RuntimeError(f"{name}: {status}")

    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [f"-arch={architecture}".encode(), b"-std=c++17", b"-fmad=false"]
    call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"cupola.numpy", 0, None, None)
    call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
    call("nvrtcGetCUBINSize", program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    call("nvrtcGetCUBIN", program, code)
    call("nvrtcDestroyProgram", ctypes.byref(program))
    return code.raw


def long_ones(
    wanted: dict[bytes, str], first: Container[bytes], kernels: dict[bytes, bytes]
) -> dict[bytes, tuple[str, str]]:
    """Of the kernels that come with machine code: sources and architectures, by the names of that.

    `first` are those that programs begin with.
    """
    return {
        name_of(source, False, architecture): (source, architecture)
        for name, source in wanted.items()
        if len(kernels.get(name, b"")) > (NOT_SHORT if name in first else LONG) and for_cpu(source) != source
        for architecture in MACHINE_CODE.values()
    }


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["write", "check", "list"])
    parser.add_argument("--all", action="store_true", help="compile all anew, after a change of the compiler")
    chosen = parser.parse_args()
    first = needed(_common.beginnings(np))
    wanted = first | needed()  # kernels that were made are not compiled again
    known = Packed(FILE.read_bytes()) if FILE.exists() else None
    there: set[bytes] = known.names if known is not None else set()
    if chosen.what == "list":
        for source in wanted.values():
            print(source)
        return 0
    before = {} if known is None else {name: text for name in wanted if (text := known.get(name)) is not None}
    names = wanted.keys() | long_ones(wanted, first, before).keys()
    missing, needless = names - there, there - names
    if chosen.what == "check":
        if missing or needless:
            print(f"{len(missing)} of {len(names)} kernels are not in {FILE.name}, and {len(needless)} are there that "
                  "nothing compiles any more: run tools/kernels_ahead.py write")  # fmt: skip
        return 1 if missing or needless else 0
    kernels = {} if chosen.all else before
    todo = sorted(wanted.keys() - kernels.keys())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(assembled, [wanted[name] for name in todo])
        kernels.update(zip(todo, made, strict=True))
    long = long_ones(wanted, first, kernels)
    if known is not None and not chosen.all:
        kernels.update({name: code for name in long if (code := known.get(name)) is not None})
    unmade = [name for name in long if name not in kernels]
    kernels.update({name: machine_code(*long[name]) for name in unmade})
    data = packed(kernels)
    if len(data) > LIMIT:
        print(f"{len(data)} bytes are more than the {LIMIT} that the package is to carry: leave out statements")
        return 1
    write(FILE, data)
    length = sum(map(len, kernels.values()))
    print(f"{len(kernels)} kernels, {len(todo) + len(unmade)} compiled now: {length} bytes in {len(data)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
