/* The arena of device memory, and the table of what is allocated in it.
 *
 * Device pointers are host addresses inside one reserved PROT_NONE range, so device code needs no translation
 * and a stray access that passes no check still faults. Pinned host memory is registered in the same table. */
#ifndef CUPOLA_CPU_MEMORY_H
#define CUPOLA_CPU_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum cpu_memory_kind { CPU_MEMORY_DEVICE, CPU_MEMORY_PINNED, CPU_MEMORY_MANAGED, CPU_MEMORY_MODULE, CPU_MEMORY_ARRAY };

typedef struct cpu_allocation {
    uint64_t base, size;
    int32_t kind, device;
    uint64_t id;   /* counts up; CU_POINTER_ATTRIBUTE_BUFFER_ID */
    int32_t freed; /* a recently freed allocation, kept for the diagnosis of use after free */
} cpu_allocation;

/* Find the live allocation that contains the address. Called from kernels on the slow path of a bounds check,
 * by any thread at any time: never blocks on a lock that is held across a system call. Returns 1 or 0. */
int cpu_memory_find(uint64_t address, cpu_allocation *found);

/* The allocation (live or recently freed) nearest to an address, for diagnostics. Returns 1 or 0. */
int cpu_memory_nearest(uint64_t address, cpu_allocation *found);

#endif
