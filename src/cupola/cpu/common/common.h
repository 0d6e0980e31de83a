/* What all rooms of the CPU device's C use, and which knows nothing of CUDA. */
#ifndef CUPOLA_CPU_COMMON_H
#define CUPOLA_CPU_COMMON_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define cpu_relax() __builtin_ia32_pause()
#else
#define cpu_relax() __asm__ volatile("yield")
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
