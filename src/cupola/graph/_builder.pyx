"""GraphBuilder: recording the work that is submitted to streams into a graph (stream capture)."""

import weakref
from _thread import RLock

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CU_GRAPH_COND_TYPE_IF, CU_GRAPH_COND_TYPE_SWITCH, CU_GRAPH_COND_TYPE_WHILE, CU_GRAPH_NODE_TYPE_GRAPH,
    CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    CU_STREAM_CAPTURE_STATUS_ACTIVE, CU_STREAM_CAPTURE_STATUS_INVALIDATED, CU_STREAM_CAPTURE_STATUS_NONE,
    CU_STREAM_SET_CAPTURE_DEPENDENCIES, CUDA_ERROR_NOT_PERMITTED, CUDA_SUCCESS,
    CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, CUresult, CUstream,
    CUstreamCaptureMode, CUstreamCaptureStatus, check, closed_error, cu, driver_usable,
    fail,
)
from cupola.core.device._later cimport in_host_function, let_go_later
from cupola.core.device._stream cimport Recorder, Stream, StreamHandle, create_stream, new_stream
from cupola.core.device._stream_order cimport wait_for
from cupola.graph._callback cimport HostCall, prepare_callback
from cupola.graph._condition cimport GraphCondition, create_condition
from cupola.graph._graph cimport instantiate, print_dot
from cupola.graph._hierarchy cimport GraphHandle, graph_handle, new_hierarchy
from cupola.graph._node cimport wrap_definition
from cupola.graph._parameters cimport Parameters, child_parameters, conditional_parameters
from cupola.graph._retained cimport drop_released

cimport cython

cdef dict _MODES = {
    "global": <int>CU_STREAM_CAPTURE_MODE_GLOBAL,
    "thread_local": <int>CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    "relaxed": <int>CU_STREAM_CAPTURE_MODE_RELAXED,
}


cdef class Abandoned:
    """Ends a capture that no call can end any more. Its errors were already raised by the calls that caused them."""
    cdef StreamHandle stream
    cdef bint owned         # the graph, too, is nobody's

    def __dealloc__(self):
        cdef Abandoned remains
        cdef CUgraph graph = NULL
        cdef CUresult status = CUDA_ERROR_NOT_PERMITTED
        if not driver_usable() or self.stream.is_gone():
            return
        if not in_host_function():
            status = _end_capture(self.stream.pointer, &graph)
        if status == CUDA_ERROR_NOT_PERMITTED:
            remains = Abandoned.__new__(Abandoned)
            remains.stream, remains.owned = self.stream, self.owned
            let_go_later(remains)
        elif status == CUDA_SUCCESS and graph != NULL and self.owned:
            cu.cuGraphDestroy(graph)


cdef class GraphBuilder:
    """Records work into a graph instead of running it.

    Made by :meth:`.Stream.create_graph_builder` or :meth:`.Device.create_graph_builder`. Between :meth:`begin_building`
    and :meth:`end_building` it takes the place of a stream in launches, copies and fills. Work in one builder runs in
    order; :meth:`split` and :meth:`join` make branches that may run at the same time.

    The graph keeps the kernels, the memory of the Buffers (closed or not) and the host callbacks that are recorded
    through the builder. Memory that is passed as an address, and events, must be kept by the program until the last
    launch of the graph is over.

    Notes
    -----
    Threads take turns: a call waits until that of another thread on a builder of the same graph has ended.

    Examples
    --------
    >>> builder = stream.create_graph_builder().begin_building()
    >>> launch(builder, config, kernel, buffer)
    >>> graph = builder.end_building().complete()
    >>> graph.launch(stream)
    """

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "GraphBuilder objects cannot be instantiated directly; "
            "use Device.create_graph_builder() or Stream.create_graph_builder()"
        )

    def __dealloc__(self):
        cdef Abandoned capture
        if self.state == CAPTURING and self.kind != FORKED and driver_usable() and self.has_stream():
            if self.kind == PRIMARY and self.hierarchy is not None:
                self.hierarchy.gone = True
            capture = Abandoned.__new__(Abandoned)
            capture.stream, capture.owned = self.queue.native, self.kind == PRIMARY

    @staticmethod
    def _from_stream(Stream stream not None):
        """A primary builder that captures `stream`."""
        cdef GraphBuilder builder = _new_builder(new_stream(stream.open_handle()), PRIMARY, NOT_STARTED, RLock())
        builder.shown = stream
        return builder

    # --- building -------------------------------------------------------------------------------------

    def begin_building(self, mode="relaxed"):
        """Start recording (``cuStreamBeginCapture``).

        Parameters
        ----------
        mode : str
            Which threads may not make calls that could harm the capture: ``"global"``, all threads;
            ``"thread_local"``, this thread; ``"relaxed"``, none.

        Returns
        -------
        GraphBuilder
            This builder.

        Raises
        ------
        RuntimeError
            When it is building already, or has ended: a builder records once.
        """
        cdef CUresult status
        cdef CUstream native
        cdef CUstreamCaptureMode number
        cdef CUgraph graph
        self.turn.acquire()
        try:
            self.require_open()
            if self.state == CAPTURING:
                raise RuntimeError("the builder is already building")
            if self.state == ENDED:
                raise RuntimeError("the builder has ended building and cannot resume; make another one")
            if mode is not None and not isinstance(mode, str):
                raise TypeError(f"mode must be a str, got {type(mode).__name__}")
            found = _MODES.get(mode)
            if found is None:
                raise ValueError(f"Unsupported build mode {mode!r}; use one of {', '.join(_MODES)}")
            number, native = <CUstreamCaptureMode><int>found, self.queue.pointer
            if self.kind == BODY:
                graph = self.graph.pointer
                with nogil:
                    status = cu.cuStreamBeginCaptureToGraph(native, graph, NULL, NULL, 0, number)
                check(status, b"cuStreamBeginCaptureToGraph")
            else:
                with nogil:
                    status = cu.cuStreamBeginCapture(native, number)
                check(status, b"cuStreamBeginCapture")
                self.hierarchy = new_hierarchy(NULL, False)
            self.state = CAPTURING
            return self
        finally:
            self.turn.release()

    @property
    def is_building(self):
        """bool: whether work is being recorded (``cuStreamIsCapturing``).

        Raises
        ------
        RuntimeError
            When an error has invalidated the recording.
        """
        cdef CUstreamCaptureStatus capture
        self.turn.acquire()
        try:
            self.require_open()
            if self.state != CAPTURING:
                return False
            check(cu.cuStreamIsCapturing(self.queue.pointer, &capture), b"cuStreamIsCapturing")
            if capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED:
                raise RuntimeError("an error has invalidated the recording; end it with end_building() or close()")
            return capture == CU_STREAM_CAPTURE_STATUS_ACTIVE
        finally:
            self.turn.release()

    def end_building(self):
        """Stop recording (``cuStreamEndCapture``). Branches made by :meth:`split` must have been joined.

        Returns
        -------
        GraphBuilder
            This builder.

        Raises
        ------
        RuntimeError
            When it is not building.
        CUDAError
            When branches are unjoined, or an error has invalidated the recording.
        """
        cdef CUgraph graph = NULL
        cdef CUresult status
        cdef CUstream native
        cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_ACTIVE
        self.turn.acquire()
        try:
            self.require_open()
            if self.state != CAPTURING:
                raise RuntimeError("the builder is not building; call begin_building() first")
            if self.kind == FORKED:
                raise RuntimeError("a branch does not end by itself; join it with GraphBuilder.join()")
            native = self.queue.pointer
            with nogil:
                status = cu.cuStreamEndCapture(native, &graph)
            if status != CUDA_SUCCESS:
                # A capture that cannot be ended properly is dropped in most cases: then there is nothing left to end.
                if cu.cuStreamIsCapturing(native, &capture) == CUDA_SUCCESS and capture == CU_STREAM_CAPTURE_STATUS_NONE:
                    self.state = NOT_STARTED if self.kind == PRIMARY else ENDED
                    if self.kind == PRIMARY:
                        self.hierarchy.gone = True
                fail(status, b"cuStreamEndCapture")
            if self.kind == PRIMARY:
                self.hierarchy.root, self.hierarchy.owned = graph, True
                self.graph = graph_handle(self.hierarchy, graph, None, NULL)
            self.state = ENDED
            return self
        finally:
            self.turn.release()

    def complete(self, options=None):
        """Make the graph executable (``cuGraphInstantiateWithParams``). Each call makes another, independent one.

        Parameters
        ----------
        options : GraphCompleteOptions, optional
            How.

        Returns
        -------
        Graph

        Raises
        ------
        RuntimeError
            When building has not ended, or the graph cannot be made executable.
        """
        self.turn.acquire()
        try:
            self.require_open()
            if self.kind != PRIMARY or self.state != ENDED:
                raise RuntimeError(
                    "the builder has not finished building" if self.kind == PRIMARY
                    else "only the builder of the whole graph can be completed, not that of a branch or body"
                )
            if self.has_unfinished_bodies():
                raise RuntimeError(
                    "the builder of a conditional body has not finished building; call its end_building()"
                )
            drop_released()
            return instantiate(self.graph, self.queue.find_context(), options)
        finally:
            self.turn.release()

    def debug_dot_print(self, path, options=None):
        """Write a picture of the graph as a DOT file (``cuGraphDebugDotPrint``).

        Parameters
        ----------
        path : str
            The file.
        options : GraphDebugPrintOptions, optional
            What it shows.
        """
        self.turn.acquire()
        try:
            self.require_open()
            if self.state != ENDED:
                raise RuntimeError("the builder has not finished building")
            print_dot(self.graph.open_pointer(), path, options)
        finally:
            self.turn.release()

    @property
    def graph_definition(self):
        """GraphDefinition: the recorded graph, to look at and to change; a view that outlives the builder.

        Raises
        ------
        RuntimeError
            While the graph is recorded; for a branch, which has no graph of its own; for a body while it is recorded.
        """
        from cupola.graph import _definition  # noqa: F401  announces the class

        self.turn.acquire()
        try:
            self.require_open()
            if self.kind == FORKED:
                raise RuntimeError("a branch has no graph of its own; ask the builder that it was split from")
            if self.state == CAPTURING:
                raise RuntimeError("the builder has not finished building: the graph is still being recorded")
            if self.graph is None:
                raise RuntimeError("the builder has no graph before building; call begin_building() and end_building()")
            self.graph.open_pointer()
            return wrap_definition(self.graph)
        finally:
            self.turn.release()

    def _finished(self):
        """The handle of the finished graph; ValueError when there is none yet, RuntimeError when it is closed."""
        self.turn.acquire()
        try:
            self.require_open()
            if self.state != ENDED:
                raise ValueError("the builder has not finished building")
            return self.graph
        finally:
            self.turn.release()

    # --- branches -------------------------------------------------------------------------------------

    def split(self, count):
        """Branch the recording: the work of the builders from here on may run at the same time.

        Parameters
        ----------
        count : int
            Number of branches, this builder included.

        Returns
        -------
        tuple of GraphBuilder
            The first is this builder. The others must be joined before building ends.
        """
        self.turn.acquire()
        try:
            if count < 2:
                raise ValueError(f"count must be at least 2, got {count}")
            self.require_capturing("split")
            return (self, *[self.fork() for _ in range(count - 1)])
        finally:
            self.turn.release()

    @staticmethod
    @cython.binding(True)
    def join(*builders):
        """Merge branches: what is recorded afterwards runs behind all of them.

        Parameters
        ----------
        *builders : GraphBuilder
            Two or more. The one that is not a branch continues, or else the first; the others are closed.

        Returns
        -------
        GraphBuilder
            The one that continues.
        """
        cdef GraphBuilder root, branch
        for builder in builders:
            if not isinstance(builder, GraphBuilder):
                raise TypeError(f"builders must be GraphBuilder objects, got {type(builder).__name__}")
        if len(builders) < 2:
            raise ValueError(f"join needs at least two builders, got {len(builders)}")
        root = next((builder for builder in builders if not builder.is_join_required), builders[0])
        root.turn.acquire()
        try:
            for branch in builders:
                branch.require_capturing("join")
            for branch in builders:
                if branch is not root:
                    wait_for(branch.queue.pointer, root.queue.pointer)
                    _hand_over_bodies(branch, root)
                    branch.close()
        finally:
            root.turn.release()
        return root

    @property
    def is_join_required(self):
        """bool: whether this is a branch, which must be joined."""
        return self.kind == FORKED

    cdef GraphBuilder fork(self):
        cdef Stream stream = create_stream(self.queue.find_context(), None, True, None)
        cdef GraphBuilder branch
        wait_for(self.queue.pointer, stream.pointer)
        branch = _new_builder(stream, FORKED, CAPTURING, self.turn)
        branch.hierarchy = self.hierarchy
        return branch

    # --- nodes that are no work of a stream -----------------------------------------------------------

    def embed(self, child):
        """Record a copy of another builder's graph as one node (``cuGraphAddChildGraphNode``).

        Parameters
        ----------
        child : GraphBuilder
            Has ended building. It stays usable.
        """
        cdef GraphHandle graph
        cdef Parameters parameters
        cdef CUgraph around
        cdef CUgraphNode node
        self.require_open()
        if not isinstance(child, GraphBuilder):
            raise TypeError(f"child must be a GraphBuilder, got {type(child).__name__}")
        graph = child._finished()
        self.turn.acquire()
        try:
            self.require_open()
            if self.state != CAPTURING:
                raise ValueError("the builder is not building; call begin_building() first")
            around = self.captured_graph()
            self.root_graph()
            parameters = child_parameters(graph)
            stripped = parameters.strip_child()
            try:
                node = self.append(&parameters.native)
            finally:
                parameters.restore_child(stripped)
            self.hierarchy.note(around, node, parameters.record)
            self.hierarchy.keep_copied(around, node, parameters.record)
        finally:
            self.turn.release()

    def callback(self, fn, *, user_data=None):
        """Record a call of a function on the host (``cuLaunchHostFunc``). It must not call CUDA.

        Parameters
        ----------
        fn : callable or ctypes function pointer
            A callable without parameters: its result is ignored, and its exceptions go to ``sys.unraisablehook``. Or a
            pointer of type ``CFUNCTYPE(None, c_void_p)``. The graph keeps it alive.
        user_data : int or bytes-like, optional
            For a function pointer: an address to pass, or bytes, of which the graph keeps a copy.
        """
        cdef HostCall call
        cdef CUresult status
        cdef CUstream native
        self.turn.acquire()
        try:
            self.require_capturing("callback")
            drop_released()
            keep = prepare_callback(fn, user_data, &call)
            self.require_capturing("callback")      # still, behind all code written in Python
            self.captured_graph()
            # First the reference, then the node: the graph may hold too much, but never too little.
            self.hierarchy.keep_beside(self.root_graph(), keep)
            native = self.queue.pointer
            with nogil:
                status = cu.cuLaunchHostFunc(native, call.function, call.data)
            check(status, b"cuLaunchHostFunc")
        finally:
            self.turn.release()

    cdef int keep_operands(self, object operands) except -1:
        """Have the graph keep alive the objects that the next recorded work needs; for launches, copies and fills."""
        cdef CUstreamCaptureStatus capture
        self.turn.acquire()
        try:
            self.require_open()     # still, behind the code of the operands
            if self.state != CAPTURING or not operands:
                return 0
            check(cu.cuStreamIsCapturing(self.queue.pointer, &capture), b"cuStreamIsCapturing")
            if capture == CU_STREAM_CAPTURE_STATUS_ACTIVE:  # else the work is refused
                self.hierarchy.keep_beside(self.root_graph(), operands)
            return 0
        finally:
            self.turn.release()

    def create_condition(self, default_value=None):
        """Make a condition for a conditional node of this graph (``cuGraphConditionalHandleCreate``).

        Parameters
        ----------
        default_value : int, optional
            Its value at the start of every launch. Without it the value is undefined until a kernel sets it.

        Returns
        -------
        GraphCondition
        """
        self.turn.acquire()
        try:
            self.require_capturing("create_condition")
            _require_driver(12030, "conditions")
            return create_condition(self.captured_graph(), self.queue.find_context(), default_value)
        finally:
            self.turn.release()

    def if_then(self, condition):
        """Record a body that runs when the condition is not zero.

        Parameters
        ----------
        condition : GraphCondition
            Of this graph.

        Returns
        -------
        GraphBuilder
            Records the body: begin and end its building before this builder's ends.
        """
        return self.conditional(condition, CU_GRAPH_COND_TYPE_IF, 1, 12030)[0]

    def if_else(self, condition):
        """Record two bodies: the first runs when the condition is not zero, else the second.

        Parameters
        ----------
        condition : GraphCondition
            Of this graph.

        Returns
        -------
        tuple of (GraphBuilder, GraphBuilder)
        """
        return self.conditional(condition, CU_GRAPH_COND_TYPE_IF, 2, 12080)

    def switch(self, condition, unsigned int count):
        """Record `count` bodies, of which the condition selects one; none when it is `count` or more.

        Parameters
        ----------
        condition : GraphCondition
            Of this graph.
        count : int
            Number of bodies.

        Returns
        -------
        tuple of GraphBuilder
        """
        return self.conditional(condition, CU_GRAPH_COND_TYPE_SWITCH, count, 12080)

    def while_loop(self, condition):
        """Record a body that runs again and again, as long as the condition is not zero before it.

        Parameters
        ----------
        condition : GraphCondition
            Of this graph; a kernel in the body sets it.

        Returns
        -------
        GraphBuilder
            Records the body.
        """
        return self.conditional(condition, CU_GRAPH_COND_TYPE_WHILE, 1, 12030)[0]

    cdef tuple conditional(self, object condition, int form, unsigned int count, int since):
        cdef Parameters parameters
        cdef GraphHandle around
        cdef GraphBuilder builder
        cdef CUgraph graph
        cdef CUgraphNode node
        cdef list builders = []
        cdef unsigned int i
        self.turn.acquire()
        try:
            self.require_open()
            _require_driver(since, "these conditional nodes")
            if not isinstance(condition, GraphCondition):
                raise TypeError(f"condition must be a GraphCondition, got {type(condition).__name__}")
            self.require_capturing("a conditional node")
            parameters = conditional_parameters(condition, form, count, self.queue.find_context())
            graph = self.captured_graph()
            self.root_graph()
            node = self.append(&parameters.native)
            parameters.record.bodies = tuple([
                <uintptr_t>parameters.native.conditional.phGraph_out[i] for i in range(count)
            ])
            self.hierarchy.note(graph, node, parameters.record)
            around = self.graph if self.kind == BODY else graph_handle(self.hierarchy, graph, None, NULL)
            for address in parameters.record.bodies:
                stream = create_stream(self.queue.find_context(), None, True, None)
                builder = _new_builder(stream, BODY, NOT_STARTED, self.turn)
                builder.hierarchy, builder.parent = self.hierarchy, self
                builder.graph = graph_handle(self.hierarchy, <CUgraph><uintptr_t>address, around, node)
                builders.append(builder)
            self.bodies = (self.bodies or []) + [weakref.ref(builder) for builder in builders]
            return tuple(builders)
        finally:
            self.turn.release()

    # --- the rest -------------------------------------------------------------------------------------

    @property
    def stream(self):
        """Stream: the stream whose work is recorded."""
        return self.recorded_stream()

    cdef Stream recorded_stream(self):
        self.turn.acquire()
        try:
            self.require_open()
            if self.shown is None or self.shown.is_closed:
                self.shown = new_stream(self.queue.open_handle())
            return self.shown
        finally:
            self.turn.release()

    def __cuda_stream__(self):
        """tuple of (int, int): 0 and the address of the stream, so that other libraries accept the builder."""
        self.turn.acquire()
        try:
            self.require_open()
            return 0, <uintptr_t>self.queue.pointer
        finally:
            self.turn.release()

    @property
    def is_closed(self):
        """bool: whether the builder was closed."""
        return self.state == CLOSED

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Close the builder; a recording in progress is dropped. Closing twice is fine.

        Executable graphs made by :meth:`complete` stay.
        """
        cdef CUgraph graph = NULL
        cdef CUresult status = <CUresult>0
        self.turn.acquire()
        try:
            if self.state == CLOSED:
                return
            status = self.end_bodies()
            if self.state == CAPTURING and self.kind != FORKED and self.has_stream():
                status = _end_capture(self.queue.pointer, &graph) or status
                if graph != NULL and self.kind == PRIMARY:
                    cu.cuGraphDestroy(graph)
                if self.kind == PRIMARY:
                    self.hierarchy.gone = True
            self.state = CLOSED
            self.queue = self.shown = None
            self.graph = self.hierarchy = None
            drop_released()
            check(status, b"cuStreamEndCapture")
        finally:
            self.turn.release()

    def __getattr__(self, name):
        from cupola.graph._older import attribute

        return attribute(self, name)

    def __repr__(self):
        cdef str kind = ("primary", "forked", "conditional body")[<int>self.kind]
        cdef str state = ("not started", "building", "ended", "closed")[<int>self.state]
        return f"<GraphBuilder {kind}, {state}>"

    def _repr_html_(self):
        from cupola.graph._drawing import html_of
        return html_of(self.graph_definition if self.state == ENDED else None, repr(self))

    def __reduce__(self):
        raise TypeError("a GraphBuilder cannot be pickled")

    cdef int require_open(self) except -1:
        cdef GraphBuilder root
        if self.state == CLOSED:
            raise closed_error(self)
        self.queue.open_handle()
        root = self
        while root.kind == BODY:        # its graph is a part of that of the builder around it
            root = root.parent
            if root.state == CLOSED:
                raise RuntimeError("the builder of this body's graph has been closed")
        return 0

    cdef CUresult end_bodies(self) except *:
        """End the recordings of bodies while their graphs exist: a GPU's driver crashes on doing it later."""
        cdef GraphBuilder body
        cdef CUgraph graph = NULL
        cdef CUresult status = <CUresult>0
        for reference in self.bodies or ():
            body = reference()
            if body is None:
                continue
            status = body.end_bodies() or status
            if body.state == CAPTURING and body.has_stream():
                body.state = ENDED
                status = _end_capture(body.queue.pointer, &graph) or status
        self.bodies = None
        return status

    cdef bint has_unfinished_bodies(self) except *:
        cdef GraphBuilder body
        for reference in self.bodies or ():
            body = reference()
            if body is not None and (body.state == CAPTURING or body.has_unfinished_bodies()):
                return True
        return False

    cdef bint has_stream(self) noexcept:
        """Whether there is a stream whose context still exists."""
        return self.queue is not None and self.queue.native is not None and not self.queue.native.is_gone()

    cdef int require_capturing(self, str what) except -1:
        self.require_open()
        if self.state != CAPTURING:
            raise RuntimeError(f"{what} needs a builder that is building; call begin_building() first")
        return 0

    cdef CUgraph captured_graph(self) except NULL:
        """The graph that the stream is being captured into (``cuStreamGetCaptureInfo``)."""
        cdef CUstreamCaptureStatus capture
        cdef CUgraph graph = NULL
        check(
            cu.cuStreamGetCaptureInfo(self.queue.pointer, &capture, NULL, &graph, NULL, NULL, NULL),
            b"cuStreamGetCaptureInfo",
        )
        if capture != CU_STREAM_CAPTURE_STATUS_ACTIVE or graph == NULL:
            raise RuntimeError("an error has invalidated the recording; end it with end_building() or close()")
        return graph

    cdef CUgraph root_graph(self) except NULL:
        """The graph that everything recorded is a part of; it holds what must be kept alive."""
        if self.hierarchy.root == NULL:
            self.hierarchy.root = self.captured_graph()     # a body's builder comes after this
        return self.hierarchy.root

    cdef CUgraphNode append(self, CUgraphNodeParams* parameters) except NULL:
        """Add a node behind all work recorded so far."""
        cdef CUstream native = self.queue.pointer
        cdef CUstreamCaptureStatus capture
        cdef CUgraph graph = NULL
        cdef const CUgraphNode* before = NULL
        cdef const CUgraphEdgeData* edges = NULL
        cdef size_t count = 0
        cdef CUgraphNode node = NULL
        cdef CUresult status
        check(
            cu.cuStreamGetCaptureInfo(native, &capture, NULL, &graph, &before, &edges, &count),
            b"cuStreamGetCaptureInfo",
        )
        if capture != CU_STREAM_CAPTURE_STATUS_ACTIVE:
            raise RuntimeError("an error has invalidated the recording; end it with end_building() or close()")
        if parameters.type == CU_GRAPH_NODE_TYPE_GRAPH:     # older drivers know no general cuGraphAddNode
            check(
                cu.cuGraphAddChildGraphNode(&node, graph, before, count, parameters.graph.graph),
                b"cuGraphAddChildGraphNode",
            )
        else:
            check(cu.cuGraphAddNode(&node, graph, before, edges, count, parameters), b"cuGraphAddNode")
        status = cu.cuStreamUpdateCaptureDependencies(native, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        check(status, b"cuStreamUpdateCaptureDependencies")
        return node


cdef CUresult _end_capture(CUstream stream, CUgraph* graph) noexcept:
    with nogil:
        return cu.cuStreamEndCapture(stream, graph)


cdef int _hand_over_bodies(GraphBuilder branch, GraphBuilder root) except -1:
    """The bodies made by a branch are part of the graph still when the branch is joined."""
    cdef GraphBuilder body
    for reference in branch.bodies or ():
        body = reference()
        if body is not None:
            body.parent = root
            root.bodies = (root.bodies or []) + [reference]
    branch.bodies = None
    return 0


cdef GraphBuilder _new_builder(Stream stream, Kind kind, State state, object turn):
    cdef GraphBuilder builder = GraphBuilder.__new__(GraphBuilder)
    builder.queue, builder.kind, builder.state, builder.turn = stream, kind, state, turn
    return builder


cdef int _require_driver(int version, str what) except -1:
    cdef int found = 0
    check(cu.cuDriverGetVersion(&found), b"cuDriverGetVersion")
    if found < version:
        raise RuntimeError(
            f"the driver is for CUDA {found // 1000}.{found % 1000 // 10}, version {version // 1000}."
            f"{version % 1000 // 10} is needed: it does not support {what}"
        )
    return 0
