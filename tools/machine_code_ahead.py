#!/usr/bin/env python
"""The CPU device's machine code that comes with the package: tools/machine_code_ahead.py write, or check.

`write` runs statements of cupola.numpy._common on the CPU device, in an empty cache and for the level of x86-64 that
the file is for, and packs what was compiled. That takes half a minute, on a processor of that level. `check` writes the
LLVM IR of what is in the file again, which no compiler is needed for, and says whether it still is the same. It also
makes sure of what code for other processors must have in common with it, since that replaces it while kernels run; a
test runs it.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import hashlib
import marshal
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

os.environ["CUPOLA_DEVICE"] = "cpu"
os.environ["CUPOLA_NUMPY_AHEAD"] = "0"
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()

from packed import packed, write

import cupola.numpy as np
from cupola import Device
from cupola.cpu.compiler import modules
from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.emit.threads.shape import Shape
from cupola.cpu.compiler.objects import machine, packaged
from cupola.cpu.compiler.objects.processor import Processor, instructions_of
from cupola.numpy import _ahead, _common

atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

LIMIT = 1_100_000  # bytes of the file
CHUNK_BYTES = 1 << 20
OTHERS = ("x86-64", "x86-64-v4")
LIST = ("list",)  # the name of what `check` needs: of each body, what it is of, and a hash of its LLVM IR

ANY = "?"
GROUPS: tuple[tuple[Any, str], ...] = (
    (_common.beginnings, ANY),
    (_common._arithmetic, "dl"),
    (_common._expressions, "d"),
    (_common._matrices, "d"),
    (_common._reductions, "dfl"),
    (_common._order, "dl"),
    (_common._choosing, "d"),
    (_common._statistics, "d"),
    (_common._functions, "d"),
    (_common._truth, ANY),
    (_common._random, ANY),
    (_common._making, ANY),
    (_common._conversions, ANY),
)
"""Statements, and of which types."""

Body = tuple[str, int, tuple[Any, ...], bool]  # what names a body: content, index, shape, independent


def statements() -> Iterator[_common.Statement]:
    """What is run."""
    for group, chars in GROUPS:
        for char in chars:
            yield from group(np, char) if chars != ANY else group(np)


def compiled() -> dict[bytes, bytes]:
    """The pieces of the file."""
    pieces: dict[bytes, bytes] = {}
    described: list[tuple[Body, str]] = []
    known, make, hashes = sources(), modules.Variant._make_body, {}
    compile_ir = machine.compile_ir

    def made_of_ir(ir: str, *arguments: Any) -> machine.MachineCode:
        code = compile_ir(ir, *arguments)
        hashes[code.key] = hash_of(ir)
        return code

    def made(self: modules.Variant, *, independent: bool) -> Any:
        code, facts = make(self, independent=independent)
        module = self._module
        if module.content not in known:
            return code, facts  # of NVRTC, which another version compiles to something else
        data = machine._cache().get(code.key)
        if data is None or module.is_lazy:
            raise AssertionError("the cache of object code is off, or a module is too large")
        body = module.content, self._index, astuple(self._shape), independent
        of_module = (
            module.entries,
            list(map(modules._fields, module.variables)),
            list(map(modules._fields, module.kernels)),
        )
        pieces[packaged.name_of("module", module.content)] = marshal.dumps(of_module, 4)
        pieces[packaged.name_of("body", *body)] = marshal.dumps((data, code.helpers, facts), 4)
        described.append((body, hashes[code.key]))
        return code, facts

    modules.Variant._make_body, machine.compile_ir = made, made_of_ir
    for statement in statements():
        statement()
    Device().sync()
    pieces[packaged.name_of(*LIST)] = marshal.dumps(tuple(described), 4)
    return pieces


def hash_of(ir: str) -> str:
    """A hash of LLVM IR."""
    return hashlib.sha256(ir.encode()).hexdigest()


def sources() -> dict[str, tuple[str, dict[str, int], int]]:
    """What modules that come with the package are made of, by content."""
    known, found = _ahead.known(), {}
    for name in known.names:
        data = known.get(name)
        if data is not None and not data.startswith(b"\x7fELF"):
            source = data.decode(), {}, modules.open_image(data).architecture
            found[modules.recall.content_of(*source)] = source
    return found


def written(module: modules.LoadedModule, body: Body, level: str) -> bodies.Code:
    """A body, for a processor of a level."""
    _, index, shape, independent = body
    machine.processor = lambda binding: Processor(level, "", instructions_of(level))
    facts = module.kernel(index).facts(Shape(*shape), rolled=True)
    first = len(bodies.emit_body(facts).sites) if independent else 0
    return bodies.emit_body(facts, independent=independent, first_site=first)


def in_common(body: bodies.Code) -> tuple[Any, ...]:
    """What code must share that takes turns: the engine goes by what it knows of one of the two."""
    return body.frame_bytes, body.resume_sites, body.whole_blocks, body.rows_of_blocks, body.apart, body.sites


def wrong() -> list[str]:
    """What is to be said about the file."""
    if not packaged.FILE.exists():
        return [f"there is no {packaged.FILE.name}"]
    data = packaged.pieces().get(packaged.name_of(*LIST))
    described = marshal.loads(data) if data is not None else ()
    known, found = sources(), []
    module_of = functools.cache(lambda content: modules.LoadedModule(*known[content]))
    if not described:
        found.append("it is empty")
    for body, hashed in described:
        if body[0] not in known:
            found.append(f"it has a kernel that {_ahead.FILE.name} has not")
            continue
        module = module_of(body[0])
        code = written(module, body, packaged.LEVEL)
        if hash_of(code.ir) != hashed:
            found.append(f"{module.kernel(body[1]).info.name} is compiled to something else now")
        for level in OTHERS:
            if in_common(written(module, body, level)) != in_common(code):
                found.append(f"{module.kernel(body[1]).info.name} cannot be replaced by code for {level}")
    return found


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["write", "check"])
    if parser.parse_args().what == "check":
        modules.recall.enabled = False
        for line in (found := wrong()):
            print(line)
        if found:
            print(f"{packaged.FILE.name} does not fit: run tools/machine_code_ahead.py write")
        return 1 if found else 0
    os.environ["CUPOLA_CPU_FEATURES"] = packaged.LEVEL
    pieces = compiled()
    data = packed(pieces, CHUNK_BYTES)
    if len(data) > LIMIT:
        print(f"{len(data)} bytes are more than the {LIMIT} that the package is to carry: leave out statements")
        return 1
    write(packaged.FILE, data)
    print(f"{len(pieces)} pieces: {sum(map(len, pieces.values()))} bytes in {len(data)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
