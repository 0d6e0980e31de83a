/* Where the value lies in scalar objects of other packages: NumPy scalars, ctypes simple values.
 *
 * Their objects hold the value at a fixed place: a NumPy scalar behind the object head, a ctypes value behind a
 * pointer. Reading it there takes 1 ns, through the buffer protocol some 50 ns. The place is found once for each exact
 * type, by comparing what the buffer protocol says of one object (see _arguments.pyx); the table below remembers it.
 * Entries are never removed and hold a reference to their type, so that its address cannot be used again. Entries are
 * added one at a time, by the GIL or else by a lock, and their type is written last, so finding them needs no lock.
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
    uint32_t kind; /* of number: 1 for integers, 2 for floating-point numbers, 0 for others, as in _kernel.pxd */
} cupola_scalar_type;

enum { CUPOLA_SCALAR_SLOTS = 256, CUPOLA_SCALAR_MOST = 128 };
static cupola_scalar_type cupola_scalars[CUPOLA_SCALAR_SLOTS];
static unsigned cupola_scalar_count;

#ifdef Py_GIL_DISABLED
static PyMutex cupola_scalar_lock;
#define CUPOLA_SCALAR_LOCK() PyMutex_Lock(&cupola_scalar_lock)
#define CUPOLA_SCALAR_UNLOCK() PyMutex_Unlock(&cupola_scalar_lock)
#define CUPOLA_SCALAR_TYPE(slot) __atomic_load_n(&cupola_scalars[slot].type, __ATOMIC_ACQUIRE)
#define CUPOLA_SCALAR_PUBLISH(slot, value) __atomic_store_n(&cupola_scalars[slot].type, value, __ATOMIC_RELEASE)
#else
#define CUPOLA_SCALAR_LOCK() ((void)0)
#define CUPOLA_SCALAR_UNLOCK() ((void)0)
#define CUPOLA_SCALAR_TYPE(slot) cupola_scalars[slot].type
#define CUPOLA_SCALAR_PUBLISH(slot, value) ((void)(cupola_scalars[slot].type = (value)))
#endif

static inline unsigned cupola_scalar_hash(const PyTypeObject *type) {
    return (unsigned)(((uint64_t)(uintptr_t)type >> 4) * 0x9E3779B97F4A7C15u >> 56);
}

/* The entry of `type`, or NULL. */
static inline const cupola_scalar_type *cupola_scalar_find(const PyTypeObject *type) {
    unsigned slot = cupola_scalar_hash(type);
    const PyTypeObject *found;
    while ((found = CUPOLA_SCALAR_TYPE(slot)) != type) {
        if (found == NULL) return NULL;
        slot = (slot + 1) % CUPOLA_SCALAR_SLOTS;
    }
    return &cupola_scalars[slot];
}

/* Remember a type; when the table is full nothing is remembered and values go the slow way. */
static inline void cupola_scalar_add(PyTypeObject *type, enum cupola_scalar_access access, uint32_t offset,
                                     uint32_t size, uint32_t kind) {
    unsigned slot = cupola_scalar_hash(type);
    CUPOLA_SCALAR_LOCK();
    if (cupola_scalar_count < CUPOLA_SCALAR_MOST && cupola_scalar_find(type) == NULL) {
        while (cupola_scalars[slot].type != NULL) slot = (slot + 1) % CUPOLA_SCALAR_SLOTS;
        Py_INCREF((PyObject *)type);
        cupola_scalars[slot].access = access, cupola_scalars[slot].offset = offset, cupola_scalars[slot].size = size;
        cupola_scalars[slot].kind = kind;
        CUPOLA_SCALAR_PUBLISH(slot, type);
        cupola_scalar_count++;
    }
    CUPOLA_SCALAR_UNLOCK();
}

static inline void *cupola_scalar_value(const cupola_scalar_type *entry, PyObject *scalar) {
    char *place = (char *)scalar + entry->offset;
    return entry->access == CUPOLA_SCALAR_INSIDE ? (void *)place : *(void **)place;
}

#endif
