/* What the rooms above provide to the scheduler: what its threads wait for at mbarriers (instructions/mbarrier.c), and
 * the debugger. */
#ifndef CUPOLA_CPU_SCHEDULE_ABOVE_H
#define CUPOLA_CPU_SCHEDULE_ABOVE_H

#include "engine/running.h"

/* For a launch that is debugged (instruments/debug.c): a warp has faulted, or NULL, the block; the launch is over. */
void cpu_debug_failed(cpu_context *context, cpu_warp *warp);
void cpu_debug_over(cpu_job *job);

/* Nothing but waiting for mbarriers in all units of the cluster? */
bool cpu_mbarrier_stuck(const cpu_cluster *cluster);

/* Of the mbarrier at an offset in shared memory: whether it is one, and what its phase lacks. */
bool cpu_mbarrier_lacks(const uint8_t *shared, uint32_t offset, uint32_t *arrivals, uint32_t *expected, int32_t *bytes);

#endif
