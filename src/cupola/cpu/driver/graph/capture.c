/* Stream capture: streams that make graphs instead of doing their work (CUDA Driver API, "Stream
 * Management"; CUDA C++ Programming Guide, "Creating a Graph Using Stream Capture").
 *
 * A capture belongs to the stream it was begun on, its origin. Each stream that takes part has a set of
 * nodes that its next node will depend on. An event that is recorded keeps a copy of the set; a stream
 * that waits for the event takes the copy into its own set, and takes part in the capture from then on.
 * One lock guards all captures: capturing is bookkeeping, not the work that has to be fast. */
#include "graph.h"

#include "driver/base/caller.h"
#include "driver/base/origin.h"

#include <stdlib.h>

CUresult cuGraphDestroy(CUgraph hGraph);

struct node_set {
    CUgraphNode *nodes;
    CUgraphEdgeData *data;
    size_t count;
};

struct capture {
    uint32_t references; /* the participants, and events recorded in it */
    uint64_t id;
    CUgraph graph;       /* referenced; NULL when it has ended */
    bool graph_is_users; /* cuStreamBeginCaptureToGraph */
    bool invalid, ended;
    CUstreamCaptureMode mode;
    const void *thread; /* that began it */
    CUstream origin;
    struct participant *participants;
    struct capture *next; /* among those that have not ended */
};

struct participant {
    struct participant *next;
    struct capture *capture;
    CUstream stream; /* NULL: destroyed, but what it captured must have been joined */
    struct node_set set;
};

struct recorded { /* what CUevent_st.capture points to */
    struct capture *capture;
    struct node_set set;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *active;
static _Atomic int active_count;
static uint64_t next_id = 1;
static CUgraph done_with;         /* graphs to release when the lock has been given back */
static __thread char this_thread; /* its address tells threads apart */

/* Releasing a graph may call the destructors of user objects, which may wait for whatever another thread
 * holds while it waits for the lock (Python's own lock). So that is done outside of it. */
static void unlock(void) {
    CUgraph graph = done_with;
    done_with = NULL;
    pthread_mutex_unlock(&lock);
    while (graph) {
        CUgraph next = graph->next_done_with;
        if (graph->abandoned) (void)cuGraphDestroy(graph);
        graph_release(graph);
        graph = next;
    }
}

/* ---- sets of nodes ------------------------------------------------------------------------------------ */

static void set_free(struct node_set *set) {
    free(set->nodes);
    free(set->data);
    *set = (struct node_set){0};
}

static bool set_reserve(struct node_set *set, size_t count) {
    CUgraphNode *nodes = realloc(set->nodes, (count + 1) * sizeof *nodes);
    if (nodes) set->nodes = nodes;
    CUgraphEdgeData *data = realloc(set->data, (count + 1) * sizeof *data);
    if (data) set->data = data;
    return nodes && data;
}

static bool set_add(struct node_set *set, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count) {
    if (!set_reserve(set, set->count + count)) return false;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < set->count && set->nodes[at] != nodes[i]) at++;
        if (at < set->count) continue;
        set->nodes[at] = nodes[i];
        set->data[at] = data ? data[i] : (CUgraphEdgeData){0};
        set->count++;
    }
    return true;
}

/* ---- life of a capture; with the lock ----------------------------------------------------------------- */

static void release(struct capture *capture) {
    if (--capture->references == 0) free(capture);
}

static void forget_event(CUevent event) {
    struct recorded *recorded = event->capture;
    if (recorded == NULL) return;
    event->capture = NULL;
    set_free(&recorded->set);
    release(recorded->capture);
    free(recorded);
}

static struct participant *join(struct capture *capture, CUstream stream) {
    struct participant *participant = calloc(1, sizeof *participant);
    if (participant == NULL) return NULL;
    participant->capture = capture;
    participant->stream = stream;
    participant->next = capture->participants;
    capture->participants = participant;
    capture->references++;
    atomic_store_explicit(&stream->capture, participant, memory_order_release);
    return participant;
}

/* The capture is over; its graph lives on only in `graph`, when that is given. */
static void end(struct capture *capture, CUgraph *graph) {
    struct capture **link = &active;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    atomic_fetch_sub(&active_count, 1);
    capture->ended = true;
    if (graph) *graph = capture->graph;
    else capture->graph->abandoned = !capture->graph_is_users;
    capture->graph->next_done_with = done_with;
    done_with = capture->graph;
    capture->graph = NULL;
    capture->references++;
    while (capture->participants) {
        struct participant *participant = capture->participants;
        capture->participants = participant->next;
        if (participant->stream) atomic_store_explicit(&participant->stream->capture, NULL, memory_order_release);
        set_free(&participant->set);
        free(participant);
        release(capture);
    }
    release(capture);
}

static CUresult invalidate(struct capture *capture, CUresult status) {
    if (status) capture->invalid = true;
    return status;
}

/* The stream goes on without these nodes. Those that no node depends on count as the last such nodes of the graph only from
 * now on, in this order (update.c). */
static void leave_nodes(const struct node_set *set) {
    for (size_t i = 0; i < set->count; i++)
        if (set->nodes[i]->dependents.count == 0) graph_note_sink(set->nodes[i]);
}

/* The stream's part in a capture that can go on. */
static CUresult enter_capture(CUstream stream, struct participant **participant) {
    *participant = atomic_load(&stream->capture);
    if (*participant == NULL)
        return fail(CUDA_ERROR_ILLEGAL_STATE, "another thread ended the capture of the stream during this call");
    struct capture *capture = (*participant)->capture;
    if (!capture->invalid && !handle_is_live(capture->graph, HANDLE_GRAPH)) capture->invalid = true;
    if (capture->invalid)
        return fail(
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            "an earlier call that is not allowed during capture invalidated this capture: end it and begin again");
    return CUDA_SUCCESS;
}

/* The node was made: what the stream captures next comes after it. */
static CUresult advance(struct participant *participant, CUresult status, CUgraphNode node) {
    if (status) return invalidate(participant->capture, status);
    participant->set.count = 0;
    return set_add(&participant->set, &node, NULL, 1)
               ? CUDA_SUCCESS
               : invalidate(participant->capture, no_memory("the captured graph"));
}

/* ---- what streams hand over --------------------------------------------------------------------------- */

struct wanted {
    CUgraphNodeType type;
    struct op *op;     /* taken over; NULL for an empty node, an allocation and a free */
    CUmemoryPool pool; /* of an allocation */
    size_t size;
    uint64_t address;          /* given for a free, set by an allocation */
    CUgraphDeviceNode *device; /* where the handle goes of a kernel node that kernels can change; NULL: another node */
};

static CUresult add_wanted(CUgraph graph, const struct node_set *after, struct wanted *w, CUgraphNode *node) {
    if (w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return graph_add_allocation(graph, after->nodes, after->data, after->count, &w->pool->properties, NULL, 0,
                                    w->size, &w->address, node);
    if (w->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return graph_add_free(graph, after->nodes, after->data, after->count, w->address, node);
    RETURN_IF(graph_node_add_op(graph, w->type, after->nodes, after->data, after->count, w->op, node));
    if (w->device == NULL) return CUDA_SUCCESS;
    RETURN_IF(graph_node_make_updatable(*node));
    *w->device = device_node_handle((*node)->device);
    return CUDA_SUCCESS;
}

static bool is_memory(const struct wanted *w) {
    return w->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || w->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

static CUresult add(CUstream stream, struct wanted *w) {
    struct participant *p;
    CUgraphNode node = NULL;
    pthread_mutex_lock(&lock);
    CUresult status = enter_capture(stream, &p);
    if (status) {
        if (w->op) op_free(w->op);
    } else if (is_memory(w) && graph_check_memory_place(p->capture->graph)) {
        status = CUDA_ERROR_NOT_SUPPORTED; /* which does not spoil the capture */
    } else {
        status = add_wanted(p->capture->graph, &p->set, w, &node);
        status = advance(p, status, node);
    }
    unlock();
    return status;
}

static CUresult add_op(CUstream stream, CUgraphNodeType type, struct op *op) {
    return add(stream, &(struct wanted){.type = type, .op = op});
}

/* "Priorities are copied from stream priority during stream capture." */
static void inherit(CUstream stream, struct op *op) {
    if (op->kind == OP_KERNEL && !op->kernel.attributes.has_priority) op->kernel.attributes.priority = stream->priority;
}

CUresult capture_add_updatable(CUstream stream, struct op *op, CUgraphDeviceNode *node) {
    if (!stream_is_capturing(stream)) {
        op_free(op);
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "device-updatable nodes exist in graphs only, and the stream is not capturing");
    }
    inherit(stream, op);
    return add(stream, &(struct wanted){.type = CU_GRAPH_NODE_TYPE_KERNEL, .op = op, .device = node});
}

CUresult capture_add(CUstream stream, struct op *op) {
    static const CUgraphNodeType types[] = {
        [OP_EMPTY] = CU_GRAPH_NODE_TYPE_EMPTY, [OP_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
        [OP_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY, [OP_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,
        [OP_HOST] = CU_GRAPH_NODE_TYPE_HOST,   [OP_VALUES] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        [OP_CALL] = CU_GRAPH_NODE_TYPE_HOST,
    };
    CUgraphNodeType type = types[op->kind];
    inherit(stream, op);
    if (type != CU_GRAPH_NODE_TYPE_EMPTY) return add_op(stream, type, op);
    op_free(op);
    return add_op(stream, type, NULL);
}

CUresult capture_allocate(CUstream stream, CUmemoryPool pool, size_t size, uint64_t *address) {
    struct wanted w = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .pool = pool, .size = size};
    CUresult status = add(stream, &w);
    if (status) return status;
    cpu_memory_set_lines(w.address, caller_here(), 0);
    note_begin(ORIGIN_OF_GRAPH, w.address, size, "cuMemAllocAsync, captured");
    *address = w.address;
    return CUDA_SUCCESS;
}

CUresult capture_free(CUstream stream, uint64_t address) {
    RETURN_IF(add(stream, &(struct wanted){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address}));
    cpu_memory_set_lines(address, 0, caller_here());
    return CUDA_SUCCESS;
}

static struct op *event_op(CUstream stream, CUevent event, enum op_kind kind) {
    struct op *op = op_new(kind, stream->context);
    if (op == NULL) return NULL;
    if (kind == OP_RECORD) op->record.event = handle_retain(event);
    else op->wait.event = handle_retain(event);
    return op;
}

CUresult capture_record(CUstream stream, CUevent event, unsigned flags) {
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        struct op *op = event_op(stream, event, OP_RECORD);
        return op ? add_op(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, op) : no_memory("the captured graph");
    }
    struct participant *p;
    pthread_mutex_lock(&lock);
    CUresult status = enter_capture(stream, &p);
    if (status == CUDA_SUCCESS) {
        struct recorded *recorded = calloc(1, sizeof *recorded);
        if (recorded && set_add(&recorded->set, p->set.nodes, p->set.data, p->set.count)) {
            forget_event(event);
            recorded->capture = p->capture;
            p->capture->references++;
            event->capture = recorded;
        } else {
            free(recorded);
            status = invalidate(p->capture, no_memory("the captured graph"));
        }
    }
    unlock();
    return status;
}

/* An event of a capture that has ended, or was invalidated, stands for nothing. */
static CUresult lost_place(void) {
    return fail(CUDA_ERROR_INVALID_VALUE,
                "the event was last recorded in a capture that has ended or was invalidated: record it again");
}

/* The stream continues after the work before the event. With the lock. */
static CUresult wait_for(CUstream stream, const struct recorded *recorded) {
    struct capture *capture = recorded ? recorded->capture : NULL;
    const bool lost = capture && (capture->ended || capture->invalid);
    struct participant *p = atomic_load(&stream->capture);
    if (p) {
        RETURN_IF(enter_capture(stream, &p));
        if (lost) return invalidate(p->capture, lost_place());
        if (capture == NULL)
            return invalidate(p->capture,
                              fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                                   "the stream is capturing, and the event was not recorded in this capture: "
                                   "record it there, or wait with CU_EVENT_WAIT_EXTERNAL"));
        if (capture != p->capture) {
            capture->invalid = true;
            return invalidate(p->capture,
                              fail(CUDA_ERROR_STREAM_CAPTURE_MERGE,
                                   "the event was recorded in another capture; two captures cannot be merged"));
        }
    } else {
        if (capture == NULL) return CUDA_SUCCESS; /* it was recorded again during this call */
        if (lost) return lost_place();
        if (stream->role == STREAM_LEGACY)
            return invalidate(capture, fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                            "the legacy default stream cannot take part in a capture"));
        p = join(capture, stream);
        if (p == NULL) return invalidate(capture, no_memory("the captured graph"));
    }
    return set_add(&p->set, recorded->set.nodes, recorded->set.data, recorded->set.count)
               ? CUDA_SUCCESS
               : invalidate(capture, no_memory("the captured graph"));
}

CUresult capture_wait(CUstream stream, CUevent event, unsigned flags) {
    if (flags & CU_EVENT_WAIT_EXTERNAL && stream_is_capturing(stream)) {
        struct op *op = event_op(stream, event, OP_WAIT);
        return op ? add_op(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, op) : no_memory("the captured graph");
    }
    pthread_mutex_lock(&lock);
    CUresult status = wait_for(stream, event->capture);
    unlock();
    return status;
}

bool capture_owns_event(CUevent event) {
    if (likely(event->capture == NULL)) return false;
    pthread_mutex_lock(&lock);
    bool owns = event->capture != NULL;
    unlock();
    return owns;
}

CUresult capture_refuse_event(CUevent event) {
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    struct recorded *recorded = event->capture;
    struct capture *capture = recorded ? recorded->capture : NULL;
    if (capture && (capture->ended || capture->invalid)) status = lost_place();
    else if (capture)
        status = invalidate(capture, fail(CUDA_ERROR_CAPTURED_EVENT,
                                          "the event was last recorded in a stream that was capturing: it stands "
                                          "for a place in a graph and is never reached"));
    unlock();
    return status;
}

void capture_event_forget(CUevent event) {
    pthread_mutex_lock(&lock);
    forget_event(event);
    unlock();
}

void capture_stream_destroyed(CUstream stream) {
    pthread_mutex_lock(&lock);
    struct participant *p = atomic_load(&stream->capture);
    if (p && p->capture->origin == stream) {
        end(p->capture, NULL);
    } else if (p) {
        p->stream = NULL; /* fine when the others have waited for its work */
        atomic_store(&stream->capture, NULL);
    }
    unlock();
}

/* ---- calls that a capture does not allow -------------------------------------------------------------- */

CUresult capture_refuse(CUstream stream, const char *call) {
    struct participant *p;
    pthread_mutex_lock(&lock);
    CUresult status = enter_capture(stream, &p);
    if (status == CUDA_SUCCESS)
        status = invalidate(p->capture, fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                             "the stream is capturing, and %s cannot become part of a graph", call));
    unlock();
    return status;
}

CUresult capture_check(CUstream stream) {
    struct participant *p;
    if (likely(!stream_is_capturing(stream))) return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    CUresult status = enter_capture(stream, &p);
    unlock();
    return status;
}

CUresult capture_check_thread(const char *call) {
    if (likely(atomic_load_explicit(&active_count, memory_order_acquire) == 0)) return CUDA_SUCCESS;
    int mode = thread_state.capture_mode;
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (struct capture *c = active; c; c = c->next) {
        bool own = c->thread == &this_thread && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool others = mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (own || others)
            status =
                invalidate(c, fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                   "%s is not allowed while a stream captures in %s mode: make the call before the "
                                   "capture, or begin it with CU_STREAM_CAPTURE_MODE_RELAXED",
                                   call, c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? "global" : "thread-local"));
    }
    unlock();
    return status;
}

static CUresult check_legacy(CUcontext context, bool invalidates) {
    if (likely(atomic_load_explicit(&active_count, memory_order_acquire) == 0)) return CUDA_SUCCESS;
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (struct capture *c = active; c; c = c->next)
        for (struct participant *p = c->participants; p; p = p->next)
            if (p->stream && p->stream->context == context && !(p->stream->flags & CU_STREAM_NON_BLOCKING)) {
                status = fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                              "the legacy default stream would have to wait for a stream that is capturing: "
                              "use another stream, or capture on one made with CU_STREAM_NON_BLOCKING");
                if (invalidates) (void)invalidate(c, status);
            }
    unlock();
    return status;
}

CUresult capture_check_legacy(CUcontext context) { return check_legacy(context, true); }

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    RETURN_IF(enter());
    if (mode == NULL) return fail_null("mode");
    if ((int)*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a mode of capture", (int)*mode);
    int before = thread_state.capture_mode;
    thread_state.capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- beginning and ending ----------------------------------------------------------------------------- */

static CUresult begin(CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                      size_t count, CUstreamCaptureMode mode) {
    if ((int)mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a mode of capture", (int)mode);
    if (stream->role == STREAM_LEGACY)
        return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "the legacy default stream cannot capture: use a stream that you have created");
    struct capture *capture = calloc(1, sizeof *capture);
    CUgraph own = graph ? NULL : graph_new(NULL);
    struct node_set set = {0};
    if (capture == NULL || (graph == NULL && own == NULL) || !set_add(&set, nodes, data, count)) goto failed;
    pthread_mutex_lock(&lock);
    if (stream_is_capturing(stream)) {
        unlock();
        set_free(&set);
        free(capture);
        if (own) (void)cuGraphDestroy(own);
        return fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is capturing already");
    }
    struct participant *p = join(capture, stream);
    if (p) {
        p->set = set;
        capture->id = next_id++;
        capture->graph = handle_retain(graph ? graph : own);
        capture->graph_is_users = graph != NULL;
        capture->mode = mode;
        capture->thread = &this_thread;
        capture->origin = stream;
        capture->next = active;
        active = capture;
        atomic_fetch_add(&active_count, 1);
    }
    unlock();
    if (p) return CUDA_SUCCESS;
failed:
    set_free(&set);
    free(capture);
    if (own) (void)cuGraphDestroy(own);
    return no_memory("the captured graph");
}

CUresult cuStreamBeginCapture(CUstream hStream, CUstreamCaptureMode mode) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    return begin(stream, NULL, NULL, NULL, 0, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    RETURN_IF(graph_check(hGraph));
    if (dependencies == NULL && numDependencies) return fail_null("dependencies");
    for (size_t i = 0; i < numDependencies; i++) {
        RETURN_IF(graph_node_check(dependencies[i]));
        if (dependencies[i]->graph != hGraph)
            return fail(CUDA_ERROR_INVALID_VALUE, "dependency %zu is a node of another graph", i);
    }
    return begin(stream, hGraph, dependencies, dependencyData, numDependencies, mode);
}

static void see_ancestors(CUgraphNode *stack, size_t depth) {
    while (depth) {
        CUgraphNode node = stack[--depth];
        for (size_t i = 0; i < node->dependencies.count; i++) {
            CUgraphNode before = node->dependencies.items[i].node;
            if (before->seen) continue;
            before->seen = true;
            stack[depth++] = before;
        }
    }
}

/* Whether everything that was captured on other streams comes before the end of the origin. */
static CUresult check_joined(struct capture *capture, const struct participant *origin) {
    CUgraph graph = capture->graph;
    CUgraphNode *stack = malloc((graph->count + 1) * sizeof *stack);
    if (stack == NULL) return no_memory("the captured graph");
    for (CUgraphNode node = graph->first; node; node = node->next) node->seen = false;
    for (size_t i = 0; i < origin->set.count; i++) {
        stack[i] = origin->set.nodes[i];
        stack[i]->seen = true;
    }
    see_ancestors(stack, origin->set.count);
    free(stack);
    for (struct participant *p = capture->participants; p; p = p->next)
        for (size_t i = 0; i < p->set.count; i++)
            if (!p->set.nodes[i]->seen)
                return fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                            "another stream took part in the capture, and the stream that began the capture did not "
                            "wait for the other one's last work: record an event there and wait for it before ending");
    return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream stream, CUgraph *graph) {
    struct participant *p = atomic_load(&stream->capture);
    if (p == NULL) return fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing");
    struct capture *capture = p->capture;
    if (capture->origin != stream)
        return invalidate(capture, fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                                        "the capture was begun on another stream: end it there"));
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &this_thread)
        return fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                    "the capture was begun by another thread, which must end it unless its mode is relaxed");
    CUresult status = enter_capture(stream, &p);
    if (status == CUDA_SUCCESS) status = check_joined(capture, p);
    if (status == CUDA_SUCCESS) leave_nodes(&p->set);
    end(capture, status ? NULL : graph);
    return status;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(hStream, &stream));
    if (phGraph) *phGraph = NULL;
    pthread_mutex_lock(&lock);
    CUresult status = end_capture(stream, phGraph); /* without phGraph a graph that is the capture's own goes */
    unlock();
    return status;
}

/* ---- asking ------------------------------------------------------------------------------------------- */

/* The legacy stream may not even be asked while a stream captures that it would wait for, which goes on. */
static CUresult enter_question(CUstream handle, CUstream *stream) {
    RETURN_IF(enter_stream_to_ask(handle, stream));
    return (*stream)->role == STREAM_LEGACY ? check_legacy((*stream)->context, false) : CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out) {
    CUstream stream;
    RETURN_IF(enter_question(hStream, &stream));
    if (captureStatus_out == NULL) return fail_null("captureStatus_out");
    pthread_mutex_lock(&lock);
    struct participant *p = atomic_load(&stream->capture);
    if (p && !handle_is_live(p->capture->graph, HANDLE_GRAPH)) p->capture->invalid = true;
    bool usable = p && !p->capture->invalid;
    *captureStatus_out = !p       ? CU_STREAM_CAPTURE_STATUS_NONE
                         : usable ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                  : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    if (p && id_out) *id_out = p->capture->id;
    if (graph_out) *graph_out = usable ? p->capture->graph : NULL;
    if (dependencies_out) *dependencies_out = usable ? p->set.nodes : NULL;
    if (edgeData_out) *edgeData_out = usable ? p->set.data : NULL;
    if (numDependencies_out) *numDependencies_out = usable ? p->set.count : 0;
    unlock();
    return CUDA_SUCCESS;
}

static CUresult get_info_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                            const CUgraphNode **nodes, size_t *count) {
    return cuStreamGetCaptureInfo(stream, status, id, graph, nodes, NULL, count);
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    if (captureStatus == NULL) {
        RETURN_IF(enter());
        return fail_null("captureStatus");
    }
    return cuStreamGetCaptureInfo(hStream, captureStatus, NULL, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                           const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                           unsigned int flags) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return fail(CUDA_ERROR_INVALID_VALUE, "%u is not one of CUstreamUpdateCaptureDependencies_flags", flags);
    if (dependencies == NULL && numDependencies) return fail_null("dependencies");
    if (!stream_is_capturing(stream)) return fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing");
    struct participant *p;
    pthread_mutex_lock(&lock);
    CUresult status = enter_capture(stream, &p);
    for (size_t i = 0; i < numDependencies && !status; i++) {
        status = graph_node_check(dependencies[i]);
        if (!status && dependencies[i]->graph != p->capture->graph)
            status = fail(CUDA_ERROR_INVALID_VALUE, "dependency %zu is not a node of the captured graph", i);
    }
    if (status == CUDA_SUCCESS) {
        if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
            leave_nodes(&p->set);
            p->set.count = 0;
        }
        if (!set_add(&p->set, dependencies, dependencyData, numDependencies)) status = no_memory("the captured graph");
    }
    unlock();
    return status;
}

static CUresult update_v1(CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags) {
    return cuStreamUpdateCaptureDependencies(stream, nodes, NULL, count, flags);
}

PER_THREAD(cuStreamBeginCapture, (CUstream s, CUstreamCaptureMode mode), (s, mode))
PER_THREAD(cuStreamBeginCaptureToGraph,
           (CUstream s, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
            CUstreamCaptureMode mode),
           (s, graph, nodes, data, count, mode))
PER_THREAD(cuStreamEndCapture, (CUstream s, CUgraph *graph), (s, graph))
PER_THREAD(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus *status), (s, status))
PER_THREAD(cuStreamGetCaptureInfo,
           (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
            const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count),
           (s, status, id, graph, nodes, data, count))
PER_THREAD(get_info_v2,
           (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
            const CUgraphNode **nodes, size_t *count),
           (s, status, id, graph, nodes, count))
PER_THREAD(cuStreamUpdateCaptureDependencies,
           (CUstream s, CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count, unsigned flags),
           (s, nodes, data, count, flags))

const struct entry capture_entries[] = {
    ENTRY(cuThreadExchangeStreamCaptureMode),
    ENTRY_STREAM_V2(cuStreamBeginCapture),
    ENTRY_STREAM(cuStreamBeginCaptureToGraph),
    ENTRY_STREAM(cuStreamEndCapture),
    ENTRY_STREAM(cuStreamIsCapturing),
    ENTRY_STREAM(cuStreamGetCaptureInfo),
    ENTRY_STREAM_AS(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo),
    ENTRY_STREAM_AS(cuStreamGetCaptureInfo_v2, get_info_v2),
    ENTRY_STREAM_V2(cuStreamUpdateCaptureDependencies),
    ENTRY_AS(cuStreamUpdateCaptureDependencies_v1, update_v1),
    {NULL, NULL, NULL},
};
