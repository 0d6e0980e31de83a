/* MT19937 (Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8, 1998): 8192 lanes, 2^2048 numbers apart. A step of the
 * generator is a linear map of its 19937 bits, so 2^2048 of them are a polynomial in it, modulo its characteristic
 * polynomial (Haramoto et al., "Efficient jump ahead for F2-linear random number generators", 2008). */
#include <stdlib.h>
#include <string.h>

#include "rand.h"

/* Eight neighbors share a lane. They take its 624 numbers in 78 rows: one each, at eight places, and eleven times seven. */
enum { LANES = 8192, SHARE = 8, WIDTH = LANES * SHARE, WORDS = 624, ROWS = WORDS / SHARE, MIDDLE = 397, AT_ONCE = 7 };
enum { DEGREE = 19937, PARTS = (DEGREE + 63) / 64, DISTANCE_POWER = 2048 };
static const uint16_t first_row[SHARE] = {0, 113, 170, 283, 340, 397, 510, 567};
static const uint16_t chunks[] = {1, 57, 114, 171, 227, 284, 341, 398, 454, 511, 568};

static int place_of(unsigned row, unsigned share) {
    if (!row) return first_row[share];
    return chunks[(row - 1) / AT_ONCE] + (row - 1) % AT_ONCE + AT_ONCE * share;
}

static uint32_t recur(uint32_t a, uint32_t b, uint32_t middle) {
    uint32_t y = (a & 0x80000000) | (b & 0x7fffffff);
    return middle ^ y >> 1 ^ (-(y & 1) & 0x9908b0df);
}

/* ---- the distance of lanes --------------------------------------------------------------------------------------- */

/* Exponents of the characteristic polynomial's terms, but for the highest. */
static const uint16_t terms[] = {
    0,     1189,  1416,  1585,  1643,  1870,  2493,  2773,  3000,  3227,  3454,  3681,  3908,  4135,  4362,
    4753,  5661,  6337,  6569,  7129,  7477,  7525,  7583,  7752,  7979,  8206,  9505,  9901,  9969,  10128,
    10693, 10761, 10920, 11089, 11147, 11157, 11215, 11321, 11374, 11384, 11485, 11611, 11712, 11717, 11838,
    11881, 11944, 11997, 12277, 12335, 12393, 12504, 12509, 12620, 12673, 12731, 12736, 12789, 12905, 12958,
    12963, 13137, 13185, 13190, 13243, 13301, 13412, 13528, 13533, 13639, 13697, 13760, 13813, 13866, 14093,
    14151, 14209, 14320, 14325, 14436, 14547, 14552, 14605, 14721, 14774, 14779, 14953, 15001, 15006, 15059,
    15117, 15228, 15344, 15349, 15455, 15513, 15576, 15629, 15682, 15909, 15967, 16025, 16136, 16141, 16252,
    16363, 16368, 16421, 16537, 16590, 16595, 16817, 16822, 16875, 16933, 17044, 17160, 17271, 17329, 17445,
    17498, 17725, 17783, 17841, 17952, 18068, 18179, 18237, 18406, 18633, 18691, 18860, 19087, 19314};

static uint64_t apart[PARTS + 1]; /* x^(2^2048), modulo the polynomial */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Bits of a number as the even bits of another. */
static uint64_t spread(uint64_t x) {
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
    x = (x | x << 2) & 0x3333333333333333;
    return (x | x << 1) & 0x5555555555555555;
}

/* Replace the terms x^exponent, x^(exponent + 1), ... that `bits` has by those of lower exponents. */
static void reduce(uint64_t *polynomial, uint64_t bits, int exponent) {
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        int to = exponent - DEGREE + terms[i];
        polynomial[to / 64] ^= bits << to % 64;
        if (to % 64) polynomial[to / 64 + 1] ^= bits >> (64 - to % 64);
    }
}

static void make_apart(void) {
    apart[0] = 2;
    for (int power = 0; power < DISTANCE_POWER; power++) {
        uint64_t square[2 * PARTS + 1] = {0};
        for (int i = 0; i < PARTS; i++) {
            square[2 * i] = spread((uint32_t)apart[i]);
            square[2 * i + 1] = spread(apart[i] >> 32);
        }
        for (int i = 2 * PARTS - 1; i >= PARTS; i--)
            while (square[i]) { /* the polynomial's second highest term is far below */
                uint64_t bits = square[i];
                square[i] = 0;
                reduce(square, bits, 64 * i);
            }
        uint64_t bits = square[PARTS - 1] >> DEGREE % 64;
        square[PARTS - 1] ^= bits << DEGREE % 64;
        reduce(square, bits, DEGREE);
        memcpy(apart, square, PARTS * sizeof *apart);
    }
}

/* The states of a generator and those behind it, added up as `apart` says, four at a time. */
enum { COUNT = DEGREE + WORDS + 4, SUMS = 16, AT_A_TIME = 48 };
typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));
struct room {
    uint32_t numbers[COUNT + 4], sums[SUMS][COUNT];
};

static void move_on(uint32_t state[WORDS], struct room *room) {
    uint32_t *numbers = room->numbers;
    memcpy(numbers, state, WORDS * sizeof *state);
    for (int i = WORDS; i < COUNT + 4; i++)
        numbers[i] = recur(numbers[i - WORDS], numbers[i - WORDS + 1], numbers[i - WORDS + MIDDLE]);
    for (int s = 1; s < SUMS; s++) { /* the first sum is that of none */
        const uint32_t *other = room->sums[s & (s - 1)], *moved = numbers + __builtin_ctz((unsigned)s);
        for (int i = 0; i < COUNT; i++) room->sums[s][i] = other[i] ^ moved[i];
    }
    for (int first = 0; first < WORDS; first += AT_A_TIME) { /* so many stay in registers */
        quad part[AT_A_TIME / 4] = {0};
        for (int i = 0; i < DEGREE; i += 4) {
            const quad *sum = (const quad *)(room->sums[apart[i / 64] >> i % 64 & (SUMS - 1)] + i + first);
            for (int j = 0; j < AT_A_TIME / 4; j++) part[j] ^= sum[j];
        }
        memcpy(state + first, part, sizeof part);
    }
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

struct lanes {
    uint32_t next[WORDS]; /* the state of lane number `ready`, before its first numbers */
    unsigned ready;       /* so many lanes are made */
    uint64_t block;       /* `word` is the state behind so many times 624 numbers, and one more */
    struct room room;     /* to make them */
    uint32_t word[WORDS][LANES];
};

static struct lanes *make_lanes(uint64_t seed) {
    struct lanes *lanes = calloc(1, sizeof *lanes);
    if (!lanes) return NULL;
    lanes->next[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < WORDS; i++)
        lanes->next[i] = UINT32_C(1812433253) * (lanes->next[i - 1] ^ lanes->next[i - 1] >> 30) + i;
    return lanes;
}

/* Lanes are made when the first number of each is needed. */
static void make_lane(struct lanes *lanes) {
    uint32_t state[WORDS];
    memcpy(state, lanes->next, sizeof state);
    for (int i = 0; i < WORDS; i++) {
        state[i] = recur(state[i], state[(i + 1) % WORDS], state[(i + MIDDLE) % WORDS]);
        lanes->word[i][lanes->ready] = state[i];
    }
    if (++lanes->ready < LANES) move_on(lanes->next, &lanes->room);
}

static void advance(struct lanes *lanes) {
    for (int i = 0; i < WORDS; i++) {
        uint32_t *a = lanes->word[i], *b = lanes->word[(i + 1) % WORDS], *middle = lanes->word[(i + MIDDLE) % WORDS];
        for (int lane = 0; lane < LANES; lane++) a[lane] = recur(a[lane], b[lane], middle[lane]);
    }
    lanes->block++;
}

static uint32_t temper(uint32_t x) {
    x ^= x >> 11;
    x ^= x << 7 & 0x9d2c5680;
    x ^= x << 15 & 0xefc60000;
    return x ^ x >> 18;
}

bool rand_mt19937(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target) {
    pthread_once(&once, make_apart);
    if (!sequence->lanes && !(sequence->lanes = make_lanes(sequence->seed))) return false;
    struct lanes *lanes = sequence->lanes;
    for (size_t i = 0; i < count; i++, sequence->position++) {
        unsigned lane = sequence->position % WIDTH / SHARE, row = (unsigned)(sequence->position / WIDTH % ROWS);
        uint64_t block = sequence->position / WIDTH / ROWS;
        unsigned needed = block ? LANES : lane + 1;
        while (lanes->ready < needed) make_lane(lanes);
        while (lanes->block < block) advance(lanes);
        uint32_t bits = temper(lanes->word[place_of(row, sequence->position % SHARE)][lane]);
        if (form == RAND_FLOAT) ((float *)target)[i] = (float)(((double)bits + 0.5) * 0x1p-32);
        else if (form == RAND_DOUBLE) ((double *)target)[i] = ((double)bits + 0.5) * 0x1p-32;
        else if (form == RAND_DOUBLE_PAIR) ((uint64_t *)target)[i] = bits;
        else ((uint32_t *)target)[i] = bits;
    }
    return true;
}
