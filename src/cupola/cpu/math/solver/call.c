/* Calls of cuSOLVER on their way into a stream, and what all of them need while they run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "solver.h"

/* ---- checks -------------------------------------------------------------------------------------------------------- */

cusolverStatus_t solver_begin(struct solver *s) {
    SOLVER_RETURN_IF(solver_check(s->handle, s->function));
    if (!s->wrong) s->wrong = CUSOLVER_STATUS_INVALID_VALUE;
    if (!s->by_number || (s->type <= Z && s->other_type == s->type)) return CUSOLVER_STATUS_SUCCESS;
    return solver_refuse(
        s, CUSOLVER_STATUS_INVALID_VALUE, s->quiet_types ? QUIET : 0,
        "%s: the types are those of one computation in CUDA_R_32F, CUDA_R_64F, CUDA_C_32F or CUDA_C_64F", s->function);
}

static int64_t tell_one(struct solver *s, void **at, int64_t i) {
    (void)at;
    return i ? 0 : s->first;
}

cusolverStatus_t solver_refuse(struct solver *s, cusolverStatus_t status, int position, const char *format, ...) {
    if (position != QUIET && s->info && !s->asks) {
        struct solver told = {.handle = s->handle, .function = s->function, .info = s->info, .one = tell_one};
        told.first = s->positive ? position : -position;
        if (s->positive) told.batch = larger(s->batch, 1); /* the others become 0 */
        solver_submit(&told);
    }
    va_list arguments;
    va_start(arguments, format);
    math_explain((int)status, format, arguments);
    va_end(arguments);
    return status;
}

/* LAPACK takes memory of the host for itself. The size is what a program can allocate. */
cusolverStatus_t solver_answer(struct solver *s, int64_t elements) {
    elements = larger(elements, 1);
    SOLVER_CHECK(s->by_number ? s->bytes && s->host_bytes : s->size || s->bytes,
                 "%s: a null pointer has no room for the size", s->function);
    if (s->size) *s->size = (int)smaller(elements, INT32_MAX);
    if (s->bytes) *s->bytes = (size_t)elements * element_size(s->type);
    if (s->host_bytes) *s->host_bytes = 0;
    return CUSOLVER_STATUS_SUCCESS;
}

/* ---- what is used -------------------------------------------------------------------------------------------------- */

void use_matrix(struct solver *s, enum place place, const char *what, void *at, int64_t rows, int64_t columns,
                int64_t ld) {
    s->operand[place] =
        (struct operand){.what = what, .at = at, .type = s->type, .rows = rows, .columns = columns, .ld = ld};
}

void use_vector(struct solver *s, enum place place, const char *what, void *at, enum element type, int64_t n) {
    s->operand[place] =
        (struct operand){.what = what, .at = at, .type = type, .rows = n, .columns = 1, .ld = n, .stride = n};
}

void use_pivots(struct solver *s, int64_t n) {
    if (s->pivots) use_vector(s, AT_PIVOTS, "the pivots", s->pivots, s->wide_pivots ? I64 : I32, n);
}

/* ---- while it runs ------------------------------------------------------------------------------------------------- */

static CUresult touch(const struct solver *s, const struct operand *operand, const void *at) {
    if (operand->rows <= 0 || operand->columns <= 0) return CUDA_SUCCESS;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)operand->columns - 1, (size_t)operand->ld, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)operand->rows, &bytes) ||
        __builtin_mul_overflow(bytes, element_size(operand->type), &bytes))
        bytes = SIZE_MAX;
    return math_touch(s->function, operand->what, at, bytes);
}

static void *place_of(const struct operand *operand, int64_t i) {
    if (!operand->what) return NULL;
    if (operand->pointers) return ((void **)operand->at)[i];
    return element_at(operand->at, operand->type, i * operand->stride);
}

static CUresult touch_all(const struct solver *s, int64_t count) {
    for (int place = 0; place < PLACES; place++) {
        const struct operand *operand = &s->operand[place];
        if (!operand->what) continue;
        if (operand->pointers)
            RETURN_IF(math_touch(s->function, "the array of matrices", operand->at, (size_t)count * sizeof(void *)));
        for (int64_t i = 0; i < count; i++) RETURN_IF(touch(s, operand, place_of(operand, i)));
    }
    return CUDA_SUCCESS;
}

static void *work(void *argument) {
    struct solver *s = argument;
    int64_t count = larger(s->batch, 1);
    for (int64_t i; (i = atomic_fetch_add(&s->next, 1)) < count;) {
        void *at[PLACES];
        for (int place = 0; place < PLACES; place++) at[place] = place_of(&s->operand[place], i);
        int64_t info = s->one(s, at, i);
        if (info == LAPACK_NO_MEMORY) s->failed = true;
        else if (at[AT_INFO]) *(int *)at[AT_INFO] = (int)info;
    }
    return NULL;
}

enum { THREADS_MOST = 64, WORTH_A_THREAD = 200000 }; /* multiplications */

/* The matrices of a batch, on as many threads as there is work for. */
static void spread(struct solver *s) {
    int64_t count = larger(s->batch, 1), size = larger(s->m, s->n);
    double each = 10.0 * (double)size * (double)size * (double)size;
    int64_t threads = smaller(smaller(math_threads(), THREADS_MOST), count);
    threads = smaller(threads, 1 + (int64_t)(each * (double)count / WORTH_A_THREAD));
    pthread_t started[THREADS_MOST];
    int64_t running = 0;
    while (running < threads - 1 && thread_start_joined(&started[running], work, s)) running++;
    work(s);
    for (int64_t i = 0; i < running; i++) pthread_join(started[i], NULL);
}

/* On a copy: graphs that were made of one another may run the same call at the same time. */
static CUresult run(struct call *call) {
    struct solver s;
    memcpy((void *)&s, call, sizeof s);
    RETURN_IF(touch_all(&s, larger(s.batch, 1)));
    spread(&s);
    if (s.bad_pivot)
        return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "%s: pivot %lld is none of a matrix with %lld rows", s.function,
                    (long long)s.bad_pivot, (long long)larger(s.n, s.m));
    return s.failed ? no_memory("a factorization") : CUDA_SUCCESS;
}

static void end(struct call *call) {
    struct solver *s = (struct solver *)call;
    if (s->object && handle_release(s->object)) handle_free(HANDLE_SOLVER_OBJECT, s->object);
}

cusolverStatus_t solver_submit(struct solver *s) {
    struct solver *made = malloc(sizeof *made);
    if (!made) return solver_status(no_memory("a call of cuSOLVER"));
    if (s->batch && !larger(s->m, s->n) && !s->info) { /* nothing to do for any of them */
        free(made);
        return CUSOLVER_STATUS_SUCCESS;
    }
    if (!s->silent && (s->info || s->must_tell)) use_vector(s, AT_INFO, "devInfo", s->info, I32, 1);
    memcpy((void *)made, s, sizeof *made);
    made->call.references = 1;
    made->call.run = run, made->call.end = end;
    if (made->object) handle_retain(made->object);
    CUstream stream;
    CUresult status = math_stream(s->handle->stream, &stream);
    if (unlikely(status)) {
        call_release(&made->call);
        return solver_status(status);
    }
    return solver_status(math_submit(stream, &made->call, s->count || s->wide_count || s->values));
}

/* ---- for the routines ---------------------------------------------------------------------------------------------- */

int64_t *pivots_read(struct solver *s, const void *at, int64_t n, int64_t most, bool blocks) {
    int64_t *pivots = malloc((size_t)larger(n, 1) * sizeof *pivots), bad = 0;
    if (!pivots) return NULL;
    for (int64_t i = 0; i < n; i++) pivots[i] = s->wide_pivots ? ((const int64_t *)at)[i] : ((const int *)at)[i];
    for (int64_t i = 0; i < n && !bad; i++) {
        int64_t pivot = pivots[i];
        if (blocks && pivot < 0 && pivot >= -most && i + 1 < n && pivots[i + 1] == pivot) i++;
        else if (pivot < 1 || pivot > most) bad = i + 1;
    }
    if (!bad) return pivots;
    s->bad_pivot = bad;
    free(pivots);
    return NULL;
}

void pivots_write(const struct solver *s, void *at, const int64_t *pivots, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (s->wide_pivots) ((int64_t *)at)[i] = pivots[i];
        else ((int *)at)[i] = (int)pivots[i];
    }
}

static bool finite_at(enum element type, const void *a, int64_t index) {
    number value = element_load(type, a, index);
    return isfinite(creal(value)) && isfinite(cimag(value));
}

bool all_finite(enum element type, const void *a, int64_t rows, int64_t columns, int64_t ld) {
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            if (!finite_at(type, a, j * ld + i)) return false;
    return true;
}

bool triangle_finite(enum element type, const void *a, int64_t n, int64_t ld, bool upper) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = upper ? 0 : j; i < (upper ? j + 1 : n); i++)
            if (!finite_at(type, a, j * ld + i)) return false;
    return true;
}

void fill_nan(enum element type, void *a, int64_t rows, int64_t columns, int64_t ld) {
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) element_store(type, a, j * ld + i, CMPLX(NAN, NAN));
}

void copy_block(enum element type, const void *from, int64_t from_ld, void *to, int64_t to_ld, int64_t rows,
                int64_t columns) {
    for (int64_t j = 0; j < columns; j++)
        memcpy(element_at(to, type, j * to_ld), element_at(from, type, j * from_ld), (size_t)rows * element_size(type));
}
