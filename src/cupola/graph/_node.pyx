"""Nodes of graphs that are being defined, and what makes them."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CU_GRAPH_COND_TYPE_IF, CU_GRAPH_COND_TYPE_SWITCH, CU_GRAPH_COND_TYPE_WHILE, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS,
    CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphNodeType, CUresult, check, cu, driver_module, gone_error,
)
from cupola.graph._attributes cimport rehearse, write_attributes
from cupola.graph._hierarchy cimport GraphHandle, Record, graph_handle
from cupola.graph._parameters cimport (
    Parameters, allocation_parameters, callback_parameters, child_parameters, conditional_parameters, empty_parameters,
    event_parameters, free_parameters, kernel_parameters, memcpy_parameters, memset_parameters, move_to_memory,
    refused, require_context,
)
from cupola.graph._retained cimport Hold, drop_released, hold
from cupola.graph._structure cimport Structure, give_both, take_both

cimport cython

cdef dict node_classes = {}
cdef object definition_class = None


cdef int announce_definition(object cls) except -1:
    global definition_class
    definition_class = cls
    return 0


cdef NodeMaker wrap_definition(GraphHandle handle):
    cdef NodeMaker definition = definition_class.__new__(definition_class)
    definition.home = handle
    return definition


cdef GraphHandle definition_handle(object definition):
    if not isinstance(definition, definition_class):
        raise TypeError(f"expected a GraphDefinition, got {type(definition).__name__}")
    return (<NodeMaker>definition).home


cdef class NodeMaker:
    # The methods that GraphDefinition and GraphNode share: the new node depends on the node, if it is one.

    def launch(self, config, kernel, *kernel_args):
        """Add a node that launches a kernel.

        Parameters
        ----------
        config : LaunchConfig
            The shape, and what else the launch asks for. `programmatic_stream_serialization` has no meaning here: edges
            say what the kernel waits for.
        kernel : Kernel
            What to run; the graph keeps it.
        *kernel_args
            As for :func:`.launch`. The graph keeps the memory of Buffers, closed or not, and all other objects.

        Returns
        -------
        KernelNode

        Raises
        ------
        ValueError
            For a launch with an event, which no kernel node can have: make a node that records it.
        """
        self.place()
        return self.make(kernel_parameters(config, kernel, kernel_args))

    @cython.embedsignature(False)      # which would show `older`
    def allocate(self, size, older=None, *, device=None, memory_type="device", peer_access=None):
        """allocate($self, size, *, device=None, memory_type="device", peer_access=None)\n--\n\nAdd a node that allocates memory. Its address is known at once, and the same for all launches.

        Parameters
        ----------
        size : int
            Bytes, at least 1.
        device : Device or int, optional
            Where; by default the device of the current context.
        memory_type : GraphMemoryType or str
            ``"device"``, ``"host"`` or ``"managed"``.
        peer_access : list of (Device or int), optional
            Devices that get read and write access beside it.

        Returns
        -------
        AllocNode

        Raises
        ------
        ValueError
            For an unknown `memory_type`, or managed memory with a driver older than CUDA 13.0.
        CUDAError
            When the driver refuses it. Drivers for CUDA 13.0 have no memory of the host in graphs
            (``CUDA_ERROR_NOT_SUPPORTED``).
        """
        if older is not None:
            from cupola.graph._older import GraphAllocOptions

            if not isinstance(older, GraphAllocOptions):
                raise TypeError("allocate() takes device, memory_type and peer_access by keyword")
            if device is not None or (memory_type is not None and memory_type != "device") or peer_access is not None:
                raise TypeError("GraphAllocOptions are the older spelling of the keyword arguments: give one of them")
            device, memory_type, peer_access = older.device, older.memory_type, older.peer_access
        self.place()
        return self.make(allocation_parameters(size, device, memory_type, peer_access))

    def deallocate(self, dptr):
        """Add a node that frees memory which an allocation node allocated.

        Parameters
        ----------
        dptr : int
            Its address, :attr:`.AllocNode.dptr`.

        Returns
        -------
        FreeNode
        """
        self.place()
        return self.make(free_parameters(dptr))

    def memset(self, dst, value, width, height=1, pitch=0, *, dst_owner=None):
        """Add a node that fills memory.

        Parameters
        ----------
        dst : Buffer or int
            What to fill; the graph keeps the memory of a Buffer.
        value : int or bytes-like
            An int from 0 to 255, or a pattern of 1, 2 or 4 bytes: an element.
        width : int
            Elements in a row.
        height : int
            Rows.
        pitch : int
            Bytes from row to row, when there are several.
        dst_owner : object, optional
            Kept by the graph; for a `dst` that is an address.

        Returns
        -------
        MemsetNode
        """
        self.place()
        return self.make(memset_parameters(dst, value, width, height, pitch, dst_owner, require_context()))

    def memcpy(self, dst, src, size, *, dst_owner=None, src_owner=None):
        """Add a node that copies memory.

        Parameters
        ----------
        dst, src : Buffer or int
            Where to, and where from; the graph keeps the memory of Buffers. An address that CUDA does not know counts
            as one on the device.
        size : int
            Bytes, at least 1.
        dst_owner, src_owner : object, optional
            Kept by the graph; for a `dst` or `src` that is an address.

        Returns
        -------
        MemcpyNode
        """
        self.place()
        return self.make(memcpy_parameters(dst, src, size, dst_owner, src_owner, require_context()))

    def record(self, event):
        """Add a node that records an event.

        Parameters
        ----------
        event : Event
            Kept by the graph, closed or not.

        Returns
        -------
        EventRecordNode
        """
        self.place()
        return self.make(event_parameters(event, True))

    def wait(self, event):
        """Add a node that waits for an event.

        Parameters
        ----------
        event : Event
            Kept by the graph, closed or not.

        Returns
        -------
        EventWaitNode
        """
        self.place()
        return self.make(event_parameters(event, False))

    def callback(self, fn, *, user_data=None):
        """Add a node that calls a function on the host. It must not call CUDA.

        Parameters
        ----------
        fn : callable or ctypes function pointer
            A callable without parameters: its result is ignored, and its exceptions go to ``sys.unraisablehook``. Or a
            pointer of type ``CFUNCTYPE(None, c_void_p)``. The graph keeps it alive.
        user_data : int or bytes-like, optional
            For a function pointer: an address to pass, or bytes, of which the graph keeps a copy.

        Returns
        -------
        HostCallbackNode
        """
        self.place()
        return self.make(callback_parameters(fn, user_data))

    def embed(self, child):
        """Add a node that runs a copy of another graph.

        Parameters
        ----------
        child : GraphDefinition
            Without allocations, releases and conditional nodes. It stays independent of the copy.

        Returns
        -------
        ChildGraphNode
        """
        self.place()
        return self.make(child_parameters(definition_handle(child)))

    def if_then(self, condition):
        """Add a node with a body that runs when the condition is not zero.

        Parameters
        ----------
        condition : GraphCondition
            Of this graph; each drives one node.

        Returns
        -------
        IfNode
            Fill its :attr:`~.IfNode.then`.
        """
        self.place()
        return self.make(conditional_parameters(condition, CU_GRAPH_COND_TYPE_IF, 1, require_context()))

    def if_else(self, condition):
        """Add a node with two bodies: the first runs when the condition is not zero, else the second.

        Parameters
        ----------
        condition : GraphCondition
            Of this graph; each drives one node.

        Returns
        -------
        IfElseNode
            Fill its :attr:`~.IfElseNode.then` and :attr:`~.IfElseNode.else_`.
        """
        self.place()
        return self.make(conditional_parameters(condition, CU_GRAPH_COND_TYPE_IF, 2, require_context()))

    def while_loop(self, condition):
        """Add a node with a body that runs again and again, as long as the condition is not zero before it.

        Parameters
        ----------
        condition : GraphCondition
            Of this graph; each drives one node.

        Returns
        -------
        WhileNode
            Fill its :attr:`~.WhileNode.body`.
        """
        self.place()
        return self.make(conditional_parameters(condition, CU_GRAPH_COND_TYPE_WHILE, 1, require_context()))

    def switch(self, condition, count):
        """Add a node with `count` bodies, of which the condition selects one; none when it is `count` or more.

        Parameters
        ----------
        condition : GraphCondition
            Of this graph; each drives one node.
        count : int
            Number of bodies.

        Returns
        -------
        SwitchNode
            Fill its :attr:`~.ConditionalNode.branches`.
        """
        self.place()
        return self.make(conditional_parameters(condition, CU_GRAPH_COND_TYPE_SWITCH, count, require_context()))

    def join(self, *nodes):
        """Add an empty node that depends on all the nodes given, and on this one if it is a node.

        Parameters
        ----------
        *nodes : GraphNode
            Of this graph.

        Returns
        -------
        EmptyNode
        """
        cdef CUgraphNode before = self.place()
        cdef GraphNode node
        cdef list addresses = []
        for other in nodes:
            if not isinstance(other, GraphNode):
                raise TypeError(f"expected GraphNode, got {type(other).__name__}")
            node = <GraphNode>other
            address = <uintptr_t>node.open_pointer()
            if address != <uintptr_t>before and address not in addresses:
                addresses.append(address)
        if before != NULL:
            addresses.append(<uintptr_t>before)
        return _add(self.home, empty_parameters(), addresses)

    cdef CUgraphNode place(self) except? NULL:
        self.home.open_pointer()
        return NULL

    cdef GraphNode make(self, Parameters parameters):
        cdef CUgraphNode before = self.place()
        return _add(self.home, parameters, [<uintptr_t>before] if before != NULL else [])

    def __getattr__(self, name):
        from cupola.graph._older import attribute

        return attribute(self, name)

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} cannot be pickled")


cdef CUgraphNode _add_native(CUgraph native, Parameters parameters, list addresses) except NULL:
    cdef size_t count = len(addresses)
    cdef CUgraphNode made = NULL
    cdef CUgraphNode* before = <CUgraphNode*>PyMem_Malloc((count + 1) * sizeof(CUgraphNode))
    cdef CUresult status
    cdef size_t i
    if before == NULL:
        raise MemoryError()
    stripped = None
    try:
        if parameters.attributes:
            rehearse(&parameters.native, parameters.attributes, ())
        for i in range(count):
            before[i] = <CUgraphNode><uintptr_t>addresses[i]
        stripped = parameters.strip_child()
        with nogil:
            status = cu.cuGraphAddNode(&made, native, before, NULL, count, &parameters.native)
        if status == CUDA_ERROR_INVALID_VALUE and move_to_memory(parameters):
            with nogil:
                status = cu.cuGraphAddNode(&made, native, before, NULL, count, &parameters.native)
    finally:
        PyMem_Free(before)
        parameters.restore_child(stripped)
    if status != CUDA_SUCCESS:
        refused(status, b"cuGraphAddNode", parameters)
    return made


cdef GraphNode _add(GraphHandle graph, Parameters parameters, list addresses):
    cdef Structure structure = graph.hierarchy.structure, child = parameters.structure_of_child()
    take_both(structure, child)
    try:
        return _add_locked(graph, parameters, addresses)
    finally:
        give_both(structure, child)


cdef GraphNode _add_locked(GraphHandle graph, Parameters parameters, list addresses):
    cdef CUgraph native = graph.open_pointer()
    cdef CUgraphNode made = NULL
    cdef Record record = parameters.record
    drop_released()
    # First the reference, then the node: the graph may hold too much for a moment, but never too little.
    if record.kept and parameters.child is None:
        record.hold = hold(native, record.kept)
    try:
        made = _add_native(native, parameters, addresses)
        if parameters.attributes:
            write_attributes(made, parameters.attributes, {})
        if parameters.child is not None:
            graph.hierarchy.keep_copied(native, made, record)
    except BaseException:
        if made != NULL:
            cu.cuGraphDestroyNode(made)
        if record.hold is not None:
            record.hold.let_go()
        raise
    node = node_classes[<int>parameters.native.type]
    if not isinstance(node, type):
        parameters.record.bodies = tuple([
            <uintptr_t>parameters.native.conditional.phGraph_out[i] for i in range(parameters.native.conditional.size)
        ])
    graph.hierarchy.note(native, made, parameters.record)
    return node_object(graph, made)


cdef GraphNode node_object(GraphHandle graph, CUgraphNode pointer):
    cdef GraphNode node = graph.nodes.get(<uintptr_t>pointer)
    cdef CUgraphNodeType kind
    if node is not None:
        return node
    check(cu.cuGraphNodeGetType(pointer, &kind), b"cuGraphNodeGetType")
    cls = node_classes.get(<int>kind, GraphNode)
    if not isinstance(cls, type):
        cls = cls(graph, <uintptr_t>pointer)
    node = cls.__new__(cls)
    node.home, node.pointer, node.kind = graph, pointer, kind
    graph.nodes[<uintptr_t>pointer] = node
    return node


cdef class GraphNode(NodeMaker):
    """A piece of work in a :class:`.GraphDefinition`, and what it depends on.

    The methods of definitions and nodes make nodes; those of a node make nodes that depend on it. As long as the
    program holds a node, every property that returns the node returns the same object.

    Notes
    -----
    Threads take turns, as with the definition.
    """

    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"{type(self).__name__} objects are made by the methods of GraphDefinition and GraphNode")

    cdef CUgraphNode place(self) except? NULL:
        return self.open_pointer()

    cdef CUgraphNode open_pointer(self) except NULL:
        if self.destroyed:
            raise RuntimeError("GraphNode has been destroyed")
        if self.home.is_gone():
            raise gone_error("GraphNode")
        if not self.home.is_valid():
            raise RuntimeError("GraphNode belongs to an invalid GraphDefinition")
        return self.pointer

    cdef Record record(self):
        cdef Record found = self.home.hierarchy.find(self.home.pointer, self.pointer)
        return Record.__new__(Record) if found is None else found

    cdef GraphHandle inner(self, uintptr_t graph):
        cdef Record record
        self.home.hierarchy.structure.take()
        try:
            record = self.record()
            if graph not in record.bodies:      # of a node that somebody else made: from now on it is known
                record.bodies = (*record.bodies, graph)
                self.home.hierarchy.note(self.home.pointer, self.pointer, record)
                # Of a graph that was copied to here, what all of it needs is kept by the copy: from now on by this one as well.
                for found in self.home.hierarchy.others.get(<uintptr_t>self.home.pointer, ()):
                    self.home.hierarchy.keep_beside(<CUgraph>graph, (<Hold>found).value)
            return graph_handle(self.home.hierarchy, <CUgraph>graph, self.home, self.pointer)
        finally:
            self.home.hierarchy.structure.give()

    cdef int change(self, Parameters parameters) except -1:
        """Give the node other parameters, and what they need (``cuGraphNodeSetParams``)."""
        cdef Structure structure = self.home.hierarchy.structure, child = parameters.structure_of_child()
        drop_released()
        take_both(structure, child)
        try:
            return self.change_locked(self.open_pointer(), parameters)
        finally:
            give_both(structure, child)

    cdef int change_locked(self, CUgraphNode pointer, Parameters parameters) except -1:
        cdef CUresult status
        cdef Record record = parameters.record
        if record.kept and parameters.child is None:
            record.hold = hold(self.home.pointer, record.kept)
        try:
            stripped = parameters.strip_child()
            try:
                with nogil:
                    status = cu.cuGraphNodeSetParams(pointer, &parameters.native)
            finally:
                parameters.restore_child(stripped)
            if status != CUDA_SUCCESS:
                refused(status, b"cuGraphNodeSetParams", parameters)
        except BaseException:
            if record.hold is not None:
                record.hold.let_go()
            raise
        if self.record().bodies:        # a child graph, which has been replaced
            self.home.bury(pointer)
        self.home.hierarchy.note(self.home.pointer, pointer, record)
        if parameters.child is not None:
            self.home.hierarchy.keep_copied(self.home.pointer, pointer, record)
        return 0

    @property
    def type(self):
        """cupola.bindings.driver.CUgraphNodeType: the kind of node, None once destroyed."""
        if not self.is_valid:
            return None
        return driver_module.CUgraphNodeType(<int>self.kind)

    @property
    def graph(self):
        """GraphDefinition: the graph that the node is in."""
        return wrap_definition(self.home)

    @property
    def handle(self):
        """cupola.bindings.driver.CUgraphNode: the native handle, None once destroyed."""
        return driver_module.CUgraphNode(<uintptr_t>self.pointer) if self.is_valid else None

    @property
    def is_valid(self):
        """bool: False once the node, or its graph, was destroyed."""
        return not self.destroyed and self.home.is_valid()

    def destroy(self):
        """Remove the node with its edges, and release what it needs (``cuGraphDestroyNode``).

        Executables that were made before keep it. Doing so twice is fine.

        Raises
        ------
        CUDAError
            In a graph that has allocations or releases the driver removes no node; nothing has changed then.
        """
        cdef CUgraphNode pointer
        cdef CUresult status
        if self.destroyed:
            return
        self.home.hierarchy.structure.take()
        try:
            if self.destroyed:      # by another thread meanwhile
                return
            pointer = self.open_pointer()
            with nogil:
                status = cu.cuGraphDestroyNode(pointer)
            check(status, b"cuGraphDestroyNode")
            self.destroyed = True
            self.home.nodes.pop(<uintptr_t>pointer, None)
            self.home.bury(pointer)
        finally:
            self.home.hierarchy.structure.give()

    @property
    def pred(self):
        """AdjacencySet: the nodes that this one depends on, a live set; assigning replaces them."""
        from cupola.graph._adjacency import AdjacencySet

        return AdjacencySet(self, True)

    @pred.setter
    def pred(self, nodes):
        _assign(self.pred, nodes)

    @property
    def succ(self):
        """AdjacencySet: the nodes that depend on this one, a live set; assigning replaces them."""
        from cupola.graph._adjacency import AdjacencySet

        return AdjacencySet(self, False)

    @succ.setter
    def succ(self, nodes):
        _assign(self.succ, nodes)

    def _neighbours(self, bint before):
        """The nodes that this one depends on, or those that depend on it; none once destroyed."""
        cdef CUgraphNode pointer
        cdef CUgraphNode* nodes
        cdef CUgraphEdgeData* data
        cdef size_t count = 0
        self.home.hierarchy.structure.take()
        try:
            if not self.is_valid:
                return []
            pointer = self.open_pointer()
            _list_neighbours(pointer, before, NULL, NULL, &count)
            nodes = <CUgraphNode*>PyMem_Malloc((count + 1) * (sizeof(CUgraphNode) + sizeof(CUgraphEdgeData)))
            if nodes == NULL:
                raise MemoryError()
            try:
                data = <CUgraphEdgeData*>(nodes + count + 1)
                if count != 0:
                    _list_neighbours(pointer, before, nodes, data, &count)
                return [node_object(self.home, nodes[i]) for i in range(count)]
            finally:
                PyMem_Free(nodes)
        finally:
            self.home.hierarchy.structure.give()

    def _link(self, others, bint before):
        """Add edges from or to other nodes, which must be of this graph; all in one call (``cuGraphAddDependencies``)."""
        _change_edges(self, others, before, True)

    def _unlink(self, others, bint before):
        """Remove edges from or to other nodes (``cuGraphRemoveDependencies``)."""
        _change_edges(self, others, before, False)

    def _is_beside(self, other):
        """Whether another node is of the same graph."""
        return isinstance(other, GraphNode) and (<GraphNode>other).is_valid and (<GraphNode>other).home is self.home

    def __eq__(self, other):
        # A destroyed node equals only itself: a new node may get its address.
        if not isinstance(other, GraphNode):
            return NotImplemented
        if self is other:
            return True
        return (
            self.pointer == (<GraphNode>other).pointer and self.home is (<GraphNode>other).home
            and self.is_valid and other.is_valid
        )

    def __hash__(self):
        return hash(<uintptr_t>self.pointer)

    def __repr__(self):
        if not self.is_valid:
            return "<GraphNode destroyed>"
        return f"<{type(self).__name__} handle={<uintptr_t>self.pointer:#x}{self._details()}>"

    def _details(self):
        """What a node's repr says beside its handle."""
        return ""


cdef int _assign(object neighbours, object nodes) except -1:
    nodes = [nodes] if isinstance(nodes, GraphNode) else list(nodes)
    neighbours.clear()
    neighbours.update(nodes)
    return 0


cdef int _list_neighbours(CUgraphNode node, bint before, CUgraphNode* nodes, CUgraphEdgeData* data,
                          size_t* count) except -1:
    if before:
        return check(cu.cuGraphNodeGetDependencies(node, nodes, data, count), b"cuGraphNodeGetDependencies")
    return check(cu.cuGraphNodeGetDependentNodes(node, nodes, data, count), b"cuGraphNodeGetDependentNodes")


cdef int _change_edges(GraphNode self, object others, bint before, bint add) except -1:
    cdef CUgraphNode pointer = self.open_pointer()
    cdef CUgraph graph = self.home.open_pointer()
    cdef list nodes = list(others)
    cdef size_t count = len(nodes), i
    cdef GraphNode other
    cdef CUgraphNode* ours
    cdef CUgraphNode* theirs
    cdef CUgraphNode* sources
    cdef CUgraphNode* targets
    cdef CUresult status
    if count == 0:
        return 0
    # The driver takes pairs in turn and stops at a bad one; a node with itself is the only one left that can be bad.
    nodes.sort(key=lambda node: node is not self)
    ours = <CUgraphNode*>PyMem_Malloc(2 * count * sizeof(CUgraphNode))
    if ours == NULL:
        raise MemoryError()
    theirs = ours + count
    for i in range(count):
        other = <GraphNode>nodes[i]
        ours[i], theirs[i] = pointer, other.pointer
    sources, targets = (theirs, ours) if before else (ours, theirs)
    try:
        self.home.hierarchy.structure.take()
        try:
            for other in nodes:
                other.open_pointer()
            self.open_pointer()
            with nogil:
                if add:
                    status = cu.cuGraphAddDependencies(graph, sources, targets, NULL, count)
                else:
                    status = cu.cuGraphRemoveDependencies(graph, sources, targets, NULL, count)
            return check(status, b"cuGraphAddDependencies" if add else b"cuGraphRemoveDependencies")
        finally:
            self.home.hierarchy.structure.give()
    finally:
        PyMem_Free(ours)


cdef list list_nodes(GraphHandle graph):
    graph.hierarchy.structure.take()
    try:
        return _list_nodes(graph)
    finally:
        graph.hierarchy.structure.give()


cdef list _list_nodes(GraphHandle graph):
    cdef CUgraph native = graph.open_pointer()
    cdef CUgraphNode* nodes
    cdef size_t count = 0, i
    check(cu.cuGraphGetNodes(native, NULL, &count), b"cuGraphGetNodes")
    nodes = <CUgraphNode*>PyMem_Malloc((count + 1) * sizeof(CUgraphNode))
    if nodes == NULL:
        raise MemoryError()
    try:
        if count != 0:
            check(cu.cuGraphGetNodes(native, nodes, &count), b"cuGraphGetNodes")
        return [node_object(graph, nodes[i]) for i in range(count)]
    finally:
        PyMem_Free(nodes)


cdef list list_edges(GraphHandle graph):
    graph.hierarchy.structure.take()
    try:
        return _list_edges(graph)
    finally:
        graph.hierarchy.structure.give()


cdef list _list_edges(GraphHandle graph):
    cdef CUgraph native = graph.open_pointer()
    cdef CUgraphNode* sources
    cdef CUgraphNode* targets
    cdef CUgraphEdgeData* data
    cdef size_t count = 0, i
    check(cu.cuGraphGetEdges(native, NULL, NULL, NULL, &count), b"cuGraphGetEdges")
    sources = <CUgraphNode*>PyMem_Malloc((count + 1) * (2 * sizeof(CUgraphNode) + sizeof(CUgraphEdgeData)))
    if sources == NULL:
        raise MemoryError()
    targets = sources + count + 1
    data = <CUgraphEdgeData*>(targets + count + 1)
    try:
        if count != 0:
            check(cu.cuGraphGetEdges(native, sources, targets, data, &count), b"cuGraphGetEdges")
        return [(node_object(graph, sources[i]), node_object(graph, targets[i])) for i in range(count)]
    finally:
        PyMem_Free(sources)
