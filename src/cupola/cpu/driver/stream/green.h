/* Green contexts: parts of a GPU that streams can be made in (green.c), and the resources that they are made of
 * (resource.c). */
#ifndef CUPOLA_CPU_DRIVER_GREEN_H
#define CUPOLA_CPU_DRIVER_GREEN_H

#include "stream.h"

/* How streams are spread over the hardware's queues. Kept for programs that ask: here every stream has a thread. */
struct workqueues {
    unsigned limit; /* 0: the driver's default */
    CUdevWorkqueueConfigScope scope;
};

struct CUdevResourceDesc_st {
    struct handle handle;
    struct device *device;
    struct part part;
    struct workqueues queues;
};

/* The handle; what it can do is in its context. */
struct CUgreenCtx_st {
    struct handle handle;
    CUcontext context;
    struct workqueues queues;
};

CUresult context_resource(CUcontext context, CUdevResource *resource, CUdevResourceType type);

#endif
