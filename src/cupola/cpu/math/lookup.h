/* What the provider takes from the emulated math libraries (lookup.c, blas/openblas.c). */
#ifndef CUPOLA_CPU_MATH_LOOKUP_H
#define CUPOLA_CPU_MATH_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

/* A function of any of the libraries; NULL: there is none of that name. */
void *math_lookup(const char *symbol);
size_t math_lookup_count(void);
const char *math_lookup_name(size_t index);

#endif
