// Races between the threads of a block in shared memory, and what barriers order.
// The line above each kernel has what is to be found in it, and its grid and block.
#define K extern "C" __global__ void
#define T threadIdx.x

//: race <<<1, 256>>>
K count_plainly(int* out) { __shared__ int n; if (T == 0) n = 0; __syncthreads(); n += 1; __syncthreads(); out[T] = n; }
//: none <<<1, 256>>>
K count_atomically(int* out) { __shared__ int n; if (T == 0) n = 0; __syncthreads(); atomicAdd(&n, 1); __syncthreads(); out[T] = n; }

//: race <<<1, 64>>>
K reverse_no_barrier(int* out) { __shared__ int s[64]; s[T] = T; out[T] = s[63 - T]; }
//: none <<<1, 64>>>
K reverse_barrier(int* out) { __shared__ int s[64]; s[T] = T; __syncthreads(); out[T] = s[63 - T]; }

//: race <<<1, 128>>>
K second_round_no_barrier(int* out) { __shared__ int s[128]; int v = 0; for (int i = 0; i < 3; i++) { s[T] = i + T; __syncthreads(); v += s[127 - T]; } out[T] = v; }
//: none <<<1, 128>>>
K second_round_barrier(int* out) { __shared__ int s[128]; int v = 0; for (int i = 0; i < 3; i++) { s[T] = i + T; __syncthreads(); v += s[127 - T]; __syncthreads(); } out[T] = v; }

//: race <<<1, 256>>>
K tree_no_barrier(int* out) { __shared__ int s[256]; s[T] = T; __syncthreads(); for (int d = 128; d; d /= 2) if (T < d) s[T] += s[T + d]; if (T == 0) *out = s[0]; }
//: none <<<1, 256>>>
K tree_barrier(int* out) { __shared__ int s[256]; s[T] = T; __syncthreads(); for (int d = 128; d; d /= 2) { if (T < d) s[T] += s[T + d]; __syncthreads(); } if (T == 0) *out = s[0]; }

//: race <<<1, 96>>>
K shift_in_place(int* out) { __shared__ int s[97]; s[T] = T; if (!T) s[96] = 0; __syncthreads(); s[T] = s[T + 1]; __syncthreads(); out[T] = s[T]; }
//: none <<<1, 96>>>
K shift_by_register(int* out) { __shared__ int s[97]; s[T] = T; if (!T) s[96] = 0; __syncthreads(); int v = s[T + 1]; __syncthreads(); s[T] = v; __syncthreads(); out[T] = s[T]; }

//: race <<<1, 128>>>
K scan_one_buffer(int* out) { __shared__ int s[128]; s[T] = 1; __syncthreads(); for (int d = 1; d < 128; d *= 2) { if (T >= d) s[T] += s[T - d]; __syncthreads(); } out[T] = s[T]; }
//: none <<<1, 128>>>
K scan_two_buffers(int* out) { __shared__ int s[2][128]; int b = 0; s[0][T] = 1; __syncthreads(); for (int d = 1; d < 128; d *= 2) { s[1 - b][T] = s[b][T] + (T >= d ? s[b][T - d] : 0); b = 1 - b; __syncthreads(); } out[T] = s[b][T]; }

//: race <<<1, 128>>>
K broadcast_no_barrier(int* out) { __shared__ int v; if (T == 77) v = out[T]; out[T] = v; }
//: none <<<1, 128>>>
K broadcast_barrier(int* out) { __shared__ int v; if (T == 77) v = out[T]; __syncthreads(); out[T] = v; }

//: race <<<1, 128>>>
K all_write_one_place(int* out) { __shared__ int v; v = T; __syncthreads(); out[T] = v; }
//: none <<<1, 128>>>
K one_writes_one_place(int* out) { __shared__ int v; if (T == 0) v = T; __syncthreads(); out[T] = v; }

//: race <<<1, 64>>>
K bytes_of_a_neighbor(int* out) { __shared__ unsigned char s[64]; s[T] = T; out[T] = s[(T + 1) % 64]; }
//: none <<<1, 64>>>
K bytes_of_its_own(int* out) { __shared__ unsigned char s[64]; s[T] = T; out[T] = s[T]; s[T] = 1; __syncthreads(); out[T] += s[63 - T]; }

//: race <<<1, 64>>>
K halves_of_a_neighbor(int* out) { __shared__ short s[64]; s[T] = T; out[T] = s[T ^ 32]; }
//: none <<<1, 64>>>
K halves_of_its_own(int* out) { __shared__ short s[64]; s[T] = T; out[T] = s[T]; }

//: race <<<1, 64>>>
K wide_reads_of_others(int* out) { __shared__ int4 s[16]; ((int*)s)[T] = T; int4 v = s[T % 16]; out[T] = v.x + v.w; }
//: none <<<1, 64>>>
K wide_reads_barrier(int* out) { __shared__ int4 s[16]; ((int*)s)[T] = T; __syncthreads(); int4 v = s[T % 16]; out[T] = v.x + v.w; }

//: race <<<1, 64>>>
K wide_writes_overlap(int* out) { __shared__ int4 s[17]; ((int*)s)[T] = T; s[T % 17] = make_int4(1, 2, 3, 4); __syncthreads(); out[T] = ((int*)s)[T]; }
//: none <<<1, 64>>>
K wide_writes_apart(int* out) { __shared__ int4 s[64]; s[T] = make_int4(1, 2, 3, T); __syncthreads(); out[T] = s[63 - T].w; }

//: race <<<1, 128>>>
K doubles_no_barrier(int* out) { __shared__ double s[128]; s[T] = T; out[T] = (int)s[(T + 64) % 128]; }
//: none <<<1, 128>>>
K doubles_barrier(int* out) { __shared__ double s[128]; s[T] = T; __syncthreads(); out[T] = (int)s[(T + 64) % 128]; }

//: race <<<1, 64>>>
K atomic_then_plain_read(int* out) { __shared__ int n; if (!T) n = 0; __syncthreads(); atomicAdd(&n, 1); out[T] = n; }
//: none <<<1, 64>>>
K atomic_barrier_plain_read(int* out) { __shared__ int n; if (!T) n = 0; __syncthreads(); atomicAdd(&n, 1); __syncthreads(); out[T] = n; }

//: race <<<1, 64>>>
K atomic_beside_plain_write(int* out) { __shared__ int n[2]; if (T < 2) n[T] = 0; __syncthreads(); if (T < 32) atomicAdd(&n[0], 1); else n[0] = 7; __syncthreads(); out[T] = n[0]; }
//: none <<<1, 64>>>
K atomic_beside_atomic_exchange(int* out) { __shared__ int n[2]; if (T < 2) n[T] = 0; __syncthreads(); if (T < 32) atomicAdd(&n[0], 1); else atomicExch(&n[0], 7); __syncthreads(); out[T] = n[0]; }

//: race <<<1, 64>>>
K histogram_no_barrier(int* out) { __shared__ int n[16]; if (T < 16) n[T] = 0; atomicAdd(&n[T * 7 % 16], 1); __syncthreads(); if (T < 16) out[T] = n[T]; }
//: none <<<1, 64>>>
K histogram_barrier(int* out) { __shared__ int n[16]; if (T < 16) n[T] = 0; __syncthreads(); atomicAdd(&n[T * 7 % 16], 1); __syncthreads(); if (T < 16) out[T] = n[T]; }

//: race <<<1, 64>>>
K compare_and_swap_beside_read(int* out) { __shared__ int n; if (!T) n = 0; __syncthreads(); if (T < 32) atomicCAS(&n, 0, T + 1); else out[T] = n; }
//: none <<<1, 64>>>
K compare_and_swap_all(int* out) { __shared__ int n; if (!T) n = 0; __syncthreads(); if (T < 32) atomicCAS(&n, 0, T + 1); else out[T] = atomicAdd(&n, 0); }

//: race <<<1, 64>>>
K barrier_before_not_between(int* out) { __shared__ int s[64]; __syncthreads(); s[T] = T; out[T] = s[T ^ 33]; __syncthreads(); }
//: none <<<1, 64>>>
K barrier_with_vote(int* out) { __shared__ int s[64]; s[T] = T; int any = __syncthreads_or(T == 3); out[T] = s[T ^ 33] + any; }
//: none <<<1, 64>>>
K barrier_with_count(int* out) { __shared__ int s[64]; s[T] = T; int n = __syncthreads_count(T & 1); out[T] = s[T ^ 33] + n; }

//: race <<<1, dim3(8, 8)>>>
K transpose_no_barrier(int* out) { __shared__ int s[8][9]; s[threadIdx.y][threadIdx.x] = threadIdx.x; out[threadIdx.y * 8 + threadIdx.x] = s[threadIdx.x][threadIdx.y]; }
//: none <<<1, dim3(8, 8)>>>
K transpose_barrier(int* out) { __shared__ int s[8][9]; s[threadIdx.y][threadIdx.x] = threadIdx.x; __syncthreads(); out[threadIdx.y * 8 + threadIdx.x] = s[threadIdx.x][threadIdx.y]; }

//: race <<<1, 100>>>
K odd_block_no_barrier(int* out) { __shared__ int s[100]; s[T] = T; out[T] = s[99 - T]; }
//: none <<<1, 100>>>
K odd_block_barrier(int* out) { __shared__ int s[100]; s[T] = T; __syncthreads(); out[T] = s[99 - T]; }

//: race <<<1, 64>>>
K generic_pointer_no_barrier(int* out) { __shared__ int s[64]; __shared__ int* p; if (!T) p = s; __syncthreads(); volatile int go = 0; p[T] = T; out[T] = p[63 - T] + go; }
//: none <<<1, 64>>>
K generic_pointer_barrier(int* out) { __shared__ int s[64]; __shared__ int* p; if (!T) p = s; __syncthreads(); p[T] = T; __syncthreads(); out[T] = p[63 - T]; }

//: race <<<1, 64>>>
K global_of_a_neighbor(int* out) { out[T] = T; out[T + 64] = out[(T + 32) % 64]; }
//: none <<<1, 64>>>
K global_of_a_neighbor_barrier(int* out) { out[T] = T; __syncthreads(); out[T + 64] = out[(T + 32) % 64]; }

//: race <<<1, 128>>>
K exits_do_not_order(int* out) { __shared__ int s[128]; s[T] = T; if (T >= 64) return; out[T] = s[127 - T]; }
//: none <<<1, 128>>>
K exit_after_barrier(int* out) { __shared__ int s[128]; s[T] = T; __syncthreads(); if (T >= 64) return; out[T] = s[127 - T]; }
