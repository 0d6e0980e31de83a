/* Generators of cuRAND, and the functions that fill memory (cuRAND Library, chapter 2). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "rand.h"

struct curandGenerator_st {
    struct handle handle;
    bool on_host; /* fills memory of the host, in the call */
    cudaStream_t stream;
    struct rand_sequence *sequence;
    uint64_t position; /* the number that comes next */
    uint64_t offset;   /* that was set */
};

static curandStatus_t rand_fail(curandStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
static curandStatus_t rand_fail(curandStatus_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    math_explain((int)status, format, arguments);
    va_end(arguments);
    return status;
}

static curandStatus_t rand_status(CUresult status) {
    return (curandStatus_t)math_status(status, CURAND_STATUS_ALLOCATION_FAILED, CURAND_STATUS_LAUNCH_FAILURE,
                                       CURAND_STATUS_LAUNCH_FAILURE);
}

/* Begin a function of a generator. */
static curandStatus_t check(curandGenerator_t generator, const char *function) {
    if (likely(handle_is_live(generator, HANDLE_RAND))) return CURAND_STATUS_SUCCESS;
    return rand_fail(CURAND_STATUS_NOT_INITIALIZED, "%s: %p is no generator, or was destroyed", function,
                     (void *)generator);
}
#define CHECK(generator, function)                             \
    do {                                                       \
        curandStatus_t checked = check(generator, function);   \
        if (checked) return checked;                           \
    } while (0)

static void sequence_release(struct rand_sequence *sequence) {
    if (atomic_fetch_sub(&sequence->references, 1) != 1) return;
    pthread_mutex_destroy(&sequence->lock);
    free(sequence->lanes);
    free(sequence);
}

/* Work that is queued keeps the sequence that it was queued for. */
static struct rand_sequence *sequence_new(curandRngType_t type, uint64_t seed, curandOrdering_t order,
                                          uint64_t position, unsigned dimensions) {
    struct rand_sequence *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    pthread_mutex_init(&made->lock, NULL);
    made->references = 1;
    made->type = type;
    made->seed = seed;
    made->order = order;
    made->origin = made->position = position;
    made->dimensions = dimensions;
    return made;
}

static curandStatus_t restart(curandGenerator_t generator, uint64_t seed, curandOrdering_t order, unsigned dimensions) {
    struct rand_sequence *made = sequence_new(generator->sequence->type, seed, order, generator->position, dimensions);
    if (!made) return rand_fail(CURAND_STATUS_ALLOCATION_FAILED, "the host has no memory for a generator");
    sequence_release(generator->sequence);
    generator->sequence = made;
    return CURAND_STATUS_SUCCESS;
}

/* ---- generators -------------------------------------------------------------------------------------------------- */

static bool is_quasi(curandRngType_t type) {
    return type >= CURAND_RNG_QUASI_SOBOL32 && type <= CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
}

static bool is_wide(curandRngType_t type) {
    return type == CURAND_RNG_QUASI_SOBOL64 || type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
}

/* Which generators there are, and what fills memory with their numbers. */
typedef bool rand_filler(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target);
static rand_filler *filler_of(curandRngType_t type) {
    switch (type) {
        case CURAND_RNG_PSEUDO_XORWOW: return rand_xorwow;
        case CURAND_RNG_PSEUDO_MRG32K3A: return rand_mrg32k3a;
        case CURAND_RNG_PSEUDO_PHILOX4_32_10: return rand_philox;
        case CURAND_RNG_PSEUDO_MT19937: return rand_mt19937;
        case CURAND_RNG_PSEUDO_MTGP32: return rand_mtgp32;
        default: return is_quasi(type) ? rand_sobol : NULL;
    }
}

/* The Mersenne twisters, whose position cannot be set. */
static bool is_twister(curandRngType_t type) {
    return type == CURAND_RNG_PSEUDO_MT19937 || type == CURAND_RNG_PSEUDO_MTGP32;
}

/* Load the tables that a generator needs. False: they cannot be had, and the thread has an explanation. */
static bool load(curandRngType_t type) {
    return is_quasi(type) ? rand_sobol_load(type) : type != CURAND_RNG_PSEUDO_MTGP32 || rand_mtgp32_load();
}

static curandStatus_t create(const char *function, curandGenerator_t *generator, curandRngType_t type, bool on_host) {
    if (!generator) return rand_fail(CURAND_STATUS_NOT_INITIALIZED, "%s: 'generator' is a null pointer", function);
    if (type == CURAND_RNG_PSEUDO_DEFAULT) type = CURAND_RNG_PSEUDO_XORWOW;
    if (type == CURAND_RNG_QUASI_DEFAULT) type = CURAND_RNG_QUASI_SOBOL32;
    if (!filler_of(type)) return rand_fail(CURAND_STATUS_TYPE_ERROR, "%s: %d is no curandRngType", function, (int)type);
    if (!load(type)) {
        thread_state.failed = (CUresult)CURAND_STATUS_TYPE_ERROR; /* the explanation is there */
        return CURAND_STATUS_TYPE_ERROR;
    }
    if (!on_host && enter_runtime())
        return rand_fail(CURAND_STATUS_INITIALIZATION_FAILED, "%s: there is no usable context", function);
    struct curandGenerator_st *made = handle_new(HANDLE_RAND, sizeof *made);
    if (made && !(made->sequence = sequence_new(type, 0, CURAND_ORDERING_PSEUDO_BEST, 0, 1))) {
        handle_kill(made);
        if (handle_release(made)) handle_free(HANDLE_RAND, made);
        made = NULL;
    }
    if (!made)
        return rand_fail(CURAND_STATUS_ALLOCATION_FAILED, "%s: the host has no memory for a generator", function);
    made->on_host = on_host;
    *generator = made;
    return CURAND_STATUS_SUCCESS;
}

static curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type) {
    return create("curandCreateGenerator", generator, type, false);
}

static curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t type) {
    return create("curandCreateGeneratorHost", generator, type, true);
}

static curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
    CHECK(generator, "curandDestroyGenerator");
    if (!handle_kill(generator)) return check(generator, "curandDestroyGenerator");
    sequence_release(generator->sequence);
    if (handle_release(generator)) handle_free(HANDLE_RAND, generator);
    return CURAND_STATUS_SUCCESS;
}

static curandStatus_t curandGetVersion(int *version) {
    if (!version) return rand_fail(CURAND_STATUS_OUT_OF_RANGE, "curandGetVersion: 'version' is a null pointer");
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}

static curandStatus_t curandGetProperty(libraryPropertyType type, int *value) {
    static const int parts[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH};
    if ((unsigned)type > 2 || !value)
        return rand_fail(CURAND_STATUS_OUT_OF_RANGE, "curandGetProperty: %d is no property of a library", (int)type);
    *value = parts[type];
    return CURAND_STATUS_SUCCESS;
}

static curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
    CHECK(generator, "curandSetStream");
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}

static curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
    CHECK(generator, "curandSetPseudoRandomGeneratorSeed");
    if (is_quasi(generator->sequence->type))
        return rand_fail(CURAND_STATUS_TYPE_ERROR,
                         "curandSetPseudoRandomGeneratorSeed: quasirandom generators have no seed");
    return restart(generator, seed, generator->sequence->order, 1); /* the position stays, as in cuRAND */
}

static curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
    CHECK(generator, "curandSetGeneratorOffset");
    if (is_twister(generator->sequence->type))
        return rand_fail(CURAND_STATUS_TYPE_ERROR, "curandSetGeneratorOffset: Mersenne twisters have no offset");
    generator->position = generator->offset = offset;
    return restart(generator, generator->sequence->seed, generator->sequence->order, generator->sequence->dimensions);
}

/* DYNAMIC gives another sequence on each model of GPU. Only XORWOW has SEEDED. */
static curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
    CHECK(generator, "curandSetGeneratorOrdering");
    if (is_quasi(generator->sequence->type)) {
        if (order == CURAND_ORDERING_QUASI_DEFAULT) return CURAND_STATUS_SUCCESS;
        return rand_fail(CURAND_STATUS_OUT_OF_RANGE,
                         "curandSetGeneratorOrdering: %d is no ordering of a quasirandom generator", (int)order);
    }
    bool is_seeded = order == CURAND_ORDERING_PSEUDO_SEEDED && generator->sequence->type == CURAND_RNG_PSEUDO_XORWOW;
    if (is_seeded || order == CURAND_ORDERING_PSEUDO_BEST || order == CURAND_ORDERING_PSEUDO_DEFAULT ||
        order == CURAND_ORDERING_PSEUDO_LEGACY)
        return restart(generator, generator->sequence->seed, order, 1);
    if (order == CURAND_ORDERING_PSEUDO_DYNAMIC)
        return rand_fail(
            CURAND_STATUS_OUT_OF_RANGE,
            "curandSetGeneratorOrdering: the CPU device does not have the ordering DYNAMIC; it has BEST, DEFAULT and "
            "LEGACY, and SEEDED of XORWOW");
    return rand_fail(CURAND_STATUS_OUT_OF_RANGE, "curandSetGeneratorOrdering: %d is no ordering of this generator",
                     (int)order);
}

static curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator, unsigned dimensions) {
    enum { MOST = 20000 };
    CHECK(generator, "curandSetQuasiRandomGeneratorDimensions");
    if (!is_quasi(generator->sequence->type))
        return rand_fail(CURAND_STATUS_TYPE_ERROR,
                         "curandSetQuasiRandomGeneratorDimensions: only quasirandom generators have dimensions");
    if (!dimensions || dimensions > MOST)
        return rand_fail(CURAND_STATUS_OUT_OF_RANGE,
                         "curandSetQuasiRandomGeneratorDimensions: %u dimensions are none or more than %d", dimensions,
                         MOST);
    return restart(generator, 0, CURAND_ORDERING_QUASI_DEFAULT, dimensions);
}

/* What it makes ready is made when it is needed. */
static curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
    CHECK(generator, "curandGenerateSeeds");
    return CURAND_STATUS_SUCCESS;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

struct rand_call {
    struct call call;
    const char *function;
    struct rand_sequence *sequence;
    uint64_t position; /* when it was called: graphs draw from the same lanes again and again */
    enum rand_form form;
    void *target;
    size_t count;
    struct rand_poisson *poisson; /* NULL: these are no Poisson numbers */
};

static bool is_double(enum rand_form form) { return form == RAND_DOUBLE || form == RAND_DOUBLE_PAIR; }

static size_t size_of(const struct rand_sequence *sequence, enum rand_form form) {
    return is_double(form) || (form == RAND_BITS && is_wide(sequence->type)) ? sizeof(double) : sizeof(uint32_t);
}

static CUresult fill(struct rand_sequence *sequence, uint64_t position, enum rand_form form, void *target,
                     size_t count) {
    pthread_mutex_lock(&sequence->lock);
    sequence->position = position;
    bool done = filler_of(sequence->type)(sequence, form, count, target);
    pthread_mutex_unlock(&sequence->lock);
    return done ? CUDA_SUCCESS : no_memory("random numbers");
}

/* Poisson numbers are made of bits in their place, or, where these are longer, beside it. */
static CUresult fill_poisson(const struct rand_poisson *poisson, struct rand_sequence *sequence, uint64_t position,
                             uint32_t *target, size_t count) {
    bool wide = is_wide(sequence->type);
    void *bits = wide ? malloc(count * sizeof(uint64_t)) : target;
    if (!bits) return no_memory("random numbers");
    CUresult status = fill(sequence, position, RAND_BITS, bits, count);
    if (!status) rand_poisson_of(poisson, bits, wide, count, target);
    if (wide) free(bits);
    return status;
}

static CUresult run(struct call *call) {
    struct rand_call *self = (struct rand_call *)call;
    size_t size = self->poisson ? sizeof(uint32_t) : size_of(self->sequence, self->form);
    const bool writes_pairs = self->form >= RAND_PAIR && self->sequence->type == CURAND_RNG_PSEUDO_PHILOX4_32_10;
    const size_t written = self->count + (writes_pairs ? self->count % 2 : 0); /* for odd_normal */
    RETURN_IF(math_touch(self->function, "the output", self->target, written * size));
    if (self->poisson) return fill_poisson(self->poisson, self->sequence, self->position, self->target, self->count);
    return fill(self->sequence, self->position, self->form, self->target, self->count);
}

static void end(struct call *call) {
    free(((struct rand_call *)call)->poisson);
    sequence_release(((struct rand_call *)call)->sequence);
}

static curandStatus_t uneven(const char *function, curandGenerator_t generator, size_t count) {
    return rand_fail(CURAND_STATUS_LENGTH_NOT_MULTIPLE, "%s: %zu numbers are not as many in each of %u dimensions",
                     function, count, generator->sequence->dimensions);
}

/* By how much these numbers move the generator's position. */
static uint64_t visits(curandGenerator_t generator, enum rand_form form, size_t count) {
    if (is_quasi(generator->sequence->type)) return count / generator->sequence->dimensions;
    curandRngType_t type = generator->sequence->type;
    bool in_pairs = form >= RAND_PAIR && type != CURAND_RNG_PSEUDO_PHILOX4_32_10 && !is_twister(type);
    return in_pairs ? count / 2 : count;
}

/* A graph that is launched again draws new numbers from the same lanes, as on a GPU. Of others it is not known. */
static bool can_capture(curandGenerator_t generator, size_t count) {
    bool is_philox = generator->sequence->type == CURAND_RNG_PSEUDO_PHILOX4_32_10;
    curandRngType_t type = generator->sequence->type;
    return !is_quasi(type) && !is_twister(type) && !(is_philox && (generator->position % 4 || count % 4));
}

/* Generate numbers, and make Poisson numbers of them; `poisson` is this function's. */
static curandStatus_t generate_of(curandGenerator_t generator, const char *function, enum rand_form form, void *target,
                                  size_t count, struct rand_poisson *poisson) {
    struct rand_call call = {
        {1, run, end, false}, function, generator->sequence, generator->position, form, target, count, poisson};
    if (generator->on_host) {
        generator->position += visits(generator, form, count);
        CUresult status = poisson ? fill_poisson(poisson, call.sequence, call.position, target, count)
                                  : fill(call.sequence, call.position, form, target, count);
        free(poisson);
        return rand_status(status);
    }
    CUstream stream;
    CUresult status = math_stream(generator->stream, &stream);
    bool refused = !status && stream_is_capturing(stream) && !can_capture(generator, count);
    struct rand_call *made = status || refused ? NULL : malloc(sizeof *made);
    if (!made) free(poisson);
    if (refused)
        return rand_fail(
            CURAND_STATUS_LAUNCH_FAILURE,
            "%s: on the CPU device, numbers of Sobol sequences and of Mersenne twisters are not captured, nor those of "
            "PHILOX4_32_10 but in fours: generate them before the capture",
            function);
    if (!made) return rand_status(status ? status : no_memory("a call of cuRAND"));
    atomic_fetch_add(&generator->sequence->references, 1);
    *made = call;
    generator->position += visits(generator, form, count);
    return rand_status(math_submit(stream, &made->call, false));
}

static curandStatus_t generate(curandGenerator_t generator, const char *function, enum rand_form form, void *target,
                               size_t count) {
    CHECK(generator, function);
    if (!count) return CURAND_STATUS_SUCCESS;
    if (count % generator->sequence->dimensions) return uneven(function, generator, count);
    return generate_of(generator, function, form, target, count, NULL);
}

static curandStatus_t curandGenerate(curandGenerator_t generator, unsigned *target, size_t count) {
    CHECK(generator, "curandGenerate");
    if (count && is_wide(generator->sequence->type))
        return rand_fail(CURAND_STATUS_TYPE_ERROR, "curandGenerate: numbers of 64 bits are curandGenerateLongLong's");
    return generate(generator, "curandGenerate", RAND_BITS, target, count);
}

static curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *target, size_t count) {
    return generate(generator, "curandGenerateUniform", RAND_FLOAT, target, count);
}

static curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *target, size_t count) {
    return generate(generator, "curandGenerateUniformDouble", RAND_DOUBLE, target, count);
}

/* ---- normal numbers ---------------------------------------------------------------------------------------------- */

static curandStatus_t odd(const char *function, size_t count) {
    return rand_fail(CURAND_STATUS_LENGTH_NOT_MULTIPLE, "%s: %zu numbers are an odd number; they come in pairs",
                     function, count);
}

/* In memory of the stream that has room for the whole last pair. */
static curandStatus_t odd_normal(curandGenerator_t generator, CUstream stream, CUkernel kernel, const char *function,
                                 enum rand_form form, void *target, size_t count, double mean, double deviation) {
    CUdeviceptr room;
    CUresult status = cuMemAllocAsync(&room, (count + 1) * size_of(generator->sequence, form), stream);
    if (status) return rand_status(status);
    curandStatus_t filled = generate(generator, function, form, (void *)room, count);
    if (!filled) status = rand_normal(kernel, stream, (void *)room, (count + 1) / 2, is_double(form), mean, deviation);
    if (!filled && !status)
        status = cuMemcpyDtoDAsync((CUdeviceptr)target, room, count * size_of(generator->sequence, form), stream);
    CUresult freed = cuMemFreeAsync(room, stream);
    return filled ? filled : rand_status(status ? status : freed);
}

static curandStatus_t generate_normal(curandGenerator_t generator, const char *function, enum rand_form form,
                                      bool is_log, void *target, size_t count, double mean, double deviation) {
    CHECK(generator, function);
    /* By the inverse of the distribution, of which one draw makes one number. */
    const bool alone = is_quasi(generator->sequence->type) || is_twister(generator->sequence->type);
    const bool is_philox = generator->sequence->type == CURAND_RNG_PSEUDO_PHILOX4_32_10; /* takes odd numbers, too */
    if (count % 2 && !is_philox && !alone) return odd(function, count);
    if (!count) return CURAND_STATUS_SUCCESS;
    if (generator->on_host)
        return rand_fail(CURAND_STATUS_TYPE_ERROR,
                         "%s: the CPU device has no normal numbers of generators of the host, whose last bits are not "
                         "those of a device; create the generator with curandCreateGenerator",
                         function);
    if (count % generator->sequence->dimensions) return uneven(function, generator, count);
    if (alone && !is_double(form))
        return rand_fail(CURAND_STATUS_TYPE_ERROR,
                         "%s: the CPU device has normal numbers of Sobol sequences and of Mersenne twisters in double "
                         "precision only",
                         function);
    if (is_philox && (generator->offset % 4 || generator->position % 2))
        return rand_fail(
            CURAND_STATUS_TYPE_ERROR,
            "%s: the CPU device has normal numbers of PHILOX4_32_10 at offsets that are multiples of 4 and "
            "after even numbers of numbers; the offset is %llu and the position %llu",
            function, (unsigned long long)generator->offset, (unsigned long long)generator->position);
    CUstream stream;
    CUkernel kernel;
    CUresult status = math_stream(generator->stream, &stream);
    if (!status) status = rand_normal_kernel(generator->sequence->type, is_double(form), is_log, &kernel);
    if (status) return rand_status(status);
    if (count % 2 && !alone)
        return odd_normal(generator, stream, kernel, function, form, target, count, mean, deviation);
    curandStatus_t filled = generate(generator, function, form, target, count);
    if (filled) return filled;
    return rand_status(
        rand_normal(kernel, stream, target, alone ? count : count / 2, is_double(form), mean, deviation));
}

static curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *target, size_t count, float mean,
                                           float deviation) {
    return generate_normal(generator, "curandGenerateNormal", RAND_PAIR, false, target, count, (double)mean,
                           (double)deviation);
}

static curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double *target, size_t count, double mean,
                                                 double deviation) {
    return generate_normal(generator, "curandGenerateNormalDouble", RAND_DOUBLE_PAIR, false, target, count, mean,
                           deviation);
}

static curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float *target, size_t count, float mean,
                                              float deviation) {
    return generate_normal(generator, "curandGenerateLogNormal", RAND_PAIR, true, target, count, (double)mean,
                           (double)deviation);
}

static curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double *target, size_t count,
                                                    double mean, double deviation) {
    return generate_normal(generator, "curandGenerateLogNormalDouble", RAND_DOUBLE_PAIR, true, target, count, mean,
                           deviation);
}

static curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long *target, size_t count) {
    CHECK(generator, "curandGenerateLongLong");
    if (!count) return CURAND_STATUS_SUCCESS;
    if (is_wide(generator->sequence->type))
        return generate(generator, "curandGenerateLongLong", RAND_BITS, target, count);
    return rand_fail(CURAND_STATUS_TYPE_ERROR, "curandGenerateLongLong: only Sobol generators of 64 bits have it");
}

static curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned *target, size_t count, double mean) {
    const double most = 400000;
    const char *function = "curandGeneratePoisson";
    CHECK(generator, function);
    if (!count) return CURAND_STATUS_SUCCESS;
    curandRngType_t type = generator->sequence->type;
    if (!(mean > 0 && mean <= most))
        return rand_fail(CURAND_STATUS_OUT_OF_RANGE, "%s: the mean %g is not above 0, or larger than %g", function,
                         mean, most);
    if (count % generator->sequence->dimensions) return uneven(function, generator, count);
    if (mean >= rand_poisson_most(type))
        return rand_fail(CURAND_STATUS_OUT_OF_RANGE,
                         "%s: the CPU device has Poisson numbers of this generator for means below %g, and %g is not",
                         function, rand_poisson_most(type), mean);
    struct rand_poisson *poisson = rand_poisson_new(type, mean);
    if (!poisson) return rand_status(no_memory("Poisson numbers"));
    return generate_of(generator, function, RAND_BITS, target, count, poisson);
}

#define RAND_ENTRY(name) MATH_ENTRY(cupola_curand_table, name)

const struct entry rand_generator_entries[] = {
    RAND_ENTRY(curandCreateGenerator),
    RAND_ENTRY(curandCreateGeneratorHost),
    RAND_ENTRY(curandDestroyGenerator),
    RAND_ENTRY(curandGetVersion),
    RAND_ENTRY(curandGetProperty),
    RAND_ENTRY(curandSetStream),
    RAND_ENTRY(curandSetPseudoRandomGeneratorSeed),
    RAND_ENTRY(curandSetGeneratorOffset),
    RAND_ENTRY(curandSetGeneratorOrdering),
    RAND_ENTRY(curandSetQuasiRandomGeneratorDimensions),
    RAND_ENTRY(curandGenerateSeeds),
    RAND_ENTRY(curandGenerate),
    RAND_ENTRY(curandGenerateUniform),
    RAND_ENTRY(curandGenerateUniformDouble),
    RAND_ENTRY(curandGenerateNormal),
    RAND_ENTRY(curandGenerateNormalDouble),
    RAND_ENTRY(curandGenerateLogNormal),
    RAND_ENTRY(curandGenerateLogNormalDouble),
    RAND_ENTRY(curandGenerateLongLong),
    RAND_ENTRY(curandGeneratePoisson),
    {NULL, NULL, NULL},
};
