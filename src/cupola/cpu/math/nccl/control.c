/* The control lane: what the calls of ranks agree on. It carries few bytes, and a thread of the program waits for them.
 *
 * They go in notes that say which call they are of: a call that was given up, because a rank has ended or the program has
 * aborted what was to be made, may have left some behind. ncclCommShrink passes over them, since it is how a program goes on
 * then. Any other call is an error where ranks do not make the same. */
#include "nccl.h"

enum { ALIVE_NANOSECONDS = 500000000 };
#define LOST_NANOSECONDS UINT64_C(2000000000)

static const char *const call_names[] = {
    [NOTE_SPLIT] = "ncclCommSplit", [NOTE_SHRINK] = "ncclCommShrink", [NOTE_GROW] = "ncclCommGrow"};

struct control { /* what waits on the lane */
    const struct talk *talk;
    int rank;
    bool reads;
    struct patience patience;
    uint64_t asked; /* when it was last asked whether the process lives */
};

static struct control control_begin(const struct talk *talk, int rank, bool reads) {
    return (struct control){.talk = talk,
                            .rank = rank,
                            .reads = reads,
                            .patience = patience_from_environment(talk->stopped, NCCL_INIT_SECONDS),
                            .asked = clock_now()};
}

/* A process that has ended may have left its sockets to a child. */
static void ask_for(ncclComm_t comm, int rank, uint64_t *asked) {
    const struct member *member = &comm->members[rank];
    if (!comm->wires[rank].is_local || clock_now() - *asked < ALIVE_NANOSECONDS) return;
    *asked = clock_now();
    if (!process_is_alive(member->process.number, member->process.began) && !is_this_process(&member->process))
        atomic_store(&comm->wires[rank].gone, true);
}

int watch_found(struct watch *watch) {
    const uint64_t now = clock_now();
    if (now - watch->asked > ALIVE_NANOSECONDS) {
        watch->asked = now;
        int lost = -1;
        for (int i = 0; i < watch->count && lost < 0; i++) {
            const int rank = watch->ranks ? watch->ranks[i] : i;
            uint64_t never = 0;
            if (rank == watch->comm->rank) continue;
            ask_for(watch->comm, rank, &never);
            if (wire_has_ended(&watch->comm->wires[rank], LANE_CONTROL)) lost = rank;
        }
        if (lost < 0 || watch->lost < 0) watch->since = now;
        watch->lost = lost;
    }
    return watch->lost >= 0 && now - watch->since > LOST_NANOSECONDS ? watch->lost : -1;
}

/* Some bytes went through, or none, or none ever will. `left`: who has left the communicator makes no such call any more;
 * but before ncclCommShrink all have left. */
static ncclResult_t control_after(struct control *control, ssize_t moved, bool left) {
    ncclComm_t comm = control->talk->comm;
    const int rank = control->rank;
    if (moved > 0) return ncclSuccess;
    if (moved < 0 || left) return nccl_fail(ncclRemoteError, "rank %d has ended, or has left the communicator", rank);
    if (patience_is_over(&control->patience))
        return atomic_load(control->patience.stopped)
                   ? nccl_fail(ncclInvalidUsage, "the communicator was aborted meanwhile")
                   : nccl_fail(ncclSystemError, "rank %d makes no such call (CUPOLA_NCCL_TIMEOUT)", rank);
    wire_sleep(&comm->wires[rank], 1, LANE_CONTROL, &control->reads, &(bool){!control->reads},
               comm->bells[LANE_CONTROL]);
    ask_for(comm, rank, &control->asked);
    return ncclSuccess;
}

static bool has_left(const struct control *control) {
    return control->talk->kind != NOTE_SHRINK && wire_has_ended(&control->talk->comm->wires[control->rank], LANE_DATA);
}

ncclResult_t control_send(const struct talk *talk, int rank, const void *bytes, size_t size) {
    struct note note = {.kind = talk->kind, .size = (uint32_t)size, .about = talk->about};
    struct control control = control_begin(talk, rank, false);
    memcpy(note.bytes, bytes, size);
    for (size_t done = 0; done < sizeof note;) {
        const bool left = has_left(&control);
        ssize_t moved =
            wire_write(&talk->comm->wires[rank], LANE_CONTROL, (const char *)&note + done, sizeof note - done);
        ncclResult_t status = control_after(&control, moved, left);
        if (status && done) wire_shut(&talk->comm->wires[rank], LANE_CONTROL); /* half a note */
        NCCL_RETURN_IF(status);
        if (moved > 0) done += (size_t)moved;
    }
    return ncclSuccess;
}

/* Get the next note of a rank into its inbox. */
static ncclResult_t next_note(struct control *control, struct inbox *inbox) {
    while (inbox->came < sizeof inbox->note) {
        const bool left = has_left(control);
        ssize_t moved = wire_read(&control->talk->comm->wires[control->rank], LANE_CONTROL,
                                  (char *)&inbox->note + inbox->came, sizeof inbox->note - inbox->came);
        NCCL_RETURN_IF(control_after(control, moved, left));
        if (moved > 0) inbox->came += (size_t)moved;
    }
    return ncclSuccess;
}

ncclResult_t control_receive(const struct talk *talk, int rank, void *bytes, size_t size) {
    struct control control = control_begin(talk, rank, true);
    struct inbox *inbox = &talk->comm->inboxes[rank];
    const struct note *note = &inbox->note;
    for (;;) {
        NCCL_RETURN_IF(next_note(&control, inbox));
        const uint32_t kind = note->kind;
        const bool same = note->about == talk->about;
        if (kind != NOTE_SHRINK || talk->kind == NOTE_SHRINK) inbox->came = 0; /* this rank may yet shrink */
        if (kind == talk->kind && same && note->size == size) {
            memcpy(bytes, note->bytes, size);
            return ncclSuccess;
        }
        if (kind == NOTE_OVER && (same || talk->kind != NOTE_SHRINK))
            return nccl_fail(ncclRemoteError, "rank %d has given up its call, or an earlier one", rank);
        if (talk->kind == NOTE_SHRINK) continue;
        return nccl_fail(ncclInvalidUsage, "rank %d is in %s, but rank %d in %s%s", talk->comm->rank,
                         call_names[talk->kind], rank, kind && kind < NOTE_OVER ? call_names[kind] : "something else",
                         kind == talk->kind ? " with other arguments" : "");
    }
}

ncclResult_t control_gather(const struct talk *talk, const void *mine, void *all, size_t size) {
    ncclComm_t comm = talk->comm;
    memcpy((char *)all + (size_t)comm->rank * size, mine, size);
    for (int i = 0; i < comm->count; i++)
        if (i != comm->rank) NCCL_RETURN_IF(control_send(talk, i, mine, size));
    for (int i = 0; i < comm->count; i++)
        if (i != comm->rank) NCCL_RETURN_IF(control_receive(talk, i, (char *)all + (size_t)i * size, size));
    return ncclSuccess;
}

void control_give_up(const struct talk *talk) {
    ncclComm_t comm = talk->comm;
    const struct note note = {.kind = NOTE_OVER, .about = talk->about};
    atomic_store(&comm->gave_up, true);
    for (int i = 0; i < comm->count; i++) {
        if (i == comm->rank) continue;
        ssize_t moved = wire_write(&comm->wires[i], LANE_CONTROL, &note, sizeof note);
        if (moved > 0 && moved < (ssize_t)sizeof note) wire_shut(&comm->wires[i], LANE_CONTROL);
    }
}
