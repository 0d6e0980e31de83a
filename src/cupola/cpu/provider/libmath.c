/* A math library, such as libcublas.so.13, for programs that load NVIDIA's themselves or are linked with it: its functions
 * are jumps to the CPU device's.
 *
 * The build makes one file of each name (LIBRARY, and SYMBOLS, which the generator of the bindings writes). The symbols
 * have the name of the file as their version, as NVIDIA's have (libmath.map.in). */
#include <stdint.h>
#include <stdio.h>

#include "connect.h"

#define SYMBOL(name)
#include SYMBOLS
#undef SYMBOL

static int absent(void) { return ABSENT; }

static void *find_function(const char *symbol) {
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
