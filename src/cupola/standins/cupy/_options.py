"""Options of NVRTC as text, as CuPy takes them, and what they are called in cupola's ProgramOptions."""

from __future__ import annotations

from typing import Any

# Options with a value, by their spellings.
_VALUES = {
    "std": ("std", str), "maxrregcount": ("max_register_count", int), "ftz": ("ftz", bool),
    "prec-sqrt": ("prec_sqrt", bool), "prec-div": ("prec_div", bool), "fmad": ("fma", bool),
    "relocatable-device-code": ("relocatable_device_code", bool), "rdc": ("relocatable_device_code", bool),
    "gpu-architecture": ("arch", str), "arch": ("arch", str), "split-compile": ("split_compile", int),
}  # fmt: skip
_LISTS = {
    "define-macro": "define_macro", "undefine-macro": "undefine_macro", "include-path": "include_path",
    "pre-include": "pre_include", "include": "pre_include", "ptxas-options": "ptxas_options",
    "diag-suppress": "diag_suppress", "diag-error": "diag_error", "diag-warn": "diag_warn",
}  # fmt: skip
_FLAGS = {
    "use_fast_math": "use_fast_math", "lineinfo": "lineinfo", "generate-line-info": "lineinfo", "G": "debug",
    "device-debug": "debug", "dopt": "device_code_optimize", "device-as-default-execution-space":
    "device_as_default_execution_space", "default-device": "device_as_default_execution_space",
    "device-int128": "device_int128", "restrict": "restrict", "disable-warnings": "disable_warnings",
    "w": "disable_warnings", "extra-device-vectorization": "extra_device_vectorization", "minimal": "minimal",
    "no-source-include": "no_source_include", "dc": "relocatable_device_code",
}  # fmt: skip
_LETTERS = {"D": "define_macro", "U": "undefine_macro", "I": "include_path"}


def parsed(options: tuple[str, ...]) -> dict[str, Any]:
    """The fields of ProgramOptions for options such as ``-DN=3`` and ``--std=c++17``.

    Raises
    ------
    ValueError
        For one that is not known.
    """
    found: dict[str, Any] = {}
    rest = list(options)
    while rest:
        text = rest.pop(0)
        name, equals, value = text.lstrip("-").partition("=")
        if not text.startswith("-"):
            raise ValueError(f"{text!r} is no option of the compiler; options begin with -")
        if name in _VALUES and (equals or rest):
            field, kind = _VALUES[name]
            value = value if equals else rest.pop(0)
            found[field] = value == "true" if kind is bool else kind(value)
        elif name in _LISTS and (equals or rest):
            _add(found, _LISTS[name], value if equals else rest.pop(0))
        elif name in _FLAGS and not equals:
            found[_FLAGS[name]] = True
        elif text[1:2] in _LETTERS and (len(text) > 2 or rest):
            _add(found, _LETTERS[text[1]], text[2:] or rest.pop(0))
        else:
            raise ValueError(f"the option {text!r} is not known: cupola.ProgramOptions has those of NVRTC")
    return found


def _add(found: dict[str, Any], field: str, value: str) -> None:
    values = found.setdefault(field, [])
    if field == "define_macro" and "=" in value:
        values.append(tuple(value.split("=", 1)))
    elif field.startswith("diag"):
        values += map(int, value.split(","))
    else:
        values.append(value)
