/* Attributes of launches and kernel nodes by their number (CUDA Driver API, CUlaunchAttributeID). Most are hints about
 * how a GPU is to schedule the grid, which make no difference here; kernel nodes still return them. */
#include "module.h"

static CUresult check_choice(const char *what, unsigned value, unsigned most) {
    if (likely(value <= most)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%s is %d: it must be from 0 to %u", what, (int)value, most);
}

static CUresult check_window(const CUaccessPolicyWindow *window) {
    RETURN_IF(check_choice("accessPolicyWindow.hitProp", window->hitProp, CU_ACCESS_PROPERTY_PERSISTING));
    RETURN_IF(check_choice("accessPolicyWindow.missProp", window->missProp, CU_ACCESS_PROPERTY_STREAMING));
    if (window->hitRatio >= 0 && window->hitRatio <= 1) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "accessPolicyWindow.hitRatio is %g: it must be from 0 to 1",
                window->hitRatio);
}

CUresult attribute_set(struct launch_attributes *attributes, CUlaunchAttributeID id,
                       const CUlaunchAttributeValue *value) {
    enum { MOST_DOMAINS = 16 };
    switch ((int)id) {
        case CU_LAUNCH_ATTRIBUTE_IGNORE: break;
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: attributes->cooperative = value->cooperative != 0; break;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            attributes->priority = nearest_priority(value->priority);
            attributes->has_priority = true;
            break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            if (!value->clusterDim.x || !value->clusterDim.y || !value->clusterDim.z)
                return fail(CUDA_ERROR_INVALID_VALUE, "the cluster is (%u, %u, %u): no dimension may be 0",
                            value->clusterDim.x, value->clusterDim.y, value->clusterDim.z);
            memcpy(attributes->cluster, &value->clusterDim, sizeof attributes->cluster);
            break;
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
            memcpy(attributes->preferred_cluster, &value->preferredClusterDim, sizeof attributes->preferred_cluster);
            break;
        case CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE:
            RETURN_IF(check_choice("portableClusterSizeMode", value->portableClusterSizeMode,
                                   CU_LAUNCH_PORTABLE_CLUSTER_MODE_ALLOW_NON_PORTABLE));
            attributes->portable_mode = value->portableClusterSizeMode;
            break;
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            RETURN_IF(check_window(&value->accessPolicyWindow));
            attributes->window = value->accessPolicyWindow;
            break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            RETURN_IF(check_choice("clusterSchedulingPolicyPreference", value->clusterSchedulingPolicyPreference,
                                   CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING));
            attributes->scheduling_policy = (uint8_t)value->clusterSchedulingPolicyPreference;
            break;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            RETURN_IF(check_choice("memSyncDomain", value->memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE));
            attributes->domain = (uint8_t)value->memSyncDomain;
            break;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            RETURN_IF(check_choice("memSyncDomainMap.default_", value->memSyncDomainMap.default_, MOST_DOMAINS - 1));
            RETURN_IF(check_choice("memSyncDomainMap.remote", value->memSyncDomainMap.remote, MOST_DOMAINS - 1));
            attributes->domain_map = value->memSyncDomainMap;
            break;
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            if (value->sharedMemCarveout != (unsigned)CU_SHAREDMEM_CARVEOUT_DEFAULT)
                RETURN_IF(
                    check_choice("sharedMemCarveout", value->sharedMemCarveout, CU_SHAREDMEM_CARVEOUT_MAX_SHARED));
            attributes->carveout = value->sharedMemCarveout;
            break;
        case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
            RETURN_IF(check_choice("nvlinkUtilCentricScheduling", value->nvlinkUtilCentricScheduling, 1));
            attributes->nvlink_scheduling = (uint8_t)value->nvlinkUtilCentricScheduling;
            break;
        case CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE:
            RETURN_IF(check_choice("sharedMemoryMode", value->sharedMemoryMode,
                                   CU_SHARED_MEMORY_MODE_PREFER_OVERSIZED_SHARED_MEMORY));
            attributes->shared_memory_mode = (uint8_t)value->sharedMemoryMode;
            break;
        default: return fail(CUDA_ERROR_INVALID_VALUE, "%d is not an attribute of launches or kernel nodes", (int)id);
    }
    return CUDA_SUCCESS;
}

CUresult attribute_get(const struct launch_attributes *attributes, CUlaunchAttributeID id,
                       CUlaunchAttributeValue *value) {
    memset(value, 0, sizeof *value);
    switch ((int)id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: value->cooperative = attributes->cooperative; break;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY: value->priority = attributes->priority; break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            memcpy(&value->clusterDim, attributes->cluster, sizeof attributes->cluster);
            break;
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
            memcpy(&value->preferredClusterDim, attributes->preferred_cluster, sizeof attributes->preferred_cluster);
            break;
        case CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE:
            value->portableClusterSizeMode = attributes->portable_mode;
            break;
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: value->accessPolicyWindow = attributes->window; break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            value->clusterSchedulingPolicyPreference = attributes->scheduling_policy;
            break;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: value->memSyncDomain = attributes->domain; break;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: value->memSyncDomainMap = attributes->domain_map; break;
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            value->sharedMemCarveout = attributes->carveout;
            break;
        case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
            value->nvlinkUtilCentricScheduling = attributes->nvlink_scheduling;
            break;
        case CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE: value->sharedMemoryMode = attributes->shared_memory_mode; break;
        default: return fail(CUDA_ERROR_INVALID_VALUE, "%d is not an attribute of kernel nodes", (int)id);
    }
    return CUDA_SUCCESS;
}
