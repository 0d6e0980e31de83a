/* Reach the emulated driver from a library that a program of any language has loaded.
 *
 * The driver is a module of Python, and so is its compiler. In a process of Python this imports it. In any other
 * process it first loads libpython and starts an interpreter, the one that `cupola run` names in the environment:
 * without signal handlers, and leaving the program's locale and standard streams alone. The interpreter lives as long
 * as the process; no thread holds its lock but while it compiles. Everything of Python is looked up by name, because
 * these libraries are loaded before libpython is. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "connect.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name of the driver's capsule (python.c). */
#define CAPSULE "cupola.cpu._driver.programs"

static _Atomic(const struct cpu_programs *) programs;
static atomic_bool starting; /* the interpreter is, or will be, one that this library starts */
static atomic_bool refused;  /* the driver does not load into the interpreter that is there */

static void complain(const char *what, const char *why) {
    fprintf(stderr, "cupola: the CPU device cannot be used: %s%s%s\n", what, why ? ": " : "", why ? why : "");
}

/* A function of Python under its own name and type, as a local variable. */
#define FIND(name)                                                    \
    typeof(&name) find_##name = (typeof(&name))dlsym(RTLD_DEFAULT, #name); \
    if (!find_##name) return complain("libpython lacks " #name, NULL), false

static bool failed(PyStatus status) {
    if (!status._type) return false;
    complain("Python does not start", status.err_msg);
    return true;
}

static bool start_python(void) {
    const char *library = getenv("CUPOLA_LIBPYTHON"), *executable = getenv("CUPOLA_PYTHON");
    if (!library || !*library || !executable || !*executable)
        return complain("start this program with `cupola run`, which tells it where Python is", NULL), false;
    if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL)) return complain("libpython does not load", dlerror()), false;
    FIND(Py_GetVersion);
    FIND(PyPreConfig_InitPythonConfig);
    FIND(Py_PreInitialize);
    FIND(PyConfig_InitPythonConfig);
    FIND(PyConfig_SetBytesString);
    FIND(PyConfig_Clear);
    FIND(Py_InitializeFromConfig);
    FIND(PyEval_SaveThread);
    if (strncmp(find_Py_GetVersion(), PY_VERSION, (size_t)(strrchr(PY_VERSION, '.') - PY_VERSION)))
        return complain("CUPOLA_LIBPYTHON is another version of Python than " PY_VERSION, find_Py_GetVersion()), false;

    PyPreConfig before;
    find_PyPreConfig_InitPythonConfig(&before);
    before.configure_locale = before.coerce_c_locale = before.coerce_c_locale_warn = 0;
    before.parse_argv = 0;
    before.utf8_mode = 1;
    if (failed(find_Py_PreInitialize(&before))) return false;

    PyConfig config;
    find_PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = config.parse_argv = config.configure_c_stdio = 0;
    PyStatus status = find_PyConfig_SetBytesString(&config, &config.program_name, executable);
    if (!status._type) status = find_PyConfig_SetBytesString(&config, &config.executable, executable);
    if (!status._type) status = find_Py_InitializeFromConfig(&config);
    bool fine = !failed(status);
    find_PyConfig_Clear(&config);
    if (fine) find_PyEval_SaveThread();
    return fine;
}

/* Whether the Python of this process has cupola, which need not be the one of `cupola run`. */
static bool has_cupola(void) {
    FIND(PyImport_ImportModule);
    FIND(PyObject_CallMethod);
    FIND(PySys_GetObject);
    FIND(PyUnicode_AsUTF8);
    FIND(PyErr_Clear);
    FIND(Py_GetVersion);
    const void *none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    PyObject *finder = find_PyImport_ImportModule("importlib.util");
    PyObject *spec = finder ? find_PyObject_CallMethod(finder, "find_spec", "s", "cupola") : NULL;
    find_PyErr_Clear();
    if (!spec || spec != none) return true; /* the import says what is wrong, if something is */
    const char *version = find_Py_GetVersion(), *wanted = getenv("CUPOLA_PYTHON");
    PyObject *executable = find_PySys_GetObject("executable");
    const char *path = executable ? find_PyUnicode_AsUTF8(executable) : NULL;
    char text[1024];
    snprintf(text, sizeof text, "%s (Python %.*s) has no cupola: install it there, or run the program with %s",
             path ? path : "the Python of this process", (int)strcspn(version, " "), version,
             wanted && *wanted ? wanted : "a Python that has it");
    complain(text, NULL);
    return false;
}

static bool find_programs(bool started) {
    FIND(PyGILState_Ensure);
    FIND(PyGILState_Release);
    FIND(PyImport_ImportModule);
    FIND(PyObject_CallMethod);
    FIND(PyCapsule_GetPointer);
    FIND(PyErr_Print);
    PyGILState_STATE gil = find_PyGILState_Ensure();
    if (!has_cupola()) {
        find_PyGILState_Release(gil);
        return false;
    }
    /* References are kept: the module stays for as long as the process, too. */
    PyObject *module = find_PyImport_ImportModule("cupola.cpu.programs");
    PyObject *capsule = module ? find_PyObject_CallMethod(module, "connect", "i", (int)started) : NULL;
    const struct cpu_programs *found = capsule ? find_PyCapsule_GetPointer(capsule, CAPSULE) : NULL;
    if (found) atomic_store(&programs, found);
    else {
        complain("its driver does not load", NULL);
        find_PyErr_Print();
    }
    find_PyGILState_Release(gil);
    return found;
}

static bool has_python(void) {
    typeof(&Py_IsInitialized) is_initialized = (typeof(&Py_IsInitialized))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    return is_initialized && is_initialized();
}

static void start_once(void) {
    atomic_store(&starting, true); /* before has_python() becomes true by it */
    if (start_python()) find_programs(true);
}

/* In a process of Python, threads that call with Python's lock must not wait here for one that needs the lock, so each
 * imports the driver by itself: the import is done once all the same. */
const struct cpu_programs *connect_driver(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct cpu_programs *known = atomic_load(&programs);
    if (known || atomic_load(&refused)) return known;
    if (!has_python() || atomic_load(&starting)) pthread_once(&once, start_once);
    else if (!find_programs(false)) atomic_store(&refused, true);
    return atomic_load(&programs);
}
