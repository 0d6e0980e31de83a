#include "handle.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { RANGE_BITS = 28 }; /* 256 MiB of addresses for each kind; memory is taken as slots are first used */
#define RANGE ((size_t)1 << RANGE_BITS)

struct range {
    pthread_mutex_t lock;
    size_t slot;                           /* bytes */
    _Atomic size_t used;                   /* bytes that hold slots, free ones included */
    struct handle *free_first, *free_last; /* a queue, so that a stale handle stays recognizable for long */
    size_t free_count;
};

static struct range ranges[HANDLE_KINDS] = {[0 ... HANDLE_KINDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static _Atomic uintptr_t base;

enum { KEPT_FREE = 1024 }; /* slots of a kind that rest before the oldest is used again */

static uintptr_t reserve(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    uintptr_t found = atomic_load_explicit(&base, memory_order_acquire);
    if (found) return found;
    pthread_mutex_lock(&lock);
    found = atomic_load(&base);
    if (!found) {
        void *space = mmap(NULL, RANGE * HANDLE_KINDS, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (space != MAP_FAILED) {
            found = (uintptr_t)space;
            atomic_store_explicit(&base, found, memory_order_release);
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void *handle_make(enum handle_kind kind, size_t size) {
    struct range *range = &ranges[kind];
    uintptr_t start = reserve();
    if (!start) return NULL;
    struct handle *handle = NULL;
    pthread_mutex_lock(&range->lock);
    size_t used = atomic_load_explicit(&range->used, memory_order_relaxed);
    if (!range->slot) range->slot = (size + 63) & ~(size_t)63;
    bool full = used + range->slot > RANGE;
    if (range->free_first && (range->free_count > KEPT_FREE || full)) {
        handle = range->free_first;
        range->free_first = handle->next_free;
        if (!range->free_first) range->free_last = NULL;
        range->free_count--;
    } else if (!full) {
        handle = (struct handle *)(start + (size_t)kind * RANGE + used);
        atomic_store_explicit(&range->used, used + range->slot, memory_order_release);
    }
    pthread_mutex_unlock(&range->lock);
    if (!handle) return NULL;
    memset(handle, 0, size);
    atomic_store_explicit(&handle->references, 1, memory_order_relaxed);
    return handle;
}

void handle_publish(void *object) { atomic_store_explicit(&((struct handle *)object)->live, 1, memory_order_release); }

void *handle_new(enum handle_kind kind, size_t size) {
    void *object = handle_make(kind, size);
    if (object) handle_publish(object);
    return object;
}

bool handle_was_live(const void *object, enum handle_kind kind) {
    const struct range *range = &ranges[kind];
    uintptr_t offset = (uintptr_t)object - (atomic_load_explicit(&base, memory_order_relaxed) + (size_t)kind * RANGE);
    return offset < atomic_load_explicit(&range->used, memory_order_acquire) && offset % range->slot == 0;
}

bool handle_is_live(const void *object, enum handle_kind kind) {
    return handle_was_live(object, kind) &&
           atomic_load_explicit(&((const struct handle *)object)->live, memory_order_acquire);
}

bool handle_kill(void *object) {
    return atomic_exchange_explicit(&((struct handle *)object)->live, 0, memory_order_acq_rel);
}

void handle_free(enum handle_kind kind, void *object) {
    struct range *range = &ranges[kind];
    struct handle *handle = object;
    atomic_store_explicit(&handle->live, 0, memory_order_release);
    pthread_mutex_lock(&range->lock);
    handle->next_free = NULL;
    if (range->free_last) range->free_last->next_free = handle;
    else range->free_first = handle;
    range->free_last = handle;
    range->free_count++;
    pthread_mutex_unlock(&range->lock);
}

void handle_each(enum handle_kind kind, void (*visit)(void *object, void *data), void *data) {
    const struct range *range = &ranges[kind];
    uintptr_t start = atomic_load(&base) + (size_t)kind * RANGE;
    size_t used = atomic_load_explicit(&range->used, memory_order_acquire);
    for (size_t offset = 0; offset < used; offset += range->slot) {
        struct handle *handle = (struct handle *)(start + offset);
        if (atomic_load_explicit(&handle->live, memory_order_acquire)) visit(handle, data);
    }
}
