/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A lane gives four numbers at once;
 * it is the third word of the counter, and how often it was drawn from the first two. */
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

bool rand_philox(struct rand_sequence *sequence, enum rand_form form, uint64_t position, size_t count, void *target) {
    for (size_t i = 0; i < count; i++) {
        uint64_t at = position + i, group = at / AT_ONCE, lane = group % LANES, draw = group / LANES;
        int part = (int)(at % AT_ONCE);
        uint32_t out[4];
        if (form == RAND_DOUBLE) { /* four doubles of a lane take two blocks */
            block(sequence->seed, lane, 2 * draw + (unsigned)part / 2, out);
            ((double *)target)[i] = rand_double(out[part % 2 * 2], out[part % 2 * 2 + 1]);
            continue;
        }
        block(sequence->seed, lane, draw, out);
        do { /* as many of the block as are wanted */
            if (form == RAND_BITS) ((uint32_t *)target)[i] = out[part];
            else ((float *)target)[i] = rand_float(out[part]);
        } while (++part < AT_ONCE && i + 1 < count && ++i);
    }
    return true;
}
