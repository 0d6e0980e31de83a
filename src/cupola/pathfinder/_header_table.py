"""Headers: the one that tells that a folder is the right one, and the folders of wheels and systems. Facts only."""

from __future__ import annotations

import sys


class Headers:
    """A set of headers: its key header and where it may be.

    Attributes
    ----------
    key : str
        The header that the folder must contain.
    folders : tuple of str
        Where its wheels put it, below site-packages.
    in_toolkit : tuple of str
        Folders below the root of a toolkit or product.
    environment : str or None
        The variable that names the product's own root.
    system : tuple of str
        Fixed folders of Linux distributions, patterns allowed.
    program_files : tuple of str
        Patterns of folders below Windows' ``Program Files``.
    linux_only : bool
        Whether there are none for Windows.
    version : tuple of str or None
        A header below the folder and the macro in it that has the version.
    """

    __slots__ = ("environment", "folders", "in_toolkit", "key", "linux_only", "program_files", "system", "version")

    def __init__(
        self,
        key: str,
        folders: str,
        *,
        in_toolkit: str = "include",
        environment: str | None = None,
        system: str = "",
        program_files: tuple[str, ...] = (),
        linux_only: bool = False,
        version: tuple[str, str] | None = None,
    ) -> None:
        self.key = key
        self.folders = tuple(folders.split())
        self.in_toolkit = tuple(in_toolkit.split())
        self.environment = environment
        self.system = tuple(system.split())
        self.program_files = program_files
        self.linux_only = linux_only
        self.version = version


def _toolkit(key: str, component: str, version: tuple[str, str] | None = None, *, linux_only: bool = False) -> Headers:
    return Headers(key, f"nvidia/cu13/include nvidia/{component}/include", linux_only=linux_only, version=version)


TOOLKIT_HEADERS: dict[str, Headers] = {
    # CUDA 13 keeps CCCL in a folder of its own.
    "cccl": Headers(
        "cuda/std/version",
        "nvidia/cu13/include/cccl nvidia/cu13/include nvidia/cuda_cccl/include",
        in_toolkit="include/cccl include",
        version=("cuda/std/__cccl/version.h", "CCCL_VERSION"),
    ),
    "cublas": _toolkit("cublas.h", "cublas"),
    "cudart": _toolkit("cuda_runtime.h", "cuda_runtime", ("cuda_runtime_api.h", "CUDART_VERSION")),
    "cufft": _toolkit("cufft.h", "cufft"),
    "curand": _toolkit("curand.h", "curand"),
    "cusolver": _toolkit("cusolverDn.h", "cusolver"),
    "cusparse": _toolkit("cusparse.h", "cusparse"),
    "npp": _toolkit("npp.h", "npp"),
    "profiler": _toolkit("cuda_profiler_api.h", "cuda_profiler_api"),
    "nvcc": _toolkit("fatbinary_section.h", "cuda_nvcc"),
    "nvfatbin": _toolkit("nvFatbin.h", "nvfatbin"),
    "nvjitlink": _toolkit("nvJitLink.h", "nvjitlink"),
    "nvjpeg": _toolkit("nvjpeg.h", "nvjpeg"),
    "nvrtc": _toolkit("nvrtc.h", "cuda_nvrtc"),
    "nvvm": Headers("nvvm.h", "nvidia/cu13/include nvidia/cuda_nvcc/nvvm/include", in_toolkit="nvvm/include include"),
    "cufile": _toolkit("cufile.h", "cufile", linux_only=True),
    "cudla": _toolkit("cudla.h", "cudla", linux_only=True),
}

_CUQUANTUM = "cuquantum/include"
_CUTLASS = "cutlass_library/source/include"

# Products on top of the toolkit; accepted by name, but not part of SUPPORTED_HEADERS_CTK.
OTHER_HEADERS: dict[str, Headers] = {
    "cudnn": Headers(
        "cudnn.h",
        "nvidia/cudnn/include",
        environment="CUDNN_PATH",
        system="/usr/include /usr/include/{machine}-linux-gnu /usr/local/include",
        program_files=("NVIDIA/CUDNN/v9.*/include/*", "NVIDIA/CUDNN/v9.*/include"),
    ),
    "cusolverMp": Headers("cusolverMp.h", "nvidia/cu13/include nvidia/cu12/include nvidia/cusolvermp/cu12/include"),
    "cusparseLt": Headers("cusparseLt.h", "nvidia/cusparselt/include"),
    "cute": Headers("cute/tensor.hpp", _CUTLASS),
    "cutensor": Headers("cutensor.h", "cutensor/include"),
    "cudensitymat": Headers("cudensitymat.h", _CUQUANTUM),
    "cupauliprop": Headers("cupauliprop.h", _CUQUANTUM),
    "cutensornet": Headers("cutensornet.h", _CUQUANTUM),
    "custabilizer": Headers("custabilizer.h", _CUQUANTUM),
    "custatevec": Headers("custatevec.h", _CUQUANTUM),
    "cutlass": Headers("cutlass/cutlass.h", _CUTLASS),
    "mathdx": Headers("libmathdx.h", "nvidia/cu13/include nvidia/cu12/include"),
    "nccl": Headers(
        "nccl.h",
        "nvidia/nccl/include",
        in_toolkit="include build/include",
        environment="NCCL_HOME",
        system="/usr/include /usr/local/include",
        version=("nccl.h", "NCCL_VERSION_CODE"),
    ),
    "nvshmem": Headers("nvshmem.h", "nvidia/nvshmem/include", system="/usr/include/nvshmem_*"),
}

HEADERS: dict[str, Headers] = {**TOOLKIT_HEADERS, **OTHER_HEADERS}


def supported(windows: bool) -> dict[str, str]:
    """The toolkit's headers that exist for a system: name, and key header."""
    return {name: headers.key for name, headers in TOOLKIT_HEADERS.items() if not (windows and headers.linux_only)}


SUPPORTED_HEADERS_CTK: dict[str, str] = supported(sys.platform == "win32")
