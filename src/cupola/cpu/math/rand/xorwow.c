/* XORWOW (Marsaglia, "Xorshift RNGs", 2003): five words that are shifted and combined, which is linear over bits, and a
 * counter. 4096 lanes, 2^67 numbers apart: a lane's state is that of the one before it times a matrix of 160 by 160
 * bits, the 2^67th power of that of one step (cuRAND Library, 2.2.2). In the ordering SEEDED each lane has a seed. */
#include <stdlib.h>
#include <string.h>

#include "rand.h"

enum { LANES = 4096, WORDS = 5, BITS = 32 * WORDS, LANE_POWER = 67, POWERS = 64, STEP = 362437, SEED_STEP = 3133713 };

struct state {
    uint32_t word[WORDS], counter;
};

/* Row i is what bit i of a state becomes. */
struct matrix {
    uint32_t row[BITS][WORDS];
};

static struct matrix *powers; /* of one step, by 2^i; the last is that between lanes */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t step(struct state *s) {
    uint32_t t = s->word[0] ^ s->word[0] >> 2;
    for (int i = 0; i < WORDS - 1; i++) s->word[i] = s->word[i + 1];
    s->word[4] = (s->word[4] ^ s->word[4] << 4) ^ (t ^ t << 1);
    s->counter += STEP;
    return s->word[4] + s->counter;
}

static void multiply(const struct matrix *m, const uint32_t in[WORDS], uint32_t out[WORDS]) {
    uint32_t sum[WORDS] = {0};
    for (int i = 0; i < BITS; i++)
        if (in[i / 32] >> i % 32 & 1)
            for (int j = 0; j < WORDS; j++) sum[j] ^= m->row[i][j];
    memcpy(out, sum, sizeof sum);
}

static void make_powers(void) {
    struct matrix *made = malloc((POWERS + 1) * sizeof *made), square;
    if (!made) return;
    for (int i = 0; i < BITS; i++) {
        struct state s = {0};
        s.word[i / 32] = UINT32_C(1) << i % 32;
        step(&s);
        memcpy(made[0].row[i], s.word, sizeof s.word);
    }
    struct matrix last = made[0];
    for (int power = 1; power <= LANE_POWER; power++) {
        for (int i = 0; i < BITS; i++) multiply(&last, last.row[i], square.row[i]);
        last = square;
        if (power < POWERS) made[power] = last;
    }
    made[POWERS] = last;
    powers = made;
}

/* The state of a seed before its draw number `draw`. */
static struct state begin(uint64_t seed, uint64_t draw) {
    uint32_t s0 = (uint32_t)seed ^ 0xaad26b49, s1 = (uint32_t)(seed >> 32) ^ 0xf7dcefdd;
    uint32_t t0 = UINT32_C(1099087573) * s0, t1 = UINT32_C(2591861531) * s1;
    struct state s = {
        {123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0},
        6615241 + t1 + t0 + STEP * (uint32_t)draw,
    };
    for (int i = 0; i < POWERS; i++)
        if (draw >> i & 1) multiply(&powers[i], s.word, s.word);
    return s;
}

/* The lanes at the sequence's origin: before their draw number origin / LANES, or the one after it. */
static struct state *make_lanes(const struct rand_sequence *sequence) {
    struct state *lanes = malloc(LANES * sizeof *lanes);
    if (!lanes) return NULL;
    bool seeded = sequence->order == CURAND_ORDERING_PSEUDO_SEEDED;
    uint64_t draw = sequence->origin / LANES;
    struct state s = begin(sequence->seed, draw);
    for (int i = 0; i < LANES; i++) {
        if (seeded && i) s = begin(sequence->seed + (uint64_t)i * SEED_STEP, draw);
        lanes[i] = s;
        if (i < (int)(sequence->origin % LANES)) step(&lanes[i]);
        if (!seeded) multiply(&powers[POWERS], s.word, s.word); /* 2^67 steps leave the counter as it is */
    }
    return lanes;
}

bool rand_xorwow(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target) {
    pthread_once(&once, make_powers);
    if (!powers) return false;
    if (!sequence->lanes && !(sequence->lanes = make_lanes(sequence))) return false;
    if (form >= RAND_PAIR) {
        const int words = form == RAND_PAIR ? 1 : 2;
        uint32_t *next = target;
        for (size_t i = 0; i < count; i += 2) {
            struct state *lane = (struct state *)sequence->lanes + sequence->position++ % LANES;
            for (int j = 0; j < 2 * words; j++) *next++ = step(lane);
        }
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        struct state *lane = (struct state *)sequence->lanes + sequence->position++ % LANES;
        uint32_t bits = step(lane);
        if (form == RAND_BITS) ((uint32_t *)target)[i] = bits;
        else if (form == RAND_FLOAT) ((float *)target)[i] = rand_float(bits);
        else ((double *)target)[i] = rand_double(bits, step(lane));
    }
    return true;
}
