#ifndef CODEGEN_EGL_H
#define CODEGEN_EGL_H
typedef int EGLint;
#endif
