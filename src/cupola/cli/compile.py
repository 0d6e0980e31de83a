"""``cupola compile``: CUDA C++ to PTX, machine code or code for linking, and what became of each line."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import options as common
from .listing import Listing, NoDisassembler, of_ptx, of_sass, side_by_side
from .output import BOLD, GREEN, RED, paint, progress, rows, show

if TYPE_CHECKING:
    from cupola import ObjectCode

Facts = dict[str, Any]

DESCRIPTION = """\
Compile CUDA C++ with NVRTC: each FILE.cu becomes FILE.cubin, or FILE.ptx or FILE.ltoir with --to, beside it or where
--output says. With --show the code is printed beside the lines of source that it was made of, and no file is written
unless --output names one. The exit status is 1 if a file does not compile."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "compile",
        help="compile CUDA C++ to PTX, machine code or LTO-IR, and show what became of each line",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("files", metavar="FILE", nargs="+", help="source files, or - for standard input")
    command.add_argument("-o", "--output", metavar="PATH", help="the file to write, or a folder for several")
    command.add_argument("--to", choices=("cubin", "ptx", "ltoir"), help="what to make (default: cubin)")
    command.add_argument("--show", choices=("ptx", "sass"), help="print the code beside its source")
    command.add_argument("--arch", metavar="NAME", help="such as sm_90 or compute_80 (default: that of the device)")
    command.add_argument(
        "--kernel", metavar="NAME", action="append", default=[], help='an instance of a template, such as "f<float>"'
    )
    common.compiler(command)
    command.add_argument("--lineinfo", action="store_true", help="note the line of source of each instruction")
    command.add_argument("--json", action="store_true", help="print the results as JSON")
    command.set_defaults(run=run)


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Compile the files; the exit status is 1 if one of them fails."""
    several = len(options.files) > 1
    folder = Path(options.output) if options.output and (several or Path(options.output).is_dir()) else None
    if folder is not None and folder.exists() and not folder.is_dir():
        command.error(f"--output must be a folder for several files, and {folder} is a file")
    if options.show == "sass" and options.to in ("ptx", "ltoir"):
        command.error("--show sass is of machine code: leave --to out")
    if options.show == "ptx" and options.to == "ltoir":
        command.error("--show ptx is of PTX: leave --to out")
    results = []
    for file in progress(options.files, "compiling", quiet=options.json):
        facts = _one(file, options, folder)
        results.append(facts)
        if not options.json:
            _tell(facts)
    if options.json:
        show(json.dumps({"files": [{k: v for k, v in facts.items() if k != "listing"} for facts in results]}, indent=2))
    return 1 if any("error" in facts for facts in results) else 0


def _one(file: str, options: argparse.Namespace, folder: Path | None) -> Facts:
    """Compile one file; what is found, or the error."""
    target = options.to or ("ptx" if options.show == "ptx" else "cubin")
    facts: Facts = {"source": file, "target": target}
    try:
        source = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return {**facts, "error": f"cannot read {file}: {getattr(error, 'strerror', None) or error}"}
    start = time.perf_counter()
    try:
        code = compile_source(source, file, target, options, lineinfo=options.lineinfo or options.show is not None)
        facts["seconds"] = round(time.perf_counter() - start, 3)
        data = (
            code.code
            if isinstance(code.code, bytes)
            else bytes(code.code, "ascii")
            if isinstance(code.code, str)
            else bytes(code.code)
        )
        output = _output(file, target, options, folder)
        if output is not None:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_bytes(data.rstrip(b"\0") if target == "ptx" else data)
            facts["output"] = str(output)
        facts["size"] = len(data)
        if target != "ltoir":
            facts["kernels"] = _kernels(code)
        if options.show:
            listing = of_ptx(data.decode("ascii", "replace")) if options.show == "ptx" else of_sass(data)
            facts["listing"] = (listing, source)
            facts["lines"] = [{"line": part.line, "code": part.code} for part in listing.parts]
    except NoDisassembler as error:
        facts["error"] = str(error)
    except OSError as error:
        facts["error"] = f"cannot write {error.filename}: {error.strerror}"
    except Exception as error:  # of the compilers: NVRTC's, and what is missing of them
        facts["error"] = str(error) or type(error).__name__
    return facts


def compile_source(source: str, file: str, target: str, options: argparse.Namespace, *, lineinfo: bool) -> ObjectCode:
    """Compile with the options of the command line."""
    from cupola import Program, ProgramOptions

    made = ProgramOptions(
        name="stdin.cu" if file == "-" else file,
        arch=options.arch,
        std=options.std,
        lineinfo=lineinfo or None,
        include_path=[*options.include, str(Path(file).resolve().parent)],
        define_macro=[tuple(macro.split("=", 1)) if "=" in macro else macro for macro in options.define] or None,
        use_fast_math=options.fast_math or None,
        max_register_count=options.max_registers,
    )
    names = tuple(options.kernel) if isinstance(options.kernel, list) else (options.kernel,) if options.kernel else ()
    with Program(source, "c++", made) as program:
        return program.compile(target, name_expressions=names, logs=sys.stderr)


def _output(file: str, target: str, options: argparse.Namespace, folder: Path | None) -> Path | None:
    stem = "stdin" if file == "-" else Path(file).stem
    if folder is not None:
        return folder / f"{stem}.{target}"
    if options.output:
        return Path(options.output)
    return None if options.show else (Path() if file == "-" else Path(file).parent) / f"{stem}.{target}"


def _kernels(code: ObjectCode) -> list[Facts]:
    """What each kernel needs; nothing where the code is not for the device that is here."""
    from cupola import CUDAError, Kernel
    from cupola.bindings import driver

    try:
        library = code.handle
    except (CUDAError, RuntimeError, ImportError):
        return []
    status, count = driver.cuLibraryGetKernelCount(library)
    if status == driver.CUresult.CUDA_SUCCESS and count:
        status, handles = driver.cuLibraryEnumerateKernels(count, library)
    if status != driver.CUresult.CUDA_SUCCESS or not count:
        return []
    found = []
    for handle in handles:
        _, name = driver.cuKernelGetName(handle)
        attributes = Kernel.from_handle(int(handle), code).attributes
        try:
            found.append(
                {
                    "name": name.decode() if isinstance(name, bytes) else str(name),
                    "registers": attributes.num_regs,
                    "shared_bytes": attributes.shared_size_bytes,
                    "local_bytes": attributes.local_size_bytes,
                    "constant_bytes": attributes.const_size_bytes,
                    "max_threads": attributes.max_threads_per_block,
                }
            )
        except CUDAError:
            return []
    return sorted(found, key=lambda kernel: kernel["name"])


def _tell(facts: Facts) -> None:
    if "error" in facts:
        print(f"{paint('error', RED, sys.stderr)}: {facts['error']}", file=sys.stderr)
        return
    if "listing" in facts:
        listing: Listing
        listing, source = facts["listing"]
        show(side_by_side(listing, source))
    if "output" in facts:
        show(f"{facts['source']} -> {paint(facts['output'], GREEN)}  {facts['size']:,} bytes  {facts['seconds']:.2f} s")
    if facts.get("kernels"):
        head = ("  kernel", "registers", "shared", "local", "constant", "threads a block")
        cells = [
            (
                f"  {k['name']}",
                *(str(k[key]) for key in ("registers", "shared_bytes", "local_bytes", "constant_bytes", "max_threads")),
            )
            for k in facts["kernels"]
        ]
        table = rows([head, *cells])
        show("\n".join([paint(table[0], BOLD), *table[1:]]))
