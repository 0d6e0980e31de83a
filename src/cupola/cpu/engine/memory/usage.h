/* What this process uses of the devices, where other processes can read it.
 *
 * A program such as `cupola top` shows the processes that use a device, as nvidia-smi does of a GPU. So the counters of
 * memory in use are not kept in this process alone: once the driver is initialized, they lie in a page of a file without
 * a name, which others find among the open files of this process (nvml/census.c). Nothing is left when the process ends.
 * Beside them are the time in which kernels and transfers ran, in slices of a second, and the last faults. */
#ifndef CUPOLA_CPU_USAGE_H
#define CUPOLA_CPU_USAGE_H

#include <stdint.h>

#define CPU_USAGE_NAME "cupola-usage"
#define CPU_USAGE_MAGIC UINT64_C(0x31656761737561) /* another one when the layout changes */

enum {
    CPU_USAGE_DEVICES = 64, /* CPU_MEMORY_DEVICES */
    CPU_USAGE_SLICES = 16,
    CPU_USAGE_SLICE = 62500000, /* ns: the slices are the last second */
    CPU_USAGE_FAULTS = 32,
};

/* The time in which one or more of a kind of operation ran. */
typedef struct cpu_usage_track {
    uint32_t running;
    uint64_t since; /* ns, when `running` became 1 */
    uint64_t total; /* ns */
    struct {
        uint64_t number; /* of the slice, counted from the start of the clock */
        uint64_t busy;   /* ns */
    } slices[CPU_USAGE_SLICES];
} cpu_usage_track;

struct cpu_usage_device {
    uint64_t contexts; /* that are active */
    uint64_t memory;   /* bytes */
    cpu_usage_track kernels, transfers;
};

enum { CPU_USAGE_LOST = -1 }; /* a status: the device is gone */

struct cpu_usage_fault {
    int32_t device, status; /* a CUresult, or the one above */
};

struct cpu_usage {
    uint64_t magic, size;
    int64_t pid;
    uint64_t began; /* ns, when the page was made: tells a process from a later one of the same number */
    struct cpu_usage_device devices[CPU_USAGE_DEVICES];
    uint64_t faults; /* how many there have been; fault[n % CPU_USAGE_FAULTS] is number n */
    struct cpu_usage_fault fault[CPU_USAGE_FAULTS];
};

extern struct cpu_usage *cpu_usage; /* of this process */

/* What this process uses of its device number `device`. It lies in the place of the modeled device that stands behind that
 * number, which is another one once the process has been restored there from a checkpoint (absence.h). */
extern int8_t cpu_usage_shift[CPU_USAGE_DEVICES]; /* from the number to the place */
#define cpu_usage_place(device) ((device) + cpu_usage_shift[device])
#define cpu_usage_of(device) (&cpu_usage->devices[cpu_usage_place(device)])

#define usage_load(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define usage_add(place, number) __atomic_fetch_add(place, number, __ATOMIC_RELAXED)

void cpu_usage_publish(void); /* at cuInit: from now on others can see it */
void cpu_usage_forget(void);  /* in a forked child: the counters are the parent's */

/* A kernel, copy or fill begins and ends, on any thread. */
void cpu_usage_begin(cpu_usage_track *track);
void cpu_usage_end(cpu_usage_track *track);

/* Per mille of the last second in which something ran. */
unsigned cpu_usage_share(const cpu_usage_track *track, uint64_t now);

/* A kernel has faulted. */
void cpu_usage_fault(int device, int status);

#endif
