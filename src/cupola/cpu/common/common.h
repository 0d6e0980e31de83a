/* What all rooms of the CPU device's C use, and which knows nothing of CUDA. */
#ifndef CUPOLA_CPU_COMMON_H
#define CUPOLA_CPU_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#define cpu_relax() __builtin_ia32_pause()
#else
#define cpu_relax() __asm__ volatile("yield")
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Whether something is checked or watched (engine/checks), which it rarely is. A build with -DCUPOLA_WITHOUT_CHECKS never asks:
 * benchmarks/cpu_device/without_checks.py shows by it what asking costs. */
#ifdef CUPOLA_WITHOUT_CHECKS
#define asked(x) ((void)sizeof(x), false)
#else
#define asked(x) unlikely(x)
#endif

/* The next multiple of the unit. */
static inline uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

/* Nanoseconds since some time (CLOCK_MONOTONIC). */
static inline uint64_t clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
