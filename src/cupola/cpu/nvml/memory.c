/* Memory, the processes that use a device, and how busy it is. */
#include <stdlib.h>
#include <unistd.h>

#include "driver/base/base.h"
#include "nvml/nvml.h"

/* Bytes in use on a device, by all processes. */
static uint64_t used_bytes(int ordinal) {
    struct nvml_census census;
    uint64_t bytes = 0;
    nvml_census(ordinal, &census);
    for (unsigned i = 0; i < census.count; i++) bytes += census.processes[i].memory;
    return bytes;
}

static nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    NVML_DEVICE(device, ordinal, memory);
    NVML_VERSIONED(memory, nvmlMemory_v2);
    uint64_t capacity = devices[ordinal].model->memory, used = used_bytes(ordinal);
    if (used > capacity) used = capacity; /* each process may have what the model has */
    memory->total = capacity + BOARD_RESERVED;
    memory->reserved = BOARD_RESERVED;
    memory->used = used;
    memory->free = capacity - used;
    return NVML_SUCCESS;
}

/* The older form counts what is reserved as used. */
static nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    NVML_DEVICE(device, ordinal, memory);
    (void)ordinal;
    nvmlMemory_v2_t newer = {.version = nvmlMemory_v2};
    nvmlReturn_t status = nvmlDeviceGetMemoryInfo_v2(device, &newer);
    *memory = (nvmlMemory_t){.total = newer.total, .free = newer.free, .used = newer.used + newer.reserved};
    return status;
}

/* All of device memory can be reached from outside, as on an H200; what processes map of it is not known. */
static nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
    NVML_DEVICE(device, ordinal, memory);
    unsigned long long total = 1ULL << 28;
    while (total < devices[ordinal].model->memory) total *= 2;
    *memory = (nvmlBAR1Memory_t){.bar1Total = total, .bar1Free = total};
    return NVML_SUCCESS;
}

/* The processes for a list of the caller's, who has room for *count. Returns NVML_SUCCESS if it can be filled. */
static nvmlReturn_t running(nvmlDevice_t device, unsigned *count, const void *infos, struct nvml_census *census) {
    NVML_DEVICE(device, ordinal, count);
    nvml_census(ordinal, census);
    return nvml_room(count, census->count, infos);
}

static nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *infos) {
    struct nvml_census census;
    nvmlReturn_t status = running(device, count, infos, &census);
    if (status) return status;
    for (unsigned i = 0; i < census.count; i++)
        infos[i] = (nvmlProcessInfo_t){
            .pid = (unsigned)census.processes[i].pid,
            .usedGpuMemory = census.processes[i].memory,
            .gpuInstanceId = ~0u,
            .computeInstanceId = ~0u,
        };
    return NVML_SUCCESS;
}

struct process_v1 { /* as programs of NVML 10 and before have room for it */
    unsigned pid;
    unsigned long long memory;
};

static nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                         struct process_v1 *infos) {
    struct nvml_census census;
    nvmlReturn_t status = running(device, count, infos, &census);
    if (status) return status;
    for (unsigned i = 0; i < census.count; i++)
        infos[i] = (struct process_v1){(unsigned)census.processes[i].pid, census.processes[i].memory};
    return NVML_SUCCESS;
}

/* Nothing is drawn on the CPU device, and there is no MPS. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned *count) {
    NVML_DEVICE(device, ordinal, count);
    (void)ordinal;
    *count = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                             nvmlProcessInfo_t *infos) {
    (void)infos;
    return no_processes(device, count);
}

static nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                               nvmlProcessInfo_t *infos) {
    (void)infos;
    return no_processes(device, count);
}

/* The share of the last second in which any process ran kernels is not known exactly, since their times may overlap: the
 * sum of the processes, at most all of it. Memory is busy while kernels, copies or fills run. */
static nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    NVML_DEVICE(device, ordinal, utilization);
    struct nvml_census census;
    unsigned kernels = 0, transfers = 0;
    nvml_census(ordinal, &census);
    for (unsigned i = 0; i < census.count; i++)
        kernels += census.processes[i].kernels, transfers += census.processes[i].transfers;
    unsigned all = kernels + transfers;
    *utilization = (nvmlUtilization_t){
        .gpu = (kernels < 1000 ? kernels : 1000) / 10,
        .memory = (all < 1000 ? all : 1000) / 10,
    };
    return NVML_SUCCESS;
}

const struct nvml_entry nvml_memory_entries[] = {
    NVML_ENTRY(nvmlDeviceGetMemoryInfo),
    NVML_ENTRY(nvmlDeviceGetMemoryInfo_v2),
    NVML_ENTRY(nvmlDeviceGetBAR1MemoryInfo),
    NVML_OLDER_ENTRY(nvmlDeviceGetComputeRunningProcesses),
    NVML_ENTRY(nvmlDeviceGetComputeRunningProcesses_v3),
    NVML_ENTRY(nvmlDeviceGetGraphicsRunningProcesses_v3),
    NVML_ENTRY(nvmlDeviceGetMPSComputeRunningProcesses_v3),
    NVML_ENTRY(nvmlDeviceGetUtilizationRates),
    {NULL, NULL},
};
