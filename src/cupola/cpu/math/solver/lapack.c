/* LAPACK, whose routines the arithmetic is left to: its C interface in OpenBLAS. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "solver.h"

struct lapack_routines lapack;

static const char *missing;

static void *routine(enum element type, const char *names) {
    const char *bar = strchr(names, '|'), *name = bar && is_complex(type) ? bar + 1 : names;
    int length = name == names && bar ? (int)(bar - names) : (int)strlen(name);
    char symbol[64];
    snprintf(symbol, sizeof symbol, "scipy_LAPACKE_%c%.*s64_", "sdcz"[type], length, name);
    return math_symbol(symbol);
}

static void load(void) {
    struct lapack_routines found;
#define FIND(name, symbols)                                                                       \
    for (enum element type = S; type <= Z; type++)                                                \
        if (!(*(void **)&found.name[type] = routine(type, symbols))) missing = #name;
    LAPACK_ROUTINES(FIND)
    void (*set_checks)(int);
    *(void **)&set_checks = math_symbol("scipy_LAPACKE_set_nancheck64_");
    if (missing) return;
    if (set_checks) set_checks(0); /* what is not a number runs through, as on a GPU */
    lapack = found;
}

bool lapack_load(const char **problem) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    *problem = missing;
    return !missing;
}
