/* The stacks of threads: frames of called functions, and what alloca takes.
 *
 * A thread's stack is in its local memory, behind the kernel's variables, and goes up. A frame begins with the place of
 * the caller's frame and the number of the call (compiler/passes/frames.py); it ends where the stack ends when it is
 * the last one. For each lane `frames` holds where its frame begins (NO_FRAME in the kernel itself), and behind these
 * where its stack ends. Device code may write over all of that, so nothing that is read from a stack is trusted. */
#include "schedule.h"

#include <string.h>

enum { FRAME_ALIGNMENT = 16, LARGER = 4, LARGER_BY = 1024 };
#define NO_FRAME UINT32_MAX

static uint32_t *places(const cpu_warp *warp) { return warp->frames; }

static uint32_t *ends(const cpu_context *context, const cpu_warp *warp) { return warp->frames + context->width; }

static uint32_t *at(const cpu_context *context, const cpu_warp *warp, int lane, uint32_t offset) {
    return (uint32_t *)(warp->local + (size_t)lane * context->local_size + offset);
}

/* Frames hold more here than on a GPU, whose compiler keeps only what registers cannot, so there is room for several
 * times the limit. An odd number of cache lines keeps the stacks of the lanes out of each other's way in the cache. */
uint32_t cpu_stack_local_size(const cpu_launch *launch) {
    const cpu_variant *variant = launch->variant;
    if (!variant->has_stack) return variant->local_bytes;
    uint64_t size = variant->stack_bytes, most = UINT32_MAX / 2;
    if (variant->stack_grows) size += (uint64_t)launch->stack_limit * LARGER + LARGER_BY;
    size = (size + variant->local_bytes + 63) / 64 * 64 | 64;
    return size < most ? (uint32_t)size : (uint32_t)most;
}

void cpu_stack_begin(const cpu_launch *launch, cpu_warp *warp) {
    const cpu_variant *variant = launch->variant;
    for (uint32_t i = 0; i < variant->width; i++) {
        warp->frames[i] = NO_FRAME;
        warp->frames[variant->width + i] = variant->local_bytes;
    }
}

/* The frame's head, or NULL when the stack was written over. */
static const uint32_t *head(const cpu_context *context, const cpu_warp *warp, int lane, uint32_t place) {
    if (place > context->local_size - FRAME_ALIGNMENT || place % FRAME_ALIGNMENT) return NULL;
    return at(context, warp, lane, place);
}

uint32_t cpu_stack_calls(const cpu_context *context, const cpu_warp *warp, int lane, uint32_t *calls) {
    uint32_t count = 0;
    if (!context->job->launch->variant->has_stack) return 0;
    for (uint32_t place = places(warp)[lane]; place != NO_FRAME; count++) {
        const uint32_t *frame = head(context, warp, lane, place);
        if (!frame || (frame[0] != NO_FRAME && frame[0] >= place)) break;
        if (count < CPU_FAULT_CALLS) calls[count] = frame[1];
        place = frame[0];
    }
    return count;
}

/* ---- called by machine code --------------------------------------------------------------------------------- */

static uint32_t overflow(cpu_context *context, const cpu_warp *warp, int lane, uint32_t site, uint64_t wanted) {
    const cpu_launch *launch = context->job->launch;
    uint32_t whole = context->local_size - launch->variant->local_bytes;
    uint32_t used = ends(context, warp)[lane] - launch->variant->local_bytes;
    cpu_fault_raise(context, warp, lane, CPU_FAULT_STACK, site,
                    "%llu bytes more are needed, but %u of the %u bytes of a thread's stack are in use; a larger "
                    "CU_LIMIT_STACK_SIZE (it is %u; cuCtxSetLimit) makes it larger",
                    (unsigned long long)wanted, used, whole, launch->stack_limit);
    return 1;
}

/* Begin a frame of `size` bytes in the lanes of the mask, for the calls of these numbers. Nonzero on a fault. */
CPU_HELPER uint32_t cupola_enter(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint32_t *numbers,
                                 uint32_t size, uint32_t site) {
    uint32_t *place = places(warp), *end = ends(context, warp);
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        uint32_t begin = end[lane];
        if (begin > context->local_size || context->local_size - begin < size)
            return overflow(context, warp, lane, site, size);
        uint32_t *frame = at(context, warp, lane, begin);
        frame[0] = place[lane];
        frame[1] = numbers[lane];
        place[lane] = begin;
        end[lane] = begin + size;
    }
    return 0;
}

/* End the frame of the lanes in the mask: `numbers` receives the calls for which they were. */
CPU_HELPER void cupola_leave(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t *numbers) {
    uint32_t *place = places(warp), *end = ends(context, warp);
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        const uint32_t *frame = head(context, warp, lane, place[lane]);
        numbers[lane] = frame ? frame[1] : 0;
        if (!frame) continue;
        end[lane] = place[lane];
        place[lane] = frame[0];
    }
}

/* alloca: `results` receives offsets in local memory. Nonzero on a fault. */
CPU_HELPER uint32_t cupola_alloca(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint64_t *sizes,
                                  uint32_t alignment, uint32_t *results, uint32_t site) {
    uint32_t *end = ends(context, warp);
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        uint64_t unit = alignment > FRAME_ALIGNMENT ? alignment : FRAME_ALIGNMENT;
        uint64_t begin = (end[lane] + unit - 1) / unit * unit;
        uint64_t size = (sizes[lane] + FRAME_ALIGNMENT - 1) / FRAME_ALIGNMENT * FRAME_ALIGNMENT;
        if (begin > context->local_size || context->local_size - begin < sizes[lane] || size < sizes[lane] ||
            context->local_size - begin < size)
            return overflow(context, warp, lane, site, sizes[lane]);
        results[lane] = (uint32_t)begin;
        end[lane] = (uint32_t)(begin + size);
    }
    return 0;
}

/* A call by a pointer that points to no function that it may reach. */
CPU_HELPER void cupola_bad_call(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint64_t *pointers,
                                uint32_t site) {
    int lane = __builtin_ctz(mask);
    uint64_t pointer = pointers[lane];
    if (!pointer) cpu_fault_raise(context, warp, lane, CPU_FAULT_CALL, site, "the pointer is null");
    else if (pointer >= CPU_CODE_WINDOW && pointer - CPU_CODE_WINDOW < CPU_CODE_WINDOW)
        cpu_fault_raise(context, warp, lane, CPU_FAULT_CALL, site,
                        "the function at %#llx takes other parameters than the call passes, or is of another module",
                        (unsigned long long)pointer);
    else
        cpu_fault_raise(context, warp, lane, CPU_FAULT_CALL, site, "%#llx is not the address of a function",
                        (unsigned long long)pointer);
}

/* A return address that no call has written. */
CPU_HELPER void cupola_bad_return(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint64_t *numbers,
                                  uint32_t site) {
    (void)numbers;
    cpu_fault_raise(context, warp, __builtin_ctz(mask), CPU_FAULT_STACK, site,
                    "the thread's stack was written over: the place to return to is lost");
}
