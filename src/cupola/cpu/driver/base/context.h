/* A thread's state, entering the driver, and contexts (init.c, context.c). */
#ifndef CUPOLA_CPU_DRIVER_CONTEXT_H
#define CUPOLA_CPU_DRIVER_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupola/driver.h>

#include "device.h"
#include "engine/engine.h"
#include "handle.h"
#include "partition.h"
#include "status.h"

enum { CONTEXT_STACK = 64, EXPLANATION_SIZE = 2048 /* bytes kept of an explanation */ };

struct thread_state {
    CUcontext stack[CONTEXT_STACK]; /* the current context is stack[depth - 1] */
    int depth;
    bool null_stream_is_per_thread; /* inside a _ptsz or _ptds entry point: stream 0 means CU_STREAM_PER_THREAD */
    bool in_callback;               /* inside a host function, which may not call the driver */
    int capture_mode;               /* CUstreamCaptureMode of this thread, see cuThreadExchangeStreamCaptureMode */
    CUresult failed;                /* the status that `explanation` explains, */
    struct graph_run *graph_run; /* the graph whose nodes this thread carries out, if kernels may launch graphs there */
    CUcontext spoiled;           /* or that this context's asynchronous error explains */
    char explanation[EXPLANATION_SIZE];
};
extern __thread struct thread_state thread_state;

/* ---- entering the driver (init.c) -------------------------------------------------------------------------------- */

enum driver_phase { DRIVER_NEW, DRIVER_READY, DRIVER_LOCKED, DRIVER_FORKED };
extern _Atomic int driver_phase;
CUresult enter_otherwise(void) __attribute__((cold)); /* not DRIVER_READY: why no call can be served now, if so */

/* Every entry point that needs cuInit begins with one of these, or with enter_stream() (stream/stream.h).
 * enter_anywhere() asks for nothing more: it is for the few that host functions may call on a GPU, too. */
static inline CUresult enter_anywhere(void) {
    if (likely(atomic_load_explicit(&driver_phase, memory_order_relaxed) == DRIVER_READY)) return CUDA_SUCCESS;
    return enter_otherwise();
}

/* enter(): not in a host function. There a call that waits for the stream would wait for itself. */
CUresult enter_in_callback(void) __attribute__((cold)); /* CUDA_ERROR_NOT_PERMITTED */
static inline CUresult enter(void) {
    if (unlikely(thread_state.in_callback)) return enter_in_callback();
    return enter_anywhere();
}

/* pass_gate(): for what makes, changes or frees something, or gives a device work; such a call waits while this process is
 * locked for a checkpoint (gate.c). Without locks held. */
void gate_wait(void) __attribute__((cold));
void gate_close(void);
void gate_open(void);
static inline void pass_gate(void) {
    if (unlikely(atomic_load_explicit(&driver_phase, memory_order_relaxed) == DRIVER_LOCKED)) gate_wait();
}

/* enter() and pass_gate(). */
static inline CUresult enter_to_work(void) {
    pass_gate();
    return enter();
}

/* enter_context(): a usable current context, one that no asynchronous error has spoiled. Most calls need it. It passes the
 * gate, enter_context_to_ask() does not. */
CUresult enter_context(CUcontext *context);
CUresult enter_context_to_ask(CUcontext *context);

/* ---- settings of core dumps (coredump.c) -------------------------------------------------------------------------- */

enum { COREDUMP_NAME = 1024 };
struct coredump {
    bool flags[CU_COREDUMP_MAX]; /* by CUcoredumpSettings */
    uint32_t generation;         /* CUCoredumpGenerationFlags */
    char file[COREDUMP_NAME + 1];
};
void coredump_begin(struct coredump *settings); /* with those of the process */

/* ---- limits (limit.c) -------------------------------------------------------------------------------------------- */

void context_begin_limits(CUcontext context); /* with their defaults */
bool context_has_limit(CUcontext context, CUlimit limit);
/* Kernels are launched that call these functions of the system (enum cpu_system_calls) and have at most so much local memory: a
 * larger frame than the limit of stacks makes that larger. */
void context_note_kernels(CUcontext context, uint32_t system_calls, size_t local_bytes);

/* ---- contexts (context.c) ---------------------------------------------------------------------------------------- */

/* The record of the kernel that spoiled a context: enough to explain it later, on the thread that asks. */
struct fault_record {
    CUresult status;
    CUmodule module;   /* referenced: keeps the kernel and its variants; NULL: not a kernel's fault, then */
    char *text;        /* says what happened, or is NULL */
    cpu_launch launch; /* a copy; `params` is NULL */
};

/* A green context is a context of its own only as far as programs see one: the multiprocessors that its kernels run on,
 * its streams, and whether it is destroyed. All else belongs to the primary context of the device, its `owner`, and so
 * entry points work with that: enter_context() and context_find() give owners. */
struct CUctx_st {
    struct handle handle;
    struct coredump coredump;
    struct device *device;
    CUcontext owner;  /* itself, or of a green context the primary one, which it retains */
    CUgreenCtx green; /* the handle of the green context; NULL: not a green one */
    struct part part; /* of a green context: what it may use */
    uint8_t *places;  /* the same, the multiprocessors in ascending order */
    cpu_share *share;
    uint64_t id;
    unsigned flags;
    bool is_primary, has_default_stream;
    _Atomic bool active;        /* false: destroyed, or a primary context that nobody retains */
    _Atomic int error;          /* CUresult of the first asynchronous error; it stays until the context goes */
    struct fault_record *fault; /* set before `error` */
    _Atomic bool heard;         /* a call has returned it */
    _Atomic size_t limits[CU_LIMIT_MAX];
    _Atomic uint32_t system_calls;     /* enum cpu_system_calls: of the kernels that were launched so far */
    cpu_heap heap;                     /* of malloc() in kernels */
    _Atomic unsigned pending_launches; /* of kernels by kernels: begun by nobody yet, or not over */
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    pthread_mutex_t lock;       /* streams, modules and the peers */
    pthread_mutex_t order_lock; /* held while work is put in the legacy stream or in one that it synchronizes with */
    _Atomic(CUstream) legacy;   /* the default stream that synchronizes with the blocking ones */
    _Atomic(CUstream) gate; /* waits for the events that the context is to wait for, and new streams for it; or NULL */
    CUstream streams;       /* all streams, the default ones included */
    CUmodule modules;
    uint32_t peers;          /* bit d: this context may use the memory of device d */
    void *memory;            /* for the memory room: what must go with the context */
    _Atomic(void *) moments; /* for the stream room, while races are checked (stream/moment.c) */
};

enum { PRIORITY_LEAST = 0, PRIORITY_GREATEST = -5 }; /* of streams and launches */
static inline int nearest_priority(int priority) {
    return priority > PRIORITY_LEAST ? PRIORITY_LEAST : priority < PRIORITY_GREATEST ? PRIORITY_GREATEST : priority;
}

/* The current context, NULL when this thread has none. It may be spoiled or destroyed: see enter_context(). */
static inline CUcontext current_context(void) {
    return thread_state.depth ? thread_state.stack[thread_state.depth - 1] : NULL;
}
CUresult context_new_primary(struct device *device);
/* The same, and its owner: where what is made lies. */
static inline CUcontext current_owner(void) {
    CUcontext context = current_context();
    return context ? context->owner : NULL;
}
static inline bool context_is_alive(CUcontext context) {
    return atomic_load_explicit(&context->active, memory_order_acquire);
}
void contexts_lose_device(int device, CUresult status); /* an asynchronous error in all contexts of a device */
CUresult context_check(CUcontext context);              /* live and unspoiled, or the status to return */
CUresult context_find(CUcontext handle,
                      CUcontext *context); /* its owner; NULL: of the current one. Spoiled ones pass */
CUresult context_find_itself(CUcontext handle, CUcontext *context); /* the same, but green ones stay green */
CUresult context_new_green(struct device *device, const struct part *part, CUcontext *context);
void context_end_green(CUcontext context);      /* its streams have been detached */
int context_multiprocessors(CUcontext context); /* that its kernels may use */
CUresult context_error(CUcontext context);      /* the asynchronous error, explained; or CUDA_SUCCESS */
size_t context_explain(CUcontext context, CUresult status, char *text, size_t size);
/* Spoil the context, unless it is spoiled already. The launch that failed, or NULL: the thread's explanation is
 * kept. */
void context_fault(CUcontext context, CUresult status, CUmodule module, const cpu_launch *launch);

#endif
