"""Pinned memory that messages pass through."""

import numpy as np

from cupola import LegacyPinnedMemoryResource

from libc.stdint cimport uintptr_t

from cupola.core.device._stream cimport Stream
from cupola.core.memory._buffer cimport Allocation, Buffer

cdef enum:
    SMALLEST = 4096
    MOST_SIZES = 50
    # Orders: more than 128 KiB take 2 MiB at least, which the system may back by a huge page. MPI's copies from process to
    # process look at every page.
    FEW_PAGES = 5
    HUGE_PAGE = 9


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
