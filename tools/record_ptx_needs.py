#!/usr/bin/env python
"""Ask NVIDIA's assembler which version of PTX and which targets the instructions in tests/ptx/needs.txt need.

    tools/record_ptx_needs.py [PTXAS]

The file is written anew; an instruction that is to be asked about is added to it on a line of its own, below any
header. ptxas is that of the wheel nvidia-cuda-nvcc if none is given. It takes some minutes and no GPU.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

REGISTERS = (
    ".reg .pred %p<16>; .reg .b8 %b<16>; .reg .b16 %h<160>; .reg .b32 %r<320>; .reg .b64 %l<160>; "
    ".reg .f32 %f<320>; .reg .f64 %d<96>;"
)
HEAD = """.version {version}
.target {target}
.address_size 64
.const .align 32 .b8 constants[4096]; .shared .align 16 .b8 svar[64];
.entry k(.param .u64 first, .param .u64 second) {{ {registers}
"""
_LINE = re.compile(r"line (\d+); (error|fatal)")


def refused(ptxas: str, texts: list[str], target: str, version: tuple[int, int]) -> set[str]:
    """Which of the instructions ptxas does not take."""
    registers = REGISTERS + (" .reg .b128 %q<16>;" if version >= (8, 3) else "")
    head = HEAD.format(version=f"{version[0]}.{version[1]}", target=target, registers=registers)
    before = head.count("\n")
    found: set[str] = set()
    left = texts
    while left:
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(head + "".join(f"{text};\n" for text in left) + "there: ret; }\n")
            file.flush()
            architecture = target.replace("sm_", "compute_")  # which makes no code
            command = [ptxas, "-arch", architecture, "-o", "/dev/null", file.name]
            done = subprocess.run(command, capture_output=True, text=True)
        end = len(left)
        for number, kind in _LINE.findall(done.stderr):
            index = int(number) - before - 1
            if not 0 <= index < len(left):
                raise RuntimeError(done.stderr)
            found.add(left[index])
            if kind == "fatal":  # what follows was not read
                end = index + 1
        if done.returncode and not found:
            raise RuntimeError(done.stderr)
        left = left[end:]
    return found


def main() -> int:
    from cupola.cpu.compiler.ptx.grammar.needs import TARGETS
    from cupola.pathfinder import find_nvidia_binary_utility
    from tests.ptx.needs import VERSIONS, Answer, read, write

    ptxas = sys.argv[1] if len(sys.argv) > 1 else find_nvidia_binary_utility("ptxas")
    if ptxas is None:
        print("ptxas is not installed: pip install nvidia-cuda-nvcc", file=sys.stderr)
        return 1
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    answers: dict[str, Answer] = {text: {} for text, _ in read()}
    for target, first in TARGETS.items():
        taken = list(answers)
        for version in reversed(VERSIONS):
            if version >= first:
                without = refused(ptxas, taken, target, version)
                taken = [text for text in taken if text not in without]
                for text in taken:
                    answers[text][target] = version
        print(target, flush=True)
    write(answers.items(), re.findall(r"V(\d+\.\d+\.\d+)", said)[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
