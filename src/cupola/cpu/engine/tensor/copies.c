/* Copies between tensors in global memory and boxes in shared memory (PTX ISA 5.5, "Tensors", and the instructions
 * "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch.tensor"), done at once as all bulk
 * copies are (instructions/bulk.c).
 *
 * A copy is a sequence of rows: of a tile, its elements along the innermost dimension; of an image, the channels of one
 * pixel. In shared memory rows follow each other without gaps. What is outside of the tensor is filled in when it is
 * loaded, and left alone when it is stored. Pixels go along the width of the image's bounding box, then along its height,
 * depth and number, from wherever the copy starts.
 *
 * In an interleaved layout (NC/8HWC8) the channels are in slices of 16 or 32 bytes, and the slice takes the place of the
 * element: the innermost dimension is the width, in slices, and the last but one counts slices of channels. A copy is of
 * one of these, whatever the box says, and each of its slices is a row.
 *
 * What the ISA leaves open is as an H200 has it (tests/ptx/forms/tensor.txt). */
#include <stdio.h>
#include <string.h>

#include "engine/checks/checks.h"
#include "engine/instructions/atomics.h"
#include "engine/instructions/mbarrier.h"
#include "engine/memory/memory.h"
#include "tensor_map.h"

enum { CHUNK = 16, LINE = 128 /* bytes; what swizzles permute, and within which */, BOX_ALIGNMENT = 128 };
enum { ROW_BYTES = TENSOR_MOST_BOX * 8 };

/* An instruction, as emit/memory/tensors.py packs it: a byte each, from the lowest on. */
struct request {
    uint8_t rank, kind, reduction;
};

static struct request unpack(uint32_t bits) {
    return (struct request){(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16)};
}

/* One lane's copy. */
struct copy {
    cpu_context *context;
    cpu_warp *warp;
    int lane;
    cpu_site tensor, box; /* the sites of both ends */
    struct request request;
    cpu_tensor_map map;
    uint32_t size; /* bytes of an element, or of a slice */
    uint32_t row;  /* elements of a row */
    uint64_t rows;
    uint32_t first; /* the dimension along which rows follow each other */
    int64_t start[TENSOR_RANK];
    int64_t offsets[3];   /* of pixels, from the first dimension on */
    uint8_t *shared;      /* where the box begins */
    uint32_t place;       /* the same as an offset, by which swizzles go */
    uint64_t room;        /* bytes from there to the end of shared memory */
    uint64_t box_begins;  /* the generic address of that shared memory */
    cpu_allocation known; /* what the last row was in */
};

/* Where the rows of a copy are: the coordinates of the first element of the next one. */
struct walk {
    int64_t at[TENSOR_RANK];
    uint32_t index[TENSOR_RANK];
};

static uint32_t refuse(const struct copy *copy, const char *text) {
    cpu_fault_raise(copy->context, copy->warp, copy->lane, CPU_FAULT_INSTRUCTION, copy->tensor.index, "%s", text);
    return 1;
}

/* ---- the map and the box ---------------------------------------------------------------------------------------- */

/* Read the map at an address, and check it. Nonzero after a fault. */
static uint32_t read_map(struct copy *copy, uint64_t address) {
    const cpu_block *owner;
    char problem[256], text[400];
    cpu_site site = copy->tensor;
    site.space = CPU_SITE_GENERIC;
    site.flags &= (uint8_t)~CPU_SITE_WRITE;
    const uint64_t params = address - copy->context->params;
    const bool is_param = params < copy->context->param_bytes;
    if ((is_param ? params : address) % TENSOR_MAP_ALIGNMENT) {
        cpu_fault_raise_access(copy->context, copy->warp, copy->lane, CPU_FAULT_MISALIGNED, site, address,
                               TENSOR_MAP_ALIGNMENT, NULL);
        return 1;
    }
    const void *place =
        cpu_resolve_range(copy->context, copy->warp, copy->lane, site, address, TENSOR_MAP_BYTES, 1, &owner);
    if (!place) return 1;
    if (owner || address >> 32 == CPU_LOCAL_WINDOW >> 32)
        return refuse(copy,
                      "the tensor map is in shared or local memory; it must be in global or constant memory, or a "
                      "parameter of the kernel (const __grid_constant__)");
    memcpy(&copy->map, place, sizeof copy->map);
    if (!cpu_tensor_map_problem(&copy->map, copy->request.rank, copy->request.kind, problem, sizeof problem)) return 0;
    snprintf(text, sizeof text, "the tensor map at %#llx cannot be used: %s", (unsigned long long)address, problem);
    return refuse(copy, text);
}

/* How many elements of a tile's dimension are copied; the innermost one has steps only in layouts with slices. */
static uint32_t count_of(const struct copy *copy, uint32_t dimension) {
    const cpu_tensor_map *map = &copy->map;
    if (map->interleave && dimension == copy->request.rank - 2u) return 1;
    const uint32_t step = dimension >= copy->first ? map->step_last[dimension] + 1u : 1;
    return (map->box_last[dimension] + step) / step;
}

static void measure(struct copy *copy) {
    const cpu_tensor_map *map = &copy->map;
    const bool is_sliced = map->interleave != TENSOR_DENSE;
    copy->first = is_sliced ? 0 : 1;
    copy->size = is_sliced ? cpu_tensor_unit(map->interleave) : cpu_tensor_size[map->type];
    if (copy->request.kind == TENSOR_IMAGES) {
        copy->row = is_sliced ? 1 : map->channels_last + 1u;
        copy->rows = map->pixels_last + 1u;
        return;
    }
    copy->row = is_sliced ? 1 : map->box_last[0] + 1u;
    copy->rows = 1;
    for (uint32_t i = copy->first; i < copy->request.rank; i++) copy->rows *= count_of(copy, i);
}

/* Where a copy may start; a GPU calls other places an illegal instruction. Nonzero after a fault. */
static uint32_t check_start(const struct copy *copy, bool is_store) {
    const cpu_tensor_map *map = &copy->map;
    char text[256];
    if (copy->first && copy->start[0] * copy->size % TENSOR_UNIT) {
        snprintf(text, sizeof text,
                 "the copy starts at element %lld of the innermost dimension, byte %lld; it must start at "
                 "a multiple of %d bytes",
                 (long long)copy->start[0], (long long)copy->start[0] * copy->size, TENSOR_UNIT);
        return refuse(copy, text);
    }
    for (uint32_t i = 0; is_store && i < copy->request.rank; i++)
        if (copy->start[i] < 0) {
            snprintf(text, sizeof text, "the store starts at %lld in dimension %u; only loads may start below 0",
                     (long long)copy->start[i], i);
            return refuse(copy, text);
        }
    for (uint32_t i = 0; copy->request.kind == TENSOR_IMAGES && i + 2 < copy->request.rank; i++) {
        const int64_t at = copy->start[copy->first + i], lower = map->lower[i];
        const int64_t upper = (int64_t)map->last[copy->first + i] + map->upper[i];
        if (is_store && lower < 0) {
            snprintf(text, sizeof text,
                     "the bounding box of the map begins at %lld in dimension %u; only loads may go below 0",
                     (long long)lower, copy->first + i);
            return refuse(copy, text);
        }
        if (at >= lower && at <= upper) continue;
        snprintf(text, sizeof text,
                 "the copy starts at %lld in dimension %u; the map's bounding box goes from %lld to %lld",
                 (long long)at, copy->first + i, (long long)lower, (long long)upper);
        return refuse(copy, text);
    }
    return 0;
}

static uint64_t row_bytes(const struct copy *copy) { return (uint64_t)copy->row * copy->size; }

/* What an mbarrier is told. */
static uint64_t bytes_of(const struct copy *copy) { return copy->rows * row_bytes(copy); }

/* From row to row in shared memory: rows that are swizzled have the whole span of the pattern for themselves. */
static uint64_t pitch(const struct copy *copy) {
    const cpu_tensor_map *map = &copy->map;
    return map->swizzle && !map->interleave ? 16u << map->swizzle : row_bytes(copy);
}

/* Find the box in shared memory. Nonzero after a fault. */
static uint32_t find_box(struct copy *copy, uint64_t address) {
    const cpu_block *owner;
    const uint64_t span = (copy->rows - 1) * pitch(copy) + row_bytes(copy);
    copy->shared =
        cpu_resolve_range(copy->context, copy->warp, copy->lane, copy->box, address, span, BOX_ALIGNMENT, &owner);
    if (!copy->shared) return 1;
    if (!owner) return refuse(copy, "the box of a tensor copy is in shared memory");
    copy->place = (uint32_t)(copy->shared - owner->shared);
    copy->room = copy->context->shared_size - copy->place;
    copy->box_begins = CPU_SHARED_WINDOW | (uint64_t)(owner->rank + 1) << CPU_RANK_SHIFT;
    return 0;
}

/* Where a chunk of the box is: in lines of 128 bytes, the chunks of each 32, 64 or 128 bytes are permuted by the number
 * of the line, which is that of the address. */
static uint64_t swizzled(const struct copy *copy, uint64_t offset) {
    if (!copy->map.swizzle) return offset;
    const uint32_t address = copy->place + (uint32_t)offset;
    const uint32_t bits = (1u << copy->map.swizzle) - 1;
    return (address ^ (address / LINE & bits) * CHUNK) - copy->place;
}

/* Copy between a row of bytes and its place in the box, and which bytes of each word nobody has written (NULL: that is not
 * asked for). Nonzero after a fault. */
static uint32_t move_row(const struct copy *copy, uint64_t at, uint8_t *row, uint8_t *unset, uint64_t bytes,
                         bool to_box) {
    while (bytes) {
        uint64_t part = copy->map.swizzle ? CHUNK - at % CHUNK : bytes;
        if (part > bytes) part = bytes;
        const uint64_t place = swizzled(copy, at);
        if (place > copy->room || copy->room - place < part)
            return refuse(copy, "the swizzle leads beyond shared memory: align the box to the size of its pattern, "
                                "256, 512 or 1024 bytes");
        if (to_box) memcpy(copy->shared + place, row, part);
        else memcpy(row, copy->shared + place, part);
        const uint64_t generic = copy->box_begins + copy->place + place;
        if (unset && to_box) cpu_watch_put_unset(copy->context, generic, part, unset);
        else if (unset) cpu_watch_take_unset(copy->context, generic, part, unset);
        if (unset) unset += part / 4;
        at += part;
        row += part;
        bytes -= part;
    }
    return 0;
}

/* ---- rows of the tensor ----------------------------------------------------------------------------------------- */

static struct walk first_row(const struct copy *copy) {
    struct walk walk = {.index = {0}};
    memcpy(walk.at, copy->start, sizeof walk.at);
    return walk;
}

static void next_row(const struct copy *copy, struct walk *walk) {
    const cpu_tensor_map *map = &copy->map;
    const uint32_t rank = copy->request.rank;
    for (uint32_t i = copy->first; i < rank; i++) {
        const bool is_image = copy->request.kind == TENSOR_IMAGES;
        if (map->interleave && i == rank - 2) continue; /* slices of channels */
        walk->at[i] += map->step_last[i] + 1u;
        if (is_image) {
            const uint32_t corner = i - copy->first;
            if (i == rank - 1 || walk->at[i] <= (int64_t)map->last[i] + map->upper[corner]) return;
            walk->at[i] = map->lower[corner];
        } else {
            if (++walk->index[i] < count_of(copy, i)) return;
            walk->index[i] = 0;
            walk->at[i] = copy->start[i];
        }
    }
}

/* The part of a row that is inside: elements [begin, end) of it, and their address. Empty when all is outside. */
struct part {
    uint32_t begin, end;
    uint64_t address;
};

static struct part inside(const struct copy *copy, const struct walk *walk) {
    const cpu_tensor_map *map = &copy->map;
    const uint32_t rank = copy->request.rank;
    struct part part = {0, 0, map->address};
    for (uint32_t i = copy->first; i < rank; i++) {
        const uint32_t corner = i - copy->first;
        int64_t at = walk->at[i];
        if (copy->request.kind == TENSOR_IMAGES && corner + 2 < rank) at += copy->offsets[corner];
        if (at < 0 || at > map->last[i]) return part;
        part.address += (uint64_t)at * (i ? map->strides[i - 1] : copy->size);
    }
    if (!copy->first) {
        part.end = 1;
        return part;
    }
    const int64_t first = walk->at[0], end = (int64_t)map->last[0] + 1 - first;
    const int64_t begin = first < 0 ? -first : 0;
    if (begin >= copy->row || end <= begin) return part;
    part.begin = (uint32_t)begin;
    part.end = end < copy->row ? (uint32_t)end : copy->row;
    part.address += (uint64_t)(first + begin) * copy->size;
    return part;
}

/* The memory of such a part; NULL after a fault. */
static uint8_t *resolve(struct copy *copy, const struct part *part) {
    const uint64_t bytes = (uint64_t)(part->end - part->begin) * copy->size;
    const cpu_allocation *known = &copy->known;
    if (part->address - known->base < known->size && known->size - (part->address - known->base) >= bytes)
        return (uint8_t *)(uintptr_t)part->address;
    const int fault = cpu_find(copy->context, copy->tensor, part->address, bytes, &copy->known);
    if (!fault) return (uint8_t *)(uintptr_t)part->address;
    copy->known.size = 0;
    cpu_fault_raise_access(copy->context, copy->warp, copy->lane, fault, copy->tensor, part->address, bytes, NULL);
    return NULL;
}

/* ---- what is loaded --------------------------------------------------------------------------------------------- */

/* What is outside is zero or a NaN, which has the same 16 bits over and over in all types. */
static void fill(const struct copy *copy, uint8_t *row) {
    const size_t bytes = (size_t)copy->row * copy->size;
    const uint16_t pattern = copy->map.fill ? 0x7FF7 : 0;
    for (size_t i = 0; i < bytes; i += sizeof pattern) memcpy(row + i, &pattern, sizeof pattern);
}

/* A float is rounded to the nearest TF32, which has 10 bits of a fraction; denormals stay. */
static uint32_t to_tf32(uint32_t bits) {
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFFE000;
    return (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000;
}

static void convert(const struct copy *copy, uint8_t *bytes, size_t size) {
    if (copy->map.type != TENSOR_TF32 && copy->map.type != TENSOR_TF32_FTZ) return;
    for (size_t i = 0; i < size; i += sizeof(uint32_t)) {
        uint32_t bits;
        memcpy(&bits, bytes + i, sizeof bits);
        bits = to_tf32(bits);
        memcpy(bytes + i, &bits, sizeof bits);
    }
}

static uint32_t load(struct copy *copy) {
    struct walk walk = first_row(copy);
    const uint64_t bytes = row_bytes(copy);
    uint8_t row[ROW_BYTES], unset[ROW_BYTES / 4];
    const bool sees_unset = cpu_watch_sees_unset(copy->context);
    for (uint64_t i = 0; i < copy->rows; i++, next_row(copy, &walk)) {
        const struct part part = inside(copy, &walk);
        if (sees_unset) memset(unset, 0, sizeof unset);
        const uint32_t wanted = part.end - part.begin;
        if (wanted < copy->row) fill(copy, row);
        if (wanted) {
            const uint8_t *memory = resolve(copy, &part);
            if (!memory) return 1;
            if (asked(copy->context->block->watch != NULL))
                cpu_watch_fetched(copy->context, copy->warp, copy->lane, copy->tensor, part.address,
                                  (uint64_t)wanted * copy->size, 0);
            const size_t skipped = (size_t)part.begin * copy->size;
            if (sees_unset)
                cpu_watch_take_unset(copy->context, part.address, (uint64_t)wanted * copy->size, unset + skipped / 4);
            uint8_t *inner = row + skipped;
            memcpy(inner, memory, (size_t)wanted * copy->size);
            convert(copy, inner, (size_t)wanted * copy->size);
        }
        if (move_row(copy, i * pitch(copy), row, sees_unset ? unset : NULL, bytes, true)) return 1;
    }
    return 0;
}

/* ---- what is stored --------------------------------------------------------------------------------------------- */

static const char *const operations[REDUCTIONS] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
static const char *const types[TENSOR_TYPES] = {"u8",  "u16", "u32",  "s32",     "u64",  "s64",     "f16",
                                                "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz"};

/* The kind of elements for reductions; -1: the type has no reductions. */
static int reduced(uint8_t type) {
    switch (type) {
        case TENSOR_U32: return REDUCED_U32;
        case TENSOR_S32: return REDUCED_S32;
        case TENSOR_U64: return REDUCED_U64;
        case TENSOR_S64: return REDUCED_S64;
        case TENSOR_F16: return REDUCED_F16;
        case TENSOR_BF16: return REDUCED_BF16;
        case TENSOR_F32:
        case TENSOR_TF32: return REDUCED_F32;
        case TENSOR_F32_FTZ:
        case TENSOR_TF32_FTZ: return REDUCED_F32_FLUSHED;
        case TENSOR_F64: return REDUCED_F64;
        default: return -1;
    }
}

static uint32_t store(struct copy *copy) {
    struct walk walk = first_row(copy);
    const uint64_t bytes = row_bytes(copy);
    const uint8_t number = copy->request.reduction;
    const uint32_t element = cpu_tensor_size[copy->map.type];
    cpu_atomic *operation = NULL;
    uint8_t row[ROW_BYTES], unset[ROW_BYTES / 4];
    const bool sees_unset = !number && cpu_watch_sees_unset(copy->context);
    if (number) {
        const int type = reduced(copy->map.type);
        operation = type < 0 ? NULL : cpu_atomic_find(number, (enum reduced)type);
        if (!operation) {
            char text[128];
            snprintf(text, sizeof text, "there is no reduction .%s of elements of the type .%s", operations[number],
                     types[copy->map.type]);
            return refuse(copy, text);
        }
    }
    for (uint64_t i = 0; i < copy->rows; i++, next_row(copy, &walk)) {
        struct part part = inside(copy, &walk);
        if (part.begin == part.end) continue;
        /* A GPU writes the last 16 bytes of the tensor's rows whole. */
        const uint32_t unit = copy->size < TENSOR_UNIT ? TENSOR_UNIT / copy->size : 1;
        part.end = part.begin + (part.end - part.begin + unit - 1) / unit * unit;
        const uint32_t wanted = part.end - part.begin;
        uint8_t *memory = resolve(copy, &part);
        if (!memory || move_row(copy, i * pitch(copy), row, sees_unset ? unset : NULL, bytes, false)) return 1;
        const uint8_t *elements = row + (size_t)part.begin * copy->size;
        if (asked(copy->context->block->watch != NULL)) {
            const uint64_t size = (uint64_t)wanted * copy->size;
            if (operation)
                cpu_watch_write(copy->context, copy->warp, copy->lane, copy->tensor, part.address, size,
                                CPU_ACCESS_ATOMIC);
            else cpu_watch_moved(copy->context, copy->warp, copy->lane, copy->tensor, part.address, size, 0);
            if (sees_unset)
                cpu_watch_put_unset(copy->context, part.address, size, unset + (size_t)part.begin * copy->size / 4);
        }
        if (!operation) memcpy(memory, elements, (size_t)wanted * copy->size);
        else if (cpu_atomic_elements(copy->context, copy->warp, copy->tensor, operation, part.address, elements,
                                     element, (uint64_t)wanted * copy->size / element))
            return 1;
    }
    return 0;
}

/* ---- called by machine code ------------------------------------------------------------------------------------- */

/* Numbers of all lanes: `rows[i * width + lane]`, with `width` lanes in a row. */
static uint32_t begin(struct copy *copy, const uint64_t *maps, const int32_t *coordinates, const int32_t *offsets,
                      bool is_store) {
    const uint32_t width = copy->context->width;
    for (uint32_t i = 0; i < copy->request.rank; i++) copy->start[i] = coordinates[i * width + (uint32_t)copy->lane];
    for (uint32_t i = 0; offsets && i + 2 < copy->request.rank; i++)
        copy->offsets[i] = (uint16_t)offsets[i * width + (uint32_t)copy->lane];
    if (read_map(copy, maps[copy->lane])) return 1;
    measure(copy);
    return check_start(copy, is_store);
}

/* `packed` is the site of the tensor, `box` that of shared memory. With `ranks`, each lane writes to the blocks whose bits
 * are set there, and signals their mbarriers. */
CPU_HELPER uint32_t cupola_tensor_load(CPU_ACCESS_ARGUMENTS, uint64_t box, uint32_t request, const uint64_t *to,
                                       const uint64_t *maps, const int32_t *coordinates, const int32_t *offsets,
                                       const uint64_t *barriers, const uint32_t *ranks) {
    CPU_ACCESS_ARGUMENTS_USED
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        struct copy copy = {context, warp, lane, unpack_site(packed), unpack_site(box), unpack(request), .size = 0};
        if (begin(&copy, maps, coordinates, offsets, false)) return 1;
        uint32_t left = ranks ? ranks[lane] & 0xFFFF : 1;
        for (; left; left &= left - 1) {
            uint64_t target = to[lane], barrier = barriers[lane];
            if (ranks) {
                target = address_in_rank(target, (uint32_t)__builtin_ctz(left));
                barrier = address_in_rank(barrier, (uint32_t)__builtin_ctz(left));
            }
            if (find_box(&copy, target)) return 1;
            if (asked(context->block->watch != NULL))
                cpu_watch_copied(context, warp, lane, copy.box, target,
                                 (copy.rows - 1) * pitch(&copy) + row_bytes(&copy), barrier);
            if (load(&copy)) return 1;
            if (cpu_mbarrier_complete(context, warp, lane, copy.box, barrier, (uint32_t)bytes_of(&copy))) return 1;
        }
    }
    return 0;
}

/* Stores and reductions. */
CPU_HELPER uint32_t cupola_tensor_store(CPU_ACCESS_ARGUMENTS, uint64_t box, uint32_t request, const uint64_t *from,
                                        const uint64_t *maps, const int32_t *coordinates) {
    CPU_ACCESS_ARGUMENTS_USED
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        struct copy copy = {context, warp, lane, unpack_site(packed), unpack_site(box), unpack(request), .size = 0};
        if (begin(&copy, maps, coordinates, NULL, true) || find_box(&copy, from[lane])) return 1;
        if (asked(context->block->watch != NULL)) {
            const uint64_t span = (copy.rows - 1) * pitch(&copy) + row_bytes(&copy);
            cpu_watch_fetched(context, warp, lane, copy.box, from[lane], span, 0);
            if (copy.request.reduction) cpu_watch_used(context, warp, lane, copy.box, from[lane], span);
        }
        if (store(&copy)) return 1;
    }
    return 0;
}

/* A prefetch does nothing but look at the map. */
CPU_HELPER uint32_t cupola_tensor_prefetch(CPU_ACCESS_ARGUMENTS, uint32_t request, const uint64_t *maps,
                                           const int32_t *coordinates) {
    CPU_ACCESS_ARGUMENTS_USED
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        struct copy copy = {context, warp, lane, unpack_site(packed), {0}, unpack(request), .size = 0};
        if (begin(&copy, maps, coordinates, NULL, false)) return 1;
    }
    return 0;
}
