/* From symbols to entry points (lookup.c): what the whole driver gives to those above it. */
#ifndef CUPOLA_CPU_DRIVER_LOOKUP_H
#define CUPOLA_CPU_DRIVER_LOOKUP_H

#include <stddef.h>

void *lookup(const char *symbol);
void *exported(const char *symbol); /* what libcuda.so.1 has under the symbol: of a plain name the oldest meaning */
size_t lookup_count(void);
const char *lookup_name(size_t index); /* the symbols that the driver has, for tests and reports */

#endif
