/* Cubins of NVRTC with their PTX behind them (image.h). */
#ifndef CUPOLA_CPU_DRIVER_KEEP_PTX_H
#define CUPOLA_CPU_DRIVER_KEEP_PTX_H

#include <stdbool.h>
#include <stddef.h>

#include <cupola/nvrtc.h>

/* The functions of a library of NVRTC that it takes. */
struct nvrtc {
    nvrtcResult (*create)(nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *);
    nvrtcResult (*destroy)(nvrtcProgram *);
    nvrtcResult (*compile)(nvrtcProgram, int, const char *const *);
    nvrtcResult (*cubin_size)(nvrtcProgram, size_t *);
    nvrtcResult (*cubin)(nvrtcProgram, char *);
    nvrtcResult (*ptx_size)(nvrtcProgram, size_t *);
    nvrtcResult (*ptx)(nvrtcProgram, char *);
};

bool find_nvrtc(struct nvrtc *nvrtc, void *library); /* from dlopen() */

/* nvrtcGetCUBINSize and nvrtcGetCUBIN. */
nvrtcResult cubin_size_with_ptx(const struct nvrtc *nvrtc, nvrtcProgram program, size_t *size);
nvrtcResult cubin_with_ptx(const struct nvrtc *nvrtc, nvrtcProgram program, char *target);

#endif
