/* Grids that launch: what they share with what is launched (grid.c), and the calls of their threads. */
#ifndef CUPOLA_CPU_DRIVER_GRID_H
#define CUPOLA_CPU_DRIVER_GRID_H

#include <cupola/runtime.h>

#include "driver/graph/exec.h"
#include "engine/device_calls.h"
#include "environment.h"

/* What a kernel that asks something of the driver has while it runs. */
struct grid {
    struct environment environment;
    struct op *op;
    unsigned depth;            /* how many grids that have launched each other stand above it */
    struct graph_run *graph;   /* the graph that it is a node of, if kernels may launch graphs there */
    struct queue *queues;      /* its streams; queue.c */
    struct mark *marks;        /* its events */
    uint64_t handles;          /* counts what was made of both */
    struct buffer *buffers;    /* of parameters, for launches to come; kernel.c */
    struct last_error *errors; /* of its threads, where there is one */
};

static inline struct grid *grid_of(const cpu_question *question) { return question->launch->launched; }

/* Note a thread's last error, as all functions of dynamic parallelism do, and return it. */
cudaError_t grid_error(const cpu_question *question, cudaError_t error);
cudaError_t grid_last_error(const cpu_question *question, bool reset);

/* ---- queue.c: streams and events of a grid ----------------------------------------------------------------------- */

/* Put an operation, which is the callee's from then on, in a stream of the thread's grid. */
cudaError_t queue_submit(cpu_question *question, uint64_t stream, struct op *op);
void queues_free(struct grid *grid);

/* What %current_graph_exec is in the kernels of a graph (graph.c). */
uint64_t graph_run_current(const struct graph_run *run);

/* ---- kernel.c ---------------------------------------------------------------------------------------------------- */

void buffers_free(struct grid *grid);
/* Carry out an operation that a kernel has launched, and free it. Tails that it leaves are added. */
void launched_run(struct op *op, unsigned depth, const struct origin *origin, struct jobs *tails);
CUfunction kernel_at(const cpu_question *question, uint64_t address); /* NULL: there is none */

/* ---- the functions of the device runtime, by what they belong to ------------------------------------------------- */

#define ANSWER(name) uint64_t answer_##name(cpu_question *question)
ANSWER(GraphLaunch);        /* graph.c */
ANSWER(GetParameterBuffer); /* kernel.c */
ANSWER(GetParameterBufferV2);
ANSWER(LaunchDevice);
ANSWER(LaunchDeviceV2);
ANSWER(StreamCreateWithFlags); /* queue.c */
ANSWER(StreamDestroy);
ANSWER(StreamWaitEvent);
ANSWER(EventCreateWithFlags);
ANSWER(EventRecord);
ANSWER(EventRecordWithFlags);
ANSWER(EventDestroy);
ANSWER(Malloc); /* memory.c */
ANSWER(Free);
ANSWER(MemcpyAsync);
ANSWER(Memcpy2DAsync);
ANSWER(Memcpy3DAsync);
ANSWER(MemsetAsync);
ANSWER(Memset2DAsync);
ANSWER(Memset3DAsync);
ANSWER(GetLastError); /* facts.c */
ANSWER(PeekAtLastError);
ANSWER(GetErrorString);
ANSWER(GetErrorName);
ANSWER(DeviceGetAttribute);
ANSWER(DeviceGetLimit);
ANSWER(DeviceGetCacheConfig);
ANSWER(DeviceGetSharedMemConfig);
ANSWER(GetDevice);
ANSWER(GetDeviceCount);
ANSWER(RuntimeGetVersion);
ANSWER(FuncGetAttributes);
ANSWER(OccupancyMaxActiveBlocksPerMultiprocessor);
ANSWER(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags);

#endif
