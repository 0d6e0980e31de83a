/* Algorithms of cuBLASLt: there is one, whatever programs configure (cuBLAS Library, 3.4.2 to 3.4.6 and 3.4.10). */
#include <string.h>

#include "lt.h"

/* What is in the memory of a cublasLtMatmulAlgo_t. */
struct algorithm {
    uint64_t kind;
    int32_t number;
    uint32_t tile;
    int32_t splits;
    uint32_t reduction, swizzling, custom, stages;
    uint16_t inner_shape, cluster_shape;
};
enum { ALGORITHM = 0x6c744147 };
_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "room in the program's record");

/* The tile, stages and number are those that it says it has. */
static const struct algorithm the_algorithm = {.kind = ALGORITHM, .splits = 1};

#define A(number, field) LT_ATTRIBUTE(number, algorithm, field)
static const struct lt_attribute config_attributes[] = {
    A(CUBLASLT_ALGO_CONFIG_ID, number),
    A(CUBLASLT_ALGO_CONFIG_TILE_ID, tile),
    A(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, splits),
    A(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, reduction),
    A(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzling),
    A(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, custom),
    A(CUBLASLT_ALGO_CONFIG_STAGES_ID, stages),
    A(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, inner_shape),
    A(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, cluster_shape),
};
#undef A
#define CONFIG config_attributes, sizeof config_attributes / sizeof *config_attributes

static bool is_algorithm(const cublasLtMatmulAlgo_t *algorithm) {
    return algorithm && ((const struct algorithm *)algorithm)->kind == ALGORITHM;
}

/* Capabilities: the same for all types. */
static const struct capabilities {
    int32_t split_k, strided_batch, out_of_place, fill, custom_option, custom_order, negative_ld, pointers, emulation,
        grouped;
    uint32_t reductions, swizzling, tile, pointer_modes, epilogues, stages, alignment;
    uint64_t numerical;
} capabilities = {
    .strided_batch = 1,
    .out_of_place = 1,
    .reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
    .pointer_modes = 31,
    .epilogues = LT_RELU | LT_BIAS | LT_DRELU | LT_BGRAD | LT_GELU | LT_DGELU | LT_AUX | LT_BGRADA | LT_BGRADB | 1,
    .alignment = 1,
    .numerical = CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F |
                 CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F,
};
#define C(number, field) LT_ATTRIBUTE(number, capabilities, field)
static const struct lt_attribute capability_attributes[] = {
    C(CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, split_k),
    C(CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, reductions),
    C(CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, swizzling),
    C(CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT, strided_batch),
    C(CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, out_of_place),
    C(CUBLASLT_ALGO_CAP_UPLO_SUPPORT, fill),
    C(CUBLASLT_ALGO_CAP_TILE_IDS, tile),
    C(CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, custom_option),
    C(CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER, custom_order),
    C(CUBLASLT_ALGO_CAP_POINTER_MODE_MASK, pointer_modes),
    C(CUBLASLT_ALGO_CAP_EPILOGUE_MASK, epilogues),
    C(CUBLASLT_ALGO_CAP_STAGES_IDS, stages),
    C(CUBLASLT_ALGO_CAP_LD_NEGATIVE, negative_ld),
    C(CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, numerical),
    C(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, alignment),
    C(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, alignment),
    C(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, alignment),
    C(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, alignment),
    C(CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT, pointers),
    C(CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT, emulation),
    C(CUBLASLT_ALGO_CAP_POINTER_ARRAY_GROUPED_SUPPORT, grouped),
};
#undef C

static cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                        cublasLtMatmulAlgoCapAttributes_t attribute, void *buffer,
                                                        size_t size, size_t *written) {
    const char *function = "cublasLtMatmulAlgoCapGetAttribute";
    BLAS_CHECK(is_algorithm(algorithm), "%s: this is no algorithm", function);
    if ((attribute == CUBLASLT_ALGO_CAP_TILE_IDS || attribute == CUBLASLT_ALGO_CAP_STAGES_IDS) &&
        size > sizeof(uint32_t)) /* a list, of which there may be room for more */
        size = sizeof(uint32_t);
    return lt_get(function, capability_attributes, sizeof capability_attributes / sizeof *capability_attributes,
                  &capabilities, (int)attribute, buffer, size, written);
}

static cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algorithm,
                                                           cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                           const void *buffer, size_t size) {
    const char *function = "cublasLtMatmulAlgoConfigSetAttribute";
    BLAS_CHECK(is_algorithm(algorithm), "%s: this is no algorithm", function);
    BLAS_CHECK(attribute != CUBLASLT_ALGO_CONFIG_ID, "%s: the number of an algorithm cannot be changed", function);
    return lt_set(function, CONFIG, algorithm, (int)attribute, buffer, size);
}

static cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                           cublasLtMatmulAlgoConfigAttributes_t attribute, void *buffer,
                                                           size_t size, size_t *written) {
    const char *function = "cublasLtMatmulAlgoConfigGetAttribute";
    BLAS_CHECK(is_algorithm(algorithm), "%s: this is no algorithm", function);
    return lt_get(function, CONFIG, algorithm, (int)attribute, buffer, size, written);
}

/* ---- finding it -------------------------------------------------------------------------------------------------- */

static cublasStatus_t check_types(const char *function, cublasLtHandle_t handle, int compute, int scale, int a, int b,
                                  int c, int d) {
    struct lt_call call;
    BLAS_RETURN_IF(blas_check((cublasHandle_t)handle, function));
    return lt_types(function, compute, scale, a, b, c, d, &call);
}

static cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute,
                                               cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
                                               cudaDataType_t c, cudaDataType_t d, int room, int *numbers, int *count) {
    const char *function = "cublasLtMatmulAlgoGetIds";
    BLAS_RETURN_IF(check_types(function, handle, (int)compute, (int)scale, (int)a, (int)b, (int)c, (int)d));
    BLAS_CHECK(room > 0, "%s: there is room for %d algorithms", function, room);
    if (!numbers || !count) return blas_null(function, numbers ? "returnAlgoCount" : "algoIdsArray");
    numbers[0] = the_algorithm.number;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                             cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d,
                                             int number_of, cublasLtMatmulAlgo_t *algorithm) {
    const char *function = "cublasLtMatmulAlgoInit";
    BLAS_RETURN_IF(check_types(function, handle, (int)compute, (int)scale, (int)a, (int)b, (int)c, (int)d));
    if (!algorithm) return blas_null(function, "algo");
    BLAS_CHECK(number_of >= 0, "%s: there is no algorithm %d", function, number_of);
    memset(algorithm, 0, sizeof *algorithm);
    memcpy(algorithm, &the_algorithm, sizeof the_algorithm);
    ((struct algorithm *)algorithm)->number = number_of;
    return CUBLAS_STATUS_SUCCESS;
}

static void describe_algorithm(cublasLtMatmulHeuristicResult_t *result) {
    result->workspaceSize = 0;
    result->state = CUBLAS_STATUS_SUCCESS;
    result->wavesCount = 1;
}

#define LAYOUTS \
    (struct lt_operation *)operation, (struct lt_layout *)a, (struct lt_layout *)b, (struct lt_layout *)c, (struct lt_layout *)d
#define PARAMETERS                                                                                                     \
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,       \
        cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d

static cublasStatus_t find(const char *function, PARAMETERS, cublasLtMatmulPreference_t preference, int room,
                           cublasLtMatmulHeuristicResult_t *results, int *count) {
    struct lt_call call = {0};
    BLAS_RETURN_IF(blas_check((cublasHandle_t)handle, function));
    BLAS_CHECK(room > 0, "%s: there is room for %d algorithms", function, room);
    if (!results || !count) return blas_null(function, results ? "returnAlgoCount" : "heuristicResultsArray");
    BLAS_CHECK(lt_is(preference, LT_PREFERENCE), "%s: the preference is no descriptor of one", function);
    cublasStatus_t status = lt_describe(function, LAYOUTS, &call);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED && call.is_known) *count = 0;
    BLAS_RETURN_IF(status);
    memset(&results[0], 0, sizeof results[0]);
    memcpy(&results[0].algo, &the_algorithm, sizeof the_algorithm);
    describe_algorithm(&results[0]);
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check(const char *function, PARAMETERS, const cublasLtMatmulAlgo_t *algorithm,
                            cublasLtMatmulHeuristicResult_t *result) {
    struct lt_call call = {0};
    BLAS_RETURN_IF(blas_check((cublasHandle_t)handle, function));
    BLAS_CHECK(is_algorithm(algorithm), "%s: this is no algorithm", function);
    if (!result) return blas_null(function, "result");
    BLAS_RETURN_IF(lt_describe(function, LAYOUTS, &call));
    describe_algorithm(result);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasLtMatmulAlgoGetHeuristic(PARAMETERS, cublasLtMatmulPreference_t preference, int room,
                                                     cublasLtMatmulHeuristicResult_t *results, int *count) {
    return find("cublasLtMatmulAlgoGetHeuristic", handle, operation, a, b, c, d, preference, room, results, count);
}

static cublasStatus_t cublasLtMatmulAlgoGetHeuristicForStream(PARAMETERS, cublasLtMatmulPreference_t preference,
                                                              int room, cublasLtMatmulHeuristicResult_t *results,
                                                              int *count, cudaStream_t stream) {
    (void)stream;
    return find("cublasLtMatmulAlgoGetHeuristicForStream", handle, operation, a, b, c, d, preference, room, results,
                count);
}

static cublasStatus_t cublasLtMatmulAlgoCheck(PARAMETERS, const cublasLtMatmulAlgo_t *algorithm,
                                              cublasLtMatmulHeuristicResult_t *result) {
    return check("cublasLtMatmulAlgoCheck", handle, operation, a, b, c, d, algorithm, result);
}

static cublasStatus_t cublasLtMatmulAlgoCheckForStream(PARAMETERS, const cublasLtMatmulAlgo_t *algorithm,
                                                       cublasLtMatmulHeuristicResult_t *result, cudaStream_t stream) {
    (void)stream;
    return check("cublasLtMatmulAlgoCheckForStream", handle, operation, a, b, c, d, algorithm, result);
}

const struct entry lt_algorithm_entries[] = {
    LT_ENTRY(cublasLtMatmulAlgoCapGetAttribute),
    LT_ENTRY(cublasLtMatmulAlgoConfigSetAttribute),
    LT_ENTRY(cublasLtMatmulAlgoConfigGetAttribute),
    LT_ENTRY(cublasLtMatmulAlgoGetIds),
    LT_ENTRY(cublasLtMatmulAlgoInit),
    LT_ENTRY(cublasLtMatmulAlgoGetHeuristic),
    LT_ENTRY(cublasLtMatmulAlgoGetHeuristicForStream),
    LT_ENTRY(cublasLtMatmulAlgoCheck),
    LT_ENTRY(cublasLtMatmulAlgoCheckForStream),
    {NULL, NULL, NULL},
};
