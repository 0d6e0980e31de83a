/* A libcuda.so.1 for programs that load the driver themselves: its functions are jumps to the CPU device's.
 *
 * numba, CuPy's loader and others open the driver with ctypes.CDLL("libcuda.so.1") or dlopen(), beside the bindings.
 * This library has the driver's name (DT_SONAME), and once it is in the process the dynamic linker gives it to
 * everybody who asks for that name. Each symbol that NVIDIA's driver exports is one jump through a slot, which
 * cpu/libcuda.py fills when it loads the library. Nothing of it is in a process that has not asked for it (`cupola run
 * --device cpu`). / */
#include <stddef.h>
#include <stdint.h>

#include "cupola/driver.h"

#define SYMBOL(name) #name,
static const char *const names[] = {
#include "libcuda_symbols.h"
};
#undef SYMBOL
enum { COUNT = sizeof names / sizeof *names };

__attribute__((visibility("hidden"), used)) void *cupola_libcuda_slots[COUNT];

static CUresult absent(void) { return CUDA_ERROR_NOT_SUPPORTED; }

/* Called once, before anybody else can have found the library. `find` gives NULL for what the CPU device lacks. */
__attribute__((visibility("default"))) void cupola_libcuda_bind(void *(*find)(const char *symbol)) {
    for (size_t i = 0; i < COUNT; i++) {
        void *function = find(names[i]);
        cupola_libcuda_slots[i] = function ? function : (void *)(uintptr_t)absent;
    }
}

/* The assembler counts the jumps as the array of names does. x16 and r11 belong to nobody at a call. */
#if defined(__x86_64__)
#define JUMP "jmp *cupola_libcuda_slots + slot(%rip)\n"
#elif defined(__aarch64__)
#define JUMP                                                                                                           \
    "adrp x16, cupola_libcuda_slots + slot\n"                                                                          \
    "add x16, x16, :lo12:cupola_libcuda_slots + slot\n"                                                                \
    "ldr x16, [x16]\n"                                                                                                 \
    "br x16\n"
#else
#error "no jump for this processor"
#endif
#define SYMBOL(name)                                                                                                   \
    ".globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP ".size " #name ", . - " #name "\n"               \
    ".set slot, slot + 8\n"
__asm__(".text\n.balign 16\n.set slot, 0\n"
#include "libcuda_symbols.h"
);
