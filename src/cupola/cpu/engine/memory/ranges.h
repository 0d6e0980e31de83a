/* Memory that lives elsewhere than in the arena: registered host memory, mapped virtual memory. */
#ifndef CUPOLA_CPU_RANGES_H
#define CUPOLA_CPU_RANGES_H

#include "memory.h"

/* The last range that begins at or before the address (next == 0), or the one behind it (next == 1). Takes
 * no lock; 1 or 0. */
int ranges_near(uint64_t address, uint32_t next, cpu_allocation *found);

int ranges_add(const cpu_allocation *range); /* a cpu_memory_status */
int ranges_remove(uint64_t base);
void ranges_set_flags(uint64_t base, uint32_t flags);
void ranges_set_lines(uint64_t base, uint32_t allocated_at, uint32_t freed_at); /* 0: as it is */

/* The range that contained an address and was removed, one of the last; freed is 1. Takes a lock; 1 or 0. */
int ranges_gone(uint64_t address, cpu_allocation *found);

#endif
