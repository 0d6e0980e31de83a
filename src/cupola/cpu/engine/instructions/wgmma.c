/* Products of matrices by a warpgroup (PTX ISA 9.7.15: wgmma.mma_async, wgmma.mma_async.sp, wgmma.wait_group).
 *
 * Four consecutive warps multiply a matrix A of 64 rows and B of N columns and have 16 rows of D each, so a warp's part
 * needs nothing of the others. It is worked out when the warp executes the instruction. The ISA allows that: until
 * wgmma.wait_group the program may neither change the matrices in shared memory nor look at D and the registers of A,
 * so no program can tell when it happened. Only the end is visible: a thread behind wgmma.wait_group may let others
 * overwrite the matrices (it arrives at an mbarrier, most often on behalf of the whole warpgroup), so none of the four
 * warps gets past it before all have come there (schedule/barrier.c).
 *
 * A line of the matrix A (a row) or B (a column) has 32 bytes along K, B has 64 where A is sparse. Shared memory holds
 * them in units of 16 bytes, where the descriptor says: units lie along K, or with a transposed matrix along M or N.
 *
 * Sums are floats: products of all types are exact in them, also those of 8-bit integers with their sums, so that one
 * loop serves all but bits. */
#include "access.h"

#include <stdio.h>
#include <string.h>

#include "half.h"

enum { LANES = CPU_WARP_THREADS, ROWS = 16, MOST_COLUMNS = 256, MOST_K = 64, UNIT = 16, GROUP_THREADS = 128 };

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CPU_VARIANTS __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define CPU_VARIANTS
#endif

/* ---- what the instruction is ------------------------------------------------------------------------------------- */

enum type { F16, BF16, TF32, E4M3, E5M2, S8, U8, B1 };
enum sum { SUM_F32, SUM_F16, SUM_S32 };

/* As emit/memory/warpgroups.py packs it into one integer. */
struct product {
    uint32_t columns; /* N */
    enum type type[2];
    enum sum sum;
    bool transposed[2], negative, saturates, sparse;
    uint32_t selector;
};

static struct product unpack_product(uint64_t packed) {
    return (struct product){
        .columns = packed & 0x1FF,
        .type = {(enum type)(packed >> 12 & 7), (enum type)(packed >> 16 & 7)},
        .sum = (enum sum)(packed >> 20 & 3),
        .transposed = {packed >> 24 & 1, packed >> 25 & 1},
        .negative = packed >> 26 & 1,
        .saturates = packed >> 27 & 1,
        .sparse = packed >> 28 & 1,
        .selector = packed >> 29 & 1,
    };
}

static const uint8_t element_bytes[] = {[F16] = 2, [BF16] = 2, [TF32] = 4, [E4M3] = 1, [E5M2] = 1, [S8] = 1, [U8] = 1};

/* ---- matrices in shared memory ------------------------------------------------------------------------------------ */

/* A matrix descriptor (PTX ISA, "Matrix Descriptor Format"). */
struct place {
    uint32_t start, leading, stride; /* bytes */
    uint32_t base;                   /* rows of 128 bytes by which patterns begin behind a multiple of their size */
    uint32_t swizzle;                /* bytes that are permuted together, or 0 */
};

static struct place unpack_place(uint64_t descriptor) {
    static const uint8_t swizzles[4] = {0, 128, 64, 32};
    return (struct place){.start = (uint32_t)(descriptor & 0x3FFF) << 4,
                          .leading = (uint32_t)(descriptor >> 16 & 0x3FFF) << 4,
                          .stride = (uint32_t)(descriptor >> 32 & 0x3FFF) << 4,
                          .base = (uint32_t)(descriptor >> 49 & 7),
                          .swizzle = swizzles[descriptor >> 62]};
}

/* Where a unit is: number `unit` of a line along K; of a transposed matrix, number `unit` along M or N for one K.
 *
 * Without a swizzle, eight lines of one unit are a block of 128 bytes, and the two offsets lead to the next block along
 * either direction. With one, eight lines of 32, 64 or 128 bytes are a pattern, in which bits 4 to 6 of the address of
 * each unit are changed by bits 7 to 9; what a line has beyond that follows at the leading offset. All of this, also that
 * the base offset is subtracted, is what an H200 does (tests/ptx/forms/wgmma.txt). */
ALWAYS_INLINE uint32_t place_of(const struct place *place, bool transposed, uint32_t line, uint32_t unit) {
    const uint32_t in_block = line % 8, block = line / 8;
    if (!place->swizzle) {
        const uint32_t along = transposed ? place->stride : place->leading;
        const uint32_t across = transposed ? place->leading : place->stride;
        return place->start + in_block * UNIT + block * across + unit * along;
    }
    const uint32_t units = place->swizzle / UNIT;
    const uint32_t address = place->start + in_block * place->swizzle + block * place->stride + unit % units * UNIT +
                             unit / units * place->leading;
    return address ^ (((address >> 7) - place->base) & (units - 1)) << 4;
}

/* Where the matrices of one instruction come from. */
struct source {
    cpu_context *context;
    const cpu_warp *warp;
    cpu_site site;
};

/* `count` units of each of `lines` lines, as pointers; false after a fault. */
ALWAYS_INLINE bool find_units(const struct source *source, char name, uint64_t descriptor, bool transposed,
                              uint32_t first_line, uint32_t lines, uint32_t first_unit, uint32_t count,
                              const uint8_t **found) {
    const struct place place = unpack_place(descriptor);
    const cpu_context *context = source->context;
    for (uint32_t line = 0; line < lines; line++)
        for (uint32_t unit = 0; unit < count; unit++) {
            const uint32_t address = place_of(&place, transposed, first_line + line, first_unit + unit);
            if (__builtin_expect(address >= context->shared_size || context->shared_size - address < UNIT, 0)) {
                char details[256];
                snprintf(details, sizeof details,
                         "the descriptor of matrix %c, 0x%016llx, says: start %u, leading dimension offset %u, stride "
                         "dimension offset %u, base offset %u, swizzle of %u bytes",
                         name, (unsigned long long)descriptor, place.start, place.leading, place.stride, place.base,
                         place.swizzle);
                cpu_fault_raise_access(source->context, source->warp, 0, CPU_FAULT_OUT_OF_BOUNDS, source->site, address,
                                       UNIT, details);
                return false;
            }
            *found++ = context->shared + address;
        }
    return true;
}

/* ---- elements as floats ------------------------------------------------------------------------------------------- */

typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef int32_t s32x8 __attribute__((vector_size(32)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x16 __attribute__((vector_size(64)));

/* Eight elements, each in the low bits of a word, to memory. Narrow floats are first made with too small an exponent,
 * which one exact multiplication sets right, subnormals included. */
ALWAYS_INLINE void store_floats(enum type type, const u32x8 *element, float *to) {
    u32x8 bits = *element, sign, size, pattern;
    f32x8 value;
    switch (type) {
        case BF16: bits <<= 16; break;
        case TF32:
            bits &= 0xFFFFE000; /* the lower bits do not count */
            break;
        case S8:
            bits <<= 24;
            value = __builtin_convertvector((s32x8)bits >> 24, f32x8);
            goto done;
        case U8: value = __builtin_convertvector((s32x8)bits, f32x8); goto done;
        case E4M3:
            sign = (bits & 0x80) << 24;
            size = bits & 0x7F;
            value = (f32x8)(size << 20) * 0x1p120f;
            pattern = (u32x8)(size == 0x7F);
            bits = sign | ((pattern & 0x7FFFFFFF) | (~pattern & (u32x8)value));
            break;
        default: /* F16; E5M2 is its upper half */
            if (type == E5M2) bits <<= 8;
            sign = (bits & 0x8000) << 16;
            size = bits & 0x7FFF;
            value = (f32x8)(size << 13) * 0x1p112f;
            pattern = (u32x8)(size >= 0x7C00);
            bits = sign | ((pattern & (size << 13 | 0x7F800000)) | (~pattern & (u32x8)value));
    }
    value = (f32x8)bits;
done:
    memcpy(to, &value, sizeof value);
}

/* Of eight units, taken as rows of eight 16-bit words, the columns. */
ALWAYS_INLINE void transpose(const uint8_t *const units[8], uint32_t pitch, u16x8 columns[8]) {
#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
    u16x8 a[8], b[8];
    for (int i = 0; i < 8; i++) memcpy(&a[i], units[i * pitch], sizeof a[i]);
    for (int i = 0; i < 4; i++) { /* lines i and i + 4, then those with i and i + 2, then neighbours */
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < 4; i++) {
        a[2 * i] = __builtin_shufflevector(b[i], b[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        a[2 * i + 1] = __builtin_shufflevector(b[i], b[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < 4; i++) {
        columns[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        columns[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
#else
    for (int i = 0; i < 8; i++) {
        u16x8 line;
        memcpy(&line, units[i * pitch], sizeof line);
        for (int k = 0; k < 8; k++) columns[k][i] = line[k];
    }
#endif
}

/* Units of lines along K to floats, those with the same K beside each other: `to[k * pitch + line]`. */
ALWAYS_INLINE void load_lines(enum type type, const uint8_t *const *units, uint32_t count, uint32_t lines, float *to,
                              uint32_t pitch) {
    for (uint32_t line = 0; line < lines; line += 8)
        for (uint32_t unit = 0; unit < count; unit++) {
            u16x8 words[8];
            transpose(&units[line * count + unit], count, words);
            float *out = to + line + (size_t)unit * (UNIT / element_bytes[type]) * pitch;
            for (int i = 0; i < 8; i++) {
                u32x8 word = __builtin_convertvector(words[i], u32x8), element;
                switch (element_bytes[type]) {
                    case 1:
                        element = word & 0xFF;
                        store_floats(type, &element, out);
                        element = word >> 8;
                        store_floats(type, &element, out + pitch);
                        out += 2 * pitch;
                        break;
                    case 2:
                        store_floats(type, &word, out);
                        out += pitch;
                        break;
                    default:
                        element = word | __builtin_convertvector(words[++i], u32x8) << 16;
                        store_floats(type, &element, out);
                        out += pitch;
                }
            }
        }
}

/* The same of a transposed matrix, whose elements have 16 bits: eight lines are in a unit. */
ALWAYS_INLINE void load_transposed(enum type type, const uint8_t *const *units, uint32_t count, uint32_t k, float *to,
                                   uint32_t pitch) {
    for (uint32_t at = 0; at < k; at++)
        for (uint32_t unit = 0; unit < count; unit++) {
            u16x8 words;
            memcpy(&words, *units++, sizeof words);
            const u32x8 elements = __builtin_convertvector(words, u32x8);
            store_floats(type, &elements, to + (size_t)at * pitch + 8 * unit);
        }
}

ALWAYS_INLINE void load_matrix(enum type type, bool transposed, const uint8_t *const *units, uint32_t count,
                               uint32_t lines, uint32_t k, float *to, uint32_t pitch) {
#define LINES_OF(T)                                                                                                    \
    case T: load_lines(T, units, count, lines, to, pitch); break
    if (transposed && type == F16) load_transposed(F16, units, count, k, to, pitch);
    else if (transposed) load_transposed(BF16, units, count, k, to, pitch);
    else switch (type) { /* with the type as a constant, so that no loop asks for it */
            LINES_OF(F16);
            LINES_OF(BF16);
            LINES_OF(TF32);
            LINES_OF(E4M3);
            LINES_OF(E5M2);
            LINES_OF(S8);
            LINES_OF(U8);
            case B1: break;
        }
#undef LINES_OF
}

/* ---- D in registers ------------------------------------------------------------------------------------------------ */

/* Lane 4 * g + t has columns 8 * j + 2 * t and the next one, in rows g and g + 8 of the warp: of words in registers
 * 4 * j ... 4 * j + 3, of halves in 2 * j and 2 * j + 1. */
#define FOR_PIECES(...)                                                                                                \
    for (uint32_t tile = 0; tile < columns / 8; tile++)                                                                \
        for (uint32_t row = 0; row < ROWS; row++) {                                                                    \
            const uint32_t number = 2 * tile + row / 8, lane = row % 8 * 4;                                            \
            float *piece = sums + (size_t)row * pitch + 8 * tile;                                                      \
            __VA_ARGS__                                                                                                \
        }

ALWAYS_INLINE void load_words(const uint32_t *registers, uint32_t columns, float *sums, uint32_t pitch){FOR_PIECES({
    const uint32_t *even = registers + (size_t)number * 2 * LANES + lane;
    for (int t = 0; t < 4; t++) {
        piece[2 * t] = float_of(even[t]);
        piece[2 * t + 1] = float_of(even[LANES + t]);
    }
})}

ALWAYS_INLINE void load_halves(const uint32_t *registers, uint32_t columns, float *sums, uint32_t pitch){FOR_PIECES({
    u16x8 halves;
    memcpy(&halves, registers + (size_t)number * LANES + lane, sizeof halves);
    const u32x8 elements = __builtin_convertvector(halves, u32x8);
    store_floats(F16, &elements, piece);
})}

/* NaNs are the one that PTX instructions give. */
ALWAYS_INLINE void store_words(uint32_t *registers, uint32_t columns, float *sums, uint32_t pitch){FOR_PIECES({
    uint32_t *even = registers + (size_t)number * 2 * LANES + lane;
    for (int t = 0; t < 4; t++) {
        even[t] = piece[2 * t] == piece[2 * t] ? bits_of(piece[2 * t]) : 0x7FFFFFFF;
        even[LANES + t] = piece[2 * t + 1] == piece[2 * t + 1] ? bits_of(piece[2 * t + 1]) : 0x7FFFFFFF;
    }
})}

ALWAYS_INLINE void store_halves(uint32_t *registers, uint32_t columns, float *sums, uint32_t pitch) {
    FOR_PIECES({
        uint16_t halves[8];
        for (int i = 0; i < 8; i++) halves[i] = float_to_half(piece[i]);
        memcpy(registers + (size_t)number * LANES + lane, halves, sizeof halves);
    })
}

/* Add sums of integers, which are exact, to what D holds. */
static inline uint32_t add_integer(uint32_t before, int32_t sum, bool saturates) {
    if (!saturates) return before + (uint32_t)sum;
    const int64_t exact = (int64_t)(int32_t)before + sum;
    return (uint32_t)(exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : (int32_t)exact);
}

ALWAYS_INLINE void add_integers(uint32_t *registers, uint32_t columns, float *sums, uint32_t pitch, bool keeps,
                                bool saturates){FOR_PIECES({
    uint32_t *even = registers + (size_t)number * 2 * LANES + lane;
    for (int t = 0; t < 4; t++)
        for (int odd = 0; odd < 2; odd++) {
            uint32_t *word = even + odd * LANES + t;
            *word = add_integer(keeps ? *word : 0, (int32_t)piece[2 * t + odd], saturates);
        }
})}

/* ---- sums ----------------------------------------------------------------------------------------------------------- */

/* sums[row][column] += a[k][row] * b[place of k][column], one K after the other. In a dense product the place is k; in
 * a sparse one `places[row][k]`. */
ALWAYS_INLINE void multiply(const float *a, const float *b, const uint8_t (*places)[MOST_K], uint32_t k, float *sums,
                            uint32_t pitch) {
    enum { BESIDE = 4, WIDE = 16 };
    for (uint32_t column = 0; column < pitch; column += WIDE)
        for (uint32_t row = 0; row < ROWS; row += BESIDE) {
            f32x16 total[BESIDE], right;
            for (int i = 0; i < BESIDE; i++) memcpy(&total[i], sums + (row + i) * pitch + column, sizeof right);
            for (uint32_t at = 0; at < k; at++) {
                const float *left = a + at * ROWS + row;
                if (!places) memcpy(&right, b + at * pitch + column, sizeof right);
                for (int i = 0; i < BESIDE; i++) {
                    if (places) memcpy(&right, b + places[row + i][at] * pitch + column, sizeof right);
                    total[i] += left[i] * right;
                }
            }
            for (int i = 0; i < BESIDE; i++) memcpy(sums + (row + i) * pitch + column, &total[i], sizeof right);
        }
}

/* Where the stored elements of a sparse matrix A belong (PTX ISA, "Sparse matrix storage"): as of mma.sp, see
 * emit/instructions/sparse.py. Four bits for each chunk of four elements, or two words, are in the lanes of the row's
 * quad. */
static void read_metadata(const struct product *product, const uint32_t *metadata, uint8_t places[ROWS][MOST_K]) {
    const uint32_t bytes = element_bytes[product->type[0]], chunks = bytes == 1 ? 16 : 8;
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t chunk = 0; chunk < chunks; chunk++) {
            const uint32_t half = row / 8, quad = row % 8 * 4;
            const uint32_t lane = bytes == 1 ? half + 2 * (chunk / 8) : 2 * product->selector + chunk / 4;
            const uint32_t bit = bytes == 1 ? 4 * (chunk % 8) : 16 * half + 4 * (chunk % 4);
            const uint32_t found = metadata[quad + lane] >> bit;
            if (bytes == 4) {
                places[row][chunk] = (uint8_t)(2 * chunk + (found >> 1 & 1));
            } else {
                places[row][2 * chunk] = (uint8_t)(4 * chunk + (found & 3));
                places[row][2 * chunk + 1] = (uint8_t)(4 * chunk + (found >> 2 & 3));
            }
        }
}

/* Products of bits: how many are set in both. Lines have 256. */
ALWAYS_INLINE void count_bits(const uint8_t *const *a, const uint8_t *const *b, uint32_t columns, float *sums,
                              uint32_t pitch) {
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t column = 0; column < columns; column++) {
            int count = 0;
            for (int unit = 0; unit < 2; unit++) {
                uint64_t left[2], right[2];
                memcpy(left, a[2 * row + unit], UNIT);
                memcpy(right, b[2 * column + unit], UNIT);
                count += __builtin_popcountll(left[0] & right[0]) + __builtin_popcountll(left[1] & right[1]);
            }
            sums[row * pitch + column] = (float)count;
        }
}

/* What the operands of the instruction are: A as registers or descriptor. */
struct operands {
    const uint32_t *registers, *metadata;
    uint64_t a, b;
    uint32_t *d;
    bool keeps; /* adds to what D holds */
};

CPU_VARIANTS static bool multiply_matrices(const struct source *source, const struct product *product,
                                           const struct operands *operands) {
    const uint32_t columns = product->columns, pitch = (columns + 15) & ~15u;
    const uint32_t group_warp = source->warp->first % GROUP_THREADS / LANES;
    const uint8_t *left[64], *right[4 * MOST_COLUMNS];
    const bool is_bits = product->type[0] == B1, stands = product->transposed[0] && !operands->registers;
    const uint32_t stored = is_bits ? 0 : 2 * UNIT / element_bytes[product->type[0]];
    const uint32_t k = product->sparse ? 2 * stored : stored, units = product->sparse ? 4 : 2;
    if (operands->registers) {
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t unit = 0; unit < 2; unit++)
                left[2 * row + unit] =
                    (const uint8_t *)(operands->registers + (size_t)(2 * unit + row / 8) * LANES + row % 8 * 4);
    } else if (stands ? !find_units(source, 'A', operands->a, true, 0, stored, 2 * group_warp, 2, left)
                      : !find_units(source, 'A', operands->a, false, ROWS * group_warp, ROWS, 0, 2, left)) {
        return false;
    }
    if (product->transposed[1] ? !find_units(source, 'B', operands->b, true, 0, k, 0, columns / 8, right)
                               : !find_units(source, 'B', operands->b, false, 0, columns, 0, units, right))
        return false;
    _Alignas(64) float a[MOST_K * ROWS], b[MOST_K * MOST_COLUMNS], sums[ROWS * MOST_COLUMNS];
    uint8_t places[ROWS][MOST_K];
    const bool is_integer = product->sum == SUM_S32;
    if (is_integer || !operands->keeps || pitch > columns) memset(sums, 0, sizeof *sums * ROWS * pitch);
    if (is_bits) {
        count_bits(left, right, columns, sums, pitch);
    } else {
        if (operands->keeps && product->sum == SUM_F32) load_words(operands->d, columns, sums, pitch);
        if (operands->keeps && product->sum == SUM_F16) load_halves(operands->d, columns, sums, pitch);
        load_matrix(product->type[0], stands, left, 2, ROWS, stored, a, ROWS);
        if (product->negative)
            for (uint32_t i = 0; i < stored * ROWS; i++) a[i] = -a[i];
        if (pitch > columns) memset(b, 0, sizeof *b * k * pitch);
        load_matrix(product->type[1], product->transposed[1], right, product->transposed[1] ? columns / 8 : units,
                    columns, k, b, pitch);
        if (product->sparse) {
            read_metadata(product, operands->metadata, places);
            multiply(a, b, (const uint8_t (*)[MOST_K])places, stored, sums, pitch);
        } else {
            multiply(a, b, NULL, stored, sums, pitch);
        }
    }
    if (is_integer) add_integers(operands->d, columns, sums, pitch, operands->keeps, product->saturates);
    else if (product->sum == SUM_F32) store_words(operands->d, columns, sums, pitch);
    else store_halves(operands->d, columns, sums, pitch);
    return true;
}

/* ---- called by machine code ---------------------------------------------------------------------------------------- */

/* wgmma.mma_async, by the threads of a warp together. `registers` are four of A, or NULL where a descriptor says where A
 * is; `line` is the instruction's in the PTX. Returns nonzero on a fault. */
CPU_HELPER uint32_t cupola_wgmma(CPU_ACCESS_ARGUMENTS, uint64_t description, const uint32_t *registers, uint64_t a,
                                 uint64_t b, const uint32_t *metadata, uint32_t keeps, uint32_t line, uint32_t *d) {
    CPU_ACCESS_ARGUMENTS_USED(void) mask;
    const cpu_site site = unpack_site(packed);
    const uint32_t threads = context->ntid[0] * context->ntid[1] * context->ntid[2];
    if (threads - warp->first / GROUP_THREADS * GROUP_THREADS < GROUP_THREADS) {
        cpu_fault_raise(context, warp, 0, CPU_FAULT_INSTRUCTION, site.index,
                        "the four warps of a warpgroup must execute this instruction together, but the last warpgroup "
                        "of a block of %u threads has %u: make the number of threads of a block a multiple of 128",
                        threads, threads % GROUP_THREADS);
        return 1;
    }
    const uint64_t words[] = {line, description, registers ? 0 : a, b, keeps};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        warp->products = (warp->products ^ (uint32_t)(words[i] ^ words[i] >> 32)) * 0x9E3779B1u + 1;
    const struct product product = unpack_product(description);
    return !multiply_matrices(&(struct source){context, warp, site}, &product,
                              &(struct operands){registers, metadata, a, b, d, keeps});
}

/* Operands that all threads must have in common, but lanes have another one than lane 0. */
CPU_HELPER void cupola_uneven_wgmma(cpu_context *context, cpu_warp *warp, uint32_t lanes, uint32_t site) {
    cpu_fault_raise(context, warp, __builtin_ctz(lanes), CPU_FAULT_INSTRUCTION, site,
                    "matrix descriptors and scale-d must be the same in all threads of the warpgroup, but this "
                    "thread's differ from those of lane 0");
}
