/* Memory, pinned buffers and references that live for one call. */
#include "memory/memory.h"

struct ScratchBlock {
    ScratchBlock *next;
    bool is_buffer;
    Py_buffer buffer;
    PyObject *kept;
    _Alignas(16) char memory[];
};

static ScratchBlock *add_block(Scratch *scratch, size_t size) {
    ScratchBlock *block = PyMem_Calloc(1, sizeof *block + size);
    if (!block) {
        PyErr_NoMemory();
        return NULL;
    }
    block->next = scratch->blocks;
    scratch->blocks = block;
    return block;
}

void *scratch_more(Scratch *scratch, size_t size) {
    if (size > PY_SSIZE_T_MAX / 2) {
        PyErr_NoMemory();
        return NULL;
    }
    ScratchBlock *block = add_block(scratch, size);
    return block ? block->memory : NULL;
}

void *scratch_alloc(Scratch *scratch, size_t size) {
    void *memory = scratch_take(scratch, size);
    return memory ? memset(memory, 0, size) : NULL;
}

void *scratch_array(Scratch *scratch, size_t size, size_t count) {
    if (count > PY_SSIZE_T_MAX / 2 / size) {
        PyErr_NoMemory();
        return NULL;
    }
    return scratch_alloc(scratch, size * count + 64); /* a margin, should a library write a whole word at the end */
}

int scratch_buffer(Scratch *scratch, PyObject *object, int flags, Py_buffer **buffer) {
    ScratchBlock *block = add_block(scratch, 0);
    if (!block || PyObject_GetBuffer(object, &block->buffer, flags) < 0) return -1;
    block->is_buffer = true;
    *buffer = &block->buffer;
    return 0;
}

int scratch_keep(Scratch *scratch, PyObject *object) {
    if (!object) return 0;
    ScratchBlock *block = add_block(scratch, 0);
    if (!block) {
        Py_DECREF(object);
        return -1;
    }
    block->kept = object;
    return 0;
}

PyObject *scratch_items(Scratch *scratch, PyObject *sequence) {
    if (PyTuple_Check(sequence)) return sequence;
    PyObject *items = PyList_AsTuple(sequence);
    return items && scratch_keep(scratch, items) == 0 ? items : NULL;
}

void scratch_release(Scratch *scratch) {
    while (scratch->blocks) {
        ScratchBlock *block = scratch->blocks;
        scratch->blocks = block->next;
        if (block->is_buffer) PyBuffer_Release(&block->buffer);
        Py_XDECREF(block->kept);
        PyMem_Free(block);
    }
}
