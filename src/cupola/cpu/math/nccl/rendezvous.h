/* How ranks that have the same id find each other.
 *
 * An id has the address of a socket, on which a thread of the process that made the id waits for all ranks (meeting.c), and a
 * number that only its holders know. Each rank tells that thread how it can be reached and gets the list of all. Then each
 * connects with the ranks before it (rendezvous.c): over a socket of the host, on which descriptors of shared memory are
 * passed, or, to other hosts, with one TCP connection for each lane. At the end each tells the thread how that went. Where
 * one has failed, all fail at once, instead of waiting for it. */
#ifndef CUPOLA_CPU_MATH_NCCL_RENDEZVOUS_H
#define CUPOLA_CPU_MATH_NCCL_RENDEZVOUS_H

#include <sys/socket.h>

#include "nccl.h"

enum { POLL_MILLISECONDS = 100, HELLO_SECONDS = 10, NONCE_SIZE = 16 };

struct id { /* the bytes of an ncclUniqueId */
    char magic[8];
    uint8_t nonce[NONCE_SIZE];
    uint8_t address[ADDRESS_SIZE];
};

struct hello { /* the first that a rank says, to the thread and to other ranks */
    uint8_t nonce[NONCE_SIZE];
    int32_t count, lane;
    struct member member;
};

struct answer { /* of the thread, and of a rank that has connected with the others, or cannot */
    int32_t status;
    char text[TEXT_SIZE];
};

/* A rank of this process that cannot even come says why, since the others would wait for it (meeting.c). */
void meeting_give_up(const struct id *id, const char *why);

/* ---- sockets (sockets.c) ------------------------------------------------------------------------------------------- */

bool nccl_await(int file, short events, const struct patience *patience); /* until it can be read, or written */
bool nccl_send(int file, const void *bytes, size_t size, const struct patience *patience);
bool nccl_receive(int file, void *bytes, size_t size, const struct patience *patience);

int nccl_listen_network(uint8_t *bytes); /* on an address of this host, which is written to `bytes`; -1: on none */
int nccl_listen_host(uint8_t *name);     /* the same, for this host alone, with a name without a file */
void nccl_prepare_network(int file);
int nccl_connect_network(const uint8_t *bytes, const struct patience *patience);
int nccl_connect_host(const uint8_t *name, const struct patience *patience);

#endif
