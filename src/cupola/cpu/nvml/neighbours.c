/* What is near a device: processors, memory, and other devices. The devices are part of this computer, so all of its
 * processors are near, and so are the devices to each other. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "driver/base/base.h"
#include "nvml/nvml.h"

enum { WORD = 8 * sizeof(unsigned long) };

static void set_bits(unsigned long *words, unsigned size, long count) {
    memset(words, 0, size * sizeof *words);
    for (long i = 0; i < count && i / WORD < size; i++) words[i / WORD] |= 1UL << i % WORD;
}

static nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned size, unsigned long *set,
                                                        nvmlAffinityScope_t scope) {
    NVML_DEVICE(device, ordinal, size ? set : NULL);
    (void)ordinal;
    if (scope > NVML_AFFINITY_SCOPE_SOCKET) return NVML_ERROR_INVALID_ARGUMENT;
    set_bits(set, size, sysconf(_SC_NPROCESSORS_ONLN));
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned size, unsigned long *set) {
    return nvmlDeviceGetCpuAffinityWithinScope(device, size, set, NVML_AFFINITY_SCOPE_NODE);
}

static nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned size, unsigned long *set,
                                                nvmlAffinityScope_t scope) {
    NVML_DEVICE(device, ordinal, size ? set : NULL);
    (void)ordinal;
    if (scope > NVML_AFFINITY_SCOPE_SOCKET) return NVML_ERROR_INVALID_ARGUMENT;
    set_bits(set, size, 1); /* node 0, as CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID says */
    return NVML_SUCCESS;
}

/* The calling thread may run on all processors: near ones are all there are, so both calls do the same. */
static nvmlReturn_t bind_to_all(nvmlDevice_t device) {
    int ordinal;
    nvmlReturn_t status = nvml_device(device, &ordinal);
    if (status) return status;
    cpu_set_t all;
    CPU_ZERO(&all);
    for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF) && i < CPU_SETSIZE; i++) CPU_SET((size_t)i, &all);
    return sched_setaffinity(0, sizeof all, &all) ? NVML_ERROR_OPERATING_SYSTEM : NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t device) { return bind_to_all(device); }
static nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t device) { return bind_to_all(device); }

/* Write all devices but one (-1: all). */
static nvmlReturn_t list_devices(int but, unsigned *count, nvmlDevice_t *list) {
    unsigned found = (unsigned)devices_present - (but >= 0);
    if (list || !*count) {
        nvmlReturn_t status = nvml_room(count, found, list);
        if (status) return status;
        for (int i = 0; i < devices_present; i++)
            if (i != but) *list++ = nvml_handle(i);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned processor, unsigned *count, nvmlDevice_t *list) {
    nvmlReturn_t status = nvml_enter();
    if (status) return status;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    if (processor < (unsigned long)sysconf(_SC_NPROCESSORS_CONF)) return list_devices(-1, count, list);
    *count = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned *count,
                                                     nvmlDevice_t *list) {
    NVML_DEVICE(device, ordinal, count);
    if (level == NVML_TOPOLOGY_NODE) return list_devices(ordinal, count, list);
    *count = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other,
                                                        nvmlGpuTopologyLevel_t *level) {
    NVML_DEVICE(device, ordinal, level);
    int peer;
    nvmlReturn_t status = nvml_device(other, &peer);
    if (status) return status;
    if (ordinal == peer) return NVML_ERROR_NOT_SUPPORTED; /* as on an H200 */
    *level = NVML_TOPOLOGY_NODE;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t what,
                                           nvmlGpuP2PStatus_t *answer) {
    NVML_DEVICE(device, ordinal, answer);
    int peer;
    nvmlReturn_t status = nvml_device(other, &peer);
    if (status) return status;
    switch (what) {
        case NVML_P2P_CAPS_INDEX_READ:
        case NVML_P2P_CAPS_INDEX_WRITE:
        case NVML_P2P_CAPS_INDEX_ATOMICS:
            *answer = ordinal == peer ? NVML_P2P_STATUS_NOT_SUPPORTED : NVML_P2P_STATUS_OK;
            return NVML_SUCCESS;
        case NVML_P2P_CAPS_INDEX_NVLINK:
        case NVML_P2P_CAPS_INDEX_PCI: *answer = NVML_P2P_STATUS_NOT_SUPPORTED; return NVML_SUCCESS;
        case NVML_P2P_CAPS_INDEX_UNKNOWN: *answer = NVML_P2P_STATUS_OK; return NVML_SUCCESS; /* as on an H200 */
        default: return NVML_ERROR_INVALID_ARGUMENT;
    }
}

/* Two boards, always. */
static nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device, nvmlDevice_t other, int *same) {
    NVML_DEVICE(device, ordinal, same);
    int peer;
    nvmlReturn_t status = nvml_device(other, &peer);
    if (!status) *same = ordinal == peer;
    return status;
}

const struct nvml_entry nvml_neighbour_entries[] = {
    NVML_ENTRY(nvmlDeviceGetCpuAffinityWithinScope),
    NVML_ENTRY(nvmlDeviceGetCpuAffinity),
    NVML_ENTRY(nvmlDeviceGetMemoryAffinity),
    NVML_ENTRY(nvmlDeviceSetCpuAffinity),
    NVML_ENTRY(nvmlDeviceClearCpuAffinity),
    NVML_ENTRY(nvmlSystemGetTopologyGpuSet),
    NVML_ENTRY(nvmlDeviceGetTopologyNearestGpus),
    NVML_ENTRY(nvmlDeviceGetTopologyCommonAncestor),
    NVML_ENTRY(nvmlDeviceGetP2PStatus),
    NVML_ENTRY(nvmlDeviceOnSameBoard),
    {NULL, NULL},
};
