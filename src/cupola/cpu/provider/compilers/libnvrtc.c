/* A libnvrtc.so for programs that compile CUDA C++ themselves: NVIDIA's compiler, whose cubins keep their PTX.
 *
 * Its functions are jumps to those of the real library, but the two that give a cubin: they put the PTX behind it, as
 * the bindings do (driver/module/nvrtc.c), so the cubin runs on the CPU device, from the program's own caches, too. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cupola/nvrtc.h>

#include "driver/module/keep_ptx.h"
#include "driver/module/observed.h"
#include "provider/compilers/real.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)
#define NAME "libnvrtc.so." TEXT(NVRTC_MAJOR)

#define EXPORTED __attribute__((visibility("default")))

EXPORTED const char cupola_keeps_ptx = 1;

static const char *copies(void) { return getenv("CUPOLA_LIBNVRTC"); }

const struct real real = {
    .name = NAME,
    .copies = copies,
    .wheel = NVRTC_MAJOR < 13 ? "nvidia-cuda-nvrtc-cu" TEXT(NVRTC_MAJOR) : "nvidia-cuda-nvrtc",
};

static struct nvrtc table;
static bool has_functions;

static void find_functions(void) { has_functions = in_real("nvrtcVersion") && find_nvrtc(&table, real_library()); }

static const struct nvrtc *functions(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_functions);
    return has_functions ? &table : NULL;
}

/* With lines, and what else observes kernels (driver/module/observed.c). */
static nvrtcResult create(nvrtcProgram *program, const char *text, const char *name, int count,
                          const char *const *headers, const char *const *names) {
    return observed_create(&table, program, text, name, count, headers, names);
}
static nvrtcResult destroy(nvrtcProgram *program) { return observed_destroy(&table, program); }
static nvrtcResult compile(nvrtcProgram program, int count, const char *const *options) {
    return observed_compile(&table, program, count, options);
}
static nvrtcResult get_ptx_size(nvrtcProgram program, size_t *size) { return observed_ptx_size(&table, program, size); }
static nvrtcResult get_ptx(nvrtcProgram program, char *target) { return observed_ptx(&table, program, target); }

static void *in_observed(const char *symbol) {
    static const struct {
        const char *symbol;
        void *function;
    } own[] = {
        {"nvrtcCreateProgram", create},    {"nvrtcDestroyProgram", destroy}, {"nvrtcCompileProgram", compile},
        {"nvrtcGetPTXSize", get_ptx_size}, {"nvrtcGetPTX", get_ptx},
    };
    if (!functions()) return NULL;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(symbol, own[i].symbol)) return own[i].function;
    return NULL;
}

static nvrtcResult absent(void) { return NVRTC_ERROR_INTERNAL_ERROR; }
static const char *no_text(void) { return "NVRTC_ERROR unknown"; }

static void *find_function(const char *symbol) {
    void *function = in_observed(symbol);
    if (!function) function = in_real(symbol);
    if (function) return function;
    if (real_library()) fprintf(stderr, "cupola: the library " NAME " that is installed has no %s\n", symbol);
    return strcmp(symbol, "nvrtcGetErrorString") ? (void *)(uintptr_t)absent : (void *)(uintptr_t)no_text;
}

EXPORTED nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) {
    const struct nvrtc *nvrtc = functions();
    return nvrtc ? cubin_size_with_ptx(nvrtc, program, size) : NVRTC_ERROR_INTERNAL_ERROR;
}

EXPORTED nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *target) {
    const struct nvrtc *nvrtc = functions();
    return nvrtc ? cubin_with_ptx(nvrtc, program, target) : NVRTC_ERROR_INTERNAL_ERROR;
}

#if NVRTC_MAJOR == 12
#define SYMBOLS "provider/compilers/libnvrtc12_symbols.h"
#else
#define SYMBOLS "provider/compilers/libnvrtc13_symbols.h"
#endif
#include "provider/jumps.h"
