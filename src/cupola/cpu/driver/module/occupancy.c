/* Occupancy: how many blocks of a kernel a multiprocessor of the modeled GPU would hold (CUDA Driver API,
 * "Occupancy"; CUDA C++ Programming Guide, "Compute Capabilities").
 *
 * Four things limit it: threads, blocks, registers and shared memory. Registers are given to warps in lots of 256,
 * from the file of one of four partitions; shared memory in lots of 128 bytes (256 before compute capability 8.0),
 * with what the system reserves for each block. */
#include <limits.h>

#include "module.h"

enum { WARP = 32, PARTITIONS = 4, REGISTER_LOT = 256, MAX_BLOCK = 1024 };

static int least(int a, int b) { return a < b ? a : b; }

static int shared_lot(const struct model *model) { return model->major >= 8 ? 128 : 256; }

static int limit_by_registers(const cpu_kernel_info *info, const struct model *model, int warps) {
    if (!info->registers) return INT_MAX;
    int each = (int)round_up(info->registers * WARP, REGISTER_LOT);
    if (each * (int)round_up((unsigned)warps, PARTITIONS) > model->registers_per_block) return 0;
    return model->registers_per_multiprocessor / PARTITIONS / each * PARTITIONS / warps;
}

static int limit_by_shared(CUfunction function, const struct model *model, size_t dynamic_shared) {
    if (dynamic_shared > (size_t)function_max_dynamic_shared(function)) return 0;
    size_t asked = function->image_kernel->info->static_shared + dynamic_shared + (unsigned)model->shared_reserved;
    int used = (int)round_up(asked, (unsigned)shared_lot(model));
    return used ? model->shared_per_multiprocessor / used : INT_MAX;
}

/* Only the hardware counts here: with more threads than __launch_bounds__ allows, a GPU's driver says how many
 * blocks would fit, too, though it would refuse the launch. */
int occupancy_blocks(CUfunction function, int threads, size_t dynamic_shared) {
    const struct model *model = function->module->context->device->model;
    if (threads < 1 || threads > MAX_BLOCK) return 0;
    int warps = (threads + WARP - 1) / WARP;
    int blocks = least(model->blocks_per_multiprocessor, model->threads_per_multiprocessor / WARP / warps);
    blocks = least(blocks, limit_by_registers(function->image_kernel->info, model, warps));
    return least(blocks, limit_by_shared(function, model, dynamic_shared));
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

static CUresult enter_function(CUfunction handle, CUfunction *function) {
    CUcontext context;
    RETURN_IF(enter_context_to_ask(&context));
    return function_find(handle, context, function);
}

static CUresult check_flags(unsigned flags) {
    return flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE
               ? fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of the occupancy functions", flags)
               : CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int threads,
                                                              size_t dynamic_shared, unsigned flags) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    RETURN_IF(check_flags(flags));
    if (!blocks) return fail_null("numBlocks");
    if (threads < 1) return fail(CUDA_ERROR_INVALID_VALUE, "a block cannot have %d threads", threads);
    *blocks = occupancy_blocks(function, threads, dynamic_shared);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t dynamic_shared) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic_shared, 0);
}

/* The block size that keeps most threads resident; of equals the largest. */
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of_block, size_t dynamic_shared, int limit,
                                                   unsigned flags) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    RETURN_IF(check_flags(flags));
    if (!grid_size) return fail_null("minGridSize");
    if (!block_size) return fail_null("blockSize");
    const struct model *model = function->module->context->device->model;
    int most = function_max_threads(function);
    if (limit > 0) most = least(most, limit);
    int best_threads = 0, best_block = 0, best_blocks = 0;
    for (int size = (int)round_up((unsigned)most, WARP); size > 0; size -= WARP) {
        int block = least(size, most);
        int blocks = occupancy_blocks(function, block, shared_of_block ? shared_of_block(block) : dynamic_shared);
        if (blocks * block > best_threads) {
            best_threads = blocks * block;
            best_block = block;
            best_blocks = blocks;
        }
        if (best_threads == model->threads_per_multiprocessor) break;
    }
    *grid_size = best_blocks * context_multiprocessors(current_context());
    *block_size = best_block;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t dynamic_shared, int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid_size, block_size, function, shared_of_block, dynamic_shared,
                                                     limit, 0);
}

/* An even share of the multiprocessor's shared memory, but no more than a launch may ask for. As a GPU's driver does,
 * it leaves out what the system reserves for each block: a block of exactly that size may be one too many. */
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic_shared, CUfunction handle, int blocks, int threads) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    if (!dynamic_shared) return fail_null("dynamicSmemSize");
    if (threads < 1 || blocks < 1)
        return fail(CUDA_ERROR_INVALID_VALUE, "there is no occupancy of %d blocks of %d threads", blocks, threads);
    const struct model *model = function->module->context->device->model;
    int possible = occupancy_blocks(function, threads, 0);
    if (blocks > possible)
        return fail(CUDA_ERROR_INVALID_VALUE, "a multiprocessor holds at most %d blocks of %d threads of %s, not %d",
                    possible, threads, cpu_kernel_name(function->kernel), blocks);
    int each = model->shared_per_multiprocessor / blocks / shared_lot(model) * shared_lot(model);
    int left = each - (int)function->image_kernel->info->static_shared;
    *dynamic_shared = (size_t)(left < 0 ? 0 : least(left, function_max_dynamic_shared(function)));
    return CUDA_SUCCESS;
}

const struct entry occupancy_entries[] = {
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    ENTRY(cuOccupancyMaxPotentialBlockSize),
    ENTRY(cuOccupancyMaxPotentialBlockSizeWithFlags),
    ENTRY(cuOccupancyAvailableDynamicSMemPerBlock),
    {NULL, NULL, NULL},
};
