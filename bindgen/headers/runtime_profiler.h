#ifndef CODEGEN_RUNTIME_PROFILER_H
#define CODEGEN_RUNTIME_PROFILER_H
#include <driver_types.h>
/**
 * \brief Enable profiling
 *
 * Starts profile collection of the active profiling tool for the current device. Nothing happens when it is
 * already on.
 *
 * \return
 * ::cudaSuccess
 */
cudaError_t CUDARTAPI cudaProfilerStart(void);
/**
 * \brief Disable profiling
 *
 * Stops profile collection of the active profiling tool for the current device. Nothing happens when it is
 * already off.
 *
 * \return
 * ::cudaSuccess
 */
cudaError_t CUDARTAPI cudaProfilerStop(void);
#endif
