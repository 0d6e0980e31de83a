"""Parameters of graph nodes, from Python values to CUgraphNodeParams.

A node of a definition, a change of it, and a change of its counterpart in an executable take the same parameters
(``cuGraphAddNode``, ``cuGraphNodeSetParams``, ``cuGraphExecNodeSetParams``), so they are made in one place: here, with
the objects that must stay alive for them.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uintptr_t
from libc.string cimport memcpy, memset

from cupola.core.launch._arguments cimport Slot, operands, pack
from cupola.core.memory._buffer cimport Buffer, fill_pattern
from cupola.core.device._context cimport current_context, primary_context, wrap_context
from cupola.core.base._cuda cimport (
    CU_GRAPH_NODE_TYPE_CONDITIONAL,
    CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_HOST,
    CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    CU_GRAPH_NODE_TYPE_MEM_FREE, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_ALLOCATION_TYPE_PINNED,
    CU_MEM_HANDLE_TYPE_NONE, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUdevice, CUdeviceptr, CUevent,
    CUgraphConditionalNodeType,
    CUgraphNodeType, CUmemAccessDesc, CUmemorytype, CUresult, check, cu, fail_because, initialise,
)
from cupola.core.device._device cimport Device
from cupola.core.device._event cimport Event, share_event
from cupola.core.program._kernel cimport Kernel
from cupola.core.launch._launch_config cimport LaunchConfig, copy_config
from cupola.graph._attributes cimport config_attributes
from cupola.graph._callback cimport HostCall, prepare_callback
from cupola.graph._condition cimport GraphCondition
from cupola.graph._structure cimport Structure

from cupola.core.memory._access import devices_of

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object) noexcept

cdef tuple MEMORY_TYPES = ("device", "host", "managed")


cdef class Parameters:
    def __dealloc__(self):
        PyMem_Free(self.memory)

    cdef Structure structure_of_child(self):
        return None if self.child is None else self.child.hierarchy.structure

    cdef list strip_child(self):
        return None if self.child is None else self.child.hierarchy.take_off()

    cdef int restore_child(self, list holds) except -1:
        if holds is not None:
            self.child.hierarchy.put_back(holds)
        return 0


cdef Parameters _parameters(CUgraphNodeType kind):
    cdef Parameters made = Parameters.__new__(Parameters)
    memset(&made.native, 0, sizeof(made.native))
    made.native.type = kind
    made.record = Record.__new__(Record)
    return made


cdef int _obtain(Parameters made, size_t size) except -1:
    made.memory = PyMem_Calloc(1, size)
    if made.memory == NULL:
        raise MemoryError()
    return 0


cdef CUcontext require_context() except NULL:
    cdef CUcontext context
    initialise()
    context = current_context()
    if context == NULL:
        raise RuntimeError("no context is current on this thread: call Device.set_current() first")
    return context


cdef CUcontext node_context(Record record) except NULL:
    return record.context if record.context != NULL else require_context()


cdef Parameters empty_parameters():
    return _parameters(CU_GRAPH_NODE_TYPE_EMPTY)


# --- kernels ----------------------------------------------------------------------------------------------


cdef Parameters kernel_shape(object config, object kernel):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_KERNEL)
    cdef LaunchConfig shape
    if not isinstance(config, LaunchConfig):
        raise TypeError(f"config must be a LaunchConfig, not {type(config).__name__}")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
    shape = <LaunchConfig>config
    if shape.native.numAttrs != 0:
        made.attributes = config_attributes(shape)
        if made.attributes:
            made.record.config = shape = copy_config(shape)
            shape.programmatic_stream_serialization = False
    made.native.kernel.kern = (<Kernel>kernel).pointer
    made.native.kernel.ctx = made.record.context = require_context()
    made.native.kernel.gridDimX = shape.native.gridDimX
    made.native.kernel.gridDimY = shape.native.gridDimY
    made.native.kernel.gridDimZ = shape.native.gridDimZ
    made.native.kernel.blockDimX = shape.native.blockDimX
    made.native.kernel.blockDimY = shape.native.blockDimY
    made.native.kernel.blockDimZ = shape.native.blockDimZ
    made.native.kernel.sharedMemBytes = shape.native.sharedMemBytes
    made.record.subject = kernel
    return made


cdef Parameters kernel_parameters(object config, object kernel, tuple arguments):
    cdef Parameters made = kernel_shape(config, kernel)
    cdef Py_ssize_t count = len(arguments)
    cdef PyObject** items = PySequence_Fast_ITEMS(arguments)
    cdef void** pointers
    _obtain(made, (count + 1) * (sizeof(Slot) + sizeof(void*)))
    pointers = <void**>(<Slot*>made.memory + count + 1)
    if pack(<Kernel>kernel, items, count, pointers, <Slot*>made.memory):
        raise TypeError("a node of a graph takes no arrays of the host: pass an Array or a Buffer")
    made.alive = arguments
    made.native.kernel.kernelParams = pointers
    made.record.kept = operands(<Kernel>kernel, items, count)
    return made


cdef Parameters repeated_parameters(object config, Kernel kernel, void** arguments):
    cdef Parameters made = kernel_shape(config, kernel)
    cdef tuple sizes = tuple([info.size for info in kernel.arguments_info])
    cdef Py_ssize_t count = len(sizes), i
    cdef size_t size
    cdef void** pointers
    cdef char* value
    _obtain(made, (count + 1) * sizeof(void*) + sum(sizes))
    pointers = <void**>made.memory
    value = <char*>(pointers + count + 1)
    for i in range(count):
        size = sizes[i]
        memcpy(value, arguments[i], size)
        pointers[i] = value
        value += size
    made.native.kernel.kernelParams = pointers
    return made


# --- memory -----------------------------------------------------------------------------------------------


cdef uintptr_t _operand(str name, object value, object owner, list kept) except? 0:
    if isinstance(value, Buffer):
        if owner is not None:
            raise ValueError(f"{name}_owner cannot be used when {name} is a Buffer: the Buffer owns its memory")
        kept.append((<Buffer>value).open_allocation())
        return (<Buffer>value).pointer
    if not isinstance(value, int) and not hasattr(type(value), "__int__"):
        raise TypeError(f"{name} must be a Buffer or an address as int, not {type(value).__name__}")
    if isinstance(owner, Buffer):
        kept.append((<Buffer>owner).open_allocation())
    elif owner is not None:
        kept.append(owner)
    return int(value)


cdef Parameters memset_parameters(object dst, object value, object width, object height, object pitch, object owner,
                                  CUcontext context):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_MEMSET)
    cdef uint32_t pattern = 0
    cdef list kept = []
    made.native.memset.dst = _operand("dst", dst, owner, kept)
    made.native.memset.elementSize = fill_pattern(value, &pattern)
    made.native.memset.value = pattern
    made.native.memset.width = width
    made.native.memset.height = height
    made.native.memset.pitch = pitch
    made.native.memset.ctx = made.record.context = context
    made.record.kept = tuple(kept)
    return made


cdef CUmemorytype _memory_type(uintptr_t address) noexcept:
    """Host memory that CUDA knows, or else device memory: what a graph will allocate is not known to it yet."""
    cdef unsigned int found = 0
    if cu.cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, <CUdeviceptr>address) != CUDA_SUCCESS:
        return CU_MEMORYTYPE_DEVICE
    return CU_MEMORYTYPE_HOST if found == CU_MEMORYTYPE_HOST else CU_MEMORYTYPE_DEVICE


cdef Parameters memcpy_parameters(object dst, object src, object size, object dst_owner, object src_owner,
                                  CUcontext context):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_MEMCPY)
    cdef list of_target = [], of_source = []
    cdef uintptr_t target = _operand("dst", dst, dst_owner, of_target)
    cdef uintptr_t source = _operand("src", src, src_owner, of_source)
    made.native.memcpy.copyParams.dstMemoryType = _memory_type(target)
    if made.native.memcpy.copyParams.dstMemoryType == CU_MEMORYTYPE_HOST:
        made.native.memcpy.copyParams.dstHost = <void*>target
    else:
        made.native.memcpy.copyParams.dstDevice = target
    made.native.memcpy.copyParams.srcMemoryType = _memory_type(source)
    if made.native.memcpy.copyParams.srcMemoryType == CU_MEMORYTYPE_HOST:
        made.native.memcpy.copyParams.srcHost = <void*>source
    else:
        made.native.memcpy.copyParams.srcDevice = source
    made.native.memcpy.copyParams.WidthInBytes = size
    made.native.memcpy.copyParams.Height = made.native.memcpy.copyParams.Depth = 1
    made.native.memcpy.copyCtx = made.record.context = context
    made.record.place = (of_target, of_source)
    keep_sides(made.record, made.record, made.record)
    return made


cdef set _devices_of_memory(Parameters made):
    """The devices of the memory that a copy or fill works on."""
    if made.native.type == CU_GRAPH_NODE_TYPE_MEMSET:
        return devices_of(made.native.memset.dst)
    if made.native.type == CU_GRAPH_NODE_TYPE_MEMCPY:
        # What is on the host has 0 for its address on a device.
        return devices_of(made.native.memcpy.copyParams.dstDevice, made.native.memcpy.copyParams.srcDevice)
    return set()


cdef bint move_to_memory(Parameters made) except -1:
    cdef set found = _devices_of_memory(made)
    if len(found) != 1 or wrap_context(made.record.context).device_id in found:
        return False
    made.record.context = primary_context(found.pop())
    if made.native.type == CU_GRAPH_NODE_TYPE_MEMSET:
        made.native.memset.ctx = made.record.context
    else:
        made.native.memcpy.copyCtx = made.record.context
    return True


cdef int refused(CUresult status, const char* call, Parameters made) except -1:
    cdef int device
    cdef set others
    if status == CUDA_ERROR_INVALID_VALUE:
        others = _devices_of_memory(made)
        if others:
            device = wrap_context(made.record.context).device_id
            others.discard(device)
        if others:
            fail_because(
                status, call,
                f"Memory of the node is of device {others.pop()}, and the node is of device {device}, which has no "
                f"access to it: make the node while a device that has access is current, or give device {device} "
                f"access "
                "(peer_accessible_by of the buffer's memory resource, or the peers of a VirtualMemoryResource).",
            )
    return check(status, call)


cdef int keep_sides(Record record, Record dst, Record src) except -1:
    of_target = dst.place[0] if dst.place is not None else []
    of_source = src.place[1] if src.place is not None else []
    record.place, record.kept = (of_target, of_source), (*of_target, *of_source)
    return 0


cdef Parameters allocation_parameters(object size, object device, object memory_type, object peers):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    cdef str kind = "device" if memory_type is None else str(memory_type) if isinstance(memory_type, str) else ""
    cdef list others = [] if peers is None else [Device(peer).device_id for peer in peers]
    cdef CUmemAccessDesc* access
    cdef CUdevice number = 0
    cdef int version = 0
    cdef Py_ssize_t i
    if kind not in MEMORY_TYPES:
        raise ValueError(f"memory_type must be one of {', '.join(MEMORY_TYPES)}, got {memory_type!r}")
    if device is not None:
        number = Device(device).device_id
    else:
        require_context()
        check(cu.cuCtxGetDevice(&number), b"cuCtxGetDevice")
    if kind == "managed":
        initialise()
        check(cu.cuDriverGetVersion(&version), b"cuDriverGetVersion")
        if version < 13000:
            raise ValueError("managed memory in graphs needs a driver for CUDA 13.0 or later")
    made.native.alloc.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_NONE
    made.native.alloc.poolProps.allocType = (
        CU_MEM_ALLOCATION_TYPE_MANAGED if kind == "managed" else CU_MEM_ALLOCATION_TYPE_PINNED
    )
    if kind == "host":
        made.native.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_HOST
    else:
        made.native.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE
        made.native.alloc.poolProps.location.id = number
    if others:
        _obtain(made, len(others) * sizeof(CUmemAccessDesc))
        access = <CUmemAccessDesc*>made.memory
        for i in range(len(others)):
            access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE
            access[i].location.id = others[i]
            access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        made.native.alloc.accessDescs = access
        made.native.alloc.accessDescCount = len(others)
    made.native.alloc.bytesize = size
    made.record.place = (number, kind, tuple(others))
    return made


cdef Parameters free_parameters(object dptr):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_MEM_FREE)
    made.native.free.dptr = dptr
    return made


# --- the rest ---------------------------------------------------------------------------------------------


cdef Parameters event_parameters(object event, bint record):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_EVENT_RECORD if record else CU_GRAPH_NODE_TYPE_WAIT_EVENT)
    cdef CUevent pointer
    if not isinstance(event, Event):
        raise TypeError(f"event must be an Event, not {type(event).__name__}")
    pointer = (<Event>event).begin()    # another thread may close it meanwhile
    try:
        made.record.subject = share_event(<Event>event)
    finally:
        (<Event>event).end(pointer)
    made.record.kept = (made.record.subject,)
    if record:
        made.native.eventRecord.event = pointer
    else:
        made.native.eventWait.event = pointer
    return made


cdef Parameters callback_parameters(object fn, object user_data):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_HOST)
    cdef HostCall call
    made.record.kept = prepare_callback(fn, user_data, &call)
    made.native.host.fn = call.function
    made.native.host.userData = call.data
    return made


cdef Parameters child_parameters(GraphHandle child):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_GRAPH)
    made.native.graph.graph = child.open_pointer()
    made.child = child
    made.record.kept = child.hierarchy.attachments()
    return made


cdef Parameters conditional_parameters(object condition, int form, object count, CUcontext context):
    cdef Parameters made = _parameters(CU_GRAPH_NODE_TYPE_CONDITIONAL)
    if not isinstance(condition, GraphCondition):
        raise TypeError(f"condition must be a GraphCondition, got {type(condition).__name__}")
    made.native.conditional.handle = (<GraphCondition>condition).value
    made.native.conditional.type = <CUgraphConditionalNodeType>form
    made.native.conditional.size = count
    made.native.conditional.ctx = made.record.context = context
    made.record.subject, made.record.form = condition, form
    return made
