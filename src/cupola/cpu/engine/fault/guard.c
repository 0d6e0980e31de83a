/* The backstop behind the bounds checks: a memory fault in machine code becomes a fault of its launch, and one in a copy
 * or fill an error.
 *
 * Device memory lies in a PROT_NONE arena, so an access that no check covers (or a check that is wrong) hits an
 * inaccessible page. The handler leaves the machine code by a long jump. Faults of anybody else go to the handler
 * that was there before, so Python's faulthandler and debuggers work as ever; so do those in Python and LLVM, which the
 * engine calls for an independent body. Launches that are to end (stop.c) leave the machine code in the same way. */
#define _GNU_SOURCE
#include "common/thread.h"
#include "engine/checks/host.h"
#include "engine/memory/absence.h"
#include "engine/memory/memory.h"
#include "fault.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

static _Thread_local sigjmp_buf *volatile escape; /* not NULL: this thread runs machine code, or accesses memory */
static _Thread_local void *volatile fault_address;
static _Thread_local volatile bool accesses; /* this thread is in cpu_guard_access() */
static struct sigaction previous[2];         /* SIGSEGV, SIGBUS */
static struct sigaction before_stop;
enum { LEFT_BY_FAULT = 1, LEFT_BY_STOP };

/* ---- pages that are lent -------------------------------------------------------------------------------------------- */

/* A library that calculates with threads of its own cannot be left by a jump: it holds locks, and its threads are no
 * one's here. If memory is freed while it is at work, it gets pages of zeros in its place, until it is done. */
static atomic_int borrowers;
static _Atomic uint64_t lent_low = UINT64_MAX, lent_high; /* what has been lent lies in [low, high) */
static _Atomic uint64_t lent_pages;                       /* how many, ever */
enum { LENT_PAGE = 4096 };

/* In the handler: whether the access can be tried again. A page that has memory behind it again stays as it is. */
static bool lend_page(uint64_t address) {
    uint64_t page = address & ~(uint64_t)(LENT_PAGE - 1), low = atomic_load(&lent_low), high = atomic_load(&lent_high);
    if (!atomic_load(&borrowers) || !cpu_memory_owns(address)) return false;
    if (mprotect((void *)page, LENT_PAGE, PROT_READ | PROT_WRITE)) return false;
    while (page < low && !atomic_compare_exchange_weak(&lent_low, &low, page)) {
    }
    while (page + LENT_PAGE > high && !atomic_compare_exchange_weak(&lent_high, &high, page + LENT_PAGE)) {
    }
    atomic_fetch_add(&lent_pages, 1);
    return true;
}

uint64_t cpu_guard_lend(void) {
    cpu_guard_start();
    atomic_fetch_add(&borrowers, 1);
    return atomic_load(&lent_pages);
}

_Bool cpu_guard_take_back(uint64_t before, uint64_t low, uint64_t high) {
    bool lent = atomic_load(&lent_pages) != before && atomic_load(&lent_low) < high && atomic_load(&lent_high) > low;
    if (atomic_fetch_sub(&borrowers, 1) == 1 && atomic_load(&lent_high)) {
        uint64_t from = atomic_exchange(&lent_low, UINT64_MAX), to = atomic_exchange(&lent_high, 0);
        if (from < to) cpu_memory_close(from, to);
    }
    return lent;
}

/* ---- signals -------------------------------------------------------------------------------------------------------- */

#if defined(__aarch64__)
enum { ESR_MAGIC = 0x45535201, ESR_WRITES = 1 << 6 };
#else
enum { ERROR_WRITES = 1 << 1 };
#endif

/* Whether the access that failed was a write. */
static bool is_write(const void *machine_context) {
    const ucontext_t *context = machine_context;
#if defined(__x86_64__)
    return context->uc_mcontext.gregs[REG_ERR] & ERROR_WRITES;
#else
    const struct _aarch64_ctx *part = (const struct _aarch64_ctx *)context->uc_mcontext.__reserved;
    for (; part->magic; part = (const struct _aarch64_ctx *)((const char *)part + part->size))
        if (part->magic == ESR_MAGIC) return ((const struct esr_context *)part)->esr & ESR_WRITES;
    return true;
#endif
}

/* Whether the access that failed may be tried again; does not return where it ends a launch. */
static bool is_mended(siginfo_t *information, void *machine_context) {
    if (cpu_memory_is_away((uint64_t)(uintptr_t)information->si_addr)) {
        cpu_memory_wait();
        return true;
    }
    if (cpu_host_faulted((uint64_t)(uintptr_t)information->si_addr, is_write(machine_context),
                         escape || cpu_moment_now))
        return true;
    if (escape && (!accesses || cpu_memory_owns((uint64_t)(uintptr_t)information->si_addr))) {
        sigjmp_buf *target = escape;
        escape = NULL;
        fault_address = information->si_addr;
        siglongjmp(*target, LEFT_BY_FAULT);
    }
    return !escape && lend_page((uint64_t)(uintptr_t)information->si_addr);
}

static void on_fault(int signal, siginfo_t *information, void *machine_context) {
    bool is_sent = information->si_code <= 0; /* by kill(): no access has failed */
    if (!is_sent && is_mended(information, machine_context)) return;
    const struct sigaction *before = &previous[signal == SIGBUS];
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(signal, information, machine_context);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(signal);
    } else {
        /* On return the instruction faults again and ends the process as it would have without us. */
        sigaction(signal, before, NULL);
        if (is_sent) raise(signal);
    }
}

/* Where a thread was when the signal came. */
static uintptr_t place_of(const void *machine_context) {
    const ucontext_t *context = machine_context;
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

/* A launch is to end: leave it if the thread is in its machine code, where no lock is held. */
static void on_stop(int signal, siginfo_t *information, void *machine_context) {
    sigjmp_buf *target = escape;
    const cpu_job *job = target ? cpu_stop_current() : NULL;
    if (job && job->stop) {
        uintptr_t place = place_of(machine_context);
        for (int i = 0; i < CPU_BODIES; i++) {
            if (place < job->code[i].begin || place >= job->code[i].end) continue;
            escape = NULL;
            siglongjmp(*target, LEFT_BY_STOP);
        }
    }
    if (before_stop.sa_flags & SA_SIGINFO) before_stop.sa_sigaction(signal, information, machine_context);
    else if (before_stop.sa_handler != SIG_DFL && before_stop.sa_handler != SIG_IGN && !job)
        before_stop.sa_handler(signal);
}

void cpu_guard_install_stop(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_stop;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(STOP_SIGNAL, &action, &before_stop);
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

void cpu_guard_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

void cpu_guard_call(cpu_context *context, void (*f)(void *), void *argument) {
    cpu_guard_start();
    sigjmp_buf here;
    int left = sigsetjmp(here, 0);
    if (left == LEFT_BY_STOP) {
        cpu_stop_raise(context);
        return;
    }
    if (left) {
        cpu_site site = {.index = UINT32_MAX, .space = CPU_SPACE_GLOBAL};
        cpu_fault_raise_access(context, NULL, 0, CPU_FAULT_OUT_OF_BOUNDS, site, (uint64_t)(uintptr_t)fault_address, 0,
                               NULL);
        return;
    }
    escape = &here;
    f(argument);
    escape = NULL;
}

_Bool cpu_guard_access(void (*f)(void *), void *argument) {
    cpu_guard_start();
    sigjmp_buf here, *const around = escape;
    const bool before = accesses;
    bool fine = !sigsetjmp(here, 0);
    if (fine) {
        accesses = true;
        escape = &here;
        f(argument);
    }
    escape = around;
    accesses = before;
    return fine;
}

void *cpu_guard_pause(void) {
    void *paused = escape;
    escape = NULL;
    return paused;
}

void cpu_guard_resume(void *paused) { escape = paused; }
