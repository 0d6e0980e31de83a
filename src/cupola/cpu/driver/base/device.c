/* Devices: their attributes, names and addresses, and which may reach which (CUDA Driver API, "Device Management",
 * "Peer Context Memory Access"). */
#include <stdio.h>
#include <stdlib.h>

#include "base.h"
#include "engine/above.h"
#include "engine/memory/usage.h"

struct device devices[MAX_DEVICES];
int device_count, devices_present;

CUresult device_get(CUdevice ordinal, struct device **device) {
    RETURN_IF(enter());
    if (ordinal < 0 || ordinal >= device_count)
        return fail(CUDA_ERROR_INVALID_DEVICE, "there is no device %d: the CPU device was set up with %d device%s%s",
                    ordinal, devices_present, devices_present == 1 ? "" : "s",
                    device_count < devices_present ? ", of which CUDA_VISIBLE_DEVICES hides some" : "");
    *device = &devices[ordinal];
    return CUDA_SUCCESS;
}

uint32_t cpu_driver_clock(void) { return (uint32_t)devices[0].model->clock; }

/* What all models have in common. An attribute that is not here nor in device_attribute() is reported as 0: the
 * feature behind it is not emulated. */
static const int common[CU_DEVICE_ATTRIBUTE_MAX] = {
    [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
    [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
    [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
    [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
    [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = 2147483647,
    [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
    [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
    [CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 65536,
    [CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
    [CU_DEVICE_ATTRIBUTE_MAX_PITCH] = 2147483647,
    [CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = 512,
    [CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = 32,
    [CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT] = 512,
    [CU_DEVICE_ATTRIBUTE_GPU_OVERLAP] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
    [CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
    [CU_DEVICE_ATTRIBUTE_ECC_ENABLED] = 1,
    [CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
    [CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1,
    [CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 1,
    [CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] = 1,
    [CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST] = 1,
    [CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES] = 1,
    [CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES] = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    [CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1] = 1,
    [CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] = 1,
    [CU_DEVICE_ATTRIBUTE_NUMA_ID] = -1,
    [CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] = 0,
    [CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER] = 1,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH] = 131072,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH] = 268435456,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS] = 2048,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH] = 131072,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT] = 65536,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH] = 131072,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT] = 65000,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH] = 2097120,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS] = 2048,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH] = 16384,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT] = 16384,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH] = 16384,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE] = 8192,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE] = 8192,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS] = 2046,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS] = 2048,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH] = 131072,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT] = 65536,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS] = 2048,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH] = 16384,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT] = 16384,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH] = 16384,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH] = 32768,
    [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS] = 2046,
};

enum { PCI_BUS_OF_FIRST = 0x10 }; /* the device in place n is on bus 0x10 + n, slot 0, of domain 0 */

int device_bus(int place) { return PCI_BUS_OF_FIRST + place; }

int device_attribute(const struct device *device, CUdevice_attribute attribute) {
    const struct model *model = device->model;
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return model->major;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return model->minor;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return model->multiprocessors;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return model->threads_per_multiprocessor;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return model->blocks_per_multiprocessor;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return model->registers_per_multiprocessor;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: return model->registers_per_block;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return model->shared_per_block;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return model->shared_per_block_optin;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return model->shared_per_multiprocessor;
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return model->shared_reserved;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return model->l2_cache;
        case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE: return model->l2_persisting;
        case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE: return model->access_window;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return model->clock;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return model->memory_clock;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return model->memory_bus;
        case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: return model->double_ratio;
        case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: return model->major >= 9;
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return model->copy_engines;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return device_bus(device->place);
        case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID: return device->place;
        case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: return model->multicast;
        default: return common[attribute];
    }
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    struct device *found;
    RETURN_IF(enter());
    if (!device) return fail_null("device");
    RETURN_IF(device_get(ordinal, &found));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    RETURN_IF(enter());
    if (!count) return fail_null("count");
    *count = device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!name) return fail_null("name");
    if (length < 1) return fail(CUDA_ERROR_INVALID_VALUE, "the buffer for the name has %d bytes", length);
    snprintf(name, (size_t)length, "%s", device->model->name);
    return CUDA_SUCCESS;
}

/* The same in every process, so that caches may be keyed by it: "cupola", the model and the ordinal. */
void device_uuid(int place, CUuuid *uuid) {
    memset(uuid->bytes, 0, sizeof uuid->bytes);
    memcpy(uuid->bytes, "cupola", 6);
    const char *key = devices[place].model->key;
    memcpy(uuid->bytes + 8, key, strnlen(key, 6));
    uuid->bytes[15] = (char)place;
}

void device_uuid_text(int place, char text[UUID_TEXT]) {
    CUuuid uuid;
    device_uuid(place, &uuid);
    const unsigned char *b = (const unsigned char *)uuid.bytes;
    snprintf(text, UUID_TEXT, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

int device_at(int place) {
    for (int i = 0; i < device_count; i++)
        if (devices[i].place == place) return i;
    return -1;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!uuid) return fail_null("uuid");
    device_uuid(cpu_usage_place(ordinal), uuid);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!bytes) return fail_null("bytes");
    *bytes = device->model->memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!value) return fail_null("pi");
    if ((int)attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUdevice_attribute", (int)attribute);
    *value = device_attribute(device, attribute);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!supported) return fail_null("pi");
    if ((unsigned)type >= CU_EXEC_AFFINITY_TYPE_MAX)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUexecAffinityType", (int)type);
    *supported = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!major) return fail_null("major");
    if (!minor) return fail_null("minor");
    *major = device->model->major;
    *minor = device->model->minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *properties, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!properties) return fail_null("prop");
    *properties = (CUdevprop){
        .maxThreadsPerBlock = common[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
        .maxThreadsDim = {common[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X], common[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y],
                          common[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z]},
        .maxGridSize = {common[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X], common[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y],
                        common[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z]},
        .sharedMemPerBlock = device->model->shared_per_block,
        .totalConstantMemory = common[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY],
        .SIMDWidth = common[CU_DEVICE_ATTRIBUTE_WARP_SIZE],
        .memPitch = common[CU_DEVICE_ATTRIBUTE_MAX_PITCH],
        .regsPerBlock = device->model->registers_per_block,
        .clockRate = device->model->clock,
        .textureAlign = common[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT],
    };
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!text) return fail_null("pciBusId");
    if (length < 13) return fail(CUDA_ERROR_INVALID_VALUE, "a PCI bus id needs 13 bytes, the buffer has %d", length);
    snprintf(text, (size_t)length, "0000:%02X:00.0", (unsigned)device_bus(device->place));
    return CUDA_SUCCESS;
}

/* Takes domain:bus:device.function, domain:bus:device and bus:device.function, all hexadecimal, as a GPU's driver and
 * NVML do. */
int device_by_pci_bus_id(const char *text) {
    unsigned domain = 0, bus, slot, function = 0;
    int used = 0;
    bool read = (sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &used) == 4 && !text[used]) ||
                (function = 0, sscanf(text, "%x:%x:%x%n", &domain, &bus, &slot, &used) == 3 && !text[used]) ||
                (domain = 0, sscanf(text, "%x:%x.%x%n", &bus, &slot, &function, &used) == 3 && !text[used]);
    if (!read) return NO_PCI_BUS_ID;
    if (domain || slot || function || bus < PCI_BUS_OF_FIRST || bus >= (unsigned)(PCI_BUS_OF_FIRST + devices_present))
        return NO_DEVICE;
    return (int)(bus - PCI_BUS_OF_FIRST);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
    RETURN_IF(enter());
    if (!device) return fail_null("dev");
    if (!text) return fail_null("pciBusId");
    int found = device_by_pci_bus_id(text);
    if (found == NO_PCI_BUS_ID)
        return fail(CUDA_ERROR_INVALID_VALUE, "'%s' is not a PCI bus id such as 0000:10:00.0", text);
    if (found >= 0) found = device_at(found);
    if (found == NO_DEVICE) return fail(CUDA_ERROR_INVALID_DEVICE, "no device has the PCI bus id %s", text);
    *device = found;
    return CUDA_SUCCESS;
}

static bool are_there(const struct device *device, const struct device *peer) {
    return !injected_loss(device->ordinal) && !injected_loss(peer->ordinal);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice ordinal, CUdevice peer_ordinal) {
    struct device *device = NULL, *peer = NULL;
    RETURN_IF(device_get(ordinal, &device));
    RETURN_IF(device_get(peer_ordinal, &peer));
    if (!can) return fail_null("canAccessPeer");
    *can = device != peer && are_there(device, peer);
    return CUDA_SUCCESS;
}

static CUresult check_peers(const struct device *device, const struct device *peer) {
    if (device != peer) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_DEVICE, "device %d is not a peer of itself: name two devices",
                (int)(device - devices));
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice ordinal, CUdevice peer_ordinal) {
    struct device *device = NULL, *peer = NULL;
    RETURN_IF(device_get(ordinal, &device));
    RETURN_IF(device_get(peer_ordinal, &peer));
    if (!value) return fail_null("value");
    RETURN_IF(check_peers(device, peer));
    switch (attribute) {
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = are_there(device, peer); return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: *value = 0; return CUDA_SUCCESS;
        default: return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a known CUdevice_P2PAttribute", (int)attribute);
    }
}

/* The operations that kernels carry out atomically on memory of the host or of another device (PTX ISA, "atom",
 * "red"). All run on the processor that owns the memory, so whatever a kernel can ask for is native. */
enum {
    BOTH_SIGNS = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED,
    BOTH_SIZES = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64,
    REDUCTION = CU_ATOMIC_CAPABILITY_REDUCTION,
    ONLY_32 = CU_ATOMIC_CAPABILITY_SCALAR_32,
    UP_TO_128 = BOTH_SIZES | CU_ATOMIC_CAPABILITY_SCALAR_128,
};

static const unsigned atomic_capabilities[CU_ATOMIC_OPERATION_MAX] = {
    [CU_ATOMIC_OPERATION_INTEGER_ADD] = BOTH_SIGNS | REDUCTION | BOTH_SIZES,
    [CU_ATOMIC_OPERATION_INTEGER_MIN] = BOTH_SIGNS | REDUCTION | BOTH_SIZES,
    [CU_ATOMIC_OPERATION_INTEGER_MAX] = BOTH_SIGNS | REDUCTION | BOTH_SIZES,
    [CU_ATOMIC_OPERATION_INTEGER_INCREMENT] = CU_ATOMIC_CAPABILITY_UNSIGNED | REDUCTION | ONLY_32,
    [CU_ATOMIC_OPERATION_INTEGER_DECREMENT] = CU_ATOMIC_CAPABILITY_UNSIGNED | REDUCTION | ONLY_32,
    [CU_ATOMIC_OPERATION_AND] = BOTH_SIGNS | REDUCTION | BOTH_SIZES,
    [CU_ATOMIC_OPERATION_OR] = BOTH_SIGNS | REDUCTION | BOTH_SIZES,
    [CU_ATOMIC_OPERATION_XOR] = BOTH_SIGNS | REDUCTION | BOTH_SIZES,
    [CU_ATOMIC_OPERATION_EXCHANGE] = BOTH_SIGNS | UP_TO_128,
    [CU_ATOMIC_OPERATION_CAS] = BOTH_SIGNS | UP_TO_128,
    [CU_ATOMIC_OPERATION_FLOAT_ADD] =
        CU_ATOMIC_CAPABILITY_SIGNED | REDUCTION | BOTH_SIZES | CU_ATOMIC_CAPABILITY_VECTOR_32x4,
    /* CU_ATOMIC_OPERATION_FLOAT_MIN and _MAX: PTX has them for halves only. */
};

/* The driver clears all results before it reads the operations. One unknown operation leaves all results cleared. */
static CUresult list_capabilities(unsigned *capabilities, const CUatomicOperation *operations, unsigned count) {
    memset(capabilities, 0, count * sizeof *capabilities);
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return fail(CUDA_ERROR_INVALID_VALUE, "operations[%u] is %d, which is not a CUatomicOperation", i,
                        (int)operations[i]);
    for (unsigned i = 0; i < count; i++) capabilities[i] = atomic_capabilities[operations[i]];
    return CUDA_SUCCESS;
}

static CUresult check_lists(const unsigned *capabilities, const CUatomicOperation *operations, unsigned count) {
    if (!count) return fail(CUDA_ERROR_INVALID_VALUE, "count is 0: ask for at least one operation");
    if (!capabilities) return fail_null("capabilities");
    return operations ? CUDA_SUCCESS : fail_null("operations");
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned *capabilities, const CUatomicOperation *operations, unsigned count,
                                           CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(enter());
    RETURN_IF(check_lists(capabilities, operations, count));
    RETURN_IF(device_get(ordinal, &device));
    return list_capabilities(capabilities, operations, count);
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned *capabilities, const CUatomicOperation *operations, unsigned count,
                                          CUdevice ordinal, CUdevice peer_ordinal) {
    struct device *device = NULL, *peer = NULL;
    RETURN_IF(enter());
    RETURN_IF(check_lists(capabilities, operations, count));
    RETURN_IF(device_get(ordinal, &device));
    RETURN_IF(device_get(peer_ordinal, &peer));
    RETURN_IF(check_peers(device, peer));
    return list_capabilities(capabilities, operations, count);
}

const struct entry device_entries[] = {
    ENTRY(cuDeviceGet),
    ENTRY(cuDeviceGetCount),
    ENTRY(cuDeviceGetName),
    ENTRY(cuDeviceGetUuid),
    ENTRY_AS(cuDeviceGetUuid_v2, cuDeviceGetUuid),
    ENTRY(cuDeviceTotalMem),
    ENTRY_AS(cuDeviceTotalMem_v2, cuDeviceTotalMem),
    ENTRY(cuDeviceGetAttribute),
    ENTRY(cuDeviceGetExecAffinitySupport),
    ENTRY(cuDeviceComputeCapability),
    ENTRY(cuDeviceGetProperties),
    ENTRY(cuDeviceGetPCIBusId),
    ENTRY(cuDeviceGetByPCIBusId),
    ENTRY(cuDeviceCanAccessPeer),
    ENTRY(cuDeviceGetP2PAttribute),
    ENTRY(cuDeviceGetHostAtomicCapabilities),
    ENTRY(cuDeviceGetP2PAtomicCapabilities),
    {NULL, NULL, NULL},
};
