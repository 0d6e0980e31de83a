"""Linking object code: by nvJitLink, or by the driver where that is missing.

Imported when something is first linked.
"""

from __future__ import annotations

import warnings
import weakref
from _thread import RLock, _local

from cupola.core.base._options import as_options
from cupola.core.program._linker_options import DRIVER_IGNORES, DRIVER_REFUSES, LinkerOptions
from cupola.core.program._nvjitlink import require_nvjitlink
from cupola.core.program._object_code import ObjectCode

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, Self

    from cupola.bindings.driver import CUlinkState
    from cupola.bindings.nvjitlink import nvJitLinkError
    from cupola.core.program._driver_linker import DriverLink
    from cupola.typing import CompilerBackendType

TARGETS = ("cubin", "ptx")

_choosing = RLock()
_backend: CompilerBackendType | None = None


class Linker:
    """Object code of several kinds, linked to one.

    nvJitLink does it, or the driver's linker where nvJitLink is not installed (:meth:`which_backend`). A linker links
    once.

    Parameters
    ----------
    *object_codes : ObjectCode
        What to link: PTX, cubins, fat binaries, host object files and libraries of them, and for nvJitLink LTO-IR.
    options : LinkerOptions or dict, optional
        How to link.

    Raises
    ------
    ValueError
        There is nothing to link, or the linker does not take an input or an option.
    TypeError
        An input is not an ObjectCode, or an option is unknown.
    cupola.bindings.nvjitlink.nvJitLinkError
        nvJitLink refuses an option or an input; its log is part of the text.
    CUDAError
        The driver does.

    Notes
    -----
    Threads may share it.

    Examples
    --------
    >>> options = LinkerOptions(link_time_optimization=True)
    >>> kernel = Linker(kernels, helpers, options=options).link("cubin").get_kernel("scale")
    """

    __slots__ = ("__weakref__", "_inputs", "_link", "_lock", "_logs", "_options")

    def __init__(self, *object_codes: ObjectCode, options: LinkerOptions | dict[str, Any] | None = None) -> None:
        self._lock = RLock()
        self._link: _JitLink | DriverLink | None = None
        self._logs: tuple[str, str] | None = None
        self._options: LinkerOptions = as_options(LinkerOptions, options)
        self._inputs = object_codes
        if not object_codes:
            raise ValueError("there is nothing to link: give at least one ObjectCode")
        for code in object_codes:
            if not isinstance(code, ObjectCode):
                raise TypeError(f"a Linker takes ObjectCode, not {type(code).__name__}")
        self._link = self._begin()

    def link(self, target_type: str) -> ObjectCode:
        """Link the inputs.

        Parameters
        ----------
        target_type : str
            ``"cubin"``; or ``"ptx"``, for inputs of LTO-IR with the options `link_time_optimization` and `ptx`.

        Returns
        -------
        ObjectCode

        Raises
        ------
        ValueError
            For another target, or one that the options do not go with.
        cupola.bindings.nvjitlink.nvJitLinkError
            nvJitLink fails, for example because a symbol is undefined; its log is part of the text.
        CUDAError
            The driver does.
        """
        with self._lock:
            link = self._open()
            target = str(target_type).lower()
            if target not in TARGETS:
                raise ValueError(f"Unsupported target type {target_type!r}; code is linked to {' or '.join(TARGETS)}")
            if self._logs is not None:
                raise RuntimeError("a Linker links once: make another one")
            if (target == "ptx") != bool(self._options.ptx):
                raise ValueError(
                    "linking to PTX needs LinkerOptions(link_time_optimization=True, ptx=True), and inputs of LTO-IR"
                    if target == "ptx"
                    else "LinkerOptions(ptx=True) links to 'ptx', not to 'cubin'"
                )
            try:
                image = link.complete(target)
            finally:
                self._logs = link.logs()
            make = ObjectCode.from_ptx if target == "ptx" else ObjectCode.from_cubin
            made = make(image, name=self._options.name)
            heads = [code._signatures() for code in self._inputs]
            made._take_heads(b"\n".join(filter(None, heads)) or None)
            return made

    def get_info_log(self) -> str:
        """The linker's information log: times, resources, warnings.

        Returns
        -------
        str
            Empty when there is nothing.
        """
        return self._find_logs()[0]

    def get_error_log(self) -> str:
        """The linker's error log.

        Returns
        -------
        str
            Empty when there is nothing.
        """
        return self._find_logs()[1]

    @property
    def handle(self) -> int | CUlinkState:
        """int or cupola.bindings.driver.CUlinkState: the native handle; 0 once closed."""
        with self._lock:
            return 0 if self._link is None else self._link.handle

    @classmethod
    def which_backend(cls) -> CompilerBackendType:
        """Which linker is used in this process, decided at the first call.

        Returns
        -------
        CompilerBackendType
            NVJITLINK, or DRIVER if nvJitLink 12.3 or newer cannot be loaded; a warning then says so once.
        """
        global _backend
        with _choosing:
            if _backend is None:
                _backend = _choose_backend()
            return _backend

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the linker. Its results stay valid. Closing twice is fine."""
        with self._lock:
            if self._link is None:
                return
            self._link.close()
            self._link = None

    @property
    def is_closed(self) -> bool:
        """bool: whether the linker was closed."""
        return self._link is None

    def __getattr__(self, name: str) -> CompilerBackendType:
        if name == "backend":
            warnings.warn("Linker.backend is now Linker.which_backend()", DeprecationWarning, stacklevel=2)
            return self.which_backend()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<Linker name={self._options.name!r} of {len(self._inputs)} inputs>"

    def __reduce__(self) -> str:
        raise TypeError("a Linker cannot be pickled; pickle what it links, or the ObjectCode it makes")

    def _begin(self) -> _JitLink | DriverLink:
        link = _JitLink(self._options) if self.which_backend() == "nvJitLink" else _driver_link(self._options)
        for index, code in enumerate(self._inputs):
            link.add(code.code_type, _linkable(code), code.name or f"input {index}")
        return link

    def _open(self) -> _JitLink | DriverLink:
        if self._link is None:
            raise RuntimeError("Linker has been closed")
        if not self._link.is_usable_here():
            self._link = self._begin()
        return self._link

    def _find_logs(self) -> tuple[str, str]:
        with self._lock:
            return self._logs if self._logs is not None else self._open().logs()


class _JitLink:
    """One link by nvJitLink, with the interface of :class:`DriverLink`.

    A handle of nvJitLink belongs to the thread that made it: the library keeps memory per thread, and crashes,
    immediately or later, when another thread uses or destroys the handle (seen with 13.5). So a handle that is
    released on another thread, for example by the garbage collector, waits in its own thread's list for that thread's
    next link.
    """

    def __init__(self, options: LinkerOptions) -> None:
        from cupola.bindings import nvjitlink

        self._library = nvjitlink
        self._home = _abandoned_here()
        while self._home:
            nvjitlink.destroy(self._home.pop())
        flags = options.as_bytes()
        try:
            self.handle = nvjitlink.create(len(flags), flags)
        except nvjitlink.nvJitLinkError as error:
            _fail(error, f"the options were {b' '.join(flags).decode()}")
        self._release = weakref.finalize(self, _let_go, nvjitlink.destroy, self.handle, self._home)
        self._release.atexit = False  # the process takes it along

    def is_usable_here(self) -> bool:
        """Whether this thread made it."""
        return self._home is _abandoned_here()

    def add(self, code_type: str, code: bytes | str, name: str) -> None:
        """Add an input: bytes, or the path of a file."""
        kind: int = self._library.InputType[code_type.upper()]
        try:
            if isinstance(code, str):
                self._library.add_file(self.handle, kind, code)
            else:
                self._library.add_data(self.handle, kind, code, len(code), name)
        except self._library.nvJitLinkError as error:
            _fail(error, _labelled(self.logs()[1]))

    def complete(self, target: str) -> bytes:
        """Link, and return the result."""
        library = self._library
        try:
            library.complete(self.handle)
            result = bytearray(getattr(library, f"get_linked_{target}_size")(self.handle))
            getattr(library, f"get_linked_{target}")(self.handle, result)
        except library.nvJitLinkError as error:
            _fail(error, _labelled(self.logs()[1]))
        return bytes(result)

    def logs(self) -> tuple[str, str]:
        """The information log and the error log."""
        library, handle = self._library, self.handle
        info = bytearray(library.get_info_log_size(handle))
        library.get_info_log(handle, info)
        error = bytearray(library.get_error_log_size(handle))
        library.get_error_log(handle, error)
        return _text(info), _text(error)

    def close(self) -> None:
        """Release the handle."""
        self.handle = 0
        self._release()


_thread = _local()


def _abandoned_here() -> list[int]:
    """The handles of this thread that other threads released."""
    try:
        found: list[int] = _thread.abandoned
    except AttributeError:
        found = _thread.abandoned = []
    return found


def _let_go(destroy: Callable[[int], None], handle: int, home: list[int]) -> None:
    if home is _abandoned_here():
        destroy(handle)
    else:
        home.append(handle)


def _choose_backend() -> CompilerBackendType:
    from cupola.typing import CompilerBackendType

    try:
        require_nvjitlink()
    except (RuntimeError, ImportError, OSError) as error:
        warnings.warn(
            f"the driver links, because nvJitLink cannot be used ({str(error).splitlines()[0]}); it has no LTO and "
            "fewer options. Install nvidia-nvjitlink.",
            RuntimeWarning,
            stacklevel=4,
        )
        return CompilerBackendType.DRIVER
    return CompilerBackendType.NVJITLINK


def _driver_link(options: LinkerOptions) -> DriverLink:
    from cupola.core.program._driver_linker import DriverLink

    check_driver_options(options)
    return DriverLink(
        options.architecture(),
        max_registers=options.max_register_count,
        optimization_level=options.optimization_level,
        debug=bool(options.debug),
        lineinfo=bool(options.lineinfo),
        verbose=bool(options.verbose),
        lto=bool(options.link_time_optimization),
        no_cache=bool(options.no_cache),
    )


def check_driver_options(options: LinkerOptions) -> None:
    """Refuse the options that the driver's linker cannot fulfill, and warn of those that it ignores."""
    refused = [field for field in DRIVER_REFUSES if getattr(options, field) not in (None, False)]
    if refused:
        raise ValueError(f"the driver's linker does not have {', '.join(refused)}: install nvidia-nvjitlink")
    ignored = [field for field in DRIVER_IGNORES if getattr(options, field) is not None]
    if ignored:
        warnings.warn(f"the driver's linker ignores {', '.join(ignored)}", DeprecationWarning, stacklevel=5)


def _linkable(code: ObjectCode) -> bytes | str:
    """The code of an input, or its path."""
    data = code.code
    return bytes(data) if isinstance(data, bytearray) else data


def _fail(error: nvJitLinkError, detail: str) -> NoReturn:
    """Raise nvJitLink's error with more text."""
    if detail:
        error.args = (f"{error}\n{detail}",)
        error.__notes__ = []  # the log once is enough
    raise error from None


def _labelled(log: str) -> str:
    from cupola.core.program._compatibility import explain_link

    text = f"nvJitLink error log: {log.strip()}" if log.strip() else ""
    return "\n".join(part for part in (text, explain_link(log, require_nvjitlink())) if part)


def _text(log: bytes | bytearray) -> str:
    return log.rstrip(b"\0 ").decode(errors="backslashreplace")
