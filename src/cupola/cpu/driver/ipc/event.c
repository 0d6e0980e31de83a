/* Events for several processes (CUDA Driver API, cuIpcGetEventHandle and cuIpcOpenEventHandle).
 *
 * The state of such an event is a slot in memory that all its processes map: which of its records was the last, and
 * which is complete. Records count up. Who waits for one sleeps on a futex in the slot, which every completion wakes;
 * and looks from time to time whether the process that is to complete the record still lives, since a crash completes
 * nothing.
 *
 * A process keeps the slots of its events in one anonymous file. The handle names the process, its descriptor of that
 * file and the slot; another process opens the file through /proc, and so needs the exporter alive at that time. A slot
 * is used again when all its processes have destroyed their events. */
#define _GNU_SOURCE
#include "ipc.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1 << 14, LOOK_AFTER_NANOSECONDS = 50 * 1000 * 1000 };
static const char magic[8] = "cupEvnt1";

struct event_slot {
    _Atomic uint32_t references; /* events of all processes; 0: the slot is free */
    _Atomic uint32_t signal;     /* the futex: counts completions */
    _Atomic uint64_t serial;     /* which event has the slot */
    _Atomic uint64_t recorded, completed;
    _Atomic int64_t recorder; /* the process of the last record, and when it began */
    _Atomic uint64_t recorder_began;
};
struct event_header {
    char magic[8];
    struct process maker;
};
union slot {
    struct event_slot event;
    struct event_header header; /* of the first slot */
    char size[64];
};
_Static_assert(sizeof(union slot) == 64, "slots are 64 bytes in all processes");

struct event_file {
    struct event_file *next;
    int file; /* -1: of another process, and only mapped */
    size_t references;
    union slot *slots;
};

struct event_handle { /* what is in a CUipcEventHandle */
    char magic[8];
    struct process maker;
    uint64_t serial;
    int32_t file, slot;
};
_Static_assert(sizeof(struct event_handle) <= sizeof(CUipcEventHandle), "the handle must fit");

struct shared_event {
    struct event_file *file;
    struct event_slot *slot;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event_file *own, *others;
static uint64_t serials;

/* ---- the files ------------------------------------------------------------------------------------------------- */

static union slot *map(int file) {
    void *slots = mmap(NULL, SLOTS * sizeof(union slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return slots == MAP_FAILED ? NULL : slots;
}

/* With the lock. */
static struct event_file *own_file(void) {
    if (own) return own;
    struct event_file *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->file = memfd_create("cupola-events", MFD_CLOEXEC);
    if (made->file >= 0 && !ftruncate(made->file, SLOTS * sizeof(union slot))) made->slots = map(made->file);
    if (!made->slots) {
        if (made->file >= 0) close(made->file);
        free(made);
        return NULL;
    }
    memcpy(made->slots->header.magic, magic, sizeof magic);
    made->slots->header.maker = *this_process();
    return own = made;
}

/* The file of another process, referenced. With the lock. */
static struct event_file *file_of(const struct event_handle *handle) {
    for (struct event_file *f = others; f; f = f->next)
        if (!memcmp(&f->slots->header.maker, &handle->maker, sizeof handle->maker)) {
            f->references++;
            return f;
        }
    struct stat about;
    struct event_file *made = calloc(1, sizeof *made);
    int file = made ? open_file_of(&handle->maker, handle->file) : -1;
    if (file >= 0) {
        if (!fstat(file, &about) && about.st_size == SLOTS * (off_t)sizeof(union slot)) made->slots = map(file);
        close(file);
    }
    if (made && made->slots && memcmp(&made->slots->header.maker, &handle->maker, sizeof handle->maker)) {
        munmap(made->slots, SLOTS * sizeof(union slot));
        made->slots = NULL;
    }
    if (!made || !made->slots) {
        free(made);
        return NULL;
    }
    made->file = -1;
    made->references = 1;
    made->next = others;
    return others = made;
}

/* With the lock. */
static void leave_file(struct event_file *file) {
    if (file == own || --file->references) return;
    struct event_file **link = &others;
    while (*link != file) link = &(*link)->next;
    *link = file->next;
    munmap(file->slots, SLOTS * sizeof(union slot));
    free(file);
}

/* ---- what event.c needs ---------------------------------------------------------------------------------------- */

CUresult shared_event_new(struct shared_event **made) {
    struct shared_event *event = malloc(sizeof *event);
    static int cursor;
    struct event_slot *found = NULL;
    pthread_mutex_lock(&lock);
    struct event_file *file = event ? own_file() : NULL;
    for (int i = 0; file && !found && i < SLOTS - 1; i++) {
        cursor = cursor % (SLOTS - 1) + 1; /* the first slot is the header */
        if (!atomic_load(&file->slots[cursor].event.references)) found = &file->slots[cursor].event;
    }
    if (found) {
        atomic_store(&found->recorded, 0);
        atomic_store(&found->completed, 0);
        atomic_store(&found->serial, ++serials);
        atomic_store(&found->references, 1);
    }
    pthread_mutex_unlock(&lock);
    if (!found) {
        free(event);
        return fail(CUDA_ERROR_OUT_OF_MEMORY,
                    file ? "the process has %d events that it shares with others, and cannot have more"
                         : "the system could not create memory that processes can share",
                    SLOTS - 1);
    }
    *event = (struct shared_event){.file = file, .slot = found};
    *made = event;
    return CUDA_SUCCESS;
}

void shared_event_free(struct shared_event *event) {
    atomic_fetch_sub(&event->slot->references, 1);
    pthread_mutex_lock(&lock);
    leave_file(event->file);
    pthread_mutex_unlock(&lock);
    free(event);
}

uint64_t shared_event_mark(struct shared_event *event) {
    const struct process *self = this_process();
    atomic_store(&event->slot->recorder_began, self->began);
    atomic_store(&event->slot->recorder, self->number);
    return atomic_fetch_add(&event->slot->recorded, 1) + 1;
}

void shared_event_complete(struct shared_event *event, uint64_t record) {
    struct event_slot *slot = event->slot;
    uint64_t before = atomic_load(&slot->completed);
    while (before < record && !atomic_compare_exchange_weak(&slot->completed, &before, record)) {
    }
    atomic_fetch_add(&slot->signal, 1);
    syscall(SYS_futex, &slot->signal, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint64_t shared_event_last(const struct shared_event *event) { return atomic_load(&event->slot->recorded); }

/* CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or the error that the process which would complete the record has ended. */
static CUresult look(const struct event_slot *slot, uint64_t record) {
    int64_t recorder = atomic_load(&slot->recorder);
    if (atomic_load(&slot->completed) >= record) return CUDA_SUCCESS;
    if (process_is_alive(recorder, atomic_load(&slot->recorder_began))) return CUDA_ERROR_NOT_READY;
    if (atomic_load(&slot->completed) >= record) return CUDA_SUCCESS; /* just before it ended */
    return fail(CUDA_ERROR_EXTERNAL_DEVICE,
                "process %lld, which recorded the event, ended before the work in front of the event was complete",
                (long long)recorder);
}

CUresult shared_event_query(const struct shared_event *event) {
    uint64_t record = shared_event_last(event);
    return atomic_load(&event->slot->completed) >= record ? CUDA_SUCCESS : look(event->slot, record);
}

CUresult shared_event_wait(const struct shared_event *event, uint64_t record, CUcontext context) {
    struct event_slot *slot = event->slot;
    const struct timespec patience = {.tv_nsec = LOOK_AFTER_NANOSECONDS};
    for (;;) {
        uint32_t signal = atomic_load(&slot->signal);
        if (atomic_load(&slot->completed) >= record) return CUDA_SUCCESS;
        if (atomic_load_explicit(&context->error, memory_order_relaxed)) return CUDA_SUCCESS; /* told elsewhere */
        if (!syscall(SYS_futex, &slot->signal, FUTEX_WAIT, signal, &patience, NULL, 0) || errno != ETIMEDOUT) continue;
        CUresult status = look(slot, record);
        if (status != CUDA_ERROR_NOT_READY) return status;
        if (signals_are_ours() && !signals_handled()) return status;
    }
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event) {
    RETURN_IF(enter_to_work());
    if (!handle_is_live(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    if (!pHandle) return fail_null("pHandle");
    if (!event->shared)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the event was made for this process alone: create it with CU_EVENT_INTERPROCESS");
    if (event->shared->file != own)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the event was imported from another process, and only that process can export it");
    struct event_handle handle = {.maker = *this_process(),
                                  .serial = event->shared->slot->serial,
                                  .file = own->file,
                                  .slot = (int32_t)((union slot *)event->shared->slot - own->slots)};
    memcpy(handle.magic, magic, sizeof magic);
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

/* Count one more event, unless the slot is another event's by now. */
static bool join(struct event_slot *slot, uint64_t serial) {
    uint32_t count = atomic_load(&slot->references);
    do {
        if (!count || atomic_load(&slot->serial) != serial) return false;
    } while (!atomic_compare_exchange_weak(&slot->references, &count, count + 1));
    if (atomic_load(&slot->serial) == serial) return true;
    atomic_fetch_sub(&slot->references, 1);
    return false;
}

static CUresult open_shared(const struct event_handle *handle, struct shared_event **opened) {
    if (memcmp(handle->magic, magic, sizeof magic) || handle->slot < 1 || handle->slot >= SLOTS)
        return fail(CUDA_ERROR_INVALID_VALUE, "the bytes are not a handle from cuIpcGetEventHandle");
    if (is_this_process(&handle->maker))
        return fail(CUDA_ERROR_INVALID_CONTEXT, "the event belongs to this process: use it directly");
    struct shared_event *event = malloc(sizeof *event);
    if (!event) return no_memory("another event");
    pthread_mutex_lock(&lock);
    event->file = file_of(handle);
    bool joined = event->file && join(&event->file->slots[handle->slot].event, handle->serial);
    if (event->file && !joined) leave_file(event->file);
    bool reached = event->file != NULL;
    pthread_mutex_unlock(&lock);
    if (joined) {
        event->slot = &event->file->slots[handle->slot].event;
        *opened = event;
        return CUDA_SUCCESS;
    }
    free(event);
    if (reached) return fail(CUDA_ERROR_INVALID_HANDLE, "the event was destroyed in the process that made it");
    return fail(CUDA_ERROR_INVALID_HANDLE,
                "process %lld, which made the event, has ended, or cannot be reached: it must be of the same user and, "
                "with containers, in the same one",
                (long long)handle->maker.number);
}

CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle opaque) {
    CUcontext context;
    struct event_handle handle;
    struct shared_event *shared = NULL;
    RETURN_IF(enter_context(&context));
    if (!phEvent) return fail_null("phEvent");
    memcpy(&handle, &opaque, sizeof handle);
    RETURN_IF(open_shared(&handle, &shared));
    CUevent event = event_new(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, shared);
    if (event) *phEvent = event;
    else shared_event_free(shared);
    return event ? CUDA_SUCCESS : no_memory("another event");
}

const struct entry ipc_event_entries[] = {
    ENTRY(cuIpcGetEventHandle),
    ENTRY(cuIpcOpenEventHandle),
    {NULL, NULL, NULL},
};
