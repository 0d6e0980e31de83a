/* Accesses of the host to pinned and managed memory, while races are checked (host.c). */
#ifndef CUPOLA_CPU_HOST_H
#define CUPOLA_CPU_HOST_H

#include "moments.h"

/* An operation begins, and ends: in between, its thread and those that help it may access all memory. */
void cpu_host_begin(void);
void cpu_host_end(void);

/* In between: a launch is over, or an operation has accessed a range. */
void cpu_host_launched(const cpu_launch *launch);
void cpu_host_touched(const cpu_moment *moment, uint64_t address, uint64_t size);

/* Whether memory of the host is among the parameters of a launch, or at an address. */
bool cpu_host_is_given(const cpu_launch *launch);
bool cpu_host_is_at(uint64_t address);

/* In the handler of a memory fault, whether it was an access of the host that is to be tried again; of nobody else's,
 * where `is_own` says that the thread works for a stream. */
bool cpu_host_faulted(uint64_t address, bool is_write, bool is_own);

/* Tell what has been found so far. Without locks; may take the GIL. */
void cpu_host_tell(void);

#endif
