// Asynchronous copies that are not waited for, mbarriers, and fences within a block.
#define K extern "C" __global__ void
#define T threadIdx.x
#define OFFSET(p) ((unsigned)__cvta_generic_to_shared(p))
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(OFFSET(to)), "l"(from) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define WAIT_ALL() asm volatile("cp.async.wait_all;" ::: "memory")
#define INIT(b, n) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(OFFSET(b)), "r"(n) : "memory")
#define ARRIVE(b) asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(OFFSET(b)) : "memory")
#define PHASE(b, p) do { unsigned d; do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(d) : "r"(OFFSET(b)), "r"(p) : "memory"); while (!d); } while (0)
#define EXPECT(b, n) asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;}" ::"r"(OFFSET(b)), "r"(n) : "memory")
#define BULK(to, from, n, b) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(OFFSET(to)), "l"(from), "r"(n), "r"(OFFSET(b)) : "memory")
#define STORE(to, from, n) asm volatile("fence.proxy.async.shared::cta; cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(OFFSET(from)), "r"(n) : "memory")
#define STORE_ASYNC(to, v, b) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(OFFSET(to)), "r"(v), "r"(OFFSET(b)) : "memory")
#define ADD_ASYNC(to, v, b) asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(OFFSET(to)), "r"(v), "r"(OFFSET(b)) : "memory")
#define BULK_COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define BULK_WAIT(n) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory")
#define BULK_READ(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")

//: race <<<1, 64>>>
K own_copy_no_wait(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); out[64 + T] = s[T]; }
//: none <<<1, 64>>>
K own_copy_wait(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); COMMIT(); WAIT(0); out[64 + T] = s[T]; }
//: none <<<1, 64>>>
K own_copy_wait_all(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); WAIT_ALL(); out[64 + T] = s[T]; }

//: race <<<1, 64>>>
K barrier_is_no_wait(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); COMMIT(); __syncthreads(); out[64 + T] = s[T ^ 33]; }
//: race <<<1, 64>>>
K wait_is_no_barrier(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); COMMIT(); WAIT(0); out[64 + T] = s[T ^ 33]; }
//: none <<<1, 64>>>
K wait_and_barrier(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); COMMIT(); WAIT(0); __syncthreads(); out[64 + T] = s[T ^ 33]; }

//: race <<<1, 64>>>
K wrong_group(int* out) { __shared__ int s[2][64]; COPY(&s[0][T], out + T); COMMIT(); COPY(&s[1][T], out + T); COMMIT(); WAIT(1); out[64 + T] = s[1][T]; }
//: none <<<1, 64>>>
K right_group(int* out) { __shared__ int s[2][64]; COPY(&s[0][T], out + T); COMMIT(); COPY(&s[1][T], out + T); COMMIT(); WAIT(1); out[64 + T] = s[0][T]; }

//: race <<<1, 64>>>
K not_committed(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); WAIT(0); out[64 + T] = s[T]; }
//: none <<<1, 64>>>
K committed(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); COMMIT(); WAIT(0); out[64 + T] = s[T]; }

//: race <<<1, 64>>>
K overwritten_while_copied(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); s[T] = 1; WAIT_ALL(); out[64 + T] = s[T]; }
//: none <<<1, 64>>>
K overwritten_when_copied(int* out) { __shared__ int s[64]; COPY(&s[T], out + T); WAIT_ALL(); s[T] = 1; out[64 + T] = s[T]; }

//: race <<<1, 64>>>
K pipeline_short_of_a_barrier(int* out) { __shared__ int s[2][64]; int v = 0; COPY(&s[0][T], out + T); COMMIT(); for (int i = 0; i < 4; i++) { COPY(&s[(i + 1) % 2][T], out + T); COMMIT(); WAIT(1); __syncthreads(); v += s[i % 2][63 - T]; } WAIT(0); out[64 + T] = v; }
//: none <<<1, 64>>>
K pipeline(int* out) { __shared__ int s[2][64]; int v = 0; COPY(&s[0][T], out + T); COMMIT(); for (int i = 0; i < 4; i++) { COPY(&s[(i + 1) % 2][T], out + T); COMMIT(); WAIT(1); __syncthreads(); v += s[i % 2][63 - T]; __syncthreads(); } WAIT(0); out[64 + T] = v; }

//: race <<<1, 64>>>
K mbarrier_not_waited_for(int* out) { __shared__ int s[64]; __shared__ unsigned long long b; if (!T) INIT(&b, 64); __syncthreads(); s[T] = T; ARRIVE(&b); out[T] = s[63 - T]; }
//: none <<<1, 64>>>
K mbarrier_waited_for(int* out) { __shared__ int s[64]; __shared__ unsigned long long b; if (!T) INIT(&b, 64); __syncthreads(); s[T] = T; ARRIVE(&b); PHASE(&b, 0); out[T] = s[63 - T]; }

//: race <<<1, 64>>>
K write_behind_the_arrival(int* out) { __shared__ int s[64]; __shared__ unsigned long long b; if (!T) INIT(&b, 64); __syncthreads(); ARRIVE(&b); s[T] = T; PHASE(&b, 0); out[T] = s[63 - T]; }
//: race <<<1, 64>>>
K one_lane_waits(int* out) { __shared__ int s[32]; __shared__ unsigned long long b; if (!T) INIT(&b, 32); __syncthreads(); if (T < 32) { s[T] = T; ARRIVE(&b); } else { if (T == 32) PHASE(&b, 0); out[T] = s[63 - T]; } }
//: none <<<1, 64>>>
K one_lane_waits_and_tells(int* out) { __shared__ int s[32]; __shared__ unsigned long long b; if (!T) INIT(&b, 32); __syncthreads(); if (T < 32) { s[T] = T; ARRIVE(&b); } else { if (T == 32) PHASE(&b, 0); __syncwarp(); out[T] = s[63 - T]; } }

//: race <<<1, 64>>>
K ring_without_empty(int* out) { __shared__ int s[32]; __shared__ unsigned long long full[2]; if (!T) { INIT(&full[0], 32); INIT(&full[1], 32); } __syncthreads(); for (int i = 0; i < 2; i++) if (T < 32) { s[T] = i; ARRIVE(&full[i]); } else { PHASE(&full[i], 0); out[T] = s[63 - T]; } }
//: none <<<1, 64>>>
K ring_with_empty(int* out) { __shared__ int s[32]; __shared__ unsigned long long full, empty; if (!T) { INIT(&full, 32); INIT(&empty, 32); } __syncthreads(); for (int i = 0; i < 3; i++) if (T < 32) { if (i) PHASE(&empty, (i - 1) & 1); s[T] = i; ARRIVE(&full); } else { PHASE(&full, i & 1); out[T] = s[63 - T]; ARRIVE(&empty); } }

//: race <<<1, 64>>>
K bulk_copy_no_wait(int* out) { __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; if (!T) { INIT(&b, 1); EXPECT(&b, 256); BULK(s, out, 256, &b); } __syncthreads(); out[64 + T] = s[T]; }
//: none <<<1, 64>>>
K bulk_copy_wait(int* out) { __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; if (!T) INIT(&b, 1); __syncthreads(); if (!T) { EXPECT(&b, 256); BULK(s, out, 256, &b); } PHASE(&b, 0); out[64 + T] = s[T]; }

//: race <<<1, 64>>>
K bulk_copy_over_reads(int* out) { __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; if (!T) INIT(&b, 1); s[T] = T; __syncthreads(); out[64 + T] = s[63 - T]; if (!T) { EXPECT(&b, 256); BULK(s, out, 256, &b); } PHASE(&b, 0); out[128 + T] = s[T]; }
//: none <<<1, 64>>>
K bulk_copy_after_reads(int* out) { __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; if (!T) INIT(&b, 1); s[T] = T; __syncthreads(); out[64 + T] = s[63 - T]; __syncthreads(); if (!T) { EXPECT(&b, 256); BULK(s, out, 256, &b); } PHASE(&b, 0); out[128 + T] = s[T]; }

//: race <<<1, 64>>>
K bulk_store_too_early(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; if (!T) { STORE(out, s, 256); BULK_COMMIT(); BULK_WAIT(0); } }
//: none <<<1, 64>>>
K bulk_store_after_barrier(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_COMMIT(); BULK_WAIT(0); } }

//: race <<<1, 64>>>
K source_overwritten_while_stored(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_COMMIT(); } __syncthreads(); s[T] = 1; if (!T) BULK_WAIT(0); out[64 + T] = s[T]; }
//: none <<<1, 64>>>
K source_overwritten_when_read(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_COMMIT(); BULK_READ(0); } __syncthreads(); s[T] = 1; if (!T) BULK_WAIT(0); out[64 + T] = s[T]; }

//: race <<<1, 64>>>
K read_before_it_is_stored(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_COMMIT(); BULK_READ(0); } __syncthreads(); out[64 + T] = out[T]; if (!T) BULK_WAIT(0); }
//: none <<<1, 64>>>
K read_when_it_is_stored(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_COMMIT(); BULK_WAIT(0); } __syncthreads(); out[64 + T] = out[T]; }

//: race <<<1, 64>>>
K other_bulk_group(int* out) { __shared__ alignas(16) int s[2][64]; s[0][T] = s[1][T] = T; __syncthreads(); if (!T) { STORE(out, s[0], 256); BULK_COMMIT(); STORE(out + 64, s[1], 256); BULK_COMMIT(); BULK_READ(1); } __syncthreads(); s[1][T] = 1; if (!T) BULK_WAIT(0); out[128 + T] = s[1][T]; }
//: none <<<1, 64>>>
K first_bulk_group(int* out) { __shared__ alignas(16) int s[2][64]; s[0][T] = s[1][T] = T; __syncthreads(); if (!T) { STORE(out, s[0], 256); BULK_COMMIT(); STORE(out + 64, s[1], 256); BULK_COMMIT(); BULK_READ(1); } __syncthreads(); s[0][T] = 1; if (!T) BULK_WAIT(0); out[128 + T] = s[0][T]; }

//: race <<<1, 64>>>
K flag_in_shared_no_fence(int* out) { __shared__ int v; __shared__ volatile int flag; if (!T) flag = 0; __syncthreads(); if (T == 0) { v = out[64]; flag = 1; } if (T == 32) { while (!flag) {} out[0] = v; } }
//: none <<<1, 64>>>
K flag_in_shared_fence(int* out) { __shared__ int v; __shared__ volatile int flag; if (!T) flag = 0; __syncthreads(); if (T == 0) { v = out[64]; __threadfence_block(); flag = 1; } if (T == 32) { while (!flag) {} __threadfence_block(); out[0] = v; } }

//: race <<<1, 128>>>
K flag_tells_another(int* out) { __shared__ int v; __shared__ volatile int flag; if (!T) flag = 0; __syncthreads(); if (T == 0) { v = out[64]; __threadfence_block(); flag = 1; } if (T == 32) { while (!flag) {} __threadfence_block(); out[0] = v; } if (T == 64) out[1] = v; }
//: none <<<1, 128>>>
K flag_tells_two(int* out) { __shared__ int v; __shared__ volatile int flag; if (!T) flag = 0; __syncthreads(); if (T == 0) { v = out[64]; __threadfence_block(); flag = 1; } if (T == 32 || T == 64) { while (!flag) {} __threadfence_block(); out[T] = v; } }

//: race <<<1, 64>>>
K async_store_not_waited_for(int* out) { __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; if (!T) { INIT(&b, 1); EXPECT(&b, 256); } __syncthreads(); STORE_ASYNC(&s[T ^ 33], T, &b); out[T] = s[T]; PHASE(&b, 0); }
//: none <<<1, 64>>>
K async_store_waited_for(int* out) { __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; if (!T) { INIT(&b, 1); EXPECT(&b, 256); } __syncthreads(); STORE_ASYNC(&s[T ^ 33], T, &b); PHASE(&b, 0); out[T] = s[T]; }
//: none <<<1, 64>>>
K async_sum_waited_for(int* out) { __shared__ alignas(16) int s[2]; __shared__ unsigned long long b; if (!T) { s[0] = s[1] = 0; INIT(&b, 1); EXPECT(&b, 256); } __syncthreads(); ADD_ASYNC(&s[T & 1], T, &b); PHASE(&b, 0); out[T] = s[T & 1]; }

//: race <<<1, 64>>>
K ends_during_a_store(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_COMMIT(); } }
//: none <<<1, 64>>>
K ends_when_the_store_has_read(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_COMMIT(); BULK_READ(0); } }

//: race <<<1, 64>>>
K ends_with_no_group(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_WAIT(0); } }
//: race <<<1, 64>>>
K ends_and_another_thread_waits(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { STORE(out, s, 256); BULK_COMMIT(); } __syncwarp(); if (T == 1) BULK_WAIT(0); }

//: race <<<1, 64>>>
K ends_during_the_last_store(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { for (int i = 0; i < 3; i++) { STORE(out + 64 * i, s, 256); BULK_COMMIT(); BULK_READ(1); } } }
//: none <<<1, 64>>>
K ends_behind_the_last_store(int* out) { __shared__ alignas(16) int s[64]; s[T] = T; __syncthreads(); if (!T) { for (int i = 0; i < 3; i++) { STORE(out + 64 * i, s, 256); BULK_COMMIT(); BULK_READ(1); } BULK_READ(0); } }

//: race <<<1, 64>>>
K ends_during_a_load(int* out) { __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; if (!T) { INIT(&b, 1); EXPECT(&b, 256); BULK(s, out, 256, &b); } out[64 + T] = T; }
//: none <<<1, 64>>>
K ends_when_one_has_waited(int* out) { __shared__ alignas(16) int s[64]; __shared__ unsigned long long b; if (!T) INIT(&b, 1); __syncthreads(); if (T == 1) { EXPECT(&b, 256); BULK(s, out, 256, &b); } if (T == 32) PHASE(&b, 0); }
