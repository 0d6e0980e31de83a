/* Events: places in streams (event.c). */
#ifndef CUPOLA_CPU_DRIVER_EVENT_H
#define CUPOLA_CPU_DRIVER_EVENT_H

#include "driver/base/base.h"

struct CUevent_st {
    struct handle handle;
    CUcontext context;
    unsigned flags;
    pthread_mutex_t lock;
    CUstream stream; /* last recorded there, referenced; NULL: never recorded */
    uint64_t sequence;
    uint64_t generation;   /* counts its records */
    _Atomic uint64_t time; /* of the last record that was carried out; CLOCK_MONOTONIC, nanoseconds */
    void *capture;         /* owned by capture.c: the capture that last recorded it, NULL: none */
    void *capture_node;
    struct cpu_clock *clock;     /* of what it was recorded behind, while races are checked (moment.c) */
    struct shared_event *shared; /* its state, when it is for several processes (ipc/event.c), else NULL */
};

CUevent event_new(CUcontext context, unsigned flags, struct shared_event *shared); /* NULL: out of memory */

/* The event is now recorded at that place of the stream. Returns the record's generation. */
uint64_t event_mark(CUevent event, CUstream stream, uint64_t sequence);
void event_stamp(CUevent event, uint64_t generation); /* the record is being carried out: take the time */
CUresult event_record(CUevent event, CUstream stream, unsigned flags);
/* CUDA_SUCCESS or CUDA_ERROR_NOT_READY; or, of an event of several processes, that it never will be. */
CUresult event_query(CUevent event);
CUresult event_wait(CUevent event);
uint64_t event_record_elsewhere(CUevent event); /* its last record, if that was not this process's; else 0 */
void event_release(CUevent event);

#endif
