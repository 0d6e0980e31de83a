/* From symbols to entry points, and cuGetProcAddress (CUDA Driver API, "Driver Entry Point Access"). */
#include "internal.h"

extern const struct entry error_entries[], init_entries[], device_entries[], context_entries[], stream_entries[],
    event_entries[], value_entries[], module_entries[], link_entries[], library_entries[], function_entries[],
    launch_entries[], occupancy_entries[], cluster_entries[], nvrtc_entries[], nvjitlink_entries[], memory_entries[],
    pool_entries[], copy_entries[],
    array_entries[], copy_array_entries[], texture_entries[], texture_reference_entries[],
    fill_entries[], pointer_entries[], capture_entries[], graph_entries[], graph_node_entries[],
    graph_conditional_entries[], graph_object_entries[], graph_exec_entries[], graph_update_entries[],
    graph_dot_entries[], graph_attribute_entries[], managed_entries[], virtual_entries[],
    ipc_pool_entries[], ipc_event_entries[], ipc_memory_entries[], lookup_entries[];

static const struct entry *const tables[] = {
    error_entries,
    init_entries,
    device_entries,
    context_entries,
    stream_entries,
    event_entries,
    value_entries,
    module_entries,
    link_entries,
    library_entries,
    function_entries,
    launch_entries,
    occupancy_entries,
    cluster_entries,
    nvrtc_entries,
    nvjitlink_entries,
    memory_entries,
    pool_entries,
    copy_entries,
    array_entries,
    copy_array_entries,
    texture_entries,
    texture_reference_entries,
    fill_entries,
    pointer_entries,
    capture_entries,
    graph_entries,
    graph_node_entries,
    graph_conditional_entries,
    graph_object_entries,
    graph_exec_entries,
    graph_update_entries,
    graph_dot_entries,
    graph_attribute_entries,
    managed_entries,
    virtual_entries,
    ipc_pool_entries,
    ipc_event_entries,
    ipc_memory_entries,
    lookup_entries,
};
enum { TABLES = sizeof tables / sizeof *tables };

static const struct entry *find(const char *symbol, size_t length) {
    for (int t = 0; t < TABLES; t++)
        for (const struct entry *entry = tables[t]; entry->name; entry++)
            if (!strncmp(entry->name, symbol, length) && !entry->name[length]) return entry;
    return NULL;
}

void *lookup(const char *symbol) {
    size_t length = strlen(symbol);
    bool per_thread = length > 5 && (!strcmp(symbol + length - 5, "_ptsz") || !strcmp(symbol + length - 5, "_ptds"));
    const struct entry *entry = find(symbol, per_thread ? length - 5 : length);
    if (!entry) return NULL;
    return per_thread ? entry->per_thread : entry->function;
}

size_t lookup_count(void) {
    size_t count = 0;
    for (int t = 0; t < TABLES; t++)
        for (const struct entry *entry = tables[t]; entry->name; entry++) count++;
    return count;
}

const char *lookup_name(size_t index) {
    for (int t = 0; t < TABLES; t++)
        for (const struct entry *entry = tables[t]; entry->name; entry++)
            if (!index--) return entry->name;
    return NULL;
}

/* What a plain name meant before the given version of CUDA; after the last of its rows it has the newest meaning. */
static const struct {
    const char *name;
    int before;
    const char *symbol;
} older[] = {
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v1"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v2"},
    {"cuCtxCreate", 13000, "cuCtxCreate_v3"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v2"},
    {"cuStreamUpdateCaptureDependencies", 12030, "cuStreamUpdateCaptureDependencies_v1"},
    {"cuMemAdvise", 12020, "cuMemAdvise_v1"},
    {"cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v1"},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiate_v2"},
    {"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v1"},
    {"cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v1"},
    {"cuGraphKernelNodeGetParams", 12000, "cuGraphKernelNodeGetParams_v1"},
    {"cuGraphKernelNodeSetParams", 12000, "cuGraphKernelNodeSetParams_v1"},
    {"cuGraphExecKernelNodeSetParams", 12000, "cuGraphExecKernelNodeSetParams_v1"},
    {"cuGraphGetEdges", 12030, "cuGraphGetEdges_v1"},
    {"cuGraphNodeGetDependencies", 12030, "cuGraphNodeGetDependencies_v1"},
    {"cuGraphNodeGetDependentNodes", 12030, "cuGraphNodeGetDependentNodes_v1"},
    {"cuGraphAddDependencies", 12030, "cuGraphAddDependencies_v1"},
    {"cuGraphRemoveDependencies", 12030, "cuGraphRemoveDependencies_v1"},
    {"cuGraphAddNode", 12030, "cuGraphAddNode_v1"},
};

void *exported(const char *symbol) {
    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        if (!strcmp(older[i].name, symbol)) return lookup(older[i].symbol);
    return lookup(symbol);
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *result) {
    CUdriverProcAddressQueryResult ignored;
    if (!symbol) return fail_null("symbol");
    if (!function) return fail_null("pfn");
    if (!result) result = &ignored;
    *function = NULL;
    *result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return fail(CUDA_ERROR_INVALID_VALUE, "%#llx are not flags of cuGetProcAddress", (unsigned long long)flags);
    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        if (version < older[i].before && !strcmp(older[i].name, symbol)) {
            symbol = older[i].symbol;
            break;
        }
    const struct entry *entry = find(symbol, strlen(symbol));
    if (!entry) return fail(CUDA_ERROR_NOT_FOUND, "the CPU device does not provide %s", symbol);
    *function = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && entry->per_thread ? entry->per_thread
                                                                                           : entry->function;
    *result = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}

static CUresult cuGetProcAddress_v1(const char *symbol, void **function, int version, cuuint64_t flags) {
    return cuGetProcAddress(symbol, function, version, flags, NULL);
}

const struct entry lookup_entries[] = {
    ENTRY(cuGetProcAddress),
    ENTRY_AS(cuGetProcAddress_v2, cuGetProcAddress),
    ENTRY_AS(cuGetProcAddress_v1, cuGetProcAddress_v1),
    {NULL, NULL, NULL},
};
