/* Compiled modules add no frames to tracebacks: there is no source to show for them, and they would push the program's own
 * line away from the end. CUPOLA_TRACEBACK=full has them added, for reports of bugs. Every module that Cython makes includes
 * this first (`compiled` in meson.build). Errors then may have no traceback at all until they reach Python. Cython expects
 * that, with two exceptions that the modules do without (tests/test_layers.py): the `with` of Python, which passes the
 * traceback to __exit__, and `return` within `except`, which drops it. */
#ifndef CUPOLA_CORE_FRAMES_H
#define CUPOLA_CORE_FRAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

static inline int cupola_add_frame(PyFrameObject *frame) {
    static int asked = -1; /* by all threads with the same result */
    int full = __atomic_load_n(&asked, __ATOMIC_RELAXED);
    if (full < 0) {
        const char *setting = getenv("CUPOLA_TRACEBACK");
        full = setting && strcmp(setting, "full") == 0;
        __atomic_store_n(&asked, full, __ATOMIC_RELAXED);
    }
    return full ? PyTraceBack_Here(frame) : 0;
}

#define PyTraceBack_Here cupola_add_frame

#endif
