"""The options of a linker, and the flags they stand for.

Imported when something is first linked: dataclasses are slow to import.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from cupola.core.base._options import naming_options
from cupola.core.device._device import Device
from cupola.core.program._nvjitlink import require_nvjitlink
from cupola.core.program._option_flags import EACH, FLAG, SWITCH, VALUE, emit

_Texts = str | Sequence[str] | None

# As in _option_flags.py. nvJitLink documents the switches with 0 and 1, and its optimizer takes nothing else.
NVJITLINK: tuple[tuple[str, int, str], ...] = (
    ("arch", VALUE, "-arch="),
    ("max_register_count", VALUE, "-maxrregcount="),
    ("time", FLAG, "-time"),
    ("verbose", FLAG, "-verbose"),
    ("link_time_optimization", FLAG, "-lto"),
    ("ptx", FLAG, "-ptx"),
    ("optimization_level", VALUE, "-O"),
    ("debug", FLAG, "-g"),
    ("lineinfo", FLAG, "-lineinfo"),
    ("ftz", SWITCH, "-ftz="),
    ("prec_div", SWITCH, "-prec-div="),
    ("prec_sqrt", SWITCH, "-prec-sqrt="),
    ("fma", SWITCH, "-fma="),
    ("kernels_used", EACH, "-kernels-used="),
    ("variables_used", EACH, "-variables-used="),
    ("optimize_unused_variables", FLAG, "-optimize-unused-variables"),
    ("ptxas_options", EACH, "-Xptxas="),
    ("split_compile", VALUE, "-split-compile="),
    ("split_compile_extended", VALUE, "-split-compile-extended="),
    ("no_cache", FLAG, "-no-cache"),
)

# The driver's linker ignores the first; it cannot do what the second ask for.
DRIVER_IGNORES = (
    "ftz",
    "prec_div",
    "prec_sqrt",
    "fma",
    "kernels_used",
    "variables_used",
    "optimize_unused_variables",
)
DRIVER_REFUSES = ("time", "ptx", "ptxas_options", "split_compile", "split_compile_extended")


@naming_options
@dataclass
class LinkerOptions:
    """How to link with a :class:`Linker`.

    Every field but `name` may be None, which leaves the choice to the linker. A *flag* counts when it is true; a
    *switch* is passed on as true or false when it is not None. What nvJitLink does and the driver's linker does not
    is marked (nvJitLink).

    Parameters
    ----------
    name : str
        Name of the result.
    arch : str
        Architecture such as ``"sm_90"``; by default that of ``Device()``.
    max_register_count : int
        Most registers that a thread may use.
    time : bool
        Flag: times of the phases in the information log (nvJitLink).
    verbose : bool
        Flag: more in the information log.
    link_time_optimization : bool
        Flag: optimize across all inputs of LTO-IR, which need it.
    ptx : bool
        Flag: link to PTX; with `link_time_optimization` and inputs of LTO-IR only (nvJitLink).
    optimization_level : int
        0, or 3 (the driver's linker takes 0 to 4).
    debug : bool
        Flag: debug information.
    lineinfo : bool
        Flag: which source line each instruction comes from.
    ftz, prec_div, prec_sqrt, fma : bool
        Switches for LTO-IR: flush single-precision denormals to zero; IEEE division and reciprocal; IEEE square root;
        contract multiplications and additions (nvJitLink).
    kernels_used, variables_used : str or sequence of str
        Names of the kernels and variables that will be used; others may be left out (nvJitLink).
    optimize_unused_variables : bool
        Flag: leave out variables that no code of the device uses (nvJitLink).
    ptxas_options : str or sequence of str
        Passed to the PTX assembler, each as one argument (nvJitLink).
    split_compile, split_compile_extended : int
        Threads for the optimizer, 0 for one per CPU; the second for the assembler, too (nvJitLink).
    no_cache : bool
        Flag: do not use the linker's own cache.
    numba_debug : bool
        Has no effect, and warns.

    Raises
    ------
    TypeError
        `name` is not a str.
    """

    name: str = "<default linker>"
    arch: str | None = None
    max_register_count: int | None = None
    time: bool | None = None
    verbose: bool | None = None
    link_time_optimization: bool | None = None
    ptx: bool | None = None
    optimization_level: int | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    fma: bool | None = None
    kernels_used: _Texts = None
    variables_used: _Texts = None
    optimize_unused_variables: bool | None = None
    ptxas_options: _Texts = None
    split_compile: int | None = None
    split_compile_extended: int | None = None
    no_cache: bool | None = None
    numba_debug: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a str, got {type(self.name).__name__}")
        if self.numba_debug is not None:
            warnings.warn("LinkerOptions(numba_debug=) has no effect any more", DeprecationWarning, stacklevel=3)

    def as_bytes(self, backend: str = "nvjitlink") -> list[bytes]:
        """The flags that nvJitLink gets for these options.

        Parameters
        ----------
        backend : str
            ``"nvjitlink"``, in any case; the driver's linker takes no flags.

        Returns
        -------
        list of bytes
            One entry for each flag.

        Raises
        ------
        ValueError
            For another backend.
        TypeError
            `backend` is no str.
        RuntimeError
            nvJitLink cannot be loaded.
        """
        if not isinstance(backend, str):
            raise TypeError(f"backend must be a str, got {type(backend).__name__}")
        if backend.lower() != "nvjitlink":
            raise ValueError(f"backend must be 'nvjitlink', got {backend!r}")
        require_nvjitlink()
        result: list[str] = []
        for field, kind, text in NVJITLINK:
            value = self.architecture() if field == "arch" else getattr(self, field)
            if value is not None:
                result += emit(field, kind, text, value, ("0", "1"))
        return [flag.encode() for flag in result]

    def architecture(self) -> str:
        """The architecture to link for.

        Returns
        -------
        str
            `arch`, or that of the current device when it is None.
        """
        if self.arch is not None:
            return self.arch
        return f"sm_{Device().arch}"
