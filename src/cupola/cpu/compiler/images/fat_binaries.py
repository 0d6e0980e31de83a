"""Which image of a fat binary the CPU device runs."""

from __future__ import annotations

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.images import containers, fat_entries, targets, versions

_KINDS = {
    fat_entries.PTX: "PTX",
    fat_entries.CUBIN: "a cubin",
    fat_entries.LTO_IR: "LTO-IR",
    fat_entries.TILE_IR: "Tile IR",
}


def unpack(image: bytes, architecture: int, driver: int = 0) -> bytes:
    """The image in a fat binary that the CPU device runs: a cubin with its PTX behind it, or else the newest PTX.

    That may be in a cubin as well (`containers.debug_ptx`). Of two for the same architecture, the entry of PTX is
    taken, because it has the lines of the source.

    Parameters
    ----------
    image
        Any image; one that is not a fat binary is returned.
    architecture
        The number of the modeled GPU, 90 for sm_90. What is for others is not taken.
    driver
        The CUDA version of the modelled driver (13050 for 13.5), which refuses newer PTX when there is no cubin for the
        GPU; 0 to take any.

    Raises
    ------
    ImageError
        When no entry fits, saying which there are, or the one that does is too new.

    Notes
    -----
    Only what may run is decompressed: fat binaries of large libraries have machine code for many GPUs.
    """
    if not is_fat(image):
        return image
    best: tuple[tuple[bool, int, bool], bytes] | None = None
    described = []
    has_cubin = False
    for entry in fat_entries.read(image):
        described.append(_describe(entry))
        data = _fitting(entry, architecture)
        if data is None:
            continue
        has_cubin |= entry.kind == fat_entries.CUBIN
        made_here = entry.kind == fat_entries.CUBIN and data.endswith(containers.TRAILER)
        if entry.kind == fat_entries.CUBIN and not made_here and containers.debug_ptx(data) is None:
            described[-1] += " without its PTX"
            continue
        rank = (made_here, entry.target.number, entry.kind == fat_entries.PTX)
        if best is None or rank > best[0]:
            best = (rank, data)
    if best is None:
        raise ImageError(
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            f"this fat binary has {', '.join(described) or 'nothing'}; the CPU device, here modeling "
            f"sm_{architecture}, runs PTX, for it or for older ones: build it with "
            f"-gencode arch=compute_{architecture},code=compute_{architecture} as well",
        )
    if driver and not has_cubin:
        versions.check(best[1].decode(errors="replace"), driver)
    return best[1]


def is_fat(image: bytes) -> bool:
    """Whether an image is a fat binary."""
    return image.startswith(fat_entries.MAGIC)


def name_of(image: bytes) -> str:
    """The name of the file that a fat binary was compiled from, as its first entry has it; empty if it has none."""
    try:
        return next((entry.name for entry in fat_entries.read(image)), "")
    except ImageError:
        return ""


def _describe(entry: fat_entries.Entry) -> str:
    kind = _KINDS.get(entry.kind, "something else")
    return f"{kind} for {entry.target}" if entry.target.number else kind


def _fitting(entry: fat_entries.Entry, architecture: int) -> bytes | None:
    """The cubin or PTX, if a GPU runs it."""
    if entry.kind == fat_entries.CUBIN and entry.target.runs_as_cubin(architecture):
        data = entry.expand()
        if containers.TRAILER in data:
            data = data[: data.rfind(containers.TRAILER) + len(containers.TRAILER)]
        target = targets.of_cubin(data)
        return data if not target or target.runs_as_cubin(architecture) else None
    if entry.kind == fat_entries.PTX and entry.target.number <= architecture:
        data = entry.expand().rstrip(b"\0")
        target = targets.of_ptx(data)  # if there is none, the compiler says what is wrong
        return data if not target or target.runs_as_ptx(architecture) else None
    return None
