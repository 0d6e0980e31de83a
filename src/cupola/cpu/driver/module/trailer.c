/* PTX behind cubins (image.h), for those who make cubins: NVRTC and nvJitLink. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "image.h"

struct search {
    const char *prefix, *path;
};

static int match(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name;
    if (strncmp(name, search->prefix, strlen(search->prefix))) return 0;
    search->path = info->dlpi_name;
    return 1;
}

void *loaded_library(const char *prefix) {
    struct search search = {prefix, NULL};
    dl_iterate_phdr(match, &search);
    return search.path ? dlopen(search.path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
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
