"""OpenGL without a window, for the examples: a context from EGL, and those functions of OpenGL that they call.

Programs with windows get their context from GLFW, SDL, Qt or the like, and call OpenGL through PyOpenGL or moderngl.
None of these is needed here: EGL makes contexts without a display, of a GPU (EGL_EXT_platform_device) or of Mesa's
software renderer (EGL_MESA_platform_surfaceless), and ``ctypes`` calls the functions.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from typing import Any

import numpy as np

# From eglext.h and egl.h.
PLATFORM_DEVICE, PLATFORM_SURFACELESS = 0x313F, 0x31DD
EXTENSIONS, OPENGL_API, OPENGL_BIT, PBUFFER_BIT = 0x3055, 0x30A2, 0x8, 0x1
SURFACE_TYPE, RENDERABLE_TYPE, NONE, WIDTH, HEIGHT = 0x3033, 0x3040, 0x3038, 0x3057, 0x3056
CUDA_DEVICE, RESET_NOTIFICATION_STRATEGY, LOSE_CONTEXT_ON_RESET = 0x323A, 0x31BD, 0x31BF

# Functions of OpenGL: what they take. None of them gives anything back but those in RESULTS.
SIZES, NAMES, TEXT = POINTER(c_int), POINTER(c_uint), POINTER(c_char_p)
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "glAttachShader": (c_uint, c_uint),
    "glBindBuffer": (c_uint, c_uint),
    "glBindFramebuffer": (c_uint, c_uint),
    "glBindRenderbuffer": (c_uint, c_uint),
    "glBindTexture": (c_uint, c_uint),
    "glBindVertexArray": (c_uint,),
    "glBufferData": (c_uint, c_size_t, c_void_p, c_uint),
    "glBufferSubData": (c_uint, c_size_t, c_size_t, c_void_p),
    "glCheckFramebufferStatus": (c_uint,),
    "glClear": (c_uint,),
    "glClearColor": (c_float, c_float, c_float, c_float),
    "glCompileShader": (c_uint,),
    "glCreateProgram": (),
    "glCreateShader": (c_uint,),
    "glDeleteBuffers": (c_int, NAMES),
    "glDeleteRenderbuffers": (c_int, NAMES),
    "glDeleteTextures": (c_int, NAMES),
    "glDrawArrays": (c_uint, c_int, c_int),
    "glEnable": (c_uint,),
    "glEnableVertexAttribArray": (c_uint,),
    "glFinish": (),
    "glFramebufferRenderbuffer": (c_uint, c_uint, c_uint, c_uint),
    "glFramebufferTexture2D": (c_uint, c_uint, c_uint, c_uint, c_int),
    "glGenBuffers": (c_int, NAMES),
    "glGenFramebuffers": (c_int, NAMES),
    "glGenRenderbuffers": (c_int, NAMES),
    "glGenTextures": (c_int, NAMES),
    "glGenVertexArrays": (c_int, NAMES),
    "glGetBufferSubData": (c_uint, c_size_t, c_size_t, c_void_p),
    "glGetError": (),
    "glGetGraphicsResetStatus": (),
    "glGetIntegerv": (c_uint, SIZES),
    "glGetShaderInfoLog": (c_uint, c_int, SIZES, c_void_p),
    "glGetShaderiv": (c_uint, c_uint, SIZES),
    "glGetString": (c_uint,),
    "glGetTexImage": (c_uint, c_int, c_uint, c_uint, c_void_p),
    "glLinkProgram": (c_uint,),
    "glPixelStorei": (c_uint, c_int),
    "glReadPixels": (c_int, c_int, c_int, c_int, c_uint, c_uint, c_void_p),
    "glRenderbufferStorage": (c_uint, c_uint, c_int, c_int),
    "glRenderbufferStorageMultisample": (c_uint, c_int, c_uint, c_int, c_int),
    "glShaderSource": (c_uint, c_int, TEXT, SIZES),
    "glTexBuffer": (c_uint, c_uint, c_uint),
    "glTexParameteri": (c_uint, c_uint, c_int),
    "glTexStorage1D": (c_uint, c_int, c_uint, c_int),
    "glTexStorage2D": (c_uint, c_int, c_uint, c_int, c_int),
    "glTexStorage2DMultisample": (c_uint, c_int, c_uint, c_int, c_int, c_ubyte),
    "glTexStorage3D": (c_uint, c_int, c_uint, c_int, c_int, c_int),
    "glTexImage2D": (c_uint, c_int, c_int, c_int, c_int, c_int, c_uint, c_uint, c_void_p),
    "glTexSubImage2D": (c_uint, c_int, c_int, c_int, c_int, c_int, c_uint, c_uint, c_void_p),
    "glUseProgram": (c_uint,),
    "glVertexAttribPointer": (c_uint, c_int, c_uint, c_ubyte, c_int, c_void_p),
    "glViewport": (c_int, c_int, c_int, c_int),
}
RESULTS: dict[str, Any] = {
    "glCheckFramebufferStatus": c_uint,
    "glCreateProgram": c_uint,
    "glCreateShader": c_uint,
    "glGetError": c_uint,
    "glGetGraphicsResetStatus": c_uint,
    "glGetString": c_char_p,
}

# The numbers of OpenGL that the examples use.
ARRAY_BUFFER, DYNAMIC_DRAW, TEXTURE_2D, RGBA8, RGBA32F, RGBA = 0x8892, 0x88E8, 0x0DE1, 0x8058, 0x8814, 0x1908
FLOAT, UNSIGNED_BYTE, POINTS, COLOR_BUFFER_BIT = 0x1406, 0x1401, 0x0000, 0x4000
FRAMEBUFFER, COLOR_ATTACHMENT0, VERTEX_SHADER, FRAGMENT_SHADER = 0x8D40, 0x8CE0, 0x8B31, 0x8B30


class NoOpenGL(RuntimeError):
    """This machine has no EGL, or no OpenGL behind it."""


class LostContext(RuntimeError):
    """The driver has given the context up, because of a fault in this or in another program: make a new one."""


class OpenGL:
    """A context of OpenGL without a window, current on the thread that makes it.

    Its functions are methods without the prefix: ``gl.BindBuffer(...)``.

    Parameters
    ----------
    cuda_device : int, optional
        The CUDA device whose GPU shall have the context. None: Mesa's software renderer, or else any GPU.
    """

    def __init__(self, cuda_device: int | None = None) -> None:
        try:
            self.egl = ctypes.CDLL("libEGL.so.1")
        except OSError as error:
            raise NoOpenGL(f"{error}: EGL is in the package libegl1 of Debian and Ubuntu") from None
        for name in ("eglGetProcAddress", "eglGetPlatformDisplay", "eglCreateContext", "eglCreatePbufferSurface"):
            getattr(self.egl, name).restype = c_void_p
        self.egl.eglQueryString.restype = c_char_p
        self.display = self._display(cuda_device)
        self.context, self.surface = self._context()
        self.make_current()

    def _display(self, cuda_device: int | None) -> c_void_p:
        extensions = (self.egl.eglQueryString(None, EXTENSIONS) or b"").decode().split()
        tried: list[tuple[int, c_void_p]] = []
        if cuda_device is None and "EGL_MESA_platform_surfaceless" in extensions:
            tried.append((PLATFORM_SURFACELESS, c_void_p(0)))
        if "EGL_EXT_platform_device" in extensions:
            tried += [(PLATFORM_DEVICE, device) for device in self._devices(cuda_device)]
        for platform, native in tried:
            display = c_void_p(self.egl.eglGetPlatformDisplay(platform, native, None))
            if display and self.egl.eglInitialize(display, None, None):
                return display
        whose = "here" if cuda_device is None else f"on the GPU of CUDA device {cuda_device}"
        raise NoOpenGL(
            f"EGL makes no context without a window {whose}. Software OpenGL is in the package libgl1-mesa-dri of "
            f"Debian and Ubuntu, that of NVIDIA's GPUs in the driver's (libnvidia-gl)"
        )

    def _devices(self, cuda_device: int | None) -> list[c_void_p]:
        """Devices of EGL: all, or that which is a CUDA device (EGL_NV_device_cuda)."""
        query = ctypes.CFUNCTYPE(c_uint, c_int, POINTER(c_void_p), SIZES)(
            self.egl.eglGetProcAddress(b"eglQueryDevicesEXT")
        )
        attribute = ctypes.CFUNCTYPE(c_uint, c_void_p, c_int, POINTER(c_void_p))(
            self.egl.eglGetProcAddress(b"eglQueryDeviceAttribEXT")
        )
        found, count, number = (c_void_p * 64)(), c_int(), c_void_p()
        query(64, found, byref(count))
        devices = [c_void_p(found[i]) for i in range(count.value)]
        if cuda_device is None:
            return devices
        return [
            device
            for device in devices
            if attribute(device, CUDA_DEVICE, byref(number)) and (number.value or 0) == cuda_device
        ]

    def _context(self) -> tuple[c_void_p, c_void_p]:
        config, count = c_void_p(), c_int()
        wanted = (c_int * 5)(SURFACE_TYPE, PBUFFER_BIT, RENDERABLE_TYPE, OPENGL_BIT, NONE)
        self.egl.eglBindAPI(OPENGL_API)
        self.egl.eglChooseConfig(self.display, wanted, byref(config), 1, byref(count))
        # One that says when it is lost, where there is such a thing: else OpenGL draws nothing, and reports no error.
        telling = (c_int * 3)(RESET_NOTIFICATION_STRATEGY, LOSE_CONTEXT_ON_RESET, NONE)
        context = c_void_p(self.egl.eglCreateContext(self.display, config, None, telling) if count.value else None)
        self.tells_losses = bool(context)
        if not context:
            context = c_void_p(self.egl.eglCreateContext(self.display, config, None, None) if count.value else None)
        if not context:
            raise NoOpenGL(f"EGL makes no context of OpenGL (error {self.egl.eglGetError():#x})")
        size = (c_int * 5)(WIDTH, 1, HEIGHT, 1, NONE)
        surface = c_void_p(self.egl.eglCreatePbufferSurface(self.display, config, size))
        return context, surface

    def make_current(self) -> None:
        """Make the context current on the calling thread."""
        self.egl.eglBindAPI(OPENGL_API)  # which is the thread's, too
        if not self.egl.eglMakeCurrent(self.display, self.surface, self.surface, self.context):
            raise NoOpenGL(f"the context cannot be made current (error {self.egl.eglGetError():#x})")

    def release(self) -> None:
        """Make no context current on the calling thread."""
        self.egl.eglMakeCurrent(self.display, None, None, None)

    def close(self) -> None:
        """Destroy the context."""
        if self.context:
            self.release()
            self.egl.eglDestroySurface(self.display, self.surface)
            self.egl.eglDestroyContext(self.display, self.context)
            self.context = c_void_p()

    def __enter__(self) -> "OpenGL":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        parameters = FUNCTIONS.get(f"gl{name}")
        if parameters is None:
            raise AttributeError(name)
        address = self.egl.eglGetProcAddress(f"gl{name}".encode())
        if not address:
            raise NoOpenGL(f"this OpenGL has no function gl{name}")
        function = ctypes.CFUNCTYPE(RESULTS.get(f"gl{name}"), *parameters)(address)
        setattr(self, name, function)
        return function

    # --- a few calls in one -------------------------------------------------------------------------------

    def name(self, kind: str) -> int:
        """A new object: ``gl.name("Buffers")``."""
        name = c_uint()
        getattr(self, f"Gen{kind}")(1, byref(name))
        return name.value

    def buffer(self, size: int, data: np.ndarray | None = None) -> int:
        """A buffer with that many bytes, which are those of `data`."""
        name = self.name("Buffers")
        self.BindBuffer(ARRAY_BUFFER, name)
        self.BufferData(ARRAY_BUFFER, size, None if data is None else data.ctypes.data, DYNAMIC_DRAW)
        return name

    def read_buffer(self, name: int, size: int) -> np.ndarray:
        """The bytes of a buffer."""
        data = np.zeros(size, np.uint8)
        self.BindBuffer(ARRAY_BUFFER, name)
        self.GetBufferSubData(ARRAY_BUFFER, 0, size, data.ctypes.data)
        return data

    def program(self, vertex: str, fragment: str) -> int:
        """A program of two shaders."""
        program: int = self.CreateProgram()
        for kind, source in ((VERTEX_SHADER, vertex), (FRAGMENT_SHADER, fragment)):
            shader = self.CreateShader(kind)
            self.ShaderSource(shader, 1, (c_char_p * 1)(source.encode()), None)
            self.CompileShader(shader)
            log = ctypes.create_string_buffer(4000)
            self.GetShaderInfoLog(shader, len(log), None, log)
            compiled = c_int()
            self.GetShaderiv(shader, 0x8B81, byref(compiled))
            if not compiled.value:
                raise RuntimeError(f"the shader does not compile: {log.value.decode()}")
            self.AttachShader(program, shader)
        self.LinkProgram(program)
        return program

    def check(self, where: Sequence[str] | str = "") -> None:
        """Raise what went wrong in OpenGL meanwhile."""
        reset = self.GetGraphicsResetStatus() if self.tells_losses else 0
        if reset:
            raise LostContext(f"the driver has reset this context of OpenGL (status {reset:#x}) {where}: make another")
        error = self.GetError()
        if error:
            raise RuntimeError(f"OpenGL's error {error:#x} {where}")
