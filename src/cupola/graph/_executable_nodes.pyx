"""Views of the nodes of an executable graph, through which its later launches are changed."""

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport CUgraphExec, CUgraphNode, CUresult, check, cu
from cupola.graph._attributes cimport UPDATABLE, config_attributes
from cupola.graph._graph cimport Graph, executable_classes
from cupola.graph._node cimport GraphNode, definition_handle
from cupola.graph._parameters cimport (
    Parameters, callback_parameters, child_parameters, event_parameters, kernel_parameters, memcpy_parameters,
    memset_parameters, node_context,
)

from cupola.graph._node_kinds import (
    ChildGraphNode, EventRecordNode, EventWaitNode, HostCallbackNode, KernelNode, MemcpyNode, MemsetNode,
)


cdef class ExecutableGraphNode:
    """The counterpart of a definition's node in one executable graph; ``graph[node]`` returns it.

    Changes affect only later launches of that graph. The parameters are always given in full. A later
    :meth:`.Graph.update` overwrites them. The driver checks that the node belongs to the executable.

    Notes
    -----
    Threads may share it.
    """
    cdef Graph graph
    cdef GraphNode node
    cdef object __weakref__

    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"{type(self).__name__} objects are made by graph[node]")

    @classmethod
    def _of(cls, Graph graph not None, GraphNode node not None):
        cdef ExecutableGraphNode view = cls.__new__(cls)
        view.graph, view.node = graph, node
        return view

    cdef int check_usable(self) except -1:
        self.graph.open_pointer()
        if not self.node.is_valid:
            raise RuntimeError("source graph node is no longer valid")
        return 0

    cdef int change(self, Parameters parameters) except -1:
        return self.graph.change(self.node, parameters)

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} cannot be pickled")

    def __repr__(self):
        return f"<{type(self).__name__} graph={<uintptr_t>self.graph.pointer:#x} node={<uintptr_t>self.node.pointer:#x}>"


cdef class _SwitchableNode(ExecutableGraphNode):
    cdef CUgraphNode begin_with_node(self) except NULL:
        """The node of the definition, which no other thread changes until end_with_node()."""
        self.node.home.hierarchy.structure.take()
        try:
            return self.node.open_pointer()
        except BaseException:
            self.node.home.hierarchy.structure.give()
            raise

    cdef int end_with_node(self) except -1:
        return self.node.home.hierarchy.structure.give()

    @property
    def is_enabled(self):
        """bool: whether the node does its work (``cuGraphNodeGetEnabled``)."""
        cdef unsigned int enabled = 0
        cdef CUgraphNode node
        cdef CUgraphExec graph
        cdef CUresult status
        self.check_usable()
        graph = self.graph.begin()
        try:
            node = self.begin_with_node()
            status = cu.cuGraphNodeGetEnabled(graph, node, &enabled)
            self.end_with_node()
        finally:
            self.graph.end(graph)
        check(status, b"cuGraphNodeGetEnabled")
        return enabled != 0

    def enable(self):
        """Enable the node again (``cuGraphNodeSetEnabled``)."""
        self.switch(1)

    def disable(self):
        """Disable the node: it does nothing, like an empty node, until it is enabled, and keeps its parameters."""
        self.switch(0)

    cdef int switch(self, unsigned int enabled) except -1:
        cdef CUgraphNode node
        cdef CUgraphExec graph
        cdef CUresult status
        self.check_usable()
        graph = self.graph.begin()
        try:
            node = self.begin_with_node()
            status = cu.cuGraphNodeSetEnabled(graph, node, enabled)
            self.end_with_node()
        finally:
            self.graph.end(graph)
        return check(status, b"cuGraphNodeSetEnabled")


cdef class ExecutableKernelNode(_SwitchableNode):
    """A kernel launch in an executable graph."""

    def update(self, *, config, kernel, args):
        """Change the launch.

        Parameters
        ----------
        config : LaunchConfig
            With the attributes that the node has: an executable cannot change them.
        kernel : Kernel
            What to run.
        args : tuple
            All its arguments. The graph keeps the memory of Buffers, and all other objects.

        Raises
        ------
        NotImplementedError
            For other attributes than the node has.
        """
        cdef Parameters parameters
        self.check_usable()
        parameters = kernel_parameters(config, kernel, tuple(args))
        has, wanted = config_attributes(self.node.config), parameters.attributes or {}
        has.pop(UPDATABLE, None)
        wanted.pop(UPDATABLE, None)
        if has != wanted:
            raise NotImplementedError(
                "the attributes of a launch cannot be changed in an executable graph (clusters, cooperation, priority, "
                "...): change those of the definition's node and update the executable, or instantiate it again"
            )
        parameters.native.kernel.ctx = node_context(self.node.record())
        self.change(parameters)


cdef class ExecutableMemsetNode(_SwitchableNode):
    """A fill in an executable graph."""

    def update(self, *, dst, value, width, height=1, pitch=0):
        """Change the fill.

        Parameters
        ----------
        dst, value, width, height, pitch
            As for :meth:`.GraphDefinition.memset`. The caller must keep memory alive that is passed as an address.
        """
        self.check_usable()
        self.change(memset_parameters(dst, value, width, height, pitch, None, node_context(self.node.record())))


cdef class ExecutableMemcpyNode(_SwitchableNode):
    """A copy in an executable graph."""

    def update(self, *, dst, src, size):
        """Change the copy.

        Parameters
        ----------
        dst, src, size
            As for :meth:`.GraphDefinition.memcpy`. The caller must keep memory alive that is passed as an address.
        """
        self.check_usable()
        self.change(memcpy_parameters(dst, src, size, None, None, node_context(self.node.record())))


cdef class ExecutableChildGraphNode(ExecutableGraphNode):
    """A graph inside an executable graph."""

    def update(self, child):
        """Take over the parameters of another graph.

        Parameters
        ----------
        child : GraphDefinition
            With the same nodes and edges.
        """
        self.check_usable()
        self.change(child_parameters(definition_handle(child)))


cdef class ExecutableEventRecordNode(ExecutableGraphNode):
    """The recording of an event in an executable graph."""

    def update(self, event):
        """Record another event.

        Parameters
        ----------
        event : Event
            Kept by the graph, closed or not.
        """
        self.check_usable()
        self.change(event_parameters(event, True))


cdef class ExecutableEventWaitNode(ExecutableGraphNode):
    """The wait for an event in an executable graph."""

    def update(self, event):
        """Wait for another event.

        Parameters
        ----------
        event : Event
            Kept by the graph, closed or not.
        """
        self.check_usable()
        self.change(event_parameters(event, False))


cdef class ExecutableHostCallbackNode(ExecutableGraphNode):
    """A call of a function on the host in an executable graph."""

    def update(self, fn, *, user_data=None):
        """Call something else.

        Parameters
        ----------
        fn, user_data
            As for :meth:`.GraphDefinition.callback`.
        """
        self.check_usable()
        self.change(callback_parameters(fn, user_data))


executable_classes.update({
    KernelNode: ExecutableKernelNode,
    MemsetNode: ExecutableMemsetNode,
    MemcpyNode: ExecutableMemcpyNode,
    ChildGraphNode: ExecutableChildGraphNode,
    EventRecordNode: ExecutableEventRecordNode,
    EventWaitNode: ExecutableEventWaitNode,
    HostCallbackNode: ExecutableHostCallbackNode,
})
