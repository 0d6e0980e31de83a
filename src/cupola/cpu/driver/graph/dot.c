/* A graph as text in the DOT language of Graphviz (CUDA Driver API, "Graph Management":
 * cuGraphDebugDotPrint). */
#include "graph.h"

#include <errno.h>
#include <stdio.h>

static const char *const type_names[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = "KERNEL",         [CU_GRAPH_NODE_TYPE_MEMCPY] = "MEMCPY",
    [CU_GRAPH_NODE_TYPE_MEMSET] = "MEMSET",         [CU_GRAPH_NODE_TYPE_HOST] = "HOST",
    [CU_GRAPH_NODE_TYPE_GRAPH] = "CHILD GRAPH",     [CU_GRAPH_NODE_TYPE_EMPTY] = "EMPTY",
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "EVENT WAIT", [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "EVENT RECORD",
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "MEM ALLOC",   [CU_GRAPH_NODE_TYPE_MEM_FREE] = "MEM FREE",
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "MEM OP",   [CU_GRAPH_NODE_TYPE_CONDITIONAL] = "CONDITIONAL",
};

/* The flag that asks for the parameters of a type of node. */
static const unsigned type_flags[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_MEMCPY] = CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_MEMSET] = CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_HOST] = CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS,
    [CU_GRAPH_NODE_TYPE_CONDITIONAL] = CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS,
};

static void print_params(FILE *file, CUgraphNode node) {
    const struct op *op = node->op ? node->op->op : NULL;
    switch ((int)node->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            const cpu_launch *l = &op->kernel.launch;
            fprintf(file, "\\ngrid %u x %u x %u, block %u x %u x %u, shared %u", l->grid[0], l->grid[1], l->grid[2],
                    l->block[0], l->block[1], l->block[2], l->dynamic_shared);
            break;
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            fprintf(file, "\\n%p -> %p, %zu x %zu x %zu bytes", (const void *)op->copy.source, (void *)op->copy.target,
                    op->copy.width, op->copy.height, op->copy.depth);
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            fprintf(file, "\\n%p, %zu x %zu elements of %u bytes, value %#x", (void *)op->fill.target, op->fill.width,
                    op->fill.height, op->fill.element, op->fill.value);
            break;
        case CU_GRAPH_NODE_TYPE_HOST:
            fprintf(file, "\\n%p(%p)", (void *)(uintptr_t)op->host.function, op->host.data);
            break;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT: fprintf(file, "\\n%p", (void *)op->wait.event); break;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: fprintf(file, "\\n%p", (void *)op->record.event); break;
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: fprintf(file, "\\n%u operations", op->values.count); break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            fprintf(file, "\\n%#llx, %llu bytes", (unsigned long long)op->memory.address,
                    (unsigned long long)op->memory.size);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_FREE: fprintf(file, "\\n%#llx", (unsigned long long)op->memory.address); break;
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            fprintf(file, "\\nhandle %#llx, %u bodies", (unsigned long long)node->condition, node->body_count);
            break;
        default: break;
    }
}

static void print_graph(FILE *file, CUgraph graph, unsigned flags) {
    fprintf(file, "subgraph cluster_%u {\nlabel=\"graph_%u\" graph[style=\"dashed\"];\n", graph->id, graph->id);
    for (CUgraphNode node = graph->first; node; node = node->next) {
        bool known = (size_t)node->type < sizeof type_names / sizeof *type_names && type_names[node->type];
        fprintf(file, "\"graph_%u_node_%u\"[style=\"solid\" shape=\"rectangle\" label=\"%u\\n%s", graph->id,
                node->local_id, node->local_id, known ? type_names[node->type] : "OTHER");
        if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
            fprintf(file, "\\n%s", cpu_kernel_name(node->op->op->kernel.launch.kernel));
        if (flags & CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES) fprintf(file, "\\nhandle %p", (void *)node);
        if (known && flags & (type_flags[node->type] | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) print_params(file, node);
        fprintf(file, "\"];\n");
    }
    for (CUgraphNode node = graph->first; node; node = node->next)
        for (size_t i = 0; i < node->dependencies.count; i++)
            fprintf(file, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\";\n", graph->id,
                    node->dependencies.items[i].node->local_id, graph->id, node->local_id);
    for (CUgraphNode node = graph->first; node; node = node->next)
        for (unsigned i = 0; i < node->body_count; i++) {
            print_graph(file, node->bodies[i], flags);
            if (node->bodies[i]->first)
                fprintf(file, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\"[style=\"dotted\"];\n", graph->id,
                        node->local_id, node->bodies[i]->id, node->bodies[i]->first->local_id);
        }
    fprintf(file, "}\n");
}

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags) {
    RETURN_IF(enter());
    RETURN_IF(graph_check(hGraph));
    if (path == NULL) return fail_null("path");
    FILE *file = fopen(path, "we");
    if (file == NULL) return fail(CUDA_ERROR_INVALID_VALUE, "%s cannot be written: %s", path, strerror(errno));
    fprintf(file, "digraph dot {\n");
    print_graph(file, hGraph, flags);
    fprintf(file, "}\n");
    bool wrong = ferror(file) != 0;
    if (fclose(file) || wrong)
        return fail(CUDA_ERROR_OPERATING_SYSTEM, "%s could not be written: %s", path, strerror(errno));
    return CUDA_SUCCESS;
}

const struct entry graph_dot_entries[] = {
    ENTRY(cuGraphDebugDotPrint),
    {NULL, NULL, NULL},
};
