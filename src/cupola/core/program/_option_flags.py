"""The compiler flag of each program option: a table for NVRTC, one for NVVM.

Flags are emitted in the order of the tables. What an option's value may be depends on its kind:

========  ============================================================================================
FLAG      the text, when the value is true
SWITCH    the text with ``true`` or ``false`` (NVVM: ``1`` or ``0``) behind it, when it is not None
VALUE     the text with the value behind it, when it is not None
EACH      the text with an item behind it, once for each item of a sequence (a str is one item, a bool is none)
MACRO     as EACH, where an item is a name or a (name, value) pair
========  ============================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from cupola._private_folder import user_cache_folder
from cupola.core.base._errors import CUDAError

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.program._program_options import ProgramOptions

FLAG, SWITCH, VALUE, EACH, MACRO = range(5)

NVRTC: tuple[tuple[str, int, str], ...] = (
    ("arch", VALUE, "-arch="),
    ("relocatable_device_code", SWITCH, "--relocatable-device-code="),
    ("extensible_whole_program", FLAG, "--extensible-whole-program"),
    ("debug", FLAG, "--device-debug"),
    ("lineinfo", FLAG, "--generate-line-info"),
    ("device_code_optimize", FLAG, "--dopt=on"),
    ("ptxas_options", EACH, "--ptxas-options="),
    ("max_register_count", VALUE, "--maxrregcount="),
    ("ftz", SWITCH, "--ftz="),
    ("prec_sqrt", SWITCH, "--prec-sqrt="),
    ("prec_div", SWITCH, "--prec-div="),
    ("fma", SWITCH, "--fmad="),
    ("use_fast_math", FLAG, "--use_fast_math"),
    ("extra_device_vectorization", FLAG, "--extra-device-vectorization"),
    ("link_time_optimization", FLAG, "--dlink-time-opt"),
    ("gen_opt_lto", FLAG, "--gen-opt-lto"),
    ("define_macro", MACRO, "--define-macro="),
    ("undefine_macro", EACH, "--undefine-macro="),
    ("include_path", EACH, "--include-path="),
    ("use_bundled_headers", FLAG, "--use-bundled-headers={bundled_headers}"),
    ("pre_include", EACH, "--pre-include="),
    ("no_source_include", FLAG, "--no-source-include"),
    ("std", VALUE, "--std="),
    ("builtin_move_forward", SWITCH, "--builtin-move-forward="),
    ("builtin_initializer_list", SWITCH, "--builtin-initializer-list="),
    ("disable_warnings", FLAG, "--disable-warnings"),
    ("restrict", FLAG, "--restrict"),
    ("device_as_default_execution_space", FLAG, "--device-as-default-execution-space"),
    ("device_int128", FLAG, "--device-int128"),
    ("device_float128", FLAG, "--device-float128"),
    ("optimization_info", VALUE, "--optimization-info="),
    ("no_display_error_number", FLAG, "--no-display-error-number"),
    ("diag_error", EACH, "--diag-error="),
    ("diag_suppress", EACH, "--diag-suppress="),
    ("diag_warn", EACH, "--diag-warn="),
    ("brief_diagnostics", SWITCH, "--brief-diagnostics="),
    ("time", VALUE, "--time="),
    ("split_compile", VALUE, "--split-compile="),
    ("fdevice_syntax_only", FLAG, "--fdevice-syntax-only"),
    ("minimal", FLAG, "--minimal"),
    ("no_cache", FLAG, "--no-cache"),
    ("fdevice_time_trace", VALUE, "--fdevice-time-trace="),
    ("frandom_seed", VALUE, "--frandom-seed="),
    ("ofast_compile", VALUE, "--Ofast-compile="),
    ("pch", FLAG, "--pch"),
    ("create_pch", VALUE, "--create-pch="),
    ("use_pch", VALUE, "--use-pch="),
    ("pch_dir", VALUE, "--pch-dir="),
    ("pch_verbose", SWITCH, "--pch-verbose="),
    ("pch_messages", SWITCH, "--pch-messages="),
    ("instantiate_templates_in_pch", SWITCH, "--instantiate-templates-in-pch="),
    ("numba_debug", FLAG, "--numba-debug"),
)

NVVM: tuple[tuple[str, int, str], ...] = (
    ("arch", VALUE, "-arch="),
    ("debug", FLAG, "-g"),
    ("numba_debug", FLAG, "-numba-debug"),
    ("ftz", SWITCH, "-ftz="),
    ("prec_sqrt", SWITCH, "-prec-sqrt="),
    ("prec_div", SWITCH, "-prec-div="),
    ("fma", SWITCH, "-fma="),
)

# NVVM does not have these options and does not need them. Any other option that it lacks is refused.
NVVM_IGNORES = frozenset(
    {
        "link_time_optimization",
        "use_bundled_headers",
        "no_cache",
        "fdevice_time_trace",
        "device_float128",
        "frandom_seed",
        "ofast_compile",
        "pch",
        "create_pch",
        "use_pch",
        "pch_dir",
        "pch_verbose",
        "pch_messages",
        "instantiate_templates_in_pch",
    }
)


def flags(options: ProgramOptions, backend: str, target_type: str | None) -> list[str]:
    """The flags of `options` for the compiler named `backend`."""
    name = backend.lower() if isinstance(backend, str) else backend
    if name == "nvrtc":
        return _nvrtc_flags(options)
    if name == "nvvm":
        return _nvvm_flags(options, target_type)
    raise ValueError(f"backend must be 'nvrtc' or 'nvvm', got {backend!r}")


def _nvrtc_flags(options: ProgramOptions) -> list[str]:
    result: list[str] = []
    for field, kind, text in NVRTC:
        value = getattr(options, field)
        if value is not None:
            result += emit(field, kind, text, value, ("false", "true"))
    return result


def _nvvm_flags(options: ProgramOptions, target_type: str | None) -> list[str]:
    refused = [
        field
        for field, kind, _ in NVRTC
        if field not in NVVM_IGNORES
        and not any(field == row[0] for row in NVVM)
        and field != "device_code_optimize"
        and (getattr(options, field) if kind == FLAG else getattr(options, field) is not None)
    ]
    if refused:
        raise CUDAError("NVVM does not have these program options: " + ", ".join(refused))
    result: list[str] = []
    for field, kind, text in NVVM:
        value = getattr(options, field)
        if field == "arch":
            value = str(value).replace("sm_", "compute_")
        if value is not None:
            result += emit(field, kind, text, value, ("0", "1"))
        if field == "numba_debug" and options.device_code_optimize is not None:
            result.append("-opt=3" if options.device_code_optimize else "-opt=0")
    if target_type == "ltoir":
        result.append("-gen-lto")
    return result


def emit(field: str, kind: int, text: str, value: Any, booleans: tuple[str, str]) -> Iterator[str]:
    if kind == FLAG:
        if value:
            yield text.format(bundled_headers=user_cache_folder("nvrtc-bundled-headers"))
    elif kind == SWITCH:
        yield text + booleans[bool(value)]
    elif kind == VALUE:
        yield f"{text}{value}"
    else:
        for item in items(field, kind, value):
            yield text + item


def items(field: str, kind: int, value: Any) -> Iterator[str]:
    if kind == EACH and isinstance(value, bool):
        return  # False is none of them, and so is True, as in cuda.core
    one = (str, os.PathLike, int) + ((tuple,) if kind == MACRO else ())
    many = (value,) if isinstance(value, one) else value
    if kind == MACRO and not isinstance(many, list | tuple):
        many = (value,)  # refused below
    if not isinstance(many, Sequence) or isinstance(many, bytes | bytearray):
        raise TypeError(f"{field} must be a str or a sequence of them, got {type(value).__name__}")
    for item in many:
        yield (_macro(item) if kind == MACRO else str(os.fspath(item) if isinstance(item, os.PathLike) else item))


def _macro(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, tuple) and len(item) == 2 and all(isinstance(part, str) for part in item):
        return "=".join(item)
    raise RuntimeError(
        f"define_macro takes a name, a tuple (name, value) of two str, or a list of these; got {item!r:.80}"
    )
