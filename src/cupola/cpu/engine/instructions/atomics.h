/* The atomic operations for instructions that do many of them: on bulk memory, surfaces and tensors (atomics.c). */
#ifndef CUPOLA_CPU_ATOMICS_H
#define CUPOLA_CPU_ATOMICS_H

#include "access.h"

/* One of the helpers of atomics.c, on generic addresses. */
typedef uint32_t cpu_atomic(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, const void *operands, const void *compares,
                            void *results);

/* Put each of `count` elements of so many bytes, at most 8, into the one in memory by an operation. Nonzero after a fault. */
uint32_t cpu_atomic_elements(cpu_context *context, cpu_warp *warp, cpu_site site, cpu_atomic *operation,
                             uint64_t address, const void *elements, uint32_t bytes, uint64_t count);

/* For tensors, the operations in the order of emit/memory/tensors.py. */
enum reduction {
    REDUCE_NONE,
    REDUCE_ADD,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_INC,
    REDUCE_DEC,
    REDUCE_AND,
    REDUCE_OR,
    REDUCE_XOR,
    REDUCTIONS
};

/* The elements of types, as far as operations tell them apart; a float keeps denormals or takes them as zero. */
enum reduced {
    REDUCED_U32,
    REDUCED_S32,
    REDUCED_U64,
    REDUCED_S64,
    REDUCED_F16,
    REDUCED_BF16,
    REDUCED_F32,
    REDUCED_F32_FLUSHED,
    REDUCED_F64,
    REDUCED_TYPES
};

/* The helper that does an operation; NULL: there is none for the type. */
cpu_atomic *cpu_atomic_find(enum reduction operation, enum reduced type);

#endif
