/* Matrices between memory and the registers of a warp (PTX ISA 9.7.14: wmma.load, wmma.store, ldmatrix, stmatrix).
 *
 * Registers are arrays with a word of each lane. compiler/emit/instructions/fragments.py describes how they make
 * up a matrix: tiles of 8 lines, of which lane 4 * g + t holds word t of line g. So a line of a tile is 16 bytes of a
 * register in a row (32 of doubles), and where it is 16 bytes in memory as well, it is copied as a whole. */
#include "access.h"
#include "engine/checks/checks.h"

#include <string.h>

enum { LANES = CPU_WARP_THREADS, LINES = 8, MOST_RUNS = 32 };

/* How a matrix lies in memory and in registers, as emit/memory/matrix_memory.py packs it into one integer. A *run* is a row
 * or a column that is contiguous in memory. */
struct layout {
    uint32_t bits;                  /* of an element */
    uint32_t lines;                 /* tiles beside each other along the lines' direction, and ... */
    uint32_t across;                /* ... along a line */
    uint32_t registers;             /* as many as the instruction names: what lies beyond the tiles repeats them */
    bool lines_first, along, pairs; /* the order of tiles; a line is a run; accumulators in two registers */
};

static struct layout unpack_layout(uint64_t packed) {
    return (struct layout){packed & 255,     packed >> 8 & 255, packed >> 16 & 255, packed >> 24 & 255,
                           packed >> 32 & 1, packed >> 33 & 1,  packed >> 34 & 1};
}

/* Elements of a line of one tile. */
static uint32_t tile_length(const struct layout *layout) {
    return layout->pairs ? 8 : (layout->bits == 64 ? 256 : 128) / layout->bits;
}

/* The start of each run in host memory; false after a fault. Runs are checked from unit to unit. */
static bool find_runs(cpu_context *context, const cpu_warp *warp, cpu_site site, const struct layout *layout,
                      uint64_t address, uint64_t pitch, uint8_t **runs) {
    const uint32_t line = layout->across * tile_length(layout), beside = layout->lines * LINES;
    const uint32_t count = layout->along ? beside : line, length = (layout->along ? line : beside) * layout->bits / 8;
    for (uint32_t run = 0; run < count; run++) {
        uint64_t start = address + run * pitch;
        for (uint32_t at = 0; at < length; at += site.size) {
            uint8_t *unit = cpu_resolve_cached(context, warp, 0, site, start + at);
            if (!unit) return false;
            if (at == 0) runs[run] = unit;
            if (asked(context->block->watch != NULL) && site.flags & CPU_SITE_WRITE) {
                const bool is_shared = site.space == CPU_SPACE_SHARED;
                cpu_watch_write(context, warp, 0, site, is_shared ? CPU_SHARED_WINDOW + start + at : start + at,
                                site.size, CPU_ACCESS_PLAIN);
            }
        }
    }
    return true;
}

/* Visit each line of each tile: `line` is its first byte in the registers, `at` in its run when lines are runs. */
#define FOR_TILES(...)                                                                                                 \
    const uint32_t tiles = layout.lines * layout.across, length = tile_length(&layout);                                \
    const uint32_t word = layout.bits == 64 ? 8 : 4, size = layout.bits / 8;                                           \
    for (uint32_t tile = 0; tile < tiles; tile++) {                                                                    \
        const uint32_t across = layout.lines_first ? tile / layout.lines : tile % layout.across;                       \
        const uint32_t beside = layout.lines_first ? tile % layout.lines : tile / layout.across;                       \
        uint8_t *registers = fragment + (size_t)tile * (layout.pairs ? 2 : 1) * LANES * word;                          \
        for (uint32_t g = 0; g < LINES; g++) {                                                                         \
            uint8_t *line = registers + (size_t)g * 4 * word;                                                          \
            const uint32_t number = beside * LINES + g, first = across * length;                                       \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    (void)size;

/* Where element q of a line is in the registers. */
static inline uint8_t *in_registers(const struct layout *layout, uint8_t *line, uint32_t q, uint32_t word,
                                    uint32_t size) {
    if (!layout->pairs) return line + (size_t)q * size;
    return line + (size_t)(q & 1) * LANES * word + (size_t)(q >> 1) * word;
}

static inline void copy_element(uint8_t *to, const uint8_t *from, uint32_t size) {
    switch (size) {
        case 1: *to = *from; break;
        case 2: memcpy(to, from, 2); break;
        case 4: memcpy(to, from, 4); break;
        default: memcpy(to, from, 8);
    }
}

/* wmma.load: `fragment` receives the registers. `pitch` is the distance of runs in bytes. */
CPU_HELPER uint32_t cupola_matrix_load(CPU_ACCESS_ARGUMENTS, uint64_t address, uint64_t pitch, uint64_t description,
                                       uint8_t *fragment) {
    CPU_ACCESS_ARGUMENTS_USED(void) mask;
    const struct layout layout = unpack_layout(description);
    uint8_t *runs[MOST_RUNS];
    if (!find_runs(context, warp, unpack_site(packed), &layout, address, pitch, runs)) return 1;
    FOR_TILES(if (layout.along && !layout.pairs)
                  memcpy(line, runs[number] + (size_t)first * layout.bits / 8, 4u * word);
              else for (uint32_t q = 0; q < length; q++) {
                  const uint8_t *from = layout.along ? runs[number] + (size_t)(first + q) * size
                                                     : runs[first + q] + (size_t)number * size;
                  copy_element(in_registers(&layout, line, q, word, size), from, size);
              })
    const size_t bytes = (size_t)tiles * (layout.pairs ? 2 : 1) * LANES * word;
    for (size_t done = bytes; done < (size_t)layout.registers * LANES * word; done += bytes)
        memcpy(fragment + done, fragment, bytes);
    return 0;
}

/* wmma.store. */
CPU_HELPER uint32_t cupola_matrix_store(CPU_ACCESS_ARGUMENTS, uint64_t address, uint64_t pitch, uint64_t description,
                                        uint8_t *fragment) {
    CPU_ACCESS_ARGUMENTS_USED(void) mask;
    const struct layout layout = unpack_layout(description);
    uint8_t *runs[MOST_RUNS];
    if (!find_runs(context, warp, unpack_site(packed), &layout, address, pitch, runs)) return 1;
    FOR_TILES(if (layout.along && !layout.pairs)
                  memcpy(runs[number] + (size_t)first * layout.bits / 8, line, 4u * word);
              else for (uint32_t q = 0; q < length; q++) {
                  uint8_t *to = layout.along ? runs[number] + (size_t)(first + q) * size
                                             : runs[first + q] + (size_t)number * size;
                  copy_element(to, in_registers(&layout, line, q, word, size), size);
              })
    return 0;
}

/* ---- 8x8 matrices of 16-bit elements in shared memory ------------------------------------------------------------ */

/* A row whose address lane `lane` gives. A generic address must be one of shared memory. */
static uint8_t *find_row(cpu_context *context, const cpu_warp *warp, cpu_site site, int lane, uint64_t address) {
    if (site.space == CPU_SITE_GENERIC) {
        site.space = CPU_SPACE_SHARED;
        address -= CPU_SHARED_WINDOW;
    }
    return cpu_resolve(context, warp, lane, site, address);
}

/* ldmatrix: lane 8 * i + r of `addresses` points to row r of matrix i, which makes register i. */
CPU_HELPER uint32_t cupola_ldmatrix(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, uint32_t count,
                                    uint32_t transposed, uint16_t *fragment) {
    CPU_ACCESS_ARGUMENTS_USED(void) mask;
    const cpu_site site = unpack_site(packed);
    for (uint32_t lane = 0; lane < 8 * count; lane++) {
        const uint8_t *row = find_row(context, warp, site, (int)lane, addresses[lane]);
        if (!row) return 1;
        uint16_t *matrix = fragment + (lane >> 3) * 64;
        if (!transposed) {
            memcpy(matrix + (lane & 7) * 8, row, 16);
            continue;
        }
        uint16_t elements[8];
        memcpy(elements, row, sizeof elements);
        for (uint32_t column = 0; column < 8; column++) matrix[column * 8 + (lane & 7)] = elements[column];
    }
    return 0;
}

/* stmatrix, the other way round. All rows are found before any is written. */
CPU_HELPER uint32_t cupola_stmatrix(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, uint32_t count,
                                    uint32_t transposed, const uint16_t *fragment) {
    CPU_ACCESS_ARGUMENTS_USED(void) mask;
    const cpu_site site = unpack_site(packed);
    uint8_t *rows[LANES];
    for (uint32_t lane = 0; lane < 8 * count; lane++)
        if (!(rows[lane] = find_row(context, warp, site, (int)lane, addresses[lane]))) return 1;
    for (uint32_t lane = 0; lane < 8 * count; lane++) {
        const uint16_t *matrix = fragment + (lane >> 3) * 64;
        uint16_t elements[8];
        for (uint32_t column = 0; column < 8; column++)
            elements[column] = transposed ? matrix[column * 8 + (lane & 7)] : matrix[(lane & 7) * 8 + column];
        memcpy(rows[lane], elements, sizeof elements);
    }
    return 0;
}

/* ---- undefined uses ----------------------------------------------------------------------------------------------- */

/* A matrix instruction that not all threads of the warp execute together. */
CPU_HELPER void cupola_partial_warp(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t site) {
    const uint32_t threads = context->ntid[0] * context->ntid[1] * context->ntid[2];
    const uint32_t room = threads - warp->first < LANES ? threads - warp->first : LANES;
    if (room < LANES)
        cpu_fault_raise(context, warp, __builtin_ctz(mask), CPU_FAULT_INSTRUCTION, site,
                        "all 32 threads of a warp must execute a matrix instruction together, but this warp has %u: "
                        "make the number of threads of a block a multiple of 32",
                        room);
    else
        cpu_fault_raise(context, warp, __builtin_ctz(mask), CPU_FAULT_INSTRUCTION, site,
                        "all 32 threads of a warp must execute a matrix instruction together, but %d of them (lanes "
                        "0x%08x) do: the others have ended or are elsewhere",
                        __builtin_popcount(mask), mask);
}

/* A matrix in memory whose address or stride differs from lane to lane. */
CPU_HELPER void cupola_uneven_matrix(cpu_context *context, cpu_warp *warp, uint32_t lanes, uint32_t site) {
    cpu_fault_raise(context, warp, __builtin_ctz(lanes), CPU_FAULT_INSTRUCTION, site,
                    "the address and the stride of a matrix must be the same in all threads of the warp, but this "
                    "thread's differ from those of lane 0");
}
