/* Small allocations: chunks of the arena that are cut into equal slots.
 *
 * Slots grow in four steps to a doubling. A chunk is committed as a whole, and given back when all its slots are free
 * and another of its class has room.
 *
 * A slab where allocations share pages, and other processes may ask for one (cuMemAlloc's, with cuIpcGetMemHandle), is
 * a piece of one file without a name from the start: addresses cannot move, and what lies beside such an allocation may
 * be in use at any time. The file only grows; what was given back are holes in it. */
#define _GNU_SOURCE
#include "arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    SMALLEST_SLOT = 1024,
    CLASSES = 64,
};

static struct {
    uint32_t first[2][CLASSES]; /* the slabs with free slots, OWN and SHARED ones */
    int file;                   /* of the shared ones, made with the first; -1: none */
    uint64_t file_end;
} slabs = {.file = -1}; /* guarded by arena.lock */

void slabs_start(void) {
    for (int i = 0; i < CLASSES; i++) slabs.first[OWN][i] = slabs.first[SHARED][i] = NO_CHUNK;
}

/* The size of the slots for so many bytes; the result is the index of the class. */
static int class_of(uint64_t bytes, uint32_t *slot) {
    if (bytes <= SMALLEST_SLOT) {
        *slot = SMALLEST_SLOT;
        return 0;
    }
    int top = 63 - __builtin_clzll(bytes - 1);
    uint64_t step = UINT64_C(1) << (top - 2);
    if (step < CPU_MEMORY_ALIGNMENT) step = CPU_MEMORY_ALIGNMENT;
    *slot = (uint32_t)round_up(bytes, step);
    return (top - 10) * 4 + (int)((*slot - (UINT64_C(1) << top)) / step);
}

static void link_slab(int class, uint32_t index) {
    struct chunk *slab = &arena.chunk[index];
    uint32_t *first = &slabs.first[slab->sharing][class];
    slab->previous = NO_CHUNK;
    slab->next = *first;
    if (slab->next != NO_CHUNK) arena.chunk[slab->next].previous = index;
    *first = index;
}

static void unlink_slab(int class, uint32_t index) {
    struct chunk *slab = &arena.chunk[index];
    if (slab->previous != NO_CHUNK) arena.chunk[slab->previous].next = slab->next;
    else slabs.first[slab->sharing][class] = slab->next;
    if (slab->next != NO_CHUNK) arena.chunk[slab->next].previous = slab->previous;
}

/* The end of the file of shared slabs, lengthened by a chunk; NO_OFFSET when the system refuses. With the lock. */
static uint64_t more_file(void) {
    struct rlimit limit; /* beyond which a signal would end the process */
    uint64_t offset = slabs.file_end, end = offset + CHUNK;
    if (getrlimit(RLIMIT_FSIZE, &limit) || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < end)) return NO_OFFSET;
    if (slabs.file < 0) slabs.file = memfd_create("cupola-memory", MFD_CLOEXEC);
    if (slabs.file < 0 || ftruncate(slabs.file, (off_t)end)) return NO_OFFSET;
    slabs.file_end = end;
    return offset;
}

static int commit_slab(struct chunk *slab, uint64_t base, enum sharing sharing) {
    slab->sharing = sharing;
    slab->file_offset = sharing == SHARED ? more_file() : NO_OFFSET;
    if (slab->file_offset != NO_OFFSET && !arena_commit_file(base, CHUNK, slabs.file, slab->file_offset))
        return CPU_MEMORY_OK;
    slab->file_offset = NO_OFFSET;
    return arena_commit(base, CHUNK);
}

static void decommit_slab(struct chunk *slab, uint64_t base) {
    cpu_memory_decommit(base, CHUNK);
    if (slab->sharing == SHARED && slab->file_offset != NO_OFFSET)
        fallocate(slabs.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)slab->file_offset, (off_t)CHUNK);
}

/* Give a chunk that readers do not see yet the records of its slots, all unused. */
static void set_records(struct chunk *slab, struct record *records, uint32_t slots) {
    store(&slab->head, 0);
    for (uint32_t i = 0; i < slots; i++) store(&records[i].tag, NEVER);
    if (slab->record_capacity < slots) slab->record_capacity = slots;
    store(&slab->records, records);
    slab->slots = slots;
    slab->chunks = 1;
}

/* Make a slab; with the lock. It commits a whole chunk, which no other thread knows of yet, and happens
 * once for thousands of small allocations. */
static int new_slab(int class, uint32_t slot, enum sharing sharing) {
    uint32_t index = arena_take_chunks(1, 1, NO_CHUNK);
    if (index == NO_CHUNK) return CPU_MEMORY_ARENA_FULL;
    struct chunk *slab = &arena.chunk[index];
    uint32_t slots = (uint32_t)(CHUNK / slot);
    struct record *records = slab->records;
    if (slab->record_capacity < slots) {
        records = calloc(slots, sizeof *records); /* a smaller array stays with readers that may still hold it */
        if (records == NULL) goto full;
    }
    if (commit_slab(slab, chunk_address(index), sharing)) {
        if (records != slab->records) free(records);
        goto full;
    }
    set_records(slab, records, slots);
    for (uint32_t i = 0; i < slots; i++) records[i].next_free = i + 1 < slots ? i + 1 : NO_SLOT;
    slab->free_slots = slots;
    slab->first_free = 0;
    slab->last_free = slots - 1;
    store(&slab->slot, slot);
    store(&slab->head, index + 1);
    link_slab(class, index);
    return CPU_MEMORY_OK;
full:
    arena_set_taken(index, 1, 0);
    return CPU_MEMORY_HOST_FULL;
}

int slabs_obtain(uint64_t tag, uint64_t size, enum sharing sharing, void *owner, uint64_t *base, uint64_t *room) {
    uint32_t slot;
    int class = class_of(size + GAP, &slot), status = CPU_MEMORY_OK;
    if (slot % PAGE == 0) sharing = OWN; /* with pages of its own, as all slots from 16 KiB on */
    pthread_mutex_lock(&arena.lock);
    if (slabs.first[sharing][class] == NO_CHUNK) status = new_slab(class, slot, sharing);
    if (status == CPU_MEMORY_OK) {
        uint32_t index = slabs.first[sharing][class];
        struct chunk *slab = &arena.chunk[index];
        uint32_t s = slab->first_free;
        slab->first_free = slab->records[s].next_free;
        if (slab->first_free == NO_SLOT) slab->last_free = NO_SLOT;
        if (--slab->free_slots == 0) unlink_slab(class, index);
        publish(&slab->records[s], tag, owner);
        *base = chunk_address(index) + (uint64_t)s * slot;
        *room = slot - GAP;
    }
    pthread_mutex_unlock(&arena.lock);
    return status;
}

void slabs_release(struct chunk *slab, uint32_t s) {
    uint32_t index = (uint32_t)(slab - arena.chunk), slot;
    if (slab->sharing == IMPORTED) {
        cpu_memory_decommit(chunk_address(index), CHUNK);
        arena_give_chunks(index, 1);
        return;
    }
    pthread_mutex_lock(&arena.lock);
    int class = class_of(slab->slot, &slot);
    slab->records[s].next_free = NO_SLOT;
    if (slab->free_slots++ == 0) {
        slab->first_free = s;
        link_slab(class, index);
    } else {
        slab->records[slab->last_free].next_free = s;
    }
    slab->last_free = s;
    int alone = slabs.first[slab->sharing][class] == index && slab->next == NO_CHUNK;
    int give = slab->free_slots == slab->slots && !alone; /* one empty slab is kept for the next allocation */
    if (give) unlink_slab(class, index);
    pthread_mutex_unlock(&arena.lock);
    if (!give) return;
    decommit_slab(slab, chunk_address(index));
    arena_give_chunks(index, 1);
}

/* ---- slots that processes share ------------------------------------------------------------------------ */

int cpu_memory_slot_of(uint64_t base, cpu_memory_slot *slot) {
    const struct chunk *slab = &arena.chunk[(base - arena.base) >> CHUNK_SHIFT];
    if (slab->slot == 0 || slab->sharing != SHARED) return 0;
    *slot = (cpu_memory_slot){.file = slab->file_offset == NO_OFFSET ? -1 : slabs.file,
                              .offset = slab->file_offset,
                              .size = slab->slot,
                              .index = (uint32_t)(base & (CHUNK - 1)) / slab->slot};
    return 1;
}

int cpu_memory_obtain_slot(int device, int kind, uint64_t size, const cpu_memory_slot *slot, void *owner,
                           uint64_t *base) {
    uint32_t expected, count = slot->size ? (uint32_t)(CHUNK / slot->size) : 0;
    arena_ensure_started();
    if (size == 0 || size > CPU_MEMORY_SMALL || slot->index >= count) return CPU_MEMORY_UNKNOWN;
    class_of(size + GAP, &expected);
    if (slot->size != expected) return CPU_MEMORY_UNKNOWN;
    pthread_mutex_lock(&arena.lock);
    uint32_t index = arena_take_chunks(1, 1, NO_CHUNK);
    pthread_mutex_unlock(&arena.lock);
    if (index == NO_CHUNK) return CPU_MEMORY_ARENA_FULL;
    struct chunk *slab = &arena.chunk[index];
    struct record *records = slab->records;
    if (slab->record_capacity < count) records = calloc(count, sizeof *records);
    if (records == NULL || arena_commit_file(chunk_address(index), CHUNK, slot->file, slot->offset)) {
        if (records != slab->records) free(records);
        arena_give_chunks(index, 1);
        return CPU_MEMORY_HOST_FULL;
    }
    set_records(slab, records, count);
    slab->sharing = IMPORTED;
    publish(&records[slot->index], make_tag(size, device, kind, LIVE), owner);
    store(&slab->slot, slot->size);
    store(&slab->head, index + 1);
    *base = chunk_address(index) + (uint64_t)slot->index * slot->size;
    return CPU_MEMORY_OK;
}
