/* The backstop behind the bounds checks: a memory fault in machine code becomes a fault of its launch.
 *
 * Device memory lies in a PROT_NONE arena, so an access that no check covers (or a check that is wrong) hits an
 * inaccessible page. The handler leaves the machine code by a long jump. Faults of anybody else go to the handler
 * that was there before, so Python's faulthandler and debuggers work as ever. */
#define _GNU_SOURCE
#include "fault.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

static _Thread_local sigjmp_buf *volatile escape; /* not NULL: this thread runs machine code */
static _Thread_local void *volatile fault_address;
static struct sigaction previous[2]; /* SIGSEGV, SIGBUS */

static void on_fault(int signal, siginfo_t *information, void *machine_context) {
    if (escape) {
        sigjmp_buf *target = escape;
        escape = NULL;
        fault_address = information->si_addr;
        siglongjmp(*target, 1);
    }
    const struct sigaction *before = &previous[signal == SIGBUS];
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(signal, information, machine_context);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(signal);
    } else {
        /* On return the instruction faults again and ends the process as it would have without us. */
        sigaction(signal, before, NULL);
    }
}

static void install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous[0]);
    sigaction(SIGBUS, &action, &previous[1]);
}

void cpu_guard_call(cpu_context *context, void (*f)(void *), void *argument) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    sigjmp_buf here;
    if (sigsetjmp(here, 0)) {
        cpu_site site = {.index = UINT32_MAX, .space = CPU_SPACE_GLOBAL};
        cpu_fault_raise_access(context, NULL, 0, CPU_FAULT_OUT_OF_BOUNDS, site, (uint64_t)(uintptr_t)fault_address,
                               0, NULL);
        return;
    }
    escape = &here;
    f(argument);
    escape = NULL;
}
