/* From the names of the runtime's functions to the functions. */
#include "cudart.h"

extern const struct entry runtime_error_entries[], runtime_context_entries[], runtime_device_entries[],
    runtime_stream_entries[], runtime_memory_entries[], runtime_pool_entries[], runtime_copy_entries[],
    runtime_array_entries[], runtime_copy_array_entries[], runtime_texture_entries[],
    runtime_launch_entries[], runtime_graph_entries[], runtime_graph_node_entries[],
    runtime_execution_context_entries[];

static const struct entry *const tables[] = {
    runtime_error_entries,  runtime_context_entries, runtime_device_entries, runtime_stream_entries,
    runtime_memory_entries, runtime_pool_entries,    runtime_copy_entries,   runtime_launch_entries,
    runtime_graph_entries,  runtime_graph_node_entries, runtime_array_entries, runtime_copy_array_entries,
    runtime_texture_entries, runtime_execution_context_entries,
};
enum { TABLES = sizeof tables / sizeof *tables };

void *runtime_lookup(const char *symbol) {
    size_t length = strlen(symbol);
    bool per_thread = length > 5 && (!strcmp(symbol + length - 5, "_ptsz") || !strcmp(symbol + length - 5, "_ptds"));
    if (per_thread) length -= 5;
    for (int t = 0; t < TABLES; t++)
        for (const struct entry *entry = tables[t]; entry->name; entry++)
            if (!strncmp(entry->name, symbol, length) && !entry->name[length])
                return per_thread ? entry->per_thread : entry->function;
    return NULL;
}

size_t runtime_lookup_count(void) {
    size_t count = 0;
    for (int t = 0; t < TABLES; t++)
        for (const struct entry *entry = tables[t]; entry->name; entry++) count++;
    return count;
}

const char *runtime_lookup_name(size_t index) {
    for (int t = 0; t < TABLES; t++)
        for (const struct entry *entry = tables[t]; entry->name; entry++)
            if (!index--) return entry->name;
    return NULL;
}
