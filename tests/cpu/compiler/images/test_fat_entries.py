"""What is in fat binaries, also when several images are compressed as one stream."""

from __future__ import annotations

import random
import struct

import pytest

from cupola.bindings import nvfatbin
from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.images import fat_binaries, fat_entries
from cupola.cpu.compiler.images.containers import make_cubin

PTX, CUBIN, SEVERAL = 1, 2, 0x100
TEXT = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def header(kind: int, number: int, place: int, size: int, *, name: bytes = b"", options: bytes | None = None) -> bytes:
    """A header with the name and options behind it, each padded to 8 bytes."""
    texts = b""
    if name:
        texts += name + bytes(8 - len(name) % 8)
    at = 64 + len(texts)
    if options is not None:
        texts += struct.pack("<II", at + 8, len(options)) + options + bytes(8 - len(options) % 8)
    fields = (kind, 0x101, place, size, 0, at if options is not None else 0, 0, 8, number, 64 if name else 0, len(name))
    return struct.pack("<HHIQIIHHIIIQQQ", *fields, 0x11, 0, 0) + texts


def several(*images: tuple[int, int, bytes, bytes, bytes | None], count: int | None = None) -> bytes:
    """A fat binary with one entry of images: kind, architecture, data, name, options. It is not compressed."""
    headers = stream = b""
    for kind, number, data, name, options in images:
        headers += header(kind, number, len(stream), len(data), name=name, options=options)
        stream += data
    counts = struct.pack("<II", len(images) if count is None else count, len(headers) + 8)
    own = 64 + len(counts) + len(headers)
    whole = (SEVERAL, 0x101, own, len(stream), 0, 0, 1, 0, 0, 0, 0, 0x11, 0, len(stream))
    body = struct.pack("<HHIQIIHHIIIQQQ", *whole) + counts + headers + stream
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


IMAGES: list[tuple[int, int, bytes, bytes, bytes | None]] = [
    (PTX, 80, TEXT.replace(b"k()", b"first()"), b"", None),
    (PTX, 90, TEXT.replace(b"k()", b"second()"), b"a.cu", b""),
    (CUBIN, 86, b"machine code", b"1234.cu8", b" --generate-line-info "),  # the name and its zero take 16 bytes
    (PTX, 120, TEXT, b"", b"1234567"),
]


def test_images_that_are_compressed_together() -> None:
    entries = list(fat_entries.read(several(*IMAGES)))
    assert [(e.kind, e.target.number, e.expand(), e.name.encode()) for e in entries] == [row[:4] for row in IMAGES]


@pytest.mark.parametrize(
    ("architecture", "kernel"), [(80, b"first"), (89, b"first"), (90, b"second"), (100, b"second")]
)
def test_the_one_that_fits_is_taken(architecture: int, kernel: bytes) -> None:
    assert kernel in fat_binaries.unpack(several(*IMAGES), architecture)


def test_the_name_of_the_first() -> None:
    assert fat_binaries.name_of(several(*IMAGES[1:])) == "a.cu"
    assert fat_binaries.name_of(several(IMAGES[0])) == ""


def damaged(at: int, value: int) -> bytes:
    image = bytearray(several(*IMAGES[:2]))
    struct.pack_into("<I", image, at, value)
    return bytes(image)


@pytest.mark.parametrize(
    "image",
    [
        several(*IMAGES, count=5),
        several(*IMAGES, count=2**32 - 1),
        damaged(16 + 72 + 4, 1 << 20),  # where the first image is
        damaged(16 + 72 + 8, 1 << 20),  # how large it is
        damaged(16 + 72 + 64 + 20, 1 << 31),  # where the options of the second are
    ],
    ids=["one more", "many more", "place", "size", "options"],
)
def test_damaged_ones(image: bytes) -> None:
    with pytest.raises(ImageError, match=r"damaged|cut off") as raised:
        for entry in fat_entries.read(image):
            entry.expand()
    assert raised.value.status == "CUDA_ERROR_INVALID_IMAGE"


def test_whatever_the_bytes_are() -> None:
    image, chance = several(*IMAGES), random.Random(31)
    for _ in range(2000):
        changed = bytearray(image)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(500)] = chance.choice([0, 1, 8, 0x7F, 0x80, 0xFF])
        try:
            fat_binaries.unpack(bytes(changed), 90)
        except ImageError as error:
            assert error.status in ("CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_NO_BINARY_FOR_GPU")


@pytest.mark.parametrize("name", ["a.cu", "1234.cu", "12345.cu", "123456.cu"])
def test_what_nvfatbin_makes(name: str) -> None:
    """NVIDIA's own tool, which `nvcc --concat` uses."""
    try:
        handle = nvfatbin.create(["-cuda", "-64", "-concat"], 3)
    except nvfatbin.nvFatbinError as error:
        pytest.skip(f"this nvFatbin is older than -concat: {error}")
    texts = {number: TEXT.replace(b"80", str(number).encode()) for number in (75, 80, 90)}
    for number, text in texts.items():
        nvfatbin.add_ptx(
            handle, text + b"\0", len(text) + 1, str(number), name, "--generate-line-info" if number == 80 else ""
        )
    for number in (80, 90):
        cubin = make_cubin("", number)[:64]
        nvfatbin.add_cubin(handle, cubin, len(cubin), str(number), name)
    image = bytearray(nvfatbin.size(handle))
    nvfatbin.get(handle, image)
    nvfatbin.destroy(handle)
    entries = list(fat_entries.read(bytes(image)))
    assert struct.unpack_from("<H", image, 16) == (SEVERAL,)
    assert [(entry.kind, entry.target.number, entry.name) for entry in entries] == [
        *((PTX, number, name) for number in texts),
        *((CUBIN, number, name) for number in (80, 90)),
    ]
    assert [entry.expand().rstrip(b"\0") for entry in entries[:3]] == list(texts.values())
