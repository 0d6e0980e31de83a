"""Pinned memory that messages pass through; and the whole of a usual message, compiled, since few bytes travel in microseconds.

A message is usual if its buffers are Arrays in one piece, there is a stream and no time limit, and MPI takes no device
memory. All others are for `_communicator`.
"""

from inspect import Parameter

import numpy as np
from mpi4py import MPI

from cupola import LegacyPinnedMemoryResource

from cupola.mpi._aware import is_cuda_aware
from cupola.mpi._request import RECEIVING, collect, forgotten

from libc.stdint cimport uintptr_t

from cupola.core.array._array cimport Array
from cupola.core.base._cuda cimport CUDA_SUCCESS, CUdeviceptr, CUresult, CUstream, check, cu
from cupola.core.device._stream cimport Stream, StreamHandle
from cupola.core.memory._buffer cimport Allocation, Buffer

cdef enum:
    SMALLEST = 4096
    MOST_SIZES = 50
    # Orders: more than 128 KiB take 2 MiB at least, which the system may back by a huge page. MPI's copies from process to
    # process look at every page.
    FEW_PAGES = 5
    HUGE_PAGE = 9
    MOST_BUFFERS = 2        # of a method

cdef object IN_PLACE = MPI.IN_PLACE, BYTE = MPI.BYTE, Intracomm = MPI.Intracomm, Status = MPI.Status
cdef object receiving = frozenset(RECEIVING), empty = Parameter.empty


cdef class Stage:
    """A piece of pinned memory. `bytes` is what the host sees of it."""

    cdef readonly object buffer
    cdef readonly object bytes
    cdef uintptr_t place
    cdef int order              # it has SMALLEST << order bytes
    cdef Stream queue           # with the copies that use it; None: there are none
    cdef object last_use        # an event behind them, once another stream wants it
    cdef object seen            # what `flat` returned last, of this type and size
    cdef object seen_type
    cdef Py_ssize_t seen_size

    def __init__(self, int order):
        self.buffer = LegacyPinnedMemoryResource().allocate(<Py_ssize_t>SMALLEST << order)
        self.bytes = np.from_dlpack(self.buffer).view(np.uint8)
        self.place = int(self.buffer.handle)
        self.order = order

    def view(self, shape, dtype):
        """Its first bytes as an array."""
        cdef Py_ssize_t count = 1
        for extent in shape:
            count *= extent
        return self.flat(dtype, count * dtype.itemsize).reshape(shape)

    cdef object flat(self, object dtype, Py_ssize_t size):
        if self.seen_type is not dtype or self.seen_size != size:
            self.seen = self.bytes[:size].view(dtype)
            self.seen_type, self.seen_size = dtype, size
        return self.seen

    cdef bint is_free_for(self, Stream queue) except -1:
        """In one stream, copies come one after another; MPI has the memory only when the stream has come to an end."""
        if self.queue is None or self.queue is queue:
            return True
        if self.last_use is None:
            self.last_use = self.queue.record()
        return self.last_use.is_done


cdef class Stages:
    """The pieces that a communicator has. Sizes are powers of two, so that few of them serve many messages."""

    cdef list idle              # of SMALLEST << n bytes in the list n
    cdef object resource        # the last one that was seen to be of a device
    cdef object status          # a spare MPI.Status, or None

    def __cinit__(self):
        self.idle = [[] for _ in range(MOST_SIZES)]

    def take(self, Py_ssize_t size, Stream queue=None):
        """A piece of at least `size` bytes, for copies in `queue`, which nobody else has until it is given back."""
        return self.find(size, queue)

    cdef Stage find(self, Py_ssize_t size, Stream queue):
        cdef int order = 0
        cdef list idle
        cdef Stage stage
        while <Py_ssize_t>SMALLEST << order < size:
            order += 1
        if FEW_PAGES < order < HUGE_PAGE:
            order = HUGE_PAGE
        idle = <list>self.idle[order]
        if idle:
            stage = <Stage>idle[len(idle) - 1]
            if stage.queue is queue:        # as it mostly is
                return idle.pop()
        for place in range(len(idle)):
            stage = <Stage>idle[place]
            if stage.queue is not None and stage.queue.is_closed:
                del idle[place]         # nobody can say when it is free; the driver frees it behind all work
                return self.find(size, queue)
            if stage.is_free_for(queue):
                del idle[place]
                return stage
        return Stage(order)

    def give_back(self, Stage stage, Stream queue=None):
        """It may be used again, behind what is now in `queue`."""
        self.put(stage, queue)

    cdef int put(self, Stage stage, Stream queue) except -1:
        if queue is not None:
            stage.queue, stage.last_use = queue, None
        (<list>self.idle[stage.order]).append(stage)
        return 0

    cdef bint is_of_device(self, Buffer memory) except -1:
        """Whether the host cannot read it; buffers of one resource are alike."""
        cdef Allocation allocation = memory.open_allocation()
        if allocation.resource is None or allocation.resource is not self.resource:
            if memory.is_host_accessible:
                return False
            self.resource = allocation.resource
        return True

    def give_back(self, Stage stage, Stream queue=None):
        """It may be used again, behind what is now in `queue`."""
        if queue is not None:
            stage.use(queue)
        self.idle.setdefault(stage.size, []).append(stage)


cdef class Settings:
    """What a communicator has besides its methods."""

    cdef public object comm         # of mpi4py, of one class or another
    cdef public object stream, timeout
    cdef public Py_ssize_t part
    cdef public Stages _stages


cdef class Plan:
    """What has to be known of a method: its parameters, which of them are buffers, and what MPI does with those.

    Parameters
    ----------
    name : str
        Of the method that waits.
    parameters : list of inspect.Parameter
        Without `self`.
    buffers : dict
        Name of a parameter -> whether MPI reads, and writes the memory.
    in_parts : bool
        Whether large messages are done in parts.
    """

    cdef str name
    cdef int count, status, required
    cdef int places[MOST_BUFFERS]
    cdef bint reads[MOST_BUFFERS]
    cdef bint writes[MOST_BUFFERS]
    cdef bint in_parts, is_bcast, receives
    cdef tuple names, defaults
    cdef dict index

    def __init__(self, str name, list parameters, dict buffers, bint in_parts):
        self.name, self.in_parts, self.is_bcast = name, in_parts, name == "Bcast"
        self.names = tuple([one.name for one in parameters])
        self.defaults = tuple([one.default for one in parameters])      # Parameter.empty: must be given
        self.required = len([one for one in self.defaults if one is empty])
        self.index = {one: place for place, one in enumerate(self.names)}
        self.receives = name in receiving
        self.status = self.index.get("status", -1)
        self.count = 0
        for buffer, (reads, writes) in buffers.items():
            self.places[self.count] = self.index[buffer]
            self.reads[self.count], self.writes[self.count] = reads, writes
            self.count += 1

    def bind(self, tuple args, dict kwargs):
        """A list of all arguments in the order of the parameters; None if they do not fit."""
        cdef Py_ssize_t given = len(args), place
        cdef list found
        if given > len(self.names):
            return None
        found = list(args)
        for place in range(given, len(self.names)):
            found.append(self.defaults[place])
        if kwargs:
            for name, value in kwargs.items():
                known = self.index.get(name)
                if known is None or <Py_ssize_t>known < given:
                    return None
                found[<Py_ssize_t>known] = value
        for place in range(given, self.required):
            if found[place] is empty:
                return None
        return found

    def named(self, list given):
        """The arguments by name."""
        return dict(zip(self.names, given))


cdef Array usual(Stages stages, object item, bint writes):
    """The item if it is an Array on a device, open and in one piece, else None."""
    cdef Array array
    if type(item) is not Array:
        return None
    array = <Array>item
    if not array.dense or array.memory is None or array.memory.pointer == 0 or (writes and array.readonly):
        return None
    return array if stages.is_of_device(array.memory) else None


cdef object _aware = None


def carry_out(Settings own, Plan plan, list given):
    """Do a message by the method of a plan, if it is usual.

    Parameters
    ----------
    own : Settings
    plan : Plan
    given : list
        All arguments of the method; of a message that was done, it no longer matters.

    Returns
    -------
    bool
        Whether it was; if not, nothing has been done.
    """
    global _aware
    cdef Array arrays0 = None, arrays1 = None, array
    cdef Stage stage0 = None, stage1 = None, stage
    cdef Stream queue
    cdef StreamHandle held
    cdef CUstream native
    cdef CUresult status = CUDA_SUCCESS
    cdef CUdeviceptr device
    cdef uintptr_t host
    cdef Py_ssize_t sizes[MOST_BUFFERS]
    cdef Py_ssize_t received = -1, size
    cdef bint reads[MOST_BUFFERS]
    cdef bint writes[MOST_BUFFERS]
    cdef Stages stages
    cdef int i
    stream = own.stream
    if type(stream) is not Stream or own.timeout is not None:
        return False
    comm, stages = own.comm, own._stages
    for i in range(plan.count):
        reads[i], writes[i] = plan.reads[i], plan.writes[i]
        item = given[plan.places[i]]
        if plan.is_bcast:
            if not isinstance(comm, Intracomm):
                return False
            reads[i] = comm.rank == given[1]
            writes[i] = not reads[i]
        if item is None or item is IN_PLACE:
            continue
        array = usual(stages, item, writes[i])
        if array is None:
            return False
        sizes[i] = array.count() * array.itemsize
        if sizes[i] == 0 or (plan.in_parts and sizes[i] > own.part):
            return False
        if i == 0:
            arrays0 = array
        else:
            arrays1 = array
    if plan.count == 2 and given[plan.places[0]] is IN_PLACE:
        reads[1] = True
    if arrays0 is None and arrays1 is None:
        return False
    spare = None
    if _aware is None:
        _aware = is_cuda_aware()
    if _aware:
        return False
    if forgotten:
        collect()
    queue = <Stream>stream
    try:
        for i in range(plan.count):
            array = arrays0 if i == 0 else arrays1
            if array is None:
                continue
            stage = stages.find(sizes[i], queue)
            if i == 0:
                stage0 = stage
            else:
                stage1 = stage
            given[plan.places[i]] = stage.flat(array.type, sizes[i])
        held = queue.hold()         # behind the last Python code before the copies
        native = held.pointer
        for i in range(plan.count):
            array = arrays0 if i == 0 else arrays1
            if array is None or not reads[i]:
                continue
            stage = stage0 if i == 0 else stage1
            device, host, size = array.pointer, stage.place, sizes[i]
            with nogil:
                status = cu.cuMemcpyDtoHAsync(<void*>host, device, size, native)
            if status != CUDA_SUCCESS:
                array.copy_to(stage.flat(array.type, size).reshape(array.shape), stream=queue)  # or the error
        with nogil:
            status = cu.cuStreamSynchronize(native)
        check(status, b"cuStreamSynchronize")
        if plan.receives:
            said = given[plan.status]
            if said is None:
                said, stages.status = stages.status, None
                if said is None:
                    said = Status()
                given[plan.status] = spare = said
        getattr(comm, plan.name)(*given)
        if plan.receives:
            received = said.Get_count(BYTE)
            stages.status = spare
        held = queue.hold()
        native = held.pointer
        for i in range(plan.count):
            array = arrays0 if i == 0 else arrays1
            if array is None or not writes[i]:
                continue
            stage = stage0 if i == 0 else stage1
            size = sizes[i]
            if 0 <= received < size:        # whole elements
                size = min(size, (received + array.itemsize - 1) // array.itemsize * array.itemsize)
            if size == 0:
                continue
            device, host = array.pointer, stage.place
            with nogil:
                status = cu.cuMemcpyHtoDAsync(device, <const void*>host, size, native)
            if status != CUDA_SUCCESS:
                array.reshape(-1)[: size // array.itemsize].copy_from(stage.flat(array.type, size), stream=queue)
    finally:
        if stage0 is not None:
            stages.put(stage0, queue)
        if stage1 is not None:
            stages.put(stage1, queue)
    return True
