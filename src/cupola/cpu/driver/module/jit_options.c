/* Options of the just-in-time compiler and of the linker (CUDA Driver API, CUjit_option). Of use here are those that
 * ask for logs: errors always, and with CU_JIT_LOG_VERBOSE what was linked and what each kernel takes. */
#include <stdio.h>
#include <stdlib.h>

#include "module.h"

CUresult jit_check_options(unsigned count, const CUjit_option *options, void *const *values) {
    if (count && !options) return fail_null("options");
    if (count && !values) return fail_null("optionValues");
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
            return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUjit_option", (int)options[i]);
    return CUDA_SUCCESS;
}

/* The size option gives the size of the buffer and takes the number of bytes written. */
static void write_log(unsigned count, const CUjit_option *options, void **values, CUjit_option buffer_option,
                      CUjit_option size_option, const char *text) {
    char *buffer = NULL;
    void **size = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == buffer_option) buffer = values[i];
        if (options[i] == size_option) size = &values[i];
    }
    size_t room = size ? (size_t)(unsigned)(uintptr_t)*size : 0, length = 0;
    if (buffer && room) {
        length = strnlen(text, room - 1);
        memcpy(buffer, text, length);
        buffer[length] = '\0';
    }
    if (size) *size = (void *)(uintptr_t)length;
}

bool jit_is_verbose(unsigned count, const CUjit_option *options, void *const *values) {
    bool verbose = false;
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_LOG_VERBOSE) verbose = (int)(intptr_t)values[i] != 0;
    return verbose;
}

/* Then all that there is to say is to be found at once, also in a large module. */
static bool wants_logs(unsigned count, const CUjit_option *options, void *const *values) {
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) return true;
    return jit_is_verbose(count, options, values);
}

static void describe(FILE *log, const struct image *image) {
    size_t global = 0, constant = 0;
    for (size_t i = 0; i < image->variable_count; i++)
        *(image->variables[i].is_constant ? &constant : &global) += image->variables[i].size;
    fprintf(log, "info    : %zu bytes of global variables, %zu bytes of constants\n", global, constant);
    for (size_t i = 0; i < image->kernel_count; i++) {
        const cpu_kernel_info *info = image->kernels[i].info;
        fprintf(
            log,
            "info    : Kernel '%s': %u bytes of parameters, %u bytes of shared memory, %u bytes of local memory for each "
            "thread\n",
            cpu_kernel_name(image->kernels[i].kernel), info->param_bytes, info->static_shared, info->local_bytes);
    }
}

void jit_write_logs(unsigned count, const CUjit_option *options, void **values, CUresult status, const char *linked,
                    const struct image *image) {
    char *text = NULL;
    size_t size;
    FILE *log = jit_is_verbose(count, options, values) ? open_memstream(&text, &size) : NULL;
    if (log) {
        if (linked) fprintf(log, "info    : %s\n", linked);
        if (image) describe(log, image);
        fclose(log);
    }
    write_log(count, options, values, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, text ? text : "");
    write_log(count, options, values, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
              status ? thread_state.explanation : "");
    free(text);
}

CUresult image_load_with_options(const void *data, unsigned count, CUjit_option *options, void **values,
                                 struct image **image) {
    if (!data) return fail_null("image");
    RETURN_IF(jit_check_options(count, options, values));
    CUresult status = image_load(data, image);
    if (!status && wants_logs(count, options, values) && (status = kernels_read(*image))) image_release(*image);
    jit_write_logs(count, options, values, status, NULL, status ? NULL : *image);
    return status;
}
