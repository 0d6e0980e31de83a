/* Texels that do not lie channel by channel (Khronos Data Format Specification, "S3TC Compressed Texture Image Formats",
 * "RGTC Compressed Texture Image Formats"; bptc.c for BC6H and BC7).
 *
 * A block of BC1 has two colors of 5, 6 and 5 bits, and two bits for each texel: the first color, the second, or one of
 * two between them. If the first color is the smaller number, there is one between them and a transparent black. BC2 and
 * BC3 have alpha in front of such a block, of four bits a texel, or as BC4 has its one channel: two numbers of eight
 * bits, and three bits a texel for those and six between them, or four and the ends of the range. BC5 is two such
 * channels.
 *
 * The specification leaves open how numbers between two are rounded; this is what an H200 makes of them. */
#include "packed.h"

#include <string.h>

/* ---- BC1 to BC3 -------------------------------------------------------------------------------------------------- */

/* Of five bits, in the middle or by a third. */
static uint8_t middle_of_five(uint32_t first, uint32_t second) { return (uint8_t)((first + second) * 33 / 8); }
static uint8_t third_of_five(uint32_t near, uint32_t far) { return (uint8_t)((2 * near + far) * 22 / 8); }

/* Of six bits, a part of 1/256 from the one to the other. */
static uint8_t between_six(uint32_t near, uint32_t far, int32_t part) {
    const int32_t from = (int32_t)(near << 2 | near >> 4), step = (int32_t)(far << 2 | far >> 4) - from;
    return (uint8_t)((256 * from + step * part + (step >> 2) + 128) >> 8);
}

struct color {
    uint32_t r, g, b;
};

static struct color color_of(uint32_t bits) { return (struct color){bits >> 11, bits >> 5 & 63, bits & 31}; }

static void read_color(const uint8_t *block, uint32_t number, bool always_four, uint8_t rgba[4]) {
    enum { HALF = 128, THIRD = 80 };
    uint16_t ends[2];
    memcpy(ends, block, sizeof ends);
    const uint32_t code = block[4 + number / 4] >> 2 * (number % 4) & 3;
    const bool four = always_four || ends[0] > ends[1];
    const struct color near = color_of(ends[code & 1]), far = color_of(ends[~code & 1]);
    rgba[3] = 255;
    if (code < 2) {
        rgba[0] = (uint8_t)(near.r << 3 | near.r >> 2);
        rgba[1] = (uint8_t)(near.g << 2 | near.g >> 4);
        rgba[2] = (uint8_t)(near.b << 3 | near.b >> 2);
    } else if (four) {
        rgba[0] = third_of_five(near.r, far.r);
        rgba[1] = between_six(near.g, far.g, THIRD);
        rgba[2] = third_of_five(near.b, far.b);
    } else if (code == 2) {
        rgba[0] = middle_of_five(near.r, far.r);
        rgba[1] = between_six(near.g, far.g, HALF);
        rgba[2] = middle_of_five(near.b, far.b);
    } else {
        memset(rgba, 0, 4);
    }
}

/* ---- BC3's alpha, BC4 and BC5 ------------------------------------------------------------------------------------ */

/* Where a number lies, by the code of a texel: so many 1/256 from one end (0 or 1) to the other, and a little more in
 * BC3, the step shifted to the right by `more`. */
struct point {
    uint8_t end, part, more;
};
static const struct point between_eight[8] = {{0, 0, 0},   {1, 0, 0},   {0, 36, 3}, {0, 72, 2},
                                              {1, 144, 1}, {0, 144, 1}, {1, 72, 2}, {1, 36, 3}};
static const struct point between_six_numbers[6] = {{0, 0, 0},  {1, 0, 0},  {0, 48, 3},
                                                    {0, 96, 2}, {1, 96, 2}, {1, 48, 3}};

/* The point of a texel; NULL: an end of the range, the lower one for the code 6. */
static const struct point *find_point(const uint8_t *block, uint32_t number, bool eight, uint32_t *code) {
    uint64_t bits;
    memcpy(&bits, block, sizeof bits);
    *code = (uint32_t)(bits >> (16 + 3 * number)) & 7;
    if (eight) return &between_eight[*code];
    return *code < 6 ? &between_six_numbers[*code] : NULL;
}

static uint8_t read_alpha(const uint8_t *block, uint32_t number) {
    uint32_t code;
    const struct point *point = find_point(block, number, block[0] > block[1], &code);
    if (!point) return code == 6 ? 0 : 255;
    const int32_t from = block[point->end], step = block[1 - point->end] - from;
    if (!point->part) return (uint8_t)from;
    return (uint8_t)((256 * from + step * point->part + (step >> point->more) + 128) >> 8);
}

static uint16_t read_unsigned(const uint8_t *block, uint32_t number) {
    uint32_t code;
    const struct point *point = find_point(block, number, block[0] > block[1], &code);
    if (!point) return code == 6 ? 0 : UINT16_MAX;
    const int32_t from = block[point->end], to = block[1 - point->end];
    return (uint16_t)(from * 257 + (to - from) * point->part);
}

/* As 15 bits and a sign, the highest bits repeated below. */
static int32_t widened_sign(int32_t number) {
    const int32_t size = number < 0 ? -number : number, wide = size << 8 | size << 1 | size >> 6;
    return number < 0 ? -wide : wide;
}

static int16_t read_signed(const uint8_t *block, uint32_t number) {
    const int8_t *ends = (const int8_t *)block;
    uint32_t code;
    const struct point *point = find_point(block, number, ends[0] > ends[1], &code);
    if (!point) return code == 6 ? -INT16_MAX : INT16_MAX;
    int32_t from = ends[point->end], to = ends[1 - point->end];
    from = from < -INT8_MAX ? -INT8_MAX : from; /* the smallest integer has no counterpart */
    to = to < -INT8_MAX ? -INT8_MAX : to;
    return (int16_t)(widened_sign(from) + (to - from) * point->part);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void read_tens(const void *memory, uint16_t texel[4]) {
    uint32_t bits;
    memcpy(&bits, memory, sizeof bits);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t number = bits >> (10 * i) & 1023;
        texel[i] = (uint16_t)(number << 6 | number >> 4);
    }
    texel[3] = (uint16_t)((bits >> 30) * (65535 / 3));
}

static void set(uint16_t texel[4], uint16_t r, uint16_t g, uint16_t a) {
    const uint16_t whole[4] = {r, g, 0, a};
    memcpy(texel, whole, sizeof whole);
}

void cpu_unpack(uint32_t format, const void *memory, uint32_t number, uint8_t texel[CPU_TEXEL_BYTES]) {
    uint16_t *u16 = (uint16_t *)texel;
    const uint8_t *block = memory;
    switch (format) {
        case CU_AD_FORMAT_BC1_UNORM:
        case CU_AD_FORMAT_BC1_UNORM_SRGB: read_color(block, number, false, texel); break;
        case CU_AD_FORMAT_BC2_UNORM:
        case CU_AD_FORMAT_BC2_UNORM_SRGB:
            read_color(block + 8, number, true, texel);
            texel[3] = (uint8_t)((block[number / 2] >> 4 * (number % 2) & 15) * 17);
            break;
        case CU_AD_FORMAT_BC3_UNORM:
        case CU_AD_FORMAT_BC3_UNORM_SRGB:
            read_color(block + 8, number, true, texel);
            texel[3] = read_alpha(block, number);
            break;
        case CU_AD_FORMAT_BC4_UNORM: set(u16, read_unsigned(block, number), 0, UINT16_MAX); break;
        case CU_AD_FORMAT_BC4_SNORM: set(u16, (uint16_t)read_signed(block, number), 0, INT16_MAX); break;
        case CU_AD_FORMAT_BC5_UNORM:
            set(u16, read_unsigned(block, number), read_unsigned(block + 8, number), UINT16_MAX);
            break;
        case CU_AD_FORMAT_BC5_SNORM:
            set(u16, (uint16_t)read_signed(block, number), (uint16_t)read_signed(block + 8, number), INT16_MAX);
            break;
        case CU_AD_FORMAT_BC6H_UF16:
        case CU_AD_FORMAT_BC6H_SF16:
            cpu_read_bc6h(block, number, format == CU_AD_FORMAT_BC6H_SF16, u16);
            u16[3] = 0x3C00; /* one */
            break;
        case CU_AD_FORMAT_BC7_UNORM:
        case CU_AD_FORMAT_BC7_UNORM_SRGB: cpu_read_bc7(block, number, texel); break;
        default: read_tens(memory, u16); break;
    }
}
