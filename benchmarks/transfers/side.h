/* What the C sides have in common. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A mistake ends the job: the other ranks would wait for ever. */
#define TRY(call)                                                                       \
    do {                                                                                \
        int try_status = (int)(call);                                                   \
        if (try_status) {                                                               \
            fprintf(stderr, "%s:%d: status %d\n", __FILE__, __LINE__, try_status);      \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

/* A function of the driver that is used, which is not linked with: NAME, and find_NAME(library). */
#define DRIVER(name, symbol, ...) ENTRY(CUresult, name, symbol, __VA_ARGS__)
#define ENTRY(result, name, symbol, ...)                                               \
    static result (*name)(__VA_ARGS__);                                                 \
    static void find_##name(void *library) {                                            \
        void *found = library ? dlsym(library, symbol) : NULL;                          \
        if (!found) {                                                                   \
            fprintf(stderr, "no %s in the library\n", symbol);                          \
            exit(1);                                                                    \
        }                                                                               \
        *(void **)&name = found;                                                        \
    }

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
