/* The thread that brings the ranks of an id together, in the process that made the id; see rendezvous.h. */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/thread.h"
#include "rendezvous.h"

enum {
    MOST_REFUSED = 50, /* polls */
    MOST_SILENT = 64,  /* connections that have said nothing yet */
};

static const char magic[8] = {'c', 'u', 'p', 'o', 'l', 'a', 'n', '3'};

struct meeting {
    struct meeting *next; /* of this process */
    _Atomic bool given_up;
    char why[TEXT_SIZE];
    int listener;
    struct id id;
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

void meeting_give_up(const struct id *id, const char *why) {
    pthread_mutex_lock(&meetings_lock);
    for (struct meeting *meeting = meetings; meeting; meeting = meeting->next)
        if (!memcmp(&meeting->id, id, sizeof *id) && !atomic_load(&meeting->given_up)) {
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
    if (file >= 0) nccl_send(file, &answer, sizeof answer, &patience);
    for (int i = 0; i < meeting->count; i++)
        if (meeting->files[i] >= 0) nccl_send(meeting->files[i], &answer, sizeof answer, &patience);
}

/* A rank, or anybody else, has connected. False: the meeting is over. */
static bool admit(struct meeting *meeting, int file) {
    struct hello hello;
    struct patience patience = {.end = clock_now() + HELLO_SECONDS * UINT64_C(1000000000)};
    char text[TEXT_SIZE] = "";
    int rank = -1;
    bool known =
        nccl_receive(file, &hello, sizeof hello, &patience) && !memcmp(hello.nonce, meeting->id.nonce, NONCE_SIZE);
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
            bool said = nccl_receive(files[i].fd, &answer, sizeof answer, &patience);
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
    for (int i = 0; i < meeting->count; i++) nccl_send(meeting->files[i], &answer, sizeof answer, &patience);
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
            if (nccl_send(meeting->files[i], &fine, sizeof fine, &patience))
                nccl_send(meeting->files[i], meeting->members, (size_t)meeting->count * sizeof *meeting->members,
                          &patience);
        conclude(meeting);
    }
    meeting_free(meeting);
    return NULL;
}

ncclResult_t rendezvous_id(ncclUniqueId *unique) {
    struct meeting *meeting = calloc(1, sizeof *meeting);
    if (!meeting) return nccl_fail(ncclSystemError, "the host has no memory for an id");
    struct id *id = &meeting->id;
    memcpy(id->magic, magic, sizeof magic);
    random_bytes(id->nonce, NONCE_SIZE);
    meeting->listener = nccl_listen_network(id->address);
    if (meeting->listener < 0) {
        int error = errno;
        free(meeting);
        const char *wanted = getenv("NCCL_SOCKET_IFNAME");
        return nccl_fail(ncclSystemError, "no network interface%s%s can be listened on: %s",
                         wanted ? " of NCCL_SOCKET_IFNAME=" : "", wanted ? wanted : "", strerror(error));
    }
    memset(unique, 0, sizeof *unique);
    memcpy(unique, id, sizeof *id); /* before the thread may free the meeting */
    list_meeting(meeting);
    if (!thread_start(meet, meeting)) {
        meeting_free(meeting);
        return nccl_fail(ncclSystemError, "the system has no room for another thread");
    }
    return ncclSuccess;
}

bool rendezvous_knows(const ncclUniqueId *unique) { return !memcmp(unique, magic, sizeof magic); }
