/* A libcuda.so.1 for programs that load the driver themselves: its functions are jumps to the CPU device's.
 *
 * numba, CuPy's loader and others open the driver with ctypes.CDLL("libcuda.so.1") or dlopen(), beside the bindings;
 * programs in C++ are linked with it. This library has the driver's name (DT_SONAME), and once it is in the process the
 * dynamic linker gives it to everybody who asks for that name. Nothing of it is in a process that has not asked for it
 * (`cupola run --device cpu`). */
#include <stdio.h>

#include "connect.h"
#include "cupola/driver.h"

static CUresult absent(void) { return CUDA_ERROR_NOT_SUPPORTED; }
static CUresult unreachable(void) { return CUDA_ERROR_NOT_INITIALIZED; }

static void *find_function(const char *symbol) {
    const struct cpu_programs *programs = connect_driver();
    if (!programs) return (void *)(uintptr_t)unreachable;
    void *function = programs->driver(symbol);
    if (function) return function;
    char text[256];
    snprintf(text, sizeof text, "the CPU device does not emulate %s: it returns CUDA_ERROR_NOT_SUPPORTED", symbol);
    programs->say(text);
    return (void *)(uintptr_t)absent;
}

#define SYMBOLS "libcuda_symbols.h"
#include "jumps.h"
