/* From the names of the math libraries' functions to the functions. */
#include "lookup.h"

#include <stdio.h>
#include <string.h>

#include "math/base/math.h"

/* The tables at the ends of the files (tests/cpu/driver/test_entries.py compares). */
#define TABLES(X) X(blas_handle) X(blas_vector) X(blas_matvec) X(blas_product) X(blas_matrix) X(blas_factor) X(blas_extended) X(blas_grouped) X(blas_transfer) X(lt_handle) X(lt_descriptor) X(lt_algorithm) X(lt_matmul) X(lt_transform) X(rand_generator) X(fft_plan) X(fft_setting) X(fft_execute) X(fft_callback) \
    X(solver_handle) X(solver_linear) X(solver_orthogonal) X(solver_symmetric) X(solver_eigen) X(solver_singular) X(solver_refine) \
    X(sparse_handle) X(sparse_descriptor) X(sparse_matrix) X(sparse_multiply) X(sparse_vector) X(sparse_sampled) X(sparse_convert) X(sparse_triangle) X(sparse_combine) \
    X(direct_solver) X(nccl_status) X(nccl_communicator) X(nccl_group) X(nccl_collective) X(nccl_properties)

#define DECLARE(name) extern const struct entry name##_entries[];
TABLES(DECLARE)

#define ADDRESS(name) name##_entries,
static const struct entry *const tables[] = {TABLES(ADDRESS) NULL};

/* cuBLAS exports its newer functions with a version in the name, cublasSgemm_v2 and cublasSgemm_v2_64. */
void *math_lookup(const char *symbol) {
    char name[128];
    const char *version = strstr(symbol, "_v2");
    if (!version || strlen(symbol) >= sizeof name) return entry_lookup(tables, symbol);
    snprintf(name, sizeof name, "%.*s%s", (int)(version - symbol), symbol, version + 3);
    return entry_lookup(tables, name);
}

size_t math_lookup_count(void) { return entry_count(tables); }

const char *math_lookup_name(size_t index) { return entry_name(tables, index); }
