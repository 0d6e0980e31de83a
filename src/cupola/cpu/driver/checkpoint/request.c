/* Asking another process, or this one (CUDA Driver API, "CUDA Checkpointing"). No call needs cuInit or passes the gate. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint.h"

enum { LOOK_EVERY = 50 /* ms, for signals of Python */ };

/* The process that a number belongs to, which may be that of one of its threads; 0: there is none, or it is hidden. */
static int64_t process_of(int number) {
    char path[64], text[2048];
    if (number <= 0) return 0;
    snprintf(path, sizeof path, "/proc/%d/status", number);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    const char *at = strstr(text, "\nTgid:");
    return at ? strtoll(at + 6, NULL, 10) : 0;
}

/* Connect to the service of a process. */
static CUresult open_connection(int pid, int *connection) {
    struct sockaddr_un address;
    struct ucred peer;
    socklen_t size = sizeof peer;
    int64_t process = process_of(pid);
    if (!process) return fail(CUDA_ERROR_OPERATING_SYSTEM, "there is no process %d", pid);
    socklen_t length = checkpoint_address(&address, process);
    int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (made < 0) return fail(CUDA_ERROR_OPERATING_SYSTEM, "no socket to ask with: %s", strerror(errno));
    int status;
    do status = connect(made, (struct sockaddr *)&address, length);
    while (status && errno == EINTR);
    if (!status && !getsockopt(made, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid == process) {
        *connection = made;
        return CUDA_SUCCESS;
    }
    close(made);
    return fail(CUDA_ERROR_NOT_INITIALIZED,
                "process %d does not use the CPU device: it has ended, was forked from one that "
                "does, or has not called cuInit yet",
                pid);
}

/* Wait for the answer, which comes when a lock is granted. On Python's main thread its signals are handled meanwhile; when
 * one raises an exception the connection is closed, and the other side gives up. */
static CUresult receive(int connection, struct checkpoint_reply *reply) {
    struct pollfd waited = {.fd = connection, .events = POLLIN};
    bool watched = signals_are_ours();
    while (poll(&waited, 1, watched ? LOOK_EVERY : -1) <= 0)
        if (watched && !signals_handled()) return fail(CUDA_ERROR_NOT_READY, "a signal ended the wait");
    ssize_t length;
    /* Who refuses does not read the question: that is the first error, and the answer comes after it. */
    bool unread = false;
    do {
        length = recv(connection, reply, sizeof *reply, 0);
        if (length < 0 && errno == ECONNRESET && !unread) unread = true;
        else if (length >= 0 || errno != EINTR) break;
    } while (true);
    if (length == sizeof *reply && reply->magic == CHECKPOINT_MAGIC) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_OPERATING_SYSTEM, "the process has ended meanwhile, or runs another version of cupola");
}

static CUresult ask(int pid, const struct checkpoint_request *request, int *value) {
    int connection;
    struct checkpoint_reply reply;
    RETURN_IF(open_connection(pid, &connection));
    (void)send(connection, request, sizeof *request, MSG_NOSIGNAL); /* who refuses may have done so already */
    CUresult status = receive(connection, &reply);
    close(connection);
    if (status) return status;
    reply.explanation[sizeof reply.explanation - 1] = 0;
    if (reply.status) return fail((CUresult)reply.status, "%s", reply.explanation);
    if (value) *value = reply.value;
    return CUDA_SUCCESS;
}

static CUresult check_reserved(const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (((const char *)bytes)[i]) return fail(CUDA_ERROR_INVALID_VALUE, "the reserved fields of args must be 0");
    return CUDA_SUCCESS;
}

static CUresult refuse_custom_storage(const void *asked) {
    if (!asked) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_NOT_SUPPORTED,
                "the CPU device has no custom storage for checkpoints: customStorageInfo_out must be "
                "NULL");
}

#define REQUEST(...) (&(struct checkpoint_request){.magic = CHECKPOINT_MAGIC, __VA_ARGS__})

CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state) {
    int value;
    if (!state) return fail_null("state");
    RETURN_IF(ask(pid, REQUEST(.call = GET_STATE), &value));
    *state = (CUprocessState)value;
    return CUDA_SUCCESS;
}

CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid) {
    if (!tid) return fail_null("tid");
    return ask(pid, REQUEST(.call = GET_THREAD), tid);
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args) {
    if (args) {
        RETURN_IF(check_reserved(&args->reserved0, sizeof args->reserved0));
        RETURN_IF(check_reserved(args->reserved1, sizeof args->reserved1));
    }
    return ask(pid, REQUEST(.call = LOCK, .timeout = args ? args->timeoutMs : 0), NULL);
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args) {
    if (args) {
        RETURN_IF(check_reserved(args->reserved, sizeof args->reserved));
        RETURN_IF(refuse_custom_storage(args->customStorageInfo_out));
    }
    return ask(pid, REQUEST(.call = CHECKPOINT), NULL);
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args) {
    struct checkpoint_request *request = REQUEST(.call = RESTORE);
    if (args) {
        RETURN_IF(check_reserved(args->reserved, sizeof args->reserved));
        RETURN_IF(refuse_custom_storage(args->customStorageInfo_out));
        if (args->gpuPairsCount && !args->gpuPairs) return fail_null("gpuPairs");
        if (args->gpuPairsCount > MAX_DEVICES)
            return fail(CUDA_ERROR_INVALID_VALUE, "gpuPairsCount is %u; there are at most %d devices",
                        args->gpuPairsCount, MAX_DEVICES);
        request->pair_count = args->gpuPairsCount;
        if (args->gpuPairsCount) memcpy(request->pairs, args->gpuPairs, args->gpuPairsCount * sizeof *args->gpuPairs);
    }
    return ask(pid, request, NULL);
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args) {
    if (args) RETURN_IF(check_reserved(args->reserved, sizeof args->reserved));
    return ask(pid, REQUEST(.call = UNLOCK), NULL);
}

const struct entry checkpoint_entries[] = {
    ENTRY(cuCheckpointProcessGetState),
    ENTRY(cuCheckpointProcessGetRestoreThreadId),
    ENTRY(cuCheckpointProcessLock),
    ENTRY(cuCheckpointProcessCheckpoint),
    ENTRY(cuCheckpointProcessRestore),
    ENTRY(cuCheckpointProcessUnlock),
    {NULL, NULL, NULL},
};
