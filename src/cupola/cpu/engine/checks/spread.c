/* Copies of memory that nobody has written, within a kernel: cp.async, bulk and tensor copies. To copy it is no mistake, as
 * it is none for copies by the driver (cpu_shadow_copy): what is copied to is then unset, too, and who reads it is told. */
#include "checks.h"

enum { CHUNK = 64 /* words */ };

static uint32_t bytes_of(uint64_t size) { return size < 4 ? (1u << size) - 1 : 15; }

/* The bytes of the word at a generic address that nobody has written; NULL: that is not kept. */
static uint8_t *unset_of(const cpu_context *context, uint64_t address) {
    if (address >> 32 == CPU_LOCAL_WINDOW >> 32) return NULL;
    if (address >> 32 == CPU_SHARED_WINDOW >> 32) {
        const struct cpu_watch *owner = cpu_watch_owner(context, &address);
        return owner && address / 4 < owner->shared_words ? &owner->shared.unset[address / 4] : NULL;
    }
    const cpu_shadow *shadow = cpu_shadow_of(address);
    return shadow ? &shadow->unset[(address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4] : NULL;
}

bool cpu_watch_sees_unset(const cpu_context *context) {
    const struct cpu_watch *watch = cpu_watch_of(context->block);
    return watch && watch->checks & CPU_CHECK_INIT;
}

void cpu_watch_take_unset(const cpu_context *context, uint64_t address, uint64_t size, uint8_t *unset) {
    for (uint64_t done = 0; done < size; done += 4, unset++) {
        const uint8_t *word = unset_of(context, address + done);
        *unset = word ? (uint8_t)(*word & bytes_of(size - done)) : 0;
    }
}

void cpu_watch_put_unset(const cpu_context *context, uint64_t address, uint64_t size, const uint8_t *unset) {
    bool any = false;
    for (uint64_t done = 0; done < size; done += 4, unset++) {
        uint8_t *word = unset_of(context, address + done);
        if (!word) continue;
        *word = (uint8_t)((*word & ~bytes_of(size - done)) | *unset);
        any |= *unset;
    }
    /* Who knows of memory that is written all over is to ask again. */
    if (any && address >> 32 != CPU_SHARED_WINDOW >> 32) atomic_fetch_add(&cpu_shadow_version, 1);
}

void cpu_watch_spread(const cpu_context *context, uint64_t to, uint64_t from, uint64_t size) {
    if (!cpu_watch_sees_unset(context)) return;
    for (uint64_t done = 0; done < size; done += CHUNK * 4) {
        uint8_t unset[CHUNK];
        const uint64_t here = size - done < CHUNK * 4 ? size - done : CHUNK * 4;
        cpu_watch_take_unset(context, from + done, here, unset);
        cpu_watch_put_unset(context, to + done, here, unset);
    }
}

/* ---- called by machine code ------------------------------------------------------------------------------------------- */

/* cp.async of whole elements, to shared memory. */
CPU_HELPER void cupola_watch_spread(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t size,
                                    const uint64_t *to, const uint64_t *from) {
    (void)warp;
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        cpu_watch_spread(context, CPU_SHARED_WINDOW | (uint32_t)to[lane], from[lane], size);
    }
}
