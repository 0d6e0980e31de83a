/* Streams and events of a grid (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism", "Streams and Events").
 *
 * Each block has a default stream; streams that a thread makes are the whole grid's. A stream is a queue, and one job of the
 * grid's environment as long as something is in it: the thread that runs the job takes one operation after another. When a
 * stream comes to a wait for an event that is not there yet, its thread leaves it, and who completes the event resumes it,
 * so that waiting takes no threads. Streams and events live until the end of the grid; their handles are numbers. */
#include "grid.h"

#include <stdlib.h>

/* The limit of pending launches bounds the tails of a grid, and how deep grids are nested; not what waits in streams, of
 * which an H200 takes hundreds of thousands. Here all of that takes memory of the host. */
enum { MOST_DEPTH = 2048, MOST_TAILS = 1 << 20, MOST_PENDING = 1 << 17 };
enum { NULL_STREAM = 0, LEGACY_STREAM = 1, PER_THREAD_STREAM = 2, TAIL_STREAM = 3, FIRE_STREAM = 4 };

/* Handles: a number of the grid, so that those of other grids are recognized, and one in the grid. */
enum { HANDLE_SHIFT = 24, HANDLE_BITS = 0x5D };

struct mark { /* an event */
    struct mark *next;
    uint64_t handle, recorded, completed;
    bool is_dead;
};

struct item { /* in a stream: an operation, or a record of an event, or a wait for one */
    struct item *next;
    struct op *op;
    struct mark *mark;
    uint64_t record;
    bool is_wait;
};

struct queue {
    struct job job;
    struct queue *next;
    struct grid *grid;
    uint64_t handle, block; /* the block whose default stream it is, when it has no handle */
    struct item *first, *last;
    bool is_busy, is_parked, is_dead;
};

struct single { /* an operation that is a job by itself */
    struct job job;
    struct op *op;
    unsigned depth;
};

/* ---- running ----------------------------------------------------------------------------------------------------- */

static bool run_single(struct job *job, struct jobs *tails) {
    struct single *single = (struct single *)job;
    launched_run(single->op, single->depth, job->origin, tails);
    free(single);
    return true;
}

/* With the lock. Streams that waited for the event go on. */
static void complete(struct grid *grid, struct mark *mark, uint64_t record) {
    if (mark->completed < record) mark->completed = record;
    for (struct queue *queue = grid->queues; queue; queue = queue->next) {
        if (!queue->is_parked || queue->first->mark != mark || queue->first->record > mark->completed) continue;
        queue->is_parked = false;
        environment_resume(&queue->job);
    }
}

/* A default stream is made anew when its block needs it again: a grid may have many blocks. */
static void leave(struct queue *queue) {
    struct queue **place = &queue->grid->queues;
    while (*place != queue) place = &(*place)->next;
    *place = queue->next;
    free(queue);
}

static bool run_queue(struct job *job, struct jobs *tails) {
    struct queue *queue = (struct queue *)job;
    const unsigned depth = queue->grid->depth + 1;
    (void)tails;
    environments_lock();
    while (queue->first) {
        struct item *item = queue->first;
        if (item->is_wait && item->mark->completed < item->record) {
            queue->is_parked = true;
            environments_unlock();
            return false;
        }
        if (item->op) {
            struct jobs own = {NULL, NULL};
            environments_unlock();
            launched_run(item->op, depth, job->origin, &own);
            jobs_run(&own); /* a grid is over when what it has launched is */
            environments_lock();
        } else if (!item->is_wait) {
            complete(queue->grid, item->mark, item->record);
        }
        queue->first = item->next;
        if (!queue->first) queue->last = NULL;
        free(item);
    }
    queue->is_busy = false;
    if (!queue->handle) leave(queue);
    environments_unlock();
    return true;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static uint64_t new_handle(struct grid *grid) {
    uint64_t number = grid->op->kernel.launch.grid_id & 0xFFFFFF;
    return (uint64_t)HANDLE_BITS << 48 | number << HANDLE_SHIFT | (++grid->handles & 0xFFFFFF);
}

/* With the lock; NULL: there is none, or no memory for a default stream. */
static struct queue *find(const cpu_question *question, uint64_t handle) {
    struct grid *grid = grid_of(question);
    for (struct queue *queue = grid->queues; queue; queue = queue->next)
        if (queue->handle == handle && (handle ? !queue->is_dead : queue->block == question->block)) return queue;
    if (handle) return NULL;
    struct queue *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    *made = (struct queue){.job = {.run = run_queue, .environment = &grid->environment},
                           .grid = grid,
                           .block = question->block,
                           .next = grid->queues};
    return grid->queues = made;
}

static struct mark *find_mark(const cpu_question *question, uint64_t handle) {
    for (struct mark *mark = grid_of(question)->marks; mark; mark = mark->next)
        if (mark->handle == handle && !mark->is_dead) return mark;
    return NULL;
}

/* With the lock; takes the lock of environments away while the job is added. */
static void put(struct queue *queue, struct item *item) {
    if (queue->last) queue->last->next = item;
    else queue->first = item;
    queue->last = item;
    bool idle = !queue->is_busy;
    queue->is_busy = true;
    environments_unlock();
    if (idle) environment_add(&queue->grid->environment, &queue->job);
}

void queues_free(struct grid *grid) {
    for (struct queue *next; grid->queues; grid->queues = next) {
        next = grid->queues->next;
        free(grid->queues);
    }
    for (struct mark *next; grid->marks; grid->marks = next) {
        next = grid->marks->next;
        free(grid->marks);
    }
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

static unsigned limit_of(const struct op *op, unsigned most) {
    size_t limit = op->context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT];
    return limit < most ? (unsigned)limit : most;
}

static cudaError_t submit_single(struct grid *grid, struct op *op, bool is_tail) {
    struct single *single = malloc(sizeof *single);
    if (!single) return cudaErrorMemoryAllocation;
    *single = (struct single){.job = {.run = run_single}, .op = op, .depth = grid->depth + !is_tail};
    if (!is_tail) environment_add(&grid->environment, &single->job);
    else if (!environment_add_tail(&grid->environment, &single->job, limit_of(op, MOST_TAILS))) {
        free(single);
        return cudaErrorLaunchPendingCountExceeded;
    }
    return cudaSuccess;
}

static cudaError_t submit_to_queue(cpu_question *question, uint64_t stream, struct op *op) {
    struct item *item = calloc(1, sizeof *item);
    if (!item) return cudaErrorMemoryAllocation;
    item->op = op;
    environments_lock();
    struct queue *queue = find(question, stream);
    if (queue) {
        put(queue, item);
        return cudaSuccess;
    }
    environments_unlock();
    free(item);
    return stream ? cudaErrorInvalidValue : cudaErrorMemoryAllocation;
}

/* The host's default streams are the block's. */
static uint64_t own_stream(uint64_t stream) {
    return stream == LEGACY_STREAM || stream == PER_THREAD_STREAM ? NULL_STREAM : stream;
}

cudaError_t queue_submit(cpu_question *question, uint64_t stream, struct op *op) {
    struct grid *grid = grid_of(question);
    CUcontext context = op->context;
    cudaError_t error = cudaSuccess;
    bool too_deep = op->kind == OP_KERNEL && stream != TAIL_STREAM && grid->depth >= limit_of(op, MOST_DEPTH);
    if (atomic_fetch_add(&context->pending_launches, 1) >= MOST_PENDING || too_deep)
        error = cudaErrorLaunchPendingCountExceeded;
    else if (stream == TAIL_STREAM || stream == FIRE_STREAM) error = submit_single(grid, op, stream == TAIL_STREAM);
    else error = submit_to_queue(question, own_stream(stream), op);
    if (!error) return error;
    atomic_fetch_sub(&context->pending_launches, 1);
    op_free(op);
    return error;
}

/* ---- answers ------------------------------------------------------------------------------------------------------- */

ANSWER(StreamCreateWithFlags) {
    struct grid *grid = grid_of(question);
    if ((unsigned)question->words[1] & ~(unsigned)cudaStreamNonBlocking)
        return grid_error(question, cudaErrorInvalidValue);
    struct queue *made = calloc(1, sizeof *made);
    if (!made) return grid_error(question, cudaErrorMemoryAllocation);
    environments_lock();
    *made = (struct queue){.job = {.run = run_queue, .environment = &grid->environment},
                           .grid = grid,
                           .handle = new_handle(grid),
                           .next = grid->queues};
    grid->queues = made;
    uint64_t handle = made->handle;
    environments_unlock();
    cpu_question_write(question, question->words[0], &handle, sizeof handle);
    return cudaSuccess;
}

ANSWER(StreamDestroy) {
    cudaError_t error = cudaErrorInvalidValue;
    uint64_t handle = question->words[0];
    environments_lock();
    struct queue *queue = handle > FIRE_STREAM ? find(question, handle) : NULL;
    if (queue) {
        queue->is_dead = true; /* what is in it is carried out */
        error = cudaSuccess;
    }
    environments_unlock();
    return grid_error(question, error);
}

ANSWER(EventCreateWithFlags) {
    struct grid *grid = grid_of(question);
    if (((unsigned)question->words[1] & ~(unsigned)cudaEventBlockingSync) != cudaEventDisableTiming)
        return grid_error(question, cudaErrorInvalidValue);
    struct mark *made = calloc(1, sizeof *made);
    if (!made) return grid_error(question, cudaErrorMemoryAllocation);
    environments_lock();
    *made = (struct mark){.handle = new_handle(grid), .next = grid->marks};
    grid->marks = made;
    uint64_t handle = made->handle;
    environments_unlock();
    cpu_question_write(question, question->words[0], &handle, sizeof handle);
    return cudaSuccess;
}

ANSWER(EventDestroy) {
    environments_lock();
    struct mark *mark = find_mark(question, question->words[0]);
    if (mark) mark->is_dead = true; /* waits for it go on to wait */
    environments_unlock();
    return grid_error(question, mark ? cudaSuccess : cudaErrorInvalidValue);
}

/* A record of the event in the stream, or a wait for its last one. */
static cudaError_t put_mark(cpu_question *question, uint64_t stream, uint64_t event, bool is_wait) {
    struct item *item = calloc(1, sizeof *item);
    if (!item) return cudaErrorMemoryAllocation;
    environments_lock();
    struct mark *mark = find_mark(question, event);
    stream = own_stream(stream);
    bool named = stream == NULL_STREAM || stream > FIRE_STREAM;
    struct queue *queue = mark && named ? find(question, stream) : NULL;
    if (!queue || (is_wait && mark->recorded <= mark->completed)) {
        environments_unlock();
        free(item);
        return queue ? cudaSuccess : cudaErrorInvalidValue;
    }
    *item = (struct item){.mark = mark, .is_wait = is_wait, .record = is_wait ? mark->recorded : ++mark->recorded};
    put(queue, item);
    return cudaSuccess;
}

ANSWER(EventRecord) { return grid_error(question, put_mark(question, question->words[1], question->words[0], false)); }

ANSWER(EventRecordWithFlags) {
    if ((unsigned)question->words[2]) return grid_error(question, cudaErrorInvalidValue);
    return answer_EventRecord(question);
}

/* It takes no flags, and does not look at them. */
ANSWER(StreamWaitEvent) {
    return grid_error(question, put_mark(question, question->words[0], question->words[1], true));
}
