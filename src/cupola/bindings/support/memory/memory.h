/* Memory that conversions need: for the length of one call, or as long as a record lives. */
#ifndef CUPOLA_SUPPORT_MEMORY_H
#define CUPOLA_SUPPORT_MEMORY_H

#include "library/library.h"

/* ---- memory that lives for one call: converted lists, pinned buffers ---- */

typedef struct ScratchBlock ScratchBlock;
typedef struct {
    ScratchBlock *blocks;
    size_t used;
    _Alignas(16) char inlined[256];
} Scratch;

static inline void scratch_init(Scratch *scratch) {
    scratch->blocks = NULL;
    scratch->used = 0;
}
void *scratch_alloc(Scratch *scratch, size_t size);     /* zeroed; NULL with MemoryError set */
COLD void *scratch_more(Scratch *scratch, size_t size); /* the same of memory that is not on the stack */
/* Memory that is not zeroed. */
static inline void *scratch_take(Scratch *scratch, size_t size) {
    if (UNLIKELY(size > sizeof scratch->inlined - scratch->used)) return scratch_more(scratch, size);
    void *memory = scratch->inlined + scratch->used;
    scratch->used += (size + 15) & ~(size_t)15;
    return memory;
}
void *scratch_array(Scratch *scratch, size_t size, size_t count);
int scratch_buffer(Scratch *scratch, PyObject *object, int flags, Py_buffer **buffer);
int scratch_keep(Scratch *scratch, PyObject *object); /* takes the reference, which lives as long; NULL is nothing */
/* The items of a list or tuple as a tuple (borrowed), which nobody can change: converting one of them may run Python
 * code, and other threads run while the library is called. */
PyObject *scratch_items(Scratch *scratch, PyObject *sequence);
COLD void scratch_release(Scratch *scratch);
static inline void scratch_free(Scratch *scratch) {
    if (UNLIKELY(scratch->blocks != NULL)) scratch_release(scratch);
}

/* ---- memory of records (storage.c) ---- */

/* Memory of a record or of an array that a record points to, with the objects that it refers to. */
typedef struct Storage {
    PyObject_HEAD
    char *data;     /* NULL when it only keeps objects */
    size_t count;   /* elements of an array */
    PyObject *kept; /* dict: address of a pointer -> object that keeps its target alive; or NULL */
    size_t size;
    struct Storage *before, *after; /* in the list of those that have memory */
} Storage;

extern PyTypeObject StorageType;
Storage *storage_new(size_t size, size_t align, size_t count);           /* zeroed; no memory for size 0 */
int storage_keep(Storage *storage, const void *where, PyObject *object); /* replaces what was kept there */
Storage *storage_at(const void *address); /* a new reference to the one with this memory, or NULL without an exception.
                                            The caller's program keeps what it gives the address of. */
PyObject *storage_kept(Storage *storage, const void *where); /* new reference or NULL, no exception */

#endif
