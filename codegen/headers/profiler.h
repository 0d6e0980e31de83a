#ifndef CODEGEN_PROFILER_H
#define CODEGEN_PROFILER_H
#include <cuda.h>
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
