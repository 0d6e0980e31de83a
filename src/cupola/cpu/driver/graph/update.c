/* Changing executable graphs (CUDA Driver API, "Graph Management": cuGraphExec*SetParams,
 * cuGraphExecUpdate). */
#include "exec.h"

#include <stdlib.h>

/* ---- pairs of nodes -----------------------------------------------------------------------------------
 *
 * Which nodes of two graphs correspond does not depend on the order in which they were created (CUDA C++ Programming Guide,
 * "Whole Graph Update"). The sinks, on which no node depends, correspond in the order in which they became sinks, and what
 * two such nodes depend on corresponds in the order of their edges, and so on. A node that is reached in two ways must have
 * the same counterpart in both. */

struct pair {
    CUgraphNode own, other;
};

struct pairs {
    struct pair *items;
    size_t count, capacity;
};

static bool pairs_append(struct pairs *pairs, CUgraphNode own, CUgraphNode other) {
    if (pairs->count == pairs->capacity) {
        size_t capacity = pairs->capacity ? pairs->capacity * 2 : 16;
        struct pair *items = realloc(pairs->items, capacity * sizeof *items);
        if (items == NULL) return false;
        pairs->items = items;
        pairs->capacity = capacity;
    }
    pairs->items[pairs->count++] = (struct pair){own, other};
    return true;
}

static CUgraphExecUpdateResult differ(CUgraphExecUpdateResultInfo *info, CUgraphExecUpdateResult result,
                                      CUgraphNode node, CUgraphNode from) {
    *info = (CUgraphExecUpdateResultInfo){result, node, from};
    return result;
}

/* What may not change although the types are the same. */
static struct change compare_parameters(CUgraphExec exec, CUgraphNode own, CUgraphNode other) {
    if (own->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        if (own->condition_type != other->condition_type || own->body_count != other->body_count)
            return (struct change){CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
                                   "the kind of a conditional node or the number of its bodies changed"};
        return (struct change){CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL};
    }
    if (own->op == NULL) return (struct change){CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL};
    if ((own->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || own->type == CU_GRAPH_NODE_TYPE_MEM_FREE) &&
        own->op->op->memory.address != other->op->op->memory.address)
        return (struct change){CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED,
                               "nodes that allocate or free memory cannot be updated"};
    struct change change = graph_compare_attributes(exec, own, other);
    return change.result ? change : graph_compare_ops(exec, own, other->op->op);
}

static int by_sink(const void *a, const void *b) {
    uint64_t x = (*(const CUgraphNode *)a)->sink_since, y = (*(const CUgraphNode *)b)->sink_since;
    return x < y ? -1 : x > y;
}

static bool same_edge(const CUgraphEdgeData *a, const CUgraphEdgeData *b) {
    return a->from_port == b->from_port && a->to_port == b->to_port && a->type == b->type;
}

/* An array to be freed; NULL without memory. */
static CUgraphNode *list_sinks(CUgraph graph, size_t *count) {
    CUgraphNode *sinks = malloc((graph->count + 1) * sizeof *sinks);
    *count = 0;
    for (CUgraphNode node = graph->first; sinks && node; node = node->next)
        if (node->dependents.count == 0) sinks[(*count)++] = node;
    if (sinks) qsort(sinks, *count, sizeof *sinks, by_sink);
    return sinks;
}

static CUgraphExecUpdateResult changed_at(CUgraphExecUpdateResultInfo *info, CUgraphNode node, CUgraphNode from) {
    return differ(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, from);
}

/* The nodes correspond; `dependent`: because it depends on the other, and its counterpart on the own one. */
static CUgraphExecUpdateResult pair_nodes(CUgraphNode own, CUgraphNode other, CUgraphNode dependent,
                                          struct pairs *pairs, CUgraphExecUpdateResultInfo *info) {
    if (own->pair == other && other->pair == own) return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (own->pair || other->pair) return changed_at(info, dependent, other);
    if (!pairs_append(pairs, own, other)) return differ(info, CU_GRAPH_EXEC_UPDATE_ERROR, other, NULL);
    own->pair = other;
    other->pair = own;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* The last sinks first, as an H200 does, which tells of the first node that has no counterpart. */
static CUgraphExecUpdateResult pair_sinks(CUgraph own, CUgraph other, struct pairs *pairs,
                                          CUgraphExecUpdateResultInfo *info) {
    size_t own_count, other_count;
    CUgraphNode *a = list_sinks(own, &own_count), *b = list_sinks(other, &other_count);
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (!a || !b) result = differ(info, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
    else if (own_count < other_count) result = changed_at(info, b[other_count - own_count - 1], NULL);
    else if (own_count > other_count) result = changed_at(info, NULL, NULL);
    for (size_t i = own_count; !result && i-- > 0;) result = pair_nodes(a[i], b[i], NULL, pairs, info);
    free(a);
    free(b);
    return result;
}

static CUgraphExecUpdateResult pair_dependencies(struct pair pair, struct pairs *pairs,
                                                 CUgraphExecUpdateResultInfo *info) {
    const struct edges *own = &pair.own->dependencies, *other = &pair.other->dependencies;
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (own->count != other->count) return changed_at(info, pair.other, NULL);
    for (size_t i = 0; !result && i < own->count; i++)
        result = same_edge(&own->items[i].data, &other->items[i].data)
                     ? pair_nodes(own->items[i].node, other->items[i].node, pair.other, pairs, info)
                     : changed_at(info, pair.other, other->items[i].node);
    return result;
}

/* Compare two graphs and list the pairs of their nodes, those of bodies and child graphs included. */
static CUgraphExecUpdateResult compare(CUgraphExec exec, CUgraph own, CUgraph other, struct pairs *pairs,
                                       CUgraphExecUpdateResultInfo *info, const char **text) {
    const size_t begin = pairs->count;
    if (own->count != other->count) return changed_at(info, NULL, NULL);
    for (CUgraphNode node = own->first; node; node = node->next) node->pair = NULL;
    for (CUgraphNode node = other->first; node; node = node->next) node->pair = NULL;
    CUgraphExecUpdateResult result = pair_sinks(own, other, pairs, info);
    for (size_t i = begin; !result && i < pairs->count; i++) /* the list grows */
        result = pair_dependencies(pairs->items[i], pairs, info);
    /* Where the other graph has a cycle, a walk from its sinks does not reach all nodes. */
    if (!result && pairs->count - begin != own->count) result = changed_at(info, NULL, NULL);
    for (size_t i = begin, end = pairs->count; !result && i < end; i++) {
        CUgraphNode a = pairs->items[i].own, b = pairs->items[i].other;
        struct change change = a->type == b->type ? compare_parameters(exec, a, b)
                                                  : (struct change){CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, NULL};
        *text = change.text;
        if (change.result) result = differ(info, change.result, b, NULL);
        for (unsigned body = 0; !result && body < a->body_count; body++)
            result = compare(exec, a->bodies[body], b->bodies[body], pairs, info, text);
    }
    return result;
}

static bool copy_objects(CUgraph own, CUgraph other, struct held_objects **next) {
    (void)own;
    return held_objects_copy((*next)++, &other->held);
}

static bool swap_objects(CUgraph own, CUgraph other, struct held_objects **next) {
    (void)other;
    struct held_objects held = own->held;
    own->held = **next;
    *(*next)++ = held;
    return true;
}

/* For two graphs, which have been compared, and all graphs inside them. */
static bool for_graphs(CUgraph own, CUgraph other, bool (*act)(CUgraph, CUgraph, struct held_objects **),
                       struct held_objects **next) {
    bool fine = act(own, other, next);
    for (CUgraphNode node = own->first; fine && node; node = node->next)
        for (unsigned i = 0; fine && i < node->body_count; i++)
            fine = for_graphs(node->bodies[i], node->pair->bodies[i], act, next);
    return fine;
}

/* What an update has replaced: to be let go of when no lock is held, since that calls destructors. */
struct replaced {
    struct held_objects *held;
    size_t count;
    struct condition_list *conditions;
};

static void replaced_release(struct replaced *replaced) {
    for (size_t i = 0; i < replaced->count; i++) held_objects_release(&replaced->held[i]);
    free(replaced->held);
    conditions_release(replaced->conditions);
}

/* Give the executable's nodes the operations of the others, and its graphs their user objects: all of them
 * or, without memory, none. */
static bool take_over(CUgraph own, CUgraph other, const struct pairs *pairs, struct replaced *replaced) {
    struct shared_op **ops = calloc(pairs->count + 1, sizeof *ops);
    size_t graphs = 1;
    for (size_t i = 0; i < pairs->count; i++) graphs += pairs->items[i].own->body_count;
    struct held_objects *next = replaced->held = calloc(graphs, sizeof *replaced->held);
    replaced->count = replaced->held ? graphs : 0;
    bool fine = ops != NULL && next != NULL && for_graphs(own, other, copy_objects, &next);
    for (size_t i = 0; fine && i < pairs->count; i++)
        if (pairs->items[i].other->op) {
            ops[i] = shared_op_new(op_copy(pairs->items[i].other->op->op));
            fine = ops[i] != NULL;
        }
    for (size_t i = 0; ops && i < pairs->count; i++) {
        struct pair *pair = &pairs->items[i];
        if (fine && ops[i]) {
            shared_op_release(pair->own->op);
            pair->own->op = ops[i];
        } else {
            shared_op_release(ops[i]);
        }
        if (fine && pair->own->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) pair->own->condition = pair->other->condition;
    }
    free(ops);
    if (!fine) return false;
    next = replaced->held;
    (void)for_graphs(own, other, swap_objects, &next);
    if (own->parent == NULL) {
        replaced->conditions = own->conditions;
        own->conditions = conditions_retain(other->root->conditions);
    }
    return true;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo) {
    static const char *const texts[] = {
        [CU_GRAPH_EXEC_UPDATE_ERROR] = "the host has no memory for it",
        [CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED] = "nodes or edges were added or removed",
        [CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED] = "a node has another type",
    };
    CUgraphExecUpdateResultInfo ignored, *info = resultInfo ? resultInfo : &ignored;
    RETURN_IF(graph_exec_check(hGraphExec));
    RETURN_IF(graph_check(hGraph));
    struct pairs pairs = {0};
    struct replaced replaced = {0};
    const char *text = NULL;
    *info = (CUgraphExecUpdateResultInfo){0};
    RETURN_IF(graph_exec_lock(hGraphExec));
    if (graph_has_updatable(hGraphExec->graph, false) || graph_has_updatable(hGraph, false)) {
        graph_exec_unlock(hGraphExec);
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "a graph with device-updatable nodes cannot be updated as a whole: change its nodes one by one");
    }
    CUgraphExecUpdateResult result = compare(hGraphExec, hGraphExec->graph, hGraph, &pairs, info, &text);
    if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS && !take_over(hGraphExec->graph, hGraph, &pairs, &replaced))
        result = differ(info, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
    if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS) graph_exec_changed(hGraphExec);
    graph_exec_unlock(hGraphExec);
    free(pairs.items);
    replaced_release(&replaced);
    if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                "the executable graph cannot be updated: %s; instantiate it again", text ? text : texts[result]);
}

/* The form before CUDA 12. */
static CUresult update_v1(CUgraphExec exec, CUgraph graph, CUgraphNode *wrong_node, CUgraphExecUpdateResult *result) {
    CUgraphExecUpdateResultInfo info = {0};
    CUresult status = cuGraphExecUpdate(exec, graph, &info);
    if (wrong_node) *wrong_node = info.errorNode;
    if (result) *result = info.result;
    return status;
}

/* ---- single nodes ------------------------------------------------------------------------------------- */

static CUresult set_child(CUgraphExec exec, CUgraphNode own, CUgraph child, struct replaced *replaced) {
    CUgraphExecUpdateResultInfo info = {0};
    struct pairs pairs = {0};
    RETURN_IF(graph_check(child));
    CUresult status = CUDA_SUCCESS;
    const char *text = NULL;
    if (compare(exec, own->bodies[0], child, &pairs, &info, &text))
        status = fail(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the child graph cannot be changed: %s",
                      text ? text : "the new one must have the nodes and edges of the old one");
    else if (!take_over(own->bodies[0], child, &pairs, replaced)) status = no_memory("the executable graph");
    else graph_exec_changed(exec);
    free(pairs.items);
    return status;
}

static CUresult set_params(CUgraphExec exec, CUgraphNode own, const CUgraphNodeParams *params,
                           struct replaced *replaced) {
    if (params->type != own->type)
        return fail(CUDA_ERROR_INVALID_VALUE, "the node has type %d; parameters of type %d were given", (int)own->type,
                    (int)params->type);
    if (own->type == CU_GRAPH_NODE_TYPE_GRAPH) return set_child(exec, own, params->graph.graph, replaced);
    struct op *op;
    RETURN_IF(graph_make_op(params, node_attributes(own), &op));
    struct change change = graph_compare_ops(exec, own, op);
    if (change.result) {
        op_free(op);
        return fail(CUDA_ERROR_INVALID_VALUE, "%s; instantiate the graph again", change.text);
    }
    RETURN_IF(graph_node_set_op(own, op));
    graph_exec_changed(exec);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    CUgraphNode own;
    struct replaced replaced = {0};
    RETURN_IF(graph_exec_check(hGraphExec));
    if (nodeParams == NULL) return fail_null("nodeParams");
    RETURN_IF(graph_exec_lock(hGraphExec));
    CUresult status = graph_exec_find(hGraphExec, hNode, &own);
    if (status == CUDA_SUCCESS) status = set_params(hGraphExec, own, nodeParams, &replaced);
    graph_exec_unlock(hGraphExec);
    replaced_release(&replaced);
    return status;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.kernel, nodeParams, sizeof *nodeParams);
    return cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}

static CUresult set_kernel_v1(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (p == NULL) return fail_null("nodeParams");
    memcpy(&params.kernel, p, sizeof *p);
    return cuGraphExecNodeSetParams(exec, node, &params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams,
                                        CUcontext ctx) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    if (copyParams == NULL) return fail_null("copyParams");
    params.memcpy.copyParams = *copyParams;
    params.memcpy.copyCtx = ctx;
    return cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    if (memsetParams == NULL) return fail_null("memsetParams");
    memcpy(&params.memset, memsetParams, sizeof *memsetParams);
    params.memset.ctx = ctx;
    return cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.host, nodeParams, sizeof *nodeParams);
    return cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.graph.graph = childGraph;
    return cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    params.eventRecord.event = event;
    return cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    params.eventWait.event = event;
    return cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    if (nodeParams == NULL) return fail_null("nodeParams");
    memcpy(&params.memOp, nodeParams, sizeof *nodeParams);
    return cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}

/* ---- enabling ----------------------------------------------------------------------------------------- */

static CUresult find_switchable(CUgraphExec exec, CUgraphNode node, CUgraphNode *own) {
    RETURN_IF(graph_exec_find(exec, node, own));
    if ((*own)->type == CU_GRAPH_NODE_TYPE_KERNEL || (*own)->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
        (*own)->type == CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "only kernel, memcpy and memset nodes can be disabled, not nodes of type %d",
                (int)(*own)->type);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
    CUgraphNode own;
    RETURN_IF(graph_exec_lock(hGraphExec));
    CUresult status = find_switchable(hGraphExec, hNode, &own);
    if (status == CUDA_SUCCESS && own->disabled != !isEnabled) {
        own->disabled = !isEnabled;
        own->version++;
        graph_exec_changed(hGraphExec);
    }
    graph_exec_unlock(hGraphExec);
    return status;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled) {
    CUgraphNode own;
    RETURN_IF(graph_exec_check(hGraphExec));
    if (isEnabled == NULL) return fail_null("isEnabled");
    RETURN_IF(graph_exec_lock(hGraphExec));
    CUresult status = find_switchable(hGraphExec, hNode, &own);
    if (status == CUDA_SUCCESS) *isEnabled = !own->disabled;
    graph_exec_unlock(hGraphExec);
    return status;
}

const struct entry graph_update_entries[] = {
    ENTRY_V2(cuGraphExecUpdate),
    ENTRY_AS(cuGraphExecUpdate_v1, update_v1),
    ENTRY(cuGraphExecNodeSetParams),
    ENTRY_V2(cuGraphExecKernelNodeSetParams),
    ENTRY_AS(cuGraphExecKernelNodeSetParams_v1, set_kernel_v1),
    ENTRY(cuGraphExecMemcpyNodeSetParams),
    ENTRY(cuGraphExecMemsetNodeSetParams),
    ENTRY(cuGraphExecHostNodeSetParams),
    ENTRY(cuGraphExecChildGraphNodeSetParams),
    ENTRY(cuGraphExecEventRecordNodeSetEvent),
    ENTRY(cuGraphExecEventWaitNodeSetEvent),
    ENTRY(cuGraphExecBatchMemOpNodeSetParams),
    ENTRY(cuGraphNodeSetEnabled),
    ENTRY(cuGraphNodeGetEnabled),
    {NULL, NULL, NULL},
};
