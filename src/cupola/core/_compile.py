"""`compile`: CUDA C++ to loadable code in one call, with the usual choices made.

Imported when it is first called.
"""

from __future__ import annotations

import functools
import json
import warnings

from cupola.bindings import _provider
from cupola.core.base._errors import CUDAWarning
from cupola.core.program._file_cache import FileStreamProgramCache
from cupola.core.program._object_code import ObjectCode
from cupola.core.program._program import Program
from cupola.core.program._program_cache import ProgramCacheResource
from cupola.core.program._program_key import make_program_cache_key
from cupola.core.program._program_options import ProgramOptions

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

_SIZE = 256 << 20  # bytes that the default cache keeps


def compile(
    source: str,
    *names: str,
    options: ProgramOptions | dict[str, Any] | None = None,
    cache: ProgramCacheResource | bool = True,
) -> ObjectCode:
    """Compile CUDA C++ for the current device, and keep the result on disk for the next time.

    Parameters
    ----------
    source : str
        CUDA C++. CUDA's own headers are found if they are installed.
    *names : str
        C++ names of kernels that are not ``extern "C"``, such as ``"scale<float>"``.
    options : ProgramOptions or dict, optional
        How to compile; for the current device and C++17 where they do not say.
    cache : bool or cupola.utils.ProgramCacheResource
        Where the result is kept: by default in a folder of the user, at most 256 MiB, together with all that the result
        depends on. False compiles anew. A source whose own header files the cache cannot see is compiled anew, too.

    Returns
    -------
    ObjectCode
        Machine code, whose ``get_kernel(name)`` gives the kernels.

    Raises
    ------
    NVRTCError
        The source does not compile.
    TypeError
        An option is unknown.

    Examples
    --------
    >>> import cupola
    >>> source = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
    >>> twice = cupola.compile(source).get_kernel("twice")
    """
    return compile_to("cubin", source, names, options, cache)


def compile_to(
    target: str,
    source: str,
    names: tuple[str, ...] = (),
    options: ProgramOptions | dict[str, Any] | None = None,
    cache: ProgramCacheResource | bool = True,
) -> ObjectCode:
    """What `compile` does, for the target ``"cubin"`` or ``"ptx"``."""
    chosen = options if isinstance(options, ProgramOptions) else ProgramOptions(**{"std": "c++17", **(options or {})})
    storage = _default_cache() if cache is True else None if cache is False else cache
    if storage is not None and not isinstance(storage, ProgramCacheResource):
        raise TypeError(f"cache must be a bool or a ProgramCacheResource, not {type(cache).__name__}")
    key = None
    if storage is not None and not _provider.is_observed():  # observers know the sources compiled in this process
        try:
            key = make_program_cache_key(
                code=source, code_type="c++", options=chosen, target_type=target, name_expressions=names
            )
        except ValueError:
            key = None  # the result depends on files that the key cannot cover
    if storage is None or key is None:
        return _compile(source, chosen, names, target)
    code, symbols = storage.get(key), storage.get(key + b" names") if names else b"{}"
    if code is not None and symbols is not None:
        _provider.keep_source(chosen.name or "", source)
        make = ObjectCode.from_cubin if target == "cubin" else ObjectCode.from_ptx
        return make(code, name=chosen.name or "", symbol_mapping=json.loads(bytes(symbols)))
    reader = _provider.read_compiler()  # what is new to the cache is new to the CPU device, too
    try:
        made = _compile(source, chosen, names, target)
    finally:
        if reader is not None:
            reader.join()
    storage[key] = made._to_cache()
    if names:
        storage[key + b" names"] = json.dumps({name: _text(made, name) for name in names}).encode()
    return made


def _compile(source: str, options: ProgramOptions, names: tuple[str, ...], target: str) -> ObjectCode:
    with Program(source, "c++", options) as program:
        return program.compile(target, name_expressions=names)


def _text(made: ObjectCode, name: str) -> str:
    symbol = (made.symbol_mapping or {})[name]
    return symbol.decode() if isinstance(symbol, bytes) else symbol


@functools.cache
def _default_cache() -> ProgramCacheResource | None:
    try:
        return FileStreamProgramCache(max_size_bytes=_SIZE)
    except (OSError, RuntimeError) as error:
        warnings.warn(f"programs are compiled each time, since there is no cache: {error}", CUDAWarning, stacklevel=3)
        return None
