/* malloc() and free() in kernels (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and Operations").
 *
 * A block of the heap is an allocation of device memory like others, so every check knows it; its owner is the context,
 * with which it goes. CU_LIMIT_MALLOC_HEAP_SIZE bounds what all of them may take. */
#include "access.h"

#include "engine/device_calls.h"
#include "engine/memory/memory.h"

enum { UNIT = 16 };

static uint64_t charge(uint64_t size) { return (size + UNIT - 1) / UNIT * UNIT; }

uint64_t cpu_heap_allocate(const cpu_launch *launch, uint64_t size) {
    cpu_heap *heap = launch->heap;
    uint64_t base, limit = atomic_load_explicit(&heap->limit, memory_order_relaxed);
    if (size == 0) size = 1;
    if (size > limit) return 0;
    if (atomic_fetch_add_explicit(&heap->used, charge(size), memory_order_relaxed) + charge(size) <= limit &&
        cpu_memory_allocate(launch->device, CPU_MEMORY_HEAP, size, (void *)(uintptr_t)launch->context, &base) ==
            CPU_MEMORY_OK)
        return base;
    atomic_fetch_sub_explicit(&heap->used, charge(size), memory_order_relaxed);
    return 0;
}

bool cpu_heap_free(const cpu_launch *launch, uint64_t address) {
    cpu_allocation found;
    bool known = cpu_memory_lookup(address, &found) && found.base == address && found.kind == CPU_MEMORY_HEAP;
    if (!known || found.freed || found.owner != launch->context || cpu_memory_free(address) != CPU_MEMORY_OK)
        return false;
    atomic_fetch_sub_explicit(&launch->heap->used, charge(found.size), memory_order_relaxed);
    return true;
}

/* malloc for the lanes of the mask: `results` receives addresses, 0 where there is no room. */
CPU_HELPER void cupola_malloc(cpu_context *context, uint32_t mask, const uint64_t *sizes, uint64_t *results) {
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        results[lane] = cpu_heap_allocate(context->job->launch, sizes[lane]);
    }
}

/* free for the lanes of the mask. Nonzero on a fault. */
CPU_HELPER uint32_t cupola_free(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint64_t *addresses,
                                uint32_t site) {
    const cpu_launch *launch = context->job->launch;
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        uint64_t address = addresses[lane];
        if (!address || cpu_heap_free(launch, address)) continue;
        cpu_site where = {.index = site, .space = CPU_SPACE_GLOBAL};
        cpu_fault_raise_access(context, warp, lane, CPU_FAULT_HEAP, where, address, 0, NULL);
        return 1;
    }
    return 0;
}
