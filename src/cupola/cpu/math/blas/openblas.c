/* The libraries that the arithmetic is left to: OpenBLAS, BLAS and LAPACK as C and Fortran know them. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "blas.h"

struct blas_routines openblas;
static void *opened;
static int most_threads = 1;

/* The routine for one type; blas.h tells how the names are written. Reductions to complex numbers are those of CBLAS,
 * whose results are no matter of Fortran's calling conventions. */
static void *routine(void *library, enum element type, const char *names) {
    const char *bar = strchr(names, '|'), *name = bar && is_complex(type) ? bar + 1 : names;
    int length = name == names && bar ? (int)(bar - names) : (int)strlen(name);
    const char letter = "sdcz"[type], real = "sdsd"[type];
    char word[32], symbol[64];
    if (*name == '%') snprintf(word, sizeof word, "%c%c%s", letter, real, name + 1); /* csrot */
    else if (is_complex(type) && (!strcmp(names, "nrm2") || !strcmp(names, "asum")))
        snprintf(word, sizeof word, "%c%c%s", real, letter, name); /* scnrm2 */
    else snprintf(word, sizeof word, "%c%.*s", letter, length, name);
    bool is_c = strstr(word, "_sub");
    snprintf(symbol, sizeof symbol, is_c ? "scipy_cblas_%s64_" : "scipy_%s_64_", word);
    return dlsym(library, symbol);
}

bool math_load(const char *path, int threads, char *problem, size_t size) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool loaded;
    pthread_mutex_lock(&lock);
    void *library = loaded ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loaded && !library) snprintf(problem, size, "%s", dlerror());
    if (library) {
        struct blas_routines found;
        const char *missing = NULL;
#define FIND(name, symbols)                                                                                          \
    for (enum element type = S; type <= Z; type++)                                                                   \
        if (!(*(void **)&found.name[type] = routine(library, type, symbols))) missing = #name;
        BLAS_ROUTINES(FIND)
        void (*set_threads)(int);
        *(void **)&set_threads = dlsym(library, "scipy_openblas_set_num_threads64_");
        if (missing) snprintf(problem, size, "%s has no routine %s", path, missing);
        else {
            if (set_threads) set_threads(threads);
            openblas = found;
            opened = library;
            most_threads = threads;
            loaded = true;
        }
    }
    bool result = loaded;
    pthread_mutex_unlock(&lock);
    return result;
}

void *math_symbol(const char *symbol) { return opened ? dlsym(opened, symbol) : NULL; }

int math_threads(void) { return most_threads; }
