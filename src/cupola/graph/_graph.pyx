"""Executable graphs."""

from libc.stdint cimport uintptr_t
from libc.string cimport memset

from cupola.core._context cimport is_gone, resets
from cupola.core._cuda cimport (
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED,
    CUDA_GRAPH_INSTANTIATE_ERROR, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
    CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
    CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED,
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_GRAPH_INSTANTIATE_SUCCESS, CUDA_SUCCESS,
    CU_GRAPH_EXEC_UPDATE_ERROR, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,
    CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
    CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
    CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE,
    CUcontext, CUgraph, CUgraphExec, CUgraphExecUpdateResultInfo, CUresult, CUstream, check, closed_error, cu,
    driver_usable, factory_error, gone_error, report,
)
from cupola.core._stream cimport Stream, stream_argument
from cupola.graph._retained cimport drop_released

from cupola.core._errors import CUDAError

# What an instantiation says beside its status.
cdef dict _REFUSALS = {
    <int>CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: "its structure is invalid, for example a cycle",
    <int>CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: "it has a node that a launch from the device cannot run",
    <int>CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED:
        "its nodes belong to several contexts, which a launch from the device cannot serve",
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


cdef class GraphHandle:
    def __dealloc__(self):
        if self.owned and self.pointer != NULL and driver_usable():
            report(cu.cuGraphDestroy(self.pointer), b"cuGraphDestroy")


cdef GraphHandle new_graph_handle(CUgraph pointer, bint owned, object root):
    cdef GraphHandle handle = GraphHandle.__new__(GraphHandle)
    handle.pointer, handle.owned, handle.root = pointer, owned, root
    return handle


cdef class Graph:
    """A graph ready to run: all of it is submitted by one call (``CUgraphExec``).

    Made by :meth:`GraphBuilder.complete`. It lives on without the builder, and keeps what the builder's graph keeps
    until its last launch is over.
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("Graph", "GraphBuilder.complete")

    def __dealloc__(self):
        cdef CUgraphExec pointer = self.pointer
        cdef CUresult status
        if pointer != NULL and driver_usable() and not is_gone(self.context, self.born):
            with nogil:
                status = cu.cuGraphExecDestroy(pointer)
            report(status, b"cuGraphExecDestroy")

    cdef CUgraphExec open_pointer(self) except NULL:
        if self.pointer == NULL:
            raise closed_error(self)
        if is_gone(self.context, self.born):
            raise gone_error(self)
        return self.pointer

    def launch(self, stream):
        """Run the graph behind the work already in `stream` (``cuGraphLaunch``). Launches of one graph never overlap.

        Parameters
        ----------
        stream : Stream or GraphBuilder
            Where the launch is queued; a builder records the graph as a node.
        """
        cdef Stream queue = stream_argument(stream)
        cdef CUstream native = queue.pointer
        cdef CUgraphExec pointer = self.open_pointer()
        cdef CUresult status
        with nogil:
            status = cu.cuGraphLaunch(pointer, native)
        check(status, b"cuGraphLaunch")

    def upload(self, stream):
        """Bring the graph to the device ahead of its first launch (``cuGraphUpload``).

        Parameters
        ----------
        stream : Stream or GraphBuilder
            Orders the upload.
        """
        cdef Stream queue = stream_argument(stream)
        cdef CUstream native = queue.pointer
        cdef CUgraphExec pointer = self.open_pointer()
        cdef CUresult status
        with nogil:
            status = cu.cuGraphUpload(pointer, native)
        check(status, b"cuGraphUpload")

    def update(self, source):
        """Take over the parameters of another graph of the same shape (``cuGraphExecUpdate``).

        Parameters
        ----------
        source : GraphBuilder
            Has ended building a graph with the same nodes and edges.

        Raises
        ------
        CUDAError
            When the graphs differ in more than parameters; this one stays as it was.
        ValueError
            When the builder is closed or has not ended building.
        """
        cdef CUgraphExecUpdateResultInfo info
        cdef GraphHandle handle
        cdef CUgraph graph
        cdef CUgraphExec pointer = self.open_pointer()
        cdef CUresult status
        from cupola.graph._builder import GraphBuilder

        if not isinstance(source, GraphBuilder):
            raise TypeError(f"source must be a GraphBuilder, got {type(source).__name__}")
        handle = source._finished()
        graph = handle.pointer
        memset(&info, 0, sizeof(info))
        with nogil:
            status = cu.cuGraphExecUpdate(pointer, graph, &info)
        if status == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE:
            name, meaning = _UPDATE_ERRORS.get(<int>info.result, (f"result {<int>info.result}", "unknown"))
            raise CUDAError(
                f"Graph update failed: {meaning} ({name})",
                name="CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", status=<int>status, call="cuGraphExecUpdate",
            )
        check(status, b"cuGraphExecUpdate")

    @property
    def handle(self):
        """cupola.bindings.driver.CUgraphExec: the executable, null once closed."""
        from cupola.bindings.driver import CUgraphExec as Handle

        return Handle(<uintptr_t>self.pointer)

    @property
    def is_closed(self):
        """bool: whether the graph was closed."""
        return self.pointer == NULL

    def close(self):
        """Release the executable (``cuGraphExecDestroy``). A launch under way completes. Closing twice is fine."""
        cdef CUgraphExec pointer = self.pointer
        cdef CUresult status
        if pointer == NULL:
            return
        self.pointer = NULL
        if is_gone(self.context, self.born):
            return
        with nogil:
            status = cu.cuGraphExecDestroy(pointer)
        drop_released()
        check(status, b"cuGraphExecDestroy")

    def __reduce__(self):
        raise TypeError("a Graph cannot be pickled")


cdef Graph instantiate(CUgraph graph, CUcontext context, object options):
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
            parameters.hUploadStream = stream_argument(options.upload_stream).pointer
        if options.device_launch:
            parameters.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
        if options.use_node_priority:
            parameters.flags |= CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
    with nogil:
        status = cu.cuGraphInstantiateWithParams(&pointer, graph, &parameters)
    if parameters.result_out != CUDA_GRAPH_INSTANTIATE_SUCCESS and parameters.result_out != CUDA_GRAPH_INSTANTIATE_ERROR:
        if status == CUDA_SUCCESS and pointer != NULL:
            cu.cuGraphExecDestroy(pointer)
        reason = _REFUSALS.get(<int>parameters.result_out, f"for an unknown reason ({<int>parameters.result_out})")
        raise RuntimeError(f"the graph cannot be made executable: {reason}")
    check(status, b"cuGraphInstantiateWithParams")
    result = Graph.__new__(Graph)
    result.pointer = pointer
    result.context = context
    result.born = resets
    return result
