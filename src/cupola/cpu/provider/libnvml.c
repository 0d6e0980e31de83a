/* A libnvidia-ml.so.1 for programs that load NVML themselves (JAX, nvidia-ml-py): its functions are jumps to the CPU
 * device's. */
#include <stdint.h>

#include "connect.h"
#include "cupola/nvml.h"

static nvmlReturn_t unreachable(void) { return NVML_ERROR_UNINITIALIZED; }

static void *find_function(const char *symbol) {
    const struct cpu_programs *programs = connect_driver();
    return programs ? programs->nvml(symbol) : (void *)(uintptr_t)unreachable;
}

#define SYMBOLS "libnvml_symbols.h"
#include "jumps.h"
