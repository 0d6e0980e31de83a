"""Executable graphs: launching, uploading and updating them."""

from _weakref import ref

from cpython.exc cimport PyErr_WriteUnraisable
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from cupola.core.device._context cimport is_gone, resets, wrap_context
from cupola.core.device._later cimport in_host_function
from cupola.core.base._cuda cimport (
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_PERMITTED,
    CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, CUDA_GRAPH_INSTANTIATE_ERROR, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
    CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
    CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED,
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_GRAPH_INSTANTIATE_SUCCESS, CUDA_SUCCESS,
    CU_GRAPH_EXEC_UPDATE_ERROR, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,
    CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
    CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
    CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE,
    CU_STREAM_CAPTURE_MODE_RELAXED, CUcontext, CUgraph, CUgraphExec, CUgraphExecUpdateResultInfo, CUgraphNode,
    CUresult, CUstream, CUstreamCaptureMode, check, closed_error, cu,
    driver_usable, factory_error, fail_because, gone_error, report,
)
from cupola.core.base._keep cimport keep, release_kept
from cupola.core.base._shared cimport close_uses, end_use, make_turn, reopen_uses, wait_for_turn
from cupola.core.device._stream cimport StreamHandle, stream_argument
from cupola.graph._hierarchy cimport GraphHandle
from cupola.graph._last_launch cimport keep_for_good, keep_until_over
from cupola.graph._node cimport GraphNode, definition_handle, list_nodes, wrap_definition
from cupola.graph._parameters cimport Parameters, refused
from cupola.graph._retained cimport drop_released
from cupola.graph._structure cimport Structure, give_both, take_both

from cupola._above import above
from cupola.core.memory._access import devices_of
from cupola.core.base._errors import CUDAError

cimport cython

# What an instantiation says beside its status.
cdef dict _REFUSALS = {
    <int>CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: "its structure is invalid, for example a cycle",
    <int>CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: "it has a node that the device cannot run by itself, in the body of a condition or in a launch from the device",
    <int>CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED:
        "its nodes belong to several contexts, which a launch from the device cannot serve, or a copy in the body of a "
        "condition has pageable host memory at one end",
    <int>CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED: "it has a condition that no conditional node uses",
}

# Name and meaning of what an update says beside its status.
cdef dict _UPDATE_ERRORS = {
    <int>CU_GRAPH_EXEC_UPDATE_ERROR: ("CU_GRAPH_EXEC_UPDATE_ERROR", "the update failed"),
    <int>CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED:
        ("CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED", "the nodes or edges differ"),
    <int>CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED:
        ("CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED", "a node is of another kind"),
    <int>CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED:
        ("CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED", "a node runs another kernel"),
    <int>CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED:
        ("CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED", "parameters changed in a way that cannot be updated"),
    <int>CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED:
        ("CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED", "something about a node cannot be updated"),
    <int>CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE:
        ("CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE", "a node's kernel changed in a way that cannot be updated"),
    <int>CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED:
        ("CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED", "a node's attributes changed in a way that cannot be updated"),
}


# What an executable can change about a node: kind of node -> class of the view, filled by _executable_nodes.
cdef dict executable_classes = {}


cdef class Retired:
    pass


cdef class Graph:
    """A graph ready to run: all of it is submitted by one call (``CUgraphExec``).

    Made by :meth:`.GraphBuilder.complete` and :meth:`.GraphDefinition.instantiate`. It is independent of them, and
    keeps alive what its nodes need until its last launch is over. ``graph[node]`` returns a view of the counterpart of
    a node of the definition, through which the parameters of later launches can be changed.

    Notes
    -----
    Threads may share it, and any of them may close it: calls that have begun end as usual. They take turns, as the driver
    does not synchronize executables (CUDA Driver API, "Graph object thread safety").
    """

    def __cinit__(self):
        make_turn(&self.turn)

    def __init__(self, *args, **kwargs):
        raise factory_error("Graph", "GraphBuilder.complete() or GraphDefinition.instantiate()")

    # Not __dealloc__: before that, the garbage collector may have cleared what a running launch still needs.
    def __del__(self):
        cdef CUgraphExec pointer = self.pointer
        if pointer != NULL:
            self.pointer = NULL
            _destroy_soon(self, pointer)

    cdef Graph remains(self, CUgraphExec pointer):
        cdef Graph later = Graph.__new__(Graph)
        later.pointer, later.context, later.born, later.launched = pointer, self.context, self.born, self.launched
        later.structure, later.kept, later.changed, later.waiting = self.structure, self.kept, self.changed, self.waiting
        self.pointer = NULL
        self.kept = self.changed = self.waiting = None
        return later

    cdef CUgraphExec open_pointer(self) except NULL:
        cdef CUgraphExec pointer = self.pointer
        if pointer == NULL or is_gone(self.context, self.born):
            self.refuse()
        return pointer

    cdef int refuse(self) except -1:
        raise closed_error(self) if self.pointer == NULL else gone_error(self)

    cdef int wait(self, CUgraphExec pointer) except -1:
        # A host function must not wait for the driver, and the driver would refuse the call that follows.
        if in_host_function():
            if end_use(&self.uses):
                self.destroy_soon(pointer)
            check(CUDA_ERROR_NOT_PERMITTED, b"a call of a graph in a host function")
        with nogil:
            wait_for_turn(&self.turn)
        return 0

    cdef void destroy_soon(self, CUgraphExec pointer) noexcept:
        try:
            _destroy_soon(self, pointer)
        except Exception:
            PyErr_WriteUnraisable(self)

    def launch(self, stream):
        """Run the graph behind the work already in `stream` (``cuGraphLaunch``). Launches of one graph never overlap.

        Parameters
        ----------
        stream : Stream or GraphBuilder
            Where the launch is queued. While it records, it is refused: :meth:`.GraphBuilder.embed` records a graph.
        """
        cdef StreamHandle held = stream_argument(stream).hold()
        cdef CUstream native = held.pointer
        cdef CUgraphExec pointer = self.begin()
        cdef CUresult status
        self.launched = True
        with nogil:
            status = cu.cuGraphLaunch(pointer, native)
        self.end(pointer)
        check(status, b"cuGraphLaunch")

    def upload(self, stream):
        """Bring the graph to the device ahead of its first launch (``cuGraphUpload``).

        Parameters
        ----------
        stream : Stream or GraphBuilder
            Orders the upload.
        """
        cdef StreamHandle held = stream_argument(stream).hold()
        cdef CUstream native = held.pointer
        cdef CUgraphExec pointer = self.begin()
        cdef CUresult status
        with nogil:
            status = cu.cuGraphUpload(pointer, native)
        self.end(pointer)
        check(status, b"cuGraphUpload")

    def update(self, source):
        """Take over the parameters of another graph of the same shape (``cuGraphExecUpdate``).

        What views of single nodes have changed is overwritten.

        Parameters
        ----------
        source : GraphBuilder or GraphDefinition
            A graph with the same nodes and edges; a builder must have ended building it.

        Raises
        ------
        CUDAError
            When the graphs differ in more than parameters; this one then does not change. The text names the node.
        ValueError
            When the builder has not ended building.
        RuntimeError
            When it is closed.
        """
        cdef GraphHandle handle
        cdef CUgraphExec pointer
        self.open_pointer()
        if isinstance(source, above("GraphBuilder")):
            handle = source._finished()
        elif isinstance(source, above("GraphDefinition")):
            handle = definition_handle(source)
        else:
            raise TypeError(f"source must be a GraphBuilder or GraphDefinition, got {type(source).__name__}")
        pointer = self.begin()
        try:
            handle.hierarchy.structure.take()
            try:
                _update(self, pointer, handle)
            finally:
                handle.hierarchy.structure.give()
        finally:
            self.end(pointer)

    def __getitem__(self, node):
        """A view of the counterpart of a node of the definition: :class:`.ExecutableKernelNode` and its siblings."""
        above("ExecutableGraphNode")    # the classes of that module announce themselves
        self.open_pointer()
        if not isinstance(node, GraphNode):
            raise TypeError(f"expected a GraphNode, got {type(node).__name__}")
        if not node.is_valid:
            raise RuntimeError("source graph node is no longer valid")
        cls = executable_classes.get(type(node))
        if cls is None:
            raise TypeError(f"the {type(node).__name__} of an executable graph cannot be changed")
        return cls._of(self, node)

    cdef int change(self, object node, Parameters parameters) except -1:
        """Give the counterpart of a node other parameters (``cuGraphExecNodeSetParams``)."""
        cdef CUgraphNode native
        cdef CUgraphExec pointer = self.begin()
        cdef CUresult status
        cdef tuple kept = parameters.record.kept
        cdef Structure structure = (<GraphNode>node).home.hierarchy.structure, child = parameters.structure_of_child()
        try:
            drop_released()
            take_both(structure, child)
            try:
                native = (<GraphNode>node).open_pointer()
                stripped = parameters.strip_child()
                try:
                    with nogil:
                        status = cu.cuGraphExecNodeSetParams(pointer, native, &parameters.native)
                finally:
                    parameters.restore_child(stripped)
            finally:
                give_both(structure, child)
            if status != CUDA_SUCCESS:
                refused(status, b"cuGraphExecNodeSetParams", parameters)
            with cython.critical_section(self):
                changed = self.changed
            before = changed.get(<uintptr_t>native, ())
            changed[<uintptr_t>native] = kept
            return self.retire(pointer, _without(before, kept))
        finally:
            self.end(pointer)

    cdef int retire(self, CUgraphExec pointer, tuple values) except -1:
        """Release what the executable needed until now, once the launches so far are over.

        That is asked once for all that has come together since it was asked last and the answer came.
        """
        cdef Retired batch = None
        with cython.critical_section(self):
            if values and self.launched:
                self.waiting.append(values)
            if self.waiting and (self.retiring is None or self.retiring() is None):
                batch = Retired.__new__(Retired)
                batch.values, self.waiting = self.waiting, []
                self.retiring = ref(batch)
        if batch is not None:
            check(keep_until_over(pointer, self.context, batch), b"cuGraphUpload")
        return 0

    cdef CUresult destroy(self, CUgraphExec pointer) except *:
        if driver_usable() and not is_gone(self.context, self.born):
            if not self.structure.try_take():
                self.structure.abandon(self.remains(pointer))
                return CUDA_SUCCESS
            try:
                return self.destroy_now(pointer)
            finally:
                self.structure.give()
        if self.launched and not driver_usable():   # the launch may be under way while the interpreter goes down
            keep_for_good((self.kept, self.changed, self.waiting))
        self.kept = self.changed = self.waiting = None
        return CUDA_SUCCESS

    cdef CUresult destroy_now(self, CUgraphExec pointer) except *:
        cdef CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED
        cdef CUresult told = CUDA_SUCCESS, status
        # Until the driver has destroyed it: that waits for launches that the device has made.
        needed = (self.kept, self.changed, self.waiting)
        self.kept = self.changed = self.waiting = None
        if self.launched:
            told = keep_until_over(pointer, self.context, needed)
        with nogil:
            # A capture on this thread, of the mode that such calls spoil, has nothing to do with it.
            cu.cuThreadExchangeStreamCaptureMode(&mode)
            status = cu.cuGraphExecDestroy(pointer)
            cu.cuThreadExchangeStreamCaptureMode(&mode)
        if status == CUDA_ERROR_NOT_PERMITTED:
            self.kept, self.changed, self.waiting = needed
            self.pointer = pointer
            reopen_uses(&self.uses)
        return told if told != CUDA_SUCCESS else status

    @property
    def handle(self):
        """cupola.bindings.driver.CUgraphExec: the executable, null once closed."""
        from cupola.bindings.driver import CUgraphExec as Handle

        self.launched = True    # from here on anybody may do so
        return Handle(<uintptr_t>self.pointer)

    @property
    def is_closed(self):
        """bool: whether the graph was closed."""
        return self.pointer == NULL

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Release the executable (``cuGraphExecDestroy``). A running launch completes. Closing twice is fine."""
        cdef CUgraphExec pointer = self.pointer
        cdef CUresult status = CUDA_SUCCESS
        self.pointer = NULL
        if pointer != NULL and close_uses(&self.uses):      # else a call uses it still, and then destroys it
            status = self.destroy(pointer)
        drop_released()
        check(status, b"cuGraphExecDestroy")

    def __repr__(self):
        return f"<Graph handle={<uintptr_t>self.pointer:#x}>"

    def __str__(self):
        definition = self._drawn()
        if self.pointer == NULL:
            return "<Graph closed>"
        return "<Graph whose definition is gone>" if definition is None else f"<Graph of {len(definition.nodes())} nodes>"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self):
        from cupola.graph._drawing import html_of
        return html_of(None if self.pointer == NULL else self._drawn(), str(self))

    def _drawn(self):
        """What the executable was made of, as long as somebody has it."""
        above("GraphDefinition")  # whose module announces it and the classes of nodes; capturing does without
        cdef GraphHandle handle = self.drawn() if self.drawn is not None else None
        return wrap_definition(handle) if handle is not None and handle.is_valid() else None

    def __reduce__(self):
        raise TypeError("a Graph cannot be pickled")


cdef int _destroy_soon(Graph graph, CUgraphExec pointer) except -1:
    """Destroy a closed graph: now, or if this is a host function on an ordinary thread soon after."""
    cdef CUresult status = graph.destroy(pointer)
    if status == CUDA_ERROR_NOT_PERMITTED:
        release_kept(keep(graph.remains(pointer), NULL))
    else:
        report(status, b"cuGraphExecDestroy")
    return 0


cdef int _update(Graph executable, CUgraphExec pointer, GraphHandle handle) except -1:
    cdef CUgraphExecUpdateResultInfo info
    cdef CUgraph graph = handle.open_pointer()
    cdef CUresult status
    cdef tuple kept, before
    cdef dict changed
    memset(&info, 0, sizeof(info))
    drop_released()
    kept = handle.hierarchy.attachments()
    holds = handle.hierarchy.take_off()
    try:
        with nogil:
            status = cu.cuGraphExecUpdate(pointer, graph, &info)
    finally:
        handle.hierarchy.put_back(holds)
    if status == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE:
        name, meaning = _UPDATE_ERRORS.get(<int>info.result, (f"result {<int>info.result}", "unknown"))
        where = f": {_describe(handle, info.errorNode)}" if info.errorNode != NULL else ""
        if info.errorFromNode != NULL:
            where += f", which depends on {_describe(handle, info.errorFromNode)}"
        raise CUDAError(
            f"Graph update failed: {meaning}{where} ({name})",
            name="CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", status=<int>status, call="cuGraphExecUpdate",
        )
    check(status, b"cuGraphExecUpdate")
    with cython.critical_section(executable):
        before, changed = executable.kept, executable.changed
        executable.kept, executable.changed = kept, {}
    for values in changed.values():
        before += values
    executable.retire(pointer, _without(before, kept))
    return 0


cdef tuple _without(tuple values, tuple others):
    """The objects among `values` that are not among `others`."""
    cdef set there = {id(other) for other in others}
    return tuple([value for value in values if id(value) not in there])


cdef str _describe(GraphHandle graph, CUgraphNode node):
    """A node for a message; it may be one of a graph inside this one."""
    cdef GraphNode found
    for found in list_nodes(graph):
        if found.pointer == node:
            return repr(found)
    return f"the node {<uintptr_t>node:#x} of a graph inside this one"


cdef int print_dot(CUgraph graph, object path, object options) except -1:
    cdef bytes name
    cdef const char* file_name
    cdef unsigned int flags = 0
    cdef CUresult status
    from cupola.graph._options import GraphDebugPrintOptions

    if not isinstance(path, str):
        raise TypeError(f"path must be a str, got {type(path).__name__}")
    if options is not None:
        if not isinstance(options, GraphDebugPrintOptions):
            raise TypeError(f"options must be GraphDebugPrintOptions, got {type(options).__name__}")
        flags = options._flags()
    name = path.encode()
    file_name = name
    with nogil:
        status = cu.cuGraphDebugDotPrint(graph, file_name, flags)
    return check(status, b"cuGraphDebugDotPrint")


cdef str _find_foreign_fill(GraphHandle handle, CUcontext context):
    """A captured fill to whose memory the stream's device has no access: the driver reports that only here."""
    from cupola.graph._node_kinds import MemsetNode

    own = wrap_context(context).device_id if context != NULL else -1
    for node in list_nodes(handle):
        for owner in devices_of(node.dptr) - {own} if isinstance(node, MemsetNode) else ():
            return (
                f"{node!r} fills memory of device {owner}, and the graph is of device {own}: record it with a stream of "
                f"device {owner}, or give device {own} access (peer_accessible_by of the buffer's memory resource)."
            )
    return None


cdef Graph instantiate(GraphHandle handle, CUcontext context, object options):
    cdef CUgraph graph = handle.open_pointer()
    cdef StreamHandle upload
    cdef CUDA_GRAPH_INSTANTIATE_PARAMS parameters
    cdef CUgraphExec pointer = NULL
    cdef Graph result
    cdef CUresult status
    memset(&parameters, 0, sizeof(parameters))
    if options:
        if options.auto_free_on_launch:
            parameters.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
        if options.upload_stream is not None:
            parameters.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
            upload = stream_argument(options.upload_stream).hold()
            parameters.hUploadStream = upload.pointer
        if options.device_launch:
            parameters.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
        if options.use_node_priority:
            parameters.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
    result = Graph.__new__(Graph)
    result.context, result.born, result.structure = context, resets, handle.hierarchy.structure
    result.changed, result.waiting = {}, []
    result.drawn = ref(handle)
    holds = handle.hierarchy.take_off()
    try:
        result.kept = handle.hierarchy.attachments()
        with nogil:
            status = cu.cuGraphInstantiateWithParams(&pointer, graph, &parameters)
        result.pointer = pointer if status == CUDA_SUCCESS else NULL
    finally:
        handle.hierarchy.put_back(holds)
    if parameters.result_out != CUDA_GRAPH_INSTANTIATE_SUCCESS and parameters.result_out != CUDA_GRAPH_INSTANTIATE_ERROR:
        reason = _REFUSALS.get(<int>parameters.result_out, f"for an unknown reason ({<int>parameters.result_out})")
        where = f", at {_describe(handle, parameters.hErrNode_out)}" if parameters.hErrNode_out != NULL else ""
        raise RuntimeError(f"the graph cannot be made executable: {reason}{where}")
    if status == CUDA_ERROR_INVALID_VALUE:
        fail_because(status, b"cuGraphInstantiateWithParams", _find_foreign_fill(handle, context))
    check(status, b"cuGraphInstantiateWithParams")
    return result
