/* Poisson numbers. One draw gives one number, in one of two ways, of which each generator has its own for each mean:
 *
 * - By a square histogram (Marsaglia, Tsang and Wang, "Fast generation of discrete random variables", JSS 11, 2004): as many
 *   columns of the same height as there are numbers whose probability is not 0. A column is its own number's up to `limit`,
 *   and beyond that another one's, its donor's.
 * - By the inverse of the distribution: `limit` is the probability of a column's number and of all below. */
#include <math.h>
#include <stdlib.h>

#include "rand.h"

struct rand_poisson {
    bool is_inverse;
    uint32_t length, first; /* columns, and the number of the first one */
    struct column {
        double limit;
        uint32_t donor;
    } column[];
};

/* Which numbers have a probability, as doubles have it: those of the largest means begin far above 0. */
static double probability(double mean, double number) { return exp(number * log(mean) - mean - lgamma(number + 1)); }

static uint32_t first_of(double mean) {
    uint32_t low = 0, high = (uint32_t)mean;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (probability(mean, middle) > 0) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* Columns that are too low get what they lack from the last one that is too high, in order; one that has become too low
 * itself gets its own when the order comes to it, or in the next round. */
static void fill_columns(struct rand_poisson *made, double *heights, bool *done) {
    uint32_t length = made->length, donor = length;
    double level = 1.0 / length;
    while (donor && heights[donor - 1] < level) donor--;
    for (bool again = donor; again;) {
        again = false;
        for (uint32_t i = 0; i < length && donor; i++) {
            if (done[i] || heights[i] >= level) continue;
            made->column[i] = (struct column){i * level + heights[i], donor - 1};
            heights[donor - 1] -= level - heights[i];
            done[i] = again = true;
            while (donor && (done[donor - 1] || heights[donor - 1] < level)) donor--;
        }
    }
    for (uint32_t i = 0; i < length; i++)
        if (!done[i]) made->column[i] = (struct column){(i + 1) * level, i};
}

/* Below which means there are histograms, and then inverses. Beyond, normal numbers stand for them. */
static const struct ways {
    double histograms, inverses;
} *ways_of(curandRngType_t type) {
    static const struct ways usual = {2000, 0}, mtgp32 = {32, 8000}, sobol32 = {10, 8000}, sobol64 = {0, 2000};
    switch (type) {
        case CURAND_RNG_PSEUDO_MTGP32: return &mtgp32;
        case CURAND_RNG_QUASI_SOBOL32:
        case CURAND_RNG_QUASI_SCRAMBLED_SOBOL32: return &sobol32;
        case CURAND_RNG_QUASI_SOBOL64:
        case CURAND_RNG_QUASI_SCRAMBLED_SOBOL64: return &sobol64;
        default: return &usual;
    }
}

double rand_poisson_most(curandRngType_t type) {
    const struct ways *ways = ways_of(type);
    return ways->inverses > ways->histograms ? ways->inverses : ways->histograms;
}

struct rand_poisson *rand_poisson_new(curandRngType_t type, double mean) {
    uint32_t first = first_of(mean), end = (uint32_t)mean + 1;
    while (probability(mean, end) > 0) end++;
    uint32_t length = end - first;
    struct rand_poisson *made = malloc(sizeof *made + length * sizeof *made->column);
    double *heights = malloc(length * sizeof *heights);
    bool *done = calloc(length, sizeof *done);
    if (made && heights && done) {
        *made = (struct rand_poisson){mean >= ways_of(type)->histograms, length, first};
        for (uint32_t i = 0; i < length; i++) heights[i] = probability(mean, first + i);
        double sum = 0;
        if (made->is_inverse)
            for (uint32_t i = 0; i < length; i++) made->column[i].limit = sum += heights[i];
        else fill_columns(made, heights, done);
    } else {
        free(made);
        made = NULL;
    }
    free(heights), free(done);
    return made;
}

static uint32_t at(const struct rand_poisson *of, double uniform) {
    if (!of->is_inverse) {
        uint32_t i = (uint32_t)(of->length * uniform);
        if (i >= of->length) i = of->length - 1; /* 1 is a uniform number, too */
        return of->first + (uniform < of->column[i].limit ? i : of->column[i].donor);
    }
    uint32_t low = 0, high = of->length - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (of->column[middle].limit >= uniform) high = middle;
        else low = middle + 1;
    }
    return of->first + low;
}

void rand_poisson_of(const struct rand_poisson *of, const void *bits, bool wide, size_t count, uint32_t *numbers) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = at(of, wide ? (double)(((const uint64_t *)bits)[i] >> 11) * 0x1p-53 + 0x1p-54
                                 : ((double)((const uint32_t *)bits)[i] + 1) * 0x1p-32);
}
