/* MRG32k3a (L'Ecuyer, "Good parameters and implementations for combined multiple recursive random number generators",
 * 1999): two recursions of order three, each modulo a prime. 81920 lanes (in the ordering LEGACY 4096), 2^76 numbers apart, so a lane's state is that
 * of the one before it times the 2^76th powers of the two matrices. */
#include <stdlib.h>
#include <string.h>

#include "rand.h"

enum { LANES = 81920, LEGACY_LANES = 4096, LANE_POWER = 76, POWERS = 64 };
static const uint64_t moduli[2] = {4294967087, 4294944443};
static const double TO_BITS = 1.000000048662, TO_UNIT = 2.3283065498378288e-10; /* those of cuRAND's device functions */

struct state {
    uint32_t s[2][3];
};
struct matrices {
    uint64_t m[2][3][3];
};

static struct matrices powers[POWERS + 1]; /* of one step, by 2^i; the last is that between lanes */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct matrices square(const struct matrices *a) {
    struct matrices result;
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                uint64_t sum = 0;
                for (int k = 0; k < 3; k++) sum = (sum + a->m[p][i][k] * a->m[p][k][j] % moduli[p]) % moduli[p];
                result.m[p][i][j] = sum;
            }
    return result;
}

static void make_powers(void) {
    struct matrices last = {{{{0, 1, 0}, {0, 0, 1}, {moduli[0] - 810728, 1403580, 0}},
                             {{0, 1, 0}, {0, 0, 1}, {moduli[1] - 1370589, 0, 527612}}}};
    powers[0] = last;
    for (int power = 1; power <= LANE_POWER; power++) {
        last = square(&last);
        if (power < POWERS) powers[power] = last;
    }
    powers[POWERS] = last;
}

static void multiply(const struct matrices *a, struct state *state) {
    struct state in = *state;
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < 3; i++) {
            uint64_t sum = 0;
            for (int k = 0; k < 3; k++) sum = (sum + a->m[p][i][k] * in.s[p][k] % moduli[p]) % moduli[p];
            state->s[p][i] = (uint32_t)sum;
        }
}

static double step(struct state *state) {
    multiply(&powers[0], state);
    uint64_t first = state->s[0][2], second = state->s[1][2];
    return (double)(first > second ? first - second : first + moduli[0] - second);
}

static size_t lanes_of(const struct rand_sequence *sequence) {
    return sequence->order == CURAND_ORDERING_PSEUDO_LEGACY ? LEGACY_LANES : LANES;
}

/* The lanes at the sequence's origin: before their draw number origin / count, or the one after it. */
static struct state *make_lanes(const struct rand_sequence *sequence) {
    const size_t count = lanes_of(sequence);
    struct state s, *lanes = malloc(count * sizeof *lanes);
    if (!lanes) return NULL;
    uint64_t words[2] = {(uint32_t)sequence->seed ^ 0x55555555u, (uint32_t)(sequence->seed >> 32) ^ 0xAAAAAAAAu};
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < 3; i++)
            s.s[p][i] = sequence->seed ? (uint32_t)(words[(p + i) % 2] * 12345 % moduli[p]) : 12345;
    for (int i = 0; i < POWERS; i++)
        if (sequence->origin / count >> i & 1) multiply(&powers[i], &s);
    for (size_t i = 0; i < count; i++) {
        lanes[i] = s;
        if (i < sequence->origin % count) step(&lanes[i]);
        multiply(&powers[POWERS], &s);
    }
    return lanes;
}

bool rand_mrg32k3a(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target) {
    const size_t lanes = lanes_of(sequence);
    pthread_once(&once, make_powers);
    if (!sequence->lanes && !(sequence->lanes = make_lanes(sequence))) return false;
    const bool is_pair = form >= RAND_PAIR;
    for (size_t i = 0; i < count; i++) {
        double z = step((struct state *)sequence->lanes + sequence->position % lanes);
        sequence->position += !is_pair || i % 2;
        if (form == RAND_BITS) ((uint32_t *)target)[i] = (uint32_t)(z * TO_BITS);
        else if (form == RAND_FLOAT || form == RAND_PAIR) ((float *)target)[i] = (float)(z * TO_UNIT);
        else ((double *)target)[i] = z * TO_UNIT;
    }
    return true;
}
