/* Events ("Event Handling Methods"): a kernel that faults is reported as the Xid error that a GPU would report.
 *
 * A set is one watch of all processes' faults (census.c). Waiting looks at it again and again: faults are rare, and a
 * thread that waits for them has nothing else to do. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "driver/base/base.h"
#include "common/common.h"
#include "engine/memory/usage.h"
#include "nvml/nvml.h"

enum {
    LOOK_AGAIN = 2 * 1000 * 1000, /* ns */
    XID_EXCEPTION = 13,           /* graphics engine exception: illegal instructions, misaligned addresses, traps */
    XID_MEMORY_PAGE_FAULT = 31,
    XID_STOPPED = 43,      /* what an assertion in a kernel leads to */
    XID_MEMORY_ERROR = 48, /* of two bits, which ECC cannot correct */
    XID_NVLINK = 74,
    XID_OFF_THE_BUS = 79,
};

/* Statuses of faulting kernels, and of what cupola.cpu.faults makes fail -> Xid errors (NVIDIA GPU Debug Guidelines, "Xid messages"). */
static unsigned xid_of(int status) {
    switch (status) {
        case CUDA_ERROR_ILLEGAL_ADDRESS: return XID_MEMORY_PAGE_FAULT;
        case CUDA_ERROR_ASSERT: return XID_STOPPED;
        case CUDA_ERROR_ECC_UNCORRECTABLE: return XID_MEMORY_ERROR;
        case CUDA_ERROR_NVLINK_UNCORRECTABLE: return XID_NVLINK;
        case CPU_USAGE_LOST: return XID_OFF_THE_BUS;
        default: return XID_EXCEPTION;
    }
}

/* A program may pass any pointer as a set: only sets in the list of their kind are used. */
struct listed {
    struct listed *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct listed *device_sets, *system_sets;

static void *list_new(struct listed **list, size_t size) {
    struct listed *made = calloc(1, size);
    if (!made) return NULL;
    pthread_mutex_lock(&lock);
    made->next = *list;
    *list = made;
    pthread_mutex_unlock(&lock);
    return made;
}

/* Whether a set is in a list; takes it off when it is to be freed. */
static bool list_has(struct listed **list, const void *set, bool take) {
    pthread_mutex_lock(&lock);
    while (*list && *list != set) list = &(*list)->next;
    bool found = *list != NULL;
    if (found && take) *list = (*list)->next;
    pthread_mutex_unlock(&lock);
    return found;
}

struct nvmlEventSet_st {
    struct listed listed;
    struct nvml_watch *watch;
    unsigned long long types[MAX_DEVICES]; /* that were asked for */
};

static nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    return (*set = list_new(&device_sets, sizeof **set)) ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

static nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    NVML_DEVICE(device, ordinal, types);
    (void)ordinal;
    *types = nvmlEventTypeAll; /* like an H200, though of most there will never be one */
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    NVML_DEVICE(device, ordinal, list_has(&device_sets, set, false) ? set : NULL);
    if (types & ~(unsigned long long)nvmlEventTypeAll) return NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    if (!set->watch) set->watch = nvml_watch_new();
    const bool begun = set->watch;
    if (begun) set->types[ordinal] |= types;
    pthread_mutex_unlock(&lock);
    return begun ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

static nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!list_has(&device_sets, set, false) || !data) return NVML_ERROR_INVALID_ARGUMENT;
    uint64_t end = clock_now() + (uint64_t)milliseconds * 1000000;
    for (;;) {
        struct nvml_fault fault;
        while (set->watch && nvml_watch_next(set->watch, &fault)) {
            if (fault.device < 0 || fault.device >= devices_present) continue; /* of a process with more devices */
            if (!(set->types[fault.device] & nvmlEventTypeXidCriticalError)) continue;
            *data = (nvmlEventData_t){
                .device = nvml_handle(fault.device),
                .eventType = nvmlEventTypeXidCriticalError,
                .eventData = xid_of(fault.status),
                .gpuInstanceId = ~0u,
                .computeInstanceId = ~0u,
            };
            return NVML_SUCCESS;
        }
        for (int i = 0; i < devices_present; i++)
            if (set->types[i] && nvml_presence(i)) return NVML_ERROR_GPU_IS_LOST;
        if (clock_now() >= end) return NVML_ERROR_TIMEOUT;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN}, NULL);
    }
}

/* Programs of older NVMLs have no room for the numbers of instances. */
static nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout) {
    nvmlEventData_t newer;
    nvmlReturn_t status = nvmlEventSetWait_v2(set, data ? &newer : NULL, timeout);
    if (!status) memcpy(data, &newer, offsetof(nvmlEventData_t, gpuInstanceId));
    return status;
}

static nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    if (!list_has(&device_sets, set, true)) return NVML_ERROR_INVALID_ARGUMENT;
    if (set->watch) nvml_watch_free(set->watch);
    free(set);
    return NVML_SUCCESS;
}

/* ---- of the system: devices that come and go, which these never do ---------------------------------------------- */

struct nvmlSystemEventSet_st {
    struct listed listed;
    unsigned long long types;
};

static nvmlReturn_t nvmlSystemEventSetCreate(nvmlSystemEventSetCreateRequest_t *request) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!request) return NVML_ERROR_INVALID_ARGUMENT;
    NVML_VERSIONED(request, nvmlSystemEventSetCreateRequest_v1);
    return (request->set = list_new(&system_sets, sizeof *request->set)) ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

static nvmlReturn_t nvmlSystemEventSetFree(nvmlSystemEventSetFreeRequest_t *request) {
    if (!request) return NVML_ERROR_INVALID_ARGUMENT;
    NVML_VERSIONED(request, nvmlSystemEventSetFreeRequest_v1);
    if (!list_has(&system_sets, request->set, true)) return NVML_ERROR_INVALID_ARGUMENT;
    free(request->set);
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlSystemRegisterEvents(nvmlSystemRegisterEventRequest_t *request) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!request) return NVML_ERROR_INVALID_ARGUMENT;
    NVML_VERSIONED(request, nvmlSystemRegisterEventRequest_v1);
    if (!list_has(&system_sets, request->set, false)) return NVML_ERROR_INVALID_ARGUMENT;
    request->set->types |= request->eventTypes;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_t *request) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!request || !request->data || !request->dataSize) return NVML_ERROR_INVALID_ARGUMENT;
    NVML_VERSIONED(request, nvmlSystemEventSetWaitRequest_v1);
    if (!list_has(&system_sets, request->set, false)) return NVML_ERROR_INVALID_ARGUMENT;
    request->numEvent = 0;
    nanosleep(
        &(struct timespec){.tv_sec = request->timeoutms / 1000, .tv_nsec = (long)(request->timeoutms % 1000) * 1000000},
        NULL);
    return NVML_ERROR_TIMEOUT;
}

const struct nvml_entry nvml_event_entries[] = {
    NVML_ENTRY(nvmlEventSetCreate),
    NVML_ENTRY(nvmlDeviceGetSupportedEventTypes),
    NVML_ENTRY(nvmlDeviceRegisterEvents),
    NVML_ENTRY(nvmlEventSetWait_v2),
    NVML_OLDER_ENTRY(nvmlEventSetWait),
    NVML_ENTRY(nvmlEventSetFree),
    NVML_ENTRY(nvmlSystemEventSetCreate),
    NVML_ENTRY(nvmlSystemEventSetFree),
    NVML_ENTRY(nvmlSystemRegisterEvents),
    NVML_ENTRY(nvmlSystemEventSetWait),
    {NULL, NULL},
};
