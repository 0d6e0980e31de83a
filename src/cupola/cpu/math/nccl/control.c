/* The control lane: what the calls of ranks agree on. It carries few bytes, and a thread of the program waits for them. */
#include "nccl.h"

enum { ALIVE_NANOSECONDS = 500000000 };

struct control { /* what waits on the lane */
    ncclComm_t comm;
    struct patience patience;
    uint64_t asked; /* when it was last asked whether the process lives */
};

static struct control control_begin(ncclComm_t comm, const _Atomic bool *stopped) {
    return (struct control){
        .comm = comm, .patience = patience_from_environment(stopped, NCCL_INIT_SECONDS), .asked = clock_now()};
}

/* A process that has ended may have left its sockets to a child. */
static void ask_for(ncclComm_t comm, int rank, uint64_t *asked) {
    const struct member *member = &comm->members[rank];
    if (!comm->wires[rank].is_local || clock_now() - *asked < ALIVE_NANOSECONDS) return;
    *asked = clock_now();
    if (!process_is_alive(member->process.number, member->process.began) && !is_this_process(&member->process))
        atomic_store(&comm->wires[rank].gone, true);
}

/* Some bytes went through, or none, or none ever will. */
static ncclResult_t control_after(struct control *control, int rank, ssize_t moved, bool reads) {
    ncclComm_t comm = control->comm;
    if (moved > 0) return ncclSuccess;
    if (moved < 0) return nccl_fail(ncclRemoteError, "rank %d has ended, or has left the communicator", rank);
    if (patience_is_over(&control->patience))
        return atomic_load(control->patience.stopped)
                   ? nccl_fail(ncclInvalidUsage, "the communicator was aborted meanwhile")
                   : nccl_fail(ncclSystemError, "rank %d makes no such call (CUPOLA_NCCL_TIMEOUT)", rank);
    wire_sleep(&comm->wires[rank], 1, LANE_CONTROL, &reads, &(bool){!reads}, comm->bells[LANE_CONTROL]);
    ask_for(comm, rank, &control->asked);
    return ncclSuccess;
}

ncclResult_t control_send(ncclComm_t comm, int rank, const void *bytes, size_t size, const _Atomic bool *stopped) {
    struct control control = control_begin(comm, stopped);
    for (size_t done = 0; done < size;) {
        ssize_t moved = wire_write(&comm->wires[rank], LANE_CONTROL, (const char *)bytes + done, size - done);
        NCCL_RETURN_IF(control_after(&control, rank, moved, false));
        if (moved > 0) done += (size_t)moved;
    }
    return ncclSuccess;
}

ncclResult_t control_receive(ncclComm_t comm, int rank, void *bytes, size_t size, const _Atomic bool *stopped) {
    struct control control = control_begin(comm, stopped);
    for (size_t done = 0; done < size;) {
        ssize_t moved = wire_read(&comm->wires[rank], LANE_CONTROL, (char *)bytes + done, size - done);
        NCCL_RETURN_IF(control_after(&control, rank, moved, true));
        if (moved > 0) done += (size_t)moved;
    }
    return ncclSuccess;
}

ncclResult_t control_gather(ncclComm_t comm, const void *mine, void *all, size_t size, const _Atomic bool *stopped) {
    memcpy((char *)all + (size_t)comm->rank * size, mine, size);
    for (int i = 0; i < comm->count; i++)
        if (i != comm->rank) NCCL_RETURN_IF(control_send(comm, i, mine, size, stopped));
    for (int i = 0; i < comm->count; i++)
        if (i != comm->rank) NCCL_RETURN_IF(control_receive(comm, i, (char *)all + (size_t)i * size, size, stopped));
    return ncclSuccess;
}
