"""The kinds of nodes. Their properties read the parameters from the driver at each access.

Imported when nodes are first looked at or made; capturing needs none of it.
"""

from libc.stdint cimport uintptr_t
from libc.string cimport memset

from cupola.core.base._cuda cimport (
    CU_GRAPH_COND_TYPE_IF, CU_GRAPH_COND_TYPE_SWITCH, CU_GRAPH_COND_TYPE_WHILE, CU_GRAPH_NODE_TYPE_CONDITIONAL,
    CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_HOST,
    CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    CU_GRAPH_NODE_TYPE_MEM_FREE, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST,
    CU_MEMORYTYPE_UNIFIED, CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_DEVICE, CUDA_HOST_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_SUCCESS,
    CUcontext, CUdeviceptr, CUevent, CUgraph, CUgraphNode, CUgraphNodeParams, CUkernel, CUresult, check, cu,
    forget_missing,
)
from cupola.core.device._event cimport SharedEvent, foreign_event, shared_event
from cupola.core.program._kernel cimport Kernel, new_kernel
from cupola.core.launch._launch_config cimport LaunchConfig, copy_config
from cupola.graph._attributes cimport (
    UPDATABLE, config_attributes, device_node, read_attributes, rehearse, reset_attributes, write_attributes,
)
from cupola.graph._callback cimport callable_of
from cupola.graph._condition cimport wrap_condition
from cupola.graph._hierarchy cimport GraphHandle, Record
from cupola.graph._node cimport GraphNode, definition_handle, node_classes, wrap_definition
from cupola.graph._parameters cimport (
    Parameters, callback_parameters, child_parameters, event_parameters, keep_sides, kernel_parameters,
    memcpy_parameters, memset_parameters, node_context, repeated_parameters,
)

from cupola.core.launch._launch_attributes import recognise


cdef class EmptyNode(GraphNode):
    """A node that does nothing: something to depend on."""


# --- kernels ----------------------------------------------------------------------------------------------


cdef class KernelNode(GraphNode):
    """A node that launches a kernel."""

    cdef int read(self, CUDA_KERNEL_NODE_PARAMS* read) except -1:
        self.home.hierarchy.structure.take()
        try:
            return check(cu.cuGraphKernelNodeGetParams(self.open_pointer(), read), b"cuGraphKernelNodeGetParams")
        finally:
            self.home.hierarchy.structure.give()

    @property
    def grid(self):
        """tuple of 3 int: extents of the grid in blocks."""
        cdef CUDA_KERNEL_NODE_PARAMS read
        self.read(&read)
        return read.gridDimX, read.gridDimY, read.gridDimZ

    @property
    def block(self):
        """tuple of 3 int: extents of a block in threads."""
        cdef CUDA_KERNEL_NODE_PARAMS read
        self.read(&read)
        return read.blockDimX, read.blockDimY, read.blockDimZ

    @property
    def shmem_size(self):
        """int: dynamic shared memory of each block, in bytes."""
        cdef CUDA_KERNEL_NODE_PARAMS read
        self.read(&read)
        return read.sharedMemBytes

    @property
    def config(self):
        """LaunchConfig: grid, block, dynamic shared memory and the attributes of the launch, as a new object."""
        cdef CUDA_KERNEL_NODE_PARAMS read
        cdef Record record = self.record()
        self.read(&read)
        if record.config is not None:
            return copy_config(record.config)
        attributes = {}
        if record.subject is None:      # somebody else made the node
            attributes = recognise(read_attributes(self.pointer))
        x, y, z = attributes.get("cluster") or (1, 1, 1)
        return LaunchConfig(
            grid=(read.gridDimX // x, read.gridDimY // y, read.gridDimZ // z),
            block=(read.blockDimX, read.blockDimY, read.blockDimZ), shmem_size=read.sharedMemBytes, **attributes,
        )

    @property
    def device_node(self):
        """int: the ``CUgraphDeviceNode`` for kernels that change the node, 0 when they cannot.

        They can when the launch had the attribute `device_updatable_kernel_node`.
        """
        return device_node(self.open_pointer())

    @property
    def kernel(self):
        """Kernel: what is launched."""
        cdef CUDA_KERNEL_NODE_PARAMS read
        cdef Kernel kernel
        self.read(&read)
        subject = self.record().subject
        if isinstance(subject, Kernel):
            return subject
        # Captured: the graph keeps the code, and the Kernel keeps the graph.
        kernel = new_kernel(read.kern if read.kern != NULL else <CUkernel>read.func, None, None)
        kernel.owner = self.home
        return kernel

    def update(self, *, config=None, kernel=None, args=None):
        """Change the launch; what is not given stays. Executables that exist already do not change.

        Parameters
        ----------
        config : LaunchConfig, optional
            What kernels can change (`device_updatable_kernel_node`) stays so.
        kernel : Kernel, optional
            Needs `args`.
        args : tuple, optional
            All arguments of the kernel.
        """
        cdef CUDA_KERNEL_NODE_PARAMS read
        cdef Parameters parameters
        cdef Record record = self.record()
        self.open_pointer()
        if kernel is not None and args is None:
            raise ValueError("a new kernel needs args, its arguments; () if it has none")
        if args is not None:
            parameters = kernel_parameters(
                self.config if config is None else config, self.kernel if kernel is None else kernel, tuple(args)
            )
        elif config is not None:
            self.read(&read)
            parameters = repeated_parameters(config, self.kernel, read.kernelParams)
            parameters.record.kept, parameters.record.subject = record.kept, record.subject
        else:
            return
        if record.context != NULL:
            parameters.native.kernel.ctx = parameters.record.context = record.context
        self.change(parameters)

    cdef int change(self, Parameters parameters) except -1:
        cdef CUgraphNode pointer = self.open_pointer()
        cdef dict has = config_attributes(self.config)
        cdef dict wanted = parameters.attributes or {}
        cdef LaunchConfig config
        cdef dict plain
        if UPDATABLE in has and UPDATABLE not in wanted:
            wanted = {**wanted, UPDATABLE: has[UPDATABLE]}
            config = self.config if parameters.record.config is None else parameters.record.config
            config.device_updatable_kernel_node = True
            parameters.record.config = config
        if has == wanted:
            return GraphNode.change(self, parameters)
        plain = rehearse(&parameters.native, wanted, [number for number in has if wanted.get(number) != has[number]])
        reset_attributes(pointer, plain)
        GraphNode.change(self, parameters)
        return write_attributes(pointer, wanted, {number: has[number] for number in has if number not in plain})

    def _details(self):
        return f" kernel={int(self.kernel.handle):#x}"


# --- memory -----------------------------------------------------------------------------------------------


cdef class AllocNode(GraphNode):
    """A node that allocates memory."""

    cdef int read(self, CUDA_MEM_ALLOC_NODE_PARAMS* read) except -1:
        self.home.hierarchy.structure.take()
        try:
            return check(cu.cuGraphMemAllocNodeGetParams(self.open_pointer(), read), b"cuGraphMemAllocNodeGetParams")
        finally:
            self.home.hierarchy.structure.give()

    @property
    def dptr(self):
        """int: the address of the memory."""
        cdef CUDA_MEM_ALLOC_NODE_PARAMS read
        self.read(&read)
        return read.dptr

    @property
    def bytesize(self):
        """int: bytes."""
        cdef CUDA_MEM_ALLOC_NODE_PARAMS read
        self.read(&read)
        return read.bytesize

    @property
    def device_id(self):
        """int: ordinal of the device; of host memory the one that was given."""
        cdef CUDA_MEM_ALLOC_NODE_PARAMS read
        self.read(&read)
        place = self.record().place
        if place is not None:
            return place[0]
        return read.poolProps.location.id if read.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE else 0

    @property
    def memory_type(self):
        """str: ``"device"``, ``"host"`` or ``"managed"``."""
        cdef CUDA_MEM_ALLOC_NODE_PARAMS read
        self.read(&read)
        if read.poolProps.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED:
            return "managed"
        return "device" if read.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE else "host"

    @property
    def peer_access(self):
        """tuple of int: ordinals of the other devices that may read and write, in the order given."""
        cdef CUDA_MEM_ALLOC_NODE_PARAMS read
        cdef size_t i
        self.read(&read)
        place = self.record().place
        if place is not None:
            return place[2]
        return tuple([read.accessDescs[i].location.id for i in range(read.accessDescCount)])

    def _details(self):
        return f" dptr={self.dptr:#x} size={self.bytesize}"


cdef class FreeNode(GraphNode):
    """A node that frees memory which an allocation node allocated."""

    @property
    def dptr(self):
        """int: the address of the memory."""
        cdef CUdeviceptr address = 0
        self.home.hierarchy.structure.take()
        try:
            check(cu.cuGraphMemFreeNodeGetParams(self.open_pointer(), &address), b"cuGraphMemFreeNodeGetParams")
        finally:
            self.home.hierarchy.structure.give()
        return address

    def _details(self):
        return f" dptr={self.dptr:#x}"


cdef class MemsetNode(GraphNode):
    """A node that fills memory."""

    cdef int read(self, CUDA_MEMSET_NODE_PARAMS* read) except -1:
        self.home.hierarchy.structure.take()
        try:
            return check(cu.cuGraphMemsetNodeGetParams(self.open_pointer(), read), b"cuGraphMemsetNodeGetParams")
        finally:
            self.home.hierarchy.structure.give()

    @property
    def dptr(self):
        """int: the address of the memory."""
        cdef CUDA_MEMSET_NODE_PARAMS read
        self.read(&read)
        return read.dst

    @property
    def value(self):
        """int: the pattern, `element_size` bytes of it."""
        cdef CUDA_MEMSET_NODE_PARAMS read
        self.read(&read)
        return read.value

    @property
    def element_size(self):
        """int: bytes of the pattern, 1, 2 or 4."""
        cdef CUDA_MEMSET_NODE_PARAMS read
        self.read(&read)
        return read.elementSize

    @property
    def width(self):
        """int: elements in a row."""
        cdef CUDA_MEMSET_NODE_PARAMS read
        self.read(&read)
        return read.width

    @property
    def height(self):
        """int: rows."""
        cdef CUDA_MEMSET_NODE_PARAMS read
        self.read(&read)
        return read.height

    @property
    def pitch(self):
        """int: bytes from row to row."""
        cdef CUDA_MEMSET_NODE_PARAMS read
        self.read(&read)
        return read.pitch

    def update(self, *, dst=None, value=None, width=None, height=None, pitch=None, dst_owner=None):
        """Change the fill; what is not given stays. Executables that exist already do not change.

        Parameters
        ----------
        dst, value, width, height, pitch, dst_owner : optional
            As for :meth:`.GraphDefinition.memset`.

        Raises
        ------
        ValueError
            For `dst_owner` without `dst`.
        """
        cdef CUDA_MEMSET_NODE_PARAMS read
        cdef Parameters parameters
        cdef Record record = self.record()
        self.read(&read)
        if dst is None and dst_owner is not None:
            raise ValueError("dst_owner needs dst, the address that it owns")
        parameters = memset_parameters(
            <uintptr_t>read.dst if dst is None else dst,
            (<unsigned int>read.value).to_bytes(4, "little")[:read.elementSize] if value is None else value,
            read.width if width is None else width, read.height if height is None else height,
            read.pitch if pitch is None else pitch, dst_owner, node_context(record),
        )
        if dst is None:
            parameters.record.kept = record.kept
        self.change(parameters)

    def _details(self):
        return f" dptr={self.dptr:#x} value={self.value}"


cdef class MemcpyNode(GraphNode):
    """A node that copies memory."""

    cdef int read(self, CUDA_MEMCPY3D* read) except -1:
        self.home.hierarchy.structure.take()
        try:
            return check(cu.cuGraphMemcpyNodeGetParams(self.open_pointer(), read), b"cuGraphMemcpyNodeGetParams")
        finally:
            self.home.hierarchy.structure.give()

    @property
    def dst(self):
        """int: the address that is copied to; 0 for an array."""
        cdef CUDA_MEMCPY3D read
        self.read(&read)
        return _address(read.dstMemoryType, read.dstHost, read.dstDevice)

    @property
    def src(self):
        """int: the address that is copied from; 0 for an array."""
        cdef CUDA_MEMCPY3D read
        self.read(&read)
        return _address(read.srcMemoryType, read.srcHost, read.srcDevice)

    @property
    def size(self):
        """int: bytes, of all rows and layers."""
        cdef CUDA_MEMCPY3D read
        self.read(&read)
        return read.WidthInBytes * (read.Height or 1) * (read.Depth or 1)

    def update(self, *, dst=None, src=None, size=None, dst_owner=None, src_owner=None):
        """Change the copy; what is not given stays. Executables that exist already do not change.

        Parameters
        ----------
        dst, src, size, dst_owner, src_owner : optional
            As for :meth:`.GraphDefinition.memcpy`.

        Raises
        ------
        ValueError
            For an owner without its address.
        NotImplementedError
            When the node copies rows, layers or arrays.
        """
        cdef CUDA_MEMCPY3D read
        cdef Parameters parameters
        cdef Record record = self.record()
        self.read(&read)
        for name, value, owner in (("dst", dst, dst_owner), ("src", src, src_owner)):
            if value is None and owner is not None:
                raise ValueError(f"{name}_owner needs {name}, the address that it owns")
        if not _is_plain(&read):
            raise NotImplementedError("only copies of one row between addresses can be changed")
        parameters = memcpy_parameters(
            self.dst if dst is None else dst, self.src if src is None else src,
            read.WidthInBytes if size is None else size, dst_owner, src_owner, node_context(record),
        )
        keep_sides(
            parameters.record, record if dst is None else parameters.record, record if src is None else parameters.record
        )
        self.change(parameters)

    def _details(self):
        cdef CUDA_MEMCPY3D read
        self.read(&read)
        to = "H" if read.dstMemoryType == CU_MEMORYTYPE_HOST else "D"
        source = "H" if read.srcMemoryType == CU_MEMORYTYPE_HOST else "D"
        return f" dst={self.dst:#x}({to}) src={self.src:#x}({source}) size={self.size}"


cdef uintptr_t _address(int kind, const void* host, CUdeviceptr device) noexcept:
    if kind == CU_MEMORYTYPE_HOST:
        return <uintptr_t>host
    return <uintptr_t>device if kind == CU_MEMORYTYPE_DEVICE or kind == CU_MEMORYTYPE_UNIFIED else 0


cdef bint _is_linear(int kind) noexcept:
    return kind == CU_MEMORYTYPE_HOST or kind == CU_MEMORYTYPE_DEVICE or kind == CU_MEMORYTYPE_UNIFIED


cdef bint _is_plain(const CUDA_MEMCPY3D* read) noexcept:
    return (
        _is_linear(read.dstMemoryType) and _is_linear(read.srcMemoryType) and read.Height <= 1 and read.Depth <= 1
        and read.dstXInBytes == 0 and read.dstY == 0 and read.dstZ == 0
        and read.srcXInBytes == 0 and read.srcY == 0 and read.srcZ == 0
    )


# --- events, callbacks, child graphs ----------------------------------------------------------------------


cdef class EventRecordNode(GraphNode):
    """A node that records an event."""

    @property
    def event(self):
        """Event: the event, as a separate object; closing it does not affect the graph's event."""
        cdef CUevent pointer = NULL
        self.home.hierarchy.structure.take()
        try:
            check(cu.cuGraphEventRecordNodeGetEvent(self.open_pointer(), &pointer), b"cuGraphEventRecordNodeGetEvent")
        finally:
            self.home.hierarchy.structure.give()
        return _event_object(self, pointer)

    def update(self, event):
        """Record another event. Executables that exist already do not change.

        Parameters
        ----------
        event : Event
            Kept by the graph, closed or not.
        """
        self.open_pointer()
        self.change(event_parameters(event, True))

    def _details(self):
        return f" event={int(self.event.handle):#x}"


cdef class EventWaitNode(GraphNode):
    """A node that waits for an event."""

    @property
    def event(self):
        """Event: the event, as a separate object; closing it does not affect the graph's event."""
        cdef CUevent pointer = NULL
        self.home.hierarchy.structure.take()
        try:
            check(cu.cuGraphEventWaitNodeGetEvent(self.open_pointer(), &pointer), b"cuGraphEventWaitNodeGetEvent")
        finally:
            self.home.hierarchy.structure.give()
        return _event_object(self, pointer)

    def update(self, event):
        """Wait for another event. Executables that exist already do not change.

        Parameters
        ----------
        event : Event
            Kept by the graph, closed or not.
        """
        self.open_pointer()
        self.change(event_parameters(event, False))

    def _details(self):
        return f" event={int(self.event.handle):#x}"


cdef object _event_object(GraphNode node, CUevent pointer):
    subject = node.record().subject
    if isinstance(subject, SharedEvent) and (<SharedEvent>subject).pointer == pointer:
        return shared_event(<SharedEvent>subject)
    return foreign_event(pointer, node.home)


cdef class HostCallbackNode(GraphNode):
    """A node that calls a function on the host.

    Its property :attr:`callback` hides the method of that name: to add a callback behind this one, go on from an empty
    node, ``node.join().callback(fn)``.
    """

    cdef int read(self, CUDA_HOST_NODE_PARAMS* read) except -1:
        self.home.hierarchy.structure.take()
        try:
            return check(cu.cuGraphHostNodeGetParams(self.open_pointer(), read), b"cuGraphHostNodeGetParams")
        finally:
            self.home.hierarchy.structure.give()

    @property
    def callback(self):
        """callable or None: what is called; None for a function pointer."""
        cdef CUDA_HOST_NODE_PARAMS read
        self.read(&read)
        return callable_of(read.fn, read.userData)

    def update(self, fn, *, user_data=None):
        """Call something else. Executables that exist already do not change.

        Parameters
        ----------
        fn, user_data
            As for :meth:`.GraphDefinition.callback`.
        """
        self.open_pointer()
        self.change(callback_parameters(fn, user_data))

    def _details(self):
        cdef CUDA_HOST_NODE_PARAMS read
        self.read(&read)
        callback = callable_of(read.fn, read.userData)
        if callback is None:
            return f" cfunc={<uintptr_t>read.fn:#x}"
        return f" callback={getattr(callback, '__name__', '?')}"


cdef class ChildGraphNode(GraphNode):
    """A node that runs another graph, of which it has a copy."""

    cdef GraphHandle child(self):
        cdef CUgraph graph = NULL
        self.home.hierarchy.structure.take()
        try:
            check(cu.cuGraphChildGraphNodeGetGraph(self.open_pointer(), &graph), b"cuGraphChildGraphNodeGetGraph")
        finally:
            self.home.hierarchy.structure.give()
        return self.inner(<uintptr_t>graph)

    @property
    def child_graph(self):
        """GraphDefinition: the copy."""
        return wrap_definition(self.child())

    def update(self, child):
        """Replace the copy by one of another graph. Executables that exist already do not change.

        Parameters
        ----------
        child : GraphDefinition
            It must not be part of this graph. The definition that :attr:`child_graph` returned before is no longer
            valid.
        """
        cdef GraphHandle other
        cdef Parameters parameters
        self.open_pointer()
        other = definition_handle(child)
        if other.hierarchy is self.home.hierarchy:
            raise ValueError("child is a part of the same graph: give an independent definition")
        parameters = child_parameters(other)
        self.child()        # so that it is known, and what was below the node can be told to be gone
        self.change(parameters)

    def _details(self):
        return f" child={<uintptr_t>self.child().pointer:#x}"


# --- conditions -------------------------------------------------------------------------------------------


cdef class ConditionalNode(GraphNode):
    """A node with bodies; a condition decides whether, how often or which of them runs."""

    @property
    def condition(self):
        """GraphCondition or None: the condition; None if it is unknown."""
        self.open_pointer()
        return self.record().subject

    @property
    def cond_type(self):
        """GraphConditionalType or None: the kind of decision."""
        cdef Record record = self.record()
        self.open_pointer()
        if record.subject is None:
            return None
        from cupola.typing import GraphConditionalType

        return GraphConditionalType(_FORMS[record.form])

    @property
    def branches(self):
        """tuple of GraphDefinition: the bodies."""
        self.open_pointer()
        self.home.hierarchy.structure.take()
        try:
            return tuple([wrap_definition(self.inner(body)) for body in self.record().bodies])
        finally:
            self.home.hierarchy.structure.give()

    def _details(self):
        condition = self.condition
        return "" if condition is None else f" condition={condition.handle:#x}"


cdef class IfNode(ConditionalNode):
    """A body that runs when the condition is not zero."""

    @property
    def then(self):
        """GraphDefinition: the body."""
        return self.branches[0]


cdef class IfElseNode(ConditionalNode):
    """Two bodies: the first runs when the condition is not zero, else the second."""

    @property
    def then(self):
        """GraphDefinition: the body for a condition that is not zero."""
        return self.branches[0]

    @property
    def else_(self):
        """GraphDefinition: the body for a condition that is zero."""
        return self.branches[1]


cdef class WhileNode(ConditionalNode):
    """A body that runs again and again, as long as the condition is not zero before it."""

    @property
    def body(self):
        """GraphDefinition: the body."""
        return self.branches[0]


cdef class SwitchNode(ConditionalNode):
    """Bodies, of which the condition selects one."""


cdef dict _FORMS = {
    <int>CU_GRAPH_COND_TYPE_IF: "if", <int>CU_GRAPH_COND_TYPE_WHILE: "while", <int>CU_GRAPH_COND_TYPE_SWITCH: "switch",
}


def _conditional_class(GraphHandle graph not None, uintptr_t node):
    """The class for a conditional node. One that Python did not make is asked for, with drivers from 13.2 on."""
    cdef CUgraphNodeParams read
    cdef Record record = graph.hierarchy.find(graph.pointer, <CUgraphNode>node)
    cdef CUresult status
    cdef unsigned int i
    if record is None or record.subject is None:
        memset(&read, 0, sizeof(read))
        status = cu.cuGraphNodeGetParams(<CUgraphNode>node, &read)
        if status != CUDA_SUCCESS:
            forget_missing()
            return ConditionalNode
        record = Record.__new__(Record)
        record.subject = wrap_condition(read.conditional.handle)
        record.form, record.context = read.conditional.type, read.conditional.ctx
        record.bodies = tuple([<uintptr_t>read.conditional.phGraph_out[i] for i in range(read.conditional.size)])
        graph.hierarchy.note(graph.pointer, <CUgraphNode>node, record)
    if record.form == CU_GRAPH_COND_TYPE_IF:
        return IfNode if len(record.bodies) == 1 else IfElseNode
    return WhileNode if record.form == CU_GRAPH_COND_TYPE_WHILE else SwitchNode


node_classes.update({
    <int>CU_GRAPH_NODE_TYPE_EMPTY: EmptyNode,
    <int>CU_GRAPH_NODE_TYPE_KERNEL: KernelNode,
    <int>CU_GRAPH_NODE_TYPE_MEM_ALLOC: AllocNode,
    <int>CU_GRAPH_NODE_TYPE_MEM_FREE: FreeNode,
    <int>CU_GRAPH_NODE_TYPE_MEMSET: MemsetNode,
    <int>CU_GRAPH_NODE_TYPE_MEMCPY: MemcpyNode,
    <int>CU_GRAPH_NODE_TYPE_GRAPH: ChildGraphNode,
    <int>CU_GRAPH_NODE_TYPE_EVENT_RECORD: EventRecordNode,
    <int>CU_GRAPH_NODE_TYPE_WAIT_EVENT: EventWaitNode,
    <int>CU_GRAPH_NODE_TYPE_HOST: HostCallbackNode,
    <int>CU_GRAPH_NODE_TYPE_CONDITIONAL: _conditional_class,
})
