/* The emulated NCCL: communicators over the CPU devices of one process, of several processes, and of several hosts.
 *
 * From the bottom up: wire.c moves bytes between two ranks; rendezvous.c finds the ranks that have the same id, which the
 * thread of meeting.c brings together, and connects each with each; communicator.c makes, splits and ends communicators, whose ranks agree by control.c; reduce.c has the
 * arithmetic; exchange.c carries out collectives as messages over the wires; estimate.c tells how long they take; group.c
 * collects what calls ask for and puts it into streams; collective.c has the calls. A collective is one operation of its stream (math_submit), which waits for the
 * other ranks on the stream's thread: every stream with work has a thread to itself, so ranks of one process never wait for
 * each other's threads.
 *
 * A rank that ends, or whose context has failed, leaves: its wires end, the others' operations end with ncclRemoteError, and
 * those that nobody aborts spoil their context after a while. */
#ifndef CUPOLA_CPU_MATH_NCCL_H
#define CUPOLA_CPU_MATH_NCCL_H

#include <pthread.h>

#include <cupola/nccl.h>

#include "driver/ipc/ipc.h"
#include "math/base/math.h"
#include "wire.h"

#define NCCL_INIT_SECONDS 300.0 /* that ranks wait for each other to come */
enum { MOST_RANKS = 1024, TEXT_SIZE = 512, HOST_SIZE = 96, ADDRESS_SIZE = 28 /* sockaddr_in6 */ };

/* ---- errors (status.c) ------------------------------------------------------------------------------------------- */

/* Keep a sentence about a call that returns this status, for ncclGetLastError and for the caller. */
ncclResult_t nccl_fail(ncclResult_t status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
ncclResult_t nccl_status(CUresult status);        /* of the driver, which has explained it */
ncclResult_t nccl_memory_status(CUresult status); /* the same, with the number: of memory that NCCL gives */
enum debug_level { DEBUG_NONE, DEBUG_WARN, DEBUG_INFO };
void nccl_say(enum debug_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold)); /* NCCL_DEBUG */
const char *nccl_last_text(void);
#define NCCL_RETURN_IF(call)                      \
    do {                                          \
        ncclResult_t nccl_result = (call);        \
        if (unlikely(nccl_result)) return nccl_result; \
    } while (0)

/* ---- ranks that find each other (rendezvous.c) ------------------------------------------------------------------- */

/* What a rank tells the others of itself. */
struct member {
    int32_t rank, device;
    uint64_t bus; /* domain, bus and device of PCI */
    struct process process;
    char host[HOST_SIZE]; /* the same for ranks that can share memory */
    uint8_t address[ADDRESS_SIZE];
    uint8_t name[16]; /* of its socket on the host */
};

/* Ranks of a communicator that are to be in a new one: none of them may be lost while it is made. */
struct watch {
    ncclComm_t comm;
    const int *ranks; /* NULL: all */
    int count, lost;
    uint64_t asked, since; /* clock_now(): when it was last looked, and since when one is lost */
};
int watch_found(
    struct watch *watch); /* who has been lost for a while: it may have been done before (control.c); -1: nobody */

/* What a rank waits with: until when, and what ends it early. */
struct patience {
    uint64_t end;                /* clock_now(); 0: without end */
    const _Atomic bool *stopped; /* NULL: nothing */
    struct watch *watch;         /* NULL: nobody */
};
bool patience_is_over(const struct patience *patience);
struct patience patience_from_environment(const _Atomic bool *stopped,
                                          double seconds); /* unless CUPOLA_NCCL_TIMEOUT says */

ncclResult_t rendezvous_id(ncclUniqueId *id);  /* starts the thread that brings the ranks together (meeting.c) */
bool rendezvous_knows(const ncclUniqueId *id); /* whether the bytes are an id at all */

/* Meet the other ranks: fills `members` and `wires`, of `count` ranks each. `bells` are this rank's own. */
ncclResult_t rendezvous(const ncclUniqueId *id, int count, struct member *self, const int *bells,
                        struct member *members, struct wire *wires, const struct patience *patience);

/* ---- communicators (communicator.c) ------------------------------------------------------------------------------ */

struct turn { /* of an operation that is in a stream */
    struct turn *next;
    bool waits; /* is in the queue */
};

struct factor { /* a reduction by ncclRedOpCreatePreMulSum */
    bool used, on_device;
    ncclDataType_t type;
    uint8_t bytes[8];
    const void *place;
};

struct registration {
    struct registration *next;
    void *address;
    size_t size;
    bool is_window;
};

struct pace {           /* of the exchanges so far */
    double delay, rate; /* seconds of one with few bytes, bytes a second of large ones; 0: not measured */
};

struct ncclComm {
    struct handle handle;
    CUcontext context;
    int rank, count;
    bool is_blocking, checks_pointers; /* NCCL_CHECK_POINTERS */
    char name[64];
    struct member *members;
    struct wire *wires;
    int bells[LANES]; /* of this rank */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct turn *first, *last; /* operations in streams, in the order of the calls */
    bool busy;                 /* one is at work */
    unsigned asked, served;    /* calls that use the control lane, which go in their order; with the lock */
    struct inbox *inboxes;     /* of the control lane, by rank */
    _Atomic bool gave_up;      /* one of these calls was given up: other ranks may still be in it */
    _Atomic int state;         /* ncclInProgress, or the first error that came later; ncclSuccess */
    _Atomic int misuse;        /* without blocking: of the first call for an operation that failed; what runs goes on */
    _Atomic bool stopped;      /* aborted or revoked: operations end at once */
    _Atomic bool aborted, revoked, finalized, suspended;
    char text[TEXT_SIZE]; /* says what `state` or `misuse` is about; with the lock */
    ncclComm_t child;     /* that is made of this one at present; with the lock */
    int calls;            /* that make others of this one while the program goes on; with the lock */
    struct factor *factors;
    int factor_count;
    struct registration *registrations;
    struct pace pace; /* with the lock */
    uint64_t hash;    /* of its id: the same for all ranks */
};

/* A live communicator; `ready`: and one whose last call is over, without an error. */
ncclResult_t comm_check(ncclComm_t comm, const char *function, bool ready);
ncclResult_t comm_state(ncclComm_t comm);                /* as ncclCommGetAsyncError tells it */
void comm_misused(ncclComm_t comm, ncclResult_t status); /* a call for an operation has failed, which was explained */
void comm_drop(ncclComm_t comm);                         /* that nobody was given */
void comm_release(ncclComm_t comm);

/* Until the caller returns: another thread may destroy or abort the communicator meanwhile. */
static inline void comm_let_go(ncclComm_t *kept) {
    if (*kept) comm_release(*kept);
}
#define COMM_KEEP(comm)                                        \
    __attribute__((cleanup(comm_let_go), unused)) ncclComm_t kept = \
        handle_acquire((void *)(comm), HANDLE_NCCL) ? (ncclComm_t)(comm) : NULL
void comm_error(ncclComm_t comm, ncclResult_t status, const char *text); /* the first one counts */
void comm_leave(ncclComm_t comm, ncclResult_t status, const char *text); /* the same, and the others get an error */
void comm_text(ncclComm_t comm, char *text);                             /* what the state is about, TEXT_SIZE bytes */

/* ---- jobs and the control lane (job.c, control.c) ---------------------------------------------------------------- */

/* What a call that makes a communicator has to do. */
struct job {
    struct job *next;
    ncclResult_t (*run)(struct job *job);
    ncclComm_t comm;          /* that is made, referenced; or NULL */
    ncclComm_t parent;        /* of which it is made, referenced; or NULL */
    ncclComm_t *place;        /* that gets it when it is made: the call is one of the parent's; or NULL */
    int *others, other_count; /* the parent's ranks that are to be in it; NULL: not known yet. Freed with the job */
    pthread_t thread;
    bool has_thread, parent_waits;
    unsigned turn;       /* with a parent: for its control lane */
    bool parent_stopped; /* before the call, which is made to go on after that */
    ncclResult_t status;
    char text[TEXT_SIZE];
};
ncclResult_t comm_jobs_run(struct job *jobs);               /* frees them */
void comm_jobs_drop(struct job *jobs, ncclResult_t status); /* the same without running them */

enum note_kind { NOTE_SPLIT = 1, NOTE_SHRINK, NOTE_GROW, NOTE_OVER /* its sender has given up */ };
enum { NOTE_SIZE = 136 };

struct note { /* what the control lane carries */
    uint32_t kind, size;
    uint64_t about; /* the same for all ranks of a call */
    char bytes[NOTE_SIZE];
};

struct inbox {
    struct note note;
    size_t came; /* bytes of it */
};

struct talk { /* one call on the control lane, until `stopped` */
    ncclComm_t comm;
    enum note_kind kind;
    uint64_t about;
    const _Atomic bool *stopped;
};

/* Bytes from and to one rank, and from each to each. */
ncclResult_t control_gather(const struct talk *talk, const void *mine, void *all, size_t size);
ncclResult_t control_send(const struct talk *talk, int rank, const void *bytes, size_t size);
ncclResult_t control_receive(const struct talk *talk, int rank, void *bytes, size_t size);
void control_give_up(const struct talk *talk); /* it has failed: the others need not wait */

/* ---- operations (exchange.c, reduce.c) --------------------------------------------------------------------------- */

enum function {
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    SEND,
    RECEIVE,
    FUNCTIONS
};
extern const char *const function_names[FUNCTIONS];

struct reduction {
    ncclRedOp_t op; /* ncclNumOps: a sum of products with the factor */
    struct factor factor;
};

struct task {
    struct task *next;
    enum function function;
    const void *source;
    void *target;
    size_t count;
    ncclDataType_t type;
    struct reduction reduction;
    int root;             /* or the peer of a message */
    cudaEvent_t launched; /* recorded when the operation is in its stream; or NULL */
};

bool is_message(const struct task *task); /* from one rank to one */
size_t type_size(ncclDataType_t type);
const char *type_name(ncclDataType_t type);
const char *op_name(ncclRedOp_t op);

/* target[i] = the reduction of sources[0][i], sources[1][i], ...; the target may be one of them. */
void reduce(ncclDataType_t type, const struct reduction *reduction, void *target, const void *const *sources, int ranks,
            size_t count);

/* Carry out the tasks of a communicator with the other ranks. Not ncclSuccess: `text` says why. */
ncclResult_t exchange(ncclComm_t comm, const struct task *tasks, char *text);
ncclResult_t check_messages(ncclComm_t comm, const struct task *tasks); /* those of a rank to itself have a receiver */
CUresult task_touch(ncclComm_t comm, const struct task *task);          /* check the memory of a task */

/* How long tasks will take (estimate.c). */
void pace_note(ncclComm_t comm, const struct task *tasks, double seconds); /* how long they took */
double pace_estimate(ncclComm_t comm, const struct task *tasks);

/* ---- groups (group.c) -------------------------------------------------------------------------------------------- */

/* What calls ask for is kept until the outermost group ends; outside a group each call is one. */
ncclResult_t group_add_job(struct job *job);
ncclResult_t group_add_task(ncclComm_t comm, cudaStream_t stream, struct task *task); /* owns the task */
ncclResult_t group_note(ncclResult_t status);  /* a call failed: returns the status, and so will the end of the group */
bool group_holds(const struct ncclComm *comm); /* the thread's open group makes it, or finalizes it */
void group_open(void);
ncclResult_t group_close(void);

#endif
