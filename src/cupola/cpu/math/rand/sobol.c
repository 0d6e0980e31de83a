/* Sobol sequences (Sobol, 1967; Antonov and Saleev, 1979): number i of a dimension is the exclusive or of those of its
 * direction vectors whose bits i's Gray code has, and of a constant where it is scrambled. The tables are NVIDIA's, from
 * its library (cpu/quasirandom.py). All numbers of one dimension come before those of the next. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "rand.h"

enum { DIMENSIONS = 20000, KINDS = 4 };

static _Atomic(const void *) tables[KINDS]; /* once they are there they stay */

static bool is_wide(curandRngType_t type) { return type >= CURAND_RNG_QUASI_SOBOL64; }

bool rand_sobol_load(curandRngType_t type) {
    _Atomic(const void *) *place = &tables[type - CURAND_RNG_QUASI_SOBOL32];
    if (atomic_load(place)) return true;
    const size_t bits = is_wide(type) ? 64 : 32, size = DIMENSIONS * (bits + 1) * bits / 8;
    void *made = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.quasirandom");
    PyObject *bytes = module ? PyObject_CallMethod(module, "tables", "i", (int)type) : NULL;
    if (bytes && PyBytes_Check(bytes) && (size_t)PyBytes_GET_SIZE(bytes) == size && (made = malloc(size)))
        memcpy(made, PyBytes_AS_STRING(bytes), size);
    if (!bytes) {
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        PyObject *text = error ? PyObject_Str(error) : NULL;
        const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
        (fail)(CUDA_ERROR_UNKNOWN, "%s", utf8 ? utf8 : "the tables of Sobol sequences cannot be had");
        PyErr_Clear();
        Py_XDECREF(text);
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    const void *none = NULL;
    if (made && !atomic_compare_exchange_strong(place, &none, made)) free(made); /* another thread was faster */
    return made;
}

static uint64_t at(const void *table, bool wide, size_t index) {
    return wide ? ((const uint64_t *)table)[index] : ((const uint32_t *)table)[index];
}

static void store(enum rand_form form, bool wide, void *target, size_t i, uint64_t x) {
    switch (form) {
        case RAND_BITS:
            if (wide) ((uint64_t *)target)[i] = x;
            else ((uint32_t *)target)[i] = (uint32_t)x;
            return;
        case RAND_FLOAT: ((float *)target)[i] = rand_float((uint32_t)(wide ? x >> 32 : x)); return;
        case RAND_DOUBLE_PAIR: ((uint64_t *)target)[i] = x; return;
        default: ((double *)target)[i] = wide ? (double)(x >> 11) * 0x1p-53 + 0x1p-54 : ((double)x + 1) * 0x1p-32;
    }
}

bool rand_sobol(struct rand_sequence *sequence, enum rand_form form, size_t count, void *target) {
    const void *table = atomic_load(&tables[sequence->type - CURAND_RNG_QUASI_SOBOL32]);
    const bool wide = is_wide(sequence->type);
    const size_t bits = wide ? 64 : 32, points = count / sequence->dimensions;
    for (size_t dimension = 0; dimension < sequence->dimensions; dimension++) {
        uint64_t index = sequence->position, gray = index ^ index >> 1;
        uint64_t x = at(table, wide, DIMENSIONS * bits + dimension);
        for (size_t bit = 0; bit < bits; bit++)
            if (gray >> bit & 1) x ^= at(table, wide, dimension * bits + bit);
        for (size_t i = 0; i < points; i++) {
            store(form, wide, target, dimension * points + i, x);
            unsigned changed = (unsigned)__builtin_ctzll(++index | UINT64_C(1) << (bits - 1));
            x ^= at(table, wide, dimension * bits + changed);
        }
    }
    sequence->position += points;
    return true;
}
