/* Resources: what of a device a context uses, to be split and to be put together into the descriptor of a green context
 * (CUDA Driver API, "Green Contexts").
 *
 * What programs see of a CUdevResource is a copy. What counts is sealed in its padding: the set of multiprocessors, where it
 * comes from, and which call made it. */
#include "green.h"

/* ---- records --------------------------------------------------------------------------------------------------- */

enum { SEAL = 0x63757031 };

struct sealed {
    uint32_t seal;
    int32_t device;
    uint32_t split;   /* which split made it; 0: it is what a device or context has */
    uint32_t is_rest; /* of that split */
    uint32_t count, least, alignment, flags, granule, together;
    uint32_t members[MOST_MULTIPROCESSORS / 32];
};
_Static_assert(sizeof(struct sealed) <= sizeof((CUdevResource *)0)->_internal_padding, "fits into the padding");

static _Atomic uint32_t splits;

static void write_part(CUdevResource *resource, const struct device *device, const struct part *part, uint32_t split,
                       bool is_rest) {
    struct sealed sealed = {.seal = SEAL,
                            .device = device->ordinal,
                            .split = split,
                            .is_rest = is_rest,
                            .count = part->count,
                            .least = part->least,
                            .alignment = part->alignment,
                            .flags = part->flags,
                            .granule = part->granule,
                            .together = part->together};
    memcpy(sealed.members, part->members, sizeof sealed.members);
    memset(resource, 0, sizeof *resource);
    if (!part->count) return; /* CU_DEV_RESOURCE_TYPE_INVALID */
    resource->type = CU_DEV_RESOURCE_TYPE_SM;
    memcpy(resource->_internal_padding, &sealed, sizeof sealed);
    resource->sm = (CUdevSmResource){.smCount = part->count,
                                     .minSmPartitionSize = part->least,
                                     .smCoscheduledAlignment = part->alignment,
                                     .flags = part->flags};
}

static CUresult read_part(const CUdevResource *resource, struct device **device, struct part *part, uint32_t *split,
                          bool *is_rest) {
    struct sealed sealed;
    memcpy(&sealed, resource->_internal_padding, sizeof sealed);
    if (sealed.seal != SEAL || sealed.device < 0 || sealed.device >= device_count ||
        sealed.count != resource->sm.smCount)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "the resource is none that the driver has filled in: take one of cuDeviceGetDevResource, "
                    "cuCtxGetDevResource or a split");
    *device = &devices[sealed.device];
    *split = sealed.split;
    *is_rest = sealed.is_rest;
    *part = (struct part){.count = sealed.count,
                          .least = sealed.least,
                          .alignment = sealed.alignment,
                          .flags = sealed.flags,
                          .granule = sealed.granule,
                          .together = sealed.together};
    memcpy(part->members, sealed.members, sizeof sealed.members);
    return CUDA_SUCCESS;
}

static void write_workqueues(CUdevResource *resource, const struct device *device, const struct workqueues *queues) {
    memset(resource, 0, sizeof *resource);
    resource->type = CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG;
    resource->wqConfig = (CUdevWorkqueueConfigResource){
        .device = device->ordinal,
        .wqConcurrencyLimit = queues && queues->limit ? queues->limit : settings.connections,
        .sharingScope = queues ? queues->scope : CU_WORKQUEUE_SCOPE_DEVICE_CTX,
    };
}

/* An existing workqueue is told by the context that has it, 0: any. */
static void write_workqueue(CUdevResource *resource, const struct device *device, uint64_t context_id) {
    struct sealed sealed = {.seal = SEAL, .device = device->ordinal};
    memset(resource, 0, sizeof *resource);
    resource->type = CU_DEV_RESOURCE_TYPE_WORKQUEUE;
    memcpy(resource->_internal_padding, &sealed, sizeof sealed);
    memcpy(resource->wq.reserved, &context_id, sizeof context_id);
}

/* ---- what there is --------------------------------------------------------------------------------------------- */

static CUresult fail_type(CUdevResourceType type, const char *what) {
    return fail(CUDA_ERROR_INVALID_RESOURCE_TYPE, "%s has no resources of type %d (CUdevResourceType)", what,
                (int)type);
}

CUresult cuDeviceGetDevResource(CUdevice ordinal, CUdevResource *resource, CUdevResourceType type) {
    struct device *device = NULL;
    struct part part;
    RETURN_IF(device_get(ordinal, &device));
    if (!resource) return fail_null("resource");
    switch ((int)type) {
        case CU_DEV_RESOURCE_TYPE_SM:
            part_whole(device->model, &part);
            write_part(resource, device, &part, 0, false);
            return CUDA_SUCCESS;
        case CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG: write_workqueues(resource, device, NULL); return CUDA_SUCCESS;
        case CU_DEV_RESOURCE_TYPE_WORKQUEUE: write_workqueue(resource, device, 0); return CUDA_SUCCESS;
        default: return fail_type(type, "a device");
    }
}

/* Of a context, green or not. */
CUresult context_resource(CUcontext context, CUdevResource *resource, CUdevResourceType type) {
    struct part part;
    if (!resource) return fail_null("resource");
    switch ((int)type) {
        case CU_DEV_RESOURCE_TYPE_SM:
            if (!context->green) return cuDeviceGetDevResource(context->device->ordinal, resource, type);
            part = context->part;
            part.least = part.alignment = part.granule;
            write_part(resource, context->device, &part, 0, false);
            return CUDA_SUCCESS;
        case CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG:
            write_workqueues(resource, context->device, context->green ? &context->green->queues : NULL);
            return CUDA_SUCCESS;
        case CU_DEV_RESOURCE_TYPE_WORKQUEUE:
            write_workqueue(resource, context->device, context->id);
            return CUDA_SUCCESS;
        default: return fail_type(type, "a context");
    }
}

CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *resource, CUdevResourceType type) {
    RETURN_IF(enter());
    if (!context) return fail(CUDA_ERROR_INVALID_CONTEXT, "the context is null");
    RETURN_IF(context_find_itself(context, &context));
    return context_resource(context, resource, type);
}

CUresult cuStreamGetDevResource(CUstream handle, CUdevResource *resource, CUdevResourceType type) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    if (type != CU_DEV_RESOURCE_TYPE_SM) return fail_type(type, "a stream");
    return context_resource(stream->green ? stream->green : stream->context, resource, type);
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

/* What is to be split: the multiprocessors of a device or a context, and in a structured split the rest of another. */
static CUresult read_input(const CUdevResource *input, bool or_rest, struct device **device, struct part *part) {
    uint32_t split;
    bool is_rest;
    if (!input) return fail_null("input");
    if (input->type != CU_DEV_RESOURCE_TYPE_SM)
        return fail(CUDA_ERROR_INVALID_RESOURCE_TYPE,
                    "only multiprocessors can be split (CU_DEV_RESOURCE_TYPE_SM), not "
                    "resources of type %d",
                    (int)input->type);
    RETURN_IF(read_part(input, device, part, &split, &is_rest));
    if (split && !(is_rest && or_rest))
        return fail(
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "what a split gave cannot be split again: make a green context of it, and split the resource of that");
    return CUDA_SUCCESS;
}

static void write_parts(CUdevResource *result, const struct part *groups, uint32_t count, CUdevResource *remainder,
                        const struct part *rest, const struct device *device) {
    uint32_t split = ++splits;
    for (uint32_t i = 0; i < count; i++) write_part(&result[i], device, &groups[i], split, false);
    if (remainder) write_part(remainder, device, rest, split, true);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned *count, const CUdevResource *input,
                                     CUdevResource *remainder, unsigned flags, unsigned least) {
    struct device *device = NULL;
    struct part part, rest, groups[MOST_MULTIPROCESSORS];
    RETURN_IF(enter());
    if (!count) return fail_null("nbGroups");
    RETURN_IF(read_input(input, false, &device, &part));
    uint32_t most = result && *count < MOST_MULTIPROCESSORS ? *count : MOST_MULTIPROCESSORS, made;
    if (result && !most) return fail(CUDA_ERROR_INVALID_VALUE, "nbGroups is 0, but result is not NULL");
    RETURN_IF(part_split_by_count(device->model, &part, flags, least, most, groups, &rest, &made));
    *count = made;
    if (result) write_parts(result, groups, made, remainder, &rest, device);
    else if (remainder) write_parts(NULL, NULL, 0, remainder, &rest, device);
    return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplit(CUdevResource *result, unsigned count, const CUdevResource *input,
                              CUdevResource *remainder, unsigned flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS *parameters) {
    struct device *device = NULL;
    struct part part, rest, groups[MOST_MULTIPROCESSORS];
    RETURN_IF(enter());
    if (!parameters) return fail_null("groupParams");
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "the flags of cuDevSmResourceSplit must be 0, not %#x", flags);
    RETURN_IF(read_input(input, true, &device, &part));
    if (!count || count > MOST_MULTIPROCESSORS)
        return fail(CUDA_ERROR_INVALID_VALUE, "a split into %u groups: it must be at least one", count);
    RETURN_IF(part_split(device->model, &part, parameters, count, result != NULL, groups, &rest));
    if (result) write_parts(result, groups, count, remainder, &rest, device);
    else if (remainder) write_parts(NULL, NULL, 0, remainder, &rest, device);
    return CUDA_SUCCESS;
}

/* ---- descriptors ----------------------------------------------------------------------------------------------- */

static CUresult add_part(struct CUdevResourceDesc_st *desc, const CUdevResource *resource, uint32_t *first_split) {
    struct device *device = NULL;
    struct part part;
    uint32_t split;
    bool is_rest;
    RETURN_IF(read_part(resource, &device, &part, &split, &is_rest));
    if (desc->device && device != desc->device)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "the resources are of devices %d and %d: a green context "
                    "is on one",
                    desc->device->ordinal, device->ordinal);
    desc->device = device;
    if (!desc->part.count) {
        desc->part = part;
        *first_split = split;
        return CUDA_SUCCESS;
    }
    if (split != *first_split || !split || part_overlaps(&desc->part, &part))
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "several groups of multiprocessors in a green context must be different ones of the same split");
    if (part.alignment != desc->part.alignment)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "the groups of multiprocessors are aligned to %u and to %u: they must be alike",
                    desc->part.alignment, part.alignment);
    part_join(&desc->part, &part);
    return CUDA_SUCCESS;
}

static CUresult add_workqueues(struct CUdevResourceDesc_st *desc, const CUdevWorkqueueConfigResource *config) {
    struct device *device = NULL;
    RETURN_IF(device_get(config->device, &device));
    if (desc->device && device != desc->device)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "the resources are of devices %d and %d: a green context "
                    "is on one",
                    desc->device->ordinal, device->ordinal);
    if ((unsigned)config->sharingScope > CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED || !config->wqConcurrencyLimit)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "a configuration of workqueues with scope %d (CUdevWorkqueueConfigScope) and a limit of %u",
                    (int)config->sharingScope, config->wqConcurrencyLimit);
    desc->device = device;
    desc->queues = (struct workqueues){config->wqConcurrencyLimit, config->sharingScope};
    return CUDA_SUCCESS;
}

/* Descriptors are never freed: CUDA has no call for that. */
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *result, CUdevResource *resources, unsigned count) {
    struct CUdevResourceDesc_st desc = {.part = {.count = 0}};
    uint32_t split = 0;
    RETURN_IF(enter());
    if (!result) return fail_null("phDesc");
    if (!resources) return fail_null("resources");
    if (!count) return fail(CUDA_ERROR_INVALID_VALUE, "nbResources is 0: a green context needs multiprocessors");
    for (unsigned i = 0; i < count; i++) switch ((int)resources[i].type) {
            case CU_DEV_RESOURCE_TYPE_SM: RETURN_IF(add_part(&desc, &resources[i], &split)); break;
            case CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG: RETURN_IF(add_workqueues(&desc, &resources[i].wqConfig)); break;
            case CU_DEV_RESOURCE_TYPE_WORKQUEUE: break; /* of an existing context: any stream has a thread here */
            default:
                return fail(CUDA_ERROR_INVALID_RESOURCE_TYPE, "resource %u has type %d (CUdevResourceType)", i,
                            (int)resources[i].type);
        }
    struct CUdevResourceDesc_st *made = handle_make(HANDLE_RESOURCE_DESC, sizeof *made);
    if (!made) return no_memory("a descriptor");
    made->device = desc.device;
    made->part = desc.part;
    made->queues = desc.queues;
    handle_publish(made);
    *result = made;
    return CUDA_SUCCESS;
}

PER_THREAD(cuStreamGetDevResource, (CUstream s, CUdevResource *r, CUdevResourceType t), (s, r, t))

const struct entry resource_entries[] = {
    ENTRY(cuDeviceGetDevResource),
    ENTRY(cuCtxGetDevResource),
    ENTRY_STREAM(cuStreamGetDevResource),
    ENTRY(cuDevSmResourceSplitByCount),
    ENTRY(cuDevSmResourceSplit),
    ENTRY(cuDevResourceGenerateDesc),
    {NULL, NULL, NULL},
};
