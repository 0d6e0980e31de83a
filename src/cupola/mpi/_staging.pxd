"""Pinned memory that messages pass through."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t

from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.device._context cimport resets
from cupola.core.device._stream cimport Stream
from cupola.core.memory._buffer cimport Allocation, Buffer

cdef enum:
    SMALLEST = 4096
    MOST_SIZES = 50
    # Orders: more than 32 KiB take 2 MiB at least, which the system may back by a huge page. MPI's copies from process to
    # process look at every page.
    FEW_PAGES = 3
    HUGE_PAGE = 9


cdef class Stage:
    cdef readonly object buffer
    cdef readonly object bytes
    cdef uintptr_t place
    cdef int order              # it has SMALLEST << order bytes
    cdef PyObject* next         # of the idle ones of this size, or NULL
    cdef Stream queue           # with the copies that use it; None: there are none
    cdef object last_use        # an event behind them, once another stream wants it
    cdef object seen            # what `flat` returned last, of this type and size
    cdef object seen_type
    cdef Py_ssize_t seen_size
    cdef object flat(self, object dtype, Py_ssize_t size)           # its first bytes as a row of elements
    cdef bint is_free_for(self, Stream queue) except -1


# What each message does is inline here. Nothing between begin_alone() and end_alone() fails. A stage in a list is held by
# the one before it, the first one by Stages.
cdef class Stages:
    cdef PyObject* idle[MOST_SIZES]     # the first idle stage of each size, or NULL
    cdef object resource        # the last one that was seen to be of a device
    cdef object status          # a spare MPI.Status, or None
    cdef Stage search(self, int order, Stream queue)
    cdef bint ask_of_device(self, Buffer memory) except -1

    cdef inline Stage find(self, Py_ssize_t size, Stream queue):
        """The one that was used last, if that was in this stream, so that its copies come one after another."""
        cdef int order = 0
        cdef PyObject* first
        cdef Stage stage
        cdef Alone alone
        while <Py_ssize_t>SMALLEST << order < size:
            order += 1
        if FEW_PAGES < order < HUGE_PAGE:
            order = HUGE_PAGE
        begin_alone(&alone, <PyObject*>self)
        first = self.idle[order]
        if first != NULL and (<Stage>first).queue is queue:
            self.idle[order] = (<Stage>first).next
            end_alone(&alone)
            stage = <Stage>first
            stage.next = NULL
            Py_DECREF(stage)
            return stage
        end_alone(&alone)
        return self.search(order, queue)

    cdef inline int put(self, Stage stage, Stream queue) except -1:
        """It is idle again, behind what is in `queue` now."""
        cdef Alone alone
        if queue is not None:
            if stage.queue is not queue:
                stage.queue = queue
            if stage.last_use is not None:
                stage.last_use = None
        Py_INCREF(stage)
        begin_alone(&alone, <PyObject*>self)
        stage.next = self.idle[stage.order]
        self.idle[stage.order] = <PyObject*>stage
        end_alone(&alone)
        return 0

    cdef inline bint is_of_device(self, Buffer memory) except -1:
        """Whether the host cannot read it; buffers of one resource are alike."""
        cdef Allocation allocation = memory.known_allocation()
        if allocation is None or allocation.born != resets or allocation.resource is None:
            return self.ask_of_device(memory)
        if allocation.resource is self.resource:
            return True
        return self.ask_of_device(memory)
