"""The process that makes good machine code for a program: see objects/later.py, which starts it.

A task is a tuple: "ir" and LLVM IR, or "body" and what `modules.keep` takes.
"""

from __future__ import annotations

import marshal
import os
import select
import sys
from collections.abc import Callable

from cupola.cpu.compiler import modules
from cupola.cpu.compiler.objects import machine
from cupola.cpu.compiler.objects.later import tasks

WORK: dict[str, Callable[..., object]] = {"ir": machine.keep, "body": modules.keep}
IDLE = 10  # seconds after which it ends


def work(read: int, write: int) -> None:
    """Do the tasks whose names come through a pipe, and tell when each is done, until nobody needs any.

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
            task = tasks().get(name.decode())
            if task is not None:
                try:
                    kind, *what = marshal.loads(task)
                except (EOFError, TypeError, ValueError):
                    kind = None  # not what it should be: the program makes the code itself
                if kind is not None:
                    WORK[kind](*what)
                tasks().drop(name.decode())
            try:
                os.write(write, name + b"\n")
            except BrokenPipeError:
                continue  # the program has ended; the next one finds the code


if __name__ == "__main__":
    os.nice(10)  # the program is in front
    work(int(sys.argv[1]), int(sys.argv[2]))
