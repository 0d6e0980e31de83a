/* Checkpoints: what a process asks of another one (request.c), the thread that answers (service.c), and what it does
 * (state.c). See "CUDA Checkpointing" in the CUDA Driver API.
 *
 * As with NVIDIA's driver, cuInit starts a thread that carries out requests, one at a time. So a stopped process does
 * not answer until it continues, and while a lock waits for the last kernel, other requests wait for the lock. Here a
 * request is one message on a connection to a socket whose name has the number of the process. The kernel tells each
 * side the process and user of the other one. */
#ifndef CUPOLA_CPU_CHECKPOINT_H
#define CUPOLA_CPU_CHECKPOINT_H

#include <sys/socket.h>
#include <sys/un.h>

#include "driver/ipc/ipc.h"

enum checkpoint_call { GET_STATE, GET_THREAD, LOCK, CHECKPOINT, RESTORE, UNLOCK };

#define CHECKPOINT_MAGIC UINT32_C(0x63705031) /* another one when the messages change */

struct checkpoint_request {
    uint32_t magic;
    uint32_t call;
    uint32_t timeout;    /* of LOCK: ms, 0: none */
    uint32_t pair_count; /* of RESTORE */
    CUcheckpointGpuPair pairs[MAX_DEVICES];
};

struct checkpoint_reply {
    uint32_t magic;
    int32_t status; /* a CUresult */
    int32_t value;  /* the state or the thread */
    char explanation[512];
};

/* The name of the socket of a process. Returns the length of the address. */
socklen_t checkpoint_address(struct sockaddr_un *address, int64_t number);

/* Carry out a request in this process, except GET_THREAD (state.c). `given_up` says whether the other process no longer
 * waits for a lock. */
CUresult checkpoint_carry_out(const struct checkpoint_request *request, int32_t *value, bool (*given_up)(void *data),
                              void *data);

#endif
