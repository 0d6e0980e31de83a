"""The wrapped libraries: which headers describe them and how their modules are named."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

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
    constants
        Prefixes of the macros that are constants of the API.
    """

    name: str
    headers: tuple[str, ...]
    status: str
    typedefs: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    title: str = ""
    defines: tuple[str, ...] = field(default=())

    @property
    def ir_path(self) -> Path:
        return ROOT / "ir" / f"{self.name}.json"

    @property
    def overrides_path(self) -> Path:
        return ROOT / "overrides" / f"{self.name}.toml"


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
            constants=("CU_", "CUDA_", "MAX_PLANES"),
        ),
        Library(
            name="nvrtc",
            title="NVRTC",
            headers=("nvrtc.h",),
            status="nvrtcResult",
            constants=("NVRTC_",),
        ),
    )
}
