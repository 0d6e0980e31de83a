/* cuRAND: what its files share (cuRAND Library, https://docs.nvidia.com/cuda/curand).
 *
 * A generator is a sequence of numbers, and a position in it. cuRAND deals the sequence out to lanes, each of which has a
 * generator of its own: number p of the sequence comes from lane p mod `lanes`. How many lanes there are and how they
 * are apart was found out with the library, and what is here gives the library's numbers to the bit. What could not be
 * found out is refused. */
#ifndef CUPOLA_CPU_MATH_RAND_H
#define CUPOLA_CPU_MATH_RAND_H

#include <cupola/curand.h>

#include "math/base/math.h"

/* The last two are what two normal numbers are made of, in their place: bits or, of MRG32k3a, uniform numbers. */
enum rand_form { RAND_BITS, RAND_FLOAT, RAND_DOUBLE, RAND_PAIR, RAND_DOUBLE_PAIR };

/* The sequence of one seed; the state of its lanes is made when it is first needed. */
struct rand_sequence {
    pthread_mutex_t lock;
    _Atomic unsigned references; /* the generator's, and those of operations that are queued */
    curandRngType_t type;
    curandOrdering_t
        order; /* in LEGACY MRG32k3a and MTGP32 have fewer lanes, in SEEDED the lanes of XORWOW have seeds of their own */
    unsigned dimensions; /* of a quasirandom generator */
    uint64_t seed;
    uint64_t origin;   /* the first position: lanes before it have been drawn from when they are made */
    uint64_t position; /* of the number that comes next */
    void *lanes;       /* of the type: their states, or NULL */
};

/* Write the next `count` numbers. A double takes two draws of XORWOW and two blocks of Philox, so what a lane gives later
 * depends on what it was asked for, as in the library. Both numbers of a pair come from one lane, of XORWOW and MRG32k3a
 * as if it were one number. False: no memory. */
bool rand_xorwow(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target);
bool rand_mrg32k3a(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target);
bool rand_philox(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target);

bool rand_mt19937(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target);
bool rand_mtgp32(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target);

/* Tables of Sobol sequences and of MTGP32 (tables.c): NULL until they are loaded. False: they cannot be had, and the thread
 * has an explanation. */
const void *rand_table(curandRngType_t type);
bool rand_load_table(curandRngType_t type, size_t size);
bool rand_mtgp32_load(void);

/* Sobol sequences (sobol.c), whose tables are loaded first. False: they cannot be had, and the thread has an explanation. */
bool rand_sobol_load(curandRngType_t type);
bool rand_sobol(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target);

/* ---- Poisson numbers (poisson.c) --------------------------------------------------------------------------------- */

/* What turns a generator's numbers into Poisson numbers of that mean; NULL: no memory. */
struct rand_poisson *rand_poisson_new(curandRngType_t type, double mean);
double rand_poisson_most(curandRngType_t type); /* the mean up to which it can */
/* Of what a generator gives, 32 or 64 bits for each number, which may be in the place of the numbers. */
void rand_poisson_of(const struct rand_poisson *of, const void *bits, bool wide, size_t count, uint32_t *numbers);

/* ---- normal numbers (normal.c) ----------------------------------------------------------------------------------- */

/* The kernel for what the generator puts into its place: bits, uniform numbers, or the numbers of Sobol sequences. */
CUresult rand_normal_kernel(curandRngType_t type, bool is_double, bool is_log, CUkernel *kernel);
/* Queue it: the numbers become normal ones in their place. `count`: of pairs, or of numbers of Sobol sequences. */
CUresult rand_normal(CUkernel kernel, CUstream stream, void *numbers, size_t count, bool is_double, double mean,
                     double deviation);

/* Uniform in (0, 1], of 32 bits and of two times 32 bits. */
static inline float rand_float(uint32_t bits) { return (float)bits * 0x1p-32f + 0x1p-33f; }
static inline double rand_double(uint32_t low, uint32_t high) {
    return (double)((uint64_t)low ^ (uint64_t)high << 21) * 0x1p-53 + 0x1p-54;
}

#endif
