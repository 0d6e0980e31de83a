/* The calls of NCCL that move numbers, and the memory that is registered for them. */
#include <limits.h>
#include <stdlib.h>

#include "nccl.h"

/* ---- reductions of the user -------------------------------------------------------------------------------------- */

static bool is_type(ncclDataType_t type) { return (unsigned)type < ncclNumTypes; }

/* Numbers of a communicator's own reductions are its own: another one does not know them. */
static int factor_mask(const struct ncclComm *comm) {
    return (int)(((uintptr_t)comm >> 4) * 0x9e3779b97f4a7c15u >> 36) << 2;
}

static int factor_place(const struct ncclComm *comm, ncclRedOp_t op) {
    return (int)op < ncclNumOps ? -1 : ((int)op - ncclNumOps) ^ factor_mask(comm);
}

static ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                             ncclScalarResidence_t residence, ncclComm_t comm) {
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "ncclRedOpCreatePreMulSum", true));
    if (!op || !scalar)
        return nccl_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum : %s argument is NULL", op ? "scalar" : "op");
    if (!is_type(type)) return nccl_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum : invalid type %d", (int)type);
    if ((unsigned)residence > ncclScalarHostImmediate)
        return nccl_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum : invalid residence %d", (int)residence);
    struct factor made = {.used = true, .type = type, .on_device = residence == ncclScalarDevice, .place = scalar};
    if (!made.on_device) memcpy(made.bytes, scalar, type_size(type));
    int at = 0;
    pthread_mutex_lock(&comm->lock);
    while (at < comm->factor_count && comm->factors[at].used) at++;
    if (at == comm->factor_count) {
        struct factor *grown = realloc(comm->factors, (size_t)(at + 1) * sizeof *grown);
        if (grown) {
            comm->factors = grown;
            comm->factor_count++;
        } else {
            at = -1;
        }
    }
    if (at >= 0) comm->factors[at] = made;
    pthread_mutex_unlock(&comm->lock);
    if (at < 0) return nccl_fail(ncclSystemError, "ncclRedOpCreatePreMulSum: the host has no memory");
    *op = (ncclRedOp_t)(ncclNumOps + (at ^ factor_mask(comm)));
    return ncclSuccess;
}

/* The reduction of the user that is meant; false: there is none. */
static bool find_factor(ncclComm_t comm, ncclRedOp_t op, struct factor *found) {
    int at = factor_place(comm, op);
    pthread_mutex_lock(&comm->lock);
    bool known = at >= 0 && at < comm->factor_count && comm->factors[at].used;
    if (known) *found = comm->factors[at];
    pthread_mutex_unlock(&comm->lock);
    return known;
}

static ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    struct factor found;
    if ((unsigned)op < ncclNumOps)
        return nccl_fail(ncclInvalidArgument, "ncclRedOpDestroy : operator is a NCCL builtin.");
    if ((int)op < 0) return nccl_fail(ncclInvalidArgument, "ncclRedOpDestroy : operator is garbage.");
    if (!comm) return nccl_fail(ncclInvalidArgument, "ncclRedOpDestroy : invalid communicator passed.");
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "ncclRedOpDestroy", false));
    if (!find_factor(comm, op, &found))
        return nccl_fail(ncclInvalidArgument, "ncclRedOpDestroy : operator unknown to this communicator.");
    pthread_mutex_lock(&comm->lock);
    comm->factors[factor_place(comm, op)].used = false;
    pthread_mutex_unlock(&comm->lock);
    return ncclSuccess;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct request {
    enum function function;
    const void *source;
    void *target;
    size_t count;
    ncclDataType_t type;
    bool reduces, has_root;
    int op, root;
    ncclComm_t comm;
    cudaStream_t stream;
    const ncclCollConfig_t *config; /* NULL: none */
};

/* What a program asks of one collective. It chooses among NVIDIA's ways and how much of a GPU they take, and of neither is
 * there a choice here; but a wrong number is wrong. */
static ncclResult_t check_config(const char *name, const ncclCollConfig_t *config) {
    if (config->magic != NCCL_API_MAGIC || config->size < offsetof(ncclCollConfig_t, ext))
        return nccl_fail(ncclInvalidArgument,
                         "%s : ncclCollConfig_t argument not initialized via NCCL_COLLCONFIG_INITIALIZER", name);
    struct ncclCollConfig_v23200 given = {.minCTAs = INT_MIN, .maxCTAs = INT_MIN, .nvlsCTAs = INT_MIN};
    given.cgaClusterSize = given.CTAPolicy = INT_MIN;
    given.forceAlgSelection = 1;
    memcpy(&given, config, config->size < sizeof given ? config->size : sizeof given);
    const struct {
        const char *name;
        int value, least, most;
    } numbers[] = {
        {"minCTAs", given.minCTAs, 1, INT_MAX},
        {"maxCTAs", given.maxCTAs, given.minCTAs > 1 ? given.minCTAs : 1, INT_MAX},
        {"nvlsCTAs", given.nvlsCTAs, 1, INT_MAX},
        {"cgaClusterSize", given.cgaClusterSize, 0, INT_MAX},
        {"forceAlgSelection", given.forceAlgSelection, 0, 1},
        {"CTAPolicy", given.CTAPolicy, 0, 3},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value != INT_MIN && (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most))
            return nccl_fail(ncclInvalidArgument, "%s : Invalid config %s attribute value %d", name, numbers[i].name,
                             numbers[i].value);
    return ncclSuccess;
}

static cudaEvent_t event_of(const ncclCollConfig_t *config) {
    const size_t end = offsetof(ncclCollConfig_t, launchCompletionEvent) + sizeof config->launchCompletionEvent;
    return config && config->size >= end ? config->launchCompletionEvent : NULL;
}

static ncclResult_t check(const struct request *request, struct reduction *reduction) {
    const char *name = function_names[request->function];
    NCCL_RETURN_IF(comm_check(request->comm, name, true));
    const int ranks = request->comm->count;
    if (request->config) NCCL_RETURN_IF(check_config(name, request->config));
    if (!is_type(request->type))
        return nccl_fail(ncclInvalidArgument, "%s : invalid type %d", name, (int)request->type);
    if (request->has_root && (request->root < 0 || request->root >= ranks))
        return nccl_fail(ncclInvalidArgument, "%s : invalid root %d (root should be in the 0..%d range)", name,
                         request->root, ranks);
    if (request->count > PTRDIFF_MAX / type_size(request->type) / (size_t)ranks)
        return nccl_fail(ncclInvalidArgument, "%s : invalid count %zu: no device has so much memory", name,
                         request->count);
    if (!request->reduces) return ncclSuccess;
    if (request->op < 0)
        return nccl_fail(ncclInvalidArgument, "%s : invalid reduction operation %d", name, request->op);
    /* NVIDIA's library refuses these of one rank alone, and computes them of several. */
    if (request->op == ncclAvg && ranks == 1 && type_size(request->type) == 1 && request->type >= ncclFloat16)
        return nccl_fail(ncclInvalidArgument, "%s : NCCL has no average of %s of one rank", name,
                         type_name(request->type));
    reduction->op = (ncclRedOp_t)request->op;
    if (request->op < ncclNumOps) return ncclSuccess;
    if (!find_factor(request->comm, (ncclRedOp_t)request->op, &reduction->factor))
        return nccl_fail(ncclInvalidArgument, "%s : reduction operation %d unknown to this communicator", name,
                         request->op);
    if (reduction->factor.type != request->type)
        return nccl_fail(ncclInvalidArgument,
                         "Data type supplied to user-created ncclRedOp_t does not match type given to "
                         "reduction operation: %s, and %s",
                         type_name(reduction->factor.type), type_name(request->type));
    reduction->op = ncclNumOps;
    return ncclSuccess;
}

/* With NCCL_CHECK_POINTERS: memory that kernels of the communicator's device can use. */
static ncclResult_t check_pointer(const struct request *request, const char *name, const void *place) {
    const char *function = function_names[request->function];
    void *of_device = NULL;
    if (!place || cuPointerGetAttribute(&of_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)place) ||
        !of_device)
        return nccl_fail(ncclInvalidArgument, "%s : %s %p is not a valid pointer", function, name, place);
    return ncclSuccess;
}

static ncclResult_t check_pointers(const struct request *request) {
    const bool is_root = request->root == request->comm->rank;
    const enum function function = request->function;
    bool reads = function == BROADCAST || function == SCATTER ? is_root : function != RECEIVE;
    bool writes = function == REDUCE || function == GATHER ? is_root : function != SEND;
    if (reads) NCCL_RETURN_IF(check_pointer(request, function == SEND ? "buff" : "sendbuff", request->source));
    if (writes) NCCL_RETURN_IF(check_pointer(request, function == RECEIVE ? "buff" : "recvbuff", request->target));
    return ncclSuccess;
}

static ncclResult_t add_operation(const struct request *given) {
    const struct request request = *given;
    struct reduction reduction = {0};
    ncclResult_t status = check(&request, &reduction);
    if (!status && request.comm->checks_pointers && request.count) status = check_pointers(&request);
    if (status) return group_note(status);
    if (!request.count && request.function != SEND && request.function != RECEIVE) return ncclSuccess;
    struct task *task = calloc(1, sizeof *task);
    if (!task) return group_note(nccl_fail(ncclSystemError, "the host has no memory for an operation"));
    *task = (struct task){.function = request.function,
                          .source = request.source,
                          .target = request.target,
                          .count = request.count,
                          .type = request.type,
                          .reduction = reduction,
                          .root = request.root,
                          .launched = event_of(request.config)};
    return group_add_task(request.comm, request.stream, task);
}

static ncclResult_t enqueue(struct request request) {
    COMM_KEEP(request.comm);
    ncclResult_t status = add_operation(&request);
    if (unlikely(status && status != ncclInProgress)) comm_misused(request.comm, status);
    return status;
}

#define NUMBERS const void *source, void *target, size_t count, ncclDataType_t type
#define ENDS ncclComm_t comm, cudaStream_t stream
#define ENDS_CONFIGURED ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config

static ncclResult_t ncclAllReduceConfig(NUMBERS, ncclRedOp_t op, ENDS_CONFIGURED) {
    return enqueue(
        (struct request){ALL_REDUCE, source, target, count, type, true, false, (int)op, -1, comm, stream, config});
}

static ncclResult_t ncclAllReduce(NUMBERS, ncclRedOp_t op, ENDS) {
    return ncclAllReduceConfig(source, target, count, type, op, comm, stream, NULL);
}

static ncclResult_t ncclReduceConfig(NUMBERS, ncclRedOp_t op, int root, ENDS_CONFIGURED) {
    return enqueue(
        (struct request){REDUCE, source, target, count, type, true, true, (int)op, root, comm, stream, config});
}

static ncclResult_t ncclReduce(NUMBERS, ncclRedOp_t op, int root, ENDS) {
    return ncclReduceConfig(source, target, count, type, op, root, comm, stream, NULL);
}

static ncclResult_t ncclBroadcastConfig(NUMBERS, int root, ENDS_CONFIGURED) {
    return enqueue(
        (struct request){BROADCAST, source, target, count, type, false, true, 0, root, comm, stream, config});
}

static ncclResult_t ncclBroadcast(NUMBERS, int root, ENDS) {
    return ncclBroadcastConfig(source, target, count, type, root, comm, stream, NULL);
}

static ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ENDS) {
    return ncclBroadcastConfig(buffer, buffer, count, type, root, comm, stream, NULL);
}

static ncclResult_t ncclAllGatherConfig(NUMBERS, ENDS_CONFIGURED) {
    return enqueue(
        (struct request){ALL_GATHER, source, target, count, type, false, false, 0, -1, comm, stream, config});
}

static ncclResult_t ncclAllGather(NUMBERS, ENDS) {
    return ncclAllGatherConfig(source, target, count, type, comm, stream, NULL);
}

static ncclResult_t ncclReduceScatterConfig(NUMBERS, ncclRedOp_t op, ENDS_CONFIGURED) {
    return enqueue(
        (struct request){REDUCE_SCATTER, source, target, count, type, true, false, (int)op, -1, comm, stream, config});
}

static ncclResult_t ncclReduceScatter(NUMBERS, ncclRedOp_t op, ENDS) {
    return ncclReduceScatterConfig(source, target, count, type, op, comm, stream, NULL);
}

static ncclResult_t ncclAlltoAllConfig(NUMBERS, ENDS_CONFIGURED) {
    return enqueue(
        (struct request){ALL_TO_ALL, source, target, count, type, false, false, 0, -1, comm, stream, config});
}

static ncclResult_t ncclAlltoAll(NUMBERS, ENDS) {
    return ncclAlltoAllConfig(source, target, count, type, comm, stream, NULL);
}

static ncclResult_t ncclGatherConfig(NUMBERS, int root, ENDS_CONFIGURED) {
    return enqueue((struct request){GATHER, source, target, count, type, false, true, 0, root, comm, stream, config});
}

static ncclResult_t ncclGather(NUMBERS, int root, ENDS) {
    return ncclGatherConfig(source, target, count, type, root, comm, stream, NULL);
}

static ncclResult_t ncclScatterConfig(NUMBERS, int root, ENDS_CONFIGURED) {
    return enqueue((struct request){SCATTER, source, target, count, type, false, true, 0, root, comm, stream, config});
}

static ncclResult_t ncclScatter(NUMBERS, int root, ENDS) {
    return ncclScatterConfig(source, target, count, type, root, comm, stream, NULL);
}

static ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type, int peer, ENDS) {
    return enqueue((struct request){SEND, source, NULL, count, type, false, true, 0, peer, comm, stream, NULL});
}

static ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t type, int peer, ENDS) {
    return enqueue((struct request){RECEIVE, NULL, target, count, type, false, true, 0, peer, comm, stream, NULL});
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static ncclResult_t ncclMemAlloc(void **place, size_t size) {
    if (!place) return nccl_fail(ncclInvalidArgument, "ncclMemAlloc: ptr argument is NULL");
    CUdeviceptr address = 0; /* what no bytes get */
    NCCL_RETURN_IF(nccl_status(enter_runtime()));
    if (size) NCCL_RETURN_IF(nccl_memory_status(cuMemAlloc(&address, size)));
    *place = (void *)address;
    return ncclSuccess;
}

static ncclResult_t ncclMemFree(void *address) {
    if (!address) return ncclSuccess;
    NCCL_RETURN_IF(nccl_status(enter_runtime()));
    return nccl_memory_status(cuMemFree((CUdeviceptr)address));
}

/* Registered memory is as fast as any other here, and windows are memory that is registered. Even none can be. */
static ncclResult_t add(ncclComm_t comm, const char *function, void *address, size_t size, bool is_window,
                        void **handle) {
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, function, true));
    if (!handle) return nccl_fail(ncclInvalidArgument, "%s : there is no place for the handle", function);
    struct registration *made = malloc(sizeof *made);
    if (!made) return nccl_fail(ncclSystemError, "%s: the host has no memory", function);
    *made = (struct registration){.address = address, .size = size, .is_window = is_window};
    pthread_mutex_lock(&comm->lock);
    made->next = comm->registrations;
    comm->registrations = made;
    pthread_mutex_unlock(&comm->lock);
    *handle = made;
    return ncclSuccess;
}

/* With the lock: the place in the list. */
static struct registration **find(ncclComm_t comm, const void *handle, bool is_window) {
    struct registration **link = &comm->registrations;
    while (*link && (*link != handle || (*link)->is_window != is_window)) link = &(*link)->next;
    return link;
}

static ncclResult_t drop(ncclComm_t comm, const char *function, const void *handle, bool is_window) {
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, function, false));
    pthread_mutex_lock(&comm->lock);
    struct registration **link = find(comm, handle, is_window), *found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&comm->lock);
    free(found);
    if (found) return ncclSuccess;
    return nccl_fail(ncclInvalidArgument, "%s: %p is no %s of this communicator", function, handle,
                     is_window ? "window" : "handle");
}

static ncclResult_t ncclCommRegister(const ncclComm_t comm, void *address, size_t size, void **handle) {
    return add(comm, "ncclCommRegister", address, size, false, handle);
}

static ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
    return drop(comm, "CommDeregister", handle, false);
}

static ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *address, size_t size, ncclWindow_t *window,
                                           int flags) {
    (void)flags; /* they choose among NVIDIA's ways to reach a window; unknown ones choose none */
    return add(comm, "CommWindowRegister", address, size, true, (void **)window);
}

static ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    return window ? drop(comm, "CommWindowDeregister", window, true) : ncclSuccess;
}

static ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **address) {
    COMM_KEEP(comm);
    NCCL_RETURN_IF(comm_check(comm, "WinGetUserPtr", false));
    if (!address) return nccl_fail(ncclInvalidArgument, "WinGetUserPtr : outUserPtr argument is NULL");
    pthread_mutex_lock(&comm->lock);
    const struct registration *found = *find(comm, window, true);
    *address = found ? found->address : NULL;
    pthread_mutex_unlock(&comm->lock);
    if (found) return ncclSuccess;
    return nccl_fail(ncclInvalidArgument, "WinGetUserPtr: %p is no window of this communicator", (void *)window);
}

#define NCCL_ENTRY(name) MATH_ENTRY(cupola_nccl_table, name)

const struct entry nccl_collective_entries[] = {
    NCCL_ENTRY(ncclAllGather),
    NCCL_ENTRY(ncclAllGatherConfig),
    NCCL_ENTRY(ncclAllReduce),
    NCCL_ENTRY(ncclAllReduceConfig),
    NCCL_ENTRY(ncclAlltoAll),
    NCCL_ENTRY(ncclAlltoAllConfig),
    NCCL_ENTRY(ncclBcast),
    NCCL_ENTRY(ncclBroadcast),
    NCCL_ENTRY(ncclBroadcastConfig),
    NCCL_ENTRY(ncclCommDeregister),
    NCCL_ENTRY(ncclCommRegister),
    NCCL_ENTRY(ncclCommWindowDeregister),
    NCCL_ENTRY(ncclCommWindowRegister),
    NCCL_ENTRY(ncclGather),
    NCCL_ENTRY(ncclGatherConfig),
    NCCL_ENTRY(ncclMemAlloc),
    NCCL_ENTRY(ncclMemFree),
    NCCL_ENTRY(ncclRecv),
    NCCL_ENTRY(ncclRedOpCreatePreMulSum),
    NCCL_ENTRY(ncclRedOpDestroy),
    NCCL_ENTRY(ncclReduce),
    NCCL_ENTRY(ncclReduceConfig),
    NCCL_ENTRY(ncclReduceScatter),
    NCCL_ENTRY(ncclReduceScatterConfig),
    NCCL_ENTRY(ncclScatter),
    NCCL_ENTRY(ncclScatterConfig),
    NCCL_ENTRY(ncclSend),
    NCCL_ENTRY(ncclWinGetUserPtr),
    {NULL, NULL, NULL},
};
