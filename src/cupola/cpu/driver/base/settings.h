/* What the environment says about the CPU device (settings.c). */
#ifndef CUPOLA_CPU_DRIVER_SETTINGS_H
#define CUPOLA_CPU_DRIVER_SETTINGS_H

#include <stdbool.h>

#include "device.h"
#include "status.h"

struct settings {
    int version;          /* of CUDA */
    bool launch_blocking; /* launches wait for their kernels */
    bool eager_loading;   /* libraries are compiled when they are loaded */
    unsigned connections; /* streams that can be at work without waiting for each other, as far as programs are told */
};
extern struct settings settings;
CUresult settings_read(void);
CUresult settings_read_version(int *version);
CUresult settings_read_devices(const struct model **model, int *count);

#endif
