/* Attributes of kernel nodes (CUDA Driver API, "Graph Management": cuGraphKernelNode*Attribute*). */
#include "graph.h"

static CUresult check_kernel_node(CUgraphNode node) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(node));
    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "the node has type %d; only kernel nodes have attributes", (int)node->type);
}

static CUresult set_attributes(CUgraphNode node, const struct launch_attributes *attributes) {
    struct op *op = op_copy(node->op->op);
    if (op == NULL) return no_memory("the graph node");
    CUresult status = op_set_attributes(op, attributes);
    if (status) {
        op_free(op);
        return status;
    }
    return graph_node_set_op(node, op);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
    RETURN_IF(check_kernel_node(dst));
    RETURN_IF(check_kernel_node(src));
    if (dst->device || src->device)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "attributes are copied neither to nor from a device-updatable kernel node");
    return set_attributes(dst, &src->op->op->kernel.attributes);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out) {
    RETURN_IF(check_kernel_node(hNode));
    if (value_out == NULL) return fail_null("value_out");
    if (attr != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return attribute_get(node_attributes(hNode), attr, value_out);
    memset(value_out, 0, sizeof *value_out);
    value_out->deviceUpdatableKernelNode.deviceUpdatable = hNode->device != NULL;
    value_out->deviceUpdatableKernelNode.devNode = device_node_handle(hNode->device);
    return CUDA_SUCCESS;
}

/* The handle for kernels is returned in the value, although the header declares it const. */
static CUresult set_updatable(CUgraphNode node, CUkernelNodeAttrValue *value) {
    int wanted = value->deviceUpdatableKernelNode.deviceUpdatable;
    if (wanted != 1 && (wanted || node->device))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "deviceUpdatable is %d: it must be 0 or 1, and 1 for a node that is device-updatable already",
                    wanted);
    if (!wanted) return CUDA_SUCCESS;
    RETURN_IF(graph_node_make_updatable(node));
    value->deviceUpdatableKernelNode.devNode = device_node_handle(node->device);
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value) {
    RETURN_IF(check_kernel_node(hNode));
    if (value == NULL) return fail_null("value");
    if (attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return set_updatable(hNode, (CUkernelNodeAttrValue *)value);
    struct launch_attributes attributes = *node_attributes(hNode);
    bool no_cluster = attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && !value->clusterDim.x && !value->clusterDim.y &&
                      !value->clusterDim.z;
    if (no_cluster) /* as it is told of a node without one */
        memset(attributes.cluster, 0, sizeof attributes.cluster);
    else RETURN_IF(attribute_set(&attributes, attr, value));
    return set_attributes(hNode, &attributes);
}

const struct entry graph_attribute_entries[] = {
    ENTRY(cuGraphKernelNodeCopyAttributes),
    ENTRY(cuGraphKernelNodeGetAttribute),
    ENTRY(cuGraphKernelNodeSetAttribute),
    {NULL, NULL, NULL},
};
