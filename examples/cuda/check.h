// What all of these programs use: end with the reason when a call fails, or a result is wrong.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t check_status = (call);                                                         \
        if (check_status != cudaSuccess) {                                                         \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                     \
                         cudaGetErrorString(check_status));                                        \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: this is not true: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)
