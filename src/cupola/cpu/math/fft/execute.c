/* Executions of plans of cuFFT, each an operation of the plan's stream (cuFFT Library, 2.4, 3.7). */
#include <stdlib.h>
#include <string.h>

#include "engine/instructions/half.h"
#include "fft.h"

struct fft_call {
    struct call call;
    const char *function;
    struct layout layout;
    bool is_forward;
    void *from, *to;
};

static bool is_complex(const struct layout *layout, bool is_to) {
    return layout->kind != (is_to ? COMPLEX_TO_REAL : REAL_TO_COMPLEX);
}

static size_t unit_size(enum precision precision) { return precision == DOUBLE ? 8 : precision == SINGLE ? 4 : 2; }

static size_t element_size_of(const struct layout *layout, bool is_to) {
    return unit_size(layout->precision) << is_complex(layout, is_to);
}

/* The elements of a dimension of one side; the first dimension is the batch. */
static int64_t count_of(const struct layout *layout, bool is_to, int dimension) {
    if (dimension == 0) return layout->batch;
    int64_t n = layout->n[dimension - 1];
    bool is_half = layout->kind == (is_to ? REAL_TO_COMPLEX : COMPLEX_TO_REAL);
    return is_half && dimension == layout->rank ? n / 2 + 1 : n;
}

static int64_t stride_of(const struct layout *layout, bool is_to, int dimension) {
    const struct side *side = is_to ? &layout->to : &layout->from;
    return dimension == 0 ? side->distance : side->stride[dimension - 1];
}

/* From the first byte to the last. What is larger than the address space is no memory that there is. */
static size_t bytes_of(const struct layout *layout, bool is_to) {
    size_t sum = 1, part;
    for (int i = 0; i <= layout->rank; i++)
        if (__builtin_mul_overflow((size_t)count_of(layout, is_to, i) - 1, (size_t)stride_of(layout, is_to, i),
                                   &part) ||
            __builtin_add_overflow(sum, part, &sum))
            return SIZE_MAX;
    return __builtin_mul_overflow(sum, element_size_of(layout, is_to), &sum) ? SIZE_MAX : sum;
}

/* In place, rows of real numbers are as long as those of the complex ones that take their place. */
static void pad_reals(struct layout *layout) {
    if (layout->kind == COMPLEX_TO_COMPLEX) return;
    struct side *side = layout->kind == REAL_TO_COMPLEX ? &layout->from : &layout->to;
    int64_t length = 2 * (layout->n[layout->rank - 1] / 2 + 1);
    for (int i = layout->rank - 2; i >= 0; i--) {
        side->stride[i] = length;
        length *= layout->n[i];
    }
    side->distance = length;
}

/* ---- half precision: by way of packed numbers of single precision ------------------------------------------------ */

static float load_half(enum precision precision, uint16_t half) {
    if (precision == HALF) return half_to_float(half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t store_half(enum precision precision, float value) {
    if (precision == HALF) return float_to_half(value);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static size_t numbers_of(const struct layout *layout, bool is_to) {
    size_t product = 1u << is_complex(layout, is_to);
    for (int i = 0; i <= layout->rank; i++) product *= (size_t)count_of(layout, is_to, i);
    return product;
}

/* Convert all elements of a side: `packed` from the halves (input), or to them. */
static void convert(const struct layout *layout, bool is_to, uint16_t *halves, float *packed) {
    const int parts = 1 << is_complex(layout, is_to), rank = layout->rank;
    int64_t index[RANK_MOST + 1] = {0}, place = 0;
    for (;;) {
        for (int part = 0; part < parts; part++, packed++) {
            uint16_t *half = halves + place * parts + part;
            if (is_to) *half = store_half(layout->precision, *packed);
            else *packed = load_half(layout->precision, *half);
        }
        int dimension = rank;
        for (; dimension >= 0; dimension--) {
            place += stride_of(layout, is_to, dimension);
            if (++index[dimension] < count_of(layout, is_to, dimension)) break;
            place -= index[dimension] * stride_of(layout, is_to, dimension);
            index[dimension] = 0;
        }
        if (dimension < 0) return;
    }
}

/* ---- the operation ----------------------------------------------------------------------------------------------- */

/* One side's strides in bytes; `packed`: one element after the other. */
static void set_strides(const struct layout *layout, bool is_to, bool packed, ptrdiff_t strides[]) {
    int64_t size = (int64_t)(packed ? sizeof(float) << is_complex(layout, is_to) : element_size_of(layout, is_to));
    for (int i = layout->rank; i >= 0; i--) {
        strides[i] = packed ? size : stride_of(layout, is_to, i) * size;
        if (packed) size *= count_of(layout, is_to, i);
    }
}

static CUresult transform(const struct layout *layout, bool is_forward, bool packed, const void *from, void *to) {
    struct transform t = {.kind = layout->kind,
                          .is_double = layout->precision == DOUBLE,
                          .is_forward = is_forward,
                          .threads = fft_threads,
                          .dimensions = (size_t)layout->rank + 1,
                          .shape = {(size_t)layout->batch},
                          .from = from,
                          .to = to};
    for (int i = 0; i < layout->rank; i++) t.shape[i + 1] = (size_t)layout->n[i];
    set_strides(layout, false, packed, t.from_stride);
    set_strides(layout, true, packed, t.to_stride);
    int problem = fft_transform(&t);
    if (problem == 1) return no_memory("a Fourier transform");
    return problem ? fail(CUDA_ERROR_LAUNCH_FAILED, "pocketfft does not take this transform") : CUDA_SUCCESS;
}

static CUresult run_halves(const struct layout *layout, bool is_forward, void *from, void *to) {
    float *input = malloc(numbers_of(layout, false) * sizeof *input);
    float *output = malloc(numbers_of(layout, true) * sizeof *output);
    CUresult status = input && output ? CUDA_SUCCESS : no_memory("a Fourier transform");
    if (!status) {
        convert(layout, false, from, input);
        status = transform(layout, is_forward, true, input, output);
    }
    if (!status) convert(layout, true, to, output);
    free(input);
    free(output);
    return status;
}

static CUresult run(struct call *call) {
    struct fft_call *self = (struct fft_call *)call;
    struct layout layout = self->layout;
    size_t from_bytes = bytes_of(&layout, false), to_bytes = bytes_of(&layout, true);
    RETURN_IF(math_touch(self->function, "the input", self->from, from_bytes));
    RETURN_IF(math_touch(self->function, "the output", self->to, to_bytes));
    if (layout.precision <= BFLOAT) return run_halves(&layout, self->is_forward, self->from, self->to);
    bool is_apart =
        (char *)self->from + from_bytes <= (char *)self->to || (char *)self->to + to_bytes <= (char *)self->from;
    bool is_alike = layout.kind == COMPLEX_TO_COMPLEX && self->from == self->to &&
                    !memcmp(&layout.from, &layout.to, sizeof layout.from);
    if (is_apart || is_alike) return transform(&layout, self->is_forward, false, self->from, self->to);
    void *copy = malloc(from_bytes);
    if (!copy) return no_memory("a Fourier transform");
    memcpy(copy, self->from, from_bytes);
    CUresult status = transform(&layout, self->is_forward, false, copy, self->to);
    free(copy);
    return status;
}

static CUresult submit(CUstream stream, const char *function, const struct layout *layout, bool is_forward, void *from,
                       void *to) {
    struct fft_call *made = calloc(1, sizeof *made);
    if (!made) return no_memory("a call of cuFFT");
    *made = (struct fft_call){{1, run, NULL, false}, function, *layout, is_forward, from, to};
    return math_submit(stream, &made->call, false);
}

/* What a callback's kernel goes through on one side; the side of `layout` becomes packed. */
static struct callback_layout pack(struct layout *layout, bool is_to) {
    struct callback_layout result = {.count = {1, 1, 1, 1}, .total = 1};
    struct side *side = is_to ? &layout->to : &layout->from;
    const int skipped = RANK_MOST - layout->rank; /* the innermost dimension is the last */
    for (int i = layout->rank; i >= 0; i--) {
        result.count[skipped + i] = (uint64_t)count_of(layout, is_to, i);
        result.stride[skipped + i] = (uint64_t)stride_of(layout, is_to, i);
        *(i ? &side->stride[i - 1] : &side->distance) = (int64_t)result.total;
        result.total *= result.count[skipped + i];
    }
    return result;
}

/* Memory of the stream for packed elements, between the kernels of callbacks and the transform. */
static CUresult submit_with_callbacks(const struct fft_plan *plan, CUstream stream, const char *function,
                                      struct layout *layout, bool is_forward, void *from, void *to) {
    CUdeviceptr packed[2] = {0};
    struct callback_layout sides[2];
    void *data[2] = {from, to};
    CUresult status = CUDA_SUCCESS;
    for (int i = 0; i < 2 && !status; i++) {
        if (!plan->callback[i].function) continue;
        sides[i] = pack(layout, i);
        status = cuMemAllocAsync(&packed[i], sides[i].total * element_size_of(layout, i), stream);
    }
    if (!status && packed[0]) status = fft_callback_run(&plan->callback[0], stream, from, packed[0], &sides[0]);
    for (int i = 0; i < 2; i++)
        if (packed[i]) data[i] = (void *)packed[i];
    if (!status) status = submit(stream, function, layout, is_forward, data[0], data[1]);
    if (!status && packed[1]) status = fft_callback_run(&plan->callback[1], stream, to, packed[1], &sides[1]);
    for (int i = 0; i < 2; i++) {
        CUresult freed = packed[i] ? cuMemFreeAsync(packed[i], stream) : CUDA_SUCCESS;
        if (!status) status = freed;
    }
    return status;
}

/* ---- the functions. They differ in nothing but their types: which transform it is, the plan says, as in cuFFT ------ */

static cufftResult execute_plan(const struct fft_plan *plan, const char *function, cufftHandle handle, void *from,
                                void *to, int direction) {
    struct layout layout = plan->layout;
    if (!plan->is_made) return fft_fail(CUFFT_INVALID_PLAN, "%s: plan %d is not made yet", function, handle);
    if (layout.kind == COMPLEX_TO_COMPLEX
            ? direction != CUFFT_FORWARD && direction != CUFFT_INVERSE
            : direction != (layout.kind == REAL_TO_COMPLEX ? CUFFT_FORWARD : CUFFT_INVERSE))
        return fft_fail(CUFFT_INVALID_VALUE, "%s: plan %d is for transforms %s; direction %d is none of it", function,
                        handle,
                        layout.kind == COMPLEX_TO_COMPLEX ? "in the directions -1 and 1"
                        : layout.kind == REAL_TO_COMPLEX  ? "from real to complex numbers, direction -1"
                                                          : "from complex to real numbers, direction 1",
                        direction);
    if (layout.kind == COMPLEX_TO_COMPLEX && !to)
        return fft_fail(CUFFT_EXEC_FAILED, "%s: the output is a null pointer", function);
    const uintptr_t complex_size = 2 * unit_size(layout.precision); /* also on the side that is real */
    if ((uintptr_t)from % complex_size || (uintptr_t)to % complex_size)
        return fft_fail(CUFFT_INVALID_VALUE, "%s: the %s at %p is not aligned to %d bytes", function,
                        (uintptr_t)from % complex_size ? "input" : "output", (uintptr_t)from % complex_size ? from : to,
                        (int)complex_size);
    CUstream stream;
    CUresult status = math_stream(plan->stream, &stream);
    if (status) return fft_status(status);
    if (layout.is_basic && from == to) pad_reals(&layout);
    bool is_forward = direction == CUFFT_FORWARD;
    if (plan->callback[0].function || plan->callback[1].function)
        return fft_status(submit_with_callbacks(plan, stream, function, &layout, is_forward, from, to));
    return fft_status(submit(stream, function, &layout, is_forward, from, to));
}

static cufftResult execute(const char *function, cufftHandle handle, void *from, void *to, int direction) {
    struct fft_plan *plan = fft_plan_get(handle, function);
    if (!plan) return CUFFT_INVALID_PLAN;
    pthread_mutex_lock(&plan->lock);
    cufftResult status = execute_plan(plan, function, handle, from, to, direction);
    pthread_mutex_unlock(&plan->lock);
    fft_plan_release(plan);
    return status;
}

static cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *from, cufftComplex *to, int direction) {
    return execute("cufftExecC2C", plan, from, to, direction);
}
static cufftResult cufftExecR2C(cufftHandle plan, cufftReal *from, cufftComplex *to) {
    return execute("cufftExecR2C", plan, from, to, CUFFT_FORWARD);
}
static cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *from, cufftReal *to) {
    return execute("cufftExecC2R", plan, from, to, CUFFT_INVERSE);
}
static cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleComplex *to, int direction) {
    return execute("cufftExecZ2Z", plan, from, to, direction);
}
static cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *from, cufftDoubleComplex *to) {
    return execute("cufftExecD2Z", plan, from, to, CUFFT_FORWARD);
}
static cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleReal *to) {
    return execute("cufftExecZ2D", plan, from, to, CUFFT_INVERSE);
}
static cufftResult cufftXtExec(cufftHandle plan, void *from, void *to, int direction) {
    return execute("cufftXtExec", plan, from, to, direction);
}

const struct entry fft_execute_entries[] = {
    FFT_ENTRY(cufftExecC2C), FFT_ENTRY(cufftExecR2C), FFT_ENTRY(cufftExecC2R), FFT_ENTRY(cufftExecZ2Z),
    FFT_ENTRY(cufftExecD2Z), FFT_ENTRY(cufftExecZ2D), FFT_ENTRY(cufftXtExec),  {NULL, NULL, NULL},
};
