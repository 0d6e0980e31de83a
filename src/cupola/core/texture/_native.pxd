from libc.stdint cimport uint64_t

from cupola.core.base._cuda cimport CUcontext

cdef enum Kind:
    ARRAY
    LEVEL           # of a mipmapped array, which it goes with
    MIPMAPPED
    TEXTURE
    SURFACE


cdef class NativeObject:
    """An array, texture or surface of the driver: destroyed when the last of its holders lets go.

    Held by the object that users see and by whatever else needs it: textures hold arrays, levels the whole.
    """
    cdef uint64_t handle
    cdef Kind kind
    cdef CUcontext context
    cdef unsigned long born         # `resets` when it was made
    cdef int device_id
    cdef object needs               # what must outlive it: another NativeObject, an Allocation, or None
    cdef bint is_gone(self) noexcept        # whether it went with its context


# An owner of what was just made in `context`.
cdef NativeObject new_native(Kind kind, uint64_t handle, CUcontext context, int device_id, object needs)
