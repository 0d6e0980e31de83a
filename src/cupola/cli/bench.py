"""``cupola bench``: how long a kernel takes, and how much it moves and computes in that time."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cupola._device_options import add_device

from . import expression
from . import options as common
from .output import BOLD, RED, paint, progress, rows, show

if TYPE_CHECKING:
    from cupola import Array, Device, Kernel, LaunchConfig, Stream

Facts = dict[str, Any]

DESCRIPTION = """\
Time a kernel of a file for sizes n, on a GPU, on the CPU device, or on both. Each launch is timed by events of the
device, many times; the median and the least are printed.

Arguments follow the parameters of the kernel: an array of n elements for each pointer, n for each integer, 1 for each
floating-point number. --args says otherwise, with a value or an array for each parameter:

  cupola bench saxpy.cu --size 1M,16M --flops '2*n'
  cupola bench matmul.cu --size 256,1024 --args 'float[n*n], float[n*n], float[n*n], n' \\
      --block 16,16 --grid 'n/16, n/16' --flops '2*n**3'

GB/s counts every array once; --bytes says how much the kernel really moves, such as '12*n'. The exit status is 1 if the
kernel does not compile, or fails."""

TYPES = {
    "char": "int8", "signed char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16",
    "int": "int32", "unsigned": "uint32", "unsigned int": "uint32", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "float": "float32", "double": "float64", "half": "float16",
    "__half": "float16", "size_t": "uint64", "bool": "uint8", "float2": "complex64", "double2": "complex128",
    "int8_t": "int8", "uint8_t": "uint8", "int16_t": "int16", "uint16_t": "uint16", "int32_t": "int32",
    "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64",
}  # fmt: skip

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(
    r"__global__\b[^;{}()]*?(?:__launch_bounds__\s*\([^)]*\)[^;{}()]*?)?\b(\w+)\s*\(([^(){};]*)\)\s*\{"
)
_ARRAY = re.compile(r"\s*([\w ]+?)\s*\[(.+)\]\s*")


class Unclear(Exception):
    """What is asked for cannot be told from the file: the text says what to add."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "bench",
        help="time a kernel of a file for several sizes, on one device or both",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("file", metavar="FILE", help="a source file")
    command.add_argument(
        "--kernel", metavar="NAME", help='the kernel, such as saxpy or "f<float>" (default: the only one)'
    )
    command.add_argument("--size", metavar="N,N,...", default="1M", help="the sizes n (default: 1M, which is 2**20)")
    command.add_argument("--args", metavar="VALUES", help="values and arrays for the parameters, with commas between")
    command.add_argument("--block", metavar="X,Y,Z", default="256", help="threads in a block (default: 256)")
    command.add_argument("--grid", metavar="X,Y,Z", help="blocks (default: as many as make n threads)")
    command.add_argument("--shared", metavar="BYTES", default="0", help="dynamic shared memory of a block")
    command.add_argument("--bytes", metavar="FORMULA", help="bytes that a launch moves, with n in it")
    command.add_argument("--flops", metavar="FORMULA", help="operations of a launch, with n in it")
    command.add_argument("--time", metavar="SECONDS", type=float, default=0.5, help="how long to measure each (0.5)")
    add_device(command.add_argument, choices=("auto", "cpu", "gpu", "both"), several=False)
    common.compiler(command)
    command.add_argument("--json", action="store_true", help="print the results as JSON")
    command.set_defaults(run=run)


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Measure; the exit status is 1 if the kernel could not be run."""
    try:
        sizes = [expression.size(text) for text in options.size.split(",")]
        if not 0 < options.time <= 3600:
            raise ValueError("--time must be more than 0 and at most 3600 seconds")
    except ValueError as error:
        command.error(str(error))
    if options.device == "both":
        results = [_in_child(device, options.given) for device in ("gpu", "cpu")]
    else:
        from .run import choose_device

        try:
            choose_device(options.device, options.model, None)
        except ValueError as error:
            command.error(str(error))
        results = [_here(options, sizes)]
    if options.json:
        show(json.dumps({"results": results}, indent=2))
    else:
        _tell(results)
    failed = [result for result in results if "error" in result]
    return 1 if len(failed) == len(results) or any(not result.get("absent") for result in failed) else 0


def _in_child(device: str, given: list[str]) -> Facts:
    """The results for one of both devices: a process has only one."""
    arguments = [argument for argument in given if argument != "--json"]
    for number, argument in enumerate(arguments):
        if argument == "--device":
            arguments[number + 1] = device
        elif argument.startswith("--device="):
            arguments[number] = f"--device={device}"
    if device == "gpu":
        arguments = [argument for argument in arguments if not argument.startswith("--model=")]
        if "--model" in arguments:
            place = arguments.index("--model")
            del arguments[place : place + 2]
    command = [sys.executable, "-m", "cupola", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    try:
        result: Facts = json.loads(done.stdout)["results"][0]
    except (ValueError, LookupError):
        result = {"device": device, "error": done.stderr.strip() or f"exit status {done.returncode}"}
    return result


def _here(options: argparse.Namespace, sizes: list[int]) -> Facts:
    """The results on the device of this process, or the error."""
    from cupola import CUDAError, Device
    from cupola.pathfinder import DynamicLibNotFoundError

    wanted = options.device or os.environ.get("CUPOLA_DEVICE") or "auto"
    try:
        device = Device()
        device.set_current()
    except (CUDAError, DynamicLibNotFoundError, RuntimeError, ValueError) as error:
        return {"device": wanted, "absent": True, "error": str(error)}
    facts: Facts = {"device": device.name}
    try:
        source = Path(options.file).read_text(encoding="utf-8")
        name, parameters = _parameters(source, options)
        facts["kernel"] = options.kernel or name
        kernel = _compile(source, facts["kernel"], options)
        found = []
        for n in progress(sizes, "measuring", quiet=options.json):
            found.append(_measure(device, kernel, parameters, n, options))
        facts["sizes"] = found
    except OSError as error:
        facts["error"] = f"cannot read {options.file}: {error.strerror}"
    except (Unclear, UnicodeDecodeError) as error:
        facts["error"] = str(error)
    except Exception as error:  # of the compiler, of the kernel, of what is missing
        facts["error"] = str(error) or type(error).__name__
    return facts


def _compile(source: str, name: str, options: argparse.Namespace) -> Kernel:
    import cupola
    from cupola import CUDAError

    from .compile import compile_source

    options.arch = None
    plain = argparse.Namespace(**{**vars(options), "kernel": None})
    if "<" not in name:
        try:
            return compile_source(source, options.file, "cubin", plain, lineinfo=True).get_kernel(name)
        except cupola.NVRTCError:
            raise
        except CUDAError:
            pass  # with a mangled name
    wanted = argparse.Namespace(**{**vars(options), "kernel": name})
    return compile_source(source, options.file, "cubin", wanted, lineinfo=True).get_kernel(name)


# ---- arguments -------------------------------------------------------------------------------------------------------


def _parameters(source: str, options: argparse.Namespace) -> tuple[str, list[str]]:
    """The kernel's name, and for each parameter a value or array as ``--args`` has it."""
    kernels = dict(_KERNEL.findall(_COMMENT.sub(" ", source)))
    if options.kernel:
        name = options.kernel
        plain = name.split("<")[0].split("::")[-1].strip()
        if plain not in kernels and not options.args:
            there = ", ".join(kernels) or "none"
            raise Unclear(f"there is no kernel {plain} in {options.file}, as far as it can be read; there is: {there}")
    elif len(kernels) == 1:
        name = plain = next(iter(kernels))
    elif kernels:
        raise Unclear(f"{options.file} has several kernels: add --kernel with one of {', '.join(kernels)}")
    else:
        raise Unclear(f"there is no kernel in {options.file}, as far as it can be read: name it with --kernel")
    if options.args:
        return name, _split(options.args)
    found = []
    for parameter in filter(None, (text.strip() for text in _instance(source, name, plain, kernels[plain]).split(","))):
        text = _usual(parameter)
        if text is None:
            raise Unclear(f"no value is known for the parameter `{parameter}` of {plain}: say all of them with --args")
        found.append(text)
    return name, found


def _instance(source: str, name: str, plain: str, parameters: str) -> str:
    """The parameters of a kernel, with the types that the name of an instance gives in place of a template's."""
    head = re.search(rf"template\s*<([^<>]*)>\s*__global__[^;{{}}()]*\b{plain}\s*\(", _COMMENT.sub(" ", source))
    if head is None or "<" not in name:
        return parameters
    given = _split(name[name.index("<") + 1 : name.rindex(">")])
    for declared, value in zip(head[1].split(","), given, strict=False):
        if word := re.fullmatch(r"\s*(?:typename|class)\s+(\w+)\s*", declared):
            parameters = re.sub(rf"\b{word[1]}\b", value, parameters)
    return parameters


def _usual(parameter: str) -> str | None:
    """The usual argument for a parameter in CUDA C++."""
    words = re.sub(r"\b(const|volatile|__restrict__|__restrict|__grid_constant__)\b", " ", parameter)
    if pointer := re.fullmatch(r"\s*([\w\s]*\w)\s*\*\s*\w*\s*", words):
        kind = " ".join(pointer[1].split())
        return f"{kind}[n]" if kind in TYPES else None
    scalar = re.fullmatch(r"\s*([\w\s]*\w)\s+\w+\s*", words)
    kind = " ".join(scalar[1].split()) if scalar else ""
    if kind not in TYPES:
        return None
    return f"{kind} 1" if TYPES[kind].startswith("float") else f"{kind} n"


def _split(text: str) -> list[str]:
    """Texts with commas between them, but not in brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found if part.strip()]


def _argument(text: str, n: int, device: Device, stream: Stream) -> tuple[Any, int]:
    """What the kernel gets, and how many bytes of memory it is."""
    import numpy

    if match := _ARRAY.fullmatch(text):
        kind = TYPES.get(match[1], match[1])
        try:
            dtype = numpy.dtype(kind)
        except TypeError:
            raise Unclear(f"`{text}`: there is no type {match[1]!r}; there is {', '.join(sorted(TYPES))}") from None
        count = int(_value(match[2], n))
        array: Array = device.full(count, 1, dtype, stream=stream)
        return array, array.nbytes
    kind = next((kind for kind in sorted(TYPES, key=len, reverse=True) if text.startswith(f"{kind} ")), "")
    value = _value(text.removeprefix(kind), n)
    if kind:
        return numpy.dtype(TYPES[kind]).type(value), 0
    return (int(value) if value == int(value) and "." not in text else float(value)), 0


def _value(text: str, n: int) -> int | float:
    try:
        return expression.evaluate(text, n=n)
    except ValueError as error:
        raise Unclear(str(error)) from None


def _extents(text: str, n: int) -> tuple[int, ...]:
    values = [math.ceil(_value(part, n)) for part in _split(text)]
    if not 1 <= len(values) <= 3:
        raise Unclear(f"{text!r} must be one to three numbers, with commas between")
    return tuple(values)


# ---- measuring -------------------------------------------------------------------------------------------------------


def _measure(device: Device, kernel: Kernel, parameters: list[str], n: int, options: argparse.Namespace) -> Facts:
    from cupola import LaunchConfig

    block = _extents(options.block, n)
    grid = _extents(options.grid, n) if options.grid else (-(-n // math.prod(block)),)
    config = LaunchConfig(grid=grid, block=block, shmem_size=int(_value(options.shared, n)))
    with device.create_stream() as stream:
        made = [_argument(text, n, device, stream) for text in parameters]
        seconds = _seconds(device, stream, kernel, config, [value for value, _ in made], options.time)
        for value, size in made:
            if size:
                value.close()
    moved = int(_value(options.bytes, n)) if options.bytes else sum(size for _, size in made)
    median = statistics.median(seconds)
    facts: Facts = {
        "n": n,
        "launches": len(seconds),
        "median_seconds": median,
        "least_seconds": min(seconds),
        "bytes": moved,
        "gigabytes_per_second": moved / median / 1e9,
    }
    if options.flops:
        facts["flops"] = _value(options.flops, n)
        facts["gigaflops_per_second"] = facts["flops"] / median / 1e9
    return facts


def _seconds(
    device: Device, stream: Stream, kernel: Kernel, config: LaunchConfig, arguments: list[Any], time: float
) -> list[float]:
    """The times of a launch, each the mean of several where one is short."""
    from cupola import launch

    def batch(count: int) -> float:
        start = stream.record(options={"timing_enabled": True})
        for _ in range(count):
            launch(stream, config, kernel, *arguments)
        end = stream.record(options={"timing_enabled": True})
        end.sync()
        return (end - start) / 1e3

    batch(1)  # with what a first launch takes
    first = max(batch(1), 1e-7)
    together = max(1, min(1000, int(time / 20 / first)))
    samples = max(3, min(50, int(time / (first * together))))
    return [batch(together) / together for _ in range(samples)]


def _tell(results: list[Facts]) -> None:
    flops = any("flops" in row for result in results for row in result.get("sizes", ()))
    head = ["n", "median", "least", "GB/s", *(["GFLOP/s"] if flops else []), "device"]
    cells = [head]
    for result in results:
        for row in result.get("sizes", ()):
            cells.append(
                [
                    f"{row['n']:,}",
                    _time(row["median_seconds"]),
                    _time(row["least_seconds"]),
                    f"{row['gigabytes_per_second']:.3g}",
                    *([f"{row['gigaflops_per_second']:.3g}"] if flops else []),
                    result["device"],
                ]
            )
    if len(cells) > 1:
        table = rows(cells)
        show("\n".join([paint(table[0], BOLD), *table[1:]]))
    for result in results:
        if "error" in result:
            print(f"{paint('error', RED, sys.stderr)} ({result['device']}): {result['error']}", file=sys.stderr)


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3f} {unit}"
    return f"{seconds * 1e6:.3f} us"
