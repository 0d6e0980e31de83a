from cupola.core._cuda cimport CUlaunchAttribute, CUlaunchConfig


cdef class LaunchConfig:
    # Ready to launch but for hStream: the setters keep it in step with the fields. `attrs` points into this object.
    cdef CUlaunchConfig native
    cdef CUlaunchAttribute attributes[3]
    cdef readonly object dimensions     # (grid, cluster, block) as given, padded; cluster may be None
    cdef bint cooperative
    cdef bint serialization
    cdef object __weakref__
