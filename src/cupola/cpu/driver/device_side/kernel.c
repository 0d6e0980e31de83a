/* Kernels launched by kernels (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism"; cuda_device_runtime_api.h).
 *
 * A launch has two steps. The first asks for memory for the parameters, and says what is to be launched: everything that
 * can be wrong with it is found, and the kernel compiled, there. The thread writes the parameters, and the second step
 * puts the launch in a stream. */
#include "grid.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/memory.h"

enum { MOST_PARAMETERS = 32764, MOST_BYTES = 1 << 20 /* of a buffer, of which a kernel takes less */ };

struct buffer {
    struct buffer *next;
    uint64_t address;
    size_t size;
    struct op *op; /* the launch; NULL: not known before the second step */
};

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

CUfunction kernel_at(const cpu_question *question, uint64_t address) {
    CUmodule module = grid_of(question)->op->kernel.function->module;
    for (size_t i = 0; i < module->image->kernel_count; i++)
        if (CPU_CODE_WINDOW + module->image->kernels[i].info->code == address)
            return kernel_read(module->image, i) ? NULL : module->functions[i];
    return NULL;
}

static cudaError_t error_of(CUresult status) {
    switch ((int)status) {
        case CUDA_SUCCESS: return cudaSuccess;
        case CUDA_ERROR_OUT_OF_MEMORY: return cudaErrorMemoryAllocation;
        case CUDA_ERROR_INVALID_VALUE: return cudaErrorInvalidConfiguration;
        default: return (cudaError_t)status;
    }
}

struct shape {
    unsigned grid[3], block[3], shared;
};

static struct shape shape_of(const uint64_t *words) {
    return (struct shape){{(unsigned)words[0], (unsigned)words[1], (unsigned)words[2]},
                          {(unsigned)words[3], (unsigned)words[4], (unsigned)words[5]},
                          (unsigned)words[6]};
}

/* The launch of a kernel whose parameters are still to come. */
static cudaError_t prepare(cpu_question *question, uint64_t address, const struct shape *shape, struct op **op) {
    static const char zeros[MOST_PARAMETERS];
    const struct op *own = grid_of(question)->op;
    size_t size = sizeof zeros;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)zeros, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CUfunction function = kernel_at(question, address);
    if (!function) {
        cpu_question_fail(question, "0x%llx is launched, which is no kernel of this module",
                          (unsigned long long)address);
        return cudaErrorInvalidDeviceFunction;
    }
    return error_of(
        launch_prepare(function, shape->grid, shape->block, shape->shared, NULL, extra, NULL, own->kernel.green, op));
}

/* ---- buffers of parameters ----------------------------------------------------------------------------------------- */

static uint64_t buffer_new(const cpu_question *question, size_t size, struct op *op) {
    struct grid *grid = grid_of(question);
    struct buffer *buffer = malloc(sizeof *buffer);
    uint64_t room;
    if (!buffer) return 0;
    *buffer = (struct buffer){.op = op, .size = size ? size : 1};
    if (cpu_memory_obtain(question->launch->device, CPU_MEMORY_MODULE, buffer->size, NULL, &buffer->address, &room)) {
        free(buffer);
        return 0;
    }
    environments_lock();
    buffer->next = grid->buffers;
    grid->buffers = buffer;
    environments_unlock();
    return buffer->address;
}

/* Takes a buffer out of the grid's list; NULL: it is none. */
static struct buffer *buffer_take(struct grid *grid, uint64_t address) {
    environments_lock();
    struct buffer **place = &grid->buffers;
    while (*place && (*place)->address != address) place = &(*place)->next;
    struct buffer *found = *place;
    if (found) *place = found->next;
    environments_unlock();
    return found;
}

static void buffer_free(struct buffer *buffer) {
    cpu_memory_release(buffer->address);
    if (buffer->op) op_free(buffer->op);
    free(buffer);
}

void buffers_free(struct grid *grid) {
    for (struct buffer *next; grid->buffers; grid->buffers = next) {
        next = grid->buffers->next;
        buffer_free(grid->buffers);
    }
}

/* ---- answers ------------------------------------------------------------------------------------------------------- */

ANSWER(GetParameterBufferV2) {
    struct op *op;
    const struct shape shape = shape_of(question->words + 1);
    if (grid_error(question, prepare(question, question->words[0], &shape, &op))) return 0;
    uint64_t address = buffer_new(question, op->kernel.function->image_kernel->info->param_bytes, op);
    if (!address) {
        op_free(op);
        grid_error(question, cudaErrorMemoryAllocation);
    }
    return address;
}

ANSWER(GetParameterBuffer) {
    uint64_t address = question->words[1] > MOST_BYTES ? 0 : buffer_new(question, question->words[1], NULL);
    if (!address) grid_error(question, cudaErrorMemoryAllocation);
    return address;
}

static cudaError_t launch(cpu_question *question, struct buffer *buffer, uint64_t stream) {
    struct op *op = buffer->op;
    size_t size = op->kernel.function->image_kernel->info->param_bytes < buffer->size
                      ? op->kernel.function->image_kernel->info->param_bytes
                      : buffer->size;
    memcpy((void *)op->kernel.launch.params, (const void *)buffer->address, size);
    buffer->op = NULL;
    return queue_submit(question, stream, op);
}

static uint64_t refuse(cpu_question *question, uint64_t buffer) {
    return cpu_question_fail(
        question,
        "the launch was given the buffer of parameters 0x%llx, which cudaGetParameterBuffer did not "
        "return to a thread of this grid, or which was launched already",
        (unsigned long long)buffer);
}

ANSWER(LaunchDeviceV2) {
    struct buffer *buffer = buffer_take(grid_of(question), question->words[0]);
    if (!buffer) return refuse(question, question->words[0]);
    cudaError_t error = buffer->op ? launch(question, buffer, question->words[1]) : cudaErrorInvalidValue;
    buffer_free(buffer);
    return grid_error(question, error);
}

ANSWER(LaunchDevice) {
    const uint64_t *words = question->words;
    const struct shape shape = shape_of(words + 2);
    struct op *op;
    cudaError_t error = prepare(question, words[0], &shape, &op);
    if (error) return grid_error(question, error);
    if (!words[1]) return grid_error(question, queue_submit(question, words[9], op));
    struct buffer *buffer = buffer_take(grid_of(question), words[1]);
    if (!buffer || buffer->op) {
        op_free(op);
        if (buffer) buffer_free(buffer);
        return refuse(question, words[1]);
    }
    buffer->op = op;
    error = launch(question, buffer, words[9]);
    buffer_free(buffer);
    return grid_error(question, error);
}
