"""Runs random kernels on the device that there is, and compares what it leaves in memory with the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from cupola import Device, LaunchConfig, PinnedMemoryResource, Program, ProgramOptions, launch
from cupola.bindings import driver
from tests.random_kernels.cuda import name, source, text
from tests.random_kernels.interpreter import Buffers, make_buffers, settle_nans
from tests.random_kernels.program import STATES, Kernel

MISCOMPILED = {
    255: "bfe.u32 whose position and length have the same low bits takes another field",
    258: "neg.s16 of -32768, extended to 64 bits, comes out positive",
}
"""Seeds whose PTX says what the interpreter does, but not what the H200 did: NVIDIA's assembler made something else of
one instruction. Their recorded hashes are the H200's, and either result counts as right."""

_OPTIONS = {"fma": False, "std": "c++17", "disable_warnings": True}


def compile_kernels(kernels: Sequence[Kernel], **options: object) -> dict[int, object]:
    """The kernels by seed, from one program."""
    device = Device()
    device.set_current()
    # The compiler cannot tell how deep a recursion goes; the few levels of these kernels need more than the default.
    (status,) = driver.cuCtxSetLimit(driver.CUlimit.CU_LIMIT_STACK_SIZE, 16384)
    assert status == driver.CUresult.CUDA_SUCCESS
    chosen = ProgramOptions(arch=f"sm_{device.arch}", **{**_OPTIONS, **options})  # type: ignore[arg-type]
    module = Program(source(kernels), code_type="c++", options=chosen).compile("cubin")
    return {kernel.seed: module.get_kernel(name(kernel)) for kernel in kernels}


def run_kernels(kernels: Sequence[Kernel], **options: object) -> Iterator[tuple[Kernel, Buffers]]:
    """Compile the kernels as one program and run them one by one."""
    compiled = compile_kernels(kernels, **options)
    device = Device()
    stream = device.create_stream()
    for kernel in kernels:
        yield kernel, _run(device, stream, kernel, compiled[kernel.seed])
    stream.close()


def _run(device: Device, stream: object, kernel: Kernel, compiled: object) -> Buffers:
    buffers = make_buffers(kernel)
    parts = [buffers.input, buffers.output, buffers.slices, buffers.totals]
    offsets = np.cumsum([0] + [-(-part.nbytes // 256) * 256 for part in parts])
    size = int(offsets[-1])
    with (
        PinnedMemoryResource().allocate(size, stream=stream) as host,
        device.allocate(size, stream=stream) as memory,
    ):
        stream.sync()
        image = np.from_dlpack(host).view(np.uint8)
        for part, offset in zip(parts, offsets, strict=False):
            image[offset : offset + part.nbytes] = part.reshape(-1).view(np.uint8)
        memory.copy_from(host, stream=stream)
        start = int(memory.handle)
        pointers = [np.uint64(start + int(offset)) for offset in offsets[:-1]]
        arguments = []
        for parameter, bits in zip(kernel.parameters, kernel.arguments, strict=True):
            raw = np.array([bits], f"u{parameter.type.bits // 8}")
            arguments.append(raw[0] if parameter.type.bits == 16 else raw.view(parameter.type.dtype)[0])
        launch(stream, LaunchConfig(grid=kernel.grid, block=kernel.block), compiled, *pointers, *arguments)
        memory.copy_to(host, stream=stream)
        stream.sync()
        for part, offset in zip(parts, offsets, strict=False):
            part.reshape(-1).view(np.uint8)[:] = image[offset : offset + part.nbytes]
    settle_nans(kernel, buffers)
    return buffers


def digest(buffers: Buffers) -> str:
    """Twelve hexadecimal digits for everything that a kernel wrote."""
    hashed = blake2b(digest_size=6)
    for part in (buffers.output, buffers.slices, buffers.totals):
        hashed.update(part.tobytes())
    return hashed.hexdigest()


def source_digest(kernel: Kernel) -> str:
    """Eight hexadecimal digits for the text of a kernel: results recorded for another text mean nothing."""
    return blake2b(text(kernel).encode(), digest_size=4).hexdigest()


@dataclass
class Difference:
    """The first thing that a device computed differently."""

    place: str
    device: int
    expected: int
    count: int
    """How many words or bytes of that buffer differ."""

    def __str__(self) -> str:
        return f"{self.place}: {self.device:#x}, expected {self.expected:#x} ({self.count} differ)"


def first_difference(kernel: Kernel, found: Buffers, expected: Buffers) -> Difference | None:
    wrong = np.argwhere(found.output != expected.output)
    if len(wrong):
        thread, word = (int(i) for i in wrong[0])
        what = f"state {word}" if word < STATES else kernel.results[word - STATES].name
        place = f"thread {thread} word {word} ({what})"
        return Difference(place, int(found.output[thread, word]), int(expected.output[thread, word]), len(wrong))
    for title in ("slices", "totals", "input"):
        a, b = getattr(found, title), getattr(expected, title)
        wrong = np.flatnonzero(a != b)
        if len(wrong):
            return Difference(f"{title}[{wrong[0]}]", int(a[wrong[0]]), int(b[wrong[0]]), len(wrong))
    return None
