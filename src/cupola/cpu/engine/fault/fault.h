/* Faults: the first one of a launch is recorded, for cupola.cpu.reports to tell in words, and the launch ends. */
#ifndef CUPOLA_CPU_FAULT_H
#define CUPOLA_CPU_FAULT_H

#include "above.h"
#include "engine/running.h"

/* Record a fault of a lane, if it is the first of the launch. */
void cpu_fault_raise(cpu_context *context, const cpu_warp *warp, int lane, int kind, uint32_t site, const char *format,
                     ...) __attribute__((format(printf, 6, 7)));
void cpu_fault_raise_access(cpu_context *context, const cpu_warp *warp, int lane, int kind, cpu_site site,
                            uint64_t address, uint64_t size, const char *details);

/* Call f, which runs machine code; a memory fault in it becomes a fault of the launch (guard.c). What f calls outside of
 * the engine, such as Python, is not to be guarded: its faults are its own. */
void cpu_guard_call(cpu_context *context, void (*f)(void *), void *argument);
void cpu_guard_start(void); /* from now on memory faults come here; the first call does it at the latest */
void *cpu_guard_pause(void);
void cpu_guard_resume(void *paused);
void cpu_guard_install_stop(void); /* the handler of the signal that ends a launch */

#endif
