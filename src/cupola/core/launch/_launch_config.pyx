"""The shape of a launch."""

import operator
import warnings

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memset

from cupola.core.base._cuda cimport (
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
    CUlaunchAttribute, CUlaunchAttributeID
)
from cupola.core.device._device cimport Device, get_current_device
from cupola.core.base._options import no_such_name
from cupola.core.base._errors import CUDAError

cimport cython


cdef class LaunchConfig:
    """LaunchConfig(grid=None, cluster=None, block=None, shmem_size=None, is_cooperative=False, \
programmatic_stream_serialization=False, **attributes)\n--\n\nHow many threads a launch has, and how they are grouped.

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
        An extent is not a positive int, or there are too many; `grid` or `block` is missing; or an attribute is not
        within what it or the current device permits.
    TypeError
        A name is unknown, or an attribute is of the wrong type.
    CUDAError
        The current device has no clusters or no cooperative launches.

    Notes
    -----
    The other attributes of launches are given by keyword, too, and can be read and set as attributes of the object:
    `priority`, `programmatic_event`, `launch_completion_event`, `mem_sync_domain`, `mem_sync_domain_map`,
    `preferred_cluster`, `cluster_scheduling_policy`, `portable_cluster_size_mode`,
    `preferred_shared_memory_carveout`, `shared_memory_mode`, `access_policy_window`,
    `nvlink_util_centric_scheduling` and `device_updatable_kernel_node`. None leaves an attribute out.

    The extents are checked against the limits of the device when the kernel is launched
    (``cuLaunchKernelEx``), not here.

    Threads may launch with one configuration. One thread changes it while no other uses it.

    Examples
    --------
    >>> config = LaunchConfig(grid=-(-n // 256), block=256, shmem_size=1024)
    >>> config.block
    (256, 1, 1)
    """

    def __init__(self, grid=None, cluster=None, block=None, shmem_size=None, is_cooperative=False,
                 programmatic_stream_serialization=False, **attributes):
        if "cooperative_launch" in attributes:
            if is_cooperative:
                raise TypeError("cooperative_launch is the older spelling of is_cooperative: give one of them")
            warnings.warn("LaunchConfig(cooperative_launch=) is now is_cooperative=", DeprecationWarning, stacklevel=1)
            is_cooperative = attributes.pop("cooperative_launch")
        if grid is None or block is None:
            if attributes:
                _refuse_unknown(attributes)     # such as threads=256
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
        self.more = _convert_all(attributes) if attributes else None
        self.settle()

    def __dealloc__(self):
        PyMem_Free(self.native.attrs)

    @classmethod
    def for_elements(cls, n, block=256, **options):
        """A configuration with at least one thread for each element.

        The kernel compares its index with the number of elements, since the last block may reach beyond it.

        Parameters
        ----------
        n : int or tuple of up to 3 int
            How many elements, x first. Zero gives one block, which then has nothing to do.
        block : int or tuple of up to 3 int
            Threads of a block.
        **options
            The other arguments of LaunchConfig.

        Returns
        -------
        LaunchConfig

        Raises
        ------
        ValueError
            A number of elements is negative, or an extent of the block is not a positive int.

        Examples
        --------
        >>> LaunchConfig.for_elements(1000).grid
        (4, 1, 1)
        >>> LaunchConfig.for_elements((640, 480), block=(16, 16)).grid
        (40, 30, 1)
        """
        counts = n if isinstance(n, (tuple, list)) else (n,)
        threads = tuple(block) if isinstance(block, (tuple, list)) else (block,)
        if not 1 <= len(counts) <= 3 or not 1 <= len(threads) <= 3:
            raise ValueError(f"n and block have one to three extents, got {n!r} and {block!r}")
        grid = []
        for i in range(max(len(counts), len(threads))):
            count = operator.index(counts[i]) if i < len(counts) else 1
            width = operator.index(threads[i]) if i < len(threads) else 1
            if count < 0 or width < 1:
                raise ValueError(f"n must not be negative and block must be positive, got {n!r} and {block!r}")
            grid.append(max(-(-count // width), 1))
        return cls(grid=tuple(grid), block=tuple([operator.index(width) for width in threads]), **options)

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

    @property
    def priority(self):
        """int or None: the priority of the launch; lower numbers run first. The device's range is that of streams."""
        return _value_of(self, "priority")

    @priority.setter
    def priority(self, value):
        self.change("priority", value)

    @property
    def programmatic_event(self):
        """tuple of (Event, bool), or None: an event that occurs when all blocks have triggered it.

        They do so by ``cudaTriggerProgrammaticLaunchCompletion``, with True as soon as they begin. It can be set to an
        Event, too.
        """
        return _value_of(self, "programmatic_event")

    @programmatic_event.setter
    def programmatic_event(self, value):
        self.change("programmatic_event", value)

    @property
    def launch_completion_event(self):
        """Event or None: an event that occurs when all blocks have begun."""
        return _value_of(self, "launch_completion_event")

    @launch_completion_event.setter
    def launch_completion_event(self, value):
        self.change("launch_completion_event", value)

    @property
    def mem_sync_domain(self):
        """str or None: ``"default"`` or ``"remote"``, the logical domain of the kernel's memory fences."""
        return _value_of(self, "mem_sync_domain")

    @mem_sync_domain.setter
    def mem_sync_domain(self, value):
        self.change("mem_sync_domain", value)

    @property
    def mem_sync_domain_map(self):
        """tuple of 2 int, or None: the physical domains of the logical domains default and remote."""
        return _value_of(self, "mem_sync_domain_map")

    @mem_sync_domain_map.setter
    def mem_sync_domain_map(self, value):
        self.change("mem_sync_domain_map", value)

    @property
    def preferred_cluster(self):
        """tuple of 3 int, or None: extents of larger clusters to form where there is room, multiples of `cluster`."""
        return _value_of(self, "preferred_cluster")

    @preferred_cluster.setter
    def preferred_cluster(self, value):
        self.change("preferred_cluster", value)

    @property
    def cluster_scheduling_policy(self):
        """str or None: ``"default"``, ``"spread"`` or ``"load_balancing"``, where the blocks of a cluster go."""
        return _value_of(self, "cluster_scheduling_policy")

    @cluster_scheduling_policy.setter
    def cluster_scheduling_policy(self, value):
        self.change("cluster_scheduling_policy", value)

    @property
    def portable_cluster_size_mode(self):
        """str or None: ``"default"``, ``"require_portable"`` or ``"allow_non_portable"`` clusters."""
        return _value_of(self, "portable_cluster_size_mode")

    @portable_cluster_size_mode.setter
    def portable_cluster_size_mode(self, value):
        self.change("portable_cluster_size_mode", value)

    @property
    def preferred_shared_memory_carveout(self):
        """int or None: percent of the multiprocessor's memory to make shared memory, the rest being L1 cache."""
        return _value_of(self, "preferred_shared_memory_carveout")

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, value):
        self.change("preferred_shared_memory_carveout", value)

    @property
    def shared_memory_mode(self):
        """str or None: how much dynamic shared memory a block may have.

        One of ``"default"``, ``"require_portable"``, ``"allow_non_portable"``, ``"allow_oversized"`` and
        ``"prefer_oversized"``.
        """
        return _value_of(self, "shared_memory_mode")

    @shared_memory_mode.setter
    def shared_memory_mode(self, value):
        self.change("shared_memory_mode", value)

    @property
    def access_policy_window(self):
        """tuple of pairs, or None: which memory is to stay in the L2 cache.

        Set to a dict: `memory`, a Buffer or an address; `size` in bytes; `hit_ratio`, the part of it to which `hit`
        applies and `miss` to the rest: ``"persisting"`` (for `hit`), ``"normal"`` or ``"streaming"``."""
        return _value_of(self, "access_policy_window")

    @access_policy_window.setter
    def access_policy_window(self, value):
        self.change("access_policy_window", value)

    @property
    def nvlink_util_centric_scheduling(self):
        """bool or None: whether to schedule for the use of NVLink."""
        return _value_of(self, "nvlink_util_centric_scheduling")

    @nvlink_util_centric_scheduling.setter
    def nvlink_util_centric_scheduling(self, value):
        self.change("nvlink_util_centric_scheduling", value)

    @property
    def device_updatable_kernel_node(self):
        """bool or None: whether kernels may change the node of a graph that the launch becomes.

        They are given its handle, :attr:`.KernelNode.device_node`, or `device_node` here for a launch that was captured.
        """
        return _value_of(self, "device_updatable_kernel_node")

    @device_updatable_kernel_node.setter
    def device_updatable_kernel_node(self, value):
        self.change("device_updatable_kernel_node", value)

    @property
    def device_node(self):
        """int: the ``CUgraphDeviceNode`` of the node that the last captured launch became, for device code; else 0."""
        return self.updatable_node

    cdef int change(self, str name, object value) except -1:
        """Set one of the other attributes, or leave it out; all or nothing."""
        cdef dict converted = _convert_all({name: value})
        cdef dict before = _more(self)
        cdef dict after = {} if before is None else dict(before)
        after.pop(name, None)
        after.update(converted)
        try:
            self.take(after)
        except BaseException:
            self.take(before)
            raise
        return 0

    cdef int take(self, dict more) except -1:
        with cython.critical_section(self):
            self.more = more
        return self.settle()

    @cython.critical_section
    cdef int settle(self) except -1:
        """Bring the native form in line with the fields, all of it at once: threads may launch meanwhile."""
        cdef CUlaunchAttribute[MOST_ATTRIBUTES] made
        cdef CUlaunchAttribute* attribute = made
        cdef unsigned int[3] extents
        cdef unsigned int count
        cdef unsigned long long extent
        cdef int axis
        for axis in range(3):
            extent = self.grid_size[axis]
            if self.cluster_size[0] != 0:
                extent *= self.cluster_size[axis]
            if extent > 0xFFFFFFFF:
                raise OverflowError(f"grid times cluster must fit in 32 bits for each axis, got {extent}")
            extents[axis] = <unsigned int>extent
        if self.cluster_size[0] != 0:
            begin(attribute, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            attribute.value.clusterDim.x = self.cluster_size[0]
            attribute.value.clusterDim.y = self.cluster_size[1]
            attribute.value.clusterDim.z = self.cluster_size[2]
            attribute += 1
        if self.cooperative:
            begin(attribute, CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            attribute.value.cooperative = 1
            attribute += 1
        if self.serialization:
            begin(attribute, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            attribute.value.programmaticStreamSerializationAllowed = 1
            attribute += 1
        if self.more:
            attribute = _write_all(self, attribute)
        count = <unsigned int>(attribute - made)
        if count != 0:
            if self.native.attrs == NULL:
                self.native.attrs = <CUlaunchAttribute*>PyMem_Calloc(MOST_ATTRIBUTES, sizeof(CUlaunchAttribute))
                if self.native.attrs == NULL:
                    raise MemoryError()
            memcpy(self.native.attrs, made, count * sizeof(CUlaunchAttribute))
        self.native.gridDimX, self.native.gridDimY, self.native.gridDimZ = extents[0], extents[1], extents[2]
        self.native.numAttrs = count
        self.updatable_node = 0
        return 0

    def _fields(self):
        return (self.grid, self.cluster, self.block, self.shmem_size, self.is_cooperative,
                self.programmatic_stream_serialization, *self._attributes().items())

    def _attributes(self):
        """dict: the other attributes that are set."""
        cdef dict more = _more(self)
        return {name: value for name, (value, _) in more.items()} if more else {}

    def __eq__(self, other):
        if not isinstance(other, LaunchConfig):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self):
        return hash(self._fields())

    def __repr__(self):
        more = "".join([f", {name}={value!r}" for name, value in self._attributes().items()])
        return (
            f"LaunchConfig(grid={self.grid}, cluster={self.cluster}, block={self.block}, "
            f"shmem_size={self.shmem_size}, is_cooperative={self.is_cooperative}, "
            f"programmatic_stream_serialization={self.programmatic_stream_serialization}{more})"
        )

    def __reduce__(self):
        raise TypeError("a LaunchConfig cannot be pickled or copied: make another one from its fields")


@cython.critical_section
cdef void snapshot(LaunchConfig config, CUlaunchConfig* taken, CUlaunchAttribute* attributes) noexcept:
    taken[0] = config.native
    taken.attrs = attributes
    if taken.numAttrs != 0:
        memcpy(attributes, config.native.attrs, taken.numAttrs * sizeof(CUlaunchAttribute))


cdef void keep_node(LaunchConfig config, const CUlaunchConfig* launched) noexcept:
    cdef unsigned int i
    for i in range(launched.numAttrs):
        if launched.attrs[i].id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            config.updatable_node = <uintptr_t>launched.attrs[i].value.deviceUpdatableKernelNode.devNode


cdef LaunchConfig copy_config(LaunchConfig config):
    cdef LaunchConfig made = LaunchConfig.__new__(LaunchConfig)
    made.native = config.native
    made.native.attrs = NULL
    made.native.numAttrs = 0
    made.grid_size[:] = config.grid_size
    made.cluster_size[:] = config.cluster_size
    made.cooperative = config.cooperative
    made.serialization = config.serialization
    more = _more(config)
    made.more = None if more is None else dict(more)
    made.settle()
    return made


cdef int _refuse_unknown(dict attributes) except -1:
    from cupola.core.launch._launch_attributes import ATTRIBUTES
    unknown = [name for name in attributes if name not in ATTRIBUTES]
    if unknown:
        fields = [name for name in dir(LaunchConfig) if not name.startswith("_")]
        raise no_such_name("LaunchConfig", "field", min(unknown), fields)
    return 0


cdef dict _convert_all(dict attributes):
    """Name -> (value, bytes) of those that are not None, in the order of their numbers."""
    from cupola.core.launch._launch_attributes import ATTRIBUTES, convert
    _refuse_unknown(attributes)
    return {name: convert(name, attributes[name]) for name in ATTRIBUTES if attributes.get(name) is not None}


cdef object _value_of(LaunchConfig config, str name):
    cdef dict more = _more(config)
    return more[name][0] if more and name in more else None


cdef dict _more(LaunchConfig config):
    with cython.critical_section(config):
        return config.more


cdef inline void begin(CUlaunchAttribute* attribute, CUlaunchAttributeID number) noexcept:
    memset(attribute, 0, sizeof(CUlaunchAttribute))
    attribute.id = number


cdef CUlaunchAttribute* _write_all(LaunchConfig config, CUlaunchAttribute* attribute) except NULL:
    from cupola.core.launch._launch_attributes import ATTRIBUTES
    cdef bytes packed
    if "preferred_cluster" in config.more:
        _check_preferred(config, config.more["preferred_cluster"][0])
    for name, (number, _) in ATTRIBUTES.items():
        if name in config.more:
            packed = config.more[name][1]
            begin(attribute, <CUlaunchAttributeID><int>number)
            memcpy(&attribute.value, <char*>packed, len(packed))
            attribute += 1
    return attribute


cdef int _check_preferred(LaunchConfig config, tuple preferred) except -1:
    if config.cluster_size[0] == 0:
        raise ValueError("preferred_cluster needs a cluster; its extents must be multiples of the cluster's")
    for axis, extent in enumerate(preferred):
        blocks = config.grid_size[<int>axis] * config.cluster_size[<int>axis]
        if extent % config.cluster_size[<int>axis] or blocks % extent:
            raise ValueError(
                f"preferred_cluster {preferred} must be a multiple of the cluster {config.cluster} and divide the "
                f"grid, which has {blocks} blocks along {'xyz'[axis]}"
            )
    return 0


cdef int _read_extents(str field, object value, unsigned int* extents) except -1:
    """Read an int or a tuple of up to three; nothing is written if one of them is invalid."""
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
        advice = "; if there is nothing to do, do not launch" if size == 0 else ""
        raise ValueError(f"every extent of {field} must be >= 1, got {given!r}{advice}")
    if size > 0xFFFFFFFF:
        raise OverflowError(f"every extent of {field} must fit in 32 bits, got {given!r}")
    return <unsigned int>size


cdef int _check_abilities(LaunchConfig config) except -1:
    """Check that the current device has what the fields need."""
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
