"""Devices: one object for each device and thread, made at the first call of Device in the thread.

`Device(0)` is called far more often than devices are made, so calling the class must be cheap. Its type slots are
set by hand: `tp_vectorcall` serves Device(...) without a tuple of arguments, `tp_new` the subclasses and
Device.__new__. The objects are owned by the thread's state dict and found through a C thread-local; the id of the
thread state, which is never used twice, tells whether that pointer still holds.
"""

import operator
import os
from collections import namedtuple

from cpython.ref cimport Py_INCREF, PyObject, PyTypeObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport uint64_t, uintptr_t

from cupola.core.device._context cimport (
    Context, current_context, enter, leave, primary_context, resets, was_reset, wrap_context
)
from cupola.core.base._cuda cimport (
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_SUCCESS, CUcontext, CUdevice,
    CUdevice_attribute, CUresult, CUuuid, check, cu, initialise
)
from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.device._event cimport event_from_options
from cupola.core.device._memory_resource cimport MemoryResource
from cupola.core.device._stream cimport create_stream, default_stream, foreign_stream, older_stream

from cupola._above import above
from cupola.core.base._cuda import put_up_signs
from cupola.core.device._device_properties import properties_of
from cupola.core.device._ranks import local_rank as local_rank_of_environment
from cupola.core.base._errors import CUDAError
from cupola.core.base._options import as_options

cimport cython

cdef extern from *:
    """
    typedef struct { uint64_t thread; PyObject *devices; } cupola_thread_devices;
    static _Thread_local cupola_thread_devices cupola_devices;
    """
    ctypedef struct cupola_thread_devices:
        uint64_t thread
        PyObject* devices
    cupola_thread_devices cupola_devices

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState* PyThreadState_Get() noexcept
    uint64_t PyThreadState_GetID(PyThreadState*) noexcept
    PyObject* PyThreadState_GetDict() noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept
    void PyType_Modified(PyTypeObject*) noexcept

cdef extern from *:
    """
    static void cupola_set_call(PyTypeObject *type, void *make, void *call)
    {
        type->tp_new = (newfunc)make;
        type->tp_vectorcall = (vectorcallfunc)call;
        PyType_Modified(type);
    }
    """
    void cupola_set_call(PyTypeObject*, void*, void*) noexcept


ComputeCapability = namedtuple("ComputeCapability", ("major", "minor"), module=__name__)
ComputeCapability.__doc__ = """Compute capability of a device; compares like the tuple (major, minor).

Attributes
----------
major : int
    Generation of the architecture, 9 for Hopper.
minor : int
    Revision of it.
"""


cdef class Device:
    """Device(device_id=None)\n--\n\nA GPU, or the CPU device in its place.

    Within a thread there is one object for each device: ``Device(0) is Device(0)``. Making one initializes the
    driver (``cuInit``), but no context: call :meth:`set_current` before anything is made on the device.

    Parameters
    ----------
    device_id : int or Device, optional
        Ordinal of the device. None: the device of the thread's current context, or device 0 when there is none.

    Attributes
    ----------
    device_id : int
        Ordinal of the device.

    Raises
    ------
    ValueError
        There is no such device.

    Notes
    -----
    Threads may share it. Each thread that uses the device calls :meth:`set_current` itself, and ``Device(n)`` gives each
    thread an object of its own.

    Examples
    --------
    >>> dev = Device()
    >>> dev.set_current()
    >>> dev.compute_capability
    ComputeCapability(major=9, minor=0)
    """

    @classmethod
    def get_all_devices(cls):
        """Return all visible devices, in the order of their ordinals.

        Returns
        -------
        tuple of Device
        """
        return _devices()

    @classmethod
    def for_rank(cls, local_rank=None):
        """Return the device of this process, where a job has several processes on a machine.

        The processes of a machine take its visible devices in turn. What started them says which one this is, in a variable such as
        ``LOCAL_RANK`` (torchrun, ``cupola run -n``), ``OMPI_COMM_WORLD_LOCAL_RANK``, ``MPI_LOCALRANKID`` or
        ``SLURM_LOCALID``. Outside a job it is device 0. Where each process sees only devices of its own
        (``CUDA_VISIBLE_DEVICES``, MIG), these are taken in turn.

        Parameters
        ----------
        local_rank : int, optional
            The number of this process among those of its machine, from 0, where no such variable tells it.

        Returns
        -------
        Device

        Raises
        ------
        ValueError
            For a negative number, or a variable that is not a number.
        """
        rank = local_rank_of_environment() if local_rank is None else operator.index(local_rank)
        if rank < 0:
            raise ValueError(f"local_rank must be 0 or more, not {rank}")
        devices = _devices()
        if not devices:
            raise CUDAError("there is no CUDA device: CUDA_VISIBLE_DEVICES may hide all of them")
        return devices[rank % len(devices)]

    @property
    def pci_bus_id(self):
        """str: PCI address as ``domain:bus:device.function`` in hexadecimal (``cuDeviceGetPCIBusId``)."""
        cdef char text[32]
        check(cu.cuDeviceGetPCIBusId(text, sizeof(text), self.device_id), b"cuDeviceGetPCIBusId")
        return (<bytes>text).decode()[:12]

    @property
    @cython.critical_section
    def uuid(self):
        """str: the device's UUID in the form 8-4-4-4-12, lower case, without a prefix (``cuDeviceGetUuid``)."""
        if self.known_uuid is None:
            self.known_uuid = _uuid_of(self)
        return self.known_uuid

    def to_system_device(self):
        """Find the same device in NVML, to query its state.

        Returns
        -------
        cupola.system.Device

        Raises
        ------
        cupola.system.NvmlError
            When NVML does not know the device.
        """
        return above("system_device")(self.uuid)

    @property
    @cython.critical_section
    def name(self):
        """str: the name of the model (``cuDeviceGetName``)."""
        cdef char text[256]
        if self.known_name is None:
            check(cu.cuDeviceGetName(text, sizeof(text), self.device_id), b"cuDeviceGetName")
            self.known_name = (<bytes>text).decode("utf-8", "replace")
        return self.known_name

    @property
    def total_memory(self):
        """int: size of the device's memory in bytes (``cuDeviceTotalMem``)."""
        cdef size_t size
        check(cu.cuDeviceTotalMem(&size, self.device_id), b"cuDeviceTotalMem")
        return size

    @property
    @cython.critical_section
    def properties(self):
        """DeviceProperties: limits and abilities of the device."""
        if self.known_properties is None:
            self.known_properties = properties_of(self)
        return self.known_properties

    @property
    @cython.critical_section
    def resources(self):
        """DeviceResources: what the device has that contexts can be given a part of."""
        if self.known_resources is None:
            from cupola.core.device._resources import resources_of_device

            self.known_resources = resources_of_device(self.device_id)
        return self.known_resources

    @property
    @cython.critical_section
    def compute_capability(self):
        """ComputeCapability: named tuple (major, minor)."""
        if self.known_capability is None:
            self.known_capability = ComputeCapability(
                self.read_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
                self.read_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
            )
        return self.known_capability

    @property
    def arch(self):
        """str: the compute capability as compilers take it after ``sm_``, such as ``"90"``."""
        major, minor = self.compute_capability
        return f"{major}{minor}"

    @property
    def context(self):
        """Context: the one last made current through this object on this thread.

        Raises
        ------
        CUDAError
            :meth:`set_current` has not been called on this thread.
        """
        return self.require_context()

    @property
    @cython.critical_section
    def memory_resource(self):
        """MemoryResource: where :meth:`allocate` gets memory; the device's current pool unless set."""
        if self.memory is None:
            self.memory = _resource_of(self)
            self.memory_is_own = True
        return self.memory

    @memory_resource.setter
    def memory_resource(self, resource):
        if not isinstance(resource, MemoryResource):
            raise TypeError(f"memory_resource must be a MemoryResource, not {type(resource).__name__}")
        with cython.critical_section(self):
            before = self.memory    # let go of behind this
            self.memory = resource
            self.memory_is_own = False

    @property
    def default_stream(self):
        """Stream: the legacy default stream.

        The per-thread one when the environment variable ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` is a
        number other than 0 at the time of the read.
        """
        return default_stream()

    def can_access_peer(self, peer):
        """Whether kernels on this device can use the memory of another (``cuDeviceCanAccessPeer``).

        Parameters
        ----------
        peer : Device or int
            The other device.

        Returns
        -------
        bool
            True for the device itself.

        Raises
        ------
        ValueError
            There is no such device.
        """
        cdef Device other
        cdef int able = 0
        if peer is None:
            raise TypeError("peer must be a Device or its ordinal, not None")
        other = Device(peer)
        if other.device_id == self.device_id:
            return True
        check(cu.cuDeviceCanAccessPeer(&able, self.device_id, other.device_id), b"cuDeviceCanAccessPeer")
        return able != 0

    def set_current(self, ctx=None):
        """Make the device current on this thread; every thread that uses the device calls it.

        When the primary context has been reset meanwhile (``cuDevicePrimaryCtxReset``, ``cudaDeviceReset``), it is
        retained again. Objects that were made in it before are gone: using them raises a CUDAError, freeing them does
        nothing.

        Parameters
        ----------
        ctx : Context, optional
            Swapped with the current context (``cuCtxPopCurrent``, ``cuCtxPushCurrent``). None: the device's
            primary context replaces the current one (``cuDevicePrimaryCtxRetain``, ``cuCtxSetCurrent``).

        Returns
        -------
        Context or None
            The context that was current before, when `ctx` is given.

        Raises
        ------
        RuntimeError
            `ctx` is closed or belongs to another device.
        """
        if ctx is not None and not isinstance(ctx, Context):
            raise TypeError(f"ctx must be a Context or None, not {type(ctx).__name__}")
        return _set_current(self, ctx)

    def create_context(self, options=None):
        """Make a green context: a part of the device for streams to run on (``cuGreenCtxCreate``).

        It is not made current. Either make streams with :meth:`Context.create_stream`, or make it current with
        :meth:`set_current` for what is made next. :meth:`set_current` need not have been called before.

        Parameters
        ----------
        options : ContextOptions or dict
            The resources that the context has.

        Returns
        -------
        Context

        Raises
        ------
        ValueError
            There are no options or no resources, or these are of a dry run.
        TypeError
            `options` or one of the resources is something else.
        CUDAError
            The driver refuses the combination, such as groups of different splits.

        Examples
        --------
        >>> groups, rest = dev.resources.sm.split(SMResourceOptions(count=16))
        >>> small = dev.create_context(ContextOptions(groups))
        >>> stream = small.create_stream()
        """
        from cupola.core.device._options import ContextOptions
        from cupola.core.device._resources import create_green_context

        if options is None:
            raise ValueError("a green context needs resources: create_context(ContextOptions(resources=...))")
        resources = as_options(ContextOptions, options).resources
        if resources is None:
            raise ValueError("a green context needs resources, but ContextOptions.resources is None")
        resources = list(resources)
        if not resources:
            raise ValueError("a green context needs resources, but ContextOptions.resources is empty")
        return create_green_context(self.device_id, resources)

    def create_stream(self, obj=None, options=None, *, nonblocking=True, priority=None):
        """Make a stream on this device (``cuStreamCreateWithPriority``), or wrap one of another library.

        Parameters
        ----------
        obj : object with ``__cuda_stream__()``, optional
            Its stream is wrapped; the result keeps `obj` alive and never destroys the stream.
        options : StreamOptions or dict, optional
            For a new stream.
        nonblocking, priority : optional
            The fields of `options`, as keywords.

        Returns
        -------
        Stream

        Raises
        ------
        ValueError
            Both `obj` and options are given, or the priority is outside the device's range.
        TypeError
            `obj` has no ``__cuda_stream__()``, or an option is unknown.
        CUDAError
            :meth:`set_current` was not called on this thread.
        """
        cdef Context context = self.require_context()
        if obj is not None:
            if options is not None or nonblocking is not True or priority is not None:
                raise ValueError("an existing stream takes no options: give obj or options, not both")
            if isinstance(obj, dict) or type(obj).__name__ == "StreamOptions":
                raise TypeError("the first argument is an existing stream: write create_stream(options=...)")
            return foreign_stream(obj)
        return create_stream(context.pointer, options, nonblocking, priority)

    def stream(self, *, nonblocking=True, priority=None):
        """Make a stream for a ``with`` block, whose end waits for the work and closes it.

        Inside of the block, calls of this thread that name no stream use it: those that make, copy and read arrays,
        and ``kernel[grid, block](...)``.

        Parameters
        ----------
        nonblocking, priority : optional
            As for :meth:`create_stream`.

        Returns
        -------
        Stream

        Examples
        --------
        >>> with dev.stream() as s:
        ...     x = dev.zeros(1000, np.float32)
        """
        return create_stream(self.require_context().pointer, None, nonblocking, priority)

    def array(self, obj, dtype=None, *, stream=None):
        """Make an array on this device with the elements of another one.

        Parameters
        ----------
        obj : array_like
            What ``numpy.asarray`` takes, an :class:`Array`, or an array of another library with DLPack or the CUDA array
            interface. It is copied.
        dtype : optional
            What ``numpy.dtype`` takes. Data of the host is converted to it; data of a device must be of it.
        stream : Stream, optional
            The array may be used by work that is queued in it from here on, and its memory is released in its order.
            Without it and outside of a stream's ``with`` block, the call returns when the array is ready for all
            streams.

        Returns
        -------
        Array
            In row-major order.

        Raises
        ------
        TypeError
            Its elements are Python objects, text or times.
        CUDAError
            Not enough memory, or :meth:`set_current` has not been called on this thread.

        Examples
        --------
        >>> x = dev.array(np.arange(6, dtype=np.float32).reshape(2, 3))
        >>> x
        <Array shape=(2, 3) dtype=float32: [0. 1. 2. 3. 4. 5.]>
        """
        cdef int pushed = enter(self.require_context().pointer)
        try:
            return above("array_on")(self, obj, dtype, stream)
        finally:
            leave(pushed)

    def empty(self, shape, dtype="float64", *, stream=None):
        """Make an array on this device whose elements are whatever the memory holds.

        Parameters
        ----------
        shape : int or tuple of int
            Extents.
        dtype : optional
            What ``numpy.dtype`` takes; float64 by default, as in NumPy.
        stream : Stream, optional
            As for :meth:`array`.

        Returns
        -------
        Array
        """
        cdef int pushed = enter(self.require_context().pointer)
        try:
            return above("empty_on")(self, shape, dtype, stream)
        finally:
            leave(pushed)

    def zeros(self, shape, dtype="float64", *, stream=None):
        """Make an array of zeros on this device (``cuMemsetD8Async``).

        Parameters
        ----------
        shape : int or tuple of int
            Extents.
        dtype : optional
            What ``numpy.dtype`` takes; float64 by default, as in NumPy.
        stream : Stream, optional
            As for :meth:`array`.

        Returns
        -------
        Array
        """
        cdef int pushed = enter(self.require_context().pointer)
        try:
            return above("zeros_on")(self, shape, dtype, stream)
        finally:
            leave(pushed)

    def full(self, shape, fill_value, dtype=None, *, stream=None):
        """Make an array on this device whose elements are all the same.

        Parameters
        ----------
        shape : int or tuple of int
            Extents.
        fill_value : number
            The element.
        dtype : optional
            What ``numpy.dtype`` takes; by default the type that NumPy has for `fill_value`.
        stream : Stream, optional
            As for :meth:`array`.

        Returns
        -------
        Array
        """
        cdef int pushed = enter(self.require_context().pointer)
        try:
            return above("full_on")(self, shape, fill_value, dtype, stream)
        finally:
            leave(pushed)

    def create_event(self, options=None, **keywords):
        """Make an event on this device (``cuEventCreate``); :meth:`Stream.record` records it.

        Parameters
        ----------
        options : EventOptions or dict, optional
            What it is for.
        timing_enabled, blocking_sync, ipc_enabled : bool, optional
            The fields of `options`, as keywords.

        Returns
        -------
        Event
            Not recorded yet.

        Raises
        ------
        CUDAError
            :meth:`set_current` was not called on this thread.
        TypeError
            An option is unknown, or `ipc_enabled`: such an event comes from :meth:`Stream.record`.
        """
        return event_from_options(self.require_context().pointer, options, keywords)

    @cython.embedsignature(False)      # which would show `older`
    def allocate(self, size, older=None, *, stream=None):
        """allocate($self, size, *, stream=None)\n--\n\nAllocate `size` bytes from :attr:`memory_resource`, ordered after the work in `stream`.

        Parameters
        ----------
        size : int
            Number of bytes.
        stream : Stream or GraphBuilder
            Keyword. The memory may be used by work that is queued in it from here on.

        Returns
        -------
        Buffer

        Raises
        ------
        CUDAError
            Not enough memory, or :meth:`set_current` has not been called on this thread.

        Examples
        --------
        >>> buffer = dev.allocate(4 * 1000, stream=stream)
        """
        cdef Alone alone
        if self.current is None:
            self.require_context()      # which says what is missing
        if older is not None:
            stream = older_stream(older, stream, "allocate(size")
        elif stream is None:
            raise TypeError("a stream is required: allocate() needs the keyword stream; device.default_stream is one")
        begin_alone(&alone, <PyObject*>self)
        resource = self.memory
        end_alone(&alone)
        if resource is None:
            resource = self.memory_resource
        if (<MemoryResource>resource).direct:
            return (<MemoryResource>resource).obtain(size, stream)
        return resource.allocate(size, stream=stream)

    def sync(self):
        """Wait until all work on the device is complete (``cuCtxSynchronize``).

        Raises
        ------
        CUDAError
            Some of that work failed.
        """
        cdef int pushed = enter(self.require_context().pointer)
        cdef CUresult status
        try:
            with nogil:
                status = cu.cuCtxSynchronize()
        finally:
            leave(pushed)
        check(status, b"cuCtxSynchronize")

    def create_graph_builder(self):
        """Make a graph builder that captures its own new stream.

        Returns
        -------
        cupola.graph.GraphBuilder
            Call its ``begin_building()`` next.

        Raises
        ------
        CUDAError
            :meth:`set_current` was not called on this thread.
        """
        self.require_context()
        return above("GraphBuilder")._from_stream(self.create_stream())

    def create_opaque_array(self, options):
        """Make an array on this device (``cuArray3DCreate``).

        Parameters
        ----------
        options : texture.OpaqueArrayOptions or dict
            Its extents and elements.

        Returns
        -------
        texture.OpaqueArray
            Of undefined content.

        Raises
        ------
        CUDAError
            It is larger than the device permits, there is not so much memory, or :meth:`set_current` was not called on this
            thread.
        """
        return above("create_opaque_array")(self.device_id, <uintptr_t>self.require_context().pointer, options)

    def create_mipmapped_array(self, options):
        """Make a mipmapped array on this device (``cuMipmappedArrayCreate``).

        Parameters
        ----------
        options : texture.MipmappedArrayOptions or dict
            Its extents, elements and levels.

        Returns
        -------
        texture.MipmappedArray
            Of undefined content.

        Raises
        ------
        ValueError
            There are more levels than the extents can be halved.
        CUDAError
            As from :meth:`create_opaque_array`.
        """
        return above("create_mipmapped_array")(self.device_id, <uintptr_t>self.require_context().pointer, options)

    def create_texture_object(self, *, resource, options=None):
        """Make a texture on this device, through which kernels read an array or memory (``cuTexObjectCreate``).

        Parameters
        ----------
        resource : texture.ResourceDescriptor
            What it reads.
        options : texture.TextureObjectOptions or dict, optional
            How it filters, and what there is outside.

        Returns
        -------
        texture.TextureObject

        Raises
        ------
        TypeError
            `resource` is no descriptor, or an option is unknown or of a wrong type.
        ValueError
            An option has no such value.
        RuntimeError
            What `resource` describes is closed.
        CUDAError
            The options do not suit the resource, memory is not aligned, or :meth:`set_current` was not called on this
            thread.
        """
        if make_texture == NULL:
            above("TextureObject")      # sets it
        return make_texture(self.device_id, self.require_context().pointer, resource, options)

    def create_surface_object(self, *, resource):
        """Make a surface on this device, through which kernels read and write an array (``cuSurfObjectCreate``).

        Parameters
        ----------
        resource : texture.ResourceDescriptor
            Of an array made with ``is_surface_load_store=True``, or of a level of such a mipmapped array.

        Returns
        -------
        texture.SurfaceObject

        Raises
        ------
        TypeError
            `resource` is no descriptor.
        ValueError
            It is of another kind, or the array was not made for surfaces.
        RuntimeError
            The array is closed.
        CUDAError
            :meth:`set_current` was not called on this thread.
        """
        return above("create_surface_object")(self.device_id, <uintptr_t>self.require_context().pointer, resource)

    cdef Context require_context(self):
        cdef Alone alone
        cdef Context current
        begin_alone(&alone, <PyObject*>self)
        current = self.current
        end_alone(&alone)
        if current is None:
            raise CUDAError(
                f"Device {self.device_id} is not yet initialized on this thread: "
                f"call Device({self.device_id}).set_current() first"
            )
        return current

    cdef int read_attribute(self, int number, int fallback) except? -1:
        cdef int value = 0
        cdef CUresult status = cu.cuDeviceGetAttribute(&value, <CUdevice_attribute>number, self.device_id)
        if status == CUDA_ERROR_INVALID_VALUE or status == CUDA_ERROR_NOT_SUPPORTED:
            return fallback
        check(status, b"cuDeviceGetAttribute")
        return value

    def _attribute(self, int number, int fallback=0):
        return self.read_attribute(number, fallback)

    def __int__(self):
        return self.device_id

    def __eq__(self, other):
        if not isinstance(other, Device):
            return NotImplemented
        return self.device_id == (<Device>other).device_id

    def __hash__(self):
        return hash(self.uuid)

    def __repr__(self):
        return f"<Device {self.device_id} ({self.name})>"

    def _repr_html_(self):
        return above("html_of")(self)

    def __reduce__(self):
        return Device, (self.device_id,)


cdef str _uuid_of(Device device):
    cdef CUuuid raw
    check(cu.cuDeviceGetUuid(&raw, device.device_id), b"cuDeviceGetUuid")
    digits = (<char*>&raw)[:16].hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


cdef object _resource_of(Device device):
    """Where a device gets memory if nothing else is said."""
    if device.properties.memory_pools_supported:
        return above("DeviceMemoryResource")(device.device_id)
    return above("SynchronousMemoryResource")(device.device_id)


@cython.critical_section
cdef object _set_current(Device device, Context chosen):
    cdef CUcontext pointer
    cdef CUcontext popped = NULL
    cdef Context before
    if chosen is None:
        pointer = primary_context(device.device_id)
        check(cu.cuCtxSetCurrent(pointer), b"cuCtxSetCurrent")
        if device.born != resets:
            if device.memory_is_own and was_reset(pointer, device.born):
                device.memory = None      # the device's pool is as good as new, its release threshold too
            device.born = resets
        if device.current is None or device.current.pointer != pointer:
            device.current = wrap_context(pointer)
        return None
    if chosen.pointer == NULL:
        raise RuntimeError("Context has been closed")
    if chosen.device_id != device.device_id:
        raise RuntimeError(
            f"the context belongs to device {chosen.device_id}, and cannot be made current through device "
            f"{device.device_id}"
        )
    check(cu.cuCtxPopCurrent(&popped), b"cuCtxPopCurrent")
    before = device.current if device.current is not None and device.current.pointer == popped else wrap_context(popped)
    check(cu.cuCtxPushCurrent(chosen.pointer), b"cuCtxPushCurrent")
    device.current = chosen
    return before


cdef tuple _devices():
    """This thread's devices."""
    cdef uint64_t thread = PyThreadState_GetID(PyThreadState_Get())
    if cupola_devices.devices != NULL and cupola_devices.thread == thread:
        return <tuple>cupola_devices.devices
    cdef int count = 0
    cdef Device device
    cdef list made = []
    cdef int device_id
    initialise()
    check(cu.cuDeviceGetCount(&count), b"cuDeviceGetCount")
    for device_id in range(count):
        device = Device.__new__(Device)
        device.device_id = device_id
        made.append(device)
    cdef tuple devices = tuple(made)
    (<dict>PyThreadState_GetDict())["cupola.core.devices"] = devices
    cupola_devices.thread = thread
    cupola_devices.devices = <PyObject*>devices
    return devices


def _forget_devices():
    cupola_devices.devices = NULL


cdef Device get_device(Py_ssize_t device_id):
    cdef tuple devices = _devices()
    if device_id < 0:
        raise ValueError(f"device_id must be >= 0, got {device_id}")
    if device_id >= PyTuple_GET_SIZE(devices):
        raise ValueError(f"device_id must be within [0, {len(devices)}), got {device_id}")
    return <Device>devices[device_id]


cdef Device get_current_device():
    cdef CUdevice device = 0
    _devices()
    cdef CUresult status = cu.cuCtxGetDevice(&device)
    if status == CUDA_ERROR_INVALID_CONTEXT:
        return get_device(0)
    check(status, b"cuCtxGetDevice")
    return get_device(device)


cdef Device _choose(object chosen):
    if type(chosen) is int:
        return get_device(chosen)
    if chosen is None:
        return get_current_device()
    if isinstance(chosen, Device):
        return <Device>chosen
    if not hasattr(type(chosen), "__index__"):
        raise TypeError(f"device_id must be an int, a Device or None, not {type(chosen).__name__}")
    return get_device(chosen.__index__())


cdef PyObject* _device_vectorcall(PyObject* cls, PyObject** arguments, size_t flags, PyObject* names) except NULL:
    cdef Py_ssize_t count = PyVectorcall_NARGS(flags)
    cdef Device device
    if count == 1 and names == NULL:
        device = _choose(<object>arguments[0])
    elif count == 0 and names == NULL:
        device = get_current_device()
    elif count == 0 and len(<tuple>names) == 1 and (<tuple>names)[0] == "device_id":
        device = _choose(<object>arguments[0])
    else:
        raise TypeError("Device() takes one argument: device_id")
    Py_INCREF(device)
    return <PyObject*>device


cdef PyObject* _device_new(PyTypeObject* cls, PyObject* arguments, PyObject* keywords) except NULL:
    cdef tuple positional = <tuple>arguments
    cdef dict named = <dict>keywords if keywords != NULL else {}
    cdef Device device
    if len(positional) + len(named) > 1 or (named and "device_id" not in named):
        raise TypeError("Device() takes one argument: device_id")
    device = _choose(positional[0] if positional else named.get("device_id"))
    Py_INCREF(device)
    return <PyObject*>device


cupola_set_call(<PyTypeObject*>Device, <void*>_device_new, <void*>_device_vectorcall)
os.register_at_fork(after_in_child=_forget_devices)


put_up_signs(Device)
