/* The emulated CUDA driver: what its files share.
 *
 * One file per family of the CUDA Driver API. An entry point has the name and C ABI that CUDA gives it, begins with
 * one of the enter_*() checks, and reports failure with fail(), which keeps a sentence for the user beside the
 * status. Work on a stream is a `struct op`, handed to stream_submit(). Symbols of this module are hidden, so that
 * the names cannot clash with a libcuda that the process has loaded as well. */
#ifndef CUPOLA_CPU_DRIVER_INTERNAL_H
#define CUPOLA_CPU_DRIVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cupola/driver.h>

#include "engine/engine.h"
#include "engine/memory/memory.h"
#include "handle.h"

#if defined(__x86_64__)
#define cpu_relax() __builtin_ia32_pause()
#else
#define cpu_relax() __asm__ volatile("yield")
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define EXPLANATION_SIZE 2048 /* bytes kept of an explanation */

/* ---- errors (error.c) ------------------------------------------------------------------------------------------ */

/* Return a failing status and keep a sentence that says what is wrong and what to do, for explain(). */
CUresult fail(CUresult status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
CUresult fail_null(const char *what) __attribute__((cold)); /* CUDA_ERROR_INVALID_VALUE: "'what' is a null pointer" */
/* CUDA_ERROR_INVALID_HANDLE, and whether the stream, event… (what) was destroyed or never was one */
CUresult fail_handle(const char *what, const void *handle, enum handle_kind kind) __attribute__((cold));

/* The compiler is to see that a status is returned which is not CUDA_SUCCESS. */
#define fail(status, ...) ((fail)(status, __VA_ARGS__), (status))
#define fail_null(what) ((fail_null)(what), CUDA_ERROR_INVALID_VALUE)
#define fail_handle(what, handle, kind) ((fail_handle)(what, handle, kind), CUDA_ERROR_INVALID_HANDLE)

const char *error_name(CUresult status); /* "CUDA_ERROR_…", or NULL when there is no such status */
CUresult error_status(const char *name); /* the other way; CUDA_ERROR_UNKNOWN when there is no such name */

/* The explanation of the status last returned to this thread: writes at most size bytes, returns the full length. */
size_t explain(int status, char *text, size_t size);

/* ---- a thread's state (context.c) ------------------------------------------------------------------------------ */

enum { CONTEXT_STACK = 64 };

struct thread_state {
    CUcontext stack[CONTEXT_STACK]; /* the current context is stack[depth - 1] */
    int depth;
    bool null_stream_is_per_thread; /* inside a _ptsz or _ptds entry point: stream 0 means CU_STREAM_PER_THREAD */
    bool in_callback;               /* inside a host function, which may not call the driver */
    int capture_mode;               /* CUstreamCaptureMode of this thread, see cuThreadExchangeStreamCaptureMode */
    CUresult failed;                /* the status that `explanation` explains, */
    CUcontext spoiled;              /* or that this context's asynchronous error explains */
    char explanation[EXPLANATION_SIZE];
};
extern __thread struct thread_state thread_state;

/* ---- entering the driver (init.c) ------------------------------------------------------------------------------ */

enum driver_phase { DRIVER_NEW, DRIVER_READY, DRIVER_FORKED };
extern _Atomic int driver_phase;
CUresult enter_refused(void) __attribute__((cold)); /* why no call can be served now: CUDA_ERROR_NOT_INITIALIZED */

/* Every entry point that needs cuInit begins with one of these. enter_anywhere() asks for nothing more: it is for
 * the few that host functions may call on a GPU, too. */
static inline CUresult enter_anywhere(void) {
    if (likely(atomic_load_explicit(&driver_phase, memory_order_relaxed) == DRIVER_READY)) return CUDA_SUCCESS;
    enter_refused();
    return CUDA_ERROR_NOT_INITIALIZED;
}

/* enter(): not in a host function. There a call that waits for the stream would wait for itself. */
CUresult enter_in_callback(void) __attribute__((cold)); /* CUDA_ERROR_NOT_PERMITTED */
static inline CUresult enter(void) {
    if (unlikely(thread_state.in_callback)) return enter_in_callback();
    return enter_anywhere();
}

/* enter_context(): a usable current context, one that no asynchronous error has spoiled. Most calls need it. */
CUresult enter_context(CUcontext *context);

/* enter_stream(): the same for the context of a stream. Resolves 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD in the
 * current context. The stream may be capturing; stream_submit() deals with that. */
CUresult enter_stream(CUstream handle, CUstream *stream);

#define RETURN_IF(call)                                         \
    do {                                                        \
        CUresult return_if_status = (call);                     \
        if (unlikely(return_if_status)) return return_if_status; \
    } while (0)

/* ---- the devices (model.c, device.c) --------------------------------------------------------------------------- */

/* The limits of a GPU that programs can see, as CUdevice_attribute and the occupancy rules need them. */
struct model {
    const char *key, *name;
    int major, minor;
    int multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
    int registers_per_multiprocessor, registers_per_block;
    int shared_per_multiprocessor, shared_per_block, shared_per_block_optin, shared_reserved; /* bytes */
    size_t memory;                                                                             /* bytes */
    int l2_cache, l2_persisting, access_window;                                                /* bytes */
    int clock, memory_clock, memory_bus;                                                       /* kHz, kHz, bits */
    int double_ratio; /* single to double precision throughput */
    int copy_engines;
};
extern const struct model models[];
extern const size_t model_count;
const struct model *model_find(const char *key);

/* Set up `count` devices of the model, 1 to MAX_DEVICES. False: too late, cuInit has been called. */
bool driver_configure(const struct model *model, int count);

enum { MAX_DEVICES = 16 };

struct device {
    int ordinal;
    const struct model *model;
    CUcontext primary; /* made at start, active while `primary_users` > 0 */
    unsigned primary_users, primary_flags;
    pthread_mutex_t lock;
};
extern struct device devices[MAX_DEVICES];
extern int device_count;
CUresult device_get(CUdevice ordinal, struct device **device); /* CUDA_ERROR_INVALID_DEVICE when there is none */
int device_attribute(const struct device *device, CUdevice_attribute attribute);

/* ---- contexts (context.c) -------------------------------------------------------------------------------------- */

/* The record of the kernel that spoiled a context: enough to explain it later, on the thread that asks. */
struct fault_record {
    CUresult status;
    CUmodule module;   /* referenced: keeps the kernel and its variants; NULL: not a kernel's fault, then */
    char *text;        /* says what happened, or is NULL */
    cpu_launch launch; /* a copy; `params` is NULL */
};

struct CUctx_st {
    struct handle handle;
    struct device *device;
    uint64_t id;
    unsigned flags;
    bool is_primary;
    _Atomic bool active;        /* false: destroyed, or a primary context that nobody retains */
    _Atomic int error;          /* CUresult of the first asynchronous error; it stays until the context goes */
    struct fault_record *fault; /* set before `error` */
    size_t limits[CU_LIMIT_MAX];
    cpu_heap heap; /* of malloc() in kernels */
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    pthread_mutex_t lock;       /* streams, modules and the peers */
    pthread_mutex_t order_lock; /* held while work is put in the legacy stream or in one that it synchronises with */
    _Atomic(CUstream) legacy;   /* the default stream that synchronises with the blocking ones */
    CUstream streams;           /* all streams, the default ones included */
    CUmodule modules;
    uint32_t peers; /* bit d: this context may use the memory of device d */
    void *memory;   /* for the memory room: what must go with the context */
};

/* The current context, NULL when this thread has none. It may be spoiled or destroyed: see enter_context(). */
static inline CUcontext current_context(void) {
    return thread_state.depth ? thread_state.stack[thread_state.depth - 1] : NULL;
}
CUresult context_new_primary(struct device *device);
CUresult context_check(CUcontext context); /* live and unspoiled, or the status to return */
CUresult context_find(CUcontext handle, CUcontext *context); /* NULL means the current one; spoiled ones pass */
CUresult context_error(CUcontext context);                   /* the asynchronous error, explained; or CUDA_SUCCESS */
size_t context_explain(CUcontext context, CUresult status, char *text, size_t size);
/* Spoil the context, unless it is spoiled already. The launch that failed, or NULL: the thread's explanation is
 * kept. */
void context_fault(CUcontext context, CUresult status, CUmodule module, const cpu_launch *launch);
CUresult context_synchronize(CUcontext context);

/* ---- operations (op.c) ----------------------------------------------------------------------------------------- */

enum op_kind {
    OP_EMPTY,
    OP_KERNEL,
    OP_COPY,
    OP_FILL,
    OP_HOST,        /* cuLaunchHostFunc, cuStreamAddCallback */
    OP_RECORD,      /* an event */
    OP_WAIT,        /* for a place in another stream (streams), or for an event (graphs) */
    OP_WRITE_VALUE, /* cuStreamWriteValue32/64 */
    OP_WAIT_VALUE,  /* cuStreamWaitValue32/64 */
    OP_ALLOCATE,
    OP_FREE,
    OP_GRAPH,
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
    uint32_t element; /* 1, 2 or 4 bytes */
    size_t width, height, pitch; /* elements, rows, bytes */
};

struct launch_attributes {
    uint8_t cooperative, has_priority;
    uint8_t unfinished; /* of a kernel node, which may still get a cluster that its kernel must have */
    uint8_t scheduling_policy, domain, nvlink_scheduling, shared_memory_mode; /* as the enumerations of CUDA number them */
    CUlaunchMemSyncDomainMap domain_map;
    int priority;
    int portable_mode;   /* CUlaunchAttributePortableClusterMode */
    uint32_t cluster[3], preferred_cluster[3]; /* blocks; zeros: not given */
    unsigned carveout;
    CUaccessPolicyWindow window;
};

struct op {
    struct op *next;
    CUcontext context;
    uint64_t sequence; /* place in the stream */
    uint8_t kind;
    union {
        struct {
            CUfunction function; /* its module is referenced */
            cpu_launch launch;   /* `params` points into the memory of this op */
            struct launch_attributes attributes;
        } kernel;
        struct copy copy;
        struct fill fill;
        struct {
            CUhostFn function;
            CUstreamCallback callback; /* instead of `function`; called even after an error */
            CUstream stream;           /* what the callback is told */
            void *data;
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
        struct {
            uint64_t address, value;
            uint32_t flags;
            uint8_t size; /* 4 or 8 */
        } value;
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

struct op *op_new(enum op_kind kind, CUcontext context);
struct op *op_new_kernel(CUfunction function, const void *params); /* copies function's param_bytes of parameters */
struct op *op_copy(const struct op *op);                           /* takes its own references */
CUresult op_set_attributes(struct op *op, const struct launch_attributes *attributes); /* of a launch, with its grid */
void op_free(struct op *op);                                       /* any thread, without the GIL */

/* Carry out an operation on this thread; may be done again and again. An error spoils op->context (context_fault)
 * and is returned. In a spoiled context only what has to be undone is done: frees, callbacks, records. */
CUresult op_execute(struct op *op);
CUresult value_execute(struct op *op); /* value.c: OP_WRITE_VALUE, OP_WAIT_VALUE */

/* ---- streams (stream.c, worker.c) ------------------------------------------------------------------------------ */

enum stream_role { STREAM_USER, STREAM_LEGACY, STREAM_PER_THREAD };
enum stream_state {
    STREAM_IDLE,      /* nothing queued */
    STREAM_SCHEDULED, /* something queued, nobody at work yet */
    STREAM_RUNNING,   /* a worker, or a thread that waits for the stream, is at work */
    STREAM_PARKED,    /* at a wait for another stream, which will schedule this one again */
};

struct waiter { /* someone who waits until a stream has completed `sequence` */
    struct waiter *next;
    uint64_t sequence;
    CUstream stream;         /* to schedule again, or NULL: */
    _Atomic uint32_t *signal; /* a futex of a waiting thread, becomes 1 */
};

struct CUstream_st {
    struct handle handle;
    CUcontext context;
    CUstream next_in_context, previous_in_context;
    uint64_t id;
    unsigned flags; /* CU_STREAM_NON_BLOCKING or 0 */
    int priority;
    uint8_t role;
    pthread_mutex_t lock; /* queue, state, waiters */
    struct op *first, *last;
    uint8_t state;
    bool queued;          /* in the workers' run queue */
    CUstream next_to_run; /* there */
    _Atomic uint64_t submitted, completed; /* sequence of the last op */
    struct waiter *waiters;
    _Atomic bool has_waiters;
    struct waiter parked;    /* this stream's own place among the waiters of another */
    uint64_t legacy_seen;    /* place in the legacy stream that this one already waits for */
    CUlaunchAttributeValue attributes[2]; /* access policy window, synchronisation policy */
    _Atomic(void *) capture; /* owned by capture.c; NULL when the stream is not capturing */
};

/* Queue an operation, which the stream owns from now on, failure included. Keeps the rules of the legacy default
 * stream. When the stream captures, the operation becomes a graph node instead. */
CUresult stream_submit(CUstream stream, struct op *op);
CUresult stream_submit_marked(CUstream stream, struct op *op, CUevent event); /* and mark the event there */

/* The same, and wait until it is done (the synchronous copies and fills). Reports the context's error. */
CUresult stream_submit_and_wait(CUstream stream, struct op *op);

static inline bool stream_is_capturing(CUstream stream) {
    return atomic_load_explicit(&stream->capture, memory_order_acquire) != NULL;
}
static inline bool stream_has_completed(CUstream stream, uint64_t sequence) {
    return atomic_load_explicit(&stream->completed, memory_order_acquire) >= sequence;
}
static inline bool stream_is_busy(CUstream stream) {
    return !stream_has_completed(stream, atomic_load_explicit(&stream->submitted, memory_order_acquire));
}
bool blocking_streams_are_idle(CUcontext context);
/* An operation that waits for a place in a stream. Takes over a reference to the stream, also when it returns NULL. */
struct op *op_new_wait(CUcontext context, CUstream stream, uint64_t sequence);
void stream_wait_until(CUstream stream, uint64_t sequence); /* blocks; helps with the stream's work */
void stream_run(CUstream stream, uint64_t until); /* the caller made the state STREAM_RUNNING and holds a reference */
CUstream stream_take_handed_over(void); /* a scheduled stream, referenced, that this worker is to go on with; or NULL */
extern __thread bool thread_is_worker;
void worker_schedule(CUstream stream);            /* the caller has made the state STREAM_SCHEDULED */
CUresult context_default_stream(CUcontext context, bool per_thread, CUstream *stream);
CUstream *context_streams(CUcontext context, size_t *count); /* all, referenced; in an array to be freed, or NULL */
void streams_context_destroyed(CUcontext context);
void stream_release(CUstream stream); /* gives a reference (handle_retain) back */

/* ---- events (event.c) ------------------------------------------------------------------------------------------ */

struct CUevent_st {
    struct handle handle;
    CUcontext context;
    unsigned flags;
    pthread_mutex_t lock;
    CUstream stream; /* last recorded there, referenced; NULL: never recorded */
    uint64_t sequence;
    uint64_t generation;   /* counts its records */
    _Atomic uint64_t time; /* of the last record that was carried out; CLOCK_MONOTONIC, nanoseconds */
    void *capture;         /* owned by capture.c: the capture that last recorded it, NULL: none */
    void *capture_node;
    struct shared_event *shared; /* its state, when it is for several processes (ipc/event.c), else NULL */
};

CUevent event_new(CUcontext context, unsigned flags, struct shared_event *shared); /* NULL: out of memory */

/* The event is now recorded at that place of the stream. Returns the record's generation. */
uint64_t event_mark(CUevent event, CUstream stream, uint64_t sequence);
void event_stamp(CUevent event, uint64_t generation); /* the record is being carried out: take the time */
CUresult event_record(CUevent event, CUstream stream, unsigned flags);
/* CUDA_SUCCESS or CUDA_ERROR_NOT_READY; or, of an event of several processes, that it never will be. */
CUresult event_query(CUevent event);
CUresult event_wait(CUevent event);
uint64_t event_record_elsewhere(CUevent event); /* its last record, if that was not this process's; else 0 */
void event_release(CUevent event);
void events_context_destroyed(CUcontext context);

/* The state that an event of several processes has in common to them (ipc/event.c). Its records count from 1 on. */
CUresult shared_event_new(struct shared_event **made);
void shared_event_free(struct shared_event *event);
uint64_t shared_event_mark(struct shared_event *event); /* a record is put in a stream; returns its number */
void shared_event_complete(struct shared_event *event, uint64_t record);
uint64_t shared_event_last(const struct shared_event *event);
CUresult shared_event_query(const struct shared_event *event);
CUresult shared_event_wait(const struct shared_event *event, uint64_t record, CUcontext context);

/* ---- modules (image.c, module.c, library.c, function.c) -------------------------------------------------------- */

struct parameter {
    size_t offset, size;
};

struct image_kernel {
    cpu_kernel *kernel;
    const cpu_kernel_info *info;
    struct parameter *parameters; /* info->param_count of them */
};

struct relocation { /* write the address of variable `target`, plus addend, into `width` bytes at the offset */
    size_t offset, width, target;
    int64_t addend;
};

enum variable_reference { REFERENCE_NONE, REFERENCE_TEXTURE, REFERENCE_SURFACE };

struct variable {
    char *name;
    size_t size, align;
    char *init; /* the first init_size bytes; NULL: zeros */
    size_t init_size;
    bool is_constant, is_managed;
    uint8_t reference; /* enum variable_reference: what kind of object it refers to */
    struct relocation *relocations;
    size_t relocation_count;
};

/* What the compiler made of a PTX text or a cubin; shared by a library and its modules. */
struct image {
    _Atomic size_t references;
    struct image *next_unused;
    struct _object *module; /* cupola.cpu.compiler.modules.LoadedModule */
    size_t kernel_count, variable_count;
    struct image_kernel *kernels;
    struct variable *variables;
};

/* Compile PTX text or an image that carries it. May take the GIL. */
/* Where an image begins and how large it is; limit: the bytes that there are, or UNKNOWN_SIZE of image.h (extent.c). */
CUresult find_extent(const void *data, size_t limit, const char **start, size_t *size);
CUresult image_load(const void *data, struct image **image);
CUresult image_load_file(const char *path, struct image **image);
unsigned model_architecture(void); /* 90 for sm_90 */
/* With the GIL: the status and text of the pending exception, which is cleared. */
CUresult fail_python(void);
CUresult read_file(const char *path, char **data, size_t *size); /* to be freed; zeros follow the data */
/* Options of the just-in-time compiler (jit_options.c). Logs tell of `status`, and, when they are to be verbose, what
 * was linked and what is in the image; either may be NULL. */
CUresult jit_check_options(unsigned count, const CUjit_option *options, void *const *values);
bool jit_is_verbose(unsigned count, const CUjit_option *options, void *const *values);
void jit_write_logs(unsigned count, const CUjit_option *options, void **values, CUresult status, const char *linked,
                    const struct image *image);
/* image_load() with options of the just-in-time compiler: fills the log buffers. */
CUresult image_load_with_options(const void *data, unsigned count, CUjit_option *options, void **values,
                                 struct image **image);
void image_release(struct image *image); /* any thread, without the GIL */
void images_sweep(void);                 /* free released images; takes the GIL, so hold no lock of the driver */

/* What cuFuncSetAttribute and its like set; those of a library's kernel hold for each device. */
struct function_attributes {
    int max_dynamic_shared; /* bytes; -1: not set, what fits into shared_per_block */
    int carveout, cluster_policy, non_portable_cluster;
    uint32_t cluster[3]; /* blocks a cluster must have; zeros: any */
    CUfunc_cache cache;
};
extern const struct function_attributes default_function_attributes;

struct CUfunc_st {
    struct handle handle;
    CUmodule module;
    cpu_kernel *kernel;
    const struct image_kernel *image_kernel;
    size_t index, param_bytes;
    CUkernel owner; /* of a library's function, or NULL */
    struct function_attributes own, *attributes;
};

struct CUkern_st {
    struct handle handle;
    CUlibrary library;
    size_t index;
    _Atomic(CUfunction) functions[MAX_DEVICES]; /* the one last used on each device */
    struct function_attributes attributes[MAX_DEVICES];
};

struct CUlib_st {
    struct handle handle;
    _Atomic(struct image *) image; /* NULL as long as `ptx` waits to be compiled */
    char *ptx;
    pthread_mutex_t lock;
    CUmodule modules; /* one for each context that uses the library */
    CUkernel *kernels;
};

struct CUmod_st {
    struct handle handle; /* references: the user's, one for each queued launch and recorded fault */
    CUcontext context;
    struct image *image;
    CUlibrary library; /* or NULL; such a module is the library's to unload */
    CUmodule next_in_context, previous_in_context, next_in_library;
    uint64_t *variables; /* addresses, in the order of the image's variables */
    CUfunction *functions;
};

CUresult module_new(CUcontext context, struct image *image, CUlibrary library, CUmodule *module);
void module_destroy(CUmodule module); /* the user's reference */
void module_release(CUmodule module); /* any thread, without the GIL */
void modules_context_destroyed(CUcontext context);
CUresult module_global(CUmodule module, const char *name, CUdeviceptr *address, size_t *size);
CUresult kernel_index(const struct image *image, const char *name, size_t *index);
CUresult library_module(CUlibrary library, CUcontext context, CUmodule *module); /* loaded on first use */
void library_forget(CUlibrary library, CUmodule module);

/* The function behind a CUfunction, or behind a CUkernel in the given context (NULL: the current one). */
CUresult function_find(CUfunction handle, CUcontext context, CUfunction *function);
int function_max_dynamic_shared(CUfunction function); /* bytes a launch may ask for */
int function_max_threads(CUfunction function);

/* ---- launches (launch.c) --------------------------------------------------------------------------------------- */

/* Check a launch against the device's limits, compile the kernel for the block and make the operation. */
int occupancy_blocks(CUfunction function, int threads, size_t dynamic_shared); /* resident on a multiprocessor */
CUresult launch_prepare(CUfunction function, const unsigned grid[3], const unsigned block[3], unsigned dynamic_shared,
                        void **params, void **extra, const struct launch_attributes *attributes, struct op **op);
CUresult launch_read_attributes(const CUlaunchConfig *config, struct launch_attributes *attributes);
CUresult launch_check_attributes(CUfunction function, const cpu_launch *launch, const struct launch_attributes *attributes);

/* One attribute by its number; those with a meaning of their own (events, device-updatable nodes) are not among them
 * (attribute.c). */
CUresult attribute_set(struct launch_attributes *attributes, CUlaunchAttributeID id, const CUlaunchAttributeValue *value);
CUresult attribute_get(const struct launch_attributes *attributes, CUlaunchAttributeID id, CUlaunchAttributeValue *value);

/* The cluster of a launch, {1, 1, 1} without one, and whether somebody asked for it; or what is wrong with it
 * (cluster.c). */
CUresult cluster_of_launch(CUfunction function, const struct launch_attributes *attributes, const uint32_t grid[3],
                           uint32_t cluster[3], uint8_t *is_explicit);


/* ---- what the memory, capture and graph files provide ---------------------------------------------------------- */

CUresult copy_execute(const struct copy *copy);
CUresult fill_execute(const struct fill *fill);
CUresult memory_execute(struct op *op); /* OP_ALLOCATE, OP_FREE */
void memory_op_retain(struct op *op);   /* after op_copy */
void memory_op_release(struct op *op);  /* before op_free */
void pools_synchronized(void);          /* the host has waited: pools give back what exceeds their thresholds */
CUresult graph_execute(struct op *op);
void graph_op_retain(struct op *op);
void graph_op_release(struct op *op);

/* Memory for a module's variable: zeroed, CPU_MEMORY_MODULE or CPU_MEMORY_MANAGED. */
CUresult memory_allocate_variable(CUcontext context, size_t size, size_t align, bool managed, uint64_t *address);
void memory_free_variable(uint64_t address);
void memory_context_destroyed(CUcontext context); /* frees everything that was allocated in it */
void arrays_context_destroyed(CUcontext context); /* before that: what the memory was for */
void textures_context_destroyed(CUcontext context);
void references_context_destroyed(CUcontext context);
void references_module_released(CUmodule module); /* before its variables go */

/* A capturing stream hands its operations over; the op is the callee's. */
CUresult capture_add(CUstream stream, struct op *op);
CUresult capture_add_updatable(CUstream stream, struct op *op, CUgraphDeviceNode *node); /* a launch */
CUresult capture_record(CUstream stream, CUevent event, unsigned flags);
CUresult capture_wait(CUstream stream, CUevent event, unsigned flags);
bool capture_owns_event(CUevent event);               /* last recorded in a capture that still runs */
CUresult capture_refuse(CUstream stream, const char *call); /* a call that spoils a capture: the status to return */
CUresult capture_check(CUstream stream);              /* whether the capture that it takes part in, if any, can go on */
CUresult capture_check_thread(const char *call);      /* CUDA_SUCCESS, or why a potentially unsafe call is refused */
CUresult capture_check_legacy(CUcontext context);     /* the same for work in the legacy stream */
void capture_stream_destroyed(CUstream stream);
void capture_event_forget(CUevent event);

/* ---- the lookup table (lookup.c) ------------------------------------------------------------------------------- */

/* A symbol and what it stands for. Each file ends with a table of its own, closed by an entry without name. ENTRY
 * checks the function against the slot of the same name in the function table of the bindings; ENTRY_AS is for symbols
 * with a version ("cuMemAlloc_v2", and older ABIs). The _STREAM forms add the _ptsz and _ptds variants. */
struct entry {
    const char *name;
    void *function;
    void *per_thread; /* for NAME_ptsz and NAME_ptds; NULL: none */
};
#define CHECKED(name)                                                                                                  \
    __builtin_choose_expr(__builtin_types_compatible_p(typeof(&name), typeof(((cupola_driver_table *)0)->name)),       \
                          (void *)name, (void)0 /* `name` has another signature than the table's slot */)
#define ENTRY(name) {#name, CHECKED(name), NULL}
#define ENTRY_AS(symbol, name) {#symbol, (void *)name, NULL}
#define ENTRY_STREAM(name) {#name, CHECKED(name), (void *)name##_per_thread}
#define ENTRY_STREAM_AS(symbol, name) {#symbol, (void *)name, (void *)name##_per_thread}

/* Define NAME_per_thread(...): NAME with stream 0 standing for the calling thread's default stream.
 *     PER_THREAD(cuStreamQuery, (CUstream stream), (stream)) */
#define PER_THREAD(name, parameters, arguments)          \
    static CUresult name##_per_thread parameters {       \
        thread_state.null_stream_is_per_thread = true;   \
        CUresult per_thread_status = name arguments;     \
        thread_state.null_stream_is_per_thread = false;  \
        return per_thread_status;                        \
    }

void *lookup(const char *symbol);
void *exported(const char *symbol); /* what libcuda.so.1 has under the symbol: of a plain name the oldest meaning */
size_t lookup_count(void);
const char *lookup_name(size_t index); /* the symbols that the driver has, for tests and reports */

#endif
