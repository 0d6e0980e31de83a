"""Pinned memory that messages pass through."""

import numpy as np

from cupola import LegacyPinnedMemoryResource

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.device._stream cimport Stream
from cupola.core.memory._buffer cimport Allocation, Buffer


cdef class Stage:
    """A piece of pinned memory. `bytes` is what the host sees of it."""

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

    def __dealloc__(self):
        cdef int order
        cdef PyObject* stage
        for order in range(MOST_SIZES):
            while self.idle[order] != NULL:
                stage = self.idle[order]
                self.idle[order] = (<Stage>stage).next
                (<Stage>stage).next = NULL
                Py_DECREF(<Stage>stage)

    def take(self, Py_ssize_t size, Stream queue=None):
        """A piece of at least `size` bytes, for copies in `queue`, which nobody else has until it is given back."""
        return self.find(size, queue)

    cdef Stage search(self, int order, Stream queue):
        """One whose copies are over, or in this stream; else a new one."""
        cdef PyObject* chain
        cdef Stage stage, found = None
        cdef list stages = []
        cdef Alone alone
        begin_alone(&alone, <PyObject*>self)
        chain = self.idle[order]
        self.idle[order] = NULL
        end_alone(&alone)
        while chain != NULL:            # nobody else has any of them now
            stage = <Stage>chain
            chain, stage.next = stage.next, NULL
            Py_DECREF(stage)
            if stage.queue is None or stage.queue is queue or not stage.queue.is_closed:
                stages.append(stage)
            # Nobody can say when that of a closed stream is free; the driver frees it behind all work.
        for stage in stages:
            if stage.is_free_for(queue):
                found = stage
                break
        for stage in reversed(stages):  # in the order that they had
            if stage is not found:
                self.put(stage, None)
        return Stage(order) if found is None else found

    def give_back(self, Stage stage, Stream queue=None):
        """It may be used again, behind what is now in `queue`."""
        self.put(stage, queue)

    cdef bint ask_of_device(self, Buffer memory) except -1:
        cdef Allocation allocation = memory.open_allocation()
        cdef Alone alone
        cdef object before          # is let go of behind the end
        if memory.is_host_accessible:
            return False
        if allocation.resource is not None:
            begin_alone(&alone, <PyObject*>self)
            before = self.resource
            self.resource = allocation.resource
            end_alone(&alone)
        return True
