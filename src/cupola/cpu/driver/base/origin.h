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

/* Memory is allocated, by a function, and will be freed: its lines are kept, and while something is checked, it may leak. */
void origin_allocated(uint64_t base, size_t size, const char *call) __attribute__((cold));
void origin_freed(uint64_t base) __attribute__((cold));

static inline void note_allocation(uint64_t base, size_t size, const char *call) {
    cpu_memory_set_lines(base, caller_here(), 0);
    if (checks(CHECK_ANY)) origin_allocated(base, size, call);
}

static inline void note_free(uint64_t base) {
    cpu_memory_set_lines(base, 0, caller_here());
    if (checks(CHECK_ANY)) origin_freed(base);
}

/* Say at the end of the process what was not freed, if that is checked then. */
void origin_watch_end(void);

#endif
