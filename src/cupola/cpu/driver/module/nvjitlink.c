/* nvJitLink's cubins, with their PTX.
 *
 * When the CPU device is the provider, the calls that feed a link and fetch its cubin go through here, so that behind
 * the cubin stands PTX of the same code (image.h). Inputs of LTO-IR are linked once more, to PTX, which nvJitLink can
 * do (options -lto -ptx); of other inputs the PTX is at hand. nvJitLink does not link several PTX modules to PTX, nor
 * PTX with LTO-IR: there the PTX that it makes of all LTO-IR and the inputs' are merged by images/linking.py, which
 * also makes one module of PTX a module for the GPU that the link is for. What is in LTO-IR only to be called from PTX
 * would not survive the first step: so a kernel that takes the addresses of these functions is compiled to LTO-IR by
 * NVRTC, linked along, and left out by the merger. When something in a link has no PTX, neither has its cubin, and only
 * a GPU runs it. Static libraries are left out: of libcudadevrt, which programs link for cooperative groups, the CPU
 * device has functions of its own (device_runtime.ptx), and what comes from elsewhere is named as undefined when the
 * code is loaded.
 *
 * The second link is made when the cubin is asked for, with the options and copies of the inputs that the first got. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cupola/nvjitlink.h>
#include <cupola/nvrtc.h>

#include "image.h"
#include "module.h"

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
    char *data; /* LTO-IR, by itself or in a fat binary, or PTX */
    size_t size;
    char *name;
};

struct link {
    nvJitLinkHandle handle;
    uint32_t option_count;
    char **options;
    size_t input_count;
    struct input *inputs;
    bool unknown;  /* something is in it that no PTX is known of */
    bool finished; /* whether `ptx` is what there will be */
    char *ptx;     /* NULL: none */
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

static bool is_lto(const struct input *input) { return input->type != NVJITLINK_INPUT_PTX; }

/* Whether there is LTO-IR in a fat binary: a header, then files, each behind a header of its own. */
static bool has_lto(const char *data, size_t size) {
    enum { MAGIC = 0xba55ed50u, HEADER = 16, LTO_IR = 8 };
    struct {
        uint32_t magic;
        uint16_t version, header;
        uint64_t size;
    } whole;
    struct {
        uint16_t kind, version;
        uint32_t header;
        uint64_t size;
    } file;
    if (size < HEADER) return false;
    memcpy(&whole, data, sizeof whole);
    if (whole.magic != MAGIC) return false;
    for (size_t at = whole.header; at <= size && size - at >= HEADER;) {
        memcpy(&file, data + at, sizeof file);
        if (file.kind == LTO_IR) return true;
        if (file.header < HEADER || file.header > size - at || file.size > size - at - file.header) return false;
        at += file.header + file.size;
    }
    return false;
}

/* Keep a copy of what a second link needs of an input. */
static nvJitLinkResult remember(struct link *link, nvJitLinkInputType type, const void *data, size_t size,
                                const char *name) {
    static const char archive[] = "!<arch>\n";
    char *kept = NULL;
    size_t length;
    if (size >= sizeof archive - 1 && !memcmp(data, archive, sizeof archive - 1)) return NVJITLINK_SUCCESS;
    bool has_ptx = type != NVJITLINK_INPUT_LTOIR && copy_ptx(data, size, &kept, &length);
    if (has_ptx) type = NVJITLINK_INPUT_PTX, size = length;
    else if (type == NVJITLINK_INPUT_LTOIR || (type == NVJITLINK_INPUT_FATBIN && has_lto(data, size))) {
        if (!(kept = malloc(size + 1))) return NVJITLINK_ERROR_INTERNAL;
        memcpy(kept, data, size);
    } else {
        link->unknown = true;
        return NVJITLINK_SUCCESS;
    }
    struct input input = {type, kept, size, name ? strdup(name) : NULL};
    struct input *grown = realloc(link->inputs, (link->input_count + 1) * sizeof *grown);
    if (grown) link->inputs = grown;
    if (!grown || (name && !input.name)) {
        free(kept);
        free(input.name);
        return NVJITLINK_ERROR_INTERNAL;
    }
    grown[link->input_count++] = input;
    return NVJITLINK_SUCCESS;
}

/* ---- the PTX of a link ----------------------------------------------------------------------------------------- */

static bool has_option(const struct link *link, const char *option) {
    for (uint32_t i = 0; i < link->option_count; i++)
        if (!strcmp(link->options[i], option)) return true;
    return false;
}

/* "sm_90" of the option -arch=sm_90, which every link has. */
static const char *architecture(const struct link *link) {
    for (uint32_t i = 0; i < link->option_count; i++)
        if (!strncmp(link->options[i], "-arch=", 6)) return link->options[i] + 6;
    return "";
}

/* LTO-IR of a source, from the NVRTC that the process has loaded; NULL if none is loaded, or if it fails. */
static char *compile(const char *source, const char *target, size_t *size) {
    void *library = loaded_library("libnvrtc.so");
    if (!library) return NULL;
    nvrtcResult (*create)(nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *) =
        dlsym(library, "nvrtcCreateProgram");
    nvrtcResult (*compile_program)(nvrtcProgram, int, const char *const *) = dlsym(library, "nvrtcCompileProgram");
    nvrtcResult (*ir_size)(nvrtcProgram, size_t *) = dlsym(library, "nvrtcGetLTOIRSize");
    nvrtcResult (*ir)(nvrtcProgram, char *) = dlsym(library, "nvrtcGetLTOIR");
    nvrtcResult (*destroy)(nvrtcProgram *) = dlsym(library, "nvrtcDestroyProgram");
    if (!create || !compile_program || !ir_size || !ir || !destroy) return NULL;
    char option[64];
    snprintf(option, sizeof option, "-arch=%.32s", target);
    const char *options[] = {option, "-dlto"};
    nvrtcProgram program = NULL;
    char *result = NULL;
    if (create(&program, source, "keep.cu", 0, NULL, NULL)) return NULL;
    if (!compile_program(program, 2, options) && !ir_size(program, size) && *size && (result = malloc(*size)) &&
        ir(program, result)) {
        free(result);
        result = NULL;
    }
    destroy(&program);
    return result;
}

/* Link the LTO-IR to PTX, with more LTO-IR behind it when there is some. */
static char *link_again(const struct library *library, struct link *link, const char *more, size_t more_size) {
    const char **options = calloc(link->option_count + 1, sizeof *options);
    char *ptx = NULL;
    if (!options) return NULL;
    for (uint32_t i = 0; i < link->option_count; i++) options[i] = link->options[i];
    options[link->option_count] = "-ptx";
    nvJitLinkHandle handle = NULL;
    nvJitLinkResult result = library->create(&handle, link->option_count + !has_option(link, "-ptx"), options);
    for (size_t i = 0; i < link->input_count && !result; i++) {
        const struct input *input = &link->inputs[i];
        if (is_lto(input)) result = library->add_data(handle, input->type, input->data, input->size, input->name);
    }
    if (more && !result) result = library->add_data(handle, NVJITLINK_INPUT_LTOIR, more, more_size, "keep");
    size_t size = 0;
    if (!result) result = library->complete(handle);
    if (!result) result = library->ptx_size(handle, &size);
    if (!result && size && (ptx = calloc(1, size + 1)) && library->ptx(handle, ptx)) {
        free(ptx);
        ptx = NULL;
    }
    if (handle) library->destroy(&handle);
    free(options);
    return ptx;
}

/* What a function of images/linking.py makes of the PTX, and of that of the LTO-IR (or None) and a number; NULL, after
 * a message, when it fails. */
static char *call_python(const char *function, const struct link *link, const char *lto) {
    unsigned number = 0;
    char *result = NULL;
    sscanf(architecture(link), "%*[a-z]_%u", &number);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.compiler.images.linking");
    PyObject *list = PyList_New(0);
    bool good = module && list;
    for (size_t i = 0; good && i < link->input_count; i++) {
        const struct input *input = &link->inputs[i];
        if (input->type != NVJITLINK_INPUT_PTX) continue;
        const char *name = input->name && *input->name ? input->name : "<unnamed>";
        PyObject *item = Py_BuildValue("(NN)", PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace"),
                                       PyUnicode_DecodeUTF8(input->data, (Py_ssize_t)input->size, "replace"));
        good = item && !PyList_Append(list, item);
        Py_XDECREF(item);
    }
    PyObject *text = good ? PyObject_CallMethod(module, function, "OzI", list, lto, number) : NULL;
    const char *utf8 = text && text != Py_None ? PyUnicode_AsUTF8(text) : NULL;
    if (utf8) result = strdup(utf8);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(text);
    Py_XDECREF(text);
    Py_XDECREF(list);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return result;
}

static char *mix(const struct library *library, struct link *link, size_t lto) {
    char *linked = NULL, *result;
    if (lto) {
        size_t size = 0;
        char *source = call_python("keeper", link, NULL);
        char *more = source ? compile(source, architecture(link), &size) : NULL;
        linked = link_again(library, link, more, size);
        free(more);
        free(source);
        if (!linked) return NULL;
    }
    result = call_python("link_mixed", link, linked);
    free(linked);
    return result;
}

static size_t find_linked_ptx(const struct library *library, struct link *link) {
    if (link->finished) return link->ptx_size;
    size_t lto = 0;
    for (size_t i = 0; i < link->input_count; i++) lto += is_lto(&link->inputs[i]);
    if (!link->unknown && link->input_count)
        link->ptx = lto == link->input_count ? link_again(library, link, NULL, 0) : mix(library, link, lto);
    link->ptx_size = link->ptx ? strlen(link->ptx) : 0;
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
    char *ptx = NULL;
    size_t length, given = size;
    if (type == NVJITLINK_INPUT_CUBIN && data && copy_ptx(data, size, &ptx, &length) && elf_size(data, size))
        given = elf_size(data, size);
    free(ptx);
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
