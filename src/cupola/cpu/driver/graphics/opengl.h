/* OpenGL as graphics interop needs it: a few of its functions, and copies of buffers and images (opengl.c, transfer.c).
 *
 * It is the program's OpenGL. Nothing is linked or loaded: a context can only be current if the program has loaded EGL or
 * GLX, and these give the functions. All calls need a context of OpenGL that is current on the calling thread. */
#ifndef CUPOLA_CPU_DRIVER_OPENGL_H
#define CUPOLA_CPU_DRIVER_OPENGL_H

#include "driver/texture/array.h"

typedef int GLint;
typedef int GLsizei;
typedef unsigned char GLboolean;
typedef unsigned int GLbitfield;
typedef ptrdiff_t GLintptr;
typedef ptrdiff_t GLsizeiptr;

#define GL_FUNCTIONS(X)                                                                                               \
    X(void, BindBuffer, (GLenum target, GLuint buffer))                                                               \
    X(void, BindFramebuffer, (GLenum target, GLuint framebuffer))                                                     \
    X(void, BindTexture, (GLenum target, GLuint texture))                                                             \
    X(void, BlitFramebuffer,                                                                                          \
      (GLint x, GLint y, GLint right, GLint top, GLint to_x, GLint to_y, GLint to_right, GLint to_top,                \
       GLbitfield mask, GLenum filter))                                                                               \
    X(void, BufferData, (GLenum target, GLsizeiptr size, const void *data, GLenum usage))                             \
    X(void, BufferSubData, (GLenum target, GLintptr offset, GLsizeiptr size, const void *data))                       \
    X(void, DeleteBuffers, (GLsizei count, const GLuint *names))                                                      \
    X(void, DeleteFramebuffers, (GLsizei count, const GLuint *names))                                                 \
    X(void, DeleteTextures, (GLsizei count, const GLuint *names))                                                     \
    X(void, Disable, (GLenum what))                                                                                   \
    X(void, Enable, (GLenum what))                                                                                    \
    X(void, FramebufferRenderbuffer, (GLenum target, GLenum attachment, GLenum kind, GLuint name))                    \
    X(void, FramebufferTexture2D, (GLenum target, GLenum attachment, GLenum kind, GLuint name, GLint level))          \
    X(void, GenBuffers, (GLsizei count, GLuint *names))                                                               \
    X(void, GenFramebuffers, (GLsizei count, GLuint *names))                                                          \
    X(void, GenTextures, (GLsizei count, GLuint *names))                                                              \
    X(void, GetBufferParameteriv, (GLenum target, GLenum what, GLint *value))                                         \
    X(void, GetBufferSubData, (GLenum target, GLintptr offset, GLsizeiptr size, void *data))                          \
    X(GLenum, GetError, (void))                                                                                       \
    X(void, GetIntegerv, (GLenum what, GLint *value))                                                                 \
    X(void, GetRenderbufferParameteriv, (GLenum target, GLenum what, GLint *value))                                   \
    X(void, GetTexImage, (GLenum target, GLint level, GLenum format, GLenum type, void *pixels))                      \
    X(void, GetTexLevelParameteriv, (GLenum target, GLint level, GLenum what, GLint *value))                          \
    X(void, BindRenderbuffer, (GLenum target, GLuint renderbuffer))                                                   \
    X(GLboolean, IsBuffer, (GLuint name))                                                                             \
    X(GLboolean, IsEnabled, (GLenum what))                                                                            \
    X(GLboolean, IsRenderbuffer, (GLuint name))                                                                       \
    X(GLboolean, IsTexture, (GLuint name))                                                                            \
    X(void, PixelStorei, (GLenum what, GLint value))                                                                  \
    X(void, ReadPixels,                                                                                               \
      (GLint x, GLint y, GLsizei width, GLsizei height, GLenum format, GLenum type, void *pixels))                    \
    X(void, TexImage2D,                                                                                               \
      (GLenum target, GLint level, GLint internal, GLsizei width, GLsizei height, GLint border, GLenum format,        \
       GLenum type, const void *pixels))                                                                              \
    X(void, TexParameteri, (GLenum target, GLenum what, GLint value))                                                 \
    X(void, TexSubImage2D,                                                                                            \
      (GLenum target, GLint level, GLint x, GLint y, GLsizei width, GLsizei height, GLenum format, GLenum type,       \
       const void *pixels))                                                                                           \
    X(void, TexSubImage3D,                                                                                            \
      (GLenum target, GLint level, GLint x, GLint y, GLint z, GLsizei width, GLsizei height, GLsizei depth,           \
       GLenum format, GLenum type, const void *pixels))

struct opengl {
#define DECLARE(result, name, parameters) result(*name) parameters;
    GL_FUNCTIONS(DECLARE)
#undef DECLARE
};

/* The functions of the current OpenGL context; or an explanation, with this status if no context is current. */
CUresult opengl_current(CUresult none, const struct opengl **gl);

/* A format of images that CUDA takes, and how its texels are brought there and back. */
struct gl_format {
    GLenum internal;
    CUarray_format format;
    unsigned channels;
    GLenum pixel, type; /* for glGetTexImage and its kind */
};
const struct gl_format *gl_format_find(GLenum internal); /* NULL: CUDA does not take it */

/* A kind of image that CUDA takes. */
enum gl_shape { GL_SHAPE_2D, GL_SHAPE_3D, GL_SHAPE_LAYERS, GL_SHAPE_CUBE, GL_SHAPE_RENDERBUFFER };
struct gl_target {
    GLenum target, binding;
    enum gl_shape shape;
    bool has_levels;
};
const struct gl_target *gl_target_find(GLenum target);

/* The bytes of a buffer; 0: it has no storage. */
size_t gl_buffer_size(const struct opengl *gl, GLuint name);
void gl_buffer_read(const struct opengl *gl, GLuint name, size_t size, void *data);
void gl_buffer_write(const struct opengl *gl, GLuint name, size_t size, const void *data);
GLuint gl_buffer_new(const struct opengl *gl, size_t size, const void *data);

/* An image: its format and the extents of level 0; `depth` is the number of layers or faces, if it has any. False: it
 * has another target. Without storage `internal` is 0. */
struct gl_image {
    GLint width, height, depth, internal;
    unsigned levels;
};
bool gl_image_describe(const struct opengl *gl, const struct gl_target *target, GLuint name, struct gl_image *image);

/* All texels of a level, in rows without gaps, rows in slices without gaps. */
void gl_image_read(const struct opengl *gl, const struct gl_target *target, GLuint name, unsigned level,
                   const struct gl_format *format, const struct cpu_image *image);
void gl_image_write(const struct opengl *gl, const struct gl_target *target, GLuint name, unsigned level,
                    const struct gl_format *format, const struct cpu_image *image);

#endif
