"""What fills the function tables: the choice between the GPU and the CPU device, and the search for libraries.

The choice is made once per process, at the first call of a driver function. ``CUPOLA_DEVICE`` may be ``gpu``, ``cpu``
or ``auto``, the default: the GPU when libcuda loads and finds a device, else the CPU device.
"""

from __future__ import annotations

import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # Name of the provider, handle of a loaded library, capsules of lookup() and explain(), per-thread default stream.
    Provision = tuple[str, int | None, Any, Any, bool]

_CHOICES = ("auto", "gpu", "cpu")
_CPU_DEVICE = "cupola CPU device"
_VERSIONED = ("nvrtc", "nvJitLink", "nvfatbin")  # libraries whose version is that of CUDA
_MATH = ("cublas", "cublasLt", "cudss", "cufft", "curand", "cusolver", "cusparse", "nccl")
"""Libraries that the CPU device emulates."""
_OBSERVED = ("nvrtcCreateProgram", "nvrtcDestroyProgram", "nvrtcCompileProgram", "nvrtcGetPTXSize", "nvrtcGetPTX")
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE

_lock = threading.RLock()
_requested: str | None = None
_has_compiler = False
_driver: Provision | None = None


class FunctionNotFoundError(RuntimeError):
    """A CUDA function that the loaded library lacks.

    Attributes
    ----------
    function
        Name of the function.
    library
        What was loaded, such as a path or ``cupola CPU device``.
    since
        CUDA version that has the function, such as ``"12.5"``, or None when that is not known.
    """

    def __init__(self, message: str, function: str, library: str, since: str | None) -> None:
        super().__init__(message)
        self.function = function
        self.library = library
        self.since = since


def request(device: str) -> None:
    """Choose the provider from a program, before the first driver call.

    Parameters
    ----------
    device
        ``"auto"``, ``"gpu"`` or ``"cpu"``. Counts more than the environment variable CUPOLA_DEVICE.

    Raises
    ------
    ValueError
        For any other name.
    RuntimeError
        When another provider is in use already.
    """
    global _requested
    if device not in _CHOICES:
        raise ValueError(f"device must be 'auto', 'gpu' or 'cpu', got {device!r}")
    with _lock:
        active = current()
        if active is not None and device not in ("auto", active):
            raise RuntimeError(
                f"the {active} device is in use already: choose before the first CUDA call, "
                f"or set CUPOLA_DEVICE={device}"
            )
        _requested = device


def current() -> str | None:
    """The chosen provider, ``"gpu"`` or ``"cpu"``; None before the first driver call."""
    if _driver is None:
        return None
    return "cpu" if _driver[1] is None else "gpu"


def provide(library: str) -> Provision:
    """Find what fills the table of `library`. Called once by the library's extension module, at its first call."""
    if library == "driver":
        return _provide_driver()
    if library == "cudart" and (emulated := _emulated_runtime()):
        return emulated
    if library == "nvml" and (emulated := _emulated_nvml()):
        return emulated
    if library in _MATH and (emulated := _emulated_math(library)):
        return emulated
    from cupola.pathfinder import load_nvidia_dynamic_lib

    loaded = load_nvidia_dynamic_lib(library)
    per_thread = library == "cudart" and _per_thread_stream()
    return str(loaded.abs_path or library), loaded._handle_uint, None, None, per_thread


def local_library(library: str) -> int:
    """The loader's handle of the library that is installed, whatever device is used."""
    from cupola.pathfinder import load_nvidia_dynamic_lib

    return load_nvidia_dynamic_lib(library)._handle_uint


def _emulated_runtime() -> Provision | None:
    """The runtime of the CPU device, when that is what runs kernels. Without any device there is NVIDIA's, which says
    so in the status of each call."""
    try:
        name, _, lookup, explain, per_thread = _provide_driver()
    except (ImportError, RuntimeError):
        return None
    if lookup is None:
        return None
    from importlib import import_module

    runtime = getattr(import_module("cupola.cpu._driver"), "runtime_lookup", None)
    return name, None, runtime, explain, per_thread


def _emulated_math(library: str) -> Provision | None:
    """A math library of the CPU device, when that is what runs kernels."""
    name, _, lookup, explain, _ = _provide_driver()
    if lookup is None:
        return None
    from importlib import import_module

    return name, None, import_module("cupola.cpu.mathlibs").prepare(library), explain, False


def _emulated_nvml() -> Provision | None:
    """The CPU device's NVML, when that is what runs kernels, or would. Looking at devices starts no driver."""
    from importlib import import_module

    try:
        if not is_cpu():
            return None
        lookup = import_module("cupola.cpu._driver").nvml_lookup
    except ImportError:
        return None
    return _CPU_DEVICE, None, lookup, None, False


def is_cpu() -> bool:
    """Whether the CPU device is chosen, or would be by the next driver call, as far as NVML can tell.

    This starts no driver.
    """
    chosen = current() or wanted()
    if chosen != "auto":
        return chosen == "cpu"
    if stands_in() or _all_hidden():
        return True
    from cupola.bindings import nvml
    from cupola.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        status, count = nvml._count_devices(load_nvidia_dynamic_lib("nvml")._handle_uint)
    except DynamicLibNotFoundError:
        return True
    return status != 0 or count == 0


def _all_hidden() -> bool:
    """Whether ``CUDA_VISIBLE_DEVICES`` names no device, which NVML does not look at: the first name is none."""
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    return names is not None and names.split(",")[0].strip() in ("", "-1", "NoDevFiles")


def provide_library() -> bool:
    """Give the CPU device's driver to programs that load ``libcuda.so.1`` themselves, if that is what runs kernels.

    Returns whether they get it.

    Does not choose a device where there may be a GPU: NVIDIA's driver is what programs get then.
    """
    from importlib import import_module

    if current() != "cpu" and wanted() != "cpu":
        if current() is not None or wanted() == "gpu":
            return False
        from cupola.bindings import driver

        try:
            driver._open("libcuda.so.1")
        except OSError:
            pass  # there is no GPU
        else:
            return False
    try:
        library = import_module("cupola.cpu.programs")
    except ImportError:
        return False
    library.provide()
    return True


def observers() -> tuple[str, ...]:
    """What counts or checks what kernels do on the CPU device (``cupola run --coverage``, ``--check``, ``profile``).

    Programs are compiled for them: with lines, and for coverage without optimization.
    """
    return tuple(name for name in ("COVERAGE", "PROFILE", "CHECK", "DEBUGGER") if os.environ.get(f"CUPOLA_{name}"))


def is_observed() -> bool:
    """Whether there are any."""
    return bool(observers())


def host_access() -> Any:
    """What tells whether the host may use some of the CPU device's memory at present, while that runs kernels.

    A capsule of ``int (*)(uint64_t address, uint64_t size)``.
    """
    from importlib import import_module

    return import_module("cupola.cpu._driver").host_may_use


def override_lookup(symbol: str = "") -> Any:
    """The CPU device's lookup function as a capsule, or None when it has no wrapper of a function of another library.

    That is so when kernels run on a GPU or nowhere. Compiling chooses no device where there may be a GPU, unless
    kernels are observed.
    """
    if symbol in _OBSERVED and not is_observed() and not keeps_sources():
        return None
    try:
        return _provide_driver()[2]
    except (ImportError, RuntimeError):
        return None  # NVRTC is of use without any device


def keeps_sources() -> bool:
    """Whether kernels run on the CPU device, which keeps what NVRTC gets, or will, since there is no GPU."""
    chosen = current() or wanted()
    return chosen == "cpu" or (chosen == "auto" and (stands_in() or not sign_of_a_gpu()))


def keep_source(name: str, source: str) -> None:
    """Give the CPU device a program's source, whose code comes from a cache, so NVRTC does not get it."""
    if keeps_sources() and override_lookup() is not None:
        from importlib import import_module

        import_module("cupola.cpu._driver").keep_source(name, source)


def read_compiler() -> threading.Thread | None:
    """Begin to import what the CPU device compiles kernels with, if that is what will run them.

    That takes some hundredths of a second, and needs not wait until NVRTC is done, which holds no lock of Python.
    Returns the thread that does it, to be joined; None if there is nothing to do.
    """
    global _has_compiler
    if _has_compiler or current() != "cpu":
        return None
    _has_compiler = True
    thread = threading.Thread(target=_import_compiler, name="cupola: compiler")
    try:
        thread.start()
    except RuntimeError:
        return None  # there are too many threads, or the program ends
    return thread


def _import_compiler() -> None:
    from importlib import import_module

    try:
        import_module("cupola.cpu.compiler.frontend")
        import_module("cupola.cpu.compiler.emit.bodies")
    except ImportError:
        pass  # it is raised again when a kernel is compiled


def missing_function(
    function: str, library: str, loaded: str, version: int, since: int, only: int, known: int
) -> FunctionNotFoundError:
    """The error for a function that is not in the loaded library.

    Versions are as in 12050 for 12.5, 0 when not known: `version` that of the library, `since` the one that brought
    the function, `known` one that has it; `only` is the CUDA major that alone has it, or 0.
    """
    if loaded == _CPU_DEVICE:
        what = "has no such runtime function:" if library == "cudart" else "does not emulate"
        text = f"the CPU device {what} {function}"
        if since:
            text += f"; GPUs have it since CUDA {_version(since)}"
    else:
        text = f"function {function} is not found in {loaded}"
        has = _version(version) if version else _version_of(library) if library in _VERSIONED else None
        if has:
            text += f", which has CUDA {has}"
        if only and only < known // 1000:
            text += f": only CUDA {only} has it"
        elif since:
            text += f": it needs CUDA {_version(since)} or newer"
        else:
            text += f"; the library of CUDA {_version(known)} has it"
            if only:
                text += f", that of CUDA {only - 1} does not"
    return FunctionNotFoundError(text, function, loaded, _version(since) if since else None)


def _version_of(library: str) -> str | None:
    """The version of a library that the path finder has loaded."""
    from cupola.pathfinder import load_nvidia_dynamic_lib

    return load_nvidia_dynamic_lib(library).version


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _provide_driver() -> Provision:
    global _driver
    with _lock:
        if _driver is None:
            _driver = _choose(wanted(), _per_thread_stream())
        return _driver


def wanted() -> str:
    """The device that was asked for: auto, gpu or cpu."""
    if _requested is not None:
        return _requested
    device = os.environ.get("CUPOLA_DEVICE", "").strip().lower() or "auto"
    if device not in _CHOICES:
        raise ValueError(f"CUPOLA_DEVICE must be auto, gpu or cpu, got {device!r}")
    return device


def _per_thread_stream() -> bool:
    text = os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "0")
    try:
        return int(text) != 0
    except ValueError:
        raise ValueError(f"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM must be a number, got {text!r}") from None


def _status_text(status: int) -> str:
    from cupola.bindings import driver

    try:
        return f"{driver.CUresult(status).name} ({status})"
    except ValueError:
        return f"status {status}"


def _choose(device: str, per_thread: bool) -> Provision:
    if device == "cpu":
        return _cpu(per_thread)
    if stands_in():
        if device == "gpu":
            raise RuntimeError(
                "this process already uses the CPU device as its libcuda.so.1: choose the device when the process "
                "starts"
            )
        return _cpu(per_thread)
    from cupola.bindings import driver

    try:
        handle, path = driver._open("libcuda.so.1")
    except OSError as error:
        reason = f"NVIDIA's driver was not found ({error})"
        if device == "gpu":
            from cupola.pathfinder import DynamicLibNotFoundError

            hint = "Install it, or set CUPOLA_DEVICE=cpu to run on the CPU device."
            raise DynamicLibNotFoundError(f"{reason}. {hint}") from None
        return _fall_back(reason, per_thread)
    if device == "gpu":
        return path, handle, None, None, per_thread
    status, count = driver._count_devices(handle)
    if status == 0 and count > 0:
        return path, handle, None, None, per_thread
    reason = "there is no GPU" if status in (0, _NO_DEVICE) else f"cuInit failed: {_status_text(status)}"
    return _fall_back(f"{path} is loaded but {reason}", per_thread)


def stands_in() -> bool:
    """Whether whoever loads ``libcuda.so.1`` gets the CPU device's (`provide_library`)."""
    import sys

    library = sys.modules.get("cupola.cpu.libcuda")
    return library is not None and library.is_provided()


def _fall_back(reason: str, per_thread: bool) -> Provision:
    try:
        provision = _cpu(per_thread)
    except ImportError as error:
        raise RuntimeError(
            f'no device to run on: {reason}; and the CPU device is not available ({error}): pip install "cupola[cpu]"'
        ) from error
    import logging

    logger = logging.getLogger("cupola")
    there = "" if _all_hidden() else sign_of_a_gpu()
    if there:  # somebody may wait for a GPU, and not know why all is slow
        advice = "`cupola doctor` says what to do, and CUPOLA_DEVICE=cpu that this is meant"
        logger.warning("running on the CPU device: %s, although %s: %s", reason, there, advice)
    else:
        logger.info("running on the CPU device: %s", reason)
    return provision


def sign_of_a_gpu(root: str = "/") -> str:
    """What tells that this machine has a GPU of NVIDIA, whether or not it can be used; empty if nothing does."""
    from glob import glob

    for pattern in ("dev/nvidia[0-9]*", "dev/nvidiactl", "proc/driver/nvidia/version"):
        for path in glob(os.path.join(root, pattern)):
            return f"there is {path}"
    for path in glob(os.path.join(root, "sys/bus/pci/devices/*/vendor")):
        try:
            with open(path) as vendor, open(os.path.join(os.path.dirname(path), "class")) as kind:
                if vendor.read().strip() == "0x10de" and kind.read().startswith("0x03"):  # a display controller
                    return f"a GPU of NVIDIA is at PCI {os.path.basename(os.path.dirname(path))}"
        except OSError:
            continue
    return ""


def _cpu(per_thread: bool) -> Provision:
    from importlib import import_module

    cpu = import_module("cupola.cpu._driver")
    import_module("cupola.cpu._at_exit").watch()
    if os.environ.get("CUPOLA_INJECT"):
        import_module("cupola.cpu._faults").begin_from_environment()
    if is_observed():
        import_module("cupola.cpu.observed").begin_from_environment()
    if os.environ.get("CUPOLA_CHECK"):
        import_module("cupola.cpu._checks").begin_from_environment()
    return _CPU_DEVICE, None, cpu.lookup, cpu.explain, per_thread
