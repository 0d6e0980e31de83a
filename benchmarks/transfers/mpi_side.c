/* Halo exchanges and all-reduces of device memory through MPI, in C: what those of cupola.mpi are measured against.
 *
 * Built at run time as a library, so that both sides have the same processes and take turns. The communicator, the stream
 * and all memory are C's own. A library of MPI that takes no device memory gets pinned memory, as in cupola. */
#include <cupola/driver.h>

#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>

#include "side.h"

static struct {
    MPI_Comm comm;
    int right, left;
    bool is_aware;
    CUstream stream;
    CUdeviceptr out, in;
    void *staged_out, *staged_in;
} own;

DRIVER(to_host, "cuMemcpyDtoHAsync_v2", void *, CUdeviceptr, size_t, CUstream)
DRIVER(to_device, "cuMemcpyHtoDAsync_v2", CUdeviceptr, const void *, size_t, CUstream)
DRIVER(sync, "cuStreamSynchronize", CUstream)
DRIVER(stream_create, "cuStreamCreate", CUstream *, unsigned)
DRIVER(allocate, "cuMemAlloc_v2", CUdeviceptr *, size_t)
DRIVER(allocate_host, "cuMemHostAlloc", void **, size_t, unsigned)
DRIVER(set_bytes, "cuMemsetD8_v2", CUdeviceptr, unsigned char, size_t)

void side_open(const char *driver, size_t most, int is_aware) {
    void *library = dlopen(driver, RTLD_NOW);
    int rank, size;
    find_to_host(library), find_to_device(library), find_sync(library), find_stream_create(library);
    find_allocate(library), find_allocate_host(library), find_set_bytes(library);
    TRY(MPI_Comm_dup(MPI_COMM_WORLD, &own.comm));
    TRY(MPI_Comm_rank(own.comm, &rank));
    TRY(MPI_Comm_size(own.comm, &size));
    own.right = (rank + 1) % size;
    own.left = (rank + size - 1) % size;
    own.is_aware = is_aware;
    TRY(stream_create(&own.stream, 1 /* not blocking */));
    TRY(allocate(&own.out, most));
    TRY(allocate(&own.in, most));
    TRY(allocate_host(&own.staged_out, most, 0));
    TRY(allocate_host(&own.staged_in, most, 0));
    TRY(set_bytes(own.out, 0, most));
    TRY(set_bytes(own.in, 0, most));
}

/* What MPI reads, and where it writes. */
static void *begin(size_t size) {
    if (!own.is_aware) TRY(to_host(own.staged_out, own.out, size, own.stream));
    TRY(sync(own.stream));
    return own.is_aware ? (void *)own.out : own.staged_out;
}

static void *place(void) { return own.is_aware ? (void *)own.in : own.staged_in; }

static void end(size_t size) {
    if (!own.is_aware) TRY(to_device(own.in, own.staged_in, size, own.stream));
}

static void shift(size_t size, int to, int from) {
    void *out = begin(size);
    TRY(MPI_Sendrecv(out, (int)size, MPI_BYTE, to, 0, place(), (int)size, MPI_BYTE, from, 0, own.comm,
                     MPI_STATUS_IGNORE));
    end(size);
}

double side_halo(int rounds, size_t size) {
    TRY(MPI_Barrier(own.comm));
    double start = now();
    for (int i = 0; i < rounds; i++) {
        shift(size, own.right, own.left);
        shift(size, own.left, own.right);
    }
    TRY(sync(own.stream));
    return (now() - start) / rounds;
}

double side_all_reduce(int rounds, size_t size) {
    TRY(MPI_Barrier(own.comm));
    double start = now();
    for (int i = 0; i < rounds; i++) {
        void *out = begin(size);
        TRY(MPI_Allreduce(out, place(), (int)(size / sizeof(double)), MPI_DOUBLE, MPI_SUM, own.comm));
        end(size);
    }
    TRY(sync(own.stream));
    return (now() - start) / rounds;
}
