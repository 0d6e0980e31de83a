"""Command line: ``python -m bindgen history|parse|emit [--check]|sample``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import history
from .libraries import LIBRARIES


def main() -> int:
    parser = argparse.ArgumentParser(prog="bindgen", description="Generate the CUDA bindings.")
    commands = parser.add_subparsers(dest="command", required=True)
    history_command = commands.add_parser("history", help="first versions of the runtime's symbols -> bindgen/ir")
    history_command.add_argument("libraries", nargs="+", type=Path, help="libcudart of several CUDA versions")
    parse_command = commands.add_parser("parse", help="NVIDIA's headers -> bindgen/ir (needs libclang)")
    parse_command.add_argument("--include", type=Path, help="folder of the newest cuda.h, nvrtc.h, ...")
    parse_command.add_argument("--older", type=Path, required=True, help="the same of the CUDA major before it")
    parse_command.add_argument("libraries", nargs="*", help="only these (default: all)")
    emit_command = commands.add_parser("emit", help="bindgen/ir -> src/cupola/bindings")
    emit_command.add_argument("--check", action="store_true", help="only compare with the committed files")
    sample_command = commands.add_parser("sample", help="a program for type checkers that uses all that the stubs have")
    sample_command.add_argument("target", type=Path)
    options = parser.parse_args()
    if options.command == "history":
        known = history.record(options.libraries)
        history.path("runtime").write_text(json.dumps(known, indent=1) + "\n")
        return 0
    if options.command == "parse":
        from .merge import leave_out, merge
        from .parse import find_include, parse

        for library in [LIBRARIES[name] for name in options.libraries or LIBRARIES]:
            module = merge(parse(library, options.include or find_include()), parse(library, options.older))
            leave_out(module, library.deprecated, library.without)
            history.add(module)
            module.save(library.ir_path)
            print(f"{library.name}: {len(module.functions)} functions, {len(module.types)} types")
        return 0
    if options.command == "sample":
        from .emit_sample import sample

        options.target.parent.mkdir(parents=True, exist_ok=True)
        options.target.write_text(sample())
        return 0
    from .emit import emit

    return emit(check=options.check)


if __name__ == "__main__":
    sys.exit(main())
