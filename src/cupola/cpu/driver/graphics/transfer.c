/* Copies between OpenGL's buffers and images and memory. What the program has set in its context stays as it is: bindings
 * and the modes of transfers are put back (OpenGL 4.6, chapter 8.4 "Pixel Rectangles" and 18.2 "Reading Pixels"). */
#include "opengl.h"

enum {
    ARRAY_BUFFER = 0x8892,
    ARRAY_BUFFER_BINDING = 0x8894,
    BUFFER_SIZE = 0x8764,
    COLOR_ATTACHMENT = 0x8CE0,
    COLOR_BUFFER = 0x4000,
    CUBE_FACE = 0x8515, /* of six */
    DRAW_BINDING = 0x8CA6,
    DRAW_FRAMEBUFFER = 0x8CA9,
    DYNAMIC_DRAW = 0x88E8,
    FACES = 6,
    FRAMEBUFFER_SRGB = 0x8DB9,
    NEAREST = 0x2600,
    PACK_BUFFER = 0x88EB,
    PACK_BUFFER_BINDING = 0x88ED,
    READ_BINDING = 0x8CAA,
    READ_FRAMEBUFFER = 0x8CA8,
    RENDERBUFFER = 0x8D41,
    SCISSOR_TEST = 0x0C11,
    TEXTURE_2D = 0x0DE1,
    TEXTURE_2D_BINDING = 0x8069,
    TEXTURE_MAX_LEVEL = 0x813D,
    UNPACK_BUFFER = 0x88EC,
    UNPACK_BUFFER_BINDING = 0x88EF,
};

static GLint integer(const struct opengl *gl, GLenum what) {
    GLint value = 0;
    gl->GetIntegerv(what, &value);
    return value;
}

/* ---- buffers ------------------------------------------------------------------------------------------------------ */

static GLuint bind_buffer(const struct opengl *gl, GLuint name) {
    GLuint before = (GLuint)integer(gl, ARRAY_BUFFER_BINDING);
    gl->BindBuffer(ARRAY_BUFFER, name);
    return before;
}

size_t gl_buffer_size(const struct opengl *gl, GLuint name) {
    GLint size = 0;
    GLuint before = bind_buffer(gl, name);
    gl->GetBufferParameteriv(ARRAY_BUFFER, BUFFER_SIZE, &size);
    gl->BindBuffer(ARRAY_BUFFER, before);
    return size < 0 ? 0 : (size_t)size;
}

void gl_buffer_read(const struct opengl *gl, GLuint name, size_t size, void *data) {
    GLuint before = bind_buffer(gl, name);
    gl->GetBufferSubData(ARRAY_BUFFER, 0, (GLsizeiptr)size, data);
    gl->BindBuffer(ARRAY_BUFFER, before);
}

void gl_buffer_write(const struct opengl *gl, GLuint name, size_t size, const void *data) {
    GLuint before = bind_buffer(gl, name);
    gl->BufferSubData(ARRAY_BUFFER, 0, (GLsizeiptr)size, data);
    gl->BindBuffer(ARRAY_BUFFER, before);
}

GLuint gl_buffer_new(const struct opengl *gl, size_t size, const void *data) {
    GLuint name = 0;
    gl->GenBuffers(1, &name);
    GLuint before = bind_buffer(gl, name);
    gl->BufferData(ARRAY_BUFFER, (GLsizeiptr)size, data, DYNAMIC_DRAW);
    gl->BindBuffer(ARRAY_BUFFER, before);
    return name;
}

/* ---- what an image is --------------------------------------------------------------------------------------------- */

static GLuint bind_image(const struct opengl *gl, const struct gl_target *target, GLuint name) {
    GLuint before = (GLuint)integer(gl, target->binding);
    if (target->shape == GL_SHAPE_RENDERBUFFER) gl->BindRenderbuffer(target->target, name);
    else gl->BindTexture(target->target, name);
    return before;
}

static GLenum face_or_target(const struct gl_target *target, unsigned face) {
    return target->shape == GL_SHAPE_CUBE ? CUBE_FACE + face : target->target;
}

static void describe_part(const struct opengl *gl, GLenum part, unsigned level, struct gl_image *image) {
    enum { WIDTH = 0x1000, HEIGHT = 0x1001, INTERNAL_FORMAT = 0x1003, DEPTH = 0x8071 };
    *image = (struct gl_image){0};
    gl->GetTexLevelParameteriv(part, (GLint)level, WIDTH, &image->width);
    gl->GetTexLevelParameteriv(part, (GLint)level, HEIGHT, &image->height);
    gl->GetTexLevelParameteriv(part, (GLint)level, INTERNAL_FORMAT, &image->internal);
    gl->GetTexLevelParameteriv(part, (GLint)level, DEPTH, &image->depth);
    if (image->width <= 0 || image->height <= 0) image->internal = 0;
}

/* Each face of a cube has storage of its own. CUDA has one array for all of them, so they must be alike. */
static void describe_level(const struct opengl *gl, const struct gl_target *target, unsigned level,
                           struct gl_image *image) {
    describe_part(gl, face_or_target(target, 0), level, image);
    if (target->shape != GL_SHAPE_CUBE) return;
    image->depth = FACES;
    for (unsigned face = 1; face < FACES && image->internal; face++) {
        struct gl_image other;
        describe_part(gl, face_or_target(target, face), level, &other);
        if (other.internal != image->internal || other.width != image->width || other.height != image->height)
            image->internal = 0;
    }
}

static void describe_renderbuffer(const struct opengl *gl, struct gl_image *image) {
    enum { WIDTH = 0x8D42, HEIGHT = 0x8D43, INTERNAL_FORMAT = 0x8D44, SAMPLES = 0x8CAB };
    GLint samples = 0;
    *image = (struct gl_image){.depth = 1, .levels = 1};
    gl->GetRenderbufferParameteriv(RENDERBUFFER, WIDTH, &image->width);
    gl->GetRenderbufferParameteriv(RENDERBUFFER, HEIGHT, &image->height);
    gl->GetRenderbufferParameteriv(RENDERBUFFER, INTERNAL_FORMAT, &image->internal);
    gl->GetRenderbufferParameteriv(RENDERBUFFER, SAMPLES, &samples);
    if (image->width <= 0 || image->height <= 0 || samples) image->internal = 0;
}

static GLint half(GLint extent, unsigned level) { return extent >> level ? extent >> level : 1; }

/* Whether a level follows from level 0, as the levels of an array do. The extents of OpenGL's are the program's choice. */
static bool is_level_of(const struct gl_target *target, const struct gl_image *image, unsigned level,
                        const struct gl_image *next) {
    return next->internal == image->internal && next->width == half(image->width, level) &&
           next->height == half(image->height, level) &&
           next->depth == (target->shape == GL_SHAPE_3D ? half(image->depth, level) : image->depth);
}

bool gl_image_describe(const struct opengl *gl, const struct gl_target *target, GLuint name, struct gl_image *image) {
    const GLuint before = bind_image(gl, target, name);
    const bool bound = (GLuint)integer(gl, target->binding) == name;
    if (!bound) (void)gl->GetError(); /* what the binding left: the texture has another target */
    if (bound && target->shape == GL_SHAPE_RENDERBUFFER) describe_renderbuffer(gl, image);
    if (bound && target->shape != GL_SHAPE_RENDERBUFFER) {
        describe_level(gl, target, 0, image);
        image->levels = 1;
        for (; image->internal && target->has_levels && image->levels < CPU_MAX_LEVELS; image->levels++) {
            struct gl_image next;
            if (!((image->width | image->height) >> image->levels)) break;
            describe_level(gl, target, image->levels, &next);
            if (!is_level_of(target, image, image->levels, &next)) break;
        }
    }
    bind_image(gl, target, before);
    return bound;
}

/* ---- texels ------------------------------------------------------------------------------------------------------- */

/* Alignment, and what makes rows and images of the program's memory longer or begin elsewhere. */
static const GLenum pack[] = {0x0D05, 0x0D00, 0x0D01, 0x0D02, 0x0D03, 0x0D04, 0x806B, 0x806C};
static const GLenum unpack[] = {0x0CF5, 0x0CF0, 0x0CF1, 0x0CF2, 0x0CF3, 0x0CF4, 0x806D, 0x806E};
enum { MODES = sizeof pack / sizeof *pack };

struct transfer {
    GLint modes[MODES];
    GLuint buffer, image;
    bool is_write;
};

static void begin(const struct opengl *gl, const struct gl_target *target, GLuint name, bool is_write,
                  struct transfer *transfer) {
    const GLenum *modes = is_write ? unpack : pack;
    for (int i = 0; i < MODES; i++) {
        transfer->modes[i] = integer(gl, modes[i]);
        gl->PixelStorei(modes[i], i == 0 ? 1 : 0);
    }
    transfer->is_write = is_write;
    transfer->buffer = (GLuint)integer(gl, is_write ? UNPACK_BUFFER_BINDING : PACK_BUFFER_BINDING);
    gl->BindBuffer(is_write ? UNPACK_BUFFER : PACK_BUFFER, 0);
    transfer->image = bind_image(gl, target, name);
}

static void end(const struct opengl *gl, const struct gl_target *target, const struct transfer *transfer) {
    const GLenum *modes = transfer->is_write ? unpack : pack;
    bind_image(gl, target, transfer->image);
    gl->BindBuffer(transfer->is_write ? UNPACK_BUFFER : PACK_BUFFER, transfer->buffer);
    for (int i = 0; i < MODES; i++) gl->PixelStorei(modes[i], transfer->modes[i]);
}

/* A renderbuffer is read as a framebuffer is. It is written by drawing a texture over it. */
static void transfer_renderbuffer(const struct opengl *gl, GLuint name, const struct gl_format *format,
                                  const struct cpu_image *image, bool is_write) {
    const GLsizei width = (GLsizei)image->width, height = (GLsizei)image->height;
    const GLuint read = (GLuint)integer(gl, READ_BINDING), draw = (GLuint)integer(gl, DRAW_BINDING);
    GLuint frames[2];
    gl->GenFramebuffers(2, frames);
    if (is_write) {
        const GLboolean scissor = gl->IsEnabled(SCISSOR_TEST), srgb = gl->IsEnabled(FRAMEBUFFER_SRGB);
        const GLuint before = (GLuint)integer(gl, TEXTURE_2D_BINDING);
        GLuint texture;
        gl->GenTextures(1, &texture);
        gl->BindTexture(TEXTURE_2D, texture);
        gl->TexParameteri(TEXTURE_2D, TEXTURE_MAX_LEVEL, 0);
        gl->TexImage2D(TEXTURE_2D, 0, (GLint)format->internal, width, height, 0, format->pixel, format->type,
                       (const void *)image->base);
        gl->BindFramebuffer(READ_FRAMEBUFFER, frames[0]);
        gl->FramebufferTexture2D(READ_FRAMEBUFFER, COLOR_ATTACHMENT, TEXTURE_2D, texture, 0);
        gl->BindFramebuffer(DRAW_FRAMEBUFFER, frames[1]);
        gl->FramebufferRenderbuffer(DRAW_FRAMEBUFFER, COLOR_ATTACHMENT, RENDERBUFFER, name);
        gl->Disable(SCISSOR_TEST);
        gl->Disable(FRAMEBUFFER_SRGB);
        gl->BlitFramebuffer(0, 0, width, height, 0, 0, width, height, COLOR_BUFFER, NEAREST);
        if (scissor) gl->Enable(SCISSOR_TEST);
        if (srgb) gl->Enable(FRAMEBUFFER_SRGB);
        gl->BindTexture(TEXTURE_2D, before);
        gl->DeleteTextures(1, &texture);
    } else {
        gl->BindFramebuffer(READ_FRAMEBUFFER, frames[0]);
        gl->FramebufferRenderbuffer(READ_FRAMEBUFFER, COLOR_ATTACHMENT, RENDERBUFFER, name);
        gl->ReadPixels(0, 0, width, height, format->pixel, format->type, (void *)image->base);
    }
    gl->BindFramebuffer(READ_FRAMEBUFFER, read);
    gl->BindFramebuffer(DRAW_FRAMEBUFFER, draw);
    gl->DeleteFramebuffers(2, frames);
}

void gl_image_read(const struct opengl *gl, const struct gl_target *target, GLuint name, unsigned level,
                   const struct gl_format *format, const struct cpu_image *image) {
    struct transfer transfer;
    begin(gl, target, name, false, &transfer);
    if (target->shape == GL_SHAPE_RENDERBUFFER) transfer_renderbuffer(gl, name, format, image, false);
    else
        for (unsigned face = 0; face < (target->shape == GL_SHAPE_CUBE ? FACES : 1); face++)
            gl->GetTexImage(face_or_target(target, face), (GLint)level, format->pixel, format->type,
                            (void *)(image->base + face * image->slice));
    end(gl, target, &transfer);
}

void gl_image_write(const struct opengl *gl, const struct gl_target *target, GLuint name, unsigned level,
                    const struct gl_format *format, const struct cpu_image *image) {
    const GLsizei width = (GLsizei)image->width, height = (GLsizei)image->height;
    struct transfer transfer;
    begin(gl, target, name, true, &transfer);
    if (target->shape == GL_SHAPE_RENDERBUFFER) transfer_renderbuffer(gl, name, format, image, true);
    else if (target->shape == GL_SHAPE_3D || target->shape == GL_SHAPE_LAYERS)
        gl->TexSubImage3D(target->target, (GLint)level, 0, 0, 0, width, height, (GLsizei)(image->depth * image->layers),
                          format->pixel, format->type, (const void *)image->base);
    else
        for (unsigned face = 0; face < (target->shape == GL_SHAPE_CUBE ? FACES : 1); face++)
            gl->TexSubImage2D(face_or_target(target, face), (GLint)level, 0, 0, width, height, format->pixel,
                              format->type, (const void *)(image->base + face * image->slice));
    end(gl, target, &transfer);
}
