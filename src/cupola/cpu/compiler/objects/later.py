"""Good machine code made by another process, while this one runs a first version that was there sooner.

LLVM takes most of the time until a kernel runs first, and most of that are its optimizations. So code may be made in
the simplest way first, or be what came with the package (packaged.py). What is to replace it is made by a process of
its own (../worker.py), which shares no lock with this one and leaves its work on disk even if the program ends before.
It is started a moment after there is something to do, so that the program has the processor first, ends when there was
nothing for some seconds, and is not a child of the program. Tasks and machine code go through the cache (cache.py); the
two tell each other their names, through pipes.
"""

from __future__ import annotations

import atexit
import functools
import marshal
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from cupola._soon import call_soon
from cupola.cpu.compiler.objects.cache import ObjectCache

_lock = threading.Lock()
_waiting: dict[str, tuple[Callable[[], bool], Callable[[], object]]] = {}
_to_worker: int | None = None
_given_up = False
_ends = False  # the program: LLVM must not begin any more


@functools.cache
def tasks() -> ObjectCache:
    """What the worker is to do."""
    return ObjectCache.default("tasks")


def ask(task: tuple[Any, ...], take: Callable[[], bool], make: Callable[[], object]) -> bool:
    """Have machine code put into the cache, and then taken from there, in another thread.

    `task` is of tuples, numbers and strings (../worker.py). `take` returns whether the code was there. If it was not,
    `make` is called, which compiles. False: there is no worker.
    """
    store = tasks()
    if _given_up or not os.path.basename(sys.executable or "").startswith("python"):
        return False  # a program that has an interpreter inside would be started anew
    name = store.key(repr(task))
    if not store.put(name, marshal.dumps(task)):
        return False
    with _lock:
        if name in _waiting:
            return False
        _waiting[name] = take, make
        if _to_worker is None:
            if len(_waiting) == 1:
                call_soon(_send)
            return True
        try:
            _tell(name)
        except OSError:
            del _waiting[name]
            return False
        return True


def _send() -> None:
    """Start the worker with what it is asked for so far; without one, the program makes that itself."""
    with _lock:
        try:
            if _to_worker is None and _waiting:
                _tell(*_waiting)
            return
        except OSError:
            pass
    if not _ends:  # else the next program has it made
        _give_up()


def _tell(*names: str) -> None:
    """Send names to the worker; start one if there is none. With the lock."""
    global _to_worker
    text = "".join(f"{name}\n" for name in names).encode()
    if _to_worker is not None:
        try:
            os.write(_to_worker, text)
        except BrokenPipeError:  # it has just ended
            os.close(_to_worker)
            _to_worker = None
        else:
            return
    theirs, ours = os.pipe()
    answers, told = os.pipe()
    try:
        os.write(ours, text)
        _start(theirs, told)
        threading.Thread(target=_listen, args=(answers, ours), name="cupola: better code", daemon=True).start()
    except (OSError, RuntimeError) as error:
        os.close(ours)
        os.close(answers)
        raise OSError(f"no process for better code: {error}") from error
    finally:
        os.close(theirs)
        os.close(told)
    _to_worker = ours


def _start(read: int, write: int) -> None:
    import subprocess

    # The shell ends at once, so that the program gets no child that it knows nothing of.
    command = '"$0" -P -m cupola.cpu.compiler.worker "$1" "$2" &'
    subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(read), str(write)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(read, write),
        start_new_session=True,
        check=True,
    )


def _listen(answers: int, ours: int) -> None:
    """Use what the worker has made, until it ends."""
    global _to_worker
    told = 0
    with open(answers, encoding="ascii") as lines:
        for line in lines:
            told += 1
            with _lock:
                how = _waiting.pop(line.strip(), None)
            if how is not None and not how[0]():
                _make([how[1]])
    with _lock:
        if _to_worker == ours:
            os.close(ours)
            _to_worker = None
        left = list(_waiting) if _to_worker is None else []
        if left and told:  # asked for when it was about to end
            try:
                _tell(*left)
            except OSError:
                told = 0
    if left and not told:
        _give_up()


def _give_up() -> None:
    """Do without a worker from here on."""
    global _given_up
    with _lock:
        _given_up = True
        left = [make for _, make in _waiting.values()]
        _waiting.clear()
    _make(left)


def _make(functions: list[Callable[[], object]]) -> None:
    """Compile here, in a thread that the program waits for when it ends: LLVM must not run then."""
    try:
        threading.Thread(target=lambda: [make() for make in functions], name="cupola: better code").start()
    except RuntimeError:
        return  # it ends already


def _forget() -> None:
    """After a fork, whose child has no thread that listens."""
    global _lock, _to_worker
    _lock = threading.Lock()
    _waiting.clear()
    if _to_worker is not None:
        os.close(_to_worker)
        _to_worker = None


def _end() -> None:
    global _ends
    _ends = True


atexit.register(_end)  # in front of what `call_soon` does then, since that was registered before
os.register_at_fork(after_in_child=_forget)
