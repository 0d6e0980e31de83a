/* The types of numbers that the math libraries calculate with, and values of any type as one (element.c). */
#ifndef CUPOLA_CPU_MATH_ELEMENT_H
#define CUPOLA_CPU_MATH_ELEMENT_H

#include <complex.h>
#undef I /* a name of types in the libraries' macros */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupola/runtime.h>

/* In the order of the tables of routines. H is half, B is bfloat16. The numbers of eight bits are cuBLASLt's only,
 * and complex numbers of halves and of bfloat16 cuSPARSE's. */
enum element { S, D, C, Z, H, B, I8, I32, I64, E4M3, E5M2, CH, CB, ELEMENTS };
typedef double _Complex number; /* holds a value of any of them */

static inline bool is_complex(enum element type) { return type == C || type == Z || type == CH || type == CB; }
static inline enum element real_of(enum element type) { return type == C ? S : type == Z ? D : type; }
size_t element_size(enum element type);
enum element element_of(cudaDataType type); /* ELEMENTS: none of these, or only some libraries' */
number element_load(enum element type, const void *place, int64_t index);
void element_store(enum element type, void *place, int64_t index, number value); /* rounds to nearest even, once */

#endif
