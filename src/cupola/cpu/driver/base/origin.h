/* Lines of Python as text, while something is checked, and those that allocate and free memory, always (origin.c). */
#ifndef CUPOLA_CPU_DRIVER_ORIGIN_H
#define CUPOLA_CPU_DRIVER_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caller.h"
#include "checks.h"
#include "engine/memory/memory.h"

/* The innermost line of this thread's Python code that is not of cupola; NULL: there is none. What it points to stays.
 * Without locks held; takes the GIL. */
const struct cpu_origin *origin_here(void) __attribute__((cold));

/* Where cupola's own Python files are, with a slash behind; empty while that is not known. The first one with the GIL. */
const char *origin_find_folder(void);
const char *origin_folder(void);

/* Whether a file is of a package that launches kernels for others. */
bool origin_is_between(const char *file);

/* What may leak: allocations; memory of nodes of graphs, each launch of which makes it anew; host memory that is registered;
 * mapped memory; memory without an address, known by its handle; reserved addresses. */
enum origin_kind {
    ORIGIN_ALLOCATED,
    ORIGIN_OF_GRAPH,
    ORIGIN_REGISTERED,
    ORIGIN_MAPPED,
    ORIGIN_CREATED,
    ORIGIN_RESERVED,
};

/* Something begins, by a function, and will end: its lines are kept, and while something is checked, it may leak. Of each kind
 * one is known at a time by its address or handle. The first one without locks held. */
void origin_begun(enum origin_kind kind, uint64_t base, size_t size, const char *call) __attribute__((cold));
void origin_ended(enum origin_kind kind, uint64_t base) __attribute__((cold));

static inline void note_begin(enum origin_kind kind, uint64_t base, size_t size, const char *call) {
    if (checks(CHECK_ANY)) origin_begun(kind, base, size, call);
}

static inline void note_end(enum origin_kind kind, uint64_t base) {
    if (checks(CHECK_ANY)) origin_ended(kind, base);
}

static inline void note_allocation(uint64_t base, size_t size, const char *call) {
    cpu_memory_set_lines(base, caller_here(), 0);
    note_begin(ORIGIN_ALLOCATED, base, size, call);
}

static inline void note_free(uint64_t base) {
    cpu_memory_set_lines(base, 0, caller_here());
    note_end(ORIGIN_ALLOCATED, base);
}

/* Say at the end of the process what was not freed, if that is checked then. */
void origin_watch_end(void);

#endif
