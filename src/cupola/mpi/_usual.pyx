"""The six most frequent messages, compiled whole, since few bytes travel in microseconds.

A message is usual if its buffers are Arrays in one piece and there is a stream. These methods call MPI's functions themselves,
with the handles of mpi4py's objects, and hold no lock of Python from the first copy to the last; they also take memory that
MPI can use as it is. Other methods' usual messages are in `_planned`, and all that are not usual in `_communicator`.
"""

import numpy
from mpi4py import MPI

from cupola.bindings import _provider

from cupola.mpi._aware import is_cuda_aware, is_host_memory
from cupola.mpi._request import collect, forgotten, too_late

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from cpython.exc cimport PyErr_CheckSignals
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t, uint64_t, uintptr_t

from cupola.core.array._array cimport Array
from cupola.core.base._cuda cimport CUDA_SUCCESS, CUdeviceptr, CUresult, CUstream, check, cu
from cupola.core.base._shared cimport publish, see
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
    void mpi_find_count(Library* library, uintptr_t byte)
    uintptr_t mpi_handle(const Library* library, uintptr_t place)
    int mpi_carry(const Library* library, int kind, const Message* message)
    int mpi_begin(const Library* library, int kind, const Message* message, uintptr_t* requests, int* count)
    int64_t mpi_now()
    int mpi_wait(const Library* library, uintptr_t* requests, int count, int* done, int64_t ns, int64_t spin, void* status)
    int64_t mpi_received(const Library* library, const void* status, int64_t most)

cdef extern from *:
    """
    /* As in library.h: errors, and objects that end here. */
    static void __Pyx_AddTraceback(const char *, int, int, const char *) MPI_RARE;
    void _Py_Dealloc(PyObject *) __attribute__((cold));
    """

ctypedef bint (*HostMayUse)(uint64_t address, uint64_t size) noexcept nogil

cdef enum:
    SPIN = 1000000          # ns of asking without a pause
    SIGNALS = 20000000      # ns between two looks for signals, such as Ctrl-C

cdef object IN_PLACE = MPI.IN_PLACE, BYTE = MPI.BYTE, Intracomm = MPI.Intracomm, Status = MPI.Status, Op = MPI.Op
cdef object SUM = MPI.SUM
cdef object address_of = MPI._addressof         # where the handle lies that an object has
cdef tuple NAMES = ("Send", "Recv", "Sendrecv", "Bcast", "Allreduce", "Reduce")      # in order of MPI's functions
cdef const void* in_place = <const void*><uintptr_t><Py_ssize_t>int(MPI.IN_PLACE)

# What never changes once the first message has looked for it.
cdef Library library
cdef int is_library_open = False
cdef bint is_aware = False
cdef HostMayUse host_may_use = NULL     # where device memory is memory of the host
cdef uintptr_t sum_op
cdef int any_source = MPI.ANY_SOURCE, any_tag = MPI.ANY_TAG
cdef list under_way = forgotten
cdef dict types = {}                    # numpy.dtype -> MPI's type, an int; None: there is none

cdef struct Usual:      # a type that NumPy has one object of, which is looked for by its address
    PyObject* type      # of `usual_types`
    uintptr_t handle

cdef list usual_types = [numpy.dtype(code) for code in "dfilqFDLIQhHbB?"]
cdef Usual usual_handles[16]


cdef int open_library() except -1:
    """Find MPI's functions and types, and how MPI may use device memory. Several threads may: they find the same."""
    global is_library_open, is_aware, host_may_use, sum_op
    cdef int i = 0
    file = MPI.__file__.encode()
    if not mpi_open(&library, file, <Py_ssize_t>MPI._sizeof(MPI.Comm) == sizeof(int)):
        raise RuntimeError("the library of MPI that mpi4py has loaded lacks MPI_Send, MPI_Recv or another basic function")
    mpi_find_count(&library, mpi_handle(&library, address_of(BYTE)))
    sum_op = mpi_handle(&library, address_of(SUM))
    is_aware = is_cuda_aware()
    if is_host_memory():
        access = _provider.host_access()
        host_may_use = <HostMayUse>PyCapsule_GetPointer(access, PyCapsule_GetName(access))
    for dtype in usual_types:
        usual_handles[i].handle = other_type(dtype)
        if usual_handles[i].handle != 0:
            usual_handles[i].type = <PyObject*>dtype
            i += 1
    publish(is_library_open, True)
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


cdef uintptr_t other_type(object dtype) except? 1:
    """MPI's type for elements of this one; 0: there is none."""
    cdef object found = types.get(dtype, IN_PLACE)
    if found is IN_PLACE:
        found = find_type(dtype)
    return 0 if found is None else <uintptr_t>found


cdef bint count_elements(Array array, uintptr_t* handle, int* count) except -1:
    """MPI's type of the elements, and how many there are; False: MPI has none, or cannot count them, or there are none."""
    cdef Py_ssize_t elements = array.count()
    cdef Usual* known = usual_handles
    if elements <= 0 or elements > INT_MAX:
        return False
    count[0] = <int>elements
    while known.type != NULL:
        if known.type == <PyObject*>array.type:
            handle[0] = known.handle
            return True
        known += 1
    handle[0] = other_type(array.type)
    return handle[0] != 0


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


cdef CUresult take_along(int kind, Way* into, const void* status, CUstream queue) noexcept nogil:
    """Copy what has come to the device, if it went through a stage; `size` is then how much that is."""
    cdef int64_t received
    if not into.writes or not into.is_staged:
        return CUDA_SUCCESS
    if kind == RECV or kind == SENDRECV:
        received = mpi_received(&library, status, into.size)
        if 0 <= received < into.size:       # whole elements
            into.size = min(into.size, (received + into.itemsize - 1) // into.itemsize * into.itemsize)
    if into.memory[0] == 0:                 # closed meanwhile, by another thread
        into.is_closed = True
        return CUDA_SUCCESS
    if into.size == 0:
        return CUDA_SUCCESS
    return cu.cuMemcpyHtoDAsync(into.device, <const void*>into.host, into.size, queue)


cdef int carry_within(int kind, const Message* message, int64_t limit, Begun* begun) except? -1 nogil:
    """Do a message in so many ns: what MPI returns. `begun` says whether there was enough time."""
    cdef int64_t start = mpi_now(), left
    cdef int failed = mpi_begin(&library, kind, message, begun.requests, &begun.count)
    while failed == 0:
        left = start + limit - mpi_now()
        failed = mpi_wait(
            &library, begun.requests, begun.count, &begun.done, min(left, SIGNALS), SPIN, message.status
        )
        if begun.done == begun.count or left <= 0:
            break
        with gil:
            PyErr_CheckSignals()
    return failed


cdef bint is_usual(Stages stages, object item, bint writes) except -1:
    """Whether it is an Array on a device, open and in one piece."""
    cdef Buffer memory
    if type(item) is not Array or not (<Array>item).dense or (writes and (<Array>item).readonly):
        return False
    memory = (<Array>item).memory
    return memory is not None and memory.pointer != 0 and stages.is_of_device(memory)


cdef bint describe(Settings own, Array array, Way* way, uintptr_t* handle, int* count) except -1:
    """What a message has to know of a usual array; False: MPI cannot count its elements.

    MPI goes on with a message that has exceeded its time, and an array of the host may be in other use by then.
    """
    if not count_elements(array, handle, count):
        return False
    way.device, way.host, way.itemsize = array.pointer, array.pointer, array.itemsize
    way.size = count[0] * array.itemsize
    way.memory = &array.memory.pointer
    way.is_staged = not is_aware and (
        host_may_use == NULL or own.timeout is not None or not host_may_use(array.pointer, way.size)
    )
    return True


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


cdef int lend(
    Stages stages, Begun* begun, Stage out_stage, object sent, Stage in_stage, object got, Stream queue
) except -1:
    """Keep what MPI uses of a message that took too long, until it is over."""
    under_way.append((
        [MPI.Request.fromhandle(mpi_handle(&library, <uintptr_t>&begun.requests[i])) for i in range(begun.done, begun.count)],
        [Lent(stages, stage, queue, array)
         for stage, array in ((out_stage, sent), (in_stage, got)) if isinstance(array, Array)],
    ))
    return 0


cdef int fill(Array array, Stage stage, Py_ssize_t size, Stream queue) except -1:
    """Copy what has come by a call that lends a context, or says what is wrong."""
    array.reshape(-1)[: size // array.itemsize].copy_from(stage.flat(array.type, size), stream=queue)
    return 0


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

    cdef bint look(
        self, int kind, object sent, object got, Message* message, object op, object status, Way* out, Way* into
    ) except -1:
        """Find out all about a message that is usual."""
        cdef bint sends = sent is not None, gets = got is not None
        out.reads = out.writes = out.is_staged = into.reads = into.writes = into.is_staged = into.is_closed = False
        out.size = into.size = 0
        message.out, message.into, message.out_count, message.in_count = NULL, NULL, 0, 0
        message.comm = mpi_handle(&library, self.place)
        if kind >= BCAST:
            if not self.has_rank() or (is_aware and self.timeout is not None):
                return False            # not every library takes device memory where it does not wait
            if kind == REDUCE and self.rank != message.source:
                gets = False            # only the root gets anything
        if sent is IN_PLACE:
            if kind < ALLREDUCE or not gets:
                return False
            message.out, into.reads, sends = in_place, True, False
        elif sends:
            if not is_usual(self._stages, sent, False):
                return False
            out.reads = True
        elif kind != RECV and kind != BCAST:
            return False
        if gets:
            into.writes = True
            if kind == BCAST and self.rank == message.source:
                into.reads, into.writes = True, False
            if not is_usual(self._stages, got, into.writes):
                return False
        elif kind != SEND and (kind != REDUCE or self.rank == message.source):
            return False
        if sends and not describe(self, <Array>sent, out, &message.out_type, &message.out_count):
            return False
        if gets and not describe(self, <Array>got, into, &message.in_type, &message.in_count):
            return False
        if kind >= BCAST:
            if not gets:
                message.in_type, message.in_count, into.size = message.out_type, message.out_count, out.size
            elif sends and (message.in_count != message.out_count or (<Array>sent).type is not (<Array>got).type):
                return False            # for mpi4py to refuse
            if into.size > self.part and self.size > 1 and not is_aware and host_may_use == NULL:
                return False            # it is done in parts
            if kind != BCAST:
                if op is SUM:
                    message.op = sum_op
                elif isinstance(op, Op):
                    message.op = mpi_handle(&library, address_of(op))
                else:
                    return False
        if status is not None:
            if not isinstance(status, Status):
                return False
            message.status = <void*><uintptr_t>address_of(status)
        return True

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
        cdef Stage out_stage = None, in_stage = None
        cdef Stream queue
        cdef StreamHandle held
        cdef CUstream native
        cdef CUresult copied
        cdef Way out, into
        cdef Room room
        cdef int failed = 0
        cdef bint is_begun = False, is_limited = self.timeout is not None
        cdef Begun begun
        cdef int64_t limit = 0
        if type(self.stream) is not Stream:
            return False
        queue = <Stream>self.stream
        if not see(is_library_open):
            open_library()
        if under_way:
            collect()
        message.status = &room
        if not self.look(kind, sent, got, message, op, status, &out, &into):
            return False
        if is_limited:
            limit = <int64_t>min(<double>self.timeout * 1e9, 9e18)
        begun.count = begun.done = 0
        try:
            if out.is_staged:
                out_stage = self._stages.find(out.size, queue)
                out.host = out_stage.place
            if into.is_staged:
                in_stage = self._stages.find(into.size, queue)
                into.host = in_stage.place
            if out.reads:
                message.out = <const void*>out.host
            if into.reads or into.writes:
                message.into = <void*>into.host
            held = queue.hold()         # behind the last Python code before the copies
            native = held.pointer
            with nogil:
                copied = bring(&out, &into, native)
                if copied == CUDA_SUCCESS:
                    is_begun = True
                    if is_limited:
                        failed = carry_within(kind, message, limit, &begun)
                    else:
                        failed = mpi_carry(&library, kind, message)
                    if failed == 0 and begun.done == begun.count:
                        copied = take_along(kind, &into, message.status, native)
            if failed:
                raise MPI.Exception(failed)
            if begun.done < begun.count:
                raise TimeoutError(too_late(NAMES[kind], self.timeout))
            if not is_begun:
                return False            # for calls that lend a context, or say what is wrong
            if copied != CUDA_SUCCESS:
                fill(<Array>got, in_stage, into.size, queue)
            if into.is_closed:
                raise RuntimeError("the array for a message was closed while the message was under way")
        finally:
            if begun.done < begun.count:        # MPI goes on with it
                lend(self._stages, &begun, out_stage, sent, in_stage, got, queue)
            else:
                # In this order, since the next message takes the last one first: memory that the device writes and MPI reads
                # stays that, and no processor's cache has to give up lines of it that it has changed.
                if in_stage is not None:
                    self._stages.put(in_stage, queue)
                if out_stage is not None:
                    self._stages.put(out_stage, queue)
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
        if source is None:
            message.source = any_source
        else:
            message.source = source
        if tag is None:
            message.source_tag = any_tag
        else:
            message.source_tag = tag
        if not self.carry(RECV, None, buf, &message, None, status):
            self._do("Recv", {"buf": buf, "source": message.source, "tag": message.source_tag, "status": status})

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
        message.to, message.to_tag = dest, sendtag
        if source is None:
            message.source = any_source
        else:
            message.source = source
        if recvtag is None:
            message.source_tag = any_tag
        else:
            message.source_tag = recvtag
        if not self.carry(SENDRECV, sendbuf, recvbuf, &message, None, status):
            self._do("Sendrecv", {
                "sendbuf": sendbuf, "dest": dest, "sendtag": sendtag, "recvbuf": recvbuf, "source": message.source,
                "recvtag": message.source_tag, "status": status,
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
