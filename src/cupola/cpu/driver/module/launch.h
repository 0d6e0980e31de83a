/* Launches: what is checked of them, and their operations (launch.c, attribute.c, cluster.c, occupancy.c). */
#ifndef CUPOLA_CPU_DRIVER_LAUNCH_H
#define CUPOLA_CPU_DRIVER_LAUNCH_H

#include "driver/stream/stream.h"

struct op *op_new_kernel(CUfunction function, const void *params); /* copies function's param_bytes of parameters */
CUresult op_set_attributes(struct op *op, const struct launch_attributes *attributes); /* of a launch, with its grid */

/* Check a launch against the device's limits, compile the kernel for the block and make the operation. `where`: the context
 * that it is to run in, if that is a green one, or NULL. */
CUresult launch_prepare(CUfunction function, const unsigned grid[3], const unsigned block[3], unsigned dynamic_shared,
                        void **params, void **extra, const struct launch_attributes *attributes, CUcontext where,
                        struct op **op);
CUresult launch_read_attributes(const CUlaunchConfig *config, struct launch_attributes *attributes);
CUresult kernel_run(struct op *op);                   /* nothing else than the blocks of the grid */
uint64_t launch_resident_blocks(const struct op *op); /* at once, where it is to run */

/* One attribute by its number; those with a meaning of their own (events, device-updatable nodes) are not among them
 * (attribute.c). */
CUresult attribute_set(struct launch_attributes *attributes, CUlaunchAttributeID id,
                       const CUlaunchAttributeValue *value);
CUresult attribute_get(const struct launch_attributes *attributes, CUlaunchAttributeID id,
                       CUlaunchAttributeValue *value);

/* The cluster of a launch, {1, 1, 1} without one, and whether somebody asked for it; or what is wrong with it
 * (cluster.c). */
CUresult cluster_of_launch(CUfunction function, const struct launch_attributes *attributes, const uint32_t grid[3],
                           uint32_t cluster[3], uint8_t *is_explicit);

CUresult cluster_check_room(const struct op *op); /* CUDA_ERROR_INVALID_CLUSTER_SIZE: none where it is to run */

int occupancy_blocks(CUfunction function, int threads, size_t dynamic_shared); /* resident on a multiprocessor */

#endif
