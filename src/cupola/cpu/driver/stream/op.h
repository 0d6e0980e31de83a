/* Operations: what a stream or a graph carries out (op.c). */
#ifndef CUPOLA_CPU_DRIVER_OP_H
#define CUPOLA_CPU_DRIVER_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/base/base.h"

enum op_kind {
    OP_EMPTY,
    OP_KERNEL,
    OP_COPY,
    OP_FILL,
    OP_HOST,   /* cuLaunchHostFunc, cuStreamAddCallback */
    OP_RECORD, /* an event */
    OP_WAIT,   /* for a place in another stream (streams), or for an event (graphs) */
    OP_VALUES, /* cuStreamWriteValue32/64, cuStreamWaitValue32/64, cuStreamBatchMemOp */
    OP_ALLOCATE,
    OP_FREE,
    OP_GRAPH,
    OP_CALL, /* of a library (cpu/math): a host function that may fail and that owns its arguments */
};

/* A box of bytes. Rows and slices apart by the pitches; height and depth are 1 for a plain copy. */
struct copy {
    const char *source;
    char *target;
    size_t width, height, depth;
    size_t source_pitch, source_slice, target_pitch, target_slice; /* bytes */
    CUDA_MEMCPY3D *form; /* how the user put it, for graph nodes; NULL: none kept. Freed with the op */
    void *staging;       /* memory that holds the source; NULL: none. Freed with the op */
};

struct fill {
    char *target;
    uint32_t value;
    uint32_t element;            /* 1, 2 or 4 bytes */
    size_t width, height, pitch; /* elements, rows, bytes */
};

struct launch_attributes {
    uint8_t cooperative, has_priority;
    uint8_t unfinished; /* of a kernel node, which may still get a cluster that its kernel must have */
    uint8_t scheduling_policy, domain, nvlink_scheduling,
        shared_memory_mode; /* as the enumerations of CUDA number them */
    CUlaunchMemSyncDomainMap domain_map;
    int priority;
    int portable_mode;                         /* CUlaunchAttributePortableClusterMode */
    uint32_t cluster[3], preferred_cluster[3]; /* blocks; zeros: not given */
    unsigned carveout;
    CUaccessPolicyWindow window;
};

struct op {
    struct op *next;
    CUcontext context;
    uint64_t sequence;               /* place in the stream */
    uint64_t call;                   /* that has put it there (trace_call) */
    struct cpu_moment *moment;       /* while races are checked (moment.c); freed with the op */
    const struct cpu_origin *origin; /* the line of Python, of copies and fills then; NULL: not known */
    uint8_t kind;
    bool cancelled; /* nothing is to be done any more */
    union {
        struct {
            CUfunction function; /* its module is referenced */
            CUcontext green;     /* whose multiprocessors it runs on; NULL: on all */
            cpu_launch launch;   /* `params` points into the memory of this op */
            struct launch_attributes attributes;
        } kernel;
        struct copy copy;
        struct fill fill;
        struct {
            CUhostFn function;
            CUstreamCallback callback; /* instead of `function`; called even after an error */
            CUstream stream;           /* what the callback is told */
            void *data;                /* OP_CALL: a struct call, referenced, which is `function`'s argument */
        } host;
        struct {
            CUevent event;       /* referenced */
            uint64_t generation; /* which of its records this is; 0 (graphs): whichever was last */
        } record;
        struct {
            CUstream stream; /* referenced */
            uint64_t sequence;
            CUevent event; /* referenced: of several processes, wait for record number `sequence`; in graphs (0), for
                            * what it last recorded when the graph gets there */
        } wait;
        struct { /* carried out one after another */
            unsigned count;
            CUstreamBatchMemOpParams *list; /* freed with the op; NULL: there is `one` */
            CUstreamBatchMemOpParams one;
            _Atomic uint64_t polls; /* how often a wait has looked for its value in vain */
        } values;
        struct {
            void *pool; /* CUmemoryPool */
            uint64_t address, size;
            void *owner; /* for the memory room */
        } memory;
        struct {
            void *graph;     /* the plan of an executable graph, referenced */
            CUstream stream; /* where it was launched */
            bool upload;     /* nothing runs */
        } graph;
    };
};

/* What an OP_CALL carries out: its arguments follow this head. `run` may be called again and again (graphs). */
struct call {
    _Atomic unsigned references;
    CUresult (*run)(struct call *call); /* a failing status is the operation's, with the thread's explanation */
    void (*end)(struct call *call);     /* before it is freed; NULL: nothing is to be done */
    bool waits;                         /* for others, for an unknown time */
};
/* The addresses that the call which this thread carries out has checked. */
extern _Thread_local struct call_range {
    uint64_t low, high;
} call_range;
void call_release(struct call *call);                         /* with the last reference it is freed */
bool op_waits(const struct op *op);                           /* a call that waits for others */
bool op_is_call(CUhostFn function);                           /* what a graph shows as the function of an OP_CALL */
struct op *op_new_call(CUcontext context, struct call *call); /* takes over a reference, also when it returns NULL */

struct op *op_new(enum op_kind kind, CUcontext context);
struct op *op_copy(const struct op *op); /* takes its own references */
void op_free(struct op *op);             /* any thread, without the GIL */

/* Carry out an operation on this thread; may be done again and again. An error spoils op->context (context_fault)
 * and is returned. In a spoiled context only what has to be undone is done: frees, callbacks, records. */
CUresult op_execute(struct op *op);

/* Note in the trace what was carried out from `begin` on; and that a call has allocated or freed memory, in the order of a
 * stream or of none (timed.c). */
void op_trace(const struct op *op, uint64_t begin, CUresult status);
void memory_trace(bool freed, int device, uint64_t bytes, const void *stream);

/* OP_VALUES (value.c) */
CUresult values_execute(struct op *op);
CUresult values_new(CUcontext context, unsigned count, const CUstreamBatchMemOpParams *list, struct op **op);
CUresult values_check_addresses(const struct op *op);
const CUstreamBatchMemOpParams *values_list(const struct op *op);
bool values_wait(const struct op *op); /* for what others write */
/* Whether an executable graph may get the one for the other: addresses, values and conditions may differ. */
bool values_are_alike(const struct op *a, const struct op *b);

#endif
