/* What the rooms above provide to modules: the ends of what belongs to one. */
#ifndef CUPOLA_CPU_DRIVER_MODULE_ABOVE_H
#define CUPOLA_CPU_DRIVER_MODULE_ABOVE_H

#include "driver/base/base.h"

struct op;
CUresult grid_execute(const struct op *op); /* a kernel that asks something of the driver (device_side/grid.c) */

void references_module_released(CUmodule module); /* before its variables go (texture/reference.c) */

#endif
