/* Device memory that is away: while a checkpoint of this process stands (driver/checkpoint). */
#ifndef CUPOLA_CPU_ABSENCE_H
#define CUPOLA_CPU_ABSENCE_H

#include <stdint.h>

/* Take the memory of all devices out of reach, and off what this process uses of them. Once, until it comes back. */
void cpu_memory_leave(void);

/* Bring it back: the place of device number d of `count` is places[d] from now on (usage.h). A cpu_memory_status: when it is not
 * CPU_MEMORY_OK, the system refused, and part of the memory is lost to the process. */
int cpu_memory_return(const int *places, int count);

/* Whether that is why an access to the address failed. */
int cpu_memory_is_away(uint64_t address);

/* Wait until it is back; in handlers of signals, too. */
void cpu_memory_wait(void);

#endif
