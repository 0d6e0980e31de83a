/* What the rooms above provide to memory: arrays as sides of copies, captures, other processes. */
#ifndef CUPOLA_CPU_DRIVER_MEMORY_ABOVE_H
#define CUPOLA_CPU_DRIVER_MEMORY_ABOVE_H

#include "driver/stream/stream.h"
#include "engine/memory/memory.h"

/* One side of a copy that is an array (texture/copy_array.c): the address where its box begins and its distances,
 * checked. */
struct array_place {
    CUarray array;
    const char *role;
    size_t x, y, z; /* bytes, rows, slices or layers */
};
CUresult array_place_check(const struct array_place *place, const CUDA_MEMCPY3D *form, uint64_t *start, size_t *pitch,
                           size_t *slice);
CUresult array_texel(CUarray array, size_t *bytes);

/* Stream-ordered memory on a stream that captures: allocation and free nodes (graph/capture.c). */
CUresult capture_allocate(CUstream stream, CUmemoryPool pool, size_t size, uint64_t *address);
CUresult capture_free(CUstream stream, uint64_t address);

/* Memory of pools that processes share (ipc/pool.c). The last three with the pool's lock, or while no other thread has
 * the pool. */
CUresult pool_share_create(CUmemoryPool pool);
int pool_share_obtain(CUmemoryPool pool, uint64_t size, uint64_t *address);
void pool_share_release(CUmemoryPool pool, uint64_t address);
void pool_share_free(CUmemoryPool pool);

void ipc_memory_freed(void); /* after memory of cuMemAlloc was freed (ipc/memory.c) */

#endif
