/* Modules: images and what the compiler makes of them, their kernels and variables, libraries, links, and launches. */
#ifndef CUPOLA_CPU_DRIVER_MODULE_H
#define CUPOLA_CPU_DRIVER_MODULE_H

#include "above.h"
#include "driver/memory/memory.h"
#include "launch.h"

struct parameter {
    size_t offset, size;
};

struct image_kernel {
    cpu_kernel *kernel;
    const cpu_kernel_info *info;            /* filled when the kernel is read */
    _Atomic(struct parameter *) parameters; /* info->param_count of them; NULL: the kernel has not been read */
};

struct relocation { /* write the address of variable `target`, plus addend, into `width` bytes at the offset */
    size_t offset, width, target;
    int64_t addend;
};

enum variable_reference { REFERENCE_NONE, REFERENCE_TEXTURE, REFERENCE_SURFACE };

struct variable {
    char *name;
    size_t size, align;
    char *init; /* the first init_size bytes; NULL: zeros */
    size_t init_size;
    bool is_constant, is_managed;
    uint8_t reference; /* enum variable_reference: what kind of object it refers to */
    struct relocation *relocations;
    size_t relocation_count;
};

/* What the compiler made of a PTX text or a cubin; shared by a library and its modules. */
struct image {
    _Atomic size_t references;
    struct image *next_unused;
    struct _object *module; /* cupola.cpu.compiler.modules.LoadedModule */
    size_t kernel_count, variable_count;
    struct image_kernel *kernels;
    struct variable *variables;
};

/* Where an image begins and how large it is; limit: the bytes that there are, or UNKNOWN_SIZE of image.h (extent.c). */
CUresult find_extent(const void *data, size_t limit, const char **start, size_t *size);
/* What the linker of nvcc made one image of, if `data` is that (nvcc -rdc=true). */
CUresult find_linked(const void *data, const void *const **binaries, size_t *count);
/* Compile PTX text or an image that carries it. May take the GIL. */
CUresult image_load(const void *data, struct image **image);
CUresult image_load_file(const char *path, struct image **image);
/* Before a kernel, or all of them, are given to anybody. Only then its PTX is read, when the module is large. May take the
 * GIL. */
CUresult kernel_read(struct image *image, size_t index);
CUresult kernels_read(struct image *image);
unsigned model_architecture(void); /* 90 for sm_90 */
/* With the GIL: the status and text of the pending exception, which is cleared. */
CUresult fail_python(void);
/* Told why an image is refused, when set (provider/python.c). */
extern void (*_Atomic image_report)(const char *reason);
CUresult read_file(const char *path, char **data, size_t *size); /* to be freed; zeros follow the data */
/* Options of the just-in-time compiler (jit_options.c). Logs tell of `status`, and, when they are to be verbose, what
 * was linked and what is in the image; either may be NULL. */
CUresult jit_check_options(unsigned count, const CUjit_option *options, void *const *values);
bool jit_is_verbose(unsigned count, const CUjit_option *options, void *const *values);
void jit_write_logs(unsigned count, const CUjit_option *options, void **values, CUresult status, const char *linked,
                    const struct image *image);
/* image_load() with options of the just-in-time compiler: fills the log buffers. */
CUresult image_load_with_options(const void *data, unsigned count, CUjit_option *options, void **values,
                                 struct image **image);
void image_release(struct image *image); /* any thread, without the GIL */

/* What cuFuncSetAttribute and its like set; those of a library's kernel hold for each device. */
struct function_attributes {
    int max_dynamic_shared; /* bytes; -1: not set, what fits into shared_per_block */
    int carveout, cluster_policy, non_portable_cluster;
    uint32_t cluster[3]; /* blocks a cluster must have; zeros: any */
    CUfunc_cache cache;
};
extern const struct function_attributes default_function_attributes;

struct CUfunc_st {
    struct handle handle;
    CUmodule module;
    cpu_kernel *kernel;
    const struct image_kernel *image_kernel;
    size_t index;
    CUkernel owner; /* of a library's function, or NULL */
    struct function_attributes own, *attributes;
};

struct CUkern_st {
    struct handle handle;
    CUlibrary library;
    size_t index;
    _Atomic(CUfunction) functions[MAX_DEVICES]; /* the one last used on each device */
    struct function_attributes attributes[MAX_DEVICES];
};

struct CUlib_st {
    struct handle handle;
    _Atomic(struct image *) image; /* NULL as long as `ptx` waits to be compiled */
    char *ptx;
    CUresult refusal; /* or why there will be none: of code that is well-formed and not for this device */
    char *reason;
    pthread_mutex_t lock;
    CUmodule modules; /* one for each context that uses the library */
    CUkernel *kernels;
};

struct CUmod_st {
    struct handle handle; /* references: the user's, one for each queued launch and recorded fault */
    CUcontext context;
    struct image *image;
    CUlibrary library; /* or NULL; such a module is the library's to unload */
    CUmodule next_in_context, previous_in_context, next_in_library;
    uint64_t *variables; /* addresses, in the order of the image's variables */
    CUfunction *functions;
};

CUresult module_new(CUcontext context, struct image *image, CUlibrary library, CUmodule *module);
void module_destroy(CUmodule module); /* the user's reference */
CUresult module_global(CUmodule module, const char *name, CUdeviceptr *address, size_t *size);
CUresult kernel_index(const struct image *image, const char *name, size_t *index);
CUresult library_module(CUlibrary library, CUcontext context, CUmodule *module); /* loaded on first use */
void library_forget(CUlibrary library, CUmodule module);

/* The function behind a CUfunction, or behind a CUkernel in the given context (NULL: the current one). */
CUresult function_find(CUfunction handle, CUcontext context, CUfunction *function);
int function_max_dynamic_shared(CUfunction function); /* bytes a launch may ask for */
int function_max_threads(CUfunction function);
CUresult function_get_attribute(int *value, CUfunction_attribute attribute, CUfunction function);

#endif
