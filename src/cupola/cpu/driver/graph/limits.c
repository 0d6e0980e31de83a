/* What may change in an executable graph (CUDA Driver API, cuGraphExecUpdate, cuGraphExecKernelNodeSetParams), and in which
 * contexts the nodes of graphs may be that launch graphs, or that kernels launch.
 *
 * The rules were recorded on an H200 (driver 580.159; tests/cpu/driver/graph/changes.txt), whose driver is stricter than its
 * documentation: what was given room at instantiation must be enough for what comes later. */
#include "exec.h"

static uint32_t launches_of(const struct op *op) { return op->kernel.function->image_kernel->info->launches; }

static CUcontext context_of_function(const struct op *op) { return op->kernel.function->module->context; }

/* Of device memory; NULL: another kind of memory, or memory that belongs to no context. */
static CUcontext context_of_memory(const char *address) {
    cpu_allocation found;
    if (!cpu_memory_find((uint64_t)address, &found) || !handle_was_live(found.owner, HANDLE_CONTEXT)) return NULL;
    return found.owner;
}

/* ---- instantiation ------------------------------------------------------------------------------------------------- */

void graph_note_launches(CUgraphExec exec, CUgraph graph) {
    for (CUgraphNode node = graph->first; node; node = node->next) {
        if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
            node->first_launches = launches_of(node->op->op);
            if (node->first_launches & CPU_LAUNCHES_GRAPHS) exec->launching = context_of_function(node->op->op);
            context_note_kernels(context_of_function(node->op->op), 0,
                                 node->op->op->kernel.function->image_kernel->info->local_bytes);
        }
        for (unsigned i = 0; i < node->body_count; i++) graph_note_launches(exec, node->bodies[i]);
    }
}

/* The context that counts, or NULL. That of a copy is the current one. */
static CUcontext context_that_counts(CUgraphNode node, bool on_device) {
    const struct op *op = node->op ? node->op->op : NULL;
    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
        return on_device || launches_of(op) & CPU_LAUNCHES_GRAPHS ? context_of_function(op) : NULL;
    if (!on_device) return NULL;
    if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) return context_of_memory(op->fill.target);
    CUcontext current = node->type == CU_GRAPH_NODE_TYPE_MEMCPY ? current_context() : NULL;
    return current ? current->owner : NULL;
}

CUgraphNode graph_find_other_context(CUgraph graph, bool on_device, CUcontext *context) {
    for (CUgraphNode node = graph->first; node; node = node->next) {
        CUcontext own = context_that_counts(node, on_device);
        if (own && *context && own != *context) return node;
        if (own) *context = own;
        for (unsigned i = 0; i < node->body_count; i++) {
            CUgraphNode found = graph_find_other_context(node->bodies[i], on_device, context);
            if (found) return found;
        }
    }
    return NULL;
}

/* ---- changes --------------------------------------------------------------------------------------------------------- */

#define ALLOWED (struct change){CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL}
#define PARAMETERS(text) (struct change){CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, text}
#define FUNCTION(text) (struct change){CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, text}

static struct change compare_kernels(CUgraphExec exec, CUgraphNode node, const struct op *before,
                                     const struct op *after) {
    CUcontext context = context_of_function(after);
    uint32_t added = launches_of(after) & ~node->first_launches;
    if (context_of_function(before) != context) return FUNCTION("a kernel of another context was given to a node");
    if (added & CPU_LAUNCHES_KERNELS)
        return FUNCTION("a kernel that launches kernels was given to a node whose first kernel does not");
    if (added & CPU_LAUNCHES_UPDATES_NODES)
        return FUNCTION("a kernel that updates nodes of graphs was given to a node whose first kernel does not");
    if (added & CPU_LAUNCHES_GRAPHS && !exec_is_for_device(exec) && exec->launching != context)
        return FUNCTION("a kernel that launches graphs was given to a graph that had none when it was instantiated");
    return ALLOWED;
}

static bool same_context(const char *a, const char *b) {
    CUcontext x = context_of_memory(a), y = context_of_memory(b);
    return x == y || !x || !y;
}

static bool has_rows(const struct copy *copy) { return copy->height > 1 || copy->depth > 1; }

static bool same_box(const struct copy *a, const struct copy *b) {
    return a->width == b->width && a->height == b->height && a->depth == b->depth &&
           a->source_pitch == b->source_pitch && a->source_slice == b->source_slice &&
           a->target_pitch == b->target_pitch && a->target_slice == b->target_slice;
}

static struct change compare_copies(CUgraphExec exec, const struct op *before, const struct op *after) {
    const struct copy *a = &before->copy, *b = &after->copy;
    if (exec_is_for_device(exec) && copies_pageable(after))
        return PARAMETERS("a copy of pageable memory was given to a graph for launches from the device");
    if (a->form == NULL || b->form == NULL) return ALLOWED;
    /* As the program gave them: unified memory is a kind of its own, wherever it is. */
    if (a->form->srcMemoryType != b->form->srcMemoryType || a->form->dstMemoryType != b->form->dstMemoryType)
        return PARAMETERS("a copy between other kinds of memory was given to a node");
    if ((has_rows(a) || has_rows(b)) && !same_box(a, b))
        return PARAMETERS("of a copy of rows only the addresses can change, and others cannot become copies of rows");
    if (!exec_is_for_device(exec) && !(same_context(a->source, b->source) && same_context(a->target, b->target)))
        return PARAMETERS("a copy of memory of another context was given to a node");
    return ALLOWED;
}

static struct change compare_fills(const struct fill *a, const struct fill *b) {
    bool rows = a->height > 1 || b->height > 1;
    if (rows && (a->width != b->width || a->height != b->height || a->pitch != b->pitch || a->element != b->element))
        return PARAMETERS("of a fill of rows only the address and the value can change");
    if (!same_context(a->target, b->target))
        return PARAMETERS("a fill of memory of another context was given to a node");
    return ALLOWED;
}

struct change graph_compare_ops(CUgraphExec exec, CUgraphNode node, const struct op *after) {
    const struct op *before = node->op->op;
    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) return compare_kernels(exec, node, before, after);
    if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) return compare_copies(exec, before, after);
    if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) return compare_fills(&before->fill, &after->fill);
    if (node->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && !values_are_alike(before, after))
        return PARAMETERS(
            "an executable graph keeps the context, the number and the types of the memory operations of a node: "
            "addresses, values and what is waited for can change");
    return ALLOWED;
}

struct change graph_compare_attributes(CUgraphExec exec, CUgraphNode node, CUgraphNode other) {
    const struct launch_attributes *a = node_attributes(node), *b = node_attributes(other);
    if (a == NULL || b == NULL) return ALLOWED;
    if (a->cooperative != b->cooperative)
        return (struct change){CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,
                               "a cooperative kernel cannot become one that is not, nor the reverse"};
    if (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY &&
        (a->has_priority != b->has_priority || (a->has_priority && a->priority != b->priority)))
        return (struct change){CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,
                               "the priority of a node cannot change in a graph that goes by the priorities of nodes"};
    return ALLOWED;
}
