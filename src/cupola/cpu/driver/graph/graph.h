/* Graphs: nodes, edges, and what the graph files and capture.c share. */
#ifndef CUPOLA_CPU_DRIVER_GRAPH_H
#define CUPOLA_CPU_DRIVER_GRAPH_H

#include "driver/memory/pool.h"
#include "driver/module/module.h"

/* An operation that a node and the plans made from it hold together. It never changes: a node whose
 * parameters are set gets another one, so launches that are queued keep what they were queued with. */
struct shared_op {
    _Atomic uint32_t references;
    struct op *op;
};

struct edge {
    CUgraphNode node;
    CUgraphEdgeData data;
};

struct edges {
    struct edge *items;
    size_t count, capacity;
};

struct CUgraphNode_st {
    struct handle handle;
    CUgraph graph;
    CUgraphNode next, previous; /* in the graph, in the order of creation */
    uint64_t id;                /* never used again */
    uint64_t origin;            /* id of the node that this one was cloned from; 0: none */
    unsigned local_id;          /* counts within the graph */
    CUgraphNodeType type;
    bool disabled;              /* in an executable graph */
    bool runs_device;           /* an executable's node that has the definition's `device` */
    uint32_t first_launches;    /* enum cpu_launches: of an executable's kernel node when it was made */
    uint64_t version;           /* counts changes of what it does */
    struct device_node *device; /* of a kernel node that kernels can change; NULL: they cannot */
    struct edges dependencies, dependents;
    struct shared_op *op; /* NULL: empty, child graph and conditional nodes */
    CUgraph *bodies;      /* the child graph, or the bodies of a conditional node */
    unsigned body_count;
    CUgraphConditionalHandle condition;
    CUgraphConditionalNodeType condition_type;
    CUcontext condition_context;
    void **kernel_params; /* given out by cuGraphKernelNodeGetParams */
    CUmemPoolProps pool;  /* as an allocation node was asked for */
    CUmemAccessDesc *access;
    size_t access_count;
    uint64_t sink_since; /* graph_note_sink(): orders the nodes that no other depends on */
    CUgraphNode pair;    /* while two graphs are compared: the other graph's node that corresponds to it */
    size_t degree;       /* for walks over the graph */
    bool seen;
};

struct condition {  /* a CUgraphConditionalHandle is the address of one */
    uint32_t value; /* first: device code stores there */
    uint32_t default_value;
    bool has_default, used;
    struct condition *next;
};

struct held_objects { /* by a graph, or for a launch */
    struct held_object {
        CUuserObject object;
        unsigned count;
    } *items;
    size_t count;
};

struct condition_list { /* shared by a graph and its clones: the handles stand in the parameters of kernels */
    _Atomic uint32_t references;
    struct condition *first;
};

struct CUgraph_st {
    struct handle handle;
    unsigned id, next_local_id;
    uint64_t sinks_noted; /* so far */
    CUgraphNode first, last;
    size_t count;
    CUgraphNode parent; /* of a child graph or a body */
    CUgraph root;       /* of the hierarchy; itself when it has no parent */
    bool has_memory_nodes;
    bool abandoned;                    /* capture.c: it was never returned */
    CUgraph next_done_with;            /* capture.c */
    struct condition_list *conditions; /* of a root; NULL: none */
    struct held_objects held;
};

/* ---- graph.c ------------------------------------------------------------------------------------------ */

CUresult graph_check(CUgraph graph);
CUresult graph_node_check(CUgraphNode node);
CUgraph graph_new(CUgraphNode parent);
void graph_release(CUgraph graph);                      /* drops a reference; the nodes go with the last */
CUgraph graph_clone(CUgraph graph, CUgraphNode parent); /* NULL: out of memory */
void graph_node_free(CUgraphNode node);
CUresult cuGraphDestroyNode(CUgraphNode hNode);

/* A node of the graph with those dependencies, not to be seen yet by its type's data. */
CUresult graph_add(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                   size_t count, CUgraphNode *node);
bool edges_append(struct edges *edges, CUgraphNode node, const CUgraphEdgeData *data);
/* No node depends on it from now on: it becomes the last of these in its graph. */
void graph_note_sink(CUgraphNode node);

/* The nodes in an order that respects the edges, as an array to be freed; ties in the order of creation,
 * but waits last, since they may wait for what an independent branch does. NULL with `cycle` set, or
 * without memory. */
CUgraphNode *graph_sorted(CUgraph graph, CUgraphNode *cycle);

struct shared_op *shared_op_new(struct op *op); /* takes the op over, also when it fails */
void shared_op_release(struct shared_op *shared);

/* ---- node.c ------------------------------------------------------------------------------------- */

/* Give a node what it is to do; the op is the node's from then on. */
CUresult graph_node_set_op(CUgraphNode node, struct op *op);
CUresult graph_node_add_op(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *data, size_t count, struct op *op, CUgraphNode *node);

/* The operation for the parameters of a node, for definitions and executables alike; a kernel's attributes beside
 * it. */
CUresult graph_make_op(const CUgraphNodeParams *params, const struct launch_attributes *attributes, struct op **op);
const struct launch_attributes *node_attributes(CUgraphNode node); /* NULL: not a kernel node */
CUresult graph_check_memory_place(CUgraph graph);                  /* whether allocations and frees may be put there */
CUresult graph_add_allocation(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                              const CUmemPoolProps *pool, const CUmemAccessDesc *access, size_t access_count,
                              size_t size, uint64_t *address, CUgraphNode *node);
CUresult graph_add_free(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                        uint64_t address, CUgraphNode *node);

/* ---- device.c ----------------------------------------------------------------------------------- */

CUresult graph_node_make_updatable(CUgraphNode node);       /* a kernel node */
bool graph_has_updatable(CUgraph graph, bool instantiated); /* any such node; or one that an executable has now */
void graph_adopt_updatable(CUgraph clone, CUgraph graph);   /* the clone is the executable's */
void graph_node_leave_device(CUgraphNode node);             /* which is going to be freed */
CUgraphDeviceNode device_node_handle(const struct device_node *node); /* for kernels */
void device_node_release(struct device_node *node);
/* Write what the host has set where kernels see it; refresh: unless that version was written last. */
void device_node_reset(struct device_node *node, const struct op *op, bool enabled, uint64_t version);
void device_node_refresh(struct device_node *node, const struct op *op, bool enabled, uint64_t version);
CUresult device_node_execute(const struct device_node *node, const struct op *op); /* as kernels have changed it */

/* ---- conditional.c ------------------------------------------------------------------------------ */

CUresult graph_add_conditional(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                               size_t count, CUDA_CONDITIONAL_NODE_PARAMS *params, CUgraphNode *node);
bool graph_conditions_are_used(CUgraph root);
struct condition_list *conditions_retain(struct condition_list *list); /* NULL stays NULL */
void conditions_release(struct condition_list *list);
void conditions_reset(struct condition_list *list); /* to their defaults, at a launch */

/* ---- object.c ----------------------------------------------------------------------------------- */

/* One more reference to each object: one is enough, however many the source has. */
bool held_objects_copy(struct held_objects *target, const struct held_objects *source);
void held_objects_release(struct held_objects *held);

/* ---- exec.c, update.c --------------------------------------------------------------------- */

#endif
