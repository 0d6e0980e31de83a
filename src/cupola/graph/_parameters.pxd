"""Parameters of graph nodes, from Python values to CUgraphNodeParams."""

from cupola.core.base._cuda cimport CUcontext, CUgraphNodeParams, CUresult
from cupola.core.program._kernel cimport Kernel
from cupola.graph._hierarchy cimport GraphHandle, Record
from cupola.graph._structure cimport Structure


cdef class Parameters:
    cdef CUgraphNodeParams native
    cdef dict attributes        # of a kernel node: CUlaunchAttributeID -> bytes of the value; else None
    cdef Record record          # of a node with these parameters
    cdef void* memory           # that `native` points to
    cdef GraphHandle child      # of a child graph node: what it gets a copy of
    cdef object alive           # what `native` points into, until the driver has copied it

    # Used around the driver's copy of the child: the copy must get no user objects.
    cdef Structure structure_of_child(self)             # None: there is no child
    cdef list strip_child(self)                         # None: there is no child
    cdef int restore_child(self, list holds) except -1


cdef CUcontext require_context() except NULL        # the current one; RuntimeError when there is none
cdef CUcontext node_context(Record record) except NULL      # that of the node, as far as it is known, or the current one

cdef Parameters empty_parameters()
cdef Parameters kernel_parameters(object config, object kernel, tuple arguments)
# The same kernel with the arguments that a node has, which are copied.
cdef Parameters repeated_parameters(object config, Kernel kernel, void** arguments)
cdef Parameters memset_parameters(object dst, object value, object width, object height, object pitch, object owner,
                                  CUcontext context)
cdef Parameters memcpy_parameters(object dst, object src, object size, object dst_owner, object src_owner,
                                  CUcontext context)
cdef Parameters event_parameters(object event, bint record)
cdef Parameters callback_parameters(object fn, object user_data)
cdef Parameters child_parameters(GraphHandle child)
cdef Parameters allocation_parameters(object size, object device, object memory_type, object peers)
cdef Parameters free_parameters(object dptr)
cdef Parameters conditional_parameters(object condition, int form, object count, CUcontext context)

# Whether the memory of a copy or fill is all on one device, and not on that of the node: then that becomes the node's.
cdef bint move_to_memory(Parameters made) except -1
# Raise the error for parameters that the driver refused; if missing access may be the reason, it says what to do.
cdef int refused(CUresult status, const char* call, Parameters made) except -1

# Of a copy: keep what `dst` says for the one side and `src` for the other.
cdef int keep_sides(Record record, Record dst, Record src) except -1
