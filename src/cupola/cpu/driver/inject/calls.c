/* How calls come to fail: what programs get as an entry point is a jump.
 *
 * Jump number i goes where its slot points to, which is the function itself as long as no rule is meant for it. Otherwise
 * it is the stub of the same number, which saves the registers that hold arguments, asks `decide` and either goes on to the
 * function or returns the status. The stubs also serve the trace of calls (trace/calls.c). So a function that nobody makes fail costs one more jump, also for those who asked for
 * its address long ago. Calls within the driver, such as those of the runtime, do not pass here: what counts is what the
 * program calls. */
#include <ctype.h>
#include <stdio.h>

#include "above.h"
#include "driver/trace/trace.h"
#include "inject.h"

enum { SLOTS = 2048 };
#define SLOTS_TEXT "2048"

struct call {
    void *function;
    CUresult (*failed)(CUresult);
    char name[64]; /* without version and variant */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct call calls[SLOTS];
static unsigned used;

/* Of the assembler's: where each jump goes to, and the jumps and stubs, all of one size. */
__attribute__((visibility("hidden"))) extern void *inject_slots[SLOTS];
__attribute__((visibility("hidden"))) extern char inject_jumps[], inject_stubs[];
enum { JUMP_SIZE = 16, STUB_SIZE = 16 };

/* What a stub is to do: go on to `function`, or, when that is NULL, return `status`. */
struct decision {
    void *function;
    uint64_t status;
};

/* The functions at whose beginning streams that take turns may get some: those that queue work, and those that ask whether
 * it is done. */
static bool polls(const char *name) { return strstr(name, "Query"); }

static bool is_point(const char *name) {
    static const char *const heads[] = {"Launch", "Memcpy", "Memset", "GraphLaunch", "StreamQuery", "EventQuery"};
    name += !strncmp(name, "cuda", 4) ? 4 : 2;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (!strncmp(name, heads[i], strlen(heads[i]))) return true;
    return false;
}

__attribute__((visibility("hidden"), used)) struct decision inject_decide(uint32_t index, void **returns_to) {
    const struct call *call = &calls[index];
    if (tracing()) trace_call_begin(call->name, returns_to);
    if (injects(INJECT_TURNS) && is_point(call->name)) turns_at_call(polls(call->name));
    CUresult status = injects(INJECT_CALL) ? inject_call(call->name) : CUDA_SUCCESS;
    if (!status) return (struct decision){call->function, 0};
    return (struct decision){NULL, call->failed ? call->failed(status) : status};
}

/* x16, x17 and r11 belong to nobody at a call, and no function of the API takes more than two numbers in vector
 * registers. */
#define SLOTS_OF_JUMPS                                                                                                 \
    ".section .bss\n.balign 64\n.globl inject_slots\n.hidden inject_slots\n.type inject_slots, %object\n"               \
    "inject_slots:\n.zero 8 * " SLOTS_TEXT "\n.size inject_slots, 8 * " SLOTS_TEXT "\n.text\n"
#if defined(__x86_64__)
__asm__(".text\n.balign 16\n.globl inject_jumps\n.hidden inject_jumps\n.type inject_jumps, %function\ninject_jumps:\n"
        ".set slot, 0\n.rept " SLOTS_TEXT "\n"
        "jmp *inject_slots + slot(%rip)\n.balign 16\n.set slot, slot + 8\n.endr\n"
        ".size inject_jumps, . - inject_jumps\n"
        ".globl inject_stubs\n.hidden inject_stubs\n.type inject_stubs, %function\ninject_stubs:\n"
        ".set slot, 0\n.rept " SLOTS_TEXT "\n"
        "movl $slot, %r11d\njmp inject_ask\n.balign 16\n.set slot, slot + 1\n.endr\n"
        ".size inject_stubs, . - inject_stubs\n"
        ".type inject_ask, %function\ninject_ask:\n"
        "pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\n"
        "subq $40, %rsp\nmovups %xmm0, (%rsp)\nmovups %xmm1, 16(%rsp)\n"
        "movl %r11d, %edi\nleaq 88(%rsp), %rsi\ncall inject_decide\nmovq %rax, %r11\nmovq %rdx, %rax\n"
        "movups (%rsp), %xmm0\nmovups 16(%rsp), %xmm1\naddq $40, %rsp\n"
        "popq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\n"
        "testq %r11, %r11\njz 1f\njmp *%r11\n1: ret\n.size inject_ask, . - inject_ask\n" SLOTS_OF_JUMPS);
#elif defined(__aarch64__)
__asm__(".text\n.balign 16\n.globl inject_jumps\n.hidden inject_jumps\n.type inject_jumps, %function\ninject_jumps:\n"
        ".set slot, 0\n.rept " SLOTS_TEXT "\n"
        "adrp x16, inject_slots + slot\nadd x16, x16, :lo12:inject_slots + slot\nldr x16, [x16]\nbr x16\n"
        ".set slot, slot + 8\n.endr\n.size inject_jumps, . - inject_jumps\n"
        ".globl inject_stubs\n.hidden inject_stubs\n.type inject_stubs, %function\ninject_stubs:\n"
        ".set slot, 0\n.rept " SLOTS_TEXT "\n"
        "mov w17, #slot\nb inject_ask\n.balign 16\n.set slot, slot + 1\n.endr\n"
        ".size inject_stubs, . - inject_stubs\n"
        ".type inject_ask, %function\ninject_ask:\n"
        "stp x29, x30, [sp, #-128]!\nmov x29, sp\n"
        "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\nstp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"
        "str x8, [sp, #80]\nstp q0, q1, [sp, #96]\n"
        "mov w0, w17\nadd x1, sp, #8\nbl inject_decide\nmov x16, x0\nmov x17, x1\n"
        "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\nldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\n"
        "ldr x8, [sp, #80]\nldp q0, q1, [sp, #96]\nldp x29, x30, [sp], #128\n"
        "cbz x16, 1f\nbr x16\n1: mov x0, x17\nret\n.size inject_ask, . - inject_ask\n" SLOTS_OF_JUMPS);
#else
#error "no jump for this processor"
#endif

/* Functions that return no status, or whose status is no failure of theirs. */
static const char *const never[] = {"cudaGetErrorName",    "cudaGetErrorString",    "cudaGetLastError",
                                    "cudaPeekAtLastError", "cudaCreateChannelDesc", "cuGetErrorName",
                                    "cuGetErrorString"};

/* Does it belong to the API, cuSomething or cudaSomething, and return a status? */
static bool returns_status(const char *symbol) {
    size_t head = !strncmp(symbol, "cuda", 4) ? 4 : !strncmp(symbol, "cu", 2) ? 2 : 0;
    if (!head || !isupper((unsigned char)symbol[head])) return false;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!strcmp(symbol, never[i])) return false;
    return true;
}

/* The name as people write it: without _v2, _ptsz and _ptds. */
static void plain_name(const char *symbol, char *name, size_t size) {
    snprintf(name, size, "%s", symbol);
    size_t length = strlen(name);
    if (length > 5 && (!strcmp(name + length - 5, "_ptsz") || !strcmp(name + length - 5, "_ptds")))
        name[length -= 5] = 0;
    if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' && isdigit((unsigned char)name[length - 1]))
        name[length - 3] = 0;
}

/* Is there something to do at a call of it? */
static bool asks(const char *name) {
    return tracing() || (injects(INJECT_CALL) && injection_names(name)) || (injects(INJECT_TURNS) && is_point(name));
}

static void set(unsigned index, bool meant) {
    void *to = meant ? inject_stubs + (size_t)index * STUB_SIZE : calls[index].function;
    __atomic_store_n(&inject_slots[index], to, __ATOMIC_RELEASE);
}

bool injectable_name(const char *symbol, char *name, size_t size) {
    if (!returns_status(symbol)) return false;
    plain_name(symbol, name, size);
    return true;
}

void *injectable(const char *symbol, void *function, CUresult (*failed)(CUresult)) {
    char name[sizeof calls->name];
    if (!function || !injectable_name(symbol, name, sizeof name)) return function;
    pthread_mutex_lock(&lock);
    unsigned index = 0;
    while (index < used && (calls[index].function != function || strcmp(calls[index].name, name))) index++;
    bool fits = index < SLOTS;
    if (fits && index == used) {
        calls[index].function = function;
        calls[index].failed = failed;
        memcpy(calls[index].name, name, sizeof name);
        used++;
        set(index, asks(name));
    }
    pthread_mutex_unlock(&lock);
    return fits ? inject_jumps + (size_t)index * JUMP_SIZE : function;
}

void injectable_update(void) {
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < used; i++) set(i, asks(calls[i].name));
    pthread_mutex_unlock(&lock);
}
