"""The report of ``cupola.bindings.<module>.inspect()``: what was loaded, and which functions it has."""

from __future__ import annotations

from dataclasses import dataclass

from ._provider import _CPU_DEVICE, _version, _version_of


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a module.

    Attributes
    ----------
    name
        Name in Python.
    symbol
        Newest symbol that is called, such as ``cuMemAlloc_v2``.
    available
        Whether the loaded library, or the CPU device, has the function.
    since
        CUDA version that brought it, such as ``"12.5"``, or None when that is not known.
    until
        Last CUDA major that has it, or None when the newest does.
    """

    name: str
    symbol: str
    available: bool
    since: str | None
    until: int | None

    @property
    def needs(self) -> str:
        """What has the function, in words: ``"CUDA 13.1 or newer"``."""
        if self.until is not None:
            return f"CUDA {self.until}, not newer"
        return f"CUDA {self.since} or newer" if self.since else "an unknown version"


@dataclass(frozen=True, slots=True, repr=False)
class Inspection:
    """What a module calls.

    Attributes
    ----------
    module
        Name of the module, such as ``"driver"``.
    library
        Path of the loaded library, or ``"cupola CPU device"``.
    version
        Its version, such as ``"13.0"``, or None when the library does not tell. It is that of CUDA, except for `nvml`
        and `cufile`, which count on their own.
    major
        Its major version.
    headers
        Version of CUDA that the module was made from.
    per_thread_default_stream
        Whether the default stream is the per-thread one (``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM``).
    functions
        Every function of the module by its name.
    """

    module: str
    library: str
    version: str | None
    major: int | None
    headers: str
    per_thread_default_stream: bool
    functions: dict[str, Function]

    @property
    def available(self) -> tuple[str, ...]:
        """Names of the functions that can be called."""
        return tuple(name for name, function in self.functions.items() if function.available)

    @property
    def missing(self) -> dict[str, str]:
        """What has each function that cannot be called, in words."""
        return {name: function.needs for name, function in self.functions.items() if not function.available}

    def __contains__(self, name: object) -> bool:
        """Whether the function of that name can be called."""
        function = self.functions.get(name) if isinstance(name, str) else None
        return function is not None and function.available

    def __repr__(self) -> str:
        version = f", version {self.version}" if self.version else ""
        lines = [
            f"cupola.bindings.{self.module} (CUDA {self.headers}) calls {self.library}{version}",
            f"{len(self.available)} of {len(self.functions)} functions are available",
        ]
        if self.per_thread_default_stream:
            lines.append("the default stream is the per-thread one")
        missing = self.missing
        emulated = self.library == _CPU_DEVICE
        if emulated and missing:
            lines.append(f"not emulated: {', '.join(missing)}")
        for needs in () if emulated else sorted(set(missing.values()), key=_order):
            lines.append(f"{needs}: {', '.join(name for name in missing if missing[name] == needs)}")
        return "\n".join(lines)


def _order(needs: str) -> tuple[list[int], str]:
    """Versions in their order, others behind them."""
    words = needs.split()
    number = words[1].rstrip(",") if words[0] == "CUDA" else "9999"
    return [int(part) for part in number.split(".")], needs


def report(
    module: str,
    library: str,
    loaded: str,
    version: int,
    headers: int,
    per_thread: bool,
    functions: list[tuple[str, str, bool, int, int]],
) -> Inspection:
    """Make the report from what the extension module knows; versions are as in 12050 for 12.5, 0 when not known."""
    newest = headers // 1000
    known = {
        name: Function(
            name, symbol, there, _version(since) if since else None, only if only and only < newest else None
        )
        for name, symbol, there, since, only in functions
    }
    text = _version(version) if version else None
    if not version and library not in ("driver", "cudart"):  # those two tell it themselves
        text = _version_of(library)
    major = int(text.partition(".")[0]) if text and text[0].isdigit() else None
    return Inspection(module.rpartition(".")[2], loaded, text, major, _version(headers), per_thread, known)
