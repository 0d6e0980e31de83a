/* Nodes of graphs: making them, and their parameters (CUDA Driver API, "Graph Management"). The functions
 * for one type of node are forms of the generic ones, cuGraphAddNode, cuGraphNodeSetParams and
 * cuGraphNodeGetParams. */
#include "graph.h"

#include "driver/base/caller.h"
#include "driver/base/origin.h"

#include <stdlib.h>

/* ---- parameters to operations ------------------------------------------------------------------------- */

static CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS *p, const struct launch_attributes *attributes,
                            struct op **op) {
    CUfunction function;
    CUcontext where = NULL;
    if (p->ctx || current_context()) RETURN_IF(context_find_itself(p->ctx, &where));
    RETURN_IF(function_find(p->func ? p->func : (CUfunction)p->kern, where ? where->owner : NULL, &function));
    const unsigned grid[3] = {p->gridDimX, p->gridDimY, p->gridDimZ};
    const unsigned block[3] = {p->blockDimX, p->blockDimY, p->blockDimZ};
    return launch_prepare(function, grid, block, p->sharedMemBytes, p->kernelParams, p->extra, attributes, where, op);
}

static CUresult make_copy(const CUDA_MEMCPY3D *form, CUcontext handle, struct op **op) {
    CUcontext context;
    struct copy copy;
    bool source_pageable, target_pageable;
    RETURN_IF(context_find(handle, &context));
    struct accessor accessor = {context->device->ordinal, "the node's", false};
    RETURN_IF(copy_from_form(form, true, &accessor, &copy, &source_pageable, &target_pageable));
    if (copy.width == 0) return fail(CUDA_ERROR_INVALID_VALUE, "a memcpy node must copy at least one byte");
    CUDA_MEMCPY3D *kept = malloc(sizeof *kept);
    *op = kept ? op_new(OP_COPY, context) : NULL;
    if (*op == NULL) {
        free(kept);
        return no_memory("the graph node");
    }
    *kept = *form;
    (*op)->copy = copy;
    (*op)->copy.form = kept;
    return CUDA_SUCCESS;
}

static CUresult make_fill(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext handle, struct op **op) {
    CUcontext context;
    struct fill fill = {(char *)p->dst, p->value, p->elementSize, p->width, p->height, p->pitch};
    RETURN_IF(context_find(handle, &context));
    struct accessor accessor = {context->device->ordinal, "the node's", true};
    RETURN_IF(fill_check(&fill, true, &accessor));
    if (fill.width == 0) return fail(CUDA_ERROR_INVALID_VALUE, "a memset node must fill at least one element");
    *op = op_new(OP_FILL, context);
    if (*op == NULL) return no_memory("the graph node");
    (*op)->fill = fill;
    return CUDA_SUCCESS;
}

static CUresult make_host(const CUDA_HOST_NODE_PARAMS *p, struct op **op) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    if (p->fn == NULL) return fail_null("fn");
    if (op_is_call(p->fn)) /* its data belongs to the node it was read from */
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "this is the captured call of a math library: it cannot be put into a node by its parameters. "
                    "Capture the call again");
    *op = op_new(OP_HOST, context);
    if (*op == NULL) return no_memory("the graph node");
    (*op)->host.function = p->fn;
    (*op)->host.data = p->userData;
    return CUDA_SUCCESS;
}

static CUresult make_event(CUevent event, bool record, struct op **op) {
    if (!handle_is_live(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    *op = op_new(record ? OP_RECORD : OP_WAIT, event->context);
    if (*op == NULL) return no_memory("the graph node");
    if (record) (*op)->record.event = handle_retain(event);
    else (*op)->wait.event = handle_retain(event);
    return CUDA_SUCCESS;
}

static CUresult make_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p, struct op **op) {
    CUcontext context;
    if (p->ctx == NULL) return fail_null("ctx");
    RETURN_IF(context_find(p->ctx, &context));
    if (p->flags)
        return fail(CUDA_ERROR_INVALID_VALUE, "the flags of a batch of memory operations must be 0, not %u", p->flags);
    return values_new(context, p->count, p->paramArray, op);
}

CUresult graph_make_op(const CUgraphNodeParams *params, const struct launch_attributes *attributes, struct op **op) {
    switch ((int)params->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            CUDA_KERNEL_NODE_PARAMS kernel;
            memcpy(&kernel, &params->kernel, sizeof kernel);
            return make_kernel(&kernel, attributes, op);
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY: return make_copy(&params->memcpy.copyParams, params->memcpy.copyCtx, op);
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS fill;
            memcpy(&fill, &params->memset, sizeof fill);
            return make_fill(&fill, params->memset.ctx, op);
        }
        case CU_GRAPH_NODE_TYPE_HOST: {
            CUDA_HOST_NODE_PARAMS host = {params->host.fn, params->host.userData};
            return make_host(&host, op);
        }
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return make_event(params->eventRecord.event, true, op);
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return make_event(params->eventWait.event, false, op);
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return make_values(&params->memOp, op);
        default:
            return fail(CUDA_ERROR_NOT_SUPPORTED, "the CPU device has no parameters to set for graph nodes of type %d",
                        (int)params->type);
    }
}

const struct launch_attributes *node_attributes(CUgraphNode node) {
    return node->type == CU_GRAPH_NODE_TYPE_KERNEL ? &node->op->op->kernel.attributes : NULL;
}

/* ---- nodes -------------------------------------------------------------------------------------------- */

CUresult graph_node_set_op(CUgraphNode node, struct op *op) {
    struct shared_op *shared = shared_op_new(op);
    if (shared == NULL) return no_memory("the graph node");
    shared_op_release(node->op);
    node->op = shared;
    node->version++;
    free(node->kernel_params);
    node->kernel_params = NULL;
    return CUDA_SUCCESS;
}

CUresult graph_check_memory_place(CUgraph graph) {
    for (CUgraph g = graph; g->parent; g = g->parent->graph)
        if (g->parent->type == CU_GRAPH_NODE_TYPE_GRAPH)
            return fail(CUDA_ERROR_NOT_SUPPORTED, "allocation and free nodes cannot be put into a child graph");
    return CUDA_SUCCESS;
}

CUresult graph_node_add_op(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *data, size_t count, struct op *op, CUgraphNode *node) {
    struct shared_op *shared = NULL;
    if (op && (shared = shared_op_new(op)) == NULL) return no_memory("the graph node");
    CUgraphNode made;
    CUresult status = graph_add(graph, type, dependencies, data, count, &made);
    if (status) {
        shared_op_release(shared);
        return status;
    }
    made->op = shared;
    *node = made;
    return CUDA_SUCCESS;
}

CUresult graph_add_allocation(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                              const CUmemPoolProps *pool, const CUmemAccessDesc *access, size_t access_count,
                              size_t size, uint64_t *address, CUgraphNode *node) {
    CUcontext context;
    CUmemAccessDesc *kept = NULL;
    RETURN_IF(graph_check_memory_place(graph));
    RETURN_IF(context_find(NULL, &context));
    if (size == 0) return fail(CUDA_ERROR_INVALID_VALUE, "an allocation node must allocate at least one byte");
    if (access_count) {
        if (access == NULL) return fail_null("accessDescs");
        kept = malloc(access_count * sizeof *kept);
        if (kept == NULL) return no_memory("the graph node");
        memcpy(kept, access, access_count * sizeof *kept);
    }
    struct op *op = op_new(OP_ALLOCATE, context);
    CUresult status = op ? memory_plan(op, pool, size) : no_memory("the graph node");
    if (status == CUDA_SUCCESS) {
        uint64_t planned = op->memory.address;
        status = graph_node_add_op(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, dependencies, data, count, op, node);
        if (status == CUDA_SUCCESS) {
            (*node)->pool = *pool;
            (*node)->access = kept;
            (*node)->access_count = access_count;
            *address = planned;
            graph->has_memory_nodes = true;
            return CUDA_SUCCESS;
        }
    } else if (op) {
        op_free(op);
    }
    free(kept);
    return status;
}

CUresult graph_add_free(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                        uint64_t address, CUgraphNode *node) {
    CUcontext context;
    RETURN_IF(graph_check_memory_place(graph));
    RETURN_IF(context_find(NULL, &context));
    if (!memory_is_of_graph(address))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "0x%llx is not the address of an allocation node: only those can be freed by a "
                    "graph",
                    (unsigned long long)address);
    for (CUgraphNode other = graph->first; other; other = other->next)
        if (other->type == CU_GRAPH_NODE_TYPE_MEM_FREE && other->op->op->memory.address == address)
            return fail(CUDA_ERROR_INVALID_VALUE, "the graph frees 0x%llx already", (unsigned long long)address);
    struct op *op = op_new(OP_FREE, context);
    if (op == NULL) return no_memory("the graph node");
    op->memory.address = address;
    RETURN_IF(graph_node_add_op(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, dependencies, data, count, op, node));
    graph->has_memory_nodes = true;
    return CUDA_SUCCESS;
}

static bool has_type(CUgraph graph, CUgraphNodeType type) {
    for (CUgraphNode node = graph->first; node; node = node->next) {
        if (node->type == type) return true;
        for (unsigned i = 0; i < node->body_count; i++)
            if (has_type(node->bodies[i], type)) return true;
    }
    return false;
}

static CUresult check_child(CUgraph graph, CUgraph child, bool moved) {
    RETURN_IF(graph_check(child));
    if (!moved && child->parent)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "a part of another graph cannot be added to a graph: add a clone of it");
    if (moved && (child->parent || child == graph->root))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "only a graph that is not part of another graph, and is not this graph, can be moved");
    if (moved && child->conditions)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional handles cannot be moved into another");
    if (!moved && (has_type(child, CU_GRAPH_NODE_TYPE_MEM_ALLOC) || has_type(child, CU_GRAPH_NODE_TYPE_MEM_FREE) ||
                   has_type(child, CU_GRAPH_NODE_TYPE_CONDITIONAL)))
        return fail(CUDA_ERROR_NOT_SUPPORTED, "a child graph may not contain allocation, free or conditional nodes");
    return CUDA_SUCCESS;
}

static void set_root(CUgraph graph, CUgraph root) {
    graph->root = root;
    for (CUgraphNode node = graph->first; node; node = node->next)
        for (unsigned i = 0; i < node->body_count; i++) set_root(node->bodies[i], root);
}

static CUresult add_child(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                          CUgraph child, bool moved, CUgraphNode *node) {
    CUgraphNode made;
    RETURN_IF(check_child(graph, child, moved));
    /* The child may be the graph itself, so the copy is of what it was before. */
    CUgraph *bodies = calloc(1, sizeof *bodies), clone = bodies && !moved ? graph_clone(child, NULL) : NULL;
    if (bodies == NULL || (clone == NULL && !moved)) {
        free(bodies);
        return no_memory("the graph node");
    }
    CUresult status = graph_node_add_op(graph, CU_GRAPH_NODE_TYPE_GRAPH, dependencies, data, count, NULL, &made);
    if (status) {
        if (clone) graph_release(clone);
        free(bodies);
        return status;
    }
    made->bodies = bodies;
    if (moved) {
        graph->has_memory_nodes |= child->has_memory_nodes;
    } else {
        conditions_release(clone->conditions);
        clone->conditions = NULL;
        child = clone;
    }
    child->parent = made;
    set_root(child, graph->root);
    bodies[0] = child;
    made->body_count = 1;
    *node = made;
    return CUDA_SUCCESS;
}

/* ---- entry points: the generic functions -------------------------------------------------------------- */

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                        const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams) {
    RETURN_IF(enter());
    RETURN_IF(graph_check(hGraph));
    if (phGraphNode == NULL) return fail_null("phGraphNode");
    if (nodeParams == NULL) return fail_null("nodeParams");
    static const struct launch_attributes unfinished = {.unfinished = true};
    struct op *op = NULL;
    switch ((int)nodeParams->type) {
        case CU_GRAPH_NODE_TYPE_EMPTY: break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return add_child(hGraph, dependencies, dependencyData, numDependencies, nodeParams->graph.graph,
                             nodeParams->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, phGraphNode);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
            CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p = &nodeParams->alloc;
            uint64_t address;
            RETURN_IF(graph_add_allocation(hGraph, dependencies, dependencyData, numDependencies, &p->poolProps,
                                           p->accessDescs, p->accessDescCount, p->bytesize, &address, phGraphNode));
            cpu_memory_set_lines(address, caller_here(), 0);
            note_begin(ORIGIN_OF_GRAPH, address, p->bytesize, "cuGraphAddMemAllocNode");
            p->dptr = address;
            return CUDA_SUCCESS;
        }
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            RETURN_IF(graph_add_free(hGraph, dependencies, dependencyData, numDependencies, nodeParams->free.dptr,
                                     phGraphNode));
            cpu_memory_set_lines(nodeParams->free.dptr, 0, caller_here());
            return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return graph_add_conditional(hGraph, dependencies, dependencyData, numDependencies,
                                         &nodeParams->conditional, phGraphNode);
        default: RETURN_IF(graph_make_op(nodeParams, &unfinished, &op));
    }
    return graph_node_add_op(hGraph, nodeParams->type, dependencies, dependencyData, numDependencies, op, phGraphNode);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(hNode));
    if (nodeParams == NULL) return fail_null("nodeParams");
    if (nodeParams->type != hNode->type)
        return fail(CUDA_ERROR_INVALID_VALUE, "the node has type %d; parameters of type %d were given",
                    (int)hNode->type, (int)nodeParams->type);
    if (hNode->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        RETURN_IF(check_child(hNode->graph, nodeParams->graph.graph, false));
        CUgraph clone = graph_clone(nodeParams->graph.graph, hNode);
        if (clone == NULL) return no_memory("the graph node");
        handle_kill(hNode->bodies[0]);
        graph_release(hNode->bodies[0]);
        hNode->bodies[0] = clone;
        return CUDA_SUCCESS;
    }
    struct op *op;
    RETURN_IF(graph_make_op(nodeParams, node_attributes(hNode), &op));
    return graph_node_set_op(hNode, op);
}

/* The parameters of a kernel as cuLaunchKernel takes them: pointers into the operation's copy. */
static CUresult kernel_params(CUgraphNode node, void ***params) {
    const struct op *op = node->op->op;
    size_t count = cpu_kernel_get_info(op->kernel.launch.kernel)->param_count;
    if (node->kernel_params == NULL) {
        node->kernel_params = calloc(count + 1, sizeof *node->kernel_params);
        if (node->kernel_params == NULL) return no_memory("the graph node");
        for (size_t i = 0, offset, size; i < count; i++)
            if (cpu_kernel_param(op->kernel.launch.kernel, i, &offset, &size) == 0)
                node->kernel_params[i] = (char *)op->kernel.launch.params + offset;
    }
    *params = count ? node->kernel_params : NULL;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(hNode));
    if (nodeParams == NULL) return fail_null("nodeParams");
    const struct op *op = hNode->op ? hNode->op->op : NULL;
    memset(nodeParams, 0, sizeof *nodeParams);
    nodeParams->type = hNode->type;
    switch ((int)hNode->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            const cpu_launch *l = &op->kernel.launch;
            CUDA_KERNEL_NODE_PARAMS_v3 *p = &nodeParams->kernel;
            p->func = op->kernel.function;
            p->kern = op->kernel.function->owner;
            p->ctx = op->kernel.green ? op->kernel.green : op->context;
            p->gridDimX = l->grid[0], p->gridDimY = l->grid[1], p->gridDimZ = l->grid[2];
            p->blockDimX = l->block[0], p->blockDimY = l->block[1], p->blockDimZ = l->block[2];
            p->sharedMemBytes = l->dynamic_shared;
            return kernel_params(hNode, &p->kernelParams);
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            if (op->copy.form == NULL) return no_memory("the graph node");
            nodeParams->memcpy.copyParams = *op->copy.form;
            nodeParams->memcpy.copyCtx = op->context;
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            nodeParams->memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = (CUdeviceptr)op->fill.target,
                                                              .pitch = op->fill.pitch,
                                                              .value = op->fill.value,
                                                              .elementSize = op->fill.element,
                                                              .width = op->fill.width,
                                                              .height = op->fill.height,
                                                              .ctx = op->context};
            break;
        case CU_GRAPH_NODE_TYPE_HOST:
            nodeParams->host.fn = op->host.function;
            nodeParams->host.userData = op->host.data;
            nodeParams->host.ctx = op->context;
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH: nodeParams->graph.graph = hNode->bodies[0]; break;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: nodeParams->eventRecord.event = op->record.event; break;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT: nodeParams->eventWait.event = op->wait.event; break;
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            nodeParams->memOp =
                (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){.ctx = op->context,
                                                   .count = op->values.count,
                                                   .paramArray = (CUstreamBatchMemOpParams *)values_list(op)};
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            nodeParams->alloc = (CUDA_MEM_ALLOC_NODE_PARAMS_v2){hNode->pool, hNode->access, hNode->access_count,
                                                                op->memory.size, op->memory.address};
            break;
        case CU_GRAPH_NODE_TYPE_MEM_FREE: nodeParams->free.dptr = op->memory.address; break;
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            nodeParams->conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = hNode->condition,
                                                                     .type = hNode->condition_type,
                                                                     .size = hNode->body_count,
                                                                     .phGraph_out = hNode->bodies,
                                                                     .ctx = hNode->condition_context};
            break;
        default: break; /* empty nodes have none */
    }
    return CUDA_SUCCESS;
}

/* ---- entry points: one type of node each -------------------------------------------------------------- */

#define ADD_PARAMETERS                                                                                       \
    CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies
#define ADD(params) cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL, numDependencies, params)

/* The parameters of a node that must have a type. */
static CUresult get_params(CUgraphNode node, CUgraphNodeType type, const void *out, CUgraphNodeParams *params) {
    if (out == NULL) return fail_null("the place for the parameters");
    RETURN_IF(cuGraphNodeGetParams(node, params));
    if (params->type == type) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "the node has type %d, not %d", (int)params->type, (int)type);
}

CUresult cuGraphAddKernelNode(ADD_PARAMETERS, const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.kernel, nodeParams, sizeof *nodeParams);
    return ADD(&params);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &params));
    memcpy(nodeParams, &params.kernel, sizeof *nodeParams);
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.kernel, nodeParams, sizeof *nodeParams);
    return cuGraphNodeSetParams(hNode, &params);
}

/* The first form of these parameters has no kernel handle and no context. */
static CUDA_KERNEL_NODE_PARAMS from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    CUDA_KERNEL_NODE_PARAMS params = {0};
    memcpy(&params, p, sizeof *p);
    return params;
}

static CUresult add_kernel_v1(ADD_PARAMETERS, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    if (p == NULL) return fail_null("nodeParams");
    CUDA_KERNEL_NODE_PARAMS params = from_v1(p);
    return cuGraphAddKernelNode(phGraphNode, hGraph, dependencies, numDependencies, &params);
}
static CUresult get_kernel_v1(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    CUDA_KERNEL_NODE_PARAMS params;
    if (p == NULL) return fail_null("nodeParams");
    RETURN_IF(cuGraphKernelNodeGetParams(node, &params));
    memcpy(p, &params, sizeof *p);
    return CUDA_SUCCESS;
}
static CUresult set_kernel_v1(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    if (p == NULL) return fail_null("nodeParams");
    CUDA_KERNEL_NODE_PARAMS params = from_v1(p);
    return cuGraphKernelNodeSetParams(node, &params);
}

CUresult cuGraphAddMemcpyNode(ADD_PARAMETERS, const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    if (copyParams == NULL) return fail_null("copyParams");
    params.memcpy.copyParams = *copyParams;
    params.memcpy.copyCtx = ctx;
    return ADD(&params);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, &params));
    *nodeParams = params.memcpy.copyParams;
    return CUDA_SUCCESS;
}

/* Setting keeps the context that the node was made in. */
static CUcontext context_of(CUgraphNode node) {
    return handle_is_live(node, HANDLE_GRAPH_NODE) && node->op ? node->op->op->context : NULL;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    if (nodeParams == NULL) return fail_null("nodeParams");
    params.memcpy.copyParams = *nodeParams;
    params.memcpy.copyCtx = context_of(hNode);
    return cuGraphNodeSetParams(hNode, &params);
}

CUresult cuGraphAddMemsetNode(ADD_PARAMETERS, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    if (memsetParams == NULL) return fail_null("memsetParams");
    memcpy(&params.memset, memsetParams, sizeof *memsetParams);
    params.memset.ctx = ctx;
    return ADD(&params);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, &params));
    memcpy(nodeParams, &params.memset, sizeof *nodeParams);
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.memset, nodeParams, sizeof *nodeParams);
    params.memset.ctx = context_of(hNode);
    return cuGraphNodeSetParams(hNode, &params);
}

CUresult cuGraphAddHostNode(ADD_PARAMETERS, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.host, nodeParams, sizeof *nodeParams);
    return ADD(&params);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, &params));
    memcpy(nodeParams, &params.host, sizeof *nodeParams);
    return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.host, nodeParams, sizeof *nodeParams);
    return cuGraphNodeSetParams(hNode, &params);
}

CUresult cuGraphAddEmptyNode(ADD_PARAMETERS) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return ADD(&params);
}

CUresult cuGraphAddChildGraphNode(ADD_PARAMETERS, CUgraph childGraph) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.graph.graph = childGraph;
    return ADD(&params);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, &params));
    *phGraph = params.graph.graph;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddEventRecordNode(ADD_PARAMETERS, CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    params.eventRecord.event = event;
    return ADD(&params);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out, &params));
    *event_out = params.eventRecord.event;
    return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    params.eventRecord.event = event;
    return cuGraphNodeSetParams(hNode, &params);
}

CUresult cuGraphAddEventWaitNode(ADD_PARAMETERS, CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    params.eventWait.event = event;
    return ADD(&params);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, &params));
    *event_out = params.eventWait.event;
    return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    params.eventWait.event = event;
    return cuGraphNodeSetParams(hNode, &params);
}

CUresult cuGraphAddBatchMemOpNode(ADD_PARAMETERS, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.memOp, nodeParams, sizeof *nodeParams);
    return ADD(&params);
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out, &params));
    memcpy(nodeParams_out, &params.memOp, sizeof *nodeParams_out);
    return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.memOp, nodeParams, sizeof *nodeParams);
    return cuGraphNodeSetParams(hNode, &params);
}

CUresult cuGraphAddMemAllocNode(ADD_PARAMETERS, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.alloc, nodeParams, sizeof *nodeParams);
    RETURN_IF(ADD(&params));
    nodeParams->dptr = params.alloc.dptr;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out, &params));
    memcpy(params_out, &params.alloc, sizeof *params_out);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(ADD_PARAMETERS, CUdeviceptr dptr) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    params.free.dptr = dptr;
    return ADD(&params);
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out) {
    CUgraphNodeParams params;
    RETURN_IF(get_params(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out, &params));
    *dptr_out = params.free.dptr;
    return CUDA_SUCCESS;
}

static CUresult add_node_v1(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                            CUgraphNodeParams *params) {
    return cuGraphAddNode(node, graph, dependencies, NULL, count, params);
}

const struct entry graph_node_entries[] = {
    ENTRY_V2(cuGraphAddNode),
    ENTRY_AS(cuGraphAddNode_v1, add_node_v1),
    ENTRY(cuGraphNodeSetParams),
    ENTRY(cuGraphNodeGetParams),
    ENTRY_V2(cuGraphAddKernelNode),
    ENTRY_AS(cuGraphAddKernelNode_v1, add_kernel_v1),
    ENTRY_V2(cuGraphKernelNodeGetParams),
    ENTRY_AS(cuGraphKernelNodeGetParams_v1, get_kernel_v1),
    ENTRY_V2(cuGraphKernelNodeSetParams),
    ENTRY_AS(cuGraphKernelNodeSetParams_v1, set_kernel_v1),
    ENTRY(cuGraphAddMemcpyNode),
    ENTRY(cuGraphMemcpyNodeGetParams),
    ENTRY(cuGraphMemcpyNodeSetParams),
    ENTRY(cuGraphAddMemsetNode),
    ENTRY(cuGraphMemsetNodeGetParams),
    ENTRY(cuGraphMemsetNodeSetParams),
    ENTRY(cuGraphAddHostNode),
    ENTRY(cuGraphHostNodeGetParams),
    ENTRY(cuGraphHostNodeSetParams),
    ENTRY(cuGraphAddEmptyNode),
    ENTRY(cuGraphAddChildGraphNode),
    ENTRY(cuGraphChildGraphNodeGetGraph),
    ENTRY(cuGraphAddEventRecordNode),
    ENTRY(cuGraphEventRecordNodeGetEvent),
    ENTRY(cuGraphEventRecordNodeSetEvent),
    ENTRY(cuGraphAddEventWaitNode),
    ENTRY(cuGraphEventWaitNodeGetEvent),
    ENTRY(cuGraphEventWaitNodeSetEvent),
    ENTRY(cuGraphAddBatchMemOpNode),
    ENTRY(cuGraphBatchMemOpNodeGetParams),
    ENTRY(cuGraphBatchMemOpNodeSetParams),
    ENTRY(cuGraphAddMemAllocNode),
    ENTRY(cuGraphMemAllocNodeGetParams),
    ENTRY(cuGraphAddMemFreeNode),
    ENTRY(cuGraphMemFreeNodeGetParams),
    {NULL, NULL, NULL},
};
