/* Memory functions for kernels: the heap, and copies and fills in the grid's streams. */
#include <stdlib.h>

#include "grid.h"

/* ---- the heap: that of malloc() ---------------------------------------------------------------------------------- */

ANSWER(Malloc) {
    if (!question->words[1]) return grid_error(question, cudaErrorInvalidValue);
    uint64_t address = cpu_heap_allocate(question->launch, question->words[1]);
    if (!address) return grid_error(question, cudaErrorMemoryAllocation);
    cpu_question_write(question, question->words[0], &address, sizeof address);
    return cudaSuccess;
}

ANSWER(Free) {
    uint64_t address = question->words[0];
    bool fine = !address || cpu_heap_free(question->launch, address);
    return grid_error(question, fine ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static struct accessor accessor_of(const cpu_question *question, bool is_fill) {
    return (struct accessor){question->launch->device, "the kernel's", is_fill};
}

static cudaError_t copy(cpu_question *question, CUDA_MEMCPY3D *form, int kind, uint64_t stream) {
    struct grid *grid = grid_of(question);
    struct accessor accessor = accessor_of(question, false);
    struct copy made;
    bool from_host, to_host;
    if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    form->srcMemoryType = form->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    if (copy_from_form(form, false, &accessor, &made, &from_host, &to_host) || from_host || to_host)
        return cudaErrorInvalidValue;
    struct op *op = op_new(OP_COPY, grid->op->context);
    if (!op) return cudaErrorMemoryAllocation;
    op->copy = made;
    return queue_submit(question, stream, op);
}

ANSWER(MemcpyAsync) {
    const uint64_t *words = question->words;
    CUDA_MEMCPY3D form = {
        .dstDevice = words[0], .srcDevice = words[1], .WidthInBytes = words[2], .Height = 1, .Depth = 1};
    return grid_error(question, copy(question, &form, (int)words[3], words[4]));
}

ANSWER(Memcpy2DAsync) {
    const uint64_t *words = question->words;
    CUDA_MEMCPY3D form = {.dstDevice = words[0],
                          .dstPitch = words[1],
                          .srcDevice = words[2],
                          .srcPitch = words[3],
                          .WidthInBytes = words[4],
                          .Height = words[5],
                          .Depth = 1};
    if (words[4] > words[1] || words[4] > words[3]) return grid_error(question, cudaErrorInvalidPitchValue);
    return grid_error(question, copy(question, &form, (int)words[6], words[7]));
}

ANSWER(Memcpy3DAsync) {
    struct cudaMemcpy3DParms given;
    if (!cpu_question_read(question, question->words[0], &given, sizeof given)) return cudaSuccess;
    if (given.srcArray || given.dstArray) return grid_error(question, cudaErrorInvalidValue);
    CUDA_MEMCPY3D form = {.srcDevice = (CUdeviceptr)given.srcPtr.ptr,
                          .srcPitch = given.srcPtr.pitch,
                          .srcHeight = given.srcPtr.ysize,
                          .srcXInBytes = given.srcPos.x,
                          .srcY = given.srcPos.y,
                          .srcZ = given.srcPos.z,
                          .dstDevice = (CUdeviceptr)given.dstPtr.ptr,
                          .dstPitch = given.dstPtr.pitch,
                          .dstHeight = given.dstPtr.ysize,
                          .dstXInBytes = given.dstPos.x,
                          .dstY = given.dstPos.y,
                          .dstZ = given.dstPos.z,
                          .WidthInBytes = given.extent.width,
                          .Height = given.extent.height,
                          .Depth = given.extent.depth};
    return grid_error(question, copy(question, &form, (int)given.kind, question->words[1]));
}

/* ---- fills ------------------------------------------------------------------------------------------------------- */

static cudaError_t fill(cpu_question *question, const struct fill *given, uint64_t stream) {
    struct fill made = *given;
    struct accessor accessor = accessor_of(question, true);
    if (fill_check(&made, false, &accessor)) return cudaErrorInvalidValue;
    struct op *op = op_new(OP_FILL, grid_of(question)->op->context);
    if (!op) return cudaErrorMemoryAllocation;
    op->fill = made;
    return queue_submit(question, stream, op);
}

ANSWER(MemsetAsync) {
    const uint64_t *words = question->words;
    struct fill made = {(char *)words[0], (uint8_t)words[1], 1, words[2], 1, 0};
    return grid_error(question, fill(question, &made, words[3]));
}

ANSWER(Memset2DAsync) {
    const uint64_t *words = question->words;
    struct fill made = {(char *)words[0], (uint8_t)words[2], 1, words[3], words[4], words[1]};
    return grid_error(question, fill(question, &made, words[5]));
}

/* Slice by slice; the rows of a slice are as many as the pointer says. */
ANSWER(Memset3DAsync) {
    const uint64_t *words = question->words;
    uint64_t pitch = words[1], rows = words[3], slice, width = words[5], height = words[6], depth = words[7];
    if (__builtin_mul_overflow(pitch, rows, &slice) || (depth > 1 && height > rows))
        return grid_error(question, cudaErrorInvalidValue);
    for (uint64_t z = 0; width && height && z < depth; z++) {
        struct fill made = {(char *)words[0] + z * slice, (uint8_t)words[4], 1, width, height, pitch};
        cudaError_t error = fill(question, &made, words[8]);
        if (error) return grid_error(question, error);
    }
    return cudaSuccess;
}
