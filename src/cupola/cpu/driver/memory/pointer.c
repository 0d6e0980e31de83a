/* What an address is (CUDA Driver API, "Unified Addressing"). */
#include "pool.h"

enum { SYNC_MEMOPS = 2 }; /* in the flags of device memory */

static bool is_host_accessible(const cpu_allocation *a) {
    return a->kind == CPU_MEMORY_PINNED || a->kind == CPU_MEMORY_MANAGED;
}

static CUmemoryPool pool_of(const cpu_allocation *a) {
    return handle_was_live(a->owner, HANDLE_POOL) && !((CUmemoryPool)a->owner)->is_graph ? a->owner : NULL;
}

/* Store one attribute. `known`: the address lies in an allocation, which is `a`; of any other address only
 * the attributes that have an answer for host memory are given, the rest is cleared. */
static CUresult get(void *data, CUpointer_attribute attribute, uint64_t address, const cpu_allocation *a, bool known) {
    CUresult unknown = known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *(CUcontext *)data = known && handle_was_live(a->owner, HANDLE_CONTEXT) ? a->owner : NULL;
            return unknown;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(unsigned *)data = !known ? 0 : a->kind == CPU_MEMORY_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
            return unknown;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = known ? address : 0; return unknown;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER: {
            bool host = known && is_host_accessible(a);
            *(void **)data = host ? (void *)address : NULL;
            return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        }
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            *(unsigned *)data = known && a->kind == CPU_MEMORY_DEVICE && a->flags & SYNC_MEMOPS;
            return unknown;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)data = known ? a->id : 0; return unknown;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *(unsigned *)data = known && a->kind == CPU_MEMORY_MANAGED;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = known ? a->device : -2; return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            *(unsigned *)data = known && a->kind == CPU_MEMORY_DEVICE && handle_was_live(a->owner, HANDLE_CONTEXT) &&
                                !(a->flags & MEMORY_IMPORTED);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *(CUdeviceptr *)data = known ? a->base : 0; return unknown;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(size_t *)data = known ? a->size : 0; return unknown;
        case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)data = known; return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            *(unsigned long long *)data =
                known && pool_of(a) ? pool_of(a)->properties.handleTypes : CU_MEM_HANDLE_TYPE_NONE;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(unsigned *)data = 0; return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            *(unsigned *)data =
                known ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
            return unknown;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)data = known ? pool_of(a) : NULL; return unknown;
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *(unsigned long long *)data = known ? a->id : 0; return unknown;
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: *(unsigned *)data = 0; return CUDA_SUCCESS;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult refused(CUresult status, CUpointer_attribute attribute, uint64_t address) {
    if (status == CUDA_ERROR_NOT_SUPPORTED)
        return fail(CUDA_ERROR_INVALID_VALUE, "an address has no attribute %d that can be asked for.", (int)attribute);
    return fail(status, "0x%llx is %s, so it has no attribute %d.", (unsigned long long)address,
                attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER ? "not memory that host and device share"
                                                               : "not an address that CUDA knows",
                (int)attribute);
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    cpu_allocation found;
    RETURN_IF(enter());
    if (data == NULL) return fail_null("data");
    bool known = cpu_memory_find(ptr, &found);
    CUresult status = get(data, attribute, ptr, &found, known);
    return status ? refused(status, attribute, ptr) : CUDA_SUCCESS;
}

/* The plural form succeeds for every address: what does not apply is cleared. */
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr) {
    cpu_allocation found;
    RETURN_IF(enter());
    if (attributes == NULL) return fail_null("attributes");
    if (data == NULL) return fail_null("data");
    bool known = cpu_memory_find(ptr, &found);
    for (unsigned i = 0; i < numAttributes; i++) {
        if (data[i] == NULL) return fail_null("data[i]");
        CUresult status = get(data[i], attributes[i], ptr, &found, known);
        if (status == CUDA_ERROR_NOT_SUPPORTED) return refused(status, attributes[i], ptr);
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr) {
    cpu_allocation found;
    RETURN_IF(enter());
    if (value == NULL) return fail_null("value");
    if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return fail(CUDA_ERROR_INVALID_VALUE, "attribute %d of an address cannot be set.", (int)attribute);
    if (!cpu_memory_find(ptr, &found) || found.kind != CPU_MEMORY_DEVICE)
        return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not device memory.", (unsigned long long)ptr);
    /* Synchronous calls wait whatever the memory (see copy.c), so that this need only be remembered. */
    unsigned flag = *(const unsigned *)value ? SYNC_MEMOPS : 0;
    cpu_memory_set_flags(found.base, (found.flags & ~(unsigned)SYNC_MEMOPS) | flag);
    return CUDA_SUCCESS;
}

const struct entry pointer_entries[] = {
    ENTRY(cuPointerGetAttribute),
    ENTRY(cuPointerGetAttributes),
    ENTRY(cuPointerSetAttribute),
    {NULL, NULL, NULL},
};
