"""The options of a program, and the compiler flags they stand for.

Imported when a program is first made: dataclasses are slow to import.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from cupola.core.base._options import naming_options
from cupola.core.device._device import Device
from cupola.core.program import _option_flags

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

DEFAULT_NAME = "default_program"

_Texts = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
_Numbers = int | Sequence[int] | None
_Macros = str | tuple[str, str] | list[str | tuple[str, str]] | None
_Sources = Sequence[tuple[str, str | bytes | bytearray]] | None


@naming_options
@dataclass(repr=False)
class ProgramOptions:
    """How to compile a :class:`Program`.

    Every field but `name` may be None, which leaves the choice to the compiler. A *flag* counts when it is true;
    a *switch* is passed on as true or false when it is not None. Values are turned into compiler flags at each
    ``compile``, so later changes take effect, which also raises errors for invalid values.

    Parameters
    ----------
    name : str
        Name of the program, seen in diagnostics as the file name.
    arch : str
        Architecture such as ``"sm_90"`` or ``"compute_90"``; by default that of ``Device()``.
    relocatable_device_code : bool
        Switch: make code that can be linked with other object code.
    extensible_whole_program : bool
        Flag: whole-program code that may still call device runtime functions.
    debug : bool
        Flag: debug information, without optimization.
    lineinfo : bool
        Flag: which source line each instruction comes from.
    device_code_optimize : bool
        Flag: optimize even when `debug` is set.
    ptxas_options : str or sequence of str
        Passed to the PTX assembler, each as one argument.
    max_register_count : int
        Most registers that a thread may use.
    ftz, prec_sqrt, prec_div, fma : bool
        Switches: flush single-precision denormals to zero; IEEE square root; IEEE division and reciprocal;
        contract multiplications and additions.
    use_fast_math : bool
        Flag: ``ftz`` and ``fma`` on, ``prec_sqrt`` and ``prec_div`` off, fast intrinsics.
    extra_device_vectorization : bool
        Flag: more aggressive vectorization.
    link_time_optimization : bool
        Flag: make intermediate code for link-time optimization. Implied by compiling to ``"ltoir"``.
    gen_opt_lto : bool
        Flag: run optimizer passes before that code is made.
    define_macro : str, tuple of (str, str), or list of both
        Macros: ``"NAME"`` or ``("NAME", "value")``. Several need a list, since a tuple is one pair.
    undefine_macro : str or sequence of str
        Macros to undefine.
    include_path : path or sequence of paths
        Directories to search for headers. Behind them come those of CUDA's own headers (`cuda_headers`).
    use_bundled_headers : bool
        Flag: the CUDA headers that NVRTC carries, unpacked into the user's cache (NVRTC 13.3 and later).
    pre_include : path or sequence of paths
        Headers to include ahead of the program.
    no_source_include : bool
        Flag: do not search the directory of the program for headers.
    std : str
        Dialect: ``"c++03"``, ``"c++11"``, ``"c++14"``, ``"c++17"``, ``"c++20"``.
    builtin_move_forward, builtin_initializer_list : bool
        Switches: provide ``std::move`` and ``std::forward``; ``std::initializer_list``.
    disable_warnings : bool
        Flag: no warnings.
    restrict : bool
        Flag: kernel pointer arguments do not alias.
    device_as_default_execution_space : bool
        Flag: functions without a qualifier are device functions.
    device_int128, device_float128 : bool
        Flags: allow ``__int128``; ``__float128``.
    optimization_info : str
        Kind of optimizations to report, such as ``"inline"``.
    no_display_error_number : bool
        Flag: no numbers in diagnostics.
    diag_error, diag_suppress, diag_warn : int or sequence of int
        Numbers of diagnostics to make errors, to drop, to make warnings.
    brief_diagnostics : bool
        Switch: leave source lines and column out of diagnostics.
    time : str
        CSV file to write compile times to.
    split_compile : int
        Threads for the optimizer, 0 for one per CPU.
    fdevice_syntax_only : bool
        Flag: check syntax only.
    minimal : bool
        Flag: leave out language features for a faster compile.
    no_cache : bool
        Flag: do not use the compiler's own cache.
    fdevice_time_trace : str
        File to write a trace of the compile to, in Chrome's format; NVRTC adds ``.json`` to the name.
    frandom_seed : str
        Seed for unique symbol names.
    ofast_compile : str
        Trade speed of the code for speed of the compile: ``"0"``, ``"min"``, ``"mid"``, ``"max"``.
    pch : bool
        Flag: automatic precompiled headers (NVRTC 12.8 and later, as for the next five).
    create_pch, use_pch, pch_dir : str
        Precompiled header to make; to use; directory of automatic ones.
    pch_verbose, pch_messages, instantiate_templates_in_pch : bool
        Switches for precompiled headers.
    extra_sources : sequence of (str, str or bytes)
        Further modules, for NVVM programs only.
    use_libdevice : bool
        Flag: add libdevice, for NVVM programs only.
    numba_debug : bool
        Flag: debug information as Numba wants it.
    cuda_headers : bool
        For CUDA C++ with an #include: whether the folders of CUDA's own headers (cudart, libcu++, cuRAND, CUTLASS), as
        :mod:`cupola.pathfinder` finds them, are searched behind `include_path`. By default they are, if they are of the
        same CUDA as NVRTC.
    """

    name: str | None = DEFAULT_NAME
    arch: str | None = None
    relocatable_device_code: bool | None = None
    extensible_whole_program: bool | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    device_code_optimize: bool | None = None
    ptxas_options: _Texts = None
    max_register_count: int | None = None
    ftz: bool | None = None
    prec_sqrt: bool | None = None
    prec_div: bool | None = None
    fma: bool | None = None
    use_fast_math: bool | None = None
    extra_device_vectorization: bool | None = None
    link_time_optimization: bool | None = None
    gen_opt_lto: bool | None = None
    define_macro: _Macros = None
    undefine_macro: _Texts = None
    include_path: _Texts = None
    use_bundled_headers: bool | None = None
    pre_include: _Texts = None
    no_source_include: bool | None = None
    std: str | None = None
    builtin_move_forward: bool | None = None
    builtin_initializer_list: bool | None = None
    disable_warnings: bool | None = None
    restrict: bool | None = None
    device_as_default_execution_space: bool | None = None
    device_int128: bool | None = None
    optimization_info: str | None = None
    no_display_error_number: bool | None = None
    diag_error: _Numbers = None
    diag_suppress: _Numbers = None
    diag_warn: _Numbers = None
    brief_diagnostics: bool | None = None
    time: str | None = None
    split_compile: int | None = None
    fdevice_syntax_only: bool | None = None
    minimal: bool | None = None
    no_cache: bool | None = None
    fdevice_time_trace: str | None = None
    device_float128: bool | None = None
    frandom_seed: str | None = None
    ofast_compile: str | None = None
    pch: bool | None = None
    create_pch: str | None = None
    use_pch: str | None = None
    pch_dir: str | None = None
    pch_verbose: bool | None = None
    pch_messages: bool | None = None
    instantiate_templates_in_pch: bool | None = None
    extra_sources: _Sources = None
    use_libdevice: bool | None = None
    numba_debug: bool | None = None
    cuda_headers: bool | None = None

    def __post_init__(self) -> None:
        if self.name is None:
            self.name = DEFAULT_NAME
        elif not isinstance(self.name, str):
            raise TypeError(f"name must be a str, got {type(self.name).__name__}")
        if self.extra_sources is not None:
            _check_extra_sources(self.extra_sources)
        if self.arch is None:
            self.arch = f"sm_{Device().arch}"

    def as_bytes(self, backend: str, target_type: str | None = None) -> list[bytes]:
        """The flags of a compiler for these options.

        Parameters
        ----------
        backend : str
            ``"nvrtc"`` or ``"nvvm"``, in any case.
        target_type : str, optional
            What will be compiled to: ``"ltoir"`` adds a flag for NVVM.

        Returns
        -------
        list of bytes
            One entry for each flag.

        Raises
        ------
        ValueError
            For another backend.
        CUDAError
            When an option is set that NVVM does not have.
        """
        return [flag.encode() for flag in _option_flags.flags(self, backend, target_type)]

    def __repr__(self) -> str:
        return f"ProgramOptions(name={self.name!r}, arch={self.arch!r})"


def _check_extra_sources(sources: Any) -> None:
    if not isinstance(sources, Sequence):
        raise TypeError(f"extra_sources must be a sequence of (name, source) tuples, got {type(sources).__name__}")
    for index, item in enumerate(sources):
        if not isinstance(item, tuple) or len(item) != 2:
            raise TypeError(f"extra_sources[{index}] must be a tuple (name, source), got {item!r:.80}")
        name, source = item
        if not isinstance(name, str):
            raise TypeError(f"the name in extra_sources[{index}] must be a str, got {type(name).__name__}")
        if not isinstance(source, str | bytes | bytearray):
            raise TypeError(
                f"the source in extra_sources[{index}] must be str, bytes or bytearray, got {type(source).__name__}"
            )
        if not source:
            raise ValueError(f"the source in extra_sources[{index}] ({name!r}) is empty")
