/* The times of calls. An entry point is a jump (inject/calls.c), so nothing of it runs when the function ends. So its return
 * address is replaced: it returns to code that notes the time and goes on to where the call came from. The addresses are
 * kept here, thread by thread, in the order of the calls: a function that a call calls back may call again. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/trace/trace.h"

enum { DEPTH = 32 }; /* calls within calls; those further inside are not recorded */

static _Thread_local struct frame {
    void *returns_to;
    const char *name;
    uint64_t begin, number, outside;
} frames[DEPTH];
static _Thread_local unsigned depth;
static _Thread_local uint64_t thread; /* the system's number of this one */

static _Atomic uint64_t next_number = 1;

__attribute__((visibility("hidden"))) extern char trace_return[];

void trace_call_begin(const char *name, void **returns_to) {
    /* Who calls this one is told by the address that it returns to (export_table.c). */
    if (depth == DEPTH || !strcmp(name, "cuGetExportTable")) return;
    struct frame *frame = &frames[depth++];
    *frame = (struct frame){*returns_to, name, clock_now(), atomic_fetch_add(&next_number, 1), trace_call};
    trace_call = frame->number;
    *returns_to = trace_return;
}

__attribute__((visibility("hidden"), used)) void *trace_call_ended(uint32_t status) {
    const uint64_t end = clock_now();
    struct frame *frame = &frames[--depth];
    trace_call = frame->outside;
    if (!thread) thread = (uint64_t)syscall(SYS_gettid);
    if (tracing())
        trace_add(&(struct trace_record){.kind = TRACE_CALL,
                                         .begin = frame->begin,
                                         .end = end,
                                         .call = frame->number,
                                         .place = thread,
                                         .name = frame->name,
                                         .device = -1,
                                         .status = (int32_t)status});
    return frame->returns_to;
}

/* The functions return a status in a register, which is kept. The stack is as it was before the call. */
#if defined(__x86_64__)
__asm__(".text\n.balign 16\n.globl trace_return\n.hidden trace_return\n.type trace_return, %function\ntrace_return:\n"
        "pushq %rax\npushq %rdx\nmovl %eax, %edi\ncall trace_call_ended\nmovq %rax, %r11\npopq %rdx\npopq %rax\n"
        "jmp *%r11\n.size trace_return, . - trace_return\n");
#elif defined(__aarch64__)
__asm__(".text\n.balign 16\n.globl trace_return\n.hidden trace_return\n.type trace_return, %function\ntrace_return:\n"
        "stp x0, x1, [sp, #-16]!\nbl trace_call_ended\nmov x30, x0\nldp x0, x1, [sp], #16\n"
        "ret\n.size trace_return, . - trace_return\n");
#else
#error "no way back for this processor"
#endif
