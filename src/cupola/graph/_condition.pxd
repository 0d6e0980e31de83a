from cupola.core.base._cuda cimport CUcontext, CUgraph, CUgraphConditionalHandle


cdef class GraphCondition:
    cdef CUgraphConditionalHandle value
    cdef object __weakref__


cdef GraphCondition create_condition(CUgraph graph, CUcontext context, object default_value)
cdef GraphCondition wrap_condition(CUgraphConditionalHandle value)
