from cupola.core._cuda cimport CUlaunchAttribute, CUlaunchConfig


cdef class LaunchConfig:
    # Ready to launch but for hStream: the setters keep it in step with the fields. `attrs` points into this object.
    cdef CUlaunchConfig native
    cdef CUlaunchAttribute attributes[3]
    cdef unsigned int grid_size[3]      # as given: counts clusters when there is a cluster
    cdef unsigned int cluster_size[3]   # all 0: none
    cdef bint cooperative
    cdef bint serialization
    cdef object __weakref__
    cdef int settle(self) except -1
