from cupola.graph._node cimport NodeMaker


cdef class GraphDefinition(NodeMaker):
    pass
