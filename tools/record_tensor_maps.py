#!/usr/bin/env python
"""Record what a GPU's driver says to calls that encode tensor maps (tests/cpu/driver/tensor/encodings.py).

    tools/record_tensor_maps.py record [--out FILE] [--bytes FILE]
    tools/record_tensor_maps.py compare

``record`` needs a GPU and writes the status of each call, or that the driver crashed, as it does of some null pointers;
``--bytes`` keeps the encoded maps, too. ``compare`` prints where the answers of the present device differ from those
that were recorded.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.cpu.driver.tensor import encodings  # noqa: E402


def child() -> None:
    """Make the calls whose lines stand on the standard input; print status and encoded bytes of each."""
    from cupola import Device

    lines = sys.stdin.read().splitlines()
    device = Device(0)
    device.set_current()
    with device.allocate(1 << 20, stream=device.default_stream) as buffer:
        for line in lines:
            status, left = encodings.call(line, int(buffer.handle))
            print(status, left.hex(), flush=True)


def run(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Status and bytes of each call; behind a crash goes on in another process."""
    done = 0
    while done < len(lines):
        text = "\n".join(lines[done:])
        process = subprocess.run([sys.executable, __file__, "child"], input=text, stdout=subprocess.PIPE, text=True)
        for answer in process.stdout.splitlines():
            status, _, left = answer.partition(" ")
            yield status, left
            done += 1
        if process.returncode and done < len(lines):
            yield encodings.CRASH, ""
            done += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["record", "compare", "child"])
    parser.add_argument("--out", type=Path, default=encodings.RECORDED)
    parser.add_argument("--bytes", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "child":
        child()
        return 0
    if arguments.command == "compare":
        known = encodings.recorded()
        wrong = [
            f"{line}: {found}, the GPU says {status}"
            for (status, line), (found, _) in zip(known, run([line for _, line in known]), strict=True)
            if found != status and not (status == encodings.CRASH and found != "0")
        ]
        print("\n".join([*wrong, f"{len(wrong)} of {len(known)} differ"]))
        return int(bool(wrong))

    from cupola import Device

    if Device(0).name.startswith("cupola"):
        print("this is the CPU device; a recording is worth something only if a GPU made it")
        return 2
    lines = encodings.table()
    answers = list(zip(run(lines), lines, strict=True))
    arguments.out.write_text("".join(f"{status} {line}\n" for (status, _), line in answers))
    if arguments.bytes:
        arguments.bytes.write_text("".join(f"{line}\n{left}\n" for (status, left), line in answers if status == "0"))
    print(f"{len(lines)} calls recorded, {sum(status == '0' for (status, _), _ in answers)} of them accepted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
