/* Rows of numbers from one type to another, fast for those that matrices have (convert.c). */
#ifndef CUPOLA_CPU_MATH_CONVERT_H
#define CUPOLA_CPU_MATH_CONVERT_H

#include "element.h"

/* Numbers first, first + step, ... of an array: `count` of them, from and to float, double or complex double. Storing
 * rounds once, to nearest even. */
void load_floats(enum element type, const void *array, int64_t first, int64_t step, int64_t count, float *to);
void load_doubles(enum element type, const void *array, int64_t first, int64_t step, int64_t count, double *to);
void load_numbers(enum element type, const void *array, int64_t first, int64_t step, int64_t count, number *to);
void store_floats(enum element type, void *array, int64_t first, int64_t step, int64_t count, const float *from);
void store_doubles(enum element type, void *array, int64_t first, int64_t step, int64_t count, const double *from);
void store_numbers(enum element type, void *array, int64_t first, int64_t step, int64_t count, const number *from);

/* A matrix in columns as one of another type, whose columns lie close together. */
void convert_matrix(enum element from, const void *source, int64_t rows, int64_t columns, int64_t ld, enum element to,
                    void *target);

#endif
