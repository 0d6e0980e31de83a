/* How ranks that have the same id find each other.
 *
 * An id has the address of a socket, on which a thread of the process that made the id waits for all ranks, and a number
 * that only its holders know. Each rank tells that thread how it can be reached and gets the list of all. Then each
 * connects with the ranks before it: over a socket of the host, on which descriptors of shared memory are passed, or, to
 * other hosts, with one TCP connection for each lane. At the end each tells the thread how that went. Where one has failed,
 * all fail at once, instead of waiting for it. */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/thread.h"
#include "nccl.h"

enum {
    POLL_MILLISECONDS = 100,
    HELLO_SECONDS = 10,
    NONCE_SIZE = 16,
    MOST_REFUSED = 50, /* polls */
    MOST_SILENT = 64,  /* connections that have said nothing yet */
};

struct id { /* the bytes of an ncclUniqueId */
    char magic[8];
    uint8_t nonce[NONCE_SIZE];
    uint8_t address[ADDRESS_SIZE];
};
static const char magic[8] = {'c', 'u', 'p', 'o', 'l', 'a', 'n', '3'};

struct hello { /* the first that a rank says, to the thread and to other ranks */
    uint8_t nonce[NONCE_SIZE];
    int32_t count, lane;
    struct member member;
};

struct answer { /* of the thread, and of a rank that has connected with the others, or cannot */
    int32_t status;
    char text[TEXT_SIZE];
};

/* ---- patience ---------------------------------------------------------------------------------------------------- */

bool patience_is_over(const struct patience *patience) {
    return (patience->stopped && atomic_load(patience->stopped)) || (patience->end && clock_now() > patience->end) ||
           (patience->watch && watch_found(patience->watch) >= 0);
}

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

/* Wait until the socket can be read, or written. */
static bool await(int file, short events, const struct patience *patience) {
    struct pollfd one = {.fd = file, .events = events};
    while (poll(&one, 1, POLL_MILLISECONDS) <= 0)
        if (patience_is_over(patience)) return false;
    return true;
}

static bool send_all(int file, const void *bytes, size_t size, const struct patience *patience) {
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(file, (const char *)bytes + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) done += (size_t)sent;
        else if ((errno != EAGAIN && errno != EINTR) || !await(file, POLLOUT, patience)) return false;
    }
    return true;
}

static bool receive_all(int file, void *bytes, size_t size, const struct patience *patience) {
    for (size_t done = 0; done < size;) {
        ssize_t came = recv(file, (char *)bytes + done, size - done, MSG_DONTWAIT);
        if (came > 0) done += (size_t)came;
        else if (!came || (errno != EAGAIN && errno != EINTR) || !await(file, POLLIN, patience)) return false;
    }
    return true;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static socklen_t address_length(const uint8_t *bytes) {
    sa_family_t family;
    memcpy(&family, bytes + offsetof(struct sockaddr, sa_family), sizeof family);
    return family == AF_INET ? sizeof(struct sockaddr_in) : family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

/* NCCL_SOCKET_IFNAME is a list of beginnings of names; with ^ in front, of those that are not meant, and with =, of whole
 * names. */
static bool interface_fits(const char *name) {
    const char *wanted = getenv("NCCL_SOCKET_IFNAME");
    if (!wanted || !*wanted) return true;
    bool excludes = *wanted == '^', whole = wanted[excludes] == '=', found = false;
    for (const char *at = wanted + excludes + whole; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ",");
        found |= length && !strncmp(name, at, length) && (!whole || !name[length]);
    }
    return found != excludes;
}

/* An address of this host that others reach, if there is one: of an interface that is up, and not of the host alone. */
static bool own_address(uint8_t *bytes) {
    struct ifaddrs *all = NULL;
    int best = 0;
    if (getifaddrs(&all)) return false;
    for (struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || !interface_fits(one->ifa_name)) continue;
        sa_family_t family = one->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        int rank = (one->ifa_flags & IFF_LOOPBACK ? 0 : 2) + (family == AF_INET ? 2 : 1);
        if (rank <= best) continue;
        best = rank;
        memset(bytes, 0, ADDRESS_SIZE);
        memcpy(bytes, one->ifa_addr, family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    }
    freeifaddrs(all);
    return best > 0;
}

/* A socket that listens on an address of this host, which is written to `bytes`; -1: none. */
static int listen_network(uint8_t *bytes) {
    if (!own_address(bytes)) return -1;
    struct sockaddr_in6 address;
    memcpy(&address, bytes, ADDRESS_SIZE);
    if (address.sin6_family == AF_INET) ((struct sockaddr_in *)&address)->sin_port = 0;
    else address.sin6_port = 0;
    socklen_t length = address_length(bytes);
    int file = socket(address.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file >= 0 && !bind(file, (struct sockaddr *)&address, length) && !listen(file, SOMAXCONN) &&
        !getsockname(file, (struct sockaddr *)&address, &length)) {
        memcpy(bytes, &address, ADDRESS_SIZE);
        return file;
    }
    if (file >= 0) close(file);
    return -1;
}

/* Addresses without a file: they are gone with the last process that has them. */
static socklen_t host_address(const uint8_t *name, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "cupola-nccl-");
    for (int i = 0; i < NONCE_SIZE; i++)
        length +=
            snprintf(address->sun_path + 1 + length, sizeof address->sun_path - 1 - (size_t)length, "%02x", name[i]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int listen_host(uint8_t *name) {
    struct sockaddr_un address;
    random_bytes(name, NONCE_SIZE);
    socklen_t length = host_address(name, &address);
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file >= 0 && !bind(file, (struct sockaddr *)&address, length) && !listen(file, SOMAXCONN)) return file;
    if (file >= 0) close(file);
    return -1;
}

/* Few bytes go at once. A host that is gone, which says nothing any more, is noticed in half a minute. */
static void prepare_network(int file) {
    const int one = 1, idle = 15, interval = 5, count = 3, milliseconds = 30000;
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(file, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

static int connect_to(const void *address, socklen_t length, const struct patience *patience) {
    int family = ((const struct sockaddr *)address)->sa_family, error = 0;
    socklen_t size = sizeof error;
    int file = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0) return -1;
    if (family != AF_UNIX) prepare_network(file);
    int connected = connect(file, address, length);
    while (connected && errno == EAGAIN && !patience_is_over(patience)) { /* a host's socket has too many who wait */
        usleep(10000);
        connected = connect(file, address, length);
    }
    if (connected && errno == EINPROGRESS && await(file, POLLOUT, patience))
        connected = getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) || error;
    if (!connected) return file;
    if (error) errno = error;
    error = errno;
    close(file);
    errno = error;
    return -1;
}

static int connect_network(const uint8_t *bytes, const struct patience *patience) {
    struct sockaddr_in6 address;
    memcpy(&address, bytes, ADDRESS_SIZE);
    socklen_t length = address_length(bytes);
    return length ? connect_to(&address, length, patience) : -1;
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

/* ---- the thread that brings the ranks together -------------------------------------------------------------------- */

struct meeting {
    struct meeting *next; /* of this process */
    _Atomic bool given_up;
    char why[TEXT_SIZE];
    int listener;
    uint8_t nonce[NONCE_SIZE], address[ADDRESS_SIZE];
    int count, present; /* count: 0 until the first rank has said it */
    int *files;
    struct member *members;
    int silent_count; /* who has connected and said nothing yet, the oldest first; each until its time is over */
    struct {
        int file;
        uint64_t until;
    } silent[MOST_SILENT];
};

/* The meetings of this process. A rank of it that cannot even come says so here, since the others would wait for it. */
static pthread_mutex_t meetings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct meeting *meetings;

static void list_meeting(struct meeting *meeting) {
    pthread_mutex_lock(&meetings_lock);
    meeting->next = meetings;
    meetings = meeting;
    pthread_mutex_unlock(&meetings_lock);
}

static void unlist_meeting(struct meeting *meeting) {
    pthread_mutex_lock(&meetings_lock);
    struct meeting **place = &meetings;
    while (*place && *place != meeting) place = &(*place)->next;
    if (*place) *place = meeting->next;
    pthread_mutex_unlock(&meetings_lock);
}

static void give_up(const struct id *id, const char *why) {
    pthread_mutex_lock(&meetings_lock);
    for (struct meeting *meeting = meetings; meeting; meeting = meeting->next)
        if (!memcmp(meeting->nonce, id->nonce, NONCE_SIZE) &&
            !memcmp(meeting->address, id->address, sizeof id->address) && !atomic_load(&meeting->given_up)) {
            snprintf(meeting->why, sizeof meeting->why, "%s", why);
            atomic_store(&meeting->given_up, true);
        }
    pthread_mutex_unlock(&meetings_lock);
}

static void meeting_free(struct meeting *meeting) {
    unlist_meeting(meeting);
    for (int i = 0; i < meeting->silent_count; i++) close(meeting->silent[i].file);
    for (int i = 0; i < meeting->count; i++)
        if (meeting->files[i] >= 0) close(meeting->files[i]);
    close(meeting->listener);
    free(meeting->files);
    free(meeting->members);
    free(meeting);
}

/* What is wrong with the meeting, to all who have come. */
static void refuse(struct meeting *meeting, int file, ncclResult_t status, const char *text) {
    struct answer answer = {.status = (int32_t)status};
    struct patience patience = {.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000)};
    snprintf(answer.text, sizeof answer.text, "%s", text);
    if (file >= 0) send_all(file, &answer, sizeof answer, &patience);
    for (int i = 0; i < meeting->count; i++)
        if (meeting->files[i] >= 0) send_all(meeting->files[i], &answer, sizeof answer, &patience);
}

/* A rank, or anybody else, has connected. False: the meeting is over. */
static bool admit(struct meeting *meeting, int file) {
    struct hello hello;
    struct patience patience = {.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000)};
    char text[TEXT_SIZE] = "";
    int rank = -1;
    bool known = receive_all(file, &hello, sizeof hello, &patience) && !memcmp(hello.nonce, meeting->nonce, NONCE_SIZE);
    if (known) {
        rank = hello.member.rank;
        if (!meeting->count && hello.count > 0 && hello.count <= MOST_RANKS) {
            meeting->files = malloc((size_t)hello.count * sizeof *meeting->files);
            meeting->members = calloc((size_t)hello.count, sizeof *meeting->members);
            if (!meeting->files || !meeting->members) {
                close(file);
                return false;
            }
            meeting->count = hello.count;
            for (int i = 0; i < hello.count; i++) meeting->files[i] = -1;
        }
        if (hello.count != meeting->count)
            snprintf(text, sizeof text, "Bootstrap Root : mismatch in rank count from procs %d : %d", meeting->count,
                     hello.count);
        else if (rank < 0 || rank >= meeting->count) known = false;
        else if (meeting->files[rank] >= 0)
            snprintf(text, sizeof text, "Bootstrap Root : rank %d of %d ranks has already checked in", rank,
                     meeting->count);
    }
    if (*text) refuse(meeting, file, ncclInvalidUsage, text);
    if (!known || *text) {
        close(file);
        return !*text;
    }
    meeting->files[rank] = file;
    meeting->members[rank] = hello.member;
    meeting->present++;
    return true;
}

/* -1: there is none, or there are too many files; these are not asked for all the time. */
static int take_connection(int listener) {
    int file = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (file < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        usleep(POLL_MILLISECONDS * 1000);
    return file;
}

/* How many bytes must have come before poll() says that there are any. */
static void wait_for_bytes(int file, int count) { setsockopt(file, SOL_SOCKET, SO_RCVLOWAT, &count, sizeof count); }

static void forget_silent(struct meeting *meeting, int i) {
    meeting->silent_count--;
    memmove(&meeting->silent[i], &meeting->silent[i + 1],
            (size_t)(meeting->silent_count - i) * sizeof meeting->silent[0]);
}

/* Somebody has connected. Anybody can, and need say nothing, so nobody waits for that: a rank speaks at once. */
static void greet(struct meeting *meeting, int file) {
    if (meeting->silent_count == MOST_SILENT) {
        close(meeting->silent[0].file);
        forget_silent(meeting, 0);
    }
    wait_for_bytes(file, sizeof(struct hello));
    meeting->silent[meeting->silent_count].file = file;
    meeting->silent[meeting->silent_count++].until = clock_now() + HELLO_SECONDS * UINT64_C(1000000000);
}

/* Those who have spoken are admitted, and those whose time is over are forgotten. False: the meeting is over. */
static bool hear_silent(struct meeting *meeting, const struct pollfd *polled) {
    for (int i = meeting->silent_count - 1; i >= 0; i--) {
        int file = meeting->silent[i].file;
        bool has_spoken = polled[i].revents;
        if (!has_spoken && clock_now() <= meeting->silent[i].until) continue;
        forget_silent(meeting, i);
        if (!has_spoken) {
            close(file);
            continue;
        }
        wait_for_bytes(file, 1);
        if (!admit(meeting, file)) return false;
    }
    return true;
}

/* A rank that has come has gone again before all were there. */
static bool has_lost(struct meeting *meeting, char *text, size_t size) {
    for (int i = 0; i < meeting->count; i++) {
        char byte;
        if (meeting->files[i] < 0) continue;
        ssize_t came = recv(meeting->files[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (came > 0 || (came < 0 && (errno == EAGAIN || errno == EINTR))) continue;
        snprintf(text, size, "rank %d ended before all %d ranks had come", i, meeting->count);
        return true;
    }
    return false;
}

/* All have the list, and connect with each other. */
static void conclude(struct meeting *meeting) {
    struct pollfd *files = calloc((size_t)meeting->count, sizeof *files);
    struct answer answer = {0};
    struct patience patience = {.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000)};
    char text[TEXT_SIZE + 32];
    if (!files) return; /* the ranks see the end */
    for (int i = 0; i < meeting->count; i++) files[i] = (struct pollfd){.fd = meeting->files[i], .events = POLLIN};
    for (int left = meeting->count; left;) {
        if (poll(files, (nfds_t)meeting->count, -1) <= 0) continue;
        for (int i = 0; i < meeting->count; i++) {
            if (files[i].fd < 0 || !files[i].revents) continue;
            patience.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000);
            bool said = receive_all(files[i].fd, &answer, sizeof answer, &patience);
            if (said && !answer.status) {
                files[i].fd = -1;
                left--;
                continue;
            }
            answer.text[TEXT_SIZE - 1] = 0;
            if (said) snprintf(text, sizeof text, "%s", answer.text);
            else snprintf(text, sizeof text, "rank %d ended before all %d ranks had connected", i, meeting->count);
            refuse(meeting, -1, ncclRemoteError, text);
            free(files);
            return;
        }
    }
    free(files);
    answer = (struct answer){0};
    patience.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000);
    for (int i = 0; i < meeting->count; i++) send_all(meeting->files[i], &answer, sizeof answer, &patience);
}

static void *meet(void *argument) {
    struct meeting *meeting = argument;
    char text[TEXT_SIZE];
    int refused = 0;
    while (!meeting->count || meeting->present < meeting->count) {
        struct pollfd polled[1 + MOST_SILENT] = {{.fd = meeting->listener, .events = POLLIN}};
        int count = meeting->silent_count;
        for (int i = 0; i < count; i++)
            polled[1 + i] = (struct pollfd){.fd = meeting->silent[i].file, .events = POLLIN};
        int ready = poll(polled, (nfds_t)(1 + count), POLL_MILLISECONDS);
        if (has_lost(meeting, text, sizeof text)) {
            refuse(meeting, -1, ncclRemoteError, text);
            break;
        }
        if (atomic_load(&meeting->given_up)) {
            refuse(meeting, -1, ncclRemoteError, meeting->why);
            break;
        }
        if (ready < 0) continue;
        if (!hear_silent(meeting, polled + 1)) break;
        if (!polled[0].revents) continue;
        int file = take_connection(meeting->listener);
        if (file >= 0) {
            refused = 0;
            greet(meeting, file);
        } else if (++refused >= MOST_REFUSED) {
            refuse(meeting, -1, ncclRemoteError, "the process that made the unique id can open no more files");
            break;
        }
    }
    if (meeting->count && meeting->present == meeting->count) {
        struct answer fine = {0};
        struct patience patience = {.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000)};
        for (int i = 0; i < meeting->count; i++)
            if (send_all(meeting->files[i], &fine, sizeof fine, &patience))
                send_all(meeting->files[i], meeting->members, (size_t)meeting->count * sizeof *meeting->members,
                         &patience);
        conclude(meeting);
    }
    meeting_free(meeting);
    return NULL;
}

ncclResult_t rendezvous_id(ncclUniqueId *unique) {
    struct id id = {0};
    struct meeting *meeting = calloc(1, sizeof *meeting);
    if (!meeting) return nccl_fail(ncclSystemError, "the host has no memory for an id");
    memcpy(id.magic, magic, sizeof magic);
    random_bytes(id.nonce, NONCE_SIZE);
    memcpy(meeting->nonce, id.nonce, NONCE_SIZE);
    meeting->listener = listen_network(id.address);
    if (meeting->listener < 0) {
        int error = errno;
        free(meeting);
        const char *wanted = getenv("NCCL_SOCKET_IFNAME");
        return nccl_fail(ncclSystemError, "no network interface%s%s can be listened on: %s",
                         wanted ? " of NCCL_SOCKET_IFNAME=" : "", wanted ? wanted : "", strerror(error));
    }
    memcpy(meeting->address, id.address, sizeof id.address);
    list_meeting(meeting);
    if (!thread_start(meet, meeting)) {
        meeting_free(meeting);
        return nccl_fail(ncclSystemError, "the system has no room for another thread");
    }
    memset(unique, 0, sizeof *unique);
    memcpy(unique, &id, sizeof id);
    return ncclSuccess;
}

bool rendezvous_knows(const ncclUniqueId *unique) { return !memcmp(unique, magic, sizeof magic); }

/* ---- from each to each -------------------------------------------------------------------------------------------- */

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
    if (!await(socket, POLLIN, patience) || recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return false;
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
            wire->sockets[lane] = connect_network(setup->members[rank].address, setup->patience);
            if (wire->sockets[lane] < 0 || !send_all(wire->sockets[lane], &hello, sizeof hello, setup->patience))
                return false;
        }
        return true;
    }
    struct hello hello = hello_of(setup, LANE_DATA);
    struct sockaddr_un address;
    socklen_t length = host_address(setup->members[rank].name, &address);
    int memory = wire_memory_new();
    wire->sockets[0] = connect_to(&address, length, setup->patience);
    bool fine = memory >= 0 && wire->sockets[0] >= 0 && wire_open_local(wire, memory, true) &&
                send_all(wire->sockets[0], &hello, sizeof hello, setup->patience) &&
                send_files(wire->sockets[0], (int[]){memory, setup->bells[0], setup->bells[1]}, 3);
    if (memory >= 0) close(memory);
    return fine;
}

/* Take a connection of a rank behind this one. False: it is not one of them; `local`: it came over the host's socket. */
static bool take(struct setup *setup, int file, bool local) {
    struct hello hello;
    struct patience soon = {.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000),
                            .stopped = setup->patience->stopped};
    if (!receive_all(file, &hello, sizeof hello, &soon) || memcmp(hello.nonce, setup->id->nonce, NONCE_SIZE))
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
        prepare_network(file);
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
    if (receive_all(setup->thread, &answer, sizeof answer, setup->patience)) {
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
    setup->thread = connect_network(setup->id->address, setup->patience);
    if (setup->thread < 0)
        return nccl_fail(ncclRemoteError, "the process that made the unique id cannot be reached: %s", strerror(errno));
    send_all(setup->thread, &hello, sizeof hello, setup->patience); /* if it does not go, no answer comes */
    NCCL_RETURN_IF(hear(setup));
    if (receive_all(setup->thread, setup->members, size, setup->patience)) return ncclSuccess;
    return nccl_fail(ncclRemoteError, "the process that made the unique id has ended");
}

/* Tell it how the connecting went, and hear whether all others have managed, too. */
static ncclResult_t agree(struct setup *setup, ncclResult_t status) {
    struct answer answer = {.status = (int32_t)status};
    if (status) snprintf(answer.text, sizeof answer.text, "%s", nccl_last_text());
    send_all(setup->thread, &answer, sizeof answer, setup->patience);
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
    int network = listen_network(self->address), host = listen_host(self->name);
    ncclResult_t status = network < 0 || host < 0
                              ? nccl_fail(ncclSystemError, "this host has no socket to listen on: %s", strerror(errno))
                              : introduce(&setup);
    for (int i = 0; !status && i < count; i++)
        if (members[i].rank != i) status = nccl_fail(ncclInternalError, "the list of ranks is damaged");
    if (status && setup.thread < 0) give_up(&id, nccl_last_text());
    if (!status) status = agree(&setup, connect_all(&setup, network, host));
    const int files[] = {network, host, setup.thread};
    for (int i = 0; i < 3; i++)
        if (files[i] >= 0) close(files[i]);
    return status;
}
