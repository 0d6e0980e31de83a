/* The functions of MPI that usual messages need, in whatever library mpi4py has loaded.
 *
 * Handles (communicators, types, operations) are ints in MPICH and its relatives, and pointers in Open MPI and in the ABI of
 * MPI 5. No header of MPI is needed: their prototypes are those of the standard. */
#ifndef CUPOLA_MPI_LIBRARY_H
#define CUPOLA_MPI_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* What a usual message does not run lies apart from what it runs: between two messages the driver has used the caches, and
 * each line of code that is fetched again takes as long as ten instructions. */
#define MPI_RARE __attribute__((cold, noinline, unused))

enum mpi_kind {
    MPI_KIND_SEND,
    MPI_KIND_RECV,
    MPI_KIND_SENDRECV,
    MPI_KIND_BCAST,
    MPI_KIND_ALLREDUCE,
    MPI_KIND_REDUCE,
    MPI_KINDS
};

enum { MPI_NAMES = 2 * MPI_KINDS + 3 };

/* Room for the largest MPI_Status, and more. */
struct mpi_status {
    int64_t room[16];
};

struct mpi_library {
    bool has_int_handles;
    int count_at;                              /* the int of a status that counts the bytes, from 1; 0: not known */
    void *calls[MPI_KINDS], *begin[MPI_KINDS]; /* `begin`: those that do not wait */
    void *get_count, *test, *set_elements;
    uintptr_t byte; /* MPI_BYTE */
};

struct mpi_message {
    const void *out;
    void *in;
    int out_count, in_count, to, to_tag, from, from_tag; /* `from` is the root of a collective operation, too */
    uintptr_t out_type, in_type, op, comm;
    void *status;
};

/* Find them behind the loaded file, by the names in order of mpi_kind; what is loaded before all, as tools are, comes first, as
 * for the file itself. */
MPI_RARE static bool mpi_open(struct mpi_library *m, const char *file, bool has_int_handles) {
    static const char *const names[MPI_NAMES] = {
        "MPI_Send",       "MPI_Recv",    "MPI_Sendrecv",  "MPI_Bcast", "MPI_Allreduce",
        "MPI_Reduce",     "MPI_Isend",   "MPI_Irecv",     "MPI_Irecv", /* and Isend */ "MPI_Ibcast",
        "MPI_Iallreduce", "MPI_Ireduce", "MPI_Get_count", "MPI_Test",  "MPI_Status_set_elements"};
    void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD), *calls[MPI_NAMES];
    bool found = library != NULL;
    for (int i = 0; found && i < MPI_NAMES; i++) {
        calls[i] = dlsym(RTLD_DEFAULT, names[i]);
        if (!calls[i]) calls[i] = dlsym(library, names[i]);
        found = calls[i] != NULL;
    }
    if (!found) return false;
    m->has_int_handles = has_int_handles;
    memcpy(m->calls, calls, sizeof m->calls);
    memcpy(m->begin, calls + MPI_KINDS, sizeof m->begin);
    m->get_count = calls[2 * MPI_KINDS];
    m->test = calls[2 * MPI_KINDS + 1];
    m->set_elements = calls[2 * MPI_KINDS + 2];
    return true;
}

/* The handle that lies in an object of mpi4py. */
static inline uintptr_t mpi_handle(const struct mpi_library *m, uintptr_t place) {
    if (!m->has_int_handles) return *(const uintptr_t *)place;
    return (uintptr_t)(unsigned)*(const int *)place;
}

#define CALL(index, ...) ((int (*)(__VA_ARGS__))m->calls[index])
#define CARRY(name, handle)                                                                                              \
    static inline int name(const struct mpi_library *m, int kind, const struct mpi_message *x) {                         \
        handle out_type = (handle)x->out_type, in_type = (handle)x->in_type, comm = (handle)x->comm, op = (handle)x->op; \
        switch (kind) {                                                                                                  \
            case MPI_KIND_SEND:                                                                                          \
                return CALL(MPI_KIND_SEND, const void *, int, handle, int, int, handle)(x->out, x->out_count, out_type,  \
                                                                                        x->to, x->to_tag, comm);         \
            case MPI_KIND_RECV:                                                                                          \
                return CALL(MPI_KIND_RECV, void *, int, handle, int, int, handle, void *)(                               \
                    x->in, x->in_count, in_type, x->from, x->from_tag, comm, x->status);                                 \
            case MPI_KIND_SENDRECV:                                                                                      \
                return CALL(MPI_KIND_SENDRECV, const void *, int, handle, int, int, void *, int, handle, int, int,       \
                            handle, void *)(x->out, x->out_count, out_type, x->to, x->to_tag, x->in, x->in_count,        \
                                            in_type, x->from, x->from_tag, comm, x->status);                             \
            case MPI_KIND_BCAST:                                                                                         \
                return CALL(MPI_KIND_BCAST, void *, int, handle, int, handle)(x->in, x->in_count, in_type, x->from,      \
                                                                              comm);                                     \
            case MPI_KIND_ALLREDUCE:                                                                                     \
                return CALL(MPI_KIND_ALLREDUCE, const void *, void *, int, handle, handle, handle)(                      \
                    x->out, x->in, x->in_count, in_type, op, comm);                                                      \
            default:                                                                                                     \
                return CALL(MPI_KIND_REDUCE, const void *, void *, int, handle, handle, int, handle)(                    \
                    x->out, x->in, x->in_count, in_type, op, x->from, comm);                                             \
        }                                                                                                                \
    }
typedef void *mpi_pointer;
CARRY(mpi_carry_ints, int)
CARRY(mpi_carry_pointers, mpi_pointer)
#undef CARRY
#undef CALL

static inline int mpi_carry(const struct mpi_library *m, int kind, const struct mpi_message *x) {
    return m->has_int_handles ? mpi_carry_ints(m, kind, x) : mpi_carry_pointers(m, kind, x);
}

/* The same without waiting: a request each, of which the last one receives, if any does; `count` says how many have begun. */
#define CALL(index, ...) ((int (*)(__VA_ARGS__, void *))m->begin[index])
#define BEGIN(name, handle)                                                                                              \
    static inline int name(const struct mpi_library *m, int kind, const struct mpi_message *x, uintptr_t *requests,      \
                           int *count) {                                                                                 \
        handle out_type = (handle)x->out_type, in_type = (handle)x->in_type, comm = (handle)x->comm, op = (handle)x->op; \
        int status = 0;                                                                                                  \
        if (kind == MPI_KIND_SEND || kind == MPI_KIND_SENDRECV) {                                                        \
            status = CALL(MPI_KIND_SEND, const void *, int, handle, int, int, handle)(                                   \
                x->out, x->out_count, out_type, x->to, x->to_tag, comm, requests);                                       \
            *count = !status;                                                                                            \
        }                                                                                                                \
        if (status || kind == MPI_KIND_SEND) return status;                                                              \
        uintptr_t *last = requests + *count;                                                                             \
        if (kind == MPI_KIND_RECV || kind == MPI_KIND_SENDRECV)                                                          \
            status = CALL(MPI_KIND_RECV, void *, int, handle, int, int, handle)(x->in, x->in_count, in_type, x->from,    \
                                                                                x->from_tag, comm, last);                \
        else if (kind == MPI_KIND_BCAST)                                                                                 \
            status = CALL(MPI_KIND_BCAST, void *, int, handle, int, handle)(x->in, x->in_count, in_type, x->from, comm,  \
                                                                            last);                                       \
        else if (kind == MPI_KIND_ALLREDUCE)                                                                             \
            status = CALL(MPI_KIND_ALLREDUCE, const void *, void *, int, handle, handle, handle)(                        \
                x->out, x->in, x->in_count, in_type, op, comm, last);                                                    \
        else                                                                                                             \
            status = CALL(MPI_KIND_REDUCE, const void *, void *, int, handle, handle, int, handle)(                      \
                x->out, x->in, x->in_count, in_type, op, x->from, comm, last);                                           \
        *count += !status;                                                                                               \
        return status;                                                                                                   \
    }
BEGIN(mpi_begin_ints, int)
BEGIN(mpi_begin_pointers, mpi_pointer)
#undef BEGIN
#undef CALL

MPI_RARE static int mpi_begin(const struct mpi_library *m, int kind, const struct mpi_message *x, uintptr_t *requests,
                              int *count) {
    *count = 0;
    return m->has_int_handles ? mpi_begin_ints(m, kind, x, requests, count)
                              : mpi_begin_pointers(m, kind, x, requests, count);
}

static inline int64_t mpi_now(void) { /* ns */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Wait for requests from the first on, for so many ns. *done counts those that are over; the status is that of the last one. */
MPI_RARE static int mpi_wait(const struct mpi_library *m, uintptr_t *requests, int count, int *done, int64_t ns,
                             int64_t spin, void *status) {
    int64_t begin = mpi_now();
    for (;;) {
        while (*done < count) {
            int flag = 0;
            int failed = ((int (*)(void *, int *, void *))m->test)(&requests[*done], &flag, status);
            if (failed) return failed;
            if (!flag) break;
            ++*done;
        }
        int64_t waited = mpi_now() - begin;
        if (*done == count || waited > ns) return 0;
        if (waited > spin) nanosleep(&(struct timespec){0, 50000}, NULL);
    }
}

MPI_RARE static int64_t mpi_count_bytes(const struct mpi_library *m, const void *status) {
    int count = -1;
    if (m->has_int_handles) ((int (*)(const void *, int, int *))m->get_count)(status, (int)m->byte, &count);
    else ((int (*)(const void *, void *, int *))m->get_count)(status, (void *)m->byte, &count);
    return count;
}

/* How many bytes have come, of `most`, by the status of a message; below 0 where MPI does not know. */
static inline int64_t mpi_received(const struct mpi_library *m, const void *status, int64_t most) {
    int32_t count;
    if (!m->count_at || most > INT32_MAX) return mpi_count_bytes(m, status);
    memcpy(&count, (const int32_t *)status + m->count_at - 1, sizeof count);
    return count;
}

/* Find out where a status has the number of bytes, below 2^31 of them, as the functions of MPI take longer to say. Two that
 * differ only in that tell; if anything else differs, the place stays unknown. `byte` is MPI_BYTE. */
MPI_RARE static void mpi_find_count(struct mpi_library *m, uintptr_t byte) {
    enum { WORDS = sizeof(struct mpi_status) / sizeof(int32_t) };
    static const int counts[2] = {0x12345678, 0x2468ace1};
    _Alignas(struct mpi_status) int32_t seen[2][WORDS] = {{0}};
    m->byte = byte;
    m->count_at = 0;
    for (int i = 0; i < 2; i++) {
        int failed = m->has_int_handles
                         ? ((int (*)(void *, int, int))m->set_elements)(seen[i], (int)byte, counts[i])
                         : ((int (*)(void *, void *, int))m->set_elements)(seen[i], (void *)byte, counts[i]);
        if (failed) return;
    }
    for (int word = 0; word < WORDS; word++) {
        if (seen[0][word] == seen[1][word]) continue;
        if (m->count_at || seen[0][word] != counts[0] || seen[1][word] != counts[1]) {
            m->count_at = 0;
            return;
        }
        m->count_at = word + 1;
    }
}

#endif
