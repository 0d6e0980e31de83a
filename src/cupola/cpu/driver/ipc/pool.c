/* Memory pools for several processes (CUDA Driver API, "Stream Ordered Memory Allocator", cuMemPoolExport… and
 * cuMemPoolImport…).
 *
 * Such a pool keeps its memory in an anonymous file, whose descriptor is the handle that processes pass to each other.
 * Its first page says what the pool is; each allocation has pages of its own behind it, and is described to others by
 * their place in the file. So an importer maps just that piece, at an address that is free in its own arena, and the
 * kernels of both processes work on the same memory.
 *
 * The file lives as long as anybody has it open or mapped, whatever becomes of the process that made it. Places in the
 * file are not used for other allocations later: an importer that keeps freed memory mapped finds zeros there. */
#define _GNU_SOURCE
#include "ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };
static const char magic[8] = "cupPool1", pointer_magic[8] = "cupPtr_1";

struct header { /* the beginning of the file */
    char magic[8];
    uint8_t id[16];
    struct process maker;
    CUmemLocation location;
};

struct pool_share {
    int file;
    bool was_exported;
    uint64_t end; /* of what has been given out of the file */
    struct header header;
};

struct pointer_data { /* what is in a CUmemPoolPtrExportData */
    char magic[8];
    uint8_t pool[16];
    uint64_t offset, size;
};
_Static_assert(sizeof(struct pointer_data) <= sizeof(CUmemPoolPtrExportData), "the data must fit");

static uint64_t pages(uint64_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

/* ---- what pool_storage.c needs ------------------------------------------------------------------------ */

CUresult pool_share_create(CUmemoryPool pool) {
    struct pool_share *share = calloc(1, sizeof *share);
    if (!share) return no_memory("another memory pool");
    struct header header = {.maker = *this_process(), .location = pool->properties.location};
    memcpy(header.magic, magic, sizeof magic);
    random_bytes(header.id, sizeof header.id);
    share->header = header; /* whole: gcc takes the header's address for that of a field that was filled, and warns */
    share->end = PAGE;
    share->file = memfd_create("cupola-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* A file that could shrink would take mapped pages away from those who use them. */
    if (share->file < 0 || ftruncate(share->file, PAGE) || fcntl(share->file, F_ADD_SEALS, F_SEAL_SHRINK) ||
        pwrite(share->file, &share->header, sizeof share->header, 0) != sizeof share->header) {
        if (share->file >= 0) close(share->file);
        free(share);
        return fail(CUDA_ERROR_OPERATING_SYSTEM, "the system could not create memory that processes can share: %s.",
                    strerror(errno));
    }
    pool->share = share;
    return CUDA_SUCCESS;
}

int pool_share_obtain(CUmemoryPool pool, uint64_t size, uint64_t *address) {
    struct pool_share *share = pool->share;
    if (ftruncate(share->file, (off_t)(share->end + pages(size)))) return CPU_MEMORY_HOST_FULL;
    int status = cpu_memory_obtain_file(pool->device, pool->kind, size, share->file, share->end, pool, address);
    if (status == CPU_MEMORY_OK) share->end += pages(size);
    return status;
}

void pool_share_release(CUmemoryPool pool, uint64_t address) {
    uint64_t offset = cpu_memory_file_offset(address), room = cpu_memory_room(address);
    (void)cpu_memory_release(address);
    if (!pool->is_imported)
        (void)fallocate(pool->share->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)room);
}

void pool_share_free(CUmemoryPool pool) {
    if (!pool->share) return;
    close(pool->share->file);
    free(pool->share);
    pool->share = NULL;
}

/* ---- pools -------------------------------------------------------------------------------------------- */

static CUresult check_type(CUmemAllocationHandleType type, unsigned long long flags) {
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "handles of type %d are not known: the CPU device shares memory pools as POSIX file descriptors.",
                    (int)type);
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu.", flags);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
                                          unsigned long long flags) {
    RETURN_IF(enter_to_work());
    RETURN_IF(pool_check(pool));
    if (handle_out == NULL) return fail_null("handle_out");
    RETURN_IF(check_type(handleType, flags));
    if (!pool->share || pool->is_imported)
        return fail(CUDA_ERROR_INVALID_VALUE, "%s",
                    pool->is_imported
                        ? "the pool was imported from another process, and only that process can export it."
                        : "the pool was made for this process alone: create it with handleTypes set.");
    int file = fcntl(pool->share->file, F_DUPFD_CLOEXEC, 0);
    if (file < 0) return fail(CUDA_ERROR_OPERATING_SYSTEM, "no file descriptor is left: %s.", strerror(errno));
    *(int *)handle_out = file;
    pool->share->was_exported = true;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
                                            unsigned long long flags) {
    struct header header;
    struct device *device = NULL;
    int file = (int)(intptr_t)handle;
    RETURN_IF(enter_to_work());
    if (pool_out == NULL) return fail_null("pool_out");
    RETURN_IF(check_type(handleType, flags));
    if (pread(file, &header, sizeof header, 0) != sizeof header || memcmp(header.magic, magic, sizeof magic))
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not the file descriptor of an exported memory pool.", file);
    if (header.location.type == CU_MEM_LOCATION_TYPE_DEVICE) RETURN_IF(device_get(header.location.id, &device));
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = handleType, .location = header.location};
    struct pool_share *share = calloc(1, sizeof *share);
    CUmemoryPool pool = share ? pool_new(&properties) : NULL;
    int copy = pool ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy < 0) {
        free(share);
        if (!pool) return no_memory("another memory pool");
        handle_free(HANDLE_POOL, pool);
        return fail(CUDA_ERROR_OPERATING_SYSTEM, "no file descriptor is left: %s.", strerror(errno));
    }
    share->header = header;
    share->file = copy;
    pool->is_imported = true;
    pool->share = share;
    handle_publish(pool);
    *pool_out = pool;
    return CUDA_SUCCESS;
}

/* ---- allocations -------------------------------------------------------------------------------------- */

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr) {
    cpu_allocation found;
    RETURN_IF(enter_to_work());
    if (shareData_out == NULL) return fail_null("shareData_out");
    if (!cpu_memory_find(ptr, &found) || found.freeing)
        return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in any allocation.", (unsigned long long)ptr);
    CUmemoryPool pool = handle_was_live(found.owner, HANDLE_POOL) ? found.owner : NULL;
    if (!pool || !pool->share || pool->is_imported)
        return fail(CUDA_ERROR_INVALID_VALUE, "the memory at 0x%llx is not from a pool that this process can export.",
                    (unsigned long long)ptr);
    if (!pool->share->was_exported) // as an H200 refuses it
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the memory at 0x%llx is from a pool that was not exported yet: call "
                    "cuMemPoolExportToShareableHandle first.",
                    (unsigned long long)ptr);
    struct pointer_data data = {.offset = cpu_memory_file_offset(found.base), .size = found.size};
    memcpy(data.magic, pointer_magic, sizeof pointer_magic);
    memcpy(data.pool, pool->share->header.id, sizeof data.pool);
    memset(shareData_out, 0, sizeof *shareData_out);
    memcpy(shareData_out, &data, sizeof data);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData) {
    struct pointer_data data;
    struct stat about;
    uint64_t address;
    RETURN_IF(enter_to_work());
    RETURN_IF(pool_check(pool));
    if (ptr_out == NULL) return fail_null("ptr_out");
    if (shareData == NULL) return fail_null("shareData");
    if (!pool->is_imported)
        return fail(CUDA_ERROR_INVALID_VALUE, "allocations are imported from a pool that was imported itself.");
    if (is_this_process(&pool->share->header.maker))
        return fail(CUDA_ERROR_INVALID_VALUE, "the pool belongs to this process: its memory is not imported again.");
    memcpy(&data, shareData, sizeof data);
    if (memcmp(data.magic, pointer_magic, sizeof pointer_magic) ||
        memcmp(data.pool, pool->share->header.id, sizeof data.pool))
        return fail(CUDA_ERROR_INVALID_VALUE, "the data describe no allocation of this pool.");
    if (fstat(pool->share->file, &about) || data.size == 0 || data.offset % PAGE || data.offset < PAGE ||
        data.offset > (uint64_t)about.st_size || data.size > (uint64_t)about.st_size - data.offset)
        return fail(CUDA_ERROR_INVALID_VALUE, "the data describe an allocation that the pool does not have.");
    int status =
        cpu_memory_obtain_file(pool->device, pool->kind, data.size, pool->share->file, data.offset, pool, &address);
    if (status) return memory_refused(status, pool->device, data.size);
    pool_count_import(pool, data.size);
    *ptr_out = address;
    return CUDA_SUCCESS;
}

const struct entry ipc_pool_entries[] = {
    ENTRY(cuMemPoolExportToShareableHandle),
    ENTRY(cuMemPoolImportFromShareableHandle),
    ENTRY(cuMemPoolExportPointer),
    ENTRY(cuMemPoolImportPointer),
    {NULL, NULL, NULL},
};
