/* Allocation of device, pinned and managed memory (CUDA Driver API, "Memory Management"). */
#include "driver/base/origin.h"
#include "driver/stream/moment.h"
#include "driver/trace/trace.h"
#include "engine/above.h"
#include "pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- explanations ------------------------------------------------------------------------------------- */

/* A size as people say it: "1.5 GiB". */
static const char *bytes_text(uint64_t bytes, char text[32]) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit < 4) value /= 1024, unit++;
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

/* What is said of pools: how much they have reserved, and that they take more than is asked of them. */
static const char *pools_text(int device, size_t size, size_t taken, char text[160]) {
    char reserved[32], allocated[32], step[32];
    struct pools_total pools = pools_total(device);
    int length = 0;
    *text = 0;
    if (pools.reserved)
        length = snprintf(text, 160, " Of these, memory pools have reserved %s for allocations of %s.",
                          bytes_text(pools.reserved, reserved), bytes_text(pools.used, allocated));
    if (taken > size)
        snprintf(text + length, 160 - (size_t)length, " Memory pools reserve %s at a time.",
                 bytes_text(CPU_MEMORY_STEP, step));
    return text;
}

CUresult memory_refused_to_pool(int status, int device, size_t size, size_t taken) {
    char wanted[32], used[32], total[32], pools[160];
    bytes_text(size, wanted);
    if (status == CPU_MEMORY_DEVICE_FULL && device == CPU_MEMORY_HOST) status = CPU_MEMORY_HOST_FULL;
    switch (status) {
        case CPU_MEMORY_OK: return CUDA_SUCCESS;
        case CPU_MEMORY_DEVICE_FULL:
            return fail(CUDA_ERROR_OUT_OF_MEMORY,
                        "%s do not fit: the modeled device %d has %s of memory%s, of which %s are in use.%s %s", wanted,
                        device, bytes_text(cpu_memory_capacity(device), total),
                        cpu_memory_capacity(device) < devices[device].model->memory ? " (limited by cupola.cpu.faults)"
                                                                                    : "",
                        bytes_text(cpu_memory_used(device), used), pools_text(device, size, taken, pools),
                        taken > cpu_memory_capacity(device) ? "To free memory would not help."
                                                            : "Free memory, or trim the memory pools.");
        case CPU_MEMORY_HOST_FULL:
            return fail(
                CUDA_ERROR_OUT_OF_MEMORY,
                "%s do not fit: the CPU device keeps its memory in this computer's, which may hold %s for it, of "
                "which %s are in use. Use smaller data, or set CUPOLA_CPU_MEMORY (such as 8G) to allow more.",
                wanted, bytes_text(cpu_memory_capacity(CPU_MEMORY_HOST), total),
                bytes_text(cpu_memory_used(CPU_MEMORY_HOST), used));
        case CPU_MEMORY_ARENA_FULL:
            return fail(CUDA_ERROR_OUT_OF_MEMORY,
                        "no range of %s is left in the addresses that the CPU device reserved%s.", wanted,
                        address_space_advice());
        default: return fail(CUDA_ERROR_UNKNOWN, "unexpected state %d of the memory of the CPU device.", status);
    }
}

CUresult memory_refused(int status, int device, size_t size) {
    return memory_refused_to_pool(status, device, size, size);
}

enum { LINES_SIZE = 1024 };

/* The lines of Python that allocated memory, and freed it, as far as they are known. */
static const char *lines_text(const cpu_allocation *of, char text[LINES_SIZE]) {
    const struct cpu_origin *allocated = cpu_driver_origin(of->allocated_at);
    const struct cpu_origin *freed = of->freed || of->freeing ? cpu_driver_origin(of->freed_at) : NULL;
    size_t used = 0;
    *text = 0;
    if (freed) used = (size_t)snprintf(text, LINES_SIZE, " at %s:%d", freed->file, freed->line);
    if (allocated && used < LINES_SIZE)
        snprintf(text + used, LINES_SIZE - used, ", allocated at %s:%d", allocated->file, allocated->line);
    return text;
}

static CUresult explain_stray(uint64_t address, size_t size, const char *role) {
    cpu_allocation near;
    uint64_t far = UINT64_C(1) << 20;
    if (cpu_memory_owns(address) ? cpu_memory_last(address, &near) : cpu_memory_lookup(address, &near)) {
        char lines[LINES_SIZE];
        if (near.freed || near.freeing)
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "%s, 0x%llx, lies in an allocation of %llu bytes at 0x%llx that was freed%s.", role,
                        (unsigned long long)address, (unsigned long long)near.size, (unsigned long long)near.base,
                        lines_text(&near, lines));
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "%s, %llu bytes from 0x%llx on, reaches %llu bytes past the end of the allocation of "
                    "%llu bytes at 0x%llx%s.",
                    role, (unsigned long long)size, (unsigned long long)address,
                    (unsigned long long)(address + size - near.base - near.size), (unsigned long long)near.size,
                    (unsigned long long)near.base, lines_text(&near, lines));
    }
    if (cpu_memory_nearest(address, &near) && address - near.base - near.size < far)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "%s, 0x%llx, is %llu bytes past the end of the %sallocation of %llu bytes at 0x%llx.", role,
                    (unsigned long long)address, (unsigned long long)(address - near.base - near.size),
                    near.freed ? "freed " : "", (unsigned long long)near.size, (unsigned long long)near.base);
    return fail(CUDA_ERROR_INVALID_VALUE, "%s, 0x%llx, is not an address of device memory or of pinned host memory.",
                role, (unsigned long long)address);
}

CUresult memory_check(uint64_t address, size_t size, enum range_rule rule, const char *role, bool *pageable) {
    return memory_check_access(address, size, rule, role, pageable, &(struct accessor){.device = ANYBODY}, false);
}

CUresult memory_check_access(uint64_t address, size_t size, enum range_rule rule, const char *role, bool *pageable,
                             const struct accessor *accessor, bool is_write) {
    bool planned = rule == RANGE_PLANNED || rule == RANGE_PLANNED_ANY;
    uint64_t at = address, end = address + size;
    if (pageable) *pageable = false;
    if (size == 0) return CUDA_SUCCESS;
    if (unlikely(address == 0)) return fail(CUDA_ERROR_INVALID_VALUE, "%s is a null pointer.", role);
    if (unlikely(end < address))
        return fail(CUDA_ERROR_INVALID_VALUE, "%s, %llu bytes from 0x%llx on, does not fit in the address space.", role,
                    (unsigned long long)size, (unsigned long long)address);
    do {
        cpu_allocation found;
        if (unlikely(!cpu_memory_find(at, &found) || (found.freeing && rule != RANGE_RUNNING))) {
            if (!(planned && cpu_memory_lookup(at, &found) && pool_is_planned(&found))) {
                bool host = (rule == RANGE_ANY || rule == RANGE_PLANNED_ANY) && at == address && !cpu_memory_owns(at);
                if (!host) return explain_stray(address, size, role);
                if (pageable) *pageable = true;
                return CUDA_SUCCESS;
            }
        }
        if (injects(INJECT_LOST) && found.device >= 0 && injected_loss(found.device))
            return fail(injected_loss(found.device), "%s, 0x%llx, is memory of device %d, which is lost", role,
                        (unsigned long long)at, found.device);
        if (unlikely(accessor->device != ANYBODY && (found.device != accessor->device || found.flags & MEMORY_VIRTUAL)))
            RETURN_IF(access_check(&found, at, accessor, is_write, role));
        at = found.base + found.size; /* mapped virtual memory may continue in the next mapping */
    } while (at < end);
    return CUDA_SUCCESS;
}

/* ---- allocation --------------------------------------------------------------------------------------- */

CUresult memory_allocate(CUcontext context, int kind, size_t size, uint64_t *address) {
    int device = context->device->ordinal;
    int status = cpu_memory_allocate(device, kind, size, context, address);
    if (unlikely(status)) {
        pools_trim();
        status = cpu_memory_allocate(device, kind, size, context, address);
    }
    if (!status && tracing()) memory_trace(false, device, size, NULL);
    return status ? memory_refused(status, device, size) : CUDA_SUCCESS;
}

static CUresult check_request(const void *result, const char *name, size_t size) {
    if (result == NULL) return fail_null(name);
    if (size == 0) return fail(CUDA_ERROR_INVALID_VALUE, "an allocation must have at least one byte.");
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *dptr, size_t bytesize) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    RETURN_IF(check_request(dptr, "dptr", bytesize));
    RETURN_IF(capture_check_thread("cuMemAlloc"));
    uint64_t address;
    RETURN_IF(memory_allocate(context, CPU_MEMORY_DEVICE, bytesize, &address));
    note_allocation(address, bytesize, "cuMemAlloc");
    *dptr = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                         unsigned int ElementSizeBytes) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    if (pPitch == NULL) return fail_null("pPitch");
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
        return fail(CUDA_ERROR_INVALID_VALUE, "ElementSizeBytes is %u; it must be 4, 8 or 16.", ElementSizeBytes);
    size_t pitch, bytes;
    if (__builtin_add_overflow(WidthInBytes, 511, &pitch) ||
        __builtin_mul_overflow(pitch & ~(size_t)511, Height, &bytes))
        return fail(CUDA_ERROR_INVALID_VALUE, "%zu rows of %zu bytes are more than the address space holds.", Height,
                    WidthInBytes);
    RETURN_IF(check_request(dptr, "dptr", bytes));
    RETURN_IF(capture_check_thread("cuMemAllocPitch"));
    uint64_t address;
    RETURN_IF(memory_allocate(context, CPU_MEMORY_DEVICE, bytes, &address));
    note_allocation(address, bytes, "cuMemAllocPitch");
    *dptr = address;
    *pPitch = pitch & ~(size_t)511;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    RETURN_IF(check_request(dptr, "dptr", bytesize));
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return fail(CUDA_ERROR_INVALID_VALUE, "flags is %#x; it must be CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST.",
                    flags);
    RETURN_IF(capture_check_thread("cuMemAllocManaged"));
    uint64_t address;
    RETURN_IF(memory_allocate(context, CPU_MEMORY_MANAGED, bytesize, &address));
    cpu_memory_set_flags(address, flags);
    note_allocation(address, bytesize, "cuMemAllocManaged");
    *dptr = address;
    return CUDA_SUCCESS;
}

void memory_wait_for_users(CUcontext context) {
    size_t count;
    CUstream *streams = context ? context_streams(context, &count) : NULL;
    for (size_t i = 0; streams && i < count; i++) {
        stream_wait_until(streams[i], atomic_load(&streams[i]->submitted));
        if (moments()) moment_host_waited(streams[i]);
        stream_release(streams[i]);
    }
    free(streams);
    if (context && moments()) moment_host_waited_for_context(context);
}

static CUresult free_refused(int status, uint64_t address, const char *call) {
    cpu_allocation found;
    if (status == CPU_MEMORY_FREED)
        return fail(CUDA_ERROR_INVALID_VALUE, "the memory at 0x%llx was freed already.", (unsigned long long)address);
    if (cpu_memory_find(address, &found) && found.base != address)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "0x%llx is %llu bytes into the allocation at 0x%llx; %s takes the address where it begins.",
                    (unsigned long long)address, (unsigned long long)(address - found.base),
                    (unsigned long long)found.base, call);
    return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not an allocation.", (unsigned long long)address);
}

CUresult cuMemFree(CUdeviceptr dptr) {
    RETURN_IF(enter_to_work());
    RETURN_IF(capture_check_thread("cuMemFree"));
    if (dptr == 0) return CUDA_SUCCESS;
    cpu_allocation found;
    if (!cpu_memory_find(dptr, &found) || found.base != dptr || found.freeing)
        return free_refused(cpu_memory_lookup(dptr, &found) && (found.freed || found.freeing) ? CPU_MEMORY_FREED
                                                                                              : CPU_MEMORY_UNKNOWN,
                            dptr, "cuMemFree");
    if (tracing() && found.device >= 0) memory_trace(true, found.device, found.size, NULL);
    if (handle_was_live(found.owner, HANDLE_POOL)) { /* assumed to be unused: without a wait */
        note_free(dptr);
        pool_free_now(&found);
        return CUDA_SUCCESS;
    }
    if (found.kind != CPU_MEMORY_DEVICE && found.kind != CPU_MEMORY_MANAGED)
        return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is %s, which cuMemFree does not free.", (unsigned long long)dptr,
                    found.kind == CPU_MEMORY_PINNED     ? "pinned host memory (use cuMemFreeHost)"
                    : found.kind == CPU_MEMORY_ARRAY    ? "in a CUDA array (use cuArrayDestroy)"
                    : found.kind == CPU_MEMORY_GRAPHICS ? "of a buffer of OpenGL (use cuGraphicsUnregisterResource)"
                                                        : "a module's variable");
    if (found.flags & MEMORY_IMPORTED)
        return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is memory of another process: close it with cuIpcCloseMemHandle.",
                    (unsigned long long)dptr);
    memory_wait_for_users(found.owner);
    note_free(dptr);
    int status = cpu_memory_free(dptr);
    ipc_memory_freed();
    return status ? free_refused(status, dptr, "cuMemFree") : CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *free, size_t *total) {
    CUcontext context;
    RETURN_IF(enter_context_to_ask(&context));
    if (free) *free = cpu_memory_free_bytes(context->device->ordinal);
    if (total) *total = cpu_memory_capacity(context->device->ordinal);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    RETURN_IF(enter());
    cpu_allocation found;
    if (!cpu_memory_find(dptr, &found))
        return fail(CUDA_ERROR_NOT_FOUND, "0x%llx is not in any allocation.", (unsigned long long)dptr);
    if (pbase) *pbase = found.base;
    if (psize) *psize = found.size;
    return CUDA_SUCCESS;
}

/* ---- pinned host memory ------------------------------------------------------------------------------- */

static CUresult allocate_host(const char *call, void **pp, size_t bytesize, unsigned flags) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    if (pp == NULL) return fail_null("pp");
    unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (flags & ~known) return fail(CUDA_ERROR_INVALID_VALUE, "flags has unknown bits: %#x.", flags & ~known);
    RETURN_IF(capture_check_thread(call));
    *pp = NULL;
    if (bytesize == 0) return CUDA_SUCCESS; /* as a GPU's driver does, unlike with device memory */
    uint64_t address;
    RETURN_IF(memory_allocate(context, CPU_MEMORY_PINNED, bytesize, &address));
    cpu_memory_set_flags(address, flags | CU_MEMHOSTALLOC_DEVICEMAP); /* always so with unified addressing */
    note_allocation(address, bytesize, call);
    *pp = (void *)address;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost(void **pp, size_t bytesize) { return allocate_host("cuMemAllocHost", pp, bytesize, 0); }

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    return allocate_host("cuMemHostAlloc", pp, bytesize, Flags);
}

CUresult cuMemFreeHost(void *p) {
    RETURN_IF(enter_to_work());
    RETURN_IF(capture_check_thread("cuMemFreeHost"));
    if (p == NULL) return CUDA_SUCCESS;
    cpu_allocation found;
    uint64_t address = (uint64_t)p;
    if (!cpu_memory_find(address, &found) || found.base != address)
        return free_refused(cpu_memory_lookup(address, &found) && found.freed ? CPU_MEMORY_FREED : CPU_MEMORY_UNKNOWN,
                            address, "cuMemFreeHost");
    if (found.kind != CPU_MEMORY_PINNED || !cpu_memory_owns(address))
        return fail(CUDA_ERROR_INVALID_VALUE, "%p is %s, which cuMemFreeHost does not free.", p,
                    found.kind == CPU_MEMORY_PINNED ? "registered host memory (use cuMemHostUnregister)"
                                                    : "device memory (use cuMemFree)");
    if (handle_was_live(found.owner, HANDLE_POOL))
        return fail(CUDA_ERROR_INVALID_VALUE, "%p is memory of a pool, which cuMemFreeAsync and cuMemFree free.", p);
    memory_wait_for_users(found.owner);
    note_free(address);
    int status = cpu_memory_free(address);
    return status ? free_refused(status, address, "cuMemFreeHost") : CUDA_SUCCESS;
}

static CUresult find_pinned(const void *p, cpu_allocation *found) {
    if (cpu_memory_find((uint64_t)p, found) && found->kind == CPU_MEMORY_PINNED) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE,
                "%p is not pinned host memory: allocate it with cuMemHostAlloc or register it.", p);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
    cpu_allocation found;
    RETURN_IF(enter());
    if (pdptr == NULL) return fail_null("pdptr");
    *pdptr = 0;
    if (Flags) return fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0.");
    RETURN_IF(find_pinned(p, &found));
    *pdptr = (CUdeviceptr)p;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p) {
    cpu_allocation found;
    RETURN_IF(enter());
    if (pFlags == NULL) return fail_null("pFlags");
    if (cpu_memory_find((uint64_t)p, &found) && found.kind == CPU_MEMORY_MANAGED) {
        *pFlags = CU_MEMHOSTALLOC_DEVICEMAP;
        return CUDA_SUCCESS;
    }
    RETURN_IF(find_pinned(p, &found));
    *pFlags = found.flags;
    return CUDA_SUCCESS;
}

/* Whether all pages of a range are mapped. */
static bool is_mapped(const void *p, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)p & ~(page - 1);
    return msync((void *)first, (uintptr_t)p + size - first, MS_ASYNC) == 0;
}

/* Whether a page of a range cannot be written. */
static bool is_read_only(uintptr_t begin, size_t size) {
    FILE *maps = fopen("/proc/self/maps", "re");
    bool found = false;
    char line[512];
    while (maps && !found && fgets(line, sizeof line, maps)) {
        unsigned long long from, to;
        char writable;
        found = sscanf(line, "%llx-%llx %*c%c", &from, &to, &writable) == 3 && writable != 'w' && from < begin + size &&
                begin < to;
        while (!strchr(line, '\n') && fgets(line, sizeof line, maps)) continue; /* a long name */
    }
    if (maps) fclose(maps);
    return found;
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    RETURN_IF(check_request(p, "p", bytesize));
    unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return fail(CUDA_ERROR_INVALID_VALUE, "%p is memory of the host, not of another device.", p);
    if (Flags & ~known) return fail(CUDA_ERROR_INVALID_VALUE, "Flags has unknown bits: %#x.", Flags & ~known);
    RETURN_IF(capture_check_thread("cuMemHostRegister"));
    if ((uintptr_t)p + bytesize < (uintptr_t)p || !is_mapped(p, bytesize))
        return fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes from %p on are not all memory of this process.", bytesize, p);
    if (!(Flags & CU_MEMHOSTREGISTER_READ_ONLY) && is_read_only((uintptr_t)p, bytesize))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "memory at %p cannot be written: register it with CU_MEMHOSTREGISTER_READ_ONLY.", p);
    cpu_allocation found;
    if (cpu_memory_owns((uint64_t)p) && cpu_memory_find((uint64_t)p, &found))
        return fail(CUDA_ERROR_INVALID_VALUE, "%p is memory that CUDA has allocated, and knows already.", p);
    int status = CPU_MEMORY_OVERLAPS;
    if (!cpu_memory_owns((uint64_t)p) && !cpu_memory_owns((uint64_t)p + bytesize - 1))
        status = cpu_memory_register((uint64_t)p, bytesize, context->device->ordinal, CPU_MEMORY_PINNED, context);
    if (status == CPU_MEMORY_OK) {
        cpu_memory_set_flags((uint64_t)p, Flags | CU_MEMHOSTREGISTER_DEVICEMAP);
        cpu_memory_set_lines((uint64_t)p, caller_here(), 0);
        note_begin(ORIGIN_REGISTERED, (uint64_t)p, bytesize, "cuMemHostRegister");
        return CUDA_SUCCESS;
    }
    if (status != CPU_MEMORY_OVERLAPS) return memory_refused(status, CPU_MEMORY_HOST, bytesize);
    if (cpu_memory_nearest((uint64_t)p, &found))
        return fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                    "%zu bytes from %p on overlap the %llu bytes at 0x%llx, which CUDA knows already.", bytesize, p,
                    (unsigned long long)found.size, (unsigned long long)found.base);
    return fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the memory at %p is registered already.", p);
}

CUresult cuMemHostUnregister(void *p) {
    RETURN_IF(enter_to_work());
    if (p == NULL) return fail_null("p");
    RETURN_IF(capture_check_thread("cuMemHostUnregister"));
    cpu_allocation found;
    if (!cpu_memory_find((uint64_t)p, &found))
        return fail(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is not registered host memory.", p);
    if (found.base != (uint64_t)p || cpu_memory_owns((uint64_t)p))
        return fail(CUDA_ERROR_INVALID_VALUE, "%p is not the beginning of registered host memory.", p);
    memory_wait_for_users(found.owner);
    cpu_memory_set_lines((uint64_t)p, 0, caller_here());
    note_end(ORIGIN_REGISTERED, (uint64_t)p);
    if (cpu_memory_unregister((uint64_t)p))
        return fail(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p was unregistered by another thread.", p);
    return CUDA_SUCCESS;
}

/* ---- for modules and contexts ------------------------------------------------------------------------- */

CUresult memory_allocate_variable(CUcontext context, size_t size, size_t align, bool managed, uint64_t *address) {
    if (align > 512)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "a variable that is aligned to %zu bytes: 512 is the most.", align);
    RETURN_IF(memory_allocate(context, managed ? CPU_MEMORY_MANAGED : CPU_MEMORY_MODULE, size ? size : 1, address));
    /* Large allocations are fresh pages, zero already; writing to them would make the host hold them all. */
    if (size < (1 << 18)) memset((void *)*address, 0, size);
    cpu_memory_set_flags(*address, CU_MEM_ATTACH_GLOBAL);
    return CUDA_SUCCESS;
}

void memory_free_variable(uint64_t address) { (void)cpu_memory_free(address); }

/* The pools of a device outlive its primary context, but what was allocated from them does not. */
static bool is_of_pool(const cpu_allocation *allocation, CUcontext context) {
    if (!context->is_primary || allocation->freeing || !handle_was_live(allocation->owner, HANDLE_POOL)) return false;
    CUmemoryPool pool = allocation->owner;
    return pool->device == context->device->ordinal && !pool->is_graph;
}

static void free_of_context(const cpu_allocation *allocation, void *context) {
    if (is_of_pool(allocation, context)) {
        pool_free_now(allocation);
        return;
    }
    if (allocation->owner != context) return;
    if (cpu_memory_owns(allocation->base)) (void)cpu_memory_free(allocation->base);
    else (void)cpu_memory_unregister(allocation->base);
}

void memory_context_destroyed(CUcontext context) {
    cpu_memory_each(free_of_context, context);
    ipc_memory_freed();
}

const struct entry memory_entries[] = {
    ENTRY_V2(cuMemAlloc),       ENTRY_V2(cuMemAllocPitch),
    ENTRY(cuMemAllocManaged),   ENTRY_V2(cuMemFree),
    ENTRY_V2(cuMemGetInfo),     ENTRY_V2(cuMemGetAddressRange),
    ENTRY_V2(cuMemAllocHost),   ENTRY(cuMemHostAlloc),
    ENTRY(cuMemFreeHost),       ENTRY_V2(cuMemHostGetDevicePointer),
    ENTRY(cuMemHostGetFlags),   ENTRY_V2(cuMemHostRegister),
    ENTRY(cuMemHostUnregister), {NULL, NULL, NULL},
};
