/* The emulated math libraries: what cuBLAS and its kin have in common.
 *
 * They stand above the CUDA runtime, as NVIDIA's do. A call checks its arguments, packs them into a `struct call`, and
 * puts that into its stream as one operation, so it keeps the order of the stream, and a capture makes it a node. The
 * arithmetic is that of well-kept libraries (blas/openblas.c), which the operation calls on the addresses it was given:
 * device pointers are addresses of the host. What the operation reads and writes is checked against the table of
 * allocations when it runs, and a bad address ends the context as that of a kernel does. */
#ifndef CUPOLA_CPU_MATH_H
#define CUPOLA_CPU_MATH_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupola/math_types.h>

#include "cudart/cudart.h"
#include "driver/memory/memory.h"
#include "driver/stream/stream.h"

/* ---- tables of functions -------------------------------------------------------------------------- */

/* A row of a file's table; `table` is the library's in the bindings, against which the function is checked. */
#define MATH_ENTRY(table, name)                                                                                      \
    {#name, __builtin_choose_expr(__builtin_types_compatible_p(typeof(&name), typeof(((table *)0)->name)), (void *)name, \
                                  (void)0 /* `name` has another signature than the table's slot */), NULL}

/* ---- operations (operation.c) ------------------------------------------------------------------------------------ */

/* The stream that a library's handle is bound to, in a usable context. */
CUresult math_stream(cudaStream_t handle, CUstream *stream);

/* Queue the call, which is the stream's from now on; `wait`: and wait until it is done, which no capture can. */
CUresult math_submit(CUstream stream, struct call *call, bool wait);

/* While an operation runs: the bytes at the address are memory that it may use. `what` names them. */
CUresult math_touch(const char *function, const char *what, const void *address, size_t bytes);

/* ---- statuses (operation.c) -------------------------------------------------------------------------------------- */

/* Keep a sentence that says what is wrong with a call which returns this status. */
void math_explain(int status, const char *format, va_list arguments) __attribute__((cold));

/* The library's own status, 0 when the driver's is a success: for a lack of memory, for no context, and for all else. The
 * sentence that explains the driver's status explains this one. */
int math_status(CUresult status, int without_memory, int not_initialized, int failed);

/* Who is told these sentences, in programs that get no exceptions; NULL: nobody. */
extern void (*_Atomic math_report)(const char *text);

#endif
