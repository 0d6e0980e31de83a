/* NVRTC's cubins, with their PTX.
 *
 * When the CPU device is the provider, nvrtcGetCUBIN goes through here: behind the cubin that NVRTC made stands the PTX
 * that it made along with it (image.h). So a cubin can be cached on disk, sent to other processes and still run here,
 * and its ELF part is what NVRTC made. */
#include <dlfcn.h>
#include <stdlib.h>

#include <cupola/nvrtc.h>

#include "image.h"
#include "module.h"

struct nvrtc {
    nvrtcResult (*cubin_size)(nvrtcProgram, size_t *);
    nvrtcResult (*cubin)(nvrtcProgram, char *);
    nvrtcResult (*ptx_size)(nvrtcProgram, size_t *);
    nvrtcResult (*ptx)(nvrtcProgram, char *);
};

/* The library that the process has loaded already: a program came from it. */
static const struct nvrtc *nvrtc(void) {
    static struct nvrtc table;
    static _Atomic bool ready;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (atomic_load(&ready)) return &table;
    pthread_mutex_lock(&lock);
    void *library = loaded_library("libnvrtc.so");
    if (library && !atomic_load(&ready)) {
        table.cubin_size = dlsym(library, "nvrtcGetCUBINSize");
        table.cubin = dlsym(library, "nvrtcGetCUBIN");
        table.ptx_size = dlsym(library, "nvrtcGetPTXSize");
        table.ptx = dlsym(library, "nvrtcGetPTX");
        atomic_store(&ready, table.cubin_size && table.cubin && table.ptx_size && table.ptx);
    }
    pthread_mutex_unlock(&lock);
    return atomic_load(&ready) ? &table : NULL;
}

/* NVRTC counts the PTX's closing zero. Without a cubin (a virtual architecture) there is nothing to add to. */
static nvrtcResult sizes(const struct nvrtc *library, nvrtcProgram program, size_t *cubin, size_t *ptx) {
    *ptx = 0;
    nvrtcResult result = library->cubin_size(program, cubin);
    if (result == NVRTC_SUCCESS && *cubin && library->ptx_size(program, ptx) != NVRTC_SUCCESS) *ptx = 0;
    if (*ptx) --*ptx;
    return result;
}

static nvrtcResult nvrtc_get_cubin_size(nvrtcProgram program, size_t *size) {
    const struct nvrtc *library = nvrtc();
    size_t cubin, ptx;
    if (!library) return NVRTC_ERROR_INTERNAL_ERROR;
    if (!size) return NVRTC_ERROR_INVALID_INPUT;
    nvrtcResult result = sizes(library, program, &cubin, &ptx);
    if (result == NVRTC_SUCCESS) *size = ptx ? cubin + ptx + PTX_FRAME_SIZE : cubin;
    return result;
}

static nvrtcResult nvrtc_get_cubin(nvrtcProgram program, char *target) {
    const struct nvrtc *library = nvrtc();
    size_t cubin, ptx;
    if (!library) return NVRTC_ERROR_INTERNAL_ERROR;
    if (!target) return NVRTC_ERROR_INVALID_INPUT;
    nvrtcResult result = sizes(library, program, &cubin, &ptx);
    if (result == NVRTC_SUCCESS) result = library->cubin(program, target);
    if (result != NVRTC_SUCCESS || !ptx) return result;
    char *text = malloc(ptx + 1);
    if (!text) return NVRTC_ERROR_OUT_OF_MEMORY;
    result = library->ptx(program, text);
    if (result == NVRTC_SUCCESS) write_ptx_frame(target + cubin, text, ptx);
    free(text);
    return result;
}

const struct entry nvrtc_entries[] = {
    ENTRY_AS(nvrtcGetCUBINSize, nvrtc_get_cubin_size),
    ENTRY_AS(nvrtcGetCUBIN, nvrtc_get_cubin),
    {NULL, NULL, NULL},
};
