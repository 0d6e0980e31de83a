/* The CUDA runtime on the emulated driver: what its files share.
 *
 * As libcudart is a layer over libcuda, so is this one over the functions of ../driver, which it calls directly. One
 * file per family of the CUDA Runtime API. Handles are those of the driver, so that programs may mix the two. What the
 * runtime adds: it starts the driver and makes the primary context of the thread's device current when a call needs one
 * (context.c), and it remembers each thread's last error (error.c). Symbols of this module are hidden, so that the
 * names cannot clash with a libcudart that the process has loaded as well. */
#ifndef CUPOLA_CPU_RUNTIME_API_H
#define CUPOLA_CPU_RUNTIME_API_H

#include <cupola/runtime.h>

#include "driver/base/base.h"
#include "driver_functions.h"

/* ---- a thread's state (context.c, error.c) --------------------------------------------------------------------- */

struct runtime_thread {
    bool has_device; /* cudaSetDevice has been called */
    int device;
    cudaError_t last_error;
};
extern __thread struct runtime_thread runtime_thread;

CUresult start_driver(void); /* cuInit, by whichever call is the first */
CUresult make_current(void) __attribute__((cold));
extern _Atomic bool runtime_retains[MAX_DEVICES];         /* the runtime uses the primary context of the device */
CUresult primary_context(int device, CUcontext *context); /* of the device; retained for the runtime */
CUresult current_device(int *device);

/* A usable context is current afterwards: the one that is, or the primary one of the thread's device. */
static inline CUresult enter_runtime(void) {
    CUcontext context = current_context();
    if (likely(context && atomic_load_explicit(&context->active, memory_order_acquire) &&
               (!context->is_primary || runtime_retains[context->device->ordinal])))
        return CUDA_SUCCESS;
    return make_current();
}

/* ---- errors (error.c) ------------------------------------------------------------------------------------------ */

/* The runtime's status for one of the driver, which becomes the thread's last error. */
cudaError_t runtime_failed(CUresult status) __attribute__((cold));
static inline cudaError_t leave(CUresult status) { return likely(!status) ? cudaSuccess : runtime_failed(status); }

/* Told of each failure, when set (provider/python.c). */
extern void (*_Atomic runtime_report)(cudaError_t error, const char *name);

/* Statuses that only the runtime has; leave() lets them pass. */
#define fail_runtime(error, ...) fail((CUresult)(error), __VA_ARGS__)

/* ---- entry points ---------------------------------------------------------------------------------------------- */

/* Define an entry point by the driver call that does its work, in a usable context:
 *     RUNTIME(cudaFree, (void *devPtr), devPtr ? cuMemFree((CUdeviceptr)devPtr) : CUDA_SUCCESS)
 * RUNTIME_STREAM also defines the variant in which stream 0 is the calling thread's default stream (_ptsz and _ptds);
 * it needs the arguments once more. RUNTIME_BARE is for what needs the driver, but no context. */
#define RUNTIME(name, parameters, ...) \
    static cudaError_t name parameters { return leave(enter_runtime() ?: (__VA_ARGS__)); }
#define RUNTIME_BARE(name, parameters, ...) \
    static cudaError_t name parameters { return leave(start_driver() ?: (__VA_ARGS__)); }
#define RUNTIME_PER_THREAD(name, parameters, arguments)   \
    static cudaError_t name##_per_thread parameters {     \
        thread_state.null_stream_is_per_thread = true;    \
        cudaError_t per_thread_status = name arguments;   \
        thread_state.null_stream_is_per_thread = false;   \
        return per_thread_status;                         \
    }
#define RUNTIME_STREAM(name, parameters, arguments, ...) \
    RUNTIME(name, parameters, __VA_ARGS__)               \
    RUNTIME_PER_THREAD(name, parameters, arguments)

/* Rows of a file's table; they check the function against the slot of its name in the table of the bindings. */
#define RUNTIME_CHECKED(name)                                                                                       \
    __builtin_choose_expr(__builtin_types_compatible_p(typeof(&name), typeof(((cupola_runtime_table *)0)->name)),    \
                          (void *)name, (void)0 /* `name` has another signature than the table's slot */)
#define RUNTIME_ENTRY(name) {#name, RUNTIME_CHECKED(name), NULL}
#define RUNTIME_ENTRY_STREAM(name) {#name, RUNTIME_CHECKED(name), (void *)name##_per_thread}

/* A record of the runtime as the record of the driver that has the same layout. */
#define AS(type, value)                                                        \
    (((union {                                                                 \
         typeof(value) from;                                                   \
         type to;                                                              \
         _Static_assert(sizeof(typeof(value)) == sizeof(type), "same layout"); \
     }){.from = (value)})                                                      \
         .to)

/* ---- shared between families ----------------------------------------------------------------------------------- */

/* The kernel or function behind what the runtime calls `func`; cudaErrorInvalidResourceHandle when it is none. */
CUresult function_of(const void *func, CUfunction *function);

/* Kernels and variables that programs compiled by nvcc have registered (host_code.c). For any pointer: the kernel, NULL
 * if `func` is no such function; the variable in the current context, cudaErrorInvalidSymbol if `symbol` is none. */
CUresult host_kernel(const void *func, CUkernel *kernel);
CUresult host_variable(const void *symbol, CUdeviceptr *address, size_t *size);
CUresult part_of_variable(const void *symbol, size_t offset, size_t count, void **address); /* symbol.c */

/* Formats of texels (array.c): the channels of the runtime and the format of the driver, and the bytes of an array's
 * texel. */
CUresult format_of_channels(const struct cudaChannelFormatDesc *channels, CUarray_format *format, unsigned *count);
struct cudaChannelFormatDesc channels_of_format(CUarray_format format, unsigned count);
CUresult texel_of(cudaArray_t array, size_t *bytes, size_t *block);

/* Memory copies in the driver's form (copy_form.c). */
CUresult form_of_copy(const struct cudaMemcpy3DParms *copy, CUDA_MEMCPY3D *form);
CUresult form_of_row(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *form);
void copy_of_form(const CUDA_MEMCPY3D *form, struct cudaMemcpy3DParms *copy);
CUresult check_kind(enum cudaMemcpyKind kind); /* cudaErrorInvalidMemcpyDirection */
CUresult copy_row(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind); /* copy.c */
CUresult copy_row_async(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
CUmemorytype source_type(enum cudaMemcpyKind kind);
CUmemorytype target_type(enum cudaMemcpyKind kind);

void *runtime_lookup(const char *symbol);
void *host_lookup(const char *symbol);    /* also what host code of nvcc calls (host_code.c) */
void *host_lookup_12(const char *symbol); /* the same for CUDA 12 (cuda12.c) */
size_t runtime_lookup_count(void);
const char *runtime_lookup_name(size_t index);

#endif
