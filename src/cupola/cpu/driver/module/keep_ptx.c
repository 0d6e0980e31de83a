/* Cubins of NVRTC with their PTX behind them (image.h): what the bindings and libnvrtc.so (provider/compilers) do. */
#include "keep_ptx.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "image.h"
#include "observed.h"

bool find_nvrtc(struct nvrtc *nvrtc, void *library) {
    nvrtc->create = dlsym(library, "nvrtcCreateProgram");
    nvrtc->destroy = dlsym(library, "nvrtcDestroyProgram");
    nvrtc->compile = dlsym(library, "nvrtcCompileProgram");
    nvrtc->cubin_size = dlsym(library, "nvrtcGetCUBINSize");
    nvrtc->cubin = dlsym(library, "nvrtcGetCUBIN");
    nvrtc->ptx_size = dlsym(library, "nvrtcGetPTXSize");
    nvrtc->ptx = dlsym(library, "nvrtcGetPTX");
    return nvrtc->create && nvrtc->destroy && nvrtc->compile && nvrtc->cubin_size && nvrtc->cubin && nvrtc->ptx_size &&
           nvrtc->ptx;
}

/* NVRTC counts the PTX's closing zero. Without a cubin (a virtual architecture) there is nothing to add to. */
static nvrtcResult sizes(const struct nvrtc *nvrtc, nvrtcProgram program, size_t *cubin, size_t *ptx) {
    *ptx = 0;
    nvrtcResult result = nvrtc->cubin_size(program, cubin);
    if (result == NVRTC_SUCCESS && *cubin && observed_ptx_size(nvrtc, program, ptx) != NVRTC_SUCCESS) *ptx = 0;
    if (*ptx) --*ptx;
    return result;
}

nvrtcResult cubin_size_with_ptx(const struct nvrtc *nvrtc, nvrtcProgram program, size_t *size) {
    size_t cubin, ptx;
    if (!size) return NVRTC_ERROR_INVALID_INPUT;
    nvrtcResult result = sizes(nvrtc, program, &cubin, &ptx);
    if (result == NVRTC_SUCCESS) *size = ptx ? cubin + ptx + PTX_FRAME_SIZE : cubin;
    return result;
}

nvrtcResult cubin_with_ptx(const struct nvrtc *nvrtc, nvrtcProgram program, char *target) {
    size_t cubin, ptx;
    if (!target) return NVRTC_ERROR_INVALID_INPUT;
    nvrtcResult result = sizes(nvrtc, program, &cubin, &ptx);
    if (result == NVRTC_SUCCESS) result = nvrtc->cubin(program, target);
    if (result != NVRTC_SUCCESS || !ptx) return result;
    char *text = malloc(ptx + 1);
    if (!text) return NVRTC_ERROR_OUT_OF_MEMORY;
    result = observed_ptx(nvrtc, program, text);
    if (result == NVRTC_SUCCESS) write_ptx_frame(target + cubin, text, ptx);
    free(text);
    return result;
}
