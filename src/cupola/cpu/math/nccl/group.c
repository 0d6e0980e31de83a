/* Groups: what the calls of a thread have asked for, and how it gets into streams when the group ends.
 *
 * All tasks of a communicator in a group become one operation, in the stream of the first; the other streams wait for it, and
 * it for them. What several communicators capture into one graph becomes one node: the nodes of a graph are carried out one
 * after another, and the ranks need each other. */
#include <stdio.h>
#include <stdlib.h>

#include "common/thread.h"
#include "nccl.h"

enum { SIMULATION_MAGIC = 0x74685283 }; /* of ncclSimInfo_t, in nccl.h */
static const double LEFT_SECONDS = 5;   /* that the program has to abort a communicator that has lost a rank */

/* ---- operations -------------------------------------------------------------------------------------------------- */

struct portion { /* of an operation: the tasks of one communicator */
    struct portion *next;
    ncclComm_t comm; /* referenced */
    struct turn turn;
    struct task *first, *last;
    CUstream *streams;
    int stream_count;
    unsigned long long capture; /* which capture it goes into; 0: none */
    pthread_t thread;
    bool has_thread, failed;
    char text[TEXT_SIZE];
};

struct operation {
    struct call call;
    struct portion *parts;
};

static void turn_add(struct portion *part) {
    ncclComm_t comm = part->comm;
    pthread_mutex_lock(&comm->lock);
    part->turn.waits = true;
    if (comm->last) comm->last->next = &part->turn;
    else comm->first = &part->turn;
    comm->last = &part->turn;
    pthread_mutex_unlock(&comm->lock);
}

/* With the lock. */
static void turn_remove(struct portion *part) {
    ncclComm_t comm = part->comm;
    struct turn **link = &comm->first, *before = NULL;
    if (!part->turn.waits) return;
    part->turn.waits = false;
    while (*link != &part->turn) before = *link, link = &(*link)->next;
    *link = part->turn.next;
    if (comm->last == &part->turn) comm->last = before;
    pthread_cond_broadcast(&comm->changed);
}

/* Operations of a communicator go in the order of their calls, whatever their streams; those of graphs whenever no other is at
 * work. False: the communicator was aborted. */
static bool turn_begin(struct portion *part) {
    ncclComm_t comm = part->comm;
    pthread_mutex_lock(&comm->lock);
    while (!atomic_load(&comm->stopped) && (comm->busy || (part->turn.waits && comm->first != &part->turn)))
        pthread_cond_wait(&comm->changed, &comm->lock);
    turn_remove(part);
    bool mine = !atomic_load(&comm->stopped);
    if (mine) comm->busy = true;
    pthread_mutex_unlock(&comm->lock);
    return mine;
}

static void turn_end(struct portion *part) {
    pthread_mutex_lock(&part->comm->lock);
    part->comm->busy = false;
    pthread_cond_broadcast(&part->comm->changed);
    pthread_mutex_unlock(&part->comm->lock);
}

/* The program may look at ncclCommGetAsyncError and abort the communicator. True: it has. */
static bool is_aborted_soon(ncclComm_t comm) {
    struct patience patience = patience_from_environment(&comm->stopped, LEFT_SECONDS);
    while (!patience_is_over(&patience)) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return atomic_load(&comm->stopped);
}

/* The factors that lie on the device are read now. */
static void read_factors(struct portion *part) {
    for (struct task *task = part->first; task; task = task->next)
        if (task->reduction.op == ncclNumOps && task->reduction.factor.on_device)
            memcpy(task->reduction.factor.bytes, task->reduction.factor.place, type_size(task->type));
}

static ncclResult_t run_tasks(struct portion *part) {
    const uint64_t begin = clock_now();
    ncclResult_t status = exchange(part->comm, part->first, part->text);
    if (!status) pace_note(part->comm, part->first, (double)(clock_now() - begin + 1) * 1e-9);
    return status;
}

static void run_portion(struct portion *part) {
    ncclComm_t comm = part->comm;
    part->failed = false;
    if (!turn_begin(part)) return;
    read_factors(part);
    ncclResult_t status = (ncclResult_t)atomic_load(&comm->state);
    if (status == ncclInProgress) status = ncclSuccess; /* the program has called for something else meanwhile */
    bool left = status;
    if (left) comm_text(comm, part->text);
    else status = run_tasks(part);
    if (status && status != ncclInProgress) {
        comm_leave(comm, status, part->text);
        bool may_wait = !left && (status == ncclRemoteError || status == ncclTimeout);
        part->failed = !(may_wait && is_aborted_soon(comm));
    }
    turn_end(part);
}

static void *run_joined(void *part) {
    run_portion(part);
    return NULL;
}

static CUresult touch(struct operation *operation) {
    for (struct portion *part = operation->parts; part; part = part->next)
        for (struct task *task = part->first; task; task = task->next) {
            CUresult status = task_touch(part->comm, task);
            if (status) return status;
        }
    return CUDA_SUCCESS;
}

static CUresult run(struct call *call) {
    struct operation *operation = (struct operation *)call;
    CUresult status = touch(operation);
    if (status) {
        for (struct portion *part = operation->parts; part; part = part->next)
            comm_leave(part->comm, ncclUnhandledCudaError, thread_state.explanation);
        return status;
    }
    for (struct portion *part = operation->parts->next; part; part = part->next)
        part->has_thread = thread_start_joined(&part->thread, run_joined, part);
    run_portion(operation->parts);
    for (struct portion *part = operation->parts->next; part; part = part->next) {
        if (part->has_thread) pthread_join(part->thread, NULL);
        else run_portion(part);
    }
    for (struct portion *part = operation->parts; part; part = part->next)
        if (part->failed) return fail(CUDA_ERROR_LAUNCH_FAILED, "%s", part->text);
    return CUDA_SUCCESS;
}

static void portion_free(struct portion *part) {
    while (part->first) {
        struct task *task = part->first;
        part->first = task->next;
        free(task);
    }
    for (int i = 0; i < part->stream_count; i++) stream_release(part->streams[i]);
    free(part->streams);
    comm_release(part->comm);
    free(part);
}

static void drop(struct portion *parts) {
    while (parts) {
        struct portion *part = parts;
        parts = part->next;
        portion_free(part);
    }
}

static void end(struct call *call) {
    struct operation *operation = (struct operation *)call;
    while (operation->parts) {
        struct portion *part = operation->parts;
        operation->parts = part->next;
        pthread_mutex_lock(&part->comm->lock);
        bool never_begun = part->turn.waits;
        turn_remove(part);
        pthread_mutex_unlock(&part->comm->lock);
        if (never_begun)
            comm_leave(part->comm, ncclUnhandledCudaError,
                       "an operation was not carried out, because its context failed");
        portion_free(part);
    }
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static _Thread_local struct {
    int depth;
    ncclResult_t status; /* the first failure */
    struct job *jobs, **last_job;
    struct portion *parts; /* in the order of their first tasks */
} group;

ncclResult_t group_note(ncclResult_t status) {
    if (group.depth && !group.status && status != ncclInProgress) group.status = status;
    return status;
}

void group_open(void) { group.depth++; }

bool group_holds(const struct ncclComm *comm) {
    for (const struct job *job = group.jobs; job; job = job->next)
        if (job->comm == comm) return true;
    return false;
}

ncclResult_t group_add_job(struct job *job) {
    bool alone = !group.depth;
    if (alone) group_open();
    if (!group.jobs) group.last_job = &group.jobs;
    job->next = NULL;
    *group.last_job = job;
    group.last_job = &job->next;
    return alone ? group_close() : ncclSuccess;
}

static struct portion *portion_of(ncclComm_t comm) {
    struct portion **link = &group.parts;
    while (*link && (*link)->comm != comm) link = &(*link)->next;
    if (*link) return *link;
    *link = calloc(1, sizeof **link);
    if (*link) (*link)->comm = handle_retain(comm);
    return *link;
}

/* The stream of the communicator's device. */
static ncclResult_t find_stream(ncclComm_t comm, cudaStream_t handle, CUstream *stream) {
    CUresult status = cuCtxPushCurrent(comm->context);
    if (!status) {
        status = enter_stream((CUstream)handle, stream);
        if (!status) handle_retain(*stream);
        cuCtxPopCurrent(NULL);
    }
    if (status) {
        ncclResult_t failed = nccl_status(status);
        if (atomic_load(&comm->context->error)) comm_leave(comm, ncclUnhandledCudaError, nccl_last_text());
        return failed;
    }
    if ((*stream)->context == comm->context) return ncclSuccess;
    int other = (*stream)->context->device->ordinal;
    stream_release(*stream);
    return nccl_fail(ncclInvalidArgument, "the stream is of device %d, and the communicator of device %d", other,
                     comm->context->device->ordinal);
}

static ncclResult_t add_stream(struct portion *part, CUstream stream) {
    for (int i = 0; i < part->stream_count; i++)
        if (part->streams[i] == stream) {
            stream_release(stream);
            return ncclSuccess;
        }
    CUstream *grown = realloc(part->streams, (size_t)(part->stream_count + 1) * sizeof *grown);
    if (!grown) {
        stream_release(stream);
        return nccl_fail(ncclSystemError, "the host has no memory for an operation");
    }
    part->streams = grown;
    part->streams[part->stream_count++] = stream;
    return ncclSuccess;
}

/* The event that the program wants to know of, as NVIDIA's library records it where it cannot do so later: before. */
static CUresult record_launch(const struct task *task, CUstream stream) {
    return task->launched ? cuEventRecord((CUevent)task->launched, stream) : CUDA_SUCCESS;
}

/* What a rank alone gets of a collective is its own numbers: a copy, which goes into the stream at once, group or not. */
static bool is_copy(ncclComm_t comm, const struct task *task) {
    return comm->count == 1 && !is_message(task) && task->reduction.op != ncclNumOps;
}

static ncclResult_t copy_alone(ncclComm_t comm, CUstream stream, const struct task *task) {
    CUresult status = cuCtxPushCurrent(comm->context);
    if (!status) {
        status = record_launch(task, stream);
        if (!status && task->source != task->target)
            status = cuMemcpyAsync((CUdeviceptr)task->target, (CUdeviceptr)task->source,
                                   task->count * type_size(task->type), stream);
        cuCtxPopCurrent(NULL);
    }
    return nccl_status(status);
}

static ncclResult_t reduce_alone(ncclComm_t comm, CUstream stream, struct task *task);

ncclResult_t group_add_task(ncclComm_t comm, cudaStream_t handle, struct task *task) {
    CUstream stream;
    ncclResult_t status = find_stream(comm, handle, &stream);
    if (status) {
        free(task);
        return group_note(status);
    }
    if (is_copy(comm, task)) {
        status = copy_alone(comm, stream, task);
        stream_release(stream);
        free(task);
        return group_note(status);
    }
    if (comm->count == 1 && !is_message(task)) return group_note(reduce_alone(comm, stream, task));
    bool alone = !group.depth;
    if (alone) group_open();
    struct portion *part = portion_of(comm);
    if (!part) {
        free(task);
        stream_release(stream);
        status = group_note(nccl_fail(ncclSystemError, "the host has no memory for an operation"));
    } else {
        task->next = NULL;
        if (part->last) part->last->next = task;
        else part->first = task;
        part->last = task;
        status = group_note(add_stream(part, stream));
    }
    return alone ? group_close() : status;
}

/* ---- into streams ------------------------------------------------------------------------------------------------ */

/* What is put into `behind` from now on comes after what is in `before`. */
static CUresult follow(CUstream behind, CUstream before) {
    CUevent event;
    RETURN_IF(cuCtxPushCurrent(before->context));
    CUresult status = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (!status) {
        status = cuEventRecord(event, before);
        if (!status) status = cuStreamWaitEvent(behind, event, 0);
        cuEventDestroy(event);
    }
    cuCtxPopCurrent(NULL);
    return status;
}

static CUresult capture_of(CUstream stream, unsigned long long *capture) {
    CUstreamCaptureStatus status;
    cuuint64_t id = 0;
    *capture = 0;
    if (!stream_is_capturing(stream)) return CUDA_SUCCESS;
    RETURN_IF(cuStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
    *capture = id;
    return CUDA_SUCCESS;
}

/* Before ranks count on the operation, so that a bad event ends nothing; behind what stands before it in all its streams. */
static CUresult record_launches(const struct portion *parts) {
    for (const struct portion *part = parts; part; part = part->next)
        for (const struct task *task = part->first; task; task = task->next) {
            if (!task->launched) continue;
            for (int i = 1; i < part->stream_count; i++) RETURN_IF(follow(part->streams[0], part->streams[i]));
            RETURN_IF(cuCtxPushCurrent(part->comm->context));
            CUresult status = record_launch(task, part->streams[0]);
            cuCtxPopCurrent(NULL);
            RETURN_IF(status);
        }
    return CUDA_SUCCESS;
}

/* All parts belong to one operation, which goes into the first one's first stream. */
static CUresult submit(struct portion *parts) {
    int count = 0, used = 0;
    CUresult status = record_launches(parts);
    if (status) {
        drop(parts);
        return status;
    }
    for (struct portion *part = parts; part; part = part->next) count += part->stream_count;
    CUstream *streams = malloc((size_t)count * sizeof *streams);
    struct operation *operation = calloc(1, sizeof *operation);
    if (!streams || !operation) {
        free(streams);
        free(operation);
        drop(parts);
        return no_memory("an operation");
    }
    operation->call = (struct call){.references = 1, .run = run, .end = end, .waits = true};
    operation->parts = parts;
    for (struct portion *part = parts; part; part = part->next) {
        for (int i = 0; i < part->stream_count; i++) streams[used++] = handle_retain(part->streams[i]);
        if (!part->capture) turn_add(part);
    }
    for (int i = 1; !status && i < used; i++) status = follow(streams[0], streams[i]);
    if (status) call_release(&operation->call);
    else status = math_submit(streams[0], &operation->call, false);
    for (int i = 1; !status && i < used; i++) status = follow(streams[i], streams[0]);
    for (int i = 0; i < used; i++) stream_release(streams[i]);
    free(streams);
    return status;
}

/* What a rank alone reduces by a factor of its own: as a copy, it goes into the stream at once, group or not. */
static ncclResult_t reduce_alone(ncclComm_t comm, CUstream stream, struct task *task) {
    struct portion *part = calloc(1, sizeof *part);
    if (!part) {
        free(task);
        stream_release(stream);
        return nccl_fail(ncclSystemError, "the host has no memory for an operation");
    }
    part->comm = handle_retain(comm);
    part->first = part->last = task;
    task->next = NULL;
    ncclResult_t status = add_stream(part, stream);
    if (!status) status = nccl_status(capture_of(stream, &part->capture));
    if (!status) return nccl_status(submit(part));
    portion_free(part);
    return status;
}

/* Take the first part, and those that go into the same graph, off the list. */
static struct portion *take_together(struct portion **list) {
    struct portion *taken = *list, **end = &taken->next, **link;
    *list = taken->next;
    taken->next = NULL;
    for (link = list; taken->capture && *link;) {
        struct portion *part = *link;
        if (part->capture != taken->capture) {
            link = &part->next;
            continue;
        }
        *link = part->next;
        part->next = NULL;
        *end = part;
        end = &part->next;
    }
    return taken;
}

static ncclResult_t submit_all(struct portion *parts) {
    CUresult status = CUDA_SUCCESS;
    ncclResult_t checked = ncclSuccess;
    for (struct portion *part = parts; part && !checked; part = part->next)
        checked = check_messages(part->comm, part->first);
    for (struct portion *part = parts; part && !status && !checked; part = part->next)
        status = capture_of(part->streams[0], &part->capture);
    while (parts && !status && !checked) status = submit(take_together(&parts));
    drop(parts);
    return checked ? checked : nccl_status(status);
}

/* Communicators are at work side by side. In microseconds, as NVIDIA's library, which says nothing about a rank alone. */
static ncclResult_t simulate(struct portion *parts, ncclSimInfo_t *information) {
    double longest = -1;
    for (struct portion *part = parts; part; part = part->next) {
        ncclResult_t status = check_messages(part->comm, part->first);
        double seconds = status || part->comm->count == 1 ? -1 : pace_estimate(part->comm, part->first);
        if (seconds > longest) longest = seconds;
        if (!status) continue;
        drop(parts);
        return status;
    }
    drop(parts);
    const size_t end = offsetof(ncclSimInfo_t, estimatedTime) + sizeof information->estimatedTime;
    if (longest >= 0 && information->size >= end) information->estimatedTime = (float)(longest * 1e6);
    return ncclSuccess;
}

/* End a group; with `information` its operations are not carried out. */
static ncclResult_t close_or_simulate(ncclSimInfo_t *information) {
    if (--group.depth) return ncclSuccess;
    struct job *jobs = group.jobs;
    struct portion *parts = group.parts;
    ncclResult_t status = group.status;
    group.jobs = NULL;
    group.parts = NULL;
    group.status = ncclSuccess;
    if (status) {
        comm_jobs_drop(jobs, status);
    } else {
        status = comm_jobs_run(jobs);
        if (!status || status == ncclInProgress) {
            ncclResult_t submitted = information ? simulate(parts, information) : submit_all(parts);
            return submitted ? submitted : status;
        }
    }
    drop(parts);
    return status;
}

ncclResult_t group_close(void) { return close_or_simulate(NULL); }

static ncclResult_t ncclGroupStart(void) {
    group_open();
    return ncclSuccess;
}

static ncclResult_t ncclGroupEnd(void) {
    if (!group.depth) return nccl_fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    return group_close();
}

static ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *information) {
    if (!group.depth) return nccl_fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    if (!information) return close_or_simulate(&(ncclSimInfo_t){0});
    /* A shorter one is of an older nccl.h, and gets what it has room for. */
    if (information->size < offsetof(ncclSimInfo_t, version) || information->magic != SIMULATION_MAGIC) {
        ncclResult_t refused = group_note(
            nccl_fail(ncclInvalidArgument, "ncclSimInfo_t argument not initialized via NCCL_SIM_INFO_INITIALIZER"));
        group_close(); /* it is ended all the same */
        return refused;
    }
    return close_or_simulate(information);
}

#define NCCL_ENTRY(name) MATH_ENTRY(cupola_nccl_table, name)

const struct entry nccl_group_entries[] = {
    NCCL_ENTRY(ncclGroupEnd),
    NCCL_ENTRY(ncclGroupSimulateEnd),
    NCCL_ENTRY(ncclGroupStart),
    {NULL, NULL, NULL},
};
