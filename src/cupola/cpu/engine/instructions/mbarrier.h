/* mbarrier objects, for the instructions that signal them (mbarrier.c). */
#ifndef CUPOLA_CPU_MBARRIER_H
#define CUPOLA_CPU_MBARRIER_H

#include "engine/running.h"

/* Count bytes of a copy as completed at the mbarrier at a generic address. Nonzero after a fault. */
uint32_t cpu_mbarrier_complete(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                               uint32_t bytes);

#endif
