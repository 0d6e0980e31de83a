"""``cupola nvcc``: NVIDIA's compiler, with the flags that make what it builds run on the CPU device, too."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

PARTS = {
    "nvvm/bin/cicc": "nvidia-nvvm",
    "bin/ptxas": "nvidia-cuda-nvcc",
    "include/crt/host_config.h": "nvidia-cuda-crt",
    "include/cuda_runtime.h": "nvidia-cuda-runtime",
    "include/cccl/cuda/std/version": "nvidia-cuda-cccl",
}
"""Files of a toolkit of CUDA 13 made of wheels, and the wheel that each is in. nvcc finds them beside itself."""

INSTALL = 'pip install "cupola[nvcc]"'

# What ends before there is device code, or with PTX alone.
NO_IMAGE = {"-ptx", "--ptx", "-E", "--preprocess", "-M", "-MM"}
# What ends with device code, for programs that load it themselves: for one GPU, or for several.
CUBIN, FAT_BINARY = {"-cubin", "--cubin"}, {"-fatbin", "--fatbin"}


def main() -> int:
    """Run the command ``cupola-nvcc``, for build systems that take the name of a compiler."""
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Replace this process by nvcc.

    Raises
    ------
    SystemExit
        When nvcc, a part of it or a C++ compiler is missing: the text says how to install it.
    """
    from cupola.cpu import programs

    nvcc = find_nvcc()
    check_host_compiler(arguments)
    major = toolkit_major(nvcc)
    try:
        folder = programs.library_folder()
    except ImportError as error:
        raise SystemExit(f"cupola nvcc: {error}") from None
    command = [str(nvcc), *adapt(arguments, os.path.join(folder, f"link{major}"))]
    try:
        os.execv(nvcc, command)
    except OSError as error:
        raise SystemExit(f"cupola nvcc: cannot start {nvcc}: {error.strerror}") from None


def find_nvcc() -> Path:
    """nvcc of the environment, of ``CUDA_PATH`` or ``CUDA_HOME``, or of ``PATH``, with its parts.

    Raises
    ------
    SystemExit
        When it, or a part of it, is missing.
    """
    from cupola.pathfinder import find_nvidia_binary_utility

    found = find_nvidia_binary_utility("nvcc") or shutil.which("nvcc")
    if found is None:
        raise SystemExit(f"cupola nvcc: nvcc is not installed: {INSTALL}, or install the CUDA Toolkit")
    nvcc = Path(found)
    root = nvcc.resolve().parents[1]
    if (root / "bin" / "nvcc.profile").exists() and root.parent.name == "nvidia":  # made of wheels
        missing = sorted({wheel for file, wheel in PARTS.items() if not (root / file).exists()})
        if missing:
            raise SystemExit(
                f"cupola nvcc: {nvcc} lacks parts: {INSTALL}, or pip install {' '.join(missing)}, into the same folder"
            )
    return nvcc


def check_host_compiler(arguments: Sequence[str]) -> None:
    """Make sure that there is a compiler for the host's code.

    Raises
    ------
    SystemExit
        When there is none.
    """
    named = any(re.match(r"-ccbin|--compiler-bindir", argument) for argument in arguments)
    if named or os.environ.get("NVCC_CCBIN") or shutil.which("g++"):
        return
    other = next(filter(shutil.which, ("clang++", "c++")), None)
    advice = (
        f"add -ccbin {other}" if other else "install one (Debian and Ubuntu: apt install g++), or name it with -ccbin"
    )
    raise SystemExit(f"cupola nvcc: nvcc needs a C++ compiler for the host's code, and there is no g++: {advice}")


def toolkit_major(nvcc: Path) -> int:
    """The major version of CUDA, from the toolkit's headers; the newest known if they do not tell."""
    for header in ("include/cuda.h", "targets/x86_64-linux/include/cuda.h", "targets/sbsa-linux/include/cuda.h"):
        try:
            text = (nvcc.resolve().parents[1] / header).read_text(errors="replace")
        except OSError:
            continue
        if version := re.search(r"#define CUDA_VERSION (\d+)", text):
            return int(version[1]) // 1000
    return 13


# ---- the flags ------------------------------------------------------------------------------------------------------


def adapt(arguments: Sequence[str], link_folder: str) -> list[str]:
    """The arguments for nvcc: those of the user, and what they lack.

    PTX, which is what the CPU device runs, and line information, by which its errors name lines of the source, and
    which keeps the PTX in cubins. For programs the shared runtime, too, which can be the CPU device's. `link_folder`
    has a ``libcudart.so``.
    """
    given = _join(arguments)
    if NO_IMAGE.intersection(given) or not any(not argument.startswith("-") for argument in given):
        return list(arguments)
    is_cubin = bool(CUBIN.intersection(given))
    given = [_for_here(argument) for argument in given]
    if not is_cubin:
        given = [_with_ptx(argument, given) for argument in given]
        if missing := _missing_ptx(given):
            given.append(missing)
    is_program = not is_cubin and not FAT_BINARY.intersection(given)
    if is_program and not any(re.match(r"--?cudart\b", argument) for argument in given):
        given.append("-cudart=shared")
    elif is_program and any(re.match(r"--?cudart=(static|none)", argument) for argument in given):
        print("cupola nvcc: without -cudart shared this program runs on GPUs only", file=sys.stderr)
    if not {"-lineinfo", "--generate-line-info", "-G", "--device-debug"}.intersection(given):
        given.append("-lineinfo")
    return [*given, f"-L{link_folder}"] if is_program else given


# Options whose value may be the next argument, of those that matter here; nvcc takes each also with "=".
_LONG = {
    "-arch": "-arch", "--gpu-architecture": "-arch", "-code": "-code", "--gpu-code": "-code",
    "-gencode": "-gencode", "--generate-code": "-gencode", "-cudart": "-cudart", "--cudart": "-cudart",
}  # fmt: skip


def _join(arguments: Sequence[str]) -> list[str]:
    """The arguments, with those of `_LONG` under their short names and together with their values."""
    joined: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in _LONG:
            joined.append(f"{_LONG[name]}={value if equals else next(rest, '')}")
        else:
            joined.append(argument)
    return joined


def _for_here(argument: str) -> str:
    """The argument, or what stands for it where there is no GPU."""
    if argument == "-arch=native":
        return f"-arch=sm_{_modeled()}"
    if argument in ("-dlto", "--dlink-time-opt"):
        return "-rdc=true"  # the CPU device links PTX when the program starts; of LTO code there would be none
    return argument


def _with_ptx(argument: str, given: Sequence[str]) -> str:
    """``-code`` with PTX for the architecture."""
    if argument.startswith("-code=") and "compute_" not in argument:
        arch = next((other for other in given if other.startswith("-arch=")), "")
        if number := re.search(r"_(\d+[af]?)", arch):
            return f"{argument},compute_{number[1]}"
    return argument


def _missing_ptx(given: Sequence[str]) -> str | None:
    """One more ``-gencode``, when there are such options and none of them makes PTX."""
    codes = [argument for argument in given if argument.startswith("-gencode=")]
    if not codes or any(re.search(r"(?<!gen)code=\S*compute_", argument) for argument in codes):
        return None
    numbers = [number for argument in codes for number in re.findall(r"arch=compute_(\d+[af]?)", argument)]
    if not numbers:
        return None
    highest = max(numbers, key=lambda number: int(number.rstrip("af")))
    return f"-gencode=arch=compute_{highest},code=compute_{highest}"


def _modeled() -> int:
    """The architecture of the GPU that the CPU device models, such as 90."""
    from cupola.cpu import _driver

    wanted = os.environ.get("CUPOLA_CPU_MODEL") or "h200"
    return next((major * 10 + minor for key, _, (major, minor), *_ in _driver.models() if key == wanted), 90)
