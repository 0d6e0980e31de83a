"""The process that makes good machine code for a program: see later.py, which starts it."""

from __future__ import annotations

import os
import select
import sys

from cupola.cpu.compiler.objects import machine
from cupola.cpu.compiler.objects.later import texts

IDLE = 10  # seconds after which it ends


def work(read: int, write: int) -> None:
    """Make the machine code whose names come through a pipe, and tell when it is there, until nobody needs any.

    Parameters
    ----------
    read, write : int
        The ends of pipes.
    """
    rest = b""
    while select.select([read], [], [], IDLE)[0]:
        data = os.read(read, 1 << 16)
        if not data:
            return
        *names, rest = (rest + data).split(b"\n")
        for name in names:
            ir = texts().get(name.decode())
            if ir is not None:
                machine.keep(ir.decode())
                texts().drop(name.decode())
            try:
                os.write(write, name + b"\n")
            except BrokenPipeError:
                continue  # the program has ended; the next one finds the code


if __name__ == "__main__":
    os.nice(10)  # the program is in front
    work(int(sys.argv[1]), int(sys.argv[2]))
