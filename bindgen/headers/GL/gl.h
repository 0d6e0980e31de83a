#ifndef CODEGEN_GL_H
#define CODEGEN_GL_H
typedef unsigned int GLenum;
typedef unsigned int GLuint;
#endif
