from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport CUlaunchAttribute, CUlaunchConfig


cdef enum:
    MOST_ATTRIBUTES = 16


cdef class LaunchConfig:
    # Ready to launch but for hStream: the setters keep it in step with the fields. Where `attrs` points: nowhere until
    # there is an attribute, then with room for all of them.
    cdef CUlaunchConfig native
    cdef uintptr_t updatable_node          # what the driver wrote into DEVICE_UPDATABLE_KERNEL_NODE of the last launch
    cdef dict more                      # name -> (value, bytes) of the attributes of _launch_attributes.py, or None
    cdef unsigned int grid_size[3]      # as given: counts clusters when there is a cluster
    cdef unsigned int cluster_size[3]   # all 0: none
    cdef bint cooperative
    cdef bint serialization
    cdef object __weakref__
    cdef int settle(self) except -1
    cdef int change(self, str name, object value) except -1
    cdef int take(self, dict more) except -1


# The native form of a configuration that has attributes, for the driver to read and to write to while another thread
# changes the configuration: a copy, with `attributes`, which has room for MOST_ATTRIBUTES, in place of its own. Behind the
# launch, `keep_node` takes over what the driver wrote.
cdef void snapshot(LaunchConfig config, CUlaunchConfig* taken, CUlaunchAttribute* attributes) noexcept
cdef void keep_node(LaunchConfig config, const CUlaunchConfig* launched) noexcept
cdef LaunchConfig copy_config(LaunchConfig config)
