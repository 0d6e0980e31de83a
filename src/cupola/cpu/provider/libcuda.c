/* A libcuda.so.1 for programs that load the driver themselves: its functions are jumps to the CPU device's.
 *
 * numba, CuPy's loader and others open the driver with ctypes.CDLL("libcuda.so.1") or dlopen(), beside the bindings;
 * programs in C++ are linked with it. This library has the driver's name (DT_SONAME), and once it is in the process the
 * dynamic linker gives it to everybody who asks for that name. Nothing of it is in a process that has not asked for it
 * (`cupola run --device cpu`). */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Packages of Python load NVIDIA's compiler and linker by their paths, unless libraries of these names are in the process.
 * So whoever loads the driver gets those of the CPU device (compilers/) beside it, where `cupola run` knows of NVIDIA's. */
__attribute__((constructor)) static void load_compilers(void) {
    static const struct {
        const char *name, *copies;
    } compilers[] = {
        {"libnvrtc.so.12", "CUPOLA_LIBNVRTC"},
        {"libnvrtc.so.13", "CUPOLA_LIBNVRTC"},
        {"libnvJitLink.so.12", "CUPOLA_LIBNVJITLINK"},
        {"libnvJitLink.so.13", "CUPOLA_LIBNVJITLINK"},
    };
    Dl_info own;
    char path[PATH_MAX];
    const char *slash = dladdr((void *)(uintptr_t)load_compilers, &own) ? strrchr(own.dli_fname, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof compilers / sizeof *compilers; i++) {
        const char *copies = getenv(compilers[i].copies);
        int folder = (int)(slash - own.dli_fname);
        int length = snprintf(path, sizeof path, "%.*s/%s", folder, own.dli_fname, compilers[i].name);
        if (copies && strstr(copies, compilers[i].name) && length < (int)sizeof path) dlopen(path, RTLD_LAZY);
    }
}

#define SYMBOLS "libcuda_symbols.h"
#include "jumps.h"
