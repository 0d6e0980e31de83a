"""What NVIDIA ships under which file name, and in which folder of a wheel: facts only."""

from __future__ import annotations


class Library:
    """A dynamic library: its sonames (preferred first), wheel folders and what must be loaded before it."""

    __slots__ = ("depends", "environment", "folders", "in_toolkit", "sonames")

    def __init__(
        self,
        sonames: str,
        folders: str,
        depends: str = "",
        *,
        in_toolkit: tuple[str, ...] = ("lib64", "lib"),
        environment: str | None = None,
    ) -> None:
        self.sonames = tuple(sonames.split())
        self.folders = tuple(f"nvidia/{folder}" for folder in folders.split())
        self.depends = tuple(depends.split())
        self.in_toolkit = in_toolkit
        self.environment = environment


_NPP = "cu13/lib npp/lib"

TOOLKIT_LIBRARIES: dict[str, Library] = {
    "cudart": Library("libcudart.so.13 libcudart.so.12", "cu13/lib cuda_runtime/lib"),
    "nvfatbin": Library("libnvfatbin.so.13 libnvfatbin.so.12", "cu13/lib nvfatbin/lib"),
    "nvJitLink": Library("libnvJitLink.so.13 libnvJitLink.so.12", "cu13/lib nvjitlink/lib"),
    "nvrtc": Library("libnvrtc.so.13 libnvrtc.so.12", "cu13/lib cuda_nvrtc/lib"),
    "nvvm": Library(
        "libnvvm.so.4 libnvvm.so", "cu13/lib cuda_nvcc/nvvm/lib64", in_toolkit=("nvvm/lib64", "lib64", "lib")
    ),
    "cublas": Library("libcublas.so.13 libcublas.so.12", "cu13/lib cublas/lib", "cublasLt"),
    "cublasLt": Library("libcublasLt.so.13 libcublasLt.so.12", "cu13/lib cublas/lib"),
    "cufft": Library("libcufft.so.12 libcufft.so.11", "cu13/lib cufft/lib"),
    "cufftw": Library("libcufftw.so.12 libcufftw.so.11", "cu13/lib cufft/lib", "cufft"),
    "curand": Library("libcurand.so.11 libcurand.so.10", "cu13/lib curand/lib"),
    "cusolver": Library(
        "libcusolver.so.12 libcusolver.so.11", "cu13/lib cusolver/lib", "nvJitLink cusparse cublasLt cublas"
    ),
    "cusolverMg": Library(
        "libcusolverMg.so.12 libcusolverMg.so.11", "cu13/lib cusolver/lib", "nvJitLink cublasLt cublas"
    ),
    "cusparse": Library("libcusparse.so.12", "cu13/lib cusparse/lib", "nvJitLink"),
    "nppc": Library("libnppc.so.13 libnppc.so.12", _NPP),
    **{
        name: Library(f"lib{name}.so.13 lib{name}.so.12", _NPP, "nppc")
        for name in ["nppial", "nppicc", "nppidei", "nppif", "nppig", "nppim", "nppist", "nppisu", "nppitc", "npps"]
    },
    "nvblas": Library("libnvblas.so.13 libnvblas.so.12", "cu13/lib cublas/lib", "cublas cublasLt"),
    "nvjpeg": Library("libnvjpeg.so.13 libnvjpeg.so.12", "cu13/lib nvjpeg/lib"),
    "cupti": Library(
        "libcupti.so.13 libcupti.so.12",
        "cu13/lib cuda_cupti/lib",
        in_toolkit=("extras/CUPTI/lib64", "lib64", "lib"),
    ),
    "cufile": Library("libcufile.so.0", "cu13/lib cufile/lib"),
    "cudla": Library("libcudla.so.1", "cu13/lib"),
}

# Libraries on top of the toolkit; accepted by name, but not part of SUPPORTED_NVIDIA_LIBNAMES.
OTHER_LIBRARIES: dict[str, Library] = {
    "cudnn": Library("libcudnn.so.9", "cudnn/lib", "cublasLt", environment="CUDNN_PATH"),
    "cusparseLt": Library("libcusparseLt.so.0", "cusparselt/lib"),
    "cutensor": Library("libcutensor.so.2", "cutensor/lib", "cublasLt"),
    "nccl": Library("libnccl.so.2", "nccl/lib", environment="NCCL_HOME"),
    "nvshmem_host": Library("libnvshmem_host.so.3", "nvshmem/lib"),
}

# Installed with the GPU's kernel driver, never with the toolkit.
DRIVER_LIBRARIES: dict[str, Library] = {
    "cuda": Library("libcuda.so.1", ""),
    "nvml": Library("libnvidia-ml.so.1", ""),
    "nvcudla": Library("libnvcudla.so", ""),
}

LIBRARIES: dict[str, Library] = {**TOOLKIT_LIBRARIES, **OTHER_LIBRARIES, **DRIVER_LIBRARIES}

SUPPORTED_NVIDIA_LIBNAMES: tuple[str, ...] = tuple(TOOLKIT_LIBRARIES)

SUPPORTED_HEADERS_CTK: dict[str, str] = {
    "cccl": "cuda/std/version",
    "cublas": "cublas.h",
    "cudart": "cuda_runtime.h",
    "cufft": "cufft.h",
    "curand": "curand.h",
    "cusolver": "cusolverDn.h",
    "cusparse": "cusparse.h",
    "npp": "npp.h",
    "profiler": "cuda_profiler_api.h",
    "nvcc": "fatbinary_section.h",
    "nvfatbin": "nvFatbin.h",
    "nvjitlink": "nvJitLink.h",
    "nvjpeg": "nvjpeg.h",
    "nvrtc": "nvrtc.h",
    "nvvm": "nvvm.h",
    "cufile": "cufile.h",
    "cudla": "cudla.h",
}

# The folder of a CUDA 12 wheel that holds a component's headers; CUDA 13 has one folder for all.
HEADER_COMPONENTS: dict[str, str] = {
    "cccl": "cuda_cccl",
    "cudart": "cuda_runtime",
    "profiler": "cuda_profiler_api",
    "nvcc": "cuda_nvcc",
    "nvrtc": "cuda_nvrtc",
}

# What to install when a library is missing: shown in the error.
EXTRAS: dict[str, str] = {
    "nvrtc": "cupola[cu13]",
    "nvJitLink": "cupola[cu13]",
    "nvvm": "cupola[cu13]",
    "nvfatbin": "cupola[cu13]",
    "cudart": "cupola[cu13]",
}
