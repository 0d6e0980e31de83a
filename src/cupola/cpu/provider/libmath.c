/* A math library, such as libcublas.so.13, for programs that load NVIDIA's themselves or are linked with it: its functions
 * are jumps to the CPU device's.
 *
 * The build makes one file of each name (LIBRARY, and SYMBOLS, which the generator of the bindings writes). The symbols
 * have the name of the file as their version, as NVIDIA's have (libmath.map.in); NCCL's have second names, too. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "connect.h"

#define SYMBOL(name)
#include SYMBOLS
#undef SYMBOL

static int absent(void) { return ABSENT; }

#ifdef VERSION_0_8
/* libcudss.so.0: cuDSS 1.0 has the same functions with the same numbers, and more of both. Programs ask which it is. */
static int get_property(int part, int *value) {
    static const int parts[] = {0, 8, 0};
    if ((unsigned)part > 2 || !value) return 3; /* CUDSS_STATUS_INVALID_VALUE */
    *value = parts[part];
    return 0;
}
#endif

static void *find_function(const char *symbol) {
#ifdef VERSION_0_8
    if (!strcmp(symbol, "cudssGetProperty")) return (void *)(uintptr_t)get_property;
#endif
#ifdef ALSO /* a second name, with that in front, for the same */
    if (!strncmp(symbol, ALSO LIBRARY, sizeof ALSO LIBRARY - 1)) symbol += sizeof ALSO - 1;
#endif
    const struct cpu_programs *programs = connect_driver();
    if (programs) programs->explain_errors(); /* the program gets no exception that tells */
    void *function = programs ? programs->math(LIBRARY, symbol) : NULL;
    if (function) return function;
    char text[256];
    snprintf(text, sizeof text, "the CPU device does not emulate %s: it returns " ABSENT_NAME, symbol);
    if (programs) programs->say(text);
    return (void *)(uintptr_t)absent;
}

#include "jumps.h"
