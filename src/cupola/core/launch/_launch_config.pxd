from cupola.core.base._cuda cimport CUlaunchAttribute, CUlaunchConfig


cdef enum:
    MOST_ATTRIBUTES = 16


cdef class LaunchConfig:
    # Ready to launch but for hStream: the setters keep it in step with the fields.
    cdef CUlaunchConfig native
    # Where `attrs` points: nowhere until there is an attribute, then with room for all of them, so that it never moves
    # while a launch on another thread reads it.
    cdef CUlaunchAttribute* attributes
    cdef dict more                      # name -> (value, bytes) of the attributes of _launch_attributes.py, or None
    cdef unsigned int grid_size[3]      # as given: counts clusters when there is a cluster
    cdef unsigned int cluster_size[3]   # all 0: none
    cdef bint cooperative
    cdef bint serialization
    cdef object __weakref__
    cdef int settle(self) except -1
    cdef int change(self, str name, object value) except -1
    cdef int take(self, dict more) except -1
    cdef CUlaunchAttribute* room(self) except NULL


cdef LaunchConfig copy_config(LaunchConfig config)
