/* From a library with one of NVIDIA's names to the emulated driver (connect.c). */
#ifndef CUPOLA_CPU_PROVIDER_CONNECT_H
#define CUPOLA_CPU_PROVIDER_CONNECT_H

#include "cudart/host_code.h"

/* The emulated driver, which the first call starts, with Python if the process has none. NULL when that fails: stderr
 * has the reason then, once. */
const struct cpu_programs *connect_driver(void);

#endif
