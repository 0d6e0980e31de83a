/* Programs of NVRTC whose kernels will be observed line by line (observed.c). Where that is not wanted, these
 * functions are those of the library, but for lines in what is compiled. */
#ifndef CUPOLA_CPU_DRIVER_OBSERVED_H
#define CUPOLA_CPU_DRIVER_OBSERVED_H

#include "keep_ptx.h"

/* Keep the text of a program that NVRTC does not get, since its code is in a cache. */
void observed_keep(const char *name, const char *text);

/* The text of a program or header by its name, and by the program's digest, unless that is empty; without a name the
 * program's. NULL: it is not known, or there are several of the name. To be freed. */
char *observed_text(const char *name, const char *digest);
nvrtcResult observed_create(const struct nvrtc *nvrtc, nvrtcProgram *program, const char *text, const char *name,
                            int count, const char *const *headers, const char *const *names);
nvrtcResult observed_destroy(const struct nvrtc *nvrtc, nvrtcProgram *program);
nvrtcResult observed_compile(const struct nvrtc *nvrtc, nvrtcProgram program, int count, const char *const *options);
nvrtcResult observed_ptx_size(const struct nvrtc *nvrtc, nvrtcProgram program, size_t *size);
nvrtcResult observed_ptx(const struct nvrtc *nvrtc, nvrtcProgram program, char *target);

#endif
