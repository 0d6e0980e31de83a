"""What is done in the background so that first uses do not wait: machine code for the CPU device, cuBLAS for a GPU.

The CPU device makes machine code of PTX, for 0.1 to 0.5 seconds a kernel, and keeps it on disk, where the first program
of a user finds nothing. So that program starts a process of low priority, once for each state of the package, which
belongs to nobody: no program waits for it, or has it for a child.

On a GPU, loading cuBLAS takes most of the time of the first product. A thread begins with it when a program has its
second kernel: the first one waits for the driver's assembler, which is loaded as well.

``CUPOLA_NUMPY_AHEAD=0`` turns both off. Imported when the first kernel of an array is needed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

from cupola import __version__
from cupola._private_folder import make_private, user_cache_folder
from cupola.core.device._device import Device

# What tells a process to observe its kernels, or to let something fail.
_OBSERVED = ("CHECK", "COVERAGE", "DEBUGGER", "FINDINGS", "INJECT", "PROFILE")


def begin(file: Path) -> bool:
    """Start the process, unless one was started before for this `file` of kernels; returns whether it was started."""
    if not is_allowed():
        return False
    if not os.path.basename(sys.executable or "").startswith("python"):
        return False  # a program that has an interpreter inside would be started anew
    with contextlib.suppress(OSError, RuntimeError):  # nothing that is compiled would be kept
        if make_private(user_cache_folder()):
            os.close(os.open(_mark(file), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            _start()
            return True
    return False


def is_allowed() -> bool:
    """Whether processes in the background may compile, whose work would be kept."""
    return "0" not in (os.environ.get("CUPOLA_NUMPY_AHEAD"), os.environ.get("CUPOLA_CPU_CACHE"))


def load_libraries(device: Device) -> threading.Thread | None:
    """Load what the first product needs, in a thread."""
    if os.environ.get("CUPOLA_NUMPY_AHEAD") == "0":
        return None

    def load() -> None:
        from cupola.bindings import cublas, driver

        device.set_current()
        # Whoever captures a graph meanwhile is not disturbed by the memory that this takes.
        driver.cuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            cublas.destroy(cublas.create())
        except Exception:
            return  # the first product says what is wrong

    # The program waits for it at its end, when libraries must not be used any more.
    thread = threading.Thread(target=load, name="cupola: cuBLAS")
    try:
        thread.start()
    except RuntimeError:  # this is the end
        return None
    return thread


def _mark(file: Path) -> str:
    """The file that says that this state of the package has been prepared."""
    status = file.stat()
    return user_cache_folder(f"numpy-{__version__}-{status.st_size}-{status.st_mtime_ns}.prepared")


def _start() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in map("CUPOLA_{}".format, _OBSERVED)}
    environment |= {"CUPOLA_DEVICE": "cpu", "CUPOLA_NUMPY_AHEAD": "0"}
    # The shell ends at once, so that the program gets no child that it knows nothing of.
    subprocess.run(
        ["/bin/sh", "-c", 'nice -n 19 "$0" -m cupola.numpy &', sys.executable],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )
