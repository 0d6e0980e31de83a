/* From the names of NVML's functions to the functions. Functions for features that the modeled GPU lacks (virtual GPUs,
 * MIG, NVLink, confidential computing, accounting, settings) answer as a GPU without the feature does, whatever their
 * arguments are. */
#include <string.h>

#include "nvml/nvml.h"

/* The tables at the ends of the files (tests/cpu/driver/test_entries.py compares). */
#define TABLES(X)                                                                                                      \
    X(nvml_session) X(nvml_device) X(nvml_memory) X(nvml_state) X(nvml_neighbour) X(nvml_event) X(nvml_field)

#define DECLARE(name) extern const struct nvml_entry name##_entries[];
TABLES(DECLARE)

#define ADDRESS(name) name##_entries,
static const struct nvml_entry *const tables[] = {TABLES(ADDRESS)};
enum { COUNT = sizeof tables / sizeof *tables };

/* What programs of older NVMLs ask for (nvml.h, "NVML API versioning support"), where that has the meaning of a newer name.
 * The others are beside the newer ones. */
static const struct {
    const char *name, *newer;
} older[] = {
    {"nvmlInit", "nvmlInit_v2"},
    {"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"},
    {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2"},
    {"nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByPciBusId_v2"},
    {"nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2"},
    {"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"},
    {"nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses_v3"},
    {"nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v3"},
    {"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v3"},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses_v3"},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksEventReasons"},
    {"nvmlDeviceGetSupportedClocksThrottleReasons", "nvmlDeviceGetSupportedClocksEventReasons"},
};

static nvmlReturn_t not_supported(void) {
    nvmlReturn_t status = nvml_enter();
    return status ? status : NVML_ERROR_NOT_SUPPORTED;
}

void *nvml_lookup(const char *symbol) {
    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        if (!strcmp(older[i].name, symbol)) symbol = older[i].newer;
    for (int t = 0; t < COUNT; t++)
        for (const struct nvml_entry *entry = tables[t]; entry->name; entry++)
            if (!strcmp(entry->name, symbol)) return entry->function;
    return strncmp(symbol, "nvml", 4) ? NULL : (void *)not_supported;
}

size_t nvml_lookup_count(void) {
    size_t count = 0;
    for (int t = 0; t < COUNT; t++)
        for (const struct nvml_entry *entry = tables[t]; entry->name; entry++) count++;
    return count;
}

const char *nvml_lookup_name(size_t index) {
    for (int t = 0; t < COUNT; t++)
        for (const struct nvml_entry *entry = tables[t]; entry->name; entry++)
            if (!index--) return entry->name;
    return NULL;
}
