/* The arena of device memory, and the table of what is allocated in it.
 *
 * Device pointers are host addresses inside one reserved PROT_NONE range, so device code needs no translation
 * and a stray access that passes no check still faults. Pinned host memory is in the same table. */
#ifndef CUPOLA_CPU_MEMORY_H
#define CUPOLA_CPU_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum cpu_memory_kind {
    CPU_MEMORY_DEVICE,
    CPU_MEMORY_PINNED,
    CPU_MEMORY_MANAGED,
    CPU_MEMORY_MODULE,
    CPU_MEMORY_ARRAY,
    CPU_MEMORY_GRAPHICS, /* of a buffer that OpenGL has, too */
    CPU_MEMORY_HEAP      /* from malloc() in a kernel, which may free it: nothing is remembered about it */
};

enum { CPU_MEMORY_DEVICES = 64, CPU_MEMORY_HOST = -1, CPU_MEMORY_ALIGNMENT = 512 };

typedef struct cpu_allocation {
    uint64_t base, size;
    int32_t kind, device;            /* the device's ordinal, or CPU_MEMORY_HOST */
    uint64_t id;                     /* counts up; CU_POINTER_ATTRIBUTE_BUFFER_ID */
    int32_t freed;                   /* a recently freed allocation, kept for the diagnosis of use after free */
    int32_t elsewhere;               /* a range: mapped virtual memory, or registered host memory */
    int32_t freeing;                 /* a stream-ordered free is queued: running kernels may use it, new work may not */
    void *owner;                     /* whatever its maker attached: the memory pool it came from */
    uint32_t flags;                  /* likewise: the flags it was asked for with */
    uint32_t allocated_at, freed_at; /* likewise: numbers of lines of Python; 0: not known */
} cpu_allocation;

enum cpu_memory_status {
    CPU_MEMORY_OK,
    CPU_MEMORY_DEVICE_FULL, /* beyond the capacity of the modeled device */
    CPU_MEMORY_HOST_FULL,   /* beyond what this computer can hold */
    CPU_MEMORY_ARENA_FULL,  /* no address range is left */
    CPU_MEMORY_UNKNOWN,     /* not the address of an allocation */
    CPU_MEMORY_FREED,       /* that allocation was freed already */
    CPU_MEMORY_OVERLAPS,    /* a range to register overlaps one that is in the table */
};

/* Find the live allocation that contains the address. Called from kernels on the slow path of a bounds check,
 * by any thread at any time: never blocks on a lock that is held across a system call. Returns 1 or 0. */
int cpu_memory_find(uint64_t address, cpu_allocation *found);

/* The allocation (live or recently freed) nearest to an address, for diagnostics. Returns 1 or 0. */
int cpu_memory_nearest(uint64_t address, cpu_allocation *found);

/* The allocation, live or freed, in whose place an address lies. Returns 1 or 0. */
int cpu_memory_lookup(uint64_t address, cpu_allocation *found);

/* What is or was at an address last: the allocation in whose place it lies, or a range that is gone (memory that was
 * unmapped or unregistered). Takes a lock, for diagnostics. Returns 1 or 0. */
int cpu_memory_last(uint64_t address, cpu_allocation *found);

/* Whether an address belongs to the arena's range, allocated or not. */
int cpu_memory_owns(uint64_t address);

/* Call visit for every live allocation of the arena, and for all registered memory. */
void cpu_memory_each(void (*visit)(const cpu_allocation *allocation, void *data), void *data);

/* How much of this computer's memory all devices together may take, 0: nearly all. Before the first allocation. */
void cpu_memory_set_host_capacity(uint64_t bytes);

/* Set the capacity of a modeled device; a device that was never set has none. */
void cpu_memory_set_capacity(int device, uint64_t bytes);

/* Bytes in use on a device (CPU_MEMORY_HOST: on this computer), and what is still free there: on a device,
 * the smaller of what the model and what this computer has left. */
uint64_t cpu_memory_used(int device);
uint64_t cpu_memory_free_bytes(int device);
uint64_t cpu_memory_capacity(int device);

/* Allocate size > 0 bytes, aligned to CPU_MEMORY_ALIGNMENT, and account for them; `owner` is kept for the caller. Pinned
 * and managed memory counts on this computer only. Returns a cpu_memory_status. The contents are
 * undefined. */
int cpu_memory_allocate(int device, int kind, uint64_t size, void *owner, uint64_t *base);
int cpu_memory_free(uint64_t base);
void cpu_memory_decommit(uint64_t base, uint64_t bytes); /* whole pages of the arena, which become inaccessible */
void cpu_memory_close(uint64_t low, uint64_t high);      /* the same of what is in no span, between two addresses */
void cpu_memory_set_flags(uint64_t base, uint32_t flags);
void cpu_memory_set_lines(uint64_t base, uint32_t allocated_at, uint32_t freed_at); /* 0: as it is */
#define CPU_MEMORY_RESTRICTED (1u << 31) /* a flag: even kernels of the memory's own device ask cpu_driver_permits */

/* The same without accounting, for pools, which charge what they hold in steps of their own. `room`
 * receives the bytes that the place could hold. */
enum { CPU_MEMORY_SMALL = (1 << 18) - 256 }; /* up to this size, allocations share committed chunks */
int cpu_memory_obtain(int device, int kind, uint64_t size, void *owner, uint64_t *base, uint64_t *room);
uint64_t cpu_memory_room(uint64_t base);
int cpu_memory_has_pages(uint64_t base); /* of its own, which it shares with no other allocation */
/* The same in memory that processes share: a piece of a file, from a multiple of 4096 on, mapped anywhere. */
int cpu_memory_obtain_file(int device, int kind, uint64_t size, int file, uint64_t offset, void *owner, uint64_t *base);
uint64_t cpu_memory_file_offset(uint64_t base);
/* Where an allocation lies that cpu_memory_allocate made of the kind CPU_MEMORY_DEVICE and that shares pages with others:
 * as number `index` of the slots of a chunk that is a piece of a file. Returns 1, or 0: it has pages of its own. */
typedef struct cpu_memory_slot {
    int file; /* -1: the process has as many files as it may */
    uint64_t offset;
    uint32_t size, index;
} cpu_memory_slot;
int cpu_memory_slot_of(uint64_t base, cpu_memory_slot *slot);
/* An allocation in such a slot of another process, whose file is given. */
int cpu_memory_obtain_slot(int device, int kind, uint64_t size, const cpu_memory_slot *slot, void *owner,
                           uint64_t *base);
int cpu_memory_release(uint64_t base);
int cpu_memory_charge(int device, uint64_t bytes);
void cpu_memory_uncharge(int device, uint64_t bytes);

/* The life of a pool's allocation. `freeing`: a free is queued (live -> freeing). `retire`: it is freed,
 * but its place is kept (-> freed). `revive`: the place is used again, under a new id (freeing, freed ->
 * live). */
int cpu_memory_mark_freeing(uint64_t base);
int cpu_memory_retire(uint64_t base);
int cpu_memory_revive(uint64_t base, uint64_t size, void *owner, uint64_t *id);
void cpu_memory_renew(uint64_t base); /* for checks: what was revived is new now, and written by nobody */

/* Put memory that lives elsewhere into the table (registered host memory, mapped virtual memory). */
int cpu_memory_register(uint64_t base, uint64_t size, int device, int kind, void *owner);
int cpu_memory_unregister(uint64_t base);

/* A range of addresses in the arena without memory behind it. It begins at a multiple of CPU_MEMORY_STEP,
 * and of `alignment`, a power of two up to 1 GiB; at `hint`, when that is not 0 and free. */
enum { CPU_MEMORY_STEP = 1 << 21 };
int cpu_memory_reserve(uint64_t size, uint64_t alignment, uint64_t hint, uint64_t *base);
int cpu_memory_is_reserved(uint64_t address, uint64_t size); /* all of it, by one reservation */
int cpu_memory_unreserve(uint64_t base);

#endif
