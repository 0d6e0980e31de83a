/* Graphs launched by kernels (CUDA C++ Programming Guide, "Device Graph Launch").
 *
 * A kernel of a graph launches another graph, or its own, in one of three ways. What it fires and forgets begins at once,
 * in the environment of the kernel's graph, which is over when that is. A sibling begins at once, too, but in the
 * environment that the kernel's graph is in. What is launched as a tail begins when the environment of the kernel's graph
 * is over, in place of that graph: tails in their order, and the tails of a tail before those behind it.
 *
 * The environment around a graph that the host launches is the launch: the stream goes on when that is over. */
#include <sched.h>
#include <stdlib.h>

#include "engine/memory/memory.h"
#include "grid.h"

/* The streams that say how; cuda_device_runtime_api.h has them for device code only. */
#define FIRE_AND_FORGET UINT64_C(0x0200000000000000)
#define FIRE_AND_FORGET_AS_SIBLING UINT64_C(0x0300000000000000)
#define TAIL_LAUNCH UINT64_C(0x0100000000000000)

enum { MOST_FIRED = 120, MOST_TAILS = 255 };

struct graph_run {
    struct environment environment; /* what it has fired */
    struct environment *around;     /* where its siblings and tails are */
    struct plan *plan;
    CUcontext context;
    unsigned fired;
    bool follows_itself; /* it is its own tail */
};

struct graph_job {
    struct job job;
    struct plan *plan; /* with references to it and to the executable */
    CUcontext context;
    struct environment *around;
};

uint64_t graph_run_current(const struct graph_run *run) {
    return run && exec_is_for_device(plan_exec(run->plan)) ? (uint64_t)plan_exec(run->plan) : 0;
}

/* ---- running ------------------------------------------------------------------------------------------------------- */

/* Of launches of an executable by kernels, one at a time. */
static bool begin(CUgraphExec exec) {
    pthread_mutex_lock(&exec->device_lock);
    bool free = !exec->busy;
    exec->busy = true;
    pthread_mutex_unlock(&exec->device_lock);
    return free;
}

static void end(CUgraphExec exec) {
    pthread_mutex_lock(&exec->device_lock);
    exec->busy = false;
    pthread_mutex_unlock(&exec->device_lock);
}

static CUresult run(struct graph_run *self, const struct op *op, const struct origin *origin, struct jobs *tails) {
    struct graph_run *around = thread_state.graph_run;
    environment_begin(&self->environment, origin);
    thread_state.graph_run = self;
    CUresult status = plan_run(self->plan, op, self->context);
    thread_state.graph_run = around;
    environment_end(&self->environment, tails);
    if (!self->follows_itself) end(plan_exec(self->plan));
    return status;
}

static bool run_job(struct job *job, struct jobs *tails) {
    struct graph_job *self = (struct graph_job *)job;
    struct graph_run launch = {.around = self->around, .plan = self->plan, .context = self->context};
    CUgraphExec exec = plan_exec(self->plan);
    (void)run(&launch, NULL, job->origin, tails);
    plan_release(self->plan);
    graph_exec_release(exec);
    free(self);
    return true;
}

/* A host that launches what a kernel has launched already is wrong, says CUDA; here it waits. */
CUresult graph_run_from_host(struct plan *plan, const struct op *op) {
    struct environment launch;
    struct graph_run self = {.around = &launch, .plan = plan, .context = op->context};
    struct jobs tails, none;
    const struct origin origin = origin_begin(op->context);
    while (!begin(plan_exec(plan))) {
        if (atomic_load(&op->context->error)) return (CUresult)atomic_load(&op->context->error);
        sched_yield();
    }
    environment_begin(&launch, &origin);
    CUresult status = run(&self, op, &origin, &tails);
    jobs_run(&tails);
    environment_end(&launch, &none);
    return status;
}

/* ---- launching ------------------------------------------------------------------------------------------------------- */

enum way { FIRE, SIBLING, TAIL };

static bool way_of(uint64_t stream, enum way *way) {
    if (stream == FIRE_AND_FORGET) *way = FIRE;
    else if (stream == FIRE_AND_FORGET_AS_SIBLING) *way = SIBLING;
    else if (stream == TAIL_LAUNCH) *way = TAIL;
    else return false;
    return true;
}

/* Whether the executable may be launched that way now; then it is busy. */
static bool claim(struct graph_run *self, CUgraphExec exec, enum way way) {
    if (exec != plan_exec(self->plan)) return begin(exec);
    if (way != TAIL) return false;
    environments_lock();
    bool first = !self->follows_itself;
    self->follows_itself = true;
    environments_unlock();
    return first;
}

static void give_up(struct graph_run *self, CUgraphExec exec) {
    if (exec != plan_exec(self->plan)) end(exec);
    else self->follows_itself = false;
}

static bool may_fire(struct graph_run *self, enum way way) {
    environments_lock();
    bool fits = way == TAIL || self->fired < MOST_FIRED;
    if (way != TAIL && fits) self->fired++;
    environments_unlock();
    return fits;
}

static struct plan *uploaded(CUgraphExec exec) {
    pthread_mutex_lock(&exec->device_lock);
    struct plan *plan = exec->uploaded;
    if (plan) plan_retain(plan);
    pthread_mutex_unlock(&exec->device_lock);
    return plan;
}

static cudaError_t launch(struct graph_run *self, CUgraphExec exec, enum way way) {
    struct graph_job *made = malloc(sizeof *made);
    struct plan *plan = uploaded(exec);
    cudaError_t error = !plan ? cudaErrorInvalidValue : !made ? cudaErrorMemoryAllocation : cudaSuccess;
    if (!error && !may_fire(self, way)) error = cudaErrorInvalidValue;
    if (!error) {
        struct environment *around = way == FIRE ? &self->environment : self->around;
        *made = (struct graph_job){.job.run = run_job, .plan = plan, .context = self->context, .around = around};
        if (way == TAIL && !environment_add_tail(&self->environment, &made->job, MOST_TAILS))
            error = cudaErrorInvalidValue;
        else if (way != TAIL) environment_add(around, &made->job);
    }
    if (!error) return error;
    free(made);
    plan_release(plan);
    return error;
}

/* A GPU looks for the graph in memory, and mostly faults. */
static uint64_t refuse(cpu_question *question) {
    cpu_allocation found;
    if (cpu_memory_find(question->words[0], &found)) return cudaErrorInvalidValue;
    return cpu_question_fail(question,
                             "cudaGraphLaunch was given 0x%llx, which is no executable graph that was instantiated for "
                             "launches from the device, or one that was destroyed",
                             (unsigned long long)question->words[0]);
}

ANSWER(GraphLaunch) {
    struct graph_run *self = grid_of(question)->graph;
    CUgraphExec exec = (CUgraphExec)question->words[0];
    enum way way;
    if (!exec || !way_of(question->words[1], &way)) return cudaErrorInvalidValue;
    if (!self)
        return cpu_question_fail(question,
                                 "cudaGraphLaunch in a kernel that another kernel has launched: only nodes of graphs "
                                 "launch graphs");
    if (!handle_acquire(exec, HANDLE_GRAPH_EXEC)) return refuse(question);
    if (!exec_is_for_device(exec)) {
        graph_exec_release(exec);
        return refuse(question);
    }
    if (!claim(self, exec, way)) {
        graph_exec_release(exec);
        return cudaErrorInvalidValue;
    }
    cudaError_t error = launch(self, exec, way);
    if (error) {
        give_up(self, exec);
        graph_exec_release(exec);
    }
    return error;
}
