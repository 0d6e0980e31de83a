/* The arithmetic of reductions.
 *
 * Numbers of 16 and 8 bits are calculated with as floats, and each result is rounded to their type, as NCCL's kernels do.
 * An average of floating-point numbers multiplies each by 1/ranks first, one of integers divides the sum. Integers wrap. */
#include <math.h>

#include "common/bits.h"
#include "math/base/convert.h"
#include "nccl.h"

enum { PART = 512 }; /* numbers that are reduced at a time: the target may be a source */

size_t type_size(ncclDataType_t type) {
    static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return sizes[type];
}

const char *type_name(ncclDataType_t type) {
    static const char *const names[] = {"int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
                                        "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
    return names[type];
}

const char *op_name(ncclRedOp_t op) {
    static const char *const names[] = {"sum", "prod", "max", "min", "avg"};
    return (unsigned)op < ncclNumOps ? names[op] : "premulsum";
}

static enum element narrow_of(ncclDataType_t type) {
    return type == ncclFloat16 ? H : type == ncclBfloat16 ? B : type == ncclFloat8e4m3 ? E4M3 : E5M2;
}

/* Integers: sums and products are the same for signed and unsigned ones, and wrap. */
#define INTEGERS(name, type, wide)                                                                                        \
    static void name(const struct reduction *reduction, void *target, const void *const *sources, int ranks,              \
                     size_t first, size_t count) {                                                                        \
        type sums[PART];                                                                                                  \
        wide factor = 1;                                                                                                  \
        if (reduction->op == ncclNumOps) {                                                                                \
            type given;                                                                                                   \
            memcpy(&given, reduction->factor.bytes, sizeof given);                                                        \
            factor = (wide)given;                                                                                         \
        }                                                                                                                 \
        for (int rank = 0; rank < ranks; rank++) {                                                                        \
            const type *source = (const type *)sources[rank] + first;                                                     \
            for (size_t i = 0; i < count; i++) {                                                                          \
                type one = source[i], other = rank ? sums[i] : 0;                                                         \
                switch ((int)reduction->op) {                                                                             \
                    case ncclProd: sums[i] = rank ? (type)((wide)other * (wide)one) : one; break;                         \
                    case ncclMax: sums[i] = rank && other > one ? other : one; break;                                     \
                    case ncclMin: sums[i] = rank && other < one ? other : one; break;                                     \
                    default: sums[i] = (type)((wide)other + (wide)one * factor);                                          \
                }                                                                                                         \
            }                                                                                                             \
        }                                                                                                                 \
        for (size_t i = 0; reduction->op == ncclAvg && i < count; i++) sums[i] = (type)(sums[i] / ranks);                 \
        memcpy((type *)target + first, sums, count * sizeof *sums);                                                       \
    }
INTEGERS(reduce_int8, int8_t, uint32_t)
INTEGERS(reduce_uint8, uint8_t, uint32_t)
INTEGERS(reduce_int32, int32_t, uint32_t)
INTEGERS(reduce_uint32, uint32_t, uint32_t)
INTEGERS(reduce_int64, int64_t, uint64_t)
INTEGERS(reduce_uint64, uint64_t, uint64_t)

/* Of two numbers one of which is none, the other: as the instructions min and max of GPUs. */
#define COMBINE(real, op, other, one, factor)                                           \
    ((op) == ncclProd  ? (real)((other) * (one))                                        \
     : (op) == ncclMax ? (isnan(other) || (other) < (one) ? (one) : (other))            \
     : (op) == ncclMin ? (isnan(other) || (other) > (one) ? (one) : (other))            \
                       : (real)((other) + (one) * (factor)))

static void reduce_double(const struct reduction *reduction, void *target, const void *const *sources, int ranks,
                          size_t first, size_t count) {
    double sums[PART], factor = reduction->op == ncclAvg ? 1.0 / ranks : 1;
    if (reduction->op == ncclNumOps) memcpy(&factor, reduction->factor.bytes, sizeof factor);
    bool scales = reduction->op == ncclAvg || reduction->op == ncclNumOps;
    for (int rank = 0; rank < ranks; rank++) {
        const double *source = (const double *)sources[rank] + first;
        for (size_t i = 0; i < count; i++)
            sums[i] = rank     ? COMBINE(double, reduction->op, sums[i], source[i], factor)
                      : scales ? source[i] * factor
                               : source[i];
    }
    memcpy((double *)target + first, sums, count * sizeof *sums);
}

/* Numbers of 32 bits and fewer. Each step is rounded to the type. */
static void reduce_floats(enum element type, const struct reduction *reduction, void *target,
                          const void *const *sources, int ranks, size_t first, size_t count) {
    float sums[PART], next[PART], factor = 1.0f / (float)ranks;
    uint16_t rounded[PART]; /* room for the narrow types */
    bool scales = reduction->op == ncclAvg || reduction->op == ncclNumOps;
    if (reduction->op == ncclNumOps) {
        load_floats(type, reduction->factor.bytes, 0, 1, 1, &factor);
    } else if (type != S) {
        store_floats(type, rounded, 0, 1, 1, &factor);
        load_floats(type, rounded, 0, 1, 1, &factor);
    }
#define ROUND(numbers)                                              \
    if (type != S) {                                                \
        store_floats(type, rounded, 0, 1, (int64_t)count, numbers); \
        load_floats(type, rounded, 0, 1, (int64_t)count, numbers);  \
    }
    for (int rank = 0; rank < ranks; rank++) {
        load_floats(type, sources[rank], (int64_t)first, 1, (int64_t)count, next);
        if (scales) {
            for (size_t i = 0; i < count; i++) next[i] *= factor;
            ROUND(next)
        }
        for (size_t i = 0; i < count; i++)
            sums[i] = rank ? COMBINE(float, reduction->op, sums[i], next[i], 1.0f) : next[i];
        if (rank) ROUND(sums)
    }
#undef ROUND
    store_floats(type, target, (int64_t)first, 1, (int64_t)count, sums);
}

void reduce(ncclDataType_t type, const struct reduction *reduction, void *target, const void *const *sources, int ranks,
            size_t count) {
    for (size_t first = 0; first < count; first += PART) {
        size_t part = count - first < PART ? count - first : PART;
        switch ((int)type) {
            case ncclInt8: reduce_int8(reduction, target, sources, ranks, first, part); break;
            case ncclUint8: reduce_uint8(reduction, target, sources, ranks, first, part); break;
            case ncclInt32: reduce_int32(reduction, target, sources, ranks, first, part); break;
            case ncclUint32: reduce_uint32(reduction, target, sources, ranks, first, part); break;
            case ncclInt64: reduce_int64(reduction, target, sources, ranks, first, part); break;
            case ncclUint64: reduce_uint64(reduction, target, sources, ranks, first, part); break;
            case ncclFloat64: reduce_double(reduction, target, sources, ranks, first, part); break;
            case ncclFloat32: reduce_floats(S, reduction, target, sources, ranks, first, part); break;
            default: reduce_floats(narrow_of(type), reduction, target, sources, ranks, first, part);
        }
    }
}
