/* The GPUs that the CPU device can stand for, as data: what cuDeviceGetAttribute and the occupancy rules report of
 * them (CUDA C++ Programming Guide, "Compute Capabilities", and the devices themselves). */
#include "internal.h"

#define KIB *1024
#define MIB *1024 * 1024

const struct model models[] = {
    {
        .key = "h200", .name = "cupola CPU device (H200 model)", .major = 9, .minor = 0, .multiprocessors = 132,
        .threads_per_multiprocessor = 2048, .blocks_per_multiprocessor = 32,
        .registers_per_multiprocessor = 65536, .registers_per_block = 65536,
        .shared_per_multiprocessor = 228 KIB, .shared_per_block = 48 KIB, .shared_per_block_optin = 227 KIB,
        .shared_reserved = 1 KIB, .memory = 150109880320, .l2_cache = 60 MIB, .l2_persisting = 39321600,
        .access_window = 134213632, .clock = 1980000, .memory_clock = 3201000, .memory_bus = 6144,
        .double_ratio = 2, .copy_engines = 3,
    },
    {
        .key = "h100", .name = "cupola CPU device (H100 model)", .major = 9, .minor = 0, .multiprocessors = 132,
        .threads_per_multiprocessor = 2048, .blocks_per_multiprocessor = 32,
        .registers_per_multiprocessor = 65536, .registers_per_block = 65536,
        .shared_per_multiprocessor = 228 KIB, .shared_per_block = 48 KIB, .shared_per_block_optin = 227 KIB,
        .shared_reserved = 1 KIB, .memory = 85029158912, .l2_cache = 50 MIB, .l2_persisting = 32768000,
        .access_window = 134213632, .clock = 1980000, .memory_clock = 2619000, .memory_bus = 5120,
        .double_ratio = 2, .copy_engines = 3,
    },
    {
        .key = "a100", .name = "cupola CPU device (A100 model)", .major = 8, .minor = 0, .multiprocessors = 108,
        .threads_per_multiprocessor = 2048, .blocks_per_multiprocessor = 32,
        .registers_per_multiprocessor = 65536, .registers_per_block = 65536,
        .shared_per_multiprocessor = 164 KIB, .shared_per_block = 48 KIB, .shared_per_block_optin = 163 KIB,
        .shared_reserved = 1 KIB, .memory = 85031714816, .l2_cache = 40 MIB, .l2_persisting = 31457280,
        .access_window = 134213632, .clock = 1410000, .memory_clock = 1593000, .memory_bus = 5120,
        .double_ratio = 2, .copy_engines = 3,
    },
    {
        .key = "t4", .name = "cupola CPU device (T4 model)", .major = 7, .minor = 5, .multiprocessors = 40,
        .threads_per_multiprocessor = 1024, .blocks_per_multiprocessor = 16,
        .registers_per_multiprocessor = 65536, .registers_per_block = 65536,
        .shared_per_multiprocessor = 64 KIB, .shared_per_block = 48 KIB, .shared_per_block_optin = 64 KIB,
        .shared_reserved = 0, .memory = 15835660288, .l2_cache = 4 MIB, .l2_persisting = 0, .access_window = 0,
        .clock = 1590000, .memory_clock = 5001000, .memory_bus = 256, .double_ratio = 32, .copy_engines = 3,
    },
    {
        .key = "b200", .name = "cupola CPU device (B200 model)", .major = 10, .minor = 0, .multiprocessors = 148,
        .threads_per_multiprocessor = 2048, .blocks_per_multiprocessor = 32,
        .registers_per_multiprocessor = 65536, .registers_per_block = 65536,
        .shared_per_multiprocessor = 228 KIB, .shared_per_block = 48 KIB, .shared_per_block_optin = 227 KIB,
        .shared_reserved = 1 KIB, .memory = 191502483456, .l2_cache = 126 MIB, .l2_persisting = 82575360,
        .access_window = 134213632, .clock = 1965000, .memory_clock = 3996000, .memory_bus = 8192,
        .double_ratio = 2, .copy_engines = 4,
    },
};
const size_t model_count = sizeof models / sizeof *models;

const struct model *model_find(const char *key) {
    for (size_t i = 0; i < model_count; i++)
        if (!strcmp(models[i].key, key)) return &models[i];
    return NULL;
}
