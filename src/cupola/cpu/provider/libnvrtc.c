/* A libnvrtc.so for programs that compile CUDA C++ themselves: NVIDIA's compiler, whose cubins keep their PTX.
 *
 * Its functions are jumps to those of the real library, but the two that give a cubin: they put the PTX behind it, as
 * the bindings do (driver/module/nvrtc.c), so the cubin runs on the CPU device, from the program's own caches, too. The
 * real library is the one that the dynamic linker would have given to the program, in the folders that stand behind
 * this library's; or else one that `cupola run` has found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cupola/nvrtc.h>

#include "driver/module/keep_ptx.h"
#include "driver/module/observed.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)
#define WHEEL (NVRTC_MAJOR < 13 ? "nvidia-cuda-nvrtc-cu" TEXT(NVRTC_MAJOR) : "nvidia-cuda-nvrtc")
#define NAME "libnvrtc.so." TEXT(NVRTC_MAJOR)

#define EXPORTED __attribute__((visibility("default")))

/* Says that cubins from here have their PTX already (driver/module/trailer.c). */
EXPORTED const char cupola_keeps_ptx = 1;

static void *real;
static struct nvrtc table;
static bool has_functions;

/* ---- finding the real library ------------------------------------------------------------------------------------ */

static bool is_own(const char *path) {
    Dl_info own;
    char here[PATH_MAX], there[PATH_MAX];
    return dladdr(&cupola_keeps_ptx, &own) && realpath(own.dli_fname, here) && realpath(path, there) &&
           !strcmp(here, there);
}

/* A library of another CUDA has another name, and one that is like this one has the mark. */
static void *open_real(const char *path) {
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name + 1, NAME, strlen(NAME)) || is_own(path)) return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library || !dlsym(library, "cupola_keeps_ptx")) return library;
    dlclose(library);
    return NULL;
}

/* LD_LIBRARY_PATH, the program's own folders, and those of the system. */
static void *search_folders(void) {
    void *program = dlopen(NULL, RTLD_LAZY), *found = NULL;
    Dl_serinfo size, *folders;
    if (!program || dlinfo(program, RTLD_DI_SERINFOSIZE, &size) || !(folders = malloc(size.dls_size))) return NULL;
    char path[PATH_MAX];
    if (!dlinfo(program, RTLD_DI_SERINFOSIZE, folders) && !dlinfo(program, RTLD_DI_SERINFO, folders))
        for (unsigned i = 0; i < folders->dls_cnt && !found; i++) {
            int length = snprintf(path, sizeof path, "%s/" NAME, folders->dls_serpath[i].dls_name);
            if (length < (int)sizeof path) found = open_real(path);
        }
    free(folders);
    return found;
}

/* Paths with colons between them. */
static void *search_copies(const char *paths) {
    char path[PATH_MAX];
    void *found = NULL;
    for (size_t length; paths && *paths && !found; paths += length + (paths[length] == ':')) {
        length = strcspn(paths, ":");
        int written = snprintf(path, sizeof path, "%.*s", (int)length, paths);
        if (written < (int)sizeof path) found = open_real(path);
    }
    return found;
}

static void find_real(void) {
    real = search_folders() ?: search_copies(getenv("CUPOLA_LIBNVRTC"));
    if (!real)
        fprintf(stderr, "cupola: " NAME " is not installed: pip install %s, or put its folder into LD_LIBRARY_PATH\n",
                WHEEL);
}

static void *in_real(const char *symbol) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_real);
    return real ? dlsym(real, symbol) : NULL;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void find_functions(void) { has_functions = in_real("nvrtcVersion") && find_nvrtc(&table, real); }

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
    if (real) fprintf(stderr, "cupola: the library " NAME " that is installed has no %s\n", symbol);
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
#define SYMBOLS "libnvrtc12_symbols.h"
#else
#define SYMBOLS "libnvrtc13_symbols.h"
#endif
#include "jumps.h"
