/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A lane gives four numbers at once;
 * it is the third word of the counter, and how often it was drawn from the first two. */
#include <stdlib.h>
#include <string.h>

#include "rand.h"

enum { LANES = 65536, ROUNDS = 10, AT_ONCE = 4 };

static void block(uint64_t seed, uint64_t lane, uint64_t draw, uint32_t out[4]) {
    uint32_t c[4] = {(uint32_t)draw, (uint32_t)(draw >> 32), (uint32_t)lane, 0};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t first = UINT64_C(0xD2511F53) * c[0], second = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t next[4] = {(uint32_t)(second >> 32) ^ c[1] ^ key[0], (uint32_t)second,
                            (uint32_t)(first >> 32) ^ c[3] ^ key[1], (uint32_t)first};
        for (int i = 0; i < 4; i++) c[i] = next[i];
        key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
    }
    for (int i = 0; i < 4; i++) out[i] = c[i];
}

/* How many blocks each lane has given. */
static uint64_t *make_lanes(const struct rand_sequence *sequence) {
    uint64_t *lanes = malloc(LANES * sizeof *lanes), groups = sequence->origin / AT_ONCE;
    for (uint64_t i = 0; lanes && i < LANES; i++) lanes[i] = groups / LANES + (i < groups % LANES);
    return lanes;
}

static void store(enum rand_form form, void *target, size_t i, const uint32_t out[], int part) {
    switch (form) {
        case RAND_PAIR:
        case RAND_BITS: ((uint32_t *)target)[i] = out[part]; return;
        case RAND_FLOAT: ((float *)target)[i] = rand_float(out[part]); return;
        case RAND_DOUBLE: ((double *)target)[i] = rand_double(out[2 * part], out[2 * part + 1]); return;
        case RAND_DOUBLE_PAIR: memcpy((double *)target + i, out + 2 * part, sizeof(double)); return;
    }
}

/* Of a pair that is not asked for as a whole both halves are written: there is room for it. */
bool rand_philox(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target) {
    if (!sequence->lanes && !(sequence->lanes = make_lanes(sequence))) return false;
    const int blocks = form == RAND_DOUBLE || form == RAND_DOUBLE_PAIR ? 2 : 1; /* for four numbers */
    for (size_t i = 0; i < count;) {
        uint64_t lane = sequence->position / AT_ONCE % LANES, *given = (uint64_t *)sequence->lanes + lane;
        uint32_t out[2 * AT_ONCE];
        for (int j = 0; j < blocks; j++) block(sequence->seed, lane, *given + (unsigned)j, out + AT_ONCE * j);
        for (int part = (int)(sequence->position % AT_ONCE); part < AT_ONCE && i < count; part++, i++) {
            store(form, target, i, out, part);
            if (form >= RAND_PAIR && i + 1 == count && part % 2 == 0) store(form, target, i + 1, out, part + 1);
            if (++sequence->position % AT_ONCE == 0) *given += (unsigned)blocks;
        }
    }
    return true;
}
