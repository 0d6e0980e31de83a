/* Arguments that are several values, or one whose type depends on another argument. */
#ifndef CUPOLA_SUPPORT_ARGUMENTS_H
#define CUPOLA_SUPPORT_ARGUMENTS_H

#include "records/records.h"

/* ---- lists and tuples (sequences.c) ---- */

Py_ssize_t sequence_length(PyObject *object, long long count); /* of a list, tuple or None; -1 when too short */
/* An array of at least `count` values; any length when count < 0. */
int to_list(PyObject *object, ValueType type, long long count, Scratch *scratch, void **out);
int to_strings(PyObject *object, long long count, Scratch *scratch, const char *const **out);
int to_handles(PyObject *object, Scratch *scratch, void **out);
PyObject *list_from(ValueType type, const void *data, size_t count);
int to_strs(PyObject *object, long long count, Scratch *scratch, const char *const **out);

/* ---- attributes and options (attributes.c) ---- */

int attribute_to(const AttributeTable *table, long long attribute, PyObject *object, Scratch *scratch, void **out,
                 size_t *size);
void *attribute_room(const AttributeTable *table, long long attribute, Scratch *scratch, size_t *size);
PyObject *attribute_from(const AttributeTable *table, long long attribute, void *data, size_t size);
void **attribute_rooms(const AttributeTable *table, const int *attributes, long long count, size_t *sizes,
                       Scratch *scratch);
PyObject *attributes_from(const AttributeTable *table, const int *attributes, void **data, long long count,
                          const size_t *sizes);
int to_options(PyObject *object, const OptionType *types, size_t type_count, const int *keys, long long count,
               Scratch *scratch, void ***out);

#endif
