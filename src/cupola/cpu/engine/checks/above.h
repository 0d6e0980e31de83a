/* What the driver provides to checks. */
#ifndef CUPOLA_CPU_CHECKS_ABOVE_H
#define CUPOLA_CPU_CHECKS_ABOVE_H

#include "engine/engine.h"

/* The line of the program that this thread is at, in the handler of a signal, too; NULL: there is none. Takes the GIL.
 * (driver/base/origin.c) */
const struct cpu_origin *cpu_host_origin(void);

#endif
