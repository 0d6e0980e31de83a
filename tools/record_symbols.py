"""Record which symbols NVIDIA's libraries export: what those of the CPU device have to have (cpu/provider/).

    python tools/record_symbols.py path/to/libcudart.so.12 path/to/libcudart.so.13 path/to/libnvrtc.so.12 ...

Writes ``src/cupola/cpu/provider/libcudart12_symbols.h`` and its like. Needs ``readelf``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

COMPILERS = ("libnvrtc", "libnvJitLink")
PROVIDER = Path(__file__).resolve().parents[1] / "src" / "cupola" / "cpu" / "provider"
OWN = {
    "__cudaPopCallConfiguration",
    "__cudaPushCallConfiguration",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaRegisterFunction",
    "__cudaRegisterManagedVar",
    "__cudaRegisterVar",
    "__cudaUnregisterFatBinary",
    "nvrtcGetCUBIN",
    "nvrtcGetCUBINSize",
}
"""These are functions in libcudart.c and libnvrtc.c; the others are jumps."""


def exported(library: Path) -> list[str]:
    """The names of the functions that a library exports, without their versions."""
    listing = subprocess.run(["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True)
    found = re.findall(r" FUNC +GLOBAL +DEFAULT +\d+ (\w+)@@", listing.stdout)
    return sorted(set(found))


def main(arguments: list[str]) -> int:
    for argument in arguments:
        library = Path(argument)
        name, major = library.name.split(".so.")
        major = major.partition(".")[0]
        folder = PROVIDER / "compilers" if name in COMPILERS else PROVIDER
        target = folder / f"{name.lower()}{major}_symbols.h"
        names = [name for name in exported(library) if name not in OWN]
        head = f"/* Recorded from {name}.so.{major} by tools/record_symbols.py. Do not edit. */\n"
        target.write_text(head + "".join(f"SYMBOL({name})\n" for name in names))
        print(f"{target.name}: {len(names)} functions")
    return 0 if arguments else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
