/* PTX behind cubins (image.h), for those who make cubins: NVRTC and nvJitLink. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

enum { MOST_COPIES = 8 };

struct search {
    const char *prefix;
    unsigned count;
    char *paths[MOST_COPIES];
};

static int match(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name;
    if (strncmp(name, search->prefix, strlen(search->prefix))) return 0;
    if ((search->paths[search->count] = strdup(info->dlpi_name))) search->count++;
    return search->count == MOST_COPIES;
}

/* What the bindings have opened. */
static struct {
    const char *name, *prefix;
    _Atomic(void *) library;
} of_bindings[] = {{"nvrtc", "libnvrtc.so", NULL}, {"nvJitLink", "libnvJitLink.so", NULL}};

void library_of_bindings(const char *name, void *library) {
    for (size_t i = 0; i < sizeof of_bindings / sizeof *of_bindings; i++)
        if (!strcmp(name, of_bindings[i].name)) atomic_store(&of_bindings[i].library, library);
}

void *loaded_library(const char *prefix) {
    for (size_t i = 0; i < sizeof of_bindings / sizeof *of_bindings; i++) {
        void *library = strcmp(prefix, of_bindings[i].prefix) ? NULL : atomic_load(&of_bindings[i].library);
        if (library) return library;
    }
    struct search search = {.prefix = prefix};
    void *found = NULL;
    dl_iterate_phdr(match, &search);
    for (unsigned i = 0; i < search.count; i++) {
        void *library = found ? NULL : dlopen(search.paths[i], RTLD_NOLOAD | RTLD_LAZY);
        if (library && !dlsym(library, "cupola_keeps_ptx")) found = library;
        else if (library) dlclose(library);
        free(search.paths[i]);
    }
    return found;
}

void write_ptx_frame(char *target, const char *ptx, size_t size) {
    uint64_t length = size;
    memcpy(target, PTX_MAGIC, PTX_MAGIC_SIZE);
    memcpy(target + PTX_MAGIC_SIZE, &length, sizeof length);
    target += PTX_FRAME_SIZE / 2;
    memmove(target, ptx, size);
    memcpy(target + size, &length, sizeof length);
    memcpy(target + size + sizeof length, PTX_MAGIC, PTX_MAGIC_SIZE);
}
