/* Finding the program's OpenGL, and what CUDA takes of its formats and targets.
 *
 * Which formats and targets these are, and which CUDA format each becomes, was asked of an H200 with driver 580
 * (tests/cpu/driver/graphics/recorded.txt). */
#include "opengl.h"

#include <dlfcn.h>

/* ---- functions ---------------------------------------------------------------------------------------------------- */

/* The libraries that make contexts, and their functions for the current one and for functions by name. */
static const struct system {
    const char *library, *current, *find;
} systems[] = {
    {"libEGL.so.1", "eglGetCurrentContext", "eglGetProcAddress"},
    {"libGLX.so.0", "glXGetCurrentContext", "glXGetProcAddressARB"},
    {"libGL.so.1", "glXGetCurrentContext", "glXGetProcAddressARB"},
};
enum { SYSTEMS = sizeof systems / sizeof *systems };

typedef void *(*find_function)(const char *name);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opengl found[SYSTEMS];
static _Atomic(bool) complete[SYSTEMS];

/* The first function that is missing; NULL: none is. */
static const char *find_all(struct opengl *gl, void *library, find_function find) {
#define FIND(result, name, parameters)                                    \
    *(void **)&gl->name = find("gl" #name);                               \
    if (!gl->name) *(void **)&gl->name = dlsym(library, "gl" #name);      \
    if (!gl->name) *(void **)&gl->name = dlsym(RTLD_DEFAULT, "gl" #name); \
    if (!gl->name) return "gl" #name;
    GL_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

CUresult opengl_current(CUresult none, const struct opengl **gl) {
    bool loaded = false;
    for (int i = 0; i < SYSTEMS; i++) {
        void *library = dlopen(systems[i].library, RTLD_LAZY | RTLD_NOLOAD);
        if (!library) continue;
        void *(*current)(void) = NULL;
        find_function find = NULL;
        *(void **)&current = dlsym(library, systems[i].current);
        *(void **)&find = dlsym(library, systems[i].find);
        const bool is_current = current && find && current();
        const char *missing = NULL;
        loaded = true;
        if (is_current && !complete[i]) {
            pthread_mutex_lock(&lock);
            missing = complete[i] ? NULL : find_all(&found[i], library, find);
            if (!missing) complete[i] = true;
            pthread_mutex_unlock(&lock);
        }
        dlclose(library); /* the program keeps it */
        if (missing)
            return fail(CUDA_ERROR_NOT_SUPPORTED, "the OpenGL of this program has no %s: 3.0 or later is needed.",
                        missing);
        *gl = &found[i];
        if (is_current) return CUDA_SUCCESS;
    }
    return fail(none, "no context of OpenGL is current on this thread: make one current first.%s",
                loaded
                    ? ""
                    : " Neither EGL nor GLX is loaded in this process; without a GPU, Debian and Ubuntu have software "
                      "OpenGL in the packages libegl1 and libgl1-mesa-dri.");
}

/* ---- formats ------------------------------------------------------------------------------------------------------ */

enum {
    ALPHA = 0x1906,
    BYTES = 0x1401,
    FLOAT = 0x1406,
    HALF = 0x140B,
    INTS = 0x1404,
    LUMINANCE = 0x1909,
    LUMINANCE_ALPHA = 0x190A,
    RED = 0x1903,
    RED_INTEGER = 0x8D94,
    RG = 0x8227,
    RG_INTEGER = 0x8228,
    RGBA = 0x1908,
    RGBA_INTEGER = 0x8D99,
    SHORTS = 0x1402,
    SIGNED_BYTES = 0x1400,
    UINTS = 0x1405,
    USHORTS = 0x1403,
};

#define U8 CU_AD_FORMAT_UNSIGNED_INT8
#define U16 CU_AD_FORMAT_UNSIGNED_INT16
#define U32 CU_AD_FORMAT_UNSIGNED_INT32
#define S8 CU_AD_FORMAT_SIGNED_INT8
#define S16 CU_AD_FORMAT_SIGNED_INT16
#define S32 CU_AD_FORMAT_SIGNED_INT32
#define F16 CU_AD_FORMAT_HALF
#define F32 CU_AD_FORMAT_FLOAT

/* Formats with three channels have four on the device; those without a size are stored with 8 bits. */
static const struct gl_format formats[] = {
    {0x8229 /* R8 */, U8, 1, RED, BYTES},
    {0x822B /* RG8 */, U8, 2, RG, BYTES},
    {0x8051 /* RGB8 */, U8, 4, RGBA, BYTES},
    {0x8058 /* RGBA8 */, U8, 4, RGBA, BYTES},
    {0x8C43 /* SRGB8_ALPHA8 */, U8, 4, RGBA, BYTES},
    {0x8056 /* RGBA4 */, U8, 4, RGBA, BYTES},
    {RED, U8, 1, RED, BYTES},
    {RG, U8, 2, RG, BYTES},
    {0x1907 /* RGB */, U8, 4, RGBA, BYTES},
    {RGBA, U8, 4, RGBA, BYTES},
    {0x803C /* ALPHA8 */, U8, 1, ALPHA, BYTES},
    {ALPHA, U8, 1, ALPHA, BYTES},
    {0x8040 /* LUMINANCE8 */, U8, 1, LUMINANCE, BYTES},
    {LUMINANCE, U8, 1, LUMINANCE, BYTES},
    {0x804B /* INTENSITY8 */, U8, 1, RED, BYTES},
    {0x8045 /* LUMINANCE8_ALPHA8 */, U8, 2, LUMINANCE_ALPHA, BYTES},
    {LUMINANCE_ALPHA, U8, 2, LUMINANCE_ALPHA, BYTES},
    {0x822A /* R16 */, U16, 1, RED, USHORTS},
    {0x822C /* RG16 */, U16, 2, RG, USHORTS},
    {0x805B /* RGBA16 */, U16, 4, RGBA, USHORTS},
    {0x822D /* R16F */, F16, 1, RED, HALF},
    {0x822F /* RG16F */, F16, 2, RG, HALF},
    {0x881A /* RGBA16F */, F16, 4, RGBA, HALF},
    {0x822E /* R32F */, F32, 1, RED, FLOAT},
    {0x8230 /* RG32F */, F32, 2, RG, FLOAT},
    {0x8815 /* RGB32F */, F32, 4, RGBA, FLOAT},
    {0x8814 /* RGBA32F */, F32, 4, RGBA, FLOAT},
    {0x8231 /* R8I */, S8, 1, RED_INTEGER, SIGNED_BYTES},
    {0x8237 /* RG8I */, S8, 2, RG_INTEGER, SIGNED_BYTES},
    {0x8D8E /* RGBA8I */, S8, 4, RGBA_INTEGER, SIGNED_BYTES},
    {0x8232 /* R8UI */, U8, 1, RED_INTEGER, BYTES},
    {0x8238 /* RG8UI */, U8, 2, RG_INTEGER, BYTES},
    {0x8D7D /* RGB8UI */, U8, 4, RGBA_INTEGER, BYTES},
    {0x8D7C /* RGBA8UI */, U8, 4, RGBA_INTEGER, BYTES},
    {0x8233 /* R16I */, S16, 1, RED_INTEGER, SHORTS},
    {0x8239 /* RG16I */, S16, 2, RG_INTEGER, SHORTS},
    {0x8D88 /* RGBA16I */, S16, 4, RGBA_INTEGER, SHORTS},
    {0x8234 /* R16UI */, U16, 1, RED_INTEGER, USHORTS},
    {0x823A /* RG16UI */, U16, 2, RG_INTEGER, USHORTS},
    {0x8D76 /* RGBA16UI */, U16, 4, RGBA_INTEGER, USHORTS},
    {0x8235 /* R32I */, S32, 1, RED_INTEGER, INTS},
    {0x823B /* RG32I */, S32, 2, RG_INTEGER, INTS},
    {0x8D82 /* RGBA32I */, S32, 4, RGBA_INTEGER, INTS},
    {0x8236 /* R32UI */, U32, 1, RED_INTEGER, UINTS},
    {0x823C /* RG32UI */, U32, 2, RG_INTEGER, UINTS},
    {0x8D70 /* RGBA32UI */, U32, 4, RGBA_INTEGER, UINTS},
};

const struct gl_format *gl_format_find(GLenum internal) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].internal == internal) return &formats[i];
    return NULL;
}

static const struct gl_target targets[] = {
    {0x0DE1 /* TEXTURE_2D */, 0x8069, GL_SHAPE_2D, true},
    {0x84F5 /* TEXTURE_RECTANGLE */, 0x84F6, GL_SHAPE_2D, false},
    {0x806F /* TEXTURE_3D */, 0x806A, GL_SHAPE_3D, true},
    {0x8C1A /* TEXTURE_2D_ARRAY */, 0x8C1D, GL_SHAPE_LAYERS, true},
    {0x8513 /* TEXTURE_CUBE_MAP */, 0x8514, GL_SHAPE_CUBE, true},
    {0x8D41 /* RENDERBUFFER */, 0x8CA7, GL_SHAPE_RENDERBUFFER, false},
};

const struct gl_target *gl_target_find(GLenum target) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].target == target) return &targets[i];
    return NULL;
}
