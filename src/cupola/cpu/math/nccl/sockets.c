/* The sockets by which ranks find each other: on the host, where they pass descriptors, and on the network. All that waits
 * here does so with patience. */
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "rendezvous.h"

bool patience_is_over(const struct patience *patience) {
    return (patience->stopped && atomic_load(patience->stopped)) || (patience->end && clock_now() > patience->end) ||
           (patience->watch && watch_found(patience->watch) >= 0);
}

bool nccl_await(int file, short events, const struct patience *patience) {
    struct pollfd one = {.fd = file, .events = events};
    while (poll(&one, 1, POLL_MILLISECONDS) <= 0)
        if (patience_is_over(patience)) return false;
    return true;
}

bool nccl_send(int file, const void *bytes, size_t size, const struct patience *patience) {
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(file, (const char *)bytes + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) done += (size_t)sent;
        else if ((errno != EAGAIN && errno != EINTR) || !nccl_await(file, POLLOUT, patience)) return false;
    }
    return true;
}

bool nccl_receive(int file, void *bytes, size_t size, const struct patience *patience) {
    for (size_t done = 0; done < size;) {
        ssize_t came = recv(file, (char *)bytes + done, size - done, MSG_DONTWAIT);
        if (came > 0) done += (size_t)came;
        else if (!came || (errno != EAGAIN && errno != EINTR) || !nccl_await(file, POLLIN, patience)) return false;
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
int nccl_listen_network(uint8_t *bytes) {
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

int nccl_listen_host(uint8_t *name) {
    struct sockaddr_un address;
    random_bytes(name, NONCE_SIZE);
    socklen_t length = host_address(name, &address);
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file >= 0 && !bind(file, (struct sockaddr *)&address, length) && !listen(file, SOMAXCONN)) return file;
    if (file >= 0) close(file);
    return -1;
}

/* Few bytes go at once. A host that is gone, which says nothing any more, is noticed in half a minute. */
void nccl_prepare_network(int file) {
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
    if (family != AF_UNIX) nccl_prepare_network(file);
    int connected = connect(file, address, length);
    while (connected && errno == EAGAIN && !patience_is_over(patience)) { /* a host's socket has too many who wait */
        usleep(10000);
        connected = connect(file, address, length);
    }
    if (connected && errno == EINPROGRESS && nccl_await(file, POLLOUT, patience))
        connected = getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) || error;
    if (!connected) return file;
    if (error) errno = error;
    error = errno;
    close(file);
    errno = error;
    return -1;
}

int nccl_connect_network(const uint8_t *bytes, const struct patience *patience) {
    struct sockaddr_in6 address;
    memcpy(&address, bytes, ADDRESS_SIZE);
    socklen_t length = address_length(bytes);
    return length ? connect_to(&address, length, patience) : -1;
}

int nccl_connect_host(const uint8_t *name, const struct patience *patience) {
    struct sockaddr_un address;
    socklen_t length = host_address(name, &address);
    return connect_to(&address, length, patience);
}
