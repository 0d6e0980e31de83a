/* The calls of bindings_side.py from C: functions of the type that `call` has, through pointers from `lookup`. Each is repeated n times;
 * the result is nanoseconds per repetition. All arguments are integers or pointers, which C passes alike. */
#include <stdint.h>
#include <time.h>

typedef int (*Call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                    uint64_t);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

double measure(int n, Call call, const uint64_t *a) {
    double start = now();
    for (int i = 0; i < n; i++) call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    return (now() - start) / n;
}

/* An allocation and its release. */
double measure_pair(int n, Call first, const uint64_t *a, Call second, uint64_t stream) {
    double start = now();
    for (int i = 0; i < n; i++) {
        first(a[0], a[1], a[2], 0, 0, 0, 0, 0, 0, 0, 0);
        second(*(uint64_t *)a[0], stream, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
    return (now() - start) / n;
}

/* A driver that does nothing: what remains is the cost of the call. */
static int nothing(void) { return 0; }
void *lookup_nothing(const char *symbol) {
    (void)symbol;
    return (void *)nothing;
}
