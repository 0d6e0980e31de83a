/* Graphs and their edges (CUDA Driver API, "Graph Management"). */
#include "graph.h"

#include <stdlib.h>

static _Atomic uint64_t next_node_id = 1;
static _Atomic unsigned next_graph_id = 1;

/* ---- life --------------------------------------------------------------------------------------------- */

CUresult graph_check(CUgraph graph) {
    if (likely(handle_is_live(graph, HANDLE_GRAPH))) return CUDA_SUCCESS;
    return fail_handle("graph", graph, HANDLE_GRAPH);
}

CUresult graph_node_check(CUgraphNode node) {
    if (likely(handle_is_live(node, HANDLE_GRAPH_NODE))) return CUDA_SUCCESS;
    return fail_handle("graph node", node, HANDLE_GRAPH_NODE);
}

struct shared_op *shared_op_new(struct op *op) {
    struct shared_op *shared = op ? malloc(sizeof *shared) : NULL;
    if (shared) *shared = (struct shared_op){1, op};
    else if (op) op_free(op);
    return shared;
}

void shared_op_release(struct shared_op *shared) {
    if (shared == NULL || atomic_fetch_sub_explicit(&shared->references, 1, memory_order_acq_rel) != 1) return;
    op_free(shared->op);
    free(shared);
}

CUgraph graph_new(CUgraphNode parent) {
    CUgraph graph = handle_new(HANDLE_GRAPH, sizeof *graph);
    if (graph == NULL) return NULL;
    graph->id = atomic_fetch_add(&next_graph_id, 1);
    graph->parent = parent;
    graph->root = parent ? parent->graph->root : graph;
    return graph;
}

void graph_node_free(CUgraphNode node) {
    for (unsigned i = 0; i < node->body_count; i++) {
        handle_kill(node->bodies[i]);
        graph_release(node->bodies[i]);
    }
    graph_node_leave_device(node);
    shared_op_release(node->op);
    free(node->bodies);
    free(node->kernel_params);
    free(node->access);
    free(node->dependencies.items);
    free(node->dependents.items);
    handle_free(HANDLE_GRAPH_NODE, node);
}

void graph_release(CUgraph graph) {
    if (!handle_release(graph)) return;
    for (CUgraphNode node = graph->first, next; node; node = next) {
        next = node->next;
        graph_node_free(node);
    }
    if (graph->root == graph) conditions_release(graph->conditions);
    held_objects_release(&graph->held);
    handle_free(HANDLE_GRAPH, graph);
}

/* ---- nodes and edges ---------------------------------------------------------------------------------- */

bool edges_append(struct edges *edges, CUgraphNode node, const CUgraphEdgeData *data) {
    if (edges->count == edges->capacity) {
        size_t capacity = edges->capacity ? edges->capacity * 2 : 4;
        struct edge *items = realloc(edges->items, capacity * sizeof *items);
        if (items == NULL) return false;
        edges->items = items;
        edges->capacity = capacity;
    }
    edges->items[edges->count++] = (struct edge){node, data ? *data : (CUgraphEdgeData){0}};
    return true;
}

static struct edge *edges_find(struct edges *edges, CUgraphNode node) {
    for (size_t i = 0; i < edges->count; i++)
        if (edges->items[i].node == node) return &edges->items[i];
    return NULL;
}

static void edges_remove(struct edges *edges, CUgraphNode node) {
    struct edge *edge = edges_find(edges, node);
    if (edge == NULL) return;
    memmove(edge, edge + 1, (size_t)(edges->items + edges->count - edge - 1) * sizeof *edge);
    edges->count--;
}

static bool is_linked(CUgraphNode from, CUgraphNode to) {
    return from->dependents.count < to->dependencies.count ? edges_find(&from->dependents, to) != NULL
                                                           : edges_find(&to->dependencies, from) != NULL;
}

static bool link_nodes(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data) {
    if (!edges_append(&to->dependencies, from, data)) return false;
    if (edges_append(&from->dependents, to, data)) return true;
    to->dependencies.count--;
    return false;
}

void graph_note_sink(CUgraphNode node) { node->sink_since = node->graph->sinks_noted++; }

static void unlink_nodes(CUgraphNode from, CUgraphNode to) {
    edges_remove(&from->dependents, to);
    edges_remove(&to->dependencies, from);
    if (from->dependents.count == 0) graph_note_sink(from);
}

static void append_node(CUgraph graph, CUgraphNode node) {
    node->graph = graph;
    node->previous = graph->last;
    if (graph->last) graph->last->next = node;
    else graph->first = node;
    graph->last = node;
    graph->count++;
    node->local_id = graph->next_local_id++;
    graph_note_sink(node);
}

static void remove_node(CUgraphNode node) {
    CUgraph graph = node->graph;
    while (node->dependencies.count) unlink_nodes(node->dependencies.items[0].node, node);
    while (node->dependents.count) unlink_nodes(node, node->dependents.items[0].node);
    if (node->previous) node->previous->next = node->next;
    else graph->first = node->next;
    if (node->next) node->next->previous = node->previous;
    else graph->last = node->previous;
    graph->count--;
}

static CUresult check_edge_data(const CUgraphEdgeData *data) {
    if (data == NULL || (!data->from_port && !data->to_port && !data->type)) return CUDA_SUCCESS;
    if (data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data->to_port == 0) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "the data of an edge is neither all zero nor a programmatic dependency");
}

CUresult graph_add(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                   size_t count, CUgraphNode *node) {
    if (dependencies == NULL && count) return fail_null("dependencies");
    for (size_t i = 0; i < count; i++) {
        RETURN_IF(graph_node_check(dependencies[i]));
        if (dependencies[i]->graph != graph)
            return fail(CUDA_ERROR_INVALID_VALUE, "dependency %zu is a node of another graph", i);
        RETURN_IF(check_edge_data(data ? &data[i] : NULL));
        dependencies[i]->seen = false;
    }
    for (size_t i = 0; i < count; i++) {
        if (dependencies[i]->seen) return fail(CUDA_ERROR_INVALID_VALUE, "dependency %zu is in the list twice", i);
        dependencies[i]->seen = true;
    }
    CUgraphNode made = handle_new(HANDLE_GRAPH_NODE, sizeof *made);
    if (made == NULL) return no_memory("the graph");
    made->id = atomic_fetch_add(&next_node_id, 1);
    made->type = type;
    append_node(graph, made);
    for (size_t i = 0; i < count; i++)
        if (!link_nodes(dependencies[i], made, data ? &data[i] : NULL)) {
            remove_node(made);
            graph_node_free(made);
            return no_memory("the graph");
        }
    *node = made;
    return CUDA_SUCCESS;
}

/* ---- cloning ------------------------------------------------------------------------------------------ */

static bool clone_contents(CUgraphNode copy, CUgraphNode node) {
    copy->origin = node->id;
    copy->condition = node->condition;
    copy->condition_type = node->condition_type;
    copy->condition_context = node->condition_context;
    copy->pool = node->pool;
    copy->version = node->version;
    if (node->op && !(copy->op = shared_op_new(op_copy(node->op->op)))) return false;
    if (node->device && graph_node_make_updatable(copy)) return false;
    if (node->access_count) {
        copy->access = malloc(node->access_count * sizeof *copy->access);
        if (copy->access == NULL) return false;
        memcpy(copy->access, node->access, node->access_count * sizeof *copy->access);
        copy->access_count = node->access_count;
    }
    if (node->body_count) {
        copy->bodies = calloc(node->body_count, sizeof *copy->bodies);
        if (copy->bodies == NULL) return false;
        for (unsigned i = 0; i < node->body_count; i++, copy->body_count++)
            if (!(copy->bodies[i] = graph_clone(node->bodies[i], copy))) return false;
    }
    return true;
}

CUgraph graph_clone(CUgraph graph, CUgraphNode parent) {
    CUgraph clone = graph_new(parent);
    CUgraphNode *copies = malloc((graph->count + 1) * sizeof *copies);
    if (clone == NULL || copies == NULL) goto failed;
    clone->has_memory_nodes = graph->has_memory_nodes;
    if (parent == NULL) clone->conditions = conditions_retain(graph->root->conditions);
    size_t n = 0;
    for (CUgraphNode node = graph->first; node; node = node->next) {
        node->degree = n;
        if (graph_add(clone, node->type, NULL, NULL, 0, &copies[n])) goto failed;
        if (!clone_contents(copies[n++], node)) goto failed;
    }
    for (CUgraphNode node = graph->first; node; node = node->next)
        for (size_t i = 0; i < node->dependencies.count; i++) {
            struct edge *edge = &node->dependencies.items[i];
            if (!link_nodes(copies[edge->node->degree], copies[node->degree], &edge->data)) goto failed;
        }
    for (CUgraphNode node = graph->first; node; node = node->next) copies[node->degree]->sink_since = node->sink_since;
    clone->sinks_noted = graph->sinks_noted;
    if (!held_objects_copy(&clone->held, &graph->held)) goto failed;
    free(copies);
    return clone;
failed:
    free(copies);
    if (clone) graph_release(clone);
    return NULL;
}

/* ---- order -------------------------------------------------------------------------------------------- */

/* A heap of nodes that are ready, the one to take next first. */
struct ready {
    CUgraphNode *items;
    size_t count;
};

static bool waits(CUgraphNode node) {
    return node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT || node->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
}

static bool comes_before(CUgraphNode a, CUgraphNode b) {
    return waits(a) != waits(b) ? waits(b) : a->local_id < b->local_id;
}

static void ready_push(struct ready *ready, CUgraphNode node) {
    size_t i = ready->count++;
    for (; i && comes_before(node, ready->items[(i - 1) / 2]); i = (i - 1) / 2)
        ready->items[i] = ready->items[(i - 1) / 2];
    ready->items[i] = node;
}

static CUgraphNode ready_pop(struct ready *ready) {
    CUgraphNode first = ready->items[0], last = ready->items[--ready->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= ready->count) break;
        if (child + 1 < ready->count && comes_before(ready->items[child + 1], ready->items[child])) child++;
        if (!comes_before(ready->items[child], last)) break;
        ready->items[i] = ready->items[child];
        i = child;
    }
    ready->items[i] = last;
    return first;
}

CUgraphNode *graph_sorted(CUgraph graph, CUgraphNode *cycle) {
    *cycle = NULL;
    CUgraphNode *sorted = malloc((graph->count + 1) * sizeof *sorted);
    struct ready ready = {malloc((graph->count + 1) * sizeof *ready.items), 0};
    size_t done = 0;
    if (sorted == NULL || ready.items == NULL) goto failed;
    for (CUgraphNode node = graph->first; node; node = node->next)
        if ((node->degree = node->dependencies.count) == 0) ready_push(&ready, node);
    while (ready.count) {
        CUgraphNode node = sorted[done++] = ready_pop(&ready);
        for (size_t i = 0; i < node->dependents.count; i++)
            if (--node->dependents.items[i].node->degree == 0) ready_push(&ready, node->dependents.items[i].node);
    }
    if (done == graph->count) {
        free(ready.items);
        return sorted;
    }
    for (CUgraphNode node = graph->first; node && *cycle == NULL; node = node->next)
        if (node->degree) *cycle = node;
failed:
    free(sorted);
    free(ready.items);
    return NULL;
}

/* ---- entry points: graphs ----------------------------------------------------------------------------- */

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
    RETURN_IF(enter());
    if (phGraph == NULL) return fail_null("phGraph");
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "the flags of cuGraphCreate must be 0, not %u", flags);
    CUgraph graph = graph_new(NULL);
    if (graph == NULL) return no_memory("the graph");
    *phGraph = graph;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph hGraph) {
    RETURN_IF(enter());
    RETURN_IF(graph_check(hGraph));
    if (hGraph->parent)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the graph belongs to a child graph node or conditional node, and is destroyed with it");
    if (!handle_kill(hGraph)) return graph_check(hGraph);
    for (CUgraphNode node = hGraph->first; node; node = node->next) handle_kill(node);
    graph_release(hGraph);
    return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
    RETURN_IF(enter());
    if (phGraphClone == NULL) return fail_null("phGraphClone");
    RETURN_IF(graph_check(originalGraph));
    if (originalGraph->has_memory_nodes)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "a graph with allocation or free nodes cannot be cloned");
    CUgraph clone = graph_clone(originalGraph, NULL);
    if (clone == NULL) return no_memory("the graph");
    *phGraphClone = clone;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetId(CUgraph hGraph, unsigned int *graphId) {
    RETURN_IF(enter());
    RETURN_IF(graph_check(hGraph));
    if (graphId == NULL) return fail_null("graphId");
    *graphId = hGraph->id;
    return CUDA_SUCCESS;
}

/* ---- entry points: lists ------------------------------------------------------------------------------ */

/* The driver's rule for lists: a NULL array asks for the count; otherwise *count is the room, the rest of
 * the array is cleared, and *count becomes the number stored. */
static CUresult list_nodes(CUgraph graph, bool roots, CUgraphNode *nodes, size_t *count) {
    RETURN_IF(enter());
    RETURN_IF(graph_check(graph));
    if (count == NULL) return fail_null("numNodes");
    size_t found = 0, room = nodes ? *count : 0;
    for (CUgraphNode node = graph->first; node; node = node->next) {
        if (roots && node->dependencies.count) continue;
        if (found < room) nodes[found] = node;
        found++;
    }
    for (size_t i = found; i < room; i++) nodes[i] = NULL;
    if (nodes == NULL || found < room) *count = found;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
    return list_nodes(hGraph, false, nodes, numNodes);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes) {
    return list_nodes(hGraph, true, rootNodes, numRootNodes);
}

static bool has_data(const struct edge *edge) { return edge->data.from_port || edge->data.to_port || edge->data.type; }

static CUresult lossy(void) {
    return fail(CUDA_ERROR_LOSSY_QUERY, "an edge has data (ports, type): ask for the edge data too");
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
                         size_t *numEdges) {
    RETURN_IF(enter());
    RETURN_IF(graph_check(hGraph));
    if (numEdges == NULL) return fail_null("numEdges");
    if ((from == NULL) != (to == NULL))
        return fail(CUDA_ERROR_INVALID_VALUE, "from and to must both be given or both be null");
    size_t found = 0, room = from ? *numEdges : 0;
    for (CUgraphNode node = hGraph->first; node; node = node->next)
        for (size_t i = 0; i < node->dependencies.count; i++, found++) {
            const struct edge *edge = &node->dependencies.items[i];
            if (found >= room) continue;
            if (edgeData) edgeData[found] = edge->data;
            else if (has_data(edge)) return lossy();
            from[found] = edge->node;
            to[found] = node;
        }
    for (size_t i = found; i < room; i++) {
        from[i] = to[i] = NULL;
        if (edgeData) edgeData[i] = (CUgraphEdgeData){0};
    }
    if (from == NULL || found < room) *numEdges = found;
    return CUDA_SUCCESS;
}

static CUresult list_edges(CUgraphNode node, bool dependents, CUgraphNode *nodes, CUgraphEdgeData *data,
                           size_t *count) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(node));
    if (count == NULL) return fail_null("the number of nodes");
    const struct edges *edges = dependents ? &node->dependents : &node->dependencies;
    size_t room = nodes ? *count : 0;
    for (size_t i = 0; i < room; i++) {
        bool there = i < edges->count;
        if (there && data == NULL && has_data(&edges->items[i])) return lossy();
        nodes[i] = there ? edges->items[i].node : NULL;
        if (data) data[i] = there ? edges->items[i].data : (CUgraphEdgeData){0};
    }
    if (nodes == NULL || edges->count < room) *count = edges->count;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                    size_t *numDependencies) {
    return list_edges(hNode, false, dependencies, edgeData, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
                                      size_t *numDependentNodes) {
    return list_edges(hNode, true, dependentNodes, edgeData, numDependentNodes);
}

/* ---- entry points: changing edges --------------------------------------------------------------------- */

static CUresult check_pairs(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    RETURN_IF(enter());
    RETURN_IF(graph_check(graph));
    if (count && (from == NULL || to == NULL)) return fail_null("from or to");
    for (size_t i = 0; i < count; i++) {
        RETURN_IF(graph_node_check(from[i]));
        RETURN_IF(graph_node_check(to[i]));
        if (from[i]->graph != graph || to[i]->graph != graph)
            return fail(CUDA_ERROR_INVALID_VALUE, "pair %zu has a node of another graph", i);
        if (from[i] == to[i]) return fail(CUDA_ERROR_INVALID_VALUE, "pair %zu makes a node depend on itself", i);
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *edgeData, size_t numDependencies) {
    RETURN_IF(check_pairs(hGraph, from, to, numDependencies));
    for (size_t i = 0; i < numDependencies; i++) { /* as on a GPU, the edges before a bad one stay */
        const CUgraphEdgeData *data = edgeData ? &edgeData[i] : NULL;
        RETURN_IF(check_edge_data(data));
        if (is_linked(from[i], to[i])) return fail(CUDA_ERROR_INVALID_VALUE, "the edge of pair %zu exists already", i);
        if (!link_nodes(from[i], to[i], data)) return no_memory("the graph");
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edgeData, size_t numDependencies) {
    (void)edgeData; /* two nodes have one edge at most */
    RETURN_IF(check_pairs(hGraph, from, to, numDependencies));
    if (hGraph->has_memory_nodes)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "edges of a graph with allocation or free nodes cannot be removed");
    for (size_t i = 0; i < numDependencies; i++)
        if (!is_linked(from[i], to[i]))
            return fail(CUDA_ERROR_INVALID_VALUE, "pair %zu is not an edge of the graph", i);
    for (size_t i = 0; i < numDependencies; i++) unlink_nodes(from[i], to[i]);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(hNode));
    if (hNode->graph->has_memory_nodes)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "nodes of a graph with allocation or free nodes cannot be destroyed");
    if (hNode->device) return fail(CUDA_ERROR_NOT_SUPPORTED, "a device-updatable kernel node cannot be destroyed");
    if (!handle_kill(hNode)) return graph_node_check(hNode);
    remove_node(hNode);
    graph_node_free(hNode);
    return CUDA_SUCCESS;
}

/* ---- entry points: about nodes ------------------------------------------------------------------------ */

CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
    RETURN_IF(enter());
    if (phNode == NULL) return fail_null("phNode");
    RETURN_IF(graph_node_check(hOriginalNode));
    RETURN_IF(graph_check(hClonedGraph));
    for (CUgraphNode node = hClonedGraph->first; node; node = node->next)
        if (node->origin == hOriginalNode->id) {
            *phNode = node;
            return CUDA_SUCCESS;
        }
    return fail(CUDA_ERROR_INVALID_VALUE, "the graph has no clone of this node");
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(hNode));
    if (type == NULL) return fail_null("type");
    *type = hNode->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetContainingGraph(CUgraphNode hNode, CUgraph *phGraph) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(hNode));
    if (phGraph == NULL) return fail_null("phGraph");
    *phGraph = hNode->graph;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetLocalId(CUgraphNode hNode, unsigned int *nodeId) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(hNode));
    if (nodeId == NULL) return fail_null("nodeId");
    *nodeId = hNode->local_id;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetToolsId(CUgraphNode hNode, unsigned long long *toolsNodeId) {
    RETURN_IF(enter());
    RETURN_IF(graph_node_check(hNode));
    if (toolsNodeId == NULL) return fail_null("toolsNodeId");
    *toolsNodeId = hNode->id;
    return CUDA_SUCCESS;
}

/* ---- older forms, without the data of edges ----------------------------------------------------------- */

static CUresult get_edges_v1(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
    return cuGraphGetEdges(graph, from, to, NULL, count);
}
static CUresult get_dependencies_v1(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
    return cuGraphNodeGetDependencies(node, nodes, NULL, count);
}
static CUresult get_dependents_v1(CUgraphNode node, CUgraphNode *nodes, size_t *count) {
    return cuGraphNodeGetDependentNodes(node, nodes, NULL, count);
}
static CUresult add_dependencies_v1(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return cuGraphAddDependencies(graph, from, to, NULL, count);
}
static CUresult remove_dependencies_v1(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return cuGraphRemoveDependencies(graph, from, to, NULL, count);
}

const struct entry graph_entries[] = {
    ENTRY(cuGraphCreate),
    ENTRY(cuGraphDestroy),
    ENTRY(cuGraphClone),
    ENTRY(cuGraphGetId),
    ENTRY(cuGraphGetNodes),
    ENTRY(cuGraphGetRootNodes),
    ENTRY_V2(cuGraphGetEdges),
    ENTRY_AS(cuGraphGetEdges_v1, get_edges_v1),
    ENTRY_V2(cuGraphNodeGetDependencies),
    ENTRY_AS(cuGraphNodeGetDependencies_v1, get_dependencies_v1),
    ENTRY_V2(cuGraphNodeGetDependentNodes),
    ENTRY_AS(cuGraphNodeGetDependentNodes_v1, get_dependents_v1),
    ENTRY_V2(cuGraphAddDependencies),
    ENTRY_AS(cuGraphAddDependencies_v1, add_dependencies_v1),
    ENTRY_V2(cuGraphRemoveDependencies),
    ENTRY_AS(cuGraphRemoveDependencies_v1, remove_dependencies_v1),
    ENTRY(cuGraphDestroyNode),
    ENTRY(cuGraphNodeFindInClone),
    ENTRY(cuGraphNodeGetType),
    ENTRY(cuGraphNodeGetContainingGraph),
    ENTRY(cuGraphNodeGetLocalId),
    ENTRY(cuGraphNodeGetToolsId),
    {NULL, NULL, NULL},
};
