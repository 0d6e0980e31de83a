"""Releasing the GIL for calls that may only wait for another thread. If there is no other thread, the GIL is kept
(cupola/gil.h).

    others = let_others_run()
    status = cu.cuStreamWaitEvent(stream, event, 0)
    take_back(others)
"""

from cpython.pystate cimport PyThreadState


cdef extern from "cupola/gil.h" nogil:
    PyThreadState* let_others_run "cupola_let_others_run"() noexcept
    void take_back "cupola_take_back"(PyThreadState* others) noexcept
