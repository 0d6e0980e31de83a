/* Images: what cuModuleLoadData and its like are given, and what the compiler makes of it.
 *
 * An image is PTX text, or an ELF cubin that NVRTC made for the CPU device and that carries its PTX behind the ELF data
 * (nvrtc.c), or a fat binary that contains either. The compiler is Python (cupola.cpu.compiler), so an image can be
 * freed only with the GIL, which a stream's thread must not wait for: released images go to a list that is swept by the
 * next call that may take the GIL. */
#define _GNU_SOURCE /* memmem */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "image.h"
#include "module.h"

enum { ANY_DRIVER = 0 }; /* instead of a CUDA version: PTX may be newer than what is modelled */

/* ---- what Python gives ------------------------------------------------------------------------------------------ */

static char *copy_bytes(const char *bytes, size_t size) {
    char *copy = malloc(size + 1);
    if (!copy) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    return copy;
}

void (*_Atomic image_report)(const char *reason);

CUresult fail_python(void) {
    cpu_refusal refusal;
    cpu_take_exception(&refusal);
    void (*tell)(const char *) = image_report;
    if (tell) tell(refusal.message);
    return fail(error_status(refusal.status), "%s", refusal.message);
}

/* ---- what is in an image ---------------------------------------------------------------------------------------- */

/* The PTX in an image that is not a fat binary. */
static bool find_ptx(const char *image, size_t size, const char **ptx, size_t *length) {
    *ptx = image;
    *length = strnlen(image, size);
    if (size < sizeof(Elf64_Ehdr)) return false;
    if (memcmp(image, ELFMAG, SELFMAG)) return memmem(image, *length, ".target", 7);
    size_t cubin = elf_size(image, size), whole = cubin_size(image, size);
    if (whole <= cubin) return false;
    *ptx += cubin + PTX_FRAME_SIZE / 2;
    *length = whole - cubin - PTX_FRAME_SIZE;
    return true;
}

/* The entry of a fat binary that is for this device and for a driver of a CUDA version (images/fat_binaries.py: unpack), to
 * be freed, with a zero behind it. */
static CUresult unpack_fat(const char *image, size_t size, int driver, char **entry, size_t *entry_size) {
    CUresult status = CUDA_SUCCESS;
    char *bytes;
    Py_ssize_t length;
    *entry = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.compiler.images.fat_binaries");
    PyObject *found =
        module ? PyObject_CallMethod(module, "unpack", "y#Ii", image, (Py_ssize_t)size, model_architecture(), driver)
               : NULL;
    if (!found || PyBytes_AsStringAndSize(found, &bytes, &length) ||
        !(*entry = copy_bytes(bytes, *entry_size = (size_t)length)))
        status = fail_python();
    Py_XDECREF(found);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return status;
}

bool copy_ptx(const void *image, size_t size, char **ptx, size_t *length) {
    const char *start;
    char *entry = NULL;
    if (is_fat(image, size)) {
        if (unpack_fat(image, size, ANY_DRIVER, &entry, &size)) return false;
        image = entry;
    }
    *ptx = NULL;
    if (find_ptx(image, size, &start, length) && (*ptx = calloc(1, *length + 1))) memcpy(*ptx, start, *length);
    free(entry);
    return *ptx;
}

/* ---- for which GPU an image is --------------------------------------------------------------------------------- */

unsigned model_architecture(void) {
    const struct model *model = devices[0].model;
    return (unsigned)(model->major * 10 + model->minor);
}

/* PTX runs on its target and on newer GPUs; what is for one GPU only (suffix a) on that one, for one family (f) on GPUs
 * of the same major number. Of cubins images/targets.py tells. */
static CUresult check_target(const char *start, size_t size) {
    if (!memcmp(start, ELFMAG, size < SELFMAG ? size : SELFMAG)) return CUDA_SUCCESS;
    const char *end = start + size, *target = memmem(start, size, ".target", 7);
    unsigned number;
    char suffix = 0;
    char text[32] = "";
    if (target) memcpy(text, target, (size_t)(end - target) < sizeof text ? (size_t)(end - target) : sizeof text - 1);
    if (sscanf(text, ".target sm_%u%c", &number, &suffix) < 1) return CUDA_SUCCESS; /* the compiler will say so */
    const struct model *model = devices[0].model;
    unsigned have = model_architecture();
    bool same_family = number / 10 == (unsigned)model->major && number <= have;
    if (suffix == 'a' ? number == have : suffix == 'f' ? same_family : number <= have) return CUDA_SUCCESS;
    if (suffix != 'a' && suffix != 'f') suffix = 0;
    return fail(CUDA_ERROR_INVALID_PTX, "the PTX is for sm_%u%.1s, but this device is %s, sm_%u: compile for sm_%u",
                number, &suffix, model->name, have, have);
}

/* ---- reading what the compiler returns ------------------------------------------------------------------------- */

static PyObject *get(PyObject *object, const char *name) {
    return object ? PyObject_GetAttrString(object, name) : NULL;
}

static int get_size(PyObject *object, const char *name, size_t *value) {
    PyObject *number = get(object, name);
    if (!number) return -1;
    *value = PyLong_AsSize_t(number);
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int get_name(PyObject *object, char **name) {
    PyObject *text = get(object, "name");
    Py_ssize_t length;
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
    *name = utf8 ? copy_bytes(utf8, (size_t)length) : NULL;
    Py_XDECREF(text);
    return *name ? 0 : -1;
}

static int get_init(PyObject *object, struct variable *variable) {
    PyObject *init = get(object, "init");
    if (!init) return -1;
    int result = 0;
    if (init != Py_None) {
        char *bytes;
        Py_ssize_t size;
        result = PyBytes_AsStringAndSize(init, &bytes, &size);
        if (!result) {
            variable->init_size = (size_t)size < variable->size ? (size_t)size : variable->size;
            variable->init = copy_bytes(bytes, variable->init_size);
            result = variable->init ? 0 : -1;
        }
    }
    Py_DECREF(init);
    return result;
}

static int read_variable(PyObject *object, struct variable *variable) {
    PyObject *space = NULL, *managed = NULL;
    int result = -1;
    if (get_name(object, &variable->name) || get_size(object, "size", &variable->size) ||
        get_size(object, "align", &variable->align) || get_init(object, variable))
        return -1;
    if ((space = get(object, "space")) && (managed = get(object, "managed"))) {
        variable->is_constant = PyUnicode_Check(space) && !PyUnicode_CompareWithASCIIString(space, "const");
        variable->is_managed = PyObject_IsTrue(managed) == 1;
        if (PyUnicode_Check(space) && !PyUnicode_CompareWithASCIIString(space, "texref"))
            variable->reference = REFERENCE_TEXTURE;
        if (PyUnicode_Check(space) && !PyUnicode_CompareWithASCIIString(space, "surfref"))
            variable->reference = REFERENCE_SURFACE;
        result = 0;
    }
    Py_XDECREF(space);
    Py_XDECREF(managed);
    return result;
}

/* A relocation names its target, which may stand after the variable that it is in. */
static int read_relocations(PyObject *object, struct image *image, struct variable *variable) {
    PyObject *value = get(object, "relocations");
    PyObject *list = value ? PySequence_Fast(value, "relocations must be a sequence") : NULL;
    Py_XDECREF(value);
    if (!list) return -1;
    size_t count = (size_t)PySequence_Fast_GET_SIZE(list);
    variable->relocations = calloc(count + 1, sizeof *variable->relocations);
    int result = variable->relocations ? 0 : -1;
    if (result) PyErr_NoMemory();
    for (size_t i = 0; !result && i < count; i++) {
        Py_ssize_t offset, width;
        const char *symbol;
        long long addend;
        int generic;
        struct relocation *relocation = &variable->relocations[i];
        PyObject *item = PySequence_Tuple(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i));
        result = item && PyArg_ParseTuple(item, "nnsLp", &offset, &width, &symbol, &addend, &generic) ? 0 : -1;
        if (!result) {
            size_t target = 0;
            while (target < image->variable_count && strcmp(image->variables[target].name, symbol)) target++;
            if (target == image->variable_count) {
                PyErr_Format(
                    PyExc_NotImplementedError,
                    "the initial value of '%s' holds the address of '%s', which is not a variable of the module",
                    variable->name, symbol);
                result = -1;
            } else if (width < 1 || width > 8 || (size_t)(offset + width) > variable->size) {
                PyErr_Format(PyExc_ValueError, "a relocation of '%s' lies outside it", variable->name);
                result = -1;
            } else {
                *relocation = (struct relocation){(size_t)offset, (size_t)width, target, addend};
                variable->relocation_count = i + 1;
            }
        }
        Py_XDECREF(item);
    }
    Py_DECREF(list);
    return result;
}

static int read_variables(struct image *image) {
    PyObject *value = get(image->module, "variables");
    PyObject *list = value ? PySequence_Fast(value, "variables must be a sequence") : NULL;
    Py_XDECREF(value);
    if (!list) return -1;
    size_t count = (size_t)PySequence_Fast_GET_SIZE(list);
    image->variables = calloc(count + 1, sizeof *image->variables);
    int result = image->variables ? 0 : -1;
    if (result) PyErr_NoMemory();
    for (size_t i = 0; !result && i < count; i++) {
        image->variable_count = i + 1;
        result = read_variable(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i), &image->variables[i]);
    }
    for (size_t i = 0; !result && i < count; i++)
        result = read_relocations(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i), image, &image->variables[i]);
    Py_DECREF(list);
    return result;
}

/* With the GIL; -1 with an exception. */
static int read_kernel(struct image_kernel *kernel) {
    if (cpu_kernel_read(kernel->kernel)) return -1;
    struct parameter *parameters = calloc(kernel->info->param_count + 1, sizeof *parameters), *none = NULL;
    if (!parameters) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t p = 0; p < kernel->info->param_count; p++)
        cpu_kernel_param(kernel->kernel, p, &parameters[p].offset, &parameters[p].size);
    if (!atomic_compare_exchange_strong(&kernel->parameters, &none, parameters)) free(parameters);
    return 0;
}

CUresult kernel_read(struct image *image, size_t index) {
    struct image_kernel *kernel = &image->kernels[index];
    if (likely(atomic_load_explicit(&kernel->parameters, memory_order_acquire))) return CUDA_SUCCESS;
    PyGILState_STATE gil = PyGILState_Ensure();
    CUresult status = read_kernel(kernel) ? fail_python() : CUDA_SUCCESS;
    PyGILState_Release(gil);
    return status;
}

CUresult kernels_read(struct image *image) {
    for (size_t i = 0; i < image->kernel_count; i++) RETURN_IF(kernel_read(image, i));
    return CUDA_SUCCESS;
}

/* Those of a large module are read when they are first asked for. */
static int read_kernels(struct image *image) {
    PyObject *entries = get(image->module, "entries"), *lazy = get(image->module, "is_lazy");
    Py_ssize_t count = entries && lazy ? PySequence_Size(entries) : -1;
    bool is_lazy = lazy == Py_True;
    Py_XDECREF(entries);
    Py_XDECREF(lazy);
    if (count < 0) return -1;
    image->kernels = calloc((size_t)count + 1, sizeof *image->kernels);
    if (!image->kernels) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < (size_t)count; i++) {
        struct image_kernel *kernel = &image->kernels[i];
        kernel->kernel = cpu_kernel_new(image->module, i);
        if (!kernel->kernel) return -1;
        image->kernel_count = i + 1;
        kernel->info = cpu_kernel_get_info(kernel->kernel);
        if (!is_lazy && read_kernel(kernel)) return -1;
    }
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static _Atomic(struct image *) unused;

static void image_free(struct image *image) { /* with the GIL */
    for (size_t i = 0; i < image->kernel_count; i++) {
        free(image->kernels[i].parameters);
        cpu_kernel_free(image->kernels[i].kernel);
    }
    for (size_t i = 0; i < image->variable_count; i++) {
        free(image->variables[i].name);
        free(image->variables[i].init);
        free(image->variables[i].relocations);
    }
    free(image->kernels);
    free(image->variables);
    Py_XDECREF(image->module);
    free(image);
}

void image_release(struct image *image) {
    if (atomic_fetch_sub(&image->references, 1) != 1) return;
    image->next_unused = atomic_load(&unused);
    while (!atomic_compare_exchange_weak(&unused, &image->next_unused, image)) {
    }
}

void images_sweep(void) {
    if (!atomic_load(&unused) || !Py_IsInitialized()) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    struct image *image = atomic_exchange(&unused, NULL), *next;
    for (; image; image = next) {
        next = image->next_unused;
        image_free(image);
    }
    PyGILState_Release(gil);
}

/* An image that is not a fat binary, for a driver of a CUDA version. */
static CUresult load_one(const char *start, size_t size, int driver, struct image **result) {
    RETURN_IF(check_target(start, size));
    struct image *image = calloc(1, sizeof *image);
    if (!image) return no_memory("a module");
    image->references = 1;
    CUresult status = CUDA_SUCCESS;
    images_sweep();
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *compiler = PyImport_ImportModule("cupola.cpu.compiler.modules");
    if (compiler)
        image->module =
            PyObject_CallMethod(compiler, "load_image", "y#Ii", start, (Py_ssize_t)size, model_architecture(), driver);
    Py_XDECREF(compiler);
    if (!image->module || read_kernels(image) || read_variables(image)) {
        status = fail_python();
        image_free(image);
        image = NULL;
    }
    PyGILState_Release(gil);
    *result = image;
    return status;
}

static CUresult load(const void *data, size_t limit, struct image **result) {
    const char *start;
    size_t size = 0;
    RETURN_IF(find_extent(data, limit, &start, &size));
    if (!is_fat(start, size)) return load_one(start, size, settings.version, result);
    char *entry;
    RETURN_IF(unpack_fat(start, size, settings.version, &entry, &size));
    CUresult status = load_one(entry, size, ANY_DRIVER, result);
    free(entry);
    return status;
}

/* Relocatable device code of several files: nvcc has linked the machine code, and the PTX of each file is still there
 * (images/linking.py: link_fat_binaries). */
static CUresult load_linked(const void *const *binaries, size_t count, struct image **result) {
    CUresult status = CUDA_SUCCESS;
    char *bytes, *cubin = NULL;
    Py_ssize_t length;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.compiler.images.linking"), *linked = NULL;
    PyObject *list = module ? PyList_New(0) : NULL;
    for (size_t i = 0; list && i < count && !status; i++) {
        const char *start;
        size_t size;
        status = find_extent(binaries[i], UNKNOWN_SIZE, &start, &size);
        PyObject *binary = status ? NULL : PyBytes_FromStringAndSize(start, (Py_ssize_t)size);
        if (!binary || PyList_Append(list, binary)) Py_CLEAR(list);
        Py_XDECREF(binary);
    }
    if (list) linked = PyObject_CallMethod(module, "link_fat_binaries", "OI", list, model_architecture());
    if (!status &&
        (!linked || PyBytes_AsStringAndSize(linked, &bytes, &length) || !(cubin = copy_bytes(bytes, (size_t)length))))
        status = fail_python();
    Py_XDECREF(linked);
    Py_XDECREF(list);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    if (!status) status = load_one(cubin, (size_t)length, ANY_DRIVER, result);
    free(cubin);
    return status;
}

CUresult image_load(const void *data, struct image **image) {
    const void *const *binaries;
    size_t count;
    RETURN_IF(find_linked(data, &binaries, &count));
    return count ? load_linked(binaries, count, image) : load(data, UNKNOWN_SIZE, image);
}

CUresult read_file(const char *path, char **data, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return fail(CUDA_ERROR_FILE_NOT_FOUND, "cannot open '%s': %s", path, strerror(errno));
    long length = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    *size = length < 0 ? 0 : (size_t)length;
    *data = length < 0 || fseek(file, 0, SEEK_SET) ? NULL : calloc(1, *size + PTX_FRAME_SIZE);
    bool read = *data && fread(*data, 1, *size, file) == *size;
    fclose(file);
    if (read) return CUDA_SUCCESS;
    free(*data);
    return fail(CUDA_ERROR_INVALID_IMAGE, "cannot read '%s'", path);
}

CUresult image_load_file(const char *path, struct image **image) {
    char *data = NULL;
    size_t size = 0;
    RETURN_IF(read_file(path, &data, &size));
    CUresult status = load(data, size, image);
    free(data);
    return status;
}
