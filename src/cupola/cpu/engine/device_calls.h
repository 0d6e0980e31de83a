/* What kernels ask the driver for: the functions of the device runtime that launch, and what belongs to them
 * (compiler/objects/device_calls.py has the same list in the same order). */
#ifndef CUPOLA_CPU_DEVICE_CALLS_H
#define CUPOLA_CPU_DEVICE_CALLS_H

#include <stdbool.h>

#include "engine.h"

enum cpu_device_function {
    CPU_DEVICE_GRAPH_LAUNCH,
    CPU_DEVICE_GET_PARAMETER_BUFFER,
    CPU_DEVICE_GET_PARAMETER_BUFFER_V2,
    CPU_DEVICE_LAUNCH_DEVICE,
    CPU_DEVICE_LAUNCH_DEVICE_V2,
    CPU_DEVICE_GET_LAST_ERROR,
    CPU_DEVICE_PEEK_AT_LAST_ERROR,
    CPU_DEVICE_GET_ERROR_STRING,
    CPU_DEVICE_GET_ERROR_NAME,
    CPU_DEVICE_STREAM_CREATE_WITH_FLAGS,
    CPU_DEVICE_STREAM_DESTROY,
    CPU_DEVICE_STREAM_WAIT_EVENT,
    CPU_DEVICE_EVENT_CREATE_WITH_FLAGS,
    CPU_DEVICE_EVENT_RECORD,
    CPU_DEVICE_EVENT_RECORD_WITH_FLAGS,
    CPU_DEVICE_EVENT_DESTROY,
    CPU_DEVICE_MALLOC,
    CPU_DEVICE_FREE,
    CPU_DEVICE_MEMCPY_ASYNC,
    CPU_DEVICE_MEMCPY2D_ASYNC,
    CPU_DEVICE_MEMCPY3D_ASYNC,
    CPU_DEVICE_MEMSET_ASYNC,
    CPU_DEVICE_MEMSET2D_ASYNC,
    CPU_DEVICE_MEMSET3D_ASYNC,
    CPU_DEVICE_DEVICE_GET_ATTRIBUTE,
    CPU_DEVICE_DEVICE_GET_LIMIT,
    CPU_DEVICE_DEVICE_GET_CACHE_CONFIG,
    CPU_DEVICE_DEVICE_GET_SHARED_MEM_CONFIG,
    CPU_DEVICE_GET_DEVICE,
    CPU_DEVICE_GET_DEVICE_COUNT,
    CPU_DEVICE_RUNTIME_GET_VERSION,
    CPU_DEVICE_FUNC_GET_ATTRIBUTES,
    CPU_DEVICE_OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR,
    CPU_DEVICE_OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR_WITH_FLAGS,
    CPU_DEVICE_FUNCTIONS
};

enum { CPU_QUESTION_WORDS = 12 };

/* One thread's call. */
typedef struct cpu_question {
    cpu_launch *launch;
    uint64_t words[CPU_QUESTION_WORDS]; /* the arguments; structures in pieces */
    uint64_t block, thread;             /* linear numbers */
    bool failed;                        /* a fault was raised, which ends the kernel */
    /* For the engine only. */
    struct cpu_context *context;
    const struct cpu_warp *warp;
    int lane;
    uint32_t site;
} cpu_question;

/* Copy from an address of device code, or to it: false after a fault, the thread's. The size is at most 8, or a multiple
 * of 4. */
bool cpu_question_read(cpu_question *question, uint64_t address, void *target, size_t size);
bool cpu_question_write(cpu_question *question, uint64_t address, const void *source, size_t size);

/* The call gives what does not exist: a fault of the thread, with a sentence. */
uint64_t cpu_question_fail(cpu_question *question, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* malloc() and free() of kernels (instructions/heap.c): 0 without room, and false for what malloc() did not return. */
uint64_t cpu_heap_allocate(const cpu_launch *launch, uint64_t size);
bool cpu_heap_free(const cpu_launch *launch, uint64_t address);

#endif
