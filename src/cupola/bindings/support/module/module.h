/* The module itself: its names, the frame of every call, and its exceptions. */
#ifndef CUPOLA_SUPPORT_MODULE_H
#define CUPOLA_SUPPORT_MODULE_H

#include "arguments/arguments.h"

/* ---- calls (calls.c) ---- */

#define CALL_PARAMETERS PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names

/* Puts positional and keyword arguments in order; `required` of `count` must be there, the others become
 * NULL. `keywords` are texts. */
COLD int bind_arguments(const char *function, const char *keywords, int count, int required, PyObject *const *args,
                        Py_ssize_t nargs, PyObject *names, PyObject **bound);
COLD PyObject *failed(long long status, int outputs);
extern PyObject *succeeded_alone; /* the 1-tuple of success */
COLD PyObject *succeeded_slow(void);
static inline PyObject *succeeded(void) {
    PyObject *alone = PUBLISHED(succeeded_alone);
    return LIKELY(alone != NULL) ? Py_NewRef(alone) : succeeded_slow();
}
/* The tuple of a status and `count` new references, any of which may be NULL with an exception set. */
PyObject *result_tuple(long long status, PyObject **outputs, int count);
/* The same of success and one output. */
PyObject *result_pair(PyObject *output);

/* ---- exceptions (errors.c) ---- */

PyObject *error_class(const char *name);  /* new reference; NULL without an exception when there is none */
PyObject *raise_status(long long status); /* returns NULL, like the next ones */
PyObject *raise_cuda_status(long long status, int cuda_error);
PyObject *raise_negative(long long result); /* -1: OSError for errno, else the negated status */
extern PyMethodDef status_methods[], description_methods[];
void add_note(const char *text);               /* to the exception that is set */
PyObject *pack(PyObject **outputs, int count); /* a tuple of new references, any of which may be NULL */

/* ---- the module (module.c) ---- */

int module_exec(PyObject *module);
COLD void module_settle(void); /* of modules without exceptions of their own: make every name */

#endif
