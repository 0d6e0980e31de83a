/* One value in C memory to Python and back, for fields of records, elements of lists and attributes. */
#include "records/records.h"

PyObject *value_get(ValueType type, void *data, Storage *storage) {
    switch ((Kind)type.kind) {
        case KIND_I8: return PyLong_FromLong(*(int8_t *)data);
        case KIND_U8: return PyLong_FromLong(*(uint8_t *)data);
        case KIND_I16: return PyLong_FromLong(*(int16_t *)data);
        case KIND_U16: return PyLong_FromLong(*(uint16_t *)data);
        case KIND_I32: return PyLong_FromLong(*(int32_t *)data);
        case KIND_U32: return PyLong_FromUnsignedLong(*(uint32_t *)data);
        case KIND_I64: return PyLong_FromLong(*(int64_t *)data);
        case KIND_U64: return PyLong_FromUnsignedLong(*(uint64_t *)data);
        case KIND_F32: return PyFloat_FromDouble(*(float *)data);
        case KIND_F64: return PyFloat_FromDouble(*(double *)data);
        case KIND_BOOL: return PyBool_FromLong(*(int *)data != 0);
        case KIND_ENUM: return enum_value(type.index, *(int *)data);
        case KIND_HANDLE: {
            HandleObject holder = {.data = data, .info = &module_info.handles[type.index]};
            return handle_new(type.index, handle_load(&holder));
        }
        case KIND_RECORD: return record_view(type.index, data, storage);
        case KIND_ADDRESS:
        case KIND_KERNEL: return PyLong_FromVoidPtr(*(void **)data);
        case KIND_TEXT: return PyBytes_FromString(data);
    }
    Py_UNREACHABLE();
}

static int set_enum(void *data, PyObject *object) { return to_enum(object, data); }

static int set_handle(ValueType type, void *data, PyObject *object) {
    uint64_t value;
    if (to_handle(object, type.index, &value) < 0) return -1;
    if (type.size == 4) *(uint32_t *)data = (uint32_t)value;
    else *(uint64_t *)data = value;
    return 0;
}

/* An address of memory that Python owns keeps its owner: a memoryview, which also pins the memory. */
static int set_address(void *data, PyObject *object, PyObject **keep) {
    Scratch scratch;
    scratch_init(&scratch);
    int status = to_address(object, &scratch, data);
    if (status == 0 && scratch.blocks) {
        *keep = PyMemoryView_FromObject(object);
        status = *keep ? 0 : -1;
    } else if (status == 0 && is_record(object)) {
        *keep = Py_NewRef((PyObject *)((RecordObject *)object)->storage);
    }
    scratch_free(&scratch);
    return status;
}

static int set_record(ValueType type, void *data, PyObject *object, PyObject **keep) {
    void *source;
    if (to_record(object, type.index, false, &source) < 0) return -1;
    memmove(data, source, type.size);
    *keep = Py_NewRef((PyObject *)((RecordObject *)object)->storage);
    return 0;
}

int value_set(ValueType type, void *data, PyObject *object, PyObject **keep) {
    *keep = NULL;
    switch ((Kind)type.kind) {
        case KIND_I8: return to_i8(object, data);
        case KIND_U8: return to_u8(object, data);
        case KIND_I16: return to_i16(object, data);
        case KIND_U16: return to_u16(object, data);
        case KIND_BOOL:
        case KIND_I32: return to_i32(object, data);
        case KIND_U32: return to_u32(object, data);
        case KIND_I64: return to_i64(object, data);
        case KIND_U64: return to_u64(object, data);
        case KIND_F32: return to_f32(object, data);
        case KIND_F64: return to_f64(object, data);
        case KIND_ENUM: return set_enum(data, object);
        case KIND_HANDLE: return set_handle(type, data, object);
        case KIND_RECORD: return set_record(type, data, object, keep);
        case KIND_ADDRESS: return set_address(data, object, keep);
        case KIND_KERNEL: return to_kernel_storage(object, keep, data);
        case KIND_TEXT: break;
    }
    PyErr_SetString(PyExc_TypeError, "text cannot be stored in place");
    return -1;
}
