/* Attributes of kernel nodes (CUDA Driver API, "Graph Management": cuGraphKernelNode*Attribute*). */
#include "graph.h"

static CUresult check_kernel_node(CUgraphNode node) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(node));
    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "the node has type %d; only kernel nodes have attributes",
                (int)node->type);
}

static CUresult set_attributes(CUgraphNode node, const struct launch_attributes *attributes) {
    struct op *op = op_copy(node->op->op);
    if (op == NULL) return fail(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory for the graph node");
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
    return set_attributes(dst, &src->op->op->kernel.attributes);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue *value_out) {
    RETURN_IF(check_kernel_node(hNode));
    if (value_out == NULL) return fail_null("value_out");
    const struct launch_attributes *a = &hNode->op->op->kernel.attributes;
    memset(value_out, 0, sizeof *value_out);
    switch ((int)attr) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: value_out->cooperative = a->cooperative; break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: value_out->priority = a->priority; break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        value_out->clusterDim.x = a->cluster[0], value_out->clusterDim.y = a->cluster[1];
        value_out->clusterDim.z = a->cluster[2];
        break;
    default:
        return fail(CUDA_ERROR_INVALID_VALUE, "kernel nodes of the CPU device have no attribute %d",
                    (int)attr);
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       const CUkernelNodeAttrValue *value) {
    RETURN_IF(check_kernel_node(hNode));
    if (value == NULL) return fail_null("value");
    struct launch_attributes a = hNode->op->op->kernel.attributes;
    switch ((int)attr) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: a.cooperative = value->cooperative != 0; break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: a.priority = value->priority; break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        a.cluster[0] = value->clusterDim.x, a.cluster[1] = value->clusterDim.y,
        a.cluster[2] = value->clusterDim.z;
        break;
    default:
        return fail(CUDA_ERROR_INVALID_VALUE, "kernel nodes of the CPU device have no attribute %d",
                    (int)attr);
    }
    return set_attributes(hNode, &a);
}

const struct entry graph_attribute_entries[] = {
    ENTRY(cuGraphKernelNodeCopyAttributes),
    ENTRY(cuGraphKernelNodeGetAttribute),
    ENTRY(cuGraphKernelNodeSetAttribute),
    {NULL, NULL, NULL},
};
