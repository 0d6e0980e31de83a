/* What the files about other processes (pool.c, event.c, memory.c) share. */
#ifndef CUPOLA_CPU_DRIVER_IPC_H
#define CUPOLA_CPU_DRIVER_IPC_H

#include "driver/memory/pool.h"

/* A process, as others know it. The number of a process that has ended may be given to another one, hence the time
 * when it began; the nonce tells it from processes that have the same number elsewhere (containers). */
struct process {
    uint8_t nonce[16];
    int64_t number;
    uint64_t began; /* clock ticks since the computer started */
};

const struct process *this_process(void);
bool is_this_process(const struct process *process);
bool process_is_alive(int64_t number, uint64_t began);

/* A descriptor for the file that the process has open as descriptor `file`, or -1. */
int open_file_of(const struct process *process, int file);

void random_bytes(void *target, size_t size);

/* Whether memory of another process is open here (cuIpcOpenMemHandle). */
bool ipc_memory_has_imports(void);

#endif
