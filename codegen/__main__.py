"""Command line: ``python -m codegen parse|emit [--check]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .libraries import LIBRARIES


def main() -> int:
    parser = argparse.ArgumentParser(prog="codegen", description="Generate the CUDA bindings.")
    commands = parser.add_subparsers(dest="command", required=True)
    parse_command = commands.add_parser("parse", help="NVIDIA's headers -> codegen/ir (needs libclang)")
    parse_command.add_argument("--include", type=Path, help="folder of the newest cuda.h, nvrtc.h, ...")
    parse_command.add_argument("--older", type=Path, required=True, help="the same of the CUDA major before it")
    emit_command = commands.add_parser("emit", help="codegen/ir -> src/cupola/bindings")
    emit_command.add_argument("--check", action="store_true", help="only compare with the committed files")
    options = parser.parse_args()
    if options.command == "parse":
        from .merge import merge
        from .parse import find_include, parse

        for library in LIBRARIES.values():
            module = merge(parse(library, options.include or find_include()), parse(library, options.older))
            module.save(library.ir_path)
            print(f"{library.name}: {len(module.functions)} functions, {len(module.types)} types")
        return 0
    from .emit import emit

    return emit(check=options.check)


if __name__ == "__main__":
    sys.exit(main())
