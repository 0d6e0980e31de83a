/* Where the value lies in scalar objects of other packages: NumPy scalars, ctypes simple values.
 *
 * Their objects hold the value at a fixed place: a NumPy scalar behind the object head, a ctypes value behind a
 * pointer. Reading it there takes 1 ns, through the buffer protocol some 50 ns. The place is found once for each exact
 * type, by comparing what the buffer protocol says of one object (see _arguments.pyx); the table below remembers it.
 * Entries are never removed and hold a reference to their type, so that its address cannot be used again. Guarded by
 * the GIL.
 */
#ifndef CUPOLA_SCALAR_TYPES_H
#define CUPOLA_SCALAR_TYPES_H

#include <Python.h>
#include <stdint.h>

enum cupola_scalar_access {
    CUPOLA_SCALAR_INSIDE,  /* `offset` bytes into the object */
    CUPOLA_SCALAR_POINTER, /* where the pointer `offset` bytes into the object points */
};

typedef struct cupola_scalar_type {
    PyTypeObject *type;
    enum cupola_scalar_access access;
    uint32_t offset;
    uint32_t size; /* bytes of the value */
} cupola_scalar_type;

enum { CUPOLA_SCALAR_SLOTS = 256, CUPOLA_SCALAR_MOST = 128 };
static cupola_scalar_type cupola_scalars[CUPOLA_SCALAR_SLOTS];
static unsigned cupola_scalar_count;

static inline unsigned cupola_scalar_hash(const PyTypeObject *type) {
    return (unsigned)(((uint64_t)(uintptr_t)type >> 4) * 0x9E3779B97F4A7C15u >> 56);
}

/* The entry of `type`, or NULL. */
static inline const cupola_scalar_type *cupola_scalar_find(const PyTypeObject *type) {
    unsigned slot = cupola_scalar_hash(type);
    while (cupola_scalars[slot].type != type) {
        if (cupola_scalars[slot].type == NULL) return NULL;
        slot = (slot + 1) % CUPOLA_SCALAR_SLOTS;
    }
    return &cupola_scalars[slot];
}

/* Remember a type; when the table is full nothing is remembered and values go the slow way. */
static inline void cupola_scalar_add(PyTypeObject *type, enum cupola_scalar_access access, uint32_t offset,
                                     uint32_t size) {
    unsigned slot = cupola_scalar_hash(type);
    if (cupola_scalar_count == CUPOLA_SCALAR_MOST) return;
    while (cupola_scalars[slot].type != NULL) slot = (slot + 1) % CUPOLA_SCALAR_SLOTS;
    Py_INCREF((PyObject *)type);
    cupola_scalars[slot] = (cupola_scalar_type){type, access, offset, size};
    cupola_scalar_count++;
}

static inline void *cupola_scalar_value(const cupola_scalar_type *entry, PyObject *scalar) {
    char *place = (char *)scalar + entry->offset;
    return entry->access == CUPOLA_SCALAR_INSIDE ? (void *)place : *(void **)place;
}

#endif
