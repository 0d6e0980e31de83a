"""Attributes of kernel nodes (CUDA Driver API, ``cuGraphKernelNodeSetAttribute``).

The parameters of a kernel node are its grid, block, shared memory and arguments. Everything else that a launch can ask
for is set on the node afterwards, one attribute at a time, and stays when its parameters are replaced. To change all
of it or nothing, the change is first tried on a node in a separate graph.
"""

from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memset

from cupola.core.base._cuda cimport (
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CUDA_SUCCESS, CUgraph, CUlaunchAttribute,
    CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig, CUresult, check, cu,
)
from cupola.core.launch._launch_config cimport MOST_ATTRIBUTES, LaunchConfig, snapshot

# Bytes of the values of the attributes that nodes have, in the order in which they are set: whether a cluster may be
# large comes before the cluster. No attribute of a device-updatable node can be reset, so that attribute comes last.
cdef dict _SIZES = {
    <int>CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE: 4, <int>CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: 12,
    <int>CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: 12, 1: 32, 2: 4, 5: 4, 8: 4, 9: 2, 10: 4, 14: 4, 16: 4, 18: 4,
    <int>CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: 4,
}

cdef int UPDATABLE = <int>CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE

cdef bytes _ONE_BLOCK = b"\1\0\0\0\1\0\0\0\1\0\0\0"


cdef str _no_event(int number):
    """Kernel nodes have no events of their own: an H200's driver refuses both attributes, whatever the event and flags.

    In a capture, such an event becomes an edge that leaves the kernel by one of its ports.
    """
    cdef str name, port
    if number == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        name, port = "programmatic_event", "PROGRAMMATIC"
    else:
        name, port = "launch_completion_event", "LAUNCH_ORDER"
    return (
        f"{name}: the driver gives kernel nodes no events (cuGraphKernelNodeSetAttribute refuses attribute {number} with "
        "CUDA_ERROR_INVALID_VALUE). For an event at the end of the kernel, let a node record it: node.record(event). For "
        "another kernel that begins earlier, add an edge with driver.cuGraphAddDependencies, whose CUgraphEdgeData has "
        f"from_port CU_GRAPH_KERNEL_NODE_PORT_{port}"
    )


cdef dict config_attributes(LaunchConfig config):
    cdef dict made = {}
    cdef CUlaunchConfig native
    cdef CUlaunchAttribute[MOST_ATTRIBUTES] attributes
    cdef unsigned int i
    cdef int number
    snapshot(config, &native, attributes)
    for i in range(native.numAttrs):
        number = <int>attributes[i].id
        if number == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            continue        # that a kernel may begin early has no meaning here: edges say what it waits for
        if number == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT or number == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
            raise ValueError(_no_event(number))
        made[number] = (<char*>&attributes[i].value)[:<Py_ssize_t>_SIZES[number]]
    if not any(made.get(UPDATABLE, b"")):
        made.pop(UPDATABLE, None)
    return made


cdef dict read_attributes(CUgraphNode node):
    cdef dict found = {}
    for number in _SIZES:
        value = _read(node, number)
        if value is not None and any(value):
            found[number] = value
    return found


# Both wait for a thread that is in a launch and waits there (tools/blocking_calls.c).
cdef CUresult _get(CUgraphNode node, int number, CUlaunchAttributeValue* value) noexcept:
    memset(value, 0, sizeof(CUlaunchAttributeValue))
    with nogil:
        return cu.cuGraphKernelNodeGetAttribute(node, <CUlaunchAttributeID>number, value)


cdef bytes _read(CUgraphNode node, int number):
    """None when the driver does not know the attribute."""
    cdef CUlaunchAttributeValue value
    if _get(node, number, &value) != CUDA_SUCCESS:
        return None
    return (<char*>&value)[:<Py_ssize_t>_SIZES[number]]


cdef CUresult _set(CUgraphNode node, int number, bytes data) noexcept:
    cdef CUlaunchAttributeValue value
    memset(&value, 0, sizeof(value))
    memcpy(&value, <const char*>data, len(data))
    with nogil:
        return cu.cuGraphKernelNodeSetAttribute(node, <CUlaunchAttributeID>number, &value)


cdef int write_attributes(CUgraphNode node, dict wanted, dict has) except -1:
    for number in _SIZES:
        if number in wanted and has.get(number) != wanted[number]:
            check(_set(node, number, wanted[number]), b"cuGraphKernelNodeSetAttribute")
    return 0


cdef int reset_attributes(CUgraphNode node, dict plain) except -1:
    cdef bytes neutral = _read(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    for number in reversed(_SIZES):
        if number in plain and _set(node, number, plain[number]) != CUDA_SUCCESS:
            # A driver that takes no clusters of nothing: one of one block, and none that is preferred to it, is the same.
            if number == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                neutral = _ONE_BLOCK
            check(_set(node, number, neutral), b"cuGraphKernelNodeSetAttribute")
    return 0


cdef dict rehearse(CUgraphNodeParams* parameters, dict attributes, object numbers):
    cdef CUgraph graph = NULL
    cdef CUgraphNode node = NULL
    cdef dict plain = {}
    check(cu.cuGraphCreate(&graph, 0), b"cuGraphCreate")
    try:
        check(cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, parameters), b"cuGraphAddNode")
        for number in numbers:
            plain[number] = _read(node, number) or bytes(_SIZES[number])
        write_attributes(node, {number: attributes[number] for number in attributes if number != UPDATABLE}, {})
    finally:
        cu.cuGraphDestroy(graph)
    return plain


cdef size_t device_node(CUgraphNode node) except? 0:
    cdef CUlaunchAttributeValue value
    # A driver that does not know the attribute has no such nodes.
    _get(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value)
    if not value.deviceUpdatableKernelNode.deviceUpdatable:
        return 0
    return <size_t><uintptr_t>value.deviceUpdatableKernelNode.devNode
