/* Which line of Python calls the driver, for the report of a fault that comes later (caller.c). */
#ifndef CUPOLA_CPU_DRIVER_CALLER_H
#define CUPOLA_CPU_DRIVER_CALLER_H

#include "engine/engine.h"

/* A number for the innermost place of this thread's Python code that is not of cupola; 0: not known. With or without the GIL,
 * and without locks held, since a new place takes the GIL. */
uint32_t caller_here(void);

/* The same by Python's own functions, for versions whose frames are not read in place. */
uint32_t caller_ask(void);

#endif
