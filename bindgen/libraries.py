"""The wrapped libraries: which headers describe them and how their modules are named."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
BINDINGS = ROOT.parent / "src" / "cupola" / "bindings"


@dataclass(frozen=True)
class Library:
    """One CUDA library.

    Attributes
    ----------
    name
        Name of the Python module and of the generated files.
    headers
        Headers whose declarations belong to the library, in the order in which they are included.
    typedefs
        Headers of versioned function-pointer types (``PFN_cuX_v12000``), which tell when a function appeared.
    status
        Result type of the library's functions.
    prefix
        What the names of the library's functions begin with.
    constants
        Prefixes of the macros that are constants of the API.
    error
        Exception class of the functions; empty when they return a tuple that begins with the status.
    loader
        The name by which the path finder knows the library, where it is not that of the module.
    members
        Prefixes that the members of enumerations lose; the first that fits counts.
    inline
        Macro that makes the headers declare functions which they otherwise define inline.
    includes
        What the generated header includes for types that the library takes from elsewhere.
    cimports
        The same for Cython.
    also
        Types of other headers that belong to the library too.
    streams
        Whether functions have variants for the per-thread default stream.
    shares
        The library whose types this one's headers declare too; the generated header includes that one's.
    deprecated
        Which deprecated functions belong to the module: a pattern of their names.
    without
        Functions that the module leaves out: a pattern of their names.
    exported
        Whether the CPU device has a library of NVIDIA's name for it (``provider/libmath.c``).
    """

    name: str
    headers: tuple[str, ...]
    status: str
    prefix: str
    typedefs: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    title: str = ""
    error: str = ""
    loader: str = ""
    members: tuple[str, ...] = ()
    inline: str = ""
    includes: tuple[str, ...] = ()
    cimports: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    streams: bool = False
    shares: str = ""
    deprecated: str = ".*"
    without: str = ""
    exported: bool = False

    @property
    def ir_path(self) -> Path:
        return ROOT / "ir" / f"{self.name}.json"

    @property
    def overrides_path(self) -> Path:
        return ROOT / "overrides" / f"{self.name}.toml"

    def overrides(self) -> dict[str, Any]:
        """What is kept by hand about the library."""
        return tomllib.loads(self.overrides_path.read_text())


# What the math libraries take from the runtime and from cuComplex.h.
_MATH_INCLUDES = ('"cupola/math_types.h"',)
_MATH_CIMPORTS = ("from cupola.bindings.cruntime cimport cudaDataType, cudaStream_t, libraryPropertyType",)

LIBRARIES = {
    library.name: library
    for library in (
        Library(
            name="driver",
            title="CUDA driver API",
            headers=("cuda.h", "cudaGL.h", "cudaEGL.h", "vdpau/vdpau.h", "cudaVDPAU.h", "profiler.h"),
            typedefs=(
                "cudaTypedefs.h",
                "cudaGLTypedefs.h",
                "cudaEGLTypedefs.h",
                "cudaVDPAUTypedefs.h",
            ),
            status="CUresult",
            prefix="cu",
            constants=("CU_", "CUDA_", "MAX_PLANES"),
            streams=True,
        ),
        Library(
            name="runtime",
            title="CUDA runtime API",
            headers=(
                "cuda_runtime_api.h",
                "driver_types.h",
                "surface_types.h",
                "texture_types.h",
                "library_types.h",
                "cuda_gl_interop.h",
                "cuda_egl_interop.h",
                "vdpau/vdpau.h",
                "cuda_vdpau_interop.h",
                "runtime_profiler.h",
            ),
            also=("dim3", "cudaRoundMode"),
            status="cudaError_t",
            prefix="cuda",
            constants=("cuda", "CUDA", "CUDART_"),
            loader="cudart",
            shares="driver",
            streams=True,
        ),
        Library(
            name="nvrtc",
            title="NVRTC",
            headers=("nvrtc.h",),
            status="nvrtcResult",
            prefix="nvrtc",
            constants=("NVRTC_",),
        ),
        Library(
            name="nvjitlink",
            title="nvJitLink",
            headers=("nvJitLink.h",),
            status="nvJitLinkResult",
            prefix="nvJitLink",
            error="nvJitLinkError",
            loader="nvJitLink",
            members=("NVJITLINK_INPUT_", "NVJITLINK_"),
            inline="NVJITLINK_NO_INLINE",
        ),
        Library(
            name="nvvm",
            title="libNVVM",
            headers=("nvvm.h",),
            status="nvvmResult",
            prefix="nvvm",
            error="nvvmError",
            members=("NVVM_",),
        ),
        Library(
            name="nvfatbin",
            title="nvFatbin",
            headers=("nvFatbin.h",),
            status="nvFatbinResult",
            prefix="nvFatbin",
            error="nvFatbinError",
            members=("NVFATBIN_",),
        ),
        Library(
            name="nvml",
            title="NVML",
            headers=("nvml.h",),
            status="nvmlReturn_t",
            prefix="nvml",
            constants=("NVML_", "nvml"),
            error="NvmlError",
            members=("NVML_",),
        ),
        Library(
            name="cufile",
            title="cuFile",
            headers=("cufile.h",),
            status="CUfileOpError",
            prefix="cuFile",
            constants=("CU_FILE_", "CUFILE"),
            error="cuFileError",
            members=("CU_FILE_HANDLE_TYPE_", "CUFILE_PARAM_", "CU_FILE_", "CUFILE_"),
            includes=("<stdbool.h>", "<sys/types.h>", "<time.h>", '"cupola/driver.h"'),
            cimports=(
                "from libcpp cimport bool",
                "from posix.time cimport timespec",
                "from posix.types cimport off_t",
                "from cupola.bindings.cdriver cimport CUresult, CUstream",
            ),
        ),
        Library(
            name="cublas",
            title="cuBLAS",
            headers=("cublas_v2.h", "cublas_api.h", "cublas_half.h"),
            status="cublasStatus_t",
            prefix="cublas",
            constants=("CUBLAS_VER",),
            error="cuBLASError",
            members=(
                "CUBLAS_STATUS_",
                "CUBLAS_OP_",
                "CUBLAS_GEMM_",
                "CUBLAS_DIAG_",
                "CUBLAS_SIDE_",
                "CUBLAS_ATOMICS_",
                "CUBLAS_EMULATION_STRATEGY_",
                "CUBLAS_",
            ),
            includes=_MATH_INCLUDES,
            cimports=_MATH_CIMPORTS,
            exported=True,
        ),
        Library(
            name="cublaslt",
            title="cuBLASLt",
            headers=("cublasLt.h",),
            also=("cublasStatus_t", "cublasComputeType_t"),
            status="cublasStatus_t",
            prefix="cublasLt",
            constants=("CUBLASLT_",),
            error="cuBLASLtError",
            loader="cublasLt",
            members=(
                "CUBLAS_STATUS_",
                "CUBLAS_",
                "CUBLASLT_MATMUL_TILE_",
                "CUBLASLT_MATMUL_STAGES_",
                "CUBLASLT_CLUSTER_",
                "CUBLASLT_MATMUL_INNER_",
                "CUBLASLT_MATMUL_MATRIX_SCALE_",
                "CUBLASLT_POINTER_MODE_MASK_",
                "CUBLASLT_POINTER_MODE_",
                "CUBLASLT_ORDER_",
                "CUBLASLT_BATCH_MODE_",
                "CUBLASLT_BATCH_INVARIANCE_",
                "CUBLASLT_INTEGER_",
                "CUBLASLT_MATRIX_LAYOUT_",
                "CUBLASLT_MATMUL_DESC_",
                "CUBLASLT_MATRIX_TRANSFORM_DESC_",
                "CUBLASLT_EMULATION_DESC_",
                "CUBLASLT_REDUCTION_SCHEME_",
                "CUBLASLT_EPILOGUE_",
                "CUBLASLT_SEARCH_",
                "CUBLASLT_MATMUL_PREF_",
                "CUBLASLT_ALGO_CAP_",
                "CUBLASLT_ALGO_CONFIG_",
                "CUBLASLT_",
            ),
            includes=("<stdio.h>", *_MATH_INCLUDES),
            cimports=(*_MATH_CIMPORTS, "from libc.stdio cimport FILE"),
            shares="cublas",
            exported=True,
        ),
        Library(
            name="cufft",
            title="cuFFT",
            headers=("cufft.h", "cufftXt.h", "cudalibxt.h"),
            status="cufftResult",
            prefix="cufft",
            constants=(
                "CUFFT_VER",
                "CUFFT_FORWARD",
                "CUFFT_INVERSE",
                "CUFFT_PLAN_NULL",
                "MAX_CUFFT_ERROR",
                "MAX_CUDA_DESCRIPTOR_GPUS",
            ),
            error="cuFFTError",
            members=(
                "CUFFT_XT_FORMAT_",
                "CUFFT_FORMAT_",
                "CUFFT_COPY_",
                "CUFFT_QUERY_",
                "CUFFT_WORKAREA_",
                "CUFFT_CB_",
                "CUFFT_COMPATIBILITY_",
                "CUFFT_",
                "NVFFT_PLAN_PROPERTY_INT64_",
                "LIB_XT_COPY_",
                "LIB_FORMAT_",
            ),
            includes=_MATH_INCLUDES,
            cimports=_MATH_CIMPORTS,
            exported=True,
        ),
        Library(
            name="curand",
            title="cuRAND",
            headers=("curand.h",),
            status="curandStatus_t",
            prefix="curand",
            constants=("CURAND_VER",),
            error="cuRANDError",
            members=("CURAND_STATUS_", "CURAND_RNG_", "CURAND_ORDERING_", "CURAND_"),
            includes=_MATH_INCLUDES,
            cimports=_MATH_CIMPORTS,
            exported=True,
        ),
        Library(
            name="cudss",
            title="cuDSS",
            headers=("cudss.h", "cudss_data_types.h"),
            status="cudssStatus_t",
            prefix="cudss",
            constants=("CUDSS_VERSION", "CUDSS_R_", "CUDSS_C_", "CUDSS_DATA_TYPE_", "CUDSS_ALLOCATOR_"),
            error="cuDSSError",
            members=(
                "CUDSS_STATUS_",
                "CUDSS_CONFIG_",
                "CUDSS_DATA_",
                "CUDSS_PHASE_",
                "CUDSS_MTYPE_",
                "CUDSS_MVIEW_",
                "CUDSS_BASE_",
                "CUDSS_LAYOUT_",
                "CUDSS_MFORMAT_",
                "CUDSS_PIVOT_EPSILON_ALG_",
                "CUDSS_PIVOT_",
                *(f"CUDSS_{name}_ALG_" for name in ("REORDERING", "FACTORIZATION", "SOLVE", "MATCHING")),
                "CUDSS_",
            ),
            includes=("<stdio.h>", *_MATH_INCLUDES),
            cimports=("from libc.stdio cimport FILE", *_MATH_CIMPORTS),
            exported=True,
        ),
        Library(
            name="nccl",
            title="NCCL",
            headers=("nccl.h",),
            status="ncclResult_t",
            prefix="nccl",
            constants=("NCCL_",),
            includes=('"cupola/math_types.h"',),
            cimports=("from cupola.bindings.cruntime cimport cudaEvent_t, cudaStream_t",),
            exported=True,
            without="ncclParamDumpAll",  # returns nothing and prints
        ),
        Library(
            name="cusparse",
            title="cuSPARSE",
            headers=("cusparse.h",),
            status="cusparseStatus_t",
            prefix="cusparse",
            constants=("CUSPARSE_VER",),
            error="cuSPARSEError",
            members=(
                "CUSPARSE_STATUS_",
                "CUSPARSE_OPERATION_",
                "CUSPARSE_FORMAT_",
                "CUSPARSE_INDEX_BASE_",
                "CUSPARSE_INDEX_",
                "CUSPARSE_SPMAT_",
                "CUSPARSE_STORE_",
                "CUSPARSE_SPARSETODENSE_ALG_",
                "CUSPARSE_DENSETOSPARSE_ALG_",
                "CUSPARSE_SPMM_OP_ALG_",
                *(
                    f"CUSPARSE_{name}_{part}"
                    for name in ("SPMV", "SPMM", "SPSV", "SPSM", "SDDMM", "SPGEAM")
                    for part in ("ALG_", "UPDATE_", "")
                ),
                "CUSPARSE_SPGEMM_",
                "CUSPARSE_CSR2CSC_ALG_",
                "CUSPARSE_CSR2CSC_",
                "CUSPARSE_COLOR_",
                "CUSPARSE_",
            ),
            includes=("<stdio.h>", *_MATH_INCLUDES),
            cimports=("from libc.stdio cimport FILE", *_MATH_CIMPORTS),
            exported=True,
            deprecated="cusparse(Axpby|Rot|SpVV|SpGEMMreuse|SpMMOp).*",  # of the generic API
        ),
        Library(
            name="cusolver_dn",
            title="cuSOLVER",
            headers=("cusolver_common.h", "cusolverDn.h"),
            status="cusolverStatus_t",
            prefix="cusolver",
            constants=("CUSOLVER_VER",),
            error="cuSOLVERError",
            loader="cusolver",
            members=(
                "CUSOLVER_STATUS_",
                "CUSOLVER_EIG_MODE_",
                "CUSOLVER_EIG_RANGE_",
                "CUSOLVER_EIG_COMP_",
                "CUSOLVER_EIG_",
                "CUSOLVER_IRS_REFINE_",
                "CUSOLVERDN_",
                "CUSOLVER_",
                "CUBLAS_STOREV_",
                "CUBLAS_DIRECT_",
            ),
            includes=("<stdio.h>", *_MATH_INCLUDES, '"cupola/cublas.h"'),
            cimports=(
                "from libc.stdio cimport FILE",
                *_MATH_CIMPORTS,
                "from cupola.bindings.ccublas cimport (\n"
                "    cublasDiagType_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t)",
            ),
            exported=True,
        ),
    )
}
