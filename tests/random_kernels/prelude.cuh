// What the generated kernels use: types by their width, and operations that have one result whatever the operands and
// whichever the compiler. operations.py has the same in NumPy.

typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned int u32; typedef int i32; typedef unsigned long long u64; typedef long long i64;
typedef unsigned short f16; typedef float f32; typedef double f64;
#define FN __device__ __forceinline__

template <typename T> FN T quotient(T a, T b) { return b == 0 || b == (T)-1 ? a : (T)(a / b); }
template <typename T> FN T remainder_(T a, T b) { return b == 0 || b == (T)-1 ? b : (T)(a % b); }
template <typename T> FN T least(T a, T b) { return a < b ? a : b; }
template <typename T> FN T greatest(T a, T b) { return a > b ? a : b; }
template <typename T> FN T rotate(T a, u32 n) {
    const u32 w = 8 * sizeof(T);
    return (T)(a << (n & (w - 1)) | a >> ((w - n) & (w - 1)));
}
FN u32 bits(f32 x) { return x != x ? 0x7fffffffu : __float_as_uint(x); }
FN u64 bits(f64 x) { return x != x ? 0x7fffffffffffffffull : (u64)__double_as_longlong(x); }
FN f32 single(f16 x) { f32 r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x)); return r; }
FN f16 half_(f32 x) { f16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
FN u16 bits_of_half(f16 x) { return (x & 0x7fff) > 0x7c00 ? 0x7fff : x; }
#define HALF2(name, op) \
    FN f16 name(f16 a, f16 b) { f16 r; asm(op " %0, %1, %2;" : "=h"(r) : "h"(a), "h"(b)); return r; }
// With ".rn", for a product and a sum without it may become one fused operation (PTX ISA 9.7.4.1).
HALF2(half_add, "add.rn.f16") HALF2(half_sub, "sub.rn.f16") HALF2(half_mul, "mul.rn.f16")
HALF2(half_min_, "min.f16") HALF2(half_max_, "max.f16")
FN f16 half_min(f16 a, f16 b) { return half_add(half_min_(a, b), 0); }
FN f16 half_max(f16 a, f16 b) { return half_add(half_max_(a, b), 0); }
FN f16 half_fma(f16 a, f16 b, f16 c) {
    f16 r; asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r) : "h"(a), "h"(b), "h"(c)); return r;
}
FN f16 half_neg(f16 a) { f16 r; asm("neg.f16 %0, %1;" : "=h"(r) : "h"(a)); return r; }
FN f16 half_abs(f16 a) { f16 r; asm("abs.f16 %0, %1;" : "=h"(r) : "h"(a)); return r; }
FN f32 with_sign(f32 a, f32 b) { return copysignf(a, b != b ? 1.0f : b); }
FN f64 with_sign(f64 a, f64 b) { return copysign(a, b != b ? 1.0 : b); }
#define TO_INTEGER(name, from, to) FN to to_##name(from x) { return x != x ? (to)17 : __##name(x); }
#define ROUNDINGS(name, from, to) TO_INTEGER(name##_rn, from, to) TO_INTEGER(name##_rz, from, to) \
    TO_INTEGER(name##_ru, from, to) TO_INTEGER(name##_rd, from, to)
ROUNDINGS(float2int, f32, i32)
ROUNDINGS(float2uint, f32, u32)
ROUNDINGS(float2ll, f32, i64)
ROUNDINGS(float2ull, f32, u64)
ROUNDINGS(double2int, f64, i32)
ROUNDINGS(double2uint, f64, u32)
ROUNDINGS(double2ll, f64, i64)
ROUNDINGS(double2ull, f64, u64)
FN u32 logic(u32 a, u32 b, u32 c) {
    u32 r; asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r;
}
FN u32 field(u32 a, u32 p, u32 n) {
    u32 r; asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(p & 31), "r"(n & 31)); return r;
}
FN i32 signed_field(i32 a, u32 p, u32 n) {
    i32 r; asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(p & 31), "r"(n & 31)); return r;
}
FN u32 insert(u32 a, u32 b, u32 p, u32 n) {
    u32 r; asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(p & 31), "r"(n & 31)); return r;
}
FN u64 high_of_sum(u64 a, u64 b, u64 c, u64 d) {
    u64 r;
    asm("{ .reg .u64 t; add.cc.u64 t, %1, %2; addc.u64 %0, %3, %4; }" : "=l"(r) : "l"(a), "l"(b), "l"(c), "l"(d));
    return r;
}
FN u64 high_of_difference(u64 a, u64 b, u64 c, u64 d) {
    u64 r;
    asm("{ .reg .u64 t; sub.cc.u64 t, %1, %2; subc.u64 %0, %3, %4; }" : "=l"(r) : "l"(a), "l"(b), "l"(c), "l"(d));
    return r;
}
FN i32 saturating(i32 a, i32 b) { i32 r; asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
FN u64 mixed(u64 s, u64 v) { s = (s ^ v) * 0x9e3779b97f4a7c15ull; return s ^ s >> 29; }
FN u32 linear_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
FN u32 lane_of(u32 m, u32 from) { return m >> from & 1; }
template <typename T> FN T shuffle(u32 m, T v, u32 from, u32 w) {
    const u32 lane = linear_thread() & 31, source = (lane & ~(w - 1)) | (from & (w - 1));
    const T r = __shfl_sync(m, v, from, w);
    return lane_of(m, source) ? r : v;
}
template <typename T> FN T shuffle_up(u32 m, T v, u32 n, u32 w) {
    const u32 lane = linear_thread() & 31, source = (lane & (w - 1)) < n ? lane : lane - n;
    const T r = __shfl_up_sync(m, v, n, w);
    return lane_of(m, source) ? r : v;
}
template <typename T> FN T shuffle_down(u32 m, T v, u32 n, u32 w) {
    const u32 lane = linear_thread() & 31, source = (lane & (w - 1)) + n >= w ? lane : lane + n;
    const T r = __shfl_down_sync(m, v, n, w);
    return lane_of(m, source) ? r : v;
}
template <typename T> FN T shuffle_xor(u32 m, T v, u32 n, u32 w) {
    const u32 lane = linear_thread() & 31, source = (lane ^ n) > (lane | (w - 1)) ? lane : lane ^ n;
    const T r = __shfl_xor_sync(m, v, n, w);
    return lane_of(m, source) ? r : v;
}
FN u32 matched_all(u32 m, u32 v) { i32 p; const u32 r = __match_all_sync(m, v, &p); return p ? r : ~r; }
FN void add_by_exchange(u32* p, u32 v) {
    u32 seen = *(volatile u32*)p, assumed;
    do { assumed = seen; seen = atomicCAS(p, assumed, assumed + v); } while (seen != assumed);
}
FN void add_by_exchange(u64* p, u64 v) {
    u64 seen = *(volatile u64*)p, assumed;
    do { assumed = seen; seen = atomicCAS(p, assumed, assumed + v); } while (seen != assumed);
}
