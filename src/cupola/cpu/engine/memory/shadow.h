/* Shadows of memory, for the checks of kernels (engine/checks): the accesses that were last, and what was never written. */
#ifndef CUPOLA_CPU_SHADOW_H
#define CUPOLA_CPU_SHADOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An access that has happened: the block's number, stamp, thread, kind, and the bytes of the word. 0: none. */
typedef uint64_t cpu_record;
enum { STAMP_BITS = 16, STAMP_MOST = (1 << STAMP_BITS) - 1, THREAD_BITS = 10 };
static inline cpu_record make_record(uint32_t block, uint32_t stamp, uint32_t thread, uint32_t kind, uint32_t bytes) {
    return (uint64_t)block << 32 | (uint64_t)(stamp < STAMP_MOST ? stamp : STAMP_MOST) << 16 | thread << 6 | kind << 4 |
           bytes;
}
static inline uint32_t record_block(cpu_record r) { return (uint32_t)(r >> 32); }
static inline uint32_t record_stamp(cpu_record r) { return (uint32_t)(r >> 16) & STAMP_MOST; }
static inline uint32_t record_thread(cpu_record r) { return (uint32_t)(r >> 6) & ((1 << THREAD_BITS) - 1); }
static inline uint32_t record_kind(cpu_record r) { return (uint32_t)(r >> 4) & 3; }
static inline uint32_t record_bytes(cpu_record r) { return (uint32_t)r & 15; }

/* A row of words of which nothing is known: the record of no block. */
#define NOTHING 1

/* What is known of some words of memory, 4 bytes each; the instruction of each record, by its number, is beside it. */
enum { WRITTEN, READ, READ_TOO, RECORDS };
typedef struct cpu_shadow {
    /* For each 32 words, a record that stands for theirs if it is not 0: a thread for each word, from its thread on. */
    cpu_record *rows[RECORDS];
    cpu_record *records[RECORDS];
    uint16_t *sites[RECORDS];
    uint8_t *unset; /* the bytes of each word that nobody has written */
} cpu_shadow;
enum { CPU_SHADOW_ROW = 32 /* words */, CPU_SHADOW_BYTES = RECORDS * (sizeof(cpu_record) + sizeof(uint16_t) + 1) + 1 };

/* The shadow of a 2 MiB piece of the arena; NULL: the address is not in the arena, or there is no memory. */
enum { CPU_SHADOW_SHIFT = 21 };
const cpu_shadow *cpu_shadow_of(uint64_t address);
/* Lay a shadow of so many words, a multiple of CPU_SHADOW_ROW, out in memory of CPU_SHADOW_BYTES for each. */
void cpu_shadow_lay_out(cpu_shadow *shadow, void *memory, size_t words);

/* ---- device memory that nobody has written ---------------------------------------------------------------------------- */

/* Whether allocations are noted as memory that nobody has written. */
extern _Atomic bool cpu_shadow_tracks;
extern _Atomic bool cpu_shadow_remembers;   /* and whether accesses are */
extern _Atomic uint64_t cpu_shadow_version; /* counts what has become memory that nobody has written */
void cpu_shadow_set_unset(uint64_t address, uint64_t size);
bool cpu_shadow_is_set(uint64_t address, uint64_t size); /* whether all of it was written */
void cpu_shadow_set_written(uint64_t address, uint64_t size);
void cpu_shadow_set_all_written(void); /* what is noted from now on counts */
void cpu_shadow_copy(uint64_t target, uint64_t source, uint64_t size);
/* How far the first byte is that nobody has written, UINT64_MAX: there is none; and how many there are. */
uint64_t cpu_shadow_first_unset(uint64_t address, uint64_t size, uint64_t *count);

/* Forget the accesses to memory that is new: others had it before. */
void cpu_shadow_forget(uint64_t address, uint64_t size);

#endif
