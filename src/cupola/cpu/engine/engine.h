/* The engine: runs a grid of blocks of one compiled kernel on the calling thread and its helpers.
 *
 * The driver (cpu/driver) prepares and queues launches; the engine executes them. Everything here is called
 * without the GIL unless a comment says otherwise. */
#ifndef CUPOLA_CPU_ENGINE_H
#define CUPOLA_CPU_ENGINE_H

#include <stddef.h>
#include <stdint.h>

/* Generic addresses. Global memory, constants and pinned host memory are host addresses; the shared and local
 * windows start at non-canonical addresses, which no host pointer can be, and whose low 32 bits are zero, so
 * that truncating a shared address to 32 bits (as libcu++ does) gives the offset in the window.
 *
 * In a cluster, the shared memory of the block with rank r begins at (r + 1) << CPU_RANK_SHIFT in the window, for all
 * of its blocks; what a block calls its own, PTX's shared::cta, is at the beginning. */
#define CPU_SHARED_WINDOW (UINT64_C(1) << 56)
#define CPU_LOCAL_WINDOW (UINT64_C(1) << 57)
#define CPU_CODE_WINDOW (UINT64_C(1) << 58) /* where functions have their addresses, as far as twice that */
enum { CPU_RANK_SHIFT = 24 };

enum cpu_fault_kind {
    CPU_FAULT_NONE,
    CPU_FAULT_OUT_OF_BOUNDS, /* -> CUDA_ERROR_ILLEGAL_ADDRESS */
    CPU_FAULT_MISALIGNED,    /* -> CUDA_ERROR_MISALIGNED_ADDRESS */
    CPU_FAULT_ASSERT,        /* -> CUDA_ERROR_ASSERT */
    CPU_FAULT_TRAP,          /* -> CUDA_ERROR_LAUNCH_FAILED */
    CPU_FAULT_BARRIER,       /* a barrier that can never complete -> CUDA_ERROR_LAUNCH_FAILED */
    CPU_FAULT_STACK,         /* -> CUDA_ERROR_HARDWARE_STACK_ERROR */
    CPU_FAULT_INTERNAL,      /* the engine itself could not go on -> CUDA_ERROR_UNKNOWN */
    CPU_FAULT_NO_ACCESS,     /* memory that the device was not let into -> CUDA_ERROR_ILLEGAL_ADDRESS */
    CPU_FAULT_INSTRUCTION, /* a use of an instruction that the ISA leaves undefined -> CUDA_ERROR_ILLEGAL_INSTRUCTION */
    CPU_FAULT_CALL,        /* a pointer that points to no function -> CUDA_ERROR_INVALID_PC */
    CPU_FAULT_HEAP,        /* free() of what malloc() did not return -> CUDA_ERROR_ILLEGAL_ADDRESS */
    CPU_FAULT_OBJECT,      /* no texture or surface, or of another shape -> CUDA_ERROR_ILLEGAL_INSTRUCTION */
    CPU_FAULT_SURFACE,     /* outside of a surface, with .trap -> CUDA_ERROR_LAUNCH_FAILED */
    CPU_FAULT_STOPPED,     /* it took too long -> CUDA_ERROR_LAUNCH_TIMEOUT */
    CPU_FAULT_LAUNCH,      /* the device runtime was given what is none -> CUDA_ERROR_ILLEGAL_ADDRESS */
};

enum cpu_space { CPU_SPACE_GLOBAL, CPU_SPACE_SHARED, CPU_SPACE_LOCAL, CPU_SPACE_CONST, CPU_SPACE_PARAM };

/* What is checked while kernels run, when it is asked for (checks/checks.h). cupola.cpu.reports.kinds has the same. */
enum cpu_check { CPU_CHECK_RACE = 1, CPU_CHECK_INIT = 2, CPU_CHECK_SYNC = 4 };

/* A line of the program. */
struct cpu_origin {
    const char *file;
    int line;
};

enum { CPU_FAULT_CALLS = 24 };

typedef struct cpu_fault {
    int32_t kind;
    uint32_t site; /* index into the variant's table of access sites */
    uint64_t address;
    uint32_t size;
    uint8_t is_write, space;
    uint32_t block[3], thread[3];
    uint32_t call_count,
        calls[CPU_FAULT_CALLS]; /* the calls the thread is in, innermost first; all may not have room */
    char message[1024];         /* what an assertion said, or details, UTF-8 */
} cpu_fault;

/* The heap from which malloc() in kernels takes memory: one for each context. */
typedef struct cpu_heap {
    _Atomic uint64_t used, limit;
} cpu_heap;

typedef struct cpu_kernel cpu_kernel;   /* a kernel of a loaded module; caches its compiled variants */
typedef struct cpu_variant cpu_variant; /* machine code of a kernel for one block shape */

/* How many threads may run launches of one part of the GPU at a time (schedule/share.c). NULL stands for all. */
typedef struct cpu_share cpu_share;
cpu_share *cpu_share_new(uint32_t part, uint32_t whole); /* multiprocessors; NULL: out of memory. Never freed */
_Bool cpu_share_is_free(cpu_share *share);               /* no launch would have to wait */

typedef struct cpu_launch {
    cpu_kernel *kernel;
    const cpu_variant *variant;
    uint32_t grid[3], block[3];
    uint32_t cluster[3];      /* in blocks; divides the grid */
    uint32_t multiprocessors; /* of the modeled GPU, for %nsmid */
    const uint8_t *places;    /* the multiprocessors that it may run on, `place_count` of them; NULL: all */
    uint32_t place_count;
    cpu_share *share;
    uint8_t explicit_cluster; /* the launch or the kernel asks for clusters, of one block perhaps */
    uint32_t dynamic_shared;  /* bytes */
    const void *params;       /* 16-byte aligned private copy, readable up to param_bytes + 64 */
    size_t param_bytes;
    const uint64_t *variables; /* addresses of the module's .global and .const variables, in the module's order */
    uint64_t grid_id;
    uint64_t order;      /* of its blocks: a number that chooses one; 0: ascending */
    int32_t device;      /* ordinal */
    uint8_t cooperative; /* the kernel may wait for all of its blocks */
    const void *context; /* the driver's own */
    cpu_heap *heap;
    uint64_t print_room;    /* CU_LIMIT_PRINTF_FIFO_SIZE: bytes for all that it prints, */
    uint64_t printed;       /* ... what that takes so far, */
    uint64_t prints_lost;   /* ... and how many calls of printf have found no room. Both are the engine's */
    uint32_t stack_limit;   /* CU_LIMIT_STACK_SIZE: bytes of a thread's stack, when its depth is not known */
    uint64_t current_graph; /* %current_graph_exec: the executable graph for launches from the device that it runs in */
    void *launched;         /* the driver's own: what its threads launch; NULL: the kernel asks nothing of the driver */
    uint32_t local_size;    /* set by the engine: bytes of local memory of a thread */
    uint32_t first_watch;   /* likewise, when it is checked: the number of its first block ... */
    uint32_t low_watch;     /* ... the first number of what is not ordered before it ... */
    struct cpu_moment *moment;       /* ... when it happens, NULL: that is not known ... */
    uint64_t quiet;                  /* ... which accesses need not be told ... */
    struct cpu_findings *findings;   /* ... and what was found */
    const struct cpu_origin *origin; /* the line of Python that launched; NULL: not known */
    uint32_t caller;                 /* or its number (cpu_driver_origin); 0: not known */
    cpu_fault fault;                 /* filled by the first block that faults */
} cpu_launch;

/* Make a kernel from the Python object that cupola.cpu.compiler.modules.load_image returned and the kernel's index in
 * its list. Steals nothing. With the GIL; NULL with a Python exception set on failure. */
struct _object;
cpu_kernel *cpu_kernel_new(struct _object *module, size_t index);
/* Have what the driver wants to know about the kernel; before that it only has its name and its code address. In a large
 * module its PTX is read now. With the GIL; -1 with a Python exception set when there is something wrong with it. */
int cpu_kernel_read(cpu_kernel *kernel);
_Bool cpu_kernel_is_read(const cpu_kernel *kernel);
void cpu_kernel_free(cpu_kernel *kernel); /* with the GIL; no launch of it may be running */

/* The instruments that code of launches from now on has: a bit for each, by its place in the table NAMES of
 * cupola.cpu.compiler.emit.instruments. */
void cpu_instruments_set(uint32_t instruments);

/* Why Python refused something: the name of a CUDA error, and a sentence. */
typedef struct cpu_refusal {
    char status[64], message[2048];
} cpu_refusal;

/* The pending exception, which is cleared. With the GIL. An ImageError has a status; other exceptions come from a
 * compiler that is not installed, or from a defect. */
void cpu_take_exception(cpu_refusal *refusal);

/* The variant for a block shape, compiled on first use (takes the GIL then). NULL on failure. */
const cpu_variant *cpu_engine_prepare(cpu_kernel *kernel, const uint32_t block[3], cpu_refusal *refusal);

/* Run all blocks. The calling thread takes part, so a launch makes progress even while every helper thread is
 * held up in another one. Returns 0, or the cpu_fault_kind stored in launch->fault. */
int cpu_engine_run(cpu_launch *launch);
_Bool cpu_engine_is_quick(const cpu_launch *launch);    /* is it expected to end soon? */
_Bool cpu_engine_is_debugged(const cpu_launch *launch); /* does a debugger stop its threads? */

/* Call task for each index below count, on this thread and on helper threads that are free. Tasks take at least some tens of
 * microseconds, so that it is worth while to wake a helper. */
void cpu_pool_run(void (*task)(void *data, uint64_t index), void *data, uint64_t count);

/* How many threads may work on one launch, 0: one for each processor. */
void cpu_pool_set_threads(int threads);

/* End launches that begin from now on and run longer, 0: none (stop.c). */
void cpu_stop_after(uint64_t nanoseconds);

/* What consists of launches one behind the other, none of which runs long, is watched from its beginning on by those who
 * carry it out: cpu_stop_is_due() says whether it is to be ended, as a launch would be. */
typedef struct cpu_stop_watch {
    uint64_t begin;
    unsigned signals;
} cpu_stop_watch;
cpu_stop_watch cpu_stop_watch_begin(void);
_Bool cpu_stop_is_due(const cpu_stop_watch *watch);

/* Something that was launched by a kernel has failed: the kernels of the context that launch are ended, too, since they may
 * wait for what does not run any more. */
void cpu_stop_launching(const void *context);

/* A signal came while the host waited. The launches that were running already when the last one came are ended. */
void cpu_stop_interrupted(void);

/* The thread that handles the program's signals runs launches itself between these two. Should they take longer than
 * expected, the second Ctrl-C ends them. The latter returns whether one came. */
void cpu_stop_begin_inline(void);
_Bool cpu_stop_end_inline(void);

/* Call f, which reads and writes device memory and holds no lock. False: some of that memory was freed meanwhile, and f
 * did not end. Memory faults elsewhere are not ours (fault/guard.c). */
_Bool cpu_guard_access(void (*f)(void *), void *argument);

/* The same for a library with threads of its own, which cannot be left: from here on it gets pages of zeros where memory
 * is freed while it works. Gives a number for cpu_guard_take_back(), which ends that, and says whether there was such a
 * page between two addresses. */
uint64_t cpu_guard_lend(void);
_Bool cpu_guard_take_back(uint64_t number, uint64_t low, uint64_t high);

enum cpu_launches {
    CPU_LAUNCHES_GRAPHS = 1,
    CPU_LAUNCHES_KERNELS = 2,
    CPU_LAUNCHES_READS_GRAPH = 4,
    CPU_LAUNCHES_ASKS = 7,         /* any of these: the driver takes part in its run */
    CPU_LAUNCHES_UPDATES_NODES = 8 /* functions of PTX alone do that */
};

enum cpu_system_calls { CPU_CALLS_PRINTF = 1, CPU_CALLS_HEAP = 2 };

/* Shared memory the kernel declares statically, and local (stack) bytes a thread. */
typedef struct cpu_kernel_info {
    uint32_t static_shared, reserved_shared, local_bytes, const_bytes, registers, max_threads, param_bytes, param_count;
    uint32_t required_block[3], max_block[3]; /* zero when the kernel does not say */
    uint32_t required_cluster[3];             /* likewise */
    uint32_t max_cluster;                     /* blocks a cluster, 0: the kernel does not say */
    uint32_t must_have_cluster, blocks_are_clusters;
    uint64_t code;                        /* its address for kernels that launch it, behind CPU_CODE_WINDOW */
    uint32_t launches;                    /* enum cpu_launches: bits: what it asks of the device runtime */
    uint32_t system_calls;                /* enum cpu_system_calls: bits */
    uint32_t is_tile_kernel;              /* launches may leave the block to the kernel, by giving one thread */
    uint32_t ptx_version, binary_version; /* architectures, 90 for sm_90: of the PTX, of the cubin or 0 */
} cpu_kernel_info;
const cpu_kernel_info *cpu_kernel_get_info(const cpu_kernel *kernel);
const char *cpu_kernel_name(const cpu_kernel *kernel);
int cpu_kernel_param(const cpu_kernel *kernel, size_t index, size_t *offset, size_t *size); /* 0, or -1: no such one */

/* A text that explains a fault to its user (kernel, CUDA file and line, block and thread, address, access,
 * nearest allocation). Takes the GIL; returns the length, and cuts the text to size. */
size_t cpu_fault_describe(const cpu_launch *launch, const cpu_fault *fault, char *text, size_t size);

#endif
