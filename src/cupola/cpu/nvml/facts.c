/* Facts of the boards, a row for each of the driver's models (driver/base/model.c). */
#include "nvml/facts.h"

#include <string.h>
#include <time.h>

#include "driver/base/base.h"
#include "nvml/nvml.h"

static const struct board boards[] = {
    {"h200", NVML_DEVICE_ARCH_HOPPER, 0x233510de, 5, 128, 345, {765, 1545}, 78510, 200000, 700000},
    {"h100", NVML_DEVICE_ARCH_HOPPER, 0x233010de, 5, 128, 345, {765, 1545}, 70000, 200000, 700000},
    {"a100", NVML_DEVICE_ARCH_AMPERE, 0x20b210de, 4, 64, 210, {585, 1275}, 55000, 100000, 400000},
    {"t4", NVML_DEVICE_ARCH_TURING, 0x1eb810de, 3, 64, 300, {540, 1470}, 9000, 60000, 70000},
    {"b200", NVML_DEVICE_ARCH_BLACKWELL, 0x290110de, 5, 128, 120, {600, 1545}, 140000, 200000, 1000000},
    {"l4", NVML_DEVICE_ARCH_ADA, 0x27b810de, 4, 128, 210, {795, 1770}, 16000, 40000, 72000},
    {"rtx5090", NVML_DEVICE_ARCH_BLACKWELL, 0x2b8510de, 5, 128, 180, {600, 2407}, 20000, 400000, 575000},
};

const struct board *board_of(int ordinal) {
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (!strcmp(boards[i].key, devices[ordinal].model->key)) return &boards[i];
    return &boards[0];
}

uint64_t board_energy(int ordinal) {
    struct timespec up;
    clock_gettime(CLOCK_BOOTTIME, &up);
    return (uint64_t)(board_of(ordinal)->idle_power * ((double)up.tv_sec + 1e-9 * (double)up.tv_nsec));
}
