/* What the rooms above provide to faults. */
#ifndef CUPOLA_CPU_FAULT_ABOVE_H
#define CUPOLA_CPU_FAULT_ABOVE_H

#include "engine/running.h"

/* The calls that a lane is in, innermost first: how many, of which the first ones are stored (schedule/stack.c). */
uint32_t cpu_stack_calls(const cpu_context *context, const cpu_warp *warp, int lane, uint32_t *calls);

/* Of launches that are ended from outside (schedule/stop.c): the launch that this thread works on, and its fault. */
cpu_job *cpu_stop_current(void);
void cpu_stop_raise(cpu_context *context);

#endif
