from cupola.core.base._cuda cimport CUmemLocation

# A Device or Host as the driver takes it. ValueError for None, TypeError for anything else, and for NUMA nodes of the
# host when the driver is older than CUDA 13.
cdef CUmemLocation as_location(object place) except *

# The sequence of Buffers that a batch works on, as a list. `name`: how the caller's parameter is called.
cdef list buffers_argument(object buffers, str name, str single)
