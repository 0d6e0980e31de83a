/* Rows of the tables of entry points, one at the end of each file (driver/lookup.c has them all). */
#ifndef CUPOLA_CPU_DRIVER_ENTRY_H
#define CUPOLA_CPU_DRIVER_ENTRY_H

#include <stddef.h>

#include <cupola/driver.h>

#include "context.h"

/* A symbol and what it stands for. Each file ends with a table of its own, closed by an entry without name. ENTRY
 * checks the function against the slot of the same name in the function table of the bindings; ENTRY_AS is for symbols
 * with a version ("cuMemAlloc_v2", and older ABIs). The _STREAM forms add the _ptsz and _ptds variants. */
struct entry {
    const char *name;
    void *function;
    void *per_thread; /* for NAME_ptsz and NAME_ptds; NULL: none */
};
#define CHECKED(name)                                                                                                  \
    __builtin_choose_expr(__builtin_types_compatible_p(typeof(&name), typeof(((cupola_driver_table *)0)->name)),       \
                          (void *)name, (void)0 /* `name` has another signature than the table's slot */)
#define ENTRY(name) {#name, CHECKED(name), NULL}
#define ENTRY_AS(symbol, name) {#symbol, (void *)name, NULL}
#define ENTRY_STREAM(name) {#name, CHECKED(name), (void *)name##_per_thread}
#define ENTRY_STREAM_AS(symbol, name) {#symbol, (void *)name, (void *)name##_per_thread}

/* A function that has the symbol NAME_v2 and, as the newest meaning, the name NAME in the function table. */
#define ENTRY_V2(name) ENTRY(name), ENTRY_AS(name##_v2, name)
#define ENTRY_STREAM_V2(name) ENTRY_STREAM(name), ENTRY_STREAM_AS(name##_v2, name)

/* Look into the tables of several files; the list of tables ends with NULL. The entry of a symbol; the function of a
 * symbol, which may end with _ptsz or _ptds; and the number of symbols, and a symbol by its number. NULL: not found. */
const struct entry *entry_find(const struct entry *const *tables, const char *symbol, size_t length);
void *entry_lookup(const struct entry *const *tables, const char *symbol);
size_t entry_count(const struct entry *const *tables);
const char *entry_name(const struct entry *const *tables, size_t index);

/* Define NAME_per_thread(...): NAME with stream 0 standing for the calling thread's default stream.
 *     PER_THREAD(cuStreamQuery, (CUstream stream), (stream)) */
#define PER_THREAD(name, parameters, arguments)          \
    static CUresult name##_per_thread parameters {       \
        thread_state.null_stream_is_per_thread = true;   \
        CUresult per_thread_status = name arguments;     \
        thread_state.null_stream_is_per_thread = false;  \
        return per_thread_status;                        \
    }

#endif
