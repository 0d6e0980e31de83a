/* cuFFT: what its files share (cuFFT Library, https://docs.nvidia.com/cuda/cufft).
 *
 * A plan is a layout, which says what is transformed and where its numbers lie. Making a plan only checks and notes the
 * layout; pocketfft keeps its own tables. Each execution is one operation with a copy of the layout. */
#ifndef CUPOLA_CPU_MATH_FFT_H
#define CUPOLA_CPU_MATH_FFT_H

#include <cupola/cufft.h>

#include "math/base/math.h"
#include "math/fft/transform.h"

enum { RANK_MOST = 3 };
enum precision { HALF, BFLOAT, SINGLE, DOUBLE };

/* One side of a transform, in elements: complex numbers, or real ones. */
struct side {
    int64_t stride[RANK_MOST], distance; /* of the dimensions, outermost first; between the transforms of a batch */
};

struct layout {
    enum transform_kind kind;
    enum precision precision;
    int rank;
    int64_t n[RANK_MOST], batch;
    struct side from, to;
    bool is_basic; /* no strides were given: in place, rows of real numbers are padded as those of complex ones are */
};

/* ---- plans (plan.c) ---------------------------------------------------------------------------------------------- */

/* A function of the user's that loads or stores elements (callback.c); all zero: there is none. */
struct fft_callback {
    char *name;
    void *code; /* LTO-IR */
    size_t size, shared;
    cufftXtCallbackType type;
    void *info;
    CUmodule module; /* once the plan is made */
    CUfunction function;
};

struct fft_plan {
    _Atomic unsigned references;
    pthread_mutex_t lock; /* of what follows */
    bool is_made;
    struct layout layout;
    cudaStream_t stream;
    bool property[5];
    struct fft_callback callback[2]; /* that loads, and that stores */
};

cufftResult fft_fail(cufftResult status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
cufftResult fft_status(CUresult status);

/* The plan of a handle, with a reference. NULL: there is none, and the thread has an explanation. */
struct fft_plan *fft_plan_get(cufftHandle handle, const char *function);
void fft_plan_release(struct fft_plan *plan);

/* ---- callbacks (callback.c) ---------------------------------------------------------------------------------------- */

/* What its kernel goes through: the elements of one side, as cpu/callbacks.py declares it. */
struct callback_layout {
    uint64_t count[RANK_MOST + 1], stride[RANK_MOST + 1], total;
};

void fft_callback_end(struct fft_callback *callback);
/* Link what is set; a callback must be for the side's type. */
cufftResult fft_callback_make(struct fft_callback *callback, const struct layout *layout, bool is_store);
/* Queue the loads of all elements of `data` to `packed`, or the stores from there. */
CUresult fft_callback_run(const struct fft_callback *callback, CUstream stream, void *data, CUdeviceptr packed,
                          const struct callback_layout *layout);

/* ---- pocketfft (library.c) --------------------------------------------------------------------------------------- */

extern transform_run *fft_transform;
extern unsigned fft_threads;

/* Open the library of transform.cpp. False, with the problem: it cannot be loaded. */
bool fft_load(const char *path, int threads, char *problem, size_t size);

#define FFT_ENTRY(name) MATH_ENTRY(cupola_cufft_table, name)
#define FFT_RETURN_IF(expression)                            \
    do {                                                     \
        cufftResult returned_if = (expression);              \
        if (unlikely(returned_if)) return returned_if;       \
    } while (0)

#endif
