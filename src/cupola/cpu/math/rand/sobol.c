/* Sobol sequences (Sobol, 1967; Antonov and Saleev, 1979): number i of a dimension is the exclusive or of those of its
 * direction vectors whose bits i's Gray code has, and of a constant where it is scrambled. The tables are NVIDIA's, from
 * its library (cpu/quasirandom.py). All numbers of one dimension come before those of the next. */
#include "rand.h"

enum { DIMENSIONS = 20000 };

static bool is_wide(curandRngType_t type) { return type >= CURAND_RNG_QUASI_SOBOL64; }

bool rand_sobol_load(curandRngType_t type) {
    const size_t bits = is_wide(type) ? 64 : 32;
    return rand_load_table(type, DIMENSIONS * (bits + 1) * bits / 8);
}

static uint64_t at(const void *table, bool wide, size_t index) {
    return wide ? ((const uint64_t *)table)[index] : ((const uint32_t *)table)[index];
}

static void store(enum rand_form form, bool wide, void *target, size_t i, uint64_t x) {
    switch (form) {
        case RAND_BITS:
            if (wide) ((uint64_t *)target)[i] = x;
            else ((uint32_t *)target)[i] = (uint32_t)x;
            return;
        case RAND_FLOAT: ((float *)target)[i] = rand_float((uint32_t)(wide ? x >> 32 : x)); return;
        case RAND_DOUBLE_PAIR: ((uint64_t *)target)[i] = x; return;
        default: ((double *)target)[i] = wide ? (double)(x >> 11) * 0x1p-53 + 0x1p-54 : ((double)x + 1) * 0x1p-32;
    }
}

bool rand_sobol(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target) {
    const void *table = rand_table(sequence->type);
    const bool wide = is_wide(sequence->type);
    const size_t bits = wide ? 64 : 32, points = count / sequence->dimensions;
    for (size_t dimension = 0; dimension < sequence->dimensions; dimension++) {
        uint64_t index = sequence->position, gray = index ^ index >> 1;
        uint64_t x = at(table, wide, DIMENSIONS * bits + dimension);
        for (size_t bit = 0; bit < bits; bit++)
            if (gray >> bit & 1) x ^= at(table, wide, dimension * bits + bit);
        for (size_t i = 0; i < points; i++) {
            store(form, wide, target, dimension * points + i, x);
            unsigned changed = (unsigned)__builtin_ctzll(++index | UINT64_C(1) << (bits - 1));
            x ^= at(table, wide, dimension * bits + changed);
        }
    }
    sequence->position += points;
    return true;
}
