"""Keys for program caches: everything that the result of a compile depends on.

Imported when a cache is first used.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cupola.core.program import _option_flags
from cupola.core.program._cuda_headers import flags_for
from cupola.core.program._nvjitlink import require_nvjitlink
from cupola.core.program._program_options import ProgramOptions

_SCHEMA = 2  # to be raised when what the same input compiles to, or what it is hashed from, changes

_TARGETS = {"c++": ("ptx", "cubin", "ltoir"), "ptx": ("cubin", "ptx"), "nvvm": ("ptx", "ltoir")}

# Options of NVRTC with other effects than on the result, and those that let it read files which the key does not cover.
_SIDE_EFFECTS = ("create_pch", "time", "fdevice_time_trace")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)  # looked for where the program is run
_READING = ("pre_include", "pch", "use_pch", "pch_dir")


def make_program_cache_key(
    *,
    code: str | bytes | bytearray,
    code_type: str,
    options: ProgramOptions,
    target_type: str,
    name_expressions: Sequence[str | bytes] = (),
    extra_digest: bytes | bytearray | None = None,
) -> bytes:
    """Compute the key of a compile: equal for equal results.

    It covers the source, the options as the compiler sees them, the versions of the compiler and of CUDA's headers, and
    the device that machine code is made for to run on.

    Parameters
    ----------
    code : str, bytes or bytearray
        The source.
    code_type : str or SourceCodeType
        ``"c++"``, ``"ptx"`` or ``"nvvm"``, in any case.
    options : ProgramOptions
        How to compile.
    target_type : str
        ``"ptx"``, ``"cubin"`` or ``"ltoir"``, in any case.
    name_expressions : sequence of str or bytes
        As for :meth:`cupola.Program.compile`. Their order does not matter.
    extra_digest : bytes or bytearray, optional
        Stands for everything else that the result depends on, such as a hash of the headers of a project. With it,
        options that make the compiler read files are accepted.

    Returns
    -------
    bytes
        32 bytes.

    Raises
    ------
    ValueError
        The code does not compile to the target; or an option writes a file, or makes the compiler read files other than
        CUDA's own headers and `extra_digest` is not given.
    TypeError
        An argument is of the wrong type.
    CUDAError
        libNVVM does not have an option.

    Examples
    --------
    >>> key = make_program_cache_key(code=source, code_type="c++", options=options, target_type="cubin")
    """
    kind, target = str(code_type).lower(), str(target_type).lower()
    if kind not in _TARGETS:
        raise ValueError(f"unknown code_type {code_type!r}; it is one of {', '.join(_TARGETS)}")
    if target not in _TARGETS[kind]:
        raise ValueError(f"{kind} code does not compile to {target!r}; it compiles to {', '.join(_TARGETS[kind])}")
    if extra_digest is not None and not isinstance(extra_digest, bytes | bytearray):
        raise TypeError(f"extra_digest must be bytes or bytearray, not {type(extra_digest).__name__}")
    extra = None if extra_digest is None else bytes(extra_digest)
    text = _code_as_bytes(code, kind)
    if options.extra_sources is not None and kind != "nvvm":
        raise ValueError(f"extra_sources are for NVVM programs only, not for {kind}")
    describe: dict[str, Callable[[ProgramOptions, str, bytes, bytes | None], list[bytes]]] = {
        "c++": _describe_cxx,
        "ptx": _describe_ptx,
        "nvvm": _describe_nvvm,
    }
    hashed = _Hash()
    hashed.add("schema", _SCHEMA)
    hashed.add("code type", kind)
    hashed.add("target", target)
    hashed.add("device", _device() if target == "cubin" else "any")
    hashed.add("code", text)
    hashed.add_all("options", describe[kind](options, target, text, extra))
    hashed.add_all("names", _names(name_expressions) if kind == "c++" else ())
    hashed.add("name", options.name or "")
    hashed.add("extra", b"-" if extra is None else b"+" + extra)
    return hashed.digest()


class _Hash:
    """SHA-256 of labeled parts, each with its length before it, so that no two sequences of parts run together."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(usedforsecurity=False)

    def add(self, label: str, value: bytes | str | int) -> None:
        data = value if isinstance(value, bytes) else str(value).encode()
        self._hash.update(label.encode() + b"\0" + len(data).to_bytes(8, "big"))
        self._hash.update(data)

    def add_all(self, label: str, values: Iterable[bytes]) -> None:
        values = list(values)
        self.add(f"number of {label}", len(values))
        for value in values:
            self.add(label, value)

    def digest(self) -> bytes:
        return self._hash.digest()


def _code_as_bytes(code: Any, kind: str) -> bytes:
    if isinstance(code, str):
        return code.encode()
    if kind == "nvvm" and isinstance(code, bytes | bytearray):
        return bytes(code)
    raise TypeError(f"{kind} code is text{' or bytes' if kind == 'nvvm' else ''}, not {type(code).__name__}")


def _names(expressions: Sequence[str | bytes]) -> list[bytes]:
    found = []
    for name in expressions:
        if not isinstance(name, str | bytes):
            raise TypeError(f"a name expression must be str or bytes, got {type(name).__name__}")
        found.append(b"text " + name.encode() if isinstance(name, str) else b"bytes " + name)
    return sorted(found)


def _version(ask: Callable[[], Any]) -> bytes:
    """The version that a library reports. A library whose version is unknown has its own key, too."""
    try:
        return repr(ask()).encode()
    except Exception as error:
        return b"none: " + type(error).__name__.encode()


def _device() -> str:
    """Machine code that the CPU device is to run has PTX in it."""
    from cupola.bindings import _provider

    if _provider.override_lookup() is None:
        return "GPU"
    return ", ".join(("CPU", *_provider.observers()))


# ---- CUDA C++ --------------------------------------------------------------------------------------------------------


def _describe_cxx(options: ProgramOptions, target: str, text: bytes, extra: bytes | None) -> list[bytes]:
    from cupola.core.program import _nvrtc

    for field in _SIDE_EFFECTS:
        if getattr(options, field) is not None:
            raise ValueError(f"{field} writes a file, but a cache hit would not: compile without a cache")
    headers: list[bytes] = []
    if extra is None:
        for field in _READING:
            if getattr(options, field) not in (None, False, (), []):
                raise ValueError(
                    f"{field} makes NVRTC read files that the key does not cover: give their digest as extra_digest"
                )
        if os.path.basename(options.name or "") != (options.name or "") or "\\" in (options.name or ""):
            raise ValueError(
                "NVRTC looks for headers in the directory of the program's name: give their digest as extra_digest"
            )
        for name in _INCLUDE.findall(text):
            if os.path.isabs(name) or (not options.no_source_include and os.path.isfile(name)):
                raise ValueError(
                    f"the source includes {os.fsdecode(name)!r}, which the key does not cover: give its digest as "
                    f"extra_digest"
                )
        headers = [_header_versions(folder) for folder in _folders(options)]
    # CUDA's own headers are described by their versions: where they lie does not matter.
    found = flags_for(options, text.decode(errors="replace"), _nvrtc.version)
    headers += [_header_versions(os.fsdecode(flag).partition("=")[2]) for flag in found]
    return [_version(_nvrtc.version), *headers, *options.as_bytes("nvrtc", target)]


def _folders(options: ProgramOptions) -> list[str]:

    given = options.include_path
    return [] if given is None else list(_option_flags.items("include_path", _option_flags.EACH, given))


@functools.cache
def _header_versions(folder: str) -> bytes:
    """The versions of CUDA's headers in a folder of theirs; ValueError for any other folder."""
    from cupola.pathfinder import SUPPORTED_HEADERS_CTK, LocatedHeaderDir, locate_nvidia_header_directory

    real = os.path.realpath(folder) if folder else ""
    located = (locate_nvidia_header_directory(name) for name in SUPPORTED_HEADERS_CTK)
    if not any(found and os.path.realpath(found.abs_path) == real for found in located):
        raise ValueError(
            f"include_path {folder!r} holds files that the key does not cover: give their digest as extra_digest. "
            f"Only folders "
            "that cupola.pathfinder finds for CUDA's own headers need none, since those have a version"
        )
    versions = {name: LocatedHeaderDir(real, "", name).version for name in SUPPORTED_HEADERS_CTK}
    return repr(sorted((name, version) for name, version in versions.items() if version)).encode()


# ---- PTX -------------------------------------------------------------------------------------------------------------


def _describe_ptx(options: ProgramOptions, target: str, text: bytes, extra: bytes | None) -> list[bytes]:
    from cupola.core.program._linker import Linker
    from cupola.core.program._linker_options import DRIVER_IGNORES, DRIVER_REFUSES
    from cupola.core.program._ptx_compiler import PASSED_ON, linker_options

    if Linker.which_backend() == "nvJitLink":
        return [b"nvJitLink", _version(require_nvjitlink), *linker_options(options).as_bytes()]
    refused = [field for field in DRIVER_REFUSES if getattr(options, field, None) not in (None, False)]
    if refused:
        raise ValueError(f"the driver's linker does not have {', '.join(refused)}")
    from cupola.bindings.driver import cuDriverGetVersion

    kept = [field for field in PASSED_ON if field not in (*DRIVER_IGNORES, *DRIVER_REFUSES)]
    values = [f"{field}={getattr(options, field)}".encode() for field in kept if getattr(options, field)]
    return [b"driver", _version(cuDriverGetVersion), *values]


# ---- NVVM IR ---------------------------------------------------------------------------------------------------------


def _describe_nvvm(options: ProgramOptions, target: str, text: bytes, extra: bytes | None) -> list[bytes]:
    from cupola.bindings import nvvm

    if options.use_libdevice and extra is None:
        raise ValueError("use_libdevice adds a file that the key does not cover: give its digest as extra_digest")
    parts = [_version(nvvm.version), _version(nvvm.ir_version), str(bool(options.use_libdevice)).encode()]
    for name, source in options.extra_sources or ():
        parts += [name.encode(), source.encode() if isinstance(source, str) else bytes(source)]
    return [*parts, b"options", *options.as_bytes("nvvm", target)]
