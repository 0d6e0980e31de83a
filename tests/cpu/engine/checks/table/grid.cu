// Races in global memory between blocks, and what atomic operations with fences order.
#define K extern "C" __global__ void
#define T threadIdx.x
#define B blockIdx.x
#define G gridDim.x

//: race <<<8, 32>>>
K blocks_count(int* out) { if (T == 0) out[0] += 1; }
//: none <<<8, 32>>>
K blocks_count_atomically(int* out) { if (T == 0) atomicAdd(out, 1); }

//: race <<<4, 64>>>
K blocks_write_one_place(int* out) { if (T == 0) out[0] = B; }
//: none <<<4, 64>>>
K blocks_write_their_own(int* out) { out[B * 64 + T] = B; }

//: race <<<4, 64>>>
K reads_the_next_block(int* out) { int i = B * 64 + T; out[i] = i; out[1024 + i] = out[(i + 64) % 256]; }
//: none <<<4, 64>>>
K reads_what_no_block_writes(int* out) { int i = B * 64 + T; out[1024 + i] = out[(i + 64) % 256]; }

//: race <<<4, 64>>>
K stencil_in_place(int* out) { int i = B * 64 + T; int v = out[i] + out[(i + 1) % 256]; __syncthreads(); out[i] = v; }
//: none <<<4, 64>>>
K stencil_to_another(int* out) { int i = B * 64 + T; out[1024 + i] = out[i] + out[(i + 1) % 256]; }

//: race <<<4, 32>>>
K atomic_beside_plain(int* out) { if (T == 0) { atomicAdd(out, 1); out[B + 1] = out[0]; } }
//: none <<<4, 32>>>
K atomic_result(int* out) { if (T == 0) out[B + 1] = atomicAdd(out, 1); }

//: race <<<4, 32>>>
K last_block_no_fence(int* out) { __shared__ bool last; if (T == 0) { out[B + 1] = B; last = atomicAdd(out, 1) == G - 1; } __syncthreads(); if (last && T < G) out[64 + T] = out[T + 1]; }
//: none <<<4, 32>>>
K last_block_fence(int* out) { __shared__ bool last; if (T == 0) { out[B + 1] = B; __threadfence(); last = atomicAdd(out, 1) == G - 1; __threadfence(); } __syncthreads(); if (last && T < G) out[64 + T] = out[T + 1]; }
//: none <<<4, 32>>>
K last_block_barrier_and_fence(int* out) { __shared__ bool last; out[64 + B * 32 + T] = B; __syncthreads(); if (T == 0) { __threadfence(); last = atomicAdd(out, 1) == G - 1; __threadfence(); } __syncthreads(); if (last) for (int i = T; i < G * 32; i += 32) out[1024 + i] = out[64 + i]; }

//: race <<<2, 32>>>
K flag_plain_no_fence(int* out) { volatile int* flag = out; if (T == 0) { if (B == 0) { out[1] = 5; *flag = 1; } else { while (!*flag) {} out[2] = out[1]; } } }
//: none <<<2, 32>>>
K flag_fence(int* out) { volatile int* flag = out; if (T == 0) { if (B == 0) { out[1] = 5; __threadfence(); *flag = 1; } else { while (!*flag) {} __threadfence(); out[2] = out[1]; } } }
//: none <<<2, 32>>>
K flag_release_acquire(int* out) { if (T == 0) { int f = 0; if (B == 0) { out[1] = 5; asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(out) : "memory"); } else { while (!f) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(f) : "l"(out) : "memory"); out[2] = out[1]; } } }

//: race <<<2, 32>>>
K flag_before_data(int* out) { volatile int* flag = out; if (T == 0) { if (B == 0) { __threadfence(); *flag = 1; out[1] = 5; } else { while (!*flag) {} __threadfence(); out[2] = out[1]; } } }

//: race <<<4, 32>>>
K grid_barrier_no_fence(int* out) { out[64 + B * 32 + T] = T; __syncthreads(); if (T == 0) { atomicAdd(out, 1); while (atomicAdd(out, 0) < G) {} } __syncthreads(); out[1024 + B * 32 + T] = out[64 + (B + 1) % G * 32 + T]; }
//: none <<<4, 32>>>
K grid_barrier_fence(int* out) { out[64 + B * 32 + T] = T; __syncthreads(); if (T == 0) { __threadfence(); atomicAdd(out, 1); while (atomicAdd(out, 0) < G) {} __threadfence(); } __syncthreads(); out[1024 + B * 32 + T] = out[64 + (B + 1) % G * 32 + T]; }

//: race <<<8, 32>>>
K lock_no_fence(int* out) { if (T == 0) { while (atomicCAS(out, 0, 1)) {} out[1] += 1; atomicExch(out, 0); } }
//: none <<<8, 32>>>
K lock_fence(int* out) { if (T == 0) { while (atomicCAS(out, 0, 1)) {} __threadfence(); out[1] += 1; __threadfence(); atomicExch(out, 0); } }

//: none <<<4, 32>>>
K volatile_on_both_sides(int* out) { volatile int* v = out; if (T == 0) { v[B] = B; v[8 + B] = v[(B + 1) % G]; } }

//: race <<<4, 64>>>
K overlapping_tiles(int* out) { for (int i = T; i < 65; i += 64) out[B * 64 + i] = B; }
//: none <<<4, 64>>>
K adjoining_tiles(int* out) { for (int i = T; i < 64; i += 64) out[B * 64 + i] = B; }

//: race <<<4, 32>>>
K bytes_of_other_blocks(int* out) { unsigned char* c = (unsigned char*)out; c[B * 32 + T] = T; out[256 + B * 32 + T] = c[(B * 32 + T + 32) % 128]; }
//: none <<<4, 33>>>
K bytes_side_by_side(int* out) { unsigned char* c = (unsigned char*)out; c[B * 33 + T] = T; }

//: race <<<4, 16>>>
K vectors_overlap(int* out) { ((int4*)out)[B * 16 + T] = make_int4(1, 2, 3, 4); if (T == 0) out[(B * 64 + 64) % 256] = 7; }
//: none <<<4, 16>>>
K vectors_apart(int* out) { ((int4*)out)[B * 16 + T] = make_int4(1, 2, 3, 4); if (T == 0) out[B * 64 + 300] = 7; }

//: race <<<2, 64>>>
K reduction_to_one(int* out) { __shared__ int n; if (!T) n = 0; __syncthreads(); atomicAdd(&n, T); __syncthreads(); if (!T) out[0] += n; }
//: none <<<2, 64>>>
K reduction_to_one_atomically(int* out) { __shared__ int n; if (!T) n = 0; __syncthreads(); atomicAdd(&n, T); __syncthreads(); if (!T) atomicAdd(out, n); }
