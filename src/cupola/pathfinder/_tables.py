"""Dynamic libraries: what NVIDIA ships under which file name, and in which folder of a wheel. Facts only."""

from __future__ import annotations


class Library:
    """A dynamic library.

    Attributes
    ----------
    sonames : tuple of str
        Names for the loader, preferred first.
    folders : tuple of str
        Where its wheels put it, below site-packages.
    depends : tuple of str
        Libraries that must be in the process before it.
    in_toolkit : tuple of str
        Folders below the root of a toolkit or of a conda environment.
    environment : str or None
        The variable that names the product's own root.
    pip : tuple of str
        Wheels that have it, for the newest CUDA first.
    anchored : bool
        Whether the toolkit that the loader takes cudart from is searched too: the library is on no loader's path.
    deep_bind : bool
        Whether its own symbols must win over those of libraries that are loaded already.
    """

    __slots__ = ("anchored", "deep_bind", "depends", "environment", "folders", "in_toolkit", "pip", "sonames")

    def __init__(
        self,
        sonames: str,
        folders: str = "",
        depends: str = "",
        *,
        pip: str = "",
        in_toolkit: str = "lib64 lib",
        environment: str | None = None,
        anchored: bool = False,
        deep_bind: bool = False,
    ) -> None:
        self.sonames = tuple(sonames.split())
        self.folders = tuple(folders.split())
        self.depends = tuple(depends.split())
        self.pip = tuple(pip.split())
        self.in_toolkit = tuple(in_toolkit.split())
        self.environment = environment
        self.anchored = anchored
        self.deep_bind = deep_bind


def _toolkit(
    name: str,
    versions: str,
    component: str,
    depends: str = "",
    *,
    pip: str = "",
    in_toolkit: str = "lib64 lib",
    anchored: bool = False,
) -> Library:
    """A library of the toolkit: CUDA 13 has one wheel folder for all, CUDA 12 one for each component."""
    distribution = pip or "nvidia-" + component.replace("_", "-")
    return Library(
        " ".join(f"lib{name}.so.{version}" for version in versions.split()),
        f"nvidia/cu13/lib nvidia/{component}/lib",
        depends,
        pip=f"{distribution} {distribution}-cu12",
        in_toolkit=in_toolkit,
        anchored=anchored,
    )


TOOLKIT_LIBRARIES: dict[str, Library] = {
    "cudart": _toolkit("cudart", "13 12", "cuda_runtime"),
    "nvfatbin": _toolkit("nvfatbin", "13 12", "nvfatbin"),
    "nvJitLink": _toolkit("nvJitLink", "13 12", "nvjitlink"),
    "nvrtc": _toolkit("nvrtc", "13 12", "cuda_nvrtc"),
    "nvvm": Library(
        "libnvvm.so.4 libnvvm.so",
        "nvidia/cu13/lib nvidia/cuda_nvcc/nvvm/lib64",
        pip="nvidia-nvvm nvidia-cuda-nvcc-cu12",
        in_toolkit="nvvm/lib64 lib64 lib",
        anchored=True,
    ),
    "cublas": _toolkit("cublas", "13 12", "cublas", "cublasLt"),
    "cublasLt": _toolkit("cublasLt", "13 12", "cublas"),
    "cufft": _toolkit("cufft", "12 11", "cufft"),
    "cufftw": _toolkit("cufftw", "12 11", "cufft", "cufft"),
    "curand": _toolkit("curand", "11 10", "curand"),
    "cusolver": _toolkit("cusolver", "12 11", "cusolver", "nvJitLink cusparse cublasLt cublas"),
    "cusolverMg": _toolkit("cusolverMg", "12 11", "cusolver", "nvJitLink cublasLt cublas"),
    "cusparse": _toolkit("cusparse", "12", "cusparse", "nvJitLink"),
    "nppc": _toolkit("nppc", "13 12", "npp"),
    **{
        name: _toolkit(name, "13 12", "npp", "nppc")
        for name in ("nppial", "nppicc", "nppidei", "nppif", "nppig", "nppim", "nppist", "nppisu", "nppitc", "npps")
    },
    "nvblas": _toolkit("nvblas", "13 12", "cublas", "cublas cublasLt"),
    "nvjpeg": _toolkit("nvjpeg", "13 12", "nvjpeg"),
    "cupti": _toolkit("cupti", "13 12", "cuda_cupti", in_toolkit="extras/CUPTI/lib64 lib64 lib", anchored=True),
    "cufile": _toolkit("cufile", "0", "cufile"),
    "cudla": Library("libcudla.so.1", "nvidia/cu13/lib"),
}

_CUQUANTUM = "cuquantum/lib"
_CUTENSOR = "cutensor/lib"

# Libraries on top of the toolkit; accepted by name, but not part of SUPPORTED_NVIDIA_LIBNAMES.
OTHER_LIBRARIES: dict[str, Library] = {
    "cublasmp": Library(
        "libcublasmp.so.0",
        "nvidia/cublasmp/cu13/lib nvidia/cublasmp/cu12/lib",
        "cublas cublasLt nvshmem_host",
        pip="nvidia-cublasmp-cu13 nvidia-cublasmp-cu12",
    ),
    "cufftMp": Library(
        "libcufftMp.so.12 libcufftMp.so.11",
        "nvidia/cufftmp/cu13/lib nvidia/cufftmp/cu12/lib",
        "nvshmem_host",
        pip="nvidia-cufftmp-cu13 nvidia-cufftmp-cu12",
        deep_bind=True,  # has the symbols of cuFFT too
    ),
    "cudnn": Library(
        "libcudnn.so.9",
        "nvidia/cudnn/lib",
        "cublasLt",
        pip="nvidia-cudnn-cu13 nvidia-cudnn-cu12",
        environment="CUDNN_PATH",
    ),
    "cusolverMp": Library(
        "libcusolverMp.so.0",
        "nvidia/cu13/lib nvidia/cu12/lib nvidia/cusolvermp/cu12/lib",
        "cublas cudart cusolver nccl",
        pip="nvidia-cusolvermp-cu13 nvidia-cusolvermp-cu12",
    ),
    "mathdx": Library(
        "libmathdx.so.0",
        "nvidia/cu13/lib nvidia/cu12/lib",
        "nvrtc",
        pip="nvidia-libmathdx-cu13 nvidia-libmathdx-cu12",
    ),
    "cudss": Library(
        "libcudss.so.1 libcudss.so.0",
        "nvidia/cu13/lib nvidia/cu12/lib",
        "cublas cublasLt",
        pip="nvidia-cudss-cu13 nvidia-cudss-cu12",
    ),
    "cusparseLt": Library(
        "libcusparseLt.so.0", "nvidia/cusparselt/lib", pip="nvidia-cusparselt-cu13 nvidia-cusparselt-cu12"
    ),
    "cutensor": Library("libcutensor.so.2", _CUTENSOR, "cublasLt", pip="cutensor-cu13 cutensor-cu12"),
    "cutensorMg": Library("libcutensorMg.so.2", _CUTENSOR, "cutensor cublasLt", pip="cutensor-cu13 cutensor-cu12"),
    "cutensorMp": Library(
        "libcutensorMp.so.0", _CUTENSOR, "cutensor cublasLt cudart nccl", pip="cutensor-cu13 cutensor-cu12"
    ),
    "cudensitymat": Library(
        "libcudensitymat.so.0",
        _CUQUANTUM,
        "cutensornet cutensor cusolver cublasLt cublas curand cusparse nvJitLink",
        pip="cudensitymat-cu13 cudensitymat-cu12",
    ),
    "cupauliprop": Library("libcupauliprop.so.0", _CUQUANTUM, pip="cupauliprop-cu13 cupauliprop-cu12"),
    "cutensornet": Library(
        "libcutensornet.so.2", _CUQUANTUM, "cutensor cublas cusolver", pip="cutensornet-cu13 cutensornet-cu12"
    ),
    "custabilizer": Library("libcustabilizer.so.0", _CUQUANTUM, pip="custabilizer-cu13 custabilizer-cu12"),
    "custatevec": Library("libcustatevec.so.1", _CUQUANTUM, "cublas cublasLt", pip="custatevec-cu13 custatevec-cu12"),
    "nccl": Library(
        "libnccl.so.2",
        "nvidia/nccl/lib",
        pip="nvidia-nccl-cu13 nvidia-nccl-cu12",
        in_toolkit="lib lib64 build/lib",  # build/lib: a source tree that was compiled in place
        environment="NCCL_HOME",
    ),
    "nvpl_fftw": Library("libnvpl_fftw.so.0", "nvpl/lib", pip="nvpl-fft"),
    "nvshmem_host": Library(
        "libnvshmem_host.so.3", "nvidia/nvshmem/lib", pip="nvidia-nvshmem-cu13 nvidia-nvshmem-cu12"
    ),
}

# Installed with the GPU's kernel driver, never with the toolkit.
DRIVER_LIBRARIES: dict[str, Library] = {
    "cuda": Library("libcuda.so.1"),
    "nvml": Library("libnvidia-ml.so.1"),
    "nvcudla": Library("libnvcudla.so"),
}

LIBRARIES: dict[str, Library] = {**TOOLKIT_LIBRARIES, **OTHER_LIBRARIES, **DRIVER_LIBRARIES}

SUPPORTED_NVIDIA_LIBNAMES: tuple[str, ...] = tuple(TOOLKIT_LIBRARIES)

# These come with an extra of this package, which has everything that fits together.
IN_EXTRAS = frozenset({"nvrtc", "nvJitLink", "nvvm", "nvfatbin", "cudart"})
