/* A grid whose kernel asks something of the driver: its beginning, its end, and the errors of its threads. */
#include "grid.h"

#include <stdlib.h>

struct last_error {
    struct last_error *next;
    uint64_t block, thread;
    cudaError_t error;
};

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static struct last_error **find(const cpu_question *question) {
    struct last_error **place = &grid_of(question)->errors;
    while (*place && ((*place)->block != question->block || (*place)->thread != question->thread))
        place = &(*place)->next;
    return place;
}

cudaError_t grid_error(const cpu_question *question, cudaError_t error) {
    if (!error) return error;
    environments_lock();
    struct last_error **place = find(question), *known = *place;
    if (!known && (known = calloc(1, sizeof *known))) {
        known->block = question->block;
        known->thread = question->thread;
        *place = known;
    }
    if (known) known->error = error;
    environments_unlock();
    return error;
}

cudaError_t grid_last_error(const cpu_question *question, bool reset) {
    environments_lock();
    struct last_error **place = find(question), *known = *place;
    cudaError_t error = known ? known->error : cudaSuccess;
    if (known && reset) {
        *place = known->next;
        free(known);
    }
    environments_unlock();
    return error;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* The operation may be that of a graph's node, which several launches share; so a copy of it runs. */
static CUresult run(const struct op *op, unsigned depth, const struct origin *origin, struct jobs *tails) {
    struct grid grid = {.depth = depth, .graph = thread_state.graph_run, .op = op_copy(op)};
    if (!grid.op) return no_memory("a launch");
    grid.op->kernel.launch.launched = &grid;
    grid.op->kernel.launch.current_graph = graph_run_current(grid.graph);
    environment_begin(&grid.environment, origin);
    CUresult status = kernel_run(grid.op);
    buffers_free(&grid);
    environment_end(&grid.environment, tails);
    queues_free(&grid);
    for (struct last_error *next; grid.errors; grid.errors = next) {
        next = grid.errors->next;
        free(grid.errors);
    }
    op_free(grid.op);
    return status;
}

CUresult grid_execute(const struct op *op) {
    struct jobs tails;
    const struct origin origin = origin_begin(op->context);
    CUresult status = run(op, 0, &origin, &tails);
    jobs_run(&tails);
    return status;
}

void launched_run(struct op *op, unsigned depth, const struct origin *origin, struct jobs *tails) {
    CUcontext context = op->context;
    bool is_kernel = op->kind == OP_KERNEL;
    if (!is_kernel) (void)op_execute(op);
    else if (atomic_load(&context->error)) (void)0; /* what a fault leaves over does not run */
    else if (op->kernel.function->image_kernel->info->launches & CPU_LAUNCHES_ASKS) (void)run(op, depth, origin, tails);
    else (void)kernel_run(op);
    op_free(op);
    atomic_fetch_sub(&context->pending_launches, 1);
}
