/* Which line of Python calls the driver, for the report of a fault that comes later (caller.c). */
#ifndef CUPOLA_CPU_DRIVER_CALLER_H
#define CUPOLA_CPU_DRIVER_CALLER_H

#include "engine/engine.h"

/* The innermost place of this thread's Python code that is not of cupola, with or without the GIL. */
void caller_note(cpu_caller *caller);

#endif
