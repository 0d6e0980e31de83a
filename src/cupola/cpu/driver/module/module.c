/* Modules: an image loaded into a context, with memory for its variables (CUDA Driver API, "Module Management"). */
#include <stdio.h>
#include <stdlib.h>

#include "module.h"

/* ---- life ------------------------------------------------------------------------------------------------------ */

static void free_variables(CUmodule module) {
    for (size_t i = 0; i < module->image->variable_count; i++)
        if (module->variables[i]) memory_free_variable(module->variables[i]);
    free(module->variables);
}

static CUresult allocate_variables(CUmodule module) {
    const struct image *image = module->image;
    for (size_t i = 0; i < image->variable_count; i++) {
        const struct variable *variable = &image->variables[i];
        RETURN_IF(memory_allocate_variable(module->context, variable->size, variable->align, variable->is_managed,
                                           &module->variables[i]));
        if (variable->init) memcpy((void *)module->variables[i], variable->init, variable->init_size);
    }
    for (size_t i = 0; i < image->variable_count; i++) {
        const struct variable *variable = &image->variables[i];
        for (size_t r = 0; r < variable->relocation_count; r++) {
            const struct relocation *relocation = &variable->relocations[r];
            uint64_t value = module->variables[relocation->target] + (uint64_t)relocation->addend;
            memcpy((char *)module->variables[i] + relocation->offset, &value, relocation->width); /* little endian */
        }
    }
    return CUDA_SUCCESS;
}

static CUresult make_functions(CUmodule module) {
    const struct image *image = module->image;
    for (size_t i = 0; i < image->kernel_count; i++) {
        CUfunction function = handle_new(HANDLE_FUNCTION, sizeof *function);
        if (!function) return no_memory("the functions of the module");
        function->module = module;
        function->kernel = image->kernels[i].kernel;
        function->image_kernel = &image->kernels[i];
        function->index = i;
        function->own = default_function_attributes;
        function->attributes = &function->own;
        if (module->library) {
            function->owner = module->library->kernels[i];
            function->attributes = &function->owner->attributes[module->context->device->ordinal];
        }
        module->functions[i] = function;
    }
    return CUDA_SUCCESS;
}

CUresult module_new(CUcontext context, struct image *image, CUlibrary library, CUmodule *result) {
    CUmodule module = handle_new(HANDLE_MODULE, sizeof *module);
    if (!module) return no_memory("a module");
    module->context = context;
    module->image = image;
    module->library = library;
    atomic_fetch_add(&image->references, 1);
    module->variables = calloc(image->variable_count + 1, sizeof *module->variables);
    module->functions = calloc(image->kernel_count + 1, sizeof *module->functions);
    pthread_mutex_lock(&context->lock);
    module->next_in_context = context->modules;
    if (context->modules) context->modules->previous_in_context = module;
    context->modules = module;
    pthread_mutex_unlock(&context->lock);
    CUresult status = module->variables && module->functions ? CUDA_SUCCESS : no_memory("a module");
    if (!status) status = allocate_variables(module);
    if (!status) status = make_functions(module);
    if (status) {
        handle_kill(module);
        module_destroy(module);
        return status;
    }
    *result = module;
    return CUDA_SUCCESS;
}

/* The functions and variables stay until no launch that is queued needs them. */
void module_destroy(CUmodule module) {
    CUcontext context = module->context;
    for (size_t i = 0; module->functions && i < module->image->kernel_count; i++)
        if (module->functions[i]) handle_kill(module->functions[i]);
    pthread_mutex_lock(&context->lock);
    if (module->previous_in_context) module->previous_in_context->next_in_context = module->next_in_context;
    else context->modules = module->next_in_context;
    if (module->next_in_context) module->next_in_context->previous_in_context = module->previous_in_context;
    pthread_mutex_unlock(&context->lock);
    module_release(module);
}

void module_release(CUmodule module) {
    if (!handle_release(module)) return;
    references_module_released(module);
    if (module->variables) free_variables(module);
    for (size_t i = 0; module->functions && i < module->image->kernel_count; i++)
        if (module->functions[i]) handle_free(HANDLE_FUNCTION, module->functions[i]);
    free(module->functions);
    image_release(module->image);
    handle_free(HANDLE_MODULE, module);
}

void modules_context_destroyed(CUcontext context) {
    for (;;) {
        pthread_mutex_lock(&context->lock);
        CUmodule module = context->modules;
        pthread_mutex_unlock(&context->lock);
        if (!module) return;
        if (module->library) library_forget(module->library, module);
        handle_kill(module);
        module_destroy(module);
    }
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* "it has: a, b, …", for a name that was not found. */
static void list_names(char *text, size_t size, size_t count, const char *(*name)(const struct image *, size_t),
                       const struct image *image) {
    size_t used = 0;
    if (!count) snprintf(text, size, "it has none");
    for (size_t i = 0; i < count && used + 1 < size; i++) {
        int length = i == 16 ? snprintf(text + used, size - used, ", … (%zu in all)", count)
                             : snprintf(text + used, size - used, "%s%s", i ? ", " : "it has: ", name(image, i));
        if (i == 16 || length < 0) return;
        used += (size_t)length;
    }
}

static const char *kernel_name(const struct image *image, size_t i) {
    return cpu_kernel_name(image->kernels[i].kernel);
}
static const char *variable_name(const struct image *image, size_t i) { return image->variables[i].name; }

CUresult kernel_index(const struct image *image, const char *name, size_t *index) {
    for (size_t i = 0; i < image->kernel_count; i++)
        if (!strcmp(kernel_name(image, i), name)) {
            *index = i;
            return CUDA_SUCCESS;
        }
    char names[EXPLANATION_SIZE / 2];
    list_names(names, sizeof names, image->kernel_count, kernel_name, image);
    return fail(CUDA_ERROR_NOT_FOUND, "the module has no kernel named '%.200s'; %s", name, names);
}

CUresult module_global(CUmodule module, const char *name, CUdeviceptr *address, size_t *size) {
    const struct image *image = module->image;
    for (size_t i = 0; i < image->variable_count; i++)
        if (!strcmp(image->variables[i].name, name)) {
            if (address) *address = module->variables[i];
            if (size) *size = image->variables[i].size;
            return CUDA_SUCCESS;
        }
    char names[EXPLANATION_SIZE / 2];
    list_names(names, sizeof names, image->variable_count, variable_name, image);
    return fail(CUDA_ERROR_NOT_FOUND, "the module has no variable named '%.200s'; %s", name, names);
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

static CUresult enter_module(CUmodule module) {
    RETURN_IF(enter());
    if (!handle_is_live(module, HANDLE_MODULE)) return fail_handle("module", module, HANDLE_MODULE);
    return context_check(module->context);
}

static CUresult finish_load(CUcontext context, struct image *image, CUmodule *module) {
    CUresult status = module_new(context, image, NULL, module);
    image_release(image);
    return status;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *data, unsigned count, CUjit_option *options, void **values) {
    CUcontext context;
    struct image *image;
    RETURN_IF(enter_context(&context));
    if (!module) return fail_null("module");
    RETURN_IF(image_load_with_options(data, count, options, values, &image));
    return finish_load(context, image, module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *data) {
    return cuModuleLoadDataEx(module, data, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *data) {
    return cuModuleLoadDataEx(module, data, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *path) {
    CUcontext context;
    struct image *image;
    RETURN_IF(enter_context(&context));
    if (!module) return fail_null("module");
    if (!path) return fail_null("fname");
    RETURN_IF(image_load_file(path, &image));
    return finish_load(context, image, module);
}

CUresult cuModuleUnload(CUmodule module) {
    RETURN_IF(enter_to_work());
    if (!handle_is_live(module, HANDLE_MODULE)) return fail_handle("module", module, HANDLE_MODULE);
    if (module->library)
        return fail(CUDA_ERROR_NOT_PERMITTED, "the module belongs to a library: it goes with cuLibraryUnload");
    memory_wait_for_users(module->context); /* its variables go with it */
    if (!handle_kill(module)) return fail_handle("module", module, HANDLE_MODULE);
    module_destroy(module);
    images_sweep();
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    RETURN_IF(enter());
    if (!mode) return fail_null("mode");
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    size_t index;
    pass_gate();
    RETURN_IF(enter_module(module));
    if (!function) return fail_null("hfunc");
    RETURN_IF(check_name(name));
    *function = NULL;
    RETURN_IF(kernel_index(module->image, name, &index));
    RETURN_IF(kernel_read(module->image, index));
    *function = module->functions[index];
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
    RETURN_IF(enter_module(module));
    if (!count) return fail_null("count");
    *count = (unsigned)module->image->kernel_count;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module) {
    RETURN_IF(enter_module(module));
    if (!functions) return fail_null("functions");
    for (size_t i = 0; i < count && i < module->image->kernel_count; i++) RETURN_IF(kernel_read(module->image, i));
    for (size_t i = 0; i < count && i < module->image->kernel_count; i++) functions[i] = module->functions[i];
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
    if (address) *address = 0;
    if (size) *size = 0;
    RETURN_IF(enter_module(module));
    RETURN_IF(check_name(name));
    if (!address && !size) return fail_null("dptr, as bytes is,");
    return module_global(module, name, address, size);
}

const struct entry module_entries[] = {
    ENTRY(cuModuleLoad),
    ENTRY(cuModuleLoadData),
    ENTRY(cuModuleLoadDataEx),
    ENTRY(cuModuleLoadFatBinary),
    ENTRY(cuModuleUnload),
    ENTRY(cuModuleGetLoadingMode),
    ENTRY(cuModuleGetFunction),
    ENTRY(cuModuleGetFunctionCount),
    ENTRY(cuModuleEnumerateFunctions),
    ENTRY(cuModuleGetGlobal),
    ENTRY_AS(cuModuleGetGlobal_v2, cuModuleGetGlobal),
    {NULL, NULL, NULL},
};
