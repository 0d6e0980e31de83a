/* Handles: every object that the driver hands out as an opaque pointer.
 *
 * A program may pass a handle that was destroyed, that belongs to another driver, or plain rubbish, and deserves
 * CUDA_ERROR_INVALID_HANDLE instead of a crash. So each kind of handle lives in slots of an address range of its own
 * that is never unmapped: a range check tells the kind, a flag in the slot whether it is live, and neither can
 * fault. */
#ifndef CUPOLA_CPU_DRIVER_HANDLE_H
#define CUPOLA_CPU_DRIVER_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum handle_kind {
    HANDLE_CONTEXT,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,
    HANDLE_LIBRARY,
    HANDLE_FUNCTION,
    HANDLE_KERNEL,
    HANDLE_GRAPH,
    HANDLE_GRAPH_NODE,
    HANDLE_GRAPH_EXEC,
    HANDLE_POOL,
    HANDLE_USER_OBJECT,
    HANDLE_LINK,
    HANDLE_ARRAY,
    HANDLE_MIPMAPPED_ARRAY,
    HANDLE_TEXTURE,
    HANDLE_SURFACE,
    HANDLE_TEXTURE_REFERENCE,
    HANDLE_SURFACE_REFERENCE,
    HANDLE_GRAPHICS,
    HANDLE_GREEN,
    HANDLE_RESOURCE_DESC,
    HANDLE_MATH,          /* of cuBLAS (cpu/math) */
    HANDLE_RAND,          /* generators of cuRAND */
    HANDLE_SOLVER,        /* of cuSOLVER */
    HANDLE_SOLVER_OBJECT, /* its settings */
    HANDLE_SPARSE,        /* handles and descriptors of cuSPARSE */
    HANDLE_NCCL,          /* communicators */
    HANDLE_KINDS,
};

/* First member of every such object. */
struct handle {
    _Atomic uint32_t live;       /* the user may use it */
    _Atomic uint32_t references; /* the slot is given back with the last one */
    struct handle *next_free;
};

/* A zeroed object of the kind with one reference, live. NULL: out of memory. The same size for all of a kind. */
void *handle_new(enum handle_kind kind, size_t size);

/* The same in two steps, for kinds that handle_each() visits: others may see the object only when it is complete. */
void *handle_make(enum handle_kind kind, size_t size);
void handle_publish(void *object);

/* The kind and state of any pointer at all. */
bool handle_is_live(const void *object, enum handle_kind kind);
bool handle_was_live(const void *object, enum handle_kind kind); /* of the kind, live or destroyed */

/* The user has destroyed it: no longer live; true for the one caller that made it so. References stay. */
bool handle_kill(void *object);

static inline void *handle_retain(void *object) {
    atomic_fetch_add_explicit(&((struct handle *)object)->references, 1, memory_order_relaxed);
    return object;
}
/* The same for an object found in a list, which may be on its way out: false when its last reference is gone. */
static inline bool handle_try_retain(void *object) {
    struct handle *handle = (struct handle *)object;
    uint32_t count = atomic_load_explicit(&handle->references, memory_order_relaxed);
    while (count)
        if (atomic_compare_exchange_weak_explicit(&handle->references, &count, count + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}
/* For a call that waits, or releases a lock, while another thread may destroy the object: take a reference to the
 * user's handle; false if it is not live. A slot is not used again at once, so the object is still the one that was
 * checked. */
static inline bool handle_acquire(void *object, enum handle_kind kind) {
    return handle_is_live(object, kind) && handle_try_retain(object);
}
/* True when it was the last reference: the caller clears up, then calls handle_free(). */
static inline bool handle_release(void *object) {
    return atomic_fetch_sub_explicit(&((struct handle *)object)->references, 1, memory_order_acq_rel) == 1;
}
void handle_free(enum handle_kind kind, void *object);

/* Call visit for every live object of the kind (fork, shutdown and diagnostics; not a fast path). */
void handle_each(enum handle_kind kind, void (*visit)(void *object, void *data), void *data);

#endif
