"""Rotate a picture with a texture: it is read between its pixels, and is a color of its own beyond its edges."""

import numpy as np
from arrays import build

from cupola import Device, LaunchConfig, Stream, launch
from cupola.texture import OpaqueArrayOptions, ResourceDescriptor, TextureObject, TextureObjectOptions

SOURCE = r"""
extern "C" __global__ void rotate(cudaTextureObject_t picture, uchar4* out, int width, int height, float c, float s) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float u = x + 0.5f - 0.5f * width, v = y + 0.5f - 0.5f * height;  // from the center
    const float4 p = tex2D<float4>(picture, c * u - s * v + 0.5f * width, s * u + c * v + 0.5f * height);
    out[y * width + x] = make_uchar4(255 * p.x + 0.5f, 255 * p.y + 0.5f, 255 * p.z + 0.5f, 255 * p.w + 0.5f);
}
"""

BORDER = np.array([0.0, 0.0, 0.25, 1.0], np.float32)


def make_texture(dev: Device, picture: np.ndarray, stream: Stream) -> TextureObject:
    """A texture that mixes neighboring pixels, reads 0 to 255 as 0 to 1, and has a border."""
    height, width, channels = picture.shape
    array = dev.create_opaque_array(OpaqueArrayOptions((width, height), picture.dtype, channels))
    array.copy_from(picture, stream=stream)
    options = TextureObjectOptions(
        address_mode="border",
        filter_mode="linear",
        read_mode="normalized_float",
        border_color=tuple(BORDER.tolist()),
    )
    return dev.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array), options=options)


def rotated(picture: np.ndarray, c: float, s: float) -> np.ndarray:
    """The same with NumPy."""
    height, width, _ = picture.shape
    y, x = np.indices((height, width))
    u, v = x + 0.5 - 0.5 * width, y + 0.5 - 0.5 * height
    at_x, at_y = c * u - s * v + 0.5 * width - 0.5, s * u + c * v + 0.5 * height - 0.5
    left, top = np.floor(at_x).astype(int), np.floor(at_y).astype(int)
    total = np.zeros(picture.shape)
    for j in (0, 1):
        for i in (0, 1):
            column, row = left + i, top + j
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            pixel = picture[np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)] / 255
            weight = (1 - abs(at_x - column)) * (1 - abs(at_y - row))
            total += weight[..., None] * np.where(inside[..., None], pixel, BORDER)
    return total


def main(width: int = 320, height: int = 200, degrees: float = 25) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = build(dev, SOURCE).get_kernel("rotate")
    y, x = np.indices((height, width))
    picture = np.stack(
        [x * 255 // width, y * 255 // height, 128 + 127 * ((x // 16 + y // 16) % 2), 0 * x + 255], axis=-1
    )
    picture = np.ascontiguousarray(picture.astype(np.uint8))
    texture = make_texture(dev, picture, stream)
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    out = dev.empty(picture.shape, picture.dtype, stream=stream)
    config = LaunchConfig(grid=((width + 31) // 32, (height + 7) // 8), block=(32, 8))
    arguments = (np.int32(width), np.int32(height), np.float32(c), np.float32(s))
    launch(stream, config, kernel, texture, out, *arguments)
    result = out.to_numpy(stream=stream)
    away = np.abs(result / 255 - rotated(picture, c, s)).max()
    assert away < 0.02, away  # a texture mixes with weights of 8 bits
    texture.close()
    out.close()
    stream.close()
    print(f"a picture of {width} x {height} turned by {degrees} degrees, within {away:.3f} of NumPy's, on {dev.name}")


if __name__ == "__main__":
    main()
