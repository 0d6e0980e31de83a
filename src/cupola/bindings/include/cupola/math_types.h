/* Types that the math libraries share: those of the runtime, complex numbers (cuComplex.h) and half ones. */
#ifndef CUPOLA_MATH_TYPES_H
#define CUPOLA_MATH_TYPES_H

#include <stdint.h>

#include "cupola/runtime.h"

#if !defined(CU_COMPLEX_H_)
typedef struct cuComplex {
    float x, y;
} cuComplex;
typedef struct cuDoubleComplex {
    double x, y;
} cuDoubleComplex;
#endif

#if !defined(__CUDA_FP16_H__) && !defined(__CUDA_FP16_TYPES_EXIST__)
typedef struct __half {
    uint16_t bits;
} __half;
#endif

#endif
