from cupola.core.base._cuda cimport CUcontext, CUgreenCtx


cdef class GreenContext:
    """The native green context: destroyed when the last of its holders (contexts, streams, events) lets go."""
    cdef CUgreenCtx pointer
    cdef CUcontext context          # the same for calls that take a CUcontext
    cdef CUcontext owner            # the primary context, to which events belong
    cdef unsigned long born         # `resets` when it was made
    cdef object __weakref__
