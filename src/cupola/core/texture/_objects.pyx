"""Texture and surface objects: what kernels read and write arrays through."""

from cpython.pystate cimport PyThreadState
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from cupola.core.base._cuda cimport (
    CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC, CUaddress_mode, CUcontext, CUfilter_mode, CUresult, CUsurfObject, CUtexObject,
    check, closed_error, cu, factory_error, gone_error,
)
from cupola.core.base._gil cimport let_others_run, take_back
from cupola.core.device cimport _device
from cupola.core.device._context cimport enter, leave
from cupola.core.launch._arguments cimport register_handle_type
from cupola.core.texture._array cimport OpaqueArray
from cupola.core.texture._native cimport SURFACE, TEXTURE, NativeObject, new_native
from cupola.core.texture._resource cimport ResourceDescriptor

from cupola.core.base._options import as_options
from cupola.core.device._device import Device
from cupola.core.texture._options import TextureObjectOptions, as_sampling

cimport cython


@cython.freelist(8)
cdef class TextureObject:
    """What kernels read an array or memory through, with filters and modes for what is outside (``CUtexObject``).

    Pass it to a kernel that takes a ``cudaTextureObject_t``, or :attr:`handle` as ``numpy.uint64``. Make it with
    :meth:`.Device.create_texture_object`. It keeps what it reads: the array or Buffer may be closed before it. Close it
    when no kernel uses it any more.

    Notes
    -----
    Threads may share it, and any of them may close it.

    Examples
    --------
    >>> array = dev.create_opaque_array({"shape": (4, 3), "format": "float32", "num_channels": 1})
    >>> resource = ResourceDescriptor.from_opaque_array(array)
    >>> with dev.create_texture_object(resource=resource, options={"filter_mode": "linear"}) as texture:
    ...     texture.resource.kind
    'array'
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("TextureObject", "Device.create_texture_object()")

    @property
    def handle(self):
        """int: the native handle (``CUtexObject``), 0 once closed."""
        cdef NativeObject native = self.known_native()
        return 0 if native is None else native.handle

    @property
    def is_closed(self):
        """bool: whether :meth:`close` was called."""
        return self.native is None

    @property
    @cython.critical_section
    def resource(self):
        """ResourceDescriptor or None: what it reads; None once closed."""
        return self.described

    @property
    def device(self):
        """Device: where the texture is."""
        return Device(self.device_id)

    @property
    @cython.critical_section
    def options(self):
        """TextureObjectOptions: what it was made with."""
        if self.chosen is None:
            self.chosen = TextureObjectOptions()
        return self.chosen

    def close(self):
        """Destroy the texture (``cuTexObjectDestroy``); idempotent. A graph that was given it keeps the native one."""
        cdef NativeObject native
        cdef ResourceDescriptor described
        with cython.critical_section(self):
            native, described = self.native, self.described     # let go of behind this
            self.native, self.described = None, None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"TextureObject(handle={self.handle:#x})"

    def __reduce__(self):
        raise TypeError("a TextureObject belongs to this process: it cannot be pickled or copied")


cdef class SurfaceObject:
    """What kernels read and write the elements of an array through (``CUsurfObject``).

    Pass it to a kernel that takes a ``cudaSurfaceObject_t``, or :attr:`handle` as ``numpy.uint64``. Make it with
    :meth:`.Device.create_surface_object`. It keeps the array's memory. Close it when no kernel uses it any more.

    Notes
    -----
    Threads may share it, and any of them may close it.
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("SurfaceObject", "Device.create_surface_object()")

    @property
    def handle(self):
        """int: the native handle (``CUsurfObject``), 0 once closed."""
        cdef NativeObject native = self.known_native()
        return 0 if native is None else native.handle

    @property
    def is_closed(self):
        """bool: whether :meth:`close` was called."""
        return self.native is None

    @property
    @cython.critical_section
    def resource(self):
        """ResourceDescriptor or None: what it reads and writes; None once closed."""
        return self.described

    @property
    def device(self):
        """Device: where the surface is."""
        return Device(self.device_id)

    def close(self):
        """Destroy the surface (``cuSurfObjectDestroy``); idempotent. A graph that was given it keeps the native one."""
        cdef NativeObject native
        cdef ResourceDescriptor described
        with cython.critical_section(self):
            native, described = self.native, self.described     # let go of behind this
            self.native, self.described = None, None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"SurfaceObject(handle={self.handle:#x})"

    def __reduce__(self):
        raise TypeError("a SurfaceObject belongs to this process: it cannot be pickled or copied")


# --- making them ------------------------------------------------------------------------------------------


cdef ResourceDescriptor _checked(object resource):
    if not isinstance(resource, ResourceDescriptor):
        raise TypeError(
            f"resource must be a ResourceDescriptor, not {type(resource).__name__}; make one with a method "
            "ResourceDescriptor.from_..."
        )
    return <ResourceDescriptor>resource


cdef object _make_texture(int device, CUcontext context, object resource, object options):
    """Device.create_texture_object, in that context."""
    cdef ResourceDescriptor described = _checked(resource)
    cdef CUDA_RESOURCE_DESC form
    cdef CUDA_TEXTURE_DESC sampler
    cdef CUtexObject handle = 0
    cdef CUresult status
    cdef TextureObject texture
    cdef PyThreadState* others
    cdef int pushed
    cdef object chosen = None
    cdef object needs
    cdef bytes fields = _default
    if options is not None:
        chosen = as_options(TextureObjectOptions, options)
        fields = _fields_of(chosen)
    memcpy(&sampler, <const char*>fields, sizeof(sampler))
    needs = described.describe(&form)       # behind all code written in Python
    pushed = enter(context)
    others = let_others_run()
    status = cu.cuTexObjectCreate(&handle, &form, &sampler, NULL)
    take_back(others)
    leave(pushed)
    check(status, b"cuTexObjectCreate")
    texture = TextureObject.__new__(TextureObject)
    texture.native = new_native(TEXTURE, handle, context, device, needs)
    texture.described, texture.chosen, texture.device_id = described, chosen, device
    return texture


# Values of options -> CUDA_TEXTURE_DESC with them, as bytes: a program has few kinds of textures, but may have many of each.
cdef dict _known = {}


cdef bytes _fields_of(object options):
    """Check the options, and give the record for the driver."""
    cdef CUDA_TEXTURE_DESC form
    key = (
        options.address_mode, options.filter_mode, options.read_mode, options.normalized_coords, options.srgb,
        options.disable_trilinear_optimization, options.seamless_cubemap, options.max_anisotropy,
        options.mipmap_filter_mode, options.mipmap_level_bias, options.min_mipmap_level_clamp,
        options.max_mipmap_level_clamp, options.border_color,
    )
    try:
        known = _known.get(key)
    except TypeError:       # a list among them
        key = known = None
    if known is None:
        _fill_sampler(&form, as_sampling(options))
        known = (<char*>&form)[:sizeof(form)]
        if key is not None and len(_known) < 1000:
            _known[key] = known
    return known


cdef int _fill_sampler(CUDA_TEXTURE_DESC* form, tuple sampling) except -1:
    cdef int i
    modes, filter_mode, flags, anisotropy, mipmap_filter_mode, bias, least, most, border = sampling
    memset(form, 0, sizeof(CUDA_TEXTURE_DESC))
    for i in range(3):
        form.addressMode[i] = <CUaddress_mode><int>modes[i]
    form.filterMode, form.mipmapFilterMode = <CUfilter_mode><int>filter_mode, <CUfilter_mode><int>mipmap_filter_mode
    form.flags, form.maxAnisotropy, form.mipmapLevelBias = flags, anisotropy, bias
    form.minMipmapLevelClamp, form.maxMipmapLevelClamp = least, most
    for i in range(4):
        form.borderColor[i] = border[i]
    return 0


def create_surface_object(int device, context, resource):
    """Device.create_surface_object, in the context with that address."""
    cdef ResourceDescriptor described = _checked(resource)
    cdef CUDA_RESOURCE_DESC form
    cdef CUsurfObject handle = 0
    cdef CUcontext native = <CUcontext><uintptr_t>context
    cdef CUresult status
    cdef SurfaceObject surface
    cdef int pushed
    if described.kind != "array":
        advice = "; make one of a level, mipmapped.get_level(i)" if described.kind == "mipmapped_array" else ""
        raise ValueError(f"a surface is of an array, not of a resource of kind {described.kind!r}{advice}")
    needs = described.describe(&form)
    if not (<OpaqueArray>described.source).is_surface_load_store:
        raise ValueError("the array was not made for surfaces: make it with is_surface_load_store=True")
    pushed = enter(native)
    with nogil:
        status = cu.cuSurfObjectCreate(&handle, &form)
    leave(pushed)
    check(status, b"cuSurfObjectCreate")
    surface = SurfaceObject.__new__(SurfaceObject)
    surface.native = new_native(SURFACE, handle, native, device, needs)
    surface.described, surface.device_id = described, device
    return surface


# --- as arguments of kernels ------------------------------------------------------------------------------


cdef NativeObject _native_of(object value):
    cdef NativeObject native
    if isinstance(value, TextureObject):
        native = (<TextureObject>value).known_native()
    else:
        native = (<SurfaceObject>value).known_native()
    if native is None:
        raise closed_error(value)
    if native.is_gone():
        raise gone_error(value)
    return native


def _handle_of(value):
    return _native_of(value).handle


def _kept_of(value):
    return _native_of(value)


register_handle_type(TextureObject, _handle_of, _kept_of)
register_handle_type(SurfaceObject, _handle_of, _kept_of)

cdef bytes _default = _fields_of(TextureObjectOptions())
_device.make_texture = _make_texture
