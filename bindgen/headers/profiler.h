#ifndef CODEGEN_PROFILER_H
#define CODEGEN_PROFILER_H
#include <cuda.h>
/**
 * Formats of the output of cuProfilerInitialize(), which is no longer there
 */
typedef enum CUoutput_mode_enum {
    CU_OUT_KEY_VALUE_PAIR = 0x00, /**< Key-value pairs */
    CU_OUT_CSV            = 0x01  /**< Comma-separated values */
} CUoutput_mode;
/**
 * \brief Enable profiling
 *
 * Starts profile collection of the active profiling tool for the current context. Nothing happens when it is
 * already on.
 *
 * \return
 * ::CUDA_SUCCESS,
 * ::CUDA_ERROR_INVALID_CONTEXT
 */
CUresult CUDAAPI cuProfilerStart(void);
/**
 * \brief Disable profiling
 *
 * Stops profile collection of the active profiling tool for the current context. Nothing happens when it is
 * already off.
 *
 * \return
 * ::CUDA_SUCCESS,
 * ::CUDA_ERROR_INVALID_CONTEXT
 */
CUresult CUDAAPI cuProfilerStop(void);
typedef CUresult (CUDAAPI *PFN_cuProfilerStart_v4000)(void);
typedef CUresult (CUDAAPI *PFN_cuProfilerStop_v4000)(void);
#endif
