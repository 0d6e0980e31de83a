// Barriers and warp operations that not all of those take part in whom they are for.
#define K extern "C" __global__ void
#define T threadIdx.x
#define FULL 0xffffffffu

//: sync <<<1, 32>>>
K half_shuffles(int* out) { int v = T; if (T < 16) v = __shfl_sync(FULL, v, 3); out[T] = v; }
//: none <<<1, 32>>>
K half_shuffles_by_name(int* out) { int v = T; if (T < 16) v = __shfl_sync(0xffff, v, 3); out[T] = v; }
//: sync <<<1, 32>>>
K half_votes(int* out) { int v = T; if (T < 16) v = __any_sync(FULL, v == 3); out[T] = v; }
//: none <<<1, 32>>>
K half_votes_by_name(int* out) { int v = T; if (T < 16) v = __any_sync(0xffff, v == 3); out[T] = v; }
//: sync <<<1, 32>>>
K ballot_in_a_branch(int* out) { int v = 0; if (T & 1) v = __ballot_sync(FULL, 1); out[T] = v; }
//: none <<<1, 32>>>
K ballot_before_a_branch(int* out) { int v = __ballot_sync(FULL, T & 1); if (T & 1) v = __popc(v); out[T] = v; }
//: sync <<<1, 32>>>
K early_exit_shuffle(int* out) { if (T >= 20) return; out[T] = __shfl_down_sync(FULL, T, 1); }
//: none <<<1, 32>>>
K early_exit_ballot(int* out) { unsigned m = __ballot_sync(FULL, T < 20); if (T >= 20) return; out[T] = __shfl_down_sync(m, T, 1); }
//: sync <<<1, 32>>>
K not_in_its_own_mask(int* out) { out[T] = __shfl_sync(0x0000ffff, T, 1); }
//: none <<<1, 32>>>
K in_its_own_mask(int* out) { out[T] = __shfl_sync(T < 16 ? 0xffff : 0xffff0000, T, T & 16); }
//: sync <<<1, 32>>>
K reduce_of_absent(int* out) { if (T < 8) out[T] = __reduce_add_sync(FULL, T); }
//: none <<<1, 32>>>
K reduce_of_present(int* out) { if (T < 8) out[T] = __reduce_add_sync(0xff, T); }
//: sync <<<1, 32>>>
K match_of_absent(int* out) { if (T < 8) out[T] = __match_any_sync(FULL, T & 1); }
//: none <<<1, 32>>>
K match_of_present(int* out) { if (T < 8) out[T] = __match_any_sync(0xff, T & 1); }
//: sync <<<1, 32>>>
K syncwarp_of_absent(int* out) { if (T < 16) { __syncwarp(); out[T] = 1; } }
//: none <<<1, 32>>>
K syncwarp_of_present(int* out) { if (T < 16) { __syncwarp(0xffff); out[T] = 1; } }
//: sync <<<1, 32>>>
K loop_of_odd_lengths(int* out) { int v = T; for (int i = 0; i < T % 4 + 1; i++) v += __shfl_xor_sync(FULL, v, 1); out[T] = v; }
//: none <<<1, 32>>>
K loop_of_one_length(int* out) { int v = T; for (int i = 0; i < 4; i++) v += __shfl_xor_sync(FULL, v, 1); out[T] = v; }
//: none <<<1, 32>>>
K arms_shuffle_together(int* out) { int v; if (T < 16) v = __shfl_xor_sync(FULL, T, 16); else v = __shfl_xor_sync(FULL, T + 1, 16); out[T] = v; }

//: sync <<<1, 64>>>
K barrier_in_arms(int* out) { if (T & 1) { out[T] = 1; __syncthreads(); } else { out[T] = 2; __syncthreads(); } out[64 + T] = out[63 - T]; }
//: none <<<1, 64>>>
K barrier_behind_arms(int* out) { if (T & 1) out[T] = 1; else out[T] = 2; __syncthreads(); out[64 + T] = out[63 - T]; }
//: sync <<<1, 64>>>
K barrier_of_the_even(int* out) { if (!(T & 1)) { __syncthreads(); out[T] = 1; } out[64 + T] = 3; }
//: none <<<1, 64>>>
K barrier_of_all(int* out) { __syncthreads(); if (!(T & 1)) out[T] = 1; }
//: sync <<<1, 48>>>
K barrier_in_a_loop(int* out) { for (int i = 0; i < T % 3 + 1; i++) { out[T] = i; __syncthreads(); } out[64 + T] = 9; }
//: none <<<1, 48>>>
K barrier_in_a_common_loop(int* out) { for (int i = 0; i < 3; i++) { if (i < T % 3 + 1) out[T] = i; __syncthreads(); } }
//: none <<<1, 64>>>
K warps_in_other_arms(int* out) { if (T < 32) { out[T] = 1; __syncthreads(); } else { out[T] = 2; __syncthreads(); } }
//: none <<<1, 64>>>
K exit_before_the_barrier(int* out) { if (T >= 32) return; __syncthreads(); out[T] = 1; }
//: none <<<1, 64>>>
K barrier_without_aligned(int* out) { if (T & 1) { out[T] = 1; asm volatile("barrier.sync 0;" ::: "memory"); } else { out[T] = 2; asm volatile("barrier.sync 0;" ::: "memory"); } }

//: none <<<1, 20>>>
K small_block_full_mask(int* out) { int v = T; for (int d = 16; d; d /= 2) v += __shfl_down_sync(FULL, v, d); out[T] = v; }
//: none <<<1, 32>>>
K activemask(int* out) { if (T < 7) out[T] = __popc(__activemask()); }
