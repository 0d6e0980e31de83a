/* MTGP32 (Saito and Matsumoto, "Variants of Mersenne Twister suitable for graphic processors", ACM TOMS 39, 2013): 192
 * generators with parameters of their own, from NVIDIA's package (cpu/mtgp32.py), which give 256 numbers each in turn; 64 of
 * them in the ordering LEGACY. */
#include <stdlib.h>
#include <string.h>

#include "rand.h"

enum { LANES = 192, LEGACY_LANES = 64, AT_ONCE = 256, WORDS = 351, ROOM = 1024, TABLE = 16 };

struct parameters {
    uint32_t position, shift_left, shift_right, mask, recursion[TABLE], tempering[TABLE];
};

struct lane {
    uint32_t word[ROOM], out[AT_ONCE];
    uint64_t rows; /* how many times 256 numbers it has given; the last ones are in `out` */
};

bool rand_mtgp32_load(void) { return rand_load_table(CURAND_RNG_PSEUDO_MTGP32, LANES * sizeof(struct parameters)); }

static void begin(struct lane *lane, const struct parameters *of, uint32_t seed) {
    uint32_t hidden = of->recursion[4] ^ of->recursion[8] << 16, filler = hidden;
    filler += filler >> 16;
    filler += filler >> 8;
    memset(lane->word, (int)(filler & 0xff), WORDS * sizeof *lane->word);
    lane->word[0] = seed, lane->word[1] = hidden;
    for (uint32_t i = 1; i < WORDS; i++)
        lane->word[i] ^= UINT32_C(1812433253) * (lane->word[i - 1] ^ lane->word[i - 1] >> 30) + i;
}

static struct lane *make_lanes(uint64_t seed) {
    struct lane *lanes = calloc(LANES, sizeof *lanes);
    const struct parameters *parameters = rand_table(CURAND_RNG_PSEUDO_MTGP32);
    for (uint32_t i = 0; lanes && i < LANES; i++)
        begin(&lanes[i], &parameters[i], (uint32_t)(seed ^ seed >> 32) + i + 1);
    return lanes;
}

static void advance(struct lane *lane, const struct parameters *of) {
    uint32_t *word = lane->word, first = (uint32_t)lane->rows * AT_ONCE;
    for (uint32_t i = first; i < first + AT_ONCE; i++) {
        uint32_t x = (word[i % ROOM] & of->mask) ^ word[(i + 1) % ROOM];
        x ^= x << of->shift_left;
        x ^= word[(i + of->position) % ROOM] >> of->shift_right;
        x ^= of->recursion[x % TABLE];
        word[(i + WORDS) % ROOM] = x;
        uint32_t t = word[(i + of->position - 1) % ROOM];
        t ^= t >> 16;
        t ^= t >> 8;
        lane->out[i - first] = x ^ of->tempering[t % TABLE];
    }
    lane->rows++;
}

bool rand_mtgp32(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target) {
    if (!sequence->lanes && !(sequence->lanes = make_lanes(sequence->seed))) return false;
    const struct parameters *parameters = rand_table(CURAND_RNG_PSEUDO_MTGP32);
    const unsigned count_lanes = sequence->order == CURAND_ORDERING_PSEUDO_LEGACY ? LEGACY_LANES : LANES;
    for (size_t i = 0; i < count; i++, sequence->position++) {
        uint64_t index = sequence->position / AT_ONCE % count_lanes, row = sequence->position / AT_ONCE / count_lanes;
        struct lane *lane = (struct lane *)sequence->lanes + index;
        while (lane->rows <= row) advance(lane, &parameters[index]);
        uint32_t bits = lane->out[sequence->position % AT_ONCE];
        if (form == RAND_FLOAT) ((float *)target)[i] = rand_float(bits);
        else if (form == RAND_DOUBLE) ((double *)target)[i] = ((double)bits + 1) * 0x1p-32;
        else if (form == RAND_DOUBLE_PAIR) ((uint64_t *)target)[i] = bits;
        else ((uint32_t *)target)[i] = bits;
    }
    return true;
}
