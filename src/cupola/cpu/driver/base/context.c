/* Contexts, primary contexts and each thread's stack of them (CUDA Driver API, "Primary Context Management",
 * "Context Management", "Peer Context Memory Access").
 *
 * The slot of a context is never given away again, so that streams, events and threads may keep plain pointers to
 * one that was destroyed and find out. A primary context keeps its slot for the whole process: it is active while
 * it is retained, and a reset makes it inactive and clears it. */
#include <stdio.h>
#include <stdlib.h>

#include "base.h"
#include "checks.h"
#include "engine/memory/usage.h"

enum { API_VERSION = 3020 };

static _Atomic uint64_t next_id = 1;

/* ---- life ------------------------------------------------------------------------------------------------------ */

static CUcontext context_new(struct device *device) {
    CUcontext context = handle_new(HANDLE_CONTEXT, sizeof *context);
    if (!context) return NULL;
    context->device = device;
    context->owner = context;
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->order_lock, NULL);
    return context;
}

static CUresult context_activate(CUcontext context, unsigned flags) {
    RETURN_IF(device_check_presence(context->device->ordinal));
    context->id = atomic_fetch_add(&next_id, 1);
    context->flags = flags;
    context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    context->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    context->peers = 0;
    context->error = CUDA_SUCCESS;
    context->heard = false;
    context_begin_limits(context);
    coredump_begin(&context->coredump);
    context->active = true;
    usage_add(&cpu_usage_of(context->device->ordinal)->contexts, 1);
    return CUDA_SUCCESS;
}

static void context_deactivate(CUcontext context) {
    if (!context->active) return; /* a primary context that was reset, but is still retained */
    context->active = false;
    usage_add(&cpu_usage_of(context->device->ordinal)->contexts, -1);
    streams_context_destroyed(context); /* waits for all their work */
    events_context_destroyed(context);
    modules_context_destroyed(context);
    references_context_destroyed(context);
    textures_context_destroyed(context);
    graphics_context_destroyed(context);
    arrays_context_destroyed(context);
    memory_context_destroyed(context);
    struct fault_record *fault = context->fault;
    context->fault = NULL;
    context->error = CUDA_SUCCESS;
    if (fault) {
        if (fault->module) module_release(fault->module);
        free(fault->text);
        free(fault);
    }
}

CUresult context_new_primary(struct device *device) {
    device->primary = context_new(device);
    if (!device->primary) return no_memory("a context");
    device->primary->is_primary = true;
    return CUDA_SUCCESS;
}

struct loss {
    int device;
    CUresult status;
};

static void lose(void *object, void *data) {
    CUcontext context = object;
    const struct loss *loss = data;
    if (!context_is_alive(context) || context->green || context->device->ordinal != loss->device) return;
    (fail)(loss->status, "device %d was lost: cupola.cpu.faults has taken it away", loss->device);
    context_fault(context, loss->status, NULL, NULL);
}

void contexts_lose_device(int device, CUresult status) {
    struct loss loss = {device, status};
    cpu_usage_fault(cpu_usage_place(device), CPU_USAGE_LOST);
    handle_each(HANDLE_CONTEXT, lose, &loss);
}

CUresult context_check(CUcontext context) {
    if (unlikely(context->green != NULL)) {
        if (!context_is_alive(context))
            return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the green context on device %d has been destroyed",
                        context->device->ordinal);
        context = context->owner;
    }
    if (unlikely(!atomic_load_explicit(&context->active, memory_order_acquire)))
        return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED,
                    context->is_primary
                        ? "the primary context of device %d is not retained: call cuDevicePrimaryCtxRetain, or "
                          "Device(...).set_current(), first"
                        : "the context on device %d has been destroyed",
                    context->device->ordinal);
    if (unlikely(atomic_load_explicit(&context->error, memory_order_acquire))) return context_error(context);
    return CUDA_SUCCESS;
}

CUresult context_find_itself(CUcontext handle, CUcontext *context) {
    RETURN_IF(enter());
    CUcontext found = handle ? handle : current_context();
    if (!found) return fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread, and none is given");
    if (!handle_was_live(found, HANDLE_CONTEXT))
        return fail(CUDA_ERROR_INVALID_CONTEXT, "%p is not a context of the CPU device", (void *)found);
    if (!context_is_alive(found))
        return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context %p has been destroyed or reset", (void *)found);
    *context = found;
    return CUDA_SUCCESS;
}

CUresult context_find(CUcontext handle, CUcontext *context) {
    RETURN_IF(context_find_itself(handle, context));
    *context = (*context)->owner;
    return CUDA_SUCCESS;
}

/* ---- asynchronous errors --------------------------------------------------------------------------------------- */

void context_fault(CUcontext context, CUresult status, CUmodule module, const cpu_launch *launch) {
    struct fault_record *fault = calloc(1, sizeof *fault);
    if (fault) {
        fault->status = status;
        if (launch) {
            fault->launch = *launch;
            fault->launch.params = NULL;
            fault->module = handle_retain(module);
        } else if (thread_state.failed == status) {
            fault->text = strdup(thread_state.explanation);
        }
    }
    pthread_mutex_lock(&context->lock);
    bool first = !context->error;
    if (first) {
        context->fault = fault;
        atomic_store_explicit(&context->error, status, memory_order_release);
    }
    pthread_mutex_unlock(&context->lock);
    if (first && launch) {
        cpu_usage_fault(cpu_usage_place(context->device->ordinal), (int)status);
        check_fault(status, launch);
    }
    if (first || !fault) return;
    if (fault->module) module_release(fault->module);
    free(fault->text);
    free(fault);
}

CUresult context_error(CUcontext context) {
    CUresult status = (CUresult)atomic_load_explicit(&context->error, memory_order_acquire);
    if (status) {
        atomic_store_explicit(&context->heard, true, memory_order_relaxed);
        (fail)(status, "earlier work in this context failed; the context must be reset or destroyed");
        thread_state.spoiled = context;
    }
    return status;
}

/* The record is copied under the lock and explained outside it: a thread with the GIL may be waiting for the lock. */
size_t context_explain(CUcontext context, CUresult status, char *text, size_t size) {
    struct fault_record fault = {.status = CUDA_SUCCESS};
    size_t length = 0;
    pthread_mutex_lock(&context->lock);
    if (context->fault && context->fault->status == status) {
        fault = *context->fault;
        if (fault.module) handle_retain(fault.module);
        if (fault.text && !fault.module) length = (size_t)snprintf(text, size, "%s", fault.text);
    }
    pthread_mutex_unlock(&context->lock);
    if (fault.module) {
        length = cpu_fault_describe(&fault.launch, &fault.launch.fault, text, size);
        module_release(fault.module);
    }
    return length;
}

/* ---- primary contexts ------------------------------------------------------------------------------------------ */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal) {
    struct device *device = NULL;
    pass_gate();
    RETURN_IF(device_get(ordinal, &device));
    if (!context) return fail_null("pctx");
    pthread_mutex_lock(&device->lock);
    CUresult status = device->primary->active ? CUDA_SUCCESS : context_activate(device->primary, device->primary_flags);
    if (!status) {
        device->primary_users++;
        *context = device->primary;
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
    struct device *device = NULL;
    pass_gate();
    RETURN_IF(device_get(ordinal, &device));
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&device->lock);
    if (!device->primary_users)
        status = fail(CUDA_ERROR_INVALID_CONTEXT, "the primary context of device %d is not retained", ordinal);
    else if (device->primary_users == device->greens)
        status = fail(CUDA_ERROR_NOT_PERMITTED, "only green contexts retain the primary context of device %d", ordinal);
    else if (!--device->primary_users) context_deactivate(device->primary);
    pthread_mutex_unlock(&device->lock);
    images_sweep();
    return status;
}

CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) {
    struct device *device = NULL;
    pass_gate();
    RETURN_IF(device_get(ordinal, &device));
    pthread_mutex_lock(&device->lock);
    CUresult status = device->greens
                          ? fail(CUDA_ERROR_NOT_PERMITTED, "device %d has green contexts: destroy them first", ordinal)
                          : CUDA_SUCCESS;
    if (!status) context_deactivate(device->primary); /* without a release: that is up to those who retained it */
    pthread_mutex_unlock(&device->lock);
    images_sweep();
    return status;
}

static CUresult check_flags(unsigned flags) {
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK || (schedule & (schedule - 1)))
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of a context (CUctx_flags)", flags);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned flags) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    RETURN_IF(check_flags(flags));
    pthread_mutex_lock(&device->lock);
    device->primary_flags = device->primary->flags = flags;
    pthread_mutex_unlock(&device->lock);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active) {
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    if (!flags) return fail_null("flags");
    if (!active) return fail_null("active");
    *flags = device->primary_flags;
    *active = device->primary->active;
    return CUDA_SUCCESS;
}

/* ---- green contexts: their part of the base; stream/green.c has the rest ---------------------------------------- */

static CUresult new_green(struct device *device, const struct part *part, CUcontext *context) {
    CUcontext made = context_new(device);
    if (!made) return no_memory("a green context");
    made->places = malloc(part->count);
    made->share = cpu_share_new(part->count, (uint32_t)device->model->multiprocessors);
    if (!made->places || !made->share) {
        free(made->places);
        handle_kill(made);
        return no_memory("a green context");
    }
    part_list(part, made->places);
    made->part = *part;
    made->owner = device->primary;
    made->id = atomic_fetch_add(&next_id, 1);
    made->active = true;
    *context = made;
    return CUDA_SUCCESS;
}

CUresult context_new_green(struct device *device, const struct part *part, CUcontext *context) {
    CUcontext primary;
    RETURN_IF(cuDevicePrimaryCtxRetain(&primary, device->ordinal));
    CUresult status = new_green(device, part, context);
    if (status) {
        (void)cuDevicePrimaryCtxRelease(device->ordinal);
        return status;
    }
    pthread_mutex_lock(&device->lock);
    device->greens++;
    pthread_mutex_unlock(&device->lock);
    return CUDA_SUCCESS;
}

void context_end_green(CUcontext context) {
    struct device *device = context->device;
    pthread_mutex_lock(&device->lock);
    device->greens--;
    pthread_mutex_unlock(&device->lock);
    (void)cuDevicePrimaryCtxRelease(device->ordinal);
}

int context_multiprocessors(CUcontext context) {
    return context->green ? (int)context->part.count : context->device->model->multiprocessors;
}

/* ---- the current context --------------------------------------------------------------------------------------- */

static CUresult push(CUcontext context) {
    if (thread_state.depth == CONTEXT_STACK)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d contexts are pushed on this thread, more than the CPU device allows",
                    CONTEXT_STACK);
    thread_state.stack[thread_state.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *parameters, unsigned flags, CUdevice ordinal) {
    struct device *device = NULL;
    pass_gate();
    RETURN_IF(device_get(ordinal, &device));
    if (!context) return fail_null("pctx");
    RETURN_IF(check_flags(flags));
    if (parameters && (parameters->numExecAffinityParams || parameters->cigParams))
        return fail(CUDA_ERROR_NOT_SUPPORTED, "the CPU device has no contexts with execution affinity or for graphics");
    CUcontext made = context_new(device);
    if (!made) return no_memory("a context");
    CUresult status = context_activate(made, flags);
    if (!status) status = push(made);
    if (status) {
        made->active = false;
        handle_kill(made);
        return status;
    }
    *context = made;
    return CUDA_SUCCESS;
}

static CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice ordinal) {
    return cuCtxCreate(context, NULL, flags, ordinal);
}

static CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags,
                               CUdevice ordinal) {
    CUctxCreateParams parameters = {.execAffinityParams = affinity, .numExecAffinityParams = count};
    return cuCtxCreate(context, &parameters, flags, ordinal);
}

CUresult cuCtxDestroy(CUcontext context) {
    RETURN_IF(enter_to_work());
    if (!context || !handle_was_live(context, HANDLE_CONTEXT))
        return fail(CUDA_ERROR_INVALID_CONTEXT, "%p is not a context of the CPU device", (void *)context);
    if (context->is_primary)
        return fail(CUDA_ERROR_INVALID_CONTEXT, "a primary context is released with cuDevicePrimaryCtxRelease");
    if (context->green) return fail(CUDA_ERROR_INVALID_CONTEXT, "a green context is destroyed with cuGreenCtxDestroy");
    if (!handle_kill(context)) return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context has been destroyed already");
    if (current_context() == context) thread_state.depth--;
    context_deactivate(context);
    images_sweep();
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
    RETURN_IF(enter());
    if (!context) return fail(CUDA_ERROR_INVALID_CONTEXT, "the context is null");
    RETURN_IF(context_find_itself(context, &context));
    return push(context);
}

CUresult cuCtxPopCurrent(CUcontext *context) {
    RETURN_IF(enter());
    if (!thread_state.depth) return fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread");
    CUcontext popped = thread_state.stack[--thread_state.depth];
    if (context) *context = popped;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    RETURN_IF(enter());
    if (context) RETURN_IF(context_find_itself(context, &context));
    if (thread_state.depth) thread_state.depth--;
    return context ? push(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    RETURN_IF(enter());
    if (!context) return fail_null("pctx");
    *context = current_context();
    return CUDA_SUCCESS;
}

/* ---- what a context has ---------------------------------------------------------------------------------------- */

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    RETURN_IF(context_find(context, &context));
    if (!device) return fail_null("device");
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) { return cuCtxGetDevice_v2(device, NULL); }

CUresult cuCtxGetFlags(unsigned *flags) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    if (!flags) return fail_null("flags");
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    RETURN_IF(check_flags(flags));
    context->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    RETURN_IF(context_find_itself(context, &context));
    if (!id) return fail_null("ctxId");
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
    RETURN_IF(context_find(context, &context));
    if (!version) return fail_null("version");
    *version = API_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
    RETURN_IF(context_find_itself(context, &context));
    return context_synchronize(context);
}

CUresult cuCtxSynchronize(void) { return cuCtxSynchronize_v2(NULL); }

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    if (least) *least = PRIORITY_LEAST;
    if (greatest) *greatest = PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    if (!config) return fail_null("pconfig");
    *config = context->cache_config;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUfunc_cache", (int)config);
    context->cache_config = config;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    if (!config) return fail_null("pConfig");
    *config = context->shared_config;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUsharedconfig", (int)config);
    if (config) context->shared_config = config;
    return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void) {
    CUcontext context;
    return enter_context(&context);
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam *affinity, CUexecAffinityType type) {
    CUcontext context;
    RETURN_IF(context_find(NULL, &context));
    if (!affinity) return fail_null("pExecAffinity");
    return fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the CPU device has no execution affinity %d", (int)type);
}

/* There is no profiler to switch on, but programs that mark the part to be profiled still run. */
CUresult cuProfilerStart(void) {
    CUcontext context;
    return enter_context(&context);
}

CUresult cuProfilerStop(void) {
    CUcontext context;
    return enter_context(&context);
}

/* ---- peers ----------------------------------------------------------------------------------------------------- */

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    if (!peer) return fail(CUDA_ERROR_INVALID_CONTEXT, "the peer's context is null");
    RETURN_IF(context_find(peer, &peer));
    RETURN_IF(device_check_presence(peer->device->ordinal));
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "the flags of cuCtxEnablePeerAccess must be 0, not %u", flags);
    if (peer->device == context->device)
        return fail(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "both contexts are on device %d", peer->device->ordinal);
    uint32_t bit = UINT32_C(1) << peer->device->ordinal;
    pthread_mutex_lock(&context->lock);
    bool already = context->peers & bit;
    context->peers |= bit;
    pthread_mutex_unlock(&context->lock);
    return already ? fail(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "access to device %d is enabled already",
                          peer->device->ordinal)
                   : CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    if (!peer) return fail(CUDA_ERROR_INVALID_CONTEXT, "the peer's context is null");
    RETURN_IF(context_find(peer, &peer));
    uint32_t bit = UINT32_C(1) << peer->device->ordinal;
    pthread_mutex_lock(&context->lock);
    bool enabled = context->peers & bit;
    context->peers &= ~bit;
    pthread_mutex_unlock(&context->lock);
    return enabled
               ? CUDA_SUCCESS
               : fail(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "access to device %d is not enabled", peer->device->ordinal);
}

const struct entry context_entries[] = {
    ENTRY(cuDevicePrimaryCtxRetain),
    ENTRY(cuDevicePrimaryCtxRelease),
    ENTRY_AS(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease),
    ENTRY(cuDevicePrimaryCtxReset),
    ENTRY_AS(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset),
    ENTRY(cuDevicePrimaryCtxSetFlags),
    ENTRY_AS(cuDevicePrimaryCtxSetFlags_v2, cuDevicePrimaryCtxSetFlags),
    ENTRY(cuDevicePrimaryCtxGetState),
    ENTRY(cuCtxCreate),
    ENTRY_AS(cuCtxCreate_v4, cuCtxCreate),
    ENTRY_AS(cuCtxCreate_v3, cuCtxCreate_v3),
    ENTRY_AS(cuCtxCreate_v2, cuCtxCreate_v2),
    ENTRY(cuCtxDestroy),
    ENTRY_AS(cuCtxDestroy_v2, cuCtxDestroy),
    ENTRY(cuCtxPushCurrent),
    ENTRY_AS(cuCtxPushCurrent_v2, cuCtxPushCurrent),
    ENTRY(cuCtxPopCurrent),
    ENTRY_AS(cuCtxPopCurrent_v2, cuCtxPopCurrent),
    ENTRY(cuCtxSetCurrent),
    ENTRY(cuCtxGetCurrent),
    ENTRY(cuCtxGetDevice),
    ENTRY(cuCtxGetDevice_v2),
    ENTRY(cuCtxGetFlags),
    ENTRY(cuCtxSetFlags),
    ENTRY(cuCtxGetId),
    ENTRY(cuCtxGetApiVersion),
    ENTRY(cuCtxSynchronize),
    ENTRY(cuCtxSynchronize_v2),
    ENTRY(cuCtxGetStreamPriorityRange),
    ENTRY(cuCtxGetCacheConfig),
    ENTRY(cuCtxSetCacheConfig),
    ENTRY(cuCtxGetSharedMemConfig),
    ENTRY(cuCtxSetSharedMemConfig),
    ENTRY(cuCtxResetPersistingL2Cache),
    ENTRY(cuCtxGetExecAffinity),
    ENTRY(cuProfilerStart),
    ENTRY(cuProfilerStop),
    ENTRY(cuCtxEnablePeerAccess),
    ENTRY(cuCtxDisablePeerAccess),
    {NULL, NULL, NULL},
};
