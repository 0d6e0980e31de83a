/* Multicast objects (CUDA Driver API, "Multicast Object Management"): addresses behind which each of several devices has
 * memory of its own. The instructions multimem (engine/instructions/multimem.c) read all of it and reduce what they
 * find, or write it everywhere.
 *
 * The memory that is bound is a piece of a file (virtual.c). The object maps it once more, at addresses of the arena
 * that are in no table, so no other call finds them, and a kernel that comes too late hits an inaccessible page at
 * worst. In NVIDIA's driver, calls that need all devices wait until the last one was added. Here most of them would
 * wait for ever, so they are refused. */
#define _GNU_SOURCE
#include "virtual.h"

#include "driver/base/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "engine/above.h"

struct bound {
    struct bound *next;
    int device;
    size_t offset, size; /* in the object */
    uint64_t view;       /* where it is mapped */
    struct physical *physical;
};

struct multicast {
    size_t size;
    unsigned team, added; /* devices: of the object, and those that it has so far, in order */
    int devices[MAX_DEVICES];
    struct bound *bounds;
};

static CUresult check_properties(const CUmulticastObjectProp *prop) {
    if (!prop) return fail_null("prop");
    if (prop->flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu", prop->flags);
    if (prop->numDevices == 0 || prop->numDevices > (unsigned)device_count)
        return fail(CUDA_ERROR_INVALID_VALUE, "numDevices is %u; there %s %d device%s (CUPOLA_CPU_DEVICES)",
                    prop->numDevices, device_count > 1 ? "are" : "is", device_count, device_count > 1 ? "s" : "");
    if (prop->handleTypes)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "the CPU device does not export multicast objects: handleTypes must be 0");
    if (!devices[0].model->multicast)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no multicast objects", devices[0].model->name);
    return CUDA_SUCCESS;
}

static CUresult check_multiple(const char *what, size_t value, bool may_be_zero) {
    if (value % GRANULARITY == 0 && (value || may_be_zero)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%s is %zu; it must be a multiple of the granularity, %d bytes", what, value,
                GRANULARITY);
}

/* With the lock. */
static CUresult find_multicast(CUmemGenericAllocationHandle handle, struct multicast **found) {
    struct physical *physical;
    *found = NULL;
    RETURN_IF(virtual_find_physical(handle, &physical));
    *found = physical->multicast;
    return *found ? CUDA_SUCCESS : fail(CUDA_ERROR_INVALID_VALUE, "mcHandle is memory, and no multicast object");
}

CUresult multicast_check_complete(const struct multicast *multicast) {
    if (multicast->added == multicast->team) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_ILLEGAL_STATE,
                "the multicast object has %u of its %u devices: add all of them first (cuMulticastAddDevice)",
                multicast->added, multicast->team);
}

static bool has_device(const struct multicast *multicast, int device) {
    for (unsigned i = 0; i < multicast->added; i++)
        if (multicast->devices[i] == device) return true;
    return false;
}

static CUresult check_inside(const struct multicast *multicast, size_t offset, size_t size) {
    RETURN_IF(check_multiple("mcOffset", offset, true));
    RETURN_IF(check_multiple("size", size, false));
    if (offset <= multicast->size && size <= multicast->size - offset) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE,
                "%zu bytes from byte %zu on are more than the multicast object has, %zu bytes", size, offset,
                multicast->size);
}

CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
                                   CUmulticastGranularity_flags option) {
    RETURN_IF(enter());
    if (!granularity) return fail_null("granularity");
    RETURN_IF(check_properties(prop));
    if (option != CU_MULTICAST_GRANULARITY_MINIMUM && option != CU_MULTICAST_GRANULARITY_RECOMMENDED)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not one of CUmulticastGranularity_flags", (int)option);
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop) {
    RETURN_IF(enter_to_work());
    if (!mcHandle) return fail_null("mcHandle");
    RETURN_IF(check_properties(prop));
    RETURN_IF(check_multiple("size", prop->size, false));
    struct multicast *made = calloc(1, sizeof *made);
    if (!made) return no_memory("the bookkeeping");
    made->size = prop->size;
    made->team = prop->numDevices;
    const CUmemAllocationProp none = {.type = CU_MEM_ALLOCATION_TYPE_INVALID};
    CUresult status = virtual_new_physical(-1, prop->size, &none, false, made, mcHandle);
    if (status) free(made);
    else note_begin(ORIGIN_CREATED, *mcHandle, prop->size, "cuMulticastCreate");
    return status;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev) {
    struct device *device;
    struct multicast *multicast;
    RETURN_IF(enter_to_work());
    RETURN_IF(device_get(dev, &device));
    pthread_mutex_lock(&virtual_lock);
    CUresult status = find_multicast(mcHandle, &multicast);
    if (!status && has_device(multicast, device->ordinal))
        status = fail(CUDA_ERROR_INVALID_VALUE, "device %d was added already", device->ordinal);
    if (!status && multicast->added == multicast->team)
        status = fail(CUDA_ERROR_INVALID_VALUE, "the multicast object has all of its %u devices", multicast->team);
    if (!status) multicast->devices[multicast->added++] = device->ordinal;
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

/* ---- binding ------------------------------------------------------------------------------------------------------ */

/* With the lock. */
static CUresult bind(struct multicast *multicast, size_t offset, struct physical *physical, size_t from, size_t size) {
    RETURN_IF(multicast_check_complete(multicast));
    RETURN_IF(check_inside(multicast, offset, size));
    RETURN_IF(check_multiple("the offset in the memory", from, true));
    if (physical->multicast) return fail(CUDA_ERROR_INVALID_VALUE, "a multicast object is no memory");
    if (from > physical->size || size > physical->size - from)
        return fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes from byte %zu on are more than the memory has, %zu bytes",
                    size, from, physical->size);
    if (physical->properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "the CPU device binds memory of devices only");
    const int device = physical->properties.location.id;
    if (!has_device(multicast, device))
        return fail(CUDA_ERROR_INVALID_VALUE, "the memory is on device %d, which was not added to the multicast object",
                    device);
    for (const struct bound *b = multicast->bounds; b; b = b->next)
        if (b->device == device && b->offset < offset + size && offset < b->offset + b->size)
            return fail(CUDA_ERROR_INVALID_VALUE, "device %d has memory bound there already, from byte %zu on", device,
                        b->offset);
    struct bound *made = calloc(1, sizeof *made);
    uint64_t view = 0;
    if (!made || cpu_memory_reserve(size, 0, 0, &view)) {
        free(made);
        return no_memory("the addresses");
    }
    if (mmap((void *)view, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file, (off_t)from) ==
        MAP_FAILED) {
        (void)cpu_memory_unreserve(view);
        free(made);
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "the system could not map the memory");
    }
    *made = (struct bound){multicast->bounds, device, offset, size, view, physical};
    multicast->bounds = made;
    physical->references++;
    return CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                            CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                            unsigned long long flags) {
    struct multicast *multicast;
    struct physical *physical;
    RETURN_IF(enter_to_work());
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu", flags);
    pthread_mutex_lock(&virtual_lock);
    CUresult status = find_multicast(mcHandle, &multicast);
    if (!status) status = virtual_find_physical(memHandle, &physical);
    if (!status) status = bind(multicast, mcOffset, physical, memOffset, size);
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr, size_t size,
                             unsigned long long flags) {
    struct multicast *multicast;
    RETURN_IF(enter_to_work());
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu", flags);
    pthread_mutex_lock(&virtual_lock);
    CUresult status = find_multicast(mcHandle, &multicast);
    const struct mapping *m = virtual_find_mapping(memptr);
    if (!status && !m)
        status = fail(CUDA_ERROR_INVALID_VALUE,
                      "0x%llx is not an address where cuMemMap put memory, which is what the CPU device binds", memptr);
    if (!status && size > m->size - (memptr - m->base))
        status = fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx are more than is mapped there", size, memptr);
    if (!status) status = bind(multicast, mcOffset, m->physical, m->offset + (memptr - m->base), size);
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

static void end_bound(struct bound *b) {
    cpu_memory_decommit(b->view, b->size);
    (void)cpu_memory_unreserve(b->view);
    virtual_release_physical(b->physical);
    free(b);
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset, size_t size) {
    struct device *device;
    struct multicast *multicast;
    RETURN_IF(enter_to_work());
    RETURN_IF(device_get(dev, &device));
    pthread_mutex_lock(&virtual_lock);
    CUresult status = find_multicast(mcHandle, &multicast);
    if (!status) status = check_inside(multicast, mcOffset, size);
    struct bound **link = status ? NULL : &multicast->bounds;
    while (link && *link &&
           !((*link)->device == device->ordinal && (*link)->offset == mcOffset && (*link)->size == size))
        link = &(*link)->next;
    if (!status && !*link)
        status = fail(CUDA_ERROR_INVALID_VALUE, "device %d has no memory bound with the offset %zu and the size %zu",
                      device->ordinal, mcOffset, size);
    if (!status) {
        struct bound *b = *link;
        *link = b->next;
        end_bound(b);
    }
    pthread_mutex_unlock(&virtual_lock);
    return status;
}

void multicast_end(struct multicast *multicast) {
    while (multicast->bounds) {
        struct bound *b = multicast->bounds;
        multicast->bounds = b->next;
        end_bound(b);
    }
    free(multicast);
}

/* ---- for kernels ---------------------------------------------------------------------------------------------------- */

/* With the lock. */
static int find_places(const cpu_launch *launch, uint64_t address, uint64_t size, int is_write, void **places,
                       char *why, size_t room) {
    const struct mapping *m = virtual_find_mapping(address);
    const struct multicast *multicast = m ? m->physical->multicast : NULL;
    if (!multicast || size > m->size - (address - m->base)) {
        snprintf(why, room, "multimem instructions take addresses where a multicast object is mapped");
        return 0;
    }
    const int access = m->access[launch->device];
    if (access != CU_MEM_ACCESS_FLAGS_PROT_READWRITE && (is_write || access != CU_MEM_ACCESS_FLAGS_PROT_READ)) {
        snprintf(why, room, "device %d was not given this access to the multicast object (cuMemSetAccess)",
                 launch->device);
        return 0;
    }
    const size_t offset = m->offset + (address - m->base);
    for (unsigned i = 0; i < multicast->team; i++) {
        const struct bound *b = multicast->bounds;
        while (b && !(b->device == multicast->devices[i] && offset - b->offset < b->size &&
                      size <= b->size - (offset - b->offset)))
            b = b->next;
        if (!b) {
            snprintf(why, room, "device %d has no memory bound at byte %zu of the multicast object",
                     multicast->devices[i], offset);
            return 0;
        }
        places[i] = (void *)(b->view + (offset - b->offset));
    }
    return (int)multicast->team;
}

int cpu_driver_multicast(const cpu_launch *launch, uint64_t address, uint64_t size, int is_write, void **places,
                         char *why, size_t room) {
    pthread_mutex_lock(&virtual_lock);
    int count = find_places(launch, address, size, is_write, places, why, room);
    pthread_mutex_unlock(&virtual_lock);
    return count;
}

const struct entry multicast_entries[] = {
    ENTRY(cuMulticastGetGranularity), ENTRY(cuMulticastCreate), ENTRY(cuMulticastAddDevice), ENTRY(cuMulticastBindMem),
    ENTRY(cuMulticastBindAddr),       ENTRY(cuMulticastUnbind), {NULL, NULL, NULL},
};
