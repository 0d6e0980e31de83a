/* What the rooms above provide to the device runtime: facts that the runtime for the host has as well (cudart/). */
#ifndef CUPOLA_CPU_DRIVER_DEVICE_SIDE_ABOVE_H
#define CUPOLA_CPU_DRIVER_DEVICE_SIDE_ABOVE_H

#include <cupola/runtime.h>

#include "driver/module/module.h"

void runtime_error_texts(int error, const char **name, const char **text); /* error.c */
/* The attributes of a function, which `get` reads one by one (launch.c). */
CUresult runtime_function_attributes(struct cudaFuncAttributes *attributes, CUfunction function,
                                     CUresult (*get)(int *value, CUfunction_attribute attribute, CUfunction function));
#endif
