/* Blocks of BC6H and BC7, as they were called BPTC before (Khronos Data Format Specification, "BPTC Compressed Texture
 * Image Formats"; Direct3D 11.3 Functional Specification, "BC6H", "BC7").
 *
 * The 128 bits of a block begin with its mode, which says how the rest is divided. A block has one to three subsets, each
 * with two endpoints, that is colors between which its texels lie. A partition, by number, says which texel belongs to
 * which subset. An index for each texel, of two to four bits, says how far it is from the one endpoint to the other. The
 * first texel of a subset, its anchor, has an index whose highest bit is 0 and not stored.
 *
 * BC7 may have indices of their own for alpha, or for the one channel that was exchanged with alpha ("rotation"). BC6H
 * has endpoints of up to 16 bits, whose bits lie scattered, and most modes have all endpoints but the first one as
 * differences from that. */
#include "packed.h"

#include <string.h>

/* ---- what both have in common ------------------------------------------------------------------------------------ */

/* A block, from its lowest bit on. */
struct bits {
    uint64_t low, high;
};

static struct bits bits_of_block(const uint8_t *block) {
    struct bits bits;
    memcpy(&bits.low, block, 8);
    memcpy(&bits.high, block + 8, 8);
    return bits;
}

/* `count` bits from the bit `at` on; at most 32. */
static uint32_t look(const struct bits *bits, uint32_t at, uint32_t count) {
    uint64_t found = at >= 64 ? bits->high >> (at - 64) : bits->low >> at;
    if (at < 64 && at) found |= bits->high << (64 - at);
    return (uint32_t)(found & ((UINT64_C(1) << count) - 1));
}

static uint32_t take(const struct bits *bits, uint32_t *at, uint32_t count) {
    const uint32_t found = look(bits, *at, count);
    *at += count;
    return found;
}

/* Of two subsets: the bit of a texel says whether it belongs to the second one. */
static const uint16_t halves[64] = {
    0xCCCC, 0x8888, 0xEEEE, 0xECC8, 0xC880, 0xFEEC, 0xFEC8, 0xEC80, 0xC800, 0xFFEC, 0xFE80, 0xE800, 0xFFE8,
    0xFF00, 0xFFF0, 0xF000, 0xF710, 0x008E, 0x7100, 0x08CE, 0x008C, 0x7310, 0x3100, 0x8CCE, 0x088C, 0x3110,
    0x6666, 0x366C, 0x17E8, 0x0FF0, 0x718E, 0x399C, 0xAAAA, 0xF0F0, 0x5A5A, 0x33CC, 0x3C3C, 0x55AA, 0x9696,
    0xA55A, 0x73CE, 0x13C8, 0x324C, 0x3BDC, 0x6996, 0xC33C, 0x9966, 0x0660, 0x0272, 0x04E4, 0x4E40, 0x2720,
    0xC936, 0x936C, 0x39C6, 0x639C, 0x9336, 0x9CC6, 0x817E, 0xE718, 0xCCF0, 0x0FCC, 0x7744, 0xEE22,
};
/* Of three: two bits of each texel. */
static const uint32_t thirds[64] = {
    0xAA685050, 0x6A5A5040, 0x5A5A4200, 0x5450A0A8, 0xA5A50000, 0xA0A05050, 0x5555A0A0, 0x5A5A5050,
    0xAA550000, 0xAA555500, 0xAAAA5500, 0x90909090, 0x94949494, 0xA4A4A4A4, 0xA9A59450, 0x2A0A4250,
    0xA5945040, 0x0A425054, 0xA5A5A500, 0x55A0A0A0, 0xA8A85454, 0x6A6A4040, 0xA4A45000, 0x1A1A0500,
    0x0050A4A4, 0xAAA59090, 0x14696914, 0x69691400, 0xA08585A0, 0xAA821414, 0x50A4A450, 0x6A5A0200,
    0xA9A58000, 0x5090A0A8, 0xA8A09050, 0x24242424, 0x00AA5500, 0x24924924, 0x24499224, 0x50A50A50,
    0x500AA550, 0xAAAA4444, 0x66660000, 0xA5A0A5A0, 0x50A050A0, 0x69286928, 0x44AAAA44, 0x66666600,
    0xAA444444, 0x54A854A8, 0x95809580, 0x96969600, 0xA85454A8, 0x80959580, 0xAA141414, 0x96960000,
    0xAAAA1414, 0xA05050A0, 0xA0A5A5A0, 0x96000000, 0x40804080, 0xA9A8A9A8, 0xAAAAAA44, 0x2A4A5254,
};
/* The anchors of the second of two subsets, and of the second and third of three; that of the first is the texel 0. */
static const uint8_t anchor_of_half[64] = {
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 2,  8, 2,  2, 8,
    8,  15, 2,  8,  2,  2,  8,  8,  2,  2,  15, 15, 6,  8,  2,  8,  15, 15, 2, 8,  2, 2,
    2,  15, 15, 6,  6,  2,  6,  8,  15, 15, 2,  2,  15, 15, 15, 15, 15, 2,  2, 15,
};
static const uint8_t anchors_of_thirds[2][64] = {
    {3,  3,  15, 15, 8, 3,  15, 15, 8,  8,  6, 6,  6, 5,  3, 3,  3,  3,  8,  15, 3,  3,
     6,  10, 5,  8,  8, 6,  8,  5,  15, 15, 8, 15, 3, 5,  6, 10, 8,  15, 15, 3,  15, 5,
     15, 15, 15, 15, 3, 15, 5,  5,  5,  8,  5, 10, 5, 10, 8, 13, 15, 12, 3,  3},
    {15, 8, 8, 3,  15, 15, 3,  8,  15, 15, 15, 15, 15, 15, 15, 8,  15, 8,  15, 3,  15, 8,
     15, 8, 3, 15, 6,  10, 15, 15, 10, 8,  15, 3,  15, 10, 10, 8,  9,  10, 6,  15, 8,  15,
     3,  6, 6, 8,  15, 3,  15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 3,  15, 15, 8},
};

static uint32_t subset_of(uint32_t subsets, uint32_t partition, uint32_t texel) {
    if (subsets == 2) return halves[partition] >> texel & 1;
    return subsets == 3 ? thirds[partition] >> (2 * texel) & 3 : 0;
}

static bool is_anchor(uint32_t subsets, uint32_t partition, uint32_t texel) {
    if (!texel) return true;
    if (subsets == 2) return texel == anchor_of_half[partition];
    return subsets == 3 && (texel == anchors_of_thirds[0][partition] || texel == anchors_of_thirds[1][partition]);
}

/* The index of a texel, of those with `width` bits that begin at the bit `at`. */
static uint32_t index_of(const struct bits *bits, uint32_t at, uint32_t width, uint32_t subsets, uint32_t partition,
                         uint32_t texel) {
    at += texel * width;
    for (uint32_t i = 0; i < texel; i++) at -= is_anchor(subsets, partition, i);
    return look(bits, at, width - is_anchor(subsets, partition, texel));
}

/* The part of the second endpoint, in 1/64, by the bits of an index. */
static const uint8_t weights[5][16] = {
    [2] = {0, 21, 43, 64},
    [3] = {0, 9, 18, 27, 37, 46, 55, 64},
    [4] = {0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64},
};

static int32_t between(int32_t first, int32_t second, uint32_t weight) {
    return (first * (int32_t)(64 - weight) + second * (int32_t)weight + 32) >> 6;
}

/* ---- BC7 --------------------------------------------------------------------------------------------------------- */

/* Bits of what a block has, in this order. A lowest bit of its own ("P") belongs to an endpoint, or to a subset. */
static const struct bc7_mode {
    uint8_t subsets, partition, rotation, selection, color, alpha, lowest_of_endpoint, lowest_of_subset, index, second;
} bc7_modes[8] = {
    {3, 4, 0, 0, 4, 0, 1, 0, 3, 0}, {2, 6, 0, 0, 6, 0, 0, 1, 3, 0}, {3, 6, 0, 0, 5, 0, 0, 0, 2, 0},
    {2, 6, 0, 0, 7, 0, 1, 0, 2, 0}, {1, 0, 2, 1, 5, 6, 0, 0, 2, 3}, {1, 0, 2, 0, 7, 8, 0, 0, 2, 2},
    {1, 0, 0, 0, 7, 7, 1, 0, 4, 0}, {2, 6, 0, 0, 5, 5, 1, 0, 2, 0},
};

/* As eight bits, the highest ones repeated below. */
static uint32_t widened(uint32_t number, uint32_t width) {
    number <<= 8 - width;
    return number | number >> width;
}

void cpu_read_bc7(const uint8_t *block, uint32_t texel, uint8_t rgba[4]) {
    memset(rgba, 0, 4);
    if (!block[0]) return; /* no mode */
    const struct bits bits = bits_of_block(block);
    const uint32_t number = (uint32_t)__builtin_ctz(block[0]);
    const struct bc7_mode *mode = &bc7_modes[number];
    uint32_t at = number + 1;
    const uint32_t partition = take(&bits, &at, mode->partition), rotation = take(&bits, &at, mode->rotation);
    const bool exchanged = take(&bits, &at, mode->selection);
    const uint32_t subset = subset_of(mode->subsets, partition, texel), endpoints = 2u * mode->subsets;
    uint32_t ends[4][2];
    for (uint32_t c = 0; c < 4; c++) {
        const uint32_t width = c < 3 ? mode->color : mode->alpha;
        for (uint32_t e = 0; e < 2; e++) ends[c][e] = look(&bits, at + (2 * subset + e) * width, width);
        at += endpoints * width;
    }
    const uint32_t lowest = mode->lowest_of_endpoint + mode->lowest_of_subset;
    for (uint32_t e = 0; e < 2 && lowest; e++) {
        const uint32_t bit = look(&bits, at + (mode->lowest_of_subset ? subset : 2 * subset + e), 1);
        for (uint32_t c = 0; c < 4; c++) ends[c][e] = ends[c][e] << 1 | bit;
    }
    at += mode->lowest_of_subset ? mode->subsets : mode->lowest_of_endpoint ? endpoints : 0;
    const uint32_t index = index_of(&bits, at, mode->index, mode->subsets, partition, texel);
    uint32_t weight[2] = {weights[mode->index][index]};
    weight[1] = weight[0];
    if (mode->second) {
        at += 16u * mode->index - mode->subsets;
        weight[1] = weights[mode->second][index_of(&bits, at, mode->second, 1, 0, texel)];
    }
    for (uint32_t c = 0; c < 4; c++) {
        const uint32_t width = (c < 3 ? mode->color : mode->alpha) + lowest;
        if (c == 3 && !mode->alpha) {
            rgba[3] = 255;
            continue;
        }
        const uint32_t first = widened(ends[c][0], width), second = widened(ends[c][1], width);
        rgba[c] = (uint8_t)between((int32_t)first, (int32_t)second, weight[(c == 3) != exchanged]);
    }
    if (rotation) {
        const uint8_t alpha = rgba[3];
        rgba[3] = rgba[rotation - 1];
        rgba[rotation - 1] = alpha;
    }
}

/* ---- BC6H -------------------------------------------------------------------------------------------------------- */

/* What the modes of BC6H are: the bits that tell them, subsets, whether all endpoints but the first one are differences
 * from that, its bits, and those of the channels of the others. */
static const struct bc6h_mode {
    uint8_t code, code_bits, subsets;
    bool differences;
    uint8_t bits, more[3];
} bc6h_modes[14] = {
    {0x00, 2, 2, true, 10, {5, 5, 5}}, {0x01, 2, 2, true, 7, {6, 6, 6}},      {0x02, 5, 2, true, 11, {5, 4, 4}},
    {0x06, 5, 2, true, 11, {4, 5, 4}}, {0x0A, 5, 2, true, 11, {4, 4, 5}},     {0x0E, 5, 2, true, 9, {5, 5, 5}},
    {0x12, 5, 2, true, 8, {6, 5, 5}},  {0x16, 5, 2, true, 8, {5, 6, 5}},      {0x1A, 5, 2, true, 8, {5, 5, 6}},
    {0x1E, 5, 2, false, 6, {6, 6, 6}}, {0x03, 5, 1, false, 10, {10, 10, 10}}, {0x07, 5, 1, true, 11, {9, 9, 9}},
    {0x0B, 5, 1, true, 12, {8, 8, 8}}, {0x0F, 5, 1, true, 16, {4, 4, 4}},
};

/* How the rest of a block is divided. A word is a channel (r, g, b) of an endpoint (w and x are the first subset's, y and z
 * the second's), the lowest bit that it gives and how many, both hexadecimal. */
static const char *const bc6h_layouts[14] = {
    "gy41 by41 bz41 rw0a gw0a bw0a rx05 gz41 gy04 gx05 bz01 gz04 bx05 bz11 by04 ry05 bz21 rz05 bz31",
    "gy51 gz42 rw07 bz02 by41 gw07 by51 bz21 gy41 bw07 bz31 bz51 bz41 rx06 gy04 gx06 gz04 bx06 by04 ry06 rz06",
    "rw0a gw0a bw0a rx05 rwa1 gy04 gx04 gwa1 bz01 gz04 bx04 bwa1 bz11 by04 ry05 bz21 rz05 bz31",
    "rw0a gw0a bw0a rx04 rwa1 gz41 gy04 gx05 gwa1 gz04 bx04 bwa1 bz11 by04 ry04 bz01 bz21 rz04 gy41 bz31",
    "rw0a gw0a bw0a rx04 rwa1 by41 gy04 gx04 gwa1 bz01 gz04 bx05 bwa1 by04 ry04 bz12 rz04 bz41 bz31",
    "rw09 by41 gw09 gy41 bw09 bz41 rx05 gz41 gy04 gx05 bz01 gz04 bx05 bz11 by04 ry05 bz21 rz05 bz31",
    "rw08 gz41 by41 gw08 bz21 gy41 bw08 bz32 rx06 gy04 gx05 bz01 gz04 bx05 bz11 by04 ry06 rz06",
    "rw08 bz01 by41 gw08 gy51 gy41 bw08 gz51 bz41 rx05 gz41 gy04 gx06 gz04 bx05 bz11 by04 ry05 bz21 rz05 bz31",
    "rw08 bz11 by41 gw08 by51 gy41 bw08 bz51 bz41 rx05 gz41 gy04 gx05 bz01 gz04 bx06 by04 ry05 bz21 rz05 bz31",
    "rw06 gz41 bz02 by41 gw06 gy51 by51 bz21 gy41 bw06 gz51 bz31 bz51 bz41 rx06 gy04 gx06 gz04 bx06 by04 ry06 "
    "rz06",
    "rw0a gw0a bw0a rx0a gx0a bx0a",
    "rw0a gw0a bw0a rx09 rwa1 gx09 gwa1 bx09 bwa1",
    "rw0a gw0a bw0a rx08 rwb1 rwa1 gx08 gwb1 gwa1 bx08 bwb1 bwa1",
    "rw0a gw0a bw0a rx04 rwf1 rwe1 rwd1 rwc1 rwb1 rwa1 gx04 gwf1 gwe1 gwd1 gwc1 gwb1 gwa1 bx04 bwf1 bwe1 bwd1 "
    "bwc1 bwb1 bwa1",
};

static int32_t with_sign(uint32_t number, uint32_t width) {
    const uint32_t sign = 1u << (width - 1);
    return (int32_t)((number & (2 * sign - 1)) ^ sign) - (int32_t)sign;
}

static uint32_t digit(char c) { return (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10); }

/* The bits of the channels, by endpoint. */
static void read_layout(const struct bits *bits, const char *layout, uint32_t *at, uint32_t numbers[4][3]) {
    enum { WORD = 5 }; /* with the space */
    for (const char *word = layout;; word += WORD) {
        const uint32_t channel = word[0] == 'r' ? 0 : word[0] == 'g' ? 1 : 2;
        numbers[word[1] - 'w'][channel] |= take(bits, at, digit(word[3])) << digit(word[2]);
        if (!word[WORD - 1]) return;
    }
}

/* From the bits of an endpoint to 16 bits, or 15 and a sign. */
static int32_t scaled(int32_t number, uint32_t width, bool is_signed) {
    if (!is_signed) {
        if (width >= 15 || !number) return number;
        return number == (1 << width) - 1 ? 0xFFFF : ((number << 15) + 0x4000) >> (width - 1);
    }
    if (width >= 16 || !number) return number;
    const int32_t size = number < 0 ? -number : number;
    const int32_t large = size >= (1 << (width - 1)) - 1 ? 0x7FFF : ((size << 15) + 0x4000) >> (width - 1);
    return number < 0 ? -large : large;
}

static uint16_t as_half(int32_t number, bool is_signed) {
    if (!is_signed) return (uint16_t)(number * 31 >> 6);
    const int32_t size = (number < 0 ? -number : number) * 31 >> 5;
    return (uint16_t)(number < 0 && size ? 0x8000 | size : size);
}

void cpu_read_bc6h(const uint8_t *block, uint32_t texel, bool is_signed, uint16_t rgb[3]) {
    const struct bits bits = bits_of_block(block);
    const struct bc6h_mode *mode = NULL;
    uint32_t numbers[4][3] = {{0}}, at;
    memset(rgb, 0, 3 * sizeof *rgb);
    for (uint32_t i = 0; i < 14 && !mode; i++)
        if (look(&bits, 0, bc6h_modes[i].code_bits) == bc6h_modes[i].code) mode = &bc6h_modes[i];
    if (!mode) return;
    at = mode->code_bits;
    read_layout(&bits, bc6h_layouts[mode - bc6h_modes], &at, numbers);
    const uint32_t partition = mode->subsets == 2 ? take(&bits, &at, 5) : 0;
    const uint32_t subset = subset_of(mode->subsets, partition, texel), width = mode->subsets == 2 ? 3 : 4;
    const uint32_t weight = weights[width][index_of(&bits, at, width, mode->subsets, partition, texel)];
    for (uint32_t c = 0; c < 3; c++) {
        int32_t ends[2];
        for (uint32_t e = 0; e < 2; e++) {
            const uint32_t own = 2 * subset + e;
            uint32_t sum = numbers[own][c];
            if (own && mode->differences) sum = numbers[0][c] + (uint32_t)with_sign(sum, mode->more[c]);
            sum &= (1u << mode->bits) - 1;
            ends[e] = scaled(is_signed ? with_sign(sum, mode->bits) : (int32_t)sum, mode->bits, is_signed);
        }
        rgb[c] = as_half(between(ends[0], ends[1], weight), is_signed);
    }
}
