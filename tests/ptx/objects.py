"""The textures, surfaces and tensor maps that recorded forms may use, by name.

Change nothing here without recording again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tests.cpu.engine.texture.texturing import Sampler, Textures
from tests.ptx.inputs import memory
from tests.ptx.tensor_maps import MAPS, Map

WIDTH, HEIGHT, DEPTH, LAYERS = 16, 8, 4, 4


def texels(dtype: str, *extents: int) -> np.ndarray:
    """Random texels: floats from -1 to 1 that halves have, too, or integers of all sizes."""
    count = int(np.prod(extents))
    if dtype[0] == "f":
        numbers = np.frombuffer(memory(count, f"texels {dtype} {extents}"), np.int8) / 128
        return numbers.astype(dtype).reshape(extents)
    raw = memory(count * np.dtype(dtype).itemsize, f"texels {dtype} {extents}")
    return np.frombuffer(raw, dtype).reshape(extents).copy()


EXTENTS = {
    "1d": (WIDTH,),
    "2d": (HEIGHT, WIDTH),
    "3d": (DEPTH, HEIGHT, WIDTH),
    "a1d": (LAYERS, WIDTH),
    "a2d": (LAYERS, HEIGHT, WIDTH),
    "cube": (6, HEIGHT, HEIGHT),
    "acube": (12, HEIGHT, HEIGHT),
}
_FLAGS = {"a1d": ["layered"], "a2d": ["layered"], "cube": ["cubemap"], "acube": ["cubemap", "layered"]}

Maker = Callable[[Textures], np.uint64]


def _texture(shape: str, dtype: str = "f4", channels: int = 4, flags: Sequence[str] = (), **words: object) -> Maker:
    dimensions = "2d" if shape.endswith("cube") else shape[-2:]
    data = texels(dtype, *EXTENTS[shape], channels)
    sampler = Sampler(**words)  # type: ignore[arg-type]
    return lambda made: made.of(data, dimensions, *_FLAGS.get(shape, ()), *flags, sampler=sampler)


def _mipmapped(**words: object) -> Maker:
    levels = [texels("f4", HEIGHT >> n or 1, WIDTH >> n, 4) for n in range(5)]
    sampler = Sampler(normalized=True, **words)  # type: ignore[arg-type]
    return lambda made: made.of_array(made.mipmapped(levels, "2d"), sampler)


def _surface(shape: str, dtype: str, channels: int) -> Maker:
    data = texels(dtype, *EXTENTS[shape], channels)
    return lambda made: made.surface(made.array(data, shape[-2:], "surface", *_FLAGS.get(shape, ())))


def _tensor_map(given: Map) -> Maker:
    return lambda made: np.uint64(made.tensor_map(given.data(), given.encode))


TABLE: dict[str, Maker] = {
    # Floats, by the geometry: a texel, or a mixture. Directions into cubemaps are normalized.
    **{f"T_{shape}": _texture(shape, normalized="cube" in shape) for shape in EXTENTS},
    **{f"T_{shape}_linear": _texture(shape, normalized="cube" in shape, linear=True) for shape in EXTENTS},
    "T_cube_seamless": _texture("cube", normalized=True, linear=True, seamless=True),
    "T_2d_gather": _texture("2d", flags=["gather"]),
    "T_2d_gather_u8": _texture("2d", "u1", flags=["gather"], as_integer=True),
    # Address modes, with normalized coordinates and without.
    **{
        f"T_{mode}{'_linear' * linear}": _texture(
            "2d", address=mode, normalized=True, linear=linear, border=(0.25, 0.5, -0.75, 1.0)
        )
        for mode in ("wrap", "mirror", "clamp", "border")
        for linear in (False, True)
    },
    "T_border_texels": _texture("2d", address="border", border=(0.25, 0.5, -0.75, 1.0)),
    "T_border_none": _texture("2d", channels=1, address="border"),
    # Formats.
    **{f"T_{name}": _texture("2d", name, as_integer=True) for name in ("u1", "i1", "u2", "i2", "u4", "i4", "f2")},
    **{f"T_{name}_part": _texture("2d", name) for name in ("u1", "i1", "u2", "i2")},
    **{f"T_{name}_part_linear": _texture("2d", name, linear=True) for name in ("u1", "i2")},
    "T_f2_linear": _texture("2d", "f2", linear=True),
    "T_srgb": _texture("2d", "u1", srgb=True),
    "T_one": _texture("2d", channels=1),
    "T_two": _texture("2d", channels=2),
    "T_one_u1": _texture("2d", "u1", channels=1, as_integer=True),
    "T_one_u1_part": _texture("2d", "u1", channels=1),
    "T_two_i4": _texture("2d", "i4", channels=2, as_integer=True),
    # Memory of the device.
    "T_memory": lambda made: made.linear(texels("f4", WIDTH, 4)),
    "T_memory_i2": lambda made: made.linear(texels("i2", WIDTH, 1), Sampler(as_integer=True)),
    "T_pitched": lambda made: made.pitched(texels("f4", HEIGHT, WIDTH, 4), Sampler(linear=True)),
    # Levels.
    "T_levels": _mipmapped(last_level=4),
    "T_levels_between": _mipmapped(last_level=4, linear=True, mipmap_linear=True),
    "T_levels_biased": _mipmapped(last_level=3, least_level=0.5, bias=0.75, linear=True, mipmap_linear=True),
    # Surfaces of all geometries with texels of 16 bytes, and of others.
    **{f"S_{shape}": _surface(shape, "u4", 4) for shape in ("1d", "2d", "3d", "a1d", "a2d")},
    **{f"S_{name}": _surface("2d", name, 4) for name in ("u1", "i1", "u2", "i2", "f2", "f4")},
    "S_one_u4": _surface("2d", "u4", 1),
    "S_one_i4": _surface("2d", "i4", 1),
    "S_two_u4": _surface("2d", "u4", 2),
    "S_two_i4": _surface("2d", "i4", 2),
    # Tensor maps.
    **{f"M_{name}": _tensor_map(given) for name, given in MAPS.items()},
}


@contextlib.contextmanager
def objects(names: Sequence[str]) -> Iterator[np.ndarray]:
    """The objects with these names, made for as long as they are needed."""
    made = Textures()
    try:
        yield np.array([TABLE[name](made) for name in names], np.uint64)
    finally:
        made.close()
