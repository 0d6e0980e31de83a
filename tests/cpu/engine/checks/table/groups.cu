// Cooperative groups of several warps, whose threads tell each other by shuffles what they have learned.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define T threadIdx.x
#define TILE(n) auto tile = cg::tiled_partition<n>(cg::this_thread_block())
#define FLAG __shared__ int s[64]; __shared__ volatile int flag; if (!T) flag = 0; __syncthreads()
#define TELL s[T] = T; __syncwarp(); if (T == 32) { __threadfence_block(); flag = 1; }
#define HEAR while (!flag) {} __threadfence_block()

//: none <<<1, 256>>>
K reduce_of_a_tile(int* out) { TILE(128); out[T] = cg::reduce(tile, (int)T, cg::plus<int>()); }
//: none <<<2, 128>>>
K reduce_again(int* out) { TILE(64); int v = cg::reduce(tile, (int)T, cg::plus<int>()); v = cg::reduce(tile, v, cg::greater<int>()); out[blockIdx.x * 128 + T] = v + cg::reduce(tile, 3, cg::plus<int>()); }
//: none <<<1, 256>>>
K scans_of_a_tile(int* out) { TILE(128); out[T] = cg::inclusive_scan(tile, (int)T) + cg::exclusive_scan(tile, (int)T); }
//: none <<<1, 128>>>
K shuffles_of_a_tile(int* out) { TILE(128); out[T] = tile.shfl((int)T, 5) + tile.any(T == 77) + tile.shfl((int)T, 90); }
//: none <<<1, 256>>>
K tiles_of_a_tile(int* out) { TILE(256); auto half = cg::tiled_partition<64>(tile); int v = cg::reduce(tile, (int)T, cg::plus<int>()); out[T] = v + cg::reduce(half, v, cg::plus<int>()); }

//: race <<<1, 128>>>
K tile_without_sync(int* out) { TILE(64); __shared__ int s[128]; s[T] = T; out[T] = s[T ^ 63] + tile.size(); }
//: none <<<1, 128>>>
K tile_with_sync(int* out) { TILE(64); __shared__ int s[128]; s[T] = T; tile.sync(); out[T] = s[T ^ 63]; }
//: race <<<1, 128>>>
K tile_too_small(int* out) { TILE(64); __shared__ int s[128]; s[T] = T; tile.sync(); out[T] = s[127 - T]; }

//: none <<<1, 64>>>
K shuffle_tells_of_a_flag(int* out) { FLAG; if (T >= 32) { TELL } else { int v = 0; if (!T) { HEAR; v = 32; } v = __shfl_sync(~0u, v, 0); out[T] = s[v + T]; } }
//: none <<<1, 64>>>
K vote_tells_of_a_flag(int* out) { FLAG; if (T >= 32) { TELL } else { int v = 0; if (!T) { HEAR; v = 1; } if (__any_sync(~0u, v)) out[T] = s[32 + T]; } }
//: race <<<1, 64>>>
K shuffle_before_the_flag(int* out) { FLAG; if (T >= 32) { TELL } else { int v = __shfl_sync(~0u, 32, 0); if (!T) { HEAR; } out[T] = s[v + T]; } }
//: race <<<1, 64>>>
K shuffle_to_the_other_half(int* out) { FLAG; if (T >= 32) { TELL } else { int v = 32; if (!T) { HEAR; } if (T < 16) v = __shfl_sync(0xffff, v, 0); out[T] = s[v + T]; } }
//: race <<<1, 64>>>
K shuffle_tells_without_a_fence(int* out) { FLAG; if (T >= 32) { s[T] = T; if (T == 32) flag = 1; } else { int v = 0; if (!T) { HEAR; v = 32; } v = __shfl_sync(~0u, v, 0); out[T] = s[v + T]; } }
//: race <<<1, 64>>>
K shuffle_tells_of_no_store(int* out) { FLAG; if (T >= 32) { TELL } else { int v = 0; if (!T) { HEAR; s[0] = 5; v = 32; } v = __shfl_sync(~0u, v, 0); out[T] = s[v + T] + s[0]; } }
