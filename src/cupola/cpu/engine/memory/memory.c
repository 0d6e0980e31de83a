/* Device memory is one large reserved range of addresses, the arena, divided into chunks of 2 MiB.
 *
 * A chunk begins a span. A slab span is one chunk cut into equal slots for small allocations (slabs.c); any other
 * span is a run of chunks with one allocation. Each slot has a record whose tag word packs size, kind,
 * device and state, so that one atomic load tells a reader all it needs: readers (bounds checks in running
 * kernels) take no lock, and since records are never unmapped, a reader that races with a free sees either
 * state, never garbage.
 *
 * Between any two allocations lie at least 256 bytes that belong to none, so that an overrun is found by
 * the bounds check; a large allocation is followed by unmapped pages as well. Spans are placed next-fit:
 * addresses come back only when the arena has been used once around, and slots are reused in the order
 * they were freed. Both let the table say "freed" about a stale pointer for as long as possible.
 *
 * Memory from elsewhere (registered host memory, mapped virtual memory) is in ranges.c. */
#include "absence.h"
#include "arena.h"
#include "hidden.h"
#include "ranges.h"
#include "shadow.h"
#include "usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_LARGEST (UINT64_C(1) << 42)
#define ARENA_SMALLEST (UINT64_C(1) << 34)
#define ARENA_ALIGNMENT (UINT64_C(1) << 30)

struct arena arena = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t with_state(uint64_t tag, enum state state) { return (tag & ~UINT64_C(15)) | state; }

/* ---- start -------------------------------------------------------------------------------------------- */

/* The memory this process may use: physical memory or the limit of its control group, less a tenth for
 * everything that is not device memory. */
static uint64_t chosen_limit;

void cpu_memory_set_host_capacity(uint64_t bytes) { chosen_limit = bytes; }

static uint64_t host_limit(void) {
    if (chosen_limit) return chosen_limit;
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        FILE *file = fopen(limits[i], "re");
        unsigned long long limit;
        if (file == NULL) continue;
        if (fscanf(file, "%llu", &limit) == 1 && limit < bytes) bytes = limit;
        fclose(file);
    }
    return bytes / 10 * 9;
}

static void *reserve_pages(size_t size, int protection) {
    void *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void start(void) {
    slabs_start();
    arena.host_capacity = host_limit();
    for (uint64_t size = ARENA_LARGEST; size >= ARENA_SMALLEST; size /= 2) {
        uint8_t *range = reserve_pages(size + ARENA_ALIGNMENT, PROT_NONE);
        if (range == NULL) continue;
        uint32_t chunks = (uint32_t)(size >> CHUNK_SHIFT);
        arena.chunk = reserve_pages(chunks * sizeof(struct chunk), PROT_READ | PROT_WRITE);
        arena.taken = reserve_pages(chunks / 8, PROT_READ | PROT_WRITE);
        if (arena.chunk == NULL || arena.taken == NULL) {
            if (arena.chunk) munmap(arena.chunk, chunks * sizeof(struct chunk));
            if (arena.taken) munmap(arena.taken, chunks / 8);
            munmap(range, size + ARENA_ALIGNMENT);
            continue;
        }
        madvise(range, size + ARENA_ALIGNMENT, MADV_DONTDUMP);
        arena.size = size;
        arena.chunks = chunks;
        store(&arena.base, round_up((uint64_t)range, ARENA_ALIGNMENT));
        return;
    }
}

void arena_ensure_started(void) { pthread_once(&arena.once, start); }

/* ---- accounting --------------------------------------------------------------------------------------- */

void cpu_memory_set_capacity(int device, uint64_t bytes) {
    arena_ensure_started();
    if (device >= 0 && device < CPU_MEMORY_DEVICES) store(&arena.capacity[device], bytes);
}

uint64_t cpu_memory_capacity(int device) {
    arena_ensure_started();
    return device < 0 ? arena.host_capacity : load(&arena.capacity[device]);
}

uint64_t cpu_memory_used(int device) { return load(device < 0 ? &arena.host_used : &cpu_usage_of(device)->memory); }

uint64_t cpu_memory_free_bytes(int device) {
    arena_ensure_started();
    uint64_t used = load(&arena.host_used);
    uint64_t host = used < arena.host_capacity ? arena.host_capacity - used : 0;
    if (device < 0) return host;
    used = load(&cpu_usage_of(device)->memory);
    uint64_t model = load(&arena.capacity[device]);
    model = used < model ? model - used : 0;
    return model < host ? model : host;
}

static int charge_one(uint64_t *used, uint64_t capacity, uint64_t bytes) {
    uint64_t before = __atomic_fetch_add(used, bytes, __ATOMIC_RELAXED);
    if (bytes <= capacity && before <= capacity - bytes) return 1;
    __atomic_fetch_sub(used, bytes, __ATOMIC_RELAXED);
    return 0;
}

int cpu_memory_charge(int device, uint64_t bytes) {
    arena_ensure_started();
    if (device >= 0) cpu_memory_wait();
    if (device >= 0 && !charge_one(&cpu_usage_of(device)->memory, load(&arena.capacity[device]), bytes))
        return CPU_MEMORY_DEVICE_FULL;
    if (charge_one(&arena.host_used, arena.host_capacity, bytes)) return CPU_MEMORY_OK;
    if (device >= 0) __atomic_fetch_sub(&cpu_usage_of(device)->memory, bytes, __ATOMIC_RELAXED);
    return CPU_MEMORY_HOST_FULL;
}

void cpu_memory_uncharge(int device, uint64_t bytes) {
    if (device >= 0) cpu_memory_wait();
    if (device >= 0) __atomic_fetch_sub(&cpu_usage_of(device)->memory, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&arena.host_used, bytes, __ATOMIC_RELAXED);
}

/* ---- reading ------------------------------------------------------------------------------------------ */

/* The record of the slot that contains an address, and the address where the slot begins. */
static struct record *record_at(uint64_t address, uint64_t *slot_base) {
    uint64_t offset = address - load(&arena.base);
    if (offset >= arena.size) return NULL;
    uint32_t head = load(&arena.chunk[offset >> CHUNK_SHIFT].head);
    if (head-- == 0) return NULL;
    struct chunk *chunk = &arena.chunk[head];
    uint32_t slot = load(&chunk->slot);
    uint64_t inside = offset - ((uint64_t)head << CHUNK_SHIFT);
    if (slot == 0) {
        *slot_base = chunk_address(head);
        return &chunk->single;
    }
    if (inside >= CHUNK) return NULL;
    uint32_t index = (uint32_t)inside / slot;
    if (index >= chunk->slots) return NULL;
    *slot_base = chunk_address(head) + (uint64_t)index * slot;
    return load(&chunk->records) + index;
}

static void describe(cpu_allocation *found, uint64_t base, uint64_t tag, const struct record *record) {
    *found = (cpu_allocation){
        .base = base,
        .size = tag_size(tag),
        .kind = (int32_t)(tag >> 4 & 15),
        .device = (int32_t)(tag >> 8 & 255) - 1,
        .id = load(&record->id),
        .freed = tag_state(tag) == FREED || tag_state(tag) == RETIRED,
        .freeing = tag_state(tag) == FREEING,
        .owner = load(&record->owner),
        .flags = load(&record->flags),
        .allocated_at = load(&record->allocated_at),
        .freed_at = load(&record->freed_at),
    };
}

int cpu_memory_find(uint64_t address, cpu_allocation *found) {
    uint64_t base;
    const struct record *record = record_at(address, &base);
    if (record) {
        uint64_t tag = load(&record->tag);
        enum state state = tag_state(tag);
        if (state == LIVE || state == FREEING) {
            if (address - base >= tag_size(tag)) return 0;
            describe(found, base, tag, record);
            return 1;
        }
        if (state != RESERVED) return 0;
    }
    return ranges_near(address, 0, found) && address - found->base < found->size;
}

int cpu_memory_lookup(uint64_t address, cpu_allocation *found) {
    uint64_t base;
    const struct record *record = record_at(address, &base);
    if (record == NULL) return cpu_memory_find(address, found);
    uint64_t tag = load(&record->tag);
    if (tag_state(tag) == RESERVED) return cpu_memory_find(address, found);
    if (tag_state(tag) == NEVER || address - base >= tag_size(tag)) return 0;
    describe(found, base, tag, record);
    return 1;
}

int cpu_memory_last(uint64_t address, cpu_allocation *found) {
    cpu_allocation gone, near;
    if (cpu_memory_find(address, found)) return 1;
    if (!ranges_gone(address, &gone)) return cpu_memory_lookup(address, found);
    /* The addresses may have got other memory since then. */
    if (cpu_memory_nearest(address, &near) && near.id > gone.id && near.base - gone.base < gone.size) *found = near;
    else *found = gone;
    return 1;
}

void cpu_memory_each(void (*visit)(const cpu_allocation *allocation, void *data), void *data) {
    cpu_allocation found;
    for (uint32_t i = 0; i < arena.chunks; i++) {
        if (i % 64 == 0 && load(&arena.taken[i / 64]) == 0) {
            i += 63;
            continue;
        }
        struct chunk *chunk = &arena.chunk[i];
        if (load(&chunk->head) != i + 1) continue;
        uint32_t slot = load(&chunk->slot), slots = slot ? chunk->slots : 1;
        for (uint32_t s = 0; s < slots; s++) {
            const struct record *record = slot ? load(&chunk->records) + s : &chunk->single;
            uint64_t tag = load(&record->tag);
            if (tag_state(tag) != LIVE && tag_state(tag) != FREEING) continue;
            describe(&found, chunk_address(i) + (uint64_t)s * slot, tag, record);
            visit(&found, data);
        }
    }
    for (uint64_t address = 0; ranges_near(address, 1, &found); address = found.base) visit(&found, data);
}

int cpu_memory_owns(uint64_t address) { return address - load(&arena.base) < arena.size; }

static uint64_t distance(uint64_t address, const cpu_allocation *a) {
    if (address < a->base) return a->base - address;
    return address - a->base < a->size ? 0 : address - a->base - a->size + 1;
}

static int keep_nearer(uint64_t address, const cpu_allocation *candidate, cpu_allocation *found, int have) {
    if (!have || distance(address, candidate) < distance(address, found)) *found = *candidate;
    return 1;
}

int cpu_memory_nearest(uint64_t address, cpu_allocation *found) {
    enum { REACH = 512 }; /* chunks to look at on either side */
    cpu_allocation candidate;
    int have = 0;
    for (uint32_t next = 0; next < 2; next++)
        if (ranges_near(address, next, &candidate)) have = keep_nearer(address, &candidate, found, have);
    uint64_t offset = address - load(&arena.base);
    if (arena.size == 0 || offset >= arena.size) return have;
    int64_t middle = (int64_t)(offset >> CHUNK_SHIFT), last_head = -1;
    for (int64_t i = middle - REACH; i <= middle + REACH; i++) {
        if (i < 0 || i >= arena.chunks) continue;
        uint32_t head = load(&arena.chunk[i].head);
        if (head-- == 0 || head == last_head) continue;
        last_head = head;
        struct chunk *chunk = &arena.chunk[head];
        uint32_t slot = load(&chunk->slot), slots = slot ? chunk->slots : 1;
        for (uint32_t s = 0; s < slots; s++) {
            const struct record *record = slot ? load(&chunk->records) + s : &chunk->single;
            uint64_t tag = load(&record->tag);
            if (tag_state(tag) == NEVER || tag_state(tag) == RESERVED) continue;
            describe(&candidate, chunk_address(head) + (uint64_t)s * slot, tag, record);
            have = keep_nearer(address, &candidate, found, have);
        }
    }
    return have;
}

/* ---- placement ---------------------------------------------------------------------------------------- */

static int is_taken(uint32_t i) { return arena.taken[i / 64] >> (i % 64) & 1; }

void arena_set_taken(uint32_t first, uint32_t count, int value) {
    for (uint32_t i = first; i < first + count;) {
        if (i % 64 == 0 && first + count - i >= 64) {
            store(&arena.taken[i / 64], value ? UINT64_MAX : 0);
            i += 64;
            continue;
        }
        uint64_t bit = UINT64_C(1) << (i % 64);
        store(&arena.taken[i / 64], value ? arena.taken[i / 64] | bit : arena.taken[i / 64] & ~bit);
        i++;
    }
}

/* A run of free chunks that begins at a multiple of `step` chunks within [from, to). With the lock. */
static uint32_t free_run(uint32_t from, uint32_t to, uint32_t count, uint32_t step) {
    uint32_t start = (from + step - 1) / step * step;
    while (start < to && to - start >= count) {
        uint32_t length = 0;
        while (length < count && !is_taken(start + length)) length++;
        if (length == count) return start;
        uint32_t behind = start + length + 1;
        while (behind % 64 == 0 && behind < to && arena.taken[behind / 64] == UINT64_MAX) behind += 64;
        start = (behind + step - 1) / step * step;
    }
    return NO_CHUNK;
}

uint32_t arena_take_chunks(uint32_t count, uint32_t step, uint32_t hint) {
    uint64_t hint_end = (uint64_t)hint + count;
    if (hint != NO_CHUNK && hint_end <= arena.chunks && free_run(hint, (uint32_t)hint_end, count, step) == hint) {
        arena_set_taken(hint, count, 1);
        return hint;
    }
    uint32_t first = free_run(arena.cursor, arena.chunks, count, step);
    if (first == NO_CHUNK) {
        uint64_t end = (uint64_t)arena.cursor + count;
        first = free_run(0, end < arena.chunks ? (uint32_t)end : arena.chunks, count, step);
    }
    if (first == NO_CHUNK) return first;
    arena_set_taken(first, count, 1);
    arena.cursor = first + count < arena.chunks ? first + count : 0;
    return first;
}

void arena_give_chunks(uint32_t first, uint32_t count) {
    pthread_mutex_lock(&arena.lock);
    arena_set_taken(first, count, 0);
    pthread_mutex_unlock(&arena.lock);
}

int arena_commit(uint64_t base, uint64_t bytes) {
    if (mprotect((void *)base, bytes, PROT_READ | PROT_WRITE) == 0) return CPU_MEMORY_OK;
    return CPU_MEMORY_HOST_FULL;
}

int arena_commit_file(uint64_t base, uint64_t bytes, int file, uint64_t offset) {
    void *at = mmap((void *)base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t)offset);
    return at == MAP_FAILED ? CPU_MEMORY_HOST_FULL : CPU_MEMORY_OK;
}

/* Give the pages back to the system; the addresses stay reserved. With the same advice as what was never used, they
 * become one mapping with it again: a process may have 65,530 only, and addresses come back late. */
void cpu_memory_decommit(uint64_t base, uint64_t bytes) {
    mmap((void *)base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    madvise((void *)base, bytes, MADV_DONTDUMP);
}

/* ---- spans -------------------------------------------------------------------------------------------- */

/* file: the memory is that of a file, from file_offset on; -1: memory of its own. */
static int obtain_span(uint64_t tag, uint64_t size, uint64_t step, uint64_t hint, int file, uint64_t file_offset,
                       void *owner, uint64_t *base, uint64_t *room) {
    uint64_t guard = tag_state(tag) == RESERVED ? 0 : PAGE; /* reservations may adjoin */
    uint64_t count = (size + guard + CHUNK - 1) >> CHUNK_SHIFT, offset = hint - arena.base;
    if (count > arena.chunks) return CPU_MEMORY_ARENA_FULL;
    uint32_t at = offset < arena.size && offset % step == 0 ? (uint32_t)(offset >> CHUNK_SHIFT) : NO_CHUNK;
    pthread_mutex_lock(&arena.lock);
    uint32_t first = arena_take_chunks((uint32_t)count, (uint32_t)(step >> CHUNK_SHIFT), at);
    pthread_mutex_unlock(&arena.lock);
    if (first == NO_CHUNK) return CPU_MEMORY_ARENA_FULL;
    struct chunk *head = &arena.chunk[first];
    uint64_t bytes = round_up(size, PAGE);
    *base = chunk_address(first);
    *room = bytes;
    if (tag_state(tag) != RESERVED) {
        int status = file < 0 ? arena_commit(*base, bytes) : arena_commit_file(*base, bytes, file, file_offset);
        if (status) {
            arena_give_chunks(first, (uint32_t)count);
            return status;
        }
        if (bytes >= 2 * CHUNK && file < 0) madvise((void *)*base, bytes, MADV_HUGEPAGE);
    }
    store(&head->head, 0);
    store(&head->single.tag, NEVER);
    store(&head->slot, 0);
    head->chunks = (uint32_t)count;
    head->room = bytes;
    head->file_offset = file_offset;
    publish(&head->single, tag, owner);
    for (uint32_t i = 0; i < count; i++) store(&arena.chunk[first + i].head, first + 1);
    return CPU_MEMORY_OK;
}

static void release_span(struct chunk *head) {
    uint32_t first = (uint32_t)(head - arena.chunk);
    cpu_memory_decommit(chunk_address(first), (uint64_t)head->chunks << CHUNK_SHIFT);
    arena_give_chunks(first, head->chunks);
}

void cpu_memory_close(uint64_t low, uint64_t high) {
    pthread_mutex_lock(&arena.lock);
    for (uint64_t at = low < arena.base ? arena.base : low; at < high && at < arena.base + arena.size;) {
        uint32_t index = (uint32_t)((at - arena.base) >> CHUNK_SHIFT);
        uint64_t end = chunk_address(index) + CHUNK;
        if (end > high) end = high;
        if (!is_taken(index)) cpu_memory_decommit(at, end - at);
        at = end;
    }
    pthread_mutex_unlock(&arena.lock);
}

/* ---- allocating, freeing ------------------------------------------------------------------------------ */

static int obtain(int device, int kind, uint64_t size, enum sharing sharing, void *owner, uint64_t *base,
                  uint64_t *room) {
    arena_ensure_started();
    if (size == 0 || size >= arena.size) return CPU_MEMORY_ARENA_FULL;
    uint64_t tag = make_tag(size, device, kind, LIVE);
    /* The host's accesses to a page are to be those to one allocation (hidden.h). */
    bool apart = asked(atomic_load_explicit(&cpu_shadow_remembers, memory_order_relaxed)) &&
                 (kind == CPU_MEMORY_PINNED || kind == CPU_MEMORY_MANAGED);
    if (size <= CPU_MEMORY_SMALL && !apart) return slabs_obtain(tag, size, sharing, owner, base, room);
    return obtain_span(tag, size, CHUNK, 0, -1, 0, owner, base, room);
}

/* Memory that kernels are to write before they read it; what the host sees, it may write unseen. */
static void note_new(int kind, uint64_t base, uint64_t size) {
    if (asked(atomic_load_explicit(&cpu_shadow_remembers, memory_order_relaxed))) cpu_shadow_forget(base, size);
    if (!asked(atomic_load_explicit(&cpu_shadow_tracks, memory_order_relaxed))) return;
    if (kind == CPU_MEMORY_DEVICE || kind == CPU_MEMORY_HEAP) cpu_shadow_set_unset(base, size);
    else cpu_shadow_set_written(base, size);
}

int cpu_memory_obtain(int device, int kind, uint64_t size, void *owner, uint64_t *base, uint64_t *room) {
    int status = obtain(device, kind, size, OWN, owner, base, room);
    if (!status) note_new(kind, *base, size);
    return status;
}

int cpu_memory_obtain_file(int device, int kind, uint64_t size, int file, uint64_t offset, void *owner,
                           uint64_t *base) {
    uint64_t room;
    arena_ensure_started();
    if (size == 0 || size >= arena.size) return CPU_MEMORY_ARENA_FULL;
    return obtain_span(make_tag(size, device, kind, LIVE), size, CHUNK, 0, file, offset, owner, base, &room);
}

uint64_t cpu_memory_file_offset(uint64_t base) { return arena.chunk[(base - arena.base) >> CHUNK_SHIFT].file_offset; }

/* The record whose allocation begins exactly at an address, NULL with the status when there is none. */
static struct record *record_of(uint64_t base, int *status) {
    uint64_t slot_base;
    struct record *record = record_at(base, &slot_base);
    *status = CPU_MEMORY_UNKNOWN;
    return record && slot_base == base && tag_state(load(&record->tag)) != NEVER ? record : NULL;
}

/* Change the state of an allocation from one of a set of states (a mask). */
static int change_state(uint64_t base, unsigned from, enum state to, struct record **changed) {
    int status;
    struct record *record = record_of(base, &status);
    if (record == NULL) return status;
    uint64_t tag = load(&record->tag);
    do {
        if (!(from >> tag_state(tag) & 1))
            return tag_state(tag) >= FREEING && tag_state(tag) <= FREED ? CPU_MEMORY_FREED : CPU_MEMORY_UNKNOWN;
    } while (
        !__atomic_compare_exchange_n(&record->tag, &tag, with_state(tag, to), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    if (changed) *changed = record;
    return CPU_MEMORY_OK;
}

static void release_place(uint64_t base) {
    struct chunk *chunk = &arena.chunk[(base - arena.base) >> CHUNK_SHIFT];
    if (chunk->slot) slabs_release(chunk, (uint32_t)(base & (CHUNK - 1)) / chunk->slot);
    else release_span(chunk);
}

uint64_t cpu_memory_room(uint64_t base) {
    const struct chunk *chunk = &arena.chunk[(base - arena.base) >> CHUNK_SHIFT];
    return chunk->slot ? chunk->slot - GAP : chunk->room;
}

int cpu_memory_has_pages(uint64_t base) { return !arena.chunk[(base - arena.base) >> CHUNK_SHIFT].slot; }

int cpu_memory_release(uint64_t base) {
    struct record *record;
    int status = change_state(base, 1u << LIVE | 1u << FREEING | 1u << RETIRED, FREED, &record);
    if (status) return status;
    cpu_hidden_forget(base, tag_size(load(&record->tag)));
    release_place(base);
    return status;
}

static uint64_t charge_of(uint64_t size) { return round_up(size, CPU_MEMORY_ALIGNMENT); }

/* Managed memory may exceed the device's: only this computer has to hold it. */
static int charged_to(int device, int kind) {
    return kind == CPU_MEMORY_PINNED || kind == CPU_MEMORY_MANAGED ? CPU_MEMORY_HOST : device;
}

int cpu_memory_allocate(int device, int kind, uint64_t size, void *owner, uint64_t *base) {
    uint64_t room;
    int charged = charged_to(device, kind);
    if (size >= UINT64_C(1) << 47) return charged == CPU_MEMORY_HOST ? CPU_MEMORY_HOST_FULL : CPU_MEMORY_DEVICE_FULL;
    int status = cpu_memory_charge(charged, charge_of(size));
    if (status) return status;
    status = obtain(device, kind, size, kind == CPU_MEMORY_DEVICE ? SHARED : OWN, owner, base, &room);
    if (status) cpu_memory_uncharge(charged, charge_of(size));
    else note_new(kind, *base, size);
    return status;
}

int cpu_memory_free(uint64_t base) {
    struct record *record;
    int status = change_state(base, 1u << LIVE | 1u << FREEING, FREED, &record);
    if (status) return status;
    uint64_t tag = load(&record->tag);
    cpu_hidden_forget(base, tag_size(tag));
    cpu_memory_uncharge(charged_to((int)(tag >> 8 & 255) - 1, (int)(tag >> 4 & 15)), charge_of(tag_size(tag)));
    release_place(base);
    return CPU_MEMORY_OK;
}

void cpu_memory_set_flags(uint64_t base, uint32_t flags) {
    int status;
    struct record *record = record_of(base, &status);
    if (record && tag_state(load(&record->tag)) != RESERVED) { /* what is mapped there is a range */
        store(&record->flags, flags);
        return;
    }
    ranges_set_flags(base, flags);
}

void cpu_memory_set_lines(uint64_t base, uint32_t allocated_at, uint32_t freed_at) {
    int status;
    struct record *record = record_of(base, &status);
    if (!record || tag_state(load(&record->tag)) == RESERVED) { /* what is mapped there is a range */
        ranges_set_lines(base, allocated_at, freed_at);
        return;
    }
    if (allocated_at) store(&record->allocated_at, allocated_at);
    if (freed_at) store(&record->freed_at, freed_at);
}

int cpu_memory_mark_freeing(uint64_t base) { return change_state(base, 1u << LIVE, FREEING, NULL); }

int cpu_memory_retire(uint64_t base) { return change_state(base, 1u << LIVE | 1u << FREEING, RETIRED, NULL); }

int cpu_memory_revive(uint64_t base, uint64_t size, void *owner, uint64_t *id) {
    int status;
    struct record *record = record_of(base, &status);
    if (record == NULL) return status;
    uint64_t tag = load(&record->tag);
    if (tag_state(tag) != FREEING && tag_state(tag) != RETIRED) return CPU_MEMORY_UNKNOWN;
    cpu_hidden_forget(base, tag_size(tag));
    publish(record, make_tag(size, (int)(tag >> 8 & 255) - 1, (int)(tag >> 4 & 15), LIVE), owner);
    *id = record->id;
    return CPU_MEMORY_OK;
}

void cpu_memory_renew(uint64_t base) {
    int status;
    const struct record *record = record_of(base, &status);
    const uint64_t tag = record ? load(&record->tag) : 0;
    if (record) note_new((int)(tag >> 4 & 15), base, tag_size(tag));
}

int cpu_memory_reserve(uint64_t size, uint64_t alignment, uint64_t hint, uint64_t *base) {
    uint64_t room;
    arena_ensure_started();
    if (size == 0 || size >= arena.size || alignment > ARENA_ALIGNMENT) return CPU_MEMORY_ARENA_FULL;
    uint64_t step = alignment > CHUNK ? alignment : CHUNK;
    return obtain_span(make_tag(size, CPU_MEMORY_HOST, 0, RESERVED), size, step, hint, -1, 0, NULL, base, &room);
}

int cpu_memory_is_reserved(uint64_t address, uint64_t size) {
    uint64_t base;
    const struct record *record = record_at(address, &base);
    uint64_t tag = record ? load(&record->tag) : 0;
    return tag_state(tag) == RESERVED && address - base + size <= tag_size(tag);
}

int cpu_memory_unreserve(uint64_t base) {
    int status = change_state(base, 1u << RESERVED, FREED, NULL);
    if (status == CPU_MEMORY_OK) release_place(base);
    return status;
}

/* ---- memory from elsewhere ---------------------------------------------------------------------------- */

int cpu_memory_register(uint64_t base, uint64_t size, int device, int kind, void *owner) {
    cpu_allocation range = {.base = base,
                            .size = size,
                            .kind = kind,
                            .device = device,
                            .elsewhere = 1,
                            .id = __atomic_add_fetch(&arena.ids, 1, __ATOMIC_RELAXED),
                            .owner = owner};
    return ranges_add(&range);
}

int cpu_memory_unregister(uint64_t base) { return ranges_remove(base); }
