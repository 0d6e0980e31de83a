/* Lines of Python: which one launched a kernel, and which one allocated memory. Only while something is checked (origin.c). */
#ifndef CUPOLA_CPU_DRIVER_ORIGIN_H
#define CUPOLA_CPU_DRIVER_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checks.h"

/* The innermost line of this thread's Python code that is not of cupola; NULL: there is none. What it points to stays.
 * Without locks held; takes the GIL. */
const struct cpu_origin *origin_here(void) __attribute__((cold));

/* Where cupola's own Python files are, with a slash behind; empty while that is not known. The first one with the GIL. */
const char *origin_find_folder(void);
const char *origin_folder(void);

/* Whether a file is of a package that launches kernels for others. */
bool origin_is_between(const char *file);

/* Memory is allocated, by a function, and freed again; the lines of both, NULL: not known. */
void origin_allocated(uint64_t base, size_t size, const char *call) __attribute__((cold));
void origin_freed(uint64_t base) __attribute__((cold));
const struct cpu_origin *origin_of(uint64_t base, const struct cpu_origin **freed);

/* Say at the end of the process what was not freed, if that is checked then. */
void origin_watch_end(void);

#endif
