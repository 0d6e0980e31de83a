from cupola.core.base._cuda cimport CUDA_RESOURCE_DESC


cdef class ResourceDescriptor:
    cdef readonly str kind
    cdef readonly object source
    cdef readonly object format
    cdef readonly object num_channels
    cdef readonly object size_bytes
    cdef readonly object width
    cdef readonly object height
    cdef readonly object pitch_bytes
    # Describe it for the driver; gives what has to outlive whatever is made of it. RuntimeError when the source is closed.
    cdef object describe(self, CUDA_RESOURCE_DESC* form)
