"""The shape of a launch."""

import warnings

from libc.string cimport memset

from cupola.core._cuda cimport (
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CUlaunchAttribute
)
from cupola.core._device cimport Device, get_current_device
from cupola.core._errors import CUDAError


cdef class LaunchConfig:
    """LaunchConfig(grid=None, cluster=None, block=None, shmem_size=None, is_cooperative=False, \
programmatic_stream_serialization=False)\n--\n\nHow many threads a launch has, and how they are grouped.

    Parameters
    ----------
    grid : int or tuple of up to 3 int
        Extents of the grid in blocks; in clusters when there is a `cluster`. Missing extents are 1.
    cluster : int or tuple of up to 3 int, optional
        Extents of a cluster in blocks; needs compute capability 9.0.
    block : int or tuple of up to 3 int
        Extents of a block in threads.
    shmem_size : int, optional
        Dynamic shared memory of each block, in bytes.
    is_cooperative : bool
        All blocks run at the same time, so that they can wait for one another.
    programmatic_stream_serialization : bool
        The kernel may start before the one in front of it in the stream has ended.

    Raises
    ------
    ValueError
        An extent is not a positive int, or there are too many; `grid` or `block` is missing.
    CUDAError
        The current device has no clusters or no cooperative launches.

    Notes
    -----
    The extents are checked against the limits of the device when the kernel is launched
    (``cuLaunchKernelEx``), not here.
    """

    def __init__(self, grid=None, cluster=None, block=None, shmem_size=None, is_cooperative=False,
                 programmatic_stream_serialization=False, **older):
        if older:
            if set(older) != {"cooperative_launch"}:
                raise TypeError(f"LaunchConfig has no field {min(set(older) - {'cooperative_launch'})!r}")
            if is_cooperative:
                raise TypeError("cooperative_launch is the older spelling of is_cooperative: give one of them")
            warnings.warn("LaunchConfig(cooperative_launch=) is now is_cooperative=", DeprecationWarning, stacklevel=1)
            is_cooperative = older["cooperative_launch"]
        if grid is None or block is None:
            raise ValueError(_missing(grid, cluster, block))
        _read_extents("grid", grid, self.grid_size)
        _read_extents("block", block, &self.native.blockDimX)
        if cluster is not None:
            _read_extents("cluster", cluster, self.cluster_size)
        else:
            memset(self.cluster_size, 0, sizeof(self.cluster_size))
        self.shmem_size = shmem_size
        self.cooperative = bool(is_cooperative)
        self.serialization = bool(programmatic_stream_serialization)
        _check_abilities(self)
        self.settle()

    @property
    def grid(self):
        """tuple of 3 int: extents of the grid in blocks, in clusters when there is a cluster."""
        return self.grid_size[0], self.grid_size[1], self.grid_size[2]

    @grid.setter
    def grid(self, value):
        _read_extents("grid", value, self.grid_size)
        self.settle()

    @property
    def block(self):
        """tuple of 3 int: extents of a block in threads."""
        return self.native.blockDimX, self.native.blockDimY, self.native.blockDimZ

    @block.setter
    def block(self, value):
        _read_extents("block", value, &self.native.blockDimX)

    @property
    def cluster(self):
        """tuple of 3 int, or None: extents of a cluster in blocks."""
        if self.cluster_size[0] == 0:
            return None
        return self.cluster_size[0], self.cluster_size[1], self.cluster_size[2]

    @cluster.setter
    def cluster(self, value):
        if value is None:
            memset(self.cluster_size, 0, sizeof(self.cluster_size))
        else:
            _read_extents("cluster", value, self.cluster_size)
            _check_abilities(self)
        self.settle()

    @property
    def shmem_size(self):
        """int: dynamic shared memory of each block, in bytes."""
        return self.native.sharedMemBytes

    @shmem_size.setter
    def shmem_size(self, value):
        if value is None:
            self.native.sharedMemBytes = 0
            return
        if isinstance(value, (str, bytes)) or not hasattr(type(value), "__int__"):
            raise TypeError(f"shmem_size must be a number of bytes, not {type(value).__name__}")
        size = int(value)
        if size < 0:
            raise ValueError(f"shmem_size must be >= 0, got {size}")
        if size > 0xFFFFFFFF:
            raise OverflowError(f"shmem_size must fit in 32 bits, got {size}")
        self.native.sharedMemBytes = size

    @property
    def is_cooperative(self):
        """bool: whether all blocks run at the same time."""
        return self.cooperative

    @is_cooperative.setter
    def is_cooperative(self, value):
        self.cooperative = bool(value)
        _check_abilities(self)
        self.settle()

    @property
    def programmatic_stream_serialization(self):
        """bool: whether the kernel may start before the one in front of it has ended."""
        return self.serialization

    @programmatic_stream_serialization.setter
    def programmatic_stream_serialization(self, value):
        self.serialization = bool(value)
        self.settle()

    cdef int settle(self) except -1:
        """Bring the native form in line with the fields."""
        cdef CUlaunchAttribute* attribute = self.attributes
        cdef unsigned int* native = &self.native.gridDimX
        cdef unsigned long long extent
        cdef int axis
        for axis in range(3):
            extent = self.grid_size[axis]
            if self.cluster_size[0] != 0:
                extent *= self.cluster_size[axis]
            if extent > 0xFFFFFFFF:
                raise OverflowError(f"grid times cluster must fit in 32 bits for each axis, got {extent}")
            native[axis] = <unsigned int>extent
        if self.cluster_size[0] != 0:
            attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            attribute.value.clusterDim.x = self.cluster_size[0]
            attribute.value.clusterDim.y = self.cluster_size[1]
            attribute.value.clusterDim.z = self.cluster_size[2]
            attribute += 1
        if self.cooperative:
            attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            attribute.value.cooperative = 1
            attribute += 1
        if self.serialization:
            attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            attribute += 1
        self.native.numAttrs = <unsigned int>(attribute - self.attributes)
        self.native.attrs = self.attributes if self.native.numAttrs else NULL
        return 0

    def _fields(self):
        return (self.grid, self.cluster, self.block, self.shmem_size, self.is_cooperative,
                self.programmatic_stream_serialization)

    def __eq__(self, other):
        if not isinstance(other, LaunchConfig):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self):
        return hash(self._fields())

    def __repr__(self):
        return (
            f"LaunchConfig(grid={self.grid}, cluster={self.cluster}, block={self.block}, "
            f"shmem_size={self.shmem_size}, is_cooperative={self.is_cooperative}, "
            f"programmatic_stream_serialization={self.programmatic_stream_serialization})"
        )

    def __reduce__(self):
        raise TypeError("a LaunchConfig cannot be pickled or copied: make another one from its fields")


cdef int _read_extents(str field, object value, unsigned int* extents) except -1:
    """Read an int or a tuple of up to three; nothing is written unless all is well."""
    cdef unsigned int[3] read
    cdef Py_ssize_t axis
    read[:] = [1, 1, 1]
    if not isinstance(value, tuple):
        read[0] = _read_extent(field, value, value)
    elif len(<tuple>value) > 3:
        raise ValueError(f"{field} must be an int or a tuple of at most 3 ints, got {value!r}")
    else:
        for axis in range(len(<tuple>value)):
            read[axis] = _read_extent(field, (<tuple>value)[axis], value)
    for axis in range(3):
        extents[axis] = read[axis]
    return 0


cdef str _missing(object grid, object cluster, object block):
    cdef str field = "grid" if grid is None else "block"
    cdef str where = ""
    if block is None and cluster is not None:
        where = "; by position the second argument is cluster"
    return f"{field} must be an int or a tuple of at most 3 ints, got None: write LaunchConfig(grid=..., block=...){where}"


cdef unsigned int _read_extent(str field, object extent, object given) except 0:
    cdef long long size
    if not isinstance(extent, int):
        if not hasattr(type(extent), "__index__"):
            advice = ": round it, up with -(-n // block) or math.ceil()" if isinstance(extent, float) else ""
            raise ValueError(f"{field} must be an int or a tuple of at most 3 ints, got {given!r}{advice}")
        extent = extent.__index__()
    size = extent
    if size < 1:
        advice = "; where there is nothing to do, do not launch" if size == 0 else ""
        raise ValueError(f"every extent of {field} must be >= 1, got {given!r}{advice}")
    if size > 0xFFFFFFFF:
        raise OverflowError(f"every extent of {field} must fit in 32 bits, got {given!r}")
    return <unsigned int>size


cdef int _check_abilities(LaunchConfig config) except -1:
    """What the current device must be able to do; asked only when the fields need it."""
    cdef Device device
    if config.cluster_size[0] == 0 and not config.cooperative:
        return 0
    device = get_current_device()
    if config.cluster_size[0] != 0:
        major, minor = device.compute_capability
        if major < 9:
            raise CUDAError(f"clusters need compute capability 9.0 or higher; {device.name} has {major}.{minor}")
        if not device.properties.cluster_launch:
            raise CUDAError(f"{device.name} has no clusters")
    if config.cooperative and not device.properties.cooperative_launch:
        raise CUDAError(f"{device.name} has no cooperative launches")
    return 0
