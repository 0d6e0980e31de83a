/* Statuses of NCCL, the sentences that explain them, and what NCCL_DEBUG lets it say. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nccl.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[TEXT_SIZE]; /* of the process, as NCCL's */

static enum debug_level debug_level(void) {
    static const char *const names[] = {"", "WARN", "INFO", "TRACE"};
    const char *wanted = getenv("NCCL_DEBUG");
    for (int i = 1; wanted && i < 4; i++)
        if (!strcasecmp(wanted, names[i])) return i > DEBUG_INFO ? DEBUG_INFO : (enum debug_level)i;
    return DEBUG_NONE;
}

/* On the standard output, as NCCL does. */
static void say(enum debug_level level, const char *text) {
    char host[64] = "", date[32] = "";
    const time_t now = time(NULL);
    struct tm local;
    gethostname(host, sizeof host - 1);
    if (localtime_r(&now, &local)) strftime(date, sizeof date, "[%Y-%m-%d %H:%M:%S] ", &local);
    CUcontext context = current_context();
    printf("%s%s:%d:%d [%d] NCCL %s %s\n", date, host, (int)getpid(), (int)syscall(SYS_gettid),
           context ? context->device->ordinal : 0, level == DEBUG_WARN ? "WARN" : "INFO", text);
    fflush(stdout);
}

void nccl_say(enum debug_level level, const char *format, ...) {
    if (debug_level() < level) return;
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    say(level, text);
}

ncclResult_t nccl_fail(ncclResult_t status, const char *format, ...) {
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    memcpy(last, text, sizeof last);
    pthread_mutex_unlock(&lock);
    if (debug_level() >= DEBUG_WARN) say(DEBUG_WARN, text);
    fail((CUresult)status, "%s", text);
    void (*tell)(const char *) = math_report;
    if (tell) tell(text);
    return status;
}

static ncclResult_t failure(CUresult status, const char *number) {
    char text[TEXT_SIZE];
    explain((int)status, text, sizeof text);
    const char *what = NULL;
    cuGetErrorString(status, &what);
    return nccl_fail(ncclUnhandledCudaError, "Cuda failure %s'%s'%s%s", number, what ? what : "unknown error",
                     *text ? ": " : "", text);
}

ncclResult_t nccl_status(CUresult status) { return likely(!status) ? ncclSuccess : failure(status, ""); }

/* NVIDIA's library calls the driver for memory, and the runtime, whose failures it tells without numbers, for the rest. */
ncclResult_t nccl_memory_status(CUresult status) {
    char number[16];
    if (likely(!status)) return ncclSuccess;
    snprintf(number, sizeof number, "%d ", (int)status);
    return failure(status, number);
}

const char *nccl_last_text(void) {
    static _Thread_local char copy[TEXT_SIZE];
    pthread_mutex_lock(&lock);
    memcpy(copy, last, sizeof copy);
    pthread_mutex_unlock(&lock);
    return copy;
}

static const char *ncclGetErrorString(ncclResult_t result) {
    switch ((int)result) {
        case ncclSuccess: return "no error";
        case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
        case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
        case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
        case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
        case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
        case ncclRemoteError: return "remote process exited or there was a network error";
        case ncclInProgress: return "NCCL operation in progress";
        case ncclTimeout: return "timeout";
        default: return "unknown result code";
    }
}

static const char *ncclGetLastError(ncclComm_t comm) {
    static _Thread_local char copy[TEXT_SIZE];
    if (!handle_acquire(comm, HANDLE_NCCL)) return nccl_last_text();
    comm_text(comm, copy);
    comm_release(comm);
    return *copy ? copy : nccl_last_text();
}

static ncclResult_t ncclGetVersion(int *version) {
    if (!version) return nccl_fail(ncclInvalidArgument, "GetVersion : version argument is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

#define NCCL_ENTRY(name) MATH_ENTRY(cupola_nccl_table, name)

const struct entry nccl_status_entries[] = {
    NCCL_ENTRY(ncclGetErrorString),
    NCCL_ENTRY(ncclGetLastError),
    NCCL_ENTRY(ncclGetVersion),
    {NULL, NULL, NULL},
};
