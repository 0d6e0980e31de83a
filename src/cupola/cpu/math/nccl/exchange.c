/* Collectives as messages.
 *
 * A collective is a sequence of exchanges, in each of which a rank sends parts of its memory to others and receives parts of
 * theirs, all at once. Reductions go through two of them for each chunk: every rank gets everybody's part of a block, which it
 * reduces, in the order of the ranks, so that all get the same bits; then the reduced blocks go where they are wanted. The
 * first message of a collective between two ranks has a head that says which collective it is: ranks that disagree get an
 * error instead of each other's numbers. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "nccl.h"

enum { CHUNK = 1 << 20 /* bytes of a reduction that are at work at a time */, ROUNDS_BEFORE_SLEEP = 50, NO_ROOT = -1 };
enum { ALIVE_NANOSECONDS = 500000000 };

const char *const function_names[FUNCTIONS] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter",
                                               "AlltoAll",  "Gather", "Scatter",   "Send",      "Recv"};

/* ---- transfers --------------------------------------------------------------------------------------------------- */

struct head {
    uint32_t magic, function, type, op;
    int32_t root;
    uint32_t zero;
    uint64_t count;
};
enum { HEAD_MAGIC = 0x6c63636e };

struct transfer {
    int peer;
    bool sends;
    size_t head_left;
    struct head head; /* that is sent, or that has come */
    const struct task *task;
    char *bytes;
    size_t left;
};

struct exchange {
    ncclComm_t comm;
    struct transfer *transfers;
    int count, capacity;
    bool *reads, *writes; /* by rank: who has an unfinished transfer in front */
    bool first;           /* of its collective: there are heads */
    uint64_t asked;
    uint64_t deadline; /* that long after the last bytes went through; 0: there is none */
    char *text;
};

static struct head head_of(const struct task *task) {
    bool reduces = task->function == ALL_REDUCE || task->function == REDUCE || task->function == REDUCE_SCATTER;
    bool is_message = task->function == SEND || task->function == RECEIVE;
    return (struct head){.magic = HEAD_MAGIC,
                         .function = is_message ? SEND : task->function,
                         .type = task->type,
                         .op = reduces ? task->reduction.op : 0,
                         .root = is_message ? NO_ROOT : task->root,
                         .count = task->count};
}

static void describe(char *text, size_t size, const struct head *head) {
    if (head->magic != HEAD_MAGIC || head->function >= FUNCTIONS || (unsigned)head->type >= ncclNumTypes) {
        snprintf(text, size, "something else");
        return;
    }
    int length = snprintf(text, size, "nccl%s of %llu %s", function_names[head->function],
                          (unsigned long long)head->count, type_name((ncclDataType_t)head->type));
    if (head->function == ALL_REDUCE || head->function == REDUCE || head->function == REDUCE_SCATTER)
        length += snprintf(text + length, size - (size_t)length, " (%s)", op_name((ncclRedOp_t)head->op));
    if (head->root >= 0) snprintf(text + length, size - (size_t)length, " with root %d", head->root);
}

static ncclResult_t check_head(struct exchange *exchange, const struct transfer *transfer) {
    struct head wanted = head_of(transfer->task);
    if (!memcmp(&wanted, &transfer->head, sizeof wanted)) return ncclSuccess;
    char own[128], other[128];
    describe(own, sizeof own, &wanted);
    describe(other, sizeof other, &transfer->head);
    snprintf(
        exchange->text, TEXT_SIZE,
        "rank %d %s %s, but rank %d %s %s: the ranks of a communicator make the same calls in the same order, and messages "
        "have the size that is expected",
        exchange->comm->rank, transfer->task->function == RECEIVE ? "expects" : "is in", own, transfer->peer,
        transfer->head.function == SEND ? "sends" : "is in", other);
    return ncclInvalidUsage;
}

/* Let some bytes through; `moved`: some went. */
static ncclResult_t step(struct exchange *exchange, struct transfer *transfer, bool *moved) {
    struct wire *wire = &exchange->comm->wires[transfer->peer];
    while (transfer->head_left || transfer->left) {
        bool is_head = transfer->head_left > 0;
        size_t left = is_head ? transfer->head_left : transfer->left;
        char *at = is_head ? (char *)&transfer->head + sizeof transfer->head - left : transfer->bytes;
        ssize_t size = transfer->sends ? wire_write(wire, LANE_DATA, at, left) : wire_read(wire, LANE_DATA, at, left);
        if (size < 0) {
            snprintf(exchange->text, TEXT_SIZE,
                     "rank %d has ended, or has left the communicator (nccl%s on rank %d of %d)", transfer->peer,
                     function_names[transfer->task->function], exchange->comm->rank, exchange->comm->count);
            return ncclRemoteError;
        }
        if (!size) return ncclSuccess;
        *moved = true;
        if (!is_head) {
            transfer->bytes += size;
            transfer->left -= (size_t)size;
        } else if (!(transfer->head_left -= (size_t)size) && !transfer->sends) {
            ncclResult_t status = check_head(exchange, transfer);
            if (status) return status;
        }
    }
    return ncclSuccess;
}

static bool is_done(const struct transfer *transfer) { return !transfer->head_left && !transfer->left; }

static void look_after(struct exchange *exchange) {
    ncclComm_t comm = exchange->comm;
    if (clock_now() - exchange->asked < ALIVE_NANOSECONDS) return;
    exchange->asked = clock_now();
    for (int i = 0; i < comm->count; i++) {
        const struct process *process = &comm->members[i].process;
        if ((exchange->reads[i] || exchange->writes[i]) && comm->wires[i].is_local && !is_this_process(process) &&
            !process_is_alive(process->number, process->began))
            atomic_store(&comm->wires[i].gone, true);
    }
}

/* Nothing moves. */
static ncclResult_t wait(struct exchange *exchange, int rounds) {
    ncclComm_t comm = exchange->comm;
    if (atomic_load(&comm->context->error)) {
        snprintf(exchange->text, TEXT_SIZE, "the context of rank %d has failed", comm->rank);
        return ncclUnhandledCudaError;
    }
    if (exchange->deadline && clock_now() > exchange->deadline) {
        int peer = 0;
        while (peer < comm->count - 1 && !exchange->reads[peer] && !exchange->writes[peer]) peer++;
        snprintf(exchange->text, TEXT_SIZE,
                 "nccl%s on rank %d of %d has waited for rank %d longer than CUPOLA_NCCL_TIMEOUT",
                 function_names[exchange->transfers[0].task->function], comm->rank, comm->count, peer);
        return ncclTimeout;
    }
    if (rounds < ROUNDS_BEFORE_SLEEP) {
        sched_yield();
        return ncclSuccess;
    }
    wire_sleep(comm->wires, comm->count, LANE_DATA, exchange->reads, exchange->writes, comm->bells[LANE_DATA]);
    look_after(exchange);
    return ncclSuccess;
}

/* Carry out all transfers, those with the same rank in the same direction in their order. */
static ncclResult_t run(struct exchange *exchange) {
    ncclComm_t comm = exchange->comm;
    for (int rounds = 0;;) {
        bool moved = false, done = true;
        memset(exchange->reads, 0, (size_t)comm->count * sizeof *exchange->reads);
        memset(exchange->writes, 0, (size_t)comm->count * sizeof *exchange->writes);
        for (int i = 0; i < exchange->count; i++) {
            struct transfer *transfer = &exchange->transfers[i];
            bool *busy = transfer->sends ? &exchange->writes[transfer->peer] : &exchange->reads[transfer->peer];
            if (is_done(transfer) || *busy) continue;
            NCCL_RETURN_IF(step(exchange, transfer, &moved));
            *busy = !is_done(transfer);
            done &= !*busy;
        }
        if (done) break;
        if (atomic_load(&comm->stopped)) return ncclInProgress;
        if (moved) rounds = 0;
        else if (!rounds) exchange->deadline = patience_from_environment(NULL, 0).end;
        if (!moved) NCCL_RETURN_IF(wait(exchange, rounds++));
    }
    exchange->count = 0;
    return ncclSuccess;
}

static ncclResult_t add(struct exchange *exchange, const struct task *task, bool sends, int peer, const void *bytes,
                        size_t size) {
    if (exchange->count == exchange->capacity) {
        int capacity = exchange->capacity ? 2 * exchange->capacity : 2 * exchange->comm->count + 8;
        struct transfer *grown = realloc(exchange->transfers, (size_t)capacity * sizeof *grown);
        if (!grown) {
            snprintf(exchange->text, TEXT_SIZE, "the host has no memory for messages");
            return ncclSystemError;
        }
        exchange->transfers = grown;
        exchange->capacity = capacity;
    }
    exchange->transfers[exchange->count++] = (struct transfer){.peer = peer,
                                                               .sends = sends,
                                                               .head_left = exchange->first ? sizeof(struct head) : 0,
                                                               .head = head_of(task),
                                                               .task = task,
                                                               .bytes = (char *)bytes,
                                                               .left = size};
    return ncclSuccess;
}

/* To and from all other ranks: `size` bytes each, which lie `step` bytes apart by rank; a null pointer: none. */
static ncclResult_t with_all(struct exchange *exchange, const struct task *task, const char *out, size_t out_step,
                             const char *in, size_t in_step, size_t size) {
    for (int offset = 1; offset < exchange->comm->count; offset++) {
        int to = (exchange->comm->rank + offset) % exchange->comm->count;
        if (out) NCCL_RETURN_IF(add(exchange, task, true, to, out + (size_t)to * out_step, size));
        if (in) NCCL_RETURN_IF(add(exchange, task, false, to, in + (size_t)to * in_step, size));
    }
    return run(exchange);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static void copy(void *target, const void *source, size_t size) {
    if (target != source) memmove(target, source, size);
}

/* Bytes at which the block of a rank begins, of `count` numbers that are shared out. */
static size_t block_begin(const struct task *task, size_t count, int rank, int ranks) {
    return (size_t)((unsigned __int128)count * (unsigned)rank / (unsigned)ranks) * type_size(task->type);
}

/* Get everybody's numbers of this rank's block, which begins in each rank's `source` at `begin`, and reduce them. */
static ncclResult_t reduce_block(struct exchange *exchange, const struct task *task, const char *source, size_t begin,
                                 size_t size, char *room, void *target) {
    const int ranks = exchange->comm->count, own = exchange->comm->rank;
    const void *sources[MOST_RANKS];
    for (int i = 0; i < ranks; i++) {
        sources[i] = i == own ? source + begin : room + (size_t)i * size;
        if (i != own) NCCL_RETURN_IF(add(exchange, task, false, i, sources[i], size));
    }
    NCCL_RETURN_IF(run(exchange));
    reduce(task->type, &task->reduction, target, sources, ranks, size / type_size(task->type));
    return ncclSuccess;
}

/* AllReduce and Reduce, of `count` numbers from `first` on. */
static ncclResult_t reduce_chunk(struct exchange *exchange, const struct task *task, size_t first, size_t count,
                                 char *room) {
    const int ranks = exchange->comm->count, own = exchange->comm->rank;
    const char *source = (const char *)task->source + first * type_size(task->type);
    char *target = task->target ? (char *)task->target + first * type_size(task->type) : NULL;
    size_t begin = block_begin(task, count, own, ranks), size = block_begin(task, count, own + 1, ranks) - begin;
    char *block = task->function == ALL_REDUCE || own == task->root ? target + begin : room + (size_t)own * size;
    for (int i = 0; i < ranks; i++) {
        size_t start = block_begin(task, count, i, ranks);
        if (i != own)
            NCCL_RETURN_IF(
                add(exchange, task, true, i, source + start, block_begin(task, count, i + 1, ranks) - start));
    }
    NCCL_RETURN_IF(reduce_block(exchange, task, source, begin, size, room, block));
    exchange->first = false;
    for (int i = 0; i < ranks; i++) {
        size_t start = block_begin(task, count, i, ranks);
        if (i == own) continue;
        if (task->function == ALL_REDUCE || i == task->root) NCCL_RETURN_IF(add(exchange, task, true, i, block, size));
        if (task->function == ALL_REDUCE || own == task->root)
            NCCL_RETURN_IF(
                add(exchange, task, false, i, target + start, block_begin(task, count, i + 1, ranks) - start));
    }
    return run(exchange);
}

/* ReduceScatter, of `count` numbers of each block from `first` on. */
static ncclResult_t scatter_chunk(struct exchange *exchange, const struct task *task, size_t first, size_t count,
                                  char *room) {
    const int ranks = exchange->comm->count, own = exchange->comm->rank;
    const size_t width = type_size(task->type);
    const char *source = (const char *)task->source + first * width;
    for (int i = 0; i < ranks; i++)
        if (i != own)
            NCCL_RETURN_IF(add(exchange, task, true, i, source + (size_t)i * task->count * width, count * width));
    ncclResult_t status = reduce_block(exchange, task, source, (size_t)own * task->count * width, count * width, room,
                                       (char *)task->target + first * width);
    exchange->first = false;
    return status;
}

static ncclResult_t in_chunks(struct exchange *exchange, const struct task *task) {
    const int ranks = exchange->comm->count;
    const size_t width = type_size(task->type);
    /* The room has a block of each rank: of a part of the chunk, or of the chunk. */
    size_t chunk = (task->function == REDUCE_SCATTER ? CHUNK / (size_t)ranks : CHUNK) / width;
    if (!chunk) chunk = 1;
    if (chunk > task->count) chunk = task->count;
    size_t block = task->function == REDUCE_SCATTER ? chunk : chunk / (size_t)ranks + 1;
    char *room = malloc(block * width * (size_t)ranks);
    if (!room) {
        snprintf(exchange->text, TEXT_SIZE, "the host has no memory for a reduction");
        return ncclSystemError;
    }
    ncclResult_t status = ncclSuccess;
    for (size_t first = 0; !status && first < task->count; first += chunk) {
        size_t count = task->count - first < chunk ? task->count - first : chunk;
        status = (task->function == REDUCE_SCATTER ? scatter_chunk : reduce_chunk)(exchange, task, first, count, room);
    }
    free(room);
    return status;
}

static ncclResult_t collective(struct exchange *exchange, const struct task *task) {
    const int own = exchange->comm->rank;
    const size_t size = task->count * type_size(task->type);
    const char *source = task->source;
    char *target = task->target;
    const size_t mine = (size_t)own * size;
    switch (task->function) {
        case ALL_REDUCE:
        case REDUCE:
        case REDUCE_SCATTER: return in_chunks(exchange, task);
        case BROADCAST:
            if (own == task->root) copy(target, source, size);
            else NCCL_RETURN_IF(add(exchange, task, false, task->root, target, size));
            return own == task->root ? with_all(exchange, task, source, 0, NULL, 0, size) : run(exchange);
        case ALL_GATHER:
            copy(target + mine, source, size);
            return with_all(exchange, task, source, 0, target, size, size);
        case ALL_TO_ALL:
            copy(target + mine, source + mine, size);
            return with_all(exchange, task, source, size, target, size, size);
        case GATHER:
            if (own == task->root) copy(target + mine, source, size);
            else NCCL_RETURN_IF(add(exchange, task, true, task->root, source, size));
            return own == task->root ? with_all(exchange, task, NULL, 0, target, size, size) : run(exchange);
        default:
            if (own == task->root) copy(target, source + mine, size);
            else NCCL_RETURN_IF(add(exchange, task, false, task->root, target, size));
            return own == task->root ? with_all(exchange, task, source, size, NULL, 0, size) : run(exchange);
    }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

bool is_message(const struct task *task) { return task->function == SEND || task->function == RECEIVE; }

/* The message of a rank to itself that comes after `task`. */
static const struct task *next_to_itself(const struct task *task, enum function function, int own) {
    while (task && (task->function != function || task->root != own)) task = task->next;
    return task;
}

/* The first such message is for the rank's first receive from itself, and so on. */
ncclResult_t check_messages(ncclComm_t comm, const struct task *tasks) {
    const int own = comm->rank;
    const struct task *out = next_to_itself(tasks, SEND, own), *in = next_to_itself(tasks, RECEIVE, own);
    for (; out && in; out = next_to_itself(out->next, SEND, own), in = next_to_itself(in->next, RECEIVE, own))
        if (out->count != in->count || out->type != in->type)
            nccl_say(DEBUG_WARN, "rank %d sends %zu %s to itself, and receives %zu %s: what both have is copied", own,
                     out->count, type_name(out->type), in->count, type_name(in->type));
    if (out || in)
        return nccl_fail(ncclInvalidUsage, "Trying to %s self without a matching %s in the same group (rank %d)",
                         out ? "send to" : "recv from", out ? "recv" : "send", own);
    return ncclSuccess;
}

static void to_itself(ncclComm_t comm, const struct task *tasks) {
    const int own = comm->rank;
    const struct task *out = next_to_itself(tasks, SEND, own), *in = next_to_itself(tasks, RECEIVE, own);
    for (; out && in; out = next_to_itself(out->next, SEND, own), in = next_to_itself(in->next, RECEIVE, own)) {
        const size_t sent = out->count * type_size(out->type), wanted = in->count * type_size(in->type);
        copy(in->target, out->source, sent < wanted ? sent : wanted);
    }
}

static ncclResult_t messages(struct exchange *exchange, const struct task *tasks) {
    to_itself(exchange->comm, tasks);
    exchange->first = true;
    for (const struct task *task = tasks; task; task = task->next)
        if (is_message(task) && task->root != exchange->comm->rank)
            NCCL_RETURN_IF(add(exchange, task, task->function == SEND, task->root,
                               task->function == SEND ? task->source : task->target,
                               task->count * type_size(task->type)));
    return run(exchange);
}

ncclResult_t exchange(ncclComm_t comm, const struct task *tasks, char *text) {
    struct exchange one = {.comm = comm, .text = text, .asked = clock_now()};
    bool flags[2 * MOST_RANKS] = {0}, sends = false;
    one.reads = flags;
    one.writes = flags + comm->count;
    ncclResult_t status = ncclSuccess;
    for (const struct task *task = tasks; task && !status; task = task->next) {
        one.first = true;
        sends |= is_message(task);
        if (!is_message(task)) status = collective(&one, task);
    }
    if (!status && sends) status = messages(&one, tasks);
    free(one.transfers);
    return status;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* What a task reads and writes, in numbers. */
static void extent(ncclComm_t comm, const struct task *task, size_t *reads, size_t *writes) {
    const size_t all = (size_t)comm->count * task->count;
    const bool is_root = comm->rank == task->root;
    *reads = *writes = task->count;
    switch (task->function) {
        case REDUCE: *writes = is_root ? task->count : 0; break;
        case BROADCAST: *reads = is_root ? task->count : 0; break;
        case ALL_GATHER: *writes = all; break;
        case REDUCE_SCATTER: *reads = all; break;
        case ALL_TO_ALL: *reads = *writes = all; break;
        case GATHER: *writes = is_root ? all : 0; break;
        case SCATTER: *reads = is_root ? all : 0; break;
        case SEND: *writes = 0; break;
        case RECEIVE: *reads = 0; break;
        default: break;
    }
}

CUresult task_touch(ncclComm_t comm, const struct task *task) {
    char name[32];
    size_t reads, writes, width = type_size(task->type);
    extent(comm, task, &reads, &writes);
    snprintf(name, sizeof name, "nccl%s", function_names[task->function]);
    if (reads) RETURN_IF(math_touch(name, "sendbuff", task->source, reads * width));
    if (writes) RETURN_IF(math_touch(name, "recvbuff", task->target, writes * width));
    if (task->reduction.op == ncclNumOps && task->reduction.factor.on_device)
        RETURN_IF(math_touch(name, "scalar", task->reduction.factor.place, width));
    return CUDA_SUCCESS;
}
