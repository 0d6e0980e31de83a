/* Graphics resources: buffers and images of OpenGL that CUDA reads and writes while they are mapped (CUDA Driver API,
 * "Graphics Interoperability" and "OpenGL Interoperability").
 *
 * A GPU has one memory for both. Here the resource has memory of its own, which stays from registration to its end.
 * Mapping copies there what OpenGL has; unmapping waits for the stream, and copies back. Both happen during the call, on
 * the thread that has the context of OpenGL. What is taken and refused, and in which order, was compared with an H200
 * (tests/cpu/driver/graphics/recorded.txt). */
#include "opengl.h"

#include <stdlib.h>
#include <sys/random.h>

enum { KEY = 16, REGISTER_FLAGS = 0xF };

struct CUgraphicsResource_st {
    struct handle handle;
    CUcontext context;
    bool is_mapped; /* with `lock` */
    bool is_lost;   /* also with it; unmapping it has failed: it can neither be used nor mapped nor unregistered */
    bool read_only;
    GLuint name;
    /* A buffer of OpenGL with a random key, which tells whether a context has the same objects as that of the
     * registration: names and addresses are used again. */
    GLuint marker;
    uint8_t key[KEY];
    /* Of a buffer: */
    size_t size;
    uint64_t base;
    /* Of an image: */
    const struct gl_target *target; /* NULL: a buffer */
    const struct gl_format *format;
    struct gl_image image;
    CUmipmappedArray levels;
    CUarray *layers; /* of each level, for images that have them; else NULL */
    unsigned layer_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define LOST                                                                                            \
    "the resource was unmapped without its context of OpenGL, which has lost it: register the object of " \
    "OpenGL again."

static CUresult resource_check(CUgraphicsResource resource) {
    return handle_is_live(resource, HANDLE_GRAPHICS) ? context_check(resource->context)
                                                     : fail_handle("graphics resource", resource, HANDLE_GRAPHICS);
}

/* ---- contexts of OpenGL -------------------------------------------------------------------------------------------- */

/* The current OpenGL, if it has the resource's objects. */
static CUresult enter_opengl(CUgraphicsResource resource, const struct opengl **gl) {
    uint8_t key[KEY] = {0};
    RETURN_IF(opengl_current(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, gl));
    if ((*gl)->IsBuffer(resource->marker) && gl_buffer_size(*gl, resource->marker) == KEY)
        gl_buffer_read(*gl, resource->marker, KEY, key);
    if (memcmp(key, resource->key, KEY))
        return fail(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT,
                    "the resource was registered in another context of OpenGL, with which the current one shares "
                    "nothing: make that one current.");
    return CUDA_SUCCESS;
}

static CUresult mark(CUgraphicsResource resource, const struct opengl *gl) {
    if (getrandom(resource->key, KEY, 0) != KEY) return fail(CUDA_ERROR_OPERATING_SYSTEM, "getrandom failed.");
    resource->marker = gl_buffer_new(gl, KEY, resource->key);
    return CUDA_SUCCESS;
}

/* ---- registering --------------------------------------------------------------------------------------------------- */

static CUresult enter_register(CUgraphicsResource *made, CUcontext *context, const struct opengl **gl) {
    RETURN_IF(enter_context(context));
    if (!made) return fail_null("pCudaResource");
    RETURN_IF(capture_check_thread("the registration of a graphics resource"));
    return opengl_current(CUDA_ERROR_INVALID_VALUE, gl); /* as a GPU has it */
}

static void resource_free(CUgraphicsResource resource) {
    for (unsigned i = 0; resource->layers && i < resource->layer_count * resource->image.levels; i++)
        if (resource->layers[i]) array_free_layer(resource->layers[i]);
    free(resource->layers);
    if (resource->levels) array_free_levels(resource->levels);
    if (resource->base) (void)cpu_memory_free(resource->base);
    handle_free(HANDLE_GRAPHICS, resource);
}

/* The buffer with the key stays in OpenGL, which need not be current on this thread. */
static void forget_if_in(void *object, void *context) {
    CUgraphicsResource resource = object;
    if (resource->context == context && handle_kill(resource)) resource_free(resource);
}

void graphics_context_destroyed(CUcontext context) { handle_each(HANDLE_GRAPHICS, forget_if_in, context); }

/* Publish what was registered, or free it. */
static CUresult finish(CUgraphicsResource resource, const struct opengl *gl, CUresult status,
                       CUgraphicsResource *made) {
    if (!status) status = mark(resource, gl);
    if (status) {
        resource_free(resource);
        return status;
    }
    handle_publish(resource);
    *made = resource;
    return CUDA_SUCCESS;
}

CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *pCudaResource, GLuint buffer, unsigned int Flags) {
    CUcontext context;
    const struct opengl *gl;
    RETURN_IF(enter_register(pCudaResource, &context, &gl));
    if (Flags > CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "Flags is %#x; a buffer takes NONE, READ_ONLY or WRITE_DISCARD, and only one of them.", Flags);
    if (!buffer) return fail(CUDA_ERROR_INVALID_VALUE, "0 is no buffer of OpenGL.");
    if (!gl->IsBuffer(buffer))
        return fail(CUDA_ERROR_INVALID_HANDLE, "the current context of OpenGL has no buffer %u.", buffer);
    size_t size = gl_buffer_size(gl, buffer);
    if (!size)
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "buffer %u of OpenGL has no storage: call glBufferData first.", buffer);
    CUgraphicsResource resource = handle_make(HANDLE_GRAPHICS, sizeof *resource);
    if (!resource) return no_memory("another graphics resource");
    resource->context = context;
    resource->name = buffer;
    resource->size = size;
    resource->read_only = Flags == CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY;
    CUresult status = memory_allocate(context, CPU_MEMORY_GRAPHICS, size, &resource->base);
    return finish(resource, gl, status, pCudaResource);
}

static CUresult describe_image(const struct opengl *gl, GLuint name, GLenum target, CUgraphicsResource resource) {
    const struct gl_target *found = gl_target_find(target);
    if (!name) return fail(CUDA_ERROR_INVALID_VALUE, "0 is no image of OpenGL.");
    if (!found)
        return fail(
            CUDA_ERROR_INVALID_VALUE,
            "CUDA takes no images of the target %#x: it takes GL_TEXTURE_2D, GL_TEXTURE_RECTANGLE, GL_TEXTURE_3D, "
            "GL_TEXTURE_2D_ARRAY, GL_TEXTURE_CUBE_MAP and GL_RENDERBUFFER.",
            target);
    const bool is_texture = found->shape != GL_SHAPE_RENDERBUFFER;
    if (!(is_texture ? gl->IsTexture(name) : gl->IsRenderbuffer(name)))
        return fail(CUDA_ERROR_INVALID_HANDLE, "the current context of OpenGL has no %s %u.",
                    is_texture ? "texture" : "renderbuffer", name);
    if (!gl_image_describe(gl, found, name, &resource->image))
        return fail(CUDA_ERROR_INVALID_VALUE, "texture %u has another target than %#x.", name, target);
    if (!resource->image.internal)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "image %u of OpenGL has no storage, several samples, or faces that differ: give it storage first.",
                    name);
    resource->format = gl_format_find((GLenum)resource->image.internal);
    if (!resource->format)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "CUDA takes no images of the internal format %#x, such as those of depth, compressed ones, and "
                    "signed normalized ones.",
                    (unsigned)resource->image.internal);
    resource->target = found;
    return CUDA_SUCCESS;
}

static CUresult make_arrays(CUcontext context, CUgraphicsResource resource, unsigned flags) {
    const struct gl_image *image = &resource->image;
    const enum gl_shape shape = resource->target->shape;
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = (size_t)image->width,
        .Height = (size_t)image->height,
        .Depth = shape == GL_SHAPE_2D || shape == GL_SHAPE_RENDERBUFFER ? 0 : (size_t)image->depth,
        .Format = resource->format->format,
        .NumChannels = resource->format->channels,
        .Flags = (flags & CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST ? CUDA_ARRAY3D_SURFACE_LDST : 0) |
                 (flags & CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER ? CUDA_ARRAY3D_TEXTURE_GATHER : 0) |
                 (shape == GL_SHAPE_CUBE ? CUDA_ARRAY3D_CUBEMAP : 0) |
                 (shape == GL_SHAPE_LAYERS ? CUDA_ARRAY3D_LAYERED : 0),
    };
    RETURN_IF(array_make_levels(context, &descriptor, image->levels, &resource->levels));
    resource->levels->is_lent = true;
    resource->layer_count = 1;
    if (shape != GL_SHAPE_CUBE && shape != GL_SHAPE_LAYERS) return CUDA_SUCCESS;
    resource->layer_count = (unsigned)image->depth;
    resource->layers = calloc((size_t)resource->layer_count * image->levels, sizeof *resource->layers);
    if (!resource->layers) return no_memory("the layers of an image");
    for (unsigned i = 0; i < resource->layer_count * image->levels; i++) {
        resource->layers[i] = array_make_layer(resource->levels, i / resource->layer_count, i % resource->layer_count);
        if (!resource->layers[i]) return no_memory("the layers of an image");
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphicsGLRegisterImage(CUgraphicsResource *pCudaResource, GLuint image, GLenum target, unsigned int Flags) {
    CUcontext context;
    const struct opengl *gl;
    RETURN_IF(enter_register(pCudaResource, &context, &gl));
    if (Flags & ~(unsigned)REGISTER_FLAGS)
        return fail(CUDA_ERROR_INVALID_VALUE, "Flags has unknown bits: %#x.", Flags & ~(unsigned)REGISTER_FLAGS);
    CUgraphicsResource resource = handle_make(HANDLE_GRAPHICS, sizeof *resource);
    if (!resource) return no_memory("another graphics resource");
    resource->context = context;
    resource->name = image;
    resource->read_only = Flags & CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY;
    CUresult status = describe_image(gl, image, target, resource);
    if (!status) status = make_arrays(context, resource, Flags);
    return finish(resource, gl, status, pCudaResource);
}

CUresult cuGraphicsUnregisterResource(CUgraphicsResource resource) {
    const struct opengl *gl;
    RETURN_IF(enter_to_work());
    RETURN_IF(capture_check_thread("cuGraphicsUnregisterResource"));
    RETURN_IF(resource_check(resource));
    pthread_mutex_lock(&lock);
    const bool is_lost = resource->is_lost, is_mapped = resource->is_mapped;
    const bool is_mine = !is_mapped && !is_lost && handle_kill(resource);
    pthread_mutex_unlock(&lock);
    if (is_mapped) return fail(CUDA_ERROR_ALREADY_MAPPED, "the resource is mapped: unmap it first.");
    if (is_lost) return fail(CUDA_ERROR_ALREADY_MAPPED, LOST);
    if (!is_mine) return fail_handle("graphics resource", resource, HANDLE_GRAPHICS);
    memory_wait_for_users(resource->context);
    /* Without its OpenGL that is an error, but the resource is gone nevertheless: a GPU's driver does so, too. */
    CUresult status = enter_opengl(resource, &gl);
    if (!status) gl->DeleteBuffers(1, &resource->marker);
    resource_free(resource);
    return status;
}

CUresult cuGraphicsResourceSetMapFlags(CUgraphicsResource resource, unsigned int flags) {
    RETURN_IF(enter());
    RETURN_IF(resource_check(resource));
    if (flags > CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD)
        return fail(CUDA_ERROR_INVALID_VALUE, "flags is %#x; it must be NONE, READ_ONLY or WRITE_DISCARD.", flags);
    pthread_mutex_lock(&lock);
    const bool is_mapped = resource->is_mapped;
    if (!is_mapped) resource->read_only = flags == CU_GRAPHICS_MAP_RESOURCE_FLAGS_READ_ONLY;
    pthread_mutex_unlock(&lock);
    return is_mapped ? fail(CUDA_ERROR_ALREADY_MAPPED, "the resource is mapped: unmap it first.") : CUDA_SUCCESS;
}

/* ---- mapping ------------------------------------------------------------------------------------------------------- */

/* Whether OpenGL still has what was registered: it may have deleted it, or given it other storage. Then the resource goes on
 * with what it has, as on a GPU. */
static bool is_still_there(CUgraphicsResource resource, const struct opengl *gl) {
    if (!resource->target) return gl->IsBuffer(resource->name) && gl_buffer_size(gl, resource->name) == resource->size;
    struct gl_image now;
    const struct gl_image *image = &resource->image;
    const bool is_texture = resource->target->shape != GL_SHAPE_RENDERBUFFER;
    return (is_texture ? gl->IsTexture(resource->name) : gl->IsRenderbuffer(resource->name)) &&
           gl_image_describe(gl, resource->target, resource->name, &now) && now.internal == image->internal &&
           now.width == image->width && now.height == image->height && now.depth == image->depth &&
           now.levels == image->levels;
}

static void copy_in(CUgraphicsResource resource, const struct opengl *gl) {
    if (!is_still_there(resource, gl)) return;
    if (!resource->target) {
        gl_buffer_read(gl, resource->name, resource->size, (void *)resource->base);
        return;
    }
    for (unsigned i = 0; i < resource->image.levels; i++)
        gl_image_read(gl, resource->target, resource->name, i, resource->format, &resource->levels->level[i]->image);
}

static void copy_out(CUgraphicsResource resource, const struct opengl *gl) {
    if (resource->read_only || !is_still_there(resource, gl)) return;
    if (!resource->target) {
        gl_buffer_write(gl, resource->name, resource->size, (const void *)resource->base);
        return;
    }
    for (unsigned i = 0; i < resource->image.levels; i++)
        gl_image_write(gl, resource->target, resource->name, i, resource->format, &resource->levels->level[i]->image);
}

static CUresult enter_map(unsigned int count, const CUgraphicsResource *resources, CUstream handle, const char *call,
                          CUstream *stream) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    if (!count) return fail(CUDA_ERROR_INVALID_VALUE, "count is 0.");
    if (!resources) return fail_null("resources");
    for (unsigned i = 0; i < count; i++) RETURN_IF(resource_check(resources[i]));
    RETURN_IF(enter_stream(handle, stream));
    if (!stream_is_capturing(*stream)) return CUDA_SUCCESS;
    (void)capture_refuse(*stream, call); /* which may say that the capture was spoiled before */
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the stream is capturing, and %s cannot become part of a graph.",
                call);
}

static void unmark(unsigned count, const CUgraphicsResource *resources) {
    for (unsigned i = 0; i < count; i++) resources[i]->is_mapped = false;
}

CUresult cuGraphicsMapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream) {
    CUstream stream;
    const struct opengl *gl;
    RETURN_IF(enter_map(count, resources, hStream, "cuGraphicsMapResources", &stream));
    for (unsigned i = 0; i < count; i++) RETURN_IF(enter_opengl(resources[i], &gl));
    /* All or none. */
    unsigned marked = 0;
    pthread_mutex_lock(&lock);
    while (marked < count && handle_is_live(resources[marked], HANDLE_GRAPHICS) && !resources[marked]->is_mapped &&
           !resources[marked]->is_lost)
        resources[marked++]->is_mapped = true;
    if (marked < count) unmark(marked, resources);
    pthread_mutex_unlock(&lock);
    if (marked < count) RETURN_IF(resource_check(resources[marked])); /* another thread unregistered it */
    if (marked < count && resources[marked]->is_lost) return fail(CUDA_ERROR_ALREADY_MAPPED, LOST);
    if (marked < count)
        return fail(CUDA_ERROR_ALREADY_MAPPED, "resource %u of %u is mapped already, or is twice in the list.", marked,
                    count);
    for (unsigned i = 0; i < count; i++) copy_in(resources[i], gl);
    return CUDA_SUCCESS;
}

CUresult cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream) {
    CUstream stream;
    const struct opengl *gl;
    RETURN_IF(enter_map(count, resources, hStream, "cuGraphicsUnmapResources", &stream));
    bool waited = false;
    for (unsigned i = 0; i < count; i++) {
        pthread_mutex_lock(&lock);
        const bool is_mapped = resources[i]->is_mapped;
        pthread_mutex_unlock(&lock);
        if (!is_mapped) return fail(CUDA_ERROR_NOT_MAPPED, "resource %u of %u is not mapped.", i, count);
        const CUresult status = enter_opengl(resources[i], &gl);
        if (status) { /* as on a GPU, all of them are lost then, with what CUDA wrote */
            pthread_mutex_lock(&lock);
            for (unsigned j = i; j < count; j++) {
                resources[j]->is_lost |= resources[j]->is_mapped;
                resources[j]->is_mapped = false;
            }
            pthread_mutex_unlock(&lock);
            return status;
        }
        if (!waited) {
            struct op *op = op_new(OP_EMPTY, stream->context);
            if (!op) return no_memory("another operation");
            RETURN_IF(stream_submit_and_wait(stream, op));
            waited = true;
        }
        copy_out(resources[i], gl);
        pthread_mutex_lock(&lock);
        resources[i]->is_mapped = false;
        pthread_mutex_unlock(&lock);
    }
    return CUDA_SUCCESS;
}

/* ---- what is mapped ------------------------------------------------------------------------------------------------ */

static CUresult enter_mapped(CUgraphicsResource resource) {
    RETURN_IF(enter());
    RETURN_IF(resource_check(resource));
    pthread_mutex_lock(&lock);
    const bool is_mapped = resource->is_mapped;
    pthread_mutex_unlock(&lock);
    return is_mapped ? CUDA_SUCCESS : fail(CUDA_ERROR_NOT_MAPPED, "the resource is not mapped.");
}

CUresult cuGraphicsResourceGetMappedPointer(CUdeviceptr *pDevPtr, size_t *pSize, CUgraphicsResource resource) {
    RETURN_IF(enter_mapped(resource));
    if (resource->target)
        return fail(CUDA_ERROR_NOT_MAPPED_AS_POINTER,
                    "the resource is an image: it has arrays, which cuGraphicsSubResourceGetMappedArray gives.");
    if (pDevPtr) *pDevPtr = resource->base;
    if (pSize) *pSize = resource->size;
    return CUDA_SUCCESS;
}

static CUresult enter_image(CUgraphicsResource resource) {
    RETURN_IF(enter_mapped(resource));
    return resource->target ? CUDA_SUCCESS
                            : fail(CUDA_ERROR_NOT_MAPPED_AS_ARRAY,
                                   "the resource is a buffer, which cuGraphicsResourceGetMappedPointer gives.");
}

CUresult cuGraphicsSubResourceGetMappedArray(CUarray *pArray, CUgraphicsResource resource, unsigned int arrayIndex,
                                             unsigned int mipLevel) {
    RETURN_IF(enter_image(resource));
    if (!pArray) return fail_null("pArray");
    if (arrayIndex >= resource->layer_count)
        return fail(CUDA_ERROR_INVALID_VALUE, "there is no layer or face %u: the image has %u, counted from 0.",
                    arrayIndex, resource->layer_count);
    if (mipLevel >= resource->image.levels)
        return fail(CUDA_ERROR_INVALID_VALUE, "there is no level %u: the image has %u, counted from 0.", mipLevel,
                    resource->image.levels);
    *pArray = resource->layers ? resource->layers[mipLevel * resource->layer_count + arrayIndex]
                               : resource->levels->level[mipLevel];
    return CUDA_SUCCESS;
}

CUresult cuGraphicsResourceGetMappedMipmappedArray(CUmipmappedArray *pMipmappedArray, CUgraphicsResource resource) {
    RETURN_IF(enter_image(resource));
    if (!pMipmappedArray) return fail_null("pMipmappedArray");
    *pMipmappedArray = resource->levels;
    return CUDA_SUCCESS;
}

CUresult cuGLGetDevices(unsigned int *pCudaDeviceCount, CUdevice *pCudaDevices, unsigned int cudaDeviceCount,
                        CUGLDeviceList deviceList) {
    const struct opengl *gl;
    RETURN_IF(enter());
    RETURN_IF(opengl_current(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, &gl));
    if (deviceList < CU_GL_DEVICE_LIST_ALL || deviceList > CU_GL_DEVICE_LIST_NEXT_FRAME)
        return fail(CUDA_ERROR_INVALID_VALUE, "deviceList is %d; it must be ALL, CURRENT_FRAME or NEXT_FRAME.",
                    (int)deviceList);
    if (!pCudaDeviceCount) return fail_null("pCudaDeviceCount");
    if (!cudaDeviceCount || !pCudaDevices)
        return fail(CUDA_ERROR_INVALID_VALUE, "there is no room for a device: give an array for at least one.");
    /* All that draws is the processor, and it is all of the devices. */
    *pCudaDeviceCount = (unsigned)device_count;
    for (unsigned i = 0; i < (unsigned)device_count && i < cudaDeviceCount; i++) pCudaDevices[i] = (CUdevice)i;
    return CUDA_SUCCESS;
}

PER_THREAD(cuGraphicsMapResources, (unsigned count, CUgraphicsResource *resources, CUstream stream),
           (count, resources, stream))
PER_THREAD(cuGraphicsUnmapResources, (unsigned count, CUgraphicsResource *resources, CUstream stream),
           (count, resources, stream))

const struct entry graphics_entries[] = {
    ENTRY(cuGraphicsGLRegisterBuffer),
    ENTRY(cuGraphicsGLRegisterImage),
    ENTRY(cuGraphicsUnregisterResource),
    ENTRY_V2(cuGraphicsResourceSetMapFlags),
    ENTRY_STREAM(cuGraphicsMapResources),
    ENTRY_STREAM(cuGraphicsUnmapResources),
    ENTRY_V2(cuGraphicsResourceGetMappedPointer),
    ENTRY(cuGraphicsSubResourceGetMappedArray),
    ENTRY(cuGraphicsResourceGetMappedMipmappedArray),
    ENTRY_V2(cuGLGetDevices),
    {NULL, NULL, NULL},
};
