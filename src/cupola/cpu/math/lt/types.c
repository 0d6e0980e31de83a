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
    {HALVES, H, H, H, S},  {FLOATS, S, H, H, S},  {FLOATS, S, B, B, S},     {FLOATS, S, H, S, S},
    {FLOATS, S, B, S, S},  {FLOATS, S, S, S, S},  {FLOATS, S, I8, S, D},    {FLOATS, C, C, C, C},
    {FAST, S, S, S, S},    {FAST, S, H, H, S},    {FAST, S, B, B, S},       {FAST, C, C, C, C},
    {DOUBLES, D, D, D, D}, {DOUBLES, Z, Z, Z, Z}, {WHOLE, I32, I8, I32, D}, {WHOLE, S, I8, I8, D},
};

/* Whether scalars of that type can be with the compute type at all. */
static bool is_scale(enum kind kind, enum element scale) {
    switch (kind) {
        case HALVES: return scale == H;
        case FLOATS:
        case FAST: return scale == S || scale == C;
        case DOUBLES: return scale == D || scale == Z;
        case WHOLE: return scale == S || scale == I32;
        default: return false;
    }
}

enum element lt_element_of(int type) {
    switch (type) {
        case CUDA_R_8F_E4M3: return E4M3;
        case CUDA_R_8F_E5M2: return E5M2;
        default: return element_of((cudaDataType)type);
    }
}

/* Products of numbers of eight bits: types of C and D, and whether one of the operands has to be E5M2. */
static bool has_fp8(enum element a, enum element b, enum element c, enum element d) {
    static const struct {
        uint8_t c, d;
        bool mixed;
    } rows[] = {{B, B, false},    {H, H, false},   {S, S, false},  {B, E4M3, false},
                {H, E4M3, false}, {B, E5M2, true}, {H, E5M2, true}};
    if (!is_fp8(a) || !is_fp8(b) || (a == E5M2 && b == E5M2)) return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].c == c && rows[i].d == d) return !rows[i].mixed || a != b;
    return false;
}

cublasStatus_t lt_types(const char *function, int compute, int scale, int a, int b, int c, int d,
                        struct lt_call *call) {
    enum element operands = lt_element_of(a), result = lt_element_of(d);
    enum element scalars = element_of((cudaDataType)scale);
    enum kind kind = kind_of(compute);
    call->is_fp8 = false;
    bool of_floats = compute == CUBLAS_COMPUTE_32F || kind == FAST;
    if (of_floats && scalars == S && has_fp8(operands, lt_element_of(b), lt_element_of(c), result)) {
        call->sums = call->scale = S;
        call->is_fp8 = true;
        return CUBLAS_STATUS_SUCCESS;
    }
    for (size_t i = 0; a == b && c == d && i < sizeof combinations / sizeof *combinations; i++) {
        const struct combination *row = &combinations[i];
        if (row->kind != kind || row->scale != scalars || row->operands != operands || row->result != result) continue;
        call->sums = row->sums;
        call->scale = row->scale;
        return CUBLAS_STATUS_SUCCESS;
    }
    /* Types that contradict each other are invalid; those that nobody has made a kernel for are not supported. */
    bool is_8_bits = operands >= E4M3 || result >= E4M3;
    bool agree = is_scale(kind, scalars) && (a == b || is_8_bits) &&
                 (is_8_bits ||
                  (c == d && is_complex(scalars) == is_complex(result) && is_complex(operands) == is_complex(result)));
    if (is_fp8(operands) || is_fp8(lt_element_of(b))) agree = scalars == S;
    if (a == CUDA_R_4F_E2M1 && b == a) agree = false; /* these need scales of blocks, which the devices do not have */
    if (kind == WHOLE && operands == I8) agree = agree && result == (scalars == S ? I8 : I32);
    return blas_fail(
        agree || !kind ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_INVALID_VALUE,
        "%s: there is no product of the types %d and %d, with C of type %d and D of type %d, in compute type "
        "%d with scalars of type %d",
        function, a, b, c, d, compute, scale);
}
