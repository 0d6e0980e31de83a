/* The library that the arithmetic is left to. */
#include <dlfcn.h>
#include <stdio.h>

#include "fft.h"

transform_run *fft_transform;
unsigned fft_threads = 1;

bool fft_load(const char *path, int threads, char *problem, size_t size) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    transform_run *found = NULL;
    if (library) *(void **)&found = dlsym(library, "cupola_transform");
    if (!found) {
        const char *text = dlerror();
        snprintf(problem, size, "%s", text ? text : path);
        return false;
    }
    fft_threads = threads > 0 ? (unsigned)threads : 1;
    fft_transform = found;
    return true;
}
