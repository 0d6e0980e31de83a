"""The six most frequent messages, compiled whole, since few bytes travel in microseconds.

A message is usual if its buffers are Arrays in one piece and there is a stream. These methods call MPI's functions themselves,
with the handles of mpi4py's objects, and hold no lock of Python from the first copy to the last; they also take memory that
MPI can use as it is. Other methods' usual messages are in `_planned`, and all that are not usual in `_communicator`.
"""

from mpi4py import MPI

from cupola.bindings import _provider

from cupola.mpi._aware import is_cuda_aware, is_host_memory
from cupola.mpi._request import collect, forgotten, too_late

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from cpython.exc cimport PyErr_CheckSignals
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t, uint64_t, uintptr_t

from cupola.core.array._array cimport Array
from cupola.core.base._cuda cimport CUDA_SUCCESS, CUdeviceptr, CUresult, CUstream, check, cu
from cupola.core.device._stream cimport Stream, StreamHandle
from cupola.core.memory._buffer cimport Buffer
from cupola.mpi._staging cimport Stage, Stages

cdef extern from "library.h" nogil:
    ctypedef struct Library "struct mpi_library":
        bint has_int_handles
    ctypedef struct Room "struct mpi_status":
        pass
    enum:
        SEND "MPI_KIND_SEND"
        RECV "MPI_KIND_RECV"
        SENDRECV "MPI_KIND_SENDRECV"
        BCAST "MPI_KIND_BCAST"
        ALLREDUCE "MPI_KIND_ALLREDUCE"
        REDUCE "MPI_KIND_REDUCE"
    bint mpi_open(Library* library, const char* file, bint has_int_handles)
    uintptr_t mpi_handle(const Library* library, uintptr_t place)
    int mpi_carry(const Library* library, int kind, const Message* message)
    int mpi_begin(const Library* library, int kind, const Message* message, uintptr_t* requests, int* count)
    int64_t mpi_now()
    int mpi_wait(const Library* library, uintptr_t* requests, int count, int* done, int64_t ns, int64_t spin, void* status)
    int64_t mpi_received(const Library* library, const void* status, uintptr_t byte)

ctypedef bint (*HostMayUse)(uint64_t address, uint64_t size) noexcept nogil

cdef enum:
    SPIN = 1000000          # ns of asking without a pause
    SIGNALS = 20000000      # ns between two looks for signals, such as Ctrl-C

cdef object IN_PLACE = MPI.IN_PLACE, BYTE = MPI.BYTE, Intracomm = MPI.Intracomm, Status = MPI.Status, Op = MPI.Op
cdef object SUM = MPI.SUM, ANY_SOURCE = MPI.ANY_SOURCE, ANY_TAG = MPI.ANY_TAG
cdef object address_of = MPI._addressof         # where the handle lies that an object has
cdef tuple NAMES = ("Send", "Recv", "Sendrecv", "Bcast", "Allreduce", "Reduce")      # in order of MPI's functions
cdef const void* in_place = <const void*><uintptr_t><Py_ssize_t>int(MPI.IN_PLACE)

# What never changes once the first message has looked for it.
cdef Library library
cdef bint is_library_open = False, is_aware = False
cdef HostMayUse host_may_use = NULL     # where device memory is memory of the host
cdef uintptr_t byte_type, sum_op
cdef dict types = {}                    # numpy.dtype -> MPI's type, an int; None: there is none


cdef int open_library() except -1:
    """Find MPI's functions, and how MPI may use device memory."""
    global is_library_open, is_aware, host_may_use, byte_type, sum_op
    file = MPI.__file__.encode()
    if not mpi_open(&library, file, <Py_ssize_t>MPI._sizeof(MPI.Comm) == sizeof(int)):
        raise RuntimeError("the library of MPI that mpi4py has loaded lacks MPI_Send, MPI_Recv or another basic function")
    byte_type, sum_op = mpi_handle(&library, address_of(BYTE)), mpi_handle(&library, address_of(SUM))
    is_aware = is_cuda_aware()
    if is_host_memory():
        access = _provider.host_access()
        host_may_use = <HostMayUse>PyCapsule_GetPointer(access, PyCapsule_GetName(access))
    is_library_open = True
    return 0


cdef object find_type(object dtype):
    """The handle of MPI's type for elements of this one, as mpi4py has it; or None."""
    found = None
    if dtype.isnative and dtype.names is None:
        try:
            found = <object>mpi_handle(&library, address_of(MPI.Datatype.fromcode(dtype.char)))
        except (KeyError, ValueError):
            pass        # mpi4py says so
    types[dtype] = found
    return found


cdef bint count_elements(Array array, uintptr_t* handle, int* count) except -1:
    """MPI's type of the elements, and how many there are; False: MPI has none, or cannot count them, or there are none."""
    cdef Py_ssize_t elements = array.count()
    cdef object found = types.get(array.type, IN_PLACE)
    if found is IN_PLACE:
        found = find_type(array.type)
    if found is None or elements == 0 or elements > INT_MAX:
        return False
    handle[0], count[0] = found, <int>elements
    return True


cdef CUresult bring(Way* out, Way* into, CUstream queue) noexcept nogil:
    """Make the memory ready that MPI uses, behind what is in the stream."""
    cdef CUresult status = CUDA_SUCCESS
    if out.reads and out.is_staged:
        status = cu.cuMemcpyDtoHAsync(<void*>out.host, out.device, out.size, queue)
    if status == CUDA_SUCCESS and into.reads and into.is_staged:
        status = cu.cuMemcpyDtoHAsync(<void*>into.host, into.device, into.size, queue)
    if status == CUDA_SUCCESS:
        status = cu.cuStreamSynchronize(queue)
    return status


cdef Array usual(Stages stages, object item, bint writes):
    """The item if it is an Array on a device, open and in one piece, else None."""
    cdef Array array
    if type(item) is not Array:
        return None
    array = <Array>item
    if not array.dense or array.memory is None or array.memory.pointer == 0 or (writes and array.readonly):
        return None
    return array if stages.is_of_device(array.memory) else None


cdef class Lent:
    """Memory that MPI has until a message is over: a stage, or the array itself."""

    cdef Stages stages
    cdef Stage stage
    cdef Stream queue
    cdef Array array

    def __cinit__(self, Stages stages, Stage stage, Stream queue, Array array):
        self.stages, self.stage, self.queue, self.array = stages, stage, queue, array

    def release(self):
        """Give it back."""
        if self.stage is not None:
            self.stages.put(self.stage, self.queue)
        self.stage = self.array = None


cdef class Settings:
    """What a communicator has besides its methods, and the methods that small messages go by."""

    @property
    def comm(self):
        """mpi4py.MPI.Comm: the communicator of mpi4py that this one is made of."""
        return self.plain

    @comm.setter
    def comm(self, comm):
        self.plain, self.place, self.rank = comm, address_of(comm), -1

    cdef bint has_rank(self) except -1:
        if self.rank < 0:
            if not isinstance(self.plain, Intracomm):
                return False
            self.size = self.plain.size
            self.rank = self.plain.rank
        return True

    cdef Stage prepare(self, Array array, Way* way, Stream queue, bint is_limited):
        """Choose what MPI uses in place of the array: its own memory, or that of a stage.

        MPI goes on with a message that has exceeded its time, and an array of the host may be in other use by then.
        """
        cdef Stage stage
        way.device, way.size = array.pointer, array.count() * array.itemsize
        if is_aware or (not is_limited and host_may_use != NULL and host_may_use(array.pointer, way.size)):
            way.host = array.pointer
            return None
        stage = self._stages.find(way.size, queue)
        way.host, way.is_staged = stage.place, True
        return stage

    cdef bint carry(self, int kind, object sent, object got, Message* message, object op, object status) except -1:
        """Do a message, if it is usual; if not, nothing has been done.

        Parameters
        ----------
        kind
            Of MPI's functions.
        sent, got
            What MPI reads, and where it writes; a broadcast has only the second. None: there is none.
        message
            Ranks and tags; the rest is filled in here.
        op, status
            None where there are none.
        """
        cdef Array out_array = None, in_array = None
        cdef Buffer in_memory = None
        cdef Stage out_stage = None, in_stage = None
        cdef Stream queue
        cdef StreamHandle held
        cdef CUstream native
        cdef CUresult copied = CUDA_SUCCESS
        cdef Way out, into
        cdef Room room
        cdef int64_t received
        cdef Py_ssize_t size = 0
        cdef int failed = 0
        cdef bint is_closed = False, is_begun = False, is_limited
        cdef uintptr_t requests[2]
        cdef int begun = 0, done = 0
        cdef int64_t limit = 0, start = 0, left
        if type(self.stream) is not Stream:
            return False
        queue = <Stream>self.stream
        if not is_library_open:
            open_library()
        is_limited = self.timeout is not None
        if is_limited:
            if kind >= BCAST and is_aware:
                return False        # not every library takes device memory there
            limit = <int64_t>min(<double>self.timeout * 1e9, 9e18)
        out.reads = out.writes = out.is_staged = into.reads = into.writes = into.is_staged = False
        out.size = into.size = 0
        message.out, message.into, message.out_count, message.in_count = NULL, NULL, 0, 0
        message.comm = mpi_handle(&library, self.place)
        if kind >= BCAST and not self.has_rank():
            return False
        if kind == REDUCE and self.rank != message.source:
            got = None              # only the root gets anything
        if sent is IN_PLACE:
            if kind < ALLREDUCE or got is None:
                return False
            message.out, into.reads = in_place, True
        elif sent is not None:
            out_array = usual(self._stages, sent, False)
            if out_array is None:
                return False
            out.reads = True
        elif kind != RECV and kind != BCAST:
            return False
        if got is not None:
            into.writes = True
            if kind == BCAST and self.rank == message.source:
                into.reads, into.writes = True, False
            in_array = usual(self._stages, got, into.writes)
            if in_array is None:
                return False
        elif kind != SEND and (kind != REDUCE or self.rank == message.source):
            return False
        if out_array is not None:
            if not count_elements(out_array, &message.out_type, &message.out_count):
                return False
        if in_array is not None:
            if not count_elements(in_array, &message.in_type, &message.in_count):
                return False
            in_memory = in_array.memory
        if kind >= BCAST:
            if in_array is None:
                message.in_type, message.in_count = message.out_type, message.out_count
            elif out_array is not None and (
                message.in_count != message.out_count or out_array.type is not in_array.type
            ):
                return False            # for mpi4py to refuse
            size = <Py_ssize_t>message.in_count * (in_array if in_array is not None else out_array).itemsize
            if size > self.part and self.size > 1 and not is_aware and host_may_use == NULL:
                return False            # it is done in parts
            if kind != BCAST:
                if op is SUM:
                    message.op = sum_op
                elif isinstance(op, Op):
                    message.op = mpi_handle(&library, address_of(op))
                else:
                    return False
        message.status = &room
        if status is not None:
            if not isinstance(status, Status):
                return False
            message.status = <void*><uintptr_t>address_of(status)
        if forgotten:
            collect()
        try:
            if out_array is not None:
                out_stage = self.prepare(out_array, &out, queue, is_limited)
                message.out = <const void*>out.host
            if in_array is not None:
                in_stage = self.prepare(in_array, &into, queue, is_limited)
                message.into = <void*>into.host
            held = queue.hold()         # behind the last Python code before the copies
            native = held.pointer
            with nogil:
                copied = bring(&out, &into, native)
                if copied == CUDA_SUCCESS:
                    is_begun = True
                    if not is_limited:
                        failed = mpi_carry(&library, kind, message)
                    else:
                        start = mpi_now()
                        failed = mpi_begin(&library, kind, message, requests, &begun)
                        while failed == 0:
                            left = start + limit - mpi_now()
                            failed = mpi_wait(&library, requests, begun, &done, min(left, SIGNALS), SPIN, message.status)
                            if done == begun or left <= 0:
                                break
                            with gil:
                                PyErr_CheckSignals()
                    size = into.size
                    if failed == 0 and done == begun and into.writes and into.is_staged:
                        if kind == RECV or kind == SENDRECV:
                            received = mpi_received(&library, message.status, byte_type)
                            if 0 <= received < size:        # whole elements
                                size = min(size, (received + in_array.itemsize - 1) // in_array.itemsize * in_array.itemsize)
                        is_closed = in_memory.pointer == 0      # meanwhile, by another thread
                        if size and not is_closed:
                            copied = cu.cuMemcpyHtoDAsync(into.device, <const void*>into.host, size, native)
            if failed:
                raise MPI.Exception(failed)
            if done < begun:
                raise TimeoutError(too_late(NAMES[kind], self.timeout))
            if is_closed:
                raise RuntimeError("the array for a message was closed while the message was under way")
            if not is_begun:
                return False            # for calls that lend a context, or say what is wrong
            if copied != CUDA_SUCCESS:
                in_array.reshape(-1)[: size // in_array.itemsize].copy_from(in_stage.flat(in_array.type, size), stream=queue)
        finally:
            if done < begun:            # MPI goes on with it
                forgotten.append((
                    [MPI.Request.fromhandle(mpi_handle(&library, <uintptr_t>&requests[i])) for i in range(done, begun)],
                    [Lent(self._stages, stage, queue, array)
                     for stage, array in ((out_stage, out_array), (in_stage, in_array)) if array is not None],
                ))
            else:
                if out_stage is not None:
                    self._stages.put(out_stage, queue)
                if in_stage is not None:
                    self._stages.put(in_stage, queue)
        return True

    def Send(self, buf, int dest, int tag=0):
        """Send from an array. ``MPI_Send``.

        Parameters
        ----------
        buf : buffer specification
            An array of a device or of the host, or a list of one and what mpi4py takes with it.
        dest, tag : int
        """
        cdef Message message
        message.to, message.to_tag = dest, tag
        if not self.carry(SEND, buf, None, &message, None, None):
            self._do("Send", {"buf": buf, "dest": dest, "tag": tag})

    def Recv(self, buf, source=None, tag=None, status=None):
        """Receive into an array. ``MPI_Recv``.

        Parameters
        ----------
        buf : buffer specification
        source, tag : int, optional
            Any if not given.
        status : mpi4py.MPI.Status, optional
        """
        cdef Message message
        source, tag = ANY_SOURCE if source is None else source, ANY_TAG if tag is None else tag
        message.source, message.source_tag = source, tag
        if not self.carry(RECV, None, buf, &message, None, status):
            self._do("Recv", {"buf": buf, "source": source, "tag": tag, "status": status})

    def Sendrecv(self, sendbuf, int dest, int sendtag=0, recvbuf=None, source=None, recvtag=None, status=None):
        """Send from one array and receive into another. ``MPI_Sendrecv``.

        Parameters
        ----------
        sendbuf, recvbuf : buffer specification
        dest, sendtag, source, recvtag : int
            `source` and `recvtag` are any if not given.
        status : mpi4py.MPI.Status, optional
        """
        cdef Message message
        source, recvtag = ANY_SOURCE if source is None else source, ANY_TAG if recvtag is None else recvtag
        message.to, message.to_tag, message.source, message.source_tag = dest, sendtag, source, recvtag
        if not self.carry(SENDRECV, sendbuf, recvbuf, &message, None, status):
            self._do("Sendrecv", {
                "sendbuf": sendbuf, "dest": dest, "sendtag": sendtag, "recvbuf": recvbuf, "source": source,
                "recvtag": recvtag, "status": status,
            })

    def Bcast(self, buf, int root=0):
        """Send from the array of one rank to those of all others. ``MPI_Bcast``.

        Parameters
        ----------
        buf : buffer specification
        root : int
        """
        cdef Message message
        message.source = root
        if not self.carry(BCAST, None, buf, &message, None, None):
            self._do("Bcast", {"buf": buf, "root": root})

    def Allreduce(self, sendbuf, recvbuf, op=None):
        """Combine the arrays of all ranks, for all of them. ``MPI_Allreduce``.

        Parameters
        ----------
        sendbuf, recvbuf : buffer specification
            `sendbuf` may be ``MPI.IN_PLACE``.
        op : mpi4py.MPI.Op, optional
            ``MPI.SUM`` if not given.
        """
        cdef Message message
        op = SUM if op is None else op
        if not self.carry(ALLREDUCE, sendbuf, recvbuf, &message, op, None):
            self._do("Allreduce", {"sendbuf": sendbuf, "recvbuf": recvbuf, "op": op})

    def Reduce(self, sendbuf, recvbuf, op=None, int root=0):
        """Combine the arrays of all ranks, for one of them. ``MPI_Reduce``.

        Parameters
        ----------
        sendbuf, recvbuf : buffer specification
            `recvbuf` counts on the root only, where `sendbuf` may be ``MPI.IN_PLACE``.
        op : mpi4py.MPI.Op, optional
            ``MPI.SUM`` if not given.
        root : int
        """
        cdef Message message
        message.source = root
        op = SUM if op is None else op
        if not self.carry(REDUCE, sendbuf, recvbuf, &message, op, None):
            self._do("Reduce", {"sendbuf": sendbuf, "recvbuf": recvbuf, "op": op, "root": root})
