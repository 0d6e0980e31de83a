/* The emulated NVML: the state of the modeled devices, as NVIDIA's management library tells it.
 *
 * One file per subject. It stands beside the runtime: above the driver, whose devices it shows, and needs no cuInit and
 * no context. How much a process uses of a device is read from the pages that all processes of this user on this computer
 * publish (engine/memory/usage.h), so a monitor sees the programs that run beside it. Functions that are not in these
 * files return NVML_ERROR_NOT_SUPPORTED, as a GPU without the feature does (lookup.c).
 *
 * NVML API Reference Guide: https://docs.nvidia.com/deploy/nvml-api. */
#ifndef CUPOLA_CPU_NVML_H
#define CUPOLA_CPU_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupola/nvml.h>

#include "nvml/facts.h"

/* ---- entry points (lookup.c) ----------------------------------------------------------------------------------- */

struct nvml_entry {
    const char *name;
    void *function;
};

/* A row of a file's table; it checks the function against the slot of its name in the table of the bindings. */
#define NVML_ENTRY(name)                                                                                          \
    {#name, __builtin_choose_expr(                                                                                \
                __builtin_types_compatible_p(typeof(&name), typeof(((cupola_nvml_table *)0)->name)), (void *)name, \
                (void)0 /* `name` has another signature than the table's slot */)}

/* A row for a name that newer headers do not have, so that there is no slot to compare with. */
#define NVML_OLDER_ENTRY(name) {#name, (void *)name}

void *nvml_lookup(const char *symbol);
size_t nvml_lookup_count(void);
const char *nvml_lookup_name(size_t index);

/* ---- sessions and devices (session.c, device.c) ---------------------------------------------------------------- */

nvmlReturn_t nvml_enter(void); /* NVML_ERROR_UNINITIALIZED before nvmlInit and after the last nvmlShutdown */

/* The ordinal of a device's handle; NVML_ERROR_UNINITIALIZED, NVML_ERROR_INVALID_ARGUMENT if it is not one, or
 * NVML_ERROR_GPU_IS_LOST. */
nvmlReturn_t nvml_device(nvmlDevice_t handle, int *ordinal);
nvmlDevice_t nvml_handle(int ordinal);
nvmlReturn_t nvml_presence(int ordinal); /* NVML_ERROR_GPU_IS_LOST when a test has taken the device away */

/* Begin an entry point of a device: find its ordinal, and refuse a null pointer for the answer. */
#define NVML_DEVICE(handle, ordinal, answer)                    \
    int ordinal;                                                \
    do {                                                        \
        nvmlReturn_t entered = nvml_device(handle, &ordinal);   \
        if (entered) return entered;                            \
        if (!(answer)) return NVML_ERROR_INVALID_ARGUMENT;      \
    } while (0)

/* Begin one whose answer is a record with a version: refuse an unknown version. */
#define NVML_VERSIONED(record, wanted) \
    if ((record)->version != (wanted)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH

/* Write a text with its NUL; NVML_ERROR_INSUFFICIENT_SIZE if there is not enough room. */
nvmlReturn_t nvml_text(char *target, unsigned size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Before a list of `found` items is filled, for which the caller has room for *count: store how many there are. Returns
 * NVML_SUCCESS if the list can be filled. */
nvmlReturn_t nvml_room(unsigned *count, unsigned found, const void *list);

/* ---- what processes use (census.c) ----------------------------------------------------------------------------- */

struct nvml_process {
    int64_t pid;
    uint64_t memory;             /* bytes of the device */
    unsigned kernels, transfers; /* per mille of the last second in which a kernel ran, or a copy or fill */
};

enum { NVML_MOST_PROCESSES = 256 }; /* in a list */

/* The processes that use a device now, by pid. */
struct nvml_census {
    unsigned count;
    struct nvml_process processes[NVML_MOST_PROCESSES];
};
void nvml_census(int ordinal, struct nvml_census *census);

struct nvml_fault {
    int device;
    int status; /* a CUresult, or CPU_USAGE_LOST */
};

/* Faults of kernels, since a watch began. Returns 1 and the next one, or 0: none yet. */
struct nvml_watch;
struct nvml_watch *nvml_watch_new(void);
int nvml_watch_next(struct nvml_watch *watch, struct nvml_fault *fault);
void nvml_watch_free(struct nvml_watch *watch);

#endif
