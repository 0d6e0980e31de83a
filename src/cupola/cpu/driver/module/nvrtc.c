/* NVRTC's cubins, with their PTX.
 *
 * When the CPU device is the provider, nvrtcGetCUBIN goes through here: behind the cubin that NVRTC made stands the PTX
 * that it made along with it (keep_ptx.c). So a cubin can be cached on disk, sent to other processes and still run
 * here, and its ELF part is what NVRTC made. */
#include "image.h"
#include "keep_ptx.h"
#include "module.h"
#include "observed.h"

/* The library that the process has loaded already: a program came from it. */
static const struct nvrtc *nvrtc(void) {
    static struct nvrtc table;
    static _Atomic bool ready;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (atomic_load(&ready)) return &table;
    pthread_mutex_lock(&lock);
    void *library = loaded_library("libnvrtc.so");
    if (library && !atomic_load(&ready)) atomic_store(&ready, find_nvrtc(&table, library));
    pthread_mutex_unlock(&lock);
    return atomic_load(&ready) ? &table : NULL;
}

static nvrtcResult nvrtc_get_cubin_size(nvrtcProgram program, size_t *size) {
    const struct nvrtc *library = nvrtc();
    return library ? cubin_size_with_ptx(library, program, size) : NVRTC_ERROR_INTERNAL_ERROR;
}

static nvrtcResult nvrtc_get_cubin(nvrtcProgram program, char *target) {
    const struct nvrtc *library = nvrtc();
    return library ? cubin_with_ptx(library, program, target) : NVRTC_ERROR_INTERNAL_ERROR;
}

/* NVRTC's own, unless kernels are to be observed (observed.c). */
static nvrtcResult nvrtc_create(nvrtcProgram *program, const char *text, const char *name, int count,
                                const char *const *headers, const char *const *names) {
    const struct nvrtc *library = nvrtc();
    return library ? observed_create(library, program, text, name, count, headers, names) : NVRTC_ERROR_INTERNAL_ERROR;
}

static nvrtcResult nvrtc_destroy(nvrtcProgram *program) {
    const struct nvrtc *library = nvrtc();
    return library ? observed_destroy(library, program) : NVRTC_ERROR_INTERNAL_ERROR;
}

static nvrtcResult nvrtc_compile(nvrtcProgram program, int count, const char *const *options) {
    const struct nvrtc *library = nvrtc();
    return library ? observed_compile(library, program, count, options) : NVRTC_ERROR_INTERNAL_ERROR;
}

static nvrtcResult nvrtc_get_ptx_size(nvrtcProgram program, size_t *size) {
    const struct nvrtc *library = nvrtc();
    return library ? observed_ptx_size(library, program, size) : NVRTC_ERROR_INTERNAL_ERROR;
}

static nvrtcResult nvrtc_get_ptx(nvrtcProgram program, char *target) {
    const struct nvrtc *library = nvrtc();
    return library ? observed_ptx(library, program, target) : NVRTC_ERROR_INTERNAL_ERROR;
}

const struct entry nvrtc_entries[] = {
    ENTRY_AS(nvrtcCreateProgram, nvrtc_create),
    ENTRY_AS(nvrtcDestroyProgram, nvrtc_destroy),
    ENTRY_AS(nvrtcCompileProgram, nvrtc_compile),
    ENTRY_AS(nvrtcGetPTXSize, nvrtc_get_ptx_size),
    ENTRY_AS(nvrtcGetPTX, nvrtc_get_ptx),
    ENTRY_AS(nvrtcGetCUBINSize, nvrtc_get_cubin_size),
    ENTRY_AS(nvrtcGetCUBIN, nvrtc_get_cubin),
    ENTRY_AS(cupolaLibraryOfBindings, library_of_bindings),
    {NULL, NULL, NULL},
};
