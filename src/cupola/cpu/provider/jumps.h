/* A library of jumps: each exported symbol is one jump through a slot, which the first call fills.
 *
 * Before it includes this file, once, a library defines SYMBOLS, the file with its SYMBOL(name) lines, and
 *     static void *find_function(const char *symbol);
 * which gives the function to jump to. No call of the API passes more than two numbers in vector registers, which are
 * kept, with all that pass integers, while it runs. */
#include <stddef.h>
#include <stdint.h>

#define SYMBOL(name) #name,
static const char *const symbols[] = {
#include SYMBOLS
};
#undef SYMBOL

__attribute__((visibility("hidden"))) extern void *jump_slots[];

__attribute__((visibility("hidden"), used)) void *jump_fill(uint32_t index) {
    void *function = find_function(symbols[index]);
    __atomic_store_n(&jump_slots[index], function, __ATOMIC_RELEASE);
    return function;
}

/* The assembler counts the jumps as the array of names does. x16, x17 and r11 belong to nobody at a call. */
#if defined(__x86_64__)
#define JUMP "jmp *jump_slots + slot(%rip)\n"
#define FILL "movl $slot / 8, %r11d\njmp jump_first\n"
__asm__(".text\n.balign 16\n.type jump_first, %function\njump_first:\n"
        "pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\n"
        "subq $40, %rsp\nmovups %xmm0, (%rsp)\nmovups %xmm1, 16(%rsp)\n"
        "movl %r11d, %edi\ncall jump_fill\nmovq %rax, %r11\n"
        "movups (%rsp), %xmm0\nmovups 16(%rsp), %xmm1\naddq $40, %rsp\n"
        "popq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\n"
        "jmp *%r11\n.size jump_first, . - jump_first\n");
#elif defined(__aarch64__)
#define JUMP                                                                                                           \
    "adrp x16, jump_slots + slot\n"                                                                                    \
    "add x16, x16, :lo12:jump_slots + slot\n"                                                                          \
    "ldr x16, [x16]\n"                                                                                                 \
    "br x16\n"
#define FILL "mov w17, #slot / 8\nb jump_first\n"
__asm__(".text\n.balign 16\n.type jump_first, %function\njump_first:\n"
        "stp x29, x30, [sp, #-128]!\nmov x29, sp\n"
        "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\nstp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"
        "str x8, [sp, #80]\nstp q0, q1, [sp, #96]\n"
        "mov w0, w17\nbl jump_fill\nmov x16, x0\n"
        "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\nldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\n"
        "ldr x8, [sp, #80]\nldp q0, q1, [sp, #96]\n"
        "ldp x29, x30, [sp], #128\nbr x16\n.size jump_first, . - jump_first\n");
#else
#error "no jump for this processor"
#endif

#define SYMBOL(name)                                                                                                   \
    ".globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP ".size " #name ", . - " #name "\n"               \
    "fill_" #name ":\n" FILL ".set slot, slot + 8\n"
__asm__(".text\n.balign 16\n.set slot, 0\n"
#include SYMBOLS
);
#undef SYMBOL
#define SYMBOL(name) ".quad fill_" #name "\n"
__asm__(".section .data.rel.local, \"aw\"\n.balign 8\n.globl jump_slots\n.hidden jump_slots\njump_slots:\n"
#include SYMBOLS
        ".text\n");
#undef SYMBOL
