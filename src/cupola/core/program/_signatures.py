"""The types of kernel parameters, read from the heads of kernels in PTX (PTX ISA, ".entry", ".param").

Machine code has only sizes and offsets of parameters. PTX has types, as far as a launch needs them: whether 4 or 8
bytes are an integer or a floating-point number. So an ObjectCode keeps the heads of its kernels, some hundred bytes,
from the PTX that was compiled along with it. They are parsed when a kernel is first launched.

Imported when there is PTX to read: re is slow to import.
"""

from __future__ import annotations

import re
import struct

INTEGER, FLOATING, UNKNOWN = 1, 2, 0

_PARAMETER = re.compile(rb"\.param\b([^,)]*)")
_TYPE = re.compile(rb"\.(?:([usbf])(?:8|16|32|64|128)|f16x2|texref|surfref|samplerref)\b")
_KINDS = {b"u": INTEGER, b"s": INTEGER, b"f": FLOATING}

# Behind machine code in a cache: the heads, their length, and this.
_MAGIC = b"cupolaSG"


def heads_of(ptx: bytes) -> bytes:
    """The heads of all kernels in PTX, each from ``.entry`` to the end of its parameters."""
    found = []
    at = ptx.find(b".entry")
    while at >= 0:
        # A kernel without parameters may have no parentheses: then its body, or a directive, comes first.
        end = ptx.find(b"{", at)
        head = ptx[at : end if end >= 0 else len(ptx)]
        close = head.rfind(b")")
        found.append(head[: close + 1] if close >= 0 else head.rstrip())
        at = ptx.find(b".entry", at + len(head))
    return b"\n".join(found)


def kinds_of(heads: bytes, kernel: str) -> bytes | None:
    """INTEGER, FLOATING or UNKNOWN for each parameter of a kernel; None if the heads lack the kernel."""
    match = re.search(rb"\.entry\s+" + re.escape(kernel.encode()) + rb"\s*(?:\(([^)]*\))|(?![\w$]))", heads)
    if match is None:
        return None
    kinds = []
    for parameter in _PARAMETER.findall(match[1] or b""):
        kind = _TYPE.search(parameter)
        array = b"[" in parameter
        kinds.append(UNKNOWN if kind is None or array else _KINDS.get(kind[1], UNKNOWN))
    return bytes(kinds)


def with_heads(code: bytes, heads: bytes) -> bytes:
    """Machine code with the heads behind it, where loaders do not look."""
    return b"".join((code, heads, struct.pack("<Q", len(heads)), _MAGIC))


class CachedCode(bytes):
    """Machine code from a cache, which knows the heads of its kernels: they are stored with it, but no part of it."""

    heads: bytes


def from_cache(stored: bytes) -> bytes:
    """The bytes that a cache returns for those that it keeps."""
    code, heads = split_heads(stored)
    if heads is None:
        return stored
    made = CachedCode(code)
    made.heads = heads
    return made


def to_cache(code: bytes) -> bytes:
    """The bytes that a cache keeps."""
    return with_heads(bytes(code), code.heads) if isinstance(code, CachedCode) else code


def split_heads(stored: bytes) -> tuple[bytes, bytes | None]:
    """The machine code and the heads of what `with_heads` made; None when there are none."""
    if not stored.endswith(_MAGIC) or len(stored) < 16:
        return stored, None
    (length,) = struct.unpack_from("<Q", stored, len(stored) - 16)
    start = len(stored) - 16 - length
    return (stored[:start], stored[start:-16]) if start >= 0 else (stored, None)
