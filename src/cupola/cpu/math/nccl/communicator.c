/* Communicators: how they are made, split and ended, and what can be asked of them. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/memory/usage.h"
#include "nccl.h"

#define NOT_READY "Attempt to use communicator before the previous operation returned ncclSuccess"

/* ---- states ------------------------------------------------------------------------------------------------------ */

void comm_error(ncclComm_t comm, ncclResult_t status, const char *text) {
    pthread_mutex_lock(&comm->lock);
    int before = atomic_load(&comm->state);
    if (before == ncclSuccess || before == ncclInProgress) {
        snprintf(comm->text, sizeof comm->text, "%s", text);
        atomic_store(&comm->state, status);
    }
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}

void comm_text(ncclComm_t comm, char *text) {
    pthread_mutex_lock(&comm->lock);
    memcpy(text, comm->text, TEXT_SIZE);
    pthread_mutex_unlock(&comm->lock);
}

ncclResult_t comm_state(ncclComm_t comm) {
    int state = atomic_load(&comm->state), misuse = atomic_load(&comm->misuse);
    return (ncclResult_t)(misuse && (state == ncclSuccess || state == ncclInProgress) ? misuse : state);
}

/* Where calls do not block, the program asks the communicator what has become of them, so it keeps the first failure. */
void comm_misused(ncclComm_t comm, ncclResult_t status) {
    if (!handle_acquire(comm, HANDLE_NCCL)) return;
    int before = ncclSuccess;
    pthread_mutex_lock(&comm->lock);
    if (!comm->is_blocking && atomic_compare_exchange_strong(&comm->misuse, &before, (int)status) && !*comm->text)
        snprintf(comm->text, sizeof comm->text, "%s", nccl_last_text());
    pthread_mutex_unlock(&comm->lock);
    comm_release(comm);
}

static void comm_ring(ncclComm_t comm) {
    for (int lane = 0; lane < LANES; lane++) wire_ring(comm->bells[lane]);
    pthread_mutex_lock(&comm->lock);
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}

void comm_leave(ncclComm_t comm, ncclResult_t status, const char *text) {
    comm_error(comm, status, text);
    for (int i = 0; i < comm->count; i++)
        if (i != comm->rank) wire_shut(&comm->wires[i], LANE_DATA);
}

ncclResult_t comm_check(ncclComm_t comm, const char *function, bool ready) {
    if (!comm) return nccl_fail(ncclInvalidArgument, "%s : comm argument is NULL", function);
    if (!handle_is_live(comm, HANDLE_NCCL))
        return nccl_fail(ncclInvalidArgument, "%s: comm %p is no communicator, or was destroyed", function,
                         (void *)comm);
    if (!ready) return ncclSuccess;
    ncclResult_t state = comm_state(comm);
    if (state == ncclInProgress) return nccl_fail(ncclInvalidArgument, NOT_READY " (%s)", function);
    if (comm->revoked) return nccl_fail(ncclInvalidUsage, "%s: the communicator was revoked", function);
    if (comm->suspended) return nccl_fail(ncclInvalidUsage, "%s: the communicator is suspended", function);
    if (state) {
        char text[TEXT_SIZE];
        comm_text(comm, text);
        bool repeats = !strncmp(text, NOT_READY, sizeof NOT_READY - 1);
        return nccl_fail(state, NOT_READY " (%s)%s%s", function, repeats ? "" : ": ", repeats ? "" : text);
    }
    return ncclSuccess;
}

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

void comm_drop(ncclComm_t comm) {
    handle_kill(comm);
    comm_release(comm);
}

void comm_release(ncclComm_t comm) {
    if (!handle_release(comm)) return;
    for (int i = 0; comm->wires && i < comm->count; i++) wire_close(&comm->wires[i]);
    for (int lane = 0; lane < LANES; lane++)
        if (comm->bells[lane] >= 0) close(comm->bells[lane]);
    while (comm->registrations) {
        struct registration *one = comm->registrations;
        comm->registrations = one->next;
        free(one);
    }
    free(comm->wires);
    free(comm->members);
    free(comm->inboxes);
    free(comm->factors);
    pthread_mutex_destroy(&comm->lock);
    pthread_cond_destroy(&comm->changed);
    handle_free(HANDLE_NCCL, comm);
}

/* As NVIDIA's library: a least number of CTAs needs a largest one, too. */
static ncclResult_t check_config(const ncclConfig_t *config) {
    if (!config) return ncclSuccess;
    if (config->magic != NCCL_API_MAGIC || config->size < offsetof(ncclConfig_t, cgaClusterSize))
        return nccl_fail(ncclInvalidArgument, "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    if (config->blocking != INT_MIN && config->blocking != 0 && config->blocking != 1)
        return nccl_fail(ncclInvalidArgument, "Invalid config blocking attribute value %d", config->blocking);
    if (config->size < offsetof(ncclConfig_t, netName)) return ncclSuccess;
    if (config->cgaClusterSize != INT_MIN && config->cgaClusterSize < 0)
        return nccl_fail(ncclInvalidArgument, "Invalid config cgaClusterSize attribute value %d",
                         config->cgaClusterSize);
    /* Those behind the first are in longer structures only. */
#define IN(member, low, high, name)                                                                      \
    do {                                                                                                 \
        if (config->size >= offsetof(ncclConfig_t, member) + sizeof config->member &&                    \
            config->member != INT_MIN && (config->member < (low) || config->member > (high)))            \
            return nccl_fail(ncclInvalidArgument, "Invalid config " name " attribute value %d", config->member); \
    } while (0)
    IN(splitShare, 0, 1, "splitShare");
    IN(collnetEnable, 0, 1, "collnetEnable");
    IN(CTAPolicy, 0, 3, "policy");
    IN(shrinkShare, 0, 1, "shrinkShare");
    IN(nvlsCTAs, 1, INT_MAX, "nvlsCTAs");
    IN(nChannelsPerNetPeer, 1, INT_MAX, "nChannelsPerNetPeer");
    IN(nvlinkCentricSched, 0, 1, "nvlinkCentricSched");
#undef IN
    const int least = config->minCTAs, most = config->maxCTAs;
    if ((least != INT_MIN && least <= 0) || (most != INT_MIN && most <= 0) || least > most)
        return nccl_fail(ncclInvalidArgument, "Invalid config min/max channels attribute value %d/%d", least, most);
    return ncclSuccess;
}

/* A communicator that is in progress, with a reference for the job that makes it. */
static ncclResult_t comm_new(const char *function, CUcontext context, int count, int rank, const ncclConfig_t *config,
                             const struct ncclComm *parent, ncclComm_t *made) {
    struct ncclComm *comm = handle_new(HANDLE_NCCL, sizeof *comm);
    if (!comm) return nccl_fail(ncclSystemError, "%s: the host has no memory for a communicator", function);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->changed, &clock);
    pthread_condattr_destroy(&clock);
    comm->context = context;
    comm->rank = rank;
    comm->is_blocking = !config ? !parent || parent->is_blocking : config->blocking != 0;
    if (config && config->size > offsetof(ncclConfig_t, commName) && config->commName)
        snprintf(comm->name, sizeof comm->name, "%s", config->commName);
    const char *checked = getenv("NCCL_CHECK_POINTERS");
    comm->checks_pointers = checked && atoi(checked);
    atomic_store(&comm->state, ncclInProgress);
    for (int lane = 0; lane < LANES; lane++) comm->bells[lane] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    comm->members = calloc((size_t)count, sizeof *comm->members);
    comm->inboxes = calloc((size_t)count, sizeof *comm->inboxes);
    comm->wires = malloc((size_t)count * sizeof *comm->wires);
    if (comm->wires) {
        comm->count = count;
        for (int i = 0; i < count; i++) comm->wires[i] = wire_none();
    }
    if (!comm->members || !comm->inboxes || !comm->wires || comm->bells[0] < 0 || comm->bells[1] < 0) {
        comm_drop(comm);
        return nccl_fail(ncclSystemError, "%s: the host has no memory or no file descriptors for a communicator",
                         function);
    }
    *made = comm;
    return ncclSuccess;
}

static uint64_t bus_of(CUcontext context) { return (uint64_t)device_bus(cpu_usage_place(context->device->ordinal)); }

static ncclResult_t refuse_duplicates(ncclComm_t comm) {
    for (int i = 0; i < comm->count; i++)
        for (int j = 0; j < i; j++) {
            const struct member *one = &comm->members[i], *other = &comm->members[j];
            if (one->bus != other->bus || memcmp(one->host, other->host, HOST_SIZE) ||
                (comm->rank != i && comm->rank != j))
                continue;
            return nccl_fail(
                ncclInvalidUsage,
                "Duplicate GPU detected : rank %d and rank %d both on CUDA device %llx. Each rank needs a device of "
                "its own: Device.for_rank(), with `cupola run --devices %d -n %d` on the CPU device",
                comm->rank, comm->rank == i ? j : i, (unsigned long long)one->bus << 12, comm->count, comm->count);
        }
    return ncclSuccess;
}

/* Meet the other ranks, among them those of `watch`, if there is one. What this returns becomes the state of the
 * communicator. */
static ncclResult_t comm_connect(ncclComm_t comm, const ncclUniqueId *id, struct watch *watch) {
    struct patience patience = patience_from_environment(&comm->stopped, NCCL_INIT_SECONDS);
    patience.watch = watch;
    struct member self = {.rank = comm->rank,
                          .device = comm->context->device->ordinal,
                          .bus = bus_of(comm->context),
                          .process = *this_process()};
    comm->hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof id->internal; i++)
        comm->hash = (comm->hash ^ (uint8_t)id->internal[i]) * 1099511628211u;
    ncclResult_t status = rendezvous(id, comm->count, &self, comm->bells, comm->members, comm->wires, &patience);
    if (!status) status = refuse_duplicates(comm);
    if (!status)
        nccl_say(DEBUG_INFO, "ncclCommInitRank comm %p rank %d nranks %d cudaDev %d busId %llx - Init COMPLETE",
                 (void *)comm, comm->rank, comm->count, self.device, (unsigned long long)self.bus << 12);
    return status;
}

/* ---- new communicators ------------------------------------------------------------------------------------------- */

struct init_job {
    struct job job;
    ncclUniqueId id;
};

static ncclResult_t run_init(struct job *job) { return comm_connect(job->comm, &((struct init_job *)job)->id, NULL); }

/* NVIDIA's ids are an address behind eight bytes, too; what has none is nobody's id. */
static ncclResult_t check_id(const char *function, const ncclUniqueId *id) {
    uint16_t family;
    if (rendezvous_knows(id)) return ncclSuccess;
    memcpy(&family, id->internal + 8, sizeof family);
    if (family != AF_INET && family != AF_INET6)
        return nccl_fail(
            ncclInternalError,
            "ncclSocketInit: connecting to address with family %d is neither AF_INET(%d) nor AF_INET6(%d). "
            "%s: the unique id is not one of ncclGetUniqueId",
            family, AF_INET, AF_INET6, function);
    return nccl_fail(ncclInvalidArgument,
                     "%s: the unique id is not one that ncclGetUniqueId of the CPU device has made", function);
}

static ncclResult_t init_rank(const char *function, ncclComm_t *comm, int count, const ncclUniqueId *id, int rank,
                              const ncclConfig_t *config) {
    if (!comm) return group_note(nccl_fail(ncclInvalidArgument, "%s : comm argument is NULL", function));
    *comm = NULL;
    if (count < 1 || count > MOST_RANKS)
        return group_note(
            nccl_fail(ncclInvalidArgument, "improper usage of ncclCommInitRank: nId = 1, nranks=%d", count));
    if (rank < 0 || rank >= count)
        return group_note(nccl_fail(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, count));
    ncclResult_t status = check_id(function, id);
    if (!status) status = check_config(config);
    if (!status) status = nccl_status(enter_runtime());
    struct init_job *job = status ? NULL : calloc(1, sizeof *job);
    if (!status && !job) status = nccl_fail(ncclSystemError, "%s: the host has no memory for a communicator", function);
    ncclComm_t made = NULL;
    if (!status) status = comm_new(function, current_owner(), count, rank, config, NULL, &made);
    if (status) {
        free(job);
        return group_note(status);
    }
    job->job.run = run_init;
    job->job.comm = handle_retain(made);
    job->id = *id;
    *comm = made;
    return group_add_job(&job->job);
}

static ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    if (!id) return nccl_fail(ncclInvalidArgument, "GetUniqueId : out argument is NULL");
    return rendezvous_id(id);
}

static ncclResult_t ncclCommInitRank(ncclComm_t *comm, int count, ncclUniqueId id, int rank) {
    return init_rank("CommInitRank", comm, count, &id, rank, NULL);
}

static ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int count, ncclUniqueId id, int rank,
                                           ncclConfig_t *config) {
    return init_rank("CommInitRankConfig", comm, count, &id, rank, config);
}

/* One id is enough for as many ranks as there are here. */
static ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int count, int rank, int id_count, ncclUniqueId *ids,
                                             ncclConfig_t *config) {
    if (!ids || id_count < 1 || id_count > count)
        return group_note(
            nccl_fail(ncclInvalidArgument, "improper usage of ncclCommInitRank: nId = %d, nranks=%d", id_count, count));
    return init_rank("CommInitRankScalable", comm, count, ids, rank, config);
}

static ncclResult_t on_device(int device, ncclComm_t *comm, int count, const ncclUniqueId *id, int rank) {
    CUcontext context;
    NCCL_RETURN_IF(nccl_status(primary_context(device, &context)));
    NCCL_RETURN_IF(nccl_status(cuCtxPushCurrent(context)));
    ncclResult_t status = init_rank("CommInitAll", comm, count, id, rank, NULL);
    cuCtxPopCurrent(NULL);
    return status;
}

static ncclResult_t init_all(ncclComm_t *comms, int count, const int *list) {
    ncclUniqueId id;
    NCCL_RETURN_IF(rendezvous_id(&id));
    ncclResult_t status = ncclSuccess;
    group_open();
    for (int i = 0; !status && i < count; i++) status = on_device(list ? list[i] : i, &comms[i], count, &id, i);
    return group_close();
}

static ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *list) {
    if (!comms) return nccl_fail(ncclInvalidArgument, "CommInitAll : comms argument is NULL");
    NCCL_RETURN_IF(nccl_status(start_driver()));
    if (count < 1) return nccl_fail(ncclInvalidArgument, "Invalid device count requested : %d", count);
    for (int i = 0; i < count; i++) {
        int device = list ? list[i] : i;
        comms[i] = NULL;
        if (device < 0 || device >= device_count)
            return nccl_fail(ncclInvalidArgument, "Invalid device %d (totalnDev=%d): CUPOLA_CPU_DEVICES", device,
                             device_count);
        for (int j = 0; j < i; j++)
            if (list && list[j] == device)
                return nccl_fail(ncclInvalidUsage, "CommInitAll: device %d is twice in the list", device);
    }
    return init_all(comms, count, list);
}

/* ---- communicators from others ----------------------------------------------------------------------------------- */

struct split_job {
    struct job job;
    int color, key;
};

struct choice {
    int32_t color, key;
};

/* While it is made, what stops the parent stops the new communicator, too: nobody else knows it yet. A parent that had
 * stopped before the call can only be aborted. */
static void set_child(const struct job *job, ncclComm_t child) {
    ncclComm_t parent = job->parent;
    pthread_mutex_lock(&parent->lock);
    parent->child = child;
    if (child && atomic_load(job->parent_stopped ? &parent->aborted : &parent->stopped))
        atomic_store(&child->stopped, true);
    pthread_mutex_unlock(&parent->lock);
}

/* The calls of a group run side by side, but use the control lane in their order, which is the same on all ranks. */
static void control_begin(struct job *job) {
    ncclComm_t parent = job->parent;
    pthread_mutex_lock(&parent->lock);
    while (parent->served != job->turn) pthread_cond_wait(&parent->changed, &parent->lock);
    pthread_mutex_unlock(&parent->lock);
}

static void control_end(ncclComm_t parent) {
    pthread_mutex_lock(&parent->lock);
    parent->served++;
    pthread_cond_broadcast(&parent->changed);
    pthread_mutex_unlock(&parent->lock);
}

/* Tell the ranks of the parent that take part the id, or be told; then all of them meet. */
static ncclResult_t connect_among(ncclComm_t comm, const struct talk *talk, const int *ranks, int count) {
    ncclComm_t parent = talk->comm;
    struct watch watch = {.comm = parent, .ranks = ranks, .count = count, .lost = -1};
    ncclUniqueId id;
    ncclResult_t status;
    if (ranks[0] == parent->rank) {
        status = rendezvous_id(&id);
        for (int i = 1; !status && i < count; i++) status = control_send(talk, ranks[i], &id, sizeof id);
    } else {
        status = control_receive(talk, ranks[0], &id, sizeof id);
    }
    if (status) control_give_up(talk);
    return status ? status : comm_connect(comm, &id, &watch);
}

static ncclResult_t split_among(struct split_job *split, const struct talk *talk, const struct choice *choices,
                                int *ranks) {
    ncclComm_t parent = split->job.parent, comm = split->job.comm;
    int count = 0, own = -1;
    for (int i = 0; i < parent->count; i++) {
        if (choices[i].color != split->color) continue;
        int at = count++;
        for (; at > 0 && choices[ranks[at - 1]].key > choices[i].key; at--) ranks[at] = ranks[at - 1];
        ranks[at] = i;
    }
    for (int i = 0; i < count; i++)
        if (ranks[i] == parent->rank) own = i;
    comm->rank = own;
    comm->count = count; /* at most as many as the parent has, for which there is room */
    return connect_among(comm, talk, ranks, count);
}

static ncclResult_t run_split(struct job *job) {
    struct split_job *split = (struct split_job *)job;
    ncclComm_t parent = job->parent;
    const struct talk talk = {.comm = parent, .kind = NOTE_SPLIT, .stopped = &parent->stopped};
    struct choice mine = {split->color, split->key}, *all = calloc((size_t)parent->count, sizeof *all);
    int *ranks = calloc((size_t)parent->count, sizeof *ranks);
    ncclResult_t status =
        all && ranks ? ncclSuccess : nccl_fail(ncclSystemError, "the host has no memory for a communicator");
    control_begin(job);
    set_child(job, job->comm);
    if (!status) status = control_gather(&talk, &mine, all, sizeof mine);
    if (status) control_give_up(&talk);
    else if (split->color != -1) status = split_among(split, &talk, all, ranks);
    set_child(job, NULL);
    control_end(parent);
    free(all);
    free(ranks);
    return status;
}

/* A number for the ranks that stay: a shrink that was given up is another one than the next. */
static uint64_t hash_of(const int *ranks, int count) {
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < count; i++) hash = (hash ^ (uint64_t)ranks[i]) * 1099511628211u;
    return hash;
}

static ncclResult_t run_shrink(struct job *job) {
    ncclComm_t parent = job->parent, comm = job->comm;
    const struct talk talk = {.comm = parent,
                              .kind = NOTE_SHRINK,
                              .about = hash_of(job->others, job->other_count),
                              .stopped = &comm->stopped};
    comm->count = job->other_count;
    comm->rank = 0;
    while (job->others[comm->rank] != parent->rank) comm->rank++;
    control_begin(job);
    set_child(job, comm);
    ncclResult_t status = connect_among(comm, &talk, job->others, job->other_count);
    set_child(job, NULL);
    control_end(parent);
    return status;
}

/* A job that makes a communicator of the parent's context, with at most its ranks; or, unless it `makes` one, none. */
static ncclResult_t job_from(const char *function, ncclComm_t parent, const ncclConfig_t *config, bool makes,
                             struct split_job **job) {
    *job = calloc(1, sizeof **job);
    if (!*job) return nccl_fail(ncclSystemError, "%s: the host has no memory for a communicator", function);
    ncclComm_t made = NULL;
    ncclResult_t status =
        makes ? comm_new(function, parent->context, parent->count, 0, config, parent, &made) : ncclSuccess;
    if (status) {
        free(*job);
        return status;
    }
    (*job)->job.parent = handle_retain(parent);
    if (made) (*job)->job.comm = handle_retain(made);
    return ncclSuccess;
}

/* Whether a call for the control lane finds it as the other ranks have left it. */
static ncclResult_t check_control(ncclComm_t comm, const char *function) {
    if (!comm->gave_up) return ncclSuccess;
    return nccl_fail(
        ncclInvalidUsage,
        "%s: a call that was to make a communicator of this one was given up, and other ranks may still be "
        "in it: ncclCommShrink with NCCL_SHRINK_ABORT makes one that can be used",
        function);
}

static ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config) {
    COMM_KEEP(comm);
    struct split_job *job = NULL;
    if (!made) return group_note(nccl_fail(ncclInvalidArgument, "CommSplit : newcomm argument is NULL"));
    *made = NULL;
    ncclResult_t status = comm_check(comm, "ncclCommSplit", true);
    if (!status) status = check_control(comm, "CommSplit");
    if (!status) status = check_config(config);
    if (!status) status = job_from("CommSplit", comm, config, color != -1, &job);
    if (status) return group_note(status);
    job->job.run = run_split;
    job->job.place = made;
    job->color = color;
    job->key = key;
    return group_add_job(&job->job);
}

static ncclResult_t check_group(ncclComm_t comm, const char *function);
static ncclResult_t stop(ncclComm_t comm);

static ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int excluded_count, ncclComm_t *made,
                                   ncclConfig_t *config, int flags) {
    COMM_KEEP(comm);
    struct split_job *job = NULL;
    if (!made) return group_note(nccl_fail(ncclInvalidArgument, "CommShrink : newcomm argument is NULL"));
    *made = NULL;
    ncclResult_t status = comm_check(comm, "CommShrink", false);
    if (!status && flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
        status = nccl_fail(ncclInvalidArgument, "CommShrink: %d are no flags", flags);
    if (!status && flags != NCCL_SHRINK_ABORT && !comm->revoked) status = comm_check(comm, "CommShrink", true);
    if (!status)
        status = flags == NCCL_SHRINK_ABORT ? check_group(comm, "CommShrink") : check_control(comm, "CommShrink");
    if (!status && !excluded)
        status = nccl_fail(ncclInvalidArgument, "ncclCommShrink : excludeRanksList argument is NULL");
    if (!status && excluded_count < 1)
        status = nccl_fail(ncclInvalidArgument, "CommShrink: %d ranks cannot be excluded", excluded_count);
    for (int i = 0; !status && i < excluded_count; i++)
        if (excluded[i] == comm->rank)
            status = nccl_fail(ncclInvalidArgument, "CommShrink: rank %d of %d cannot exclude itself", comm->rank,
                               comm->count);
    if (!status && excluded_count >= comm->count)
        status = nccl_fail(ncclInvalidArgument, "invalid device count (%d) requested: %d of %d ranks are excluded",
                           comm->count - excluded_count, excluded_count, comm->count);
    if (!status) status = check_config(config);
    bool *leaves = status ? NULL : calloc((size_t)comm->count, sizeof *leaves);
    for (int i = 0; leaves && !status && i < excluded_count; i++) {
        if (excluded[i] < 0 || excluded[i] >= comm->count)
            status = nccl_fail(ncclInvalidArgument, "CommShrink: rank %d cannot exclude rank %d of %d", comm->rank,
                               excluded[i], comm->count);
        else leaves[excluded[i]] = true;
    }
    if (!status && flags == NCCL_SHRINK_ABORT) status = stop(comm);
    if (!status) status = job_from("CommShrink", comm, config, true, &job);
    int *ranks = status ? NULL : calloc((size_t)comm->count, sizeof *ranks);
    if (status || !ranks || !leaves) {
        free(leaves);
        free(ranks);
        if (!status) status = nccl_fail(ncclSystemError, "the host has no memory for a communicator");
        if (job) comm_jobs_drop(&job->job, status);
        return group_note(status);
    }
    for (int i = 0; i < comm->count; i++)
        if (!leaves[i]) ranks[job->job.other_count++] = i;
    free(leaves);
    job->job.run = run_shrink;
    job->job.others = ranks;
    job->job.place = made;
    return group_add_job(&job->job);
}

struct offered_id { /* what each rank of the parent says to the others */
    int32_t given;
    ncclUniqueId id;
};

struct grow_job {
    struct job job;
    struct offered_id offer;
};

/* One rank of the parent has the id, which the others hear from it. */
static ncclResult_t run_grow(struct job *job) {
    struct grow_job *grow = (struct grow_job *)job;
    ncclComm_t parent = job->parent;
    struct offered_id *all = calloc((size_t)parent->count, sizeof *all);
    const struct offered_id *found = NULL;
    int givers = 0;
    const struct talk talk = {
        .comm = parent, .kind = NOTE_GROW, .about = (uint64_t)job->comm->count, .stopped = &job->comm->stopped};
    ncclResult_t status = all ? ncclSuccess : nccl_fail(ncclSystemError, "the host has no memory for a communicator");
    control_begin(job);
    set_child(job, job->comm);
    if (!status) status = control_gather(&talk, &grow->offer, all, sizeof *all);
    if (status) control_give_up(&talk);
    set_child(job, NULL);
    control_end(parent);
    for (int i = 0; !status && i < parent->count; i++)
        if (all[i].given) found = &all[i], givers++;
    if (!status && givers != 1)
        status = nccl_fail(ncclInvalidArgument,
                           "CommGrow: %d ranks of the communicator give the unique id: the one that called "
                           "ncclCommGetUniqueId gives it, the others NULL",
                           givers);
    else if (!status && !rendezvous_knows(&found->id))
        status = nccl_fail(ncclInvalidArgument, "CommGrow: the unique id is not one of ncclCommGetUniqueId");
    struct watch watch = {.comm = parent, .count = parent->count, .lost = -1};
    if (!status) status = comm_connect(job->comm, &found->id, &watch);
    free(all);
    return status;
}

static ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id) {
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "CommGetUniqueId", true));
    if (!id) return nccl_fail(ncclInvalidArgument, "CommGetUniqueId : uniqueId argument is NULL");
    return rendezvous_id(id);
}

/* The ranks of a communicator keep their numbers, and others join behind them: those have no communicator yet. */
static ncclResult_t ncclCommGrow(ncclComm_t comm, int count, const ncclUniqueId *id, int rank, ncclComm_t *made,
                                 ncclConfig_t *config) {
    if (!made) return group_note(nccl_fail(ncclInvalidArgument, "CommGrow : newcomm argument is NULL"));
    *made = NULL;
    if (!comm) {
        if (!id) return group_note(nccl_fail(ncclInvalidArgument, "CommGrow: a new rank needs the unique id"));
        return init_rank("CommGrow", made, count, id, rank, config);
    }
    COMM_KEEP(comm);
    ncclResult_t status = comm_check(comm, "CommGrow", true);
    if (!status) status = check_control(comm, "CommGrow");
    if (!status && rank != -1)
        status = nccl_fail(ncclInvalidArgument, "CommGrow: the rank is %d: ranks of the communicator keep theirs (-1)",
                           rank);
    if (!status && (count <= comm->count || count > MOST_RANKS))
        status = nccl_fail(ncclInvalidArgument, "CommGrow: %d ranks cannot become %d", comm->count, count);
    if (!status) status = check_config(config);
    struct grow_job *job = status ? NULL : calloc(1, sizeof *job);
    if (!status && !job) status = nccl_fail(ncclSystemError, "CommGrow: the host has no memory for a communicator");
    ncclComm_t grown = NULL;
    if (!status) status = comm_new("CommGrow", comm->context, count, comm->rank, config, comm, &grown);
    if (status) {
        free(job);
        return group_note(status);
    }
    job->job.run = run_grow;
    job->job.parent = handle_retain(comm);
    job->job.comm = handle_retain(grown);
    job->offer.given = id != NULL;
    if (id) job->offer.id = *id;
    *made = grown;
    return group_add_job(&job->job);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Wait until no operation is in a stream any more. */
static void drain(ncclComm_t comm) {
    pthread_mutex_lock(&comm->lock);
    while (comm->first || comm->busy || (atomic_load(&comm->state) == ncclInProgress && !comm->finalized))
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

/* End the operations that are at work; those that are in streams end when their turn comes. Who is making the communicator
 * has its wires, and gives up first. */
static ncclResult_t stop(ncclComm_t comm) {
    atomic_store(&comm->stopped, true);
    pthread_mutex_lock(&comm->lock);
    if (comm->child) {
        atomic_store(&comm->child->stopped, true);
        comm_ring(comm->child);
    }
    pthread_mutex_unlock(&comm->lock);
    comm_ring(comm); /* who makes the child sleeps by the bells of both */
    pthread_mutex_lock(&comm->lock);
    while (comm->busy || (atomic_load(&comm->state) == ncclInProgress && !comm->finalized))
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
    for (int i = 0; i < comm->count; i++)
        if (i != comm->rank) wire_shut(&comm->wires[i], LANE_DATA);
    return ncclSuccess;
}

/* What the open group makes is made when the group ends: nobody may wait for it before. */
static ncclResult_t check_group(ncclComm_t comm, const char *function) {
    if (comm->finalized || !group_holds(comm)) return ncclSuccess;
    return nccl_fail(ncclInvalidUsage, "%s: the group that is open makes the communicator: call ncclGroupEnd before",
                     function);
}

static ncclResult_t run_finalize(struct job *job) {
    drain(job->comm);
    return ncclSuccess;
}

static ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (!comm) return ncclSuccess;
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "CommFinalize", false));
    if (comm->finalized)
        return nccl_fail(ncclInvalidArgument, "CommFinalize: the communicator has been finalized before");
    if (comm->revoked) return nccl_fail(ncclInvalidUsage, "CommFinalize: the communicator was revoked");
    struct job *job = calloc(1, sizeof *job);
    if (!job) return nccl_fail(ncclSystemError, "CommFinalize: the host has no memory");
    job->run = run_finalize;
    job->comm = handle_retain(comm);
    pthread_mutex_lock(&comm->lock);
    const bool ready = atomic_load(&comm->state) != ncclInProgress; /* what is in progress is another call */
    if (ready) comm->finalized = true;
    if (!atomic_load(&comm->state)) atomic_store(&comm->state, ncclInProgress);
    pthread_mutex_unlock(&comm->lock);
    if (ready) return group_add_job(job);
    comm_release(comm);
    free(job);
    return group_note(nccl_fail(ncclInvalidArgument, NOT_READY " (CommFinalize)"));
}

static ncclResult_t end(ncclComm_t comm) {
    if (!handle_kill(comm)) return comm_check(comm, "CommDestroy", false);
    nccl_say(DEBUG_INFO, "comm %p rank %d nranks %d - Destroy COMPLETE", (void *)comm, comm->rank, comm->count);
    comm_release(comm);
    return ncclSuccess;
}

static ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (!comm) return ncclSuccess;
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "CommDestroy", false));
    NCCL_RETURN_IF(check_group(comm, "CommDestroy"));
    drain(comm);
    return end(comm);
}

static ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (!comm) return ncclSuccess;
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "CommAbort", false));
    NCCL_RETURN_IF(check_group(comm, "CommAbort"));
    atomic_store(&comm->aborted, true);
    stop(comm);
    pthread_mutex_lock(&comm->lock);
    while (atomic_load(&comm->state) == ncclInProgress && !group_holds(comm))
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
    return end(comm);
}

static ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "CommRevoke", false));
    NCCL_RETURN_IF(check_group(comm, "CommRevoke"));
    if (flags != NCCL_REVOKE_DEFAULT) return nccl_fail(ncclInvalidArgument, "CommRevoke: %d are no flags", flags);
    comm->revoked = true;
    return stop(comm);
}

/* There is no memory of the device that could be given back meanwhile. */
static ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "CommSuspend", true));
    if (flags != NCCL_SUSPEND_MEM) return nccl_fail(ncclInvalidArgument, "CommSuspend: %d are no flags", flags);
    drain(comm);
    comm->suspended = true;
    return ncclSuccess;
}

static ncclResult_t ncclCommResume(ncclComm_t comm) {
    NCCL_RETURN_IF(comm_check(comm, "CommResume", false));
    if (!comm->suspended) return nccl_fail(ncclInvalidUsage, "CommResume: the communicator is not suspended");
    comm->suspended = false;
    return ncclSuccess;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *status) {
    NCCL_RETURN_IF(comm_check(comm, "ncclGetAsyncError", false));
    if (!status) return nccl_fail(ncclInvalidArgument, "ncclGetAsyncError : asyncError argument is NULL");
    *status = comm_state(comm);
    return ncclSuccess;
}

#define QUESTION(Name, what, value)                                                                                            \
    static ncclResult_t ncclComm##Name(const ncclComm_t comm, int *answer) {                                             \
        COMM_KEEP(comm);                                                                                                 \
        NCCL_RETURN_IF(comm_check(comm, "Comm" #Name, false));                                                           \
        if (!answer) return nccl_fail(ncclInvalidArgument, "Comm" #Name " : " what " argument is NULL");          \
        if (atomic_load(&comm->state) == ncclInProgress && !comm->finalized)                                             \
            return nccl_fail(ncclInvalidArgument, NOT_READY " (Comm" #Name ")");                                         \
        *answer = value;                                                                                                 \
        return ncclSuccess;                                                                                              \
    }
QUESTION(Count, "count", comm->count)
QUESTION(CuDevice, "devid", comm->context->device->ordinal)
QUESTION(UserRank, "rank", comm->rank)

/* Messages go through memory of the host. */
static ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value) {
    NCCL_RETURN_IF(comm_check(comm, "CommMemStats", false));
    if (!value) return nccl_fail(ncclInvalidArgument, "CommMemStats : value argument is NULL");
    if ((unsigned)stat > ncclStatGpuMemTotal)
        return nccl_fail(ncclInvalidArgument, "CommMemStats: %d is no ncclCommMemStat_t", (int)stat);
    *value = stat == ncclStatGpuMemSuspended && comm->suspended;
    return ncclSuccess;
}

#define NCCL_ENTRY(name) MATH_ENTRY(cupola_nccl_table, name)

const struct entry nccl_communicator_entries[] = {
    NCCL_ENTRY(ncclCommAbort),       NCCL_ENTRY(ncclCommCount),          NCCL_ENTRY(ncclCommCuDevice),
    NCCL_ENTRY(ncclCommDestroy),     NCCL_ENTRY(ncclCommFinalize),       NCCL_ENTRY(ncclCommGetAsyncError),
    NCCL_ENTRY(ncclCommGetUniqueId), NCCL_ENTRY(ncclCommGrow),           NCCL_ENTRY(ncclCommInitAll),
    NCCL_ENTRY(ncclCommInitRank),    NCCL_ENTRY(ncclCommInitRankConfig), NCCL_ENTRY(ncclCommInitRankScalable),
    NCCL_ENTRY(ncclCommMemStats),    NCCL_ENTRY(ncclCommResume),         NCCL_ENTRY(ncclCommRevoke),
    NCCL_ENTRY(ncclCommShrink),      NCCL_ENTRY(ncclCommSplit),          NCCL_ENTRY(ncclCommSuspend),
    NCCL_ENTRY(ncclCommUserRank),    NCCL_ENTRY(ncclGetUniqueId),        {NULL, NULL, NULL},
};
