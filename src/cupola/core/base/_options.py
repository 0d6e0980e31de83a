"""Options: dataclasses that users may also pass as dicts, with checked names."""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeVar

    T = TypeVar("T")


def as_options(cls: type[T], options: Any, keywords: dict[str, Any] | None = None) -> T:
    """Make `cls`, a class with :func:`naming_options`, from an instance, a dict, None, or keywords.

    Raises
    ------
    TypeError
        `options` is something else, both forms were given, or a name is unknown.
    """
    if keywords:
        if options is not None:
            raise TypeError(f"give {cls.__name__} or keywords, not both")
        return cls(**keywords)
    if options is None:
        return cls()
    if isinstance(options, cls):
        return options
    if isinstance(options, dict):
        return cls(**options)
    raise TypeError(f"options must be {cls.__name__}, a dict of its fields, or None; not {type(options).__name__}")


def naming_options(cls: type[T]) -> type[T]:
    """Let the constructor of a dataclass refuse an unknown name and suggest the one that may be meant."""
    from dataclasses import fields  # slow to import, and known to who has a dataclass

    make = cls.__init__
    known = cls.__dataclass_fields__  # type: ignore[attr-defined]

    @wraps(make)
    def __init__(self: T, *args: Any, **values: Any) -> None:
        for name in values:
            if name not in known:
                today = [option.name for option in fields(cls)]  # type: ignore[arg-type]  # without older spellings
                raise no_such_name(cls.__name__, "option", name, today)
        make(self, *args, **values)

    cls.__init__ = __init__  # type: ignore[assignment]
    return cls


# What other libraries, and CUDA's own, call it -> what it is here, where that has such a name.
MEANT = {
    "arch": "architecture compute_capability cc sm gpu_arch gencode target",
    "block": "blockdim block_dim blocksize block_size threads threads_per_block threadsperblock nthreads tpb",
    "cluster": "clusterdim cluster_dim",
    "debug": "device_debug g",
    "define_macro": "define defines macro macros",
    "grid": "griddim grid_dim blocks blocks_per_grid blockspergrid nblocks num_blocks",
    "include_path": "include includes include_dir include_dirs include_paths i",
    "is_cooperative": "cooperative cooperative_groups coop",
    "ipc_enabled": "ipc shareable",
    "lineinfo": "line_info generate_line_info",
    "max_register_count": "maxreg maxregs maxrregcount max_registers registers num_regs",
    "max_size": "size limit capacity maximum_pool_size",
    "name": "filename file_name",
    "nonblocking": "non_blocking blocking",
    "priority": "prio high_priority",
    "relocatable_device_code": "rdc dc",
    "shmem_size": "shared shared_mem shared_memory shared_size shared_bytes sharedmem smem smem_size shmem",
    "std": "cpp_std cxx_std standard dialect language_standard",
    "timing_enabled": "timing enable_timing time disable_timing",
    "use_fast_math": "fast_math fastmath",
}


def meant(name: str, known: Iterable[str]) -> list[str]:
    """Which of the known names is meant by one that others use for the same thing."""
    words = name.lower().strip("_")
    return [today for today in known if words in MEANT.get(today, "").split()]


def no_such_name(whose: str, what: str, name: object, known: Iterable[str]) -> TypeError:
    """The error for an unknown name, with suggestions: by its meaning, or else by its letters."""
    there = list(known)
    near = " or ".join(map(repr, meant(str(name), there) or _similar(str(name), there)))
    return TypeError(f"{whose} has no {what} {name!r}" + (f"; did you mean {near}?" if near else ""))


def _similar(name: str, known: list[str]) -> list[str]:
    """The name that is almost the same, or else those that have a long word with the same beginning."""
    from difflib import get_close_matches

    beginnings = tuple(word[:5] for word in name.split("_") if len(word) >= 5)
    return get_close_matches(name, known, 1, cutoff=0.7) or [
        other for other in known if any(word.startswith(beginnings) for word in other.split("_"))
    ]
