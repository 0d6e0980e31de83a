"""The version of nvJitLink."""

from __future__ import annotations


def require_nvjitlink() -> tuple[int, int]:
    """The version of nvJitLink.

    Raises
    ------
    RuntimeError
        It cannot be loaded, or is older than 12.3.
    """
    from cupola.bindings import nvjitlink

    major, minor = nvjitlink.version()
    if (major, minor) < (12, 3):
        raise RuntimeError(f"nvJitLink {major}.{minor} is too old: 12.3 is needed")
    return major, minor
