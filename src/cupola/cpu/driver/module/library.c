/* Libraries: images that are loaded into each context when it first uses them (CUDA Driver API, "Library Management").
 *
 * A kernel of a library stands for one function in each context; its attributes hold for each device.
 *
 * PTX is compiled when something of the library is first asked for, as CUDA does it (CUDA Programming Guide, "Lazy
 * Loading"), so that is the call which refuses bad PTX, and code that is for other GPUs only. CUDA_MODULE_LOADING=EAGER
 * has it compiled at once. */
#include <stdlib.h>
#include <string.h>

#include "module.h"

static void free_kernels(CUkernel *kernels, size_t count) {
    for (size_t i = 0; kernels && i < count; i++)
        if (kernels[i]) handle_free(HANDLE_KERNEL, kernels[i]);
    free(kernels);
}

static CUkernel *make_kernels(CUlibrary library, size_t count) {
    CUkernel *kernels = calloc(count + 1, sizeof *kernels);
    for (size_t i = 0; kernels && i < count; i++) {
        CUkernel kernel = kernels[i] = handle_new(HANDLE_KERNEL, sizeof *kernel);
        if (!kernel) {
            free_kernels(kernels, i);
            return NULL;
        }
        kernel->library = library;
        kernel->index = i;
        for (int device = 0; device < MAX_DEVICES; device++) kernel->attributes[device] = default_function_attributes;
    }
    return kernels;
}

static size_t kernel_count(CUlibrary library) { return library->image ? library->image->kernel_count : 0; }

static void library_free(CUlibrary library) {
    free_kernels(library->kernels, kernel_count(library));
    if (library->image) image_release(library->image);
    free(library->ptx);
    free(library->reason);
    pthread_mutex_destroy(&library->lock);
    handle_free(HANDLE_LIBRARY, library);
}

/* Give the library its image; takes over the reference. Of two threads that come with one, the first wins. */
static CUresult set_image(CUlibrary library, struct image *image) {
    CUkernel *kernels = make_kernels(library, image->kernel_count);
    pthread_mutex_lock(&library->lock);
    bool wanted = kernels && !library->image;
    if (wanted) {
        library->kernels = kernels;
        library->image = image;
    }
    pthread_mutex_unlock(&library->lock);
    if (!wanted) {
        free_kernels(kernels, image->kernel_count);
        image_release(image);
    }
    return kernels ? CUDA_SUCCESS : no_memory("the kernels of the library");
}

/* Have the image. The compiler is Python, so no lock may be held here. */
static CUresult complete(CUlibrary library) {
    struct image *image;
    if (likely(library->image)) return CUDA_SUCCESS;
    if (library->refusal) return fail(library->refusal, "%s", library->reason ? library->reason : "");
    RETURN_IF(image_load(library->ptx, &image));
    return set_image(library, image);
}

/* With an image, or with PTX to be compiled later. Takes over either. */
static CUresult library_new(struct image *image, char *ptx, CUlibrary *result) {
    CUlibrary library = handle_new(HANDLE_LIBRARY, sizeof *library);
    if (!library) {
        if (image) image_release(image);
        free(ptx);
        return no_memory("a library");
    }
    library->ptx = ptx;
    pthread_mutex_init(&library->lock, NULL);
    CUresult status = image ? set_image(library, image) : CUDA_SUCCESS;
    if (status) library_free(library);
    else *result = library;
    return status;
}

/* Of a cubin or a fat binary that has nothing for this device, the calls that ask for something in it say so. */
static CUresult library_or_refusal(CUresult status, struct image *image, CUlibrary *result) {
    char reason[EXPLANATION_SIZE];
    bool waits = status == CUDA_ERROR_NO_BINARY_FOR_GPU || status == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (!status) return library_new(image, NULL, result);
    if (!waits || settings.eager_loading) return status;
    explain(status, reason, sizeof reason);
    RETURN_IF(library_new(NULL, NULL, result));
    (*result)->refusal = status;
    (*result)->reason = strdup(reason);
    return CUDA_SUCCESS;
}

/* The text, when it is PTX that can wait; else NULL. */
static char *deferred_ptx(const char *code) {
    if (settings.eager_loading) return NULL;
    for (size_t i = 0; code[i]; i++) {
        if ((unsigned char)code[i] < ' ' && !strchr("\t\n\r\v\f", code[i])) return NULL; /* ELF, or a fat binary */
        if (!strncmp(code + i, ".version", 8)) return strdup(code);
    }
    return NULL;
}

/* The module of the library in a context; with the lock. */
static CUmodule find_module(CUlibrary library, CUcontext context) {
    CUmodule module = library->modules;
    while (module && module->context != context) module = module->next_in_library;
    return module;
}

CUresult library_module(CUlibrary library, CUcontext context, CUmodule *module) {
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&library->lock);
    *module = find_module(library, context);
    if (!*module) {
        status = module_new(context, library->image, library, module);
        if (!status) {
            (*module)->next_in_library = library->modules;
            library->modules = *module;
        }
    }
    pthread_mutex_unlock(&library->lock);
    return status;
}

/* The context of the module goes. */
void library_forget(CUlibrary library, CUmodule module) {
    pthread_mutex_lock(&library->lock);
    for (CUmodule *link = &library->modules; *link; link = &(*link)->next_in_library)
        if (*link == module) {
            *link = module->next_in_library;
            break;
        }
    pthread_mutex_unlock(&library->lock);
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

static CUresult enter_library(CUlibrary library) {
    RETURN_IF(enter());
    return handle_is_live(library, HANDLE_LIBRARY) ? CUDA_SUCCESS : fail_handle("library", library, HANDLE_LIBRARY);
}

static CUresult check_options(CUlibrary *library, CUlibraryOption *options, unsigned count) {
    RETURN_IF(enter());
    if (!library) return fail_null("library");
    if (count && !options) return fail_null("libraryOptions");
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)options[i] >= CU_LIBRARY_NUM_OPTIONS)
            return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUlibraryOption", (int)options[i]);
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options, void **jit_values,
                           unsigned jit_count, CUlibraryOption *options, void **values, unsigned count) {
    struct image *image = NULL;
    (void)values;
    RETURN_IF(check_options(library, options, count));
    if (!code) return fail_null("code");
    RETURN_IF(jit_check_options(jit_count, jit_options, jit_values));
    char *ptx = jit_is_verbose(jit_count, jit_options, jit_values) ? NULL : deferred_ptx(code);
    if (ptx) {
        jit_write_logs(jit_count, jit_options, jit_values, CUDA_SUCCESS, NULL, NULL);
        return library_new(NULL, ptx, library);
    }
    CUresult status = image_load_with_options(code, jit_count, jit_options, jit_values, &image);
    return library_or_refusal(status, image, library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options, void **jit_values,
                               unsigned jit_count, CUlibraryOption *options, void **values, unsigned count) {
    struct image *image = NULL;
    (void)values, (void)jit_options, (void)jit_values, (void)jit_count;
    RETURN_IF(check_options(library, options, count));
    if (!path) return fail_null("fileName");
    CUresult status = image_load_file(path, &image);
    return library_or_refusal(status, image, library);
}

CUresult cuLibraryUnload(CUlibrary library) {
    pass_gate();
    RETURN_IF(enter_library(library));
    if (!handle_kill(library)) return fail_handle("library", library, HANDLE_LIBRARY);
    for (size_t i = 0; i < kernel_count(library); i++) handle_kill(library->kernels[i]);
    for (;;) {
        pthread_mutex_lock(&library->lock);
        CUmodule module = library->modules;
        if (module) library->modules = module->next_in_library;
        pthread_mutex_unlock(&library->lock);
        if (!module) break;
        memory_wait_for_users(module->context); /* its variables go with it */
        handle_kill(module);
        module_destroy(module);
    }
    library_free(library);
    images_sweep();
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    size_t index;
    RETURN_IF(enter_library(library));
    if (!kernel) return fail_null("pKernel");
    if (!name) return fail_null("name");
    RETURN_IF(complete(library));
    RETURN_IF(kernel_index(library->image, name, &index));
    RETURN_IF(kernel_read(library->image, index));
    *kernel = library->kernels[index];
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
    RETURN_IF(enter_library(library));
    if (!count) return fail_null("count");
    if (!library->refusal) RETURN_IF(complete(library));
    *count = (unsigned)kernel_count(library);
    return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
    RETURN_IF(enter_library(library));
    if (!kernels) return fail_null("kernels");
    RETURN_IF(complete(library));
    for (size_t i = 0; i < count && i < kernel_count(library); i++) RETURN_IF(kernel_read(library->image, i));
    for (size_t i = 0; i < count && i < kernel_count(library); i++) kernels[i] = library->kernels[i];
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    CUcontext context;
    RETURN_IF(enter_library(library));
    RETURN_IF(enter_context(&context));
    if (!module) return fail_null("pMod");
    RETURN_IF(complete(library));
    return library_module(library, context, module);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
    CUmodule module;
    RETURN_IF(check_name(name));
    if (!address && !size) return fail_null("dptr, as bytes is,");
    RETURN_IF(cuLibraryGetModule(&module, library));
    return module_global(module, name, address, size);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
    CUmodule module;
    RETURN_IF(check_name(name));
    RETURN_IF(cuLibraryGetModule(&module, library));
    for (size_t i = 0; i < library->image->variable_count; i++)
        if (library->image->variables[i].is_managed && !strcmp(library->image->variables[i].name, name))
            return module_global(module, name, address, size);
    return fail(CUDA_ERROR_NOT_FOUND, "the library has no managed variable named '%.200s'", name);
}

const struct entry library_entries[] = {
    ENTRY(cuLibraryLoadData),  ENTRY(cuLibraryLoadFromFile),   ENTRY(cuLibraryUnload),
    ENTRY(cuLibraryGetKernel), ENTRY(cuLibraryGetKernelCount), ENTRY(cuLibraryEnumerateKernels),
    ENTRY(cuLibraryGetModule), ENTRY(cuLibraryGetGlobal),      ENTRY(cuLibraryGetManaged),
    {NULL, NULL, NULL},
};
