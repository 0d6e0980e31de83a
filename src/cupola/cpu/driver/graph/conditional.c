/* Conditional nodes (CUDA Driver API, "Graph Management"; CUDA C++ Programming Guide, "Conditional Graph
 * Nodes").
 *
 * A handle is the address of a value in device memory of the CPU device, so that cudaGraphSetConditional()
 * in a kernel is a store. It stays the same in clones and executables, as it stands in the parameters of
 * kernels. */
#include "graph.h"

#include <stdlib.h>

/* ---- conditions --------------------------------------------------------------------------------------- */

static struct condition *find(CUgraph root, CUgraphConditionalHandle handle) {
    struct condition *c = root->conditions ? root->conditions->first : NULL;
    while (c && (uint64_t)c != handle) c = c->next;
    return c;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
                                        unsigned int defaultLaunchValue, unsigned int flags) {
    CUcontext context;
    RETURN_IF(enter());
    RETURN_IF(graph_check(hGraph));
    RETURN_IF(context_find(ctx, &context));
    if (pHandle_out == NULL) return fail_null("pHandle_out");
    if (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)
        return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0 or CU_GRAPH_COND_ASSIGN_DEFAULT, not %#x", flags);
    CUgraph root = hGraph->root;
    if (root->conditions == NULL) {
        root->conditions = calloc(1, sizeof *root->conditions);
        if (root->conditions == NULL) return no_memory("the condition");
        root->conditions->references = 1;
    }
    uint64_t address;
    if (cpu_memory_allocate(CPU_MEMORY_HOST, CPU_MEMORY_MODULE, sizeof(struct condition), root->conditions, &address))
        return no_memory("the condition");
    struct condition *c = (struct condition *)address;
    /* Without CU_GRAPH_COND_ASSIGN_DEFAULT the default counts for nothing, and what kernels have set stays. */
    *c = (struct condition){.value = 0,
                            .default_value = defaultLaunchValue,
                            .has_default = flags & CU_GRAPH_COND_ASSIGN_DEFAULT,
                            .next = root->conditions->first};
    root->conditions->first = c;
    *pHandle_out = address;
    return CUDA_SUCCESS;
}

struct condition_list *conditions_retain(struct condition_list *list) {
    if (list) atomic_fetch_add(&list->references, 1);
    return list;
}

void conditions_release(struct condition_list *list) {
    if (list == NULL || atomic_fetch_sub(&list->references, 1) != 1) return;
    for (struct condition *c = list->first, *next; c; c = next) {
        next = c->next;
        (void)cpu_memory_free((uint64_t)c);
    }
    free(list);
}

bool graph_conditions_are_used(CUgraph root) {
    for (struct condition *c = root->conditions ? root->conditions->first : NULL; c; c = c->next)
        if (!c->used) return false;
    return true;
}

void conditions_reset(struct condition_list *list) {
    for (struct condition *c = list ? list->first : NULL; c; c = c->next)
        if (c->has_default) __atomic_store_n(&c->value, c->default_value, __ATOMIC_RELAXED);
}

/* ---- nodes -------------------------------------------------------------------------------------------- */

static CUresult check_size(const CUDA_CONDITIONAL_NODE_PARAMS *p) {
    switch ((int)p->type) {
        case CU_GRAPH_COND_TYPE_IF:
            if (p->size == 1 || p->size == 2) return CUDA_SUCCESS;
            return fail(CUDA_ERROR_INVALID_VALUE, "an IF node has 1 or 2 bodies, not %u", p->size);
        case CU_GRAPH_COND_TYPE_WHILE:
            if (p->size == 1) return CUDA_SUCCESS;
            return fail(CUDA_ERROR_INVALID_VALUE, "a WHILE node has 1 body, not %u", p->size);
        case CU_GRAPH_COND_TYPE_SWITCH:
            if (p->size) return CUDA_SUCCESS;
            return fail(CUDA_ERROR_INVALID_VALUE, "a SWITCH node has at least 1 body");
        default: return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a type of conditional node", (int)p->type);
    }
}

CUresult graph_add_conditional(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                               size_t count, CUDA_CONDITIONAL_NODE_PARAMS *params, CUgraphNode *node) {
    CUgraphNode made;
    CUcontext context;
    if (params->ctx == NULL)
        return fail(CUDA_ERROR_INVALID_CONTEXT, "a conditional node needs ctx, the context in which it runs");
    RETURN_IF(context_find(params->ctx, &context));
    RETURN_IF(check_size(params));
    struct condition *c = find(graph->root, params->handle);
    if (c == NULL) return fail(CUDA_ERROR_INVALID_VALUE, "the conditional handle was not made for this graph");
    if (c->used) return fail(CUDA_ERROR_INVALID_VALUE, "the conditional handle drives another node already");
    CUgraph *bodies = calloc(params->size, sizeof *bodies);
    if (bodies == NULL) return no_memory("the condition");
    CUresult status = graph_node_add_op(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, dependencies, data, count, NULL, &made);
    if (status) {
        free(bodies);
        return status;
    }
    made->bodies = bodies;
    made->condition = params->handle;
    made->condition_type = params->type;
    made->condition_context = params->ctx;
    for (unsigned i = 0; i < params->size; i++, made->body_count++)
        if ((bodies[i] = graph_new(made)) == NULL) {
            (void)cuGraphDestroyNode(made);
            return no_memory("the condition");
        }
    c->used = true;
    params->phGraph_out = bodies;
    *node = made;
    return CUDA_SUCCESS;
}

const struct entry graph_conditional_entries[] = {
    ENTRY(cuGraphConditionalHandleCreate),
    {NULL, NULL, NULL},
};
