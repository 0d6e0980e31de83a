"""``cupola run -n N``: a program as several processes, the ranks of a job on this machine.

They find their place as torchrun's do: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are
in the environment, and ``Device.for_rank()`` reads it. When one fails, the others may wait for it for ever: they are
ended after a while. When this process is killed, all of them end.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

PAUSE = 0.02  # seconds between two looks at the ranks
_PR_SET_PDEATHSIG = 1
PATIENCE = 5.0  # seconds from the request to end to the order


MOST = 4096  # ranks of one machine
OPTIONS = ("-n", "--ranks", "--grace")


def without(arguments: Sequence[str], program: Sequence[str], options: Sequence[str] = OPTIONS) -> list[str]:
    """The arguments of ``cupola run`` but for some options, which have a value; by default those of this module.

    `program` is their end, which is the program's own.
    """
    joined = tuple([f"{option}=" if option.startswith("--") else option for option in options])
    own = list(arguments[: len(arguments) - len(program)])
    kept: list[str] = []
    while own:
        option = own.pop(0)
        if option in options:
            own.pop(0)
        elif not option.startswith(joined):
            kept.append(option)
    return [*kept, *program]


def most_ranks() -> int:
    """How many processes there can be: no more than this user may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


def run(count: int, command: Sequence[str], *, grace: float) -> int:
    """Run `count` ranks of ``cupola run``, with the options and the program in `command`.

    Parameters
    ----------
    count : int
    command : sequence of str
        What follows ``cupola run``, without the options of this module.
    grace : float
        Seconds that the others get after one has failed.

    Returns
    -------
    int
        The status of the rank that failed first, as a shell gives it (128 + the signal); else 0.
    """
    port = _free_port()
    starter, libc = os.getpid(), ctypes.CDLL(None)

    def go_with_starter() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != starter:  # it was quicker
            os._exit(128 + signal.SIGTERM)

    arguments = [sys.executable, "-m", "cupola", "run", *command]
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        try:
            for rank in range(count):
                environment = _environment(rank, count, port)
                # There is one thread only, which is what a function in the child needs.
                ranks.append(subprocess.Popen(arguments, env=environment, preexec_fn=go_with_starter))
        except OSError as error:
            raise ValueError(f"only {len(ranks)} of {count} processes could be started: {error}") from error
        return _watch(ranks, grace)
    except KeyboardInterrupt:  # the ranks got the signal, too
        _end(ranks)
        return 128 + signal.SIGINT
    except BaseException:
        _end(ranks)
        raise


def _watch(ranks: list[subprocess.Popen[bytes]], grace: float) -> int:
    failed, end = 0, 0.0
    while any([rank.poll() is None for rank in ranks]):  # a list: all of them are asked
        if not failed:
            for number, rank in enumerate(ranks):
                if rank.returncode:
                    failed, end = _status(rank.returncode), time.monotonic() + grace
                    print(
                        f"cupola run: rank {number} {_how(rank.returncode)}; the others have {grace:g} s",
                        file=sys.stderr,
                    )
                    break
        elif time.monotonic() > end:
            left = [str(number) for number, rank in enumerate(ranks) if rank.poll() is None]
            print(f"cupola run: ending rank {', '.join(left)}", file=sys.stderr)
            _end(ranks)
        time.sleep(PAUSE)
    return failed or next((_status(rank.returncode) for rank in ranks if rank.returncode), 0)


def _end(ranks: list[subprocess.Popen[bytes]]) -> None:
    for rank in ranks:
        if rank.poll() is None:
            rank.terminate()
    limit = time.monotonic() + PATIENCE
    for rank in ranks:
        try:
            rank.wait(max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            rank.kill()
            rank.wait()


def _environment(rank: int, count: int, port: int) -> dict[str, str]:
    return {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": os.environ.get("MASTER_ADDR", "127.0.0.1"),
        "MASTER_PORT": os.environ.get("MASTER_PORT", str(port)),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _status(code: int) -> int:
    return code if code > 0 else 128 - code


def _how(code: int) -> str:
    return f"ended with status {code}" if code > 0 else f"was ended by {signal.Signals(-code).name}"
