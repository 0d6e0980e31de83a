/* Programs of NVRTC whose kernels will be observed line by line (observed.c). Where that is not wanted, these
 * functions are those of the library, but for lines in what is compiled. */
#ifndef CUPOLA_CPU_DRIVER_OBSERVED_H
#define CUPOLA_CPU_DRIVER_OBSERVED_H

#include "keep_ptx.h"

bool is_observed(void);
const char *observed_text(const char *name); /* of a program, while kernels are checked; NULL: not known */
nvrtcResult observed_create(const struct nvrtc *nvrtc, nvrtcProgram *program, const char *text, const char *name,
                            int count, const char *const *headers, const char *const *names);
nvrtcResult observed_destroy(const struct nvrtc *nvrtc, nvrtcProgram *program);
nvrtcResult observed_compile(const struct nvrtc *nvrtc, nvrtcProgram program, int count, const char *const *options);
nvrtcResult observed_ptx_size(const struct nvrtc *nvrtc, nvrtcProgram program, size_t *size);
nvrtcResult observed_ptx(const struct nvrtc *nvrtc, nvrtcProgram program, char *target);

#endif
