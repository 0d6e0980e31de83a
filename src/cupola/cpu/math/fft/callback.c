/* Callbacks of cuFFT that are linked at run time (cuFFT Library, 2.10). The user's function, which loads or stores one
 * element, is linked with a kernel that calls it for each (cpu/callbacks.py). The kernel that loads is launched before
 * the transform, and the one that stores after it; between them the elements lie packed in memory of the stream. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "cudart/driver_functions.h"
#include "driver/module/module.h"
#include "fft.h"

void fft_callback_end(struct fft_callback *callback) {
    if (callback->module) cuModuleUnload(callback->module);
    free(callback->name);
    free(callback->code);
    *callback = (struct fft_callback){0};
}

/* The kernel's PTX from Python; NULL: with the thread's explanation. */
static char *link_kernel(const struct fft_callback *callback, unsigned capability) {
    char *result = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.callbacks");
    PyObject *ptx = module ? PyObject_CallMethod(module, "link", "sy#iI", callback->name, callback->code,
                                                 (Py_ssize_t)callback->size, (int)callback->type, capability)
                           : NULL;
    if (ptx && PyBytes_Check(ptx)) result = strdup(PyBytes_AS_STRING(ptx));
    if (!ptx) {
        PyObject *error, *type, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyObject *text = error ? PyObject_Str(error) : NULL;
        const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
        fft_fail(CUFFT_NVJITLINK_FAILURE, "the callback %s cannot be linked: %s", callback->name, utf8 ? utf8 : "");
        Py_XDECREF(text);
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        PyErr_Clear();
    }
    Py_XDECREF(ptx);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return result;
}

static cufftXtCallbackType type_for(const struct layout *layout, bool is_store) {
    bool is_complex = layout->kind != (is_store ? COMPLEX_TO_REAL : REAL_TO_COMPLEX);
    return (cufftXtCallbackType)(4 * is_store + 2 * !is_complex + (layout->precision == DOUBLE));
}

cufftResult fft_callback_make(struct fft_callback *callback, const struct layout *layout, bool is_store) {
    if (!callback->name) return CUFFT_SUCCESS;
    if (layout->precision <= BFLOAT)
        return fft_fail(CUFFT_NOT_SUPPORTED, "transforms of half precision have no callbacks");
    if (callback->type != type_for(layout, is_store))
        return fft_fail(CUFFT_INVALID_TYPE, "the callback %s is of type %d, and the plan needs %d", callback->name,
                        (int)callback->type, (int)type_for(layout, is_store));
    CUdevice device;
    int major = 0, minor = 0;
    CUresult status = enter_runtime();
    if (!status) status = cuCtxGetDevice(&device);
    if (!status) status = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (!status) status = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (status) return fft_status(status);
    char *ptx = link_kernel(callback, (unsigned)(10 * major + minor));
    if (!ptx) return CUFFT_NVJITLINK_FAILURE;
    status = cuModuleLoadData(&callback->module, ptx);
    if (!status) status = cuModuleGetFunction(&callback->function, callback->module, "cupola_callback");
    free(ptx);
    return fft_status(status);
}

CUresult fft_callback_run(const struct fft_callback *callback, CUstream stream, void *data, CUdeviceptr packed,
                          const struct callback_layout *layout) {
    enum { THREADS = 128, MOST_BLOCKS = 4096 };
    uint64_t blocks = (layout->total + THREADS - 1) / THREADS;
    struct callback_layout copy = *layout;
    void *info = callback->info, *parameters[] = {&data, &packed, &copy, &info};
    return cuLaunchKernel(callback->function, (unsigned)(blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks), 1, 1, THREADS, 1,
                          1, (unsigned)callback->shared, stream, parameters, NULL);
}

/* ---- entry points ------------------------------------------------------------------------------------------------ */

/* Is it LTO-IR, or a fat binary, which may have some? */
static bool is_code(const void *code, size_t size) {
    static const uint32_t ltoir = 0x7f4e43ed, fatbin = 0xba55ed50;
    return size >= 16 && (!memcmp(code, &ltoir, sizeof ltoir) || !memcmp(code, &fatbin, sizeof fatbin));
}

static cufftResult set(struct fft_plan *plan, const char *name, const void *code, size_t size, cufftXtCallbackType type,
                       void **info) {
    static const char *const names[] = {
        "cufftJITCallbackLoadComplex",    "cufftJITCallbackLoadDoubleComplex", "cufftJITCallbackLoadReal",
        "cufftJITCallbackLoadDoubleReal", "cufftJITCallbackStoreComplex",      "cufftJITCallbackStoreDoubleComplex",
        "cufftJITCallbackStoreReal",      "cufftJITCallbackStoreDoubleReal",
    };
    if (plan->is_made)
        return fft_fail(CUFFT_INVALID_PLAN, "cufftXtSetJITCallback: callbacks are set before the plan is made");
    if (!code || !size) return fft_fail(CUFFT_INVALID_VALUE, "cufftXtSetJITCallback: the code is missing");
    if ((unsigned)type >= CUFFT_CB_UNDEFINED)
        return fft_fail(CUFFT_INVALID_TYPE, "cufftXtSetJITCallback: %d is no type of a callback", (int)type);
    if (!is_code(code, size))
        return fft_fail(CUFFT_INVALID_VALUE, "cufftXtSetJITCallback: the code is neither LTO-IR nor a fat binary");
    struct fft_callback *callback = &plan->callback[type >= CUFFT_CB_ST_COMPLEX];
    struct fft_callback made = {.type = type, .size = size, .info = info ? info[0] : NULL, .shared = callback->shared};
    made.name = strdup(name ? name : names[type]);
    made.code = malloc(size);
    if (!made.name || !made.code) {
        free(made.name);
        free(made.code);
        return fft_fail(CUFFT_ALLOC_FAILED, "cufftXtSetJITCallback: the host has no memory for the callback");
    }
    memcpy(made.code, code, size);
    fft_callback_end(callback);
    *callback = made;
    return CUFFT_SUCCESS;
}

static cufftResult cufftXtSetJITCallback(cufftHandle handle, const char *name, const void *code, size_t size,
                                         cufftXtCallbackType type, void **info) {
    struct fft_plan *plan = fft_plan_get(handle, "cufftXtSetJITCallback");
    if (!plan) return CUFFT_INVALID_PLAN;
    pthread_mutex_lock(&plan->lock);
    cufftResult status = set(plan, name, code, size, type, info);
    pthread_mutex_unlock(&plan->lock);
    fft_plan_release(plan);
    return status;
}

static cufftResult cufftXtSetCallbackSharedSize(cufftHandle handle, cufftXtCallbackType type, size_t size) {
    enum { MOST = 16 << 10 }; /* as documented */
    struct fft_plan *plan = fft_plan_get(handle, "cufftXtSetCallbackSharedSize");
    if (!plan) return CUFFT_INVALID_PLAN;
    pthread_mutex_lock(&plan->lock);
    cufftResult status = CUFFT_SUCCESS;
    struct fft_callback *callback = &plan->callback[type >= CUFFT_CB_ST_COMPLEX];
    if (!callback->name || callback->type != type)
        status = fft_fail(CUFFT_INVALID_PLAN, "cufftXtSetCallbackSharedSize: plan %d has no callback of type %d",
                          handle, (int)type);
    else if (size > MOST)
        status = fft_fail(CUFFT_INVALID_VALUE, "cufftXtSetCallbackSharedSize: %zu bytes are more than 16 KiB", size);
    else callback->shared = size;
    pthread_mutex_unlock(&plan->lock);
    fft_plan_release(plan);
    return status;
}

/* Callbacks by the addresses of functions are those of NVIDIA's static library; the shared one refuses them, too. */
static cufftResult cufftXtSetCallback(cufftHandle handle, void **callback, cufftXtCallbackType type, void **info) {
    (void)handle, (void)callback, (void)type, (void)info;
    return fft_fail(CUFFT_NOT_IMPLEMENTED, "cufftXtSetCallback is for the static library: use cufftXtSetJITCallback");
}
static cufftResult cufftXtClearCallback(cufftHandle handle, cufftXtCallbackType type) {
    (void)handle, (void)type;
    return fft_fail(CUFFT_NOT_IMPLEMENTED, "cufftXtClearCallback is for the static library: make another plan");
}

const struct entry fft_callback_entries[] = {
    FFT_ENTRY(cufftXtSetJITCallback),
    FFT_ENTRY(cufftXtSetCallbackSharedSize),
    FFT_ENTRY(cufftXtSetCallback),
    FFT_ENTRY(cufftXtClearCallback),
    {NULL, NULL, NULL},
};
