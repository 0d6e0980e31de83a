"""Conditions of graphs: numbers that kernels set and conditional nodes read."""

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CU_GRAPH_COND_ASSIGN_DEFAULT, CUcontext, CUgraph, CUgraphConditionalHandle, check, cu, factory_error
)

from cupola.core.launch._arguments import register_argument_type


cdef class GraphCondition:
    """The number by which a conditional node decides: non-zero is true, and a switch takes it as an index.

    Kernels of the graph set it with ``cudaGraphSetConditional``; it can be passed to them as an argument.

    Notes
    -----
    Threads may share it: it does not change.
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("GraphCondition", "create_condition() of a GraphBuilder or GraphDefinition")

    @property
    def handle(self):
        """int: the ``CUgraphConditionalHandle``."""
        return self.value

    @property
    def _address(self):
        return <uintptr_t>&self.value

    def __eq__(self, other):
        if not isinstance(other, GraphCondition):
            return NotImplemented
        return self.value == (<GraphCondition>other).value

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return f"<GraphCondition handle={self.value:#x}>"


cdef GraphCondition create_condition(CUgraph graph, CUcontext context, object default_value):
    cdef GraphCondition condition = GraphCondition.__new__(GraphCondition)
    cdef unsigned int value = 0, flags = 0
    if default_value is not None:
        value, flags = default_value, CU_GRAPH_COND_ASSIGN_DEFAULT
    check(
        cu.cuGraphConditionalHandleCreate(&condition.value, graph, context, value, flags),
        b"cuGraphConditionalHandleCreate",
    )
    return condition


cdef GraphCondition wrap_condition(CUgraphConditionalHandle value):
    cdef GraphCondition condition = GraphCondition.__new__(GraphCondition)
    condition.value = value
    return condition


register_argument_type(GraphCondition, lambda condition: (condition._address, sizeof(CUgraphConditionalHandle)))
