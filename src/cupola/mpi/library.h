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

enum mpi_kind {
    MPI_KIND_SEND,
    MPI_KIND_RECV,
    MPI_KIND_SENDRECV,
    MPI_KIND_BCAST,
    MPI_KIND_ALLREDUCE,
    MPI_KIND_REDUCE,
    MPI_KINDS
};

/* Room for the largest MPI_Status, and more. */
struct mpi_status {
    int64_t room[16];
};

struct mpi_library {
    bool has_int_handles;
    void *calls[MPI_KINDS], *get_count;
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
static inline bool mpi_open(struct mpi_library *m, const char *file, bool has_int_handles) {
    static const char *const names[MPI_KINDS] = {"MPI_Send",  "MPI_Recv",      "MPI_Sendrecv",
                                                 "MPI_Bcast", "MPI_Allreduce", "MPI_Reduce"};
    void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    bool found = library != NULL;
    m->has_int_handles = has_int_handles;
    for (int i = 0; found && i <= MPI_KINDS; i++) {
        const char *name = i < MPI_KINDS ? names[i] : "MPI_Get_count";
        void *call = dlsym(RTLD_DEFAULT, name);
        if (!call) call = dlsym(library, name);
        if (i < MPI_KINDS) m->calls[i] = call;
        else m->get_count = call;
        found = call != NULL;
    }
    return found;
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

/* How many bytes have come, by the status of a message; below 0 where MPI does not know. `byte` is MPI_BYTE. */
static inline int64_t mpi_received(const struct mpi_library *m, const void *status, uintptr_t byte) {
    int count = -1;
    if (m->has_int_handles) ((int (*)(const void *, int, int *))m->get_count)(status, (int)byte, &count);
    else ((int (*)(const void *, void *, int *))m->get_count)(status, (void *)byte, &count);
    return count;
}

#endif
