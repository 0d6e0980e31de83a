/* Threads of the CPU device's own. */
#ifndef CUPOLA_CPU_THREAD_H
#define CUPOLA_CPU_THREAD_H

#include <stdbool.h>

/* Start a thread that nobody joins. Signals are for the program's own threads; but those of faults come to the thread that
 * runs device code. False when the system has no room for another one. */
bool thread_start(void *(*run)(void *), void *argument);

#endif
