"""Smoke in a box: textures carry it along, surfaces store it, and OpenGL draws it where there is OpenGL.

    python examples/fluid.py                                   # small and quick, checks itself
    python examples/fluid.py --width 256 --frames 300 --save smoke.png

Each step moves velocity and smoke backwards along the velocity ("Stable Fluids", Stam 1999), pushes the smoke, and
takes away what would compress it. Reading between the cells is what textures with a linear filter do.
"""

import argparse
import struct
import zlib
from pathlib import Path

import numpy as np
from arrays import build
from opengl import (
    COLOR_ATTACHMENT0,
    FRAMEBUFFER,
    RGBA,
    RGBA8,
    TEXTURE_2D,
    UNSIGNED_BYTE,
    LostContext,
    NoOpenGL,
    OpenGL,
)

from cupola import Device, GraphicsResource, Kernel, LaunchConfig, Stream, launch
from cupola.texture import OpaqueArray, OpaqueArrayOptions, ResourceDescriptor

SOURCE = r"""
#define CELL const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; \
    if (x >= width || y >= height) return

// Where the air in a cell was `dt` ago. A cell is velocity (x, y), smoke, and heat.
extern "C" __global__ void carry(cudaTextureObject_t from, cudaSurfaceObject_t to, int width, int height, float dt) {
    CELL;
    const float4 here = tex2D<float4>(from, x + 0.5f, y + 0.5f);
    const float4 there = tex2D<float4>(from, x + 0.5f - dt * here.x, y + 0.5f - dt * here.y);
    surf2Dwrite(there, to, 16 * x, y);
}

// Two fires blow in turn; heat rises and fades.
extern "C" __global__ void push(cudaTextureObject_t from, cudaSurfaceObject_t to, int width, int height, float time) {
    CELL;
    float4 cell = tex2D<float4>(from, x + 0.5f, y + 0.5f);
    const float size = 0.05f * width;
    for (int i = 0; i < 2; i++) {
        const float u = x - (i ? 0.65f : 0.35f) * width, v = y - 0.12f * height;
        const float fire = __expf(-(u * u + v * v) / (size * size));
        cell.x += fire * (i ? -1.0f : 1.0f) * (0.4f + 0.6f * sinf(0.13f * time + i));
        cell.z += 0.10f * fire * (1.0f - cell.z);
        cell.w += 0.25f * fire * (1.0f - cell.w);
    }
    cell.y += 0.16f * cell.w;
    cell.w *= 0.985f;
    cell.z *= 0.998f;
    surf2Dwrite(cell, to, 16 * x, y);
}

extern "C" __global__ void divergence(cudaTextureObject_t air, float* out, int width, int height) {
    CELL;
    out[y * width + x] = 0.5f * (tex2D<float4>(air, x + 1.5f, y + 0.5f).x - tex2D<float4>(air, x - 0.5f, y + 0.5f).x +
                                 tex2D<float4>(air, x + 0.5f, y + 1.5f).y - tex2D<float4>(air, x + 0.5f, y - 0.5f).y);
}

__device__ float at(const float* field, int x, int y, int width, int height) {
    return field[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)];
}

extern "C" __global__ void relax(const float* pressure, const float* divergence, float* out, int width, int height) {
    CELL;
    out[y * width + x] = 0.25f * (at(pressure, x - 1, y, width, height) + at(pressure, x + 1, y, width, height) +
                                  at(pressure, x, y - 1, width, height) + at(pressure, x, y + 1, width, height) -
                                  divergence[y * width + x]);
}

extern "C" __global__ void settle(cudaTextureObject_t from, const float* pressure, cudaSurfaceObject_t to, int width,
                                  int height) {
    CELL;
    float4 cell = tex2D<float4>(from, x + 0.5f, y + 0.5f);
    cell.x -= 0.5f * (at(pressure, x + 1, y, width, height) - at(pressure, x - 1, y, width, height));
    cell.y -= 0.5f * (at(pressure, x, y + 1, width, height) - at(pressure, x, y - 1, width, height));
    if (x == 0 || x == width - 1) cell.x = 0;
    if (y == 0 || y == height - 1) cell.y = 0;
    surf2Dwrite(cell, to, 16 * x, y);
}

extern "C" __global__ void paint(cudaTextureObject_t air, cudaSurfaceObject_t picture, int width, int height) {
    CELL;
    const float4 cell = tex2D<float4>(air, x + 0.5f, y + 0.5f);
    const float smoke = __saturatef(cell.z), glow = __saturatef(2.0f * cell.w);
    const float red = 0.05f + 0.55f * smoke + glow, green = 0.07f + 0.6f * smoke + 0.4f * glow * glow;
    const float blue = 0.12f + 0.75f * smoke;
    const uchar4 color = make_uchar4(255 * __saturatef(red), 255 * __saturatef(green), 255 * __saturatef(blue), 255);
    surf2Dwrite(color, picture, 4 * x, y);
}
"""

VERTEX = """
#version 130
out vec2 place;
void main() {
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
    place = corner;
    gl_Position = vec4(2.0 * corner - 1.0, 0.0, 1.0);
}
"""
FRAGMENT = """
#version 130
in vec2 place;
out vec4 color;
uniform sampler2D picture;
void main() { color = texture(picture, vec2(place.x, 1.0 - place.y)); }  // the sky is above
"""


class Grid:
    """One state of the air, as an array with a texture to read and a surface to write."""

    def __init__(self, dev: Device, width: int, height: int) -> None:
        options = OpaqueArrayOptions((width, height), "float32", 4, is_surface_load_store=True)
        self.array = dev.create_opaque_array(options)
        resource = ResourceDescriptor.from_opaque_array(self.array)
        self.texture = dev.create_texture_object(
            resource=resource, options={"filter_mode": "linear", "address_mode": "clamp"}
        )
        self.surface = dev.create_surface_object(resource=resource)


class Smoke:
    """The simulation."""

    def __init__(self, dev: Device, stream: Stream, width: int, height: int, relaxations: int = 30) -> None:
        self.stream, self.relaxations = stream, relaxations
        self.size = np.int32(width), np.int32(height)
        code = build(dev, SOURCE)
        names = ("carry", "push", "divergence", "relax", "settle", "paint")
        self.kernels: dict[str, Kernel] = {name: code.get_kernel(name) for name in names}
        self.config = LaunchConfig(grid=((width + 31) // 32, (height + 7) // 8), block=(32, 8))
        self.now, self.next = Grid(dev, width, height), Grid(dev, width, height)
        self.now.array.copy_from(np.zeros((height, width, 4), np.float32), stream=stream)
        self.divergence, self.pressure, self.other = (dev.allocate(4 * width * height, stream=stream) for _ in range(3))
        self.pressure.fill(0, stream=stream)
        self.time = 0

    def run(self, name: str, *arguments: object) -> None:
        launch(self.stream, self.config, self.kernels[name], *arguments)

    def swap(self) -> None:
        self.now, self.next = self.next, self.now

    def step(self) -> None:
        self.run("carry", self.now.texture, self.next.surface, *self.size, np.float32(1))
        self.swap()
        self.run("push", self.now.texture, self.next.surface, *self.size, np.float32(self.time))
        self.swap()
        self.run("divergence", self.now.texture, self.divergence, *self.size)
        for _ in range(self.relaxations):
            self.run("relax", self.pressure, self.divergence, self.other, *self.size)
            self.pressure, self.other = self.other, self.pressure
        self.run("settle", self.now.texture, self.pressure, self.next.surface, *self.size)
        self.swap()
        self.time += 1

    def paint(self, dev: Device, picture: OpaqueArray) -> None:
        """Make a picture of the smoke in an array of bytes."""
        with dev.create_surface_object(resource=ResourceDescriptor.from_opaque_array(picture)) as surface:
            self.run("paint", self.now.texture, surface, *self.size)
            self.stream.sync()  # before the surface ends


def pictured(dev: Device, smoke: Smoke, width: int, height: int) -> np.ndarray:
    """The picture by CUDA alone."""
    with dev.create_opaque_array(OpaqueArrayOptions((width, height), "uint8", 4, is_surface_load_store=True)) as array:
        smoke.paint(dev, array)
        picture = array.copy_to(np.empty((height, width, 4), np.uint8), stream=smoke.stream)
        smoke.stream.sync()
    return picture[::-1]


def drawn(gl: OpenGL, dev: Device, smoke: Smoke, width: int, height: int) -> np.ndarray:
    """The picture as OpenGL draws it: CUDA paints a texture of OpenGL, which a shader turns and puts on the screen."""
    painted, screen = gl.name("Textures"), gl.name("Textures")
    for name in (painted, screen):
        gl.BindTexture(TEXTURE_2D, name)
        gl.TexStorage2D(TEXTURE_2D, 1, RGBA8, width, height)
        for what in (0x2800, 0x2801):  # GL_TEXTURE_MAG_FILTER, GL_TEXTURE_MIN_FILTER
            gl.TexParameteri(TEXTURE_2D, what, 0x2600)  # GL_NEAREST
    resource = GraphicsResource.from_gl_image(painted, TEXTURE_2D, flags="surface_load_store")
    with resource:
        smoke.paint(dev, resource.map_array(stream=smoke.stream))
        resource.unmap()
        gl.BindFramebuffer(FRAMEBUFFER, gl.name("Framebuffers"))
        gl.FramebufferTexture2D(FRAMEBUFFER, COLOR_ATTACHMENT0, TEXTURE_2D, screen, 0)
        gl.BindVertexArray(gl.name("VertexArrays"))
        gl.BindTexture(TEXTURE_2D, painted)
        gl.UseProgram(gl.program(VERTEX, FRAGMENT))
        gl.Viewport(0, 0, width, height)
        gl.DrawArrays(0x0005, 0, 4)  # GL_TRIANGLE_STRIP
        picture = np.zeros((height, width, 4), np.uint8)
        gl.ReadPixels(0, 0, width, height, RGBA, UNSIGNED_BYTE, picture.ctypes.data)
    gl.check("while drawing")
    if not picture[..., 3].all():  # CUDA has painted all of it opaque
        raise LostContext("OpenGL has drawn nothing, and reports no error")
    return picture


def drawn_by_opengl(dev: Device, smoke: Smoke, width: int, height: int) -> tuple[np.ndarray, str]:
    """The picture, and the name of what has drawn it. A context that a fault of another program ended is made anew."""
    tries = 3
    while True:
        with OpenGL(None if dev.name.startswith("cupola") else dev.device_id) as gl:
            try:
                return drawn(gl, dev, smoke, width, height), gl.GetString(0x1F01).decode()
            except LostContext:
                tries -= 1
                if not tries:
                    raise


def write_png(path: Path, picture: np.ndarray) -> None:
    """Write a picture of shape (rows, columns, 4) as RGB. Each pixel is told by how it differs from that above it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = picture[..., :3].astype(np.int16)
    above = np.concatenate([0 * rows[:1], rows[:-1]])
    lines = ((rows - above) % 256).astype(np.uint8).reshape(len(rows), -1)
    data = b"".join(b"\x02" + line.tobytes() for line in lines)
    header = struct.pack(">IIBBBBB", picture.shape[1], picture.shape[0], 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)


def carried(field: np.ndarray) -> np.ndarray:
    """What the kernel `carry` does, by NumPy."""
    height, width, _ = field.shape
    y, x = np.indices((height, width))
    u = np.clip(x - field[..., 0], 0, width - 1)
    v = np.clip(y - field[..., 1], 0, height - 1)
    left, top = np.floor(u).astype(int), np.floor(v).astype(int)
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    a, b = (u - left)[..., None], (v - top)[..., None]
    upper = (1 - a) * field[top, left] + a * field[top, right]
    lower = (1 - a) * field[bottom, left] + a * field[bottom, right]
    result: np.ndarray = (1 - b) * upper + b * lower
    return result


def state(grid: Grid, smoke: Smoke) -> np.ndarray:
    width, height = map(int, smoke.size)
    field = grid.array.copy_to(np.empty((height, width, 4), np.float32), stream=smoke.stream)
    smoke.stream.sync()
    return field


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--save", type=Path, help="write the last frame there, as PNG")
    options = parser.parse_args()
    width, height = options.width, options.width * 5 // 8
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    smoke = Smoke(dev, stream, width, height)
    for _ in range(options.frames):
        smoke.step()

    before = state(smoke.now, smoke)
    smoke.run("carry", smoke.now.texture, smoke.next.surface, *smoke.size, np.float32(1))
    away = float(np.abs(state(smoke.next, smoke) - carried(before)).max())
    assert away < 0.02 * np.abs(before).max(), away  # a texture mixes with weights of 8 bits
    assert before[..., 2].max() > 0.1, "there is no smoke"

    picture = pictured(dev, smoke, width, height)
    how = "drawn by CUDA alone"
    try:
        seen, name = drawn_by_opengl(dev, smoke, width, height)
        assert (seen == picture).all(), "OpenGL draws another picture"
        how = f"drawn by OpenGL ({name})"
    except NoOpenGL:
        pass
    if options.save:
        write_png(options.save, picture)
    print(f"{options.frames} frames of {width} x {height}, within {away:.4f} of NumPy's, {how}, on {dev.name}")


if __name__ == "__main__":
    main()
