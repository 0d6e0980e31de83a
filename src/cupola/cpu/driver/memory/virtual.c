/* Virtual memory management: addresses, memory and access, each on its own (CUDA Driver API, "Virtual
 * Memory Management").
 *
 * An address reservation is a piece of the arena. Memory is an anonymous file, so that it can be mapped at
 * several addresses, and exported as a file descriptor. A mapping enters the table of allocations when
 * access is given to anybody. Kernels and fills are held to the access of their device; for copies, which any
 * engine may carry out, it is enough that somebody has access. */
#define _GNU_SOURCE
#include "virtual.h"

#include "driver/base/caller.h"
#include "driver/base/origin.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

pthread_mutex_t virtual_lock = PTHREAD_MUTEX_INITIALIZER;
static struct physical *physicals;
static struct mapping *mappings;

static int charged_to(const struct physical *physical) {
    return physical->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? physical->properties.location.id
                                                                             : CPU_MEMORY_HOST;
}

CUresult virtual_find_physical(CUmemGenericAllocationHandle handle, struct physical **found) {
    for (*found = physicals; *found; *found = (*found)->next)
        if ((uint64_t)*found == handle && (*found)->handles) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%#llx is not the handle of memory from cuMemCreate, or was released",
                (unsigned long long)handle);
}

struct mapping *virtual_find_mapping(uint64_t address) {
    struct mapping *m = mappings;
    while (m && address - m->base >= m->size) m = m->next;
    return m;
}

void virtual_release_physical(struct physical *physical) {
    if (--physical->references) return;
    struct physical **link = &physicals;
    while (*link != physical) link = &(*link)->next;
    *link = physical->next;
    if (physical->multicast) {
        multicast_end(physical->multicast);
    } else {
        if (!physical->imported) cpu_memory_uncharge(charged_to(physical), physical->size);
        close(physical->file);
    }
    free(physical);
}

bool virtual_memory_has_imports(void) {
    pthread_mutex_lock(&virtual_lock);
    struct physical *physical = physicals;
    while (physical && !physical->imported) physical = physical->next;
    pthread_mutex_unlock(&virtual_lock);
    return physical;
}

static CUresult check_step(const char *what, uint64_t value) {
    if (value && value % GRANULARITY == 0) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%s is %#llx; it must be a multiple of the granularity, %d bytes", what,
                (unsigned long long)value, GRANULARITY);
}

static CUresult check_properties(const CUmemAllocationProp *prop) {
    struct device *device;
    if (prop == NULL) return fail_null("prop");
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "the type of the allocation must be CU_MEM_ALLOCATION_TYPE_PINNED");
    if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "the CPU device exports memory as POSIX file descriptors only");
    switch ((int)prop->location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE: return device_get(prop->location.id, &device);
        case CU_MEM_LOCATION_TYPE_HOST:
            if (prop->requestedHandleTypes == 0) return CUDA_SUCCESS;
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "host memory without a NUMA node is not shared: request no handle types");
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
            if (prop->location.id == 0) return CUDA_SUCCESS;
            return fail(CUDA_ERROR_INVALID_VALUE, "there is no NUMA node %d: the CPU device has one, node 0",
                        prop->location.id);
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            return fail(CUDA_ERROR_INVALID_VALUE, "memory cannot be made on the current NUMA node: name the node");
        default:
            return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a type of location for memory", (int)prop->location.type);
    }
}

/* ---- addresses ---------------------------------------------------------------------------------------- */

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
    RETURN_IF(enter_to_work());
    if (ptr == NULL) return fail_null("ptr");
    RETURN_IF(check_step("size", size));
    if (alignment & (alignment - 1))
        return fail(CUDA_ERROR_INVALID_VALUE, "alignment, %zu, is not a power of two", alignment);
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu", flags);
    uint64_t base;
    int status = cpu_memory_reserve(size, alignment, addr, &base);
    if (status) return memory_refused(status, CPU_MEMORY_HOST, size);
    *ptr = base;
    note_begin(ORIGIN_RESERVED, base, size, "cuMemAddressReserve");
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    RETURN_IF(enter_to_work());
    pthread_mutex_lock(&virtual_lock);
    CUresult status = CUDA_SUCCESS;
    for (struct mapping *m = mappings; m && !status; m = m->next)
        if (m->base < ptr + size && ptr < m->base + m->size)
            status = fail(CUDA_ERROR_INVALID_VALUE, "memory is still mapped at 0x%llx: unmap it first",
                          (unsigned long long)m->base);
    if (!status &&
        (!cpu_memory_is_reserved(ptr, size) || cpu_memory_is_reserved(ptr, size + 1) || cpu_memory_unreserve(ptr)))
        status = fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx are not a range that cuMemAddressReserve gave",
                      size, (unsigned long long)ptr);
    if (!status) note_end(ORIGIN_RESERVED, ptr);
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

/* ---- memory ------------------------------------------------------------------------------------------- */

CUresult virtual_new_physical(int file, size_t size, const CUmemAllocationProp *prop, bool imported,
                              struct multicast *multicast, CUmemGenericAllocationHandle *handle) {
    struct physical *physical = malloc(sizeof *physical);
    if (physical == NULL) {
        if (file >= 0) close(file);
        return no_memory("the bookkeeping");
    }
    pthread_mutex_lock(&virtual_lock);
    *physical = (struct physical){.next = physicals,
                                  .size = size,
                                  .references = 1,
                                  .handles = 1,
                                  .file = file,
                                  .imported = imported,
                                  .multicast = multicast,
                                  .properties = *prop};
    physicals = physical;
    pthread_mutex_unlock(&virtual_lock);
    *handle = (uint64_t)physical;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
    RETURN_IF(enter_to_work());
    if (handle == NULL) return fail_null("handle");
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu", flags);
    RETURN_IF(check_properties(prop));
    RETURN_IF(check_step("size", size));
    int target = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : CPU_MEMORY_HOST;
    int charged = cpu_memory_charge(target, size);
    if (charged) return memory_refused(charged, target, size);
    int file = memfd_create("cupola", MFD_CLOEXEC);
    CUresult status = CUDA_SUCCESS;
    if (file < 0 || ftruncate(file, (off_t)size)) {
        if (file >= 0) close(file);
        status =
            fail(CUDA_ERROR_OUT_OF_MEMORY, "the system could not create %zu bytes of memory for cuMemCreate", size);
    } else {
        status = virtual_new_physical(file, size, prop, false, NULL, handle);
    }
    if (status) cpu_memory_uncharge(target, size);
    else note_begin(ORIGIN_CREATED, *handle, size, "cuMemCreate");
    return status;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    struct physical *physical;
    RETURN_IF(enter_to_work());
    pthread_mutex_lock(&virtual_lock);
    CUresult status = virtual_find_physical(handle, &physical);
    if (status == CUDA_SUCCESS) {
        if (!--physical->handles) note_end(ORIGIN_CREATED, handle);
        virtual_release_physical(physical);
    }
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option) {
    RETURN_IF(enter());
    if (granularity == NULL) return fail_null("granularity");
    RETURN_IF(check_properties(prop));
    if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not one of CUmemAllocationGranularity_flags", (int)option);
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle) {
    struct physical *physical;
    RETURN_IF(enter());
    if (prop == NULL) return fail_null("prop");
    pthread_mutex_lock(&virtual_lock);
    CUresult status = virtual_find_physical(handle, &physical);
    if (!status && physical->multicast)
        status = fail(CUDA_ERROR_INVALID_VALUE, "a multicast object has no properties of memory");
    if (status == CUDA_SUCCESS) *prop = physical->properties;
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
    RETURN_IF(enter());
    if (handle == NULL) return fail_null("handle");
    bool is_first = false;
    size_t size = 0;
    pthread_mutex_lock(&virtual_lock);
    struct mapping *m = virtual_find_mapping((uint64_t)addr);
    if (m) {
        m->physical->references++;
        is_first = !m->physical->handles++;
        size = m->physical->size;
        *handle = (uint64_t)m->physical;
    }
    pthread_mutex_unlock(&virtual_lock);
    if (is_first) note_begin(ORIGIN_CREATED, *handle, size, "cuMemRetainAllocationHandle");
    return m ? CUDA_SUCCESS : fail(CUDA_ERROR_INVALID_VALUE, "cuMemMap has mapped nothing at %p", addr);
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags) {
    struct physical *physical;
    RETURN_IF(enter_to_work());
    if (shareableHandle == NULL) return fail_null("shareableHandle");
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu", flags);
    pthread_mutex_lock(&virtual_lock);
    CUresult status = virtual_find_physical(handle, &physical);
    if (!status && (physical->multicast || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
                    !(physical->properties.requestedHandleTypes & handleType)))
        status = fail(CUDA_ERROR_INVALID_VALUE, "the memory was not made for handles of type %d", (int)handleType);
    int copy = status ? -1 : dup(physical->file);
    pthread_mutex_unlock(&virtual_lock);
    if (status) return status;
    if (copy < 0) return fail(CUDA_ERROR_OPERATING_SYSTEM, "no file descriptor is left");
    *(int *)shareableHandle = copy;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                        CUmemAllocationHandleType shHandleType) {
    struct stat about;
    CUcontext context;
    RETURN_IF(enter_context(&context));
    if (handle == NULL) return fail_null("handle");
    int file = (int)(intptr_t)osHandle;
    if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "the CPU device imports memory from POSIX file descriptors only");
    if (fstat(file, &about) || about.st_size == 0 || about.st_size % GRANULARITY || (file = dup(file)) < 0)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a file descriptor of exported memory",
                    (int)(intptr_t)osHandle);
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = context->device->ordinal}};
    RETURN_IF(virtual_new_physical(file, (size_t)about.st_size, &properties, true, NULL, handle));
    note_begin(ORIGIN_CREATED, *handle, (size_t)about.st_size, "cuMemImportFromShareableHandle");
    return CUDA_SUCCESS;
}

/* ---- mappings ----------------------------------------------------------------------------------------- */

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    struct physical *physical;
    RETURN_IF(enter_to_work());
    RETURN_IF(check_step("ptr", ptr));
    RETURN_IF(check_step("size", size));
    if (offset % GRANULARITY) return check_step("offset", offset);
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu", flags);
    struct mapping *made = calloc(1, sizeof *made);
    if (made == NULL) return no_memory("the bookkeeping");
    const uint32_t line = caller_here();
    pthread_mutex_lock(&virtual_lock);
    CUresult status = virtual_find_physical(handle, &physical);
    if (!status && (offset > physical->size || size > physical->size - offset))
        status = fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes from byte %zu on are more than the memory has, %zu bytes",
                      size, offset, physical->size);
    if (!status && !cpu_memory_is_reserved(ptr, size))
        status = fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx do not lie in one range from cuMemAddressReserve",
                      size, (unsigned long long)ptr);
    for (struct mapping *m = mappings; m && !status; m = m->next)
        if (m->base < ptr + size && ptr < m->base + m->size)
            status = fail(CUDA_ERROR_INVALID_VALUE, "memory is mapped at 0x%llx already", (unsigned long long)m->base);
    if (!status && physical->multicast) status = multicast_check_complete(physical->multicast);
    if (!status && !physical->multicast &&
        mmap((void *)ptr, size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->file, (off_t)offset) == MAP_FAILED)
        status = fail(CUDA_ERROR_OUT_OF_MEMORY, "the system could not map the memory");
    if (status == CUDA_SUCCESS) {
        *made = (struct mapping){mappings, ptr, size, offset, physical, .mapped_at = line};
        mappings = made;
        physical->references++;
    }
    pthread_mutex_unlock(&virtual_lock);
    if (status) free(made);
    else note_begin(ORIGIN_MAPPED, ptr, size, "cuMemMap");
    return status;
}

/* Whether a range consists of whole mappings. With the lock. */
static CUresult check_mapped(uint64_t address, size_t size) {
    size_t covered = 0;
    for (struct mapping *m = mappings; m; m = m->next) {
        bool inside = m->base >= address && m->base + m->size <= address + size;
        bool overlaps = m->base < address + size && address < m->base + m->size;
        if (inside) covered += m->size;
        else if (overlaps)
            return fail(CUDA_ERROR_INVALID_VALUE, "the range has only a part of the mapping of %zu bytes at 0x%llx",
                        m->size, (unsigned long long)m->base);
    }
    if (size && covered == size) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "of %zu bytes at 0x%llx, %zu are mapped", size, (unsigned long long)address,
                covered);
}

/* `line` of the call that takes the access away. */
static void hide(struct mapping *m, uint32_t line) {
    if (m->accessible && !m->physical->multicast) {
        cpu_memory_set_lines(m->base, 0, line);
        (void)cpu_memory_unregister(m->base);
    }
    m->accessible = false;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
    RETURN_IF(enter_to_work());
    const uint32_t line = caller_here();
    pthread_mutex_lock(&virtual_lock);
    CUresult status = check_mapped(ptr, size);
    for (struct mapping **link = &mappings; *link && !status;) {
        struct mapping *m = *link;
        if (m->base < ptr || m->base >= ptr + size) {
            link = &m->next;
            continue;
        }
        *link = m->next;
        note_end(ORIGIN_MAPPED, m->base);
        hide(m, line);
        cpu_memory_decommit(m->base, m->size);
        virtual_release_physical(m->physical);
        free(m);
    }
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

static CUresult show(struct mapping *m) {
    if (m->physical->multicast) { /* only multimem instructions reach what is behind it */
        m->accessible = true;
        return CUDA_SUCCESS;
    }
    int device = charged_to(m->physical);
    bool restricted = device != CPU_MEMORY_HOST && m->access[device] != CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (m->accessible) {
        cpu_memory_set_flags(m->base, MEMORY_VIRTUAL | (restricted ? CPU_MEMORY_RESTRICTED : 0));
        return CUDA_SUCCESS;
    }
    if (mprotect((void *)m->base, m->size, PROT_READ | PROT_WRITE) ||
        cpu_memory_register(m->base, m->size, device, device == CPU_MEMORY_HOST ? CPU_MEMORY_PINNED : CPU_MEMORY_DEVICE,
                            NULL))
        return no_memory("the bookkeeping");
    m->accessible = true;
    cpu_memory_set_lines(m->base, m->mapped_at, 0);
    cpu_memory_set_flags(m->base, MEMORY_VIRTUAL | (restricted ? CPU_MEMORY_RESTRICTED : 0));
    return CUDA_SUCCESS;
}

bool virtual_admits(uint64_t base, int device, bool is_write) {
    pthread_mutex_lock(&virtual_lock);
    struct mapping *m = virtual_find_mapping(base);
    int flags = m ? m->access[device] : 0;
    pthread_mutex_unlock(&virtual_lock);
    return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE || (flags == CU_MEM_ACCESS_FLAGS_PROT_READ && !is_write);
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
    RETURN_IF(enter_to_work());
    if (desc == NULL || count == 0) return fail_null("desc");
    for (size_t i = 0; i < count; i++) {
        struct device *device;
        int flags = desc[i].flags;
        if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE) RETURN_IF(device_get(desc[i].location.id, &device));
        if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return fail(CUDA_ERROR_INVALID_VALUE, "descriptor %zu has unknown flags %d", i, flags);
    }
    const uint32_t line = caller_here();
    pthread_mutex_lock(&virtual_lock);
    CUresult status = check_mapped(ptr, size);
    for (struct mapping *m = mappings; m && !status; m = m->next) {
        if (m->base < ptr || m->base >= ptr + size) continue;
        bool any = false;
        for (size_t i = 0; i < count; i++) {
            if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
                m->access[desc[i].location.id] = (uint8_t)desc[i].flags;
            else any |= desc[i].flags != 0; /* the host's */
        }
        for (int i = 0; i < device_count; i++) any |= m->access[i] != 0;
        if (any) {
            status = show(m);
        } else {
            hide(m, line);
            (void)mprotect((void *)m->base, m->size, PROT_NONE);
        }
    }
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr) {
    struct device *device;
    RETURN_IF(enter());
    if (flags == NULL) return fail_null("flags");
    if (location == NULL) return fail_null("location");
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return fail(CUDA_ERROR_INVALID_VALUE, "access is defined for devices only; the location has type %d",
                    (int)location->type);
    RETURN_IF(device_get(location->id, &device));
    pthread_mutex_lock(&virtual_lock);
    struct mapping *m = virtual_find_mapping(ptr);
    if (m) *flags = m->access[location->id];
    pthread_mutex_unlock(&virtual_lock);
    return m ? CUDA_SUCCESS : fail(CUDA_ERROR_INVALID_VALUE, "nothing is mapped at 0x%llx", (unsigned long long)ptr);
}

const struct entry virtual_entries[] = {
    ENTRY(cuMemAddressReserve),
    ENTRY(cuMemAddressFree),
    ENTRY(cuMemCreate),
    ENTRY(cuMemRelease),
    ENTRY(cuMemGetAllocationGranularity),
    ENTRY(cuMemGetAllocationPropertiesFromHandle),
    ENTRY(cuMemRetainAllocationHandle),
    ENTRY(cuMemExportToShareableHandle),
    ENTRY(cuMemImportFromShareableHandle),
    ENTRY(cuMemMap),
    ENTRY(cuMemUnmap),
    ENTRY(cuMemSetAccess),
    ENTRY(cuMemGetAccess),
    {NULL, NULL, NULL},
};
