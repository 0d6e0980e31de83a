"""What textures and surfaces can be of: arrays, and pieces of plain memory."""

from libc.string cimport memset

from cupola.core.base._cuda cimport (
    CU_RESOURCE_TYPE_ARRAY, CU_RESOURCE_TYPE_LINEAR, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, CU_RESOURCE_TYPE_PITCH2D,
    CUDA_RESOURCE_DESC, CUarray, CUarray_format, CUdeviceptr, CUmipmappedArray, factory_error,
)
from cupola.core.memory._buffer cimport Buffer
from cupola.core.texture._array cimport MipmappedArray, OpaqueArray
from cupola.core.texture._native cimport NativeObject

from cupola.core.texture import _options
from cupola.core.texture._options import as_channels, as_count, as_format


cdef class ResourceDescriptor:
    """What a texture or surface is made of. Making one calls nothing of CUDA; it serves for any number of objects.

    Make it with one of the ``from_`` methods.

    Attributes
    ----------
    kind : str
        ``"array"``, ``"mipmapped_array"``, ``"linear"`` or ``"pitch2d"``.
    source : OpaqueArray or MipmappedArray or Buffer
        What it describes.
    format : ArrayFormatType or None
        Type of each channel of memory; None for arrays, which have their own.
    num_channels : int or None
        Channels of an element of memory; None for arrays.
    size_bytes : int or None
        Bytes of linear memory.
    width, height : int or None
        Elements of a row, and rows, of pitched memory.
    pitch_bytes : int or None
        Bytes from one row to the next.

    Notes
    -----
    Threads may share it: it does not change.

    Examples
    --------
    >>> resource = ResourceDescriptor.from_linear(buffer, format="float32", num_channels=4)
    >>> resource.size_bytes == buffer.size
    True
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("ResourceDescriptor", "one of the ResourceDescriptor.from_* methods")

    @classmethod
    def from_opaque_array(cls, array):
        """Describe a whole array.

        Parameters
        ----------
        array : OpaqueArray
            It may be a level of a mipmapped one.

        Returns
        -------
        ResourceDescriptor
        """
        if not isinstance(array, OpaqueArray):
            raise TypeError(f"array must be an OpaqueArray, not {type(array).__name__}")
        (<OpaqueArray>array).open_native()
        return _make(cls, "array", array)

    @classmethod
    def from_mipmapped_array(cls, mipmapped_array):
        """Describe all levels of a mipmapped array. Its textures need ``normalized_coords=True``.

        Parameters
        ----------
        mipmapped_array : MipmappedArray
            The array.

        Returns
        -------
        ResourceDescriptor
        """
        if not isinstance(mipmapped_array, MipmappedArray):
            raise TypeError(f"mipmapped_array must be a MipmappedArray, not {type(mipmapped_array).__name__}")
        (<MipmappedArray>mipmapped_array).open_native()
        return _make(cls, "mipmapped_array", mipmapped_array)

    @classmethod
    def from_linear(cls, buffer, *, format, num_channels, size_bytes=None):
        """Describe elements that lie one behind the other; textures of them take an index, and neither filter nor wrap.

        Parameters
        ----------
        buffer : Buffer
            Device memory, aligned as the device asks (``DeviceProperties.texture_alignment``).
        format : ArrayFormatType or str or NumPy dtype
            Type of each channel.
        num_channels : int
            1, 2 or 4.
        size_bytes : int, optional
            How much of the buffer, from its beginning: a multiple of the element. None: all of it.

        Returns
        -------
        ResourceDescriptor

        Raises
        ------
        TypeError
            `buffer` is no Buffer.
        ValueError
            The size is larger than the buffer, below one element, or no multiple of it.
        RuntimeError
            The buffer is closed.
        """
        cdef ResourceDescriptor made
        _open_buffer(buffer)
        chosen, channels = as_format(format), as_channels(num_channels)
        element = _options.FORMATS[chosen].bytes * channels
        size = buffer.size if size_bytes is None else _as_int(size_bytes, "size_bytes")
        if size > buffer.size:
            raise ValueError(f"size_bytes is {size}, the buffer has {buffer.size} bytes")
        if size < element or size % element:
            raise ValueError(
                f"the size, {size} bytes, must be a multiple of an element, {element} bytes, and at least one of them"
                + ("; pass size_bytes for a part of the buffer" if size_bytes is None else "")
            )
        made = _make(cls, "linear", buffer)
        made.format, made.num_channels, made.size_bytes = chosen, channels, size
        return made

    @classmethod
    def from_pitch2d(cls, buffer, *, format, num_channels, width, height, pitch_bytes):
        """Describe rows of elements in plain memory, of which textures of two dimensions can be made.

        Parameters
        ----------
        buffer : Buffer
            Device memory, aligned as the device asks (``DeviceProperties.texture_alignment``).
        format : ArrayFormatType or str or NumPy dtype
            Type of each channel.
        num_channels : int
            1, 2 or 4.
        width, height : int
            Elements of a row, and rows.
        pitch_bytes : int
            Bytes from one row to the next, a multiple of ``DeviceProperties.texture_pitch_alignment``, which the driver
            checks.

        Returns
        -------
        ResourceDescriptor

        Raises
        ------
        TypeError
            `buffer` is no Buffer.
        ValueError
            An extent is below 1, a row is longer than the pitch, or the rows do not fit into the buffer.
        RuntimeError
            The buffer is closed.
        """
        cdef ResourceDescriptor made
        _open_buffer(buffer)
        chosen, channels = as_format(format), as_channels(num_channels)
        columns, rows = as_count(width, "width"), as_count(height, "height")
        pitch = _as_int(pitch_bytes, "pitch_bytes")
        row = _options.FORMATS[chosen].bytes * channels * columns
        if pitch < row:
            raise ValueError(f"pitch_bytes is {pitch}; a row of {columns} elements has {row} bytes")
        if pitch * rows > buffer.size:
            raise ValueError(
                f"{rows} rows of {pitch} bytes are {pitch * rows} bytes; the buffer has {buffer.size}"
            )
        made = _make(cls, "pitch2d", buffer)
        made.format, made.num_channels = chosen, channels
        made.width, made.height, made.pitch_bytes = columns, rows, pitch
        return made

    cdef object describe(self, CUDA_RESOURCE_DESC* form):
        cdef NativeObject native
        cdef Buffer buffer
        memset(form, 0, sizeof(CUDA_RESOURCE_DESC))
        if isinstance(self.source, OpaqueArray):
            native = (<OpaqueArray>self.source).open_native()
            form.resType = CU_RESOURCE_TYPE_ARRAY
            form.res.array.hArray = <CUarray>native.handle
            return native
        if isinstance(self.source, MipmappedArray):
            native = (<MipmappedArray>self.source).open_native()
            form.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
            form.res.mipmap.hMipmappedArray = <CUmipmappedArray>native.handle
            return native
        buffer = <Buffer>self.source
        allocation = buffer.open_allocation()
        if self.kind == "linear":
            form.resType = CU_RESOURCE_TYPE_LINEAR
            form.res.linear.devPtr = <CUdeviceptr>buffer.pointer
            form.res.linear.format = <CUarray_format><int>_options.FORMATS[self.format].number
            form.res.linear.numChannels = self.num_channels
            form.res.linear.sizeInBytes = self.size_bytes
        else:
            form.resType = CU_RESOURCE_TYPE_PITCH2D
            form.res.pitch2D.devPtr = <CUdeviceptr>buffer.pointer
            form.res.pitch2D.format = <CUarray_format><int>_options.FORMATS[self.format].number
            form.res.pitch2D.numChannels = self.num_channels
            form.res.pitch2D.width = self.width
            form.res.pitch2D.height = self.height
            form.res.pitch2D.pitchInBytes = self.pitch_bytes
        return allocation

    def __repr__(self):
        shown = [
            f"format={value.name}" if name == "format" else f"{name}={value!r}"
            for name in ("format", "num_channels", "size_bytes", "width", "height", "pitch_bytes")
            if (value := getattr(self, name)) is not None
        ]
        return f"ResourceDescriptor({', '.join([f'kind={self.kind!r}', *shown])})"

    def __reduce__(self):
        raise TypeError("a ResourceDescriptor is of this process: it cannot be pickled or copied")


cdef ResourceDescriptor _make(object cls, str kind, object source):
    cdef ResourceDescriptor made = <ResourceDescriptor?>ResourceDescriptor.__new__(cls)
    made.kind, made.source = kind, source
    return made


cdef int _open_buffer(object buffer) except -1:
    if not isinstance(buffer, Buffer):
        raise TypeError(f"buffer must be a Buffer, not {type(buffer).__name__}")
    (<Buffer>buffer).open_allocation()
    return 0


cdef object _as_int(object value, str name):
    if not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be an int, a number of bytes; not {type(value).__name__}")
    return value.__index__()
