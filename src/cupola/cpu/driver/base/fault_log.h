/* Kernels that failed, for whoever started the program. */
#ifndef CUPOLA_CPU_DRIVER_FAULT_LOG_H
#define CUPOLA_CPU_DRIVER_FAULT_LOG_H

#include <cupola/driver.h>

#include "engine/engine.h"

void log_fault(CUresult status, const cpu_launch *launch); /* any thread, without the GIL */

#endif
