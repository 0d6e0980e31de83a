/* What the driver provides to the engine: who may access memory, who may call it, and the objects that kernels name by
 * value. */
#ifndef CUPOLA_CPU_ENGINE_ABOVE_H
#define CUPOLA_CPU_ENGINE_ABOVE_H

#include "engine.h"

/* Whether the kernels of a launch may access memory that is not their device's own, and whether a device is lost
 * (driver/memory/pool.c). */
struct cpu_allocation;
int cpu_driver_permits(const cpu_launch *launch, const struct cpu_allocation *allocation, int is_write);
int cpu_driver_lacks(int device);

/* The memory of all devices behind a range of addresses where a multicast object is mapped: how many there are, at most
 * CPU_MULTICAST_DEVICES, or 0 and a sentence (driver/memory/multicast.c). */
enum { CPU_MULTICAST_DEVICES = 16 };
int cpu_driver_multicast(const cpu_launch *launch, uint64_t address, uint64_t size, int is_write, void **places,
                         char *why, size_t room);

/* Forbid this thread to call the driver, or allow it again. Called around Python code that runs on a thread which a
 * kernel occupies: what the garbage collector destroys there must not wait for the kernel. Returns the value before
 * (driver/stream/op.c). */
int cpu_driver_forbid(int forbidden);

/* A thread's call of the device runtime, a number of device_calls.h: how many words its arguments are, and what it returns
 * (driver/device_side/answer.c). */
struct cpu_question;
uint32_t cpu_driver_words(uint32_t function);
uint64_t cpu_driver_answer(uint32_t function, struct cpu_question *question);

/* The clock of the modeled GPU in kHz (driver/base/device.c). */
uint32_t cpu_driver_clock(void);

/* The line of Python with a number of caller_here (driver/base/caller.h); NULL: not known. What it points to stays. */
const struct cpu_origin *cpu_driver_origin(uint32_t number);

/* The texture or surface of a CUtexObject or CUsurfObject; NULL if the 64 bits are not a live object. Takes no
 * lock. The result stays readable forever, so that a kernel that races with the destruction of its texture cannot
 * crash; the memory of its images must be looked up in the table of allocations, for it may have been freed before the
 * texture. */
struct cpu_texture;
const struct cpu_texture *cpu_texture_find(uint64_t object);
const struct cpu_texture *cpu_surface_find(uint64_t object);

#endif
