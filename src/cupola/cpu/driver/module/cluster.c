/* Clusters of blocks (CUDA C++ Programming Guide, "Thread Block Clusters"; CUDA Driver API, "Occupancy"): which one a
 * launch has, what can be wrong with it, and how many the modeled GPU would hold.
 *
 * The size comes from the kernel itself (__cluster_dims__, PTX .reqnctapercluster), from an attribute of the function,
 * or from an attribute of the launch. All blocks of a cluster run on multiprocessors of one GPC. */
#include "module.h"

enum { PORTABLE_BLOCKS = 8, MOST_BLOCKS = 16 };

static const uint32_t *required_cluster(CUfunction function) {
    const uint32_t *own = function->image_kernel->info->required_cluster;
    return own[0] ? own : function->attributes->cluster;
}

static uint32_t portable_limit(CUfunction function, const struct launch_attributes *attributes) {
    bool any = attributes->portable_mode == CU_LAUNCH_PORTABLE_CLUSTER_MODE_DEFAULT
                   ? function->attributes->non_portable_cluster
                   : attributes->portable_mode == CU_LAUNCH_PORTABLE_CLUSTER_MODE_ALLOW_NON_PORTABLE;
    return any ? MOST_BLOCKS : PORTABLE_BLOCKS;
}

/* Whether the sizes can be the function's cluster; they are not 0. */
static CUresult check_size(CUfunction function, const struct launch_attributes *attributes, const uint32_t cluster[3]) {
    const cpu_kernel_info *info = function->image_kernel->info;
    const char *name = cpu_kernel_name(function->kernel);
    const struct model *model = function->module->context->device->model;
    uint64_t blocks = (uint64_t)cluster[0] * cluster[1] * cluster[2];
    if (!blocks)
        return fail(CUDA_ERROR_INVALID_VALUE, "a cluster of (%u, %u, %u) blocks: no extent may be 0", cluster[0],
                    cluster[1], cluster[2]);
    if (blocks > 1 && model->major < 9)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "clusters need compute capability 9.0; this device has %d.%d",
                    model->major, model->minor);
    if (blocks > MOST_BLOCKS)
        return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "a cluster of (%u, %u, %u) blocks: there can be %d at most",
                    cluster[0], cluster[1], cluster[2], MOST_BLOCKS);
    if (blocks > portable_limit(function, attributes))
        return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                    "a cluster of %u blocks: more than %d, up to %d, need "
                    "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED (kernel.attributes."
                    "non_portable_cluster_size_allowed)",
                    (unsigned)blocks, PORTABLE_BLOCKS, MOST_BLOCKS);
    if (info->max_cluster && blocks > info->max_cluster)
        return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "a cluster of %u blocks, but %s was compiled for at most %u",
                    (unsigned)blocks, name, info->max_cluster);
    return CUDA_SUCCESS;
}

/* Larger clusters that a GPU may form where there is room; the CPU device has no need of them. */
static CUresult check_preferred(const uint32_t preferred[3], const uint32_t cluster[3], const uint32_t grid[3]) {
    if (!preferred[0] && !preferred[1] && !preferred[2]) return CUDA_SUCCESS;
    for (int i = 0; i < 3; i++)
        if (!preferred[i] || preferred[i] % cluster[i] || grid[i] % preferred[i])
            return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                        "the preferred cluster is (%u, %u, %u): each extent must be a multiple of the cluster's, "
                        "(%u, %u, %u), and divide the grid's, (%u, %u, %u)",
                        preferred[0], preferred[1], preferred[2], cluster[0], cluster[1], cluster[2], grid[0], grid[1],
                        grid[2]);
    return CUDA_SUCCESS;
}

CUresult cluster_of_launch(CUfunction function, const struct launch_attributes *attributes, const uint32_t grid[3],
                           uint32_t cluster[3], uint8_t *is_explicit) {
    const uint32_t *required = required_cluster(function), *asked = attributes->cluster;
    const char *name = cpu_kernel_name(function->kernel);
    const uint32_t *chosen = required[0] ? required : asked;
    *is_explicit = chosen[0] != 0;
    cluster[0] = cluster[1] = cluster[2] = 1;
    if (likely(!chosen[0])) {
        if (likely(!function->image_kernel->info->must_have_cluster || attributes->unfinished)) return CUDA_SUCCESS;
        return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                    "%s is launched with a cluster only (.explicitcluster): give CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION "
                    "(LaunchConfig(cluster=...))",
                    name);
    }
    if (required[0] && asked[0] && memcmp(required, asked, 3 * sizeof *asked))
        return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                    "%s requires clusters of (%u, %u, %u) blocks (__cluster_dims__), not (%u, %u, %u)", name,
                    required[0], required[1], required[2], asked[0], asked[1], asked[2]);
    RETURN_IF(check_size(function, attributes, chosen));
    for (int i = 0; i < 3; i++)
        if (grid[i] % chosen[i])
            return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                        "the grid is (%u, %u, %u) blocks, which is not a multiple of the cluster, (%u, %u, %u)",
                        grid[0], grid[1], grid[2], chosen[0], chosen[1], chosen[2]);
    memcpy(cluster, chosen, 3 * sizeof *cluster);
    return check_preferred(attributes->preferred_cluster, cluster, grid);
}

/* ---- occupancy ------------------------------------------------------------------------------------------------- */

/* How many clusters the multiprocessors that the stream may use hold at once. */
static int active_clusters(CUcontext context, int blocks_per_multiprocessor, int cluster_blocks) {
    const struct model *model = context->device->model;
    if (context->green) return part_clusters(model, &context->part, blocks_per_multiprocessor, cluster_blocks);
    struct part whole;
    part_whole(model, &whole);
    return part_clusters(model, &whole, blocks_per_multiprocessor, cluster_blocks);
}

CUresult cluster_check_room(const struct op *op) {
    const cpu_launch *launch = &op->kernel.launch;
    int blocks = (int)(launch->cluster[0] * launch->cluster[1] * launch->cluster[2]);
    if (likely(!op->kernel.green || blocks == 1) || active_clusters(op->kernel.green, 1, blocks)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                "clusters of %d blocks have no room on the %u multiprocessors of this green context: "
                "cuOccupancyMaxPotentialClusterSize tells which have",
                blocks, op->kernel.green->part.count);
}

/* The context in which a launch would run. */
static CUcontext where(CUstream stream) {
    if ((uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD || !handle_is_live(stream, HANDLE_STREAM))
        return current_context();
    return stream->green ? stream->green : stream->context;
}

static CUresult enter_clusters(CUfunction handle, const CUlaunchConfig *config, CUfunction *function,
                               struct launch_attributes *attributes, int *blocks) {
    CUcontext context;
    RETURN_IF(enter_context_to_ask(&context));
    RETURN_IF(function_find(handle, context, function));
    if (!config) return fail_null("config");
    RETURN_IF(launch_read_attributes(config, attributes));
    *blocks = occupancy_blocks(*function, (int)(config->blockDimX * config->blockDimY * config->blockDimZ),
                               config->sharedMemBytes);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config) {
    CUfunction function;
    struct launch_attributes attributes = {0};
    int blocks;
    RETURN_IF(enter_clusters(handle, config, &function, &attributes, &blocks));
    if (!size) return fail_null("clusterSize");
    const struct model *model = function->module->context->device->model;
    /* The size that a kernel requires has no say here: an H200 gives 8 for a kernel of clusters of 2. */
    uint32_t most = model->major < 9 ? 1 : portable_limit(function, &attributes);
    if (function->image_kernel->info->max_cluster && function->image_kernel->info->max_cluster < most)
        most = function->image_kernel->info->max_cluster;
    while (most && !active_clusters(where(config->hStream), blocks, (int)most)) most--;
    *size = (int)most;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction handle, const CUlaunchConfig *config) {
    CUfunction function;
    struct launch_attributes attributes = {0};
    uint32_t cluster[3];
    uint8_t is_explicit;
    int blocks;
    RETURN_IF(enter_clusters(handle, config, &function, &attributes, &blocks));
    if (!count) return fail_null("numClusters");
    const uint32_t grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    RETURN_IF(cluster_of_launch(function, &attributes, grid, cluster, &is_explicit));
    *count = active_clusters(where(config->hStream), blocks, (int)(cluster[0] * cluster[1] * cluster[2]));
    return CUDA_SUCCESS;
}

const struct entry cluster_entries[] = {
    ENTRY(cuOccupancyMaxPotentialClusterSize),
    ENTRY(cuOccupancyMaxActiveClusters),
    {NULL, NULL, NULL},
};
