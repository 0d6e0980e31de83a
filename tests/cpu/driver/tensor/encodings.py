"""Calls of the functions that encode tensor maps, as lines of text, and the table of what an H200's driver said.

A line is a function and what is unlike its usual arguments::

    tiled type=5 box=16,8 swizzle=3
    im2col rank=4 lower=-1,-1 channels=64
    replace address=8

Arguments are integers or lists of them; ``null`` is a null pointer. ``address`` is an offset into a real allocation,
and ``wild`` instead of it an address as it is; ``map`` the misalignment of the tensor map.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from cupola.bindings import driver
from tests.cpu.driver.calls import ok

RECORDED = Path(__file__).with_name("h200.txt")
"""A line for each call: its status, a space, the call."""

CRASH = "crash"
"""What stands for the status where the driver ended the process."""

Value = int | tuple[int, ...] | None
Arguments = dict[str, Value]

_LAST: Arguments = {"steps": (1, 1, 1, 1, 1), "interleave": 0, "swizzle": 0, "l2": 0, "fill": 0, "address": 0, "map": 0}
_IMAGES: Arguments = {
    "type": 6,
    "rank": 4,
    "dims": (64, 10, 9, 2, 2),
    "strides": (128, 1280, 11520, 23040),
    "channels": 32,
    "pixels": 16,
}
USUAL: dict[str, Arguments] = {
    "tiled": {
        "type": 7,
        "rank": 2,
        "dims": (64, 32, 4, 3, 2),
        "strides": (256, 8192, 32768, 98304),
        "box": (16, 8, 2, 1, 1),
        **_LAST,
    },
    "im2col": {**_IMAGES, "lower": (-1, -1, -1), "upper": (-1, -1, -1), **_LAST},
    "wide": {**_IMAGES, "lower": -1, "upper": -1, "mode": 0, **_LAST, "swizzle": 3},
    "replace": {"interleave": 0, "swizzle": 0, "address": 0, "map": 0},
}
FUNCTIONS = {
    "tiled": "cuTensorMapEncodeTiled",
    "im2col": "cuTensorMapEncodeIm2col",
    "wide": "cuTensorMapEncodeIm2colWide",
    "replace": "cuTensorMapReplaceAddress",
}
ORDER = {
    "tiled": "type rank address dims strides box steps interleave swizzle l2 fill",
    "im2col": "type rank address dims strides lower upper channels pixels steps interleave swizzle l2 fill",
    "wide": "type rank address dims strides lower upper channels pixels steps interleave mode swizzle l2 fill",
    "replace": "address",
}
_LISTS = {
    "dims": ctypes.c_uint64,
    "strides": ctypes.c_uint64,
    "box": ctypes.c_uint32,
    "steps": ctypes.c_uint32,
    "lower": ctypes.c_int32,
    "upper": ctypes.c_int32,
}


def write(mode: str, changed: Arguments) -> str:
    """The line of a call."""

    def text(value: Value) -> str:
        if value is None:
            return "null"
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

    return " ".join([mode, *(f"{name}={text(value)}" for name, value in changed.items())])


def parse(line: str) -> tuple[str, Arguments]:
    """The function of a line and all of its arguments."""
    mode, *words = line.split()
    arguments = dict(USUAL[mode])
    for word in words:
        name, _, text = word.partition("=")
        if text == "null":
            arguments[name] = None
        elif "," in text or isinstance(USUAL[mode].get(name), tuple):
            arguments[name] = tuple(int(number) for number in text.split(","))
        else:
            arguments[name] = int(text)
    return mode, arguments


@cache
def _function(name: str) -> Callable[..., int]:
    pointer = ok(driver.cuGetProcAddress(name.encode(), 13000, 0))[0]
    return ctypes.CFUNCTYPE(ctypes.c_int)(int(pointer))


def call(line: str, base: int) -> tuple[int, bytes]:
    """The status of a call, and the 128 bytes that it left; ``base`` is the address of device memory."""
    mode, arguments = parse(line)
    room = (ctypes.c_uint8 * 512)()
    where = -ctypes.addressof(room) % 128 + (arguments["map"] or 0)  # type: ignore[operator]
    tensor_map = None if arguments["map"] is None else ctypes.addressof(room) + where  # type: ignore[operator]
    if mode == "replace" and "garbage" in arguments:
        room[:] = [arguments["garbage"]] * 512  # type: ignore[list-item]
    elif mode == "replace":
        words = {"rank": 3, "interleave": arguments["interleave"], "swizzle": arguments["swizzle"]}
        encoded = call(write("tiled", words), base)  # type: ignore[arg-type]
        assert encoded[0] == 0
        room[where : where + 128] = list(encoded[1])
    values: list[object] = [ctypes.c_void_p(tensor_map)]  # type: ignore[arg-type]
    for name in ORDER[mode].split():
        value = arguments[name]
        if name == "address":
            wild = arguments.get("wild")
            values.append(ctypes.c_void_p(wild if wild is not None else base + value))  # type: ignore[operator,arg-type]
        elif isinstance(value, tuple):
            values.append((_LISTS[name] * 8)(*value))
        else:
            values.append(ctypes.c_void_p(None) if value is None else ctypes.c_int(value))
    status = _function(FUNCTIONS[mode])(*values)
    return status, bytes(room[where : where + 128])


def recorded() -> list[tuple[str, str]]:
    """Statuses and lines of the recorded calls."""
    lines = (line.split(" ", 1) for line in RECORDED.read_text().splitlines())
    return [(status, line) for status, line in lines]


# ---- growing the table ---------------------------------------------------------------------------------------------


def table() -> list[str]:
    """The lines that are recorded: each rule from both sides, and mixtures of arguments."""
    found: dict[str, None] = {}
    for mode, changed in (
        *_tiled(),
        *_images("im2col"),
        *_im2col(),
        *_images("wide"),
        *_wide(),
        *_replaced(),
        *_mixed(),
    ):
        found[write(mode, changed)] = None
    return list(found)


_Case = tuple[str, Arguments]
_EDGE = 1 << 32
_FAR = 1 << 40


def _with(value: Value, usual: Value, at: int) -> tuple[int, ...]:
    assert isinstance(usual, tuple) and isinstance(value, int)
    return (*usual[:at], value, *usual[at + 1 :])


def _shared(mode: str) -> Iterator[_Case]:
    """What all functions have."""
    usual = USUAL[mode]
    for kind in range(-1, 18):
        for fill in (0, 1):
            yield mode, {"type": kind, "fill": fill}
    for fill in (-1, 2):
        yield mode, {"fill": fill}
    for rank in range(8):
        yield mode, {"rank": rank}
    for l2 in (-1, 1, 2, 3, 4):
        yield mode, {"l2": l2}
    for name in ("map", "dims", "strides", "steps"):
        yield mode, {name: None}
        yield mode, {"rank": 1, name: None}
    for offset in (8, 16, 32, 64):
        yield mode, {"map": offset}
    for interleave in range(3):
        for address in (1, 4, 8, 16, 32, 48):
            yield mode, {"rank": 3, "interleave": interleave, "swizzle": interleave and 1, "address": address}
    for wild in (0, 64, 1 << 47, 1 << 49, 1 << 56, 1 << 57, 1 << 63, (1 << 64) - 16):
        yield mode, {"wild": wild}
    rank = usual["rank"]
    assert isinstance(rank, int)
    for at in range(rank):
        for extent in (0, 1, 3, _EDGE - 1, _EDGE, _EDGE + 1):
            yield mode, {"dims": _with(extent, usual["dims"], at)}
        for step in (0, 2, 3, 7, 8, 9):
            yield mode, {"steps": _with(step, usual["steps"], at)}
    yield mode, {"dims": _with(0, usual["dims"], rank)}
    yield mode, {"steps": _with(0, usual["steps"], rank)}
    for at in range(rank):
        for stride in (0, 1, 8, 16, 24, 32, 48, 128, 240, 1 << 36, _FAR - 32, _FAR - 16, _FAR - 8, _FAR, _FAR + 16):
            yield mode, {"strides": _with(stride, usual["strides"], at)}
    for stride in (32, 48, _FAR - 16):
        for interleave, swizzle in ((1, 0), (2, 1)):
            strides = _with(stride, usual["strides"], 0)
            yield mode, {"rank": 3, "interleave": interleave, "swizzle": swizzle, "strides": strides}


def _tiled() -> Iterator[_Case]:
    yield "tiled", {}
    yield from _shared("tiled")
    usual = USUAL["tiled"]
    yield "tiled", {"box": None}
    for at in range(3):
        for extent in (0, 1, 2, 3, 4, 255, 256, 257):
            yield "tiled", {"box": _with(extent, usual["box"], at)}
    yield "tiled", {"box": (256, 256)}
    yield "tiled", {"rank": 3, "box": (256, 256, 256)}
    for rank in range(1, 6):
        yield "tiled", {"rank": rank, "box": (64, 1, 1, 1, 1)}
    for kind in range(16):
        for extent in (1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 128):
            yield "tiled", {"type": kind, "box": (extent, 8)}
    for kind in (13, 14, 15):
        for dims in (126, 127, 128, 256):
            for address in (16, 32):
                yield "tiled", {"type": kind, "dims": (dims, 32), "box": (128, 8), "address": address}
        for swizzle in range(8):
            yield "tiled", {"type": kind, "dims": (128, 32), "box": (128, 8), "swizzle": swizzle}
        for stride in (16, 32, 64, 80):
            yield "tiled", {"type": kind, "dims": (128, 32), "box": (128, 8), "strides": (stride,)}
    for interleave in range(-1, 4):
        for swizzle in range(-1, 8):
            for extent in (4, 8, 12, 16, 32, 64):
                yield "tiled", {"rank": 3, "interleave": interleave, "swizzle": swizzle, "box": (extent, 8, 2)}
    for interleave in (1, 2):
        for rank in range(1, 6):
            yield "tiled", {"rank": rank, "interleave": interleave, "swizzle": interleave - 1}
        for extent in (1, 2, 3, 5, 256):
            box = (extent, 8, 2)
            yield "tiled", {"rank": 3, "interleave": interleave, "swizzle": interleave - 1, "box": box}
        for kind in range(16):
            yield "tiled", {"rank": 3, "type": kind, "interleave": interleave, "swizzle": interleave - 1}
        for at in range(3):
            for step in (0, 2, 8, 9):
                steps = _with(step, usual["steps"], at)
                yield "tiled", {"rank": 3, "interleave": interleave, "swizzle": interleave - 1, "steps": steps}
    for step in (2, 3, 8):
        for extent in (1, 2, 7, 8, 9, 256):
            yield "tiled", {"steps": (1, step), "box": (16, extent)}
    for depth in (1, 2, 3, 4):
        for height in (128, 192, 224, 226, 227, 228, 232, 240, 254, 255, 256):
            yield "tiled", {"type": 0, "rank": 3, "box": (256, height, depth)}
    for row, height in ((64, 255), (32, 254), (16, 256)):
        yield "tiled", {"type": 2, "rank": 3, "box": (row, height, 4)}
        yield "tiled", {"type": 2, "rank": 3, "box": (row, height, 4), "steps": (1, 2, 2)}
    for dims in ((1, 1), (_EDGE, _EDGE), (4, 4)):
        yield "tiled", {"dims": dims}


def _images(mode: str) -> Iterator[_Case]:
    """What both functions of images have."""
    yield mode, {}
    yield from _shared(mode)
    for channels in (0, 1, 4, 7, 8, 16, 24, 64, 128, 255, 256, 257):
        for swizzle in (0, 1, 2, 3):
            yield mode, {"channels": channels, "swizzle": swizzle}
    for swizzle in (-1, 4, 5, 6, 7):
        yield mode, {"swizzle": swizzle}
    for pixels in (0, 1, 2, 255, 256, 257, 512, 1023, 1024, 1025):
        yield mode, {"pixels": pixels}
    yield mode, {"channels": 256, "pixels": 1024}
    for interleave in range(-1, 4):
        for rank in (3, 4, 5):
            yield mode, {"interleave": interleave, "swizzle": int(interleave == 2), "rank": rank}


def _im2col() -> Iterator[_Case]:
    for name in ("lower", "upper"):
        yield "im2col", {name: None}
        for rank, least in ((3, -(1 << 15)), (4, -128), (5, -16)):
            for at in range(rank - 2):
                for offset in (least - 1, least, least + 1, 0, 1, -least - 1, -least):
                    yield "im2col", {"rank": rank, name: _with(offset, (0, 0, 0), at)}
    for rank in (3, 4, 5):
        for at in range(rank - 2):
            extent = (64, 10, 9, 2, 2)[at + 1]
            for upper in (-extent - 1, -extent, 1 - extent, 2 - extent):
                yield "im2col", {"rank": rank, "lower": (0, 0, 0), "upper": _with(upper, (0, 0, 0), at)}
                yield "im2col", {"rank": rank, "lower": (1, 1, 1), "upper": _with(upper, (0, 0, 0), at)}


def _wide() -> Iterator[_Case]:
    for mode in (-1, 1, 2):
        yield "wide", {"mode": mode}
    for name in ("lower", "upper"):
        for offset in (-32769, -32768, 0, 32767, 32768):
            yield "wide", {name: offset}
        for offset in (
            9,
            8,
            -9,
            -8,
            -16,
            -17,
            -128,
            -129,
            -256,
            -257,
            -512,
            -513,
            -1024,
            -8192,
            -16384,
            -16385,
            -32700,
        ):
            yield "wide", {"rank": 3, name: offset}
        for offset in (15, 16, 127, 128, 255, 256, 511, 1023, 16383, 16384, 32700):
            yield "wide", {"rank": 3, "lower": 0, name: offset}
    for pixels in (511, 512, 1000):
        for channels in (128, 200, 232, 256):
            yield "im2col", {"channels": channels, "pixels": pixels}


def _replaced() -> Iterator[_Case]:
    for interleave, swizzle in ((0, 0), (0, 3), (1, 0), (2, 1)):
        for address in (0, 1, 4, 8, 16, 32, 48, 64):
            yield "replace", {"interleave": interleave, "swizzle": swizzle, "address": address}
    for wild in (0, 64, 1 << 47, 1 << 49, 1 << 56, 1 << 57, 1 << 63, (1 << 64) - 16):
        yield "replace", {"wild": wild}
    for offset in (8, 16, 32, 64, None):
        yield "replace", {"map": offset}
    for garbage in (0, 0xA5, 0xFF):
        yield "replace", {"garbage": garbage}


def _mixed() -> Iterator[_Case]:
    """Mixtures of values that are allowed for themselves, most of them."""
    rng = random.Random("tensor maps")
    for _ in range(600):
        rank = rng.randint(1, 5)
        size = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
        kind = rng.randrange(13)
        dims = tuple(rng.choice((1, 5, 16, 32, 64, 100)) for _ in range(rank))
        unit = rng.choice((16, 32, 16, 32, 8))
        strides, row = [], dims[0] * size[kind]
        for extent in dims[1:]:
            row = -(-row // unit) * unit * rng.choice((1, 1, 1, 2))
            strides.append(row)
            row *= extent
        swizzle = rng.choice((0, 1, 2, 3))
        wanted = rng.choice((16, 32, 64, 128, 256)) // size[kind]
        box = (wanted, *(rng.choice((1, 2, 8, 16)) for _ in dims[1:]))
        words: Arguments = {
            "type": kind,
            "rank": rank,
            "dims": dims,
            "strides": tuple(strides) or (16,),
            "steps": tuple(rng.choice((1, 1, 1, 2, 5)) for _ in dims),
            "interleave": rng.choice((0, 0, 0, 1, 2)),
            "swizzle": swizzle,
            "fill": rng.choice((0, 0, 0, 1)),
            "address": rng.choice((0, 0, 16, 32)),
        }
        if rng.random() < 0.6 or rank < 3:
            yield "tiled", {**words, "box": box}
        else:
            lower = tuple(rng.randint(-3, 2) for _ in range(rank - 2))
            upper = tuple(rng.randint(-3, 2) for _ in range(rank - 2))
            yield "im2col", {**words, "lower": lower, "upper": upper, "channels": wanted, "pixels": rng.choice((1, 64))}
