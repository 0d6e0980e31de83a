/* The driver's linker (CUDA Driver API, "Module Management": cuLinkCreate and its like).
 *
 * An input is PTX, or a cubin or a fat binary with PTX in it. What it makes is a cubin for cuModuleLoadData and
 * cuLibraryLoadData of this driver, which run the PTX behind it: so linking is merging PTX, done in Python by
 * images/linking.py. An input is read when it is added, and everything else is found when the link is completed. */
#define _GNU_SOURCE /* memmem */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "module.h"

struct CUlinkState_st {
    struct handle handle;
    unsigned option_count; /* copies: callers do not all keep the arrays, though CUDA asks them to */
    CUjit_option *options;
    void **option_values; /* results are written here, such as the length of a log in the place of its buffer's size */
    void **given_values;
    PyObject *inputs; /* list of (name, PTX) */
    char *names;      /* of the inputs, for the log: "a.ptx, b.ptx" */
    char *image;      /* the cubin, once there is one */
    size_t size;
    double milliseconds;
};

static CUresult enter_link(CUlinkState state) {
    RETURN_IF(enter());
    return handle_is_live(state, HANDLE_LINK) ? CUDA_SUCCESS : fail_handle("link state", state, HANDLE_LINK);
}

static CUresult check_input(CUlinkState state, CUjitInputType type, const char *name) {
    if (state->image) return fail(CUDA_ERROR_INVALID_VALUE, "the link is complete: make another one for more inputs");
    if (type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_NVVM)
        return fail(
            CUDA_ERROR_NOT_SUPPORTED,
            "the CPU device links PTX, and cubins and fat binaries with PTX in them, not objects or LTO-IR (input "
            "%s)",
            name ? name : "without a name");
    if ((unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUjitInputType", (int)type);
    return CUDA_SUCCESS;
}

static void link_free(CUlinkState state) {
    free(state->options);
    free(state->option_values);
    free(state->given_values);
    free(state->names);
    free(state->image);
    if (state->inputs && Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF(state->inputs);
        PyGILState_Release(gil);
    }
    handle_free(HANDLE_LINK, state);
}

/* ---- options --------------------------------------------------------------------------------------------------- */

static void **find_option(CUlinkState state, CUjit_option option) {
    for (unsigned i = 0; i < state->option_count; i++)
        if (state->options[i] == option) return &state->option_values[i];
    return NULL;
}

/* The GPU to link for: CU_JIT_TARGET, whose values are the number of the architecture below flags for the GPUs that
 * code is limited to, or else the modeled one. */
static unsigned architecture(CUlinkState state) {
    void **target = find_option(state, CU_JIT_TARGET);
    unsigned value = target ? (unsigned)(uintptr_t)*target & 0xFFFF : 0;
    return value ? value : model_architecture();
}

/* The log buffers, and the time, a float in the place of the option's value. */
static CUresult report(CUlinkState state, CUresult status, bool linked_all, const struct image *image) {
    char linked[2048];
    void **time = find_option(state, CU_JIT_WALL_TIME);
    float milliseconds = (float)state->milliseconds;
    for (unsigned i = 0; i < state->option_count; i++) state->option_values[i] = state->given_values[i];
    if (time) memcpy(time, &milliseconds, sizeof milliseconds);
    snprintf(linked, sizeof linked, "Linked %s for sm_%u", state->names ? state->names : "nothing",
             architecture(state));
    jit_write_logs(state->option_count, state->options, state->option_values, status,
                   linked_all && !status ? linked : NULL, image);
    return status;
}

/* ---- work ------------------------------------------------------------------------------------------------------ */

static PyObject *linking(void) { return PyImport_ImportModule("cupola.cpu.compiler.images.linking"); }

/* Without memory the log lacks it. */
static void note_name(CUlinkState state, const char *name) {
    size_t before = state->names ? strlen(state->names) : 0, room = before + strlen(name) + 3;
    char *names = realloc(state->names, room);
    if (!names) return;
    snprintf(names + before, room - before, "%s%s", before ? ", " : "", name);
    state->names = names;
}

/* libcudadevrt is an archive of one member. What it has, the CPU device has of its own for modules that call it. */
static CUresult add_library(CUlinkState state, const char *data, size_t size, const char *name) {
    static const char archive[] = "!<arch>\n", member[] = "cuda_device_runtime.o";
    if (size < sizeof archive - 1 || memcmp(data, archive, sizeof archive - 1) ||
        !memmem(data, size, member, sizeof member - 1))
        return fail(
            CUDA_ERROR_NOT_SUPPORTED,
            "of libraries the CPU device links only libcudadevrt; give PTX, or cubins and fat binaries with PTX in "
            "them, instead of %s",
            name);
    note_name(state, name);
    return report(state, CUDA_SUCCESS, false, NULL);
}

static CUresult add(CUlinkState state, CUjitInputType type, const char *data, size_t size, const char *name) {
    uint64_t start = clock_now();
    CUresult status = CUDA_SUCCESS;
    if (!name || !*name) name = "<unnamed>";
    if (type == CU_JIT_INPUT_LIBRARY) return add_library(state, data, size, name);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = linking();
    PyObject *called = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
    PyObject *text = module && called ? PyObject_CallMethod(module, "read_input", "y#OIi", data, (Py_ssize_t)size,
                                                            called, architecture(state), settings.version)
                                      : NULL;
    PyObject *input = text ? Py_BuildValue("(OO)", called, text) : NULL;
    if (!state->inputs) state->inputs = PyList_New(0);
    if (!input || !state->inputs || PyList_Append(state->inputs, input)) status = fail_python();
    Py_XDECREF(input);
    Py_XDECREF(text);
    Py_XDECREF(called);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    state->milliseconds += 1e-6 * (double)(clock_now() - start);
    if (!status) note_name(state, name);
    return report(state, status, false, NULL);
}

/* The image gets zeros behind it, so that a search for PTX there ends. */
static CUresult merge(CUlinkState state) {
    CUresult status = CUDA_SUCCESS;
    char *bytes;
    Py_ssize_t size;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = linking();
    PyObject *cubin =
        module ? PyObject_CallMethod(module, "link_cubin", "OI", state->inputs, architecture(state)) : NULL;
    if (!cubin || PyBytes_AsStringAndSize(cubin, &bytes, &size)) {
        status = fail_python();
    } else if (!(state->image = calloc(1, (size_t)size + PTX_FRAME_SIZE))) {
        status = no_memory("the image");
    } else {
        memcpy(state->image, bytes, (size_t)size);
        state->size = (size_t)size;
    }
    Py_XDECREF(cubin);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return status;
}

/* The compiler must accept what came out, unless it is for another GPU. */
static CUresult complete(CUlinkState state) {
    struct image *checked = NULL;
    uint64_t start = clock_now();
    CUresult status = merge(state);
    if (!status && architecture(state) == model_architecture()) status = image_load(state->image, &checked);
    if (status) {
        free(state->image);
        state->image = NULL;
    }
    state->milliseconds += 1e-6 * (double)(clock_now() - start);
    report(state, status, true, checked);
    if (checked) image_release(checked);
    images_sweep();
    return status;
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *state) {
    RETURN_IF(enter());
    if (!state) return fail_null("stateOut");
    RETURN_IF(jit_check_options(count, options, values));
    CUlinkState made = handle_new(HANDLE_LINK, sizeof *made);
    if (!made) return no_memory("a link state");
    made->option_count = count;
    made->options = malloc((count + 1) * sizeof *options);
    made->option_values = malloc((count + 1) * sizeof *values);
    made->given_values = malloc((count + 1) * sizeof *values);
    if (!made->options || !made->option_values || !made->given_values) {
        link_free(made);
        return no_memory("a link state");
    }
    for (unsigned i = 0; i < count; i++) {
        made->options[i] = options[i];
        made->option_values[i] = made->given_values[i] = values[i];
    }
    *state = made;
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                       unsigned count, CUjit_option *options, void **values) {
    RETURN_IF(enter_link(state));
    if (!data || !size) return fail_null("data");
    RETURN_IF(check_input(state, type, name));
    RETURN_IF(jit_check_options(count, options, values));
    return add(state, type, data, size, name);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned count, CUjit_option *options,
                       void **values) {
    RETURN_IF(enter_link(state));
    if (!path) return fail_null("path");
    RETURN_IF(check_input(state, type, path));
    RETURN_IF(jit_check_options(count, options, values));
    char *data;
    size_t size;
    RETURN_IF(read_file(path, &data, &size));
    CUresult status = size ? add(state, type, data, size, path) : fail(CUDA_ERROR_INVALID_IMAGE, "'%s' is empty", path);
    free(data);
    return status;
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) {
    RETURN_IF(enter_link(state));
    if (!image) return fail_null("cubinOut");
    if (!size) return fail_null("sizeOut");
    if (!state->inputs) return fail(CUDA_ERROR_INVALID_VALUE, "the link has no input");
    if (!state->image) RETURN_IF(complete(state));
    *image = state->image;
    *size = state->size;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
    RETURN_IF(enter_link(state));
    if (!handle_kill(state)) return fail_handle("link state", state, HANDLE_LINK);
    link_free(state);
    return CUDA_SUCCESS;
}

const struct entry link_entries[] = {
    ENTRY(cuLinkCreate),   ENTRY_AS(cuLinkCreate_v2, cuLinkCreate),
    ENTRY(cuLinkAddData),  ENTRY_AS(cuLinkAddData_v2, cuLinkAddData),
    ENTRY(cuLinkAddFile),  ENTRY_AS(cuLinkAddFile_v2, cuLinkAddFile),
    ENTRY(cuLinkComplete), ENTRY(cuLinkDestroy),
    {NULL, NULL, NULL},
};
