// Reads of what nobody has written. `out` is memory that was never filled.
#define K extern "C" __global__ void
#define T threadIdx.x

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
