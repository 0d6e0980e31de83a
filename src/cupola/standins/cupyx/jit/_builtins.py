"""What kernels in Python may name: places of threads, barriers, shared memory, atomic operations, shuffles."""

from __future__ import annotations

from typing import Any


class Builtin:
    """Something that only a kernel has.

    Parameters
    ----------
    name : str
        Its name in ``cupyx.jit``.
    code : str
        CUDA C++, in which {0}, {1}, ... stand for arguments.
    defaults : tuple of str
        Arguments at the end that may be left out.
    """

    def __init__(self, name: str, code: str, *defaults: str) -> None:
        self.name, self.code, self.defaults = name, code, defaults

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError(f"cupyx.jit.{self.name} is for kernels of jit.rawkernel: it is not called on the host")

    def __repr__(self) -> str:
        return f"<cupyx.jit function {self.name}>"


class Place:
    """One of ``threadIdx``, ``blockIdx``, ``blockDim`` and ``gridDim``, with x, y and z.

    Parameters
    ----------
    name : str
        Which.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.x, self.y, self.z = (Builtin(f"{name}.{axis}", f"{name}.{axis}") for axis in "xyz")


threadIdx, blockIdx, blockDim, gridDim = map(Place, ("threadIdx", "blockIdx", "blockDim", "gridDim"))
warpsize = Builtin("warpsize", "32")
syncthreads = Builtin("syncthreads", "__syncthreads()")
syncwarp = Builtin("syncwarp", "__syncwarp({0})", "0xffffffffu")
laneid = Builtin("laneid", "jit_lane()")
grid, gridsize = Builtin("grid", ""), Builtin("gridsize", "")
shared_memory = Builtin("shared_memory", "")
range = Builtin("range", "")

_SHUFFLES = {"shfl_sync": "__shfl_sync", "shfl_up_sync": "__shfl_up_sync", "shfl_down_sync": "__shfl_down_sync",
             "shfl_xor_sync": "__shfl_xor_sync"}  # fmt: skip
shfl_sync, shfl_up_sync, shfl_down_sync, shfl_xor_sync = (
    Builtin(name, f"{code}({{0}}, {{1}}, {{2}}, {{3}})", "32") for name, code in _SHUFFLES.items()
)


def _atomic(name: str, function: str) -> Builtin:
    return Builtin(name, f"jit_{function}(&{{0}}[{{1}}], {{2}})")


(
    atomic_add,
    atomic_sub,
    atomic_exch,
    atomic_min,
    atomic_max,
    atomic_inc,
    atomic_dec,
    atomic_and,
    atomic_or,
    atomic_xor,
) = (
    _atomic(f"atomic_{one.lower()}", f"atomic{one}")
    for one in ("Add", "Sub", "Exch", "Min", "Max", "Inc", "Dec", "And", "Or", "Xor")
)
atomic_cas = Builtin("atomic_cas", "jit_atomicCAS(&{0}[{1}], {2}, {3})")

# Functions of Python, NumPy and CuPy by their names -> CUDA C++.
FUNCTIONS = {
    "abs": "jit_abs({0})", "absolute": "jit_abs({0})", "min": "jit_min({0}, {1})", "max": "jit_max({0}, {1})",
    "minimum": "jit_min({0}, {1})", "maximum": "jit_max({0}, {1})", "pow": "jit_power({0}, {1})",
    "power": "jit_power({0}, {1})", "float": "((double)({0}))", "int": "((long long)({0}))", "bool": "((bool)({0}))",
    "arcsin": "asin({0})", "arccos": "acos({0})", "arctan": "atan({0})", "arctan2": "atan2({0}, {1})",
    "rsqrt": "rsqrt({0})", "isnan": "isnan({0})", "isinf": "isinf({0})", "fmod": "fmod({0}, {1})",
    "where": "(({0}) ? ({1}) : ({2}))", "square": "jit_square({0})",
    **{name: f"{name}({{0}})" for name in (
        "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh",
        "tanh", "floor", "ceil", "trunc", "rint", "erf", "erfc")},
    **{name: f"{name}({{0}}, {{1}})" for name in ("hypot", "copysign")},
}  # fmt: skip

PREAMBLE = r"""
template <typename T, int N> struct jit_array {
    T* data; long long size, shape[N ? N : 1], strides[N ? N : 1];
    template <typename... I> __device__ T& operator()(I... at) const {
        long long index[] = {(long long)at...}, offset = 0;
        for (int k = 0; k < N; k++) offset += (index[k] < 0 ? index[k] + shape[k] : index[k]) * strides[k];
        return *(T*)((char*)data + offset);
    }
    template <typename I> __device__ T& operator[](I at) const { return (*this)(at); }
};
template <typename A> __device__ A jit_abs(A a) { return a < A(0) ? A(-a) : a; }
__device__ inline double jit_abs(double a) { return fabs(a); }
__device__ inline float jit_abs(float a) { return fabsf(a); }
template <typename A> __device__ A jit_square(A a) { return a * a; }
template <typename A, typename B> __device__ auto jit_min(A a, B b) -> decltype(a + b) { return b < a ? b : a; }
template <typename A, typename B> __device__ auto jit_max(A a, B b) -> decltype(a + b) { return a < b ? b : a; }
template <typename T> struct jit_whole { static const bool value = T(0.5) == T(0); };
template <typename A, typename B> __device__ auto jit_divide(A a, B b) {
    if constexpr (jit_whole<A>::value && jit_whole<B>::value) return (double)a / (double)b;
    else return a / b;
}
template <typename A, typename B> __device__ auto jit_floor_divide(A a, B b) {
    typedef decltype(a + b) T;
    if constexpr (jit_whole<T>::value) {
        T q = T(a) / T(b);
        return T(q - (T(a) % T(b) != 0 && (T(a) < 0) != (T(b) < 0)));
    } else return (T)floor(T(a) / T(b));
}
template <typename A, typename B> __device__ auto jit_remainder(A a, B b) {
    typedef decltype(a + b) T;
    if constexpr (jit_whole<T>::value) { T r = T(a) % T(b); return T(r != 0 && (r < 0) != (T(b) < 0) ? r + T(b) : r); }
    else { T r = fmod(T(a), T(b)); return T(r != 0 && (r < 0) != (T(b) < 0) ? r + T(b) : r); }
}
template <typename A, typename B> __device__ auto jit_power(A a, B b) {
    typedef decltype(a + b) T;
    if constexpr (jit_whole<T>::value) {
        T made = 1, by = a;
        for (unsigned long long n = b; n; n >>= 1, by *= by) if (n & 1) made *= by;
        return made;
    } else return (T)pow(T(a), T(b));
}
__device__ inline unsigned jit_lane() { unsigned lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane)); return lane; }
template <typename T> struct jit_word { typedef T type; };
template <> struct jit_word<long long> { typedef unsigned long long type; };
template <> struct jit_word<long> { typedef unsigned long long type; };
template <> struct jit_word<unsigned long> { typedef unsigned long long type; };
#define JIT_ATOMIC(name, word) \
    template <typename T, typename V> __device__ T jit_##name(T* at, V value) { \
        return (T)name((typename word<T>::type*)at, (typename word<T>::type)(T)value); }
template <typename T> struct jit_same { typedef T type; };
JIT_ATOMIC(atomicAdd, jit_word) JIT_ATOMIC(atomicExch, jit_word)
JIT_ATOMIC(atomicMin, jit_same) JIT_ATOMIC(atomicMax, jit_same)
JIT_ATOMIC(atomicInc, jit_same) JIT_ATOMIC(atomicDec, jit_same)
JIT_ATOMIC(atomicAnd, jit_word) JIT_ATOMIC(atomicOr, jit_word) JIT_ATOMIC(atomicXor, jit_word)
template <typename T, typename V> __device__ T jit_atomicSub(T* at, V value) {
    return jit_atomicAdd(at, T(-(T)value));
}
template <typename T, typename C, typename V> __device__ T jit_atomicCAS(T* at, C expected, V value) {
    typedef typename jit_word<T>::type word;
    return (T)atomicCAS((word*)at, (word)(T)expected, (word)(T)value);
}
"""
