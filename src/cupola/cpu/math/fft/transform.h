/* Fourier transforms of arrays with any strides, which transform.cpp leaves to pocketfft. It is C++ and thus a library of
 * its own, which is opened when the first function of cuFFT is called (library.c). */
#ifndef CUPOLA_CPU_MATH_FFT_TRANSFORM_H
#define CUPOLA_CPU_MATH_FFT_TRANSFORM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TRANSFORM_DIMENSIONS = 4 }; /* the batch and up to three that are transformed */

enum transform_kind { COMPLEX_TO_COMPLEX, REAL_TO_COMPLEX, COMPLEX_TO_REAL };

struct transform {
    enum transform_kind kind;
    int is_double; /* or of floats */
    int is_forward;
    unsigned threads;
    size_t dimensions;                  /* the first is the batch, which is not transformed */
    size_t shape[TRANSFORM_DIMENSIONS]; /* in elements of the side that is real, or of both */
    ptrdiff_t from_stride[TRANSFORM_DIMENSIONS], to_stride[TRANSFORM_DIMENSIONS]; /* bytes */
    const void *from;
    void *to; /* `from` itself with the same strides, or apart from it */
};

/* Without scaling. 0: done; 1: no memory; 2: pocketfft refuses it. */
typedef int transform_run(const struct transform *transform);

#ifdef __cplusplus
}
#endif

#endif
