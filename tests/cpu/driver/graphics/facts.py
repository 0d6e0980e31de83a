"""What the functions of graphics interop do, one fact a line: ``python -m tests.cpu.driver.graphics.facts``.

Run on a GPU, this makes the table that the CPU device is compared with (recorded.txt); see test_recorded.py.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

import numpy as np

from cupola.bindings import driver
from examples.opengl import OpenGL

NONE, READ_ONLY, WRITE_DISCARD, SURFACE, GATHER = 0, 1, 2, 4, 8
ARRAY_BUFFER, DRAW = 0x8892, 0x88E8
TEXTURES = {
    "1D": 0x0DE0, "2D": 0x0DE1, "3D": 0x806F, "RECTANGLE": 0x84F5, "CUBE_MAP": 0x8513, "1D_ARRAY": 0x8C18,
    "2D_ARRAY": 0x8C1A, "CUBE_MAP_ARRAY": 0x9009, "BUFFER": 0x8C2A, "2D_MULTISAMPLE": 0x9100, "RENDERBUFFER": 0x8D41,
}  # fmt: skip
FORMATS = {
    "R8": 0x8229, "RG8": 0x822B, "RGB8": 0x8051, "RGBA8": 0x8058, "R16": 0x822A, "RG16": 0x822C, "RGBA16": 0x805B,
    "R8_SNORM": 0x8F94, "RG8_SNORM": 0x8F95, "RGBA8_SNORM": 0x8F97, "R16_SNORM": 0x8F98, "RGBA16_SNORM": 0x8F9B,
    "R16F": 0x822D, "RG16F": 0x822F, "RGB16F": 0x881B, "RGBA16F": 0x881A, "R32F": 0x822E, "RG32F": 0x8230,
    "RGB32F": 0x8815, "RGBA32F": 0x8814, "R8I": 0x8231, "RG8I": 0x8237, "RGBA8I": 0x8D8E, "R8UI": 0x8232,
    "RG8UI": 0x8238, "RGBA8UI": 0x8D7C, "R16I": 0x8233, "RG16I": 0x8239, "RGBA16I": 0x8D88, "R16UI": 0x8234,
    "RG16UI": 0x823A, "RGBA16UI": 0x8D76, "R32I": 0x8235, "RG32I": 0x823B, "RGBA32I": 0x8D82, "R32UI": 0x8236,
    "RG32UI": 0x823C, "RGBA32UI": 0x8D70, "RGB8UI": 0x8D7D, "SRGB8_ALPHA8": 0x8C43, "RGB10_A2": 0x8059,
    "RGB10_A2UI": 0x906F, "R11F_G11F_B10F": 0x8C3A, "RGB9_E5": 0x8C3D, "RGB565": 0x8D62, "RGBA4": 0x8056,
    "RGB5_A1": 0x8057, "DEPTH_COMPONENT16": 0x81A5, "DEPTH_COMPONENT24": 0x81A6, "DEPTH_COMPONENT32F": 0x8CAC,
    "DEPTH24_STENCIL8": 0x88F0, "DEPTH32F_STENCIL8": 0x8CAD, "ALPHA8": 0x803C, "LUMINANCE8": 0x8040,
    "LUMINANCE8_ALPHA8": 0x8045, "INTENSITY8": 0x804B, "COMPRESSED_RGB_S3TC_DXT1": 0x83F0,
    "COMPRESSED_RGBA_S3TC_DXT5": 0x83F3, "COMPRESSED_RED_RGTC1": 0x8DBB, "COMPRESSED_RGBA_BPTC": 0x8E8C,
}  # fmt: skip


class Facts:
    """The functions called, each outcome a line."""

    def __init__(self, gl: OpenGL, cuda: int | None = None) -> None:
        self.gl, self.cuda = gl, cuda
        self.lines: list[str] = []

    def say(self, label: str, what: object) -> None:
        self.lines.append(f"{label}: {what}")
        print(self.lines[-1], flush=True)

    def call(self, label: str, result: tuple[Any, ...], *, show: bool = False) -> Any:
        """Note the status of a call, and what it gives if that is the same everywhere."""
        status, *values = result
        name = driver.CUresult(status).name.removeprefix("CUDA_ERROR_").removeprefix("CUDA_")
        self.say(label, f"{name} {values}" if show else name)
        return values[0] if values and not int(status) else None

    def quiet(self, result: tuple[Any, ...]) -> Any:
        status, *values = result
        if int(status):
            self.say("  a step failed", driver.CUresult(status).name)
            return None
        return values[0] if values else None


def register_buffer(name: int, flags: int = NONE) -> Any:
    return driver.cuGraphicsGLRegisterBuffer(name, flags)


def maps(resources: list[Any], stream: Any = 0) -> Any:
    return driver.cuGraphicsMapResources(len(resources), resources, stream)


def unmaps(resources: list[Any], stream: Any = 0) -> Any:
    return driver.cuGraphicsUnmapResources(len(resources), resources, stream)


def pointer(resource: Any) -> Any:
    return driver.cuGraphicsResourceGetMappedPointer(resource)


def registration(f: Facts) -> None:
    gl = f.gl
    f.call("register buffer 0", register_buffer(0))
    f.call("register buffer 9999", register_buffer(9999))
    f.call("register a name that was never bound", register_buffer(gl.name("Buffers")))
    empty = gl.name("Buffers")
    gl.BindBuffer(ARRAY_BUFFER, empty)
    f.call("register a buffer without storage", register_buffer(empty))
    f.call("register a buffer of 0 bytes", register_buffer(gl.buffer(0)))
    for flags in (1, 2, 3, 4, 5, 6, 8, 16, 32, 0x100, 0xFFFFFFFF):
        resource = f.call(f"register a buffer with flags {flags:#x}", register_buffer(gl.buffer(64), flags))
        if resource is not None:
            f.call("  unregister", driver.cuGraphicsUnregisterResource(resource))
    name = gl.buffer(64)
    first = f.call("register a buffer", register_buffer(name))
    second = f.call("register it again", register_buffer(name))
    if second is not None:
        f.say("  the same resource", int(first) == int(second))
        f.call("  map both", maps([first, second]))
        f.call("  unmap both", unmaps([first, second]))
        f.call("  unregister the second", driver.cuGraphicsUnregisterResource(second))
    f.call("  unregister the first", driver.cuGraphicsUnregisterResource(first))
    f.call("unregister twice", driver.cuGraphicsUnregisterResource(first))
    f.call("map what was unregistered", maps([first]))
    f.call("unregister 0", driver.cuGraphicsUnregisterResource(0))
    f.call("map 0", maps([0]))
    one = f.quiet(register_buffer(gl.buffer(64)))
    f.call("map no resources", driver.cuGraphicsMapResources(0, [one], 0))
    f.call("unmap no resources", driver.cuGraphicsUnmapResources(0, [one], 0))
    f.call("set map flags 0", driver.cuGraphicsResourceSetMapFlags(one, 0))
    f.call("set map flags 1", driver.cuGraphicsResourceSetMapFlags(one, 1))
    f.call("set map flags 2", driver.cuGraphicsResourceSetMapFlags(one, 2))
    f.call("set map flags 3", driver.cuGraphicsResourceSetMapFlags(one, 3))
    f.call("set map flags 4", driver.cuGraphicsResourceSetMapFlags(one, 4))
    f.call("set map flags of 0", driver.cuGraphicsResourceSetMapFlags(0, 0))
    f.quiet(maps([one]))
    f.call("set map flags of a mapped resource", driver.cuGraphicsResourceSetMapFlags(one, 1))
    f.quiet(unmaps([one]))
    f.quiet(driver.cuGraphicsUnregisterResource(one))


def mapping(f: Facts) -> None:
    gl = f.gl
    start = np.arange(100, dtype=np.uint8)
    name = gl.buffer(100, start)
    one, two = f.quiet(register_buffer(name)), f.quiet(register_buffer(gl.buffer(64)))
    f.call("pointer of what is not mapped", pointer(one))
    f.call("unmap what is not mapped", unmaps([one]))
    f.call("map", maps([one]))
    f.call("map what is mapped", maps([one]))
    f.call("map a list of which one is mapped", maps([two, one]))
    f.call("  is the other mapped then", pointer(two))
    status, address, size = pointer(one)
    f.say("pointer", f"{driver.CUresult(status).name} {size} bytes, multiple of 256: {int(address) % 256 == 0}")
    attributes = driver.CUpointer_attribute
    for attribute in ("MEMORY_TYPE", "IS_MANAGED", "MAPPED", "RANGE_SIZE", "DEVICE_ORDINAL", "ACCESS_FLAGS",
                      "IS_LEGACY_CUDA_IPC_CAPABLE", "MEMPOOL_HANDLE"):  # fmt: skip
        value = driver.cuPointerGetAttribute(attributes[f"CU_POINTER_ATTRIBUTE_{attribute}"], address)
        f.say(f"  {attribute}", [str(v) for v in value[1:]] if not int(value[0]) else value[0].name)
    status, base, extent = driver.cuMemGetAddressRange(address)
    f.say("  address range", f"{status.name} offset {int(address) - int(base)} {extent} bytes")
    data = np.zeros(100, np.uint8)
    f.quiet(driver.cuMemcpyDtoH(data.ctypes.data, address, 100))
    f.say("  CUDA sees what OpenGL wrote", bool((data == start).all()))
    f.call("  a byte behind the end", driver.cuMemcpyDtoH(data.ctypes.data, int(address) + 100, 1))
    f.quiet(driver.cuMemsetD8(address, 7, 50))
    f.call("unregister what is mapped", driver.cuGraphicsUnregisterResource(one))
    f.call("  is it still mapped", unmaps([one]))
    after = gl.read_buffer(name, 100)
    f.say("  OpenGL sees what CUDA wrote", bool((after[:50] == 7).all() and (after[50:] == start[50:]).all()))
    f.call("  map it again", maps([one]))
    f.call("map a list with the same twice", maps([two, two]))
    f.call("  unmap it", unmaps([two]))
    f.call("  unmap it again", unmaps([two]))
    f.call("map two", maps([two, f.quiet(register_buffer(gl.buffer(10)))]))
    f.call("unmap a list of which one is not mapped", unmaps([two, one]))
    f.call("  unmap the mapped one", unmaps([two]))
    f.call("unmap twice in one list", (f.quiet(maps([two])), unmaps([two, two]))[1])
    f.call("  unmap it", unmaps([two]))
    f.quiet(maps([two]))
    f.call("array of a buffer", driver.cuGraphicsSubResourceGetMappedArray(two, 0, 0))
    f.call("mipmapped array of a buffer", driver.cuGraphicsResourceGetMappedMipmappedArray(two))
    f.quiet(unmaps([two]))
    stream = f.quiet(driver.cuStreamCreate(1))
    f.quiet(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    f.call("map in a capture", maps([two], stream))
    f.call("unmap in a capture", unmaps([two], stream))
    f.call("end the capture", driver.cuStreamEndCapture(stream))
    f.call("unmap after it", unmaps([two]))


def discards(f: Facts) -> None:
    gl = f.gl
    for flags in (READ_ONLY, WRITE_DISCARD):
        name = gl.buffer(64, np.full(64, 5, np.uint8))
        one = f.quiet(register_buffer(name, flags))
        f.quiet(maps([one]))
        address = pointer(one)[1]
        f.call(f"write with flags {flags}", driver.cuMemsetD8(address, 9, 32))
        f.quiet(unmaps([one]))
        f.say("  OpenGL then sees", sorted(set(gl.read_buffer(name, 64)[:32].tolist())))
        f.say("  and behind it", sorted(set(gl.read_buffer(name, 64)[32:].tolist())))
        f.quiet(driver.cuGraphicsUnregisterResource(one))


def changes_of_buffers(f: Facts) -> None:
    gl = f.gl
    name = gl.buffer(64)
    one = f.quiet(register_buffer(name))
    gl.BindBuffer(ARRAY_BUFFER, name)
    gl.BufferData(ARRAY_BUFFER, 256, None, DRAW)
    f.say("new storage for a registered buffer: OpenGL's error", hex(gl.GetError()))
    f.call("  map", maps([one]))
    status, address, size = pointer(one)
    f.say("  size", f"{driver.CUresult(status).name} {size}")
    gl.BufferSubData(ARRAY_BUFFER, 0, 1, np.zeros(1, np.uint8).ctypes.data)
    f.say("  OpenGL writes to the mapped buffer: its error", hex(gl.GetError()))
    f.call("  unmap", unmaps([one]))
    gl.DeleteBuffers(1, (ctypes.c_uint * 1)(name))
    f.say("a registered buffer is deleted: OpenGL's error", hex(gl.GetError()))
    f.call("  map", maps([one]))
    f.call("  unmap", unmaps([one]))
    f.call("  unregister", driver.cuGraphicsUnregisterResource(one))
    name = gl.buffer(64)
    one = f.quiet(register_buffer(name))
    f.quiet(maps([one]))
    gl.DeleteBuffers(1, (ctypes.c_uint * 1)(name))
    f.say("a mapped buffer is deleted: OpenGL's error", hex(gl.GetError()))
    f.call("  unmap", unmaps([one]))
    f.call("  unregister", driver.cuGraphicsUnregisterResource(one))


def other_threads(f: Facts) -> None:
    gl = f.gl
    context = driver.cuCtxGetCurrent()[1]
    one = f.quiet(register_buffer(gl.buffer(64)))

    def elsewhere() -> None:
        f.call("thread without any context: map", maps([one]))
        driver.cuCtxSetCurrent(context)
        f.call("thread without OpenGL: register", register_buffer(1))
        f.call("thread without OpenGL: devices", driver.cuGLGetDevices(8, 1)[:1])
        f.call("thread without OpenGL: map", maps([one]))
        f.call("thread without OpenGL: pointer", pointer(one))
        f.call("thread without OpenGL: unmap", unmaps([one]))
        f.call("thread without OpenGL: unregister", driver.cuGraphicsUnregisterResource(one))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    one = f.quiet(register_buffer(gl.buffer(64)))
    gl.release()
    f.call("context of OpenGL released: map", maps([one]))
    f.call("context of OpenGL released: pointer", pointer(one))
    f.call("context of OpenGL released: unmap", unmaps([one]))
    gl.make_current()
    for value in (1, 2, 3, 0, 4):
        status, count, *devices = driver.cuGLGetDevices(8, value)
        f.say(f"devices of list {value}", f"{driver.CUresult(status).name} {count if not int(status) else ''}")
    f.call("devices, room for none", driver.cuGLGetDevices(0, 1)[:1])


def make_texture(gl: OpenGL, target: str, format: int, size: int = 16, levels: int = 1) -> int:
    number = TEXTURES[target]
    if target == "RENDERBUFFER":
        name = gl.name("Renderbuffers")
        gl.BindRenderbuffer(number, name)
        gl.RenderbufferStorage(number, format, size, size)
        return name
    name = gl.name("Textures")
    gl.BindTexture(number, name)
    if target == "BUFFER":
        gl.TexBuffer(number, format, gl.buffer(size * 16))
    elif target == "1D":
        gl.TexStorage1D(number, levels, format, size)
    elif target == "2D_MULTISAMPLE":
        gl.TexStorage2DMultisample(number, 4, format, size, size, 1)
    elif target in {"2D", "RECTANGLE", "CUBE_MAP", "1D_ARRAY"}:
        gl.TexStorage2D(number, levels, format, size, size)
    else:
        gl.TexStorage3D(number, levels, format, size, size, 12)
    return name


def array_of(f: Facts, label: str, resource: Any, index: int = 0, level: int = 0) -> None:
    status, array = driver.cuGraphicsSubResourceGetMappedArray(resource, index, level)
    if int(status):
        f.say(label, driver.CUresult(status).name)
        return
    status, d = driver.cuArray3DGetDescriptor(array)
    f.say(label, f"{d.Width}x{d.Height}x{d.Depth} {d.Format.name} x{d.NumChannels} flags {d.Flags:#x}")


def images(f: Facts) -> None:
    gl = f.gl
    f.call("register image 0", driver.cuGraphicsGLRegisterImage(0, TEXTURES["2D"], 0))
    f.call("register image 9999", driver.cuGraphicsGLRegisterImage(9999, TEXTURES["2D"], 0))
    empty = gl.name("Textures")
    gl.BindTexture(TEXTURES["2D"], empty)
    f.call("register an image without storage", driver.cuGraphicsGLRegisterImage(empty, TEXTURES["2D"], 0))
    f.call("register with target 0", driver.cuGraphicsGLRegisterImage(make_texture(gl, "2D", FORMATS["RGBA8"]), 0, 0))
    other = make_texture(gl, "3D", FORMATS["RGBA8"])
    f.call("register a 3D texture as 2D", driver.cuGraphicsGLRegisterImage(other, TEXTURES["2D"], 0))
    for target, number in TEXTURES.items():
        gl.GetError()
        name = make_texture(gl, target, FORMATS["RGBA8"])
        if error := gl.GetError():
            f.say(f"target {target}", f"OpenGL's error {error:#x}")
            continue
        resource = f.call(f"target {target}", driver.cuGraphicsGLRegisterImage(name, number, 0))
        if resource is None:
            continue
        f.call("  map", maps([resource]))
        array_of(f, "  array", resource)
        array_of(f, "  index 1", resource, 1)
        array_of(f, "  level 1", resource, 0, 1)
        f.call("  pointer", pointer(resource))
        f.call("  mipmapped array", driver.cuGraphicsResourceGetMappedMipmappedArray(resource))
        f.call("  unmap", unmaps([resource]))
        f.call("  unregister", driver.cuGraphicsUnregisterResource(resource))
    for flags in (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 0x100):
        name = make_texture(gl, "2D", FORMATS["RGBA8"])
        resource = f.call(f"image with flags {flags:#x}", driver.cuGraphicsGLRegisterImage(name, TEXTURES["2D"], flags))
        if resource is not None:
            f.quiet(maps([resource]))
            array_of(f, "  array", resource)
            f.quiet(unmaps([resource]))
            f.quiet(driver.cuGraphicsUnregisterResource(resource))


def formats(f: Facts) -> None:
    gl = f.gl
    for name, number in FORMATS.items():
        for flags in (NONE, SURFACE):
            gl.GetError()
            texture = make_texture(gl, "2D", number)
            if error := gl.GetError():
                f.say(f"format {name}", f"OpenGL's error {error:#x}")
                break
            status, resource = driver.cuGraphicsGLRegisterImage(texture, TEXTURES["2D"], flags)
            label = f"format {name} flags {flags}"
            if int(status):
                f.say(label, driver.CUresult(status).name)
                continue
            f.quiet(maps([resource]))
            array_of(f, label, resource)
            f.quiet(unmaps([resource]))
            f.quiet(driver.cuGraphicsUnregisterResource(resource))


def mipmaps(f: Facts) -> None:
    gl = f.gl
    texture = make_texture(gl, "2D", FORMATS["RGBA8"], 16, 3)
    one = f.quiet(driver.cuGraphicsGLRegisterImage(texture, TEXTURES["2D"], SURFACE))
    f.call("array of what is not mapped", driver.cuGraphicsSubResourceGetMappedArray(one, 0, 0))
    f.call("mipmapped array of what is not mapped", driver.cuGraphicsResourceGetMappedMipmappedArray(one))
    f.quiet(maps([one]))
    for level in range(4):
        array_of(f, f"three levels: level {level}", one, 0, level)
    status, mipmapped = driver.cuGraphicsResourceGetMappedMipmappedArray(one)
    f.say("three levels: mipmapped array", driver.CUresult(status).name)
    if not int(status):
        for level in range(4):
            f.call(f"  level {level}", driver.cuMipmappedArrayGetLevel(mipmapped, level))
    array = f.quiet(driver.cuGraphicsSubResourceGetMappedArray(one, 0, 0))
    again = f.quiet(driver.cuGraphicsSubResourceGetMappedArray(one, 0, 0))
    f.say("the same array when asked again", int(array) == int(again))
    resource = driver.CUDA_RESOURCE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    resource.res.array.hArray = array
    surface = f.call("a surface of it", driver.cuSurfObjectCreate(resource))
    if surface is not None:
        f.quiet(driver.cuSurfObjectDestroy(surface))
    texture_object = f.call("a texture of it", driver.cuTexObjectCreate(resource, driver.CUDA_TEXTURE_DESC(), None))
    if texture_object is not None:
        f.quiet(driver.cuTexObjectDestroy(texture_object))
    f.quiet(unmaps([one]))
    f.call("descriptor of an array that was unmapped", driver.cuArray3DGetDescriptor(array)[:1])
    f.quiet(maps([one]))
    next_ = f.quiet(driver.cuGraphicsSubResourceGetMappedArray(one, 0, 0))
    f.say("the same array in the next mapping", int(array) == int(next_))
    f.quiet(unmaps([one]))
    f.call("unregister", driver.cuGraphicsUnregisterResource(one))
    plain = make_texture(gl, "2D", FORMATS["RGBA8"], 16, 1)
    one = f.quiet(driver.cuGraphicsGLRegisterImage(plain, TEXTURES["2D"], NONE))
    f.quiet(maps([one]))
    resource.res.array.hArray = f.quiet(driver.cuGraphicsSubResourceGetMappedArray(one, 0, 0))
    surface = f.call("a surface without the flag", driver.cuSurfObjectCreate(resource))
    if surface is not None:
        f.quiet(driver.cuSurfObjectDestroy(surface))
    f.quiet(unmaps([one]))
    f.quiet(driver.cuGraphicsUnregisterResource(one))


def pixels(f: Facts) -> None:
    """Bytes there and back."""
    gl = f.gl
    for name, format, kind, dtype, channels in (
        ("RGBA8", 0x1908, 0x1401, np.uint8, 4),
        ("R32F", 0x1903, 0x1406, np.float32, 1),
        ("RG16F", 0x8227, 0x140B, np.float16, 2),
        ("RGBA32UI", 0x8D99, 0x1405, np.uint32, 4),
    ):
        texture = make_texture(gl, "2D", FORMATS[name])
        data = (np.arange(16 * 16 * channels) % 120).astype(dtype)
        gl.TexSubImage2D(TEXTURES["2D"], 0, 0, 0, 16, 16, format, kind, data.ctypes.data)
        one = f.quiet(driver.cuGraphicsGLRegisterImage(texture, TEXTURES["2D"], NONE))
        f.quiet(maps([one]))
        array = f.quiet(driver.cuGraphicsSubResourceGetMappedArray(one, 0, 0))
        seen, form = np.zeros_like(data), driver.CUDA_MEMCPY2D()
        row = data.nbytes // 16
        form.srcMemoryType, form.srcArray = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY, array
        form.dstMemoryType, form.dstHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, seen.ctypes.data
        form.dstPitch, form.WidthInBytes, form.Height = row, row, 16
        f.quiet(driver.cuMemcpy2D(form))
        f.say(f"pixels of {name}: CUDA sees OpenGL's", bool((seen == data).all()))
        seen = seen[::-1].copy()
        form = driver.CUDA_MEMCPY2D()
        form.dstMemoryType, form.dstArray = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY, array
        form.srcMemoryType, form.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, seen.ctypes.data
        form.srcPitch, form.WidthInBytes, form.Height = row, row, 16
        f.quiet(driver.cuMemcpy2D(form))
        f.quiet(driver.cuCtxSynchronize())
        f.quiet(unmaps([one]))
        back = np.zeros_like(data)
        gl.BindTexture(TEXTURES["2D"], texture)
        gl.GetTexImage(TEXTURES["2D"], 0, format, kind, back.ctypes.data)
        f.say(f"pixels of {name}: OpenGL sees CUDA's", bool((back == seen).all()))
        f.quiet(driver.cuGraphicsUnregisterResource(one))


def more(f: Facts) -> None:
    """Images that CUDA may only read, mapped pointers that are freed, other contexts of OpenGL."""
    gl = f.gl
    texture = make_texture(gl, "2D", FORMATS["RGBA8"])
    data, seen = np.full(1024, 5, np.uint8), np.full(1024, 9, np.uint8)
    for flags in (READ_ONLY, WRITE_DISCARD):
        gl.BindTexture(TEXTURES["2D"], texture)
        gl.TexSubImage2D(TEXTURES["2D"], 0, 0, 0, 16, 16, 0x1908, 0x1401, data.ctypes.data)
        one = f.quiet(driver.cuGraphicsGLRegisterImage(texture, TEXTURES["2D"], flags))
        f.quiet(maps([one]))
        array = f.quiet(driver.cuGraphicsSubResourceGetMappedArray(one, 0, 0))
        form = driver.CUDA_MEMCPY2D()
        form.dstMemoryType, form.dstArray = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY, array
        form.srcMemoryType, form.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, seen.ctypes.data
        form.srcPitch, form.WidthInBytes, form.Height = 64, 64, 8
        f.call(f"write to an image with flags {flags}", driver.cuMemcpy2D(form))
        f.quiet(driver.cuCtxSynchronize())
        f.quiet(unmaps([one]))
        back = np.zeros(1024, np.uint8)
        gl.GetTexImage(TEXTURES["2D"], 0, 0x1908, 0x1401, back.ctypes.data)
        f.say("  OpenGL then sees", f"{back[0]} {back[-1]}")
        f.quiet(driver.cuGraphicsUnregisterResource(one))
    name = gl.buffer(64, data)
    one = f.quiet(register_buffer(name))
    f.quiet(maps([one]))
    first = f.quiet(pointer(one)[:2])
    f.quiet(unmaps([one]))
    f.quiet(maps([one]))
    f.say("the same pointer in the next mapping", int(first) == int(f.quiet(pointer(one)[:2])))
    f.quiet(unmaps([one]))
    f.call("read the pointer of a buffer that was unmapped", driver.cuMemcpyDtoH(seen.ctypes.data, first, 64))
    with OpenGL(f.cuda) as other:
        f.call("another context of OpenGL is current: map", maps([one]))
        f.call("  unmap", unmaps([one]))
        f.call("  register its buffer", register_buffer(other.buffer(64)))
    gl.make_current()
    f.quiet(maps([one]))
    f.call("free a mapped pointer", driver.cuMemFree(first))


def ends(f: Facts) -> None:
    gl = f.gl
    one, two = f.quiet(register_buffer(gl.buffer(64))), f.quiet(register_buffer(gl.buffer(64)))
    f.quiet(maps([two]))
    gl.close()
    f.call("context of OpenGL destroyed: map", maps([one]))
    f.call("context of OpenGL destroyed: unmap", unmaps([two]))
    f.call("context of OpenGL destroyed: unregister", driver.cuGraphicsUnregisterResource(one))


PARTS = (
    registration, mapping, discards, changes_of_buffers, other_threads, images, formats, mipmaps, pixels, more, ends,
)  # fmt: skip


def main() -> None:
    from cupola import Device

    dev = Device()
    dev.set_current()
    cuda = None if dev.name.startswith("cupola") else 0
    wanted = sys.argv[1:]
    for part in PARTS:
        if wanted and part.__name__ not in wanted:
            continue
        print(f"# {part.__name__}", flush=True)
        with OpenGL(cuda) as gl:
            part(Facts(gl, cuda))


if __name__ == "__main__":
    main()
