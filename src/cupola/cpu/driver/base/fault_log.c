/* Kernels that failed, for whoever started the program: `cupola run --check memory` (cli/check.py) names a file, and each
 * context that a kernel has spoiled is a line of it. Programs need not ask for their errors to be told there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"
#include "fault_log.h"

void log_fault(CUresult status, const cpu_launch *launch) {
    const char *path = getenv("CUPOLA_FAULT_LOG"), *name = error_name(status);
    if (!path || !*path) return;
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) return; /* who asked for it is gone */
    /* One call, so that lines of several threads and processes do not mix. */
    dprintf(file, "%s %d %s\n", name ? name : "?", (int)getpid(), cpu_kernel_name(launch->kernel));
    close(file);
}
