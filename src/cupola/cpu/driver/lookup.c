/* From symbols to entry points, and cuGetProcAddress (CUDA Driver API, "Driver Entry Point Access"). */
#include "lookup.h"

#include "driver/base/base.h"
#include "driver/inject/inject.h"

/* The tables at the ends of the files, room by room (tests/cpu/driver/test_entries.py compares). */
#define TABLES(X)                                                                                                      \
    X(error) X(init) X(device) X(context) X(limit) X(coredump)                                                                              \
    X(stream) X(event) X(value) X(resource) X(green)                                                                                        \
    X(memory) X(copy) X(fill) X(pointer) X(pool) X(managed) X(virtual) X(multicast)                                                 \
    X(module) X(link) X(library) X(function) X(launch) X(occupancy) X(cluster) X(nvrtc) X(nvjitlink)                   \
    X(texel) X(array) X(copy_array) X(texture) X(texture_reference) X(graphics) X(tensor_map)                          \
    X(capture) X(graph) X(graph_node) X(graph_attribute) X(graph_conditional) X(graph_object) X(graph_exec)            \
    X(graph_update) X(graph_dot)                                                                                       \
    X(ipc_event) X(ipc_memory) X(ipc_pool)                                                                             \
    X(checkpoint)                                                                             \
    X(lookup) X(export_table)

#define DECLARE(name) extern const struct entry name##_entries[];
TABLES(DECLARE)

#define ADDRESS(name) name##_entries,
static const struct entry *const tables[] = {TABLES(ADDRESS) NULL};

void *lookup(const char *symbol) { return entry_lookup(tables, symbol); }

size_t lookup_count(void) { return entry_count(tables); }

const char *lookup_name(size_t index) { return entry_name(tables, index); }

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
    const struct entry *entry = entry_find(tables, symbol, strlen(symbol));
    if (!entry) return fail(CUDA_ERROR_NOT_FOUND, "the CPU device does not provide %s", symbol);
    const bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && entry->per_thread;
    *function = injectable(entry->name, per_thread ? entry->per_thread : entry->function, NULL);
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
