"""``cupola info``: what this installation runs on."""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import Any

LIBRARIES = ("cuda", "nvrtc", "nvJitLink", "nvvm", "cudart", "nvml")
HEADERS = ("cudart", "cccl")


def run(*, as_json: bool = False) -> int:
    """Print what was found; the exit status is 1 when no device can be used."""
    facts = collect()
    print(json.dumps(facts, indent=2) if as_json else as_text(facts))
    return 1 if "error" in facts["devices"] else 0


def collect() -> dict[str, Any]:
    """Everything the command shows, as plain data."""
    import cupola

    return {
        "cupola": cupola.__version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "CUPOLA_DEVICE": os.environ.get("CUPOLA_DEVICE", "auto (not set)"),
        "devices": _devices(),
        "libraries": {name: _library(name) for name in LIBRARIES},
        "headers": {name: _headers(name) for name in HEADERS},
        "packages": {name: _package(name) for name in ("llvmlite", "numpy")},
    }


def as_text(facts: dict[str, Any]) -> str:
    """The facts as a table for people."""
    lines = [f"{name:14} {facts[name]}" for name in ("cupola", "python", "CUPOLA_DEVICE")]
    devices = facts["devices"]
    if "error" in devices:
        lines.append(f"{'device':14} none: {devices['error']}")
    else:
        lines.append(f"{'provider':14} {devices['provider']}")
        lines.append(f"{'CUDA version':14} {devices['cuda_version']}")
        lines += [f"{'device ' + str(i):14} {text}" for i, text in enumerate(devices["list"])]
    for title in ("libraries", "headers", "packages"):
        lines += ["", title]
        lines += [f"  {name:12} {text}" for name, text in facts[title].items()]
    return "\n".join(lines)


def _devices() -> dict[str, Any]:
    try:
        from cupola import Device
        from cupola.bindings import driver

        devices = Device.get_all_devices()
        status, version = driver.cuDriverGetVersion()
        return {
            "provider": driver._provider_name(),
            "cuda_version": f"{version // 1000}.{version % 1000 // 10}",
            "list": [
                f"{d.name}, sm_{d.arch}, {d.properties.multiprocessor_count} SMs, "
                f"{d.properties.max_threads_per_block} threads a block, "
                f"{d.properties.max_shared_memory_per_block_optin // 1024} KiB shared memory a block"
                for d in devices
            ],
        }
    except Exception as error:  # whatever it is, it is the answer to the question asked
        return {"error": f"{type(error).__name__}: {error}"}


def _library(name: str) -> str:
    from cupola import pathfinder

    try:
        found = pathfinder.load_nvidia_dynamic_lib(name)
    except pathfinder.DynamicLibNotFoundError as error:
        return f"not found ({str(error).splitlines()[-1].strip()})"
    except RuntimeError as error:
        return f"unusable: {error}"
    return f"{found.abs_path} ({found.found_via})"


def _headers(name: str) -> str:
    from cupola import pathfinder

    found = pathfinder.locate_nvidia_header_directory(name)
    return f"{found.abs_path} ({found.found_via})" if found else "not found"


def _package(name: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
