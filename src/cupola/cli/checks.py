"""The judgment of ``cupola doctor``: facts in, one verdict for each part of the installation out.

A part is *ok*; *note* when something optional is missing; *warn* when something may go wrong or slowly; *fail* when a
program would fail. Everything but *ok* comes with what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cupola.core.program import _compatibility as compatibility
from cupola.core.program._compatibility import Mismatch, parse_version

from .info import describe, describe_device, first_line
from .installation import Facts

OK, NOTE, WARN, FAIL = "ok", "note", "warn", "fail"

EXTRA = 'pip install "cupola[cu13]" (or "cupola[cu12]" for a driver of CUDA 12)'


class Check(NamedTuple):
    """The verdict on one part: its status, name, what was found, and what to do unless it is ok."""

    status: str
    name: str
    found: str
    advice: str = ""


def judge(facts: Facts) -> list[Check]:
    """All checks, in the order in which parts depend on each other."""
    return [
        *_driver(facts),
        *_device(facts),
        *_nvrtc(facts),
        *_optional_libraries(facts),
        *_headers(facts),
        *_packages(facts),
        *_programs(facts),
        *_mpi(facts),
        *_environment(facts),
        *_folders(facts),
        *_smoke_test(facts),
    ]


def _emulated(facts: Facts) -> bool:
    return bool(facts["device"].get("emulated"))


def _driver(facts: Facts) -> Iterator[Check]:
    driver = facts["driver"]
    gpu_there = bool(driver["device_files"] or driver["release"])
    if "missing" in driver:
        if gpu_there:
            yield Check(
                WARN,
                "NVIDIA driver",
                "the kernel module of NVIDIA's driver is loaded, but libcuda.so.1 is missing",
                "Install the driver's libraries of the same release; start a container with its GPUs "
                "(docker run --gpus all).",
            )
        else:
            yield Check(
                NOTE, "NVIDIA driver", "not installed", "Needed to run on a GPU; the CPU device does not need it."
            )
    elif "error" in driver:
        yield Check(WARN, "NVIDIA driver", f"unusable: {first_line(driver['error'])}", "Reinstall NVIDIA's driver.")
    elif driver["version"] is None:
        yield Check(
            WARN,
            "NVIDIA driver",
            f"unusable: {driver['path']} does not report its version",
            "It is not a complete driver, perhaps a stub for linking: remove its folder from LD_LIBRARY_PATH, or "
            "reinstall "
            "NVIDIA's driver.",
        )
    else:
        release = f"release {driver['release']}, " if driver["release"] else ""
        yield Check(OK, "NVIDIA driver", f"{release}for CUDA {driver['version']}  {driver['path']}")


def _device(facts: Facts) -> Iterator[Check]:
    device, driver = facts["device"], facts["driver"]
    if "error" in device:
        chosen = facts["environment"].get("CUPOLA_DEVICE")
        if chosen and chosen not in ("auto", "gpu", "cpu"):
            advice = "Set CUPOLA_DEVICE to auto, gpu or cpu, or unset it."
        elif driver.get("version"):
            advice = (
                "The driver is installed, but has no device for this program: check that nvidia-smi works here. The "
            )
            advice += 'CPU device needs neither: pip install "cupola[cpu]", with CUPOLA_DEVICE=cpu.'
        else:
            advice = 'Install NVIDIA\'s driver to use a GPU, or the CPU device: pip install "cupola[cpu]", with '
            advice += "CUPOLA_DEVICE unset or cpu."
        yield Check(FAIL, "device", f"none: {first_line(device['error'])}", advice)
        return
    for index, found in enumerate(device["list"]):
        yield Check(OK, f"device {index}", describe_device(found))
    if not device["list"]:
        yield Check(FAIL, "device", "none is visible", "Unset CUDA_VISIBLE_DEVICES, or set CUPOLA_DEVICE=cpu.")
    fell_back = [text for text in device["said"] if "running on the CPU device" in text]
    if device["emulated"] and fell_back and driver["device_files"]:
        yield Check(
            WARN,
            "choice of device",
            fell_back[0],
            "A GPU is not used: check that nvidia-smi works here, and that CUDA_VISIBLE_DEVICES and the "
            f"permissions of {driver['device_files'][0]} let this user use it.",
        )
    elif device["emulated"] and fell_back and driver.get("version"):
        yield Check(
            NOTE,
            "choice of device",
            fell_back[0],
            "The driver is installed, but there is no GPU: start a container with GPUs (docker run --gpus all), or "
            "a job on a "
            "computer with a GPU.",
        )


def _nvrtc(facts: Facts) -> Iterator[Check]:
    nvrtc, device = facts["libraries"]["nvrtc"], facts["device"]
    version = parse_version(nvrtc.get("version"))
    if "path" not in nvrtc:
        if "missing" in nvrtc and "path" in facts["programs"]["nvcc"]:
            advice = f"Needed to compile CUDA C++ in Python, not for `cupola nvcc`: {EXTRA}."
            yield Check(NOTE, "NVRTC", "not found", advice)
            return
        remedy = "Reinstall it" if "error" in nvrtc else "Install it"
        yield Check(FAIL, "NVRTC", describe(nvrtc), f"{remedy}: {EXTRA}. Without it no CUDA C++ can be compiled.")
        return
    yield Check(OK, "NVRTC", describe(nvrtc))
    yield from _copies(facts)
    if version is None:
        return
    driver_version = parse_version(device.get("cuda_version") or facts["driver"].get("version"))
    if driver_version and not _emulated(facts):
        yield from _mismatch("NVRTC and driver", compatibility.compiler_and_driver(version, driver_version))
    targets = facts["nvrtc_targets"]
    for index, found in enumerate(device.get("list", [])):
        arch = int("".join(c for c in found["arch"] if c.isdigit()))
        yield from _mismatch(f"NVRTC and device {index}", compatibility.target_and_compiler(arch, targets, version))


def _copies(facts: Facts) -> Iterator[Check]:
    used = facts["libraries"]["nvrtc"]
    others = [copy for copy in facts["nvrtc_copies"] if copy["path"] != used["path"]]
    if not others:
        return
    # A toolkit beside the wheels is the rule; two in one environment are an accident.
    installed = [copy for copy in others if copy["found_via"] in ("site-packages", "conda")]
    found = f"{1 + len(others)} copies; also " + ", ".join(f"{c['path']} ({c['found_via']})" for c in others)
    if installed or used["found_via"] == "was-already-loaded-from-elsewhere":
        yield Check(
            WARN,
            "copies of NVRTC",
            found,
            "Another package may load the other copy first, and the process then uses that one: keep one of "
            "nvidia-cuda-nvrtc "
            "(CUDA 13) and nvidia-cuda-nvrtc-cu12 (CUDA 12), and pip uninstall the other.",
        )
    else:
        yield Check(NOTE, "copies of NVRTC", found, f"The one above is used: it was found via {used['found_via']}.")


def _optional_libraries(facts: Facts) -> Iterator[Check]:
    nvrtc = parse_version(facts["libraries"]["nvrtc"].get("version"))
    purposes = {
        "nvJitLink": f"Needed to link several object codes, or LTO-IR: {EXTRA}.",
        "nvvm": f"Needed for NVVM IR programs: {EXTRA}.",
        "cudart": f"Needed for cupola.bindings.runtime: {EXTRA}.",
        "nvml": "Needed for cupola.bindings.nvml; it comes with NVIDIA's driver.",
    }
    for name, purpose in purposes.items():
        fact = facts["libraries"][name]
        if "error" in fact:
            yield Check(WARN, name, describe(fact), f"Reinstall it. {purpose}")
        elif "missing" in fact:
            yield Check(NOTE, name, "not found", purpose)
        else:
            yield Check(OK, name, describe(fact))
            version = parse_version(fact.get("version"))
            if name == "nvJitLink" and version and nvrtc:
                yield from _mismatch(
                    "nvJitLink and NVRTC", compatibility.libraries_and_compiler("nvJitLink", version, nvrtc)
                )


def _headers(facts: Facts) -> Iterator[Check]:
    nvrtc = parse_version(facts["libraries"]["nvrtc"].get("version"))
    wheels = {
        "cudart": "nvidia-cuda-runtime (or nvidia-cuda-runtime-cu12)",
        "cccl": "nvidia-cuda-cccl (or nvidia-cuda-cccl-cu12)",
    }
    for name, fact in facts["headers"].items():
        title = f"{name} headers"
        if "path" not in fact:
            yield Check(
                NOTE,
                title,
                describe(fact),
                f"Kernels that include CUDA's headers need them: pip install {wheels[name]}.",
            )
            continue
        yield Check(OK, title, describe(fact))
        version = parse_version(fact.get("version"))
        if name == "cudart" and version and nvrtc:
            yield from _mismatch("headers and NVRTC", compatibility.headers_and_compiler(version, nvrtc))
        if fact.get("crt") is False:
            yield Check(
                WARN,
                "crt headers",
                "not found beside cuda_runtime.h, which includes them",
                "pip install nvidia-cuda-crt",
            )


def _packages(facts: Facts) -> Iterator[Check]:
    llvmlite, numpy = facts["packages"]["llvmlite"], facts["packages"]["numpy"]
    if "version" in llvmlite:
        yield Check(OK, "llvmlite", llvmlite["version"])
    else:
        yield Check(
            FAIL if _emulated(facts) else NOTE,
            "llvmlite",
            describe(llvmlite),
            'The CPU device compiles kernels with it: pip install "cupola[cpu]".',
        )
    if "version" in numpy:
        yield Check(OK, "NumPy", numpy["version"])
    else:
        yield Check(NOTE, "NumPy", describe(numpy), "Needed only for programs that use it: pip install numpy.")


def _programs(facts: Facts) -> Iterator[Check]:
    nvcc, libpython = facts["programs"]["nvcc"], facts["programs"]["libpython"]
    if "path" in nvcc:
        yield Check(OK, "nvcc", f"CUDA {nvcc['version']}  {nvcc['path']}")
    elif "missing" in nvcc:
        advice = 'Needed to build CUDA C++ programs with `cupola nvcc`: pip install "cupola[nvcc]".'
        yield Check(NOTE, "nvcc", "not found", advice)
    else:
        yield Check(WARN, "nvcc", "cannot build programs", nvcc["error"])
    if "path" in libpython:
        yield Check(OK, "libpython", libpython["path"])
    else:
        found = "not found: programs in other languages do not run on the CPU device"
        yield Check(NOTE, "libpython", found, libpython["missing"])
    stand_in = _stand_in(facts)
    yield stand_in
    if _emulated(facts):
        for name in facts["private_runtime"]:
            advice = "It runs on GPUs only: that runtime works with NVIDIA's driver only (docs/cuda-programs.md)."
            if name.startswith("cupy") and stand_in.found.startswith("the stand-in"):
                advice += " `cupola run` takes the stand-in instead (docs/coming-from-cupy.md)."
            yield Check(NOTE, name, "has NVIDIA's CUDA runtime inside", advice)
        for fact in facts["above"]:
            if "advice" in fact:
                found = f"{fact['version']}, a version that the CPU device does not know"
                yield Check(NOTE, fact["name"], found, f"{fact['advice'][:1].upper()}{fact['advice'][1:]}.")
            else:
                yield Check(OK, fact["name"], fact["version"])


def _stand_in(facts: Facts) -> Check:
    """What ``import cupy`` gives under ``cupola run``."""
    cupy, name = facts["cupy"], "CuPy"
    if "error" in cupy:
        return Check(FAIL, name, first_line(cupy["error"]), "`cupola run` ends with that error: set it, or unset it.")
    if cupy["stands_in"] or (cupy["stands_in"] is None and _emulated(facts)):
        real = f"; {cupy['installed']} is left alone" if cupy["installed"] else ""
        return Check(OK, name, f"the stand-in for CuPy {cupy['version']} under `cupola run`{real}")
    if cupy["installed"]:
        return Check(OK, name, cupy["installed"])
    return Check(OK, name, "not installed; `cupola run --cupy` has a stand-in")


def _mpi(facts: Facts) -> Iterator[Check]:
    mpi = facts["mpi"]
    if "version" in mpi:
        how = "messages pass through pinned memory"
        if mpi["cuda_aware"]:
            how = "takes device memory"
        elif mpi["host_memory"]:
            how = "takes the CPU device's memory"
        yield Check(OK, "MPI", f"{mpi['version']}; {how}")
    elif "error" in mpi:
        advice = "cupola.mpi needs a library of MPI: Open MPI, MPICH, or pip install mpich. MPI4PY_LIBMPI names it."
        yield Check(NOTE, "MPI", f"unusable: {first_line(mpi['error'])}", advice)


def _environment(facts: Facts) -> Iterator[Check]:
    variables = facts["environment"]
    path, home = variables["CUDA_PATH"], variables["CUDA_HOME"]
    if path and home and path.rstrip("/") != home.rstrip("/"):
        yield Check(
            WARN,
            "environment",
            f"CUDA_PATH is {path} and CUDA_HOME is {home}",
            "cupola uses CUDA_PATH, and some other programs use CUDA_HOME: unset one of them.",
        )


def _folders(facts: Facts) -> Iterator[Check]:
    for name, fact in facts["folders"].items():
        if "error" in fact:
            yield Check(
                WARN,
                name,
                f"{fact['path']}: {first_line(fact['error'])}",
                "Kernels are compiled again in each process: set XDG_CACHE_HOME to a writable folder.",
            )
        elif "missing" in fact:
            yield Check(NOTE, name, fact["missing"], "Kernels are compiled again in each process.")
        else:
            yield Check(OK, name, fact["path"])


def _smoke_test(facts: Facts) -> Iterator[Check]:
    test = facts["smoke_test"]
    if "error" in test:
        if "error" in facts["device"]:
            advice = "It needs a device: see above."
        elif "path" not in facts["libraries"]["nvrtc"]:
            advice = "It needs NVRTC: see above."
        else:
            advice = test.get("details") or (
                "See the problems above; if there are none, please report this with the output of --json."
            )
        yield Check(FAIL, "smoke test", first_line(test["error"]).rstrip(":"), advice)
    else:
        yield Check(OK, "smoke test", test["found"])


def _mismatch(name: str, found: Mismatch | None) -> Iterator[Check]:
    if found is not None:
        yield Check(FAIL if found.fatal else WARN, name, found.problem, found.remedy)
