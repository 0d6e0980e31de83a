/* User objects: what a graph keeps alive for its owner (CUDA Driver API, "Graph Management":
 * cuUserObject*). */
#include "graph.h"

#include <stdlib.h>

struct CUuserObject_st {
    struct handle handle;
    _Atomic uint64_t count;
    void *data;
    CUhostFn destroy;
};

static CUresult object_check(CUuserObject object) {
    RETURN_IF(enter_anywhere());
    return handle_is_live(object, HANDLE_USER_OBJECT) ? CUDA_SUCCESS
                                                      : fail_handle("user object", object, HANDLE_USER_OBJECT);
}

static CUresult count_check(unsigned count) {
    return count ? CUDA_SUCCESS : fail(CUDA_ERROR_INVALID_VALUE, "the number of references must be at least 1");
}

static void release(CUuserObject object, unsigned count) {
    if (atomic_fetch_sub(&object->count, count) != count) return;
    handle_kill(object);
    bool before = thread_state.in_callback;
    thread_state.in_callback = true; /* as a host function, a destructor may not call the driver */
    object->destroy(object->data);
    thread_state.in_callback = before;
    handle_free(HANDLE_USER_OBJECT, object);
}

CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
                            unsigned int flags) {
    RETURN_IF(enter());
    if (object_out == NULL) return fail_null("object_out");
    if (destroy == NULL) return fail_null("destroy");
    RETURN_IF(count_check(initialRefcount));
    if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return fail(CUDA_ERROR_INVALID_VALUE, "flags must be CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, not %#x", flags);
    CUuserObject object = handle_new(HANDLE_USER_OBJECT, sizeof *object);
    if (object == NULL) return no_memory("a user object");
    object->count = initialRefcount;
    object->data = ptr;
    object->destroy = destroy;
    *object_out = object;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
    RETURN_IF(object_check(object));
    RETURN_IF(count_check(count));
    atomic_fetch_add(&object->count, count);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
    RETURN_IF(object_check(object));
    RETURN_IF(count_check(count));
    if (atomic_load(&object->count) < count)
        return fail(CUDA_ERROR_INVALID_VALUE, "the user object has fewer than %u references", count);
    release(object, count);
    return CUDA_SUCCESS;
}

/* Of all lists of held objects: they are short, and two threads may make executables of one graph. */
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;

static struct held_object *find(CUgraph graph, CUuserObject object) {
    for (size_t i = 0; i < graph->held.count; i++)
        if (graph->held.items[i].object == object) return &graph->held.items[i];
    return NULL;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
    RETURN_IF(object_check(object));
    RETURN_IF(graph_check(graph));
    RETURN_IF(count_check(count));
    if (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
        return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0 or CU_GRAPH_USER_OBJECT_MOVE, not %#x", flags);
    pthread_mutex_lock(&lists);
    struct held_object *held = find(graph, object);
    if (held == NULL && (held = realloc(graph->held.items, (graph->held.count + 1) * sizeof *held)) != NULL) {
        graph->held.items = held;
        held += graph->held.count++;
        *held = (struct held_object){object, 0};
    }
    if (held != NULL) {
        held->count += count;
        if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) atomic_fetch_add(&object->count, count);
    }
    pthread_mutex_unlock(&lists);
    return held == NULL ? no_memory("another user object") : CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
    RETURN_IF(object_check(object));
    RETURN_IF(graph_check(graph));
    RETURN_IF(count_check(count));
    pthread_mutex_lock(&lists);
    struct held_object *held = find(graph, object);
    bool holds = held != NULL && held->count >= count;
    if (holds && (held->count -= count) == 0) *held = graph->held.items[--graph->held.count];
    pthread_mutex_unlock(&lists);
    if (!holds)
        return fail(CUDA_ERROR_INVALID_VALUE, "the graph does not hold %u references to the user object", count);
    release(object, count); /* calls a function of the user: without the lock */
    return CUDA_SUCCESS;
}

bool held_objects_copy(struct held_objects *target, const struct held_objects *source) {
    pthread_mutex_lock(&lists);
    size_t count = source->count;
    struct held_object *items = count ? realloc(target->items, (target->count + count) * sizeof *items) : NULL;
    if (items != NULL) {
        target->items = items;
        for (size_t i = 0; i < count; i++) {
            items[target->count++] = (struct held_object){source->items[i].object, 1};
            atomic_fetch_add(&source->items[i].object->count, 1);
        }
    }
    pthread_mutex_unlock(&lists);
    return count == 0 || items != NULL;
}

void held_objects_release(struct held_objects *held) {
    for (size_t i = 0; i < held->count; i++) release(held->items[i].object, held->items[i].count);
    free(held->items);
    *held = (struct held_objects){0};
}

const struct entry graph_object_entries[] = {
    ENTRY(cuUserObjectCreate),      ENTRY(cuUserObjectRetain),       ENTRY(cuUserObjectRelease),
    ENTRY(cuGraphRetainUserObject), ENTRY(cuGraphReleaseUserObject), {NULL, NULL, NULL},
};
