/* The driver's linker (CUDA Driver API, "Module Management": cuLinkCreate and its like), for one input.
 *
 * What it makes is for cuModuleLoadData and cuLibraryLoadData of this driver, which run PTX: so the linked image of PTX
 * text is that text, after the compiler has accepted it. */
#include <stdio.h>
#include <stdlib.h>

#include "image.h"
#include "internal.h"

struct CUlinkState_st {
    struct handle handle;
    unsigned option_count; /* copies: callers do not all keep the arrays, though CUDA asks them to */
    CUjit_option *options;
    void **option_values;
    char *image;
    size_t size;
    bool complete;
};

static CUresult enter_link(CUlinkState state) {
    RETURN_IF(enter());
    return handle_is_live(state, HANDLE_LINK) ? CUDA_SUCCESS : fail_handle("link state", state, HANDLE_LINK);
}

static CUresult check_input(CUlinkState state, CUjitInputType type, const char *name) {
    if (state->complete)
        return fail(CUDA_ERROR_INVALID_VALUE, "the link is complete: make another one for more inputs");
    if (type == CU_JIT_INPUT_LIBRARY || type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_NVVM)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "the CPU device links PTX, not objects or libraries of machine code (input %s)",
                    name ? name : "without a name");
    if ((unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUjitInputType", (int)type);
    if (state->image)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "the CPU device does not link several modules yet (input %s): compile them as "
                    "one program",
                    name ? name : "without a name");
    return CUDA_SUCCESS;
}

static void link_free(CUlinkState state) {
    free(state->options);
    free(state->option_values);
    free(state->image);
    handle_free(HANDLE_LINK, state);
}

CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *state) {
    RETURN_IF(enter());
    if (!state) return fail_null("stateOut");
    RETURN_IF(jit_check_options(count, options, values));
    CUlinkState made = handle_new(HANDLE_LINK, sizeof *made);
    if (!made) return fail(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory for a link state");
    made->option_count = count;
    made->options = malloc((count + 1) * sizeof *options);
    made->option_values = malloc((count + 1) * sizeof *values);
    if (!made->options || !made->option_values) {
        link_free(made);
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory for a link state");
    }
    for (unsigned i = 0; i < count; i++) {
        made->options[i] = options[i];
        made->option_values[i] = values[i];
    }
    *state = made;
    return CUDA_SUCCESS;
}

/* PTX may come with or without its closing zero, which the image needs. */
static CUresult add(CUlinkState state, const void *data, size_t size) {
    char *image = malloc(size + PTX_FRAME_SIZE);
    if (!image) return fail(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory for the image");
    memcpy(image, data, size);
    memset(image + size, 0, PTX_FRAME_SIZE);
    struct image *checked;
    CUresult status = image_load(image, &checked);
    jit_write_logs(state->option_count, state->options, state->option_values, status);
    if (status) {
        free(image);
        return status;
    }
    image_release(checked);
    images_sweep();
    state->image = image;
    state->size = size && !image[size - 1] ? size : size + 1;
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                       unsigned count, CUjit_option *options, void **values) {
    RETURN_IF(enter_link(state));
    if (!data || !size) return fail_null("data");
    RETURN_IF(check_input(state, type, name));
    RETURN_IF(jit_check_options(count, options, values));
    return add(state, data, size);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned count, CUjit_option *options,
                       void **values) {
    RETURN_IF(enter_link(state));
    if (!path) return fail_null("path");
    RETURN_IF(check_input(state, type, path));
    RETURN_IF(jit_check_options(count, options, values));
    char *data;
    size_t size;
    RETURN_IF(read_file(path, &data, &size));
    CUresult status = size ? add(state, data, size) : fail(CUDA_ERROR_INVALID_IMAGE, "'%s' is empty", path);
    free(data);
    return status;
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) {
    RETURN_IF(enter_link(state));
    if (!image) return fail_null("cubinOut");
    if (!size) return fail_null("sizeOut");
    if (!state->image) return fail(CUDA_ERROR_INVALID_VALUE, "the link has no input");
    state->complete = true;
    *image = state->image;
    *size = state->size;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
    RETURN_IF(enter_link(state));
    if (!handle_kill(state)) return fail_handle("link state", state, HANDLE_LINK);
    link_free(state);
    return CUDA_SUCCESS;
}

const struct entry link_entries[] = {
    ENTRY(cuLinkCreate),   ENTRY_AS(cuLinkCreate_v2, cuLinkCreate),
    ENTRY(cuLinkAddData),  ENTRY_AS(cuLinkAddData_v2, cuLinkAddData),
    ENTRY(cuLinkAddFile),  ENTRY_AS(cuLinkAddFile_v2, cuLinkAddFile),
    ENTRY(cuLinkComplete), ENTRY(cuLinkDestroy),
    {NULL, NULL, NULL},
};
