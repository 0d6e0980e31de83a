/* Finding the library of NVIDIA that stands behind one of the CPU device's: the one that the dynamic linker would have
 * given to the program, in the folders that come after this library's, or else one that `cupola run` has found. */
#define _GNU_SOURCE
#include "provider/compilers/real.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static bool is_own(const char *path) {
    Dl_info own;
    char here[PATH_MAX], there[PATH_MAX];
    return dladdr(&cupola_keeps_ptx, &own) && realpath(own.dli_fname, here) && realpath(path, there) &&
           !strcmp(here, there);
}

/* A library of another CUDA has another name, and one that is like this one has the mark. */
static void *open_real(const char *path) {
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name + 1, real.name, strlen(real.name)) || is_own(path)) return NULL;
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!opened || !dlsym(opened, "cupola_keeps_ptx")) return opened;
    dlclose(opened);
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
            int length = snprintf(path, sizeof path, "%s/%s", folders->dls_serpath[i].dls_name, real.name);
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
    library = search_folders() ?: search_copies(real.copies());
    if (!library)
        fprintf(stderr, "cupola: %s is not installed: pip install %s, or put its folder into LD_LIBRARY_PATH\n",
                real.name, real.wheel);
}

void *real_library(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_real);
    return library;
}

void *in_real(const char *symbol) {
    void *found = real_library();
    return found ? dlsym(found, symbol) : NULL;
}
