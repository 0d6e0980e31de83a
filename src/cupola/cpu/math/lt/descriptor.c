/* Descriptors of cuBLASLt: making them, their attributes (cuBLAS Library, 3.3 and 3.4). */
#include <stdlib.h>
#include <string.h>

#include "lt.h"

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static const struct lt_attribute *attribute(const struct lt_attribute *attributes, size_t count, int number) {
    for (size_t i = 0; i < count; i++)
        if (attributes[i].number == number) return &attributes[i];
    return NULL;
}

cublasStatus_t lt_set(const char *function, const struct lt_attribute *attributes, size_t count, void *record,
                      int number, const void *value, size_t size) {
    const struct lt_attribute *found = attribute(attributes, count, number);
    BLAS_CHECK(found, "%s: there is no attribute %d", function, number);
    if (!value) return blas_null(function, "buf");
    BLAS_CHECK(size == found->size, "%s: attribute %d has %u bytes, not %zu", function, number, found->size, size);
    memcpy((char *)record + found->offset, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_get(const char *function, const struct lt_attribute *attributes, size_t count, const void *record,
                      int number, void *value, size_t size, size_t *written) {
    const struct lt_attribute *found = attribute(attributes, count, number);
    if (!found) { /* programs ask for what other versions have, so this is no news for the logger */
        (fail)((CUresult)CUBLAS_STATUS_INVALID_VALUE, "%s: there is no attribute %d", function, number);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!size && !written) return blas_null(function, "sizeWritten");
    if (size) {
        if (!value) return blas_null(function, "buf");
        BLAS_CHECK(size == found->size, "%s: attribute %d has %u bytes, not %zu", function, number, found->size, size);
        memcpy(value, (const char *)record + found->offset, size);
    }
    if (written) *written = found->size;
    return CUBLAS_STATUS_SUCCESS;
}

#define A(number, field) LT_ATTRIBUTE(number, lt_operation, field)
static const struct lt_attribute operation_attributes[] = {
    A(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute),
    A(CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale),
    A(CUBLASLT_MATMUL_DESC_POINTER_MODE, pointer_mode),
    A(CUBLASLT_MATMUL_DESC_TRANSA, op_a),
    A(CUBLASLT_MATMUL_DESC_TRANSB, op_b),
    A(CUBLASLT_MATMUL_DESC_TRANSC, op_c),
    A(CUBLASLT_MATMUL_DESC_FILL_MODE, fill),
    A(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue),
    A(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias),
    A(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, bias_stride),
    A(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux),
    A(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld),
    A(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, aux_stride),
    A(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, alpha_vector_stride),
    A(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors),
    A(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, a_scale),
    A(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, b_scale),
    A(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, c_scale),
    A(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, d_scale),
    A(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, amax),
    A(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, aux_type),
    A(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, aux_scale),
    A(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, aux_amax),
    A(CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast),
    A(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type),
    A(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, a_mode),
    A(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, b_mode),
    A(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, c_mode),
    A(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, d_mode),
    A(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, aux_mode),
    A(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, d_out_scale),
    A(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, d_out_mode),
    A(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, emulation),
    A(CUBLASLT_MATMUL_DESC_ALPHA_BATCH_STRIDE, alpha_stride),
    A(CUBLASLT_MATMUL_DESC_BETA_BATCH_STRIDE, beta_stride),
    A(CUBLASLT_MATMUL_DESC_BATCH_INVARIANCE_FLAGS, invariance),
};
#undef A
#define A(number, field) LT_ATTRIBUTE(number, lt_layout, field)
static const struct lt_attribute layout_attributes[] = {
    A(CUBLASLT_MATRIX_LAYOUT_TYPE, type),
    A(CUBLASLT_MATRIX_LAYOUT_ORDER, order),
    A(CUBLASLT_MATRIX_LAYOUT_ROWS, rows),
    A(CUBLASLT_MATRIX_LAYOUT_COLS, columns),
    A(CUBLASLT_MATRIX_LAYOUT_LD, ld),
    A(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch),
    A(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride),
    A(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, plane),
    A(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, batch_mode),
};
#undef A
#define A(number, field) LT_ATTRIBUTE(number, lt_transform, field)
static const struct lt_attribute transform_attributes[] = {
    A(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, scale),
    A(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, pointer_mode),
    A(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, op_a),
    A(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, op_b),
};
#undef A
#define A(number, field) LT_ATTRIBUTE(number, lt_preference, field)
static const struct lt_attribute preference_attributes[] = {
    A(CUBLASLT_MATMUL_PREF_SEARCH_MODE, search),
    A(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace),
    A(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions),
    A(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment[0]),
    A(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment[1]),
    A(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment[2]),
    A(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment[3]),
    A(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, waves),
    A(CUBLASLT_MATMUL_PREF_IMPL_MASK, implementations),
};
#undef A

/* ---- making them ------------------------------------------------------------------------------------------------- */

static cublasStatus_t fill_operation(struct lt_operation *record, cublasComputeType_t compute, cudaDataType_t scale) {
    *record = (struct lt_operation){.kind = LT_OPERATION,
                                    .compute = (int32_t)compute,
                                    .scale = (int32_t)scale,
                                    .fill = CUBLAS_FILL_MODE_FULL,
                                    .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                                    .aux_type = -1,
                                    .bias_type = -1,
                                    .invariance = CUBLASLT_BATCH_INVARIANCE_UNSET};
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t fill_layout(struct lt_layout *record, cudaDataType type, uint64_t rows, uint64_t columns,
                                  int64_t ld) {
    *record = (struct lt_layout){
        .kind = LT_LAYOUT, .type = (uint32_t)type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t fill_transform(struct lt_transform *record, cudaDataType scale) {
    *record = (struct lt_transform){.kind = LT_TRANSFORM, .scale = (int32_t)scale};
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t fill_preference(struct lt_preference *record) {
    *record = (struct lt_preference){.kind = LT_PREFERENCE,
                                     .implementations = UINT64_MAX,
                                     .reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
                                     .alignment = {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

/* The functions of a kind of descriptor: X(Kind, its record, its parameters, and the arguments for `fill`). */
#define PASS(...) __VA_ARGS__
#define DESCRIPTOR(Kind, kind_type, record_type, value, parameters, arguments)                                         \
    _Static_assert(sizeof(struct record_type) <= sizeof(cublasLt##Kind##Opaque_t), "room in the program's record");    \
    static cublasStatus_t cublasLt##Kind##Init_internal(cublasLt##Kind##_t record, size_t size PASS parameters) {      \
        if (size < sizeof(struct record_type))                                                                         \
            return blas_fail(CUBLAS_STATUS_ALLOC_FAILED, "cublasLt" #Kind "Init: %zu bytes are too few", size);        \
        if (!record) return blas_null("cublasLt" #Kind "Init", "the descriptor");                                      \
        return fill_##kind_type((struct record_type *)record PASS arguments);                                          \
    }                                                                                                                  \
    static cublasStatus_t cublasLt##Kind##Create(cublasLt##Kind##_t *record PASS parameters) {                         \
        if (!record) return blas_null("cublasLt" #Kind "Create", "the place for the descriptor");                      \
        struct record_type *made = calloc(1, sizeof(cublasLt##Kind##Opaque_t));                                        \
        if (!made) return blas_fail(CUBLAS_STATUS_ALLOC_FAILED, "cublasLt" #Kind "Create: the host has no memory");    \
        cublasStatus_t status = fill_##kind_type(made PASS arguments);                                                 \
        if (status) free(made);                                                                                        \
        else *record = (cublasLt##Kind##_t)made;                                                                       \
        return status;                                                                                                 \
    }                                                                                                                  \
    static cublasStatus_t cublasLt##Kind##Destroy(cublasLt##Kind##_t record) {                                         \
        if (!record) return CUBLAS_STATUS_SUCCESS;                                                                     \
        BLAS_CHECK(lt_is(record, value), "cublasLt" #Kind "Destroy: %p is no such descriptor, or was destroyed",       \
                   (void *)record);                                                                                    \
        ((struct record_type *)record)->kind = 0;                                                                      \
        free(record);                                                                                                  \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
#define ATTRIBUTES(Kind, kind_type, Enum, value)                                                                       \
    static cublasStatus_t cublasLt##Kind##SetAttribute(cublasLt##Kind##_t record, Enum number, const void *buffer,     \
                                                       size_t size) {                                                  \
        BLAS_CHECK(lt_is(record, value), "cublasLt" #Kind "SetAttribute: %p is no such descriptor", (void *)record);   \
        return lt_set("cublasLt" #Kind "SetAttribute", kind_type##_attributes,                                         \
                      sizeof kind_type##_attributes / sizeof *kind_type##_attributes, record, (int)number, buffer,     \
                      size);                                                                                           \
    }                                                                                                                  \
    static cublasStatus_t cublasLt##Kind##GetAttribute(cublasLt##Kind##_t record, Enum number, void *buffer,           \
                                                       size_t size, size_t *written) {                                 \
        BLAS_CHECK(lt_is(record, value), "cublasLt" #Kind "GetAttribute: %p is no such descriptor", (void *)record);   \
        return lt_get("cublasLt" #Kind "GetAttribute", kind_type##_attributes,                                         \
                      sizeof kind_type##_attributes / sizeof *kind_type##_attributes, record, (int)number, buffer,     \
                      size, written);                                                                                  \
    }

DESCRIPTOR(MatmulDesc, operation, lt_operation, LT_OPERATION, (, cublasComputeType_t compute, cudaDataType_t scale),
           (, compute, scale))
DESCRIPTOR(MatrixLayout, layout, lt_layout, LT_LAYOUT,
           (, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld), (, type, rows, columns, ld))
DESCRIPTOR(MatrixTransformDesc, transform, lt_transform, LT_TRANSFORM, (, cudaDataType scale), (, scale))
DESCRIPTOR(MatmulPreference, preference, lt_preference, LT_PREFERENCE, (), ())
ATTRIBUTES(MatmulDesc, operation, cublasLtMatmulDescAttributes_t, LT_OPERATION)
ATTRIBUTES(MatrixLayout, layout, cublasLtMatrixLayoutAttribute_t, LT_LAYOUT)
ATTRIBUTES(MatrixTransformDesc, transform, cublasLtMatrixTransformDescAttributes_t, LT_TRANSFORM)
ATTRIBUTES(MatmulPreference, preference, cublasLtMatmulPreferenceAttributes_t, LT_PREFERENCE)

#define ENTRIES(Kind)                                                                                                  \
    LT_ENTRY(cublasLt##Kind##Init_internal), LT_ENTRY(cublasLt##Kind##Create), LT_ENTRY(cublasLt##Kind##Destroy),      \
        LT_ENTRY(cublasLt##Kind##SetAttribute), LT_ENTRY(cublasLt##Kind##GetAttribute),

const struct entry lt_descriptor_entries[] = {
    ENTRIES(MatmulDesc) ENTRIES(MatrixLayout) ENTRIES(MatrixTransformDesc) ENTRIES(MatmulPreference){NULL, NULL, NULL},
};
