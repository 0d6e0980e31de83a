"""Images of device code, and changes to their bytes: headers, tables, records, compressed data, and text."""

from __future__ import annotations

import random
import struct
from functools import cache

from cupola.cpu.compiler.images.containers import make_cubin

from .mutation import corpus

_HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
CALLER = (
    _HEAD
    + """.extern .func (.param .b32 r) f(.param .b32 p);
.extern .global .u32 shared_with;
.visible .entry k(.param .u64 p) { .reg .b32 %r<2>; .param .b32 a; .param .b32 b;
    st.param.b32 [a], 5; call (b), f, (a); ld.param.b32 %r1, [b]; st.global.u32 [shared_with], %r1; ret; }
"""
)
CALLEE = (
    _HEAD
    + """.visible .global .u32 shared_with = 7;
.visible .global .u64 table[2] = {shared_with, generic(shared_with)+4};
.visible .func (.param .b32 r) f(.param .b32 p) { .reg .b32 %r<3>;
    ld.param.b32 %r1, [p]; add.s32 %r2, %r1, 37; st.param.b32 [r], %r2; ret; }
"""
)
_INTERESTING = [0, 1, 2, 7, 8, 15, 16, 63, 64, 127, 128, 255, 256, 4095, 32767, 32768, 65535, 65536, 1 << 20]
_INTERESTING += [
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    1 << 47,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
]


# ---- images ------------------------------------------------------------------------------------------------------


def elf(sections: list[tuple[bytes, bytes, int]], architecture: int = 90) -> bytes:
    """An ELF file as NVIDIA's assembler makes them, with sections: name, contents, sh_info."""
    names, contents, headers = b"\0", b"", [bytes(64)]
    for name, data, info in [*sections, (b".shstrtab", b"", 0)]:
        offset = len(names)
        names += name + b"\0"
        data = names if name == b".shstrtab" else data
        headers.append(struct.pack("<IIQQQQIIQQ", offset, 1, 0, 0, 64 + len(contents), len(data), 0, info, 1, 0))
        contents += data
    ident = b"\x7fELF\x02\x01\x01\x33".ljust(16, b"\0")
    table = 64 + len(contents)
    count = len(headers)
    head = struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, table, architecture << 8, 64, 56, 0, 64, count, count - 1)
    return ident + head + contents + b"".join(headers)


def with_ptx(cubin: bytes, ptx: str) -> bytes:
    """The cubin with PTX behind it."""
    return cubin + make_cubin(ptx, 90)[64:]


def fat_entry(kind: int, data: bytes, *, architecture: int = 80, flags: int = 0, whole: int = 0) -> bytes:
    """An entry of a fat binary: 1 for PTX, 2 for a cubin."""
    padded = data + bytes(-len(data) % 8)
    head = struct.pack(
        "<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(padded), len(data), 64, 0, 8, architecture, 0, 0, flags, 0, whole
    )
    return head + padded


def fat_binary(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def lz4_literals(data: bytes) -> bytes:
    """An LZ4 block of literals, but for one match: of the last 8 bytes but 8 with themselves."""
    count = len(data) - 15
    rest, more = count, b""
    if count >= 15:
        rest = 15
        more = b"\xff" * ((count - 15) // 255) + bytes([(count - 15) % 255])
    return bytes([rest << 4]) + more + data[:count] + b"\x01\0" + bytes([0xB0]) + data[count + 4 :]


def zstandard_frame(data: bytes) -> bytes:
    """A Zstandard frame of a raw block, a block of one byte repeated, and an empty one."""
    blocks = struct.pack("<I", len(data) << 3)[:3] + data + struct.pack("<I", 4 << 3 | 1 << 1)[:3] + b"\n" + b"\x01\0\0"
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data) + 4) + blocks


@cache
def images() -> dict[str, bytes]:
    """Images of every kind, made here so that they are the same on all computers."""
    ptx = next(text for _, text in sorted(corpus().items()))
    short = CALLEE + ".visible .entry k(.param .u64 p) { ret; }\n"
    registers = struct.pack("<BBHII", 4, 0x2F, 8, 3, 40) + struct.pack("<BBH", 3, 0x1B, 255)
    cubin = elf([(b".text.k", b"\x90" * 64, 0x28000003), (b".nv.info", registers, 0), (b".symtab", bytes(48), 1)])
    repeated = short.encode() + b"\n" * 15
    entries = {
        "ptx": fat_entry(1, short.encode()),
        "cubin": fat_entry(2, with_ptx(cubin, short), architecture=90),
        "other": fat_entry(2, cubin, architecture=75),
        "lz4": fat_entry(1, lz4_literals(repeated), flags=0x2000, whole=len(repeated)),
        "zstandard": fat_entry(1, zstandard_frame(short.encode()), flags=0x8000, whole=len(short) + 4),
    }
    return {
        "ptx": ptx.encode(),
        "short ptx": short.encode(),
        "linked": make_cubin(short, 90),
        "cubin": with_ptx(cubin, short),
        "plain cubin": cubin,
        "fat": fat_binary(*entries.values()),
        **{f"fat {name}": fat_binary(entry) for name, entry in entries.items()},
    }


# ---- changes -----------------------------------------------------------------------------------------------------


def _place(chance: random.Random, size: int) -> int:
    """Headers begin an image and records end it; the rest is text or code for the most part."""
    which = chance.random()
    if which < 0.5:
        return chance.randrange(min(size, 160))
    if which < 0.75:
        return size - 1 - chance.randrange(min(size, 320))
    return chance.randrange(size)


def mutate(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """The data with one to four changes."""
    out = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 3, 4])):
        if not out:
            break
        at = _place(chance, len(out))
        what = chance.randrange(9)
        if what == 0:
            out[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            out[at] = chance.choice([0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        elif what in (2, 3, 4):
            width = (2, 4, 8)[what - 2]
            at -= at % width if chance.random() < 0.8 else 0
            value = chance.choice(
                [*_INTERESTING, len(out), len(out) - 1, len(out) + 1, -at, -64, chance.getrandbits(64)]
            )
            out[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
        elif what == 5:
            del out[at:]
        elif what == 6:
            del out[at : at + chance.choice([1, 4, 8, 16, 64, 200])]
        elif what == 7:
            piece = out[at : at + chance.choice([1, 8, 16, 64, 200])]
            out[at:at] = piece * chance.choice([1, 2, 16])
        else:
            other = chance.choice(others)
            start = _place(chance, len(other))
            out[at : at + chance.choice([0, 16, 64])] = other[start : start + chance.choice([16, 64, 200])]
    return bytes(out)


def mutant(seed: int) -> tuple[str, bytes]:
    """An image of the kind named, and changed; one in twenty stays as it is."""
    chance = random.Random(f"image {seed}")
    name = chance.choice(sorted(images()))
    data = images()[name]
    if chance.random() < 0.05:
        return name, data
    return name, mutate(data, chance, list(images().values()))
