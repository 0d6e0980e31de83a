// What kernels of cupola.numpy have beside CUDA's own functions. No header is included: those of CUDA take long to compile.

struct half_bits {
    unsigned short bits;
    __device__ operator float() const {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
    half_bits() = default;
    __device__ explicit half_bits(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
};

template <typename T> constexpr bool is_signed = T(-1) < T(0);
template <typename T> constexpr bool is_floating = T(0.5) != T(0);

// Without the compiler's warning that an unsigned number never is.
template <typename T> __device__ bool is_negative(T a) {
    if constexpr (is_signed<T>) return a < 0;
    return false;
}

// A conversion as NumPy's astype: to bool whether it is not zero.
template <typename To> struct convert {
    template <typename From> static __device__ To from(From value) { return (To)value; }
};
template <> struct convert<bool> {
    template <typename From> static __device__ bool from(From value) { return value != From(0); }
};
// An index from either end, in bytes. What is out of bounds is reported, and read from the first element.
struct out_of_bounds {
    unsigned long long found;
    long long index, extent;
};
template <typename I> __device__ long long place_of(I index, long long extent, long long stride, unsigned long long report) {
    if (index < -extent || index >= extent) {
        out_of_bounds* first = (out_of_bounds*)report;
        first->index = index, first->extent = extent;
        first->found = 1;
        return 0;
    }
    return (index < 0 ? index + extent : index) * stride;
}

template <typename T> __device__ float rounded_to_half(T value) { return half_bits((float)value); }

// Division that rounds down. NumPy: by zero it is zero, and the least integer by -1 is itself.
template <typename T> __device__ T floor_divide(T a, T b) {
    if constexpr (is_floating<T>) {
        if (b == 0 || isinf(a)) return a / b;
        T left = fmod(a, b), quotient = (a - left) / b;
        if (left != 0 && (b < 0) != (left < 0)) quotient -= 1;
        if (quotient == 0) return copysign(T(0), a / b);
        T down = floor(quotient);
        return quotient - down > T(0.5) ? down + 1 : down;
    } else {
        if (b == 0) return 0;
        if constexpr (is_signed<T>) {
            if (b == T(-1)) return T(0ull - (unsigned long long)a);
            T quotient = a / b;
            return quotient - (a % b != 0 && (a < 0) != (b < 0));
        } else {
            return a / b;
        }
    }
}

// The remainder of that: of the sign of the divisor.
template <typename T> __device__ T remainder(T a, T b) {
    if constexpr (is_floating<T>) {
        T left = fmod(a, b);
        if (left == 0) return copysign(T(0), b);
        return (b < 0) != (left < 0) ? left + b : left;
    } else {
        if (b == 0 || b == T(-1) && is_signed<T>) return 0;
        T left = a % b;
        return left != 0 && is_negative(left) != is_negative(b) ? left + b : left;
    }
}

template <typename T> __device__ T truncated_remainder(T a, T b) {
    return b == 0 || (is_signed<T> && b == T(-1)) ? T(0) : T(a % b);
}

template <typename T> __device__ T power(T base, T exponent) {
    if (is_negative(exponent)) return base == 1 ? 1 : base == T(-1) ? (exponent % 2 ? -1 : 1) : 0;
    unsigned long long result = 1, factor = base;
    for (unsigned long long left = exponent; left; left >>= 1, factor *= factor)
        if (left & 1) result *= factor;
    return T(result);
}

// Shifts by at least the width push out all bits.
template <typename T> __device__ T shift_left(T a, T by) {
    return !is_negative(by) && by < T(8 * sizeof(T)) ? T((unsigned long long)a << by) : T(0);
}
template <typename T> __device__ T shift_right(T a, T by) {
    return !is_negative(by) && by < T(8 * sizeof(T)) ? T(a >> by) : is_negative(a) ? T(-1) : T(0);
}

template <typename T> __device__ T logaddexp(T a, T b) {
    if (a == b) return a + T(0.6931471805599453);
    T difference = a - b;
    return difference > 0 ? a + log1p(exp(-difference)) : difference <= 0 ? b + log1p(exp(difference)) : difference;
}

template <typename T> __device__ T logaddexp2(T a, T b) {
    if (a == b) return a + T(1);
    T difference = a - b;
    return difference > 0 ? a + log1p(exp2(-difference)) * T(1.4426950408889634)
         : difference <= 0 ? b + log1p(exp2(difference)) * T(1.4426950408889634) : difference;
}

template <typename T> __device__ unsigned long long size_of(T a) { return T(0) < a ? a : 0ull - (unsigned long long)a; }
template <typename T> __device__ T greatest_divisor(T a, T b) {
    unsigned long long one = size_of(a), other = size_of(b);
    while (other) {
        unsigned long long left = one % other;
        one = other, other = left;
    }
    return T(one);
}
template <typename T> __device__ T least_multiple(T a, T b) {
    if (a == 0 || b == 0) return 0;
    unsigned long long one = size_of(a), other = size_of(b), left = one;
    while (other) {
        unsigned long long next = left % other;
        left = other, other = next;
    }
    return T(one / left * size_of(b));
}
template <typename T> __device__ int ones(T a) { return __popcll(size_of(a)); }

// The next half from one towards another.
template <typename T> __device__ float next_half(T a, T b) {
    if (a != a || b != b) return a + b;
    if (a == b) return a;
    half_bits value(a);
    if (a == 0) value.bits = b > 0 ? 1 : 0x8001;
    else value.bits += (a < b) == (a > 0) ? 1 : -1;
    return value;
}
