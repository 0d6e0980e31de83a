/* Executable graphs: what exec.c and update.c share. */
#ifndef CUPOLA_CPU_DRIVER_GRAPH_EXEC_H
#define CUPOLA_CPU_DRIVER_GRAPH_EXEC_H

#include "above.h"
#include "graph.h"

struct clone_of { /* a node of the definition, and the executable's own */
    uint64_t origin;
    CUgraphNode node;
};

struct CUgraphExec_st {
    struct handle handle; /* references: the user's, and one for each queued launch */
    unsigned id;
    cuuint64_t flags;
    pthread_mutex_t lock;    /* the clone, the plan and the last launch */
    CUgraph graph;           /* a clone of the definition */
    struct clone_of *clones; /* of all its nodes, sorted by origin */
    size_t clone_count;
    CUcontext launching; /* whose kernels launched graphs when it was made; NULL: none did */
    struct plan *plan;   /* NULL: to be made again at the next launch */
    /* Where the last launch is queued: the next one, or an upload, comes behind it. NULL: there was none. */
    CUstream last_stream;
    uint64_t last_sequence;
    /* For launches by kernels (device_side/graph.c). */
    pthread_mutex_t device_lock;
    struct plan *uploaded; /* what such a launch runs; NULL: nothing was uploaded */
    bool busy;             /* it runs, or is going to */
};

struct plan;
/* Carry out what a plan has, in a context, on this thread. Errors are the context's. */
CUresult plan_run(struct plan *plan, const struct op *op, CUcontext context);
void plan_retain(struct plan *plan);
void plan_release(struct plan *plan);
CUgraphExec plan_exec(const struct plan *plan);
bool copies_pageable(const struct op *op);
bool plan_launches(const struct plan *plan); /* its kernels launch graphs, or it is one that kernels may launch */
static inline bool exec_is_for_device(CUgraphExec exec) {
    return exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
}
void graph_exec_release(CUgraphExec exec);
CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream);

/* Which of the executable's nodes stands for a node of the definition. */
CUresult graph_exec_find(CUgraphExec exec, CUgraphNode node, CUgraphNode *own);
CUresult graph_exec_check(CUgraphExec exec);
/* With a reference, so that another thread may destroy it meanwhile. */
CUresult graph_exec_lock(CUgraphExec exec);
void graph_exec_unlock(CUgraphExec exec);
/* The executable has changed. With the lock. */
CUresult graph_exec_index(CUgraphExec exec);
void graph_exec_changed(CUgraphExec exec);

/* ---- limits.c ------------------------------------------------------------------------------------------ */

struct change {
    CUgraphExecUpdateResult result;
    const char *text;
};

/* Whether a node of an executable may get another operation, and the attributes of another node. */
struct change graph_compare_ops(CUgraphExec exec, CUgraphNode node, const struct op *after);
struct change graph_compare_attributes(CUgraphExec exec, CUgraphNode node, CUgraphNode other);
/* Note what the nodes of a new executable launch; a larger frame of theirs raises the limit of stacks. */
void graph_note_launches(CUgraphExec exec, CUgraph graph);
/* A node that is in another context than those before it, where that is not allowed; NULL: none. */
CUgraphNode graph_find_other_context(CUgraph graph, bool on_device, CUcontext *context);

#endif
