/* Memory of cuMemAlloc for several processes (CUDA Driver API, cuIpcGetMemHandle, cuIpcOpenMemHandle).
 *
 * Allocations that share pages lie in a file without a name from the start (slabs.c): the handle says in which slot of
 * which chunk of it, and the other process uses that slot only, though it maps the chunk. Any other allocation belongs
 * to this process alone until a handle is made. Then its contents move to a file of its own, which is mapped at the
 * same address. Before that, the driver waits for work on the memory; other threads must not submit more meanwhile. */
#define _GNU_SOURCE
#include "ipc.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "cupMem_1";

struct memory_handle { /* what is in a CUipcMemHandle */
    char magic[4];
    int32_t file;
    struct process maker;
    uint64_t size, inode;
    uint32_t chunk; /* of the file, */
    /* And of the chunk: bytes / CPU_MEMORY_ALIGNMENT of its slots (0: the file is the allocation), and which. */
    uint16_t slot, index;
};
_Static_assert(sizeof(struct memory_handle) <= sizeof(CUipcMemHandle), "the handle must fit");

struct exported {
    struct exported *next;
    uint64_t base, id;
    int file;
};
struct imported {
    struct imported *next;
    struct memory_handle handle;
    uint64_t base, id;
    int device;
    size_t references;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct exported *exports;
static struct imported *imports;
static _Atomic bool any_exports;

static bool is_still(uint64_t base, uint64_t id) {
    cpu_allocation found;
    return cpu_memory_find(base, &found) && found.base == base && found.id == id;
}

void ipc_memory_freed(void) {
    if (likely(!atomic_load_explicit(&any_exports, memory_order_relaxed))) return;
    pthread_mutex_lock(&lock);
    for (struct exported **link = &exports; *link;) {
        struct exported *e = *link;
        if (is_still(e->base, e->id)) {
            link = &e->next;
            continue;
        }
        *link = e->next;
        close(e->file);
        free(e);
    }
    atomic_store(&any_exports, exports != NULL);
    pthread_mutex_unlock(&lock);
}

bool ipc_memory_has_imports(void) {
    pthread_mutex_lock(&lock);
    bool any = imports != NULL;
    pthread_mutex_unlock(&lock);
    return any;
}

/* Move the contents to a file that takes the place of the memory; -1: the system does not let us. */
static int move_to_file(uint64_t base, uint64_t room) {
    int file = memfd_create("cupola-memory", MFD_CLOEXEC);
    if (file < 0) return -1;
    bool moved = !ftruncate(file, (off_t)room);
    for (uint64_t done = 0; moved && done < room;) {
        ssize_t written = pwrite(file, (const char *)base + done, room - done, (off_t)done);
        moved = written > 0;
        if (moved) done += (uint64_t)written;
    }
    if (moved) moved = mmap((void *)base, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    if (moved) return file;
    close(file);
    return -1;
}

/* The export of an allocation, made when there is none. With the lock. */
static struct exported *export(const cpu_allocation *found) {
    for (struct exported *e = exports; e; e = e->next)
        if (e->base == found->base && e->id == found->id) return e;
    struct exported *made = malloc(sizeof *made);
    int file = made ? move_to_file(found->base, cpu_memory_room(found->base)) : -1;
    if (file < 0) {
        free(made);
        return NULL;
    }
    *made = (struct exported){.next = exports, .base = found->base, .id = found->id, .file = file};
    atomic_store(&any_exports, true);
    return exports = made;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    cpu_allocation found;
    struct stat about;
    RETURN_IF(enter_to_work());
    if (!pHandle) return fail_null("pHandle");
    if (!cpu_memory_find(dptr, &found) || found.freeing || found.kind != CPU_MEMORY_DEVICE ||
        !handle_was_live(found.owner, HANDLE_CONTEXT) || found.flags & MEMORY_IMPORTED)
        return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not memory that cuMemAlloc made in this process",
                    (unsigned long long)dptr);
    cpu_memory_slot slot = {.file = -1};
    int file;
    if (cpu_memory_slot_of(found.base, &slot)) {
        file = slot.file;
    } else {
        if (context_synchronize(found.owner) == CUDA_ERROR_NOT_READY) return CUDA_ERROR_NOT_READY;
        pthread_mutex_lock(&lock);
        const struct exported *e = export(&found);
        file = e ? e->file : -1;
        pthread_mutex_unlock(&lock);
    }
    if (file < 0 || fstat(file, &about))
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "the system could not create memory that processes can share");
    struct memory_handle handle = {.file = file,
                                   .maker = *this_process(),
                                   .size = found.size,
                                   .inode = (uint64_t)about.st_ino,
                                   .chunk = (uint32_t)(slot.offset / CPU_MEMORY_STEP),
                                   .slot = (uint16_t)(slot.size / CPU_MEMORY_ALIGNMENT),
                                   .index = (uint16_t)slot.index};
    memcpy(handle.magic, magic, sizeof handle.magic);
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

static CUresult map(CUcontext context, const struct memory_handle *handle, uint64_t *base) {
    struct stat about;
    cpu_memory_slot slot = {.offset = (uint64_t)handle->chunk * CPU_MEMORY_STEP,
                            .size = (uint32_t)handle->slot * CPU_MEMORY_ALIGNMENT,
                            .index = handle->index};
    uint64_t needed = slot.size ? slot.offset + CPU_MEMORY_STEP : handle->size;
    int device = context->device->ordinal, file = slot.file = open_file_of(&handle->maker, handle->file);
    bool same = file >= 0 && !fstat(file, &about) && (uint64_t)about.st_ino == handle->inode &&
                (uint64_t)about.st_size >= needed && handle->size;
    if (!same) {
        if (file >= 0) close(file);
        return fail(CUDA_ERROR_INVALID_HANDLE,
                    "the memory was freed, or process %lld, which made it, has ended or cannot be reached: it must be "
                    "of the same user and, with containers, in the same one",
                    (long long)handle->maker.number);
    }
    /* What cpu_memory_free gives back. */
    uint64_t charge = (handle->size + CPU_MEMORY_ALIGNMENT - 1) / CPU_MEMORY_ALIGNMENT * CPU_MEMORY_ALIGNMENT;
    int status = cpu_memory_charge(device, charge);
    if (!status) {
        if (slot.size) status = cpu_memory_obtain_slot(device, CPU_MEMORY_DEVICE, handle->size, &slot, context, base);
        else status = cpu_memory_obtain_file(device, CPU_MEMORY_DEVICE, handle->size, file, 0, context, base);
        if (status) cpu_memory_uncharge(device, charge);
    }
    close(file);
    if (status == CPU_MEMORY_UNKNOWN)
        return fail(CUDA_ERROR_INVALID_VALUE, "the bytes are not a handle from cuIpcGetMemHandle");
    if (status) return memory_refused(status, device, handle->size);
    cpu_memory_set_flags(*base, MEMORY_IMPORTED);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle opaque, unsigned int Flags) {
    CUcontext context;
    cpu_allocation found;
    struct memory_handle handle;
    RETURN_IF(enter_context(&context));
    if (!pdptr) return fail_null("pdptr");
    if (Flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of cuIpcOpenMemHandle", Flags);
    memcpy(&handle, &opaque, sizeof handle);
    if (memcmp(handle.magic, magic, sizeof handle.magic))
        return fail(CUDA_ERROR_INVALID_VALUE, "the bytes are not a handle from cuIpcGetMemHandle");
    if (is_this_process(&handle.maker))
        return fail(CUDA_ERROR_INVALID_CONTEXT, "the memory belongs to this process: use it directly");
    pthread_mutex_lock(&lock);
    struct imported *i = imports;
    while (i && (memcmp(&i->handle, &handle, sizeof handle) || i->device != context->device->ordinal ||
                 !is_still(i->base, i->id)))
        i = i->next;
    CUresult status = CUDA_SUCCESS;
    if (i) {
        i->references++;
    } else if (!(i = malloc(sizeof *i))) {
        status = no_memory("the bookkeeping");
    } else {
        *i = (struct imported){.next = imports, .handle = handle, .device = context->device->ordinal, .references = 1};
        status = map(context, &handle, &i->base);
        if (!status && cpu_memory_find(i->base, &found)) i->id = found.id;
        if (status) free(i);
        else imports = i;
    }
    if (!status) *pdptr = i->base;
    pthread_mutex_unlock(&lock);
    return status;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
    cpu_allocation found;
    RETURN_IF(enter_to_work());
    if (!cpu_memory_find(dptr, &found) || found.base != dptr || !(found.flags & MEMORY_IMPORTED))
        return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx was not returned by cuIpcOpenMemHandle",
                    (unsigned long long)dptr);
    CUcontext current = current_owner(); /* an H200's driver waits for both */
    if (context_synchronize(found.owner) == CUDA_ERROR_NOT_READY) return CUDA_ERROR_NOT_READY;
    if (current && current != found.owner && context_synchronize(current) == CUDA_ERROR_NOT_READY)
        return CUDA_ERROR_NOT_READY;
    pthread_mutex_lock(&lock);
    struct imported **link = &imports;
    while (*link && ((*link)->base != dptr || (*link)->id != found.id)) link = &(*link)->next;
    struct imported *i = *link;
    bool last = i && --i->references == 0;
    if (last) {
        *link = i->next;
        free(i);
        (void)cpu_memory_free(dptr);
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

const struct entry ipc_memory_entries[] = {
    ENTRY(cuIpcGetMemHandle),   ENTRY(cuIpcOpenMemHandle), ENTRY_AS(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle),
    ENTRY(cuIpcCloseMemHandle), {NULL, NULL, NULL},
};
