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

# In CUDA C++: the head of a kernel with its plain name, and a pointer to a builtin type among its parameters.
_KERNEL = re.compile(
    r"__global__\b[^;{}()]*?(?:__launch_bounds__\s*\([^)]*\)[^;{}()]*?)?\b(\w+)\s*\(([^(){};]*)\)\s*\{"
)
_POINTER = re.compile(r"([\w\s]*\w)\s*\*\s*(?:(?:const|volatile|__restrict__|__restrict)\b\s*)*\w*\s*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORDS = frozenset(
    {"const", "volatile", "signed", "int"}
)  # which leave a type as it is; of "int" alone nothing is left
_LETTERS = {
    "": "i", "unsigned": "j", "short": "s", "unsigned short": "t", "long": "l", "unsigned long": "m", "long long": "x",
    "unsigned long long": "y", "float": "f", "double": "d", "half": "H", "__half": "H", "nv_bfloat16": "B",
    "__nv_bfloat16": "B", "size_t": "m", "int32_t": "i", "uint32_t": "j", "int64_t": "l", "uint64_t": "m",
    "int16_t": "s", "uint16_t": "t",
}  # fmt: skip

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


def pointers_in(source: str) -> bytes:
    """A line for each kernel in CUDA C++ that tells what its parameters point to, as its author wrote it.

    Names that are not mangled tell nothing. The source does, though only likely so: macros and names of types may mean
    anything. A line has the name and a letter for each parameter, as in mangled names; "-" if it is unknown.
    """
    found = []
    for name, parameters in _KERNEL.findall(_COMMENT.sub(" ", source)):
        letters = "".join(map(_letter, parameters.split(","))) if parameters.strip() else ""
        if letters.strip("-"):
            found.append(f"//{name} {letters}")
    return "\n".join(found).encode()


def _letter(parameter: str) -> str:
    match = _POINTER.fullmatch(parameter.strip())
    if match is None:
        return "-"
    words = match[1].split()
    rest = " ".join(word for word in words if word not in _WORDS)
    if not rest and "int" not in words and "signed" not in words:
        return "-"
    return _LETTERS.get(rest, "-")


def pointers_of(heads: bytes, kernel: str) -> str | None:
    """The letters of `pointers_in` for a kernel; None if there are none, or two kernels of that name differ."""
    found = set(re.findall(rb"^//" + re.escape(kernel.encode()) + rb" (\S+)$", heads, re.MULTILINE))
    return found.pop().decode() if len(found) == 1 else None


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
