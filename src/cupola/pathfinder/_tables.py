"""Dynamic libraries: what NVIDIA ships under which file name, and in which folder of a wheel. Facts only.

Folders are those of Linux; `_platform` knows where the same things are on Windows.
"""

from __future__ import annotations

from ._platform import Platform


class Library:
    """A dynamic library.

    Attributes
    ----------
    sonames : tuple of str
        Names for the loader of Linux, preferred first.
    dlls : tuple of str
        Names for that of Windows; with a ``*``, a pattern for files. Empty: not for Windows.
    folders : tuple of str
        Where its wheels put it, below site-packages.
    depends : tuple of str
        Libraries that must be in the process before it.
    in_toolkit : tuple of str
        Folders below the root of a toolkit or of a conda environment.
    program_files : tuple of str
        Patterns of folders below Windows' ``Program Files``; ``{arch}`` is the processor's folder.
    environment : str or None
        The variable that names the product's own root.
    pip : tuple of str
        Wheels that have it, for the newest CUDA first.
    anchored : bool
        Whether the toolkit that the loader takes cudart from is searched too: the library is on no loader's path.
    deep_bind : bool
        Whether its own symbols must win over those of libraries that are loaded already.
    """

    __slots__ = (
        "anchored",
        "deep_bind",
        "depends",
        "dlls",
        "environment",
        "folders",
        "in_toolkit",
        "pip",
        "program_files",
        "sonames",
    )

    def __init__(
        self,
        sonames: str,
        folders: str = "",
        depends: str = "",
        *,
        dlls: str = "",
        pip: str = "",
        in_toolkit: str = "lib64 lib",
        program_files: tuple[str, ...] = (),
        environment: str | None = None,
        anchored: bool = False,
        deep_bind: bool = False,
    ) -> None:
        self.sonames = tuple(sonames.split())
        self.dlls = tuple(dlls.split())
        self.program_files = program_files
        self.folders = tuple(folders.split())
        self.depends = tuple(depends.split())
        self.pip = tuple(pip.split())
        self.in_toolkit = tuple(in_toolkit.split())
        self.environment = environment
        self.anchored = anchored
        self.deep_bind = deep_bind

    def names(self, platform: Platform) -> tuple[str, ...]:
        """The names of the file on a platform, preferred first; empty when it does not exist there."""
        return self.dlls if platform.windows else self.sonames


# The toolkit's own installer.
_INSTALLED = "NVIDIA GPU Computing Toolkit/CUDA/v*/"


def _toolkit(
    name: str,
    versions: str,
    component: str,
    depends: str = "",
    *,
    dlls: str | None = None,
    in_toolkit: str = "lib64 lib",
    program_files: tuple[str, ...] = ("bin/{arch}", "bin"),
    anchored: bool = False,
) -> Library:
    """A library of the toolkit: CUDA 13 has one wheel folder for all, CUDA 12 one for each component."""
    distribution = "nvidia-" + component.replace("_", "-")
    return Library(
        " ".join(f"lib{name}.so.{version}" for version in versions.split()),
        f"nvidia/cu13/lib nvidia/{component}/lib",
        depends,
        dlls=" ".join(f"{name}64_{version}.dll" for version in versions.split()) if dlls is None else dlls,
        pip=f"{distribution} {distribution}-cu12",
        in_toolkit=in_toolkit,
        program_files=tuple(_INSTALLED + folder for folder in program_files),
        anchored=anchored,
    )


TOOLKIT_LIBRARIES: dict[str, Library] = {
    "cudart": _toolkit("cudart", "13 12", "cuda_runtime"),
    "nvfatbin": _toolkit("nvfatbin", "13 12", "nvfatbin", dlls="nvfatbin_130_0.dll nvfatbin_120_0.dll"),
    "nvJitLink": _toolkit("nvJitLink", "13 12", "nvjitlink", dlls="nvJitLink_130_0.dll nvJitLink_120_0.dll"),
    "nvrtc": _toolkit("nvrtc", "13 12", "cuda_nvrtc", dlls="nvrtc64_130_0.dll nvrtc64_120_0.dll"),
    "nvvm": Library(
        "libnvvm.so.4 libnvvm.so",
        "nvidia/cu13/lib nvidia/cuda_nvcc/nvvm/lib64",
        dlls="nvvm70.dll nvvm64_40_0.dll nvvm64.dll",
        pip="nvidia-nvvm nvidia-cuda-nvcc-cu12",
        in_toolkit="nvvm/lib64 lib64 lib",
        program_files=(_INSTALLED + "nvvm/bin/{arch}", _INSTALLED + "nvvm/bin"),
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
    "cupti": _toolkit(
        "cupti",
        "13 12",
        "cuda_cupti",
        dlls="cupti64_*.dll",  # named for the year of its release
        in_toolkit="extras/CUPTI/lib64 lib64 lib",
        program_files=("extras/CUPTI/lib/{arch}", "extras/CUPTI/lib64"),
        anchored=True,
    ),
    "cufile": _toolkit("cufile", "0", "cufile", dlls="", program_files=()),
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
        dlls="cudnn64_9.dll",
        pip="nvidia-cudnn-cu13 nvidia-cudnn-cu12",
        in_toolkit="lib64 lib bin",
        program_files=("NVIDIA/CUDNN/v9.*/bin/*/{arch}", "NVIDIA/CUDNN/v9.*/bin/*", "NVIDIA/CUDNN/v9.*/bin"),
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
        dlls="mathdx64_0.dll",
        pip="nvidia-libmathdx-cu13 nvidia-libmathdx-cu12",
    ),
    "cudss": Library(
        "libcudss.so.1 libcudss.so.0",
        "nvidia/cu13/lib nvidia/cu12/lib",
        "cublas cublasLt",
        dlls="cudss64_1.dll cudss64_0.dll",
        program_files=("NVIDIA cuDSS/v*/bin/*", "NVIDIA cuDSS/v*/bin"),
        pip="nvidia-cudss-cu13 nvidia-cudss-cu12",
    ),
    "cusparseLt": Library(
        "libcusparseLt.so.0",
        "nvidia/cusparselt/lib",
        dlls="cusparseLt.dll",
        pip="nvidia-cusparselt-cu13 nvidia-cusparselt-cu12",
        program_files=("NVIDIA cuSPARSELt/v*/bin/*", "NVIDIA cuSPARSELt/v*/bin"),
    ),
    "cutensor": Library(
        "libcutensor.so.2",
        _CUTENSOR,
        "cublasLt",
        dlls="cutensor.dll",
        pip="cutensor-cu13 cutensor-cu12",
        program_files=("NVIDIA cuTENSOR/v2.*/bin/*", "NVIDIA cuTENSOR/v2.*/bin"),
    ),
    "cutensorMg": Library(
        "libcutensorMg.so.2",
        _CUTENSOR,
        "cutensor cublasLt",
        dlls="cutensorMg.dll",
        pip="cutensor-cu13 cutensor-cu12",
        program_files=("NVIDIA cuTENSOR/v2.*/bin/*", "NVIDIA cuTENSOR/v2.*/bin"),
    ),
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
    "cuda": Library("libcuda.so.1", dlls="nvcuda.dll"),
    "nvml": Library("libnvidia-ml.so.1", dlls="nvml.dll"),
    "nvcudla": Library("libnvcudla.so"),
}

LIBRARIES: dict[str, Library] = {**TOOLKIT_LIBRARIES, **OTHER_LIBRARIES, **DRIVER_LIBRARIES}

SUPPORTED_NVIDIA_LIBNAMES: tuple[str, ...] = tuple(TOOLKIT_LIBRARIES)

# These come with an extra of this package, which has everything that fits together.
IN_EXTRAS = frozenset({"nvrtc", "nvJitLink", "nvvm", "nvfatbin", "cudart"})
