/* Which products there are: types of operands, sums, scalars and results (cuBLAS Library, tables of cublasLtMatmul). */
#include "lt.h"

/* Compute types without their manner; those that may round their operands have fewer combinations. */
enum kind { HALVES = 1, FLOATS, FAST, DOUBLES, WHOLE };

static enum kind kind_of(int compute) {
    switch (compute) {
        case CUBLAS_COMPUTE_16F:
        case CUBLAS_COMPUTE_16F_PEDANTIC: return HALVES;
        case CUBLAS_COMPUTE_32F:
        case CUBLAS_COMPUTE_32F_PEDANTIC: return FLOATS;
        case CUBLAS_COMPUTE_32F_FAST_16F:
        case CUBLAS_COMPUTE_32F_FAST_16BF:
        case CUBLAS_COMPUTE_32F_FAST_TF32:
        case CUBLAS_COMPUTE_32F_EMULATED_16BFX9: return FAST;
        case CUBLAS_COMPUTE_64F:
        case CUBLAS_COMPUTE_64F_PEDANTIC:
        case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT: return DOUBLES;
        case CUBLAS_COMPUTE_32I:
        case CUBLAS_COMPUTE_32I_PEDANTIC: return WHOLE;
        default: return 0;
    }
}

/* Whole numbers are added up as doubles, which hold their sums exactly. */
static const struct combination {
    uint8_t kind, scale, operands, result, sums;
} combinations[] = {
    {HALVES, H, H, H, S},  {FLOATS, S, H, H, S},  {FLOATS, S, B, B, S},     {FLOATS, S, H, S, S},  {FLOATS, S, B, S, S},
    {FLOATS, S, S, S, S},  {FLOATS, S, I8, S, D}, {FLOATS, C, C, C, C},     {FAST, S, S, S, S},    {FAST, C, C, C, C},
    {DOUBLES, D, D, D, D}, {DOUBLES, Z, Z, Z, Z}, {WHOLE, I32, I8, I32, D}, {WHOLE, S, I8, I8, D},
};

cublasStatus_t lt_types(const char *function, int compute, int scale, int a, int b, int c, int d,
                        struct lt_call *call) {
    enum element operands = element_of((cudaDataType)a), result = element_of((cudaDataType)d);
    for (size_t i = 0; a == b && c == d && i < sizeof combinations / sizeof *combinations; i++) {
        const struct combination *row = &combinations[i];
        if (row->kind != kind_of(compute) || row->scale != element_of((cudaDataType)scale)) continue;
        if (row->operands != operands || row->result != result) continue;
        call->sums = row->sums;
        call->scale = row->scale;
        return CUBLAS_STATUS_SUCCESS;
    }
    return blas_fail(
        CUBLAS_STATUS_NOT_SUPPORTED,
        "%s: there is no product of the types %d and %d, with C of type %d and D of type %d, in compute type %d "
        "with scalars of type %d",
        function, a, b, c, d, compute, scale);
}
