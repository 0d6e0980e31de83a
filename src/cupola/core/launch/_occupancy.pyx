"""How many blocks of a kernel run at the same time (CUDA Driver API, occupancy)."""

from collections import namedtuple

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CUfunction, CUlaunchAttribute, CUlaunchConfig, CUoccupancyB2DSize, CUresult, check, closed_error, cu, factory_error
)
from cupola.core.program._kernel cimport Kernel
from cupola.core.launch._launch_config cimport MOST_ATTRIBUTES, LaunchConfig, snapshot
from cupola.core.device._stream cimport Stream

from cupola.core.launch._c_function import address_of

MaxPotentialBlockSizeOccupancyResult = namedtuple(
    "MaxPotentialBlockSizeOccupancyResult", ("min_grid_size", "max_block_size"), module=__name__
)
MaxPotentialBlockSizeOccupancyResult.__doc__ = """A launch that fills the device.

Attributes
----------
min_grid_size : int
    Blocks of the smallest grid that does.
max_block_size : int
    Threads of each of its blocks.
"""


cdef class KernelOccupancy:
    """Occupancy of a kernel on the current device, from :attr:`.Kernel.occupancy`.

    Notes
    -----
    Threads may share it.
    """

    cdef Kernel kernel

    def __init__(self, *args, **kwargs):
        raise factory_error("KernelOccupancy", "Kernel.occupancy")

    def __repr__(self):
        return f"<KernelOccupancy of {self.kernel}>"

    def max_active_blocks_per_multiprocessor(self, int block_size, size_t dynamic_shared_memory_size):
        """How many blocks are resident on a multiprocessor (``cuOccupancyMaxActiveBlocksPerMultiprocessor``).

        Parameters
        ----------
        block_size : int
            Threads of a block.
        dynamic_shared_memory_size : int
            Bytes of dynamic shared memory of a block.

        Returns
        -------
        int
        """
        cdef CUfunction function = <CUfunction>self.kernel.pointer
        cdef CUresult status
        cdef int count = 0
        with nogil:
            status = cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &count, function, block_size, dynamic_shared_memory_size)
        check(status, b"cuOccupancyMaxActiveBlocksPerMultiprocessor")
        return count

    def max_potential_block_size(self, dynamic_shared_memory_needed, int block_size_limit):
        """The block size of the highest occupancy (``cuOccupancyMaxPotentialBlockSize``).

        Parameters
        ----------
        dynamic_shared_memory_needed : int or cupola.bindings.driver.CUoccupancyB2DSize
            Bytes of dynamic shared memory of a block, or a C function that gives them for a block size: made from the
            function's address, or with ``_ptr`` from the address of a place that holds it.
        block_size_limit : int
            The most threads of a block; 0: no limit.

        Returns
        -------
        MaxPotentialBlockSizeOccupancyResult
            Named tuple (min_grid_size, max_block_size).

        Raises
        ------
        TypeError
            `dynamic_shared_memory_needed` is something else.
        ValueError
            There is no function at the address.
        """
        cdef CUfunction function = <CUfunction>self.kernel.pointer
        cdef CUoccupancyB2DSize callback = NULL
        cdef size_t size = 0
        cdef int grid = 0
        cdef int block = 0
        cdef CUresult status
        if isinstance(dynamic_shared_memory_needed, int):
            size = dynamic_shared_memory_needed
        elif type(dynamic_shared_memory_needed).__name__ == "CUoccupancyB2DSize":
            callback = <CUoccupancyB2DSize><uintptr_t>address_of(dynamic_shared_memory_needed)
        else:
            raise TypeError(
                "dynamic_shared_memory_needed must be an int or a CUoccupancyB2DSize, not "
                f"{type(dynamic_shared_memory_needed).__name__}"
            )
        with nogil:
            status = cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, function, callback, size, block_size_limit)
        check(status, b"cuOccupancyMaxPotentialBlockSize")
        return MaxPotentialBlockSizeOccupancyResult(grid, block)

    def available_dynamic_shared_memory_per_block(self, int num_blocks_per_multiprocessor, int block_size):
        """Dynamic shared memory left to a block when so many are resident.

        ``cuOccupancyAvailableDynamicSMemPerBlock``.

        Parameters
        ----------
        num_blocks_per_multiprocessor : int
            Blocks that should be resident on a multiprocessor.
        block_size : int
            Threads of a block.

        Returns
        -------
        int
            Bytes.
        """
        cdef CUfunction function = <CUfunction>self.kernel.pointer
        cdef CUresult status
        cdef size_t size = 0
        with nogil:
            status = cu.cuOccupancyAvailableDynamicSMemPerBlock(
                &size, function, num_blocks_per_multiprocessor, block_size)
        check(status, b"cuOccupancyAvailableDynamicSMemPerBlock")
        return size

    def max_potential_cluster_size(self, LaunchConfig config not None, *, Stream stream not None):
        """The largest cluster, in blocks, that a launch like `config` can have (``cuOccupancyMaxPotentialClusterSize``).

        Parameters
        ----------
        config : LaunchConfig
            Its cluster is ignored.
        stream : Stream
            Whose context counts.

        Returns
        -------
        int
        """
        cdef CUlaunchAttribute[MOST_ATTRIBUTES] attributes
        cdef CUlaunchConfig native = _prepare(config, attributes, stream)
        cdef CUfunction function = <CUfunction>self.kernel.pointer
        cdef CUresult status
        cdef int size = 0
        native.attrs = NULL
        native.numAttrs = 0
        with nogil:
            status = cu.cuOccupancyMaxPotentialClusterSize(&size, function, &native)
        check(status, b"cuOccupancyMaxPotentialClusterSize")
        return size

    def max_active_clusters(self, LaunchConfig config not None, *, Stream stream not None):
        """How many clusters of a launch like `config` are resident at once (``cuOccupancyMaxActiveClusters``).

        Parameters
        ----------
        config : LaunchConfig
            With a cluster.
        stream : Stream
            Whose context counts.

        Returns
        -------
        int
        """
        cdef CUlaunchAttribute[MOST_ATTRIBUTES] attributes
        cdef CUlaunchConfig native = _prepare(config, attributes, stream)
        cdef CUfunction function = <CUfunction>self.kernel.pointer
        cdef CUresult status
        cdef int count = 0
        with nogil:
            status = cu.cuOccupancyMaxActiveClusters(&count, function, &native)
        check(status, b"cuOccupancyMaxActiveClusters")
        return count


cdef CUlaunchConfig _prepare(LaunchConfig config, CUlaunchAttribute* attributes, Stream stream) except *:
    cdef CUlaunchConfig native
    snapshot(config, &native, attributes)
    native.hStream = stream.open_handle().pointer
    return native


def occupancy_of(Kernel kernel not None):
    cdef KernelOccupancy made = KernelOccupancy.__new__(KernelOccupancy)
    made.kernel = kernel
    return made
