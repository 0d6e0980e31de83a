/* The arena's table, for the files that place allocations in it (memory.c tells what it is). */
#ifndef CUPOLA_CPU_ARENA_H
#define CUPOLA_CPU_ARENA_H

#include "common/common.h"
#include "memory.h"

#include <pthread.h>

enum {
    CHUNK_SHIFT = 21,
    GAP = 256, /* least distance between two allocations */
    PAGE = 4096,
};
#define CHUNK (UINT64_C(1) << CHUNK_SHIFT)
#define NO_CHUNK UINT32_MAX
#define NO_SLOT UINT32_MAX

enum state {
    NEVER, /* the slot was not used yet */
    LIVE,
    FREEING, /* live until the free that is queued on a stream runs */
    RETIRED, /* freed by its user; its place is kept by a pool */
    FREED,
    RESERVED, /* addresses without memory */
};

struct record {
    uint64_t tag; /* size << 16 | (device + 1) << 8 | kind << 4 | state */
    uint64_t id;
    void *owner;
    uint32_t next_free, flags;
    uint32_t allocated_at, freed_at;
};

struct chunk {
    uint32_t head; /* 1 + index of the chunk that begins the span this one is or was last part of */
    uint32_t slot; /* size of a slot; 0 when the whole span is one allocation */
    uint32_t slots, chunks;
    struct record *records;
    struct record single;
    uint64_t room;        /* of a span that is one allocation: bytes with memory behind them */
    uint64_t file_offset; /* where the span begins in its file, if it has one */
    uint32_t sharing;     /* of a slab, as below */
    uint32_t record_capacity;
    uint32_t first_free, last_free, free_slots;
    uint32_t next, previous; /* among the slabs of a class that have free slots */
};

enum sharing {
    OWN,      /* memory of this process alone */
    SHARED,   /* of the file of shared slabs, at file_offset (NO_OFFSET: there was none to have) */
    IMPORTED, /* of another process's file: one slot is allocated, and no others ever are */
};
#define NO_OFFSET UINT64_MAX

struct arena {
    pthread_once_t once;
    pthread_mutex_t lock; /* guards placement and free lists */
    uint64_t base, size;
    uint32_t chunks;
    struct chunk *chunk;
    uint64_t *taken; /* a bit for each chunk */
    uint32_t cursor; /* where the search for a free run starts */
    uint64_t ids;
    uint64_t capacity[CPU_MEMORY_DEVICES]; /* what is used of it: usage.h */
    uint64_t host_capacity, host_used;
};
extern struct arena arena;

#define load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

static inline uint64_t make_tag(uint64_t size, int device, int kind, enum state state) {
    return size << 16 | (uint64_t)(uint8_t)(device + 1) << 8 | (uint64_t)kind << 4 | state;
}

static inline enum state tag_state(uint64_t tag) { return tag & 15; }
static inline uint64_t tag_size(uint64_t tag) { return tag >> 16; }

static inline uint64_t chunk_address(uint32_t index) { return arena.base + ((uint64_t)index << CHUNK_SHIFT); }

static inline void publish(struct record *record, uint64_t tag, void *owner) {
    store(&record->id, __atomic_add_fetch(&arena.ids, 1, __ATOMIC_RELAXED));
    store(&record->owner, owner);
    store(&record->flags, 0);
    store(&record->allocated_at, 0);
    store(&record->freed_at, 0);
    store(&record->tag, tag);
}

void arena_ensure_started(void);

/* Take `count` chunks from a multiple of `step` on, those from `hint` on if they are free (NO_CHUNK: no hint). With the
 * lock, as for marking chunks; giving them back takes it. */
uint32_t arena_take_chunks(uint32_t count, uint32_t step, uint32_t hint);
void arena_set_taken(uint32_t first, uint32_t count, int value);
void arena_give_chunks(uint32_t first, uint32_t count);

/* Put memory, or that of a file, behind addresses. A cpu_memory_status. */
int arena_commit(uint64_t base, uint64_t bytes);
int arena_commit_file(uint64_t base, uint64_t bytes, int file, uint64_t offset);

void slabs_start(void);
int slabs_obtain(uint64_t tag, uint64_t size, enum sharing sharing, void *owner, uint64_t *base, uint64_t *room);
void slabs_release(struct chunk *slab, uint32_t slot);

#endif
