"""Usual messages of all methods, by mpi4py's: with a stage for each array, and the copies between them compiled.

`_usual` says which messages are usual. What is known of a method before a message comes is its plan.
"""

from inspect import Parameter

from mpi4py import MPI

from cupola.mpi._aware import is_cuda_aware
from cupola.mpi._request import RECEIVING, collect, forgotten

from libc.stdint cimport uintptr_t

from cupola.core.array._array cimport Array
from cupola.core.base._cuda cimport CUDA_SUCCESS, CUdeviceptr, CUresult, CUstream, check, cu
from cupola.core.device._stream cimport Stream, StreamHandle
from cupola.mpi._staging cimport Stage, Stages
from cupola.mpi._usual cimport Settings, is_usual

cdef enum:
    MOST_BUFFERS = 2        # of a method

cdef object IN_PLACE = MPI.IN_PLACE, BYTE = MPI.BYTE, Status = MPI.Status
cdef object receiving = frozenset(RECEIVING), empty = Parameter.empty


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
    """

    cdef str name
    cdef int count, status, required
    cdef int places[MOST_BUFFERS]
    cdef bint reads[MOST_BUFFERS]
    cdef bint writes[MOST_BUFFERS]
    cdef bint receives
    cdef tuple names, defaults
    cdef dict index

    def __init__(self, str name, list parameters, dict buffers):
        self.name = name
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
        if item is None or item is IN_PLACE:
            continue
        if not is_usual(stages, item, writes[i]):
            return False
        array = <Array>item
        sizes[i] = array.count() * array.itemsize
        if sizes[i] == 0:
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
    if is_cuda_aware():
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
        if stage1 is not None:          # as in `_usual`: the next message takes the last one first
            stages.put(stage1, queue)
        if stage0 is not None:
            stages.put(stage0, queue)
    return True
