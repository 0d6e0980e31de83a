// Races between the threads of a warp, whose order is open where no __syncwarp() is; and named barriers.
#define K extern "C" __global__ void
#define T threadIdx.x
#define BAR(id, n) asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(n) : "memory")
#define ARRIVE(id, n) asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(n) : "memory")

//: race <<<1, 32>>>
K warp_reverse(int* out) { __shared__ int s[32]; s[T] = T; out[T] = s[31 - T]; }
//: none <<<1, 32>>>
K warp_reverse_sync(int* out) { __shared__ int s[32]; s[T] = T; __syncwarp(); out[T] = s[31 - T]; }

//: race <<<1, 32>>>
K warp_tree(int* out) { __shared__ int s[32]; s[T] = T; __syncwarp(); for (int d = 16; d; d /= 2) if (T < d) s[T] += s[T + d]; if (!T) *out = s[0]; }
//: none <<<1, 32>>>
K warp_tree_sync(int* out) { __shared__ int s[32]; s[T] = T; __syncwarp(); for (int d = 16; d; d /= 2) { if (T < d) s[T] += s[T + d]; __syncwarp(); } if (!T) *out = s[0]; }

//: race <<<1, 64>>>
K syncwarp_is_not_a_barrier(int* out) { __shared__ int s[64]; s[T] = T; __syncwarp(); out[T] = s[63 - T]; }
//: none <<<1, 64>>>
K syncwarp_within_warps(int* out) { __shared__ int s[64]; s[T] = T; __syncwarp(); out[T] = s[T ^ 31]; }

//: race <<<1, 32>>>
K syncwarp_of_the_other_half(int* out) { __shared__ int s[32]; s[T] = T; if (T < 16) __syncwarp(0x0000ffff); else __syncwarp(0xffff0000); out[T] = s[31 - T]; }
//: none <<<1, 32>>>
K syncwarp_of_halves(int* out) { __shared__ int s[32]; s[T] = T; if (T < 16) __syncwarp(0x0000ffff); else __syncwarp(0xffff0000); out[T] = s[T ^ 15]; }

//: race <<<1, 32>>>
K shuffle_is_no_fence(int* out) { __shared__ int s[32]; s[T] = T; int v = __shfl_sync(~0u, T, 31 - T); out[T] = s[v]; }
//: none <<<1, 32>>>
K shuffle_of_values(int* out) { int v = __shfl_sync(~0u, T, 31 - T); out[T] = v; }

//: race <<<1, 32>>>
K lane_zero_tells(int* out) { __shared__ int v; if (T == 0) v = out[T]; out[T] = v; }
//: none <<<1, 32>>>
K lane_zero_tells_sync(int* out) { __shared__ int v; if (T == 0) v = out[T]; __syncwarp(); out[T] = v; }

//: race <<<1, 32>>>
K warp_second_round(int* out) { __shared__ int s[32]; int v = 0; for (int i = 0; i < 3; i++) { s[T] = T + i; __syncwarp(); v += s[31 - T]; } out[T] = v; }
//: none <<<1, 32>>>
K warp_second_round_sync(int* out) { __shared__ int s[32]; int v = 0; for (int i = 0; i < 3; i++) { s[T] = T + i; __syncwarp(); v += s[31 - T]; __syncwarp(); } out[T] = v; }

//: race <<<1, 32>>>
K divergent_arms(int* out) { __shared__ int s; if (T < 16) s = 1; else if (T == 20) s = 2; __syncwarp(); out[T] = s; }
//: none <<<1, 32>>>
K divergent_arms_apart(int* out) { __shared__ int s[2]; if (T == 3) s[0] = 1; else if (T == 20) s[1] = 2; __syncwarp(); out[T] = s[T & 1]; }

//: race <<<1, 40>>>
K last_warp_is_partial(int* out) { __shared__ int s[40]; s[T] = T; out[T] = s[T ^ 1]; }
//: none <<<1, 40>>>
K last_warp_is_partial_sync(int* out) { __shared__ int s[40]; s[T] = T; __syncwarp(); out[T] = s[T ^ 1]; }

//: race <<<1, 32>>>
K global_within_a_warp(int* out) { out[T] = T; out[T + 32] = out[T ^ 1]; }
//: none <<<1, 32>>>
K global_within_a_warp_sync(int* out) { out[T] = T; __syncwarp(); out[T + 32] = out[T ^ 1]; }

//: none <<<1, 32>>>
K one_instruction(int* out) { __shared__ int s; s = 4; __syncwarp(); out[T] = s; }

//: race <<<1, 128>>>
K named_barrier_of_others(int* out) { __shared__ int s[128]; s[T] = T; BAR(1 + T / 64, 64); out[T] = s[127 - T]; }
//: none <<<1, 128>>>
K named_barriers_of_halves(int* out) { __shared__ int s[128]; s[T] = T; BAR(1 + T / 64, 64); out[T] = s[T ^ 63]; }

//: race <<<1, 64>>>
K consumer_did_not_wait(int* out) { __shared__ int s[32]; if (T < 32) { s[T] = T; ARRIVE(1, 64); } else { out[T] = s[63 - T]; BAR(1, 64); } }
//: none <<<1, 64>>>
K producer_arrives(int* out) { __shared__ int s[32]; if (T < 32) { s[T] = T; ARRIVE(1, 64); } else { BAR(1, 64); out[T] = s[63 - T]; } }

//: race <<<1, 64>>>
K producer_overwrites(int* out) { __shared__ int s[32]; for (int i = 0; i < 2; i++) if (T < 32) { s[T] = T + i; BAR(1, 64); } else { BAR(1, 64); out[T] = s[63 - T]; } }
//: none <<<1, 64>>>
K producer_waits(int* out) { __shared__ int s[32]; for (int i = 0; i < 2; i++) if (T < 32) { s[T] = T + i; BAR(1, 64); BAR(2, 64); } else { BAR(1, 64); out[T] = s[63 - T]; BAR(2, 64); } }

//: race <<<1, 96>>>
K third_warp_is_not_in_it(int* out) { __shared__ int s[32]; if (T < 32) s[T] = T; if (T < 64) BAR(1, 64); out[T] = s[T % 32]; }
//: none <<<1, 96>>>
K third_warp_is_told(int* out) { __shared__ int s[32]; if (T < 32) s[T] = T; if (T < 64) BAR(1, 64); if (T >= 32) BAR(2, 64); out[T] = s[T % 32]; }

//: none <<<1, 96>>>
K named_barrier_of_all(int* out) { __shared__ int s[96]; s[T] = T; BAR(3, 96); out[T] = s[95 - T]; }
