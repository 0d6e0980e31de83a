/* The atomic operations that reductions by tensor maps are made of, by number (atomics.c). */
#ifndef CUPOLA_CPU_ATOMICS_H
#define CUPOLA_CPU_ATOMICS_H

#include "access.h"

/* In the order of emit/memory/tensors.py. */
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

typedef uint32_t cpu_atomic(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, const void *operands, const void *compares,
                            void *results);

/* The helper that does an operation on generic addresses; NULL: there is none for the type. */
cpu_atomic *cpu_atomic_find(enum reduction operation, enum reduced type);

#endif
