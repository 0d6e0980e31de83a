/* Statuses with a sentence that explains them (error.c). */
#ifndef CUPOLA_CPU_DRIVER_STATUS_H
#define CUPOLA_CPU_DRIVER_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include <cupola/driver.h>

#include "common/common.h"
#include "handle.h"

/* Return a failing status and keep a sentence that says what is wrong and what to do, for explain(). */
CUresult fail(CUresult status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
const char *address_space_advice(void); /* what follows "no memory": `ulimit -v`, where there is such a limit, or "" */
CUresult no_memory(const char *what) __attribute__((cold)); /* OUT_OF_MEMORY: "the host has no memory for what" */
CUresult fail_null(const char *what) __attribute__((cold)); /* CUDA_ERROR_INVALID_VALUE: "'what' is a null pointer" */
CUresult check_name(const char *name);                      /* CUDA_ERROR_INVALID_VALUE for none and for an empty one */
/* CUDA_ERROR_INVALID_HANDLE, and whether the stream, event… (what) was destroyed or never was one */
CUresult fail_handle(const char *what, const void *handle, enum handle_kind kind) __attribute__((cold));

/* The compiler is to see that a status is returned which is not CUDA_SUCCESS. */
#define fail(status, ...) ((fail)(status, __VA_ARGS__), (status))
#define no_memory(what) ((no_memory)(what), CUDA_ERROR_OUT_OF_MEMORY)
#define fail_null(what) ((fail_null)(what), CUDA_ERROR_INVALID_VALUE)
#define fail_handle(what, handle, kind) ((fail_handle)(what, handle, kind), CUDA_ERROR_INVALID_HANDLE)

const char *error_name(CUresult status); /* "CUDA_ERROR_…", or NULL when there is no such status */
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult error_status(const char *name); /* the other way; CUDA_ERROR_UNKNOWN when there is no such name */
CUresult error_at(size_t index);         /* each error in turn, from 1 on; CUDA_SUCCESS behind the last */

/* The explanation of the status last returned to this thread: writes at most size bytes, returns the full length. */
size_t explain(int status, char *text, size_t size);

#define RETURN_IF(call)                                         \
    do {                                                        \
        CUresult return_if_status = (call);                     \
        if (unlikely(return_if_status)) return return_if_status; \
    } while (0)

#endif
