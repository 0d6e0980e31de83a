/* Checks that are the driver's part: which are on, and kernels that have failed as findings of theirs (checks.c). */
#ifndef CUPOLA_CPU_DRIVER_CHECKS_H
#define CUPOLA_CPU_DRIVER_CHECKS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <cupola/driver.h>

#include "common/common.h"
#include "engine/engine.h"

/* The checks that are on: enum cpu_check, and behind them those of the driver alone (cupola.cpu.reports.kinds). */
enum { CHECK_MEMORY = 8, CHECK_LEAK = 16, CHECK_ANY = 31 };
extern _Atomic unsigned checks_on;
static inline bool checks(unsigned which) {
    return asked(atomic_load_explicit(&checks_on, memory_order_relaxed) & which);
}

/* A kernel has failed: a finding, if that is checked. Any thread, without locks; takes the GIL. */
void check_fault(CUresult status, const cpu_launch *launch);

/* A copy to the host reads bytes of device memory that nobody has written: so many, the first one at an address. */
void check_unset_copy(uint64_t address, uint64_t unset, uint64_t size);

#endif
