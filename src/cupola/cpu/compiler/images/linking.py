"""What the driver's linker and nvJitLink's wrapper ask of the PTX linker: images in, one image out."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from cupola.cpu.compiler import ptx
from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.images import containers, device_runtime, fat_binaries, versions
from cupola.cpu.compiler.ptx.linker import merge, undefined_functions

PROVIDED = frozenset(
    ["__assertfail", "vprintf", "malloc", "free", "cudaGraphSetConditional", *device_runtime.FUNCTIONS]
)
"""External functions that the CPU device has (emit/control/calls.py, passes/conditions.py, device_runtime.ptx)."""


def read_input(image: bytes, name: str, architecture: int, driver: int = 0) -> str:
    """The PTX of one input, which is well-formed and, if it is no cubin, not newer than a driver of a CUDA version.

    Raises
    ------
    ImageError
        When it has none that a GPU of the architecture (90 for sm_90) runs; the text names the input.
    """
    try:
        text = containers.open_image(fat_binaries.unpack(image, architecture, driver), architecture).ptx
        if driver and not containers.is_cubin(image) and not fat_binaries.is_fat(image):
            versions.check(text, driver)
        ptx.parse(text)
    except ImageError as error:
        raise ImageError(error.status, f"'{name}': {error}") from error
    except ptx.PtxError as error:
        raise ImageError("CUDA_ERROR_INVALID_PTX", f"'{name}': {error}") from error
    return text


def link_ptx(inputs: Sequence[tuple[str, str]], architecture: int, *, keeper: str = "") -> str:
    """One module of PTX from names and texts.

    Functions whose address the kernel ``keeper`` takes are visible to other inputs, and that kernel goes.

    Raises
    ------
    ImageError
        With a line for everything that does not fit.
    """
    names: dict[str, int] = {}
    for name, _ in inputs:
        names[name] = names.get(name, 0) + 1
    numbered = [
        (name if names[name] == 1 else f"{name} (input {number})", text)
        for number, (name, text) in enumerate(inputs, 1)
    ]
    try:
        return merge(numbered, provided=PROVIDED, architecture=architecture or None, keeper=keeper)
    except ptx.PtxError as error:
        raise ImageError("CUDA_ERROR_INVALID_PTX", str(error)) from error


def link_cubin(inputs: Sequence[tuple[str, str]], architecture: int) -> bytes:
    """The result of `link_ptx` as a cubin for the CPU device."""
    return containers.make_cubin(link_ptx(inputs, architecture), architecture)


def link_fat_binaries(binaries: Sequence[bytes], architecture: int) -> bytes:
    """One cubin for the CPU device from what nvcc has linked (``-rdc=true``), a fat binary for each file.

    Raises
    ------
    ImageError
        When a file has no PTX that a GPU of the architecture runs, or the files do not fit together.
    """
    inputs: list[tuple[str, str]] = []
    for number, binary in enumerate(binaries, 1):
        name = fat_binaries.name_of(binary)
        try:
            text = containers.open_image(fat_binaries.unpack(binary, architecture), architecture).ptx
        except ImageError as error:
            if not name and inputs:
                continue  # NVIDIA's libcudadevrt, which has no name and comes last; see device_runtime.py
            raise ImageError(error.status, f"'{name or number}': {error}") from error
        inputs.append((name or f"file {number}", text))
    try:
        return link_cubin(inputs, architecture)
    except ImageError as error:
        if _DYNAMIC_PARALLELISM not in str(error):
            raise
        text = "kernels that launch kernels (dynamic parallelism) need functions that the CPU device does not have"
        raise ImageError("CUDA_ERROR_CDP_NOT_SUPPORTED", f"{text}: {error}") from error


_DYNAMIC_PARALLELISM = "'__cudaCDP2"  # begins the names of its functions


# ---- for nvjitlink.c, which cannot return an error: the cubin then runs on GPUs only, as its loading will say --------

_KEEPER = "cupola_keeps_what_ptx_calls"


def keeper(inputs: Sequence[tuple[str, str]], lto: str | None, architecture: int) -> str | None:
    """CUDA C++ of a kernel that takes the address of each function which the inputs want from others; None for none."""
    try:
        names = [name for name in undefined_functions(text for _, text in inputs) if name not in PROVIDED]
    except ptx.PtxError:
        return None  # `link_mixed` will tell
    names = [name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name)]
    if not names:
        return None
    declared = "".join(f'extern "C" __device__ void {name}();\n' for name in names)
    taken = " ".join(f"p[{index}] = (void*){name};" for index, name in enumerate(names))
    return f'{declared}extern "C" __global__ void {_KEEPER}(void** p) {{ {taken} }}\n'


def link_mixed(inputs: Sequence[tuple[str, str]], lto: str | None, architecture: int) -> str | None:
    """PTX of all inputs: those of PTX, and what nvJitLink made of the LTO-IR. None, with a message, when that fails."""
    try:
        return link_ptx([*inputs, *([("LTO-IR", lto)] if lto else [])], architecture, keeper=_KEEPER)
    except ImageError as error:
        logging.getLogger("cupola").warning("what nvJitLink has linked runs on GPUs only: %s", error)
        return None
