/* nvJitLink's cubins, with their PTX.
 *
 * When the CPU device is the provider, the calls that feed a link and fetch its cubin go through here, so that behind
 * the cubin stands PTX of the same code (image.h). Inputs of LTO-IR are linked once more, to PTX, which nvJitLink can
 * do (options -lto -ptx); of a single other input the PTX is at hand. nvJitLink does not link several PTX modules to
 * PTX, nor PTX with LTO-IR: such a cubin comes without, and only a GPU runs it.
 *
 * The second link is made when the cubin is asked for, with the options and copies of the inputs that the first got. */
#include <dlfcn.h>
#include <stdlib.h>

#include <cupola/nvjitlink.h>

#include "image.h"
#include "internal.h"

struct library {
    nvJitLinkResult (*create)(nvJitLinkHandle *, uint32_t, const char **);
    nvJitLinkResult (*destroy)(nvJitLinkHandle *);
    nvJitLinkResult (*add_data)(nvJitLinkHandle, nvJitLinkInputType, const void *, size_t, const char *);
    nvJitLinkResult (*add_file)(nvJitLinkHandle, nvJitLinkInputType, const char *);
    nvJitLinkResult (*complete)(nvJitLinkHandle);
    nvJitLinkResult (*cubin_size)(nvJitLinkHandle, size_t *);
    nvJitLinkResult (*cubin)(nvJitLinkHandle, void *);
    nvJitLinkResult (*ptx_size)(nvJitLinkHandle, size_t *);
    nvJitLinkResult (*ptx)(nvJitLinkHandle, char *);
};

struct input {
    nvJitLinkInputType type;
    char *data; /* LTO-IR, or PTX */
    size_t size;
    char *name;
};

struct link {
    nvJitLinkHandle handle;
    uint32_t option_count;
    char **options;
    size_t input_count;
    struct input *inputs;
    bool unknown;   /* something is in it that no PTX is known of */
    bool finished;  /* whether `ptx` is what there will be */
    char *ptx;      /* NULL: none */
    size_t ptx_size;
    struct link *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct link *links; /* few at a time */

static const struct library *nvjitlink(void) {
    static struct library table;
    static _Atomic bool ready;
    if (atomic_load(&ready)) return &table;
    pthread_mutex_lock(&lock);
    void *library = loaded_library("libnvJitLink.so");
    if (library && !atomic_load(&ready)) {
        table.create = dlsym(library, "nvJitLinkCreate");
        table.destroy = dlsym(library, "nvJitLinkDestroy");
        table.add_data = dlsym(library, "nvJitLinkAddData");
        table.add_file = dlsym(library, "nvJitLinkAddFile");
        table.complete = dlsym(library, "nvJitLinkComplete");
        table.cubin_size = dlsym(library, "nvJitLinkGetLinkedCubinSize");
        table.cubin = dlsym(library, "nvJitLinkGetLinkedCubin");
        table.ptx_size = dlsym(library, "nvJitLinkGetLinkedPtxSize");
        table.ptx = dlsym(library, "nvJitLinkGetLinkedPtx");
        atomic_store(&ready, table.create && table.destroy && table.add_data && table.add_file && table.complete &&
                                 table.cubin_size && table.cubin && table.ptx_size && table.ptx);
    }
    pthread_mutex_unlock(&lock);
    return atomic_load(&ready) ? &table : NULL;
}

/* ---- what is known of a link ----------------------------------------------------------------------------------- */

static struct link *find_link(nvJitLinkHandle handle) {
    pthread_mutex_lock(&lock);
    struct link *link = links;
    while (link && link->handle != handle) link = link->next;
    pthread_mutex_unlock(&lock);
    return link;
}

static struct link *take_link(nvJitLinkHandle handle) {
    pthread_mutex_lock(&lock);
    struct link **at = &links, *found;
    while (*at && (*at)->handle != handle) at = &(*at)->next;
    if ((found = *at)) *at = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

static void free_link(struct link *link) {
    if (!link) return;
    for (uint32_t i = 0; i < link->option_count; i++) free(link->options[i]);
    for (size_t i = 0; i < link->input_count; i++) {
        free(link->inputs[i].data);
        free(link->inputs[i].name);
    }
    free(link->options);
    free(link->inputs);
    free(link->ptx);
    free(link);
}

static struct link *new_link(uint32_t count, const char **options) {
    struct link *link = calloc(1, sizeof *link);
    if (!link || !(link->options = calloc(count + 1, sizeof *link->options))) {
        free(link);
        return NULL;
    }
    for (; link->option_count < count; link->option_count++)
        if (!(link->options[link->option_count] = strdup(options[link->option_count]))) {
            free_link(link);
            return NULL;
        }
    return link;
}

/* Keep a copy of what a second link needs of an input. */
static nvJitLinkResult remember(struct link *link, nvJitLinkInputType type, const void *data, size_t size,
                                const char *name) {
    const char *kept = data;
    if (type != NVJITLINK_INPUT_LTOIR) {
        if (!find_ptx(data, size, &kept, &size)) {
            link->unknown = true;
            return NVJITLINK_SUCCESS;
        }
        type = NVJITLINK_INPUT_PTX;
    }
    struct input *grown = realloc(link->inputs, (link->input_count + 1) * sizeof *grown);
    if (!grown) return NVJITLINK_ERROR_INTERNAL;
    link->inputs = grown;
    struct input input = {type, malloc(size + 1), size, name ? strdup(name) : NULL};
    if (!input.data || (name && !input.name)) {
        free(input.data);
        free(input.name);
        return NVJITLINK_ERROR_INTERNAL;
    }
    memcpy(input.data, kept, size);
    grown[link->input_count++] = input;
    return NVJITLINK_SUCCESS;
}

/* ---- the PTX of a link ----------------------------------------------------------------------------------------- */

static bool has_option(const struct link *link, const char *option) {
    for (uint32_t i = 0; i < link->option_count; i++)
        if (!strcmp(link->options[i], option)) return true;
    return false;
}

static void link_again(const struct library *library, struct link *link) {
    const char **options = calloc(link->option_count + 1, sizeof *options);
    if (!options) return;
    for (uint32_t i = 0; i < link->option_count; i++) options[i] = link->options[i];
    options[link->option_count] = "-ptx";
    nvJitLinkHandle handle = NULL;
    nvJitLinkResult result = library->create(&handle, link->option_count + !has_option(link, "-ptx"), options);
    for (size_t i = 0; i < link->input_count && !result; i++) {
        const struct input *input = &link->inputs[i];
        result = library->add_data(handle, input->type, input->data, input->size, input->name);
    }
    size_t size = 0;
    if (!result) result = library->complete(handle);
    if (!result) result = library->ptx_size(handle, &size);
    if (!result && size && (link->ptx = malloc(size + 1)) && !library->ptx(handle, link->ptx)) {
        link->ptx[size] = 0;
        link->ptx_size = strlen(link->ptx);
    }
    if (handle) library->destroy(&handle);
    free(options);
}

static size_t find_linked_ptx(const struct library *library, struct link *link) {
    if (link->finished) return link->ptx_size;
    size_t lto = 0;
    for (size_t i = 0; i < link->input_count; i++) lto += link->inputs[i].type == NVJITLINK_INPUT_LTOIR;
    if (!link->unknown && lto == link->input_count && lto) {
        link_again(library, link);
    } else if (!link->unknown && link->input_count == 1) {
        link->ptx = link->inputs->data;
        link->ptx_size = link->inputs->size;
        link->inputs->data = NULL;
    }
    link->finished = true;
    return link->ptx_size;
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

static nvJitLinkResult nvjitlink_create(nvJitLinkHandle *handle, uint32_t count, const char **options) {
    const struct library *library = nvjitlink();
    if (!library) return NVJITLINK_ERROR_INTERNAL;
    nvJitLinkResult result = library->create(handle, count, options);
    if (result) return result;
    struct link *link = new_link(count, options);
    if (!link) {
        library->destroy(handle);
        return NVJITLINK_ERROR_INTERNAL;
    }
    link->handle = *handle;
    pthread_mutex_lock(&lock);
    link->next = links;
    links = link;
    pthread_mutex_unlock(&lock);
    return NVJITLINK_SUCCESS;
}

static nvJitLinkResult nvjitlink_destroy(nvJitLinkHandle *handle) {
    const struct library *library = nvjitlink();
    if (!library) return NVJITLINK_ERROR_INTERNAL;
    if (handle) free_link(take_link(*handle));
    return library->destroy(handle);
}

/* nvJitLink gets a cubin without what stands behind it. */
static nvJitLinkResult nvjitlink_add_data(nvJitLinkHandle handle, nvJitLinkInputType type, const void *data,
                                          size_t size, const char *name) {
    const struct library *library = nvjitlink();
    if (!library) return NVJITLINK_ERROR_INTERNAL;
    const char *ptx;
    size_t length, given = size;
    if (type == NVJITLINK_INPUT_CUBIN && data && find_ptx(data, size, &ptx, &length) && elf_size(data))
        given = elf_size(data);
    nvJitLinkResult result = library->add_data(handle, type, data, given, name);
    struct link *link = find_link(handle);
    return result || !link ? result : remember(link, type, data, size, name);
}

static nvJitLinkResult nvjitlink_add_file(nvJitLinkHandle handle, nvJitLinkInputType type, const char *path) {
    const struct library *library = nvjitlink();
    if (!library) return NVJITLINK_ERROR_INTERNAL;
    char *data;
    size_t size;
    struct link *link = find_link(handle);
    if (!link || !path || read_file(path, &data, &size)) return library->add_file(handle, type, path);
    nvJitLinkResult result;
    if (type == NVJITLINK_INPUT_CUBIN) {
        result = nvjitlink_add_data(handle, type, data, size, path);
    } else {
        result = library->add_file(handle, type, path);
        if (!result) result = remember(link, type, data, size, path);
    }
    free(data);
    return result;
}

static nvJitLinkResult nvjitlink_get_cubin_size(nvJitLinkHandle handle, size_t *size) {
    const struct library *library = nvjitlink();
    if (!library) return NVJITLINK_ERROR_INTERNAL;
    nvJitLinkResult result = library->cubin_size(handle, size);
    struct link *link = find_link(handle);
    if (result || !link) return result;
    size_t ptx = find_linked_ptx(library, link);
    if (ptx) *size += ptx + PTX_FRAME_SIZE;
    return NVJITLINK_SUCCESS;
}

static nvJitLinkResult nvjitlink_get_cubin(nvJitLinkHandle handle, void *target) {
    const struct library *library = nvjitlink();
    if (!library) return NVJITLINK_ERROR_INTERNAL;
    size_t size;
    struct link *link = find_link(handle);
    nvJitLinkResult result = library->cubin_size(handle, &size);
    if (!result) result = library->cubin(handle, target);
    if (!result && link && find_linked_ptx(library, link))
        write_ptx_frame((char *)target + size, link->ptx, link->ptx_size);
    return result;
}

const struct entry nvjitlink_entries[] = {
    ENTRY_AS(nvJitLinkCreate, nvjitlink_create),
    ENTRY_AS(nvJitLinkDestroy, nvjitlink_destroy),
    ENTRY_AS(nvJitLinkAddData, nvjitlink_add_data),
    ENTRY_AS(nvJitLinkAddFile, nvjitlink_add_file),
    ENTRY_AS(nvJitLinkGetLinkedCubinSize, nvjitlink_get_cubin_size),
    ENTRY_AS(nvJitLinkGetLinkedCubin, nvjitlink_get_cubin),
    {NULL, NULL, NULL},
};
