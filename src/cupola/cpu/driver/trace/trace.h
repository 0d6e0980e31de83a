/* What a program asks of the CPU device, and what that does, each with its times (cupola.profile). Off, it costs one test an
 * operation. trace.c stores the records, calls.c makes those of calls, and stream/timed.c those of operations. */
#ifndef CUPOLA_CPU_DRIVER_TRACE_H
#define CUPOLA_CPU_DRIVER_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/common.h"

enum trace_kind {
    TRACE_CALL,   /* of an entry point, in the thread `place` */
    TRACE_KERNEL, /* from here on: on the device, in the stream `place` */
    TRACE_COPY,
    TRACE_FILL,
    TRACE_HOST, /* a function of the program, called in stream order */
    TRACE_WAIT,
    TRACE_EVENT,
    TRACE_VALUES,
    TRACE_ALLOCATE,
    TRACE_FREE,
    TRACE_GRAPH,   /* around the records of its nodes */
    TRACE_LIBRARY, /* a call of a math library */
    TRACE_KINDS
};

struct trace_record {
    uint64_t begin, end; /* ns, clock_now() */
    uint64_t call;       /* the number of the call; of an operation, that of the call that has queued it, or 0 */
    uint64_t place;
    uint64_t bytes;
    uint64_t memory;  /* in use on the device at its end */
    const char *name; /* stays until the process ends */
    uint32_t grid[3], block[3], shared;
    int32_t device, status;
    uint8_t kind;
    char from, to; /* of a copy: 'D' device, 'H' host, 'P' pinned, 'M' managed */
};

extern _Atomic bool trace_on;
static inline bool tracing(void) { return unlikely(atomic_load_explicit(&trace_on, memory_order_relaxed)); }

/* Any thread. After a beginning, the records of the one before are gone. */
void trace_begin(size_t most); /* records; what is beyond is counted only */
void trace_end(void);
/* Record number `index` of those there are; false behind the last. */
bool trace_read(size_t index, struct trace_record *record);
size_t trace_lost(void);

void trace_add(const struct trace_record *record);
const char *trace_name(const char *name); /* a copy that stays */

/* The call that this thread is in, or the one whose graph it carries out; 0: none. */
extern _Thread_local uint64_t trace_call;
/* The stream whose operations this thread carries out. */
extern _Thread_local const void *trace_stream;
/* A call begins: what it returns to is replaced by what ends it. */
void trace_call_begin(const char *name, void **returns_to);

#endif
