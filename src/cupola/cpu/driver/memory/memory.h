/* Memory: allocation, what an address is and who may access it, copies and fills, pools, virtual and managed memory. */
#ifndef CUPOLA_CPU_DRIVER_MEMORY_H
#define CUPOLA_CPU_DRIVER_MEMORY_H

#include "above.h"
#include "driver/stream/stream.h"
#include "engine/memory/memory.h"

/* The status for a cpu_memory_status, with an explanation for an allocation of `size` bytes. */
CUresult memory_refused(int status, int device, size_t size) __attribute__((cold));
/* The same for a pool, which needs `taken` bytes for it. */
CUresult memory_refused_to_pool(int status, int device, size_t size, size_t taken) __attribute__((cold));

/* Memory of a context, which is freed with it at the latest. If there is not enough, pools give back what they keep. */
CUresult memory_allocate(CUcontext context, int kind, size_t size, uint64_t *address);
/* Wait for everything that may still use memory of a context. Streams may be capturing. */
void memory_wait_for_users(CUcontext context);

/* What a range of addresses that a call was given may be. */
enum range_rule {
    RANGE_DEVICE,  /* memory that CUDA knows */
    RANGE_ANY,     /* that, or any host memory: an address outside the arena that is in no table */
    RANGE_PLANNED, /* as RANGE_DEVICE, and memory that a graph will have allocated when it runs */
    RANGE_PLANNED_ANY,
    RANGE_RUNNING, /* as RANGE_DEVICE, for work that was queued before a free of the memory */
};

/* Check the range [address, address + size) and say whether it is pageable host memory. `role` names the
 * range in the explanation ("the source"). */
CUresult memory_check(uint64_t address, size_t size, enum range_rule rule, const char *role, bool *pageable);

/* Whose access rights a call needs. Memory of a device's pools and mapped memory have such rights; what cuMemAlloc gave,
 * managed and host memory is copied for every device. Two H200s with driver 580 tell which device counts: for single
 * copies that of the current context, whatever the stream is; for batches that of the stream; copies that name the
 * contexts of their sides need no rights. Rights that contexts give (cuCtxEnablePeerAccess) do not count here. */
struct accessor {
    int device;        /* or ANYBODY */
    const char *whose; /* "the current context's" */
    bool is_fill;      /* for which a pool of host memory counts, too */
};
enum { ANYBODY = -1 };
CUresult memory_check_access(uint64_t address, size_t size, enum range_rule rule, const char *role, bool *pageable,
                             const struct accessor *accessor, bool is_write);

/* The box of bytes of a CUDA_MEMCPY3D. planned: for a graph. An empty one has width 0. */
CUresult copy_from_form(const CUDA_MEMCPY3D *form, bool planned, const struct accessor *accessor, struct copy *copy,
                        bool *source_pageable, bool *target_pageable);

/* Queue the copy of a form; `wait`: and wait until it is done, as the synchronous calls do. */
CUresult copy_submit_form(CUstream stream, const CUDA_MEMCPY3D *form, bool wait);
/* The stream of a synchronous call: the default stream. Such calls are unsafe while a stream captures. */
CUresult enter_synchronous(const char *call, CUstream *stream);

/* Check a fill, and bring it into its one form. */
CUresult fill_check(struct fill *fill, bool planned, const struct accessor *accessor);

/* Memory for a module's variable: zeroed, CPU_MEMORY_MODULE or CPU_MEMORY_MANAGED. */
CUresult memory_allocate_variable(CUcontext context, size_t size, size_t align, bool managed, uint64_t *address);
void memory_free_variable(uint64_t address);

enum { MEMORY_IMPORTED = 1 << 29 }; /* how the table of allocations marks what came from another process */

/* Mapped virtual memory (virtual.c): how the table of allocations marks it, and whether kernels of a device may
 * access it. */
enum { MEMORY_VIRTUAL = 1 << 30 };
bool virtual_admits(uint64_t base, int device, bool is_write);

/* Whether memory of another process was imported (cuMemImportFromShareableHandle). */
bool virtual_memory_has_imports(void);

#endif
