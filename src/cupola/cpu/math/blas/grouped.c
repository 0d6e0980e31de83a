/* Groups of batches of products: several batches, each with sizes, operations and scalars of its own, as one operation
 * (cuBLAS Library, 2.7.5 and 2.8.16). */
#include <stdlib.h>

#include "product.h"

struct grouped {
    struct call call;
    int64_t count;
    struct blas *batches[];
};

static CUresult run_grouped(struct call *call) {
    const struct grouped *grouped = (const struct grouped *)call;
    for (int64_t i = 0; i < grouped->count; i++) RETURN_IF(grouped->batches[i]->run(grouped->batches[i]));
    return CUDA_SUCCESS;
}

static void end_grouped(struct call *call) {
    struct grouped *grouped = (struct grouped *)call;
    for (int64_t i = 0; i < grouped->count; i++) call_release(&grouped->batches[i]->call);
}

/* The arrays of the arguments are the host's. Sizes are `wide` (64 bits) or int. */
struct groups {
    const cublasOperation_t *op_a, *op_b;
    const void *m, *n, *k, *lda, *ldb, *ldc, *sizes;
    const void *alpha, *beta, *const *a, *const *b, *const *c;
    enum element type, scale, compute;
    int64_t count;
    bool wide;
};

static int64_t size_at(const struct groups *groups, const void *array, int64_t index) {
    return groups->wide ? ((const int64_t *)array)[index] : ((const int *)array)[index];
}

static cublasStatus_t submit_groups(cublasHandle_t handle, const char *function, const struct groups *g) {
    BLAS_RETURN_IF(blas_check(handle, function));
    BLAS_CHECK(g->count >= 0, "%s: there are %lld groups", function, (long long)g->count);
    if (!g->count) return CUBLAS_STATUS_SUCCESS;
    BLAS_CHECK(g->op_a && g->op_b && g->m && g->n && g->k && g->lda && g->ldb && g->ldc && g->sizes && g->alpha &&
                   g->beta,
               "%s: an array of the groups is a null pointer", function);
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: the scalars of groups are in host memory only", function);
    struct grouped *grouped = calloc(1, sizeof *grouped + (size_t)g->count * sizeof *grouped->batches);
    if (!grouped) return blas_status(no_memory("a call of cuBLAS"));
    grouped->call = (struct call){.references = 1, .run = run_grouped, .end = end_grouped};
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    int64_t before = 0; /* matrices of the groups before */
    for (int64_t i = 0; !status && i < g->count; i++) {
        int64_t size = size_at(g, g->sizes, i);
        struct product p = {
            .op_a = g->op_a[i],
            .op_b = g->op_b[i],
            .m = size_at(g, g->m, i),
            .n = size_at(g, g->n, i),
            .k = size_at(g, g->k, i),
            .lda = size_at(g, g->lda, i),
            .ldb = size_at(g, g->ldb, i),
            .ldc = size_at(g, g->ldc, i),
            .alpha = element_at(g->alpha, g->scale, i),
            .beta = element_at(g->beta, g->scale, i),
            .a = g->a + before,
            .b = g->b + before,
            .c = (void *)(g->c + before),
            .a_type = g->type,
            .b_type = g->type,
            .c_type = g->type,
            .compute = g->compute,
            .scale = g->scale,
            .batch = size,
            .pointers = true,
        };
        if (size < 0)
            status = blas_fail(CUBLAS_STATUS_INVALID_VALUE, "%s: group %lld has %lld products", function, (long long)i,
                               (long long)size);
        else status = product_make(handle, function, p, &grouped->batches[grouped->count]);
        if (!status && grouped->batches[grouped->count]) grouped->count++;
        before += size;
    }
    CUstream stream;
    if (!status && grouped->count) {
        status = blas_status(math_stream(handle->stream, &stream));
        if (!status) return blas_status(math_submit(stream, &grouped->call, false));
    }
    call_release(&grouped->call);
    return status;
}

#define GROUPS(is_wide, type_of_all, type_of_scalars, type_of_sums)                                                      \
    &(struct groups){.op_a = transa, .op_b = transb, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc,         \
                     .sizes = group_size, .alpha = alpha, .beta = beta, .a = (const void *const *)A,                     \
                     .b = (const void *const *)B_, .c = (const void *const *)C_, .type = type_of_all,                    \
                     .scale = type_of_scalars, .compute = type_of_sums, .count = group_count, .wide = is_wide}
#define GROUP_SHAPE(N)                                                                                                   \
    cublasHandle_t handle, const cublasOperation_t *transa, const cublasOperation_t *transb, const N *m, const N *n,     \
        const N *k
#define GROUPED(L, T, type, W, N)                                                                                        \
    static cublasStatus_t cublas##L##gemmGroupedBatched##W(                                                              \
        GROUP_SHAPE(N), const T *alpha, const T *const *A, const N *lda, const T *const *B_, const N *ldb,               \
        const T *beta, T *const *C_, const N *ldc, N group_count, const N *group_size) {                                 \
        return submit_groups(handle, "cublas" #L "gemmGroupedBatched" #W, GROUPS(sizeof(N) == 8, type, type, type));     \
    }
BLAS_REAL(GROUPED)

static cublasStatus_t groups_by_number(cublasHandle_t handle, const char *function, struct groups *groups,
                                       cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
                                       cublasComputeType_t compute) {
    BLAS_RETURN_IF(blas_check(handle, function));
    enum element type = element_of(a);
    bool alike = a == b && a == c;
    bool floats = compute == CUBLAS_COMPUTE_32F && (type == S || type == H || type == B);
    bool only_floats = (compute == CUBLAS_COMPUTE_32F_PEDANTIC || compute == CUBLAS_COMPUTE_32F_FAST_TF32) && type == S;
    if (!alike || !(floats || only_floats || (compute == CUBLAS_COMPUTE_64F && type == D)))
        return blas_fail(
            CUBLAS_STATUS_NOT_SUPPORTED,
            "%s: there are no groups of products of the types %d and %d with results of type %d in compute "
            "type %d",
            function, (int)a, (int)b, (int)c, (int)compute);
    groups->type = type;
    groups->scale = groups->compute = type == D ? D : S;
    return submit_groups(handle, function, groups);
}

#define GROUPED_BY_NUMBER(W, N)                                                                                          \
    static cublasStatus_t cublasGemmGroupedBatchedEx##W(                                                                 \
        GROUP_SHAPE(N), const void *alpha, const void *const *A, cudaDataType_t Atype, const N *lda,                     \
        const void *const *B_, cudaDataType_t Btype, const N *ldb, const void *beta, void *const *C_,                    \
        cudaDataType_t Ctype, const N *ldc, N group_count, const N *group_size, cublasComputeType_t computeType) {       \
        return groups_by_number(handle, "cublasGemmGroupedBatchedEx" #W, GROUPS(sizeof(N) == 8, S, S, S), Atype, Btype,  \
                                Ctype, computeType);                                                                     \
    }
GROUPED_BY_NUMBER(, int)
GROUPED_BY_NUMBER(_64, int64_t)

const struct entry blas_grouped_entries[] = {
    BLAS_ENTRY(cublasSgemmGroupedBatched),
    BLAS_ENTRY(cublasSgemmGroupedBatched_64),
    BLAS_ENTRY(cublasDgemmGroupedBatched),
    BLAS_ENTRY(cublasDgemmGroupedBatched_64),
    BLAS_ENTRY(cublasGemmGroupedBatchedEx),
    BLAS_ENTRY(cublasGemmGroupedBatchedEx_64),
    {NULL, NULL, NULL},
};
