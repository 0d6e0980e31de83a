/* Halo exchanges and all-reduces through NCCL, in C: what those by cupola's bindings and streams are measured against.
 *
 * Built at run time as a library, so that both sides have the same processes and take turns. The communicator, the stream
 * and all memory are C's own. */
#include <cupola/driver.h>
#include <cupola/nccl.h>

#include <string.h>

#include "side.h"

static struct {
    ncclComm_t comm;
    int right, left;
    CUstream stream;
    CUdeviceptr out, in;
} own;

DRIVER(sync, "cuStreamSynchronize", CUstream)
DRIVER(stream_create, "cuStreamCreate", CUstream *, unsigned)
DRIVER(allocate, "cuMemAlloc_v2", CUdeviceptr *, size_t)
DRIVER(set_bytes, "cuMemsetD8_v2", CUdeviceptr, unsigned char, size_t)
#define NCCL(name, symbol, ...) ENTRY(ncclResult_t, name, symbol, __VA_ARGS__)
NCCL(comm_init, "ncclCommInitRank", ncclComm_t *, int, ncclUniqueId, int)
NCCL(group_start, "ncclGroupStart", void)
NCCL(group_end, "ncclGroupEnd", void)
NCCL(send_bytes, "ncclSend", const void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream)
NCCL(receive_bytes, "ncclRecv", void *, size_t, ncclDataType_t, int, ncclComm_t, CUstream)
NCCL(reduce_all, "ncclAllReduce", const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, CUstream)

void side_open(const char *driver, const char *nccl, size_t most, const char *identity, int rank, int size) {
    void *library = dlopen(driver, RTLD_NOW);
    find_sync(library), find_stream_create(library), find_allocate(library), find_set_bytes(library);
    library = dlopen(nccl, RTLD_NOW);
    find_comm_init(library), find_group_start(library), find_group_end(library), find_send_bytes(library);
    find_receive_bytes(library), find_reduce_all(library);
    own.right = (rank + 1) % size;
    own.left = (rank + size - 1) % size;
    TRY(stream_create(&own.stream, 1 /* not blocking */));
    TRY(allocate(&own.out, most));
    TRY(allocate(&own.in, 2 * most));
    TRY(set_bytes(own.out, 0, most));
    ncclUniqueId id;
    memcpy(&id, identity, sizeof id);
    TRY(comm_init(&own.comm, size, id, rank));
}

static void exchange(size_t size) {
    void *out = (void *)own.out, *in = (void *)own.in, *behind = (char *)in + size;
    TRY(group_start());
    TRY(send_bytes(out, size, ncclInt8, own.right, own.comm, own.stream));
    TRY(receive_bytes(in, size, ncclInt8, own.left, own.comm, own.stream));
    TRY(send_bytes(out, size, ncclInt8, own.left, own.comm, own.stream));
    TRY(receive_bytes(behind, size, ncclInt8, own.right, own.comm, own.stream));
    TRY(group_end());
}

static void add(size_t size) {
    TRY(reduce_all((void *)own.out, (void *)own.in, size / 8, ncclFloat64, ncclSum, own.comm, own.stream));
}

/* All ranks begin together: each waits for the first, which waits for all. */
static double timed(void (*operation)(size_t), int rounds, size_t size) {
    add(8);
    TRY(sync(own.stream));
    double start = now();
    for (int i = 0; i < rounds; i++) operation(size);
    TRY(sync(own.stream));
    return (now() - start) / rounds;
}

double side_halo(int rounds, size_t size) { return timed(exchange, rounds, size); }
double side_all_reduce(int rounds, size_t size) { return timed(add, rounds, size); }
