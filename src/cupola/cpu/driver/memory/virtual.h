/* What virtual memory management keeps: memory with handles, and where it is mapped. Multicast objects have such
 * handles, too (multicast.c). */
#ifndef CUPOLA_CPU_DRIVER_VIRTUAL_H
#define CUPOLA_CPU_DRIVER_VIRTUAL_H

#include "pool.h"

enum { GRANULARITY = CPU_MEMORY_STEP };

struct multicast;

struct physical { /* a CUmemGenericAllocationHandle is the address of one */
    struct physical *next;
    size_t size, references;     /* the program's, one for each mapping, and one for each bind */
    size_t handles;              /* the program's */
    int file;                    /* -1: a multicast object, which has no memory of its own */
    bool imported;               /* it is charged to another process */
    struct multicast *multicast; /* or NULL */
    CUmemAllocationProp properties;
};

struct mapping {
    struct mapping *next;
    uint64_t base;
    size_t size, offset;
    struct physical *physical;
    uint8_t access[MAX_DEVICES];
    bool accessible;
    uint32_t mapped_at; /* caller_here() */
};

extern pthread_mutex_t virtual_lock; /* guards all of it */

/* With the lock. */
CUresult virtual_find_physical(CUmemGenericAllocationHandle handle, struct physical **found);
struct mapping *virtual_find_mapping(uint64_t address);
void virtual_release_physical(struct physical *physical);

/* A new handle, which has the lock taken. The file is closed when that fails. */
CUresult virtual_new_physical(int file, size_t size, const CUmemAllocationProp *prop, bool imported,
                              struct multicast *multicast, CUmemGenericAllocationHandle *handle);

/* Of a multicast object (multicast.c), with the lock: whether it can be mapped; its end. */
CUresult multicast_check_complete(const struct multicast *multicast);
void multicast_end(struct multicast *multicast);

#endif
