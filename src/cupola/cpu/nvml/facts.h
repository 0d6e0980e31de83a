/* What a model's board is like: facts of its data sheet, and of an H200 as its NVML told them. */
#ifndef CUPOLA_CPU_NVML_FACTS_H
#define CUPOLA_CPU_NVML_FACTS_H

#include <stdint.h>

struct board {
    const char *key;                               /* of the driver's model */
    unsigned architecture;                         /* NVML_DEVICE_ARCH_* */
    unsigned pci_device_id;                        /* device and vendor as PCI packs them */
    unsigned pci_generation;                       /* of PCI Express */
    unsigned cores;                                /* of a multiprocessor */
    unsigned idle_clock;                           /* MHz, of graphics and multiprocessors */
    unsigned video_clocks[2];                      /* MHz, idle and highest */
    unsigned idle_power, least_power, power_limit; /* mW */
};

const struct board *board_of(int ordinal);
uint64_t board_energy(int ordinal); /* mJ since the computer was started, at rest */

/* The same for all models: measured on an H200 at rest. */
enum {
    BOARD_RESERVED = 644939776, /* bytes of memory kept for the firmware */
    BOARD_TEMPERATURE = 41,     /* degrees Celsius */
    BOARD_SLOWDOWN = 89,
    BOARD_SHUTDOWN = 95,
    BOARD_MEMORY_MAX = 95,
    BOARD_GPU_MAX = 87,
    BOARD_PCI_WIDTH = 16,
};

#endif
