// Reads of what nobody has written. `out` is memory that was never filled.
#define K extern "C" __global__ void
#define T threadIdx.x
#define OFFSET(p) ((unsigned)__cvta_generic_to_shared(p))
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(OFFSET(to)), "l"(from) : "memory")
#define COPY_SOME(to, from, n) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(OFFSET(to)), "l"(from), "r"(n) : "memory")
#define WAIT() asm volatile("cp.async.wait_all;" ::: "memory")
#define INIT(b, n) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(OFFSET(b)), "r"(n) : "memory")
#define EXPECT(b, n) asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;}" ::"r"(OFFSET(b)), "r"(n) : "memory")
#define PHASE(b, p) do { unsigned d; do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(d) : "r"(OFFSET(b)), "r"(p) : "memory"); while (!d); } while (0)
#define BULK(to, from, n, b) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(OFFSET(to)), "l"(from), "r"(n), "r"(OFFSET(b)) : "memory")
#define STORE(to, from, n) asm volatile("fence.proxy.async.shared::cta; cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::"l"(to), "r"(OFFSET(from)), "r"(n) : "memory")
#define REDUCE(to, from, n) asm volatile("fence.proxy.async.shared::cta; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::"l"(to), "r"(OFFSET(from)), "r"(n) : "memory")
#define LOAD(s, from, n) __shared__ unsigned long long b; if (!T) { INIT(&b, 1); EXPECT(&b, n); BULK(s, from, n, &b); } __syncthreads(); PHASE(&b, 0)

//: init <<<1, 64>>>
K shared_never_written(int* out) { __shared__ int s[64]; out[T] = s[T]; }
//: none <<<1, 64>>>
K shared_written(int* out) { __shared__ int s[64]; s[T] = 1; out[T] = s[T]; }
//: init <<<1, 64>>>
K shared_half_written(int* out) { __shared__ int s[64]; if (T < 32) s[T] = 1; __syncthreads(); out[T] = s[T]; }
//: none <<<1, 64>>>
K shared_half_read(int* out) { __shared__ int s[64]; if (T < 32) s[T] = 1; __syncthreads(); out[T] = T < 32 ? s[T] : 0; }
//: init <<<1, 64>>>
K shared_last_element(int* out) { __shared__ int s[65]; s[T] = T; __syncthreads(); out[T] = s[T] + s[T + 1]; }
//: none <<<1, 64>>>
K shared_border(int* out) { __shared__ int s[65]; s[T] = T; if (!T) s[64] = 0; __syncthreads(); out[T] = s[T] + s[T + 1]; }
//: init <<<1, 64>>>
K histogram_not_cleared(int* out) { __shared__ int n[16]; atomicAdd(&n[T % 16], 1); __syncthreads(); if (T < 16) out[T] = n[T]; }
//: none <<<1, 64>>>
K histogram_cleared(int* out) { __shared__ int n[16]; if (T < 16) n[T] = 0; __syncthreads(); atomicAdd(&n[T % 16], 1); __syncthreads(); if (T < 16) out[T] = n[T]; }
//: init <<<2, 32>>>
K shared_of_the_block_before(int* out) { __shared__ int s[32]; if (blockIdx.x == 0) s[T] = 1; out[blockIdx.x * 32 + T] = s[T]; }
//: none <<<2, 32>>>
K shared_of_each_block(int* out) { __shared__ int s[32]; s[T] = 1; out[blockIdx.x * 32 + T] = s[T]; }
//: init <<<1, 32>>>
K global_never_written(int* out) { out[T] = out[64 + T]; }
//: none <<<1, 32>>>
K global_written(int* out) { out[64 + T] = T; out[T] = out[64 + T]; }
//: init <<<1, 32>>>
K global_sum(int* out) { out[T] += 1; }
//: none <<<1, 32>>>
K global_set(int* out) { out[T] = 0; out[T] += 1; }
//: init <<<1, 32>>>
K global_counter(int* out) { atomicAdd(out, 1); }
//: none <<<1, 32>>>
K global_counter_set(int* out) { if (!T) *out = 0; __syncwarp(); atomicAdd(out, 1); }
//: init <<<1, 32>>>
K global_wide(int* out) { int4 v = ((int4*)out)[T]; out[1024 + T] = v.x + v.y + v.z + v.w; }
//: none <<<1, 32>>>
K global_wide_written(int* out) { ((int4*)out)[T] = make_int4(1, 2, 3, 4); int4 v = ((int4*)out)[T]; out[1024 + T] = v.x + v.w; }
//: init <<<1, 32>>>
K global_bytes(int* out) { out[1024 + T] = ((char*)out)[T]; }
//: none <<<1, 32>>>
K global_bytes_written(int* out) { ((char*)out)[T] = 1; out[1024 + T] = ((char*)out)[T]; }
//: init <<<1, 33>>>
K global_one_too_far(int* out) { if (T < 32) out[T] = T; __syncthreads(); out[1024 + T] = out[T]; }
//: none <<<1, 33>>>
K global_not_too_far(int* out) { if (T < 33) out[T] = T; __syncthreads(); out[1024 + T] = out[T]; }
//: init <<<1, 32>>>
K local_array(int* out, int n) { int a[32]; for (int i = 0; i < n; i++) a[i * 3 % 32] = i; out[T] = a[(T * 5 + n) % 32]; }
//: none <<<1, 32>>>
K local_array_written(int* out, int n) { int a[32]; for (int i = 0; i < 32; i++) a[(i + n) % 32] = i; out[T] = a[(T * 5 + n) % 32]; }
//: init <<<1, 32>>>
K by_a_pointer(int* out, int n) { __shared__ int s[32]; int a[2] = {1, 2}; int* p = n < 100 ? s : a; out[T] = p[T & 1]; }
//: none <<<1, 32>>>
K by_a_pointer_written(int* out, int n) { __shared__ int s[32]; int a[2] = {1, 2}; s[T] = T; __syncwarp(); int* p = n < 100 ? s : a; out[T] = p[T & 1]; }
//: init <<<1, 32>>>
K from_malloc(int* out) { int* p = (int*)malloc(64); if (p) { out[T] = p[3]; free(p); } }
//: none <<<1, 32>>>
K from_malloc_written(int* out) { int* p = (int*)malloc(64); if (p) { p[3] = 3; out[T] = p[3]; free(p); } }
//: init <<<1, 32>>>
K struct_member(int* out) { struct S { int a, b; }; S* s = (S*)out; s[T].a = 1; out[1024 + T] = s[T].b; }
//: none <<<1, 32>>>
K struct_padding(int* out) { struct S { int a; char b; }; S* s = (S*)out; s[T].a = 1; s[T].b = 2; out[2048 + T] = s[T].a + s[T].b; }

//: init <<<1, 32>>>
K copied_unset(int* out) { __shared__ int s[32]; COPY(&s[T], out + T); WAIT(); out[64 + T] = s[T]; }
//: none <<<1, 32>>>
K copied_written(int* out) { __shared__ int s[32]; out[T] = T; COPY(&s[T], out + T); WAIT(); out[64 + T] = s[T]; }
//: none <<<1, 32>>>
K copied_unset_not_read(int* out) { __shared__ int s[32]; COPY(&s[T], out + T); WAIT(); s[T] = 1; out[64 + T] = s[T]; }
//: init <<<1, 32>>>
K copied_half(int* out) { __shared__ int s[32]; if (T < 16) out[T] = T; COPY(&s[T], out + T); WAIT(); out[64 + T] = s[T]; }
//: init <<<1, 8>>>
K copied_some(int* out) { __shared__ int4 s[8]; COPY_SOME(&s[T], out + 4 * T, 8); WAIT(); out[64 + T] = s[T].y; }
//: none <<<1, 8>>>
K copied_some_zeros(int* out) { __shared__ int4 s[8]; COPY_SOME(&s[T], out + 4 * T, 8); WAIT(); out[64 + T] = s[T].z; }
//: init <<<1, 32>>>
K bulk_of_unset(int* out) { __shared__ alignas(16) int s[32]; LOAD(s, out, 128); out[64 + T] = s[T]; }
//: none <<<1, 32>>>
K bulk_of_written(int* out) { __shared__ alignas(16) int s[32]; out[T] = T; __syncwarp(); LOAD(s, out, 128); out[64 + T] = s[T]; }
//: init <<<1, 32>>>
K bulk_store_of_unset(int* out) { __shared__ alignas(16) int s[32]; if (T < 16) s[T] = T; __syncthreads(); if (!T) STORE(out, s, 128); __syncthreads(); out[64 + T] = out[T]; }
//: none <<<1, 32>>>
K bulk_store_of_written(int* out) { __shared__ alignas(16) int s[32]; s[T] = T; __syncthreads(); if (!T) STORE(out, s, 128); __syncthreads(); out[64 + T] = out[T]; }
//: init <<<1, 32>>>
K bulk_sum_of_unset(int* out) { __shared__ alignas(16) int s[32]; out[T] = 0; if (T < 31) s[T] = T; __syncthreads(); if (!T) REDUCE(out, s, 128); }
//: none <<<1, 32>>>
K bulk_sum_of_written(int* out) { __shared__ alignas(16) int s[32]; out[T] = 0; s[T] = T; __syncthreads(); if (!T) REDUCE(out, s, 128); }
