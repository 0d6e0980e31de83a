/* What an address is (CUDA Driver API, "Unified Addressing"). */
#include "pool.h"

enum { PAGE = 4096, NO_SYNC_MEMOPS = 2 /* in the flags of memory that is not the host's */ };

static bool is_host_accessible(const cpu_allocation *a) {
    return a->kind == CPU_MEMORY_PINNED || a->kind == CPU_MEMORY_MANAGED;
}

static bool is_registered(const cpu_allocation *a) { return a->kind == CPU_MEMORY_PINNED && !cpu_memory_owns(a->base); }

static CUmemoryPool pool_of(const cpu_allocation *a) {
    return handle_was_live(a->owner, HANDLE_POOL) && !((CUmemoryPool)a->owner)->is_graph ? a->owner : NULL;
}

/* Registered memory is mapped in whole pages. */
static uint64_t mapping_begin(const cpu_allocation *a) { return is_registered(a) ? a->base / PAGE * PAGE : a->base; }

static uint64_t mapping_size(const cpu_allocation *a) {
    const uint64_t end = a->base + a->size;
    return is_registered(a) ? (end + PAGE - 1) / PAGE * PAGE - mapping_begin(a) : a->size;
}

/* Store one attribute of an address in an allocation. */
static CUresult get(void *data, CUpointer_attribute attribute, uint64_t address, const cpu_allocation *a) {
    const bool pinned = a->kind == CPU_MEMORY_PINNED;
    switch ((int)attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *(CUcontext *)data = handle_was_live(a->owner, HANDLE_CONTEXT) ? a->owner : NULL;
            break;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(unsigned *)data = pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = address; break;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            *(void **)data = is_host_accessible(a) ? (void *)address : NULL;
            return is_host_accessible(a) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS: /* of GPUDirect, for which there are none */
            memset(data, 0, sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS));
            return pinned ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned *)data = !pinned && !(a->flags & NO_SYNC_MEMOPS); break;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *(unsigned long long *)data = a->id; break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)data = a->kind == CPU_MEMORY_MANAGED; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = a->device; break;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            *(unsigned *)data = a->kind == CPU_MEMORY_DEVICE && handle_was_live(a->owner, HANDLE_CONTEXT) &&
                                !(a->flags & MEMORY_IMPORTED);
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data = a->base; break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = a->size; break;
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *(CUdeviceptr *)data = mapping_begin(a); break;
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(size_t *)data = mapping_size(a); break;
        case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)data = 1; break;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            *(unsigned long long *)data = pool_of(a) ? pool_of(a)->properties.handleTypes : CU_MEM_HANDLE_TYPE_NONE;
            break;
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: *(unsigned *)data = 0; break;
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *(unsigned *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE; break;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)data = pool_of(a); break;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

/* What the plural form stores for an address that CUDA does not know: nothing where the answer would be a range, and
 * zeros. */
static CUresult get_unknown(void *data, CUpointer_attribute attribute, uint64_t address) {
    switch ((int)attribute) {
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: break;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(void **)data = (void *)address; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = CU_DEVICE_INVALID; break;
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(uint64_t *)data = 0; break;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *(unsigned *)data = 0; break;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
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
    CUresult status = cpu_memory_find(ptr, &found) ? get(data, attribute, ptr, &found) : CUDA_ERROR_INVALID_VALUE;
    return status ? refused(status, attribute, ptr) : CUDA_SUCCESS;
}

/* The plural form succeeds for every address. */
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr) {
    cpu_allocation found;
    RETURN_IF(enter());
    if (attributes == NULL) return fail_null("attributes");
    if (data == NULL) return fail_null("data");
    bool known = cpu_memory_find(ptr, &found);
    for (unsigned i = 0; i < numAttributes; i++) {
        if (data[i] == NULL) return fail_null("data[i]");
        if (attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
            return refused(CUDA_ERROR_NOT_SUPPORTED, attributes[i], ptr);
        CUresult status = known ? get(data[i], attributes[i], ptr, &found) : get_unknown(data[i], attributes[i], ptr);
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
    if (!cpu_memory_find(ptr, &found))
        return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not an address that CUDA knows.", (unsigned long long)ptr);
    /* Synchronous calls wait whatever the memory (see copy.c), so that this need only be remembered; of host memory it is not. */
    if (found.kind == CPU_MEMORY_PINNED) return CUDA_SUCCESS;
    const unsigned flag = *(const unsigned *)value ? 0 : NO_SYNC_MEMOPS;
    cpu_memory_set_flags(found.base, (found.flags & ~(unsigned)NO_SYNC_MEMOPS) | flag);
    return CUDA_SUCCESS;
}

const struct entry pointer_entries[] = {
    ENTRY(cuPointerGetAttribute),
    ENTRY(cuPointerGetAttributes),
    ENTRY(cuPointerSetAttribute),
    {NULL, NULL, NULL},
};
