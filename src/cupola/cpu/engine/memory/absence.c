/* Taking device memory away and bringing it back.
 *
 * The memory of the modeled devices is memory of this computer from the start, so a checkpoint need not copy it: its
 * pages keep their contents, become inaccessible at their device addresses, and count only as memory of the host. In
 * what others see of the process (usage.h) it then uses no device. A call that began before may still touch device
 * memory; it faults and waits until the memory is back (fault/guard.c).
 *
 * Pinned and managed memory belongs to the host, and stays, and so does a slab that has some of it. */
#define _GNU_SOURCE
#include "absence.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena.h"
#include "ranges.h"
#include "usage.h"

static uint32_t away; /* a futex */
static struct {
    uint64_t contexts, memory;
} left[CPU_USAGE_DEVICES];

int cpu_memory_is_away(uint64_t address) { return load(&away) && cpu_memory_owns(address); }

void cpu_memory_wait(void) {
    int before = errno;
    while (load(&away)) syscall(SYS_futex, &away, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    errno = before;
}

/* ---- pages ------------------------------------------------------------------------------------------------------ */

static int has_memory(uint64_t tag) {
    enum state state = tag_state(tag);
    return state == LIVE || state == FREEING || state == RETIRED;
}

static int is_of_device(uint64_t tag) {
    int kind = (int)(tag >> 4 & 15), device = (int)(tag >> 8 & 255) - 1;
    return device >= 0 && kind != CPU_MEMORY_PINNED && kind != CPU_MEMORY_MANAGED;
}

/* The bytes with memory behind them of the span that a chunk begins; 0: none, or with `leaving` some are the host's. */
static uint64_t bytes_of(const struct chunk *chunk, int leaving) {
    uint32_t slot = load(&chunk->slot);
    if (slot == 0) {
        uint64_t tag = load(&chunk->single.tag);
        return has_memory(tag) && is_of_device(tag) ? chunk->room : 0;
    }
    const struct record *records = load(&chunk->records);
    for (uint32_t i = 0; leaving && i < chunk->slots; i++) {
        uint64_t tag = load(&records[i].tag);
        if (has_memory(tag) && !is_of_device(tag)) return 0;
    }
    return CHUNK;
}

/* Set the access to all device memory of the arena. Neighbours are set together: each piece with an access of its own is
 * one of the 65,530 mappings that a process may have. Returns whether the system did it. */
static int set_access(int access) {
    uint64_t begin = 0, end = 0;
    int done = 1;
    pthread_mutex_lock(&arena.lock);
    for (uint32_t i = 0; i < arena.chunks; i++) {
        if (i % 64 == 0 && load(&arena.taken[i / 64]) == 0) {
            i += 63;
            continue;
        }
        const struct chunk *chunk = &arena.chunk[i];
        if (load(&chunk->head) != i + 1) continue;
        uint64_t bytes = bytes_of(chunk, access == PROT_NONE);
        if (!bytes) continue;
        if (chunk_address(i) != end) {
            if (end != begin) done &= !mprotect((void *)begin, end - begin, access);
            begin = chunk_address(i);
        }
        end = chunk_address(i) + bytes;
    }
    if (end != begin) done &= !mprotect((void *)begin, end - begin, access);
    pthread_mutex_unlock(&arena.lock);
    cpu_allocation mapped; /* virtual memory */
    for (uint64_t address = 0; ranges_near(address, 1, &mapped); address = mapped.base)
        if (mapped.device >= 0 && mapped.kind == CPU_MEMORY_DEVICE && cpu_memory_owns(mapped.base))
            done &= !mprotect((void *)mapped.base, mapped.size, access);
    return done;
}

/* ---- both ways -------------------------------------------------------------------------------------------------- */

static void move(uint64_t *from, uint64_t *to) {
    __atomic_fetch_add(to, __atomic_exchange_n(from, 0, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void cpu_memory_leave(void) {
    arena_ensure_started();
    store(&away, 1);
    for (int i = 0; i < CPU_USAGE_DEVICES; i++) {
        move(&cpu_usage_of(i)->contexts, &left[i].contexts);
        move(&cpu_usage_of(i)->memory, &left[i].memory);
    }
    (void)set_access(PROT_NONE); /* what the system leaves accessible is only less well guarded */
}

int cpu_memory_return(const int *places, int count) {
    int done = set_access(PROT_READ | PROT_WRITE);
    for (int i = 0; i < count; i++) cpu_usage_shift[i] = (int8_t)(places[i] - i);
    for (int i = 0; i < CPU_USAGE_DEVICES; i++) {
        move(&left[i].contexts, &cpu_usage_of(i)->contexts);
        move(&left[i].memory, &cpu_usage_of(i)->memory);
    }
    store(&away, 0);
    syscall(SYS_futex, &away, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    return done ? CPU_MEMORY_OK : CPU_MEMORY_HOST_FULL;
}
