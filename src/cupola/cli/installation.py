"""What this installation consists of, as plain data: the facts that ``info`` prints and ``doctor`` judges.

Nothing here raises: whatever goes wrong while a fact is established is the fact.
"""

from __future__ import annotations

import glob
import logging
import os
import platform
import sys
import tempfile
from typing import Any

LIBRARIES = ("nvrtc", "nvJitLink", "nvvm", "cudart", "nvml")
HEADERS = ("cudart", "cccl")
PACKAGES = ("llvmlite", "numpy")
# Packages on PyPI that have NVIDIA's CUDA runtime inside.
PRIVATE_RUNTIME = ("cupy-cuda12x", "cupy-cuda13x", "warp-lang")
ENVIRONMENT = ("CUPOLA_DEVICE", "CUDA_VISIBLE_DEVICES", "CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "LD_LIBRARY_PATH")

Facts = dict[str, Any]


def collect() -> Facts:
    """Everything that ``info`` shows."""
    import cupola

    return {
        "cupola": cupola.__version__,
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "environment": {name: os.environ.get(name) for name in ENVIRONMENT},
        "driver": driver(),
        "device": device(),
        "libraries": {name: library(name) for name in LIBRARIES},
        "headers": {name: headers(name) for name in HEADERS},
        "packages": {name: package(name) for name in PACKAGES},
    }


def collect_more() -> Facts:
    """What only ``doctor`` looks at, since it takes longer."""
    return {
        "nvrtc_copies": copies("nvrtc"),
        "nvrtc_targets": nvrtc_targets(),
        "folders": {"object cache": folder(object_cache_folder())},
        "programs": {"nvcc": nvcc(), "libpython": libpython()},
        "cupy": cupy(),
        "private_runtime": [name for name in PRIVATE_RUNTIME if "version" in distribution(name)],
        "above": above(),
    }


def nvcc() -> Facts:
    """Where nvcc is, with all that it needs, or what is missing."""
    from . import nvcc

    try:
        found = nvcc.find_nvcc()
        nvcc.check_host_compiler(())
    except SystemExit as error:
        text = str(error).removeprefix("cupola nvcc: ")
        return {"missing" if text.startswith("nvcc is not installed") else "error": text}
    except Exception as error:
        return failure(error)
    return {"path": str(found), "version": str(nvcc.toolkit_major(found))}


def libpython() -> Facts:
    """The shared library of this Python, which programs in other languages need."""
    from cupola.cpu import programs

    try:
        return {"path": programs.find_libpython()}
    except Exception as error:
        return {"missing": str(error)}


def cupy() -> Facts:
    """What ``import cupy`` gives under ``cupola run``, as far as the environment says."""
    from cupola import standins

    try:
        return {"stands_in": standins.choice(), "version": standins.VERSION, "installed": standins.installed_cupy()}
    except ValueError as error:
        return failure(error)


def above() -> list[Facts]:
    """The packages above CUDA that are installed, and what is to be said of those of other versions than were tried."""
    from cupola import _tried

    facts: list[Facts] = []
    for name in _tried.TRIED:
        found = _tried.version_of(name)
        if found is not None:
            version, is_tried = found
            facts.append({"name": name, "version": version, **({} if is_tried else {"advice": _tried.advice(name)})})
    return facts


def distribution(name: str) -> Facts:
    """The version of a distribution, which need not be imported for that."""
    from importlib import metadata

    try:
        return {"version": metadata.version(name)}
    except metadata.PackageNotFoundError:
        return {"missing": "not installed"}


def device() -> Facts:
    """The devices, who provides them, and why a GPU was passed over."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, listener = logging.getLogger("cupola"), Listener(logging.INFO)
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    try:
        from cupola import Device
        from cupola.bindings import driver as bindings

        devices = Device.get_all_devices()
        status, version = bindings.cuDriverGetVersion()
        if status:
            return {"error": f"cuDriverGetVersion: {status.name}"}
        provider = bindings._provider_name() or ""
        return {
            "provider": provider,
            "emulated": provider == "cupola CPU device",
            "cuda_version": f"{version // 1000}.{version % 1000 // 10}",
            "said": said,
            "list": [
                {
                    "name": d.name,
                    "arch": d.arch,
                    "multiprocessors": d.properties.multiprocessor_count,
                    "threads_per_block": d.properties.max_threads_per_block,
                    "shared_memory_per_block": d.properties.max_shared_memory_per_block_optin,
                }
                for d in devices
            ],
        }
    except Exception as error:
        return failure(error)
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)


def driver() -> Facts:
    """NVIDIA's driver, whether or not it is used: the library, its release and newest CUDA, and its device files."""
    from cupola.pathfinder._versions import driver_release

    return {
        **library("cuda"),
        "release": driver_release(),
        "device_files": sorted(glob.glob("/dev/nvidia[0-9]*") + glob.glob("/dev/dxg")),  # dxg: Windows' Linux
    }


def library(name: str) -> Facts:
    """Where a library is, its version, and why it was chosen; or why none was found."""
    from cupola import pathfinder

    try:
        found = pathfinder.load_nvidia_dynamic_lib(name)
        return {"path": found.abs_path, "version": found.version, "found_via": found.found_via}
    except pathfinder.DynamicLibNotFoundError as error:
        return {"missing": str(error)}
    except Exception as error:
        return failure(error)


def headers(name: str) -> Facts:
    """Where a set of headers is, which version, and why that one."""
    from cupola import pathfinder

    try:
        found = pathfinder.locate_nvidia_header_directory(name)
    except Exception as error:
        return failure(error)
    if found is None:
        return {"missing": f"the headers of {name} were not found"}
    facts: Facts = {"path": found.abs_path, "version": found.version, "found_via": found.found_via}
    if name == "cudart":  # CUDA 13 has these in a wheel of their own
        facts["crt"] = os.path.isfile(os.path.join(found.abs_path, "crt", "host_defines.h"))
    return facts


def package(name: str) -> Facts:
    """The version of a Python package, which is imported, as it may be there and broken."""
    import importlib
    import importlib.metadata

    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return {"missing": f"the package {name} is not installed"}
    try:
        importlib.import_module(name)
    except Exception as error:
        return failure(error)
    return {"version": version}


def copies(name: str) -> list[Facts]:
    """Every copy of a library, the preferred one first."""
    from cupola.pathfinder._dynamic_libraries import copies_of

    try:
        return [{"path": path, "found_via": found_via} for path, found_via in copies_of(name)]
    except Exception:
        return []  # the search for the library itself has failed too, and said why


def nvrtc_targets() -> list[int]:
    """The architectures that NVRTC compiles for; none when there is no NVRTC."""
    try:
        from cupola.core.program._compatibility import supported_targets

        return supported_targets()
    except Exception:
        return []  # as above


def object_cache_folder() -> str | None:
    """Where the CPU device keeps compiled kernels; None when the cache is turned off."""
    from cupola.cpu.compiler.objects.cache import ObjectCache

    place = ObjectCache.default("").folder
    return None if place is None else str(place)


def folder(path: str | None) -> Facts:
    """Whether files can be made in a folder, which is made if it is not there."""
    if path is None:
        return {"missing": "turned off"}
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except OSError as error:
        return {"path": path, **failure(error)}
    return {"path": path}


def failure(error: BaseException) -> Facts:
    """An exception as a fact."""
    return {"error": f"{type(error).__name__}: {error}"}
