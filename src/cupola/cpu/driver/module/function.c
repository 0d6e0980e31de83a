/* Functions and kernels: what is known of them, and what may be set (CUDA Driver API, "Execution Control", "Library
 * Management"). A CUkernel is taken wherever a CUfunction is. */
#include "module.h"

const struct function_attributes default_function_attributes = {
    .max_dynamic_shared = -1,
    .carveout = -1,
    .cluster_policy = CU_CLUSTER_SCHEDULING_POLICY_DEFAULT,
    .cache = CU_FUNC_CACHE_PREFER_NONE,
};

static CUresult find_of_kernel(CUkernel kernel, CUcontext context, CUfunction *function) {
    _Atomic(CUfunction) *last = &kernel->functions[context->device->ordinal];
    CUfunction found = atomic_load_explicit(last, memory_order_acquire);
    if (unlikely(!found || !handle_is_live(found, HANDLE_FUNCTION) || found->module->context != context ||
                 found->owner != kernel)) {
        CUmodule module;
        RETURN_IF(library_module(kernel->library, context, &module));
        found = module->functions[kernel->index];
        atomic_store_explicit(last, found, memory_order_release);
    }
    *function = found;
    return CUDA_SUCCESS;
}

CUresult function_find(CUfunction handle, CUcontext context, CUfunction *function) {
    if (handle_is_live(handle, HANDLE_FUNCTION)) {
        *function = handle;
        return CUDA_SUCCESS;
    }
    if (handle_is_live(handle, HANDLE_KERNEL)) {
        if (!context) RETURN_IF(enter_context(&context));
        return find_of_kernel((CUkernel)(void *)handle, context, function);
    }
    bool was_kernel = handle_was_live(handle, HANDLE_KERNEL);
    return fail_handle(was_kernel ? "kernel" : "function", handle, was_kernel ? HANDLE_KERNEL : HANDLE_FUNCTION);
}

static CUresult enter_function(CUfunction handle, CUfunction *function) {
    RETURN_IF(enter());
    RETURN_IF(function_find(handle, NULL, function));
    return context_check((*function)->module->context);
}

static CUresult enter_kernel(CUkernel kernel) {
    RETURN_IF(enter());
    return handle_is_live(kernel, HANDLE_KERNEL) ? CUDA_SUCCESS : fail_handle("kernel", kernel, HANDLE_KERNEL);
}

static const struct image_kernel *image_of(CUkernel kernel) { return &kernel->library->image->kernels[kernel->index]; }

/* ---- attributes ------------------------------------------------------------------------------------------------ */

static int max_dynamic_shared(const struct function_attributes *attributes, const cpu_kernel_info *info,
                              const struct model *model) {
    if (attributes->max_dynamic_shared >= 0) return attributes->max_dynamic_shared;
    int rest = model->shared_per_block - (int)info->static_shared;
    return rest > 0 ? rest : 0;
}

/* Registers are given to warps in lots of 256, and the number of warps counts in fours (the SM's partitions). */
static int max_threads(const cpu_kernel_info *info, const struct model *model) {
    int threads = 1024;
    if (info->registers) {
        int each = ((int)info->registers * 32 + 255) / 256 * 256;
        int warps = model->registers_per_block / each / 4 * 4;
        if (warps * 32 < threads) threads = warps * 32;
    }
    if (info->max_threads && (int)info->max_threads < threads) threads = (int)info->max_threads;
    return threads;
}

int function_max_dynamic_shared(CUfunction function) {
    return max_dynamic_shared(function->attributes, function->image_kernel->info,
                              function->module->context->device->model);
}

int function_max_threads(CUfunction function) {
    return max_threads(function->image_kernel->info, function->module->context->device->model);
}

static CUresult get_attribute(int *value, CUfunction_attribute attribute, const struct function_attributes *attributes,
                              const cpu_kernel_info *info, const struct model *model) {
    if (!value) return fail_null("pi");
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = max_threads(info, model); break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)info->static_shared; break;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)info->const_bytes; break;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)info->local_bytes; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)info->registers; break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = (int)info->ptx_version; break;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: /* PTX is compiled for the device */
            *value = info->binary_version ? (int)info->binary_version : model->major * 10 + model->minor;
            break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = max_dynamic_shared(attributes, info, model);
            break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = attributes->carveout; break;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = attributes->cluster_policy; break;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = attributes->non_portable_cluster; break;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = (int)info->must_have_cluster; break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
            const uint32_t *cluster = info->required_cluster[0] ? info->required_cluster : attributes->cluster;
            *value = (int)cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
            break;
        }
        default: return fail(CUDA_ERROR_INVALID_VALUE, "%d is not an attribute of functions", (int)attribute);
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(int value, CUfunction_attribute attribute, struct function_attributes *attributes,
                              const cpu_kernel_info *info, const struct model *model) {
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
            int limit = model->shared_per_block_optin - (int)info->static_shared;
            if (value < 0 || value > limit)
                return fail(
                    CUDA_ERROR_INVALID_VALUE,
                    "%d bytes of dynamic shared memory: this device allows a block %d bytes, of which the kernel "
                    "uses %u itself, so 0 to %d are possible",
                    value, model->shared_per_block_optin, info->static_shared, limit);
            attributes->max_dynamic_shared = value;
            break;
        }
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            if (value < -1 || value > 100)
                return fail(CUDA_ERROR_INVALID_VALUE, "the carveout is a percentage, or -1 for the default, not %d",
                            value);
            attributes->carveout = value;
            break;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: attributes->cluster_policy = value; break;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: attributes->non_portable_cluster = value; break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
            if (info->required_cluster[0])
                return fail(CUDA_ERROR_NOT_PERMITTED,
                            "the kernel was compiled for clusters of (%u, %u, %u) blocks (__cluster_dims__)",
                            info->required_cluster[0], info->required_cluster[1], info->required_cluster[2]);
            if (value < 0) return fail(CUDA_ERROR_INVALID_VALUE, "a cluster cannot have an extent of %d blocks", value);
            attributes->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = (uint32_t)value;
            break;
        default: return fail(CUDA_ERROR_INVALID_VALUE, "attribute %d of functions cannot be set", (int)attribute);
    }
    return CUDA_SUCCESS;
}

CUresult function_get_attribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    return get_attribute(value, attribute, function->attributes, function->image_kernel->info,
                         function->module->context->device->model);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    return function_get_attribute(value, attribute, function);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    return set_attribute(value, attribute, function->attributes, function->image_kernel->info,
                         function->module->context->device->model);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(enter_kernel(kernel));
    RETURN_IF(device_get(ordinal, &device));
    return get_attribute(value, attribute, &kernel->attributes[ordinal], image_of(kernel)->info, device->model);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(enter_kernel(kernel));
    RETURN_IF(device_get(ordinal, &device));
    return set_attribute(value, attribute, &kernel->attributes[ordinal], image_of(kernel)->info, device->model);
}

static CUresult check_cache(CUfunc_cache config) {
    return (unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL
               ? CUDA_SUCCESS
               : fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUfunc_cache", (int)config);
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    RETURN_IF(check_cache(config));
    function->attributes->cache = config;
    return CUDA_SUCCESS;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice ordinal) {
    struct device *device = NULL;
    RETURN_IF(enter_kernel(kernel));
    RETURN_IF(device_get(ordinal, &device));
    RETURN_IF(check_cache(config));
    kernel->attributes[ordinal].cache = config;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUsharedconfig", (int)config);
    return CUDA_SUCCESS; /* banks do not matter here, nor on GPUs since Maxwell */
}

/* ---- names, parameters, relations ------------------------------------------------------------------------------ */

CUresult cuFuncGetName(const char **name, CUfunction handle) {
    CUfunction function;
    if (!handle) return fail_null("hfunc");
    RETURN_IF(enter_function(handle, &function));
    if (!name) return fail_null("name");
    *name = cpu_kernel_name(function->kernel);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel) {
    if (!kernel) return fail_null("hfunc");
    RETURN_IF(enter_kernel(kernel));
    if (!name) return fail_null("name");
    *name = cpu_kernel_name(image_of(kernel)->kernel);
    return CUDA_SUCCESS;
}

static CUresult parameter_info(const struct image_kernel *kernel, size_t index, size_t *offset, size_t *size) {
    if (!offset) return fail_null("paramOffset");
    if (index >= kernel->info->param_count)
        return fail(CUDA_ERROR_INVALID_VALUE, "%s has %u parameters, so there is no parameter %zu",
                    cpu_kernel_name(kernel->kernel), kernel->info->param_count, index);
    *offset = kernel->parameters[index].offset;
    if (size) *size = kernel->parameters[index].size;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    return parameter_info(function->image_kernel, index, offset, size);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
    RETURN_IF(enter_kernel(kernel));
    return parameter_info(image_of(kernel), index, offset, size);
}

CUresult cuFuncGetParamCount(CUfunction handle, size_t *count) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    if (!count) return fail_null("paramCount");
    *count = function->image_kernel->info->param_count;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count) {
    RETURN_IF(enter_kernel(kernel));
    if (!count) return fail_null("paramCount");
    *count = image_of(kernel)->info->param_count;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction handle) {
    CUfunction function;
    if (!handle) return fail_null("hfunc");
    RETURN_IF(enter_function(handle, &function));
    if (!module) return fail_null("hmod");
    *module = function->module;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    CUcontext context;
    RETURN_IF(enter_kernel(kernel));
    RETURN_IF(enter_context(&context));
    if (!function) return fail_null("pFunc");
    return find_of_kernel(kernel, context, function);
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
    RETURN_IF(enter_kernel(kernel));
    if (!library) return fail_null("pLib");
    *library = kernel->library;
    return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle) {
    CUfunction function;
    RETURN_IF(enter_function(handle, &function));
    if (!state) return fail_null("state");
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle) {
    CUfunction function;
    return enter_function(handle, &function);
}

const struct entry function_entries[] = {
    ENTRY(cuFuncGetAttribute),
    ENTRY(cuFuncSetAttribute),
    ENTRY(cuFuncSetCacheConfig),
    ENTRY(cuFuncSetSharedMemConfig),
    ENTRY(cuFuncGetName),
    ENTRY(cuFuncGetParamInfo),
    ENTRY(cuFuncGetParamCount),
    ENTRY(cuFuncGetModule),
    ENTRY(cuFuncIsLoaded),
    ENTRY(cuFuncLoad),
    ENTRY(cuKernelGetAttribute),
    ENTRY(cuKernelSetAttribute),
    ENTRY(cuKernelSetCacheConfig),
    ENTRY(cuKernelGetName),
    ENTRY(cuKernelGetParamInfo),
    ENTRY(cuKernelGetParamCount),
    ENTRY(cuKernelGetFunction),
    ENTRY(cuKernelGetLibrary),
    {NULL, NULL, NULL},
};
