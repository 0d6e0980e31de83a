"""Compile what programs begin with, and keep it on disk: ``python -m cupola.numpy [--all]``.

As for the image of a container, or a cache of CI. On a GPU that fills the cache of the driver.
"""

from __future__ import annotations

import argparse

import cupola.numpy
from cupola import Device
from cupola.numpy._common import beginnings, statements


def main() -> None:
    """Run the statements."""
    parser = argparse.ArgumentParser(prog="python -m cupola.numpy", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all kernels that come with the package: minutes")
    chosen = parser.parse_args()
    count = 0
    for statement in (statements if chosen.all else beginnings)(cupola.numpy):
        statement()
        count += 1
    Device().sync()
    print(f"{count} statements of cupola.numpy are compiled, for {Device().name}")


if __name__ == "__main__":
    main()
