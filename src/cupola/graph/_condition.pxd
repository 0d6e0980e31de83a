from cupola.core._cuda cimport CUgraph, CUgraphConditionalHandle


cdef class GraphCondition:
    cdef CUgraphConditionalHandle value
    cdef object __weakref__


cdef GraphCondition create_condition(CUgraph graph, object default_value)
