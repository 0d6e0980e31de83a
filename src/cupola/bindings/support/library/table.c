/* Filling the function table: which provider, which symbol, and what happens when there is none.
 *
 * `cupola.bindings._provider` decides in Python which provider is used; here symbols are looked up. The
 * driver of one CUDA version serves callers made for another, so a symbol is tried in this order: the exact
 * versioned name; cuGetProcAddress with the version that brought it (CUDA Driver API, section 6.35), but only
 * when the driver is at least that new, since it answers with an older signature otherwise; an older name of
 * the same signature. */
#include "library/library.h"

#include <dlfcn.h>

typedef void *(*LookupFunction)(const char *symbol);
typedef size_t (*ExplainFunction)(int status, char *text, size_t size);
typedef int (*GetProcAddress)(const char *symbol, void **function, int version, uint64_t flags, int *found);
typedef int (*GetVersion)(int *version);

/* Set once, before `chosen`. */
static struct {
    void *library;
    LookupFunction lookup;
    ExplainFunction explain;
    char *name;
    bool per_thread;
    int version; /* of the library, where cuGetProcAddress needs it */
    GetProcAddress get_proc_address;
} provider;
static int chosen;
static Lock choosing;

/* What this thread's last failing call left to be raised. */
static _Thread_local struct {
    int missing; /* index of a function + 1 */
    PyObject *exception;
} pending;

/* The texts of a function, NULL for nothing. */
typedef struct {
    const char *name, *symbol, *thread_symbol, *aliases, *base, *older;
} Names;

static Names names_of(const FunctionInfo *info) {
    const char *names[6] = {info->texts};
    for (int i = 1; i < 6; i++) names[i] = text_after(names[i - 1]);
    for (int i = 1; i < 6; i++)
        if (!*names[i]) names[i] = NULL;
        else if (!strcmp(names[i], "=")) names[i] = info->texts;
    return (Names){names[0], names[1], names[2], names[3], names[4], names[5]};
}

/* What nobody raised is forgotten when the thread resolves its next function, with or without the GIL. */
static void forget_pending(void) {
    pending.missing = 0;
    if (LIKELY(!pending.exception)) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_CLEAR(pending.exception);
    PyGILState_Release(state);
}

static void *find_versioned(const FunctionInfo *info, const Names *names) {
    if (!provider.get_proc_address || !names->base || !info->since || provider.version < info->since) return NULL;
    void *function = NULL;
    int found = 0;
    uint64_t flags =
        provider.per_thread && names->thread_symbol ? 2 : 0; /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
    return provider.get_proc_address(names->base, &function, info->since, flags, &found) == 0 ? function : NULL;
}

/* The first of several names, separated by spaces, that the library has. */
static void *find_listed(const Names *names, const char *listed) {
    const char *start = listed;
    const char *suffix = provider.per_thread && names->thread_symbol ? strrchr(names->thread_symbol, '_') : "";
    while (start && *start) {
        size_t length = strcspn(start, " ");
        char name[128];
        snprintf(name, sizeof name, "%.*s%s", (int)length, start, suffix);
        void *function = dlsym(provider.library, name);
        if (!function) {
            name[length] = 0;
            function = dlsym(provider.library, name);
        }
        if (function) return function;
        start += length + (start[length] == ' ');
    }
    return NULL;
}

/* The exception that is set becomes what this thread's failing call leaves. */
static void keep_exception(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    Py_XSETREF(pending.exception, value);
    Py_XDECREF(type), Py_XDECREF(traceback);
}

/* The CPU device wraps some functions of other libraries: it is asked for them first, when it is what runs
 * kernels. */
static int find_override(const char *symbol, void **function) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *module = PyImport_ImportModule("cupola.bindings._provider");
    PyObject *capsule = module ? PyObject_CallMethod(module, "override_lookup", "s", symbol) : NULL;
    LookupFunction lookup = NULL;
    if (capsule && capsule != Py_None) *(void **)&lookup = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    int status = PyErr_Occurred() ? -1 : 0;
    if (status < 0) keep_exception();
    Py_XDECREF(capsule), Py_XDECREF(module);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
    *function = lookup ? lookup(symbol) : NULL;
    if (*function && provider.library) {
        /* The process may have loaded several versions of the library, and objects of one are nothing to another. */
        void (*tell)(const char *, void *);
        *(void **)&tell = lookup("cupolaLibraryOfBindings");
        if (tell) tell(module_info.library, provider.library);
    }
    return status;
}

static bool is_older(void) { return provider.version && provider.version < module_info.version / 1000 * 1000; }

static void *find_adapter(const FunctionInfo *info, const Names *names) {
    for (const Adapter *adapter = module_info.adapters; adapter->symbol; adapter++) {
        if (&module_info.functions[adapter->index] != info) continue;
        void *target = find_listed(names, adapter->symbol);
        if (!target) return NULL;
        __atomic_store_n(adapter->target, target, __ATOMIC_RELEASE);
        return (void *)adapter->adapter;
    }
    return NULL;
}

static void *find(const FunctionInfo *info) {
    Names names = names_of(info);
    const char *symbol = provider.per_thread && names.thread_symbol ? names.thread_symbol : names.symbol;
    void *function = NULL;
    if (info->wrapped && find_override(names.symbol, &function) < 0) return NULL;
    if (!function && provider.lookup) {
        function = provider.lookup(symbol);
        if (!function && symbol != names.symbol) function = provider.lookup(names.symbol);
        if (!function && names.symbol != names.name) function = provider.lookup(names.name);
    }
    if (function || !provider.library) return function;
    if (info->replaced && is_older()) {
        function = find_listed(&names, names.older);
    } else {
        function = dlsym(provider.library, symbol);
        if (!function) function = find_versioned(info, &names);
        if (!function) function = find_listed(&names, names.aliases);
    }
    return function ? function : find_adapter(info, &names);
}

/* ---- choosing, with the GIL held ---- */

static void adopt_library(void *library) {
    provider.library = library;
    GetVersion get_version;
    *(void **)&get_version = dlsym(library, "cuDriverGetVersion");
    if (get_version && get_version(&provider.version) == 0) {
        *(void **)&provider.get_proc_address = dlsym(library, "cuGetProcAddress_v2");
        return;
    }
    *(void **)&get_version = dlsym(library, "cudaRuntimeGetVersion");
    if (get_version) get_version(&provider.version);
}

static int adopt(PyObject *choice) {
    const char *name;
    PyObject *library, *lookup, *explain;
    int per_thread;
    if (!PyArg_ParseTuple(choice, "sOOOp", &name, &library, &lookup, &explain, &per_thread)) return -1;
    provider.name = strdup(name);
    provider.per_thread = per_thread;
    if (library != Py_None) {
        void *handle = PyLong_AsVoidPtr(library);
        if (!handle) return -1;
        adopt_library(handle);
    }
    if (lookup != Py_None && !(*(void **)&provider.lookup = PyCapsule_GetPointer(lookup, PyCapsule_GetName(lookup))))
        return -1;
    if (explain != Py_None &&
        !(*(void **)&provider.explain = PyCapsule_GetPointer(explain, PyCapsule_GetName(explain))))
        return -1;
    __atomic_store_n(&chosen, 1, __ATOMIC_RELEASE);
    return 0;
}

/* Asks cupola.bindings._provider.provide(library); keeps an exception of the caller's aside. */
static int choose(void) {
    if (__atomic_load_n(&chosen, __ATOMIC_ACQUIRE)) return 0;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int status = 0;
    PyObject *module = PyImport_ImportModule("cupola.bindings._provider");
    PyObject *choice = module ? PyObject_CallMethod(module, "provide", "s", module_info.library) : NULL;
    LOCK(&choosing);                                   /* adopt() runs no Python code */
    if (!chosen) status = choice ? adopt(choice) : -1; /* another thread may have been here while Python code ran */
    UNLOCK(&choosing);
    if (status < 0) keep_exception();
    else PyErr_Clear(); /* the other thread's choice counts */
    Py_XDECREF(choice), Py_XDECREF(module);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
    return status;
}

bool table_is_older(void) {
    if (choose() < 0) forget_pending(); /* no library: the newest layout */
    return is_older();
}

void *table_resolve(int index) {
    forget_pending();
    if (choose() < 0) return NULL;
    void *function = find(&module_info.functions[index]);
    if (function) __atomic_store_n(&module_info.slots[index], function, __ATOMIC_RELEASE);
    else if (!pending.exception) pending.missing = index + 1;
    return function;
}

/* ---- the table's head ---- */

static const char *table_provider(void) { return __atomic_load_n(&chosen, __ATOMIC_ACQUIRE) ? provider.name : NULL; }

int table_raise_pending(void) {
    if (UNLIKELY(PyErr_Occurred())) return -1; /* a signal's handler raised it while the CPU device waited */
    if (LIKELY(!pending.missing && !pending.exception)) return 0;
    PyObject *exception = pending.exception;
    int missing = pending.missing;
    pending.exception = NULL;
    pending.missing = 0;
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
        return -1;
    }
    const FunctionInfo *info = &module_info.functions[missing - 1];
    PyObject *module = PyImport_ImportModule("cupola.bindings._provider");
    PyObject *error =
        module ? PyObject_CallMethod(module, "missing_function", "sssiiii", info->texts, module_info.library,
                                     provider.name, provider.version, info->since, info->only, module_info.version)
               : NULL;
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error), Py_XDECREF(module);
    return -1;
}

static size_t table_explain(int status, char *text, size_t size) {
    return table_provider() && provider.explain ? provider.explain(status, text, size) : 0;
}

/* ---- for _provider.py, which must not import ctypes ---- */

static PyObject *open_library(PyObject *module, PyObject *path) {
    (void)module;
    const char *text = PyUnicode_AsUTF8(path);
    if (!text) return NULL;
    void *library = dlopen(text, RTLD_NOW | RTLD_LOCAL);
    if (!library) return PyErr_Format(PyExc_OSError, "%s", dlerror());
    Dl_info where;
    void *symbol = dlsym(library, "cuInit");
    bool known = symbol && dladdr(symbol, &where) && where.dli_fname;
    return Py_BuildValue("(Ns)", PyLong_FromVoidPtr(library), known ? where.dli_fname : text);
}

static PyObject *count_devices(PyObject *module, PyObject *library) {
    (void)module;
    void *handle = PyLong_AsVoidPtr(library);
    if (!handle) return NULL;
    bool manages = !dlsym(handle, "cuInit"); /* NVML, then, which is left as it was */
    int (*initialise)(unsigned), (*count)(int *), (*finish)(void);
    *(void **)&initialise = dlsym(handle, manages ? "nvmlInitWithFlags" : "cuInit");
    *(void **)&count = dlsym(handle, manages ? "nvmlDeviceGetCount_v2" : "cuDeviceGetCount");
    *(void **)&finish = manages ? dlsym(handle, "nvmlShutdown") : NULL;
    int status = -1, devices = 0;
    Py_BEGIN_ALLOW_THREADS
    if (initialise && count) status = initialise(0);
    if (status == 0) {
        status = count(&devices);
        if (finish) finish();
    }
    Py_END_ALLOW_THREADS
    return Py_BuildValue("(ii)", status, devices);
}

static PyObject *name_provider(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    const char *name = table_provider();
    if (!name) Py_RETURN_NONE;
    return PyUnicode_FromString(name);
}

/* ---- what there is ---- */

/* The version of CUDA that the CPU device emulates. */
static int emulated_version(void) {
    bool runtime = !strcmp(module_info.library, "cudart");
    GetVersion get_version = NULL;
    if (provider.lookup)
        *(void **)&get_version = provider.lookup(runtime ? "cudaRuntimeGetVersion" : "cuDriverGetVersion");
    int version = 0;
    return get_version && get_version(&version) == 0 ? version : 0;
}

static PyObject *list_functions(void) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < module_info.function_count; i++) {
        const FunctionInfo *info = &module_info.functions[i];
        forget_pending();
        bool there = find(info) != NULL;
        if (pending.exception) {
            table_raise_pending();
            Py_CLEAR(list);
            break;
        }
        PyObject *item = Py_BuildValue("(ssOii)", module_info.generated[i].ml_name, names_of(info).symbol,
                                       there ? Py_True : Py_False, info->since, info->only);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *inspect(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    forget_pending();
    if (choose() < 0) {
        table_raise_pending();
        return NULL;
    }
    PyObject *functions = list_functions();
    PyObject *reporter = functions ? PyImport_ImportModule("cupola.bindings._inspection") : NULL;
    int version = provider.version ? provider.version : emulated_version();
    PyObject *report = reporter ? PyObject_CallMethod(reporter, "report", "sssiiOO", module_info.name,
                                                      module_info.library, provider.name, version, module_info.version,
                                                      provider.per_thread ? Py_True : Py_False, functions)
                                : NULL;
    Py_XDECREF(functions), Py_XDECREF(reporter);
    return report;
}

static PyMethodDef methods[] = {
    {"inspect", inspect, METH_NOARGS,
     "inspect()\n--\n\nWhat was loaded and which of the module's functions it has; loads the library, like a call.\n\n"
     "Returns\n-------\ncupola.bindings.Inspection"},
    {"_open", open_library, METH_O, "_open(path, /)\n--\n\nLoad a library; returns its handle and path."},
    {"_count_devices", count_devices, METH_O,
     "_count_devices(library, /)\n--\n\nThe status of the first call that failed and the number of devices, of a driver or an NVML."},
    {"_provider_name", name_provider, METH_NOARGS,
     "_provider_name()\n--\n\nWhat fills the function table, or None as long as that is open."},
    {0},
};

int table_init(PyObject *module) {
    module_info.table->provider = table_provider;
    module_info.table->raise_pending = table_raise_pending;
    module_info.table->explain = table_explain;
    static char table_name[64];
    snprintf(table_name, sizeof table_name, "%s._table", module_info.name);
    if (PyModule_AddFunctions(module, methods) < 0) return -1;
    PyObject *table = PyCapsule_New(module_info.table, table_name, NULL);
    if (PyModule_AddObjectRef(module, "_table", table) < 0) return -1;
    Py_DECREF(table);
    return 0;
}
