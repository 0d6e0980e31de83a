"""Views of arrays of other libraries, copies and moves of many buffers at once, and caches of compiled programs."""

from importlib import import_module as _import_module

from cupola.core.exchange._view import StridedMemoryView as StridedMemoryView
from cupola.core.exchange._viewable_arguments import args_viewable_as_strided_memory as args_viewable_as_strided_memory

# Type checkers take the names from here; at run time __getattr__ finds them. (typing is slow to import.)
TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola.core.exchange._copies import copy_batch as copy_batch
    from cupola.core.exchange._copy_options import CopyOptions as CopyOptions
    from cupola.core.exchange._copy_options import MemcpyOverlapMode as MemcpyOverlapMode
    from cupola.core.exchange._copy_options import MemcpySrcAccessOrder as MemcpySrcAccessOrder
    from cupola.core.memory._migration import discard_batch as discard_batch
    from cupola.core.memory._migration import discard_prefetch_batch as discard_prefetch_batch
    from cupola.core.memory._migration import prefetch_batch as prefetch_batch
    from cupola.core.program._file_cache import FileStreamProgramCache as FileStreamProgramCache
    from cupola.core.program._program_cache import InMemoryProgramCache as InMemoryProgramCache
    from cupola.core.program._program_cache import ProgramCacheResource as ProgramCacheResource
    from cupola.core.program._program_key import make_program_cache_key as make_program_cache_key

# Name -> module that has it, of the names that are imported when they are first used.
_HOMES = {
    "CopyOptions": "core.exchange._copy_options",
    "FileStreamProgramCache": "core.program._file_cache",
    "InMemoryProgramCache": "core.program._program_cache",
    "MemcpyOverlapMode": "core.exchange._copy_options",
    "MemcpySrcAccessOrder": "core.exchange._copy_options",
    "ProgramCacheResource": "core.program._program_cache",
    "copy_batch": "core.exchange._copies",
    "discard_batch": "core.memory._migration",
    "discard_prefetch_batch": "core.memory._migration",
    "make_program_cache_key": "core.program._program_key",
    "prefetch_batch": "core.memory._migration",
}

__all__ = sorted([*_HOMES, "StridedMemoryView", "args_viewable_as_strided_memory"])


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cupola.utils' has no attribute {name!r}")
    value = getattr(_import_module(f"cupola.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
