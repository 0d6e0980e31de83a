/* Pages of pinned and managed memory that the host has no business in at present (hidden.c). */
#ifndef CUPOLA_CPU_HIDDEN_H
#define CUPOLA_CPU_HIDDEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/common.h"

extern _Atomic bool cpu_hidden_is_used; /* something is hidden, or was */

/* Hide pages until operation `number` of a line is known to be over (engine/checks/moments.h); with `reads_are_fine` only
 * writes are seen. They stay accessible while something is paused. */
void cpu_hidden_add(uint64_t low, uint64_t high, bool reads_are_fine, uint32_t line, uint32_t number);

/* While somebody else than the host is at work, nothing is hidden. */
void cpu_hidden_pause(void);
void cpu_hidden_resume(void);

/* Show what belongs to operations that are over, `known` of each line; and memory that is freed. */
void cpu_hidden_show(const uint32_t *known);
void cpu_hidden_forget_range(uint64_t address, uint64_t size);
static inline void cpu_hidden_forget(uint64_t address, uint64_t size) {
    if (asked(atomic_load_explicit(&cpu_hidden_is_used, memory_order_relaxed))) cpu_hidden_forget_range(address, size);
}

/* In the handler of a memory fault: whether the page is one that was hidden. It is accessible then; with `all`, so are those
 * that were hidden together with it. */
bool cpu_hidden_open(uint64_t address, bool is_write, bool all);

#endif
