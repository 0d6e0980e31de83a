/* Plans of cuFFT: what is transformed, and where it lies (cuFFT Library, 2.2 to 2.8, 3.2 to 3.6). */
#include <stdarg.h>
#include <stdlib.h>

#include "fft.h"

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

cufftResult fft_fail(cufftResult status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    math_explain((int)status, format, arguments);
    va_end(arguments);
    return status;
}

cufftResult fft_status(CUresult status) {
    return (cufftResult)math_status(status, CUFFT_ALLOC_FAILED, CUFFT_EXEC_FAILED, CUFFT_EXEC_FAILED);
}

/* ---- handles: numbers, which are places in a table. A place rests for long before it is used again ---------------- */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fft_plan **table;
static int table_size, next_place, plans;

static cufftResult handle_for(struct fft_plan *plan, cufftHandle *handle) {
    cufftResult status = CUFFT_SUCCESS;
    pthread_mutex_lock(&table_lock);
    if (2 * plans >= table_size) {
        int size = table_size ? 2 * table_size : 1024;
        struct fft_plan **larger = realloc(table, (size_t)size * sizeof(*larger));
        if (larger) {
            for (int i = table_size; i < size; i++) larger[i] = NULL;
            next_place = table_size ? table_size : 1;
            table = larger;
            table_size = size;
        } else status = CUFFT_ALLOC_FAILED;
    }
    if (!status) {
        while (next_place == 0 || table[next_place]) next_place = (next_place + 1) % table_size;
        *handle = next_place;
        table[next_place] = plan;
        next_place = (next_place + 1) % table_size;
        plans++;
    }
    pthread_mutex_unlock(&table_lock);
    return status;
}

struct fft_plan *fft_plan_get(cufftHandle handle, const char *function) {
    pthread_mutex_lock(&table_lock);
    struct fft_plan *found = handle > 0 && handle < table_size ? table[handle] : NULL;
    if (found) atomic_fetch_add(&found->references, 1);
    pthread_mutex_unlock(&table_lock);
    if (!found)
        fft_fail(CUFFT_INVALID_PLAN, "%s: %d is no plan of cufftCreate or cufftPlan..., or was destroyed", function,
                 handle);
    return found;
}

void fft_plan_release(struct fft_plan *plan) {
    if (atomic_fetch_sub(&plan->references, 1) != 1) return;
    fft_callback_end(&plan->callback[0]);
    fft_callback_end(&plan->callback[1]);
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}

static cufftResult create(const char *function, cufftHandle *handle) {
    if (!handle) return fft_fail(CUFFT_INVALID_VALUE, "%s: the place for the handle is a null pointer", function);
    if (enter_runtime()) return fft_fail(CUFFT_SETUP_FAILED, "%s: there is no usable context", function);
    struct fft_plan *made = calloc(1, sizeof *made);
    if (!made) return fft_fail(CUFFT_ALLOC_FAILED, "%s: the host has no memory for a plan", function);
    pthread_mutex_init(&made->lock, NULL);
    made->references = 1;
    cufftResult status = handle_for(made, handle);
    if (!status) return CUFFT_SUCCESS;
    fft_plan_release(made);
    return fft_fail(status, "%s: the host has no memory for a plan", function);
}

static cufftResult cufftCreate(cufftHandle *handle) { return create("cufftCreate", handle); }

static cufftResult cufftDestroy(cufftHandle handle) {
    if (handle == CUFFT_PLAN_NULL) return CUFFT_SUCCESS;
    struct fft_plan *plan = fft_plan_get(handle, "cufftDestroy");
    if (!plan) return CUFFT_INVALID_PLAN;
    pthread_mutex_lock(&table_lock);
    bool is_first = table[handle] == plan;
    if (is_first) table[handle] = NULL, plans--;
    pthread_mutex_unlock(&table_lock);
    if (is_first) fft_plan_release(plan);
    fft_plan_release(plan);
    return CUFFT_SUCCESS;
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

struct request {
    const char *function;
    int rank;
    const int *small_n, *small_from, *small_to; /* sizes of int, */
    const long long *n, *from, *to;             /* or of 64 bits */
    bool has_n, has_from, has_to;
    int64_t from_stride, from_distance, to_stride, to_distance, batch;
    enum transform_kind kind;
    enum precision precision;
};

static int64_t at(const int *small, const long long *wide, int index) { return small ? small[index] : wide[index]; }

/* Strides of a side whose rows are as long as `embed` says. False: more elements than there are addresses. */
static bool set_side(struct side *side, int rank, const int64_t embed[], int64_t stride, int64_t distance) {
    for (int i = rank - 1; i >= 0; i--) {
        side->stride[i] = stride;
        if (i > 0 && __builtin_mul_overflow(stride, embed[i], &stride)) return false;
    }
    side->distance = distance;
    return true;
}

/* How many elements of a side a dimension has: of the complex side of a real transform, the last one has half. */
static int64_t extent(const struct layout *layout, int dimension, bool is_half) {
    return is_half && dimension == layout->rank - 1 ? layout->n[dimension] / 2 + 1 : layout->n[dimension];
}

static bool set_basic(struct side *side, const struct layout *layout, bool is_half) {
    int64_t embed[RANK_MOST], distance = 1;
    for (int i = 0; i < layout->rank; i++) {
        embed[i] = extent(layout, i, is_half);
        if (__builtin_mul_overflow(distance, embed[i], &distance)) return false;
    }
    return set_side(side, layout->rank, embed, 1, distance);
}

static cufftResult lay_out(const struct request *r, struct layout *layout) {
#define REQUIRE(condition, status, ...) \
    if (unlikely(!(condition))) return fft_fail(status, __VA_ARGS__)
    REQUIRE(r->rank >= 1 && r->rank <= RANK_MOST, CUFFT_INVALID_VALUE, "%s: rank is %d; it must be 1, 2 or 3",
            r->function, r->rank);
    REQUIRE(r->has_n, CUFFT_INVALID_VALUE, "%s: 'n' is a null pointer", r->function);
    REQUIRE(r->has_from == r->has_to, CUFFT_INVALID_VALUE,
            "%s: 'inembed' and 'onembed' must both be given, or both be null pointers", r->function);
    *layout = (struct layout){.kind = r->kind, .precision = r->precision, .rank = r->rank, .batch = r->batch};
    for (int i = 0; i < r->rank; i++) {
        layout->n[i] = at(r->small_n, r->n, i);
        REQUIRE(layout->n[i] > 0, CUFFT_INVALID_SIZE, "%s: size %d is %lld; sizes must be positive", r->function, i,
                (long long)layout->n[i]);
        REQUIRE(r->precision > BFLOAT || !(layout->n[i] & (layout->n[i] - 1)), CUFFT_NOT_SUPPORTED,
                "%s: size %d is %lld; transforms of half precision have sizes that are powers of two", r->function, i,
                (long long)layout->n[i]);
    }
    REQUIRE(r->batch > 0, CUFFT_INVALID_SIZE, "%s: batch is %lld; it must be positive", r->function,
            (long long)r->batch);
    bool fits, from_half = r->kind == COMPLEX_TO_REAL, to_half = r->kind == REAL_TO_COMPLEX;
    if (!r->has_from) {
        layout->is_basic = true;
        fits = set_basic(&layout->from, layout, from_half) && set_basic(&layout->to, layout, to_half);
    } else {
        int64_t from[RANK_MOST] = {0}, to[RANK_MOST] = {0};
        REQUIRE(r->from_stride > 0 && r->to_stride > 0, CUFFT_INVALID_VALUE,
                "%s: istride is %lld and ostride is %lld; strides must be positive", r->function,
                (long long)r->from_stride, (long long)r->to_stride);
        for (int i = 0; i < r->rank; i++) {
            from[i] = at(r->small_from, r->from, i);
            to[i] = at(r->small_to, r->to, i);
            REQUIRE(i == 0 || (from[i] > 0 && to[i] > 0), CUFFT_INVALID_SIZE,
                    "%s: inembed[%d] is %lld and onembed[%d] is %lld; they must be positive", r->function, i,
                    (long long)from[i], i, (long long)to[i]);
        }
        const int64_t least = r->batch > 1; /* what is not used may be 0 */
        REQUIRE(r->from_distance >= least && r->to_distance >= least, CUFFT_INVALID_VALUE,
                "%s: idist is %lld and odist is %lld; they must be positive", r->function, (long long)r->from_distance,
                (long long)r->to_distance);
        fits = set_side(&layout->from, r->rank, from, r->from_stride, r->from_distance) &&
               set_side(&layout->to, r->rank, to, r->to_stride, r->to_distance);
    }
    REQUIRE(fits, CUFFT_INVALID_SIZE, "%s: that many elements have no addresses", r->function);
    return CUFFT_SUCCESS;
}

/* What of cuFFT's types a plan is for. */
static cufftResult type_of(struct request *r, cufftType type) {
    switch (type) {
        case CUFFT_C2C: r->kind = COMPLEX_TO_COMPLEX, r->precision = SINGLE; return CUFFT_SUCCESS;
        case CUFFT_R2C: r->kind = REAL_TO_COMPLEX, r->precision = SINGLE; return CUFFT_SUCCESS;
        case CUFFT_C2R: r->kind = COMPLEX_TO_REAL, r->precision = SINGLE; return CUFFT_SUCCESS;
        case CUFFT_Z2Z: r->kind = COMPLEX_TO_COMPLEX, r->precision = DOUBLE; return CUFFT_SUCCESS;
        case CUFFT_D2Z: r->kind = REAL_TO_COMPLEX, r->precision = DOUBLE; return CUFFT_SUCCESS;
        case CUFFT_Z2D: r->kind = COMPLEX_TO_REAL, r->precision = DOUBLE; return CUFFT_SUCCESS;
    }
    return fft_fail(CUFFT_INVALID_TYPE, "%s: %d is no cufftType", r->function, (int)type);
}

static bool number_type(cudaDataType type, bool *is_complex, enum precision *precision) {
    static const struct {
        cudaDataType real, complex;
    } types[] = {[HALF] = {CUDA_R_16F, CUDA_C_16F},
                 [BFLOAT] = {CUDA_R_16BF, CUDA_C_16BF},
                 [SINGLE] = {CUDA_R_32F, CUDA_C_32F},
                 [DOUBLE] = {CUDA_R_64F, CUDA_C_64F}};
    for (enum precision i = HALF; i <= DOUBLE; i++)
        if (type == types[i].real || type == types[i].complex) {
            *is_complex = type == types[i].complex;
            *precision = i;
            return true;
        }
    return false;
}

/* Input, output and calculation are of one precision, and input or output is complex. */
static cufftResult types_of(struct request *r, cudaDataType from, cudaDataType to, cudaDataType inside) {
    bool is_complex[3];
    enum precision precision[3];
    if (!number_type(from, &is_complex[0], &precision[0]) || !number_type(to, &is_complex[1], &precision[1]) ||
        !number_type(inside, &is_complex[2], &precision[2]) || precision[0] != precision[1] ||
        precision[0] != precision[2] || !(is_complex[0] || is_complex[1]))
        return fft_fail(CUFFT_INVALID_TYPE, "%s: there are no transforms from type %d to type %d by way of type %d",
                        r->function, (int)from, (int)to, (int)inside);
    r->precision = precision[0];
    r->kind = !is_complex[0] ? REAL_TO_COMPLEX : !is_complex[1] ? COMPLEX_TO_REAL : COMPLEX_TO_COMPLEX;
    return CUFFT_SUCCESS;
}

/* ---- plans are made, or only measured: nothing here needs work space ---------------------------------------------- */

static cufftResult measure(const struct request *r, size_t *size) {
    struct layout layout;
    if (!size) return fft_fail(CUFFT_INVALID_VALUE, "%s: 'workSize' is a null pointer", r->function);
    FFT_RETURN_IF(lay_out(r, &layout));
    *size = 0;
    return CUFFT_SUCCESS;
}

static cufftResult measure_of(cufftHandle handle, const struct request *r, size_t *size) {
    struct fft_plan *plan = fft_plan_get(handle, r->function);
    if (!plan) return CUFFT_INVALID_PLAN;
    fft_plan_release(plan);
    return measure(r, size);
}

static cufftResult make(cufftHandle handle, const struct request *r, size_t *size) {
    struct layout layout;
    struct fft_plan *plan = fft_plan_get(handle, r->function);
    if (!plan) return CUFFT_INVALID_PLAN;
    pthread_mutex_lock(&plan->lock);
    cufftResult status = CUFFT_SUCCESS;
    if (plan->is_made) status = fft_fail(CUFFT_INVALID_PLAN, "%s: plan %d is made already", r->function, handle);
    if (!status && !size) status = fft_fail(CUFFT_INVALID_VALUE, "%s: 'workSize' is a null pointer", r->function);
    if (!status) status = lay_out(r, &layout);
    if (!status) status = fft_callback_make(&plan->callback[0], &layout, false);
    if (!status) status = fft_callback_make(&plan->callback[1], &layout, true);
    if (!status) {
        plan->layout = layout;
        plan->is_made = true;
        *size = 0;
    }
    pthread_mutex_unlock(&plan->lock);
    fft_plan_release(plan);
    return status;
}

/* cufftPlan...: create and make. */
static cufftResult plan_now(cufftHandle *handle, const struct request *r) {
    size_t size;
    cufftHandle made;
    if (!handle) return fft_fail(CUFFT_INVALID_VALUE, "%s: the place for the plan is a null pointer", r->function);
    FFT_RETURN_IF(create(r->function, &made));
    cufftResult status = make(made, r, &size);
    if (status) cufftDestroy(made);
    else *handle = made;
    return status;
}

/* The request of one function, as a function of its last parameters. */
#define REQUEST(name, dimensions, list, type, count)                                                         \
    struct request request = {.function = name, .rank = dimensions, .small_n = list, .has_n = true, .batch = count}; \
    FFT_RETURN_IF(type_of(&request, type))
#define SMALL_REQUEST(name, type)                                                                                  \
    struct request request = {                                                                                     \
        .function = name,          .rank = rank,                .small_n = n,         .small_from = inembed,       \
        .small_to = onembed,       .has_n = n,                  .has_from = inembed,  .has_to = onembed,           \
        .from_stride = istride,    .from_distance = idist,      .to_stride = ostride, .to_distance = odist,        \
        .batch = batch};                                                                                           \
    FFT_RETURN_IF(type_of(&request, type))
#define WIDE_REQUEST(name)                                                                                         \
    struct request request = {                                                                                     \
        .function = name,          .rank = rank,                .n = n,               .from = inembed,             \
        .to = onembed,             .has_n = n,                  .has_from = inembed,  .has_to = onembed,           \
        .from_stride = istride,    .from_distance = idist,      .to_stride = ostride, .to_distance = odist,        \
        .batch = batch}

static cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch) {
    REQUEST("cufftPlan1d", 1, ((const int[]){nx}), type, batch);
    return plan_now(plan, &request);
}
static cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type) {
    REQUEST("cufftPlan2d", 2, ((const int[]){nx, ny}), type, 1);
    return plan_now(plan, &request);
}
static cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type) {
    REQUEST("cufftPlan3d", 3, ((const int[]){nx, ny, nz}), type, 1);
    return plan_now(plan, &request);
}
static cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist,
                                 int *onembed, int ostride, int odist, cufftType type, int batch) {
    SMALL_REQUEST("cufftPlanMany", type);
    return plan_now(plan, &request);
}

static cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *size) {
    REQUEST("cufftMakePlan1d", 1, ((const int[]){nx}), type, batch);
    return make(plan, &request, size);
}
static cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *size) {
    REQUEST("cufftMakePlan2d", 2, ((const int[]){nx, ny}), type, 1);
    return make(plan, &request, size);
}
static cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *size) {
    REQUEST("cufftMakePlan3d", 3, ((const int[]){nx, ny, nz}), type, 1);
    return make(plan, &request, size);
}
static cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed, int istride, int idist,
                                     int *onembed, int ostride, int odist, cufftType type, int batch, size_t *size) {
    SMALL_REQUEST("cufftMakePlanMany", type);
    return make(plan, &request, size);
}
static cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride,
                                       long long idist, long long *onembed, long long ostride, long long odist,
                                       cufftType type, long long batch, size_t *size) {
    WIDE_REQUEST("cufftMakePlanMany64");
    FFT_RETURN_IF(type_of(&request, type));
    return make(plan, &request, size);
}
static cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride,
                                       long long idist, cudaDataType from, long long *onembed, long long ostride,
                                       long long odist, cudaDataType to, long long batch, size_t *size,
                                       cudaDataType inside) {
    WIDE_REQUEST("cufftXtMakePlanMany");
    FFT_RETURN_IF(types_of(&request, from, to, inside));
    return make(plan, &request, size);
}

static cufftResult cufftGetSize1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *size) {
    REQUEST("cufftGetSize1d", 1, ((const int[]){nx}), type, batch);
    return measure_of(plan, &request, size);
}
static cufftResult cufftGetSize2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *size) {
    REQUEST("cufftGetSize2d", 2, ((const int[]){nx, ny}), type, 1);
    return measure_of(plan, &request, size);
}
static cufftResult cufftGetSize3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *size) {
    REQUEST("cufftGetSize3d", 3, ((const int[]){nx, ny, nz}), type, 1);
    return measure_of(plan, &request, size);
}
static cufftResult cufftGetSizeMany(cufftHandle plan, int rank, int *n, int *inembed, int istride, int idist,
                                    int *onembed, int ostride, int odist, cufftType type, int batch, size_t *size) {
    SMALL_REQUEST("cufftGetSizeMany", type);
    return measure_of(plan, &request, size);
}
static cufftResult cufftGetSizeMany64(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride,
                                      long long idist, long long *onembed, long long ostride, long long odist,
                                      cufftType type, long long batch, size_t *size) {
    WIDE_REQUEST("cufftGetSizeMany64");
    FFT_RETURN_IF(type_of(&request, type));
    return measure_of(plan, &request, size);
}
static cufftResult cufftXtGetSizeMany(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride,
                                      long long idist, cudaDataType from, long long *onembed, long long ostride,
                                      long long odist, cudaDataType to, long long batch, size_t *size,
                                      cudaDataType inside) {
    WIDE_REQUEST("cufftXtGetSizeMany");
    FFT_RETURN_IF(types_of(&request, from, to, inside));
    return measure_of(plan, &request, size);
}

static cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t *size) {
    REQUEST("cufftEstimate1d", 1, ((const int[]){nx}), type, batch);
    return measure(&request, size);
}
static cufftResult cufftEstimate2d(int nx, int ny, cufftType type, size_t *size) {
    REQUEST("cufftEstimate2d", 2, ((const int[]){nx, ny}), type, 1);
    return measure(&request, size);
}
static cufftResult cufftEstimate3d(int nx, int ny, int nz, cufftType type, size_t *size) {
    REQUEST("cufftEstimate3d", 3, ((const int[]){nx, ny, nz}), type, 1);
    return measure(&request, size);
}
static cufftResult cufftEstimateMany(int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                                     int odist, cufftType type, int batch, size_t *size) {
    SMALL_REQUEST("cufftEstimateMany", type);
    return measure(&request, size);
}

const struct entry fft_plan_entries[] = {
    FFT_ENTRY(cufftCreate),
    FFT_ENTRY(cufftDestroy),
    FFT_ENTRY(cufftPlan1d),
    FFT_ENTRY(cufftPlan2d),
    FFT_ENTRY(cufftPlan3d),
    FFT_ENTRY(cufftPlanMany),
    FFT_ENTRY(cufftMakePlan1d),
    FFT_ENTRY(cufftMakePlan2d),
    FFT_ENTRY(cufftMakePlan3d),
    FFT_ENTRY(cufftMakePlanMany),
    FFT_ENTRY(cufftMakePlanMany64),
    FFT_ENTRY(cufftXtMakePlanMany),
    FFT_ENTRY(cufftGetSize1d),
    FFT_ENTRY(cufftGetSize2d),
    FFT_ENTRY(cufftGetSize3d),
    FFT_ENTRY(cufftGetSizeMany),
    FFT_ENTRY(cufftGetSizeMany64),
    FFT_ENTRY(cufftXtGetSizeMany),
    FFT_ENTRY(cufftEstimate1d),
    FFT_ENTRY(cufftEstimate2d),
    FFT_ENTRY(cufftEstimate3d),
    FFT_ENTRY(cufftEstimateMany),
    {NULL, NULL, NULL},
};
