/* How ranks that have the same id find each other: each meets the others by the thread of the id, and connects with each;
 * see rendezvous.h. */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rendezvous.h"

/* CUPOLA_NCCL_TIMEOUT, 0 when it is not set, and -1 when it is no number of seconds. */
static double given_seconds(void) {
    const char *text = getenv("CUPOLA_NCCL_TIMEOUT");
    char *end;
    if (!text || !*text) return 0;
    double seconds = strtod(text, &end);
    return !*end && seconds > 0 && seconds < 1e8 ? seconds : -1;
}

struct patience patience_from_environment(const _Atomic bool *stopped, double seconds) {
    double given = given_seconds();
    if (given > 0) seconds = given;
    return (struct patience){.end = seconds > 0 ? clock_now() + (uint64_t)(seconds * 1e9) : 0, .stopped = stopped};
}

static unsigned long long namespace_of(const char *name) {
    struct stat space;
    return stat(name, &space) ? 0 : (unsigned long long)space.st_ino;
}

/* What ranks have in common that can map each other's memory, reach each other's host sockets, and see whether the other
 * lives: the start of the system, and the namespaces of the network and of processes. Containers of a pod share the first
 * alone. NCCL_SHM_DISABLE=1 makes each process a host of its own, NCCL_HOSTID gives hosts names. */
static void describe_host(char *text) {
    char boot[40] = "";
    uint64_t name = UINT64_C(0xcbf29ce484222325); /* FNV-1a: names may be long */
    const char *given = getenv("NCCL_HOSTID"), *alone = getenv("NCCL_SHM_DISABLE");
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, boot, 36) < 0) boot[0] = 0;
        close(file);
    }
    boot[8] = 0; /* enough of it */
    for (; given && *given; given++) name = (name ^ (uint8_t)*given) * UINT64_C(0x100000001b3);
    bool is_alone = alone && atoi(alone) == 1;
    snprintf(text, HOST_SIZE, "%s/%llx/%llx/%lld/%llx", boot, namespace_of("/proc/self/ns/net"),
             namespace_of("/proc/self/ns/pid"), is_alone ? (long long)this_process()->number : 0,
             (unsigned long long)name);
}

struct setup {
    const struct id *id;
    int count;
    const struct member *self;
    struct member *members;
    struct wire *wires;
    const int *bells;
    const struct patience *patience;
    int thread; /* the connection with the thread that brings the ranks together; -1: none */
};

/* One byte that has descriptors with it. */
static bool send_files(int socket, const int *files, int count) {
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(4 * sizeof(int))] = {0};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room,
                             .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    memcpy(CMSG_DATA(head), files, (size_t)count * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

static bool receive_files(int socket, int *files, int count, const struct patience *patience) {
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(4 * sizeof(int))] = {0};
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (!nccl_await(socket, POLLIN, patience) || recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return false;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_type != SCM_RIGHTS) return false;
    int came = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int)), all[4];
    if (came > 4) return false;
    memcpy(all, CMSG_DATA(head), (size_t)came * sizeof(int));
    for (int i = 0; came != count && i < came; i++) close(all[i]);
    if (came == count) memcpy(files, all, (size_t)count * sizeof(int));
    return came == count;
}

static bool shares_host(const struct setup *setup, int rank) {
    return !memcmp(setup->self->host, setup->members[rank].host, HOST_SIZE);
}

static struct hello hello_of(const struct setup *setup, enum lane lane) {
    struct hello hello = {.count = setup->count, .lane = lane, .member = *setup->self};
    memcpy(hello.nonce, setup->id->nonce, NONCE_SIZE);
    return hello;
}

/* The first half: connect with a rank before this one. */
static bool reach(struct setup *setup, int rank) {
    struct wire *wire = &setup->wires[rank];
    if (!shares_host(setup, rank)) {
        for (int lane = 0; lane < LANES; lane++) {
            struct hello hello = hello_of(setup, (enum lane)lane);
            wire->sockets[lane] = nccl_connect_network(setup->members[rank].address, setup->patience);
            if (wire->sockets[lane] < 0 || !nccl_send(wire->sockets[lane], &hello, sizeof hello, setup->patience))
                return false;
        }
        return true;
    }
    struct hello hello = hello_of(setup, LANE_DATA);
    int memory = wire_memory_new();
    wire->sockets[0] = nccl_connect_host(setup->members[rank].name, setup->patience);
    bool fine = memory >= 0 && wire->sockets[0] >= 0 && wire_open_local(wire, memory, true) &&
                nccl_send(wire->sockets[0], &hello, sizeof hello, setup->patience) &&
                send_files(wire->sockets[0], (int[]){memory, setup->bells[0], setup->bells[1]}, 3);
    if (memory >= 0) close(memory);
    return fine;
}

/* Take a connection of a rank behind this one. False: it is not one of them; `local`: it came over the host's socket. */
static bool take(struct setup *setup, int file, bool local) {
    struct hello hello;
    struct patience soon = {.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000),
                            .stopped = setup->patience->stopped};
    if (!nccl_receive(file, &hello, sizeof hello, &soon) || memcmp(hello.nonce, setup->id->nonce, NONCE_SIZE))
        return false;
    int rank = hello.member.rank, lane = hello.lane;
    if (rank <= setup->self->rank || rank >= setup->count || lane < 0 || lane >= LANES) return false;
    struct wire *wire = &setup->wires[rank];
    if (local != shares_host(setup, rank) || wire->sockets[lane] >= 0) return false;
    if (local) {
        int files[3];
        if (!receive_files(file, files, 3, &soon)) return false;
        bool fine = wire_open_local(wire, files[0], false) && send_files(file, setup->bells, LANES);
        close(files[0]);
        memcpy(wire->bells, files + 1, sizeof wire->bells);
        if (!fine) {
            wire_close(wire); /* the rank may try again */
            return false;
        }
    } else {
        nccl_prepare_network(file);
    }
    wire->sockets[lane] = file;
    return true;
}

/* A rank of this host that has not connected, and never will; -1: there is none. */
static int ended_before(const struct setup *setup) {
    for (int rank = setup->self->rank + 1; rank < setup->count; rank++) {
        const struct process *process = &setup->members[rank].process;
        if (shares_host(setup, rank) && setup->wires[rank].sockets[0] < 0 && !is_this_process(process) &&
            !process_is_alive(process->number, process->began))
            return rank;
    }
    return -1;
}

/* What the thread says: whether all is well on all ranks. */
static ncclResult_t hear(struct setup *setup) {
    struct answer answer;
    if (nccl_receive(setup->thread, &answer, sizeof answer, setup->patience)) {
        answer.text[TEXT_SIZE - 1] = 0;
        if (!answer.status) return ncclSuccess;
        return nccl_fail(answer.status == ncclInvalidUsage ? ncclInvalidUsage : ncclRemoteError, "%s", answer.text);
    }
    const struct patience *patience = setup->patience;
    int lost = patience->watch ? watch_found(patience->watch) : -1;
    if (patience->stopped && atomic_load(patience->stopped))
        return nccl_fail(ncclInvalidUsage, "the communicator was aborted before all ranks had come");
    if (lost >= 0)
        return nccl_fail(ncclRemoteError,
                         "rank %d of the communicator of which this one is made has ended, or has left it", lost);
    if (patience_is_over(patience))
        return nccl_fail(ncclSystemError, "not all %d ranks have come in time (CUPOLA_NCCL_TIMEOUT)", setup->count);
    return nccl_fail(ncclRemoteError, "the process that made the unique id has ended, or it was used before");
}

static ncclResult_t accept_all(struct setup *setup, int network, int host) {
    int missing = 0;
    for (int rank = setup->self->rank + 1; rank < setup->count; rank++) missing += shares_host(setup, rank) ? 1 : LANES;
    while (missing) {
        struct pollfd files[] = {
            {.fd = network, .events = POLLIN}, {.fd = host, .events = POLLIN}, {.fd = setup->thread, .events = POLLIN}};
        if (patience_is_over(setup->patience))
            return nccl_fail(ncclSystemError, "not all ranks have connected with rank %d in time", setup->self->rank);
        int ready = poll(files, 3, POLL_MILLISECONDS);
        if (ready > 0 && files[2].revents) { /* one of them cannot */
            ncclResult_t status = hear(setup);
            return status ? status : nccl_fail(ncclInternalError, "rank %d has not connected yet", setup->self->rank);
        }
        if (ready <= 0) {
            int gone = ended_before(setup);
            if (gone >= 0)
                return nccl_fail(ncclRemoteError, "rank %d ended before it had connected with rank %d", gone,
                                 setup->self->rank);
            continue;
        }
        for (int i = 0; i < 2; i++) {
            int file = files[i].revents ? accept4(files[i].fd, NULL, NULL, SOCK_CLOEXEC) : -1;
            if (file < 0 && files[i].revents && (errno == EMFILE || errno == ENFILE))
                return nccl_fail(ncclSystemError, "rank %d cannot connect with the others: %s", setup->self->rank,
                                 strerror(errno));
            if (file < 0) continue;
            if (take(setup, file, i == 1)) missing--;
            else close(file);
        }
    }
    return ncclSuccess;
}

static ncclResult_t connect_all(struct setup *setup, int network, int host) {
    int own = setup->self->rank;
    for (int rank = 0; rank < own; rank++)
        if (!reach(setup, rank))
            return nccl_fail(ncclRemoteError, "rank %d cannot connect with rank %d: %s", own, rank, strerror(errno));
    NCCL_RETURN_IF(accept_all(setup, network, host));
    for (int rank = 0; rank < own; rank++) {
        struct wire *wire = &setup->wires[rank];
        if (wire->is_local && !receive_files(wire->sockets[0], wire->bells, LANES, setup->patience))
            return nccl_fail(ncclRemoteError, "rank %d ended before rank %d had connected with it", rank, own);
    }
    return ncclSuccess;
}

/* Tell the thread how this rank can be reached, and be told the same of all. */
static ncclResult_t introduce(struct setup *setup) {
    struct hello hello = hello_of(setup, LANE_CONTROL);
    size_t size = (size_t)setup->count * sizeof *setup->members;
    setup->thread = nccl_connect_network(setup->id->address, setup->patience);
    if (setup->thread < 0)
        return nccl_fail(ncclRemoteError, "the process that made the unique id cannot be reached: %s", strerror(errno));
    nccl_send(setup->thread, &hello, sizeof hello, setup->patience); /* if it does not go, no answer comes */
    NCCL_RETURN_IF(hear(setup));
    if (nccl_receive(setup->thread, setup->members, size, setup->patience)) return ncclSuccess;
    return nccl_fail(ncclRemoteError, "the process that made the unique id has ended");
}

/* Tell it how the connecting went, and hear whether all others have managed, too. */
static ncclResult_t agree(struct setup *setup, ncclResult_t status) {
    struct answer answer = {.status = (int32_t)status};
    if (status) snprintf(answer.text, sizeof answer.text, "%s", nccl_last_text());
    nccl_send(setup->thread, &answer, sizeof answer, setup->patience);
    return status ? status : hear(setup);
}

ncclResult_t rendezvous(const ncclUniqueId *unique, int count, struct member *self, const int *bells,
                        struct member *members, struct wire *wires, const struct patience *patience) {
    struct id id;
    memcpy(&id, unique, sizeof id);
    struct setup setup = {&id, count, self, members, wires, bells, patience, -1};
    if (given_seconds() < 0)
        return nccl_fail(ncclInvalidArgument, "CUPOLA_NCCL_TIMEOUT is '%s': it must be a number of seconds",
                         getenv("CUPOLA_NCCL_TIMEOUT"));
    describe_host(self->host);
    int network = nccl_listen_network(self->address), host = nccl_listen_host(self->name);
    ncclResult_t status = network < 0 || host < 0
                              ? nccl_fail(ncclSystemError, "this host has no socket to listen on: %s", strerror(errno))
                              : introduce(&setup);
    for (int i = 0; !status && i < count; i++)
        if (members[i].rank != i) status = nccl_fail(ncclInternalError, "the list of ranks is damaged");
    if (status && setup.thread < 0) meeting_give_up(&id, nccl_last_text());
    if (!status) status = agree(&setup, connect_all(&setup, network, host));
    const int files[] = {network, host, setup.thread};
    for (int i = 0; i < 3; i++)
        if (files[i] >= 0) close(files[i]);
    return status;
}
