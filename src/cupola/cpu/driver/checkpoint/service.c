/* The thread that answers requests about this process. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint.h"
#include "common/thread.h"

static int listener = -1;
static struct sockaddr_un own_address; /* of this process, or in a forked child of its parent */
static socklen_t own_length;

/* The name has only the number of the process, so it stays the same when CRIU starts the process again. The first byte
 * is 0: such a name is in no file system, and disappears with the socket. */
socklen_t checkpoint_address(struct sockaddr_un *address, int64_t number) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length =
        snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "cupola-checkpoint-%lld", (long long)number);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* The process's own user may ask, and the administrator. */
static bool may_ask(int connection) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) && (!peer.uid || peer.uid == geteuid());
}

static bool hung_up(void *data) {
    struct pollfd connection = {.fd = *(int *)data, .events = POLLRDHUP};
    return poll(&connection, 1, 0) > 0 && connection.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void answer(int connection) {
    struct checkpoint_request request;
    struct checkpoint_reply reply = {.magic = CHECKPOINT_MAGIC};
    if (!may_ask(connection)) { /* at once: nobody waits for what a stranger says */
        reply.status = CUDA_ERROR_OPERATING_SYSTEM;
        snprintf(reply.explanation, sizeof reply.explanation, "the process belongs to another user");
        (void)send(connection, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
    }
    /* A process that connects and sends nothing must not block the others. */
    struct timeval patience = {.tv_sec = 2};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (recv(connection, &request, sizeof request, 0) != sizeof request || request.magic != CHECKPOINT_MAGIC ||
        request.pair_count > MAX_DEVICES || hung_up(&connection))
        return;
    if (request.call == GET_THREAD) {
        reply.value = gettid();
    } else {
        reply.status = (int32_t)checkpoint_carry_out(&request, &reply.value, hung_up, &connection);
        if (reply.status) snprintf(reply.explanation, sizeof reply.explanation, "%.511s", thread_state.explanation);
    }
    (void)send(connection, &reply, sizeof reply, MSG_NOSIGNAL); /* the other side may have gone */
}

/* Whether a file is still the socket: a program that closes files which are not its own may get the number again, for one
 * of its own. By its name, since CRIU gives it another inode when it starts the process again. */
static bool is_ours(int file) {
    struct sockaddr_un found;
    socklen_t room = sizeof found;
    return !getsockname(file, (struct sockaddr *)&found, &room) && room == own_length &&
           !memcmp(&found, &own_address, room);
}

static void *serve(void *argument) {
    int socket = (int)(intptr_t)argument;
    pthread_setname_np(pthread_self(), "cupola-restore");
    while (is_ours(socket)) {
        int connection = accept4(socket, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0) {
            answer(connection);
            close(connection);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            usleep(10000); /* until the program has closed a file */
        } else if (errno != EINTR && errno != ECONNABORTED) {
            break;
        }
    }
    return NULL;
}

/* Where there can be no socket, or no thread, the process cannot be checkpointed, which does no harm to it. */
void checkpoint_serve(void) {
    own_length = checkpoint_address(&own_address, getpid());
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0) return;
    if (!bind(listener, (struct sockaddr *)&own_address, own_length) && !listen(listener, 16) &&
        thread_start(serve, (void *)(intptr_t)listener))
        return;
    close(listener);
    listener = -1;
}

void checkpoint_forget(void) {
    if (listener >= 0 && is_ours(listener)) close(listener);
    listener = -1;
}
