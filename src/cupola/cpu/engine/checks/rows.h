/* Loops over the records of words that follow each other, which the compiler is to make vectors of (rows.c). */
#ifndef CUPOLA_CPU_ROWS_H
#define CUPOLA_CPU_ROWS_H

#include "engine/memory/shadow.h"

#define load(P) __atomic_load_n(P, __ATOMIC_RELAXED)
#define store(P, V) __atomic_store_n(P, V, __ATOMIC_RELAXED)

/* What makes a record harmless without a closer look: it is of none of the blocks from `low` to `high`; or of this one, at
 * a time that all know of, or by the same thread. Copies are not. */
struct limits {
    int64_t low, high, own, known;
};
enum { WARP_SHIFT = 11, WARPS = 31 }; /* of a record's thread */
#define THREAD_OF UINT64_C(0xFFFFFFFF0000FFC0) /* of a record: the block and the thread */
#define NO_THREAD (UINT64_C(1) << 63)          /* in a record: it is none of any thread */

/* Two reads of a word that a third one need not stand beside. */
static inline bool are_read(const struct limits *limits, cpu_record first, cpu_record second) {
    const int64_t end = limits->own + (INT64_C(1) << 32), one = (int64_t)first, two = (int64_t)second;
    const bool apart = (first ^ second) >> WARP_SHIFT & WARPS;
    return (one >= limits->known) & (one < end) & (two >= limits->known) & (two < end) & apart;
}

static inline bool is_of_others(const struct limits *limits, cpu_record before) {
    return ((int64_t)before < limits->low) | ((int64_t)before >= limits->high);
}

static inline bool is_harmless(const struct limits *limits, cpu_record before, cpu_record mine) {
    const int64_t r = (int64_t)before;
    const bool known = (r >= limits->own) & (r < limits->known);
    const bool same = !((before ^ mine) & THREAD_OF), copy = (before & 0x30) == 0x30;
    return is_of_others(limits, before) | ((known | same) & !copy);
}

/* `mine` is the record of the first word; 2**shift words are of one lane. The survey says whether all records are harmless
 * (1), and whether all are of others (2). */
unsigned cpu_rows_survey(const struct limits *limits, const cpu_record *records, cpu_record mine, uint32_t count,
                         uint32_t shift);
/* Whether each word has been read since all knew of each other, by two warps of this block: one more says nothing new. */
bool cpu_rows_are_read(const struct limits *limits, const cpu_record *first, const cpu_record *second, uint32_t count);
void cpu_rows_fill(cpu_record *records, uint16_t *sites, cpu_record mine, uint16_t site, uint32_t count,
                   uint32_t shift);
/* Reads of words that others have read, too: each goes to the first slot where that is free, else to the second. */
void cpu_rows_note_reads(const struct limits *limits, const cpu_shadow *shadow, uint64_t index, cpu_record mine,
                         uint16_t site, uint32_t count, uint32_t shift);

#endif
