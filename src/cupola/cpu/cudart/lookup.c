/* From the names of the runtime's functions to the functions. */
#include "cudart.h"

/* The tables at the ends of the files (tests/cpu/driver/test_entries.py compares). */
#define TABLES(X)                                                                                                      \
    X(runtime_error) X(runtime_context) X(runtime_device) X(runtime_execution_context) X(runtime_stream)               \
    X(runtime_memory) X(runtime_pool) X(runtime_copy) X(runtime_launch) X(runtime_graph) X(runtime_graph_node)         \
    X(runtime_symbol) X(runtime_array) X(runtime_copy_array) X(runtime_texture) X(runtime_graphics)

#define DECLARE(name) extern const struct entry name##_entries[];
TABLES(DECLARE)

#define ADDRESS(name) name##_entries,
static const struct entry *const tables[] = {TABLES(ADDRESS) NULL};

void *runtime_lookup(const char *symbol) { return entry_lookup(tables, symbol); }

size_t runtime_lookup_count(void) { return entry_count(tables); }

const char *runtime_lookup_name(size_t index) { return entry_name(tables, index); }
